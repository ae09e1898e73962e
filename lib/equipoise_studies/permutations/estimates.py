"""Estimates of scores over all permutations, from samples or from other systems.

The paper draws 100 permutations and leaves it to future work to estimate scores "without actually
having the permutations and the models at hand". Here every estimate is compared with the exact
distribution over all valid permutations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats
from equipoise.permutations.scores import ORIGINAL
from equipoise.permutations.structures import ClassStructure, Permutations

LEVEL = 0.9  # share of the permutations that a band must contain
CALIBRATED = "every change of the others, calibrated"
_ROUNDING = 1e-12

# --- samples --------------------------------------------------------------------------------------


def authors_sample(
    structure: ClassStructure, classes: Sequence[str], size: int, rng: np.random.Generator
) -> Permutations:
    """Draw permutations as the authors' public program does, which is not uniform.

    It picks the next block among all available ones. Blocks of FT utterances become available only
    after the first utterance, which the program then moves to the front. So FT utterances tend to
    come late. ``classes``: by utterance, in the original order.
    """
    heads = np.array([block[0] for block in structure.blocks])
    is_first_topic = np.array([classes[head] == "FT" for head in heads])
    waiting = np.ones((size, len(heads)), dtype=bool)
    step_of_block = np.empty((size, len(heads)))
    rows = np.arange(size)
    for step in range(len(heads)):
        is_available = waiting & ~(is_first_topic & waiting[:, :1])
        chosen = (rng.random(waiting.shape) * is_available).argmax(axis=1)
        waiting[rows, chosen] = False
        step_of_block[rows, chosen] = step
    step_of_block[:, 0] = -1.0
    within_block = np.where(structure.is_head, -1.0, rng.random((size, structure.size)))
    # Keys of a block are less than two apart: from −1 for its head to below 1.
    return np.argsort(2 * step_of_block[:, structure.block] + within_block, axis=1)


def _standard_errors(table: pd.DataFrame, n_drawn: pd.Series, keys: Sequence[str]) -> pd.Series:
    r"""Compute standard errors of means over conversations with some permutations drawn of each.

    .. math:: SE = \frac{1}{C} \sqrt{\sum_c \frac{\sigma_c^2}{m_c} \cdot \frac{N_c - m_c}{N_c - 1}}
    """
    n_undrawn = table["count"] - n_drawn
    share_undrawn = (n_undrawn / (table["count"] - 1).clip(lower=1)).clip(lower=0)
    variance = table["sd"] ** 2 / n_drawn * share_undrawn
    groups = variance.groupby([table[key] for key in keys], sort=False)
    return (np.sqrt(groups.sum()) / groups.size()).rename("standard error")


def standard_errors(exact: pd.DataFrame, sizes: Sequence[int]) -> pd.DataFrame:
    """Compute the standard error of a mean by the number of permutations per conversation.

    ``exact``: columns run, topic, count (of all valid permutations), sd. Returns columns run,
    permutations, standard error.
    """
    table = exact.merge(pd.DataFrame({"permutations": sorted(set(sizes))}), how="cross")
    n_drawn = table["permutations"].clip(upper=table["count"])
    return _standard_errors(table, n_drawn, ["run", "permutations"]).reset_index()


def sampling_error(exact: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Compare each system's values over sampled permutations with the exact ones over all.

    ``exact``: of `Experiment.exact`. ``scores``: the sampled permutations; the original order does
    not count as drawn. Returns columns run, mean, sampled mean, error, standard error, minimum,
    sampled minimum, maximum, sampled maximum: means over conversations; error is sampled minus
    exact.
    """
    drawn = scores[scores["permutation"] != ORIGINAL]
    by_topic = drawn.groupby(["run", "topic"], sort=False)["value"]
    sampled = by_topic.agg(["size", "mean", "min", "max"]).reset_index()
    sampled.columns = [
        "run",
        "topic",
        "drawn",
        "sampled mean",
        "sampled minimum",
        "sampled maximum",
    ]
    joined = sampled.merge(exact, on=["run", "topic"])
    means = joined.groupby("run", sort=False).mean(numeric_only=True)
    # What remains below the twelfth digit is rounding.
    means["error"] = (means["sampled mean"] - means["mean"]).round(12)
    means["standard error"] = _standard_errors(joined, joined["drawn"], ["run"])
    columns = ["run", "mean", "sampled mean", "error", "standard error"]
    columns += ["minimum", "sampled minimum", "maximum", "sampled maximum"]
    return means.reset_index()[columns]


