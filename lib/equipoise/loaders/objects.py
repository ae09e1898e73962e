"""JSON objects of a file that others have made: JSON Lines, one JSON value, or the rows of a Parquet file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.files import is_parquet, json_value, parquet_table, read_text
from equipoise.loaders.documents import MOST_PROBLEMS
from equipoise.problems import Problems, listed, shown


@dataclass(frozen=True)
class Item:
    """An object of a file, and its place there: a line, or a number in a list."""

    content: dict[str, Any]
    path: str | Path
    line: int | None
    number: int

    def wrong(self, problems: Problems, within: str, found: str, wanted: str) -> None:
        """Collect a problem of the object; ``within`` is what of it is meant, or nothing."""
        place = "" if self.line else f"item {self.number}"
        problems.add(
            self.path, self.line, ", ".join(filter(None, (place, within))) or None, found, wanted
        )


def is_messages(value: Any) -> bool:
    """Whether a value is one conversation: a list of objects that say who says what."""
    return isinstance(value, list) and any(
        isinstance(one, dict) and {"role", "content"} <= one.keys() for one in value
    )


def _values(path: str | Path, problems: Problems) -> list[tuple[int | None, Any]]:
    """The values of a file with their lines."""
    if is_parquet(path):
        return [
            (None, {k: v for k, v in row.items() if v is not None})
            for row in parquet_table(path).to_pylist()
        ]
    text = read_text(path)
    with suppress(ValueError):
        whole, first = json_value(text), text[: -len(text.lstrip())].count("\n") + 1
        return (
            [(None, one) for one in whole]
            if isinstance(whole, list) and not is_messages(whole)
            else [(first, whole)]
        )
    values: list[tuple[int | None, Any]] = []
    lines = text.split("\n")
    if text.startswith("{") and '"record": "settings"' in lines[0]:
        lines.pop()  # what follows the last end of a line: nothing, or what an interruption left of an answer
    for number, line in enumerate(lines, start=1):
        try:
            values += [(number, json_value(line))] if line.strip() else []
        except ValueError as error:
            problems.add(path, number, None, str(error), "a JSON object a line, or one JSON value")
        if len(problems) >= MOST_PROBLEMS or (problems and not values):
            break
    return values


def read_objects(path: str | Path) -> list[Item]:
    """The objects of a file, at least one; a JSON list is that of its objects, a list of messages one with them."""
    items = read_items(path, problems := Problems())
    problems.refuse()
    return items


def read_items(path: str | Path, problems: Problems) -> list[Item]:
    """The objects of a file, as `read_objects`, and what is wrong with others."""
    items = list[Item]()
    for number, (line, value) in enumerate(_values(path, problems), start=1):
        content = {"messages": value} if is_messages(value) else value
        item = Item(content if isinstance(content, dict) else {}, path, line, number)
        if isinstance(content, dict):
            items.append(item)
        else:
            item.wrong(problems, "", shown(value), "a JSON object")
    if not items and not problems:
        problems.add(path, None, None, "an empty list", "at least one JSON object")
    return items


def recognise(
    items: Sequence[Item],
    known: Mapping[str, Callable[[dict[str, Any]], Any]],
    wanted: Sequence[str] = (),
) -> str:
    """The one format whose marks the first object has that has any; more than one, or none, is refused."""
    marks = ((item, [name for name, has in known.items() if has(item.content)]) for item in items)
    item, found = next(((item, found) for item, found in marks if found), (items[0], []))
    if len(found) == 1:
        return found[0]
    problems, doubt = Problems(), f", which may be {' or '.join(found)}" if found else ""
    keys = f"an object with {listed(map(shown, item.content)) or 'nothing'}{doubt}"
    item.wrong(problems, "", keys, f"{', '.join((*known, *wanted))}; name it with --from")
    problems.refuse()
    return ""
