"""Chapter 4's collections as their upstream files hold them, and what was recorded of them."""

import sys
import types
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from equipoise.loaders import gender_terms
from equipoise.measures.ranking_bias import TermGroups
from equipoise_compendium import project, registry
from equipoise_studies.collections import cocktail
from equipoise_studies.ranking_bias import grepbiasir, msmarco
from equipoise_studies.ranking_bias.data import WITH_FACTS, read_recorded_runs
from equipoise_studies.ranking_bias.substitution import (
    SPACY_MODEL,
    restored_share,
    spacy_tagger,
    substitute,
)
from equipoise_studies.ranking_bias.upstream import collection, gender_pairs
from equipoise_studies.systems.rankers import best, bm25_scores
from upstream import skip_without

pytestmark = pytest.mark.upstream

skip_without(
    "cds",
    "cocktail",
    "cpjku",
    "cpjku_runs",
    "dlqrels",
    "genderbias_ir",
    "grepbiasir",
    "nqoracle",
    "rankllm",
    "webis_colbert",
)


def test_grepbiasir_has_117_queries_and_702_documents_in_triples() -> None:
    queries = grepbiasir.read_queries(registry.fetch("grepbiasir", grepbiasir.QUERIES))
    table = grepbiasir.read_documents(
        [registry.fetch("grepbiasir", path) for path in grepbiasir.FILES]
    )
    assert (len(queries), len(table)) == (117, 702)
    assert set(table["query"]) == set(queries["query"])
    assert table.groupby("query")["level"].sum().eq(3).all()
    assert table["wording"].value_counts().to_dict() == {
        "neutral": 233,
        "male": 232,
        "female": 232,
        "both": 5,
    }
    assert "botrh" not in set(table["wording"])


def test_term_lists_are_326_and_64_terms_of_two_groups() -> None:
    long = gender_terms.read_terms(
        registry.fetch("cpjku", "resources/wordlist_gender_representative.txt")
    )
    short = gender_terms.read_terms(
        registry.fetch("genderbias_ir", "resources/wordlist_genderspecific.txt")
    )
    assert (len(long), len(short)) == (326, 64)
    assert TermGroups.from_pairs(long.itertuples(index=False, name=None)).shared == ()
    assert set(short["term"]) <= set(long["term"].str.lower())


def test_pairs_and_query_sets_have_their_published_sizes() -> None:
    assert len(gender_terms.read_pairs(registry.fetch("cds", "data/cda_default_pairs.json"))) == 124
    assert (
        len(gender_terms.read_pairs(registry.fetch("cds", "data/names_pairs_1000_scaled.json")))
        == 1000
    )
    assert (
        len(
            gender_terms.read_sensitive_queries(
                registry.fetch("cpjku", "dataset/msmarco_passage.dev.fair.tsv")
            )
        )
        == 215
    )
    annotated = gender_terms.read_annotated_queries(
        registry.fetch("genderbias_ir", "resources/queries_gender_annotated.csv")
    )
    assert len(annotated) == 3750
    assert set(annotated["label"]) <= set(gender_terms.QUERY_LABELS)


def test_nq_utd_holds_the_same_passages_by_people_and_by_a_model() -> None:
    archive = registry.fetch("cocktail", "dataset/nq-utd.zip")
    human, model = cocktail.read_documents(archive), cocktail.read_documents(archive, "model")
    assert human["document"].tolist() == model["document"].tolist()
    assert (human["text"] != model["text"]).mean() > 0.99
    qrels, queries = cocktail.read_qrels(archive), cocktail.read_queries(archive)
    assert set(qrels["topic"]) == set(queries["query"])
    assert set(qrels["document"]) <= set(human["document"])
    assert set(qrels["level"]) == {0, 1, 2}


def test_the_original_collection_streams_through_ir_datasets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stands in for ir_datasets: queries come from the public sets, all else from it."""
    passes = []

    class Dataset:
        def has_docs(self) -> bool:
            return True

        def docs_iter(self) -> Iterator[Any]:
            passes.append(1)
            yield types.SimpleNamespace(doc_id="7", text="Put your hips to work.")

        def qrels_iter(self) -> Iterator[Any]:
            yield types.SimpleNamespace(query_id="361240", doc_id="7", relevance=1)
            yield types.SimpleNamespace(query_id="not in QS2", doc_id="8", relevance=1)

    monkeypatch.setitem(sys.modules, "ir_datasets", types.SimpleNamespace(load=lambda _: Dataset()))
    qs2 = collection("msmarco-qs2")
    assert len(qs2.queries) == 215
    assert qs2.qrels.to_numpy().tolist() == [["361240", "7", 1]]
    assert passes == []  # nothing is read before it is asked for
    assert [list(qs2.documents()) for _ in range(2)] == [[("7", "Put your hips to work.")]] * 2
    assert len(collection("msmarco-qs1").queries) == 1765
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(registry.DataUnreachable, match="pip install"):
        collection("msmarco-qs2")


def test_the_pool_is_what_four_runs_found_for_97_queries() -> None:
    ranked = msmarco.ranked()
    assert (len(ranked.passages), len(ranked.queries)) == (22_654, 97)
    assert ranked.runs.groupby("run").size().eq(97 * 100).all()
    neutral = collection("msmarco-dl").queries
    # "sons" is the one gendered word in a query
    assert set(ranked.queries["query"]) - set(neutral["query"]) == {"1131069"}
    assert set(collection("msmarco-dl-sensitive").queries["query"]) <= set(neutral["query"])


# --- what was recorded ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_FACTS)
def test_recorded_bm25_is_ranked_again(name: str) -> None:
    texts = collection(name)
    runs = read_recorded_runs(project.data("outputs", "ranking_bias", f"{name}_runs.tsv.gz"))
    recorded = runs[(runs["run"] == "bm25") & (runs["world"] == "original")]
    ids, documents = zip(*texts.documents(), strict=True)
    scores = bm25_scores(texts.queries["text"], documents)
    again = best(np.where(scores > 0, scores, -np.inf), texts.queries["query"], ids, "bm25")
    compared = again.merge(recorded, on=["topic", "rank"], suffixes=("", "_recorded"), how="outer")
    assert (compared["document"] == compared["document_recorded"]).all()
    # recorded in single precision, with six digits
    np.testing.assert_allclose(compared["score"], compared["score_recorded"], rtol=1e-5)


def test_real_passages_come_back_but_for_less_than_one_word_in_a_hundred() -> None:
    """Every seventh passage of NQ-UTD, with the pairs of the replica."""
    for package in ("spacy", SPACY_MODEL):
        pytest.importorskip(
            package, reason=f"{package} is not installed: pip install 'equipoise[models]'"
        )
    tagger = spacy_tagger()
    pairs = gender_pairs()
    assert all(pairs.words[pairs.words[word]] == word for word in pairs.words)
    assert all(pairs.names[pairs.names[name]] == name for name in pairs.names)
    documents = list(islice(collection("nq-utd").documents(), 0, None, 7))
    texts = [text for _, text in documents]
    once = substitute(documents, pairs, tagger)
    twice = substitute(once.texts.itertuples(index=False, name=None), pairs, tagger)
    words = restored_share(texts, twice.texts["text"])
    assert (once.texts["text"].to_numpy() != texts).sum() >= 30
    assert words["restored"].sum() / words["tokens"].sum() > 0.99
