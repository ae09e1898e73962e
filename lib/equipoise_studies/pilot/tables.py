"""Outcomes of the two-round protocol: statistics, and what changes between trials."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.measures.protocol import shares
from equipoise.measures.worst_cases import worst_cases
from equipoise.problems import need_columns, refuse_twice
from equipoise.statistics import resampled, topic_by_run
from equipoise_studies.pilot.outcomes import outcome_scores

_TURN = ["run", "topic", "turn"]


def _wide(outcomes: pd.DataFrame) -> pd.DataFrame:
    """The outcomes, checked: a row a topic, columns turn and run, in order of appearance."""
    need_columns(outcomes, [*_TURN, "outcome"])
    refuse_twice(outcomes, _TURN, "an outcome comes")
    is_outcome = outcomes["outcome"].isin(["o", "x", "-"])
    is_turn = outcomes["turn"].isin([1, 2])
    if not (is_outcome & is_turn).all():
        raise ValueError("outcomes are o, x or - of turn 1 or 2")
    wide = outcomes.pivot_table(
        index="topic", columns=["turn", "run"], values="outcome", aggfunc="first"
    )
    topics = outcomes["topic"].drop_duplicates()
    runs = outcomes["run"].drop_duplicates()
    wide = wide.reindex(index=topics, columns=pd.MultiIndex.from_product([[1, 2], runs]))

    first, second = wide[1], wide[2]
    if (first.isna() != second.isna()).any(axis=None):
        raise ValueError(
            "every topic of a run needs an outcome of both turns; write - for a turn that was not "
            "held"
        )
    ends_after_useful = (first == "o") & (second == "-")
    if ((first == "-") | ends_after_useful).any(axis=None):
        raise ValueError(
            "only a second turn can be missing, and only behind a first that was not useful"
        )
    return wide


def outcome_grid(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Outcomes side by side, a row for each topic, as gfrc's Figures 2 to 4 show them.

    ``outcomes`` (columns run, topic, turn, outcome): ``o``, ``x`` or ``-`` of turns 1 and 2.
    """
    wide = _wide(outcomes)
    grid = pd.DataFrame(index=wide.index)
    for run in wide[1]:
        for turn in (1, 2):
            grid[f"{run} S{turn}"] = wide[turn, run]
    return grid.fillna("").rename_axis("topic").reset_index()


