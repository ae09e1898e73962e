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
        self.sets = {name.casefold(): one for name, one in attributes.items()}
        self.groups: dict[str, list[tuple[str, str]]] = {}
        for name, one in attributes.items():
            for group in one.groups:
                self.groups.setdefault(group.casefold(), []).append((name, group))
        rows = [] if labels is None else labels.to_dict("records")
        self.given = {
            str(row["label"]): {k: v for k, v in row.items() if k != "label" and str(v).strip()}
            for row in rows
        }
        self.unknown: set[str] = set()

    def of(self, said: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Level, entity, and the groups of each set, of what is said; a ValueError tells a contradiction."""
        found: dict[str, Any] = {}
        for control, label in said:
            if label in self.given:
                for key, value in self.given[label].items():
                    self._note(found, key, str(value))
            else:
                for part in map(str.strip, label.split("|")):
                    named = _NAMED.fullmatch(part)
                    if named and named[1].strip().casefold() in (*self.sets, "level", "entity"):
                        self._note(found, named[1].strip(), named[2].strip())
                    else:
                        self._part(found, control, part)
        return found

    def _part(self, found: dict[str, Any], control: str, part: str) -> None:
        key, groups = control.casefold(), self.groups.get(part.casefold(), [])
        level = _LEVEL.fullmatch(part)
        if key == "entity" or (
            key in self.sets and any(name.casefold() == key for name, _ in groups)
        ):
            self._note(found, control, part)
        elif level and (key in ("level", "relevance", "grade") or not part[0].isdigit()):
            self._note(found, "level", level[1])
        elif len(groups) == 1:
            self._note(found, groups[0][0], part)
        elif groups:
            raise ValueError(f"{shown(part)}, a group of {listed(name for name, _ in groups)}")
        else:
            self.unknown.add(part)

    def _note(self, found: dict[str, Any], key: str, value: str) -> None:
        """Keep a level, an entity or a group; memberships may be written as numbers."""
        name = key.casefold()
        if name in self.sets:
            one = self.sets[name]
            group = next(
                (group for group in one.groups if group.casefold() == value.casefold()), None
            )
            if group is None and len(value.split()) != len(one.groups):
                raise ValueError(f"{one.name} {shown(value)}")
            found.setdefault(one.name, []).append(group or value)
        elif found.setdefault(name, value) != value:
            raise ValueError(f"{name} {shown(found[name])} and {shown(value)}")

    def row(self, found: dict[str, Any]) -> dict[str, str]:
        """The fields of a nugget."""
        level = _LEVEL.fullmatch(str(found.get("level", "")))
        if not level:
            raise ValueError(f"no level among {listed(found, 3)}" if found else "no level")
        row = {"level": str(int(level[1])), "entity": str(found.get("entity", ""))}
        for one in self.sets.values():
            groups = list(dict.fromkeys(found.get(one.name, ())))
            if not groups and int(level[1]):
                raise ValueError(f"no group of {one.name}")
            share = f"1/{len(groups)}" if len(groups) > 1 else "1"
            written = " ".join(share if group in groups else "0" for group in one.groups)
            row[one.name] = (
                "" if not groups else groups[0] if groups[0] not in one.groups else written
            )
        return row
