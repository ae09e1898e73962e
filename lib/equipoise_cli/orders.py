"""Commands for the order of conversations: permute a script for anyone's system, and score it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import FOLDER, refuse_outputs
from equipoise_cli.shared import FILE, TARGET, samples

if TYPE_CHECKING:
    from equipoise_cli.permuted_orders import Permuted

PERMUTED = "equipoise_cli.permuted_orders"
CAPTIONS = {
    "figure-1": "Mean over the systems, for the orders of each conversation; diamonds: the script",
    "figure-2": (
        "Percentage of the orders of a conversation on which the row's system beats the column's"
    ),
}
ONLY_SCRIPTS = "no valid order beside the script, of any conversation"
PANELS = 40  # conversations of Figure 2, drawn at random where there are more


def _judged_utterances(utterances: Any, qrels: Any) -> Any:
    """The judged utterances, and the first of every conversation that has some."""
    is_judged = utterances["query"].isin(qrels["topic"])
    topics = utterances.loc[is_judged, "topic"].unique()
    if not len(topics):
        raise click.UsageError(
            "no utterance of the topics has a judgement: other topics, or other qrels?"
        )
    message = f"{is_judged.sum()} of {len(utterances)} utterances are judged"
    click.echo(f"{message}, in {len(topics)} topics", err=True)
    # What comes later may make no sense without the first utterance of a conversation.
    opens_topic = ~utterances.duplicated("topic") & utterances["topic"].isin(topics)
    return utterances[is_judged | opens_topic]


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
@click.option("-o", "--output", required=True, type=TARGET, help="Folder to make.")
def permute(
    topics: Path, classes: Any, dependencies: Any, qrels: Any, output: Path, **options: Any
) -> None:
    """Write the conversations of TOPICS in many valid orders.

    Each distinct input of a system has an id. The first utterance stays first. With classes (SE,
    FT, PT) what follows an utterance stays behind it, in any order; with dependencies an utterance
    may stand anywhere behind all it needs. Run the system once for each line of inputs.jsonl, or on
    the topics file: its ids are the topics of the run that `equipoise score orders` reads. Without
    either, classes.csv in the folder holds the proposals of a rule: correct it, and give it with
    --classes.
    """
    refuse_outputs({"-o": (output, FOLDER)}, [topics, classes, dependencies, qrels])
    if classes is not None and dependencies is not None:
        raise click.UsageError("give --classes or --dependencies, not both")
    from tqdm import tqdm

    from equipoise.loaders.topics import read_topics
    from equipoise.loaders.trec import read_qrels
    from equipoise.problems import together
    from equipoise_cli import permuted_orders

    reads: list[Any] = [partial(read_topics, topics)]
    if qrels is not None:
        reads.append(partial(read_qrels, qrels))
    source, *judgements = together(reads)
    utterances = source.utterances
    if judgements:
        utterances = _judged_utterances(utterances, judgements[0])
    if dependencies is not None:
        conversations, labels = _by_dependencies(source.utterances, utterances, dependencies)
    else:
        conversations, labels = _by_classes(source.utterances, utterances, classes)
        _note_proposals(labels, output)
    permuted = permuted_orders.permute(conversations, **options)
    _show_numbers(permuted)
    progress = partial(tqdm, unit="conversation", file=sys.stderr, disable=None)
    permuted_orders.write_permuted(output, permuted, source, labels, progress=progress)


def _by_dependencies(all_utterances: Any, utterances: Any, path: Path) -> tuple[Any, Any]:
    """Conversations of some utterances by the dependencies in a file; and these dependencies."""
    from equipoise.orders.conversations import conversations, with_dependencies
    from equipoise_cli.order_labels import read_dependencies, without_others

    topic_of = all_utterances.set_index("query")["topic"]
    dependencies = without_others(read_dependencies(path, topic_of), utterances["query"].tolist())
    # By their class alone, utterances that explain themselves depend on nothing.
    independent = conversations(utterances.assign(**{"class": "SE"}))
    return with_dependencies(independent, dependencies), dependencies


def _by_classes(all_utterances: Any, utterances: Any, path: Path | None) -> tuple[Any, Any]:
    """Conversations of some utterances by their classes, from a file or a rule; and these."""
    from equipoise.orders.conversations import conversations
    from equipoise_cli.order_labels import propose_classes, read_classes

    if path is None:
        # The rule looks at what is left out too: it may have changed the subject.
        classes = propose_classes(all_utterances)
    else:
        queries, needed = all_utterances["query"].tolist(), utterances["query"].tolist()
        first_queries = utterances.loc[~utterances.duplicated("topic"), "query"]
        classes = read_classes(path, queries, needed, first_queries)
    labels = utterances[["query", "text"]].merge(classes[["query", "class", "by"]], on="query")
    return conversations(utterances.merge(labels[["query", "class"]], on="query")), labels


def _note_proposals(labels: Any, folder: Path) -> None:
    """Say how many classes nobody has looked at, if any."""
    from equipoise_cli.order_labels import RULE

    n_proposals = int((labels["by"] == RULE).sum())
    if n_proposals:
        note = f"{n_proposals} of {len(labels)} classes are proposals of a rule"
        remedy = f"correct them in {folder}/classes.csv, and give it with --classes"
        click.echo(f"note: {note}: {remedy}", err=True)


def _show_numbers(permuted: Permuted) -> None:
    """How many orders were drawn, and how many inputs are to be run for them."""
    n_conversations = len(permuted.conversations)
    n_utterances = n_inputs = n_orders = n_places = 0
    for conversation in permuted.conversations:
        orders = permuted.orders[conversation.topic]  # (orders, utterances)
        n_utterances += conversation.structure.size
        n_inputs += len(permuted.inputs(conversation).row)
        n_orders += len(orders)
        n_places += orders.size
    message = f"{n_conversations} conversations, {n_utterances} utterances, {n_orders} orders"
    message += f": {n_inputs} inputs to run"
    if permuted.context == "history":
        message += f", in place of {n_places}"
    click.echo(message, err=True)
    if n_orders == n_conversations:
        click.echo(f"note: {ONLY_SCRIPTS}", err=True)
