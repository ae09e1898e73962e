"""The evidence on the paper's claims: the number that decides each, with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats, Integers
from equipoise.measures.orders import SCRIPT, score_matrix
from equipoise.orders.effects import conversation_leads, conversation_spread
from equipoise.orders.variance import anova
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence, less_chance, stated, verdict
from equipoise_studies.permutations.order_tests import (
    exchange_ratios,
    shared_by_systems,
    with_systems_exchanged,
)

_SEED = 16  # of every bootstrap
_RESAMPLES = 1999
_EXCHANGES = 1999  # of the systems on each conversation
_TIER_EXCHANGES = 499  # fewer, since tiers are counted one by one
_ALPHA = 0.05
_ROUNDING = 1e-12
_NOTHING_DRAWN = "it follows from printed numbers, and nothing was sampled"


def weaker(claim: str, of_all: Evidence, of_paper: Evidence) -> Evidence:
    """The evidence that decides less: of all systems, or of those that the paper defines by a rule.

    Antecedent is our own rule in the place of a trained model, so no verdict may rest on it.
    """
    criterion = stated("permutations").loc[claim, "contradicted_if"]
    verdicts = [verdict(evidence, criterion) for evidence in (of_all, of_paper)]
    if set(verdicts) == {"holds", "contradicted"}:
        reason = f"{_beside('with', of_all)}, {_beside('without', of_paper)}: the verdict is ours"
        return Evidence(of_all.said, reason=reason)
    if verdicts[1] == "undecided":
        return replace(of_paper, said=f"{of_paper.said} ({_beside('with', of_all)})")
    return replace(of_all, said=f"{of_all.said} ({_beside('without', of_paper)})")


def _beside(word: str, evidence: Evidence) -> str:
    return f"{word} Antecedent {evidence.estimate:.4g} [{evidence.low:.4g}, {evidence.high:.4g}]"


def beside_replica(of_collection: Evidence, of_replica: Evidence) -> Evidence:
    """The evidence of the whole collection, with what the replica says of the paper's systems."""
    said = f"{of_collection.said} ({_beside('on the replica without', of_replica)})"
    return replace(of_collection, said=said)


def interval(
    values: Floats, statistic: Callable[[Floats], float] = float
) -> tuple[float, float, float]:
    """A statistic of the means over conversations, the first axis, and the ends of its interval."""

    def of_drawn(places: Integers) -> float:
        return float(statistic(values[places].mean(axis=0)))

    return resampled(of_drawn, len(values), np.random.default_rng(_SEED), resamples=_RESAMPLES)


def _over_conversations(
    statement: str,
    values: Floats,
    statistic: Callable[[Floats], float] = float,
    printed: float | None = None,
) -> Evidence:
    return Evidence(statement, *interval(values, statistic), n=len(values), printed=printed)


def _share_of_conversations(statement: str, holds: Floats) -> Evidence:
    """Share of the conversations in which something holds, with its exact binomial interval."""
    count = int(holds.sum())
    ends = stats.binomtest(count, len(holds)).proportion_ci()
    share = count / len(holds)
    return Evidence(statement, share, float(ends.low), float(ends.high), n=len(holds))


def _printed_of_systems(table: pd.DataFrame, column: str) -> pd.Series:
    return table.set_index("model")[column].astype(float)


def _printed_of_source(table: pd.DataFrame, source: str, column: str) -> float:
    return float(table.set_index("source").loc[source, column])


def _printed_changes(printed: pd.DataFrame, column: str, systems: list[str]) -> pd.Series:
    """Printed value minus that of the original order; anCB is the paper's for Antecedent."""
    change = _printed_of_systems(printed, column) - _printed_of_systems(printed, "orig. order")
    return change[["anCB" if name == "Antecedent" else name for name in systems]]


