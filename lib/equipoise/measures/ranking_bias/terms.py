r"""Representative terms: which term stands for which group, and how often each occurs in each document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from equipoise.arrays import Booleans, Floats, Integers, each_once, text_bytes, words_at
from equipoise.declare import checked
from equipoise.options import Tokens

_BLOCK = 2048
"""Texts worked on at a time: a few stay in the processor's cache."""

_BETWEEN = {"space": None, "whitespace": re.compile(r"\s"), "word": re.compile(r"[\W_]")}
"""What is between words, of any script, besides blanks."""

_AS_BLANK = {
    name: bytes(
        ord(" ")
        if letter < 128 and between and between.match(chr(letter))
        else ord(chr(letter).lower())
        if letter < 128
        else letter
        for letter in range(256)
    )
    for name, between in _BETWEEN.items()
}
"""The same for bytes of ASCII, and their lower case."""


@dataclass(frozen=True)
class TermGroups:
    """Which representative term stands for which group.

    ``groups``: in the order of every axis *groups* and of the target. ``terms``: lower-cased, each
    once. ``membership`` (shaped (terms, groups)): True where the term represents the group: the
    sets V_G of Eq. 4.9. A term in two groups counts for both, as in the public NFaiRR program.
    """

    groups: tuple[str, ...]
    terms: tuple[str, ...]
    membership: Booleans

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[str, str]], groups: Sequence[str] | None = None
    ) -> TermGroups:
        """Gather (term, group) pairs, each once; terms are lower-cased, as in the public NFaiRR program.

        ``groups``: their order; by name where not given.

        Examples
        --------
        >>> TermGroups.from_pairs([("She", "f"), ("he", "m"), ("him", "m")]).terms
        ('he', 'him', 'she')
        """
        lowered = {(term.lower(), group) for term, group in pairs}
        found = sorted({group for _, group in lowered})
        order = tuple(found if groups is None else groups)
        if len(order) < 2:
            raise ValueError(
                f"bias is between two groups or more, found {len(order)}: {', '.join(order)}"
            )
        if unknown := [group for group in found if group not in order]:
            raise ValueError(f"terms of groups that are not asked for: {', '.join(unknown)}")
        if bare := [group for group in order if group not in found]:
            raise ValueError(f"no representative term for {', '.join(bare)}")
        terms = tuple(sorted({term for term, _ in lowered}))
        return cls(
            order,
            terms,
            np.array([[(term, group) in lowered for group in order] for term in terms]),
        )

    @property
    def shared(self) -> tuple[str, ...]:
        """Terms that represent more than one group."""
        return tuple(np.asarray(self.terms, dtype=object)[self.membership.sum(axis=1) > 1])


@dataclass(frozen=True)
class TermCounts:
    r"""How often each term occurs in each document of a collection.

    ``documents``: ids, strings, each once; the rows. ``terms``: the terms that were counted; the
    columns. ``counts`` (shaped (documents, terms)): occurrences, tf(t, d). ``lengths`` (shaped
    (documents,)): all terms of the document, \|d\|, representative or not.
    """

    documents: pd.Index
    terms: tuple[str, ...]
    counts: sparse.csr_array
    lengths: Integers

    def magnitudes(self, groups: TermGroups) -> Floats:
        r"""Magnitude of each group in each document, :math:`M^G(d) = \sum_{t \in V_G} tf(t, d)` (thesis section 4.2).

        ``groups``: any groups over the terms that were counted. Returns ndarray, shaped (documents,
        groups).
        """
        if absent := sorted(set(groups.terms) - set(self.terms)):
            raise ValueError(
                f"{len(absent)} terms of the groups were not counted, such as {', '.join(absent[:3])}"
            )
        member = pd.DataFrame(groups.membership, index=groups.terms).reindex(
            self.terms, fill_value=False
        )
        return self.counts @ member.to_numpy(dtype=np.float64)


