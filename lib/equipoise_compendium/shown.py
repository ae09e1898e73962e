"""What a notebook shows: tables and sentences as HTML, Markdown and plain text, all text from data escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from equipoise.problems import plain
from equipoise_compendium.claims import as_words
from equipoise_compendium.printed import PRINTED_FRACTION, Comparison, Printed, as_number, raw

MARKS = " better than"
"""End of the name of a column that marks another, whose name comes before it, by letters."""


def markdown_cell(text: object) -> str:
    """Text that Markdown shows as it stands: no markup, HTML, link or table cell ends in it."""
    escaped = html.escape(plain(" ".join(str(text).split())), quote=False)
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", escaped)


def markdown_row(cells: Iterable[object]) -> str:
    """A row of a Markdown table; every cell is escaped."""
    return f"| {' | '.join(map(markdown_cell, cells))} |\n"


def markdown_table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; every cell is escaped."""
    return f"{markdown_row(header)}| {' | '.join(['---'] * len(header))} |\n{''.join(map(markdown_row, rows))}"


def markdown_list(notes: Iterable[str]) -> str:
    """A Markdown list; every entry is escaped."""
    return "".join(f"- {markdown_cell(note)}\n" for note in notes)


@dataclass(frozen=True)
class Cell:
    """A cell of a table to look at.

    ``mark``: set small and raised behind it. ``printed``: what the paper prints instead.
    ``number``: set to the right.
    """

    text: str
    mark: str = ""
    printed: str = ""
    number: bool = False

    def as_html(self) -> str:
        """Its HTML, all of it escaped."""
        text, mark, printed = (html.escape(part) for part in (self.text, self.mark, self.printed))
        text += f"<sup>{mark}</sup>" if mark else ""
        text = f"<mark>≠ {text}</mark><br><small>printed {printed}</small>" if printed else text
        return f'<td class="number">{text}</td>' if self.number else f"<td>{text}</td>"

    def as_text(self) -> str:
        """Its words."""
        return " ".join(
            filter(None, [self.text, self.mark, self.printed and f"(printed {self.printed})"])
        )


