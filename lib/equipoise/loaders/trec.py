"""Runs and relevance judgements of TREC and NTCIR as tidy tables.

A run has six columns a line, ``topic Q0 document rank score tag``; an NTCIR run opens with a line
``<SYSDESC>...</SYSDESC>``. A Parquet file with the columns topic, document, rank and score is a run
too. Qrels have four columns, ``topic iteration document level`` (TREC), or three, ``topic document
L2`` (NTCIR), or ``query-id corpus-id score`` (BEIR); a line of names above them is passed over. A
file that gzip made is unpacked. Columns are separated by white space.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from equipoise.arrays import (
    Floats,
    Integers,
    as_strings,
    by_score,
    numbered,
    ranks,
    single_precision,
    starts,
)
from equipoise.declare import checked
from equipoise.files import (
    BOM,
    Explainer,
    cells,
    head,
    is_parquet,
    parts,
    read_bytes,
    read_source,
    stem,
    told_apart,
)
from equipoise.loaders.white_space import numbers_of, parsed_texts, read_lines
from equipoise.options import RunOrder
from equipoise.problems import Note, Problems, refused, together

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LEVEL = re.compile("L?-?[0-9]{1,4}")
_QRELS_COLUMNS = {
    3: ["topic", "document", "level"],
    4: ["topic", "iteration", "document", "level"],
}
_RUN_COLUMNS = ["topic", "Q0", "document", "rank", "score", "tag"]
_DESCRIPTION = b"<SYSDESC>", b"</SYSDESC>"
_NAMES_OF_LEVEL = ("level", "relevance", "relevancy", "rel", "score", "grade", "label", "judgment")


# --- runs -----------------------------------------------------------------------------------------


def _parse_rank(text: str) -> float:
    if not _INTEGER.fullmatch(text):
        raise ValueError
    return float(text)


def _parse_score(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return float(text)


def _checked_run(
    ids: pd.DataFrame, rank: Floats, score: Floats, columns: Mapping[str, Any], explainer: Explainer
) -> pd.DataFrame:
    """A run of ids, ranks and scores that are what they should be.

    ``columns`` are as the file has them, to be quoted.
    """
    is_whole = np.isfinite(rank) & (rank == np.floor(rank))
    explainer.report(np.flatnonzero(~is_whole), "rank", cells(columns["rank"]), "a whole number")
    is_finite = np.isfinite(score)
    explainer.report(
        np.flatnonzero(~is_finite), "score", cells(columns["score"]), "a finite number"
    )
    explainer.report_repeats(ids, ["document", "topic"], "each document once in a list")
    problems = explainer.problems
    if ids.empty and not problems:
        expected = "topic Q0 document rank score tag"
        problems.add(explainer.name, None, None, "no ranked document", expected)
    problems.refuse()
    return ids.astype("str").assign(rank=rank.astype(np.int64), score=score)


def _without_description(content: bytes, file: Path, problems: Problems) -> bytes:
    """A run with an empty line in the place of the description that an NTCIR run opens with."""
    while content.startswith(BOM):
        content = content.removeprefix(BOM)
    start = len(content) - len(content.lstrip())  # behind empty lines
    opening, closing = _DESCRIPTION
    if not content.startswith(opening, start):
        return content
    end = content.find(b"\n", start)
    if end < 0:
        end = len(content)
    if not content[start:end].rstrip().endswith(closing):
        line = content.count(b"\n", 0, start) + 1
        expected = "</SYSDESC> on the same line"
        problems.add(file, line, None, "<SYSDESC> without its end", expected)
    return content[:start] + content[end:]


def _read_text_run(file: Path) -> tuple[pd.DataFrame, bool]:
    """A run, and whether it is one of NTCIR, which opens with a description."""
    content = read_bytes(file)
    problems = Problems()
    lines = _without_description(content, file, problems)
    is_ntcir = len(lines.lstrip()) < len(content.removeprefix(BOM).lstrip())
    if is_ntcir and not lines.strip():
        problems.add(file, None, None, "no ranked document", " ".join(_RUN_COLUMNS))
        problems.refuse()
    expected = f"six: {' '.join(_RUN_COLUMNS)}"
    table, explainer = read_lines(lines, _RUN_COLUMNS, file, expected)
    explainer.problems.extend(problems)
    if table.num_rows:
        tag = table["tag"][0]
        is_other = pc.not_equal(table["tag"], tag).to_numpy()
        expected = f"{tag.as_py()!r}, as in the first line"
        explainer.report(np.flatnonzero(is_other), "tag", cells(table["tag"]), expected)
    # Ranks are few different texts, scores hardly ever equal ones.
    rank = parsed_texts(table["rank"], _parse_rank)
    score = numbers_of(table["score"], _parse_score)
    ids = table.select(["topic", "document"]).to_pandas()
    return _checked_run(ids, rank, score, table, explainer), is_ntcir


def _read_parquet_run(file: Path) -> pd.DataFrame:
    source = read_source(file)
    table = source.columns
    names = ["topic", "document", "rank", "score"]
    for name in pd.Index(names).difference(table.columns):
        source.problems.add(file, None, name, "no such column", "the column")
    source.problems.refuse()
    for name in ("topic", "document"):
        # A column of objects may hold lists, or bytes, which no run has as an id.
        is_id = table[name].notna()
        if table[name].dtype == object:
            is_id &= table[name].map(_is_scalar)
        source.report(np.flatnonzero(~is_id), name, cells(table[name]), "an id")
    if any(table[name].dtype == object for name in ("topic", "document")):
        source.problems.refuse()  # lists and the like cannot be compared
    rank = _numbers_of_parquet(table["rank"], _INTEGER)
    score = _numbers_of_parquet(table["score"], _NUMBER)
    return _checked_run(table[["topic", "document"]], rank, score, table, source)


def _is_scalar(value: object) -> bool:
    return pd.api.types.is_scalar(value) and not isinstance(value, bytes)


def _numbers_of_parquet(values: pd.Series, pattern: re.Pattern[str]) -> Floats:
    """Numbers of a column of a Parquet file, NaN where it holds none: numbers, or text of them."""
    if pd.api.types.is_string_dtype(values):
        values = values.where(values.str.fullmatch(pattern.pattern), "nan")
        return values.to_numpy(dtype=np.float64)
    return pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)


def _ordered(run: pd.DataFrame, order: str, file: Path) -> pd.DataFrame:
    """A run list by list in an order, its ranks those of that order; says what that changes."""
    lists, topics = numbered(run["topic"])
    as_it_stands = np.argsort(lists, kind="stable")
    rows = as_it_stands
    if order == "score":
        _refuse_large_scores(run, file)
        rows = by_score(lists, run["document"], run["score"])
    elif order == "rank":
        rows = np.lexsort((run["rank"], lists))
    lists = lists[rows]
    ordered = run.iloc[rows].reset_index(drop=True)
    note = _note_on_order(order, run.iloc[as_it_stands], lists, lists[rows != as_it_stands])
    if note:
        warnings.warn(f"{file}: of {len(topics):,} lists {note}", Note, 4)
    return ordered.assign(rank=ranks(starts(lists), len(lists)) + 1)


def _refuse_large_scores(run: pd.DataFrame, file: Path) -> None:
    large = run[run["score"].abs() > np.finfo(np.float32).max]
    if large.empty:
        return
    topic, document, score = large[["topic", "document", "score"]].iloc[0]
    problem = f"{len(large)} scores such as {score:g}, of {document} for topic {topic}"
    expected = (
        "scores up to 3.4e+38, for trec_eval orders them in single precision (or --order file)"
    )
    raise refused(file, problem, expected, column="score")


def _note_on_order(order: str, run: pd.DataFrame, lists: Integers, moved: Integers) -> str:
    """Of how many lists an order moves rows, or else rows contradict themselves; maybe nothing.

    ``run``: list by list, its rows as they stand. ``moved``: the lists of rows that do not.
    """
    within = np.diff(lists) == 0
    n_moved = len(np.unique(moved))
    if order == "file":
        scores_rise, ranks_fall = np.diff(run["score"]) > 0, np.diff(run["rank"]) < 0
        n_other = len(np.unique(lists[1:][(scores_rise | ranks_fall) & within]))
        if not n_other:
            return ""
        return f"{n_other:,} have other scores or ranks than rows, and are taken as they stand"
    if not n_moved:
        return ""
    if order == "rank":
        return f"{n_moved:,} are put in the order of their ranks"
    scores_rise = np.diff(single_precision(run["score"])) > 0
    n_rising = len(np.unique(lists[1:][scores_rise & within]))
    note = f"{n_moved:,} are put in the order of their scores, as trec_eval does"
    if n_moved > n_rising:
        note += f" ({n_moved - n_rising:,} of them by id among equal scores alone)"
    return f"{note}; --order file takes rows as they stand"


@checked
def read_run(
    path: str | Path,
    name: str | None = None,
    *,
    order: RunOrder | None = "auto",
    rename: Callable[[pd.Series], pd.Series] | None = None,
) -> pd.DataFrame:
    """Read a run: a table with the columns run, topic, document, rank and score.

    ``name`` is what to call the run, by default its tag, in the last column, or the file's name
    where there is none. Rows come list by list in their order, and ``rank`` is the place in it,
    from 1; without an order, rows and ranks are those of the file. Where the order is not that of
    the file, a note says of how many lists. ``rename``: from the ids of the documents to those by
    which they are ordered and known.
    """
    file = Path(path)
    run = run_name(file) if name is None else name
    if is_parquet(file):
        table, is_ntcir = _read_parquet_run(file), False
    else:
        table, is_ntcir = _read_text_run(file)
    if rename is not None:
        table["document"] = rename(table["document"])
    if order == "auto":
        order = "file" if is_ntcir else "score"
    if order is not None:
        table = _ordered(table, order, file)
    table.insert(0, "run", as_strings(run, len(table)))
    return table


def run_name(path: str | Path) -> str:
    """What a run is called: its tag, or the file's name without its ending where it has none."""
    if not is_parquet(path):
        columns = first_line(path).split()
        if len(columns) == len(_RUN_COLUMNS):
            return columns[-1]
    return stem(path)


