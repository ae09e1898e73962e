"""Systems that were run on the script alone: their distribution over orders, predicted from that of other systems.

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
CALIBRATED = "every change of the others, calibrated"
_WITH_OTHERS = "the script, all orders of others"


class Prediction(NamedTuple):
    """Scores that a system could have on a conversation, and the band that is to hold `LEVEL` of its orders."""

    scores: Floats
    low: float
    high: float


def _banded(scores: Floats) -> Prediction:
    low, high = np.quantile(scores, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Prediction(scores, float(low), float(high))


def _pooled(script: float, others: Floats) -> Prediction:
    r"""Every change that an order makes to another system, added to the score of the script.

    .. math:: \hat y_a(\pi) = y_a(\pi_0) + y_b(\pi) - y_b(\pi_0)
    """
    return _banded(np.clip(script + (others - others[0]), 0, 1).ravel())


def widening(every: Mapping[str, Floats], level: float = LEVEL) -> float:
    """By how much a band of pooled changes must be wider, at either end, to hold a share of the orders.

    Conformalised quantile regression (Romano, Patterson and Candes, 2019): each known system is
    left out once, and what its scores lie outside its band (inside: negative) is collected over all
    conversations and orders, each conversation of each system with the same weight. Needs the
    scores of two systems or more, as `Experiment.every`.
    """
    outside, weights = [], []
    for scores in every.values():
        for number in range(scores.shape[1]):
            band = _pooled(scores[0, number], np.delete(scores, number, axis=1))
            outside.append(np.maximum(band.low - scores[:, number], scores[:, number] - band.high))
            weights.append(np.full(len(scores), 1 / len(scores)))
    ascending = np.argsort(found := np.concatenate(outside), kind="stable")
    reached = np.cumsum(np.concatenate(weights)[ascending]) / len(outside)
    wanted = min(1.0, level * (1 + 1 / len(outside)))
    place = min(int(np.searchsorted(reached, wanted - _ROUNDING)), len(found) - 1)
    return float(found[ascending[place]])


def predicted(script: float, others: Floats, wider: float) -> dict[str, Prediction]:
    """Predictions of ours for a conversation, from the score of the script and all scores of others, by order."""
    pooled = _pooled(script, others)
    changes = others - others[0]
    return {
        "the script alone": _banded(np.array([script])),
        "mean change of the others": _banded(np.clip(script + changes.mean(axis=1), 0, 1)),
        "every change of the others": pooled,
        CALIBRATED: Prediction(
            pooled.scores, max(0.0, pooled.low - wider), min(1.0, pooled.high + wider)
        ),
    }


def _errors(prediction: Prediction, actual: Floats) -> dict[str, float]:
    inside = (actual >= prediction.low - _ROUNDING) & (actual <= prediction.high + _ROUNDING)
    return {
        "mean": float(actual.mean()),
        "predicted": float(prediction.scores.mean()),
        "mean error": float(abs(prediction.scores.mean() - actual.mean())),
        "sd error": float(abs(prediction.scores.std() - actual.std())),
        "distance": float(stats.wasserstein_distance(actual, prediction.scores)),
        "coverage": float(inside.mean()),
        "width": prediction.high - prediction.low,
    }


def unseen_systems(
    every: Mapping[str, Floats],
    systems: Sequence[str],
    known: Mapping[str, Observed],
    rng: np.random.Generator,
    *,
    draws: int = 1000,
) -> pd.DataFrame:
    """How far predictions of a system's scores over orders are off, each system left out once, by conversation.

    ``every``: of `Experiment.every`, systems in the order of ``systems``; the script has rank 0.
    ``known``: what the bootstraps know (`observed`). Returns columns prediction, needs, run, topic,
    mean (exact), predicted, mean error and sd error (absolute), distance (Wasserstein's), coverage
    (share of all orders within the predicted band), width.
    """
    rows = []
    for number, run in enumerate(systems):
        wider = widening(
            {topic: np.delete(scores, number, axis=1) for topic, scores in every.items()}
        )
        for topic, scores in every.items():
            actual = scores[:, number]
            found = bootstrapped(known[topic], number, draws, rng)
            predictions = {name: _banded(values) for name, values in found.items()}
            predictions |= predicted(actual[0], np.delete(scores, number, axis=1), wider)
            for name, prediction in predictions.items():
                needs = NEEDS.get(
                    name, "the script" if name == "the script alone" else _WITH_OTHERS
                )
                named = {"prediction": name, "needs": needs, "run": run, "topic": topic}
                rows.append({**named, **_errors(prediction, actual)})
    return pd.DataFrame(rows)


def predicted_means(
    scripts: Mapping[str, Mapping[str, float]],
    every: Mapping[str, Floats],
    fixed: Sequence[str] = (),
) -> pd.DataFrame:
    """Mean over all orders of systems that were run on the script alone, and where `LEVEL` of the orders are to lie.

    ``scripts``: score of each conversation in the order of the script, by run. ``every``: of
    `Experiment.every`, of the known systems. ``fixed``: runs that are the same in every order.
    Returns columns run, script, mean, low, high (of the mean: by no more was the prediction of any
    of the K known systems off, each left out once; a new one is within in K cases of K + 1), band
    low, band high (means over conversations).
    """

    def moved(run: Mapping[str, float], others: Mapping[str, Floats]) -> float:
        return float(
            np.mean([_pooled(run[topic], scores).scores.mean() for topic, scores in others.items()])
        )

    errors = []
    for number in range(next(iter(every.values())).shape[1]):
        others = {topic: np.delete(scores, number, axis=1) for topic, scores in every.items()}
        found = moved({topic: scores[0, number] for topic, scores in every.items()}, others)
        errors.append(abs(found - np.mean([scores[:, number].mean() for scores in every.values()])))
    wider, reach = widening(every), max(errors)
    rows = []
    for run, script in scripts.items():
        whole = float(np.mean([script[topic] for topic in every]))
        if run in fixed:
            rows.append((run, *[whole] * 6))
            continue
        bands = [
            predicted(script[topic], scores, wider)[CALIBRATED] for topic, scores in every.items()
        ]
        mean = moved(script, every)
        ends = np.mean([[band.low, band.high] for band in bands], axis=0)
        rows.append((run, whole, mean, mean - reach, mean + reach, *ends))
    return pd.DataFrame(
        rows, columns=["run", "script", "mean", "low", "high", "band low", "band high"]
    )
