"""Tables of two columns: groups of topics, sources of documents, ids of two collections."""

from __future__ import annotations

from pathlib import Path

from equipoise.readers import read_table


def read_mapping(path: str | Path, key: str, value: str) -> dict[str, str]:
    """Return the values of one column by those of another, which are unique."""
    table = read_table(path)
    table.need([key, value])
    keys, values = table.ids(key), table.ids(value)
    table.once([key], "once per file")
    return dict(zip(keys, values, strict=True))
