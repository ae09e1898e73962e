"""Tables of systems by task, with letters for the systems that each significantly beats, as papers print them."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Literal

import pandas as pd

from equipoise.statistics import compare_pairs, corrected

BETTER_THAN = "better than"
"""End of the name of a column of letters."""


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
    if family not in ("column", "table"):
        raise ValueError(f'family must be "column" or "table", found {family!r}')
    if len(runs) > len(ascii_lowercase):
        raise ValueError(f"at most 26 rows have letters, found {len(runs)}")
    if absent := [run for run in runs if run not in set(values["run"])]:
        raise ValueError(f"no values of {', '.join(absent)}")
    letters = dict(zip(runs, ascii_lowercase, strict=False))
    chosen = values[values["run"].isin(runs)]
    chosen = chosen.assign(unit=chosen["task"] + " " + chosen["query"])
    tasks = [*sorted(set(chosen["task"])), "all"]
    chosen = pd.concat([chosen, chosen.assign(task="all")])
    column = ["task", "measure"]
    found = pd.concat(
        [
            compare_pairs(part, run="run", unit="unit", correction="none").assign(task=task, measure=measure)
            for (task, measure), part in chosen.groupby(column)
        ],
        ignore_index=True,
    )
    families = found.groupby(column if family == "column" else lambda _: 0)["p"]
    found = found[families.transform(lambda p: corrected(p, "bonferroni")) < level]
    ahead = found["difference"] > 0
    found = found.assign(
        run=found["a"].where(ahead, found["b"]), letter=found["b"].where(ahead, found["a"]).map(letters)
    )
    marks = found.sort_values("letter").groupby([*column, "run"])["letter"].agg("".join)
    means = chosen.groupby([*column, "run"])["value"].mean()
    table = pd.DataFrame({"row": [letters[run] for run in runs], "run": list(runs)})
    for task in tasks:
        for measure in sorted(set(chosen["measure"])):
            rows = pd.MultiIndex.from_product([[task], [measure], runs])
            table[f"{task} {measure}"] = means.reindex(rows).to_numpy()
            table[f"{task} {measure} {BETTER_THAN}"] = marks.reindex(rows).fillna("").to_numpy()
    return table
