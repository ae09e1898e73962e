"""Grep-BiasIR (CC0): bias-sensitive queries, each with documents in male, female and neutral wording.

One CSV of queries, and one of documents for each of seven categories. Both have headers.

References
----------
Krieg, K., Parada-Cabaleiro, E., Medicus, G., Lesota, O., Schedl, M., Rekabsaz, N. (2023): Grep-BiasIR: A Dataset for
Investigating Gender Representation Bias in Information Retrieval Results, CHIIR 2023.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from equipoise.files import read_columns, read_text
from equipoise.problems import InputError, Problem

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

_COLUMNS = ["q_id", "d_id", "relevant", "query", "doc_title", "document", "content_gender", "exp_stereotype"]
_WORDINGS = {"M": "male", "F": "female", "N": "neutral", "both": "both", "botrh": "both"}  # one upstream misspelling
_STEREOTYPES = {"towards female": "female", "towards male": "male", "no annotation agreement": ""}


def _lines(path: str | Path) -> list[int]:
    """Line on which each row begins; texts hold line breaks."""
    reader, begins, lines = csv.reader(io.StringIO(read_text(path), newline="")), 1, []
    for fields in reader:
        if fields:
            lines.append(begins)
        begins = reader.line_num + 1
    return lines[1:]


def read_queries(path: str | Path) -> pd.DataFrame:
    """Read the queries.

    ``path``: the file ``queries.csv``. Returns DataFrame, columns query, category, text: In file order; ids are
    strings.
    """
    table = read_columns(path, ["q_id", "category", "query"])
    lines = _lines(path)
    problems = [
        Problem(str(path), line, "category", repr(category), f"one of {', '.join(CATEGORIES)}")
        for line, category in zip(lines, table["category"], strict=True)
        if category not in CATEGORIES
    ]
    problems += [
        Problem(str(path), line, "q_id", f"{query} again", "each query once")
        for line, query, again in zip(lines, table["q_id"], table["q_id"].duplicated(), strict=True)
        if again
    ]
    if problems:
        raise InputError(problems)
    return table.rename(columns={"query": "text", "q_id": "query"})[["query", "category", "text"]]


def read_documents(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read the documents of one category or more.

    ``paths``: the files ``queries-documents_<category>.csv``. Returns DataFrame, columns document, query, title,
    text, level, wording, stereotype: In the order of the files. ``level`` is 1 for a document relevant to its
    query, else 0; ``wording`` is "male", "female", "neutral" or "both" (the misspelt "botrh" included);
    ``stereotype`` is the gender that annotators expect the query to lean to, or empty where they do not agree.
    Triples of documents that differ only in their wording follow each other.
    """
    problems: list[Problem] = []
    tables = []
    first: dict[str, str] = {}
    for path in paths:
        try:
            table = read_columns(path, _COLUMNS)
        except InputError as error:
            problems += error.problems
            continue
        lines = _lines(path)
        checks = {"relevant": {"0", "1"}, "content_gender": set(_WORDINGS)}
        for column, known in checks.items():
            problems += [
                Problem(str(path), line, column, repr(value), f"one of {', '.join(sorted(known))}")
                for line, value in zip(lines, table[column], strict=True)
                if value not in known
            ]
        problems += [
            Problem(str(path), line, "exp_stereotype", repr(value), f"one of {', '.join(_STEREOTYPES)}")
            for line, value in zip(lines, table["exp_stereotype"], strict=True)
            if value.lower() not in _STEREOTYPES
        ]
        for line, document in zip(lines, table["d_id"], strict=True):
            place = f"{path}, line {line}"
            if document in first:
                found = f"{document}, which stands in {first[document]} too"
                problems.append(Problem(str(path), line, "d_id", found, "each document once"))
            first.setdefault(document, place)
        tables.append(table)
    if problems or not tables:
        raise InputError(problems or [Problem("the documents", None, None, "no file", "one file for each category")])
    whole = pd.concat(tables, ignore_index=True)
    return pd.DataFrame(
        {
            "document": whole["d_id"],
            "query": whole["q_id"],
            "title": whole["doc_title"],
            "text": whole["document"],
            "level": whole["relevant"].astype("int64"),
            "wording": whole["content_gender"].map(_WORDINGS).astype("str"),
            "stereotype": whole["exp_stereotype"].str.lower().map(_STEREOTYPES).astype("str"),
        }
    )
