"""The nugget table: annotated nuggets of conversations, one row each, checked on the way in.

Columns are ``run, topic, turn, start, end, level``, perhaps ``entity``, and one for each attribute
set with the membership probabilities separated by spaces, fractions allowed. ``turn`` counts system
turns from 1; ``start`` and ``end`` are word positions in the whole conversation, the first word
being 1, end inclusive. A row of level 0 with empty positions says that the turn has no relevant
nugget. A product set needs no column: where it has none, or an empty field, the memberships of its
parts are multiplied, as if the groups of a nugget were independent. Every problem of a file is
reported in one `InputError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.arrays import Booleans, Floats, Integers, starts
from equipoise.attributes import CORE_COLUMNS, AttributeSet, crossed
from equipoise.files import Source, parse_number, read_source
from equipoise.problems import shown

LARGEST_INTEGER = 10**9
"""Positions and levels go up to here: a sum of some still fits."""
_CONVERSATION = ["run", "topic"]


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


def read_nuggets(
    path: str | Path, attributes: Mapping[str, AttributeSet], select: Sequence[str] | None = None
) -> NuggetTable:
    """A nugget table from a CSV or Parquet file, in which memberships may be lists of numbers too.

    ``attributes`` are the sets that the file has columns for, ``select`` those of them to read (all
    of them).
    """
    return _nuggets(read_source(path), attributes, select)


def nugget_table(
    frame: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    select: Sequence[str] | None = None,
    name: str = "nugget table",
) -> NuggetTable:
    """A nugget table from a data frame with the columns of the file format.

    Memberships are text, or sequences of numbers; ``select`` is as in `read_nuggets`. ``name`` is
    what error messages call the table, whose rows they count from 1.
    """
    return _nuggets(Source(name, frame.reset_index(drop=True)), attributes, select)


def _nuggets(
    source: Source, attributes: Mapping[str, AttributeSet], select: Sequence[str] | None
) -> NuggetTable:
    """Read column by column, the problems of all reported together; sort by conversation."""
    chosen = list(attributes) if select is None else list(select)
    unknown = [name for name in chosen if name not in attributes]
    if unknown:
        raise ValueError(
            f"no attribute set {', '.join(unknown)}; there are {', '.join(attributes)}"
        )
    # A product set that is asked for needs the columns of its parts.
    parts_of_chosen = [attributes[name].parts or (name,) for name in chosen]
    required = list(dict.fromkeys(name for parts in parts_of_chosen for name in parts))
    optional = ["entity", *(name for name in attributes if name not in required)]
    names = f" (attribute sets: {', '.join(attributes)})"
    source.check_header((*CORE_COLUMNS, *required), optional, names)
    if not set(CORE_COLUMNS) <= set(source.columns):
        source.problems.refuse()

    rows = pd.DataFrame({name: _ids(source, name) for name in _CONVERSATION}, dtype="str")
    rows["conversation"] = rows.groupby(_CONVERSATION, sort=False).ngroup()
    rows["turn"] = _integers(source, "turn", least=1)
    rows["start"] = _integers(source, "start", least=1, empty=0)
    rows["end"] = _integers(source, "end", least=1, empty=0)
    rows["level"] = _integers(source, "level", least=0)
    is_relevant = rows["level"].to_numpy() > 0
    memberships = {}
    for name, attribute_set in attributes.items():
        if name in source.columns and name in {*required, *chosen}:
            # A product set may leave a field empty: its parts say what it is.
            needed = is_relevant if name in required else None
            memberships[name] = _memberships(source, attribute_set, needed)
    _check_positions(source, rows)
    source.problems.refuse()

    order = np.argsort(rows["conversation"].to_numpy(), kind="stable")
    entity, entities = _entities(source)
    return NuggetTable(
        conversations=rows[_CONVERSATION].drop_duplicates(ignore_index=True),
        conversation=rows["conversation"].to_numpy()[order],
        turn=rows["turn"].to_numpy()[order],
        start=rows["start"].to_numpy()[order],
        end=rows["end"].to_numpy()[order],
        level=rows["level"].to_numpy()[order],
        memberships={name: _of_set(attributes[name], memberships)[order] for name in chosen},
        entity=None if entity is None else entity[order],
        entities=entities,
    )


def _of_set(attribute_set: AttributeSet, memberships: Mapping[str, Floats]) -> Floats:
    """Memberships of a set as stated; where they are not, the product of those of its parts."""
    if not attribute_set.parts:
        return memberships[attribute_set.name]
    product = crossed([memberships[part] for part in attribute_set.parts])
    if attribute_set.name not in memberships:
        return product
    stated = memberships[attribute_set.name]
    return np.where(stated.any(axis=1, keepdims=True), stated, product)


def _entities(source: Source) -> tuple[Integers | None, tuple[str, ...]]:
    """The place of each row's entity among the names, -1 where it has none; and the names."""
    if "entity" not in source.columns:
        return None, ()
    texts = source.columns["entity"].map(
        lambda value: np.nan if _is_empty(value) else str(value).strip()
    )
    codes, names = pd.factorize(texts)
    return codes.astype(np.int64), tuple(map(str, names))


