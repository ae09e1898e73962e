"""Permuted conversations for anyone's system: the distinct inputs it is run on, and a folder that holds them.

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
from collections.abc import Callable, Iterable, Sequence
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
_CLASSES, _DEPENDENCIES, _ORDERS, _SETTINGS = (
    "classes.csv",
    "dependencies.csv",
    "orders.csv",
    "settings.json",
)


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
        return [
            f"{self.topic}-{row}_{length}"
            for row, length in zip(self.row, self.length, strict=True)
        ]

    @property
    def asked(self) -> list[int]:
        """The utterance of every input: the last one."""
        return [
            self.lines[row][length - 1] for row, length in zip(self.row, self.length, strict=True)
        ]

    @classmethod
    def of(cls, one: Conversation, orders: Orders, context: Context) -> Inputs:
        """Of a conversation under orders (shaped (orders, n)), or, with less than the history, under all valid ones."""
        if context == "history":
            return cls._beginnings(one.topic, orders)
        size, meets = one.structure.size, one.structure.adjacency() > 0
        after = np.full((size + 1, size), -1)
        after[-1, 0] = 0  # nothing else comes first
        lines: list[tuple[int, ...]] = [(0,)]
        for u in range(1, size):
            before = np.flatnonzero(meets[:, u]).tolist()
            if context == "first":
                after[before, u] = len(lines)
                lines.append((0, u))
                continue
            for v in before:
                after[v, u] = len(lines)
                lines.append((0, v, u) if v and context == "first-and-previous" else (v, u))
        previous = np.roll(orders, 1, axis=1)
        previous[:, 0] = size
        row, length = np.arange(len(lines)), np.array([len(line) for line in lines])
        return cls(one.topic, lines, row, length, after[previous, orders], after)

    @classmethod
    def _beginnings(cls, topic: str, orders: Orders) -> Inputs:
        """Every different beginning of the orders, found in the first order that begins so."""
        count, size = orders.shape
        at, rows, found = np.empty((count, size), dtype=np.intp), [], 0
        beginning = np.zeros(count, dtype=np.intp)
        for position in range(size):
            steps = beginning * size + orders[:, position]
            _, row, beginning = np.unique(steps, return_index=True, return_inverse=True)
            at[:, position] = found + beginning
            rows.append(row)
            found += len(row)
        length = np.repeat(np.arange(1, size + 1), [len(row) for row in rows])
        return cls(topic, orders.tolist(), np.concatenate(rows), length, at, None)


@dataclass(frozen=True, eq=False)
class Permuted:
    """Conversations, orders of each by topic (shaped (orders, n), row 0 the script), and what a system sees."""

    conversations: Sequence[Conversation]
    orders: dict[str, Orders]
    context: Context

    def inputs(self, one: Conversation) -> Inputs:
        """The distinct inputs of one of the conversations."""
        return Inputs.of(one, self.orders[one.topic], self.context)


@checked
def permute(
    made: Sequence[Conversation],
    *,
    orders: DrawnOrders = 100,
    context: Context = "history",
    seed: Seed = 0,
) -> Permuted:
    """Draw different valid orders of every conversation, for a system that sees a context of each utterance."""
    return Permuted(made, sampled_orders(made, orders, seed), context)


def write_permuted(
    folder: Path,
    permuted: Permuted,
    topics: Topics,
    labels: pd.DataFrame,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> None:
    """Write the folder that this module describes, whole or not at all; ``labels`` are classes or dependencies."""
    is_json = topics.ending == ".json"
    with new_folder(folder) as made:
        names = "inputs.jsonl", f"topics{topics.ending}", _ORDERS
        inputs_file, topics_file, orders_file = (
            (made / name).open("w", encoding="utf-8") for name in names
        )
        with inputs_file, topics_file, orders_file:
            orders_file.write("topic,permutation,position,query,id\n")
            for number, one in enumerate(progress(permuted.conversations)):
                inputs = permuted.inputs(one)
                said = [
                    {"query": query, "utterance": text}
                    for query, text in zip(one.queries, one.texts, strict=True)
                ]
                for name, row, length in zip(inputs.ids, inputs.row, inputs.length, strict=True):
                    *before, last = inputs.lines[row][:length]
                    line = {
                        "id": name,
                        "topic": one.topic,
                        **said[last],
                        "context": [said[u] for u in before],
                    }
                    inputs_file.write(json.dumps(line, ensure_ascii=False) + "\n")
                for row, line_of in enumerate(inputs.lines):
                    queries, texts = zip(
                        *((one.queries[u], one.texts[u]) for u in line_of), strict=True
                    )
                    if is_json:
                        topics_file.write(",\n" if number or row else "[\n")
                    topics_file.write(topics.conversation(f"{one.topic}-{row}", queries, texts))
                write_csv(
                    _orders_table(one, permuted.orders[one.topic], inputs),
                    orders_file,
                    header=False,
                )
            topics_file.write("\n]\n" if is_json else "")
        write_csv(labels, made / (_CLASSES if "class" in labels else _DEPENDENCIES))
        (made / _SETTINGS).write_text(
            json.dumps({"context": permuted.context}) + "\n", encoding="utf-8"
        )


def _orders_table(one: Conversation, orders: Orders, inputs: Inputs) -> pd.DataFrame:
    permutation, position = np.indices(orders.shape).reshape(2, -1)
    columns = {"topic": one.topic, "permutation": permutation, "position": position + 1}
    queries, ids = (
        np.array(one.queries, dtype=object)[orders],
        np.array(inputs.ids, dtype=object)[inputs.of_orders],
    )
    return pd.DataFrame({**columns, "query": queries.ravel(), "id": ids.ravel()})


def _read_context(path: Path) -> Context:
    context = read_json(path, dict, "a JSON object").get("context")
    if context not in choices_of(Context):
        raise refused(
            path, f"the context {shown(context)}", f"one of {', '.join(choices_of(Context))}"
        )
    found: Context = context
    return found


def _read_orders(path: Path) -> pd.DataFrame:
    """Columns topic, permutation, position (both from 0), query, id; every order of a topic has the same queries."""
    source = read_source(path)
    source.check_header(["topic", "permutation", "position", "query", "id"])
    table = source.columns.astype("str")
    for column in ("permutation", "position"):
        wrong = table.index[~table[column].str.fullmatch("[0-9]{1,7}")]
        source.report(wrong, column, cells(table[column]), "a whole number")
    source.problems.refuse()
    table = table.astype({"permutation": np.int64, "position": np.int64})
    table["position"] -= 1
    for topic, part in table.groupby("topic", sort=False):
        size = part["query"].nunique()
        wanted = np.indices((len(part) // size, size)).reshape(2, -1)
        whole = np.array_equal(part[["permutation", "position"]].to_numpy().T, wanted)
        if not whole or part.duplicated(["permutation", "query"]).any():
            found = f"orders of topic {topic} that are not whole"
            source.problems.add(
                path, None, None, found, "every utterance once in each, permutations from 0"
            )
    source.problems.refuse()
    return table


def read_permuted(folder: Path) -> Permuted:
    """Read the folder again: conversations (without their texts), orders and context."""
    context, table = together(
        [partial(_read_context, folder / _SETTINGS), partial(_read_orders, folder / _ORDERS)]
    )
    script = (
        table[table["permutation"] == SCRIPT].rename(columns={"position": "turn"}).assign(text="")
    )
    topic_of = script.set_index("query")["topic"]
    labels = folder / (_DEPENDENCIES if (folder / _DEPENDENCIES).exists() else _CLASSES)
    if labels.name == _CLASSES:
        made = conversations(
            script.merge(read_classes(labels, topic_of.index, topic_of.index), on="query")
        )
    else:
        made = with_dependencies(
            conversations(script.assign(**{"class": "SE"})), read_dependencies(labels, topic_of)
        )
    permuted = Permuted(made, {}, context)
    problems = Problems()
    for one in made:
        part = table[table["topic"] == one.topic]
        places = pd.Series(range(one.structure.size), one.queries)
        orders = places[part["query"]].to_numpy(dtype=np.intp).reshape(-1, one.structure.size)
        permuted.orders[one.topic] = orders
        if not one.structure.is_valid(orders).all():
            found = f"orders of topic {one.topic} that are not valid by {labels.name}"
            problems.add(
                folder / _ORDERS,
                None,
                None,
                found,
                "the orders that were drawn with it: permute again",
            )
        elif not np.array_equal(_orders_table(one, orders, permuted.inputs(one))["id"], part["id"]):
            found = f"other ids of topic {one.topic} than those of its inputs"
            problems.add(
                folder / _ORDERS, None, "id", found, "the file as it was written: permute again"
            )
    problems.refuse()
    return permuted
