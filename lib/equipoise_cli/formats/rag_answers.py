"""Answers with what was retrieved for them: of TREC, of frameworks, or with fields that one names.

*TREC* (RAG 2024 and 2025, RAGTIME, iKAT 2025) has objects with ``references``, ids of documents,
and ``answer`` or ``responses``, a list of ``text`` and ``citations``. Citations are positions in
the references from 0, or ids. Where both are possible a number is a position, and text is an id.
*Frameworks* are LangChain, LlamaIndex, RAGAS and OpenAI (chats and responses);
``answer_presets.yaml`` lists their fields, and ``--map`` names other fields. The format of this
library is in `equipoise.loaders.answers`.

A question is named by its id, else by its words with ``_`` between, else by its place in the file.
The other keys of an answer become columns of the same name. A name that is one of `_OUR_COLUMNS`
gets the prefix ``log.``.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.answer_modes import MODES, mode_name
from equipoise.errors import Note, excerpt, input_error, listed
from equipoise.loaders.answers import answer_table
from equipoise.loaders.trec import read_qrels
from equipoise.measures.citations import NO_SOURCE, host_of, plain_address
from equipoise.readers import read_text, read_yaml, stem
from equipoise_cli.formats import read_mapping, read_objects

FIELDS = ("question", "answer", "documents", "sources", "relevant", "citations")
"""What ``--map`` can name; answer and documents are required."""
_PATH = re.compile(r"[^\s.,=\[\]]+(\[(-?\d+)?\])?(\.[^\s.,=\[\]]+(\[(-?\d+)?\])?)*")
_HOST = re.compile(r"(?:[\w-]+\.)+[a-z]{2,}\.?(?::\d+)?(?:/.*)?", re.IGNORECASE)
_FILE = re.compile(r"[^/]*\.(?:csv|docx?|html?|json|md|pdf|pptx?|txt|xlsx?|xml)", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://(?=[\w@])[^/?#]*", re.IGNORECASE)
_NEIGHBOURS = re.compile(r"""['"]\s+['"]""")
_TO_ROUND = str.maketrans("[]", "()")

_OUR_COLUMNS = {"question", "answer", "shown", "addresses", "documents"}
_AUTHORS = {"relevant_author", "nonrelevant_author"}
_OUR_COLUMNS |= {"sources", "relevant", "run", "mode", "citations", "gold", *_AUTHORS}

Paths = Mapping[str, Sequence[str]]
_Entry = tuple[int | None, dict[str, Any]]


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
                f"--map must be FIELD=PATH,FIELD=PATH, each of {', '.join(FIELDS)} once, a path"
                f" such as response or docs[].id, got {excerpt(part)}"
            )
        paths[field] = [path]
    if "answer" not in paths or "documents" not in paths:
        raise ValueError(f"--map must have at least answer and documents, got {excerpt(text)}")
    return paths


@cache
def _steps(path: str) -> list[tuple[str, str, str]]:
    return [part.rstrip("]").partition("[") for part in path.split(".")]


def value_at(content: Any, path: str) -> Any:
    """Return what is at a path of an object; a list of values where the path has ``[]``.

    >>> value_at({"docs": [{"id": "a"}, {"id": "b"}]}, "docs[].id")
    ['a', 'b']
    """
    if path.isidentifier():
        return content.get(path) if isinstance(content, dict) else None
    values = [content]
    for name, bracket, place in _steps(path):
        inner: list[Any] = []
        for value in values:
            found = value.get(name) if isinstance(value, dict) else None
            if not bracket:
                inner.append(found)  # None keeps the place of a missing value
            elif isinstance(found, list) and not place:
                inner += found
            elif isinstance(found, list):
                inner += (found[int(place) :] or [None])[:1]  # None is beyond the end
        values = inner
    if "[]" in path:
        return values
    return values[0] if values else None


def _first_at(content: Any, paths: Sequence[str], kinds: Any = object) -> Any:
    """Return the first value of one of these kinds at the paths; None without one."""
    for path in paths:
        value = value_at(content, path)
        if value is None or not isinstance(value, kinds):
            continue
        # A list of missing values is none; an empty one is: nothing was retrieved.
        if not isinstance(value, list) or any(value) or (not value and "[]" not in path):
            return value
    return None


