"""Gaps between groups: how far the largest mean of a group is from the smallest, with intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, ratio
from equipoise.declare import checked
from equipoise.options import Level, Resamples, Seed
from equipoise.problems import listed, need_columns
from equipoise.statistics.intervals import batches, percentile_interval
from equipoise.statistics.leaderboards import scores_of

_PART_OF_A_GROUP = re.compile(r"(?P<before>.*)\(group=(?P<group>[^()]*)\)(?P<behind>.*)")
_COLUMNS = ["run", "attribute", "measure", "groups", "topics", "largest", "smallest", "gap"]
_COLUMNS += ["value", "low", "high"]


def with_groups(
    scores: pd.DataFrame, group_of_topic: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """The scores with a column ``group``: of their topics, or that of a measure such as D(group=G).

    Without groups of topics only measures of groups stay, and lose the group from their names.
    Topics without a group are refused.
    """
    table = scores_of(scores)
    table = table[table["topic"].notna() & (table["topic"] != "")]
    if group_of_topic is not None:
        groups = table["topic"].map(group_of_topic)
        missing = table.loc[groups.isna(), "topic"].unique()
        if len(missing):
            raise ValueError(
                f"{len(missing)} topics have no group: {listed(missing)}; wanted one for each"
            )
        return table.assign(group=groups)
    parts = table["measure"].str.extract(_PART_OF_A_GROUP)
    names = parts["before"] + parts["behind"]
    is_part = names.notna()
    if not is_part.any():
        raise ValueError(
            "no measure of a group such as D(group=female): score with --by-group, or give a group"
            " to each topic with --groups"
        )
    return table[is_part].assign(measure=names[is_part], group=parts.loc[is_part, "group"])


def _gaps_of_means(means: Floats) -> tuple[Floats, Floats]:
    """Difference and ratio, shaped (...), of means of groups shaped (..., groups).

    NaN where a group has none; the ratio also where a mean is negative, or all are 0.
    """
    smallest, largest = means.min(axis=-1), means.max(axis=-1)
    ratios = ratio(smallest, largest, np.nan)
    return largest - smallest, np.where(smallest < 0, np.nan, ratios)


def _drawn_means(values: Floats, seed: int, resamples: int) -> Floats:
    """Means of groups over topics drawn again, shaped (resamples, groups).

    ``values``: (topics, groups), NaN where a topic is not in a group. NaN for a group of which no
    topic was drawn.
    """
    topics = len(values)
    rng = np.random.default_rng(seed)
    scored = ~np.isnan(values)
    filled = np.where(scored, values, 0.0)
    means = []
    for size in batches(resamples, topics):
        # How often each topic was drawn: the mean of a group is a weighted one.
        drawn = rng.integers(topics, size=(size, topics))
        places = np.arange(size)[:, np.newaxis] * topics + drawn
        counts = np.bincount(places.ravel(), minlength=size * topics).reshape(size, topics)
        means.append(ratio(counts @ filled, counts @ scored.astype(np.int64), np.nan))
    return np.concatenate(means)


@checked
def group_gaps(
    scores: pd.DataFrame, *, level: Level = 0.95, resamples: Resamples = 9999, seed: Seed = 0
) -> pd.DataFrame:
    r"""How far apart the means of groups are, of every run, attribute and measure.

    .. math:: difference = \max_g \bar{x}_g - \min_g \bar{x}_g, \quad
        ratio = \min_g \bar{x}_g / \max_g \bar{x}_g

    with the mean :math:`\bar{x}_g` over the topics of group g. ``scores``: columns run, topic,
    measure, value, ``group``, and maybe attribute, as `with_groups` gives them: a topic has a value
    for each group, or is in one of them. Returns ``run, attribute, measure, groups, topics``,
    ``largest, smallest`` (names of groups), ``gap`` (difference or ratio), ``value, low, high``:
    percentile interval over topics drawn again, the same for all groups. The ratio is NaN where a
    mean is negative or all are 0. A draw without any topic of a group has no gap and is left out.

    A difference is never below 0, and so no end of its interval is: that it lies above 0 does not
    say that groups differ. Hold it against what you would put up with.

    fairlearn's MetricFrame (Weerts et al. 2023): ``difference()`` and ``ratio()`` between groups.

    >>> scores = pd.DataFrame({"topic": [*"1212"], "group": [*"ffmm"], "run": "x", "measure": "D"})
    >>> gaps = group_gaps(scores.assign(value=[0.2, 0.3, 0.8, 0.7]))
    >>> gaps[["groups", "largest", "smallest", "gap", "value"]].round(3)
       groups largest smallest         gap  value
    0       2       m        f  difference  0.500
    1       2       m        f       ratio  0.333
    """
    need_columns(scores, ["run", "topic", "measure", "value", "group"])
    table = scores_of(scores)
    keys = ["run", "attribute", "measure"]
    if table.duplicated([*keys, "group", "topic"]).any():
        raise ValueError("a topic has two values of one group: each wanted once")
    rows = []
    for key, part in table.groupby(keys, sort=False):
        values = part.pivot(index="topic", columns="group", values="value").sort_index()  # noqa: PD010
        n_topics, n_groups = values.shape
        if n_groups < 2:
            raise ValueError(f"a gap is between two groups; {' '.join(key)} has {n_groups}")
        means = values.mean()
        drawn = _drawn_means(values.to_numpy(np.float64), seed, resamples)
        described = {"groups": n_groups, "topics": n_topics}
        described |= {"largest": means.idxmax(), "smallest": means.idxmin()}
        described |= dict(zip(keys, key, strict=True))
        names = ("difference", "ratio")
        gaps = _gaps_of_means(means.to_numpy())
        drawn_gaps = _gaps_of_means(drawn)
        for name, value, samples in zip(names, gaps, drawn_gaps, strict=True):
            low, high = percentile_interval(samples, level)
            row = {"gap": name, "value": float(value), "low": low, "high": high}
            rows.append(described | row)
    return pd.DataFrame(rows, columns=_COLUMNS)
