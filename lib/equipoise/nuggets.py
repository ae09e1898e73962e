"""The nugget table: annotated nuggets of conversations, one row each, with the checks they pass on the way in.

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
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.arrays import Booleans, Floats, Integers, starts
from equipoise.attributes import CORE_COLUMNS, AttributeSet, crossed
from equipoise.files import Source, parse_number, read_source
from equipoise.problems import shown

LARGEST_INTEGER = 10**9
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
        names = np.array([*self.entities, ""], dtype=object)
        return names[np.full(len(self), -1) if self.entity is None else self.entity]

    def places(self, rows: NDArray[np.intp]) -> pd.DataFrame:
        """Run, topic and turn of these rows, as a table."""
        return (
            self.conversations.take(self.conversation[rows])
            .reset_index(drop=True)
            .assign(turn=self.turn[rows])
        )

    def relevant(self, duplicates: Literal["nonrelevant", "relevant"]) -> Booleans:
        """Which rows count as relevant nuggets, shaped (rows,).

        ``duplicates`` says what a relevant nugget is whose entity an earlier one of the
        conversation named already; gfrc section 5 argues for nonrelevant.
        """
        relevant: Booleans = self.level > 0
        if duplicates == "relevant" or self.entity is None:
            return relevant
        named = np.flatnonzero(relevant & (self.entity >= 0))
        pairs = pd.DataFrame(
            {"conversation": self.conversation[named], "entity": self.entity[named]}
        )
        relevant[named[pairs.duplicated().to_numpy()]] = False
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
    chosen = list(attributes) if select is None else list(select)
    if unknown := [name for name in chosen if name not in attributes]:
        raise ValueError(
            f"no attribute set {', '.join(unknown)}; there are {', '.join(attributes)}"
        )
    known = f" (attribute sets: {', '.join(attributes)})"
    wanted = list(
        dict.fromkeys(part for name in chosen for part in attributes[name].parts or (name,))
    )
    source.check_header(
        (*CORE_COLUMNS, *wanted), ("entity", *(n for n in attributes if n not in wanted)), known
    )
    if not set(CORE_COLUMNS) <= set(source.columns):
        source.problems.refuse()

    rows = pd.DataFrame({name: _ids(source, name) for name in _CONVERSATION}, dtype="str")
    rows["conversation"] = rows.groupby(_CONVERSATION, sort=False).ngroup()
    for column, least, empty in (
        ("turn", 1, None),
        ("start", 1, 0),
        ("end", 1, 0),
        ("level", 0, None),
    ):
        rows[column] = _integers(source, column, least, empty)
    needed, there = (
        rows["level"].to_numpy() > 0,
        [n for n in attributes if n in {*wanted, *chosen} & {*source.columns}],
    )
    memberships = {
        name: _memberships(source, attributes[name], needed & (name in wanted)) for name in there
    }
    _check_positions(source, rows)
    source.problems.refuse()
    for name in chosen:
        if parts := attributes[name].parts:
            made = crossed([memberships[part] for part in parts])
            given = memberships.get(name, np.zeros_like(made))
            memberships[name] = np.where(given.any(axis=1, keepdims=True), given, made)

    order = np.argsort(rows["conversation"].to_numpy(), kind="stable")
    columns: dict[str, Any] = {
        name: rows[name].to_numpy()[order]
        for name in ("conversation", "turn", "start", "end", "level")
    }
    columns["memberships"] = {name: memberships[name][order] for name in chosen}
    if "entity" in source.columns:
        texts = source.columns["entity"].map(
            lambda value: np.nan if _is_empty(value) else str(value).strip()
        )
        codes, names = pd.factorize(texts)  # -1 where there is none
        columns |= {"entity": codes.astype(np.int64)[order], "entities": tuple(map(str, names))}
    return NuggetTable(rows[_CONVERSATION].drop_duplicates(ignore_index=True), **columns)


def _is_empty(value: object) -> bool:
    """Whether a field holds nothing: None, NaN, or no character but white space."""
    nothing = value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))
    return bool(nothing) or (isinstance(value, str) and not value.strip())


def _parsed(
    source: Source, column: str, parse: Callable[[Any], Any], kind: type, failed: Any, wanted: str
) -> Any:
    """An array of a column's values, each distinct one parsed once; reports the rows of those that cannot be."""
    values = source.columns[column]
    if values.dtype == object:  # of a Parquet file or a data frame, and not of text
        values = values.map(_hashable)
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    results, reasons = [], {}
    for code, value in enumerate(distinct):
        try:
            results.append(parse(value))
        except ValueError as error:
            results.append(failed)
            reasons[code] = str(error)
    rows = np.flatnonzero(np.isin(codes, list(reasons)))
    source.report(rows, column, lambda row: reasons[int(codes[row])], wanted)
    return np.array(results, dtype=kind)[codes]


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        value = list(value.items())
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple, np.ndarray)) else value


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


