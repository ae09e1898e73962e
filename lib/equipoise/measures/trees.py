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
    """With what probability, after how many words, in which round (from 1) nodes are reached.

    All shaped (nodes,). ``parents`` are places of nodes, -1 for a root; ``probabilities`` are those
    of taking the node given its parent; ``words`` are of the node's turns. One pass per round, over
    all nodes at once.
    """
    parent, length = np.asarray(parents, dtype=np.int64), np.asarray(words, dtype=np.int64)
    given_parent = np.asarray(probabilities, dtype=np.float64)
    is_root = parent < 0
    probability = np.where(is_root, given_parent, np.nan)
    words_before = np.zeros(len(parent), dtype=np.int64)
    rounds = np.where(is_root, 1, 0)
    number = 1
    # Round by round: the nodes whose parent was reached in the round before.
    nodes = np.flatnonzero(~is_root & (rounds[parent] == number))
    while len(nodes):
        above = parent[nodes]
        probability[nodes] = probability[above] * given_parent[nodes]
        words_before[nodes] = words_before[above] + length[above]
        number += 1
        rounds[nodes] = number
        nodes = np.flatnonzero(~is_root & (rounds[parent] == number))
    n_unreached = np.count_nonzero(rounds == 0)
    if n_unreached:
        raise ValueError(f"{n_unreached} nodes follow each other in a circle, and no root")
    return probability, words_before, rounds


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


def _parents(nodes: pd.DataFrame) -> Integers:
    """Row of the parent of each node, -1 for the first round of a tree."""
    names = pd.MultiIndex.from_frame(nodes[_NODE])
    names_of_parents = pd.MultiIndex.from_frame(nodes[[*_TREE, "parent"]])
    is_root = (nodes["parent"] == "").to_numpy()
    parent = np.where(is_root, -1, names.get_indexer(names_of_parents)).astype(np.int64)
    orphaned = (parent < 0) & ~is_root
    if orphaned.any():
        raise ValueError(f"no node is the parent of {names[orphaned][0]}")
    roots_of_tree = nodes.assign(is_root=is_root).groupby(_TREE)["is_root"].sum()
    if (roots_of_tree != 1).any():
        raise ValueError("each tree must have one first round, with an empty parent")
    return parent


def _check_probabilities(nodes: pd.DataFrame, parent: Integers) -> None:
    probability = nodes["probability"].to_numpy(dtype=np.float64)
    is_root = parent < 0
    if not ((probability >= 0) & (probability <= 1)).all() or (probability[is_root] != 1).any():
        raise ValueError("probabilities must lie between 0 and 1, and be 1 for a first round")
    sums = np.bincount(parent[~is_root], weights=probability[~is_root], minlength=len(nodes))
    # Somebody goes on from every node that has children: those of a leaf leave.
    has_children = np.isin(np.arange(len(nodes)), parent)
    wrong = np.flatnonzero(has_children & (np.abs(sums - 1) > _ROUNDING))
    if len(wrong):
        node = tuple(nodes.loc[wrong[0], _NODE])
        raise ValueError(
            f"the probabilities of the branches behind {node} sum to {sums[wrong[0]]:g}, not to 1"
        )


def _steps(parent: Integers, leaves: Integers) -> pd.DataFrame:
    """The nodes that the path to each leaf goes through, from the leaf to the root."""
    path, node = np.arange(len(leaves)), leaves
    steps = []
    while len(node):
        steps.append(pd.DataFrame({"path": path, "node": node}))
        goes_on = parent[node] >= 0
        path, node = path[goes_on], parent[node[goes_on]]
    return pd.concat(steps, ignore_index=True)


