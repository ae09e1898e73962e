"""The five bootstraps of the authors' public program (UtterancesSampling.py), described here and drawn anew.

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

# what each needs of a system; mixed comes with the sign of its differences as programmed, and
# turned
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
    """What is known of one conversation: sampled orders, row 0 the script, and scores of systems on them.

    ``scores`` (shaped (systems, orders, n)): of the utterance at each position. ``alone`` (shaped
    (n,)): of each utterance without a context, the same for every system.
    """

    structure: Structure
    orders: Orders
    scores: Floats
    alone: Floats

    @property
    def pairs(self) -> Integers:
        """Number of each pair of neighbours, shaped (orders, n - 1)."""
        return pair_numbers(self.orders)


def pair_numbers(orders: Orders) -> Integers:
    """Number of each pair of neighbours in orders, shaped (orders, n - 1)."""
    numbers: Integers = orders[:, :-1] * orders.shape[1] + orders[:, 1:]
    return numbers


def observed(
    experiment: Experiment, systems: Sequence[str], orders: Mapping[str, Orders]
) -> dict[str, Observed]:
    """Scores of systems on sampled orders, by topic; BM25 scores the utterances alone."""
    found = {}
    for one in experiment.conversations:
        drawn = orders[one.topic]
        scores = np.stack([experiment.utterance_scores(one, system, drawn) for system in systems])
        alone = experiment.utterance_scores(one, "BM25", drawn[:1])[0]
        found[one.topic] = Observed(one.structure, drawn, scores, alone)
    return found


def _moved(script: Floats, changes: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Means of scores, each moved by one of a bag of changes drawn for it."""
    size = len(script)
    bags = np.clip(script[:, None] + rng.choice(changes, (size, size)), 0, 1)
    means: Floats = bags[np.arange(size), rng.integers(size, size=(draws, size))].mean(axis=1)
    return means


def bootstrapped(
    known: Observed, system: int, draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Scores that a system could have over the orders, by each bootstrap, shaped (draws,)."""
    scores, script = known.scores[system], known.scores[system][0]
    drawn = known.structure.sample(draws, rng)
    size, asked = drawn.shape[1], pair_numbers(drawn)
    seen = known.pairs.ravel()
    counts = np.bincount(seen, minlength=size**2)
    sums = np.bincount(seen, weights=scores[:, 1:].ravel(), minlength=size**2)
    pairs = np.divide(sums, counts, out=np.zeros(size**2), where=counts > 0)

    # differences of the other systems, those of a pair side by side
    others = np.delete(known.scores, system, axis=0)[:, :, 1:]
    differences = (known.alone[known.orders[:, 1:]] - others).reshape(len(others), -1)
    sorted_pairs = np.argsort(seen, kind="stable")
    first = np.concatenate([[0], np.cumsum(counts)])[asked]
    place = np.minimum(
        first + (rng.random(asked.shape) * counts[asked]).astype(np.intp), len(seen) - 1
    )
    which = rng.integers(len(others), size=asked.shape)
    change = np.where(counts[asked] > 0, differences[which, sorted_pairs[place]], 0.0)
    base = known.alone[drawn].mean(axis=1)
    mixed = change.sum(axis=1) / size
    return {
        "exact bootstrap": rng.choice(scores.mean(axis=1), draws),
        "delta bootstrap": _moved(script, np.diff(script, prepend=script[0]), draws, rng),
        "reference bootstrap": pairs[asked].mean(axis=1),
        "multiplicative bootstrap": _moved(script, script - known.alone, draws, rng),
        "mixed-models bootstrap": base + mixed,
        "mixed-models bootstrap, sign turned": base - mixed,
    }
