"""Facts: what a notebook needs of an upstream collection, committed, so that it runs anywhere.

A fact table holds ids, labels, grades, counts, lengths and scores, never a text of others. The
module ``facts`` of a study says how each of its tables is made from the registered upstream files;
`make` makes them, with a table ``sources.csv`` that names those files and their sha256. Made again,
every file has the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import pandas as pd

from equipoise_compendium import project

SOURCES = "sources.csv"
MakeTable = Callable[[], pd.DataFrame]
"""Makes a fact table from upstream files, which `equipoise_compendium.registry.fetch` brings."""


def read(study: str, name: str, dtypes: Mapping[str, type] | None = None) -> pd.DataFrame:
    """A committed fact table, ``data/facts/<study>/<name>``, noted as used.

    Parquet brings its types along. In CSV every column is text, an empty field the empty text, but
    for the columns that ``dtypes`` names.
    """
    path = project.data("facts", study, name)
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table.astype(dict(dtypes or {}))


def content(name: str, table: pd.DataFrame) -> bytes:
    """The bytes of the file of a fact table, CSV or Parquet by its name."""
    if name.endswith(".csv"):
        return table.to_csv(index=False, lineterminator="\n").encode()
    if name.endswith(".parquet"):
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False, compression="zstd")
        return buffer.getvalue()
    raise ValueError(f"{name}: a fact table is a file .csv or .parquet")


def make(makers: Mapping[str, MakeTable]) -> dict[str, bytes]:
    """Every file of the facts of a study, by name, made from the upstream files; none is written.

    Raises `equipoise_compendium.registry.DataUnreachable` where one of these cannot be had.
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


def sources_of(name: str) -> dict[str, str]:
    """Sha256 of each file that a fact table was made from, by the name it was noted under.

    ``name`` is a path in the repository, such as ``data/facts/anscombe/points.csv``. A file that is
    no fact table has no sources.
    """
    path = project.root() / name
    listed = path.with_name(SOURCES)
    if not name.startswith("data/facts/") or not listed.is_file():
        return {}
    sources = pd.read_csv(listed, dtype=str, keep_default_na=False)
    of_table = sources[sources["table"] == path.name]
    return dict(zip(of_table["source"], of_table["sha256"], strict=True))


def changed(study: str, files: Mapping[str, bytes]) -> list[str]:
    """Names of the files of a study's facts that are not as they are made now, missing ones too."""
    folder = project.root() / "data" / "facts" / study
    committed = {path.name for path in folder.glob("*") if path.suffix in (".csv", ".parquet")}
    differing = set(committed ^ set(files))
    for name in committed & set(files):
        if (folder / name).read_bytes() != files[name]:
            differing.add(name)
    return sorted(differing)
