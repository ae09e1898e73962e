"""Tables of thesis chapter 4, and of its replica on small collections; ``sets`` are collections by query set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.attributes import read_attributes
from equipoise.measures import ranking_bias as bias
from equipoise.measures.effectiveness import effectiveness
from equipoise.measures.rank_overlap import crbo
from equipoise.nuggets import read_nuggets
from equipoise.statistics import compare_pairs
from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_studies.ranking_bias.data import WORLDS
from equipoise_studies.ranking_bias.study import Study
from equipoise_studies.ranking_bias.upstream import BiasCollection

Sets = Mapping[str, BiasCollection]
Counts = Mapping[str, bias.TermCounts]

MEASURES = ["MRR", "nDCG", "NFaiRR", "TExFAIR"]
"""Columns of Table 4.1."""

OVER_CUTOFFS = {name: name for name in ("TExFAIR", "NFaiRR")} | {
    "TExFAIR(proportional=False)": "TExFAIR without proportionality"
}
"""Measures of Figure 4.2, in words."""

ABOVE = "significantly above the baseline"

_KEYS = ["queries", "run"]


def _on_each(sets: Iterable[str], table_of: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """The table of each query set, with a column ``queries`` that names it."""
    return pd.concat({label: table_of(label) for label in sets}, names=["queries"]).reset_index(
        "queries"
    )


def one_sided_rankings(lists: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Figure 4.1: scores of rankings whose documents speak of one group each, one neutral document in the background.

    ``lists``: columns ``ranking, rank, group``. Each document has the same length, and one
    representative term more than the threshold of neutrality.
    """
    mentions = (
        pd.get_dummies(lists["group"], dtype=float)
        .mul(threshold + 1)
        .groupby(lists["ranking"], sort=False)
    )
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


# --- the replica ----------------------------------------------------------------------------------


def term_counts(
    sets: Sets, groups: Sequence[bias.TermGroups], tokens: Any
) -> dict[str, bias.TermCounts]:
    """The terms of all groups, counted in every collection."""
    terms = {term for group in groups for term in group.terms}
    return {
        label: bias.count_terms(held.documents(), terms, tokens=tokens)
        for label, held in sets.items()
    }


def described(
    sets: Sets, counts: Counts, groups: bias.TermGroups, threshold: float
) -> pd.DataFrame:
    """Sizes of the collections, and how many of their documents have representative terms or are neutral."""
    kinds = ["with a representative term", "neutral (Eq. 4.1)"]
    rows = []
    for label, held in sets.items():
        magnitudes = counts[label].magnitudes(groups)
        speaking, neutral = (
            magnitudes.sum(axis=1) > 0,
            bias.neutrality(magnitudes, threshold=threshold) == 1,
        )
        rows.append((label, len(held.queries), len(magnitudes), speaking.sum(), neutral.sum()))
    return pd.DataFrame(rows, columns=["queries", "number of queries", "documents", *kinds])


def fairness(
    runs: pd.DataFrame, counts: Counts, groups: bias.TermGroups, **options: Any
) -> pd.DataFrame:
    """`score_ranking_bias` of the runs on each query set; NFaiRR is 0 where its ideal is."""

    def scored(label: str) -> pd.DataFrame:
        return bias.score_ranking_bias(
            runs[runs["queries"] == label],
            counts[label],
            groups,
            attribute="gender",
            undefined=0.0,
            **options,
        )

    return _on_each(counts, scored)


def by_query(
    runs: pd.DataFrame, sets: Sets, fair: pd.DataFrame, cutoff: int, tied_scores: Any
) -> pd.DataFrame:
    """Effectiveness and fairness of every query at one cut-off: columns ``queries, run, topic, measure, value``."""

    def effective(label: str) -> pd.DataFrame:
        qrels = sets[label].qrels
        judged = runs[(runs["queries"] == label) & runs["topic"].isin(qrels["topic"])]
        return effectiveness(
            judged.rename(columns={"topic": "query"}),
            qrels.rename(columns={"topic": "query", "level": "grade"}),
            measures={"MRR": f"RR@{cutoff}", "nDCG": f"nDCG@{cutoff}"},
            tied_scores=tied_scores,
        ).rename(columns={"query": "topic"})

    names = {
        f"{measure}@{cutoff}": measure
        for measure in ("NFaiRR", "TExFAIR", "TExFAIR(proportional=False)")
    }
    chosen = (
        fair.assign(measure=fair["measure"].map(names))
        .query("topic != ''")
        .dropna(subset="measure")
    )
    return pd.concat([_on_each(sets, effective), chosen], ignore_index=True)


