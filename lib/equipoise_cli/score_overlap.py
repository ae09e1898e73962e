"""The command that scores how far what a system returns on a collection and on its counterfactual overlap."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import SCORES, refuse_outputs
from equipoise_cli.score import score
from equipoise_cli.shared import (
    FILE,
    INTERVALS,
    MEANS,
    ends_of_means,
    samples,
    takes_output,
    tells_what_was_seen,
    write,
)


@score.command(
    "crbo",
    cls=DeclaredCommand,
    declared=[Declared("equipoise.measures.rank_overlap.crbo"), Declared(MEANS)],
    epilog=samples("--run", "--ids"),
)
@INTERVALS
@click.option(
    "--run",
    "pairs",
    nargs=2,
    multiple=True,
    required=True,
    type=FILE,
    metavar="ORIGINAL COUNTERFACTUAL",
    help="Two runs of one system, on the collection and on its counterfactual; repeat it for each system.",
)
@click.option(
    "--ids",
    type=FILE,
    help="CSV of document,counterfactual: the ids of each document in both collections.",
)
@click.option(
    "--suffix", default="", help="What every counterfactual id has behind that of its original."
)
@takes_output
def score_crbo(
    pairs: tuple[tuple[Path, Path], ...],
    ids: Any,
    suffix: str,
    output: Any,
    force: bool,
    **options: Any,
) -> None:
    """CRBO of runs on a collection and on its counterfactual, per topic, and their means with an empty topic."""
    refuse_outputs(
        {"-o": (output, SCORES)}, [*(file for pair in pairs for file in pair), ids], force=force
    )
    import pandas as pd

    from equipoise.loaders.trec import read_run
    from equipoise.measures.rank_overlap import crbo
    from equipoise.problems import together
    from equipoise_cli.loaders.held_files import read_document_ids, run_names

    if ids is not None and suffix:
        raise click.UsageError("--ids and --suffix both say which document is which: give one")
    names = run_names([original for original, _ in pairs])
    reads: list[Any] = [
        partial(read_run, file, name)
        for name, pair in zip(names, pairs, strict=True)
        for file in pair
    ]
    *tables, known = together(
        [*reads, partial(read_document_ids, ids) if ids is not None else dict]
    )
    original, counterfactual = (pd.concat(tables[side::2], ignore_index=True) for side in (0, 1))
    document = counterfactual["document"]
    counterfactual["document"] = (
        document.map(known).fillna(document) if known else document.str.removesuffix(suffix)
    )
    with_ends = ends_of_means(options)
    with tells_what_was_seen(options["least_seen"]):
        table = crbo(original, counterfactual, **options)
    write({output: with_ends(table)})
