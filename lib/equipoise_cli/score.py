"""Commands that score conversations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from equipoise.declare import options_of
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import CLUSTERS, FACTORS, FOLDER, SCORES, refuse_outputs
from equipoise_cli.shared import (
    CLUSTER,
    FILE,
    INTERVALS,
    MEANS,
    ends_of_means,
    samples,
    takes_output,
    write,
)

GFRC, GFRC2 = "equipoise.measures.gfrc.gfrc", "equipoise.measures.gfrc2.gfrc2"


@click.group()
def score() -> None:
    """Score conversations, ranked lists and answers of your own: tidy CSV with a row for each measure and its value."""


def _conversations(command: Callable[..., None]) -> Callable[..., None]:
    """Take the arguments that GFRC and GFRC2 share."""
    for option in (
        CLUSTER,
        takes_output,
        click.option(
            "--attribute",
            "select",
            multiple=True,
            help="Score this attribute set only; repeatable.  [all]",
        ),
        click.option("--attributes", required=True, type=FILE, help="Attribute sets, a YAML file."),
        click.argument("nuggets", type=FILE),
    ):
        command = option(command)
    return command


def _told(nuggets: Any, patience: float) -> Any:
    """The nugget table, once it is said what it has; a conversation without relevant nuggets is one that failed."""
    import warnings

    import pandas as pd

    from equipoise.coverage import Unseen

    turns = pd.DataFrame(
        {"conversation": nuggets.conversation, "turn": nuggets.turn, "relevant": nuggets.level > 0}
    )
    useful = turns.groupby(["conversation", "turn"])["relevant"].any()
    told = (
        f"{turns['relevant'].sum():,} relevant nuggets in {useful.sum():,} of {len(useful):,} turns"
    )
    late = int((turns["relevant"] & (nuggets.end > patience)).sum())
    told = f"{told} of {len(nuggets.conversations):,} conversations"
    click.echo(f"seen: {told}" + (f"; {late:,} end beyond the patience" if late else ""), err=True)
    if late == turns["relevant"].sum():
        found = (
            f"all relevant nuggets end beyond {patience:g} words"
            if late
            else "no relevant nugget anywhere"
        )
        warnings.warn(f"{found}: nobody is served in any conversation", Unseen, stacklevel=2)
    return nuggets


def _table(
    measure: Any,
    options: Any,
    nuggets: Path,
    attributes: Path,
    select: Any,
    output: Any,
    cluster: Any,
) -> tuple[Any, Any] | None:
    """A nugget table and the attribute sets to score; a folder is scored here, file by file, and leaves nothing."""
    from equipoise.attributes import read_attributes
    from equipoise.nuggets import read_nuggets

    sets = read_attributes(attributes)
    if unknown := [name for name in select if name not in sets]:
        raise click.BadParameter(
            f"{attributes} has no attribute set {', '.join(unknown)}; it has {', '.join(sets)}"
        )
    chosen = {name: sets[name] for name in select or sets}
    if not nuggets.is_dir():
        if cluster is not None:
            raise click.UsageError(f"--cluster scores a folder of files; {nuggets} is one file")
        return _told(read_nuggets(nuggets, sets, list(chosen)), options["patience"]), chosen
    if output is None:
        raise click.UsageError(
            f"{nuggets} is a folder of partitions; name a folder to make with --output"
        )
    from equipoise_cli import parquet_folders

    with parquet_folders.cluster(cluster) as executor:
        count = parquet_folders.score_parts(
            nuggets, output, measure, sets, list(chosen), options, executor
        )
    click.echo(f"{count} conversations scored into {output}", err=True)
    return None


def _ends(nuggets: Path, options: dict[str, Any]) -> Callable[[Any], Any]:
    if options["intervals"] and nuggets.is_dir():
        raise click.UsageError(
            f"{nuggets} is a folder, whose scores are never together: no --intervals"
        )
    return ends_of_means(options)


@score.command(
    "gfrc",
    cls=DeclaredCommand,
    declared=[Declared(GFRC), Declared(MEANS)],
    epilog=samples("NUGGETS", "--attributes"),
)
@INTERVALS
@_conversations
def score_gfrc(
    nuggets: Path,
    attributes: Path,
    select: Any,
    output: Any,
    force: bool,
    cluster: Any,
    **options: Any,
) -> None:
    """R, GF and GFRC of every conversation in NUGGETS: a CSV, JSON Lines or Parquet file, or a folder of such."""
    refuse_outputs(
        {"-o": (output, FOLDER if nuggets.is_dir() else SCORES)}, [nuggets, attributes], force=force
    )
    from equipoise.measures.gfrc import gfrc

    with_ends = _ends(nuggets, options)
    if found := _table("gfrc", options, nuggets, attributes, select, output, cluster):
        write({output: with_ends(gfrc(*found, **options))})


@score.command(
    "gfrc2",
    cls=DeclaredCommand,
    declared=[Declared(GFRC2), Declared(MEANS)],
    epilog=samples("NUGGETS", "--attributes"),
)
@INTERVALS
@_conversations
@click.option("--clusters", type=FILE, help="CSV file for the user clusters.")
@click.option(
    "--factors",
    "parts",
    type=FILE,
    help="CSV file for who leaves at a nugget, and what those have had.",
)
@click.option(
    "--compare", is_flag=True, help="Add R, GF and GFRC, with --gains, as gfrc2's Table 5 does."
)
def score_gfrc2(
    nuggets: Path,
    attributes: Path,
    select: Any,
    output: Any,
    force: bool,
    cluster: Any,
    clusters: Any,
    parts: Any,
    compare: bool,
    **options: Any,
) -> None:
    """EGNP, EGF and GFRC2 of every conversation in NUGGETS: a CSV, JSON Lines or Parquet file, or a folder of such."""
    outputs = {
        "-o": (output, FOLDER if nuggets.is_dir() else SCORES),
        "--clusters": (clusters, CLUSTERS),
    }
    refuse_outputs(outputs | {"--factors": (parts, FACTORS)}, [nuggets, attributes], force=force)
    from equipoise.measures.gfrc2 import factors, gfrc2, user_clusters

    if nuggets.is_dir() and (clusters is not None or parts is not None or compare):
        raise click.UsageError(
            f"{nuggets} is a folder, which is scored without --clusters, --factors and --compare"
        )
    with_ends = _ends(nuggets, options)
    if not (found := _table("gfrc2", options, nuggets, attributes, select, output, cluster)):
        return
    tables = {output: gfrc2(*found, **options)}
    if clusters is not None or parts is not None:
        leaving = user_clusters(
            *found,
            **{name: options[name] for name in options if name not in ("unserved", "by_group")},
        )
        files = {clusters: leaving, parts: factors(leaving)}
        tables |= {file: made for file, made in files.items() if file is not None}
    if compare:
        import pandas as pd

        from equipoise.measures.gfrc import gfrc

        shared = {choice.name for choice in options_of(gfrc)} - {"weights", "by_group"}
        others = {name: value for name, value in options.items() if name in shared}
        tables[output] = pd.concat([tables[output], gfrc(*found, **others)], ignore_index=True)
    write(tables | {output: with_ends(tables[output])})
