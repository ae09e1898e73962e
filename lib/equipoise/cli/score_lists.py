"""Commands that score ranked lists and answers."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import click

from equipoise.cli.declared import Declared, DeclaredCommand
from equipoise.cli.outputs import SCORES, refuse_outputs
from equipoise.cli.score import score
from equipoise.cli.shared import CLUSTER, FILE, named, takes_output, write

BIAS = "equipoise.measures.ranking_bias"


@score.command(
    "ranking-bias",
    cls=DeclaredCommand,
    declared=[
        Declared(f"{BIAS}.score_ranking_bias", without=("background", "undefined"), flags={"cutoffs": "--cutoff"}),
        Declared(f"{BIAS}.count_terms"),
    ],
)
@click.option("--run", "runs", multiple=True, required=True, type=FILE, help="A run, or a folder; repeat it.")
@click.option(
    "--documents",
    required=True,
    help="The collection: .jsonl with id and text, lines of id, tab and text, a folder, or an ir_datasets name.",
)
@click.option("--terms", required=True, type=FILE, help="Representative terms, as term,group.")
@click.option(
    "--background",
    default="collection",
    help="Background set of NFaiRR: a run, the whole collection, or own, the documents of each list itself.",
)
@takes_output
@CLUSTER
def score_ranking_bias(
    runs: Any,
    documents: str,
    terms: Path,
    background: str,
    output: Any,
    force: bool,
    cluster: Any,
    tokens: Any,
    **options: Any,
) -> None:
    """NFaiRR, FaiRR, TED, TExFAIR and ARB of ranked lists, per topic and on average (topic all)."""
    refuse_outputs({"-o": (output, SCORES)}, [*runs, documents, terms, background], force=force)
    import pandas as pd

    from equipoise.loaders.gender_terms import read_terms
    from equipoise.loaders.trec import read_run, read_runs, run_files
    from equipoise.measures import ranking_bias
    from equipoise.parquet_folders import cluster as connect
    from equipoise.parquet_folders import count_parts
    from equipoise.problems import Note, listed, together

    whole = background in ("collection", "own")
    reads: list[Any] = [
        partial(read_terms, terms),
        partial(read_runs, [file for run in runs for file in run_files(run)]),
    ]
    pairs, lists, *rest = together([*reads, *([] if whole else [partial(read_run, background)])])
    groups = ranking_bias.TermGroups.from_pairs(pairs.itertuples(index=False, name=None))
    if groups.shared:
        warnings.warn(f"{listed(groups.shared)} in more than one group of {terms}: counted for each", Note, 1)
    held = None if background == "collection" else pd.concat([table["document"] for table in (lists, *rest)]).unique()
    with connect(cluster) as executor:
        counts = count_parts(documents, groups.terms, tokens, held, executor)
    options["background"] = background if whole else rest[0]
    write({output: ranking_bias.score_ranking_bias(lists, counts, groups, **options)})


def _score_run(run: Path, arguments: dict[str, Any]) -> Any:
    """Score one run; a run is a task, so that its scores do not depend on what else is scored."""
    from equipoise.loaders.trec import read_run
    from equipoise.measures.gfr import gfr_table

    return gfr_table(read_run(run), **arguments)


@score.command("gfr", cls=DeclaredCommand, declared=[Declared("equipoise.measures.gfr.gfr_table")])
@click.option("--run", "runs", multiple=True, required=True, type=FILE, help="Run, or a folder of runs; repeatable.")
@click.option("--qrels", required=True, type=FILE, help="Relevance judgements, TREC or NTCIR.")
@click.option("--membership", "memberships", multiple=True, metavar="NAME=FILE", help="Group memberships; repeatable.")
@click.option("--target", "targets", multiple=True, metavar="NAME=FILE", help="Target distribution; repeatable.")
@click.option("--kind", "kinds", multiple=True, metavar="NAME=ordinal|nominal", help="Kind of groups; repeatable.")
@takes_output
@CLUSTER
def score_gfr(
    runs: Any,
    qrels: Path,
    memberships: Any,
    targets: Any,
    kinds: Any,
    output: Any,
    force: bool,
    cluster: Any,
    **options: Any,
) -> None:
    """ERR, iRBU, GF and GFR of ranked lists, per topic, and their means with an empty topic."""
    members, aims, sorts = named(memberships, "--membership"), named(targets, "--target"), named(kinds, "--kind")
    refuse_outputs({"-o": (output, SCORES)}, [*runs, qrels, *members.values(), *aims.values()], force=force)
    import pandas as pd

    from equipoise.loaders.fairweb import read_memberships, read_target
    from equipoise.loaders.trec import read_qrels, run_files
    from equipoise.parquet_folders import cluster as connect
    from equipoise.parquet_folders import run_each
    from equipoise.problems import together

    if not set(members) == set(aims) == set(sorts):
        raise click.UsageError("every attribute set needs a --membership, a --target and a --kind of its NAME")
    if wrong := sorted(set(sorts.values()) - {"ordinal", "nominal"}):
        raise click.BadParameter(f"--kind is ordinal or nominal; found {', '.join(wrong)}")
    files = [file for run in runs for file in run_files(run)]
    if len({file.name for file in files}) < len(files):
        raise click.BadParameter("two runs have the same file name; they could not be told apart in the output")

    def read_groups(name: str) -> Any:
        attribute = read_target(aims[name], name, sorts[name])  # type: ignore[arg-type]
        return attribute, read_memberships(members[name], attribute)

    reads: list[Any] = [partial(read_qrels, qrels), *(partial(read_groups, name) for name in aims)]
    options["qrels"], *groups = together(reads)
    options["attributes"] = {attribute.name: attribute for attribute, _ in groups}
    options["memberships"] = {attribute.name: table for attribute, table in groups}
    with connect(cluster) as executor:
        tables = run_each(_score_run, [(file, options) for file in files], executor, "run")
    write({output: pd.concat(tables, ignore_index=True)})


@score.command(
    "attribution", cls=DeclaredCommand, declared=[Declared("equipoise.measures.attribution.score_attribution")]
)
@click.argument("answers", type=FILE)
@click.option("--by", multiple=True, metavar="KEY", help="Score each value of this further key apart; repeatable.")
@takes_output
def score_attribution(answers: Path, output: Any, force: bool, **options: Any) -> None:
    """Precision and recall of the citations in ANSWERS, a .jsonl file, and how they change with the authors named.

    A line holds question, mode (Vanilla, Informed, CF-informed, or two of them as X/Y), relevant_author,
    nonrelevant_author, answer, relevant (document numbers), and optionally documents (how many were shown), gold
    (answers), citations ([{"document": 2, "probability": 0.9}]), and further keys. CAS compares Informed with Vanilla,
    CAB compares Informed with CF-informed; AC is the mean probability of citations.
    """
    refuse_outputs({"-o": (output, SCORES)}, [answers], force=force)
    from equipoise.files import stem
    from equipoise.loaders.answers import read_answers
    from equipoise.measures import attribution

    write({output: attribution.score_attribution(read_answers(answers), run=stem(answers), **options)})
