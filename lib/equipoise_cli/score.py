"""Score conversations by GFRC and GFRC2; the group of all commands that score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.errors import refuse_twice
from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import CommandGroup, Declared, DeclaredCommand
from equipoise_cli.outputs import CLUSTERS, FACTORS, SCORES, refuse_outputs
from equipoise_cli.shared import (
    CLUSTER,
    FILE,
    INTERVALS,
    MEANS,
    TARGET,
    ends_of_means,
    samples,
    show_seen,
    takes_output,
    write,
)

if TYPE_CHECKING:
    from equipoise.attributes import AttributeSet
    from equipoise.nuggets import NuggetTable

GFRC, GFRC2 = "equipoise.measures.gfrc.gfrc", "equipoise.measures.gfrc2.gfrc2"
_ENDINGS = (".csv", ".jsonl", ".parquet")


@click.group(cls=CommandGroup)
def score() -> None:
    """Score conversations, rankings and answers of your own.

    The scores are a tidy CSV, with one row per measure and value.
    """


def _takes_conversations(command: Callable[..., Any]) -> Callable[..., Any]:
    """Take the arguments that GFRC and GFRC2 share."""
    nuggets = click.argument("nuggets", type=FILE)
    attributes = click.option(
        "--attributes", required=True, type=FILE, help="Attribute sets, a YAML file."
    )
    select = click.option(
        "--attribute", "select", multiple=True, help="Attribute set to score; repeatable.  [all]"
    )
    return INTERVALS(nuggets(attributes(select(takes_output(CLUSTER(command))))))


def _read_sets(path: Path, select: Sequence[str]) -> dict[str, AttributeSet]:
    """The attribute sets of a file, or those of them that are to be scored."""
    from equipoise.attributes import read_attributes

    sets = read_attributes(path)
    unknown = [name for name in select if name not in sets]
    if unknown:
        raise click.BadParameter(
            f"--attribute must be one of {', '.join(sets)}, the sets of {path}, got {unknown[0]}"
        )
    return {name: sets[name] for name in select or sets}


def _scored(
    measure: str,
    nuggets: NuggetTable,
    place: str,
    sets: Mapping[str, AttributeSet],
    options: Mapping[str, Any],
) -> Any:
    """Score a nugget table, and count what it shows."""
    from importlib import import_module

    from equipoise.coverage import Seen

    function = getattr(import_module(f"equipoise.measures.{measure}"), measure)
    scores = function(nuggets, sets, **options)
    relevant = nuggets.level > 0
    n_read = int((relevant & (nuggets.end <= options["patience"])).sum())
    n_served = len(set(nuggets.conversation[relevant].tolist()))
    # A conversation without relevant nuggets is one that failed, not one that is missing.
    scores.attrs["seen"] = [
        Seen(place, "conversations", "a relevant nugget", n_served, len(nuggets.conversations)),
        Seen(place, "relevant nuggets", "an end within the patience", n_read, int(relevant.sum())),
    ]
    return scores


def _score_file(
    measure: str, path: Path, *, sets: Mapping[str, AttributeSet], options: Mapping[str, Any]
) -> Any:
    """Score one file of nuggets; a task of a folder."""
    from equipoise.nuggets import read_nuggets

    return _scored(measure, read_nuggets(path, sets), str(path), sets, options)


def _score_files(
    measure: str,
    nuggets: Path,
    sets: Mapping[str, AttributeSet],
    options: Mapping[str, Any],
    cluster: str | None,
) -> Any:
    """Score a file of nuggets, or those of a folder one by one; a conversation is in one file."""
    import pandas as pd

    from equipoise_cli.cluster import cluster as connect
    from equipoise_cli.cluster import run_each

    files = [nuggets]
    if nuggets.is_dir():
        files = sorted(path for path in nuggets.rglob("*") if path.suffix.lower() in _ENDINGS)
        if not files:
            raise click.UsageError(f"{nuggets} must have files {', '.join(_ENDINGS)}")
    with connect(cluster) as client:
        tasks = [(measure, path) for path in files]
        tables = run_each(_score_file, tasks, client, "file", sets=sets, options=options)
    show_seen(*tables)
    scores = pd.concat(tables, ignore_index=True)
    if len(files) > 1:
        key = ["run", "topic", "attribute", "measure"]
        refuse_twice(scores, key, "two files have a conversation")
    return scores


@score.command(
    "gfrc",
    cls=DeclaredCommand,
    declared=[Declared(GFRC), Declared(MEANS, needs="intervals")],
    epilog=samples("NUGGETS", "--attributes"),
)
@_takes_conversations
@fails_on_conditions
def score_gfrc(
    nuggets: Path,
    attributes: Path,
    select: Any,
    output: Any,
    force: bool,
    cluster: Any,
    **options: Any,
) -> Any:
    """Score every conversation in NUGGETS by R, GF and GFRC.

    NUGGETS is a CSV, JSON Lines or Parquet file, or a folder of these files.
    """
    refuse_outputs({"-o": (output, SCORES)}, [nuggets, attributes], force=force)
    with_ends = ends_of_means(options)
    sets = _read_sets(attributes, select)
    scores = _score_files("gfrc", nuggets, sets, options, cluster)
    scores = with_ends(scores)
    write({output: scores})
    return scores


@score.command(
    "gfrc2",
    cls=DeclaredCommand,
    declared=[Declared(GFRC2), Declared(MEANS, needs="intervals")],
    epilog=samples("NUGGETS", "--attributes"),
)
@_takes_conversations
@click.option("--clusters", type=TARGET, help="CSV file for the user clusters.")
@click.option(
    "--factors",
    type=TARGET,
    help="CSV file for the share of users who leave at each nugget, and their utility.",
)
@fails_on_conditions
def score_gfrc2(
    nuggets: Path,
    attributes: Path,
    select: Any,
    output: Any,
    force: bool,
    cluster: Any,
    clusters: Any,
    factors: Any,
    **options: Any,
) -> Any:
    """Score every conversation in NUGGETS by EGNP, EGF and GFRC2.

    NUGGETS is a CSV, JSON Lines or Parquet file, or a folder of these files.
    """
    outputs = {
        "-o": (output, SCORES),
        "--clusters": (clusters, CLUSTERS),
        "--factors": (factors, FACTORS),
    }
    refuse_outputs(outputs, [nuggets, attributes], force=force)
    with_ends = ends_of_means(options)
    sets = _read_sets(attributes, select)
    if not (clusters or factors):
        scores = with_ends(_score_files("gfrc2", nuggets, sets, options, cluster))
        write({output: scores})
        return scores
    if nuggets.is_dir():
        raise click.UsageError("a folder is scored without --clusters and --factors")
    if cluster is not None:
        raise click.UsageError("--clusters and --factors are computed without --cluster")
    from equipoise.measures import gfrc2
    from equipoise.nuggets import read_nuggets

    table = read_nuggets(nuggets, sets)
    scores = _scored("gfrc2", table, str(nuggets), sets, options)
    show_seen(scores)
    scores = with_ends(scores)
    tables: dict[Path | None, Any] = {output: scores}
    del options["by_group"]  # it is of scores, and not of the users who leave
    leaving = gfrc2.user_clusters(table, sets, **options)
    if clusters:
        tables[clusters] = leaving
    if factors:
        tables[factors] = gfrc2.factors(leaving)
    write(tables)
    return scores
