r"""Representative terms: which stands for which group, and how often each is in a document."""

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
from scipy import sparse

from equipoise.arrays import Booleans, Floats, Integers
from equipoise.declare import checked
from equipoise.options import Tokens

_BLOCK = 2048
"""Texts whose words are held at once: memory is bounded by these, whatever a table holds."""


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
        """Gather (term, group) pairs, each once; terms are lower-cased, as the program does.

        ``groups``: their order; by name where not given.

        Examples
        --------
        >>> TermGroups.from_pairs([("She", "f"), ("he", "m"), ("him", "m")]).terms
        ('he', 'him', 'she')
        """
        lowered = {(term.lower(), group) for term, group in pairs}
        groups_with_terms = sorted({group for _, group in lowered})
        order = tuple(groups_with_terms if groups is None else groups)
        if len(order) < 2:
            raise ValueError(
                f"bias is between two groups or more, found {len(order)}: {', '.join(order)}"
            )
        stray = [group for group in groups_with_terms if group not in order]
        if stray:
            raise ValueError(f"terms of groups that are not asked for: {', '.join(stray)}")
        bare = [group for group in order if group not in groups_with_terms]
        if bare:
            raise ValueError(f"no representative term for {', '.join(bare)}")

        terms = tuple(sorted({term for term, _ in lowered}))
        membership = np.zeros((len(terms), len(order)), dtype=np.bool_)  # (terms, groups)
        for term, group in lowered:
            membership[terms.index(term), order.index(group)] = True
        return cls(order, terms, membership)

    @property
    def shared(self) -> tuple[str, ...]:
        """Terms that represent more than one group."""
        n_groups = self.membership.sum(axis=1)
        return tuple(np.asarray(self.terms, dtype=object)[n_groups > 1])


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
        r"""Magnitude of each group in each document (thesis section 4.2).

        .. math:: M^G(d) = \sum_{t \in V_G} tf(t, d)

        ``groups``: any groups over the terms that were counted. Returns ndarray, shaped (documents,
        groups).
        """
        absent = sorted(set(groups.terms) - set(self.terms))
        if absent:
            raise ValueError(
                f"{len(absent)} terms of the groups were not counted,"
                f" such as {', '.join(absent[:3])}"
            )
        membership = pd.DataFrame(groups.membership, index=groups.terms)
        membership = membership.reindex(self.terms, fill_value=False)
        return self.counts @ membership.to_numpy(dtype=np.float64)


_NOT_IN_WORDS = {"whitespace": re.compile(r"\s"), "word": re.compile(r"[\W_]")}
"""What is between words of any script besides blanks; with tokens "space", nothing is."""


def _translation(tokens: str) -> bytes:
    """For each byte: a blank for what is between words in ASCII, its lower case for a capital."""
    translation = bytearray(range(256))  # a byte beyond ASCII is part of a letter, and stays
    between_words = _NOT_IN_WORDS.get(tokens)
    for code in range(128):
        letter = chr(code)
        if between_words and between_words.match(letter):
            letter = " "
        translation[code] = ord(letter.lower())
    return bytes(translation)


def _beyond_ascii(texts: Any, tokens: str) -> Any:
    """The texts, those beyond ASCII in lower case, with blanks for what parts their words."""
    beyond = pc.invert(pc.string_is_ascii(texts))
    if not pc.any(beyond).as_py():
        return texts
    between_words = _NOT_IN_WORDS.get(tokens)
    changed = []
    for text in texts.filter(beyond).to_pylist():
        lowered = text.lower()
        if between_words:
            lowered = between_words.sub(" ", lowered)
        changed.append(lowered)
    return pc.replace_with_mask(texts, beyond, pa.array(changed, pa.large_string()))


