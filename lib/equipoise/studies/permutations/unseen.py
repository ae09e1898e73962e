"""Systems that were run on the script alone: their distribution over orders, predicted from that of other systems.

The paper leaves it to future work to estimate it "without actually having the permutations and the models at hand"; its
authors' program tries resampling. Here every prediction is held against the exact distribution over all valid orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats

_BAND = (0.05, 0.95)
_ROUNDING = 1e-12


def _predictions(script: float, others: Floats) -> dict[str, Floats]:
    """Predicted scores over orders, from the score of the script and the scores of other systems, by order."""
    changes = others - others[0]
    return {
        "the script alone": np.array([script]),
        "mean change of the others": np.clip(script + changes.mean(axis=1), 0, 1),
        "every change of the others": np.clip(script + changes, 0, 1).ravel(),
    }


def unseen_systems(every: Mapping[str, Floats], systems: Sequence[str]) -> pd.DataFrame:
    r"""How far predictions of a system's scores over orders are off, each system left out once.

    .. math:: \hat y_a(\pi) = y_a(\pi_0) + y_b(\pi) - y_b(\pi_0)

    with the script :math:`\pi_0` and another system b: all of them pooled, or their mean.

    ``every``: of `Experiment.every`, systems in the order of ``systems``; the script has rank 0. Returns columns
    prediction, run, mean (exact), predicted, mean error, sd error (absolute, means over conversations), distance
    (Wasserstein's), coverage (share of the orders within the predicted 5th to 95th percentile).
    """
    rows = []
    for topic, scores in every.items():
        for number, run in enumerate(systems):
            actual = scores[:, number]
            for name, predicted in _predictions(actual[0], np.delete(scores, number, axis=1)).items():
                low, high = np.quantile(predicted, _BAND)
                found = {"mean": actual.mean(), "predicted": predicted.mean()}
                found["mean error"] = abs(found["predicted"] - found["mean"])
                found["sd error"] = abs(predicted.std() - actual.std())
                found["distance"] = stats.wasserstein_distance(actual, predicted)
                found["coverage"] = ((actual >= low - _ROUNDING) & (actual <= high + _ROUNDING)).mean()
                rows.append({"prediction": name, "run": run, "topic": topic, **found})
    table = pd.DataFrame(rows).drop(columns="topic")
    return table.groupby(["prediction", "run"], sort=False).mean().reset_index()
