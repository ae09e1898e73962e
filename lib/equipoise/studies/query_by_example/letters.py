"""Tables of systems by task, with letters for the systems that each significantly beats, as papers print them."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from string import ascii_lowercase
from typing import Literal

import pandas as pd

from equipoise.reports.shown import MARKS
from equipoise.statistics import compare_pairs
from equipoise.studies.query_by_example.data import chosen


def lettered(
    values: pd.DataFrame, runs: Sequence[str], *, level: float = 0.05, family: Literal["column", "table"] = "column"
) -> pd.DataFrame:
    """Mean effectiveness of each system in each task, with the letters of the systems that it significantly beats.

    ``values``: ``run, task, query, measure, value``, every system scored on the same queries of a task. ``runs``: the
    table's rows in their order, at most 26; the first is a. ``level``: a difference counts if its p of the two-sided
    paired t-test, after Bonferroni, lies below this. ``family``: the comparisons that are counted are those of all
    pairs of rows within one column, or within all columns together, which the thesis does not say. Returns
    ``row, run``, and for each measure and task, among them "all", which pools the queries of all tasks, two columns:
    its name, such as ``method AP``, with the mean, and ``method AP better than`` with letters.

    thesis Tables 2.1 to 2.3: "paired t-test (p<0.05) with Bonferroni correction for multiple testing".
    """
    if absent := [run for run in runs if run not in set(values["run"])]:
        raise ValueError(f"no values of {', '.join(absent)}")
    letters = dict(zip(runs, ascii_lowercase, strict=False))
    shown = values[values["run"].isin(runs)].sort_values(["task", "measure"], kind="stable")
    shown = shown.assign(unit=shown["task"] + " " + shown["query"])
    columns = pd.concat([shown, shown.assign(task="all")]).groupby(["task", "measure"], sort=False)
    comparisons = comb(len(runs), 2) * chosen({"column": 1, "table": columns.ngroups}, family, "family")
    table = pd.DataFrame(letters.items(), columns=["run", "row"])[["row", "run"]]
    for (task, measure), part in columns:
        found = compare_pairs(part, unit="unit", correction="none")
        found = found[found["p"] * comparisons < level]
        ahead = found["difference"] > 0
        better, worse = found["a"].where(ahead, found["b"]), found["b"].where(ahead, found["a"])
        marks = worse.map(letters).sort_values().groupby(better).agg("".join)
        table[f"{task} {measure}"] = table["run"].map(part.groupby("run")["value"].mean())
        table[f"{task} {measure}{MARKS}"] = table["run"].map(marks).fillna("")
    return table
