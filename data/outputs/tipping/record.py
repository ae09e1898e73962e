"""Simulate how often a verdict on the known is that of all data, and write ``trials.csv``.

400 rankings, more or less unfair to group A. Of each, a tenth or a quarter of the documents lose
their group: at random; always documents of A; documents of A five times as often; or documents of A
the better they are ranked. A trial is beyond its tipping point where the true share of A among the
unknown is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.measures.exposure import exposure_over_relevance

TRIALS, TOPICS, POOL, RESAMPLES = 400, 40, 100, 499
GROUPS = {"group": AttributeSet("group", "nominal", ("A", "B"), [1, 1])}


def ranking(rng: np.random.Generator) -> pd.DataFrame:
    """Draw documents with group, level and rank; B has more relevant ones and higher levels."""
    index = pd.MultiIndex.from_product([range(TOPICS), range(POOL)], names=["topic", "number"])
    table = index.to_frame(index=False).astype("str")
    table["document"] = table["topic"] + "-" + table["number"]
    is_a = rng.random(len(table)) < 0.3
    is_relevant = rng.random(len(table)) < np.where(is_a, 0.1, 0.4)
    is_high = rng.random(len(table)) < np.where(is_a, 0.2, 0.6)
    level = is_relevant * (1 + is_high)
    penalty = rng.choice([0, 0.2, 0.4, 0.8, 1.5])
    score = level + rng.normal(size=len(table)) - penalty * is_a
    table = table.assign(run="run", level=level, A=is_a * 1.0, B=1.0 - is_a, score=score)
    return table.assign(rank=table.groupby("topic")["score"].rank(ascending=False).astype(int))


def verdict(table: pd.DataFrame, is_known: np.ndarray) -> pd.Series:
    """Return the row of A, and in ``side`` whether it is under-exposed, over-exposed or neither."""
    memberships = {"group": table.loc[is_known, ["document", "A", "B"]]}
    qrels = table[["topic", "document", "level"]]
    rows = exposure_over_relevance(table, qrels, memberships, GROUPS, resamples=RESAMPLES)
    row = rows.iloc[0]
    return pd.concat([row, pd.Series({"side": (row["low"] > 1) * 1 - (row["high"] < 1) * 1})])


rows = []
for trial in range(TRIALS):
    rng = np.random.default_rng(trial)
    table = ranking(rng)
    is_a, is_relevant = table["A"].to_numpy() == 1, table["level"].to_numpy() > 0
    by_rank = 1 / np.log2(table["rank"].to_numpy() + 1)
    odds = {
        "at random": np.ones(len(table)),
        "only A": is_a * 1.0,
        "A five times as often": 1 + 4.0 * is_a,
        "A by rank": np.where(is_a, 0.1 + 3 * by_rank, 0.3),
    }
    full = verdict(table, np.ones(len(table), dtype=bool))
    for removal, weights in odds.items():
        chances = weights * is_relevant
        share = 0.1 if trial % 2 else 0.25
        n_removed = min(int(share * is_relevant.sum()), int(0.8 * (chances > 0).sum()))
        removed = rng.choice(len(table), n_removed, replace=False, p=chances / chances.sum())
        is_known = np.ones(len(table), dtype=bool)
        is_known[removed] = False
        known = verdict(table, is_known)
        true_share = is_a[removed].mean()
        is_beyond = true_share > known["tipping_high"] or true_share < known["tipping_low"]
        is_same = known["side"] == full["side"]
        result = f"{'beyond' if is_beyond else 'within'}, {'same' if is_same else 'other'} verdict"
        rows.append((removal, result if known["side"] else "no verdict"))

trials = pd.DataFrame(rows, columns=["removal", "result"])
counts = trials.groupby(["removal", "result"]).size().rename("trials").reset_index()
counts.to_csv(Path(__file__).with_name("trials.csv"), index=False)
