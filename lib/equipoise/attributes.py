"""Attribute sets: groups that fairness is about, whether ordered, and the target distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from equipoise.arrays import Floats, normalised
from equipoise.errors import excerpt, input_error, need_distinct_groups
from equipoise.readers import number, read_yaml

CORE_COLUMNS = ("run", "topic", "turn", "start", "end", "level")
"""Columns of a nugget table that no attribute set may be named after."""
ROUNDING = 1.1e-6
"""How far published probabilities may be from summing to 1."""


@dataclass(frozen=True)
class AttributeSet:
    """Groups that fairness is about, and the target distribution over them.

    There are at least two groups; those of an ordinal set are in their order. ``target`` takes
    non-negative numbers, one for each group, and keeps them normalised, read-only.
    """

    name: str
    kind: Literal["ordinal", "nominal"]
    groups: tuple[str, ...]
    target: Floats

    def __post_init__(self) -> None:
        if self.kind not in ("ordinal", "nominal"):
            raise ValueError(f"kind must be 'ordinal' or 'nominal', got {excerpt(self.kind)}")
        groups = tuple(self.groups)
        if len(groups) < 2 or len(set(groups)) < len(groups):
            raise ValueError(f"groups must be two or more different names, got {excerpt(groups)}")
        need_distinct_groups(groups)
        target = normalised(self.target, len(groups))
        target.flags.writeable = False
        # The class is frozen for everybody else.
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "target", target)

    def with_target(self, target: Sequence[float] | Literal["uniform"]) -> AttributeSet:
        """The same groups with another target."""
        if isinstance(target, str) and target != "uniform":
            raise ValueError(
                f"target must be 'uniform' or a list of numbers, got {excerpt(target)}"
            )
        numbers = np.ones(len(self.groups)) if isinstance(target, str) else np.asarray(target)
        return replace(self, target=numbers)

    def __str__(self) -> str:
        pairs = zip(self.groups, self.target, strict=True)
        shares = ", ".join(f"{group} {share:.3g}" for group, share in pairs)
        return f"{self.name}, {self.kind}, target {shares}"

    @property
    def wanted(self) -> str:
        """What the memberships of a nugget must be."""
        names = ", ".join(self.groups)
        return f"{len(self.groups)} probabilities that sum to 1, one for each of {names}"

    def memberships(self, numbers: Sequence[float]) -> Floats:
        """The probabilities of a nugget's groups; a ValueError says what is wrong with them."""
        vector = np.array(numbers, dtype=np.float64)
        is_distribution = bool((vector >= 0).all()) and abs(vector.sum() - 1) <= ROUNDING
        if len(vector) != len(self.groups) or not is_distribution:
            raise ValueError(f"memberships must be {self.wanted}")
        return vector


def read_attributes(path: str | Path) -> dict[str, AttributeSet]:
    """Attribute sets from a YAML file, in its order.

    The file maps the name of each set to ``kind`` (ordinal or nominal), ``groups`` (a list of
    names) and ``target`` (``uniform``, or a list of non-negative numbers, which are normalised).
    """
    return attribute_sets(read_yaml(path, words=True), str(path))


def attribute_sets(content: object, name: str = "attribute sets") -> dict[str, AttributeSet]:
    """Attribute sets from plain dictionaries and lists, as YAML or JSON have them.

    ``name`` is what error messages call the source.

    Examples
    --------
    >>> pronoun = {"kind": "nominal", "groups": ["she", "he"], "target": [1, 3]}
    >>> sets = attribute_sets({"PRONOUN": pronoun})
    >>> sets["PRONOUN"].target
    array([0.25, 0.75])
    """
    if not isinstance(content, Mapping) or not content:
        raise input_error(name, "attribute sets by name", excerpt(content))
    sets = {}
    for label, entry in content.items():
        try:
            sets[str(label)] = _attribute_set(str(label), entry)
        except ValueError as error:
            raise input_error(name, str(error), column=str(label)) from None
    return sets


def _attribute_set(label: str, entry: object) -> AttributeSet:
    if label in (*CORE_COLUMNS, "entity") or not label.strip():
        raise ValueError("an attribute set must not have the name of another column of the nuggets")
    if not isinstance(entry, Mapping) or set(entry) != {"kind", "groups", "target"}:
        keys = ", ".join(map(str, entry)) if isinstance(entry, Mapping) else excerpt(entry)
        raise ValueError(f"the keys must be kind, groups and target, got {keys}")
    groups, target = entry["groups"], entry["target"]
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise ValueError(f"groups must be a list of names, got {excerpt(groups)}")
    if target != "uniform" and not isinstance(target, list):
        raise ValueError(f"target must be 'uniform' or a list of numbers, got {excerpt(target)}")
    numbers = np.ones(len(groups))
    if target != "uniform":
        numbers = np.array([number(str(share)) for share in target])
    return AttributeSet(label, entry["kind"], tuple(groups), numbers)
