"""Ranked lists side by side in arrays: gains, memberships, documents by rank."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.arrays import (
    Booleans,
    Floats,
    Integers,
    by_score,
    numbered,
    places,
    ranks,
    ratio,
    starts,
)
from equipoise.attributes import AttributeSet
from equipoise.coverage import Seen, first, of_runs
from equipoise.measures.tied_scores import tied_spans
from equipoise.problems import Note, need_columns, refuse_twice

_HIGHEST_GRADE = 20
"""Levels above are years or counts, and 2^level is beyond all reason."""


@dataclass(frozen=True)
class Coverage:
    """Of how many ranked documents there is what a measure needs: by run and topic, and by run."""

    covered: Integers  # (runs, topics)
    ranked: Integers  # (runs, topics)
    seen: list[Seen]

    @property
    def shares(self) -> Floats:
        """Shaped (runs, topics + 1), the last over all topics; NaN where nothing is ranked."""
        covered = np.append(self.covered, self.covered.sum(axis=1, keepdims=True), axis=1)
        ranked = np.append(self.ranked, self.ranked.sum(axis=1, keepdims=True), axis=1)
        return ratio(covered, ranked, np.nan)


@dataclass(frozen=True)
class RankedLists:
    """Runs over topics, cut at one rank; ranks and topics that a run lacks have gains of 0."""

    runs: list[str]
    topics: pd.Index[Any]
    documents: pd.Index[Any]
    gains: Floats  # (runs, topics, ranks)
    present: Booleans  # (runs, topics): the run has the topic
    largest_gain: float
    ranked: pd.DataFrame  # numbers of run, topic and document, and rank from 0; list by list
    judged: Coverage

    def members(
        self, table: pd.DataFrame, attribute: AttributeSet
    ) -> tuple[Integers, Floats, Booleans, Coverage]:
        """Memberships in an attribute set of all that is ranked for the topics that it applies to.

        Those topics; the memberships, shaped (runs, those topics, ranks, groups); who has one,
        shaped alike without groups; and of how many documents there is one. A table without a
        column ``topic`` holds for every topic.
        """
        groups = list(attribute.groups)
        _check_memberships(table, attribute)
        ranked = self.ranked
        if "topic" in table.columns:
            topics = np.flatnonzero(self.topics.isin(table["topic"].unique()))
            if not len(topics):
                raise ValueError(f"no topic of the qrels has memberships in {attribute.name}")
            if len(topics) < len(self.topics):
                ranked = ranked[np.isin(ranked["topic"], topics)]
            table_rows = _row_of(table, self.topics, self.documents, ranked)
        else:
            topics = np.arange(len(self.topics))
            row_of_document = pd.Index(table["document"]).get_indexer(self.documents)
            table_rows = row_of_document[ranked["document"]]

        # (runs, those topics, ranks): row of the table, -1 where there is none
        rows = np.full((len(self.runs), len(topics), self.gains.shape[-1]), -1)
        place_of_topic = np.searchsorted(topics, ranked["topic"])
        rows[ranked["run"], place_of_topic, ranked["rank"]] = table_rows
        # The vector behind the last row, where -1 leads: nobody knows the group.
        unknown = np.full((1, len(groups)), 1.0 / len(groups))
        vectors = np.concatenate([table[groups].to_numpy(dtype=np.float64), unknown])
        coverage = _coverage(
            f"a membership in {attribute.name}",
            self.runs,
            len(self.topics),
            self.documents,
            ranked,
            table_rows >= 0,
            table["document"],
        )
        return topics, vectors.take(rows, axis=0), rows >= 0, coverage


def _check_memberships(table: pd.DataFrame, attribute: AttributeSet) -> None:
    absent_groups = [group for group in attribute.groups if group not in table.columns]
    if absent_groups:
        raise ValueError(
            f"the memberships in {attribute.name} have no column for group"
            f" {', '.join(absent_groups)}"
        )
    keys = ["topic", "document"] if "topic" in table.columns else ["document"]
    refuse_twice(table, keys, f"the memberships in {attribute.name} have a document")


def _coverage(
    needed: str,
    runs: Sequence[str],
    n_topics: int,
    documents: pd.Index[Any],
    ranked: pd.DataFrame,
    has_it: Booleans,
    ids_with_it: Any,
) -> Coverage:
    """Of how many ranked documents, the rows, there is what is needed.

    ``ids_with_it``: documents that have it, ranked or not.
    """
    shape = (len(runs), n_topics)
    cells = ranked["run"].to_numpy() * n_topics + ranked["topic"].to_numpy()
    n_ranked = np.bincount(cells, minlength=len(runs) * n_topics).reshape(shape)
    n_covered = np.bincount(cells[has_it], minlength=len(runs) * n_topics).reshape(shape)

    # The rows come run by run, so those of a run lie between two ends.
    without = ranked[~has_it]
    ends = np.searchsorted(without["run"], np.arange(len(runs) + 1))

    def lacking(run: int) -> Any:
        return documents[without["document"].iloc[ends[run] : ends[run + 1]]]

    seen = of_runs(
        needed,
        runs,
        n_covered.sum(axis=1),
        n_ranked.sum(axis=1),
        lacking,
        ids_with_it,
        documents,
    )
    return Coverage(n_covered, n_ranked, seen)


def _row_of(
    table: pd.DataFrame, topics: pd.Index[Any], documents: pd.Index[Any], ranked: pd.DataFrame
) -> Integers:
    """Row of the table that has the topic and document of each ranked one, -1 where none has."""
    topic = places(table["topic"], topics)
    document = places(table["document"], documents)
    rows = np.flatnonzero((topic >= 0) & (document >= 0))

    # A pair of numbers is one number, which is quick to look up.
    pairs = pd.Index(topic[rows] * len(documents) + document[rows])
    positions = pairs.get_indexer(pd.Index(ranked["topic"] * len(documents) + ranked["document"]))
    return np.append(rows, -1)[positions].astype(np.int64)


def _tell_order(ranked: pd.DataFrame, n_lists: int) -> None:
    """Say so where rows do not stand in the order of their ranks."""
    falling = (np.diff(ranked["stated rank"]) < 0) & (ranked["rank"].to_numpy()[1:] > 0)
    if falling.any():
        n_unordered = len(ranked.iloc[1:].loc[falling, ["run", "topic"]].drop_duplicates())
        warnings.warn(
            f"{n_unordered:,} of {n_lists:,} lists do not stand in the order of their ranks,"
            " and are taken as they stand (order: rank takes their ranks)",
            Note,
            stacklevel=4,
        )


def _cut(ranked: pd.DataFrame, n_topics: int, cutoff: int) -> pd.DataFrame:
    """The first ranks of each list, list by list, in a column ``rank``, from 0."""
    lists = ranked["run"].to_numpy() * n_topics + ranked["topic"].to_numpy()
    by_list = np.argsort(lists, kind="stable")
    rank = ranks(starts(lists[by_list]), len(lists))
    read = rank < cutoff
    return ranked.iloc[by_list[read]].assign(rank=rank[read])


def _exponential_gains(highest: int) -> dict[int, float]:
    """Gains 2^l - 1 of levels up to the highest, at least 2, as FairWeb has them; others are said.

    Over the largest and 1, as stop probabilities, they are those of ERR: (2^l - 1) / 2^highest.
    """
    if highest > _HIGHEST_GRADE:
        raise ValueError(
            f"the qrels have level {highest}, and levels above {_HIGHEST_GRADE} are no grades"
            " with gains of 2^level - 1: give the gain of each (gains)"
        )
    gains = {level: 2.0**level - 1 for level in range(1, max(2, highest) + 1)}
    if highest > 2:  # FairWeb's scale ends there
        pairs = ", ".join(f"{level}:{gain:g}" for level, gain in gains.items())
        warnings.warn(f"gains are 2^level - 1 ({pairs}); the option gains sets others", Note, 5)
    return gains


def _gains_by_level(
    qrels: pd.DataFrame, gains: Mapping[int, float] | Literal["exponential"]
) -> dict[int, float]:
    """The gain of each level, 0 for level 0 where none is given; the qrels are checked."""
    if qrels.empty:
        raise ValueError("the qrels judge no document")
    refuse_twice(qrels, ["topic", "document"], "the qrels judge a document")
    if isinstance(gains, str):
        gains = _exponential_gains(int(qrels["level"].max()))
    by_level = {0: 0.0} | dict(gains)
    without_gain = sorted(set(qrels["level"].unique().tolist()) - set(by_level))
    if without_gain:
        raise ValueError(
            f"no gain for level {', '.join(map(str, without_gain))};"
            f" gains are given for {sorted(by_level)}"
        )
    return by_level


def _in_order(runs: pd.DataFrame, lists: Integers, order: str) -> Integers:
    """Rows in the order in which their lists are read; ``lists``: the number of each row's list."""
    if order == "rank":
        return np.argsort(runs["rank"].to_numpy(), kind="stable")
    if order == "score":
        return by_score(lists, runs["document"], runs["score"])
    return np.arange(len(runs))


