"""Properties that one may want of a measure of conversations, each a change; and who breaks them.

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

from equipoise.arrays import Booleans, Floats, ratio
from equipoise.attributes import AttributeSet
from equipoise.nuggets import NuggetTable

Sets = Mapping[str, AttributeSet]
Scorer = Callable[[NuggetTable, Sets], Floats]
"""From a nugget table and attribute sets to the score of each conversation, in their order."""
Change = Callable[[NuggetTable, Sets, float], tuple[NuggetTable, Sets, Booleans | bool]]
"""From a table, its sets and the patience to those after the change, and where it can be made."""

_ROUNDING = 1e-12  # scores that differ by no more are equal


@dataclass(frozen=True)
class Property:
    """What is changed in a conversation, and how a score may move: not up, not down, nor at all."""

    change: Change
    wanted: Literal["not higher", "not lower", "same"]
    says: str

    def broken(self, difference: Floats) -> Booleans:
        """Where a difference, after minus before, is not as wanted."""
        is_higher, is_lower = difference > _ROUNDING, difference < -_ROUNDING
        if self.wanted == "not higher":
            return is_higher
        if self.wanted == "not lower":
            return is_lower
        return is_higher | is_lower


def _last(nuggets: NuggetTable) -> tuple[Any, Booleans]:
    """Row of the last relevant nugget of each conversation, and which have one.

    -1, some row, where there is none.
    """
    last = np.full(len(nuggets.conversations), -1)
    rows = np.flatnonzero(nuggets.level > 0)
    np.maximum.at(last, nuggets.conversation[rows], rows)
    return last, last >= 0


def _with_entities(nuggets: NuggetTable) -> NuggetTable:
    """The same nuggets, each of an entity of its own where they name none."""
    if nuggets.entity is not None:
        return nuggets
    numbers = np.arange(len(nuggets))
    return replace(nuggets, entity=numbers, entities=tuple(map(str, numbers)))


def _with_one_more(
    nuggets: NuggetTable, sets: Sets, memberships: Mapping[str, Floats], **columns: Any
) -> NuggetTable:
    """Each conversation with one more nugget: a word behind the last, in the last turn, level 2.

    ``columns`` say what of it is otherwise; ``behind`` are the rows to put it behind.
    """
    nuggets = _with_entities(nuggets)
    last, has_nugget = _last(nuggets)
    count = len(nuggets.conversations)
    conversation = np.arange(count)
    end_of_last = np.where(has_nugget, nuggets.end[last], 0)
    last_row = np.searchsorted(nuggets.conversation, conversation, side="right") - 1
    behind = columns.pop("behind", last_row)
    added = {
        "conversation": conversation,
        "turn": nuggets.turns_held,
        "start": end_of_last + 1,
        "end": end_of_last + 1,
        "level": np.full(count, 2),
        "entity": len(nuggets.entities) + conversation,
    }
    added |= columns

    # Half a row behind the row that each is put behind.
    order = np.argsort(np.concatenate([np.arange(len(nuggets)), behind + 0.5]))
    longer: dict[str, Any] = {}
    for name, values in added.items():
        longer[name] = np.concatenate([getattr(nuggets, name), values])[order]
    longer_memberships = {}
    for name in sets:
        shares = np.concatenate([nuggets.memberships[name], memberships[name]])
        longer_memberships[name] = shares[order]
    entities = (*nuggets.entities, *map(str, conversation))
    return replace(nuggets, memberships=longer_memberships, entities=entities, **longer)


def _moved(nuggets: NuggetTable, rows: Any, words: Any) -> NuggetTable:
    """Rows so many words further on."""
    start, end = nuggets.start.copy(), nuggets.end.copy()
    start[rows] += words
    end[rows] += words
    return replace(nuggets, start=start, end=end)


def _refusal(nuggets: NuggetTable, sets: Sets, _: float) -> tuple[NuggetTable, Sets, bool]:
    return replace(nuggets, level=np.zeros_like(nuggets.level)), sets, True


def _duplicate(nuggets: NuggetTable, sets: Sets, _: float) -> tuple[NuggetTable, Sets, Booleans]:
    _, has_nugget = _last(nuggets)
    row = np.arange(len(nuggets))
    first = np.full(len(has_nugget), len(nuggets))
    np.minimum.at(first, nuggets.conversation, np.where(nuggets.level > 0, row, len(nuggets)))
    first = np.minimum(first, len(nuggets) - 1)  # some row where there is none

    # What stands behind it makes room for its words.
    words = nuggets.end[first] - nuggets.start[first] + 1
    is_behind = (row > first[nuggets.conversation]) & (nuggets.end > 0)
    words_added = words[nuggets.conversation[is_behind]]
    shifted = _moved(_with_entities(nuggets), is_behind, words_added)
    entity: Any = shifted.entity
    same = {name: nuggets.memberships[name][first] for name in sets}
    changed = _with_one_more(
        shifted,
        sets,
        same,
        turn=shifted.turn[first],
        level=shifted.level[first],
        entity=entity[first],
        start=nuggets.end[first] + 1,
        end=nuggets.end[first] + words,
        behind=first,
    )
    return changed, sets, has_nugget


def _padding(nuggets: NuggetTable, sets: Sets, _: float) -> tuple[NuggetTable, Sets, Booleans]:
    _, has_nugget = _last(nuggets)
    return _moved(nuggets, nuggets.end > 0, 1), sets, has_nugget


def _earlier(nuggets: NuggetTable, sets: Sets, _: float) -> tuple[NuggetTable, Sets, Booleans]:
    last, has_nugget = _last(nuggets)
    # Between it and the nugget before it there may be empty turns, which have no place.
    is_before = np.arange(len(nuggets.end)) < last[nuggets.conversation]
    end_before = np.zeros(len(last), dtype=nuggets.end.dtype)
    np.maximum.at(end_before, nuggets.conversation[is_before], nuggets.end[is_before])
    has_room = has_nugget & (nuggets.start[last] > end_before + 1)
    return _moved(nuggets, last[has_room], -1), sets, has_room


def _beyond(nuggets: NuggetTable, sets: Sets, patience: float) -> tuple[NuggetTable, Sets, bool]:
    last, has_nugget = _last(nuggets)
    end_of_last = np.where(has_nugget, nuggets.end[last], 0)
    end = np.maximum(end_of_last, int(patience)) + 1
    memberships = {}
    for name, attribute in sets.items():
        shares = np.zeros((len(last), len(attribute.groups)))
        shares[:, 0] = 1.0
        memberships[name] = shares
    return _with_one_more(nuggets, sets, memberships, start=end, end=end), sets, True


def _addition(fair: bool) -> Change:
    """One more nugget of the group most below its target if fair, else most above."""

    def change(nuggets: NuggetTable, sets: Sets, _: float) -> tuple[NuggetTable, Sets, Booleans]:
        _, possible = _last(nuggets)
        relevant = np.flatnonzero(nuggets.level > 0)
        memberships = {}
        for name, attribute in sets.items():
            groups = len(attribute.groups)
            sums = np.zeros((len(nuggets.conversations), groups))
            np.add.at(sums, nuggets.conversation[relevant], nuggets.memberships[name][relevant])
            achieved = ratio(sums, sums.sum(axis=1, keepdims=True), 0.0)
            excess = achieved - attribute.target
            group = excess.argmin(axis=1) if fair else excess.argmax(axis=1)
            memberships[name] = np.eye(groups)[group]
            possible = possible & (np.abs(excess).max(axis=1) > _ROUNDING)
        return _with_one_more(nuggets, sets, memberships), sets, possible

    return change


def _of_groups(change_groups: Callable[[Floats], Floats]) -> Change:
    """Change targets and memberships, shaped (..., groups), alike; groups are then numbered."""

    def change(nuggets: NuggetTable, sets: Sets, _: float) -> tuple[NuggetTable, Sets, bool]:
        changed_sets = {}
        memberships = {}
        for name, attribute in sets.items():
            target = change_groups(attribute.target)
            groups = tuple(str(number) for number in range(len(target)))
            changed_sets[name] = AttributeSet(name, attribute.kind, groups, target)
            memberships[name] = change_groups(nuggets.memberships[name])
        return replace(nuggets, memberships=memberships), changed_sets, True

    return change


def _split(nuggets: NuggetTable, sets: Sets, _: float) -> tuple[NuggetTable, Sets, Booleans]:
    last, has_nugget = _last(nuggets)
    relevant = np.flatnonzero(nuggets.level > 0)
    conversation = nuggets.conversation[relevant]
    last_turn = nuggets.turn[last]
    # The turn of the last nugget needs another one to stay before the cut.
    in_last_turn = nuggets.turn[relevant] == last_turn[conversation]
    count = np.bincount(conversation[in_last_turn], minlength=len(last))
    possible = has_nugget & (count > 1)

    is_later = nuggets.turn > last_turn[nuggets.conversation]
    turn = nuggets.turn + is_later * possible[nuggets.conversation]
    turn[last[possible]] += 1
    return replace(nuggets, turn=turn), sets, possible


def _rolled(shares: Floats) -> Floats:
    return np.roll(shares, 1, axis=-1)


def _with_empty_group(shares: Floats) -> Floats:
    return np.concatenate([shares, np.zeros_like(shares[..., :1])], axis=-1)


def _target_times_seven(shares: Floats) -> Floats:
    is_target = shares.ndim == 1
    return 7 * shares if is_target else shares


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
            _addition(fair=False),
            "not higher",
            "One more of the group most above its target raises no score.",
        ),
        "fair addition": Property(
            _addition(fair=True),
            "not lower",
            "One more of the group most below its target lowers no score.",
        ),
        "earlier nugget": Property(
            _earlier, "not lower", "The last nugget a word earlier lowers no score."
        ),
        "beyond patience": Property(_beyond, "same", "A nugget that nobody reads changes nothing."),
        "order of groups": Property(
            _of_groups(_rolled), "same", "Naming the groups in another order changes nothing."
        ),
        "number of groups": Property(
            _of_groups(_with_empty_group),
            "same",
            "A group that nobody is in or wanted in changes nothing.",
        ),
        "split turn": Property(
            _split, "same", "A turn split in two before its last nugget changes nothing."
        ),
        "scale of the target": Property(
            _of_groups(_target_times_seven), "same", "A target in other units changes nothing."
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
    changes = {}
    for name, wanted_property in PROPERTIES.items():
        changes[name] = wanted_property.change(nuggets, sets, patience)
    rows = []
    for measure, score in measures.items():
        before = score(nuggets, sets)
        for name, (changed_nuggets, changed_sets, possible) in changes.items():
            after = score(changed_nuggets, changed_sets)
            is_possible = np.broadcast_to(possible, before.shape)
            moved = is_possible & (np.abs(after - before) > _ROUNDING)
            broken = np.flatnonzero(moved & PROPERTIES[name].broken(after - before))
            row = {"measure": measure, "property": name, "conversations": is_possible.sum()}
            row |= {"moved": moved.sum(), "broken": len(broken)}
            row |= {"example": pd.NA, "before": np.nan, "after": np.nan}
            if len(broken):
                example = broken[0]
                row |= {"example": example, "before": before[example], "after": after[example]}
            rows.append(row)
    return pd.DataFrame(rows).astype({"example": "Int64"})


def small_conversations(attribute: AttributeSet, most: int = 3) -> NuggetTable:
    """Every conversation of up to ``most`` nuggets of a word, smallest first, a refusal before all.

    Each nugget is of one group and of level 1 or 2, and stands at once behind the one before it or
    a word later, in the same turn or the next. The topic says all that.
    """
    groups = range(len(attribute.groups))
    conversations = [("nothing", [(1, 0, 0, 0)])]
    for count in range(1, most + 1):
        for gaps, turn_steps, levels, group_numbers in product(
            product((0, 1), repeat=count),
            product((0, 1), repeat=count - 1),
            product((1, 2), repeat=count),
            product(groups, repeat=count),
        ):
            ends = np.cumsum(np.array(gaps) + 1).tolist()
            turns = np.cumsum([1, *turn_steps]).tolist()
            nuggets = list(zip(turns, ends, levels, group_numbers, strict=True))
            names = []
            for turn, end, level, group in nuggets:
                names.append(f"S{turn} word {end}: L{level} {attribute.groups[group]}")
            conversations.append(("; ".join(names), nuggets))

    rows = []
    for number, (_, nuggets) in enumerate(conversations):
        for nugget in nuggets:
            rows.append((number, *nugget))
    number, turn, end, level, group = np.array(rows).T
    memberships = np.eye(len(groups))[group] * (level > 0)[:, None]
    topics = [topic for topic, _ in conversations]
    table = pd.DataFrame({"run": "small", "topic": topics}, dtype="str")
    return NuggetTable(table, number, turn, end, end, level, {attribute.name: memberships})