def outcome_statistics(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Statistics of the outcomes of each run: shares between 0 and 1, and counts (gfrc, section 5).

    Columns are run, topics, useful 1, useful 2, average useful, unsuccessful, recovered, recovery,
    which is NaN where every first turn was useful.
    """
    wide = _wide(outcomes)
    if wide.isna().to_numpy().any():
        raise ValueError("every run needs the same topics")
    first = wide[1].to_numpy().T == "o"  # (runs, topics)
    second = wide[2].to_numpy().T == "o"
    turns, average, recovery = shares(first, second)
    return pd.DataFrame(
        {
            "run": wide[1].columns.astype("str"),
            "topics": first.shape[-1],
            "useful 1": turns[:, 0],
            "useful 2": turns[:, 1],
            "average useful": average,
            "unsuccessful": (~first).sum(axis=-1),
            "recovered": (~first & second).sum(axis=-1),
            "recovery": recovery,
        }
    )


def outcome_pairs(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Both outcomes of each conversation as one word, such as ``ox``: columns run, topic, pair."""
    ordered = outcomes.sort_values("turn", kind="stable")
    pairs = ordered.groupby(["run", "topic"], sort=False)["outcome"].agg("".join)
    return pairs.rename("pair").reset_index()


def statistics_by_type(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Statistics of all topics, then by ``type`` of topic; shares in percent, named as in gfrc."""
    parts = [outcome_statistics(outcomes)]
    for kind, rows in outcomes.groupby("type", sort=False):
        part = outcome_statistics(rows)
        parts.append(part.assign(run=part["run"] + f", {kind} topics"))
    table = pd.concat(parts, ignore_index=True)
    percent = ["useful 1", "useful 2", "average useful", "recovery"]
    table[percent] *= 100
    return table.rename(columns={name: f"%{name}" for name in percent})


def statistics_of_counts(counts: pd.DataFrame, topics: int) -> pd.DataFrame:
    """Statistics, with %recovery, of runs that are known by the columns unsuccessful, recovered.

    Of a topic whose first turn did not fail the second is taken as useful, which recovery does not
    depend on.
    """
    trials = counts.loc[counts.index.repeat(topics)]
    trials = trials.assign(topic=np.tile(np.arange(topics), len(counts)))
    failed = trials["topic"] < trials["unsuccessful"]
    recovered = trials["topic"] < trials["recovered"]
    outcomes = trials[["run", "topic"]].copy()
    outcomes[1] = np.where(failed, "x", "o")
    outcomes[2] = np.where(failed & ~recovered, "x", "o")
    tidy = outcomes.melt(["run", "topic"], var_name="turn", value_name="outcome")
    table = outcome_statistics(tidy)
    table["%recovery"] = 100 * table["recovery"]
    return table


def changed_topics(outcomes: pd.DataFrame) -> pd.DataFrame:
    """How many of the pairs of conversations about a topic, one of each run, end differently.

    Columns are topic, value (the share), pairs (of runs).
    """
    counts = outcome_pairs(outcomes).groupby(["topic", "pair"], sort=False).size()
    same = (counts * (counts - 1) / 2).groupby("topic", sort=False).sum()
    runs = counts.groupby("topic", sort=False).sum()
    pairs = runs * (runs - 1) / 2
    table = pd.DataFrame({"value": 1 - same / pairs, "pairs": pairs}).reset_index()
    return table[table["pairs"] > 0].reset_index(drop=True)


def failures_in_sequence(outcomes: pd.DataFrame) -> pd.DataFrame:
    """How often a first turn fails after a success and a failure at the topic before it.

    Topics in the order of the rows. Columns are failed_before, share (of the turns that fail),
    turns.
    """
    first_turns = outcomes[outcomes["turn"] == 1].assign(failed=outcomes["outcome"] == "x")
    first_turns["failed_before"] = first_turns.groupby("run")["failed"].shift()
    with_topic_before = first_turns.dropna(subset="failed_before")
    failures = with_topic_before.groupby("failed_before")["failed"]
    return failures.agg(share="mean", turns="size").reset_index()


def failures_after_useful(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Conversations whose first turn was useful: columns run, topic, failed (the second turn)."""
    pairs = outcome_pairs(outcomes)
    pairs["failed"] = pairs["pair"] == "ox"
    first_was_useful = pairs["pair"].str.startswith("o")
    return pairs.loc[first_was_useful, ["run", "topic", "failed"]].reset_index(drop=True)


def repeated_urls(turns: pd.DataFrame, *, useful: bool = False) -> pd.DataFrame:
    """Count the URLs of each conversation that has any, and how many of them it repeats.

    ``turns`` (columns run, topic, turn, system) are system turns; columns of the counts are run,
    topic, urls, repeated. Brackets and punctuation around a URL do not count. ``useful`` counts
    only conversations with two useful turns, which the column ``outcome`` tells.

    gfrc, section 5: URLs overlap across the turns, and within a list; such duplicates should not be
    rewarded.
    """
    need_columns(turns, [*_TURN, "system"])
    if useful:
        pairs = outcome_pairs(turns).query("pair == 'oo'")
        turns = turns.merge(pairs[["run", "topic"]], on=["run", "topic"])
    ordered = turns.reset_index(drop=True).sort_values("turn", kind="stable")
    # a Markdown link names its address twice: [address](address)
    text = ordered["system"].str.replace(r"\[(https?://[^\]\s]+)\]\(\1\)", r"\1", regex=True)
    ordered["url"] = text.str.findall(r"https?://[^\s<>()\[\]\"']+")
    urls = ordered.explode("url").dropna(subset="url")
    urls["url"] = urls["url"].str.rstrip(".,:;!?")
    urls["repeated"] = urls.duplicated(["run", "topic", "url"])
    by_conversation = urls.sort_index(kind="stable").groupby(["run", "topic"], sort=False)
    return by_conversation["repeated"].agg(urls="size", repeated="sum").reset_index()


def worst_of_trials(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Useful turns and recovery: means over topics of all trials, the worst, and the worst half."""
    cases = worst_cases(outcome_scores(outcomes).drop(columns=["system"]), "trial", worst=0.5)
    table = cases.groupby(["measure", "case"], sort=False)["value"].mean().reset_index()
    wide = table.pivot_table(index="measure", columns="case", values="value", sort=False)
    return wide.rename_axis(columns=None).reset_index()


def sample_sizes(
    outcomes: pd.DataFrame, systems: int, differences: Sequence[float] = (0.05, 0.1)
) -> pd.DataFrame:
    """Topics that tell so many systems apart by useful turns (Sakai 2016), of one or two trials."""
    scores = outcome_scores(outcomes).query("measure == 'average useful'")
    columns = ["trials", "systems", "variance", "low", "high", "difference", "power"]
    columns += ["needed", "needed_low", "needed_high", "power_now"]
    rows = []
    for trials, scores_of_runs in {1: scores, 2: _in_pairs_of_trials(scores)}.items():
        if scores_of_runs["run"].nunique() < 2:
            continue  # nothing says how much is the system's
        for difference in differences:
            size = _topic_set_size(scores_of_runs, systems, difference)
            rows.append({"trials": trials, **size})
    return pd.DataFrame(rows, columns=columns)


def _topic_set_size(scores: pd.DataFrame, systems: int, difference: float) -> dict[str, float]:
    """Return the required topics by one-way analysis of variance (Sakai 2016), power 80%, p < .05.

    The variance is within runs over topics; ``low, high`` is its 95% bootstrap interval.
    """
    values = topic_by_run(scores).to_numpy()  # shape (topics, runs)

    def variance_at(topics: np.ndarray) -> float:
        return float(values[topics].var(axis=0, ddof=1).mean())

    def power(topics: int, variance: float) -> float:
        freedom = (systems - 1, systems * (topics - 1))
        # The smallest noncentrality: all systems but the best and the worst are in the middle.
        noncentrality = topics * difference**2 / (2 * variance)
        critical_value = stats.f.isf(0.05, *freedom)
        return float(stats.ncf.sf(critical_value, *freedom, noncentrality))

    def needed(variance: float) -> int:
        if variance == 0:
            return 2
        place = bisect_left(range(2, 100_000), 0.8, key=lambda topics: power(topics, variance))
        return place + 2

    variance, low, high = resampled(variance_at, len(values), np.random.default_rng(0))
    return {
        "systems": systems,
        "variance": variance,
        "low": low,
        "high": high,
        "difference": difference,
        "power": 0.8,
        "needed": needed(variance),
        "needed_low": needed(low),
        "needed_high": needed(high),
        "power_now": power(len(values), variance) if variance else 1.0,
    }


def _in_pairs_of_trials(scores: pd.DataFrame) -> pd.DataFrame:
    """Means over two trials each; a last one without a partner is left out."""
    runs = scores["run"].drop_duplicates().tolist()
    pair_of_run = {}
    for place, run in enumerate(runs[: len(runs) // 2 * 2]):
        pair_of_run[run] = f"trials {place // 2 + 1}"
    paired = scores.assign(run=scores["run"].map(pair_of_run))
    return paired.groupby(["run", "topic", "measure"], as_index=False)["value"].mean()


def sample_size_said(sizes: pd.DataFrame, topics: int) -> str:
    """What the table of `sample_sizes` says of the record's own size."""
    if sizes.empty:
        return "One trial does not say how many topics it would take."
    parts = []
    for row in sizes.itertuples():
        plural = "s" if row.trials > 1 else ""
        interval = f"{row.needed:,} [{row.needed_low:,}, {row.needed_high:,}]"
        parts.append(
            f"{interval} for {100 * row.difference:g} points, {row.trials} trial{plural} each"
        )
    verdict = "are enough for none of these"
    detected = sizes.loc[sizes["needed"] <= topics, "difference"]
    if len(detected):
        verdict = f"are enough for {100 * detected.min():g} points"
    return (
        f"Topics that it would take to find a difference between {sizes['systems'].iloc[0]} "
        "systems, of which the best and the worst differ by so much, "
        f"{sizes['power'].iloc[0]:.0%} of the time: {'; '.join(parts)}. The {topics} topics of "
        f"this record {verdict}."
    )
