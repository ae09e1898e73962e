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
    values: pd.DataFrame,
    runs: Sequence[str],
    *,
    level: float = 0.05,
    correction: Literal["bonferroni", "holm", "none"] = "bonferroni",
    family: Literal["column", "table"] = "column",
    everything: str | None = "all",
) -> pd.DataFrame:
    """Mean effectiveness of each system in each task, with the letters of the systems that it significantly beats.

    ``values``: ``run, task, query, measure, value``, every system scored on the same queries of a task. ``runs``:
    Systems in the order of the table's rows, at most 26; the first is a. ``level``: A difference counts if its
    corrected p of the two-sided paired t-test lies below this. ``correction``: Over the comparisons of a family.
    ``family``: the comparisons of all pairs of rows within one column, or within all columns together. The thesis
    only says "Bonferroni correction for multiple testing". ``everything``: name of one more task that pools the
    queries of all; None for none. Returns ``row, run``, and for each task and measure two columns: its name, such
    as ``method AP``, with the mean, and ``method AP better than`` with letters.

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
    tasks = sorted(set(chosen["task"]))
    if everything is not None:
        chosen = pd.concat([chosen, chosen.assign(task=everything)])
        tasks.append(everything)
    columns = [(task, measure) for task in tasks for measure in sorted(set(chosen["measure"]))]
    means = chosen.groupby(["task", "measure", "run"])["value"].mean()
    found = pd.concat(
        [
            compare_pairs(part, run="run", unit="unit", correction="none").assign(task=task, measure=measure)
            for (task, measure), part in chosen.groupby(["task", "measure"])
        ],
        ignore_index=True,
    )
    if family == "table":
        found["p_corrected"] = corrected(found["p"], correction)
    else:
        found["p_corrected"] = found.groupby(["task", "measure"])["p"].transform(lambda p: corrected(p, correction))
    found = found[found["p_corrected"] < level]
    ahead = found["difference"] > 0
    beaten = pd.DataFrame(
        {
            "task": found["task"],
            "measure": found["measure"],
            "run": found["a"].where(ahead, found["b"]),
            "letter": found["b"].where(ahead, found["a"]).map(letters),
        }
    )
    marks = beaten.sort_values("letter").groupby(["task", "measure", "run"])["letter"].agg("".join)
    table = pd.DataFrame({"row": [letters[run] for run in runs], "run": list(runs)})
    for task, measure in columns:
        rows = pd.MultiIndex.from_product([[task], [measure], runs])
        table[f"{task} {measure}"] = means.reindex(rows).to_numpy()
        table[f"{task} {measure} {BETTER_THAN}"] = marks.reindex(rows).fillna("").to_numpy()
    return table