def wide(topics: pd.DataFrame) -> pd.DataFrame:
    """`by_query` with a column for each measure."""
    return topics.pivot_table(index=[*_KEYS, "topic"], columns="measure", values="value")


def table_4_1(
    topics: pd.DataFrame, order: Sequence[str], baseline: str, alpha: float
) -> pd.DataFrame:
    """Table 4.1: means, r of the two fairness measures with its p-value, and what is above the baseline.

    ``topics``: of `by_query`. ``order``: the rankers. p-values are multiplied by the number of
    their tests (Bonferroni): those of r by the number of rankers, the paired t-tests by that within
    a query set and measure.
    """
    scores = wide(topics)
    rankers = pd.MultiIndex.from_product([sorted(topics["queries"].unique()), order], names=_KEYS)
    correlation = pd.DataFrame(
        {
            key: stats.pearsonr(part["NFaiRR"], part["TExFAIR"])
            for key, part in scores.groupby(_KEYS)
        },
        index=["r", "p of r"],
    ).T.rename_axis(_KEYS)
    table = scores.groupby(_KEYS)[MEASURES].mean().join(correlation).loc[rankers]
    compared = topics[topics["measure"].isin(MEASURES)].groupby(["queries", "measure"])
    tests = pd.concat({key: compare_pairs(part, baseline=baseline) for key, part in compared})
    tests = tests.rename_axis(["queries", "measure", None])
    tests["better"] = (tests["p_corrected"] < alpha) & (tests["difference"] > 0)
    better = tests.pivot_table(
        index=["queries", "a"], columns="measure", values="better", aggfunc="first"
    )[MEASURES]
    better = better.reindex(rankers, fill_value=False).astype(bool)
    table[ABOVE] = [" ".join(better.columns[row]) for row in better.to_numpy()]
    table["p of r"] = (table["p of r"] * len(order)).clip(upper=1)
    return table


def over_cutoffs(fair: pd.DataFrame, cutoffs: Sequence[int], order: Sequence[str]) -> pd.DataFrame:
    """Figure 4.2: mean TExFAIR, TExFAIR without proportionality and NFaiRR at each cut-off."""
    means = fair[fair["topic"] == ""].copy()
    means[["measure", "cutoff"]] = means["measure"].str.rsplit("@", n=1, expand=True)
    means["cutoff"] = means["cutoff"].astype(int)
    means["measure"] = means["measure"].map(OVER_CUTOFFS)
    curves = means[means["measure"].notna() & means["cutoff"].isin(cutoffs)]
    return (
        curves.set_index("run")
        .loc[list(order)]
        .reset_index()[["queries", "run", "measure", "cutoff", "value"]]
    )


def composition(
    runs: pd.DataFrame, sets: Sets, counts: Counts, groups: bias.TermGroups, cutoff: int
) -> pd.DataFrame:
    """What the lists hold up to the cut-off, over all rankers: shares of documents, by query set.

    ``judged for the query``; ``leaning``: with more terms of one group than of any other; ``leaning
    as their list``: of those, the ones that lean to the group that most of their list leans to, in
    lists with two or more.
    """

    def shares(label: str) -> pd.DataFrame:
        listed = runs[(runs["queries"] == label) & (runs["rank"] <= cutoff)]
        judged = sets[label].qrels[["topic", "document"]].assign(judged=True)
        magnitudes = counts[label].magnitudes(groups)
        first, second = np.sort(magnitudes, axis=1)[:, :-3:-1].T
        side = pd.Series(
            np.where(first > second, magnitudes.argmax(axis=1), -1),
            counts[label].documents,
            name="side",
        )
        table = listed.merge(judged, how="left").join(side, on="document").fillna({"side": -1})
        leaning = table[table["side"] >= 0].groupby(["run", "topic", "side"]).size()
        lists = leaning.groupby(["run", "topic"])
        alike, both = lists.max(), lists.sum()
        row = (
            table["judged"].notna().mean(),
            (table["side"] >= 0).mean(),
            alike[both > 1].sum() / both[both > 1].sum(),
        )
        return pd.DataFrame(
            [row], columns=["judged for the query", "leaning", "leaning as their list"]
        )

    return _on_each(sets, shares)


