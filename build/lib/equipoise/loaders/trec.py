"""Runs and relevance judgements of TREC and NTCIR as tidy tables.

A run has six columns a line, ``topic Q0 document rank score tag``; an NTCIR run opens with a line
``<SYSDESC>...</SYSDESC>``. A Parquet file with the columns topic, document, rank and score is a run too. Qrels have
four columns, ``topic iteration document level`` (TREC), or three, ``topic document L2`` (NTCIR). A file whose name ends
in ``.gz`` is decompressed. Columns are separated by white space.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet

from equipoise.files import read_text
from equipoise.problems import InputError, Problem

LARGEST_FILE = 2**31
"""Bytes of decompressed text beyond which a file is refused."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_LEVEL = re.compile(r"L?-?[0-9]{1,4}")


def _decompressed(path: Path) -> str:
    """The text of a .gz file, refused where it is torn, too long or not UTF-8."""
    try:
        with gzip.open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no whole gzip file"
        raise InputError([Problem(str(path), None, None, reason, "a readable .gz file")]) from None
    if len(content) > LARGEST_FILE:
        raise InputError([Problem(str(path), None, None, f"more than {LARGEST_FILE} bytes", "a smaller file")])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError([Problem(str(path), line, None, "bytes that are not UTF-8", "UTF-8 text")]) from None


