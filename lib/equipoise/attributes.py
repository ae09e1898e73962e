"""Attribute sets: groups that fairness is asked for, whether ordered, and what would be fair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from equipoise.arrays import Floats, normalised
from equipoise.files import parse_number, read_yaml
from equipoise.problems import listed, refused, shown, together

CORE_COLUMNS = ("run", "topic", "turn", "start", "end", "level")
"""Columns of a nugget table that no attribute set may be named after."""

_MOST_GROUPS = 1000
_ROUNDING = 1e-6 * (1 + 1e-6)  # how far printed probabilities may be from summing to 1


@dataclass(frozen=True)
class AttributeSet:
    """Groups over which fairness is asked for, and the distribution that would be fair.

    There are at least two groups, which an ordinal set names in their order. ``target`` takes any
    non-negative numbers, one for each group, and holds them normalised to sum to one, read-only.
    ``parts`` names the sets whose product it is: its groups are their combinations, the last set's
    changing fastest.
    """

    name: str
    kind: Literal["ordinal", "nominal"]
    groups: tuple[str, ...]
    target: Floats
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("ordinal", "nominal"):
            raise self._refused(f"kind {self.kind!r} is neither ordinal nor nominal")
        if len(self.groups) < 2 or len(set(self.groups)) < len(self.groups):
            raise self._refused("at least two groups of different names are needed")
        try:
            target = normalised(self.target, len(self.groups))
        except ValueError as error:
            raise self._refused(str(error)) from None
        target.flags.writeable = False
        # The class is frozen for everybody else.
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "target", target)

    def _refused(self, complaint: str) -> ValueError:
        return ValueError(f"attribute set {self.name}: {complaint}")

    def with_target(self, target: Sequence[float] | Literal["uniform"]) -> AttributeSet:
        """The same groups with another target."""
        if isinstance(target, str):
            if target != "uniform":
                raise self._refused(f"target {target!r} is neither uniform nor a list of numbers")
            return replace(self, target=np.ones(len(self.groups)))
        return replace(self, target=np.asarray(target, dtype=np.float64))

    def __str__(self) -> str:
        pairs = zip(self.groups, self.target, strict=True)
        shares = ", ".join(f"{group} {share:.3g}" for group, share in pairs)
        return f"{self.name}, {self.kind}, wanted {shares}"

    @property
    def wanted(self) -> str:
        """What the memberships of a nugget must be, in words."""
        names = ", ".join(self.groups)
        return f"{len(self.groups)} probabilities that sum to 1, one for each of {names}"

    def memberships(self, numbers: Sequence[float]) -> Floats:
        """The probabilities of a nugget's groups; a ValueError says what is wrong with them."""
        vector = np.array(numbers, dtype=np.float64)
        if len(vector) != len(self.groups):
            raise ValueError(f"{len(vector)} probabilities")
        if not np.isfinite(vector).all() or (vector < 0).any():
            raise ValueError("a probability that is negative or not finite")
        if abs(vector.sum() - 1) > _ROUNDING:
            raise ValueError(f"probabilities that sum to {vector.sum():.6g}")
        return vector


def read_attributes(path: str | Path) -> dict[str, AttributeSet]:
    """Attribute sets from a YAML file, in its order.

    The file maps the name of each set to ``kind`` (ordinal or nominal), ``groups`` (a list of
    names) and ``target`` (``uniform``, or a list of non-negative numbers, which are normalised). A
    product set has ``product`` (the names of other sets) instead of kind and groups, and a target
    if it is not the product of theirs. It is nominal whatever its parts are: their combinations
    have no one order, as a step in one part is no step in another.
    """
    return attribute_sets(read_yaml(path), str(path))


