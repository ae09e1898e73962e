"""The evidence on the paper's claims: each the number that decides, with its interval over conversations."""

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
_LEVEL = 0.05
_EQUAL = 1e-12
_NOTHING_DRAWN = "it follows from printed numbers, and nothing was sampled"


def interval(
    values: Floats, statistic: Callable[[Floats], float] = float
) -> tuple[float, float, float]:
    """A statistic of the means over conversations, the first axis of the values, and the ends of its interval."""

    def of_those(places: Integers) -> float:
        return float(statistic(values[places].mean(axis=0)))

    return resampled(of_those, len(values), np.random.default_rng(_SEED), resamples=_RESAMPLES)


def _over_conversations(
    said: str,
    values: Floats,
    statistic: Callable[[Floats], float] = float,
    printed: float | None = None,
) -> Evidence:
    return Evidence(said, *interval(values, statistic), n=len(values), printed=printed)


def _printed(table: pd.DataFrame, column: str) -> pd.Series:
    return table.set_index("model")[column].astype(float)


def _of_source(printed: pd.DataFrame, source: str, column: str) -> float:
    return float(printed.set_index("source").loc[source, column])


def _by_topic(scores: pd.DataFrame) -> tuple[Floats, Floats, list[str]]:
    """Of each conversation and system the score of the script and the mean over all the orders, and the systems."""
    wide = score_matrix(scores)
    means = wide.groupby(level="topic", sort=False).mean()
    return (
        wide.xs(SCRIPT, level="permutation").to_numpy(),
        means.to_numpy(),
        [str(name) for name in wide.columns],
    )


