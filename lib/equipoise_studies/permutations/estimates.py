"""Estimates of scores over all permutations, from samples or from other systems.

The paper draws 100 permutations and leaves it to future work to estimate scores "without actually
having the permutations and the models at hand". Its authors' program tries five bootstraps. Here
every estimate is compared with the exact distribution over all valid permutations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats, Integers
from equipoise.permutations.scores import ORIGINAL
from equipoise.permutations.structures import ClassStructure, Permutations
from equipoise_studies.permutations.experiment import Experiment
from equipoise_studies.permutations.systems import Conversation

LIKELY = 0.95
LEVEL = 0.9  # share of the permutations that a band must contain
CALIBRATED = "every change of the others, calibrated"
_ORIGINAL_ALONE = "the original order alone"
_ROUNDING = 1e-12

# --- samples --------------------------------------------------------------------------------------


def authors_sample(
    structure: ClassStructure, classes: Sequence[str], size: int, rng: np.random.Generator
) -> Permutations:
    """Draw permutations as the authors' public program does, which is not uniform.

    It picks the next block among all available ones. Blocks of FT utterances become available only
    after the first utterance, which the program then moves to the front. So FT utterances tend to
    come late. ``classes``: by utterance, in the original order.
    """
    heads = np.array([block[0] for block in structure.blocks])
    is_first_topic = np.array([classes[head] == "FT" for head in heads])
    waiting = np.ones((size, len(heads)), dtype=bool)
    step_of_block = np.empty((size, len(heads)))
    rows = np.arange(size)
    for step in range(len(heads)):
        is_available = waiting & ~(is_first_topic & waiting[:, :1])
        chosen = (rng.random(waiting.shape) * is_available).argmax(axis=1)
        waiting[rows, chosen] = False
        step_of_block[rows, chosen] = step
    step_of_block[:, 0] = -1.0
    within_block = np.where(structure.is_head, -1.0, rng.random((size, structure.size)))
    # Keys of a block are less than two apart: from −1 for its head to below 1.
    return np.argsort(2 * step_of_block[:, structure.block] + within_block, axis=1)


def _standard_errors(table: pd.DataFrame, n_drawn: pd.Series, keys: Sequence[str]) -> pd.Series:
    r"""Compute standard errors of means over conversations with some permutations drawn of each.

    .. math:: SE = \frac{1}{C} \sqrt{\sum_c \frac{\sigma_c^2}{m_c} \cdot \frac{N_c - m_c}{N_c - 1}}
    """
    n_undrawn = table["count"] - n_drawn
    share_undrawn = (n_undrawn / (table["count"] - 1).clip(lower=1)).clip(lower=0)
    variance = table["sd"] ** 2 / n_drawn * share_undrawn
    groups = variance.groupby([table[key] for key in keys], sort=False)
    return (np.sqrt(groups.sum()) / groups.size()).rename("standard error")


def standard_errors(exact: pd.DataFrame, sizes: Sequence[int]) -> pd.DataFrame:
    """Compute the standard error of a mean by the number of permutations per conversation.

    ``exact``: columns run, topic, count (of all valid permutations), sd. Returns columns run,
    permutations, standard error.
    """
    table = exact.merge(pd.DataFrame({"permutations": sorted(set(sizes))}), how="cross")
    n_drawn = table["permutations"].clip(upper=table["count"])
    return _standard_errors(table, n_drawn, ["run", "permutations"]).reset_index()


def sampling_error(exact: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Compare each system's values over sampled permutations with the exact ones over all.

    ``exact``: of `Experiment.exact`. ``scores``: the sampled permutations; the original order does
    not count as drawn. Returns columns run, mean, sampled mean, error, standard error, minimum,
    sampled minimum, maximum, sampled maximum: means over conversations; error is sampled minus
    exact.
    """
    drawn = scores[scores["permutation"] != ORIGINAL]
    by_topic = drawn.groupby(["run", "topic"], sort=False)["value"]
    sampled = by_topic.agg(["size", "mean", "min", "max"]).reset_index()
    sampled.columns = [
        "run",
        "topic",
        "drawn",
        "sampled mean",
        "sampled minimum",
        "sampled maximum",
    ]
    joined = sampled.merge(exact, on=["run", "topic"])
    means = joined.groupby("run", sort=False).mean(numeric_only=True)
    # What remains below the twelfth digit is rounding.
    means["error"] = (means["sampled mean"] - means["mean"]).round(12)
    means["standard error"] = _standard_errors(joined, joined["drawn"], ["run"])
    columns = ["run", "mean", "sampled mean", "error", "standard error"]
    columns += ["minimum", "sampled minimum", "maximum", "sampled maximum"]
    return means.reset_index()[columns]


