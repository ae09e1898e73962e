"""Runs and relevance judgements of TREC and NTCIR as tidy tables.

A run has six columns a line, ``topic Q0 document rank score tag``; an NTCIR run opens with a line
``<SYSDESC>...</SYSDESC>``. A Parquet file with the columns topic, document, rank and score is a run
too. Qrels have four columns, ``topic iteration document level`` (TREC), or three, ``topic document
L2`` (NTCIR). A file that gzip made is unpacked. Columns are separated by white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from equipoise.arrays import Floats, as_strings
from equipoise.files import is_parquet, parts, read_bytes, read_source, unpacked_name
from equipoise.loaders.white_space import (
    first_line,
    note_values,
    one_blank,
    quick_columns,
    quick_frame,
    quick_numbers,
    text_lines,
    text_table,
)
from equipoise.problems import Problems

_INTEGER = r"[+-]?[0-9]{1,9}"
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_LEVEL = "L?-?[0-9]{1,4}"
_THREE, _FOUR = ["topic", "document", "level"], ["topic", "iteration", "document", "level"]
_COLUMNS = ["topic", "Q0", "document", "rank", "score", "tag"]


def _numbers(values: pd.Series, pattern: str) -> Floats:
    """Numbers of a column, NaN where it holds none: text of the pattern, or what a Parquet file has."""
    if not pd.api.types.is_string_dtype(values):
        return pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)
    return values.where(values.str.fullmatch(pattern), "nan").to_numpy(dtype=np.float64)


def _sound(table: pd.DataFrame, file: Path, problems: Problems) -> pd.DataFrame:
    """The columns of a run that hold what they should."""
    rank, score = _numbers(table["rank"], _INTEGER), _numbers(table["score"], _NUMBER)
    for column, wrong, wanted in (
        ("topic", table["topic"].isna(), "an id"),
        ("document", table["document"].isna(), "an id"),
        ("rank", ~np.isfinite(rank) | (rank != np.floor(rank)), "a whole number"),
        ("score", ~np.isfinite(score), "a finite number"),
    ):
        note_values(table[wrong], column, wanted, file, problems)
    problems.add_repeats(
        file, table, ["document", "topic"], "document", "each document once in a list"
    )
    if table.empty and not problems:
        problems.add(file, None, None, "no ranked document", "topic Q0 document rank score tag")
    problems.refuse()
    return (
        table[["topic", "document"]].astype("str").assign(rank=rank.astype(np.int64), score=score)
    )


def _quick_run(content: bytes) -> pd.DataFrame | None:
    """A run in which all is in order; None where something may not be."""
    lines = one_blank(content)
    if lines is None:
        return None
    described = lines.startswith(b"<SYSDESC>")
    if described and not first_line(lines).rstrip().endswith(b"</SYSDESC>"):
        return None
    table = quick_columns(lines, _COLUMNS, int(described))
    if table is None or not table.num_rows or pc.count_distinct(table["tag"]).as_py() > 1:
        return None
    rank, score = table["rank"], quick_numbers(table["score"])
    if (
        score is None
        or not pc.all(pc.ascii_is_decimal(rank)).as_py()
        or pc.max(pc.binary_length(rank)).as_py() > 9
    ):
        return None
    numbers = {"rank": pc.cast(rank, pa.int64()).to_numpy(), "score": score}
    table, rank = (
        table.select(["topic", "document"]),
        None,
    )  # the other texts are let go: they take as much again
    return quick_frame(table, ["topic", "document"], **numbers)


def _text_run(content: bytes, file: Path) -> pd.DataFrame:
    table = _quick_run(content)
    return _slow_run(content, file) if table is None else table


def _slow_run(content: bytes, file: Path) -> pd.DataFrame:
    """A run in which something is unusual or wrong, which is told by its line."""
    problems, (numbers, fields) = Problems(), text_lines(content, file)
    opening = fields[0].as_py() if len(fields) else [""]
    if opening[0].startswith("<SYSDESC>"):
        if not opening[-1].endswith("</SYSDESC>"):
            problems.add(
                file,
                int(numbers[0]),
                None,
                "<SYSDESC> without its end",
                "</SYSDESC> on the same line",
            )
        numbers, fields = numbers[1:], fields[1:]
    table = text_table((numbers, fields), _COLUMNS, f"six: {' '.join(_COLUMNS)}", file, problems)
    first = table["tag"].iloc[0] if len(table) else ""
    note_values(
        table[table["tag"] != first], "tag", f"{first!r}, as in the first line", file, problems
    )
    return _sound(table, file, problems)


def _parquet_run(file: Path) -> pd.DataFrame:
    table, problems = read_source(file).columns, Problems()
    for name in pd.Index(["topic", "document", "rank", "score"]).difference(table.columns):
        problems.add(file, None, name, "no such column", "the column")
    problems.refuse()
    table = table.assign(line=np.arange(1, len(table) + 1))
    for name in (name for name in ("topic", "document") if table[name].dtype == object):
        single = table[name].map(
            lambda value: pd.api.types.is_scalar(value) and not isinstance(value, bytes)
        )
        note_values(table[~single], name, "an id", file, problems)
    problems.refuse()
    return _sound(table, file, problems)


def file_name(file: Path) -> str:
    """The name of a run's file without .gz and .parquet."""
    return re.sub(r"\.parquet\Z", "", unpacked_name(file), flags=re.IGNORECASE)