def _lists_seen(
    runs: Sequence[str], present: Booleans, topics: pd.Index[Any], run_topics: pd.Index[Any]
) -> list[Seen]:
    """For each run, of how many topics of the qrels it has a list."""
    without_qrels = first(run_topics.difference(topics, sort=False))
    seen = []
    for name, has_topic in zip(runs, present, strict=True):
        absent = first(topics[~has_topic])
        n_lists = int(has_topic.sum())
        seen.append(
            Seen(
                f"run {name}",
                "topics of the qrels",
                "a ranked list",
                n_lists,
                len(topics),
                absent,
                without_qrels,
            )
        )
    return seen


def _gains_by_rank(
    ranked: pd.DataFrame,
    judgement: Integers,
    qrels: pd.DataFrame,
    gain_of_level: Mapping[int, float],
    shape: tuple[int, ...],
) -> Floats:
    """Gains shaped (runs, topics, ranks); ``judgement``: rows of the qrels, -1 for none."""
    gain_of_row = qrels["level"].map(gain_of_level).to_numpy(dtype=np.float64)
    # Behind the last row, where -1 leads, is the gain of documents without a judgement.
    gain_of_row = np.append(gain_of_row, gain_of_level[0])
    depth = ranked["rank"].max() + 1 if len(ranked) else 1
    gains = np.zeros((*shape, depth))
    gains[ranked["run"], ranked["topic"], ranked["rank"]] = gain_of_row[judgement]
    return gains


