"""Correctness of an answer: whether it holds a gold answer."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from functools import partial

from equipoise.declare import measure
from equipoise.measures.attribution.brackets import without_citations
from equipoise.options import CitationMarks, Match

CHAPTER_5 = ("thesis-ch5", "thesis")
declared = partial(measure, family="Answers: attribution to their sources", sources=CHAPTER_5)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised_answer(text: str) -> str:
    """A text as SQuAD compares answers: lower case, no ASCII punctuation, articles, or long blanks.

    Rajpurkar et al. (2016).
    """
    words = _ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split()
    return " ".join(words)


@declared(
    "Exact match",
    range="0 or 1",
    ideal="1",
    direction="higher is better",
    sources=(*CHAPTER_5, "rajpurkar2016"),
)
def exact_match(
    answer: str,
    gold: Sequence[str],
    *,
    match: Match = "substring",
    citation_marks: CitationMarks = "removed",
) -> bool:
    r"""Whether an answer holds one of the gold answers.

    .. math:: EM = [\exists g \in G : norm(g) \text{ is a substring of } norm(answer)]

    - :math:`G`: the gold answers
    - :math:`g, norm`: one of them, and what makes text lower case without articles and
      punctuation
    - :math:`answer`: what the model wrote
    - :math:`EM`: 1 where one of them occurs in it

    Parameters
    ----------
    answer : str
    gold : sequence of str
        Gold answers, any of which will do. One that the normalisation leaves nothing of matches
        nothing. Found as "substring", one may begin and end within a word, as "art" in "party";
        with citation marks "kept", the gold answer "5" is found in "[5]".

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If there is no gold answer.

    Notes
    -----
    thesis, section 5.3.3, Answer Correctness, with texts normalised as in SQuAD. Of citations
    within the answer the thesis says nothing; the evaluation it follows (Gao et al. 2023, ALCE)
    takes them out.

    Examples
    --------
    >>> exact_match("It was filmed in the Bay of Plenty [5].", ["New Zealand", "Bay of Plenty"])
    True
    >>> exact_match("A party [1].", ["art"]), exact_match("A party [1].", ["art"], match="words")
    (True, False)
    """
    if isinstance(gold, str) or not len(gold):
        raise ValueError("a list of gold answers is wanted, at least one")
    if citation_marks == "removed":
        answer = without_citations(answer)
    # With a blank on each side of a text and of a gold answer, only whole words match.
    edge = " " if match == "words" else ""
    text = edge + normalised_answer(answer) + edge
    for gold_answer in gold:
        normalised = normalised_answer(gold_answer)
        if normalised and edge + normalised + edge in text:
            return True
    return False
