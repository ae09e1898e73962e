"""Checks of output paths: no input, and only a file that a command wrote, is overwritten."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from equipoise_cli.shared import TARGET
from equipoise_compendium.formatting import CSV_DIGITS, PARQUET_MARK


@dataclass(frozen=True)
class Kind:
    """A kind of output: its name, and a test whether a command wrote a file of this kind."""

    name: str
    is_kind: Callable[[Path], bool]


_NUMBERS = {"value", "mean", "difference", "expected", "probability"}


def _header(path: Path) -> str:
    """Return the column names of a table, between commas; empty where others wrote the table."""
    with path.open("rb") as file:
        beginning = file.read(2**16)
    if beginning.startswith(b"PAR1"):
        from pyarrow import parquet

        schema = parquet.read_schema(path)
        attributes = (schema.pandas_metadata or {}).get("attributes", {})
        return ",".join(schema.names) if PARQUET_MARK in attributes else ""
    text = beginning.decode("utf-8-sig", "replace").rpartition("\n")[0]
    header, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    for row in rows:
        for name, cell in zip(header, row, strict=False):
            if name in _NUMBERS and cell and not _is_written(cell):
                return ""
    return "" if "\r\n" in text else ",".join(header)


def _is_written(number: str) -> bool:
    """Return whether a number has the digits with which `write_csv` writes it."""
    try:
        return CSV_DIGITS % float(number) == number
    except ValueError:
        return False


def table(name: str, header: str) -> Kind:
    """Return the kind of a table with a header that matches a regular expression as a whole."""
    return Kind(name, lambda path: bool(re.fullmatch(header, _header(path))))


def _is_drawing(path: Path) -> bool:
    """Return whether `equipoise_compendium.plots.rendered` drew a figure."""
    content = path.read_bytes()
    marks = (b'<svg role="img" aria-label=', b"Software\0Equipoise", b"/Creator (Equipoise)")
    return any(mark in content for mark in marks)


SCORES = table(
    "table of scores",
    "run,(.*,)?(attribute|against),(group,)?measure,value"
    "(,(low|high|units|share|tipping_low|tipping_high|seen|t|p_t|p_permutation|count|left_out"
    "|read))*",
)
CLUSTERS = table(
    "table of user clusters", "run,topic,turn,wc,probability,GWCrel,WCnonrel,GNP,.*Experience"
)
FACTORS = table("table of factors", "run,topic,part,served,mean,expected")
UNMATCHED = table("nugget table", "annotator,run,topic,turn,start,end,level,entity")
NUGGETS = Kind("new nugget table", lambda _: False)
"""Without a mark: people write such tables by hand."""
DRAWING = Kind("figure of equipoise", _is_drawing)
FOLDER = Kind("new folder", lambda _: False)


def _identity(path: Path | str) -> object:
    """Return what names of one file have in common: links, and standard input."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def _named(value: Any) -> Iterator[str]:
    """Yield the files and folders that a value of an option names, also as ``NAME=FILE``."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _named(item)
    elif isinstance(value, (str, Path)):
        texts = (str(value), str(value).partition("=")[2])
        # A text of any length, of which Path would raise an error.
        yield from (text for text in texts if os.path.exists(text))  # noqa: PTH110


def _inputs(context: click.Context) -> dict[object, str]:
    """Return all files that a command may read, and the folders that they are in, by identity."""
    outputs = {parameter.name for parameter in context.command.params if parameter.type is TARGET}
    inputs: dict[object, str] = {}
    for name, value in context.params.items():
        for source in [] if name in outputs else _named(value):
            inputs[_identity(source)] = f"the input {source}"
            for file in Path(source).rglob("*") if Path(source).is_dir() else ():
                inputs.setdefault(_identity(file), f"a file in the input {source}")
    return inputs


def refuse_outputs(kinds: Mapping[str, Kind]) -> None:
    """Raise an error for an output of the running command that would destroy a file.

    ``kinds``: by parameter. An output must not be an input or in the folder of inputs, nor another
    output, nor an existing file that no command wrote. ``--force`` allows the last.
    """
    context = click.get_current_context()
    force = context.meta.get("--force")  # None if the command has no such option
    read = _inputs(context)
    for parameter in context.command.params:
        path = context.params.get(parameter.name or "")
        if path is None or parameter.name not in kinds:
            continue
        option, kind = parameter.opts[0], kinds[parameter.name]
        target = Path(os.path.realpath(path))
        for place in (target, *target.parents):
            if _identity(place) in read:
                rule = "differ from" if place == target else "be outside of"
                raise click.UsageError(f"{option} {path}: must {rule} {read[_identity(place)]}")
        read[_identity(target)] = f"the path of {option}"
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
