"""Estimators of user satisfaction: constant, few-shot, fine-tuned, and with the dynamics of a Hawkes process.

Each gives samples of `equipoise.studies.satisfaction.dialogues.turn_samples` the probability that the user is
dissatisfied. Only training and prompting need packages of the extra ``models``; intensities and prompts are plain.
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

from equipoise.arrays import Floats, Integers
from equipoise.studies.satisfaction.dialogues import dialogue_text
from equipoise.systems.language_models import load_server

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

    ``samples``, ``training``: with the column dissatisfied in ``training``. Returns ndarray, shaped (samples,).

    The rows "BERT w/o up-sampling" of thesis Table 3.6 are this classifier on MultiWOZ.
    """
    return np.full(len(samples), float(training["dissatisfied"].mean() > 0.5))


def up_sampled(dissatisfied: ArrayLike, times: int, rng: np.random.Generator) -> Integers:
    """Rows of a training set in which each dissatisfied sample stands several times, shuffled.

    ``times``: how often a dissatisfied sample stands; 1 leaves the set as it is. Returns ndarray of int, shaped
    (rows,).

    thesis section 3.5.3.
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

    ``users``, ``systems``: Exchanges of the dialogue. ``examples``: Dialogues and their labels; the thesis shows a
    satisfied one, then a dissatisfied one. ``last``: Exchanges of the dialogue that are shown, from the end.
    Returns: It ends within the quotation marks where the label belongs.

    thesis Figure 3.3: instruction, what the two labels mean, examples with their labels, the dialogue. The wording of
    the instruction is our own.
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

    ``candidates``: Natural logarithm of the probability of each of the likeliest tokens. Returns: From 0 to 1; 0.5
    where neither label is among the candidates.
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

    ``weights``: the ``.gguf`` file. ``context``: Tokens of prompt and answer together. Returns: One takes a prompt
    and returns log-probabilities of the 40 likeliest first tokens; the other takes a prompt and a number of tokens
    and returns the likeliest continuation.
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

    ``folder``: of the base model. ``texts``: Training texts; of a long one the end counts. ``dissatisfied``: Their
    labels. ``wanted``: Texts to label. ``times``: Up-sampling of dissatisfied samples. ``steps``, ``batch``: Steps
    of AdamW and samples in each: the same number whatever the up-sampling. ``length``: Tokens kept, from the end.
    ``rate``: Highest learning rate, reached after a tenth of the steps and falling to 0. ``seed``: of the head and
    of the order of the samples. ``checkpoint``: File to resume from and to save to. ``every``: Steps between
    checkpoints. Returns ndarray, shaped (wanted,): Probability of dissatisfaction.

    thesis section 3.5.3 (BERT): the state of the first token, a linear layer, cross-entropy. Repeats on one machine
    with one number of threads. A checkpoint is read as tensors only, never unpickled.
    """
    from equipoise.systems.encoders import load_model

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

    ``base`` (shaped (dialogues, turns, kinds)): mu: what the turn itself gives. ``jumps`` (shaped (dialogues,
    turns, kinds)): alpha: what a turn adds to all later ones; 0 for turns that are not there. ``decay`` (shaped
    (kinds,)): delta, per turn; from 0. Returns ndarray, shaped (dialogues, turns, kinds): Above 0.

    Hawkes (1971); Ye et al. (2023) for the satisfaction of users over turns. With one jump a turn, the sum follows from
    that of the turn before: S(t) = exp(-delta) (S(t - 1) + alpha(t - 1)).
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

    ``features``: Turns texts of exchanges into vectors (a scikit-learn pipeline). ``base``, ``jump`` (shaped (width
    + 1, 2)): Weights of what an exchange gives and of what it adds to later ones; the last row is the intercept.
    The kinds are satisfied and dissatisfied.
    """

    features: Any
    base: Floats
    jump: Floats
    decay: Floats

    def probability(self, samples: pd.DataFrame) -> Floats:
        """Probability of dissatisfaction at the end of each sample.

        Returns ndarray, shaped (samples,): The intensity of dissatisfaction, divided by that of both kinds.
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

    ``times``: Up-sampling of dissatisfied samples, as a weight. ``width``: Dimensions of an exchange: latent
    semantic analysis of TF-IDF weights of words and pairs of words. ``steps``, ``rate``: Full-batch steps of Adam
    and their size. ``penalty``: of the squared weights.

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
