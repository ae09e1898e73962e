"""Properties that one may want of a measure of conversations, each a change of a conversation; and who breaks them.

A property changes every conversation of a nugget table in one way, and says which way no score
should move. `examine` scores all conversations before and after, for any measure, and names the
first conversation whose score moves so. With `small_conversations`, which come in the order of
their size, that is the smallest example that there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd

from equipoise.arrays import Booleans, Floats, ratio, starts
from equipoise.attributes import AttributeSet
from equipoise.nuggets import NuggetTable

Sets = Mapping[str, AttributeSet]
Scorer = Callable[[NuggetTable, Sets], Floats]
"""A measure: from a nugget table and attribute sets to the score of each conversation, in the order of the table."""
Change = Callable[[NuggetTable, Sets, float], tuple[NuggetTable, Sets, Booleans | bool]]
"""From a table, its sets and the patience to those after the change, and which conversations it could be made in."""

_EQUAL = 1e-12  # scores that differ by no more are equal: the rest is rounding


@dataclass(frozen=True)
class Property:
    """What is changed in a conversation, and how a score may move: not up, not down, or not at all."""

    change: Change
    wanted: Literal["not higher", "not lower", "same"]
    says: str

    def broken(self, difference: Floats) -> Booleans:
        """Where a difference, after minus before, is not as wanted."""
        up, down = difference > _EQUAL, difference < -_EQUAL
        return {"not higher": up, "not lower": down, "same": up | down}[self.wanted]


def _last(nuggets: NuggetTable) -> tuple[Any, Booleans]:
    """Row of the last relevant nugget of each conversation (some row where it has none), and which have one."""
    last = np.full(len(nuggets.conversations), -1)
    rows = np.flatnonzero(nuggets.level > 0)
    np.maximum.at(last, nuggets.conversation[rows], rows)
    return last, last >= 0


def _named(nuggets: NuggetTable) -> NuggetTable:
    """The same nuggets, each of an entity of its own where they name none."""
    entities = tuple(map(str, range(len(nuggets))))
    return (
        nuggets
        if nuggets.entity is not None
        else replace(nuggets, entity=np.arange(len(nuggets)), entities=entities)
    )


def _with_one_more(
    nuggets: NuggetTable, given: Sets, memberships: Mapping[str, Floats], **at: Any
) -> NuggetTable:
    """Each conversation with one more nugget: by default a word behind the last, in the last turn, highly relevant.

    ``behind`` are the rows to put it behind.
    """
    nuggets, (last, some) = _named(nuggets), _last(nuggets)
    count = len(nuggets.conversations)
    number, start = np.arange(count), np.where(some, nuggets.end[last], 0) + 1
    behind = at.pop("behind", np.searchsorted(nuggets.conversation, number, side="right") - 1)
    new = {"conversation": number, "turn": nuggets.turns_held, "start": start, "end": start}
    new |= {"level": np.full(count, 2), "entity": len(nuggets.entities) + number} | at
    order = np.argsort(np.concatenate([np.arange(len(nuggets)), behind + 0.5]))
    columns = {
        name: np.concatenate([getattr(nuggets, name), values])[order]
        for name, values in new.items()
    }
    members = {
        name: np.concatenate([nuggets.memberships[name], memberships[name]])[order]
        for name in given
    }
    return replace(
        nuggets, memberships=members, entities=(*nuggets.entities, *map(str, number)), **columns
    )


def _refusal(nuggets: NuggetTable, given: Sets, _: float) -> tuple[NuggetTable, Sets, bool]:
    return replace(nuggets, level=np.zeros_like(nuggets.level)), given, True


def _moved(nuggets: NuggetTable, rows: Any, words: Any) -> NuggetTable:
    start, end = nuggets.start.copy(), nuggets.end.copy()
    start[rows] += words
    end[rows] += words
    return replace(nuggets, start=start, end=end)


def _duplicate(nuggets: NuggetTable, given: Sets, _: float) -> tuple[NuggetTable, Sets, Booleans]:
    some, row = _last(nuggets)[1], np.arange(len(nuggets))
    first = np.full(len(some), len(nuggets))
    np.minimum.at(first, nuggets.conversation, np.where(nuggets.level > 0, row, len(nuggets)))
    first = np.minimum(first, len(nuggets) - 1)
    words = nuggets.end[first] - nuggets.start[first] + 1
    behind = (row > first[nuggets.conversation]) & (nuggets.end > 0)
    shifted = _moved(_named(nuggets), behind, words[nuggets.conversation[behind]])
    again = {name: getattr(shifted, name)[first] for name in ("turn", "level", "entity")}
    again |= {"start": nuggets.end[first] + 1, "end": nuggets.end[first] + words, "behind": first}
    same = {name: nuggets.memberships[name][first] for name in given}
    return _with_one_more(shifted, given, same, **again), given, some


def _padding(nuggets: NuggetTable, given: Sets, _: float) -> tuple[NuggetTable, Sets, Booleans]:
    return _moved(nuggets, nuggets.end > 0, 1), given, _last(nuggets)[1]


def _earlier(nuggets: NuggetTable, given: Sets, _: float) -> tuple[NuggetTable, Sets, Booleans]:
    last, some = _last(nuggets)
    before = np.where(
        np.isin(last, starts(nuggets.conversation)), 0, nuggets.end[np.maximum(last, 1) - 1]
    )
    room = some & (nuggets.start[last] > before + 1)
    return _moved(nuggets, last[room], -1), given, room


def _beyond(nuggets: NuggetTable, given: Sets, patience: float) -> tuple[NuggetTable, Sets, bool]:
    last, some = _last(nuggets)
    end = np.maximum(np.where(some, nuggets.end[last], 0), int(patience)) + 1
    first = {
        name: np.eye(len(a.groups))[np.zeros(len(last), dtype=int)] for name, a in given.items()
    }
    return _with_one_more(nuggets, given, first, start=end, end=end), given, True


def _addition(fair: bool) -> Change:
    def change(nuggets: NuggetTable, given: Sets, _: float) -> tuple[NuggetTable, Sets, Booleans]:
        possible = _last(nuggets)[1]
        relevant = np.flatnonzero(nuggets.level > 0)
        memberships = {}
        for name, attribute in given.items():
            sums = np.zeros((len(nuggets.conversations), len(attribute.groups)))
            np.add.at(sums, nuggets.conversation[relevant], nuggets.memberships[name][relevant])
            excess = ratio(sums, sums.sum(axis=1, keepdims=True), 0.0) - attribute.target
            memberships[name] = np.eye(len(attribute.groups))[
                (-excess if fair else excess).argmax(axis=1)
            ]
            possible = possible & (np.abs(excess).max(axis=1) > _EQUAL)
        return _with_one_more(nuggets, given, memberships), given, possible

    return change


def _each(change_groups: Callable[[Floats], Floats]) -> Change:
    """Change targets and memberships, shaped (..., groups), alike; the groups are then called by number."""

    def change(nuggets: NuggetTable, given: Sets, _: float) -> tuple[NuggetTable, Sets, bool]:
        targets = {name: change_groups(attribute.target) for name, attribute in given.items()}
        sets = {
            name: AttributeSet(name, given[name].kind, tuple(map(str, range(len(target)))), target)
            for name, target in targets.items()
        }
        memberships = {name: change_groups(nuggets.memberships[name]) for name in given}
        return replace(nuggets, memberships=memberships), sets, True

    return change


def _split(nuggets: NuggetTable, given: Sets, _: float) -> tuple[NuggetTable, Sets, Booleans]:
    last, some = _last(nuggets)
    relevant = np.flatnonzero(nuggets.level > 0)
    of = nuggets.conversation[relevant]
    possible = some & (
        np.bincount(of[nuggets.turn[relevant] == nuggets.turn[last][of]], minlength=len(last)) > 1
    )
    turn = (
        nuggets.turn
        + (nuggets.turn > nuggets.turn[last][nuggets.conversation]) * possible[nuggets.conversation]
    )
    turn[last[possible]] += 1
    return replace(nuggets, turn=turn), given, possible


_UNFAIR, _FAIR = _addition(fair=False), _addition(fair=True)
_ROLLED = _each(lambda shares: np.roll(shares, 1, axis=-1))
_LARGER = _each(lambda shares: np.concatenate([shares, np.zeros_like(shares[..., :1])], axis=-1))
_SCALED = _each(lambda shares: 7 * shares if shares.ndim == 1 else shares)

PROPERTIES: Mapping[str, Property] = MappingProxyType(
    {
        "refusal": Property(
            _refusal, "not higher", "A conversation that names nothing scores no higher."
        ),
        "duplicate": Property(
            _duplicate, "not higher", "Naming the first entity twice in a row raises no score."
        ),
        "padding": Property(
            _padding, "not higher", "A word put before all nuggets raises no score."
        ),
        "unfair addition": Property(
            _UNFAIR, "not higher", "One more of the group most above its target raises no score."
        ),
        "fair addition": Property(
            _FAIR, "not lower", "One more of the group most below its target lowers no score."
        ),
        "earlier nugget": Property(
            _earlier, "not lower", "The last nugget a word earlier lowers no score."
        ),
        "beyond patience": Property(_beyond, "same", "A nugget that nobody reads changes nothing."),
        "order of groups": Property(
            _ROLLED, "same", "Naming the groups in another order changes nothing."
        ),
        "number of groups": Property(
            _LARGER, "same", "A group that nobody is in or wanted in changes nothing."
        ),
        "split turn": Property(
            _split, "same", "A turn split in two before its last nugget changes nothing."
        ),
        "scale of the target": Property(
            _SCALED, "same", "A target in other units changes nothing."
        ),
    }
)
"""Properties by name."""


def examine(
    measures: Mapping[str, Scorer], nuggets: NuggetTable, sets: Sets, patience: float
) -> pd.DataFrame:
    """Whether measures keep each of the `PROPERTIES` on these conversations.

    ``patience`` is that of the measures. Columns are measure, property, conversations (where the
    change can be made), moved (where a score moves at all), broken (where it moves as it should
    not), example (the place of the first of these, or none), before and after (its scores).
    """
    made = {name: one.change(nuggets, sets, patience) for name, one in PROPERTIES.items()}
    rows = []
    for measure, score in measures.items():
        before = score(nuggets, sets)
        for name, (changed, others, possible) in made.items():
            after = score(changed, others)
            moved = np.broadcast_to(possible, before.shape) & (np.abs(after - before) > _EQUAL)
            broken = np.flatnonzero(moved & PROPERTIES[name].broken(after - before))
            first = (
                [broken[0], before[broken[0]], after[broken[0]]]
                if len(broken)
                else [pd.NA, np.nan, np.nan]
            )
            rows.append(
                [
                    measure,
                    name,
                    np.sum(possible | np.zeros_like(moved)),
                    moved.sum(),
                    len(broken),
                    *first,
                ]
            )
    columns = [
        "measure",
        "property",
        "conversations",
        "moved",
        "broken",
        "example",
        "before",
        "after",
    ]
    return pd.DataFrame(rows, columns=columns).astype({"example": "Int64"})


def small_conversations(attribute: AttributeSet, most: int = 3) -> NuggetTable:
    """Every conversation of up to ``most`` nuggets of a word, from the smallest on; the first is a refusal.

    Each nugget is of one group and of level 1 or 2, and stands at once behind the one before it or
    a word later, in the same turn or the next. The topic says all that.
    """
    groups, rows, count = range(len(attribute.groups)), [(0, "nothing", 1, 0, 0, 0)], 1
    for nuggets in range(1, most + 1):
        for gaps, turns in product(
            product((0, 1), repeat=nuggets), product((0, 1), repeat=nuggets - 1)
        ):
            ends, held = np.cumsum(np.array(gaps) + 1).tolist(), np.cumsum([1, *turns]).tolist()
            for levels, names in product(
                product((1, 2), repeat=nuggets), product(groups, repeat=nuggets)
            ):
                each = list(zip(held, ends, levels, names, strict=True))
                topic = "; ".join(
                    f"S{t} word {end}: L{level} {attribute.groups[g]}" for t, end, level, g in each
                )
                rows += [(count, topic, *nugget) for nugget in each]
                count += 1
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    number, topics, turn, end, level, group = columns
    shares = np.eye(len(groups))[group] * (level > 0)[:, None]
    table = pd.DataFrame({"run": "small", "topic": topics[starts(number)]}, dtype="str")
    return NuggetTable(table, number, turn, end, end, level, {attribute.name: shares})
