"""Effectiveness of rankings, by ir_measures: one table whatever makes a ranking, a run, a task or a weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import ir_measures
import pandas as pd


def parsed_measure(name: str) -> Any:
    """Measure of ir_measures by its name.

    ``name``: Such as ``nDCG@3`` or ``AP(rel=2)``.
    """
    try:
        return ir_measures.parse_measure(name)
    except (ValueError, NameError) as error:
        raise ValueError(f"ir_measures knows no measure {name!r}: {error}") from None


def effectiveness(
    run: pd.DataFrame,
    judgements: pd.DataFrame,
    *,
    by: Sequence[str] = ("run",),
    measures: Mapping[str, str] = MappingProxyType({"AP": "AP", "nDCG": "nDCG"}),
) -> pd.DataFrame:
    """Effectiveness of every ranking.

    ``run``: ``query, document, score`` and the columns of `by`. ``judgements``: ``query, document, grade``, and
    those columns of `by` that judgements depend on (such as ``task``). ``by``: Columns that with ``query`` make one
    ranking, such as ``run``, ``task`` or ``alpha``. ``measures``: what each measure is called in the result, and
    how ir_measures names it: ``{"MAP": "AP(rel=2)"}`` counts grades from 2 on as relevant. Returns The columns of
    `by`, then ``query, measure, value``, sorted by measure. Ties of scores are broken by document id, descending,
    as trec_eval does.

    thesis Tables 2.1 and 4.1: MAP and MRR are means of AP and RR over queries.
    """
    by = list(by)
    named = {parsed_measure(name): label for label, name in measures.items()}
    rankings = run[[*by, "query"]].drop_duplicates(ignore_index=True)
    rankings["query_id"] = [f"{number:09d}" for number in range(len(rankings))]
    shared = [column for column in [*by, "query"] if column in judgements.columns]
    qrels = rankings.merge(judgements, on=shared).rename(columns={"document": "doc_id", "grade": "relevance"})
    if unjudged := len(rankings) - qrels["query_id"].nunique():
        raise ValueError(f"{unjudged} of {len(rankings)} rankings have no judgements")
    ranked = run.merge(rankings, on=[*by, "query"]).rename(columns={"document": "doc_id"})
    results = ir_measures.iter_calc(
        list(named), qrels[["query_id", "doc_id", "relevance"]], ranked[["query_id", "doc_id", "score"]]
    )
    values = pd.DataFrame(
        [(result.query_id, named[result.measure], result.value) for result in results],
        columns=["query_id", "measure", "value"],
    )
    table = rankings.merge(values, on="query_id").sort_values(["measure", "query_id"])
    return table[[*by, "query", "measure", "value"]].reset_index(drop=True)
