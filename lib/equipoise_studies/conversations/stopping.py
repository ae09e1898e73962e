"""GFRC2 under each stopping model, and the identities that connect it with GFR, R and GF."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, ranks, starts
from equipoise.attributes import AttributeSet
from equipoise.measures.gfr import gfr_table, reciprocal_rank
from equipoise.measures.gfrc import gfrc
from equipoise.measures.gfrc2 import factors, gfrc2, user_clusters
from equipoise.measures.stop_models import STOP_MODELS
from equipoise.nuggets import NuggetTable

Sets = Mapping[str, AttributeSet]


def clusters(nuggets: NuggetTable, sets: Sets, **options: Any) -> pd.DataFrame:
    """Return the user clusters of every conversation, by ``stopping model``."""
    tables = []
    for stop_model in STOP_MODELS:
        table = user_clusters(nuggets, sets, stop_model=stop_model, **options)
        table["stopping model"] = stop_model
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def scores(nuggets: NuggetTable, sets: Sets, **options: Any) -> pd.DataFrame:
    """Return both factors of the expected scores, and GFRC2, by stopping model and run.

    Columns are ``stopping model, run, leave at a nugget``, the mean utility and similarity of users
    who leave at a nugget, and GFRC2.
    """
    tables = []
    for stop_model in STOP_MODELS:
        parts = factors(user_clusters(nuggets, sets, stop_model=stop_model, **options))
        means = parts.pivot_table(index="run", columns="part", values="mean", dropna=False)
        table = means[["utility", *sets]].add_prefix("mean ").rename_axis(columns=None)
        table.insert(0, "leave at a nugget", parts.groupby("run")["served"].first())

        values = gfrc2(nuggets, sets, **{"stop_model": stop_model, **options})
        table["GFRC2"] = values[values["measure"] == "GFRC2"].set_index("run")["value"]
        table = table.reset_index()
        table.insert(0, "stopping model", stop_model)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def as_rankings(
    nuggets: NuggetTable,
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, pd.DataFrame]]:
    """Return each conversation as a ranking of its words: runs, qrels, memberships by set.

    A word is a document at the rank of its position, and relevant where a relevant nugget ends.
    The topic is the number of the conversation. A document 0 ends each ranking, so that none is
    empty.
    """
    rows = np.flatnonzero(nuggets.relevant())
    conversation, end = nuggets.conversation[rows], nuggets.end[rows]
    words = np.zeros(len(nuggets.conversations), dtype=np.int64)
    np.maximum.at(words, conversation, end)

    topic = np.repeat(np.arange(len(words)), words + 1)
    rank = ranks(starts(topic), len(topic)) + 1
    is_last = rank > words[topic]
    runs = pd.DataFrame({"run": "words", "topic": topic.astype(str), "rank": rank})
    runs["score"] = -rank.astype(float)
    runs["document"] = np.where(is_last, "0", rank.astype(str))

    relevant = pd.DataFrame({"topic": conversation.astype(str), "document": end.astype(str)})
    relevant["level"] = nuggets.level[rows]
    last = pd.DataFrame({"topic": np.arange(len(words)).astype(str), "document": "0", "level": 0})
    qrels = pd.concat([relevant, last], ignore_index=True)
    memberships = {}
    for name, shares in nuggets.memberships.items():
        groups = shares.shape[1]
        even = np.full((len(words), groups), 1 / groups)
        table = pd.DataFrame(np.concatenate([shares[rows], even])).add_prefix("group ")
        memberships[name] = qrels[["topic", "document"]].join(table)
    return runs, qrels, memberships


def gfr_of_words(nuggets: NuggetTable, sets: Sets, patience: float) -> pd.DataFrame:
    """Return ERR, GF of each attribute set, and GFR of each conversation's ranking of words."""
    runs, qrels, memberships = as_rankings(nuggets)
    numbered_sets = {}
    for name, attribute in sets.items():
        groups = tuple(f"group {number}" for number in range(len(attribute.groups)))
        numbered_sets[name] = AttributeSet(name, attribute.kind, groups, attribute.target)
    values = gfr_table(
        runs,
        qrels,
        {name: memberships[name] for name in sets},
        numbered_sets,
        cutoff=int(patience),
        utilities={"ERR": reciprocal_rank},
        similarities={"nominal": ["jsd"], "ordinal": ["rnod"]},
        unrepresented="ignored",
    )
    values["measure"] = values["measure"].str.split("-").str[0]
    wide = values.pivot_table(index="topic", columns=["measure", "attribute"], values="value")
    conversations = [str(number) for number in range(len(nuggets.conversations))]
    return wide.loc[conversations]


def identities(nuggets: NuggetTable, sets: Sets, patience: float) -> pd.DataFrame:
    """Compare GFRC2 under other stopping models with GFR, R and cumulative GF of the same words.

    Columns are ``run, measure, stopping model, utility, its value, GFRC2's, equal``.
    """

    def values(measure: Any, name: str, attribute: str = "", **options: Any) -> Floats:
        table = measure(nuggets, sets, patience=patience, **options)
        is_chosen = (table["measure"] == name) & (table["attribute"] == attribute)
        return np.asarray(table.loc[is_chosen, "value"])

    rankings = gfr_of_words(nuggets, sets, patience)
    first_set = next(iter(sets))
    by_gain: dict[str, Any] = {"stop_model": "gain", "utility": "words"}
    anywhere = values(gfrc2, "EU", stop_model="anywhere", utility="gains")
    by_turns = values(gfrc2, "EGF", first_set, stop_model="turns")
    cumulative = values(gfrc, "GF", first_set, distribution="cumulative", beyond_patience="ignored")
    each_turn = values(gfrc, "GF", first_set, beyond_patience="ignored")
    gain, words = "gain", "1 / words"
    scaled = "gains, times 2 L / (L + 1)"

    # measure, stopping model and utility of GFRC2, value of the measure, value by GFRC2
    rows = [
        ("ERR of the words", gain, words, rankings["ERR", ""], values(gfrc2, "EU", **by_gain)),
        ("GFR of the words", gain, words, rankings["GFR", ""], values(gfrc2, "GFRC2", **by_gain)),
        (
            "R",
            "anywhere",
            scaled,
            values(gfrc, "R", gains="exponential"),
            anywhere * 2 * patience / (patience + 1),
        ),
        (f"GF ({first_set}), cumulative", "turns", "none", cumulative, by_turns),
        (f"GF ({first_set}), each turn by itself", "turns", "none", each_turn, by_turns),
    ]
    tables = []
    for measure, stop_model, utility, its_value, by_gfrc2 in rows:
        table = nuggets.conversations[["run"]].assign(measure=measure)
        table["stopping model"] = stop_model
        table["utility"] = utility
        table["its value"] = np.asarray(its_value)
        table["GFRC2's"] = by_gfrc2
        tables.append(table)
    table = pd.concat(tables, ignore_index=True)
    is_equal = (table["its value"] - table["GFRC2's"]).abs() < 1e-12
    return table.assign(equal=np.where(is_equal, "yes", "no"))
