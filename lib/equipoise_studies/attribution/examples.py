"""Examples of answers: one question, with its passages by their ids, and what models answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from equipoise_studies.attribution.tables import PRINTED_NAMES


def most_varied(
    scored: pd.DataFrame, score: str, spread: str | Callable[..., Any] = np.ptp
) -> pd.DataFrame:
    """Answers to the question in which a score varies most, the first of equals."""
    spreads = scored.groupby(["benchmark", "question"])[score].agg(spread)
    # A stable sort, so that the first of equals is the same on every machine.
    spreads = spreads.sort_values(ascending=False, kind="stable")
    benchmark, question = spreads.index[0]
    return scored[(scored["benchmark"] == benchmark) & (scored["question"] == question)]


def question_parts(
    rows: pd.DataFrame, shown_answers: pd.DataFrame, words: Mapping[str, int]
) -> pd.DataFrame:
    """A question, its gold answer, the ids and lengths of its passages, and some answers to it.

    ``words``: of the passages, by id, as far as they are known. The texts of question and passages
    are not ours to show.
    """
    answer = rows.iloc[0]
    lines = [("Question", answer["question"]), ("Gold answer", "; ".join(answer["gold"]))]
    for number, document in enumerate(answer["shown"], start=1):
        label = f"[{number}]"
        if number in answer["relevant"]:
            label += ", relevant"
        text = f"passage {document}"
        if document in words:
            text += f", {words[document]} words"
        lines.append((label, text))
    for row in shown_answers.itertuples():
        lines.append((f"{row.model}, {row.mode}", str(row.answer)))
    return pd.DataFrame(lines, columns=["part", "text"])


def answer_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Answers as a table shows them, the question by its id."""
    columns = ["question", "gold", "relevant", "model", "mode"]
    columns += ["relevant_author", "nonrelevant_author", "answer", "precision", "recall"]
    table = rows[columns].rename(columns={"relevant": "relevant passage"} | PRINTED_NAMES)
    for name in ("gold", "relevant passage"):
        table[name] = ["; ".join(map(str, values)) for values in table[name]]
    return table
