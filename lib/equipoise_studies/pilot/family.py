"""GFR, GFRC and GFRC2 side by side: stop models, what they share, reward, and disagree on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats, ranks, starts
from equipoise.attributes import AttributeSet
from equipoise.coverage import gathered
from equipoise.measures.gfr import gfr_table, reciprocal_rank
from equipoise.measures.gfrc import gfrc
from equipoise.measures.gfrc2 import factors, gfrc2, user_clusters
from equipoise.measures.stop_models import STOP_MODELS
from equipoise.nuggets import NuggetTable
from equipoise.problems import listed
from equipoise_compendium.claims import Evidence
from equipoise_studies.pilot.annotations import annotation_draws
from equipoise_studies.pilot.axioms import PROPERTIES, Scorer, Sets
from equipoise_studies.pilot.claims import WHOLE

_ROUNDING = 1e-12  # scores that differ by no more are equal


def stop_model_clusters(nuggets: NuggetTable, sets: Sets, **options: Any) -> pd.DataFrame:
    """The user clusters of every conversation by each stop model, in a column of that name."""
    tables = []
    for stop_model in STOP_MODELS:
        table = user_clusters(nuggets, sets, stop_model=stop_model, **options)
        table["stop model"] = stop_model
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def stop_model_scores(nuggets: NuggetTable, sets: Sets, **options: Any) -> pd.DataFrame:
    """By stop model and run: who leaves at a nugget, what those have had on average, and GFRC2."""
    tables = []
    for stop_model in STOP_MODELS:
        clusters = user_clusters(nuggets, sets, stop_model=stop_model, **options)
        parts = factors(clusters)
        means = parts.pivot_table(index="run", columns="part", values="mean", dropna=False)
        table = means[["utility", *sets]].add_prefix("mean ").rename_axis(columns=None)
        table.insert(0, "leave at a nugget", parts.groupby("run")["served"].first())

        scores = gfrc2(nuggets, sets, **{"stop_model": stop_model, **options})
        of_measure = scores[scores["measure"] == "GFRC2"].set_index("run")["value"]
        table["GFRC2"] = of_measure
        table = table.reset_index()
        table.insert(0, "stop model", stop_model)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def as_ranked_lists(
    nuggets: NuggetTable,
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, pd.DataFrame]]:
    """Each conversation as a ranked list of its words: runs, qrels, memberships of the relevant.

    A word is a document at the rank of its position, relevant where a relevant nugget ends; the
    topic is the number of the conversation. A document 0 ends each list, so that none is empty.
    """
    rows = np.flatnonzero(nuggets.relevant("nonrelevant"))
    conversation, end = nuggets.conversation[rows], nuggets.end[rows]
    words = np.zeros(len(nuggets.conversations), dtype=np.int64)
    np.maximum.at(words, conversation, end)

    list_of_word = np.repeat(np.arange(len(words)), words + 1)
    rank = ranks(starts(list_of_word), len(list_of_word)) + 1
    is_last = rank > words[list_of_word]
    runs = pd.DataFrame({"run": "words", "topic": list_of_word.astype(str), "rank": rank})
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


def gfr_of_words(nuggets: NuggetTable, sets: Sets, patience: float, **options: Any) -> pd.DataFrame:
    """ERR, GF of each attribute set and GFR of each conversation as a ranked list, a row each."""
    runs, qrels, memberships = as_ranked_lists(nuggets)
    numbered_sets = {}
    for name, attribute in sets.items():
        groups = tuple(f"group {number}" for number in range(len(attribute.groups)))
        numbered_sets[name] = AttributeSet(name, attribute.kind, groups, attribute.target)
    similarities: dict[str, Any] = {"nominal": ["jsd"], "ordinal": ["rnod"]}
    with gathered():  # most words are no nuggets, and of small conversations often all, on purpose
        scores = gfr_table(
            runs,
            qrels,
            {name: memberships[name] for name in sets},
            numbered_sets,
            cutoff=int(patience),
            utilities={"ERR": reciprocal_rank},
            similarities=similarities,
            **options,
        )
    scores["measure"] = scores["measure"].str.split("-").str[0]
    wide = scores.pivot_table(index="topic", columns=["measure", "attribute"], values="value")
    conversations = [str(number) for number in range(len(nuggets.conversations))]
    return wide.loc[conversations]


def identities(nuggets: NuggetTable, sets: Sets, patience: float) -> pd.DataFrame:
    """GFRC2 with other stop models beside GFR, R and cumulative GF of the same conversations."""

    def values(measure: Any, name: str, attribute: str = "", **options: Any) -> Floats:
        scores = measure(nuggets, sets, patience=patience, **options)
        is_chosen = (scores["measure"] == name) & (scores["attribute"] == attribute)
        return np.asarray(scores.loc[is_chosen, "value"])

    lists = gfr_of_words(nuggets, sets, patience, unrepresented="ignored")
    by_gain: dict[str, Any] = {"stop_model": "gain", "utility": "words"}
    anywhere = values(gfrc2, "EU", stop_model="anywhere", utility="gains")
    first_set = next(iter(sets))
    by_turns = values(gfrc2, "EGF", first_set, stop_model="turns")
    cumulative: dict[str, Any] = {"distribution": "cumulative", "beyond_patience": "ignored"}
    turn_by_itself = values(gfrc, "GF", first_set, beyond_patience="ignored")

    # Of each identity the measure, the stop model and the utility of GFRC2, and both values.
    rows = [
        ("ERR of the words", "gain", "1 / words", lists["ERR", ""], values(gfrc2, "EU", **by_gain)),
        (
            "GFR of the words",
            "gain",
            "1 / words",
            lists["GFR", ""],
            values(gfrc2, "GFRC2", **by_gain),
        ),
        (
            "R",
            "anywhere",
            "gains, times 2 L / (L + 1)",
            values(gfrc, "R", gains="exponential"),
            anywhere * 2 * patience / (patience + 1),
        ),
        (
            f"GF ({first_set}), cumulative",
            "turns",
            "none",
            values(gfrc, "GF", first_set, **cumulative),
            by_turns,
        ),
        (f"GF ({first_set}), each turn by itself", "turns", "none", turn_by_itself, by_turns),
    ]
    tables = []
    for measure, stop_model, utility, its_value, of_gfrc2 in rows:
        table = nuggets.conversations[["run"]].assign(measure=measure)
        table["stop model"] = stop_model
        table["utility"] = utility
        table["its value"] = np.asarray(its_value)
        table["GFRC2's"] = of_gfrc2
        tables.append(table)
    table = pd.concat(tables, ignore_index=True)
    is_equal = (table["its value"] - table["GFRC2's"]).abs() < _ROUNDING
    return table.assign(equal=np.where(is_equal, "yes", "no"))


def ordinal(sets: Sets) -> dict[str, AttributeSet]:
    """The same sets with their groups taken to be ordered."""
    ordered = {}
    for name, attribute in sets.items():
        ordered[name] = AttributeSet(name, "ordinal", attribute.groups, attribute.target)
    return ordered


def measures(patience: float) -> dict[str, Scorer]:
    """The measures to examine, by name, for conversations with one attribute set."""

    def score(
        nuggets: NuggetTable,
        sets: Sets,
        measure: Any,
        name: str,
        fair: bool = False,
        ranks: bool = False,
        **options: Any,
    ) -> Floats:
        if ranks:
            sets = ordinal(sets)
        scores = measure(nuggets, sets, patience=patience, **options)
        is_of_set = scores["attribute"] != ""
        is_chosen = (scores["measure"] == name) & (is_of_set == fair)
        return np.asarray(scores.loc[is_chosen, "value"])

    def of_lists(nuggets: NuggetTable, sets: Sets) -> Floats:
        return gfr_of_words(nuggets, sets, patience)["GFR", ""].to_numpy()

    def of(measure: Any, name: str, **options: Any) -> Scorer:
        return partial(score, measure=measure, name=name, **options)

    return {
        "R": of(gfrc, "R"),
        "GF": of(gfrc, "GF", fair=True),
        "GF, ordinal": of(gfrc, "GF", fair=True, ranks=True),
        "GF, empty turns uniform": of(gfrc, "GF", fair=True, empty_turns="uniform"),
        "GF, beyond L ignored": of(gfrc, "GF", fair=True, beyond_patience="ignored"),
        "GFRC": of(gfrc, "GFRC"),
        "EGNP": of(gfrc2, "EGNP"),
        "EGF": of(gfrc2, "EGF", fair=True),
        "EGF, ordinal": of(gfrc2, "EGF", fair=True, ranks=True),
        "GFRC2": of(gfrc2, "GFRC2"),
        "EGF, uniform over nuggets": of(gfrc2, "EGF", fair=True, stop_model="nuggets"),
        "GFRC2, ends of turns": of(gfrc2, "GFRC2", stop_model="turns"),
        "GFR of the words": of_lists,
    }


def verdicts(examined: pd.DataFrame) -> pd.DataFrame:
    """The table of `examine` as a grid: a row a measure, a column a property, a word in each cell.

    ``kept``; ``blind``, where no score moves though one may; or the share of the conversations in
    which it is broken.
    """
    percent = 100 * examined["broken"] / examined["conversations"]
    share = percent.map("{:.0f}%".format).replace("0%", "< 1%")
    may_move = examined["property"].map(lambda name: PROPERTIES[name].wanted != "same")
    is_blind = (examined["moved"] == 0) & may_move
    word = np.where(is_blind, "blind", "kept")
    words = examined.assign(word=np.where(examined["broken"] > 0, share, word))
    grid = words.pivot_table(
        index="measure", columns="property", values="word", aggfunc="first", sort=False
    )
    return grid[examined["property"].unique()].reset_index()


def smallest_examples(examined: pd.DataFrame, small: NuggetTable) -> pd.DataFrame:
    """The smallest conversation that breaks a property, once for all measures that share it."""
    broken = examined[examined["broken"] > 0]
    topics = small.conversations["topic"].to_numpy(dtype=object)
    broken = broken.assign(conversation=topics[broken["example"].to_numpy(dtype=int)])
    examples = broken.groupby(["property", "conversation"], sort=False).agg(
        measures=("measure", "; ".join), before=("before", "first"), after=("after", "first")
    )
    return examples.reset_index()


def disagreements(
    scores: Mapping[str, Floats], small: NuggetTable, most: int = 2000
) -> pd.DataFrame:
    """How far measures agree: Kendall's tau-b, and the smallest two that they order otherwise.

    The two are looked for among the first ``most``.
    """
    topics = small.conversations["topic"].to_numpy(dtype=object)[:most]
    # by measure the sign of the difference of each two conversations
    preference = {}
    for name, values in scores.items():
        differences = np.subtract.outer(values[:most], values[:most])
        preference[name] = np.sign(differences.round(12))
    rows = []
    for first, second in combinations(scores, 2):
        tau = stats.kendalltau(scores[first].round(12), scores[second].round(12)).statistic
        disagreeing = np.argwhere((preference[first] > 0) & (preference[second] < 0))
        preferred_by_first, preferred_by_second = "", ""
        if len(disagreeing):
            smallest = disagreeing[disagreeing.max(axis=1).argmin()]
            preferred_by_first, preferred_by_second = topics[smallest]
        rows.append([first, second, tau, preferred_by_first, preferred_by_second])
    columns = ["first", "second", "tau", "the first prefers", "the second prefers"]
    return pd.DataFrame(rows, columns=columns)


def leads(nuggets: NuggetTable, score: Any, **options: Any) -> pd.DataFrame:
    """Share of draws of other annotations in which the first run scores higher than the second.

    Columns are attribute, measure, share ahead.
    """
    draws = annotation_draws(nuggets, score, **options)
    draws["draw"] = draws["copy"] // len(nuggets.conversations)
    wide = draws.pivot_table(index=["attribute", "measure", "draw"], columns="run", values="value")
    first, second = nuggets.conversations["run"]
    is_ahead = wide[first] - wide[second] > _ROUNDING
    shares = is_ahead.groupby(level=["attribute", "measure"]).mean().rename("share ahead")
    in_order = draws[["attribute", "measure"]].drop_duplicates()
    return in_order.merge(shares.reset_index())


def who_leads(scores: pd.DataFrame) -> str:
    """A sentence: which run is ahead in GFRC2 with which stop models."""
    wide = scores.pivot_table(index="stop model", columns="run", values="GFRC2")
    wide = wide.loc[list(STOP_MODELS)]
    differs = np.ptp(wide, axis=1) > _ROUNDING
    ahead = wide.idxmax(axis=1).where(differs, "neither run")
    parts = []
    for run, stop_models in ahead.groupby(ahead, sort=False).groups.items():
        quoted = [f"“{stop_model}”" for stop_model in stop_models]
        parts.append(f"{run} is ahead with {listed(quoted)}")
    return "; ".join(parts) + "."


def served_in_words(scores: pd.DataFrame) -> str:
    """What share of users leaves each run with nothing, by stop model."""
    parts = []
    for row in scores.to_dict("records"):
        unserved = 1 - row["leave at a nugget"]
        parts.append(f"{row['stop model']} {row['run']} {unserved:.1%}")
    return f"Leave with nothing: {', '.join(parts)}"


def leads_in_words(topic: str, ahead: pd.DataFrame) -> str:
    """In what share of the draws the first run of a topic is ahead, of `leads`."""
    names = (ahead["measure"] + " " + ahead["attribute"]).str.strip()
    shares = zip(names, ahead["share ahead"], strict=True)
    return f"{topic}: " + ", ".join(f"{name} {share:.0%}" for name, share in shares)


def intersections(nuggets: NuggetTable, sets: Sets, **options: Any) -> pd.DataFrame:
    """GF of each attribute set, in a column, and of their product; a row for each run."""
    scores = gfrc(nuggets, sets, **options)
    of_sets = scores[(scores["measure"] == "GF") & (scores["attribute"] != "")]
    wide = of_sets.pivot_table(index="run", columns="attribute", values="value")
    return wide[list(sets)].add_prefix("GF ").reset_index()


def leaving_with_nothing(scores: pd.DataFrame) -> Evidence:
    """Users that leave without a relevant nugget the run that serves most, by the paper's model."""
    served = scores.loc[scores["stop model"] == "words", "leave at a nugget"].max()
    statement = "smallest share of users who leave without a relevant nugget"
    return Evidence(statement, 1 - served, reason=WHOLE)


def smallest_lead(scores: pd.DataFrame, first: str, second: str) -> Evidence:
    """By how much the first run leads in GFRC2 under the stop model where it leads least."""
    wide = scores.pivot_table(index="stop model", columns="run", values="GFRC2")
    lead = (wide[first] - wide[second]) / wide[second]
    statement = f"smallest lead of {first}, relative, with the stop model {lead.idxmin()}"
    return Evidence(statement, lead.min(), reason=WHOLE)


def stop_models_ahead(scores: pd.DataFrame, first: str, second: str) -> Evidence:
    """Under how many stop models the first run is ahead in GFRC2, the paper's among them."""
    wide = scores.pivot_table(index="stop model", columns="run", values="GFRC2")
    is_ahead = wide[first] - wide[second] > _ROUNDING
    statement = f"stop models of {len(wide)} under which {first} is ahead"
    return Evidence(statement, float(is_ahead.sum()), n=len(wide), reason=WHOLE)
