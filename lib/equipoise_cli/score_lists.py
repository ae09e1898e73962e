"""Commands that score ranked lists and answers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from itertools import chain
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
    INTERVALS,
    MAP,
    MEANS,
    TARGET,
    ends_of_means,
    named,
    named_files,
    samples,
    takes_output,
    tells_what_was_seen,
    write,
)
from equipoise_cli.tables import axes, check_figure, drawn

BIAS, ATTRIBUTION = "equipoise.measures.ranking_bias", "equipoise.measures.attribution"
ORDER = Declared("equipoise.loaders.trec.read_run", only=("order",))
# A run is ordered when it is read.
GFR = Declared(
    "equipoise.measures.gfr.gfr_table",
    without=("order",),
    flags={"similarities": "--divergences"},
)


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


def _refuse_without_membership(names: set[str]) -> None:
    """Refuse targets and kinds of attribute sets that have no memberships."""
    if names:
        raise click.UsageError(
            "every attribute set needs a --membership of its NAME; "
            f"none for {', '.join(sorted(names))}"
        )


def _refuse_kinds(kinds: Iterable[str]) -> None:
    """Refuse kinds of groups that there are none of."""
    wrong_kinds = sorted(set(kinds) - {"ordinal", "nominal"})
    if wrong_kinds:
        raise click.BadParameter(f"--kind is ordinal or nominal; found {', '.join(wrong_kinds)}")


def _score_run(run: Path, name: str, order: Any, arguments: dict[str, Any]) -> Any:
    """Score one run, and what was seen of it.

    A run is a task, so that its scores depend on nothing else.
    """
    from equipoise.coverage import gathered
    from equipoise.loaders.trec import read_run
    from equipoise.measures.gfr import gfr_table

    with gathered() as coverages:
        return gfr_table(read_run(run, name, order=order), **arguments), coverages


def _score_runs(
    files: list[Path], names: list[str], order: Any, arguments: dict[str, Any], executor: Any
) -> Any:
    """The scores of all runs in one table, each run scored by itself."""
    import pandas as pd

    from equipoise.coverage import judge
    from equipoise_cli.parquet_folders import run_each

    tasks = [(file, name, order, arguments) for file, name in zip(files, names, strict=True)]
    tables = []
    for table, coverages in run_each(_score_run, tasks, executor, "run"):
        tables.append(table)
        # What a run showed may have been gathered elsewhere: here it joins that of the others.
        judge(coverages)
    return pd.concat(tables, ignore_index=True)


def _by_set(groups: Iterable[tuple[Any, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Memberships and attribute sets by name; of two files with sets of one name none is taken."""
    memberships, sets = {}, {}
    for table, attribute_set in groups:
        name = attribute_set.name
        if name in sets:
            raise click.UsageError(f"two files of --membership have a set {name}: give NAME=FILE")
        sets[name] = attribute_set
        memberships[name] = table
    return memberships, sets


@score.command(
    "gfr",
    cls=DeclaredCommand,
    declared=[ORDER, GFR, Declared(MEANS, needs="intervals")],
    epilog=samples(
        "--run",
        "--qrels",
        "--membership NAME=",
        "--membership, by shares",
        "--target NAME=",
        "--attributes",
    ),
)
@INTERVALS
@click.option(
    "--run",
    "runs",
    multiple=True,
    required=True,
    type=FILE,
    help="Run, or a folder of runs; repeatable.",
)
@click.option(
    "--qrels",
    required=True,
    type=FILE,
    help="Judgements, a TREC or NTCIR file or a name of ir_datasets.",
)
@click.option(
    "--membership",
    "memberships",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Group memberships; without NAME, each column of names is a set called like it; "
    "repeatable.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME=FILE|group:number,...",
    help="Target distribution, a file or numbers; repeatable.  [uniform]",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="NAME=ordinal|nominal",
    help="Kind of groups; repeatable.  [nominal]",
)
@click.option(
    "--attributes", type=FILE, help="Attribute sets, a YAML file, instead of --target and --kind."
)
@takes_output
@CLUSTER
@fails_on_conditions
def score_gfr(
    runs: Any,
    qrels: Path,
    memberships: Any,
    targets: Any,
    kinds: Any,
    attributes: Any,
    output: Any,
    force: bool,
    cluster: Any,
    order: Any,
    **options: Any,
) -> Any:
    """ERR, iRBU, GF and GFR of ranked lists, per topic, and their means with an empty topic."""
    files_of_groups = named_files(memberships, "--membership")
    target_of = named(targets, "--target")
    kind_of: Any = named(kinds, "--kind")  # of two words, which is checked below
    inputs = [*runs, qrels, *(path for _, path in files_of_groups), *target_of.values(), attributes]
    refuse_outputs({"-o": (output, SCORES)}, inputs, force=force)
    from equipoise.attributes import read_attributes
    from equipoise.loaders.groups import read_sets
    from equipoise.loaders.trec import run_files, run_names
    from equipoise.problems import together
    from equipoise.tidy import tidy_qrels
    from equipoise_cli.parquet_folders import cluster as connect

    _refuse_kinds(kind_of.values())
    files = list(chain.from_iterable(map(run_files, runs)))
    sets = read_attributes(attributes) if attributes else {}
    reads: list[Any] = [partial(run_names, files), partial(tidy_qrels, qrels)]
    for name, path in files_of_groups:
        reads.append(partial(read_sets, path, name, kind_of, target_of, sets))
    names, options["qrels"], *groups = together(reads)
    # With them the options are the arguments of the measure, and a task needs no other.
    options["memberships"], options["attributes"] = _by_set(chain.from_iterable(groups))
    _refuse_without_membership({*target_of, *kind_of} - options["attributes"].keys())
    for attribute_set in options["attributes"].values():
        click.echo(plain(f"seen: {attribute_set}"), err=True)
    with_ends = ends_of_means(options)
    with tells_what_was_seen(options["least_seen"]), connect(cluster) as executor:
        scores = with_ends(_score_runs(files, names, order, options, executor))
    write({output: scores})
    return scores


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
