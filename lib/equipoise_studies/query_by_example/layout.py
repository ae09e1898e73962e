"""How tables of rankers are set: letters for significant differences, the thesis's own layout."""

from __future__ import annotations

from string import ascii_lowercase

import pandas as pd

from equipoise_compendium.shown import MARKS
from equipoise_studies.query_by_example.study import Study


def lettered(means: pd.DataFrame, significant: pd.DataFrame) -> pd.DataFrame:
    """Mean effectiveness of rankers, with the letters of those that each significantly beats.

    ``means``: a row a ranker, at most 26, the first is a; a column a task and measure.
    ``significant``: ``column, better, worse``, a row for each significant difference. Returns
    ``row, model``, and for each column of means two: itself, and the same followed by
    " better than".
    """
    letters = dict(zip(means.index, ascii_lowercase, strict=False))
    table = pd.DataFrame({"row": list(letters.values()), "model": list(letters)})
    for column in means.columns:
        differences = significant[significant["column"] == column]
        # A row's letters are those of the rows below it in effectiveness, in the table's order.
        marks = []
        for model in letters:
            beaten = differences.loc[differences["better"] == model, "worse"]
            marks.append("".join(sorted(beaten.map(letters))))
        table[column] = means[column].to_numpy()
        table[f"{column}{MARKS}"] = marks
    return table


def in_layout(table: pd.DataFrame, study: Study, printed: pd.DataFrame) -> pd.DataFrame:
    """A table as the thesis sets it: its rows, empty where no ranker was run, and MAP in per cent.

    A replica, whose tasks are others, keeps its own rows, and has beside them the means over the
    thesis's four tasks.
    """
    if study.stands_for == "thesis":
        table = table.copy()
        for column in table.filter(regex="MAP$"):
            table[column] *= 100
        return printed[["row", "model"]].merge(table.drop(columns="row"), how="left").fillna("")
    # "stands for" is empty where a ranker is the thesis's own, as BM25 is.
    printed_names = {name: row for row, name in study.rows(printed).items()}
    stands_for = table["model"].map(printed_names)
    table.insert(2, "stands for", stands_for.where(stands_for != table["model"], "").fillna(""))
    cells = printed.set_index("model").filter(regex="MAP|nDCG").map(_fraction)
    for measure in ("MAP", "nDCG"):
        table[f"thesis {measure}"] = stands_for.map(cells.filter(like=measure).mean(axis=1))
    return table


def _fraction(text: str) -> float:
    """The number in a printed cell, per cent as a fraction."""
    if text.endswith("%"):
        return float(text.rstrip("%")) / 100
    return float(text)