def _numbered_rows(
    runs: pd.DataFrame, topics: pd.Index[Any], order: str
) -> tuple[pd.DataFrame, pd.Index[Any], pd.Index[Any], pd.Index[Any]]:
    """Rows of the runs with numbers for run, topic and document, in the order of reading.

    Then the runs, their own topics, and the documents. Rows of topics without qrels are left out.
    """
    run, run_names = numbered(runs["run"])
    run_topic, run_topics = numbered(runs["topic"])
    document, documents = numbered(runs["document"])
    # Texts are numbered only once: numbers of lists and documents tell whether a row comes twice.
    lists = run * len(run_topics) + run_topic
    if not pd.Index(lists * len(documents) + document).is_unique:
        refuse_twice(runs, ["run", "topic", "document"], "a run ranks a document")

    ranked = pd.DataFrame(
        {"run": run, "topic": topics.get_indexer(run_topics)[run_topic], "document": document}
    )
    if order == "file" and "rank" in runs.columns:
        ranked["stated rank"] = runs["rank"].to_numpy()
    ranked = ranked.iloc[_in_order(runs, lists, order)]
    return ranked[ranked["topic"] >= 0], run_names, run_topics, documents


def lay_out(
    runs: pd.DataFrame,
    qrels: pd.DataFrame,
    gains: Mapping[int, float] | Literal["exponential"],
    cutoff: int,
    order: str,
    unjudged: str,
) -> RankedLists:
    """Lay runs and qrels out in arrays.

    ``runs``: columns run, topic, document, rank, score. ``qrels``: topic, document, level.
    """
    gain_of_level = _gains_by_level(qrels, gains)
    topics = pd.Index(sorted(qrels["topic"].unique().tolist()))
    ranked, run_names, run_topics, documents = _numbered_rows(runs, topics, order)
    present = np.zeros((len(run_names), len(topics)), dtype=np.bool_)
    present[ranked["run"], ranked["topic"]] = True

    read = _cut(ranked, len(topics), cutoff)
    if "stated rank" in read.columns:
        _tell_order(read, int(present.sum()))
    judgement = _row_of(qrels, topics, documents, read)
    judged = _coverage(
        "a judgement",
        list(run_names),
        len(topics),
        documents,
        read,
        judgement >= 0,
        qrels["document"],
    )
    if unjudged == "removed":
        is_judged = _row_of(qrels, topics, documents, ranked) >= 0
        read = _cut(ranked[is_judged], len(topics), cutoff)
        judgement = _row_of(qrels, topics, documents, read)

    seen = _lists_seen(list(run_names), present, topics, run_topics)
    if not (qrels["level"] > 0).any():
        seen.append(Seen("the qrels", "judgements", "a level above 0", 0, len(qrels), asked=False))
    gains_by_rank = _gains_by_rank(read, judgement, qrels, gain_of_level, present.shape)
    return RankedLists(
        list(run_names),
        topics,
        documents,
        gains_by_rank,
        present,
        max(gain_of_level.values()),
        read,
        replace(judged, seen=seen + judged.seen),
    )


def by_rank(runs: pd.DataFrame, documents: pd.Index[Any], depth: float = np.inf) -> pd.DataFrame:
    """Place of each ranked document in ``documents``, a row for each run and topic, in order.

    One column for each rank up to ``depth``, best first; -1 where a document is not there, NaN
    where a list has ended.
    """
    return _laid_by_rank(runs, places(runs["document"], documents), depth)


def spans_by_rank(runs: pd.DataFrame) -> tuple[Integers, Integers]:
    """First and last rank of each rank's tie (`tied_spans`), laid out as by `by_rank`."""
    need_columns(runs, ["score"])
    return tied_spans(_laid_by_rank(runs, runs["score"].to_numpy()))


def _laid_by_rank(runs: pd.DataFrame, values: NDArray[Any], depth: float = np.inf) -> pd.DataFrame:
    ordered = runs.assign(value=values).sort_values(["run", "topic", "rank"], kind="stable")
    ordered["rank"] = ordered.groupby(["run", "topic"]).cumcount()
    read = ordered[ordered["rank"] < depth]
    return read.pivot(index=["run", "topic"], columns="rank", values="value")  # noqa: PD010 - nothing to aggregate


def with_means(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Scores by run and topic, and below them means, without a topic; NaN if any topic's is."""
    undefined = table[columns].isna().groupby(table["run"]).any()
    means = table.groupby("run")[columns].mean().mask(undefined).reset_index()
    return pd.concat([table, means.assign(topic="")], ignore_index=True)
