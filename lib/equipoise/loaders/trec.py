"""Runs and relevance judgements of TREC and NTCIR as tidy tables.

A run has six columns a line, ``topic Q0 document rank score tag``; an NTCIR run opens with a line
``<SYSDESC>...</SYSDESC>``. A Parquet file with the columns topic, document, rank and score is a run too. Qrels have
four columns, ``topic iteration document level`` (TREC), or three, ``topic document L2`` (NTCIR). A file that gzip made
is unpacked. Columns are separated by white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from equipoise.arrays import Floats, Integers
from equipoise.files import is_parquet, read_source, read_text, unpacked_name
from equipoise.problems import Problems, shown

_INTEGER = r"[+-]?[0-9]{1,9}"
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"


def text_lines(path: str | Path) -> tuple[Integers, Any]:
    """Numbers of the lines of a text file, plain or .gz, that are not blank, and an Arrow list of columns for each."""
    lines = pc.utf8_trim_whitespace(pa.array(read_text(path).split("\n"), pa.large_string()))
    numbers = np.flatnonzero(pc.not_equal(lines, ""))
    return numbers + 1, pc.utf8_split_whitespace(lines.take(numbers))


def text_table(
    lines: tuple[Integers, Any],
    names: Sequence[str],
    wanted: str,
    file: object,
    problems: Problems,
    column: str | None = None,
) -> pd.DataFrame:
    """Lines as a table of texts with their numbers in the column ``line``; collects those of another length."""
    numbers, fields = lines
    widths = pc.list_value_length(fields).to_numpy()
    good = widths == len(names)
    for number, width in zip(numbers[~good], widths[~good], strict=True):
        problems.add(file, int(number), column, f"{width} columns", wanted)
    fields = fields.filter(pa.array(good))
    texts = {name: pc.list_element(fields, index).to_pandas() for index, name in enumerate(names)}
    return pd.DataFrame(texts).astype("str").assign(line=numbers[good])


def note_values(rows: pd.DataFrame, column: str, wanted: str, file: object, problems: Problems) -> None:
    """Collect lines whose value in a column is not what is wanted."""
    for line, value in rows[["line", column]].itertuples(index=False):
        problems.add(file, int(line), column, shown(value), wanted)


def _numbers(values: pd.Series, pattern: str) -> Floats:
    """Numbers of a column, NaN where it holds none: text of the pattern, or what a Parquet file has."""
    if not pd.api.types.is_string_dtype(values):
        return pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)
    return values.where(values.str.fullmatch(pattern), "nan").to_numpy(dtype=np.float64)


def _text_run(file: Path, problems: Problems) -> pd.DataFrame:
    numbers, fields = text_lines(file)
    opening = fields[0].as_py() if len(fields) else [""]
    if opening[0].startswith("<SYSDESC>"):
        if not opening[-1].endswith("</SYSDESC>"):
            problems.add(file, int(numbers[0]), None, "<SYSDESC> without its end", "</SYSDESC> on the same line")
        numbers, fields = numbers[1:], fields[1:]
    names = ["topic", "Q0", "document", "rank", "score", "tag"]
    table = text_table((numbers, fields), names, f"six: {' '.join(names)}", file, problems)
    first = table["tag"].iloc[0] if len(table) else ""
    note_values(table[table["tag"] != first], "tag", f"{first!r}, as in the first line", file, problems)
    return table


def _parquet_run(file: Path, problems: Problems) -> pd.DataFrame:
    table = read_source(file).columns
    for name in pd.Index(["topic", "document", "rank", "score"]).difference(table.columns):
        problems.add(file, None, name, "no such column", "the column")
    problems.refuse()
    table = table.assign(line=np.arange(1, len(table) + 1))
    for name in ("topic", "document"):
        single = table[name].map(lambda value: pd.api.types.is_scalar(value) and not isinstance(value, bytes))
        note_values(table[~single], name, "an id", file, problems)
    problems.refuse()
    return table


def _name(file: Path) -> str:
    return re.sub(r"\.parquet\Z", "", unpacked_name(file), flags=re.IGNORECASE)


def read_run(path: str | Path, name: str | None = None) -> pd.DataFrame:
    """Read a run: a table with the columns run, topic, document, rank and score, in file order.

    ``name`` is what to call the run, by default the file's name without ``.gz`` or ``.parquet``. The tag in the last
    column is not used, for files of different runs often share it. ``rank`` is the stated one.
    """
    file, problems = Path(path), Problems()
    table = _parquet_run(file, problems) if is_parquet(file) else _text_run(file, problems)
    rank, score = _numbers(table["rank"], _INTEGER), _numbers(table["score"], _NUMBER)
    for column, wrong, wanted in (
        ("topic", table["topic"].isna(), "an id"),
        ("document", table["document"].isna(), "an id"),
        ("rank", ~np.isfinite(rank) | (rank != np.floor(rank)), "a whole number"),
        ("score", ~np.isfinite(score), "a finite number"),
    ):
        note_values(table[wrong], column, wanted, file, problems)
    problems.add_repeats(file, table, ["document", "topic"], "document", "each document once in a list")
    if table.empty and not problems:
        problems.add(file, None, None, "no ranked document", "topic Q0 document rank score tag")
    problems.refuse()
    ids = {column: table[column].astype("str") for column in ("topic", "document")}
    run = pd.DataFrame({"run": _name(file) if name is None else name, **ids})
    return run.astype("str").assign(rank=rank.astype(np.int64), score=score)


def read_runs(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read several runs into one table, one after the other; each is called like its file."""
    problems = Problems()
    tables: dict[str, pd.DataFrame] = {}
    for path in paths:
        name = _name(Path(path))
        if name in tables:
            problems.add(path, None, None, f"a second run called {name}", "files of different names")
            continue
        tables[name] = pd.DataFrame()
        with problems.collecting():
            tables[name] = read_run(path)
    problems.refuse()
    return pd.concat(tables.values(), ignore_index=True)


def read_qrels(path: str | Path) -> pd.DataFrame:
    """Read relevance judgements: a table with the columns topic, document and level, in file order.

    The file has four columns (TREC) or three (NTCIR), or is a .gz of that. ``L2`` and ``2`` are level 2; levels below 0
    (spam, in some TREC tracks) are level 0.
    """
    problems, lines = Problems(), text_lines(path)
    four = next((len(columns) == 4 for columns in lines[1] if len(columns) in (3, 4)), False)
    names = ["topic", *(["iteration"] if four else []), "document", "level"]
    table = text_table(lines, names, f"{len(names)}, as in the lines before", path, problems)
    good = table["level"].str.fullmatch("L?-?[0-9]{1,4}")
    note_values(table[~good], "level", "a level such as L2 or 2", path, problems)
    wanted = "each document once in the judgements of a topic"
    problems.add_repeats(path, table[good], ["document", "topic"], "document", wanted)
    problems.refuse()
    level = table["level"].str.removeprefix("L").astype(np.int64).clip(lower=0)
    return table[["topic", "document"]].assign(level=level)
