"""Tables of thesis chapter 4, and of its replica on small collections; ``sets`` are collections by query set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise import project
from equipoise.attributes import read_attributes
from equipoise.measures import ranking_bias as bias
from equipoise.measures.effectiveness import effectiveness
from equipoise.measures.rank_overlap import crbo
from equipoise.nuggets import read_nuggets
from equipoise.reports.printed import printed_table
from equipoise.statistics import compare_pairs
from equipoise.studies.ranking_bias.data import WORLDS, BiasCollection
from equipoise.studies.recording import read_settings

Sets = Mapping[str, BiasCollection]
Counts = Mapping[str, bias.TermCounts]

MEASURES = ["MRR", "nDCG", "NFaiRR", "TExFAIR"]
"""Columns of Table 4.1."""

ABOVE = "significantly above the baseline"

_KEYS = ["queries", "run"]


def _on_each(sets: Iterable[str], table_of: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """The table of each query set, with a column ``queries`` that names it."""
    return pd.concat({label: table_of(label) for label in sets}, names=["queries"]).reset_index("queries")


def one_sided_rankings(lists: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Figure 4.1: scores of rankings whose documents speak of one group each, one neutral document in the background.

    ``lists``: columns ``ranking, rank, group``. Each document has the same length, and one representative term more
    than the threshold of neutrality.
    """
    mentions = pd.get_dummies(lists["group"], dtype=float).mul(threshold + 1).groupby(lists["ranking"], sort=False)
    magnitudes = np.stack([part.to_numpy() for _, part in mentions])
    ranks = magnitudes.shape[1]
    omega = bias.neutrality(magnitudes, threshold=threshold)
    ideal = bias.ideal_fairr(np.append(omega.ravel(), 1.0), [ranks])
    return pd.DataFrame(
        {
            "ranking": [name for name, _ in mentions],
            "NFaiRR": bias.nfairr(bias.fairr(omega, [ranks]), ideal)[:, 0],
            "TExFAIR": bias.texfair(magnitudes, np.full(omega.shape, 10), [ranks])[:, 0],
        }
    )


# --- the replica --------------------------------------------------------------------------------------------------


def term_counts(sets: Sets, groups: Sequence[bias.TermGroups], tokens: Any) -> dict[str, bias.TermCounts]:
    """The terms of all groups, counted in every collection."""
    terms = {term for group in groups for term in group.terms}
    return {label: bias.count_terms(held.documents(), terms, tokens=tokens) for label, held in sets.items()}


def described(sets: Sets, counts: Counts, groups: bias.TermGroups, threshold: float) -> pd.DataFrame:
    """Sizes of the collections, and how many of their documents have representative terms or are neutral."""
    kinds = ["with a representative term", "neutral (Eq. 4.1)"]
    rows = []
    for label, held in sets.items():
        magnitudes = counts[label].magnitudes(groups)
        speaking, neutral = magnitudes.sum(axis=1) > 0, bias.neutrality(magnitudes, threshold=threshold) == 1
        rows.append((label, held.name, len(held.queries), len(magnitudes), speaking.sum(), neutral.sum()))
    return pd.DataFrame(rows, columns=["queries", "collection", "number of queries", "documents", *kinds])


def fairness(runs: pd.DataFrame, counts: Counts, groups: bias.TermGroups, **options: Any) -> pd.DataFrame:
    """`score_ranking_bias` of the runs on each query set; NFaiRR is 0 where its ideal is."""

    def scored(label: str) -> pd.DataFrame:
        return bias.score_ranking_bias(
            runs[runs["queries"] == label], counts[label], groups, attribute="gender", undefined=0.0, **options
        )

    return _on_each(counts, scored)


def by_query(runs: pd.DataFrame, sets: Sets, fair: pd.DataFrame, cutoff: int) -> pd.DataFrame:
    """Effectiveness and fairness of every query at one cut-off: columns ``queries, run, topic, measure, value``."""

    def effective(label: str) -> pd.DataFrame:
        qrels = sets[label].qrels
        judged = runs[(runs["queries"] == label) & runs["topic"].isin(qrels["topic"])]
        return effectiveness(
            judged.rename(columns={"topic": "query"}),
            qrels.rename(columns={"topic": "query", "level": "grade"}),
            measures={"MRR": f"RR@{cutoff}", "nDCG": f"nDCG@{cutoff}"},
        ).rename(columns={"query": "topic"})

    names = {f"{measure}@{cutoff}": measure for measure in ("NFaiRR", "TExFAIR", "TExFAIR(proportional=False)")}
    chosen = fair.assign(measure=fair["measure"].map(names)).query("topic != 'all'").dropna(subset="measure")
    return pd.concat([_on_each(sets, effective), chosen], ignore_index=True)


