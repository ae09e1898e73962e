"""Nuggets of two annotators of the same conversations: which match, and mixtures of both."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from equipoise.arrays import Booleans, Integers
from equipoise.attributes import AttributeSet
from equipoise.nuggets import LARGEST_INTEGER, NuggetTable
from equipoise.problems import Note, listed

_KEYS = ["run", "topic"]


@dataclass(frozen=True)
class Side:
    """Nuggets with positions of one annotator, in the conversations that both have annotated.

    ``common`` (conversations of the table,) is the number of each among those that both have, -1
    for the others. ``rows`` (nuggets,) are in the order of positions, conversation by conversation;
    ``start`` and ``end`` count words through all of them, so that no two conversations overlap.
    """

    table: NuggetTable
    common: Integers
    rows: Integers
    start: Integers
    end: Integers

    @classmethod
    def of(cls, table: NuggetTable, common: Integers) -> Side:
        """The nuggets of a table in the common conversations."""
        conversation = common[table.conversation]
        rows = np.flatnonzero((table.start > 0) & (conversation >= 0))
        offset = conversation[rows] * (2 * LARGEST_INTEGER)
        start, end = offset + table.start[rows], offset + table.end[rows]
        order = np.argsort(start, kind="stable")
        return cls(table, common, rows[order], start[order], end[order])


def _overlapping(side: Side, other_side: Side) -> pd.DataFrame:
    """Places of nuggets of both sides that share a word, the largest shared part first."""
    # Nuggets of one annotator do not overlap, so those that meet a nugget lie next to each other.
    begin = np.searchsorted(other_side.end, side.start, side="left")
    end = np.searchsorted(other_side.start, side.end, side="right")
    n_meeting = end - begin
    a = np.repeat(np.arange(len(begin)), n_meeting)
    before = np.cumsum(n_meeting) - n_meeting
    b = np.arange(len(a)) + np.repeat(begin - before, n_meeting)

    last_start = np.maximum(side.start[a], other_side.start[b])
    first_start = np.minimum(side.start[a], other_side.start[b])
    first_end = np.minimum(side.end[a], other_side.end[b])
    last_end = np.maximum(side.end[a], other_side.end[b])
    shared_part = (first_end - last_start + 1) / (last_end - first_start + 1)
    pairs = pd.DataFrame({"first": a, "second": b, "apart": -shared_part})
    return pairs.sort_values(["apart", "first", "second"], ignore_index=True)


class AnnotatorPair:
    """Nuggets of two annotators in the conversations that both have annotated."""

    def __init__(self, first: NuggetTable, second: NuggetTable) -> None:
        numbered = []
        for table in (first, second):
            numbers = np.arange(len(table.conversations))
            numbered.append(table.conversations.assign(number=numbers))
        # Only conversations that both have annotated can be compared.
        common = numbered[0].merge(numbered[1], on=_KEYS, suffixes=("_first", "_second"))
        if common.empty:
            names = [_names(table.conversations) for table in (first, second)]
            raise ValueError(
                f"no conversation that both have; the first has {names[0]}, the second {names[1]}"
            )
        self.conversations = common[_KEYS]
        sides = []
        for table, name in ((first, "first"), (second, "second")):
            common_number = np.full(len(table.conversations), -1)
            common_number[common[f"number_{name}"]] = np.arange(len(common))
            sides.append(Side.of(table, common_number))
            alone = common_number < 0
            if alone.any():
                warnings.warn(
                    f"{alone.sum()} conversations of the {name} only are left out:"
                    f" {_names(table.conversations[alone])}",
                    Note,
                    stacklevel=4,
                )
        self.first, self.second = sides

    def matched(self) -> tuple[Integers, Integers]:
        """Rows of the nuggets of each annotator that match, pair by pair.

        Each nugget is matched with one at most; pairs that share the largest part come first.
        """
        first, second = self.first, self.second
        pairs = _overlapping(first, second)
        matches = [pairs.iloc[:0]]
        while len(pairs):
            # A pair that is the best of both its nuggets is matched: no later one can part it.
            best = pairs[~pairs.duplicated("first") & ~pairs.duplicated("second")]
            matches.append(best)
            has_match = pairs["first"].isin(best["first"]) | pairs["second"].isin(best["second"])
            pairs = pairs[~has_match]
        matched = pd.concat(matches)
        rows_of_first = first.rows[matched["first"]]
        rows_of_second = second.rows[matched["second"]]

        other_turn = first.table.turn[rows_of_first] != second.table.turn[rows_of_second]
        if other_turn.any():
            place = first.table.places(rows_of_first[other_turn]).iloc[0].to_dict()
            raise ValueError(
                "a nugget is in another turn for the second annotator,"
                f" who read another text: {place}"
            )
        return rows_of_first, rows_of_second

    def unmatched(self, matched: tuple[Integers, Integers]) -> tuple[Integers, Integers]:
        """Rows of each annotator's relevant nuggets that are matched with nothing."""
        unmatched = []
        for side, matched_rows in zip((self.first, self.second), matched, strict=True):
            rows = side.rows[~np.isin(side.rows, matched_rows)]
            unmatched.append(rows[side.table.level[rows] > 0])
        return unmatched[0], unmatched[1]

    @property
    def n_nuggets(self) -> int:
        """Nuggets with positions of both annotators."""
        return len(self.first.rows) + len(self.second.rows)

    def mixtures(self, coins: Booleans, attributes: Mapping[str, AttributeSet]) -> NuggetTable:
        """The conversations again for each draw; groups of overlapping nuggets are one annotator's.

        ``coins``: shaped (draws, at least one for each group of nuggets), True for the first.
        """
        spans = self._spans()
        is_of_first = (spans["annotator"] == 0).to_numpy()
        draw, span = np.nonzero(coins[:, spans["group"]] == is_of_first)  # of (draws, spans)
        n_conversations = len(self.conversations)
        nuggets = spans.iloc[span]
        nuggets = nuggets.assign(conversation=draw * n_conversations + nuggets["conversation"])

        # A row of level 0 keeps the turns behind the last nugget.
        n_mixtures = len(coins) * n_conversations
        turns_held = pd.DataFrame(
            {
                "conversation": np.arange(n_mixtures),
                "turn": np.tile(self._turns_held(), len(coins)),
                "start": 0,
                "end": 0,
                "level": 0,
                "entity": -1,
                "vector": -1,
            }
        )
        rows = pd.concat([nuggets, turns_held]).sort_values("conversation", kind="stable")
        memberships = {}
        for name, attribute in attributes.items():
            vectors = np.concatenate(
                [
                    self.first.table.memberships[name][self.first.rows],
                    self.second.table.memberships[name][self.second.rows],
                    np.zeros((1, len(attribute.groups))),  # of rows of level 0
                ]
            )
            memberships[name] = vectors[rows["vector"]]
        arrays = {name: rows[name].to_numpy() for name in ("turn", "start", "end", "level")}
        entities = spans.attrs["entities"]
        places = np.tile(np.arange(n_conversations), len(coins))
        return NuggetTable(
            conversations=self.conversations.iloc[places].reset_index(drop=True),
            conversation=rows["conversation"].to_numpy(),
            memberships=memberships,
            entity=rows["entity"].to_numpy() if entities else None,
            entities=entities,
            **arrays,
        )

    def _spans(self) -> pd.DataFrame:
        """Nuggets of both, by position; ``group`` numbers those that overlap, one with the next.

        ``vector`` is the place of a nugget behind all of the first annotator's and those before it
        of the second's.
        """
        tables = []
        for annotator, side in enumerate((self.first, self.second)):
            table, rows = side.table, side.rows
            tables.append(
                pd.DataFrame(
                    {
                        "annotator": annotator,
                        "conversation": side.common[table.conversation[rows]],
                        "turn": table.turn[rows],
                        "start": table.start[rows],
                        "end": table.end[rows],
                        "level": table.level[rows],
                        "name": table.names[rows],
                        "first word": side.start,
                        "last word": side.end,
                    }
                )
            )
        spans = pd.concat(tables, ignore_index=True)
        spans["vector"] = np.arange(len(spans))
        spans["entity"], entities = pd.factorize(spans["name"].where(spans["name"] != "", None))
        # A nugget that begins behind all before it opens a group.
        spans = spans.drop(columns="name").sort_values("first word", kind="stable")
        reach = spans["last word"].cummax().shift(fill_value=-1)
        spans["group"] = (spans["first word"] > reach).cumsum() - 1
        spans.attrs["entities"] = tuple(map(str, entities))
        return spans

    def _turns_held(self) -> Integers:
        """Highest turn of each conversation that either annotator has, at least 1."""
        highest = np.ones(len(self.conversations), dtype=np.int64)
        for side in (self.first, self.second):
            is_common = side.common >= 0
            common = side.common[is_common]
            highest[common] = np.maximum(highest[common], side.table.turns_held[is_common])
        return highest


def _names(conversations: pd.DataFrame) -> str:
    return listed(conversations[_KEYS].agg(" ".join, axis=1), 3)
