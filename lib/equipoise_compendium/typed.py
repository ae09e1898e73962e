"""Printed tables as they are typed in: what looks mistyped, and a picture to lay beside the page.

What cannot be right, such as a row of another length, is a fault; what is unusual, such as a cell
of other precision than its column, is a hint, since papers print such cells.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise_compendium import project
from equipoise_compendium.printed import EMPTY_CELLS, Printed, artefacts
from equipoise_compendium.tables import read_columns
from equipoise_compendium.words import number_of
from equipoise_compendium.writing import write_files

UNCHECKED = ["artefact", "source", "sha256"]
"""Columns of ``unchecked.csv``: tables that a program read, and that nobody has looked at."""
_MOSTLY = 0.75
"""Share of a column's cells from which the others are unusual."""
_LOOKALIKES = {"O": "0", "o": "0", "l": "1", "I": "1", "S": "5", "–": "-", "—": "-", ",": "."}
_NUMBERLIKE = re.compile(r"[+\-–—−]?[\dOolIS]*[.,]?[\dOolIS]+")


@dataclass(frozen=True)
class Remark:
    """What is to be looked at again: a place in the file, and why; a fault or only a hint."""

    line: int
    column: str
    words: str
    is_fault: bool

    def __str__(self) -> str:
        kind = "fault" if self.is_fault else "look again"
        column = f", {self.column}" if self.column else ""
        return f"{kind}: line {self.line}{column}: {self.words}"


def path_of(artefact: str) -> Path:
    """Where the printed cells of an artefact are typed."""
    known = artefacts().index
    if artefact not in known:
        raise ValueError(
            f"{artefact} is not in data/published/artefacts.csv: add a line for it there; "
            f"the first of {len(known)} are {', '.join(known[:12])}"
        )
    return project.root() / "data" / "published" / f"{artefact}.csv"


def typed_artefacts() -> list[str]:
    """The artefacts whose printed cells are typed in."""
    return [str(name) for name in artefacts().index if path_of(str(name)).is_file()]


def remarks(artefact: str) -> list[Remark]:
    """What looks mistyped in a printed table."""
    path = path_of(artefact)
    if not path.is_file():
        name = path.relative_to(project.root()).as_posix()
        raise ValueError(f"{artefact} is not typed in yet: no file {name}")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    if len(rows) < 2:
        return [Remark(1, "", "a header and no row under it", is_fault=True)]
    shape = _shape(rows)
    return shape or _cells(rows)


def _shape(rows: Sequence[Sequence[str]]) -> list[Remark]:
    """Faults of the header, and rows of another length."""
    header = rows[0]
    found = []
    for name, count in Counter(header).items():
        if not name.strip():
            found.append(Remark(1, "", "a column without a name", is_fault=True))
        elif count > 1:
            found.append(Remark(1, name, f"the column stands {count} times", is_fault=True))
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            words = f"{len(row)} cells found, {len(header)} wanted, as in the header"
            found.append(Remark(line, "", words, is_fault=True))
    repeated = [line for line, row in enumerate(rows[1:], start=2) if row in rows[1 : line - 1]]
    for line in repeated:
        found.append(Remark(line, "", "the row stands above already", is_fault=True))
    return found


def _cells(rows: Sequence[Sequence[str]]) -> list[Remark]:
    """Remarks on cells, by comparing each with the others of its column."""
    found = []
    for place, column in enumerate(rows[0]):
        cells = [(line, row[place]) for line, row in enumerate(rows[1:], start=2)]
        for line, cell in cells:
            if cell != cell.strip():
                found.append(Remark(line, column, f"blanks around {cell!r}", is_fault=True))
        texts = [(line, cell) for line, cell in cells if cell.strip() not in EMPTY_CELLS]
        found += _numbers(column, texts)
    return sorted(found, key=lambda remark: remark.line)


def _numbers(column: str, cells: Sequence[tuple[int, str]]) -> list[Remark]:
    """Remarks on a column of numbers; none on one of words."""
    numbers = [(line, cell, Printed.parse(cell)) for line, cell in cells]
    parsed = [(line, cell, number) for line, cell, number in numbers if number.number is not None]
    found = []
    for line, cell, number in numbers:
        if number.number is None and _NUMBERLIKE.fullmatch(cell) and re.search(r"\d", cell):
            guess = "".join(_LOOKALIKES.get(letter, letter) for letter in cell)
            words = f"{cell!r} is no number; is {guess} printed?"
            found.append(Remark(line, column, words, is_fault=True))
    if len(parsed) < _MOSTLY * len(numbers) or len(parsed) < 3:
        return found
    return [*found, *_precision(column, parsed), *_signs(column, parsed)]


