"""The ledger: one row per table and figure of the four papers, and its status, which code decides."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise_compendium.claims import table_of
from equipoise_compendium.printed import artefacts
from equipoise_compendium.shown import markdown_cell, markdown_row
from equipoise_compendium.writing import write_csv

STATUS_MEANINGS = {
    "exact": "every printed cell equals ours at the printed precision",
    "explained": "some cells differ, each with its reason",
    "derived": "computed from, or compared with, other printed numbers",
    "replica": "computed on other, named data; the paper's findings are judged there",
    "kept": "regenerated earlier; its data cannot be reached now",
    "absent": "not regenerated, with the reason",
}
"""What each status says, from the highest."""
STATUSES = tuple(reversed(STATUS_MEANINGS))
"""Statuses of an artefact, from the lowest: a step to the left is a fall."""
JUDGED = {
    "held": "holds",
    "contradicted": "contradicted",
    "undecided": "undecided",
    "not_testable": "not testable",
}
"""Columns that count the findings of an artefact, with the verdict they count."""
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
    findings = [claim for claim in record["claims"] if claim["kind"] == "finding"]
    verdicts = Counter(claim["verdict"] for claim in findings)
    counts = Counter(difference["reason"] for difference in record["differences"])
    reasons = [
        f"{count} cell{'s' if count > 1 else ''}: {reason}" for reason, count in counts.items()
    ]
    against = [
        f"contradicted: {claim['statement']}"
        for claim in findings
        if claim["verdict"] == "contradicted"
    ]
    return {
        "status": "kept" if kept else record["status"],
        "notebook": notebook,
        "data": record["data"],
        "cells": str(record["cells"] or ""),
        "differing": str(len(record["differences"])) if record["cells"] else "",
        "largest_difference": "" if record["largest"] is None else f"{record['largest']:.2g}",
        "findings": str(len(findings) or ""),
        **{column: str(verdicts[said] or "") for column, said in JUDGED.items()},
        "remarks": "; ".join(filter(None, [record["note"], *reasons, *against])),
        "files": " ".join(f"{notebook}/{file}" for file in record["files"]),
    }


def verdicts(row: Mapping[str, str]) -> str:
    """The verdicts on the findings of an artefact, counted in words."""
    return ", ".join(counted(row[column], said) for column, said in JUDGED.items() if row[column])


def counted(count: object, said: str) -> str:
    """How many findings hold, are contradicted and so on."""
    return f"{count} {'hold' if said == 'holds' and str(count) != '1' else said}"


@dataclass(frozen=True)
class Ledger:
    """One row per table and figure of the four papers, every column as text; and every claim judged."""

    table: pd.DataFrame
    claims: pd.DataFrame = field(default_factory=pd.DataFrame)

    @classmethod
    def of(cls, manifests: Iterable[Mapping[str, Any]], kept: Collection[str] = ()) -> Ledger:
        """Ledger of the reports with these manifests.

        The artefacts of the notebooks ``kept``, whose reports are out of date and whose data cannot
        be reached, have that status.
        """
        entries, held = dict[str, dict[str, str]](), list(manifests)
        for manifest in held:
            notebook = str(manifest["notebook"])
            for record in manifest["artefacts"]:
                name = record["artefact"]
                if name in entries:
                    raise ValueError(
                        f"{name} is reported by both {entries[name]['notebook']} and {notebook}"
                    )
                entries[name] = _entry(notebook, record, kept=notebook in kept)
        rows = []
        for name, row in artefacts().iterrows():
            absent = {
                "status": "absent",
                "note": row["absent_because"] or "not regenerated",
            } | _NOTHING
            own = {column: row[column] for column in ("paper", "artefact", "title")}
            rows.append(own | (entries.get(str(name)) or _entry("", absent, kept=False)))
        return cls(pd.DataFrame(rows, dtype="str"), table_of(held))

    @classmethod
    def read(cls, text: str) -> Ledger:
        """Ledger from the text of a ``ledger.csv``."""
        return cls(pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False))

    def write(self, folder: Path) -> None:
        """Write ``ledger.csv``, ``ledger.md`` and ``claims.csv``."""
        write_csv(self.table, folder / "ledger.csv")
        write_csv(self.claims, folder / "claims.csv")
        (folder / "ledger.md").write_text(self.markdown(), encoding="utf-8")

    def markdown(self) -> str:
        """The ledger as a Markdown page: a count by status, then a table per paper with links to the files."""
        counts = self.table["status"].value_counts()
        total = ", ".join(
            f"{counts[status]} {status}" for status in STATUS_MEANINGS if status in counts
        )
        sums = {said: pd.to_numeric(self.table[column]).sum() for column, said in JUDGED.items()}
        found = ", ".join(counted(f"{total:.0f}", said) for said, total in sums.items())
        lines = [f"# Ledger\n\n{len(self.table)} tables and figures of four papers: {total}.\n\n"]
        lines += [
            f"Findings of the papers: {found}; each is on its own line of [claims.csv](claims.csv).\n\n"
        ]
        lines += [f"- **{status}**: {meaning}\n" for status, meaning in STATUS_MEANINGS.items()]
        for paper, part in self.table.groupby("paper", sort=False):
            lines.append(
                f"\n## {paper}\n\n| Artefact | Title | Status | Cells | Differing | Findings | Remarks |\n"
            )
            lines.append("| --- | --- | --- | --- | --- | --- | --- |\n")
            for row in part.to_dict("records"):
                label = markdown_cell(row["artefact"].replace("-", " "))
                files = sorted(
                    row["files"].split(), key=lambda file: not file.endswith((".md", ".svg"))
                )
                remarks = row["remarks"] + (f" (data: {row['data']})" if row["data"] else "")
                cells = [
                    row["title"],
                    row["status"],
                    row["cells"],
                    row["differing"],
                    verdicts(row),
                    remarks,
                ]
                lines.append(
                    f"| {f'[{label}]({files[0]})' if files else label} {markdown_row(cells)}"
                )
        return "".join(lines)

    def _statuses(self) -> dict[str, str]:
        names = self.table["paper"] + "/" + self.table["artefact"]
        return dict(zip(names, self.table["status"], strict=True))

    def falls_from(self, earlier: Ledger) -> list[str]:
        """A line for each artefact whose status is lower than in an earlier ledger."""
        now = self._statuses()
        return [
            f"{name} fell from {status} to {now.get(name, 'absent')}"
            for name, status in earlier._statuses().items()
            if STATUSES.index(now.get(name, "absent")) < STATUSES.index(status)
        ]
