"""The command that says whether a source is cited more than its share."""

from __future__ import annotations

from typing import Any

import click

from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import SCORES, refuse_outputs
from equipoise_cli.score import score
from equipoise_cli.shared import FILE, MAP, samples, show_seen, takes_output, write

CITATIONS = "equipoise.measures.citations"


@score.command(
    "citations",
    cls=DeclaredCommand,
    declared=[
        Declared(f"{CITATIONS}.citation_share", flags={"citation_style": "--citations"}),
        Declared(f"{CITATIONS}.citation_verdicts", only=("difference",)),
    ],
    epilog=samples("FILE of LangChain", "FILE of RAGAS", "--sources"),
)
@click.argument("answers", nargs=-1, required=True, metavar="[MODE=]FILE...")
@click.option(
    "--by", multiple=True, metavar="KEY", help="Score each value of this key apart; repeatable."
)
@click.option(
    "--source-key",
    default="",
    metavar="KEY",
    help="Key of a document, or of its metadata, that has its source.  [source, url, ...]",
)
@click.option("--sources", type=FILE, help="Source of each document, a CSV of document,source.")
@click.option(
    "--qrels", type=FILE, help="Which documents are relevant, where the answers do not say it."
)
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
    **options: Any,
) -> Any:
    """Test whether a source is cited more than its share of the retrieved documents.

    A FILE has, in JSON Lines or one JSON list, answers with what was retrieved for them: of
    LangChain (answer, context), LlamaIndex (response, source_nodes), RAGAS (response,
    retrieved_contexts), OpenAI (messages, context), TREC, or with the fields of --map. The numbers
    in an answer are those of its documents, from 1. There is one row per question, source and
    measure; the means over questions, with intervals, have an empty topic. The last lines, on
    standard error, say of each source what its interval decides, or how many questions would.
    """
    if source_key and sources is not None:
        raise click.UsageError("--source-key and --sources both name sources: give one")
    from equipoise_cli.loaders.rag_answers import paths, run_name

    inputs = [*paths(answers), qrels, sources]
    refuse_outputs({"-o": (output, SCORES)}, inputs, force=force)
    from equipoise.errors import plain
    from equipoise.measures.citations import citation_share, citation_verdicts
    from equipoise_cli.loaders.rag_answers import read_answers_with_sources

    table = read_answers_with_sources(
        answers, qrels=qrels, fields=fields, source_key=source_key, sources=sources
    )
    by = options.pop("by")
    if table["mode"].nunique() > 1:
        # The same question is answered in each mode.
        by = (*by, "mode")
    scores = citation_share(table, by, run=run_name(answers), **options)
    show_seen(scores)
    write({output: scores})
    # Said last, where a reader of the terminal looks first.
    sentences = citation_verdicts(scores, by, difference=difference, level=options["level"])
    for sentence in sentences:
        click.echo(plain(sentence), err=True)
    return scores
