"""Reports: save a table or a figure, hold it against the printed one, and keep the ledger.

A notebook opens one `Report`, gives it each table and figure under the artefact's name (``gfrc/table-1``) or a name
of its own, and ends with `Report.finish`. What the paper prints lies in ``data/published``; cells are compared at the
printed precision, and every cell that differs needs a reason in ``data/published/explanations.csv``. Code, not the
author, decides the status of an artefact.
"""

from __future__ import annotations

import html
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Literal, TextIO

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise import plots, project
from equipoise.tables import read_columns

__all__ = [
    "STATUSES",
    "STATUS_MEANINGS",
    "Claim",
    "Comparison",
    "Difference",
    "Ledger",
    "Report",
    "Shown",
    "artefacts",
    "compare",
    "markdown_cell",
    "markdown_table",
    "printed_table",
    "save_figure",
    "write_csv",
]

STATUSES = ("absent", "kept", "replica", "derived", "explained", "exact")
"""Statuses of an artefact, from the lowest: a step to the left is a fall."""

STATUS_MEANINGS = {
    "exact": "every printed cell equals ours at the printed precision",
    "explained": "some cells differ, each with its reason",
    "derived": "computed from, or compared with, other printed numbers",
    "replica": "computed on other, named data; its claims hold or do not hold there",
    "kept": "regenerated earlier; its data cannot be reached now",
    "absent": "not regenerated, with the reason",
}
"""What each status says, from the highest."""

Basis = Literal["recomputed", "derived", "replica"]

REPORT_FOLDER_VARIABLE = "EQUIPOISE_REPORT_FOLDER"
VARIANT_VARIABLE = "EQUIPOISE_VARIANT"
MANIFEST = "manifest.json"
CSV_DIGITS = "%.12g"

_ARTEFACT_COLUMNS = ["paper", "artefact", "kind", "title", "place", "absent_because"]
_PRINTED_NUMBER = re.compile(r"(?P<number>[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?)\s*(?P<marks>[^\d\s.,/+-]*)")
_PRINTED_FRACTION = re.compile(r"\d+/\d+")
_NOT_PRINTED = ("", "-", "–", "—")


# --- published tables and their cells ----------------------------------------------------------------------------


def artefacts() -> pd.DataFrame:
    """All tables and figures of the four papers.

    Returns
    -------
    DataFrame, columns paper, artefact, kind, title, place, absent_because
        Indexed by name, such as ``gfrc/table-1``.

    Examples
    --------
    >>> artefacts().groupby("paper", sort=False).size().to_dict()
    {'gfrc': 7, 'gfrc2': 10, 'permutations': 7, 'thesis': 51}
    """
    # not noted as used: the list says nothing about what a report holds
    table = read_columns(project.root() / "data" / "published" / "artefacts.csv", _ARTEFACT_COLUMNS)
    return table.set_index(table["paper"] + "/" + table["artefact"])


def printed_table(artefact: str) -> pd.DataFrame:
    """A table as the paper prints it, every cell as text.

    Parameters
    ----------
    artefact : str
        Such as ``gfrc/table-1``.

    Returns
    -------
    DataFrame of str

    Raises
    ------
    FileNotFoundError
        If ``data/published`` has no such table.

    Examples
    --------
    >>> printed_table("gfrc2/table-5")["GFRC"].tolist()
    ['0.382158', '0.362287']
    """
    path = project.data("published", *f"{artefact}.csv".split("/"))
    return pd.read_csv(path, dtype=str, keep_default_na=False)


@dataclass(frozen=True)
class _Printed:
    """A printed cell: its number and half a unit of its last place, or its text."""

    number: float | None
    half_unit: float
    decimals: int | None

    @classmethod
    def parse(cls, text: str) -> _Printed:
        bare = text.strip().replace("−", "-")
        if _PRINTED_FRACTION.fullmatch(bare):
            return cls(float(Fraction(bare)), 0.0, None)
        match = _PRINTED_NUMBER.fullmatch(bare)
        if match is None or not re.search(r"\d", match["number"]):
            return cls(None, 0.0, None)
        digits = match["number"].replace(",", "")
        decimals = len(digits.partition(".")[2])
        # a whole number is taken at its word: 1 beside 0.6 is no rounding of 0.6
        return cls(float(digits), 0.5 * 10.0**-decimals if decimals else 0.0, decimals)

    def agrees(self, ours: object, text: str) -> bool:
        if self.number is None:
            return isinstance(ours, str) and ours.strip() == text.strip()
        value = _as_number(ours)
        return value is not None and abs(value - self.number) <= self.half_unit + 1e-9 * max(1.0, abs(self.number))


