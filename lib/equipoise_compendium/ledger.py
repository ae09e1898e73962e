"""The ledger: one row per table and figure of the papers, and its status, which code decides."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise_compendium.claims import BASES, VERDICTS, by_sentence, read, table_of
from equipoise_compendium.claims import counts as counts_of_sentences
from equipoise_compendium.printed import artefacts
from equipoise_compendium.shown import markdown_cell, markdown_row
from equipoise_compendium.words import number_of
from equipoise_compendium.writing import write_csv

STATUS_MEANINGS = {
    "exact": "every printed cell equals ours at the printed precision",
    "explained": "some cells differ, each with its proved reason",
    "differing": "some cells differ, and the reason of at least one is likely but not proved",
    "derived": "computed from other printed numbers, and compared with printed cells",
    "illustration": "drawn again; it prints no cell that could be compared",
    "replica": "computed on other, named data; the paper's findings are judged there",
    "kept": "regenerated earlier; its data cannot be reached now",
    "absent": "not regenerated, with the reason",
}
"""What each status says, from the highest."""
STATUSES = tuple(reversed(STATUS_MEANINGS))
"""Statuses of an artefact, from the lowest: a step to the left is a fall."""
COUNTED = {
    f"{verdict} {basis}".replace(" ", "_"): (verdict, basis)
    for verdict in VERDICTS
    for basis in BASES
}
"""Columns that count findings by sentence: the verdict, and what it rests on."""
_NOTHING: dict[str, Any] = {
    "data": "",
    "cells": 0,
    "largest": None,
    "differences": (),
    "claims": (),
    "files": (),
}


def _entry(notebook: str, record: Mapping[str, Any], *, kept: bool) -> dict[str, str]:
    """What the ledger says of an artefact that a notebook reports."""
    paper = record.get("artefact", "").partition("/")[0]
    findings = [
        dict(claim, paper=paper) for claim in record["claims"] if claim["kind"] == "finding"
    ]
    sentences = by_sentence(findings)
    counts = Counter((sentence["verdict"], sentence["basis"]) for sentence in sentences)
    remarks = [record["note"]]
    for reason, count in Counter(each["reason"] for each in record["differences"]).items():
        remarks.append(f"{count} cell{'s' if count > 1 else ''}: {reason}")
    for claim in findings:
        if claim["verdict"] == "contradicted":
            remarks.append(f"contradicted: {claim['statement']}")
    return {
        "status": "kept" if kept else record["status"],
        "notebook": notebook,
        "data": record["data"],
        "cells": str(record["cells"] or ""),
        "differing": str(len(record["differences"])) if record["cells"] else "",
        "largest_difference": "" if record["largest"] is None else f"{record['largest']:.2g}",
        "findings": str(len({claim["quote"] for claim in findings}) or ""),
        **{column: str(counts[key] or "") for column, key in COUNTED.items()},
        "remarks": "; ".join(filter(None, remarks)),
        "files": " ".join(f"{notebook}/{file}" for file in record["files"]),
    }


def verdicts(row: Mapping[str, str]) -> str:
    """The verdicts on the findings of an artefact, counted in words."""
    counts = {key: int(row[column] or 0) for column, key in COUNTED.items()}
    return in_words(counts)


def in_words(counts: Mapping[tuple[str, str], int]) -> str:
    """How many findings have each verdict, those from the paper's own numbers apart."""
    parts = []
    for basis in BASES:
        of_basis = [
            counted(counts[verdict, basis], verdict)
            for verdict in VERDICTS
            if counts.get((verdict, basis))
        ]
        if of_basis:
            parts.append(f"{basis}: {', '.join(of_basis)}")
    return "; ".join(parts)


def counted(count: object, verdict: str) -> str:
    """How many findings hold, are contradicted and so on."""
    if verdict == "holds" and str(count) != "1":
        return f"{count} hold"
    return f"{count} {verdict}"


