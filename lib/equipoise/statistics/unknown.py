"""How extreme the unknown would have to be to overturn a verdict on what is known.

The unknown are first as the known. Then they are moved towards the worst case, the same resampled
units at each step, until the interval meets the bound of the verdict: the tipping point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy  # which loads scipy.stats, a second of imports, at its first use

from equipoise.arrays import Floats, Integers, ratio
from equipoise.statistics.intervals import FEWEST_UNITS, intervals_of_means, units_to_decide

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


@dataclass(frozen=True, eq=False)
class GroupExposure:
    """What the documents of each group receive, by topic, where not all groups are known.

    ``known``, shaped (topics, groups), is what documents of known group receive; ``total``, shaped
    (topics,), what all receive. A document of unknown group, of the topic ``topic``, receives its
    ``weight``. ``target`` are the shares that the groups should have.
    """

    run: str
    attribute: str
    groups: tuple[str, ...]
    target: Floats
    known: Floats
    total: Floats
    topic: Integers
    weight: Floats

    def rows(self, *, level: float, resamples: int, seed: int) -> pd.DataFrame:
        """Return a row per group: its share over its target, interval, and tipping points.

        Topics of which nothing is known are left out.
        """

        def means(columns: Floats) -> Floats:
            return intervals_of_means(list(columns.T), seed, level=level, resamples=resamples)

        has_known = self.known.sum(axis=1) > 0
        known, total = self.known[has_known], self.total[has_known]
        is_counted = has_known[self.topic]
        topic = (np.cumsum(has_known) - 1)[self.topic[is_counted]]
        weight = self.weight[is_counted]
        shares = ratio(known.sum(axis=0), known.sum(), np.nan)
        of_unknown = np.bincount(topic, weight, len(total))
        target = np.outer(total, self.target)
        gaps = known + np.outer(of_unknown, shares) - target
        per_target = target.mean(axis=0) if len(target) else np.full(len(shares), np.nan)
        per_target[per_target == 0] = np.nan  # there is no share of nothing
        ends = means(gaps) / per_target[:, np.newaxis] + 1
        tipping = np.full(ends.shape, np.nan)
        for group in np.flatnonzero((ends[:, 0] > 1) | (ends[:, 1] < 1)):
            tipping[group] = tipping_shares(
                known[:, group] - target[:, group],
                *(topic, weight, shares[group], means),
                is_above=ends[group, 0] > 1,
            )
        rows = pd.DataFrame({"run": self.run, "attribute": self.attribute, "group": self.groups})
        rows["value"], rows["share"] = gaps.mean(axis=0) / per_target + 1, shares
        rows[["low", "high"]], rows[["tipping_low", "tipping_high"]] = ends, tipping
        return rows.assign(
            seen=known.sum() / total.sum() if len(total) else 0.0,
            left_out=np.count_nonzero(~has_known & (self.total > 0)),
        )


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


def verdict(
    row: Mapping[Hashable, Any],
    difference: float,
    level: float,
    outcomes: tuple[str, str],
    unit: str = "points",
    *,
    cited: float | None = None,
) -> str:
    """Return the sentence on a difference: its verdict, or the required sample size.

    ``row``: ``value, low, high, count, read``. ``outcomes``: where the interval is above 0, and
    below. A verdict on less than all says how extreme the unread would have to be to overturn it;
    ``cited`` is the share of the citations, in a difference from it.
    """
    # 0.0 is added so that no number reads -0.0
    value, low, high = (100 * row[name] + 0.0 for name in ("value", "low", "high"))
    interval = f" [{low:.1f}, {high:.1f}]" if low <= high else ""
    number, interval = (text.replace("-", "\u2212") for text in (f"{value:+.1f}", interval))
    # Rounded down: 89.6% is less than 90%.
    percent = math.floor(100 * row["read"] + 1e-9)
    sentence = f"{number} {unit}{interval}, n = {row['count']}, {percent}% read: "
    if not low <= high and row["count"] < FEWEST_UNITS:
        return f"{sentence}no verdict, an interval needs n = {FEWEST_UNITS}"
    if low > 0 or high < 0:
        tipping = unless_unread(row, level, scale=100, unit=" points", cited=cited)
        return sentence + outcomes[0 if low > 0 else 1] + tipping
    if not low < high:
        return f"{sentence}inconclusive; equal scores give no required sample size"
    needed = units_to_decide(int(row["count"]), row["low"], row["high"], difference, level=level)
    return (
        f"{sentence}inconclusive; 80% power for {100 * difference:g} points needs"
        f" n = {max(needed, 2):,}"
    )
