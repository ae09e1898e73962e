"""Tables of two columns, such as groups of topics or sources of documents."""

from __future__ import annotations

from pathlib import Path

from equipoise.readers import read_table


def read_mapping(path: str | Path, key: str, value: str) -> dict[str, str]:
    """Read a mapping from one column, whose values are unique, to another."""
    table = read_table(path)
    table.need([key, value])
    keys, values = table.ids(key), table.ids(value)
    table.once([key], "unique in the file")
    return dict(zip(keys, values, strict=True))
