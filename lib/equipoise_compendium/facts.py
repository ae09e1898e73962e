"""Derived data: what a notebook needs of an upstream collection, committed.

A table of derived data has ids, labels, grades, counts, lengths and scores, never a text of others.
The script ``data/facts/<study>/make.py`` says how each table is made from the registered upstream
files; `make` makes them, with a table ``sources.csv`` that names those files and their sha256.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import pandas as pd

from equipoise_compendium import project

SOURCES = "sources.csv"
MakeTable = Callable[[], pd.DataFrame]
"""Makes a table from upstream files, which `equipoise_compendium.registry.fetch` brings."""


def read(study: str, name: str, dtypes: Mapping[str, type] | None = None) -> pd.DataFrame:
    """Read a committed table, ``data/facts/<study>/<name>``.

    Parquet brings its types along. In CSV every column is text, an empty field the empty text, but
    for the columns that ``dtypes`` names.
    """
    path = project.data("facts", study, name)
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table.astype(dict(dtypes or {}))


def content(name: str, table: pd.DataFrame) -> bytes:
    """Return the bytes of the file of a table, CSV or Parquet by its name."""
    if name.endswith(".csv"):
        return table.to_csv(index=False, lineterminator="\n").encode()
    if name.endswith(".parquet"):
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False, compression="zstd")
        return buffer.getvalue()
    raise ValueError(f"{name}: must be a file .csv or .parquet")


def make(makers: Mapping[str, MakeTable]) -> dict[str, bytes]:
    """Make every file of a study, by name, from the upstream files; none is written.

    Raises `equipoise_compendium.registry.DataUnreachable` where one of these is not available.
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
