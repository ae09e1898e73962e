"""Run tasks here or on a Dask cluster, and so score folders of files that would not fit into memory.

A folder of Parquet holds a nugget table, a conversation being in one file only. Each file is read,
checked, scored and written by itself, so memory stays bounded by the largest, whatever their
number, and, since a score depends on its conversation alone, to the last bit, the result is the
same wherever and in whatever order the files are scored. The output folder appears when everything
is done; a task that a dying worker leaves behind is run again elsewhere.

Other folders hold nuggets as CSV or JSON Lines, or answers (JSON Lines or Parquet), of which the
scores come back.

A folder of documents is counted file by file: a worker holds some MB of text at a time, and what
comes back, joined in the order of the files, are ids, lengths and counts of the terms.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from equipoise.attributes import AttributeSet
from equipoise.files import parts
from equipoise.nuggets import read_nuggets
from equipoise.problems import InputError, Note, Problems, shown, together
from equipoise_compendium.writing import new_folder, write_files

_TRIM, _MAP = -1, -3
"""What mallopt calls the free bytes at the top that are given back, and the bytes from which memory is mapped."""

Scorer = Literal["gfrc", "gfrc2"]
"""Functions that score a nugget table, each in the module of measures of its own name."""


@contextmanager
def cluster(address: str | None, *, single_threaded: bool = False) -> Iterator[Executor | None]:
    """An executor on the Dask scheduler at an address, such as ``tcp://127.0.0.1:8786``; None without an address.

    The workers need this library, and the same files under the same paths. Notebooks want them
    ``single_threaded``.
    """
    if address is None:
        yield None
        return
    form = re.fullmatch(
        r"(?:tcp://)?(?:[\w.-]+|\[[\da-fA-F:]+\]):(\d{1,5})|inproc://[\w.]+/\d+/\d+", address
    )
    if form is None or not 0 < int(form[1] or 1) < 2**16:
        raise ValueError(
            f"a cluster's address is one such as tcp://127.0.0.1:8786, found {shown(address)}"
        )
    try:
        client = import_module("distributed").Client(address, timeout=10)
    except ModuleNotFoundError:
        raise ValueError(
            "a cluster needs Dask: install equipoise[cluster], or the package distributed"
        ) from None
    except (OSError, TimeoutError):
        raise ValueError(f"no Dask scheduler of a cluster answers at {address}") from None
    with client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        if not workers:
            raise ValueError(f"the Dask scheduler at {address} has no workers")
        threads = max(worker["nthreads"] for worker in workers)
        if single_threaded and threads > 1:
            raise ValueError(
                f"a worker has {threads} threads; notebooks need workers with one (--nthreads 1)"
            )
        yield client.get_executor(pure=False)


def _in_worker(function: Callable[..., Any], *task: Any) -> Any:
    """Run a task in a worker that keeps memory for its next arrays.

    Dask's workers give freed memory back at once, whence every array comes as new pages: twice the
    processor time.
    """
    if "MALLOC_TRIM_THRESHOLD_" in os.environ:
        with suppress(AttributeError, OSError, TypeError):  # no C library of GNU
            allocator = ctypes.CDLL(None)
            allocator.mallopt(_TRIM, 2**28)
            allocator.mallopt(_MAP, 2**25)
    return function(*task)


def run_each(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    executor: Executor | None,
    unit: str,
) -> list[Any]:
    """Results of a function of a module for each task's arguments, in their order: in this process, or on an executor.

    The problems of all inputs are raised together. A progress bar on standard error counts the
    ``unit``.
    """
    bar: dict[str, Any] = {"total": len(tasks), "unit": unit, "file": sys.stderr, "disable": None}
    if executor is None:
        return together(partial(function, *task) for task in tqdm(tasks, **bar))
    futures = [executor.submit(_in_worker, function, *task) for task in tasks]
    for future in tqdm(as_completed(futures), **bar):
        if not isinstance(future.exception(), InputError):
            future.result()  # the first that fails otherwise ends it
    return together(future.result for future in futures)


def _count_part(source: str, terms: Sequence[str], tokens: Any, held: Any) -> Any:
    """Counts of a file of documents, of those held if not of all."""
    from equipoise.loaders.documents import document_tables
    from equipoise.measures.ranking_bias.terms import (
        count_terms,
    )  # with SciPy, which other scores do without

    tables = tqdm(document_tables(source), unit="chunk", file=sys.stderr, disable=None)
    kept = tables if held is None else (table[table["document"].isin(held)] for table in tables)
    return count_terms(kept, terms, tokens=tokens)


def count_parts(
    source: str | Path,
    terms: Sequence[str],
    tokens: Any,
    held: Any = None,
    executor: Executor | None = None,
) -> Any:
    """`count_terms` of a collection, a task for each file of a folder; ``held``: the documents to count, if not all."""
    from equipoise.loaders.documents import document_files
    from equipoise.measures.ranking_bias.terms import joined

    files = document_files(source) if Path(source).is_dir() else [source]
    tasks = [(str(file), tuple(terms), tokens, held) for file in files]
    if len(tasks) == 1 and executor is None:
        return _count_part(*tasks[0])
    return joined(run_each(_count_part, tasks, executor, "file"))


def _score_part(
    source: Path, target: Path, measure: Scorer, sets: Any, select: Any, options: Any
) -> Any:
    """Score a file, and return a 64-bit hash for each of its conversations."""
    nuggets = read_nuggets(source, sets, select)
    score = getattr(import_module(f"equipoise.measures.{measure}"), measure)
    scores = score(nuggets, {name: sets[name] for name in select}, **options)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_files({target: scores})  # whole or not at all, even if another worker does the same
    return pd.util.hash_pandas_object(nuggets.conversations, index=False).to_numpy()


def score_parts(
    source: str | Path,
    output: str | Path,
    measure: Scorer,
    attributes: Mapping[str, AttributeSet],
    select: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
) -> int:
    """Score a folder of nugget tables into a new folder of the same layout, and count the conversations.

    ``attributes`` are the sets that the files have columns for, ``select`` those of them to score
    (all of them), ``options`` the keywords of the measure.
    """
    if measure not in get_args(Scorer):
        raise ValueError(f"no measure {measure!r}; there are {', '.join(get_args(Scorer))}")
    top, names = Path(source).absolute(), nugget_files(source)
    made_of = {
        name: name if name.suffix.lower() == ".parquet" else name.with_name(_as_csv(name))
        for name in names
    }
    chosen = list(attributes) if select is None else list(select)
    with new_folder(output) as made:
        rest = measure, dict(attributes), chosen, dict(options or {})
        tasks = [(top / name, made / place, *rest) for name, place in made_of.items()]
        conversations = run_each(_score_part, tasks, executor, "partition")
        _refuse_shared([top / name for name in names], conversations)
        for leftover in made.rglob(".*"):  # of a worker that died while it wrote
            leftover.unlink()
    return sum(map(len, conversations))


def nugget_files(folder: str | Path) -> list[Path]:
    """The files of a folder of nuggets: those of Parquet, or where there are none CSV and JSON Lines."""
    every = parts(folder, (".parquet", ".csv", ".jsonl"))
    return [path for path in every if path.suffix.lower() == ".parquet"] or every


def _as_csv(name: Path) -> str:
    """What a file of scores as CSV is called."""
    return name.name if name.suffix.lower() == ".csv" else f"{name.name}.csv"


def _count_styles(source: str, qrels: Any, authors: Any, style: str) -> Any:
    """In how many answers of a file each style of citations is read."""
    from equipoise.measures.attribution.citation_styles import style_counts
    from equipoise_cli.loaders.rag_answers import read_answer_files

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)  # said when they are scored
        return style_counts(read_answer_files([source], qrels, authors), style)


def _score_answers(
    source: str, qrels: Any, authors: Any, by: Sequence[str], style: str, options: Any
) -> Any:
    """The scores of each answer of a file."""
    from equipoise.measures.attribution.scores import scored_answers
    from equipoise_cli.loaders.rag_answers import read_answer_files

    return scored_answers(read_answer_files([source], qrels, authors), by, style, **options)


def score_answers(
    sources: Sequence[str],
    qrels: Any,
    authors: tuple[str, str],
    by: Sequence[str],
    style: str,
    options: Mapping[str, Any],
    executor: Executor | None = None,
) -> list[Any]:
    """What `attribution_rows` takes of answers, a task for each file, which is read twice: the style is that of all."""
    from equipoise.measures.attribution.citation_styles import style_of
    from equipoise_cli.loaders.rag_answers import answer_files

    files = [f"{mode}={path}" for mode, path in answer_files(sources)]
    counts = run_each(
        _count_styles, [(file, qrels, authors, style) for file in files], executor, "file"
    )
    rest = qrels, authors, tuple(by), style_of(counts, style), dict(options)
    return run_each(_score_answers, [(file, *rest) for file in files], executor, "file")


def _refuse_shared(files: Sequence[Path], conversations: Sequence[NDArray[np.uint64]]) -> None:
    problems = Problems()
    every = np.concatenate(conversations)
    every.sort()  # in its place: memory grows by 17 bytes a conversation
    shared = every[1:][every[1:] == every[:-1]]
    for file, own in zip(files, conversations, strict=True) if len(shared) else ():
        if count := int(np.isin(own, shared).sum()):
            problems.add(
                file,
                None,
                None,
                f"{count} conversations that another file has too",
                "each in one file",
            )
    problems.refuse()
