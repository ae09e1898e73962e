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
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import yaml

from equipoise import plain_yaml
from equipoise.arrays import each_once
from equipoise.problems import InputError, Note, Problems, listed, reason, refused, shown

GZIP, BOM = b"\x1f\x8b", b"\xef\xbb\xbf"

_SMALL = 2**26  # bytes that any file may have when it is unpacked, and that a line may have
_UNPACKED_RATIO = 200  # bytes for each one that gzip or Parquet packed; more is taken for a bomb
_LARGEST = 2**31  # bytes of what has no size of its own: a pipe, or what gzip unpacks
_PEEKED = 2**16  # bytes of a pipe's beginning that are looked at
_MOST_COLUMNS = 10_000

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_FRACTION = re.compile(r"[+-]?\d{1,18}/\d{1,18}")


def parse_number(text: str) -> float:
    """A finite number from plain text, decimal or fraction: ``0.25``, ``1e-3``, ``1/3``."""
    if _NUMBER.fullmatch(text):
        number = float(text)
        if math.isfinite(number):
            return number
    elif _FRACTION.fullmatch(text):
        denominator = text.partition("/")[2]
        if int(denominator):
            return float(Fraction(text))
    raise ValueError(f"{shown(text)}, not a number such as 0.25 or 1/4")


# --- bytes ----------------------------------------------------------------------------------------


class _PipeFromStart(io.RawIOBase):
    """A pipe with its beginning, which was looked at, put back."""

    def __init__(self, beginning: bytes, pipe: Any) -> None:
        self._beginning, self._pipe = beginning, pipe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._beginning[: len(buffer)]
        if chunk:
            self._beginning = self._beginning[len(chunk) :]
        else:
            chunk = self._pipe.read1(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._pipe.close()
        super().close()


_peeked_pipes: dict[str, tuple[bytes, Any]] = {}
"""Pipes of which `head` has looked at the beginning: that, and the open pipe, which reads on."""


def head(path: str | Path, size: int = _PEEKED) -> bytes:
    """The first bytes of a file, unpacked; none where reading will fail.

    A pipe gives them again when it is read.
    """
    with suppress(InputError, OSError):
        if stat.S_ISFIFO(Path(path).stat().st_mode):
            return _head_of_pipe(path)[:size]
        with _opened(path) as (file, _):
            return bytes(file.read(size))
    return b""


def _head_of_pipe(path: str | Path) -> bytes:
    name = os.fspath(path)
    if name not in _peeked_pipes:
        pipe = Path(path).open("rb")  # noqa: SIM115 - `_opened` closes it
        _peeked_pipes[name] = pipe.read(_PEEKED), pipe
    beginning, _ = _peeked_pipes[name]
    if beginning.startswith(GZIP):
        return zlib.decompressobj(31).decompress(beginning, _PEEKED)
    return beginning


def _begin(path: str | Path) -> io.BufferedReader:
    """A file open at its beginning, a pipe with what `head` took of it."""
    name = os.fspath(path)
    if name in _peeked_pipes:
        return io.BufferedReader(_PipeFromStart(*_peeked_pipes.pop(name)))
    return Path(path).open("rb")


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[Any, int | None]]:
    """A file to read, unpacked where gzip made it, and how many bytes it may have, None for any.

    What the system has against it, then or while it is read, is an `InputError`; so is a device,
    which has no end.
    """
    try:
        status = Path(path).stat()
        if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
            raise refused(path, "a device", "a readable file")
        is_regular = stat.S_ISREG(status.st_mode)
        with _begin(path) as file:
            if not file.peek(2).startswith(GZIP):
                yield file, None if is_regular else _LARGEST
                return
            limit = _LARGEST
            if is_regular:
                limit = min(max(_SMALL, _UNPACKED_RATIO * status.st_size), _LARGEST)
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked, limit
    except OSError as error:
        problem = reason(error) if error.errno else "no whole gzip file"
        raise refused(path, problem, "a readable file") from None
    except (EOFError, zlib.error):
        raise refused(path, "no whole gzip file", "a readable file") from None
    except ValueError as error:
        if "embedded null" not in str(error):
            raise
        raise refused(path, "a name with a NUL character", "a readable file") from None


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file, unpacked where gzip made it."""
    with _opened(path) as (file, limit):
        if limit is None:
            # Past the buffer, which would be copied in front of all the rest.
            file.raw.seek(0)
            return bytes(file.raw.readall())
        content: bytes = file.read(limit + 1)
    if len(content) > limit:
        raise refused(path, f"more than {limit} bytes", "a smaller file")
    return content


def read_chunks(path: str | Path, size: int = 2**22) -> Iterator[tuple[int, bytes]]:
    """A file of any size in chunks of complete lines, each with the number of its first line."""
    line_number, n_bytes = 1, 0
    with _opened(path) as (file, limit):
        while chunk := file.read(size):
            if not chunk.endswith(b"\n"):
                line_end = file.readline(_SMALL + 1)
                if len(line_end) > _SMALL:
                    long_line = line_number + chunk.count(b"\n")
                    problem = f"a line of more than {_SMALL} bytes"
                    raise refused(path, problem, "shorter lines", long_line)
                chunk += line_end
            n_bytes += len(chunk)
            if limit is not None and n_bytes > limit:
                raise refused(path, f"more than {limit} bytes", "a smaller file")
            yield line_number, chunk
            line_number += chunk.count(b"\n")


def unpacked_name(path: str | Path) -> str:
    """The name of a file without .gz, as text that can be written."""
    name = os.fsencode(PurePath(path).name).decode("utf-8", "replace")
    return name[:-3] if name.lower().endswith(".gz") else name


def stem(path: str | Path) -> str:
    """The name of a file without its ending, and without .gz: what a run is called."""
    return PurePath(unpacked_name(path)).stem


def told_apart(names: Sequence[str], paths: Sequence[str | Path]) -> list[str]:
    """What sources are called: each by its name, those that share one by their paths.

    So a source is its file: ``a/run.txt`` and ``b/run.txt`` become ``a/run`` and ``b/run``, and a
    file that is given twice is refused.
    """
    real_paths = list(map(os.path.realpath, paths))
    for real_path in _repeated(real_paths):
        path = paths[real_paths.index(real_path)]
        raise refused(path, "the same file twice", "each file once")
    absolute_paths = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - links stay
    labels = list(names)
    shared_names = _repeated(labels)
    if shared_names:
        note = f"several files are called {listed(sorted(shared_names))}: they go by their paths"
        warnings.warn(note, Note, 2)
    n_parts = 1
    while True:
        ambiguous_labels = _repeated(labels)
        if not ambiguous_labels:
            return labels
        for place, path in enumerate(absolute_paths):
            if labels[place] in ambiguous_labels:
                labels[place] = _ending_of_path(path, n_parts, absolute_paths)
        n_parts += 1


def _ending_of_path(path: Path, n_parts: int, paths: Sequence[Path]) -> str:
    """The last parts of a path, without the file's ending unless another path has another one."""
    name = stem(path)
    if sum(stem(other) == name and other.parent == path.parent for other in paths) > 1:
        name = path.name
    label = "/".join([*path.parts[-n_parts:-1], name])
    return os.fsencode(label).decode("utf-8", "replace")  # text that can be written


