"""Runs compared by one measure: means with intervals, tests, and differences by topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from equipoise.declare import checked
from equipoise.options import (
    Correction,
    Level,
    MeanIntervals,
    PairedTest,
    Resamples,
    Seed,
    Unpaired,
)
from equipoise.problems import listed, need_columns
from equipoise.statistics.intervals import bootstrap_intervals
from equipoise.statistics.pairs import compare_pairs, significance, topic_by_run
from equipoise.tidy import tidy_scores


def scores_of(scores: pd.DataFrame, measures: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of the measures, by default of all, with a column ``attribute`` in any case."""
    scores = tidy_scores(scores)
    if "attribute" not in scores.columns:
        scores = scores.assign(attribute="")
    names = scores["measure"].unique().tolist()
    unknown = [name for name in measures if name not in names]
    if unknown:
        raise ValueError(f"no scores of {listed(unknown)}; there are {listed(names, 40)}")
    if measures:
        scores = scores[scores["measure"].isin(measures)]
    return scores.astype({"attribute": "str"}).fillna({"attribute": ""})


@checked
def leaderboard(
    scores: pd.DataFrame,
    *,
    level: Level = 0.95,
    mean_intervals: MeanIntervals = "marginal",
    resamples: Resamples = 9999,
    unpaired: Unpaired = "refuse",
    seed: Seed = 0,
) -> pd.DataFrame:
    """Runs by their mean, highest first: columns ``run, topics, mean, low, high``.

    ``scores``: of one measure, columns run, topic, value. The intervals are of the mean over topics
    like these: the percentile bootstrap, topics drawn in their order by the seed, which is what
    `equipoise score --intervals` writes. No end lies beyond the scores, and so none beyond the
    range of the measure. Between two runs they say little, for their scores are paired: look at the
    interval of a difference.

    Examples
    --------
    >>> scores = pd.DataFrame({"run": [*"aabb"], "topic": [*"1212"], "value": [0.2, 0.4, 0.5, 0.7]})
    >>> leaderboard(scores).round(2)
      run  topics  mean  low  high
    0   b       2   0.6  0.5   0.7
    1   a       2   0.3  0.2   0.4
    """
    wide = topic_by_run(scores, unpaired=unpaired)
    topics, runs = wide.shape
    if mean_intervals == "simultaneous":
        level = 1 - (1 - level) / runs
    columns = [wide[run] for run in wide.columns]
    ends = bootstrap_intervals(columns, seed, level=level, resamples=resamples)
    table = pd.DataFrame(
        {"topics": topics, "mean": wide.mean(), "low": ends[:, 0], "high": ends[:, 1]}
    )
    return table.sort_values("mean", ascending=False, kind="stable").reset_index(names="run")


@dataclass(frozen=True)
class Comparison:
    """What `compare_systems` finds.

    ``leaderboard``: the columns of `leaderboard`, and ``better_than``: the runs that it is
    significantly above. ``comparisons``: those of `compare_pairs`. ``topics``: ``topic, run, value,
    against, difference``: each score held against that of the baseline, or else of the run with the
    highest mean. Each begins with the columns of `by`.
    """

    measure: str
    baseline: str | None
    leaderboard: pd.DataFrame
    comparisons: pd.DataFrame
    topics: pd.DataFrame


@checked
def compare_systems(
    scores: pd.DataFrame,
    measure: str | None = None,
    by: Sequence[str] = (),
    *,
    baseline: str | None = None,
    test: PairedTest = "tukey",
    correction: Correction = "holm",
    level: Level = 0.95,
    mean_intervals: MeanIntervals = "marginal",
    resamples: Resamples = 9999,
    unpaired: Unpaired = "refuse",
    seed: Seed = 0,
) -> Comparison:
    """Hold runs against each other by one measure.

    ``scores``: columns run, topic, measure, value, and maybe attribute. ``measure`` may be left out
    where there is but one. ``by``: columns whose values are compared apart, such as attribute. A
    difference is significant where its corrected p is at most 1 - level. Raises ValueError as
    `compare_pairs` does, and where the measure has several attribute sets, which are not compared
    apart.
    """
    scores = tidy_scores(scores)
    measure = _only_measure(scores, measure)
    chosen = scores_of(scores, [measure])
    need_columns(chosen, by)
    attributes = chosen["attribute"].unique().tolist()
    if len(attributes) > 1 and "attribute" not in by:
        raise ValueError(
            f"{measure} has scores of {listed(attributes)}: "
            "compare them by attribute, or choose one"
        )
    boards, comparisons, differences = [], [], []
    groups = chosen.groupby(list(by), sort=False) if by else [((), chosen)]
    for key, part in groups:
        board = leaderboard(
            part,
            level=level,
            mean_intervals=mean_intervals,
            resamples=resamples,
            unpaired=unpaired,
            seed=seed,
        )
        pairs = compare_pairs(
            part,
            baseline=baseline,
            test=test,
            correction=correction,
            level=level,
            resamples=resamples,
            unpaired=unpaired,
            rng=np.random.default_rng(seed),
        )
        best = str(board["run"].iloc[0])
        wide = topic_by_run(part, unpaired=unpaired)[board["run"]]
        group = dict(zip(by, key, strict=True))
        boards.append(_led_by(group, board.assign(better_than=_beaten_by(board, pairs, level))))
        comparisons.append(_led_by(group, pairs))
        differences.append(_led_by(group, _by_topic(wide, baseline or best)))
    tables = (pd.concat(parts, ignore_index=True) for parts in (boards, comparisons, differences))
    return Comparison(measure, baseline, *tables)


def _only_measure(scores: pd.DataFrame, measure: str | None) -> str:
    """The measure that is asked for, or the only one that there is."""
    if measure is not None or "measure" not in scores.columns:
        return str(measure)
    names = scores["measure"].unique().tolist()
    if len(names) != 1:
        raise ValueError(f"name one measure of {listed(names, 40)}")
    return str(names[0])


def _led_by(group: Mapping[str, Any], table: pd.DataFrame) -> pd.DataFrame:
    """A table that begins with the columns of its group."""
    table = table.reset_index(drop=True)
    for place, (column, value) in enumerate(group.items()):
        table.insert(place, column, value)
    return table


def _beaten_by(board: pd.DataFrame, pairs: pd.DataFrame, level: float) -> list[str]:
    """For each run of a leaderboard, the runs that it is significantly above, between blanks."""
    significant = pairs[pairs["p_corrected"] <= significance(level)]
    is_first_above = significant["difference"] > 0
    above = significant["a"].where(is_first_above, significant["b"])
    below = significant["b"].where(is_first_above, significant["a"])
    beaten = below.groupby(above).agg(" ".join).to_dict()
    return [beaten.get(run, "") for run in board["run"]]


def _by_topic(wide: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Each score beside that of the reference run for its topic; ``wide``: (topics, runs)."""
    table = wide.rename_axis(columns="run").stack().rename("value").reset_index()  # noqa: PD013
    table["against"] = table["topic"].map(wide[reference])
    table["difference"] = table["value"] - table["against"]
    return table[table["run"] != reference].sort_values("topic", kind="stable")
