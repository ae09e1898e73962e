"""Balance of the groups in a ranked list: AWRF of documents, TED and TExFAIR of terms, ARB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise import options
from equipoise.arrays import Floats, ratio, starts
from equipoise.declare import checked
from equipoise.divergences import DIVERGENCES
from equipoise.measures.ranked_lists import (
    attention_weights,
    sums_at,
    target_shares,
    term_exposure,
    within_cutoffs,
)
from equipoise.measures.ranking_bias.document_neutrality import declared
from equipoise.measures.tied_scores import orders_of_ties
from equipoise.options import Cutoffs, Proportional, Shares, Short, Undefined

_CHAPTER_4 = ("thesis-ch4", "thesis")

Distance = Callable[[Floats, Floats], Floats]


def _l1(achieved: Floats, target: Floats) -> Floats:
    return np.abs(achieved - target).sum(axis=-1)


SIZES: dict[str, Callable[[Floats], Floats]] = {
    "log": np.log1p,
    "count": np.asarray,
    "boolean": np.sign,
}
_DISTANCES: dict[str, Distance] = {"l1": _l1} | {
    name: entry.function for name, entry in DIVERGENCES.items()
}


@checked
def share_alignment(
    magnitudes: ArrayLike, *, unrepresentative: options.Unaligned = "equal"
) -> Floats:
    r"""Alignment of a document to each group by its share of the terms (thesis Eq. 4.14).

    .. math:: a_d^G = M^G(d) / \sum_X M^X(d)

    ``magnitudes`` (shaped (..., groups)): occurrences of each group's terms. Returns ndarray,
    shaped (..., groups), which sums to 1, or to 0 for a document that belongs to no group. It
    forgets how often the terms occur, which is the paper's argument against it.
    """
    counts = np.asarray(magnitudes, dtype=np.float64)
    empty = 1 / counts.shape[-1] if unrepresentative == "equal" else 0.0
    return ratio(counts, counts.sum(axis=-1, keepdims=True), empty)


@declared(
    "AWRF",
    range="from 0; to 2 with L1",
    ideal="0",
    direction="lower is better",
    sources=("sapiezynski2019", "thesis"),
)
def awrf(
    alignment: ArrayLike,
    cutoffs: Cutoffs,
    target: Shares | None = None,
    *,
    distance: str | Distance = "l1",
    attention: options.Attention = "log",
    persistence: options.Decay = 0.9,
    present: ArrayLike | None = None,
    undefined: Undefined = np.nan,
) -> Floats:
    r"""Attention-weighted rank fairness: distance of the groups' exposure from its target.

    .. math:: E = \sum_{r=1}^{k} v_r a_{d^r}, \quad AWRF = \Delta(E / \|E\|_1, \hat E)

    - :math:`v_r`: attention that rank r gets
    - :math:`a_{d^r}`: association of the document at rank r with each group
    - :math:`E`: exposure of the groups down to rank k
    - :math:`\hat E`: its target
    - :math:`\Delta`: a distance of distributions, by default the sum of absolute differences
    - :math:`k`: the cut-off

    Parameters
    ----------
    alignment : array_like, shaped (..., ranks, groups)
        Association of each ranked document with each group, within [0, 1]; any, such as
        `share_alignment`.
    distance : str or callable, default "l1"
        "l1", the sum of absolute differences (that of TED); a name in
        `equipoise.divergences.DIVERGENCES`; or a function of the achieved and the target
        distribution, shaped (..., groups), that returns shape (...).
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
    divergence = distance if callable(distance) else _DISTANCES.get(distance)
    if divergence is None:
        raise ValueError(f"no distance named {distance!r}; there are {', '.join(_DISTANCES)}")
    aligned, depths, is_present = within_cutoffs(alignment, cutoffs, present, axis=-2)
    weights = attention_weights(aligned.shape[-2], attention, persistence=persistence)
    weights = weights * is_present
    exposure = sums_at(aligned * weights[..., np.newaxis], depths, axis=-2)
    total = exposure.sum(axis=-1)
    # Shares of the exposure that the groups get together; documents of none take no part.
    achieved = ratio(exposure, total[..., np.newaxis], 0.0)
    gaps = divergence(achieved, target_shares(target, aligned.shape[-1]))
    return np.where(total > 0, gaps, undefined)


