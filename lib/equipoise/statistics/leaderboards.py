"""Runs held against each other by one measure: their means with intervals, tests, and differences by topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

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
from equipoise.statistics.pairs import compare_pairs, topic_by_run


def scores_of(scores: pd.DataFrame, measures: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of the measures, of all where none are named, with a column ``attribute`` in any case."""
    need_columns(scores, ["run", "topic", "measure", "value"])
    if "attribute" not in scores.columns:
        scores = scores.assign(attribute="")
    if unknown := [name for name in measures if name not in set(scores["measure"])]:
        raise ValueError(
            f"no scores of {listed(unknown)}; there are {listed(scores['measure'].unique(), 40)}"
        )
    chosen = scores[scores["measure"].isin(measures)] if measures else scores
    return chosen.astype({"attribute": "str"}).fillna({"attribute": ""})


@checked
def leaderboard(
    scores: pd.DataFrame,
    *,
    level: Level = 0.95,
    mean_intervals: MeanIntervals = "marginal",
    unpaired: Unpaired = "refuse",
) -> pd.DataFrame:
    """Runs by their mean, highest first: columns ``run, topics, mean, low, high``.

    ``scores``: of one measure, columns run, topic, value. The intervals are of the mean over topics
    like these, by the t distribution; between two runs they say little, for their scores are
    paired: look at the interval of a difference.

    Examples
    --------
    >>> scores = pd.DataFrame({"run": [*"aabb"], "topic": [*"1212"], "value": [0.2, 0.4, 0.5, 0.7]})
    >>> leaderboard(scores).round(2)
      run  topics  mean   low  high
    0   b       2   0.6 -0.67  1.87
    1   a       2   0.3 -0.97  1.57
    """
    wide = topic_by_run(scores, unpaired=unpaired)
    share = (1 - level) / 2 / (wide.shape[1] if mean_intervals == "simultaneous" else 1)
    mean = wide.mean()
    reach = stats.t.isf(share, len(wide) - 1) * wide.std(ddof=1) / np.sqrt(len(wide))
    table = pd.DataFrame(
        {"topics": len(wide), "mean": mean, "low": mean - reach, "high": mean + reach}
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
    names = (
        scores["measure"].unique().tolist()
        if measure is None and "measure" in scores.columns
        else [measure]
    )
    if len(names) != 1:
        raise ValueError(f"name one measure of {listed(names, 40)}")
    chosen = scores_of(scores, [str(names[0])])
    need_columns(chosen, by)
    apart = chosen["attribute"].unique().tolist()
    if len(apart) > 1 and "attribute" not in by:
        raise ValueError(
            f"{names[0]} has scores of {listed(apart)}: compare them by attribute, or choose one"
        )
    parts: dict[str, list[pd.DataFrame]] = {"leaderboard": [], "comparisons": [], "topics": []}
    for key, part in chosen.groupby(list(by), sort=False) if by else [((), chosen)]:
        rng = np.random.default_rng(seed)
        options: Any = {"level": level, "unpaired": unpaired}
        board = leaderboard(part, mean_intervals=mean_intervals, **options)
        pairs = compare_pairs(
            part,
            baseline=baseline,
            test=test,
            correction=correction,
            resamples=resamples,
            rng=rng,
            **options,
        )
        sure, ahead = pairs[pairs["p_corrected"] <= 1 - level + 1e-12], pairs["difference"] > 0
        above, below = sure["a"].where(ahead, sure["b"]), sure["b"].where(ahead, sure["a"])
        beaten = below.groupby(above).agg(" ".join).to_dict()
        board["better_than"] = [beaten.get(name, "") for name in board["run"]]
        wide = topic_by_run(part, unpaired=unpaired)
        against = wide[baseline or board["run"].iloc[0]]
        long = wide[board["run"]].rename_axis(columns="run").stack().rename("value").reset_index()  # noqa: PD013
        long["against"] = long["topic"].map(against)
        long["difference"] = long["value"] - long["against"]
        long = long[long["run"] != against.name].sort_values("topic", kind="stable")
        for name, table in (("leaderboard", board), ("comparisons", pairs), ("topics", long)):
            table = table.reset_index(drop=True)
            for place, (column, value) in enumerate(zip(by, key if by else (), strict=True)):
                table.insert(place, column, value)
            parts[name].append(table)
    tables = {name: pd.concat(found, ignore_index=True) for name, found in parts.items()}
    return Comparison(str(names[0]), baseline, **tables)
