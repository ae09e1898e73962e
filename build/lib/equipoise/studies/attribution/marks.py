"""Marks of significance, where a table prints means only: what a paired t-test can have been."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Floats


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

    ``first``, ``second``: the means a and b, from 0 to 1. ``units``: n, pairs of scores. ``mean_absolute``: E\|d\|,
    where it is printed too (a CAS). ``binary``: whether every score is 0 or 1: then :math:`E[d^2] = E[|d|]`, and t
    is known where `mean_absolute` is. ``half_unit``: Half a unit of the last printed digit, where means are
    rounded. Returns: Smallest and largest; infinite where the scores may differ by the same amount in every pair.

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
        high = np.where(far == 0, 0.0, far * np.sqrt((units - 1) / np.maximum(smallest - far**2, 0)))
    return low, high
