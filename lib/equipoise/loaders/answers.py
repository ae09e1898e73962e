r"""Answers that cite their sources, from JSON Lines: an evaluator's own, or a recording of ours.

One JSON object a line, one line for each answer::

    {"question": "q1", "mode": "Informed", "relevant_author": "Human", "nonrelevant_author": "LLM",
     "answer": "In Wales [2].", "relevant": [2], "documents": 5, "gold": ["Wales"],
     "citations": [{"document": 2, "probability": 0.97}], "model": "my-model"}

(on one line). ``question`` names the question, ``mode`` is one of `equipoise.answer_modes.MODES` or
two of them as X/Y, the authors are the actual ones, the same in every mode, and ``relevant``
numbers the relevant documents from 1. Optional: ``documents``, how many were shown, on every line
or on none; ``shown``, their ids; ``gold``, gold answers; ``citations``, the cited documents with
the probability of their number, or null. Further keys hold a text or a number, the same keys on
every line; they tell apart answers to the same question in the same mode, but for what only says
how an answer came about: ``finish, seconds, prompt_tokens, completion_tokens``.

A recording has its settings on line 1, and ``"record": "answer"`` on the others.

References
----------
thesis, section 5.3.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    ValidationError,
)

from equipoise.answer_modes import MODES, mode_name
from equipoise.loaders.documents import MOST_PROBLEMS
from equipoise.loaders.objects import Item, read_items
from equipoise.nuggets import LARGEST_INTEGER
from equipoise.problems import Problems

_AUTHORS = ("relevant_author", "nonrelevant_author")
_HOW_IT_CAME_ABOUT = ("finish", "seconds", "prompt_tokens", "completion_tokens")
_LARGEST_FURTHER = LARGEST_INTEGER**2

Problem = tuple[str | None, str, str]
"""The key that is wrong, None for the line, what was found there, and what is wanted."""


# --- a line by itself -----------------------------------------------------------------------------


def _each_once(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(numbers)) < len(numbers):
        raise ValueError("a number twice")
    return numbers


def _fits_a_table(value: str | int | float) -> str | int | float:
    if isinstance(value, int) and abs(value) > _LARGEST_FURTHER:
        raise ValueError("too large")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("no number")
    return value


_Word = Annotated[str, StringConstraints(strict=True, pattern=r"\S")]
_Integer = Annotated[StrictInt, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
_Count = Annotated[StrictInt, Field(ge=1, le=LARGEST_INTEGER)]
_Further = Annotated[StrictStr | StrictInt | StrictFloat, AfterValidator(_fits_a_table)]
_WANTED_FURTHER = "a text, or a number that a table can hold"


class _Citation(BaseModel):
    model_config = ConfigDict(extra="forbid")

    document: Annotated[StrictInt, Field(ge=0, le=LARGEST_INTEGER)]
    probability: Annotated[StrictFloat, Field(ge=0, le=1)] | None = None


class _Answer(BaseModel):
    """An answer of a file; the description of a field is what a message says is wanted."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Further]

    question: _Word | _Integer = Field(description="a text that is not empty, or a whole number")
    mode: Annotated[StrictStr, AfterValidator(mode_name)] = Field(
        description=f"{', '.join(MODES)}, or two of them as X/Y"
    )
    relevant_author: _Word = Field(description="a text that is not empty")
    nonrelevant_author: _Word = Field(description="a text that is not empty")
    answer: StrictStr = Field(description="a text")
    relevant: Annotated[tuple[_Count, ...], Field(min_length=1), AfterValidator(_each_once)] = (
        Field(description="a list of the numbers of the relevant documents, from 1, each once")
    )
    documents: _Count = Field(default=1, description="a whole number from 1")
    shown: tuple[_Word, ...] = Field(
        default=(), description="a list of the ids of the documents shown"
    )
    citations: tuple[_Citation, ...] | None = Field(
        default=None,
        description="a list of objects with document and probability (0 to 1, or null); or null",
    )
    gold: tuple[_Word, ...] = Field(default=(), description="a list of gold answers")


_REQUIRED = [name for name, field in _Answer.model_fields.items() if field.is_required()]
_OPTIONAL = [name for name, field in _Answer.model_fields.items() if not field.is_required()]
_NOT_COMPARED = {*_REQUIRED, "shown", "citations", "gold"}


def _shown(value: object) -> str:
    """A value as a message shows it; of lists and objects only the kind."""
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return f"an object with {', '.join(map(_shown, value)) or 'nothing'}"[:200]
    if isinstance(value, int) and abs(value) > _LARGEST_FURTHER:
        return "a number of very many digits"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    quoted = repr(value)
    return quoted if len(quoted) <= 60 else quoted[:57] + "..."


