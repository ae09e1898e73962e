"""Tables of rankers: paired tests, letters for significant differences, published values."""

from __future__ import annotations

from math import comb
from string import ascii_lowercase
from typing import Literal

import pandas as pd

from equipoise.statistics import compare_pairs
from equipoise_compendium.rendering import MARKS
from equipoise_studies.query_by_example.data import Study


def means_and_tests(
    values: pd.DataFrame, test: Literal["t", "wilcoxon"]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Average each ranker in each column, and compare every two rankers, paired by query.

    The columns are the tasks, and *All*, where each query paper counts once, with its mean over
    its tasks.

    Parameters
    ----------
    values
        ``run, task, query, measure, value``.
    test
        The paired test.

    Returns
    -------
    means
        One row per ranker, one column per task and measure.
    comparisons
        ``column, better, worse, p``, one row per pair of rankers; p is not corrected.
    """
    papers = values.groupby(["run", "query", "measure"], as_index=False)["value"].mean()
    table = pd.concat([values, papers.assign(task="All")])
    table["column"] = table["task"] + " " + table["measure"]
    means = table.pivot_table(index="run", columns="column", values="value", sort=False)
    comparisons = []
    for column, rankers in table.groupby("column", sort=False):
        pairs = compare_pairs(rankers, unit="query", test=test, correction="none")
        comparisons.append(pairs.assign(column=column))
    tested = pd.concat(comparisons)
    is_ahead = tested["difference"] > 0
    tested["better"] = tested["a"].where(is_ahead, tested["b"])
    tested["worse"] = tested["b"].where(is_ahead, tested["a"])
    return means, tested[["column", "better", "worse", "p"]]


def lettered(
    means: pd.DataFrame,
    comparisons: pd.DataFrame,
    *,
    level: float = 0.05,
    family: Literal["column", "table"] = "column",
) -> pd.DataFrame:
    """Show mean effectiveness with the letters of the rankers that each significantly beats.

    Parameters
    ----------
    means
        One row per ranker, at most 26, one column per task and measure.
    comparisons
        As `means_and_tests` returns them. Comparisons of other rankers are not used.
    level
        Level of significance.
    family
        Bonferroni's correction multiplies p by the number of comparisons in the column, or in the
        whole table.

    Returns
    -------
    DataFrame
        ``row, model``, and two columns for each column of means: the means, and letters in a
        column whose name ends in " better than".
    """
    letters = dict(zip(means.index, ascii_lowercase, strict=False))
    is_shown = comparisons["better"].isin(letters) & comparisons["worse"].isin(letters)
    shown = comparisons[is_shown]
    n_comparisons = comb(len(letters), 2) if family == "column" else len(shown)
    significant = shown[shown["p"] * n_comparisons < level]
    table = pd.DataFrame({"row": list(letters.values()), "model": list(letters)})
    for column in means.columns:
        differences = significant[significant["column"] == column]
        marks = []
        for model in letters:
            beaten = differences.loc[differences["better"] == model, "worse"]
            marks.append("".join(sorted(beaten.map(letters))))
        table[column] = means[column].to_numpy()
        table[f"{column}{MARKS}"] = marks
    return table


def with_published(table: pd.DataFrame, study: Study, published: pd.DataFrame) -> pd.DataFrame:
    """Add the published row that each ranker is or replaces, and its published effectiveness.

    The published values are means over the thesis's four tasks, and the cells of the tasks that are
    also in the table.
    """
    table = table.copy()
    row_of = {name: row for row, name in study.rows(published).items()}
    rows = table["model"].map(row_of)
    # "replaces" is empty where a ranker is the thesis's own, as BM25 is.
    table.insert(2, "replaces", rows.where(rows != table["model"], "").fillna(""))
    cells = published_numbers(published).droplevel("row")
    for column in cells:
        if column in table:
            table[f"thesis {column}"] = rows.map(cells[column])
    for measure in ("MAP", "nDCG"):
        table[f"thesis {measure}"] = rows.map(cells.filter(like=measure).mean(axis=1))
    return table


def published_numbers(published: pd.DataFrame) -> pd.DataFrame:
    """Read the cells of a published table as numbers; a percentage becomes a fraction.

    The index is the first two columns of the table.
    """

    def number(text: str) -> float:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)

    cells = published.set_index(list(published.columns[:2]))
    return cells.filter(regex="MAP|nDCG").map(number)
