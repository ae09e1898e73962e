"""Tables of the pilot study's conversations: by type of topic, of printed counts, and what changes between trials."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise.measures.protocol import outcome_pairs, outcome_statistics


def statistics_by_type(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Statistics of all topics, then of each ``type`` of topic; shares in percent, named as in gfrc."""
    parts = [outcome_statistics(outcomes)]
    for kind, rows in outcomes.groupby("type", sort=False):
        part = outcome_statistics(rows)
        parts.append(part.assign(run=part["run"] + f", {kind} topics"))
    table = pd.concat(parts, ignore_index=True)
    percent = ["useful 1", "useful 2", "average useful", "recovery"]
    table[percent] *= 100
    return table.rename(columns={name: f"%{name}" for name in percent})


def statistics_of_counts(counts: pd.DataFrame, topics: int) -> pd.DataFrame:
    """Statistics, with %recovery, of runs whose outcomes are told by counts only: columns run, unsuccessful, recovered.

    Of a topic whose first turn did not fail the second is taken as useful, which recovery does not depend on.
    """
    told = counts.loc[counts.index.repeat(topics)].assign(topic=np.tile(np.arange(topics), len(counts)))
    failed, recovered = told["topic"] < told["unsuccessful"], told["topic"] < told["recovered"]
    pairs = told[["run", "topic"]].copy()
    pairs[1], pairs[2] = np.where(failed, "x", "o"), np.where(failed & ~recovered, "x", "o")
    table = outcome_statistics(pairs.melt(["run", "topic"], var_name="turn", value_name="outcome"))
    return table.assign(**{"%recovery": 100 * table["recovery"]})


def changed_topics(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Whether the conversations about a topic end differently in different runs: columns topic, changed."""
    ends = outcome_pairs(outcomes).groupby("topic", sort=False)["pair"].nunique()
    return (ends > 1).rename("changed").reset_index()


def failures_in_sequence(outcomes: pd.DataFrame) -> pd.DataFrame:
    """How often a first turn fails after a success and after a failure at the topic before it, in the rows' order.

    Columns are failed_before, share (of the turns that fail), turns.
    """
    first = outcomes[outcomes["turn"] == 1].assign(failed=outcomes["outcome"] == "x")
    first["failed_before"] = first.groupby("run")["failed"].shift()
    behind = first.dropna(subset="failed_before").groupby("failed_before")["failed"]
    return behind.agg(share="mean", turns="size").reset_index()


def failures_after_useful(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Conversations whose first turn was useful, and whether the second failed: columns run, topic, failed."""
    pairs = outcome_pairs(outcomes)
    pairs["failed"] = pairs["pair"] == "ox"
    return pairs.loc[pairs["pair"].str.startswith("o"), ["run", "topic", "failed"]].reset_index(drop=True)
