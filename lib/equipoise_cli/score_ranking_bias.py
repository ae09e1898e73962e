"""Score the gender bias of ranked lists."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from equipoise.errors import Note, listed
from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import SCORES, refuse_outputs
from equipoise_cli.score import score
from equipoise_cli.score_gfr import ORDER
from equipoise_cli.shared import (
    CLUSTER,
    FILE,
    INTERVALS,
    MEANS,
    ends_of_means,
    samples,
    show_seen,
    takes_output,
    takes_runs,
    write,
)

BIAS = "equipoise.measures.ranking_bias"


@score.command(
    "ranking-bias",
    cls=DeclaredCommand,
    declared=[
        Declared(
            f"{BIAS}.score_ranking_bias",
            without=("background", "undefined"),
            flags={"cutoffs": "--cutoff"},
        ),
        Declared(f"{BIAS}.count_terms"),
        ORDER,
        Declared(MEANS, needs="intervals"),
    ],
    epilog=samples("--run", "--documents", "--terms"),
)
@INTERVALS
@takes_runs
@click.option(
    "--documents",
    required=True,
    help=(
        "Collection, as .jsonl with id and text or as lines of id, tab and text. The files may be "
        "compressed (.gz) or in a folder."
    ),
)
@click.option(
    "--terms", required=True, type=FILE, help="Group-representative terms, a CSV of term,group."
)
@click.option(
    "--background",
    default="collection",
    help=(
        "Background set of NFaiRR: the whole collection, own (the documents of the same ranking), "
        "or a run."
    ),
)
@takes_output
@CLUSTER
@fails_on_conditions
def score_ranking_bias(
    runs: Any,
    documents: str,
    terms: Path,
    background: str,
    output: Any,
    force: bool,
    cluster: Any,
    tokens: Any,
    order: Any,
    **options: Any,
) -> Any:
    """Score rankings by NFaiRR, FaiRR, TED and TExFAIR.

    There is one row per topic; the means over topics have an empty topic.
    """
    refuse_outputs({"-o": (output, SCORES)}, [*runs, documents, terms, background], force=force)
    import pandas as pd

    from equipoise.loaders.documents import document_files
    from equipoise.loaders.gender_terms import read_terms
    from equipoise.loaders.trec import read_run, read_runs, run_files
    from equipoise.measures import ranking_bias
    from equipoise_cli.cluster import cluster as connect
    from equipoise_cli.cluster import run_each

    pairs = read_terms(terms).itertuples(index=False, name=None)
    groups = ranking_bias.TermGroups.from_pairs(pairs)
    if groups.shared:
        note = f"{listed(groups.shared)} in more than one group of {terms}: counted for each"
        warnings.warn(note, Note, 1)
    files = [file for run in runs for file in run_files(run)]
    lists = read_runs(files, order=order)
    options["background"] = background
    needed_ids = None  # all of the collection
    if background != "collection":
        # Terms are counted in what is ranked, and in the background run if there is one.
        needed_ids = lists["document"]
        if background != "own":
            options["background"] = read_run(background, order=None)
            needed_ids = pd.concat([needed_ids, options["background"]["document"]])
        needed_ids = pd.Index(needed_ids.unique(), dtype="str")
    parts = document_files(documents) if Path(documents).is_dir() else [documents]
    shared = {"terms": groups.terms, "tokens": tokens, "documents": needed_ids}
    with connect(cluster) as client:
        tasks = [(str(part),) for part in parts]
        counts = ranking_bias.joined(run_each(_count_file, tasks, client, "file", **shared))
    with_ends = ends_of_means(options)
    scores = ranking_bias.score_ranking_bias(lists, counts, groups, **options)
    show_seen(scores)
    scores = with_ends(scores)
    write({output: scores})
    return scores


def _count_file(source: str, *, terms: Any, tokens: Any, documents: Any) -> Any:
    """Count the terms in a file of documents, of all or of those named."""
    from equipoise.arrays import places
    from equipoise.loaders.documents import document_tables
    from equipoise.measures.ranking_bias import count_terms

    tables = document_tables(source)
    if documents is not None:
        tables = (table[places(table["document"], documents) >= 0] for table in tables)
    return count_terms(tables, terms, tokens=tokens)
