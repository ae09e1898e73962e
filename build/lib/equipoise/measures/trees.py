r"""Conversations that branch: scores of their paths, and the expectation over the paths.

A conversation tree has a round (a user turn and its system turn) at each node; what the user says next decides the
branch. Each way from the root to a leaf is an ordinary conversation, scored by any measure of conversations; the tree's
score is what a user can expect who takes the branches with given probabilities:

.. math:: E[M] = \sum_{\text{leaf } l} P(l) \, M(C_l), \quad P(l) = \prod_{v \text{ on the way to } l} P(v \mid
parent(v))

References
----------
gfrc, section 7 (turns that branch out, with transition probabilities); gfrc2, footnote 8 (a path is a sequence of
turns).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers

TREE_COLUMNS = ("run", "topic", "node", "parent", "probability", "words")
_ROUND = ["run", "topic", "turn"]
SUM_TOLERANCE = 1e-9


def reach(parents: ArrayLike, probabilities: ArrayLike, words: ArrayLike) -> tuple[Floats, Integers, Integers]:
    """How each node is reached: with what probability, after how many words, in which round.

    ``parents`` (shaped (nodes,)): Index of each node's parent, -1 for a root. ``probabilities`` (shaped (nodes,)):
    of taking the node, given its parent. ``words`` (shaped (nodes,)): number of words of the node's turns. Returns:
    probability : ndarray, shaped (nodes,): Product of the probabilities from the root to the node. before : ndarray
    of int, shaped (nodes,): Number of words of the rounds before the node. round : ndarray of int, shaped (nodes,):
    1 for a root.

    One pass per level of the tree, over all nodes at once.
    """
    parent = np.asarray(parents, dtype=np.int64)
    given = np.asarray(probabilities, dtype=np.float64)
    length = np.asarray(words, dtype=np.int64)
    probability, before = np.where(parent < 0, given, np.nan), np.zeros(len(parent), dtype=np.int64)
    level = np.where(parent < 0, 1, 0)
    at = np.flatnonzero(parent < 0)
    reached = len(at)
    while len(at):
        fresh = np.zeros(len(parent), dtype=np.bool_)
        fresh[at] = True
        at = np.flatnonzero((parent >= 0) & fresh[parent])
        probability[at] = probability[parent[at]] * given[at]
        before[at] = before[parent[at]] + length[parent[at]]
        level[at] = level[parent[at]] + 1
        reached += len(at)
    if reached < len(parent):
        raise ValueError(f"{len(parent) - reached} nodes hang on each other in a circle, not on a root")
    return probability, before, level


@dataclass(frozen=True)
class ConversationTrees:
    """Conversation trees, laid out node by node and path by path. Made by `conversation_trees`.

    ``nodes`` (columns run, topic, node, parent, probability, words, before, round): with the words before each node
    and its round, from 1. ``paths`` (columns run, topic, path, leaf, probability): one row per leaf. ``path`` is
    the topic's id of the path as a conversation, ``topic/leaf``. ``steps`` (columns path, node): row numbers: which
    nodes a path goes through, from the leaf to the root.
    """

    nodes: pd.DataFrame
    paths: pd.DataFrame
    steps: pd.DataFrame


def conversation_trees(table: pd.DataFrame) -> ConversationTrees:
    """Lay conversation trees out by their paths.

    ``table`` (columns run, topic, node, parent, probability, words): one row per round. ``parent`` is "" for the
    first round; ``probability`` is that of taking the node given its parent (1 for a first round), and sums to 1
    over the children of a node; ``words`` counts the words of both its turns.

    gfrc, section 7.
    """
    missing = [column for column in TREE_COLUMNS if column not in table.columns]
    if missing:
        raise ValueError(f"the tree table has no column {', '.join(missing)}")
    nodes = table[list(TREE_COLUMNS)].reset_index(drop=True)
    keys = pd.MultiIndex.from_frame(nodes[["run", "topic", "node"]])
    if keys.has_duplicates:
        raise ValueError(f"node {keys[keys.duplicated()][0]} twice")
    above = pd.MultiIndex.from_frame(nodes[["run", "topic", "parent"]])
    rooted = (nodes["parent"] == "").to_numpy()
    parent = np.where(rooted, -1, keys.get_indexer(above)).astype(np.int64)
    if (lost := (parent < 0) & ~rooted).any():
        raise ValueError(f"no node is the parent of {keys[lost][0]}")
    roots = nodes[rooted].groupby(["run", "topic"], sort=False).size()
    trees = nodes.groupby(["run", "topic"], sort=False).size()
    if len(roots) < len(trees) or (roots > 1).any():
        raise ValueError("each tree must have one first round, with an empty parent")
    given = nodes["probability"].to_numpy(dtype=np.float64)
    if not ((given >= 0) & (given <= 1)).all() or (given[rooted] != 1).any():
        raise ValueError("probabilities must lie between 0 and 1, and be 1 for a first round")
    if (nodes["words"].to_numpy() < 0).any():
        raise ValueError("a node has a negative number of words")
    sums = np.bincount(parent[~rooted], weights=given[~rooted], minlength=len(nodes))
    inner = np.bincount(parent[~rooted], minlength=len(nodes)) > 0
    if (wrong := inner & (np.abs(sums - 1) > SUM_TOLERANCE)).any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"the probabilities of the branches behind {keys[at]} sum to {sums[at]:g}, not to 1")
    probability, before, level = reach(parent, given, nodes["words"].to_numpy())
    nodes = nodes.assign(before=before, round=level)

    leaves = np.flatnonzero(~inner)
    path, node = np.arange(len(leaves)), leaves
    steps = [pd.DataFrame({"path": path, "node": node})]
    while (on := parent[node] >= 0).any():
        path, node = path[on], parent[node[on]]
        steps.append(pd.DataFrame({"path": path, "node": node}))
    paths = nodes.loc[leaves, ["run", "topic"]].reset_index(drop=True)
    leaf = nodes["node"].iloc[leaves].reset_index(drop=True)
    paths = paths.assign(path=paths["topic"] + "/" + leaf, leaf=leaf, probability=probability[leaves])
    return ConversationTrees(nodes, paths, pd.concat(steps, ignore_index=True))


def leaving_trees(turns: pd.DataFrame, persistence: float) -> ConversationTrees:
    r"""Trees of conversations whose user may leave after each round.

    .. math:: P(\text{leaves after round } k) = p^{k-1} (1 - p) \text{ for } k < n, \quad p^{n-1} \text{ for } k = n

    ``turns`` (columns run, topic, turn, start, end): Turn boundaries of conversations, as
    `equipoise.loaders.transcripts.turn_frame` gives them: positions of the first and the last word of each user and
    system turn; those of one number are a round. ``persistence``: p, the probability that a user asks on after a
    round, 0 to 1. Returns: A round is a node of its number; leaving after it is a node without words.

    gfrc, section 7, with one probability for every transition.
    """
    if not 0 <= persistence <= 1:
        raise ValueError(f"persistence is a probability, found {persistence}")
    missing = [column for column in (*_ROUND, "start", "end") if column not in turns.columns]
    if missing:
        raise ValueError(f"the turns have no column {', '.join(missing)}")
    words = turns[_ROUND].assign(words=turns["end"] - turns["start"] + 1)
    rounds = words.groupby(_ROUND, sort=False)["words"].sum().reset_index()
    number = rounds["turn"].astype("int64")
    if (number != rounds.groupby(["run", "topic"], sort=False).cumcount() + 1).any():
        raise ValueError("the rounds of a conversation are numbered 1, 2, ... in this order")
    first, before = number == 1, (number - 1).astype("str")
    nodes = rounds.drop(columns="turn").assign(
        node=number.astype("str"), parent=before.mask(first, ""), probability=np.where(first, 1.0, persistence)
    )
    left = nodes[~first].assign(node="left after " + before[~first], probability=1 - persistence, words=0)
    return conversation_trees(pd.concat([nodes, left], ignore_index=True))


def nuggets_by_round(nuggets: pd.DataFrame, turns: pd.DataFrame) -> pd.DataFrame:
    """Nuggets with positions that count the words of their round, as `path_nuggets` wants them.

    ``nuggets`` (columns run, topic, turn, start, end, level and any others): in the columns of a nugget table,
    positions counted from the beginning of the conversation; rows without positions are left out. ``turns``
    (columns run, topic, turn, start): Turn boundaries, as in `leaving_trees`. Returns DataFrame, columns run,
    topic, start, end, level, the others, and node: The node is the number of the round.

    gfrc, section 7.
    """
    placed = nuggets[nuggets["start"].astype("str") != ""].astype({"turn": int, "start": int, "end": int, "level": int})
    begins = turns.groupby(_ROUND, sort=False)["start"].min()
    rounds = pd.MultiIndex.from_frame(placed[_ROUND])
    if not (known := rounds.isin(begins.index)).all():
        raise ValueError(f"a nugget stands in {rounds[~known][0]}, a turn without boundaries")
    before = begins.loc[rounds].to_numpy() - 1
    placed = placed.assign(
        node=placed["turn"].astype("str"), start=placed["start"] - before, end=placed["end"] - before
    )
    return placed.drop(columns="turn").reset_index(drop=True)


def path_nuggets(trees: ConversationTrees, nuggets: pd.DataFrame) -> pd.DataFrame:
    """Nugget table of every path.

    ``trees``: From `conversation_trees`. ``nuggets`` (columns run, topic, node, start, end, level and any others):
    Nuggets by the round they stand in; ``start`` and ``end`` count the words of that round, the first being 1.
    Returns DataFrame, columns run, topic, turn, start, end, level and the others: In the columns of a nugget table:
    ``topic`` is the path, positions count from the beginning of the conversation. Rounds without nuggets have a row
    of level 0 without positions. For `equipoise.files.nugget_table`.

    gfrc2, footnote 8: the paths of a tree are sequences of turns.
    """
    nodes = trees.nodes
    keys = pd.MultiIndex.from_frame(nodes[["run", "topic", "node"]])
    node = keys.get_indexer(pd.MultiIndex.from_frame(nuggets[["run", "topic", "node"]]))
    if (node < 0).any():
        raise ValueError(
            f"a nugget stands in {tuple(nuggets.loc[node < 0, ['run', 'topic', 'node']].iloc[0])}, which is no node"
        )
    start, end = (nuggets[column].to_numpy(dtype=np.int64) for column in ("start", "end"))
    if ((start < 1) | (end > nodes["words"].to_numpy()[node])).any():
        raise ValueError("a nugget reaches beyond the words of its node")
    before = nodes["before"].to_numpy()[node]
    others = [column for column in nuggets.columns if column not in ("run", "topic", "node", "start", "end")]
    placed = nuggets[others].reset_index(drop=True).astype("str")
    placed = placed.assign(node=node, start=(start + before).astype("str"), end=(end + before).astype("str"), at=start)
    empty = pd.DataFrame(
        {"node": np.setdiff1d(np.arange(len(nodes)), node), "start": "", "end": "", "at": 0, "level": "0"}
    )
    found = pd.concat([placed, empty], ignore_index=True)
    found[others] = found[others].fillna("")
    rows = trees.steps.merge(found, on="node")
    rows["turn"] = nodes["round"].to_numpy()[rows["node"]]
    rows = rows.sort_values(["path", "turn", "at"], kind="stable").reset_index(drop=True)
    rows["run"] = trees.paths["run"].to_numpy()[rows["path"]]
    rows["topic"] = trees.paths["path"].to_numpy()[rows["path"]]
    return rows[["run", "topic", "turn", "start", "end", *others]].astype({"run": "str", "topic": "str"})


def expected_scores(scores: pd.DataFrame, trees: ConversationTrees) -> pd.DataFrame:
    """Expectation of scores over the paths of each tree.

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
        If a path lacks a score that another path of its tree has, has one twice, or a score belongs to no path.

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
    joined = scores.merge(paths, on=["run", "topic"], how="left")
    if joined["probability"].isna().any():
        stray = joined.loc[joined["probability"].isna(), ["run", "topic"]].iloc[0]
        raise ValueError(f"a score of run {stray['run']!r}, topic {stray['topic']!r}, which is no path of a tree")
    joined["value"] = joined["value"] * joined["probability"]
    groups = joined.groupby(["run", "tree", "attribute", "measure"], sort=False)
    wanted = paths.groupby(["run", "tree"], sort=False).size()
    count = groups["topic"].agg(["size", "nunique"])
    per_tree = wanted.loc[
        pd.MultiIndex.from_arrays([count.index.get_level_values(k) for k in ("run", "tree")])
    ].to_numpy()
    if ((count["size"] != per_tree) | (count["nunique"] != per_tree)).any():
        raise ValueError("every path of a tree needs each score once")
    expected = groups["value"].sum().reset_index().rename(columns={"tree": "topic"})
    return expected.astype({"attribute": "str", "measure": "str"})