def _substitution(study: Study, label: str) -> pd.DataFrame:
    """What became of each gendered term of a recorded collection."""
    path = study.file(label, "substitution.tsv")
    return pd.read_csv(
        path, sep="\t", dtype={"term": "str", "counterpart": "str"}, keep_default_na=False
    )


def _queries_with_substituted_words(held: BiasCollection, substitution: pd.DataFrame) -> int:
    terms = substitution.query("outcome == 'substituted'")["term"]
    texts = held.queries[["query", "text"]].itertuples(index=False, name=None)
    return int((bias.count_terms(texts, terms, tokens="word").counts.sum(axis=1) > 0).sum())


def substitution_account(study: Study, sets: Sets) -> pd.DataFrame:
    """What the recorder says of the substitution, a column for each query set.

    ``restored``: shares of what substituting twice gives back. ``queries with such a word``: those
    that hold a word substituted somewhere in the collection.
    """
    columns = {}
    for label, held in sets.items():
        told = study.settings(label)["account"]
        account = {
            "documents": told["documents"],
            "documents changed": told["documents changed"],
            "share of documents restored": told["documents restored by substituting twice"]
            / told["documents"],
            "words": told["words"],
            "share of words restored": told["words restored by substituting twice"] / told["words"],
            "queries": told["queries"],
            "queries with such a word": _queries_with_substituted_words(
                held, _substitution(study, label)
            ),
        }
        columns[label] = pd.Series(account, dtype=object)  # counts stay whole numbers
    return pd.DataFrame(columns).rename_axis("what").reset_index()


def substituted_terms(study: Study, most: int = 6) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What became of the gendered terms of the collections: occurrences in all, and the most frequent terms."""
    done = _on_each(study.query_sets, lambda label: _substitution(study, label))
    total = done.pivot_table(
        index="queries", columns="outcome", values="occurrences", aggfunc="sum", fill_value=0
    )
    return total.reset_index(), done.groupby(["queries", "outcome"]).head(most)


def overlaps(
    runs: pd.DataFrame, sets: Sets, persistence: float, depth: int, tied_scores: Any
) -> pd.DataFrame:
    """CRBO of every query, of runs in both worlds: columns ``queries, run, topic, measure, value``."""
    runs = runs[runs.groupby("run")["world"].transform("nunique") == len(WORLDS)]

    def overlap(label: str) -> pd.DataFrame:
        before, after = (
            runs[(runs["world"] == world) & (runs["queries"] == label)] for world in WORLDS
        )
        return crbo(before, after, persistence, depth=depth, tied_scores=tied_scores).query(
            "topic != ''"
        )

    return _on_each(sets, overlap).drop(columns="attribute").assign(measure="CRBO")


def table_4_2(overlap: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Table 4.2: mean CRBO, among scores by query, beside the fairness of Table 4.1."""
    means = overlap[overlap["measure"] == "CRBO"].groupby(_KEYS)["value"].mean().rename("CRBO")
    return table[["TExFAIR", "NFaiRR"]].join(means, how="inner")[["CRBO", "TExFAIR", "NFaiRR"]]