@cache
def _declared(what: str) -> Any:
    return read_yaml(Path(__file__).with_name("answer_presets.yaml"))[what]


# --- rows -----------------------------------------------------------------------------------------


def _text(content: Any, documents: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the text of a message, which may be in parts, with the files that it cites."""
    if not isinstance(content, list):
        return str(content)
    ids = [document["#"] for document in documents]
    texts = []
    for part in content:
        if isinstance(part, dict):
            text = str(part.get("text") or "")
            notes = [note for note in part.get("annotations") or () if isinstance(note, dict)]
            cited = [(note.get("index"), note.get("file_id")) for note in notes]
            places = [(place, name) for place, name in cited if name in ids and type(place) is int]
            for place, name in sorted(places, reverse=True):
                text = f"{text[:place]} [{ids.index(name) + 1}]{text[place:]}"
            texts.append(text)
    return "".join(texts)


def _with_lists(file: Path, line: int | None, content: dict[str, Any]) -> dict[str, Any]:
    """Return an object in which lists that a table saved as text are lists."""
    lists = {}
    for key in _declared("keys of lists"):
        text = content.get(key)
        if isinstance(text, str) and text.lstrip().startswith("["):
            # Python joins neighbouring texts, between which NumPy writes no comma.
            is_of_numpy = _NEIGHBOURS.search(text) is not None
            try:
                lists[key] = [] if is_of_numpy else ast.literal_eval(text.strip())
            except (SyntaxError, ValueError, MemoryError, RecursionError):
                lists[key] = []
            if not lists[key] and text.strip("[ ]\n"):
                wanted = "a list, not the text of one: save a table as JSON Lines"
                raise input_error(file, wanted, excerpt(text), line, key)
    return content | lists


def _question(content: dict[str, Any], paths: Paths, number: int) -> dict[str, Any]:
    """Return the name of a question, whether it is an id, and its words."""
    words = asked = _words(content)
    if "question" in paths:
        words = _first_at(content, paths["question"], (str, int))
    else:
        named = {**content, **(_first_at(content, ["metadata"], dict) or {})}
        if "object" in content:
            named.pop("id", None)  # of a call of OpenAI
        found = _first_at(named, _declared("ids of questions"))
        if isinstance(found, (str, int, float)):
            name = f"{found:.0f}" if isinstance(found, float) else str(found)
            return {"question": name, "#is_id": True, "#words": asked}
    name = "_".join(str(words).split()) if words else f"answer-{number}"
    return {"question": name, "#is_id": False, "#words": asked}


def _words(content: dict[str, Any]) -> str:
    """Return the words of a question, or of the last message of a user; empty without any."""
    words = _first_at(content, _declared("words of questions"), str)
    if words is not None:
        return str(words)
    entries = [entry for entry in value_at(content, "messages[]") if isinstance(entry, dict)]
    asked = [entry.get("content") for entry in entries if entry.get("role") == "user"]
    return _text(asked[-1]) if asked and asked[-1] else ""


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
        name = "text" if "is" in paths else "id"
        document = dict(entry) if isinstance(entry, dict) else {name: entry}
        for inner in ("kwargs", "node", "metadata", "data"):
            if isinstance(document.get(inner), dict):
                document |= document[inner]
        if ids is not None and len(ids) == len(entries):
            document["id"] = ids[number - 1]
        id_keys = [key for key in _declared("ids of documents") if key in document]
        found = _first_at(document, id_keys, (str, int))
        document["#"] = sys.intern(str(number if found is None else found))
        if sources is not None:
            document["source"] = sources[number - 1]
        documents.append(document)
    return documents


def _pages(document: Mapping[str, Any]) -> list[str]:
    """Return the web addresses of a document that are of a page, not of a host alone."""
    texts = [value.strip() for value in document.values() if isinstance(value, str)]
    pages = [plain_address(text) for text in texts if re.fullmatch(r"https?://\S+", text)]
    return [page for page in pages if "/" in page]


@dataclass
class _Sources:
    """Where documents have their source: in a table by id, or under the first key that one has.

    ``names``: the keys of all documents so far.
    """

    keys: Sequence[str] = ()
    table: Mapping[str, str] | None = None
    names: set[str] = field(default_factory=set)
    key: str = ""

    def of(self, documents: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Return the source of each document."""
        if self.table is not None:
            return tuple(self.table.get(document["#"], NO_SOURCE) for document in documents)
        for document in documents:
            if not self.names.issuperset(document):
                self.names.update(document)
                self.key = next((key for key in self.keys if key in self.names), "")
        return tuple(_source(document.get(self.key)) for document in documents)

    def correct(self, row: dict[str, Any]) -> None:
        """Remove sources by another key than that of the file, which these documents have not."""
        if row.pop("#key", self.key) != self.key:
            row["sources"] = (NO_SOURCE,) * len(row["shown"])
            row["addresses"] = {a: n for a, n in row["addresses"].items() if a[:2] != "//"}

    def check(self, path: Path) -> None:
        """Note the key of the sources; no key is an error."""
        if not self.keys:
            return
        if not self.key:
            names = listed(sorted(self.names - {"#"})) or "its keys (none)"
            raise ValueError(
                f"no document of {path} has a key {' or '.join(self.keys)}; set --source-key to one"
                f" of {names}, or give --sources"
            )
        note = f"{path}: the source of a document is its key {self.key}"
        warnings.warn(f"{note} (of a web address, the host)", Note, 4)


def _addresses(documents: Sequence[Mapping[str, Any]], sources: Sequence[str]) -> dict[str, int]:
    """Return the numbers of documents by their web addresses; of a page in parts, the first.

    A document without a page whose source is a host has ``//host``: a link to any page of the host
    is then one to the document.
    """
    numbers: dict[str, int] = {}
    hosts: dict[str, int] = {}
    for number, document in enumerate(documents, start=1):
        pages = _pages(document)
        for page in pages:
            numbers.setdefault(page, number)
        if not pages and _HOST.fullmatch(sources[number - 1]):
            hosts.setdefault(f"//{sources[number - 1]}", number)
    return hosts | numbers


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


def _mapped_row(
    content: dict[str, Any], paths: Paths, number: int, found: _Sources
) -> dict[str, Any]:
    """Return the row of an answer that is kept at these paths.

    Its text or its documents are empty where it has none: a call that failed.
    """
    answer = _first_at(content, paths["answer"], (str, list))
    documents = _documents(content, paths) or []
    row = _question(content, paths, number)
    row["answer"] = text = _text(answer or "", documents)
    row["shown"] = ids = tuple(document["#"] for document in documents)
    if "citations" in paths:
        cited = _first_at(content, paths["citations"], list) or []
        numbers = [_cited_number(citation, ids) for citation in cited]
        row["answer"] = text.translate(_TO_ROUND) + "".join(f" [{n}]" for n in numbers)
    row["sources"], row["#key"] = found.of(documents), found.key
    # Of the fields of documents, nothing else is kept: they are most of the memory of a file.
    row["addresses"] = _addresses(documents, row["sources"]) if "://" in text else {}
    marks = _first_at(content, paths.get("relevant", ()), list)
    if marks is not None or "relevant" in paths:
        row["relevant"] = _relevant(marks or [], documents)
    return row


def _cited_number(citation: Any, ids: Sequence[str]) -> int:
    """Return the number of a document that is cited by its id or number; beyond all if unknown."""
    if str(citation) in ids:
        return ids.index(str(citation)) + 1
    return citation if type(citation) is int and citation >= 0 else len(ids) + 1


def _trec_row(content: dict[str, Any], number: int) -> dict[str, Any]:
    """Return question, text with its citations in brackets, and the ids of what it may cite."""
    sentences = _first_at(content, ("answer", "responses"), list) or []
    references = content.get("references") or []
    if not isinstance(references, list):
        raise ValueError("a list of ids as references", excerpt(references))
    for sentence in sentences:
        is_good = isinstance(sentence, dict) and isinstance(sentence.get("text"), str)
        if not is_good or not isinstance(sentence.get("citations") or [], list):
            raise ValueError(
                "a list of objects with text and citations as answer", excerpt(sentence)
            )
        if not content.get("references"):
            cited = sentence.get("citations") or []
            references += [citation for citation in cited if isinstance(citation, str)]
    ids = list(dict.fromkeys(map(str, references)))
    every = [citation for sentence in sentences for citation in sentence.get("citations") or ()]
    numbers = [citation for citation in every if isinstance(citation, (int, float))]
    # Numbers are positions, unless they can only be ids.
    are_ids = any(not 0 <= number < len(ids) for number in numbers) and all(
        f"{number:.0f}" in ids for number in numbers
    )
    texts = []
    for sentence in sentences:
        text = sentence["text"].translate(_TO_ROUND)  # its own brackets are no citations
        for citation in sentence.get("citations") or ():
            is_number = isinstance(citation, (int, float))
            name = f"{citation:.0f}" if is_number else str(citation)
            if name in ids and (are_ids or not is_number):
                cited = ids.index(name) + 1
            else:
                is_place = name.removesuffix(".0").isdecimal()
                cited = int(float(name)) + 1 if is_place else len(ids) + 1
            text += f" [{cited}]"
        texts.append(text)
    row = _question(content, {}, number) | {"#is_id": True, "#words": ""}
    row |= {"answer": " ".join(texts), "shown": tuple(ids), "addresses": {}}
    run_id = _first_at(content, ("run_id", "metadata.run_id"))
    return row if run_id is None else row | {"run_id": str(run_id)}


def _recognised(objects: Iterable[_Entry]) -> tuple[str, Paths, Iterable[_Entry]]:
    """Return the first preset that recognises an object, and the objects.

    Nothing may be retrieved for the first, and a log may wrap what an API returned.
    """
    objects = unknown = iter(objects)
    for n_wrappers in range(3):
        read: list[_Entry] = []
        for line, content in objects:
            read.append((line, content))
            for name, paths in _declared("frameworks").items():
                if _first_at(content, paths["is"]) is not None:
                    return name, paths, chain(read, objects)
        unknown = unknown if n_wrappers else iter(read)
        objects = iter([(line, _unwrapped(content)) for line, content in read])
    return "", {}, unknown


def _unwrapped(content: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the keys of the objects in it, such as the response of a call."""
    inner = {
        k: v for value in content.values() if isinstance(value, dict) for k, v in value.items()
    }
    return inner | {key: value for key, value in content.items() if not isinstance(value, dict)}


def _different(path: Path, objects: Iterable[_Entry]) -> Iterator[_Entry]:
    """Yield the first of equal objects; a note says how many repeat one."""
    digests = set()
    n_objects = 0
    for line, content in objects:
        n_objects += 1
        # The texts themselves would need the memory of the file.
        digest = blake2b(repr(content).encode(), digest_size=16).digest()
        if digest not in digests:
            digests.add(digest)
            yield line, content
    if len(digests) < n_objects:
        repeated = f"{n_objects - len(digests)} of {n_objects} answers"
        note = f"{path}: {repeated} repeat earlier ones and are left out"
        warnings.warn(note, Note, 4)


def read_rows(
    path: Path,
    paths: Paths | None,
    by: Sequence[str] = (),
    source_keys: Sequence[str] = (),
    source_of: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Read the answers of one file; with a column ``relevant_author`` where it has our own format.

    ``paths``: of the fields, for a file of another format. ``by``: keys of the log whose values are
    kept also where they are lists or objects. ``source_keys``, ``source_of``: of the documents, for
    the sources. A line that repeats an earlier one is left out, and a note says how many.
    """
    objects: Iterable[_Entry] = _different(path, read_objects(path, read_text(path)))
    first_line, content = next(iter(objects))
    objects = chain([(first_line, content)], objects)
    is_ours = "record" in content or {"mode", "relevant_author"} <= set(content)
    if not paths and is_ours:
        return answer_table(path, list(objects))
    name = "--map"
    is_trec = not paths and (_has_sentences(content) or "references" in content)
    if not paths and not is_trec:
        objects = ((line, _with_lists(path, line, content)) for line, content in objects)
        name, paths, objects = _recognised(objects)
        if not paths and "mode" in content:
            return answer_table(path, list(objects))  # which says what is missing
        if not paths:
            formats = ", ".join(_declared("frameworks"))
            raise input_error(path, f"of TREC, {formats}, or read by --map", listed(content, 8), 1)
        places = ", ".join(places[0] for field, places in paths.items() if field != "is")
        warnings.warn(f"{path}: read as {name} ({places})", Note, 4)
    found = _Sources(source_keys, source_of)
    kept = {"mode", *(re.split(r"[.\[]", key.removeprefix("log."))[0] for key in by)}
    rows = []
    for number, (line, entry) in enumerate(objects, start=1):
        try:
            row = _mapped_row(entry, paths, number, found) if paths else _trec_row(entry, number)
        except ValueError as error:
            wanted, problem = error.args
            column = None if line else f"item {number}"
            raise input_error(path, wanted, problem, line, column) from None
        own = {
            f"log.{key}" if key in _OUR_COLUMNS else key: value
            for key, value in entry.items()
            if key in kept or not isinstance(value, (list, dict))
        }
        rows.append(own | row)
    for row in rows:
        found.correct(row)
    table = pd.DataFrame(rows)
    for name_of_field, column, what in (
        ("answer", "answer", "a text as the answer"),
        ("documents", "shown", "a list of documents"),
    ):
        if paths and not table[column].map(len).any():
            wanted = f"{what} at {' or '.join(paths[name_of_field])}, of {name}"
            place = None if first_line else "item 1"
            raise input_error(path, wanted, listed(content, 8), first_line, place)
    if paths:
        found.check(path)
    return table.assign(documents=table["shown"].map(len))


def _has_sentences(content: Mapping[str, Any]) -> bool:
    return isinstance(_first_at(content, ("answer", "responses"), list), list)


def _with_questions(table: pd.DataFrame, judgements: pd.DataFrame | None) -> pd.DataFrame:
    """Name questions by their words where ids name calls: the same words have several ids."""
    if "#words" not in table.columns:
        return table
    words = table["#words"].fillna("").map(lambda text: "_".join(text.split()))
    is_named = table["#is_id"].fillna(value=False).astype("bool") & (words != "")
    has_more_ids = words.nunique() < table["question"].nunique()
    if judgements is None and is_named.all() and has_more_ids:
        warnings.warn("questions are named by their words, which have several ids", Note, 4)
        table = table.assign(question=words)
    return table.drop(columns=["#is_id", "#words"])


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


def _read_files(
    files: Sequence[str], fields: str, judgements: pd.DataFrame | None, *further: Any
) -> list[tuple[Path, pd.DataFrame]]:
    """Return the answers of each file, with columns ``run`` and ``mode``; as `read_rows`."""
    paths_of_fields = read_fields(fields) if fields else None
    tables = []
    for run, mode, path in answer_files(files):
        table = read_rows(path, paths_of_fields, *further).assign(run=run)
        if "mode" not in table.columns:
            table = _with_relevant(table, judgements)
            # A key of the log is a mode where the argument has none.
            is_given = bool(mode) or "log.mode" not in table.columns
            for found in [] if is_given else table["log.mode"]:
                if isinstance(found, (list, dict)):
                    raise input_error(path, "text", excerpt(found), column="mode")
            table = table.assign(mode=(mode or MODES[0]) if is_given else table["log.mode"])
        tables.append((path, table))
    return tables


def _together(tables: Sequence[pd.DataFrame], judgements: pd.DataFrame | None) -> pd.DataFrame:
    """Return the answers of several files, of which one may have what another has not."""
    answers = pd.concat(tables, ignore_index=True)
    empty_of: dict[str, Any] = {"addresses": {}, "relevant": ()}
    for name, empty in empty_of.items():
        if name in answers.columns:
            is_there = answers[name].map(lambda value: isinstance(value, (dict, tuple, list)))
            answers[name] = answers[name].where(is_there, [empty] * len(answers))
    return _with_questions(answers, judgements)


def with_keys(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return the answers with a text in the column of each key, a path into a line of the log."""
    columns = table.columns
    for key in keys:
        if key in _OUR_COLUMNS - {"mode", "question", "run", *_AUTHORS}:
            own = f"log.{key}"
            advice = (
                f"use --by {own} for the key of the log" if own in columns else "use another key"
            )
            raise ValueError(f"--by: {key} is what the command reads of an answer; {advice}")
        if key in columns:
            values = table[key].tolist()
        else:
            values = [value_at(row, key) for row in table.to_dict("records")]
        is_missing = [value is None or value != value for value in values]  # NaN is not itself
        if all(is_missing):
            names = listed(sorted(set(columns) - {"addresses", "sources"}), 40)
            raise ValueError(f"--by: no answer has the key {key}, must be one of {names}")
        texts = [
            f"(no {key})" if missing else str(value)
            for value, missing in zip(values, is_missing, strict=True)
        ]
        table = table.assign(**{key: texts})
    return table


def read_answer_files(
    files: Sequence[str],
    qrels: str | Path | None = None,
    authors: tuple[str, str] = ("", ""),
    fields: str = "",
    by: Sequence[str] = (),
) -> pd.DataFrame:
    """Read answers of one or more files as `equipoise.loaders.answers.read_answers` returns them.

    ``files`` are paths. A name before a path (``gpt=log.jsonl``) is the ``run`` of its answers. In
    formats of others, the name of a mode (``Informed=run.jsonl``) is their mode; the default is
    Vanilla. ``authors``: of the relevant and of the other documents, for such files. ``fields``: of
    `read_fields`, for files of no known format. ``by``: as of `read_rows`. In column ``not_read``
    are answers without a text or without a relevant document that was shown; notes say how many.
    """
    if any(_name_and_path(name)[1] == "CF-informed" for name in files) and not all(authors):
        raise ValueError("CAB needs --authors, those of the relevant and of the other documents")
    judgements = None if qrels is None else read_qrels(qrels)
    tables = []
    for path, table in _read_files(files, fields, judgements, by):
        if "relevant_author" not in table.columns:
            if "relevant" not in table.columns:
                raise ValueError(f"{path} does not say which documents are relevant: give --qrels")
            has_text = table["answer"] != ""
            if not has_text.all():
                note = f"{(~has_text).sum()} of {len(table)} answers have no text: left out"
                warnings.warn(note, Note, 2)
            has_some = table["relevant"].map(len) > 0
            if not has_some.all():
                questions = listed(table.loc[~has_some, "question"], 3)
                message = f"{(~has_some).sum()} of {len(table)} answers"
                message += f" have no relevant document that was shown ({questions})"
                if not has_some.any():
                    ids = listed(table["shown"].iloc[0][:3])
                    raise ValueError(f"{path}: {message}, but documents such as {ids}")
                warnings.warn(f"{message} and are left out", Note, 2)
            table = table.assign(
                not_read=~(has_some & has_text),
                citations=None,
                relevant_author=authors[0] or "unnamed",
                nonrelevant_author=authors[1] or "unnamed",
                gold=[()] * len(table),
            )
        tables.append(table)
    return _together(tables, judgements)


_host_of = cache(host_of)


def _source(value: Any) -> str:
    """Return the name of a source: a text or number, of a web address its host."""
    if not isinstance(value, (str, int, float)) or not str(value).strip():
        return NO_SOURCE
    text = " ".join(str(value).split())
    address = _ADDRESS.match(text)
    if address:
        return _host_of(address[0]) or text
    host = text.partition("/")[0]
    if _HOST.fullmatch(text) and not _FILE.fullmatch(host):
        return host_of(text) or text
    return text


def _spelled_alike(rows: pd.Series) -> list[tuple[str, ...]]:
    """Return the names of sources, each as the first of its spellings in upper and lower case."""
    spelling: dict[str, str] = {}
    return [tuple(spelling.setdefault(name.casefold(), name) for name in names) for names in rows]


def read_answers_with_sources(
    files: Sequence[str],
    *,
    qrels: str | Path | None = None,
    fields: str = "",
    source_key: str = "",
    sources: str | Path | None = None,
    by: Sequence[str] = (),
) -> pd.DataFrame:
    """Read answers with the source of each document that was shown, for `citation_share`.

    ``source_key``: the key of a document that has its source. ``sources``: a table of
    ``document,source`` instead. ``by``: keys whose values distinguish answers. Returns the columns
    of the log, and question, answer, run, mode, shown, addresses, sources, and relevant where
    something says which documents are.
    """
    judgements = None if qrels is None else read_qrels(qrels)
    keys: Sequence[str] = [source_key] if source_key else _declared("sources")
    source_of = None
    if sources is not None:
        named = read_mapping(sources, "document", "source")
        keys, source_of = (), {document: _source(source) for document, source in named.items()}
    tables = []
    for path, table in _read_files(files, fields, judgements, by, keys, source_of):
        if "shown" not in table.columns:
            raise ValueError(f"{path} must have the ids of the documents of each answer as shown")
        if "sources" not in table.columns:  # our format, and that of TREC
            found = _Sources(keys, source_of)
            table["shown"] = table["shown"].map(lambda ids: ids if isinstance(ids, tuple) else ())
            documents = [[{"#": document} for document in ids] for ids in table["shown"]]
            table["sources"] = list(map(found.of, documents))
            found.check(path)
        tables.append(table)
    answers = _together(tables, judgements)
    answers = with_keys(answers.assign(sources=_spelled_alike(answers["sources"])), by)
    _check_relevance(answers, qrels, fields)
    every = [source for row in answers["sources"] for source in row]
    n_without = every.count(NO_SOURCE)
    if n_without == len(every):
        example = listed(answers["shown"].iloc[0], 3) or "none"
        raise ValueError(
            f"no document has a source (first ids: {example}); set --source-key to another key, "
            "or list the ids in --sources"
        )
    if n_without:
        note = f"{n_without:,} of {len(every):,} documents shown have no source"
        warnings.warn(note, Note, 2)
    return answers


def _check_relevance(answers: pd.DataFrame, qrels: Any, fields: str) -> None:
    """Reject judgements of which none is of a document that was shown."""
    if "relevant" not in answers.columns or answers["relevant"].map(len).any():
        return
    example = answers[answers["shown"].map(len) > 0].head(1)
    shown_first = listed(example["shown"].iloc[0], 3) if len(example) else "none"
    asked = f"the first question, {answers['question'].iloc[0]}, has documents {shown_first}"
    if qrels is not None:
        raise ValueError(
            f"{qrels} must judge at least one retrieved document as relevant, got none; {asked}"
        )
    if "relevant=" in fields:
        raise ValueError(
            f"--map relevant= must mark at least one retrieved document, got none; {asked}"
        )
    warnings.warn(
        "no retrieved document is relevant, so citations are compared with retrieval only; "
        f"{asked}",
        Note,
        3,
    )


# --- arguments ------------------------------------------------------------------------------------


def _name_and_path(argument: str) -> tuple[str, str, str]:
    """Split an argument into run, mode and path; a path may have the sign itself."""
    name, equals, path = argument.partition("=")
    if not equals or Path(argument).exists() or "\\" in name:
        name, path = "", argument
    path = "/dev/stdin" if path == "-" else path
    if name and set(name.split("/")) <= set(MODES):
        return "", mode_name(name), path
    if "/" in name:
        return "", "", argument
    return name, "", path


def answer_files(files: Sequence[str]) -> list[tuple[str, str, Path]]:
    """Return run, mode and path of every file among the arguments, of a folder all its files.

    The answers of files without a name are one run.
    """
    arguments = [_name_and_path(argument) for argument in files]
    unnamed = "+".join(dict.fromkeys(stem(path) for run, _, path in arguments if not run))
    runs_modes_and_paths = []
    for run, mode, name in arguments:
        path = Path(name)
        inside = sorted(file for file in path.rglob("*.json*") if file.is_file())
        if path.is_dir() and not inside:
            raise input_error(path, "a folder of .jsonl or .json files")
        runs_modes_and_paths += [(run or unnamed, mode, file) for file in inside or [path]]
    return runs_modes_and_paths
