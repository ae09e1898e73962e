"""Means over topics with their intervals, for any tidy table of scores."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise.declare import checked
from equipoise.options import Level, Resamples, Seed

_KEYS = ["run", "attribute", "measure"]


@checked
def with_mean_intervals(
    scores: pd.DataFrame, *, level: Level = 0.95, resamples: Resamples = 9999, seed: Seed = 0
) -> pd.DataFrame:
    """The scores with columns ``low, high``: the interval of each mean over topics, whose rows have an empty topic.

    ``scores``: columns ``run, topic, attribute, measure, value``; a mean that is not there is added. For all measures
    the same topics are drawn. NaN for a topic, and for a mean of fewer than two or of an undefined one.
    """
    from equipoise.statistics import bootstrap_interval  # with SciPy's, which a score without intervals does without

    of_topics, ends = scores[scores["topic"] != ""], []
    for key, values in of_topics.groupby(_KEYS, sort=False)["value"]:
        bounds = (np.nan, np.nan)
        if len(values) > 1 and values.notna().all():
            bounds = bootstrap_interval(values, np.random.default_rng(seed), level=level, resamples=resamples)
        ends.append((*key, "", values.mean(skipna=False), *bounds))
    made = pd.DataFrame(ends, columns=[*_KEYS, "topic", "mean", "low", "high"])
    whole = scores.merge(made, how="left", on=[*_KEYS, "topic"]).drop(columns="mean")
    places = pd.MultiIndex.from_frame(made[[*_KEYS, "topic"]])
    added = made[~places.isin(pd.MultiIndex.from_frame(scores[[*_KEYS, "topic"]]))].rename(columns={"mean": "value"})
    return pd.concat([whole, added], ignore_index=True) if len(added) else whole
