"""Evidence on claims: an estimate over conversations with its 95% confidence interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import special, stats

from equipoise.arrays import Floats, Integers
from equipoise.permutations.scores import ORIGINAL, largest_leads, preference
from equipoise.permutations.variance import anova, honest_difference, tier_numbers
from equipoise_compendium.evidence import (
    bootstrapped,
    bootstrapped_mean,
    minus_chance,
)
from equipoise_compendium.protocol import Evidence

_SEED = 16  # of every bootstrap
_RESAMPLES = 1999
_EXCHANGES = 1999  # of the systems on each conversation
_TIER_EXCHANGES = 499  # fewer, since tiers are counted one by one
_DATA_SETS = 4000  # simulated
_ALPHA = 0.05
_ROUNDING = 1e-12


over_conversations = partial(bootstrapped_mean, seed=_SEED)
"""Bootstrap a statistic of the means over conversations, the first axis."""


def by_system(values: pd.DataFrame, published: pd.Series | None = None) -> dict[str, Evidence]:
    """Bootstrap the mean over conversations of each column. ``published``: values by column."""
    known = {} if published is None else published.to_dict()
    evidence = {}
    for system in values.columns:
        evidence[system] = over_conversations(values[system], published=known.get(system))
    return evidence


def percent(evidence: Evidence) -> str:
    """Write a share with its interval in percent."""
    return f"{evidence.estimate:.0%} [{evidence.low:.0%}, {evidence.high:.0%}]"


def variance_ratio(
    ratio: float, freedom: tuple[float, float], *, published: float | None = None
) -> Evidence:
    """Return a ratio of two mean squares with the interval of its F distribution."""
    high_quantile, low_quantile = stats.f.ppf([1 - _ALPHA / 2, _ALPHA / 2], *freedom)
    low, high = float(ratio / high_quantile), float(ratio / low_quantile)
    return Evidence(float(ratio), low, high, published=published)


def bounds_of_ratios(published: pd.DataFrame, half_unit: float) -> pd.DataFrame:
    """Bound the F of a published analysis of variance by the rounding of its sums of squares.

    ``published``: one row per source, columns SS, DF, F. ``half_unit``: half a unit of the last
    published digit of SS. Returns columns source, lowest F, published F, highest F, within.
    """
    sources = published.astype({"SS": float, "DF": int})
    residual = sources.loc["Error"]
    factors = sources.drop(["Error", "Total"])
    least = (factors["SS"] - half_unit).clip(lower=0) / factors["DF"]
    most = (factors["SS"] + half_unit) / factors["DF"]
    bounds = pd.DataFrame(
        {
            "lowest F": least / ((residual["SS"] + half_unit) / residual["DF"]),
            "published F": factors["F"],
            "highest F": most / ((residual["SS"] - half_unit) / residual["DF"]),
        }
    )
    within = factors["F"].astype(float).between(bounds["lowest F"], bounds["highest F"])
    return bounds.assign(within=within.astype(str)).reset_index()


# --- systems randomly permuted on each conversation -----------------------------------------------


def systems_exchanged(values: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Permute each row of values shaped (conversations, systems) at random: (draws, ...)."""
    return rng.permuted(np.tile(values, (draws, 1, 1)), axis=2)


def model_effect(values: pd.DataFrame, *, published: float | None = None) -> Evidence:
    """Compute F of the factor model minus its expectation under the null hypothesis.

    The units are conversations; the systems are randomly permuted within each.

    ``values``: one row per conversation, one column per system.
    """
    centred = values.to_numpy() - values.to_numpy().mean(axis=1, keepdims=True)
    exchanged = systems_exchanged(centred, np.random.default_rng(_SEED), _EXCHANGES)
    observed_and_drawn = np.concatenate([centred[np.newaxis], exchanged])
    model_sum = len(values) * (observed_and_drawn.mean(axis=1) ** 2).sum(axis=1)
    interaction_sum = (centred**2).sum() - model_sum
    ratios = model_sum / interaction_sum * (len(values) - 1)
    return minus_chance(float(ratios[0]), ratios[1:], n=len(values), published=published)


