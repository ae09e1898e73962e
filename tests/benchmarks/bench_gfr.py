"""GFR over a large collection against a plain loop.

Both run in one session on one machine; what counts is the ratio, printed by the second.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from equipoise.attributes import AttributeSet
from equipoise.divergences import rnod
from equipoise.measures.gfr import gfr_table

pytestmark = pytest.mark.benchmark(timer=process_time)
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
