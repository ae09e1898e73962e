"""The evidence on the paper's claims: the number that decides each, with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats, Integers
from equipoise.measures.orders import SCRIPT, score_matrix
from equipoise.orders.effects import conversation_leads, conversation_spread
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence
from equipoise_studies.permutations.order_tests import shared_by_systems

_SEED = 16  # of every bootstrap
_RESAMPLES = 1999
_ALPHA = 0.05
_ROUNDING = 1e-12
_NOTHING_DRAWN = "it follows from printed numbers, and nothing was sampled"


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
    """Printed value minus that of the original order, of those systems that the paper has.

    The paper's anCB stands for Antecedent, the system by a rule.
    """
    change = _printed_of_systems(printed, column) - _printed_of_systems(printed, "orig. order")
    in_paper = [name for name in ["anCB", *systems] if name in change.index]
    return change[in_paper]


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


def permuting_can_raise(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """The smallest gain that any system has from its best orders, of Table 2."""
    wide = score_matrix(scores)
    script = wide.xs(SCRIPT, level="permutation").to_numpy()
    best = wide.groupby(level="topic", sort=False).max().to_numpy()
    printed_gain = float(_printed_changes(printed, "max", list(wide.columns)).min())
    statement = (
        "best orders minus the script, of the system that gains least "
        "(the script is among the orders)"
    )
    return _over_conversations(statement, best - script, np.min, printed_gain)


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


def largest_difference(
    pairs: pd.DataFrame, conversations: int, said: str, printed: float | None = None
) -> Evidence:
    """The largest difference between two systems, with Tukey's interval."""
    row = pairs.loc[pairs["difference"].abs().idxmax()]
    better, worse, low, high = row["a"], row["b"], row["low"], row["high"]
    if row["difference"] < 0:
        better, worse, low, high = worse, better, -high, -low
    statement = f"{said} ({better} and {worse}), Tukey's interval"
    difference = abs(float(row["difference"]))
    return Evidence(
        statement, difference, float(low), float(high), n=conversations, printed=printed
    )


def printed_gap(printed: pd.DataFrame) -> float:
    """Printed difference of the best and the worst mean in the analyses of variance."""
    means = _printed_of_systems(printed, "mean")[["CU", "LP", "RM3p", "RM3s", "anCB"]]
    return float(means.max() - means.min())


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


def shared_effect(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """What of an order's effect every system has, of Table 5; beside the interaction."""
    share, low, high = shared_by_systems(scores, np.random.default_rng(_SEED), resamples=_RESAMPLES)
    systems = scores["run"].nunique()
    ratio = _printed_of_source(printed, "permutation(topic)", "F")
    printed_share = (ratio - 1) / (ratio + systems - 1)
    statement = (
        "share of an order's effect that is common to the systems, "
        "once topic x model is out of the residual"
    )
    conversations = scores["topic"].nunique()
    return Evidence(statement, share, low, high, n=conversations, printed=printed_share)


def better_for_all(scores_by_topic: Mapping[str, Floats]) -> Evidence:
    """Share of the conversations with an order better for every system than the script, of Table 5.

    ``scores_by_topic``: of `Experiment.every`; the order of the script is the first of all.
    """
    exists = []
    for scores in scores_by_topic.values():
        better = (scores > scores[0] + _ROUNDING).all(axis=1)
        exists.append(better.any())
    statement = (
        "share of the conversations with an order better than the script for all systems "
        f"({sum(exists)})"
    )
    return _share_of_conversations(statement, np.array(exists))


def more_tiers(scores: pd.DataFrame, exact: pd.DataFrame | None = None) -> Evidence:
    """Tiers of MD1 (or of MD0 on exact means) more than of MD0 on the script alone, of Table 5."""
    if exact is not None:
        scores = scores[scores["run"].isin(exact["run"])]
    wide = score_matrix(scores)
    script = wide.xs(SCRIPT, level="permutation").to_numpy()[:, np.newaxis]  # (topics, 1, systems)
    if exact is None:
        of_design = "of MD1"
        parts = [part.to_numpy() for _, part in wide.groupby(level="topic", sort=False)]
    else:
        of_design = "with exact means over all orders"
        means = exact.pivot_table(index="topic", columns="run", values="mean", sort=False)
        means = means.loc[wide.index.unique("topic"), wide.columns]
        parts = list(means.to_numpy()[:, np.newaxis])

    def gain(places: Integers) -> float:
        with_orders = _tiers([parts[place] for place in places])
        on_script = _tiers([script[place] for place in places])
        return float(with_orders - on_script)

    estimate = resampled(gain, len(parts), np.random.default_rng(_SEED), resamples=_RESAMPLES)
    return Evidence(f"tiers {of_design} minus those of the script", *estimate, n=len(parts))


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
    quantiles = stats.f.ppf([1 - _ALPHA / 2, _ALPHA / 2], freedom_of_orders, freedom_of_error)
    low, high = ratio / quantiles
    statement = "printed F of permutation(topic), with the interval of an F distribution"
    return Evidence(statement, ratio, float(low), float(high))


def tiers_named(printed: pd.DataFrame) -> Evidence:
    """Tiers that the text beside Table 5 names."""
    tiers = printed["tier"].nunique()
    return Evidence("tiers named in the text", tiers, reason=_NOTHING_DRAWN)
