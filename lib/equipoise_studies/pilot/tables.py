"""Outcomes of the two-round protocol: their statistics, by type of topic too, and what changes between trials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from equipoise.measures.protocol import shares
from equipoise.measures.worst_cases import worst_cases
from equipoise.problems import need_columns, refuse_twice
from equipoise.statistics import topic_set_size
from equipoise_studies.pilot.outcomes import outcome_scores

_TURN = ["run", "topic", "turn"]


def _wide(outcomes: pd.DataFrame) -> pd.DataFrame:
    """The outcomes, checked: a row for each topic, columns turn and run, all in the order of their first row."""
    need_columns(outcomes, [*_TURN, "outcome"])
    refuse_twice(outcomes, _TURN, "an outcome comes")
    if (
        not outcomes["outcome"].isin(["o", "x", "-"]).all()
        or not outcomes["turn"].isin([1, 2]).all()
    ):
        raise ValueError("outcomes are o, x or - of turn 1 or 2")
    runs, topics = (outcomes[name].drop_duplicates() for name in ("run", "topic"))
    wide = outcomes.pivot_table(
        index="topic", columns=["turn", "run"], values="outcome", aggfunc="first"
    )
    wide = wide.reindex(index=topics, columns=pd.MultiIndex.from_product([[1, 2], runs]))
    first, second = wide[1], wide[2]
    if (first.isna() != second.isna()).any(axis=None):
        raise ValueError(
            "every topic of a run needs an outcome of both turns; write - for a turn that was not held"
        )
    if ((first == "-") | ((first == "o") & (second == "-"))).any(axis=None):
        raise ValueError(
            "only a second turn can be missing, and only behind a first that was not useful"
        )
    return wide


def outcome_grid(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Outcomes side by side, a row for each topic, as gfrc's Figures 2 to 4 show them.

    ``outcomes`` (columns run, topic, turn, outcome): ``o``, ``x`` or ``-`` of turns 1 and 2.
    """
    wide = _wide(outcomes)
    grid = pd.DataFrame({f"{run} S{turn}": wide[turn, run] for run in wide[1] for turn in (1, 2)})
    return grid.fillna("").rename_axis("topic").reset_index()


