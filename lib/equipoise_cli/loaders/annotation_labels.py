"""What the labels of annotators mean: levels, entities, and groups of attribute sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.files import read_source
from equipoise.problems import listed, shown

_LEVEL = re.compile(r"(?:level\s*|l)?([0-9]{1,3})", re.IGNORECASE)
_NAMED = re.compile(r"([^=:]+?)\s*[=:]\s*(.+)", re.DOTALL)


def read_labels(path: str | Path, attributes: Mapping[str, AttributeSet]) -> pd.DataFrame:
    """What labels mean: a CSV with label, and any of level, entity and the attribute sets."""
    source = read_source(path)
    source.check_header(["label"], ("level", "entity", *attributes))
    return source.columns


class Meaning:
    """What labels say: level, entity, and groups of the attribute sets."""

    def __init__(self, attributes: Mapping[str, AttributeSet], labels: pd.DataFrame | None) -> None:
        self.names = tuple(attributes)
        self.sets = {name.casefold(): attribute for name, attribute in attributes.items()}
        self.groups: dict[str, list[tuple[str, str]]] = {}  # set and group by the group's name
        for name, attribute_set in attributes.items():
            for group in attribute_set.groups:
                self.groups.setdefault(group.casefold(), []).append((name, group))
        self.table: dict[str, dict[str, Any]] = {}  # what the table of labels says, by label
        for row in [] if labels is None else labels.to_dict("records"):
            label = str(row.pop("label"))
            self.table[label] = {key: value for key, value in row.items() if str(value).strip()}
        self.unknown: set[str] = set()

    def of(self, labels: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Level, entity, and the groups of each set, that labels say.

        ``labels``: pairs of a control and what was chosen there. A ValueError tells a
        contradiction.
        """
        meaning: dict[str, Any] = {}
        for control, label in labels:
            if label in self.table:
                for key, value in self.table[label].items():
                    self._note(meaning, key, str(value))
                continue
            for piece in map(str.strip, label.split("|")):
                match = _NAMED.fullmatch(piece)
                name = match[1].strip() if match else ""
                if match and name.casefold() in (*self.sets, "level", "entity"):
                    self._note(meaning, name, match[2].strip())
                else:
                    self._note_part(meaning, control, piece)
        return meaning

    def _note_part(self, meaning: dict[str, Any], control: str, piece: str) -> None:
        """Keep what a part of a label says by itself, or by its control."""
        key, groups = control.casefold(), self.groups.get(piece.casefold(), [])
        level = _LEVEL.fullmatch(piece)
        names_level = key in ("level", "relevance", "grade") or not piece[:1].isdigit()
        is_of_control = any(name.casefold() == key for name, _ in groups)
        if key == "entity" or is_of_control:
            self._note(meaning, control, piece)
        elif level and names_level:
            self._note(meaning, "level", level[1])
        elif len(groups) == 1:
            name, _ = groups[0]
            self._note(meaning, name, piece)
        elif groups:
            raise ValueError(f"{shown(piece)}, a group of {listed(name for name, _ in groups)}")
        else:
            self.unknown.add(piece)

    def _note(self, meaning: dict[str, Any], key: str, value: str) -> None:
        """Keep a level, an entity or a group; memberships may be written as numbers."""
        name = key.casefold()
        if name not in self.sets:
            if meaning.setdefault(name, value) != value:
                raise ValueError(f"{name} {shown(meaning[name])} and {shown(value)}")
            return
        attribute_set = self.sets[name]
        group_of = {group.casefold(): group for group in reversed(attribute_set.groups)}
        group = group_of.get(value.casefold())
        if group is None and len(value.split()) != len(attribute_set.groups):
            raise ValueError(f"{attribute_set.name} {shown(value)}")
        meaning.setdefault(attribute_set.name, []).append(group or value)

    def row(self, meaning: dict[str, Any]) -> dict[str, str]:
        """The fields of a nugget."""
        match = _LEVEL.fullmatch(str(meaning.get("level", "")))
        if not match:
            raise ValueError(f"no level among {listed(meaning, 3)}" if meaning else "no level")
        level = int(match[1])
        row = {"level": str(level), "entity": str(meaning.get("entity", ""))}
        for attribute_set in self.sets.values():
            groups = list(dict.fromkeys(meaning.get(attribute_set.name, ())))
            if not groups and level:
                raise ValueError(f"no group of {attribute_set.name}")
            row[attribute_set.name] = _memberships(groups, attribute_set)
        return row


def _memberships(groups: list[str], attribute_set: AttributeSet) -> str:
    """Equal shares of the groups, or memberships as they were written."""
    if not groups:
        return ""
    if groups[0] not in attribute_set.groups:
        return groups[0]
    share = f"1/{len(groups)}" if len(groups) > 1 else "1"
    return " ".join(share if group in groups else "0" for group in attribute_set.groups)
