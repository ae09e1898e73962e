r"""GFR (Group Fairness and Relevance) of ranked lists.

A population of users reads a ranked list from the top; some leave at each rank. Whoever leaves at
rank k has had the utility of the top k documents and has seen a distribution over groups. GFR is
what they can expect:

.. math:: GFR(L) = \sum_{k=1}^{|L|} Decay(L, k) \Bigl( w_0 Utility(L, k) + \sum_{m=1}^{M} w_m
DistrSim^m(L, k) \Bigr)

`stopping` is the decay of ERR: users leave where a document satisfies them. `reciprocal_rank` and
`rank_biased_utility` are the utilities of ERR and iRBU. `gfr_components` and `gfr` are the array
kernels, `gfr_table` and `gfr_clusters` take and give tidy tables. With all weight on the utility,
GFR is NCU (normalised cumulative utility): ERR and iRBU themselves, and with another decay and
utility any other measure of that family, average precision for one.

References
----------
gfrc: Sakai, T. (2023): Fairness-based Evaluation of Conversational Search: A Pilot Study. EVIA
2023, Eq. 1.

Sakai, T., Kim, J. Y., Kang, I. (2023): A Versatile Framework for Evaluating Ranked Lists in Terms
of Group Fairness and Relevance. ACM TOIS 42(1), doi:10.1145/3589763.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise import options
from equipoise.arrays import Booleans, Floats, ratio
from equipoise.attributes import AttributeSet
from equipoise.coverage import judge
from equipoise.declare import checked, measure
from equipoise.divergences import distribution_similarity, refuse_order
from equipoise.measures.group_fairness import UTILITY, each_weight, tidy_scores
from equipoise.measures.ranked_lists import Coverage, RankedLists, lay_out
from equipoise.tidy import tidy_qrels, tidy_runs, tidy_sets

Decay = Callable[[Floats], Floats]
"""From gains shaped (..., ranks) to the share of users that leaves at each rank, shaped alike."""

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


@checked
def rank_biased_utility(gains: ArrayLike, phi: options.Phi = 0.99) -> Floats:
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


@_measure("Expected utility and DistrSim", sources=("sakai2023", "chapelle2009"))
def gfr_components(
    decay: ArrayLike,
    utility: ArrayLike,
    achieved: Sequence[ArrayLike],
    targets: Sequence[ArrayLike],
    divergences: Sequence[str],
) -> Floats:
    r"""The expected utility and expected DistrSim of each attribute set.

    .. math::
        \Bigl( \sum_k Decay(L, k) Utility(L, k), \;
        \sum_k Decay(L, k) DistrSim^1(L, k), \; \ldots \Bigr)

    - :math:`L, k`: a ranked list, and the rank at which users stop
    - :math:`Decay(L, k)`: share of the users who stop at rank k
    - :math:`Utility(L, k)`: what they have by then, such as ERR's reciprocal rank or iRBU's
    - :math:`DistrSim^m(L, k)`: similarity of the groups met by then to the target, for
      attribute set m

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
    leaving = np.asarray(decay, dtype=np.float64)
    experiences = [np.asarray(utility, dtype=np.float64)]
    for distribution, target, divergence in zip(achieved, targets, divergences, strict=True):
        reached = np.asarray(distribution, dtype=np.float64)
        experiences.append(_similarities(leaving > 0, reached, target, divergence))
    expected = [(leaving * experience).sum(axis=-1) for experience in experiences]
    return np.stack(expected, axis=-1)


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
        # Printed and read again, as programs do that combine printed scores.
        terms = np.char.mod(f"%.{decimals}f", terms).astype(np.float64)
    return (terms * (weigh / total)).sum(axis=-1)


def _check_divergences(
    attributes: Mapping[str, AttributeSet], similarities: options.Similarities
) -> None:
    kinds = {attribute.kind for attribute in attributes.values()}
    without_divergence = sorted(kind for kind in kinds if not similarities.get(kind))
    if without_divergence:
        raise ValueError(
            f"no divergence is given for {' and '.join(without_divergence)} attribute sets"
        )
    refuse_order(similarities.get("nominal", ()))


@dataclass(frozen=True)
class _Experiences:
    """What the users have who leave at each rank, by attribute set and measure.

    ``by_measure`` has utilities, without an attribute set, and ``DistrSim-JSD`` and the like; each
    is shaped (runs, topics, ranks), NaN for topics that the attribute set leaves out. ``coverage``
    says by attribute set of how many documents there is a membership, and with an empty name, of
    how many there is a judgement.
    """

    leaving: Floats  # (runs, topics, ranks): share of the users
    by_measure: dict[tuple[str, str], Floats]
    coverage: dict[str, Coverage]


