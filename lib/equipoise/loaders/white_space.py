"""Lines of columns between white space, as runs, qrels and memberships have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from equipoise.arrays import Floats
from equipoise.files import BOM, Explainer, decoded
from equipoise.problems import refused

_BLANKS = [b"\t", b"\v", b"\f", b"\r", b"\x1c", b"\x1d", b"\x1e", b"\x1f"]
_TO_BLANK = bytes.maketrans(b"".join(_BLANKS), b" " * len(_BLANKS))
_WIDE_BLANKS = [
    character.encode()
    for character in "\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
]
_BLOCK_SIZE = 1 << 24  # bytes that Arrow parses at a time, which bounds its memory


def one_blank_between(content: bytes) -> bytes:
    """The content with one blank between columns, none at the ends of lines; lines stay lines."""
    while content.startswith(BOM):  # Arrow would take a second one off too
        content = content.removeprefix(BOM)
    if not content.isascii():
        for blank in _WIDE_BLANKS:
            content = content.replace(blank, b" ")
    if any(content.find(blank) >= 0 for blank in _BLANKS):
        content = content.translate(_TO_BLANK)
    content = content.strip(b" ")

    # Ordinary files have no two blanks or ends of lines side by side, and looking for that takes a
    # fourth of the time that replacing what is not there takes.
    is_blank = np.frombuffer(content, dtype=np.uint8) <= ord(" ")
    if not (is_blank[1:] & is_blank[:-1]).any():
        return content
    while b"  " in content:
        content = content.replace(b"  ", b" ")
    return content.replace(b" \n", b"\n").replace(b"\n ", b"\n")


def read_lines(
    content: bytes, columns: Sequence[str], path: object, expected: str, column: str | None = None
) -> tuple[Any, Explainer]:
    """An Arrow table of the texts in lines of so many columns, and what explains problems of it.

    Lines of another number of columns are left out and collected as problems; ``wanted`` says what
    they should have, ``column`` where the problem is.
    """
    if not content.isascii():
        decoded(content, str(path))  # says where bytes are no text
    lines = one_blank_between(content)
    if lines.isspace() or not lines:
        raise refused(path, "an empty file", "some content")
    explainer = Explainer(path, partial(_numbers_of_lines, lines, len(columns)))
    table, n_ragged = _arrow_table(lines, columns)
    if n_ragged:
        for number, line in enumerate(lines.split(b"\n"), start=1):
            width = line.count(b" ") + 1
            if line and width != len(columns):
                explainer.problems.add(path, number, column, f"{width} columns", expected)
    return table, explainer


def _numbers_of_lines(lines: bytes, n_columns: int) -> list[int]:
    """Numbers of the lines that have so many columns."""
    numbers = []
    for number, line in enumerate(lines.split(b"\n"), start=1):
        if line and line.count(b" ") + 1 == n_columns:
            numbers.append(number)
    return numbers


def _arrow_table(lines: bytes, columns: Sequence[str]) -> tuple[Any, int]:
    """The lines as a table of texts, and how many had another number of columns."""
    ragged_rows: list[Any] = []

    def skip(row: Any) -> Literal["skip"]:
        ragged_rows.append(row)
        return "skip"

    def read(block_size: int) -> Any:
        ragged_rows.clear()
        return pyarrow.csv.read_csv(
            pa.BufferReader(lines),
            pyarrow.csv.ReadOptions(use_threads=False, column_names=columns, block_size=block_size),
            pyarrow.csv.ParseOptions(delimiter=" ", quote_char=False, invalid_row_handler=skip),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False
            ),
        )

    try:
        table = read(_BLOCK_SIZE)
    except pa.ArrowInvalid:
        table = read(len(lines) + 1)  # a line was longer than a block
    return table, len(ragged_rows)


def parsed_texts(texts: Any, parse: Callable[[str], float]) -> Floats:
    """Numbers of an Arrow column, each different text parsed once; NaN where it is refused."""
    coded = pc.dictionary_encode(texts.combine_chunks())
    values = np.full(len(coded.dictionary), np.nan)
    for place, text in enumerate(coded.dictionary.to_pylist()):
        with suppress(ValueError):
            values[place] = parse(text)
    return values[coded.indices.to_numpy()]


def numbers_of(texts: Any, parse: Callable[[str], float]) -> Floats:
    """Numbers of an Arrow column; NaN, or an infinity, where it holds no number.

    Arrow reads decimal numbers as ``parse`` does; any other text is left to ``parse``.
    """
    try:
        return pc.cast(texts, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return parsed_texts(texts, parse)