def _repeated(items: Iterable[Any]) -> list[Any]:
    return [item for item, count in Counter(items).items() if count > 1]


def parts(folder: str | Path, endings: Sequence[str] = (".parquet",)) -> list[Path]:
    """Files of these endings at any depth of a folder, relative to it, in the order of their names.

    ``.gz`` may follow an ending. Files whose names, or folders, begin with a dot or an underscore
    are left out.
    """
    paths = []
    for path in sorted(Path(folder).rglob("*")):
        relative = path.relative_to(folder)
        is_hidden = any(part.startswith((".", "_")) for part in relative.parts)
        has_ending = unpacked_name(path).lower().endswith(tuple(endings))
        if has_ending and not is_hidden and path.is_file():
            paths.append(relative)
    if not paths:
        kind_of_file = "Parquet file" if tuple(endings) == (".parquet",) else "file to read"
        expected = ", ".join(f"*{ending}" for ending in endings)
        raise refused(folder, f"no {kind_of_file} in this folder", f"files {expected}")
    return paths


# --- text, JSON and YAML --------------------------------------------------------------------------


def decoded(content: bytes, path: str | Path) -> str:
    """The text of a file's bytes, which are UTF-8, without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from behind a byte order mark.
        place = error.start + len(content) - len(error.object)
        byte = f"0x{content[place]:02x} at byte {place + 1} of the file"
        line = content.count(b"\n", 0, place) + 1
        problem = f"bytes that are not UTF-8 ({byte})"
        raise refused(path, problem, "UTF-8 text", line) from None


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file, without a byte order mark; a file that is empty is refused."""
    text = decoded(read_bytes(path), path)
    if not text.strip():
        raise refused(path, "an empty file", "some content")
    return text


def _object_of_different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated_name, _ = counts.most_common(1)[0]
        raise ValueError(f"the key {shown(repeated_name)} twice")
    return content


def _integer(digits: str) -> int:
    # int takes a time that grows with the square of the digits, and refuses 4,300 of them.
    if len(digits) > 300:
        raise ValueError("a number of very many digits")
    return int(digits)


