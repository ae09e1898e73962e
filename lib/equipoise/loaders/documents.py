r"""Documents of any collection, one at a time: JSONL, TSV, or a data set that ir_datasets knows.

The documents stream: a file of millions of passages is never held in memory as a whole. Problems
are collected on the way and raised together at the end of the file (or once there are too many of
them).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from equipoise.files import BOM, head, is_parquet, json_value, parts, read_chunks, unpacked_name
from equipoise.problems import Problems, refused, shown

MOST_PROBLEMS = 100
"""Problems after which reading a file stops."""

_ENDINGS = (".jsonl", ".tsv", ".json", ".txt", ".csv", ".parquet")
_DEEPEST = 500
_IDS = ("id", "_id", "docno", "doc_id", "document")
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
    key, text = (
        next((content[name] for name in names if name in content), None)
        for names in (_IDS, _FIELDS)
    )
    if isinstance(key, bool) or not isinstance(key, (str, int)) or key == "":
        raise ValueError("no id", "a string or a whole number under id")
    if not isinstance(text, str):
        raise ValueError("no text", "a string under text")
    return str(key), text


def _tsv_row(line: str) -> tuple[str, str]:
    key, tab, text = line.partition("\t")
    if not tab or not key.strip():
        raise ValueError(shown(line), "an id, a tab and a text")
    return key.strip(), text


def _flat(chunk: bytes) -> bool:
    """Whether no line can hold values within values so deep that Arrow's reader would break."""
    letters = np.frombuffer(chunk, dtype=np.uint8)
    opened = np.flatnonzero((letters == ord("{")) | (letters == ord("[")))
    ends = np.searchsorted(opened, np.append(np.flatnonzero(letters == ord("\n")), len(letters)))
    return bool(np.diff(ends, prepend=0).max() <= _DEEPEST)


def _quick_json(chunk: bytes) -> Any:
    """Ids and texts of lines that each hold a JSON object of one form, in Arrow; None of any others."""
    first, _, _ = chunk.partition(b"\n")
    try:
        opening = json_object(first.decode())
    except ValueError:
        return None
    key, text = (
        next((name for name in names if name in opening), names[0]) for names in (_IDS, _FIELDS)
    )
    others = (
        *_IDS[: _IDS.index(key)],
        *_FIELDS[: _FIELDS.index(text)],
    )  # which another line may have
    lines = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
    if (
        chunk.count(b"}\n{") != lines - 1
        or any(f'"{name}"'.encode() in chunk for name in others)
        or not _flat(chunk)
    ):
        return None
    kind = pa.int64() if isinstance(opening.get(key), int) else pa.large_string()
    form = pyarrow.json.ParseOptions(
        explicit_schema=pa.schema({key: kind, text: pa.large_string()})
    )
    try:
        whole = pyarrow.json.ReadOptions(use_threads=False, block_size=len(chunk) + 1)
        table = pyarrow.json.read_json(pa.BufferReader(chunk), whole, form)
        table.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if len(table) != lines or table[key].null_count or table[text].null_count:
        return None
    ids = table[key].cast(pa.large_string())
    return [ids, table[text]] if pc.min(pc.binary_length(ids)).as_py() else None


def _quick_tsv(chunk: bytes) -> Any:
    """Ids and texts of lines of an id, a tab and a text, in Arrow; None where there are others."""
    lines = chunk.replace(b"\r\n", b"\n") if b"\r" in chunk else chunk
    lines = lines if lines.endswith(b"\n") else lines + b"\n"
    if b"\n\n" in lines or lines.startswith(b"\n"):
        lines = b"".join(line for line in lines.splitlines(keepends=True) if line != b"\n")
    letters = np.frombuffer(lines, dtype=np.uint8)
    likely = np.flatnonzero(letters <= ord("\n"))  # of all below, hardly any is in a text
    ends = likely[letters[likely] >= ord("\t")]
    tabs, feeds = letters[ends[::2]] == ord("\t"), letters[ends[1::2]] == ord("\n")
    try:
        whole = lines.isascii() or bool(lines.decode())
    except UnicodeDecodeError:
        return None
    if not whole or b"\r" in lines or len(tabs) != len(feeds) or not (tabs.all() and feeds.all()):
        return None
    bounds = np.zeros(
        2 * len(ends) + 1, dtype=np.int64
    )  # an id, its tab, a text, its line feed, and so on
    bounds[1::2], bounds[2::2] = ends, ends + 1
    pieces = pa.LargeStringArray.from_buffers(
        2 * len(ends), pa.py_buffer(bounds), pa.py_buffer(lines)
    )
    ids, texts = (pieces.take(pa.array(np.arange(place, len(pieces), 4))) for place in (0, 2))
    ids = pc.utf8_trim_whitespace(ids)
    return [ids, texts] if pc.min(pc.binary_length(ids)).as_py() else None


