r"""Representative terms: which term stands for which group, and how often each occurs in each document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat

import numpy as np
import pandas as pd
from scipy import sparse

from equipoise.arrays import Booleans, Floats, Integers
from equipoise.declare import checked
from equipoise.options import Tokens

_SPLIT: dict[str, Callable[[str], list[str]]] = {
    "space": lambda text: [token for token in text.split(" ") if token],
    "whitespace": str.split,
    "word": re.compile(r"[^\W_]+").findall,
}


@dataclass(frozen=True)
class TermGroups:
    """Which representative term stands for which group.

    ``groups``: in the order of every axis *groups* and of the target. ``terms``: lower-cased, each once.
    ``membership`` (shaped (terms, groups)): True where the term represents the group: the sets V_G of Eq. 4.9. A term
    in two groups counts for both, as in the public NFaiRR program.
    """

    groups: tuple[str, ...]
    terms: tuple[str, ...]
    membership: Booleans

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]], groups: Sequence[str] | None = None) -> TermGroups:
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
            raise ValueError(f"bias is between two groups or more, found {len(order)}: {', '.join(order)}")
        if unknown := [group for group in found if group not in order]:
            raise ValueError(f"terms of groups that are not asked for: {', '.join(unknown)}")
        if bare := [group for group in order if group not in found]:
            raise ValueError(f"no representative term for {', '.join(bare)}")
        terms = tuple(sorted({term for term, _ in lowered}))
        return cls(order, terms, np.array([[(term, group) in lowered for group in order] for term in terms]))

    @property
    def shared(self) -> tuple[str, ...]:
        """Terms that represent more than one group."""
        return tuple(np.asarray(self.terms, dtype=object)[self.membership.sum(axis=1) > 1])


@dataclass(frozen=True)
class TermCounts:
    r"""How often each term occurs in each document of a collection.

    ``documents``: ids, strings, each once; the rows. ``terms``: the terms that were counted; the columns. ``counts``
    (shaped (documents, terms)): occurrences, tf(t, d). ``lengths`` (shaped (documents,)): all terms of the document,
    \|d\|, representative or not.
    """

    documents: pd.Index
    terms: tuple[str, ...]
    counts: sparse.csr_array
    lengths: Integers

    def magnitudes(self, groups: TermGroups) -> Floats:
        r"""Magnitude of each group in each document, :math:`M^G(d) = \sum_{t \in V_G} tf(t, d)` (thesis section 4.2).

        ``groups``: any groups over the terms that were counted. Returns ndarray, shaped (documents, groups).
        """
        if absent := sorted(set(groups.terms) - set(self.terms)):
            raise ValueError(f"{len(absent)} terms of the groups were not counted, such as {', '.join(absent[:3])}")
        member = pd.DataFrame(groups.membership, index=groups.terms).reindex(self.terms, fill_value=False)
        return self.counts @ member.to_numpy(dtype=np.float64)


@checked
def count_terms(
    documents: Iterable[tuple[str, str]], terms: Iterable[str], *, tokens: Tokens = "word", batch: int = 8192
) -> TermCounts:
    """Count the given terms in a stream of documents, in memory bounded by one batch of texts and the counts.

    ``documents``: id and text; read once, a batch at a time, so that it may be a generator over a collection of any
    size. ``terms``: compared lower-cased, as in the public NFaiRR program. ``batch``: texts held at once.

    Examples
    --------
    >>> count_terms([("d1", "He said that he left")], ["he", "she"]).counts.toarray()
    array([[2, 0]], dtype=int32)
    """
    vocabulary = tuple(sorted({term.lower() for term in terms}))
    if not vocabulary:
        raise ValueError("the list of terms is empty: nothing to count")
    column = {term: number for number, term in enumerate(vocabulary)}
    ids = [pd.Index([], dtype="str", name="document")]
    lengths: list[Integers] = [np.empty(0, dtype=np.int64)]
    parts = [sparse.csr_array((0, len(vocabulary)), dtype=np.int32)]
    stream = iter(documents)
    while texts := list(islice(stream, batch)):
        split = [_SPLIT[tokens](text.lower()) for _, text in texts]
        size = np.fromiter(map(len, split), dtype=np.int64, count=len(split))
        found = np.fromiter(map(column.get, chain.from_iterable(split), repeat(-1)), dtype=np.int32, count=size.sum())
        hits = np.flatnonzero(found >= 0)
        row = np.searchsorted(np.cumsum(size), hits, side="right")
        entries = (np.ones(hits.size, dtype=np.int32), (row, found[hits]))
        parts.append(sparse.csr_array(sparse.coo_array(entries, shape=(len(texts), len(vocabulary)))))
        lengths.append(size)
        ids.append(pd.Index([document for document, _ in texts], dtype="str", name="document"))
    index = ids[0].append(ids[1:])
    if not index.is_unique:
        twice = index[index.duplicated()]
        raise ValueError(f"{len(twice)} documents come twice, such as {twice[0]}")
    return TermCounts(index, vocabulary, sparse.vstack(parts, format="csr"), np.concatenate(lengths))