def _pair_name(a: str, b: str) -> str:
    return f"{a} and {b}"


def pair_certainty(
    scores_by_topic: Mapping[str, Floats], systems: Sequence[str], sizes: Sequence[int]
) -> pd.DataFrame:
    r"""Compute the probability that few permutations rank two systems as their exact means do.

    .. math:: P = \Phi\Bigl( \frac{|\Delta|}{SE(m)} \Bigr)

    with :math:`\Delta` the exact difference of the means over conversations, and SE the standard
    error of the mean of m different permutations of each, drawn at random, the same for both
    systems. ``scores_by_topic``: of `Experiment.scores_of_all`. Returns one row per number of
    permutations, one column per pair.
    """
    rows = []
    for a, b in combinations(range(len(systems)), 2):
        name = _pair_name(systems[a], systems[b])
        for topic, scores in scores_by_topic.items():
            gap = scores[:, a] - scores[:, b]
            rows.append((name, topic, len(gap), gap.mean(), gap.std()))
    gaps = pd.DataFrame(rows, columns=["run", "topic", "count", "mean", "sd"])
    errors = standard_errors(gaps, sizes).pivot_table(
        index="permutations", columns="run", values="standard error", sort=False
    )
    differences = gaps.groupby("run", sort=False)["mean"].mean().abs()[errors.columns]
    # Where all permutations are drawn there is no error, and the ranking is certain.
    in_errors = (differences / errors.where(errors > 0)).fillna(np.inf)
    return pd.DataFrame(
        stats.norm.cdf(in_errors), index=errors.index, columns=errors.columns
    ).sort_index()


def permutations_for_ranking(
    scores_by_topic: Mapping[str, Floats], systems: Sequence[str]
) -> pd.DataFrame:
    """Find the fewest permutations of each conversation for an expected Kendall's tau.

    Tau compares their ranking with the ranking by all permutations. The last row is for the same
    ranking with a probability of 95%, by Bonferroni's inequality over the neighbours in it, so
    fewer may suffice. Returns columns criterion, permutations per conversation, least certain pair.
    """
    most = max(len(scores) for scores in scores_by_topic.values())
    sizes = np.unique(np.geomspace(1, most, 400).astype(int)).tolist()
    certainty = pair_certainty(scores_by_topic, systems, sizes)

    means = np.mean([scores.mean(axis=0) for scores in scores_by_topic.values()], axis=0)
    neighbours = []
    for place, next_place in pairwise(np.argsort(-means, kind="stable")):
        first, second = sorted([place, next_place])
        neighbours.append(_pair_name(systems[first], systems[second]))

    expected_tau = 2 * certainty.mean(axis=1) - 1
    is_enough = {}
    for tau in (0.8, 0.9, 0.95, 0.99):
        is_enough[f"expected Kendall's tau {tau:g}"] = expected_tau >= tau
    probability_of_a_swap = (1 - certainty[neighbours]).sum(axis=1)
    is_enough["the same ranking in 95% of samples"] = probability_of_a_swap <= 1 - LIKELY
    rows = []
    for criterion, suffices in is_enough.items():
        size = suffices.idxmax()
        rows.append((criterion, size, certainty.loc[size].idxmin()))
    columns = ["criterion", "permutations per conversation", "least certain pair"]
    return pd.DataFrame(rows, columns=columns)


# --- errors of a classifier of utterances ---------------------------------------------------------


def resampled_classes(
    utterances: pd.DataFrame, agreement: pd.DataFrame, draws: int, rng: np.random.Generator
) -> list[pd.Series]:
    """Draw a class for each utterance but the first of its conversation, given its class.

    ``agreement``: numbers of utterances, one row per class by people, one column per proposed
    class.
    """
    shares = agreement / agreement.sum()
    is_later = utterances.duplicated("topic")
    drawn = []
    for _ in range(draws):
        classes = utterances["class"].copy()
        for proposed, share in shares.items():
            places = is_later & (utterances["class"] == proposed)
            classes[places] = rng.choice(share.index, places.sum(), p=share)
        drawn.append(classes)
    return drawn


