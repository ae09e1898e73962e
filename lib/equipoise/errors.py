"""Errors in the input: the place, what must be there, and what was found."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# Control characters, marks of direction and halves of surrogate pairs, which a terminal obeys.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 60


class Note(UserWarning):
    """A remark about the input; a command shows it once."""

    label = "note"


def plain(text: object) -> str:
    """Escape control characters and marks of direction in a text for people."""
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), str(text))


def excerpt(value: object) -> str:
    """A value as an error message shows it: quoted and shortened."""
    return _BRIEF.repr(value.tolist() if hasattr(value, "tolist") else value)


def listed(names: Iterable[object], most: int = 12) -> str:
    """Names between commas: the first of them, and how many more there are."""
    texts = [str(name) for name in names]
    line = ", ".join(text if len(text) <= 60 else f"{text[:57]}..." for text in texts[:most])
    return f"{line} and {len(texts) - most} more" if len(texts) > most else line


def need_distinct_groups(groups: Iterable[object], place: str = "") -> None:
    """Reject names of groups that differ in capitals only; they are one group, misspelt.

    ``place``: the file, as the error begins.
    """
    spellings: dict[str, set[str]] = {}
    for group in map(str, groups):
        spellings.setdefault(group.casefold(), set()).add(group)
    twins = [
        excerpt(name) for names in spellings.values() if len(names) > 1 for name in sorted(names)
    ]
    if twins:
        raise ValueError(f"{place}groups must differ in more than capitals, got {listed(twins)}")


@dataclass(frozen=True)
class Problem:
    """One fault of an input file; ``wanted`` completes *must be*, ``found`` completes *got*.

    If ``wanted`` has a *must* of its own, it is the sentence. ``line`` counts from 1. Without a
    line the whole file is meant, without a column the whole line.
    """

    file: str
    line: int | None
    column: str | None
    found: str
    wanted: str

    def __str__(self) -> str:
        place = self.file
        if self.line is not None:
            place += f", line {self.line}"
        if self.column is not None:
            place += f', column "{self.column}"'
        rule = self.wanted if "must " in self.wanted else f"must be {self.wanted}"
        got = f", got {self.found}" if self.found else ""
        return plain(f"{place}: {rule}{got}").replace("\n", "\\n")


class InputError(ValueError):
    """The input has faults; the message has the first of them, and how many more there are.

    Examples
    --------
    >>> raise InputError([Problem("a.csv", 3, "turn", "'x'", "a whole number")])
    Traceback (most recent call last):
    ...
    equipoise.errors.InputError: a.csv, line 3, column "turn": must be a whole number, got 'x'
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.file, problem.line or 0))
        n_more = len(self.problems) - 1
        more = f" (and {n_more} more)" if n_more else ""
        super().__init__(f"{self.problems[0]}{more}")

    def __reduce__(self) -> tuple[type[InputError], tuple[list[Problem]]]:
        return InputError, (self.problems,)  # so that it comes back from a worker


def input_error(
    file: object, wanted: str, found: str = "", line: int | None = None, column: str | None = None
) -> InputError:
    """The error of an input with one fault: it must be ``wanted``, and was ``found``."""
    return InputError([Problem(str(file), line, column, found, wanted)])


def need_columns(table: Any, columns: Iterable[str]) -> None:
    """Raise a ValueError, with the columns of the table, if one of these columns is missing."""
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise ValueError(
            f"column {listed(missing)} is missing; the columns are {listed(table.columns)}"
        )


def refuse_twice(table: Any, columns: list[str], what: str) -> None:
    """Raise a ValueError where two rows agree in the columns; ``what`` begins the sentence."""
    is_repeated = table.duplicated(columns)
    if is_repeated.any():
        row = table.loc[is_repeated, columns].iloc[0]
        cells = ", ".join(f"{name} {row[name]!r}" for name in columns)
        raise ValueError(f"{what} twice: {cells}")