def read_run(path: str | Path, name: str | None = None) -> pd.DataFrame:
    """Read a run: a table with the columns run, topic, document, rank and score, in file order.

    ``name`` is what to call the run, by default the file's name without ``.gz`` or ``.parquet``.
    The tag in the last column is not used, for files of different runs often share it. ``rank`` is
    the stated one.
    """
    file, called = Path(path), file_name(Path(path)) if name is None else name
    table = _parquet_run(file) if is_parquet(file) else _text_run(read_bytes(file), file)
    table.insert(0, "run", as_strings(called, len(table)))
    return table


def run_files(path: str | Path) -> list[Path]:
    """The files of a run: one, or of a folder those of Parquet, or all where there are none."""
    folder = Path(path)
    if not folder.is_dir():
        return [folder]
    return [
        folder / name
        for name in parts(folder, (".parquet",) if any(folder.rglob("*.parquet")) else ("",))
    ]


def read_runs(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read several runs into one table, one after the other; each is called like its file."""
    problems = Problems()
    tables: dict[str, pd.DataFrame] = {}
    for path in paths:
        name = file_name(Path(path))
        if name in tables:
            problems.add(
                path, None, None, f"a second run called {name}", "files of different names"
            )
            continue
        tables[name] = pd.DataFrame()
        with problems.collecting():
            tables[name] = read_run(path)
    problems.refuse()
    return pd.concat(tables.values(), ignore_index=True)


def read_qrels(path: str | Path) -> pd.DataFrame:
    """Read relevance judgements: a table with the columns topic, document and level, in file order.

    The file has four columns (TREC) or three (NTCIR), or is a .gz of that. ``L2`` and ``2`` are
    level 2; levels below 0 (spam, in some TREC tracks) are level 0.
    """
    content = read_bytes(path)
    table = _quick_qrels(content)
    return _slow_qrels(content, path) if table is None else table


def _quick_qrels(content: bytes) -> pd.DataFrame | None:
    """Judgements in which all is in order; None where something may not be."""
    lines = one_blank(content)
    names = {3: _THREE, 4: _FOUR}.get(len(first_line(lines).split()) if lines else 0)
    table = quick_columns(lines, names) if lines and names else None
    if table is None or not table.num_rows:
        return None
    coded = table["level"].dictionary_encode().combine_chunks()
    kinds = coded.dictionary.to_pylist()
    if not all(re.fullmatch(_LEVEL, kind) for kind in kinds):
        return None
    levels = np.array([max(0, int(kind.removeprefix("L"))) for kind in kinds], dtype=np.int64)
    return quick_frame(table, ["topic", "document"], level=levels[coded.indices.to_numpy()])


def _slow_qrels(content: bytes, path: str | Path) -> pd.DataFrame:
    """Judgements in which something is unusual or wrong, which is told by its line."""
    problems, lines = Problems(), text_lines(content, path)
    four = next((len(columns) == 4 for columns in lines[1] if len(columns) in (3, 4)), False)
    names = _FOUR if four else _THREE
    table = text_table(lines, names, f"{len(names)}, as in the lines before", path, problems)
    good = table["level"].str.fullmatch(_LEVEL)
    note_values(table[~good], "level", "a level such as L2 or 2", path, problems)
    wanted = "each document once in the judgements of a topic"
    problems.add_repeats(path, table[good], ["document", "topic"], "document", wanted)
    problems.refuse()
    level = table["level"].str.removeprefix("L").astype(np.int64).clip(lower=0)
    return table[["topic", "document"]].assign(level=level)
