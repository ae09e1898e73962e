"""Readers of file formats that only commands need: exports, chats, answer logs, mappings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from equipoise.errors import excerpt, input_error
from equipoise.readers import json_value, read_json_lines, read_table


def read_objects(path: Path, text: str) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Read the objects of JSON Lines, or of one JSON value, each with its line if it has one."""
    try:
        value = json_value(text)
    except ValueError as error:
        if text.lstrip().startswith("["):
            raise input_error(path, "JSON", str(error)) from None
        yield from read_json_lines(path, text)
        return
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(entry, dict) for entry in values):
        raise input_error(path, "JSON objects", excerpt(value))
    yield from ((None, entry) for entry in values)


def read_mapping(path: str | Path, key: str, value: str) -> dict[str, str]:
    """Read a mapping from one column, whose values are unique, to another."""
    table = read_table(path)
    table.need([key, value])
    keys, values = table.ids(key), table.ids(value)
    table.once([key], "unique in the file")
    return dict(zip(keys, values, strict=True))