def _experiences(
    lists: RankedLists,
    decay: Decay | None,
    memberships: Mapping[str, pd.DataFrame],
    attributes: Mapping[str, AttributeSet],
    unrepresented: str,
    utilities: Mapping[str, Utility],
    divergences: options.Similarities,
    by_group: bool = False,
) -> _Experiences:
    """Utility and DistrSim of those who leave at each rank, and of how much was seen."""
    _check_divergences(attributes, divergences)
    if decay is None:
        leaving = stopping(lists.gains, lists.largest_gain)
    else:
        leaving = decay(lists.gains)
    experiences = {}
    for name, utility in utilities.items():
        experiences["", name] = np.broadcast_to(utility(lists.gains), leaving.shape)

    coverage = {"": lists.judged}
    for name, attribute in attributes.items():
        topics, members, represented, coverage[name] = lists.members(memberships[name], attribute)
        counted = represented if unrepresented == "ignored" else None
        achieved = achieved_distributions(members, counted)
        for divergence in divergences[attribute.kind]:
            values = np.full(leaving.shape, np.nan)
            values[:, topics] = _similarities(
                leaving[:, topics] > 0, achieved, attribute.target, divergence
            )
            experiences[name, f"DistrSim-{divergence.upper()}"] = values
        if not by_group:
            continue
        for utility_name, group in product(utilities, attribute.groups):
            of_group = members[..., attribute.groups.index(group)]
            values = np.full(leaving.shape, np.nan)
            values[:, topics] = experiences["", utility_name][:, topics] * of_group
            experiences[name, f"{utility_name}(group={group})"] = values
    return _Experiences(leaving, experiences, coverage)


def _combinations(
    expected: Mapping[tuple[str, str], Floats],
    attributes: Mapping[str, AttributeSet],
    utilities: Iterable[str],
    divergences: options.Similarities,
    weights: Sequence[float],
    decimals: int | None,
) -> dict[tuple[str, str], Floats]:
    """GFR of each utility with one divergence for each kind of attribute set."""
    kinds_of_sets = {attribute.kind for attribute in attributes.values()}
    kinds = [kind for kind in ("nominal", "ordinal") if kind in kinds_of_sets]
    scores = {}
    for utility, *names in product(utilities, *(divergences[kind] for kind in kinds)):
        upper_names = [name.upper() for name in names]
        divergence_of_kind = dict(zip(kinds, upper_names, strict=True))
        terms = [expected["", utility]]
        for name, attribute in attributes.items():
            terms.append(expected[name, f"GF-{divergence_of_kind[attribute.kind]}"])
        components = np.stack(terms, axis=-1)  # (runs, topics, 1 + attribute sets)
        # An attribute set that leaves a topic out has no weight there.
        weigh = np.where(np.isnan(components), 0.0, weights)
        measure_name = "+".join([f"GFR-{utility}", *upper_names])
        scores["", measure_name] = gfr(np.nan_to_num(components), weigh, decimals)
    return scores


def _with_means(values: Floats) -> Floats:
    """Values shaped (runs, topics, scores), and behind the topics their means, without NaN."""
    n_defined = (~np.isnan(values)).sum(axis=1, keepdims=True)
    sums = np.nan_to_num(values).sum(axis=1, keepdims=True)
    return np.concatenate([values, ratio(sums, n_defined, np.nan)], axis=1)


