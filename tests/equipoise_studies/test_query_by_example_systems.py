"""Chapter 2: BM25, the language model, mixtures, tables and figures, by plain loops."""

from __future__ import annotations

import math
from typing import Any

import bm25s
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.stats import zscore

from equipoise.measures.effectiveness import effectiveness
from equipoise_compendium.printed import printed_table
from equipoise_studies.query_by_example import figures, systems, tables
from equipoise_studies.query_by_example.data import BM25_ROW, PAIR, read_study
from equipoise_studies.query_by_example.systems import ALPHAS, ANALYSERS, DerivedData

Floats = NDArray[np.float64]

TEXTS = {
    "1": "graphs of graphs, ranked by users",
    "2": "ranking a graph of users",
    "3": "users rank users by users",
    "4": "nothing alike",
    "5": "ranking users",
}
JUDGED = [("t", "1", "2", 1), ("t", "1", "3", 0), ("t", "2", "3", 1), ("t", "2", "4", 0)]


# --- terms and lexical rankers --------------------------------------------------------------------


def test_the_three_analysers_differ_where_they_should() -> None:
    text = "Rankers' state-of-the-art (BM25) scored 3.5, e.g. “quoted” terms"
    words = ["rankers", "state", "of", "the", "art", "bm25", "scored", "3.5", "e.g", "quoted"]
    assert ANALYSERS["SA"](text) == [*words, "terms"]
    assert ANALYSERS["STM2"](text)[0] == "ranker"
    assert "(bm25)" in ANALYSERS["STM1"](text)
    assert [len(word) for word in ANALYSERS["SA"]("x" * 600)] == [255, 255, 90]
    assert ANALYSERS["SA"]("—  … !") == []


@pytest.fixture
def derived() -> DerivedData:
    texts = pd.Series(TEXTS).rename_axis("document")
    judgements = pd.DataFrame(JUDGED, columns=[*PAIR, "grade"])
    pairs = judgements[["query", "document"]]
    shared, statistics = systems.shared_terms(systems.term_counts(texts, ANALYSERS), pairs)
    splits = pd.DataFrame(columns=["task", "fold", "part", "query"])
    lengths = systems.paper_lengths(texts, ANALYSERS)
    return DerivedData(judgements, splits, lengths, shared, statistics)


@pytest.mark.parametrize("analyser", list(ANALYSERS))
def test_scores_from_counts_are_the_formulas_over_texts(
    derived: DerivedData, analyser: str
) -> None:
    scores = systems.lexical_scores(derived, k1=1.2, b=0.75, smoothing=0.3)
    scores = scores.set_index(["query", "document"])
    # The collection is the candidates; paper 5 is in no pair.
    terms = {name: ANALYSERS[analyser](TEXTS[name]) for name in TEXTS}
    candidates = {name: terms[name] for name in ("2", "3", "4")}
    everything = [term for words in candidates.values() for term in words]
    mean_length = len(everything) / 3
    public = bm25s.BM25(method="lucene", k1=1.2, b=0.75, dtype="float64")
    public.index(list(candidates.values()), show_progress=False)
    for query, document in scores.index:
        own = candidates[document]
        bm25 = language = 0.0
        for term in terms[query]:
            holding = sum(term in words for words in candidates.values())
            count = own.count(term)
            room = 1.2 * (0.25 + 0.75 * len(own) / mean_length)
            rarity = math.log(1 + (3 - holding + 0.5) / (holding + 0.5))
            bm25 += rarity * count * 2.2 / (count + room)
            share = (everything.count(term) + 1) / (len(everything) + 1)
            language += math.log(1 + 0.7 * count / len(own) / (0.3 * share))
        assert scores.loc[(query, document), f"BM25 {analyser}"] == pytest.approx(bm25)
        assert scores.loc[(query, document), f"LM {analyser}"] == pytest.approx(language)
        known = [term for term in terms[query] if term in everything]
        theirs = public.get_scores(known)[list(candidates).index(document)] if known else 0.0
        # bm25s leaves out the factor k1 + 1, which changes no ranking.
        assert bm25 == pytest.approx(theirs * 2.2, abs=1e-6)


@pytest.mark.parametrize(
    "wrong", [{"k1": -1.0}, {"b": 1.5}, {"smoothing": 0.0}, {"smoothing": 1.0}]
)
def test_parameters_out_of_range_are_rejected(
    derived: DerivedData, wrong: dict[str, float]
) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be|and b between"):
        systems.lexical_scores(derived, **wrong)


# --- mixtures -------------------------------------------------------------------------------------

SCORES = st.floats(-1e3, 1e3).map(lambda score: round(score, 6))  # scipy loses what is far smaller


