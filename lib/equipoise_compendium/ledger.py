"""The ledger: one row per table and figure of the papers, with its computed status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from equipoise_compendium.printed import artefacts
from equipoise_compendium.terms import ELSEWHERE, IN_PAPER
from equipoise_compendium.verdicts import as_claims

ANSWER_COLUMNS = {answer: answer.replace(" ", "_") for answer in [*IN_PAPER, *ELSEWHERE]}
"""Columns that count findings by answer, in the paper and elsewhere."""
_NOT_REGENERATED: dict[str, Any] = {
    "status": "not reproduced",
    "data": "",
    "cells": 0,
    "largest": None,
    "differences": (),
    "files": (),
}


def _entry(
    notebook: str, record: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the row of an artefact, with the answers to its findings."""
    findings = [claim for claim in claims if claim["kind"] == "finding"]
    number = Counter(claim[column] for claim in findings for column in ("in_paper", "elsewhere"))
    remarks = [record["note"]]
    for reason, count in Counter(each["reason"] for each in record["differences"]).items():
        remarks.append(f"{count} cell{'s' if count > 1 else ''}: {reason}")
    for claim in findings:
        if claim["in_paper"] == "contradicted":
            remarks.append(f"contradicted: {claim['statement']}")
    return {
        "status": record["status"],
        "notebook": notebook,
        "data": record["data"],
        "cells": str(record["cells"] or ""),
        "differing": str(len(record["differences"])) if record["cells"] else "",
        "largest_difference": "" if record["largest"] is None else f"{record['largest']:.2g}",
        "findings": str(len(findings) or ""),
        **{column: str(number[answer] or "") for answer, column in ANSWER_COLUMNS.items()},
        "remarks": "; ".join(filter(None, remarks)),
        "files": " ".join(f"{notebook}/{file}" for file in record["files"]),
    }


def table_of(manifests: Sequence[Mapping[str, Any]], judged: pd.DataFrame) -> pd.DataFrame:
    """Make the ledger from the manifests of reports and the judged claims, as text."""
    claims: dict[str, list[dict[str, Any]]] = {}
    for claim in as_claims(judged):
        claims.setdefault(f"{claim['paper']}/{claim['artefact']}", []).append(claim)
    entries: dict[str, dict[str, str]] = {}
    for manifest in manifests:
        for record in manifest["artefacts"]:
            name = record["artefact"]
            if name in entries:
                first = entries[name]["notebook"]
                raise ValueError(f"{name} is reported by both {first} and {manifest['notebook']}")
            entries[name] = _entry(manifest["notebook"], record, claims.get(name, []))
    rows = []
    for name, artefact in artefacts().iterrows():
        reason = artefact["absent_because"] or "not regenerated"
        absent = _entry("", {**_NOT_REGENERATED, "note": reason}, [])
        row = {column: artefact[column] for column in ("paper", "artefact", "title")}
        rows.append(row | entries.get(str(name), absent))
    columns = [*("paper", "artefact", "title"), *_entry("", {**_NOT_REGENERATED, "note": ""}, [])]
    return pd.DataFrame(rows, columns=columns, dtype="str")


def answers(row: Mapping[str, str]) -> str:
    """Write the answers to the findings of an artefact, with their counts."""
    texts = []
    for names in (IN_PAPER, ELSEWHERE):
        counted = [(row[ANSWER_COLUMNS[name]], name) for name in names]
        texts.append(", ".join(f"{number} {name}" for number, name in counted if number))
    return "; elsewhere: ".join(texts) if texts[0] else ""


def tally(counted: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return each question, answer and number of claims over all papers, as text."""
    total = counted[counted["paper"] == "all"]
    rows = total[["question", "answer", "claims"]].itertuples(index=False)
    return [(question, answer, str(number)) for question, answer, number in rows]
