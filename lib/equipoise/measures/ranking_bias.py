"""Bias in a ranked list, from the terms that represent groups: NFaiRR, TExFAIR and AWRF.

There are two steps, so that a collection is counted once and scored many times:

1. `count_terms` counts the representative terms in texts: a sparse matrix shaped (documents, terms)
   and the lengths of the documents, in `TermCounts`. `TermGroups` says which term represents which
   group, so that another term list over the same vocabulary needs no second pass.
2. The kernels score rankings. They take arrays whose axis *ranks* is the order of the ranking,
   rank 1 first, with any leading axes (queries, runs), and return every cut-off along a last axis.
   Rankings of different lengths are padded; ``present`` marks the ranks that have a document.
   `score_ranking_bias` does both for tidy tables.

Every measure weighs rank r with the attention 1 / log2(r + 1). The base cancels in all but FaiRR.

References
----------
thesis chapter 4, Eqs. 4.1 to 4.13. Rekabsaz, N., Kopeinik, S., Schedl, M. (2021): Societal Biases
in Retrieved Contents, SIGIR 2021 (FaiRR, NFaiRR). Sapiezynski, P. et al. (2019): Quantifying the
Impact of User Attention on Fair Group Representation in Ranked Lists, WWW 2019 companion (AWRF).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike
from scipy import sparse

from equipoise import options
from equipoise.arrays import Booleans, Floats, Integers, normalised, places, ratio, starts
from equipoise.coverage import Seen, first, judge, runs_seen
from equipoise.declared import checked, measure
from equipoise.divergences import DIVERGENCES
from equipoise.errors import listed, refuse_twice
from equipoise.measures.ranked_lists import by_rank, spans_by_rank, with_means
from equipoise.measures.tied_scores import mean_of_ties, orders_of_ties
from equipoise.options import Cutoffs, Proportional, Shares, Threshold, Tokens, Undefined
from equipoise.statistics.unknown import GroupExposure

_declared = partial(measure, family="Ranked lists: bias in their terms")
_neutral = partial(_declared, direction="higher is better", sources=("rekabsaz2021", "thesis"))
_chapter_4 = partial(_declared, sources=("thesis-ch4", "thesis"))


# --- terms ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TermGroups:
    """Which representative term represents which group.

    ``groups``: in the order of every axis *groups* and of the target. ``terms``: lower-cased, each
    once. ``membership`` (shaped (terms, groups)): True where the term represents the group (the
    sets V_G of Eq. 4.9). A term in two groups counts for both, as in the public NFaiRR program.
    """

    groups: tuple[str, ...]
    terms: tuple[str, ...]
    membership: Booleans

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> TermGroups:
        """Gather (term, group) pairs; terms are lower-cased, groups are sorted by name.

        Examples
        --------
        >>> TermGroups.from_pairs([("She", "f"), ("he", "m"), ("him", "m")]).terms
        ('he', 'him', 'she')
        """
        lowered = pd.DataFrame([(term.lower(), group) for term, group in pairs])
        if lowered.empty or lowered[1].nunique() < 2:
            raise ValueError("terms must represent at least two groups")
        table = pd.crosstab(lowered[0], lowered[1]) > 0
        return cls(tuple(table.columns), tuple(table.index), table.to_numpy())

    @property
    def shared(self) -> tuple[str, ...]:
        """Terms that represent more than one group."""
        return tuple(np.asarray(self.terms, dtype=object)[self.membership.sum(axis=1) > 1])


@dataclass(frozen=True)
class TermCounts:
    r"""How often each term occurs in each document of a collection.

    ``documents``: unique ids, the rows. ``terms``: the terms that were counted, the columns.
    ``counts`` (shaped (documents, terms)): occurrences, tf(t, d). ``lengths`` (shaped
    (documents,)): all terms of the document, \|d\|, representative or not.
    """

    documents: pd.Index
    terms: tuple[str, ...]
    counts: sparse.csr_array
    lengths: Integers

    def magnitudes(self, groups: TermGroups) -> Floats:
        r"""Return the magnitude of each group in each document (thesis section 4.2).

        .. math:: M^G(d) = \sum_{t \in V_G} tf(t, d)

        ``groups``: any groups over the terms that were counted. Returns ndarray, shaped (documents,
        groups).
        """
        absent = sorted(set(groups.terms) - set(self.terms))
        if absent:
            raise ValueError(f"{len(absent)} terms were not counted, such as {listed(absent)}")
        membership = pd.DataFrame(groups.membership, index=groups.terms)
        membership = membership.reindex(self.terms, fill_value=False)
        return self.counts @ membership.to_numpy(dtype=np.float64)


_BLOCK = 2048
"""Texts whose words are in memory at once."""
_LISTS = 30
"""Lists whose orders of ties are scored at a time."""
_BETWEEN_WORDS = {"whitespace": re.compile(r"\s"), "word": re.compile(r"[\W_]")}
"""What separates words, besides blanks; with tokens "space", nothing does."""


def _lowered(texts: Any, tokens: str) -> Any:
    """Lower-case Arrow texts, with blanks alone between words."""
    separator = _BETWEEN_WORDS.get(tokens, re.compile("(?!)"))
    texts = pc.fill_null(texts, "")
    beyond_ascii = pc.invert(pc.string_is_ascii(texts))
    if pc.any(beyond_ascii).as_py():
        lowered = [separator.sub(" ", text.lower()) for text in texts.filter(beyond_ascii).tolist()]
        texts = pc.replace_with_mask(texts, beyond_ascii, pa.array(lowered, pa.large_string()))
    # Bytes of ASCII are translated in place, so that the texts begin and end where they did.
    translation = bytearray(range(256))
    for code in range(128):
        translation[code] = ord(separator.sub(" ", chr(code)).lower())
    _, ends, letters = pa.concat_arrays([texts]).buffers()
    plain = bytes(letters or b"").translate(bytes(translation))
    return np.frombuffer(plain, np.uint8), np.frombuffer(ends, np.int64)[: len(texts) + 1]


def _count(texts: Any, terms: Any, tokens: str) -> tuple[sparse.csr_array, Integers]:
    """Return occurrences of the terms, shaped (texts, terms), and the words of each text.

    ``terms``: bytes of Arrow. To split the texts with Arrow would copy every word.
    """
    letters, text_ends = _lowered(texts, tokens)
    is_letter = np.append(letters != ord(" "), False)
    # A word begins at a letter after a blank or at the beginning of a text.
    begins_text = np.zeros(len(is_letter), np.bool_)
    begins_text[text_ends] = True
    after_letter = np.append(False, is_letter[:-1]) & ~begins_text
    begin = np.flatnonzero(is_letter & ~after_letter)
    before_letter = np.append(is_letter[1:] & ~begins_text[1:], False)
    size = np.flatnonzero(is_letter & ~before_letter) - begin + 1
    first_word = np.searchsorted(begin, text_ends)

    # Only words with the size and the first letter of a term are compared.
    sizes = [len(term) for term in terms.to_pylist()]
    can_be_term = np.zeros((max(sizes) + 2, 256), np.bool_)
    can_be_term[sizes, [term[0] for term in terms.to_pylist()]] = True
    word = np.flatnonzero(can_be_term[np.minimum(size, max(sizes) + 1), letters[begin]])
    place = np.arange(max(sizes))
    spelt = letters.take(begin[word, np.newaxis] + place, mode="clip")  # shape (words, letters)
    spelt = spelt[place < size[word, np.newaxis]]
    word_ends = np.append(0, np.cumsum(size[word]))
    buffers = [None, pa.py_buffer(word_ends), pa.py_buffer(spelt)]
    words = pa.Array.from_buffers(pa.large_binary(), len(word), buffers)
    term = pc.index_in(words, value_set=terms)
    is_term = pc.is_valid(term).to_numpy(zero_copy_only=False)
    text_of_term = np.searchsorted(first_word, word[is_term], side="right") - 1
    entries = (
        np.ones(len(text_of_term), dtype=np.int32),
        (text_of_term, term.drop_null().to_numpy()),
    )
    counts = sparse.coo_array(entries, shape=(len(texts), len(terms)))
    return sparse.csr_array(counts), np.diff(first_word)


def _batches(documents: Iterable[Any], batch: int) -> Iterator[tuple[pd.Series, Any]]:
    """Yield ids and texts of one batch of documents after the other."""
    stream = iter(documents)
    for document in stream:
        if isinstance(document, pd.DataFrame):
            texts = pa.array(document["text"]).cast(pa.large_string())
            if isinstance(texts, pa.ChunkedArray):
                texts = texts.combine_chunks()
            yield document["document"].astype("str"), texts
        else:
            ids, batch_texts = zip(document, *islice(stream, batch - 1), strict=True)
            yield pd.Series(ids, dtype="str"), pa.array(batch_texts, pa.large_string())


@checked
def count_terms(
    documents: Iterable[tuple[str, str]] | Iterable[pd.DataFrame],
    terms: Iterable[str],
    *,
    tokens: Tokens = "word",
    batch: int = 8192,
) -> TermCounts:
    """Count terms in a stream of documents; memory has one batch and the counts.

    ``documents`` are pairs of id and text, or tables with the columns document and text, and may be
    a generator. ``terms``: lower-cased, as in the public NFaiRR program. ``batch``: texts in
    memory.

    Examples
    --------
    >>> count_terms([("d1", "He said that he left")], ["he", "she"]).counts.toarray()
    array([[2, 0]], dtype=int32)
    """
    names = tuple(sorted({term.lower() for term in terms}))
    if not names:
        raise ValueError("the list of terms is empty: nothing to count")
    term_array = pa.array([name.encode() for name in names], pa.large_binary())
    ids = [pd.Series([], dtype="str")]
    lengths = [np.empty(0, dtype=np.int64)]
    counts = [sparse.csr_array((0, len(names)), dtype=np.int32)]
    for batch_ids, texts in _batches(documents, batch):
        ids.append(batch_ids)
        for start in range(0, len(texts), _BLOCK):
            block_counts, block_lengths = _count(texts.slice(start, _BLOCK), term_array, tokens)
            counts.append(block_counts)
            lengths.append(block_lengths)
    return _joined(ids, names, counts, lengths)


def joined(parts: Sequence[TermCounts]) -> TermCounts:
    """Join counts of the same terms in several parts of a collection."""
    if len(parts) == 1:
        return parts[0]
    ids = [pd.Series(part.documents) for part in parts]
    counts, lengths = [part.counts for part in parts], [part.lengths for part in parts]
    return _joined(ids, parts[0].terms, counts, lengths)


def _joined(
    ids: Sequence[pd.Series], terms: tuple[str, ...], counts: Any, lengths: Any
) -> TermCounts:
    documents = pd.Index(pd.concat(ids), name="document")
    # Arrow compares the texts where they lie; pandas would make a Python object of each.
    if pc.count_distinct(pa.array(documents)).as_py() < len(documents):
        repeated = documents[documents.duplicated()]
        raise ValueError(f"document ids must be unique, got {repeated[0]} twice")
    matrix = sparse.vstack(counts, format="csr")
    return TermCounts(documents, terms, matrix, np.concatenate(lengths))


# --- arrays by rank -------------------------------------------------------------------------------


def attention_weights(ranks: int) -> Floats:
    r"""Return the attention that each rank gets (thesis Eqs. 4.2, 4.4 and 4.8).

    .. math:: v_r = 1 / \log_2(r + 1)

    >>> attention_weights(3).round(4)
    array([1.    , 0.6309, 0.5   ])
    """
    return 1 / np.log2(np.arange(2, ranks + 2))


def _target_shares(target: ArrayLike | None, groups: int) -> Floats:
    """Return the target as a distribution over groups; equal shares without a target."""
    return np.full(groups, 1 / groups) if target is None else normalised(target, groups)


def _is_present(present: ArrayLike | None, shape: tuple[int, ...]) -> Booleans:
    """Return which ranks have a document, shaped (..., ranks)."""
    is_present = np.ones(shape, np.bool_) if present is None else np.asarray(present, np.bool_)
    if is_present.shape != shape:
        raise ValueError(f"present must have one value per rank, {shape}, got {is_present.shape}")
    return is_present


def _weights(present: ArrayLike | None, shape: tuple[int, ...], cutoffs: ArrayLike) -> Floats:
    """Attention of each rank down to the deepest cut-off, shaped (..., ranks); 0 without document.

    What is weighted is cut before: rankings may be far deeper than what is read.
    """
    depth = min(int(np.max(cutoffs)), shape[-1])
    attention = attention_weights(shape[-1])[:depth]
    return attention * _is_present(present, shape)[..., :depth]


def _sums_at(per_rank: Floats, cutoffs: ArrayLike, axis: int = -1) -> Floats:
    """Sum over the ranks up to each cut-off; ranks beyond the end of the ranking add nothing."""
    last = np.minimum(np.asarray(cutoffs), per_rank.shape[axis]) - 1
    return np.take(np.cumsum(per_rank, axis=axis), last, axis=axis)


# --- neutrality of documents ----------------------------------------------------------------------


@_neutral("Neutrality", range="0 to 1 for two groups with equal targets", ideal="1")
def neutrality(
    magnitudes: ArrayLike, target: Shares | None = None, *, threshold: Threshold = 1.0
) -> Floats:
    r"""Measure the neutrality (unbiasedness) of documents.

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
    """
    counts = np.asarray(magnitudes, dtype=np.float64)
    if counts.min(initial=0.0) < 0:
        raise ValueError("magnitudes must be at least 0")
    shares = _target_shares(target, counts.shape[-1])
    # One group after the other: sums along a short last axis are slow.
    total, bias = np.zeros((2, *counts.shape[:-1]))
    for group in range(len(shares)):
        total += counts[..., group]
    divisor = np.where(total == 0, 1.0, total)  # 0 / 0 is 0
    for group, share in enumerate(shares):
        bias += np.abs(counts[..., group] / divisor - share)
    return np.where(total <= threshold, 1.0, 1.0 - bias)


@_neutral("FaiRR", range="from 0, no bound", ideal="IFaiRR")
def fairr(neutralities: ArrayLike, cutoffs: Cutoffs, *, present: ArrayLike | None = None) -> Floats:
    r"""Measure the fairness of the retrieved results: neutrality discounted by rank.

    .. math:: FaiRR(q, k) = \sum_{r=1}^{\min(k, n)} \frac{\omega(d_q^r)}{\log_2(r + 1)}

    - :math:`q, k`: a query, and the cut-off
    - :math:`d_q^r`: the document at rank r of the list for q
    - :math:`\omega`: its neutrality
    - :math:`n`: length of the list

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
    omega = np.asarray(neutralities, dtype=np.float64)
    weights = _weights(present, omega.shape, cutoffs)
    return _sums_at(omega[..., : weights.shape[-1]] * weights, cutoffs)


