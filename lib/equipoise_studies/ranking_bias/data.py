"""What the tables of chapter 4 start from: counted collections, term groups and recorded runs.

A counted collection holds no text, only what the measures ask of one: judgements, and how often
each representative term stands in each document. Those of the committed config are facts
(data/facts/ranking_bias); any other is counted from its texts. Public runs are facts too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from equipoise.files import read_text
from equipoise.measures.ranking_bias import TermCounts, TermGroups, count_terms
from equipoise.options import Tokens
from equipoise.problems import Problems, shown
from equipoise_compendium import facts
from equipoise_studies.ranking_bias.upstream import ABOUT, SHARED, BiasCollection

STUDY = "ranking_bias"
WITH_FACTS = ("nqoracle", "grepbiasir", "msmarco-dl", "msmarco-dl-sensitive")
"""Collections of which facts are committed; those that share their documents share these facts."""

WORLDS = ("original", "counterfactual")
RUN_COLUMNS = ["world", "run", "topic", "document", "rank", "score"]


# --- terms ----------------------------------------------------------------------------------------


def read_terms(term_list: str) -> pd.DataFrame:
    """A public term list, ``long`` with first names or ``short``: columns ``term, group``."""
    terms = facts.read(STUDY, "terms.csv")
    return terms.loc[terms["list"] == term_list, ["term", "group"]].reset_index(drop=True)


def gender_groups(term_list: str = "long") -> TermGroups:
    """The groups of a public term list, two genders."""
    return TermGroups.from_pairs(read_terms(term_list).itertuples(index=False, name=None))


# --- counted collections --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountedCollection:
    """A collection without its texts.

    ``name, about``: as of `BiasCollection`. ``queries``: their ids. ``qrels`` (columns topic,
    document, level). ``term_counts``: of all terms of both public lists. ``query_terms`` (columns
    query, term, occurrences): gendered words of the queries.
    """

    name: str
    about: str
    queries: pd.Series
    qrels: pd.DataFrame
    term_counts: TermCounts
    query_terms: pd.DataFrame


def counted(
    collection: BiasCollection, query_vocabulary: Iterable[str], tokens: Tokens = "word"
) -> CountedCollection:
    """Count a collection's texts, in one pass.

    ``query_vocabulary``: words that are looked for in the queries. ``tokens``: how a document falls
    into terms.
    """
    terms = facts.read(STUDY, "terms.csv")["term"]
    queries = zip(collection.queries["query"], collection.queries["text"], strict=True)
    return CountedCollection(
        collection.name,
        collection.about,
        collection.queries["query"],
        collection.qrels,
        count_terms(collection.documents(), terms, tokens=tokens),
        # queries come as people typed them, so their terms are words whatever the documents are
        occurrences(count_terms(queries, query_vocabulary, tokens="word"), "query"),
    )


def occurrences(term_counts: TermCounts, id_column: str) -> pd.DataFrame:
    """The counts that are not zero: columns ``id_column, term, occurrences``, in their order."""
    entries = term_counts.counts.tocoo()
    table = pd.DataFrame(
        {
            id_column: np.asarray(term_counts.documents)[entries.row],
            "term": np.asarray(term_counts.terms)[entries.col],
            "occurrences": entries.data,
        }
    )
    # the sparse matrix promises no order of its entries, facts have one
    order = np.lexsort((entries.col, entries.row))
    return table.iloc[order].reset_index(drop=True)


def read_counted(name: str, tokens: Tokens = "word") -> CountedCollection:
    """A counted collection, from its facts; ``name`` is one of `WITH_FACTS`."""
    queries = read_query_ids(name)
    documents = SHARED.get(name, name)
    qrels = _facts_of(documents, "qrels.csv", {"level": int})
    return CountedCollection(
        name,
        ABOUT[name],
        queries,
        qrels[qrels["topic"].isin(queries)].reset_index(drop=True),
        _read_term_counts(documents, tokens),
        _facts_of(name, "query_terms.csv", {"occurrences": int}),
    )


def read_passage_digests() -> pd.Series:
    """Digests of some passages of MS MARCO, by id, as `msmarco.digest` gives them."""
    return facts.read(STUDY, "passage_digests.csv").set_index("document")["digest"]


def read_public_queries(name: str) -> pd.Series:
    """Ids of a public query set of the thesis, ``msmarco-qs1`` or ``-qs2``."""
    queries = facts.read(STUDY, "public_queries.csv")
    kind = {"msmarco-qs1": "non-gendered", "msmarco-qs2": "bias-sensitive"}[name]
    return queries.loc[queries["kind"] == kind, "query"]


def read_query_ids(name: str) -> pd.Series:
    """Ids of the queries of a collection, from its facts."""
    return _facts_of(name, "queries.csv")["query"]


def _facts_of(name: str, table: str, dtypes: dict[str, type] | None = None) -> pd.DataFrame:
    """The rows of a fact table that are about one collection."""
    rows = facts.read(STUDY, table, dtypes)
    return rows[rows["collection"] == name].drop(columns="collection").reset_index(drop=True)


def _read_term_counts(name: str, tokens: Tokens) -> TermCounts:
    """Term counts and lengths under one tokenisation, which names a column of both tables."""
    documents = _facts_of(name, "documents.parquet")
    entries = _facts_of(name, "term_counts.parquet")
    terms = sorted(facts.read(STUDY, "terms.csv")["term"].str.lower().unique())

    ids = pd.Index(documents["document"], name="document")
    rows = ids.get_indexer(entries["document"])
    columns = pd.Index(terms).get_indexer(entries["term"])
    matrix = sparse.coo_array(
        (entries[tokens].astype("int32"), (rows, columns)), shape=(len(ids), len(terms))
    )
    counts = sparse.csr_array(matrix)
    # a term may stand in a document under another tokenisation only
    counts.eliminate_zeros()
    return TermCounts(ids, tuple(terms), counts, documents[tokens].to_numpy(dtype=np.int64))


# --- runs -----------------------------------------------------------------------------------------


def read_public_run(run: str, collection: str, *, rounded: bool) -> pd.DataFrame:
    """A public run on a collection, from the facts: columns ``run, topic, document, rank, score``.

    Documents without a text have no rank, and those behind them move up. ``rounded``: its equal
    scores are no ties, so that its ranks stand for its scores.
    """
    ranked = facts.read(STUDY, "public_runs.parquet")
    is_wanted = (ranked["run"] == run) & ranked["topic"].isin(read_query_ids(collection))
    lists = ranked[is_wanted & ranked["text"]].drop(columns="text")
    if rounded:
        lists = lists.assign(score=-lists["rank"].astype(float))
    place = lists.groupby("topic", sort=False).cumcount()
    return lists.assign(rank=place + 1).reset_index(drop=True)


def read_passed_over(run: str, collection: str, cutoff: int) -> int:
    """How many documents of the first ranks of a public run have no text, and so no rank here."""
    ranked = facts.read(STUDY, "public_runs.parquet")
    is_of_collection = ranked["topic"].isin(read_query_ids(collection))
    first_ranks = ranked[(ranked["run"] == run) & is_of_collection & (ranked["rank"] <= cutoff)]
    return int((~first_ranks["text"]).sum())


def best_of_lists(run: pd.DataFrame, depth: int) -> pd.DataFrame:
    """The best documents of each list, and those tied with the last of them."""
    best = run.groupby("topic", sort=False).head(depth)
    # a tie at the last rank is kept whole, so that its order can be averaged over
    last_score = best.groupby("topic")["score"].min()
    in_depth = run["score"].to_numpy() >= last_score.reindex(run["topic"]).to_numpy()
    return run[in_depth]


def read_recorded_runs(path: str | Path) -> pd.DataFrame:
    """Read runs recorded on a collection and on its counterfactual, with tabs between columns.

    Returns columns ``world, run, topic, document, rank, score`` in file order; ``world`` is
    "original" or "counterfactual".
    """
    problems = Problems()
    header, *lines = read_text(path).rstrip("\n").split("\n")
    if header.split("\t") != RUN_COLUMNS:
        problems.add(path, 1, None, shown(header), f"the header {', '.join(RUN_COLUMNS)}")
        problems.refuse()
    columns = f"{len(RUN_COLUMNS)} columns between tabs, the first one of {', '.join(WORLDS)}"
    rows: list[tuple[object, ...]] = []
    for number, line in enumerate(lines, start=2):
        fields = line.split("\t")
        if len(fields) != len(RUN_COLUMNS) or fields[0] not in WORLDS:
            problems.add(path, number, None, shown(line), columns)
            continue
        try:
            rows.append((number, *fields[:4], int(fields[4]), float(fields[5])))
        except ValueError:
            rank_and_score = shown(" and ".join(fields[4:]))
            problems.add(path, number, "rank", rank_and_score, "a whole number and a number")
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