def first_line(path: str | Path) -> str:
    """The first line of a text file that holds something and is no description, if any."""
    opening = _DESCRIPTION[0].decode()
    for line in head(path).decode("utf-8-sig", "replace").splitlines():
        stripped = line.strip()
        if stripped and not stripped.startswith(opening):
            return stripped
    return ""


def run_files(path: str | Path) -> list[Path]:
    """The files of a run: one, or of a folder those of Parquet, or all where there are none."""
    folder = Path(path)
    if not folder.is_dir():
        return [folder]
    has_parquet = any(folder.rglob("*.parquet"))
    names = parts(folder, (".parquet",) if has_parquet else ("",))
    return [folder / name for name in names]


def run_names(paths: Sequence[str | Path]) -> list[str]:
    """What runs are called: by their tags; those that share one, by their paths."""
    return told_apart(list(map(run_name, paths)), paths)


def read_runs(
    paths: str | Path | Iterable[str | Path], *, order: RunOrder | None = "auto"
) -> pd.DataFrame:
    """Read several runs into one table, one after the other, each called as `run_names` says.

    ``paths``: files, or one file or folder of them. ``order``: as `read_run` takes it.
    """
    if isinstance(paths, (str, Path)):
        paths = run_files(paths)
    files = list(map(Path, paths))
    names = run_names(files)
    calls = []
    for file, name in zip(files, names, strict=True):
        calls.append(partial(read_run, file, name, order=order))
    runs = together(calls)
    return pd.concat(runs, ignore_index=True)


