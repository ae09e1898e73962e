"""Evidence on claims: an estimate over conversations with its 95% interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats, Integers
from equipoise.permutations.scores import ORIGINAL
from equipoise.permutations.variance import honest_difference, tiers
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence, less_chance, stated, verdict

NOTHING_SAMPLED = "it follows from published numbers, and nothing was sampled"
_SEED = 16  # of every bootstrap
_RESAMPLES = 1999
_EXCHANGES = 1999  # of the systems on each conversation
_TIER_EXCHANGES = 499  # fewer, since tiers are counted one by one
_ALPHA = 0.05


def weaker(claim: str, with_all: Evidence, with_published: Evidence) -> Evidence:
    """The evidence that decides less: of all systems, or of those that the paper defines by a rule.

    Antecedent is our own rule in place of a trained model, so no verdict may rest on it.
    """
    criterion = stated("permutations").loc[claim, "contradicted_if"]
    verdicts = [verdict(evidence, criterion) for evidence in (with_all, with_published)]
    if set(verdicts) == {"holds", "contradicted"}:
        reason = (
            f"the verdict depends on our rule Antecedent: {_numbers('with it', with_all)},"
            f" {_numbers('without it', with_published)}"
        )
        return Evidence(with_all.said, reason=reason)
    if verdicts[1] == "undecided":
        return with_note(with_published, _numbers("with Antecedent", with_all))
    return with_note(with_all, _numbers("without Antecedent", with_published))


def with_note(evidence: Evidence, note: str) -> Evidence:
    """The evidence, with a note in brackets."""
    return replace(evidence, said=f"{evidence.said} ({note})")


def _numbers(name: str, evidence: Evidence) -> str:
    return f"{name} {evidence.estimate:.4g} [{evidence.low:.4g}, {evidence.high:.4g}]"


def over_conversations(
    said: str,
    values: Floats | pd.Series | pd.DataFrame,
    statistic: Callable[[Floats], float] = float,
    *,
    published: float | None = None,
) -> Evidence:
    """A statistic of the means over conversations, the first axis; by default the mean itself."""
    array = np.asarray(values, dtype=np.float64)

    def drawn_mean(places: Integers) -> float:
        return float(statistic(array[places].mean(axis=0)))

    return bootstrapped(said, drawn_mean, len(array), published=published)


def bootstrapped(
    said: str,
    statistic: Callable[[Integers], float],
    conversations: int,
    *,
    published: float | None = None,
) -> Evidence:
    """A statistic of the places of conversations, which are drawn with replacement."""
    rng = np.random.default_rng(_SEED)
    interval = resampled(statistic, conversations, rng, resamples=_RESAMPLES)
    return Evidence(said, *interval, n=conversations, printed=published)


def lead_of_first(means: Floats) -> float:
    """First mean minus the best of the others."""
    return float(means[0] - means[1:].max())


def ratio_of_two(means: Floats) -> float:
    """First mean divided by the second."""
    return float(means[0] / means[1])


def share_of_conversations(said: str, holds: Sequence[bool] | pd.Series) -> Evidence:
    """Share of the conversations in which something holds, with its exact binomial interval."""
    count, conversations = int(np.sum(holds)), len(holds)
    ends = stats.binomtest(count, conversations).proportion_ci()
    share = count / conversations
    said = f"{said} ({count} of {conversations})"
    return Evidence(said, share, float(ends.low), float(ends.high), n=conversations)


def variance_ratio(
    said: str, ratio: float, freedom: tuple[float, float], *, published: float | None = None
) -> Evidence:
    """A ratio of two mean squares, with the interval of the F distribution."""
    high_quantile, low_quantile = stats.f.ppf([1 - _ALPHA / 2, _ALPHA / 2], *freedom)
    low, high = float(ratio / high_quantile), float(ratio / low_quantile)
    said = f"{said}, with the interval of an F distribution"
    return Evidence(said, ratio, low, high, printed=published)


# --- systems exchanged on each conversation -------------------------------------------------------


def systems_exchanged(values: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Values shaped (conversations, systems), each row randomly permuted: (draws, ...)."""
    return rng.permuted(np.tile(values, (draws, 1, 1)), axis=2)


