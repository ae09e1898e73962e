"""The rankers that need no model: BM25 and the language model, and mixtures of two rankers.

A term of a query adds to a candidate's score only where the candidate contains it too. So BM25 and
the language model need only the counts of shared terms, the frequency of each term in the
collection and the lengths of the papers. A term is its rank in alphabetical order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import regex
import Stemmer
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from equipoise.arrays import Booleans, Floats, Integers

Analyser = Callable[[str], list[str]]
"""Function that splits a text into its terms."""

LONGEST = 255
"""Length in characters from which the standard tokeniser cuts a token into pieces."""

BM25 = {"k1": 2.75, "b": 1.0}
"""BM25's parameters in thesis section 2.2.1, tuned there for scientific papers."""

SMOOTHING = 0.1
"""Weight of the collection in the language model: Elasticsearch's default, as the author's."""

ALPHAS: tuple[float, ...] = tuple(step / 10 for step in range(11))
"""The weights of the thesis's sweep: 0 to 1 by 0.1."""

FACET = ["task", "query"]

_BOUNDARY = regex.compile(r"\b", flags=regex.VERSION1 | regex.WORD)
_WORD = regex.compile(r"[\p{Alphabetic}\p{N}]")
_PORTER = Stemmer.Stemmer("porter", 100_000)


# --- terms ----------------------------------------------------------------------------------------


def standard_analyser(text: str) -> list[str]:
    """Split a text at Unicode's default word boundaries, in lower case; keep letters and digits.

    Elasticsearch's standard analyser, which has no stop words by default: thesis section 2.3.2.
    """
    tokens = []
    for word in _BOUNDARY.split(text):
        if _WORD.search(word):
            for start in range(0, len(word), LONGEST):
                tokens.append(word[start : start + LONGEST].lower())
    return tokens


ANALYSERS: Mapping[str, Analyser] = {
    "SA": standard_analyser,
    "STM1": lambda text: list(_PORTER.stemWords(text.lower().split())),
    "STM2": lambda text: list(_PORTER.stemWords(standard_analyser(text))),
}
"""The thesis's three analysers: SA, and with Porter stems STM1 (white space) and STM2 (words)."""


def paper_lengths(texts: pd.Series, analysers: Mapping[str, Analyser]) -> pd.DataFrame:
    """Count the terms of each paper: ``document`` and a column per analyser."""
    lengths = pd.DataFrame({"document": texts.index})
    for name, analyse in analysers.items():
        lengths[name] = [len(analyse(text)) for text in texts]
    return lengths.astype(dict.fromkeys(analysers, "int32"))


def term_counts(texts: pd.Series, analysers: Mapping[str, Analyser]) -> pd.DataFrame:
    """Count the terms that two or more papers contain: ``analyser, document, term, count``."""
    tables = []
    for name, analyse in analysers.items():
        counts = sparse.csr_array(CountVectorizer(analyzer=analyse).fit_transform(texts))
        in_two_papers = (counts > 0).sum(axis=0) > 1
        cells = sparse.coo_array(counts[:, in_two_papers])
        table = pd.DataFrame({"term": cells.col, "count": cells.data}).astype("int32")
        table.insert(0, "analyser", name)
        table.insert(1, "document", texts.index.take(cells.row).to_numpy())
        tables.append(table)
    counted = pd.concat(tables)
    return counted.sort_values(["analyser", "document", "term"], ignore_index=True)


