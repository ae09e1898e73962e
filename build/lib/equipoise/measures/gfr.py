r"""GFR (Group Fairness and Relevance) of ranked lists.

A population of users reads a ranked list from the top; some leave at each rank. Whoever leaves at rank k has had the
utility of the top k documents and has seen a distribution over groups. GFR is what they can expect:

.. math:: GFR(L) = \sum_{k=1}^{|L|} Decay(L, k) \Bigl( w_0 Utility(L, k) + \sum_{m=1}^{M} w_m DistrSim^m(L, k) \Bigr)

`stopping` is the decay of ERR: users leave where a document satisfies them. `reciprocal_rank` and
`rank_biased_utility` are the utilities of ERR and iRBU. `gfr_components` and `gfr` are the array kernels, `gfr_table`
and `gfr_clusters` take and give tidy tables. With all weight on the utility, GFR is NCU (normalised cumulative
utility): ERR and iRBU themselves, and with another decay and utility any other measure of that family, average
precision for one.

References
----------
gfrc: Sakai, T. (2023): Fairness-based Evaluation of Conversational Search: A Pilot Study. EVIA 2023, Eq. 1.

Sakai, T., Kim, J. Y., Kang, I. (2023): A Versatile Framework for Evaluating Ranked Lists in Terms of Group Fairness and
Relevance. ACM TOIS 42(1), doi:10.1145/3589763.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Floats, Integers
from equipoise.attributes import AttributeSet
from equipoise.divergences import DIVERGENCES, distribution_similarity

Decay = Callable[[Floats], Floats]
"""From gains shaped (..., ranks) to the share of the users that leaves at each rank, shaped alike."""

Utility = Callable[[Floats], Floats]
"""From gains shaped (..., ranks) to the utility for those who leave at each rank; it broadcasts to that shape."""

GAINS: Mapping[int, float] = MappingProxyType({1: 1.0, 2: 3.0})
SIMILARITIES: Mapping[str, tuple[str, ...]] = MappingProxyType({"nominal": ("jsd",), "ordinal": ("nmd", "rnod")})


def stopping(gains: ArrayLike, max_gain: float) -> Floats:
    r"""Share of the users that leaves at each rank, as ERR has it.

    .. math:: Decay(L, k) = p_k \prod_{j < k} (1 - p_j), \quad p_k = \frac{g_k}{g_{max} + 1}

    ``gains`` (shaped (..., ranks)): Gain values in the order of the ranks, 0 for nonrelevant documents.
    ``max_gain``: the largest gain value there is. Returns ndarray, shaped (..., ranks): Probabilities; they sum to
    less than 1, for some users leave with nothing.

    The decay in gfrc Eq. 1; Chapelle et al. (2009), with the stop probability of the NTCIR evaluation programs.
    """
    gain = np.asarray(gains, dtype=np.float64)
    if not ((gain >= 0) & (gain <= max_gain)).all():
        raise ValueError(f"gains must lie between 0 and max_gain = {max_gain:g}")
    leave = gain / (max_gain + 1)
    stay = np.cumprod(1 - leave, axis=-1)
    weights = leave.copy()
    weights[..., 1:] *= stay[..., :-1]
    return weights


def reciprocal_rank(gains: ArrayLike) -> Floats:
    """The utility of ERR: the effort of reading as far as rank k leaves 1/k.

    ``gains`` (shaped (..., ranks)): Only the number of ranks is looked at. Returns ndarray, shaped (ranks,): ``1 /
    k`` for k = 1, 2, ...

    Chapelle et al. (2009); Utility in gfrc Eq. 1.
    """
    utility: Floats = 1.0 / np.arange(1, np.shape(gains)[-1] + 1)
    return utility


def rank_biased_utility(gains: ArrayLike, phi: float = 0.99) -> Floats:
    """The utility of iRBU: at every rank a share `phi` of the value is left.

    ``gains`` (shaped (..., ranks)): Only the number of ranks is looked at. ``phi``: share of the value that is left
    at the next rank, above 0 and at most 1; the campaign has 0.99. Returns ndarray, shaped (ranks,): ``phi ** k``
    for k = 1, 2, ...

    Sakai, Kim and Kang (2023), iRBU (intentwise rank-biased utility); Utility in gfrc Eq. 1.
    """
    if not 0 < phi <= 1:
        raise ValueError(f"phi must be above 0 and at most 1, found {phi:g}")
    utility: Floats = phi ** np.arange(1, np.shape(gains)[-1] + 1, dtype=np.float64)
    return utility


UTILITIES: Mapping[str, Utility] = MappingProxyType({"ERR": reciprocal_rank, "iRBU": rank_biased_utility})
"""The utilities of the campaign by the name of their NCU measure."""


def achieved_distributions(memberships: ArrayLike, represented: ArrayLike | None = None) -> Floats:
    r"""Mean group membership of the documents from rank 1 to each rank.

    .. math:: D(L, k)_i = \frac1k \sum_{r=1}^{k} p_i(d_r)

    ``memberships`` (shaped (..., ranks, groups)): Membership probabilities of the document at each rank.
    ``represented`` (shaped (..., ranks)): Documents that count; the default is all. Before the first of them the
    distribution is uniform. Returns ndarray, shaped (..., ranks, groups).

    The achieved distribution of gfrc Eq. 1, as the campaign's evaluation program takes it.
    """
    members = np.asarray(memberships, dtype=np.float64)
    if represented is None:
        reach = np.arange(1, members.shape[-2] + 1, dtype=np.float64)
        return np.cumsum(members, axis=-2) / reach[:, None]
    counts = np.asarray(represented, dtype=np.bool_)[..., None]
    so_far = np.cumsum(counts, axis=-2)
    mean = np.cumsum(np.where(counts, members, 0.0), axis=-2) / np.maximum(so_far, 1)
    return np.where(so_far > 0, mean, 1.0 / members.shape[-1])


def _expected_similarity(decay: Floats, achieved: Floats, target: ArrayLike, divergence: str) -> Floats:
    """The expectation of DistrSim; the divergence is computed only where somebody leaves."""
    leaving = decay > 0
    experience = np.zeros_like(decay)
    experience[leaving] = decay[leaving] * distribution_similarity(achieved[leaving], target, divergence)
    expected: Floats = experience.sum(axis=-1)
    return expected


def gfr_components(
    decay: ArrayLike,
    utility: ArrayLike,
    achieved: Sequence[ArrayLike],
    targets: Sequence[ArrayLike],
    divergences: Sequence[str],
) -> Floats:
    r"""The expected utility and expected DistrSim of each attribute set.

    .. math::
        \Bigl( \sum_k Decay(L, k) Utility(L, k), \; \sum_k Decay(L, k) DistrSim^1(L, k), \; \ldots \Bigr)

    Parameters
    ----------
    decay : array_like, shaped (..., ranks)
        Share of the users that leaves at each rank.
    utility : array_like, shaped (..., ranks)
        Utility for them; it broadcasts.
    achieved : sequence of array_like, shaped (..., ranks, groups)
        One array per attribute set (see `achieved_distributions`).
    targets : sequence of array_like, shaped (groups,)
        One per attribute set.
    divergences : sequence of str
        One name of `equipoise.divergences.DIVERGENCES` per attribute set.

    Returns
    -------
    ndarray, shaped (..., 1 + attribute sets)
        Between 0 and 1 where decay and utility are.

    Raises
    ------
    ValueError
        If the sequences differ in length, there is no such divergence, or numbers of groups differ.

    Notes
    -----
    The terms of gfrc Eq. 1 before weighting.

    Examples
    --------
    >>> decay = stopping([3, 0], max_gain=3)
    >>> gfr_components(decay, reciprocal_rank(decay), [[[1, 0], [1, 0]]], [[0.5, 0.5]], ["nvd"])
    array([0.75 , 0.375])
    """
    leave = np.asarray(decay, dtype=np.float64)
    expected = (leave * np.asarray(utility, dtype=np.float64)).sum(axis=-1)
    fair = [
        _expected_similarity(leave, np.asarray(reached, dtype=np.float64), target, divergence)
        for reached, target, divergence in zip(achieved, targets, divergences, strict=True)
    ]
    return np.stack([expected, *fair], axis=-1)


def gfr(components: ArrayLike, weights: ArrayLike | None = None, decimals: int | None = None) -> Floats:
    r"""Combine expected utility and expected DistrSim into GFR.

    .. math:: GFR(L) = \sum_{m=0}^{M} w_m C_m(L), \quad \sum_m w_m = 1

    Parameters
    ----------
    components : array_like, shaped (..., 1 + attribute sets)
        Utility first (see `gfr_components`).
    weights : array_like, shaped (..., 1 + attribute sets), optional
        Non-negative, broadcast; each vector is normalised to sum to 1. The default weighs all alike. (1, 0, ..., 0)
        gives NCU.
    decimals : int, optional
        Round each component to so many decimals first, half to even on the exact binary value, as the campaign's
        program does with 4; the default does not round.

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
    parts = np.asarray(components, dtype=np.float64)
    weigh = np.ones(parts.shape[-1]) if weights is None else np.asarray(weights, dtype=np.float64)
    if weigh.shape[-1:] != parts.shape[-1:]:
        raise ValueError(f"{parts.shape[-1]} components need as many weights, found {weigh.shape[-1:]}")
    if not (np.isfinite(weigh).all() and (weigh >= 0).all() and (weigh.sum(axis=-1) > 0).all()):
        raise ValueError("weights must be non-negative and not all 0")
    if decimals is not None:
        parts = np.char.mod(f"%.{decimals}f", parts).astype(np.float64)
    combined: Floats = (parts * (weigh / weigh.sum(axis=-1, keepdims=True))).sum(axis=-1)
    return combined