def conversation_trees(table: pd.DataFrame) -> ConversationTrees:
    """Lay conversation trees out by their paths (gfrc, section 7).

    ``table`` (columns run, topic, node, parent, probability, words) has a row for each round.
    ``parent`` is "" for the first round; ``probability`` is that of taking the node given its
    parent (1 for a first round), and sums to 1 over the children of a node; ``words`` counts the
    words of both its turns.

    Examples
    --------
    >>> branches = [["r", "t", "more", "1", 0.75, 30], ["r", "t", "adhere", "1", 0.25, 40]]
    >>> rounds = [["r", "t", "1", "", 1, 20], *branches]
    >>> columns = ["run", "topic", "node", "parent", "probability", "words"]
    >>> table = pd.DataFrame(rounds, columns=columns)
    >>> conversation_trees(table).paths
      run topic      path  probability
    0   r     t    t/more         0.75
    1   r     t  t/adhere         0.25
    """
    columns = [*_NODE, "parent", "probability", "words"]
    need_columns(table, columns)
    refuse_twice(table, _NODE, "a node comes")
    nodes = table[columns].reset_index(drop=True)
    parent = _parents(nodes)
    _check_probabilities(nodes, parent)
    if (nodes["words"] < 0).any():
        raise ValueError("a node has a negative number of words")
    probability, words_before, rounds = reach(parent, nodes["probability"], nodes["words"])

    # A node that is nobody's parent ends a path.
    leaves = np.flatnonzero(~np.isin(np.arange(len(nodes)), parent))
    ends = nodes.loc[leaves].reset_index(drop=True)
    path_names = ends["topic"] + "/" + ends["node"]
    paths = ends[_TREE].assign(path=path_names, probability=probability[leaves])
    nodes = nodes.assign(before=words_before, round=rounds)
    return ConversationTrees(nodes, paths, _steps(parent, leaves))


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
    place = rounds.groupby(_TREE, sort=False).cumcount() + 1
    if (number != place).any():
        raise ValueError("the rounds of a conversation are numbered 1, 2, ... in this order")

    is_first = number == 1
    round_before = (number - 1).astype("str")
    asking_on = rounds.drop(columns="turn").assign(
        node=number.astype("str"),
        parent=round_before.mask(is_first, ""),
        probability=np.where(is_first, 1.0, persistence),
    )
    leaving = asking_on[~is_first].assign(
        node="left after " + round_before[~is_first], probability=1 - persistence, words=0
    )
    return conversation_trees(pd.concat([asking_on, leaving], ignore_index=True))


def nuggets_by_round(nuggets: pd.DataFrame, turns: pd.DataFrame) -> pd.DataFrame:
    """Nuggets with positions that count the words of their round, as `path_nuggets` takes them.

    ``nuggets`` are in the columns of a nugget table; rows without positions are left out. ``turns``
    (columns run, topic, turn, start) are boundaries as in `leaving_trees`. The column ``node`` is
    the number of the round. gfrc, section 7.
    """
    has_position = nuggets["start"].astype("str") != ""
    placed = nuggets[has_position].astype({"turn": int, "start": int, "end": int, "level": int})
    starts_of_rounds = turns.groupby(_ROUND, sort=False)["start"].min()
    rounds = pd.MultiIndex.from_frame(placed[_ROUND])
    has_boundaries = rounds.isin(starts_of_rounds.index)
    if not has_boundaries.all():
        raise ValueError(
            f"a nugget stands in {rounds[~has_boundaries][0]}, a turn without boundaries"
        )
    words_before = starts_of_rounds.loc[rounds].to_numpy() - 1
    placed = placed.assign(
        node=placed["turn"].astype("str"),
        start=placed["start"] - words_before,
        end=placed["end"] - words_before,
    )
    return placed.drop(columns="turn").reset_index(drop=True)


def path_nuggets(trees: ConversationTrees, nuggets: pd.DataFrame) -> pd.DataFrame:
    """Nuggets of every path, in the columns of a nugget table (gfrc2, footnote 8).

    ``nuggets`` (columns run, topic, node, start, end, level and any others) stand in a round, whose
    words ``start`` and ``end`` count from 1. The ``topic`` of what is returned is the path;
    positions count from the beginning of the conversation, and rounds without nuggets have a row of
    level 0 without positions.
    """
    nodes = trees.nodes
    names = pd.MultiIndex.from_frame(nuggets[_NODE])
    node = pd.MultiIndex.from_frame(nodes[_NODE]).get_indexer(names)
    if (node < 0).any():
        raise ValueError(f"a nugget stands in {names[node < 0][0]}, which is no node")
    start = nuggets["start"].to_numpy(dtype=np.int64)
    end = nuggets["end"].to_numpy(dtype=np.int64)
    if ((start < 1) | (end > nodes["words"].to_numpy()[node])).any():
        raise ValueError("a nugget reaches beyond the words of its node")

    words_before = nodes["before"].to_numpy()[node]
    further = [name for name in nuggets.columns if name not in (*_NODE, "start", "end")]
    placed = nuggets[further].reset_index(drop=True).astype("str")
    placed["node"], placed["place"] = node, start
    placed["start"] = (start + words_before).astype("str")
    placed["end"] = (end + words_before).astype("str")
    # A path has the nuggets of all nodes that it goes through; a node may be on many paths.
    rows = trees.steps.merge(placed, on="node", how="left")
    rows = rows.fillna({"level": "0", "place": 0}).fillna("")
    rows = rows.join(nodes["round"].rename("turn"), on="node")
    rows = rows.sort_values(["path", "turn", "place"], kind="stable", ignore_index=True)
    rows[["run", "topic"]] = trees.paths[["run", "path"]].to_numpy()[rows["path"]]
    columns = ["run", "topic", "turn", "start", "end", *further]
    return rows[columns].astype({"run": "str", "topic": "str"})


