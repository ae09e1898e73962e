"""Answers to findings, from the evidence of all reports, by one rule.

In the paper: its own numbers. Elsewhere: a test for each collection, Holm's correction over the
findings of a paper or chapter, controls, and one vote per collection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from equipoise.statistics import corrected, units_to_decide
from equipoise_compendium import project
from equipoise_compendium.formatting import decimals_of, interval, number, rounded
from equipoise_compendium.protocol import (
    STATED,
    Criterion,
    Evidence,
    collections,
    names_in,
    seen,
    stated,
    unit_of,
)
from equipoise_compendium.terms import CHECKS, ELSEWHERE, IN_PAPER, RECOMPUTED, REPLICATED

COLUMNS = [
    "paper",
    *STATED[:-4],
    "control",
    "in_paper",
    "in_paper_reason",
    "elsewhere",
    "elsewhere_reason",
    "seen",
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

``in_paper`` and ``elsewhere`` are the answers to a finding; a consistency check has its result in
``in_paper``. ``seen`` is what was known of the evidence before the criterion was written. ``parts``
are the parts with evidence, of which ``met`` have an estimate that meets the criterion. An
additional analysis has one row per part. A p-value below 1e-12 is 0.
"""
ERROR = 0.05
"""Error rate of a test, and of the family of all findings of one paper or chapter elsewhere."""
_COUNTS = ["parts", "met", "n", "n_needed"]
_NUMBERS = [*_COUNTS, "estimate", "low", "high", "level", "published", "p_value", "p_holm"]
_JUDGED = ["meets", "needed", "errors", "failed"]  # columns that are not written
QUESTIONS = {"in the paper": IN_PAPER, "elsewhere": ELSEWHERE, "check": CHECKS}
"""What is answered about a claim, and the answers."""


