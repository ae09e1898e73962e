"""The report of a notebook: tables and figures saved, and held against the printed ones.

A notebook opens one `Report`, gives it each table and figure under the artefact's name
(``anscombe/table-1``) or a name of its own, and ends with `Report.finish`. What the paper prints
lies in ``data/published``; cells are compared at the printed precision, and every cell that differs
needs a reason in ``data/published/<paper>/explanations.csv``. Code, not the author, decides the
status of an artefact and the verdict on a claim. A variant, made with other parameters than the
paper's, is held against no paper: it stands beside the report made with the paper's.
"""

from __future__ import annotations

import html
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise_compendium import plots, project
from equipoise_compendium.claims import (
    OWN_DATA,
    PRINTED_NUMBERS,
    Evidence,
    by_sentence,
    judged,
    stated,
)
from equipoise_compendium.ledger import in_words
from equipoise_compendium.printed import Comparison, artefacts, compare
from equipoise_compendium.provenance import (
    REPORT_FOLDER_VARIABLE,
    VARIANT_VARIABLE,
    direct_requirements,
    loaded_modules,
    loaded_versions,
    write_manifest,
)
from equipoise_compendium.settings import FILE, settings
from equipoise_compendium.shown import (
    Shown,
    ShownFigure,
    markdown_cell,
    reason_lines,
    show_answer,
    show_claim,
    show_figure,
    show_summary,
    show_table,
    show_untestable,
    show_variant,
    show_words,
)
from equipoise_compendium.typed import unchecked
from equipoise_compendium.words import plain
from equipoise_compendium.writing import write_csv

Basis = Literal["recomputed", "derived", "replica"]
"""What an artefact was made from: the study's data, other printed numbers, other data."""
DEFAULTS_ONLY = "The text describes the default parameters."
"""What a variant shows in place of prose, which people wrote for the default parameters."""


