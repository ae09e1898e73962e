"""The nugget table: annotated nuggets of conversations, one row each, with the checks they pass on the way in.

Columns are ``run, topic, turn, start, end, level``, perhaps ``entity``, and one for each attribute set with the
membership probabilities separated by spaces, fractions allowed. ``turn`` counts system turns from 1; ``start`` and
``end`` are word positions in the whole conversation, the first word being 1, end inclusive. A row of level 0 with empty
positions says that the turn has no relevant nugget. Every problem of a file is reported in one `InputError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.arrays import Floats, Integers, starts
from equipoise.attributes import CORE_COLUMNS, AttributeSet
from equipoise.files import Source, check_header, is_empty, parse_number, read_source
from equipoise.problems import InputError, shown

SUM_TOLERANCE = 1e-6
LARGEST_INTEGER = 10**9


@dataclass(frozen=True, eq=False)
class NuggetTable:
    """Annotated nuggets of conversations, checked, the rows of a conversation next to each other.

    Made by `read_nuggets` or `nugget_table`.

    ``conversations`` (columns run, topic): one row per conversation, in the order of their first row in the source.
    ``conversation`` (shaped (rows,)): Index into `conversations`, ascending. ``start``, ``end`` (shaped (rows,)):
    Word positions from 1, end inclusive; 0 where the row says only that its turn has no relevant nugget.
    ``memberships`` (shaped (rows, groups)): Membership probabilities per attribute set; zeros where a row of level
    0 leaves them out. ``entity`` (shaped (rows,)): Index into `entities`; -1 where none is given. None without a
    column ``entity``. ``entities``: names of the entities.
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

    def relevant(self, duplicates: Literal["nonrelevant", "relevant"]) -> NDArray[np.bool_]:
        """Which rows count as relevant nuggets.

        ``duplicates``: what a relevant nugget is whose entity an earlier relevant nugget of the conversation
        already named. Returns ndarray of bool, shaped (rows,).

        gfrc section 5 argues for "nonrelevant"; without an ``entity`` column both are the same.
        """
        if duplicates not in ("nonrelevant", "relevant"):
            raise ValueError(f"duplicates are {duplicates!r}; they are nonrelevant or relevant")
        relevant: NDArray[np.bool_] = self.level > 0
        if duplicates == "relevant" or self.entity is None:
            return relevant
        named = np.flatnonzero(relevant & (self.entity >= 0))
        pairs = pd.DataFrame({"conversation": self.conversation[named], "entity": self.entity[named]})
        relevant[named[pairs.duplicated().to_numpy()]] = False
        return relevant


def read_nuggets(
    path: str | Path, attributes: Mapping[str, AttributeSet], select: Sequence[str] | None = None
) -> NuggetTable:
    """A nugget table from a CSV or Parquet file.

    ``path``: A Parquet file is known by its first bytes; its memberships may be lists of numbers too.
    ``attributes``: the attribute sets that the file has columns for. ``select``: Read only these attribute sets;
    the default is all.
    """
    return _nuggets(read_source(path), attributes, select)


def nugget_table(
    frame: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    select: Sequence[str] | None = None,
    name: str = "nugget table",
) -> NuggetTable:
    """A nugget table from a data frame with the columns of the file format.

    ``frame``: Columns run, topic, turn, start, end, level, one per attribute set, perhaps entity. Memberships are
    text, or sequences of numbers. ``select``: Take only these attribute sets; the default is all. ``name``: what
    error messages call the table; they count its rows from 1.
    """
    return _nuggets(Source(name, frame.reset_index(drop=True)), attributes, select)


