"""Fairness of a ranked list from the exposure of groups: AWRF of documents, TED and TExFAIR of terms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Floats
from equipoise.declare import checked
from equipoise.divergences import DIVERGENCES
from equipoise.measures.ranking_bias.lists import attention_weights, declared, ratio, reached, sums_at, wanted_shares
from equipoise.options import Attention, Base, Cutoffs, Decay, Proportional, Shares, Short, Unaligned, Undefined

_CHAPTER_4 = ("thesis-ch4", "thesis")

Distance = Callable[[Floats, Floats], Floats]


def _l1(achieved: Floats, wanted: Floats) -> Floats:
    return np.abs(achieved - wanted).sum(axis=-1)


_DISTANCES: dict[str, Distance] = {"l1": _l1} | {name: entry.function for name, entry in DIVERGENCES.items()}


@checked
def share_alignment(magnitudes: ArrayLike, *, unrepresentative: Unaligned = "equal") -> Floats:
    r"""Alignment of a document to each group by its share of the representative terms (thesis Eq. 4.14).

    .. math:: a_d^G = M^G(d) / \sum_X M^X(d)

    ``magnitudes`` (shaped (..., groups)): occurrences of each group's terms. Returns ndarray, shaped (..., groups),
    which sums to 1, or to 0 for a document that belongs to no group. It forgets how often the terms occur, which is the
    paper's argument against it.
    """
    counts = np.asarray(magnitudes, dtype=np.float64)
    empty = 1 / counts.shape[-1] if unrepresentative == "equal" else 0.0
    return ratio(counts, counts.sum(axis=-1, keepdims=True), empty)


@declared(
    "AWRF", range="from 0; to 2 with L1", ideal="0", direction="lower is better", sources=("sapiezynski2019", "thesis")
)
def awrf(
    alignment: ArrayLike,
    cutoffs: Cutoffs,
    target: Shares | None = None,
    *,
    distance: str | Distance = "l1",
    attention: Attention = "log",
    persistence: Decay = 0.9,
    present: ArrayLike | None = None,
    undefined: Undefined = np.nan,
) -> Floats:
    r"""Attention-weighted rank fairness: distance between the groups' exposure and its target. Lower is fairer.

    .. math:: E = \sum_{r=1}^{k} v_r a_{d^r}, \quad AWRF = \Delta(E / \|E\|_1, \hat E)

    Parameters
    ----------
    alignment : array_like, shaped (..., ranks, groups)
        Association of each ranked document with each group, within [0, 1]; any, such as `share_alignment`.
    distance : str or callable, default "l1"
        "l1", the sum of absolute differences (that of TED); a name in `equipoise.divergences.DIVERGENCES`; or a
        function of the achieved and the target distribution, shaped (..., groups), that returns shape (...).
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        0 where the exposure meets its target; undefined where no group has any.

    Raises
    ------
    ValueError
        If the target is no distribution, the distance has no such name, or the shapes do not fit.

    Notes
    -----
    thesis Eqs. 4.4 to 4.6, after Sapiezynski et al. (2019).

    Examples
    --------
    >>> awrf([[1, 0], [0, 1]], [1, 2]).round(4)
    array([1.    , 0.2263])
    """
    between = distance if callable(distance) else _DISTANCES.get(distance)
    if between is None:
        raise ValueError(f"no distance named {distance!r}; there are {', '.join(_DISTANCES)}")
    aligned, at, held = reached(alignment, cutoffs, present, axis=-2)
    seen = attention_weights(aligned.shape[-2], attention, persistence=persistence) * held
    exposure = sums_at(aligned * seen[..., np.newaxis], at, axis=-2)
    total = exposure.sum(axis=-1)
    apart = between(ratio(exposure, total[..., np.newaxis], 0.0), wanted_shares(target, aligned.shape[-1]))
    return np.where(total > 0, apart, undefined)


@checked
def term_exposure(
    counts: ArrayLike, lengths: ArrayLike, cutoffs: Cutoffs, *, present: ArrayLike | None = None, base: Base = 2.0
) -> Floats:
    r"""Exposure of terms (or, summed over a group's terms, of groups) in a ranked list (thesis Eqs. 4.7 and 4.8).

    .. math:: TE@k(t, q) = \sum_{r=1}^{k} \frac{tf(t, d_q^r) / |d_q^r|}{\log_b(r + 1)}

    ``counts`` (shaped (..., ranks, terms)): occurrences of each term in each ranked document; magnitudes, shaped
    (..., ranks, groups), give the exposure of groups, since the sum over a group's terms comes first or last alike.
    ``lengths`` (shaped (..., ranks)): terms of the document, \|d\|; an empty document exposes nothing. ``present``
    (shaped (..., ranks)): which ranks hold a document; all where not given. Returns ndarray, shaped
    (..., cutoffs, terms); the base cancels in every measure made of exposures.
    """
    if np.shape(lengths) != np.shape(counts)[:-1]:
        raise ValueError(f"lengths are shaped {np.shape(lengths)}, wanted one for each rank, {np.shape(counts)[:-1]}")
    size, at, held = reached(lengths, cutoffs, present)
    weights = ratio(attention_weights(size.shape[-1], base=base) * held, size, 0.0)
    return sums_at(np.asarray(counts)[..., : size.shape[-1], :] * weights[..., np.newaxis], at, axis=-2)


@declared("RBDF", range="0 to 1", ideal="none", direction="neither", sources=_CHAPTER_4)
def rbdf(
    representative: ArrayLike, cutoffs: Cutoffs, *, present: ArrayLike | None = None, short: Short = "length"
) -> Floats:
    r"""Rank-biased discounting factor: the attention that goes to representative documents.

    .. math:: RBDF(q, k) = \frac{\sum_{r=1}^{k} 1[d_q^r \in S_R] / \log(r + 1)}{\sum_{r=1}^{k} 1 / \log(r + 1)}

    Parameters
    ----------
    representative : array_like of bool, shaped (..., ranks)
        Whether the document has at least one representative term of any group.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Between 0 (no representative document, or an empty list) and 1.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    thesis Eq. 4.11.

    Examples
    --------
    >>> rbdf([False, True, True], [1, 3]).round(4)
    array([0.    , 0.5307])
    """
    shown, at, held = reached(representative, cutoffs, present)
    weights = attention_weights(shown.shape[-1])
    whole = sums_at(weights * held if short == "length" else attention_weights(at.max()), at)
    return ratio(sums_at(weights * (shown.astype(np.bool_) & held), at), whole, 0.0)


def max_ted(target: Shares | None = None, groups: int = 2) -> float:
    r"""Largest TED that any ranked list can have: all exposure on the group that is wanted least.

    .. math:: \max(TED) = 2 (1 - \min_G \hat p_G)

    ``target``: as in `ted`; equal shares of ``groups`` groups where not given, so that it is 1 for two. thesis Eq. 4.13
    states it for two groups with equal targets only.
    """
    return float(2 * (1 - wanted_shares(target, groups if target is None else len(target)).min()))


def divergences(
    magnitudes: ArrayLike,
    lengths: ArrayLike,
    cutoffs: Cutoffs,
    target: Shares | None,
    present: ArrayLike | None,
    short: Short,
    unrepresentative: float = 0.0,
) -> tuple[Floats, Floats]:
    r"""TED with the factor RBDF, and without it, from one exposure; the arguments are those of `ted`.

    .. math:: p(G | q, k) = \frac{\sum_{t \in V_G} TE@k(t, q)}{\sum_X \sum_{t \in V_X} TE@k(t, q)}

    The share of each group in the exposure of all representative terms is thesis Eq. 4.9.
    """
    exposure = term_exposure(magnitudes, lengths, cutoffs, present=present)
    total = exposure.sum(axis=-1)
    apart = _l1(ratio(exposure, total[..., np.newaxis], np.nan), wanted_shares(target, exposure.shape[-1]))
    shown = (np.asarray(magnitudes).sum(axis=-1) > 0) & (np.asarray(lengths) > 0)
    discounted = apart * rbdf(shown, cutoffs, present=present, short=short)
    return np.where(total == 0, unrepresentative, discounted), np.where(total == 0, unrepresentative, apart)


def fairness(divergence: Floats, target: Shares | None, groups: int) -> Floats:
    """TExFAIR from TED."""
    return max_ted(target, groups) - divergence


@declared("TED", range="0 to max(TED)", ideal="0", direction="lower is better", sources=_CHAPTER_4)
def ted(
    magnitudes: ArrayLike,
    lengths: ArrayLike,
    cutoffs: Cutoffs,
    target: Shares | None = None,
    *,
    proportional: Proportional = True,
    present: ArrayLike | None = None,
    short: Short = "length",
    unrepresentative: Undefined = 0.0,
) -> Floats:
    r"""Term exposure-based divergence of a ranked list. Lower is fairer.

    .. math:: TED(q, k) = \sum_G |p(G | q, k) - \hat p_G| \cdot RBDF(q, k)

    Parameters
    ----------
    magnitudes : array_like, shaped (..., ranks, groups)
        Occurrences of each group's terms in each ranked document.
    lengths : array_like, shaped (..., ranks)
        Terms of the document. An empty document has none and is not representative.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Between 0 and `max_ted` of the target. A list without any representative term, where Eq. 4.9 is 0 / 0, shows
        no bias unless another value is chosen.

    Raises
    ------
    ValueError
        If the target is no distribution, or the shapes do not fit.

    Notes
    -----
    thesis Eqs. 4.10 and 4.12.

    Examples
    --------
    >>> magnitudes, lengths = [[2, 0], [0, 0], [0, 1]], [10, 10, 10]
    >>> ted(magnitudes, lengths, [1, 3]).round(4)
    array([1.    , 0.4224])
    >>> ted(magnitudes, lengths, [1, 3], proportional=False).round(4)
    array([1. , 0.6])
    """
    both = divergences(magnitudes, lengths, cutoffs, target, present, short, unrepresentative)
    return both[0 if proportional else 1]


@declared("TExFAIR", range="0 to max(TED)", ideal="max(TED)", direction="higher is better", sources=_CHAPTER_4)
def texfair(
    magnitudes: ArrayLike,
    lengths: ArrayLike,
    cutoffs: Cutoffs,
    target: Shares | None = None,
    *,
    proportional: Proportional = True,
    present: ArrayLike | None = None,
    short: Short = "length",
    unrepresentative: Undefined = 0.0,
) -> Floats:
    r"""Term exposure-based fairness of a ranked list. Higher is fairer.

    .. math:: TExFAIR(q, k) = \max(TED) - TED(q, k)

    Parameters
    ----------
    magnitudes : array_like, shaped (..., ranks, groups)
        Occurrences of each group's terms in each ranked document.
    lengths : array_like, shaped (..., ranks)
        Terms of the document.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Between 0 and `max_ted` of the target, which is 1 for two groups with equal targets. The paper means it with
        RBDF unless it says otherwise.

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
    both = divergences(magnitudes, lengths, cutoffs, target, present, short, unrepresentative)
    return fairness(both[0 if proportional else 1], target, np.shape(magnitudes)[-1])