def ideal_fairr(
    neutralities: ArrayLike, cutoffs: Cutoffs, *, present: ArrayLike | None = None
) -> Floats:
    r"""Return the best FaiRR that any order of the background documents can reach.

    .. math:: IFaiRR(q, k, S) = \sum_{r=1}^{\min(k, |S|)} \frac{\omega_{(r)}}{\log_2(r + 1)},
        \quad \omega_{(1)} \ge \omega_{(2)} \ge \dots

    ``neutralities`` (shaped (..., background)): :math:`\omega` of the documents of the background
    set S, in any order. ``present``: as in `fairr`. thesis Eq. 4.3 has IFaiRR without k; its
    program cuts at min(k, \|S\|), as here.
    """
    omega = np.asarray(neutralities, dtype=np.float64)
    candidates = np.where(_is_present(present, omega.shape), omega, -np.inf)
    depth = min(int(np.max(cutoffs)), omega.shape[-1])
    # Only the best are sorted: the background may be a whole collection.
    candidates = np.partition(candidates, -depth, axis=-1)[..., -depth:]
    best = np.sort(candidates, axis=-1)[..., ::-1]
    is_document = np.isfinite(best)
    return fairr(np.where(is_document, best, 0.0), cutoffs, present=is_document)


@_neutral("NFaiRR", range="0 to 1", ideal="1")
def nfairr(scores: ArrayLike, ideal: ArrayLike, *, undefined: Undefined = np.nan) -> Floats:
    r"""Normalise the fairness of the retrieved results, FaiRR / IFaiRR.

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
        From `ideal_fairr`; they broadcast, so that one background may serve all queries.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        Within [0, 1] where the background set has the ranked documents and neutrality is not
        negative. ``undefined`` where the ideal is 0.

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


# --- balance of groups ----------------------------------------------------------------------------


@_declared(
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
    distance: str = "l1",
    present: ArrayLike | None = None,
) -> Floats:
    r"""Measure attention-weighted rank fairness: the distance of exposure from its target.

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
        Association of each ranked document with each group, within [0, 1].
    distance : str, default "l1"
        The sum of absolute differences (that of TED), or a divergence by its name in
        `equipoise.divergences.DIVERGENCES`.
    present : array_like of bool, shaped (..., ranks), optional
        Which ranks hold a document; all where not given.

    Returns
    -------
    ndarray, shaped (..., cutoffs)
        0 where the exposure meets its target; NaN where no group has any.

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
    if distance != "l1" and distance not in DIVERGENCES:
        raise ValueError(f"distance must be one of l1, {', '.join(DIVERGENCES)}, got {distance!r}")
    aligned = np.asarray(alignment, dtype=np.float64)
    weights = _weights(present, aligned.shape[:-1], cutoffs)[..., np.newaxis]
    exposure = _sums_at(aligned[..., : weights.shape[-2], :] * weights, cutoffs, axis=-2)
    total = exposure.sum(axis=-1)
    achieved = ratio(exposure, total[..., np.newaxis], 0.0)
    shares = _target_shares(target, aligned.shape[-1])
    if distance == "l1":
        gaps = np.abs(achieved - shares).sum(axis=-1)
    else:
        gaps = DIVERGENCES[distance].function(achieved, shares)
    return np.where(total > 0, gaps, np.nan)


