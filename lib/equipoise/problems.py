"""Names that have moved to `equipoise.errors`, and what is removed when nothing uses it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from equipoise import errors
from equipoise.errors import (
    InputError,
    Note,
    Problem,
    input_error,
    listed,
    need_columns,
    plain,
    refuse_twice,
    shown,
)

__all__ = [
    "InputError",
    "Note",
    "Problem",
    "Problems",
    "brief",
    "listed",
    "need_columns",
    "plain",
    "reason",
    "refuse_twice",
    "refused",
    "shortened",
    "shown",
    "together",
]

R = TypeVar("R")
brief = shown
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


def shortened(text: str, most: int) -> str:
    """A text without its middle, where it is longer than a message may be."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]}...{text[-most // 4 :]}"


def reason(error: OSError) -> str:
    """What the system found."""
    return _REASONS.get(error.errno or 0) or (error.strerror or "an error of the system").lower()


def refused(
    file: object, found: str, wanted: str, line: int | None = None, column: str | None = None
) -> InputError:
    """The error of an input with one problem."""
    return input_error(file, wanted, found, line, column)


class Problems(errors.Problems):
    """Collects problems over several readers, to report them together."""

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
        """Keep the problems of an `InputError` that is raised within."""
        try:
            yield
        except InputError as error:
            self.extend(error.problems)


def together(calls: Iterable[Callable[[], R]]) -> list[R]:
    """Results of the calls, or one `InputError` with the problems of them all."""
    problems = Problems()
    results: list[R] = []
    for call in calls:
        with problems.collecting():
            results.append(call())
    problems.refuse()
    return results
