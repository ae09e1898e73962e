"""What the claims of chapter 2 are judged by: differences, chance, and published cells."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_studies.query_by_example import claims, systems
from equipoise_studies.query_by_example.data import BM25_ROW, PAIR
from equipoise_studies.query_by_example.systems import Candidates
from equipoise_studies.query_by_example.tables import published_numbers
from notebook_evidence import committed_evidence, result_of

COMMITTED = committed_evidence("thesis_ch2_query_by_example")
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
    found = claims.mean_difference(precision[["a", "b"]], precision["c"], 0.5)
    gap = (precision["a"].mean() + precision["b"].mean()) / 2 - precision["c"].mean()
    assert found.estimate == pytest.approx(gap)
    assert (found.n, found.published) == (7, 0.5)


def test_an_interval_draws_papers_with_all_their_facets(precision: pd.DataFrame) -> None:
    found = claims.mean_difference(precision["a"], precision["b"])
    gap = precision["a"] - precision["b"]
    parts = [part.to_numpy() for _, part in gap.groupby(level="query")]
    rng = np.random.default_rng(1)
    drawn = [
        np.concatenate([parts[place] for place in rng.integers(0, 7, 7)]).mean()
        for _ in range(4000)
    ]
    assert [found.low, found.high] == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.03)


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
    candidates, splits = noise_beside_bm25()
    curves, times = candidates.curves(), np.ones((1, len(candidates.facets)))
    _, gains = systems.gains(curves, systems.folds_of(candidates.facets, splits), times)
    assert gains.min() > 0.01
    for found, gain in zip(claims.gain_of_oracle(candidates, splits), gains[:, 0], strict=True):
        assert found.estimate < gain - 0.01
        assert result_of("thesis/2.4-oracle", found) != "supports"


def test_mixing_with_noise_does_not_help() -> None:
    first, second = claims.gain_of_mixing(*noise_beside_bm25(), [0.02, 0.03])
    assert [first.published, second.published] == [0.02, 0.03]
    for found in (first, second):
        assert found.n == 7
        assert result_of("thesis/2.3-together", found) != "supports"


# --- published cells ------------------------------------------------------------------------------


def test_marks_name_rows_and_ranges_of_rows() -> None:
    assert claims.marked_above("a-cgij") == set("abcgij")
    assert claims.marked_above("c") == {"c"}
    assert claims.marked_above("") == set()


def test_a_missing_mark_bounds_nothing() -> None:
    cells = published_numbers(PUBLISHED[2]).droplevel("model").filter(like="MAP")
    marks = printed_table("thesis/table-2.2-marks").set_index("row").filter(like="MAP")
    # Twice the difference has twice the standard error.
    bound = claims.from_marks(cells, marks, [("h", "f")])
    twice = claims.from_marks(2 * cells, marks, [("h", "f")])
    assert None not in (bound.low, twice.low)
    assert twice.low == pytest.approx(2 * np.float64(bound.low))
    with pytest.raises(ValueError, match="row h, Co-read MAP: no mark for row j"):
        claims.from_marks(cells, marks, [("h", "j")])


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


def test_claims_on_published_cells_by_plain_differences() -> None:
    def row(table: str, letter: str) -> list[float]:
        [cells] = cells_of(table, letter)
        return [float(cell.rstrip("%")) / (100 if "%" in cell else 1) for cell in cells]

    def minus(table: str, first: str, second: str) -> list[float]:
        return [x - y for x, y in zip(row(table, first), row(table, second), strict=True)]

    pairs = {
        "2.1-printed-v2-above": [("f", "c")],
        "2.1-printed-scientific": [("e", "c"), ("h", "f")],
        "2.1-tilde-scibert": [("e", "f"), ("e", "h")],
        "2.1-printed-expansion": [("e", "i"), ("e", "j")],
        "2.1-printed-zero-shot": [("d", "c"), ("d", "e"), ("g", "f"), ("g", "h")],
    }
    expected: dict[str, list[float]] = {}
    for claim, rows in pairs.items():
        expected[claim] = []
        for first, second in rows:
            expected[claim] += minus("table-2.1", first, second)
    for claim, table, first, others in (
        ("2.1-printed-cross-encoder", "table-2.1", "k", "cdefghij"),
        ("2.2-printed-stm2-best", "table-2.2", "h", "abcdefgij"),
    ):
        leads = [minus(table, first, other) for other in others]
        expected[claim] = [min(column) for column in zip(*leads, strict=True)]
    ahead = zip(minus("table-2.1", "a", "c"), minus("table-2.1", "a", "f"), strict=True)
    bm25 = [min(pair) for pair in ahead]
    expected["2.1-printed-most-tasks"] = [min(bm25[i : i + 2]) for i in range(0, 8, 2)]
    for claim, differences in expected.items():
        parts = COMMITTED[f"thesis/{claim}"]["published numbers"].values()
        assert [part.estimate for part in parts] == pytest.approx(differences), claim
    # The sentence that has no hedge is not true of each cell.
    assert sum(difference <= 0 for difference in expected["2.1-printed-v2-above"]) == 1


def test_marks_of_mixtures_by_hand() -> None:
    shares, agreement = [], []
    exceptions = {("e", "Co-view nDCG"), ("e", "Cite MAP"), ("e", "Cite nDCG")}
    for row, rankers in (("d", "ab"), ("e", "ac")):
        marks = printed_table("thesis/table-2.3-marks").set_index("row").loc[row]
        for cell, letters in marks.drop("model").items():
            shares.append(sum(ranker in letters for ranker in rankers) / 2)
            agreement.append(float((shares[-1] < 1) == ((row, cell) in exceptions)))
    for claim, values in (("2.3-significant", shares), ("2.3-exceptions", agreement)):
        parts = COMMITTED[f"thesis/{claim}"]["published marks, Table 2.3"].values()
        assert [part.estimate for part in parts] == values
    assert shares.count(1.0) == 13
