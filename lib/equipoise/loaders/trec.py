"""Runs and relevance judgements of TREC and NTCIR as tidy tables.

A run has six columns, ``topic Q0 document rank score tag``; an NTCIR run opens with a line
``<SYSDESC>...</SYSDESC>``. A Parquet file with the columns topic, document and score is a run too.
Qrels have four columns, ``topic iteration document level`` (TREC), or three, ``topic document L2``
(NTCIR, BEIR); a first line of names is left out. A file that gzip made is unpacked.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from equipoise.arrays import Floats, Integers, by_score, ranks, starts
from equipoise.declared import checked
from equipoise.errors import Note, excerpt, input_error
from equipoise.loaders.columns import (
    SKIPPED,
    WORDS,
    ColumnFile,
    codes,
    distinct_words,
    joined_with_categories,
)
from equipoise.options import RunOrder
from equipoise.readers import names_of_files, stem

_RUN = {
    "topic": WORDS,
    "Q0": SKIPPED,
    "document": pa.string(),
    "rank": SKIPPED,
    "score": pa.float64(),
    "tag": WORDS,
}
_RUN_COLUMNS = " ".join(_RUN)
_TREC_QRELS = {"topic": WORDS, "iteration": SKIPPED, "document": pa.string(), "level": WORDS}
_NTCIR_QRELS = {"topic": WORDS, "document": pa.string(), "level": WORDS}
_LEVEL = re.compile("L?-?[0-9]{1,4}")
_NAMES_OF_LEVEL = ("level", "relevance", "relevancy", "rel", "score", "grade", "label", "judgment")


# --- runs -----------------------------------------------------------------------------------------


@checked
def read_run(
    path: str | Path,
    name: str | None = None,
    *,
    order: RunOrder | None = "auto",
    depth: int | None = None,
    rename: Callable[[pd.Series], pd.Series] | None = None,
) -> pd.DataFrame:
    """Read a run: a table with the columns run, topic, document, rank and score.

    ``name`` is what to call the run, by default its tag, or the file's name where there is none.
    Rows come ranking by ranking in their order, and ``rank`` counts from 1; without an order, rows
    and ranks are those of the file. The whole file is checked; with ``depth`` only the first ranks
    are returned. ``rename`` maps the ids of the documents to those by which they are ordered.
    """
    file = ColumnFile(path)
    is_ntcir = file.head.lstrip().startswith(b"<SYSDESC>")
    if file.head.startswith(b"PAR1"):
        table = _parquet_run(file)
    else:
        file.skip = 1 if is_ntcir else 0
        types = _RUN if order is not None else {**_RUN, "rank": pa.float64()}
        table = file.read(types, _RUN_COLUMNS)
    _check_run(table, file)
    lists, score = codes(table["topic"]), table["score"].to_numpy()
    topics, texts = distinct_words(table["topic"]).to_pylist(), table["document"]
    rank: Any = table["rank"].to_numpy().astype(np.int64) if order is None else None
    del table
    pa.default_memory_pool().release_unused()  # else Arrow keeps what it read the file with
    document = texts.to_pandas().astype("str")
    del texts
    if rename is not None:
        document = rename(document)
    run = pd.Categorical.from_codes(np.zeros(len(lists), np.int8), [name or _name(file)])
    # Names that come in many rows are categories: texts would take most of the memory.
    topic = pd.Categorical.from_codes(lists, topics).reorder_categories(sorted(topics))
    columns = {"run": run, "topic": topic, "document": document, "score": score}
    run_table = pd.DataFrame(columns, copy=False)
    if order is not None:
        if order == "auto":
            order = "file" if is_ntcir else "score"
        rows = _in_order(lists, document, score, order, file.path)
        if (rows[1:] < rows[:-1]).any():
            run_table = run_table.take(rows).reset_index(drop=True)
            lists = lists[rows]
        del rows
        rank = ranks(starts(lists), len(lists))
        rank += 1
    run_table.insert(3, "rank", rank)
    return run_table if depth is None else run_table[rank <= depth].reset_index(drop=True)


def _parquet_run(file: ColumnFile) -> Any:
    from pyarrow import parquet  # costs 30 ms, and most files are text

    try:
        table = parquet.read_table(file.path, columns=["topic", "document", "score"])
        topic = table["topic"].cast(pa.string()).dictionary_encode()
        document, score = table["document"].cast(pa.string()), table["score"].cast(pa.float64())
        columns = {"topic": topic, "document": document, "score": score, "rank": score}
        return pa.table(columns).unify_dictionaries()
    except (pa.ArrowException, OSError) as error:
        problem = str(error).splitlines()[0]
        raise input_error(file.path, "Parquet with topic, document, score", problem) from None


def _check_run(table: Any, file: ColumnFile) -> None:
    """Scores are finite, there is one tag, and each document is once in a ranking."""
    score = table["score"].to_numpy()
    if not np.isfinite(score).all():
        row = int(np.flatnonzero(~np.isfinite(score))[0])
        raise file.error(row, "score", "a finite number", score[row])
    if "tag" in table.column_names and len(distinct_words(table["tag"])) > 1:
        tags = codes(table["tag"])
        row = int(np.flatnonzero(tags != tags[0])[0])
        first, other = table["tag"][0].as_py(), table["tag"][row].as_py()
        raise file.error(row, "tag", f"{excerpt(first)}, as in the first line", other)
    file.check_once(table, "unique in the ranking of a topic")


def _in_order(
    lists: Integers, document: pd.Series, score: Floats, order: RunOrder, file: Path
) -> Integers:
    """Rows ranking by ranking, each by score or as in the file; a note says what changes."""
    rows = by_score(lists, document, score) if order == "score" else None
    if rows is not None and (rows[1:] > rows[:-1]).all():
        return rows
    in_file = np.argsort(lists, kind="stable")
    if rows is None:
        return in_file
    n_sorted = len(np.unique(lists[rows[rows != in_file]]))
    if n_sorted:
        warnings.warn(
            f"{file}: {n_sorted:,} of {len(np.unique(lists)):,} rankings were not in the order of "
            "their "
            "scores and are sorted as in trec_eval; --order file keeps the order of the file",
            Note,
            stacklevel=4,
        )
    return rows


def _name(file: ColumnFile) -> str:
    columns = file.first_line.split()
    return columns[-1] if len(columns) == len(_RUN) else stem(file.path)


def run_name(path: str | Path) -> str:
    """What a run is called: its tag, or the file's name without its ending where it has none."""
    return _name(ColumnFile(path))


