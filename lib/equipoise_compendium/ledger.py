"""The ledger: one row per table and figure of the papers, and its status, which code decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from equipoise_compendium.claims import BASES, VERDICTS, by_sentence
from equipoise_compendium.printed import artefacts
from equipoise_compendium.shown import markdown_cell

STATUS_MEANINGS = {
    "exact": "every published cell equals ours at the published precision",
    "explained": "some cells differ, each with its proved reason",
    "differing": "some cells differ, and the reason of at least one is likely but not proved",
    "derived": "computed from other published numbers, and compared with published cells",
    "illustration": "drawn again; it has no published cell to compare",
    "replica": "computed on other, named data; the paper's findings are judged there",
    "absent": "not regenerated, with the reason",
}
"""What each status means."""
COUNTED = {
    f"{verdict} {basis}".replace(" ", "_"): (verdict, basis)
    for verdict in VERDICTS
    for basis in BASES
}
"""Columns that count findings by sentence: the verdict, and what it rests on."""
_NOT_REGENERATED: dict[str, Any] = {
    "status": "absent",
    "data": "",
    "cells": 0,
    "largest": None,
    "differences": (),
    "claims": (),
    "files": (),
}


def _entry(notebook: str, record: Mapping[str, Any]) -> dict[str, str]:
    """Return what the ledger says of an artefact that a notebook reports."""
    paper = record.get("artefact", "").partition("/")[0]
    findings = []
    for claim in record["claims"]:
        if claim["kind"] == "finding":
            findings.append(dict(claim, paper=paper))
    sentences = by_sentence(findings)
    counts = Counter((sentence["verdict"], sentence["basis"]) for sentence in sentences)
    remarks = [record["note"]]
    for reason, count in Counter(each["reason"] for each in record["differences"]).items():
        remarks.append(f"{count} cell{'s' if count > 1 else ''}: {reason}")
    for claim in findings:
        if claim["verdict"] == "contradicted":
            remarks.append(f"contradicted: {claim['statement']}")
    return {
        "status": record["status"],
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


def table_of(manifests: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Make the ledger of the reports with these manifests, all of it text."""
    entries: dict[str, dict[str, str]] = {}
    for manifest in manifests:
        for record in manifest["artefacts"]:
            name = record["artefact"]
            if name in entries:
                first = entries[name]["notebook"]
                raise ValueError(f"{name} is reported by both {first} and {manifest['notebook']}")
            entries[name] = _entry(manifest["notebook"], record)
    rows = []
    for name, artefact in artefacts().iterrows():
        reason = artefact["absent_because"] or "not regenerated"
        absent = _entry("", {**_NOT_REGENERATED, "note": reason})
        row = {column: artefact[column] for column in ("paper", "artefact", "title")}
        rows.append(row | entries.get(str(name), absent))
    return pd.DataFrame(rows, dtype="str")


def verdicts(row: Mapping[str, str]) -> str:
    """Write the verdicts on the findings of an artefact, with their counts."""
    return in_words({key: int(row[column] or 0) for column, key in COUNTED.items()})


def in_words(counts: Mapping[tuple[str, str], int]) -> str:
    """Write how many findings have each verdict, by what they rest on."""
    parts = []
    for basis in BASES:
        texts = []
        for verdict in VERDICTS:
            count = counts.get((verdict, basis), 0)
            word = "hold" if verdict == "holds" and count != 1 else verdict
            if count:
                texts.append(f"{count} {word}")
        if texts:
            parts.append(f"{basis}: {', '.join(texts)}")
    return "; ".join(parts)


def markdown(table: pd.DataFrame) -> str:
    """Write the ledger as a Markdown page: counts, then one table per paper with links."""
    counts = table["status"].value_counts()
    statuses = [f"{counts[name]} {name}" for name in STATUS_MEANINGS if name in counts]
    totals = {key: int(pd.to_numeric(table[column]).sum()) for column, key in COUNTED.items()}
    lines = ["# Ledger\n\n", f"{len(table)} tables and figures: {', '.join(statuses)}.\n\n"]
    if any(totals.values()):
        lines.append(f"Findings of the papers, by sentence: {in_words(totals)}. ")
    lines.append("Each claim is on its own line of [claims.csv](claims.csv).\n\n")
    lines += [f"- **{status}**: {meaning}\n" for status, meaning in STATUS_MEANINGS.items()]
    for paper, rows in table.groupby("paper", sort=False):
        lines.append(f"\n## {paper}\n\n")
        lines.append("| Artefact | Title | Status | Cells | Differing | Findings | Remarks |\n")
        lines.append("| --- | --- | --- | --- | --- | --- | --- |\n")
        lines += [_markdown_line(row) for row in rows.to_dict("records")]
    return "".join(lines)


def _markdown_line(row: Mapping[str, str]) -> str:
    """Write a row of the ledger in Markdown; its label leads to the table or drawing itself."""
    label = markdown_cell(row["artefact"].replace("-", " "))
    pages = [file for file in row["files"].split() if file.endswith((".md", ".svg"))]
    if pages:
        label = f"[{label}]({pages[0]})"
    remarks = row["remarks"]
    if row["data"]:
        remarks += f" (data: {row['data']})"
    cells = [row["title"], row["status"], row["cells"], row["differing"], verdicts(row), remarks]
    return f"| {label} | {' | '.join(map(markdown_cell, cells))} |\n"
