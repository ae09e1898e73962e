"""Systems that were run on the script alone: their scores over orders, predicted from others.

The paper leaves it to future work to estimate it "without actually having the permutations and the
models at hand"; its authors' program tries five bootstraps. Here every prediction is held against
the exact distribution over all orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats
from equipoise_studies.permutations.bootstraps import NEEDS, Observed, bootstrapped

LEVEL = 0.9  # share of the orders that a band is to hold
_ROUNDING = 1e-12
_SCRIPT_ALONE = "the script alone"
CALIBRATED = "every change of the others, calibrated"


class Prediction(NamedTuple):
    """Scores that a system could have on a conversation, and the band of `LEVEL` of its orders."""

    scores: Floats
    low: float
    high: float


def _with_band(scores: Floats) -> Prediction:
    low, high = np.quantile(scores, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Prediction(scores, float(low), float(high))


def _pooled_changes(script: float, others: Floats) -> Prediction:
    r"""Every change that an order makes to another system, added to the score of the script.

    .. math:: \hat y_a(\pi) = y_a(\pi_0) + y_b(\pi) - y_b(\pi_0)
    """
    scores = script + (others - others[0])
    return _with_band(np.clip(scores, 0, 1).ravel())


def _without(scores_by_topic: Mapping[str, Floats], system: int) -> dict[str, Floats]:
    """Scores by topic of the other systems."""
    return {topic: np.delete(scores, system, axis=1) for topic, scores in scores_by_topic.items()}


def widening(scores_by_topic: Mapping[str, Floats], level: float = LEVEL) -> float:
    """By how much a band of pooled changes must be wider, at either end, to hold a share of orders.

    Conformalised quantile regression (Romano, Patterson and Candes, 2019): each known system is
    left out once, and what its scores lie outside its band (inside: negative) is collected over all
    conversations and orders, each conversation of each system with the same weight. Needs the
    scores of two systems or more, as `Experiment.every`.
    """
    distances = []
    weights = []
    for scores in scores_by_topic.values():
        orders, systems = scores.shape
        for system in range(systems):
            band = _pooled_changes(scores[0, system], np.delete(scores, system, axis=1))
            below, above = band.low - scores[:, system], scores[:, system] - band.high
            distances.append(np.maximum(below, above))
            weights.append(np.full(orders, 1 / orders))
    cases = len(distances)
    distance = np.concatenate(distances)
    ascending = np.argsort(distance, kind="stable")
    share_within = np.cumsum(np.concatenate(weights)[ascending]) / cases
    # A further case is as likely to lie in each gap between those known, hence one more.
    share = min(1.0, level * (1 + 1 / cases))
    place = int(np.searchsorted(share_within, share - _ROUNDING))
    return float(distance[ascending[min(place, len(distance) - 1)]])


def predicted(script: float, others: Floats, wider: float) -> dict[str, Prediction]:
    """Our predictions for a conversation, by name.

    From the score of the script, all scores of the others, by order, and the `widening`.
    """
    mean_change = (others - others[0]).mean(axis=1)
    pooled = _pooled_changes(script, others)
    low, high = max(0.0, pooled.low - wider), min(1.0, pooled.high + wider)
    return {
        _SCRIPT_ALONE: _with_band(np.array([script])),
        "mean change of the others": _with_band(np.clip(script + mean_change, 0, 1)),
        "every change of the others": pooled,
        CALIBRATED: Prediction(pooled.scores, low, high),
    }


def _needs(prediction: str) -> str:
    """What a prediction needs to be known."""
    if prediction == _SCRIPT_ALONE:
        return "the script"
    return NEEDS.get(prediction, "the script, all orders of others")


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


def unseen_systems(
    scores_by_topic: Mapping[str, Floats],
    systems: Sequence[str],
    observations: Mapping[str, Observed],
    rng: np.random.Generator,
    *,
    draws: int = 1000,
) -> pd.DataFrame:
    """How far predictions of a system's scores are off, each system left out once, by conversation.

    ``scores_by_topic``: of `Experiment.every`, systems in the order of ``systems``; the script has
    rank 0. ``observations``: what the bootstraps know (`observed`). Returns columns prediction,
    needs, run, topic, mean (exact), predicted, mean error and sd error (absolute), distance
    (Wasserstein's), coverage (share of all orders within the predicted band), width.
    """
    rows = []
    for system, run in enumerate(systems):
        others_by_topic = _without(scores_by_topic, system)
        wider = widening(others_by_topic)
        for topic, scores in scores_by_topic.items():
            actual = scores[:, system]
            predictions = {}
            bootstraps = bootstrapped(observations[topic], system, draws, rng)
            for name, drawn_scores in bootstraps.items():
                predictions[name] = _with_band(drawn_scores)
            predictions |= predicted(actual[0], others_by_topic[topic], wider)
            for name, prediction in predictions.items():
                row = {"prediction": name, "needs": _needs(name), "run": run, "topic": topic}
                rows.append(row | _errors(prediction, actual))
    return pd.DataFrame(rows)


def predicted_means(
    scripts: Mapping[str, Mapping[str, float]],
    scores_by_topic: Mapping[str, Floats],
    fixed: Sequence[str] = (),
) -> pd.DataFrame:
    """Mean over all orders of systems that were run on the script alone, with a band of orders.

    ``scripts``: score of each conversation in the order of the script, by run.
    ``scores_by_topic``: of `Experiment.every`, of the known systems. ``fixed``: runs that are the
    same in every order. Returns columns run, script, mean, low, high (of the mean: by no more was
    the prediction of any of the K known systems off, each left out once; a new one is within in K
    cases of K + 1), band low, band high (means over conversations; `LEVEL` of the orders are to lie
    between).
    """
    wider = widening(scores_by_topic)
    largest_error = _largest_error(scores_by_topic)
    rows = []
    for run, script in scripts.items():
        script_mean = float(np.mean([script[topic] for topic in scores_by_topic]))
        if run in fixed:
            rows.append((run, *[script_mean] * 6))
            continue
        mean = _predicted_mean(script, scores_by_topic)
        bands = []
        for topic, scores in scores_by_topic.items():
            band = predicted(script[topic], scores, wider)[CALIBRATED]
            bands.append([band.low, band.high])
        band_ends = np.mean(bands, axis=0)
        rows.append(
            (run, script_mean, mean, mean - largest_error, mean + largest_error, *band_ends)
        )
    columns = ["run", "script", "mean", "low", "high", "band low", "band high"]
    return pd.DataFrame(rows, columns=columns)


def _predicted_mean(script: Mapping[str, float], others: Mapping[str, Floats]) -> float:
    """Mean over conversations of the script's score with every change of the others."""
    means = []
    for topic, scores in others.items():
        means.append(_pooled_changes(script[topic], scores).scores.mean())
    return float(np.mean(means))


def _largest_error(scores_by_topic: Mapping[str, Floats]) -> float:
    """The largest error of a predicted mean, each known system left out once."""
    systems = next(iter(scores_by_topic.values())).shape[1]
    errors = []
    for system in range(systems):
        script = {topic: scores[0, system] for topic, scores in scores_by_topic.items()}
        actual = np.mean([scores[:, system].mean() for scores in scores_by_topic.values()])
        errors.append(abs(_predicted_mean(script, _without(scores_by_topic, system)) - actual))
    return max(errors)
