"""Effectiveness of rankings, by ir_measures: one table whatever makes a ranking, a run, a task or a weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import ir_measures
import numpy as np
import pandas as pd


def parsed_measure(name: str) -> Any:
    """Measure of ir_measures by its name, such as ``nDCG@3`` or ``AP(rel=2)``."""
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
    """Effectiveness of every ranking, as columns ``query, measure, value`` behind those of `by`, sorted by measure.

    ``run``: ``query, document, score`` and the columns of `by`. ``judgements``: ``query, document, grade``, and
    those columns of `by` that judgements depend on (such as ``task``). ``by``: columns that with ``query`` make one
    ranking, such as ``run``, ``task`` or ``alpha``. ``measures``: what each measure is called in the result, and
    how ir_measures names it: ``{"MAP": "AP(rel=2)"}`` counts grades from 2 on as relevant. Ties of scores are broken
    by document id, descending, as trec_eval does, which keeps scores in single precision. Raises ValueError where a
    ranking has no judgements.

    thesis Tables 2.1 and 4.1: MAP and MRR are means of AP and RR over queries.

    Examples
    --------
    >>> run = pd.DataFrame({"run": "a", "query": "1", "document": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> judgements = pd.DataFrame({"query": ["1"], "document": ["d2"], "grade": [1]})
    >>> effectiveness(run, judgements, measures={"MRR": "RR"})
      run query measure  value
    0   a     1     MRR    0.5
    """
    named = {parsed_measure(name): label for label, name in measures.items()}
    keys = [*by, "query"]
    rankings = run[keys].drop_duplicates(ignore_index=True)
    rankings["query_id"] = [f"{number:09d}" for number in range(len(rankings))]
    qrels = rankings.merge(judgements).rename(columns={"document": "doc_id", "grade": "relevance"})
    if unjudged := len(rankings) - qrels["query_id"].nunique():
        raise ValueError(f"{unjudged} of {len(rankings)} rankings have no judgements")
    # ordered here: ir_measures hands RR@k to a program that breaks ties by id ascending
    ranked = run.merge(rankings).astype({"score": np.float32}).sort_values(["score", "document"], ascending=False)
    ranked = ranked.assign(score=-np.arange(len(ranked), dtype=np.float64)).rename(columns={"document": "doc_id"})
    found = ir_measures.iter_calc(
        list(named), qrels[["query_id", "doc_id", "relevance"]], ranked[["query_id", "doc_id", "score"]]
    )
    values = pd.DataFrame([(one.query_id, named[one.measure], one.value) for one in found])
    table = rankings.merge(values.set_axis(["query_id", "measure", "value"], axis=1))
    return table.sort_values(["measure", "query_id"])[[*keys, "measure", "value"]].reset_index(drop=True)
