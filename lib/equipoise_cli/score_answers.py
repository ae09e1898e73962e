"""Score the citations of answers: how they change with named authors, and the shares of sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from equipoise_cli.declared import Declared
from equipoise_cli.scoring import CLUSTER, Scored, joined, run_each, scoring, workers
from equipoise_cli.shared import FILE, TARGET, takes_output
from equipoise_cli.tables import axes, drawn

ANSWERS = click.argument("answers", nargs=-1, required=True, metavar="[NAME=]FILE...")
MAP = click.option(
    "--map",
    "fields",
    default="",
    metavar="FIELD=PATH,...",
    help="Paths of question, answer, documents, sources, relevant and citations in answers of "
    "another format: answer=response,documents=docs[].id.",
)


# --- attribution ----------------------------------------------------------------------------------


@scoring(
    "attribution",
    [
        ANSWERS,
        click.option(
            "--by",
            multiple=True,
            metavar="KEY",
            help="Key of the log, such as model, whose values are scored separately; repeatable.",
        ),
        click.option("--qrels", type=FILE, help="Which documents are relevant, for files of TREC."),
        click.option(
            "--authors",
            nargs=2,
            default=("", ""),
            metavar="RELEVANT OTHER",
            help="Authors of the relevant and of the other documents, for files of TREC.",
        ),
        MAP,
        click.option("--figure", type=TARGET, help="Figure of CAB to draw, .svg, .png or .pdf."),
        takes_output,
        CLUSTER,
    ],
    declared=[
        Declared(
            "equipoise.measures.attribution.score_attribution",
            flags={"citation_style": "--citations"},
        ),
        Declared("equipoise.measures.attribution.verdicts", only=("difference",)),
    ],
    formats=["FILE"],
)
def score_attribution(
    answers: tuple[str, ...],
    qrels: Any,
    authors: Any,
    fields: str,
    figure: Any,
    cluster: Any,
    difference: float,
    **options: Any,
) -> Scored:
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
    if authors[0] and authors[0] == authors[1]:
        raise click.BadParameter(f"--authors must be two different names, got {authors[0]!r} twice")
    from equipoise.measures import attribution
    from equipoise_cli.formats.rag_answers import answer_files

    by, favoured = options["by"], options["favoured"]
    style, first_number = options.pop("citation_style"), options.pop("first_number")
    files = answer_files(answers)
    tasks = [
        (mode, path, qrels, authors, fields, by, style, first_number) for _, mode, path in files
    ]
    with workers(cluster) as client:
        parts = run_each(_score_file, tasks, client, "file")
    parts_of_runs: dict[str, list[Any]] = {}
    for (run, _, _), part in zip(files, parts, strict=True):
        parts_of_runs.setdefault(run, []).append(part)
    scores = joined(
        [
            attribution.attribution_rows(parts_of_run, run=run, **options)
            for run, parts_of_run in parts_of_runs.items()
        ]
    )
    names = ("run", *by) if len(parts_of_runs) > 1 else by
    outputs: dict[Path | None, Any] = {}
    if figure is not None:
        outputs[figure] = _figure_of_bias(scores, names, figure, favoured, difference)
    sentences = attribution.verdicts(
        scores,
        by=names,
        favoured=favoured,
        level=options["level"],
        difference=difference,
    )
    return Scored(scores, outputs, sentences)


def _score_file(
    mode: str,
    path: Path,
    qrels: Any,
    authors: Any,
    fields: str,
    by: Any,
    style: str,
    first_number: Any,
) -> Any:
    """Score the answers of one file; a task of a folder."""
    from equipoise.measures.attribution import scored_answers
    from equipoise_cli.formats.rag_answers import read_answer_files, with_keys

    # A file needs no name here, and its own may contain the sign.
    table = read_answer_files([f"{mode}={path}" if mode else str(path)], qrels, authors, fields, by)
    return scored_answers(with_keys(table, by), by, style, first_number)


def _figure_of_bias(scores: Any, by: tuple[str, ...], path: Path, *options: Any) -> bytes:
    """Each CAB with its interval, as the bytes of a file."""
    from equipoise.measures import attribution
    from equipoise_cli.figures import attribution_bias

    rows = attribution.bias_rows(scores, by)
    _, ax = axes(figsize=(7, 1.3 + 0.35 * len(rows)))
    return drawn(attribution_bias(ax, rows, *options), path, "CAB")


# --- shares of sources ----------------------------------------------------------------------------


@scoring(
    "citations",
    [
        ANSWERS,
        click.option(
            "--by",
            multiple=True,
            metavar="KEY",
            help="Key of the answers, such as model, whose values are scored separately; "
            "repeatable.",
        ),
        click.option(
            "--source-key",
            default="",
            metavar="KEY",
            help="Key of a document or its metadata with the source.  [source, url, ...]",
        ),
        click.option(
            "--sources", type=FILE, help="Source of each document, a CSV of document,source."
        ),
        click.option(
            "--qrels", type=FILE, help="Relevance judgements, if the answers contain none."
        ),
        MAP,
        takes_output,
    ],
    declared=[
        Declared(
            "equipoise.measures.citations.citation_share", flags={"citation_style": "--citations"}
        ),
        Declared("equipoise.measures.citations.citation_verdicts", only=("difference",)),
    ],
    formats=["FILE of LangChain", "FILE of RAGAS", "--sources"],
)
def score_citations(
    answers: tuple[str, ...],
    by: tuple[str, ...],
    source_key: str,
    sources: Any,
    qrels: Any,
    fields: str,
    difference: float,
    **options: Any,
) -> Scored:
    """Test whether a source is cited more than its share of the retrieved documents.

    A FILE contains answers and the documents that were retrieved for them, as JSON Lines or one
    JSON list. The command recognises the fields of LangChain (answer, context), LlamaIndex
    (response, source_nodes), RAGAS (response, retrieved_contexts), OpenAI (messages, context) and
    TREC. --map names other fields.

    A citation is the number of a retrieved document, or a link to it. NAME is the
    run, such as the model (gpt=a.jsonl llama=b.jsonl); files without a name are one run. The output
    has one row per question, source and measure. Rows with an empty topic are means over questions,
    with intervals. The last lines, on standard error, give one verdict per source and comparison.
    """
    if source_key and sources is not None:
        raise click.UsageError("--source-key and --sources exclude each other; give one of them")
    import pandas as pd

    from equipoise.measures.citations import citation_share, citation_verdicts
    from equipoise_cli.formats.rag_answers import read_answers_with_sources

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
    del table  # the scores of many answers need its memory
    scores = joined(parts)
    if len(parts) > 1:
        # The means of all runs are last, where a reader of the terminal looks first.
        scores = pd.concat([scores[scores["topic"] != ""], scores[scores["topic"] == ""]])
    names = ("run", *by) if has_names else by
    sentences = citation_verdicts(scores, names, difference=difference, level=options["level"])
    return Scored(scores, verdicts=sentences)
