"""Readers of file formats that only commands need: exports, chats, answer logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equipoise.errors import input_error
from equipoise.readers import json_value, read_json_lines


def read_objects(path: Path, text: str) -> list[Any]:
    """Read a JSON array of objects, or JSON Lines, one object per line."""
    if not text.lstrip().startswith("["):
        return [row for _, row in read_json_lines(path, text)]
    try:
        objects: list[Any] = json_value(text)
    except ValueError as error:
        raise input_error(path, "JSON", str(error)) from None
    return objects