def false_alarms(wide: pd.DataFrame) -> Evidence:
    """Compute how often MD1 finds an effect of the model under the null hypothesis.

    ``wide``: of `score_matrix`.
    """
    rows, systems = wide.shape
    centred = wide.sub(wide.mean(axis=1), axis=0)
    total = (centred.to_numpy() ** 2).sum()
    sums_of_topics = centred.groupby(level="topic", sort=False).sum().to_numpy()
    freedom = (rows - 1) * (systems - 1)

    exchanged = systems_exchanged(sums_of_topics, np.random.default_rng(_SEED), _EXCHANGES)
    model_sum = (exchanged.sum(axis=1) ** 2).sum(axis=1) / rows
    ratios = (model_sum / (systems - 1)) / ((total - model_sum) / freedom)
    alarms = int((ratios > stats.f.isf(_ALPHA, systems - 1, freedom)).sum())
    ends = stats.binomtest(alarms, _EXCHANGES).proportion_ci()
    return Evidence(alarms / _EXCHANGES, float(ends.low), float(ends.high))


# --- tiers ----------------------------------------------------------------------------------------


def count_tiers(parts: Sequence[Floats]) -> int:
    """Count tiers by Tukey's test on the residual of MD1; parts shaped (permutations, systems)."""
    values = np.concatenate(parts)
    rows, systems = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    means = centred.mean(axis=0)
    freedom = (rows - 1) * (systems - 1)
    mean_square = ((centred - means) ** 2).sum() / freedom
    difference = honest_difference(mean_square, freedom, systems, rows, _ALPHA)
    return tier_numbers(sorted(means.tolist(), reverse=True), difference)[-1]


def more_tiers(wide: pd.DataFrame) -> Evidence:
    """Compute tiers of MD1 minus tiers in the original order, minus their expectation by chance.

    ``wide``: of `score_matrix`.
    """
    parts = [part.to_numpy() for _, part in wide.groupby(level="topic", sort=False)]

    def gain(topic_sums: list[Floats]) -> int:
        # the original order is the first permutation of each conversation
        return count_tiers(topic_sums) - count_tiers([part[:1] for part in topic_sums])

    systems = np.tile(np.arange(wide.shape[1]), (len(parts), 1))
    by_chance = []
    for places in systems_exchanged(systems, np.random.default_rng(_SEED), _TIER_EXCHANGES):
        by_chance.append(gain([part[:, place] for part, place in zip(parts, places, strict=True)]))
    return minus_chance(gain(parts), by_chance, n=len(parts))


def more_tiers_exactly(original: pd.DataFrame, means: pd.DataFrame) -> Evidence:
    """Compute tiers of MD0 on exact means minus tiers in the original order.

    Both: one row per conversation, one column per system.
    """
    first, second = original.to_numpy()[:, np.newaxis], means.to_numpy()[:, np.newaxis]

    def gain(places: Integers) -> float:
        return float(count_tiers(second[places]) - count_tiers(first[places]))

    return bootstrapped(gain, len(first), seed=_SEED)


# --- variance components --------------------------------------------------------------------------


def omega_squared_of_topics(values: pd.DataFrame, *, published: float | None = None) -> Evidence:
    """Bootstrap partial omega squared of the factor topic of MD0.

    ``values``: one row per conversation, one column per system.
    """
    array = values.to_numpy()

    def omega_squared(places: Integers) -> float:
        drawn = array[places]
        topics, systems = drawn.shape
        topic_sums = systems * ((drawn.mean(axis=1) - drawn.mean()) ** 2).sum()
        residual = drawn - drawn.mean(axis=1, keepdims=True)
        residual = residual - residual.mean(axis=0)
        mean_square = (residual**2).sum() / ((topics - 1) * (systems - 1))
        surplus = topic_sums - (topics - 1) * mean_square
        return float(surplus / (surplus + topics * systems * mean_square))

    return bootstrapped(omega_squared, len(array), published, seed=_SEED)


