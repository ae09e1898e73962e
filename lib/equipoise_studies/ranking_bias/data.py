"""Collections on which the bias of ranked lists is measured: queries, judgements, documents, and recorded runs.

Small ones come whole (Grep-BiasIR, NQ-UTD, NFCorpus, Natural Questions); the MS MARCO passages of
the original study stream through ir_datasets, with the two public query sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pandas as pd

from equipoise.files import read_columns, read_text
from equipoise.loaders import gender_terms
from equipoise.loaders.documents import stream_documents
from equipoise.measures.ranking_bias import TermGroups, count_terms
from equipoise.problems import Problems, shown
from equipoise_compendium import project, registry
from equipoise_studies.collections import cocktail
from equipoise_studies.collections.natural_questions import read_questions
from equipoise_studies.ranking_bias import grepbiasir
from equipoise_studies.ranking_bias.substitution import GenderPairs

WORLDS = ("original", "counterfactual")
RUN_COLUMNS = ["world", "run", "topic", "document", "rank", "score"]
_TERMS = {
    "long": ("cpjku", "resources/wordlist_gender_representative.txt"),
    "short": ("genderbias_ir", "resources/wordlist_genderspecific.txt"),
}
_ANNOTATED = ("genderbias_ir", "resources/queries_gender_annotated.csv")
_SENSITIVE = ("cpjku", "dataset/msmarco_passage.dev.fair.tsv")

Documents = Callable[[], Iterator[tuple[str, str]]]


# --- terms ----------------------------------------------------------------------------------------


def gender_terms_of(which: str = "long") -> pd.DataFrame:
    """The public term lists: the long one of 326 words and first names, or the short one of 64 words."""
    return gender_terms.read_terms(registry.fetch(*_TERMS[which]))


def gender_groups(which: str = "long") -> TermGroups:
    """The groups of a public term list."""
    return TermGroups.from_pairs(gender_terms_of(which).itertuples(index=False, name=None))


def gender_pairs() -> GenderPairs:
    """Counterparts of gendered words and names: item cds, our supplement, and the names of the long term list."""
    words = gender_terms.read_pairs(registry.fetch("cds", "data/cda_default_pairs.json"))
    names = gender_terms.read_pairs(registry.fetch("cds", "data/names_pairs_1000_scaled.json"))
    own = read_columns(
        project.data("attributes", "gender_pairs.csv"), ["male", "female", "direction"]
    )
    way = {name: part[["male", "female"]] for name, part in own.groupby("direction")}
    both = pd.concat([words, way["both"]])
    one_way = pd.concat([way["to female"], way["to male"].set_axis(["female", "male"], axis=1)])
    pairs = GenderPairs.of(
        *(part.itertuples(index=False, name=None) for part in (both, names, one_way))
    )
    return pairs.completed(gender_terms_of().itertuples(index=False, name=None))


# --- collections ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BiasCollection:
    """A collection with its queries.

    ``name``: a key of `COLLECTIONS`. ``queries`` (columns query, text). ``qrels`` (columns topic,
    document, level). ``documents``: starts a new pass over the documents, as pairs of id and text
    (title and text, where there is a title). ``about``: what it is, in words.
    """

    name: str
    queries: pd.DataFrame
    qrels: pd.DataFrame
    documents: Documents
    about: str = ""


def _rows(documents: pd.DataFrame, texts: pd.Series) -> Documents:
    return lambda: iter(zip(documents["document"].tolist(), texts.tolist(), strict=True))


def _grepbiasir(name: str) -> BiasCollection:
    queries = grepbiasir.read_queries(registry.fetch("grepbiasir", grepbiasir.QUERIES))
    documents = grepbiasir.read_documents(
        [registry.fetch("grepbiasir", path) for path in grepbiasir.FILES]
    )
    qrels = documents.rename(columns={"query": "topic"})[["topic", "document", "level"]]
    texts = documents["title"] + " " + documents["text"]
    return BiasCollection(name, queries[["query", "text"]], qrels, _rows(documents, texts))


def _cocktail(name: str) -> BiasCollection:
    archive = registry.fetch("cocktail", f"dataset/{name}.zip")
    queries, qrels = cocktail.read_queries(archive), cocktail.read_qrels(archive)
    queries = queries[queries["query"].isin(qrels["topic"])].reset_index(drop=True)
    documents = cocktail.read_documents(archive)
    texts = (documents["title"] + " " + documents["text"]).str.strip()
    return BiasCollection(name, queries[["query", "text"]], qrels, _rows(documents, texts))


def _nqoracle(name: str) -> BiasCollection:
    found = read_questions(registry.fetch("nqoracle", "qa_data/nq-open-oracle.jsonl.gz"))
    found["passage"] = found["title"] + " " + found["passage"]
    found["document"] = found.groupby("passage", sort=False)["query"].transform("first")
    gendered = count_terms(
        zip(found["query"], found["text"], strict=True), gender_terms_of()["term"], tokens="word"
    )
    neutral = found[gendered.counts.sum(axis=1) == 0].reset_index(drop=True)
    qrels = neutral[["query", "document"]].set_axis(["topic", "document"], axis=1).assign(level=1)
    passages = found.drop_duplicates("document")
    gold = _rows(passages, passages["passage"])
    others = [_cocktail(other).documents for other in ("nfcorpus", "nq-utd")]
    return BiasCollection(
        name, neutral[["query", "text"]], qrels, lambda: chain(gold(), *(rows() for rows in others))
    )


def _msmarco(name: str) -> BiasCollection:
    if name == "msmarco-qs1":
        annotated = gender_terms.read_annotated_queries(registry.fetch(*_ANNOTATED))
        queries = annotated[annotated["label"] == "n"][["query", "text"]].reset_index(drop=True)
    else:
        queries = gender_terms.read_sensitive_queries(registry.fetch(*_SENSITIVE))
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise registry.DataUnreachable(
            "msmarco-passage comes through ir_datasets, which is not installed: pip install 'equipoise[collections]'"
        ) from error
    judged = ir_datasets.load("msmarco-passage/dev").qrels_iter()
    rows = [(row.query_id, row.doc_id, row.relevance) for row in judged]
    qrels = pd.DataFrame(rows, columns=["topic", "document", "level"]).astype(
        {"topic": "str", "document": "str"}
    )
    qrels = qrels[qrels["topic"].isin(queries["query"])].reset_index(drop=True)
    return BiasCollection(name, queries, qrels, lambda: stream_documents("msmarco-passage"))


COLLECTIONS: dict[str, Callable[[str], BiasCollection]] = {
    "grepbiasir": _grepbiasir,
    "nq-utd": _cocktail,
    "nfcorpus": _cocktail,
    "nqoracle": _nqoracle,
    "msmarco-qs1": _msmarco,
    "msmarco-qs2": _msmarco,
}
"""Collections by name. ``msmarco-qs1`` and ``msmarco-qs2`` are those of the thesis; ``nqoracle`` is the nearest to the
first at hand: the Natural Questions that name no gendered term, over their gold passages, NFCorpus and NQ-UTD."""

PASSAGES = {"msmarco-qs1": "msmarco-passage", "msmarco-qs2": "msmarco-passage"}
"""Documents that several collections share."""

ABOUT = {
    "grepbiasir": "Grep-BiasIR: bias-sensitive queries, each with relevant and non-relevant documents, and these in "
    "male, female and neutral wording",
    "nq-utd": "NQ-UTD: questions on recent events, with passages judged for each",
    "nfcorpus": "NFCorpus: queries on nutrition, with medical articles",
    "nqoracle": "the questions of Natural Questions that name no gendered term, over their gold passages, NFCorpus and "
    "NQ-UTD",
    "msmarco-qs1": "the non-gendered queries of the thesis, with the passages of MS MARCO",
    "msmarco-qs2": "the bias-sensitive queries of the thesis, with the passages of MS MARCO",
}
"""What each collection is, in words."""


def collection(name: str) -> BiasCollection:
    """Load a collection by its name in `COLLECTIONS`."""
    if name not in COLLECTIONS:
        raise ValueError(f"no collection named {name!r}; there are {', '.join(COLLECTIONS)}")
    return replace(COLLECTIONS[name](name), about=ABOUT[name])


def public_query_sets() -> pd.DataFrame:
    """Number of queries of each kind in the public files of the thesis's query sets: columns ``kind, queries``."""
    labels = gender_terms.read_annotated_queries(registry.fetch(*_ANNOTATED))["label"]
    kinds = (
        labels.map(gender_terms.QUERY_LABELS)
        .value_counts()
        .rename_axis("kind")
        .reset_index(name="queries")
    )
    kinds.loc[len(kinds)] = [
        "bias-sensitive",
        len(gender_terms.read_sensitive_queries(registry.fetch(*_SENSITIVE))),
    ]
    return kinds


