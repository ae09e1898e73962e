r"""Documents of any collection, one at a time: JSONL, TSV, or a data set that ir_datasets knows.

The documents stream: a file of millions of passages is never held in memory as a whole. Problems are collected on the
way and raised together at the end of the file (or once there are too many of them).
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from equipoise.problems import InputError, Problem

MOST_PROBLEMS = 100
"""Problems after which reading a file stops."""

_FIELDS = ("text", "body", "passage", "contents")


def is_file_source(source: str) -> bool:
    """Whether a source of documents is meant as a file, rather than as a name of ir_datasets.

    Returns: True where such a file exists or the name ends like one.
    """
    return Path(source).exists() or source.removesuffix(".gz").endswith((".jsonl", ".tsv", ".json", ".txt", ".csv"))


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _json_row(line: str) -> tuple[str, str]:
    """Id and text of a JSON line; a ValueError says what is wrong."""
    try:
        content = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg}|a JSON object with id and text") from None
    except RecursionError:
        raise ValueError("values within values without end|a JSON object with id and text") from None
    if not isinstance(content, dict):
        raise ValueError(f"{type(content).__name__}|a JSON object with id and text")
    key = content.get("id", content.get("_id"))
    if isinstance(key, bool) or not isinstance(key, (str, int)) or key == "":
        raise ValueError("no id|a string or a whole number under id")
    text = content.get("text")
    if not isinstance(text, str):
        raise ValueError("no text|a string under text")
    return str(key), text


def _tsv_row(line: str) -> tuple[str, str]:
    key, tab, text = line.partition("\t")
    if not tab or not key.strip():
        raise ValueError(f"{line[:40]!r}|an id, a tab and a text")
    return key.strip(), text


def _stream_file(path: Path) -> Iterator[tuple[str, str]]:
    parse = _json_row if ".json" in path.name else _tsv_row
    problems: list[Problem] = []
    read = 0
    try:
        with _open(path) as file:
            for number, raw in enumerate(file, start=1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                    if not line.strip():
                        continue
                    row = parse(line)
                except UnicodeDecodeError:
                    problems.append(Problem(str(path), number, None, "bytes that are not UTF-8", "UTF-8 text"))
                except ValueError as error:
                    found, _, wanted = str(error).rpartition("|")
                    problems.append(Problem(str(path), number, None, found, wanted))
                else:
                    read += 1
                    yield row
                if len(problems) >= MOST_PROBLEMS:
                    break
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "a torn file"
        problems.append(Problem(str(path), None, None, reason, "a readable file"))
    if not read and not problems:
        problems.append(Problem(str(path), None, None, "an empty file", "one document a line"))
    if problems:
        raise InputError(problems)


def _stream_ir_datasets(name: str) -> Iterator[tuple[str, str]]:
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        found = "no such file, and ir_datasets is not installed"
        wanted = "a file, or pip install 'equipoise[collections]' to reach public collections by name"
        raise InputError([Problem(name, None, None, found, wanted)]) from error
    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        wanted = "a file that exists, or a name such as msmarco-passage"
        raise InputError([Problem(name, None, None, "no file and no data set of ir_datasets", wanted)]) from None
    if not dataset.has_docs():
        raise InputError([Problem(name, None, None, "a data set without documents", "one with documents")])
    for document in dataset.docs_iter():
        field = next((field for field in _FIELDS if hasattr(document, field)), None)
        text = getattr(document, field) if field else document.default_text()
        yield str(document.doc_id), str(text)


def stream_documents(source: str | Path) -> Iterator[tuple[str, str]]:
    """Yield the documents of a collection as id and text.

    ``source``: A file with one document a line: JSON objects with ``id`` (or ``_id``) and ``text`` where the name
    says ``.jsonl``, else an id, a tab and a text; ``.gz`` too. Or a name that ir_datasets knows, such as
    ``msmarco-passage``.
    """
    if is_file_source(str(source)):
        yield from _stream_file(Path(source))
    else:
        yield from _stream_ir_datasets(str(source))
