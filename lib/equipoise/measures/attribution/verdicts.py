"""What scores say of attribution bias, in sentences: the verdict of each interval, or what would decide it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from equipoise.declare import checked
from equipoise.measures.attribution.bias import AUTHORS_OF
from equipoise.options import Difference, Favoured, Level
from equipoise.statistics import units_to_decide


def bias_rows(scores: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of CAB in a table of `score_attribution`, with a column ``what``: measure and, where several, group."""
    rows = scores[scores["measure"].str.startswith("CAB-")].reset_index(drop=True)
    several = [name for name in (*by, *AUTHORS_OF) if len(set(rows[name])) > 1]
    told = {
        name: f"{name.removesuffix('_author')} " if name in AUTHORS_OF else "" for name in several
    }
    groups = [
        ", ".join(f"{told[name]}{row[name]}" for name in several) for row in rows.to_dict("records")
    ]
    what = [
        f"{measure} ({group})" if group else measure
        for measure, group in zip(rows["measure"], groups, strict=True)
    ]
    return rows.assign(what=what)


@checked
def verdicts(
    scores: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    favoured: Favoured = "Human",
    difference: Difference = 0.05,
    level: Level = 0.95,
) -> list[str]:
    """A sentence for each CAB of a table of `score_attribution`: decided by its interval, or how many questions would.

    ``favoured`` and ``level`` are those that the table was made with; ``difference``: the bias that
    a study of that many questions would tell from none four times in five.

    >>> row = {"measure": "CAB-precision", "relevant_author": "Human", "nonrelevant_author": "LLM"}
    >>> numbers = {"value": [0.038], "low": -0.05, "high": 0.13, "count": 60}
    >>> print(*verdicts(pd.DataFrame(numbers | row)))
    CAB-precision +3.8 points for Human [-5.0, 13.0], n = 60: undecided;
    398 questions would decide 5 points four times in five
    """
    return [
        _verdict(row, favoured, difference, level) for row in bias_rows(scores, by).itertuples()
    ]


def _verdict(row: Any, favoured: str, difference: float, level: float) -> str:
    if not row.count:
        return f"{row.what}: no question has a score in both modes"
    points = f"{row.what} {100 * row.value:+.1f} points for {favoured}"
    if not row.low <= row.high:
        return f"{points}, n = {row.count}: undecided; one question has no interval"
    found = f"{points} [{100 * row.low + 0.0:.1f}, {100 * row.high + 0.0:.1f}], n = {row.count}"
    if row.low > 0 or row.high < 0:
        return f"{found}: decided, {'for' if row.low > 0 else 'against'} {favoured}"
    if row.low == row.high:
        return f"{found}: undecided; no score changed, so that nothing says how many questions it would take"
    needed = units_to_decide(int(row.count), row.low, row.high, difference, level=level)
    would = f"would decide {100 * difference:g} points four times in five"
    return f"{found}: undecided; {max(needed, 2):,} questions {would}"
