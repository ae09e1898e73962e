"""Quality of the citations in answers: precision and recall, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import Booleans, Integers
from equipoise.measures.attribution.brackets import LARGEST_NUMBER, citations
from equipoise.measures.attribution.correctness import declared, exact_match
from equipoise.options import CitationMarks, Match, OutOfRange
from equipoise.problems import need_columns

MEANS = ("precision", "recall", "exact_match", "cited", "cited_relevant")
TOTALS = ("uncited", "out_of_range", "repeated", "malformed")


def _refuse(wrong: Booleans, answers: pd.DataFrame, what: str) -> None:
    if wrong.any():
        place = f"{int(wrong.sum())} answers, the first to question {answers['question'].iloc[int(wrong.argmax())]!r}"
        raise ValueError(f"{what} wanted, not so for {place}")


def end_to_end(lists: Iterable[Any], what: str) -> tuple[Integers, Integers]:
    """Rows and values of lists of whole numbers, laid end to end."""
    rows = [tuple(values) for values in lists]
    numbers = np.array(list(chain.from_iterable(rows)))
    if len(numbers) and numbers.dtype.kind not in "iu":
        raise ValueError(f"{what}: whole numbers are wanted, found others")
    sizes = np.array([len(values) for values in rows], dtype=np.int64)
    return np.repeat(np.arange(len(rows)), sizes), numbers.astype(np.int64)


def absent(values: Any) -> bool:
    """Whether a list is not there, or empty."""
    return values is None or (isinstance(values, float) and np.isnan(values)) or not len(values)


def document_keys(rows: Integers, numbers: Integers) -> Integers:
    """One number for a row and a document in it, whose number is below `LARGEST_NUMBER`."""
    return np.asarray(rows * LARGEST_NUMBER + numbers)


def shown_and_relevant(answers: pd.DataFrame) -> tuple[Integers, Integers, Integers]:
    """Number of documents behind each answer; keys of the relevant ones; number of the relevant ones behind each.

    Where it is not said how many were shown, they are more than are ever cited.
    """
    shown = np.full(len(answers), np.inf)
    if "documents" in answers.columns:
        shown = answers["documents"].to_numpy(dtype=np.float64, na_value=np.nan)
        _refuse(
            ~((shown >= 1) & (shown == np.floor(shown))),
            answers,
            "documents: whole numbers from 1 are",
        )
    documents = np.minimum(shown, LARGEST_NUMBER - 1).astype(np.int64)
    rows, numbers = end_to_end(answers["relevant"], "relevant")
    keys, sizes = (
        document_keys(rows, numbers),
        np.bincount(rows, minlength=len(answers)).astype(np.int64),
    )
    unsound = (numbers < 1) | (numbers > documents[rows]) | pd.Series(keys).duplicated().to_numpy()
    wrong = (sizes == 0) | (np.bincount(rows, unsound, minlength=len(answers)) > 0)
    _refuse(
        wrong,
        answers,
        "relevant: at least one document, each once, numbered from 1 to the number of documents is",
    )
    return documents, keys, sizes


@declared(
    "Precision and recall of attribution", range="0 to 1", ideal="1", direction="higher is better"
)
def score_answers(
    answers: pd.DataFrame,
    *,
    out_of_range: OutOfRange = "ignored",
    match: Match = "substring",
    citation_marks: CitationMarks = "removed",
) -> pd.DataFrame:
    r"""Precision and recall of the citations of each answer, what is wrong with them, and exact match.

    .. math:: P = \frac{|C \cap R|}{|C|}, \quad R = \frac{|C \cap R|}{|R|}

    with C the distinct cited documents and R the relevant ones. Precision is 0 where nothing is
    cited. A number that names no document is not in C; column ``out_of_range`` counts these apart.

    - :math:`C`: the documents that an answer cites
    - :math:`R, P`: the relevant documents among those given; recall and precision

    Parameters
    ----------
    answers : DataFrame
        One row for each answer. Columns ``question``; ``answer``, its text; ``relevant``, the
        numbers of the relevant documents, from 1. Optional: ``documents``, how many were shown;
        without it no number from 1 is out of range. ``gold``, gold answers; the list may be empty,
        or None. Other columns are kept.

    Returns
    -------
    DataFrame
        The rows in their order, with ``precision, recall`` (0 to 1), ``cited`` and
        ``cited_relevant`` (distinct documents), ``out_of_range, repeated, malformed`` (see
        `Citations`), ``uncited`` (no bracketed number at all), ``exact_match`` (0 or 1, NaN without
        gold answers).

    Raises
    ------
    ValueError
        If a column is missing or would be overwritten, an answer is no text, or an answer has no
        relevant document or one that is not there.

    Notes
    -----
    thesis, section 5.3.3. As scikit-learn's precision and recall over the documents, 0 where
    neither is defined.

    Examples
    --------
    >>> answers = pd.DataFrame({"question": ["a", "b"], "answer": ["Wales [1][3].", "Wales."], "documents": 5})
    >>> scored = score_answers(answers.assign(relevant=[(3,), (2,)], gold=[("Wales",), ()]))
    >>> scored[["precision", "recall", "cited", "uncited", "exact_match"]]
       precision  recall  cited  uncited  exact_match
    0        0.5     1.0      2    False          1.0
    1        0.0     0.0      0     True          NaN
    """
    need_columns(answers, ("question", "answer", "relevant"))
    if taken := [name for name in (*MEANS, *TOTALS) if name in answers.columns]:
        raise ValueError(f"columns {', '.join(taken)} would be overwritten; rename or drop them")
    texts = answers["answer"].tolist()
    _refuse(
        np.array([not isinstance(text, str) for text in texts], dtype=bool),
        answers,
        "answer: a text is",
    )
    documents, relevant, sizes = shown_and_relevant(answers)
    found = [citations(text, shown) for text, shown in zip(texts, documents.tolist(), strict=True)]
    counts = [(len(one.cited), len(one.out_of_range), one.repeated, one.malformed) for one in found]
    cited, beyond, repeated, malformed = np.array(counts, dtype=np.int64).reshape(-1, 4).T
    rows, numbers = end_to_end((one.cited for one in found), "cited")
    hits = np.bincount(
        rows[np.isin(document_keys(rows, numbers), relevant)], minlength=len(answers)
    )
    counted = cited + beyond if out_of_range == "wrong" else cited
    gold = answers["gold"] if "gold" in answers.columns else [None] * len(answers)
    matched = [
        np.nan
        if absent(wanted)
        else exact_match(text, wanted, match=match, citation_marks=citation_marks)
        for text, wanted in zip(texts, gold, strict=True)
    ]
    return answers.assign(
        precision=np.divide(hits, counted, out=np.zeros(len(answers)), where=counted > 0),
        recall=hits / sizes,
        cited=cited,
        cited_relevant=hits,
        out_of_range=beyond,
        repeated=repeated,
        malformed=malformed,
        uncited=cited + beyond == 0,
        exact_match=np.array(matched, dtype=np.float64),
    )
