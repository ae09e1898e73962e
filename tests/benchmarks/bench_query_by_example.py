"""Thesis chapter 2: every query against every candidate as one product; documents encoded a second.

Ratios within one run, so that the machine does not matter: each benchmark keeps in ``extra_info``
how many times faster it is than its plain reference, and asserts that it is faster at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise_studies.query_by_example.interpolation import ALPHAS, interpolate, z_scale
from equipoise_studies.query_by_example.tilde import (
    matched_term_scores,
    term_weights,
    tilde_query_likelihood,
    token_counts,
)
from equipoise_studies.systems.lexical import Collection, bm25, jelinek_mercer
from small_berts import small_bert

VOCABULARY, DOCUMENTS, QUERIES, LENGTH = 30_522, 1_000, 34, 200


@pytest.fixture(scope="module")
def texts() -> tuple[list[Any], list[Any]]:
    """Queries and documents of the replica's lengths, their tokens drawn by Zipf's law."""
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, VOCABULARY + 1)
    chance /= chance.sum()
    drawn = [rng.choice(VOCABULARY, size=LENGTH, p=chance) for _ in range(DOCUMENTS + QUERIES)]
    return drawn[:QUERIES], drawn[QUERIES:]


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    result = function()
    return result, time.perf_counter() - started


def compared(
    benchmark: Any, fast: Callable[[], Any], plain: Callable[[], Any], share: float = 1.0
) -> None:
    """Benchmark the fast way, time the plain one on a share of the work, and keep the ratio."""
    _, slow = timed(plain)
    benchmark(fast)
    ratio = slow / share / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as a plain loop"] = round(ratio, 1)
    assert ratio > 1


def test_tilde_scores(benchmark: Any, texts: tuple[list[Any], list[Any]]) -> None:
    queries, _ = texts
    logs = np.log(np.random.default_rng(1).random((DOCUMENTS, VOCABULARY), dtype=np.float32) + 1e-6)

    def plain() -> list[list[float]]:
        return [
            [float(sum(float(row[token]) for token in query)) for row in logs[:100]]
            for query in queries
        ]

    compared(
        benchmark,
        lambda: tilde_query_likelihood(token_counts(queries, VOCABULARY), logs),
        plain,
        100 / DOCUMENTS,
    )


def test_tildev2_scores(benchmark: Any, texts: tuple[list[Any], list[Any]]) -> None:
    queries, documents = texts
    rng = np.random.default_rng(2)
    weights = [rng.random(LENGTH) for _ in documents]
    stored = term_weights(documents, weights, VOCABULARY)

    def plain() -> None:
        for query in queries:
            tokens, counts = np.unique(query, return_counts=True)
            for document, own in zip(documents[:100], weights, strict=False):
                best: dict[int, float] = {}
                for token, weight in zip(document.tolist(), own.tolist(), strict=True):
                    best[token] = max(best.get(token, 0.0), weight)
                sum(
                    count * best.get(token, 0.0)
                    for token, count in zip(tokens.tolist(), counts.tolist(), strict=True)
                )

    compared(
        benchmark,
        lambda: matched_term_scores(token_counts(queries, VOCABULARY), stored),
        plain,
        100 / DOCUMENTS,
    )


@pytest.mark.parametrize("model", [bm25, jelinek_mercer], ids=["bm25", "jelinek-mercer"])
def test_lexical_scores(
    benchmark: Any, texts: tuple[list[Any], list[Any]], model: Callable[..., Any]
) -> None:
    queries, documents = ([" ".join(map(str, text)) for text in part] for part in texts)
    collection = Collection.from_texts(
        {f"{n:06d}": text for n, text in enumerate(documents)}, str.split
    )
    asked = collection.queries(queries)

    def plain() -> None:
        terms = [text.split() for text in documents[:100]]
        for query in queries:
            for document in terms:
                sum(
                    document.count(term) / (document.count(term) + 1.0)
                    for term in set(query.split())
                )

    compared(benchmark, lambda: model(collection, asked), plain, 100 / DOCUMENTS)


def test_sweep_over_the_weight(benchmark: Any) -> None:
    rng = np.random.default_rng(3)
    scores, codes = rng.normal(size=(2, QUERIES * 125)), np.repeat(np.arange(QUERIES), 125)

    def fast() -> Any:
        scaled = z_scale(scores, codes)
        return interpolate(scaled[0], scaled[1], ALPHAS)

    def plain() -> None:
        for query in range(QUERIES):
            parts = [row[codes == query] for row in scores]
            scaled = [(part - part.mean()) / part.std() for part in parts]
            for alpha in ALPHAS:
                [
                    alpha * first + (1 - alpha) * second
                    for first, second in zip(*scaled, strict=True)
                ]

    compared(benchmark, fast, plain)


def test_documents_encoded_a_second(benchmark: Any, tmp_path: Path) -> None:
    """A BERT of SPLADE-tiny's shape with random weights: its speed is that of the real one."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(str, range(4, VOCABULARY))]
    small_bert(tmp_path, pieces, hidden_size=128, num_hidden_layers=2, intermediate_size=512)
    from equipoise_studies.query_by_example import neural

    checkpoint = neural.load_checkpoint(tmp_path)
    rng = np.random.default_rng(4)
    documents = [rng.integers(4, VOCABULARY, size=LENGTH) for _ in range(32)]
    _, alone = timed(
        lambda: [neural.log_probabilities(checkpoint, [document]) for document in documents]
    )
    benchmark(lambda: neural.log_probabilities(checkpoint, documents))
    benchmark.extra_info["documents a second"] = round(
        len(documents) / benchmark.stats.stats.min, 1
    )
    benchmark.extra_info["times as fast as one at a time"] = round(
        alone / benchmark.stats.stats.min, 2
    )