def omega_squared_of_model(wide: pd.DataFrame, *, published: float | None = None) -> Evidence:
    """Bootstrap partial omega squared of the factor model of MD1.

    ``wide``: of `score_matrix`.
    """
    systems = wide.shape[1]
    centred = wide.sub(wide.mean(axis=1), axis=0)
    # Of each conversation the sums of the systems, the sum of squares and the number of rows: the
    # statistic of resampled conversations follows from these.
    rows = []
    for _, part in centred.groupby(level="topic", sort=False):
        values = part.to_numpy()
        rows.append([*values.sum(axis=0), (values**2).sum(), len(values)])

    def omega_squared(means: Floats) -> float:
        *totals, squares, n_rows = means * len(rows)
        model_sum = (np.array(totals) ** 2).sum() / n_rows
        residual = (squares - model_sum) / ((n_rows - 1) * (systems - 1))
        surplus = model_sum - (systems - 1) * residual
        return float(surplus / (surplus + n_rows * systems * residual))

    return over_conversations(np.array(rows), omega_squared, published=published)


def shared_by_systems(wide: pd.DataFrame) -> Evidence:
    r"""Bootstrap the share of the effect of a permutation that is common to the systems.

    .. math:: \rho = \frac{\sigma^2_\nu}{\sigma^2_\nu + \sigma^2_\varepsilon}

    Topic x model is taken out of the residual. The share is 0 where no permutation suits all
    systems, and 1 where every permutation changes all systems equally. ``wide``: of `score_matrix`.
    """
    systems = wide.shape[1]
    rows = []
    for _, part in wide.groupby(level="topic"):
        values = part.to_numpy() - part.to_numpy().mean(axis=0)
        means = values.mean(axis=1, keepdims=True)
        permutation_sum = systems * (means**2).sum()
        rows.append([permutation_sum, ((values - means) ** 2).sum(), len(part) - 1])
    sums = np.array(rows)

    def rho(places: Integers) -> float:
        permutation_sum, residual_sum, freedom = sums[places].sum(axis=0)
        nested = permutation_sum / freedom
        error = residual_sum / freedom / (systems - 1)
        return float((nested - error) / (nested + (systems - 1) * error))

    return bootstrapped(rho, len(sums), seed=_SEED)


# --- permutations that suit systems ---------------------------------------------------------------


def gains_chosen_by_others(scores_of_all: Mapping[str, Floats]) -> Floats:
    """Compute gains over the original order on the permutation that is best for the others.

    The best of many permutations is above any one by chance. So the system that is tested has no
    part in the choice: if no permutation suits all, the expected gain is 0. ``scores_of_all``: of
    `Experiment.scores_of_all`. Returns shape (conversations, systems).
    """
    gains = []
    for scores in scores_of_all.values():
        n_systems = scores.shape[1]
        mean_of_others = (scores.sum(axis=1, keepdims=True) - scores) / (n_systems - 1)
        best_for_others = mean_of_others.argmax(axis=0)
        gains.append(scores[best_for_others, np.arange(n_systems)] - scores[0])
    return np.array(gains)


def better_for_all(scores_of_all: Mapping[str, Floats]) -> Floats:
    """Compute the share of permutations that are better for all systems, minus chance.

    Better means a higher score than in the original order. By chance, the systems have independent
    preferences: the expected share is the product of their shares. ``scores_of_all``: of
    `Experiment.scores_of_all`. Returns shape (conversations,).
    """
    surplus = []
    for scores in scores_of_all.values():
        is_better = scores[1:] > scores[0] + _ROUNDING
        surplus.append(is_better.all(axis=1).mean() - is_better.mean(axis=0).prod())
    return np.array(surplus)


# --- rankings -------------------------------------------------------------------------------------


def taus_of_pairs(wide: pd.DataFrame) -> dict[str, Floats]:
    """Compute Kendall's tau between the rankings by any two permutations, by topic.

    ``wide``: of `score_matrix`. A permutation on which all systems are equal has no ranking.
    """
    taus = {}
    for topic, part in wide.groupby(level="topic", sort=False):
        values = part.to_numpy().round(12)  # scores that differ by rounding are tied
        pairs = [values[:, a] - values[:, b] for a, b in combinations(range(values.shape[1]), 2)]
        signs = np.sign(np.stack(pairs, axis=1))
        signs = signs[signs.any(axis=1)]
        lengths = np.sqrt((signs**2).sum(axis=1))
        tau = signs @ signs.T / np.outer(lengths, lengths)
        taus[str(topic)] = tau[np.triu_indices(len(signs), 1)]
    return taus


