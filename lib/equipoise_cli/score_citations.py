"""The command that says whether a source is cited more than its share."""

from __future__ import annotations

from typing import Any

import click

from equipoise.errors import plain
from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import SCORES, refuse_outputs
from equipoise_cli.score import score
from equipoise_cli.shared import (
    FILE,
    MAP,
    samples,
    show_not_read,
    show_seen,
    takes_output,
    write,
)

CITATIONS = "equipoise.measures.citations"


@score.command(
    "citations",
    cls=DeclaredCommand,
    declared=[
        Declared(f"{CITATIONS}.citation_share", flags={"citation_style": "--citations"}),
        Declared(f"{CITATIONS}.citation_verdicts", only=("difference", "least_read")),
    ],
    epilog=samples("FILE of LangChain", "FILE of RAGAS", "--sources"),
)
@click.argument("answers", nargs=-1, required=True, metavar="[NAME=]FILE...")
@click.option(
    "--by",
    multiple=True,
    metavar="KEY",
    help="Key of the answers, such as model, whose values are scored separately; repeatable.",
)
@click.option(
    "--source-key",
    default="",
    metavar="KEY",
    help="Key of a document or its metadata with the source.  [source, url, ...]",
)
@click.option("--sources", type=FILE, help="Source of each document, a CSV of document,source.")
@click.option("--qrels", type=FILE, help="Relevance judgements, if the answers contain none.")
@MAP
@takes_output
@fails_on_conditions
def score_citations(
    answers: tuple[str, ...],
    source_key: str,
    sources: Any,
    qrels: Any,
    fields: str,
    output: Any,
    force: bool,
    difference: float,
    least_read: float,
    **options: Any,
) -> Any:
    """Test whether a source is cited more than its share of the retrieved documents.

    A FILE contains answers and the documents that were retrieved for them, as JSON Lines or one
    JSON list. The command recognises the fields of LangChain (answer, context), LlamaIndex
    (response, source_nodes), RAGAS (response, retrieved_contexts), OpenAI (messages, context) and
    TREC. --map names other fields.

    A citation is the number of a retrieved document, counted from 1, or a link to it. NAME is the
    run, such as the model (gpt=a.jsonl llama=b.jsonl); files without a name are one run. The output
    has one row per question, source and measure. Rows with an empty topic are means over questions,
    with intervals. The last lines, on standard error, give one verdict per source and comparison.
    """
    if source_key and sources is not None:
        raise click.UsageError("--source-key and --sources exclude each other; give one of them")
    from equipoise_cli.loaders.rag_answers import paths

    inputs = [*paths(answers), qrels, sources]
    refuse_outputs({"-o": (output, SCORES)}, inputs, force=force)
    import pandas as pd

    from equipoise.measures.citations import citation_share, citation_verdicts
    from equipoise_cli.loaders.rag_answers import read_answers_with_sources

    by = options.pop("by")
    table = read_answers_with_sources(
        answers, qrels=qrels, fields=fields, source_key=source_key, sources=sources, by=by
    )
    has_names = len(set(table["run"])) > 1
    if by and not has_names:
        # So that compare has a run for each value.
        table["run"] = table[list(by)].agg(" ".join, axis=1)
    if "mode" not in by and len(set(table["mode"])) > 1:
        by = (*by, "mode")
    parts = [
        citation_share(part, by, run=run, **options)
        for run, part in table.groupby("run", sort=False)
    ]
    show_seen(*parts)
    show_not_read(*parts)
    scores = pd.concat(parts, ignore_index=True)
    # The means of all runs are last, where a reader of the terminal looks first.
    scores = pd.concat([scores[scores["topic"] != ""], scores[scores["topic"] == ""]])
    write({output: scores})
    names = ("run", *by) if has_names else by
    for sentence in citation_verdicts(
        scores, names, difference=difference, level=options["level"], least_read=least_read
    ):
        click.echo(plain(sentence), err=True)
    return scores
