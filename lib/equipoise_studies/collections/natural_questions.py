"""Natural Questions: what people asked a search engine, with the passage of Wikipedia that answers.

A gzip archive with one JSON object a line (item nqoracle).

References
----------
Kwiatkowski, T. et al. (2019): Natural Questions: A Benchmark for Question Answering Research. TACL
7. Liu, N. F. et al. (2024): Lost in the Middle: How Language Models Use Long Contexts. TACL 12.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from equipoise.loaders.objects import read_items
from equipoise.problems import Problems, shown

_WANTED = (
    "an object with question, answers (texts, at least one) and ctxs, one passage with title "
    "and text"
)


def read_questions(path: str | Path) -> pd.DataFrame:
    """Read Natural Questions with their gold passages.

    Columns query, text, answers, title, passage, in file order; ``query`` is the number of the
    line, from ``nq-0001``, ``answers`` a tuple of str.
    """
    problems = Problems()
    rows = []
    for item in read_items(path, problems):
        match item.content:
            case {
                "question": str(text),
                "answers": [_, *_] as answers,
                "ctxs": [{"title": str(title), "text": str(passage)}],
            } if text.strip() and all(isinstance(answer, str) for answer in answers):
                query = f"nq-{item.line or item.number:04d}"
                rows.append((query, text, tuple(answers), title, passage))
            case content:
                item.wrong(problems, "", shown(content), _WANTED)
    problems.refuse()
    table = pd.DataFrame(rows, columns=["query", "text", "answers", "title", "passage"])
    return table.astype(dict.fromkeys(["query", "text", "title", "passage"], "str"))
