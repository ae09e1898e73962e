"""TILDE (thesis Eq. 2.1), TILDEv2 (Eq. 2.2) and expansion, without an encoder, by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise_studies.query_by_example.tilde import (
    expansion_terms,
    matched_term_scores,
    term_weights,
    tilde_query_likelihood,
    token_counts,
    unasked_tokens,
)

VOCABULARY = 12
TEXT = st.lists(st.integers(0, VOCABULARY - 1), max_size=15)
TEXTS = st.lists(TEXT, min_size=1, max_size=5)
WEIGHT = st.floats(0, 10).map(lambda value: round(value, 3))


@st.composite
def weighted(draw: st.DrawFn) -> tuple[list[list[int]], list[list[float]]]:
    texts = draw(TEXTS)
    return texts, [draw(st.lists(WEIGHT, min_size=len(text), max_size=len(text))) for text in texts]


@given(TEXTS, st.integers(0, 2**32 - 1))
def test_tilde_is_the_direct_sum_of_log_probabilities(queries: list[list[int]], seed: int) -> None:
    logs = np.log(np.random.default_rng(seed).dirichlet(np.ones(VOCABULARY), size=4) + 1e-12)
    found = tilde_query_likelihood(token_counts(queries, VOCABULARY), logs)
    assert found.shape == (len(queries), 4)
    for row, query in enumerate(queries):
        for document in range(4):
            assert found[row, document] == pytest.approx(
                math.fsum(logs[document, token] for token in query), abs=1e-9
            )


@given(TEXTS, weighted())
def test_tildev2_is_equation_2_2_by_brute_force(
    queries: list[list[int]], documents: tuple[list[list[int]], list[list[float]]]
) -> None:
    texts, weights = documents
    left, right = token_counts(queries, VOCABULARY), term_weights(texts, weights, VOCABULARY)
    found = matched_term_scores(left, right)
    for row, query in enumerate(queries):
        for column, (text, own) in enumerate(zip(texts, weights, strict=True)):
            score = 0.0
            for term in set(query):
                products = [
                    query.count(term) * weight
                    for token, weight in zip(text, own, strict=True)
                    if token == term
                ]
                score += max(products, default=0.0)
            assert found[row, column] == pytest.approx(score, abs=1e-9)


@given(weighted())
def test_a_weight_of_zero_is_not_stored_and_repetition_never_adds(
    documents: tuple[list[list[int]], list[list[float]]],
) -> None:
    texts, weights = documents
    once = term_weights(texts, weights, VOCABULARY)
    twice = term_weights([text * 2 for text in texts], [own * 2 for own in weights], VOCABULARY)
    assert (once.data > 0).all()
    np.testing.assert_array_equal(once.toarray(), twice.toarray())


@settings(max_examples=60)
@given(TEXTS, st.integers(0, VOCABULARY), st.integers(0, 2**32 - 1))
def test_expansion_adds_the_new_ones_of_the_most_likely_terms(
    texts: list[list[int]], m: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    logs = rng.integers(-4, 0, size=(len(texts), VOCABULARY)).astype(float)  # many ties
    found = expansion_terms(logs, texts, m)
    for row, text in enumerate(texts):
        likely = sorted(range(VOCABULARY), key=lambda token: (-logs[row, token], token))[:m]
        assert found[row].tolist() == [token for token in likely if token not in text]


def test_expansion_lets_a_query_meet_a_document_without_its_words() -> None:
    document, query = [[1, 2]], token_counts([[5]], VOCABULARY)
    logs = np.log(np.full((1, VOCABULARY), 0.01))
    logs[0, 5] = np.log(0.9)
    assert matched_term_scores(query, term_weights(document, [[1.0, 1.0]], VOCABULARY)).item() == 0
    new = expansion_terms(logs, document, 1)
    longer: list[NDArray[np.int64]] = [np.concatenate((document[0], new[0]))]
    assert (
        matched_term_scores(query, term_weights(longer, [[1.0, 1.0, 0.5]], VOCABULARY)).item()
        == 0.5
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: token_counts([[VOCABULARY]], VOCABULARY), "index 12 exceeds matrix dimension 12"),
        (lambda: tilde_query_likelihood(token_counts([[1]], 5), np.zeros((2, 4))), "over 5 tokens"),
        (lambda: term_weights([[1, 2]], [[1.0]], 5), "one weight"),
        (lambda: term_weights([[1]], [[-1.0]], 5), "not negative"),
        (lambda: term_weights([[1]], [[math.nan]], 5), "finite"),
        (lambda: matched_term_scores(token_counts([[1]], 5), token_counts([[1]], 4)), "mismatch"),
        (lambda: expansion_terms(np.zeros((1, 4)), [[1], [2]], 1), "is longer than"),
    ],
)
def test_what_does_not_fit_is_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


def test_stop_words_and_symbols_are_not_asked_for() -> None:
    tokens = ["[PAD]", "[CLS]", "the", "cat", "##the", "##s", "#", "?", "a_b", "x-1", "é", "we"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    unasked = unasked_tokens(vocabulary, ["the", "we", "ourselves"])
    names = [tokens[number] for number in unasked]
    assert names == ["[PAD]", "[CLS]", "the", "##s", "#", "?", "é", "we"]
    assert unasked_tokens({"cat": 0}, []).tolist() == []


def test_expansion_leaves_out_what_is_not_asked_for() -> None:
    logs = np.array([[-1.0, -2.0, -3.0, -4.0]])
    assert expansion_terms(logs, [[0]], 3)[0].tolist() == [1, 2]
    # it counts among the m, and is then left out, as in the authors' program
    assert expansion_terms(logs, [[0]], 3, [1])[0].tolist() == [2]
