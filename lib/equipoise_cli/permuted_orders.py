"""Permuted conversations for anyone's system: its distinct inputs, and a folder that holds them.

An *input* is an utterance with what a system sees before it, its context. A system is run once for
each; an order is then a list of inputs, and its scores are looked up.

The folder has ``inputs.jsonl``, a line for each input: id, topic, query, utterance, and context, a
list of earlier utterances with their queries, in the order in which they were uttered;
``topics.json`` or ``topics.tsv``, conversations in the form of the file that came in, for a system
that reads one: the ranking of turn 5 of the topic 31-2 is that of the input 31-2_5; ``orders.csv``,
which input stands where; the classes or dependencies; and ``settings.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.declare import checked, choices_of
from equipoise.files import cells, read_json, read_source
from equipoise.loaders.topics import Topics
from equipoise.measures.orders import SCRIPT
from equipoise.options import Context, DrawnOrders, Seed
from equipoise.orders.conversations import (
    Conversation,
    conversations,
    sampled_orders,
    with_dependencies,
)
from equipoise.orders.structures import Orders
from equipoise.problems import Problems, refused, shown, together
from equipoise_cli.order_labels import read_classes, read_dependencies
from equipoise_compendium.writing import new_folder, write_csv

Places = NDArray[np.intp]
_CLASSES = "classes.csv"
_DEPENDENCIES = "dependencies.csv"
_ORDERS = "orders.csv"
_SETTINGS = "settings.json"


@dataclass(frozen=True, eq=False)
class Inputs:
    """The distinct inputs of one conversation.

    Each is what one line begins with: ``row`` (shaped (inputs,)) is the line, ``length`` how much
    of it; an input's id is topic-row_length. ``of_orders`` (shaped (orders, n)): the input at each
    position of each order. ``after`` (shaped (n + 1, n)): the input of each utterance by the one
    directly before it, in the last row of that which comes first; -1 where they never meet; None
    where an input depends on more of the order than that.
    """

    topic: str
    lines: Sequence[Sequence[int]]
    row: Places
    length: Places
    of_orders: Places
    after: Places | None

    @property
    def ids(self) -> list[str]:
        """Of every input."""
        ids = []
        for row, length in zip(self.row, self.length, strict=True):
            ids.append(f"{self.topic}-{row}_{length}")
        return ids

    @property
    def asked(self) -> list[int]:
        """The utterance of every input: the last one."""
        utterances = []
        for row, length in zip(self.row, self.length, strict=True):
            utterances.append(self.lines[row][length - 1])
        return utterances

    @classmethod
    def of(cls, conversation: Conversation, orders: Orders, context: Context) -> Inputs:
        """The inputs of a conversation under orders (shaped (orders, n)).

        With less context than the history they are those under all valid orders.
        """
        if context == "history":
            return cls._beginnings(conversation.topic, orders)
        structure = conversation.structure
        size, meets = structure.size, structure.adjacency() > 0
        after = np.full((size + 1, size), -1)
        after[-1, 0] = 0  # nothing but the first utterance of the script comes first
        lines: list[tuple[int, ...]] = [(0,)]
        for utterance in range(1, size):
            earlier_utterances = np.flatnonzero(meets[:, utterance]).tolist()
            if context == "first":
                # One input, whichever utterance comes directly before.
                after[earlier_utterances, utterance] = len(lines)
                lines.append((0, utterance))
                continue
            for earlier in earlier_utterances:
                after[earlier, utterance] = len(lines)
                if earlier and context == "first-and-previous":
                    lines.append((0, earlier, utterance))
                else:  # the first utterance is the previous one too, and stands once
                    lines.append((earlier, utterance))
        previous = np.roll(orders, 1, axis=1)  # (orders, n)
        previous[:, 0] = size  # nothing comes before: the last row of after
        row = np.arange(len(lines))
        length = np.array([len(line) for line in lines])
        return cls(conversation.topic, lines, row, length, after[previous, orders], after)

    @classmethod
    def _beginnings(cls, topic: str, orders: Orders) -> Inputs:
        """Every different beginning of the orders, found in the first order that begins so."""
        n_orders, size = orders.shape
        of_orders = np.empty((n_orders, size), dtype=np.intp)
        rows: list[Places] = []
        n_inputs = 0
        beginning = np.zeros(n_orders, dtype=np.intp)
        for position in range(size):
            # A beginning of one utterance more is a beginning and that utterance.
            steps = beginning * size + orders[:, position]
            _, first_rows, beginning = np.unique(steps, return_index=True, return_inverse=True)
            of_orders[:, position] = n_inputs + beginning
            rows.append(first_rows)
            n_inputs += len(first_rows)
        length = np.repeat(np.arange(1, size + 1), [len(first_rows) for first_rows in rows])
        return cls(topic, orders.tolist(), np.concatenate(rows), length, of_orders, None)


@dataclass(frozen=True, eq=False)
class Permuted:
    """Conversations, orders of each by topic, and what a system sees.

    Orders are shaped (orders, n), row 0 the script.
    """

    conversations: Sequence[Conversation]
    orders: dict[str, Orders]
    context: Context

    def inputs(self, conversation: Conversation) -> Inputs:
        """The distinct inputs of one of the conversations."""
        return Inputs.of(conversation, self.orders[conversation.topic], self.context)


@checked
def permute(
    conversations: Sequence[Conversation],
    *,
    orders: DrawnOrders = 100,
    context: Context = "history",
    seed: Seed = 0,
) -> Permuted:
    """Draw different valid orders of every conversation.

    ``context``: what the system that they are for sees of the utterances before.
    """
    return Permuted(conversations, sampled_orders(conversations, orders, seed), context)


# --- the folder, written --------------------------------------------------------------------------


def _input_lines(conversation: Conversation, inputs: Inputs) -> Iterator[str]:
    """Each input of a conversation as a line of JSON."""
    utterances = []
    for query, text in zip(conversation.queries, conversation.texts, strict=True):
        utterances.append({"query": query, "utterance": text})
    for name, row, length in zip(inputs.ids, inputs.row, inputs.length, strict=True):
        *context, utterance = [utterances[place] for place in inputs.lines[row][:length]]
        line = {"id": name, "topic": conversation.topic, **utterance, "context": context}
        yield json.dumps(line, ensure_ascii=False) + "\n"


def _topic_texts(conversation: Conversation, inputs: Inputs, topics: Topics) -> Iterator[str]:
    """Each line of inputs as a conversation in the form of the topics' file."""
    for row, line in enumerate(inputs.lines):
        queries = [conversation.queries[place] for place in line]
        texts = [conversation.texts[place] for place in line]
        yield topics.conversation(f"{conversation.topic}-{row}", queries, texts)


