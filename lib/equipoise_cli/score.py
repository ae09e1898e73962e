"""Commands that score conversations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise_cli.conditions import fails_on_conditions, refuse_conditions
from equipoise_cli.declared import CommandGroup, Declared, DeclaredCommand
from equipoise_cli.outputs import CLUSTERS, FACTORS, FOLDER, SCORES, refuse_outputs
from equipoise_cli.shared import (
    CLUSTER,
    FILE,
    INTERVALS,
    MEANS,
    TARGET,
    ends_of_means,
    samples,
    takes_output,
    write,
)

if TYPE_CHECKING:
    from equipoise.attributes import AttributeSet
    from equipoise.nuggets import NuggetTable
    from equipoise_cli.parquet_folders import Scorer

    AttributeSets = Mapping[str, AttributeSet]

GFRC, GFRC2 = "equipoise.measures.gfrc.gfrc", "equipoise.measures.gfrc2.gfrc2"


@click.group(cls=CommandGroup)
def score() -> None:
    """Score conversations, ranked lists and answers of your own.

    The scores are a tidy CSV, with a row for each measure and its value.
    """


_NUGGETS = click.argument("nuggets", type=FILE)
_ATTRIBUTES = click.option(
    "--attributes", required=True, type=FILE, help="Attribute sets, a YAML file."
)
_SELECT = click.option(
    "--attribute", "select", multiple=True, help="Score this attribute set only; repeatable.  [all]"
)


def _takes_conversations(command: Callable[..., None]) -> Callable[..., None]:
    """Take the arguments that GFRC and GFRC2 share."""
    return _NUGGETS(_ATTRIBUTES(_SELECT(takes_output(CLUSTER(command)))))


def _show_seen(nuggets: NuggetTable, patience: float) -> None:
    """Say how many relevant nuggets a table has; warn where nobody is served.

    A conversation without relevant nuggets is one that failed, not one that is missing.
    """
    import pandas as pd

    from equipoise.coverage import Unseen

    rows = pd.DataFrame(
        {
            "conversation": nuggets.conversation,
            "turn": nuggets.turn,
            "relevant": nuggets.level > 0,
            "late": (nuggets.level > 0) & (nuggets.end > patience),
        }
    )
    # Past the patience of all users, a nugget counts as little as none.
    n_relevant, n_late = int(rows["relevant"].sum()), int(rows["late"].sum())
    is_useful = rows.groupby(["conversation", "turn"])["relevant"].any()
    message = (
        f"seen: {n_relevant:,} relevant nuggets in {is_useful.sum():,} of {len(is_useful):,} turns "
        f"of {len(nuggets.conversations):,} conversations"
    )
    if n_late:
        message += f"; {n_late:,} end beyond the patience"
    click.echo(message, err=True)
    if n_late < n_relevant:
        return
    problem = "no relevant nugget anywhere"
    if n_late:
        problem = f"all relevant nuggets end beyond {patience:g} words"
    warnings.warn(f"{problem}: nobody is served in any conversation", Unseen, stacklevel=2)


def _sets_to_score(attributes: Path, select: Sequence[str]) -> tuple[AttributeSets, list[str]]:
    """The attribute sets of a file, and the names of those to score."""
    from equipoise.attributes import read_attributes

    sets = read_attributes(attributes)
    unknown = [name for name in select if name not in sets]
    if unknown:
        raise click.BadParameter(
            f"{attributes} has no attribute set {', '.join(unknown)}; it has {', '.join(sets)}",
            param_hint="--attribute",
        )
    return sets, list(select or sets)


def _read_table(
    nuggets: Path, attributes: Path, select: Sequence[str], patience: float, cluster: str | None
) -> tuple[NuggetTable, AttributeSets]:
    """A nugget table, and the attribute sets to score it by."""
    from equipoise.nuggets import read_nuggets

    sets, names = _sets_to_score(attributes, select)
    if cluster is not None:
        raise click.UsageError(f"--cluster scores a folder of files; {nuggets} is one file")
    # All sets of the file are its columns, also those that are not scored.
    table = read_nuggets(nuggets, sets, names)
    _show_seen(table, patience)
    return table, {name: sets[name] for name in names}


def _score_folder(
    measure: Scorer,
    nuggets: Path,
    attributes: Path,
    select: Sequence[str],
    output: Path | None,
    options: dict[str, Any],
    cluster: str | None,
) -> None:
    """Score a folder of nugget tables file by file, for together they may exceed the memory."""
    refuse_conditions(f"{nuggets} is a folder, whose scores are never together")
    sets, names = _sets_to_score(attributes, select)
    if output is None:
        raise click.UsageError(
            f"{nuggets} is a folder of partitions; name a folder to make with --output"
        )
    from equipoise_cli import parquet_folders

    with parquet_folders.cluster(cluster) as executor:
        n_conversations = parquet_folders.score_parts(
            nuggets, output, measure, sets, names, options, executor
        )
    click.echo(f"{n_conversations} conversations scored into {output}", err=True)


def _ends(nuggets: Path, options: dict[str, Any]) -> Callable[[Any], Any]:
    """What adds the intervals of means, which a folder cannot have."""
    if options["intervals"] and nuggets.is_dir():
        raise click.UsageError(
            f"{nuggets} is a folder, whose scores are never together: no --intervals"
        )
    return ends_of_means(options)


@score.command(
    "gfrc",
    cls=DeclaredCommand,
    declared=[Declared(GFRC), Declared(MEANS, needs="intervals")],
    epilog=samples("NUGGETS", "--attributes"),
)
@INTERVALS
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
    """R, GF and GFRC of every conversation in NUGGETS.

    NUGGETS is a CSV, JSON Lines or Parquet file, or a folder of such.
    """
    # Scores of a folder of nugget tables are a folder of the same layout.
    kind = FOLDER if nuggets.is_dir() else SCORES
    refuse_outputs({"-o": (output, kind)}, [nuggets, attributes], force=force)
    from equipoise.measures.gfrc import gfrc

    with_ends = _ends(nuggets, options)
    if nuggets.is_dir():
        _score_folder("gfrc", nuggets, attributes, select, output, options, cluster)
        return None
    table, sets = _read_table(nuggets, attributes, select, options["patience"], cluster)
    scores = with_ends(gfrc(table, sets, **options))
    write({output: scores})
    return scores


@score.command(
    "gfrc2",
    cls=DeclaredCommand,
    declared=[Declared(GFRC2), Declared(MEANS, needs="intervals")],
    epilog=samples("NUGGETS", "--attributes"),
)
@INTERVALS
@_takes_conversations
@click.option("--clusters", type=TARGET, help="CSV file for the user clusters.")
@click.option(
    "--factors",
    type=TARGET,
    help="CSV file for who leaves at a nugget, and what those have had.",
)
@click.option(
    "--compare", is_flag=True, help="Add R, GF and GFRC, with --gains, as gfrc2's Table 5 does."
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
    compare: bool,
    **options: Any,
) -> Any:
    """EGNP, EGF and GFRC2 of every conversation in NUGGETS.

    NUGGETS is a CSV, JSON Lines or Parquet file, or a folder of such.
    """
    outputs = {
        "-o": (output, FOLDER if nuggets.is_dir() else SCORES),
        "--clusters": (clusters, CLUSTERS),
        "--factors": (factors, FACTORS),
    }
    refuse_outputs(outputs, [nuggets, attributes], force=force)
    import pandas as pd

    from equipoise.measures import gfrc2 as measures
    from equipoise.measures.gfrc import gfrc
    from equipoise.options import options_of

    if nuggets.is_dir() and (clusters is not None or factors is not None or compare):
        raise click.UsageError(
            f"{nuggets} is a folder, which is scored without --clusters, --factors and --compare"
        )
    with_ends = _ends(nuggets, options)
    if nuggets.is_dir():
        _score_folder("gfrc2", nuggets, attributes, select, output, options, cluster)
        return None
    table, sets = _read_table(nuggets, attributes, select, options["patience"], cluster)
    scores = measures.gfrc2(table, sets, **options)
    if compare:
        # GFRC has no weight of the utility; the shares of the groups are GFRC2's rows already.
        names = {choice.name for choice in options_of(gfrc)} - {"weights", "by_group"}
        gfrc_options = {name: value for name, value in options.items() if name in names}
        scores = pd.concat([scores, gfrc(table, sets, **gfrc_options)], ignore_index=True)
    tables = {output: with_ends(scores)}
    if clusters is not None or factors is not None:
        # Both options are of scores, and not of the users who leave.
        leaving_options = options.copy()
        for name in ("unserved", "by_group"):
            del leaving_options[name]
        leaving = measures.user_clusters(table, sets, **leaving_options)
        if clusters is not None:
            tables[clusters] = leaving
        if factors is not None:
            tables[factors] = measures.factors(leaving)
    write(tables)
    return tables[output]
