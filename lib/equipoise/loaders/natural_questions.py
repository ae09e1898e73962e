"""Natural Questions with their gold passages: questions that people put to a search engine, answered in Wikipedia.

A gzip archive with one JSON object a line (item nqoracle).

References
----------
Kwiatkowski, T. et al. (2019): Natural Questions: A Benchmark for Question Answering Research. TACL 7.
Liu, N. F. et al. (2024): Lost in the Middle: How Language Models Use Long Contexts. TACL 12.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.files import read_text
from equipoise.problems import Problems


def _row(content: Any) -> tuple[str, tuple[str, ...], str, str] | None:
    """Question, answers, title and text of a line; None where it is something else."""
    match content:
        case {
            "question": str(text),
            "answers": [_, *_] as answers,
            "ctxs": [{"title": str(title), "text": str(passage)}],
        }:
            sound = text.strip() and all(isinstance(answer, str) for answer in answers)
            return (text, tuple(answers), title, passage) if sound else None
    return None


def read_questions(path: str | Path) -> pd.DataFrame:
    """Read Natural Questions with their gold passages.

    Columns query, text, answers, title, passage, in file order; ``query`` is the number of the line, from ``nq-0001``,
    ``answers`` a tuple of str.
    """
    problems, rows = Problems(), []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = _row(json.loads(line))
        except (ValueError, RecursionError):
            found = None
        if found is None:
            wanted = "an object with question, answers (texts, at least one) and ctxs, one passage with title and text"
            problems.add(path, number, None, "another line", wanted)
        else:
            rows.append((f"nq-{number:04d}", *found))
    if not rows and not problems:
        problems.add(path, None, None, "an empty file", "one JSON object a line")
    problems.refuse()
    table = pd.DataFrame(rows, columns=["query", "text", "answers", "title", "passage"])
    return table.astype(dict.fromkeys(["query", "text", "title", "passage"], "str"))
