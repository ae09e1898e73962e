"""Answers with what was retrieved for them: of TREC, of frameworks, or with fields that one names.

*TREC* (RAG 2024 and 2025, RAGTIME, iKAT 2025): an object with ``references``, ids of documents, and
``answer`` or ``responses``, a list of ``text`` and ``citations``: positions in the references
from 0, or ids. *Frameworks*: ``answer_presets.yaml`` has where LangChain, LlamaIndex, RAGAS and
OpenAI keep answer and documents; ``--map`` names other fields. *Ours*: `equipoise.loaders.answers`.

A question is named by its id, else by its words with ``_`` between, else by its place in the file.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pandas as pd

from equipoise.answer_modes import MODES, mode_name
from equipoise.errors import Note, input_error, listed, shown
from equipoise.loaders.answers import answer_table
from equipoise.loaders.trec import read_qrels
from equipoise.readers import json_value, read_json_lines, read_text, read_yaml, stem
from equipoise_cli.loaders.held_files import read_mapping

FIELDS = ("question", "answer", "documents", "sources", "relevant")
"""What ``--map`` can name; answer and documents are required."""
_PATH = re.compile(r"[^\s.,=\[\]]+(\[(-?\d+)?\])?(\.[^\s.,=\[\]]+(\[(-?\d+)?\])?)*")
_IDS = ("question_id", "query_id", "qid", "topic_id", "narrative_id", "turn_id", "custom_id", "id")
_WORDS = ("question", "input", "query", "user_input", "query_str", "prompt")
_DOCUMENT_IDS = ("id", "id_", "node_id", "doc_id", "docid", "document_id", "chunk_id", "_id")
_SOURCE_KEYS = ("source", "site", "domain", "publisher", "file_name", "filepath", "url", "link")
_NO_SOURCE = "(no source)"
_TO_ROUND = str.maketrans("[]", "()")

Paths = Mapping[str, Sequence[str]]


# --- paths into objects ---------------------------------------------------------------------------


def read_fields(text: str) -> dict[str, list[str]]:
    """Read ``answer=response,documents=docs[].id``: the path of each of `FIELDS`.

    >>> read_fields("answer=response,documents=docs[].id")
    {'answer': ['response'], 'documents': ['docs[].id']}
    """
    paths: dict[str, list[str]] = {}
    for part in text.split(","):
        field, _, path = part.strip().partition("=")
        if field not in FIELDS or field in paths or not _PATH.fullmatch(path):
            raise ValueError(
                f"got {shown(part)}; must be FIELD=PATH,FIELD=PATH, each of {', '.join(FIELDS)}"
                " once, a path such as response or docs[].id"
            )
        paths[field] = [path]
    if "answer" not in paths or "documents" not in paths:
        raise ValueError(f"got {shown(text)}; must have at least answer and documents")
    return paths


def value_at(content: Any, path: str) -> Any:
    """Return what is at a path of an object; a list of values where the path has ``[]``.

    >>> value_at({"docs": [{"id": "a"}, {"id": "b"}]}, "docs[].id")
    ['a', 'b']
    """
    values = [content]
    for part in path.split("."):
        name, bracket, place = part.rstrip("]").partition("[")
        inner: list[Any] = []
        for value in values:
            found = value.get(name) if isinstance(value, dict) else None
            if not bracket:
                inner.append(found)  # None keeps the place of a missing value
            elif isinstance(found, list) and not place:
                inner += found
            elif isinstance(found, list) and found:
                inner.append(found[int(place)])
        values = inner
    if "[]" in path:
        return values
    return values[0] if values else None


def _first_at(content: Any, paths: Sequence[str], kinds: Any = object) -> Any:
    """Return the first value of one of these kinds at the paths; None without one."""
    for path in paths:
        value = value_at(content, path)
        # A list of missing values is none; an empty one is: nothing was retrieved.
        is_missing = value is None or (isinstance(value, list) and value and not any(value))
        if isinstance(value, kinds) and not is_missing and not (value == [] and "[]" in path):
            return value
    return None


@cache
def _presets() -> dict[str, Paths]:
    presets: dict[str, Paths] = read_yaml(Path(__file__).with_name("answer_presets.yaml"))
    return presets


# --- rows -----------------------------------------------------------------------------------------


def _text(content: Any) -> str:
    """Return the text of a message, which may be in parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return str(content)


def _question(content: dict[str, Any], paths: Paths, number: int) -> tuple[str, bool]:
    """Return the name of a question, and whether it is an id."""
    if "question" in paths:
        words = _first_at(content, paths["question"], (str, int))
    else:
        found = _first_at({**content, **(_first_at(content, ["metadata"], dict) or {})}, _IDS)
        if isinstance(found, (str, int, float)):
            return f"{found:.0f}" if isinstance(found, float) else str(found), True
        asked = value_at(content, "messages[]")
        user_entries = [entry for entry in asked if entry and entry.get("role") == "user"]
        words = _first_at(content, _WORDS, str)
        if words is None and user_entries:
            words = _text(user_entries[-1].get("content"))
    return ("_".join(str(words).split()) if words else f"answer-{number}"), False


