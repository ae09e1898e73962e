"""How the tables of chapter 5 are shown; nothing is measured here.

Under the thesis's names, in points of 100, beside the print.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise_compendium.printed import printed_table
from equipoise_studies.attribution.study import Study

PRINTED_NAMES = {
    "relevant_author": "relevant",
    "nonrelevant_author": "non-relevant",
    "answers": "questions",
    "exact_match": "EM",
    "relevant_ac": "relevant AC",
    "nonrelevant_ac": "non-relevant AC",
    "relevant_citations": "relevant citations",
    "nonrelevant_citations": "non-relevant citations",
    "cited_relevant": "relevant cited",
    "cited": "total cited",
}
"""Columns of the library's tables, and what the thesis calls them."""

INTERVALS = ["score", "changed", "Δ", "low", "high", "p (t-test)", "p (permutation)"]
"""Columns of `in_points`, beside those of the setting."""

_KEYS = ["benchmark", "quantity", "model", "retriever", "relevant", "non-relevant"]
_KEYS += ["mode", "relevant mode", "non-relevant mode"]


def printed_p(p: float) -> str:
    """A p-value as papers print it."""
    if np.isnan(p):
        return ""
    if p < 0.001:
        return "<0.001"
    return f"{p:.3f}"


def in_points(differences: pd.DataFrame) -> pd.DataFrame:
    """A table of `bias_table` in points of 100, under the thesis's names."""
    table = differences.copy()
    # The print writes 100 for a score of 1.
    table[["value", "low", "high"]] *= 100
    table["changed"] = table["changed"].astype(str) + " of " + table["questions"].astype(str)
    table["score"] = table["measure"].str.capitalize()
    table["p (t-test)"] = table["p_t"].map(printed_p)
    table["p (permutation)"] = table["p_permutation"].map(printed_p)
    return table.rename(columns=PRINTED_NAMES | {"value": "Δ"})


def beside_print(
    study: Study, artefact: str, table: pd.DataFrame, benchmark: str = ""
) -> dict[str, Any]:
    """What `Report.table` takes of a table.

    A replica's is taken as it is; one of the thesis's own data stands beside the print.

    ``benchmark``: the one of the print that the table is of; empty for both. Of the thesis's own
    data the rows and columns are those of the print.
    """
    data = study.about(benchmark)
    if study.basis == "replica":
        return {"ours": table, "basis": study.basis, "data": data}

    printed = printed_table(artefact)
    keys = [name for name in _KEYS if name in printed]
    if "score" in table:  # a row for each score, where the print has a column for each
        table = table.assign(score="Δ" + table["score"])
        table = table.pivot_table("Δ", keys, "score").reset_index()
    ours = printed[keys].merge(table, "left", on=keys).reindex(columns=printed.columns)
    # A model in the place of a printed one stands below, in rows of its own.
    if "model" in printed:
        further = table[~table["model"].isin(printed["model"])]
        ours = pd.concat([ours, further.reindex(columns=printed.columns)])

    # Where 1 is the most, and not 100, the tolerance in points is as many hundredths.
    tolerance = {}
    for name in printed:
        of_100 = "recision" in name or "ecall" in name
        tolerance[name] = study.tolerance if of_100 else study.tolerance / 100
    options = {"ours": ours, "keys": keys, "basis": study.basis, "data": data}
    return options | {"tolerance": tolerance}


def derived_from_print(
    study: Study,
    artefact: str,
    derived: pd.DataFrame,
    recorded: pd.DataFrame,
    *,
    sources: str,
    benchmark: str = "",
    columns: Sequence[str] | None = None,
    **further: Any,
) -> dict[str, Any]:
    """What `Report.table` takes of a printed table that follows from others, its ``sources``.

    ``recorded``: the same from recorded answers, which takes its place where these are the
    thesis's own. ``columns``: those that follow; all by default. ``further``: for the derived one.
    """
    if study.basis == "recomputed":
        return beside_print(study, artefact, recorded, benchmark)
    keys = [name for name in _KEYS if name in derived]
    options = {"ours": derived, "keys": keys, "columns": columns, "basis": "derived"}
    return options | {"data": sources} | further
