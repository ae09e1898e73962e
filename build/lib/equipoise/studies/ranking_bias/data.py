"""Collections on which the bias of ranked lists is measured: queries, judgements, documents, and recorded runs.

Small ones come whole (Grep-BiasIR, NQ-UTD, NFCorpus); the MS MARCO passages of the original study stream through
ir_datasets, with the two public query sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from equipoise.files import read_text
from equipoise.loaders import cocktail, gender_terms, registry
from equipoise.loaders.documents import stream_documents
from equipoise.loaders.trec import read_runs
from equipoise.problems import InputError, Problem
from equipoise.studies.ranking_bias import grepbiasir

WORLDS = ("original", "counterfactual")
_COLUMNS = ["world", "run", "topic", "document", "rank", "score"]


@dataclass(frozen=True, eq=False)
class BiasCollection:
    """A collection with its queries.

    ``name``: A key of `COLLECTIONS`. ``queries`` (columns query, text): the queries. ``qrels`` (columns topic,
    document, level): Relevance judgements. ``documents``: Starts a new pass over the documents, as pairs of id and
    text (title and text, where there is a title).
    """

    name: str
    queries: pd.DataFrame
    qrels: pd.DataFrame
    documents: Callable[[], Iterator[tuple[str, str]]]


def _rows(table: pd.DataFrame) -> Callable[[], Iterator[tuple[str, str]]]:
    return lambda: iter(zip(table["document"].tolist(), table["text"].tolist(), strict=True))


def _grepbiasir() -> BiasCollection:
    queries = grepbiasir.read_queries(registry.fetch("grepbiasir", grepbiasir.QUERIES))
    documents = grepbiasir.read_documents([registry.fetch("grepbiasir", path) for path in grepbiasir.FILES])
    qrels = documents.rename(columns={"query": "topic"})[["topic", "document", "level"]]
    documents = documents.assign(text=documents["title"] + " " + documents["text"])
    return BiasCollection("grepbiasir", queries[["query", "text"]], qrels, _rows(documents))


def _cocktail(name: str) -> BiasCollection:
    archive = registry.fetch("cocktail", f"dataset/{name}.zip")
    queries, qrels = cocktail.read_queries(archive), cocktail.read_qrels(archive)
    queries = queries[queries["query"].isin(qrels["topic"])].reset_index(drop=True)
    documents = cocktail.read_documents(archive)
    documents = documents.assign(text=(documents["title"] + " " + documents["text"]).str.strip())
    return BiasCollection(name, queries[["query", "text"]], qrels, _rows(documents))


def _msmarco(name: str) -> BiasCollection:
    if name == "msmarco-qs1":
        path = registry.fetch("genderbias_ir", "resources/queries_gender_annotated.csv")
        annotated = gender_terms.read_annotated_queries(path)
        queries = annotated[annotated["label"] == "n"][["query", "text"]].reset_index(drop=True)
    else:
        path = registry.fetch("cpjku", "dataset/msmarco_passage.dev.fair.tsv")
        queries = gender_terms.read_sensitive_queries(path)
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise registry.DataUnreachable(
            "msmarco-passage comes through ir_datasets, which is not installed: pip install 'equipoise[collections]'"
        ) from error
    asked = set(queries["query"])
    rows: list[tuple[str, str, int]] = [
        (row.query_id, row.doc_id, row.relevance)
        for row in ir_datasets.load("msmarco-passage/dev").qrels_iter()
        if row.query_id in asked
    ]
    qrels = pd.DataFrame(rows, columns=["topic", "document", "level"]).astype({"topic": "str", "document": "str"})
    return BiasCollection(name, queries, qrels, lambda: stream_documents("msmarco-passage"))


COLLECTIONS: Mapping[str, Callable[[str], BiasCollection]] = MappingProxyType(
    {
        "grepbiasir": lambda _: _grepbiasir(),
        "nq-utd": _cocktail,
        "nfcorpus": _cocktail,
        "msmarco-qs1": _msmarco,
        "msmarco-qs2": _msmarco,
    }
)
"""Collections by name. ``msmarco-qs1`` and ``msmarco-qs2`` are those of the thesis."""


def collection(name: str) -> BiasCollection:
    """Load a collection by name.

    ``name``: A key of `COLLECTIONS`.
    """
    if name not in COLLECTIONS:
        raise ValueError(f"no collection named {name!r}; there are {', '.join(COLLECTIONS)}")
    return COLLECTIONS[name](name)


def read_recorded_runs(path: str | Path) -> pd.DataFrame:
    """Read runs recorded on a collection and on its counterfactual.

    ``path``: Columns ``world, run, topic, document, rank, score`` between tabs, with a header. Returns DataFrame,
    columns world, run, topic, document, rank, score: In file order; ``world`` is "original" or "counterfactual".
    """
    lines = read_text(path).rstrip("\n").split("\n")
    if lines[0].split("\t") != _COLUMNS:
        raise InputError([Problem(str(path), 1, None, repr(lines[0][:80]), f"the header {', '.join(_COLUMNS)}")])
    problems: list[Problem] = []
    rows: list[tuple[Any, ...]] = []
    for number, line in enumerate(lines[1:], start=2):
        columns = line.split("\t")
        if len(columns) != len(_COLUMNS):
            problems.append(
                Problem(str(path), number, None, f"{len(columns)} columns", f"{len(_COLUMNS)}, between tabs")
            )
            continue
        world, run, topic, document, rank, score = columns
        if world not in WORLDS:
            problems.append(Problem(str(path), number, "world", repr(world), f"one of {', '.join(WORLDS)}"))
        try:
            rows.append((number, world, run, topic, document, int(rank), float(score)))
        except ValueError:
            problems.append(
                Problem(str(path), number, "rank", f"{rank!r} and {score!r}", "a whole number and a number")
            )
    table = pd.DataFrame(rows, columns=["line", *_COLUMNS])
    again = table[table.duplicated(["world", "run", "topic", "document"])]
    problems += [
        Problem(str(path), int(line), "document", f"{document} again for topic {topic}", "each document once in a list")
        for line, topic, document in zip(again["line"], again["topic"], again["document"], strict=True)
    ]
    if problems:
        raise InputError(problems)
    kinds = dict.fromkeys(["world", "run", "topic", "document"], "str")
    return table.drop(columns="line").astype(kinds | {"rank": "int64", "score": "float64"})


def given_runs(
    of: BiasCollection, original: Sequence[str | Path], counterfactual: Sequence[str | Path]
) -> pd.DataFrame:
    """Runs of one's own in the shape of recorded ones, for the queries of a collection.

    ``of``: Its queries are kept, others left out. ``original``, ``counterfactual``: TREC run files; a system's two
    files have the same name, in different folders. Returns DataFrame, columns world, run, topic, document, rank,
    score: Ranks are those stated in the files.
    """
    sides = zip(WORLDS, (original, counterfactual), strict=True)
    tables = [read_runs(paths).assign(world=world) for world, paths in sides if paths]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)
    table = table[table["topic"].isin(of.queries["query"])].reset_index(drop=True)
    if table.empty:
        raise ValueError(f"no run holds a query of {of.name}")
    return table[_COLUMNS]