def _nuggets(source: Source, attributes: Mapping[str, AttributeSet], select: Sequence[str] | None) -> NuggetTable:
    chosen = list(attributes) if select is None else list(select)
    unknown = [name for name in chosen if name not in attributes]
    if unknown:
        raise ValueError(f"no attribute set {', '.join(unknown)}; there are {', '.join(attributes)}")
    others = [name for name in attributes if name not in chosen]
    known = f" (attribute sets: {', '.join(attributes)})"
    check_header(source, (*CORE_COLUMNS, *chosen), ("entity", *others), known)
    if set(CORE_COLUMNS) - set(source.columns.columns) or source.columns.empty:
        raise InputError(source.problems)

    run, topic = (_words(source, column) for column in ("run", "topic"))
    turn = _integers(source, "turn", least=1)
    level = _integers(source, "level", least=0)
    start, end = (_integers(source, column, least=1, empty=0) for column in ("start", "end"))
    memberships = {
        name: _memberships(source, attributes[name], needed=level > 0) for name in chosen if name in source.columns
    }
    keys = pd.DataFrame({"run": run.codes, "topic": topic.codes})
    conversation = keys.groupby(["run", "topic"], sort=False).ngroup().to_numpy().astype(np.int64)
    _check_positions(source, conversation, turn, start, end, level)
    if source.problems:
        raise InputError(source.problems)

    first = keys.drop_duplicates()
    conversations = pd.DataFrame(
        {"run": run.words[first["run"].to_numpy()], "topic": topic.words[first["topic"].to_numpy()]}, dtype="str"
    )
    entity: Integers | None = None
    entities: tuple[str, ...] = ()
    if "entity" in source.columns:
        texts = source.columns["entity"].map(lambda value: np.nan if is_empty(value) else str(value).strip() or np.nan)
        codes, names = pd.factorize(texts)  # -1 where there is none
        entity, entities = codes.astype(np.int64), tuple(map(str, names))
    arrays: list[Integers] = [conversation, turn, start, end, level]
    if (np.diff(conversation) < 0).any():
        order = np.argsort(conversation, kind="stable")
        arrays = [array[order] for array in arrays]
        memberships = {name: array[order] for name, array in memberships.items()}
        entity = None if entity is None else entity[order]
    conversation, turn, start, end, level = arrays
    return NuggetTable(conversations, conversation, turn, start, end, level, memberships, entity, entities)


@dataclass(frozen=True)
class _Words:
    codes: NDArray[np.intp]
    words: NDArray[np.object_]


def _words(source: Source, column: str) -> _Words:
    codes, words = pd.factorize(source.columns[column], use_na_sentinel=False)
    texts = np.array(["" if is_empty(word) else str(word) for word in words], dtype=object)
    blank = np.array([not text.strip() for text in texts])
    source.report(np.flatnonzero(blank[codes]), column, "an empty field", "an id")
    return _Words(codes, texts)


def _parsed(
    source: Source, column: str, parse: Callable[[Any], Any], failed: Any, wanted: str
) -> tuple[NDArray[np.intp], list[Any]]:
    """Parse each distinct value of a column once; report the rows of those that cannot be parsed."""
    values = source.columns[column]
    if len(values) and isinstance(values.iloc[0], (list, np.ndarray)):
        values = values.map(lambda value: None if value is None else tuple(value))
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    results, reasons = [], {}
    for code, value in enumerate(distinct):
        try:
            results.append(parse(value))
        except ValueError as error:
            results.append(failed)
            reasons[code] = str(error)
    if reasons:
        rows = np.flatnonzero(np.isin(codes, list(reasons)))
        source.report(rows, column, lambda row: reasons[int(codes[row])], wanted)
    return codes, results


def _integers(source: Source, column: str, least: int, empty: int | None = None) -> Integers:
    """A column of whole numbers; ``empty`` stands for empty fields where they are allowed; failed fields are -1."""

    def parse(value: Any) -> int:
        if is_empty(value):
            if empty is None:
                raise ValueError("an empty field")
            return empty
        if isinstance(value, (float, np.floating)) and float(value).is_integer():
            value = int(value)  # a Parquet column with gaps
        text = str(value)
        if not re.fullmatch(r"-?[0-9]{1,10}", text) or isinstance(value, bool):
            raise ValueError(shown(text))
        if not least <= int(text) <= LARGEST_INTEGER:
            raise ValueError(text)
        return int(text)

    codes, numbers = _parsed(source, column, parse, -1, f"a whole number from {least}")
    return np.array(numbers, dtype=np.int64)[codes]


