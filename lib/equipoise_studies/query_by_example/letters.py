"""Tables of systems by task, with letters for the systems that each significantly beats, as papers print them."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from string import ascii_lowercase
from typing import Literal

import pandas as pd

from equipoise.statistics import compare_pairs
from equipoise_compendium.shown import MARKS
from equipoise_studies.query_by_example.data import chosen


def lettered(
    values: pd.DataFrame,
    models: Sequence[str],
    *,
    level: float = 0.05,
    family: Literal["column", "table"] = "column",
    together: bool = True,
) -> pd.DataFrame:
    """Mean effectiveness of each model in each task, with the letters of the models that it significantly beats.

    ``values``: ``run, task, query, measure, value``, every run scored on the same queries of a
    task. ``models``: the table's rows in their order, at most 26; the first is a. ``level``: a
    difference counts if its p of the two-sided paired t-test, after Bonferroni, lies below this.
    ``family``: the comparisons that are counted are those of all pairs of rows within one column,
    or within all columns together, which the thesis does not say. ``together``: whether two more
    columns hold all tasks, where each query paper counts once, with the mean over its tasks: its
    rankings in several tasks are no independent observations. Returns ``row, model``, and for each
    measure and task two columns: its name, such as ``Method MAP``, with the mean, and the same
    followed by " better than" with letters.

    thesis Tables 2.1 to 2.3: "paired t-test (p<0.05) with Bonferroni correction for multiple
    testing".
    """
    if absent := [model for model in models if model not in set(values["run"])]:
        raise ValueError(f"no values of {', '.join(absent)}")
    letters = dict(zip(models, ascii_lowercase, strict=False))
    shown = values[values["run"].isin(models)]
    by_paper = (
        shown.groupby(["run", "query", "measure"], as_index=False)["value"]
        .mean()
        .assign(task="All")
    )
    columns = pd.concat([shown, by_paper] if together else [shown]).groupby(
        ["task", "measure"], sort=False
    )
    comparisons = comb(len(models), 2) * chosen(
        {"column": 1, "table": columns.ngroups}, family, "family"
    )
    table = pd.DataFrame(letters.items(), columns=["model", "row"])[["row", "model"]]
    for (task, measure), part in columns:
        found = compare_pairs(part, unit="query", correction="none")
        found = found[found["p"] * comparisons < level]
        ahead = found["difference"] > 0
        better, worse = found["a"].where(ahead, found["b"]), found["b"].where(ahead, found["a"])
        marks = worse.map(letters).sort_values().groupby(better).agg("".join)
        table[f"{task} {measure}"] = table["model"].map(part.groupby("run")["value"].mean())
        table[f"{task} {measure}{MARKS}"] = table["model"].map(marks).fillna("")
    return table
