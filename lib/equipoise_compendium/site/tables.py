"""Tables of a page, each in a region that scrolls; every cell has the name of its column."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

PROSE = 160
"""Characters from which a cell wants room."""
NARROW = 4
"""Columns up to which a table without prose is never scrolled, out of the keyboard's way."""
_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
_ROW = re.compile(r"<tr\b[^>]*>.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<t([dh])\b([^>]*)>(.*?)</t\1>", re.DOTALL)
_NUMBER = re.compile(
    r"(≠ ?)?[-+−]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?\s?%?( printed .*)?|nan|", re.IGNORECASE
)


def _text(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def _cell_texts(row: str) -> list[str]:
    return [_text(cell[3]) for cell in _CELL.finditer(row)]


def _cells(row: str, scope: str, names: list[str], looks: list[str]) -> str:
    """A row whose cells say what they are.

    ``scope`` is that of its header cells; ``names`` and ``looks`` are those of the columns.
    """
    cells = list(_CELL.finditer(row))
    if not cells:
        return row
    marked_cells = []
    for column, cell in enumerate(cells):
        tag, attributes, content = cell.groups()
        if tag == "h" and not _text(content):
            tag = "d"  # an empty corner heads nothing
        elif tag == "h" and "scope=" not in attributes:
            attributes += f' scope="{scope}"'
        # In a row with merged cells, no cell can be told its column.
        if len(cells) == len(looks) and looks[column] and "class=" not in attributes:
            attributes += f' class="{looks[column]}"'
        if len(cells) == len(names) and names[column]:
            attributes += f' data-label="{html.escape(names[column])}"'
        marked_cells.append(f"<t{tag}{attributes}>{content}</t{tag}>")
    before = row[: cells[0].start()]
    after = row[cells[-1].end() :]
    return f"{before}{''.join(marked_cells)}{after}"


def _look(column: Sequence[str]) -> str:
    """How a column is set: as numbers, as prose that wants room, or neither."""
    if any(column) and all(map(_NUMBER.fullmatch, column)):
        return "number"
    if max(map(len, column)) > PROSE:
        return "wide"
    return ""


def _looks(body: str, n_columns: int) -> list[str]:
    """How each column of the body of a table is set, judged by the rows without merged cells."""
    rows = [_cell_texts(row) for row in _ROW.findall(body)]
    complete_rows = [row for row in rows if len(row) == n_columns]
    if not complete_rows:
        return [""] * n_columns
    return [_look(column) for column in zip(*complete_rows, strict=True)]


def _framed(match: re.Match[str]) -> str:
    table = match[0]
    # A table within another is of somebody else's making.
    if table.count("<table") > 1 or "<tbody>" not in table:
        return table
    head, _, body = table.partition("<tbody>")
    head_rows = _ROW.findall(head)
    names = _cell_texts(head_rows[-1]) if head_rows else []
    looks = _looks(body, len(names))
    head = _ROW.sub(lambda row: _cells(row[0], "col", [], looks), head)
    body = _ROW.sub(lambda row: _cells(row[0], "row", names, looks), body)
    caption = re.search(r"<caption\b[^>]*>(.*?)</caption>", head, re.DOTALL)
    if caption:
        label = _text(caption[1])
    else:
        label = ", ".join(["Table", *filter(None, names[:4])])
    scrolls = len(names) > NARROW or "wide" in looks
    tab = ' tabindex="0"' if scrolls else ""
    region = f'<div class="scroll" role="group"{tab} aria-label="{html.escape(label)}">'
    return f"{region}{head}<tbody>{body}</div>"


def framed(page: str) -> str:
    """A page whose tables are set so."""
    return _TABLE.sub(_framed, page)
