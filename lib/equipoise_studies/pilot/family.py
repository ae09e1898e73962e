"""GFR, GFRC and GFRC2 side by side: stop models, what they share, what each rewards, and where they disagree."""

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

_CLOSE = 1e-12


def stop_model_clusters(nuggets: NuggetTable, sets: Sets, **options: Any) -> pd.DataFrame:
    """The user clusters of every conversation by each stop model, in a column of that name."""
    tables = [
        user_clusters(nuggets, sets, stop_model=model, **options).assign(**{"stop model": model})
        for model in STOP_MODELS
    ]
    return pd.concat(tables, ignore_index=True)


def stop_model_scores(nuggets: NuggetTable, sets: Sets, **options: Any) -> pd.DataFrame:
    """A row for each stop model and run: who leaves at a nugget, what those have had in the mean, and GFRC2."""
    tables = []
    for model in STOP_MODELS:
        found = factors(user_clusters(nuggets, sets, stop_model=model, **options))
        wide = found.pivot_table(index="run", columns="part", values="mean", dropna=False)[
            ["utility", *sets]
        ]
        wide = wide.add_prefix("mean ").rename_axis(columns=None)
        scores = gfrc2(nuggets, sets, **{"stop_model": model, **options}).set_index(
            ["run", "measure"]
        )["value"]
        wide.insert(0, "leave at a nugget", found.groupby("run")["served"].first())
        wide["GFRC2"] = scores.xs("GFRC2", level="measure")
        tables.append(wide.reset_index().assign(**{"stop model": model}))
    table = pd.concat(tables, ignore_index=True)
    return table[["stop model", *table.columns.drop("stop model")]]


def as_ranked_lists(
    nuggets: NuggetTable,
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, pd.DataFrame]]:
    """Each conversation as a ranked list of its words: runs, qrels, and memberships of the relevant ones alone.

    A word is a document at the rank of its position, relevant where a relevant nugget ends; the
    topic is the number of the conversation. A document 0 ends each list, so that none is empty.
    """
    rows = np.flatnonzero(nuggets.relevant("nonrelevant"))
    topic, end = nuggets.conversation[rows], nuggets.end[rows]
    words = np.zeros(len(nuggets.conversations), dtype=np.int64)
    np.maximum.at(words, topic, end)
    places = np.repeat(np.arange(len(words)), words + 1)
    rank = ranks(starts(places), len(places)) + 1
    runs = pd.DataFrame(
        {"run": "words", "topic": places.astype(str), "rank": rank, "score": -rank.astype(float)}
    )
    runs["document"] = np.where(rank > words[places], "0", rank.astype(str))
    named = pd.DataFrame(
        {"topic": topic.astype(str), "document": end.astype(str), "level": nuggets.level[rows]}
    )
    nowhere = pd.DataFrame(
        {"topic": np.arange(len(words)).astype(str), "document": "0", "level": 0}
    )
    qrels = pd.concat([named, nowhere], ignore_index=True)
    memberships = {}
    for name, shares in nuggets.memberships.items():
        even = np.full((len(words), shares.shape[1]), 1 / shares.shape[1])
        groups = pd.DataFrame(np.concatenate([shares[rows], even])).add_prefix("group ")
        memberships[name] = qrels[["topic", "document"]].join(groups)
    return runs, qrels, memberships


def gfr_of_words(nuggets: NuggetTable, sets: Sets, patience: float, **options: Any) -> pd.DataFrame:
    """ERR, GF of each attribute set and GFR of each conversation, a row each, as ranked lists of words."""
    runs, qrels, memberships = as_ranked_lists(nuggets)
    named = {
        name: AttributeSet(
            name, a.kind, tuple(f"group {g}" for g in range(len(a.groups))), a.target
        )
        for name, a in sets.items()
    }
    kinds: dict[str, Any] = {"nominal": ["jsd"], "ordinal": ["rnod"]}
    with gathered():  # most words are no nuggets, and of small conversations often all, on purpose
        found = gfr_table(
            runs,
            qrels,
            {name: memberships[name] for name in sets},
            named,
            cutoff=int(patience),
            utilities={"ERR": reciprocal_rank},
            similarities=kinds,
            **options,
        )
    found["measure"] = found["measure"].str.split("-").str[0]
    wide = found.pivot_table(index="topic", columns=["measure", "attribute"], values="value").drop(
        index=""
    )
    return wide.loc[[str(number) for number in range(len(nuggets.conversations))]]


