"""Commands for the order of conversations: permute a script for anyone's system, and score what it ranked."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import FOLDER, refuse_outputs
from equipoise_cli.score import score
from equipoise_cli.shared import FILE, samples, tells_what_was_seen

PERMUTED = "equipoise_cli.permuted_orders"
CAPTIONS = {
    "figure-1": "Mean over the systems, for the orders of each conversation; diamonds: the script",
    "figure-2": "Percentage of the orders of a conversation on which the row's system beats the column's",
}
SCRIPTS_ALONE = "no valid order beside the script, of any conversation"
PANELS = 40  # conversations of Figure 2, drawn at random where there are more


def _kept(utterances: Any, qrels: Any) -> Any:
    """The judged utterances, and the first of every conversation that has some."""
    judged = utterances["query"].isin(qrels["topic"])
    topics = utterances.loc[judged, "topic"]
    if topics.empty:
        raise click.UsageError(
            "no utterance of the topics has a judgement: other topics, or other qrels?"
        )
    click.echo(
        f"{judged.sum()} of {len(utterances)} utterances are judged, in {topics.nunique()} topics",
        err=True,
    )
    return utterances[judged | (~utterances.duplicated("topic") & utterances["topic"].isin(topics))]


@click.command(
    cls=DeclaredCommand,
    declared=[Declared(f"{PERMUTED}.permute")],
    epilog=samples("--topics of a track", "--classes", "--dependencies", "--qrels of utterances"),
)
@click.option(
    "--topics",
    required=True,
    type=FILE,
    help="CAsT or iKAT JSON, or lines of id, tab and utterance.",
)
@click.option(
    "--classes", type=FILE, help="Class of every utterance, CSV: query,class.  [proposed by a rule]"
)
@click.option(
    "--dependencies", type=FILE, help="What each utterance needs before it, CSV: query,depends_on."
)
@click.option(
    "--qrels",
    type=FILE,
    help="Keep the judged utterances, as the study does, and the first of each topic.",
)
@click.option("-o", "--output", required=True, type=FILE, help="Folder to make.")
def permute(
    topics: Path, classes: Any, dependencies: Any, qrels: Any, output: Path, **options: Any
) -> None:
    """Write the conversations of TOPICS in many valid orders, with an id for each distinct input of a system.

    The first utterance stays first. With classes (SE, FT, PT) what follows an utterance stays
    behind it, in any order; with dependencies an utterance may stand anywhere behind all it needs.
    Run the system once for each line of inputs.jsonl, or on the topics file: its ids are the topics
    of the run that `equipoise score orders` reads. Without either, classes.csv in the folder holds
    the proposals of a rule: correct it, and give it with --classes.
    """
    refuse_outputs({"-o": (output, FOLDER)}, [topics, classes, dependencies, qrels])
    if classes is not None and dependencies is not None:
        raise click.UsageError("give --classes or --dependencies, not both")
    from tqdm import tqdm

    from equipoise.loaders.topics import read_topics
    from equipoise.loaders.trec import read_qrels
    from equipoise.orders.conversations import conversations, with_dependencies
    from equipoise.problems import together
    from equipoise_cli import order_labels as labels
    from equipoise_cli import permuted_orders as permuted

    reads: list[Any] = [
        partial(read_topics, topics),
        *([partial(read_qrels, qrels)] if qrels else []),
    ]
    found, *judged = together(reads)
    kept = _kept(found.utterances, judged[0]) if judged else found.utterances
    if dependencies is not None:
        given = labels.read_dependencies(dependencies, found.utterances.set_index("query")["topic"])
        used = labels.without_others(given, kept["query"].tolist())
        made = with_dependencies(conversations(kept.assign(**{"class": "SE"})), used)
    else:
        if classes is None:
            given = labels.propose_classes(found.utterances)
        else:
            firsts = kept.loc[~kept.duplicated("topic"), "query"]
            given = labels.read_classes(
                classes, found.utterances["query"].tolist(), kept["query"].tolist(), firsts
            )
        used = kept[["query", "text"]].merge(given[["query", "class", "by"]], on="query")
        made = conversations(kept.merge(used[["query", "class"]], on="query"))
        if proposals := int((used["by"] == labels.RULE).sum()):
            told = f"{proposals} of {len(used)} classes are proposals of a rule"
            click.echo(
                f"note: {told}: correct them in {output}/classes.csv, and give it with --classes",
                err=True,
            )
    plan = permuted.permute(made, **options)
    inputs = sum(len(plan.inputs(one).row) for one in made)
    orders, whole = (
        sum(map(len, plan.orders.values())),
        sum(one.size for one in plan.orders.values()),
    )
    told = (
        f"{inputs} inputs to run, in place of {whole}"
        if plan.context == "history"
        else f"{inputs} inputs to run"
    )
    click.echo(
        f"{len(made)} conversations, {len(kept)} utterances, {orders} orders: {told}", err=True
    )
    if orders == len(made):
        click.echo(f"note: {SCRIPTS_ALONE}", err=True)
    shown = partial(tqdm, unit="conversation", file=sys.stderr, disable=None)
    permuted.write_permuted(output, plan, found, used, progress=shown)


def _write_figures(tables: Any, measure: str, folder: Path) -> None:
    """Figures 1 and 2 of the tables that hold their values."""
    import matplotlib as mpl
    import numpy as np

    mpl.use("Agg")  # no window is wanted
    from matplotlib import pyplot as plt

    from equipoise_compendium.plots import rendered, use_style
    from equipoise_compendium.plots.orders import preference_panels, spread_of_conversations

    use_style()
    figures = {
        "figure-1": plt.figure(
            figsize=(max(6.0, tables["conversations"]["topic"].nunique() / 2), 4.2)
        )
    }
    spread_of_conversations(figures["figure-1"].subplots(), tables["figure-1"], measure)
    if "figure-2" in tables:
        runs, rng = list(tables["table-2"]["run"]), np.random.default_rng(0)
        figures["figure-2"] = preference_panels(tables["figure-2"], runs, PANELS, rng)
    for name, figure in figures.items():
        (folder / f"{name}.svg").write_bytes(rendered(figure, "svg", CAPTIONS[name], name))
        plt.close(figure)


@score.command(
    "orders",
    cls=DeclaredCommand,
    declared=[Declared("equipoise_cli.scored_orders.score_inputs")],
    epilog=samples("--run over inputs", "--qrels of utterances"),
)
@click.argument("folder", type=FILE)
@click.option(
    "--run",
    "runs",
    multiple=True,
    required=True,
    type=FILE,
    help="Run over the inputs; repeatable.",
)
@click.option("--qrels", required=True, type=FILE, help="Judgements of the utterances, TREC.")
@click.option("-o", "--output", required=True, type=FILE, help="Folder to make.")
def score_orders(folder: Path, runs: Any, qrels: Path, output: Path, **options: Any) -> None:
    """Tables 2 to 5 and Figures 1 and 2 of the permutations study, for runs over what `permute` wrote to FOLDER.

    Beside the orders that were drawn, Tables 2 and 3 have all valid ones: exactly where a system
    sees no more than the previous and the first utterance, or where every order was drawn; else the
    mean has an interval.
    """
    refuse_outputs({"-o": (output, FOLDER)}, [folder, *runs, qrels])
    import pandas as pd
    from tqdm import tqdm

    from equipoise.loaders.trec import read_qrels, read_run
    from equipoise.problems import refused, together
    from equipoise_cli import permuted_orders as permuted
    from equipoise_cli import scored_orders as scored
    from equipoise_cli.loaders.held_files import run_names
    from equipoise_compendium.writing import new_folder, write_csv

    reads: list[Any] = [
        partial(permuted.read_permuted, folder),
        partial(read_qrels, qrels),
        partial(run_names, runs),
    ]
    plan, judgements, names = together(reads)
    if all(len(orders) < 2 for orders in plan.orders.values()):
        raise refused(folder, SCRIPTS_ALONE, "another order of one at least: permute")
    judgements = judgements.rename(columns={"topic": "query", "level": "grade"})

    def of(path: Path, name: str) -> Any:
        return scored.score_inputs(read_run(path, name), inputs, judgements, **options)

    shown = tqdm(
        zip(runs, names, strict=True), total=len(names), unit="run", file=sys.stderr, disable=None
    )
    with tells_what_was_seen(options["least_seen"]) as seen:
        inputs = scored.judged_inputs(plan, judgements)
        values = pd.concat(together(partial(of, *one) for one in shown), axis=1, keys=names)
    made = scored.tables(scored.scored_conversations(plan, inputs, values), names)
    shares = ["place", "items", "needed", "found", "whole", "share"]
    made["seen"] = pd.DataFrame([{name: getattr(one, name) for name in shares} for one in seen])
    with new_folder(output) as target:
        for name, table in made.items():
            write_csv(table, target / f"{name}.csv")
        _write_figures(made, options["measure"], target)
    for row in made["table-2"].to_dict("records"):
        ends = "" if row["how"] == "exact" else f"{row['low']:.4f} to {row['high']:.4f}, "
        told = f"script {row['original']:.4f}, mean of all orders {row['mean of all']:.4f}"
        click.echo(f"{row['run']}: {told} ({ends}{row['how']})", err=True)