def _slug(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?", name):
        raise ValueError(
            f"{name!r} is no name for a table or figure: "
            "letters, digits, '.', '_', '-', at most one '/'"
        )
    return name.replace("/", "-")


def _figure_of(drawn: Axes | Figure, name: str) -> Figure:
    """The figure that axes belong to."""
    figure = drawn.get_figure(root=True)
    if figure is None:
        raise ValueError(f"{name}: these axes belong to no figure")
    return figure


class Report:
    """The tables and figures of one notebook, saved and compared as they are made.

    Under `equipoise build` it writes where the build says. In a notebook run by hand it writes to
    ``reports/variants/by-hand/<notebook>``, and so never over the committed report. ``notebook`` is
    its name, without ending. ``compared``: whether it is compared with what is printed though its
    parameters are not the usual ones.
    """

    def __init__(self, notebook: str, *, compared: bool = False) -> None:
        self.notebook = notebook
        build_folder = os.environ.get(REPORT_FOLDER_VARIABLE)
        if build_folder:
            self.folder = Path(build_folder)
        else:
            self.folder = project.root() / "reports" / "variants" / "by-hand" / _slug(notebook)
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._variant = "" if compared else os.environ.get(VARIANT_VARIABLE, "")
        self._answer: list[str] = []
        self._known = artefacts()
        self._records: dict[str, dict[str, Any]] = {}
        # by artefact, which another notebook reports: claims of ours
        self._claims_beyond: dict[str, list[dict[str, Any]]] = {}
        plots.use_style(_colours())

    @property
    def is_variant(self) -> bool:
        """Whether the parameters are other than the usual ones; then text is not asserted.

        A cell that makes a qualitative statement asserts it:
        ``assert report.is_variant or difference > 0``.
        """
        return bool(self._variant)

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
        """Save a table, show it, and hold it against the printed one where it is a paper's.

        ``name`` is the artefact (``anscombe/table-1``), or a name of the notebook's own. All of
        ``ours`` is saved as CSV; shown are the rows and columns that the paper prints. ``keys`` are
        the columns that identify a row, ``caption`` is by default the artefact's title, and
        ``against`` its own printed table. ``columns`` are the printed ones to compare, and
        ``where`` chooses the printed rows by a column's text, where the others cannot be computed
        or are what ours was computed from. ``data`` says in words for the ledger what it was made
        from, ``note`` what else its reader should know. ``digits`` are the decimals to show where
        no printed precision is known. ``tolerance`` is how much farther from the printed number
        than its precision a cell may lie.
        """
        if against is None and name in self._known.index and basis != "replica":
            against = name
        title = self._title(name, caption)
        comparison = None
        if self._variant:
            shown = show_variant(title, ours, self._published(name), self._variant, digits)
        else:
            if against is not None:
                comparison = compare(ours, against, keys, columns, where, tolerance)
                note = "; ".join(filter(None, [note, _unchecked_note(against)]))
            shown = show_table(title, ours, comparison, digits)
        files = [f"tables/{_slug(name)}.{kind}" for kind in ("csv", "md")]
        (self.folder / "tables").mkdir(exist_ok=True)
        write_csv(ours, self.folder / files[0], for_spreadsheets=True)
        (self.folder / files[1]).write_text(shown.formats["text/markdown"], encoding="utf-8")
        self._record(name, basis, data, note, files, comparison)
        return shown

    def figure(
        self,
        name: str,
        drawn: Axes | Figure,
        caption: str = "",
        *,
        alt: str = "",
        values: pd.DataFrame | None = None,
        narrow: Axes | Figure | None = None,
        keys: Sequence[str] = (),
        against: str | None = None,
        basis: Basis = "derived",
        data: str = "",
        note: str = "",
    ) -> ShownFigure:
        """Save a figure as SVG and PNG, close it, and save the ``values`` it shows as CSV.

        ``caption`` says what the figure shows, by default the artefact's title, and ``alt`` what is
        to be seen in it, for those who cannot see it, by default the caption. ``narrow`` is the
        figure for a phone, by default the same laid out anew by `plots.narrow`. The values are
        compared with a printed table only if ``against`` names one; ``basis`` is "recomputed" where
        the figure itself prints these numbers. The other parameters are those of `table`.
        """
        comparison = None
        if against is not None:
            if values is None:
                raise ValueError(f"{name}: to compare a figure, give its values")
            comparison = None if self._variant else compare(values, against, keys)
        elif basis == "recomputed" and name in self._known.index:
            raise ValueError(
                f"{name}: a figure without printed numbers to compare is derived or a replica"
            )
        figure = _figure_of(drawn, name)
        caption, slug = plain(self._title(name, caption)), _slug(name)
        files = [f"figures/{slug}.{kind}" for kind in ("svg", "png")]
        (self.folder / "figures").mkdir(exist_ok=True)
        alt = plain(alt or caption)
        for file in files:
            kind = file.rpartition(".")[2]
            (self.folder / file).write_bytes(plots.rendered(figure, kind, alt, slug))
        if narrow is None:
            plots.narrow(figure)
        narrow_figure = figure if narrow is None else _figure_of(narrow, name)
        narrow_svg = plots.rendered(narrow_figure, "svg", alt, f"{slug}-narrow")
        (self.folder / "figures" / f"{slug}{plots.NARROW_ENDING}").write_bytes(narrow_svg)
        plt.close(figure)
        plt.close(narrow_figure)
        if values is not None:
            files.append(f"figures/{slug}.csv")
            write_csv(values, self.folder / files[-1], for_spreadsheets=True)
        self._record(name, basis, data, note, files, comparison)
        svg_file, png_file = (self.folder / file for file in files[:2])
        return show_figure(caption, svg_file.read_text("utf-8"), png_file.read_bytes(), alt)

    def words(
        self,
        name: str,
        said: Sequence[tuple[str, str]],
        caption: str = "",
        *,
        basis: Basis = "derived",
        data: str = "",
        note: str = "",
    ) -> Shown:
        """Show words as words, a prompt or a dialogue: who says it, and what; saved as Markdown.

        The parameters are those of `figure`.
        """
        shown, file = show_words(self._title(name, caption), said), f"tables/{_slug(name)}.md"
        (self.folder / "tables").mkdir(exist_ok=True)
        (self.folder / file).write_text(shown.formats["text/markdown"], encoding="utf-8")
        self._record(name, basis, data, note, [file], None)
        return shown

    def claim(self, name: str, evidence: Evidence, data: str = "") -> Shown:
        """Judge a claim of ``data/published/<paper>/claims.csv`` by the evidence.

        ``name`` is such as ``anscombe/same-line``. ``data`` says in words what the evidence was
        computed on: `OWN_DATA`, `PRINTED_NUMBERS` (which a consistency claim has by itself), or a
        stand-in. The artefact that it rests on has been reported, but that of a claim of ours may
        be another notebook's. A variant judges nothing.
        """
        paper, _, claim = name.partition("/")
        record = judged(paper, claim, evidence, data)
        artefact = f"{paper}/{record['artefact']}"
        is_reported = artefact in self._records
        if not is_reported and record["kind"] != "beyond":
            raise ValueError(
                f"{artefact} has not been reported yet, so nothing can be claimed on it"
            )
        if self._variant:
            text = f"{record['statement']}: not judged with {self._variant}."
            return Shown.text(text, markdown_cell(text), f"<p>{html.escape(text)}</p>")
        if is_reported:
            self._records[artefact]["claims"].append(record)
        else:
            self._claims_beyond.setdefault(artefact, []).append(record)
        return show_claim(record)

    def untestable(self, artefact: str, data: str = "") -> Shown:
        """Judge the claims of an artefact that ``claims.csv`` calls not testable; one box for all.

        ``artefact`` is such as ``anscombe/table-1``, and has been reported. ``data`` is by default
        what the artefact was made from. The box lists the claims by their ``reason``.
        """
        paper, _, artefact_name = artefact.partition("/")
        claims = stated(paper)
        rows = claims[(claims["artefact"] == artefact_name) & (claims["reason"] != "")]
        if rows.empty:
            raise ValueError(f"{artefact}: no claim in claims.csv has a reason")
        if not data and artefact in self._records:
            record = self._records[artefact]
            own = OWN_DATA if record["basis"] == "recomputed" else PRINTED_NUMBERS
            data = record["data"] if record["basis"] == "replica" else own
        for name, row in rows.iterrows():
            evidence = Evidence(row["statement"], reason=row["reason"])
            self.claim(f"{paper}/{name}", evidence, data)
        if self._variant:
            return self.say()
        return show_untestable(rows.to_dict("records"))

    def say(self, *sentences: str) -> Shown:
        """Prose with computed values, as a paragraph; nothing in it is markup.

        A variant shows one line in its place.
        """
        text = DEFAULTS_ONLY if self._variant else " ".join(sentences)
        return Shown.text(text, markdown_cell(text), f"<p>{html.escape(text)}</p>")

    def answer(self, *sentences: str) -> None:
        """Answer the notebook's question where it begins.

        It is called there with nothing, and at the end with the sentences.
        """
        from IPython.display import DisplayHandle

        self._answer = [DEFAULTS_ONLY] if sentences and self._variant else list(sentences)
        # IPython has no types.
        handle: Any = DisplayHandle("answer")  # type: ignore[no-untyped-call]
        if sentences:
            handle.update(show_answer(self._answer))
        else:
            handle.display(show_answer(["It is computed below."]))

    def finish(self) -> Shown:
        """Close the report: write its manifest, and sum up what agrees and what differs."""
        versions = loaded_versions()
        beyond = []
        for artefact, claims in self._claims_beyond.items():
            beyond.append({"artefact": artefact, "claims": claims})
        manifest = {
            "notebook": self.notebook,
            "answer": self._answer,
            "artefacts": list(self._records.values()),
            "beyond": beyond,
            "inputs": project.used_files(),
            "sources": loaded_modules(),
            "versions": versions,
        }
        write_manifest(self.folder, manifest)

        rows, notes = [], []
        for name, record in self._records.items():
            label = self._label(name)
            status = "variant" if self._variant else record["status"]
            differing = len(record["differences"]) or ""
            findings = _counted_findings(record["claims"])
            rows.append([label, status, record["cells"] or "", differing, findings])
            notes += [f"{label}: {line}" for line in reason_lines(record["differences"])]
        direct = direct_requirements()
        used = ", ".join(f"{name} {versions[name]}" for name in versions if name in direct)
        return show_summary(rows, notes, used)

    def _published(self, name: str) -> pd.DataFrame | None:
        """The table of this name in the committed report."""
        path = project.root() / "reports" / self.notebook / "tables" / f"{_slug(name)}.csv"
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
        if name not in self._known.index:
            if "/" in name:
                raise ValueError(f"{name} is not in data/published/artefacts.csv")
            return
        if basis == "replica" and not data:
            raise ValueError(f"{name}: a replica says which data it was made from")
        differences = []
        if comparison is not None:
            differences = [asdict(difference) for difference in comparison.differences]
        status: str = basis
        if basis == "recomputed":
            is_proved = all(difference["proved"] for difference in differences)
            status = "exact"
            if differences:
                status = "explained" if is_proved else "differing"
        elif basis == "derived" and comparison is None:
            status = "illustration"
        self._records[name] = {
            "artefact": name,
            "status": status,
            "basis": basis,
            "data": data,
            "note": note,
            "files": files,
            "cells": comparison.cells if comparison else 0,
            "largest": comparison.largest if comparison else None,
            "differences": differences,
            "claims": [],
        }


def _unchecked_note(artefact: str) -> str:
    """That a program read the printed cells, and no person has confirmed them; else empty."""
    source = unchecked(artefact)
    if not source:
        return ""
    return f"unchecked: the printed cells were read from {source} by a program, not by a person"


def _colours() -> tuple[str, ...]:
    """The colours of this compendium, if it has its own; then the report rests on them."""
    colours = settings().colours
    if colours:
        project.noted(project.root() / FILE)
    return colours


def _counted_findings(claims: Sequence[Mapping[str, Any]]) -> str:
    """How many findings have each verdict, in words."""
    # by_sentence() tells sentences of two papers apart; here all are of one artefact
    sentences = by_sentence([dict(claim, paper="") for claim in claims])
    return in_words(Counter((sentence["verdict"], sentence["basis"]) for sentence in sentences))
