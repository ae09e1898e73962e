"""What all commands that score share: options, outputs, coverage, intervals, verdicts, tasks.

A command reads its files to tidy tables and scores them; `scoring` does the rest.
"""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
_OUTPUTS = {"output": SCORES, "clusters": CLUSTERS, "factors": FACTORS, "figure": DRAWING}
"""Options of outputs, and what each may overwrite."""


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
    declared: Sequence[Declared],
    formats: Sequence[str],
) -> Callable[[Callable[..., Scored]], click.Command]:
    """Make a command of `score` from a function that reads files and scores them.

    ``formats`` are names of samples that end the help.
    """

    def as_command(function: Callable[..., Scored]) -> click.Command:
        @functools.wraps(function)
        def command(output: Path | None, **values: Any) -> Any:
            check_figure(values.get("figure"))  # before anything is read
            refuse_outputs(_OUTPUTS)
            if "more_runs" in values:
                values["runs"] = (*values["runs"], *values.pop("more_runs"))
            intervals = values.pop("intervals", False)
            if MEANS in declared:  # no measure has these options
                ends = {key: values.pop(key) for key in ("level", "resamples", "seed")}
            scores, files, verdicts = function(**values)
            exposures = scores.attrs.pop("exposures", [])
            if exposures:
                import pandas as pd

                from equipoise.measures.exposure import exposure_verdicts

                rows = pd.concat([exposure.rows(**ends) for exposure in exposures])
                verdicts = exposure_verdicts(
                    rows, level=ends["level"], of="target share", documents="exposure"
                )
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


def joined(tables: Sequence[Any]) -> Any:
    """Report the coverage of tables of scores, and join them."""
    from equipoise.loaders.columns import joined_with_categories

    show_seen(*tables)
    _show_not_read(tables)
    exposures = [exposure for table in tables for exposure in table.attrs.pop("exposures", [])]
    table = joined_with_categories(tables)
    table.attrs["exposures"] = exposures
    return table


def _show_not_read(tables: Sequence[Any]) -> None:
    """Show on standard error how many answers do not count, and why."""
    counts = Counter[str]()
    for table in tables:
        counts.update(table.attrs.pop("not_read", {}))
    n_answers = counts.pop("answers", 0)
    for reason, count in counts.most_common():
        click.echo(f"not read: {count:,} of {n_answers:,} answers ({reason})", err=True)


# --- tasks, one per file, on this machine or on a Dask cluster ------------------------------------


_SECONDS = 10
"""How long a scheduler, and then its first worker, is waited for."""


@contextmanager
def workers(address: str | None) -> Iterator[Any]:
    """Return a client of the Dask scheduler at an address; return None without an address.

    The workers need this library, and the same files under the same paths.
    """
    if address is None:
        yield None
        return
    import logging
    from concurrent.futures import CancelledError

    distributed = import_module("distributed")
    # It logs each lost connection with a traceback.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        _greet(address)
        client = distributed.Client(address, timeout=_SECONDS)
    except (OSError, ValueError):
        raise ValueError(
            f"no Dask scheduler answers at {address}; give an address such as tcp://127.0.0.1:8786"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_SECONDS)
            yield client
        except (OSError, CancelledError, distributed.KilledWorker) as error:
            if isinstance(error, OSError) and isinstance(error.filename, str):
                raise  # it is of a file, on a worker
            raise ValueError(
                f"--cluster {address}: scheduler or workers have ended ({type(error).__name__}); "
                "start them again, or score without --cluster"
            ) from None


def _greet(address: str) -> None:
    """Raise OSError or ValueError unless a Dask scheduler is at an address; Dask would wait."""
    match = re.fullmatch(r"(?:tcp://)?\[?([^/\]]+)\]?:(\d{1,5})", address)
    if not match:
        raise ValueError(address)
    import socket

    with socket.create_connection((match[1], int(match[2])), _SECONDS) as connection:
        length = connection.recv(8)
    # A scheduler speaks first: the length of some lines about its version.
    if len(length) < 8 or int.from_bytes(length, "little") > 2**16:
        raise ValueError(address)


def _result(future: Any, client: Any) -> Any:
    """Return the result of a task; Dask itself would wait for ever when the last worker ends."""
    while not future.done():
        with suppress(TimeoutError):
            import_module("distributed").wait(future, timeout=_SECONDS)
        client.wait_for_workers(1, timeout=_SECONDS)
    return future.result()


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
        results = (_result(future, client) for future in futures)
    return list(tqdm(results, total=len(tasks), unit=unit, file=sys.stderr, disable=None))
