"""Runs of a folder on two Dask workers against one process, of one thread each.

By processor time, without the workers' start: a busy machine changes the ratio little.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from equipoise.attributes import AttributeSet
from equipoise_cli.score_runs import _score_run
from equipoise_cli.scoring import run_each, workers

RUNS, TOPICS, DEPTH = 8, 2000, 1000
SIZE = AttributeSet("SIZE", "ordinal", ("small", "large"), np.ones(2))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, **options) as local:
        yield local.scheduler_address


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, str]]:
    """A run of 2,000 topics and 1,000 documents each, under several names."""
    rng, path = np.random.default_rng(7), tmp_path_factory.mktemp("runs") / "run"
    with path.open("w") as file:
        for topic in range(TOPICS):
            documents = enumerate(rng.permutation(3000)[:DEPTH].tolist(), start=1)
            file.writelines(
                f"{topic} Q0 doc{topic}-{document:04d} {rank} {30 - rank / 100:.6f} bm25\n"
                for rank, document in documents
            )
    return [(path, f"r{number}") for number in range(RUNS)]


@pytest.fixture(scope="module")
def shared() -> dict[str, Any]:
    """Judgements and memberships of 100 documents per topic, for all runs."""
    rng, topics = np.random.default_rng(8), np.repeat(np.arange(TOPICS), 100)
    names = [f"doc{topic}-{number:04d}" for topic in range(TOPICS) for number in range(100)]
    qrels = pd.DataFrame({"topic": topics, "document": names}).astype("str")
    members = qrels.assign(small=0.25, large=0.75)
    arguments = {
        "qrels": qrels.assign(level=rng.integers(0, 3, len(qrels))),
        "memberships": {"SIZE": members},
        "attributes": {"SIZE": SIZE},
        "cutoff": 20,
        "unjudged": "nonrelevant",
    }
    return {"order": "auto", "arguments": arguments}


def test_a_folder_of_runs_on_two_workers(
    benchmark: Any, tasks: list[tuple[Path, str]], shared: dict[str, Any], address: str
) -> None:
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    run_each(_score_run, tasks[:1], None, "run", **shared)
    begun = process_time()
    here = run_each(_score_run, tasks, None, "run", **shared)
    alone = process_time() - begun
    pa.set_cpu_count(threads)
    with workers(address) as client:
        client.run(pa.set_cpu_count, 1)
        run_each(_score_run, tasks, client, "run", **shared)  # imports the library
        before = client.run(process_time)
        there = benchmark.pedantic(run_each, (_score_run, tasks, client, "run"), shared, rounds=1)
        after = client.run(process_time)
    pd.testing.assert_frame_equal(pd.concat(there), pd.concat(here))
    ratio = alone / max(after[worker] - before[worker] for worker in before)
    benchmark.extra_info["times the processor time of the busier worker, one process"] = ratio
    print(f"\nruns on two workers: one process takes {ratio:.2f} times the busier worker's time")
    assert ratio > 1.5
