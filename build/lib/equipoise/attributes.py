"""Attribute sets: the groups that fairness is asked for, whether they are ordered, and the fair distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from equipoise.arrays import Floats
from equipoise.files import parse_number, read_yaml
from equipoise.problems import InputError, Problem, shown

CORE_COLUMNS = ("run", "topic", "turn", "start", "end", "level")
"""Columns of a nugget table that no attribute set may be named after."""


@dataclass(frozen=True)
class AttributeSet:
    """Groups over which fairness is asked for, and the distribution that would be fair.

    ``name``: Such as ``RATINGS``. ``kind``: whether the order of the groups matters. ``groups``: names of the
    groups; at least two. ``target`` (shaped (groups,)): Target distribution; any non-negative numbers, which are
    normalised to sum to one. Read-only.
    """

    name: str
    kind: Literal["ordinal", "nominal"]
    groups: tuple[str, ...]
    target: Floats

    def __post_init__(self) -> None:
        if self.kind not in ("ordinal", "nominal"):
            raise ValueError(f"attribute set {self.name}: kind {self.kind!r} is neither ordinal nor nominal")
        if len(self.groups) < 2 or len(set(self.groups)) < len(self.groups):
            raise ValueError(f"attribute set {self.name}: at least two groups of different names are needed")
        target = np.array(self.target, dtype=np.float64)
        if target.shape != (len(self.groups),):
            raise ValueError(
                f"attribute set {self.name}: {target.size} numbers in a target for {len(self.groups)} groups"
            )
        if not (np.isfinite(target).all() and (target >= 0).all() and target.sum() > 0):
            raise ValueError(f"attribute set {self.name}: a target is made of non-negative numbers, not all zero")
        target /= target.sum()
        target.flags.writeable = False
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "target", target)

    def with_target(self, target: Sequence[float] | Literal["uniform"]) -> AttributeSet:
        """The same groups with another target."""
        numbers = np.ones(len(self.groups)) if isinstance(target, str) else np.asarray(target, dtype=np.float64)
        if isinstance(target, str) and target != "uniform":
            raise ValueError(f"attribute set {self.name}: target {target!r} is neither uniform nor a list of numbers")
        return AttributeSet(self.name, self.kind, self.groups, numbers)


def read_attributes(path: str | Path) -> dict[str, AttributeSet]:
    """Attribute sets from a YAML file.

    The file maps the name of each set to ``kind`` (ordinal or nominal), ``groups`` (a list of names) and ``target``
    (``uniform``, or a list of non-negative numbers, which are normalised).

    Returns: In the order of the file.
    """
    return attribute_sets(read_yaml(path), str(path))


def attribute_sets(content: object, name: str = "attribute sets") -> dict[str, AttributeSet]:
    """Attribute sets from plain dictionaries and lists, as YAML or JSON hold them.

    ``content``: A mapping of names to ``{"kind": ..., "groups": [...], "target": ...}``. ``name``: what error
    messages call the source.
    """
    problems: list[Problem] = []
    sets: dict[str, AttributeSet] = {}
    if not isinstance(content, Mapping) or not content:
        raise InputError([Problem(name, None, None, shown(content), "attribute sets by name")])
    for key, entry in content.items():
        label = str(key)

        def wrong(found: str, wanted: str, label: str = label) -> None:
            problems.append(Problem(name, None, label, found, wanted))

        if label in (*CORE_COLUMNS, "entity") or not label.strip():
            wrong(shown(label), "a name that no other column of a nugget table has")
            continue
        if not isinstance(entry, Mapping) or set(entry) != {"kind", "groups", "target"}:
            found = f"keys {', '.join(map(str, entry)) or 'none'}" if isinstance(entry, Mapping) else shown(entry)
            wrong(found, "exactly the keys kind, groups, target")
            continue
        groups, target = entry["groups"], entry["target"]
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            wrong(f"groups {shown(groups)}", "a list of names")
            continue
        numbers: list[float] = [1.0] * len(groups)
        if target != "uniform":
            try:
                numbers = [parse_number(str(number)) for number in target] if isinstance(target, list) else []
            except ValueError as error:
                wrong(f"target: {error}", "uniform or a list of numbers")
                continue
            if not numbers:
                wrong(f"target {shown(target)}", "uniform or a list of numbers")
                continue
        try:
            sets[label] = AttributeSet(label, entry["kind"], tuple(groups), np.array(numbers))
        except ValueError as error:
            wrong(
                str(error).partition(": ")[2], "kind: ordinal or nominal, two groups or more, a target of that length"
            )
    if problems:
        raise InputError(problems)
    return sets
