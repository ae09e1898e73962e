"""Fairness of a ranked list from the neutrality of its documents: FaiRR and NFaiRR."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, ratio
from equipoise.declare import measure
from equipoise.measures.ranked_lists import (
    attention_weights,
    sums_at,
    target_shares,
    within_cutoffs,
)
from equipoise.options import Base, Cutoffs, Places, Shares, Threshold, Undefined

declared = partial(measure, family="Ranked lists: bias in their terms")

_BLOCK = 1 << 14
"""Documents worked on at a time: they stay in the processor's cache."""

_neutral = partial(declared, direction="higher is better", sources=("rekabsaz2021", "thesis"))


@_neutral("Neutrality", range="0 to 1 for two groups with equal targets", ideal="1")
def neutrality(
    magnitudes: ArrayLike,
    target: Shares | None = None,
    *,
    threshold: Threshold = 1.0,
    decimals: Places | None = None,
) -> Floats:
    r"""Neutrality (unbiasedness) of documents.

    .. math::
        \omega(d) = \begin{cases} 1 & \sum_G M^G(d) \le \tau \\
        1 - \sum_G \left| M^G(d) / \sum_X M^X(d) - J_G \right| & \text{otherwise} \end{cases}

    - :math:`\omega(d), d`: the neutrality of a document, and the document
    - :math:`G, X`: groups
    - :math:`M^G(d)`: occurrences of the terms of group G in the document; M^X(d) those of group
      X
    - :math:`J_G`: target share of group G
    - :math:`\tau`: threshold: a document with no more occurrences is neutral

    Parameters
    ----------
    magnitudes : array_like, shaped (..., groups)
        Occurrences of each group's terms.

    Returns
    -------
    ndarray, shaped (...)
        1 for a neutral or balanced document. Two groups with equal targets keep it within [0, 1];
        otherwise it can fall to :math:`1 - 2 (1 - \min J)`, below zero, as in the public program.

    Raises
    ------
    ValueError
        If a magnitude is negative, or the target is no distribution over the groups.

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
    shares = target_shares(target, counts.shape[-1])[:, np.newaxis]
    omega = np.empty(counts.shape[:-1])
    documents, flat_omega = counts.reshape(-1, counts.shape[-1]), omega.reshape(-1)
    for start in range(0, len(documents), _BLOCK):
        # (groups, documents): sums along a short last axis would be slow
        gaps = documents[start : start + _BLOCK].T.copy("C")
        total = gaps.sum(axis=0)
        with np.errstate(invalid="ignore"):
            gaps /= total
        gaps -= shares
        bias = np.abs(gaps, out=gaps).sum(axis=0)
        flat_omega[start : start + _BLOCK] = np.where(total <= threshold, 1.0, 1.0 - bias)
    if decimals is None:
        return omega
    # There are few different values: they are written and read, as the program does, not scaled.
    distinct, place = np.unique(omega, return_inverse=True)
    rounded = np.char.mod(f"%.{decimals}f", distinct).astype(np.float64)
    return rounded[place].reshape(omega.shape)


@_neutral("FaiRR", range="from 0, no bound", ideal="IFaiRR")
def fairr(
    neutralities: ArrayLike, cutoffs: Cutoffs, *, present: ArrayLike | None = None, base: Base = 2.0
) -> Floats:
    r"""Fairness of the retrieved results: neutrality discounted by rank.

    .. math:: FaiRR(q, k) = \sum_{r=1}^{\min(k, n)} \frac{\omega(d_q^r)}{\log_b(r + 1)}

    - :math:`q, k`: a query, and the cut-off
    - :math:`d_q^r`: the document at rank r of the list for q
    - :math:`\omega`: its neutrality
    - :math:`n`: length of the list
    - :math:`b`: base of the logarithm

    Parameters
    ----------
    neutralities : array_like, shaped (..., ranks)
        :math:`\omega` of the ranked documents.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given. A list shorter than k stops at its own
        length n.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        In units of the weight of rank 1; not comparable between cut-offs.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    thesis Eq. 4.2.

    Examples
    --------
    >>> fairr([1, 0, 1], [1, 3])
    array([1. , 1.5])
    """
    omega, depths, is_present = within_cutoffs(neutralities, cutoffs, present)
    attention = attention_weights(omega.shape[-1], base=base)
    return sums_at(omega * attention * is_present, depths)


def ideal_fairr(
    neutralities: ArrayLike, cutoffs: Cutoffs, *, present: ArrayLike | None = None, base: Base = 2.0
) -> Floats:
    r"""Best FaiRR that any order of the background documents can reach (thesis Eq. 4.3).

    .. math:: IFaiRR(q, k, S) = \sum_{r=1}^{\min(k, |S|)} \frac{\omega_{(r)}}{\log_b(r + 1)},
        \quad \omega_{(1)} \ge \omega_{(2)} \ge \dots

    ``neutralities`` (shaped (..., background)): :math:`\omega` of the documents of the background
    set S, in any order. ``present``: as in `fairr`. The paper writes IFaiRR without k; its program
    cuts at min(k, \|S\|), as here: a cut-off beyond the background gives the uncut ideal.
    """
    omega = np.asarray(neutralities, dtype=np.float64)
    candidates = omega if present is None else np.where(present, omega, -np.inf)
    depth = within_cutoffs(omega, cutoffs, present)[0].shape[-1]
    if depth < omega.shape[-1]:
        # Only the best are sorted: the background may be a whole collection.
        candidates = np.partition(candidates, -depth, axis=-1)[..., -depth:]
    best = np.sort(candidates, axis=-1)[..., ::-1]
    is_document = np.isfinite(best)
    return fairr(np.where(is_document, best, 0.0), cutoffs, present=is_document, base=base)


@_neutral("NFaiRR", range="0 to 1", ideal="1")
def nfairr(scores: ArrayLike, ideal: ArrayLike, *, undefined: Undefined = np.nan) -> Floats:
    r"""Normalised fairness of the retrieved results, FaiRR / IFaiRR.

    .. math:: NFaiRR(q, k) = \frac{FaiRR(q, k)}{IFaiRR(q, k, S)}

    - :math:`q, k`: a query, and the cut-off
    - :math:`IFaiRR`: the highest FaiRR that any order of the background documents can reach
    - :math:`S`: the background documents
    - :math:`FaiRR`: the fairness of the list as it is

    Parameters
    ----------
    scores : array_like, shaped (..., cutoffs)
        From `fairr`.
    ideal : array_like, shaped (..., cutoffs) or (cutoffs,)
        From `ideal_fairr`, with the same base; they broadcast, so that one background may serve all
        queries. Zero where no order of the background set holds any neutrality: 0 / 0 says nothing.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Within [0, 1] where the background set holds the ranked documents and neutrality is not
        negative.

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
    return ratio(scores, ideal, undefined)
