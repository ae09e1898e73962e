"""Sentences of the notebook that values make: the answer, and what else a parameter could make false."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from equipoise_compendium.claims import Evidence
from equipoise_studies.permutations.spreads import relative_range
from equipoise_studies.permutations.unseen import LEVEL

_EQUAL = 1e-12


def _estimate(found: Evidence, form: str) -> str:
    return f"{found.estimate:{form}} [{found.low:{form}}, {found.high:{form}}]"


def answer(
    exact: pd.DataFrame,
    needed: pd.DataFrame,
    ranking: pd.DataFrame,
    evidence: Mapping[str, Evidence],
    measure: str,
) -> list[str]:
    """How far the order of a script is an accident, for which systems, and with how many orders one would know.

    ``exact``: of `Experiment.exact`. ``ranking``: of `orders_for_ranking`. ``evidence``: that on
    the claims, by ``chance`` (the script against drawn orders), ``rewriter`` (what it saves of the
    spread), ``unseen`` (coverage).
    """
    moving = needed.sort_values("range / mean", ascending=False)["run"]
    reach = [
        f"{_estimate(relative_range(exact, run), '.0%')} of it ({run})"
        for run in moving.iloc[[-1, 0]]
    ]
    fixed = [
        run
        for run, part in exact.groupby("run", sort=False)
        if (part["maximum"] - part["minimum"]).max() < _EQUAL
    ]
    margin = next(name for name in needed if str(name).startswith("orders for"))
    blind = " and ".join([", ".join(fixed[:-1]), fixed[-1]] if len(fixed) > 1 else fixed)
    blind += " do not see the order" if len(fixed) > 1 else " does not see the order"
    gain = evidence["rewriter"]
    steadier = (
        "less"
        if (gain.low or 0) > 0
        else "more"
        if (gain.high or 0) < 0
        else "neither clearly less nor clearly more"
    )
    return [
        f"On the replica, over all valid orders of {exact['topic'].nunique()} conversations, the order can move the "
        f"mean {measure} of a system by {reach[0]} to {reach[1]}; {blind}.",
        f"The script is one order of many: {_estimate(evidence['chance'], '.0%')} of the orders drawn at random score "
        "higher, averaged over conversations and systems.",
        f"{ranking.iloc[-1, 1]} orders of each conversation are enough to rank the systems as all orders do, and "
        f"{needed[margin].min()} to {needed[margin].max()} to know the mean of a system within "
        f"{str(margin).removeprefix('orders for ±')}, both 19 times in 20.",
        f"A language model that rewrites the utterances varies {steadier} with the order than systems that add the "
        f"previous utterance (the standard deviations differ by {_estimate(gain, '.3f')}).",
        f"For a system that was run on the script alone, a calibrated band meant to hold {LEVEL:.0%} of the orders "
        f"holds {_estimate(evidence['unseen'], '.0%')}, on average over the systems.",
    ]


def sampled_range(errors: pd.DataFrame, drawn: int) -> str:
    """How much of the exact range sampled orders show, and how far their means are off."""
    seen = (errors["sampled maximum"] - errors["sampled minimum"]) / (
        errors["maximum"] - errors["minimum"]
    )
    beyond = int((errors["error"].abs() > 1.96 * errors["standard error"]).sum())
    return (
        f"Up to {drawn} drawn orders of each conversation show {seen.min():.0%} to {seen.max():.0%} of the range of a "
        f"system; {beyond} of {len(errors)} sampled means lie further from the exact one than twice their standard "
        f"error, the furthest by {errors['error'].abs().max():.4f}."
    )


def undefined(correlations: pd.DataFrame, first: str, second: str) -> str:
    """Which correlations are not defined, and so not drawn."""
    absent = correlations[correlations["correlation"].isna()]
    names = ", ".join(f"{row.run} on {row.topic}" for row in absent.itertuples())
    left_out = (
        f" ({names}), where one of the two measures is the same on every order"
        if len(absent)
        else ""
    )
    return f"{len(absent)} of {len(correlations)} correlations of {first} and {second} are not defined{left_out}."


def interaction(
    without: pd.DataFrame, with_it: pd.DataFrame, by_chance: Mapping[str, float]
) -> str:
    """What taking topic x model out of the residual changes, and what the randomisation tests say."""
    before, after = (table.set_index("source")[["F", "p"]] for table in (without, with_it))
    nested, model = "permutation(topic)", "model"
    ratio = [
        f"F = {table.loc[source, 'F']:.2f}"
        for source in (nested, model)
        for table in (before, after)
    ]
    found = [table.loc[source, "p"] for source in (nested, model) for table in (before, after)]
    p = [f"p = {value:.2g}" if value >= 1e-4 else "p < 0.0001" for value in found]
    return (
        f"As long as topic x model is part of the residual, as in MD1, {nested} has {ratio[0]} ({p[0]}); once it is "
        f"taken out, {ratio[1]} ({p[1]}; by randomisation p = {by_chance[nested]:.2g}). Systems differ with "
        f"{ratio[2]} against that residual ({p[2]}), and with {ratio[3]} over conversations ({p[3]}; by randomisation "
        f"p = {by_chance[model]:.2g})."
    )


def weights(table: pd.DataFrame) -> str:
    """LP beside CU by the paper's words and by the program, as a question."""
    means = table.pivot_table(index="variant", columns="run", values="mean", sort=False)
    found = "; ".join(
        f"by the {variant}: LP {row['LP']:.4f}, CU {row['CU']:.4f}"
        for variant, row in means.iterrows()
    )
    return (
        f"Mean scores over the orders {found}. The paper finds LP alone in its worst tier, below CU. Is that due to "
        "the method, or to the weight that the program gives to the previous utterance? The paper cannot say, nor "
        "can this replica."
    )


def _listed(values: pd.Series, form: str = ".3f") -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def script_in_words(spread: pd.DataFrame) -> str:
    """What share of the drawn orders of each conversation scores higher than its script; of `conversation_spread`."""
    script = spread[spread["permutation"] == 0].set_index("topic")["value"]
    above = spread["value"] > spread["topic"].map(script)
    shares = above.groupby(spread["topic"], sort=False).mean()
    return f"Share of the orders above the script: {_listed(shares, '.0%')}"


def wins_in_words(wins: pd.DataFrame) -> str:
    """How often the order decides between two systems; of `preference`, both ways round."""
    one = wins[wins["a"] < wins["b"]]
    sure = (one["wins"].isin([0, 1])).mean()
    return f"In {1 - sure:.0%} of all pairs of systems and conversations, the order decides which system is ahead"


def ranges_in_words(errors: pd.DataFrame) -> str:
    """Lowest, mean and highest of each system over all orders; of `sampling_error`."""
    rows = errors[["run", "minimum", "mean", "maximum"]].itertuples(index=False)
    return "; ".join(f"{run}: {low:.3f}, {mean:.3f}, {high:.3f}" for run, low, mean, high in rows)


def stability_in_words(stability: pd.DataFrame) -> str:
    """How often so many orders rank the systems as all do; of `ranking_stability`."""
    same = stability.set_index("permutations")["same"]
    return f"Share of draws with the exact ranking, by number of orders: {_listed(same, '.0%')}"


def medians_in_words(correlations: pd.DataFrame) -> str:
    """Median correlation of each system; of `order_correlation`."""
    return f"Medians: {_listed(correlations.groupby('run', sort=False)['correlation'].median(), '.2f')}"