def _memberships(source: Source, attribute: AttributeSet, needed: NDArray[np.bool_]) -> Floats:
    size = len(attribute.groups)

    def parse(value: Any) -> Floats | None:
        if isinstance(value, tuple):
            numbers = np.array(value, dtype=np.float64)
        elif is_empty(value) or not str(value).strip():
            return None
        else:
            numbers = np.array([parse_number(word) for word in str(value).split()])
        text = shown(value)
        if len(numbers) != size:
            raise ValueError(f"{len(numbers)} probabilities ({text})")
        if not np.isfinite(numbers).all() or (numbers < 0).any():
            raise ValueError(f"a probability that is negative or not finite ({text})")
        if abs(numbers.sum() - 1) > SUM_TOLERANCE * (1 + 1e-6):
            raise ValueError(f"probabilities that sum to {numbers.sum():.6g} ({text})")
        return numbers

    nothing = np.zeros(size)
    wanted = f"{size} probabilities that sum to 1, one for each of {', '.join(attribute.groups)}"
    codes, parsed = _parsed(source, attribute.name, parse, nothing, wanted)
    missing = np.array([vector is None for vector in parsed])
    source.report(np.flatnonzero(missing[codes] & needed), attribute.name, "an empty field", wanted)
    return np.array([nothing if vector is None else vector for vector in parsed])[codes]


def _check_positions(
    source: Source, conversation: Integers, turn: Integers, start: Integers, end: Integers, level: Integers
) -> None:
    """Report positions that contradict each other; fields that could not be parsed (-1) are left alone."""
    good = (turn > 0) & (start >= 0) & (end >= 0) & (level >= 0)
    placed = good & (start > 0) & (end > 0)

    def rows(where: NDArray[np.bool_]) -> NDArray[np.intp]:
        return np.flatnonzero(where)

    source.report(rows(good & ((start > 0) != (end > 0))), "start", "only one of start and end", "both or neither")
    source.report(rows(good & (level > 0) & (start == 0) & (end == 0)), "start", "no positions", "where the nugget is")
    backwards = placed & (start > end)
    source.report(rows(backwards), "start", lambda row: f"start {start[row]} after end {end[row]}", "start <= end")

    keys = pd.DataFrame({"c": conversation, "turn": turn, "start": start, "end": end})
    doubled = good & keys.duplicated().to_numpy()
    source.report(rows(doubled), None, "a row for the same place again", "each nugget, or empty turn, once")

    # empty turns must be empty
    with_nuggets = pd.MultiIndex.from_frame(keys.loc[level > 0, ["c", "turn"]])
    empty = rows(good & (level == 0) & (start == 0))
    crowded = pd.MultiIndex.from_frame(keys.loc[empty, ["c", "turn"]]).isin(with_nuggets)
    source.report(empty[crowded], "level", "a turn with relevant nuggets in other rows", "level 0 for empty turns only")

    # positions ascend within a conversation
    kept = rows(placed & ~backwards & ~doubled)
    kept = kept[np.argsort(conversation[kept], kind="stable")]
    earlier = np.ones(len(kept), dtype=bool)
    earlier[starts(conversation[kept])] = False
    here, before = kept[earlier], kept[np.flatnonzero(earlier) - 1]
    previous = dict(zip(here.tolist(), before.tolist(), strict=True))
    overlapping = (start[here] <= end[before]) & (end[here] >= start[before])
    unordered = (end[here] < start[before]) | (turn[here] < turn[before])

    def beside(row: int) -> str:
        other = previous[row]
        return (
            f"words {start[row]}-{end[row]} of turn {turn[row]} after words {start[other]}-{end[other]} "
            f"of turn {turn[other]}"
        )

    source.report(here[overlapping], "start", lambda row: f"an overlap: {beside(row)}", "nuggets that share no word")
    source.report(here[unordered & ~overlapping], "start", beside, "turns and positions in ascending order")
