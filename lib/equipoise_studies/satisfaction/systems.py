"""Estimators of user satisfaction that are trained: encoders, and dynamics of a Hawkes process.

Each gives samples of `equipoise_studies.satisfaction.dialogues.turn_samples` the probability that
the user is dissatisfied. Only training needs packages of the extra ``models``; intensities are
plain.
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

# --- fine-tuned encoder ---------------------------------------------------------------------------


def up_sampled(dissatisfied: ArrayLike, times: int, rng: np.random.Generator) -> Integers:
    """Rows of a training set in which each dissatisfied sample stands several times, shuffled.

    ``times``: how often a dissatisfied sample stands; 1 leaves the set as it is (thesis section
    3.5.3).
    """
    if times < 1:
        raise ValueError(f"a sample stands at least once, found {times}")
    is_dissatisfied = np.asarray(dissatisfied, dtype=bool)
    repeats = np.where(is_dissatisfied, times, 1)
    return rng.permutation(np.repeat(np.arange(len(is_dissatisfied)), repeats))


def under_sampled(dissatisfied: ArrayLike, rng: np.random.Generator) -> Integers:
    """Rows of as many satisfied samples, drawn at random, as dissatisfied ones (thesis 3.6.2)."""
    is_dissatisfied = np.asarray(dissatisfied, dtype=bool)
    n_smaller = min(is_dissatisfied.sum(), (~is_dissatisfied).sum())
    satisfied = rng.choice(np.flatnonzero(~is_dissatisfied), n_smaller, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(is_dissatisfied), satisfied]))


def fine_tune_encoder(
    folder: Path,
    texts: Sequence[str],
    dissatisfied: Sequence[bool],
    to_label: Sequence[str],
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
    """Fine-tune an encoder with a classification head, and label texts with it.

    ``device``: one thread of the processor, or a card. ``folder``: of the base model. ``texts``:
    Training texts; of a long one the end counts. ``dissatisfied``: Their labels. ``to_label``:
    Texts to label. ``times``: Up-sampling of dissatisfied samples. ``steps``, ``batch``: Steps of
    AdamW and samples in each. ``length``: Tokens kept, from the end. ``rate``, ``checkpoint``: see
    `equipoise_studies.training.descend`. ``precision``: of the states. ``seed``: of the head and of
    the order of the samples. Returns: Shaped (to_label,): probability of dissatisfaction.

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

    def logits(batch_texts: Sequence[str]) -> Any:
        tokens = tokenizer(
            list(batch_texts),
            padding=True,
            truncation=True,
            max_length=length,
            return_tensors="pt",
        )
        with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
            states = network(**tokens.to(device)).last_hidden_state
        return head(states[:, 0].float())

    def loss_of(rows: Integers) -> Any:
        batch_texts = [texts[row] for row in rows]
        return torch.nn.functional.cross_entropy(logits(batch_texts), labels[rows])

    title = f"fine-tuning x{times}"
    descend([network, head], list(order), loss_of, title, rate=rate, checkpoint=checkpoint)

    with torch.inference_mode():
        return _probabilities(torch, logits, to_label, f"labelling x{times}")


def _probabilities(torch: Any, logits: Any, texts: Sequence[str], title: str) -> Floats:
    """Probability of the second class of each text."""
    probabilities = np.empty(len(texts))
    # Texts of like length together, so that little is padded.
    by_length = np.argsort([len(text) for text in texts], kind="stable")
    for start in tqdm(range(0, len(texts), 64), desc=title, mininterval=10):
        rows = by_length[start : start + 64]
        classes = torch.softmax(logits([texts[row] for row in rows]), dim=1)
        probabilities[rows] = classes[:, 1].cpu().numpy()
    return probabilities


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
    base_values = np.asarray(base, dtype=np.float64)
    jump_values = np.asarray(jumps, dtype=np.float64)
    rates = np.asarray(decay, dtype=np.float64)
    shape = base_values.shape
    if len(shape) != 3 or shape != jump_values.shape or rates.shape != shape[2:]:
        raise ValueError(f"shapes {shape}, {jump_values.shape} and {rates.shape} do not fit")
    if (rates < 0).any():
        raise ValueError(f"a decay is at least 0, found {rates.min()}")
    excitement = np.zeros(shape)
    remainder = np.exp(-rates)
    for turn in range(1, shape[1]):
        excitement[:, turn] = remainder * (excitement[:, turn - 1] + jump_values[:, turn - 1])
    return np.logaddexp(0.0, base_values + excitement)


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
        """Probability of dissatisfaction at the end of each sample: its share of the intensity."""
        vectors, is_exchange = _exchange_vectors(self.features, samples)
        jumps = np.logaddexp(0.0, vectors @ self.jump) * is_exchange[..., np.newaxis]
        intensity = hawkes_intensity(vectors @ self.base, jumps, self.decay)[:, -1]
        return np.asarray(intensity[:, 1] / intensity.sum(axis=1))


