"""Files as they come: text, CSV, Parquet and YAML, with line numbers in every error."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import re
import stat
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import yaml

from equipoise import plain_yaml
from equipoise.problems import InputError, Note, Problems, listed, reason, refused, shown

GZIP, BOM = b"\x1f\x8b", b"\xef\xbb\xbf"
_SMALL, _PACKED, _LARGEST = 2**26, 200, 2**31
"""Bytes that any file may have, bytes for each that gzip packed, and bytes of what has no size: a pipe."""
_MOST_COLUMNS = 10_000
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
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


class _Again(io.RawIOBase):
    """A pipe with its beginning, which was looked at, put back."""

    def __init__(self, start: bytes, rest: Any) -> None:
        self.start, self.rest = start, rest

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        part = self.start[: len(into)] or self.rest.read1(len(into))
        self.start, into[: len(part)] = self.start[len(part) :], part
        return len(part)

    def close(self) -> None:
        self.rest.close()
        super().close()


_begun: dict[str, tuple[bytes, Any]] = {}
"""Pipes of which the beginning was looked at, and that."""


def head(path: str | Path, size: int = 2**16) -> bytes:
    """The first bytes of a file, unpacked, which a pipe gives again; none where reading will fail."""
    with suppress(InputError, OSError):
        if not stat.S_ISFIFO(Path(path).stat().st_mode):
            with opened(path) as (file, _):
                return bytes(file.read(size))
        if os.fspath(path) not in _begun:
            pipe = Path(path).open("rb")  # noqa: SIM115 - `opened` closes it
            _begun[os.fspath(path)] = pipe.read(2**16), pipe
        start = _begun[os.fspath(path)][0]
        return (
            zlib.decompressobj(31).decompress(start, size) if start.startswith(GZIP) else start
        )[:size]
    return b""


@contextmanager
def opened(path: str | Path) -> Iterator[tuple[Any, int]]:
    """A file to read, unpacked where gzip made it, whatever its name, and how many bytes of it are not too many.

    What the system has against it, then or while it is read, is an `InputError`; so is a device,
    which has no end.
    """
    try:
        state = Path(path).stat()
        if stat.S_IFMT(state.st_mode) in (stat.S_IFCHR, stat.S_IFBLK):
            raise refused(path, "a device", "a readable file")
        regular = stat.S_ISREG(state.st_mode)
        start, rest = _begun.pop(os.fspath(path), (b"", None))
        with io.BufferedReader(_Again(start, rest)) if rest else Path(path).open("rb") as plain:
            if plain.peek(2).startswith(GZIP):
                with gzip.GzipFile(fileobj=plain) as file:
                    yield (
                        file,
                        min(max(_SMALL, _PACKED * state.st_size), _LARGEST)
                        if regular
                        else _LARGEST,
                    )
            else:
                yield plain, sys.maxsize - 1 if regular else _LARGEST
    except (OSError, EOFError, zlib.error) as error:
        told = reason(error) if isinstance(error, OSError) and error.errno else "no whole gzip file"
        raise refused(path, told, "a readable file") from None
    except ValueError as error:
        if "embedded null" not in str(error):
            raise
        raise refused(path, "a name with a NUL character", "a readable file") from None


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file, unpacked where gzip made it."""
    with opened(path) as (file, most):
        if most == sys.maxsize - 1:
            file.raw.seek(0)
            return bytes(file.raw.readall())  # what was peeked at would be copied before the rest
        content: bytes = file.read(most + 1)
    if len(content) > most:
        raise refused(path, f"more than {most} bytes", "a smaller file")
    return content


def read_chunks(path: str | Path, size: int = 2**22) -> Iterator[tuple[int, bytes]]:
    """A file of any size in parts of whole lines, each with the number of its first line."""
    with opened(path) as (file, most):
        number, taken = 1, 0
        while part := file.read(size):
            rest = b"" if part.endswith(b"\n") else file.readline(_SMALL + 1)
            if len(rest) > _SMALL:
                line = number + part.count(b"\n")
                raise refused(path, f"a line of more than {_SMALL} bytes", "shorter lines", line)
            taken += len(part) + len(rest)
            if most <= _LARGEST and taken > most:
                raise refused(path, f"more than {most} bytes", "a smaller file")
            yield number, part + rest
            number += int(
                np.count_nonzero(np.frombuffer(part, np.uint8) == ord("\n"))
            ) + rest.count(b"\n")


