"""Sentences that values make: the answer, and what else a parameter could make false."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from equipoise_compendium.claims import Evidence
from equipoise_studies.permutations.spreads import relative_range
from equipoise_studies.permutations.unseen import LEVEL

_ROUNDING = 1e-12


def _with_interval(evidence: Evidence, form: str) -> str:
    return f"{evidence.estimate:{form}} [{evidence.low:{form}}, {evidence.high:{form}}]"


def _values_by_name(values: pd.Series, form: str = ".3f") -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def answer(exact: pd.DataFrame, evidence: Mapping[str, Evidence], measure: str) -> list[str]:
    """How far the order of a script is an accident, and for which systems.

    ``exact``: of `Experiment.exact`. ``evidence``: that on the claims, by ``chance`` (the script
    against drawn orders), ``coreference`` (its lead on the whole collection) and ``alarms`` (of
    MD1, systems exchanged).
    """
    conversations = exact["topic"].nunique()
    means = exact.groupby("run", sort=False)[["minimum", "mean", "maximum"]].mean()
    moved = (means["maximum"] - means["minimum"]) / means["mean"]
    ranges = []
    for run in (moved[moved > _ROUNDING].idxmin(), moved.idxmax()):
        ranges.append(f"{_with_interval(relative_range(exact, run), '.0%')} of it ({run})")
    return [
        f"On the replica, over all valid orders of {conversations} conversations, "
        f"the order can move the mean {measure} of a system by {ranges[0]} to {ranges[1]}; "
        f"{_blind_to_order(exact)}.",
        f"The script is one order of many: {_with_interval(evidence['chance'], '.0%')} of the "
        "orders drawn at random score higher, averaged over conversations and systems.",
        "On the whole collection, in the order of the script, a coreference model scores "
        f"{_with_interval(evidence['coreference'], '+.3f')} beside adding the first and the last "
        f"utterance, where Table 2 prints {evidence['coreference'].printed:+.3f}.",
        "More orders are not more conversations: where the systems are exchanged at random on "
        "each conversation, the paper's analysis of variance still finds that they differ in "
        f"{_with_interval(evidence['alarms'], '.0%')} of the draws, where 5% would be right.",
    ]


def answer_beyond(
    needed: pd.DataFrame,
    ranking: pd.DataFrame,
    evidence: Mapping[str, Evidence],
    in_session: pd.DataFrame,
) -> list[str]:
    """What all orders say that a hundred do not, and where else an order matters.

    ``needed``: orders that give a mean within a margin. ``ranking``: of `orders_for_ranking`.
    ``evidence``: that on the claims, by ``shared`` (of an order's effect), ``rewriter`` (what it
    saves of the spread), ``second`` (the change on CAsT 2020) and ``unseen`` (what calibrated bands
    hold). ``in_session``: columns run, change, low, high.
    """
    margin_column = next(name for name in needed if str(name).startswith("orders for"))
    margin = str(margin_column).removeprefix("orders for ±")
    fewest, most = needed[margin_column].min(), needed[margin_column].max()
    hurt = in_session.loc[in_session["change"].idxmin()]
    return [
        f"{ranking.iloc[-1, 1]} orders of each conversation are enough to rank the systems as all "
        f"orders do, and {fewest} to {most} to know the mean of a system within {margin}, "
        "both 19 times in 20.",
        f"Of what an order does, {_with_interval(evidence['shared'], '.0%')} is common to the "
        "systems, once the interaction of systems and conversations is taken out.",
        "A language model that rewrites the utterances varies "
        f"{_less_or_more(evidence['rewriter'])} with the order than systems that add the previous "
        "utterance (the standard deviations differ by "
        f"{_with_interval(evidence['rewriter'], '.3f')}).",
        "On CAsT 2020 the mean over all orders minus the script is "
        f"{_with_interval(evidence['second'], '.3f')}.",
        "Conversations held one behind the other in one session leak: that changes "
        f"{hurt['run']} by {hurt['change']:.3f} [{hurt['low']:.3f}, {hurt['high']:.3f}].",
        "For a system that was run on the script alone, a calibrated band meant to hold "
        f"{LEVEL:.0%} of the orders holds {_with_interval(evidence['unseen'], '.0%')}, on average "
        "over the systems.",
    ]


def _blind_to_order(exact: pd.DataFrame) -> str:
    """Which systems have one score on all orders of every conversation."""
    ranges = (exact["maximum"] - exact["minimum"]).groupby(exact["run"], sort=False).max()
    runs = ranges.index[ranges < _ROUNDING].tolist()
    if len(runs) > 1:
        return f"{', '.join(runs[:-1])} and {runs[-1]} do not see the order"
    return f"{''.join(runs)} does not see the order"


def _less_or_more(gain: Evidence) -> str:
    """Whether the rewriter is steadier, where ``gain`` is what it saves."""
    if gain.low is not None and gain.low > 0:
        return "less"
    if gain.high is not None and gain.high < 0:
        return "more"
    return "neither clearly less nor clearly more"


def worst_quarter(worst: pd.DataFrame) -> str:
    """Who is best on average over all orders, and who on their worst quarter.

    ``worst``: columns run, mean, and the last one the mean of the worst share.
    """
    tail = str(worst.columns[-1])
    loss = 1 - worst[tail] / worst["mean"]
    best = worst.loc[worst["mean"].idxmax(), "run"]
    best_of_tail = worst.loc[worst[tail].idxmax(), "run"]
    same = worst["mean"].rank().eq(worst[tail].rank()).sum()
    return (
        f"On the worst quarter of its orders a system has {loss.min():.0%} "
        f"({worst.loc[loss.idxmin(), 'run']}) to {loss.max():.0%} "
        f"({worst.loc[loss.idxmax(), 'run']}) less than on average. {best} is best on average and "
        f"{best_of_tail} on the worst quarter; {same} of {len(worst)} systems keep their rank."
    )


def sampled_range(errors: pd.DataFrame, drawn: int) -> str:
    """How much of the exact range sampled orders show, and how far their means are off."""
    sampled = errors["sampled maximum"] - errors["sampled minimum"]
    share = sampled / (errors["maximum"] - errors["minimum"])
    distance = errors["error"].abs()
    beyond = int((distance > 1.96 * errors["standard error"]).sum())
    return (
        f"Up to {drawn} drawn orders of each conversation show {share.min():.0%} to "
        f"{share.max():.0%} of the range of a system; {beyond} of {len(errors)} sampled means lie "
        "further from the exact one than twice their standard error, the furthest by "
        f"{distance.max():.4f}."
    )


def undefined(correlations: pd.DataFrame, first: str, second: str) -> str:
    """Which correlations are not defined, and so not drawn."""
    missing = correlations[correlations["correlation"].isna()]
    reason = ""
    if len(missing):
        names = ", ".join(f"{row.run} on {row.topic}" for row in missing.itertuples())
        reason = f" ({names}), where one of the two measures is the same on every order"
    counts = f"{len(missing)} of {len(correlations)}"
    return f"{counts} correlations of {first} and {second} are not defined{reason}."


def interaction(
    without: pd.DataFrame, with_it: pd.DataFrame, by_chance: Mapping[str, float]
) -> str:
    """What taking topic x model out of the residual changes, and what randomisation says."""
    nested = "permutation(topic)"
    return (
        f"As long as topic x model is part of the residual, as in MD1, {nested} has "
        f"{_ratio(without, nested)} ({_p(without, nested)}); once it is taken out, "
        f"{_ratio(with_it, nested)} ({_p(with_it, nested)}; "
        f"by randomisation p = {by_chance[nested]:.2g}). Systems differ with "
        f"{_ratio(without, 'model')} against that residual ({_p(without, 'model')}), and with "
        f"{_ratio(with_it, 'model')} over conversations ({_p(with_it, 'model')}; "
        f"by randomisation p = {by_chance['model']:.2g})."
    )


def _ratio(table: pd.DataFrame, source: str) -> str:
    return f"F = {table.set_index('source').loc[source, 'F']:.2f}"


def _p(table: pd.DataFrame, source: str) -> str:
    p = table.set_index("source").loc[source, "p"]
    if p < 1e-4:
        return "p < 0.0001"
    return f"p = {p:.2g}"


def weights(table: pd.DataFrame) -> str:
    """LP beside CU by the paper's words and by the program, as a question."""
    means = table.pivot_table(index="variant", columns="run", values="mean", sort=False)
    parts = []
    for variant, row in means.iterrows():
        parts.append(f"by the {variant}: LP {row['LP']:.4f}, CU {row['CU']:.4f}")
    return (
        f"Mean scores over the orders {'; '.join(parts)}. The paper finds LP alone in its worst "
        "tier, below CU. Is that due to the method, or to the weight that the program gives to "
        "the previous utterance? The paper cannot say, nor can this replica."
    )


