"""How well satisfaction is estimated: scores of counts, counts behind scores, a chosen threshold.

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
"""Samples of two classes, and how many are labelled correctly, in the order of `binary_scores`."""


def fraction(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient, 0 where the denominator is."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


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
    counts = np.broadcast_arrays(correct_satisfied, satisfied, correct_dissatisfied, dissatisfied)
    correct = np.stack(counts[0::2], axis=-1).astype(np.float64)  # (..., classes)
    size = np.stack(counts[1::2], axis=-1).astype(np.float64)
    if (correct < 0).any() or (correct > size * (1 + 1e-12)).any():
        raise ValueError("correct samples number from 0 to as many as there are")

    # What is wrong of one class was predicted as the other.
    predicted = correct + (size - correct)[..., ::-1]
    accuracy = fraction(correct.sum(axis=-1), size.sum(axis=-1))
    precision = fraction(correct, predicted)
    recall = fraction(correct, size)
    f1 = fraction(2 * correct, size + predicted)
    means = [values.mean(axis=-1) for values in (precision, recall, f1)]
    sensitivity = recall[..., 1]
    return np.stack([accuracy, *means, sensitivity], axis=-1)


def score_predictions(table: pd.DataFrame, keys: Sequence[str] = ("run",)) -> pd.DataFrame:
    """Scores of every estimator on every test set (thesis Table 3.6).

    ``table``: one row for each prediction: the keys, and ``dissatisfied`` and ``predicted``, of
    bool. ``keys``: columns that identify an estimator and a test set. Returns one row for each
    estimator and test set, sorted by the keys: the keys, `COUNTS` and `SCORES`.
    """
    if table.empty or table[["dissatisfied", "predicted"]].isna().to_numpy().any():
        raise ValueError("every sample needs a label and a prediction")
    dissatisfied = table["dissatisfied"].astype(bool)
    correct = dissatisfied == table["predicted"].astype(bool)
    marks = table[list(keys)].copy()
    marks["correct_satisfied"] = correct & ~dissatisfied
    marks["satisfied"] = ~dissatisfied
    marks["correct_dissatisfied"] = correct & dissatisfied
    marks["dissatisfied"] = dissatisfied

    counts = marks.groupby(list(keys), sort=True).sum().astype("int64").reset_index()
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
    false_alarms, hits, thresholds = roc_curve(dissatisfied, scores, drop_intermediate=False)
    # From the lowest threshold up, so that argmax takes the lowest of several.
    gains = np.round(hits - false_alarms, 12)[::-1]
    thresholds = thresholds[::-1]
    best = int(np.argmax(gains))
    return float(thresholds[max(best - 1, 0) : best + 1].mean())


def recovered_counts(
    printed: ArrayLike, satisfied: int, dissatisfied: int, *, half_unit: float = 0.00005
) -> Integers:
    """All numbers of correct samples that give printed scores, as those of thesis Table 3.6.

    ``printed``: Acc, P, R and F1, from 0 to 1. ``satisfied``, ``dissatisfied``: Samples of the test
    set. ``half_unit``: Half a unit of the last printed place. Returns: Shaped (solutions, 2):
    correct satisfied and correct dissatisfied samples; empty where no counts give the scores.
    """
    correct_satisfied = np.arange(satisfied + 1)[:, np.newaxis]
    correct_dissatisfied = np.arange(dissatisfied + 1)[np.newaxis, :]
    scores = binary_scores(correct_satisfied, satisfied, correct_dissatisfied, dissatisfied)
    gaps = np.abs(scores[..., :4] - np.asarray(printed, dtype=np.float64))
    fits = (gaps <= half_unit + 1e-9).all(axis=-1)
    return np.argwhere(fits).astype(np.int64)
