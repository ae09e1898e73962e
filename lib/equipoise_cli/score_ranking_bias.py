"""Score the gender bias of ranked lists."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import click

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
    samples,
    takes_output,
    tells_what_was_seen,
    write,
)

BIAS = "equipoise.measures.ranking_bias"
ORDER = Declared("equipoise.loaders.trec.read_run", only=("order",))


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
@click.option(
    "--run", "runs", multiple=True, required=True, type=FILE, help="A run, or a folder; repeat it."
)
@click.option(
    "--documents",
    required=True,
    help=(
        "The collection: .jsonl of id and text, lines of id, tab and text, a folder of such, "
        "or an ir_datasets name."
    ),
)
@click.option("--terms", required=True, type=FILE, help="Representative terms, as term,group.")
@click.option(
    "--background",
    default="collection",
    help=(
        "Background set of NFaiRR: a run, the whole collection, or own, the documents of each "
        "list itself."
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
    """NFaiRR, FaiRR, TED, TExFAIR and ARB of ranked lists.

    There is a row per topic; their means have an empty topic.
    """
    refuse_outputs({"-o": (output, SCORES)}, [*runs, documents, terms, background], force=force)
    import pandas as pd

    from equipoise.loaders.gender_terms import read_terms
    from equipoise.loaders.trec import read_run, read_runs, run_files
    from equipoise.measures import ranking_bias
    from equipoise.problems import Note, listed, together
    from equipoise_cli.parquet_folders import cluster as connect
    from equipoise_cli.parquet_folders import count_parts

    files = list(chain.from_iterable(map(run_files, runs)))
    # All inputs are read before one is refused, so that the faults of all are told.
    reads: list[Any] = [partial(read_terms, terms), partial(read_runs, files, order=order)]
    if background in ("collection", "own"):  # a word, and no file to read
        reads.append(lambda: background)
    else:
        reads.append(partial(read_run, background, order=None))
    pairs, lists, options["background"] = together(reads)
    groups = ranking_bias.TermGroups.from_pairs(pairs.itertuples(index=False, name=None))
    if groups.shared:
        note = f"{listed(groups.shared)} in more than one group of {terms}: counted for each"
        warnings.warn(note, Note, 1)
    needed_ids = None  # all of the collection
    if background != "collection":
        # Terms are counted in what is ranked, and in the background run if there is one.
        id_columns = [lists["document"]]
        if background != "own":
            id_columns.append(options["background"]["document"])
        needed_ids = pd.concat(id_columns).unique()
    with connect(cluster) as executor:
        counts = count_parts(documents, groups.terms, tokens, needed_ids, executor)
    with_ends = ends_of_means(options)
    with tells_what_was_seen(options["least_seen"]):
        table = ranking_bias.score_ranking_bias(lists, counts, groups, **options)
    scores = with_ends(table)
    write({output: scores})
    return scores
