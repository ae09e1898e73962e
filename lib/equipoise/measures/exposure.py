r"""Exposure over relevance: which groups a ranking is unfair to.

A ranking gives a document at rank r the exposure 1 / log2(r + 1). A ranker that treats all groups
alike gives relevant documents of one level and topic, on average, the same exposure. So what a
group receives is compared with what it would receive if the exposure of these documents were spread
evenly over them. Nonrelevant documents do not count: neither the size of a group nor its share of
the nonrelevant documents changes the measure.

References
----------
Singh, A., Joachims, T. (2018): Fairness of Exposure in Rankings, KDD 2018: exposure in proportion
to relevance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, Integers, ratio
from equipoise.attributes import AttributeSet
from equipoise.coverage import Seen, first, judge
from equipoise.declared import measure
from equipoise.errors import refuse_twice
from equipoise.measures.group_fairness import need_same_sets, shares_by_group
from equipoise.options import Cutoff, Level, MeanIntervals, Resamples, Seed
from equipoise.statistics.intervals import percentile_interval, resampled_ratios
from equipoise.statistics.unknown import tipping_shares, unless

_MOST_SENTENCES = 20
FEWEST_TOPICS = 6
"""Topics that an interval needs: with fewer, resampled topics repeat too few distinct samples."""


def exposures(rank: Floats, cutoff: int) -> Floats:
    """Exposure of documents by their ranks, shaped alike; 0 without a rank (NaN) or beyond.

    >>> exposures(np.array([1, 3, 9, np.nan]), 5)
    array([1. , 0.5, 0. , 0. ])
    """
    is_read = rank <= cutoff
    return np.where(is_read, 1 / np.log2(np.where(is_read, rank, 1) + 1), 0.0)


def spread_evenly(exposure: Floats, cases: Integers) -> Floats:
    """Mean exposure of the documents of each case (a level of a topic), for each document."""
    return (np.bincount(cases, exposure) / np.bincount(cases))[cases]


@measure(
    "Exposure over relevance",
    family="Ranked lists: group fairness and relevance",
    range="from 0, no bound",
    ideal="1",
    direction="neither",
    sources=("singh2018",),
    names={"exposure-over-relevance": None},
)
def exposure_over_relevance(
    runs: pd.DataFrame,
    qrels: pd.DataFrame,
    memberships: Mapping[str, pd.DataFrame],
    attributes: Mapping[str, AttributeSet],
    *,
    cutoff: Cutoff = 20,
    level: Level = 0.95,
    mean_intervals: MeanIntervals = "marginal",
    resamples: Resamples = 9999,
    seed: Seed = 0,
) -> pd.DataFrame:
    r"""Compare the exposure of each group with its share of the relevant documents.

    .. math:: \frac{\sum_q \sum_{d \in R_q} v(d)\, p_g(d)}
        {\sum_q \sum_{d \in R_q} \bar v_q(l_d)\, p_g(d)}

    - :math:`q, R_q`: a topic, and its relevant documents, ranked or not
    - :math:`v(d)`: exposure of a document, 1 / log2(rank + 1); 0 beyond the cutoff
    - :math:`p_g(d)`: membership of the document in group g
    - :math:`\bar v_q(l_d)`: mean exposure of the relevant documents of the topic that have the
      level of d

    Parameters
    ----------
    runs, qrels, memberships, attributes
        As `gfr_table` takes them; the targets of the attribute sets are not used.
        `equipoise.exposure_over_relevance` takes the inputs of `equipoise.gfr`.

    Returns
    -------
    DataFrame, columns run, attribute, group, measure, value, low, high, share, tipping_low,
    tipping_high, left_out, seen
        ``low, high``: percentile interval over resampled topics, NaN with fewer than 6 topics.
        ``share``: of the relevant
        documents whose group is known, those of the group. ``seen``: the share of the relevant
        documents whose group is known; the others are left out. NaN for a group without exposed or
        relevant documents. ``tipping_low, tipping_high``: below and above which share of the
        relevant documents of unknown group, were they of this one, the interval would no longer
        exclude 1; NaN where no share does. ``left_out``: topics of which no relevant document has a
        known group.

    Raises
    ------
    InputError
        If no relevant document has a membership in an attribute set, or a run ranks none of them.

    Notes
    -----
    Singh and Joachims (2018), with the exposure of relevant documents alone. For one level it is
    the group's share of their exposure over its share of these documents.

    Examples
    --------
    >>> import equipoise
    >>> run = {"q1": {"d1": 4.0, "d2": 3.0, "d3": 2.0}}
    >>> qrels, groups = {"q1": {"d1": 1, "d3": 1}}, {"d1": "old", "d2": "old", "d3": "new"}
    >>> table = equipoise.exposure_over_relevance(run, qrels, {"age": groups})
    >>> table[["group", "value", "share"]].round(4)
      group   value  share
    0   new  0.6667    0.5
    1   old  1.3333    0.5
    """
    need_same_sets(memberships, attributes)
    refuse_twice(qrels, ["topic", "document"], "the qrels judge a document")
    refuse_twice(runs, ["run", "topic", "document"], "a run ranks a document")
    # Topics are resampled by position, which must not depend on the order of the rows.
    relevant = qrels[qrels["level"] > 0].sort_values(["topic", "document"])
    run_names = list(runs["run"].unique())
    n_intervals = len(run_names) * sum(len(attribute.groups) for attribute in attributes.values())
    if mean_intervals == "simultaneous":
        level = 1 - (1 - level) / n_intervals

    counts = [Seen("the qrels", "judgements", "a level above 0", len(relevant), len(qrels))]
    parts, seen = [], judge(counts)
    for name, attribute in attributes.items():
        table = memberships[name]
        keys = ["topic", "document"] if "topic" in table.columns else ["document"]
        groups = list(attribute.groups)
        joined = relevant.merge(table[[*keys, *groups]], how="left", on=keys)
        is_known = joined[groups[0]].notna()
        known = joined[is_known].reset_index(drop=True)
        ids = first(joined.loc[~is_known, "document"]), first(table["document"])
        needed, whole = f"a membership in {name}", len(relevant)
        seen.append(Seen("the qrels", "relevant documents", needed, len(known), whole, *ids))
        n_lost = relevant["topic"].nunique() - known["topic"].nunique()
        joined = joined[joined["topic"].isin(known["topic"])].reset_index(drop=True)
        for run in run_names:
            ranked = runs.loc[runs["run"] == run, ["topic", "document", "rank"]]
            rank = joined.merge(ranked, how="left", on=["topic", "document"])["rank"]
            documents = joined.assign(exposure=exposures(rank.to_numpy(dtype=np.float64), cutoff))
            items, needed = f"relevant documents with a {name}", f"one of the first {cutoff} ranks"
            ranks = documents.loc[documents[groups[0]].notna()]
            is_ranked = ranks["exposure"] > 0
            ids = first(ranks.loc[~is_ranked, "document"]), ()
            seen.append(Seen(f"run {run}", items, needed, int(is_ranked.sum()), len(known), *ids))
            part = _rows_of_groups(documents, groups, level, resamples, seed)
            part = part.assign(run=run, attribute=name, left_out=n_lost)
            parts.append(part.assign(seen=len(known) / max(whole, 1)))
    columns = ["run", "attribute", "group", "measure", "value", "low", "high", "share"]
    columns += ["tipping_low", "tipping_high", "left_out", "seen"]
    table = pd.concat(parts, ignore_index=True)[columns]
    table.attrs["seen"] = judge(seen)
    return table


def _rows_of_groups(
    documents: pd.DataFrame, groups: list[str], level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Return a row per group, from relevant documents with exposures and memberships."""
    exposure = documents["exposure"].to_numpy()
    topic, topics = pd.factorize(documents["topic"])
    is_known = documents[groups[0]].notna().to_numpy()
    members = documents.loc[is_known, groups].to_numpy(dtype=np.float64)
    level_of_topic = documents.groupby(["topic", "level"]).ngroup().to_numpy()
    of_known = topic[is_known], len(topics)
    even = spread_evenly(exposure[is_known], pd.factorize(level_of_topic[is_known])[0])
    gap = exposure - spread_evenly(exposure, level_of_topic)
    # all shaped (topics, groups)
    received = shares_by_group(exposure[is_known], members, *of_known, mean=False)
    expected = shares_by_group(even, members, *of_known, mean=False)
    gaps = shares_by_group(gap[is_known], members, *of_known, mean=False)

    def percentiles(numerators: Floats, denominators: Floats) -> Floats:
        samples = resampled_ratios(numerators, denominators, seed, resamples)
        return np.array([percentile_interval(sample, level) for sample in samples.T])

    ends, tipping = np.full((2, len(groups), 2), np.nan)
    shares = members.mean(axis=0) if len(members) else np.full(len(groups), np.nan)
    if len(topics) >= FEWEST_TOPICS:
        ends = percentiles(received, expected)
        # A ratio is below 1 where the sum of these gaps is below 0.
        unknown = topic[~is_known], gap[~is_known]
        ones = np.ones((len(topics), 1))
        for place in np.flatnonzero((ends[:, 0] > 1) | (ends[:, 1] < 1)):
            tipping[place] = tipping_shares(
                *(gaps[:, place], *unknown, shares[place]),
                lambda columns: percentiles(columns, ones),
                is_above=ends[place, 0] > 1,
            )
    rows: dict[str, Any] = {"group": groups, "measure": "exposure-over-relevance"}
    rows["value"] = ratio(received.sum(axis=0), expected.sum(axis=0), np.nan)
    rows |= {"low": ends[:, 0], "high": ends[:, 1], "share": shares}
    return pd.DataFrame(rows | {"tipping_low": tipping[:, 0], "tipping_high": tipping[:, 1]})