def shared_terms(counts: pd.DataFrame, pairs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Find the terms that a query and its candidate share, and how common each term is.

    Parameters
    ----------
    counts
        As `term_counts` returns it.
    pairs
        ``query, document``, each pair once. The documents are the collection.

    Returns
    -------
    shared
        ``analyser, query, document, term, in_query, in_document``. The last two are counts.
    statistics
        ``analyser, term, documents, occurrences``: the candidates that contain the term, and its
        number of occurrences in them.
    """
    # A paper that shares no term with any other has no counts.
    papers = pd.concat([counts["document"], pairs["query"], pairs["document"]])
    documents = pd.Index(papers.unique())
    is_candidate = documents.isin(pairs["document"])
    shared_tables, statistics_tables = [], []
    for analyser in counts["analyser"].unique():
        cells = counts[counts["analyser"] == analyser]
        places = documents.get_indexer(cells["document"]), cells["term"]
        shape = len(documents), counts["term"].max() + 1
        matrix = sparse.coo_array((cells["count"], places), shape=shape).tocsr()

        # One row per pair: how often the query contains each term that its candidate contains too.
        in_query = matrix[documents.get_indexer(pairs["query"])]
        in_document = matrix[documents.get_indexer(pairs["document"])]
        both = sparse.coo_array(in_query * (in_document > 0))
        order = np.lexsort((both.col, both.row))
        pair, column = both.row[order], both.col[order]
        columns, term = np.unique(column, return_inverse=True)
        shared = pairs.take(pair).reset_index(drop=True)
        shared["term"] = term
        shared["in_query"] = both.data[order]
        shared["in_document"] = in_document[pair, column]
        shared = shared.astype(dict.fromkeys(["term", "in_query", "in_document"], "int32"))
        shared.insert(0, "analyser", analyser)
        shared_tables.append(shared)

        in_collection = matrix[is_candidate][:, columns]
        statistics = pd.DataFrame({"term": np.arange(len(columns))})
        statistics["documents"] = (in_collection > 0).sum(axis=0)
        statistics["occurrences"] = in_collection.sum(axis=0)
        statistics = statistics.astype("int32")
        statistics.insert(0, "analyser", analyser)
        statistics_tables.append(statistics)
    shared = pd.concat(shared_tables, ignore_index=True)
    return shared, pd.concat(statistics_tables, ignore_index=True)


# --- lexical rankers ------------------------------------------------------------------------------


@dataclass(frozen=True)
class DerivedData:
    """Judgements, splits and counts of terms of a collection, without its texts.

    ``judgements``: ``task, query, document, grade``. ``splits``: ``task, fold, part, query``.
    ``paper_lengths``: ``document`` and a column per analyser. ``shared_terms, term_statistics``:
    as `shared_terms` returns them.
    """

    judgements: pd.DataFrame
    splits: pd.DataFrame
    paper_lengths: pd.DataFrame
    shared_terms: pd.DataFrame
    term_statistics: pd.DataFrame


def lexical_scores(
    data: DerivedData, *, k1: float = 2.75, b: float = 1.0, smoothing: float = SMOOTHING
) -> pd.DataFrame:
    r"""Score every judged pair by BM25 and the language model, with each analyser.

    .. math::
        BM25(q, d) = \sum_t c_q(t) \ln\Bigl(1 + \frac{N - n_t + 0.5}{n_t + 0.5}\Bigr)
        \frac{c_d(t) (k_1 + 1)}{c_d(t) + k_1 (1 - b + b |d| / \overline{|d|})}

        LM(q, d) = \sum_t c_q(t) \ln\Bigl(1 + \frac{(1 - \lambda) c_d(t) / |d|}
        {\lambda (c_C(t) + 1) / (|C| + 1)}\Bigr)

    Parameters
    ----------
    data
        The collection is every paper that is a candidate of some query.
    k1, b
        BM25's saturation of repeated terms, at least 0, and normalisation by length, 0 to 1.
    smoothing
        Lambda, the weight of the collection (Jelinek-Mercer), strictly between 0 and 1.

    Returns
    -------
    DataFrame
        ``query, document``, and ``BM25 ANALYSER`` and ``LM ANALYSER`` for each analyser.

    Notes
    -----
    thesis section 2.2.1. As in Lucene, 1 is added to the share of a term in the collection.
    """
    if k1 < 0 or not 0 <= b <= 1:
        raise ValueError(f"k1 must be at least 0 and b between 0 and 1, got k1={k1} and b={b}")
    if not 0 < smoothing < 1:
        raise ValueError(f"smoothing must be strictly between 0 and 1, got {smoothing}")
    scores = data.judgements[["query", "document"]].drop_duplicates(ignore_index=True)
    lengths = data.paper_lengths.set_index("document")
    lengths = lengths[lengths.index.isin(scores["document"])]
    for analyser in lengths.columns:
        terms = data.shared_terms[data.shared_terms["analyser"] == analyser]
        terms = terms.merge(data.term_statistics, on=["analyser", "term"])
        count = terms["in_document"]
        length = terms["document"].map(lengths[analyser])

        rarity = np.log1p((len(lengths) - terms["documents"] + 0.5) / (terms["documents"] + 0.5))
        saturation = k1 * (1 - b + b * length / lengths[analyser].mean())
        terms["BM25"] = terms["in_query"] * rarity * count * (k1 + 1) / (count + saturation)

        share = (terms["occurrences"] + 1) / (lengths[analyser].sum() + 1)
        gain = (1 - smoothing) * count / length / (smoothing * share)
        terms["LM"] = terms["in_query"] * np.log1p(gain)

        sums = terms.groupby(["query", "document"])[["BM25", "LM"]].sum()
        scores = scores.merge(sums.add_suffix(f" {analyser}"), how="left", on=["query", "document"])
    return scores.fillna(0.0)  # a candidate that shares no term with its query


# --- mixtures -------------------------------------------------------------------------------------


def z_scale(scores: ArrayLike, queries: ArrayLike) -> Floats:
    r"""Standardise scores within each query to mean 0 and standard deviation 1 (section 2.3.3).

    .. math:: z(q, d) = \frac{s(q, d) - \bar s_q}{\sigma_q}

    ``scores, queries``: shape (rows,), a score and the code of its query per row. A query whose
    scores are all equal gets zeros.
    """
    values = pd.Series(np.asarray(scores, dtype=np.float64))
    if not np.isfinite(values).all():
        raise ValueError("scores to standardise must be finite numbers")
    groups = values.groupby(np.asarray(queries))
    deviation = groups.transform("std", ddof=0)
    scaled = (values - groups.transform("mean")) / deviation.where(deviation > 0, 1.0)
    return scaled.where(deviation > 0, 0.0).to_numpy()


@dataclass(frozen=True)
class Candidates:
    """Candidates of every facet, one row each, padded to the longest.

    A facet is a task and a query. ``bm25, relevant, is_candidate``: shape (facets, documents).
    ``rankers``: for each mixture, z-scores of its columns, shape (facets, documents) each.
    """

    facets: pd.MultiIndex
    bm25: Floats
    rankers: list[list[Floats]]
    relevant: Booleans
    is_candidate: Booleans

    @classmethod
    def from_scores(
        cls,
        scores: pd.DataFrame,
        judgements: pd.DataFrame,
        relevant: int,
        bm25: str,
        mixtures: Sequence[Sequence[str]],
    ) -> Candidates:
        """Build from scores of pairs, with the columns of BM25 and of each mixture.

        Facets without a candidate of at least grade ``relevant`` have no average precision.
        """
        table = scores.merge(judgements, on=[*FACET, "document"])
        is_relevant = table["grade"] >= relevant
        n_relevant = is_relevant.groupby([table["task"], table["query"]]).transform("sum")
        table = table[n_relevant > 0]
        # Ties are broken by document id, descending.
        table = table.sort_values([*FACET, "document"], ascending=[True, True, False])
        facets = table.groupby(FACET)
        row, place = facets.ngroup().to_numpy(), facets.cumcount().to_numpy()
        shape = (int(row.max()) + 1, int(place.max()) + 1)

        def padded(values: Floats) -> Floats:
            matrix = np.zeros(shape)
            matrix[row, place] = values
            return matrix

        rankers = []
        for columns in mixtures:
            rankers.append([padded(z_scale(table[column], row)) for column in columns])
        return cls(
            facets=pd.MultiIndex.from_frame(table[FACET].drop_duplicates()),
            bm25=padded(z_scale(table[bm25], row)),
            rankers=rankers,
            relevant=padded((table["grade"] >= relevant).to_numpy()) > 0,
            is_candidate=padded(np.ones(len(table))) > 0,
        )

    def curves(self, order: Integers | None = None) -> Floats:
        """Compute average precision under every weight, mean over seeds.

        ``order`` permutes the scores of each facet's candidates, shape (facets, documents).
        Returns shape (mixtures, weights, facets).
        """
        means = []
        for columns in self.rankers:
            precisions = []
            for z_scores in columns:
                given = z_scores
                if order is not None:
                    given = np.take_along_axis(z_scores, order, axis=1)
                # Eq. 2.5 of the thesis: alpha is the weight of BM25.
                mixed = np.stack([alpha * self.bm25 + (1 - alpha) * given for alpha in ALPHAS])
                precisions.append(self._average_precision(mixed))
            means.append(np.mean(precisions, axis=0))
        return np.stack(means)

    def _average_precision(self, scores: Floats) -> Floats:
        """Compute average precision of scores of shape (weights, facets, documents)."""
        # Scores are compared in single precision, as by trec_eval; padding comes last.
        keys = np.where(self.is_candidate, -scores, np.inf).astype(np.float32)
        ranked = np.take_along_axis(
            np.broadcast_to(self.relevant, keys.shape),
            np.argsort(keys, axis=-1, kind="stable"),
            axis=-1,
        )
        precision = ranked.cumsum(axis=-1) / np.arange(1, ranked.shape[-1] + 1)
        return (ranked * precision).sum(axis=-1) / self.relevant.sum(axis=-1)

    def shuffled(self, draws: int, rng: np.random.Generator) -> Floats:
        """Compute `curves` with scores randomly permuted among the candidates of each facet.

        The scores keep their distribution, and the similarity of rankers and seeds, but carry no
        information about the documents. Returns shape (draws, mixtures, weights, facets).
        """
        curves = []
        for _ in range(draws):
            keys = rng.random(self.bm25.shape)
            keys[~self.is_candidate] = 2.0  # padding stays last
            curves.append(self.curves(np.argsort(keys, axis=1)))
        return np.stack(curves)


def folds_of(facets: pd.MultiIndex, splits: pd.DataFrame) -> list[tuple[Booleans, Booleans]]:
    """Find the facets that each fold tunes weights on (``dev``), and those it tests (``test``).

    ``splits``: ``task, fold, part, query``.
    """
    folds = []
    for _, fold in splits.groupby(["task", "fold"]):
        dev, test = (fold.loc[fold["part"] == part, FACET] for part in ("dev", "test"))
        is_dev = facets.isin(pd.MultiIndex.from_frame(dev))
        is_test = facets.isin(pd.MultiIndex.from_frame(test))
        folds.append((is_dev, is_test))
    return folds


def gains(
    curves: Floats, folds: Sequence[tuple[Booleans, Booleans]], times: Floats
) -> tuple[Floats, Floats]:
    """Compute the gains of mixing; each bootstrap sample tunes the weight of each fold.

    Parameters
    ----------
    curves
        Shape (mixtures, weights, facets).
    folds
        As `folds_of` returns them.
    times
        Number of times that each facet was drawn, shape (samples, facets).

    Returns
    -------
    mixing, oracle
        Mean gains in MAP, shape (mixtures, samples). ``mixing``: one tuned weight minus the
        better of the two rankers. ``oracle``: the best weight of each facet minus the tuned one.
    """
    sums = np.zeros((4, len(curves), len(times)))
    n_tested = np.zeros(len(times))
    for is_dev, is_test in folds:
        dev_sums = curves[..., is_dev] @ times[:, is_dev].T  # (mixtures, weights, samples)
        test_sums = curves[..., is_test] @ times[:, is_test].T
        # Rounded, so that the last bits of a sum do not choose between equal weights.
        tuned = dev_sums.round(12).argmax(axis=1)[:, np.newaxis]
        sums[0] += test_sums[:, 0]
        sums[1] += test_sums[:, -1]
        sums[2] += np.take_along_axis(test_sums, tuned, axis=1)[:, 0]
        sums[3] += curves[..., is_test].max(axis=-2) @ times[:, is_test].T
        n_tested += times[:, is_test].sum(axis=1)
    ranker, bm25, one_weight, best_weights = sums / n_tested
    return one_weight - np.maximum(ranker, bm25), best_weights - one_weight