# --- systems that were run in the original order only ---------------------------------------------


class Prediction(NamedTuple):
    """Predicted scores of a system on a conversation, and the band with `LEVEL` of them."""

    scores: Floats
    low: float
    high: float


def _with_band(scores: Floats) -> Prediction:
    low, high = np.quantile(scores, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Prediction(scores, float(low), float(high))


def _pooled_changes(original: float, others: Floats) -> Prediction:
    r"""Add every change of another system by a permutation to the score in the original order.

    .. math:: \hat y_a(\pi) = y_a(\pi_0) + y_b(\pi) - y_b(\pi_0)
    """
    scores = original + (others - others[0])
    return _with_band(np.clip(scores, 0, 1).ravel())


def _without(scores_by_topic: Mapping[str, Floats], system: int) -> dict[str, Floats]:
    """Return the scores of the other systems by topic."""
    return {topic: np.delete(scores, system, axis=1) for topic, scores in scores_by_topic.items()}


def widening(scores_by_topic: Mapping[str, Floats]) -> float:
    """Find how much wider a band of pooled changes must be, at either end.

    Conformalised quantile regression (Romano, Patterson and Candes, 2019): each known system is
    left out once. The distances of its scores from its band (inside: negative) are collected over
    all conversations and permutations. Each conversation of each system has the same weight.
    """
    distances = []
    weights = []
    for scores in scores_by_topic.values():
        n_permutations, systems = scores.shape
        for system in range(systems):
            band = _pooled_changes(scores[0, system], np.delete(scores, system, axis=1))
            below, above = band.low - scores[:, system], scores[:, system] - band.high
            distances.append(np.maximum(below, above))
            weights.append(np.full(n_permutations, 1 / n_permutations))
    cases = len(distances)
    distance = np.concatenate(distances)
    ascending = np.argsort(distance, kind="stable")
    share_within = np.cumsum(np.concatenate(weights)[ascending]) / cases
    # A further case is as likely to lie in each gap between the known ones, hence one more.
    share = min(1.0, LEVEL * (1 + 1 / cases))
    place = int(np.searchsorted(share_within, share - _ROUNDING))
    return float(distance[ascending[min(place, len(distance) - 1)]])


def _predicted(original: float, others: Floats, wider: float) -> dict[str, Prediction]:
    """Predict the scores of a conversation from other systems, by name of the prediction."""
    mean_change = (others - others[0]).mean(axis=1)
    pooled = _pooled_changes(original, others)
    low, high = max(0.0, pooled.low - wider), min(1.0, pooled.high + wider)
    return {
        "the original order alone": _with_band(np.array([original])),
        "mean change of the others": _with_band(np.clip(original + mean_change, 0, 1)),
        "every change of the others": pooled,
        CALIBRATED: Prediction(pooled.scores, low, high),
    }


def unseen_systems(scores_by_topic: Mapping[str, Floats], systems: Sequence[str]) -> pd.DataFrame:
    """Compute the errors of predicted scores, each system left out once, by conversation.

    ``scores_by_topic``: of `Experiment.scores_of_all`, systems in the order of ``systems``. Returns
    columns prediction, run, topic, mean (exact), predicted, mean error and sd error (absolute),
    distance (Wasserstein's), coverage (share of all permutations within the predicted band), width.
    """
    rows = []
    for place, run in enumerate(systems):
        wider = widening(_without(scores_by_topic, place))
        for topic, scores in scores_by_topic.items():
            others = np.delete(scores, place, axis=1)
            predictions = _predicted(scores[0, place], others, wider)
            for name, prediction in predictions.items():
                row = {"prediction": name, "run": run, "topic": topic}
                rows.append(row | _errors(prediction, scores[:, place]))
    return pd.DataFrame(rows)


def _errors(prediction: Prediction, actual: Floats) -> dict[str, float]:
    above_low = actual >= prediction.low - _ROUNDING
    below_high = actual <= prediction.high + _ROUNDING
    return {
        "mean": float(actual.mean()),
        "predicted": float(prediction.scores.mean()),
        "mean error": float(abs(prediction.scores.mean() - actual.mean())),
        "sd error": float(abs(prediction.scores.std() - actual.std())),
        "distance": float(stats.wasserstein_distance(actual, prediction.scores)),
        "coverage": float((above_low & below_high).mean()),
        "width": prediction.high - prediction.low,
    }