def original_and_mean(wide: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return scores in the original order and means over permutations, both by conversation."""
    original = wide.xs(ORIGINAL, level="permutation")
    return original, wide.groupby(level="topic", sort=False).mean().loc[original.index]


# --- findings on a pool of passages ---------------------------------------------------------------


def on_pool(wide: pd.DataFrame, runs: Sequence[str], design: Design) -> dict[str, Evidence]:
    """Return the evidence on each finding: of several parts the least favourable one.

    ``wide``: of `score_matrix`. ``runs``: systems that depend on the permutation. ``design``: of
    the simulations, with the permutations of the analyses of variance.
    """
    original, mean = original_and_mean(wide)
    moving = wide[list(runs)]
    of_nested = moving[moving.index.get_level_values("permutation") < design.permutations]
    topics = {str(topic): part.to_numpy() for topic, part in moving.groupby(level="topic")}
    gains = np.array(
        [values[1:].mean(axis=1).max() - values[0].mean() for values in topics.values()]
    )
    long = moving.rename_axis(columns="run").stack().rename("value").reset_index()  # noqa: PD013
    always = preference(long)
    share_always = 2 * (always["wins"] == 1).groupby(always["topic"], sort=False).mean()
    leads = largest_leads(long).reshape(len(topics), -1)
    md1 = anova(long[long["permutation"] < design.permutations], "MD1").set_index("source")
    freedom = md1.loc["permutation(topic)", "DF"], md1.loc["Error", "DF"]
    others = original.columns.difference(["FU"])
    return {
        "context-helps": _lowest(original[["FU", "CU"]].sub(original["BM25"], axis=0)),
        "2-first-utterance": _lowest(-original[others].sub(original["FU"], axis=0)),
        "2-decrease": over_conversations((mean - original)[list(runs)].mean(axis=1)),
        "2-maximum": _lowest(pd.DataFrame(gains_chosen_by_others(topics), columns=list(runs))),
        "2-favours": model_effect((original - mean)[list(runs)]),
        "f1-script": over_conversations((gains > _ROUNDING).astype(float)),
        "3-anyone": _lowest(pd.DataFrame(leads)),
        "f2-few": over_conversations(share_always),
        "4-alike": model_effect(original[list(runs)]),
        "4-conversation": omega_squared_of_topics(original[list(runs)]),
        "5-model": model_effect(mean[list(runs)]),
        "5-small": omega_squared_of_model(of_nested),
        "5-permutation": variance_ratio(float(md1.loc["permutation(topic)", "F"]), freedom),
        "5-better-for-all": over_conversations(better_for_all(topics)),
        "5-tiers": more_tiers(of_nested),
        "reliable": simulated(of_nested, design.false_alarms),
        "power": simulated(of_nested, partial(design.gain, "MD1")),
    }


def _lowest(values: pd.DataFrame) -> Evidence:
    """Bootstrap the column with the lowest mean over conversations."""
    return over_conversations(values[values.mean().idxmin()])


def tau_of_utterances(values: pd.DataFrame, topics: pd.Series) -> Evidence:
    """Compute Kendall's tau-b of two columns over utterances, with a jackknife over conversations.

    ``values``: two columns. ``topics``: the conversation of each row.
    """
    tau = stats.kendalltau(*values.to_numpy().T).statistic
    left_out = []
    for topic in topics.unique():
        others = values[(topics != topic).to_numpy()].to_numpy()
        left_out.append(stats.kendalltau(*others.T).statistic)
    deviations = np.array(left_out) - np.mean(left_out)
    n = len(left_out)
    half = stats.t.isf(_ALPHA / 2, n - 1) * np.sqrt((n - 1) / n * (deviations**2).sum())
    return Evidence(float(tau), float(tau - half), float(tau + half), n=n)


# --- power and false alarms -----------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """A simulated experiment: its size, and the sum of the squared effects of the systems."""

    conversations: int
    permutations: int
    systems: int
    effect: float

    @cached_property
    def _draws(self) -> tuple[Floats, ...]:
        """Draw a normal deviate and chi-squares: of model, topic x model and the residual."""
        rng = np.random.default_rng(_SEED)
        free = self.systems - 1
        freedom = free - 1, (self.conversations - 1) * free
        within = self.conversations * (self.permutations - 1) * free
        drawn = [rng.chisquare(each, _DATA_SETS) for each in (*freedom, within)]
        return rng.normal(size=_DATA_SETS), *drawn

    def ratios(
        self, interaction: float, residual: float, permutations: int, effect: float = 0.0
    ) -> Floats:
        r"""Draw F of the factor model in data sets of MD1, or of MD0 with one permutation.

        .. math:: SS_{model} \sim (\sigma^2_\varepsilon + m \sigma^2_{\tau\alpha})\,
            \chi'^2_{K-1}(\lambda), \quad \lambda = \frac{C m \sum_k \alpha_k^2}
            {\sigma^2_\varepsilon + m \sigma^2_{\tau\alpha}}

        The residual is the sum of topic x model and of the residual within conversations.
        ``interaction``, ``residual``: variance components. ``effect``: sum of squared effects.
        """
        normal, others, over, within = self._draws
        variance = residual + permutations * interaction
        shift = np.sqrt(self.conversations * permutations * effect / variance)
        model = variance * ((normal + shift) ** 2 + others)
        error = variance * over
        freedom = (self.conversations * permutations - 1) * (self.systems - 1)
        if permutations > 1:
            error = error + residual * within
        return (model / (self.systems - 1)) / (error / freedom)

    def false_alarms(self, interaction: float, residual: float) -> float:
        """Compute how often MD1 has p < 0.05 if the systems do not differ."""
        freedom = (self.conversations * self.permutations - 1) * (self.systems - 1)
        critical = special.fdtri(self.systems - 1, freedom, 1 - _ALPHA)
        return float((self.ratios(interaction, residual, self.permutations) > critical).mean())

    def powers(self, interaction: float, residual: float) -> dict[str, float]:
        """Compute the power of three tests, each with 5% false alarms."""
        tests = {
            "original order": (interaction, residual, 1),
            "MD1": (interaction, residual, self.permutations),
            "exact means": (interaction, 0.0, 1),
        }
        powers = {}
        for name, test in tests.items():
            critical = np.quantile(self.ratios(*test), 1 - _ALPHA)
            powers[name] = float((self.ratios(*test, self.effect) > critical).mean())
        return powers

    def gain(self, test: str, interaction: float, residual: float) -> float:
        """Compute how much more power a test has than the original order."""
        powers = self.powers(interaction, residual)
        return powers[test] - powers["original order"]


def sums_of_conversations(wide: pd.DataFrame) -> Floats:
    """Return what the variance components are computed from, one row per conversation.

    Means of the systems, their sum of squares, the sum of squares and the degrees of freedom of the
    residual, and 1 / permutations. ``wide``: of `score_matrix`.
    """
    rows = []
    for _, part in wide.sub(wide.mean(axis=1), axis=0).groupby(level="topic", sort=False):
        values = part.to_numpy()
        means = values.mean(axis=0)
        freedom = (len(values) - 1) * (len(means) - 1)
        squares = ((values - means) ** 2).sum()
        rows.append([*means, (means**2).sum(), squares, freedom, 1 / len(values)])
    return np.array(rows)


def variance_components(means: Floats, n: int) -> tuple[float, float]:
    """Estimate the variances of topic x model and of the residual.

    ``means``: of the columns of `sums_of_conversations` over ``n`` conversations.
    """
    *systems, squares, residual_sum, freedom, inverse = means
    residual = residual_sum / freedom
    of_means = (squares - np.square(systems).sum()) * n / ((n - 1) * (len(systems) - 1))
    return max(float(of_means - residual * inverse), 0.0), float(residual)


def simulated(
    wide: pd.DataFrame, statistic: Callable[[float, float], float], published: float | None = None
) -> Evidence:
    """Bootstrap over conversations a statistic of the variance components of MD1."""
    rows = sums_of_conversations(wide)
    return over_conversations(
        rows, lambda means: statistic(*variance_components(means, len(rows))), published=published
    )
