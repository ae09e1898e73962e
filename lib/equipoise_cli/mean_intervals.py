"""Means over topics with their intervals, for any tidy table of scores."""

from __future__ import annotations

import pandas as pd

from equipoise.declare import checked
from equipoise.options import Level, Resamples, Seed

_KEYS = ["run", "attribute", "measure"]


@checked
def with_mean_intervals(
    scores: pd.DataFrame, *, level: Level = 0.95, resamples: Resamples = 9999, seed: Seed = 0
) -> pd.DataFrame:
    """The scores with columns ``low, high``: the interval of each mean over topics, whose rows have an empty topic.

    ``scores``: columns ``run, topic, attribute, measure, value``; a mean that is not there is
    added. For all measures the same topics are drawn. NaN for a topic, and for a mean of fewer than
    two or of an undefined one.
    """
    from equipoise.statistics.intervals import (
        bootstrap_intervals,
    )  # with SciPy, which other scores do without

    each = dict(iter(scores[scores["topic"] != ""].groupby(_KEYS, sort=False)["value"]))
    made = pd.DataFrame([*each], columns=_KEYS).assign(
        topic="", mean=[one.mean(skipna=False) for one in each.values()]
    )
    made[["low", "high"]] = bootstrap_intervals(
        [*each.values()], seed, level=level, resamples=resamples
    )
    whole = scores.merge(made, how="left", on=[*_KEYS, "topic"]).drop(columns="mean")
    places = pd.MultiIndex.from_frame(made[[*_KEYS, "topic"]])
    added = made[~places.isin(pd.MultiIndex.from_frame(scores[[*_KEYS, "topic"]]))].rename(
        columns={"mean": "value"}
    )
    return pd.concat([whole, added], ignore_index=True) if len(added) else whole
