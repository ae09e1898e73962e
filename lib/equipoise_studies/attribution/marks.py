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
    r"""Smallest and largest \|t\| of a paired t-test that two printed means of scores between 0 and 1 allow.

    .. math::
        t = \frac{\Delta \sqrt{n - 1}}{\sqrt{E[d^2] - \Delta^2}}, \quad
        E[|d|]^2 \le E[d^2] \le E[|d|], \quad |\Delta| \le E[|d|] \le \min(a + b, 2 - a - b)

    ``first``, ``second``: the means a and b, from 0 to 1. ``units``: n, pairs of scores.
    ``mean_absolute``: E\|d\|, where it is printed too (a CAS). ``binary``: whether every score is 0
    or 1: then :math:`E[d^2] = E[|d|]`, and t is known where `mean_absolute` is. ``half_unit``: half
    a unit of the last printed digit, where means are rounded. Returns the smallest and the largest;
    infinite where the scores may differ by the same amount in every pair.

    For marks of significance in papers that print means only, such as thesis Tables 5.1 to 5.5.
    """
    if units < 2:
        raise ValueError(f"a paired test needs at least two units, found {units}")
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not (((a >= 0) & (a <= 1)).all() and ((b >= 0) & (b <= 1)).all()):
        raise ValueError("means of scores between 0 and 1 are wanted")
    near, far = np.maximum(np.abs(a - b) - 2 * half_unit, 0), np.abs(a - b) + 2 * half_unit
    most = np.minimum(a + b, 2 - a - b) + 2 * half_unit
    least = far
    if mean_absolute is not None:
        known = np.asarray(mean_absolute, dtype=np.float64)
        most, least = known + half_unit, np.maximum(known - half_unit, far)
    smallest = least if binary else least**2
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(near == 0, 0.0, near * np.sqrt((units - 1) / np.maximum(most - near**2, 0)))
        high = np.where(
            far == 0, 0.0, far * np.sqrt((units - 1) / np.maximum(smallest - far**2, 0))
        )
    return low, high


def verdicts(sample: int, alpha: float) -> pd.DataFrame:
    """Every printed score of Tables 5.2, 5.3 and 5.5 whose means are printed, and whether its mark can be right.

    Returns the setting with ``score, printed, artefact, marked, smallest, largest`` (the bounds of
    |t|) and ``significant``: yes, no or open. Scores of recall are 0 or 1, with one relevant
    passage.
    """
    critical = stats.t.isf(alpha / 2, sample - 1)
    found = []
    for artefact, modes in ({"thesis/table-5.2": ("Informed", "Vanilla")} | DIFFERENCES).items():
        first, second = (quality_of(mode) / 100 for mode in modes)
        printed = printed_table(artefact).set_index(SETTING)
        for column, score in SCORES.items():
            means = pd.DataFrame({"first": first[score], "second": second[score]})
            cells = printed[[column]].set_axis(["printed"], axis=1).join(means).dropna()
            absolute = (
                numbers(cells, ["printed"])["printed"] / 100
                if artefact == "thesis/table-5.2"
                else None
            )
            binary = score == "Recall"
            a, b, rounding = cells["first"], cells["second"], 0.0 if binary else 0.0005
            low, high = paired_t_bounds(
                a, b, sample, mean_absolute=absolute, binary=binary, half_unit=rounding
            )
            found.append(
                cells.reset_index().assign(
                    score=score,
                    artefact=artefact,
                    marked=cells["printed"].str.contains("†").to_numpy(),
                    smallest=low,
                    largest=high,
                    significant=np.select([low > critical, high < critical], ["yes", "no"], "open"),
                )
            )
    return pd.concat(found, ignore_index=True)


def refuted_marks() -> pd.DataFrame:
    """Cells of Tables 5.1 and 5.11 that are marked as better than both other modes, though one of these is higher."""
    table = printed_quality("5.1", "5.11").melt(
        [*SETTING, "mode"], list(SCORES.values()), "score", "printed"
    )
    table["setting"] = table.groupby(SETTING, sort=False).ngroup()
    rivals = numbers(table, ["printed"]).groupby(["setting", "score"])["printed"]
    table["marked"] = table["printed"].str.contains("†")
    table["highest"] = rivals.rank(method="max", ascending=False) == 1
    refuted = table[table["marked"] & ~table["highest"]].sort_values("setting", kind="stable")
    return refuted.drop(columns=["printed", "setting"])


def evidence(found: pd.DataFrame) -> dict[str, Evidence]:
    """What printed means say of the marks that stand on them, by claim; ``found`` as of `verdicts`."""
    recall = found[(found["artefact"] == "thesis/table-5.2") & (found["score"] == "Recall")]
    wrong = recall["marked"] != (recall["significant"] == "yes")
    refuted = refuted_marks()
    told_of = f"marks on a mode that another mode exceeds ({', '.join(refuted['benchmark'])})"
    return {
        "5.1-marks": Evidence(told_of, len(refuted), reason=PRINTED),
        "5.2-marks": Evidence(
            f"marks of {len(recall)} that are otherwise", int(wrong.sum()), reason=PRINTED
        ),
    }
