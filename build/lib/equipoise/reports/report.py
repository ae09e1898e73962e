"""Reports: save a table or a figure, hold it against the printed one, and keep the ledger.

A notebook opens one `Report`, gives it each table and figure under the artefact's name (``gfrc/table-1``) or a name
of its own, and ends with `Report.finish`. What the paper prints lies in ``data/published``; cells are compared at the
printed precision, and every cell that differs needs a reason in ``data/published/explanations.csv``. Code, not the
author, decides the status of an artefact.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise import plots, project
from equipoise.files import write_csv
from equipoise.reports.comparison import Comparison, Difference, compare
from equipoise.reports.printed import artefacts
from equipoise.reports.shown import (
    VARIANT_VARIABLE, Shown, difference_lines, html_table, markdown_cell, markdown_table, save_figure, show_table)

Basis = Literal["recomputed", "derived", "replica"]

REPORT_FOLDER_VARIABLE = "EQUIPOISE_REPORT_FOLDER"
MANIFEST = "manifest.json"















































# --- reports ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A finding of a paper, put as a sentence that holds or does not hold on the data at hand.

    ``evidence``: the numbers that decide.
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

    ``notebook``: name of the notebook, without ending.
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

        ``name``: Artefact (``gfrc/table-1``), or a name of the notebook's own. ``ours``: the whole of it is
        saved as CSV; shown are the rows and columns that the paper prints. ``keys``: Columns that identify a
        row; needed to compare. ``caption``: the default is the artefact's title. ``against``: Printed table to
        compare with; the default is the artefact's own, where it is published as numbers. ``columns``: Printed
        columns to compare, where the others cannot be computed; the default is all. ``basis``: From the study's
        data; from other printed numbers; from other data. ``data``: the data it was made from, in words for the
        ledger. ``note``: what a reader of the ledger should know. ``digits``: Decimals to show where no printed
        precision is known. Returns: Both tables side by side, differing cells marked.
        """
        comparison = self._compare(name, ours, keys, against, columns, basis)
        caption = caption or self._title(name)
        shown = show_table(caption, ours, comparison, digits)
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

        ``name``: Artefact (``gfrc/figure-1``), or a name of the notebook's own. ``drawn``: It is closed.
        ``caption``: what the figure shows, for those who cannot see it too; the default is the artefact's
        title. ``values``: the plotted values. ``keys``, ``against``: Compare the values with a printed table,
        as for `table`; only if ``against`` is given. ``basis``: "recomputed" where the figure prints numbers of
        its own, and ``against`` holds them.
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

        ``artefact``: the table or figure, already reported, that the finding rests on. ``statement``: the
        finding, as a sentence. ``holds``: Computed, not judged. ``evidence``: the numbers that decide.
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
        """Close the report: write its manifest, and sum up what agrees, what differs and why, and the versions."""
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
            notes += [f"{record.artefact}, {line}" for line in difference_lines(record.differences)]
        table = pd.DataFrame(rows, columns=header)
        used = ", ".join(f"{name} {number}" for name, number in versions.items())
        texts = [list(map(str, row)) for row in rows]
        listed = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        page = (
            f'<div class="equipoise-table">{html_table("What this notebook regenerates", table, texts, set())}'
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