@dataclass(frozen=True)
class _Lists:
    """Ranked lists side by side: everything the kernels need, shaped (runs, topics, ranks)."""

    runs: list[str]
    topics: list[str]
    gains: Floats
    present: NDArray[np.bool_]  # (runs, topics): the run has the topic
    max_gain: float
    rows: pd.DataFrame  # of the run table, kept and cut: its codes and rank
    documents: pd.Index[Any]

    def members(self, table: pd.DataFrame, attribute: AttributeSet) -> tuple[Integers, Floats, NDArray[np.bool_]]:
        """Topics of an attribute set, then memberships and who has one, shaped (runs, those topics, ranks, ...)."""
        groups = len(attribute.groups)
        lacking = [group for group in attribute.groups if group not in table.columns]
        if lacking:
            raise ValueError(f"the memberships in {attribute.name} have no column for group {', '.join(lacking)}")
        _refuse_repeated(table, ["topic", "document"], f"the memberships in {attribute.name} have a document")
        topic = _codes(table["topic"], pd.Index(self.topics))
        topics = np.unique(topic[topic >= 0])
        if not len(topics):
            raise ValueError(f"no topic of the qrels has memberships in {attribute.name}")
        there = table[topic >= 0]
        place = np.full(len(self.topics), -1)
        place[topics] = np.arange(len(topics))
        shape = (len(self.runs), len(topics), self.gains.shape[-1])
        members = np.full((*shape, groups), 1.0 / groups)
        represented = np.zeros(shape, dtype=np.bool_)
        rows = self.rows[place[self.rows["topic"]] >= 0]
        found = self._find(there, rows["key"].to_numpy())
        rows, found = rows[found >= 0], found[found >= 0]
        at = (rows["run"].to_numpy(), place[rows["topic"].to_numpy()], rows["rank"].to_numpy())
        members[at] = there[list(attribute.groups)].to_numpy(dtype=np.float64)[found]
        represented[at] = True
        return topics, members, represented

    def _find(self, table: pd.DataFrame, keys: Integers) -> Integers:
        return _row_of(_keys(table, self.topics, self.documents), keys)


