"""Estimators of user satisfaction: constant, few-shot, fine-tuned, and with the dynamics of a Hawkes process.

Each gives samples of `equipoise_studies.satisfaction.dialogues.turn_samples` the probability that
the user is dissatisfied. Only training and prompting need packages of the extra ``models``;
intensities are plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tqdm import tqdm

from equipoise.arrays import Booleans, Floats, Integers
from equipoise_studies.systems import models_package
from equipoise_studies.systems.encoders import Precision, load_model, token_states
from equipoise_studies.systems.language_models import Device
from equipoise_studies.training import descend


def constant(samples: pd.DataFrame, training: pd.DataFrame) -> Floats:
    """Probability of dissatisfaction of every sample by the majority class of training: 0 or 1.

    The rows "BERT w/o up-sampling" of thesis Table 3.6 are this classifier on MultiWOZ.
    """
    return np.full(len(samples), float(training["dissatisfied"].mean() > 0.5))


# --- fine-tuned encoder ---------------------------------------------------------------------------


def up_sampled(dissatisfied: ArrayLike, times: int, rng: np.random.Generator) -> Integers:
    """Rows of a training set in which each dissatisfied sample stands several times, shuffled (thesis section 3.5.3).

    ``times``: how often a dissatisfied sample stands; 1 leaves the set as it is.
    """
    if times < 1:
        raise ValueError(f"a sample stands at least once, found {times}")
    rare = np.asarray(dissatisfied, dtype=bool)
    return rng.permutation(np.repeat(np.arange(len(rare)), np.where(rare, times, 1)))


def under_sampled(dissatisfied: ArrayLike, rng: np.random.Generator) -> Integers:
    """Rows of a training set of as many satisfied samples, drawn at random, as dissatisfied ones (thesis 3.6.2)."""
    rare = np.asarray(dissatisfied, dtype=bool)
    drawn = rng.choice(np.flatnonzero(~rare), min(rare.sum(), (~rare).sum()), replace=False)
    return np.sort(np.concatenate([np.flatnonzero(rare), drawn]))


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
    precision: Precision = "float32",
    seed: int = 0,
    checkpoint: Path | None = None,
    device: Device = "cpu",
) -> Floats:
    """Fine-tune an encoder with a classification head, on one thread of the processor or on ``device``, and apply it.

    ``folder``: of the base model. ``texts``: Training texts; of a long one the end counts.
    ``dissatisfied``: Their labels. ``wanted``: Texts to label. ``times``: Up-sampling of
    dissatisfied samples. ``steps``, ``batch``: Steps of AdamW and samples in each. ``length``:
    Tokens kept, from the end. ``rate``, ``checkpoint``: see `equipoise_studies.training.descend`.
    ``precision``: of the states. ``seed``: of the head and of the order of the samples. Returns:
    Shaped (wanted,): probability of dissatisfaction.

    thesis section 3.5.3 (BERT): the state of the first token, a linear layer, cross-entropy.
    Without dropout, as small models underfit as they are. Repeats on one machine.
    """
    model = load_model(folder)
    torch = models_package("torch")
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    network, tokenizer = model.network.to(device), model.tokenizer
    network.set_attn_implementation("eager")  # whose gradients take half the time on a processor
    tokenizer.truncation_side = "left"
    head = torch.nn.Linear(network.config.hidden_size, 2).to(device)
    order = np.resize(up_sampled(dissatisfied, times, np.random.default_rng(seed)), (steps, batch))
    labels = torch.tensor(np.asarray(dissatisfied, dtype=np.int64), device=device)

    def logits(part: Sequence[str]) -> Any:
        coded = tokenizer(
            list(part), padding=True, truncation=True, max_length=length, return_tensors="pt"
        ).to(device)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
            states = network(**coded).last_hidden_state
        return head(states[:, 0].float())

    def loss_of(rows: Integers) -> Any:
        return torch.nn.functional.cross_entropy(logits([texts[row] for row in rows]), labels[rows])

    descend(
        [network, head],
        list(order),
        loss_of,
        f"fine-tuning x{times}",
        rate=rate,
        checkpoint=checkpoint,
    )
    found = np.empty(len(wanted))
    by_length = np.argsort([len(text) for text in wanted], kind="stable")
    with torch.inference_mode():
        for begin in tqdm(range(0, len(wanted), 64), desc=f"labelling x{times}", mininterval=10):
            part = by_length[begin : begin + 64]
            found[part] = (
                torch.softmax(logits([wanted[row] for row in part]), dim=1)[:, 1].cpu().numpy()
            )
    return found


# --- Hawkes process -------------------------------------------------------------------------------


def hawkes_intensity(base: ArrayLike, jumps: ArrayLike, decay: ArrayLike) -> Floats:
    r"""Intensity of a Hawkes process in discrete time, with an exponential kernel.

    .. math:: \lambda_k(t) = \ln\left(1 + \exp\left(\mu_k(t) + \sum_{j < t} \alpha_k(j) e^{-\delta_k
    (t - j)}\right)
        \right)

    ``base`` (shaped (dialogues, turns, kinds)): mu: what the turn itself gives. ``jumps`` (shaped
    (dialogues, turns, kinds)): alpha: what a turn adds to all later ones; 0 for turns that are not
    there. ``decay`` (shaped (kinds,)): delta, per turn; from 0. Returns: Shaped (dialogues, turns,
    kinds), above 0.

    Hawkes (1971); Ye et al. (2023) for the satisfaction of users over turns. With one jump a turn,
    the sum follows from that of the turn before: S(t) = exp(-delta) (S(t - 1) + alpha(t - 1)).
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

    ``features``: Turns texts of exchanges into vectors (a scikit-learn pipeline). ``base``,
    ``jump`` (shaped (width + 1, 2)): Weights of what an exchange gives and of what it adds to later
    ones; the last row is the intercept. The kinds are satisfied and dissatisfied.
    """

    features: Any
    base: Floats
    jump: Floats
    decay: Floats

    def probability(self, samples: pd.DataFrame) -> Floats:
        """Probability of dissatisfaction at the end of each sample: its share of the intensity of both kinds."""
        vectors, there = _exchange_vectors(self.features, samples)
        jumps = np.logaddexp(0.0, vectors @ self.jump) * there[..., np.newaxis]
        last = hawkes_intensity(vectors @ self.base, jumps, self.decay)[:, -1]
        return np.asarray(last[:, 1] / last.sum(axis=1))


def _exchange_texts(samples: pd.DataFrame) -> list[str]:
    exchanges = samples[["users", "systems"]].itertuples(index=False)
    return [f"{user}\n{reply}" for row in exchanges for user, reply in zip(*row, strict=True)]


def _exchange_vectors(features: Any, samples: pd.DataFrame) -> tuple[Floats, Booleans]:
    """Vectors of exchanges with a 1 behind, shaped (samples, turns, width + 1), the last exchange in the last place."""
    lengths = samples["users"].map(len).to_numpy()
    texts, place = np.unique(_exchange_texts(samples), return_inverse=True)
    coded = features.transform(texts)[place]
    there = np.arange(lengths.max()) >= lengths.max() - lengths[:, np.newaxis]
    vectors = np.zeros((*there.shape, coded.shape[1] + 1))
    vectors[there] = np.column_stack([coded, np.ones(len(coded))])
    return vectors, there


def state_features(folder: Path, length: int) -> Any:
    """What turns texts into an encoder's states of the first token, each dimension scaled; each text is read once."""
    model, known = load_model(folder), dict[str, Floats]()

    def states(texts: Sequence[str]) -> Floats:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        for rows, found, _ in token_states(model, new, length=length, progress=folder.name):
            known.update(
                zip([new[row] for row in rows], found[:, 0].astype(np.float64), strict=True)
            )
        return np.stack([known[text] for text in texts])

    return make_pipeline(FunctionTransformer(states), StandardScaler())


