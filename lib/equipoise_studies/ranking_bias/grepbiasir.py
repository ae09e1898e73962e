"""Grep-BiasIR (CC0): bias-sensitive queries, with documents in male, female and neutral wording.

One CSV of queries, and one of documents for each of seven categories. Both have headers.

References
----------
Krieg, K., Parada-Cabaleiro, E., Medicus, G., Lesota, O., Schedl, M., Rekabsaz, N. (2023):
Grep-BiasIR: A Dataset for Investigating Gender Representation Bias in Information Retrieval
Results, CHIIR 2023.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.files import Source, read_source
from equipoise.problems import Problems, shown

CATEGORIES = (
    "Appearance",
    "Career",
    "Child Care",
    "Cognitive Capabilities",
    "Domestic Work",
    "Physical Capabilities",
    "Sex & Relationship",
)
"""Categories of the queries, in the order of their names."""

QUERIES = "queries.csv"
"""Path of the queries within item grepbiasir."""

FILES = tuple(f"queries-documents_{category}.csv" for category in CATEGORIES)
"""Paths of the documents within item grepbiasir."""

_NAMES = {
    "d_id": "document",
    "q_id": "query",
    "doc_title": "title",
    "document": "text",
    "relevant": "level",
    "content_gender": "wording",
    "exp_stereotype": "stereotype",
}
_WORDINGS = {
    "M": "male",
    "F": "female",
    "N": "neutral",
    "both": "both",
    "botrh": "both",  # misspelt upstream, once
}
_STEREOTYPES = {"towards female": "female", "towards male": "male", "no annotation agreement": ""}


def _read(path: str | Path, columns: Sequence[str]) -> Source:
    source = read_source(path)
    source.check_header(columns)
    source.problems.refuse()
    return source


def _report(source: Source, column: str, wrong: ArrayLike, expected: str) -> None:
    cells = source.columns[column]
    source.report(np.flatnonzero(wrong), column, lambda row: shown(cells.iloc[row]), expected)


def _one_of(values: Collection[str]) -> str:
    return f"one of {', '.join(sorted(values))}"


def read_queries(path: str | Path) -> pd.DataFrame:
    """Read the queries of the file ``queries.csv``: columns ``query, category, text``."""
    source = _read(path, ["q_id", "category", "query"])
    table = source.columns
    _report(source, "category", ~table["category"].isin(CATEGORIES), _one_of(CATEGORIES))
    _report(source, "q_id", table["q_id"].duplicated(), "each query once")
    source.problems.refuse()
    return table.rename(columns={"query": "text", "q_id": "query"})[["query", "category", "text"]]


def read_documents(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read the documents of some categories, from the files ``queries-documents_<category>.csv``.

    Returns columns ``document, query, title, text, level, wording, stereotype`` in the order of the
    files. ``level`` is 1 for a document relevant to its query, else 0; ``wording`` is "male",
    "female", "neutral" or "both" (the misspelt "botrh" included); ``stereotype`` is the gender that
    annotators expect the query to lean to, or empty where they do not agree. Triples of documents
    that differ only in their wording follow each other.
    """
    problems = Problems()
    tables: list[pd.DataFrame] = []
    earlier_ids: set[str] = set()
    for path in paths:
        with problems.collecting():
            source = _read(path, [*_NAMES, "query"])
            # capitals vary upstream: "Towards female" and "Towards Female"
            table = source.columns.assign(
                exp_stereotype=source.columns["exp_stereotype"].str.lower()
            )
            _check_documents(source, table, earlier_ids)
            earlier_ids.update(table["d_id"])
            tables.append(table)
            source.problems.refuse()
    if not tables and not problems:
        problems.add("the documents", None, None, "no file", "one file for each category")
    problems.refuse()

    # column query is the text of a query; its id is q_id
    documents = pd.concat(tables, ignore_index=True).drop(columns="query")
    documents = documents.replace({"content_gender": _WORDINGS, "exp_stereotype": _STEREOTYPES})
    documents = documents.astype({"relevant": "int64"}).rename(columns=_NAMES)
    return documents[list(_NAMES.values())]


def _check_documents(source: Source, table: pd.DataFrame, earlier_ids: Collection[str]) -> None:
    """Report the rows of a file that are not as they should be; ``earlier_ids``: of other files."""
    unknown_level = ~table["relevant"].isin(["0", "1"])
    unknown_wording = ~table["content_gender"].isin(_WORDINGS)
    unknown_stereotype = ~table["exp_stereotype"].isin(_STEREOTYPES)
    repeated = table["d_id"].duplicated() | table["d_id"].isin(earlier_ids)
    once = "each document once, and none that stands in another file too"
    _report(source, "relevant", unknown_level, _one_of("01"))
    _report(source, "content_gender", unknown_wording, _one_of(_WORDINGS))
    _report(source, "exp_stereotype", unknown_stereotype, _one_of(_STEREOTYPES))
    _report(source, "d_id", repeated, once)