@declared("RBDF", range="0 to 1", ideal="none", direction="neither", sources=_CHAPTER_4)
def rbdf(
    representative: ArrayLike,
    cutoffs: Cutoffs,
    *,
    present: ArrayLike | None = None,
    short: Short = "length",
) -> Floats:
    r"""Rank-biased discounting factor: the attention that goes to representative documents.

    .. math:: RBDF(q, k) = \frac{\sum_{r=1}^{k} 1[d_q^r \in S_R] / \log(r + 1)}{\sum_{r=1}^{k} 1 /
    \log(r + 1)}

    - :math:`q, k`: a query, and the cut-off
    - :math:`d_q^r`: the document at rank r of the list for q
    - :math:`S_R`: the documents with at least one representative term of any group

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
    has_term, depths, is_present = within_cutoffs(representative, cutoffs, present)
    weights = attention_weights(has_term.shape[-1])
    if short == "length":
        attention = sums_at(weights * is_present, depths)
    else:
        attention = sums_at(attention_weights(depths.max()), depths)
    to_representative = sums_at(weights * (has_term.astype(np.bool_) & is_present), depths)
    return ratio(to_representative, attention, 0.0)


def max_ted(target: Shares | None = None, groups: int = 2) -> float:
    r"""Largest TED that any ranked list can have: all exposure on the group that is wanted least.

    .. math:: \max(TED) = 2 (1 - \min_G \hat p_G)

    ``target``: as in `ted`; equal shares of ``groups`` groups where not given, so that it is 1 for
    two. thesis Eq. 4.13 states it for two groups with equal targets only.
    """
    if target is not None:
        groups = len(target)
    return float(2 * (1 - target_shares(target, groups).min()))


def divergences(
    magnitudes: Any,
    lengths: Any,
    cutoffs: Any,
    target: Any,
    present: Any,
    short: Short,
    unrepresentative: float = 0.0,
) -> tuple[Floats, Floats]:
    """`ted` without RBDF and with it, from one exposure."""
    # Without any exposure of the groups p(G | q, k) is 0 / 0, and what is returned a choice.
    exposure = term_exposure(magnitudes, lengths, cutoffs, present=present)
    total = exposure.sum(axis=-1)
    achieved = ratio(exposure, total[..., np.newaxis], np.nan)
    gaps = _l1(achieved, target_shares(target, exposure.shape[-1]))

    # Nobody reads beyond the deepest cut-off.
    deepest = int(np.max(cutoffs))
    occurrences = np.asarray(magnitudes)[..., :deepest, :].sum(axis=-1)
    representative = (occurrences > 0) & (np.asarray(lengths)[..., :deepest] > 0)
    read = None if present is None else np.asarray(present)[..., :deepest]
    discounted = gaps * rbdf(representative, cutoffs, present=read, short=short)
    plain = np.where(total == 0, unrepresentative, gaps)
    return plain, np.where(total == 0, unrepresentative, discounted)


def expected_divergences(
    magnitudes: Any,
    lengths: Any,
    cutoffs: Any,
    target: Any,
    present: Any,
    short: Short,
    first_rank: Any,
    last_rank: Any,
) -> tuple[Floats, Floats]:
    """`divergences` as means over the orders that ties leave open.

    ``first_rank``, ``last_rank``: of `tied_spans`.
    """
    plain_means, discounted_means = [], []
    for cutoff in cutoffs:
        list_of_order, places = orders_of_ties(first_rank, last_rank, cutoff)
        documents = (list_of_order[:, np.newaxis], places)  # (orders, ranks)
        plain, discounted = divergences(
            magnitudes[documents], lengths[documents], [cutoff], target, present[documents], short
        )
        # The orders of a list come one after the other.
        begins = starts(list_of_order)
        n_orders = np.diff(begins, append=len(list_of_order))[:, np.newaxis]
        plain_means.append(np.add.reduceat(plain, begins) / n_orders)
        discounted_means.append(np.add.reduceat(discounted, begins) / n_orders)
    return np.concatenate(plain_means, axis=1), np.concatenate(discounted_means, axis=1)


def fairness(divergence: Floats, target: Any, groups: int) -> Floats:
    """`texfair` of a TED."""
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

    - :math:`q, k`: a query, and the cut-off
    - :math:`p(G | q, k)`: share of group G in the term exposure of the list: its terms in each
      document, as a share of the document's words, weighted by rank
    - :math:`\hat p_G`: target share of group G
    - :math:`RBDF`: the attention that goes to representative documents, above; left out with
      proportional = False

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
        Between 0 and `max_ted` of the target. A list without any representative term, where Eq. 4.9
        is 0 / 0, shows no bias unless another value is chosen.

    Raises
    ------
    ValueError
        If the target is no distribution, or the shapes do not fit.

    Notes
    -----
    thesis Eqs. 4.10 and 4.12; :math:`p(G | q, k)` (Eq. 4.9) is the share of the group's terms in
    the exposure of all representative terms.

    Examples
    --------
    >>> magnitudes, lengths = [[2, 0], [0, 0], [0, 1]], [10, 10, 10]
    >>> ted(magnitudes, lengths, [1, 3]).round(4)
    array([1.    , 0.4224])
    >>> ted(magnitudes, lengths, [1, 3], proportional=False).round(4)
    array([1. , 0.6])
    """
    plain, discounted = divergences(
        magnitudes, lengths, cutoffs, target, present, short, unrepresentative
    )
    return discounted if proportional else plain


