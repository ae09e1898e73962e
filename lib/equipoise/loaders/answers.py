r"""Answers that cite their sources, from JSON Lines: an evaluator's own, or a recording of this library.

One JSON object a line, one line for each answer::

    {"question": "q1", "mode": "Informed", "relevant_author": "Human", "nonrelevant_author": "LLM",
     "answer": "In Wales [2].", "relevant": [2], "documents": 5, "gold": ["Wales"],
     "citations": [{"document": 2, "probability": 0.97}], "model": "my-model"}

(on one line). ``question`` names the question, ``mode`` is one of `equipoise.answer_modes.MODES` or
two of them as X/Y, the authors are the actual ones, ``relevant`` numbers the relevant documents
from 1. Optional: ``documents``, how many were shown, on every line or on none; ``shown``, their
ids; ``gold``, gold answers; ``citations``, the cited documents with the probability of their
number, or null. Further keys hold a text or a number, the same keys on every line; they tell apart
answers to the same question in the same mode, but for what only says how an answer came about:
``finish, seconds, prompt_tokens, completion_tokens``.

A recording has its settings on line 1, and ``"record": "answer"`` on the others.

References
----------
thesis, section 5.3.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.answer_modes import MODES, mode_name
from equipoise.loaders.documents import MOST_PROBLEMS
from equipoise.loaders.objects import Item, read_items
from equipoise.nuggets import LARGEST_INTEGER
from equipoise.problems import Problems

_AUTHORS = ("relevant_author", "nonrelevant_author")
_HOW = ("finish", "seconds", "prompt_tokens", "completion_tokens")


class _UnwantedError(Exception):
    """What was found, and what was wanted."""


def _shown(value: object) -> str:
    """A value as a message shows it; of lists and objects only the kind."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER**2:
        return "a number of very many digits"
    quoted = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return quoted if len(quoted) <= 60 else quoted[:57] + "..."


def _need(sound: bool, value: object, wanted: str) -> None:
    if not sound:
        raise _UnwantedError(_shown(value), wanted)


# --- values; by type(), which tells whole numbers from true and false -----------------------------


def _text(value: Any) -> str:
    _need(type(value) is str, value, "a text")
    return str(value)


def _word(value: Any) -> str:
    if not _text(value).strip():
        raise _UnwantedError("an empty text", "a text that is not empty")
    return str(value)


def _id(value: Any) -> str:
    return str(value) if type(value) is int and abs(value) <= LARGEST_INTEGER else _word(value)


def _mode(value: Any) -> str:
    try:
        return mode_name(_text(value))
    except ValueError:
        raise _UnwantedError(_shown(value), f"{', '.join(MODES)}, or two of them as X/Y") from None


def _whole(value: Any, least: int = 1) -> int:
    _need(
        type(value) is int and least <= value <= LARGEST_INTEGER,
        value,
        f"a whole number from {least}",
    )
    return int(value)


def _list(value: Any, what: str, each: Callable[[Any], Any] = _word) -> tuple[Any, ...]:
    _need(type(value) is list, value, what)
    return tuple(map(each, value))


def _relevant(value: Any) -> tuple[int, ...]:
    what = "a list of the numbers of the relevant documents, from 1, each once"
    numbers = _list(value, what, _whole)
    if not numbers or len(set(numbers)) < len(numbers):
        raise _UnwantedError("a number twice" if numbers else "an empty list", what)
    return numbers


def _citation(one: Any) -> dict[str, Any]:
    wanted = "objects with document and probability"
    _need(type(one) is dict, one, wanted)
    if "document" not in one or set(one) - {"document", "probability"}:
        raise _UnwantedError(
            f"an object with {', '.join(map(_shown, one)) or 'nothing'}"[:200], wanted
        )
    document, value = _whole(one["document"], 0), one.get("probability")
    if value is not None:
        _need(
            type(value) in (int, float) and 0 <= value <= 1,
            value,
            "a probability from 0 to 1, or null",
        )
    return {"document": document, "probability": None if value is None else float(value)}


def _citations(value: Any) -> list[dict[str, Any]] | None:
    return None if value is None else [*_list(value, "a list of citations, or null", _citation)]


def _further(value: Any) -> Any:
    if type(value) is str:
        return _text(value)
    _need(type(value) in (int, float), value, "a text or a number")
    small = abs(value) <= LARGEST_INTEGER**2 if type(value) is int else math.isfinite(value)
    _need(small, value, "a number that a table can hold")
    return value


