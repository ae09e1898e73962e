"""Derived data: committed tables from upstream collections, which notebooks read.

A table of derived data has ids, labels, grades, counts, lengths and scores, never a text of others.
The script ``data/facts/<study>/make.py`` defines how each table is made from the registered
upstream files. `make` makes them, and a table ``sources.csv`` with these files and their sha256.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import pandas as pd

from equipoise_compendium import project

SOURCES = "sources.csv"
MakeTable = Callable[[], pd.DataFrame]
"""Function that makes a table from files of `equipoise_compendium.registry.fetch`."""


def read(study: str, name: str, dtypes: Mapping[str, type] | None = None) -> pd.DataFrame:
    """Read a committed table, ``data/facts/<study>/<name>``.

    Parquet files have types. In CSV every column is text, and an empty field is "", except in the
    columns that ``dtypes`` names.
    """
    path = project.data("facts", study, name)
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table.astype(dict(dtypes or {}))


def content(name: str, table: pd.DataFrame) -> bytes:
    """Return the content of a table's file, CSV or Parquet by the ending of its name."""
    if name.endswith(".csv"):
        return table.to_csv(index=False, lineterminator="\n").encode()
    if name.endswith(".parquet"):
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False, compression="zstd")
        return buffer.getvalue()
    raise ValueError(f"{name}: must be a file with the ending .csv or .parquet")


def make(makers: Mapping[str, MakeTable]) -> dict[str, bytes]:
    """Make every file of a study by name, from the upstream files, without writing it.

    Raises `equipoise_compendium.registry.DataUnreachable` if one of these is not available.
    """
    files = {}
    sources = []
    for name, make_table in makers.items():
        with project.used_meanwhile() as used:
            files[name] = content(name, make_table())
        for source, digest in used.items():
            sources.append({"table": name, "source": source, "sha256": digest})
    columns = ["table", "source", "sha256"]
    sources_table = pd.DataFrame(sources, columns=columns).sort_values(["table", "source"])
    return files | {SOURCES: content(SOURCES, sources_table)}
