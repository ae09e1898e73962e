"""Guards the ranking functions of permutations section 4.1: bm25s as the second opinion."""

from __future__ import annotations

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from equipoise_studies.systems.lexical import (
    Collection,
    bm25,
    english_terms,
    query_likelihood,
    relevance_model,
    rm3,
    top,
    unit_mass,
)

WORDS = ["shark", "whale", "tiger", "white", "ocean", "blood"]
documents = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=2, max_size=8
)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


def indexed(texts: list[str]) -> Collection:
    return Collection.from_texts(
        {f"d{number:02d}": text for number, text in enumerate(texts)}, tokenise=str.split
    )


@settings(deadline=None, max_examples=40)
@given(texts=documents, query=queries)
def test_bm25_agrees_with_bm25s(texts: list[str], query: str) -> None:
    collection = indexed(texts)
    known = [term for term in query.split() if term in set(" ".join(texts).split())]
    if not known:
        assert (bm25(collection, collection.queries([query])) == 0).all()
        return
    theirs = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    theirs.index([text.split() for text in texts], show_progress=False)
    expected = theirs.get_scores(known) * 2.2  # bm25s leaves the constant factor k1 + 1 out
    found = bm25(collection, collection.queries([query]))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@settings(deadline=None, max_examples=40)
@given(texts=documents, query=queries, mu=st.floats(1, 3000))
def test_query_likelihood_agrees_with_its_definition(
    texts: list[str], query: str, mu: float
) -> None:
    collection = indexed(texts)
    everything = " ".join(texts).split()
    expected = []
    for text in texts:
        score = 0.0
        for term in query.split():
            if term not in everything:
                continue
            share = everything.count(term) / len(everything)
            smoothed = (text.split().count(term) + mu * share) / (len(text.split()) + mu)
            score += np.log(smoothed) - np.log(share)
        expected.append(score)
    np.testing.assert_allclose(
        query_likelihood(collection, collection.queries([query]), mu=mu)[0], expected, atol=1e-9
    )


@settings(deadline=None, max_examples=40)
@given(texts=documents, query=queries, size=st.integers(1, 4), terms=st.integers(1, 4))
def test_relevance_model_agrees_with_its_definition(
    texts: list[str], query: str, size: int, terms: int
) -> None:
    collection = indexed(texts)
    scores = bm25(collection, collection.queries([query]))
    best = [
        d
        for d in sorted(range(len(texts)), key=lambda d: (-round(scores[0, d], 9), d))[:size]
        if scores[0, d] > 0
    ]
    mass: dict[str, float] = {}
    for d in best:
        for term in texts[d].split():
            mass[term] = mass.get(term, 0) + scores[0, d] / len(texts[d].split())
    kept = sorted(mass, key=lambda term: (-round(mass[term] / sum(mass.values()), 9), term))[:terms]
    total = sum(mass[term] for term in kept)
    expected = [
        mass[term] / total if term in kept else 0.0
        for term in sorted(collection.vectorizer.vocabulary_)
    ]
    found = relevance_model(collection, scores, documents=size, terms=terms).toarray()[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    expanded = rm3(
        collection, collection.queries([query]), documents=size, terms=terms, original_weight=0.3
    )
    own = unit_mass(collection.queries([query])).toarray()[0]
    np.testing.assert_allclose(
        expanded.toarray()[0], 0.3 * own + 0.7 * np.array(expected), atol=1e-9
    )


@given(
    scores=st.lists(st.integers(-3, 3), min_size=1, max_size=12),
    k=st.integers(1, 14),
    scale=st.sampled_from([1e-9, 0.1, 1.0, 7e8]),
)
def test_top_breaks_ties_by_column(scores: list[int], k: int, scale: float) -> None:
    expected = sorted(range(len(scores)), key=lambda column: (-scores[column], column))[:k]
    noise = np.array([1 + 1e-15 * (-1) ** column for column in range(len(scores))])
    found = top(np.array([scores], dtype=float) * scale * noise, k)
    assert found[0].tolist() == expected


def test_scores_are_linear_in_the_query() -> None:
    collection = indexed(["tiger shark", "white shark ocean", "white whale"])
    one, two = collection.queries(["tiger ocean"]), collection.queries(["white"])
    mixed = sparse.csr_array(0.6 * one + 0.4 * two)
    for rank in (bm25, query_likelihood):
        np.testing.assert_allclose(
            rank(collection, mixed),
            0.6 * rank(collection, one) + 0.4 * rank(collection, two),
            atol=1e-12,
        )


def test_many_queries_at_once_are_the_queries_one_by_one() -> None:
    collection = indexed(["tiger shark", "white shark ocean", "white whale", "blood"])
    texts = ["shark", "white blood", "nothing known"]
    together = rm3(collection, collection.queries(texts)).toarray()
    alone = [rm3(collection, collection.queries([text])).toarray()[0] for text in texts]
    np.testing.assert_allclose(together, alone, atol=1e-12)
    assert (together[2] == 0).all()


def test_terms_are_stemmed_words_without_stop_words() -> None:
    assert english_terms("It's the Sharks' 2 SHARKS, sharked!") == ["shark", "2", "shark", "shark"]
    assert english_terms("what is it") == []


def test_refuses_what_makes_no_sense() -> None:
    collection = indexed(["tiger shark"])
    with pytest.raises(ValueError, match="at least one document"):
        Collection.from_texts({})
    with pytest.raises(ValueError, match="no document has a term"):
        Collection.from_texts({"d": "the of"})
    with pytest.raises(ValueError, match="k1=-1"):
        bm25(collection, collection.queries(["shark"]), k1=-1)
    with pytest.raises(ValueError, match="2 terms are wanted"):
        bm25(collection, sparse.csr_array((1, 3)))
    with pytest.raises(ValueError, match="mu is above 0"):
        query_likelihood(collection, collection.queries(["shark"]), mu=0)
    with pytest.raises(ValueError, match="original_weight"):
        rm3(collection, collection.queries(["shark"]), original_weight=1.5)
    with pytest.raises(ValueError, match="k is at least 1"):
        top(np.zeros((1, 2)), 0)
    with pytest.raises(ValueError, match="at least one feedback document"):
        relevance_model(collection, np.zeros((1, 1)), terms=0)
    with pytest.raises(ValueError, match="scores of 1 documents"):
        relevance_model(collection, np.zeros((1, 4)))
