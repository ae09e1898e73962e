"""Score the exposure that rankings give to groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from equipoise.errors import plain
from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import SCORES, refuse_outputs
from equipoise_cli.score import score
from equipoise_cli.score_gfr import MEMBERSHIPS, ORDER, read_memberships
from equipoise_cli.shared import (
    FILE,
    MISSING,
    named_files,
    samples,
    show_seen,
    takes_output,
    takes_runs,
    write,
)


@score.command(
    "exposure",
    cls=DeclaredCommand,
    declared=[ORDER, Declared("equipoise.measures.exposure.exposure_over_relevance")],
    epilog=samples("--run", "--qrels", "--membership NAME=", "--membership, by shares"),
)
@takes_runs
@click.option("--qrels", required=True, type=FILE, help="Judgements, a TREC, NTCIR or BEIR file.")
@MEMBERSHIPS
@MISSING
@takes_output
@fails_on_conditions
def score_exposure(
    runs: Any,
    qrels: Path,
    memberships: Any,
    missing: Any,
    output: Any,
    force: bool,
    order: Any,
    **options: Any,
) -> Any:
    """Score which groups rankings give less exposure than their share of the relevant documents.

    There is one row per run and group: 1 is the exposure that the group would receive if relevant
    documents of one level and topic were exposed alike. The last lines, on standard error, say who
    is unfair to whom.
    """
    files_of_groups = named_files(memberships, "--membership")
    inputs = [*runs, qrels, *(path for _, path in files_of_groups)]
    refuse_outputs({"-o": (output, SCORES)}, inputs, force=force)
    if not files_of_groups:
        raise click.UsageError("exposure is of groups: give --membership")
    from equipoise.loaders.trec import read_qrels, read_runs, run_files
    from equipoise.measures.exposure import exposure_over_relevance, exposure_verdicts

    files = [file for run in runs for file in run_files(run)]
    groups, sets = read_memberships(files_of_groups, missing)
    rankings = read_runs(files, order=order, depth=options["cutoff"])
    scores = exposure_over_relevance(rankings, read_qrels(qrels), groups, sets, **options)
    show_seen(scores)
    write({output: scores})
    # Said last, where a reader of the terminal looks first.
    for sentence in exposure_verdicts(scores, level=options["level"]):
        click.echo(plain(sentence), err=True)
    return scores
