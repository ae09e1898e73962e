"""How extreme the unknown would have to be to overturn a verdict on what is known.

The unknown are first as the known. Then they are moved towards the worst case, the same resampled
units at each step, until the interval meets the bound of the verdict: the tipping point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import scipy  # which loads scipy.stats, a second of imports, at its first use

from equipoise.arrays import Floats, Integers

_STEPS, _ROUNDS = 32, 3

Intervals = Callable[[Floats], Floats]
"""From steps, shaped (steps,), to the ends of their intervals, shaped (steps, 2)."""


def tipping_point(
    intervals: Intervals, start: float, end: float, *, is_above: bool, bound: float = 0.0
) -> float:
    """Return the first x from ``start`` to ``end`` whose interval meets a bound; NaN if none does.

    ``is_above``: the verdict is that the interval lies above the bound, and not below.

    >>> shifted = lambda x: np.column_stack([0.1 - x, 0.3 - x])
    >>> round(tipping_point(shifted, 0, 1, is_above=True), 4)
    0.1
    """
    for _ in range(_ROUNDS):
        steps = np.linspace(start, end, _STEPS + 1)
        low, high = intervals(steps).T
        holds = low > bound if is_above else high < bound
        if holds.all():
            return math.nan
        place = int(holds.argmin())
        start, end = float(steps[max(place - 1, 0)]), float(steps[place])
    return start


def tipping_shares(
    known: Floats,
    unit: Integers,
    weight: Floats,
    as_known: float,
    intervals_of_means: Callable[[Floats], Floats],
    *,
    is_above: bool,
) -> tuple[float, float]:
    """Return below and above which share of the unknown in a group its verdict is overturned.

    ``known``, shaped (units,), is what the known contribute to a mean whose bound is 0. An unknown
    item, of the unit ``unit``, contributes its ``weight`` if it is in the group. Each has first the
    share ``as_known``, then those that overturn the verdict most, as few as possible, are moved out
    of the group or into it. ``intervals_of_means``: from columns, shaped (units, columns).
    ``is_above``: as in `tipping_point`. NaN where no share overturns the verdict.
    """
    if not len(unit):
        return math.nan, math.nan
    base = known + as_known * np.bincount(unit, weight, len(known))
    shares = []
    for move in (-as_known, 1 - as_known):
        worst = np.argsort(move * weight if is_above else -move * weight, kind="stable")
        units, changes = unit[worst], move * weight[worst]

        def moved(steps: Floats, units: Integers = units, changes: Floats = changes) -> Floats:
            columns = []
            for step in steps:
                # Items one after the other, the last of them in part.
                part = np.clip(step * len(units) - np.arange(len(units)), 0, 1)
                columns.append(base + np.bincount(units, part * changes, len(base)))
            return intervals_of_means(np.column_stack(columns))

        shares.append(as_known + move * tipping_point(moved, 0, 1, is_above=is_above))
    return shares[0], shares[1]


def unless(below: float, above: float, what: str, as_known: float, others: str) -> str:
    """Return what overturns a verdict: a clause on the shares of the unknown.

    >>> what = "documents of unknown region are African"
    >>> unless(float("nan"), 0.314, what, 0.07, "the known")
    '; this holds unless more than 31% of the documents of unknown region are African (7% of the known are)'
    """  # noqa: E501
    sides = []
    # Rounded towards the known, so that the sentence is true.
    if below >= 0:
        sides.append(f"less than {math.ceil(100 * below - 1e-9)}%")
    if above <= 1:
        sides.append(f"more than {math.floor(100 * above + 1e-9)}%")
    if not sides:
        return f"; this holds however many of the {what}"
    share = " or ".join(sides)
    return f"; this holds unless {share} of the {what} ({100 * as_known:.0f}% of {others} are)"


def unless_unread(
    row: Mapping[Hashable, Any],
    level: float,
    *,
    bound: float = 0.0,
    widest: float = 2.0,
    scale: float = 1.0,
    unit: str = "",
    cited: float | None = None,
) -> str:
    """Return what overturns a verdict on a mean: a clause on the mean of what was not read.

    ``row``: ``value, low, high, count, read``. ``widest``: the most that a score can move. The
    variance between the read and the unread is added to that of the interval. The distance is shown
    in ``unit``, of which a score of 1 has ``scale``; if the mean is a share of the citations of
    which something is subtracted, ``cited``, the clause is on this share.
    """
    unread = 1 - row["read"]
    is_above = row["low"] > bound
    if not unread > 0 or not (is_above or row["high"] < bound):
        return ""
    away = abs(row["value"] - bound)
    reach = row["value"] - row["low"] if is_above else row["high"] - row["value"]
    sides = scipy.stats.norm.ppf((1 + level) / 2)
    between = sides**2 * unread * (1 - unread) / row["count"]  # of a shift of 1
    # The first shift at which away - unread * shift = sqrt(reach**2 + between * shift**2).
    rest = away**2 - reach**2
    root = math.sqrt((away * unread) ** 2 - (unread**2 - between) * rest)
    shift = rest / (away * unread + root)
    if cited is not None:
        below, above = (cited - shift, math.nan) if is_above else (math.nan, cited + shift)
        what = "citations not read are its own"
        return unless(below, above, what, cited, "those read")
    share = f"the {100 - math.floor(100 * row['read'] + 1e-9)}% not read"
    if shift > widest:
        return f"; this holds for any scores of {share}"
    direction = "lower" if is_above else "higher"
    return (
        f"; this holds unless {share} are more than {scale * shift:.3g}{unit} {direction} than"
        " they count"
    )
