"""What the notebook of chapter 2 needs of a collection, without a text.

The facts of CSFCube, and of CISI and CACM, are committed, in ``data/facts/query_by_example``, whose
README says what their columns mean; `TABLES` says how each is made from the upstream files. Of
another collection the same tables are counted from its texts.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from equipoise_compendium import facts
from equipoise_studies.query_by_example import term_tables
from equipoise_studies.query_by_example.csfcube import load_csfcube, load_specter
from equipoise_studies.query_by_example.data import PAIR, QueryByExample, in_table_order
from equipoise_studies.query_by_example.links import load_links

STUDY = "query_by_example"
COMMITTED = ("csfcube", "links")
"""Kinds of collections whose facts are committed."""


@dataclass(frozen=True)
class CollectionFacts:
    """Judgements, splits and counts of terms.

    ``judgements``: ``task, query, document, grade``. ``splits``: ``task, fold, part, query``.
    ``paper_lengths, term_statistics, shared_terms``: as the functions of `term_tables` return them.
    """

    judgements: pd.DataFrame
    splits: pd.DataFrame
    paper_lengths: pd.DataFrame
    term_statistics: pd.DataFrame
    shared_terms: pd.DataFrame


def committed(kind: str = "csfcube") -> CollectionFacts:
    """The committed facts of CSFCube, or of CISI and CACM (``links``)."""
    if kind == "links":
        return _committed_links()
    judgements = facts.read(STUDY, "judgements.parquet")
    return CollectionFacts(
        judgements=judgements.astype({"grade": int}),
        splits=facts.read(STUDY, "splits.csv"),
        paper_lengths=facts.read(STUDY, "paper_lengths.parquet"),
        term_statistics=facts.read(STUDY, "term_statistics.parquet"),
        shared_terms=facts.read(STUDY, "shared_terms.parquet"),
    )


def _committed_links() -> CollectionFacts:
    """The facts of CISI and CACM, whose shared terms follow from the counts of each paper."""
    judgements = facts.read(STUDY, "links_judgements.parquet")
    pairs = judgements[["query", "document"]].drop_duplicates(ignore_index=True)
    counts = facts.read(STUDY, "links_term_counts.parquet")
    shared_terms, term_statistics = term_tables.from_counts(counts, pairs)
    return CollectionFacts(
        judgements=judgements.astype({"grade": int}),
        splits=facts.read(STUDY, "links_splits.csv"),
        paper_lengths=facts.read(STUDY, "links_paper_lengths.parquet"),
        term_statistics=term_statistics,
        shared_terms=shared_terms,
    )


def counted(dataset: QueryByExample) -> CollectionFacts:
    """The same of any data set whose texts are at hand."""
    return CollectionFacts(
        judgements=in_table_order(dataset.judgements),
        splits=in_table_order(dataset.splits),
        paper_lengths=term_tables.paper_lengths(dataset),
        term_statistics=term_tables.term_statistics(dataset),
        shared_terms=term_tables.shared_terms(dataset),
    )


def specter() -> pd.DataFrame:
    """SPECTER's committed scores of CSFCube's candidates: ``task, query, document, score``."""
    return facts.read(STUDY, "specter.parquet")


# --- how the committed tables are made ------------------------------------------------------------


def make_judgements() -> pd.DataFrame:
    """Candidates of every query with their grades."""
    judgements = in_table_order(load_csfcube().judgements)
    return judgements.astype({"grade": "int8"})  # one byte a grade in the file


def make_splits() -> pd.DataFrame:
    """Queries of the two folds of every task."""
    return in_table_order(load_csfcube().splits)


def make_specter() -> pd.DataFrame:
    """SPECTER's scores of the candidates that are judged here."""
    judged_pairs = make_judgements()[PAIR]
    return judged_pairs.merge(load_specter(), on=PAIR, validate="one_to_one")


def make_paper_lengths() -> pd.DataFrame:
    """Number of terms of every paper by each analyser."""
    return term_tables.paper_lengths(load_csfcube())


def make_term_statistics() -> pd.DataFrame:
    """How common each shared term is among the candidates."""
    return term_tables.term_statistics(load_csfcube())


def make_shared_terms() -> pd.DataFrame:
    """Terms that a query and a candidate share, with their counts in both."""
    return term_tables.shared_terms(load_csfcube())


def make_links_judgements() -> pd.DataFrame:
    """Candidates of every query of CISI and CACM, relevant (1) or not (0)."""
    return in_table_order(load_links().judgements).astype({"grade": "int8"})


def make_links_splits() -> pd.DataFrame:
    """Queries of the two folds of the tasks of CISI and CACM."""
    return in_table_order(load_links().splits)


def make_links_paper_lengths() -> pd.DataFrame:
    """Number of terms of every paper of CISI and CACM by each analyser."""
    return term_tables.paper_lengths(load_links())


def make_links_term_counts() -> pd.DataFrame:
    """How often each paper of CISI and CACM holds each term that another one holds too."""
    return term_tables.term_counts(load_links())


TABLES = {
    "judgements.parquet": make_judgements,
    "splits.csv": make_splits,
    "specter.parquet": make_specter,
    "paper_lengths.parquet": make_paper_lengths,
    "term_statistics.parquet": make_term_statistics,
    "shared_terms.parquet": make_shared_terms,
    "links_judgements.parquet": make_links_judgements,
    "links_splits.csv": make_links_splits,
    "links_paper_lengths.parquet": make_links_paper_lengths,
    "links_term_counts.parquet": make_links_term_counts,
}
