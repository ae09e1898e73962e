"""The tables that travel between loaders, measures and reports, with the checks they pass on the way in.

A *nugget table* holds the annotated nuggets of conversations, one row each: ``run, topic, turn, start, end, level``,
perhaps ``entity``, and one column per attribute set with the membership probabilities separated by spaces, fractions
allowed. ``turn`` counts system turns from 1; ``start`` and ``end`` are word positions in the whole conversation, the
first word being 1, end inclusive. A row of level 0 with empty positions says that the turn has no relevant nugget.

*Attribute sets* say over which groups fairness is asked for, whether the groups are ordered, and the target.

Nothing malformed passes: every problem of a file is collected and reported in one `InputError`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import yaml
from numpy.typing import NDArray

from equipoise.segments import starts

__all__ = [
    "AttributeSet",
    "InputError",
    "NuggetTable",
    "Problem",
    "attribute_sets",
    "nugget_table",
    "parse_number",
    "read_attributes",
    "read_columns",
    "read_nuggets",
    "read_text",
    "read_yaml",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CORE_COLUMNS = ("run", "topic", "turn", "start", "end", "level")
SUM_TOLERANCE = 1e-6
LARGEST_INTEGER = 10**9

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_FRACTION = re.compile(r"[+-]?\d{1,18}/\d{1,18}")


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input file.

    Parameters
    ----------
    file : str
        The file as the user named it.
    line : int or None
        Line of a text file, or row of a Parquet file, from 1; None where the file as a whole is meant.
    column : str or None
        Name of the column or key; None where the line as a whole is meant.
    found, wanted : str
        What is there, and what should be.

    Examples
    --------
    >>> print(Problem("runs.csv", 3, "level", "'high'", "a whole number from 0"))
    runs.csv, line 3, column level: found 'high', wanted a whole number from 0
    """

    file: str
    line: int | None
    column: str | None
    found: str
    wanted: str

    def __str__(self) -> str:
        place = self.file
        if self.line is not None:
            place += f", {'row' if self.file.endswith('.parquet') else 'line'} {self.line}"
        if self.column is not None:
            place += f", column {self.column}"
        return f"{place}: found {self.found}, wanted {self.wanted}"