def outcome_statistics(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Statistics of the outcomes of each run: shares between 0 and 1, and counts (gfrc, section 5).

    Columns are run, topics, useful 1, useful 2, average useful, unsuccessful, recovered, recovery,
    which is NaN where every first turn was useful.
    """
    wide = _wide(outcomes)
    if wide.isna().to_numpy().any():
        raise ValueError("every run needs the same topics")
    first, second = (wide[turn].to_numpy().T == "o" for turn in (1, 2))
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
    """Statistics of all topics, then of each ``type`` of topic; shares in percent, named as in gfrc."""
    parts = [outcome_statistics(outcomes)]
    for kind, rows in outcomes.groupby("type", sort=False):
        part = outcome_statistics(rows)
        parts.append(part.assign(run=part["run"] + f", {kind} topics"))
    table = pd.concat(parts, ignore_index=True)
    percent = ["useful 1", "useful 2", "average useful", "recovery"]
    table[percent] *= 100
    return table.rename(columns={name: f"%{name}" for name in percent})


def statistics_of_counts(counts: pd.DataFrame, topics: int) -> pd.DataFrame:
    """Statistics, with %recovery, of runs whose outcomes are told by counts only: columns run, unsuccessful, recovered.

    Of a topic whose first turn did not fail the second is taken as useful, which recovery does not
    depend on.
    """
    told = counts.loc[counts.index.repeat(topics)].assign(
        topic=np.tile(np.arange(topics), len(counts))
    )
    failed, recovered = told["topic"] < told["unsuccessful"], told["topic"] < told["recovered"]
    pairs = told[["run", "topic"]].copy()
    pairs[1], pairs[2] = np.where(failed, "x", "o"), np.where(failed & ~recovered, "x", "o")
    table = outcome_statistics(pairs.melt(["run", "topic"], var_name="turn", value_name="outcome"))
    return table.assign(**{"%recovery": 100 * table["recovery"]})


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
    """How often a first turn fails after a success and after a failure at the topic before it, in the rows' order.

    Columns are failed_before, share (of the turns that fail), turns.
    """
    first = outcomes[outcomes["turn"] == 1].assign(failed=outcomes["outcome"] == "x")
    first["failed_before"] = first.groupby("run")["failed"].shift()
    behind = first.dropna(subset="failed_before").groupby("failed_before")["failed"]
    return behind.agg(share="mean", turns="size").reset_index()


def failures_after_useful(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Conversations whose first turn was useful, and whether the second failed: columns run, topic, failed."""
    pairs = outcome_pairs(outcomes)
    pairs["failed"] = pairs["pair"] == "ox"
    return pairs.loc[pairs["pair"].str.startswith("o"), ["run", "topic", "failed"]].reset_index(
        drop=True
    )


def repeated_urls(turns: pd.DataFrame, *, useful: bool = False) -> pd.DataFrame:
    """Count the URLs of each conversation that has any, and those among them that stood in it before.

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
    found = (
        ordered.assign(url=text.str.findall(r"https?://[^\s<>()\[\]\"']+"))
        .explode("url")
        .dropna(subset="url")
    )
    found = found.assign(url=found["url"].str.rstrip(".,:;!?"))
    found = found.assign(again=found.duplicated(["run", "topic", "url"]))
    again = found.sort_index(kind="stable").groupby(["run", "topic"], sort=False)["again"]
    return again.agg(urls="size", repeated="sum").reset_index()


def worst_of_trials(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Useful turns and recovery over topics: the mean of the trials of each, the worst one, and the worst half."""
    cases = worst_cases(outcome_scores(outcomes).drop(columns=["system"]), "trial", worst=0.5)
    table = cases.groupby(["measure", "case"], sort=False)["value"].mean().reset_index()
    wide = table.pivot_table(index="measure", columns="case", values="value", sort=False)
    return wide.rename_axis(columns=None).reset_index()


def sample_sizes(
    outcomes: pd.DataFrame, systems: int, differences: Sequence[float] = (0.05, 0.1)
) -> pd.DataFrame:
    """Topics it takes to tell so many systems apart by their share of useful turns (Sakai 2016), and of two trials."""
    scores = outcome_scores(outcomes).query("measure == 'average useful'")
    runs = scores["run"].drop_duplicates().tolist()
    pairs = dict(
        zip(runs, (f"trials {place // 2 + 1}" for place in range(len(runs) // 2 * 2)), strict=False)
    )
    paired = scores.assign(run=scores["run"].map(pairs)).groupby(
        ["run", "topic", "measure"], as_index=False
    )
    columns = ["trials", "systems", "variance", "low", "high", "difference", "power"]
    tables = [pd.DataFrame(columns=[*columns, "needed", "needed_low", "needed_high", "power_now"])]
    for trials, own in {1: scores, 2: paired["value"].mean()}.items():
        if len(own["run"].drop_duplicates()) > 1:  # else nothing says how much is the system's
            sizes = [
                topic_set_size(own, difference=difference, systems=systems)
                for difference in differences
            ]
            tables.append(pd.concat(sizes).assign(trials=trials)[tables[0].columns])
    return pd.concat(tables[1:] or tables, ignore_index=True)


def sample_size_said(sizes: pd.DataFrame, topics: int) -> str:
    """What the table of `sample_sizes` says of the record's own size."""
    if sizes.empty:
        return "One trial does not say how many topics it would take."
    told = [
        f"{row.needed:,} [{row.needed_low:,}, {row.needed_high:,}] for {100 * row.difference:g} points, "
        f"{row.trials} trial{'s' if row.trials > 1 else ''} each"
        for row in sizes.itertuples()
    ]
    enough = sizes.loc[sizes["needed"] <= topics, "difference"]
    now = (
        f"are enough for {100 * enough.min():g} points"
        if len(enough)
        else "are enough for none of these"
    )
    asked = f"{sizes['systems'].iloc[0]} systems, of which the best and the worst differ by so much"
    return (
        f"Topics that it would take to find a difference between {asked}, {sizes['power'].iloc[0]:.0%} of the time: "
        f"{'; '.join(told)}. The {topics} topics of this record {now}."
    )
