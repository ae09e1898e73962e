"""Runs by measures in one table, with letters for significance; and every pair in one matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.declare import Direction, checked
from equipoise.options import Level
from equipoise.problems import listed
from equipoise.statistics.leaderboards import Comparison
from equipoise.statistics.pairs import significance


def letters(n: int) -> list[str]:
    """A name of letters for each of n runs: a to z, then aa, ab and so on.

    >>> letters(28)[-3:]
    ['z', 'aa', 'ab']
    """
    names = []
    for number in range(1, n + 1):
        name = ""
        while number:
            number, place = divmod(number - 1, 26)
            name = chr(ord("a") + place) + name
        names.append(name)
    return names


def marks(names: Iterable[str]) -> str:
    """Letters as one mark; between commas where one of them has two letters.

    >>> marks(["b", "c"]), marks(["b", "ab"])
    ('bc', 'b,ab')
    """
    present = list(names)
    between = "," if any(len(name) > 1 for name in present) else ""
    return between.join(present)


@checked
def overview(
    comparisons: Mapping[str, Comparison],
    directions: Mapping[str, Direction] | None = None,
    *,
    level: Level = 0.95,
) -> pd.DataFrame:
    """Means of runs by each measure, the runs that each is significantly better than, and the best.

    ``comparisons``: by the name of the measure, each without further groups, of the same runs.
    ``directions``: by the same names; higher is better where a name is not there. Returns, runs in
    the order of the first measure's leaderboard: ``run, letter, measure, mean, low, high,
    better_than`` (letters of the runs; where neither direction is better, of those that are
    significantly lower), ``best`` (False where neither is better). Runs of the highest mean are all
    the best. A difference is significant where its corrected p is at most 1 - level; p is corrected
    within a measure and not over the measures.

    >>> from equipoise.statistics import compare_systems
    >>> scores = pd.DataFrame({"topic": [*"abcabc"], "run": [*"xxxyyy"], "measure": "P"})
    >>> scores["value"] = [1, 2, 3, 2.5, 3.6, 4.4]
    >>> overview({"P": compare_systems(scores, test="t")})[["run", "letter", "better_than", "best"]]
      run letter better_than   best
    0   y      a           b   True
    1   x      b              False
    """
    boards = {name: comparison.leaderboard for name, comparison in comparisons.items()}
    runs = next(iter(boards.values()))["run"].tolist()
    letter_of = dict(zip(runs, letters(len(runs)), strict=True))
    tables = []
    for name, board in boards.items():
        other_runs = sorted(set(board["run"]) ^ set(runs))
        if other_runs:
            raise ValueError(
                f"{name} has other runs than the first measure: {listed(other_runs)};"
                " score all runs by all measures, or name the measures to compare"
            )
        direction = (directions or {}).get(name, "higher is better")
        better_than = _better_than(comparisons[name].comparisons, letter_of, direction, level)
        board = board.set_index("run").loc[runs].reset_index()
        best = np.zeros(len(board), dtype=bool)
        if direction == "higher is better":
            best = (board["mean"] == board["mean"].max()).to_numpy()
        elif direction == "lower is better":
            best = (board["mean"] == board["mean"].min()).to_numpy()
        table = board[["run", "mean", "low", "high"]].assign(measure=name, best=best)
        table["letter"] = table["run"].map(letter_of)
        table["better_than"] = table["run"].map(better_than)
        tables.append(table)
    columns = ["run", "letter", "measure", "mean", "low", "high", "better_than", "best"]
    return pd.concat(tables, ignore_index=True)[columns]


def _better_than(
    pairs: pd.DataFrame, letter_of: Mapping[str, str], direction: str, level: float
) -> dict[str, str]:
    """For each run the letters of those that it is significantly better than."""
    worse_runs: dict[str, list[str]] = {run: [] for run in letter_of}
    sign = -1.0 if direction == "lower is better" else 1.0
    significant = pairs[pairs["p_corrected"] <= significance(level)]
    for row in significant.itertuples():
        gap = sign * row.difference
        if gap > 0:
            worse_runs[row.a].append(row.b)
        elif gap < 0:
            worse_runs[row.b].append(row.a)
    better_than = {}
    for run, others in worse_runs.items():
        # In the order of the letters, that is, of the runs.
        better_than[run] = marks(letter_of[name] for name in letter_of if name in others)
    return better_than


def pair_matrix(comparison: Comparison) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Difference of each run less each other, and the corrected p: (runs, runs), NaN on diagonals.

    The runs stand in the order of the leaderboard.

    >>> from equipoise.statistics import compare_systems
    >>> scores = pd.DataFrame({"topic": [*"abcabc"], "run": [*"xxxyyy"], "measure": "P"})
    >>> scores["value"] = [1, 2, 3, 2.5, 3.6, 4.4]
    >>> differences, p_values = pair_matrix(compare_systems(scores, test="t"))
    >>> differences.round(2).to_numpy().tolist()
    [[nan, 1.5], [-1.5, nan]]
    """
    runs = comparison.leaderboard["run"].tolist()
    differences = pd.DataFrame(np.nan, index=runs, columns=runs)
    p_values = differences.copy()
    pairs: Sequence[Any] = comparison.comparisons.to_dict("records")
    for row in pairs:
        first, second = row["a"], row["b"]
        differences.loc[first, second] = row["difference"]
        differences.loc[second, first] = -row["difference"]
        p_values.loc[first, second] = p_values.loc[second, first] = row["p_corrected"]
    return differences, p_values
