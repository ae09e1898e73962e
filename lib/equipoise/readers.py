"""Readers of files: text, JSON, YAML, and small tables whose faults are named by line and column.

A file that gzip made is unpacked; ``/dev/stdin`` is the standard input. Valid files never pay for
line numbers: only a table with a fault is read again to find them.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import re
import warnings
import zlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import yaml

from equipoise.arrays import Floats, Integers
from equipoise.errors import InputError, Note, excerpt, input_error, listed

Source = str | Path
_DECIMAL_COMMAS = r"(?:-?\d+(?:,\d+)?(?:[eE]-?\d+)? ?)*"
LARGEST_INTEGER = 10**9
"""Positions and levels go up to here: a sum of some still fits."""


# --- bytes and text -------------------------------------------------------------------------------


def read_bytes(path: Source) -> bytes:
    """The bytes of a file, unpacked where gzip made it."""
    content = Path(path).read_bytes()
    if not content.startswith(b"\x1f\x8b"):
        return content
    return b"".join(unpacked_parts(path, io.BytesIO(content), len(content)))


def unpacked_parts(path: Source, packed: BinaryIO, size: int) -> Iterator[bytes]:
    """The content of a gzip file of this size, some megabytes at a time."""
    # No text shrinks to a hundredth; what claims to is made to fill the memory.
    most = max(2**28, 100 * size)
    n_bytes = 0
    try:
        file = gzip.GzipFile(fileobj=packed)
        while part := file.read(2**22):
            n_bytes += len(part)
            if n_bytes > most:
                wanted = f"a gzip file of at most {most:,} bytes when unpacked; unpack it yourself"
                raise input_error(path, wanted)
            yield part
    except (OSError, EOFError, zlib.error):
        raise input_error(path, "a complete gzip file") from None


def decoded(content: bytes, path: Source) -> str:
    """The text of a file's bytes, which must be UTF-8, without a byte order mark."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise input_error(path, "UTF-8 text", "UTF-16; save it as CSV UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = f"the byte 0x{error.object[error.start]:02x}; save it as UTF-8"
        raise input_error(path, "UTF-8 text", byte, line) from None


def read_text(path: Source) -> str:
    """The text of a UTF-8 file, without a byte order mark; an empty file is an error."""
    text = decoded(read_bytes(path), path)
    if not text.strip():
        raise input_error(path, "a file with content", "an empty file")
    return text


def stem(path: Source) -> str:
    """The name of a file without its ending, and without .gz."""
    name = PurePath(path).name
    return PurePath(name[:-3] if name.lower().endswith(".gz") else name).stem


def names_of_files(names: Sequence[str], paths: Sequence[Source]) -> list[str]:
    """What several files are called: each by its name, those that share one by their paths.

    So ``a/run.txt`` and ``b/run.txt`` become ``a/run`` and ``b/run``. A file that is given twice is
    an error.
    """
    real_paths = [Path(os.path.realpath(path)) for path in paths]
    for place, path in enumerate(real_paths):
        if path in real_paths[:place]:
            raise input_error(paths[place], "given once", "the same file twice")
    labels = list(names)
    for n_parts in range(1, max(len(path.parts) for path in real_paths)):
        if len(set(labels)) == len(labels):
            return labels
        for place, path in enumerate(real_paths):
            if list(names).count(names[place]) > 1:
                labels[place] = "/".join(path.with_suffix("").parts[-n_parts:])
    return labels if len(set(labels)) == len(labels) else list(map(str, paths))


def number(text: str) -> float:
    """A finite number: ``0.25``, ``1e-3``, ``1/3``."""
    try:
        value = float(Fraction(text)) if "/" in text else float(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"must be a finite number, got {excerpt(text)}")
    return value


# --- JSON and YAML --------------------------------------------------------------------------------


def _different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two keys {excerpt(twice)}")
    return content


def json_value(text: str | bytes) -> Any:
    """A JSON value; a ValueError says what was found instead."""
    try:
        return json.loads(text, object_pairs_hook=_different_keys)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, character {error.colno}"
        if "\n" not in error.doc:
            place = f"character {error.colno}"
        raise ValueError(f"invalid JSON ({error.msg} at {place})") from None
    except (UnicodeDecodeError, RecursionError):
        raise ValueError("invalid JSON") from None


