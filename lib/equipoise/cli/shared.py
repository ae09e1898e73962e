"""What commands share: files in and out, ``NAME=VALUE`` options, and an end with status 1."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

FILE = click.Path(path_type=Path)
FORCE = click.option("--force", is_flag=True, help="Write over a file even if it holds something else.")
CLUSTER = click.option("--cluster", metavar="ADDRESS", help="Dask scheduler to score on, such as tcp://127.0.0.1:8786.")


def takes_output(command: Callable[..., Any]) -> Callable[..., Any]:
    """Take a file to write a table to; an existing file of another kind is written over only by ``--force``."""
    told = "CSV or .parquet file to write.  [standard output]"
    return click.option("-o", "--output", type=FILE, help=told)(FORCE(command))


def write(tables: Mapping[Path | None, Any]) -> None:
    """Write every table or figure to its file, all or none, and the one without a file to the standard output."""
    from equipoise.problems import plain
    from equipoise.writing import write_csv, write_files

    write_files({path: table for path, table in tables.items() if path is not None})
    if None in tables:
        text = io.StringIO()
        write_csv(tables[None], text)
        sys.stdout.write(plain(text.getvalue()) if sys.stdout.isatty() else text.getvalue())


@contextmanager
def tells_what_was_seen(least: float) -> Iterator[None]:
    """Say on standard error what the measures within saw, and judge it."""
    from equipoise import coverage
    from equipoise.problems import plain

    with coverage.gathered() as seen:
        yield
    for line in coverage.summaries(seen):
        click.echo(f"seen: {plain(line)}", err=True)
    coverage.judge(seen, least)


def named(texts: Iterable[str], option: str) -> dict[str, str]:
    """Read the values of an option that is written ``NAME=VALUE``."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or name.strip() in found:
            raise click.BadParameter(f"{option} is written NAME=VALUE, each name once; found {text!r}")
        found[name.strip()] = value
    return found


def fail(faults: Iterable[str]) -> None:
    """Tell the faults and end with status 1, if there are any."""
    if lines := list(faults):
        click.echo("\n".join(lines), err=True)
        sys.exit(1)
