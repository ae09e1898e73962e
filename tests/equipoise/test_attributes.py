"""Guards attribute sets: what YAML may say of them, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.attributes import AttributeSet, crossed, read_attributes
from equipoise.problems import InputError


def write(folder: Path, text: str) -> Path:
    path = folder / "sets.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_attribute_sets_from_yaml(tmp_path: Path) -> None:
    text = "NO: {kind: nominal, groups: [yes, no, 1], target: [1/2, 0.25, .25]}\n"
    sets = read_attributes(write(tmp_path, text))
    assert sets["NO"].groups == ("yes", "no", "1")
    assert sets["NO"].target.tolist() == [0.5, 0.25, 0.25]
    with pytest.raises(ValueError, match="read-only"):
        sets["NO"].target[0] = 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty file"),
        ("- a\n- b\n", "attribute sets by name"),
        ("A: {kind: nominal, groups: [x, y]}", "exactly the keys kind, groups, target"),
        ("A: {kind: fuzzy, groups: [x, y], target: uniform}", "neither ordinal nor nominal"),
        ("A: {kind: nominal, groups: [x], target: uniform}", "at least two groups"),
        ("A: {kind: nominal, groups: [x, x], target: uniform}", "at least two groups"),
        ("A: {kind: nominal, groups: x, target: uniform}", "a list of names"),
        ("A: {kind: nominal, groups: [x, y], target: [1, 2, 3]}", "3 numbers"),
        ("A: {kind: nominal, groups: [x, y], target: [-1, 2]}", "non-negative"),
        ("A: {kind: nominal, groups: [x, y], target: [0, 0]}", "not all zero"),
        ("A: {kind: nominal, groups: [x, y], target: [inf, 1]}", "'inf'"),
        (
            "A: {kind: nominal, groups: [x, y], target: [1.0e+308, 1.0e+308]}",
            "a sum that is a number",
        ),
        ("A: {kind: nominal, groups: [x, y], target: equal}", "uniform or a list"),
        ("turn: {kind: nominal, groups: [x, y], target: uniform}", "no other column"),
        (
            "A: {kind: nominal, groups: [x, y], target: uniform}\nA: {}\n",
            "line 2: found key 'A' twice",
        ),
        ("A: [", "YAML"),
        ("A: !!python/object/apply:os.system [x]", "tag"),
    ],
)
def test_refuses_bad_attribute_sets(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_attributes(write(tmp_path, text))


PARTS = (
    "P: {kind: nominal, groups: [he, she], target: [1, 3]}\n"
    "H: {kind: ordinal, groups: [a, b, c], target: uniform}\n"
)


def test_a_product_set_has_every_combination_and_is_nominal(tmp_path: Path) -> None:
    sets = read_attributes(write(tmp_path, "P x H: {product: [P, H]}\n" + PARTS))
    both = sets["P x H"]
    assert list(sets) == ["P x H", "P", "H"]
    assert (both.kind, both.parts) == ("nominal", ("P", "H"))
    assert both.groups == ("he x a", "he x b", "he x c", "she x a", "she x b", "she x c")
    assert both.target == pytest.approx([1 / 12] * 3 + [1 / 4] * 3)
    assert both.with_target("uniform").parts == ("P", "H")
    own = read_attributes(
        write(tmp_path, PARTS + "B: {product: [H, P], target: [1, 0, 1, 0, 1, 1]}\n")
    )["B"]
    assert own.groups[:2] == ("a x he", "a x she")
    assert own.target.tolist() == [0.25, 0, 0.25, 0, 0.25, 0.25]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X: {product: [P]}", "two or more of P, H, each once"),
        ("X: {product: [P, P]}", "each once"),
        ("X: {product: [P, Q]}", "two or more of P, H"),
        ("X: {product: P}", "two or more of P, H"),
        ("X: {product: [P, [H]]}", "two or more of P, H"),
        ("X: {product: [P, H], kind: nominal}", "no other key"),
        ("X: {product: [P, H], target: [1, 2]}", "2 numbers in a target for 6 groups"),
        ("X: {product: [P, H]}\nY: {product: [X, P]}", "two or more of P, H"),
        (
            f"A: {{kind: nominal, groups: {[f'{n}' for n in range(300)]}, target: uniform}}\n"
            "X: {product: [A, P, H]}",
            "1800 combinations",
        ),
    ],
)
def test_refuses_bad_product_sets(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_attributes(write(tmp_path, PARTS + text))


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=2, max_size=4), min_size=2, max_size=3))
def test_crossed_shares_keep_the_shares_of_their_parts(parts: list[list[float]]) -> None:
    vectors = [np.array([part, part[::-1]]) / sum(part) for part in parts]
    shares = crossed(vectors).reshape(2, *map(len, parts))
    for axis, vector in enumerate(vectors):
        others = tuple(place + 1 for place in range(len(parts)) if place != axis)
        np.testing.assert_allclose(shares.sum(axis=others), vector, rtol=1e-12)


def test_another_target() -> None:
    tilted = AttributeSet("ORIGIN", "nominal", ("x", "y"), np.array([1, 3])).with_target([3, 1])
    assert tilted.target.tolist() == [0.75, 0.25]
    assert tilted.with_target("uniform").target.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="neither uniform"):
        tilted.with_target("equal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="3 numbers in a target for 2 groups"):
        AttributeSet("A", "nominal", ("x", "y"), np.ones(3))
