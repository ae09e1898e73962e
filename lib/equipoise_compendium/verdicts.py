"""Verdicts: claims judged from the evidence of all reports, by one rule.

A test for each collection, Holm's correction over the claims of a paper, controls, and one vote per
collection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from equipoise.statistics import corrected, units_to_decide
from equipoise_compendium import project
from equipoise_compendium.formatting import rounded
from equipoise_compendium.protocol import (
    STATED,
    Criterion,
    Evidence,
    collections,
    names_in,
    stated,
    unit_of,
)
from equipoise_compendium.terms import BASES, KINDS, REPLICATED, VERDICTS

COLUMNS = [
    "paper",
    *STATED[:-3],
    "control",
    "verdict",
    "verdict_reason",
    "collection",
    "basis",
    "part",
    "parts",
    "met",
    "estimate",
    "low",
    "high",
    "level",
    "n",
    "counted",
    "published",
    "p_value",
    "p_holm",
    "result",
    "n_needed",
    "notebook",
    "reason",
]
"""Columns of ``reports/claims.csv``: one row per claim and collection.

``parts`` are the parts with evidence, of which ``met`` have an estimate that meets the criterion.
A p-value below 1e-12 is 0.
"""
ERROR = 0.05
"""Error rate of a family: all findings (or checks, or analyses) of one paper and basis."""
_COUNTS = ["parts", "met", "n", "n_needed"]
_NUMBERS = [*_COUNTS, "estimate", "low", "high", "level", "published", "p_value", "p_holm"]


def rows_of(paper: str, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a claim as rows, one per collection, with p-values before Holm's correction.

    A row has the decisive part. If ``u`` parts must meet the criterion, this is the ``u``-th part
    in the order of their support.
    """
    claim = stated(paper).loc[record["name"]].to_dict()
    common = {"paper": paper, "claim": record["name"], **claim}
    if not record["evidence"]:
        empty = asdict(Evidence(reason=claim["reason"]))
        return [{**common, "collection": "", "basis": "", "part": "", "parts": 0, **empty}]
    criterion, known = Criterion.parse(claim["criterion"]), collections(paper)
    rows = []
    for collection, entries in record["evidence"].items():
        parts = [dict(entry) for entry in entries]
        row = {**common, "collection": collection, "basis": known.loc[collection, "basis"]}
        row |= {
            "parts": len(parts),
            "counted": unit_of(known.loc[collection, "counted"], row["claim"]),
        }
        if any(part["estimate"] is None for part in parts):
            missing = next(part for part in parts if part["estimate"] is None)
            rows.append({**row, **missing})
            continue
        for part in parts:
            numbers = {key: value for key, value in part.items() if key != "part"}
            part["support"], part["against"] = criterion.tails(Evidence(**numbers))
        row["met"] = sum(part["estimate"] in criterion for part in parts)
        needed = {"exists": 1, "most": len(parts) // 2 + 1}.get(claim["quantifier"], len(parts))
        for_it, against_it = partial_conjunction(
            [part["support"] for part in parts], [part["against"] for part in parts], needed
        )
        parts.sort(key=lambda part: (part["support"], -criterion.margin(part["estimate"])))
        row |= parts[needed - 1]
        row["tends"] = "supports" if for_it <= against_it else "contradicts"
        if any(part["low"] != part["high"] for part in parts):
            row["p_value"] = rounded(min(1.0, 2 * min(for_it, against_it)))
        rows.append(row)
    return rows


def partial_conjunction(
    support: Sequence[float], against: Sequence[float], needed: int
) -> tuple[float, float]:
    """Combine one-sided p-values of parts, of which ``needed`` must meet the criterion.

    Returns the p-value for at least ``needed`` parts that meet it, and the p-value for fewer parts
    (Benjamini and Heller, 2008). Bonferroni's bound allows any dependence between the parts.
    """
    parts = len(support)
    for_it = (parts - needed + 1) * sorted(support)[needed - 1]
    against_it = needed * sorted(against)[parts - needed]
    return min(1.0, for_it), min(1.0, against_it)


def judge(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Judge all claims by Holm's correction, controls and votes; columns `COLUMNS`."""
    table = pd.DataFrame([dict(row) for row in rows], columns=[*COLUMNS, "tends"]).astype(object)
    is_control = table["kind"] == "positive control"
    table["p_holm"] = table["p_value"]
    tested = table[table["p_value"].notna() & ~is_control]
    for _, family in tested.groupby(["paper", "basis", "kind"]):
        p_holm = corrected(family["p_value"].astype(float), "holm")
        table.loc[family.index, "p_holm"] = [rounded(p_value) for p_value in p_holm]
    pairs = zip(table["tends"], table["p_holm"], strict=True)
    table["result"] = [result_of(tends, p_value) for tends, p_value in pairs]

    shown = table.loc[is_control & (table["result"] == "supports")]
    passed = set(zip(shown["paper"], shown["claim"], shown["collection"], strict=True))
    for index, row in table.iterrows():
        needed = names_in(row["control"]) if row["basis"] == REPLICATED else []
        if any((row["paper"], name, row["collection"]) not in passed for name in needed):
            if row["result"] != "not testable":
                table.loc[index, "result"] = "control failed"

    for _, of_claim in table.groupby(["paper", "claim"], sort=False):
        verdict, reason = verdict_of(of_claim["result"].tolist())
        if verdict == "inconclusive" and of_claim["kind"].iloc[0] == "positive control":
            reason = "a control counts for each collection separately"
        table.loc[of_claim.index, "verdict"] = verdict
        table.loc[of_claim.index, "verdict_reason"] = reason
        if reason != "imprecise":
            continue
        for index, row in of_claim.iterrows():
            table.loc[index, "n_needed"] = units_needed(row)
    text = table.columns.difference(_NUMBERS)
    table[text] = table[text].fillna("")
    table = table.astype(dict.fromkeys(_NUMBERS, "float"))
    table = table.astype(dict.fromkeys(_COUNTS, "Int64"))
    return table.sort_values(["paper", "artefact"], kind="stable")[COLUMNS]


def result_of(tends: Any, p_value: Any) -> str:
    """Return the result on one collection; without sampling there is no p-value."""
    if pd.isna(tends):
        return "not testable"
    return str(tends) if pd.isna(p_value) or p_value < ERROR else "imprecise"


def verdict_of(results: Sequence[str]) -> tuple[str, str]:
    """Return the verdict from the results on the collections, and the reason if it has none."""
    seen = set(results)
    if seen == {"not testable"}:
        return "not testable", ""
    votes = seen & {"supports", "contradicts"}
    if votes == {"supports"}:
        return "supported", ""
    if votes == {"contradicts"}:
        return "contradicted", ""
    if votes:
        return "inconclusive", "collections disagree"
    return "inconclusive", "imprecise" if "imprecise" in seen else "control failed"


def units_needed(row: Mapping[str, Any]) -> int | None:
    """Compute the sample size to detect the published effect, or else the observed effect.

    It applies to one test at 5% with a power of 0.8, if the interval shrinks with the root of the
    number of units. Returns None without an interval, or if the effect is on the bound itself.
    """
    if any(pd.isna(row[name]) for name in ("n", "low", "estimate")):
        return None
    effect = row["estimate"] if pd.isna(row["published"]) else row["published"]
    criterion = Criterion.parse(row["criterion"])
    gap = min(abs(effect - edge) for edge in (criterion.low, criterion.high))
    if gap <= 1e-9 * max(1.0, abs(effect)) or row["high"] == row["low"]:
        return None
    return units_to_decide(row["n"], row["low"], row["high"], gap)


# --- all claims -----------------------------------------------------------------------------------


def table_of(manifests: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Judge every claim of these reports; return one row per claim and collection."""
    rows = []
    for manifest in manifests:
        for record in [*manifest["artefacts"], *manifest["beyond"]]:
            paper = record["artefact"].partition("/")[0]
            for claim in record["claims"]:
                for row in rows_of(paper, claim):
                    rows.append({**row, "notebook": manifest["notebook"]})
    return judge(rows)


def read() -> list[dict[str, Any]]:
    """Read ``reports/claims.csv`` as claims, each with its rows under ``evidence``."""
    path = project.root() / "reports" / "claims.csv"
    texts = dict.fromkeys(set(COLUMNS) - set(_NUMBERS), str)
    empty = dict.fromkeys(_NUMBERS, "")
    table = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=empty)
    return as_claims(table)


def as_claims(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Group rows of claims: one entry per claim, with one row per collection as ``evidence``."""
    rows_of_claims: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in table.astype(object).where(table.notna(), None).to_dict("records"):
        rows_of_claims.setdefault((row["paper"], row["claim"]), []).append(row)
    claims = []
    for rows in rows_of_claims.values():
        bases = [basis for basis in BASES if basis in [row["basis"] for row in rows]]
        claims.append({**rows[0], "basis": bases[0] if bases else "", "evidence": rows})
    return claims


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Count claims by paper (``all``: over all papers), kind, basis and verdict.

    A claim counts once, for the first of its bases in the order of `BASES`. A claim that no
    collection judges has no basis.
    """
    rows = []
    for claim in as_claims(table):
        for paper in (claim["paper"], "all"):
            rows.append((paper, claim["kind"], claim["basis"], claim["verdict"]))
    names = ["paper", "kind", "basis", "verdict"]
    counted = pd.DataFrame(rows, columns=names).value_counts().to_dict()
    listed = []
    for paper in [*table["paper"].unique(), "all"]:
        for kind in KINDS:
            for basis in [*BASES, ""]:
                for verdict in VERDICTS:
                    number = counted.get((paper, kind, basis, verdict), 0)
                    if number or paper == "all":
                        listed.append((paper, kind, basis or "none", verdict, number))
    return pd.DataFrame(listed, columns=[*names, "claims"])
