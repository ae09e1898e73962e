"""Runs compared by their scores: leaderboards, overviews of several measures, gaps of groups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, product
from string import ascii_lowercase

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, ratio
from equipoise.declared import Direction, checked
from equipoise.errors import excerpt, listed, need_columns, need_distinct_groups
from equipoise.options import (
    Correction,
    Level,
    MeanIntervals,
    PairedTest,
    Resamples,
    Seed,
    Unpaired,
)
from equipoise.statistics.intervals import (
    intervals_of_means,
    percentile_interval,
    resampled_ratios,
)
from equipoise.statistics.pairs import (
    compare_pairs,
    corrected_of_family,
    significance,
    topic_by_run,
)


def scores_of(scores: pd.DataFrame, measures: Sequence[str] = ()) -> pd.DataFrame:
    """Return the rows of the measures, by default of all, always with a column ``attribute``."""
    need_columns(scores, ["run", "topic", "measure", "value"])
    if "attribute" not in scores.columns:
        scores = scores.assign(attribute="")
    names = scores["measure"].unique().tolist()
    unknown = [name for name in measures if name not in names]
    if unknown:
        raise ValueError(f"no scores of {listed(unknown)}; the scores have {listed(names, 40)}")
    if measures:
        scores = scores[scores["measure"].isin(measures)]
    scores = scores.fillna({"attribute": "", "topic": ""})
    # Ids as texts: a bootstrap samples sorted topics, whose order must not depend on their type.
    return scores.astype({"attribute": "str", "topic": "str", "run": "str"})


# --- one measure ----------------------------------------------------------------------------------


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
    """Sort runs by their mean, highest first: columns ``run, topics, mean, low, high``.

    ``scores``: of one measure, columns run, topic, value. The intervals of the mean over topics are
    those of `mean_interval`: NaN below 10 topics. The scores of two runs are paired: compare them
    by the interval of their difference, not by these.

    Examples
    --------
    >>> scores = pd.DataFrame({"run": [*"ab"] * 10, "topic": np.arange(20) // 2})
    >>> leaderboard(scores.assign(value=np.arange(20) / 20)).round(2)
      run  topics  mean   low  high
    0   b      10  0.50  0.28  0.72
    1   a      10  0.45  0.23  0.67
    """
    wide = topic_by_run(scores, unpaired=unpaired)
    topics, runs = wide.shape
    if mean_intervals == "simultaneous":
        level = 1 - (1 - level) / runs
    columns = [wide[run] for run in wide.columns]
    ends = intervals_of_means(columns, seed, level=level, resamples=resamples)
    table = pd.DataFrame(
        {"topics": topics, "mean": wide.mean(), "low": ends[:, 0], "high": ends[:, 1]}
    )
    return table.sort_values("mean", ascending=False, kind="stable").reset_index(names="run")


@dataclass(frozen=True)
class Comparison:
    """Result of `compare_systems`.

    ``leaderboard`` has the columns of `leaderboard`, and ``higher_than`` with the runs whose mean
    is significantly lower. ``comparisons`` has the columns of `compare_pairs`. ``topics`` compares
    each score with the score of the baseline, or of the run with the highest mean, in the columns
    ``topic, run, value, against, difference``. Each table begins with the columns of `by`.
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
    """Compare runs by one measure.

    ``scores``: columns run, topic, measure, value, and maybe attribute. ``measure`` is optional
    where there is only one. ``by``: columns whose values are compared separately, such as
    attribute. A difference is significant where its corrected p is at most 1 - level. Raises
    ValueError as `compare_pairs` does, and where the measure has several attribute sets that are
    not compared separately. The p-values are corrected over all tables of ``by`` together; only
    those of Tukey's test are of one table each.
    """
    chosen = scores_of(scores, [measure] if measure else ())
    if measure is None:
        names = chosen["measure"].unique().tolist()
        if len(names) != 1:
            raise ValueError(f"name one measure of {listed(names, 40)}")
        measure = str(names[0])
    need_columns(chosen, by)
    attributes = chosen["attribute"].unique().tolist()
    if len(attributes) > 1 and "attribute" not in by:
        raise ValueError(
            f"{measure} has scores of several attribute sets ({listed(map(excerpt, attributes))}); "
            "compare by attribute, or choose one set"
        )
    tables: dict[str, list[pd.DataFrame]] = {"leaderboard": [], "comparisons": [], "topics": []}
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
            correction="none",
            level=level,
            resamples=resamples,
            unpaired=unpaired,
            rng=np.random.default_rng(seed),
        )
        wide = topic_by_run(part, unpaired=unpaired)[board["run"]]
        topics = _by_topic(wide, baseline or str(board["run"].iloc[0]))
        for name, table in zip(tables, (board, pairs, topics), strict=True):
            group = pd.DataFrame(dict(zip(by, key, strict=True)), index=range(len(table)))
            tables[name].append(group.join(table.reset_index(drop=True)))
    if test != "tukey":
        p = pd.concat(tables["comparisons"])["p"].to_numpy()
        ends = np.cumsum([len(pairs) for pairs in tables["comparisons"]])[:-1]
        parts = np.split(corrected_of_family(p, correction), ends)
        for pairs, p_corrected in zip(tables["comparisons"], parts, strict=True):
            pairs["p_corrected"] = p_corrected
    for board, pairs in zip(tables["leaderboard"], tables["comparisons"], strict=True):
        higher_than = _significantly_lower(pairs, board["run"], level)
        board["higher_than"] = [" ".join(higher_than[run]) for run in board["run"]]
    joined = {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}
    return Comparison(measure, baseline, **joined)


def _significantly_lower(
    pairs: pd.DataFrame, runs: Iterable[str], level: float, sign: float = 1.0
) -> dict[str, list[str]]:
    """Return for each run the significantly lower runs; the higher ones if ``sign`` is -1."""
    lower: dict[str, list[str]] = {run: [] for run in runs}
    significant = pairs[pairs["p_corrected"] <= significance(level)]
    for row in significant.itertuples():
        gap = sign * row.difference
        if gap > 0:
            lower[row.a].append(row.b)
        elif gap < 0:
            lower[row.b].append(row.a)
    return lower


def _by_topic(wide: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Compare each score with the reference run for its topic; ``wide`` is (topics, runs)."""
    table = wide.rename_axis(columns="run").stack().rename("value").reset_index()  # noqa: PD013
    table["against"] = table["topic"].map(wide[reference])
    table["difference"] = table["value"] - table["against"]
    return table[table["run"] != reference].sort_values("topic", kind="stable")


# --- several measures, and every pair -------------------------------------------------------------


def letters(n: int) -> list[str]:
    """Name n runs by letters: a to z, then aa, ab and so on.

    >>> letters(28)[-3:]
    ['z', 'aa', 'ab']
    """
    words = (product(ascii_lowercase, repeat=size) for size in count(1))
    return list(map("".join, islice(chain.from_iterable(words), n)))


@checked
def overview(
    comparisons: Mapping[str, Comparison],
    directions: Mapping[str, Direction] | None = None,
    *,
    level: Level = 0.95,
) -> pd.DataFrame:
    """List the means of runs by each measure, with letters for significance, and the best.

    ``comparisons`` are by the name of the measure, without further groups, and have the same runs.
    ``directions`` are by the same names; the default is that higher is better. Returns the columns
    ``run, letter, measure, mean, low, high, better_than, best``, with runs in the order of the
    first measure's leaderboard. ``better_than`` has the letters of the significantly worse runs. If
    neither direction is better, it has those with a lower mean, and ``best`` is False. The p-values
    are corrected within a measure and not over the measures.

    >>> from equipoise.statistics import compare_systems
    >>> scores = pd.DataFrame({"topic": [*"abcabc"], "run": [*"xxxyyy"], "measure": "P"})
    >>> scores["value"] = [1, 2, 3, 2.5, 3.6, 4.4]
    >>> overview({"P": compare_systems(scores, test="t")})[["run", "letter", "better_than", "best"]]
      run letter better_than   best
    0   y      a           b   True
    1   x      b              False
    """
    runs = next(iter(comparisons.values())).leaderboard["run"].tolist()
    letter_of = dict(zip(runs, letters(len(runs)), strict=True))
    between = "," if len(runs) > 26 else ""
    tables = []
    for name, comparison in comparisons.items():
        board = comparison.leaderboard.set_index("run")
        other_runs = sorted(set(board.index) ^ set(runs))
        if other_runs:
            raise ValueError(
                f"{name} and the first measure must have the same runs, got other runs"
                f" {listed(other_runs)}; score all runs by all measures, or choose measures"
            )
        direction = (directions or {}).get(name, "higher is better")
        sign = -1.0 if direction == "lower is better" else 1.0
        better_than = _significantly_lower(comparison.comparisons, runs, level, sign)
        table = board.loc[runs, ["mean", "low", "high"]].reset_index()
        oriented = sign * table["mean"]
        table["best"] = (oriented == oriented.max()) & (direction != "neither")
        table["letter"] = table["run"].map(letter_of)
        table["better_than"] = [
            between.join(letter_of[other] for other in runs if other in better_than[run])
            for run in runs
        ]
        tables.append(table.assign(measure=name))
    columns = ["run", "letter", "measure", "mean", "low", "high", "better_than", "best"]
    return pd.concat(tables, ignore_index=True)[columns]


def pair_matrix(comparison: Comparison) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the difference of each run minus each other, and the corrected p: (runs, runs).

    The runs are in the order of the leaderboard; NaN on the diagonals.

    >>> from equipoise.statistics import compare_systems
    >>> scores = pd.DataFrame({"topic": [*"abcabc"], "run": [*"xxxyyy"], "measure": "P"})
    >>> scores["value"] = [1, 2, 3, 2.5, 3.6, 4.4]
    >>> differences, p_values = pair_matrix(compare_systems(scores, test="t"))
    >>> differences.round(2).to_numpy().tolist()
    [[nan, 1.5], [-1.5, nan]]
    """
    runs = comparison.leaderboard["run"].tolist()
    pairs = comparison.comparisons
    mirrored = pairs.rename(columns={"a": "b", "b": "a"}).assign(difference=-pairs["difference"])
    wide = pd.concat([pairs, mirrored]).pivot(index="a", columns="b")  # noqa: PD010
    differences, p_values = (
        wide[name].reindex(index=runs, columns=runs).rename_axis(index=None, columns=None)
        for name in ("difference", "p_corrected")
    )
    return differences, p_values


# --- gaps between groups --------------------------------------------------------------------------


_PART_OF_A_GROUP = re.compile(r"(?P<before>.*)\(group=(?P<group>[^()]*)\)(?P<behind>.*)")


def with_groups(
    scores: pd.DataFrame, group_of_topic: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Add a column ``group``: of the topics, or that of a measure such as D(group=G).

    Without groups of topics only measures of groups remain, and lose the group from their names.
    A topic without a group raises ValueError.
    """
    table = scores_of(scores)
    table = table[table["topic"].notna() & (table["topic"] != "")]
    if group_of_topic is not None:
        need_distinct_groups(group_of_topic.values())
        groups = table["topic"].map(group_of_topic)
        missing = table.loc[groups.isna(), "topic"].unique()
        if len(missing):
            raise ValueError(
                f"every topic must have a group, got none for {len(missing)} topics "
                f"({listed(missing)})"
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


def _gaps_of_means(means: Floats) -> dict[str, Floats]:
    """Difference and ratio, shaped (...), of means of groups shaped (..., groups).

    NaN where a group has no mean; the ratio also where a mean is negative, or all are 0.
    """
    smallest, largest = means.min(axis=-1), means.max(axis=-1)
    ratios = np.where(smallest < 0, np.nan, ratio(smallest, largest, np.nan))
    return {"difference": largest - smallest, "ratio": ratios}


@checked
def group_gaps(
    scores: pd.DataFrame, *, level: Level = 0.95, resamples: Resamples = 9999, seed: Seed = 0
) -> pd.DataFrame:
    r"""Measure how far apart the means of groups are, for every run, attribute and measure.

    .. math:: difference = \max_g \bar{x}_g - \min_g \bar{x}_g, \quad
        ratio = \min_g \bar{x}_g / \max_g \bar{x}_g

    with the mean :math:`\bar{x}_g` over the topics of group g. ``scores``: columns run, topic,
    measure, value, ``group``, and maybe attribute, as `with_groups` returns them: a topic has a
    value for each group, or is in one of them. Returns ``run, attribute, measure, groups, topics``,
    ``largest, smallest`` (names of groups), ``gap`` (difference or ratio), ``value, low, high``:
    percentile interval over resampled topics, the same for all groups. The ratio is NaN where a
    mean is negative or all are 0.

    A difference is never below 0, and neither is its interval: an interval above 0 does not mean
    that groups differ. Compare it with what you would tolerate.

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
        raise ValueError("a topic has two values of one group; each must be unique")
    rows = []
    for key, part in table.groupby(keys, sort=False):
        values = part.pivot(index="topic", columns="group", values="value").sort_index()  # noqa: PD010
        n_topics, n_groups = values.shape
        if n_groups < 2:
            name = ", ".join(filter(None, key))
            raise ValueError(f"a gap needs two groups, got {n_groups} for {name}")
        means = values.mean()
        gaps = _gaps_of_means(means.to_numpy())
        # The mean of a group over resampled topics: a sum over a number of topics.
        sums, topics = values.fillna(0.0).to_numpy(np.float64), values.notna().to_numpy(np.float64)
        resampled = _gaps_of_means(resampled_ratios(sums, topics, seed, resamples))
        for name, value in gaps.items():
            row = dict(zip(keys, key, strict=True))
            row |= {"groups": n_groups, "topics": n_topics}
            row |= {"largest": means.idxmax(), "smallest": means.idxmin()}
            low, high = percentile_interval(resampled[name], level)
            rows.append(row | {"gap": name, "value": float(value), "low": low, "high": high})
    return pd.DataFrame(rows)
