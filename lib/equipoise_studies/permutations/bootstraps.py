"""The five bootstraps of the authors' public program (UtterancesSampling.py), drawn anew.

Each gives scores that a conversation could have over its orders; none of them is in the paper.
There every shuffle of the utterances was an order, for they were resolved by hand; here the orders
drawn are valid ones. Where the program takes the score of an utterance that came first, here it is
that of the utterance alone, for the first one never moves. A pair of neighbours that the sampled
orders do not hold counts 0, as a score in the program, as a difference here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.arrays import Floats, Integers
from equipoise.orders.structures import Orders, Structure
from equipoise_studies.permutations.experiment import Experiment

# What each needs of a system. The mixed one comes with the sign of its differences as programmed,
# and turned.
NEEDS: Mapping[str, str] = {
    "exact bootstrap": "permutations of the system",
    "delta bootstrap": "the script",
    "reference bootstrap": "permutations of the system",
    "multiplicative bootstrap": "the script, utterances alone",
    "mixed-models bootstrap": "utterances alone, permutations of others",
    "mixed-models bootstrap, sign turned": "utterances alone, permutations of others",
}


@dataclass(frozen=True, eq=False)
class Observed:
    """What was observed of one conversation: sampled orders, row 0 the script, and their scores.

    ``scores`` (shaped (systems, orders, n)): of the utterance at each position. ``alone`` (shaped
    (n,)): of each utterance without a context, the same for every system.
    """

    structure: Structure
    orders: Orders
    scores: Floats
    alone: Floats


def pair_numbers(orders: Orders) -> Integers:
    """Number of each pair of neighbours in orders, shaped (orders, n - 1)."""
    numbers: Integers = orders[:, :-1] * orders.shape[1] + orders[:, 1:]
    return numbers


def observed(
    experiment: Experiment, systems: Sequence[str], orders: Mapping[str, Orders]
) -> dict[str, Observed]:
    """Scores of systems on sampled orders, by topic; BM25 scores the utterances alone."""
    by_topic = {}
    for script in experiment.conversations:
        sampled = orders[script.topic]
        scores = [experiment.utterance_scores(script, system, sampled) for system in systems]
        alone = experiment.utterance_scores(script, "BM25", sampled[:1])[0]
        by_topic[script.topic] = Observed(script.structure, sampled, np.stack(scores), alone)
    return by_topic


def bootstrapped(
    observation: Observed, system: int, draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Scores that a system could have over the orders, by each bootstrap, shaped (draws,)."""
    scores = observation.scores[system]
    script = scores[0]
    drawn_orders = observation.structure.sample(draws, rng)
    pair_means = _pair_means(observation, system)[pair_numbers(drawn_orders)]
    alone = observation.alone[drawn_orders].mean(axis=1)
    change = _changes_of_others(observation, system, drawn_orders, rng)
    return {
        "exact bootstrap": rng.choice(scores.mean(axis=1), draws),
        "delta bootstrap": _moved(script, np.diff(script, prepend=script[0]), draws, rng),
        "reference bootstrap": pair_means.mean(axis=1),
        "multiplicative bootstrap": _moved(script, script - observation.alone, draws, rng),
        "mixed-models bootstrap": alone + change,
        "mixed-models bootstrap, sign turned": alone - change,
    }


def _pair_means(observation: Observed, system: int) -> Floats:
    """Mean score of a system for each pair of neighbours, by the number of the pair."""
    pairs = pair_numbers(observation.orders).ravel()
    n_pairs = observation.orders.shape[1] ** 2
    counts = np.bincount(pairs, minlength=n_pairs)
    totals = np.bincount(
        pairs, weights=observation.scores[system][:, 1:].ravel(), minlength=n_pairs
    )
    return np.divide(totals, counts, out=np.zeros(n_pairs), where=counts > 0)


def _changes_of_others(
    observation: Observed, system: int, drawn_orders: Orders, rng: np.random.Generator
) -> Floats:
    """What the contexts of drawn orders cost the other systems, shaped (draws,).

    For every pair of neighbours the score of the utterance alone minus that of a random other
    system on a random sampled order which has this pair.
    """
    other_scores = np.delete(observation.scores, system, axis=0)[:, :, 1:]
    differences = observation.alone[observation.orders[:, 1:]] - other_scores
    differences = differences.reshape(len(other_scores), -1)

    # Those of one pair side by side, so that a place among them can be drawn.
    pairs = pair_numbers(observation.orders).ravel()
    size = observation.orders.shape[1]
    counts = np.bincount(pairs, minlength=size**2)
    by_pair = np.argsort(pairs, kind="stable")
    first_place = np.concatenate([[0], np.cumsum(counts)])

    drawn_pairs = pair_numbers(drawn_orders)
    offset = (rng.random(drawn_pairs.shape) * counts[drawn_pairs]).astype(np.intp)
    place = np.minimum(first_place[drawn_pairs] + offset, len(pairs) - 1)
    other_system = rng.integers(len(other_scores), size=drawn_pairs.shape)
    changes = differences[other_system, by_pair[place]]
    changes = np.where(counts[drawn_pairs] > 0, changes, 0.0)
    return np.asarray(changes.sum(axis=1) / size)


def _moved(script: Floats, changes: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Means of the scores of the script, each moved by one of a bag of changes drawn for it."""
    size = len(script)
    bags = np.clip(script[:, None] + rng.choice(changes, (size, size)), 0, 1)
    chosen = rng.integers(size, size=(draws, size))
    means: Floats = bags[np.arange(size), chosen].mean(axis=1)
    return means