def model_effect(said: str, values: pd.DataFrame, *, published: float | None = None) -> Evidence:
    """F of the factor model over conversations, minus its mean with systems randomly exchanged.

    ``values``: one row per conversation, one column per system.
    """
    centred = values.to_numpy() - values.to_numpy().mean(axis=1, keepdims=True)
    exchanged = systems_exchanged(centred, np.random.default_rng(_SEED), _EXCHANGES)
    observed_and_drawn = np.concatenate([centred[np.newaxis], exchanged])
    model_sum = len(values) * (observed_and_drawn.mean(axis=1) ** 2).sum(axis=1)
    interaction_sum = (centred**2).sum() - model_sum
    ratios = model_sum / interaction_sum * (len(values) - 1)
    return less_chance(
        f"F of the factor model, {said}",
        float(ratios[0]),
        ratios[1:],
        n=len(values),
        printed=published,
    )


def false_alarms(wide: pd.DataFrame) -> Evidence:
    """How often MD1 finds the factor model significant with systems randomly exchanged.

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
    said = (
        f"share of {_EXCHANGES:,} random exchanges of the systems on each conversation after which "
        "MD1 finds the factor model significant"
    )
    return Evidence(said, alarms / _EXCHANGES, float(ends.low), float(ends.high))


# --- tiers ----------------------------------------------------------------------------------------


def count_tiers(parts: Sequence[Floats]) -> int:
    """Tiers by Tukey's test on the residual of MD1; parts shaped (permutations, systems)."""
    values = np.concatenate(parts)
    rows, systems = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    means = centred.mean(axis=0)
    freedom = (rows - 1) * (systems - 1)
    mean_square = ((centred - means) ** 2).sum() / freedom
    difference = honest_difference(mean_square, freedom, systems, rows, _ALPHA)
    return int(tiers(pd.Series(means), difference).max())


def more_tiers(wide: pd.DataFrame) -> Evidence:
    """Tiers of MD1 minus those in the original order, compared with systems randomly exchanged.

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
    said = "tiers of MD1 minus tiers in the original order"
    return less_chance(said, gain(parts), by_chance, n=len(parts))


def more_tiers_exactly(original: pd.DataFrame, means: pd.DataFrame) -> Evidence:
    """Tiers of MD0 on exact means over all permutations minus those in the original order.

    Both: one row per conversation, one column per system.
    """
    first, second = original.to_numpy()[:, np.newaxis], means.to_numpy()[:, np.newaxis]

    def gain(places: Integers) -> float:
        return float(count_tiers(second[places]) - count_tiers(first[places]))

    said = "tiers with exact means over all permutations minus tiers in the original order"
    return bootstrapped(said, gain, len(first))


# --- variance components --------------------------------------------------------------------------


def omega_squared_of_topics(
    said: str, values: pd.DataFrame, *, published: float | None = None
) -> Evidence:
    """Partial omega squared of the factor topic of MD0.

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

    return bootstrapped(said, omega_squared, len(array), published=published)


def omega_squared_of_model(
    said: str, wide: pd.DataFrame, *, published: float | None = None
) -> Evidence:
    """Partial omega squared of the factor model of MD1; ``wide``: of `score_matrix`."""
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

    return over_conversations(said, np.array(rows), omega_squared, published=published)


def shared_by_systems(said: str, wide: pd.DataFrame) -> Evidence:
    r"""Share of the effect of a permutation that is common to the systems.

    .. math:: \rho = \frac{\sigma^2_\nu}{\sigma^2_\nu + \sigma^2_\varepsilon}

    with topic x model taken out of the residual: 0 where no permutation suits all systems, 1 where
    every permutation changes all systems equally. ``wide``: of `score_matrix`.
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

    return bootstrapped(said, rho, len(sums))


# --- rankings -------------------------------------------------------------------------------------


def taus_of_pairs(wide: pd.DataFrame) -> dict[str, Floats]:
    """Kendall's tau between the rankings of the systems by any two permutations, by topic.

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
    """Scores in the original order, and means over permutations: conversations by systems."""
    original = wide.xs(ORIGINAL, level="permutation")
    return original, wide.groupby(level="topic", sort=False).mean().loc[original.index]
