"""Means over topics with their intervals, for any tidy table of scores."""

from __future__ import annotations

import pandas as pd

from equipoise.declared import checked
from equipoise.options import Level, Resamples, Seed

_KEYS = ["run", "attribute", "measure"]


@checked
def with_mean_intervals(
    scores: pd.DataFrame, *, level: Level = 0.95, resamples: Resamples = 9999, seed: Seed = 0
) -> pd.DataFrame:
    """The scores with columns ``low, high``: the interval of each mean over topics.

    They are those of `equipoise.statistics.leaderboard`. A mean is a row with an empty topic; a
    missing mean is added. ``scores``: columns ``run, topic, attribute, measure, value``. For
    all measures the same topics are drawn. NaN for a topic, and for a mean of fewer than 10 or of
    an undefined one.
    """
    # It imports SciPy, which scores without intervals do without.
    from equipoise.statistics.intervals import intervals_of_means

    keys, samples, sample_means = [], [], []
    topic_rows = scores[scores["topic"] != ""].set_index("topic")
    for key, values in topic_rows.groupby(_KEYS, sort=False)["value"]:
        keys.append(key)
        # Topics are drawn by position, which must not depend on the order of the rows.
        samples.append(values.sort_index())
        sample_means.append(values.mean(skipna=False))
    means = pd.DataFrame(keys, columns=_KEYS).assign(topic="", mean=sample_means)
    means[["low", "high"]] = intervals_of_means(samples, seed, level=level, resamples=resamples)

    row_keys = [*_KEYS, "topic"]
    with_ends = scores.merge(means, how="left", on=row_keys).drop(columns="mean")
    present = pd.MultiIndex.from_frame(scores[row_keys])
    is_new = ~pd.MultiIndex.from_frame(means[row_keys]).isin(present)
    if not is_new.any():
        return with_ends
    new_means = means[is_new].rename(columns={"mean": "value"})
    return pd.concat([with_ends, new_means], ignore_index=True)
