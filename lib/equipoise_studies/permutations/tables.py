"""The tables of the report: what they hold besides the scores, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from equipoise.measures.orders import SCRIPT, score_matrix
from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.conversations import Conversation, conversations
from equipoise.orders.effects import performance, standard_errors
from equipoise.orders.structures import Orders
from equipoise.orders.variance import anova_from_sums
from equipoise.statistics import bootstrap_interval
from equipoise_studies.permutations.experiment import Experiment
from equipoise_studies.permutations.scoring import run_scores
from equipoise_studies.permutations.systems import SYSTEMS

_SYSTEM = ["run", "variant"]


def order_counts(made: Sequence[Conversation]) -> pd.Series:
    """Number of valid orders by topic (permutations, Table 1)."""
    return pd.Series({one.topic: one.structure.count for one in made})


def readings_of_the_rule(judged: pd.DataFrame) -> pd.DataFrame:
    """Conversations whose script is valid in one reading only of where a PT behind an FT goes: orders in both."""
    table = pd.DataFrame({"conversation": judged["topic"].unique()})
    for reading in ("FT", "SE"):
        read = [
            one.structure
            for one in conversations(judged, pt_behind_ft="ft" if reading == "FT" else "se")
        ]
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


def beside_printed(
    scores: Mapping[str, pd.DataFrame], judged: pd.DataFrame, printed: pd.DataFrame
) -> pd.DataFrame:
    """Table 2 with the family of each system, by variant of the systems, and the printed values.

    ``scores`` by variant; ``judged``: share of the best documents that have a judgement, as scores.
    What a variant changes nothing of stands in the first only.
    """
    theirs = (
        printed.set_index("model")[["orig. order", "min", "mean", "max"]]
        .astype(float)
        .add_prefix("printed ")
    )
    table = pd.concat(
        [performance(part).assign(variant=name) for name, part in scores.items()], ignore_index=True
    )
    table = table[~table.duplicated(["run", "original", "minimum", "mean", "maximum"])]
    shares = performance(judged).set_index("run")[["original", "mean"]]
    shares = shares.set_axis(["judged, script", "judged, mean"], axis=1)
    table = table.join(
        shares.set_index(pd.MultiIndex.from_product([shares.index, [next(iter(scores))]])),
        on=_SYSTEM,
    )
    table.insert(0, "family", [SYSTEMS[run].family for run in table["run"]])
    return table.join(theirs, on="run")[
        ["family", *_SYSTEM, *table.columns.drop(["family", *_SYSTEM]), *theirs]
    ]


def by_treatment(scores: Mapping[str, pd.DataFrame], rng: np.random.Generator) -> pd.DataFrame:
    """What permuting changes, by system and by what becomes of unjudged documents, with intervals over conversations.

    Returns columns treatment, run (the mean of all systems last), script, mean, change, low, high.
    """
    rows = []
    for name, part in scores.items():
        wide = score_matrix(part)
        wide["all"] = wide.mean(axis=1)
        script, means = (
            wide.xs(SCRIPT, level="permutation"),
            wide.groupby(level="topic", sort=False).mean(),
        )
        for run in wide:
            ends = bootstrap_interval(means[run] - script[run], rng, resamples=1999)
            rows.append(
                (
                    name,
                    run,
                    script[run].mean(),
                    means[run].mean(),
                    (means - script)[run].mean(),
                    *ends,
                )
            )
    return pd.DataFrame(
        rows, columns=["treatment", "run", "script", "mean", "change", "low", "high"]
    )


def with_randomisation(table: pd.DataFrame, by_source: Mapping[str, float]) -> pd.DataFrame:
    """An analysis of variance with the p of randomisation tests, by source, beside that of the F distribution."""
    return table.assign(**{"p by randomisation": table["source"].map(dict(by_source))})


def order_readings(
    by_class: Sequence[Conversation], by_graph: Sequence[Conversation]
) -> pd.DataFrame:
    """Number of valid orders of each conversation, in blocks and by its graph of dependencies."""
    table = pd.DataFrame({"blocks": order_counts(by_class), "graph": order_counts(by_graph)})
    return table.rename_axis("conversation").reset_index()


def exact_by_reading(readings: Mapping[str, Experiment], systems: Sequence[str]) -> pd.DataFrame:
    """Exact values over all valid orders in each reading of which are valid, means over conversations."""
    parts = {name: experiment.exact(systems) for name, experiment in readings.items()}
    table = pd.concat(parts, names=["reading"]).reset_index("reading")
    columns = ["mean", "sd", "minimum", "maximum"]
    return (
        table.groupby(["run", "reading"], sort=False)[columns]
        .mean()
        .reset_index()
        .sort_values("run", kind="stable")
    )


def orders_needed(exact: pd.DataFrame, margins: Sequence[float]) -> pd.DataFrame:
    """Fewest orders of each conversation with which the mean of a system is known within a margin, 19 times in 20.

    ``exact``: of `Experiment.exact`. Returns columns run, range, share of the mean, and one for
    each margin.
    """
    sizes = np.unique(np.geomspace(1, int(exact["orders"].max()), 400).astype(int))
    errors = standard_errors(exact, sizes.tolist()).pivot_table(
        index="run", columns="permutations", values="standard error", sort=False
    )
    means = exact.groupby("run", sort=False)[["minimum", "mean", "maximum"]].mean()
    table = pd.DataFrame(
        {"lowest": means["minimum"], "mean": means["mean"], "highest": means["maximum"]}
    )
    table["range / mean"] = (means["maximum"] - means["minimum"]) / means["mean"]
    for margin in margins:
        table[f"orders for ±{margin:g}"] = sizes[
            (1.96 * errors <= margin).to_numpy().argmax(axis=1)
        ]
    return table.reset_index()


def means_of_runs(
    runs: Mapping[str, pd.DataFrame], qrels: pd.DataFrame, measure: str
) -> pd.DataFrame:
    """Mean over the judged utterances of each conversation, by public run: columns run, topic, value."""
    scores = [run_scores(run, qrels, measure).assign(run=name) for name, run in runs.items()]
    return pd.concat(scores).groupby(["run", "topic"], sort=False)["value"].mean().reset_index()


def ranked_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean over conversations of each run, the best first."""
    return scores.groupby("run")["value"].mean().sort_values(ascending=False).reset_index()


