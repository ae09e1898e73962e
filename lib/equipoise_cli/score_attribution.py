"""Score the citations of answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from equipoise.problems import plain
from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import DRAWING, SCORES, refuse_outputs
from equipoise_cli.score import score
from equipoise_cli.shared import (
    CLUSTER,
    FILE,
    MAP,
    TARGET,
    samples,
    takes_output,
    tells_what_was_seen,
    write,
)
from equipoise_cli.tables import axes, check_figure, drawn

ATTRIBUTION = "equipoise.measures.attribution"


@score.command(
    "attribution",
    cls=DeclaredCommand,
    declared=[
        Declared(f"{ATTRIBUTION}.score_attribution", flags={"citation_style": "--citations"}),
        Declared(f"{ATTRIBUTION}.verdicts", only=("difference",)),
    ],
    epilog=samples("FILE"),
)
@click.argument("answers", nargs=-1, required=True, metavar="[MODE=]FILE...")
@click.option(
    "--by",
    multiple=True,
    metavar="KEY",
    help="Score each value of this further key apart; repeatable.",
)
@click.option(
    "--qrels", type=FILE, help="Which documents are relevant, for files of TREC and ALCE."
)
@click.option(
    "--authors",
    nargs=2,
    default=("", ""),
    metavar="RELEVANT OTHER",
    help="Authors, for such files.",
)
@MAP
@click.option("--figure", type=TARGET, help="Figure of CAB to draw, .svg, .png or .pdf.")
@takes_output
@CLUSTER
@fails_on_conditions
def score_attribution(
    answers: tuple[str, ...],
    qrels: Any,
    authors: Any,
    fields: str,
    output: Any,
    force: bool,
    figure: Any,
    cluster: Any,
    difference: float,
    **options: Any,
) -> Any:
    """Precision and recall of the citations in answers, and how they change with the authors named.

    A file may be a folder of files, which are read one by one. A line of a .jsonl file holds
    question, mode (Vanilla, Informed, CF-informed, or two of them as X/Y), relevant_author and
    nonrelevant_author (the actual ones, the same in every mode: mode says what the model was told),
    answer, relevant (document numbers), and optionally documents (how many were shown), gold
    (answers), citations ([{"document": 2, "probability": 0.9}]), and further keys.
    Files of TREC (RAG, RAGTIME, iKAT 2025), of ALCE, and of LangChain, LlamaIndex, RAGAS or OpenAI
    with what was retrieved, hold the answers of one MODE each (Informed=run.jsonl; Vanilla unless
    stated). CAS compares Informed with Vanilla, CAB compares
    Informed with CF-informed; AC is the mean probability of citations. The last lines, on standard
    error, say of each CAB whether its interval decides it, and else how many questions would.
    """
    check_figure(figure)  # before anything is read
    from equipoise_cli.loaders.rag_answers import paths

    outputs = {"-o": (output, SCORES), "--figure": (figure, DRAWING)}
    refuse_outputs(outputs, [*paths(answers), qrels], force=force)
    if authors[0] and authors[0] == authors[1]:
        raise click.BadParameter(f"--authors are two different ones; found {authors[0]!r} twice")
    from equipoise.measures import attribution
    from equipoise_cli.parquet_folders import cluster as connect

    by, favoured = options["by"], options["favoured"]
    with tells_what_was_seen(options["least_seen"]), connect(cluster) as executor:
        scores = _score_answers(answers, qrels, authors, fields, options, executor)
    tables = {output: scores}
    if figure is not None:
        tables[figure] = _figure_of_bias(scores, by, favoured, difference, figure)
    write(tables)
    # Said last, where a reader of the terminal looks first.
    sentences = attribution.verdicts(
        scores, by=by, favoured=favoured, level=options["level"], difference=difference
    )
    for sentence in sentences:
        click.echo(plain(sentence), err=True)
    return scores


def _score_answers(
    answers: tuple[str, ...],
    qrels: Any,
    authors: Any,
    fields: str,
    options: dict[str, Any],
    executor: Any,
) -> Any:
    """Score answers: together, or file by file where there is a folder or a cluster."""
    from equipoise.measures import attribution
    from equipoise.measures.attribution.scores import EACH, attribution_rows
    from equipoise_cli import parquet_folders
    from equipoise_cli.loaders.rag_answers import paths, read_answer_files, run_name

    run = run_name(answers)
    # A folder may hold more answers than memory does; of each, only the scores come back.
    has_folder = any(Path(path).is_dir() for path in paths(answers))
    if executor is None and not has_folder:
        table = read_answer_files(answers, qrels, authors, fields)
        return attribution.score_attribution(table, run=run, **options)
    table_options = options.copy()
    style = table_options.pop("citation_style")
    answer_options = {name: table_options.pop(name) for name in EACH}
    scores_of_files = parquet_folders.score_answers(
        answers, qrels, authors, options["by"], style, answer_options, executor, fields
    )
    return attribution_rows(scores_of_files, run=run, **table_options)


def _figure_of_bias(
    scores: Any, by: tuple[str, ...], favoured: str, difference: float, path: Path
) -> bytes:
    """Each CAB with its interval, as the bytes of a file."""
    from equipoise.measures import attribution
    from equipoise_studies.plots.comparisons import attribution_bias

    rows = attribution.bias_rows(scores, by)
    _, ax = axes(figsize=(7, 1.3 + 0.35 * len(rows)))
    return drawn(attribution_bias(ax, rows, favoured, difference), path, "CAB")
