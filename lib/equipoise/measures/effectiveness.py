"""Effectiveness of rankings by ir_measures; a ranking may be of a run, a task or a weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from subprocess import CalledProcessError
from typing import Any

import ir_measures
import numpy as np
import pandas as pd

from equipoise.arrays import single_precision, starts
from equipoise.coverage import Seen, first, judge
from equipoise.declared import checked
from equipoise.measures.tied_scores import orders_of_ties, tied_spans
from equipoise.options import TiedScores


def parsed_measure(name: str) -> Any:
    """Measure of ir_measures by its name, such as ``nDCG@3`` or ``AP(rel=2)``."""
    try:
        measure = ir_measures.parse_measure(name)
        measure.validate_params()
    except (ValueError, NameError) as error:
        raise ValueError(f"unknown measure {name!r} of ir_measures ({error})") from None
    except AssertionError:
        # It holds its parameters by assertions, which name objects of its own.
        remedy = "ir_measures wants a cut-off, such as P@10, and parameters that it knows"
        raise ValueError(f"measure {name!r} is not written whole: {remedy}") from None
    # Others would end Python.
    if not 1 <= measure.params.get("cutoff", 1) < 2**31:
        raise ValueError(f"measure {name!r}: the cut-off must be at least 1")
    return measure


def _calculated(
    measures: Sequence[Any], judged: Mapping[str, Any], ranked: Mapping[str, Any]
) -> list[tuple[str, Any, float]]:
    """Return query, measure and value of every ranking, by ir_measures."""
    queries = list(dict.fromkeys([*judged, *ranked]))
    # Some of its programs read only ids that are numbers.
    number_of = {query: str(number) for number, query in enumerate(queries)}
    tables = [{number_of[query]: table[query] for query in table} for table in (judged, ranked)]
    try:
        values = list(ir_measures.iter_calc(measures, *tables))
    except (TypeError, RuntimeError, KeyError, CalledProcessError) as error:
        names = ", ".join(map(str, measures))
        raise ValueError(f"ir_measures cannot compute {names} ({error})") from None
    return [(queries[int(each.query_id)], each.measure, each.value) for each in values]


MEASURES = {"AP": "AP", "nDCG": "nDCG"}


@checked
def effectiveness(
    run: pd.DataFrame,
    judgements: pd.DataFrame,
    *,
    by: Sequence[str] = ("run",),
    measures: Mapping[str, str] = MEASURES,
    tied_scores: TiedScores = "ranked",
) -> pd.DataFrame:
    """Effectiveness of every ranking: `by`, then ``query, measure, value``, sorted by measure.

    ``run``: ``query, document, score`` and the columns of `by`. ``judgements``: ``query, document,
    grade``, and those columns of `by` that judgements depend on (such as ``task``). ``by``: columns
    that with ``query`` make one ranking, such as ``run``, ``task`` or ``alpha``. ``measures``
    maps the name of each measure in the result to its name in ir_measures. ``{"MAP": "AP(rel=2)"}``
    counts grades from 2 on as relevant. Ties of scores are broken by document id, descending, as
    trec_eval does, which keeps scores in single precision; or values are means over all orders of
    the ties, up to 20,000 of a ranking, else over 1,000 drawn. Raises ValueError where a ranking
    has no judgements.

    thesis Tables 2.1 and 4.1: MAP and MRR are means of AP and RR over queries.

    Examples
    --------
    >>> documents = {"document": ["d1", "d2"], "score": [2.0, 1.0]}
    >>> run = pd.DataFrame({"run": "a", "query": "1", **documents})
    >>> judgements = pd.DataFrame({"query": ["1"], "document": ["d2"], "grade": [1]})
    >>> effectiveness(run, judgements, measures={"MRR": "RR"})
      run query measure  value
    0   a     1     MRR    0.5
    """
    label_of_measure = {parsed_measure(name): label for label, name in measures.items()}
    keys = [*by, "query"]
    rankings = run[keys].drop_duplicates(ignore_index=True)
    rankings["query_id"] = [f"{number:09d}" for number in range(len(rankings))]
    # Rankings of a query by several runs share its judgements.
    judged_keys = [key for key in keys if key in judgements]
    qrels = judgements.rename(columns={"document": "doc_id", "grade": "relevance"})
    qrels["judged_id"] = qrels.groupby(judged_keys).ngroup()
    judged_ids = qrels[[*judged_keys, "judged_id"]].drop_duplicates()
    rankings = rankings.merge(judged_ids, how="left", on=judged_keys)
    n_unjudged = rankings["judged_id"].isna().sum()
    if n_unjudged:
        raise ValueError(f"{n_unjudged} of {len(rankings)} rankings have no judgements")

    # Ordered here: ir_measures hands RR@k to a program that breaks ties by id ascending.
    ranked = run.merge(rankings)
    ranked["score"] = single_precision(ranked["score"])
    ranked = ranked.sort_values(["score", "document"], ascending=False)
    ranked = ranked.rename(columns={"document": "doc_id"})
    ranked = ranked[["query_id", "judged_id", "doc_id", "score"]]
    if tied_scores == "expected":
        ranked = _in_every_order(ranked, qrels[["judged_id", "doc_id", "relevance"]])
    ranked = ranked.assign(score=-np.arange(len(ranked), dtype=np.float64))
    rows = []
    scored = _by_query(ranked, "query_id", "score")
    grades = _by_query(qrels, "judged_id", "relevance")
    query_ids = ranked[["query_id", "judged_id"]].drop_duplicates()
    judged = {row.query_id: grades[row.judged_id] for row in query_ids.itertuples()}
    for query, measure, value in _calculated(list(label_of_measure), judged, scored):
        # After # is the number of an order of the same ranking.
        rows.append((query.partition("#")[0], label_of_measure[measure], value))
    values = pd.DataFrame(rows, columns=["query_id", "measure", "value"])
    means = values.groupby(["query_id", "measure"], as_index=False)["value"].mean()
    table = rankings.merge(means).sort_values(["measure", "query_id"])
    return table[[*keys, "measure", "value"]].reset_index(drop=True)


@checked
def run_effectiveness(
    runs: pd.DataFrame, qrels: pd.DataFrame, measures: Sequence[str]
) -> pd.DataFrame:
    """Score runs by measures of ir_measures: columns run, topic, attribute, measure, value.

    ``runs`` and ``qrels``: of `equipoise.tidy_runs` and `equipoise.tidy_qrels`. Every topic of the
    qrels is scored, 0 where a run has no ranking for it. ``attrs["seen"]`` has the counts of
    rankings, and of documents with a judgement in the ranks that the measures evaluate. Raises
    InputError where a run has none.

    >>> run = pd.DataFrame({"run": "r", "topic": "q1", "document": ["d1", "d2"], "rank": [1, 2]})
    >>> qrels = pd.DataFrame({"topic": ["q1", "q2"], "document": ["d2", "d1"], "level": 1})
    >>> run_effectiveness(run, qrels, ["RR"])[["topic", "measure", "value"]]
      topic measure  value
    0    q1      RR    0.5
    1    q2      RR    0.0
    """
    parsed = {parsed_measure(name): name for name in measures}
    cutoffs = [measure.params.get("cutoff", np.inf) for measure in parsed]
    topics = qrels["topic"].unique()
    names = {"topic": "query_id", "document": "doc_id", "level": "relevance"}
    judged = _by_query(qrels.rename(columns=names), "query_id", "relevance")
    rows, seen = [], []
    for run, rankings in runs.groupby("run", sort=False):
        # The order of the rows, which is not that of ir_measures where scores are tied.
        ranked = rankings.assign(score=-rankings["rank"].astype("float64")).rename(columns=names)
        scored = _by_query(ranked, "query_id", "score")
        for topic, measure, value in _calculated(list(parsed), judged, scored):
            rows.append((run, topic, "", parsed[measure], value))

        is_ranked = np.isin(topics, rankings["topic"].unique())
        other_topics = rankings.loc[~rankings["topic"].isin(topics), "topic"]
        read = rankings[rankings["topic"].isin(topics) & (rankings["rank"] <= max(cutoffs))]
        found = read.merge(qrels, how="left", on=["topic", "document"])
        unjudged = found.loc[found["level"].isna(), "document"]
        counts = [
            ("topics of the qrels", "a ranking", topics[~is_ranked], len(topics), other_topics),
            ("ranked documents", "a judgement", unjudged, len(found), qrels["document"]),
        ]
        for items, needed, without, whole, known in counts:
            n_found = whole - len(without)
            ids = first(without), first(known)
            seen.append(Seen(f"run {run}", items, needed, n_found, whole, *ids))
    scores = pd.DataFrame(rows, columns=["run", "topic", "attribute", "measure", "value"])
    scores.attrs["seen"] = judge(seen)
    return scores.sort_values(["run", "measure", "topic"], kind="stable", ignore_index=True)


def _by_query(table: pd.DataFrame, query: str, value: str) -> dict[Any, dict[str, float]]:
    """Return a column by query and document; ir_measures would read a table row by row."""
    codes, names = pd.factorize(table[query])
    order = np.argsort(codes, kind="stable")
    documents, numbers = (table[name].to_numpy()[order].tolist() for name in ("doc_id", value))
    begins = starts(codes[order])
    nested = {}
    for name, begin, end in zip(names, begins, [*begins[1:], len(order)], strict=True):
        nested[name] = dict(zip(documents[begin:end], numbers[begin:end], strict=True))
    return nested


def _in_every_order(ranked: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """Rankings whose ties mix relevances in all orders of these; the others stay as they are.

    ``ranked`` is sorted by descending score, and each ranking returned is in the order of its rows.
    """
    graded = ranked.merge(qrels, how="left").fillna({"relevance": 0})
    n_relevances = graded.groupby(["query_id", "score"])["relevance"].transform("nunique")
    graded["mixed"] = n_relevances > 1
    moves = graded["query_id"].isin(graded.loc[graded["mixed"], "query_id"])
    if not moves.any():
        return ranked

    # A level for each score of a mixed tie, and for each document outside of one.
    moving = graded[moves].sort_values("query_id", kind="stable")
    queries = moving.groupby("query_id")
    begins_level = ~moving["mixed"] | (moving["score"] != queries["score"].shift())
    moving = moving.assign(begins_level=begins_level, rank=queries.cumcount())
    moving["level"] = -moving.groupby("query_id")["begins_level"].cumsum()
    moving = moving.set_index(["query_id", "rank"])
    levels = moving["level"].unstack()  # noqa: PD010 - nothing to aggregate
    documents = moving["doc_id"].unstack()  # noqa: PD010
    depth = levels.shape[1]
    query, places = orders_of_ties(*tied_spans(levels), depth)

    orders = pd.DataFrame({"query_id": levels.index[query]})
    judged_ids = ranked.drop_duplicates("query_id").set_index("query_id")["judged_id"]
    ranked_orders = pd.DataFrame(
        {
            "query_id": (orders["query_id"] + "#" + orders.index.astype("str")).repeat(depth),
            "judged_id": orders["query_id"].map(judged_ids).repeat(depth),
            "doc_id": documents.to_numpy()[query[:, np.newaxis], places].ravel(),
        }
    ).dropna()
    return pd.concat([ranked[~moves.to_numpy()], ranked_orders], ignore_index=True)