@declared(
    "TExFAIR",
    range="0 to max(TED)",
    ideal="max(TED)",
    direction="higher is better",
    sources=_CHAPTER_4,
)
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

    - :math:`q, k`: a query, and the cut-off
    - :math:`TED`: the term exposure-based divergence above, which counts representative
      documents only
    - :math:`\max(TED)`: the largest TED that any list can have: all exposure on the group that
      is wanted least, 2 (1 - smallest target share); 1 for two groups with equal targets

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
        Between 0 and `max_ted` of the target, which is 1 for two groups with equal targets. The
        paper means it with RBDF unless it says otherwise.

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
    return fairness(divergence, target, np.shape(magnitudes)[-1])


@declared("ARB", range="no bounds", ideal="0", direction="neither", sources=("rekabsaz2020",))
def arb(
    magnitudes: ArrayLike,
    cutoffs: Cutoffs,
    *,
    towards: options.GroupPlace = 1,
    against: options.GroupPlace = 0,
    magnitude: options.Magnitude = "log",
    present: ArrayLike | None = None,
    undefined: Undefined = np.nan,
) -> Floats:
    r"""Average rank bias: how far the list leans from one group towards another. Zero is unbiased.

    .. math:: RaB_x(q) = \frac1x \sum_{i=1}^{x} \left(m^{G}(d_i) - m^{H}(d_i)\right), \quad
        ARB_k(q) = \frac1k \sum_{x=1}^{k} RaB_x(q)

    - :math:`q`: a query
    - :math:`x, i`: ranks, from 1
    - :math:`d_i`: the document at rank i
    - :math:`m^{G}, m^{H}`: magnitude of the groups' terms in a document, by default log(1 +
      occurrences) summed over the terms
    - :math:`RaB_x, ARB_k`: the lean of the first x documents, and its mean over the first k

    Parameters
    ----------
    magnitudes : array_like, shaped (..., ranks, groups)
        Occurrences of each group's terms in each ranked document. The public program subtracts
        female from male: with the groups in order of their names (f, m) that is the default.
    towards, against : int
        Places of the groups G and H: the bias is positive for the one and negative for the other.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; they are the first ones. All where not given.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Signed and without bound, in the unit of the magnitude; undefined for an empty list. A list
        shorter than k is averaged over its own ranks, as in the public program.

    Raises
    ------
    ValueError
        If the shapes do not fit, there is no such group, or both are the same.

    Notes
    -----
    Rekabsaz and Schedl (2020); thesis section 4.2 names it among the existing measures.

    Examples
    --------
    >>> arb([[0, 1], [1, 0]], [1, 2], magnitude="count")
    array([1. , 0.5])
    """
    counts, depths, is_present = within_cutoffs(
        np.asarray(magnitudes, dtype=np.float64), cutoffs, present, axis=-2
    )
    n_groups = counts.shape[-1]
    if towards == against or max(towards, against) >= n_groups:
        raise ValueError(
            f"towards {towards} and against {against} must be two of the {n_groups} groups, from 0"
        )
    size = SIZES[magnitude]
    lean = size(counts[..., towards]) - size(counts[..., against])
    sums = np.cumsum(np.where(is_present, lean, 0.0), axis=-1)
    bias_at_rank = np.where(is_present, sums / np.arange(1, sums.shape[-1] + 1), 0.0)  # RaB
    n_ranks = sums_at(is_present.astype(np.float64), depths)
    return ratio(sums_at(bias_at_rank, depths), n_ranks, undefined)