def _words(texts: Any, tokens: str) -> Any:
    """The words of each of the texts, of Arrow, in lower case; empty ones where blanks meet."""
    plain = _beyond_ascii(pc.fill_null(texts, ""), tokens)
    # One byte for one byte: the texts begin and end where they did.
    _, ends, letters = pa.concat_arrays([plain]).buffers()
    lowered = bytes(letters or b"").translate(_translation(tokens))
    plain = pa.LargeStringArray.from_buffers(len(plain), ends, pa.py_buffer(lowered))
    return pc.split_pattern(plain, " ")


def _count(texts: Any, terms: Any, tokens: str) -> tuple[sparse.csr_array, Integers]:
    """Occurrences of the terms, shaped (texts, terms), and the number of words of each text."""
    words_by_text = _words(texts, tokens)
    words = pc.list_flatten(words_by_text)
    text_of_word = pc.list_parent_indices(words_by_text).to_numpy()
    # Where blanks meet, an empty word is between them, which counts for nothing.
    is_word = pc.not_equal(words, "").to_numpy(zero_copy_only=False)
    lengths = np.bincount(text_of_word[is_word], minlength=len(texts))

    term_of_word = pc.index_in(words, value_set=terms)
    is_term = pc.is_valid(term_of_word).to_numpy(zero_copy_only=False)
    term = term_of_word.drop_null().to_numpy()
    entries = (np.ones(len(term), dtype=np.int32), (text_of_word[is_term], term))
    counts = sparse.coo_array(entries, shape=(len(texts), len(terms)))
    return sparse.csr_array(counts), lengths


def _batches(documents: Iterable[Any], batch: int) -> Iterator[tuple[pd.Series, Any]]:
    """Ids and texts of one batch of documents after the other."""
    stream = iter(documents)
    for document in stream:
        if isinstance(document, pd.DataFrame):
            ids = document["document"].astype("str")
            texts = pa.array(document["text"]).cast(pa.large_string())
            yield ids, texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        else:
            pairs = [document, *islice(stream, batch - 1)]
            ids, texts = zip(*pairs, strict=True)
            yield pd.Series(ids, dtype="str"), pa.array(texts, pa.large_string())


@checked
def count_terms(
    documents: Iterable[tuple[str, str]] | Iterable[pd.DataFrame],
    terms: Iterable[str],
    *,
    tokens: Tokens = "word",
    batch: int = 8192,
) -> TermCounts:
    """Count the given terms in a stream of documents; memory holds one batch and the counts.

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
    # Blocks bound the memory of words; batches that of texts, where documents are a stream.
    term_array = pa.array(names, pa.large_string())
    ids = [pd.Series([], dtype="str")]
    lengths = [np.empty(0, dtype=np.int64)]
    counts = [sparse.csr_array((0, len(names)), dtype=np.int32)]
    for batch_ids, texts in _batches(documents, batch):
        ids.append(batch_ids)
        for start in range(0, len(texts), _BLOCK):
            block_counts, block_lengths = _count(texts.slice(start, _BLOCK), term_array, tokens)
            counts.append(block_counts)
            lengths.append(block_lengths)
    index = pd.Index(pd.concat(ids), name="document")
    matrix = sparse.vstack(counts, format="csr")
    return _with_unique_documents(TermCounts(index, names, matrix, np.concatenate(lengths)))


def joined(counts: Sequence[TermCounts]) -> TermCounts:
    """Counts of the same terms in several parts of a collection, one after the other."""
    documents = pd.Index(
        pd.concat([pd.Series(counts_of_part.documents) for counts_of_part in counts]),
        name="document",
    )
    matrix = sparse.vstack([counts_of_part.counts for counts_of_part in counts], format="csr")
    lengths = np.concatenate([counts_of_part.lengths for counts_of_part in counts])
    return _with_unique_documents(TermCounts(documents, counts[0].terms, matrix, lengths))


def _with_unique_documents(counts: TermCounts) -> TermCounts:
    repeated = counts.documents[counts.documents.duplicated()]
    if len(repeated):
        raise ValueError(f"{len(repeated)} documents come twice, such as {repeated[0]}")
    return counts
