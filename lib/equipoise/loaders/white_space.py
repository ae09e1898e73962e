"""Lines of columns between white space, as runs, qrels and memberships have them: read by Arrow, or word by word.

`quick_columns` reads what is in order, at the speed of Arrow. `text_lines` and `text_table` read
anything, and know the line of whatever is wrong; they are many times slower and need many times the
memory.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from equipoise.arrays import Floats, Integers, each_once
from equipoise.files import BOM, decoded
from equipoise.problems import Problems, refused, shown

_BLANKS = b"\t\v\f\r\x1c\x1d\x1e\x1f"
_ONE_BLANK = bytes.maketrans(_BLANKS, b" " * len(_BLANKS))
_WIDE_BLANKS = tuple(
    map(
        str.encode,
        "\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))),
    )
)
"""White space beyond ASCII, which Arrow's reader of CSV does not part columns at."""


def one_blank(content: bytes) -> bytes | None:
    """The content with a blank for each other white space but ends of lines; None where that would take a decoder."""
    content = content.removeprefix(BOM)
    if content.startswith(BOM) or not (
        content.isascii() or not any(wide in content for wide in _WIDE_BLANKS)
    ):
        return None
    if any(content.find(blank) >= 0 for blank in _BLANKS):
        content = content.translate(_ONE_BLANK)
    return content.lstrip() if content[:1].isspace() else content


def first_line(content: bytes) -> bytes:
    """The first line."""
    return io.BytesIO(content).readline()


def _split(content: bytes, names: Sequence[str], skipped: int) -> Any:
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, column_names=names, skip_rows=skipped, block_size=1 << 24
            ),
            parse_options=pyarrow.csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    sizes = [pc.min(pc.binary_length(column)).as_py() for column in table.columns]
    return table if all(sizes) else None


def quick_columns(content: bytes, names: Sequence[str], skipped: int = 0) -> Any:
    """An Arrow table of texts from lines of exactly the named columns, of `one_blank`; None where there are others.

    Lines may have several blanks between columns, or some at their ends; ``skipped`` of the first
    are left out.
    """
    table = _split(content, names, skipped)
    if table is None and (
        b"  " in content or b" \n" in content or b"\n " in content or content.endswith(b" ")
    ):
        while b"  " in content:
            content = content.replace(b"  ", b" ")
        table = _split(
            content.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" "), names, skipped
        )
    return table


def quick_numbers(texts: Any) -> Floats | None:
    """Finite numbers from an Arrow column of texts; None where one is none, or written in an unusual way."""
    try:
        numbers: Floats = pc.cast(texts, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return numbers if np.isfinite(numbers).all() else None


def quick_frame(table: Any, columns: Sequence[str], **others: Any) -> pd.DataFrame | None:
    """Columns of an Arrow table, ids each once, and others behind them; None where two rows have the same ids."""
    frame = table.select(list(columns)).to_pandas().astype("str")
    return frame.assign(**others) if each_once(*(frame[name] for name in columns)) else None


def text_lines(content: bytes, path: object) -> tuple[Integers, Any]:
    """Numbers of the lines that are not blank, and an Arrow list of columns for each; a file of none is refused."""
    text = decoded(content, str(path))
    if not text.strip():
        raise refused(str(path), "an empty file", "some content")
    lines = pc.utf8_trim_whitespace(pa.array(text.split("\n"), pa.large_string()))
    numbers = np.flatnonzero(pc.not_equal(lines, ""))
    return numbers + 1, pc.utf8_split_whitespace(lines.take(numbers))


def text_table(
    lines: tuple[Integers, Any],
    names: Sequence[str],
    wanted: str,
    file: object,
    problems: Problems,
    column: str | None = None,
) -> pd.DataFrame:
    """Lines as a table of texts with their numbers in the column ``line``; collects those of another length."""
    numbers, fields = lines
    widths = pc.list_value_length(fields).to_numpy()
    good = widths == len(names)
    for number, width in zip(numbers[~good], widths[~good], strict=True):
        problems.add(file, int(number), column, f"{width} columns", wanted)
    fields = fields.filter(pa.array(good))
    texts = {name: pc.list_element(fields, index).to_pandas() for index, name in enumerate(names)}
    return pd.DataFrame(texts).astype("str").assign(line=numbers[good])


def note_values(
    rows: pd.DataFrame, column: str, wanted: str, file: object, problems: Problems
) -> None:
    """Collect lines whose value in a column is not what is wanted."""
    for line, value in rows[["line", column]].itertuples(index=False):
        problems.add(file, int(line), column, shown(value), wanted)