_REQUIRED: Mapping[str, Callable[[Any], Any]] = {
    "question": _id,
    "mode": _mode,
    **dict.fromkeys(_AUTHORS, _word),
    "answer": _text,
    "relevant": _relevant,
}
_OPTIONAL: Mapping[str, Callable[[Any], Any]] = {
    "documents": _whole,
    "shown": partial(_list, what="a list of the ids of the documents shown"),
    "citations": _citations,
    "gold": partial(_list, what="a list of gold answers"),
}
_NO_SCALARS = {*_REQUIRED, "shown", "citations", "gold"}


# --- lines ----------------------------------------------------------------------------------------


class _Reader:
    """Reads answers one by one; knows what a line must have in common with those before it."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.first: tuple[int, dict[str, str]] | None = (
            None  # line, and which of its keys hold a text or a number
        )
        self.authors: tuple[str, ...] = ()
        self.seen: dict[Hashable, int] = {}

    def add(self, number: int, content: dict[str, Any]) -> Iterator[tuple[str | None, str, str]]:
        """Keep the row of a line, or tell what is wrong with it: the key, what was found and what is wanted."""
        kind = content.pop("record", "answer")
        if number == 1 and kind == "settings":
            return
        row: dict[str, Any] = {"citations": None, "gold": ()}
        wrong: list[tuple[str | None, str, str]] = []
        if kind != "answer":
            wrong.append(("record", _shown(kind), "settings on line 1, then answer"))
        wrong += [
            (key, "no such key", "it on every line") for key in _REQUIRED if key not in content
        ]
        for key, value in content.items():
            try:
                row[_word(key)] = (_REQUIRED.get(key) or _OPTIONAL.get(key) or _further)(value)
            except _UnwantedError as error:
                wrong.append((repr(key)[1:-1][:60], *error.args))
        if not wrong:
            self.rows.append(row)
        yield from wrong or self.compare(number, row)

    def compare(self, number: int, row: dict[str, Any]) -> Iterator[tuple[str | None, str, str]]:
        """Tell what is wrong between a sound line and those before it, or within it."""
        highest = max(row["relevant"])
        if highest > row.get("documents", highest):
            yield "relevant", str(highest), f"numbers from 1 to documents, {row['documents']}"
        further = {key: value for key, value in row.items() if key not in _NO_SCALARS}
        kinds = {
            key: "a text" if isinstance(value, str) else "a number"
            for key, value in further.items()
        }
        self.first = first, known = self.first or (number, kinds)
        for key in sorted({key for key, _ in kinds.items() ^ known.items()}):
            if key in kinds and key in known:
                yield key, _shown(further[key]), f"{known[key]}, as on line {first}"
            else:
                yield (
                    key,
                    "a key more" if key in kinds else "no such key",
                    f"the keys of line {first}",
                )
        for column in _AUTHORS:
            authors = tuple(dict.fromkeys((*self.authors, row[column])))
            if len(authors) > 2:
                yield (
                    column,
                    f"a third author, {_shown(row[column])}",
                    " or ".join(map(_shown, self.authors)),
                )
            else:
                self.authors = authors
        telling = sorted(item for item in further.items() if item[0] not in _HOW)
        earlier = self.seen.setdefault(
            (*(row[name] for name in ("question", "mode", *_AUTHORS)), *telling), number
        )
        if earlier != number:
            found = f"question {_shown(row['question'])} in mode {row['mode']} again, as on line {earlier}"
            yield None, found, "each answer once, or a further key that tells them apart"


def read_answers(path: str | Path) -> pd.DataFrame:
    """Read answers with their citations.

    ``path``: JSON Lines as the module describes, or Parquet with its keys; empty lines are passed
    over. Returns one row for each answer, in the order of the file: ``question`` (text), ``mode``
    (by its one name), ``relevant_author, nonrelevant_author, answer, relevant`` (tuple of int),
    ``documents`` (int) and ``shown`` (tuple of str) where the file has them, ``citations`` (list of
    mappings with ``document`` and ``probability``, or None), ``gold`` (tuple of str, empty where
    there is none), then the further keys.

    thesis, section 5.3: the modes, and the authors of relevant and non-relevant documents.
    """
    problems = Problems()
    return answer_table(read_items(path, problems), problems)


def answer_table(items: Sequence[Item], problems: Problems) -> pd.DataFrame:
    """The table of `read_answers` from the objects of a file, of which there may be problems already."""
    reader = _Reader()
    for item in items:
        for within, *wrong in reader.add(item.line or item.number, dict(item.content)):
            item.wrong(problems, within or "", *wrong)
        if len(problems) >= MOST_PROBLEMS:
            break
    if not reader.rows and not problems:
        items[0].wrong(problems, "", "settings without an answer", "at least one answer")
    problems.refuse()
    table = pd.DataFrame(reader.rows)
    first = [*_REQUIRED, *(key for key in _OPTIONAL if key in table.columns)]
    return table[[*first, *(key for key in table.columns if key not in first)]]