def html_table(title: str, header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """An HTML table under a caption, if it has one; every cell is escaped."""
    head = "".join(f"<th>{html.escape(_words(name))}</th>" for name in header)
    cells = [[cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in row] for row in rows]
    body = "".join(f"<tr>{''.join(cell.as_html() for cell in row)}</tr>" for row in cells)
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _words(name: object) -> str:
    """A column's name as words: relevant_citations is no word."""
    return str(name).replace("_", " ")


def html_list(notes: Sequence[str]) -> str:
    """An HTML list, empty where there is nothing to list; every entry is escaped."""
    return f"<ul>{''.join(f'<li>{html.escape(note)}</li>' for note in notes)}</ul>" if notes else ""


@dataclass(frozen=True)
class Shown:
    """Something a notebook shows: its content by MIME type, and what is said of one, such as alternative text."""

    formats: Mapping[str, str]
    said: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.formats.get("text/plain", "")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[Any, Any]:  # noqa: ARG002
        return dict(self.formats), {kind: dict(words) for kind, words in self.said.items()}

    @classmethod
    def text(cls, words: str, markdown: str, page: str) -> Shown:
        """Something in words, in the three formats for words; nothing hidden in them is obeyed."""
        return cls(
            {"text/plain": plain(words), "text/markdown": plain(markdown), "text/html": plain(page)}
        )


def _decimals(printed: Iterable[str], ours: pd.Series, digits: int) -> int | None:
    """Decimals to show a column at: the printed precision, else ``digits``; None for what is no float."""
    if not pd.api.types.is_float_dtype(ours) and not any(
        isinstance(value, float) for value in ours
    ):
        return None
    if any(PRINTED_FRACTION.fullmatch(text.strip()) for text in printed):
        return digits
    return max(
        (parsed.decimals for parsed in map(Printed.parse, printed) if parsed.decimals is not None),
        default=digits,
    )


def _whole(column: pd.Series) -> bool:
    """Whether a column counts something, beyond yes and no."""
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    known = column.dropna()
    return bool((known % 1 == 0).all() and (known.abs() > 1).any())


def _cell(value: object, decimals: int | None, chance: bool) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    number = as_number(value)
    if number is None or decimals is None or isinstance(value, (int, np.integer)):
        return raw(value)
    text = f"{number + 0.0:.{decimals}f}"
    if chance and decimals and not text.strip("0."):
        return f"< .{1:0{decimals}}"  # no p is nothing
    return text if text.strip("-0.") else text.lstrip("-")  # no negative zero


def difference_lines(differences: Iterable[Mapping[str, str]]) -> list[str]:
    """Cells that differ: those of one reason in one line, each without a reason in its own."""
    groups: dict[tuple[str, int], list[str]] = {}
    for number, d in enumerate(differences):
        cell = (
            f"{d['row']}, {d['column']}: printed {d['printed']}, computed {d['ours'] or 'nothing'}"
        )
        groups.setdefault((d["reason"], 0 if d["reason"] else number), []).append(cell)
    return [
        f"{f'{len(cells)} cells: ' if len(cells) > 1 else ''}{'; '.join(cells)} ({reason or 'no reason is known'})"
        for (reason, _), cells in groups.items()
    ]


def _cells(
    table: pd.DataFrame,
    printed: Mapping[str, Iterable[str]],
    digits: int,
    differing: Mapping[tuple[int, int], str],
) -> tuple[list[str], list[list[Cell]]]:
    """Header and cells of a table; a column of marks stands raised behind the column that they belong to."""
    marks = {
        str(name).removesuffix(MARKS): name for name in table.columns if str(name).endswith(MARKS)
    }
    marks = {name: column for name, column in marks.items() if name in table}
    columns, parts = [name for name in table.columns if name not in marks.values()], []
    for name in columns:
        column, place = table[name], table.columns.get_loc(name)
        decimals = (
            None
            if name not in printed and _whole(column)
            else _decimals(printed.get(name, ()), column, digits)
        )
        behind = table[marks[name]] if name in marks else [""] * len(table)
        number = column.dtype != bool and (
            pd.api.types.is_numeric_dtype(column) or decimals is not None
        )
        chance = name not in printed and str(name).split(" ")[0] == "p"
        found = zip(
            [_cell(value, decimals, chance) for value in column], map(raw, behind), strict=True
        )
        parts.append(
            [
                Cell(*texts, differing.get((row, place), ""), number=number)
                for row, texts in enumerate(found)
            ]
        )
    return [_words(name) for name in columns], [list(row) for row in zip(*parts, strict=True)]


def show_table(
    caption: str, ours: pd.DataFrame, comparison: Comparison | None, digits: int
) -> Shown:
    """A table; where it is compared with a printed one, a cell that differs is marked, the printed one beneath it."""
    table, printed = (ours, {}) if comparison is None else (comparison.ours, comparison.printed)
    title, verdict, notes, differing = markdown_cell(caption), "", list[str](), {}
    if comparison is not None:
        differing = {
            (table.index.get_loc(d.row), table.columns.get_loc(d.column)): d.printed
            for d in comparison.differences
        }
        equal = comparison.cells - len(differing)
        verdict = f"{equal} of {comparison.cells} printed cells agree at the printed precision."
        title, notes = f"{title}. {verdict}", difference_lines(map(asdict, comparison.differences))
    columns, cells = _cells(table, printed, digits, differing)
    page = (
        f'<div class="equipoise-table"><p><b>{html.escape(caption)}.</b> {verdict}</p>'
        f'<div style="overflow-x: auto">{html_table("", columns, cells)}</div>{html_list(notes)}</div>'
    )
    texts = [[cell.as_text() for cell in row] for row in cells]
    markdown = f"{title}\n\n{markdown_table(columns, texts)}" + (
        "\n" + markdown_list(notes) if notes else ""
    )
    return Shown.text("\n".join([f"{caption}. {verdict}".strip(), *notes]), markdown, page)


def show_variant(
    caption: str, ours: pd.DataFrame, default: pd.DataFrame | None, variant: str, digits: int
) -> Shown:
    """A table made with other parameters than the paper's, beside the one made with the paper's, where there is one."""
    tables = {variant: ours} | ({} if default is None else {"as published": default})
    page, markdown = "", f"{markdown_cell(caption)}\n"
    for title, table in tables.items():
        columns, cells = _cells(table, {}, digits, {})
        page += html_table(title, columns, cells)
        texts = [[cell.as_text() for cell in row] for row in cells]
        markdown += f"\n{markdown_cell(title)}\n\n{markdown_table(columns, texts)}"
    page = (
        f'<div style="display: flex; flex-wrap: wrap; gap: 1em 2em; overflow-x: auto">{page}</div>'
    )
    page = f'<div class="equipoise-table"><p><b>{html.escape(caption)}.</b></p>{page}</div>'
    return Shown.text(f"{caption}, {variant}", markdown, page)


def show_words(caption: str, said: Iterable[tuple[str, str]]) -> Shown:
    """What is said and by whom, in lines as they stand; nothing in it is markup."""
    rows = [(who, plain(text).split("\n")) for who, text in said]
    cells = "".join(
        f"<tr><td><b>{html.escape(who)}</b></td><td>{'<br>'.join(map(html.escape, lines))}</td></tr>"
        for who, lines in rows
    )
    page = f'<div class="equipoise-table"><p><b>{html.escape(caption)}.</b></p><table><tbody>{cells}</tbody></table></div>'
    told = [
        f"{markdown_cell(who)}: {markdown_cell(line)}"
        for who, lines in rows
        for line in lines
        if line.strip()
    ]
    return Shown.text(
        f"{caption}.", f"{markdown_cell(caption)}\n\n" + "\n\n".join(told) + "\n", page
    )


def show_claim(claim: Mapping[str, Any]) -> Shown:
    """A claim with its verdict, the paper's words and their place, and the numbers that decide."""
    words, numbers = claim["statement"], as_words(claim)
    label = f"{claim['verdict'].capitalize()} ({claim['kind']})"
    quote = f"“{claim['quote']}” ({claim['place']})" if claim["quote"] else claim["place"]
    lines = [
        f"<b>{label}:</b> {html.escape(words)}",
        html.escape(quote),
        f"<i>{html.escape(numbers)}</i>",
    ]
    page = f'<p class="claim {claim["verdict"].replace(" ", "-")}">{"<br>".join(filter(None, lines))}</p>'
    quoted = f"\n\n> {markdown_cell(quote)}" if quote else ""
    markdown = f"**{label}:** {markdown_cell(words)}{quoted}\n\n*{markdown_cell(numbers)}*"
    return Shown.text(f"{label}: {words} [{quote}] ({numbers})", markdown, page)


def folded(title: str, shown: Sequence[Shown]) -> Shown:
    """Tables behind a title that opens."""
    page, markdown = (
        "".join(one.formats[kind] for one in shown) for kind in ("text/html", "text/markdown")
    )
    page = f"<details><summary>{html.escape(title)}</summary>{page}</details>"
    return Shown.text(title, f"{markdown_cell(title)}\n\n{markdown}", page)


def show_answer(sentences: Sequence[str]) -> Shown:
    """What a notebook has found, in two or three sentences."""
    text = " ".join(sentences)
    page = f'<p class="answer"><b>Answer.</b> {html.escape(text)}</p>'
    return Shown.text(f"Answer. {text}", f"**Answer.** {markdown_cell(text)}", page)


def show_summary(rows: Sequence[Sequence[object]], notes: Sequence[str], used: str) -> Shown:
    """What a notebook has regenerated: a row for each artefact, the differences, and the versions used."""
    header = ["Artefact", "Status", "Printed cells", "Differing", "Findings"]
    table = html_table("What this notebook regenerates", header, rows) if rows else ""
    page = f'<div class="equipoise-table">{table}{html_list(notes)}<p>Made with {html.escape(used)}.</p></div>'
    tables = f"{markdown_table(header, rows)}\n" if rows else ""
    return Shown.text(
        f"Made with {used}",
        f"{tables}{markdown_list(notes)}\nMade with {markdown_cell(used)}.\n",
        page,
    )