def exposure_verdicts(
    table: pd.DataFrame,
    *,
    level: Level = 0.95,
    of: str = "relevant share",
    documents: str = "relevant documents",
) -> list[str]:
    """Say who is unfair to whom: a sentence for each group that a run treats differently.

    ``table``: of `exposure_over_relevance` at this level, the least exposure first. ``of``: what 1
    stands for, among which ``documents``.
    """
    sentences = []
    for attribute, rows in table.groupby("attribute", sort=False):
        tested = rows[rows["low"].notna()]
        is_unfair = (tested["high"] < 1) | (tested["low"] > 1)
        unfair = tested[is_unfair].sort_values("value", kind="stable")
        for row in unfair.head(_MOST_SENTENCES).itertuples():
            side = "under" if row.value < 1 else "over"
            tipping = ""
            if row.seen < 1:
                what = f"documents of unknown {attribute} are {row.group}"
                points = row.tipping_low, row.tipping_high
                tipping = unless(*points, what, row.share, "the known")
            sentences.append(
                f"{row.run}: {row.group} is {side}-exposed, {row.value:.2f} of its {of}"
                f" [{row.low:.2f}, {row.high:.2f}]{tipping}"
            )
        if len(unfair) > _MOST_SENTENCES:
            sentences.append(f"{attribute}: {len(unfair) - _MOST_SENTENCES} more, of more exposure")
        # Rounded down: 99.6% are not all.
        percent = math.floor(100 * rows["seen"].min() + 1e-9)
        n_lost = rows["left_out"].max()
        lost = f"; {n_lost} topics of which none is known are left out" if n_lost else ""
        sentences.append(
            f"{attribute}: {is_unfair.sum()} of {len(tested)} pairs of run and group differ"
            f" significantly from 1, {(1 - level) * len(tested):.1f} expected by chance; groups of"
            f" {percent}% of the {documents} are known{lost}"
        )
    return sentences