class _Vocabulary:
    """Terms that are found among the words of many texts at once, by a table of their first eight bytes."""

    def __init__(self, terms: tuple[str, ...]) -> None:
        self.held, bounds = text_bytes(terms)
        self.begin, self.size = bounds[:-1], np.diff(bounds)
        self.words = words_at(self.held, self.begin, self.size)
        self.likely = np.zeros(1 << 16, dtype=bool)
        self.likely[self._kinds(self.held, self.begin, self.size)] = True
        self.first = np.full(1 << 16, -1, dtype=np.int32)
        self.next = np.full(len(terms), -1, dtype=np.int32)
        for term, slot in enumerate(self._slots(self.words).tolist()):
            self.next[term], self.first[slot] = self.first[slot], term

    @staticmethod
    def _kinds(held: NDArray[np.uint8], begin: Integers, size: Integers) -> NDArray[np.uint16]:
        """The first byte and the size of each word, up to 255, in one number: most words are like no term in these."""
        kinds = np.minimum(size, 255).astype(np.uint16)
        kinds <<= np.uint16(8)
        kinds |= held[begin]
        return kinds

    @staticmethod
    def _slots(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        mixed = words * np.uint64(0x9E3779B97F4A7C15)
        mixed >>= np.uint64(48)
        return mixed

    def find(
        self, held: NDArray[np.uint8], begin: Integers, size: Integers
    ) -> tuple[Integers, Integers]:
        """Places and terms of the words (of bytes, as of `text_bytes`) that are terms."""
        whole = np.flatnonzero(self.likely[self._kinds(held, begin, size)])
        begin, size = begin[whole], size[whole]
        words = words_at(held, begin, size)
        term = self.first[self._slots(words)]
        at = np.flatnonzero(term >= 0)
        term, places, terms = term[at], [at[:0]], [at[:0]]
        while len(at):
            same = (words[at] == self.words[term]) & (size[at] == self.size[term])
            for step in range(8, int(self.size.max()), 8):
                long = np.flatnonzero(same & (size[at] > step))
                one, other = at[long], term[long]
                rest = self.size[other] - step
                theirs = words_at(self.held, self.begin[other] + step, rest)
                same[long] = words_at(held, begin[one] + step, rest) == theirs
            places.append(at[same])
            terms.append(term[same].astype(np.int64))
            at, term = at[~same], self.next[term[~same]]
            at, term = at[term >= 0], term[term >= 0]
        return whole[np.concatenate(places)], np.concatenate(terms)


def _plain(texts: Any, tokens: str) -> Any:
    """The texts, of Arrow, in lower case and with blanks between the words where they are not of ASCII."""
    wide = pc.invert(pc.string_is_ascii(texts))
    if not pc.any(wide).as_py():
        return texts
    between = _BETWEEN[tokens]
    lowered = (text.lower() for text in texts.filter(wide).to_pylist())
    made = [between.sub(" ", text) if between else text for text in lowered]
    return pc.replace_with_mask(texts, wide, pa.array(made, pa.large_string()))


def _count(texts: Any, vocabulary: _Vocabulary, tokens: str) -> tuple[Integers, Integers, Integers]:
    """Row and term of every occurrence, and the number of words of each of the texts, of Arrow."""
    nothing, blank = (pa.scalar(text, pa.large_string()) for text in ("", " "))
    ended = pc.binary_join_element_wise(_plain(texts, tokens), nothing, blank)
    held, bounds = text_bytes(ended, _AS_BLANK[tokens])
    blanks = np.flatnonzero(held[:-8] == ord(" "))
    begin = np.append(0, blanks[:-1] + 1)
    size = blanks - begin
    last = np.searchsorted(blanks, bounds[1:] - 1)  # the blank behind each text
    lengths = np.diff(last, prepend=-1)
    lengths -= np.bincount(np.searchsorted(last, np.flatnonzero(size == 0)), minlength=len(texts))
    places, terms = vocabulary.find(held, begin, size)
    return np.searchsorted(last, places), terms, lengths


def _tables(documents: Iterable[Any], batch: int) -> Iterator[tuple[pd.Series, Any]]:
    """Ids and texts of one batch of documents after the other."""
    stream = iter(documents)
    for first in stream:
        if isinstance(first, pd.DataFrame):
            yield first["document"].astype("str"), pa.array(first["text"]).cast(pa.large_string())
        else:
            ids, texts = zip(first, *islice(stream, batch - 1), strict=True)
            yield pd.Series(ids, dtype="str"), pa.array(texts, pa.large_string())


@checked
def count_terms(
    documents: Iterable[tuple[str, str]] | Iterable[pd.DataFrame],
    terms: Iterable[str],
    *,
    tokens: Tokens = "word",
    batch: int = 8192,
) -> TermCounts:
    """Count the given terms in a stream of documents, in memory bounded by one batch of texts and the counts.

    ``documents``: id and text, or tables of them with the columns document and text; read once, a
    batch or a table at a time, so that it may be a generator over a collection of any size.
    ``terms``: compared lower-cased, as in the public NFaiRR program. ``batch``: texts held at once.

    Examples
    --------
    >>> count_terms([("d1", "He said that he left")], ["he", "she"]).counts.toarray()
    array([[2, 0]], dtype=int32)
    """
    names = tuple(sorted({term.lower() for term in terms}))
    if not names:
        raise ValueError("the list of terms is empty: nothing to count")
    vocabulary = _Vocabulary(names)
    ids = [pd.Series([], dtype="str")]
    lengths: list[Integers] = [np.empty(0, dtype=np.int64)]
    parts = [sparse.csr_array((0, len(names)), dtype=np.int32)]
    for documents_of, texts in _tables(documents, batch):
        ids.append(documents_of)
        whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        found = [
            _count(whole.slice(first, _BLOCK), vocabulary, tokens)
            for first in range(0, len(whole), _BLOCK)
        ]
        row = np.concatenate(
            [rows + place * _BLOCK for place, (rows, _, _) in enumerate(found)] or [lengths[0]]
        )
        term = np.concatenate([own for _, own, _ in found] or [lengths[0]])
        entries = (np.ones(len(row), dtype=np.int32), (row, term))
        parts.append(sparse.csr_array(sparse.coo_array(entries, shape=(len(whole), len(names)))))
        lengths.extend(size for _, _, size in found)
    counts = sparse.vstack(parts, format="csr")
    return _once(
        TermCounts(
            pd.Index(pd.concat(ids), name="document"), names, counts, np.concatenate(lengths)
        )
    )


def joined(counts: Sequence[TermCounts]) -> TermCounts:
    """Counts of the same terms in several parts of a collection, one after the other."""
    documents = pd.Index(pd.concat([pd.Series(part.documents) for part in counts]), name="document")
    matrix = sparse.vstack([part.counts for part in counts], format="csr")
    return _once(
        TermCounts(
            documents, counts[0].terms, matrix, np.concatenate([part.lengths for part in counts])
        )
    )


def _once(counts: TermCounts) -> TermCounts:
    document = pd.Series(counts.documents)
    if not each_once(document):
        twice = document[document.duplicated()]
        raise ValueError(f"{len(twice)} documents come twice, such as {twice.iloc[0]}")
    return counts
