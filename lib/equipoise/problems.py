"""What is wrong with an input, said so that it can be mended: the file, the line, the column, found and wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

R = TypeVar("R")


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input file.

    ``line`` counts lines of a text file, or rows of a Parquet file, from 1; without one the file as a whole is meant.
    ``column`` is a column or key; without one the line as a whole is meant.
    """

    file: str
    line: int | None
    column: str | None
    found: str
    wanted: str

    def __str__(self) -> str:
        place = self.file
        if self.line is not None:
            place += f", {'row' if self.file.endswith('.parquet') else 'line'} {self.line}"
        if self.column is not None:
            place += f", column {self.column}"
        return f"{place}: found {self.found}, wanted {self.wanted}"


class InputError(ValueError):
    """Every problem found in the input, in the order of the lines.

    Examples
    --------
    >>> raise InputError([Problem("a.csv", None, None, "an empty file", "a header and rows")])
    Traceback (most recent call last):
    ...
    equipoise.problems.InputError: a.csv: found an empty file, wanted a header and rows
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.file, problem.line or 0))
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[InputError], tuple[list[Problem]]]:
        return InputError, (self.problems,)  # so that it comes back from a worker


class Problems(list[Problem]):
    """Collects problems over several readers, to report them together."""

    def add(self, file: object, line: int | None, column: str | None, found: str, wanted: str) -> None:
        """Add one problem."""
        self.append(Problem(str(file), line, column, found, wanted))

    def add_repeats(self, file: object, table: Any, key: Sequence[str], column: str, wanted: str) -> None:
        """Add one problem for each row that agrees with an earlier one in ``key``; column ``line`` says where it is."""
        for row in table.loc[table.duplicated(list(key)), ["line", *key]].itertuples(index=False):
            self.add(file, int(row[0]), column, f"{' for '.join(map(str, row[1:]))} again", wanted)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep the problems of an `InputError` that is raised within, and go on behind the block."""
        try:
            yield
        except InputError as error:
            self.extend(error.problems)

    def refuse(self) -> None:
        """Raise what has been collected, if anything."""
        if self:
            raise InputError(self)


def together(calls: Iterable[Callable[[], R]]) -> list[R]:
    """Results of the calls, or one `InputError` with the problems of them all."""
    problems, results = Problems(), list[R]()
    for call in calls:
        with problems.collecting():
            results.append(call())
    problems.refuse()
    return results


def shown(value: object) -> str:
    """A value as an error message shows it: quoted, control characters escaped, shortened."""
    quoted = repr(str(value))
    return quoted if len(quoted) <= 60 else quoted[:57] + "...'"


def need_columns(table: Any, columns: Iterable[str]) -> None:
    """Refuse a table that lacks a column, naming those it has."""
    missing = ", ".join(name for name in columns if name not in table.columns)
    if missing:
        there = ", ".join(map(str, table.columns))
        raise ValueError(f"no column {missing}: columns {missing} wanted, found {there}")


def refuse_twice(table: Any, columns: list[str], what: str) -> None:
    """Refuse a table in which rows agree in the columns; ``what`` names it: "the qrels judge a document"."""
    repeated = table.duplicated(columns)
    if repeated.any():
        first = table.loc[repeated, columns].iloc[0]
        raise ValueError(f"{what} twice: {', '.join(f'{name} {first[name]!r}' for name in columns)}")
