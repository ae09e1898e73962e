"""Guards attribute sets: what YAML may say of them, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from equipoise.attributes import AttributeSet, read_attributes
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
        ("A: {kind: nominal, groups: [x, y], target: [1.0e+308, 1.0e+308]}", "a sum that is a number"),
        ("A: {kind: nominal, groups: [x, y], target: equal}", "uniform or a list"),
        ("turn: {kind: nominal, groups: [x, y], target: uniform}", "no other column"),
        ("A: {kind: nominal, groups: [x, y], target: uniform}\nA: {}\n", "line 2: found key 'A' twice"),
        ("A: [", "YAML"),
        ("A: !!python/object/apply:os.system [x]", "tag"),
    ],
)
def test_refuses_bad_attribute_sets(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_attributes(write(tmp_path, text))


def test_another_target() -> None:
    tilted = AttributeSet("ORIGIN", "nominal", ("x", "y"), np.array([1, 3])).with_target([3, 1])
    assert tilted.target.tolist() == [0.75, 0.25]
    assert tilted.with_target("uniform").target.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="neither uniform"):
        tilted.with_target("equal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="3 numbers in a target for 2 groups"):
        AttributeSet("A", "nominal", ("x", "y"), np.ones(3))
