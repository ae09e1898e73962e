"""What is wrong with an input, said so that it can be mended: the file, the line, the column, found and wanted."""

from __future__ import annotations

import errno
import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

R = TypeVar("R")

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_OF_A_KIND, _LONGEST, _ROOM = (
    5,
    450,
    1200,
)  # lines, letters of a line, bytes of all lines but the last
_BRIEF = reprlib.Repr()
_BRIEF.maxlevel, _BRIEF.maxstring, _BRIEF.maxother, _BRIEF.maxlong = 4, 80, 80, 40
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxdict = _BRIEF.maxset = 12
_REASONS = {
    errno.EACCES: "no permission",
    errno.EPERM: "no permission",
    errno.EDQUOT: "no space left",
    errno.ENOSPC: "no space left",
    errno.EISDIR: "a folder",
    errno.ELOOP: "links that lead in a circle",
    errno.ENAMETOOLONG: "a name that is too long",
    errno.ENOENT: "no such file or folder",
    errno.ENOTDIR: "a file where its path has a folder",
    errno.EROFS: "a file system that is read-only",
}


class Note(UserWarning):
    """Something about the input that its owner should know; a command says it once, behind its label."""

    label = "note"


def plain(text: object) -> str:
    """Text that is only looked at: control characters, overrides of direction and half surrogates are escaped."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def shortened(text: str, most: int) -> str:
    """A text without its middle, where it is longer than a message may be."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]}...{text[-most // 4 :]}"


def reason(error: OSError) -> str:
    """What the system found, in words that are the same on every platform."""
    return _REASONS.get(error.errno or 0) or (error.strerror or "an error of the system").lower()


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input file.

    ``line`` counts lines of a text file, or rows of a Parquet file, from 1; without one the file as
    a whole is meant. ``column`` is a column or key; without one the line as a whole is meant.
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
        return plain(f"{place}: found {self.found}, wanted {self.wanted}").replace("\n", "\\n")


class InputError(ValueError):
    """Every problem found in the input, in the order of the lines; the message has the first few of each kind.

    Examples
    --------
    >>> raise InputError([Problem("a.csv", None, None, "an empty file", "a header and rows")])
    Traceback (most recent call last):
    ...
    equipoise.problems.InputError: a.csv: found an empty file, wanted a header and rows
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.file, problem.line or 0))
        super().__init__("\n".join(self.told()))

    def told(self) -> list[str]:
        """A line for each of the first few problems of a kind, and how many more there are; never a long text."""
        kinds, lines, room = Counter[tuple[str, str | None, str]](), list[str](), _ROOM
        for problem in self.problems:
            kind = problem.file, problem.column, problem.wanted
            kinds[kind] += 1
            if kinds[kind] <= _OF_A_KIND and room > 0:
                lines.append(shortened(str(problem), _LONGEST))
                room -= len(lines[-1].encode())
        more = len(self.problems) - len(lines)
        return [*lines, f"... and {more} more of {len(self.problems)}"] if more else lines

    def __reduce__(self) -> tuple[type[InputError], tuple[list[Problem]]]:
        return InputError, (self.problems,)  # so that it comes back from a worker


def refused(
    file: object, found: str, wanted: str, line: int | None = None, column: str | None = None
) -> InputError:
    """The error of an input with one problem."""
    return InputError([Problem(str(file), line, column, found, wanted)])


class Problems(list[Problem]):
    """Collects problems over several readers, to report them together."""

    def add(
        self, file: object, line: int | None, column: str | None, found: str, wanted: str
    ) -> None:
        """Add one problem."""
        self.append(Problem(str(file), line, column, found, wanted))

    def add_repeats(
        self, file: object, table: Any, key: Sequence[str], column: str, wanted: str
    ) -> None:
        """Add one problem for each row that agrees with an earlier one in ``key``; column ``line`` says where it is."""
        for line, what, *within in table.loc[
            table.duplicated(list(key)), ["line", *key]
        ].itertuples(index=False):
            place = "".join(
                f" for {name} {value}" for name, value in zip(key[1:], within, strict=True)
            )
            self.add(file, int(line), column, f"{what} again{place}", wanted)

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


def brief(value: object) -> str:
    """A value as one would write it in Python, shortened before it is made: lists in lists may stand for millions."""
    return _BRIEF.repr(value.tolist() if hasattr(value, "tolist") else value)


def shown(value: object) -> str:
    """A value as an error message shows it: quoted, control characters escaped, shortened."""
    quoted = repr(value[:60] if isinstance(value, str) else brief(value))
    whole = len(quoted) <= 60 and not (isinstance(value, str) and len(value) > 60)
    return quoted if whole else quoted[:57] + "...'"


def listed(names: Iterable[object], most: int = 12) -> str:
    """Names between commas: the first of them, and how many more there are."""
    every = list(map(str, names))
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(name if len(name) <= 60 else f"{name[:57]}..." for name in every[:most]) + more


def need_columns(table: Any, columns: Iterable[str]) -> None:
    """Refuse a table that lacks a column, naming those it has."""
    missing = ", ".join(name for name in columns if name not in table.columns)
    if missing:
        there = ", ".join(map(str, table.columns))
        raise ValueError(f"no column {missing}: columns {missing} wanted, found {there}")


def refuse_twice(table: Any, columns: list[str], what: str) -> None:
    """Refuse a table in which rows agree in the columns; ``what`` names it: "the qrels judge a document"."""
    from equipoise.arrays import each_once  # with pandas, which the help of a command does without

    if each_once(*(table[name] for name in columns)):
        return
    repeated = table.duplicated(columns)
    if repeated.any():
        first = table.loc[repeated, columns].iloc[0]
        raise ValueError(
            f"{what} twice: {', '.join(f'{name} {first[name]!r}' for name in columns)}"
        )