def _is_empty(value: object) -> bool:
    """Whether a field holds nothing: None, NaN, or no character but white space."""
    nothing = value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))
    return bool(nothing) or (isinstance(value, str) and not value.strip())


def _parsed(
    source: Source, column: str, parse: Callable[[Any], Any], kind: type, failed: Any, wanted: str
) -> Any:
    """A column's values, each distinct one parsed once; rows that cannot be are reported."""
    values = source.columns[column]
    if values.dtype == object:  # of a Parquet file or a data frame, and not of text
        values = values.map(_hashable)
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    parsed = []
    complaints = {}
    for code, value in enumerate(distinct):
        try:
            parsed.append(parse(value))
        except ValueError as error:
            parsed.append(failed)
            complaints[code] = str(error)
    bad_rows = np.flatnonzero(np.isin(codes, list(complaints)))
    source.report(bad_rows, column, lambda row: complaints[int(codes[row])], wanted)
    return np.array(parsed, dtype=kind)[codes]


def _hashable(value: Any) -> Any:
    """A value of which pandas can tell whether it comes again: lists as tuples."""
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, (list, tuple, np.ndarray)):
        return tuple(map(_hashable, value))
    return value


def _ids(source: Source, column: str) -> Any:
    """A column of ids; of texts that all hold something none is looked at by itself."""
    values = source.columns[column]
    if values.dtype == "str" and not (values.isna().any() or values.str.strip().eq("").any()):
        return values
    return _parsed(source, column, _id, object, "", "an id")


def _id(value: Any) -> str:
    if _is_empty(value):
        raise ValueError("an empty field")
    if not isinstance(value, (str, Real)):
        raise ValueError(shown(value))
    return str(value)


def _integers(source: Source, column: str, *, least: int, empty: int | None = None) -> Any:
    """A column of whole numbers, -1 where it has none; ``empty``: the value of an empty field."""

    def parse(value: Any) -> int:
        if _is_empty(value):
            if empty is None:
                raise ValueError("an empty field")
            return empty
        if isinstance(value, (float, np.floating)) and float(value).is_integer():
            value = int(value)  # a Parquet column with gaps holds floats
        text = str(value)
        if not re.fullmatch(r"-?[0-9]{1,10}", text):
            raise ValueError(shown(text))
        if not least <= int(text) <= LARGEST_INTEGER:
            raise ValueError(text)
        return int(text)

    return _parsed(source, column, parse, int, -1, f"a whole number from {least}")


