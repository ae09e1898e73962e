"""Terms counted in Arrow arrays against words taken one by one, by the three kinds of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equipoise.measures import ranking_bias as terms
from equipoise.measures.ranking_bias import count_terms

Tokens = Literal["space", "whitespace", "word"]
WORDS: dict[Tokens, Callable[[str], list[str]]] = {
    "space": lambda text: [word for word in text.split(" ") if word],
    "whitespace": str.split,
    "word": re.compile(r"[^\W_]+").findall,
}
words = st.sampled_from(
    [
        "he",
        "He",
        "her",
        "HERS",
        "x",
        "he\x00",
        "grandmas",
        "grandmast",
        "grandmother",
        "stepgrandmotherly",
    ]
) | st.sampled_from(["é", "ÉE", "İ", "ΟΔΟΣ", "Σ", "e\u0301", "彼女", "he's", "_", "#", "don't"])
between = st.sampled_from(
    [" ", " ", " ", "  ", "", ",", "_", "\t", "\n", "\r\n", "\x1f", "\xa0", "\u3000", "-", "."]
)
texts = st.lists(
    st.tuples(words, between) | st.tuples(st.text(max_size=3), between), max_size=8
).map(lambda parts: "".join(word + gap for word, gap in parts))


@settings(max_examples=250)
@given(
    held=st.lists(texts, max_size=6),
    wanted=st.lists(words, min_size=1, max_size=8),
    tokens=st.sampled_from(["space", "whitespace", "word"]),
    block=st.integers(1, 4),
)
@example(["he her", "", " ", "he"], ["he", "her"], "space", 2)
@example(["ΟΔΟΣ he", "ΣΑ\u3000HE"], ["οδος", "he"], "whitespace", 2)
def test_terms_are_counted_as_words_are_defined(
    held: list[str], wanted: list[str], tokens: Tokens, block: int
) -> None:
    documents = [(f"d{number}", text) for number, text in enumerate(held)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terms, "_BLOCK", block)
        found = count_terms(documents, wanted, tokens=tokens, batch=block)
        table = pd.DataFrame(documents, columns=["document", "text"], dtype="str")
        again = count_terms([table[:2], table[2:]], wanted, tokens=tokens)
    split = [WORDS[tokens](text.lower()) for text in held]
    assert found.lengths.tolist() == list(map(len, split)) == again.lengths.tolist()
    expected = [[own.count(term) for term in found.terms] for own in split]
    assert found.counts.toarray().tolist() == expected == again.counts.toarray().tolist()
    assert found.documents.equals(again.documents)


@pytest.mark.parametrize("tokens", ["space", "word"])
def test_many_terms_in_long_texts(tokens: Tokens) -> None:
    rng = np.random.default_rng(1)
    pool = np.array([f"{'grandmother' * (number % 3)}{number}" for number in range(3000)])
    held = [" ".join(pool[rng.integers(0, len(pool), size)]) for size in rng.integers(0, 400, 50)]
    found = count_terms(
        [(str(number), text) for number, text in enumerate(held)], pool[:1000], tokens=tokens
    )
    split = pd.Series([text.split() for text in held])
    assert found.lengths.tolist() == split.map(len).tolist()
    for term, column in zip(found.terms, found.counts.toarray().T, strict=True):
        assert column.tolist() == [own.count(term) for own in split]


def test_documents_that_come_twice_are_refused_over_batches() -> None:
    with pytest.raises(ValueError, match="document ids must be unique, got b twice"):
        count_terms([("a", "x"), ("b", "x"), ("b", "y")], ["x"], batch=2)
