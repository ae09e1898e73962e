"""Estimators of user satisfaction: constant, few-shot, fine-tuned, and with the dynamics of a Hawkes process.

Each gives samples of `equipoise.dialogues.turn_samples` the probability that the user is dissatisfied. Only training
and prompting need packages of the extra ``models``; intensities and prompts are plain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from tqdm import tqdm

from equipoise.dialogues import dialogue_text
from equipoise.systems.gguf import load_server

__all__ = [
    "LABELS",
    "Hawkes",
    "constant",
    "few_shot_prompt",
    "fine_tune_encoder",
    "fit_hawkes",
    "hawkes_intensity",
    "label_probability",
    "language_model",
    "up_sampled",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LABELS = ("Satisfied", "Dissatisfied")
"""Labels of the few-shot prompt."""

_INSTRUCTION = (
    "Label how satisfied the user is at the end of each dialogue. There are two labels:\n"
    '"Dissatisfied": the system does not understand what the user asks for, or fails to fulfil it.\n'
    '"Satisfied": the system understands what the user asks for, and fulfils all or part of it or says how it can be '
    "fulfilled.\n"
)


def constant(samples: pd.DataFrame, training: pd.DataFrame) -> Floats:
    """Probability of dissatisfaction of every sample by the majority class of training: 0 or 1.

    Parameters
    ----------
    samples, training : DataFrame
        With the column dissatisfied in ``training``.

    Returns
    -------
    ndarray, shaped (samples,)

    Notes
    -----
    The rows "BERT w/o up-sampling" of thesis Table 3.6 are this classifier on MultiWOZ.

    Examples
    --------
    >>> training = pd.DataFrame({"dissatisfied": [False, False, True]})
    >>> constant(pd.DataFrame({"sample": ["0:8"]}), training)
    array([0.])
    """
    return np.full(len(samples), float(training["dissatisfied"].mean() > 0.5))


def up_sampled(dissatisfied: ArrayLike, times: int, rng: np.random.Generator) -> Integers:
    """Rows of a training set in which each dissatisfied sample stands several times, shuffled.

    Parameters
    ----------
    dissatisfied : array_like of bool, shaped (samples,)
    times : int
        How often a dissatisfied sample stands; 1 leaves the set as it is.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shaped (rows,)

    Raises
    ------
    ValueError
        If ``times`` is below 1.

    Notes
    -----
    thesis section 3.5.3.

    Examples
    --------
    >>> sorted(up_sampled([False, True], 3, np.random.default_rng(1)).tolist())
    [0, 1, 1, 1]
    """
    if times < 1:
        raise ValueError(f"a sample stands at least once, found {times}")
    rare = np.asarray(dissatisfied, dtype=bool)
    rows = np.repeat(np.arange(len(rare), dtype=np.int64), np.where(rare, times, 1))
    return rng.permutation(rows)


# --- few-shot ---------------------------------------------------------------------------------------------------------


def few_shot_prompt(
    users: Sequence[str], systems: Sequence[str], examples: Sequence[tuple[str, str]], last: int | None = None
) -> str:
    """Prompt for the label of a dialogue.

    Parameters
    ----------
    users, systems : sequence of str
        Exchanges of the dialogue.
    examples : sequence of (str, str)
        Dialogues and their labels; the thesis shows a satisfied one, then a dissatisfied one.
    last : int, optional
        Exchanges of the dialogue that are shown, from the end.

    Returns
    -------
    str
        It ends within the quotation marks where the label belongs.

    Raises
    ------
    ValueError
        If an example has another label than `LABELS`.

    Notes
    -----
    thesis Figure 3.3: instruction, what the two labels mean, examples with their labels, the dialogue. The wording of
    the instruction is our own.

    Examples
    --------
    >>> few_shot_prompt(["A train?"], ["Booked."], [("USER: A taxi?", "Satisfied")]).splitlines()[-2:]
    ['SYSTEM: Booked.', 'Label of Example 2 is "']
    """
    unknown = sorted({label for _, label in examples} - set(LABELS))
    if unknown:
        raise ValueError(f"labels are {' and '.join(LABELS)}, found {', '.join(unknown)}")
    parts = [_INSTRUCTION]
    for number, (shown, label) in enumerate(examples, start=1):
        parts.append(f'Example {number}:\n{shown}\nLabel of Example {number} is "{label}".\n')
    number = len(examples) + 1
    parts.append(f'Example {number}:\n{dialogue_text(users, systems, last)}\nLabel of Example {number} is "')
    return "\n".join(parts)


def label_probability(candidates: Mapping[str, float]) -> float:
    r"""Probability of "Dissatisfied" against "Satisfied", by the token that a model would write first.

    .. math:: P = \frac{\sum_{t \in D} p_t}{\sum_{t \in D} p_t + \sum_{t \in S} p_t}

    where D and S hold the tokens that the one label begins with and the other does not.

    Parameters
    ----------
    candidates : mapping of str to float
        Natural logarithm of the probability of each of the likeliest tokens.

    Returns
    -------
    float
        From 0 to 1; 0.5 where neither label is among the candidates.

    Examples
    --------
    >>> round(label_probability({"Dis": math.log(0.3), "S": math.log(0.1), "The": math.log(0.5)}), 6)
    0.75
    """
    sums = dict.fromkeys(LABELS, 0.0)
    for token, logarithm in candidates.items():
        begun = token.strip()
        for label in LABELS:
            if begun and label.startswith(begun):
                sums[label] += math.exp(logarithm)
    total = sum(sums.values())
    return sums["Dissatisfied"] / total if total else 0.5


def language_model(
    weights: Path, *, threads: int = 1, context: int = 4096
) -> tuple[Callable[[str], dict[str, float]], Callable[[str, int], str]]:
    """Load a GGUF language model.

    Parameters
    ----------
    weights : Path
        The ``.gguf`` file.
    threads : int, default 1
    context : int, default 4096
        Tokens of prompt and answer together.

    Returns
    -------
    (callable, callable)
        One takes a prompt and returns log-probabilities of the 40 likeliest first tokens; the other takes a prompt and
        a number of tokens and returns the likeliest continuation.

    Raises
    ------
    ModuleNotFoundError
        If xllamacpp is not installed.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> language_model(Path("no-such.gguf"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: no language model at no-such.gguf
    """
    server = load_server(weights, threads=threads, context=context)
    greedy = {"temperature": 0.0, "cache_prompt": True, "seed": 0}

    def first_tokens(prompt: str) -> dict[str, float]:
        answer = server.handle_completions({"prompt": prompt, "n_predict": 1, "n_probs": 40, **greedy})
        listed = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        found: dict[str, float] = {}
        for entry in listed:
            found[entry["token"]] = float(np.logaddexp(found.get(entry["token"], -np.inf), entry["logprob"]))
        return found

    def continuation(prompt: str, tokens: int) -> str:
        return str(server.handle_completions({"prompt": prompt, "n_predict": tokens, **greedy})["choices"][0]["text"])

    return first_tokens, continuation


# --- fine-tuned encoder -----------------------------------------------------------------------------------------------


def fine_tune_encoder(
    folder: Path,
    texts: Sequence[str],
    dissatisfied: Sequence[bool],
    wanted: Sequence[str],
    *,
    times: int = 1,
    steps: int = 250,
    batch: int = 32,
    length: int = 64,
    rate: float = 5e-4,
    seed: int = 0,
    threads: int = 1,
    checkpoint: Path | None = None,
    every: int = 100,
) -> Floats:
    """Fine-tune an encoder with a classification head, and apply it.

    Parameters
    ----------
    folder : Path
        Of the base model.
    texts : sequence of str
        Training texts; of a long one the end counts.
    dissatisfied : sequence of bool
        Their labels.
    wanted : sequence of str
        Texts to label.
    times : int, default 1
        Up-sampling of dissatisfied samples.
    steps, batch : int, default 250 and 32
        Steps of AdamW and samples in each: the same number whatever the up-sampling.
    length : int, default 64
        Tokens kept, from the end.
    rate : float, default 5e-4
        Highest learning rate, reached after a tenth of the steps and falling to 0.
    seed : int, default 0
        Of the head and of the order of the samples.
    threads : int, default 1
    checkpoint : Path, optional
        File to resume from and to save to.
    every : int, default 100
        Steps between checkpoints.

    Returns
    -------
    ndarray, shaped (wanted,)
        Probability of dissatisfaction.

    Raises
    ------
    FileNotFoundError
        If the folder holds no safetensors weights.
    ModuleNotFoundError
        If torch or transformers is not installed.

    Notes
    -----
    thesis section 3.5.3 (BERT): the state of the first token, a linear layer, cross-entropy. Repeats on one machine
    with one number of threads. A checkpoint is read as tensors only, never unpickled.

    Examples
    --------
    >>> fine_tune_encoder(Path("no-such-folder"), [], [], [])
    Traceback (most recent call last):
    ...
    FileNotFoundError: no model.safetensors in no-such-folder
    """
    from equipoise.systems.transformers_local import load_model

    model = load_model(folder)
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    network, tokenizer = model.network, model.tokenizer
    tokenizer.truncation_side = "left"
    head = torch.nn.Linear(network.config.hidden_size, 2)
    parameters = [*network.parameters(), *head.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01)
    rows = up_sampled(dissatisfied, times, np.random.default_rng(seed))
    order = np.resize(rows, steps * batch).reshape(steps, batch)
    labels = torch.tensor(np.asarray(dissatisfied, dtype=np.int64))
    start = 0
    if checkpoint is not None and checkpoint.is_file():
        saved = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(saved["network"])
        head.load_state_dict(saved["head"])
        optimiser.load_state_dict(saved["optimiser"])
        start = int(saved["step"])

    def logits(part: Sequence[str]) -> Any:
        coded = tokenizer(list(part), padding=True, truncation=True, max_length=length, return_tensors="pt")
        return head(network(**coded).last_hidden_state[:, 0])

    network.eval()  # no dropout: so small a model underfits as it is, and a resumed run repeats exactly
    for step in tqdm(range(start, steps), desc=f"fine-tuning x{times}", mininterval=10):
        warm = max(1, steps // 10)
        optimiser.param_groups[0]["lr"] = rate * min((step + 1) / warm, (steps - step) / (steps - warm))
        loss = torch.nn.functional.cross_entropy(logits([texts[row] for row in order[step]]), labels[order[step]])
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        if checkpoint is not None and ((step + 1) % every == 0 or step + 1 == steps):
            state = {"network": network.state_dict(), "head": head.state_dict(), "optimiser": optimiser.state_dict()}
            torch.save(state | {"step": step + 1}, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
    found = np.empty(len(wanted))
    by_length = np.argsort([len(text) for text in wanted], kind="stable")
    with torch.inference_mode():
        for begin in range(0, len(wanted), 64):
            part = by_length[begin : begin + 64]
            found[part] = torch.softmax(logits([wanted[row] for row in part]), dim=1)[:, 1].numpy()
    return found


# --- Hawkes process ---------------------------------------------------------------------------------------------------


def hawkes_intensity(base: ArrayLike, jumps: ArrayLike, decay: ArrayLike) -> Floats:
    r"""Intensity of a Hawkes process in discrete time, with an exponential kernel.

    .. math:: \lambda_k(t) = \ln\left(1 + \exp\left(\mu_k(t) + \sum_{j < t} \alpha_k(j) e^{-\delta_k (t - j)}\right)
        \right)

    Parameters
    ----------
    base : array_like, shaped (dialogues, turns, kinds)
        mu: what the turn itself gives.
    jumps : array_like, shaped (dialogues, turns, kinds)
        alpha: what a turn adds to all later ones; 0 for turns that are not there.
    decay : array_like, shaped (kinds,)
        delta, per turn; from 0.

    Returns
    -------
    ndarray, shaped (dialogues, turns, kinds)
        Above 0.

    Raises
    ------
    ValueError
        If the shapes do not fit or a decay is below 0.

    Notes
    -----
    Hawkes (1971); Ye et al. (2023) for the satisfaction of users over turns. With one jump a turn, the sum follows from
    that of the turn before: S(t) = exp(-delta) (S(t - 1) + alpha(t - 1)).

    Examples
    --------
    >>> hawkes_intensity(np.zeros((1, 3, 1)), np.ones((1, 3, 1)), [np.log(2)]).round(4).ravel()
    array([0.6931, 0.9741, 1.1369])
    """
    start, added, rate = (np.asarray(values, dtype=np.float64) for values in (base, jumps, decay))
    if start.ndim != 3 or start.shape != added.shape or rate.shape != start.shape[2:]:
        raise ValueError(f"shapes {start.shape}, {added.shape} and {rate.shape} do not fit")
    if (rate < 0).any():
        raise ValueError(f"a decay is at least 0, found {rate.min()}")
    excited = np.zeros_like(start)
    kept = np.exp(-rate)
    for turn in range(1, start.shape[1]):
        excited[:, turn] = kept * (excited[:, turn - 1] + added[:, turn - 1])
    return np.logaddexp(0.0, start + excited)


@dataclass(frozen=True, eq=False)
class Hawkes:
    """A fitted estimator with the dynamics of a Hawkes process over the exchanges of a dialogue.

    Parameters
    ----------
    features : object
        Turns texts of exchanges into vectors (a scikit-learn pipeline).
    base, jump : ndarray, shaped (width + 1, 2)
        Weights of what an exchange gives and of what it adds to later ones; the last row is the intercept. The kinds
        are satisfied and dissatisfied.
    decay : ndarray, shaped (2,)

    Examples
    --------
    >>> Hawkes(None, np.zeros((2, 2)), np.zeros((2, 2)), np.ones(2)).decay
    array([1., 1.])
    """

    features: Any
    base: Floats
    jump: Floats
    decay: Floats

    def probability(self, samples: pd.DataFrame) -> Floats:
        """Probability of dissatisfaction at the end of each sample.

        Parameters
        ----------
        samples : DataFrame, columns users, systems

        Returns
        -------
        ndarray, shaped (samples,)
            The intensity of dissatisfaction, divided by that of both kinds.
        """
        vectors, there = _exchange_vectors(self.features, samples)
        jumps = np.logaddexp(0.0, vectors @ self.jump) * there[..., np.newaxis]
        last = hawkes_intensity(vectors @ self.base, jumps, self.decay)[:, -1]
        shares: Floats = last[:, 1] / last.sum(axis=1)
        return shares


def _exchange_vectors(features: Any, samples: pd.DataFrame) -> tuple[Floats, NDArray[np.bool_]]:
    """Vectors of exchanges with a 1 behind, shaped (samples, turns, width + 1), the last exchange in the last place."""
    lengths = samples["users"].map(len).to_numpy()
    turns = int(lengths.max())
    users = [text for row in samples["users"] for text in row]
    systems = [text for row in samples["systems"] for text in row]
    texts, place = np.unique(
        [f"{user}\n{reply}" for user, reply in zip(users, systems, strict=True)], return_inverse=True
    )
    coded = features.transform(texts)[place]
    there = np.arange(turns) >= turns - lengths[:, np.newaxis]
    vectors = np.zeros((len(samples), turns, coded.shape[1] + 1))
    vectors[there] = np.column_stack([coded, np.ones(len(coded))])
    return vectors, there


def fit_hawkes(
    training: pd.DataFrame,
    *,
    times: int = 1,
    width: int = 128,
    steps: int = 300,
    rate: float = 0.03,
    penalty: float = 1e-4,
    seed: int = 0,
    threads: int = 1,
) -> Hawkes:
    """Fit the estimator to training samples.

    Parameters
    ----------
    training : DataFrame, columns users, systems, dissatisfied
    times : int, default 1
        Up-sampling of dissatisfied samples, as a weight.
    width : int, default 128
        Dimensions of an exchange: latent semantic analysis of TF-IDF weights of words and pairs of words.
    steps, rate : int and float, default 300 and 0.03
        Full-batch steps of Adam and their size.
    penalty : float, default 1e-4
        Of the squared weights.
    seed : int, default 0
    threads : int, default 1

    Returns
    -------
    Hawkes

    Raises
    ------
    ModuleNotFoundError
        If torch is not installed.

    Notes
    -----
    In the spirit of Ye et al. (2023), ASAP, which encodes exchanges by BERT and has no kernel of a given form; here
    exchanges are bags of words, jumps are positive and decay exponentially, and the two kinds do not excite each other.
    """
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    texts = [
        f"{user}\n{reply}"
        for row in training[["users", "systems"]].itertuples(index=False)
        for user, reply in zip(*row, strict=True)
    ]
    features = Pipeline(
        [
            ("words", TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True)),
            ("axes", TruncatedSVD(width, random_state=seed)),
        ]
    ).fit(sorted(set(texts)))
    vectors, there = _exchange_vectors(features, training)
    held = torch.tensor(vectors, dtype=torch.float32)
    mask = torch.tensor(there, dtype=torch.float32).unsqueeze(2)
    truth = torch.tensor(training["dissatisfied"].to_numpy(dtype=np.int64))
    weight = torch.where(truth == 1, float(times), 1.0)
    base = torch.zeros(vectors.shape[2], 2, requires_grad=True)
    jump = torch.zeros(vectors.shape[2], 2)
    jump[-1] = -2.0
    jump.requires_grad_(True)
    slow = torch.zeros(2, requires_grad=True)
    back = torch.arange(vectors.shape[1] - 1, -1, -1.0).unsqueeze(1)  # turns between an exchange and the last
    optimiser = torch.optim.Adam([base, jump, slow], lr=rate)
    softplus = torch.nn.functional.softplus
    for _ in tqdm(range(steps), desc=f"Hawkes x{times}", mininterval=10):
        jumps = softplus(held @ jump) * mask
        excited = (jumps[:, :-1] * torch.exp(-softplus(slow) * back[:-1])).sum(dim=1)
        intensity = softplus(held[:, -1] @ base + excited)
        share = intensity / intensity.sum(dim=1, keepdim=True)
        loss = -(weight * share.gather(1, truth.unsqueeze(1)).squeeze(1).clamp_min(1e-9).log()).sum() / weight.sum()
        loss = loss + penalty * (base[:-1].square().sum() + jump[:-1].square().sum())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    numbers = [part.detach().numpy().astype(np.float64) for part in (base, jump, softplus(slow))]
    return Hawkes(features, *numbers)
