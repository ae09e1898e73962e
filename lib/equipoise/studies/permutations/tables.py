"""The tables of the report: what they hold besides the scores, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from equipoise.studies.permutations.class_structures import ClassStructure
from equipoise.studies.permutations.conversations import Conversation, conversations
from equipoise.studies.permutations.experiment import Experiment
from equipoise.studies.permutations.order_effects import conversation_spread, performance
from equipoise.studies.permutations.scoring import run_scores
from equipoise.studies.permutations.structures import Orders
from equipoise.studies.permutations.systems import SYSTEMS
from equipoise.studies.permutations.variance import f_bounds


def order_counts(made: Sequence[Conversation]) -> pd.Series:
    """Number of valid orders by topic (permutations, Table 1)."""
    return pd.Series({one.topic: one.structure.count for one in made})


def readings_of_the_rule(judged: pd.DataFrame) -> pd.DataFrame:
    """Conversations whose script is valid in one reading only of where a PT behind an FT goes: orders in both."""
    table = pd.DataFrame({"conversation": judged["topic"].unique()})
    for reading in ("FT", "SE"):
        read = [one.structure for one in conversations(judged, pt_behind_ft="ft" if reading == "FT" else "se")]
        table[f"orders, PT with {reading}"] = [structure.count for structure in read]
        valid = [bool(structure.is_valid([range(structure.size)])[0]) for structure in read]
        table[f"script valid, PT with {reading}"] = np.array(valid).astype(str)
    return table[table["script valid, PT with SE"] != table["script valid, PT with FT"]]


def _mean_over_topics(scores: pd.DataFrame) -> float:
    """Mean over conversations of the mean over the utterances of each."""
    return float(scores.groupby("topic")["value"].mean().mean())


def reach(experiment: Experiment, resolved: pd.DataFrame) -> pd.DataFrame:
    """What the replica holds, and what it can reach: by a perfect ranking, and with utterances resolved by hand."""
    ceiling = experiment.ceiling()
    by_hand = experiment.fixed_scores(dict(zip(resolved["query"], resolved["text"], strict=True)))
    rows = {
        "conversations": str(len(experiment.conversations)),
        "judged utterances": str(len(ceiling)),
        "passages": str(len(experiment.collection.documents)),
        "utterances with a relevant passage": str((ceiling["value"] > 0).sum()),
        f"{experiment.measure} of a perfect ranking": f"{_mean_over_topics(ceiling):.4f}",
        f"{experiment.measure} of BM25, utterances resolved by hand": f"{_mean_over_topics(by_hand):.4f}",
    }
    return pd.DataFrame(rows.items(), columns=["of the replica", "value"])


def beside_printed(scores: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Table 2 with the family of each system and the printed values."""
    table = performance(scores)
    table.insert(0, "family", [SYSTEMS[run].family for run in table["run"]])
    for column in ("orig. order", "min", "mean", "max"):
        table[f"printed {column}"] = table["run"].map(printed.set_index("model")[column].astype(float))
    return table


