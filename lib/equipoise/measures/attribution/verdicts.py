"""What scores say of attribution bias, in sentences: a verdict, or what would decide it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from equipoise.declare import checked
from equipoise.measures.attribution.bias import AUTHORS_OF
from equipoise.options import Difference, Favoured, Level
from equipoise.statistics import units_to_decide


def bias_rows(scores: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of CAB of `score_attribution`; ``what`` names measure and, if several, group."""
    rows = scores[scores["measure"].str.startswith("CAB-")].reset_index(drop=True)
    varying = [name for name in (*by, *AUTHORS_OF) if len(set(rows[name])) > 1]
    labels = []
    for row in rows.to_dict("records"):
        words = []
        for name in varying:
            role = f"{name.removesuffix('_author')} " if name in AUTHORS_OF else ""
            words.append(f"{role}{row[name]}")
        group = f" ({', '.join(words)})" if words else ""
        labels.append(f"{row['measure']}{group}")
    return rows.assign(what=labels)


@checked
def verdicts(
    scores: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    favoured: Favoured = "Human",
    difference: Difference = 0.05,
    level: Level = 0.95,
) -> list[str]:
    """A sentence for each CAB of `score_attribution`: decided by its interval, or what would.

    ``favoured`` and ``level`` are those that the table was made with; ``difference``: the bias that
    a study of that many questions tells from none with 80 % power.

    >>> row = {"measure": "CAB-precision", "relevant_author": "Human", "nonrelevant_author": "LLM"}
    >>> numbers = {"value": [0.038], "low": -0.05, "high": 0.13, "count": 60}
    >>> print(*verdicts(pd.DataFrame(numbers | row)))
    CAB-precision +3.8 points for Human [-5.0, 13.0], n = 60: undecided;
    80 % power for 5 points needs n = 398
    """
    rows = bias_rows(scores, by)
    return [_verdict(row, favoured, difference, level) for row in rows.itertuples()]


def _verdict(row: Any, favoured: str, difference: float, level: float) -> str:
    if not row.count:
        return f"{row.what}: no question has a score in both modes"
    points = f"{row.what} {100 * row.value:+.1f} points for {favoured}"
    if not row.low <= row.high:
        return f"{points}, n = {row.count}: undecided; one question has no interval"
    # 0.0 is added so that no end reads -0.0
    ends = f"[{100 * row.low + 0.0:.1f}, {100 * row.high + 0.0:.1f}]"
    points = f"{points} {ends}, n = {row.count}"
    if row.low > 0:
        return f"{points}: decided, for {favoured}"
    if row.high < 0:
        return f"{points}: decided, against {favoured}"
    if row.low == row.high:
        return (
            f"{points}: undecided; no score changed,"
            " so that nothing says how many questions it would take"
        )
    needed = units_to_decide(int(row.count), row.low, row.high, difference, level=level)
    return (
        f"{points}: undecided;"
        f" 80 % power for {100 * difference:g} points needs n = {max(needed, 2):,}"
    )
