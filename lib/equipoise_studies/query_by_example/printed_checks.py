"""What must hold between the cells of the thesis's Tables 2.1 to 2.4, whatever the data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import ascii_lowercase

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Booleans, Floats
from equipoise_studies.query_by_example.interpolation import ALPHAS

QUERIES = 1000
"""Queries of a task in SciDocs, about: the thesis prints no exact number."""

_MIXTURES = ["BM25 STM2 + TILDE SciBERT", "BM25 STM2 + TILDEv2 SciBERT"]
_RANKERS = ["TILDE SciBERT", "TILDEv2 SciBERT"]


def alpha_bounds(at_0: ArrayLike, at_1: ArrayLike, queries: int) -> tuple[Floats, Floats]:
    r"""Least and greatest mean weight that the counts at either end allow, in a sweep of `ALPHAS`.

    .. math:: \frac{n_1 + s \, (N - n_0 - n_1)}{N} \le \bar\alpha \le \frac{n_1 + (1 - s) (N - n_0 -
    n_1)}{N}

    ``at_0``, ``at_1``: numbers of queries whose best weight is 0, and 1. ``queries``: N, of all.
    The step s of the sweep is 0.1.

    For thesis Table 2.4, whose rows must agree with each other.
    """
    count_0, count_1 = np.asarray(at_0, dtype=np.float64), np.asarray(at_1, dtype=np.float64)
    # All other queries lie between the second weight of the sweep and the last but one.
    between = queries - count_0 - count_1
    lowest = (count_1 + ALPHAS[1] * between) / queries
    highest = (count_1 + ALPHAS[-2] * between) / queries
    return lowest, highest


def printed_checks(printed: Mapping[int, pd.DataFrame], queries: int = QUERIES) -> pd.DataFrame:
    """How often each relation holds: ``check, cells, hold``; ``queries``: about so many a task."""
    numbers = {number: numbers_of(table) for number, table in printed.items()}
    by_model = {number: numbers[number].droplevel("row") for number in (1, 2, 3)}

    mixed = by_model[3].loc[_MIXTURES].to_numpy()
    bm25 = by_model[3].loc[["BM25 STM2"]].to_numpy()
    better_part = np.maximum(bm25, by_model[3].loc[_RANKERS].to_numpy())

    statistics = numbers[4]
    quality = statistics.xs("ranking quality", level="statistic").to_numpy()
    average = statistics.xs("alpha average", level="statistic").to_numpy()
    at_0 = statistics.xs("queries with optimal alpha 0", level="statistic").to_numpy()
    at_1 = statistics.xs("queries with optimal alpha 1", level="statistic").to_numpy()
    low, high = alpha_bounds(at_0, at_1, queries)

    checks = {
        "rows of Table 2.2 repeated in Table 2.1": _repeated(by_model[1], by_model[2]),
        "rows of Table 2.1 repeated in Table 2.3": _repeated(by_model[1], by_model[3]),
        "oracle (2.4) at least the tuned weight (2.3)": quality >= mixed,
        "oracle (2.4) at least the better part (2.3)": quality >= better_part,
        "tuned weight at least the better part (2.3)": mixed >= better_part,
        "tuned weight above the better part (2.3)": mixed > better_part,
        "mean weight within what the counts allow (2.4)": (low <= average) & (average <= high),
    }
    # A lower quartile of 0 is what makes the quartile range equal to the upper quartile.
    quartile = "more than a quarter of the queries at 0, as a quartile range equal to a quartile "
    checks[quartile + "needs (2.4)"] = at_0 > queries / 4
    rows = [(check, cells.size, int(cells.sum())) for check, cells in checks.items()]
    return pd.DataFrame(rows, columns=["check", "cells", "hold"])


def numbers_of(table: pd.DataFrame) -> pd.DataFrame:
    """Cells of a printed table as numbers, per cent without its sign, by its first two columns."""
    cells = table.set_index(list(table.columns[:2])).filter(regex="MAP|nDCG")
    return cells.replace("%", "", regex=True).astype(float)


def _repeated(table: pd.DataFrame, repeating: pd.DataFrame) -> Booleans:
    """Which cells of the rows that stand in two tables are equal."""
    rows = table.index.intersection(repeating.index)
    return table.loc[rows].to_numpy() == repeating.loc[rows].to_numpy()


def marked_above(text: str) -> set[str]:
    """The rows that a printed cell is marked as better than: ``a-gij`` names a to g, i and j."""
    letters = set()
    for first, last in re.findall(r"([a-z])(?:-([a-z]))?", text):
        start = ascii_lowercase.index(first)
        letters |= set(ascii_lowercase[start : ascii_lowercase.index(last or first) + 1])
    return letters