def json_value(text: str | bytes) -> Any:
    """A JSON value whose texts can be written; a ValueError says what was found instead."""
    try:
        value = json.loads(text, parse_int=_integer, object_pairs_hook=_object_of_different_keys)
    except json.JSONDecodeError as error:
        place = f"character {error.colno}"
        if error.lineno > 1:
            place = f"line {error.lineno}, {place}"
        raise ValueError(f"no JSON ({error.msg} at {place})") from None
    except UnicodeDecodeError:
        raise ValueError("bytes that are not UTF-8") from None
    except RecursionError:
        raise ValueError("values within values without end") from None

    # An escape may stand for half of a character, which no file can hold.
    if isinstance(text, bytes):
        has_surrogates = b"\\ud" in text.lower()
    else:
        has_surrogates = "\\ud" in text.lower()
    if has_surrogates:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half a surrogate pair in a text") from None
    return value


def read_json(path: str | Path, kind: type, expected: str, text: str | None = None) -> Any:
    """The JSON value of a file, of this kind and no empty list.

    ``text`` is that of a file that has been read.
    """
    if text is None:
        text = read_text(path)
    try:
        value = json_value(text)
    except ValueError as error:
        raise refused(path, str(error), expected) from None
    if not isinstance(value, kind) or value == []:
        raise refused(path, shown(value), expected)
    return value


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


# --- what is wrong, by lines ----------------------------------------------------------------------


class Explainer:
    """Says in which lines of a file a check has failed; the lines are looked for only then.

    ``find_lines`` gives the number of the line that each row stands on. Without it rows are lines,
    counted from 1. ``problems`` collects, maybe those of other files too.
    """

    def __init__(
        self,
        name: object,
        find_lines: Callable[[], Sequence[int]] | None = None,
        problems: Problems | None = None,
    ) -> None:
        self.name = str(name)
        self.problems = Problems() if problems is None else problems
        self._find_lines = find_lines

    @cached_property
    def _lines(self) -> Sequence[int] | None:
        if self._find_lines is None:
            return None
        return self._find_lines()

    def line(self, row: int) -> int:
        """Number of the line that a row stands on."""
        if self._lines is None:
            return row + 1
        return int(self._lines[row])

    def report(
        self,
        rows: Iterable[int],
        column: str | None,
        problem: Callable[[int], str] | str,
        expected: str,
    ) -> None:
        """Collect a problem for each of the rows."""
        for row in map(int, rows):
            message = problem if isinstance(problem, str) else problem(row)
            self.problems.add(self.name, self.line(row), column, message, expected)

    def report_repeats(self, table: pd.DataFrame, key: Sequence[str], expected: str) -> None:
        """Collect each row of a table that agrees with an earlier one in ``key``.

        The first column of the key is said to be there again, for the others.
        """
        if each_once(*(table[name] for name in key)):
            return
        is_repeated = table.duplicated(list(key)).to_numpy()
        for row in is_repeated.nonzero()[0]:
            problem = f"{table[key[0]].iloc[row]} again"
            for name in key[1:]:
                problem += f" for {name} {table[name].iloc[row]}"
            self.report([row], key[0], problem, expected)


def cells(column: Any) -> Callable[[int], str]:
    """What is found in a row of a column, of pandas or Arrow, for `Explainer.report`."""

    def problem(row: int) -> str:
        value = column[row]
        return shown(value.as_py() if isinstance(value, pa.Scalar) else value)

    return problem


class Source(Explainer):
    """Columns as they stand in a file, each once, and the lines of its rows.

    ``text`` is that of a CSV file; without one, lines are rows, counted from 1.
    """

    def __init__(self, name: str, columns: pd.DataFrame, text: str | None = None) -> None:
        super().__init__(name, None if text is None else self._lines_of_records)
        self.columns, self.text = columns, text
        self._header_line = None if text is None else 1
        names = columns.columns
        for column in sorted(set(map(str, names[names.duplicated()]))):
            problem, expected = "the column twice", "each column once"
            self.problems.add(name, self._header_line, column, problem, expected)
        self.problems.refuse()

    def _lines_of_records(self) -> list[int]:
        width = len(self.columns.columns)
        lines = [line for line, fields in _records(self.text or "") if len(fields) == width]
        return lines[1:]  # behind the header

    def check_header(
        self, required: Sequence[str], optional: Sequence[str] = (), hint: str = ""
    ) -> None:
        """Refuse a file that lacks columns, and note those that are not read.

        ``hint`` is said behind what is wanted; with it, what is wrong is only collected.
        """
        names = list(map(str, self.columns.columns))
        missing = [name for name in required if name not in names]
        unread = [name for name in names if name not in (*required, *optional)]
        if missing:
            problem = f"no such column (there are {listed(names)})"
            expected = "the column" + hint
            self.problems.add(self.name, self._header_line, ", ".join(missing), problem, expected)
        elif unread:
            readable = listed((*required, *optional))
            warnings.warn(f"not read: column {listed(unread)}; known are {readable}", Note, 2)
        if not hint:
            self.problems.refuse()