def rounding_bounds(printed: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Bounds that printed sums of squares, rounded to three decimals, leave for each printed F, by table."""
    parts = []
    for name, table in printed.items():
        bounds = f_bounds(table.astype({"SS": float, "DF": int}), half_unit=0.0005)
        parts.append(bounds.merge(table[["source", "F"]], on="source").assign(table=name))
    bounds = pd.concat(parts, ignore_index=True).rename(columns={"F": "printed F"})
    bounds["within"] = bounds["printed F"].astype(float).between(bounds["lowest F"], bounds["highest F"]).astype(str)
    return bounds[["table", "source", "lowest F", "printed F", "highest F", "within"]]


def complete(exact: pd.DataFrame, systems: Sequence[str]) -> pd.DataFrame:
    """Exact values of those of the systems that have them for every conversation."""
    known = exact.groupby("run", sort=False).filter(lambda part: bool(part["mean"].notna().all()))
    return known[known["run"].isin(systems)]


def means_of_runs(runs: Mapping[str, pd.DataFrame], qrels: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Mean over the judged utterances of each conversation, by public run: columns run, topic, value."""
    scores = [run_scores(run, qrels, measure).assign(run=name) for name, run in runs.items()]
    return pd.concat(scores).groupby(["run", "topic"], sort=False)["value"].mean().reset_index()


def ranked_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean over conversations of each run, the best first."""
    return scores.groupby("run")["value"].mean().sort_values(ascending=False).reset_index()


def exact_summary(exact: pd.DataFrame) -> pd.DataFrame:
    """Exact values of each system, means over conversations, and how they were found."""
    return exact.groupby(["run", "how"], sort=False)[["mean", "sd", "minimum", "maximum"]].mean().reset_index()


def cost(made: Sequence[Conversation], orders: Mapping[str, Orders]) -> pd.DataFrame:
    """What the mean over orders of one system costs, in utterances to rank, all conversations together."""
    rows = {
        "every pair once: exact mean, sd, minimum and maximum": sum(one.structure.size**2 for one in made),
        "the sampled orders: mean with an error, range too narrow": sum(orders[one.topic].size for one in made),
        "every order: exact": sum(one.structure.count * one.structure.size for one in made),
    }
    return pd.DataFrame(rows.items(), columns=["method", "utterances to rank for one system"])


def enough_permutations(exact: pd.DataFrame, stability: pd.DataFrame) -> pd.DataFrame:
    """How many permutations until the ranking of systems stands still."""
    means = exact.groupby("run")["mean"].mean().sort_values(ascending=False)
    enough = stability.loc[stability["same"] >= 0.95, "permutations"]
    closest = (means.shift(1) - means).dropna()
    rows = {
        "ranking by exact means": " > ".join(means.index),
        "smallest gap between neighbours": f"{closest.min():.4f} ({closest.idxmin()} and the one above it)",
        "permutations for the exact ranking in 95% of draws": str(enough.min()) if len(enough) else "more than tried",
        "conversations in the study": str(exact["topic"].nunique()),
    }
    return pd.DataFrame(rows.items(), columns=["question", "answer"])


def two_rounds(*turns: pd.DataFrame) -> pd.DataFrame:
    """Valid orders of the longest conversation of each run, from the turns that a user asked (columns run, topic)."""
    sizes = pd.concat(turns).groupby(["run", "topic"], sort=False).size()
    rounds = sizes.groupby("run", sort=False).agg(["size", "max"]).reset_index()
    rounds.columns = ["run", "conversations", "most utterances"]
    most = [ClassStructure.from_classes(["SE"] + ["FT"] * (size - 1)) for size in rounds["most utterances"]]
    return rounds.assign(**{"valid orders": [structure.count for structure in most]})


def ranges(scores: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How far the orders move each measure, by system, as a share of its mean too."""
    table = pd.concat([performance(part).assign(measure=name) for name, part in scores.items()], ignore_index=True)
    table["range / mean"] = (table["maximum"] - table["minimum"]) / table["mean"]
    return table[["measure", "run", "original", "minimum", "mean", "maximum", "range / mean"]]


def better_than_the_script(scores: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Whether the order of the script is the best one, by each measure."""
    parts = {name: script_place(conversation_spread(part)) for name, part in scores.items()}
    places = pd.concat(parts, names=["measure"]).groupby("measure", sort=False)
    table = {
        "conversations with a better order than the script": places.agg(lambda one: f"{(one > 0).sum()} of {len(one)}"),
        "share of orders better than the script": places.mean(),
    }
    return pd.DataFrame(table).reset_index()


def script_place(spread: pd.DataFrame) -> pd.Series:
    """Share of the orders of each conversation that score higher than the script."""
    return spread[spread["permutation"] == 0].set_index("topic")["rank"]
