"""Guards attribute sets: what YAML may say of them, and what is an error."""

from pathlib import Path

import numpy as np
import pytest

from equipoise.attributes import AttributeSet, read_attributes
from equipoise.errors import InputError


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
        ("- a\n- b\n", "must be attribute sets by name"),
        ("A: {kind: nominal, groups: [x, y]}", 'column "A": the keys must be kind, groups and'),
        ("A: {kind: ordnal, groups: [x, y], target: uniform}", "'ordinal' or 'nominal', got 'ordn"),
        ("A: {kind: nominal, groups: [x], target: uniform}", "two or more different names"),
        ("A: {kind: nominal, groups: [x, x], target: uniform}", "two or more different names"),
        ("A: {kind: nominal, groups: x, target: uniform}", "a list of names, got 'x'"),
        ("A: {kind: nominal, groups: [x, y], target: [1, 2, 3]}", "2 numbers, got 3"),
        ("A: {kind: nominal, groups: [x, y], target: [-1, 2]}", "non-negative"),
        ("A: {kind: nominal, groups: [x, y], target: [0, 0]}", "a sum above 0"),
        ("A: {kind: nominal, groups: [x, y], target: [inf, 1]}", "finite number, got 'inf'"),
        ("A: {kind: nominal, groups: [x, y], target: [1.0e+308, 1.0e+308]}", "a sum above 0"),
        ("A: {kind: nominal, groups: [x, y], target: equal}", "'uniform' or a list of numbers"),
        ("turn: {kind: nominal, groups: [x, y], target: uniform}", "another column"),
        ("A: {kind: nominal, groups: [x, y], target: uniform}\nA: {}\n", "line 2: .*'A' twice"),
        ("A: [", "must be YAML"),
    ],
)
def test_bad_attribute_sets_are_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_attributes(write(tmp_path, text))


def test_another_target() -> None:
    tilted = AttributeSet("ORIGIN", "nominal", ("x", "y"), np.array([1, 3])).with_target([3, 1])
    assert tilted.target.tolist() == [0.75, 0.25]
    assert tilted.with_target("uniform").target.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="'uniform' or a list"):
        tilted.with_target("equal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 numbers, got 3"):
        AttributeSet("A", "nominal", ("x", "y"), np.ones(3))