def wide(topics: pd.DataFrame) -> pd.DataFrame:
    """`by_query` with a column for each measure."""
    return topics.pivot_table(index=[*_KEYS, "topic"], columns="measure", values="value")


def table_4_1(topics: pd.DataFrame, order: Sequence[str], baseline: str, alpha: float) -> pd.DataFrame:
    """Table 4.1: means, r of the two fairness measures with its p-value, and what is above the baseline.

    ``topics``: of `by_query`. ``order``: the rankers. p-values are multiplied by the number of their tests
    (Bonferroni): those of r by the number of rankers, the paired t-tests by that within a query set and measure.
    """
    scores = wide(topics)
    rankers = pd.MultiIndex.from_product([sorted(topics["queries"].unique()), order], names=_KEYS)
    correlation = pd.DataFrame(
        {key: stats.pearsonr(part["NFaiRR"], part["TExFAIR"]) for key, part in scores.groupby(_KEYS)},
        index=["r", "p of r"],
    ).T.rename_axis(_KEYS)
    table = scores.groupby(_KEYS)[MEASURES].mean().join(correlation).loc[rankers]
    compared = topics[topics["measure"].isin(MEASURES)].groupby(["queries", "measure"])
    tests = pd.concat({key: compare_pairs(part, baseline=baseline) for key, part in compared})
    tests = tests.rename_axis(["queries", "measure", None])
    tests["better"] = (tests["p_corrected"] < alpha) & (tests["difference"] > 0)
    better = tests.pivot_table(index=["queries", "a"], columns="measure", values="better", aggfunc="first")[MEASURES]
    better = better.reindex(rankers, fill_value=False).astype(bool)
    table[ABOVE] = [" ".join(better.columns[row]) for row in better.to_numpy()]
    table["p of r"] = (table["p of r"] * len(order)).clip(upper=1)
    return table


def over_cutoffs(fair: pd.DataFrame, cutoffs: Sequence[int], order: Sequence[str]) -> pd.DataFrame:
    """Figure 4.2: mean TExFAIR, TExFAIR without proportionality and NFaiRR at each cut-off."""
    means = fair[fair["topic"] == "all"].copy()
    means[["measure", "cutoff"]] = means["measure"].str.rsplit("@", n=1, expand=True)
    means["cutoff"] = means["cutoff"].astype(int)
    shown = ["TExFAIR", "TExFAIR(proportional=False)", "NFaiRR"]
    curves = means[means["measure"].isin(shown) & means["cutoff"].isin(cutoffs)]
    return curves.set_index("run").loc[list(order)].reset_index()[["queries", "run", "measure", "cutoff", "value"]]


def substitution_account(sets: Sets) -> pd.DataFrame:
    """What the recorder says of the substitution in each collection; shares of what substituting twice restores."""
    folder, rows = project.data("outputs", "ranking_bias"), []
    for label, held in sets.items():
        stated = folder / f"{held.name}_settings.json"
        known = read_settings(stated)["account"] if stated.is_file() else {}
        rows.append({"query set": label, "collection": held.name} | known)
    account = pd.DataFrame(rows)
    if "words" in account:
        for what in ("words", "documents"):
            account[f"{what} restored"] = account[f"{what} restored by substituting twice"] / account[what]
    return account


