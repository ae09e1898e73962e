"""GFR over a large collection against a plain loop, and partitions on Dask against one process.

Each pair runs in one session on one machine; what counts is the ratio, printed by the last test of
the pair.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from equipoise.attributes import AttributeSet
from equipoise.divergences import rnod
from equipoise.measures.gfr import gfr_table
from equipoise_cli.parquet_folders import cluster, score_parts

TOPICS, DOCUMENTS, RUNS, LOOPED = 1000, 100, 20, 20
SIZE = AttributeSet("SIZE", "ordinal", ("1", "2", "3", "4"), np.ones(4))
took: dict[str, float] = {}


@pytest.fixture(scope="module")
def collection() -> dict[str, Any]:
    """1,000 topics x 100 documents x 20 runs, half of the pool judged, a fifth relevant."""
    rng = np.random.default_rng(7)
    pool = 2 * DOCUMENTS
    chosen = np.argsort(rng.random((RUNS, TOPICS, pool)), axis=-1)[..., :DOCUMENTS]
    run, topic, rank = (grid.ravel() for grid in np.indices(chosen.shape))
    names = np.array([f"d{i}" for i in range(pool)])
    runs = pd.DataFrame(
        {
            "run": np.array([f"r{i}" for i in range(RUNS)])[run],
            "topic": np.array([f"t{i:04d}" for i in range(TOPICS)])[topic],
            "document": names[chosen.ravel()],
            "rank": rank + 1,
            "score": 1.0 / (rank + 1),
        }
    )
    topics = np.repeat([f"t{i:04d}" for i in range(TOPICS)], pool // 2)
    qrels = pd.DataFrame(
        {
            "topic": topics,
            "document": np.tile(names[: pool // 2], TOPICS),
            "level": rng.choice(3, len(topics), p=[0.8, 0.15, 0.05]),
        }
    )
    vectors = rng.dirichlet(np.ones(4), len(qrels))
    members = qrels[["topic", "document"]].assign(**dict(zip(SIZE.groups, vectors.T, strict=True)))
    return {
        "runs": runs,
        "qrels": qrels,
        "memberships": {"SIZE": members},
        "attributes": {"SIZE": SIZE},
    }


def plain_loop(
    collection: dict[str, Any], topics: int
) -> dict[tuple[str, str], tuple[float, float]]:
    """ERR and GF-RNOD list by list, document by document, of the first topics."""
    wanted = set(sorted(set(collection["qrels"]["topic"]))[:topics])
    qrels, vectors = (
        table[table["topic"].isin(wanted)]
        for table in (collection["qrels"], collection["memberships"]["SIZE"])
    )
    level = {(t, d): x for t, d, x in qrels.itertuples(index=False)}
    members = {(t, d): np.array(p) for t, d, *p in vectors.itertuples(index=False)}
    runs = collection["runs"]
    scores = {}
    for (run, topic), rows in runs[runs["topic"].isin(wanted)].groupby(
        ["run", "topic"], sort=False
    ):
        reading, err, fair, seen = 1.0, 0.0, 0.0, np.zeros(4)
        for rank, document in enumerate(rows["document"], start=1):
            seen = seen + members.get((topic, document), np.full(4, 0.25))
            stop = {0: 0, 1: 1, 2: 3}[level.get((topic, document), 0)] / 4
            if stop:
                err += reading * stop / rank
                fair += reading * stop * (1 - float(rnod(seen / rank, SIZE.target)))
                reading *= 1 - stop
        scores[str(run), str(topic)] = (err, fair)
    return scores


def test_gfr_plain_loop(benchmark: Any, collection: dict[str, Any]) -> None:
    scores = benchmark.pedantic(plain_loop, (collection, LOOPED), rounds=8)
    took["loop"] = benchmark.stats["min"] / (RUNS * LOOPED)
    assert len(scores) == RUNS * LOOPED


def test_gfr_vectorised(benchmark: Any, collection: dict[str, Any]) -> None:
    table = benchmark.pedantic(
        gfr_table,
        kwargs={
            **collection,
            "cutoff": DOCUMENTS,
            "similarities": {"ordinal": ("rnod",)},
            "least_seen": 0,
        },
        rounds=8,
    )
    took["vectorised"] = benchmark.stats["min"] / (RUNS * TOPICS)
    ours = table.set_index(["run", "topic", "measure"])["value"]
    for (run, topic), (err, fair) in list(plain_loop(collection, 1).items())[:5]:
        assert ours[run, topic, "ERR"] == pytest.approx(err, abs=1e-9)
        assert ours[run, topic, "GF-RNOD"] == pytest.approx(fair, abs=1e-9)
    ratio = took["loop"] / took["vectorised"]
    benchmark.extra_info["times as fast as a plain loop, per list"] = ratio
    print(
        f"\nGFR of {RUNS} x {TOPICS} lists of {DOCUMENTS}: "
        f"{ratio:.1f} times as fast as a plain loop, per list"
    )
    assert ratio > 10


# --- partitions -----------------------------------------------------------------------------------

PARTS, PER_PART = 40, 500_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partitions of 500,000 nuggets, eight to a conversation."""
    top, rows = tmp_path_factory.mktemp("nuggets"), np.arange(PER_PART)
    ends = 10 * (rows % 8 + 1)
    frame = pd.DataFrame(
        {
            "run": "r",
            "topic": "t" + pd.Series(rows // 8).astype("str"),
            "turn": rows % 8 // 4 + 1,
            "start": ends,
            "end": ends,
            "level": rows % 2 + 1,
            "SIZE": np.array(["1 0 0 0", "0 1 0 0", "0 0 1/2 1/2"])[rows % 3],
        }
    )
    for part in range(PARTS):
        frame.assign(run=f"r{part}").to_parquet(top / f"part-{part:02d}.parquet", index=False)
    return top


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    distributed = pytest.importorskip(
        "distributed", reason="Dask is not installed: no ratio of a cluster"
    )
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as local:
        yield local.scheduler_address


def test_20000000_nuggets_on_two_workers(
    benchmark: Any, folder: Path, tmp_path: Path, address: str
) -> None:
    """One thread on each side, without the workers' start; by the clock and by processor time."""
    first = tmp_path / "first"
    first.mkdir()
    (first / "part-0.parquet").symlink_to(folder / "part-00.parquet")
    score_parts(first, tmp_path / "warm", "gfrc", {"SIZE": SIZE})
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    begun, clock = time.process_time(), time.perf_counter()
    score_parts(folder, tmp_path / "one", "gfrc", {"SIZE": SIZE})
    alone, waited = time.process_time() - begun, time.perf_counter() - clock
    pa.set_cpu_count(threads)
    with cluster(address) as executor, import_module("distributed").Client(address) as client:
        client.run(pa.set_cpu_count, 1)
        for number in range(2):  # each worker imports the library before the clock starts
            score_parts(
                first, tmp_path / f"warm-{number}", "gfrc", {"SIZE": SIZE}, None, None, executor
            )
        before = client.run(time.process_time)
        arguments = (folder, tmp_path / "two", "gfrc", {"SIZE": SIZE}, None, None, executor)
        begun = time.process_time()
        count = benchmark.pedantic(score_parts, arguments, rounds=1)
        here = time.process_time() - begun  # the scheduler's and the client's
        spent = [after - before[worker] for worker, after in client.run(time.process_time).items()]
    assert count == PARTS * PER_PART // 8
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    benchmark.extra_info["times as fast on two Dask workers as in one process"] = (
        waited / benchmark.stats["mean"]
    )
    ratio, floor = alone / max(spent), 2 * alone / (sum(spent) + here)
    benchmark.extra_info["times the processor time of the busier worker, one process"] = ratio
    benchmark.extra_info["times as fast at most, on two processors that the scheduler shares"] = (
        floor
    )
    print(
        f"\n{PARTS} partitions of {PER_PART} nuggets: "
        f"{waited / benchmark.stats['mean']:.2f} times as fast on two"
        f" workers as in one process, {ratio:.2f} by processor time"
        f" ({alone:.1f} s against {spent}), at most"
        f" {floor:.2f} on two processors, of which scheduler and client take {here:.1f} s"
    )
    assert ratio > 1.5


def peak_memory(source: Path, target: Path) -> float:
    """Largest size in MB, as Linux tells it, of a process that scores a folder."""
    code = (
        "import re, runpy, sys\n"
        "bench = runpy.run_path(sys.argv[1])\n"
        "bench['score_parts'](sys.argv[2], sys.argv[3], 'gfrc', {'SIZE': bench['SIZE']})\n"
        "print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, __file__, source, target],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(run.stdout) * 1024 / 1e6


def test_memory_of_20000000_nuggets_in_a_folder(
    benchmark: Any, folder: Path, tmp_path: Path
) -> None:
    """Ten times the files add only 8 bytes a conversation, twice while they are compared."""
    few = tmp_path / "few"
    few.mkdir()
    for path in sorted(folder.iterdir())[: PARTS // 10]:
        (few / path.name).symlink_to(path)
    sources = ((few, tmp_path / "a"), (folder, tmp_path / "b"))
    small, large = benchmark.pedantic(
        lambda: [peak_memory(*source) for source in sources], rounds=1
    )
    added = (PARTS - PARTS // 10) * PER_PART // 8 * 17 / 1e6
    benchmark.extra_info["times the peak memory for ten times the nuggets"] = large / small
    benchmark.extra_info["peak MB of 2000000 and 20000000 nuggets"] = [round(small), round(large)]
    print(
        f"\nmemory: {small:.0f} MB for 4 files, {large:.0f} MB for 40; "
        f"conversations account for {added:.0f} MB"
    )
    assert large < 1.2 * small + added