def _codes(values: pd.Series, index: pd.Index[Any]) -> Integers:
    """Position of each value in the index, -1 where it is not there; each distinct value is looked up once."""
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    return index.get_indexer(pd.Index(distinct))[codes].astype(np.int64)


def _keys(table: pd.DataFrame, topics: Sequence[str], documents: pd.Index[Any]) -> Integers:
    """One number per pair of topic and document; -1 for documents that are in no run."""
    topic, document = _codes(table["topic"], pd.Index(topics)), _codes(table["document"], documents)
    known = (topic >= 0) & (document >= 0)
    return np.where(known, topic * len(documents) + document, -1).astype(np.int64)


def _row_of(table_keys: Integers, keys: Integers) -> Integers:
    """Row of the table that has each key, -1 where none has."""
    order = np.argsort(table_keys, kind="stable")
    ordered = table_keys[order]
    at = np.minimum(np.searchsorted(ordered, keys), max(len(ordered) - 1, 0))
    if not len(ordered):
        return np.full(len(keys), -1, dtype=np.int64)
    return np.where(ordered[at] == keys, order[at], -1).astype(np.int64)


def _refuse_repeated(table: pd.DataFrame, columns: list[str], what: str) -> None:
    repeated = table.duplicated(columns)
    if repeated.any():
        first = table.loc[repeated, columns].iloc[0]
        raise ValueError(f"{what} twice: {', '.join(f'{name} {first[name]!r}' for name in columns)}")


