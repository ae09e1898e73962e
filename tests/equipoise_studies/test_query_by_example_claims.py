"""What the claims of chapter 2 are judged by: differences, chance, and published cells."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise_compendium import project
from equipoise_compendium.claims import Evidence, stated, verdict
from equipoise_compendium.printed import printed_table
from equipoise_studies.query_by_example import claims
from equipoise_studies.query_by_example.data import BM25_ROW, PAIR
from equipoise_studies.query_by_example.systems import Candidates

PUBLISHED = {number: printed_table(f"thesis/table-2.{number}") for number in (1, 2, 3, 4)}
FACETS = [
    (f"p{paper}", task) for paper in range(7) for task in ("background", "method")[: 1 + paper % 2]
]
"""Seven papers of unequal numbers of facets."""


@pytest.fixture(scope="module")
def precision() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    index = pd.MultiIndex.from_tuples(FACETS, names=["query", "task"])
    return pd.DataFrame(rng.random((len(FACETS), 4)), index, list("abcd"))


def test_values_are_pivoted_to_one_row_per_facet(precision: pd.DataFrame) -> None:
    long = precision.reset_index().melt(["query", "task"], var_name="run").assign(measure="MAP")
    both = pd.concat([long, long.assign(measure="nDCG", value=9.0)])
    assert claims.map_by_ranker(both).equals(precision.rename_axis(columns="run"))


def test_a_difference_is_that_of_means_over_facets(precision: pd.DataFrame) -> None:
    found = claims.mean_difference("x", precision[["a", "b"]], precision["c"], 0.5)
    gap = (precision["a"].mean() + precision["b"].mean()) / 2 - precision["c"].mean()
    assert found.estimate == pytest.approx(gap)
    assert (found.n, found.printed) == (7, 0.5)


def test_an_interval_draws_papers_with_all_their_facets(precision: pd.DataFrame) -> None:
    found = claims.mean_difference("x", precision["a"], precision["b"])
    gap = precision["a"] - precision["b"]
    parts = [part.to_numpy() for _, part in gap.groupby(level="query")]
    rng = np.random.default_rng(1)
    drawn = [
        np.concatenate([parts[place] for place in rng.integers(0, 7, 7)]).mean()
        for _ in range(4000)
    ]
    assert [found.low, found.high] == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.03)


def test_a_lead_is_over_the_best_of_the_others_in_each_sample(precision: pd.DataFrame) -> None:
    found = claims.lead_over_best("x", precision, "a")
    means = precision.mean()
    assert found.estimate == pytest.approx(means["a"] - means[["b", "c", "d"]].max())
    # Over one other it is the difference from it.
    alone = claims.lead_over_best("x", precision[["a", "b"]], "a")
    pair = claims.mean_difference("x", precision["a"], precision["b"])
    assert [alone.low, alone.high] == pytest.approx([pair.low, pair.high])


def test_published_leads_are_means_over_the_four_tasks() -> None:
    rows = {row["model"]: row for row in PUBLISHED[1].to_dict("records")}
    tasks = ("Co-view", "Co-read", "Co-cite", "Cite")

    def mean(model: str) -> float:
        return sum(float(rows[model][f"{task} MAP"].rstrip("%")) for task in tasks) / 400

    lead = claims.published_lead(PUBLISHED[1], ["TILDE BERT", "TILDEv2 BERT"], [BM25_ROW])
    expected = (mean("TILDE BERT") + mean("TILDEv2 BERT")) / 2 - mean(BM25_ROW)
    assert lead == pytest.approx(expected)


# --- chance ---------------------------------------------------------------------------------------


def noise_beside_bm25() -> tuple[Candidates, pd.DataFrame]:
    """BM25 knows the grades, and the other rankers' scores are noise."""
    rng = np.random.default_rng(6)
    rows = [(task, query, f"d{place}") for query, task in FACETS for place in range(10)]
    scores = pd.DataFrame(rows, columns=PAIR)
    grades = scores.assign(grade=np.tile([2, 1, 0, 0, 2, 0, 0, 0, 3, 0], len(FACETS)))
    scores[BM25_ROW] = grades["grade"] + 3 * rng.random(len(scores))
    for column in ("a.1", "a.2", "b.1"):
        scores[column] = rng.random(len(scores))
    splits = []
    for query, task in FACETS:
        for fold in (0, 1):
            part = "test" if int(query[1:]) % 2 == fold else "dev"
            splits.append((task, f"fold{fold}", part, query))
    candidates = Candidates.from_scores(scores, grades, 2, BM25_ROW, [["a.1", "a.2"], ["b.1"]])
    return candidates, pd.DataFrame(splits, columns=["task", "fold", "part", "query"])


def test_an_oracle_gains_by_chance_alone() -> None:
    found = claims.gain_of_oracle(*noise_beside_bm25())
    observed, expected = map(float, re.findall(r"0\.\d+", found.said)[:2])
    assert observed > 0.01
    assert found.estimate == pytest.approx(observed - expected, abs=0.001)
    assert verdict(found, stated("thesis").loc["2.4-oracle", "contradicted_if"]) != "holds"


def test_mixing_with_noise_does_not_help() -> None:
    found = claims.gain_of_mixing("x", *noise_beside_bm25(), 0.02)
    assert (found.n, found.printed) == (7, 0.02)
    assert verdict(found, stated("thesis").loc["2.3-together", "contradicted_if"]) != "holds"


