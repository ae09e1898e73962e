"""Documents of a collection, one at a time: JSON Lines, or lines of an id, a tab and a text.

A line of tabs may have more columns, with or without a header. Web addresses are no text, and a
title is. The documents stream: a file of millions of passages is never in memory as a whole.
"""

from __future__ import annotations

import codecs
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from equipoise.errors import Note, excerpt, input_error
from equipoise.readers import json_value, unpacked_parts

_ENDINGS = (".jsonl", ".tsv", ".json", ".txt", ".csv")
_ID_KEYS = ("id", "_id", "docno", "doc_id", "docid", "pid", "document")
_TEXT_KEYS = ("text", "body", "passage", "contents")
_TITLE = "title"
_ADDRESS = re.compile(r"https?://\S+")
_FIRST_LINES = 100
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
    these files. A line is a JSON object with ``id`` (or ``_id``), ``text`` (or ``contents``) and
    optionally ``title``, or an id, a tab and a text. Further columns are those of a header, or web
    addresses, which are no text. A note says what is read.
    """
    for table in document_tables(source):
        yield from zip(table["document"], table["text"], strict=True)


@dataclass(frozen=True)
class _Columns:
    """The columns of a file of tabs: how many, that of the id, those of texts, and a header."""

    number: int = 2
    document: int = 0
    texts: tuple[int, ...] = (1,)
    has_header: bool = False


def document_tables(source: str | Path) -> Iterator[pd.DataFrame]:
    """The documents of `stream_documents` in tables of some thousands: document, text."""
    for path in document_files(source):
        is_json, n_documents, columns = None, 0, _Columns()
        for first_line, whole_block in _blocks(path):
            block = whole_block
            if is_json is None:
                is_json = block.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
                columns = _note_layout(path, block, is_json)
            if columns.has_header and first_line == 1:
                block = b"\n" + block.partition(b"\n")[2]  # which keeps the numbers of lines
            table = None if is_json else _read_at_once(block, columns)
            if table is None:
                rows = list(_documents(path, block, first_line, None if is_json else columns))
                table = pd.DataFrame(rows, columns=["document", "text"], dtype="str")
            n_documents += len(table)
            yield table
        if not n_documents:
            raise input_error(path, "one document per line", "an empty file")


def _note_layout(path: Path, block: bytes, is_json: bool) -> _Columns:
    """Return the columns of a file from its first lines, with a note on other than id and text."""
    lines = block[: 2**20].decode("utf-8-sig", "replace").splitlines()[:_FIRST_LINES]
    columns = _Columns()
    if is_json:
        has_title = any(f'"{_TITLE}"' in line for line in lines)
        read = "title and text" if has_title else ""
    else:
        columns, read = _layout([line.split("\t") for line in lines if line.strip()])
    if read:
        warnings.warn(f"{path}: the text of a document is its {read}", Note, 4)
    return columns


def _layout(rows: Sequence[list[str]]) -> tuple[_Columns, str]:
    """Return the columns of these rows, and a description, empty for an id and a text."""
    if not rows:
        return _Columns(), ""
    header = [name.strip().lower() for name in rows[0]]
    document = next((place for place, name in enumerate(header) if name in _ID_KEYS), None)
    texts = [place for place, name in enumerate(header) if name in (_TITLE, *_TEXT_KEYS)]
    if document is not None and texts:
        names = " and ".join(header[place] for place in texts)
        return _Columns(len(header), document, tuple(texts), has_header=True), f"columns {names}"
    number = len(rows[0])
    if any(len(row) != number for row in rows):
        return _Columns(), ""
    counts = [sum(bool(_ADDRESS.fullmatch(row[place])) for row in rows) for place in range(number)]
    texts = [place for place in range(1, number) if counts[place] <= len(rows) / 2]
    if not texts or len(texts) == number - 1:
        return _Columns(), ""
    names = " and ".join(str(place + 1) for place in texts)
    return _Columns(number, 0, tuple(texts)), f"columns {names} of {number}, without the address"


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


def _read_at_once(block: bytes, columns: _Columns) -> pd.DataFrame | None:
    """Lines of columns with tabs between; None where a line is anything else."""
    # To Arrow any carriage return ends a line.
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return None
    names = list(map(str, range(columns.number)))
    wanted = [names[place] for place in (columns.document, *columns.texts)]
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(block),
            pyarrow.csv.ReadOptions(
                use_threads=False, column_names=names, block_size=len(block) + 1
            ),
            pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        return None
    document = pc.utf8_trim_whitespace(table[wanted[0]])
    if pc.any(pc.equal(document, "")).as_py():
        return None
    texts = [table[name] for name in wanted[1:]]
    text = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, " ")
    return pa.table({"document": document, "text": text}).to_pandas()


def _documents(
    path: Path, block: bytes, first_line: int, columns: _Columns | None
) -> Iterator[tuple[str, str]]:
    """Documents line by line, and the error of a line that is none; JSON without columns."""
    for line_number, raw_line in enumerate(block.split(b"\n"), start=first_line):
        try:
            line = raw_line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise input_error(path, "UTF-8 text", "other bytes", line_number) from None
        if not line.strip():
            continue
        try:
            yield _line_document(line, columns) if columns else _json_document(line)
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
    title = content.get(_TITLE)
    return str(document), f"{title} {text}" if title and isinstance(title, str) else text


def _line_document(line: str, columns: _Columns) -> tuple[str, str]:
    fields = line.split("\t", columns.number - 1)
    if len(fields) < columns.number or not fields[columns.document].strip():
        is_plain = columns.number == 2
        raise ValueError("an id, a tab and a text" if is_plain else f"{columns.number} columns")
    return fields[columns.document].strip(), " ".join(fields[place] for place in columns.texts)