def rows_of(paper: str, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a claim as rows, with p-values before Holm's correction.

    A row has the decisive part of a collection. If ``u`` parts must meet the criterion, this is the
    ``u``-th part in the order of their support. An additional analysis has a row per part.
    """
    claim = stated(paper).loc[record["name"]].to_dict()
    common = {"paper": paper, "claim": record["name"], "seen": seen(paper)[record["name"]], **claim}
    if not record["evidence"]:
        return [{**common, "collection": "", "basis": "", "part": ""}]
    known = collections(paper)
    rows = []
    for collection, entries in record["evidence"].items():
        row = {**common, "collection": collection, "basis": known.loc[collection, "basis"]}
        row |= {
            "counted": unit_of(known.loc[collection, "counted"], row["claim"]),
            "errors": known.loc[collection, "errors"],
        }
        if claim["kind"] == "additional analysis":
            rows += [{**row, **part} for part in entries]
        else:
            rows.append({**row, **_decisive(claim, entries)})
    return rows


def _decisive(claim: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the decisive part on one collection, with the p-value of all parts."""
    criterion, parts = Criterion.parse(claim["criterion"]), [dict(entry) for entry in entries]
    for part in parts:
        if part["estimate"] is None:
            return {**part, "parts": len(parts)}
        numbers = {key: value for key, value in part.items() if key != "part"}
        part["support"], part["against"] = criterion.tails(Evidence(**numbers))
    needed = {"exists": 1, "most": len(parts) // 2 + 1}.get(claim["quantifier"], len(parts))
    for_it, against_it = partial_conjunction(
        [part["support"] for part in parts], [part["against"] for part in parts], needed
    )
    parts.sort(key=lambda part: (part["support"], -criterion.margin(part["estimate"])))
    row = {**parts[needed - 1], "parts": len(parts), "needed": needed}
    row["met"] = sum(part["estimate"] in criterion for part in parts)
    row["meets"] = for_it <= against_it
    if any(part["low"] != part["high"] for part in parts):
        row["p_value"] = rounded(min(1.0, 2 * min(for_it, against_it)))
    return row


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
    """Answer all findings by Holm's correction, controls and votes; columns `COLUMNS`."""
    table = pd.DataFrame([dict(row) for row in rows], columns=[*COLUMNS, *_JUDGED]).astype(object)
    table["chapter"] = table["artefact"].str.extract(r"-(\d+)\.", expand=False).fillna("")
    is_elsewhere = (table["kind"] == "finding") & (table["basis"] != RECOMPUTED)
    table["p_holm"] = table["p_value"]
    for _, family in table[is_elsewhere & table["p_value"].notna()].groupby(["paper", "chapter"]):
        p_holm = corrected(family["p_value"].astype(float), "holm")
        table.loc[family.index, "p_holm"] = [rounded(p_value) for p_value in p_holm]
    table["result"] = [result_of(row) for row in table.to_dict("records")]

    shown = table[(table["kind"] == "positive control") & (table["result"] == "passed")]
    passed = set(zip(shown["paper"], shown["claim"], shown["collection"], strict=True))
    for index, row in table[table["basis"] == REPLICATED].iterrows():
        failed = [
            name
            for name in names_in(row["control"])
            if (row["paper"], name, row["collection"]) not in passed
        ]
        if failed and row["result"] != "not computed":
            table.loc[index, ["result", "failed"]] = ["control failed", ", ".join(failed)]

    for _, of_claim in table.groupby(["paper", "claim"], sort=False):
        claim, evidence = of_claim.iloc[0].to_dict(), of_claim.to_dict("records")
        if claim["kind"] == "finding":
            of_paper = [row for row in evidence if row["basis"] == RECOMPUTED]
            others = [row for row in evidence if row["basis"] not in ("", RECOMPUTED)]
            table.loc[of_claim.index, ["in_paper", "in_paper_reason"]] = in_paper(claim, of_paper)
            table.loc[of_claim.index, ["elsewhere", "elsewhere_reason"]] = elsewhere(claim, others)
            for index, row in of_claim.iterrows():
                if row["result"] == "imprecise" and row["basis"] != RECOMPUTED:
                    table.loc[index, "n_needed"] = units_needed(row)
        elif claim["kind"] == "consistency check":
            results = {row["result"] for row in evidence}
            table.loc[of_claim.index, "in_paper"] = "agrees" if results == {"agrees"} else "differs"
            table.loc[of_claim.index, "in_paper_reason"] = "; ".join(map(numbers_of, evidence))
    text = table.columns.difference(_NUMBERS)
    table[text] = table[text].fillna("")
    table = table.astype(dict.fromkeys(_NUMBERS, "float"))
    table = table.astype(dict.fromkeys(_COUNTS, "Int64"))
    return table.sort_values(["paper", "artefact"], kind="stable")[COLUMNS]


def result_of(row: Mapping[str, Any]) -> str:
    """Return the result on one collection, before controls; empty for an additional analysis."""
    if not row["collection"] or row["kind"] == "additional analysis":
        return ""
    if pd.isna(row["estimate"]):
        return "not computed"
    p_value = row.get("p_holm", row.get("p_value"))
    has_p, meets = pd.notna(p_value), row["meets"]
    if row["errors"] and has_p and p_value >= ERROR:
        has_p, meets = False, row["met"] >= row["needed"]  # the error may be far smaller
    if row["kind"] == "consistency check":
        return "agrees" if meets else "differs"
    if has_p and p_value >= ERROR:
        return "imprecise"
    if row["kind"] == "positive control":
        return "passed" if meets else "failed"
    if row["basis"] != RECOMPUTED and not has_p:
        return "no interval"
    if has_p or meets or 2 * row["met"] < row["parts"]:
        return "met" if meets else "opposite"
    return "not met"  # by some of the published numbers, whose errors are not known


def numbers_of(row: Mapping[str, Any]) -> str:
    """Write the decisive number of a collection, with its error if that is known."""
    if pd.isna(row["estimate"]):
        return str(row["reason"])
    part, decimals = f"{row['part']}: " if row["part"] else "", decimals_of(row)
    if row["parts"] > 1:
        met = f"{row['met']:.0f} of {row['parts']:.0f} parts meet the criterion"
        part = f"{met}, decisive ({row['part']}): "
    if pd.notna(row["low"]):
        return part + interval(row["estimate"], row["low"], row["high"], decimals)
    published = ""
    if pd.notna(row["published"]):
        published = f" (published {number(row['published'], decimals)})"
    return f"{part}{number(row['estimate'], decimals)}{published}"


def in_paper(claim: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return the answer of the paper's own numbers, and the number that decides, or the reason."""
    if not rows:
        return "cannot be recomputed", claim["in_paper_reason"]
    results = {row["result"] for row in rows}
    if results == {"not computed"}:
        return "cannot be recomputed", "; ".join(str(row["reason"]) for row in rows)
    if results <= {"met", "not computed"}:
        answer, decisive = "carried", "met"
    elif "opposite" in results and "met" not in results:
        answer, decisive = "contradicted", "opposite"
    else:
        answer, decisive = "not carried", ""
    reasons = []
    for row in rows:
        if decisive and row["result"] != decisive:
            continue
        reason = numbers_of(row)
        if pd.notna(row["p_value"]) and row["p_value"] >= ERROR:
            reason += f", p = {row['p_value']:.2g}"
            if row["errors"]:
                reason += " by a bound of the error, which may be far smaller"
        elif pd.isna(row["low"]) and pd.notna(row["estimate"]):
            reason += f", {row['reason']}"
        reasons.append(reason)
    return answer, "; ".join(reasons)


def elsewhere(claim: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return the answer of other data and of values of others, and where, or the reason."""
    if not rows:
        return "not tested", claim["elsewhere_reason"]
    words = {"met": "holds", "opposite": "does not hold"}
    votes = [row for row in rows if row["result"] in words]
    told = [f"on {row['collection']}: {numbers_of(row)}" for row in votes]
    results = [words[row["result"]] for row in votes]
    if len(set(results)) > 1:
        pairs = zip(results, told, strict=True)
        return "inconclusive", "collections disagree: " + "; ".join(map(" ".join, pairs))
    if votes:
        return results[0], "; ".join(told)
    collections_by_reason: dict[str, list[str]] = {}
    for row in rows:
        collections_by_reason.setdefault(_why_open(row), []).append(row["collection"])
    reasons = [f"{', '.join(names)}: {why}" for why, names in collections_by_reason.items()]
    return "inconclusive", "; ".join(reasons)


def _why_open(row: Mapping[str, Any]) -> str:
    """Return why a collection does not vote, in words that a reader can act on."""
    if row["result"] == "not computed":
        return str(row["reason"])
    if row["result"] == "no interval":
        return "no interval is known"
    if row["result"] == "control failed":
        return f"the control failed ({row['failed']})"
    needed = units_needed(row)
    more = ""
    if needed is not None and needed > row["n"]:
        more = f", needs {needed - row['n']:,.0f} more {row['counted']}"
    return f"p = {row['p_holm']:.2g} after Holm's correction{more}"


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
            paper, _, artefact = record["artefact"].partition("/")
            claims = list(record["claims"])
            if record in manifest["artefacts"]:  # findings without data are stated, not reported
                listed = stated(paper)
                is_open = (listed["artefact"] == artefact) & (listed["collections"] == "none")
                claims += [{"name": name, "evidence": {}} for name in listed.index[is_open]]
            for claim in claims:
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
        evidence = [row for row in rows if row["collection"]]
        claims.append({**rows[0], "evidence": evidence})
    return claims


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Count findings by both answers and checks by result, per paper; ``all``: over all papers."""
    rows = []
    for claim in as_claims(table):
        for paper in (claim["paper"], "all"):
            if claim["kind"] == "finding":
                rows.append((paper, "in the paper", claim["in_paper"]))
                rows.append((paper, "elsewhere", claim["elsewhere"]))
            elif claim["kind"] == "consistency check":
                rows.append((paper, "check", claim["in_paper"]))
    names = ["paper", "question", "answer"]
    counted = pd.DataFrame(rows, columns=names).value_counts().to_dict()
    listed = []
    for paper in [*table["paper"].unique(), "all"]:
        for question, answers in QUESTIONS.items():
            for answer in answers:
                number_of_claims = counted.get((paper, question, answer), 0)
                if number_of_claims or paper == "all":
                    listed.append((paper, question, answer, number_of_claims))
    return pd.DataFrame(listed, columns=[*names, "claims"])