def _lay_out(
    runs: pd.DataFrame,
    qrels: pd.DataFrame,
    gains: Mapping[int, float],
    cutoff: int,
    order: str,
    unjudged: str,
) -> _Lists:
    """Lay run tables out in arrays. Ranks and topics that a run does not have count as nonrelevant."""
    if cutoff < 1:
        raise ValueError(f"the cut-off must be at least 1, found {cutoff}")
    for name, given, known in (
        ("order", order, ("file", "score", "rank")),
        ("unjudged", unjudged, ("nonrelevant", "removed")),
    ):
        if given not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, found {given!r}")
    run, names = pd.factorize(runs["run"], use_na_sentinel=False)
    own_topic, own_topics = pd.factorize(runs["topic"], use_na_sentinel=False)
    document, distinct = pd.factorize(runs["document"], use_na_sentinel=False)
    documents = pd.Index(distinct)
    if not pd.Index((run * len(own_topics) + own_topic) * len(documents) + document).is_unique:
        _refuse_repeated(runs, ["run", "topic", "document"], "a run ranks a document")
    if qrels.empty:
        raise ValueError("the qrels judge no document")
    _refuse_repeated(qrels, ["topic", "document"], "the qrels judge a document")
    values = {0: 0.0} | {int(level): float(gain) for level, gain in gains.items()}
    unknown = sorted(set(qrels["level"].unique().tolist()) - set(values))
    if unknown:
        raise ValueError(f"no gain for level {', '.join(map(str, unknown))}; gains are given for {sorted(values)}")
    topics = sorted(qrels["topic"].unique().tolist())
    topic = pd.Index(topics).get_indexer(pd.Index(own_topics))[own_topic]
    key = np.where(topic >= 0, topic * len(documents) + document, -1)
    judgement = _row_of(_keys(qrels, topics, documents), key)
    level = np.where(judgement >= 0, qrels["level"].to_numpy(dtype=np.int64)[judgement], 0)
    by_level = np.zeros(max(values) + 1)
    by_level[list(values)] = list(values.values())
    rows = pd.DataFrame({"run": run, "topic": topic, "key": key, "gain": by_level[level]})
    kept = rows["topic"] >= 0
    present = np.zeros((len(names), len(topics)), dtype=np.bool_)
    present[rows.loc[kept, "run"], rows.loc[kept, "topic"]] = True
    if unjudged == "removed":
        kept &= judgement >= 0
    if order == "score":
        sequence = np.lexsort((-runs["document"].rank(method="dense").to_numpy(), -runs["score"].to_numpy()))
        rows = rows.iloc[sequence]
    elif order == "rank":
        rows = rows.iloc[np.argsort(runs["rank"].to_numpy(), kind="stable")]
    rows = rows[kept.reindex(rows.index)]
    rows["rank"] = rows.groupby(["run", "topic"], sort=False).cumcount().to_numpy()
    rows = rows[rows["rank"] < cutoff]
    depth = int(rows["rank"].max()) + 1 if len(rows) else 1
    laid = np.zeros((len(names), len(topics), depth))
    laid[rows["run"], rows["topic"], rows["rank"]] = rows["gain"]
    return _Lists(list(names), topics, laid, present, max(values.values()), rows, documents)