def exact_summary(exact: pd.DataFrame) -> pd.DataFrame:
    """Exact values of each system, means over conversations, and how they were found."""
    return (
        exact.groupby(["run", "how"], sort=False)[["mean", "sd", "minimum", "maximum"]]
        .mean()
        .reset_index()
    )


def cost(made: Sequence[Conversation], orders: Mapping[str, Orders]) -> pd.DataFrame:
    """What the mean over orders of one system costs, in utterances to rank, all conversations together."""
    rows = {
        "every pair once: exact mean, sd, minimum and maximum": sum(
            one.structure.size**2 for one in made
        ),
        "the sampled orders: mean with an error, range too narrow": sum(
            orders[one.topic].size for one in made
        ),
        "every order: exact": sum(one.structure.count * one.structure.size for one in made),
    }
    return pd.DataFrame(rows.items(), columns=["method", "utterances to rank for one system"])


def ranges(scores: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How far the orders move each measure, by system, as a share of its mean too."""
    table = pd.concat(
        [performance(part).assign(measure=name) for name, part in scores.items()], ignore_index=True
    )
    table["range / mean"] = (table["maximum"] - table["minimum"]) / table["mean"]
    return table[["measure", "run", "original", "minimum", "mean", "maximum", "range / mean"]]


def script_place(spread: pd.DataFrame) -> pd.Series:
    """Share of the orders of each conversation that score higher than the script."""
    return spread[spread["permutation"] == 0].set_index("topic")["rank"]


def utterance_blocks(table: pd.DataFrame, made: Sequence[Conversation]) -> pd.DataFrame:
    """Block of every utterance of conversations with a class structure, for pictures and for checking by eye.

    ``table``: what the conversations were made from. Returns columns topic, turn, class, block, the
    utterances in the order of their blocks; block 0 opens the conversation.
    """
    rows = []
    for conversation in made:
        structure = conversation.structure
        if not isinstance(structure, ClassStructure):
            raise TypeError(
                f"topic {conversation.topic} has a {type(structure).__name__}, which has no blocks"
            )
        for number, block in enumerate(structure.blocks):
            rows += [
                (conversation.topic, conversation.queries[utterance], number) for utterance in block
            ]
    blocks = pd.DataFrame(rows, columns=["topic", "query", "block"])
    return blocks.merge(table[["query", "turn", "class"]], on="query")[
        ["topic", "turn", "class", "block"]
    ]


def completed(printed: pd.DataFrame) -> pd.DataFrame:
    """A printed analysis of variance, made anew from its own sums of squares and degrees of freedom."""
    sums = printed.astype({"SS": float, "DF": int})
    return anova_from_sums(sums, observations=int(sums.set_index("source").loc["Total", "DF"]) + 1)


def rounding_bounds(printed: Mapping[str, pd.DataFrame], half_unit: float = 0.0005) -> pd.DataFrame:
    r"""Bounds of F, by table, when the sums of squares are known only as printed, and whether the printed F is within.

    .. math::
        \frac{(SS - h) / DF}{(SS_{error} + h) / DF_{error}} \le F \le
        \frac{(SS + h) / DF}{(SS_{error} - h) / DF_{error}}

    ``printed``: tables with the columns ``source, SS, DF, F``; their row "Error" is the residual.
    ``half_unit``: h, half a unit of the last printed place. Checks permutations, Tables 4 and 5,
    against themselves.
    """
    parts = []
    for name, table in printed.items():
        factors = table.set_index("source").astype({"SS": float, "DF": int})
        residual, freedom = factors.loc["Error", ["SS", "DF"]]
        factors = factors.drop(["Error", "Total"])
        low = (
            (factors["SS"] - half_unit).clip(lower=0)
            / factors["DF"]
            / ((residual + half_unit) / freedom)
        )
        high = (factors["SS"] + half_unit) / factors["DF"] / ((residual - half_unit) / freedom)
        within = factors["F"].astype(float).between(low, high).astype(str)
        bounds = {
            "table": name,
            "lowest F": low,
            "printed F": factors["F"],
            "highest F": high,
            "within": within,
        }
        parts.append(pd.DataFrame(bounds).reset_index())
    return pd.concat(parts, ignore_index=True)[
        ["table", "source", "lowest F", "printed F", "highest F", "within"]
    ]
