"""Estimation of user satisfaction when users are not satisfied: scores, robustness, agreement, shared contexts.

Everything rests on four counts: how many samples are satisfied and how many dissatisfied, and of how many of each the
estimator says so. All functions broadcast over estimators, test sets and draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from equipoise.arrays import Floats, Integers

_FOUR = ["correct_satisfied", "satisfied", "correct_dissatisfied", "dissatisfied"]

MEASURES = ("Acc", "P", "R", "F1", "sensitivity")
"""Accuracy; precision, recall and F1 as means over the two classes; recall of dissatisfaction."""


def binary_scores(
    correct_satisfied: ArrayLike, satisfied: ArrayLike, correct_dissatisfied: ArrayLike, dissatisfied: ArrayLike
) -> Floats:
    r"""Scores from counts.

    .. math:: Acc = \frac{c_s + c_d}{n_s + n_d}, \quad P_k = \frac{c_k}{\hat n_k}, \quad R_k = \frac{c_k}{n_k}, \quad
        F_k = \frac{2 c_k}{n_k + \hat n_k}, \quad \hat n_s = c_s + n_d - c_d

    ``correct_satisfied``, ``satisfied``, ``correct_dissatisfied``, ``dissatisfied``: c and n of the two classes, in
    samples; fractions are expected counts. Returns ndarray, shaped (..., 5): `MEASURES`, from 0 to 1. Precision,
    recall and F1 are means over both classes, of which one that is never predicted or never there counts 0; so does
    the sensitivity to dissatisfaction where nobody is dissatisfied, and everything of an empty set.

    thesis section 3.5.2 and Table 3.6 (macro averaging). As scikit-learn with both labels and ``zero_division=0``.
    """
    parts = np.broadcast_arrays(
        *(
            np.asarray(values, dtype=np.float64)
            for values in (correct_satisfied, satisfied, correct_dissatisfied, dissatisfied)
        )
    )
    right = np.stack([parts[0], parts[2]], axis=-1)
    there = np.stack([parts[1], parts[3]], axis=-1)
    if (right < 0).any() or (right > there * (1 + 1e-12)).any():
        raise ValueError("correct samples number from 0 to as many as there are")
    predicted = right + (there - right)[..., ::-1]
    total = there.sum(axis=-1)

    def over(top: Floats, bottom: Floats) -> Floats:
        return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)

    precision, recall, f1 = over(right, predicted), over(right, there), over(2 * right, there + predicted)
    columns = [
        over(right.sum(axis=-1), total),
        precision.mean(axis=-1),
        recall.mean(axis=-1),
        f1.mean(axis=-1),
        recall[..., 1],
    ]
    return np.stack(columns, axis=-1)


def correct_counts(dissatisfied: ArrayLike, predicted: ArrayLike) -> Integers:
    """Counts that `binary_scores` takes.

    ``dissatisfied``, ``predicted`` (shaped (..., samples)): whether the user is dissatisfied, and whether the
    estimator says so. Returns ndarray of int, shaped (..., 4): Correct satisfied, satisfied, correct dissatisfied,
    dissatisfied.
    """
    truth, said = np.broadcast_arrays(np.asarray(dissatisfied, dtype=bool), np.asarray(predicted, dtype=bool))
    columns = [~truth & ~said, ~truth, truth & said, truth]
    return np.stack([column.sum(axis=-1) for column in columns], axis=-1).astype(np.int64)


def score_predictions(table: pd.DataFrame, keys: Sequence[str] = ("run",)) -> pd.DataFrame:
    """Scores of every estimator on every test set.

    ``table``: one row for each prediction: the keys, and ``dissatisfied`` and ``predicted``, of bool. ``keys``:
    Columns that identify an estimator and a test set. Returns: One row for each estimator and test set, sorted by
    the keys: the keys, satisfied and dissatisfied (samples), correct_satisfied, correct_dissatisfied, and
    `MEASURES`.

    thesis, Table 3.6.
    """
    if table.empty or table[["dissatisfied", "predicted"]].isna().to_numpy().any():
        raise ValueError("every sample needs a label and a prediction")
    truth = table["dissatisfied"].astype(bool)
    right = truth == table["predicted"].astype(bool)
    marked = table[list(keys)].assign(
        correct_satisfied=right & ~truth, satisfied=~truth, correct_dissatisfied=right & truth, dissatisfied=truth
    )
    counts = marked.groupby(list(keys), sort=True).sum().astype("int64").reset_index()
    scores = binary_scores(*(counts[column].to_numpy() for column in _FOUR))
    return counts.join(pd.DataFrame(scores, columns=list(MEASURES)))


# --- robustness ---------------------------------------------------------------------------------------------------


def _composition(size: Floats, ratios: Floats) -> tuple[Floats, Floats]:
    """Satisfied samples, and dissatisfied ones of the counterfactual, at each ratio; shaped (..., ratios)."""
    satisfied, own, extra = (size[..., [part]] for part in range(3))
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.where(ratios < 1, ratios * satisfied / np.maximum(1 - ratios, 1e-300), np.inf) - own
        rest = np.where(ratios > 0, (own + extra) * (1 - ratios) / np.maximum(ratios, 1e-300), np.inf)
    full = wanted >= extra
    added = np.where(full, extra, np.clip(np.round(np.minimum(wanted, extra)), 0, None))
    kept = np.where(full, np.clip(np.round(np.minimum(rest, satisfied)), 0, satisfied), satisfied)
    return kept, added


def robustness_curve(
    correct: ArrayLike,
    size: ArrayLike,
    ratios: ArrayLike,
    *,
    method: Literal["exact", "expected counts"] = "exact",
    level: float = 0.95,
) -> Floats:
    r"""Scores over the share of dissatisfied samples, over all ways to draw the test set.

    The test set is Main with dissatisfied samples of the counterfactual added until they make up the ratio; when all
    of them are in, satisfied samples are left out instead. How many of those drawn are correct follows the
    hypergeometric distribution:

    .. math:: E[f] = \sum_x \frac{\binom{c}{x} \binom{n - c}{m - x}}{\binom{n}{m}} f(x)

    ``correct``, ``size`` (shaped (..., 3)): how many are labelled correctly, and how many there are, of: satisfied
    samples of Main, dissatisfied samples of Main, dissatisfied samples of the counterfactual. ``ratios`` (shaped
    (ratios,)): Shares of dissatisfied samples; from that of Main to 1. Main's own share gives the scores of Main, 1
    those of all dissatisfied samples. ``method``: Sum over the distribution, or put the expected number of correct
    samples into the scores, which takes fractions: for counts scaled up from a part of the samples. The two differ
    where a score is not linear in the counts. ``level``: share of the draws that the interval holds. Returns
    ndarray, shaped (..., ratios, 5, 3): Expectation, lower and upper end of the interval over draws, of each of
    `MEASURES`; the ends are the expectation itself for "expected counts".

    thesis section 3.6.2 and Figures 3.4 and 3.5, which draw one test set for each ratio, in steps of 0.05. At a ratio
    the number of samples is rounded to a whole one.
    """
    right, there = np.broadcast_arrays(np.asarray(correct, dtype=np.float64), np.asarray(size, dtype=np.float64))
    shares = np.atleast_1d(np.asarray(ratios, dtype=np.float64))
    if right.shape[-1] != 3 or (right < 0).any() or (right > there).any():
        raise ValueError("three counts are wanted, correct ones from 0 to as many as there are")
    least = float((there[..., 1] / np.maximum(there[..., :2].sum(axis=-1), 1)).max(initial=0.0))
    if (shares < least - 1e-9).any() or (shares > 1).any():
        raise ValueError(f"ratios lie between Main's share of dissatisfied samples, {least:.4f}, and 1")
    kept, added = _composition(there, shares)
    first, own, extra = (right[..., [part]] for part in range(3))
    rate = [
        np.divide(right[..., [part]], there[..., [part]], out=np.zeros_like(first), where=there[..., [part]] > 0)
        for part in (0, 2)
    ]
    if method == "expected counts":
        scores = binary_scores(rate[0] * kept, kept, own + rate[1] * added, there[..., [1]] + added)
        return np.stack([scores] * 3, axis=-1)
    if method != "exact":
        raise ValueError(f"method is 'exact' or 'expected counts', found {method!r}")
    if (right % 1 != 0).any() or (there % 1 != 0).any():
        raise ValueError("the exact distribution needs whole counts; method 'expected counts' takes fractions")
    drawing = added < there[..., [2]]  # else it is the satisfied samples that are drawn
    pool = np.where(drawing, there[..., [2]], there[..., [0]])
    good = np.where(drawing, extra, first)
    drawn = np.where(drawing, added, kept)
    support = np.arange(int(max(right[..., 0].max(initial=0), right[..., 2].max(initial=0))) + 1)
    weights = stats.hypergeom.pmf(
        support, pool[..., np.newaxis], good[..., np.newaxis], drawn[..., np.newaxis]
    )  # (..., ratios, support)
    possible = weights > 0
    x = np.where(possible, support, 0.0)
    satisfied_right = np.where(drawing[..., np.newaxis], first[..., np.newaxis], x)
    dissatisfied_right = own[..., np.newaxis] + np.where(drawing[..., np.newaxis], x, extra[..., np.newaxis])
    total = (there[..., [1]] + added)[..., np.newaxis]
    # where a value of x cannot occur, counts are put that fit; their weight is 0
    satisfied_right = np.where(possible, satisfied_right, 0.0)
    dissatisfied_right = np.where(possible, dissatisfied_right, 0.0)
    scores = binary_scores(satisfied_right, kept[..., np.newaxis], dissatisfied_right, total)
    mean = (weights[..., np.newaxis] * scores).sum(axis=-2) / weights.sum(axis=-1)[..., np.newaxis]
    order = np.argsort(np.where(possible[..., np.newaxis], scores, np.inf), axis=-2, kind="stable")
    sorted_scores = np.take_along_axis(scores, order, axis=-2)
    share = np.take_along_axis(np.broadcast_to(weights[..., np.newaxis], scores.shape), order, axis=-2)
    cumulated = np.cumsum(share, axis=-2) / weights.sum(axis=-1)[..., np.newaxis, np.newaxis]
    ends = []
    for limit in ((1 - level) / 2, (1 + level) / 2):
        place = (cumulated >= limit - 1e-12).argmax(axis=-2)[..., np.newaxis, :]
        ends.append(np.take_along_axis(sorted_scores, place, axis=-2)[..., 0, :])
    return np.stack([mean, *ends], axis=-1)


def sampled_intervals(
    correct: ArrayLike,
    size: ArrayLike,
    ratios: ArrayLike,
    rng: np.random.Generator,
    *,
    population: ArrayLike | None = None,
    resamples: int = 2000,
    level: float = 0.95,
) -> Floats:
    """Bootstrap intervals of the robustness curve: what other samples of the same kind would have given.

    ``population`` (shaped (3,)): Sizes of the sets that the samples were drawn from, where only a part of them was
    labelled; else ``size``. Returns ndarray, shaped (ratios, 5, 3): Estimate by expected counts, lower and upper
    end, of each of `MEASURES`.

    Resampling labelled samples with replacement within each of the three sets makes the correct ones binomial. Samples
    of one dialogue count as independent, so that the intervals are rather too narrow.
    """
    right, there = np.asarray(correct, dtype=np.float64), np.asarray(size, dtype=np.float64)
    whole = there if population is None else np.asarray(population, dtype=np.float64)
    if ((there == 0) & (whole > 0)).any():
        raise ValueError("no labelled sample of a set that the population has")
    rates = np.divide(right, there, out=np.zeros_like(right), where=there > 0)
    drawn = rng.binomial(there.astype(np.int64), rates, size=(resamples, 3)) / np.maximum(there, 1)
    estimate = robustness_curve(rates * whole, whole, ratios, method="expected counts")[..., 0]
    curves = robustness_curve(drawn * whole, whole, ratios, method="expected counts")[..., 0]
    low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.stack([estimate, low, high], axis=-1)


def robustness_table(
    counts: pd.DataFrame,
    keys: Sequence[str] = ("run",),
    *,
    step: float = 0.05,
    population: pd.DataFrame | None = None,
    rng: np.random.Generator | None = None,
    resamples: int = 2000,
) -> pd.DataFrame:
    """Robustness curves of estimators, as a table.

    ``counts``: the keys, ``world`` ("Main" or "CF"; others are left out), ``correct_satisfied``, ``satisfied``,
    ``correct_dissatisfied`` and ``dissatisfied``, in samples: one row for each estimator and world. ``keys``:
    Columns that identify an estimator. ``step``: Step of the share of dissatisfied samples, which runs from Main's
    own over its multiples to 1. ``population``: Whole counts, where only a part of the samples was labelled: the
    keys or some of them, ``world``, ``satisfied`` and ``dissatisfied``. ``rng``: with it, the intervals are those
    of `sampled_intervals`; without, those of `robustness_curve`. Estimators draw in the order of their keys.
    ``resamples``: of the bootstrap. Returns: The keys, ``measure, ratio, value, low, high``, sorted by the keys,
    then by ratio.

    thesis Figures 3.4 and 3.5.
    """
    keys = list(keys)
    if population is not None:
        if rng is None:
            raise ValueError("whole counts of a labelled part need a bootstrap: pass rng")
        whole = population.rename(columns={"satisfied": "whole satisfied", "dissatisfied": "whole dissatisfied"})
        counts = counts.merge(whole, how="left")
    prefix = "" if population is None else "whole "
    tables = []
    for key, part in counts.groupby(keys, sort=True):
        main, turned = part[part["world"] == "Main"], part[part["world"] == "CF"]
        if len(main) != 1 or len(turned) != 1:
            raise ValueError(f"one row of Main and one of CF wanted for {key}, found {len(main)} and {len(turned)}")
        right, size, whole_size = (
            np.array([main[first].iloc[0], main[second].iloc[0], turned[second].iloc[0]], dtype=np.float64)
            for first, second in (
                ("correct_satisfied", "correct_dissatisfied"),
                ("satisfied", "dissatisfied"),
                (f"{prefix}satisfied", f"{prefix}dissatisfied"),
            )
        )
        least = whole_size[1] / (whole_size[0] + whole_size[1])
        shares = np.concatenate([[least], np.arange(np.ceil(least / step), round(1 / step) + 1) * step])
        shares = np.minimum(shares, 1.0)
        if rng is None:
            scores = robustness_curve(right, size, shares)
        else:
            scores = sampled_intervals(right, size, shares, rng, population=whole_size, resamples=resamples)
        curve = pd.DataFrame(scores.reshape(-1, 3), columns=["value", "low", "high"])
        curve.insert(0, "ratio", np.repeat(shares, len(MEASURES)))
        curve.insert(0, "measure", np.tile(np.asarray(MEASURES, dtype=object), len(shares)))
        for place, column in enumerate(keys):
            curve.insert(place, column, key[place])
        tables.append(curve)
    return pd.concat(tables, ignore_index=True)


def balanced_threshold(dissatisfied: ArrayLike, scores: ArrayLike) -> float:
    """Threshold on the score at which balanced accuracy is highest.

    ``scores`` (shaped (samples,)): of dissatisfaction; a sample counts as dissatisfied from the threshold on.
    Returns: In the middle between two neighbouring scores; the lowest of several.

    Balanced accuracy is the macro recall of thesis section 3.5.2: it does not depend on the share of dissatisfied
    samples, so that a threshold chosen for it on one set may serve on another.
    """
    truth, values = np.asarray(dissatisfied, dtype=bool), np.asarray(scores, dtype=np.float64)
    if truth.all() or not truth.any() or not np.isfinite(values).all():
        raise ValueError("samples of both labels with finite scores are wanted")
    levels = np.unique(values)
    cuts = np.concatenate([levels[:1], (levels[1:] + levels[:-1]) / 2])
    positive, negative = np.sort(values[truth]), np.sort(values[~truth])
    hit = 1 - np.searchsorted(positive, cuts, side="left") / len(positive)
    spared = np.searchsorted(negative, cuts, side="left") / len(negative)
    return float(cuts[np.argmax(np.round(hit + spared, 12))])


# --- annotators and shared contexts -------------------------------------------------------------------------------


def counter_satisfaction_status(dissatisfied: ArrayLike, judged: ArrayLike) -> dict[str, float]:
    r"""Share of counterfactuals whose status was judged the opposite of the original's.

    .. math:: CSS = \frac{|\{i : s_i \ne \hat s_i\}|}{n}

    ``dissatisfied`` (shaped (samples,)): Status of the original. ``judged`` (shaped (samples,)): Status of the
    counterfactual, as people judge it. Returns: "Satisfaction" and "Dissatisfaction" by the status of the original,
    and "Overall"; NaN for a status without samples.

    thesis section 3.6.1 and Table 3.4.
    """
    status, after = np.asarray(dissatisfied, dtype=bool), np.asarray(judged, dtype=bool)
    if status.shape != after.shape:
        raise ValueError(f"{len(status)} originals and {len(after)} counterfactuals")
    turned = status != after
    groups = {"Satisfaction": ~status, "Dissatisfaction": status, "Overall": np.ones_like(status)}
    return {name: float(turned[group].mean()) if group.any() else float("nan") for name, group in groups.items()}


def agreement(first: ArrayLike, second: ArrayLike) -> dict[str, float]:
    r"""Percent agreement and Cohen's kappa of two annotators.

    .. math:: PA = \frac{1}{n} \sum_i [a_i = b_i], \qquad \kappa = \frac{PA - p_e}{1 - p_e}

    ``first``, ``second`` (shaped (samples,)): Labels of the same samples. Returns: "PA", from 0 to 1, and "kappa",
    from -1 to 1, of scikit-learn; kappa is NaN where both give one and the same label throughout.

    thesis section 3.6.1 and Table 3.3, which prints PA in percent.
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or not a.size:
        raise ValueError(f"labels of the same samples are wanted, found {a.size} and {b.size}")
    one_label = len(np.union1d(a, b)) == 1
    kappa = float("nan") if one_label else float(cohen_kappa_score(a, b))
    return {"PA": float((a == b).mean()), "kappa": kappa}


