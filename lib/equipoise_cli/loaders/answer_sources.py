"""Sources of the documents behind answers: where each comes from, by a key of it or a table."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pandas as pd

from equipoise.answer_modes import mode_name
from equipoise.loaders.trec import read_qrels
from equipoise.problems import Note, listed
from equipoise_cli.loaders.answer_frameworks import read_fields
from equipoise_cli.loaders.held_files import read_mapping
from equipoise_cli.loaders.rag_answers import answer_files, read_rows, with_relevant

_SOURCE_KEYS = ("source", "site", "domain", "publisher", "file_name", "filepath", "url", "link")
_NO_SOURCE = "(no source)"


def _source_of(value: Any) -> str:
    """The name of a source: a text or number, of an address its host."""
    if not isinstance(value, (str, int, float)) or not str(value).strip():
        return _NO_SOURCE
    text = str(value).strip()
    if re.match("https?://", text):
        with suppress(ValueError):  # what only begins as an address is a name
            return urlsplit(text).netloc.rpartition("@")[2].removeprefix("www.") or text
    return text


def _key_of_sources(documents: Sequence[Mapping[str, Any]], key: str, path: Path) -> str:
    """The key under which documents have their source: the one that is named, or a usual one."""
    names = sorted({str(name) for document in documents for name in document})
    wanted_keys = [key] if key else _SOURCE_KEYS
    for name in wanted_keys:
        if name in names:
            return name
    problem = f"no document of {path} has a key {' or '.join(wanted_keys)}"
    raise ValueError(
        f"{problem}; they have {listed(names) or 'none'}: name one with --source-key, or give"
        " --sources, a CSV of document,source"
    )


def _sources_by_key(table: pd.DataFrame, key: str, path: Path) -> list[tuple[str, ...]]:
    """The source of each document of each answer, from the fields of the documents."""
    fields_of_answers: list[Any] = [[]] * len(table)
    if "document_fields" in table.columns:
        fields_of_answers = table["document_fields"].tolist()
    documents = [document for fields in fields_of_answers for document in fields]
    name = _key_of_sources(documents, key, path)
    sources = []
    for fields in fields_of_answers:
        sources.append(tuple(_source_of(document.get(name)) for document in fields))
    note = f"{path}: the source of a document is its {name}"
    if any(str(document.get(name)).startswith("http") for document in documents):
        note += ", of an address the host"
    warnings.warn(note, Note, stacklevel=4)
    return sources


def _sources_by_id(table: pd.DataFrame, source_of: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The source of each document of each answer, from a table of documents."""
    sources = []
    for ids in table["shown"]:
        sources.append(tuple(source_of.get(document, _NO_SOURCE) for document in ids))
    return sources


def read_answers_with_sources(
    files: Sequence[str],
    *,
    qrels: str | Path | None = None,
    fields: str = "",
    source_key: str = "",
    sources: str | Path | None = None,
) -> pd.DataFrame:
    """Answers with the source of each document that was shown, for `citation_share`.

    ``source_key``: the key of a document that has its source. ``sources``: a table of
    ``document,source`` instead. Returns question, answer, mode, shown, sources, and relevant where
    something says which documents are.
    """
    judgements = None if qrels is None else read_qrels(qrels)
    source_of = None
    if sources is not None:
        source_of = read_mapping(sources, "document", "source", "each document once")
    paths_of_fields = read_fields(fields) if fields else None
    tables = []
    for mode, path in answer_files(files):
        table = read_rows(path, paths_of_fields)
        if "shown" not in table.columns:
            raise ValueError(
                f"{path} does not say which documents were shown; wanted their ids under shown"
            )
        if "mode" not in table.columns:
            table = with_relevant(table, judgements).assign(mode=mode_name(mode))
        if source_of is None:
            table["sources"] = _sources_by_key(table, source_key, path)
        else:
            table["sources"] = _sources_by_id(table, source_of)
        tables.append(table)
    answers = pd.concat(tables, ignore_index=True)
    has_documents = answers["shown"].map(len) > 0
    if not has_documents.all():
        names = listed(answers.loc[~has_documents, "question"], 3)
        note = (
            f"{int((~has_documents).sum())} answers are left out: no document was shown ({names})"
        )
        warnings.warn(note, Note, stacklevel=3)
    answers = answers[has_documents]
    all_sources = [source for row in answers["sources"] for source in row]
    n_without = all_sources.count(_NO_SOURCE)
    if n_without == len(all_sources):
        example = listed(answers["shown"].iloc[0], 3) if len(answers) else "none"
        raise ValueError(
            f"no document that was shown has a source; the first are {example}: wanted their ids"
            " in --sources, or a --source-key that they have"
        )
    if n_without:
        note = f"{n_without:,} of {len(all_sources):,} documents shown have no source: {_NO_SOURCE}"
        warnings.warn(note, Note, stacklevel=3)
    return answers.reset_index(drop=True)
