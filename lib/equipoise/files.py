"""Files as they come: text, CSV, Parquet and YAML, with line numbers in every error."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import yaml

from equipoise.problems import InputError, Problem, Problems, shown

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_FRACTION = re.compile(r"[+-]?\d{1,18}/\d{1,18}")


def parse_number(text: str) -> float:
    """A finite number from plain text, decimal or fraction: ``0.25``, ``1e-3``, ``1/3``."""
    if _NUMBER.fullmatch(text):
        number = float(text)
        if math.isfinite(number):
            return number
    elif _FRACTION.fullmatch(text) and int(text.partition("/")[2]):
        return float(Fraction(text))
    raise ValueError(f"{shown(text)}, not a number such as 0.25 or 1/4")


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError([Problem(str(path), None, None, error.strerror or "no way in", "a readable file")]) from None


def decoded(content: bytes, path: str | Path) -> str:
    """The text of a file's bytes, which are UTF-8, without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = error.start + len(content) - len(error.object)  # a byte order mark is no part of the object
        found = f"bytes that are not UTF-8 (0x{content[place]:02x} at byte {place + 1} of the file)"
        raise InputError([Problem(str(path), content.count(b"\n", 0, place) + 1, None, found, "UTF-8 text")]) from None


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file, without a byte order mark; a file that is empty is refused."""
    text = decoded(read_bytes(path), path)
    if not text.strip():
        raise InputError([Problem(str(path), None, None, "an empty file", "some content")])
    return text


@dataclass
class Source:
    """Columns as they stand in a file, each once, and the way from a row number to a line.

    ``text`` is that of a CSV file; without one, lines are rows, counted from 1.
    """

    name: str
    columns: pd.DataFrame
    text: str | None = None
    problems: Problems = field(default_factory=Problems)

    def __post_init__(self) -> None:
        self._header = None if self.text is None else 1
        names = self.columns.columns
        for name in sorted(set(map(str, names[names.duplicated()]))):
            self.problems.add(self.name, self._header, name, "the column twice", "each column once")
        self.problems.refuse()

    @cached_property
    def _lines(self) -> list[int]:
        width = len(self.columns.columns)
        return [line for line, fields in _records(self.text or "") if len(fields) == width][1:]

    def report(self, rows: Iterable[int], column: str | None, found: Callable[[int], str] | str, wanted: str) -> None:
        """Collect a problem for each of the rows."""
        for row in map(int, rows):
            line = row + 1 if self.text is None else self._lines[row]
            self.problems.add(self.name, line, column, found if isinstance(found, str) else found(row), wanted)

    def check_header(self, required: Sequence[str], optional: Sequence[str] = (), known: str = "") -> None:
        """Collect the columns that lack or are unknown; ``known`` is said behind what is wanted."""
        names = list(self.columns.columns)
        there = f"no such column (there are {', '.join(map(str, names))})"
        for name in required:
            if name not in names:
                self.problems.add(self.name, self._header, name, there, "the column" + known)
        for name in names:
            if name not in (*required, *optional):
                wanted = f"only {', '.join((*required, *optional))}{known}"
                self.problems.add(self.name, self._header, str(name), "an unknown column", wanted)


def _records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Records of a CSV text with the line each begins on; blank lines are no records."""
    limit, begins = csv.field_size_limit(len(text) + 1), 1
    try:
        reader = csv.reader(io.StringIO(text, newline=""))
        for fields in reader:
            if fields:
                yield begins, fields
            begins = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _read_csv(path: str | Path) -> Source:
    text = read_text(path)
    header = next(_records(text))[1]
    content, ragged = text.encode(), list[Any]()

    def skip(row: Any) -> Literal["skip"]:
        ragged.append(row)
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=len(content) + 1),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise InputError([Problem(str(path), None, None, str(error).splitlines()[0], "a CSV file")]) from None
    columns = pd.DataFrame({index: column.to_pandas() for index, column in enumerate(table.columns)})
    source = Source(str(path), columns.set_axis(table.column_names, axis=1), text)
    for line, fields in _records(text) if ragged else ():
        if len(fields) != len(header):
            source.problems.add(path, line, None, f"{len(fields)} fields", f"{len(header)}, as in the header")
    return source


def _read_parquet(path: str | Path) -> Source:
    from pyarrow import parquet  # costs 30 ms, and most files are CSV

    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError([Problem(str(path), None, None, str(error).splitlines()[0], "a Parquet file")]) from None
    return Source(str(path), table.to_pandas(ignore_metadata=True))


def is_parquet(path: str | Path) -> bool:
    """Whether a file is a Parquet file, by its first bytes."""
    try:
        with Path(path).open("rb") as opened:
            return opened.read(4) == b"PAR1"
    except OSError:
        return False  # read_text says what is wrong


def read_source(path: str | Path) -> Source:
    """A CSV or Parquet file, the latter known by its first bytes."""
    source = _read_parquet(path) if is_parquet(path) else _read_csv(path)
    if source.columns.empty and not source.problems:
        raise InputError([Problem(source.name, None, None, "a header without rows", "at least one row")])
    return source


def read_columns(path: str | Path, columns: Sequence[str]) -> pd.DataFrame:
    """A CSV file with exactly the named columns, put into their order, every field as text."""
    source = _read_csv(path)
    source.check_header(columns)
    source.problems.refuse()
    return source.columns[list(columns)]


class _Strings(yaml.SafeLoader):
    """Reads every scalar as text, so that a group named No stays one, and refuses a key that comes twice."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - as PyYAML declares it

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key that is not a word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> Any:
    """Content of a YAML file, in which every scalar is text."""
    name, text = str(path), read_text(path)
    try:
        return yaml.load(text, Loader=_Strings)  # noqa: S506 - a SafeLoader that knows text only
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError([Problem(name, line, None, error.problem or "no YAML", "YAML")]) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError([Problem(name, None, None, str(error).splitlines()[0], "YAML")]) from None
