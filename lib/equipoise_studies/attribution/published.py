"""The published tables of chapter 5 as numbers, and the errors that they allow.

Only means are published, but the standard error of each mean difference has bounds. Squared
differences of scores from 0 to 1 have a maximum, and a mark of significance says that the
difference is more than 1.96 standard errors from zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from equipoise_compendium.printed import printed_table

SETTING = ["benchmark", "model", "relevant", "non-relevant"]
SCORES = ["Precision", "Recall"]
DIFFERENCES = ["ΔPrecision", "ΔRecall"]
ROUNDING = 0.05
"""Half a unit of the last published digit, in points."""


# --- tables ---------------------------------------------------------------------------------------


def numbers(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return a published table with some columns as numbers, without marks of significance."""
    table = table.copy()
    for column in columns:
        table[column] = table[column].str.rstrip("†").astype(float)
    return table


def tables(*table_numbers: str) -> pd.DataFrame:
    """Concatenate published tables of chapter 5 as text. ``table_numbers``: such as 5.1."""
    parts = [printed_table(f"thesis/table-{number}") for number in table_numbers]
    return pd.concat(parts, ignore_index=True)


def by_score(table: pd.DataFrame) -> pd.DataFrame:
    """Return published CAS or CAB, one row per setting and ``score``.

    ``published`` is the cell as text, ``gap`` its number. ``marked``: as significant.
    """
    keys = [name for name in table.columns if name not in DIFFERENCES]
    cells = table.melt(keys, DIFFERENCES, "score", "published")
    cells["score"] = cells["score"].str.removeprefix("Δ")
    cells["marked"] = cells["published"].str.endswith("†")
    return cells.assign(gap=cells["published"].str.rstrip("†").astype(float))


def quality(*table_numbers: str) -> pd.DataFrame:
    """Return published precision and recall by setting and ``mode``, as numbers.

    Without ``table_numbers`` of all tables; of Table 5.4 only what no other table has: the text of
    Table 5.14 has lost GPT-4's rows.
    """
    table = tables(*table_numbers or ("5.1", "5.11", "5.14", "5.15"))
    if not table_numbers:
        table = pd.concat([table, tables("5.4").query("model == 'GPT-4'")], ignore_index=True)
    if "relevant mode" in table:
        table["mode"] = table["mode"].fillna(
            table["relevant mode"] + "/" + table["non-relevant mode"]
        )
    return numbers(table, SCORES)[[*SETTING, "mode", *SCORES]]


def quality_of(mode: str) -> pd.DataFrame:
    """Return published precision and recall in a mode, by setting."""
    table = quality()
    return table[table["mode"] == mode].set_index(SETTING)[SCORES]


def labelled_human(table: pd.DataFrame, mode: pd.Series) -> pd.Series:
    """Return whether the relevant passage, shown in a ``mode``, has the label Human.

    Informed tells the truth about the relevant passage, CF-informed the opposite.
    """
    return (table["relevant"] == "Human") == (mode == "Informed")


def towards_people(gaps: pd.DataFrame) -> pd.DataFrame:
    """Give differences of modes the sign of CAB, positive where people are favoured."""
    sign = np.where(gaps.index.get_level_values("relevant") == "Human", 1, -1)
    return gaps.mul(sign, axis=0)


# --- published differences, with the largest error ------------------------------------------------


def differences(mode: str, against: str, sample: int) -> pd.DataFrame:
    """Subtract published scores in one mode from scores in another, in points.

    ``sample``: questions of each mean. Returns columns of `SETTING` with ``score, gap, error``.
    The error is the largest standard error that the two means allow. For scores from 0 to 1 with
    means a and b, E[d²] is at most min(a + b, 2 - a - b).
    """
    a, b = quality_of(mode) / 100, quality_of(against) / 100
    parts = []
    for score in SCORES:
        means = pd.DataFrame({"a": a[score], "b": b[score]}).dropna()
        gap = means["a"] - means["b"]
        total = means["a"] + means["b"]
        most = np.minimum(total, 2 - total) + 2 * ROUNDING / 100
        error = np.sqrt((most - gap**2) / (sample - 1))
        parts.append(pd.DataFrame({"score": score, "gap": 100 * gap, "error": 100 * error}))
    return pd.concat(parts).reset_index()


