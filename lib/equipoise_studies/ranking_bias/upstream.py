"""Collections with their texts, as upstream files hold them: for recorders, facts and evaluators.

Small ones come whole (Grep-BiasIR, NQ-UTD, NFCorpus, Natural Questions, the passages of MS MARCO
that public runs found for the queries of TREC Deep Learning); all passages of MS MARCO, as in the
original study, stream through ir_datasets, with the two public query sets. The notebook needs none
of them: it starts from the facts that `equipoise_studies.ranking_bias.facts` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import pandas as pd

from equipoise.files import read_columns
from equipoise.loaders import gender_terms
from equipoise.loaders.documents import stream_documents
from equipoise.measures.ranking_bias import count_terms
from equipoise_compendium import project, registry
from equipoise_studies.collections import cocktail
from equipoise_studies.collections.natural_questions import read_questions
from equipoise_studies.ranking_bias import grepbiasir, msmarco
from equipoise_studies.ranking_bias.msmarco import DIGESTS
from equipoise_studies.ranking_bias.substitution import GenderPairs

TERM_LISTS = {
    "long": ("cpjku", "resources/wordlist_gender_representative.txt"),
    "short": ("genderbias_ir", "resources/wordlist_genderspecific.txt"),
}
"""The public term lists: the long one of 326 words and first names, the short one of 64 words."""

_WORD_PAIRS = ("cds", "data/cda_default_pairs.json")
_NAME_PAIRS = ("cds", "data/names_pairs_1000_scaled.json")
FILES_OF_PAIRS = (_WORD_PAIRS, _NAME_PAIRS, TERM_LISTS["long"])
"""The files that `gender_pairs` reads, by item and path."""

_ANNOTATED_QUERIES = ("genderbias_ir", "resources/queries_gender_annotated.csv")
_SENSITIVE_QUERIES = ("cpjku", "dataset/msmarco_passage.dev.fair.tsv")
FILES_OF_QUERIES = {"msmarco-qs1": _ANNOTATED_QUERIES, "msmarco-qs2": _SENSITIVE_QUERIES}
"""The file of each public query set of the thesis, by item and path."""

Documents = Callable[[], Iterator[tuple[str, str]]]
"""Starts a new pass over the documents, as pairs of id and text."""


# --- terms ----------------------------------------------------------------------------------------


def read_term_list(name: str) -> pd.DataFrame:
    """A public term list by its name in `TERM_LISTS`: columns ``term, group``."""
    return gender_terms.read_terms(registry.fetch(*TERM_LISTS[name]))


def gender_pairs() -> GenderPairs:
    """Counterparts of gendered words and names.

    From item cds, our supplement, and the names of the long term list.
    """
    words = gender_terms.read_pairs(registry.fetch(*_WORD_PAIRS))
    names = gender_terms.read_pairs(registry.fetch(*_NAME_PAIRS))
    supplement = read_columns(
        project.data("attributes", "gender_pairs.csv"), ["male", "female", "direction"]
    )
    directions = dict(list(supplement.groupby("direction")))
    two_ways = [*_pairs(words, "male", "female"), *_pairs(directions["both"], "male", "female")]
    one_way = [
        *_pairs(directions["to female"], "male", "female"),
        *_pairs(directions["to male"], "female", "male"),
    ]
    pairs = GenderPairs.of(two_ways, _pairs(names, "male", "female"), one_way)
    return pairs.completed(_pairs(read_term_list("long"), "term", "group"))


def _pairs(table: pd.DataFrame, column: str, other_column: str) -> list[tuple[str, str]]:
    return list(zip(table[column], table[other_column], strict=True))


# --- collections ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BiasCollection:
    """A collection with the texts of its queries and documents.

    ``name``: a key of `COLLECTIONS`. ``queries`` (columns query, text). ``qrels`` (columns topic,
    document, level). ``documents``: starts a new pass over the documents, as pairs of id and text
    (title and text, where there is a title). ``about``: what it is, in words.
    """

    name: str
    queries: pd.DataFrame
    qrels: pd.DataFrame
    documents: Documents
    about: str = ""


def _in_memory(documents: pd.DataFrame, texts: pd.Series) -> Documents:
    return lambda: iter(zip(documents["document"].tolist(), texts.tolist(), strict=True))


def _grepbiasir(name: str) -> BiasCollection:
    queries = grepbiasir.read_queries(registry.fetch("grepbiasir", grepbiasir.QUERIES))
    documents = grepbiasir.read_documents(
        [registry.fetch("grepbiasir", path) for path in grepbiasir.FILES]
    )
    qrels = documents.rename(columns={"query": "topic"})[["topic", "document", "level"]]
    texts = documents["title"] + " " + documents["text"]
    return BiasCollection(name, queries[["query", "text"]], qrels, _in_memory(documents, texts))


def _cocktail(name: str) -> BiasCollection:
    archive = registry.fetch("cocktail", f"dataset/{name}.zip")
    # the archive has queries of other splits too
    qrels = cocktail.read_qrels(archive)
    queries = cocktail.read_queries(archive)
    judged = queries[queries["query"].isin(qrels["topic"])].reset_index(drop=True)
    documents = cocktail.read_documents(archive)
    texts = (documents["title"] + " " + documents["text"]).str.strip()
    return BiasCollection(name, judged[["query", "text"]], qrels, _in_memory(documents, texts))


def _nqoracle(name: str) -> BiasCollection:
    questions = read_questions(registry.fetch("nqoracle", "qa_data/nq-open-oracle.jsonl.gz"))
    questions["passage"] = questions["title"] + " " + questions["passage"]
    # questions with the same gold passage share one document, named by the first of them
    same_passage = questions.groupby("passage", sort=False)["query"]
    questions["document"] = same_passage.transform("first")

    # QS1 of the thesis is of queries that name no gender
    texts = zip(questions["query"], questions["text"], strict=True)
    gendered = count_terms(texts, read_term_list("long")["term"], tokens="word")
    neutral = questions[gendered.counts.sum(axis=1) == 0].reset_index(drop=True)
    qrels = neutral[["query", "document"]].set_axis(["topic", "document"], axis=1).assign(level=1)

    # passages of gendered questions stay: they are documents like the others
    passages = questions.drop_duplicates("document")
    gold = _in_memory(passages, passages["passage"])
    nfcorpus = _cocktail("nfcorpus").documents
    nq_utd = _cocktail("nq-utd").documents
    return BiasCollection(
        name, neutral[["query", "text"]], qrels, lambda: chain(gold(), nfcorpus(), nq_utd())
    )


def _deep_learning(name: str) -> BiasCollection:
    if name == "msmarco-dl-sensitive":
        queries = msmarco.sensitive_queries()
    else:
        # words alone tell: the names of the long list stand in questions about anything
        queries = msmarco.neutral_queries(read_term_list("short")["term"].tolist())
    qrels = msmarco.judgements(queries["query"])
    passages = msmarco.ranked().passages
    return BiasCollection(name, queries, qrels, _in_memory(passages, passages["text"]))


def msmarco_queries(name: str) -> pd.DataFrame:
    """A public query set of the thesis, ``msmarco-qs1`` or ``-qs2``: columns ``query, text``."""
    if name == "msmarco-qs1":
        annotated = gender_terms.read_annotated_queries(registry.fetch(*_ANNOTATED_QUERIES))
        return annotated[annotated["label"] == "n"][["query", "text"]].reset_index(drop=True)
    return gender_terms.read_sensitive_queries(registry.fetch(*_SENSITIVE_QUERIES))


def msmarco_qrels() -> pd.DataFrame:
    """Judgements of MS MARCO's dev queries, by ir_datasets: columns ``topic, document, level``."""
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise registry.DataUnreachable(
            "msmarco-passage comes through ir_datasets, which is not installed: "
            "pip install '.[collections]'"
        ) from error
    rows = []
    for judgement in ir_datasets.load("msmarco-passage/dev").qrels_iter():
        rows.append((judgement.query_id, judgement.doc_id, judgement.relevance))
    qrels = pd.DataFrame(rows, columns=["topic", "document", "level"])
    return qrels.astype({"topic": "str", "document": "str"})


