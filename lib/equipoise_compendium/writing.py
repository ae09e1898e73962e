"""Complete files: written to a temporary name, then moved into place."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
import psutil

from equipoise_compendium import project
from equipoise_compendium.formatting import CSV_DIGITS, PARQUET_MARK, reason, rounded

_FORMULA = re.compile(r"\s*([=@]\S|[+-]\s*[^\W\d]|[+-].*(\w\(|[|!]))", re.DOTALL)
_ROWS = 2**18  # that are written at once


def rounded_table(table: pd.DataFrame) -> pd.DataFrame:
    """Round the floats of a table; the scale of a column is its largest number, at least 1."""
    tidy = table.copy()
    for place in range(table.shape[1]):
        column = table.iloc[:, place]
        if not (pd.api.types.is_float_dtype(column) or pd.api.types.is_object_dtype(column)):
            continue
        floats = [abs(cell) for cell in column if isinstance(cell, float) and math.isfinite(cell)]
        scale = max([1.0, *floats])
        cells = [rounded(cell, scale) if isinstance(cell, float) else cell for cell in column]
        tidy.isetitem(place, pd.Series(cells, column.index, column.dtype))
    return tidy


def harmless(text: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    return f"'{text}" if isinstance(text, str) and _FORMULA.match(text) else text


def _written(cell: Any, for_spreadsheets: bool) -> Any:
    """Return a cell of a CSV: floats with 12 digits, and nothing for a missing value."""
    if isinstance(cell, (float, np.floating)):
        # The sign of a zero is arbitrary, because that of a sum of zeros is.
        return "" if math.isnan(cell) else CSV_DIGITS % (cell + 0.0)
    if pd.isna(cell):
        return ""
    return harmless(cell) if for_spreadsheets else cell


def _cells(column: pd.Series, for_spreadsheets: bool) -> Any:
    """Return the cells of a column; each of its distinct values is written once."""
    if pd.api.types.is_object_dtype(column):  # of several types, in which 1 equals 1.0 and True
        return [_written(cell, for_spreadsheets) for cell in column]
    codes, distinct = pd.factorize(column)
    cells = [_written(cell, for_spreadsheets) for cell in distinct]
    return np.array([*cells, ""], dtype=object)[codes]  # the code of a missing value is -1


def write_csv(table: pd.DataFrame, path: Path | TextIO, *, for_spreadsheets: bool = False) -> None:
    """Write a table as CSV with 12 significant digits, the same bytes on every machine.

    ``for_spreadsheets`` applies `harmless` to text, for a table that people read, not programs.
    """
    with ExitStack() as stack:
        if isinstance(path, Path):
            path = stack.enter_context(path.open("w", encoding="utf-8", newline=""))
        writer = csv.writer(path, lineterminator="\n")
        writer.writerow([_written(name, for_spreadsheets) for name in table.columns])
        for begin in range(0, len(table), _ROWS):
            rows = table.iloc[begin : begin + _ROWS]
            cells = [_cells(column, for_spreadsheets) for _, column in rows.items()]
            writer.writerows(zip(*cells, strict=True))


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Yield a temporary path next to a target; remove the path when the context ends.

    What processes that were killed have left next to the target is removed, too.
    """
    name = f".{target.name[:40]}-{secrets.token_hex(4)}-{os.getpid()}.equipoise-part"
    path = target.with_name(name)
    try:
        yield path
    finally:
        remove_parts([path])
        remove_parts(left_parts(target.parent))


def left_parts(folder: Path, pattern: str = "") -> Iterator[Path]:
    """Yield the temporary files that processes which were killed have left in a folder."""
    for part in folder.glob(f"{pattern}.*.equipoise-part"):
        process = part.stem.rpartition("-")[2]
        if not process.isdecimal() or not psutil.pid_exists(int(process)):
            yield part


def remove_parts(parts: Iterable[Path]) -> None:
    """Remove temporary files and folders."""
    for part in parts:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """Yield a folder to fill; when the context ends, move it to ``path``.

    If ``path`` is an empty folder, it receives the content.
    """
    target = Path(path).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{path}: must be a new or an empty folder")
    staged = target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with staging(target) as staged:
            staged.mkdir()
            yield staged
            if target.exists():
                for entry in staged.iterdir():
                    entry.rename(target / entry.name)
            else:
                staged.rename(target)
    except OSError as error:
        # An error of another file, or of a closed pipe, does not concern this folder.
        if not Path(error.filename or staged).is_relative_to(target.parent):
            raise
        message = f"cannot write {path} ({reason(error)}); nothing was written"
        raise ValueError(message) from None


def _write(path: Path, content: pd.DataFrame | str | bytes, *, parquet: bool) -> None:
    with path.open("wb") as file:
        if isinstance(content, str):
            file.write(content.encode())
        elif isinstance(content, bytes):
            file.write(content)
        elif parquet:
            marked = content.copy(deep=False)
            marked.attrs = {PARQUET_MARK: True}  # pandas keeps it in the metadata
            marked.to_parquet(file, index=False)
        else:
            text = io.TextIOWrapper(file, "utf-8", newline="")
            write_csv(content, text)
            text.flush()
        file.flush()
        os.fsync(file.fileno())


def write_files(
    contents: Mapping[Path, pd.DataFrame | str | bytes], *, within: Path | None = None
) -> None:
    """Write text files, and tables as CSV or Parquet by the ending of the name.

    All files are written under temporary names before the first is moved, so that a full disk
    leaves every file unchanged. A link keeps its target, and a file keeps its mode. ``within``: a
    folder out of which no path and no link may lead, and in which missing folders are made.
    """
    path = Path()
    try:
        with ExitStack() as stack:
            moves = []
            for path, content in contents.items():
                target = Path(os.path.realpath(path))
                if within is not None:
                    project.inside(within, str(path))
                    target.parent.mkdir(parents=True, exist_ok=True)
                if target.is_dir():
                    raise ValueError(f"cannot write {path}, which is a folder; nothing was written")
                staged = stack.enter_context(staging(target))
                is_parquet = path.suffix.lower() == ".parquet"
                _write(staged, content, parquet=is_parquet)
                if target.exists():
                    staged.chmod(target.stat().st_mode & 0o7777)
                moves.append((staged, target))
            for staged, target in moves:
                staged.replace(target)
    except OSError as error:
        message = f"cannot write {path} ({reason(error)}); nothing was written"
        raise ValueError(message) from None
