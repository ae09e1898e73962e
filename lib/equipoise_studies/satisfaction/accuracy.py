"""How well user satisfaction is estimated: scores from counts, the counts behind printed scores, a chosen threshold.

Everything rests on four counts: how many samples are satisfied and how many dissatisfied, and of
how many of each the estimator says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.metrics import roc_curve

from equipoise.arrays import Floats, Integers

SCORES = ("Acc", "P", "R", "F1", "sensitivity")
"""Accuracy; precision, recall and F1 as means over the two classes; recall of dissatisfaction."""

COUNTS = ["correct_satisfied", "satisfied", "correct_dissatisfied", "dissatisfied"]
"""Samples of the two classes, and how many of each are labelled correctly, in the order of `binary_scores`."""


def fraction(part: Floats, whole: Floats) -> Floats:
    """Quotient, 0 where the whole is."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def binary_scores(
    correct_satisfied: ArrayLike,
    satisfied: ArrayLike,
    correct_dissatisfied: ArrayLike,
    dissatisfied: ArrayLike,
) -> Floats:
    r"""Scores from counts.

    .. math:: Acc = \frac{c_s + c_d}{n_s + n_d}, \quad P_k = \frac{c_k}{\hat n_k}, \quad R_k =
    \frac{c_k}{n_k}, \quad
        F_k = \frac{2 c_k}{n_k + \hat n_k}, \quad \hat n_s = c_s + n_d - c_d

    The arguments are c and n of the two classes, in samples; fractions are expected counts.
    Returns: Shaped (..., 5): `SCORES`, from 0 to 1. Precision, recall and F1 are means over both
    classes, of which one that is never predicted or never there counts 0; so does the sensitivity
    to dissatisfaction where nobody is dissatisfied, and everything of an empty set.

    thesis section 3.5.2 and Table 3.6 (macro averaging). As scikit-learn with both labels and
    ``zero_division=0``.
    """
    parts = np.broadcast_arrays(correct_satisfied, satisfied, correct_dissatisfied, dissatisfied)
    right, there = (np.stack(parts[first::2], axis=-1).astype(np.float64) for first in range(2))
    if (right < 0).any() or (right > there * (1 + 1e-12)).any():
        raise ValueError("correct samples number from 0 to as many as there are")
    predicted = right + (there - right)[..., ::-1]
    precision, recall, f1 = (
        fraction(right, predicted),
        fraction(right, there),
        fraction(2 * right, there + predicted),
    )
    means = [values.mean(axis=-1) for values in (precision, recall, f1)]
    return np.stack(
        [fraction(right.sum(axis=-1), there.sum(axis=-1)), *means, recall[..., 1]], axis=-1
    )


def score_predictions(table: pd.DataFrame, keys: Sequence[str] = ("run",)) -> pd.DataFrame:
    """Scores of every estimator on every test set (thesis Table 3.6).

    ``table``: one row for each prediction: the keys, and ``dissatisfied`` and ``predicted``, of
    bool. ``keys``: columns that identify an estimator and a test set. Returns one row for each
    estimator and test set, sorted by the keys: the keys, `COUNTS` and `SCORES`.
    """
    if table.empty or table[["dissatisfied", "predicted"]].isna().to_numpy().any():
        raise ValueError("every sample needs a label and a prediction")
    truth = table["dissatisfied"].astype(bool)
    right = truth == table["predicted"].astype(bool)
    marked = table[list(keys)].assign(
        **dict(zip(COUNTS, (right & ~truth, ~truth, right & truth, truth), strict=True))
    )
    counts = marked.groupby(list(keys), sort=True).sum().astype("int64").reset_index()
    scores = binary_scores(*(counts[column] for column in COUNTS))
    return counts.join(pd.DataFrame(scores, columns=list(SCORES)))


def balanced_threshold(dissatisfied: ArrayLike, scores: ArrayLike) -> float:
    """Threshold on the score of dissatisfaction at which balanced accuracy is highest.

    A sample counts as dissatisfied from the threshold on. It lies in the middle between two
    neighbouring scores; of several it is the lowest.

    Balanced accuracy is the macro recall of thesis section 3.5.2: it does not depend on the share
    of dissatisfied samples, so that a threshold chosen for it on one set may serve on another.
    """
    if len(np.unique(dissatisfied)) != 2:
        raise ValueError("samples of both labels are wanted")
    wrong, right, levels = (
        part[::-1] for part in roc_curve(dissatisfied, scores, drop_intermediate=False)
    )
    best = int(np.argmax(np.round(right - wrong, 12)))
    return float(levels[max(best - 1, 0) : best + 1].mean())


def recovered_counts(
    printed: ArrayLike, satisfied: int, dissatisfied: int, *, half_unit: float = 0.00005
) -> Integers:
    """All numbers of correct samples that give printed scores, as those of thesis Table 3.6.

    ``printed``: Acc, P, R and F1, from 0 to 1. ``satisfied``, ``dissatisfied``: Samples of the test
    set. ``half_unit``: Half a unit of the last printed place. Returns: Shaped (solutions, 2):
    correct satisfied and correct dissatisfied samples; empty where no counts give the scores.
    """
    right = np.arange(satisfied + 1)[:, np.newaxis], np.arange(dissatisfied + 1)[np.newaxis, :]
    scores = binary_scores(right[0], satisfied, right[1], dissatisfied)[..., :4]
    fits = (np.abs(scores - np.asarray(printed, dtype=np.float64)) <= half_unit + 1e-9).all(axis=-1)
    return np.argwhere(fits).astype(np.int64)