# --- the bootstraps of the authors' program -------------------------------------------------------

# What each needs to know of a system. The mixed-models bootstrap has the sign of the program, and
# the reverse.
_NEEDS: Mapping[str, str] = {
    "exact bootstrap": "permutations of the system",
    "delta bootstrap": "original order",
    "reference bootstrap": "permutations of the system",
    "multiplicative bootstrap": "original order, utterances alone",
    "mixed-models bootstrap": "utterances alone, permutations of others",
    "mixed-models bootstrap, sign reversed": "utterances alone, permutations of others",
    _ORIGINAL_ALONE: "original order",
}


@dataclass(frozen=True, eq=False)
class Observed:
    """Scores of one conversation on sampled permutations; row 0 is the original order.

    ``scores`` (shaped (systems, permutations, n)): of the utterance at each position. ``alone``
    (shaped (n,)): of each utterance without a context, the same for every system.
    """

    structure: ClassStructure
    permutations: Permutations
    scores: Floats
    alone: Floats


def observed(
    experiment: Experiment, systems: Sequence[str], permutations: Mapping[str, Permutations]
) -> dict[str, Observed]:
    """Score systems on sampled permutations by topic; BM25 scores the utterances alone."""
    by_topic = {}
    for conversation in experiment.conversations:
        rows = permutations[conversation.topic]
        scores = [experiment.utterance_scores(conversation, system, rows) for system in systems]
        alone = experiment.utterance_scores(conversation, "BM25", rows[:1])[0]
        by_topic[conversation.topic] = Observed(
            _class_structure(conversation), rows, np.stack(scores), alone
        )
    return by_topic


def _class_structure(conversation: Conversation) -> ClassStructure:
    structure = conversation.structure
    if not isinstance(structure, ClassStructure):
        raise TypeError(f"topic {conversation.topic}: permutations by classes are required")
    return structure


