r"""Answers that cite their sources, from JSON Lines: an evaluator's own, or a recording of this library.

One JSON object a line, one line for each answer::

    {"question": "q1", "mode": "Informed", "relevant_author": "Human", "nonrelevant_author": "LLM",
     "answer": "In Wales [2].", "relevant": [2], "documents": 5, "gold": ["Wales"],
     "citations": [{"document": 2, "probability": 0.97}], "model": "my-model"}

(on one line). ``question`` names the question, ``mode`` is one of `equipoise.answer_modes.MODES` or two of them as X/Y,
the authors are the actual ones, ``relevant`` numbers the relevant documents from 1. Optional: ``documents``, how many
were shown, on every line or on none; ``shown``, their ids; ``gold``, gold answers; ``citations``, the cited documents
with the probability of their number, or null. Further keys hold a text or a number, the same keys on every line; they
tell apart answers to the same question in the same mode, but for what only says how an answer came about: ``finish,
seconds, prompt_tokens, completion_tokens``.

A recording has its settings on line 1, and ``"record": "answer"`` on the others.

References
----------
thesis, section 5.3.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.answer_modes import MODES, mode_name
from equipoise.files import read_text
from equipoise.loaders.documents import MOST_PROBLEMS
from equipoise.nuggets import LARGEST_INTEGER
from equipoise.problems import Problems

_SURROGATE = re.compile("[\ud800-\udfff]")
_HOW = ("finish", "seconds", "prompt_tokens", "completion_tokens")
_LISTS = (list, tuple, type(None))


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


# --- values -------------------------------------------------------------------------------------------------------


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _UnwantedError(_shown(value), "a text")
    if _SURROGATE.search(value):
        raise _UnwantedError(f"half a surrogate pair in {_shown(value)}", "a text that UTF-8 can write")
    return value


def _word(value: object) -> str:
    if not _text(value).strip():
        raise _UnwantedError("an empty text", "a text that is not empty")
    return str(value)


def _id(value: object) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER
    return str(value) if whole else _word(value)


def _mode(value: object) -> str:
    try:
        return mode_name(_text(value))
    except ValueError:
        raise _UnwantedError(_shown(value), f"{', '.join(MODES)}, or two of them as X/Y") from None


def _whole(value: object, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_INTEGER:
        raise _UnwantedError(_shown(value), f"a whole number from {least}")
    return value


def _list(value: object, what: str, each: Callable[[Any], Any] = _word) -> list[Any]:
    if not isinstance(value, list):
        raise _UnwantedError(_shown(value), what)
    return [each(one) for one in value]


def _relevant(value: object) -> tuple[int, ...]:
    what = "a list of the numbers of the relevant documents, from 1, each once"
    numbers = _list(value, what, _whole)
    if not numbers or len(set(numbers)) < len(numbers):
        raise _UnwantedError("a number twice" if numbers else "an empty list", what)
    return tuple(numbers)


def _citation(one: object) -> dict[str, Any]:
    wanted = "objects with document and probability"
    if not isinstance(one, dict):
        raise _UnwantedError(_shown(one), wanted)
    if "document" not in one or set(one) - {"document", "probability"}:
        raise _UnwantedError(f"an object with {', '.join(map(_shown, one)) or 'nothing'}"[:200], wanted)
    document, value = _whole(one["document"], 0), one.get("probability")
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1):
        raise _UnwantedError(_shown(value), "a probability from 0 to 1, or null")
    return {"document": document, "probability": None if value is None else float(value)}


def _citations(value: object) -> list[dict[str, Any]] | None:
    return None if value is None else _list(value, "a list of citations, or null", _citation)


def _further(value: object) -> str | int | float:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _UnwantedError(_shown(value), "a text or a number")
    if (isinstance(value, int) and abs(value) > LARGEST_INTEGER**2) or not math.isfinite(value):
        raise _UnwantedError(_shown(value), "a number that a table can hold")
    return value


_REQUIRED: Mapping[str, Callable[[object], Any]] = {
    "question": _id,
    "mode": _mode,
    "relevant_author": _word,
    "nonrelevant_author": _word,
    "answer": _text,
    "relevant": _relevant,
}
_OPTIONAL: Mapping[str, Callable[[object], Any]] = {
    "documents": _whole,
    "shown": lambda value: tuple(_list(value, "a list of the ids of the documents shown")),
    "citations": _citations,
    "gold": lambda value: tuple(_list(value, "a list of gold answers")),
}


# --- lines --------------------------------------------------------------------------------------------------------


def _constant(name: str) -> float:
    raise _UnwantedError(name, "numbers as JSON has them")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        ((again, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise _UnwantedError(f"the key {_shown(again)} twice", "each key once")
    return content


def _object(line: str) -> dict[str, Any]:
    """The JSON object on a line."""
    try:
        content = json.loads(line, parse_constant=_constant, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        found = f"no JSON ({error.msg} at character {error.pos + 1})"
    except RecursionError:
        found = "values within values without end"
    except ValueError:
        found = "a number of very many digits"
    else:
        if isinstance(content, dict):
            return content
        found = _shown(content)
    raise _UnwantedError(found, "a JSON object for an answer")


class _Reader:
    """Reads answers line by line and collects what is wrong."""

    def __init__(self, name: str) -> None:
        self.name, self.problems = name, Problems()
        self.rows: list[dict[str, Any]] = []
        self.kinds: dict[str, str] = {}  # of the first sound line: documents and further keys, text or number
        self.first = 0
        self.authors: list[str] = []
        self.seen: dict[Hashable, int] = {}

    def wrong(self, line: int | None, column: str | None, found: str, wanted: str) -> None:
        self.problems.add(self.name, line, column, found, wanted)

    def add(self, number: int, line: str) -> None:
        try:
            content = _object(line)
        except _UnwantedError as error:
            self.wrong(number, None, *error.args)
            return
        kind, before = content.pop("record", "answer"), len(self.problems)
        if number == 1 and kind == "settings":
            return
        if kind != "answer":
            self.wrong(number, "record", _shown(kind), "settings on line 1, then answer")
        for key in _REQUIRED:
            if key not in content:
                self.wrong(number, key, "no such key", "it on every line")
        row: dict[str, Any] = {"citations": None, "gold": ()}
        for key, value in content.items():
            try:
                row[_word(key)] = (_REQUIRED.get(key) or _OPTIONAL.get(key) or _further)(value)
            except _UnwantedError as error:
                self.wrong(number, repr(key)[1:-1][:60], *error.args)
        if len(self.problems) == before:
            self.compare(number, row)
            self.rows.append(row)

    def compare(self, number: int, row: dict[str, Any]) -> None:
        """Check a sound line against itself and the lines before it."""
        highest = max(row["relevant"])
        if highest > row.get("documents", highest):
            self.wrong(number, "relevant", str(highest), f"numbers from 1 to documents, {row['documents']}")
        further = {key: value for key, value in row.items() if key not in _REQUIRED and not isinstance(value, _LISTS)}
        kinds = {key: "a text" if isinstance(value, str) else "a number" for key, value in further.items()}
        if not self.first:
            self.kinds, self.first = kinds, number
        for key in sorted(self.kinds.keys() | kinds.keys()):
            if key not in kinds or key not in self.kinds:
                found = "a key more" if key in kinds else "no such key"
                self.wrong(number, key, found, f"the keys of line {self.first}")
            elif kinds[key] != self.kinds[key]:
                self.wrong(number, key, _shown(further[key]), f"{self.kinds[key]}, as on line {self.first}")
        for column in ("relevant_author", "nonrelevant_author"):
            author = row[column]
            if author not in self.authors and len(self.authors) == 2:
                self.wrong(number, column, f"a third author, {_shown(author)}", " or ".join(map(_shown, self.authors)))
            elif author not in self.authors:
                self.authors.append(author)
        names = ("question", "mode", "relevant_author", "nonrelevant_author")
        telling = sorted(item for item in further.items() if item[0] not in _HOW)
        earlier = self.seen.setdefault((*(row[name] for name in names), *telling), number)
        if earlier != number:
            found = f"question {_shown(row['question'])} in mode {row['mode']} again, as on line {earlier}"
            self.wrong(number, None, found, "each answer once, or a further key that tells them apart")


def read_answers(path: str | Path) -> pd.DataFrame:
    """Read answers with their citations.

    ``path``: JSON Lines as the module describes; empty lines are passed over. Returns one row for each answer, in
    the order of the file: ``question`` (text), ``mode`` (by its one name), ``relevant_author, nonrelevant_author,
    answer, relevant`` (tuple of int), ``documents`` (int) and ``shown`` (tuple of str) where the file has them,
    ``citations`` (list of mappings with ``document`` and ``probability``, or None), ``gold`` (tuple of str, empty where
    there is none), then the further keys.

    thesis, section 5.3: the modes, and the authors of relevant and non-relevant documents.
    """
    reader = _Reader(str(path))
    lines = read_text(path).split("\n")
    if lines[0].startswith("{") and '"record": "settings"' in lines[0]:
        lines.pop()  # what follows the last end of a line: nothing, or what an interruption left of an answer
    for number, line in enumerate(lines, start=1):
        if line.strip():
            reader.add(number, line)
        if len(reader.problems) >= MOST_PROBLEMS:
            break
    if not reader.rows and not reader.problems:
        reader.wrong(None, None, "settings without an answer", "at least one answer")
    reader.problems.refuse()
    table = pd.DataFrame(reader.rows)
    first = [*_REQUIRED, *(key for key in _OPTIONAL if key in table.columns)]
    return table[[*first, *(key for key in table.columns if key not in first)]]
