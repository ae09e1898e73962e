"""Quality of the citations in answers: precision and recall, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import Booleans, Integers, ratio
from equipoise.measures.attribution.brackets import LARGEST_NUMBER, citations
from equipoise.measures.attribution.correctness import declared, exact_match
from equipoise.options import CitationMarks, Match, OutOfRange
from equipoise.problems import need_columns

MEANS = ("precision", "recall", "exact_match", "cited", "cited_relevant")
TOTALS = ("uncited", "out_of_range", "repeated", "malformed")


def _refuse(wrong: Booleans, answers: pd.DataFrame, need: str) -> None:
    """Refuse answers; ``need`` says what is wanted of each."""
    if wrong.any():
        question = answers["question"].iloc[int(wrong.argmax())]
        raise ValueError(
            f"{need} wanted, not so for {int(wrong.sum())} answers, the first to question"
            f" {question!r}"
        )


def end_to_end(lists: Iterable[Any], name: str) -> tuple[Integers, Integers]:
    """Rows and values of lists of whole numbers, laid end to end."""
    values_of_rows = [tuple(values) for values in lists]
    numbers = np.array(list(chain.from_iterable(values_of_rows)))
    if len(numbers) and numbers.dtype.kind not in "iu":
        raise ValueError(f"{name}: whole numbers are wanted, found others")
    sizes = np.array([len(values) for values in values_of_rows], dtype=np.int64)
    return np.repeat(np.arange(len(sizes)), sizes), numbers.astype(np.int64)


def absent(values: Any) -> bool:
    """Whether a list is not there, or empty."""
    return values is None or (isinstance(values, float) and np.isnan(values)) or not len(values)


def document_keys(rows: Integers, numbers: Integers) -> Integers:
    """One number for a row and a document in it, whose number is below `LARGEST_NUMBER`."""
    return np.asarray(rows * LARGEST_NUMBER + numbers)


def shown_and_relevant(answers: pd.DataFrame) -> tuple[Integers, Integers, Integers]:
    """How many documents an answer had; keys of the relevant ones; how many are relevant.

    Where it is not said how many were shown, they are more than are ever cited.
    """
    n_shown = np.full(len(answers), np.inf)
    if "documents" in answers.columns:
        n_shown = answers["documents"].to_numpy(dtype=np.float64, na_value=np.nan)
        is_count = (n_shown >= 1) & (n_shown == np.floor(n_shown))
        _refuse(~is_count, answers, "documents: whole numbers from 1 are")
    documents = np.minimum(n_shown, LARGEST_NUMBER - 1).astype(np.int64)

    rows, numbers = end_to_end(answers["relevant"], "relevant")
    keys = document_keys(rows, numbers)
    n_relevant = np.bincount(rows, minlength=len(answers)).astype(np.int64)
    # What is not among the documents shown cannot be relevant, nor can one be so twice.
    beyond = (numbers < 1) | (numbers > documents[rows])
    repeated = pd.Series(keys).duplicated().to_numpy()
    n_wrong = np.bincount(rows, beyond | repeated, minlength=len(answers))
    _refuse(
        (n_relevant == 0) | (n_wrong > 0),
        answers,
        "relevant: at least one document, each once, numbered from 1 to the number of documents is",
    )
    return documents, keys, n_relevant


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
    r"""Precision and recall of the citations of each answer, what is wrong with them, exact match.

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
    >>> texts = ["Wales [1][3].", "Wales."]
    >>> answers = pd.DataFrame({"question": ["a", "b"], "answer": texts, "documents": 5})
    >>> scored = score_answers(answers.assign(relevant=[(3,), (2,)], gold=[("Wales",), ()]))
    >>> scored[["precision", "recall", "cited", "uncited", "exact_match"]]
       precision  recall  cited  uncited  exact_match
    0        0.5     1.0      2    False          1.0
    1        0.0     0.0      0     True          NaN
    """
    need_columns(answers, ("question", "answer", "relevant"))
    overwritten = [name for name in (*MEANS, *TOTALS) if name in answers.columns]
    if overwritten:
        raise ValueError(
            f"columns {', '.join(overwritten)} would be overwritten; rename or drop them"
        )
    texts = answers["answer"].tolist()
    is_text = np.array([isinstance(text, str) for text in texts], dtype=bool)
    _refuse(~is_text, answers, "answer: a text is")
    documents, relevant, n_relevant = shown_and_relevant(answers)

    # A text can only be read by itself; what is read is laid in arrays.
    read = [
        citations(text, n_documents)
        for text, n_documents in zip(texts, documents.tolist(), strict=True)
    ]
    rows, numbers = end_to_end((answer.cited for answer in read), "cited")
    cited = np.bincount(rows, minlength=len(answers))
    out_of_range_numbers = np.array([len(answer.out_of_range) for answer in read], dtype=np.int64)
    is_relevant = np.isin(document_keys(rows, numbers), relevant)
    hits = np.bincount(rows[is_relevant], minlength=len(answers))
    considered = cited  # what precision is a share of
    if out_of_range == "wrong":
        considered = cited + out_of_range_numbers

    matched = np.full(len(answers), np.nan)
    if "gold" in answers.columns:
        for row, (text, gold) in enumerate(zip(texts, answers["gold"], strict=True)):
            if not absent(gold):
                matched[row] = exact_match(text, gold, match=match, citation_marks=citation_marks)
    return answers.assign(
        precision=ratio(hits, considered, 0.0),
        recall=hits / n_relevant,
        cited=cited,
        cited_relevant=hits,
        out_of_range=out_of_range_numbers,
        repeated=np.array([answer.repeated for answer in read], dtype=np.int64),
        malformed=np.array([answer.malformed for answer in read], dtype=np.int64),
        uncited=cited + out_of_range_numbers == 0,
        exact_match=matched,
    )
