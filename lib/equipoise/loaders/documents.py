"""Documents of a collection, one at a time: JSON Lines, or lines of an id, a tab and a text.

The documents stream: a file of millions of passages is never in memory as a whole.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from equipoise.errors import excerpt, input_error
from equipoise.readers import json_value, unpacked_parts

_ENDINGS = (".jsonl", ".tsv", ".json", ".txt", ".csv")
_ID_KEYS = ("id", "_id", "docno", "doc_id", "document")
_TEXT_KEYS = ("text", "body", "passage", "contents")
_BLOCK = 2**22
"""Bytes that are read at a time."""


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

    ``source``: a file with one document per line, which may be compressed (``.gz``), or a folder of
    these files. A line is a JSON object with ``id`` (or ``_id``) and ``text`` (or ``contents``), or
    an id, a tab and a text.
    """
    for table in document_tables(source):
        yield from zip(table["document"], table["text"], strict=True)


def document_tables(source: str | Path) -> Iterator[pd.DataFrame]:
    """The documents of `stream_documents` in tables of some thousands: document, text."""
    for path in document_files(source):
        is_json, n_documents = None, 0
        for first_line, block in _blocks(path):
            if is_json is None:
                is_json = block.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
            table = None if is_json else _read_at_once(block)
            if table is None:
                rows = list(_documents(path, block, first_line, is_json))
                table = pd.DataFrame(rows, columns=["document", "text"], dtype="str")
            n_documents += len(table)
            yield table
        if not n_documents:
            raise input_error(path, "one document per line", "an empty file")


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file, some megabytes at a time, and the number of the first of them."""
    first_line = 1
    with path.open("rb") as file:
        parts: Iterator[bytes] = iter(partial(file.read, _BLOCK), b"")
        if file.peek(2)[:2] == b"\x1f\x8b":
            # A pipe has no size.
            parts = unpacked_parts(path, file, os.fstat(file.fileno()).st_size or 2**40)
        line: list[bytes] = []  # the parts of one that has not ended
        for part in parts:
            lines, end, rest = part.rpartition(b"\n")
            if end:
                block = b"".join([*line, lines, end])
                yield first_line, block
                first_line += block.count(b"\n")
                line = []
            line.append(rest)
        if any(line):
            yield first_line, b"".join(line)


def _read_at_once(block: bytes) -> pd.DataFrame | None:
    """Lines of an id, a tab and a text; None where a line is anything else."""
    # To Arrow any carriage return ends a line.
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return None
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(block),
            pyarrow.csv.ReadOptions(
                use_threads=False, column_names=["document", "text"], block_size=len(block) + 1
            ),
            pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
            pyarrow.csv.ConvertOptions(
                column_types={"document": pa.string(), "text": pa.string()},
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        return None
    document = pc.utf8_trim_whitespace(table["document"])
    if pc.any(pc.equal(document, "")).as_py():
        return None
    return table.set_column(0, "document", document).to_pandas()


def _documents(
    path: Path, block: bytes, first_line: int, is_json: bool
) -> Iterator[tuple[str, str]]:
    """Documents line by line, and the error of a line that is none."""
    for line_number, raw_line in enumerate(block.split(b"\n"), start=first_line):
        try:
            line = raw_line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise input_error(path, "UTF-8 text", "other bytes", line_number) from None
        if not line.strip():
            continue
        try:
            yield _json_document(line) if is_json else _line_document(line)
        except ValueError as error:
            raise input_error(path, str(error), excerpt(line), line_number) from None


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