def test_the_best_of_equal_rankers_has_no_lead() -> None:
    rng = np.random.default_rng(4)
    index = pd.MultiIndex.from_tuples(FACETS, names=["query", "task"])
    equal = pd.DataFrame(rng.random((len(FACETS), 10)), index, list("abcdefghij"))
    found = claims.lead_over_best("x", equal, str(equal.mean().idxmax()))
    row = stated("thesis").loc["2.2-stm2-best"]
    assert row["null"]
    assert verdict(found, row["contradicted_if"]) != "holds"


# --- published cells ------------------------------------------------------------------------------


def test_marks_name_rows_and_ranges_of_rows() -> None:
    assert claims.marked_above("a-cgij") == set("abcgij")
    assert claims.marked_above("c") == {"c"}
    assert claims.marked_above("") == set()


@given(st.lists(st.integers(0, 10), min_size=1, max_size=30))
def test_bounds_of_the_mean_weight_are_true_of_every_list_of_weights(steps: list[int]) -> None:
    low, high = claims.alpha_bounds(steps.count(0), steps.count(10), len(steps))
    assert low - 1e-12 <= np.mean(steps) / 10 <= high + 1e-12


def test_a_changed_cell_breaks_the_relations_it_is_in() -> None:
    before = claims.published_checks(PUBLISHED).set_index("check")
    repeated = "rows of Table 2.1 repeated in Table 2.3"
    oracle = "oracle (2.4) at least the tuned weight (2.3)"
    assert (before["cells"] == before["hold"]).sum() == 7
    changed = PUBLISHED[3].copy()
    changed.loc[1, "Cite MAP"] = "99.0%"  # TILDE alone
    changed.loc[3, "Cite MAP"] = "99.9%"  # its mixture with BM25
    after = claims.published_checks(PUBLISHED | {3: changed}).set_index("check")
    for check in (repeated, oracle):
        assert after.loc[check, "hold"] == before.loc[check, "hold"] - 1
    weights = PUBLISHED[4].copy()
    weights.loc[weights["statistic"] == "alpha average", "Cite MAP"] = "0.99"
    after = claims.published_checks(PUBLISHED | {4: weights}).set_index("check")
    assert after.loc["mean weight within what the counts allow (2.4)", "hold"] == 14


def cells_of(table: str, *rows: str) -> Iterator[list[str]]:
    """The cells of some rows of a published table, without csv's reader of the study."""
    path = project.root() / "data" / "published" / "thesis" / f"{table}.csv"
    with path.open(newline="") as file:
        by_row = {line[0]: line[2:] for line in csv.reader(file)}
    for row in rows:
        yield by_row[row]


def test_claims_on_published_cells_by_plain_counts() -> None:
    """What the notebook reports of the thesis's own cells, counted again."""
    report = pd.read_csv(project.root() / "reports" / "claims.csv").set_index("name")

    def number(text: str) -> float:
        return float(text.rstrip("%"))

    def share_above(above: str, below: str) -> float:
        cells = list(cells_of("table-2.1", *above)), list(cells_of("table-2.1", *below))
        holds = [
            number(mine) > number(other)
            for own in cells[0]
            for others in cells[1]
            for mine, other in zip(own, others, strict=True)
        ]
        return sum(holds) / len(holds)

    letters = {row["model"]: row["row"] for row in PUBLISHED[1].to_dict("records")}
    tilde_bert, tildev2_bert = letters["TILDE BERT"], letters["TILDEv2 BERT"]
    tilde, tildev2 = letters["TILDE SciBERT"], letters["TILDEv2 SciBERT"]
    expanded = "".join(letters[name] for name in letters if "expansion" in name)
    bert, scibert = tilde_bert + tildev2_bert, tilde + tildev2
    cross, bm25 = letters["Cross-Encoder SciBERT"], letters["BM25 STM2"]
    counted = {
        "2.1-printed-cross-encoder": share_above(cross, bert + scibert),
        "2.1-printed-v2-above": share_above(tildev2_bert, tilde_bert),
        "2.1-printed-expansion": share_above(tilde, expanded),
        "2.1-printed-most-tasks": share_above(bm25, bert),
        "2.1-tilde-scibert": share_above(tilde, tildev2_bert + tildev2),
    }
    parts = list(cells_of("table-2.3", *"abcde"))
    exceptions = 0
    for mixture, ranker in ((3, 1), (4, 2)):
        for place, cell in enumerate(parts[mixture]):
            better = max(number(parts[0][place]), number(parts[ranker][place]))
            exceptions += number(cell) <= better
    counted["2.3-exceptions"] = exceptions
    marks = dict(zip("de", cells_of("table-2.3-marks", *"de"), strict=True))
    marked = [{"a", "b"} <= set(text) for text in marks["d"] if "-" not in text]
    marked += [{"a", "c"} <= claims.marked_above(text) for text in marks["e"]]
    marked += [text.startswith("a-") for text in marks["d"] if "-" in text]
    counted["2.3-marks"] = sum(marked) / 16
    for name, value in counted.items():
        assert report.loc[name, "estimate"] == pytest.approx(value), name


def test_every_claim_of_the_chapter_is_judged_or_has_a_reason() -> None:
    table = stated("thesis")
    chapter = table[table.index.str.startswith("2.")]
    report = pd.read_csv(project.root() / "reports" / "claims.csv")
    report = report[report["notebook"] == "thesis_ch2_query_by_example"].set_index("name")
    assert set(report.index) == set(chapter.index)
    for name, row in chapter.iterrows():
        assert (report.loc[name, "verdict"] == "not testable") == bool(row["reason"]), name
        if row["reason"]:
            assert verdict(Evidence("x", reason=row["reason"]), row["contradicted_if"])
