"""Evidence on the claims of thesis chapter 2: differences in MAP, and published cells.

A facet is a query paper in one task. Its rankings are those of its paper, so a bootstrap sample
draws papers with all of their facets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import comb
from string import ascii_lowercase

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from equipoise.arrays import Floats
from equipoise.statistics import finite
from equipoise_compendium.evidence import bootstrapped_mean, from_samples
from equipoise_compendium.protocol import Evidence
from equipoise_studies.query_by_example.systems import ALPHAS, Candidates, folds_of, gains
from equipoise_studies.query_by_example.tables import published_numbers

RESAMPLES = 1999
SHUFFLES = 40
"""Number of permutations of the scores, for the gain of an oracle by chance."""

QUERIES = 1000
"""Approximate number of queries per task of SciDocs; the thesis states no exact one."""


def map_by_ranker(values: pd.DataFrame) -> pd.DataFrame:
    """Pivot ``run, task, query, measure, value`` to MAP by facet (rows) and ranker (columns)."""
    is_map = values["measure"] == "MAP"
    return values[is_map].pivot_table(index=["query", "task"], columns="run", values="value")


def mean_difference(
    first: pd.DataFrame | pd.Series,
    second: pd.DataFrame | pd.Series,
    published: float | None = None,
) -> Evidence:
    """Subtract the mean of some columns from the mean of others, over facets.

    The bootstrap samples draw query papers. ``published``: the value that the thesis reports.
    """
    first_mean = first.mean(axis=1) if isinstance(first, pd.DataFrame) else first
    second_mean = second.mean(axis=1) if isinstance(second, pd.DataFrame) else second
    gaps = pd.Series(finite(first_mean - second_mean, "differences"), first.index)
    by_paper = gaps.groupby(level="query", sort=False)
    # A paper that is drawn twice counts twice in each of its facets.
    return bootstrapped_mean(by_paper.agg(["sum", "size"]), np.divide.reduce, published)


def published_lead(published: pd.DataFrame, first: Sequence[str], second: Sequence[str]) -> float:
    """Return the difference of the mean published MAP of two lists of rows."""
    cells = published_numbers(published).droplevel("row")
    means = cells.filter(like="MAP").mean(axis=1)
    return float(means[list(first)].mean() - means[list(second)].mean())


# --- mixtures -------------------------------------------------------------------------------------


def _drawn_facets(candidates: Candidates, rng: np.random.Generator) -> tuple[Floats, int]:
    """Draw papers: counts of each facet, shape (1 + samples, facets), and the number of papers.

    The first row is the data.
    """
    paper, names = pd.factorize(candidates.facets.get_level_values("query"))
    shares = np.full(len(names), 1 / len(names))
    times = rng.multinomial(len(names), shares, size=RESAMPLES)
    return np.vstack([np.ones(len(paper)), times[:, paper]]), len(names)


def gain_of_mixing(
    candidates: Candidates, splits: pd.DataFrame, published: Sequence[float] | None = None
) -> list[Evidence]:
    """Subtract the better of its two rankers from each mixture with one tuned weight.

    Each bootstrap sample tunes its weights and chooses its better ranker. ``published``: the value
    that the thesis reports for each mixture.
    """
    times, n_papers = _drawn_facets(candidates, np.random.default_rng(0))
    mixing, _ = gains(candidates.curves(), folds_of(candidates.facets, splits), times)
    evidence = []
    for mixture, gain in enumerate(mixing):
        reported = published[mixture] if published else None
        evidence.append(from_samples(float(gain[0]), gain[1:], n_papers, reported))
    return evidence


def gain_of_oracle(candidates: Candidates, splits: pd.DataFrame) -> list[Evidence]:
    """Subtract the gain by chance from the oracle's gain over one tuned weight, by mixture.

    The gain by chance is the gain with scores that are randomly permuted among the candidates of
    each query.
    """
    rng = np.random.default_rng(0)
    times, n_papers = _drawn_facets(candidates, rng)
    folds = folds_of(candidates.facets, splits)
    _, oracle = gains(candidates.curves(), folds, times)
    shuffled = candidates.shuffled(SHUFFLES, rng)

    # Each sample is paired with one permutation, so that the interval covers both kinds of chance.
    draw = rng.integers(SHUFFLES, size=RESAMPLES)
    by_chance = np.empty((SHUFFLES, len(oracle)))
    samples = oracle[:, 1:].copy()
    for permutation, curves in enumerate(shuffled):
        paired = np.flatnonzero(draw == permutation)
        _, chance_gains = gains(curves, folds, times[[0, *(paired + 1)]])
        by_chance[permutation] = chance_gains[:, 0]
        samples[:, paired] -= chance_gains[:, 1:]
    estimates = oracle[:, 0] - by_chance.mean(axis=0)
    return [
        from_samples(float(estimate), sample, n_papers)
        for estimate, sample in zip(estimates, samples, strict=True)
    ]


# --- published cells ------------------------------------------------------------------------------


def marked_above(text: str) -> set[str]:
    """Read the rows that a published cell is marked as better than, such as ``a-gij``."""
    letters = set()
    for first, last in re.findall(r"([a-z])(?:-([a-z]))?", text):
        start = ascii_lowercase.index(first)
        letters |= set(ascii_lowercase[start : ascii_lowercase.index(last or first) + 1])
    return letters


def paired_counts(first: pd.Series, second: pd.Series) -> dict[str, Evidence]:
    """Return the differences second − first of two counts of the same queries, by cell.

    How many queries are in both counts is not published. The error is the largest possible one: no
    query is in both, as in a sign test (McNemar, 1947).
    """
    parts = {}
    for cell, difference in (second - first).items():
        reach = float(stats.norm.ppf(0.975) * np.sqrt(first[cell] + second[cell]))
        parts[str(cell)] = Evidence(difference, difference - reach, difference + reach)
    return parts


def differences_with_marks(
    values: pd.DataFrame, marks: pd.DataFrame, pairs: Sequence[tuple[str, str]], rows: int
) -> dict[str, Evidence]:
    """Return differences of pairs of published rows, by cell, with a bound where one is marked.

    ``values``: one row per cell, one column per row letter. ``marks``: by row letter; rows whose
    marks cannot be read with certainty are left out. ``rows``: of the table, whose pairs were
    tested.
    """
    critical = stats.t.ppf(1 - 0.05 / (2 * comb(rows, 2)), QUERIES - 1)
    parts = {}
    for first, second in pairs:
        for cell, difference in (values[first] - values[second]).items():
            is_marked = False
            for better, worse in ((first, second), (second, first)):
                if better in marks.index:
                    is_marked |= worse in marked_above(str(marks.loc[better, cell]))
            half = float(stats.norm.ppf(0.975) * abs(difference) / critical)
            part = Evidence(difference, reason="no error is published")
            if is_marked:
                part = Evidence(difference, difference - half, difference + half)
            parts[f"{first} − {second}, {cell}"] = part
    return parts


def from_marks(
    cells: pd.DataFrame, marks: pd.DataFrame, pairs: Sequence[tuple[str, str]]
) -> Evidence:
    r"""Bound the mean difference of pairs of published rows by their marks of significance.

    A mark says that p, multiplied by the number of pairs of rows in a column, is below 0.05. So
    \|t\| is above its critical value, which bounds the standard error of the difference. The
    standard error of a mean is at most the mean of the standard errors.

    Parameters
    ----------
    cells, marks
        Published numbers and marks, by row letter.
    pairs
        The row that is marked as better, and the row that it is better than.
    """
    parts = differences_with_marks(cells.T, marks, pairs, len(cells))
    for part, item in parts.items():
        if item.low is None:
            raise ValueError(f"{part}: no mark")
    table = pd.DataFrame([(item.estimate, item.low, item.high) for item in parts.values()])
    return Evidence(*table.mean())


def alpha_bounds(at_0: ArrayLike, at_1: ArrayLike, queries: int) -> tuple[Floats, Floats]:
    r"""Bound the mean weight by the numbers of queries with best weight 0 and 1 (Table 2.4).

    .. math:: \frac{n_1 + s \, (N - n_0 - n_1)}{N} \le \bar\alpha \le \frac{n_1 + (1 - s) (N - n_0 -
    n_1)}{N}

    ``queries`` is N, and s = 0.1 the step of the weights.
    """
    count_0, count_1 = np.asarray(at_0, dtype=np.float64), np.asarray(at_1, dtype=np.float64)
    # All other queries have a weight from 0.1 to 0.9.
    between = queries - count_0 - count_1
    lowest = (count_1 + ALPHAS[1] * between) / queries
    highest = (count_1 + ALPHAS[-2] * between) / queries
    return lowest, highest


def published_checks(published: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Check relations between the cells of Tables 2.1 to 2.4: ``check, cells, hold``."""
    cells = {number: published_numbers(published[number]).droplevel("row") for number in (1, 2, 3)}
    statistics = published_numbers(published[4])
    average, at_0, at_1 = (
        statistics.xs(name, level="statistic").to_numpy()
        for name in (
            "alpha average",
            "queries with optimal alpha 0",
            "queries with optimal alpha 1",
        )
    )
    low, high = alpha_bounds(at_0, at_1, QUERIES)
    checks = {}
    for other, check in {
        2: "rows of Table 2.2 repeated in Table 2.1",
        3: "rows of Table 2.1 repeated in Table 2.3",
    }.items():
        rows = cells[1].index.intersection(cells[other].index)
        checks[check] = (cells[1].loc[rows] == cells[other].loc[rows]).to_numpy()
    checks["mean weight within what the counts allow (2.4)"] = (low <= average) & (average <= high)
    rows = [(check, holds.size, int(holds.sum())) for check, holds in checks.items()]
    return pd.DataFrame(rows, columns=["check", "cells", "hold"])
