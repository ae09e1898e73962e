"""How many orders of each conversation are enough to rank systems, from exact spreads alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
from scipy.stats import norm

from equipoise.arrays import Floats
from equipoise.orders.effects import standard_errors

LIKELY = 0.95


def _pair_name(a: str, b: str) -> str:
    return f"{a} and {b}"


def _gaps_of_pairs(scores_by_topic: Mapping[str, Floats], systems: Sequence[str]) -> pd.DataFrame:
    """Spread over all orders of the difference of each two systems, as a table of exact values."""
    rows = []
    for a, b in combinations(range(len(systems)), 2):
        name = _pair_name(systems[a], systems[b])
        for topic, scores in scores_by_topic.items():
            gap = scores[:, a] - scores[:, b]
            rows.append((name, topic, len(gap), gap.mean(), gap.std()))
    return pd.DataFrame(rows, columns=["run", "topic", "orders", "mean", "sd"])


def pair_certainty(
    scores_by_topic: Mapping[str, Floats], systems: Sequence[str], sizes: Sequence[int]
) -> pd.DataFrame:
    r"""Chance that few orders put two systems in the order of their exact means, by their number.

    .. math:: P = \Phi\Bigl( \frac{|\Delta|}{SE(m)} \Bigr)

    with :math:`\Delta` the exact difference of the means over conversations and SE that of the mean
    of m different orders of each, drawn at random, the same for both systems.
    ``scores_by_topic``: of `Experiment.every`, systems in the order of ``systems``. Returns columns
    pair, permutations, difference, chance.
    """
    gaps = _gaps_of_pairs(scores_by_topic, systems)
    table = standard_errors(gaps, sizes).rename(columns={"run": "pair"})
    differences = gaps.groupby("run", sort=False)["mean"].mean().abs()
    table["difference"] = table["pair"].map(differences)
    # Where all orders are drawn there is no error, and the order is certain.
    in_errors = np.divide(
        table["difference"],
        table["standard error"],
        out=np.full(len(table), np.inf),
        where=table["standard error"] > 0,
    )
    table["chance"] = norm.cdf(in_errors)
    return table.drop(columns="standard error")


def orders_for_ranking(
    scores_by_topic: Mapping[str, Floats],
    systems: Sequence[str],
    taus: Sequence[float] = (0.8, 0.9, 0.95, 0.99),
) -> pd.DataFrame:
    """Fewest orders of each conversation for an expected Kendall's tau with the exact ranking.

    The last row: the very same ranking, 19 times in 20; by Bonferroni's inequality over the
    neighbours in it, so that fewer may do. Returns columns wanted, orders, deciding: the pair that
    is known least then.
    """
    most = max(len(scores) for scores in scores_by_topic.values())
    sizes = np.unique(np.geomspace(1, most, 400).astype(int))
    certainty = pair_certainty(scores_by_topic, systems, sizes.tolist())
    chances = certainty.pivot_table(
        index="permutations", columns="pair", values="chance", sort=False
    ).sort_index()

    is_enough = {}
    expected_tau = 2 * chances.mean(axis=1) - 1
    for tau in taus:
        is_enough[f"expected Kendall's tau {tau:g}"] = expected_tau >= tau
    neighbours = _neighbours_in_ranking(scores_by_topic, systems)
    chance_of_a_swap = (1 - chances[neighbours]).sum(axis=1)
    is_enough["the same ranking, 19 times in 20"] = chance_of_a_swap <= 1 - LIKELY

    rows = []
    for criterion, holds in is_enough.items():
        size = chances.index[int(holds.to_numpy().argmax())]
        rows.append((criterion, size, chances.loc[size].idxmin()))
    return pd.DataFrame(rows, columns=["wanted", "orders of each conversation", "least known pair"])


def _neighbours_in_ranking(
    scores_by_topic: Mapping[str, Floats], systems: Sequence[str]
) -> list[str]:
    """Names of the pairs of neighbours in the ranking by exact means."""
    means_by_topic = [scores.mean(axis=0) for scores in scores_by_topic.values()]
    best_first = np.argsort(-np.mean(means_by_topic, axis=0), kind="stable")
    names = []
    for place, next_place in pairwise(best_first):
        first, second = sorted([place, next_place])
        names.append(_pair_name(systems[first], systems[second]))
    return names
