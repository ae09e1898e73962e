"""Readers of file formats that only commands need: exports, chats, answer logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from equipoise.readers import read_json_lines


def read_objects(path: Path, text: str) -> list[Any]:
    """Read a JSON array of objects, or JSON Lines, one object per line."""
    if not text.lstrip().startswith("["):
        return [row for _, row in read_json_lines(path, text)]
    try:
        objects: list[Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: must be JSON ({error.msg})") from None
    return objects