def _integers(source: Source, column: str, least: int, empty: int | None) -> Any:
    """A column of whole numbers; ``empty`` stands for empty fields where they are allowed; failed fields are -1."""

    def parse(value: Any) -> int:
        if _is_empty(value):
            if empty is None:
                raise ValueError("an empty field")
            return empty
        whole = (
            isinstance(value, (float, np.floating)) and float(value).is_integer()
        )  # a Parquet column with gaps
        text = str(int(value) if whole else value)
        if not re.fullmatch(r"-?[0-9]{1,10}", text):
            raise ValueError(shown(text))
        if not least <= int(text) <= LARGEST_INTEGER:
            raise ValueError(text)
        return int(text)

    return _parsed(source, column, parse, int, -1, f"a whole number from {least}")


def _memberships(source: Source, attribute: AttributeSet, needed: Booleans) -> Floats:
    nothing = np.zeros(len(attribute.groups))

    def parse(value: Any) -> Floats:
        if _is_empty(value):
            return nothing
        numbers = (
            value
            if isinstance(value, tuple)
            else [parse_number(word) for word in str(value).split()]
        )
        if not all(isinstance(number, Real) for number in numbers):
            raise ValueError(shown(value))
        try:
            return attribute.memberships(numbers)
        except ValueError as error:
            raise ValueError(f"{error} ({shown(value)})") from None

    vectors: Floats = _parsed(
        source, attribute.name, parse, float, nothing + np.nan, attribute.wanted
    )
    vectors = vectors.reshape(-1, len(nothing))
    source.report(
        np.flatnonzero(needed & ~vectors.any(axis=1)),
        attribute.name,
        "an empty field",
        attribute.wanted,
    )
    return vectors


def _check_positions(source: Source, rows: pd.DataFrame) -> None:
    """Report positions that contradict each other; fields that could not be parsed (-1) are left alone."""
    conversation, turn, start, end, level = (
        rows[["conversation", "turn", "start", "end", "level"]].to_numpy().T
    )

    def report(
        where: Booleans, column: str | None, found: Callable[[int], str] | str, wanted: str
    ) -> None:
        source.report(np.flatnonzero(where), column, found, wanted)

    good = (turn > 0) & (start >= 0) & (end >= 0) & (level >= 0)
    placed = good & (start > 0) & (end > 0)
    backwards = placed & (start > end)
    doubled = good & rows.duplicated(["conversation", "turn", "start", "end"]).to_numpy()
    report(
        good & ((start > 0) != (end > 0)), "start", "only one of start and end", "both or neither"
    )
    report(
        good & (level > 0) & (start == 0) & (end == 0),
        "start",
        "no positions",
        "where the nugget is",
    )
    report(
        backwards, "start", lambda row: f"start {start[row]} after end {end[row]}", "start <= end"
    )
    report(doubled, None, "a row for the same place again", "each nugget, or empty turn, once")

    relevant = rows["level"].gt(0).groupby([conversation, turn]).transform("any").to_numpy()
    crowded = good & (level == 0) & (start == 0) & relevant
    report(
        crowded,
        "level",
        "a turn with relevant nuggets in other rows",
        "level 0 for empty turns only",
    )

    kept = np.flatnonzero(placed & ~backwards & ~doubled)
    kept = kept[np.argsort(conversation[kept], kind="stable")]
    later = np.delete(np.arange(len(kept)), starts(conversation[kept]))
    here, before = kept[later], kept[later - 1]
    previous = np.zeros(len(conversation), dtype=np.intp)
    previous[here] = before
    overlapping = (start[here] <= end[before]) & (end[here] >= start[before])
    unordered = (end[here] < start[before]) | (turn[here] < turn[before])

    def beside(row: int) -> str:
        here, there = (
            f"words {start[at]}-{end[at]} of turn {turn[at]}" for at in (row, previous[row])
        )
        return f"{here} after {there}"

    source.report(
        here[overlapping],
        "start",
        lambda row: f"an overlap: {beside(row)}",
        "nuggets that share no word",
    )
    source.report(
        here[unordered & ~overlapping], "start", beside, "turns and positions in ascending order"
    )
