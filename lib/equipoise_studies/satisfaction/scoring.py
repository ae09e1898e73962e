"""Scores of satisfaction estimators: from counts, under more dissatisfaction, and over contexts.

All scores follow from four counts: the satisfied and the dissatisfied samples of a test set, and
how many of each an estimator labels correctly. Functions of arrays broadcast over estimators.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from equipoise.arrays import Floats, Integers, ratio
from equipoise_studies.satisfaction.data import COLLECTIONS

SCORES = ("Acc", "P", "R", "F1", "sensitivity")
"""Accuracy, mean precision, recall and F1 of the two classes, and recall of dissatisfaction."""

COUNTS = ["correct_satisfied", "satisfied", "correct_dissatisfied", "dissatisfied"]
"""The four counts, in the order of `binary_scores`."""


# --- scores of counts, and counts of scores -------------------------------------------------------


def binary_scores(
    correct_satisfied: ArrayLike,
    satisfied: ArrayLike,
    correct_dissatisfied: ArrayLike,
    dissatisfied: ArrayLike,
) -> Floats:
    r"""Compute `SCORES` from counts, shaped (..., 5).

    .. math:: Acc = \frac{c_s + c_d}{n_s + n_d}, \quad P_k = \frac{c_k}{\hat n_k}, \quad R_k =
    \frac{c_k}{n_k}, \quad
        F_k = \frac{2 c_k}{n_k + \hat n_k}, \quad \hat n_s = c_s + n_d - c_d

    The arguments are c and n of the two classes; fractions are expected counts. A score without
    denominator is 0, as in scikit-learn with ``zero_division=0``.

    thesis section 3.5.2 and Table 3.6 (macro averages).
    """
    counts = np.broadcast_arrays(correct_satisfied, satisfied, correct_dissatisfied, dissatisfied)
    correct = np.stack(counts[0::2], axis=-1).astype(np.float64)  # shape (..., classes)
    size = np.stack(counts[1::2], axis=-1).astype(np.float64)
    if (correct < 0).any() or (correct > size * (1 + 1e-12)).any():
        raise ValueError("correct samples must be from 0 to the number of samples")

    # Samples of one class that are labelled wrongly are predicted as the other.
    predicted = correct + (size - correct)[..., ::-1]
    accuracy = ratio(correct.sum(axis=-1), size.sum(axis=-1), 0.0)
    recall = ratio(correct, size, 0.0)
    precision = ratio(correct, predicted, 0.0).mean(axis=-1)
    f1 = ratio(2 * correct, size + predicted, 0.0).mean(axis=-1)
    return np.stack([accuracy, precision, recall.mean(axis=-1), f1, recall[..., 1]], axis=-1)


def count_correct(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Count the samples and the correct labels of every estimator and test set.

    ``table`` has one row per prediction: the keys, ``dissatisfied`` and ``predicted`` (bool).
    Returns the keys and `COUNTS`, sorted by the keys.
    """
    correct = table["dissatisfied"] == table["predicted"]
    marks = table[list(keys)].copy()
    marks["correct_satisfied"] = correct & ~table["dissatisfied"]
    marks["satisfied"] = ~table["dissatisfied"]
    marks["correct_dissatisfied"] = correct & table["dissatisfied"]
    marks["dissatisfied"] = table["dissatisfied"]
    return marks.groupby(list(keys), sort=True).sum().astype("int64").reset_index()


def with_scores(counts: pd.DataFrame) -> pd.DataFrame:
    """Add `SCORES` in percent to a table with the columns `COUNTS`."""
    scores = 100 * binary_scores(*(counts[column] for column in COUNTS))
    return counts.join(pd.DataFrame(scores, columns=list(SCORES), index=counts.index))