def _exchange_texts(samples: pd.DataFrame) -> list[str]:
    texts = []
    for users, systems in zip(samples["users"], samples["systems"], strict=True):
        for user, reply in zip(users, systems, strict=True):
            texts.append(f"{user}\n{reply}")
    return texts


def _exchange_vectors(features: Any, samples: pd.DataFrame) -> tuple[Floats, Booleans]:
    """Vectors of exchanges, and where there are any; the last exchange has the last place.

    Shaped (samples, turns, width + 1), with a 1 behind each vector, and (samples, turns).
    """
    lengths = samples["users"].map(len).to_numpy()
    texts, place = np.unique(_exchange_texts(samples), return_inverse=True)
    text_vectors = features.transform(texts)[place]
    with_intercept = np.column_stack([text_vectors, np.ones(len(text_vectors))])
    is_exchange = np.arange(lengths.max()) >= lengths.max() - lengths[:, np.newaxis]
    vectors = np.zeros((*is_exchange.shape, with_intercept.shape[1]))
    vectors[is_exchange] = with_intercept
    return vectors, is_exchange


def state_features(folder: Path, length: int) -> Any:
    """What turns texts into an encoder's states of the first token, each dimension scaled."""
    model = load_model(folder)
    state_by_text = dict[str, Floats]()

    def states(texts: Sequence[str]) -> Floats:
        # Each text is read once, though many samples hold it.
        new_texts = [text for text in dict.fromkeys(texts) if text not in state_by_text]
        batches = token_states(model, new_texts, length=length, progress=folder.name)
        for rows, batch_states, _ in batches:
            for row, state in zip(rows, batch_states[:, 0], strict=True):
                state_by_text[new_texts[row]] = state.astype(np.float64)
        return np.stack([state_by_text[text] for text in texts])

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
    exchange_vectors, is_exchange = _exchange_vectors(features, training)
    vectors = torch.tensor(exchange_vectors, dtype=torch.float32)
    mask = torch.tensor(is_exchange, dtype=torch.float32).unsqueeze(2)
    labels = torch.tensor(training["dissatisfied"].to_numpy(dtype=np.int64))
    weights = torch.where(labels == 1, float(times), 1.0)

    parameters = _fitted_parameters(
        torch,
        vectors,
        mask,
        labels,
        weights,
        steps=steps,
        rate=rate,
        penalty=penalty,
        title=f"Hawkes x{times}",
    )
    return Hawkes(features, *parameters)


def _fitted_parameters(
    torch: Any,
    vectors: Any,
    mask: Any,
    labels: Any,
    weights: Any,
    *,
    steps: int,
    rate: float,
    penalty: float,
    title: str,
) -> list[Floats]:
    """Base, jump and decay of a `Hawkes` that make the labels likeliest.

    ``vectors`` (shaped (samples, turns, width + 1)), ``mask`` (1 where there is an exchange),
    ``labels`` and ``weights`` (of the samples) are tensors.
    """
    shape = (vectors.shape[2], 2)
    base = torch.zeros(shape, requires_grad=True)
    jump = torch.zeros(shape, requires_grad=True)
    slowness = torch.zeros(2, requires_grad=True)
    jump.data[-1] = -2.0  # small jumps at first
    # Turns between an exchange and the last.
    distance = torch.arange(vectors.shape[1] - 1, -1, -1.0).unsqueeze(1)
    optimiser = torch.optim.Adam([base, jump, slowness], lr=rate)
    softplus = torch.nn.functional.softplus
    for _ in tqdm(range(steps), desc=title, mininterval=10):
        jumps = softplus(vectors @ jump) * mask
        kernel = torch.exp(-softplus(slowness) * distance[:-1])
        excitement = (jumps[:, :-1] * kernel).sum(dim=1)
        intensity = softplus(vectors[:, -1] @ base + excitement)
        shares = intensity / intensity.sum(dim=1, keepdim=True)
        share_of_label = shares.gather(1, labels.unsqueeze(1)).squeeze(1)
        likelihoods = share_of_label.clamp_min(1e-9).log()
        loss = -(weights * likelihoods).sum() / weights.sum()
        # The intercepts are not penalised.
        loss = loss + penalty * (base[:-1].square().sum() + jump[:-1].square().sum())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    fitted = []
    for parameters in (base, jump, softplus(slowness)):
        fitted.append(parameters.detach().numpy().astype(np.float64))
    return fitted
