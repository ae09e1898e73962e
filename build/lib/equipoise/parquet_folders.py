"""Score more than fits into memory: partition by partition, here or on a Dask cluster.

A partitioned nugget table is a folder of Parquet files, a conversation being in one file only. Each file is read,
checked, scored and written by itself, so memory stays bounded by the largest, and, since a score depends on its
conversation alone, to the last bit, the result is the same wherever and in whatever order the files are scored. The
output folder appears when everything is done; a task that a dying worker leaves behind is run again elsewhere.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from equipoise.attributes import AttributeSet
from equipoise.measures import gfrc as gfrc_measures
from equipoise.measures import gfrc2 as gfrc2_measures
from equipoise.nuggets import read_nuggets
from equipoise.problems import InputError, Problem

SECONDS_TO_CONNECT = 10

MEASURES: Mapping[str, Callable[..., pd.DataFrame]] = {"gfrc": gfrc_measures.gfrc, "gfrc2": gfrc2_measures.gfrc2}


@contextmanager
def cluster(address: str | None, *, single_threaded: bool = False) -> Iterator[Executor | None]:
    """Connect to a Dask cluster, as an executor.

    The workers need this library, and the same files under the same paths.

    ``address``: of the scheduler, such as ``tcp://127.0.0.1:8786``; None for no cluster. ``single_threaded``:
    whether every worker must have a single thread (notebooks need that). Yields: None without an address.
    """
    if address is None:
        yield None
        return
    try:
        distributed = import_module("distributed")
    except ModuleNotFoundError:
        raise ValueError("a cluster needs Dask: install equipoise[cluster], or the package distributed") from None
    try:
        client = distributed.Client(address, timeout=SECONDS_TO_CONNECT)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"no Dask scheduler answers at {address}: {reason}") from None
    with client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        if not workers:
            raise ValueError(f"the Dask scheduler at {address} has no workers")
        threads = max(worker["nthreads"] for worker in workers)
        if single_threaded and threads > 1:
            raise ValueError(f"a worker has {threads} threads; notebooks need workers with one (--nthreads 1)")
        yield client.get_executor(pure=False)


def run_each(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], executor: Executor | None, unit: str
) -> list[Any]:
    """Call a function once per task, here or on an executor, under a progress bar on standard error.

    ``function``: of a module, so that it can travel. ``tasks``: Arguments of each call. ``executor``: None calls
    one after the other in this process. ``unit``: what the progress bar counts. Returns: Results in the order of
    the tasks.
    """
    results: list[Any] = [None] * len(tasks)
    with tqdm(total=len(tasks), unit=unit, file=sys.stderr, disable=None) as bar:
        if executor is None:
            for number, task in enumerate(tasks):
                results[number] = function(*task)
                bar.update()
            return results
        futures = {executor.submit(function, *task): number for number, task in enumerate(tasks)}
        for future in as_completed(futures):
            results[futures[future]] = future.result()
            bar.update()
    return results


def parts(folder: str | Path) -> list[Path]:
    """Parquet files of a partitioned table, in the order of their names.

    ``folder``: Searched at any depth; hidden files are left out. Returns: Relative to the folder.
    """
    top = Path(folder)
    found = sorted(path.relative_to(top) for path in top.rglob("*.parquet") if path.is_file())
    found = [path for path in found if not any(part.startswith((".", "_")) for part in path.parts)]
    if not found:
        raise InputError([Problem(str(folder), None, None, "no Parquet file in this folder", "files *.parquet")])
    return found


@dataclass(frozen=True)
class _Scored:
    """What became of a partition: its problems, or a number for each of its conversations."""

    problems: tuple[Problem, ...]
    conversations: NDArray[np.uint64]


def _score_part(
    source: Path,
    target: Path,
    measure: str,
    attributes: Mapping[str, AttributeSet],
    select: Sequence[str],
    options: Mapping[str, Any],
) -> _Scored:
    try:
        nuggets = read_nuggets(source, attributes, select)
    except InputError as error:
        return _Scored(tuple(error.problems), np.zeros(0, dtype=np.uint64))
    scores = MEASURES[measure](nuggets, {name: attributes[name] for name in select}, **options)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".part-", delete=False) as file:
        temporary = Path(file.name)
    scores.to_parquet(temporary, index=False)
    temporary.replace(target)  # whole or not at all, even if another worker does the same
    return _Scored((), pd.util.hash_pandas_object(nuggets.conversations, index=False).to_numpy())


def score_parts(
    source: str | Path,
    output: str | Path,
    measure: Literal["gfrc", "gfrc2"],
    attributes: Mapping[str, AttributeSet],
    select: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
) -> int:
    """Score a partitioned nugget table into a folder of the same layout.

    ``source``: Folder of Parquet files in the columns of a nugget table. ``output``: Folder to make: for each file
    of the source one of the same name with the scores. ``measure``: what to compute. ``attributes``: Attribute sets
    that the files have columns for. ``select``: Score these only; the default is all. ``options``: Keywords of the
    measure. ``executor``: where to run; the default is this process. Returns: Number of conversations.
    """
    if measure not in MEASURES:
        raise ValueError(f"no measure {measure!r}; there are {', '.join(MEASURES)}")
    top, target = Path(source).absolute(), Path(output).absolute()
    if target.exists():
        raise ValueError(f"{output} is there already; name a folder that is not")
    names = parts(source)
    chosen = list(attributes) if select is None else list(select)
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        tasks = [(top / n, staging / n, measure, dict(attributes), chosen, dict(options or {})) for n in names]
        scored: list[_Scored] = run_each(_score_part, tasks, executor, "partition")
        problems = [problem for part in scored for problem in part.problems] or _in_two_files(top, names, scored)
        if problems:
            raise InputError(problems)
        for leftover in staging.rglob(".part-*"):  # of a worker that died while it wrote
            leftover.unlink()
        staging.chmod(0o755)
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return sum(len(part.conversations) for part in scored)


def _in_two_files(top: Path, names: Sequence[Path], scored: Sequence[_Scored]) -> list[Problem]:
    """Files that share a conversation, told by 64-bit hashes of run and topic."""
    every = np.concatenate([part.conversations for part in scored])
    once, counts = np.unique(every, return_counts=True)
    shared = once[counts > 1]
    return [
        Problem(str(top / name), None, None, f"{count} conversations that another file has too", "each in one file")
        for name, part in zip(names, scored, strict=True)
        if (count := int(np.isin(part.conversations, shared).sum()))
    ]
