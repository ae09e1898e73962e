"""Guards tipping points: by hand, for GFR and TExFAIR, and in the recorded simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import equipoise
from equipoise.measures.exposure import exposure_verdicts
from equipoise.statistics.unknown import GroupExposure, tipping_shares

door: Any = equipoise
OPTIONS: Any = {"level": 0.95, "resamples": 199, "seed": 0}
SIMULATION = Path(__file__).parents[2] / "data/outputs/tipping/trials.csv"


def test_within_the_tipping_point_the_verdict_is_always_that_on_all_data() -> None:
    trials = pd.read_csv(SIMULATION)
    assert trials.groupby("removal")["trials"].sum().tolist() == [400] * 4
    result = trials["result"].str.split(", ", expand=True)
    within = trials[result[0] == "within"]
    assert set(within["result"]) == {"within, same verdict"}
    assert within["trials"].sum() == 306
    # Beyond it the verdict may be another one: without such trials nothing is tested.
    assert (trials["result"] == "beyond, other verdict").any()


def test_the_fewest_documents_overturn_a_verdict() -> None:
    # Known is -3. Of eight documents that count 0.5 for each as known, the heaviest go first.
    weight = np.array([4.0, 3, 2, 1, 0, 0, 0, -4])
    unit = np.zeros(8, dtype=int)

    def value(columns: Any) -> Any:
        return np.column_stack([columns[0], columns[0]])

    below, above = tipping_shares(np.array([-5.0]), unit, weight, 0.5, value, is_above=False)
    # From -5 + 3 by +2, half of the heaviest document's weight: its move is an eighth of all.
    assert above == pytest.approx(0.5 + 0.5 / 8, abs=1e-4)
    assert below == pytest.approx(0.5 - 0.5 / 8, abs=1e-4)


def exposure_of(known_share: float, unknown: int, topics: int = 40) -> pd.DataFrame:
    """Ten documents a topic, of which so many are of unknown group, with equal weights."""
    shares = np.array([known_share, 1 - known_share])
    rng = np.random.default_rng(1)
    spread = rng.normal(0, 0.2, topics)[:, np.newaxis] * [1, -1]
    known = (shares + spread) * (10 - unknown)
    topic = np.repeat(np.arange(topics), unknown)
    return GroupExposure(
        *("run", "SIZE", ("small", "large"), np.array([0.5, 0.5])),
        known=np.clip(known, 0, None),
        total=np.full(topics, 10.0),
        topic=topic,
        weight=np.ones(len(topic)),
    ).rows(**OPTIONS)


def test_of_equal_weights_it_is_where_the_interval_meets_the_target() -> None:
    rows = exposure_of(0.3, 4).set_index("group")
    small = rows.loc["small"]
    # Of 10 documents 4 are unknown; with x of them, the upper end is that of the known and 0.4 x.
    assert small["high"] < 1
    end = small["high"] / 2 + 0.4 * (small["tipping_high"] - small["share"])
    assert end == pytest.approx(0.5, abs=0.04)  # moved topic by topic, the interval is wider
    assert rows.loc["large", "tipping_low"] == pytest.approx(1 - small["tipping_high"], abs=0.02)
    assert exposure_of(0.3, 0)[["tipping_low", "tipping_high"]].isna().all(axis=None)
    sentences = exposure_verdicts(rows.reset_index(), of="target share", documents="exposure")
    assert sentences[0].endswith(
        f"; this holds unless more than {100 * small['tipping_high'] // 1:.0f}% of the documents of"
        f" unknown SIZE are small ({100 * small['share']:.0f}% of the known are)"
    )


def test_gfr_and_texfair_take_what_they_could_not_see() -> None:
    topics, names = [f"t{number}" for number in range(12)], [f"d{rank}" for rank in range(5)]
    run = {topic: {name: -rank for rank, name in enumerate(names)} for topic in topics}
    qrels = {topic: dict.fromkeys(names, 1) for topic in topics}
    groups = {"d0": "old", "d1": "old", "d2": "old", "d3": "new"}
    table = door.gfr(run, qrels, {"age": groups})
    (exposure,) = table.attrs["exposures"]
    # Of those who leave at rank k, each document has a k-th.
    leaving = exposure.total[0]
    assert exposure.known[0].sum() + exposure.weight[0] == pytest.approx(leaving)
    texts = {"d0": "he is", "d1": "he is", "d2": "she is", "d3": "it is"}
    terms = {"he": "male", "she": "female"}
    table = door.score_ranking_bias(run, texts, terms, cutoffs=[5])
    (exposure,) = table.attrs["exposures"]
    attention = 1 / np.log2(np.arange(2, 7))
    mean_of_seen = attention[:3].sum() / 2 / attention[:4].sum()
    unseen = attention[4] * mean_of_seen
    total = attention[:3].sum() / 2 + unseen
    assert exposure.weight == pytest.approx([unseen / total] * 12)
    assert exposure.known.sum(axis=1) == pytest.approx([1 - unseen / total] * 12)
