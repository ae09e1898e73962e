"""The nugget table: annotated nuggets of conversations, one row each, checked when they are read.

Columns are ``run, topic, turn, start, end, level``, optionally ``entity``, and one for each
attribute set with the membership probabilities separated by spaces, fractions allowed. ``turn``
counts system turns from 1; ``start`` and ``end`` are word positions in the whole conversation, the
first word being 1, end inclusive. A row of level 0 with empty positions says that the turn has no
relevant nugget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.arrays import Booleans, Floats, Integers, starts
from equipoise.attributes import CORE_COLUMNS, AttributeSet
from equipoise.errors import excerpt
from equipoise.readers import Table, number, read_table


@dataclass(frozen=True, eq=False)
class NuggetTable:
    """Annotated nuggets of conversations, checked, the rows of a conversation next to each other.

    `read_nuggets` and `nugget_table` make it. ``conversations`` (columns run, topic) has a row for
    each conversation, in the order of the source, and ``conversation`` is the place there of each
    nugget's. Arrays are shaped (rows,), memberships (rows, groups). ``start`` and ``end`` are 0
    where a row says only that its turn has no relevant nugget, ``memberships`` zeros where a row of
    level 0 leaves them out. ``entity`` is the place of a nugget's name among the ``entities``, -1
    where none is given, and None without such a column.
    """

    conversations: pd.DataFrame
    conversation: Integers
    turn: Integers
    start: Integers
    end: Integers
    level: Integers
    memberships: Mapping[str, Floats]
    entity: Integers | None = None
    entities: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.conversation)

    @property
    def turns_held(self) -> Integers:
        """Highest number of a turn of each conversation, shaped (conversations,)."""
        highest = np.zeros(len(self.conversations), dtype=np.int64)
        np.maximum.at(highest, self.conversation, self.turn)
        return highest

    @property
    def names(self) -> NDArray[np.object_]:
        """What each row names, empty where it names nothing; shaped (rows,)."""
        names = np.array([*self.entities, ""], dtype=object)  # the last, at -1, is empty
        if self.entity is None:
            return names[np.full(len(self), -1)]
        return names[self.entity]

    def places(self, rows: NDArray[np.intp]) -> pd.DataFrame:
        """Run, topic and turn of these rows, as a table."""
        return (
            self.conversations.take(self.conversation[rows])
            .reset_index(drop=True)
            .assign(turn=self.turn[rows])
        )

    def relevant(self) -> Booleans:
        """Which rows count as relevant nuggets, shaped (rows,).

        A nugget is not relevant if an earlier relevant one of the conversation named its entity
        (gfrc, section 5).
        """
        relevant: Booleans = self.level > 0
        if self.entity is None:
            return relevant
        named = np.flatnonzero(relevant & (self.entity >= 0))
        namings = pd.DataFrame(
            {"conversation": self.conversation[named], "entity": self.entity[named]}
        )
        relevant[named[namings.duplicated().to_numpy()]] = False
        return relevant


def read_nuggets(path: str | Path, attributes: Mapping[str, AttributeSet]) -> NuggetTable:
    """A nugget table from a CSV, JSON Lines or Parquet file; memberships may be lists of numbers.

    ``attributes`` are the sets to read; the file has a column for each.
    """
    return nugget_table(read_table(path), attributes)


def nugget_table(
    frame: pd.DataFrame | Table,
    attributes: Mapping[str, AttributeSet],
    name: str = "nugget table",
) -> NuggetTable:
    """A nugget table from a data frame with the columns of the file format.

    Memberships are text, or sequences of numbers. ``name`` is what error messages call the table,
    whose rows they count from 1; a `Table` of a reader has a name and lines of its own.
    """
    table = frame if isinstance(frame, Table) else Table(name, frame.reset_index(drop=True))
    table.need([*CORE_COLUMNS, *attributes])
    ids = pd.DataFrame({name: table.ids(name) for name in ("run", "topic")}, dtype="str")
    conversation = ids.groupby(["run", "topic"], sort=False).ngroup().to_numpy()
    rows = pd.DataFrame({"conversation": conversation})
    rows["turn"] = table.whole_numbers("turn", least=1)
    rows["start"] = table.whole_numbers("start", least=1, empty=0)
    rows["end"] = table.whole_numbers("end", least=1, empty=0)
    rows["level"] = table.whole_numbers("level", least=0)
    relevant = rows["level"].to_numpy() > 0
    memberships = {name: _memberships(table, each, relevant) for name, each in attributes.items()}
    _check_positions(table, rows)

    order = np.argsort(conversation, kind="stable")
    entity, entities = _entities(table.frame)
    return NuggetTable(
        conversations=ids.drop_duplicates(ignore_index=True),
        conversation=conversation[order],
        turn=rows["turn"].to_numpy()[order],
        start=rows["start"].to_numpy()[order],
        end=rows["end"].to_numpy()[order],
        level=rows["level"].to_numpy()[order],
        memberships={name: vectors[order] for name, vectors in memberships.items()},
        entity=None if entity is None else entity[order],
        entities=entities,
    )


def _entities(frame: pd.DataFrame) -> tuple[Integers | None, tuple[str, ...]]:
    """The place of each row's entity among the names, -1 where it has none; and the names."""
    if "entity" not in frame.columns:
        return None, ()
    texts = frame["entity"].astype("str").str.strip()
    codes, names = pd.factorize(texts.where(texts != ""))
    return codes.astype(np.int64), tuple(map(str, names))


