"""Ranked lists side by side in arrays: their gains, and the group memberships of their documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import Booleans, Floats, Integers
from equipoise.attributes import AttributeSet
from equipoise.problems import refuse_twice


@dataclass(frozen=True)
class RankedLists:
    """Runs over topics, cut at one rank; ranks and topics that a run does not have hold gains of 0."""

    runs: list[str]
    topics: pd.Index[Any]
    documents: pd.Index[Any]
    gains: Floats  # (runs, topics, ranks)
    present: Booleans  # (runs, topics): the run has the topic
    largest_gain: float
    rows: pd.DataFrame  # columns run, topic and rank, counted from 0, and the number of topic and document

    def members(self, table: pd.DataFrame, attribute: AttributeSet) -> tuple[Integers, Floats, Booleans]:
        """Topics of an attribute set, then memberships and who has one, shaped (runs, those topics, ranks, ...)."""
        groups = list(attribute.groups)
        if lacking := [group for group in groups if group not in table.columns]:
            raise ValueError(f"the memberships in {attribute.name} have no column for group {', '.join(lacking)}")
        refuse_twice(table, ["topic", "document"], f"the memberships in {attribute.name} have a document")
        topics = np.flatnonzero(self.topics.isin(table["topic"].unique()))
        if not len(topics):
            raise ValueError(f"no topic of the qrels has memberships in {attribute.name}")
        place = np.full(len(self.topics), -1)
        place[topics] = np.arange(len(topics))
        shape = (len(self.runs), len(topics), self.gains.shape[-1])
        members, represented = np.full((*shape, len(groups)), 1.0 / len(groups)), np.zeros(shape, dtype=np.bool_)
        found = _row_of(table, self.topics, self.documents, self.rows["number"])
        rows, found = self.rows[found >= 0], found[found >= 0]
        at = (rows["run"], place[rows["topic"]], rows["rank"])
        members[at] = table[groups].to_numpy(dtype=np.float64)[found]
        represented[at] = True
        return topics, members, represented


def _codes(values: pd.Series, index: pd.Index[Any]) -> Integers:
    """Position of each value in the index, -1 where it is not there; each distinct value is looked up once."""
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    return index.get_indexer(pd.Index(distinct))[codes].astype(np.int64)


def _row_of(table: pd.DataFrame, topics: pd.Index[Any], documents: pd.Index[Any], numbers: pd.Series) -> Integers:
    """Row of the table that has each number of topic and document, -1 where none has."""
    topic, document = _codes(table["topic"], topics), _codes(table["document"], documents)
    known = np.flatnonzero((topic >= 0) & (document >= 0))
    at = pd.Index(topic[known] * len(documents) + document[known]).get_indexer(pd.Index(numbers))
    return np.append(known, -1)[at].astype(np.int64)


def lay_out(
    runs: pd.DataFrame, qrels: pd.DataFrame, gains: Mapping[int, float], cutoff: int, order: str, unjudged: str
) -> RankedLists:
    """Lay runs (columns run, topic, document, rank, score) and qrels (topic, document, level) out in arrays."""
    run, names = pd.factorize(runs["run"], use_na_sentinel=False)
    own_topic, own_topics = pd.factorize(runs["topic"], use_na_sentinel=False)
    document, distinct = pd.factorize(runs["document"], use_na_sentinel=False)
    documents = pd.Index(distinct)
    if not pd.Index((run * len(own_topics) + own_topic) * len(documents) + document).is_unique:
        refuse_twice(runs, ["run", "topic", "document"], "a run ranks a document")
    if qrels.empty:
        raise ValueError("the qrels judge no document")
    refuse_twice(qrels, ["topic", "document"], "the qrels judge a document")
    of_level = {0: 0.0} | dict(gains)
    if unknown := sorted(set(qrels["level"].unique().tolist()) - set(of_level)):
        raise ValueError(f"no gain for level {', '.join(map(str, unknown))}; gains are given for {sorted(of_level)}")
    topics = pd.Index(sorted(qrels["topic"].unique().tolist()))
    topic = topics.get_indexer(pd.Index(own_topics))[own_topic]
    rows = pd.DataFrame({"run": run, "topic": topic, "number": topic * len(documents) + document})
    judgement = _row_of(qrels, topics, documents, rows["number"])
    rows["gain"] = np.append(qrels["level"].map(of_level).to_numpy(dtype=np.float64), of_level[0])[judgement]
    kept = topic >= 0
    present = np.zeros((len(names), len(topics)), dtype=np.bool_)
    present[run[kept], topic[kept]] = True
    if unjudged == "removed":
        kept &= judgement >= 0
    if order == "score":
        sequence = np.lexsort((-documents.argsort().argsort()[document], -runs["score"].to_numpy()))
    else:
        sequence = np.argsort(runs["rank"], kind="stable") if order == "rank" else np.arange(len(rows))
    rows = rows.iloc[sequence[kept[sequence]]]
    rows = rows.assign(rank=rows.groupby(["run", "topic"], sort=False).cumcount())
    rows = rows[rows["rank"] < cutoff]
    laid = np.zeros((*present.shape, rows["rank"].max() + 1 if len(rows) else 1))
    laid[rows["run"], rows["topic"], rows["rank"]] = rows["gain"]
    return RankedLists(list(names), topics, documents, laid, present, max(of_level.values()), rows)


def by_rank(runs: pd.DataFrame, documents: pd.Index[Any], depth: float = np.inf) -> pd.DataFrame:
    """Place of each ranked document in ``documents``, -1 where it is not there, and NaN where a list has ended.

    One row for each run and topic, in their order, and one column for each rank up to ``depth``, best first.
    """
    ordered = runs.sort_values(["run", "topic", "rank"], kind="stable")
    rank = ordered.groupby(["run", "topic"]).cumcount()
    place = documents.get_indexer(pd.Index(ordered["document"], dtype="str"))
    kept = ordered.assign(rank=rank, place=place)[rank < depth]
    return kept.pivot(index=["run", "topic"], columns="rank", values="place")  # noqa: PD010 - nothing to aggregate


def run_means(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Means over the topics, by run; one undefined topic makes a mean undefined."""
    undefined = table[columns].isna().groupby(table["run"]).any()
    return table.groupby("run", sort=True)[columns].mean().mask(undefined).reset_index()
