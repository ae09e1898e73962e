"""What is wrong with an input, said so that it can be mended: place, found and wanted."""

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
# An error message is short whatever the input is.
_LINES_OF_A_KIND = 5
_LETTERS_OF_A_LINE = 450
_BYTES = 1200  # of all lines but the last
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
    """Something about the input that its owner should know; a command says it once."""

    label = "note"


def plain(text: object) -> str:
    """Text that is only looked at: control characters and the like are escaped."""
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), str(text))


def shortened(text: str, most: int) -> str:
    """A text without its middle, where it is longer than a message may be."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]}...{text[-most // 4 :]}"


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
            unit = "row" if self.file.endswith(".parquet") else "line"
            place += f", {unit} {self.line}"
        if self.column is not None:
            place += f", column {self.column}"
        return plain(f"{place}: found {self.found}, wanted {self.wanted}").replace("\n", "\\n")


class InputError(ValueError):
    """Every problem of the input, in the order of the lines; the message has the first few.

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
        """A line for each of the first few problems of a kind, and how many more there are."""
        counts = Counter[tuple[str, str | None, str]]()
        lines: list[str] = []
        remaining = _BYTES
        for problem in self.problems:
            kind = (problem.file, problem.column, problem.wanted)
            counts[kind] += 1
            if counts[kind] <= _LINES_OF_A_KIND and remaining > 0:
                line = shortened(str(problem), _LETTERS_OF_A_LINE)
                lines.append(line)
                remaining -= len(line.encode())
        untold = len(self.problems) - len(lines)
        if untold:
            lines.append(f"... and {untold} more of {len(self.problems)}")
        return lines

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
        """Add a problem for each row with the key of an earlier one; it has a column ``line``."""
        repeats = table.loc[table.duplicated(list(key)), ["line", *key]]
        for line, name, *values in repeats.itertuples(index=False):
            complaint = f"{name} again"
            for key_column, value in zip(key[1:], values, strict=True):
                complaint += f" for {key_column} {value}"
            self.add(file, int(line), column, complaint, wanted)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep the problems of an `InputError` that is raised within, and go on."""
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
    problems = Problems()
    results: list[R] = []
    for call in calls:
        with problems.collecting():
            results.append(call())
    problems.refuse()
    return results


def brief(value: object) -> str:
    """A value as Python writes it, shortened on the way: it may be of millions of items."""
    return _BRIEF.repr(value.tolist() if hasattr(value, "tolist") else value)


def shown(value: object) -> str:
    """A value as an error message shows it: quoted, control characters escaped, shortened."""
    text = value if isinstance(value, str) else brief(value)
    quoted = repr(text[:60])  # a text may be of many megabytes
    if len(text) > 60 or len(quoted) > 60:
        return quoted[:57] + "...'"
    return quoted


def listed(names: Iterable[object], most: int = 12) -> str:
    """Names between commas: the first of them, and how many more there are."""
    texts = [str(name) for name in names]
    short = [text if len(text) <= 60 else f"{text[:57]}..." for text in texts[:most]]
    line = ", ".join(short)
    if len(texts) > most:
        line += f" and {len(texts) - most} more"
    return line


def need_columns(table: Any, columns: Iterable[str]) -> None:
    """Refuse a table that lacks a column, naming those it has."""
    missing_names = [name for name in columns if name not in table.columns]
    if missing_names:
        missing = ", ".join(name or "''" for name in missing_names)
        names = ", ".join(map(str, table.columns))
        raise ValueError(f"no column {missing}: columns {missing} wanted, found {names}")


def refuse_twice(table: Any, columns: list[str], what: str) -> None:
    """Refuse rows that agree in the columns; ``what``: such as "the qrels judge a document"."""
    from equipoise.arrays import each_once  # with pandas, which the help of a command does without

    if each_once(*(table[name] for name in columns)):
        return
    is_repeated = table.duplicated(columns)
    if is_repeated.any():
        row = table.loc[is_repeated, columns].iloc[0]
        cells = ", ".join(f"{name} {row[name]!r}" for name in columns)
        raise ValueError(f"{what} twice: {cells}")
