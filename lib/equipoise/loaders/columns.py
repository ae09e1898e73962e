"""Files of columns between white space: runs, judgements and memberships, read by Arrow.

Arrow reads a valid file with one blank between columns at once. Only when it fails, white space is
normalised and the file read again; when this fails too, a loop over the lines names the fault.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from equipoise.arrays import Integers, starts
from equipoise.errors import InputError, excerpt, input_error
from equipoise.readers import decoded, read_bytes

WORDS = pa.dictionary(pa.int32(), pa.string())
"""Texts of which a file has few different ones, such as topics."""
SKIPPED = pa.null()
"""A column that is not read."""
_BLOCK = 2**15  # rows that are compared at a time, in memory close to the processor


class ColumnFile:
    """A file of columns; ``skip`` is how many of its first lines are no rows."""

    def __init__(self, path: str | Path) -> None:
        self.path, self.skip = Path(path), 0
        self._content = None if _is_plain(self.path) else read_bytes(self.path)

    @property
    def content(self) -> bytes:
        """All bytes; those of a plain file are read again, as valid files need them only once."""
        return self.path.read_bytes() if self._content is None else self._content

    @property
    def head(self) -> bytes:
        """The first bytes."""
        if self._content is not None:
            return self._content[: 2**16]
        with self.path.open("rb") as file:
            return file.read(2**16)

    @property
    def first_line(self) -> str:
        """The first line that has text and is no description of a run; empty if none."""
        for line in self.head.decode("utf-8-sig", "replace").splitlines():
            if line.strip() and not line.strip().startswith("<SYSDESC>"):
                return line.strip()
        return ""

    def read(self, types: Mapping[str, pa.DataType], wanted: str) -> pa.Table:
        """The columns, each of its type; ``wanted`` names them in the error of another number."""
        source = str(self.path) if self._content is None else pa.BufferReader(self._content)
        try:
            table = _read(source, types, self.skip, 2**24)
            if _has_empty(table):  # a blank too many
                table = self._read_normalised(types, wanted)
        except pa.ArrowInvalid:
            table = self._read_normalised(types, wanted)
        if not table.num_rows:
            raise input_error(self.path, f"lines of {wanted}", "an empty file")
        return table.unify_dictionaries()

    def _read_normalised(self, types: Mapping[str, pa.DataType], wanted: str) -> pa.Table:
        lines = [" ".join(line.split()) for line in decoded(self.content, self.path).split("\n")]
        content = "\n".join(lines).encode()
        try:
            return _read(pa.BufferReader(content), types, self.skip, len(content) + 1)
        except pa.ArrowInvalid as error:
            for line_number, line in enumerate(lines[self.skip :], start=self.skip + 1):
                self._check_line(line.split(), line_number, types, wanted)
            found = str(error) if any(lines[self.skip :]) else "an empty file"
            raise input_error(self.path, f"lines of {wanted}", found) from None

    def _check_line(
        self, fields: list[str], line: int, types: Mapping[str, pa.DataType], wanted: str
    ) -> None:
        """Raise the error of a line that does not fit the types."""
        if fields and len(fields) != len(types):
            columns = f"{len(types)} columns, {wanted}"
            raise input_error(self.path, columns, str(len(fields)), line)
        for (name, kind), field in zip(types.items(), fields, strict=False):
            if pa.types.is_floating(kind) and not _is_number(field):
                raise input_error(self.path, "a finite number", excerpt(field), line, name)

    def error(self, row: int, column: str, wanted: str, found: Any) -> InputError:
        """The error of one row; its line is found by reading the file again."""
        lines = self.content.split(b"\n")
        numbers = [n for n, line in enumerate(lines, 1) if n > self.skip and line.strip()]
        return input_error(self.path, wanted, excerpt(found), numbers[row], column)

    def check_once(self, table: pa.Table, wanted: str) -> None:
        """Raise the error of a document that comes twice for a topic."""
        topics = codes(table["topic"])
        ends = starts(topics)
        # Topics that are together are compared in blocks, which takes less memory.
        if len(ends) == len(distinct_words(table["topic"])):
            blocks = np.unique(np.searchsorted(ends, np.arange(0, len(topics), _BLOCK)))
            ends = ends[blocks[blocks < len(ends)]]
        else:
            ends = ends[:1]
        for begin, end in zip(ends, np.append(ends[1:], len(topics)), strict=True):
            documents = table["document"].slice(begin, end - begin).combine_chunks()
            documents = documents.dictionary_encode()
            if len(documents.dictionary) == end - begin:
                continue  # no document comes twice, for whatever topic
            pairs = topics[begin:end].astype(np.int64) * len(documents.dictionary)
            pairs += documents.indices.to_numpy()
            in_order = np.sort(pairs)  # faster than a hash table of all pairs
            if (in_order[1:] == in_order[:-1]).any():
                row = int(begin + np.flatnonzero(pd.Index(pairs).duplicated())[0])
                raise self.error(row, "document", wanted, table["document"][row].as_py())


def joined_with_categories(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables below one another; categories stay categories, sorted."""
    for name, kind in tables[0].dtypes.items():
        if kind == "category":  # else pandas would join them as objects
            columns = [table[name] for table in tables]
            shared = pd.api.types.union_categoricals(columns, sort_categories=True).dtype
            tables = [table.astype({name: shared}) for table in tables]
    if len(tables) == 1:  # which may be large
        return tables[0].reset_index(drop=True)
    return pd.concat(tables, ignore_index=True)


def codes(column: pa.ChunkedArray) -> Integers:
    """Numbers of the words of a column; those of `distinct_words`."""
    numbers: Integers = column.combine_chunks().indices.to_numpy()
    return numbers


def distinct_words(column: pa.ChunkedArray) -> pa.Array:
    """The different words of a column."""
    return column.chunk(0).dictionary


def _is_plain(path: Path) -> bool:
    """Whether a file can be read again and is not packed."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) != b"\x1f\x8b"


def _read(source: Any, types: Mapping[str, pa.DataType], skip: int, block_size: int) -> pa.Table:
    columns = {name: kind for name, kind in types.items() if kind != SKIPPED}
    return pyarrow.csv.read_csv(
        source,
        pyarrow.csv.ReadOptions(
            use_threads=False, column_names=list(types), skip_rows=skip, block_size=block_size
        ),
        pyarrow.csv.ParseOptions(delimiter=" ", quote_char=False),
        pyarrow.csv.ConvertOptions(
            column_types=columns,
            include_columns=list(columns),
            strings_can_be_null=False,
            null_values=[],
        ),
    )


def _has_empty(table: pa.Table) -> bool:
    """Whether any text of a table is empty."""
    for column in table.columns:
        texts = column
        if column.type == WORDS:
            texts = pa.chunked_array([part.dictionary for part in column.chunks], pa.string())
        if texts.type == pa.string() and pc.any(pc.equal(texts, "")).as_py():
            return True
    return False


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