def first_utterance_leads(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """FU against the best of the others, in the order of the script, of Table 2."""
    script, _, systems = _by_topic(scores)
    place, theirs = systems.index("FU"), _printed(printed, "orig. order")

    def lead(means: Floats) -> float:
        return means[place] - np.delete(means, place).max()

    said = "FU minus the best of the other systems, mean score in the order of the script"
    return _over_conversations(said, script, lead, float(theirs["FU"] - theirs.drop("FU").max()))


def first_utterance_stays(scores: pd.DataFrame) -> Evidence:
    """Highest minus lowest score of FU over the orders, of Table 2."""
    wide = score_matrix(scores[scores["run"] == "FU"]).groupby(level="topic")
    gap = float((wide.max() - wide.min()).to_numpy().max())
    return Evidence(
        "FU, largest difference between two orders of a conversation",
        gap,
        reason="FU sees no order",
    )


def permuting_changes(
    scores: pd.DataFrame, printed: pd.DataFrame | None = None, said: str = ""
) -> Evidence:
    """Mean over orders minus the script, over the systems that depend on the order, of Table 2."""
    script, means, systems = _by_topic(scores)
    theirs = None
    if printed is not None:
        known = [name for name in ["anCB", *systems] if name in {*printed["model"]}]
        theirs = float((_printed(printed, "mean") - _printed(printed, "orig. order"))[known].mean())
    said = said or "mean over orders minus the script, mean of the systems that depend on the order"
    return _over_conversations(said, (means - script).mean(axis=1), printed=theirs)


def permuting_can_raise(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """The smallest gain that any system has from its best orders, of Table 2."""
    wide = score_matrix(scores)
    best = (
        wide.groupby(level="topic", sort=False).max().to_numpy()
        - wide.xs(SCRIPT, level="permutation").to_numpy()
    )
    known = [name for name in ["anCB", *wide.columns] if name in {*printed["model"]}]
    theirs = float((_printed(printed, "max") - _printed(printed, "orig. order"))[known].min())
    said = "best orders minus the script, of the system that gains least (the script is among the orders)"
    return _over_conversations(said, best, np.min, theirs)


def _share_above_script(scores: pd.DataFrame) -> Floats:
    """Share of the orders of each conversation that score higher than the script, all systems."""
    spread = conversation_spread(scores)
    return spread.loc[spread["permutation"] == SCRIPT, "rank"].to_numpy()


def script_best(scores: pd.DataFrame) -> Evidence:
    """Share of the conversations in which no drawn order is better than the script, of Figure 1."""
    place = _share_above_script(scores)
    best = int((place == 0).sum())
    interval = stats.binomtest(best, len(place)).proportion_ci()
    said = f"share of the conversations whose script no drawn order beats ({best} of {len(place)})"
    return Evidence(
        said, best / len(place), float(interval.low), float(interval.high), n=len(place)
    )


def script_against_chance(scores: pd.DataFrame) -> Evidence:
    """Share of the other orders that beat the script, of Figure 1."""
    return _over_conversations(
        "share of the drawn orders that beat the script",
        _share_above_script(scores),
    )


def anyone_can_lead(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """The smallest entry of Table 3."""
    leads = conversation_leads(scores)
    theirs = float(printed.set_index("model").astype(float).to_numpy().min())
    return _over_conversations("smallest entry of Table 3", leads, np.min, theirs)


def always_won(wins: pd.DataFrame) -> Evidence:
    """Share of the pairs of systems of which one wins on every order, of Figure 2."""
    shares = (
        2 * (wins["wins"] == 1).groupby(wins["topic"], sort=False).mean()
    )  # a pair stands there twice
    said = "share of the pairs of systems and conversations in which one system wins on every order"
    return _over_conversations(said, shares.to_numpy())


def largest_difference(
    pairs: pd.DataFrame, conversations: int, said: str, printed: float | None = None
) -> Evidence:
    """The largest difference between two systems, with Tukey's interval."""
    row = pairs.loc[pairs["difference"].abs().idxmax()]
    turned = row["difference"] < 0
    low, high = sorted([-row["low"], -row["high"]] if turned else [row["low"], row["high"]])
    one, other = (row["b"], row["a"]) if turned else (row["a"], row["b"])
    said = f"{said} ({one} and {other}), Tukey's interval"
    return Evidence(
        said,
        abs(float(row["difference"])),
        float(low),
        float(high),
        n=conversations,
        printed=printed,
    )


def printed_gap(printed: pd.DataFrame) -> float:
    """Printed difference of the means of the best and the worst system of the analyses of variance."""
    numbers = _printed(printed, "mean")[["CU", "LP", "RM3p", "RM3s", "anCB"]]
    return float(numbers.max() - numbers.min())


def size_of_model(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """Partial omega squared of the factor model of MD1, of Table 5."""
    wide = score_matrix(scores)
    systems = wide.shape[1]
    centred = wide.sub(wide.mean(axis=1), axis=0)
    parts = [part.to_numpy() for _, part in centred.groupby(level="topic", sort=False)]
    sums = np.array([[*part.sum(axis=0), (part**2).sum(), len(part)] for part in parts])

    def omega_squared(means: Floats) -> float:
        *totals, squares, orders = means * len(parts)
        among = (np.array(totals) ** 2).sum() / orders
        residual = (squares - among) / ((orders - 1) * (systems - 1))
        surplus = among - (systems - 1) * residual
        return surplus / (surplus + orders * systems * residual)

    return _over_conversations(
        "partial omega squared of the factor model of MD1",
        sums,
        omega_squared,
        _of_source(printed, "model", "omega_squared"),
    )


def shared_effect(scores: pd.DataFrame, printed: pd.DataFrame) -> Evidence:
    """What of an order's effect every system has, of Table 5; beside the interaction."""
    found = shared_by_systems(scores, np.random.default_rng(_SEED), resamples=_RESAMPLES)
    systems = scores["run"].nunique()
    said = "share of an order's effect that is common to the systems, once topic x model is out of the residual"
    ratio = _of_source(printed, "permutation(topic)", "F")
    theirs = (ratio - 1) / (ratio + systems - 1)
    return Evidence(said, *found, n=scores["topic"].nunique(), printed=theirs)


def better_for_all(every: Mapping[str, Floats]) -> Evidence:
    """Share of the conversations with an order that serves every system better than the script, of Table 5.

    ``every``: of `Experiment.every`; the order of the script is the first of all.
    """
    found = [bool((scores > scores[0] + _EQUAL).all(axis=1).any()) for scores in every.values()]
    interval = stats.binomtest(sum(found), len(found)).proportion_ci()
    said = f"share of the conversations with an order better than the script for all systems ({sum(found)})"
    return Evidence(
        said, sum(found) / len(found), float(interval.low), float(interval.high), n=len(found)
    )


def more_tiers(scores: pd.DataFrame, exact: pd.DataFrame | None = None) -> Evidence:
    """Tiers of MD1 (or of MD0 on exact means) more than of MD0 on the script alone, of Table 5."""
    wide = score_matrix(scores if exact is None else scores[scores["run"].isin(exact["run"])])
    script = wide.xs(SCRIPT, level="permutation").to_numpy()
    parts = [part.to_numpy() for _, part in wide.groupby(level="topic", sort=False)]
    if exact is not None:
        means = exact.pivot_table(index="topic", columns="run", values="mean", sort=False)
        parts = [
            row[None] for row in means.loc[wide.index.unique("topic"), wide.columns].to_numpy()
        ]

    def gain(places: Integers) -> float:
        return float(
            _tiers([parts[place] for place in places])
            - _tiers([script[place][None] for place in places])
        )

    found = resampled(gain, len(parts), np.random.default_rng(_SEED), resamples=_RESAMPLES)
    said = f"tiers {'with exact means over all orders' if exact is not None else 'of MD1'} minus those of the script"
    return Evidence(said, *found, n=len(parts))


@cache
def _studentised_range(systems: int, freedom: int) -> float:
    return float(stats.studentized_range.isf(_LEVEL, systems, freedom))  # a second of time


def _tiers(parts: list[Floats]) -> int:
    """Tiers by Tukey's test on the residual beside orders and systems; values shaped (orders, systems)."""
    values = np.concatenate(parts)
    orders, systems = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    means = centred.mean(axis=0)
    freedom = (orders - 1) * (systems - 1)
    residual = ((centred - means) ** 2).sum() / freedom
    reach = _studentised_range(systems, freedom) * np.sqrt(residual / orders)
    tiers, waiting = 0, np.sort(means)[::-1]
    while len(waiting):
        tiers, waiting = tiers + 1, waiting[waiting[0] - waiting >= reach]
    return tiers


def orders_of_the_table(printed: pd.DataFrame, conversations: int) -> Evidence:
    """Orders of each conversation that the degrees of freedom of Table 5 mean."""
    nested = _of_source(printed, "permutation(topic)", "DF")
    return Evidence(
        "orders of each conversation in Table 5", nested / conversations + 1, reason=_NOTHING_DRAWN
    )


def noise_in_the_residual(printed: pd.DataFrame) -> Evidence:
    """Ratio of the mean squares of orders and residual in Table 5, with its interval where both are noise."""
    ratio = _of_source(printed, "permutation(topic)", "F")
    freedom = [_of_source(printed, name, "DF") for name in ("permutation(topic)", "Error")]
    low, high = ratio / stats.f.ppf([1 - _LEVEL / 2, _LEVEL / 2], *freedom)
    said = "printed F of permutation(topic), with the interval of an F distribution"
    return Evidence(said, ratio, float(low), float(high))


def tiers_named(printed: pd.DataFrame) -> Evidence:
    """Tiers that the text beside Table 5 names."""
    return Evidence("tiers named in the text", printed["tier"].nunique(), reason=_NOTHING_DRAWN)