def _memberships(source: Source, attribute: AttributeSet, needed: Booleans | None) -> Floats:
    """Memberships shaped (rows, groups), zeros where empty; ``needed`` rows may not be empty."""
    nothing = np.zeros(len(attribute.groups))

    def parse(value: Any) -> Floats:
        if _is_empty(value):
            return nothing
        if isinstance(value, tuple):
            numbers = value
        else:
            numbers = tuple(parse_number(word) for word in str(value).split())
        if not all(isinstance(number, Real) for number in numbers):
            raise ValueError(shown(value))
        try:
            return attribute.memberships(numbers)
        except ValueError as error:
            raise ValueError(f"{error} ({shown(value)})") from None

    failed = np.full(len(nothing), np.nan)
    vectors: Floats = _parsed(source, attribute.name, parse, float, failed, attribute.wanted)
    vectors = vectors.reshape(-1, len(nothing))  # also of no rows
    if needed is not None:
        empty = np.flatnonzero(needed & ~vectors.any(axis=1))
        source.report(empty, attribute.name, "an empty field", attribute.wanted)
    return vectors


def _check_positions(source: Source, rows: pd.DataFrame) -> None:
    """Report positions that contradict each other; what could not be parsed (-1) is left alone."""
    conversation, turn, start, end, level = (
        rows[["conversation", "turn", "start", "end", "level"]].to_numpy().T
    )
    is_read = (turn > 0) & (start >= 0) & (end >= 0) & (level >= 0)
    has_start, has_end = start > 0, end > 0
    has_place = is_read & has_start & has_end
    is_backwards = has_place & (start > end)
    is_repeated = is_read & rows.duplicated(["conversation", "turn", "start", "end"]).to_numpy()
    report = partial(_report_rows, source)
    report(
        is_read & (has_start != has_end), "start", "only one of start and end", "both or neither"
    )
    report(
        is_read & (level > 0) & ~has_start & ~has_end,
        "start",
        "no positions",
        "where the nugget is",
    )
    report(
        is_backwards,
        "start",
        lambda row: f"start {start[row]} after end {end[row]}",
        "start <= end",
    )
    report(is_repeated, None, "a row for the same place again", "each nugget, or empty turn, once")

    # A row of level 0 without positions says that its turn is empty.
    turn_is_relevant = rows["level"].gt(0).groupby([conversation, turn]).transform("any").to_numpy()
    report(
        is_read & (level == 0) & ~has_start & turn_is_relevant,
        "level",
        "a turn with relevant nuggets in other rows",
        "level 0 for empty turns only",
    )

    _check_neighbours(source, rows, np.flatnonzero(has_place & ~is_backwards & ~is_repeated))


def _report_rows(
    source: Source,
    where: Booleans,
    column: str | None,
    complaint: Callable[[int], str] | str,
    wanted: str,
) -> None:
    source.report(np.flatnonzero(where), column, complaint, wanted)


def _check_neighbours(source: Source, rows: pd.DataFrame, placed: Integers) -> None:
    """Report overlaps and nuggets out of order; ``placed`` are the rows with a sound place."""
    conversation, turn, start, end = rows[["conversation", "turn", "start", "end"]].to_numpy().T
    placed = placed[np.argsort(conversation[placed], kind="stable")]
    # Each row but the first of its conversation, beside the one before it.
    later = np.delete(np.arange(len(placed)), starts(conversation[placed]))
    here, before = placed[later], placed[later - 1]
    previous = np.zeros(len(rows), dtype=np.intp)
    previous[here] = before
    overlaps = (start[here] <= end[before]) & (end[here] >= start[before])
    is_out_of_order = (end[here] < start[before]) | (turn[here] < turn[before])

    def place(row: int) -> str:
        return f"words {start[row]}-{end[row]} of turn {turn[row]}"

    def beside(row: int) -> str:
        return f"{place(row)} after {place(previous[row])}"

    source.report(
        here[overlaps],
        "start",
        lambda row: f"an overlap: {beside(row)}",
        "nuggets that share no word",
    )
    source.report(
        here[is_out_of_order & ~overlaps],
        "start",
        beside,
        "turns and positions in ascending order",
    )
