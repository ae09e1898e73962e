"""Score ranked lists by GFR."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import click

from equipoise.problems import plain
from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import SCORES, refuse_outputs
from equipoise_cli.score import score
from equipoise_cli.shared import (
    CLUSTER,
    FILE,
    INTERVALS,
    MEANS,
    ends_of_means,
    named,
    named_files,
    samples,
    takes_output,
    tells_what_was_seen,
    write,
)

ORDER = Declared("equipoise.loaders.trec.read_run", only=("order",))
# A run is ordered when it is read.
GFR = Declared(
    "equipoise.measures.gfr.gfr_table",
    without=("order",),
    flags={"similarities": "--divergences"},
)


def _refuse_without_membership(names: set[str]) -> None:
    """Refuse targets and kinds of attribute sets that have no memberships."""
    if names:
        raise click.UsageError(
            "every attribute set needs a --membership of its NAME; "
            f"none for {', '.join(sorted(names))}"
        )


def _refuse_kinds(kinds: Iterable[str]) -> None:
    """Refuse kinds of groups that there are none of."""
    wrong_kinds = sorted(set(kinds) - {"ordinal", "nominal"})
    if wrong_kinds:
        raise click.BadParameter(f"--kind is ordinal or nominal; found {', '.join(wrong_kinds)}")


def _score_run(run: Path, name: str, order: Any, arguments: dict[str, Any]) -> Any:
    """Score one run, and what was seen of it.

    A run is a task, so that its scores depend on nothing else.
    """
    from equipoise.coverage import gathered
    from equipoise.loaders.trec import read_run
    from equipoise.measures.gfr import gfr_table

    with gathered() as coverages:
        return gfr_table(read_run(run, name, order=order), **arguments), coverages


def _score_runs(
    files: list[Path], names: list[str], order: Any, arguments: dict[str, Any], executor: Any
) -> Any:
    """The scores of all runs in one table, each run scored by itself."""
    import pandas as pd

    from equipoise.coverage import judge
    from equipoise_cli.parquet_folders import run_each

    tasks = [(file, name, order, arguments) for file, name in zip(files, names, strict=True)]
    tables = []
    for table, coverages in run_each(_score_run, tasks, executor, "run"):
        tables.append(table)
        # What a run showed may have been gathered elsewhere: here it joins that of the others.
        judge(coverages)
    return pd.concat(tables, ignore_index=True)


def _by_set(groups: Iterable[tuple[Any, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Memberships and attribute sets by name; of two files with sets of one name none is taken."""
    memberships, sets = {}, {}
    for table, attribute_set in groups:
        name = attribute_set.name
        if name in sets:
            raise click.UsageError(f"two files of --membership have a set {name}: give NAME=FILE")
        sets[name] = attribute_set
        memberships[name] = table
    return memberships, sets


@score.command(
    "gfr",
    cls=DeclaredCommand,
    declared=[ORDER, GFR, Declared(MEANS, needs="intervals")],
    epilog=samples(
        "--run",
        "--qrels",
        "--membership NAME=",
        "--membership, by shares",
        "--target NAME=",
        "--attributes",
    ),
)
@INTERVALS
@click.option(
    "--run",
    "runs",
    multiple=True,
    required=True,
    type=FILE,
    help="Run, or a folder of runs; repeatable.",
)
@click.option(
    "--qrels",
    required=True,
    type=FILE,
    help="Judgements, a TREC or NTCIR file or a name of ir_datasets.",
)
@click.option(
    "--membership",
    "memberships",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Group memberships; without NAME, each column of names is a set called like it; "
    "repeatable.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME=FILE|group:number,...",
    help="Target distribution, a file or numbers; repeatable.  [uniform]",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="NAME=ordinal|nominal",
    help="Kind of groups; repeatable.  [nominal]",
)
@click.option(
    "--attributes", type=FILE, help="Attribute sets, a YAML file, instead of --target and --kind."
)
@takes_output
@CLUSTER
@fails_on_conditions
def score_gfr(
    runs: Any,
    qrels: Path,
    memberships: Any,
    targets: Any,
    kinds: Any,
    attributes: Any,
    output: Any,
    force: bool,
    cluster: Any,
    order: Any,
    **options: Any,
) -> Any:
    """ERR, iRBU, GF and GFR of ranked lists, per topic, and their means with an empty topic."""
    files_of_groups = named_files(memberships, "--membership")
    target_of = named(targets, "--target")
    kind_of: Any = named(kinds, "--kind")  # of two words, which is checked below
    inputs = [*runs, qrels, *(path for _, path in files_of_groups), *target_of.values(), attributes]
    refuse_outputs({"-o": (output, SCORES)}, inputs, force=force)
    from equipoise.attributes import read_attributes
    from equipoise.loaders.groups import read_sets
    from equipoise.loaders.trec import run_files, run_names
    from equipoise.problems import together
    from equipoise.tidy import tidy_qrels
    from equipoise_cli.parquet_folders import cluster as connect

    _refuse_kinds(kind_of.values())
    files = list(chain.from_iterable(map(run_files, runs)))
    sets = read_attributes(attributes) if attributes else {}
    reads: list[Any] = [partial(run_names, files), partial(tidy_qrels, qrels)]
    for name, path in files_of_groups:
        reads.append(partial(read_sets, path, name, kind_of, target_of, sets))
    names, options["qrels"], *groups = together(reads)
    # With them the options are the arguments of the measure, and a task needs no other.
    options["memberships"], options["attributes"] = _by_set(chain.from_iterable(groups))
    _refuse_without_membership({*target_of, *kind_of} - options["attributes"].keys())
    for attribute_set in options["attributes"].values():
        click.echo(plain(f"seen: {attribute_set}"), err=True)
    with_ends = ends_of_means(options)
    with tells_what_was_seen(options["least_seen"]), connect(cluster) as executor:
        scores = with_ends(_score_runs(files, names, order, options, executor))
    write({output: scores})
    return scores
