"""JSON objects of files of others: JSON Lines, one JSON value, or the rows of a Parquet file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.files import is_parquet, json_value, parquet_table, read_text
from equipoise.problems import InputError, Problems, listed, shown

MOST_PROBLEMS = 100  # of a file, after which reading stops


@dataclass(frozen=True)
class Item:
    """An object of a file, and its place there: a line, or a number in a list."""

    content: dict[str, Any]
    path: str | Path
    line: int | None
    number: int

    def wrong(self, problems: Problems, within: str, problem: str, expected: str) -> None:
        """Collect a problem of the object; ``within`` is what of it is meant, or nothing."""
        places = [] if self.line else [f"item {self.number}"]
        if within:
            places.append(within)
        problems.add(self.path, self.line, ", ".join(places) or None, problem, expected)


def is_messages(value: Any) -> bool:
    """Whether a value is one conversation: a list of objects that say who says what."""
    if not isinstance(value, list):
        return False
    return any(isinstance(entry, dict) and {"role", "content"} <= entry.keys() for entry in value)


def first_value(content: Mapping[str, Any], keys: Iterable[str], kinds: Any = object) -> Any:
    """The value of the first of the keys under which there is one of these kinds; None without."""
    for key in keys:
        value = content.get(key)
        if value is not None and isinstance(value, kinds):
            return value
    return None


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of an object; none of what is no object, where the lack of them is told."""
    if isinstance(value, dict):
        return value
    return {}


def _values_of_parquet(path: str | Path) -> list[tuple[int | None, Any]]:
    values: list[tuple[int | None, Any]] = []
    for row in parquet_table(path).to_pylist():
        # Parquet has every column in every row, where JSON has no such key.
        present = {name: value for name, value in row.items() if value is not None}
        values.append((None, present))
    return values


def _values_of_lines(
    path: str | Path, text: str, problems: Problems
) -> list[tuple[int | None, Any]]:
    lines = text.split("\n")
    if text.startswith("{") and '"record": "settings"' in lines[0]:
        # Behind the last end of a line of a recording stands nothing, or what an interruption left.
        lines.pop()
    values: list[tuple[int | None, Any]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            values.append((number, json_value(line)))
        except ValueError as error:
            problems.add(path, number, None, str(error), "a JSON object a line, or one JSON value")
        # A file of another kind is wrong on its first line.
        if len(problems) >= MOST_PROBLEMS or (problems and not values):
            break
    return values


def _values(path: str | Path, problems: Problems) -> list[tuple[int | None, Any]]:
    """The values of a file with their lines."""
    if is_parquet(path):
        return _values_of_parquet(path)
    text = read_text(path)
    # Whether a file is one JSON value or lines of them, only reading it tells.
    try:
        value = json_value(text)
    except ValueError:
        return _values_of_lines(path, text, problems)
    if isinstance(value, list) and not is_messages(value):
        return [(None, element) for element in value]
    n_blank_lines = text[: -len(text.lstrip())].count("\n")
    return [(n_blank_lines + 1, value)]


def read_objects(path: str | Path) -> list[Item]:
    """The objects of a file, at least one.

    A JSON list is that of its objects, a list of messages one object with them.
    """
    problems = Problems()
    items = read_items(path, problems)
    problems.refuse()
    return items


def read_items(path: str | Path, problems: Problems) -> list[Item]:
    """The objects of a file, as `read_objects`, and what is wrong with others."""
    items = []
    for number, (line, value) in enumerate(_values(path, problems), start=1):
        content = {"messages": value} if is_messages(value) else value
        if isinstance(content, dict):
            items.append(Item(content, path, line, number))
        else:
            Item({}, path, line, number).wrong(problems, "", shown(value), "a JSON object")
    if not items and not problems:
        problems.add(path, None, None, "an empty list", "at least one JSON object")
    return items


def recognise(
    items: Sequence[Item],
    marks: Mapping[str, Callable[[dict[str, Any]], Any]],
    expected: Sequence[str] = (),
) -> str:
    """The one format whose marks the first object has that has any.

    ``marks`` says by format whether an object has its marks. Objects with the marks of several
    formats, or of none, are refused.
    """
    marked_item, formats = items[0], list[str]()
    for item in items:
        formats = [name for name, has_marks in marks.items() if has_marks(item.content)]
        if formats:
            marked_item = item
            break
    if len(formats) == 1:
        return formats[0]
    problem = f"an object with {listed(map(shown, marked_item.content)) or 'nothing'}"
    if formats:
        problem += f", which may be {' or '.join(formats)}"
    problems = Problems()
    wanted_formats = ", ".join((*marks, *expected))
    marked_item.wrong(problems, "", problem, f"{wanted_formats}; name it with --from")
    raise InputError(problems)