def _problems_of(error: ValidationError) -> list[Problem]:
    """What is wrong with a line, once for each key."""
    problems: dict[str, Problem] = {}
    for detail in error.errors(include_url=False):
        key = str(detail["loc"][0])
        field = _Answer.model_fields.get(key)
        expected = _WANTED_FURTHER if field is None else str(field.description)
        problem = _shown(detail["input"])
        if detail["type"] == "missing" and len(detail["loc"]) == 1:
            problem, expected = "no such key", "it on every line"
        elif detail["type"] == "extra_forbidden":
            problem = f"the key {_shown(detail['loc'][-1])} in an object"
        elif key == "relevant" and detail["type"] == "value_error":
            problem = "a number twice"
        # A union has an error for each of its kinds; the first tells enough.
        problems.setdefault(key, (repr(key)[1:-1][:60], problem, expected))
    return list(problems.values())


def _row_of(content: dict[str, Any]) -> dict[str, Any]:
    """The row of an answer, of the keys that its line has."""
    answer = _Answer.model_validate(content)
    row: dict[str, Any] = {"citations": None, "gold": ()}
    row |= {key: getattr(answer, key) for key in content}
    row["question"] = str(answer.question)
    if answer.citations is not None:
        row["citations"] = [citation.model_dump() for citation in answer.citations]
    return row


# --- a line among others --------------------------------------------------------------------------


class _Reader:
    """Reads answers one by one; knows what a line must have in common with those before it."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._first_line = 0
        self._kinds: dict[str, str] = {}  # of the further keys on the first line
        self._authors: list[str] = []
        self._line_of: dict[Hashable, int] = {}

    def add(self, line: int, content: dict[str, Any]) -> list[Problem]:
        """Keep the row of a line, and tell what is wrong with it."""
        record = content.pop("record", "answer")
        if line == 1 and record == "settings":  # the first line of a recording
            return []
        problems: list[Problem] = []
        if record != "answer":
            problems.append(("record", _shown(record), "settings on line 1, then answer"))
        if "" in content:
            problems.append(("", "an empty key", "keys that are not empty"))
        try:
            row = _row_of(content)
        except ValidationError as error:
            problems += _problems_of(error)
        if problems:
            return problems
        self.rows.append(row)
        return [*self._compare(line, row)]

    def _compare(self, line: int, row: dict[str, Any]) -> Iterator[Problem]:
        """Tell what is wrong between a sound line and those before it, or within it."""
        highest = max(row["relevant"])
        if "documents" in row and highest > row["documents"]:
            yield "relevant", str(highest), f"numbers from 1 to documents, {row['documents']}"
        further = {key: value for key, value in row.items() if key not in _NOT_COMPARED}
        yield from self._compare_keys(line, further)
        yield from self._compare_authors(row)

        question = [row[name] for name in ("question", "mode", *_AUTHORS)]
        telling = [(key, value) for key, value in further.items() if key not in _HOW_IT_CAME_ABOUT]
        # Seconds and counts of tokens differ by chance, and make no answer another one.
        earlier_line = self._line_of.setdefault((*question, *sorted(telling)), line)
        if earlier_line != line:
            problem = f"question {_shown(row['question'])} in mode {row['mode']} again"
            expected = "each answer once, or a further key that tells them apart"
            yield None, f"{problem}, as on line {earlier_line}", expected

    def _compare_keys(self, line: int, further: dict[str, Any]) -> Iterator[Problem]:
        kinds = {}
        for key, value in further.items():
            kinds[key] = "a text" if isinstance(value, str) else "a number"
        # The first sound line says which further keys there are, for all make one table.
        if not self._first_line:
            self._first_line, self._kinds = line, kinds
        for key in sorted(kinds.keys() | self._kinds.keys()):
            if key not in self._kinds:
                yield key, "a key more", f"the keys of line {self._first_line}"
            elif key not in kinds:
                yield key, "no such key", f"the keys of line {self._first_line}"
            elif kinds[key] != self._kinds[key]:
                expected = f"{self._kinds[key]}, as on line {self._first_line}"
                yield key, _shown(further[key]), expected

    def _compare_authors(self, row: dict[str, Any]) -> Iterator[Problem]:
        for column in _AUTHORS:
            author = row[column]
            if author in self._authors:
                continue
            if len(self._authors) == 2:
                expected = " or ".join(map(_shown, self._authors))
                yield column, f"a third author, {_shown(author)}", expected
            else:
                self._authors.append(author)


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
    """The table of `read_answers` from the objects of a file.

    ``problems`` are those of the file already.
    """
    reader = _Reader()
    for item in items:
        for key, problem, expected in reader.add(item.line or item.number, dict(item.content)):
            item.wrong(problems, key or "", problem, expected)
        if len(problems) >= MOST_PROBLEMS:
            break
    if not reader.rows and not problems:
        items[0].wrong(problems, "", "settings without an answer", "at least one answer")
    problems.refuse()
    table = pd.DataFrame(reader.rows)
    columns = [*_REQUIRED, *(key for key in _OPTIONAL if key in table.columns)]
    further = [key for key in table.columns if key not in columns]
    return table[[*columns, *further]]
