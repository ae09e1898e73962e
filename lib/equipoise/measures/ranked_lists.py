"""Ranked lists side by side in arrays: gains, group memberships and term exposure, and the attention of ranks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import (
    Booleans,
    Floats,
    Integers,
    each_once,
    normalised,
    numbered,
    places,
    ranks,
    ratio,
    starts,
)
from equipoise.attributes import AttributeSet
from equipoise.coverage import Seen, first, of_runs
from equipoise.declare import checked
from equipoise.measures.tied_scores import tied_spans
from equipoise.options import Attention, Base, Cutoffs, Decay
from equipoise.problems import Note, need_columns, refuse_twice


@dataclass(frozen=True)
class Coverage:
    """Of how many ranked documents there is what a measure needs: by run and topic, and told of each run."""

    found: Integers  # (runs, topics)
    whole: Integers
    seen: list[Seen]

    @property
    def shares(self) -> Floats:
        """Shaped (runs, topics + 1), the last over all topics; NaN where nothing is ranked."""
        found, whole = (
            np.append(one, one.sum(axis=1, keepdims=True), axis=1)
            for one in (self.found, self.whole)
        )
        return ratio(found, whole, np.nan)


@dataclass(frozen=True)
class RankedLists:
    """Runs over topics, cut at one rank; ranks and topics that a run does not have hold gains of 0."""

    runs: list[str]
    topics: pd.Index[Any]
    documents: pd.Index[Any]
    gains: Floats  # (runs, topics, ranks)
    present: Booleans  # (runs, topics): the run has the topic
    largest_gain: float
    rows: (
        pd.DataFrame
    )  # columns run, topic and rank, counted from 0, and the number of topic and document
    judged: Coverage

    def members(
        self, table: pd.DataFrame, attribute: AttributeSet
    ) -> tuple[Integers, Floats, Booleans, Coverage]:
        """Topics of an attribute set, then memberships and who has one, shaped (runs, those topics, ranks, ...).

        The fourth says of how many documents there is one. A table without a column ``topic`` holds
        for every topic.
        """
        groups, name = list(attribute.groups), attribute.name
        if lacking := [group for group in groups if group not in table.columns]:
            raise ValueError(
                f"the memberships in {name} have no column for group {', '.join(lacking)}"
            )
        by_topic = "topic" in table.columns
        refuse_twice(
            table,
            [*(["topic"] if by_topic else []), "document"],
            f"the memberships in {name} have a document",
        )
        named = (
            self.topics.isin(table["topic"].unique())
            if by_topic
            else np.ones(len(self.topics), dtype=np.bool_)
        )
        topics = np.flatnonzero(named)
        if not len(topics):
            raise ValueError(f"no topic of the qrels has memberships in {name}")
        place = np.full(len(self.topics), -1)
        place[topics] = np.arange(len(topics))
        shape = (len(self.runs), len(topics), self.gains.shape[-1])
        asked = self.rows if named.all() else self.rows[named[self.rows["topic"]]]
        if by_topic:
            found = _row_of(table, self.topics, self.documents, asked["number"])
        else:
            found = pd.Index(table["document"]).get_indexer(self.documents)[
                asked["number"] % len(self.documents)
            ]
        run, topic, rank = (asked[name].to_numpy() for name in ("run", "topic", "rank"))
        row = np.full(shape, -1)
        row.reshape(-1)[(run * len(topics) + place[topic]) * shape[-1] + rank] = found
        nobody = np.full((1, len(groups)), 1.0 / len(groups))  # where there is none, the last
        members = np.concatenate([table[groups].to_numpy(dtype=np.float64), nobody]).take(
            row, axis=0
        )
        whole = self.runs, len(self.topics), self.documents, asked
        return (
            topics,
            members,
            row >= 0,
            _coverage(f"a membership in {name}", *whole, found >= 0, table["document"]),
        )


def _coverage(
    needed: str,
    runs: Sequence[str],
    topics: int,
    documents: pd.Index[Any],
    rows: pd.DataFrame,
    found: Booleans,
    have: Any,
) -> Coverage:
    """Of how many ranked documents, the rows, there is what is needed; ``have``: documents that have it anywhere."""
    run, number = (
        rows["run"].to_numpy(),
        rows["number"].to_numpy(),
    )  # list by list, and so in the order of the runs
    without = np.flatnonzero(~found)
    ends = np.searchsorted(run[without], np.arange(len(runs) + 1))

    def lacking(one: int) -> Any:
        return documents[number[without[ends[one] : ends[one + 1]][:1000]] % len(documents)]

    cell = run * topics + rows["topic"].to_numpy()
    some, every = (
        np.bincount(cell[which], minlength=len(runs) * topics).reshape(len(runs), topics)
        for which in (found, slice(None))
    )
    return Coverage(
        some,
        every,
        of_runs(needed, runs, some.sum(axis=1), every.sum(axis=1), lacking, have, documents),
    )


def _row_of(
    table: pd.DataFrame, topics: pd.Index[Any], documents: pd.Index[Any], numbers: Any
) -> Integers:
    """Row of the table that has each number of topic and document, -1 where none has."""
    topic, document = places(table["topic"], topics), places(table["document"], documents)
    known = np.flatnonzero((topic >= 0) & (document >= 0))
    own, size = topic[known] * len(documents) + document[known], len(topics) * len(documents)
    if size > 4 * len(numbers):
        return np.append(known, -1)[pd.Index(own).get_indexer(pd.Index(numbers))].astype(np.int64)
    row = np.full(size, -1)  # a table of all of them is small
    row[own] = known
    return row[numbers]


def _tell_order(rank: NDArray[Any], lists: Integers, cutoff: int) -> None:
    """Say so where rows do not stand in the order of their ranks."""
    at, place = _in_lists(lists, cutoff)
    falling = (np.diff(rank[at]) < 0) & (place[1:] > 0)
    if falling.any():
        count, whole = len(np.unique(lists[at][1:][falling])), len(np.unique(lists))
        said = f"{count:,} of {whole:,} lists do not stand in the order of their ranks, and are taken as they stand"
        warnings.warn(f"{said} (order: rank takes their ranks)", Note, stacklevel=4)


def _in_lists(lists: Integers, cutoff: int) -> tuple[Integers, Integers]:
    """Rows of the first ranks of each list, list by list, and those ranks, from 0; ``lists`` has the list of each."""
    at = np.arange(len(lists))
    if (lists[1:] < lists[:-1]).any():
        at = np.argsort(lists, kind="stable")
        lists = lists[at]
    rank = ranks(starts(lists), len(at))
    if rank.max(initial=0) < cutoff:
        return at, rank
    first = rank < cutoff
    return at[first], rank[first]


def lay_out(
    runs: pd.DataFrame,
    qrels: pd.DataFrame,
    gains: Mapping[int, float],
    cutoff: int,
    order: str,
    unjudged: str,
) -> RankedLists:
    """Lay runs (columns run, topic, document, rank, score) and qrels (topic, document, level) out in arrays."""
    run, names = numbered(runs["run"])
    own_topic, own_topics = numbered(runs["topic"])
    if qrels.empty:
        raise ValueError("the qrels judge no document")
    refuse_twice(qrels, ["topic", "document"], "the qrels judge a document")
    of_level = {0: 0.0} | dict(gains)
    if unknown := sorted(set(qrels["level"].unique().tolist()) - set(of_level)):
        raise ValueError(
            f"no gain for level {', '.join(map(str, unknown))}; gains are given for {sorted(of_level)}"
        )
    topics = pd.Index(sorted(qrels["topic"].unique().tolist()))
    topic = topics.get_indexer(own_topics)[own_topic]
    row = np.flatnonzero(topic >= 0)
    if order == "rank":
        row = row[np.argsort(runs["rank"].to_numpy()[row], kind="stable")]
    rank, cut = np.zeros(0, dtype=np.int64), order != "score" and unjudged != "removed"
    if cut:  # nobody reads the rest
        at, rank = _in_lists(run[row] * len(topics) + topic[row], cutoff)
        row = row[at]
    every = np.array_equal(
        row, np.arange(len(runs))
    )  # to take all of the texts would make each anew
    document, documents = numbered(runs["document"] if every else runs["document"].iloc[row])
    listed, cells = run, len(names) * len(topics) * len(documents)
    run, topic = run[row], topic[row]
    number = topic * len(documents) + document
    dense = every and cells <= 4 * len(row)  # so that each document of each list can be counted
    once = dense and np.bincount(run * len(topics) * len(documents) + number, minlength=1).max() < 2
    if not once and not each_once(pd.Series(listed), pd.Series(own_topic), runs["document"]):
        refuse_twice(runs, ["run", "topic", "document"], "a run ranks a document")
    present = np.zeros((len(names), len(topics)), dtype=np.bool_)
    present[run, topic] = True
    if order == "score":
        best = np.lexsort(
            (-documents.argsort().argsort()[document], -runs["score"].to_numpy()[row])
        )
        run, topic, number = run[best], topic[best], number[best]

    def first_ranks() -> pd.DataFrame:
        at, first = (slice(None), rank) if cut else _in_lists(run * len(topics) + topic, cutoff)
        columns = {"run": run[at], "topic": topic[at], "rank": first, "number": number[at]}
        return pd.DataFrame(columns, copy=False)

    rows = first_ranks()
    if order == "file" and "rank" in runs.columns:
        _tell_order(runs["rank"].to_numpy()[row], run * len(topics) + topic, cutoff)
    judgement = _row_of(qrels, topics, documents, rows["number"])
    judged = _coverage(
        "a judgement", names, len(topics), documents, rows, judgement >= 0, qrels["document"]
    )
    if unjudged == "removed":
        those = _row_of(qrels, topics, documents, number) >= 0
        run, topic, number = run[those], topic[those], number[those]
        rows = first_ranks()
        judgement = _row_of(qrels, topics, documents, rows["number"])
    rows["gain"] = np.append(qrels["level"].map(of_level).to_numpy(dtype=np.float64), of_level[0])[
        judgement
    ]
    lists = [
        Seen(
            f"run {name}",
            "topics of the qrels",
            "a ranked list",
            int(there.sum()),
            len(topics),
            first(topics[~there]),
            first(own_topics.difference(topics, sort=False)),
        )
        for name, there in zip(names, present, strict=True)
    ]
    if not (qrels["level"] > 0).any():
        lists.append(Seen("the qrels", "judgements", "a level above 0", 0, len(qrels), asked=False))
    laid = np.zeros((*present.shape, rows["rank"].max() + 1 if len(rows) else 1))
    cell = (rows["run"].to_numpy() * len(topics) + rows["topic"].to_numpy()) * laid.shape[
        -1
    ] + rows["rank"].to_numpy()
    laid.reshape(-1)[cell] = rows["gain"].to_numpy()
    return RankedLists(
        list(names),
        topics,
        documents,
        laid,
        present,
        max(of_level.values()),
        rows,
        replace(judged, seen=lists + judged.seen),
    )


def by_rank(runs: pd.DataFrame, documents: pd.Index[Any], depth: float = np.inf) -> pd.DataFrame:
    """Place of each ranked document in ``documents``, -1 where it is not there, and NaN where a list has ended.

    One row for each run and topic, in their order, and one column for each rank up to ``depth``,
    best first.
    """
    return _laid_by_rank(runs, places(runs["document"], documents), depth)


def spans_by_rank(runs: pd.DataFrame) -> tuple[Integers, Integers]:
    """First and last rank of each rank's tie (`tied_spans`), in the rows and columns of `by_rank`."""
    need_columns(runs, ["score"])
    return tied_spans(_laid_by_rank(runs, runs["score"].to_numpy()))