@dataclass(frozen=True)
class Ledger:
    """One row per table and figure of the papers, all of it text; and every claim judged."""

    table: pd.DataFrame
    claims: pd.DataFrame = field(default_factory=pd.DataFrame)

    @classmethod
    def of(cls, manifests: Iterable[Mapping[str, Any]], kept: Collection[str] = ()) -> Ledger:
        """Ledger of the reports with these manifests.

        The artefacts of the notebooks ``kept``, whose reports are out of date and whose data cannot
        be reached, have that status.
        """
        manifests = list(manifests)
        entries: dict[str, dict[str, str]] = {}
        for manifest in manifests:
            notebook = str(manifest["notebook"])
            for record in manifest["artefacts"]:
                name = record["artefact"]
                if name in entries:
                    first = entries[name]["notebook"]
                    raise ValueError(f"{name} is reported by both {first} and {notebook}")
                entries[name] = _entry(notebook, record, kept=notebook in kept)
        rows = []
        for name, artefact in artefacts().iterrows():
            row = {column: artefact[column] for column in ("paper", "artefact", "title")}
            if str(name) in entries:
                row |= entries[str(name)]
            else:
                reason = artefact["absent_because"] or "not regenerated"
                absent = _NOTHING | {"status": "absent", "note": reason}
                row |= _entry("", absent, kept=False)
            rows.append(row)
        return cls(pd.DataFrame(rows, dtype="str"), table_of(manifests))

    @classmethod
    def read(cls, text: str) -> Ledger:
        """Ledger from the text of a ``ledger.csv``."""
        return cls(pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False))

    def write(self, folder: Path) -> None:
        """Write ``ledger.csv``, ``ledger.md``, ``claims.csv`` and the counts of its verdicts."""
        write_csv(self.table, folder / "ledger.csv")
        write_csv(self.claims, folder / "claims.csv")
        counts = counts_of_sentences(read(folder / "claims.csv"))
        write_csv(counts, folder / "verdicts.csv")
        (folder / "ledger.md").write_text(self.markdown(), encoding="utf-8")

    def markdown(self) -> str:
        """The ledger as a Markdown page: counts, then a table a paper with links to the files."""
        counts = self.table["status"].value_counts()
        statuses = [f"{counts[name]} {name}" for name in STATUS_MEANINGS if name in counts]
        papers = number_of(self.table["paper"].nunique(), "paper")
        totals = {}
        for column, key in COUNTED.items():
            totals[key] = int(pd.to_numeric(self.table[column]).sum())
        lines = [
            "# Ledger\n\n",
            f"{len(self.table)} tables and figures of {papers}: {', '.join(statuses)}.\n\n",
        ]
        if any(totals.values()):
            lines.append(f"Findings of the papers, by sentence: {in_words(totals)}. ")
        lines.append("Each claim is on its own line of [claims.csv](claims.csv).\n\n")
        lines += [f"- **{status}**: {meaning}\n" for status, meaning in STATUS_MEANINGS.items()]
        for paper, rows in self.table.groupby("paper", sort=False):
            lines.append(f"\n## {paper}\n\n")
            lines.append("| Artefact | Title | Status | Cells | Differing | Findings | Remarks |\n")
            lines.append("| --- | --- | --- | --- | --- | --- | --- |\n")
            lines += [_markdown_line(row) for row in rows.to_dict("records")]
        return "".join(lines)

    def _statuses(self) -> dict[str, str]:
        names = self.table["paper"] + "/" + self.table["artefact"]
        return dict(zip(names, self.table["status"], strict=True))

    def falls_from(self, earlier: Ledger) -> list[str]:
        """A line for each artefact whose status is lower than in an earlier ledger."""
        now = self._statuses()
        falls = []
        for name, status in earlier._statuses().items():
            status_now = now.get(name, "absent")
            if STATUSES.index(status_now) < STATUSES.index(status):
                falls.append(f"{name} fell from {status} to {status_now}")
        return falls


def _markdown_line(row: Mapping[str, str]) -> str:
    """A row of the ledger in Markdown; its label leads to the table or drawing itself."""
    label = markdown_cell(row["artefact"].replace("-", " "))
    to_look_at = [file for file in row["files"].split() if file.endswith((".md", ".svg"))]
    if to_look_at:
        label = f"[{label}]({to_look_at[0]})"
    remarks = row["remarks"]
    if row["data"]:
        remarks += f" (data: {row['data']})"
    counts = [row["cells"], row["differing"], verdicts(row)]
    return f"| {label} {markdown_row([row['title'], row['status'], *counts, remarks])}"