def fit_hawkes(
    training: pd.DataFrame,
    *,
    times: int = 1,
    features: Any = None,
    width: int = 128,
    steps: int = 300,
    rate: float = 0.03,
    penalty: float = 1e-4,
    seed: int = 0,
) -> Hawkes:
    """Fit the estimator to training samples, on one thread.

    ``times``: Up-sampling of dissatisfied samples, as a weight. ``features``: turns texts of
    exchanges into vectors (a scikit-learn transformer, such as `state_features`); by default latent
    semantic analysis of TF-IDF weights of words and pairs of words, with ``width`` dimensions.
    ``steps``, ``rate``: Full-batch steps of Adam and their size. ``penalty``: of the squared
    weights.

    In the spirit of Ye et al. (2023), ASAP, which fine-tunes BERT to encode exchanges and has no
    kernel of a given form; here exchanges are bags of words, or states of an encoder that is not
    fine-tuned, jumps are positive and decay exponentially, and the two kinds do not excite each
    other.
    """
    torch = models_package("torch")
    torch.set_num_threads(1)
    if features is None:
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True)
        features = make_pipeline(words, TruncatedSVD(width, random_state=seed))
    features = features.fit(sorted(set(_exchange_texts(training))))
    vectors, there = _exchange_vectors(features, training)
    held = torch.tensor(vectors, dtype=torch.float32)
    mask = torch.tensor(there, dtype=torch.float32).unsqueeze(2)
    truth = torch.tensor(training["dissatisfied"].to_numpy(dtype=np.int64))
    weight = torch.where(truth == 1, float(times), 1.0)
    shape = (vectors.shape[2], 2)
    base, jump, slow = (torch.zeros(size, requires_grad=True) for size in (shape, shape, 2))
    jump.data[-1] = -2.0  # small jumps at first
    back = torch.arange(vectors.shape[1] - 1, -1, -1.0).unsqueeze(
        1
    )  # turns between an exchange and the last
    optimiser = torch.optim.Adam([base, jump, slow], lr=rate)
    softplus = torch.nn.functional.softplus
    for _ in tqdm(range(steps), desc=f"Hawkes x{times}", mininterval=10):
        jumps = softplus(held @ jump) * mask
        excited = (jumps[:, :-1] * torch.exp(-softplus(slow) * back[:-1])).sum(dim=1)
        intensity = softplus(held[:, -1] @ base + excited)
        share = intensity / intensity.sum(dim=1, keepdim=True)
        loss = (
            -(weight * share.gather(1, truth.unsqueeze(1)).squeeze(1).clamp_min(1e-9).log()).sum()
            / weight.sum()
        )
        loss = loss + penalty * (base[:-1].square().sum() + jump[:-1].square().sum())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    numbers = [part.detach().numpy().astype(np.float64) for part in (base, jump, softplus(slow))]
    return Hawkes(features, *numbers)