def _msmarco(name: str) -> BiasCollection:
    queries = msmarco_queries(name)
    qrels = msmarco_qrels()
    judged = qrels[qrels["topic"].isin(queries["query"])].reset_index(drop=True)
    return BiasCollection(name, queries, judged, lambda: stream_documents("msmarco-passage"))


COLLECTIONS: dict[str, Callable[[str], BiasCollection]] = {
    "grepbiasir": _grepbiasir,
    "nq-utd": _cocktail,
    "nfcorpus": _cocktail,
    "nqoracle": _nqoracle,
    "msmarco-dl": _deep_learning,
    "msmarco-dl-sensitive": _deep_learning,
    "msmarco-qs1": _msmarco,
    "msmarco-qs2": _msmarco,
}
"""Collections by name. ``msmarco-qs1`` and ``msmarco-qs2`` are those of the thesis.

``msmarco-dl`` and ``msmarco-dl-sensitive`` stand nearest to them by passages and rankers: queries
of TREC Deep Learning, over the passages of MS MARCO that public runs found for these. ``nqoracle``
has 25 times as many queries: the Natural Questions that name no gendered term, over their gold
passages, NFCorpus and NQ-UTD.
"""

PASSAGES = {"msmarco-qs1": "msmarco-passage", "msmarco-qs2": "msmarco-passage"}
"""Documents that several collections share; of these, files may lie on this machine."""