def run_files(path: str | Path) -> list[Path]:
    """The files of a run: one, or all those of a folder, in the order of their names."""
    folder = Path(path)
    if not folder.is_dir():
        return [folder]
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.startswith((".", "_"))
    ]
    if not files:
        raise input_error(folder, "a folder with files", "an empty one")
    return files


def run_names(paths: Sequence[str | Path]) -> list[str]:
    """Return the names of runs, which are their tags, or their paths if they share a tag."""
    return names_of_files(list(map(run_name, paths)), paths)


def read_runs(
    paths: str | Path | Iterable[str | Path],
    *,
    order: RunOrder | None = "auto",
    depth: int | None = None,
) -> pd.DataFrame:
    """Read several runs into one table, one after the other, each called as `run_names` says.

    ``paths``: files, or one file or folder of them. ``order``, ``depth``: as `read_run` takes
    them.
    """
    files = run_files(paths) if isinstance(paths, (str, Path)) else list(map(Path, paths))
    names = run_names(files)
    runs = [
        read_run(file, name, order=order, depth=depth)
        for file, name in zip(files, names, strict=True)
    ]
    return joined_with_categories(runs)


# --- judgements -----------------------------------------------------------------------------------


def read_qrels(path: str | Path) -> pd.DataFrame:
    """Read relevance judgements: a table with the columns topic, document and level, in file order.

    The file has four columns (TREC) or three (NTCIR, BEIR); its first line may name them. ``L2``
    and ``2`` are level 2; levels below 0 (spam, in some TREC tracks) are level 0.
    """
    file = ColumnFile(path)
    fields = file.first_line.lower().replace("#", " ").split()
    if len(fields) == len(_RUN) and fields[1] == "q0":
        raise input_error(path, "judgements, topic 0 document level", "a run", 1)
    file.skip = 1 if fields and fields[-1] in _NAMES_OF_LEVEL else 0
    types = _NTCIR_QRELS if len(file.first_line.split()) == 3 else _TREC_QRELS
    table = file.read(types, " ".join(types))
    numbers = codes(table["level"])
    levels = np.zeros(len(distinct_words(table["level"])), dtype=np.int64)
    for code, text in enumerate(distinct_words(table["level"]).to_pylist()):
        if not _LEVEL.fullmatch(text):
            row = int(np.flatnonzero(numbers == code)[0])
            raise file.error(row, "level", "a level such as L2 or 2", text)
        levels[code] = max(0, int(text.removeprefix("L")))
    file.check_once(table, "unique in the judgements of a topic")
    ids = table.select(["topic", "document"]).to_pandas().astype("str")
    return ids.assign(level=levels[numbers])