class InputError(ValueError):
    """Every problem found in the input, in the order of the lines.

    Parameters
    ----------
    problems : iterable of Problem
        At least one.

    Examples
    --------
    >>> raise InputError([Problem("a.csv", None, None, "an empty file", "a header and rows")])
    Traceback (most recent call last):
    ...
    equipoise.tables.InputError: a.csv: found an empty file, wanted a header and rows
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.file, problem.line or 0))
        super().__init__("\n".join(map(str, self.problems)))


def _shown(text: object) -> str:
    """A value as an error message shows it: quoted, control characters escaped, shortened."""
    quoted = repr(str(text))
    return quoted if len(quoted) <= 60 else quoted[:57] + "...'"


def parse_number(text: str) -> float:
    """A finite number from plain text, decimal or fraction.

    Parameters
    ----------
    text : str
        Such as ``0.25``, ``1e-3`` or ``1/3``.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the text is neither (so nan and inf are refused), or the fraction has a denominator of zero.

    Examples
    --------
    >>> parse_number("1/8")
    0.125
    """
    if _NUMBER.fullmatch(text):
        number = float(text)
        if np.isfinite(number):
            return number
    elif _FRACTION.fullmatch(text) and int(text.partition("/")[2]):
        return float(Fraction(text))
    raise ValueError(f"{_shown(text)}, not a number such as 0.25 or 1/4")


# --- files ------------------------------------------------------------------------------------------------------


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    str
        Without a byte order mark.

    Raises
    ------
    InputError
        If the file cannot be opened, is empty, or holds bytes that are not UTF-8; the line is named.

    Examples
    --------
    >>> from equipoise import project
    >>> read_text(project.data("published", "artefacts.csv"))[:5]
    'paper'
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError([Problem(str(path), None, None, error.strerror or "no way in", "a readable file")]) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = content[: error.start]
        found = f"bytes that are not UTF-8 (0x{content[error.start]:02x} at byte {error.start + 1} of the file)"
        raise InputError([Problem(str(path), good.count(b"\n") + 1, None, found, "UTF-8 text")]) from None
    if not text.strip():
        raise InputError([Problem(str(path), None, None, "an empty file", "some content")])
    return text


@dataclass
class _Source:
    """Columns of a file as they stand in it, and the way from a row number to a line."""

    name: str
    columns: pd.DataFrame
    text: str | None = None  # of a CSV file
    problems: list[Problem] = field(default_factory=list)
    _lines: NDArray[np.int64] | None = None

    def line(self, row: int) -> int:
        if self.text is None:
            return row + 1
        if self._lines is None:
            width = len(self.columns.columns)
            self._lines = np.array([line for line, fields in _records(self.text) if len(fields) == width][1:])
        return int(self._lines[row])

    def report(self, rows: Iterable[int], column: str | None, found: Callable[[int], str] | str, wanted: str) -> None:
        for row in rows:
            what = found if isinstance(found, str) else found(int(row))
            self.problems.append(Problem(self.name, self.line(int(row)), column, what, wanted))

    def shown(self, column: str) -> Callable[[int], str]:
        values = self.columns[column]

        def show(row: int) -> str:
            value = values.iloc[row]
            return "an empty field" if _empty(value) else _shown(value)

        return show


def _empty(value: object) -> bool:
    return value is None or value is pd.NA or value == "" or (isinstance(value, float) and np.isnan(value))


def _records(text: str) -> Iterable[tuple[int, list[str]]]:
    """Records of a CSV text with the line each begins on; blank lines are no records."""
    reader, begins = csv.reader(io.StringIO(text, newline="")), 1
    for fields in reader:
        if fields:
            yield begins, fields
        begins = reader.line_num + 1


def _read_csv(path: str | Path) -> _Source:
    text = read_text(path)
    limit = csv.field_size_limit(len(text) + 1)
    try:
        header = next(iter(_records(text)))[1]
        options = pyarrow.csv.ReadOptions(use_threads=False, block_size=len(text.encode()) + 1)
        ragged: list[int] = []

        def note(row: Any) -> Literal["skip"]:
            ragged.append(row.number)
            return "skip"

        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(text.encode()),
                read_options=options,
                parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid as error:
            raise InputError([Problem(str(path), None, None, str(error).splitlines()[0], "a CSV file")]) from None
        columns = pd.DataFrame({index: table.column(index).to_pandas() for index in range(table.num_columns)})
        columns.columns = pd.Index(table.column_names)
        source = _Source(str(path), columns, text)
        if ragged:
            source.problems += [
                Problem(str(path), line, None, f"{len(fields)} fields", f"{len(header)}, as in the header")
                for line, fields in _records(text)
                if len(fields) != len(header)
            ]
    finally:
        csv.field_size_limit(limit)
    return source


def _read_parquet(path: str | Path) -> _Source:
    try:
        table = pyarrow.parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError([Problem(str(path), None, None, str(error).splitlines()[0], "a Parquet file")]) from None
    return _Source(str(path), table.to_pandas(ignore_metadata=True))


def _source(path: str | Path) -> _Source:
    file = Path(path)
    try:
        with file.open("rb") as opened:
            is_parquet = opened.read(4) == b"PAR1"
    except OSError:
        is_parquet = False  # read_text says what is wrong
    source = _read_parquet(path) if is_parquet else _read_csv(path)
    names = [str(name) for name in source.columns.columns]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        line = None if source.text is None else 1
        raise InputError([Problem(source.name, line, name, "the column twice", "each column once") for name in doubled])
    if source.columns.empty and not source.problems:
        raise InputError([Problem(source.name, None, None, "a header without rows", "at least one row")])
    return source


def read_columns(path: str | Path, columns: Sequence[str]) -> pd.DataFrame:
    """A CSV file with exactly the named columns, every field as text.

    Parameters
    ----------
    path : str or Path
    columns : sequence of str
        Wanted columns, in any order in the file.

    Returns
    -------
    DataFrame
        With the columns in the order wanted.

    Raises
    ------
    InputError
        If the file is no such table.

    Examples
    --------
    >>> from equipoise import project
    >>> wanted = ["paper", "artefact", "kind", "title", "place", "absent_because"]
    >>> len(read_columns(project.data("published", "artefacts.csv"), wanted))
    75
    """
    source = _read_csv(path)
    _check_header(source, required=columns, optional=(), known="")
    if source.problems:
        raise InputError(source.problems)
    return source.columns[list(columns)]


def _check_header(source: _Source, required: Sequence[str], optional: Sequence[str], known: str) -> None:
    line = None if source.text is None else 1
    names = list(source.columns.columns)
    for name in required:
        if name not in names:
            found = f"no such column (there are {', '.join(map(str, names))})"
            source.problems.append(Problem(source.name, line, name, found, "the column" + known))
    for name in names:
        if name not in (*required, *optional):
            wanted = f"only {', '.join((*required, *optional))}{known}"
            source.problems.append(Problem(source.name, line, str(name), "an unknown column", wanted))


# --- attribute sets ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AttributeSet:
    """Groups over which fairness is asked for, and the distribution that would be fair.

    Parameters
    ----------
    name : str
        Such as ``RATINGS``.
    kind : {"ordinal", "nominal"}
        Whether the order of the groups matters.
    groups : tuple of str
        Names of the groups; at least two.
    target : ndarray, shaped (groups,)
        Target distribution; any non-negative numbers, which are normalised to sum to one. Read-only.

    Raises
    ------
    ValueError
        If the kind is neither, there are fewer than two groups, a group comes twice, or the target has another
        length, a negative or non-finite number, or nothing but zeros.

    Examples
    --------
    >>> AttributeSet("SIZE", "ordinal", ("small", "large"), [1, 3]).target
    array([0.25, 0.75])
    """

    name: str
    kind: Literal["ordinal", "nominal"]
    groups: tuple[str, ...]
    target: Floats

    def __post_init__(self) -> None:
        if self.kind not in ("ordinal", "nominal"):
            raise ValueError(f"attribute set {self.name}: kind {self.kind!r} is neither ordinal nor nominal")
        if len(self.groups) < 2 or len(set(self.groups)) < len(self.groups):
            raise ValueError(f"attribute set {self.name}: at least two groups of different names are needed")
        target = np.array(self.target, dtype=np.float64)
        if target.shape != (len(self.groups),):
            raise ValueError(
                f"attribute set {self.name}: {target.size} numbers in a target for {len(self.groups)} groups"
            )
        if not (np.isfinite(target).all() and (target >= 0).all() and target.sum() > 0):
            raise ValueError(f"attribute set {self.name}: a target is made of non-negative numbers, not all zero")
        target /= target.sum()
        target.flags.writeable = False
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "target", target)

    def with_target(self, target: Sequence[float] | Literal["uniform"]) -> AttributeSet:
        """The same groups with another target.

        Parameters
        ----------
        target : sequence of float, or "uniform"

        Returns
        -------
        AttributeSet

        Raises
        ------
        ValueError
            As for a new attribute set.

        Examples
        --------
        >>> AttributeSet("SIZE", "ordinal", ("small", "large"), [1, 3]).with_target("uniform").target
        array([0.5, 0.5])
        """
        numbers = np.ones(len(self.groups)) if isinstance(target, str) else np.asarray(target, dtype=np.float64)
        if isinstance(target, str) and target != "uniform":
            raise ValueError(f"attribute set {self.name}: target {target!r} is neither uniform nor a list of numbers")
        return AttributeSet(self.name, self.kind, self.groups, numbers)


class _Strings(yaml.SafeLoader):
    """Reads every scalar as text, so that a group named No stays one, and refuses a key that comes twice."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - as PyYAML declares it

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key that is not a word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> Any:
    """Content of a YAML file, in which every scalar is text.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict, list or str

    Raises
    ------
    InputError
        If the file cannot be read, is no YAML, or a key comes twice in a mapping.

    Examples
    --------
    >>> from equipoise import project
    >>> list(read_yaml(project.data("attributes", "fairweb_movies.yaml")))
    ['RATINGS', 'ORIGIN']
    """
    name, text = str(path), read_text(path)
    try:
        return yaml.load(text, Loader=_Strings)  # noqa: S506 - a SafeLoader that knows text only
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError([Problem(name, line, None, error.problem or "no YAML", "YAML")]) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError([Problem(name, None, None, str(error).splitlines()[0], "YAML")]) from None