def _similarity_names(attributes: Mapping[str, AttributeSet], similarities: Mapping[str, Sequence[str]]) -> list[str]:
    for kind, names in similarities.items():
        unknown = [name for name in names if name not in DIVERGENCES]
        if kind not in ("nominal", "ordinal") or unknown:
            raise ValueError(f"similarities name nominal and ordinal divergences out of {', '.join(DIVERGENCES)}")
    lacking = {attribute.kind for attribute in attributes.values() if not similarities.get(attribute.kind)}
    if lacking:
        raise ValueError(f"no divergence is given for {' and '.join(sorted(lacking))} attribute sets")
    return [kind for kind in ("nominal", "ordinal") if any(a.kind == kind for a in attributes.values())]


def _check_choices(**choices: tuple[str, tuple[str, ...]]) -> None:
    for name, (given, known) in choices.items():
        if given not in known:
            raise ValueError(f"{name} must be {' or '.join(known)}, found {given!r}")


def gfr_table(
    runs: pd.DataFrame,
    qrels: pd.DataFrame,
    memberships: Mapping[str, pd.DataFrame] = MappingProxyType({}),
    attributes: Mapping[str, AttributeSet] = MappingProxyType({}),
    *,
    gains: Mapping[int, float] = GAINS,
    cutoff: int = 20,
    order: Literal["file", "score", "rank"] = "file",
    unjudged: Literal["nonrelevant", "removed"] = "nonrelevant",
    unrepresented: Literal["uniform", "ignored"] = "uniform",
    absent: Literal["zero", "omitted"] = "zero",
    decay: Decay | None = None,
    utilities: Mapping[str, Utility] = UTILITIES,
    similarities: Mapping[str, Sequence[str]] = SIMILARITIES,
    weights: Mapping[str, float] | None = None,
    decimals: int | None = None,
) -> pd.DataFrame:
    """The expected utility, expected DistrSim of each attribute set, and their combinations, per topic and in the mean.

    An attribute set applies to the topics that its memberships name. Every combination takes one divergence for the
    nominal and one for the ordinal attribute sets: ``GFR-iRBU+JSD+RNOD`` is the mean of iRBU, of GF-JSD of each nominal
    and of GF-RNOD of each ordinal attribute set of the topic. ``GFR-iRBU`` without any attribute set is NCU.

    Parameters
    ----------
    runs : DataFrame, columns run, topic, document, rank, score
        Ranked lists, the rows of a list in file order. Topics that have no qrels are left out.
    qrels : DataFrame, columns topic, document, level
        Relevance levels; every topic in it is scored.
    memberships : mapping of str to DataFrame, columns topic, document and one per group
        By the name of the attribute set.
    attributes : mapping of str to AttributeSet
        By name, for the same names.
    gains : mapping of int to float
        Gain of each level; 0 for level 0. The campaign's are 1 and 3.
    cutoff : int
        Ranks that are looked at; the campaign's are 20.
    order : {"file", "score", "rank"}
        What the ranking is: the order of the rows (the campaign's program), the score (descending, ties by document id
        descending, as trec_eval), or the stated rank (ties in file order).
    unjudged : {"nonrelevant", "removed"}
        An unjudged document has gain 0 and stays in the list (the campaign's program), or leaves it before the cut-off.
    unrepresented : {"uniform", "ignored"}
        A document without membership counts as spread evenly over the groups (the campaign's program), or not at all.
    absent : {"zero", "omitted"}
        A topic that a run lacks scores 0, or has no row and no share in the mean.
    decay : callable, optional
        Gains shaped (..., ranks) to the share of the users that leaves at each rank; the default is `stopping` with the
        largest gain.
    utilities : mapping of str to callable
        Utilities by the name of their measure.
    similarities : mapping of str to sequence of str
        Divergences for "nominal" and for "ordinal" attribute sets.
    weights : mapping of str to float, optional
        Weight of "utility" and of each attribute set by name, 0 where left out, normalised over what applies to the
        topic. The default weighs all alike.
    decimals : int, optional
        Round components before they are combined; the campaign's program rounds to 4. The default does not round.

    Returns
    -------
    DataFrame, columns run, topic, attribute, measure, value
        Runs in their order, topics in ascending order and then "" for the mean over the topics.

    Raises
    ------
    ValueError
        If a document comes twice in a list, in the qrels or in memberships; a level has no gain; memberships and
        attribute sets are not the same or do not fit; a choice is none of those named.

    Notes
    -----
    gfrc Eq. 1; the defaults are those of the NTCIR-17 FairWeb-1 evaluation program.

    Examples
    --------
    >>> run = pd.DataFrame({"run": "r", "topic": "t", "document": ["a", "b"], "rank": [1, 2], "score": [2.0, 1.0]})
    >>> qrels = pd.DataFrame({"topic": "t", "document": ["a"], "level": [2]})
    >>> pages = pd.DataFrame({"topic": "t", "document": ["a"], "small": [0.0], "large": [1.0]})
    >>> size = AttributeSet("SIZE", "ordinal", ("small", "large"), [1, 1])
    >>> scores = gfr_table(run, qrels, {"SIZE": pages}, {"SIZE": size})
    >>> scores[scores["topic"] == "t"].round(4)
      run topic attribute        measure   value
    0   r     t                      ERR  0.7500
    1   r     t                     iRBU  0.7425
    2   r     t      SIZE         GF-NMD  0.3750
    3   r     t      SIZE        GF-RNOD  0.3750
    4   r     t              GFR-ERR+NMD  0.5625
    5   r     t             GFR-ERR+RNOD  0.5625
    6   r     t             GFR-iRBU+NMD  0.5588
    7   r     t            GFR-iRBU+RNOD  0.5588
    """
    if set(memberships) != set(attributes):
        raise ValueError(
            f"memberships in {sorted(memberships)}, attribute sets {sorted(attributes)}: the same are needed"
        )
    _check_choices(
        unrepresented=(unrepresented, ("uniform", "ignored")),
        absent=(absent, ("zero", "omitted")),
    )
    kinds = _similarity_names(attributes, similarities)
    shares = {"utility": 1.0} | dict.fromkeys(attributes, 1.0) if weights is None else dict(weights)
    if set(shares) - {"utility", *attributes}:
        raise ValueError(f"weights are for utility and {', '.join(attributes)}, found {', '.join(shares)}")
    lists = _lay_out(runs, qrels, gains, cutoff, order, unjudged)
    leave = stopping(lists.gains, lists.max_gain) if decay is None else decay(lists.gains)

    shape = lists.gains.shape[:2]
    columns: dict[tuple[str, str], Floats] = {}
    for name, utility in utilities.items():
        columns["", name] = gfr_components(leave, utility(lists.gains), [], [], [])[..., 0]
    weigh = np.zeros((shape[1], 1 + len(attributes)))
    weigh[:, 0] = shares.get("utility", 0.0)
    for number, (name, attribute) in enumerate(attributes.items(), start=1):
        topics, members, represented = lists.members(memberships[name], attribute)
        reached = achieved_distributions(members, represented if unrepresented == "ignored" else None)
        weigh[topics, number] = shares.get(name, 0.0)
        for divergence in similarities[attribute.kind]:
            fair = np.full(shape, np.nan)
            fair[:, topics] = _expected_similarity(leave[:, topics], reached, attribute.target, divergence)
            columns[name, f"GF-{divergence.upper()}"] = fair
    single = dict(columns)
    for name, *chosen in product(utilities, *(similarities[kind] for kind in kinds)):
        by_kind = dict(zip(kinds, (divergence.upper() for divergence in chosen), strict=True))
        parts = [single["", name], *(single[a, f"GF-{by_kind[attribute.kind]}"] for a, attribute in attributes.items())]
        combined = gfr(np.nan_to_num(np.stack(parts, axis=-1)), weigh, decimals)
        columns["", "+".join([f"GFR-{name}", *by_kind.values()])] = combined
    values = np.stack(list(columns.values()), axis=-1)
    if absent == "omitted":
        values[~lists.present] = np.nan
    return _tidy(lists, list(columns), values)


