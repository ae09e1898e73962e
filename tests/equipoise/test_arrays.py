"""Guards the sums along segments: against a loop, and their independence of the neighbours."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from equipoise.arrays import cumulative_sums, places, ranks, starts, sums_by_case

lengths = st.lists(st.integers(1, 9), max_size=12)


@given(lengths=lengths)
def test_starts_and_ranks_invert_lengths(lengths: list[int]) -> None:
    labels = np.repeat(np.arange(len(lengths)), lengths)
    first = starts(labels)
    assert np.diff(first, append=len(labels)).tolist() == lengths
    assert ranks(first, len(labels)).tolist() == [
        rank for length in lengths for rank in range(length)
    ]


def test_starts_with_several_keys() -> None:
    assert starts([1, 1, 1, 2], [1, 2, 2, 2]).tolist() == [0, 1, 3]


@given(lengths=lengths, seed=st.integers(0, 99))
def test_cumulative_sums_agree_with_numpy_segment_by_segment(lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.random((length, 3)) for length in lengths]
    values = np.concatenate([np.zeros((0, 3)), *parts])
    first = np.cumsum([0, *lengths])[:-1]
    expected = np.concatenate([np.zeros((0, 3)), *(np.cumsum(part, axis=0) for part in parts)])
    np.testing.assert_array_equal(cumulative_sums(values, first), expected)


def test_a_segment_does_not_feel_its_neighbours() -> None:
    small = np.array([1e-9, 2e-9, 3e-9])
    beside_giants = np.concatenate([np.full(5, 1e12), small, np.full(4, 1e12)])
    alone = cumulative_sums(small, [0])
    np.testing.assert_array_equal(cumulative_sums(beside_giants, [0, 5, 8])[5:8], alone)


def test_a_long_segment() -> None:
    np.testing.assert_array_equal(cumulative_sums(np.ones(1000), [0]), np.arange(1, 1001))


texts = st.text(st.sampled_from("ab\x00é"), max_size=3)


@given(st.lists(texts, max_size=8), st.lists(texts, max_size=8, unique=True))
def test_places_are_those_of_an_index(values: list[str], index: list[str]) -> None:
    expected = [index.index(value) if value in index else -1 for value in values]
    for dtype in ("str", "object"):
        series = pd.Series(values, dtype=dtype)
        assert places(series, pd.Index(index, dtype="str")).tolist() == expected


def test_sums_of_cases() -> None:
    assert sums_by_case([0, 2, 0], [1, 2, 0.5], 4).tolist() == [1.5, 0, 2, 0]
    assert sums_by_case([], [], 2).dtype == np.float64