def read_attributes(path: str | Path) -> dict[str, AttributeSet]:
    """Attribute sets from a YAML file.

    The file maps the name of each set to ``kind`` (ordinal or nominal), ``groups`` (a list of names) and ``target``
    (``uniform``, or a list of non-negative numbers, which are normalised).

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict of str to AttributeSet
        In the order of the file.

    Raises
    ------
    InputError
        With every problem of the file.

    Examples
    --------
    >>> from equipoise import project
    >>> sets = read_attributes(project.data("attributes", "fairweb_movies.yaml"))
    >>> {name: (s.kind, len(s.groups)) for name, s in sets.items()}
    {'RATINGS': ('ordinal', 4), 'ORIGIN': ('nominal', 8)}
    """
    return attribute_sets(read_yaml(path), str(path))


def attribute_sets(content: object, name: str = "attribute sets") -> dict[str, AttributeSet]:
    """Attribute sets from plain dictionaries and lists, as YAML or JSON hold them.

    Parameters
    ----------
    content : object
        A mapping of names to ``{"kind": ..., "groups": [...], "target": ...}``.
    name : str
        What error messages call the source.

    Returns
    -------
    dict of str to AttributeSet

    Raises
    ------
    InputError
        With every problem.

    Examples
    --------
    >>> sets = attribute_sets({"SIZE": {"kind": "ordinal", "groups": ["small", "large"], "target": "uniform"}})
    >>> sets["SIZE"].target
    array([0.5, 0.5])
    """
    problems: list[Problem] = []
    sets: dict[str, AttributeSet] = {}
    if not isinstance(content, Mapping) or not content:
        raise InputError([Problem(name, None, None, _shown(content), "attribute sets by name")])
    for key, entry in content.items():
        label = str(key)

        def wrong(found: str, wanted: str, label: str = label) -> None:
            problems.append(Problem(name, None, label, found, wanted))

        if label in (*CORE_COLUMNS, "entity") or not label.strip():
            wrong(_shown(label), "a name that no other column of a nugget table has")
            continue
        if not isinstance(entry, Mapping) or set(entry) != {"kind", "groups", "target"}:
            found = f"keys {', '.join(map(str, entry)) or 'none'}" if isinstance(entry, Mapping) else _shown(entry)
            wrong(found, "exactly the keys kind, groups, target")
            continue
        groups, target = entry["groups"], entry["target"]
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            wrong(f"groups {_shown(groups)}", "a list of names")
            continue
        numbers: list[float] = [1.0] * len(groups)
        if target != "uniform":
            try:
                numbers = [parse_number(str(number)) for number in target] if isinstance(target, list) else []
            except ValueError as error:
                wrong(f"target: {error}", "uniform or a list of numbers")
                continue
            if not numbers:
                wrong(f"target {_shown(target)}", "uniform or a list of numbers")
                continue
        try:
            sets[label] = AttributeSet(label, entry["kind"], tuple(groups), np.array(numbers))
        except ValueError as error:
            wrong(
                str(error).partition(": ")[2], "kind: ordinal or nominal, two groups or more, a target of that length"
            )
    if problems:
        raise InputError(problems)
    return sets