def shared_context_jaccard(original: ArrayLike, counterfactual: ArrayLike) -> float:
    r"""Jaccard index of the samples labelled correctly before and after the last response was turned round.

    .. math:: JSI = \frac{|M \cap C|}{|M \cup C|}

    ``original``, ``counterfactual`` (shaped (contexts,)): whether each context is labelled correctly with its own
    and with its counterfactual response. Returns: From 0 to 1; NaN where nothing is labelled correctly.

    thesis section 3.6.2 and Table 3.7. The index counts contexts that have a counterfactual. An estimator that gives
    one and the same label throughout has 0.
    """
    before, after = np.asarray(original, dtype=bool), np.asarray(counterfactual, dtype=bool)
    if before.shape != after.shape:
        raise ValueError(f"{len(before)} originals and {len(after)} counterfactuals")
    union = int((before | after).sum())
    return float((before & after).sum() / union) if union else float("nan")


def jaccard_interval(
    original: ArrayLike,
    counterfactual: ArrayLike,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 2000,
) -> tuple[float, float]:
    """Bootstrap interval of `shared_context_jaccard`, by drawing contexts with replacement.

    ``level``: share of the resampled indices between the ends. Returns: Percentiles; a sample in which nothing is
    labelled correctly counts 0.

    For thesis Table 3.7, which prints no intervals.
    """
    before, after = np.asarray(original, dtype=bool), np.asarray(counterfactual, dtype=bool)
    if before.shape != after.shape or not len(before):
        raise ValueError(
            f"contexts to draw from are wanted, found {len(before)} originals, {len(after)} counterfactuals"
        )
    draws = rng.integers(len(before), size=(resamples, len(before)))
    meet, join = (before & after)[draws].sum(axis=1), (before | after)[draws].sum(axis=1)
    low, high = np.quantile(meet / np.maximum(join, 1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


# --- what printed scores say about the counts behind them ---------------------------------------------------------


def recovered_counts(
    printed: Sequence[float], satisfied: int, dissatisfied: int, *, half_unit: float = 0.00005
) -> Integers:
    """All numbers of correct samples that give printed scores.

    ``printed``: Acc, P, R and F1, from 0 to 1. ``satisfied``, ``dissatisfied``: Samples of the test set.
    ``half_unit``: Half a unit of the last printed place. Returns ndarray of int, shaped (solutions, 2): Correct
    satisfied and correct dissatisfied samples; empty where no counts give the scores.

    thesis, Table 3.6, prints percentages with two decimals.
    """
    right = np.arange(satisfied + 1)[:, np.newaxis], np.arange(dissatisfied + 1)[np.newaxis, :]
    scores = binary_scores(right[0], satisfied, right[1], dissatisfied)[..., :4]
    fits = (np.abs(scores - np.asarray(printed, dtype=np.float64)) <= half_unit + 1e-9).all(axis=-1)
    return np.argwhere(fits).astype(np.int64)


def jaccard_bounds(original: int, of_original: int, counterfactual: int, shared: int) -> tuple[float, float]:
    """Lowest and highest Jaccard index that numbers of correct samples allow.

    ``original``: Correct samples of Main. ``of_original``: Samples of Main. ``counterfactual``: Correct samples of
    the counterfactual. ``shared``: Contexts that have a counterfactual. Returns: Over every way in which correct
    samples of Main may lie within or outside the shared contexts.

    For thesis Table 3.7, whose sets behind the counts are not printed.
    """
    if not (0 <= original <= of_original and 0 <= counterfactual <= shared <= of_original):
        raise ValueError(f"counts do not fit: {original} of {of_original}, {counterfactual} of {shared}")
    within = np.arange(max(0, original - (of_original - shared)), min(original, shared) + 1)
    both = np.maximum(0, within + counterfactual - shared), np.minimum(within, counterfactual)
    with np.errstate(invalid="ignore"):
        lows, highs = (meet / (within + counterfactual - meet) for meet in both)
    return float(np.nanmin(lows)), float(np.nanmax(highs))
