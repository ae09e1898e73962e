"""Facts of chapter 4: the same bytes when made again, and what its notebook takes from them."""

import json
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from equipoise.measures.effectiveness import effectiveness
from equipoise.measures.ranking_bias import score_ranking_bias
from equipoise.problems import InputError
from equipoise_compendium import facts, project
from equipoise_studies.ranking_bias import msmarco
from equipoise_studies.ranking_bias.data import (
    WITH_FACTS,
    best_of_lists,
    gender_groups,
    read_counted,
    read_passed_over,
    read_public_run,
)
from equipoise_studies.ranking_bias.facts import TABLES, TOKENISATIONS

FOLDER = project.root() / "data" / "facts" / "ranking_bias"


def test_every_fact_table_is_described() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in TABLES:
        assert f"`{name}`" in readme, name
        for column in facts.read("ranking_bias", name).columns:
            assert f"`{column}`" in readme, f"{name}: {column}"


@pytest.mark.parametrize("name", WITH_FACTS)
def test_a_collection_has_its_counts_under_every_tokenisation(name: str) -> None:
    occurrences = {}
    for tokens in TOKENISATIONS:
        collection = read_counted(name, tokens)
        assert set(collection.qrels["topic"]) <= set(collection.queries)
        judged = collection.qrels["document"].isin(collection.term_counts.documents)
        if name.startswith("msmarco-dl"):
            # of MS MARCO passages were judged that none of the four runs has found
            assert 0.6 < judged[collection.qrels["level"] >= 2].mean() < 0.65
        else:
            assert judged.all()
        assert (collection.term_counts.counts.sum(axis=1) <= collection.term_counts.lengths).all()
        for term_list in ("long", "short"):
            assert collection.term_counts.magnitudes(gender_groups(term_list)).sum() > 0
        occurrences[tokens] = collection.term_counts.counts.sum()
    # a term beside a mark of punctuation is a term between words only
    assert occurrences["word"] > occurrences["whitespace"] >= occurrences["space"] > 0


def test_term_lists_are_326_and_64_terms_of_two_groups() -> None:
    long, short = gender_groups("long"), gender_groups("short")
    assert (len(long.terms), len(short.terms)) == (326, 64)
    assert long.shared == ()
    assert set(short.terms) <= set(long.terms)


PUBLIC = ("BM25", "SPLADE++", "DistilBERT-TASB", "RepLLaMA")


def test_public_runs_give_the_fairness_that_was_found_beforehand() -> None:
    """Issue 32: with the 64 words, between white space, at cut-off 10."""
    runs = [read_public_run(name, "msmarco-dl", rounded=name == "RepLLaMA") for name in PUBLIC]
    collection = read_counted("msmarco-dl", "whitespace")
    table = score_ranking_bias(
        pd.concat(runs), collection.term_counts, gender_groups("short"), cutoffs=[10]
    )
    of_queries = table[table["topic"] != ""]
    scores = of_queries.pivot_table(index=["run", "topic"], columns="measure", values="value")
    scores = scores[["NFaiRR@10", "TExFAIR@10"]]
    means = scores.groupby("run").mean().round(3)
    assert means.loc["BM25"].tolist() == [0.952, 0.901]
    assert means.loc["DistilBERT-TASB"].tolist() == [0.953, 0.894]
    assert means.loc["SPLADE++"].tolist() == [0.945, 0.888]
    of_tasb, of_bm25 = (scores.loc[name]["TExFAIR@10"] for name in ("DistilBERT-TASB", "BM25"))
    p_value = stats.ttest_rel(of_tasb, of_bm25).pvalue
    assert round(p_value, 2) == 0.66
    correlations = [scores.loc[name].corr().iloc[0, 1] for name in PUBLIC]
    assert (round(min(correlations), 2), round(max(correlations), 2)) == (0.77, 0.86)
    # a third of the lists hold a gendered term at all
    assert 0.31 < (scores["TExFAIR@10"] < 1).mean() < 0.34


def test_bm25_has_its_published_effectiveness_on_both_years() -> None:
    """Anserini's documentation has nDCG@10 .5058 for 2019 and .4796 for 2020."""
    run = read_public_run("BM25", "msmarco-dl", rounded=False)
    qrels = read_counted("msmarco-dl").qrels.rename(columns={"topic": "query", "level": "grade"})
    values = effectiveness(
        run.rename(columns={"topic": "query"}), qrels, measures={"nDCG": "nDCG@10"}
    )
    # one query of 2020 names a gender and is not here: the mean of the others
    assert values["value"].mean() == pytest.approx((43 * 0.5058 + 54 * 0.4796) / 97, abs=0.005)


def test_passages_without_a_text_are_passed_over_and_counted() -> None:
    run = read_public_run("TK", "msmarco-dl-sensitive", rounded=False)
    texts = set(read_counted("msmarco-dl-sensitive").term_counts.documents)
    assert set(run["document"]) <= texts
    assert (run.groupby("topic")["rank"].min() == 1).all()
    assert (run.groupby("topic")["rank"].max() == run.groupby("topic").size()).all()
    upstream = facts.read("ranking_bias", "public_runs.parquet")
    of_run = upstream[(upstream["run"] == "TK") & (upstream["rank"] <= 10)]
    lacking = int((~of_run["document"].isin(texts)).sum())
    assert read_passed_over("TK", "msmarco-dl-sensitive", 10) == lacking == 9


def test_rounded_scores_are_no_ties() -> None:
    as_scored = best_of_lists(read_public_run("RepLLaMA", "msmarco-dl", rounded=False), 20)
    as_ranked = best_of_lists(read_public_run("RepLLaMA", "msmarco-dl", rounded=True), 20)
    assert as_scored.duplicated(["topic", "score"]).any()
    assert not as_ranked.duplicated(["topic", "score"]).any()
    assert as_ranked.groupby("topic").size().eq(20).all()


def test_a_file_of_results_says_every_place_where_it_is_none(tmp_path: Path) -> None:
    hit = {"qid": 7, "docid": "p1", "content": "a text", "rank": 1, "score": 2.5}
    results = [
        {"query": "a question", "hits": [hit, hit | {"rank": "first"}]},
        {"query": "another"},
    ]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results))
    with pytest.raises(InputError) as refused:
        msmarco._read_results(path)
    assert "item 1, hits" in str(refused.value)
    assert "item 2" in str(refused.value)
    path.write_text(json.dumps([{"query": "a question", "hits": [hit]}]))
    (row,) = msmarco._read_results(path).to_dict("records")
    assert (row["topic"], row["document"], row["rank"], row["score"]) == ("7", "p1", 1, 2.5)
