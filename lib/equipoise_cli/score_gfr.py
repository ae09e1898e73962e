"""Score rankings by GFR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from equipoise.errors import plain
from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import SCORES, refuse_outputs
from equipoise_cli.score import score
from equipoise_cli.shared import (
    CLUSTER,
    FILE,
    INTERVALS,
    MEANS,
    MISSING,
    ends_of_means,
    named,
    named_files,
    samples,
    show_seen,
    takes_output,
    takes_runs,
    write,
)

ORDER = Declared("equipoise.loaders.trec.read_run", only=("order",))
GFR = Declared("equipoise.measures.gfr.gfr_table", flags={"similarities": "--divergences"})


MEMBERSHIPS = click.option(
    "--membership",
    "memberships",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Group memberships; repeatable. Without NAME=, each column of group names becomes an "
    "attribute set with the name of the column.",
)


def read_memberships(
    files: Iterable[tuple[str, str]], missing: Sequence[str], **given: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read memberships and attribute sets by name; ``given`` has kinds, targets and sets."""
    from equipoise.loaders.groups import read_sets

    memberships: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for path_name, path in files:
        names = [path_name] if path_name else []
        for name, (table, attribute_set) in read_sets(
            path, names, missing=missing, **given
        ).items():
            if name in attributes:
                raise click.UsageError(
                    f"two files of --membership have an attribute set {name}; rename one with "
                    "NAME=FILE"
                )
            attributes[name], memberships[name] = attribute_set, table
    return memberships, attributes


def _score_run(file: Path, name: str, *, order: Any, arguments: dict[str, Any]) -> Any:
    """Score one run: a task, so that many runs need no more memory than one."""
    from equipoise.loaders.trec import read_run
    from equipoise.measures.gfr import gfr_table

    # Documents without judgement are removed before the cutoff, so that all ranks are needed.
    depth = None if arguments["unjudged"] == "removed" else arguments["cutoff"]
    return gfr_table(read_run(file, name, order=order, depth=depth), **arguments)


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
@takes_runs
@click.option(
    "--qrels",
    required=True,
    type=FILE,
    help="Judgements, a TREC, NTCIR or BEIR file.",
)
@MEMBERSHIPS
@MISSING
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
    missing: Any,
    targets: Any,
    kinds: Any,
    attributes: Any,
    output: Any,
    force: bool,
    cluster: Any,
    order: Any,
    **options: Any,
) -> Any:
    """Score rankings by ERR, iRBU, GF and GFR.

    There is one row per topic; the means over topics have an empty topic.
    """
    files_of_groups = named_files(memberships, "--membership")
    target_of = named(targets, "--target")
    kind_of: Any = named(kinds, "--kind")
    wrong_kinds = sorted(set(kind_of.values()) - {"ordinal", "nominal"})
    if wrong_kinds:
        raise click.BadParameter(f"--kind must be ordinal or nominal, got {wrong_kinds[0]}")
    inputs = [*runs, qrels, *(path for _, path in files_of_groups), *target_of.values(), attributes]
    refuse_outputs({"-o": (output, SCORES)}, inputs, force=force)
    import pandas as pd

    from equipoise.attributes import read_attributes
    from equipoise.loaders.trec import read_qrels, run_files, run_names
    from equipoise_cli.cluster import cluster as connect
    from equipoise_cli.cluster import run_each

    files = [file for run in runs for file in run_files(run)]
    names = run_names(files)
    sets = read_attributes(attributes) if attributes else {}
    given = {"kinds": kind_of, "targets": target_of, "sets": sets}
    groups, attribute_sets = read_memberships(files_of_groups, missing, **given)
    arguments = {**options, "qrels": read_qrels(qrels)}
    arguments |= {"memberships": groups, "attributes": attribute_sets}
    without = sorted({*target_of, *kind_of} - attribute_sets.keys())
    if without:
        raise click.UsageError(
            f"every attribute set needs a --membership of its NAME, got none for {without[0]}"
        )
    if sets and sets.keys().isdisjoint(attribute_sets):
        known = ", ".join(attribute_sets)
        raise click.UsageError(f"{attributes}: must have a set given with --membership ({known})")
    for attribute_set in attribute_sets.values():
        click.echo(plain(f"groups: {attribute_set}"), err=True)
    with_ends = ends_of_means(arguments)
    tasks = list(zip(files, names, strict=True))
    with connect(cluster) as client:
        tables = run_each(_score_run, tasks, client, "run", order=order, arguments=arguments)
    show_seen(*tables)
    scores = with_ends(pd.concat(tables, ignore_index=True))
    write({output: scores})
    return scores
