"""How well an estimator agrees with itself before and after the last response is turned round."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Booleans


def correct_both_times(original: ArrayLike, turned: ArrayLike) -> tuple[Booleans, Booleans]:
    """Contexts labelled correctly both times, and at least once."""
    before, after = np.asarray(original, dtype=bool), np.asarray(turned, dtype=bool)
    if before.shape != after.shape or not len(before):
        raise ValueError(
            f"contexts are wanted, found {len(before)} originals and {len(after)} turned round"
        )
    return before & after, before | after


def shared_context_jaccard(original: ArrayLike, turned: ArrayLike) -> float:
    r"""Jaccard index of samples labelled correctly with their own and with another last response.

    .. math:: JSI = \frac{|M \cap C|}{|M \cup C|}

    ``original``, ``turned`` (shaped (contexts,)): whether each context is labelled correctly with
    its own response and with the other. Returns: From 0 to 1; NaN where nothing is labelled
    correctly.

    thesis section 3.6.2 and Table 3.7. The index counts contexts that have both. An estimator that
    gives one and the same label throughout has 0.
    """
    both_times, at_least_once = correct_both_times(original, turned)
    if not at_least_once.any():
        return np.nan
    return float(both_times.sum() / at_least_once.sum())


def jaccard_bounds(
    original: int, of_original: int, counterfactual: int, shared: int
) -> tuple[float, float]:
    """Lowest and highest Jaccard index that numbers of correct samples allow.

    ``original``: Correct samples of Main. ``of_original``: Samples of Main. ``counterfactual``:
    Correct samples of the counterfactual. ``shared``: Contexts that have a counterfactual. Returns:
    Over every way in which correct samples of Main may lie within or outside the shared contexts.

    For thesis Table 3.7, whose sets behind the counts are not printed.
    """
    fewest_within = max(0, original - (of_original - shared))
    # So many of the correct samples of Main may have a counterfactual.
    within = np.arange(fewest_within, min(original, shared) + 1)
    smallest_meet = np.maximum(0, within + counterfactual - shared)
    largest_meet = np.minimum(within, counterfactual)
    with np.errstate(invalid="ignore"):
        lows = smallest_meet / (within + counterfactual - smallest_meet)
        highs = largest_meet / (within + counterfactual - largest_meet)
    return float(np.nanmin(lows)), float(np.nanmax(highs))