def biases(table: pd.DataFrame, sample: int, modes: tuple[str, str] | None = None) -> pd.DataFrame:
    """Return published CAB by setting and score, with its largest possible standard error.

    ``modes``: those that it compares, where the thesis publishes their means. Returns the columns
    of `by_score` with ``error``.
    """
    cells = by_score(table)
    bounds = [100 * np.sqrt((1 - (cells["gap"] / 100) ** 2) / (sample - 1))]  # E[d²] is at most 1
    if modes:
        of_means = differences(*modes, sample=sample)[[*SETTING, "score", "error"]]
        bounds.append(cells[[*SETTING, "score"]].merge(of_means, how="left")["error"])
    # A mark is a two-sided t-test at 0.05 of the difference before it was rounded.
    critical = stats.t.isf(0.025, sample - 1)
    by_mark = (cells["gap"].abs() + ROUNDING) / critical
    bounds.append(by_mark.where(cells["marked"]))
    return cells.assign(error=pd.concat(bounds, axis=1).min(axis=1))


def with_interval(table: pd.DataFrame, sample: int, tail: float = 0.025) -> pd.DataFrame:
    """Add ``low`` and ``high`` of each ``gap`` with its ``error``, widened by the rounding."""
    reach = stats.t.isf(tail, sample - 1) * table["error"] + ROUNDING
    return table.assign(low=table["gap"] - reach, high=table["gap"] + reach)


def next_to(
    ours: pd.DataFrame,
    table: pd.DataFrame,
    keys: Sequence[str],
    columns: Sequence[str],
    benchmarks: Mapping[str, str],
) -> pd.DataFrame:
    """Add the published values of all models in the same setting, as text.

    ``table``: published, with ``model``. ``benchmarks``: of the thesis, by our benchmark.
    """
    texts = table.assign(**{column: table["model"] + " " + table[column] for column in columns})
    joined = texts.groupby(list(keys), sort=False)[list(columns)].agg("; ".join)
    at = ours.assign(benchmark=ours["benchmark"].map(benchmarks))[list(keys)]
    found = at.merge(joined.add_prefix("published ").reset_index(), how="left")
    return ours.assign(**{name: found[name].to_numpy() for name in found.columns.drop(list(keys))})


# --- what a number of questions can show ----------------------------------------------------------


def reach(counts: Sequence[int], alpha: float, level: float) -> pd.DataFrame:
    """Return the least CAB of recall that differs from zero, by number of questions.

    It is computed for questions that all change in one direction. The other columns assume that
    recall changes as often as Table 5.2 reports. They are half of the width of an interval, and how
    often the exact test finds a CAB as large as Table 5.3 reports, on average over its settings.
    """
    # Recall is 0 or 1 here, so its CAS is the share of the questions that change.
    cas = numbers(tables("5.2"), DIFFERENCES)["ΔRecall"].to_numpy() / 100
    cab = numbers(tables("5.3"), DIFFERENCES)["ΔRecall"].to_numpy() / 100
    rows = []
    for n in sorted(set(counts)):
        changed = np.arange(1, n + 1)
        # The bootstrap excludes zero once few enough samples contain none of the changed questions.
        bootstrap = changed[(1 - changed / n) ** n < (1 - level) / 2]
        permutation = changed[2.0 ** (1 - changed) < alpha]
        t = stats.t.isf((1 - level) / 2, n - 1)
        rows.append(
            {
                "questions": n,
                "least CAB (bootstrap)": 100 * bootstrap[0] / n if bootstrap.size else np.nan,
                "least CAB (permutation)": 100 * permutation[0] / n if permutation.size else np.nan,
                "reach at the lowest CAS": 100 * t * np.sqrt(cas.min() / (n - 1)),
                "reach at the highest CAS": 100 * t * np.sqrt(cas.max() / (n - 1)),
                "published CAB found, percent of runs": 100 * np.mean(power(n, cas, cab, alpha)),
            }
        )
    return pd.DataFrame(rows)


def power(n: int, changed: np.ndarray, gap: np.ndarray, alpha: float) -> np.ndarray:
    """Return how often the exact paired test of n scores of 0 or 1 is significant.

    ``changed``: share of the scores that change. ``gap``: the change of their mean.
    """
    n_changed = np.arange(n + 1)[:, None]  # each possible number of changed scores
    # The most changes in the rarer direction with which the test is significant.
    most_against = stats.binom.ppf(alpha / 2, n_changed, 0.5)
    most_against -= 2 * stats.binom.cdf(most_against, n_changed, 0.5) >= alpha
    upward = (1 + gap / changed) / 2  # probability that a change is an increase
    significant = stats.binom.cdf(most_against, n_changed, upward)
    significant += stats.binom.cdf(most_against, n_changed, 1 - upward)
    return np.asarray((stats.binom.pmf(n_changed, n, changed) * significant).sum(axis=0))
