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

    ``Δ`` is the cell as text, ``gap`` its number. ``marked``: as significant.
    """
    keys = [name for name in table.columns if name not in DIFFERENCES]
    cells = table.melt(keys, DIFFERENCES, "score", "Δ")
    cells["score"] = cells["score"].str.removeprefix("Δ")
    cells["marked"] = cells["Δ"].str.endswith("†")
    return cells.assign(gap=cells["Δ"].str.rstrip("†").astype(float))


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


def derived_cab(table_number: str, informed: str, counterfactual: str) -> pd.DataFrame:
    """Subtract published scores in two modes, in the settings of a published table of CAB.

    The sign is that of CAB: positive where people are favoured.
    """
    gaps = (quality_of(informed) - quality_of(counterfactual)).add_prefix("Δ").dropna()
    sign = np.where(gaps.index.get_level_values("relevant") == "Human", 1, -1)
    return tables(table_number)[SETTING].merge(gaps.mul(sign, axis=0).reset_index(), how="left")


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
    ours: pd.DataFrame, table: pd.DataFrame, *columns: str, benchmarks: Mapping[str, str]
) -> pd.DataFrame:
    """Add the published values of all models in the same setting, as text.

    ``table``: published, with ``model`` and the columns; its other columns that are in ours make a
    setting.
    ``benchmarks``: of the thesis, by our benchmark.
    """
    keys = [name for name in table if name in ours and name not in ("model", *columns)]
    texts = table.assign(**{column: table["model"] + " " + table[column] for column in columns})
    joined = texts.groupby(keys, sort=False)[list(columns)].agg("; ".join)
    at = ours.assign(benchmark=ours["benchmark"].map(benchmarks))[keys]
    found = at.merge(joined.add_prefix("published ").reset_index(), how="left")
    return ours.assign(**{name: found[name].to_numpy() for name in found.columns.drop(keys)})
