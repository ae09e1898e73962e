"""Commands that score what could have gone otherwise: branching conversations, worst cases."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click

from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import SCORES, refuse_outputs, table
from equipoise_cli.score import score
from equipoise_cli.shared import (
    FILE,
    TARGET,
    named,
    samples,
    takes_output,
    tells_what_was_seen,
    write,
)

GFRC2 = "equipoise.measures.gfrc2.gfrc2"
GFRC_OPTIONS = ("patience", "ordinal", "nominal", "duplicates", "gains")
"""What both measures of a path take."""
INTERVALS = table("table of intervals", ("measure", "value", "low", "high"))
TESTS = table("table of tests", ("a", "b", "p"))
NAMES = table("table of names", ("named", "unlisted"))
WORST = "equipoise.measures.worst_cases.worst_cases"


@score.command("worst", cls=DeclaredCommand, declared=[Declared(WORST)], epilog=samples("SCORES"))
@click.argument("scores", type=FILE)
@takes_output
@fails_on_conditions
def score_worst(scores: Path, output: Any, force: bool, **options: Any) -> Any:
    """Mean, worst and CVaR of every score in SCORES.

    SCORES is a tidy CSV or Parquet file with a row for each case.
    """
    refuse_outputs({"-o": (output, SCORES)}, [scores], force=force)
    from equipoise.measures.worst_cases import worst_cases
    from equipoise_cli.loaders.trees import read_scores

    cases = worst_cases(read_scores(scores), **options)
    write({output: cases})
    return cases


@score.command(
    "tree",
    cls=DeclaredCommand,
    declared=[Declared(GFRC2, without=("by_group",)), Declared(WORST, only=("worst", "worse"))],
    epilog=samples("TREE", "NUGGETS of a tree", "--attributes"),
)
@click.argument("tree", type=FILE)
@click.argument("nuggets", type=FILE)
@click.option("--attributes", required=True, type=FILE, help="Attribute sets, a YAML file.")
@click.option(
    "--compare", is_flag=True, help="Add R, GF and GFRC of the paths, with the same options."
)
@click.option(
    "--intent",
    "intents",
    multiple=True,
    metavar="NAME=SHARE",
    help="Share of an intent; repeatable.",
)
@click.option(
    "--paths", type=TARGET, help="CSV file for the scores of every path, with its probability."
)
@takes_output
@fails_on_conditions
def score_tree(
    tree: Path,
    nuggets: Path,
    attributes: Path,
    compare: bool,
    intents: Any,
    paths: Any,
    output: Any,
    force: bool,
    **options: Any,
) -> Any:
    """GFRC2 of conversations that branch: what users can expect, and on the worst paths.

    Of the paths it gives the worst one and the mean of the worst ones.

    TREE has the columns run, topic, node, parent (empty for the first round), probability (of
    taking the node, given its parent) and words; NUGGETS has run, topic, node, start, end (words of
    the node, from 1), level, a column for each attribute set and perhaps entity. A column intent in
    either keeps a row to those who come with it; then every intent of --intent is scored, and all
    of them together.
    """
    outputs = {"-o": (output, SCORES), "--paths": (paths, SCORES)}
    refuse_outputs(outputs, [tree, nuggets, attributes], force=force)
    import pandas as pd

    from equipoise.attributes import read_attributes
    from equipoise.measures.gfrc import gfrc
    from equipoise.measures.gfrc2 import gfrc2
    from equipoise.measures.trees import tree_scores
    from equipoise.measures.worst_cases import worst_cases
    from equipoise.problems import together
    from equipoise_cli.loaders.trees import read_tree, read_tree_nuggets

    shares = _shares(intents)
    case_options = {name: options.pop(name) for name in ("worst", "worse")}
    gfrc_options = {name: options[name] for name in GFRC_OPTIONS}
    sets = read_attributes(attributes)
    rounds, nugget_rows = together(
        [partial(read_tree, tree), partial(read_tree_nuggets, nuggets, sets)]
    )
    _show_seen(rounds, nugget_rows)

    def score_path(table: Any, groups: Any) -> Any:
        scores = gfrc2(table, groups, **options)
        if compare:  # with the options that both measures take
            scores = pd.concat([scores, gfrc(table, groups, **gfrc_options)], ignore_index=True)
        return scores

    # Every path from the first round to a last one is scored as a conversation.
    path_scores = tree_scores(rounds, nugget_rows, sets, score_path, shares)
    tables = {output: worst_cases(path_scores, "path", **case_options)}
    if paths is not None:
        tables[paths] = path_scores
    write(tables)
    return tables[output]


def _shares(intents: Iterable[str]) -> dict[str, float]:
    """The share of each intent, as ``--intent`` gives them."""
    from equipoise.files import parse_number

    texts = named(intents, "--intent")
    try:
        return {name: parse_number(text) for name, text in texts.items()}
    except ValueError as error:
        raise click.BadParameter(f"--intent is written NAME=SHARE: {error}") from None


def _show_seen(rounds: Any, nuggets: Any) -> None:
    """Say how many relevant nuggets the rounds have; warn where there is none."""
    from equipoise.coverage import Unseen

    relevant = nuggets[nuggets["level"] > 0]
    n_useful = len(relevant[["run", "topic", "node"]].drop_duplicates())
    message = f"{len(relevant):,} relevant nuggets in {n_useful:,} of {len(rounds):,} rounds"
    click.echo(f"seen: {message}", err=True)
    if relevant.empty:
        problem = "no relevant nugget anywhere: nobody is served in any conversation"
        warnings.warn(problem, Unseen, stacklevel=2)


@score.command(
    "outcomes",
    cls=DeclaredCommand,
    declared=[Declared("equipoise_studies.pilot.outcomes.outcome_intervals")],
    epilog=samples("RECORDS", "--known"),
)
@click.argument("records", nargs=-1, required=True, type=FILE)
@click.option(
    "--tests",
    type=TARGET,
    help="CSV file for paired tests between systems, or rounds where there is one.",
)
@click.option(
    "--known",
    "known_names",
    type=FILE,
    help="CSV of what there is: topic,name,url (url may be empty).",
)
@click.option(
    "--names",
    type=TARGET,
    help="CSV file for the names and addresses that --known does not bear out.",
)
@takes_output
@fails_on_conditions
def score_outcomes(
    records: tuple[Path, ...],
    tests: Any,
    known_names: Any,
    names: Any,
    output: Any,
    force: bool,
    **options: Any,
) -> Any:
    """Useful turns and recovery of harvested RECORDS (.jsonl), each of a system.

    The intervals are over the topics.
    """
    outputs = {"-o": (output, INTERVALS), "--tests": (tests, TESTS), "--names": (names, NAMES)}
    refuse_outputs(outputs, [*records, known_names], force=force)
    import pandas as pd

    from equipoise.files import read_columns, told_apart
    from equipoise.loaders.transcripts import run_of
    from equipoise.problems import together
    from equipoise_studies.pilot import outcomes
    from equipoise_studies.recorded_conversations import read_harvest

    if (known_names is None) != (names is None):
        raise click.UsageError(
            "--known says what there is, --names where to write what is not: give both"
        )
    systems = told_apart(list(map(run_of, records)), records)
    with tells_what_was_seen(0.5):  # the default of --least-seen, which is no option here
        reads = zip(records, systems, strict=True)
        turns_of_records = together(partial(read_harvest, file, system) for file, system in reads)
        turns = pd.concat(turns_of_records, ignore_index=True)
        tables = {output: outcomes.outcome_intervals(turns, **options)}
        if tests is not None:
            # With one system there is nothing but its rounds to compare.
            between = "system" if len(records) > 1 else "round"
            tables[tests] = outcomes.outcome_tests(turns, between=between)
        if known_names is not None:
            entities = read_columns(known_names, ["topic", "name", "url"])
            tables[names] = outcomes.count_names(turns, entities)
    write(tables)
    return tables[output]
