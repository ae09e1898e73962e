"""What a command may write to: never what it reads, no device, no folder, and no file of another kind unless forced."""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from equipoise.problems import InputError, Problem


@dataclass(frozen=True)
class Kind:
    """What a kind of output is called, and what tells by its first bytes that a file holds it."""

    name: str
    known: Callable[[Path], bool]


def _columns(path: Path) -> set[str]:
    """Names of the columns of a CSV or Parquet file, by what it holds, of which no more than a header is read."""
    with path.open("rb") as file:
        start = file.read(2**16)
    if start.startswith(b"PAR1"):
        import pyarrow as pa
        from pyarrow import parquet

        try:
            return set(parquet.read_schema(path).names)
        except (pa.ArrowException, OSError):
            return set()
    header = start.decode("utf-8-sig", "replace").splitlines()[:1]
    return set(next(csv.reader(header), []))


def table(name: str, columns: Iterable[str]) -> Kind:
    """A table that has these columns, and maybe others."""
    return Kind(name, lambda path: set(columns) <= _columns(path))


def _is_transcript(path: Path) -> bool:
    from equipoise.loaders.transcripts import is_transcript

    with path.open("rb") as file:
        return is_transcript(file.read(2**16))


SCORES = table("table of scores", ("measure", "value"))
CLUSTERS = table("table of user clusters", ("wc", "probability", "Experience"))
FACTORS = table("table of factors", ("part", "served", "mean", "expected"))
NUGGETS = table("nugget table", ("run", "topic", "turn", "start", "end", "level"))
TRANSCRIPT = Kind("transcript", _is_transcript)
DRAWING = Kind("figure", lambda path: path.suffix.lower() in (".svg", ".png", ".pdf"))
ANY = Kind("file", lambda _: True)  # it is looked into by who writes it
FOLDER = Kind("new folder", lambda _: False)


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, by whatever links; or the first into the second, a folder."""
    real, place = Path(os.path.realpath(one)), Path(os.path.realpath(other))
    if real == place or (os.path.isdir(place) and real.is_relative_to(place)):  # noqa: PTH112 - it never raises
        return True
    with suppress(OSError):
        return real.samefile(place)
    return False


def _unfit(path: Path, kind: Kind, force: bool) -> tuple[str, str] | None:
    """What is found where a file is to be written, if it may not be, and what is wanted."""
    real, wanted = Path(os.path.realpath(path)), f"a place for a {kind.name}"
    try:
        found = real.lstat()
        empty = not found.st_size
        other = stat.S_ISREG(found.st_mode) and not (empty or force or kind.known(real))
    except FileNotFoundError:
        return (
            None
            if real.parent.is_dir() or kind in (ANY, FOLDER)
            else ("no folder to write into", str(real.parent))
        )
    except OSError as error:
        return str(error.strerror), wanted
    if stat.S_ISLNK(found.st_mode):
        return "a link that leads to itself", wanted
    if stat.S_ISDIR(found.st_mode) or kind is FOLDER:
        return "a folder" if stat.S_ISDIR(found.st_mode) else "a file", wanted
    if not stat.S_ISREG(found.st_mode):
        return "a device or a pipe", wanted
    if not found.st_mode & 0o222:
        return "a file that is protected from writing", wanted
    return (
        (f"a file that is no {kind.name}", "another name, or --force to write over it")
        if other
        else None
    )


def refuse_outputs(
    outputs: Mapping[str, tuple[Path | None, Kind]],
    inputs: Sequence[Path | str | None],
    *,
    force: bool = False,
) -> None:
    """Refuse what would lose a file: an output, named by its option, that an input or another output is too, or unfit.

    ``force`` lets a file be of another kind; it lets no input be written over.
    """
    given = {option: (path, kind) for option, (path, kind) in outputs.items() if path is not None}
    problems = []
    for option, (path, kind) in given.items():
        for read in inputs:
            if read and _same(path, Path(read)):
                found = f"what {option} would write over {read}, which is read"
                problems.append(Problem(str(path), None, None, found, "a file of its own"))
        if unfit := _unfit(path, kind, force):
            problems.append(Problem(str(path), None, None, *unfit))
    for (option, (path, _)), (other, (second, _)) in combinations(given.items(), 2):
        if _same(path, second):
            problems.append(
                Problem(str(path), None, None, f"both {option} and {other}", "a file for each")
            )
    if problems:
        raise InputError(problems)
