"""Results follow from data: other data give others, and plain code gives those in the papers."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pandas as pd
import pytest

from equipoise_compendium import project, protocol, verdicts
from equipoise_compendium.provenance import VARIANT_VARIABLE
from notebook_evidence import evidence_of


def later(table: pd.DataFrame) -> pd.DataFrame:
    """Move the nuggets of Bing by 1,100 words, almost to the end of the users' patience."""
    is_bing = table["run"] == "bing-1"
    for place in ("start", "end"):
        table.loc[is_bing, place] = (table.loc[is_bing, place].astype(int) + 1100).astype(str)
    return table


def halved(table: pd.DataFrame) -> pd.DataFrame:
    """Halve the relevance that Table 1 reports for Google."""
    is_total = (table["run"] == "google-1") & (table["nugget"] == "all")
    table.loc[is_total, "R"] = (table.loc[is_total, "R"].astype(float) / 2).map("{:.4f}".format)
    return table


def exchanged(table: pd.DataFrame) -> pd.DataFrame:
    """Give the nuggets of each of the two runs to the other run."""
    one, other = table["run"].unique()
    return table.assign(run=table["run"].map({one: other, other: one}))


CHANGES = {
    "gfrc_time_travel_movies": {
        "conversations/M002.csv": later,
        "published/gfrc/table-1.csv": halved,
    },
    "gfrc2_iclr_researchers": {"conversations/R112.csv": exchanged},
}
"""By notebook and file below ``data/``."""
EXPECTED = {
    "gfrc_time_travel_movies": {
        ("finding", "bing-outperforms"),
        ("consistency check", "percentages-rounded"),
        ("consistency check", "s-measure-is-r"),
    },
    "gfrc2_iclr_researchers": {("positive control", "r-as-published")},
}
"""Kind and name of the claims whose result on some collection is the opposite then."""