@_chapter_4("RBDF", range="0 to 1", ideal="none", direction="neither")
def rbdf(
    representative: ArrayLike, cutoffs: Cutoffs, *, present: ArrayLike | None = None
) -> Floats:
    r"""Compute the rank-biased discounting factor: attention to representative documents.

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
        Which ranks hold a document; all where not given. Both sums stop at the end of the list.

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
    has_term = np.asarray(representative, dtype=np.bool_)
    weights = _weights(present, has_term.shape, cutoffs)
    has_term = has_term[..., : weights.shape[-1]]
    return ratio(_sums_at(weights * has_term, cutoffs), _sums_at(weights, cutoffs), 0.0)


def max_ted(target: Shares | None = None, groups: int = 2) -> float:
    r"""Return the largest TED: all exposure on the group with the smallest target share.

    .. math:: \max(TED) = 2 (1 - \min_G \hat p_G)

    ``target``: as in `ted`; equal shares of ``groups`` groups where not given, so that it is 1 for
    two. thesis Eq. 4.13 states it for two groups with equal targets only.
    """
    if target is not None:
        groups = len(target)
    return float(2 * (1 - _target_shares(target, groups).min()))


def _divergences(
    magnitudes: Any, lengths: Any, cutoffs: Any, target: Any, present: Any
) -> tuple[Floats, Floats]:
    """Return `ted` without RBDF and with it, from one exposure (thesis Eqs. 4.7 to 4.12)."""
    occurrences, sizes = np.asarray(magnitudes), np.asarray(lengths)
    if sizes.shape != occurrences.shape[:-1]:
        raise ValueError(
            f"lengths must have one value per rank, {occurrences.shape[:-1]}, got {sizes.shape}"
        )
    attention = _weights(present, sizes.shape, cutoffs)
    depth = attention.shape[-1]
    occurrences, sizes = occurrences[..., :depth, :], sizes[..., :depth]
    weights = ratio(attention, sizes, 0.0)[..., np.newaxis]  # an empty document exposes nothing
    exposure = _sums_at(occurrences * weights, cutoffs, axis=-2)  # shape (..., cutoffs, groups)
    total = exposure.sum(axis=-1)
    achieved = ratio(exposure, total[..., np.newaxis], 0.0)
    gaps = np.abs(achieved - _target_shares(target, exposure.shape[-1])).sum(axis=-1)
    # Without any exposure Eq. 4.9 is 0 / 0: the list shows no bias.
    gaps = np.where(total == 0, 0.0, gaps)
    representative = (occurrences.sum(axis=-1) > 0) & (sizes > 0)
    is_present = None if present is None else np.asarray(present)[..., :depth]
    return gaps, gaps * rbdf(representative, cutoffs, present=is_present)


def _mean_divergences(
    magnitudes: Any, lengths: Any, cutoffs: Any, present: Any, spans: Any
) -> tuple[Floats, Floats]:
    """Return the means of `_divergences` over the orders that ties allow."""
    plain, discounted = np.empty((2, len(present), len(cutoffs)))
    # A list may have thousands of orders, so few lists are in memory.
    for begin in range(0, len(present), _LISTS):
        block = slice(begin, begin + _LISTS)
        terms, sizes, is_document = magnitudes[block], lengths[block], present[block]
        for column, cutoff in enumerate(cutoffs):
            list_of_order, places = orders_of_ties(spans[0][block], spans[1][block], cutoff)
            documents = (list_of_order[:, np.newaxis], places)  # (orders, ranks)
            gaps, weighted_gaps = _divergences(
                terms[documents], sizes[documents], [cutoff], None, is_document[documents]
            )
            begins = starts(list_of_order)  # the orders of a list are consecutive rows
            n_orders = np.diff(begins, append=len(list_of_order))
            plain[block, column] = np.add.reduceat(gaps[:, 0], begins) / n_orders
            discounted[block, column] = np.add.reduceat(weighted_gaps[:, 0], begins) / n_orders
    return plain, discounted


@_chapter_4("TED", range="0 to max(TED)", ideal="0", direction="lower is better")
def ted(
    magnitudes: ArrayLike,
    lengths: ArrayLike,
    cutoffs: Cutoffs,
    target: Shares | None = None,
    *,
    proportional: Proportional = True,
    present: ArrayLike | None = None,
) -> Floats:
    r"""Measure the term exposure-based divergence of a ranked list. Lower is fairer.

    .. math:: TED(q, k) = \sum_G |p(G | q, k) - \hat p_G| \cdot RBDF(q, k)

    - :math:`q, k`: a query, and the cut-off
    - :math:`p(G | q, k)`: share of group G in the term exposure of the list: its terms in each
      document, as a share of the document's words, weighted by rank
    - :math:`\hat p_G`: target share of group G
    - :math:`RBDF`: the attention that goes to representative documents; left out with
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
        Between 0 and `max_ted` of the target; 0 for a list without any representative term, where
        Eq. 4.9 is 0 / 0.

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
    plain, discounted = _divergences(magnitudes, lengths, cutoffs, target, present)
    return discounted if proportional else plain


