"""Commands that score ranked lists and answers."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.declared import Declared, DeclaredCommand
from equipoise.cli.score import CLUSTER, FILE, OUTPUT, score, write
from equipoise.parquet_folders import cluster as connect
from equipoise.parquet_folders import parts, run_each

if TYPE_CHECKING:
    import pandas as pd

    from equipoise.problems import Problems


BIAS = "equipoise.measures.ranking_bias"


@score.command(
    "ranking-bias",
    cls=DeclaredCommand,
    declared=[
        Declared(f"{BIAS}.score_ranking_bias", without=("background", "undefined"), flags={"cutoffs": "--cutoff"}),
        Declared(f"{BIAS}.count_terms"),
    ],
)
@click.option("--run", "runs", multiple=True, required=True, type=FILE, help="A run; repeat it.")
@click.option(
    "--documents",
    required=True,
    help="The collection: a .jsonl file with id and text, a file of id, tab and text, or a name of ir_datasets.",
)
@click.option("--terms", required=True, type=FILE, help="Representative terms, as term,group.")
@click.option(
    "--background",
    default="collection",
    help="Background set of NFaiRR: a run, the whole collection, or own, the documents of each list itself.",
)
@OUTPUT
def score_ranking_bias(
    runs: tuple[Path, ...],
    documents: str,
    terms: Path,
    background: str,
    output: Path | None,
    tokens: Any,
    **options: Any,
) -> None:
    """NFaiRR, FaiRR, TED, TExFAIR and ARB of ranked lists, per topic and on average (topic all)."""
    from tqdm import tqdm

    from equipoise.loaders.documents import stream_documents
    from equipoise.loaders.gender_terms import read_terms
    from equipoise.loaders.trec import read_run, read_runs
    from equipoise.measures.ranking_bias import TermGroups, count_terms
    from equipoise.measures.ranking_bias import score_ranking_bias as scored
    from equipoise.problems import Problems

    problems, tables = Problems(), dict[str, Any]()
    with problems.collecting():
        tables["terms"] = read_terms(terms)
    with problems.collecting():
        tables["runs"] = read_runs(runs)
    if background not in ("collection", "own"):
        with problems.collecting():
            tables["background"] = read_run(background)
    problems.refuse()
    groups = TermGroups.from_pairs(tables["terms"].itertuples(index=False, name=None))
    if groups.shared:
        click.echo(f"note: {', '.join(groups.shared)} in more than one group of {terms}: counted for each", err=True)
    stream = tqdm(stream_documents(documents), unit="document", file=sys.stderr, disable=None)
    held = {str(name) for key in ("runs", "background") if key in tables for name in tables[key]["document"]}
    needed = stream if background == "collection" else (row for row in stream if row[0] in held)
    counts = count_terms(needed, groups.terms, tokens=tokens)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = scored(tables["runs"], counts, groups, background=tables.get("background", background), **options)
    for warning in caught:
        click.echo(f"note: {warning.message}", err=True)
    write({output: scores})


def _named(texts: Sequence[str], what: str) -> dict[str, str]:
    """Read ``NAME=value`` options."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value or name in found:
            raise click.BadParameter(f"{what} is written NAME=VALUE, each name once; found {text!r}")
        found[name] = value
    return found


def _score_run(run: Path, arguments: Mapping[str, Any]) -> tuple[pd.DataFrame | None, Problems]:
    """Score one run; a run is a task, so that its scores do not depend on what else is scored."""
    from equipoise.loaders.trec import read_run
    from equipoise.measures.gfr import gfr_table
    from equipoise.problems import Problems

    problems, scores = Problems(), None
    with problems.collecting():
        scores = gfr_table(read_run(run), **arguments)
    return scores, problems


@score.command("gfr", cls=DeclaredCommand, declared=[Declared("equipoise.measures.gfr.gfr_table")])
@click.option("--run", "runs", multiple=True, required=True, type=FILE, help="Run, or a folder of Parquet; repeatable.")
@click.option("--qrels", required=True, type=FILE, help="Relevance judgements, TREC or NTCIR.")
@click.option("--membership", "memberships", multiple=True, metavar="NAME=FILE", help="Group memberships; repeatable.")
@click.option("--target", "targets", multiple=True, metavar="NAME=FILE", help="Target distribution; repeatable.")
@click.option("--kind", "kinds", multiple=True, metavar="NAME=ordinal|nominal", help="Kind of groups; repeatable.")
@OUTPUT
@CLUSTER
def score_gfr(
    runs: tuple[Path, ...],
    qrels: Path,
    memberships: tuple[str, ...],
    targets: tuple[str, ...],
    kinds: tuple[str, ...],
    output: Path | None,
    cluster: str | None,
    **options: Any,
) -> None:
    """ERR, iRBU, GF and GFR of ranked lists, per topic, and their means with an empty topic."""
    import pandas as pd

    from equipoise.loaders.fairweb import read_memberships, read_target
    from equipoise.loaders.trec import read_qrels
    from equipoise.problems import Problems

    members, aims, sorts = _named(memberships, "--membership"), _named(targets, "--target"), _named(kinds, "--kind")
    if not set(members) == set(aims) == set(sorts):
        raise click.UsageError("every attribute set needs a --membership, a --target and a --kind of its NAME")
    if wrong := sorted(set(sorts.values()) - {"ordinal", "nominal"}):
        raise click.BadParameter(f"--kind is ordinal or nominal; found {', '.join(wrong)}")
    files = [file for run in runs for file in ([run / name for name in parts(run)] if run.is_dir() else [run])]
    if len({file.name for file in files}) < len(files):
        raise click.BadParameter("two runs have the same file name; they could not be told apart in the output")
    problems = Problems()
    arguments: dict[str, Any] = {"memberships": {}, "attributes": {}, **options}
    with problems.collecting():
        arguments["qrels"] = read_qrels(qrels)
    for name, file in aims.items():
        with problems.collecting():
            kind: Any = sorts[name]
            arguments["attributes"][name] = read_target(file, name, kind)
            arguments["memberships"][name] = read_memberships(members[name], arguments["attributes"][name])
    problems.refuse()
    with connect(cluster) as executor:
        scored = run_each(_score_run, [(file, arguments) for file in files], executor, "run")
    for _, found in scored:
        problems += found
    problems.refuse()
    write({output: pd.concat([table for table, _ in scored], ignore_index=True)})


@score.command(
    "attribution",
    cls=DeclaredCommand,
    declared=[Declared("equipoise.measures.attribution.score_attribution")],
)
@click.argument("answers", type=FILE)
@click.option("--by", multiple=True, metavar="KEY", help="Score each value of this further key apart; repeatable.")
@OUTPUT
def score_attribution(answers: Path, output: Path | None, **options: Any) -> None:
    """Precision and recall of the citations in ANSWERS, a .jsonl file, and how they change with the authors named.

    A line holds question, mode (Vanilla, Informed, CF-informed, or two of them as X/Y), relevant_author,
    nonrelevant_author, answer, relevant (document numbers), and optionally documents (how many were shown), gold
    (answers), citations ([{"document": 2, "probability": 0.9}]), and further keys. CAS compares Informed with Vanilla,
    CAB compares Informed with CF-informed; AC is the mean probability of citations.
    """
    from equipoise.loaders.answers import read_answers
    from equipoise.measures import attribution

    write({output: attribution.score_attribution(read_answers(answers), run=answers.stem, **options)})


# --- conversations of one's own -----------------------------------------------------------------------------------


# --- reports ------------------------------------------------------------------------------------------------------


# --- data ---------------------------------------------------------------------------------------------------------