SHARED = PASSAGES | dict.fromkeys(("msmarco-dl", "msmarco-dl-sensitive"), "msmarco-pool")
"""All documents that several collections share."""

DOCUMENTS = {"msmarco-passage": 8_841_823}
"""How many documents there are, where that is known before they are read."""

QUERIES = {"msmarco-qs1": (1756, 1765), "msmarco-qs2": (215,)}
"""How many queries the thesis states, and the public file holds, where these differ."""

ABOUT = {
    "grepbiasir": "Grep-BiasIR: bias-sensitive queries, each with relevant and non-relevant "
    "documents, and these in male, female and neutral wording",
    "nq-utd": "NQ-UTD: questions on recent events, with passages judged for each",
    "nfcorpus": "NFCorpus: queries on nutrition, with medical articles",
    "nqoracle": "the questions of Natural Questions that name no gendered term, over their gold "
    "passages, NFCorpus and NQ-UTD",
    "msmarco-dl": "the queries of TREC Deep Learning 2019 and 2020 that hold no gendered word, "
    "with the passages of MS MARCO that four public runs have among their best 100",
    "msmarco-dl-sensitive": "the bias-sensitive queries of TREC Deep Learning 2019, with the "
    "same passages",
    "msmarco-qs1": "the non-gendered queries of the thesis, with the passages of MS MARCO",
    "msmarco-qs2": "the bias-sensitive queries of the thesis, with the passages of MS MARCO",
}
"""What each collection is, in words."""


def collection(name: str) -> BiasCollection:
    """Load a collection by its name in `COLLECTIONS`."""
    if name not in COLLECTIONS:
        raise ValueError(f"no collection named {name!r}; there are {', '.join(COLLECTIONS)}")
    return replace(COLLECTIONS[name](name), about=ABOUT[name])


LEAST_SHARE = 0.9
"""Of queries and listed passages that are as published, in a copy of the thesis's collection."""


def other_than_msmarco(name: str, account: Mapping[str, int]) -> str:
    """What tells files of one's own from MS MARCO's and a public query set's; empty for nothing.

    ``name``: one of `PASSAGES`. ``account``: how many ``documents`` and ``queries`` there are, how
    many of these are as published, and how many of the listed passages are; one that is not there
    is not judged.
    """
    n_documents = DOCUMENTS[PASSAGES[name]]
    documents = account["documents"]
    if documents != n_documents:
        return f"{documents:,} documents, where MS MARCO has {n_documents:,}"
    if "queries" not in account:
        return ""
    queries = account["queries"]
    if queries not in QUERIES[name]:
        return f"{queries:,} queries, where {name} has {QUERIES[name][-1]:,}"
    as_published = account.get("queries as published", 0)
    if as_published < LEAST_SHARE * queries:
        return f"{as_published:,} of {queries:,} queries by their ids those of {name}"
    passages = account.get("passages as published", 0)
    if passages < LEAST_SHARE * DIGESTS:
        return f"{passages:,} of {DIGESTS:,} passages by their sha256 those of MS MARCO"
    return ""


def public_queries() -> pd.DataFrame:
    """Ids of the public query sets of the thesis with the kind of each: columns ``query, kind``.

    The annotated queries in the order of their file, and then the bias-sensitive ones.
    """
    annotated = gender_terms.read_annotated_queries(registry.fetch(*_ANNOTATED_QUERIES))
    annotated["kind"] = annotated["label"].map(gender_terms.QUERY_LABELS)
    sensitive = gender_terms.read_sensitive_queries(registry.fetch(*_SENSITIVE_QUERIES))
    sensitive["kind"] = "bias-sensitive"
    return pd.concat([annotated, sensitive], ignore_index=True)[["query", "kind"]]
