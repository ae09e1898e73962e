"""Score conversations by GFRC and GFRC2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.errors import refuse_twice
from equipoise_cli.declared import Declared
from equipoise_cli.scoring import (
    CLUSTER,
    INTERVALS,
    MEANS,
    Decorator,
    Scored,
    joined,
    run_each,
    scoring,
    workers,
)
from equipoise_cli.shared import FILE, TARGET, takes_output

if TYPE_CHECKING:
    from equipoise.attributes import AttributeSet
    from equipoise.nuggets import NuggetTable

_ENDINGS = (".csv", ".jsonl", ".parquet")
OPTIONS: Sequence[Decorator] = [
    INTERVALS,
    click.argument("nuggets", type=FILE),
    click.option("--attributes", required=True, type=FILE, help="Attribute sets, a YAML file."),
    click.option(
        "--attribute", "select", multiple=True, help="Attribute set to score; repeatable.  [all]"
    ),
    takes_output,
    CLUSTER,
]


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
    files = [nuggets]
    if nuggets.is_dir():
        files = sorted(path for path in nuggets.rglob("*") if path.suffix.lower() in _ENDINGS)
        if not files:
            raise click.UsageError(f"{nuggets} must have files {', '.join(_ENDINGS)}")
    with workers(cluster) as client:
        tasks = [(measure, path) for path in files]
        tables = run_each(_score_file, tasks, client, "file", sets=sets, options=options)
    scores = joined(tables)
    if len(files) > 1:
        key = ["run", "topic", "attribute", "measure"]
        refuse_twice(scores, key, "two files have a conversation")
    return scores


@scoring(
    "gfrc",
    OPTIONS,
    declared=[Declared("equipoise.measures.gfrc.gfrc"), MEANS],
    formats=["NUGGETS", "--attributes"],
)
def score_gfrc(
    nuggets: Path, attributes: Path, select: Any, cluster: Any, **options: Any
) -> Scored:
    """Score every conversation in NUGGETS by R, GF and GFRC.

    NUGGETS is a CSV, JSON Lines or Parquet file, or a folder of these files.
    """
    sets = _read_sets(attributes, select)
    return Scored(_score_files("gfrc", nuggets, sets, options, cluster))


@scoring(
    "gfrc2",
    [
        *OPTIONS,
        click.option("--clusters", type=TARGET, help="CSV file for the user clusters."),
        click.option(
            "--factors",
            type=TARGET,
            help="CSV file for the share of users who leave at each nugget, and their utility.",
        ),
    ],
    declared=[Declared("equipoise.measures.gfrc2.gfrc2"), MEANS],
    formats=["NUGGETS", "--attributes"],
)
def score_gfrc2(
    nuggets: Path,
    attributes: Path,
    select: Any,
    cluster: Any,
    clusters: Any,
    factors: Any,
    **options: Any,
) -> Scored:
    """Score every conversation in NUGGETS by EGNP, EGF and GFRC2.

    NUGGETS is a CSV, JSON Lines or Parquet file, or a folder of these files.
    """
    sets = _read_sets(attributes, select)
    if not (clusters or factors):
        return Scored(_score_files("gfrc2", nuggets, sets, options, cluster))
    if nuggets.is_dir():
        raise click.UsageError("a folder is scored without --clusters and --factors")
    if cluster is not None:
        raise click.UsageError("--clusters and --factors are computed without --cluster")
    from equipoise.measures import gfrc2
    from equipoise.nuggets import read_nuggets

    table = read_nuggets(nuggets, sets)
    scores = joined([_scored("gfrc2", table, str(nuggets), sets, options)])
    del options["by_group"]  # it is of scores, and not of the users who leave
    leaving = gfrc2.user_clusters(table, sets, **options)
    outputs: dict[Path | None, Any] = {}
    if clusters:
        outputs[clusters] = leaving
    if factors:
        outputs[factors] = gfrc2.factors(leaving)
    return Scored(scores, outputs)
