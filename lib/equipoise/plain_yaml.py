"""YAML that is safe to read: plain values, of bounded number and depth."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml

# What people write is far below these; what is made to exhaust a machine is above one of them.
_DEEPEST = 20
_MOST_VALUES = 8_000
_LONGEST = 150_000  # characters


class Words(yaml.SafeLoader):
    """Reads every scalar as text, so that a group named No stays one; refuses a key twice."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - as PyYAML declares it

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys are words, each of them once."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key that is not a word", key.start_mark
                )
            if key.value in seen:
                complaint = f"key {key.value[:60]!r} twice"
                raise yaml.constructor.ConstructorError(None, None, complaint, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class Values(Words):
    """Reads numbers as people write them, 010 as ten and 1:30 as text; true, false and null too."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - as PyYAML declares it

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """A whole number in decimal digits."""
        return int(node.value)


# A YAML 1.2 reader's idea of plain values, but for yes, no, on and off, which people still write.
_NUMBER = (
    r"[-+]?(\.[0-9]+|[0-9]{1,300}(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
for _kind, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (
        "bool",
        r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        list("yYnNtTfFoO"),
    ),
    ("int", r"[-+]?[0-9]{1,300}", list("-+0123456789")),
    ("float", _NUMBER, list("-+0123456789.")),
):
    Values.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_pattern})\\Z"), _first
    )
Values.add_constructor("tag:yaml.org,2002:int", Values.construct_yaml_int)


def _refuse_hostile(text: str) -> None:
    """Go through the events, which takes bounded memory, before anything is built of them."""
    if len(text) > _LONGEST:
        raise yaml.YAMLError(f"{len(text)} characters of YAML; at most {_LONGEST} are read")
    depth = 0  # of the lists and mappings that are open
    anchored_depth = 0  # of the outermost of them that an anchor names, 0 where none is
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionEndEvent):
            if depth == anchored_depth:
                anchored_depth = 0
            depth -= 1
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if event.anchor and not anchored_depth:
                anchored_depth = depth

        complaint = ""
        tag = getattr(event, "tag", None)
        if depth > _DEEPEST:
            complaint = f"values within values, more than {_DEEPEST} deep"
        elif number > _MOST_VALUES:
            complaint = f"more than {_MOST_VALUES} values"
        elif anchored_depth and isinstance(event, yaml.AliasEvent):
            # Aliases of aliases grow without bounds: ten of ten of ten.
            complaint = "an alias within what an anchor names"
        elif tag not in (None, "!"):
            complaint = f"the tag {tag[:60]!r}, where only plain values are read"
        if complaint:
            raise yaml.constructor.ConstructorError(None, None, complaint, event.start_mark)  # type: ignore[arg-type]


def load(text: str, loader: type[Words]) -> Any:
    """The content of a YAML text; whatever is wrong with it is a `yaml.YAMLError`."""
    _refuse_hostile(text)
    return yaml.load(text, Loader=loader)  # noqa: S506 - a SafeLoader that knows plain values only