def write_permuted(
    folder: Path,
    permuted: Permuted,
    topics: Topics,
    labels: pd.DataFrame,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> None:
    """Write the folder that this module describes, whole or not at all.

    ``labels`` are classes or dependencies. The conversations are written one by one, for their
    inputs together may be more than memory holds.
    """
    is_json = topics.ending == ".json"
    with new_folder(folder) as staged, ExitStack() as stack:
        names = "inputs.jsonl", f"topics{topics.ending}", _ORDERS
        inputs_file, topics_file, orders_file = [
            stack.enter_context((staged / name).open("w", encoding="utf-8")) for name in names
        ]
        orders_file.write("topic,permutation,position,query,id\n")
        # A list of JSON is written item by item: all of it may be more than memory holds.
        between = "[\n" if is_json else ""
        for conversation in progress(permuted.conversations):
            inputs = permuted.inputs(conversation)
            inputs_file.writelines(_input_lines(conversation, inputs))
            for text in _topic_texts(conversation, inputs, topics):
                topics_file.write(between + text)
                between = ",\n" if is_json else ""
            orders = permuted.orders[conversation.topic]
            write_csv(_orders_table(conversation, orders, inputs), orders_file, header=False)
        topics_file.write("\n]\n" if is_json else "")
        labels_name = _CLASSES if "class" in labels else _DEPENDENCIES
        write_csv(labels, staged / labels_name)
        settings = json.dumps({"context": permuted.context}) + "\n"
        (staged / _SETTINGS).write_text(settings, encoding="utf-8")


def _orders_table(conversation: Conversation, orders: Orders, inputs: Inputs) -> pd.DataFrame:
    permutation, position = np.indices(orders.shape).reshape(2, -1)
    queries = np.array(conversation.queries, dtype=object)[orders]
    ids = np.array(inputs.ids, dtype=object)[inputs.of_orders]
    return pd.DataFrame(
        {
            "topic": conversation.topic,
            "permutation": permutation,
            "position": position + 1,
            "query": queries.ravel(),
            "id": ids.ravel(),
        }
    )


# --- the folder, read -----------------------------------------------------------------------------


def _read_context(path: Path) -> Context:
    context: Context = read_json(path, dict, "a JSON object").get("context")
    contexts = choices_of(Context)
    if context not in contexts:
        raise refused(path, f"the context {shown(context)}", f"one of {', '.join(contexts)}")
    return context


def _is_complete(orders: pd.DataFrame) -> bool:
    """Whether the orders of a topic are numbered from 0, each with every utterance once."""
    # Numbers that are as expected, without an utterance twice in an order, leave none out.
    size = orders["query"].nunique()
    expected = np.indices((len(orders) // size, size)).reshape(2, -1)
    numbers = orders[["permutation", "position"]].to_numpy().T
    has_repeats = orders.duplicated(["permutation", "query"]).any()
    return np.array_equal(numbers, expected) and not has_repeats


def _read_orders(path: Path) -> pd.DataFrame:
    """Columns topic, permutation, position (both from 0), query, id.

    Every order of a topic has the same queries.
    """
    source = read_source(path)
    source.check_header(["topic", "permutation", "position", "query", "id"])
    table = source.columns.astype("str")
    for column in ("permutation", "position"):
        wrong_rows = table.index[~table[column].str.fullmatch("[0-9]{1,7}")]
        source.report(wrong_rows, column, cells(table[column]), "a whole number")
    source.problems.refuse()
    table = table.astype({"permutation": np.int64, "position": np.int64})
    table["position"] -= 1
    for topic, orders in table.groupby("topic", sort=False):
        if not _is_complete(orders):
            problem = f"orders of topic {topic} that are not whole"
            expected = "every utterance once in each, permutations from 0"
            source.problems.add(path, None, None, problem, expected)
    source.problems.refuse()
    return table


def _read_conversations(folder: Path, orders: pd.DataFrame) -> tuple[list[Conversation], str]:
    """The conversations of a folder, and the name of the file that labels their utterances."""
    script = orders[orders["permutation"] == SCRIPT]
    script = script.rename(columns={"position": "turn"}).assign(text="")
    topic_of = script.set_index("query")["topic"]
    if (folder / _DEPENDENCIES).exists():
        dependencies = read_dependencies(folder / _DEPENDENCIES, topic_of)
        # By their class alone, utterances that explain themselves depend on nothing.
        independent = conversations(script.assign(**{"class": "SE"}))
        return with_dependencies(independent, dependencies), _DEPENDENCIES
    classes = read_classes(folder / _CLASSES, topic_of.index, topic_of.index)
    return conversations(script.merge(classes, on="query")), _CLASSES


def read_permuted(folder: Path) -> Permuted:
    """Read the folder again: conversations (without their texts), orders and context."""
    path = folder / _ORDERS
    context, table = together(
        [partial(_read_context, folder / _SETTINGS), partial(_read_orders, path)]
    )
    conversations_read, labels_name = _read_conversations(folder, table)
    permuted = Permuted(conversations_read, {}, context)
    problems = Problems()
    for conversation in conversations_read:
        topic, structure = conversation.topic, conversation.structure
        rows = table[table["topic"] == topic]
        place_of = pd.Series(range(structure.size), conversation.queries)
        orders = place_of[rows["query"]].to_numpy(dtype=np.intp).reshape(-1, structure.size)
        permuted.orders[topic] = orders
        if not structure.is_valid(orders).all():
            problem = f"orders of topic {topic} that are not valid by {labels_name}"
            expected = "the orders that were drawn with it: permute again"
            problems.add(path, None, None, problem, expected)
            continue
        # Ids follow from the orders; others would give scores to the wrong inputs.
        ids = _orders_table(conversation, orders, permuted.inputs(conversation))["id"]
        if not np.array_equal(ids, rows["id"]):
            problem = f"other ids of topic {topic} than those of its inputs"
            expected = "the file as it was written: permute again"
            problems.add(path, None, "id", problem, expected)
    problems.refuse()
    return permuted
