"""Records that grow line by line and survive an interruption.

A record is a JSON Lines file: first the settings that it is made with, then one object for each
thing recorded. Every line is written through to the disk before the next. A last line that an
interruption left unfinished is cut off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from equipoise.files import GZIP, json_value, read_bytes
from equipoise.problems import InputError, Problem, refused
from equipoise_compendium.writing import lock

Line = dict[str, Any]


def parted(path: Path | str) -> tuple[list[bytes], bytes]:
    """Lines of a record, and what an interruption left of one more; JSON is whole even where an editor took its end."""
    *lines, last = read_bytes(path).split(b"\n")
    with suppress(ValueError, RecursionError):
        if isinstance(json.loads(last), dict):
            return [*lines, last], b""
    return lines, last


def parse_lines(
    path: str | Path, kind: str, problems: list[Problem]
) -> tuple[Line, list[tuple[int, Line]]]:
    """Parse a record: settings on line 1, then objects of one kind.

    ``kind``: what ``record`` says on every line but the first. ``problems``: lines that are not
    JSON, or say something else, are added to it. Returns: the first line, empty where the record
    is, and the others with their numbers.
    """
    settings: Line = {}
    lines: list[tuple[int, Line]] = []
    texts, rest = parted(path)
    if not texts:
        there = "no whole line" if rest else "an empty file"
        problems.append(
            Problem(str(path), None, None, there, f"a record: settings on line 1, then {kind}")
        )
    for number, text in enumerate(texts, start=1):
        try:
            line = json_value(text)
        except ValueError as error:
            told = "a line that is not JSON" if str(error).startswith("no JSON") else str(error)
            problems.append(Problem(str(path), number, None, told, "a JSON object"))
        else:
            found = line.get("record") if isinstance(line, dict) else None
            if found != ("settings" if number == 1 else kind):
                problems.append(
                    Problem(
                        str(path), number, "record", repr(found), f"settings on line 1, then {kind}"
                    )
                )
            elif number == 1:
                settings = line
            else:
                lines.append((number, line))
        if not settings:
            break  # a file of another kind, in which no further line would say more
    return settings, lines


def refuse_others(record: Path, stated: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse to go on with other settings than a record states, each one named."""
    differing = sorted(
        name for name in settings.keys() | stated.keys() if settings.get(name) != stated.get(name)
    )
    if differing:
        found, wanted = (
            {name: json.dumps(of.get(name)) for name in differing} for of in (stated, settings)
        )
        raise InputError(
            Problem(str(record), 1, name, found[name], f"{wanted[name]}, or another record")
            for name in differing
        )


@contextmanager
def held(record: Path) -> Iterator[None]:
    """Keep other processes from going on with a record meanwhile; the hold ends, at the latest, with this process."""
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        file = record.open("ab")
    except OSError as error:
        raise ValueError(f"cannot write {record}: {error.strerror}") from None
    with file:
        if lock(file.fileno()) is False:
            raise ValueError(
                f"another harvest is writing {record}: let it end, or name another record"
            )
        yield


def resume(
    record: Path, settings: Mapping[str, Any], parse: Callable[[Path], tuple[Line, list[Line]]]
) -> list[Line]:
    """Begin a record, or go on with it; a file that is no record of these settings is refused.

    ``record``: the file; it is made, with its folder, where it is not there yet. ``settings``: what
    it is made with. ``parse``: takes the file and returns its settings and lines. Returns: what the
    record holds already.
    """
    record.parent.mkdir(parents=True, exist_ok=True)
    if not record.exists():
        record.touch()
    with record.open("rb") as file:
        if file.read(2) == GZIP:
            raise refused(record, "a record packed by gzip", "an unpacked one to go on with")
    data = read_bytes(record)
    if data != (first := _encoded(settings)) and first.startswith(
        data
    ):  # new, or cut off within its first line
        _write(record, 0, first)
        return []
    stated, lines = parse(record)
    refuse_others(
        record, stated, json.loads(json.dumps(settings))
    )  # as they are read back: tuples are lists
    rest = parted(record)[1]
    if rest or not data.endswith(b"\n"):
        _write(record, len(data) - len(rest), b"" if rest else b"\n")
    return lines


def append(record: Path, line: Mapping[str, Any]) -> None:
    """Add a line to a record and write it through to the disk."""
    _write(record, None, _encoded(line))


def _encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, sort_keys=True).encode() + b"\n"


def _write(record: Path, place: int | None, content: bytes) -> None:
    """Write to a record from a place on, its end for None, a whole line or none."""
    try:
        with record.open("r+b", buffering=0) as file:
            start = file.seek(0, os.SEEK_END) if place is None else file.seek(place)
            try:
                file.truncate()
                if file.write(content) < len(content):
                    raise OSError(0, "no room for a whole line")
                os.fsync(file.fileno())
            except OSError:
                file.truncate(start)
                raise
    except OSError as error:
        told = f"cannot write {record}: {error.strerror}"
        raise ValueError(f"{told}; what was recorded before is there, to be gone on with") from None
