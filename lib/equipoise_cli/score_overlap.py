"""The command that scores how far rankings of a collection and its counterfactual overlap."""

from __future__ import annotations

from functools import partial
from itertools import chain
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
    help=(
        "Two runs of one system, on the collection and on its counterfactual; "
        "repeat it for each system."
    ),
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
    """CRBO of runs on a collection and on its counterfactual.

    There is a row per topic; their means have an empty topic.
    """
    # Neither run of a pair may be written over.
    files = list(chain.from_iterable(pairs))
    refuse_outputs({"-o": (output, SCORES)}, [*files, ids], force=force)
    import pandas as pd

    from equipoise.loaders.trec import read_run, run_names
    from equipoise.measures.rank_overlap import crbo
    from equipoise.problems import together
    from equipoise_cli.loaders.held_files import read_document_ids

    if ids is not None and suffix:
        raise click.UsageError("--ids and --suffix both say which document is which: give one")
    names = run_names([original for original, _ in pairs])
    reads: list[Any] = []
    for name, pair in zip(names, pairs, strict=True):
        # Both runs of a system have its name, so that they are compared.
        reads += [partial(read_run, file, name) for file in pair]
    reads.append(dict if ids is None else partial(read_document_ids, ids))
    *runs, original_of = together(reads)
    original = pd.concat(runs[0::2], ignore_index=True)
    counterfactual = pd.concat(runs[1::2], ignore_index=True)
    document = counterfactual["document"]
    if original_of:
        # A document of the counterfactual collection may be one of the original, as it was.
        counterfactual["document"] = document.map(original_of).fillna(document)
    else:
        counterfactual["document"] = document.str.removesuffix(suffix)
    with_ends = ends_of_means(options)
    with tells_what_was_seen(options["least_seen"]):
        table = crbo(original, counterfactual, **options)
    write({output: with_ends(table)})