# --- judgements -----------------------------------------------------------------------------------


def _parse_level(text: str) -> float:
    if not _LEVEL.fullmatch(text):
        raise ValueError
    return max(0, int(text.removeprefix("L")))


def _without_header(content: bytes) -> bytes:
    """Qrels with an empty line in the place of one that names the columns, the level last."""
    begin = len(content) - len(content.removeprefix(BOM).lstrip())
    end = content.find(b"\n", begin)
    if end < 0:
        return content
    names = content[begin:end].decode("utf-8", "replace").lower().replace("#", " ").split()
    if not names or names[-1] not in _NAMES_OF_LEVEL:
        return content
    return content[:begin] + content[end:]


def _n_columns(content: bytes) -> int:
    """How many columns qrels have: those of the first line with three or four of them."""
    for line in io.BytesIO(content):
        n_columns = len(line.decode("utf-8", "replace").split())
        if n_columns in _QRELS_COLUMNS:
            return n_columns
    return 3


def _is_run(content: bytes) -> bool:
    """Whether the first line is that of a run, whose other lines need no complaint of their own."""
    words = io.BytesIO(content).readline().split()
    return len(words) == 6 and words[1].upper() == b"Q0"


def read_qrels(path: str | Path) -> pd.DataFrame:
    """Read relevance judgements: a table with the columns topic, document and level, in file order.

    The file has four columns (TREC) or three (NTCIR, BEIR), or is a .gz of that; its first line may
    name them. ``L2`` and ``2`` are level 2; levels below 0 (spam, in some TREC tracks) are level 0.
    """
    content = _without_header(read_bytes(path))
    if _is_run(content):
        problem = "a run: topic Q0 document rank score tag"
        raise refused(path, problem, "judgements: topic 0 document level", 1)
    columns = _QRELS_COLUMNS[_n_columns(content)]
    expected = f"{len(columns)}, as in the lines before"
    table, explainer = read_lines(content, columns, path, expected)
    level = parsed_texts(table["level"], _parse_level)
    is_unknown = np.isnan(level)
    expected = "a level such as L2 or 2"
    explainer.report(np.flatnonzero(is_unknown), "level", cells(table["level"]), expected)
    ids = table.select(["topic", "document"]).to_pandas().astype("str")
    expected = "each document once in the judgements of a topic"
    explainer.report_repeats(ids, ["document", "topic"], expected)
    explainer.problems.refuse()
    return ids.assign(level=level.astype(np.int64))