# --- tables ---------------------------------------------------------------------------------------


def _records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Records of a CSV text with the line each begins on; blank lines are no records."""
    usual_limit = csv.field_size_limit(len(text) + 1)
    first_line = 1
    try:
        reader = csv.reader(io.StringIO(text, newline=""))
        for fields in reader:
            if fields:
                yield first_line, fields
            first_line = reader.line_num + 1
    finally:
        csv.field_size_limit(usual_limit)


def _refuse_other_separators(header: str, path: str | Path) -> None:
    """Refuse a header of one field that was meant as several, as some spreadsheets write it."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if separator in header:
            names = listed(header.split(separator))
            raise refused(path, f"{name} between the columns {names}", "commas between them", 1)


def _read_csv(path: str | Path, text: str | None = None) -> Source:
    if text is None:
        text = read_text(path)
    _, header = next(_records(text))
    if len(header) == 1:
        _refuse_other_separators(header[0], path)
    if len(header) > _MOST_COLUMNS:
        raise refused(path, f"{len(header)} columns", f"at most {_MOST_COLUMNS}", 1)
    # Arrow wants the end of a header.
    if "\n" not in text:
        text += "\n"
    content = text.encode()
    ragged_rows: list[Any] = []

    def skip(row: Any) -> Literal["skip"]:
        ragged_rows.append(row)
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            # One block, for a record may reach over many lines.
            pyarrow.csv.ReadOptions(use_threads=False, block_size=len(content) + 1),
            pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise refused(path, str(error).splitlines()[0], "a CSV file") from None
    # By place: a name may be there twice, which Source refuses.
    columns = {place: column.to_pandas() for place, column in enumerate(table.columns)}
    source = Source(str(path), pd.DataFrame(columns).set_axis(table.column_names, axis=1), text)
    if ragged_rows:
        expected = f"{len(header)}, as in the header"
        for line, fields in _records(text):
            if len(fields) != len(header):
                source.problems.add(path, line, None, f"{len(fields)} fields", expected)
    return source


def parquet_table(path: str | Path) -> Any:
    """A Parquet file as a table of Arrow."""
    from pyarrow import parquet  # costs 30 ms, and most files are CSV

    if not Path(path).is_file():
        raise refused(path, "Parquet in a pipe", "a file, which can be read from its end")
    try:
        metadata = parquet.read_metadata(path)
        n_rows, n_columns = metadata.num_rows, metadata.num_columns
        size = Path(path).stat().st_size
        # A few bytes may stand for a thousand million equal rows.
        most_rows = max(_SMALL // 64, _UNPACKED_RATIO * size)
        if n_rows > most_rows or n_columns > _MOST_COLUMNS:
            problem = f"{n_rows} rows of {n_columns} columns in {size} bytes"
            raise refused(path, problem, "fewer")
        return parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise refused(path, str(error).splitlines()[0], "a Parquet file") from None


def is_parquet(path: str | Path) -> bool:
    """Whether a file is a Parquet file, by its first bytes."""
    return head(path, 4) == b"PAR1"


def _read_json_lines(path: str | Path, text: str) -> Source:
    """JSON Lines as columns, by the keys of all lines."""
    rows, problems = [], Problems()
    for number, line in enumerate(text.rstrip().split("\n"), start=1):
        try:
            row = json_value(line)
        except ValueError as error:
            problems.add(path, number, None, str(error), "a JSON object")
            continue
        if isinstance(row, dict):
            rows.append(row)
        else:
            problems.add(path, number, None, shown(row), "a JSON object")
    problems.refuse()
    return Source(str(path), pd.DataFrame(rows))


def read_source(path: str | Path, text: str | None = None) -> Source:
    """A CSV, JSON Lines or Parquet file, by its first bytes.

    ``text`` is that of a file that has been read.
    """
    if text is None and is_parquet(path):
        source = Source(str(path), parquet_table(path).to_pandas(ignore_metadata=True))
    else:
        if text is None:
            text = read_text(path)
        if text.lstrip().startswith("["):
            expected = "a table: CSV with a header, JSON Lines or Parquet"
            raise refused(path, "a list of JSON", expected)
        is_json = text.lstrip().startswith("{")
        source = _read_json_lines(path, text) if is_json else _read_csv(path, text)
    if source.columns.empty and not source.problems:
        raise refused(path, "a header without rows", "at least one row")
    return source


def read_columns(path: str | Path, columns: Sequence[str]) -> pd.DataFrame:
    """A CSV file with exactly the named columns, put into their order, every field as text."""
    source = _read_csv(path)
    source.check_header(columns)
    return source.columns[list(columns)]