def unpacked_name(path: str | Path) -> str:
    """The name of a file without .gz, as text that can be written."""
    name = os.fsencode(PurePath(path).name).decode("utf-8", "replace")
    return name[:-3] if name.lower().endswith(".gz") else name


def stem(path: str | Path) -> str:
    """The name of a file without its ending, and without .gz: what a run is called."""
    return PurePath(unpacked_name(path)).stem


def decoded(content: bytes, path: str | Path) -> str:
    """The text of a file's bytes, which are UTF-8, without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = (
            error.start + len(content) - len(error.object)
        )  # a byte order mark is no part of the object
        found = f"bytes that are not UTF-8 (0x{content[place]:02x} at byte {place + 1} of the file)"
        raise refused(path, found, "UTF-8 text", content.count(b"\n", 0, place) + 1) from None


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file, plain or .gz, without a byte order mark; a file that is empty is refused."""
    text = decoded(read_bytes(path), path)
    if not text.strip():
        raise refused(path, "an empty file", "some content")
    return text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        ((again, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(again)} twice")
    return content


def _whole(digits: str) -> int:
    if len(digits) > 300:
        raise ValueError("a number of very many digits")
    return int(digits)


def json_value(text: str | bytes) -> Any:
    """A JSON value whose texts can be written; a ValueError says what was found instead."""
    try:
        value = json.loads(text, parse_int=_whole, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise ValueError(f"no JSON ({error.msg} at {line}character {error.colno})") from None
    except UnicodeDecodeError:
        raise ValueError("bytes that are not UTF-8") from None
    except RecursionError:
        raise ValueError("values within values without end") from None
    if (b"\\ud" if isinstance(text, bytes) else "\\ud") in text.lower():  # type: ignore[operator]
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half a surrogate pair in a text") from None
    return value


def read_json(path: str | Path, kind: type, wanted: str, text: str | None = None) -> Any:
    """The JSON value of a file, of this kind and no empty list; ``text`` is that of a file that has been read."""
    text = read_text(path) if text is None else text
    try:
        value = json_value(text)
    except ValueError as error:
        raise refused(path, str(error), wanted) from None
    if not isinstance(value, kind) or value == []:
        raise refused(path, shown(value), wanted)
    return value


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

    def report(
        self,
        rows: Iterable[int],
        column: str | None,
        found: Callable[[int], str] | str,
        wanted: str,
    ) -> None:
        """Collect a problem for each of the rows."""
        for row in map(int, rows):
            line = row + 1 if self.text is None else self._lines[row]
            self.problems.add(
                self.name, line, column, found if isinstance(found, str) else found(row), wanted
            )

    def check_header(
        self, required: Sequence[str], optional: Sequence[str] = (), known: str = ""
    ) -> None:
        """Refuse a file that lacks columns, and note those that are not read.

        ``known`` is said behind what is wanted; with it, what is wrong is only collected.
        """
        names = list(map(str, self.columns.columns))
        missing = [name for name in required if name not in names]
        if missing:
            found = f"no such column (there are {listed(names)})"
            self.problems.add(
                self.name, self._header, ", ".join(missing), found, "the column" + known
            )
        if not missing and (
            others := [name for name in names if name not in (*required, *optional)]
        ):
            warnings.warn(
                f"not read: column {listed(others)}; known are {listed((*required, *optional))}",
                Note,
                2,
            )
        if not known:
            self.problems.refuse()


def cells(column: pd.Series) -> Callable[[int], str]:
    """What is found in a row of a column, for `Source.report`."""
    return lambda row: shown(column[row])


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


def _read_csv(path: str | Path, text: str | None = None) -> Source:
    text = read_text(path) if text is None else text
    header = next(_records(text))[1]
    if len(header) > _MOST_COLUMNS:
        raise refused(path, f"{len(header)} columns", f"at most {_MOST_COLUMNS}", 1)
    content, ragged = (
        (text if "\n" in text else f"{text}\n").encode(),
        list[Any](),
    )  # Arrow wants the end of a header

    def skip(row: Any) -> Literal["skip"]:
        ragged.append(row)
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=len(content) + 1),
            parse_options=pyarrow.csv.ParseOptions(
                newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise refused(path, str(error).splitlines()[0], "a CSV file") from None
    columns = pd.DataFrame(
        {index: column.to_pandas() for index, column in enumerate(table.columns)}
    )
    source = Source(str(path), columns.set_axis(table.column_names, axis=1), text)
    for line, fields in _records(text) if ragged else ():
        if len(fields) != len(header):
            source.problems.add(
                path, line, None, f"{len(fields)} fields", f"{len(header)}, as in the header"
            )
    return source


def parquet_table(path: str | Path) -> Any:
    """A Parquet file as a table of Arrow."""
    from pyarrow import parquet  # costs 30 ms, and most files are CSV

    if not Path(path).is_file():
        raise refused(path, "Parquet in a pipe", "a file, which can be read from its end")
    try:
        about, size = parquet.read_metadata(path), Path(path).stat().st_size
        if about.num_rows > max(_SMALL // 64, _PACKED * size) or about.num_columns > _MOST_COLUMNS:
            raise refused(
                path,
                f"{about.num_rows} rows of {about.num_columns} columns in {size} bytes",
                "fewer",
            )
        return parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise refused(path, str(error).splitlines()[0], "a Parquet file") from None


def _json_lines(path: str | Path, text: str) -> Source:
    """JSON Lines as columns, by the keys of all lines."""
    rows, problems = list[Any](), Problems()
    for number, line in enumerate(text.rstrip().split("\n"), start=1):
        try:
            rows.append(json_value(line))
        except ValueError as error:
            problems.add(path, number, None, str(error), "a JSON object")
        if rows and not isinstance(rows[-1], dict):
            problems.add(path, number, None, shown(rows.pop()), "a JSON object")
    problems.refuse()
    return Source(str(path), pd.DataFrame(rows))


def is_parquet(path: str | Path) -> bool:
    """Whether a file is a Parquet file, by its first bytes."""
    return head(path, 4) == b"PAR1"


def parts(folder: str | Path, endings: Sequence[str] = (".parquet",)) -> list[Path]:
    """Files of these endings, or with .gz behind, at any depth of a folder, relative to it, by their names.

    Hidden ones, and those whose names begin with an underscore, are left out.
    """
    every = (path.relative_to(folder) for path in Path(folder).rglob("*") if path.is_file())
    found = sorted(path for path in every if unpacked_name(path).lower().endswith(tuple(endings)))
    found = [path for path in found if not any(part.startswith((".", "_")) for part in path.parts)]
    if not found:
        what = "Parquet file" if tuple(endings) == (".parquet",) else "file to read"
        raise refused(
            folder,
            f"no {what} in this folder",
            f"files {', '.join(f'*{ending}' for ending in endings)}",
        )
    return found


def read_source(path: str | Path, text: str | None = None) -> Source:
    """A CSV, JSON Lines or Parquet file, by its first bytes; ``text`` is that of a file that has been read."""
    if text is None and is_parquet(path):
        source = Source(str(path), parquet_table(path).to_pandas(ignore_metadata=True))
    else:
        text = read_text(path) if text is None else text
        source = _json_lines(path, text) if text.lstrip().startswith("{") else _read_csv(path, text)
    if source.columns.empty and not source.problems:
        raise refused(path, "a header without rows", "at least one row")
    return source


def read_columns(path: str | Path, columns: Sequence[str]) -> pd.DataFrame:
    """A CSV file with exactly the named columns, put into their order, every field as text."""
    source = _read_csv(path)
    source.check_header(columns)
    return source.columns[list(columns)]


def read_yaml(path: str | Path, loader: type[plain_yaml.Words] = plain_yaml.Words) -> Any:
    """Content of a YAML file, in which every scalar is text unless the loader has it otherwise."""
    text = read_text(path)
    try:
        return plain_yaml.load(text, loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise refused(path, error.problem or "no YAML", "YAML", line) from None
    except yaml.YAMLError as error:
        raise refused(path, str(error).splitlines()[0], "YAML") from None
