"""GFRC2 of changed conversations: with one more nugget, and with a nugget named earlier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.measures.gfrc2 import factors, gfrc2, user_clusters
from equipoise.measures.group_fairness import UTILITY
from equipoise.nuggets import nugget_table


def one_more_nugget(
    frame: pd.DataFrame, attributes: Mapping[str, AttributeSet], **settings: Any
) -> pd.DataFrame:
    """Compute EGF in its two factors, unchanged and with one more nugget of the largest group.

    ``frame`` is a table of nuggets as read from its file. The nugget added to each run follows its
    last one and is as long. Columns are ``run, attribute, nuggets, added, share leaving, mean
    similarity, EGF``; EGF is the product of the two before it.
    """
    tables = []
    for added, nuggets in enumerate([frame, _with_one_more(frame, attributes)]):
        # An entity named twice would count once.
        nuggets = nuggets.astype(str).assign(entity="")
        clusters = user_clusters(nugget_table(nuggets, attributes), attributes, **settings)
        counts = clusters.groupby("run", sort=False).size().rename("nuggets").reset_index()
        table = factors(clusters).merge(counts)
        tables.append(table[table["part"] != UTILITY].assign(added=added))
    names = {
        "part": "attribute",
        "served": "share leaving",
        "mean": "mean similarity",
        "expected": "EGF",
    }
    columns = ["run", "attribute", "nuggets", "added", "share leaving", "mean similarity", "EGF"]
    return pd.concat(tables, ignore_index=True).rename(columns=names)[columns]


def _with_one_more(frame: pd.DataFrame, attributes: Mapping[str, AttributeSet]) -> pd.DataFrame:
    """Add one nugget after the last of each run, of the group that the run names most."""
    parts = [frame]
    for _, conversation in frame.groupby("run", sort=False):
        added = conversation.iloc[[-1]].astype({"end": int, "start": int})
        words = added["end"] - added["start"] + 1
        added["start"] = added["end"] + 1
        added["end"] = added["end"] + words
        for name in attributes:
            added[name] = conversation[name].mode().iloc[0]
        parts.append(added)
    return pd.concat(parts, ignore_index=True)


def earlier_nuggets(
    frame: pd.DataFrame,
    turns: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    **settings: Any,
) -> pd.DataFrame:
    """Compute GFRC2 after moving one nugget to an earlier free position of a system turn.

    ``frame`` is a table of nuggets as read from its file, ``turns`` the table of turns. One row per
    nugget and position: columns ``run, nugget`` (its number), ``start`` (the new one), ``passed``
    (nuggets that now follow it), ``change`` (of GFRC2).
    """
    # An entity named twice would count once.
    frame = frame.assign(entity="").astype({"start": int, "end": int, "turn": int})
    moves = list[tuple[Any, ...]]()
    conversations = []
    for run, conversation in frame.groupby("run", sort=False):
        conversation = conversation.reset_index(drop=True)
        for number, start, turn in _earlier_positions(conversation, turns[turns["run"] == run]):
            moved = conversation.copy()
            words = moved.loc[number, "end"] - moved.loc[number, "start"]
            moved.loc[number, ["start", "end", "turn"]] = start, start + words, turn
            moved["topic"] = str(len(moves))
            conversations.append(moved.sort_values("start"))
            passed = (
                conversation["start"].between(start, conversation.loc[number, "start"] - 1).sum()
            )
            moves.append((run, number + 1, start, passed))
    table = pd.DataFrame(moves, columns=["run", "nugget", "start", "passed"])
    scores = _gfrc2(pd.concat(conversations, ignore_index=True), attributes, **settings)
    before = _gfrc2(frame, attributes, **settings).set_index("run")["value"]
    after = scores.set_index("topic")["value"].loc[table.index.astype(str)]
    table["change"] = after.to_numpy() - table["run"].map(before).to_numpy()
    return table


def _gfrc2(
    frame: pd.DataFrame, attributes: Mapping[str, AttributeSet], **settings: Any
) -> pd.DataFrame:
    """Return the rows of GFRC2 itself."""
    scores = gfrc2(nugget_table(frame.astype(str), attributes), attributes, **settings)
    return scores[scores["measure"] == "GFRC2"]


def _earlier_positions(
    conversation: pd.DataFrame, turns: pd.DataFrame
) -> list[tuple[int, int, int]]:
    """Return the number of each nugget, with start and turn of every earlier free position."""
    system_turns = turns[turns["speaker"] == "system"].sort_values("start")
    positions = []
    for nugget in conversation.itertuples():
        others = conversation.drop(nugget.Index)
        words = nugget.end - nugget.start
        for turn in system_turns.itertuples():
            last_start = nugget.start - 1
            if not np.isnan(turn.end):  # the end of the last turn is not known
                last_start = min(last_start, int(turn.end) - words)
            for start in range(int(turn.start), last_start + 1):
                is_free = (others["end"] < start) | (others["start"] > start + words)
                if is_free.all():
                    positions.append((nugget.Index, start, turn.turn))
    return positions