def _slow_chunk(path: Path, first: int, chunk: bytes, parse: Any, problems: Problems) -> Any:
    """Ids and texts of the good lines; collects what is wrong with the others."""
    rows = []
    for number, raw in enumerate(chunk.split(b"\n"), start=first):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            if line.strip():
                rows.append(parse(line))
        except UnicodeDecodeError:
            problems.add(path, number, None, "bytes that are not UTF-8", "UTF-8 text")
        except ValueError as error:
            problems.add(path, number, None, *error.args)
        if len(problems) >= MOST_PROBLEMS:
            break
    return list(zip(*rows, strict=True))


def _file_tables(path: Path) -> Iterator[pd.DataFrame]:
    jsonl = ".json" in path.name.lower() or head(path, 4).removeprefix(BOM)[:1] == b"{"
    problems, empty = Problems(), True
    with problems.collecting():
        for number, chunk in read_chunks(path):
            own = chunk.removeprefix(BOM) if number == 1 else chunk
            columns = None if own.startswith(BOM) else (_quick_json if jsonl else _quick_tsv)(own)
            if columns is None:
                columns = _slow_chunk(
                    path, number, chunk, _json_row if jsonl else _tsv_row, problems
                )
            if columns and len(columns[0]):
                empty = False
                yield _table(*columns)
            if len(problems) >= MOST_PROBLEMS:
                break
    if empty and not problems:
        problems.add(path, None, None, "an empty file", "one document a line")
    problems.refuse()


def _parquet_tables(path: Path) -> Iterator[pd.DataFrame]:
    from pyarrow import parquet  # costs 30 ms, and most files are text

    try:
        file = parquet.ParquetFile(path)
        key = next((name for name in _IDS if name in file.schema_arrow.names), "id")
        text = next((name for name in _FIELDS if name in file.schema_arrow.names), "text")
        if missing := [name for name in (key, text) if name not in file.schema_arrow.names]:
            raise refused(path, f"no column {' and '.join(missing)}", "the columns id and text")
        for batch in file.iter_batches(columns=[key, text]):
            ids, texts = (batch[name].cast(pa.large_string()) for name in (key, text))
            if ids.null_count or texts.null_count:
                raise refused(
                    path, f"an empty field in {key} or {text}", "an id and a text in each row"
                )
            yield _table(ids, texts)
    except (pa.ArrowException, OSError) as error:
        raise refused(path, str(error).splitlines()[0], "a Parquet file of documents") from None


def _table(ids: Any, texts: Any) -> pd.DataFrame:
    columns = [
        pa.array(column, pa.large_string()) if isinstance(column, tuple) else column
        for column in (ids, texts)
    ]
    return pa.table(columns, names=["document", "text"]).to_pandas().astype("str")


def data_set(name: str, part: str) -> Any:
    """A data set that ir_datasets knows by this name, which has ``docs``, or ``qrels``."""
    try:
        import ir_datasets

        dataset = ir_datasets.load(name)
    except ModuleNotFoundError as error:
        wanted = (
            "a file, or pip install 'equipoise[collections]' to reach public collections by name"
        )
        raise refused(name, "no such file, and no ir_datasets", wanted) from error
    except KeyError:
        wanted = "a file that exists, or a name such as msmarco-passage"
        raise refused(name, "no file and no data set of ir_datasets", wanted) from None
    if not getattr(dataset, f"has_{part}")():
        raise refused(name, f"a data set without {part}", f"one with {part}")
    return dataset


def _stream_ir_datasets(name: str) -> Iterator[tuple[str, str]]:
    for document in data_set(name, "docs").docs_iter():
        field = next((field for field in _FIELDS if hasattr(document, field)), None)
        yield (
            str(document.doc_id),
            str(getattr(document, field) if field else document.default_text()),
        )


def document_tables(source: str | Path) -> Iterator[pd.DataFrame]:
    """The documents of a collection, as of `stream_documents`, in tables of some thousands: document, text."""
    if not (unpacked_name(source).lower().endswith(_ENDINGS) or _there(source)):
        stream = _stream_ir_datasets(str(source))
        while rows := list(islice(stream, 8192)):
            yield _table(*zip(*rows, strict=True))
        return
    for file in document_files(source):
        yield from _parquet_tables(file) if is_parquet(file) else _file_tables(file)


def document_files(source: str | Path) -> list[Path]:
    """The files of a collection: one, or those of a folder."""
    folder = Path(source)
    return [folder / name for name in parts(folder, _ENDINGS)] if folder.is_dir() else [folder]


def stream_documents(source: str | Path) -> Iterator[tuple[str, str]]:
    """Yield the documents of a collection as id and text.

    ``source``: a file with one document a line, JSON objects with ``id`` (or ``_id``) and ``text``
    (or ``contents``) where the name says ``.json``, else an id, a tab and a text; ``.gz`` too; a
    Parquet file with these columns; or a folder of such files, taken in the order of their names.
    Or a name that ir_datasets knows, such as ``msmarco-passage``: what neither exists nor ends like
    a file.
    """
    for table in document_tables(source):
        yield from zip(table["document"], table["text"], strict=True)


def _there(source: str | Path) -> bool:
    try:
        return Path(source).exists()
    except OSError:
        return True  # in a way that reading it tells
