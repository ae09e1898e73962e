"""Records that grow line by line and survive an interruption.

A record is a JSON Lines file: first the settings that it is made with, then one object for each thing recorded. Every
line is written through to the disk before the next. A last line that an interruption left without its end is cut off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from equipoise.files import GZIP, json_value, read_bytes, refused
from equipoise.problems import InputError, Problem

Line = dict[str, Any]


def whole_lines(path: str | Path) -> list[bytes]:
    """Lines of a record, without one that lacks its end."""
    data = read_bytes(path)
    return data[: data.rfind(b"\n") + 1].splitlines()


def parse_lines(path: str | Path, kind: str, problems: list[Problem]) -> tuple[Line, list[tuple[int, Line]]]:
    """Parse a record: settings on line 1, then objects of one kind.

    ``kind``: what ``record`` says on every line but the first. ``problems``: lines that are not JSON, or say something
    else, are added to it. Returns: the first line, empty where the record is, and the others with their numbers.
    """
    settings: Line = {}
    lines: list[tuple[int, Line]] = []
    for number, text in enumerate(whole_lines(path), start=1):
        try:
            line = json_value(text)
        except ValueError as error:
            told = "a line that is not JSON" if str(error).startswith("no JSON") else str(error)
            problems.append(Problem(str(path), number, None, told, "a JSON object"))
            continue
        found = line.get("record") if isinstance(line, dict) else None
        if found != ("settings" if number == 1 else kind):
            problems.append(Problem(str(path), number, "record", repr(found), f"settings on line 1, then {kind}"))
        elif number == 1:
            settings = line
        else:
            lines.append((number, line))
    return settings, lines


def refuse_others(record: Path, stated: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse to go on with other settings than a record states, each one named."""
    differing = sorted(name for name in settings.keys() | stated.keys() if settings.get(name) != stated.get(name))
    if differing:
        found, wanted = ({name: json.dumps(of.get(name)) for name in differing} for of in (stated, settings))
        raise InputError(
            Problem(str(record), 1, name, found[name], f"{wanted[name]}, or another record") for name in differing
        )


def resume(record: Path, settings: Mapping[str, Any], parse: Callable[[Path], tuple[Line, list[Line]]]) -> list[Line]:
    """Begin a record, or go on with it.

    ``record``: the file; it is made, with its folder, where it is not there yet. ``settings``: what it is made with.
    ``parse``: takes the file and returns its settings and lines. Returns: what the record holds already.
    """
    record.parent.mkdir(parents=True, exist_ok=True)
    if not record.exists() or not whole_lines(record):
        record.unlink(missing_ok=True)
        append(record, settings)
        return []
    with record.open("rb") as file:
        if file.read(2) == GZIP:
            raise refused(record, "a record packed by gzip", "an unpacked one to go on with")
    stated, lines = parse(record)
    refuse_others(record, stated, json.loads(json.dumps(settings)))  # as they are read back: tuples are lists
    with record.open("r+b") as file:
        file.truncate(sum(len(line) + 1 for line in whole_lines(record)))
    return lines


def append(record: Path, line: Mapping[str, Any]) -> None:
    """Add a line to a record and write it through to the disk."""
    with record.open("ab") as file:
        file.write(json.dumps(line, sort_keys=True).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
