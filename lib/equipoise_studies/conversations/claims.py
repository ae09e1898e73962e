"""Evidence of the claims of gfrc that rest on harvested conversations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from equipoise.arrays import Integers
from equipoise_compendium.evidence import bootstrapped, bootstrapped_mean
from equipoise_compendium.protocol import Evidence
from equipoise_studies.conversations.two_rounds import outcome_pairs


def clustered_mean(
    values: pd.DataFrame, weights: str = "", by: Sequence[str] = ("topic",)
) -> Evidence:
    """Estimate the mean of the column ``value`` with a bootstrap interval over clusters.

    ``by`` names the columns that identify a cluster, which is resampled as a whole. ``weights``
    names a column of weights, for a ratio of sums.
    """
    table = values[list(by)].copy()
    table["weight"] = values[weights] if weights else 1.0
    table["weighted"] = values["value"] * table["weight"]
    sums = table.groupby(list(by), sort=False)[["weighted", "weight"]].sum().to_numpy(dtype=float)

    return bootstrapped_mean(sums, np.divide.reduce)


def topic_effect(turns: pd.DataFrame) -> Evidence:
    """Estimate how much more often trials of two topics end differently than trials of one.

    Two topics are of one type. The interval is by bootstrap over topics; a topic and its own copy
    in a sample are no pair. Needs two trials of each topic.
    """
    pairs = outcome_pairs(turns)
    counts = pd.crosstab(pairs["topic"], pairs["pair"])
    types = turns.groupby("topic")["type"].first().loc[counts.index].to_numpy()
    count = counts.to_numpy(dtype=float)
    trials = count.sum(axis=1)
    share = count / trials[:, None]
    two_topics = 1 - share @ share.T  # shape (topics, topics)
    one_topic = 1 - (count * (count - 1)).sum(axis=1) / (trials * (trials - 1))

    def difference(drawn: Integers) -> float:
        same_type = types[drawn, None] == types[drawn]
        is_pair = same_type & (drawn[:, None] != drawn)
        return float(two_topics[np.ix_(drawn, drawn)][is_pair].mean() - one_topic[drawn].mean())

    return bootstrapped(difference, len(count))
