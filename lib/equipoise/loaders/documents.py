"""Documents of a collection, one at a time: JSON Lines, or lines of an id, a tab and a text.

The documents stream: a file of millions of passages is never in memory as a whole.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pandas as pd

from equipoise.errors import input_error, shown
from equipoise.readers import json_value

_ENDINGS = (".jsonl", ".tsv", ".json", ".txt", ".csv")
_ID_KEYS = ("id", "_id", "docno", "doc_id", "document")
_TEXT_KEYS = ("text", "body", "passage", "contents")
_TABLE_SIZE = 8192


def document_files(source: str | Path) -> list[Path]:
    """The files of a collection: one, or those of a folder in the order of their names."""
    folder = Path(source)
    if not folder.is_dir():
        return [folder]
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.name.lower().removesuffix(".gz").endswith(_ENDINGS) and path.is_file()
    ]
    if not files:
        raise input_error(folder, f"a folder with files {', '.join(_ENDINGS)}")
    return files


def stream_documents(source: str | Path) -> Iterator[tuple[str, str]]:
    """Yield the documents of a collection as id and text.

    ``source``: a file with one document per line: JSON objects with ``id`` (or ``_id``) and
    ``text`` (or ``contents``), or an id, a tab and a text; ``.gz`` too; or a folder of such files.
    """
    for file in document_files(source):
        yield from _documents(file)


def document_tables(source: str | Path) -> Iterator[pd.DataFrame]:
    """The documents of `stream_documents` in tables of some thousands: document, text."""
    documents = stream_documents(source)
    while rows := list(islice(documents, _TABLE_SIZE)):
        yield pd.DataFrame(rows, columns=["document", "text"], dtype="str")


def _documents(path: Path) -> Iterator[tuple[str, str]]:
    line_number, is_json = 0, False
    with path.open("rb") as file:
        is_packed = file.peek(2)[:2] == b"\x1f\x8b"
        raw_lines = gzip.GzipFile(fileobj=file) if is_packed else file
        for line_number, raw_line in enumerate(raw_lines, start=1):
            try:
                line = raw_line.decode("utf-8-sig").rstrip("\r\n")
            except UnicodeDecodeError:
                raise input_error(path, "UTF-8 text", "other bytes", line_number) from None
            if line_number == 1:
                is_json = line.lstrip().startswith("{")
            if not line.strip():
                continue
            try:
                yield _json_document(line) if is_json else _line_document(line)
            except ValueError as error:
                raise input_error(path, str(error), shown(line), line_number) from None
    if not line_number:
        raise input_error(path, "one document per line", "an empty file")


def _json_document(line: str) -> tuple[str, str]:
    try:
        content = json_value(line)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise ValueError("a JSON object with id and text")
    document = next((content[key] for key in _ID_KEYS if key in content), "")
    text = next((content[key] for key in _TEXT_KEYS if key in content), None)
    if not isinstance(document, (str, int)) or document == "" or not isinstance(text, str):
        raise ValueError("a JSON object with id and text")
    return str(document), text


def _line_document(line: str) -> tuple[str, str]:
    document, tab, text = line.partition("\t")
    if not tab or not document.strip():
        raise ValueError("an id, a tab and a text")
    return document.strip(), text
