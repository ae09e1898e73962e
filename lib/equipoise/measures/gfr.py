r"""GFR (Group Fairness and Relevance) of ranked lists.

A population of users reads a ranking from the top; some leave at each rank. Users who leave at rank
k have the utility of the top k documents and have seen a distribution over groups. GFR is the
expectation of both:

.. math:: GFR(L) = \sum_{k=1}^{|L|} Decay(L, k) \Bigl( w_0 Utility(L, k) + \sum_{m=1}^{M} w_m
DistrSim^m(L, k) \Bigr)

`stopping` is the decay of ERR: users leave where a document satisfies them. `reciprocal_rank` and
`rank_biased_utility` are the utilities of ERR and iRBU. `gfr_table` and `gfr_clusters` take and
return tidy tables. With all weight on the utility, GFR is NCU (normalised cumulative utility): ERR
and iRBU themselves.

References
----------
gfrc: Sakai, T. (2023): Fairness-based Evaluation of Conversational Search: A Pilot Study. EVIA
2023, Eq. 1.

Sakai, T., Kim, J. Y., Kang, I. (2023): A Versatile Framework for Evaluating Ranked Lists in Terms
of Group Fairness and Relevance. ACM TOIS 42(1), doi:10.1145/3589763.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise import options
from equipoise.arrays import Booleans, Floats, Integers, numbered, places, ranks, ratio, starts
from equipoise.attributes import AttributeSet
from equipoise.coverage import Seen, first, judge, runs_seen
from equipoise.declared import checked, measure
from equipoise.divergences import DIVERGENCES, distribution_similarity
from equipoise.errors import listed, refuse_twice
from equipoise.measures.group_fairness import (
    UTILITY,
    each_weight,
    need_same_sets,
    shares_by_group,
    table_of_scores,
)
from equipoise.statistics.unknown import GroupExposure

Utility = Callable[[Floats], Floats]
"""From gains shaped (..., ranks) to the utility for those who leave at each rank; it broadcasts."""

_FAMILY = "Ranked lists: group fairness and relevance"
_measure = partial(
    measure, family=_FAMILY, range="0 to 1", ideal="close to 1", direction="higher is better"
)


def stopping(gains: ArrayLike, max_gain: float) -> Floats:
    r"""Share of the users that leaves at each rank, as ERR has it.

    .. math:: Decay(L, k) = p_k \prod_{j < k} (1 - p_j), \quad p_k = \frac{g_k}{g_{max} + 1}

    ``gains``, shaped (..., ranks), are 0 for nonrelevant documents; ``max_gain`` is the largest
    there is. The shares are shaped alike and sum to less than 1, for some users leave with nothing.
    The decay in gfrc Eq. 1; Chapelle et al. (2009), with the stop probability of the NTCIR
    evaluation programs.
    """
    gain = np.asarray(gains, dtype=np.float64)
    if not ((gain >= 0) & (gain <= max_gain)).all():
        raise ValueError(f"gains must lie between 0 and max_gain = {max_gain:g}")
    stop = gain / (max_gain + 1)
    still_reading = np.cumprod(1 - stop, axis=-1)
    # Everybody reads the first rank; the others are read by those who did not stop before.
    everybody = np.ones_like(still_reading[..., :1])
    return stop * np.concatenate([everybody, still_reading[..., :-1]], axis=-1)


def reciprocal_rank(gains: ArrayLike) -> Floats:
    """The utility of ERR (Chapelle et al., 2009), shaped (ranks,): 1/k for those who read k."""
    return np.reciprocal(np.arange(1, np.shape(gains)[-1] + 1, dtype=np.float64))


def rank_biased_utility(gains: ArrayLike, phi: float = 0.99) -> Floats:
    """The utility of iRBU (intentwise rank-biased utility), shaped (ranks,): phi^k at rank k.

    Sakai, Kim and Kang (2023).
    """
    return np.power(phi, np.arange(1, np.shape(gains)[-1] + 1, dtype=np.float64))


UTILITIES: Mapping[str, Utility] = {"ERR": reciprocal_rank, "iRBU": rank_biased_utility}
"""The utilities of the campaign by the name of their NCU measure."""

_SIMILARITIES: options.Similarities = {"nominal": ("jsd",), "ordinal": ("nmd", "rnod")}


def achieved_distributions(memberships: ArrayLike, represented: ArrayLike | None = None) -> Floats:
    r"""Mean group membership of the documents from rank 1 to each rank.

    .. math:: D(L, k)_i = \frac1k \sum_{r=1}^{k} p_i(d_r)

    ``memberships`` are shaped (..., ranks, groups), as is what is returned; ``represented``, shaped
    (..., ranks), are the documents that count, by default all. Before the first of them the
    distribution is uniform. As in gfrc Eq. 1 and the campaign's evaluation program.
    """
    members = np.asarray(memberships, dtype=np.float64)
    if represented is None:
        sums = np.cumsum(members, axis=-2)
        sums /= np.arange(1, members.shape[-2] + 1)[:, np.newaxis]
        return sums
    counted = np.broadcast_to(np.asarray(represented, dtype=np.bool_), members.shape[:-1])
    counted = counted[..., np.newaxis]
    sums = np.cumsum(np.where(counted, members, 0.0), axis=-2)
    n_counted = np.cumsum(counted, axis=-2)
    return ratio(sums, n_counted, 1.0 / members.shape[-1])


def _similarities(
    leaving: Booleans, achieved: Floats, target: ArrayLike, divergence: str
) -> Floats:
    """DistrSim, computed only where somebody leaves; 0 elsewhere."""
    # Nobody leaves at most ranks; their DistrSim would be multiplied by 0.
    similarities = np.zeros(leaving.shape)
    similarities[leaving] = distribution_similarity(achieved[leaving], target, divergence)
    return similarities


@_measure("GFR", sources=("gfrc", "sakai2023"))
def gfr(
    components: ArrayLike,
    weights: ArrayLike | None = None,
    decimals: options.Decimals | None = None,
) -> Floats:
    r"""Combine expected utility and expected DistrSim into GFR.

    .. math:: GFR(L) = \sum_{m=0}^{M} w_m C_m(L), \quad \sum_m w_m = 1

    - :math:`L`: a ranked list
    - :math:`C_m(L)`: expected utility (m = 0), and expected DistrSim of attribute set m
    - :math:`w_m`: weight of that part; they sum to 1
    - :math:`M`: number of attribute sets

    Parameters
    ----------
    components : array_like, shaped (..., 1 + attribute sets)
        Utility first (see `gfr_components`).
    weights : array_like, shaped (..., 1 + attribute sets), optional
        Non-negative, broadcast; each vector is normalised to sum to 1. The default weighs all
        alike. (1, 0, ..., 0) gives NCU.

    Returns
    -------
    ndarray, shaped (...)

    Raises
    ------
    ValueError
        If weights and components differ in number, a weight is negative, or all are 0.

    Notes
    -----
    gfrc Eq. 1, the sum over ranks taken inwards.

    Examples
    --------
    >>> gfr([0.75, 0.375])
    np.float64(0.5625)
    >>> gfr([0.75, 0.375], weights=[1, 0])
    np.float64(0.75)
    >>> gfr([1 / 3, 2 / 3], decimals=2)
    np.float64(0.5)
    """
    terms = np.asarray(components, dtype=np.float64)
    if weights is None:
        weigh = np.ones(terms.shape[-1])
    else:
        weigh = np.asarray(weights, dtype=np.float64)
    if weigh.shape[-1:] != terms.shape[-1:]:
        raise ValueError(
            f"{terms.shape[-1]} components need as many weights, found {weigh.shape[-1:]}"
        )
    with np.errstate(over="ignore"):
        total = weigh.sum(axis=-1, keepdims=True)
    if not ((weigh >= 0).all() and (total > 0).all() and np.isfinite(total).all()):
        raise ValueError("weights must be non-negative and not all 0, and their sum a number")
    if decimals is not None:
        # Rounded as text, like programs that combine the scores in output files.
        terms = np.char.mod(f"%.{decimals}f", terms).astype(np.float64)
    return (terms * (weigh / total)).sum(axis=-1)


# --- rankings in arrays ---------------------------------------------------------------------------

_HIGHEST_GRADE = 20
"""Levels above are years or counts, and 2^level is no gain."""


def _gains_by_level(qrels: pd.DataFrame, gains: Mapping[int, float] | None) -> dict[int, float]:
    """The gain of each level; by default 2^l - 1 up to the highest, at least 2."""
    levels = set(qrels["level"].unique().tolist())
    if gains is None:
        highest = max(2, *levels)
        if highest > _HIGHEST_GRADE:
            raise ValueError(f"gains must be given for levels such as {highest}")
        gains = {level: 2.0**level - 1 for level in range(1, highest + 1)}
    without_gain = sorted(levels - set(gains) - {0})
    if without_gain:
        raise ValueError(
            f"gains: the gain of level {listed(without_gain)} of the qrels is missing, got gains "
            f"of levels {listed(sorted(gains))}"
        )
    return {0: 0.0, **gains}


@dataclass(frozen=True)
class _Rankings:
    """Runs over the topics of the qrels, cut at one rank.

    ``ranked`` has the numbers of run, topic and document, and rank from 0, ranking by ranking.
    ``gains`` are 0 beyond the end of a ranking.
    """

    runs: list[str]
    topics: pd.Index[Any]
    documents: pd.Index[Any]
    ranked: pd.DataFrame
    gains: Floats  # shape (runs, topics, ranks)
    largest_gain: float

    def seen(
        self, needed: str, ranked: pd.DataFrame, has_it: Booleans, ids: pd.Series
    ) -> tuple[list[Seen], Floats]:
        """Of how many ranked documents there is what is needed: by run, and as shares.

        ``ids`` are those of the documents that have it. The shares are shaped (runs, topics + 1),
        the last over all topics; NaN where nothing is ranked.
        """
        shape = len(self.runs), len(self.topics)
        cells = ranked["run"].to_numpy() * shape[1] + ranked["topic"].to_numpy()
        n_ranked = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        n_with = np.bincount(cells[has_it], minlength=shape[0] * shape[1]).reshape(shape)
        without = ranked[~has_it]

        def lacking(run: int) -> Any:
            return self.documents[without.loc[without["run"] == run, "document"].iloc[:1000]]

        whole, found = n_ranked.sum(axis=1), n_with.sum(axis=1)
        counts = runs_seen(needed, self.runs, found, whole, lacking, ids, self.documents)
        shares = ratio(np.column_stack([n_with, found]), np.column_stack([n_ranked, whole]), np.nan)
        return counts, shares


def _row_of(
    table: pd.DataFrame, topics: pd.Index[Any], documents: pd.Index[Any], ranked: pd.DataFrame
) -> Integers:
    """Row of the table that has the topic and document of each ranked one, -1 where none has.

    A table without a column topic is for all topics.
    """
    keys, ranked_keys = places(table["document"], documents), ranked["document"]
    if "topic" in table.columns:
        # A pair of numbers is one number, which is quick to look up.
        topic = places(table["topic"], topics)
        keys = np.where((topic < 0) | (keys < 0), -1, topic * len(documents) + keys)
        ranked_keys = ranked["topic"] * len(documents) + ranked_keys
    rows = np.flatnonzero(keys >= 0)
    key_of_row = pd.Index(keys[rows])
    if not key_of_row.is_unique:
        columns = [column for column in ("topic", "document") if column in table.columns]
        refuse_twice(table, columns, "a table has a document")
    positions = key_of_row.get_indexer(pd.Index(ranked_keys))
    return np.append(rows, -1)[positions].astype(np.int64)


def _cut(ranked: pd.DataFrame, n_topics: int, cutoff: int) -> pd.DataFrame:
    """The first ranks of each ranking, ranking by ranking, in a column ``rank``, from 0."""
    lists = ranked["run"].to_numpy() * n_topics + ranked["topic"].to_numpy()
    by_list = np.argsort(lists, kind="stable")
    rank = ranks(starts(lists[by_list]), len(lists))
    return ranked.iloc[by_list[rank < cutoff]].assign(rank=rank[rank < cutoff])


def _rankings(
    runs: pd.DataFrame,
    qrels: pd.DataFrame,
    gains: Mapping[int, float] | None,
    cutoff: int,
    unjudged: options.Unjudged,
) -> tuple[_Rankings, list[Seen], Floats]:
    """Runs and qrels in arrays, and of how much there are rankings and judgements."""
    if qrels.empty:
        raise ValueError("the qrels judge no document")
    refuse_twice(qrels, ["topic", "document"], "the qrels judge a document")
    gain_of_level = _gains_by_level(qrels, gains)
    topics = pd.Index(sorted(qrels["topic"].unique().tolist()))
    run, run_names = numbered(runs["run"])
    run_topic, run_topics = numbered(runs["topic"])
    document, documents = numbered(runs["document"])
    # Texts are numbered only once: numbers tell whether a row comes twice.
    lists = run * len(run_topics) + run_topic
    if not pd.Index(lists * len(documents) + document).is_unique:
        refuse_twice(runs, ["run", "topic", "document"], "a run ranks a document")
    topic = topics.get_indexer(run_topics)[run_topic]
    ranked = pd.DataFrame({"run": run, "topic": topic, "document": document})[topic >= 0]

    read = _cut(ranked, len(topics), cutoff)
    judgement = _row_of(qrels, topics, documents, read)
    rankings = _Rankings(list(run_names), topics, documents, read, np.zeros(0), 0.0)
    counts, shares = rankings.seen("a judgement", read, judgement >= 0, qrels["document"])
    has_topic = np.zeros((len(run_names), len(run_topics)), dtype=np.bool_)
    has_topic[run, run_topic] = True
    for name, present in zip(run_names, has_topic, strict=True):
        place, ranked_topics = f"run {name}", run_topics[present]
        absent = topics[~topics.isin(ranked_topics)]
        other = first(ranked_topics[~ranked_topics.isin(topics)])
        n_known, ids = len(topics) - len(absent), (first(absent), other)
        counts.append(Seen(place, "topics of the qrels", "a ranking", n_known, len(topics), *ids))
        if other and n_known:
            n_ranked = len(ranked_topics)
            counts.append(Seen(place, "ranked topics", "judgements", n_known, n_ranked, other))
    n_relevant = int((qrels["level"] > 0).sum())
    counts.append(Seen("the qrels", "judgements", "a level above 0", n_relevant, len(qrels)))

    if unjudged == "removed":
        is_judged = _row_of(qrels, topics, documents, ranked) >= 0
        read = _cut(ranked[is_judged], len(topics), cutoff)
        judgement = _row_of(qrels, topics, documents, read)
    # The gain after the last row, at index -1, belongs to documents without a judgement.
    gain_of_row = np.append(qrels["level"].map(gain_of_level).to_numpy(dtype=np.float64), 0.0)
    depth = read["rank"].max() + 1 if len(read) else 1
    gains_of_ranks = np.zeros((len(run_names), len(topics), depth))
    gains_of_ranks[read["run"], read["topic"], read["rank"]] = gain_of_row[judgement]
    rankings = replace(
        rankings, ranked=read, gains=gains_of_ranks, largest_gain=max(gain_of_level.values())
    )
    return rankings, counts, shares


# --- tables ---------------------------------------------------------------------------------------


def _members(
    rankings: _Rankings, table: pd.DataFrame, attribute: AttributeSet
) -> tuple[Integers, Floats, Booleans, list[Seen], Floats]:
    """Memberships of all ranked documents, for the topics that an attribute set applies to.

    Returns those topics, the memberships, where they exist, and their coverage. Memberships are
    shaped (runs, those topics, ranks, groups) and uniform where they are missing. Coverage is as in
    `_Rankings.seen`.
    """
    groups = list(attribute.groups)
    absent = [group for group in groups if group not in table.columns]
    if absent:
        raise ValueError(f"the memberships in {attribute.name} have no column for {listed(absent)}")
    ranked, topics = rankings.ranked, np.arange(len(rankings.topics))
    if "topic" in table.columns:
        topics = np.flatnonzero(rankings.topics.isin(table["topic"].unique()))
        if not len(topics):
            theirs = listed(table["topic"].unique(), most=3)
            raise ValueError(
                f"the memberships in {attribute.name} must be for topics of the qrels, such as "
                f"{rankings.topics[0]}, got {theirs}"
            )
        ranked = ranked[np.isin(ranked["topic"], topics)]
    row_of_document = _row_of(table, rankings.topics, rankings.documents, ranked)
    # Row of the table by run, topic and rank, -1 where there is none.
    rows = np.full((len(rankings.runs), len(topics), rankings.gains.shape[-1]), -1)
    rows[ranked["run"], np.searchsorted(topics, ranked["topic"]), ranked["rank"]] = row_of_document
    # The vector after the last row, at index -1, is for an unknown group.
    unknown = np.full((1, len(groups)), 1.0 / len(groups))
    vectors = np.concatenate([table[groups].to_numpy(dtype=np.float64), unknown])
    needed = f"a membership in {attribute.name}"
    seen = rankings.seen(needed, ranked, row_of_document >= 0, table["document"])
    return topics, vectors.take(rows, axis=0), rows >= 0, *seen


@dataclass(frozen=True)
class _Experiences:
    """What the users have who leave at each rank, by attribute set and measure.

    ``by_rank`` has utilities, without an attribute set, and ``DistrSim-JSD`` and so on; each is
    shaped (runs, topics, ranks), NaN for topics that the attribute set leaves out. ``groups`` has
    each group's part of the expected utility, shaped (runs, topics). ``seen`` are the shares of
    documents with a membership by attribute set, and with an empty name those with a judgement.
    """

    rankings: _Rankings
    leaving: Floats  # shape (runs, topics, ranks): share of the users
    by_rank: dict[tuple[str, str], Floats]
    groups: dict[tuple[str, str], Floats]
    seen: dict[str, Floats]
    counts: list[Seen]
    exposures: list[GroupExposure]


def _experiences(
    runs: pd.DataFrame,
    qrels: pd.DataFrame,
    memberships: Mapping[str, pd.DataFrame],
    attributes: Mapping[str, AttributeSet],
    gains: Mapping[int, float] | None,
    cutoff: int,
    unjudged: options.Unjudged,
    unrepresented: options.Unrepresented,
    utilities: Mapping[str, Utility],
    similarities: options.Similarities,
) -> _Experiences:
    """Utility and DistrSim of those who leave at each rank, and of how much was seen."""
    need_same_sets(memberships, attributes)
    kinds = {attribute.kind for attribute in attributes.values()}
    without_divergence = [kind for kind in sorted(kinds) if not similarities.get(kind)]
    if without_divergence:
        raise ValueError(f"divergences must be given for {listed(without_divergence)} groups")
    if any(DIVERGENCES[name].ordinal for name in similarities.get("nominal", ())):
        raise ValueError("divergences of nominal groups must be jsd or nvd, which need no order")
    rankings, counts, judged = _rankings(runs, qrels, gains, cutoff, unjudged)
    leaving = stopping(rankings.gains, rankings.largest_gain)
    by_rank, groups, seen = {}, {}, {"": judged}
    exposures: list[GroupExposure] = []
    for name, utility in utilities.items():
        by_rank["", name] = np.broadcast_to(utility(rankings.gains), leaving.shape)
    n_runs, n_topics, n_ranks = leaving.shape
    for name, attribute in attributes.items():
        topics, members, represented, counts_of_set, seen[name] = _members(
            rankings, memberships[name], attribute
        )
        counts += counts_of_set
        exposures += _exposures(rankings, leaving[:, topics], members, represented, attribute)
        counted = represented if unrepresented == "ignored" else None
        achieved = achieved_distributions(members, counted)
        for divergence in similarities[attribute.kind]:
            similarity = np.full(leaving.shape, np.nan)
            similarity[:, topics] = _similarities(
                leaving[:, topics] > 0, achieved, attribute.target, divergence
            )
            by_rank[name, f"DistrSim-{divergence.upper()}"] = similarity
        cases = np.repeat(np.arange(n_runs * len(topics)), n_ranks)
        for utility_name in utilities:
            mass = (leaving * by_rank["", utility_name])[:, topics].ravel()
            flat_members = members.reshape(-1, len(attribute.groups))
            shares = shares_by_group(mass, flat_members, cases, n_runs * len(topics), mean=False)
            for group, share in zip(attribute.groups, shares.T, strict=True):
                part = np.full((n_runs, n_topics), np.nan)
                part[:, topics] = share.reshape(n_runs, len(topics))
                groups[name, f"{utility_name}(group={group})"] = part
    return _Experiences(rankings, leaving, by_rank, groups, seen, counts, exposures)


def _exposures(
    rankings: _Rankings,
    leaving: Floats,
    members: Floats,
    represented: Booleans,
    attribute: AttributeSet,
) -> list[GroupExposure]:
    """Return for each run the groups of the documents that users have met when they leave.

    ``leaving``, ``represented``: shaped (runs, topics, ranks); ``members`` with groups in addition.
    """
    per_document = leaving / np.arange(1, leaving.shape[-1] + 1)
    # A document counts for all who leave at its rank or a later one.
    weights = np.cumsum(per_document[..., ::-1], axis=-1)[..., ::-1]
    exposures = []
    for run, weight, member, is_known in zip(
        rankings.runs, weights, members, represented, strict=True
    ):
        topic, rank = np.nonzero(~is_known & (weight > 0))
        exposures.append(
            GroupExposure(
                *(run, attribute.name, attribute.groups, attribute.target),
                known=np.einsum("tr,trg->tg", weight * is_known, member),
                total=weight.sum(axis=-1),
                topic=topic,
                weight=weight[topic, rank],
            )
        )
    return exposures


def _combinations(
    expected: Mapping[tuple[str, str], Floats],
    attributes: Mapping[str, AttributeSet],
    utilities: Sequence[str],
    similarities: options.Similarities,
    weights: Sequence[float],
    decimals: int | None,
) -> dict[tuple[str, str], Floats]:
    """GFR of each utility with one divergence for each kind of attribute set."""
    kinds_of_sets = {attribute.kind for attribute in attributes.values()}
    kinds = [kind for kind in ("nominal", "ordinal") if kind in kinds_of_sets]
    scores = {}
    for utility, *names in product(utilities, *(similarities[kind] for kind in kinds)):
        divergence_of_kind = dict(zip(kinds, names, strict=True))
        terms = [expected["", utility]]
        for name, attribute in attributes.items():
            terms.append(expected[name, f"GF-{divergence_of_kind[attribute.kind].upper()}"])
        components = np.stack(terms, axis=-1)  # shape (runs, topics, 1 + attribute sets)
        # An attribute set that leaves a topic out has no weight there.
        weigh = np.where(np.isnan(components), 0.0, weights)
        measure_name = "+".join([f"GFR-{utility}", *(name.upper() for name in names)])
        scores["", measure_name] = gfr(np.nan_to_num(components), weigh, decimals)
    return scores


@_measure(
    "GFR of runs",
    sources=("gfrc", "sakai2023"),
    formula=r"GFR(L) = \sum_{k=1}^{|L|} Decay(L, k) \Bigl( w_0 Utility(L, k)"
    r" + \sum_{m=1}^{M} w_m DistrSim^m(L, k) \Bigr)",
    names=dict.fromkeys(
        [
            *UTILITIES,
            *(f"GF-{name.upper()}" for name in DIVERGENCES),
            *(f"GFR-{utility}" for utility in UTILITIES),
        ]
    ),
)
def gfr_table(
    runs: pd.DataFrame,
    qrels: pd.DataFrame,
    memberships: Mapping[str, pd.DataFrame] | None = None,
    attributes: Mapping[str, AttributeSet] | None = None,
    *,
    gains: options.LevelGains = None,
    cutoff: options.Cutoff = 20,
    unjudged: options.Unjudged = "nonrelevant",
    unrepresented: options.Unrepresented = "uniform",
    utilities: Mapping[str, Utility] = UTILITIES,
    similarities: options.Similarities = _SIMILARITIES,
    by_group: options.ByGroup = False,
    weights: options.Weights | None = None,
    decimals: options.Decimals | None = None,
) -> pd.DataFrame:
    """Expected utility and DistrSim of each attribute set, and their combinations, by topic.

    An attribute set applies to the topics that its memberships name. Every combination takes one
    divergence for the nominal and one for the ordinal attribute sets: ``GFR-iRBU+JSD+RNOD`` is the
    mean of iRBU, of GF-JSD of each nominal and of GF-RNOD of each ordinal attribute set of the
    topic. ``GFR-iRBU`` without any attribute set is NCU. ``ERR(group=large)`` is the part of ERR
    that the documents of a group bring; of a set's groups they sum to ERR.

    - :math:`L, k`: a ranking, and the rank at which users stop
    - :math:`Decay(L, k)`: share of the users who stop at rank k
    - :math:`Utility(L, k)`: what they have by then
    - :math:`DistrSim^m(L, k)`: similarity of the groups met by then to the target, for
      attribute set m
    - :math:`w_0, w_m`: weights of utility and of attribute set m, which sum to 1
    - :math:`M`: number of attribute sets

    Parameters
    ----------
    runs : DataFrame, columns run, topic, document
        Rankings, the rows of each in their order. Topics that have no qrels are left out.
        `equipoise.gfr` also takes any input of `equipoise.tidy_runs`.
    qrels : DataFrame, columns topic, document, level
        Relevance levels; for `equipoise.gfr` any input of `equipoise.tidy_qrels`. Every topic in it
        is scored, 0 where a run has no ranking for it.
    memberships : mapping of str to DataFrame, columns topic, document and one per group
        By the name of the attribute set; for `equipoise.gfr` any input of
        `equipoise.tidy_memberships`. Without the column topic, a table is for all topics.
    attributes : mapping of str to AttributeSet
        By name, for the same names. The default of `equipoise.gfr` are the groups in the
        memberships, nominal, with a uniform target.
    utilities : mapping of str to callable
        Utilities by the name of their measure: from gains shaped (..., ranks) to numbers that
        broadcast to that shape.

    Returns
    -------
    DataFrame, columns run, topic, attribute, measure, value, seen
        Runs in their order, topics in ascending order and then "" for the mean over the topics.
        ``seen``: the share of the ranked documents, up to the cutoff, with the judgement or
        membership that the value needs. For GFR it is the smallest share of its parts; it is NaN
        if no document is ranked. ``attrs["seen"]`` has the counts.

    Raises
    ------
    InputError
        If no ranked document of a run has a judgement, or a membership in an attribute set, or no
        topic a ranking.
    ValueError
        If a document occurs twice in a ranking, in the qrels or in memberships, if a level has no
        gain, or if memberships and attribute sets differ or do not fit.

    Notes
    -----
    gfrc Eq. 1; the defaults are those of the NTCIR-17 FairWeb-1 evaluation program.

    Examples
    --------
    >>> run = pd.DataFrame({"run": "r", "topic": "t", "document": ["a", "b"], "rank": [1, 2]})
    >>> qrels = pd.DataFrame({"topic": "t", "document": ["a"], "level": [2]})
    >>> pages = pd.DataFrame({"topic": "t", "document": ["a"], "small": [0.0], "large": [1.0]})
    >>> size = AttributeSet("SIZE", "ordinal", ("small", "large"), [1, 1])
    >>> scores = gfr_table(run, qrels, {"SIZE": pages}, {"SIZE": size})
    >>> scores[scores["topic"] == "t"].round(4)
      run topic attribute        measure   value  seen
    0   r     t                      ERR  0.7500   0.5
    1   r     t                     iRBU  0.7425   0.5
    2   r     t      SIZE         GF-NMD  0.3750   0.5
    3   r     t      SIZE        GF-RNOD  0.3750   0.5
    4   r     t              GFR-ERR+NMD  0.5625   0.5
    5   r     t             GFR-ERR+RNOD  0.5625   0.5
    6   r     t             GFR-iRBU+NMD  0.5588   0.5
    7   r     t            GFR-iRBU+RNOD  0.5588   0.5
    """
    sets = attributes or {}
    weigh = each_weight(weights, [UTILITY, *sets])
    found = _experiences(
        *(runs, qrels, memberships or {}, sets, gains, cutoff),
        *(unjudged, unrepresented, utilities, similarities),
    )
    counts = judge(found.counts)
    # By attribute set and measure, each shaped (runs, topics).
    scores = {
        (attribute, name.replace("DistrSim-", "GF-")): (found.leaving * values).sum(axis=-1)
        for (attribute, name), values in found.by_rank.items()
    }
    combined = _combinations(scores, sets, list(utilities), similarities, weigh, decimals)
    if by_group:
        scores |= found.groups
    # A score rests on the documents of its part; GFR on the least over all parts.
    seen = {key: found.seen[key[0]] for key in scores}
    least: Floats = np.fmin.reduce(list(found.seen.values()))
    seen |= dict.fromkeys(combined, least)
    scores |= combined

    # Below the topics their mean, of those that an attribute set applies to.
    values = np.stack(list(scores.values()), axis=-1)  # shape (runs, topics, scores)
    n_defined = (~np.isnan(values)).sum(axis=1, keepdims=True)
    means = ratio(np.nansum(values, axis=1, keepdims=True), n_defined, np.nan)
    values = np.concatenate([values, means], axis=1).reshape(-1, len(scores))
    rankings = found.rankings
    cases = pd.DataFrame(product(rankings.runs, [*rankings.topics, ""]), columns=["run", "topic"])
    shares = {key: seen[key].ravel() for key in scores}
    table = table_of_scores(cases, dict(zip(scores, values.T, strict=True)), shares)
    table.attrs |= {"seen": counts, "exposures": found.exposures}
    return table


@checked
def gfr_clusters(
    runs: pd.DataFrame,
    qrels: pd.DataFrame,
    memberships: Mapping[str, pd.DataFrame] | None = None,
    attributes: Mapping[str, AttributeSet] | None = None,
    *,
    gains: options.LevelGains = None,
    cutoff: options.Cutoff = 20,
    unjudged: options.Unjudged = "nonrelevant",
    unrepresented: options.Unrepresented = "uniform",
    utilities: Mapping[str, Utility] = UTILITIES,
    similarities: options.Similarities = _SIMILARITIES,
) -> pd.DataFrame:
    """The share, utility and DistrSim of each group of users that leaves a ranking at one rank.

    Returns a table with the columns run, topic, rank, attribute, measure, value: for each rank from
    1 at which somebody leaves measure "share", each utility by name, and "DistrSim-JSD" and so on
    with their attribute set. A score of `gfr_table` is the sum of share times value over the ranks.
    The terms of gfrc Eq. 1.
    """
    found = _experiences(
        *(runs, qrels, memberships or {}, attributes or {}, gains, cutoff),
        *(unjudged, unrepresented, utilities, similarities),
    )
    run, topic, rank = np.nonzero(found.leaving > 0)
    rankings = found.rankings
    cases = pd.DataFrame(
        {"run": np.array(rankings.runs)[run], "topic": rankings.topics[topic], "rank": rank + 1}
    )
    scores = {("", "share"): found.leaving[run, topic, rank]}
    for key, values in found.by_rank.items():
        scores[key] = values[run, topic, rank]
    return table_of_scores(cases, scores)