def _check_intents(tree: pd.DataFrame, nuggets: pd.DataFrame, intents: Mapping[str, float]) -> None:
    intents_of_rows = {*tree["intent"], *nuggets["intent"]} - {""}
    mismatched = sorted(intents_of_rows ^ set(intents))
    if mismatched:
        raise ValueError(
            "every intent of the tree and its nuggets needs a share, and no other:"
            f" {listed(mismatched)}"
        )
    if not intents:
        return
    total = sum(intents.values())
    if min(intents.values()) < 0 or abs(total - 1) > _ROUNDING:
        raise ValueError(f"the shares of the intents sum to {total:g}, not to 1")


def _of_intent(table: pd.DataFrame, intent: str) -> pd.DataFrame:
    """The rows that are there for those who come with an intent."""
    return table[table["intent"].isin([intent, ""])].drop(columns="intent")


def tree_scores(
    tree: pd.DataFrame,
    nuggets: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    score: Callable[[NuggetTable, Mapping[str, AttributeSet]], pd.DataFrame],
    intents: Mapping[str, float],
) -> pd.DataFrame:
    """Scores of every path of every tree, by intent of the users and for all.

    ``tree`` and ``nuggets`` are as in `conversation_trees` and `path_nuggets`, with a further
    column intent: a row that names one is there for those who come with it alone, another for all.
    ``score`` is the measure, ``intents`` are the shares of the users by intent, none where all come
    with the same. Columns are run, topic, intent, path, probability, attribute, measure, value; the
    intent of all is ``all``, and their paths are those of every intent.
    """
    _check_intents(tree, nuggets, intents)
    tables = []
    for intent in intents or [""]:
        trees = conversation_trees(_of_intent(tree, intent))
        nuggets_of_paths = path_nuggets(trees, _of_intent(nuggets, intent))
        paths = trees.paths.rename(columns={"topic": "tree", "path": "topic"})
        scores = score(nugget_table(nuggets_of_paths, attributes), attributes)
        scores = scores.merge(paths, on=_TREE, validate="many_to_one")
        scores = scores.rename(columns={"topic": "path", "tree": "topic"})
        tables.append(scores.assign(intent=intent))
    # All users together: each path as likely as its intent and the way through the tree.
    tables_of_all = []
    for (intent, share), table in zip(intents.items(), tables, strict=False):
        probability = table["probability"] * share
        path = table["path"] + " of " + intent
        tables_of_all.append(table.assign(intent="all", probability=probability, path=path))
    columns = [*_TREE, "intent", "path", "probability", "attribute", "measure", "value"]
    return pd.concat([*tables, *tables_of_all], ignore_index=True)[columns]


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
        E[M] = \sum_{\text{leaf } l} P(l)\, M(C_l), \quad
        P(l) = \prod_{v \text{ on the way to } l} P(v \mid
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
    ...     [
    ...         ["r", "t", "1", "", 1, 20],
    ...         ["r", "t", "more", "1", 0.75, 30],
    ...         ["r", "t", "adhere", "1", 0.25, 40],
    ...     ],
    ...     columns=["run", "topic", "node", "parent", "probability", "words"],
    ... )
    >>> scores = pd.DataFrame({"run": "r", "topic": ["t/more", "t/adhere"], "value": [1.0, 0.2]})
    >>> scores = scores.assign(attribute="", measure="R")
    >>> expected_scores(scores, conversation_trees(table))
      run topic attribute measure  value
    0   r     t                 R    0.8
    """
    paths = trees.paths.rename(columns={"topic": "tree", "path": "topic"})
    paths["n_paths"] = paths.groupby(["run", "tree"], sort=False)["topic"].transform("size")
    joined = scores.merge(paths, on=_TREE, how="left")
    stray = joined["probability"].isna()
    if stray.any():
        run, topic = joined.loc[stray, _TREE].iloc[0]
        raise ValueError(f"a score of run {run!r}, topic {topic!r}, which is no path of a tree")
    joined["value"] = joined["value"] * joined["probability"]
    groups = joined.groupby(["run", "tree", "attribute", "measure"], sort=False)
    # An expectation over some of the paths would be too low.
    repeated = joined.duplicated([*_TREE, "attribute", "measure"]).any()
    if repeated or (groups.size() != groups["n_paths"].first()).any():
        raise ValueError("every path of a tree needs each score once")
    expected = groups["value"].sum().reset_index().rename(columns={"tree": "topic"})
    return expected.astype({"attribute": "str", "measure": "str"})