def coreference_leads(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """Coreference against the first and the last utterance added, whole collection, of Table 2."""
    wide = score_matrix(scores).xs(SCRIPT, level="permutation")
    lead = (wide["CR + BM25"] - wide["BM25 FLC"]).to_numpy()
    original = _printed_of_systems(printed, "orig. order")
    statement = (
        "BM25 behind a coreference model minus BM25 of the first, last and current utterance"
    )
    return _over_conversations(statement, lead, printed=float(original["anCB"] - original["CU"]))


def first_utterance_leads(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """FU against the best of the others, in the order of the script, of Table 2."""
    wide = score_matrix(scores)
    script = wide.xs(SCRIPT, level="permutation").to_numpy()
    place = wide.columns.get_loc("FU")
    original = _printed_of_systems(printed, "orig. order")

    def lead(means: Floats) -> float:
        return means[place] - np.delete(means, place).max()

    statement = "FU minus the best of the other systems, mean score in the order of the script"
    printed_lead = float(original["FU"] - original.drop("FU").max())
    return _over_conversations(statement, script, lead, printed_lead)


def first_utterance_stays(scores: pd.DataFrame) -> Evidence:
    """Highest minus lowest score of FU over the orders, of Table 2."""
    by_topic = score_matrix(scores[scores["run"] == "FU"]).groupby(level="topic")
    gap = float((by_topic.max() - by_topic.min()).to_numpy().max())
    statement = "FU, largest difference between two orders of a conversation"
    return Evidence(statement, gap, reason="FU sees no order")


def permuting_changes(
    scores: pd.DataFrame, printed: pd.DataFrame | None = None, said: str = ""
) -> Evidence:
    """Mean over orders minus the script, over the systems that depend on the order, of Table 2."""
    wide = score_matrix(scores)
    script = wide.xs(SCRIPT, level="permutation").to_numpy()
    means = wide.groupby(level="topic", sort=False).mean().to_numpy()
    printed_change = None
    if printed is not None:
        printed_change = float(_printed_changes(printed, "mean", list(wide.columns)).mean())
    default = "mean over orders minus the script, mean of the systems that depend on the order"
    changes = (means - script).mean(axis=1)
    return _over_conversations(said or default, changes, printed=printed_change)


def better_by_others(scores_by_topic: Mapping[str, Floats]) -> Evidence:
    """Whether orders that suit the other systems beat the script for each system, of Table 2.

    The best of all orders beats the script by chance alone. So for each system the order is chosen
    by the mean score of the others. ``scores_by_topic``: of `Experiment.every`; the order of the
    script is the first of all.
    """
    gains = []
    for scores in scores_by_topic.values():
        systems = scores.shape[1]
        of_others = (scores.sum(axis=1, keepdims=True) - scores) / (systems - 1)
        best_for_others = of_others.argmax(axis=0)
        gains.append(scores[best_for_others, np.arange(systems)] - scores[0])
    statement = (
        "score in the order that is best for the other systems minus the script, "
        "of the system that gains least"
    )
    return _over_conversations(statement, np.array(gains), np.min)


def printed_gain(printed: pd.DataFrame) -> Evidence:
    """The smallest printed gain of a best order over the script, of Table 2."""
    systems = ["CU", "LP", "RM3p", "RM3s", "Antecedent"]
    gain = float(_printed_changes(printed, "max", systems).min())
    return Evidence("smallest gain of the printed maximum", gain, reason=_NOTHING_DRAWN)


def _taus_of_orders(scores: pd.DataFrame) -> list[Floats]:
    """Of each conversation Kendall's tau between the rankings of the systems by two orders each."""
    taus = []
    for _, part in score_matrix(scores).groupby(level="topic", sort=False):
        values = part.to_numpy().round(12)  # scores that differ by rounding are tied
        pairs = [values[:, a] - values[:, b] for a, b in combinations(range(values.shape[1]), 2)]
        signs = np.sign(np.stack(pairs, axis=1))
        # An order on which all systems are equal has no ranking.
        signs = signs[signs.any(axis=1)]
        lengths = np.sqrt((signs**2).sum(axis=1))
        tau = signs @ signs.T / np.outer(lengths, lengths)
        taus.append(tau[np.triu_indices(len(signs), 1)])
    return taus


def rankings_alike(scores: pd.DataFrame) -> Evidence:
    """Kendall's tau between the rankings of the systems by two orders of one conversation."""
    means = [taus.mean() for taus in _taus_of_orders(scores)]
    statement = "Kendall's tau between the rankings by two drawn orders, mean over all pairs"
    return _over_conversations(statement, np.array(means))


def rankings_unlike(scores: pd.DataFrame) -> Evidence:
    """Why a sentence on different rankings has no verdict: orders can be drawn or chosen."""
    taus = _taus_of_orders(scores)
    drawn = float(np.mean([of_pairs.mean() for of_pairs in taus]))
    chosen = sum(of_pairs.min() <= 0 for of_pairs in taus)
    reason = (
        f"it does not say of which orders: tau is {drawn:.2f} for two that are drawn, and 0 or "
        f"less for the two that differ most in {chosen} of {len(taus)} conversations"
    )
    return Evidence("Kendall's tau between the rankings by two orders", reason=reason)


def _share_above_script(scores: pd.DataFrame) -> Floats:
    """Share of the orders of each conversation that score higher than the script, all systems."""
    spread = conversation_spread(scores)
    return spread.loc[spread["permutation"] == SCRIPT, "rank"].to_numpy()


def script_best(scores: pd.DataFrame) -> Evidence:
    """Share of the conversations in which no drawn order is better than the script, of Figure 1."""
    is_best = _share_above_script(scores) == 0
    statement = (
        "share of the conversations whose script no drawn order beats "
        f"({is_best.sum()} of {len(is_best)})"
    )
    return _share_of_conversations(statement, is_best)


def script_against_chance(scores: pd.DataFrame) -> Evidence:
    """Share of the other orders that beat the script, of Figure 1."""
    statement = "share of the drawn orders that beat the script"
    return _over_conversations(statement, _share_above_script(scores))


def anyone_can_lead(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """The smallest entry of Table 3."""
    smallest = float(printed.set_index("model").astype(float).to_numpy().min())
    leads = conversation_leads(scores)
    return _over_conversations("smallest entry of Table 3", leads, np.min, smallest)


def always_won(wins: pd.DataFrame) -> Evidence:
    """Share of the pairs of systems of which one wins on every order, of Figure 2."""
    # A pair stands there twice, and only one of its systems can always win.
    shares = 2 * (wins["wins"] == 1).groupby(wins["topic"], sort=False).mean()
    statement = (
        "share of the pairs of systems and conversations in which one system wins on every order"
    )
    return _over_conversations(statement, shares.to_numpy())


def printed_difference(printed: pd.DataFrame) -> Evidence:
    """The largest entry of Table 3, in percent."""
    largest = 100 * float(printed.set_index("model").astype(float).to_numpy().max())
    return Evidence("largest entry of Table 3, in percent", largest, reason=_NOTHING_DRAWN)


def model_effect(values: pd.DataFrame, said: str, printed: float | None = None) -> Evidence:
    """F of the factor model over conversations, less what exchanged systems give.

    ``values``: a row a conversation, a column a system.
    """
    matrix = values.to_numpy(dtype=np.float64)
    ratios = exchange_ratios(matrix, np.random.default_rng(_SEED), draws=_EXCHANGES)
    return less_chance(
        f"F of the factor model, {said}",
        float(ratios[0]),
        ratios[1:],
        n=len(values),
        printed=printed,
    )


def model_on_script(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """F of the factor model of MD0, in the order of the script, of Table 4."""
    script = score_matrix(scores).xs(SCRIPT, level="permutation")
    ratio = _printed_of_source(printed, "model", "F")
    return model_effect(script, "in the order of the script", ratio)


def model_on_all_orders(exact: pd.DataFrame) -> Evidence:
    """F of the factor model on exact means over all orders, of Table 5."""
    means = exact.pivot_table(index="topic", columns="run", values="mean", sort=False)
    return model_effect(means, "exact means over all orders")


def script_favours(scores: pd.DataFrame) -> Evidence:
    """Whether systems differ in what the order of the script gives them over the drawn ones."""
    wide = score_matrix(scores)
    script = wide.xs(SCRIPT, level="permutation")
    means = wide.groupby(level="topic", sort=False).mean()
    return model_effect(script - means.loc[script.index], "script minus mean over orders")


def conversation_effect(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """Partial omega squared of the factor topic of MD0, of Table 4."""
    script = score_matrix(scores).xs(SCRIPT, level="permutation").to_numpy()

    def omega_squared(places: Integers) -> float:
        values = script[places]
        topics, systems = values.shape
        of_topics = systems * ((values.mean(axis=1) - values.mean()) ** 2).sum()
        residual = values - values.mean(axis=1, keepdims=True)
        residual = residual - residual.mean(axis=0)
        mean_square = (residual**2).sum() / ((topics - 1) * (systems - 1))
        surplus = of_topics - (topics - 1) * mean_square
        return float(surplus / (surplus + topics * systems * mean_square))

    estimate = resampled(
        omega_squared, len(script), np.random.default_rng(_SEED), resamples=_RESAMPLES
    )
    printed_size = _printed_of_source(printed, "topic", "omega_squared")
    statement = "partial omega squared of the factor topic of MD0"
    return Evidence(statement, *estimate, n=len(script), printed=printed_size)


def size_of_model(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """Partial omega squared of the factor model of MD1, of Table 5."""
    wide = score_matrix(scores)
    systems = wide.shape[1]
    centred = wide.sub(wide.mean(axis=1), axis=0)
    # Of each conversation the sums of the systems, the sum of squares and the number of orders:
    # the statistic of resampled conversations follows from these.
    rows = []
    for _, part in centred.groupby(level="topic", sort=False):
        values = part.to_numpy()
        rows.append([*values.sum(axis=0), (values**2).sum(), len(values)])
    sums = np.array(rows)

    def omega_squared(means: Floats) -> float:
        *totals, squares, orders = means * len(sums)
        among = (np.array(totals) ** 2).sum() / orders
        residual = (squares - among) / ((orders - 1) * (systems - 1))
        surplus = among - (systems - 1) * residual
        return surplus / (surplus + orders * systems * residual)

    statement = "partial omega squared of the factor model of MD1"
    printed_size = _printed_of_source(printed, "model", "omega_squared")
    return _over_conversations(statement, sums, omega_squared, printed_size)


def order_effect(scores: pd.DataFrame, of_paper: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """F of permutation(topic) under the paper's own MD1, of Table 5.

    ``of_paper``: the scores without Antecedent; what they say stands beside it in words.
    """
    nested = "permutation(topic)"
    table = anova(scores, "MD1").set_index("source")
    beside = anova(of_paper, "MD1").set_index("source").loc[nested]
    freedom = float(table.loc[nested, "DF"]), float(table.loc["Error", "DF"])
    statement = (
        f"F of {nested} under the paper's MD1, p = {table.loc[nested, 'p']:.2g} "
        f"(without Antecedent F = {beside['F']:.3g}, p = {beside['p']:.2g})"
    )
    ratio = float(table.loc[nested, "F"])
    return _ratio_of_variances(statement, ratio, freedom, _printed_of_source(printed, nested, "F"))


def _ratio_of_variances(
    said: str, ratio: float, freedom: tuple[float, float], printed: float | None = None
) -> Evidence:
    """A ratio of two mean squares, with the interval of the F distribution."""
    high_quantile, low_quantile = stats.f.ppf([1 - _ALPHA / 2, _ALPHA / 2], *freedom)
    statement = f"{said}, with the interval of an F distribution"
    return Evidence(
        statement,
        ratio,
        float(ratio / high_quantile),
        float(ratio / low_quantile),
        printed=printed,
    )


def shared_effect(scores: pd.DataFrame) -> Evidence:
    """What of an order's effect every system has, beside the interaction of topic and model."""
    share, low, high = shared_by_systems(scores, np.random.default_rng(_SEED), resamples=_RESAMPLES)
    statement = (
        "share of an order's effect that is common to the systems, "
        "once topic x model is out of the residual"
    )
    return Evidence(statement, share, low, high, n=scores["topic"].nunique())


def better_for_all(scores_by_topic: Mapping[str, Floats]) -> Evidence:
    """How much more often an order is better than the script for all systems than by chance.

    By chance each system has orders of its own that are better, as many as it has here.
    ``scores_by_topic``: of `Experiment.every`; the order of the script is the first of all.
    """
    surplus = []
    conversations_with_any = 0
    for scores in scores_by_topic.values():
        is_better = scores[1:] > scores[0] + _ROUNDING
        for_all = is_better.all(axis=1)
        by_chance = is_better.mean(axis=0).prod()
        surplus.append(for_all.mean() - by_chance)
        conversations_with_any += int(for_all.any())
    statement = (
        "share of the orders that are better than the script for all systems, less what chance "
        f"gives ({conversations_with_any} conversations have any)"
    )
    return _over_conversations(statement, np.array(surplus))


def more_tiers(scores: pd.DataFrame) -> Evidence:
    """Tiers of MD1 more than of MD0 on the script alone, less what exchanged systems give."""
    wide = score_matrix(scores)
    parts = [part.to_numpy() for _, part in wide.groupby(level="topic", sort=False)]

    def gain(of_topics: list[Floats]) -> int:
        # the script is the first order of each conversation
        return _tiers(of_topics) - _tiers([part[:1] for part in of_topics])

    systems = np.tile(np.arange(wide.shape[1]), (len(parts), 1))
    rng = np.random.default_rng(_SEED)
    by_chance = []
    for places in with_systems_exchanged(systems, rng, draws=_TIER_EXCHANGES):
        exchanged = [part[:, place] for part, place in zip(parts, places, strict=True)]
        by_chance.append(gain(exchanged))
    statement = "tiers of MD1 minus those of the script"
    return less_chance(statement, gain(parts), by_chance, n=len(parts))


def more_tiers_exactly(scores: pd.DataFrame, exact: pd.DataFrame) -> Evidence:
    """Tiers of MD0 on exact means over all orders more than on the script alone."""
    wide = score_matrix(scores[scores["run"].isin(exact["run"])])
    script = wide.xs(SCRIPT, level="permutation")
    means = exact.pivot_table(index="topic", columns="run", values="mean", sort=False)
    of_script = script.to_numpy()[:, np.newaxis]  # (topics, 1, systems)
    of_means = means.loc[script.index, script.columns].to_numpy()[:, np.newaxis]

    def gain(places: Integers) -> float:
        return float(_tiers(list(of_means[places])) - _tiers(list(of_script[places])))

    estimate = resampled(gain, len(script), np.random.default_rng(_SEED), resamples=_RESAMPLES)
    statement = "tiers with exact means over all orders minus those of the script"
    return Evidence(statement, *estimate, n=len(script))


def false_alarms(scores: pd.DataFrame) -> Evidence:
    """How often MD1 calls the factor model significant though systems were exchanged at random."""
    wide = score_matrix(scores)
    rows, systems = wide.shape
    centred = wide.sub(wide.mean(axis=1), axis=0)
    total = (centred.to_numpy() ** 2).sum()
    sums_of_topics = centred.groupby(level="topic", sort=False).sum().to_numpy()
    freedom = (rows - 1) * (systems - 1)

    rng = np.random.default_rng(_SEED)
    sums = with_systems_exchanged(sums_of_topics, rng, draws=_EXCHANGES).sum(axis=1)
    of_model = (sums**2).sum(axis=1) / rows
    ratios = (of_model / (systems - 1)) / ((total - of_model) / freedom)
    alarms = int((ratios > stats.f.isf(_ALPHA, systems - 1, freedom)).sum())
    ends = stats.binomtest(alarms, _EXCHANGES).proportion_ci()
    statement = (
        f"share of {_EXCHANGES:,} random exchanges of the systems on each conversation after which "
        "MD1 finds the factor model significant"
    )
    return Evidence(statement, alarms / _EXCHANGES, float(ends.low), float(ends.high))


@cache
def _studentised_range(systems: int, freedom: int) -> float:
    # cached: it takes a second
    return float(stats.studentized_range.isf(_ALPHA, systems, freedom))


def _tiers(parts: list[Floats]) -> int:
    """Tiers by Tukey's test on the residual beside orders; values shaped (orders, systems)."""
    values = np.concatenate(parts)
    orders, systems = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    means = centred.mean(axis=0)
    freedom = (orders - 1) * (systems - 1)
    residual = ((centred - means) ** 2).sum() / freedom
    reach = _studentised_range(systems, freedom) * np.sqrt(residual / orders)
    tiers = 0
    waiting = np.sort(means)[::-1]
    while len(waiting):
        tiers += 1
        waiting = waiting[waiting[0] - waiting >= reach]
    return tiers


def orders_of_the_table(printed: pd.DataFrame, conversations: int) -> Evidence:
    """Orders of each conversation that the degrees of freedom of Table 5 mean."""
    nested = _printed_of_source(printed, "permutation(topic)", "DF")
    orders = nested / conversations + 1
    return Evidence("orders of each conversation in Table 5", orders, reason=_NOTHING_DRAWN)


def noise_in_the_residual(printed: pd.DataFrame) -> Evidence:
    """Ratio of the mean squares of orders and residual in Table 5, and its interval under noise."""
    ratio = _printed_of_source(printed, "permutation(topic)", "F")
    freedom_of_orders = _printed_of_source(printed, "permutation(topic)", "DF")
    freedom_of_error = _printed_of_source(printed, "Error", "DF")
    freedom = freedom_of_orders, freedom_of_error
    return _ratio_of_variances("printed F of permutation(topic)", ratio, freedom)


def least_significant(printed: pd.DataFrame) -> Evidence:
    """The largest p of a factor that follows from the F of Table 5."""
    table = printed.set_index("source")
    freedom_of_error = float(table.loc["Error", "DF"])
    factors = table.drop(["Error", "Total"])[["F", "DF"]].astype(float)
    p_values = stats.f.sf(factors["F"], factors["DF"], freedom_of_error)
    source = factors.index[p_values.argmax()]
    statement = f"largest p of a factor in Table 5, of {source}"
    return Evidence(statement, float(p_values.max()), reason=_NOTHING_DRAWN)


def tiers_named(printed: pd.DataFrame) -> Evidence:
    """Tiers that the text beside Table 5 names."""
    tiers = printed["tier"].nunique()
    return Evidence("tiers named in the text", tiers, reason=_NOTHING_DRAWN)
