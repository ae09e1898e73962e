"""Natural Questions with the passage of Wikipedia that holds the answer.

Item nqoracle: ``qa_data/nq-open-oracle.jsonl.gz``, one JSON object a line.

References
----------
Kwiatkowski, T. et al. (2019): Natural Questions: A Benchmark for Question Answering Research. TACL 7.
Liu, N. F. et al. (2024): Lost in the Middle: How Language Models Use Long Contexts. TACL 12.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pandas as pd

from equipoise.problems import InputError, Problem, Problems

FILE = "qa_data/nq-open-oracle.jsonl.gz"
"""Path in its repository."""

LARGEST_FILE = 2**28
"""Bytes beyond which the unpacked file is refused, so that a small archive cannot fill the memory."""


def _row(content: object) -> tuple[str, tuple[str, ...], str, str] | str:
    """Question, answers, title and text of a line, or what is wrong with it."""
    if not isinstance(content, dict):
        return "no JSON object"
    question, answers, passages = (content.get(key) for key in ("question", "answers", "ctxs"))
    if not isinstance(question, str) or not question.strip():
        return "no question"
    if not isinstance(answers, list) or not answers or not all(isinstance(answer, str) for answer in answers):
        return "no answers"
    gold = passages[0] if isinstance(passages, list) and len(passages) == 1 else None
    if not isinstance(gold, dict) or not isinstance(gold.get("title"), str) or not isinstance(gold.get("text"), str):
        return "not one passage with title and text"
    return question, tuple(answers), gold["title"], gold["text"]


def read_questions(path: str | Path) -> pd.DataFrame:
    """Read the questions with their gold passages.

    Columns query, text, answers, title, passage, in file order; ``query`` is the number of the line, from ``nq-0001``,
    ``answers`` a tuple of str.
    """
    name = str(path)
    try:
        with gzip.open(path) as file:
            content = file.read(LARGEST_FILE + 1)
        text = content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError([Problem(name, None, None, str(error), "a gzip archive of UTF-8 text")]) from None
    problems = Problems()
    if len(content) > LARGEST_FILE:
        problems.add(name, None, None, f"more than {LARGEST_FILE} bytes", "a smaller file")
        text = ""
    elif not text.strip():
        problems.add(name, None, None, "an empty file", "one JSON object a line")
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = _row(json.loads(line))
        except (ValueError, RecursionError):
            found = "a line that is not JSON"
        if isinstance(found, str):
            problems.add(name, number, None, found, "an object with question, answers and ctxs")
        else:
            rows.append((f"nq-{number:04d}", *found))
    problems.refuse()
    table = pd.DataFrame(rows, columns=["query", "text", "answers", "title", "passage"])
    return table.astype(dict.fromkeys(["query", "text", "title", "passage"], "str"))
