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

from equipoise.files import (
    BOM,
    Explainer,
    cells,
    head,
    is_parquet,
    json_value,
    parts,
    read_chunks,
    unpacked_name,
)
from equipoise.problems import Problems, refused, shown

MOST_PROBLEMS = 100
"""Problems after which reading a file stops."""

_ENDINGS = (".jsonl", ".tsv", ".json", ".txt", ".csv", ".parquet")
_ID_KEYS = ("id", "_id", "docno", "doc_id", "document")
_TEXT_KEYS = ("text", "body", "passage", "contents")


# --- text files -----------------------------------------------------------------------------------


def json_object(line: str) -> dict[str, Any]:
    """The JSON object of a line; a ValueError says what was found and what is wanted."""
    try:
        content = json_value(line)
    except ValueError as error:
        raise ValueError(str(error), "a JSON object") from None
    if not isinstance(content, dict):
        raise ValueError(type(content).__name__, "a JSON object")
    return content


def _first_of(content: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """The value of the first of the keys that an object has."""
    for key in keys:
        if key in content:
            return content[key]
    return None


def _json_document(line: str) -> tuple[str, str]:
    content = json_object(line)
    document = _first_of(content, _ID_KEYS)
    text = _first_of(content, _TEXT_KEYS)
    is_id = isinstance(document, (str, int)) and not isinstance(document, bool)
    if not is_id or document == "":
        raise ValueError("no id", "a string or a whole number under id")
    if not isinstance(text, str):
        raise ValueError("no text", "a string under text")
    return str(document), text


def _read_json(lines: Any, explainer: Explainer) -> pd.DataFrame:
    """Documents from lines that are JSON objects; what is wrong with others is collected."""
    # By json, for Arrow takes no file in which ids are texts and numbers, and no nested lists
    # without end; that costs 5 microseconds a document.
    ids, texts = [], []
    for row, line in enumerate(lines.to_pylist()):
        try:
            document, text = _json_document(line)
        except ValueError as error:
            explainer.problems.add(explainer.name, explainer.line(row), None, *error.args)
            if len(explainer.problems) >= MOST_PROBLEMS:
                break
            continue
        ids.append(document)
        texts.append(text)
    return _table(pa.array(ids, pa.large_string()), pa.array(texts, pa.large_string()))


def _read_tsv(lines: Any, explainer: Explainer) -> pd.DataFrame:
    """Documents from lines of an id, a tab and a text; other lines are collected."""
    # At the first tab: a text may have others.
    fields = pc.split_pattern(lines, "\t", max_splits=1)
    ids = pc.utf8_trim_whitespace(pc.list_element(fields, 0))
    is_document = pc.and_(
        pc.equal(pc.list_value_length(fields), 2), pc.greater(pc.binary_length(ids), 0)
    )
    wrong_rows = np.flatnonzero(~is_document.to_numpy(zero_copy_only=False))
    expected = "an id, a tab and a text"
    explainer.report(wrong_rows[:MOST_PROBLEMS], None, cells(lines), expected)
    texts = pc.list_element(fields.filter(is_document), 1)
    return _table(ids.filter(is_document), texts)


def _lines_of_text(
    chunk: bytes, first_line: int, path: Path, problems: Problems
) -> tuple[Any, Explainer]:
    """The lines of a chunk that hold something, as texts of Arrow, and what explains them."""
    raw_lines = chunk.split(b"\n")
    numbers = np.arange(first_line, first_line + len(raw_lines))
    try:
        lines = pa.array(raw_lines, pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        is_text = np.array([_is_utf8(line) for line in raw_lines])
        raw = Explainer(path, numbers.tolist, problems)
        wrong_rows = np.flatnonzero(~is_text)[:MOST_PROBLEMS]
        raw.report(wrong_rows, None, "bytes that are not UTF-8", "UTF-8 text")
        lines = pa.array(raw_lines, pa.large_binary()).filter(pa.array(is_text))
        lines, numbers = lines.cast(pa.large_string()), numbers[is_text]
    lines = pc.utf8_rtrim(lines, characters="\r")
    is_blank = pc.or_(pc.equal(pc.binary_length(lines), 0), pc.utf8_is_space(lines))
    is_blank = is_blank.to_numpy(zero_copy_only=False)
    numbers = numbers[~is_blank]
    return lines.filter(pa.array(~is_blank)), Explainer(path, numbers.tolist, problems)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text_file_tables(path: Path) -> Iterator[pd.DataFrame]:
    is_json = ".json" in path.name.lower() or head(path, 4).removeprefix(BOM)[:1] == b"{"
    read = _read_json if is_json else _read_tsv
    problems = Problems()
    n_documents = 0
    with problems.collecting():
        for first_line, chunk in read_chunks(path):
            if first_line == 1:
                chunk = chunk.removeprefix(BOM)
            lines, explainer = _lines_of_text(chunk, first_line, path, problems)
            table = read(lines, explainer)
            n_documents += len(table)
            if len(table):
                yield table
            if len(problems) >= MOST_PROBLEMS:
                break
    if not n_documents and not problems:
        problems.add(path, None, None, "an empty file", "one document a line")
    problems.refuse()


# --- other sources --------------------------------------------------------------------------------


def _parquet_tables(path: Path) -> Iterator[pd.DataFrame]:
    from pyarrow import parquet  # costs 30 ms, and most files are text

    try:
        file = parquet.ParquetFile(path)
        names = file.schema_arrow.names
        id_column = next((name for name in _ID_KEYS if name in names), "id")
        text_column = next((name for name in _TEXT_KEYS if name in names), "text")
        missing = [name for name in (id_column, text_column) if name not in names]
        if missing:
            raise refused(path, f"no column {' and '.join(missing)}", "the columns id and text")
        for batch in file.iter_batches(columns=[id_column, text_column]):
            ids = batch[id_column].cast(pa.large_string())
            texts = batch[text_column].cast(pa.large_string())
            if ids.null_count or texts.null_count:
                problem = f"an empty field in {id_column} or {text_column}"
                raise refused(path, problem, "an id and a text in each row")
            yield _table(ids, texts)
    except (pa.ArrowException, OSError) as error:
        raise refused(path, str(error).splitlines()[0], "a Parquet file of documents") from None


def _table(ids: Any, texts: Any) -> pd.DataFrame:
    return pa.table([ids, texts], names=["document", "text"]).to_pandas().astype("str")


def _data_set(name: str, part: str) -> Any:
    """A data set that ir_datasets knows by this name, which has ``docs``, or ``qrels``."""
    try:
        import ir_datasets

        dataset = ir_datasets.load(name)
    except ModuleNotFoundError as error:
        expected = "a file, or pip install '.[collections]' to reach public collections by name"
        raise refused(name, "no such file, and no ir_datasets", expected) from error
    except KeyError:
        expected = "a file that exists, or a name such as msmarco-passage"
        raise refused(name, "no file and no data set of ir_datasets", expected) from None
    if not getattr(dataset, f"has_{part}")():
        raise refused(name, f"a data set without {part}", f"one with {part}")
    return dataset


def data_set_items(name: str, part: str) -> Iterator[Any]:
    """The ``docs`` or the ``qrels`` of a data set of ir_datasets, which may fetch them first."""
    items = getattr(_data_set(name, part), f"{part}_iter")
    try:
        yield from items()
    except (OSError, RuntimeError) as error:
        found = f"{part} that ir_datasets cannot reach ({shown(str(error))})"
        expected = "a network, or a file of your own"
        raise refused(name, found, expected) from error


def _stream_ir_datasets(name: str) -> Iterator[tuple[str, str]]:
    for document in data_set_items(name, "docs"):
        field = next((field for field in _TEXT_KEYS if hasattr(document, field)), None)
        text = document.default_text() if field is None else getattr(document, field)
        yield str(document.doc_id), str(text)


def _is_file(source: str | Path) -> bool:
    """Whether a source is a file or folder, and no name of a data set."""
    if unpacked_name(source).lower().endswith(_ENDINGS):
        return True
    try:
        return Path(source).exists()
    except OSError:
        return True  # reading it tells what is wrong


def document_tables(source: str | Path) -> Iterator[pd.DataFrame]:
    """The documents of `stream_documents` in tables of some thousands: document, text."""
    if not _is_file(source):
        documents = _stream_ir_datasets(str(source))
        while rows := list(islice(documents, 8192)):
            ids, texts = zip(*rows, strict=True)
            yield _table(pa.array(ids, pa.large_string()), pa.array(texts, pa.large_string()))
        return
    for file in document_files(source):
        yield from _parquet_tables(file) if is_parquet(file) else _text_file_tables(file)


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