# --- nuggets ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NuggetTable:
    """Annotated nuggets of conversations, checked, the rows of a conversation next to each other.

    Made by `read_nuggets` or `nugget_table`.

    Attributes
    ----------
    conversations : DataFrame, columns run, topic
        One row per conversation, in the order of their first row in the source.
    conversation : ndarray of int, shaped (rows,)
        Index into `conversations`, ascending.
    turn, level : ndarray of int, shaped (rows,)
    start, end : ndarray of int, shaped (rows,)
        Word positions from 1, end inclusive; 0 where the row says only that its turn has no relevant nugget.
    memberships : dict of str to ndarray, shaped (rows, groups)
        Membership probabilities per attribute set; zeros where a row of level 0 leaves them out.
    entity : ndarray of int, shaped (rows,), or None
        Index into `entities`; -1 where none is given. None without a column ``entity``.
    entities : tuple of str
        Names of the entities.

    Examples
    --------
    >>> from equipoise import project
    >>> sets = read_attributes(project.data("attributes", "fairweb_movies.yaml"))
    >>> nuggets = read_nuggets(project.data("conversations", "M002.csv"), sets)
    >>> nuggets.conversations
           run topic
    0   bing-1  M002
    1 google-1  M002
    >>> len(nuggets), nuggets.end[:3]
    (13, array([35, 39, 43]))
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

        Parameters
        ----------
        duplicates : {"nonrelevant", "relevant"}
            What a relevant nugget is whose entity an earlier relevant nugget of the conversation already named.

        Returns
        -------
        ndarray of bool, shaped (rows,)

        Raises
        ------
        ValueError
            If ``duplicates`` is neither.

        Notes
        -----
        gfrc section 5 argues for "nonrelevant"; without an ``entity`` column both are the same.

        Examples
        --------
        >>> from equipoise.tables import attribute_sets, nugget_table
        >>> sets = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})
        >>> rows = {"run": "r", "topic": "t", "turn": 1, "start": [5, 9], "end": [5, 9], "level": 1, "A": "1 0"}
        >>> nuggets = nugget_table(pd.DataFrame(rows | {"entity": "Tenet"}), sets)
        >>> nuggets.relevant("nonrelevant")
        array([ True, False])
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

    Parameters
    ----------
    path : str or Path
        A Parquet file is known by its first bytes; its memberships may be lists of numbers too.
    attributes : mapping of str to AttributeSet
        The attribute sets that the file has columns for.
    select : sequence of str, optional
        Read only these attribute sets; the default is all.

    Returns
    -------
    NuggetTable

    Raises
    ------
    InputError
        With every problem of the file: its columns, numbers, positions, memberships, order and duplicates.
    ValueError
        If ``select`` names an attribute set that there is not.

    Examples
    --------
    >>> from equipoise import project
    >>> sets = read_attributes(project.data("attributes", "fairweb_researchers.yaml"))
    >>> nuggets = read_nuggets(project.data("conversations", "R112.csv"), sets, select=["PRONOUN"])
    >>> nuggets.memberships["PRONOUN"][3]
    array([0., 1., 0.])
    """
    return _nuggets(_source(path), attributes, select)