def identities(nuggets: NuggetTable, sets: Sets, patience: float) -> pd.DataFrame:
    """What GFRC2 gives with other stop models, beside GFR, R and cumulative GF of the same conversations."""

    def values(measure: Any, name: str, of: str = "", **options: Any) -> Floats:
        found = measure(nuggets, sets, patience=patience, **options)
        chosen: Floats = found.loc[
            (found["measure"] == name) & (found["attribute"] == of), "value"
        ].to_numpy()
        return chosen

    lists = gfr_of_words(nuggets, sets, patience, unrepresented="ignored")
    by_gain: dict[str, Any] = {"stop_model": "gain", "utility": "words"}
    some = next(iter(sets))
    anywhere = values(gfrc2, "EU", stop_model="anywhere", utility="gains")
    pairs = {
        ("ERR of the words", "gain", "1 / words"): (
            lists["ERR", ""],
            values(gfrc2, "EU", **by_gain),
        ),
        ("GFR of the words", "gain", "1 / words"): (
            lists["GFR", ""],
            values(gfrc2, "GFRC2", **by_gain),
        ),
        ("R", "anywhere", "gains, times 2 L / (L + 1)"): (
            values(gfrc, "R", gains="exponential"),
            anywhere * 2 * patience / (patience + 1),
        ),
        (f"GF ({some}), cumulative", "turns", "none"): (
            values(gfrc, "GF", some, distribution="cumulative", beyond_patience="ignored"),
            values(gfrc2, "EGF", some, stop_model="turns"),
        ),
        (f"GF ({some}), each turn by itself", "turns", "none"): (
            values(gfrc, "GF", some, beyond_patience="ignored"),
            values(gfrc2, "EGF", some, stop_model="turns"),
        ),
    }
    tables = [
        nuggets.conversations[["run"]].assign(
            measure=name,
            **{"stop model": model, "utility": utility, "its value": left, "GFRC2's": right},
        )
        for (name, model, utility), (left, right) in (
            (key, (np.asarray(one), np.asarray(other))) for key, (one, other) in pairs.items()
        )
    ]
    table = pd.concat(tables, ignore_index=True)
    return table.assign(
        equal=np.where((table["its value"] - table["GFRC2's"]).abs() < _CLOSE, "yes", "no")
    )


def ordinal(sets: Sets) -> dict[str, AttributeSet]:
    """The same sets with their groups taken to be ordered."""
    return {name: AttributeSet(name, "ordinal", a.groups, a.target) for name, a in sets.items()}


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
        found = measure(nuggets, ordinal(sets) if ranks else sets, patience=patience, **options)
        chosen = (found["measure"] == name) & ((found["attribute"] != "") == fair)
        values: Floats = found.loc[chosen, "value"].to_numpy()
        return values

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


def verdicts(found: pd.DataFrame) -> pd.DataFrame:
    """The table of `examine` as a grid: a row for each measure, a column for each property, and a word in each cell.

    ``kept``; ``blind``, where no score moves though one may; or the share of the conversations in
    which it is broken.
    """
    share = (
        (100 * found["broken"] / found["conversations"]).map("{:.0f}%".format).replace("0%", "< 1%")
    )
    may = found["property"].map(lambda name: PROPERTIES[name].wanted != "same")
    word = np.where(
        found["broken"] > 0, share, np.where((found["moved"] == 0) & may, "blind", "kept")
    )
    grid = found.assign(word=word).pivot_table(
        index="measure", columns="property", values="word", aggfunc="first", sort=False
    )
    return grid[found["property"].unique()].reset_index()


def smallest_examples(found: pd.DataFrame, small: NuggetTable) -> pd.DataFrame:
    """The smallest conversation that breaks a property, once for all measures that it is the same for."""
    broken = found[found["broken"] > 0]
    said = small.conversations["topic"].to_numpy(dtype=object)[
        broken["example"].to_numpy(dtype=int)
    ]
    names = ["property", "conversation", "measures"]
    table = broken.assign(conversation=said, measures=broken["measure"])
    grouped = table.groupby(["property", "conversation"], sort=False)
    joined = grouped.agg(
        measures=("measures", "; ".join), before=("before", "first"), after=("after", "first")
    )
    return joined.reset_index()[[*names, "before", "after"]]