def bootstrapped(
    observation: Observed, system: int, draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Predict the scores of a system over the permutations, by each bootstrap, shaped (draws,).

    The program (UtterancesSampling.py) takes every shuffle of the utterances, because people had
    resolved them; here only valid permutations are drawn. A pair of neighbours that no sampled
    permutation contains counts 0: as a score in the program, as a difference here.
    """
    scores = observation.scores[system]
    original = scores[0]
    drawn = observation.structure.sample(draws, rng)
    pair_means = _pair_means(observation, system)[_pair_numbers(drawn)]
    alone = observation.alone[drawn].mean(axis=1)
    change = _changes_of_others(observation, system, drawn, rng)
    return {
        "exact bootstrap": rng.choice(scores.mean(axis=1), draws),
        "delta bootstrap": _moved(original, np.diff(original, prepend=original[0]), draws, rng),
        "reference bootstrap": pair_means.mean(axis=1),
        "multiplicative bootstrap": _moved(original, original - observation.alone, draws, rng),
        "mixed-models bootstrap": alone + change,
        "mixed-models bootstrap, sign reversed": alone - change,
    }


def _pair_numbers(permutations: Permutations) -> Integers:
    """Number the pairs of neighbours, shaped (permutations, n - 1)."""
    numbers: Integers = permutations[:, :-1] * permutations.shape[1] + permutations[:, 1:]
    return numbers


def _pair_means(observation: Observed, system: int) -> Floats:
    """Average the scores of a system for each pair of neighbours, by the number of the pair."""
    pairs = _pair_numbers(observation.permutations).ravel()
    n_pairs = observation.permutations.shape[1] ** 2
    counts = np.bincount(pairs, minlength=n_pairs)
    totals = np.bincount(
        pairs, weights=observation.scores[system][:, 1:].ravel(), minlength=n_pairs
    )
    return np.divide(totals, counts, out=np.zeros(n_pairs), where=counts > 0)


def _changes_of_others(
    observation: Observed, system: int, drawn: Permutations, rng: np.random.Generator
) -> Floats:
    """Compute the loss of other systems by the contexts of drawn permutations, shaped (draws,).

    For every pair of neighbours it is the score of the utterance alone minus the score of a random
    other system on a random sampled permutation that contains this pair.
    """
    other_scores = np.delete(observation.scores, system, axis=0)[:, :, 1:]
    differences = observation.alone[observation.permutations[:, 1:]] - other_scores
    differences = differences.reshape(len(other_scores), -1)

    # Sorted by pair, so that one of those with a pair can be drawn by its place.
    pairs = _pair_numbers(observation.permutations).ravel()
    size = observation.permutations.shape[1]
    counts = np.bincount(pairs, minlength=size**2)
    by_pair = np.argsort(pairs, kind="stable")
    first_place = np.concatenate([[0], np.cumsum(counts)])

    drawn_pairs = _pair_numbers(drawn)
    offset = (rng.random(drawn_pairs.shape) * counts[drawn_pairs]).astype(np.intp)
    place = np.minimum(first_place[drawn_pairs] + offset, len(pairs) - 1)
    other_system = rng.integers(len(other_scores), size=drawn_pairs.shape)
    changes = differences[other_system, by_pair[place]]
    changes = np.where(counts[drawn_pairs] > 0, changes, 0.0)
    return np.asarray(changes.sum(axis=1) / size)


def _moved(original: Floats, changes: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Average the original scores, each moved by a change from a bag that was drawn for it."""
    size = len(original)
    bags = np.clip(original[:, None] + rng.choice(changes, (size, size)), 0, 1)
    chosen = rng.integers(size, size=(draws, size))
    means: Floats = bags[np.arange(size), chosen].mean(axis=1)
    return means


# --- systems that were run in the original order only ---------------------------------------------


class Prediction(NamedTuple):
    """Predicted scores of a system on a conversation, and the band with `LEVEL` of them."""

    scores: Floats
    low: float
    high: float


def _with_band(scores: Floats) -> Prediction:
    low, high = np.quantile(scores, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Prediction(scores, float(low), float(high))


def _pooled_changes(original: float, others: Floats) -> Prediction:
    r"""Add every change of another system by a permutation to the score in the original order.

    .. math:: \hat y_a(\pi) = y_a(\pi_0) + y_b(\pi) - y_b(\pi_0)
    """
    scores = original + (others - others[0])
    return _with_band(np.clip(scores, 0, 1).ravel())


def _without(scores_by_topic: Mapping[str, Floats], system: int) -> dict[str, Floats]:
    """Return the scores of the other systems by topic."""
    return {topic: np.delete(scores, system, axis=1) for topic, scores in scores_by_topic.items()}


def widening(scores_by_topic: Mapping[str, Floats]) -> float:
    """Find how much wider a band of pooled changes must be, at either end.

    Conformalised quantile regression (Romano, Patterson and Candes, 2019): each known system is
    left out once. The distances of its scores from its band (inside: negative) are collected over
    all conversations and permutations. Each conversation of each system has the same weight.
    """
    distances = []
    weights = []
    for scores in scores_by_topic.values():
        n_permutations, systems = scores.shape
        for system in range(systems):
            band = _pooled_changes(scores[0, system], np.delete(scores, system, axis=1))
            below, above = band.low - scores[:, system], scores[:, system] - band.high
            distances.append(np.maximum(below, above))
            weights.append(np.full(n_permutations, 1 / n_permutations))
    cases = len(distances)
    distance = np.concatenate(distances)
    ascending = np.argsort(distance, kind="stable")
    share_within = np.cumsum(np.concatenate(weights)[ascending]) / cases
    # A further case is as likely to lie in each gap between the known ones, hence one more.
    share = min(1.0, LEVEL * (1 + 1 / cases))
    place = int(np.searchsorted(share_within, share - _ROUNDING))
    return float(distance[ascending[min(place, len(distance) - 1)]])


def _predicted(original: float, others: Floats, wider: float) -> dict[str, Prediction]:
    """Predict the scores of a conversation from other systems, by name of the prediction."""
    mean_change = (others - others[0]).mean(axis=1)
    pooled = _pooled_changes(original, others)
    low, high = max(0.0, pooled.low - wider), min(1.0, pooled.high + wider)
    return {
        _ORIGINAL_ALONE: _with_band(np.array([original])),
        "mean change of the others": _with_band(np.clip(original + mean_change, 0, 1)),
        "every change of the others": pooled,
        CALIBRATED: Prediction(pooled.scores, low, high),
    }


def unseen_systems(
    scores_by_topic: Mapping[str, Floats],
    systems: Sequence[str],
    observations: Mapping[str, Observed],
    rng: np.random.Generator,
    *,
    draws: int = 1000,
) -> pd.DataFrame:
    """Compute the errors of predicted scores, each system left out once, by conversation.

    ``scores_by_topic``: of `Experiment.scores_of_all`, systems in the order of ``systems``.
    ``observations``: of `observed`, for the bootstraps. Returns columns prediction, needs, run,
    topic, mean (exact), predicted, mean error and sd error (absolute), distance (Wasserstein's),
    coverage (share of all permutations within the predicted band), width.
    """
    rows = []
    for place, run in enumerate(systems):
        wider = widening(_without(scores_by_topic, place))
        for topic, scores in scores_by_topic.items():
            predictions = {}
            for name, drawn in bootstrapped(observations[topic], place, draws, rng).items():
                predictions[name] = _with_band(drawn)
            others = np.delete(scores, place, axis=1)
            predictions |= _predicted(scores[0, place], others, wider)
            for name, prediction in predictions.items():
                needs = _NEEDS.get(name, "original order, all permutations of others")
                row = {"prediction": name, "needs": needs, "run": run, "topic": topic}
                rows.append(row | _errors(prediction, scores[:, place]))
    return pd.DataFrame(rows)


def _errors(prediction: Prediction, actual: Floats) -> dict[str, float]:
    above_low = actual >= prediction.low - _ROUNDING
    below_high = actual <= prediction.high + _ROUNDING
    return {
        "mean": float(actual.mean()),
        "predicted": float(prediction.scores.mean()),
        "mean error": float(abs(prediction.scores.mean() - actual.mean())),
        "sd error": float(abs(prediction.scores.std() - actual.std())),
        "distance": float(stats.wasserstein_distance(actual, prediction.scores)),
        "coverage": float((above_low & below_high).mean()),
        "width": prediction.high - prediction.low,
    }


def predicted_means(
    originals: Mapping[str, pd.Series],
    scores_by_topic: Mapping[str, Floats],
    fixed: Sequence[str] = (),
) -> pd.DataFrame:
    """Predict the mean over all permutations for systems run in the original order only.

    ``originals``: score of each conversation in the original order, by run. ``scores_by_topic``: of
    `Experiment.scores_of_all`, of the known systems. ``fixed``: runs that no permutation changes.
    Returns columns run, original, mean, low, high, band low, band high. ``low`` and ``high`` are
    the mean minus and plus the largest error of any of the K known systems, each left out once. A
    new system is within these bounds in K cases of K + 1. The band contains `LEVEL` of the
    permutations; its ends are means over conversations.
    """
    wider = widening(scores_by_topic)
    largest_error = _largest_error(scores_by_topic)
    rows = []
    for run, scores in originals.items():
        original = scores[list(scores_by_topic)]
        if run in fixed:
            rows.append((run, *[original.mean()] * 6))
            continue
        mean = _predicted_mean(original, scores_by_topic)
        bands = []
        for topic, others in scores_by_topic.items():
            band = _predicted(original[topic], others, wider)[CALIBRATED]
            bands.append([band.low, band.high])
        band_ends = np.mean(bands, axis=0)
        rows.append(
            (run, original.mean(), mean, mean - largest_error, mean + largest_error, *band_ends)
        )
    columns = ["run", "original", "mean", "low", "high", "band low", "band high"]
    return pd.DataFrame(rows, columns=columns)


def _predicted_mean(
    original: Mapping[str, float] | pd.Series, others: Mapping[str, Floats]
) -> float:
    """Average over conversations the original score with every change of the others."""
    means = []
    for topic, scores in others.items():
        means.append(_pooled_changes(original[topic], scores).scores.mean())
    return float(np.mean(means))


def _largest_error(scores_by_topic: Mapping[str, Floats]) -> float:
    """Return the largest error of a predicted mean, each known system left out once."""
    systems = next(iter(scores_by_topic.values())).shape[1]
    errors = []
    for system in range(systems):
        original = {topic: scores[0, system] for topic, scores in scores_by_topic.items()}
        actual = np.mean([scores[:, system].mean() for scores in scores_by_topic.values()])
        predicted = _predicted_mean(original, _without(scores_by_topic, system))
        errors.append(abs(predicted - actual))
    return max(errors)
