"""What all commands that score share: options, outputs, coverage, intervals, verdicts, tasks.

A command reads its files to tidy tables and scores them; `scoring` does the rest.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from equipoise.errors import plain
from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import CommandGroup, Declared, DeclaredCommand
from equipoise_cli.outputs import CLUSTERS, DRAWING, FACTORS, SCORES, refuse_outputs
from equipoise_cli.shared import FILE, samples, show_seen, write
from equipoise_cli.tables import check_figure

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

INTERVALS = click.option(
    "--intervals",
    is_flag=True,
    help="Add means over topics with their intervals: of 10 topics or more.",
)
MEANS = Declared("equipoise_cli.mean_intervals.with_mean_intervals", needs="intervals")
ORDER = Declared("equipoise.loaders.trec.read_run", only=("order",))
QRELS = click.option(
    "--qrels", required=True, type=FILE, help="Judgements, a TREC, NTCIR or BEIR file."
)
CLUSTER = click.option(
    "--cluster", metavar="ADDRESS", help="Dask scheduler to score on, such as tcp://127.0.0.1:8786."
)
_FURTHER_OUTPUTS = {"clusters": CLUSTERS, "factors": FACTORS, "figure": DRAWING}
"""Options of outputs besides the scores, and what each may overwrite."""


@click.group(cls=CommandGroup)
def score() -> None:
    """Score conversations, rankings and answers of your own.

    The scores are a tidy CSV, with one row per measure and value.
    """


class Scored(NamedTuple):
    """What a command has scored: the table of scores, further outputs by path, and its verdicts."""

    scores: Any
    outputs: Mapping[Path | None, Any] = {}
    verdicts: Sequence[str] = ()


def scoring(
    name: str,
    options: Sequence[Decorator],
    *,
    inputs: Sequence[str],
    declared: Sequence[Declared],
    formats: Sequence[str],
) -> Callable[[Callable[..., Scored]], click.Command]:
    """Make a command of `score` from a function that reads files and scores them.

    ``inputs`` are names of parameters with files that no output may overwrite; ``formats`` are
    names of samples that end the help.
    """

    def as_command(function: Callable[..., Scored]) -> click.Command:
        @functools.wraps(function)
        def command(force: bool, output: Path | None, **values: Any) -> Any:
            check_figure(values.get("figure"))  # before anything is read
            outputs = {"-o": (output, SCORES)}
            for option, kind in _FURTHER_OUTPUTS.items():
                outputs[f"--{option}"] = (values.get(option), kind)
            if "more_runs" in values:
                values["runs"] = (*values["runs"], *values.pop("more_runs"))
            refuse_outputs(outputs, list(_paths(values[key] for key in inputs)), force=force)
            intervals = values.pop("intervals", False)
            if MEANS in declared:  # no measure has these options
                ends = {key: values.pop(key) for key in ("level", "resamples", "seed")}
            scores, files, verdicts = function(**values)
            if intervals:
                from equipoise_cli.mean_intervals import with_mean_intervals

                scores = with_mean_intervals(scores, **ends)
            write({output: scores, **files})
            # Last, where a reader of the terminal looks first.
            for sentence in verdicts:
                click.echo(plain(sentence), err=True)
            return scores

        judged: Any = fails_on_conditions(command)
        for option in reversed(options):
            judged = option(judged)
        settings = {"cls": DeclaredCommand, "declared": declared, "epilog": samples(*formats)}
        return score.command(name, **settings)(judged)

    return as_command


def _paths(values: Iterable[Any]) -> Iterator[str | Path]:
    """Paths of files, of NAME=FILE, and of tuples of these."""
    for value in values:
        if isinstance(value, tuple):
            yield from _paths(value)
        elif isinstance(value, str):
            yield value
            yield value.partition("=")[2]
        elif value is not None:
            yield value


def joined(tables: Sequence[Any]) -> Any:
    """Report the coverage of tables of scores, and join them."""
    import pandas as pd

    show_seen(*tables)
    _show_not_read(tables)
    return pd.concat(tables, ignore_index=True)


def _show_not_read(tables: Sequence[Any]) -> None:
    """Show on standard error how many answers do not count, and why."""
    counts = Counter[str]()
    for table in tables:
        counts.update(table.attrs.pop("not_read", {}))
    n_answers = counts.pop("answers", 0)
    for reason, count in counts.most_common():
        click.echo(f"not read: {count:,} of {n_answers:,} answers ({reason})", err=True)


# --- tasks, one per file, on this machine or on a Dask cluster ------------------------------------


@contextmanager
def workers(address: str | None) -> Iterator[Any]:
    """Return a client of the Dask scheduler at an address; return None without an address.

    The workers need this library, and the same files under the same paths.
    """
    if address is None:
        yield None
        return
    try:
        client = import_module("distributed").Client(address, timeout=10)  # seconds
    except ModuleNotFoundError:
        raise ValueError(
            "--cluster needs Dask, which is not installed; in your clone, run python -m pip "
            "install '.[cluster]'"
        ) from None
    except (OSError, TimeoutError, ValueError):
        raise ValueError(
            f"no Dask scheduler answers at {address}; give an address such as tcp://127.0.0.1:8786"
        ) from None
    with client:
        yield client


def run_each(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    client: Any,
    unit: str,
    **shared: Any,
) -> list[Any]:
    """Run a function for each task's arguments; return the results in their order.

    ``client``: of `workers`. ``shared``: arguments of all tasks, which a cluster gets once. A
    progress bar on standard error counts the ``unit``.
    """
    from tqdm import tqdm

    if client is None:
        results: Any = (function(*task, **shared) for task in tasks)
    else:
        # Each in a list, as Dask would send the items of a dictionary one by one.
        copies = {
            name: client.scatter([value], broadcast=True, hash=False)[0]
            for name, value in shared.items()
        }
        futures = [client.submit(function, *task, **copies, pure=False) for task in tasks]
        results = (future.result() for future in futures)
    return list(tqdm(results, total=len(tasks), unit=unit, file=sys.stderr, disable=None))
