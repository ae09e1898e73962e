r"""Conversations that branch: scores of their paths, and the expectation over the paths.

A conversation tree has a round (a user turn and its system turn) at each node; what the user says
next decides the branch. Each way from the root to a leaf is an ordinary conversation, scored by any
measure of conversations; the tree's score is what a user can expect who takes the branches with
given probabilities: `expected_scores`.

References
----------
gfrc, section 7 (turns that branch out, with transition probabilities); gfrc2, footnote 8 (a path is
a sequence of turns).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers
from equipoise.attributes import AttributeSet
from equipoise.declare import checked
from equipoise.measures.gfrc import declared
from equipoise.nuggets import NuggetTable, nugget_table
from equipoise.options import AskingOn
from equipoise.problems import listed, need_columns, refuse_twice

_TREE = ["run", "topic"]
_ROUND = [*_TREE, "turn"]
_NODE = [*_TREE, "node"]
_ROUNDING = 1e-9
_ITS = "that of the measure"


def reach(
    parents: ArrayLike, probabilities: ArrayLike, words: ArrayLike
) -> tuple[Floats, Integers, Integers]:
    """How each node is reached: with what probability, after how many words, in which round (from 1).

    All shaped (nodes,). ``parents`` are places of nodes, -1 for a root; ``probabilities`` are those
    of taking the node given its parent; ``words`` are of the node's turns. One pass per round, over
    all nodes at once.
    """
    parent, length = np.asarray(parents, dtype=np.int64), np.asarray(words, dtype=np.int64)
    given = np.asarray(probabilities, dtype=np.float64)
    probability, before = np.where(parent < 0, given, np.nan), np.zeros(len(parent), dtype=np.int64)
    number, rounds = 1, np.where(parent < 0, 1, 0)
    while len(at := np.flatnonzero((parent >= 0) & (rounds[parent] == number))):
        probability[at] = probability[parent[at]] * given[at]
        before[at] = before[parent[at]] + length[parent[at]]
        number += 1
        rounds[at] = number
    if lost := np.count_nonzero(rounds == 0):
        raise ValueError(f"{lost} nodes follow each other in a circle, and no root")
    return probability, before, rounds


@dataclass(frozen=True)
class ConversationTrees:
    """Conversation trees, laid out by `conversation_trees` node by node and path by path.

    ``nodes`` (columns run, topic, node, parent, probability, words, before, round) has the words
    before each node and its round, from 1. ``paths`` (columns run, topic, path, probability) has a
    row for each leaf; ``path`` is the topic of the path as a conversation, ``topic/leaf``.
    ``steps`` (columns path, node; row numbers) are the nodes that a path goes through, from the
    leaf to the root.
    """

    nodes: pd.DataFrame
    paths: pd.DataFrame
    steps: pd.DataFrame


def conversation_trees(table: pd.DataFrame) -> ConversationTrees:
    """Lay conversation trees out by their paths (gfrc, section 7).

    ``table`` (columns run, topic, node, parent, probability, words) has a row for each round.
    ``parent`` is "" for the first round; ``probability`` is that of taking the node given its
    parent (1 for a first round), and sums to 1 over the children of a node; ``words`` counts the
    words of both its turns.

    Examples
    --------
    >>> rounds = [["r", "t", "1", "", 1, 20], ["r", "t", "more", "1", 0.75, 30], ["r", "t", "adhere", "1", 0.25, 40]]
    >>> table = pd.DataFrame(rounds, columns=["run", "topic", "node", "parent", "probability", "words"])
    >>> conversation_trees(table).paths
      run topic      path  probability
    0   r     t    t/more         0.75
    1   r     t  t/adhere         0.25
    """
    columns = [*_NODE, "parent", "probability", "words"]
    need_columns(table, columns)
    refuse_twice(table, _NODE, "a node comes")
    nodes = table[columns].reset_index(drop=True)
    keys, above = (pd.MultiIndex.from_frame(nodes[[*_TREE, name]]) for name in ("node", "parent"))
    rooted = (nodes["parent"] == "").to_numpy()
    parent = np.where(rooted, -1, keys.get_indexer(above)).astype(np.int64)
    if (lost := (parent < 0) & ~rooted).any():
        raise ValueError(f"no node is the parent of {keys[lost][0]}")
    if (nodes.assign(rooted=rooted).groupby(_TREE)["rooted"].sum() != 1).any():
        raise ValueError("each tree must have one first round, with an empty parent")
    given, words = nodes["probability"].to_numpy(dtype=np.float64), nodes["words"].to_numpy()
    if not ((given >= 0) & (given <= 1)).all() or (given[rooted] != 1).any():
        raise ValueError("probabilities must lie between 0 and 1, and be 1 for a first round")
    if (words < 0).any():
        raise ValueError("a node has a negative number of words")
    sums = np.bincount(parent[~rooted], weights=given[~rooted], minlength=len(nodes))
    inner = np.isin(np.arange(len(nodes)), parent)
    if (wrong := inner & (np.abs(sums - 1) > _ROUNDING)).any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the probabilities of the branches behind {keys[at]} sum to {sums[at]:g}, not to 1"
        )
    probability, before, rounds = reach(parent, given, words)

    leaves = np.flatnonzero(~inner)
    path, node = np.arange(len(leaves)), leaves
    steps = [pd.DataFrame({"path": path, "node": node})]
    while (on := parent[node] >= 0).any():
        path, node = path[on], parent[node[on]]
        steps.append(pd.DataFrame({"path": path, "node": node}))
    ends = nodes.loc[leaves].reset_index(drop=True)
    paths = ends[_TREE].assign(
        path=ends["topic"] + "/" + ends["node"], probability=probability[leaves]
    )
    return ConversationTrees(
        nodes.assign(before=before, round=rounds), paths, pd.concat(steps, ignore_index=True)
    )


@checked
def leaving_trees(turns: pd.DataFrame, persistence: AskingOn) -> ConversationTrees:
    r"""Trees of conversations whose user may leave after each round.

    .. math:: P(\text{leaves after round } k) = p^{k-1} (1 - p) \text{ for } k < n, \quad p^{n-1}
    \text{ for } k = n

    ``turns`` (columns run, topic, turn, start, end) has the boundaries of user and system turns, as
    `equipoise.loaders.transcripts.turn_frame` gives them; those of one number are a round. A round
    is a node of its number; leaving after it is a node without words.

    gfrc, section 7, with one probability for every transition.
    """
    need_columns(turns, [*_ROUND, "start", "end"])
    words = turns[_ROUND].assign(words=turns["end"] - turns["start"] + 1)
    rounds = words.groupby(_ROUND, sort=False)["words"].sum().reset_index()
    number = rounds["turn"].astype("int64")
    if (number != rounds.groupby(_TREE, sort=False).cumcount() + 1).any():
        raise ValueError("the rounds of a conversation are numbered 1, 2, ... in this order")
    first, before = number == 1, (number - 1).astype("str")
    nodes = rounds.drop(columns="turn").assign(
        node=number.astype("str"),
        parent=before.mask(first, ""),
        probability=np.where(first, 1.0, persistence),
    )
    left = nodes[~first].assign(
        node="left after " + before[~first], probability=1 - persistence, words=0
    )
    return conversation_trees(pd.concat([nodes, left], ignore_index=True))


def nuggets_by_round(nuggets: pd.DataFrame, turns: pd.DataFrame) -> pd.DataFrame:
    """Nuggets with positions that count the words of their round, as `path_nuggets` wants them (gfrc, section 7).

    ``nuggets`` are in the columns of a nugget table; rows without positions are left out. ``turns``
    (columns run, topic, turn, start) are boundaries as in `leaving_trees`. The column ``node`` is
    the number of the round.
    """
    placed = nuggets[nuggets["start"].astype("str") != ""].astype(
        {"turn": int, "start": int, "end": int, "level": int}
    )
    begins = turns.groupby(_ROUND, sort=False)["start"].min()
    rounds = pd.MultiIndex.from_frame(placed[_ROUND])
    if not (known := rounds.isin(begins.index)).all():
        raise ValueError(f"a nugget stands in {rounds[~known][0]}, a turn without boundaries")
    before = begins.loc[rounds].to_numpy() - 1
    placed = placed.assign(
        node=placed["turn"].astype("str"),
        start=placed["start"] - before,
        end=placed["end"] - before,
    )
    return placed.drop(columns="turn").reset_index(drop=True)


def path_nuggets(trees: ConversationTrees, nuggets: pd.DataFrame) -> pd.DataFrame:
    """Nuggets of every path, in the columns of a nugget table (gfrc2, footnote 8: a path is a sequence of turns).

    ``nuggets`` (columns run, topic, node, start, end, level and any others) stand in a round, whose
    words ``start`` and ``end`` count from 1. The ``topic`` of what is returned is the path;
    positions count from the beginning of the conversation, and rounds without nuggets have a row of
    level 0 without positions.
    """
    nodes = trees.nodes
    stand = pd.MultiIndex.from_frame(nuggets[_NODE])
    node = pd.MultiIndex.from_frame(nodes[_NODE]).get_indexer(stand)
    if (node < 0).any():
        raise ValueError(f"a nugget stands in {stand[node < 0][0]}, which is no node")
    start, end = (nuggets[column].to_numpy(dtype=np.int64) for column in ("start", "end"))
    if ((start < 1) | (end > nodes["words"].to_numpy()[node])).any():
        raise ValueError("a nugget reaches beyond the words of its node")
    before = nodes["before"].to_numpy()[node]
    others = [column for column in nuggets.columns if column not in (*_NODE, "start", "end")]
    placed = nuggets[others].reset_index(drop=True).astype("str")
    placed = placed.assign(
        node=node, at=start, start=(start + before).astype("str"), end=(end + before).astype("str")
    )
    rows = (
        trees.steps.merge(placed, on="node", how="left").fillna({"level": "0", "at": 0}).fillna("")
    )
    rows = rows.join(nodes["round"].rename("turn"), on="node")
    rows = rows.sort_values(["path", "turn", "at"], kind="stable", ignore_index=True)
    rows[["run", "topic"]] = trees.paths[["run", "path"]].to_numpy()[rows["path"]]
    return rows[["run", "topic", "turn", "start", "end", *others]].astype(
        {"run": "str", "topic": "str"}
    )


def tree_scores(
    tree: pd.DataFrame,
    nuggets: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    score: Callable[[NuggetTable, Mapping[str, AttributeSet]], pd.DataFrame],
    intents: Mapping[str, float],
) -> pd.DataFrame:
    """Scores of every path of every tree, for the users of every intent and for all of them (gfrc2, footnote 8).

    ``tree`` and ``nuggets`` are as in `conversation_trees` and `path_nuggets`, with a further
    column intent: a row that names one is there for those who come with it alone, another for all.
    ``score`` is the measure, ``intents`` are the shares of the users by intent, none where all come
    with the same. Columns are run, topic, intent, path, probability, attribute, measure, value; the
    intent of all is ``all``, and their paths are those of every intent.
    """
    said = {*tree["intent"], *nuggets["intent"]} - {""}
    if unknown := sorted(said ^ set(intents)):
        raise ValueError(
            f"every intent of the tree and its nuggets needs a share, and no other: {listed(unknown)}"
        )
    if intents and (min(intents.values()) < 0 or abs(sum(intents.values()) - 1) > _ROUNDING):
        raise ValueError(f"the shares of the intents sum to {sum(intents.values()):g}, not to 1")
    parts = []
    for intent in intents or [""]:
        rounds, found = (
            table[table["intent"].isin([intent, ""])].drop(columns="intent")
            for table in (tree, nuggets)
        )
        trees = conversation_trees(rounds)
        scores = score(nugget_table(path_nuggets(trees, found), attributes), attributes)
        paths = trees.paths.rename(columns={"topic": "tree", "path": "topic"})
        scores = scores.merge(paths, on=_TREE, validate="many_to_one").rename(
            columns={"topic": "path"}
        )
        parts.append(scores.rename(columns={"tree": "topic"}).assign(intent=intent))
    every = [
        part.assign(probability=part["probability"] * intents[name])
        for name, part in zip(intents, parts, strict=False)
    ]
    parts += [
        part.assign(intent="all", path=part["path"] + " of " + part["intent"]) for part in every
    ]
    columns = [*_TREE, "intent", "path", "probability", "attribute", "measure", "value"]
    return pd.concat(parts, ignore_index=True)[columns]


@declared(
    "Expectation over a conversation tree",
    range=_ITS,
    ideal=_ITS,
    direction="neither",
    sources=("gfrc", "gfrc2"),
)
def expected_scores(scores: pd.DataFrame, trees: ConversationTrees) -> pd.DataFrame:
    r"""Expectation of scores over the paths of each tree.

    .. math::
        E[M] = \sum_{\text{leaf } l} P(l)\, M(C_l), \quad P(l) = \prod_{v \text{ on the way to } l} P(v \mid
        parent(v))

    - :math:`l`: a leaf: the end of one way through the tree
    - :math:`C_l`: the conversation on that way
    - :math:`M, E[M]`: any score of a conversation; E[M] is what a user can expect of it
    - :math:`v, parent(v)`: a turn on the way, and the one before it
    - :math:`P(l)`: probability that a user takes that way

    Parameters
    ----------
    scores : DataFrame, columns run, topic, attribute, measure, value
        Scores of the paths; ``topic`` is the path.
    trees : ConversationTrees
        From `conversation_trees`.

    Returns
    -------
    DataFrame, columns run, topic, attribute, measure, value
        A row per tree, attribute and measure, in the order of the trees and then of the scores.

    Raises
    ------
    ValueError
        If a path lacks a score that another path of its tree has, has one twice, or a score belongs
        to no path.

    Notes
    -----
    gfrc, section 7.

    Examples
    --------
    >>> table = pd.DataFrame(
    ...     [["r", "t", "1", "", 1, 20], ["r", "t", "more", "1", 0.75, 30], ["r", "t", "adhere", "1", 0.25, 40]],
    ...     columns=["run", "topic", "node", "parent", "probability", "words"],
    ... )
    >>> scores = pd.DataFrame({"run": "r", "topic": ["t/more", "t/adhere"], "value": [1.0, 0.2]})
    >>> scores = scores.assign(attribute="", measure="R")
    >>> expected_scores(scores, conversation_trees(table))
      run topic attribute measure  value
    0   r     t                 R    0.8
    """
    paths = trees.paths.rename(columns={"topic": "tree", "path": "topic"})
    paths["paths"] = paths.groupby(["run", "tree"], sort=False)["topic"].transform("size")
    joined = scores.merge(paths, on=_TREE, how="left")
    if (stray := joined["probability"].isna()).any():
        run, topic = joined.loc[stray, _TREE].iloc[0]
        raise ValueError(f"a score of run {run!r}, topic {topic!r}, which is no path of a tree")
    joined["value"] = joined["value"] * joined["probability"]
    groups = joined.groupby(["run", "tree", "attribute", "measure"], sort=False)
    if (
        joined.duplicated([*_TREE, "attribute", "measure"]).any()
        or (groups.size() != groups["paths"].first()).any()
    ):
        raise ValueError("every path of a tree needs each score once")
    expected = groups["value"].sum().reset_index().rename(columns={"tree": "topic"})
    return expected.astype({"attribute": "str", "measure": "str"})
