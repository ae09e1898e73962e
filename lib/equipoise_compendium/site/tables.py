"""Tables of a page: each in a region that scrolls, numbers to the right, every cell with the name of its column."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

PROSE = 160
"""Characters from which a cell wants room."""
NARROW = 4
"""Columns up to which a table without prose is never scrolled, and so has no place in the order of the keyboard."""
_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
_ROW = re.compile(r"<tr\b[^>]*>.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<t([dh])\b([^>]*)>(.*?)</t\1>", re.DOTALL)
_NUMBER = re.compile(
    r"(≠ ?)?[-+−]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?\s?%?( printed .*)?|nan|", re.IGNORECASE
)


def _text(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def _cells(row: str, kind: str, names: list[str], looks: list[str]) -> str:
    """A row whose cells say what they are: ``kind`` is that of its header cells; the columns have names and looks."""
    cells = list(_CELL.finditer(row))
    parts = []
    for place, cell in enumerate(cells):
        tag, attributes = cell[1], cell[2]
        if tag == "h" and not _text(cell[3]):
            tag = "d"  # an empty corner heads nothing
        elif tag == "h" and "scope=" not in attributes:
            attributes += f' scope="{kind}"'
        if len(cells) == len(looks) and looks[place] and "class=" not in attributes:
            attributes += f' class="{looks[place]}"'
        if len(cells) == len(names) and names[place]:
            attributes += f' data-label="{html.escape(names[place])}"'
        parts.append(f"<t{tag}{attributes}>{cell[3]}</t{tag}>")
    return f"{row[: cells[0].start()]}{''.join(parts)}{row[cells[-1].end() :]}" if cells else row


def _look(column: Sequence[str]) -> str:
    """How a column is set: as numbers, as prose that wants room, or neither."""
    if any(column) and all(map(_NUMBER.fullmatch, column)):
        return "number"
    return "wide" if max(map(len, column)) > PROSE else ""


def _framed(found: re.Match[str]) -> str:
    table = found[0]
    if (
        table.count("<table") > 1 or "<tbody>" not in table
    ):  # one within another, of somebody else's making
        return table
    head, _, body = table.partition("<tbody>")
    heads = _ROW.findall(head)
    names = [_text(cell[3]) for cell in _CELL.finditer(heads[-1])] if heads else []
    rows = [[_text(cell[3]) for cell in _CELL.finditer(row)] for row in _ROW.findall(body)]
    columns = list(zip(*[row for row in rows if len(row) == len(names)], strict=True)) or [
        ("",)
    ] * len(names)
    looks = [_look(column) for column in columns]
    head = _ROW.sub(lambda row: _cells(row[0], "col", [], looks), head)
    body = _ROW.sub(lambda row: _cells(row[0], "row", names, looks), body)
    caption = re.search(r"<caption\b[^>]*>(.*?)</caption>", head, re.DOTALL)
    label = _text(caption[1]) if caption else ", ".join(["Table", *filter(None, names[:4])])
    tab = ' tabindex="0"' if len(names) > NARROW or "wide" in looks else ""
    return f'<div class="scroll" role="group"{tab} aria-label="{html.escape(label)}">{head}<tbody>{body}</div>'


def framed(page: str) -> str:
    """A page with its tables so."""
    return _TABLE.sub(_framed, page)
