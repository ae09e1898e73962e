"""Files as they come and go: text, CSV, Parquet and YAML with line numbers in every error; tables out, whole or not."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import yaml
from numpy.typing import NDArray

from equipoise.problems import InputError, Problem, shown

CSV_DIGITS = "%.12g"

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_FRACTION = re.compile(r"[+-]?\d{1,18}/\d{1,18}")


def parse_number(text: str) -> float:
    """A finite number from plain text, decimal or fraction.

    ``text``: Such as ``0.25``, ``1e-3`` or ``1/3``.
    """
    if _NUMBER.fullmatch(text):
        number = float(text)
        if np.isfinite(number):
            return number
    elif _FRACTION.fullmatch(text) and int(text.partition("/")[2]):
        return float(Fraction(text))
    raise ValueError(f"{shown(text)}, not a number such as 0.25 or 1/4")


# --- files ------------------------------------------------------------------------------------------------------


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file.

    Returns: Without a byte order mark.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError([Problem(str(path), None, None, error.strerror or "no way in", "a readable file")]) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = content[: error.start]
        found = f"bytes that are not UTF-8 (0x{content[error.start]:02x} at byte {error.start + 1} of the file)"
        raise InputError([Problem(str(path), good.count(b"\n") + 1, None, found, "UTF-8 text")]) from None
    if not text.strip():
        raise InputError([Problem(str(path), None, None, "an empty file", "some content")])
    return text


@dataclass
class Source:
    """Columns of a file as they stand in it, and the way from a row number to a line."""

    name: str
    columns: pd.DataFrame
    text: str | None = None  # of a CSV file
    problems: list[Problem] = field(default_factory=list)
    _lines: NDArray[np.int64] | None = None

    def line(self, row: int) -> int:
        """Line of the file that a row begins on."""
        if self.text is None:
            return row + 1
        if self._lines is None:
            width = len(self.columns.columns)
            self._lines = np.array([line for line, fields in _records(self.text) if len(fields) == width][1:])
        return int(self._lines[row])

    def report(self, rows: Iterable[int], column: str | None, found: Callable[[int], str] | str, wanted: str) -> None:
        """Collect a problem for each of the rows."""
        for row in rows:
            what = found if isinstance(found, str) else found(int(row))
            self.problems.append(Problem(self.name, self.line(int(row)), column, what, wanted))

    def shown(self, column: str) -> Callable[[int], str]:
        """How an error message shows the field of a row."""
        values = self.columns[column]

        def show(row: int) -> str:
            value = values.iloc[row]
            return "an empty field" if is_empty(value) else shown(value)

        return show


def is_empty(value: object) -> bool:
    """Whether a field holds nothing."""
    return value is None or value is pd.NA or value == "" or (isinstance(value, float) and np.isnan(value))


def _records(text: str) -> Iterable[tuple[int, list[str]]]:
    """Records of a CSV text with the line each begins on; blank lines are no records."""
    reader, begins = csv.reader(io.StringIO(text, newline="")), 1
    for fields in reader:
        if fields:
            yield begins, fields
        begins = reader.line_num + 1


def _read_csv(path: str | Path) -> Source:
    text = read_text(path)
    limit = csv.field_size_limit(len(text) + 1)
    try:
        header = next(iter(_records(text)))[1]
        options = pyarrow.csv.ReadOptions(use_threads=False, block_size=len(text.encode()) + 1)
        ragged: list[int] = []

        def note(row: Any) -> Literal["skip"]:
            ragged.append(row.number)
            return "skip"

        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(text.encode()),
                read_options=options,
                parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid as error:
            raise InputError([Problem(str(path), None, None, str(error).splitlines()[0], "a CSV file")]) from None
        columns = pd.DataFrame({index: table.column(index).to_pandas() for index in range(table.num_columns)})
        columns.columns = pd.Index(table.column_names)
        source = Source(str(path), columns, text)
        if ragged:
            source.problems += [
                Problem(str(path), line, None, f"{len(fields)} fields", f"{len(header)}, as in the header")
                for line, fields in _records(text)
                if len(fields) != len(header)
            ]
    finally:
        csv.field_size_limit(limit)
    return source


def _read_parquet(path: str | Path) -> Source:
    try:
        from pyarrow import parquet  # costs 30 ms, and most files are CSV

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
    """A CSV or Parquet file, the latter known by its first bytes, each column once."""
    source = _read_parquet(path) if is_parquet(path) else _read_csv(path)
    names = [str(name) for name in source.columns.columns]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        line = None if source.text is None else 1
        raise InputError([Problem(source.name, line, name, "the column twice", "each column once") for name in doubled])
    if source.columns.empty and not source.problems:
        raise InputError([Problem(source.name, None, None, "a header without rows", "at least one row")])
    return source


def read_columns(path: str | Path, columns: Sequence[str]) -> pd.DataFrame:
    """A CSV file with exactly the named columns, every field as text.

    ``columns``: Wanted columns, in any order in the file. Returns With the columns in the order wanted.
    """
    source = _read_csv(path)
    check_header(source, required=columns, optional=(), known="")
    if source.problems:
        raise InputError(source.problems)
    return source.columns[list(columns)]


def check_header(source: Source, required: Sequence[str], optional: Sequence[str], known: str) -> None:
    """Collect the columns that lack or are unknown; ``known`` is said behind what is wanted."""
    line = None if source.text is None else 1
    names = list(source.columns.columns)
    for name in required:
        if name not in names:
            found = f"no such column (there are {', '.join(map(str, names))})"
            source.problems.append(Problem(source.name, line, name, found, "the column" + known))
    for name in names:
        if name not in (*required, *optional):
            wanted = f"only {', '.join((*required, *optional))}{known}"
            source.problems.append(Problem(source.name, line, str(name), "an unknown column", wanted))


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


def write_csv(table: pd.DataFrame, path: Path | TextIO) -> None:
    """Write a table as CSV at 12 significant digits, the same bytes everywhere."""
    tidy = table.copy()
    for column in tidy.columns[[pd.api.types.is_float_dtype(dtype) for dtype in tidy.dtypes]]:
        tidy[column] = tidy[column] + 0.0  # no negative zero
    tidy.to_csv(path, index=False, float_format=CSV_DIGITS, lineterminator="\n", encoding="utf-8")


def write_tables(tables: Mapping[Path, pd.DataFrame]) -> None:
    """Write every table, CSV or Parquet by its ending, or none: to temporary files first, then into place."""
    staged: list[tuple[Path, Path]] = []
    try:
        for path, table in tables.items():
            with tempfile.NamedTemporaryFile(dir=path.absolute().parent, prefix=f".{path.name}-", delete=False) as file:
                staged.append((Path(file.name), path))
            if path.suffix == ".parquet":
                table.to_parquet(staged[-1][0], index=False)
            else:
                write_csv(table, staged[-1][0])
            staged[-1][0].chmod(0o644)
        for temporary, path in staged:
            temporary.replace(path)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
