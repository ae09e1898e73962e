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
from equipoise.problems import Problem, Problems, refused

Line = dict[str, Any]


def lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed; False if another process has locked it.

    None where files cannot be locked.
    """
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ModuleNotFoundError, OSError):  # Windows, or a file system without locks
        return None
    return True


def parted(path: Path | str) -> tuple[list[bytes], bytes]:
    """Lines of a record, and what an interruption left of one more."""
    *lines, last_line = read_bytes(path).split(b"\n")
    with suppress(ValueError, RecursionError):
        # A line is complete even where an editor took its end away.
        if isinstance(json.loads(last_line), dict):
            return [*lines, last_line], b""
    return lines, last_line


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
    texts, torn_line = parted(path)
    order = f"settings on line 1, then {kind}"
    if not texts:
        problem = "no whole line" if torn_line else "an empty file"
        problems.append(Problem(str(path), None, None, problem, f"a record: {order}"))
    for number, text in enumerate(texts, start=1):
        try:
            line = json_value(text)
        except ValueError as error:
            problem = str(error)
            if problem.startswith("no JSON"):
                problem = "a line that is not JSON"
            problems.append(Problem(str(path), number, None, problem, "a JSON object"))
            line = None
        else:
            kind_of_line = line.get("record") if isinstance(line, dict) else None
            if kind_of_line != ("settings" if number == 1 else kind):
                problem = repr(kind_of_line)
                problems.append(Problem(str(path), number, "record", problem, order))
            elif number == 1:
                settings = line
            else:
                lines.append((number, line))
        if not settings:
            break  # a file of another kind, in which no further line would say more
    return settings, lines


def refuse_others(record: Path, stated: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse to go on with other settings than a record states, each one named."""
    problems = Problems()
    for name in sorted(settings.keys() | stated.keys()):
        if settings.get(name) != stated.get(name):
            problem = json.dumps(stated.get(name))
            expected = f"{json.dumps(settings.get(name))}, or another record"
            problems.add(record, 1, name, problem, expected)
    problems.refuse()


@contextmanager
def held(record: Path) -> Iterator[None]:
    """Keep other processes from going on with a record meanwhile.

    The hold ends, at the latest, with this process.
    """
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
    if not record.exists():  # one that is refused keeps its time of change
        record.touch()
    with record.open("rb") as file:
        if file.read(2) == GZIP:
            raise refused(record, "a record packed by gzip", "an unpacked one to go on with")
    content = read_bytes(record)
    first_line = _encoded(settings)
    if content != first_line and first_line.startswith(content):
        # It is new, or was cut off within its first line.
        _write(record, 0, first_line)
        return []
    stated_settings, lines = parse(record)
    # As they are read back: tuples are lists.
    refuse_others(record, stated_settings, json.loads(json.dumps(settings)))
    _, torn_line = parted(record)
    if torn_line:
        _write(record, len(content) - len(torn_line), b"")
    elif not content.endswith(b"\n"):
        _write(record, None, b"\n")
    return lines


def append(record: Path, line: Mapping[str, Any]) -> None:
    """Add a line to a record and write it through to the disk."""
    _write(record, None, _encoded(line))


def _encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, sort_keys=True).encode() + b"\n"


def _write(record: Path, place: int | None, content: bytes) -> None:
    """Write to a record from a place on, its end for None, a complete line or none."""
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
        raise ValueError(
            f"cannot write {record}: {error.strerror}; "
            "what was recorded before is there, to be gone on with"
        ) from None