@pytest.mark.parametrize("notebook", CHANGES)
def test_other_data_give_other_answers(
    notebook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_path = project.data_path

    def changed(*parts: str) -> Path:
        path, change = data_path(*parts), CHANGES[notebook].get("/".join(parts))
        if change is None:
            return path
        table = change(pd.read_csv(path, dtype=str, keep_default_na=False))
        table.to_csv(tmp_path / path.name, index=False)
        return tmp_path / path.name

    monkeypatch.setattr(project, "data_path", changed)
    monkeypatch.setenv(VARIANT_VARIABLE, "other data")
    rows = []
    for name, evidence in evidence_of(notebook, tmp_path)[0].items():
        paper, _, claim = name.partition("/")
        record = protocol.evidence_of(paper, claim, evidence)
        rows += [{**row, "notebook": notebook} for row in verdicts.rows_of(paper, record)]
    keys = ["paper", "kind", "claim", "collection", "part"]
    after = verdicts.judge(rows).set_index(keys)["result"]
    before = pd.read_csv(project.root() / "reports" / "claims.csv", keep_default_na=False)
    keys.remove("part")  # another part may decide
    before = before.drop_duplicates(keys).set_index(keys)["result"]
    after = after.groupby(keys).first()
    before = before.reindex(after.index)
    changed_kinds = {(kind, claim) for _, kind, claim, _ in after.index[before != after]}
    assert changed_kinds == EXPECTED[notebook]


# --- answers in the papers ------------------------------------------------------------------------


def published(name: str) -> list[dict[str, str]]:
    text = (project.root() / "data" / "published" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def number(cell: str) -> float:
    return float(cell.rstrip("%†‡")) / (100 if "%" in cell else 1)


def answer_of(meet: list[bool], quantifier: str = "each") -> tuple[str, str]:
    """Answer from parts without a known error, or that meet the criterion with their intervals."""
    needed = len(meet) // 2 + 1 if quantifier == "most" else len(meet)
    counts = f"{sum(meet)} of {len(meet)} parts meet the criterion" if len(meet) > 1 else ""
    if sum(meet) >= needed:
        return "carried", counts
    return "contradicted" if 2 * sum(meet) < len(meet) else "not carried", counts


def thesis_answers() -> dict[str, tuple[str, str]]:
    of_row = {row["row"]: list(row.values())[2:] for row in published("thesis/table-2.1")}
    tilde_v2 = [number(f) - number(c) for f, c in zip(of_row["f"], of_row["c"], strict=True)]
    assert min(tilde_v2) == tilde_v2[2] == pytest.approx(-0.0041)  # Co-read MAP

    alone = []
    for row in published("thesis/table-2.4"):
        if row["statistic"] == "queries with optimal alpha 1":
            alone.append([int(cell) for cell in list(row.values())[2:]])
    # The error is that of a sign test in which no query is in both counts.
    more = [b - a > 1.96 * math.sqrt(a + b) for a, b in zip(*alone, strict=True)]

    sizes = {row["queries"]: int(row["number"]) for row in published("thesis/query-sets")}
    marks, correlations = [], []
    for row in published("thesis/table-4.1"):
        error = 1 / math.sqrt(sizes[row["queries"]] - 3)
        correlations.append(math.tanh(math.atanh(number(row["r"])) - 1.96 * error) > 0)
        if row["method"] != "BM25":
            marks += [row[measure].endswith("‡") for measure in ("NFaiRR", "TExFAIR")]
    assert (sum(marks), len(marks)) == (39, 40)

    bm25, *neural = (row for row in published("thesis/table-4.2") if row["queries"] == "QS1")
    assert bm25["model"] == "BM25"
    at_both_ends = []
    for row in neural:
        at_both_ends.append(number(row["CRBO"]) < number(bm25["CRBO"]))
        for measure in ("TExFAIR", "NFaiRR"):
            at_both_ends.append(number(row[measure]) > number(bm25[measure]))
    return {
        "2.1-v2-above": answer_of([gap > 0 for gap in tilde_v2]),
        "2.4-bm25-alone": answer_of(more),
        "4.1-fairer": answer_of(marks, "most"),
        "4.1-correlated": answer_of(correlations),
        "4.2-bm25-least-biased": answer_of(at_both_ends),
    }


def permutations_answers() -> dict[str, tuple[str, str]]:
    systems = {row.pop("model"): row for row in published("permutations/table-2")}
    original = {name: number(row["orig. order"]) for name, row in systems.items()}
    first = original.pop("FU")
    # Only these have other scores when utterances are permuted.
    moved = [row for row in systems.values() if row["min"] != row["max"]]
    leads = [
        number(row[name]) > 0
        for row in published("permutations/table-3")
        for name in row
        if name != "model"
    ]
    squares = {
        row["source"]: (number(row["SS"]), int(row["DF"]))
        for row in published("permutations/table-4")
    }
    error = squares["Error"][0] / squares["Error"][1]
    between, freedom = squares["topic"]
    omega_squared = (between - freedom * error) / (squares["Total"][0] + error)
    (shown,) = (
        row["omega_squared"]
        for row in published("permutations/table-4")
        if row["source"] == "topic"
    )
    assert omega_squared == pytest.approx(number(shown), abs=0.003)  # sums are rounded
    return {
        "2-first-utterance": answer_of([first > value for value in original.values()]),
        "2-decrease": answer_of(
            [number(row["mean"]) < number(row["orig. order"]) for row in moved], "most"
        ),
        "3-anyone": answer_of(leads),
        "4-conversation": answer_of([omega_squared >= 0.14]),
    }


def test_answers_in_the_papers_by_plain_code() -> None:
    """Ten findings, from published tables alone."""
    wrong = [row["address"] == "wrong" for row in published("gfrc/addresses")]
    expected = {("gfrc", "google-wrong-addresses"): answer_of(wrong, "most")}
    expected |= {("thesis", name): answer for name, answer in thesis_answers().items()}
    expected |= {("permutations", name): it for name, it in permutations_answers().items()}
    assert len(expected) == 10
    assert [name for name, (answer, _) in expected.items() if answer != "carried"] == [
        ("thesis", "2.1-v2-above")
    ]
    path = project.root() / "reports" / "claims.csv"
    found = {}
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        found[row["paper"], row["claim"]] = row["in_paper"], row["in_paper_reason"]
    for name, (answer, counts) in expected.items():
        assert found[name][0] == answer, name
        assert counts in found[name][1], name
    assert "decisive (f − c, Co-read MAP): −0.0041" in found["thesis", "2.1-v2-above"][1]