def nugget_table(
    frame: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    select: Sequence[str] | None = None,
    name: str = "nugget table",
) -> NuggetTable:
    """A nugget table from a data frame with the columns of the file format.

    Parameters
    ----------
    frame : DataFrame
        Columns run, topic, turn, start, end, level, one per attribute set, perhaps entity. Memberships are text, or
        sequences of numbers.
    attributes : mapping of str to AttributeSet
    select : sequence of str, optional
        Take only these attribute sets; the default is all.
    name : str
        What error messages call the table; they count its rows from 1.

    Returns
    -------
    NuggetTable

    Raises
    ------
    InputError
        As for `read_nuggets`.

    Examples
    --------
    >>> sets = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})
    >>> rows = {"run": "r", "topic": "t", "turn": 1, "start": [5], "end": [6], "level": 1, "A": "1/2 1/2"}
    >>> nugget_table(pd.DataFrame(rows), sets).memberships["A"]
    array([[0.5, 0.5]])
    """
    return _nuggets(_Source(name, frame.reset_index(drop=True)), attributes, select)


def _nuggets(source: _Source, attributes: Mapping[str, AttributeSet], select: Sequence[str] | None) -> NuggetTable:
    chosen = list(attributes) if select is None else list(select)
    unknown = [name for name in chosen if name not in attributes]
    if unknown:
        raise ValueError(f"no attribute set {', '.join(unknown)}; there are {', '.join(attributes)}")
    others = [name for name in attributes if name not in chosen]
    known = f" (attribute sets: {', '.join(attributes)})"
    _check_header(source, (*CORE_COLUMNS, *chosen), ("entity", *others), known)
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
        texts = source.columns["entity"].map(lambda value: np.nan if _empty(value) else str(value).strip() or np.nan)
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