@st.composite
def scored(draw: st.DrawFn) -> tuple[Floats, NDArray[np.int64]]:
    rows = draw(st.integers(1, 30))
    groups = arrays(np.int64, rows, elements=st.integers(0, 4))
    return draw(arrays(np.float64, rows, elements=SCORES)), draw(groups)


@given(scored())
def test_z_scale_is_scipys_zscore_of_each_query(values: tuple[Floats, NDArray[np.int64]]) -> None:
    scores, groups = values
    scaled = systems.z_scale(scores, groups)
    for group in np.unique(groups):
        own = scores[groups == group]
        if np.ptp(own) == 0:
            assert (scaled[groups == group] == 0).all()
        elif np.ptp(own) > 1e-6 * np.abs(own).max():  # else scipy calls the scores nearly equal
            np.testing.assert_allclose(scaled[groups == group], zscore(own), atol=1e-6)


@given(scored(), st.floats(0.1, 10), st.floats(-100, 100))
def test_z_scale_does_not_depend_on_scale_and_shift(
    values: tuple[Floats, NDArray[np.int64]], scale: float, shift: float
) -> None:
    scores, groups = np.round(values[0]), values[1]
    moved = systems.z_scale(scores * scale + shift, groups)
    np.testing.assert_allclose(moved, systems.z_scale(scores, groups), atol=1e-6)


def test_z_scale_rejects_nan() -> None:
    with pytest.raises(ValueError, match="must be finite"):
        systems.z_scale([1.0, math.nan], [0, 0])