def read_json_lines(path: Source, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON Lines, each with the number of its line; blank lines are none."""
    end, line_number = -1, 0
    while end < len(text):
        # Line by line, as the lines of a large file would need its memory once more.
        begin, line_number = end + 1, line_number + 1
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        line = text[begin:end]
        if not line.strip():
            continue
        try:
            row = json_value(line)
        except ValueError as error:
            raise input_error(path, "a JSON object", str(error), line_number) from None
        if not isinstance(row, dict):
            raise input_error(path, "a JSON object", excerpt(row), line_number)
        yield line_number, row


class _UniqueKeys:
    """Of a YAML loader: a mapping with a key twice is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        keys = []
        for key, _ in node.value:
            if key.value in keys:
                problem = f"the key {excerpt(key.value)} twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            keys.append(key.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)  # type: ignore[misc]
        return mapping


class _Values(_UniqueKeys, yaml.SafeLoader):
    """Numbers, words, true and false."""


class _Words(_UniqueKeys, yaml.BaseLoader):
    """Every scalar as text, so that a group may be called No."""


def read_yaml(path: Source, *, words: bool = False) -> Any:
    """Content of a YAML file; with ``words`` every scalar is text."""
    text = read_text(path)
    try:
        return yaml.load(text, Loader=_Words if words else _Values)  # noqa: S506 - both are safe
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise input_error(path, "YAML", error.problem or "", line) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise input_error(path, "YAML", str(error).splitlines()[0]) from None


# --- tables ---------------------------------------------------------------------------------------


class Table:
    """A small table: its fields as they are in the file, and errors by line and column.

    ``frame`` has text in each field of a CSV file, and JSON's values in those of JSON Lines.
    ``text`` is that of a CSV file; without one, line N is row N.
    """

    def __init__(self, name: object, frame: pd.DataFrame, text: str = "") -> None:
        self.name, self.frame, self.text = str(name), frame, text
        names = list(map(str, frame.columns))
        twice = [column for column in names if names.count(column) > 1]
        if twice:
            raise input_error(name, "named once", "", 1, twice[0])

    def __len__(self) -> int:
        return len(self.frame)

    def line(self, row: int) -> int:
        """Number of the line on which a row begins."""
        if not self.text:
            return row + 1
        lines = [line for line, _ in _records(self.text)]
        return lines[row + 1]  # below the header

    def error(self, row: int, column: str | None, wanted: str, found: str = "") -> InputError:
        """The error of one row."""
        return input_error(self.name, wanted, found, self.line(row), column)

    def need(self, columns: Iterable[str]) -> None:
        """Raise an error unless the file has these columns."""
        names = list(map(str, self.frame.columns))
        missing = [column for column in columns if column not in names]
        if missing:
            raise input_error(self.name, "in the header", listed(names), 1, listed(missing))

    def reject(self, mask: Any, column: str, wanted: str) -> None:
        """Raise the error of the first row in a mask, if there is any."""
        rows = np.flatnonzero(np.asarray(mask))
        if not len(rows):
            return
        found = excerpt(self.frame[column].iloc[rows[0]])
        if len(rows) > 1:
            found += f" (and {len(rows) - 1} more)"
        raise self.error(int(rows[0]), column, wanted, found)

    def ids(self, column: str) -> pd.Series:
        """A column of ids, none of them empty."""
        values = self.frame[column]
        if values.dtype != "str":
            is_id = values.map(lambda value: isinstance(value, (str, int, float))) & values.notna()
            self.reject(~is_id, column, "an id")
            values = ids_as_text(values)
        values = values.str.strip()
        self.reject(values.isna() | (values == ""), column, "an id")
        return values

    def whole_numbers(self, column: str, *, least: int, empty: int | None = None) -> Integers:
        """A column of whole numbers from ``least`` on; an empty field is ``empty``, if given."""
        values = self.frame[column]
        numbers = _floats(values)
        is_number = np.isfinite(numbers) & (numbers == np.floor(numbers)) & (numbers >= least)
        if empty is not None:
            is_empty = (values.isna() | (values.astype("str").str.strip() == "")).to_numpy()
            numbers = np.where(is_empty, empty, numbers)
            is_number |= is_empty
        self.reject(~is_number, column, f"a whole number of at least {least}")
        too_large = numbers > LARGEST_INTEGER
        self.reject(too_large, column, f"a whole number of at most {LARGEST_INTEGER}")
        return numbers.astype(np.int64)

    def reject_lists(self, columns: Iterable[str]) -> None:
        """Raise the error of the first list or object in these columns, which have names."""
        for column in columns:
            if self.frame[column].dtype == "object":
                is_nested = self.frame[column].map(lambda value: not isinstance(value, Hashable))
                self.reject(is_nested, column, "text or a number")

    def once(self, columns: Sequence[str], what: str) -> None:
        """Raise unless rows differ in these columns; ``what`` is the rule, as *once per list*."""
        self.reject_lists(columns)
        self.reject(self.frame.duplicated(list(columns)), columns[0], what)


def ids_as_text(values: pd.Series) -> pd.Series:
    """Ids as text: the number 7.0, as pandas makes of 7 in a column with an empty cell, is 7."""
    if pd.api.types.is_float_dtype(values) or values.dtype == object:
        # A list, as pandas would make floats of whole numbers again.
        ids = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
        values = pd.Series(ids, values.index, dtype=object, name=values.name)
    return values.astype("str")


def _floats(values: pd.Series) -> Floats:
    """Numbers of a column of text or numbers; NaN where there is none."""
    if values.dtype == "str":
        with suppress(pa.ArrowInvalid):  # Arrow is faster, if all are numbers
            numbers: Floats = pc.cast(pa.array(values), pa.float64()).to_numpy(zero_copy_only=False)
            return numbers
    return pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)