def text_lines(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a text file, plain or .gz, as line number and columns; blank lines are left out.

    ``path``: the file. Yields Line number from 1, and the columns between white space.
    """
    file = Path(path)
    text = _decompressed(file) if file.suffix == ".gz" else read_text(file)
    for number, line in enumerate(text.split("\n"), start=1):
        columns = line.split()
        if columns:
            yield number, columns


def _repeated(rows: pd.DataFrame, columns: Sequence[str], file: str, what: str) -> list[Problem]:
    again = rows[rows.duplicated(list(columns))]
    return [
        Problem(file, int(line), "document", f"{document} again for topic {topic}", f"each document once in {what}")
        for line, topic, document in zip(again["line"], again["topic"], again["document"], strict=True)
    ]


def _read_parquet_run(file: Path, label: str) -> pd.DataFrame:
    """A run from a Parquet file, checked as a text file is; problems name its rows."""
    wanted = ["topic", "document", "rank", "score"]
    try:
        table = pyarrow.parquet.read_table(file).to_pandas(ignore_metadata=True)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError([Problem(str(file), None, None, str(error).splitlines()[0], "a Parquet file")]) from None
    lacking = [Problem(str(file), None, name, "no such column", "the column") for name in wanted if name not in table]
    if lacking or table.empty:
        raise InputError(lacking or [Problem(str(file), None, None, "no ranked document", ", ".join(wanted))])
    table = table[wanted].assign(line=np.arange(1, len(table) + 1))
    rank, score = (pd.to_numeric(table[name], errors="coerce").to_numpy(dtype=np.float64) for name in ("rank", "score"))
    faults = {
        "topic": (table["topic"].isna().to_numpy(), "an id"),
        "document": (table["document"].isna().to_numpy(), "an id"),
        "rank": (~np.isfinite(rank) | (rank != np.floor(rank)), "a whole number"),
        "score": (~np.isfinite(score), "a finite number"),
    }
    problems = [
        Problem(str(file), int(row) + 1, name, repr(table[name].iloc[row]), what)
        for name, (wrong, what) in faults.items()
        for row in np.flatnonzero(wrong)
    ]
    problems += _repeated(table, ["topic", "document"], str(file), "a list")
    if problems:
        raise InputError(problems)
    ids = {name: table[name].astype("str") for name in ("topic", "document")}
    run = pd.DataFrame({"run": label, **ids, "rank": rank.astype(np.int64), "score": score})
    return run.astype({"run": "str"})


def _label(file: Path) -> str:
    return file.name.removesuffix(".gz").removesuffix(".parquet")


def _is_parquet(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(4) == b"PAR1"
    except OSError:
        return False  # what is wrong is said when the file is read as text


def read_run(path: str | Path, name: str | None = None) -> pd.DataFrame:
    """Read a run.

    ``path``: the file; ``.gz`` and Parquet too. ``name``: what to call the run; the default is the file's name
    without ``.gz`` or ``.parquet``. The tag in the last column is not used, for files of different runs often share
    it. Returns DataFrame, columns run, topic, document, rank, score: In file order; rank is the stated one.
    """
    file = Path(path)
    label = name if name is not None else _label(file)
    if _is_parquet(file):
        return _read_parquet_run(file, label)
    problems: list[Problem] = []
    rows: list[tuple[int, str, str, int, float]] = []
    tag: str | None = None
    begun = False
    for line, columns in text_lines(file):
        if not begun and columns[0].startswith("<SYSDESC>"):
            begun = True
            if not columns[-1].endswith("</SYSDESC>"):
                problems.append(
                    Problem(str(file), line, None, "<SYSDESC> without its end", "</SYSDESC> on the same line")
                )
            continue
        begun = True
        if len(columns) != 6:
            wanted = "six: topic Q0 document rank score tag"
            problems.append(Problem(str(file), line, None, f"{len(columns)} columns", wanted))
            continue
        topic, _, document, rank, score, own_tag = columns
        tag = own_tag if tag is None else tag
        good_rank = _INTEGER.fullmatch(rank)
        good_score = _NUMBER.fullmatch(score) and np.isfinite(float(score))
        if not good_rank:
            problems.append(Problem(str(file), line, "rank", repr(rank), "a whole number"))
        if not good_score:
            problems.append(Problem(str(file), line, "score", repr(score), "a finite number"))
        if own_tag != tag:
            problems.append(Problem(str(file), line, "tag", repr(own_tag), f"{tag!r}, as in the first line"))
        if good_rank and good_score:
            rows.append((line, topic, document, int(rank), float(score)))
    table = pd.DataFrame(rows, columns=["line", "topic", "document", "rank", "score"])
    problems += _repeated(table, ["topic", "document"], str(file), "a list")
    if not rows and not problems:
        problems.append(Problem(str(file), None, None, "no ranked document", "topic Q0 document rank score tag"))
    if problems:
        raise InputError(problems)
    table.insert(1, "run", label)
    return table.drop(columns="line").astype({"run": "str", "topic": "str", "document": "str"})


def read_runs(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read several runs into one table.

    ``paths``: the files; each run is called like its file. Returns DataFrame, columns run, topic, document, rank,
    score: The runs one after the other.
    """
    problems: list[Problem] = []
    tables: dict[str, pd.DataFrame] = {}
    for path in paths:
        name = _label(Path(path))
        if name in tables:
            problems.append(Problem(str(path), None, None, f"a second run called {name}", "files of different names"))
            continue
        tables[name] = pd.DataFrame()
        try:
            tables[name] = read_run(path)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return pd.concat(tables.values(), ignore_index=True)


def read_qrels(path: str | Path) -> pd.DataFrame:
    """Read relevance judgements, in four columns (TREC) or three (NTCIR).

    ``path``: the file; ``.gz`` too. Returns DataFrame, columns topic, document, level: In file order. ``L2`` and
    ``2`` are level 2; levels below 0 (spam, in some TREC tracks) are level 0.
    """
    problems: list[Problem] = []
    rows: list[tuple[int, str, str, int]] = []
    width = 0
    for line, columns in text_lines(path):
        if not width and len(columns) in (3, 4):
            width = len(columns)
        if len(columns) not in (3, 4) or len(columns) != width:
            wanted = f"{width}, as in the lines before" if width else "topic document L2, or topic 0 document 2"
            problems.append(Problem(str(path), line, None, f"{len(columns)} columns", wanted))
            continue
        level = columns[-1]
        if not _LEVEL.fullmatch(level):
            problems.append(Problem(str(path), line, "level", repr(level), "a level such as L2 or 2"))
            continue
        rows.append((line, columns[0], columns[-2], max(0, int(level.removeprefix("L")))))
    table = pd.DataFrame(rows, columns=["line", "topic", "document", "level"])
    problems += _repeated(table, ["topic", "document"], str(path), "the judgements of a topic")
    if problems:
        raise InputError(problems)
    return table.drop(columns="line").astype({"topic": "str", "document": "str"})