def attribute_sets(content: object, name: str = "attribute sets") -> dict[str, AttributeSet]:
    """Attribute sets from plain dictionaries and lists, as YAML or JSON hold them.

    ``name`` is what error messages call the source.

    Examples
    --------
    >>> pronoun = {"kind": "nominal", "groups": ["she", "he"], "target": [1, 3]}
    >>> sets = attribute_sets({"PRONOUN": pronoun})
    >>> sets["PRONOUN"].target
    array([0.25, 0.75])
    """
    if not isinstance(content, Mapping) or not content:
        raise refused(name, shown(content), "attribute sets by name")
    entries = {str(label): entry for label, entry in content.items()}
    products: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for label, entry in entries.items():
        is_product = isinstance(entry, Mapping) and "product" in entry
        (products if is_product else plain)[label] = entry
    sets: dict[str, AttributeSet] = {}
    readers = [partial(_attribute_set, label, entry, name) for label, entry in plain.items()]
    for attribute_set in together(readers):
        sets[attribute_set.name] = attribute_set
    # A product is of sets that are not products themselves, wherever they stand in the file.
    readers = [partial(_product_set, label, entry, name, sets) for label, entry in products.items()]
    for attribute_set in together(readers):
        sets[attribute_set.name] = attribute_set
    return {label: sets[label] for label in entries}  # in the order of the file


def crossed(vectors: Sequence[Floats]) -> Floats:
    """Shares over the combinations of groups, from shares over each, shaped (..., groups)."""
    product_of_all, *remaining = vectors
    for vector in remaining:
        table = product_of_all[..., :, None] * vector[..., None, :]  # (..., groups, groups)
        product_of_all = table.reshape(*table.shape[:-2], -1)
    return product_of_all


def _product_set(
    label: str, entry: Mapping[str, Any], name: str, sets: Mapping[str, AttributeSet]
) -> AttributeSet:
    parts = entry["product"]
    names_sets = isinstance(parts, list) and all(
        isinstance(part, str) and part in sets for part in parts
    )
    only_these_keys = set(entry) <= {"product", "target"}
    if not names_sets or not only_these_keys or len(parts) < 2 or len(set(parts)) < len(parts):
        wanted = (
            f"product: two or more of {listed(sets)}, each once; perhaps a target; no other key"
        )
        raise refused(name, shown(entry), wanted, column=label)
    count = prod(len(sets[part].groups) for part in parts)
    if count > _MOST_GROUPS:
        raise refused(
            name, f"{count} combinations of groups", f"at most {_MOST_GROUPS}", column=label
        )
    combinations = product(*(sets[part].groups for part in parts))
    groups = [" x ".join(combination) for combination in combinations]
    if "target" in entry:
        target = entry["target"]
    else:
        target = crossed([sets[part].target for part in parts]).tolist()
    nominal = {"kind": "nominal", "groups": groups, "target": target}
    return replace(_attribute_set(label, nominal, name), parts=tuple(parts))


def _attribute_set(label: str, entry: object, name: str) -> AttributeSet:
    wrong = partial(refused, name, column=label)
    if label in (*CORE_COLUMNS, "entity") or not label.strip():
        raise wrong(shown(label), "a name that no other column of a nugget table has")
    keys = "exactly the keys kind, groups, target"
    if not isinstance(entry, Mapping):
        raise wrong(shown(entry), keys)
    if set(entry) != {"kind", "groups", "target"}:
        raise wrong(f"keys {', '.join(map(str, entry)) or 'none'}", keys)
    groups, target = entry["groups"], entry["target"]
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise wrong(f"groups {shown(groups)}", "a list of names")
    if target != "uniform" and not (isinstance(target, list) and target):
        raise wrong(f"target {shown(target)}", "uniform or a list of numbers")
    try:
        numbers = [1.0] * len(groups)
        if target != "uniform":
            numbers = [parse_number(str(number)) for number in target]
        return AttributeSet(label, entry["kind"], tuple(groups), np.array(numbers))
    except ValueError as error:
        wanted = "kind: ordinal or nominal, two groups or more, a target of as many numbers"
        raise wrong(str(error).removeprefix(f"attribute set {label}: "), wanted) from None
