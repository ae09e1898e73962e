r"""Bias in a ranked list, from the terms that represent groups: NFaiRR, AWRF, TExFAIR and ARB.

Two steps, kept apart so that a collection is counted once and scored many times:

1. `count_terms` reads texts and counts the representative terms in each: a sparse matrix shaped (documents, terms) and
   the document lengths, in `TermCounts`. Which term stands for which group is decided afterwards, in `TermGroups`, so
   that another term list over the same vocabulary needs no second pass over the collection.
2. The kernels score rankings. They take arrays whose axis *ranks* is the order of the list, rank 1 first, with any
   leading axes (queries, runs), and return every cut-off at once along a last axis. Lists of different lengths are
   padded; ``present`` says which ranks hold a document. `score_ranking_bias` does both ends for tidy tables.

Every measure weighs rank r with the position bias 1 / log(r + 1). NFaiRR, AWRF, TED and TExFAIR are ratios in which the
base of the logarithm cancels; FaiRR alone depends on it.

References
----------
thesis chapter 4, Eqs. 4.1 to 4.14.
Rekabsaz, N., Kopeinik, S., Schedl, M. (2021): Societal Biases in Retrieved Contents, SIGIR 2021 (FaiRR, NFaiRR).
Rekabsaz, N., Schedl, M. (2020): Do Neural Ranking Models Intensify Gender Bias?, SIGIR 2020 (ARB).
Sapiezynski, P. et al. (2019): Quantifying the Impact of User Attention on Fair Group Representation in Ranked Lists,
WWW 2019 companion (AWRF).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from operator import itemgetter, methodcaller
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from equipoise.arrays import Booleans, Floats, Integers
from equipoise.divergences import DIVERGENCES

Attention = Literal["log", "geometric", "uniform"]
Short = Literal["length", "cutoff"]

_WORD = re.compile(r"[^\W_]+")


# --- Counting terms --------------------------------------------------------------------------------------------------


def _space(texts: Iterable[str]) -> list[list[str]]:
    return [list(filter(None, tokens)) for tokens in map(methodcaller("split", " "), texts)]


def _whitespace(texts: Iterable[str]) -> list[list[str]]:
    return list(map(str.split, texts))


def _word(texts: Iterable[str]) -> list[list[str]]:
    return list(map(_WORD.findall, texts))


TOKENS: Mapping[str, Callable[[Iterable[str]], list[list[str]]]] = MappingProxyType(
    {"space": _space, "whitespace": _whitespace, "word": _word}
)
"""How a lower-cased text falls into terms, by name. ``space``: between blanks, as the public NFaiRR program does, whose
texts are cleaned and tokenised beforehand. ``whitespace``: also between tabs and lines. ``word``: runs of letters and
digits; for raw text, where a comma, a full stop or a possessive 's would otherwise stick to the term. Empty terms do
not count."""


@dataclass(frozen=True)
class TermGroups:
    """Which representative term stands for which group.

    ``groups``: names of the groups, in the order of every axis *groups* and of the target. ``terms``: the terms,
    lower-cased, each once. ``membership`` (shaped (terms, groups)): True where the term represents the group: the
    sets V_G of Eq. 4.9.

    thesis section 4.2. A term in two groups counts for both, as in the public NFaiRR program.
    """

    groups: tuple[str, ...]
    terms: tuple[str, ...]
    membership: Booleans

    def __post_init__(self) -> None:
        if len(self.groups) < 2:
            raise ValueError(f"bias is between two groups or more, found {len(self.groups)}: {', '.join(self.groups)}")
        if len(set(self.terms)) != len(self.terms):
            raise ValueError("a representative term comes twice; terms are compared lower-cased")
        if self.membership.shape != (len(self.terms), len(self.groups)):
            raise ValueError(
                f"membership is shaped {self.membership.shape}, wanted {(len(self.terms), len(self.groups))}"
            )
        if empty := [group for group, column in zip(self.groups, self.membership.T, strict=True) if not column.any()]:
            raise ValueError(f"no representative term for {', '.join(empty)}")
        if loose := [term for term, row in zip(self.terms, self.membership, strict=True) if not row.any()]:
            raise ValueError(f"terms of no group: {', '.join(loose)}")

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]], groups: Sequence[str] | None = None) -> TermGroups:
        """Gather (term, group) pairs; terms are lower-cased and sorted, equal pairs count once.

        ``pairs``: Term and group. ``groups``: Order of the groups; sorted by name where not given.

        The lower-casing of the public NFaiRR program.
        """
        lowered = sorted({(term.lower(), group) for term, group in pairs})
        found = sorted({group for _, group in lowered})
        order = tuple(found if groups is None else groups)
        if unknown := [group for group in found if group not in order]:
            raise ValueError(f"terms of groups that are not asked for: {', '.join(unknown)}")
        terms = tuple(sorted({term for term, _ in lowered}))
        membership = np.zeros((len(terms), len(order)), dtype=np.bool_)
        if lowered:
            row = pd.Index(terms).get_indexer(pd.Index([term for term, _ in lowered]))
            membership[row, pd.Index(order).get_indexer(pd.Index([group for _, group in lowered]))] = True
        return cls(order, terms, membership)

    @property
    def shared(self) -> tuple[str, ...]:
        """Terms that represent more than one group."""
        return tuple(np.asarray(self.terms, dtype=object)[self.membership.sum(axis=1) > 1])


@dataclass(frozen=True)
class TermCounts:
    r"""How often each term occurs in each document of a collection.

    ``documents``: Document ids, strings, each once; the rows. ``terms``: the terms that were counted; the columns.
    ``counts`` (shaped (documents, terms)): Occurrences, tf(t, d). ``lengths`` (shaped (documents,)): All terms of
    the document, \|d\|, representative or not.

    thesis section 4.2 (tf) and Eq. 4.8 (\|d\|).
    """

    documents: pd.Index
    terms: tuple[str, ...]
    counts: sparse.csr_array
    lengths: Integers

    def magnitudes(self, groups: TermGroups) -> Floats:
        r"""Magnitude of each group in each document, :math:`M^G(d) = \sum_{t \in V_G} tf(t, d)`.

        ``groups``: any groups over the terms that were counted. Returns ndarray, shaped (documents, groups):
        Occurrences.

        thesis section 4.2.
        """
        columns = pd.Index(self.terms).get_indexer(pd.Index(groups.terms))
        if (columns < 0).any():
            absent = np.asarray(groups.terms, dtype=object)[columns < 0]
            raise ValueError(f"{absent.size} terms of the groups were not counted, such as {', '.join(absent[:3])}")
        weights = np.zeros((len(self.terms), len(groups.groups)))
        weights[columns] = groups.membership
        summed: Floats = np.asarray(self.counts @ weights, dtype=np.float64)
        return summed


def count_terms(
    documents: Iterable[tuple[str, str]],
    terms: Iterable[str],
    *,
    tokens: str = "space",
    batch: int = 8192,
) -> TermCounts:
    """Count the given terms in a stream of documents, in memory bounded by one batch of texts and the counts.

    ``documents``: Id and text; read once, a batch at a time, so that it may be a generator over a collection of any
    size. ``terms``: the terms to count; compared lower-cased. ``tokens``: how a text falls into terms, a name in
    `TOKENS`. The public NFaiRR program splits at blanks. ``batch``: Texts held at once.

    thesis section 4.2, tf(t, d) and the magnitude M; the public NFaiRR program for the lower-casing.
    """
    if tokens not in TOKENS:
        raise ValueError(f"no way of taking terms named {tokens!r}; there are {', '.join(TOKENS)}")
    vocabulary = tuple(sorted({term.lower() for term in terms}))
    if not vocabulary:
        raise ValueError("the list of terms is empty: nothing to count")
    column = {term: number for number, term in enumerate(vocabulary)}
    ids: list[pd.Index] = [pd.Index([], dtype="str")]
    lengths: list[Integers] = [np.empty(0, dtype=np.int64)]
    parts = [sparse.csr_array((0, len(vocabulary)), dtype=np.int32)]
    stream = iter(documents)
    while texts := list(islice(stream, batch)):
        split = TOKENS[tokens](map(str.lower, map(itemgetter(1), texts)))
        size = np.fromiter(map(len, split), dtype=np.int64, count=len(split))
        found = np.fromiter(
            map(column.get, chain.from_iterable(split), repeat(-1)), dtype=np.int32, count=int(size.sum())
        )
        hits = np.flatnonzero(found >= 0)
        row = np.searchsorted(np.cumsum(size), hits, side="right").astype(np.int32)
        ones = np.ones(hits.size, dtype=np.int32)
        shape = (len(texts), len(vocabulary))
        parts.append(sparse.csr_array(sparse.coo_array((ones, (row, found[hits])), shape=shape)))
        lengths.append(size)
        ids.append(pd.Index(list(map(itemgetter(0), texts)), dtype="str"))
    index = ids[0].append(ids[1:]).rename("document")
    if not index.is_unique:
        twice = index[index.duplicated()]
        raise ValueError(f"{len(twice)} documents come twice, such as {twice[0]}")
    return TermCounts(index, vocabulary, sparse.vstack(parts, format="csr"), np.concatenate(lengths))


# --- Kernels ---------------------------------------------------------------------------------------------------------


def _cutoffs(cutoffs: ArrayLike) -> Integers:
    at = np.atleast_1d(np.asarray(cutoffs))
    if at.ndim != 1 or at.size == 0 or not np.issubdtype(at.dtype, np.integer) or (at < 1).any():
        raise ValueError(f"cut-offs are whole numbers from 1, found {np.asarray(cutoffs).tolist()}")
    return at.astype(np.int64)


def _target(target: ArrayLike | None, groups: int) -> Floats:
    if target is None:
        return np.full(groups, 1 / groups)
    wanted = np.asarray(target, dtype=np.float64)
    if wanted.shape != (groups,):
        raise ValueError(f"the target is shaped {wanted.shape}, wanted one share for each of {groups} groups")
    if (wanted < 0).any() or not np.isclose(wanted.sum(), 1):
        raise ValueError(f"the target is no distribution: {wanted.tolist()} sums to {wanted.sum():g}")
    return wanted


def _first(values: ArrayLike, cutoffs: Integers, dtype: type, axis: int = -1) -> NDArray[Any]:
    """Keep the ranks that a cut-off can reach."""
    array = np.asarray(values)
    kept = array[..., : cutoffs.max()] if axis == -1 else array[..., : cutoffs.max(), :]
    return kept.astype(dtype, copy=False)


def _at(per_rank: Floats, cutoffs: Integers, axis: int) -> Floats:
    """Sum over the ranks up to each cut-off; ranks beyond the end of the list add nothing."""
    if per_rank.shape[axis] == 0:
        shape = list(per_rank.shape)
        shape[axis] = cutoffs.size
        return np.zeros(shape)
    total = np.cumsum(per_rank, axis=axis)
    taken: Floats = np.take(total, np.minimum(cutoffs, total.shape[axis]) - 1, axis=axis)
    return taken


def _held(present: ArrayLike | None, shape: tuple[int, ...], cutoffs: Integers | None = None) -> Booleans:
    """Which ranks hold a document, up to the largest cut-off; ``shape`` is that of the whole list."""
    held = np.broadcast_to(np.True_, shape) if present is None else np.asarray(present, dtype=np.bool_)
    if held.shape != shape:
        raise ValueError(f"present is shaped {held.shape}, wanted one value for each rank, {shape}")
    return held if cutoffs is None else held[..., : cutoffs.max()]


def _ratio(part: Floats, whole: Floats, otherwise: float) -> Floats:
    """Divide, with a value for 0 / 0 and for any other division by zero."""
    part, whole = np.broadcast_arrays(part, whole)
    ratio = np.full(part.shape, otherwise, dtype=np.float64)
    np.divide(part, whole, out=ratio, where=whole != 0)
    return ratio


def position_bias(ranks: int, attention: Attention = "log", *, base: float = 2.0, persistence: float = 0.9) -> Floats:
    r"""Weight of each rank: the attention it gets.

    .. math:: v_r = 1 / \log_b(r + 1) \quad\text{or}\quad v_r = \gamma^{r-1} \quad\text{or}\quad v_r = 1

    ``ranks``: Length of the list. ``attention``: the paper weighs by the logarithm; the others are the common
    choices of AWRF. ``base``: Base b of the logarithm; the paper leaves it open, the public NFaiRR program has 2.
    ``persistence``: the ratio of the geometric weights. Returns ndarray, shaped (ranks,): Without unit; 1 at rank 1
    for base 2.

    thesis Eqs. 4.2, 4.4 and 4.8.
    """
    if attention == "log":
        if not base > 1:
            raise ValueError(f"the base of a logarithm is above 1, found {base}")
        weights: Floats = np.log(base) / np.log(np.arange(1, ranks + 1) + 1)
    elif attention == "geometric":
        if not 0 < persistence <= 1:
            raise ValueError(f"the persistence is above 0 and at most 1, found {persistence}")
        weights = persistence ** np.arange(ranks, dtype=np.float64)
    elif attention == "uniform":
        weights = np.ones(ranks)
    else:
        raise ValueError(f"no attention named {attention!r}; there are log, geometric and uniform")
    return weights


def neutrality(
    magnitudes: ArrayLike,
    target: ArrayLike | None = None,
    *,
    threshold: float = 1.0,
    decimals: int | None = None,
) -> Floats:
    r"""Neutrality (unbiasedness) of documents.

    .. math::
        \omega(d) = \begin{cases} 1 & \sum_G M^G(d) \le \tau \\
        1 - \sum_G \left| M^G(d) / \sum_X M^X(d) - J_G \right| & \text{otherwise} \end{cases}

    Parameters
    ----------
    magnitudes : array_like, shaped (..., groups)
        Occurrences of each group's terms.
    target : array_like, shaped (groups,), optional
        The balanced share J of each group; equal shares where not given.
    threshold : float, default 1
        A document with at most so many occurrences is neutral; the public program has 1.
    decimals : int, optional
        Places to round to; none where not given. The public program writes the neutrality of documents to a file with
        6, and reads it again before it scores: 6 gives its NFaiRR to the last digit.

    Returns
    -------
    ndarray, shaped (...)
        1 for a neutral or balanced document. Two groups with equal targets keep it within [0, 1]; otherwise it can fall
        to :math:`1 - 2 (1 - \min J)`, below zero, as in the public program.

    Raises
    ------
    ValueError
        If a magnitude, the threshold or the places are negative, or the target is no distribution over the groups.

    Notes
    -----
    thesis Eq. 4.1, after Rekabsaz et al. (2021).

    Examples
    --------
    >>> neutrality([[2, 2], [3, 1], [4, 0], [1, 0]])
    array([1. , 0.5, 0. , 1. ])
    >>> neutrality([[2, 1]], decimals=6)
    array([0.666667])
    """
    counts = np.asarray(magnitudes, dtype=np.float64)
    if counts.min(initial=0.0) < 0:
        raise ValueError("a magnitude counts occurrences, found one below zero")
    if threshold < 0:
        raise ValueError(f"the threshold is a number of occurrences from 0, found {threshold}")
    wanted, each = _target(target, counts.shape[-1]), np.ones(counts.shape[-1])
    total = counts @ each  # a product with ones sums a short axis several times faster than sum does
    with np.errstate(invalid="ignore"):
        apart = counts / total[..., np.newaxis]
    apart -= wanted
    scored: Floats = np.where(total <= threshold, 1.0, 1.0 - np.abs(apart, out=apart) @ each)
    if decimals is None:
        return scored
    if decimals < 0:
        raise ValueError(f"places to round to are a whole number from 0, found {decimals}")
    values, place = np.unique(scored, return_inverse=True)  # few: written and read as the program does, not scaled
    rounded: Floats = np.char.mod(f"%.{decimals}f", values).astype(np.float64)[place].reshape(scored.shape)
    return rounded


def fairr(
    neutralities: ArrayLike, cutoffs: ArrayLike, *, present: ArrayLike | None = None, base: float = 2.0
) -> Floats:
    r"""Fairness of the retrieved results: neutrality discounted by rank.

    .. math:: FaiRR(q, k) = \sum_{r=1}^{\min(k, n)} \frac{\omega(d_q^r)}{\log_b(r + 1)}

    Parameters
    ----------
    neutralities : array_like, shaped (..., ranks)
        :math:`\omega` of the ranked documents.
    cutoffs : array_like of int, shaped (cutoffs,)
        Ranks k at which to stop; a shorter list stops at its own length n.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given.
    base : float, default 2
        Base of the logarithm, which the paper leaves open; the public program has 2.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        In units of the weight of rank 1; not comparable between cut-offs.

    Raises
    ------
    ValueError
        If a cut-off is not a whole number from 1, or the shapes do not fit.

    Notes
    -----
    thesis Eq. 4.2.

    Examples
    --------
    >>> fairr([1, 0, 1], [1, 3])
    array([1. , 1.5])
    """
    at = _cutoffs(cutoffs)
    held = _held(present, np.shape(neutralities), at)
    omega = _first(neutralities, at, np.float64)
    return _at(omega * position_bias(omega.shape[-1], base=base) * held, at, axis=-1)


def ideal_fairr(
    neutralities: ArrayLike, cutoffs: ArrayLike, *, present: ArrayLike | None = None, base: float = 2.0
) -> Floats:
    r"""Best FaiRR that any order of the background documents can reach.

    .. math:: IFaiRR(q, k, S) = \sum_{r=1}^{\min(k, |S|)} \frac{\omega_{(r)}}{\log_b(r + 1)},
        \quad \omega_{(1)} \ge \omega_{(2)} \ge \dots

    ``neutralities`` (shaped (..., background)): :math:`\omega` of the documents of the background set S, in any
    order. ``cutoffs`` (shaped (cutoffs,)): Ranks k. The paper writes IFaiRR without k; its program cuts at min(k,
    \|S\|), as here. A cut-off beyond the background gives the uncut ideal. ``present`` (shaped (..., background)):
    which places hold a document; all where not given. ``base``: Base of the logarithm, as in `fairr`. Returns
    ndarray, shaped (..., cutoffs).

    thesis Eq. 4.3, after Rekabsaz et al. (2021).
    """
    omega = np.asarray(neutralities, dtype=np.float64)
    at = _cutoffs(cutoffs)
    depth = min(int(at.max()), omega.shape[-1])
    # sorted by their negatives, with the documents that are not there last
    losses = -omega if present is None else np.where(_held(present, omega.shape), -omega, np.inf)
    if depth < omega.shape[-1]:
        losses = np.partition(losses, depth - 1, axis=-1)[..., :depth]
    best = -np.sort(losses, axis=-1)
    there = np.isfinite(best)
    return fairr(np.where(there, best, 0.0), at, present=there, base=base)


def nfairr(scores: ArrayLike, ideal: ArrayLike, *, undefined: float = np.nan) -> Floats:
    """Normalised fairness of the retrieved results, FaiRR / IFaiRR.

    Parameters
    ----------
    scores : array_like, shaped (..., cutoffs)
        From `fairr`.
    ideal : array_like, shaped (..., cutoffs) or (cutoffs,)
        From `ideal_fairr`, with the same base; they broadcast, so that one background may serve all queries.
    undefined : float, default nan
        Value where the ideal is zero: no order of the background set holds any neutrality, and 0 / 0 says nothing.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Within [0, 1] where the background set holds the ranked documents and neutrality is not negative.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    thesis Eq. 4.3.

    Examples
    --------
    >>> omega = [0, 1, 1]
    >>> nfairr(fairr(omega, [2]), ideal_fairr(omega, [2])).round(4)
    array([0.3869])
    """
    return _ratio(np.asarray(scores, dtype=np.float64), np.asarray(ideal, dtype=np.float64), undefined)


def share_alignment(magnitudes: ArrayLike, *, unrepresentative: Literal["equal", "none"] = "equal") -> Floats:
    r"""Alignment of a document to each group by its share of the representative terms.

    .. math:: a_d^G = M^G(d) / \sum_X M^X(d)

    ``magnitudes`` (shaped (..., groups)): Occurrences of each group's terms. ``unrepresentative``: A document
    without any representative term belongs equally to all groups, as the paper proposes, or to none. Returns
    ndarray, shaped (..., groups): Sums to 1, or to 0 for a document that belongs to none.

    thesis Eq. 4.14. It forgets how often the terms occur, which is the paper's argument against it.
    """
    if unrepresentative not in ("equal", "none"):
        raise ValueError(f"an unrepresentative document is 'equal' or 'none', found {unrepresentative!r}")
    counts = np.asarray(magnitudes, dtype=np.float64)
    empty = 1 / counts.shape[-1] if unrepresentative == "equal" else 0.0
    return _ratio(counts, counts.sum(axis=-1, keepdims=True), empty)


def awrf(
    alignment: ArrayLike,
    cutoffs: ArrayLike,
    target: ArrayLike | None = None,
    *,
    distance: str | Callable[[Floats, Floats], Floats] = "l1",
    attention: Attention = "log",
    persistence: float = 0.9,
    present: ArrayLike | None = None,
    undefined: float = np.nan,
) -> Floats:
    r"""Attention-weighted rank fairness: distance between the groups' exposure and its target. Lower is fairer.

    .. math:: E = \sum_{r=1}^{k} v_r a_{d^r}, \quad AWRF = \Delta(E / \|E\|_1, \hat E)

    Parameters
    ----------
    alignment : array_like, shaped (..., ranks, groups)
        Association of each ranked document with each group, within [0, 1]; any, such as `share_alignment`.
    cutoffs : array_like of int, shaped (cutoffs,)
        Ranks k at which to stop.
    target : array_like, shaped (groups,), optional
        Wanted share :math:`\hat E` of each group; equal shares where not given.
    distance : str or callable, default "l1"
        "l1", the sum of absolute differences (that of TED); a name in `equipoise.divergences.DIVERGENCES`; or a
        function of the achieved and the target distribution, shaped (..., groups), that returns shape (...).
    attention : {"log", "geometric", "uniform"}, default "log"
        Weight v of a rank, see `position_bias`.
    persistence : float, default 0.9
        For geometric attention.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given.
    undefined : float, default nan
        Value where no group has any exposure.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        0 where the exposure meets its target.

    Raises
    ------
    ValueError
        If a cut-off is not a whole number from 1, the target is no distribution, the distance has no such name, or
        the shapes do not fit.

    Notes
    -----
    thesis Eqs. 4.4 to 4.6, after Sapiezynski et al. (2019).

    Examples
    --------
    >>> awrf([[1, 0], [0, 1]], [1, 2]).round(4)
    array([1.    , 0.2263])
    """
    at = _cutoffs(cutoffs)
    held = _held(present, np.shape(alignment)[:-1], at)
    aligned = _first(alignment, at, np.float64, axis=-2)
    wanted = _target(target, aligned.shape[-1])
    seen = position_bias(aligned.shape[-2], attention, persistence=persistence) * held
    exposure = _at(aligned * seen[..., np.newaxis], at, axis=-2)
    total = exposure.sum(axis=-1)
    achieved = _ratio(exposure, total[..., np.newaxis], 0.0)
    if callable(distance):
        apart = distance(achieved, wanted)
    elif distance == "l1":
        apart = np.abs(achieved - wanted).sum(axis=-1)
    elif distance in DIVERGENCES:
        apart = DIVERGENCES[distance].function(achieved, wanted)
    else:
        raise ValueError(f"no distance named {distance!r}; there are l1, {', '.join(DIVERGENCES)}")
    scored: Floats = np.where(total > 0, apart, undefined)
    return scored


def term_exposure(
    counts: ArrayLike, lengths: ArrayLike, cutoffs: ArrayLike, *, present: ArrayLike | None = None, base: float = 2.0
) -> Floats:
    r"""Exposure of terms (or, summed over a group's terms, of groups) in a ranked list.

    .. math:: TE@k(t, q) = \sum_{r=1}^{k} \frac{tf(t, d_q^r) / |d_q^r|}{\log_b(r + 1)}

    ``counts`` (shaped (..., ranks, terms)): Occurrences of each term in each ranked document; magnitudes, shaped
    (..., ranks, groups), give the exposure of groups, since the sum over a group's terms comes first or last alike.
    ``lengths`` (shaped (..., ranks)): Terms of the document, \|d\|; an empty document exposes nothing. ``cutoffs``
    (shaped (cutoffs,)): Ranks k at which to stop. ``present`` (shaped (..., ranks)): which ranks hold a document;
    all where not given. ``base``: Base of the logarithm, which cancels in every measure made of exposures. Returns
    ndarray, shaped (..., cutoffs, terms).

    thesis Eqs. 4.7 and 4.8.
    """
    if np.shape(lengths) != np.shape(counts)[:-1]:
        raise ValueError(f"lengths are shaped {np.shape(lengths)}, wanted one for each rank, {np.shape(counts)[:-1]}")
    at = _cutoffs(cutoffs)
    held = _held(present, np.shape(lengths), at)
    times, size = _first(counts, at, np.float64, axis=-2), _first(lengths, at, np.float64)
    weights = _ratio(position_bias(size.shape[-1], base=base) * held, size, 0.0)
    return _at(times * weights[..., np.newaxis], at, axis=-2)


def group_representation(
    magnitudes: ArrayLike,
    lengths: ArrayLike,
    cutoffs: ArrayLike,
    *,
    present: ArrayLike | None = None,
    undefined: float = np.nan,
) -> Floats:
    r"""Share of each group in the exposure of all representative terms.

    .. math:: p(G | q, k) = \frac{\sum_{t \in V_G} TE@k(t, q)}{\sum_X \sum_{t \in V_X} TE@k(t, q)}

    ``magnitudes`` (shaped (..., ranks, groups)): Occurrences of each group's terms in each ranked document.
    ``lengths`` (shaped (..., ranks)): Terms of the document. ``cutoffs`` (shaped (cutoffs,)): Ranks k at which to
    stop. ``present`` (shaped (..., ranks)): which ranks hold a document; all where not given. ``undefined``: share
    of every group where the list has no representative term. Returns ndarray, shaped (..., cutoffs, groups): Sums
    to 1 over the groups.

    thesis Eq. 4.9.
    """
    exposure = term_exposure(magnitudes, lengths, cutoffs, present=present)
    return _ratio(exposure, exposure.sum(axis=-1, keepdims=True), undefined)


def rbdf(
    representative: ArrayLike, cutoffs: ArrayLike, *, present: ArrayLike | None = None, short: Short = "length"
) -> Floats:
    r"""Rank-biased discounting factor: the attention that goes to representative documents.

    .. math:: RBDF(q, k) = \frac{\sum_{r=1}^{k} 1[d_q^r \in S_R] / \log(r + 1)}{\sum_{r=1}^{k} 1 / \log(r + 1)}

    Parameters
    ----------
    representative : array_like of bool, shaped (..., ranks)
        Whether the document has at least one representative term of any group.
    cutoffs : array_like of int, shaped (cutoffs,)
        Ranks k at which to stop.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given.
    short : {"length", "cutoff"}, default "length"
        Where a list is shorter than k, the denominator stops at its length, or goes on to k.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Between 0 (no representative document, or an empty list) and 1.

    Raises
    ------
    ValueError
        If a cut-off is not a whole number from 1, there is no such choice, or the shapes do not fit.

    Notes
    -----
    thesis Eq. 4.11.

    Examples
    --------
    >>> rbdf([False, True, True], [1, 3]).round(4)
    array([0.    , 0.5307])
    """
    if short not in ("length", "cutoff"):
        raise ValueError(f"a short list ends at its 'length' or at the 'cutoff', found {short!r}")
    at = _cutoffs(cutoffs)
    held = _held(present, np.shape(representative), at)
    shown = _first(representative, at, np.bool_)
    weights = position_bias(shown.shape[-1])
    whole = _at(weights * held, at, axis=-1) if short == "length" else np.cumsum(position_bias(int(at.max())))[at - 1]
    return _ratio(_at(weights * (shown & held), at, axis=-1), whole, 0.0)


def max_ted(target: ArrayLike | None = None, groups: int = 2) -> float:
    r"""Largest TED that any ranked list can have: all exposure on the group that is wanted least.

    .. math:: \max(TED) = 2 (1 - \min_G \hat p_G)

    ``target`` (shaped (groups,)): Wanted share of each group; equal shares of ``groups`` groups where not given.
    ``groups``: number of groups where no target is given. Returns: 1 for two groups with equal targets.

    thesis Eq. 4.13, which states it for two groups with equal targets only.
    """
    wanted = _target(target, groups if target is None else int(np.size(target)))
    return float(2 * (1 - wanted.min()))


def ted(
    magnitudes: ArrayLike,
    lengths: ArrayLike,
    cutoffs: ArrayLike,
    target: ArrayLike | None = None,
    *,
    proportional: bool = True,
    present: ArrayLike | None = None,
    short: Short = "length",
    unrepresentative: float = 0.0,
) -> Floats:
    r"""Term exposure-based divergence of a ranked list. Lower is fairer.

    .. math:: TED(q, k) = \sum_G |p(G | q, k) - \hat p_G| \cdot RBDF(q, k)

    Parameters
    ----------
    magnitudes : array_like, shaped (..., ranks, groups)
        Occurrences of each group's terms in each ranked document.
    lengths : array_like, shaped (..., ranks)
        Terms of the document.
    cutoffs : array_like of int, shaped (cutoffs,)
        Ranks k at which to stop.
    target : array_like, shaped (groups,), optional
        Wanted share of each group; equal shares where not given.
    proportional : bool, default True
        With the discounting factor RBDF (Eq. 4.12), or without it (Eq. 4.10).
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given.
    short : {"length", "cutoff"}, default "length"
        How `rbdf` takes a list shorter than the cut-off.
    unrepresentative : float, default 0
        Value where no term represents any group, so that Eq. 4.9 is 0 / 0: such a list shows no bias.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Between 0 and `max_ted` of the target.

    Raises
    ------
    ValueError
        If a cut-off is not a whole number from 1, the target is no distribution, or the shapes do not fit.

    Notes
    -----
    thesis Eqs. 4.10 and 4.12. An empty document has no terms and is not representative.

    Examples
    --------
    >>> magnitudes, lengths = [[2, 0], [0, 0], [0, 1]], [10, 10, 10]
    >>> ted(magnitudes, lengths, [1, 3]).round(4)
    array([1.    , 0.4224])
    >>> ted(magnitudes, lengths, [1, 3], proportional=False).round(4)
    array([1. , 0.6])
    """
    achieved = group_representation(magnitudes, lengths, cutoffs, present=present)
    at = _cutoffs(cutoffs)
    held = _held(present, np.shape(lengths), at)
    counts, size = _first(magnitudes, at, np.float64, axis=-2), _first(lengths, at, np.float64)
    wanted = _target(target, counts.shape[-1])
    apart = np.abs(achieved - wanted).sum(axis=-1)
    if proportional:
        shown = (counts.sum(axis=-1) > 0) & (size > 0)
        apart = apart * rbdf(shown, at, present=held, short=short)
    divergence: Floats = np.where(np.isnan(achieved[..., 0]), unrepresentative, apart)
    return divergence


def texfair(
    magnitudes: ArrayLike,
    lengths: ArrayLike,
    cutoffs: ArrayLike,
    target: ArrayLike | None = None,
    *,
    proportional: bool = True,
    present: ArrayLike | None = None,
    short: Short = "length",
    unrepresentative: float = 0.0,
) -> Floats:
    r"""Term exposure-based fairness of a ranked list. Higher is fairer.

    .. math:: TExFAIR(q, k) = \max(TED) - TED(q, k)

    Parameters
    ----------
    magnitudes : array_like, shaped (..., ranks, groups)
        Occurrences of each group's terms in each ranked document.
    lengths : array_like, shaped (..., ranks)
        Terms of the document.
    cutoffs : array_like of int, shaped (cutoffs,)
        Ranks k at which to stop.
    target : array_like, shaped (groups,), optional
        Wanted share of each group; equal shares where not given.
    proportional : bool, default True
        With the discounting factor RBDF, which the paper means unless it says otherwise, or without it.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given.
    short : {"length", "cutoff"}, default "length"
        How `rbdf` takes a list shorter than the cut-off.
    unrepresentative : float, default 0
        TED of a list without any representative term.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Between 0 and `max_ted` of the target, which is 1 for two groups with equal targets.

    Raises
    ------
    ValueError
        As `ted`.

    Notes
    -----
    thesis Eq. 4.13.

    Examples
    --------
    >>> texfair([[2, 0], [0, 2]], [10, 10], [2]).round(4)
    array([0.7737])
    """
    divergence = ted(
        magnitudes,
        lengths,
        cutoffs,
        target,
        proportional=proportional,
        present=present,
        short=short,
        unrepresentative=unrepresentative,
    )
    fairness: Floats = max_ted(target, np.shape(magnitudes)[-1]) - divergence
    return fairness


def _log_magnitude(counts: Floats) -> Floats:
    logarithm: Floats = np.log1p(counts)
    return logarithm


MAGNITUDES: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType(
    {"log": _log_magnitude, "count": np.asarray, "boolean": lambda counts: (counts > 0).astype(np.float64)}
)
"""How ARB takes a count c of a group's terms: ``log``, ln(c + 1), the *tf* of its public program; ``count``, c itself;
``boolean``, 1 where c > 0."""


def arb(
    magnitudes: ArrayLike,
    cutoffs: ArrayLike,
    *,
    towards: int = 1,
    against: int = 0,
    magnitude: str = "log",
    present: ArrayLike | None = None,
    undefined: float = np.nan,
) -> Floats:
    r"""Average rank bias: how far the list leans from one group towards another. Zero is unbiased.

    .. math:: RaB_x(q) = \frac1x \sum_{i=1}^{x} \left(m^{G}(d_i) - m^{H}(d_i)\right), \quad
        ARB_k(q) = \frac1k \sum_{x=1}^{k} RaB_x(q)

    Parameters
    ----------
    magnitudes : array_like, shaped (..., ranks, groups)
        Occurrences of each group's terms in each ranked document.
    cutoffs : array_like of int, shaped (cutoffs,)
        Ranks k; a shorter list is averaged over its own ranks, as in the public program.
    towards, against : int, default 1 and 0
        Positions of the groups G and H. The public program subtracts female from male: with the groups in order of
        their names (f, m) these are the defaults.
    magnitude : str, default "log"
        How a count enters, a name in `MAGNITUDES`.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; they are the first ones. All where not given.
    undefined : float, default nan
        Value of an empty list.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Signed and without bound, in the unit of the magnitude.

    Raises
    ------
    ValueError
        If a cut-off is not a whole number from 1, or there is no such magnitude.

    Notes
    -----
    Rekabsaz and Schedl (2020); thesis section 4.2 names it among the existing measures.

    Examples
    --------
    >>> arb([[0, 1], [1, 0]], [1, 2], magnitude="count")
    array([1. , 0.5])
    """
    if magnitude not in MAGNITUDES:
        raise ValueError(f"no magnitude named {magnitude!r}; there are {', '.join(MAGNITUDES)}")
    at = _cutoffs(cutoffs)
    held = _held(present, np.shape(magnitudes)[:-1], at)
    counts = _first(magnitudes, at, np.float64, axis=-2)
    lean = MAGNITUDES[magnitude](counts[..., towards]) - MAGNITUDES[magnitude](counts[..., against])
    ranks = np.arange(1, lean.shape[-1] + 1)
    running = np.where(held, np.cumsum(np.where(held, lean, 0.0), axis=-1) / ranks, 0.0)
    listed = _at(held.astype(np.float64), at, axis=-1)
    return _ratio(_at(running, at, axis=-1), listed, undefined)


# --- Tidy tables -----------------------------------------------------------------------------------------------------


def _lists(run: pd.DataFrame, counts: TermCounts, depth: int | None) -> tuple[pd.DataFrame, Integers, Booleans]:
    """Rankings as a matrix of rows of the collection, padded with -1, shaped (lists, ranks), best first."""
    ordered = run.sort_values(["run", "topic", "rank"], kind="stable")
    place = ordered.groupby(["run", "topic"], sort=False).cumcount().to_numpy()
    if depth is not None:
        ordered, place = ordered[place < depth], place[place < depth]
    keys = ordered[["run", "topic"]].drop_duplicates(ignore_index=True)
    number = ordered.groupby(["run", "topic"], sort=False).ngroup().to_numpy()
    shape = (len(keys), int(place.max(initial=-1)) + 1)
    rows, present = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
    rows[number, place] = counts.documents.get_indexer(pd.Index(ordered["document"], dtype="str"))
    present[number, place] = True
    return keys, rows, present


def _refuse_duplicates(table: pd.DataFrame, what: str) -> None:
    twice = table.duplicated(["run", "topic", "document"])
    if twice.any():
        first = table[twice].iloc[0]
        raise ValueError(
            f"{int(twice.sum())} documents come twice in the {what}, such as document {first['document']} "
            f"for topic {first['topic']} of run {first['run']}; keep each once"
        )


def score_ranking_bias(
    runs: pd.DataFrame,
    counts: TermCounts,
    groups: TermGroups,
    *,
    cutoffs: Sequence[int] = (10,),
    target: ArrayLike | None = None,
    background: pd.DataFrame | Literal["own", "collection"] = "collection",
    attribute: str = "",
    threshold: float = 1.0,
    decimals: int | None = None,
    base: float = 2.0,
    short: Short = "length",
    magnitude: str = "log",
    towards: int = 1,
    against: int = 0,
    missing: Literal["neutral", "refuse"] = "neutral",
    undefined: float = np.nan,
) -> pd.DataFrame:
    """Every measure of this module for every run, topic and cut-off.

    ``runs``: Columns ``run, topic, document, rank``: one row for each ranked document, rank 1 best. ``counts``: the
    counted collection. ``groups``: the groups and their terms. ``cutoffs``: Ranks k at which to stop. ``target``
    (shaped (groups,)): Wanted share of each group; equal shares where not given. ``background``: the background set
    of NFaiRR: a table with columns ``topic, document``; the documents of each list itself; or the whole collection,
    as the thesis has it. ``attribute``: name of the attribute set, for the column ``attribute``. ``threshold``:
    Occurrences up to which a document is neutral (Eq. 4.1). ``decimals``: Places that the `neutrality` of documents
    is rounded to; the public program has 6. ``base``: Base of the logarithm, which only FaiRR depends on.
    ``short``: how `rbdf` takes a list shorter than the cut-off. ``magnitude``: how `arb` takes a count.
    ``towards``, ``against``: Groups that `arb` compares. ``missing``: A document that the collection does not hold
    counts as one without representative terms, as in the public program, and a warning says how many there are; or
    it is an error. ``undefined``: NFaiRR where its ideal is zero. Returns: Columns ``run, topic, attribute,
    measure, value``; measures ``NFaiRR@k``, ``FaiRR@k``, ``TED@k``, ``TED(proportional=False)@k``, ``TExFAIR@k``,
    ``TExFAIR(proportional=False)@k`` and ``ARB@k``. Topic ``all`` is the mean over the topics; one undefined topic
    makes it undefined.

    thesis Eqs. 4.1 to 4.13.
    """
    if runs.empty:
        raise ValueError("the runs hold no document")
    if missing not in ("neutral", "refuse"):
        raise ValueError(f"a missing document is 'neutral' or 'refuse', found {missing!r}")
    if (runs["topic"] == "all").any():
        raise ValueError("a topic is called 'all', the name of the mean over the topics")
    _refuse_duplicates(runs, "runs")
    at = _cutoffs(list(cutoffs))
    # the last row stands for padding and for documents that are not in the collection
    magnitudes = np.vstack([counts.magnitudes(groups), np.zeros((1, len(groups.groups)))])
    lengths = np.append(counts.lengths, 0)
    omega = neutrality(magnitudes, target, threshold=threshold, decimals=decimals)

    own = isinstance(background, str) and background == "own"
    keys, rows, present = _lists(runs, counts, None if own else int(at.max()))
    if (rows[present] < 0).any():
        named = runs.loc[~runs["document"].isin(counts.documents), "document"].unique()
        said = f"{len(named)} documents of the runs are not in the collection, such as {', '.join(named[:3])}"
        if missing == "refuse":
            raise ValueError(said)
        warnings.warn(f"{said}: each counts as one without representative terms", stacklevel=2)

    if isinstance(background, pd.DataFrame):
        absent = sorted(set(keys["topic"]) - set(background["topic"]))
        if absent:
            raise ValueError(f"the background lacks {len(absent)} topics of the runs, such as {', '.join(absent[:3])}")
        pool = background[["topic", "document"]].drop_duplicates().assign(run="", rank=0)
        pool_keys, pool_rows, pool_present = _lists(pool, counts, None)
        ideal = ideal_fairr(omega[pool_rows], at, present=pool_present, base=base)
        ideal = ideal[pd.Index(pool_keys["topic"]).get_indexer(pd.Index(keys["topic"]))]
    elif own:
        ideal = ideal_fairr(omega[rows], at, present=present, base=base)
    elif background == "collection":
        ideal = ideal_fairr(omega[:-1], at, base=base)
    else:
        raise ValueError(f"the background is a table, 'own' or 'collection', found {background!r}")

    fair = fairr(omega[rows], at, present=present, base=base)
    shown, size = magnitudes[rows], lengths[rows]
    divergence = ted(shown, size, at, target, present=present, short=short)
    plain = ted(shown, size, at, target, present=present, short=short, proportional=False)
    most = max_ted(target, len(groups.groups))
    scores = {
        "NFaiRR": nfairr(fair, ideal, undefined=undefined),
        "FaiRR": fair,
        "TED": divergence,
        "TED(proportional=False)": plain,
        "TExFAIR": most - divergence,
        "TExFAIR(proportional=False)": most - plain,
        "ARB": arb(shown, at, towards=towards, against=against, magnitude=magnitude, present=present),
    }
    names = [f"{name}@{k}" for name in scores for k in at]
    wide = pd.DataFrame(np.concatenate(list(scores.values()), axis=1), columns=names)
    wide = pd.concat([keys, wide], axis=1)
    means = wide.groupby("run", sort=True)[names].mean(skipna=False).reset_index()
    wide = pd.concat([wide, means.assign(topic="all")], ignore_index=True).assign(attribute=attribute)
    return wide.melt(["run", "topic", "attribute"], names, "measure", "value").reset_index(drop=True)