def _words(source: _Source, column: str) -> _Words:
    codes, words = pd.factorize(source.columns[column], use_na_sentinel=False)
    texts = np.array(["" if _empty(word) else str(word) for word in words], dtype=object)
    blank = np.array([not text.strip() for text in texts])
    source.report(np.flatnonzero(blank[codes]), column, "an empty field", "an id")
    return _Words(codes, texts)


def _parsed(
    source: _Source, column: str, parse: Callable[[Any], Any], failed: Any, wanted: str
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


def _integers(source: _Source, column: str, least: int, empty: int | None = None) -> Integers:
    """A column of whole numbers; ``empty`` stands for empty fields where they are allowed; failed fields are -1."""

    def parse(value: Any) -> int:
        if _empty(value):
            if empty is None:
                raise ValueError("an empty field")
            return empty
        if isinstance(value, (float, np.floating)) and float(value).is_integer():
            value = int(value)  # a Parquet column with gaps
        text = str(value)
        if not re.fullmatch(r"-?[0-9]{1,10}", text) or isinstance(value, bool):
            raise ValueError(_shown(text))
        if not least <= int(text) <= LARGEST_INTEGER:
            raise ValueError(text)
        return int(text)

    codes, numbers = _parsed(source, column, parse, -1, f"a whole number from {least}")
    return np.array(numbers, dtype=np.int64)[codes]


def _memberships(source: _Source, attribute: AttributeSet, needed: NDArray[np.bool_]) -> Floats:
    size = len(attribute.groups)

    def parse(value: Any) -> Floats | None:
        if isinstance(value, tuple):
            numbers = np.array(value, dtype=np.float64)
        elif _empty(value) or not str(value).strip():
            return None
        else:
            numbers = np.array([parse_number(word) for word in str(value).split()])
        shown = _shown(value)
        if len(numbers) != size:
            raise ValueError(f"{len(numbers)} probabilities ({shown})")
        if not np.isfinite(numbers).all() or (numbers < 0).any():
            raise ValueError(f"a probability that is negative or not finite ({shown})")
        if abs(numbers.sum() - 1) > SUM_TOLERANCE * (1 + 1e-6):
            raise ValueError(f"probabilities that sum to {numbers.sum():.6g} ({shown})")
        return numbers

    nothing = np.zeros(size)
    wanted = f"{size} probabilities that sum to 1, one for each of {', '.join(attribute.groups)}"
    codes, parsed = _parsed(source, attribute.name, parse, nothing, wanted)
    missing = np.array([vector is None for vector in parsed])
    source.report(np.flatnonzero(missing[codes] & needed), attribute.name, "an empty field", wanted)
    return np.array([nothing if vector is None else vector for vector in parsed])[codes]


def _check_positions(
    source: _Source, conversation: Integers, turn: Integers, start: Integers, end: Integers, level: Integers
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
