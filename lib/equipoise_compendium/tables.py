"""The tables that a compendium keeps: CSV with a header, every field as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from equipoise_compendium import project


def need_columns(table: pd.DataFrame, columns: Iterable[str], name: str = "") -> None:
    """Refuse a table that lacks a column, naming those it has."""
    missing = ", ".join(column or "''" for column in columns if column not in table.columns)
    if missing:
        place = f"{name}: " if name else ""
        names = ", ".join(map(str, table.columns))
        raise ValueError(f"{place}no column {missing}: columns {missing} wanted, found {names}")


def read_columns(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A CSV file with exactly the named columns, put into their order, every field as text."""
    name = _place(path)
    table = read_text_table(path)
    need_columns(table, columns, name)
    unread = [column for column in table.columns if column not in columns]
    if unread:
        raise ValueError(f"{name}: columns {', '.join(unread)} found, {', '.join(columns)} wanted")
    return table[list(columns)]


def _place(path: Path) -> str:
    """A file by its place in the compendium; one that lies elsewhere by its name."""
    if path.is_relative_to(project.root()):
        return path.relative_to(project.root()).as_posix()
    return path.name


def read_text_table(path: Path) -> pd.DataFrame:
    """A CSV file with whatever columns, every field as text; a row of another length is refused."""
    name = _place(path)
    try:
        # Without an index column a row that is too long is an error, not a shift.
        table = pd.read_csv(
            path, dtype=str, keep_default_na=False, index_col=False, encoding="utf-8-sig"
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{name} is no table in CSV and UTF-8: {error}") from None
    if table.isna().any(axis=None):
        line = int(table.isna().any(axis=1).to_numpy().argmax()) + 2
        raise ValueError(f"{name}, line {line}: fewer fields found than the header has columns")
    return table