def _precision(column: str, cells: Sequence[tuple[int, str, Printed]]) -> list[Remark]:
    """Cells of other precision than most of their column."""
    usual, count = Counter(number.decimals for _, _, number in cells).most_common(1)[0]
    if usual is None or count < _MOSTLY * len(cells):
        return []
    found = []
    for line, cell, number in cells:
        if number.decimals not in (usual, None):
            decimals = number_of(number.decimals or 0, "decimal")
            words = f"{cell} has {decimals}, most of the column {usual}"
            if number.decimals == 0:
                words += "; a whole number is compared as it stands, so type its zeros if printed"
            found.append(Remark(line, column, words, is_fault=False))
    return found


def _signs(column: str, cells: Sequence[tuple[int, str, Printed]]) -> list[Remark]:
    """Numbers without a sign where most of their column have one."""
    nonzero = [(line, cell) for line, cell, number in cells if number.number]
    signed = [cell for _, cell in nonzero if cell.strip()[0] in "+-−"]
    if len(signed) < _MOSTLY * len(nonzero):
        return []
    return [
        Remark(line, column, f"{cell} has no sign, most of the column have one", is_fault=False)
        for line, cell in nonzero
        if cell not in signed
    ]


def faults_of_all() -> list[str]:
    """Faults, not hints, of every table that is typed in."""
    lines = []
    for artefact in typed_artefacts():
        lines += [f"{artefact}, {remark}" for remark in remarks(artefact) if remark.is_fault]
    return lines


# --- what a program has read ----------------------------------------------------------------------


def unchecked(artefact: str) -> str:
    """The file that a table was read from, if no person has confirmed it; else empty."""
    paper = artefact.partition("/")[0]
    if not (project.root() / "data" / "published" / paper / "unchecked.csv").is_file():
        return ""
    table = read_columns(project.data("published", paper, "unchecked.csv"), UNCHECKED)
    sources = table.loc[table["artefact"] == artefact, "source"]
    return "" if sources.empty else str(sources.iloc[0])


def _unchecked_rows(path: Path) -> list[list[str]]:
    if not path.is_file():
        return []
    return read_columns(path, UNCHECKED).to_numpy().tolist()


def _csv_text(rows: Sequence[Sequence[str]]) -> str:
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            quoted = cell.replace('"', '""')
            cells.append(f'"{quoted}"' if re.search('[",\n]', cell) else cell)
        lines.append(",".join(cells) + "\n")
    return "".join(lines)


def type_in(
    artefact: str, rows: Sequence[Sequence[str]], source: Path, *, force: bool, sure: bool
) -> Path:
    """Write the cells that were read from a file; unless ``sure``, they are marked unchecked."""
    path = path_of(artefact)
    if path.exists() and not force:
        name = path.relative_to(project.root()).as_posix()
        raise ValueError(f"{source}: {name} is there already; --force replaces it")
    marks = path.with_name("unchecked.csv")
    others = [row for row in _unchecked_rows(marks) if row[0] != artefact]
    if not sure:
        others.append([artefact, source.name, project.sha256(source)])
    contents: dict[Path, str] = {path: _csv_text(rows)}
    if others or marks.is_file():
        contents[marks] = _csv_text([UNCHECKED, *others])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_files(contents)
    return path


def confirm(artefact: str) -> None:
    """Note that a person has held a table against the page."""
    if not unchecked(artefact):
        raise ValueError(f"{artefact} is not marked as unchecked")
    marks = path_of(artefact).with_name("unchecked.csv")
    others = [row for row in _unchecked_rows(marks) if row[0] != artefact]
    write_files({marks: _csv_text([UNCHECKED, *others])})


# --- the picture ----------------------------------------------------------------------------------


def picture(artefact: str, kind: str) -> bytes:
    """What is typed in, drawn as a table under its paper, number, title and page."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from equipoise_compendium import plots

    mpl.use("Agg")  # no window is wanted
    with path_of(artefact).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    entry = artefacts().loc[artefact]
    marked = {(remark.line, remark.column) for remark in remarks(artefact)}
    widths = []
    for place in range(len(rows[0])):
        longest = max(len(row[place]) for row in rows if place < len(row))
        widths.append(longest + 2)
    size = (max(4.0, 0.085 * sum(widths)), 0.8 + 0.24 * len(rows))
    figure = Figure(figsize=size, layout="none")  # type: ignore[arg-type] # each cell has its place
    ax = figure.add_axes((0, 0, 1, 1))
    ax.axis("off")
    ax.set(xlim=(0, sum(widths)), ylim=(len(rows) + 0.5, -2.5))
    title = f"{entry['paper']}, {entry['artefact']}, {entry['place']}: {entry['title']}"
    ax.text(0, -1.5, plots.literal(title), fontsize=9, weight="bold")
    for line, row in enumerate(rows, start=1):
        for place, cell in enumerate(row[: len(widths)]):
            is_marked = (line, rows[0][place]) in marked
            style: dict[str, Any] = (
                {"color": plots.COLOURS[1], "weight": "bold"} if is_marked else {}
            )
            ax.text(sum(widths[:place]), line - 1, plots.literal(cell), **style)
    ax.axhline(0.4, color=plots.GREY, linewidth=0.6)
    return plots.rendered(figure, kind, title, artefact)
