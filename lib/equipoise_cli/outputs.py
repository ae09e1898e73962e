"""Checks of output paths: no input and no file of another kind is overwritten."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click


@dataclass(frozen=True)
class Kind:
    """A kind of output: its name, and a test whether a file is of this kind."""

    name: str
    is_kind: Callable[[Path], bool]


def columns_of(path: Path) -> set[str]:
    """Return the column names of a CSV or Parquet file; only the header is read."""
    with path.open("rb") as file:
        beginning = file.read(2**16)
    if beginning.startswith(b"PAR1"):
        from pyarrow import parquet

        return set(parquet.read_schema(path).names)
    header = beginning.decode("utf-8-sig", "replace").splitlines()[:1]
    return set(next(csv.reader(header), []))


def table(name: str, columns: Iterable[str]) -> Kind:
    """Return the kind of a table with at least these columns."""
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
    """Raise an error for outputs, named by their options, that would destroy a file.

    An output must not be an input, another output, or an existing file of another kind. ``force``
    allows a file of another kind to be overwritten, but never an input. None: the command has no
    such option.
    """
    read = {Path(source).resolve(): f"the input {source}" for source in inputs if source}
    for option, (path, kind) in outputs.items():
        if path is None:
            continue
        target = path.resolve()
        if target in read:
            raise click.UsageError(f"{option} {path}: must differ from {read[target]}")
        read[target] = f"the path of {option}"
        if kind is not FOLDER and not target.parent.is_dir():
            raise click.UsageError(f"{option} {path}: the folder {target.parent} must exist")
        if not target.exists():
            continue
        if not target.is_file() or kind is FOLDER:
            raise click.UsageError(
                f"{option} {path} already exists; choose another path for the {kind.name}"
            )
        # An empty file has nothing to lose.
        if target.stat().st_size and not force and not kind.is_kind(target):
            hint = "" if force is None else ", or add --force"
            raise click.UsageError(
                f"{option} {path} exists and is not a {kind.name}; choose another path{hint}"
            )