def _memberships(table: Table, attribute: AttributeSet, needed: Booleans) -> Floats:
    """Memberships shaped (rows, groups), zeros where empty; ``needed`` rows may not be empty."""
    values = table.frame[attribute.name]
    if values.dtype == object:  # lists of numbers, which pandas cannot compare
        values = values.map(lambda value: value if isinstance(value, str) else _as_tuple(value))
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    vectors = np.zeros((len(distinct), len(attribute.groups)))
    for code, value in enumerate(distinct):
        if not isinstance(value, (str, tuple)) or not value or value == "":
            continue
        numbers = value.split() if isinstance(value, str) else map(str, value)
        try:
            vectors[code] = attribute.memberships([number(text) for text in numbers])
        except ValueError:
            row = int(np.flatnonzero(codes == code)[0])
            raise table.error(row, attribute.name, attribute.wanted, excerpt(value)) from None
    memberships: Floats = vectors[codes]
    table.reject(needed & ~memberships.any(axis=1), attribute.name, attribute.wanted)
    return memberships


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple, np.ndarray)) else value


def _check_positions(table: Table, rows: pd.DataFrame) -> None:
    """Raise the error of positions that contradict each other."""
    start, end = rows["start"], rows["end"]
    table.reject((start > 0) != (end > 0), "start", "given together with end")
    table.reject((rows["level"] > 0) & (start == 0), "start", "given for a relevant nugget")
    table.reject(start > end, "start", "must not be after end")
    key = ["conversation", "turn", "start", "end"]
    table.reject(rows.duplicated(key), "start", "must differ from the rows above in its turn")

    placed = np.flatnonzero(start > 0)
    placed = placed[np.argsort(rows["conversation"].to_numpy()[placed], kind="stable")]
    # Each nugget except the first of its conversation, and the one before it.
    later = np.delete(np.arange(len(placed)), starts(rows["conversation"].to_numpy()[placed]))
    here, before = rows.iloc[placed[later]], rows.iloc[placed[later - 1]]
    is_wrong = (here["start"].to_numpy() <= before["end"].to_numpy()) | (
        here["turn"].to_numpy() < before["turn"].to_numpy()
    )
    if is_wrong.any():
        place = int(np.flatnonzero(is_wrong)[0])
        nugget, previous = here.iloc[place], before.iloc[place]
        found = f"words {nugget['start']} to {nugget['end']} of turn {nugget['turn']}"
        wanted = (
            f"after words {previous['start']} to {previous['end']} of turn {previous['turn']}, "
            "the nugget before it, which it must not overlap"
        )
        raise table.error(int(placed[later[place]]), "start", f"must be {wanted}", found)