def other_choices(
    runs: pd.DataFrame,
    counts: Counts,
    choices: Mapping[str, dict[str, Any]],
    cutoff: int,
    order: Sequence[str],
) -> pd.DataFrame:
    """Means of NFaiRR and TExFAIR under each choice, and Kendall's tau of the rankers' order with the first one's.

    ``choices``: the arguments of `fairness` by name.
    """
    scored = {
        choice: fairness(runs, counts, cutoffs=[cutoff], **options)
        for choice, options in choices.items()
    }
    means = pd.concat(scored, names=["choice"]).query("topic == ''")
    means = means[means["measure"].isin([f"NFaiRR@{cutoff}", f"TExFAIR@{cutoff}"])]
    table = means.pivot_table(
        index=["queries", "measure", "choice"], columns="run", values="value"
    )[list(order)]
    usual = table.xs(next(iter(choices)), level="choice")
    table["tau"] = [
        stats.kendalltau(row, usual.loc[key[:2]]).statistic for key, row in table.iterrows()
    ]
    return table


# --- printed tables -------------------------------------------------------------------------------


def fairness_printed_twice(*, exchanged: bool) -> pd.DataFrame:
    """What Table 4.1 prints of the fairness of the rows of Table 4.2, its query sets as labelled or exchanged."""
    rows = printed_table("thesis/table-4.2")[["queries", "model"]]
    rows["method"] = rows["model"].replace({"MiniLM": "MiniLM KD", "TinyBERT": "TinyBERT KD"})
    rows["in 4.1"] = (
        rows["queries"].replace({"QS1": "QS2", "QS2": "QS1"}) if exchanged else rows["queries"]
    )
    fair = (
        printed_table("thesis/table-4.1")
        .rename(columns={"queries": "in 4.1"})
        .set_index(["in 4.1", "method"])
    )
    numbers = fair[["TExFAIR", "NFaiRR"]].apply(
        lambda column: column.str.extract(r"([0-9.]+)")[0].astype(float)
    )
    return rows.join(numbers, on=["in 4.1", "method"])[["queries", "model", "TExFAIR", "NFaiRR"]]


def equal_cells() -> pd.DataFrame:
    """How many cells of Table 4.2 that repeat Table 4.1 equal them, for each reading of its query sets."""
    printed = printed_table("thesis/table-4.2")[["TExFAIR", "NFaiRR"]].astype(float)
    readings = {"as labelled": False, "exchanged": True}
    equal = {
        name: fairness_printed_twice(exchanged=exchanged)[printed.columns] == printed
        for name, exchanged in readings.items()
    }
    rows = [(name, int(cells.to_numpy().sum()), cells.size) for name, cells in equal.items()]
    return pd.DataFrame(rows, columns=["reading", "equal cells", "cells"])


# --- a conversation -------------------------------------------------------------------------------


def pronouns_of_conversations() -> pd.DataFrame:
    """TED and TExFAIR of the pronouns in case R112, with turns for documents and nuggets for terms."""
    people = read_attributes(project.data("attributes", "fairweb_researchers.yaml"))
    nuggets = read_nuggets(project.data("conversations", "R112.csv"), people)
    spoken = pd.read_csv(project.data("conversations", "R112_turns.csv")).query(
        "speaker == 'system'"
    )
    facts = nuggets.conversations.take(nuggets.conversation)[["run"]].reset_index(drop=True)
    facts = facts.assign(turn=nuggets.turn, end=nuggets.end)
    facts[["he", "she"]] = nuggets.memberships["PRONOUN"][:, :2]
    turns = (
        facts.groupby(["run", "turn"]).agg({"he": "sum", "she": "sum", "end": "max"}).reset_index()
    )
    turns = turns.merge(
        spoken[["run", "turn", "start", "end"]], on=["run", "turn"], suffixes=(" of nuggets", "")
    )
    turns["words"] = turns["end"].fillna(turns["end of nuggets"]) - turns["start"] + 1
    rows = []
    for run, part in turns.groupby("run"):
        lists = (part[["he", "she"]], part["words"], [len(part)])
        sums = {"run": run, "turns": len(part)} | {
            word: int(part[word].sum()) for word in ("he", "she")
        }
        rows.append(sums | {"TED": bias.ted(*lists)[0], "TExFAIR": bias.texfair(*lists)[0]})
    return pd.DataFrame(rows)
