"""What a command may write to: never what it reads, nor a device, nor a file of another kind."""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from equipoise.problems import Problems


@dataclass(frozen=True)
class Kind:
    """What a kind of output is called, and what tells by its first bytes that a file holds it."""

    name: str
    is_kind: Callable[[Path], bool]


def columns_of(path: Path) -> set[str]:
    """Names of the columns of a CSV or Parquet file, of which no more than a header is read."""
    with path.open("rb") as file:
        beginning = file.read(2**16)  # a header of more columns is no table of ours
    if beginning.startswith(b"PAR1"):
        import pyarrow as pa
        from pyarrow import parquet

        try:
            return set(parquet.read_schema(path).names)
        except (pa.ArrowException, OSError):
            return set()
    header = beginning.decode("utf-8-sig", "replace").splitlines()[:1]
    return set(next(csv.reader(header), []))


def table(name: str, columns: Iterable[str]) -> Kind:
    """A table that has these columns, and maybe others."""
    return Kind(name, lambda path: set(columns) <= columns_of(path))


def _is_transcript(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2**10).lstrip(b"\xef\xbb\xbf \n").startswith(b"#####")


SCORES = table("table of scores", ("measure", "value"))
CLUSTERS = table("table of user clusters", ("wc", "probability", "Experience"))
FACTORS = table("table of factors", ("part", "served", "mean", "expected"))
NUGGETS = table("nugget table", ("run", "topic", "turn", "start", "end", "level"))
TRANSCRIPT = Kind("transcript", _is_transcript)
DRAWING = Kind("figure", lambda path: path.suffix.lower() in (".svg", ".png", ".pdf"))
ANY = Kind("file", lambda _: True)  # it is looked into by who writes it
FOLDER = Kind("new folder", lambda _: False)


def _leads_to(path: Path, target: Path) -> bool:
    """Whether two paths lead to one file, by whatever links; or the first into the second."""
    real_path, real_target = Path(os.path.realpath(path)), Path(os.path.realpath(target))
    is_folder = os.path.isdir(real_target)  # noqa: PTH112 - it never raises
    if real_path == real_target or (is_folder and real_path.is_relative_to(real_target)):
        return True
    # Hard links have paths of their own.
    with suppress(OSError):
        return real_path.samefile(real_target)
    return False


def _unfit_mode(mode: int, kind: Kind) -> str:
    """What is in a place that no file of a kind can be written to; empty where one can."""
    if stat.S_ISLNK(mode):
        return "a link that leads to itself"
    if stat.S_ISDIR(mode):
        return "a folder"
    if kind is FOLDER:
        return "a file"
    if not stat.S_ISREG(mode):
        return "a device or a pipe"
    if not mode & 0o222:
        # Its owner could still replace it, and a superuser write to it: it was meant to stay.
        return "a file that is protected from writing"
    return ""


def _unfit(path: Path, kind: Kind, force: bool) -> tuple[str, str] | None:
    """What is found where a file may not be written, and what is wanted; None where it may."""
    real_path, expected = Path(os.path.realpath(path)), f"a place for a {kind.name}"
    try:
        status = real_path.lstat()
    except FileNotFoundError:
        if real_path.parent.is_dir() or kind in (ANY, FOLDER):
            return None
        return "no folder to write into", str(real_path.parent)
    except OSError as error:
        return str(error.strerror), expected
    problem = _unfit_mode(status.st_mode, kind)
    if problem:
        return problem, expected
    # An empty file has nothing to lose.
    if not status.st_size or force:
        return None
    try:
        is_of_kind = kind.is_kind(real_path)
    except OSError as error:
        return str(error.strerror), expected
    if is_of_kind:
        return None
    return f"a file that is no {kind.name}", "another name, or --force to write over it"


def refuse_outputs(
    outputs: Mapping[str, tuple[Path | None, Kind]],
    inputs: Sequence[Path | str | None],
    *,
    force: bool = False,
) -> None:
    """Refuse outputs, named by their options, that would lose a file or cannot be written.

    Such are what is an input too, or another output, and a place that is unfit. ``force`` lets a
    file be of another kind; it lets no input be written over.
    """
    targets: dict[str, Path] = {}
    problems = Problems()
    for option, (path, kind) in outputs.items():
        if path is None:
            continue
        targets[option] = path
        for source in inputs:
            if source and _leads_to(path, Path(source)):
                problem = f"what {option} would write over {source}, which is read"
                problems.add(path, None, None, problem, "a file of its own")
        unfit = _unfit(path, kind, force)
        if unfit is not None:
            problems.add(path, None, None, *unfit)
    for (option, path), (other_option, other_path) in combinations(targets.items(), 2):
        if _leads_to(path, other_path):
            problem = f"both {option} and {other_option}"
            problems.add(path, None, None, problem, "a file for each")
    problems.refuse()