def _as_number(value: object) -> float | None:
    if isinstance(value, (bool, np.bool_)) or value is None:
        return None
    if isinstance(value, (int, float, np.integer, np.floating)):
        return None if np.isnan(float(value)) else float(value)
    return None


def _blank(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)) or value == ""


def _raw(value: object) -> str:
    """A cell of ours as plain text, at the digits that CSV files keep."""
    if _blank(value):
        return ""
    number = _as_number(value)
    if number is None:
        return str(value)
    return CSV_DIGITS % (number + 0.0)


@dataclass(frozen=True)
class Difference:
    """A cell that is not what the paper prints.

    Parameters
    ----------
    row, column : str
        Where: the values of the key columns, joined by spaces, and the column.
    printed, ours : str
        The cell as printed, and ours at full precision; empty where there is none.
    reason : str
        From ``explanations.csv``; empty where nobody has given one.

    Examples
    --------
    >>> Difference("bing-1 GF", "RATINGS DistrSim", "0.5785", "0.578417", "rounded twice").reason
    'rounded twice'
    """

    row: str
    column: str
    printed: str
    ours: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Our table beside a printed one.

    Attributes
    ----------
    against : str
        Name of the printed table.
    ours, printed : DataFrame
        Aligned: the rows and columns of the printed table, in its order.
    keys : tuple of str
        Columns that identify a row.
    cells : int
        Number of printed cells that were compared.
    differences : tuple of Difference
    largest : float or None
        Largest absolute difference between a printed and a computed number; None where no number was compared.

    Examples
    --------
    >>> ours = printed_table("gfrc2/table-5").set_index("run").astype(float).reset_index()
    >>> result = compare(ours, "gfrc2/table-5", ["run"])
    >>> result.cells, result.differences, result.largest
    (8, (), 0.0)
    """

    against: str
    ours: pd.DataFrame
    printed: pd.DataFrame
    keys: tuple[str, ...]
    cells: int
    differences: tuple[Difference, ...]
    largest: float | None


def _explanations(artefact: str) -> dict[tuple[str, str], str]:
    table = read_columns(project.data("published", "explanations.csv"), ["artefact", "row", "column", "reason"])
    chosen = table[table["artefact"] == artefact]
    return {(row.row, row.column): row.reason for row in chosen.itertuples()}


def compare(ours: pd.DataFrame, against: str, keys: Sequence[str], columns: Sequence[str] | None = None) -> Comparison:
    """Hold a table against a printed one, cell by cell, at the printed precision.

    A number agrees if it lies within half a unit of the last printed place; a whole number or a fraction agrees only
    with the same number; marks of significance behind a number are not compared; other text must be the same. Cells
    that the paper leaves empty are not compared.

    Parameters
    ----------
    ours : DataFrame
        With at least the columns and rows of the printed table.
    against : str
        Name of the printed table, such as ``gfrc/table-1``.
    keys : sequence of str
        Columns that identify a row in both.
    columns : sequence of str, optional
        Printed columns to compare besides the keys, where the others cannot be computed; the default is all.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If columns are missing, keys are not unique, or our table lacks a printed row.

    Examples
    --------
    >>> ours = pd.DataFrame({"run": ["COPWA-CS-QD-MN-2", "ORG-CS-D-MN-1"], "EGNP": [0.0017276, 0.0011752],
    ...     "EGF PRONOUN": [0.0038751, 0.002913], "EGF HINDEX": [0.0024293, 0.0020244], "GFRC2": [0.0026773, 0.01]})
    >>> compare(ours, "gfrc2/table-3", ["run"]).differences[0].ours
    '0.01'
    """
    printed = printed_table(against)
    if columns is not None:
        printed = printed[[*keys, *columns]]
    missing = [column for column in printed.columns if column not in ours.columns]
    if missing:
        raise ValueError(f"{against}: our table has no column {', '.join(missing)}; it has {', '.join(ours.columns)}")
    labels, our_labels = (
        table[list(keys)].map(_raw).agg(" ".join, axis=1) if keys else pd.Series(map(str, range(len(table))))
        for table in (printed, ours)
    )
    if labels.duplicated().any() or our_labels.duplicated().any():
        raise ValueError(f"{against}: the keys {', '.join(keys)} do not identify a row")
    absent = [label for label in labels if label not in set(our_labels)]
    if absent:
        raise ValueError(f"{against}: our table has no row {'; '.join(absent)}")
    aligned = ours.set_axis(pd.Index(our_labels), axis=0).loc[labels, list(printed.columns)]
    reasons = _explanations(against)
    cells, largest, differences = 0, None, []
    for column in printed.columns:
        if column in keys:
            continue
        for label, text, value in zip(labels, printed[column], aligned[column], strict=True):
            if text.strip() in _NOT_PRINTED:
                continue
            cells += 1
            parsed, number = _Printed.parse(text), _as_number(value)
            if parsed.number is not None and number is not None:
                largest = max(largest or 0.0, abs(number - parsed.number))
            if not parsed.agrees(value, text):
                differences.append(Difference(label, column, text, _raw(value), reasons.get((label, column), "")))
    printed_rows = printed.reset_index(drop=True)
    return Comparison(
        against, aligned.reset_index(drop=True), printed_rows, tuple(keys), cells, tuple(differences), largest
    )


# --- writing ------------------------------------------------------------------------------------------------------


def write_csv(table: pd.DataFrame, path: Path | TextIO) -> None:
    """Write a table as CSV at 12 significant digits, the same bytes everywhere.

    Parameters
    ----------
    table : DataFrame
    path : Path or text stream

    Examples
    --------
    >>> write_csv(pd.DataFrame({"run": ["a"], "value": [1 / 3]}), sys.stdout)
    run,value
    a,0.333333333333
    """
    tidy = table.copy()
    for column in tidy.columns[[pd.api.types.is_float_dtype(dtype) for dtype in tidy.dtypes]]:
        tidy[column] = tidy[column] + 0.0  # no negative zero
    tidy.to_csv(path, index=False, float_format=CSV_DIGITS, lineterminator="\n", encoding="utf-8")


def markdown_cell(text: object) -> str:
    r"""Text that Markdown shows as it stands: no markup, HTML, link or table cell ends in it.

    Examples
    --------
    >>> print(markdown_cell("a|b <i>*x*</i>"))
    a\|b &lt;i&gt;\*x\*&lt;/i&gt;
    """
    escaped = html.escape(" ".join(str(text).split()), quote=False)
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", escaped)


def markdown_table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; every cell is escaped.

    Examples
    --------
    >>> print(markdown_table(["run", "R"], [["a", 0.5]]), end="")
    | run | R |
    | --- | --- |
    | a | 0.5 |
    """
    lines = [list(map(markdown_cell, header)), ["---"] * len(header), *(list(map(markdown_cell, row)) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@dataclass(frozen=True)
class Shown:
    """Something a notebook shows, in as many formats as it has.

    Parameters
    ----------
    formats : mapping of str to str
        Content by MIME type.

    Examples
    --------
    >>> Shown({"text/plain": "a table"})
    a table
    """

    formats: Mapping[str, str]

    def __repr__(self) -> str:
        return self.formats.get("text/plain", "")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        return dict(self.formats)


def _decimals(printed: pd.Series | None, ours: pd.Series, digits: int) -> int | None:
    """Decimals to show a column at: the printed precision, else ``digits``; None for what is no float."""
    if not pd.api.types.is_float_dtype(ours) and not any(isinstance(value, float) for value in ours):
        return None
    if printed is None:
        return digits
    shown = [parsed.decimals for text in printed if (parsed := _Printed.parse(text)).decimals is not None]
    fractions = any(_PRINTED_FRACTION.fullmatch(text.strip()) for text in printed)
    return digits if fractions else max(shown, default=digits)


def _cell(value: object, decimals: int | None) -> str:
    number = _as_number(value)
    if _blank(value) or number is None:
        return "" if _blank(value) else str(value)
    if isinstance(value, (int, np.integer)) or decimals is None:
        return _raw(value)
    text = f"{number + 0.0:.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def _html_table(title: str, table: pd.DataFrame, texts: list[list[str]], marked: set[tuple[int, int]]) -> str:
    head = "".join(f"<th>{html.escape(str(column))}</th>" for column in table.columns)
    body = []
    for row, cells in enumerate(texts):
        parts = []
        for column, cell in enumerate(cells):
            text = html.escape(cell)
            parts.append(f"<td><mark>≠ {text}</mark></td>" if (row, column) in marked else f"<td>{text}</td>")
        body.append(f"<tr>{''.join(parts)}</tr>")
    caption = f"<caption>{html.escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _difference_lines(differences: Sequence[Difference]) -> list[str]:
    variant = os.environ.get(VARIANT_VARIABLE)
    unknown = f"made with {variant}" if variant else "no reason is known"
    return [
        f"{d.row}, {d.column}: printed {d.printed}, computed {d.ours or 'nothing'} ({d.reason or unknown})"
        for d in differences
    ]


def _show_table(caption: str, ours: pd.DataFrame, comparison: Comparison | None, digits: int) -> Shown:
    printed = comparison.printed if comparison is not None else None
    shown = comparison.ours if comparison is not None else ours
    decimals = [
        _decimals(printed[column] if printed is not None else None, shown[column], digits) for column in shown.columns
    ]
    texts = [
        [_cell(value, places) for value, places in zip(row, decimals, strict=True)]
        for row in shown.itertuples(index=False, name=None)
    ]
    marked: set[tuple[int, int]] = set()
    if comparison is None or printed is None:
        parts = [_html_table("Computed", shown, texts, marked)]
        verdict, notes = "", []
        title = markdown_cell(caption)
        rows = texts
    else:
        labels = shown[list(comparison.keys)].map(_raw).agg(" ".join, axis=1).tolist()
        columns = list(shown.columns)
        marked = {(labels.index(d.row), columns.index(d.column)) for d in comparison.differences}
        parts = [
            _html_table("Computed", shown, texts, marked),
            _html_table(f"Printed ({comparison.against})", shown, printed.to_numpy().tolist(), marked),
        ]
        equal = comparison.cells - len(comparison.differences)
        verdict = f"{equal} of {comparison.cells} printed cells agree at the printed precision."
        notes = _difference_lines(comparison.differences)
        title = f"{markdown_cell(caption)}. {verdict}"
        rows = [
            [
                f"{cell} (printed {printed.iloc[row, column]})" if (row, column) in marked else cell
                for column, cell in enumerate(cells)
            ]
            for row, cells in enumerate(texts)
        ]
    listed = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    page = (
        f'<div class="equipoise-table"><p><b>{html.escape(caption)}.</b> {verdict}</p>'
        f'<div style="display: flex; flex-wrap: wrap; gap: 1em 2em; align-items: flex-start; overflow-x: auto">'
        f"{''.join(parts)}</div>{f'<ul>{listed}</ul>' if listed else ''}</div>"
    )
    markdown = f"{title}\n\n{markdown_table(shown.columns.tolist(), rows)}"
    if notes:
        markdown += "\n" + "".join(f"- {markdown_cell(note)}\n" for note in notes)
    plain = "\n".join([f"{caption}. {verdict}".strip(), *notes])
    return Shown({"text/plain": plain, "text/markdown": markdown, "text/html": page})


def save_figure(figure: Figure, folder: Path, name: str, caption: str) -> str:
    """Save a figure as SVG and PNG, the same bytes at every run, and close it.

    Parameters
    ----------
    figure : Figure
    folder : Path
        Made if need be.
    name : str
        File name without ending; it also seeds the ids inside the SVG.
    caption : str
        Becomes the title inside the SVG.

    Returns
    -------
    str
        The SVG.

    Examples
    --------
    >>> import tempfile
    >>> figure, ax = plt.subplots()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     "<svg" in save_figure(figure, Path(folder), "empty", "Nothing")
    True
    """
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": name}):
        metadata = {"Date": None, "Creator": None, "Title": caption}
        figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata=metadata)
        figure.savefig(folder / f"{name}.png", bbox_inches="tight", dpi=144, metadata={"Software": None})
    plt.close(figure)
    return (folder / f"{name}.svg").read_text(encoding="utf-8")


# --- reports ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A finding of a paper, put as a sentence that holds or does not hold on the data at hand.

    Parameters
    ----------
    statement : str
    holds : bool
    evidence : str
        The numbers that decide.

    Examples
    --------
    >>> Claim("First Utterance leads", False, "nDCG@3 0.517 against 0.589").holds
    False
    """

    statement: str
    holds: bool
    evidence: str


@dataclass
class _Record:
    artefact: str
    basis: Basis
    data: str
    note: str
    files: list[str]
    cells: int = 0
    largest: float | None = None
    differences: list[Difference] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    @property
    def status(self) -> str:
        if self.basis != "recomputed":
            return self.basis
        return "explained" if self.differences else "exact"

    def entry(self) -> dict[str, Any]:
        return {"status": self.status, **asdict(self)}


def _slug(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?", name):
        raise ValueError(f"{name!r} is no name for a table or figure: letters, digits, '.', '_', '-', at most one '/'")
    return name.replace("/", "-")


class Report:
    """The tables and figures of one notebook, saved and compared as they are made.

    Under `equipoise build` it writes where the build says. In a notebook run by hand it writes to
    ``reports/variants/by-hand/<notebook>``, and so never over the committed report.

    Parameters
    ----------
    notebook : str
        Name of the notebook, without ending.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["EQUIPOISE_REPORT_FOLDER"] = folder
    ...     report = Report("example")
    ...     table = report.table("scores", pd.DataFrame({"run": ["a"], "R": [0.25]}), caption="Scores")
    ...     sorted(path.name for path in (Path(folder) / "tables").iterdir())
    ['scores.csv', 'scores.md']
    >>> del os.environ["EQUIPOISE_REPORT_FOLDER"]
    """

    def __init__(self, notebook: str) -> None:
        self.notebook = notebook
        given = os.environ.get(REPORT_FOLDER_VARIABLE)
        if given:
            self.folder = Path(given)
        else:
            self.folder = project.root() / "reports" / "variants" / "by-hand" / _slug(notebook)
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._known = artefacts()
        self._records: dict[str, _Record] = {}
        plots.use_style()

    def table(
        self,
        name: str,
        ours: pd.DataFrame,
        keys: Sequence[str] = (),
        *,
        caption: str = "",
        against: str | None = None,
        columns: Sequence[str] | None = None,
        basis: Basis = "recomputed",
        data: str = "",
        note: str = "",
        digits: int = 4,
    ) -> Shown:
        """Save a table; if it is a paper's, hold it against the printed one.

        Parameters
        ----------
        name : str
            Artefact (``gfrc/table-1``), or a name of the notebook's own.
        ours : DataFrame
            The whole of it is saved as CSV; shown are the rows and columns that the paper prints.
        keys : sequence of str
            Columns that identify a row; needed to compare.
        caption : str
            The default is the artefact's title.
        against : str, optional
            Printed table to compare with; the default is the artefact's own, where it is published as numbers.
        columns : sequence of str, optional
            Printed columns to compare, where the others cannot be computed; the default is all.
        basis : {"recomputed", "derived", "replica"}
            From the study's data; from other printed numbers; from other data.
        data : str
            The data it was made from, in words for the ledger.
        note : str
            What a reader of the ledger should know.
        digits : int
            Decimals to show where no printed precision is known.

        Returns
        -------
        Shown
            Both tables side by side, differing cells marked.

        Raises
        ------
        ValueError
            If the name is neither an artefact nor fit for a file, or a replica does not name its data.
        """
        comparison = self._compare(name, ours, keys, against, columns, basis)
        caption = caption or self._title(name)
        shown = _show_table(caption, ours, comparison, digits)
        folder = self.folder / "tables"
        folder.mkdir(exist_ok=True)
        write_csv(ours, folder / f"{_slug(name)}.csv")
        (folder / f"{_slug(name)}.md").write_text(shown.formats["text/markdown"], encoding="utf-8")
        self._record(name, basis, data, note, [f"tables/{_slug(name)}.{kind}" for kind in ("csv", "md")], comparison)
        return shown

    def figure(
        self,
        name: str,
        drawn: Axes | Figure,
        caption: str = "",
        *,
        values: pd.DataFrame | None = None,
        keys: Sequence[str] = (),
        against: str | None = None,
        basis: Basis = "derived",
        data: str = "",
        note: str = "",
    ) -> Shown:
        """Save a figure as SVG and PNG, with the values it shows as CSV.

        Parameters
        ----------
        name : str
            Artefact (``gfrc/figure-1``), or a name of the notebook's own.
        drawn : Axes or Figure
            It is closed.
        caption : str
            What the figure shows, for those who cannot see it too; the default is the artefact's title.
        values : DataFrame, optional
            The plotted values.
        keys, against
            Compare the values with a printed table, as for `table`; only if ``against`` is given.
        basis : {"recomputed", "derived", "replica"}
            "recomputed" where the figure prints numbers of its own, and ``against`` holds them.
        data, note
            As for `table`.

        Returns
        -------
        Shown

        Raises
        ------
        ValueError
            As for `table`.
        """
        comparison = None
        if against is not None:
            if values is None:
                raise ValueError(f"{name}: to compare a figure, give its values")
            comparison = compare(values, against, keys)
        elif basis == "recomputed" and name in self._known.index:
            raise ValueError(f"{name}: a figure without printed numbers to compare is derived or a replica")
        figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
        if figure is None:
            raise ValueError(f"{name}: these axes belong to no figure")
        caption = caption or self._title(name)
        svg = save_figure(figure, self.folder / "figures", _slug(name), caption)
        files = [f"figures/{_slug(name)}.{kind}" for kind in ("svg", "png")]
        if values is not None:
            write_csv(values, self.folder / "figures" / f"{_slug(name)}.csv")
            files.append(f"figures/{_slug(name)}.csv")
        self._record(name, basis, data, note, files, comparison)
        return Shown({"text/plain": caption, "image/svg+xml": svg})

    def claim(self, artefact: str, statement: str, holds: bool, evidence: str) -> Shown:
        """State a finding of the paper and whether it holds here.

        Parameters
        ----------
        artefact : str
            The table or figure, already reported, that the finding rests on.
        statement : str
            The finding, as a sentence.
        holds : bool
            Computed, not judged.
        evidence : str
            The numbers that decide.

        Returns
        -------
        Shown

        Raises
        ------
        ValueError
            If the artefact has not been reported yet.
        """
        if artefact not in self._records:
            raise ValueError(f"{artefact} has not been reported yet, so nothing can be claimed on it")
        claim = Claim(statement, bool(holds), evidence)
        self._records[artefact].claims.append(claim)
        verdict = "Holds" if claim.holds else "Does not hold"
        page = f"<p><b>{verdict}:</b> {html.escape(statement)} <i>({html.escape(evidence)})</i></p>"
        markdown = f"**{verdict}:** {markdown_cell(statement)} *({markdown_cell(evidence)})*"
        return Shown(
            {"text/plain": f"{verdict}: {statement} ({evidence})", "text/markdown": markdown, "text/html": page}
        )

    def finish(self) -> Shown:
        """Close the report: write its manifest, and sum up what agrees, what differs and why, and the versions.

        Returns
        -------
        Shown
        """
        versions = _versions()
        manifest = {
            "notebook": self.notebook,
            "artefacts": [record.entry() for record in self._records.values()],
            "inputs": project.used_files(),
            "versions": versions,
        }
        (self.folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        header = ["Artefact", "Status", "Printed cells", "Differing", "Claims that hold"]
        rows, notes = [], []
        for record in self._records.values():
            held = sum(claim.holds for claim in record.claims)
            claims = f"{held} of {len(record.claims)}" if record.claims else ""
            status = "variant" if os.environ.get(VARIANT_VARIABLE) else record.status
            rows.append([record.artefact, status, record.cells or "", len(record.differences) or "", claims])
            notes += [f"{record.artefact}, {line}" for line in _difference_lines(record.differences)]
        table = pd.DataFrame(rows, columns=header)
        used = ", ".join(f"{name} {number}" for name, number in versions.items())
        texts = [list(map(str, row)) for row in rows]
        listed = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        page = (
            f'<div class="equipoise-table">{_html_table("What this notebook regenerates", table, texts, set())}'
            f"{f'<ul>{listed}</ul>' if listed else ''}<p>Made with {html.escape(used)}.</p></div>"
        )
        bullets = "".join(f"- {markdown_cell(note)}\n" for note in notes)
        markdown = f"{markdown_table(header, rows)}\n{bullets}\nMade with {markdown_cell(used)}.\n"
        return Shown({"text/plain": f"Made with {used}", "text/markdown": markdown, "text/html": page})

    def _title(self, name: str) -> str:
        if name not in self._known.index:
            return name
        row = self._known.loc[name]
        return f"{str(row['artefact']).replace('-', ' ').capitalize()} of {row['paper']}: {row['title']}"

    def _compare(
        self,
        name: str,
        ours: pd.DataFrame,
        keys: Sequence[str],
        against: str | None,
        columns: Sequence[str] | None,
        basis: Basis,
    ) -> Comparison | None:
        if against is None and name in self._known.index and basis != "replica":
            against = name
        return None if against is None else compare(ours, against, keys, columns)

    def _record(
        self, name: str, basis: Basis, data: str, note: str, files: list[str], comparison: Comparison | None
    ) -> None:
        if name not in self._known.index:
            if "/" in name:
                raise ValueError(f"{name} is not in data/published/artefacts.csv")
            return
        if basis == "replica" and not data:
            raise ValueError(f"{name}: a replica says which data it was made from")
        record = _Record(name, basis, data, note, files)
        if comparison is not None:
            record.cells, record.largest = comparison.cells, comparison.largest
            record.differences = list(comparison.differences)
        self._records[name] = record


def _versions() -> dict[str, str]:
    """Versions of the libraries that the computation has loaded, of those the project depends on."""
    versions = {}
    for requirement in requires("equipoise") or []:
        name = re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0]
        module = {"pyyaml": "yaml", "scikit-learn": "sklearn", "ir-measures": "ir_measures"}.get(name, name)
        if module in sys.modules and not module.startswith(("ipykernel", "jupyter", "nb", "papermill", "pytest")):
            try:
                versions[name] = version(name)
            except PackageNotFoundError:
                continue
    return dict(sorted(versions.items()))


# --- ledger -------------------------------------------------------------------------------------------------------

_LEDGER_COLUMNS = [
    "paper",
    "artefact",
    "title",
    "status",
    "notebook",
    "data",
    "cells",
    "differing",
    "largest_difference",
    "claims",
    "claims_that_hold",
    "remarks",
    "files",
]


@dataclass(frozen=True)
class Ledger:
    """One row per table and figure of the four papers, and its status.

    Parameters
    ----------
    table : DataFrame
        Every column as text.

    Examples
    --------
    >>> ledger = Ledger.of([])
    >>> ledger.table["status"].unique().tolist(), len(ledger.table)
    (['absent'], 75)
    """

    table: pd.DataFrame

    @classmethod
    def of(cls, manifests: Iterable[Mapping[str, Any]], kept: Iterable[str] = ()) -> Ledger:
        """Ledger of the reports with these manifests.

        Parameters
        ----------
        manifests : iterable of mapping
            As `Report.finish` writes them.
        kept : iterable of str
            Notebooks whose report is out of date and whose data cannot be reached: their artefacts are ``kept``.

        Returns
        -------
        Ledger

        Raises
        ------
        ValueError
            If two notebooks report the same artefact.
        """
        kept_notebooks = set(kept)
        entries: dict[str, dict[str, str]] = {}
        for manifest in manifests:
            notebook = str(manifest["notebook"])
            for record in manifest["artefacts"]:
                name = record["artefact"]
                if name in entries:
                    raise ValueError(f"{name} is reported by both {entries[name]['notebook']} and {notebook}")
                claims = record["claims"]
                reasons = dict.fromkeys(difference["reason"] for difference in record["differences"])
                failed = [f"does not hold: {claim['statement']}" for claim in claims if not claim["holds"]]
                entries[name] = {
                    "status": "kept" if notebook in kept_notebooks else record["status"],
                    "notebook": notebook,
                    "data": record["data"],
                    "cells": str(record["cells"] or ""),
                    "differing": str(len(record["differences"])) if record["cells"] else "",
                    "largest_difference": "" if record["largest"] is None else f"{record['largest']:.2g}",
                    "claims": str(len(claims) or ""),
                    "claims_that_hold": str(sum(claim["holds"] for claim in claims)) if claims else "",
                    "remarks": "; ".join(filter(None, [record["note"], *reasons, *failed])),
                    "files": " ".join(f"{notebook}/{file}" for file in record["files"]),
                }
        rows = []
        for name, row in artefacts().iterrows():
            entry = dict.fromkeys(_LEDGER_COLUMNS, "")
            entry |= {"status": "absent", "remarks": row["absent_because"] or "not regenerated"}
            entry |= entries.get(str(name), {})
            rows.append(entry | {column: row[column] for column in ("paper", "artefact", "title")})
        return cls(pd.DataFrame(rows, columns=_LEDGER_COLUMNS, dtype="str"))

    @classmethod
    def read(cls, text: str) -> Ledger:
        """Ledger from the text of a ``ledger.csv``."""
        return cls(pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False))

    def write(self, folder: Path) -> None:
        """Write ``ledger.csv`` and ``ledger.md``."""
        write_csv(self.table, folder / "ledger.csv")
        (folder / "ledger.md").write_text(self.markdown(), encoding="utf-8")

    def markdown(self) -> str:
        """Return the ledger as a Markdown page: a count by status, then a table per paper with links to the files."""
        counts = self.table["status"].value_counts()
        total = ", ".join(f"{counts[status]} {status}" for status in reversed(STATUSES) if status in counts)
        lines = ["# Ledger\n\n", f"{len(self.table)} tables and figures of four papers: {total}.\n"]
        lines.append("\n" + "".join(f"- **{status}**: {meaning}\n" for status, meaning in STATUS_MEANINGS.items()))
        for paper, part in self.table.groupby("paper", sort=False):
            lines.append(f"\n## {paper}\n\n| Artefact | Title | Status | Cells | Differing | Claims | Remarks |\n")
            lines.append("| --- | --- | --- | --- | --- | --- | --- |\n")
            for row in part.to_dict("records"):
                label = markdown_cell(row["artefact"].replace("-", " "))
                first = next(
                    iter(sorted(row["files"].split(), key=lambda file: not file.endswith((".md", ".svg")))), ""
                )
                claims = f"{row['claims_that_hold']} of {row['claims']} hold" if row["claims"] else ""
                remarks = row["remarks"] + (f" (data: {row['data']})" if row["data"] else "")
                cells = [f"[{label}]({first})" if first else label]
                cells += map(
                    markdown_cell, [row["title"], row["status"], row["cells"], row["differing"], claims, remarks]
                )
                lines.append(f"| {' | '.join(cells)} |\n")
        return "".join(lines)

    def falls_from(self, earlier: Ledger) -> list[str]:
        """Name the artefacts whose status is lower than in an earlier ledger.

        Parameters
        ----------
        earlier : Ledger

        Returns
        -------
        list of str
            A line each.

        Examples
        --------
        >>> now, before = Ledger.of([]), Ledger.of([])
        >>> before.table.loc[0, "status"] = "exact"
        >>> now.falls_from(before)
        ['gfrc/figure-1 fell from exact to absent']
        """

        def statuses(ledger: Ledger) -> dict[str, str]:
            return dict(
                zip(ledger.table["paper"] + "/" + ledger.table["artefact"], ledger.table["status"], strict=True)
            )

        now, lines = statuses(self), []
        for name, status in statuses(earlier).items():
            if STATUSES.index(now.get(name, "absent")) < STATUSES.index(status):
                lines.append(f"{name} fell from {status} to {now.get(name, 'absent')}")
        return lines