@_chapter_4("TExFAIR", range="0 to max(TED)", ideal="max(TED)", direction="higher is better")
def texfair(
    magnitudes: ArrayLike,
    lengths: ArrayLike,
    cutoffs: Cutoffs,
    target: Shares | None = None,
    *,
    proportional: Proportional = True,
    present: ArrayLike | None = None,
) -> Floats:
    r"""Measure the term exposure-based fairness of a ranked list. Higher is fairer.

    .. math:: TExFAIR(q, k) = \max(TED) - TED(q, k)

    - :math:`q, k`: a query, and the cut-off
    - :math:`TED`: the term exposure-based divergence, which counts representative
      documents only
    - :math:`\max(TED)`: the largest TED that any list can have: all exposure on the group with
      the smallest target, 2 (1 - smallest target share); 1 for two groups with equal targets

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
        magnitudes, lengths, cutoffs, target, proportional=proportional, present=present
    )
    return max_ted(target, np.shape(magnitudes)[-1]) - divergence


# --- one table ------------------------------------------------------------------------------------


def _texts_seen(
    runs: pd.DataFrame, counts: TermCounts, run_of_list: pd.Series, with_text: Any, present: Any
) -> list[Seen]:
    """Count, for each run, the documents that are ranked and those with a text."""
    code, names = pd.factorize(run_of_list)
    n_with_text = np.bincount(code, with_text.sum(axis=1)).astype(np.int64)
    n_ranked = np.bincount(code, present.sum(axis=1)).astype(np.int64)

    def lacking(run: int) -> pd.Series:
        ranked = runs.loc[runs["run"] == names[run], "document"]
        return ranked[places(ranked, counts.documents) < 0]

    documents = pd.Index(runs["document"].unique())
    return runs_seen(
        "a text", list(names), n_with_text, n_ranked, lacking, counts.documents, documents
    )


def _terms_seen(counts: TermCounts, groups: TermGroups) -> Seen:
    """Count the terms of each group that the texts have."""
    in_texts = pd.Series(counts.counts.sum(axis=0) > 0, counts.terms)
    occurs = in_texts[list(groups.terms)].to_numpy()
    by_group = []
    for name, is_member in zip(groups.groups, groups.membership.T, strict=True):
        by_group.append(f"{name} {(occurs & is_member).sum()} of {is_member.sum()}")
    n_texts = len(counts.documents)
    needed = f"an occurrence in {n_texts:,} texts ({', '.join(by_group)})"
    examples = first(np.array(groups.terms)[~occurs])
    return Seen("the terms", "terms", needed, int(occurs.sum()), len(occurs), examples)


def _shares_with_text(
    run_of_list: pd.Series, with_text: Booleans, present: Booleans, cutoffs: Sequence[int]
) -> Floats:
    """Return the share of the first k documents with a text, shaped (lists and runs, cutoffs)."""
    sums = []
    for ranks in (with_text, present):
        list_sums = pd.DataFrame(_sums_at(ranks.astype(np.float64), cutoffs))
        sums.append(pd.concat([list_sums, list_sums.groupby(run_of_list).sum()]).to_numpy())
    return ratio(sums[0], sums[1], np.nan)


def _ideals(
    background: str | pd.DataFrame,
    topics: pd.Series,
    counts: TermCounts,
    omega: Floats,
    listed_omega: Floats,
    present: Booleans,
    cutoffs: Sequence[int],
) -> Floats:
    """Return IFaiRR over the background, shaped (lists, cutoffs) or (cutoffs,).

    ``omega`` is the neutrality of all documents and, last, of a missing one. ``listed_omega`` is
    the neutrality of the ranked documents, shaped (lists, ranks).
    """
    if isinstance(background, pd.DataFrame):
        absent = sorted(set(topics) - set(background["topic"]))
        if absent:
            raise ValueError(
                f"the background has no documents for {len(absent)} topics of the runs:"
                f" {listed(absent)}"
            )
        documents = background[["topic", "document"]].drop_duplicates().assign(run="", rank=0)
        pool = by_rank(documents, counts.documents)
        rows = pool.fillna(-1).to_numpy(dtype=np.int64)
        ideals = ideal_fairr(omega[rows], cutoffs, present=pool.notna())
        return ideals[pool.index.get_level_values("topic").get_indexer(topics)]
    if background == "own":
        return ideal_fairr(listed_omega, cutoffs, present=present)
    return ideal_fairr(omega[:-1], cutoffs)


@checked
def score_ranking_bias(
    runs: pd.DataFrame,
    counts: TermCounts | Mapping[str, str],
    groups: TermGroups | Mapping[str, str],
    *,
    cutoffs: options.Cutoffs = (10,),
    background: options.Background | pd.DataFrame = "collection",
    threshold: options.Threshold = 1.0,
    tied_scores: options.TiedScores = "ranked",
    undefined: options.Undefined = np.nan,
) -> pd.DataFrame:
    """Score every run, topic and cut-off by NFaiRR, FaiRR, TED and TExFAIR.

    ``runs``: columns ``run, topic, document, rank``, and ``score`` for means over the orders of
    ties. They are exact for FaiRR, which is a sum over ranks. TED is averaged over all orders, up
    to 20,000 of a list, else over 1,000 random ones. ``counts`` may be texts by id, ``groups`` the
    group of each term; their targets are equal. ``background``: may also be a table with columns
    ``topic, document``. ``undefined``: NFaiRR where its ideal is zero. Returns columns
    ``run, topic, attribute, measure, value, seen``;
    measures ``NFaiRR@k``, ``FaiRR@k``, ``TED@k``, ``TED(proportional=False)@k``, ``TExFAIR@k``,
    ``TExFAIR(proportional=False)@k``. An empty topic is the mean over the topics; one undefined
    topic makes it undefined. ``seen``: the share of the first k documents with a text. Raises
    InputError where no ranked document of a run has one, or no term occurs in any text. thesis
    Eqs. 4.1 to 4.13.

    Examples
    --------
    >>> from equipoise.measures.ranking_bias import count_terms
    >>> counts = count_terms([("d1", "he saw him"), ("d2", "rain")], ["he", "him", "she"])
    >>> groups = TermGroups.from_pairs([("he", "m"), ("him", "m"), ("she", "f")])
    >>> run = pd.DataFrame({"run": "bm25", "topic": "1", "document": ["d1", "d2"], "rank": [1, 2]})
    >>> scores = score_ranking_bias(run, counts, groups, cutoffs=[2])
    >>> scores[["topic", "measure", "value"]].round(3).head(4)
      topic   measure  value
    0     1  NFaiRR@2  0.631
    1        NFaiRR@2  0.631
    2     1   FaiRR@2  0.631
    3         FaiRR@2  0.631
    """
    if not isinstance(groups, TermGroups):
        groups = TermGroups.from_pairs(groups.items())
    if not isinstance(counts, TermCounts):
        counts = count_terms(counts.items(), groups.terms)
    if runs.empty:
        raise ValueError("the runs have no document")
    if (runs["topic"] == "all").any():
        raise ValueError("a topic must not be called 'all', the name of the mean over topics")
    refuse_twice(runs, ["run", "topic", "document"], "the runs list a document")

    # The last row, where -1 leads, is for padding and for documents without a text.
    magnitudes = np.vstack([counts.magnitudes(groups), np.zeros((1, len(groups.groups)))])
    lengths = np.append(counts.lengths, 0)
    omega = neutrality(magnitudes, threshold=threshold)

    is_expected = tied_scores == "expected"
    own_background = isinstance(background, str) and background == "own"
    deepest = max(cutoffs)
    lists = by_rank(runs, counts.documents, np.inf if own_background or is_expected else deepest)
    keys = lists.index.to_frame(index=False)
    rows = lists.fillna(-1).to_numpy(dtype=np.int64)  # shape (lists, ranks)
    present = lists.notna().to_numpy()
    with_text = present & (rows >= 0)
    seen = _texts_seen(runs, counts, keys["run"], with_text[:, :deepest], present[:, :deepest])
    seen_counts = judge([*seen, _terms_seen(counts, groups)])

    neutral, terms, sizes = omega[rows], magnitudes[rows], lengths[rows]
    ideal = _ideals(background, keys["topic"], counts, omega, neutral, present, cutoffs)
    if is_expected:
        spans = spans_by_rank(runs)
        # FaiRR is a sum over ranks: averaged over orders, tied documents share their sum.
        neutral = mean_of_ties(neutral, *spans)
        plain, discounted = _mean_divergences(terms, sizes, cutoffs, present, spans)
    else:
        plain, discounted = _divergences(terms, sizes, cutoffs, None, present)
    fair = fairr(neutral, cutoffs, present=present)
    largest = max_ted(groups=len(groups.groups))
    scores = {
        "NFaiRR": nfairr(fair, ideal, undefined=undefined),
        "FaiRR": fair,
        "TED": discounted,
        "TED(proportional=False)": plain,
        "TExFAIR": largest - discounted,
        "TExFAIR(proportional=False)": largest - plain,
    }
    names = [f"{name}@{cutoff}" for name in scores for cutoff in cutoffs]
    values = pd.DataFrame(np.concatenate(list(scores.values()), axis=1), columns=names)
    wide = with_means(pd.concat([keys, values], axis=1), names).assign(attribute="")
    table = wide.melt([*keys, "attribute"], names, "measure", "value")
    shares = _shares_with_text(keys["run"], with_text, present, cutoffs)
    table = table.assign(seen=np.tile(shares, len(scores)).T.ravel())
    exposures = _exposures(keys["run"], groups, (terms, sizes), (with_text, present), deepest)
    table.attrs |= {"seen": seen_counts, "exposures": exposures}
    return table


def _exposures(
    run_of_list: pd.Series,
    groups: TermGroups,
    texts: tuple[Floats, Integers],
    masks: tuple[Booleans, Booleans],
    cutoff: int,
) -> list[GroupExposure]:
    """Return for each run the term exposure of the groups in each ranking, as a share of it.

    A document without a text gets the mean exposure of the others at its attention. ``texts``:
    occurrences and lengths; ``masks``: which documents have a text, and which ranks a document.
    """
    (terms, sizes), (with_text, present) = texts, masks
    attention = _weights(present, present.shape, [cutoff])
    depth = attention.shape[-1]
    weights = ratio(attention, sizes[:, :depth], 0.0)[..., np.newaxis]
    exposure = (terms[:, :depth] * weights).sum(axis=1)  # shape (lists, groups)
    with_text = with_text[:, :depth]
    exposures = []
    for run, lists in run_of_list.groupby(run_of_list, sort=False).groups.items():
        of_run = exposure[lists]
        seen = (attention * with_text)[lists].sum()
        missing = (attention * ~with_text)[lists] * (of_run.sum() / seen if seen else 0.0)
        total = of_run.sum(axis=1) + missing.sum(axis=1)
        topic, rank = np.nonzero(missing)
        exposures.append(
            GroupExposure(
                *(str(run), "terms", groups.groups, _target_shares(None, len(groups.groups))),
                known=ratio(of_run, total[:, np.newaxis], 0.0),
                total=(total > 0).astype(np.float64),
                topic=topic,
                weight=missing[topic, rank] / total[topic],
            )
        )
    return exposures