def _tidy(lists: _Lists, columns: Sequence[tuple[str, str]], values: Floats) -> pd.DataFrame:
    """From values shaped (runs, topics, columns), NaN where there is none, to rows; means over the topics come last."""
    there = ~np.isnan(values)
    counts = there.sum(axis=1, keepdims=True)
    means = np.where(
        counts > 0, np.where(there, values, 0.0).sum(axis=1, keepdims=True) / np.maximum(counts, 1), np.nan
    )
    values = np.concatenate([values, means], axis=1)
    topics = [*lists.topics, ""]
    run, topic, column = (grid.ravel() for grid in np.indices(values.shape))
    table = pd.DataFrame(
        {
            "run": pd.array(lists.runs, dtype="str").take(run),
            "topic": pd.array(topics, dtype="str").take(topic),
            "attribute": pd.array([name for name, _ in columns], dtype="str").take(column),
            "measure": pd.array([name for _, name in columns], dtype="str").take(column),
            "value": values.ravel(),
        }
    )
    return table[table["value"].notna()].reset_index(drop=True)


def gfr_clusters(
    runs: pd.DataFrame,
    qrels: pd.DataFrame,
    memberships: Mapping[str, pd.DataFrame] = MappingProxyType({}),
    attributes: Mapping[str, AttributeSet] = MappingProxyType({}),
    *,
    gains: Mapping[int, float] = GAINS,
    cutoff: int = 20,
    order: Literal["file", "score", "rank"] = "file",
    unjudged: Literal["nonrelevant", "removed"] = "nonrelevant",
    unrepresented: Literal["uniform", "ignored"] = "uniform",
    decay: Decay | None = None,
    utilities: Mapping[str, Utility] = UTILITIES,
    similarities: Mapping[str, Sequence[str]] = SIMILARITIES,
) -> pd.DataFrame:
    """The share, utility and DistrSim of each group of users that leaves a list at the same rank.

    Returns DataFrame, columns run, topic, rank, attribute, measure, value: For each rank from 1 at which somebody
    leaves: measure "share", each utility by name, and "DistrSim-JSD" and the like with their attribute set. A score
    of `gfr_table` is the sum of share times value over the ranks.

    The terms of gfrc Eq. 1; gfrc2 section 4 draws them for conversations.
    """
    if set(memberships) != set(attributes):
        raise ValueError(
            f"memberships in {sorted(memberships)}, attribute sets {sorted(attributes)}: the same are needed"
        )
    _check_choices(unrepresented=(unrepresented, ("uniform", "ignored")))
    _similarity_names(attributes, similarities)
    lists = _lay_out(runs, qrels, gains, cutoff, order, unjudged)
    leave = stopping(lists.gains, lists.max_gain) if decay is None else decay(lists.gains)
    columns: dict[tuple[str, str], Floats] = {("", "share"): leave}
    for name, utility in utilities.items():
        columns["", name] = np.broadcast_to(utility(lists.gains), leave.shape)
    for name, attribute in attributes.items():
        topics, members, represented = lists.members(memberships[name], attribute)
        reached = achieved_distributions(members, represented if unrepresented == "ignored" else None)
        for divergence in similarities[attribute.kind]:
            similar = np.full(leave.shape, np.nan)
            similar[:, topics] = distribution_similarity(reached, attribute.target, divergence)
            columns[name, f"DistrSim-{divergence.upper()}"] = similar
    run, topic, rank = np.nonzero(leave > 0)
    long = pd.DataFrame(
        {
            "run": pd.array(lists.runs, dtype="str").take(run),
            "topic": pd.array(lists.topics, dtype="str").take(topic),
            "rank": rank + 1,
        }
    )
    pieces = [
        long.assign(attribute=attribute, measure=measure, value=values[run, topic, rank], row=np.arange(len(long)))
        for (attribute, measure), values in columns.items()
    ]
    table = pd.concat(pieces).sort_values("row", kind="stable").drop(columns="row")
    table = table.astype({"attribute": "str", "measure": "str"})
    return table[table["value"].notna()].reset_index(drop=True)
