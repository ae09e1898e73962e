"""Commands that score: conversations, ranked lists and answers of one's own, as tidy CSV."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from equipoise.cli.declared import Declared, DeclaredCommand

if TYPE_CHECKING:
    import pandas as pd

    from equipoise.attributes import AttributeSet

FILE = click.Path(path_type=Path)
OUTPUT = click.option("-o", "--output", type=FILE, help="CSV or .parquet file to write.  [standard output]")
CLUSTER = click.option("--cluster", metavar="ADDRESS", help="Dask scheduler to score on, such as tcp://127.0.0.1:8786.")
GFRC, GFRC2 = "equipoise.measures.gfrc.gfrc", "equipoise.measures.gfrc2.gfrc2"


@click.group()
def score() -> None:
    """Score conversations, ranked lists and answers of your own: tidy CSV with a row for each measure and its value."""


def write(tables: Mapping[Path | None, pd.DataFrame]) -> None:
    """Write every table to its file, all or none, and the one without a file to the standard output."""
    from equipoise.files import write_csv, write_tables

    write_tables({path: table for path, table in tables.items() if path is not None})
    if None in tables:
        write_csv(tables[None], sys.stdout)


# --- conversations ------------------------------------------------------------------------------------------------


def _conversations(command: Callable[..., None]) -> Callable[..., None]:
    """Take the arguments that GFRC and GFRC2 share."""
    for option in (
        CLUSTER,
        OUTPUT,
        click.option("--attribute", "select", multiple=True, help="Score this attribute set only; repeatable.  [all]"),
        click.option("--attributes", required=True, type=FILE, help="Attribute sets, a YAML file."),
        click.argument("nuggets", type=FILE),
    ):
        command = option(command)
    return command


def attribute_sets(attributes: Path, select: Sequence[str]) -> tuple[dict[str, AttributeSet], dict[str, AttributeSet]]:
    """Attribute sets of a file, and those of them to score."""
    from equipoise.attributes import read_attributes

    sets = read_attributes(attributes)
    if unknown := [name for name in select if name not in sets]:
        raise click.BadParameter(f"{attributes} has no attribute set {', '.join(unknown)}; it has {', '.join(sets)}")
    return sets, {name: sets[name] for name in select} if select else sets


def _score_conversations(
    measure: Literal["gfrc", "gfrc2"],
    nuggets: Path,
    attributes: Path,
    select: Sequence[str],
    output: Path | None,
    cluster: str | None,
    options: Mapping[str, Any],
    scored: Callable[..., Mapping[Path | None, pd.DataFrame]],
) -> None:
    """Score a nugget table by ``scored``, or a folder of them, partition by partition."""
    sets, chosen = attribute_sets(attributes, select)
    if nuggets.is_dir():
        from equipoise import parquet_folders

        if output is None:
            raise click.UsageError(f"{nuggets} is a folder of partitions; name a folder to make with --output")
        with parquet_folders.cluster(cluster) as executor:
            count = parquet_folders.score_parts(nuggets, output, measure, sets, list(chosen), options, executor)
        click.echo(f"{count} conversations scored into {output}", err=True)
        return
    if cluster is not None:
        raise click.UsageError(f"--cluster scores a folder of Parquet files; {nuggets} is one file")
    from equipoise.nuggets import read_nuggets

    write(scored(read_nuggets(nuggets, sets, list(chosen)), chosen, **options))


@score.command("gfrc", cls=DeclaredCommand, declared=[Declared(GFRC)])
@_conversations
def score_gfrc(output: Path | None, **given: Any) -> None:
    """R, GF and GFRC of every conversation in NUGGETS, a CSV or Parquet file, or a folder of Parquet files."""
    from equipoise.measures.gfrc import gfrc

    def scored(table: Any, sets: Any, **options: Any) -> dict[Path | None, pd.DataFrame]:
        return {output: gfrc(table, sets, **options)}

    _score_conversations("gfrc", output=output, scored=scored, **_apart(given))


@score.command(
    "gfrc2",
    cls=DeclaredCommand,
    declared=[Declared(GFRC2), Declared(GFRC, only=("gains", "max_level"), defaults={"gains": "exponential"})],
)
@_conversations
@click.option("--clusters", type=FILE, help="CSV file for the user clusters.")
@click.option("--compare", is_flag=True, help="Add R, GF and GFRC, with --gains, as gfrc2's Table 5 does.")
def score_gfrc2(
    output: Path | None, clusters: Path | None, compare: bool, gains: Any, max_level: int, **given: Any
) -> None:
    """EGNP, EGF and GFRC2 of every conversation in NUGGETS, a CSV or Parquet file, or a folder of Parquet files."""
    from equipoise.measures.gfrc2 import gfrc2, user_clusters

    if given["nuggets"].is_dir() and (clusters is not None or compare):
        raise click.UsageError("a folder is scored without --clusters and --compare")

    def scored(table: Any, sets: Any, **options: Any) -> dict[Path | None, pd.DataFrame]:
        scores = gfrc2(table, sets, **options)
        if compare:
            import pandas as pd

            from equipoise.measures.gfrc import gfrc

            shared = {key: value for key, value in options.items() if key != "weights"}
            others = gfrc(table, sets, gains=gains, max_level=max_level, **shared)
            scores = pd.concat([scores, others], ignore_index=True)
        return {output: scores} | ({} if clusters is None else {clusters: user_clusters(table, sets, **options)})

    _score_conversations("gfrc2", output=output, scored=scored, **_apart(given))


def _apart(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `_score_conversations`, the measure's own under options."""
    own = ("nuggets", "attributes", "select", "cluster")
    options = {name: value for name, value in given.items() if name not in own}
    return {name: given[name] for name in own} | {"options": options}