def _separator(text: str) -> str:
    """What is between the names of a header: commas, or semicolons or tabs of a spreadsheet."""
    header = re.sub('"[^"]*"', "", text.lstrip().partition("\n")[0])
    return max(",;\t", key=header.count)


def _records(text: str, *, strict: bool = False) -> Iterable[tuple[int, list[str]]]:
    """Records of a CSV text with the line on which each begins; blank lines are no records."""
    csv.field_size_limit(2**31 - 1)  # a text may be long
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=_separator(text), strict=strict)
    first_line = 1
    for fields in reader:
        if fields:
            yield first_line, fields
        first_line = reader.line_num + 1


def _csv_table(path: Source, text: str) -> Table:
    _, header = next(iter(_records(text)))
    separator = _separator(text)
    if text.count('"') % 2:  # Arrow would take the rest of the file for one cell
        try:
            list(_records(text, strict=True))
        except csv.Error:
            *_, (line, fields) = _records(text)
            column = header[min(len(fields), len(header)) - 1]
            wanted = "with each quotation mark closed"
            raise input_error(path, wanted, excerpt(fields[-1]), line, column) from None
    content = text.encode() + b"\n"
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            # One block, as a quoted field may contain line breaks.
            pyarrow.csv.ReadOptions(block_size=len(content) + 1),
            pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        for line, fields in _records(text):
            if len(fields) != len(header):
                wanted = f"a row of {len(header)} fields, as in the header"
                raise input_error(path, wanted, str(len(fields)), line) from None
        raise input_error(path, "a CSV file", str(error).splitlines()[0]) from None
    # By number, as a name may be there twice, which is reported below.
    columns = {place: column.to_pandas() for place, column in enumerate(table.columns)}
    if separator == ";":
        _read_decimal_commas(path, columns, header)
    return Table(path, pd.DataFrame(columns).set_axis(header, axis=1), text)


def _read_decimal_commas(path: Source, columns: dict[int, pd.Series], header: list[str]) -> None:
    """Put points for commas in columns of numbers, as spreadsheets of many countries write them."""
    names = []
    for place, column in columns.items():
        if column.str.fullmatch(_DECIMAL_COMMAS).all() and column.str.contains(",").any():
            columns[place] = column.str.replace(",", ".")
            names.append(header[place])
    if names:
        warnings.warn(f"{path}: decimal commas are read in {listed(names)}", Note, 2)


def _parquet_table(path: Source, content: bytes) -> Table:
    from pyarrow import parquet  # costs 30 ms, and most files are text

    try:
        read = parquet.read_table(io.BytesIO(content))
        for column in read.schema:
            kind = column.type
            if pa.types.is_struct(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind):
                raise input_error(path, "text or numbers", str(kind), column=column.name)
        # Categories are text as any other.
        kinds = [
            kind.value_type if pa.types.is_dictionary(kind) else kind for kind in read.schema.types
        ]
        plain = read.cast(pa.schema(zip(read.column_names, kinds, strict=True)))
        return Table(path, plain.to_pandas(integer_object_nulls=True))
    except (pa.ArrowException, OSError):
        raise input_error(path, "a Parquet file") from None


def _json_frame(rows: list[tuple[int, dict[str, Any]]]) -> pd.DataFrame:
    """Rows of JSON; whole numbers stay whole where other rows have none."""
    frame = pd.DataFrame([row for _, row in rows], dtype=object)
    for name, column in frame.items():
        inferred = column.infer_objects()
        if not pd.api.types.is_float_dtype(inferred):
            frame[name] = inferred
    return frame


def read_table(path: Source, content: bytes | None = None) -> Table:
    """Read a CSV, JSON Lines or Parquet file, recognised by its first bytes, or its ``content``."""
    content = read_bytes(path) if content is None else content
    if content.startswith(b"PAR1"):
        table = _parquet_table(path, content)
    else:
        text = decoded(content, path)
        if not text.strip():
            raise input_error(path, "a table with a header", "an empty file")
        if text.lstrip().startswith("{"):
            table = Table(path, _json_frame(list(read_json_lines(path, text))))
        else:
            table = _csv_table(path, text)
    if not len(table):
        raise input_error(path, "a table with at least one row", "only a header")
    return table
