"""What a command may write to: never what it reads, nor a file of another kind."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click


@dataclass(frozen=True)
class Kind:
    """What a kind of output is called, and whether a file is of that kind."""

    name: str
    is_kind: Callable[[Path], bool]


def columns_of(path: Path) -> set[str]:
    """Names of the columns of a CSV or Parquet file, of which no more than a header is read."""
    with path.open("rb") as file:
        beginning = file.read(2**16)
    if beginning.startswith(b"PAR1"):
        from pyarrow import parquet

        return set(parquet.read_schema(path).names)
    header = beginning.decode("utf-8-sig", "replace").splitlines()[:1]
    return set(next(csv.reader(header), []))


def table(name: str, columns: Iterable[str]) -> Kind:
    """A table that has these columns, and maybe others."""
    return Kind(name, lambda path: set(columns) <= columns_of(path))


SCORES = table("table of scores", ("measure", "value"))
CLUSTERS = table("table of user clusters", ("wc", "probability", "Experience"))
FACTORS = table("table of factors", ("part", "served", "mean", "expected"))
NUGGETS = table("nugget table", ("run", "topic", "turn", "start", "end", "level"))
DRAWING = Kind("figure", lambda path: path.suffix.lower() in (".svg", ".png", ".pdf"))
FOLDER = Kind("new folder", lambda _: False)


def refuse_outputs(
    outputs: Mapping[str, tuple[Path | None, Kind]],
    inputs: Sequence[Path | str | None],
    *,
    force: bool | None = False,
) -> None:
    """Raise an error for outputs, named by their options, that would lose a file.

    Such are what is an input too, or another output, and what is of another kind. ``force`` lets a
    file be of another kind; it lets no input be written over. None: the command has
    no such option.
    """
    read = {Path(source).resolve(): source for source in inputs if source}
    for option, (path, kind) in outputs.items():
        if path is None:
            continue
        target = path.resolve()
        if target in read:
            raise click.UsageError(f"{option} {path} must not be {read[target]}, which is read")
        read[target] = f"that of {option}"
        if kind is not FOLDER and not target.parent.is_dir():
            raise click.UsageError(f"{option} {path}: the folder {target.parent} must exist")
        if not target.exists():
            continue
        if not target.is_file() or kind is FOLDER:
            raise click.UsageError(f"{option} {path} must be a place for a {kind.name}")
        # An empty file has nothing to lose.
        if target.stat().st_size and not force and not kind.is_kind(target):
            hint = "" if force is None else ", or give --force"
            raise click.UsageError(
                f"{option} {path} must be a {kind.name} to be written over{hint}"
            )