def _documents(content: dict[str, Any], paths: Paths) -> list[dict[str, Any]] | None:
    """Return the documents with an id, their number where they have none, and their fields."""
    entries = _first_at(content, paths["documents"], list)
    ids = _first_at(content, paths.get("ids", ()), list)
    sources = value_at(content, paths["sources"][0]) if "sources" in paths else None
    if entries is None:
        return None
    if "sources" in paths and (not isinstance(sources, list) or len(sources) != len(entries)):
        return None
    documents = []
    for number, entry in enumerate(entries, start=1):
        # A preset has texts, --map the ids, where documents are no objects.
        document = entry if isinstance(entry, dict) else {"text" if "is" in paths else "id": entry}
        for inner in ("kwargs", "node", "metadata"):
            document = {**document, **(_first_at(document, [inner], dict) or {})}
        if ids is not None and len(ids) == len(entries):
            document["id"] = ids[number - 1]
        found = _first_at(document, _DOCUMENT_IDS, (str, int))
        document["#"] = str(number if found is None else found)
        if sources is not None:
            document["source"] = sources[number - 1]
        documents.append(document)
    return documents


def _relevant(marks: Any, documents: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return numbers of the relevant documents, from true or false, ids, texts or numbers."""
    if all(isinstance(mark, bool) for mark in marks) and len(marks) == len(documents):
        return tuple(number for number, mark in enumerate(marks, start=1) if mark)
    names = {" ".join(str(mark).split()) for mark in marks}
    numbers = {mark for mark in marks if type(mark) is int and 1 <= mark <= len(documents)}
    for number, document in enumerate(documents, start=1):
        if names & {document["#"], " ".join(str(document.get("text")).split())}:
            numbers.add(number)
    return tuple(sorted(numbers))


def _mapped_row(content: dict[str, Any], paths: Paths, number: int, name: str) -> dict[str, Any]:
    """Return the row of an answer that is kept at these paths."""
    answer = _first_at(content, paths["answer"], (str, list))
    answer = None if answer is None else _text(answer)
    documents = _documents(content, paths)
    if answer is None or documents is None:
        what = "a text as the answer" if answer is None else "a list of documents"
        places = paths["answer" if answer is None else "documents"]
        raise ValueError(f"{what} at {' or '.join(places)}, of {name}", listed(content, 8))
    question, is_id = _question(content, paths, number)
    row = {"question": question, "is_id": is_id, "answer": answer, "document_fields": documents}
    row["shown"] = tuple(document["#"] for document in documents)
    marks = _first_at(content, paths.get("relevant", ()), list)
    if marks is not None or "relevant" in paths:
        row["relevant"] = _relevant(marks or [], documents)
    return row


def _trec_row(content: dict[str, Any], number: int) -> dict[str, Any]:
    """Return question, text with its citations in brackets, and the ids of what it may cite."""
    sentences = _first_at(content, ("answer", "responses"), list) or []
    references = content.get("references") or []
    for sentence in sentences:
        if not isinstance(sentence, dict) or not isinstance(sentence.get("text"), str):
            raise ValueError("a list of objects with text and citations as answer", shown(sentence))
        if not content.get("references"):
            cited = sentence.get("citations") or []
            references += [citation for citation in cited if isinstance(citation, str)]
    ids = list(dict.fromkeys(map(str, references)))
    texts = []
    for sentence in sentences:
        text = sentence["text"].translate(_TO_ROUND)  # its own brackets are no citations
        for citation in sentence.get("citations") or ():
            if str(citation) in ids:
                cited = ids.index(str(citation)) + 1
            else:
                is_place = str(citation).removesuffix(".0").isdecimal()
                cited = int(float(citation)) + 1 if is_place else len(ids) + 1
            text += f" [{cited}]"
        texts.append(text)
    question, _ = _question(content, {}, number)
    row = {"question": question, "is_id": True, "answer": " ".join(texts), "shown": tuple(ids)}
    run_id = _first_at(content, ("run_id", "metadata.run_id"))
    return row if run_id is None else row | {"run_id": str(run_id)}


def _objects(path: Path) -> list[tuple[int | None, dict[str, Any]]]:
    """Return the objects of JSON Lines, or of one JSON value, each with its line."""
    text = read_text(path)
    try:
        value = json_value(text)
    except ValueError:
        return list(read_json_lines(path, text))
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(entry, dict) for entry in values):
        raise input_error(path, "JSON objects", shown(value))
    return [(None, entry) for entry in values]


def _paths_of(objects: Sequence[tuple[Any, dict[str, Any]]]) -> tuple[str, Paths]:
    """Return the first preset that recognises an object; nothing may be retrieved for the first."""
    for _, content in objects:
        for name, paths in _presets().items():
            if _first_at(content, paths["is"]) is not None:
                return name, paths
    return "", {}


def read_rows(path: Path, paths: Paths | None) -> pd.DataFrame:
    """Read the answers of one file; with a column ``mode`` where it has our own format.

    ``paths``: of the fields, for a file of another format.
    """
    objects = _objects(path)
    content = objects[0][1]
    is_trec = not paths and (
        isinstance(_first_at(content, ("answer", "responses")), list) or "references" in content
    )
    if not paths and not is_trec and ("mode" in content or "record" in content):
        return answer_table(path, objects)
    name = "--map"
    if not paths and not is_trec:
        name, paths = _paths_of(objects)
        if not paths:
            formats = ", ".join(_presets())
            raise input_error(path, f"of TREC, {formats}, or read by --map", listed(content, 8), 1)
        places = ", ".join(places[0] for field, places in paths.items() if field != "is")
        warnings.warn(f"{path}: read as {name} ({places})", Note, 3)
    rows = []
    for number, (line, content) in enumerate(objects, start=1):
        try:
            row = (
                _trec_row(content, number)
                if not paths
                else _mapped_row(content, paths, number, name)
            )
        except ValueError as error:
            wanted, found = error.args
            column = None if line else f"item {number}"
            raise input_error(path, wanted, found, line, column) from None
        rows.append(row)
    table = pd.DataFrame(rows)
    # Words can be asked by two users; an id that comes twice is an error where it is scored.
    n_earlier = table.groupby("question").cumcount()
    is_again = (n_earlier > 0) & ~table["is_id"]
    table.loc[is_again, "question"] += "#" + (n_earlier[is_again] + 1).astype("str")
    if is_again.any():
        note = f"{is_again.sum()} answers are to a question asked before: each counts by itself"
        warnings.warn(note, Note, 3)
    return table.drop(columns="is_id").assign(documents=table["shown"].map(len))


# --- which documents are relevant, and their sources ----------------------------------------------


def _with_relevant(table: pd.DataFrame, qrels: pd.DataFrame | None) -> pd.DataFrame:
    """Add the numbers of the relevant documents of each answer, where something says which."""
    if qrels is not None:
        rows = qrels.loc[qrels["level"] > 0, ["topic", "document"]]
        pairs = set(rows.itertuples(index=False, name=None))
        relevant = [
            tuple(n for n, document in enumerate(ids, start=1) if (question, document) in pairs)
            for question, ids in zip(table["question"], table["shown"], strict=True)
        ]
        return table.assign(relevant=relevant)
    if "relevant" not in table.columns:
        return table
    has_none = table["relevant"].map(lambda numbers: not isinstance(numbers, tuple))
    return table.assign(relevant=table["relevant"].where(~has_none, [()] * len(table)))


def read_answer_files(
    files: Sequence[str],
    qrels: str | Path | None = None,
    authors: tuple[str, str] = ("", ""),
    fields: str = "",
) -> pd.DataFrame:
    """Read answers of one or more files as `equipoise.loaders.answers.read_answers` returns them.

    ``files``: paths; that of another format than ours may begin with the mode of its answers
    (``Informed=run.jsonl``), else it is Vanilla. ``authors``: of the relevant and of the other
    documents, for such files. ``fields``: of `read_fields`, for files of no known format.
    """
    if any(_mode_and_path(name)[0] == "CF-informed" for name in files) and not all(authors):
        raise ValueError("CAB needs --authors, those of the relevant and of the other documents")
    judgements = None if qrels is None else read_qrels(qrels)
    tables = []
    for mode, path in answer_files(files):
        table = read_rows(path, read_fields(fields) if fields else None)
        if "mode" not in table.columns:
            table = _with_relevant(table, judgements)
            if "relevant" not in table.columns:
                raise ValueError(f"{path} does not say which documents are relevant: give --qrels")
            has_some = table["relevant"].map(len) > 0
            if not has_some.all():
                questions = listed(table.loc[~has_some, "question"], 3)
                message = f"{(~has_some).sum()} of {len(table)} answers"
                message += f" have no relevant document that was shown ({questions})"
                if not has_some.any():
                    ids = listed(table["shown"].iloc[0][:3])
                    raise ValueError(f"{path}: {message}; it has documents {ids}")
                warnings.warn(f"{message}: left out", Note, 2)
            table = table[has_some].drop(columns="document_fields", errors="ignore")
            table = table.assign(
                mode=mode,
                citations=None,
                relevant_author=authors[0] or "unnamed",
                nonrelevant_author=authors[1] or "unnamed",
                gold=[()] * len(table),
            )
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _source(value: Any) -> str:
    """Return the name of a source: a text or number, of an address its host."""
    if not isinstance(value, (str, int, float)) or not str(value).strip():
        return _NO_SOURCE
    text = str(value).strip()
    if re.match("https?://", text):
        with suppress(ValueError):  # what only begins as an address is a name
            return urlsplit(text).netloc.rpartition("@")[2].removeprefix("www.") or text
    return text


def _sources_of(table: pd.DataFrame, key: str, path: Path) -> list[tuple[str, ...]]:
    """Return the source of each document of each answer, from a field of the documents."""
    fields_of_answers = table.get("document_fields", pd.Series([[]] * len(table)))
    names = {name for documents in fields_of_answers for fields in documents for name in fields}
    names.discard("#")
    wanted_keys = [key] if key else _SOURCE_KEYS
    name = next((name for name in wanted_keys if name in names), None)
    if name is None:
        raise ValueError(
            f"no document of {path} has a key {' or '.join(wanted_keys)}; they have"
            f" {listed(sorted(names)) or 'none'}: name one with --source-key, or give --sources"
        )
    warnings.warn(
        f"{path}: the source of a document is its {name}; of an address the host", Note, 3
    )
    return [
        tuple(_source(fields.get(name)) for fields in documents) for documents in fields_of_answers
    ]


def read_answers_with_sources(
    files: Sequence[str],
    *,
    qrels: str | Path | None = None,
    fields: str = "",
    source_key: str = "",
    sources: str | Path | None = None,
) -> pd.DataFrame:
    """Read answers with the source of each document that was shown, for `citation_share`.

    ``source_key``: the key of a document that has its source. ``sources``: a table of
    ``document,source`` instead. Returns question, answer, mode, shown, sources, and relevant where
    something says which documents are.
    """
    judgements = None if qrels is None else read_qrels(qrels)
    source_of = read_mapping(sources, "document", "source") if sources else None
    tables = []
    for mode, path in answer_files(files):
        table = read_rows(path, read_fields(fields) if fields else None)
        if "shown" not in table.columns:
            raise ValueError(f"{path} must have the ids of the documents of each answer as shown")
        if "mode" not in table.columns:
            table = _with_relevant(table, judgements).assign(mode=mode)
        if source_of is None:
            table["sources"] = _sources_of(table, source_key, path)
        else:
            table["sources"] = [
                tuple(source_of.get(document, _NO_SOURCE) for document in ids)
                for ids in table["shown"]
            ]
        tables.append(table)
    answers = pd.concat(tables, ignore_index=True)
    has_documents = answers["shown"].map(len) > 0
    if not has_documents.all():
        names = listed(answers.loc[~has_documents, "question"], 3)
        note = f"{(~has_documents).sum()} answers are left out: no document was shown ({names})"
        warnings.warn(note, Note, 2)
    answers = answers[has_documents].reset_index(drop=True)
    every = [source for row in answers["sources"] for source in row]
    n_without = every.count(_NO_SOURCE)
    if n_without == len(every):
        example = listed(answers["shown"].iloc[0], 3) if len(answers) else "none"
        raise ValueError(
            f"no document has a source; the first are {example}: give their ids in --sources, or a"
            " --source-key that they have"
        )
    if n_without:
        note = f"{n_without:,} of {len(every):,} documents shown have no source: {_NO_SOURCE}"
        warnings.warn(note, Note, 2)
    return answers


# --- arguments ------------------------------------------------------------------------------------


def _mode_and_path(argument: str) -> tuple[str, str]:
    """Split an argument into mode and path; a path may have the sign itself."""
    name, equals, path = argument.partition("=")
    if equals and set(name.split("/")) <= set(MODES):
        return mode_name(name), "/dev/stdin" if path == "-" else path
    return "Vanilla", "/dev/stdin" if argument == "-" else argument


def paths(files: Sequence[str]) -> list[str]:
    """Return the paths among the arguments, without their modes."""
    return [_mode_and_path(argument)[1] for argument in files]


def answer_files(files: Sequence[str]) -> list[tuple[str, Path]]:
    """Return mode and path of every file among the arguments, of a folder all its files."""
    modes_and_paths = []
    for argument in files:
        mode, name = _mode_and_path(argument)
        path = Path(name)
        inside = sorted(file for file in path.rglob("*.json*") if file.is_file())
        if path.is_dir() and not inside:
            raise input_error(path, "a folder of .jsonl or .json files")
        modes_and_paths += [(mode, file) for file in inside or [path]]
    return modes_and_paths


def run_name(files: Sequence[str]) -> str:
    """Return the name of the answers of these files together."""
    return "+".join(dict.fromkeys(map(stem, paths(files))))
