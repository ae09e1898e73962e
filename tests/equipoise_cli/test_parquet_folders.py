"""Partitioned nugget tables: the same scores to the bit here, in processes and on a cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from equipoise.attributes import attribute_sets
from equipoise.files import parts, read_text
from equipoise.measures.gfrc import gfrc
from equipoise.nuggets import nugget_table
from equipoise.problems import InputError
from equipoise_cli.parquet_folders import cluster, count_parts, run_each, score_parts

SETS = attribute_sets(
    {
        "A": {"kind": "nominal", "groups": ["x", "y", "z"], "target": "uniform"},
        "B": {"kind": "ordinal", "groups": ["1", "2"], "target": ["1", "3"]},
    }
)


def nuggets(part: int, conversations: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(part)
    rows = []
    for number in range(conversations):
        ends = np.sort(rng.choice(np.arange(2, 900), size=rng.integers(1, 9), replace=False))
        thirds, halves = rng.dirichlet(np.ones(3), len(ends)), rng.dirichlet(np.ones(2), len(ends))
        for position, end in enumerate(ends):
            a, b = (
                " ".join(f"{p:.17g}" for p in vectors[position]) for vectors in (thirds, halves)
            )
            rows.append(
                (
                    f"r{part}",
                    f"t{number}",
                    int(position > 2) + 1,
                    end,
                    end,
                    int(rng.integers(1, 3)),
                    a,
                    b,
                )
            )
    return pd.DataFrame(rows, columns=["run", "topic", "turn", "start", "end", "level", "A", "B"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "nuggets"
    for part in range(5):
        inner = top / f"half-{part % 2}"
        inner.mkdir(parents=True, exist_ok=True)
        nuggets(part).to_parquet(inner / f"part-{part}.parquet", index=False)
    (top / "_metadata.parquet").write_bytes(b"no table")
    return top


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_partitions_give_what_one_table_gives(folder: Path, tmp_path: Path) -> None:
    assert score_parts(folder, tmp_path / "out", "gfrc", SETS) == 5 * 40
    assert parts(tmp_path / "out") == parts(folder)
    together = pd.concat(
        [pd.read_parquet(folder / name) for name in parts(folder)], ignore_index=True
    )
    expected = gfrc(nugget_table(together, SETS), SETS)
    found = pd.concat(
        [pd.read_parquet(tmp_path / "out" / name) for name in parts(folder)], ignore_index=True
    )
    keys = ["run", "topic", "attribute", "measure"]
    expected, found = (
        table.sort_values(keys).reset_index(drop=True) for table in (expected, found)
    )
    assert expected[keys].equals(found[keys])
    assert (expected["value"].to_numpy() == found["value"].to_numpy()).all()  # to the bit


def test_the_same_bytes_wherever_it_runs(folder: Path, tmp_path: Path) -> None:
    score_parts(folder, tmp_path / "here", "gfrc2", SETS, ["A"], {"patience": 500})
    spawn = multiprocessing.get_context("spawn")
    pools: dict[str, Executor] = {
        "threads": ThreadPoolExecutor(3),
        "processes": ProcessPoolExecutor(1, mp_context=spawn),
    }
    for name, pool in pools.items():
        with pool:
            score_parts(folder, tmp_path / name, "gfrc2", SETS, ["A"], {"patience": 500}, pool)
        assert contents(tmp_path / name) == contents(tmp_path / "here")


def test_problems_of_all_partitions_are_told_and_nothing_is_written(
    folder: Path, tmp_path: Path
) -> None:
    for part in (0, 3):
        nuggets(part).assign(level="high").to_parquet(
            folder / f"half-{part % 2}" / f"part-{part}.parquet"
        )
    with pytest.raises(InputError) as caught:
        score_parts(folder, tmp_path / "out", "gfrc", SETS)
    assert {Path(problem.file).name for problem in caught.value.problems} == {
        "part-0.parquet",
        "part-3.parquet",
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nuggets"]


def test_a_conversation_in_two_files_is_refused(folder: Path, tmp_path: Path) -> None:
    both = pd.concat([nuggets(4), nuggets(1).query("topic == 't7'")])
    both.to_parquet(folder / "half-0" / "part-4.parquet", index=False)
    with pytest.raises(InputError, match="1 conversations that another file has too") as caught:
        score_parts(folder, tmp_path / "out", "gfrc", SETS)
    assert sorted(Path(problem.file).name for problem in caught.value.problems) == [
        "part-1.parquet",
        "part-4.parquet",
    ]
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_scored_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError, match="is there already"):
        score_parts(folder, tmp_path / "out", "gfrc", SETS)
    with pytest.raises(ValueError, match="no measure"):
        score_parts(folder, tmp_path / "new", "ndcg", SETS)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no file to read"):
        score_parts(tmp_path / "out", tmp_path / "new", "gfrc", SETS)
    with pytest.raises(ValueError, match="patience"):
        score_parts(folder, tmp_path / "new", "gfrc", SETS, None, {"patience": 0})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nuggets", "out"]


def test_run_each_keeps_the_order() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert run_each(divmod, [(n, 7) for n in range(50)], pool, "task") == [
            divmod(n, 7) for n in range(50)
        ]
    with ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
        run_each(divmod, [(1, 0)], pool, "task")


def test_the_problems_of_all_inputs_come_back_from_workers(tmp_path: Path) -> None:
    missing = [(tmp_path / name,) for name in ("a", "b")]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        for executor in (None, pool):
            with pytest.raises(InputError) as caught:
                run_each(read_text, missing, executor, "file")
            assert [Path(problem.file).name for problem in caught.value.problems] == ["a", "b"]


def test_a_cluster_that_is_not_there_is_said_so() -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: clusters are not tried")
    with (
        pytest.raises(ValueError, match=r"is one such as tcp.+, found 'nonsense'"),
        cluster("nonsense"),
    ):
        pass


@contextmanager
def local_cluster(**options: Any) -> Iterator[str]:
    distributed: Any = pytest.importorskip(
        "distributed", reason="Dask is not installed: clusters are not tried"
    )
    with distributed.LocalCluster(dashboard_address=":0", **options) as local:
        yield local.scheduler_address


def deadly(mark: str) -> Callable[[], str]:
    """A task that kills its worker, the first time; a closure, so that it travels by value."""

    def die_once() -> str:
        import os
        import signal
        from pathlib import Path

        if not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "alive"

    return die_once


def test_a_cluster_that_loses_a_worker_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    score_parts(folder, tmp_path / "here", "gfrc", SETS)
    with local_cluster(n_workers=2, threads_per_worker=1) as address, cluster(address) as executor:
        assert executor is not None
        first = executor.submit(deadly(str(tmp_path / "died")))
        score_parts(folder, tmp_path / "there", "gfrc", SETS, None, None, executor)
        assert first.result() == "alive"
    assert (tmp_path / "died").exists()
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_terms_counted_on_a_cluster_that_loses_a_worker_are_the_same(tmp_path: Path) -> None:
    words, rng = np.array(["he", "She", "her,", "rain", "wind"]), np.random.default_rng(4)
    for part in range(6):
        rows = enumerate(words[rng.integers(0, len(words), (20_000, 12))].tolist())
        text = "".join(f"{part}-{number}\t{' '.join(row)}\n" for number, row in rows)
        (tmp_path / f"part-{part}.tsv").write_text(text)
    arguments = (tmp_path, ("he", "her", "she"), "word", None)
    here = count_parts(*arguments)
    with local_cluster(n_workers=2, threads_per_worker=1) as address, cluster(address) as executor:
        client = import_module("distributed").Client(address)
        processes = client.run(os.getpid)

        def kill_one_that_counts() -> int:
            while not (busy := [worker for worker, tasks in client.processing().items() if tasks]):
                pass
            os.kill(processes[busy[0]], signal.SIGKILL)
            return int(processes[busy[0]])

        with client, ThreadPoolExecutor(1) as killer:
            dead = killer.submit(kill_one_that_counts)
            there = count_parts(*arguments, executor)
            assert dead.result() not in client.run(os.getpid).values()
    assert there.counts.sum() > 0
    assert there.documents.equals(here.documents)
    for own, other in ((here.lengths, there.lengths), (here.counts.data, there.counts.data)):
        assert own.tobytes() == other.tobytes()
    assert here.counts.indices.tolist() == there.counts.indices.tolist()
    assert here.counts.indptr.tolist() == there.counts.indptr.tolist()


def test_notebooks_are_refused_workers_with_many_threads() -> None:
    with local_cluster(n_workers=1, threads_per_worker=2) as address:
        with pytest.raises(ValueError, match="2 threads; notebooks need workers with one"):
            cluster(address, single_threaded=True).__enter__()
        with cluster(address) as executor:
            assert run_each(divmod, [(7, 2)], executor, "task") == [(3, 1)]