@_measure(
    "GFR of runs",
    sources=("gfrc", "sakai2023"),
    formula=r"GFR(L) = \sum_{k=1}^{|L|} Decay(L, k) \Bigl( w_0 Utility(L, k)"
    r" + \sum_{m=1}^{M} w_m DistrSim^m(L, k) \Bigr)",
)
def gfr_table(
    runs: Any,
    qrels: Any,
    memberships: Any = None,
    attributes: Mapping[str, Any] | None = None,
    *,
    gains: options.LevelGains = None,
    cutoff: options.Cutoff = 20,
    order: options.Order = "file",
    unjudged: options.Unjudged = "nonrelevant",
    unrepresented: options.Unrepresented = "uniform",
    absent: options.Absent = "zero",
    decay: Decay | None = None,
    utilities: Mapping[str, Utility] = UTILITIES,
    similarities: options.Similarities = _SIMILARITIES,
    by_group: options.ByGroup = False,
    weights: options.Weights | None = None,
    decimals: options.Decimals | None = None,
    least_seen: options.LeastSeen = 0.5,
) -> pd.DataFrame:
    """Expected utility and DistrSim of each attribute set, and their combinations, by topic.

    An attribute set applies to the topics that its memberships name. Every combination takes one
    divergence for the nominal and one for the ordinal attribute sets: ``GFR-iRBU+JSD+RNOD`` is the
    mean of iRBU, of GF-JSD of each nominal and of GF-RNOD of each ordinal attribute set of the
    topic. ``GFR-iRBU`` without any attribute set is NCU. ``ERR(group=large)`` is the part of ERR
    that the documents of a group bring; of a set's groups they sum to ERR.

    - :math:`L, k`: a ranked list, and the rank at which users stop
    - :math:`Decay(L, k)`: share of the users who stop at rank k
    - :math:`Utility(L, k)`: what they have by then
    - :math:`DistrSim^m(L, k)`: similarity of the groups met by then to the target, for
      attribute set m
    - :math:`w_0, w_m`: weights of utility and of attribute set m; they sum to 1
    - :math:`M`: number of attribute sets

    Parameters
    ----------
    runs : DataFrame, columns run, topic, document, rank, score
        Ranked lists, the rows of a list in file order; or whatever `equipoise.tidy_runs` takes.
        Topics that have no qrels are left out.
    qrels : DataFrame, columns topic, document, level
        Relevance levels; every topic in it is scored. Or whatever `equipoise.tidy_qrels` takes.
    memberships : mapping of str to DataFrame, columns topic, document and one per group
        By the name of the attribute set; without topic, for all topics. Or whatever
        `equipoise.tidy_memberships` takes.
    attributes : mapping of str to AttributeSet
        By name, for the same names; without any, the groups found in the memberships, nominal and
        wanted alike.
    decay : callable, optional
        Gains shaped (..., ranks) to the share of the users that leaves at each rank; the default is
        `stopping` with the largest gain.
    utilities : mapping of str to callable
        Utilities by the name of their measure.

    Returns
    -------
    DataFrame, columns run, topic, attribute, measure, value, seen
        Runs in their order, topics in ascending order and then "" for the mean over the topics.
        ``seen``: the share of the ranked documents, up to the cut-off, with the judgement or
        membership that the value rests on, of the parts of GFR the least; NaN where none is ranked.

    Raises
    ------
    InputError
        If no ranked document of a run has a judgement, or a membership in an attribute set, or no
        topic a list.
    ValueError
        If a document comes twice in a list, in the qrels or in memberships; a level has no gain;
        memberships and attribute sets are not the same or do not fit.

    Notes
    -----
    gfrc Eq. 1; the defaults are those of the NTCIR-17 FairWeb-1 evaluation program.

    Examples
    --------
    >>> ranked = {"document": ["a", "b"], "rank": [1, 2], "score": [2.0, 1.0]}
    >>> run = pd.DataFrame({"run": "r", "topic": "t", **ranked})
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
    members, sets = tidy_sets({} if memberships is None else memberships, attributes or {})
    weigh = each_weight(weights, [UTILITY, *sets])
    lists = lay_out(
        tidy_runs(runs), tidy_qrels(qrels), gains or "exponential", cutoff, order, unjudged
    )
    experiences = _experiences(
        lists, decay, members, sets, unrepresented, utilities, similarities, by_group
    )
    coverage = experiences.coverage
    judge((seen for of_part in coverage.values() for seen in of_part.seen), least_seen)

    # What a score could see: the documents of its part; of GFR, the least over all parts.
    scores, seen = {}, {}  # by attribute set and measure, each shaped (runs, topics)
    for (attribute, name), values in experiences.by_measure.items():
        key = attribute, name.replace("DistrSim-", "GF-")
        scores[key] = (experiences.leaving * values).sum(axis=-1)
        seen[key] = coverage[attribute].shares
    least_share: Floats = np.fmin.reduce([of_part.shares for of_part in coverage.values()])
    combined = _combinations(scores, sets, utilities, similarities, weigh, decimals)
    scores |= combined
    seen |= dict.fromkeys(combined, least_share)

    values = np.stack(list(scores.values()), axis=-1)  # (runs, topics, scores)
    # A topic without a list is worth nothing, unless it is left out of the means.
    if absent == "omitted":
        values[~lists.present] = np.nan
    values = _with_means(values).reshape(-1, len(scores))
    places = pd.DataFrame(product(lists.runs, [*lists.topics, ""]), columns=["run", "topic"])
    seen_at_places = {key: shares.ravel() for key, shares in seen.items()}
    return tidy_scores(places, dict(zip(scores, values.T, strict=True)), seen_at_places)


@checked
def gfr_clusters(
    runs: Any,
    qrels: Any,
    memberships: Any = None,
    attributes: Mapping[str, Any] | None = None,
    *,
    gains: options.LevelGains = None,
    cutoff: options.Cutoff = 20,
    order: options.Order = "file",
    unjudged: options.Unjudged = "nonrelevant",
    unrepresented: options.Unrepresented = "uniform",
    decay: Decay | None = None,
    utilities: Mapping[str, Utility] = UTILITIES,
    similarities: options.Similarities = _SIMILARITIES,
) -> pd.DataFrame:
    """The share, utility and DistrSim of each group of users that leaves a list at the same rank.

    Returns a table with the columns run, topic, rank, attribute, measure, value: for each rank from
    1 at which somebody leaves measure "share", each utility by name, and "DistrSim-JSD" and the
    like with their attribute set. A score of `gfr_table` is the sum of share times value over the
    ranks. The terms of gfrc Eq. 1.
    """
    members, sets = tidy_sets({} if memberships is None else memberships, attributes or {})
    lists = lay_out(
        tidy_runs(runs), tidy_qrels(qrels), gains or "exponential", cutoff, order, unjudged
    )
    experiences = _experiences(lists, decay, members, sets, unrepresented, utilities, similarities)
    run, topic, rank = np.nonzero(experiences.leaving > 0)
    places = pd.DataFrame(
        {"run": np.array(lists.runs)[run], "topic": lists.topics[topic], "rank": rank + 1}
    )
    scores = {("", "share"): experiences.leaving[run, topic, rank]}
    for key, values in experiences.by_measure.items():
        scores[key] = values[run, topic, rank]
    return tidy_scores(places, scores)
