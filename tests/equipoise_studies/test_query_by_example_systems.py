"""Lexical rankers, tokenisations, training sets, recorded scores, letters and figures."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import bm25s
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_studies.query_by_example import figures as example_plots
from equipoise_studies.query_by_example.data import PAIR, QueryByExample
from equipoise_studies.query_by_example.layout import lettered
from equipoise_studies.query_by_example.printed_checks import alpha_bounds
from equipoise_studies.query_by_example.self_supervision import hard_negatives, training_papers
from equipoise_studies.query_by_example.study import Study
from equipoise_studies.query_by_example.systems import BM25, lexical_scores
from equipoise_studies.systems.lexical import Collection, bm25, jelinek_mercer
from equipoise_studies.systems.tokenisation import (
    ANALYSERS,
    domain_wordpiece,
    standard_words,
    wordpiece,
)

TEXTS = [
    "Ranking papers by example: a seed paper is the query.",
    "Neural rankers weigh the terms of a document, and of its expansion.",
    "Sparse retrieval with weighted terms; terms, terms!",
    "The patience of a user who reads conversations",
    "Query likelihood smoothed by the collection's own language model",
]


@pytest.fixture
def dataset() -> QueryByExample:
    papers = pd.DataFrame(
        {"document": [f"p{n}" for n in range(5)], "title": TEXTS, "abstract": TEXTS[::-1]}
    )
    judged = [("t", "p0", f"p{n}", n % 3) for n in (1, 2, 3)] + [
        ("u", "p0", "p1", 1),
        ("u", "p4", "p2", 2),
    ]
    splits = [("t", "1", "test", "p0"), ("u", "1", "dev", "p0"), ("u", "1", "test", "p4")]
    return QueryByExample(
        papers,
        pd.DataFrame(judged, columns=["task", "query", "document", "grade"]),
        pd.DataFrame(splits, columns=["task", "fold", "part", "query"]),
    )


@pytest.mark.parametrize("analyser", list(ANALYSERS))
def test_bm25_with_the_thesis_parameters_is_bm25s_under_the_same_formula(analyser: str) -> None:
    tokenise = ANALYSERS[analyser]
    collection = Collection.from_texts({f"d{n}": text for n, text in enumerate(TEXTS)}, tokenise)
    ours = bm25(collection, collection.queries(TEXTS), **BM25)
    public = bm25s.BM25(method="lucene", k1=2.75, b=1.0, dtype="float64")
    public.index([tokenise(text) for text in TEXTS], show_progress=False)
    for query, row in zip(TEXTS, ours, strict=True):
        known = [term for term in tokenise(query) if term in collection.vectorizer.vocabulary_]
        theirs = public.get_scores(known)
        # bm25s leaves out the factor k1 + 1 that changes no ranking
        np.testing.assert_allclose(row, np.asarray(theirs) * (2.75 + 1), atol=1e-6)


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8), min_size=1, max_size=5),
    st.lists(st.sampled_from("abcdef"), max_size=8),
    st.floats(0.05, 0.95),
    st.sampled_from([0.0, 1.0]),
)
def test_jelinek_mercer_is_the_log_likelihood_less_what_all_documents_share(
    documents: list[list[str]], query: list[str], smoothing: float, added: float
) -> None:
    texts = {f"d{number}": " ".join(terms) for number, terms in enumerate(documents)}
    collection = Collection.from_texts(texts, str.split)
    found = jelinek_mercer(
        collection, collection.queries([" ".join(query)]), smoothing=smoothing, added=added
    )[0]
    everything = [term for terms in documents for term in terms]
    known = [term for term in query if term in everything]
    share = {term: (everything.count(term) + added) / (len(everything) + added) for term in known}
    for terms, score in zip(documents, found, strict=True):
        likelihood = sum(
            math.log((1 - smoothing) * terms.count(term) / len(terms) + smoothing * share[term])
            for term in known
        )
        shared = sum(math.log(smoothing * share[term]) for term in known)
        assert score == pytest.approx(likelihood - shared, abs=1e-9)


@pytest.mark.parametrize("wrong", [{"smoothing": 0.0}, {"smoothing": 1.0}, {"added": -1.0}])
def test_jelinek_mercer_refuses_parameters_out_of_range(wrong: dict[str, float]) -> None:
    collection = Collection.from_texts({"d": "a"}, str.split)
    with pytest.raises(ValueError, match=r"strictly between|cannot be negative"):
        jelinek_mercer(collection, collection.queries(["a"]), **wrong)


def test_the_three_analysers_differ_where_they_should() -> None:
    text = "Rankers' state-of-the-art (BM25) scored 3.5, e.g. “quoted” terms"
    assert ANALYSERS["SA"](text) == [
        *("rankers", "state", "of", "the", "art", "bm25", "scored", "3.5", "e.g", "quoted", "terms")
    ]
    assert ANALYSERS["STM2"](text)[0] == "ranker"
    assert "(bm25)" in ANALYSERS["STM1"](text)
    assert [len(word) for word in standard_words("x" * 600)] == [255, 255, 90]
    assert standard_words("—  … !") == []


def test_a_domain_vocabulary_is_learned_the_same_way_twice_and_covers_its_texts() -> None:
    pytest.importorskip(
        "tokenizers", reason="WordPiece needs tokenizers: pip install 'equipoise[models]'"
    )
    first, second = domain_wordpiece(TEXTS * 3, size=120), domain_wordpiece(TEXTS * 3, size=120)
    for text in TEXTS:
        pieces = first(text)
        assert pieces == second(text)
        assert "[UNK]" not in pieces
        letters = "".join(piece.removeprefix("##") for piece in pieces)
        assert letters == "".join(text.lower().split())
    assert first("query") != list("query")  # longer pieces than letters are learned
    with pytest.raises(ValueError, match="positive size"):
        domain_wordpiece(TEXTS, size=0)
    with pytest.raises(FileNotFoundError, match=r"no tokeniser at tokenizer\.json"):
        wordpiece(Path("nowhere", "tokenizer.json"))


def test_lexical_scores_are_those_of_the_collection_of_candidates(dataset: QueryByExample) -> None:
    found = lexical_scores(dataset, str.split, k1=BM25["k1"], b=BM25["b"])
    assert found[["query", "document"]].to_numpy().tolist() == dataset.pairs.to_numpy().tolist()
    texts = {f"p{n}": f"{TEXTS[n]} {TEXTS[4 - n]}" for n in range(5)}
    collection = Collection.from_texts(
        {name: texts[name] for name in ("p1", "p2", "p3")}, str.split
    )
    scores = bm25(collection, collection.queries([texts["p4"]]), k1=2.75, b=1.0)
    row = found[(found["query"] == "p4") & (found["document"] == "p2")]
    assert row["score"].item() == pytest.approx(scores[0, 1])
    with pytest.raises(ValueError, match="model must be"):
        lexical_scores(dataset, str.split, model="tfidf")


def test_no_query_paper_and_no_paper_with_a_querys_title_is_trained_on(
    dataset: QueryByExample,
) -> None:
    papers = dataset.papers.assign(
        title=[
            *TEXTS[:3],
            "  QUERY likelihood smoothed by the Collection's own language model ",
            TEXTS[4],
        ]
    )
    renamed = QueryByExample(papers, dataset.judgements, dataset.splits)
    training, held_out = training_papers(renamed, validation=0.5, seed=1)
    assert sorted([*training["document"], *held_out["document"]]) == ["p1", "p2"]
    assert not set(training["document"]) & set(held_out["document"])
    with pytest.raises(ValueError, match="leaves"):
        training_papers(renamed, validation=0.0)


def test_hard_negatives_are_never_the_own_abstract() -> None:
    found = hard_negatives(TEXTS, TEXTS[1:] + TEXTS[:1], top=3)
    assert found.shape == (5, 3)
    assert not (found == np.arange(5)[:, None]).any()
    assert (
        found[:, 0] == (np.arange(5) - 1) % 5
    ).all()  # the abstract that repeats the title's words
    with pytest.raises(ValueError, match="5 negatives need more than 5 papers"):
        hard_negatives(TEXTS, TEXTS, top=5)


def test_recorded_scores_must_fit_the_data(tmp_path: Path) -> None:
    study = Study.read("replica")
    path = project.root() / "data" / "outputs" / "query_by_example" / "scores.csv.gz"
    judgements = study.facts().judgements
    full = pd.read_csv(path, dtype=dict.fromkeys(PAIR, str))
    full.sample(frac=1, random_state=0).to_csv(tmp_path / "scores.csv.gz", index=False)
    found = replace(study, record=tmp_path).scores(judgements)
    assert found[PAIR].equals(judgements[PAIR])
    assert found["BM25 BERT-Token"].sum() == pytest.approx(full["BM25 BERT-Token"].sum())
    assert {f"random.{seed}" for seed in study.seeds} | {"specter.1"} <= set(found)
    for broken in (
        full.iloc[1:],
        pd.concat([full, full.head(1)]),
        full.assign(**{"tilde_minilm.2": None}),
        full.drop(columns="tilde_minilm.2"),
    ):
        broken.to_csv(tmp_path / "scores.csv.gz", index=False)
        with pytest.raises(InputError, match=r"every pair scored: record it again"):
            replace(study, record=tmp_path).scores(judgements)


@pytest.mark.parametrize("config", ["replica", "replica_links"])
def test_recorded_scores_of_the_repository_are_those_of_the_config(config: str) -> None:
    study = Study.read(config)
    scores = pd.read_csv(study.record / "scores.csv.gz")
    learned = [column for name in study.settings()["systems"] for column in study.columns(name)]
    pieces = [f"{model} {name}" for name in study.word_pieces for model in ("BM25", "LM")]
    assert set(scores) == {*PAIR, *learned, *pieces}
    assert not scores.duplicated(PAIR).any()
    assert np.isfinite(scores[[*learned, *pieces]].to_numpy()).all()
    assert (scores["tilde_minilm.1"] <= 0).all()  # a sum of logarithms of probabilities
    assert (
        scores[[name for name in scores if name.startswith(("tildev2", "BM25", "LM"))]] >= 0
    ).all(axis=None)
    cosines = scores.filter(like="dense")
    assert cosines.abs().le(1.0).all(axis=None)


def test_letters_name_the_rankers_that_each_significantly_beats() -> None:
    means = pd.DataFrame(
        {"s MAP": [0.4, 0.2, 0.6], "s nDCG": [0.7, 0.6, 0.8]}, index=["middle", "low", "high"]
    )
    differences = [
        ("s MAP", "high", "middle"),
        ("s MAP", "high", "low"),
        ("s nDCG", "middle", "low"),
    ]
    significant = pd.DataFrame(differences, columns=["column", "better", "worse"])
    table = lettered(means, significant)
    assert table["row"].tolist() == ["a", "b", "c"]
    assert table["s MAP"].tolist() == [0.4, 0.2, 0.6]
    assert table["s MAP better than"].tolist() == ["", "", "ab"]
    assert table["s nDCG better than"].tolist() == ["b", "", ""]


@given(st.lists(st.integers(0, 10), min_size=1, max_size=30))
def test_bounds_of_the_mean_weight_hold_for_every_list_of_weights(steps: list[int]) -> None:
    low, high = alpha_bounds(steps.count(0), steps.count(10), len(steps))
    assert low - 1e-12 <= np.mean(steps) / 10 <= high + 1e-12


def test_figures_draw_what_they_are_given() -> None:
    figure, axes = plt.subplots(1, 2)
    tokens = pd.DataFrame(
        {
            "system": ["TILDE"] * 2 + ["TILDEv2"] * 2,
            "token": ["query", "$x"] * 2,
            "weight": [-1.0, -2, 1, 2],
        }
    )
    example_plots.tilde_architectures(axes, tokens, ["query"])
    assert [len(ax.child_axes[0].patches) for ax in axes] == [2, 2]
    colours = [patch.get_facecolor() for patch in axes[0].child_axes[0].patches]
    assert colours[0] != colours[1]

    grades = np.array([[3, 0, 1], [0, 1, 3]])
    figure_2, ax = plt.subplots()
    example_plots.ranked_candidates(ax, grades, ["BM25", "TILDE"], "paper 1")
    tiles = [patch for patch in ax.patches if type(patch).__name__ == "Rectangle"]
    assert len(tiles) == grades.size
    said = [text.get_text() for text in figure_2.legends[0].get_texts()]
    assert said == ["grade 0", "grade 1", "grade 3"]  # no tile has grade 2
    with pytest.raises(ValueError, match="grades of 0 to 3"):
        example_plots.ranked_candidates(ax, grades + 1, ["BM25", "TILDE"], "paper 1")

    means = pd.DataFrame(
        [
            (
                fusion,
                measure,
                task,
                alpha,
                alpha / 2 + place + 10 * (task == "t") + 100 * (fusion == "g"),
            )
            for fusion in "fg"
            for task in "st"
            for place, measure in enumerate(("AP", "nDCG"))
            for alpha in (0.0, 0.5, 1.0)
        ],
        columns=["fusion", "measure", "task", "alpha", "difference"],
    )
    best = means.groupby(["fusion", "measure", "task"])["difference"].max().reset_index()
    figure_3, grid = plt.subplots(2, 2)
    names = {"f": "F", "g": "G"}
    means = means.assign(low=means["difference"], high=means["difference"])
    example_plots.interpolation_sweep(grid, means, best, names)
    for row, measure in enumerate(("AP", "nDCG")):
        for column, task in enumerate("st"):
            assert grid[column, row].get_title("left") == f"{task}: {measure}"
            for place in range(2):
                bm25, *lines = grid[column, row].lines
                curve, level = lines[2 * place : 2 * place + 2]
                assert set(bm25.get_ydata()) == {0}
                first = row + 10 * column + 100 * place
                assert curve.get_ydata().tolist() == [first, first + 0.25, first + 0.5], task
                assert set(level.get_ydata()) == {first + 0.5}
    assert [text.get_text() for text in figure_3.legends[0].get_texts()][:2] == ["F", "G"]
    with pytest.raises(ValueError, match="is longer than"):
        example_plots.interpolation_sweep(grid[:1], means, best, names)
    for drawn in (figure, figure_2, figure_3):
        plt.close(drawn)
