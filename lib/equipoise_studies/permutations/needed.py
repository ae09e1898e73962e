"""How many orders of each conversation are enough to rank systems: without drawing any, from exact spreads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
from scipy.stats import norm

from equipoise.arrays import Floats
from equipoise.orders.effects import standard_errors

LIKELY = 0.95


def _pairs(every: Mapping[str, Floats], systems: Sequence[str]) -> pd.DataFrame:
    """Spread over all orders of the difference of each two systems, as a table of exact values."""
    rows = []
    for a, b in combinations(range(len(systems)), 2):
        for topic, scores in every.items():
            gap = scores[:, a] - scores[:, b]
            rows.append((f"{systems[a]} and {systems[b]}", topic, len(gap), gap.mean(), gap.std()))
    return pd.DataFrame(rows, columns=["run", "topic", "orders", "mean", "sd"])


def pair_certainty(
    every: Mapping[str, Floats], systems: Sequence[str], sizes: Sequence[int]
) -> pd.DataFrame:
    r"""Chance that few orders put two systems in the order of their exact means, by number of orders.

    .. math:: P = \Phi\Bigl( \frac{|\Delta|}{SE(m)} \Bigr)

    with :math:`\Delta` the exact difference of the means over conversations and SE that of the mean
    of m different orders of each, drawn at random, the same for both systems. ``every``: of
    `Experiment.every`, systems in the order of ``systems``. Returns columns pair, permutations,
    difference, chance.
    """
    pairs = _pairs(every, systems)
    table = standard_errors(pairs, sizes).rename(columns={"run": "pair"})
    gaps = pairs.groupby("run", sort=False)["mean"].mean().abs()
    table["difference"] = table["pair"].map(gaps)
    reach = np.divide(
        table["difference"],
        table["standard error"],
        out=np.full(len(table), np.inf),
        where=table["standard error"] > 0,
    )
    return table.assign(chance=norm.cdf(reach)).drop(columns="standard error")


def orders_for_ranking(
    every: Mapping[str, Floats],
    systems: Sequence[str],
    taus: Sequence[float] = (0.8, 0.9, 0.95, 0.99),
) -> pd.DataFrame:
    """Fewest orders of each conversation that give an expected Kendall's tau with the ranking by exact means.

    The last row: the very same ranking, 19 times in 20; by Bonferroni's inequality over the
    neighbours in it, so that fewer may do. Returns columns wanted, orders, deciding: the pair that
    is known least then.
    """
    most = max(len(scores) for scores in every.values())
    sizes = np.unique(np.geomspace(1, most, 400).astype(int))
    table = pair_certainty(every, systems, sizes.tolist())
    chances = table.pivot_table(
        index="permutations", columns="pair", values="chance", sort=False
    ).sort_index()
    means = pd.Series(np.mean([scores.mean(axis=0) for scores in every.values()], axis=0), systems)
    ranked = means.sort_values(ascending=False).index
    named = {frozenset(pair): f"{pair[0]} and {pair[1]}" for pair in combinations(systems, 2)}
    neighbours = [named[frozenset(pair)] for pair in pairwise(ranked)]
    reached = {
        f"expected Kendall's tau {tau:g}": 2 * chances.mean(axis=1) - 1 >= tau for tau in taus
    }
    reached["the same ranking, 19 times in 20"] = (1 - chances[neighbours]).sum(
        axis=1
    ) <= 1 - LIKELY
    rows = []
    for wanted, holds in reached.items():
        size = chances.index[int(holds.to_numpy().argmax())]
        rows.append((wanted, size, chances.loc[size].idxmin()))
    return pd.DataFrame(rows, columns=["wanted", "orders of each conversation", "least known pair"])
