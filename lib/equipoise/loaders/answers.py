r"""Answers that cite their sources, from JSON Lines.

One object per answer::

    {"question": "q1", "mode": "Informed", "relevant_author": "Human", "nonrelevant_author": "LLM",
     "answer": "In Wales [2].", "relevant": [2], "documents": 5, "gold": ["Wales"],
     "citations": [{"document": 2, "probability": 0.97}], "model": "my-model"}

(on one line). ``question`` names the question, ``mode`` is one of `equipoise.answer_modes.MODES` or
two of them as X/Y, the authors are the actual ones, the same in every mode, and ``relevant``
numbers the relevant documents from 1. Optional keys are ``documents`` (how many were shown),
``shown`` (their ids), ``gold`` (correct answers) and ``citations`` (the cited documents with the
probability of their number, or null). Further keys distinguish answers to the same question in the
same mode.

Cached model outputs have their settings on line 1, and ``"record": "answer"`` on the other lines.

References
----------
thesis, section 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    ValidationError,
)

from equipoise.answer_modes import mode_name
from equipoise.errors import excerpt, input_error
from equipoise.readers import read_json_lines, read_text

_Name = Annotated[StrictStr, Field(min_length=1)]
_Count = Annotated[StrictInt, Field(ge=1)]


class _Citation(BaseModel):
    model_config = ConfigDict(extra="forbid")

    document: Annotated[StrictInt, Field(ge=0)]
    probability: Annotated[StrictFloat, Field(ge=0, le=1)] | None = None


class _Answer(BaseModel):
    model_config = ConfigDict(extra="allow")

    question: _Name | StrictInt
    mode: Annotated[StrictStr, AfterValidator(mode_name)]
    relevant_author: _Name
    nonrelevant_author: _Name
    answer: StrictStr
    relevant: Annotated[tuple[_Count, ...], Field(min_length=1)]
    documents: _Count = 1
    shown: tuple[_Name, ...] = ()
    citations: tuple[_Citation, ...] | None = None
    gold: tuple[_Name, ...] = ()


def read_answers(path: str | Path) -> pd.DataFrame:
    """Read answers with their citations.

    Returns one row for each answer, in the order of the file: ``question`` (text), ``mode`` (by its
    one name), ``relevant_author, nonrelevant_author, answer, relevant`` (tuple of int),
    ``documents`` (int) and ``shown`` (tuple of str) where the file has them, ``citations`` (list of
    mappings with ``document`` and ``probability``, or None), ``gold`` (tuple of str, empty where
    there is none), then the further keys.

    thesis, section 5.3: the modes, and the authors of relevant and non-relevant documents.
    """
    return answer_table(path, list(read_json_lines(path, read_text(path))))


def answer_table(
    path: str | Path, objects: Iterable[tuple[int | None, dict[str, Any]]]
) -> pd.DataFrame:
    """Return the table of `read_answers` from the objects of a file, each with its line."""
    rows: list[dict[str, Any]] = []
    for line, content in objects:
        if content.pop("record", "answer") == "settings":
            continue
        try:
            answer = _Answer.model_validate(content)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            wanted = fault["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
            found = "" if fault["type"] in ("missing", "value_error") else excerpt(fault["input"])
            key, *inside = map(str, fault["loc"])
            of = "a key of each line"
            if inside and fault["type"] == "missing":
                key, of = inside[-1], f"a key of each object in {key}"
            wanted = {"missing": of, "too_short": "a list with an item"}.get(fault["type"], wanted)
            raise input_error(path, wanted, found, line, key) from None
        row: dict[str, Any] = {"citations": None, "gold": ()}
        row |= {key: getattr(answer, key) for key in content}
        row["question"] = str(answer.question)
        if answer.citations is not None:
            row["citations"] = [citation.model_dump() for citation in answer.citations]
        rows.append(row)
    if not rows:
        raise input_error(path, "a file with at least one answer")
    table = pd.DataFrame(rows)
    known = [name for name in _Answer.model_fields if name in table.columns]
    return table[[*known, *table.columns.drop(known)]]
