"""Our cells next to the published ones: how much they differ, and why."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.formatting import number
from equipoise_compendium.printed import WHOLE_TABLE, Difference, Printed, raw, reasons_of
from equipoise_compendium.settings import settings

_HEADER = ["Row", "Column", "Ours", "Published", "Difference", "95% CI of it"]


@dataclass(frozen=True)
class Compared:
    """A table or figure next to the published one.

    ``row``: its row of the ledger. ``lines``: the cells as text, the largest difference first, in
    the columns of ``header``. ``why``: the reason that concerns the whole table.
    """

    row: Mapping[str, str]
    header: Sequence[str] = ()
    lines: Sequence[Sequence[str]] = ()
    why: str = ""

    @property
    def largest(self) -> dict[str, str]:
        """The cell with the largest difference, by column."""
        return dict.fromkeys(_HEADER, "") | dict(zip(self.header, self.lines[0], strict=True))


def _gap(cell: Difference) -> float:
    """Subtract the published number from ours; NaN for text."""
    published = Printed.parse(cell.printed.rpartition(" ")[2]).number
    try:
        return math.nan if published is None else float(cell.ours) - published
    except ValueError:
        return math.nan


def _size(cell: Difference) -> float:
    """Return how large a difference is; text is the smallest."""
    gap = _gap(cell)
    return abs(gap) if math.isfinite(gap) else 0.0


def _line(cell: Difference, ends: Sequence[float], more: int) -> list[str]:
    """Write a cell with as many decimals as the published one has, and some more.

    ``ends``: the interval of our value.
    """
    gap = _gap(cell)
    if math.isnan(gap):
        return [cell.row, cell.column, cell.ours, cell.printed, "", "", cell.reason]
    value = float(cell.ours)
    decimals = Printed.parse(cell.printed.rpartition(" ")[2]).decimals or 0
    if decimals or not value.is_integer():
        decimals += more
    shifted = ", ".join(number(end + gap - value, decimals) for end in ends)
    return [
        cell.row,
        cell.column,
        number(value, decimals),
        cell.printed,
        f"+{number(gap, decimals)}" if gap > 0 else number(gap, decimals),
        f"[{shifted}]" if shifted else "",
        cell.reason,
    ]


def _next_to_ours(table: pd.DataFrame) -> Iterator[tuple[Difference, list[float]]]:
    """Pair the published values that a table of ours has in columns of their own.

    Of several published values, such as ``Mistral 51.0; GPT-4 64.1``, the nearest one counts.
    """
    is_label = itertools.takewhile(
        lambda name: not pd.api.types.is_numeric_dtype(table[name]), table.columns
    )
    labels = table[list(is_label)].fillna("").agg(" ".join, axis=1).str.split().str.join(" ")
    pairs = {}
    for name in map(str, table):
        ours = settings().published.get(name, re.sub(r"^published |, published$", "", name))
        if ours != name and ours in table:
            pairs[name] = ours
    for name, ours in pairs.items():
        if pd.api.types.is_numeric_dtype(table[name]):  # the decimals that the paper has
            decimals = max(Printed.parse(raw(value)).decimals or 0 for value in table[name])
            written = table[name].map(f"{{:.{decimals}f}}".format, na_action="ignore")
            table = table.assign(**{name: written})
        for index in table.index[table[name].notna() & table[ours].notna()]:
            value = raw(table.loc[index, ours])
            ends = []
            if len(pairs) == 1 and {"low", "high"} <= set(table):
                ends = [float(table.loc[index, end]) for end in ("low", "high")]
            cells = [
                Difference(labels[index], ours, text, value, "", proved=False)
                for text in table.loc[index, name].split("; ")
            ]
            yield min(cells, key=lambda cell: abs(_gap(cell))), ends


def compared(row: Mapping[str, str], record: Mapping[str, Any]) -> Compared:
    """List the cells of an artefact by their difference from the published ones.

    Of a table that was compared, these are the cells that differ; of one on other data, all cells
    that have a published value.
    """
    cells = [(Difference(**each), list[float]()) for each in record["differences"]]
    path = project.root() / "reports" / row["notebook"] / record["files"][0]
    if not record["compared"] and path.suffix == ".csv" and path.parent.name == "tables":
        cells = list(_next_to_ours(pd.read_csv(path)))
    if not cells:
        return Compared(row)
    cells.sort(key=lambda cell: -_size(cell[0]))
    lines = [_line(cell, ends, 1 if record["compared"] else 0) for cell, ends in cells]
    columns = [*_HEADER, "Why"]
    used = [at for at in range(len(columns)) if any(line[at] for line in lines)]
    why, _ = reasons_of(record["artefact"]).get((WHOLE_TABLE, WHOLE_TABLE), ("", False))
    shown = [[line[at] for at in used] for line in lines]
    return Compared(row, [columns[at] for at in used], shown, why)
