"""Measures of whole conversations beside effectiveness, by the order of the conversation."""

from __future__ import annotations

import pandas as pd


def by_order(scores: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One measure of the conversations of `Experiment.answers`, by topic and permutation again.

    ``scores`` (columns run, topic, measure, value): of a nugget table whose topics are named
    topic#permutation; the measure has rows of a whole conversation, or of one attribute set.
    """
    chosen = scores[scores["measure"] == measure].reset_index(drop=True)
    parts = chosen["topic"].str.extract(r"^(?P<topic>.+)#(?P<permutation>\d+)$")
    if chosen.empty or parts.isna().to_numpy().any():
        raise ValueError(f"scores of {measure} for topics named topic#permutation are wanted")
    return chosen[["run", "value"]].join(parts.astype({"permutation": int}))


def order_correlation(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Spearman's rank correlation of two measures over the orders of each conversation.

    Both tables hold the same systems on the same orders. Returns columns run, topic, orders,
    correlation; NaN where one of the measures does not depend on the order.

    Beyond the paper: does the order move another measure as it moves nDCG? Equal values share their
    mean rank.
    """
    keys = ["run", "topic", "permutation"]
    both = first[[*keys, "value"]].merge(second[[*keys, "value"]], on=keys, suffixes=("", " 2"))
    if both.isna().to_numpy().any() or not len(both) == len(first) == len(second):
        raise ValueError("both tables need one score for the same systems, topics and permutations")
    groups = both.round(12).groupby(["run", "topic"], sort=False)
    correlation = groups[["value", "value 2"]].corr("spearman").xs("value", level=-1)["value 2"]
    return pd.DataFrame({"orders": groups.size(), "correlation": correlation}).reset_index()
