"""Run tasks here or on a Dask cluster, and so score folders of more files than memory holds.

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

import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import contextmanager
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

Scorer = Literal["gfrc", "gfrc2"]
"""Functions that score a nugget table, each in the module of measures of its own name."""


_ADDRESS = re.compile(r"(?:tcp://)?(?:[\w.-]+|\[[\da-fA-F:]+\]):(\d{1,5})|inproc://[\w.]+/\d+/\d+")


# --- where tasks run ------------------------------------------------------------------------------


@contextmanager
def cluster(address: str | None, *, single_threaded: bool = False) -> Iterator[Executor | None]:
    """An executor on the Dask scheduler at an address; None without an address.

    An address is one such as ``tcp://127.0.0.1:8786``. The workers need this library, and the same
    files under the same paths. Notebooks want them ``single_threaded``.
    """
    if address is None:
        yield None
        return
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match[1] or 1) < 2**16:
        raise ValueError(
            f"a cluster's address is one such as tcp://127.0.0.1:8786, found {shown(address)}"
        )
    try:
        client = import_module("distributed").Client(address, timeout=10)  # seconds
    except ModuleNotFoundError:
        raise ValueError(
            "a cluster needs Dask: in your clone, python -m pip install '.[cluster]'"
        ) from None
    except (OSError, TimeoutError):
        raise ValueError(f"no Dask scheduler of a cluster answers at {address}") from None
    with client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        if not workers:
            raise ValueError(f"the Dask scheduler at {address} has no workers")
        n_threads = max(worker["nthreads"] for worker in workers)
        if single_threaded and n_threads > 1:
            raise ValueError(
                f"a worker has {n_threads} threads; notebooks need workers with one (--nthreads 1)"
            )
        yield client.get_executor(pure=False)


def run_each(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    executor: Executor | None,
    unit: str,
) -> list[Any]:
    """Results of a function for each task's arguments, in their order.

    They run in this process, or on an executor, for which the function is one of a module. The
    problems of all inputs are raised together. A progress bar on standard error counts the
    ``unit``.
    """
    bar: dict[str, Any] = {"total": len(tasks), "unit": unit, "file": sys.stderr, "disable": None}
    if executor is None:
        return together(partial(function, *task) for task in tqdm(tasks, **bar))
    futures = [executor.submit(function, *task) for task in tasks]
    for future in tqdm(as_completed(futures), **bar):
        # A problem of an input waits for those of the others; any other error ends it at once.
        if not isinstance(future.exception(), InputError):
            future.result()
    return together(future.result for future in futures)


# --- terms counted --------------------------------------------------------------------------------


def _count_part(
    source: str, terms: Sequence[str], tokens: Any, documents: Collection[str] | None
) -> Any:
    """Counts of the terms in a file of documents, of all or of those named."""
    from equipoise.loaders.documents import document_tables

    # with SciPy, which other scores do without
    from equipoise.measures.ranking_bias.terms import count_terms

    chunks = tqdm(document_tables(source), unit="chunk", file=sys.stderr, disable=None)
    if documents is None:
        return count_terms(chunks, terms, tokens=tokens)
    # Chunk by chunk, so that no more than one is in memory.
    tables = (chunk[chunk["document"].isin(documents)] for chunk in chunks)
    return count_terms(tables, terms, tokens=tokens)


def count_parts(
    source: str | Path,
    terms: Sequence[str],
    tokens: Any,
    documents: Collection[str] | None = None,
    executor: Executor | None = None,
) -> Any:
    """`count_terms` of a collection: a task a file, of some documents or all."""
    from equipoise.loaders.documents import document_files
    from equipoise.measures.ranking_bias.terms import joined

    files = document_files(source) if Path(source).is_dir() else [source]
    tasks = [(str(file), tuple(terms), tokens, documents) for file in files]
    if len(tasks) == 1 and executor is None:
        return _count_part(*tasks[0])
    return joined(run_each(_count_part, tasks, executor, "file"))


# --- nuggets scored -------------------------------------------------------------------------------


def _score_part(
    source: Path, target: Path, measure: Scorer, sets: Any, select: Any, options: Any
) -> Any:
    """Score a file, and return a 64-bit hash for each of its conversations."""
    nuggets = read_nuggets(source, sets, select)
    score = getattr(import_module(f"equipoise.measures.{measure}"), measure)
    scores = score(nuggets, {name: sets[name] for name in select}, **options)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Complete or not at all, even if another worker does the same.
    write_files({target: scores})
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
    """Score a folder of nugget tables into a new one of the same layout; returns the conversations.

    ``attributes`` are the sets that the files have columns for, ``select`` those of them to score
    (all of them), ``options`` the keywords of the measure.
    """
    if measure not in get_args(Scorer):
        raise ValueError(f"no measure {measure!r}; there are {', '.join(get_args(Scorer))}")
    folder = Path(source).absolute()
    names = nugget_files(source)
    set_names = list(attributes) if select is None else list(select)
    with new_folder(output) as staged:
        tasks = []
        for name in names:
            files = folder / name, staged / _name_of_scores(name)
            tasks.append((*files, measure, dict(attributes), set_names, dict(options or {})))
        conversations = run_each(_score_part, tasks, executor, "partition")
        _refuse_shared([folder / name for name in names], conversations)
        for leftover in staged.rglob(".*"):  # of a worker that died while it wrote
            leftover.unlink()
    return sum(map(len, conversations))


def nugget_files(folder: str | Path) -> list[Path]:
    """The files of a folder of nuggets: those of Parquet; if there are none, CSV and JSON Lines."""
    paths = parts(folder, (".parquet", ".csv", ".jsonl"))
    parquet_paths = [path for path in paths if path.suffix.lower() == ".parquet"]
    return parquet_paths or paths


def _name_of_scores(nuggets: Path) -> Path:
    """What the scores of a file of nuggets are called: Parquet of Parquet, else CSV."""
    if nuggets.suffix.lower() in (".parquet", ".csv"):
        return nuggets
    return nuggets.with_name(f"{nuggets.name}.csv")


def _refuse_shared(files: Sequence[Path], hashes: Sequence[NDArray[np.uint64]]) -> None:
    """Refuse conversations that are in several files, by the hashes of those of each file."""
    problems = Problems()
    in_order = np.concatenate(hashes)
    in_order.sort()  # in its place: memory grows by 17 bytes a conversation
    shared_hashes = in_order[1:][in_order[1:] == in_order[:-1]]
    if not len(shared_hashes):
        return
    for file, hashes_of_file in zip(files, hashes, strict=True):
        count = int(np.isin(hashes_of_file, shared_hashes).sum())
        if count:
            problem = f"{count} conversations that another file has too"
            problems.add(file, None, None, problem, "each in one file")
    problems.refuse()


# --- answers scored -------------------------------------------------------------------------------


def _count_styles(source: str, qrels: Any, authors: Any, fields: str, style: str) -> Any:
    """In how many answers of a file each style of citations is read."""
    from equipoise.measures.attribution.citation_styles import style_counts
    from equipoise_cli.loaders.rag_answers import read_answer_files

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)  # said when they are scored
        return style_counts(read_answer_files([source], qrels, authors, fields), style)


def _score_answers(
    source: str,
    qrels: Any,
    authors: Any,
    fields: str,
    by: Sequence[str],
    style: str,
    options: Any,
) -> Any:
    """The scores of each answer of a file."""
    from equipoise.measures.attribution.scores import scored_answers
    from equipoise_cli.loaders.rag_answers import read_answer_files

    answers = read_answer_files([source], qrels, authors, fields)
    return scored_answers(answers, by, style, **options)


def score_answers(
    sources: Sequence[str],
    qrels: Any,
    authors: tuple[str, str],
    by: Sequence[str],
    style: str,
    options: Mapping[str, Any],
    executor: Executor | None = None,
    fields: str = "",
) -> list[Any]:
    """What `attribution_rows` takes of answers, a task for each file.

    Each file is read twice: the style of citations is that of all of them.
    """
    from equipoise.measures.attribution.citation_styles import style_of
    from equipoise_cli.loaders.rag_answers import answer_files

    files = [f"{mode}={path}" for mode, path in answer_files(sources)]
    style_tasks = [(file, qrels, authors, fields, style) for file in files]
    counts = run_each(_count_styles, style_tasks, executor, "file")
    style_of_all = style_of(counts, style)
    tasks = [
        (file, qrels, authors, fields, tuple(by), style_of_all, dict(options)) for file in files
    ]
    return run_each(_score_answers, tasks, executor, "file")
