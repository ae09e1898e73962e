"""Guards how rows that agree, and places in an index, are found in columns of texts."""

from __future__ import annotations

import pandas as pd
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equipoise.arrays import each_once, places

texts = st.text(st.sampled_from("ab\x00é"), max_size=3) | st.text(
    st.sampled_from("ab"), min_size=60, max_size=70
)


@settings(max_examples=120)
@given(rows=st.lists(st.tuples(texts, texts), max_size=8))
@example(rows=[("a", "b"), ("a" * 9, "b"), ("a", "b")])
@example(rows=[("ab", "c"), ("a", "bc")])
def test_rows_that_agree_are_found(rows: list[tuple[str, str]]) -> None:
    table = pd.DataFrame(rows, columns=["topic", "document"], dtype="str")
    assert each_once(table["topic"], table["document"]) == (len(set(rows)) == len(rows))


def test_rows_of_numbers_and_of_nothing() -> None:
    assert each_once(pd.Series([1, 1, 2]), pd.Series(["a", "b", "a"], dtype="str"))
    assert not each_once(pd.Series([1, 1]), pd.Series(["a", "a"], dtype="str"))
    assert each_once(pd.Series(["", None], dtype="str"))
    assert not each_once(pd.Series([None, None], dtype="str"))


@given(st.lists(texts, max_size=8), st.lists(texts, max_size=8, unique=True))
def test_places_are_those_of_an_index(values: list[str], index: list[str]) -> None:
    expected = [index.index(value) if value in index else -1 for value in values]
    for dtype in ("str", "object"):
        series, wanted = pd.Series(values, dtype=dtype), pd.Index(index, dtype="str")
        assert places(series, wanted).tolist() == expected
