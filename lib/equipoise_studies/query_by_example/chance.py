"""Mixtures of BM25 and other rankers under every weight, and what luck gives an oracle.

An oracle takes the best of eleven rankings, and so gains by luck too. How much is seen where a
ranker's scores are dealt anew among the candidates of each query: they keep their distribution,
and the likeness of rankers and seeds to each other, but say nothing of the documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from equipoise.arrays import Booleans, Floats, Integers
from equipoise_studies.query_by_example.data import PAIR
from equipoise_studies.query_by_example.interpolation import ALPHAS, interpolate, z_scale

FACET = ["task", "query"]
DEALS = 40
"""How often scores are dealt anew."""


@dataclass(frozen=True)
class Candidates:
    """Candidates of every facet, a row each, filled up to the longest.

    ``bm25``, ``relevant``, ``is_candidate`` are shaped (facets, documents). ``rankers``: z-scores
    of the columns of each mixture, shaped (facets, documents) each. ``facets``: what the rows are.
    """

    facets: pd.MultiIndex
    bm25: Floats
    rankers: list[list[Floats]]
    relevant: Booleans
    is_candidate: Booleans

    @classmethod
    def of(
        cls,
        scores: pd.DataFrame,
        judgements: pd.DataFrame,
        relevant: int,
        bm25: str,
        mixtures: Sequence[Sequence[str]],
    ) -> Candidates:
        """From scores of pairs: ``bm25`` and the columns of each mixture; grades from ``relevant``.

        Facets without a relevant candidate have no average precision, and are left out.
        """
        table = scores.merge(judgements, on=PAIR)
        n_relevant = (table["grade"] >= relevant).groupby([table["task"], table["query"]])
        table = table[n_relevant.transform("sum") > 0]
        # Candidates in descending order of their ids, by which ties are broken.
        table = table.sort_values([*FACET, "document"], ascending=[True, True, False])
        queries = table.groupby(FACET)
        row, place = queries.ngroup().to_numpy(), queries.cumcount().to_numpy()
        shape = (int(row.max()) + 1, int(place.max()) + 1)

        def filled(values: Floats) -> Floats:
            matrix = np.zeros(shape)
            matrix[row, place] = values
            return matrix

        def scaled(column: str) -> Floats:
            return filled(z_scale(table[column].to_numpy(), row))

        return cls(
            facets=pd.MultiIndex.from_frame(table[FACET].drop_duplicates()),
            bm25=scaled(bm25),
            rankers=[[scaled(column) for column in columns] for columns in mixtures],
            relevant=filled((table["grade"] >= relevant).to_numpy()) > 0,
            is_candidate=filled(np.ones(len(table))) > 0,
        )

    def curves(self, order: Integers | None = None) -> Floats:
        """Average precision under every weight, mean over seeds: (mixtures, weights, facets).

        ``order``: which candidate's score each candidate is given, (facets, documents).
        """
        means = []
        for columns in self.rankers:
            of_seeds = []
            for z_scores in columns:
                dealt = z_scores
                if order is not None:
                    dealt = np.take_along_axis(z_scores, order, axis=1)
                of_weights = [interpolate(self.bm25, dealt, alpha) for alpha in ALPHAS]
                of_seeds.append(self._average_precision(np.stack(of_weights)))
            means.append(np.mean(of_seeds, axis=0))
        return np.stack(means)

    def _average_precision(self, scores: Floats) -> Floats:
        """Of rankings by scores shaped (weights, facets, documents)."""
        # Scores are compared in single precision, as elsewhere; what is no candidate comes last.
        keys = np.where(self.is_candidate, -scores, np.inf).astype(np.float32)
        ranked = np.take_along_axis(
            np.broadcast_to(self.relevant, keys.shape), np.argsort(keys, axis=-1), axis=-1
        )
        precision = ranked.cumsum(axis=-1) / np.arange(1, ranked.shape[-1] + 1)
        return (ranked * precision).sum(axis=-1) / self.relevant.sum(axis=-1)

    def dealt(self, rng: np.random.Generator) -> Integers:
        """Candidates of every facet in a random order, which all rankers and seeds share."""
        keys = rng.random(self.bm25.shape)
        keys[~self.is_candidate] = 2.0  # they stay behind
        return np.argsort(keys, axis=1)

    def deals(self, draws: int, rng: np.random.Generator) -> Floats:
        """`curves` under scores dealt anew: (draws, mixtures, weights, facets)."""
        return np.stack([self.curves(self.dealt(rng)) for _ in range(draws)])


def folds(facets: pd.MultiIndex, splits: pd.DataFrame) -> Iterator[tuple[Booleans, Booleans]]:
    """For each fold of each task: which facets its weight is tuned on, and which it is used on."""
    for _, fold in splits.groupby(["task", "fold"]):
        parts = []
        for part in ("dev", "test"):
            of_part = pd.MultiIndex.from_frame(fold.loc[fold["part"] == part, FACET])
            parts.append(facets.isin(of_part))
        yield parts[0], parts[1]


class Means(NamedTuple):
    """Mean average precision over the facets tested, each (..., mixtures, resamples).

    Of the ranker and of BM25 alone, of their mixture with one tuned weight, and of the oracle.
    """

    ranker: Floats
    bm25: Floats
    tuned: Floats
    oracle: Floats

    def gain_of_mixing(self) -> Floats:
        """What a tuned weight gains on the better part, mean over mixtures: (..., resamples)."""
        gains: Floats = (self.tuned - np.maximum(self.ranker, self.bm25)).mean(axis=-2)
        return gains

    def gain_of_oracle(self) -> Floats:
        """What the best weight of each facet gains on a tuned one: (..., resamples)."""
        gains: Floats = (self.oracle - self.tuned).mean(axis=-2)
        return gains


def means_over_facets(
    curves: Floats, facets: pd.MultiIndex, splits: pd.DataFrame, times: Floats
) -> Means:
    """Means with the weight of each fold tuned anew in each resample.

    ``curves``: (..., mixtures, weights, facets). ``times``: how often each facet was drawn,
    (resamples, facets).
    """
    sums = np.zeros((4, *curves.shape[:-2], len(times)))
    n_tested = np.zeros(len(times))
    for is_dev, is_test in folds(facets, splits):
        dev_sums = curves[..., is_dev] @ times[:, is_dev].T  # (..., weights, resamples)
        test_sums = curves[..., is_test] @ times[:, is_test].T
        # Rounded, so that the last bits of a sum do not decide between equal weights.
        tuned = dev_sums.round(12).argmax(axis=-2)[..., np.newaxis, :]
        sums[0] += test_sums[..., 0, :]
        sums[1] += test_sums[..., -1, :]
        sums[2] += np.take_along_axis(test_sums, tuned, axis=-2)[..., 0, :]
        sums[3] += curves[..., is_test].max(axis=-2) @ times[:, is_test].T
        n_tested += times[:, is_test].sum(axis=1)
    return Means(*(sums / n_tested))