def substituted_terms(sets: Sets, most: int = 6) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What became of the gendered terms of recorded collections: occurrences in all, and the most frequent terms."""

    def report(label: str) -> pd.DataFrame:
        path = project.data("outputs", "ranking_bias", f"{sets[label].name}_substitution.tsv")
        return pd.read_csv(path, sep="\t", dtype={"counterpart": "str"}, keep_default_na=False)

    done = _on_each(sets, report)
    total = done.pivot_table(index="queries", columns="outcome", values="occurrences", aggfunc="sum", fill_value=0)
    return total, done.groupby(["queries", "outcome"]).head(most)


def table_4_2(runs: pd.DataFrame, sets: Sets, table: pd.DataFrame, persistence: float, depth: int) -> pd.DataFrame:
    """Table 4.2: CRBO of the runs in both worlds, beside the fairness of Table 4.1."""

    def overlap(label: str) -> pd.DataFrame:
        before, after = (runs[(runs["world"] == world) & (runs["queries"] == label)] for world in WORLDS)
        return crbo(before, after, persistence, depth=depth, attribute="gender")

    means = _on_each(sets, overlap).query("topic == 'all'").set_index(_KEYS)["value"].rename("CRBO")
    return table[["TExFAIR", "NFaiRR"]].join(means)[["CRBO", "TExFAIR", "NFaiRR"]]


def other_choices(
    runs: pd.DataFrame, counts: Counts, choices: Mapping[str, dict[str, Any]], cutoff: int, order: Sequence[str]
) -> pd.DataFrame:
    """Means of NFaiRR and TExFAIR under each choice, and Kendall's tau of the rankers' order with the first one's.

    ``choices``: the arguments of `fairness` by name.
    """
    scored = {choice: fairness(runs, counts, cutoffs=[cutoff], **options) for choice, options in choices.items()}
    means = pd.concat(scored, names=["choice"]).query("topic == 'all'")
    means = means[means["measure"].isin([f"NFaiRR@{cutoff}", f"TExFAIR@{cutoff}"])]
    table = means.pivot_table(index=["queries", "measure", "choice"], columns="run", values="value")[list(order)]
    usual = table.xs(next(iter(choices)), level="choice")
    table["tau"] = [stats.kendalltau(row, usual.loc[key[:2]]).statistic for key, row in table.iterrows()]
    return table


# --- printed tables -----------------------------------------------------------------------------------------------


def fairness_printed_twice() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cells of Table 4.2 that repeat Table 4.1, its query sets as labelled and exchanged; and those of Table 4.1."""
    fair = ["TExFAIR", "NFaiRR"]
    first, second = printed_table("thesis/table-4.1"), printed_table("thesis/table-4.2")
    second["method"] = second["model"].replace({"MiniLM": "MiniLM KD", "TinyBERT": "TinyBERT KD"})
    numbers = first.assign(**{column: first[column].str.extract(r"([0-9.]+)")[0] for column in fair})
    pairs = []
    exchanged = second["queries"].map({"QS1": "QS2", "QS2": "QS1"})
    for reading, read_as in {"as labelled": second["queries"], "exchanged": exchanged}.items():
        merged = second.assign(read_as=read_as).merge(
            numbers, left_on=["read_as", "method"], right_on=["queries", "method"], suffixes=(" in 4.2", " in 4.1")
        )
        for column in fair:
            cells = merged[["queries in 4.2", "method", f"{column} in 4.2", f"{column} in 4.1"]]
            cells.columns = ["column group of Table 4.2", "method", "in Table 4.2", "in Table 4.1"]
            pairs.append(cells.assign(measure=column, reading=reading))
    cells = pd.concat(pairs, ignore_index=True)
    places = numbers.melt(["queries", "method"], fair, "measure", "in Table 4.2")
    return cells.assign(equal=cells["in Table 4.2"] == cells["in Table 4.1"]), places


def equal_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """How many of the cells printed twice agree, for each reading of the query sets."""
    checks = cells.groupby("reading")["equal"].agg(["sum", "size"])
    return checks.set_axis(["equal cells", "cells"], axis=1).reset_index()


def odd_cells(cells: pd.DataFrame, places: pd.DataFrame) -> pd.DataFrame:
    """Cells that differ with the query sets exchanged, and where in Table 4.1 their number stands."""
    odd = cells[(cells["reading"] == "exchanged") & ~cells["equal"]].drop(columns=["reading", "equal"])
    by = ["measure", "in Table 4.2"]
    return odd.merge(places, on=by, how="left", suffixes=("", " that has it in Table 4.1"))


# --- a conversation -----------------------------------------------------------------------------------------------


def pronouns_of_conversations() -> pd.DataFrame:
    """TED and TExFAIR of the pronouns in case R112, with turns for documents and nuggets for terms."""
    people = read_attributes(project.data("attributes", "fairweb_researchers.yaml"))
    nuggets = read_nuggets(project.data("conversations", "R112.csv"), people)
    spoken = pd.read_csv(project.data("conversations", "R112_turns.csv")).query("speaker == 'system'")
    facts = nuggets.conversations.take(nuggets.conversation)[["run"]].reset_index(drop=True)
    facts = facts.assign(turn=nuggets.turn, end=nuggets.end)
    facts[["he", "she"]] = nuggets.memberships["PRONOUN"][:, :2]
    turns = facts.groupby(["run", "turn"]).agg({"he": "sum", "she": "sum", "end": "max"}).reset_index()
    turns = turns.merge(spoken[["run", "turn", "start", "end"]], on=["run", "turn"], suffixes=(" of nuggets", ""))
    turns["words"] = turns["end"].fillna(turns["end of nuggets"]) - turns["start"] + 1
    rows = []
    for run, part in turns.groupby("run"):
        lists = (part[["he", "she"]], part["words"], [len(part)])
        sums = {"run": run, "turns": len(part), "he": part["he"].sum(), "she": part["she"].sum()}
        rows.append(sums | {"TED": bias.ted(*lists)[0], "TExFAIR": bias.texfair(*lists)[0]})
    return pd.DataFrame(rows)