def recovered_counts(
    published: ArrayLike, satisfied: int, dissatisfied: int, *, half_unit: float = 0.00005
) -> Integers:
    """Find all pairs of counts that give published scores, shaped (solutions, 2).

    ``published`` are Acc, P, R and F1, from 0 to 1, of a test set of the given size; ``half_unit``
    is half a unit of their last digit. A pair is the correct satisfied and dissatisfied samples.
    """
    correct_satisfied = np.arange(satisfied + 1)[:, np.newaxis]
    correct_dissatisfied = np.arange(dissatisfied + 1)[np.newaxis, :]
    scores = binary_scores(correct_satisfied, satisfied, correct_dissatisfied, dissatisfied)
    gaps = np.abs(scores[..., :4] - np.asarray(published, dtype=np.float64))
    fits = (gaps <= half_unit + 1e-9).all(axis=-1)
    return np.argwhere(fits).astype(np.int64)


def underlying_counts(published: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """Recover the counts underlying each row of Main and CF of Table 3.6.

    Where rounding allows no pair of counts, the last digits may have been cut off.

    Parameters
    ----------
    published : DataFrame
        Table 3.6 as text.
    sizes : DataFrame
        Samples of each label (rows) in each test set (columns such as ``MultiWOZ CF``).

    Returns
    -------
    DataFrame
        One row per collection, test set, model and setup, with `COUNTS` and the number of pairs
        of counts that give the published scores, with rounding only and with cut-off digits.
    """
    rows = []
    for name in COLLECTIONS:
        for row in published[published["test data"] != "Mixed"].to_dict("records"):
            n_samples = sizes.loc[["Satisfaction", "Dissatisfaction"], f"{name} {row['test data']}"]
            scores = [float(row[f"{name} {score}"]) / 100 for score in SCORES[:4]]
            rounding = "rounded"
            pairs = rounded = recovered_counts(scores, *n_samples)
            if len(pairs) == 0:
                rounding = "last digit off by one"
                pairs = recovered_counts(scores, *n_samples, half_unit=0.0001)
            run = row["test data"], row["model"], row["setup"]
            rows.append((name, *run, len(rounded), len(pairs), rounding, *pairs[0], *n_samples))
    columns = ["collection", "test data", "model", "setup"]
    columns += ["pairs by rounding", "pairs of counts", "published digits"]
    columns += ["correct_satisfied", "correct_dissatisfied", "satisfied", "dissatisfied"]
    return pd.DataFrame(rows, columns=columns)


# --- shared contexts ------------------------------------------------------------------------------


def jaccard_bounds(
    original: int, main_size: int, counterfactual: int, shared: int
) -> tuple[float, float]:
    """Return the lowest and the highest Jaccard index that numbers of correct samples allow.

    ``original`` of the ``main_size`` samples of Main are correct, and ``counterfactual`` of the
    ``shared`` contexts that have a counterfactual. The thesis does not publish the sets of its
    Table 3.7; only these numbers follow from Table 3.6.
    """
    fewest_within = max(0, original - (main_size - shared))
    # So many of the correct samples of Main may have a counterfactual.
    within = np.arange(fewest_within, min(original, shared) + 1)
    smallest_meet = np.maximum(0, within + counterfactual - shared)
    largest_meet = np.minimum(within, counterfactual)
    with np.errstate(invalid="ignore"):
        lows = smallest_meet / (within + counterfactual - smallest_meet)
        highs = largest_meet / (within + counterfactual - largest_meet)
    return float(np.nanmin(lows)), float(np.nanmax(highs))


def index_bounds(counts: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Bound each published Jaccard index by the counts of each setup (Table 3.7).

    Parameters
    ----------
    counts : DataFrame
        As `underlying_counts` returns it.
    published : DataFrame
        The indices, one row per model, one column per collection.

    Returns
    -------
    DataFrame
        Per collection, model and setup: the least number of contexts that are labelled correctly
        in Main or CF, the lowest, published and highest index, and the distance of the published
        one from this range.
    """
    rows = []
    for (name, model, setup), numbers in counts.groupby(
        ["collection", "model", "setup"], sort=False
    ):
        by_set = numbers.set_index("test data")
        correct = by_set["correct_satisfied"] + by_set["correct_dissatisfied"]
        n = by_set["satisfied"] + by_set["dissatisfied"]
        low, high = jaccard_bounds(correct["Main"], n["Main"], correct["CF"], n["CF"])
        fewest = max(correct["CF"], correct["Main"] - (n["Main"] - n["CF"]))
        index = published.loc[model, name]
        distance = max(low - index, index - high, 0.0)
        rows.append((name, model, setup, fewest, low, index, high, distance))
    columns = ["collection", "model", "setup", "fewest contexts", "lowest", "published"]
    return pd.DataFrame(rows, columns=[*columns, "highest", "distance"])


# --- robustness -----------------------------------------------------------------------------------


def _mixed_sizes(correct: Floats, size: Floats, ratios: ArrayLike) -> tuple[Floats, Floats]:
    """Return the satisfied and the added samples of the test set at each ratio, (..., ratios)."""
    if (correct < 0).any() or (correct > size).any():
        raise ValueError("correct samples must be from 0 to the number of samples")
    shares = np.atleast_1d(np.asarray(ratios, dtype=np.float64))
    satisfied, dissatisfied, extra = (size[..., [place]] for place in range(3))
    least = float((dissatisfied / np.maximum(satisfied + dissatisfied, 1)).max(initial=0.0))
    if (shares < least - 1e-9).any() or (shares > 1).any():
        raise ValueError(f"ratios must be from the share in Main, {least:.4f}, to 1")

    with np.errstate(divide="ignore", invalid="ignore"):
        to_add = np.where(shares < 1, shares * satisfied / (1 - shares), np.inf) - dissatisfied
        all_dissatisfied = dissatisfied + extra
        to_keep = np.where(shares > 0, all_dissatisfied * (1 - shares) / shares, np.inf)
    # Beyond the point where all are added, satisfied samples are left out instead.
    all_added = to_add >= extra
    rounded = np.clip(np.round(np.minimum(to_add, extra)), 0, None)
    added = np.where(all_added, extra, rounded)
    satisfied = np.where(all_added, np.round(np.minimum(to_keep, satisfied)), satisfied)
    return satisfied, added


def robustness_curve(correct: ArrayLike, size: ArrayLike, ratios: ArrayLike) -> Floats:
    r"""Compute scores by share of dissatisfied samples, over all ways to draw the test set.

    The test set is Main with dissatisfied samples of the counterfactual added until they make up
    the ratio; when all of them are in, satisfied samples are left out instead. How many of those
    drawn are correct follows the hypergeometric distribution:

    .. math:: E[f] = \sum_x \frac{\binom{c}{x} \binom{n - c}{m - x}}{\binom{n}{m}} f(x)

    Parameters
    ----------
    correct, size : array, shape (..., 3)
        Correct samples and samples of three sets: satisfied and dissatisfied samples of Main, and
        dissatisfied samples of the counterfactual.
    ratios : array, shape (ratios,)
        Shares of dissatisfied samples, from the share in Main to 1.

    Returns
    -------
    array, shape (..., ratios, 5, 3)
        Expectation, lower and upper end of the interval of 95% of the draws of each of `SCORES`.

    Notes
    -----
    thesis section 3.6.2, Figures 3.4 and 3.5, which draw one test set per ratio. The number of
    samples at a ratio is rounded.
    """
    correct = np.asarray(correct, dtype=np.float64)
    size = np.broadcast_to(np.asarray(size, dtype=np.float64), correct.shape)
    if (correct % 1 != 0).any() or (size % 1 != 0).any():
        raise ValueError("counts must be whole numbers")
    satisfied, added = _mixed_sizes(correct, size, ratios)
    # One more axis, the numbers of correct samples that may be drawn: (..., ratios, support).
    satisfied, added = satisfied[..., np.newaxis], added[..., np.newaxis]
    correct_satisfied, correct_dissatisfied, correct_extra = (
        correct[..., [place], np.newaxis] for place in range(3)
    )
    all_satisfied, dissatisfied, extra = (size[..., [place], np.newaxis] for place in range(3))
    support = np.arange(int(correct[..., [0, 2]].max(initial=0)) + 1)

    # Dissatisfied samples are drawn until all are added, then satisfied ones.
    draws_extra = added < extra
    pool = np.where(draws_extra, extra, all_satisfied)
    correct_in_pool = np.where(draws_extra, correct_extra, correct_satisfied)
    n_drawn = np.where(draws_extra, added, satisfied)
    weights = stats.hypergeom.pmf(support, pool, correct_in_pool, n_drawn)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    possible = weights > 0
    drawn = np.where(possible, support, 0.0)
    scores = binary_scores(
        np.where(draws_extra, correct_satisfied, drawn),
        satisfied,
        correct_dissatisfied + np.where(draws_extra, drawn, correct_extra),
        dissatisfied + added,
    )
    weights, possible = weights[..., np.newaxis], possible[..., np.newaxis]

    # Mean and quantiles over the support.
    order = np.argsort(np.where(possible, scores, np.inf), axis=-2, kind="stable")
    ascending = np.take_along_axis(scores, order, axis=-2)
    cumulated = np.cumsum(np.take_along_axis(weights, order, axis=-2), axis=-2)
    ends = []
    for limit in (0.025, 0.975):
        place = (cumulated >= limit - 1e-12).argmax(axis=-2, keepdims=True)
        ends.append(np.take_along_axis(ascending, place, axis=-2))
    mean = (weights * scores).sum(axis=-2, keepdims=True)
    return np.concatenate([mean, *ends], axis=-2).swapaxes(-1, -2)


def robustness_table(
    counts: pd.DataFrame, keys: Sequence[str], *, step: float = 0.05
) -> pd.DataFrame:
    """Compute the robustness curves of a table of estimators (thesis Figures 3.4 and 3.5).

    Parameters
    ----------
    counts : DataFrame
        The keys, ``world`` (Main or CF, whose dissatisfied samples are added) and `COUNTS`.
    keys : sequence of str
        Columns that identify an estimator.
    step : float
        Step of the share of dissatisfied samples, from the share in Main to 1.

    Returns
    -------
    DataFrame
        The keys, ``measure, ratio, value, low, high``.
    """
    keys = list(keys)
    if not 0 < step <= 1:
        raise ValueError(f"step must be above 0 and at most 1, got {step}")
    correct = _three_sets(counts, keys, "correct_")
    if correct.isna().to_numpy().any():
        raise ValueError("each estimator must have a row of Main and one of CF")
    sizes = _three_sets(counts, keys).to_numpy(dtype=np.float64)
    curves = {}
    for (key, n_correct), size in zip(correct.iterrows(), sizes, strict=True):
        # The share in Main, the multiples of the step between, and 1.
        least = size[1] / (size[0] + size[1])
        multiples = np.arange(1, np.ceil(1 / step)) * step
        between = multiples[(multiples > least + 1e-9) & (multiples < 1 - 1e-9)]
        ratios = np.unique([least, *between, 1.0])
        scores = robustness_curve(n_correct, size, ratios)
        rows = pd.MultiIndex.from_product([ratios, SCORES], names=["ratio", "measure"])
        columns = ["value", "low", "high"]
        curves[key] = pd.DataFrame(scores.reshape(-1, 3), index=rows, columns=columns)
    table = pd.concat(curves, names=keys).reset_index()
    return table[[*keys, "measure", "ratio", "value", "low", "high"]]


def _three_sets(counts: pd.DataFrame, keys: list[str], prefix: str = "") -> pd.DataFrame:
    """Count the satisfied and dissatisfied samples of Main, and the dissatisfied ones of CF."""
    satisfied, dissatisfied = f"{prefix}satisfied", f"{prefix}dissatisfied"
    wide = counts.pivot_table(
        index=keys, columns="world", values=[satisfied, dissatisfied], aggfunc="first"
    )
    return wide.reindex(columns=[(satisfied, "Main"), (dissatisfied, "Main"), (dissatisfied, "CF")])