# --- runs -----------------------------------------------------------------------------------------


def read_recorded_runs(path: str | Path) -> pd.DataFrame:
    """Read runs recorded on a collection and on its counterfactual, a table with tabs between its columns.

    Returns columns ``world, run, topic, document, rank, score`` in file order; ``world`` is
    "original" or "counterfactual".
    """
    problems = Problems()
    header, *lines = read_text(path).rstrip("\n").split("\n")
    if header.split("\t") != RUN_COLUMNS:
        problems.add(path, 1, None, shown(header), f"the header {', '.join(RUN_COLUMNS)}")
        problems.refuse()
    rows: list[tuple[object, ...]] = []
    for number, line in enumerate(lines, start=2):
        fields = line.split("\t")
        if len(fields) != len(RUN_COLUMNS) or fields[0] not in WORLDS:
            wanted = (
                f"{len(RUN_COLUMNS)} columns between tabs, the first one of {', '.join(WORLDS)}"
            )
            problems.add(path, number, None, shown(line), wanted)
            continue
        try:
            rows.append((number, *fields[:4], int(fields[4]), float(fields[5])))
        except ValueError:
            problems.add(
                path, number, "rank", shown(" and ".join(fields[4:])), "a whole number and a number"
            )
    table = pd.DataFrame(rows, columns=["line", *RUN_COLUMNS])
    problems.add_repeats(
        path,
        table,
        ["document", "topic", "run", "world"],
        "document",
        "each document once in a list",
    )
    problems.refuse()
    return table.drop(columns="line").astype(dict.fromkeys(RUN_COLUMNS[:4], "str"))