def disagreements(
    scores: Mapping[str, Floats], small: NuggetTable, most: int = 2000
) -> pd.DataFrame:
    """How far pairs of measures agree: Kendall's tau-b over all conversations, and the smallest two ordered otherwise.

    The two are looked for among the first ``most``.
    """
    said = small.conversations["topic"].to_numpy(dtype=object)[:most]
    above = {
        name: np.sign(np.subtract.outer(values[:most], values[:most]).round(12))
        for name, values in scores.items()
    }
    rows = []
    for one, other in combinations(scores, 2):
        tau = stats.kendalltau(scores[one].round(12), scores[other].round(12)).statistic
        pairs = np.argwhere((above[one] > 0) & (above[other] < 0))
        first = pairs[pairs.max(axis=1).argmin()] if len(pairs) else None
        rows.append([one, other, tau, *(("", "") if first is None else said[first])])
    return pd.DataFrame(
        rows, columns=["first", "second", "tau", "the first prefers", "the second prefers"]
    )


def leads(nuggets: NuggetTable, score: Any, **options: Any) -> pd.DataFrame:
    """In how many draws of other annotations the first run scores higher than the second: attribute, measure, share."""
    draws = annotation_draws(nuggets, score, **options)
    draws["draw"] = draws["copy"] // len(nuggets.conversations)
    wide = draws.pivot_table(index=["attribute", "measure", "draw"], columns="run", values="value")
    first, second = nuggets.conversations["run"]
    ahead = (
        (wide[first] - wide[second] > _CLOSE)
        .groupby(level=[0, 1])
        .mean()
        .rename("share ahead")
        .reset_index()
    )
    return draws[["attribute", "measure"]].drop_duplicates().merge(ahead)


def who_leads(scores: pd.DataFrame) -> str:
    """A sentence: which run is ahead in GFRC2 with which stop models."""
    wide = scores.pivot_table(index="stop model", columns="run", values="GFRC2").loc[
        list(STOP_MODELS)
    ]
    ahead = wide.idxmax(axis=1).where(np.ptp(wide, axis=1) > _CLOSE, "neither run")
    models = ahead.groupby(ahead, sort=False).groups
    return (
        "; ".join(
            f"{run} is ahead with {listed([f'“{name}”' for name in names])}"
            for run, names in models.items()
        )
        + "."
    )


def served_in_words(scores: pd.DataFrame) -> str:
    """What share of users leaves each run with nothing, by stop model."""
    told = (
        f"{row[0]} {row[1]} {1 - row[2]:.1%}"
        for row in scores[["stop model", "run", "leave at a nugget"]].to_numpy()
    )
    return f"Leave with nothing: {', '.join(told)}"


def leads_in_words(topic: str, ahead: pd.DataFrame) -> str:
    """In what share of the draws the first run of a topic is ahead, of `leads`."""
    names = (ahead["measure"] + " " + ahead["attribute"]).str.strip()
    return f"{topic}: " + ", ".join(
        f"{name} {share:.0%}" for name, share in zip(names, ahead["share ahead"], strict=True)
    )


def intersections(nuggets: NuggetTable, sets: Sets, **options: Any) -> pd.DataFrame:
    """GF of each attribute set, in a column, and of their product; a row for each run."""
    found = gfrc(nuggets, sets, **options).query("measure == 'GF' and attribute != ''")
    return (
        found.pivot_table(index="run", columns="attribute", values="value")[list(sets)]
        .add_prefix("GF ")
        .reset_index()
    )


def leaving_with_nothing(scores: pd.DataFrame) -> Evidence:
    """The share of users that leaves the run that serves most without a relevant nugget, in the paper's stop model."""
    served = scores.loc[scores["stop model"] == "words", "leave at a nugget"].max()
    return Evidence(
        "smallest share of users who leave without a relevant nugget", 1 - served, reason=WHOLE
    )


def smallest_lead(scores: pd.DataFrame, first: str, second: str) -> Evidence:
    """By how much the first run is ahead in GFRC2 under the stop model where it leads least."""
    wide = scores.pivot_table(index="stop model", columns="run", values="GFRC2")
    lead = (wide[first] - wide[second]) / wide[second]
    return Evidence(
        f"smallest lead of {first}, relative, with the stop model {lead.idxmin()}",
        lead.min(),
        reason=WHOLE,
    )