def script_in_words(spread: pd.DataFrame) -> str:
    """Share of the drawn orders of each conversation above its script; of `conversation_spread`."""
    script = spread[spread["permutation"] == 0].set_index("topic")["value"]
    is_above = spread["value"] > spread["topic"].map(script)
    shares = is_above.groupby(spread["topic"], sort=False).mean()
    return f"Share of the orders above the script: {_values_by_name(shares, '.0%')}"


def wins_in_words(wins: pd.DataFrame) -> str:
    """How often the order decides between two systems; of `preference`, both ways round."""
    pairs = wins[wins["a"] < wins["b"]]
    share = (~pairs["wins"].isin([0, 1])).mean()
    return (
        f"In {share:.0%} of all pairs of systems and conversations, "
        "the order decides which system is ahead"
    )


def ranges_in_words(errors: pd.DataFrame) -> str:
    """Lowest, mean and highest of each system over all orders; of `sampling_error`."""
    parts = []
    for row in errors.itertuples():
        parts.append(f"{row.run}: {row.minimum:.3f}, {row.mean:.3f}, {row.maximum:.3f}")
    return "; ".join(parts)


def stability_in_words(stability: pd.DataFrame) -> str:
    """How often so many orders rank the systems as all do; of `ranking_stability`."""
    same = stability.set_index("permutations")["same"]
    shares = _values_by_name(same, ".0%")
    return f"Share of draws with the exact ranking, by number of orders: {shares}"


def medians_in_words(correlations: pd.DataFrame) -> str:
    """Median rank correlation of each system."""
    medians = correlations.groupby("run", sort=False)["correlation"].median()
    return f"Medians: {_values_by_name(medians, '.2f')}"