@pytest.fixture(scope="module")
def pairs() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Scores, grades and splits of ten candidates for each of ten facets of seven papers."""
    facets = [
        (task, f"p{paper}")
        for paper in range(7)
        for task in ("background", "method")[: 1 + paper % 2]
    ]
    rng = np.random.default_rng(3)
    rows = [(*facet, f"d{place}") for facet in facets for place in range(10)]
    table = pd.DataFrame(rows, columns=PAIR)
    grades = table.assign(grade=np.tile([2, 1, 0, 0, 2, 0, 0, 0, 3, 0], len(facets)))
    scores = table.assign(
        **{name: rng.random(len(table)) for name in (BM25_ROW, "a.1", "a.2", "b.1")}
    )
    splits = []
    for task, query in facets:
        for fold in (0, 1):
            part = "test" if int(query[1:]) % 2 == fold else "dev"
            splits.append((task, f"fold{fold}", part, query))
    return scores, grades, pd.DataFrame(splits, columns=["task", "fold", "part", "query"])


Pairs = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]


def test_curves_are_those_of_the_measure_itself(pairs: Pairs) -> None:
    scores, grades, _ = pairs
    mixtures = [["a.1", "a.2"], ["b.1"]]
    candidates = systems.Candidates.from_scores(scores, grades, 2, BM25_ROW, mixtures)
    codes = scores.groupby(["task", "query"]).ngroup()
    bm25 = systems.z_scale(scores[BM25_ROW], codes)
    runs = []
    for column in ("a.1", "a.2", "b.1"):
        scaled = systems.z_scale(scores[column], codes)
        for alpha in ALPHAS:
            mixed = alpha * bm25 + (1 - alpha) * scaled
            runs.append(scores[PAIR].assign(run=column, alpha=alpha, score=mixed))
    by = ["run", "alpha", "task"]
    values = effectiveness(pd.concat(runs), grades, by=by, measures={"MAP": "AP(rel=2)"})
    wide = values.pivot_table(index=["run", "alpha"], columns=["task", "query"], values="value")
    first, second = candidates.curves()
    expected = (wide.loc["a.1"] + wide.loc["a.2"]) / 2
    assert first == pytest.approx(expected[candidates.facets].to_numpy())
    assert second == pytest.approx(wide.loc["b.1"][candidates.facets].to_numpy())


def test_weights_are_tuned_on_the_other_fold_of_the_papers_drawn(pairs: Pairs) -> None:
    scores, grades, splits = pairs
    mixtures = [["a.1", "a.2"], ["b.1"]]
    candidates = systems.Candidates.from_scores(scores, grades, 2, BM25_ROW, mixtures)
    curves, facets = candidates.curves(), list(candidates.facets)
    rng = np.random.default_rng(1)
    times = np.vstack([np.ones(len(facets)), rng.integers(0, 3, len(facets))]).astype(float)
    mixing, oracle = systems.gains(curves, systems.folds_of(candidates.facets, splits), times)
    tested = splits[splits["part"] == "test"]
    fold_of = {(row.task, row.query): row.fold for row in tested.itertuples()}
    for draw, weights in enumerate(times):
        for mixture, curve in enumerate(curves):
            tuned = best = 0.0
            for place, facet in enumerate(facets):
                dev = np.zeros(len(ALPHAS))
                for other, other_facet in enumerate(facets):
                    if other_facet[0] == facet[0] and fold_of[other_facet] != fold_of[facet]:
                        dev += weights[other] * curve[:, other]
                tuned += weights[place] * curve[dev.round(12).argmax(), place]
                best += weights[place] * curve[:, place].max()
            alone = max(weights @ curve[0], weights @ curve[-1])
            assert mixing[mixture, draw] == pytest.approx((tuned - alone) / weights.sum())
            assert oracle[mixture, draw] == pytest.approx((best - tuned) / weights.sum())


def test_shuffled_scores_stay_among_the_candidates_of_their_facet(pairs: Pairs) -> None:
    scores, grades, _ = pairs
    fewer = scores[~((scores["query"] == "p0") & (scores["document"] > "d5"))]
    candidates = systems.Candidates.from_scores(fewer, grades, 2, BM25_ROW, [["b.1"]])
    curves = candidates.shuffled(50, np.random.default_rng(0))
    assert curves.shape == (50, 1, len(ALPHAS), len(candidates.facets))
    # With all weight on BM25 nothing is shuffled; without, the mean is that of random orders.
    assert (curves[:, 0, -1] == candidates.curves()[0, -1]).all()
    place = list(candidates.facets).index(("background", "p0"))
    rng = np.random.default_rng(1)
    grades_of_six = np.array([2, 1, 0, 0, 2, 0])
    expected = []
    for _ in range(4000):
        ranks = np.flatnonzero(rng.permutation(grades_of_six) >= 2) + 1
        expected.append(np.mean(np.arange(1, len(ranks) + 1) / ranks))
    assert curves[:, 0, 0, place].mean() == pytest.approx(np.mean(expected), abs=0.08)


# --- tables and figures ---------------------------------------------------------------------------


def test_letters_name_the_rankers_that_each_significantly_beats() -> None:
    means = pd.DataFrame(
        {"s MAP": [0.4, 0.2, 0.6], "s nDCG": [0.7, 0.6, 0.8]}, index=["middle", "low", "high"]
    )
    differences = [
        ("s MAP", "high", "middle", 0.016),
        ("s MAP", "high", "low", 0.001),
        ("s MAP", "middle", "low", 0.02),  # times 3 is not below .05
        ("s MAP", "high", "another", 0.0),
        ("s nDCG", "middle", "low", 0.009),
    ]
    comparisons = pd.DataFrame(differences, columns=["column", "better", "worse", "p"])
    table = tables.lettered(means, comparisons)
    assert table["row"].tolist() == ["a", "b", "c"]
    assert table["s MAP"].tolist() == [0.4, 0.2, 0.6]
    assert table["s MAP better than"].tolist() == ["", "", "ab"]
    assert table["s nDCG better than"].tolist() == ["b", "", ""]
    # Four comparisons are in the whole table.
    table = tables.lettered(means, comparisons, family="table")
    assert table["s MAP better than"].tolist() == ["", "", "b"]


def test_a_paper_counts_once_in_the_column_all() -> None:
    rng = np.random.default_rng(0)
    facets = [("s", "p1"), ("t", "p1"), ("s", "p2"), ("t", "p3")]
    rows = [(run, *facet, "MAP", rng.random()) for run in "ab" for facet in facets]
    values = pd.DataFrame(rows, columns=["run", "task", "query", "measure", "value"])
    means, comparisons = tables.means_and_tests(values, "t")
    own = values[values["run"] == "a"]["value"].to_numpy()
    assert means.loc["a", "All MAP"] == pytest.approx(
        np.mean([(own[0] + own[1]) / 2, own[2], own[3]])
    )
    assert set(comparisons["column"]) == {"s MAP", "t MAP", "All MAP"}
    assert means.loc["a", "s MAP"] == pytest.approx(own[[0, 2]].mean())


def test_published_values_are_beside_those_of_the_row_that_a_ranker_replaces() -> None:
    study = read_study("replica_links")
    published = printed_table("thesis/table-2.1")
    table = pd.DataFrame({"row": ["a", "b"], "model": [BM25_ROW, "TILDE tiny"], "Cite MAP": 0.5})
    table = tables.with_published(table, study, published)
    assert table["replaces"].tolist() == ["", "TILDE BERT"]
    cells = published.set_index("model").loc["TILDE BERT"]
    assert table["thesis Cite MAP"][1] == pytest.approx(float(cells["Cite MAP"].rstrip("%")) / 100)
    ndcg = [float(cell) for cell in cells.filter(like="nDCG")]
    assert table["thesis nDCG"][1] == pytest.approx(sum(ndcg) / 4)


def test_figures_draw_what_they_are_given() -> None:
    tokens = pd.DataFrame(
        {
            "system": ["TILDE"] * 2 + ["TILDEv2"] * 2,
            "token": ["query", "$x"] * 2,
            "weight": [-1.0, -2, 1, 2],
        }
    )
    figure = figures.tilde_architectures(tokens, ["query"], "A finding")
    for ax in figure.axes:
        in_query, other = ax.child_axes[0].patches
        assert in_query.get_facecolor() != other.get_facecolor()
        assert in_query.get_hatch()  # colour is not the only sign
        assert not other.get_hatch()

    grades = pd.DataFrame([[3, 0, 1], [0, 1, 3]], index=["BM25", "TILDE"])
    figure_2 = figures.ranked_candidates(grades, 7, "paper 1")
    (ax,) = figure_2.axes
    tiles = [patch for patch in ax.patches if type(patch).__name__ == "Rectangle"]
    assert len(tiles) == grades.size
    labels = [text.get_text() for text in figure_2.legends[0].get_texts()]
    assert labels == ["grade 0 (not relevant)", "grade 1", "grade 3"]  # no tile has grade 2
    assert "3 of 7" in ax.get_xlabel()
    with pytest.raises(ValueError, match="grades must be 0 to 3"):
        figures.ranked_candidates(grades + 1, 7, "paper 1")
    for drawn in (figure, figure_2):
        plt.close(drawn)


def test_the_sweep_is_drawn_by_design_measure_and_task() -> None:
    rankers = {"f": "TILDE large", "g": "TILDEv2 large", "h": "TILDE tiny", "i": "TILDEv2 tiny"}
    rows: list[tuple[Any, ...]] = []
    for number, fusion in enumerate(rankers):
        for task in "st":
            for place, measure in enumerate(("AP", "nDCG")):
                for alpha in (0.0, 0.5, 1.0):
                    value = alpha / 2 + place + 10 * (task == "t") + 100 * number
                    rows.append((fusion, measure, task, alpha, value))
    columns = ["fusion", "measure", "task", "alpha", "difference"]
    means = pd.DataFrame(rows, columns=columns)
    best = means.groupby(["fusion", "measure", "task"])["difference"].max().reset_index()
    means = means.assign(low=means["difference"], high=means["difference"])
    sizes = {"s": 8, "t": 1234}
    figure = figures.interpolation_sweep(means, best, rankers, sizes, "A finding")
    grid = np.array(figure.axes, dtype=object).reshape(4, 2)
    assert [ax.get_title("left") for ax in grid[0]] == ["s, n = 8", "t, n = 1,234"]
    for row in range(4):
        design, measure = ("TILDE", "TILDEv2")[row // 2], ("AP", "nDCG")[row % 2]
        assert grid[row, 0].get_ylabel() == f"{design}: difference\nin {measure} from BM25"
        for column in range(2):
            signs = set()
            bm25, *lines = grid[row, column].lines
            assert set(bm25.get_ydata()) == {0}
            for encoder in range(2):
                curve, level = lines[2 * encoder : 2 * encoder + 2]
                first = row % 2 + 10 * column + 100 * (2 * encoder + row // 2)
                assert curve.get_ydata().tolist() == [first, first + 0.25, first + 0.5]
                assert set(level.get_ydata()) == {first + 0.5}
                signs |= {curve.get_marker(), level.get_linestyle()}
            assert len(signs) == 4  # colour is not the only sign
    *lines, band = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [label.partition(",")[0] for label in lines] == ["large", "large", "tiny", "tiny"]
    assert band == "95% CI"
    plt.close(figure)


def test_differences_of_two_collections_are_drawn_together() -> None:
    rows = [
        ["first", "links", 0.02, 0.01, 0.03, 625],
        ["first", "grades", -0.01, -0.04, 0.01, 34],
        ["second", "grades", 0.01, 0.0, 0.02, 34],
    ]
    table = pd.DataFrame(rows, columns=["finding", "collection", "MAP", "low", "high", "papers"])
    figure = figures.differences(table, "A finding")
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.get_yticklabels()] == ["first", "second"]
    spans = [np.asarray(line.get_paths()[0].vertices)[:, 0].tolist() for line in ax.collections]
    assert spans == [[0.01, 0.03], [-0.04, 0.01]]
    assert len({line.get_marker() for line in ax.lines[:2]}) == 2
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert ["625" in labels[0], "34" in labels[1]] == [True, True]
    plt.close(figure)
