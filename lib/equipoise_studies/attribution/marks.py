"""Marks of significance, where a table prints means only: what a paired t-test can have been."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from equipoise.arrays import Floats
from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table
from equipoise_studies.attribution.derived import (
    DIFFERENCES,
    PRINTED,
    SCORES,
    SETTING,
    numbers,
    printed_quality,
    quality_of,
)


def paired_t_bounds(
    first: ArrayLike,
    second: ArrayLike,
    units: int,
    *,
    mean_absolute: ArrayLike | None = None,
    binary: bool = False,
    half_unit: float = 0.0,
) -> tuple[Floats, Floats]:
    r"""Smallest and largest \|t\| of a paired t-test that two printed means allow.

    .. math::
        t = \frac{\Delta \sqrt{n - 1}}{\sqrt{E[d^2] - \Delta^2}}, \quad
        E[|d|]^2 \le E[d^2] \le E[|d|], \quad |\Delta| \le E[|d|] \le \min(a + b, 2 - a - b)

    ``first``, ``second``: the means a and b of scores from 0 to 1. ``units``: n, pairs of scores.
    ``mean_absolute``: E\|d\|, where it is printed too (a CAS). ``binary``: whether every score is 0
    or 1: then :math:`E[d^2] = E[|d|]`, and t is known where `mean_absolute` is. ``half_unit``: half
    a unit of the last printed digit, where means are rounded. Returns the smallest and the largest;
    infinite where the scores may differ by the same amount in every pair.

    For marks of significance in papers that print means only, such as thesis Tables 5.1 to 5.5.
    """
    if units < 2:
        raise ValueError(f"a paired test needs at least two units, found {units}")
    a = np.asarray(first, dtype=np.float64)
    b = np.asarray(second, dtype=np.float64)
    if not (((a >= 0) & (a <= 1)).all() and ((b >= 0) & (b <= 1)).all()):
        raise ValueError("means of scores between 0 and 1 are wanted")

    # Both means may be rounded, so their difference is off by two half units at most.
    gap = np.abs(a - b)
    smallest_gap = np.maximum(gap - 2 * half_unit, 0)
    largest_gap = gap + 2 * half_unit

    # Bounds of E|d|, from the means or from what is printed of it.
    least_absolute = largest_gap
    most_absolute = np.minimum(a + b, 2 - a - b) + 2 * half_unit
    if mean_absolute is not None:
        absolute = np.asarray(mean_absolute, dtype=np.float64)
        least_absolute = np.maximum(absolute - half_unit, largest_gap)
        most_absolute = absolute + half_unit

    # |t| is smallest with the smallest gap and the largest E[d^2], and the other way round.
    most_squared = most_absolute
    least_squared = least_absolute if binary else least_absolute**2
    with np.errstate(divide="ignore", invalid="ignore"):
        most_variance = np.maximum(most_squared - smallest_gap**2, 0)
        least_variance = np.maximum(least_squared - largest_gap**2, 0)
        smallest_t = smallest_gap * np.sqrt((units - 1) / most_variance)
        largest_t = largest_gap * np.sqrt((units - 1) / least_variance)
    smallest_t = np.where(smallest_gap == 0, 0.0, smallest_t)
    largest_t = np.where(largest_gap == 0, 0.0, largest_t)
    return smallest_t, largest_t


def verdicts(sample: int, alpha: float) -> pd.DataFrame:
    """Printed scores of Tables 5.2, 5.3 and 5.5, and whether the mark of each can be right.

    Of the scores whose means are printed. Returns the setting with ``score, printed, artefact,
    marked, smallest, largest`` (the bounds of |t|) and ``significant``: yes, no or open. Scores of
    recall are 0 or 1, with one relevant passage.
    """
    critical = stats.t.isf(alpha / 2, sample - 1)
    modes_of_tables = {"thesis/table-5.2": ("Informed", "Vanilla")} | DIFFERENCES
    tables = []
    for artefact, (mode, against) in modes_of_tables.items():
        mode_means = quality_of(mode) / 100
        against_means = quality_of(against) / 100
        printed = printed_table(artefact).set_index(SETTING)
        for column, score in SCORES.items():
            means = pd.DataFrame({"first": mode_means[score], "second": against_means[score]})
            cells = printed[[column]].set_axis(["printed"], axis=1).join(means).dropna()
            cas = None
            if artefact == "thesis/table-5.2":
                cas = numbers(cells, ["printed"])["printed"] / 100
            # Recall is a whole number of the 500 questions, printed in full; precision is rounded.
            is_recall = score == "Recall"
            smallest, largest = paired_t_bounds(
                cells["first"],
                cells["second"],
                sample,
                mean_absolute=cas,
                binary=is_recall,
                half_unit=0.0 if is_recall else 0.0005,
            )
            cells["score"] = score
            cells["artefact"] = artefact
            cells["marked"] = cells["printed"].str.contains("†")
            cells["smallest"] = smallest
            cells["largest"] = largest
            cells["significant"] = np.select(
                [smallest > critical, largest < critical], ["yes", "no"], "open"
            )
            tables.append(cells.reset_index())
    return pd.concat(tables, ignore_index=True)


def refuted_marks() -> pd.DataFrame:
    """Cells of Tables 5.1 and 5.11 marked as better than both other modes, though one is higher."""
    table = printed_quality("5.1", "5.11")
    table = table.melt([*SETTING, "mode"], list(SCORES.values()), "score", "printed")
    table["setting"] = table.groupby(SETTING, sort=False).ngroup()
    scores = numbers(table, ["printed"]).groupby(["setting", "score"])["printed"]
    table["marked"] = table["printed"].str.contains("†")
    table["highest"] = scores.rank(method="max", ascending=False) == 1
    refuted = table[table["marked"] & ~table["highest"]].sort_values("setting", kind="stable")
    return refuted.drop(columns=["printed", "setting"])


def evidence(mark_verdicts: pd.DataFrame) -> dict[str, Evidence]:
    """What printed means say of the marks on them, by claim; takes the table of `verdicts`."""
    is_cas = mark_verdicts["artefact"] == "thesis/table-5.2"
    cas_of_recall = mark_verdicts[is_cas & (mark_verdicts["score"] == "Recall")]
    wrong = cas_of_recall["marked"] != (cas_of_recall["significant"] == "yes")
    refuted = refuted_marks()
    benchmarks = ", ".join(refuted["benchmark"])
    return {
        "5.1-marks": Evidence(
            f"marks on a mode that another mode exceeds ({benchmarks})",
            len(refuted),
            reason=PRINTED,
        ),
        "5.2-marks": Evidence(
            f"marks of {len(cas_of_recall)} that are otherwise", int(wrong.sum()), reason=PRINTED
        ),
    }