def _laid_by_rank(runs: pd.DataFrame, values: NDArray[Any], depth: float = np.inf) -> pd.DataFrame:
    ordered = runs.assign(value=values).sort_values(["run", "topic", "rank"], kind="stable")
    ordered["rank"] = ordered.groupby(["run", "topic"]).cumcount()
    kept = ordered[ordered["rank"] < depth]
    return kept.pivot(index=["run", "topic"], columns="rank", values="value")  # noqa: PD010 - nothing to aggregate


def with_means(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Scores by run and topic, and below them their means, without a topic; one undefined topic makes one undefined."""
    undefined = table[columns].isna().groupby(table["run"]).any()
    means = table.groupby("run")[columns].mean().mask(undefined).reset_index()
    return pd.concat([table, means.assign(topic="")], ignore_index=True)


@checked
def attention_weights(
    ranks: int, attention: Attention = "log", *, base: Base = 2.0, persistence: Decay = 0.9
) -> Floats:
    r"""Weight of each rank: the attention it gets (thesis Eqs. 4.2, 4.4 and 4.8).

    .. math:: v_r = 1 / \log_b(r + 1) \quad\text{or}\quad v_r = \gamma^{r-1} \quad\text{or}\quad v_r
    = 1

    The paper weighs by the logarithm and leaves its base open; the others are common choices of
    AWRF.

    Examples
    --------
    >>> attention_weights(3).round(4)
    array([1.    , 0.6309, 0.5   ])
    """
    if attention == "log":
        return np.log(base) / np.log(np.arange(2, ranks + 2))
    return (
        persistence ** np.arange(ranks, dtype=np.float64)
        if attention == "geometric"
        else np.ones(ranks)
    )


def wanted_shares(target: ArrayLike | None, groups: int) -> Floats:
    """The target as a distribution over so many groups; equal shares where there is none."""
    return np.full(groups, 1 / groups) if target is None else normalised(target, groups)


def reached(
    values: ArrayLike, cutoffs: ArrayLike, present: ArrayLike | None, axis: int = -1
) -> tuple[NDArray[Any], Integers, Booleans]:
    """The values of the ranks that a cut-off can reach, the cut-offs, and which of those ranks hold a document.

    ``axis``: that of the ranks, the last one or the one before it.
    """
    at, whole = np.asarray(cutoffs, dtype=np.int64), np.asarray(values)
    if at.size == 0:
        raise ValueError("no cut-offs are given")
    shape, reach = whole.shape[: whole.ndim + axis + 1], slice(int(at.max()))
    held = (
        np.broadcast_to(np.True_, shape) if present is None else np.asarray(present, dtype=np.bool_)
    )
    if held.shape != shape:
        raise ValueError(f"present is shaped {held.shape}, wanted one value for each rank, {shape}")
    return whole[..., reach] if axis == -1 else whole[..., reach, :], at, held[..., reach]


def sums_at(per_rank: Floats, cutoffs: Integers, axis: int = -1) -> Floats:
    """Sum over the ranks up to each cut-off; ranks beyond the end of the list add nothing."""
    total = np.cumsum(np.insert(per_rank, 0, 0.0, axis=axis), axis=axis)
    return np.take(total, np.minimum(cutoffs, per_rank.shape[axis]), axis=axis)


@checked
def term_exposure(
    counts: ArrayLike,
    lengths: ArrayLike,
    cutoffs: Cutoffs,
    *,
    present: ArrayLike | None = None,
    base: Base = 2.0,
) -> Floats:
    r"""Exposure of terms (or, summed over a group's terms, of groups) in a ranked list (thesis Eqs. 4.7 and 4.8).

    .. math:: TE@k(t, q) = \sum_{r=1}^{k} \frac{tf(t, d_q^r) / |d_q^r|}{\log_b(r + 1)}

    ``counts`` (shaped (..., ranks, terms)): occurrences of each term in each ranked document;
    magnitudes, shaped (..., ranks, groups), give the exposure of groups, since the sum over a
    group's terms comes first or last alike. ``lengths`` (shaped (..., ranks)): terms of the
    document, \|d\|; an empty document exposes nothing. ``present`` (shaped (..., ranks)): which
    ranks hold a document; all where not given. Returns ndarray, shaped (..., cutoffs, terms); the
    base cancels in every measure made of exposures.
    """
    if np.shape(lengths) != np.shape(counts)[:-1]:
        raise ValueError(
            f"lengths are shaped {np.shape(lengths)}, wanted one for each rank, {np.shape(counts)[:-1]}"
        )
    size, at, held = reached(lengths, cutoffs, present)
    weights = ratio(attention_weights(size.shape[-1], base=base) * held, size, 0.0)
    return sums_at(
        np.asarray(counts)[..., : size.shape[-1], :] * weights[..., np.newaxis], at, axis=-2
    )
