"""The report of a notebook: saved tables and figures, compared with the published ones.

A notebook opens one `Report`, adds each table and figure under the name of the artefact
(``anscombe/table-1``) or its own name, and ends with `Report.finish`. The published numbers are in
``data/published``, and cells are compared at the published precision. Every cell that differs needs
a reason in ``data/published/<paper>/explanations.csv``. Code, not the author, decides the status of
an artefact and the verdict on a claim. A variant has other parameters than the default ones. It is
compared with the committed report and not with the paper. Prose is written for the default
parameters: `Report.expect` states what it relies on.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise.errors import plain
from equipoise_compendium import plots, project
from equipoise_compendium.printed import Basis, Comparison, artefacts, compare, status_of
from equipoise_compendium.protocol import Evidence, evidence_of, stated
from equipoise_compendium.provenance import (
    REPORT_FOLDER_VARIABLE,
    VARIANT_VARIABLE,
    write_manifest,
)
from equipoise_compendium.rendering import (
    LINK,
    Shown,
    ShownFigure,
    show_answer,
    show_claim,
    show_figure,
    show_summary,
    show_table,
    show_variant,
    show_words,
)
from equipoise_compendium.terms import RECOMPUTED, REPLICATED
from equipoise_compendium.verdicts import result_of, rows_of
from equipoise_compendium.writing import rounded_table, write_csv

ANSWER_CHANGED = "The answer as it is written does not hold with these parameters, data or code."
"""The answer of a notebook in which an expectation does not hold."""


def _slug(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?", name):
        raise ValueError(
            f"{name!r}: a name must be letters, digits, '.', '_', '-' and at most one '/'"
        )
    return name.replace("/", "-")


class Report:
    """The tables and figures of one notebook, saved and compared when they are made.

    `equipoise build` sets the folder. A notebook that a person runs writes to
    ``reports/variants/by-hand/<notebook>``, never to the committed report. ``notebook`` is the name
    of the notebook, without ending. ``compared``: whether tables are compared with the published
    ones although parameters differ from the defaults.
    """

    def __init__(self, notebook: str, *, compared: bool = False) -> None:
        self.notebook = notebook
        build_folder = os.environ.get(REPORT_FOLDER_VARIABLE)
        if build_folder:
            self.folder = Path(build_folder)
        else:
            parts = "reports", "variants", "by-hand", _slug(notebook)
            self.folder = project.inside(project.root(), *parts)
            shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("tables", "figures"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        changed = os.environ.get(VARIANT_VARIABLE, "")
        self._variant = "" if compared else changed
        self._must_hold = bool(build_folder) and not changed
        self._not_so: dict[str, int | None] = {}  # by text, the cell that relies on it; None: all
        self._answer: list[str] = []
        self._known = artefacts()
        self._records: dict[str, dict[str, Any]] = {}
        # by artefact, which another notebook reports: our own claims
        self._claims_beyond: dict[str, list[dict[str, Any]]] = {}
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
        where: Mapping[str, str] | None = None,
        basis: Basis = "recomputed",
        data: str = "",
        note: str = "",
        digits: int = 4,
        tolerance: float | Mapping[str, float] = 0.0,
    ) -> Shown:
        """Save and display a table, and compare it with the published table if there is one.

        ``name`` is the artefact (``anscombe/table-1``), or a name that the notebook chooses. All of
        ``ours`` is saved as CSV; the published rows and columns are shown. ``keys`` are the columns
        that identify a row. The defaults of ``caption`` and ``against`` are the title and the
        published table of the artefact. ``columns`` selects published columns, and ``where``
        published rows by the text of a column, if the others cannot be computed or are the input of
        our table. ``data`` names the data for the ledger, and ``note`` is a remark for readers.
        ``digits`` are the decimals to show without a published precision. ``tolerance`` is added to
        the published precision.
        """
        if against is None and name in self._known.index and basis != REPLICATED:
            against = name
        title, slug = self._title(name, caption), _slug(name)
        ours = rounded_table(ours)
        comparison = None
        if self._variant:
            shown = show_variant(title, ours, self._committed(slug), self._variant, digits)
        else:
            problem = ""
            try:
                if against is not None:
                    comparison = compare(ours, against, keys, columns, where, tolerance)
            except ValueError as error:  # by hand, other parameters may give other rows
                if self._must_hold:
                    raise
                problem = f"Not compared: {error}."
            shown = show_table(slug, title, ours, comparison, digits, problem)
        file = f"tables/{slug}.csv"
        write_csv(ours, self.folder / file, for_spreadsheets=True)
        self._record(name, basis, data, note, [file], comparison)
        return shown

    def figure(
        self,
        name: str,
        drawn: Axes | Figure,
        caption: str = "",
        *,
        alt: str = "",
        values: pd.DataFrame | None = None,
        keys: Sequence[str] = (),
        against: str | None = None,
        basis: Basis = "derived",
        data: str = "",
        note: str = "",
        wide: bool = False,
    ) -> ShownFigure:
        """Save a figure as SVG, also for a phone, close it, and save its ``values`` as CSV.

        ``caption`` describes the figure, by default the artefact's title. ``alt`` is its
        alternative text, by default the caption. The values are compared with a published table
        only if ``against`` names one. ``basis`` is "recomputed" if the published figure itself
        contains these numbers. A ``wide`` figure has no room on a phone, where it scrolls. The
        other parameters are as in `table`.
        """
        comparison = None
        if values is not None:
            values = rounded_table(values)
        if against is not None:
            if values is None:
                raise ValueError(f"{name} needs values, by which a figure is compared")
            comparison = None if self._variant else compare(values, against, keys)
        elif basis == "recomputed" and name in self._known.index:
            raise ValueError(f"{name}: basis must not be recomputed without published values")
        figure = drawn.get_figure(root=True)
        if figure is None:
            raise ValueError(f"{name}: the axes must belong to a figure")
        caption, slug = plain(self._title(name, caption)), _slug(name)
        alt = plain(alt or caption)
        files = [f"figures/{slug}.svg"]
        (self.folder / files[0]).write_bytes(plots.rendered(figure, "svg", alt, slug))
        png = plots.rendered(figure, "png", alt, slug)
        if not wide and plots.narrow(figure):
            phone = plots.rendered(figure, "svg", alt, f"{slug}-narrow")
            (self.folder / f"figures/{slug}-narrow.svg").write_bytes(phone)
        plt.close(figure)
        if values is not None:
            files.append(f"figures/{slug}.csv")
            write_csv(values, self.folder / files[-1], for_spreadsheets=True)
        self._record(name, basis, data, note, files, comparison)
        return show_figure(slug, caption, png, alt)

    def words(
        self,
        name: str,
        said: Sequence[tuple[str, str]],
        caption: str = "",
        *,
        basis: Basis = "derived",
        data: str = "",
    ) -> Shown:
        """Display a prompt or a dialogue by speaker, and save it as text.

        The parameters are as in `figure`.
        """
        slug = _slug(name)
        shown, file = show_words(slug, self._title(name, caption), said), f"tables/{slug}.txt"
        (self.folder / file).write_text(shown.formats["text/plain"] + "\n", encoding="utf-8")
        self._record(name, basis, data, "", [file], None)
        return shown

    def claim(self, name: str, evidence: Mapping[str, Evidence | Mapping[str, Evidence]]) -> Shown:
        """Add the evidence on a claim of ``data/published/<paper>/claims.csv``.

        ``name`` has the form ``anscombe/same-line``. ``evidence``: by collection of ``claims.csv``,
        one number or a mapping by part (system, setting, cell). The build judges all claims of a
        paper together and writes the answers. The artefact of a finding must be reported before;
        the artefact of an additional analysis may be in another notebook. A variant judges nothing.
        """
        paper, _, claim = name.partition("/")
        stated_claim = stated(paper).loc[claim]
        if self._variant:  # its collections may differ from the protocol
            return Shown.paragraph(f"{stated_claim['statement']} Not judged with {self._variant}.")
        try:
            record = evidence_of(paper, claim, evidence)
        except ValueError as error:
            if self._must_hold:
                raise
            return Shown.paragraph(f"{stated_claim['statement']} Not judged: {error}.")
        artefact = f"{paper}/{stated_claim['artefact']}"
        is_reported = artefact in self._records
        if not is_reported and stated_claim["kind"] in ("finding", "consistency check"):
            raise ValueError(f"{artefact}: must be reported before a claim on it")
        if is_reported:
            self._records[artefact]["claims"].append(record)
        else:
            self._claims_beyond.setdefault(artefact, []).append(record)
        rows = rows_of(paper, record)
        for row in rows:
            row["result"] = result_of(row) if row["basis"] == RECOMPUTED else ""
        return show_claim({**rows[0], "evidence": rows})

    def expect(self, condition: object, text: str, *, everywhere: bool = False) -> bool:
        """State what prose relies on, such as "run A is ahead"; return whether it holds.

        If it does not hold, a build with default parameters fails. By hand, and with other
        parameters, one line says so. `say` then displays nothing in the same cell, or nowhere in
        the notebook with ``everywhere``, and `answer` lists the text. The title of a figure relies
        on it by ``if report.expect(...):``.
        """
        if condition:
            return True
        if self._must_hold:
            raise AssertionError(f"prose relies on this, and it does not hold: {text}")
        from IPython.display import display

        self._not_so[text] = None if everywhere else _running_cell()
        display(Shown.paragraph(f"Not so with these parameters: {text}."))  # type: ignore[no-untyped-call]
        return False

    def say(self, *sentences: str) -> Shown:
        """Display prose with computed values as plain text, if what it relies on holds."""
        unreliable = self._not_so.values()
        if None in unreliable or _running_cell() in unreliable:
            return Shown.paragraph("")
        return Shown.paragraph(" ".join(sentences))

    def answer(self, *sentences: str) -> None:
        """Display the answer to the notebook's question at its top.

        Call it at the end with the sentences. A number in them links to the table or claim that
        has it: ``[0.75](#own_table)``, ``[1.2 [0.9, 1.5]](#claim-anscombe-same-line)``. A notebook
        without a key figure calls it at the top, too, without arguments; the others call
        `top_of_page` there. The answer relies on every expectation of the notebook.
        """
        from IPython.display import DisplayHandle

        self._answer = list(sentences)
        if sentences and self._not_so:
            self._answer = [ANSWER_CHANGED, *(f"Not so: {text}." for text in self._not_so)]
        # IPython has no types.
        handle: Any = DisplayHandle("answer")  # type: ignore[no-untyped-call]
        if sentences:
            handle.update(show_answer(self._answer))
        else:
            handle.display(show_answer(["It is computed below."]))

    def finish(self) -> Shown:
        """Write the manifest, and list the artefacts with their status."""
        beyond = []
        for artefact, claims in self._claims_beyond.items():
            beyond.append({"artefact": artefact, "claims": claims})
        records = list(self._records.values())
        manifest = {
            "notebook": self.notebook,
            "answer": [LINK.sub(r"\1", sentence) for sentence in self._answer],
            "artefacts": records,
            "beyond": beyond,
        }
        write_manifest(self.folder, manifest)
        rows = []
        for name, record in self._records.items():
            status = "variant" if self._variant else record["status"]
            cells, differing = record["cells"] or "", len(record["differences"]) or ""
            rows.append([self._label(name), status, cells, differing, len(record["claims"]) or ""])
        return show_summary(rows)

    def _committed(self, slug: str) -> pd.DataFrame | None:
        """Read the table of this name in the committed report."""
        path = project.root() / "reports" / self.notebook / "tables" / f"{slug}.csv"
        return pd.read_csv(path) if path.is_file() else None

    def _title(self, name: str, caption: str) -> str:
        if name not in self._known.index:
            return caption or name
        return f"{self._label(name)}: {caption or self._known.loc[name, 'title']}"

    def _label(self, name: str) -> str:
        paper, artefact = self._known.loc[name, ["paper", "artefact"]]
        return f"{paper}, {artefact.replace('-', ' ').capitalize()}"

    def _record(
        self,
        name: str,
        basis: Basis,
        data: str,
        note: str,
        files: list[str],
        comparison: Comparison | None,
    ) -> None:
        """Add an artefact to the manifest, with its data for the ledger."""
        if name not in self._known.index:
            if "/" in name:
                raise ValueError(f"{name}: not found in data/published/artefacts.csv")
            return
        if basis == REPLICATED and not data:
            raise ValueError(f"{name}: a replication must name its data")
        differences = comparison.differences if comparison is not None else ()
        self._records[name] = {
            "artefact": name,
            "status": status_of(basis, comparison),
            "basis": basis,
            "data": data,
            "note": note,
            "files": files,
            "cells": comparison.cells if comparison else 0,
            "largest": comparison.largest if comparison else None,
            "compared": comparison.asked if comparison else None,
            "differences": [asdict(difference) for difference in differences],
            "claims": [],
        }


def _running_cell() -> int:
    """Return the number of the cell that runs, or 0 outside of a notebook."""
    from IPython import get_ipython

    shell: Any = get_ipython()
    return shell.execution_count if shell is not None else 0
