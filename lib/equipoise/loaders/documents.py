r"""Documents of any collection, one at a time: JSONL, TSV, or a data set that ir_datasets knows.

The documents stream: a file of millions of passages is never held in memory as a whole. Problems are collected on the
way and raised together at the end of the file (or once there are too many of them).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from equipoise.files import json_value, read_lines, unpacked_name
from equipoise.problems import InputError, Problem, Problems, shown

MOST_PROBLEMS = 100
"""Problems after which reading a file stops."""

_FIELDS = ("text", "body", "passage", "contents")


def json_object(line: str) -> dict[str, Any]:
    """The JSON object of a line; a ValueError says what was found and what is wanted."""
    try:
        content = json_value(line)
    except ValueError as error:
        raise ValueError(str(error), "a JSON object") from None
    if not isinstance(content, dict):
        raise ValueError(type(content).__name__, "a JSON object")
    return content


def _json_row(line: str) -> tuple[str, str]:
    content = json_object(line)
    key = content.get("id", content.get("_id"))
    if isinstance(key, bool) or not isinstance(key, (str, int)) or key == "":
        raise ValueError("no id", "a string or a whole number under id")
    if not isinstance(content.get("text"), str):
        raise ValueError("no text", "a string under text")
    return str(key), content["text"]


def _tsv_row(line: str) -> tuple[str, str]:
    key, tab, text = line.partition("\t")
    if not tab or not key.strip():
        raise ValueError(shown(line), "an id, a tab and a text")
    return key.strip(), text


def _stream_file(path: Path) -> Iterator[tuple[str, str]]:
    parse = _json_row if ".json" in path.name.lower() else _tsv_row
    problems, empty = Problems(), True
    with problems.collecting():
        for number, raw in read_lines(path):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if not line.strip():
                    continue
                empty, row = False, parse(line)
            except UnicodeDecodeError:
                problems.add(path, number, None, "bytes that are not UTF-8", "UTF-8 text")
            except ValueError as error:
                problems.add(path, number, None, *error.args)
            else:
                yield row
            if len(problems) >= MOST_PROBLEMS:
                break
    if empty and not problems:
        problems.add(path, None, None, "an empty file", "one document a line")
    problems.refuse()


def data_set(name: str, part: str) -> Any:
    """A data set that ir_datasets knows by this name, which has ``docs``, or ``qrels``."""
    try:
        import ir_datasets

        dataset = ir_datasets.load(name)
    except ModuleNotFoundError as error:
        wanted = "a file, or pip install 'equipoise[collections]' to reach public collections by name"
        raise InputError([Problem(name, None, None, "no such file, and no ir_datasets", wanted)]) from error
    except KeyError:
        wanted = "a file that exists, or a name such as msmarco-passage"
        raise InputError([Problem(name, None, None, "no file and no data set of ir_datasets", wanted)]) from None
    if not getattr(dataset, f"has_{part}")():
        raise InputError([Problem(name, None, None, f"a data set without {part}", f"one with {part}")])
    return dataset


def _stream_ir_datasets(name: str) -> Iterator[tuple[str, str]]:
    for document in data_set(name, "docs").docs_iter():
        field = next((field for field in _FIELDS if hasattr(document, field)), None)
        yield str(document.doc_id), str(getattr(document, field) if field else document.default_text())


def stream_documents(source: str | Path) -> Iterator[tuple[str, str]]:
    """Yield the documents of a collection as id and text.

    ``source``: a file with one document a line, JSON objects with ``id`` (or ``_id``) and ``text`` where the name says
    ``.json``, else an id, a tab and a text; ``.gz`` too. Or a name that ir_datasets knows, such as ``msmarco-passage``:
    what neither exists nor ends like a file.
    """
    named = unpacked_name(source).lower().endswith((".jsonl", ".tsv", ".json", ".txt", ".csv"))
    return _stream_file(Path(source)) if named or _there(source) else _stream_ir_datasets(str(source))


def _there(source: str | Path) -> bool:
    try:
        return Path(source).exists()
    except OSError:
        return True  # in a way that reading it tells
