"""Guards Sakai (2021): values by hand, scipy as second opinion, bounds, identities, symmetries."""

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from equipoise.divergences import (
    DIVERGENCES,
    distribution_similarity,
    jsd,
    nmd,
    nvd,
    rnod,
)

Floats = NDArray[np.float64]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Two stacks of distributions over the same 2 to 6 groups; zeros are frequent."""
    shape = draw(st.tuples(st.integers(1, 3), st.integers(2, 6)))
    counts = hnp.arrays(np.int64, shape, elements=st.integers(0, 5))
    stacks: list[Floats] = []
    for _ in range(2):
        stack = draw(counts)
        stack[stack.sum(axis=-1) == 0] = 1
        stacks.append(stack / stack.sum(axis=-1, keepdims=True))
    return stacks[0], stacks[1]


def rnod_by_definition(p: Floats, q: Floats) -> float:
    groups = range(len(p))
    weighted = [sum(abs(i - j) * (p[j] - q[j]) ** 2 for j in groups) for i in groups if q[i] > 0]
    return float(np.sqrt(np.mean(weighted) / (len(p) - 1)))


@pytest.mark.parametrize("name", DIVERGENCES)
@given(pair=pairs())
def test_bounds_and_identity(name: str, pair: tuple[Floats, Floats]) -> None:
    p, q = pair
    divergence = DIVERGENCES[name].function(p, q)
    assert divergence.shape == p.shape[:-1]
    assert (divergence >= 0).all()
    assert (divergence <= 1).all()
    assert (DIVERGENCES[name].function(p, p) == 0).all()
    assert (divergence[(p != q).any(axis=-1)] > 0).all()
    np.testing.assert_array_equal(distribution_similarity(p, q, name), 1 - divergence)


@pytest.mark.parametrize("name", ["jsd", "nvd", "nmd"])
@given(pair=pairs())
def test_symmetric_in_its_arguments(name: str, pair: tuple[Floats, Floats]) -> None:
    p, q = pair
    function = DIVERGENCES[name].function
    np.testing.assert_allclose(function(p, q), function(q, p), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in DIVERGENCES if not DIVERGENCES[name].ordinal])
@given(pair=pairs(), order=st.randoms(use_true_random=False))
def test_nominal_divergences_are_blind_to_the_order_of_groups(
    name: str, pair: tuple[Floats, Floats], order: Any
) -> None:
    p, q = pair
    shuffled = order.sample(range(p.shape[-1]), p.shape[-1])
    function = DIVERGENCES[name].function
    np.testing.assert_allclose(
        function(p[:, shuffled], q[:, shuffled]), function(p, q), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", [name for name in DIVERGENCES if DIVERGENCES[name].ordinal])
@given(pair=pairs())
def test_ordinal_divergences_do_not_mind_reversing(name: str, pair: tuple[Floats, Floats]) -> None:
    p, q = pair
    function = DIVERGENCES[name].function
    np.testing.assert_allclose(function(p[:, ::-1], q[:, ::-1]), function(p, q), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in DIVERGENCES if DIVERGENCES[name].ordinal])
def test_ordinal_divergences_know_that_a_neighbour_is_nearer(name: str) -> None:
    target = [1, 0, 0, 0]
    by_distance = DIVERGENCES[name].function([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], target)
    assert (np.diff(by_distance) > 0).all()


@given(pair=pairs())
def test_against_scipy_and_the_definitions(pair: tuple[Floats, Floats]) -> None:
    groups = np.arange(pair[0].shape[-1])
    for p, q in zip(*pair, strict=True):
        assert jsd(p, q) == pytest.approx(jensenshannon(p, q, base=2) ** 2, abs=1e-12)
        assert nmd(p, q) == pytest.approx(
            wasserstein_distance(groups, groups, p, q) / groups[-1], abs=1e-12
        )
        assert rnod(p, q) == pytest.approx(rnod_by_definition(p, q), abs=1e-12)
        assert nvd(p, q) == pytest.approx(np.maximum(p - q, 0).sum(), abs=1e-12)


def test_broadcasts_over_leading_axes() -> None:
    achieved = np.eye(3)[:, None, :]
    targets = np.full((1, 5, 3), 1 / 3)
    for divergence in DIVERGENCES.values():
        assert divergence.function(achieved, targets).shape == (3, 5)


@pytest.mark.parametrize(
    ("achieved", "target"), [([1, 0], [1, 0, 0]), ([1.0], [1.0]), (1.0, [1.0, 0.0])]
)
def test_refuses_groups_that_do_not_match(achieved: Any, target: Any) -> None:
    with pytest.raises(ValueError, match="groups"):
        jsd(achieved, target)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="must be one of jsd, nvd"):
        distribution_similarity([1, 0], [0, 1], "kl")
