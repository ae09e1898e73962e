"""Score the citations of answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from equipoise.errors import plain
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
    show_seen,
    takes_output,
    write,
)
from equipoise_cli.tables import axes, check_figure, drawn

ATTRIBUTION = "equipoise.measures.attribution"


@score.command(
    "attribution",
    cls=DeclaredCommand,
    declared=[
        Declared(f"{ATTRIBUTION}.score_attribution", flags={"citation_style": "--citations"}),
        Declared(f"{ATTRIBUTION}.verdicts", only=("difference", "least_read")),
    ],
    epilog=samples("FILE"),
)
@click.argument("answers", nargs=-1, required=True, metavar="[NAME=]FILE...")
@click.option(
    "--by",
    multiple=True,
    metavar="KEY",
    help="Key of the log, such as model, whose values are scored separately; repeatable.",
)
@click.option("--qrels", type=FILE, help="Which documents are relevant, for files of TREC.")
@click.option(
    "--authors",
    nargs=2,
    default=("", ""),
    metavar="RELEVANT OTHER",
    help="Authors of the relevant and of the other documents, for files of TREC.",
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
    least_read: float,
    **options: Any,
) -> Any:
    """Score citations in answers, and how they change with the named authors.

    A FILE may be a folder of files. Each line of a .jsonl file is one answer with the keys:

    \b
    question
    mode              what the model was told about the authors: Vanilla, Informed,
                      CF-informed, or two of them as X/Y
    relevant_author   actual author of the relevant documents, the same in every mode
    nonrelevant_author  actual author of the other documents
    answer            text with citations
    relevant          numbers of the relevant documents
    documents         number of documents shown (optional)
    gold              correct answers (optional)
    citations         [{"document": 2, "probability": 0.9}] (optional)

    In files of TREC RAG, LangChain, LlamaIndex, RAGAS or OpenAI, each file contains the answers of
    one mode (Informed=run.jsonl; the default is Vanilla). Any other NAME is the run, such as the
    model (gpt=a.jsonl llama=b.jsonl). CAS compares Informed with Vanilla, and CAB compares Informed
    with CF-informed. AC is the mean probability of citations. The last lines, on standard error,
    give one verdict per CAB, or the required number of questions.
    """  # noqa: D301 - click reads a backspace as: leave these lines as they are
    check_figure(figure)  # before anything is read
    from equipoise_cli.loaders.rag_answers import answer_files, paths

    outputs = {"-o": (output, SCORES), "--figure": (figure, DRAWING)}
    refuse_outputs(outputs, [*paths(answers), qrels], force=force)
    if authors[0] and authors[0] == authors[1]:
        raise click.BadParameter(f"--authors must be two different names, got {authors[0]!r} twice")
    import pandas as pd

    from equipoise.measures import attribution
    from equipoise_cli.cluster import cluster as connect
    from equipoise_cli.cluster import run_each

    by, favoured = options["by"], options["favoured"]
    style = options.pop("citation_style")
    files = answer_files(answers)
    tasks = [(mode, path, qrels, authors, fields, by, style) for _, mode, path in files]
    with connect(cluster) as executor:
        parts = run_each(_score_file, tasks, executor, "file")
    parts_of_runs: dict[str, list[Any]] = {}
    for (run, _, _), part in zip(files, parts, strict=True):
        parts_of_runs.setdefault(run, []).append(part)
    tables_of_runs = [
        attribution.attribution_rows(parts_of_run, run=run, **options)
        for run, parts_of_run in parts_of_runs.items()
    ]
    show_seen(*tables_of_runs)
    scores = pd.concat(tables_of_runs, ignore_index=True)
    names = ("run", *by) if len(parts_of_runs) > 1 else by
    tables = {output: scores}
    if figure is not None:
        tables[figure] = _figure_of_bias(scores, names, figure, favoured, difference, least_read)
    write(tables)
    # Last, where a reader of the terminal looks first.
    sentences = attribution.verdicts(
        scores,
        by=names,
        favoured=favoured,
        level=options["level"],
        difference=difference,
        least_read=least_read,
    )
    for sentence in sentences:
        click.echo(plain(sentence), err=True)
    return scores


def _score_file(
    mode: str, path: Path, qrels: Any, authors: Any, fields: str, by: Any, style: str
) -> Any:
    """Score the answers of one file; a task of a folder."""
    from equipoise.measures.attribution import scored_answers
    from equipoise_cli.loaders.rag_answers import read_answer_files, with_keys

    # A file needs no name here, and its own may contain the sign.
    table = read_answer_files([f"{mode}={path}" if mode else str(path)], qrels, authors, fields)
    return scored_answers(with_keys(table, by), by, style)


def _figure_of_bias(scores: Any, by: tuple[str, ...], path: Path, *options: Any) -> bytes:
    """Each CAB with its interval, as the bytes of a file."""
    from equipoise.measures import attribution
    from equipoise_cli.figures import attribution_bias

    rows = attribution.bias_rows(scores, by)
    _, ax = axes(figsize=(7, 1.3 + 0.35 * len(rows)))
    return drawn(attribution_bias(ax, rows, *options), path, "CAB")
