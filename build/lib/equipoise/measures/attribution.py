"""How well an answer cites the documents it was given, and how that changes with what is said about their authors.

An answer to a question is written from k numbered documents, of which some are relevant, and cites them by numbers in
square brackets. `score_answers` gives precision and recall of its citations. The same question is answered in several
modes (`equipoise.answer_modes`): `cas` measures how far naming the authors moves the scores, `cab` in whose favour, and
`bias_table` gives both for a whole table of answers, with intervals and tests. `attribution_confidence` compares the
probabilities with which relevant and non-relevant documents are cited.

All scores lie between 0 and 1; the thesis prints them times 100.

References
----------
thesis: Abolghasemi, chapter 5. Rajpurkar et al. (2016), SQuAD, for the normalisation of answers.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from equipoise.answer_modes import MODES, mode_name
from equipoise.arrays import Floats, Integers
from equipoise.statistics import bootstrap_interval, compare_pairs

OutOfRange: TypeAlias = Literal["wrong", "ignored"]
Match: TypeAlias = Literal["substring", "words"]
CitationMarks: TypeAlias = Literal["removed", "kept"]

AUTHORS = ("Human", "LLM")
"""The two authors of the thesis; CAB is positive where the first is favoured."""
LARGEST_NUMBER = 10**9
"""Cited numbers of ten and more digits count as this one, which is never in range."""
LONGEST_RANGE = 100
"""Most documents that a range such as [1-3] may stand for."""

_NUMBERS = r"[0-9]++(?:\s*+[-–—]\s*+[0-9]++)?+"
_BRACKET = re.compile(r"\[([^\[\]]*+)(\]?)")
_CITATION = re.compile(rf"\s*+{_NUMBERS}(?:\s*+[,;]\s*+{_NUMBERS})*+\s*+")
_RANGE = re.compile(r"([0-9]++)(?:\s*+[-–—]\s*+([0-9]++))?+")
_CITED = re.compile(rf"\[{_CITATION.pattern}\]")
_DIGIT, _DIGIT_FIRST = re.compile(r"\d"), re.compile(r"\s*+\d")
_OTHER_BRACKET = re.compile(r"[［【]\s*+\d")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)

_COUNTS = ("cited", "cited_relevant", "out_of_range", "repeated", "malformed")
_SCORES = ("precision", "recall", *_COUNTS, "uncited", "exact_match")
_PAIR = ("relevant_author", "nonrelevant_author")


# --- citations in an answer ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Citations:
    """The citations of an answer.

    ``cited``: Distinct numbers in range, in the order of first mention. ``out_of_range``: Distinct numbers of
    documents that were not there, likewise. ``repeated``: Mentions of a number beyond its first, in range or not.
    ``malformed``: Brackets that look like a citation but are none.
    """

    cited: tuple[int, ...]
    out_of_range: tuple[int, ...]
    repeated: int
    malformed: int


def _number(digits: str) -> int:
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) < 10 else LARGEST_NUMBER


def _cited_numbers(content: str, limit: int) -> Sequence[int]:
    """Numbers within a bracket; none where it is no citation."""
    if content.isdecimal() and content.isascii():
        return (_number(content),)
    if not _CITATION.fullmatch(content):
        return ()
    numbers: list[int] = []
    for first, last in _RANGE.findall(content):
        start = _number(first)
        end = _number(last) if last else start
        if last and not 1 <= start <= end <= min(limit, start + LONGEST_RANGE - 1):
            return ()
        numbers.extend(range(start, end + 1))
    return numbers


def citations(answer: str, documents: int | None = None) -> Citations:
    """The distinct bracketed numbers of an answer, in range and out of range.

    A citation is a number in square brackets, or several with commas or semicolons between, or a range: ``[1]``,
    ``[1, 2]``, ``[1; 2]``, ``[1-3]``. A range is read as all its numbers where it ascends, lies within the documents
    and has at most `LONGEST_RANGE` of them; a longer or falling one, and one beyond the documents such as
    ``[2015-2019]``, is malformed. Malformed, and citing nothing, are also other brackets with a digit
    (``[Document 5]``, ``[5a]``, ``[-1]``, ``[5`` without its end, digits that are not 0 to 9) and numbers in the
    brackets of other scripts (【5】). Brackets without any digit are prose, and so are numbers in parentheses, which
    mostly are years.

    ``documents``: number of documents shown; numbers from 1 to it are in range. Without it, every number from 1 is.
    Returns: In time that is linear in the length of the answer.

    thesis, Figure 5.2: the prompt asks to cite "using [1] [2] [3] etc."; section 5.3.3 counts cited documents, so
    that a repeated number is one. What else counts as a citation the thesis does not say.
    """
    if documents is not None and documents < 1:
        raise ValueError(f"at least one document is wanted, found {documents}")
    limit = LARGEST_NUMBER - 1 if documents is None else min(documents, LARGEST_NUMBER - 1)
    malformed = len(_OTHER_BRACKET.findall(answer)) if "【" in answer or "［" in answer else 0
    mentions, numbers = 0, dict[int, None]()
    # equal brackets are read once; the counter keeps the order of first mention
    for (content, closing), times in Counter(_BRACKET.findall(answer)).items():
        if closing and (found := _cited_numbers(content, limit)):
            mentions += times * len(found)
            numbers.update(dict.fromkeys(found))
        elif _DIGIT.search(content) if closing else _DIGIT_FIRST.match(content):
            malformed += times
    cited = tuple(number for number in numbers if 1 <= number <= limit)
    beyond = tuple(number for number in numbers if not 1 <= number <= limit) if len(cited) < len(numbers) else ()
    return Citations(cited, beyond, mentions - len(numbers), malformed)


# --- correctness of an answer -------------------------------------------------------------------------------------


def normalised_answer(text: str) -> str:
    """A text as answers are compared: lower case, without ASCII punctuation and articles, single spaces.

    Rajpurkar et al. (2016), SQuAD.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def exact_match(
    answer: str,
    gold: Sequence[str],
    *,
    match: Match = "substring",
    citation_marks: CitationMarks = "removed",
) -> bool:
    r"""Whether an answer holds one of the gold answers.

    .. math:: EM = [\exists g \in G : norm(g) \text{ is a substring of } norm(answer)]

    Parameters
    ----------
    answer : str
    gold : sequence of str
        Gold answers, any of which will do. One that the normalisation leaves nothing of matches nothing.
    match : {"substring", "words"}
        Whether a gold answer may begin and end within a word, as "art" in "party".
    citation_marks : {"removed", "kept"}
        Whether citations are taken out of the answer first; kept, the gold answer "5" is found in "[5]".

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If there is no gold answer, or a choice is unknown.

    Notes
    -----
    thesis, section 5.3.3, Answer Correctness, with `normalised_answer` of SQuAD. Of citations within the answer the
    thesis says nothing; the evaluation it follows (Gao et al. 2023, ALCE) takes them out.

    Examples
    --------
    >>> exact_match("It was filmed in the Bay of Plenty [5].", ["New Zealand", "Bay of Plenty"])
    True
    >>> exact_match("A party [1].", ["art"]), exact_match("A party [1].", ["art"], match="words")
    (True, False)
    """
    if isinstance(gold, str) or not len(gold):
        raise ValueError("a list of gold answers is wanted, at least one")
    if match not in ("substring", "words") or citation_marks not in ("removed", "kept"):
        raise ValueError(
            f"match is 'substring' or 'words' and citation_marks 'removed' or 'kept', found {match!r}, "
            f"{citation_marks!r}"
        )
    edge = " " if match == "words" else ""
    held = edge + normalised_answer(_CITED.sub(" ", answer) if citation_marks == "removed" else answer) + edge
    wanted = [normalised_answer(one) for one in gold]
    return any(edge + one + edge in held for one in wanted if one)


# --- scores of answers --------------------------------------------------------------------------------------------


def _need(table: pd.DataFrame, columns: Iterable[str]) -> None:
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise ValueError(f"columns {', '.join(missing)} wanted, found {', '.join(map(str, table.columns))}")


def _ragged(lists: Iterable[Any], what: str) -> tuple[Integers, Integers]:
    """Rows and values of lists of whole numbers, laid end to end."""
    rows = [tuple(values) for values in lists]
    sizes = np.array([len(values) for values in rows], dtype=np.int64)
    numbers = np.array(list(chain.from_iterable(rows)))
    if len(numbers) and numbers.dtype.kind not in "iu":
        raise ValueError(f"{what}: whole numbers are wanted, found others")
    return np.repeat(np.arange(len(rows)), sizes), numbers.astype(np.int64)


def _absent(values: Any) -> bool:
    """Whether a list is not there, or empty."""
    return values is None or (isinstance(values, float) and np.isnan(values)) or not len(values)


def _keys(rows: Integers, numbers: Integers) -> Integers:
    """One number for a row and a document in it."""
    keys: Integers = rows * (LARGEST_NUMBER + 1) + numbers
    return keys


def _place(where: NDArray[np.bool_], answers: pd.DataFrame) -> str:
    return f"{int(where.sum())} answers, the first to question {answers['question'].iloc[int(where.argmax())]!r}"


def _shown_documents(answers: pd.DataFrame) -> list[int | None]:
    """Number of documents behind each answer."""
    if "documents" not in answers.columns:
        return [None] * len(answers)
    shown = answers["documents"].to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = ~((shown >= 1) & (shown == np.floor(shown)))
    if wrong.any():
        raise ValueError(f"documents: whole numbers from 1 are wanted, not so for {_place(wrong, answers)}")
    return [int(number) for number in np.minimum(shown, LARGEST_NUMBER)]


def _relevant_documents(answers: pd.DataFrame, documents: Sequence[int | None]) -> tuple[Integers, Integers]:
    """Keys of the relevant documents, and their number for each answer."""
    rows, numbers = _ragged(answers["relevant"], "relevant")
    sizes = np.bincount(rows, minlength=len(answers))
    limits = np.array([LARGEST_NUMBER if shown is None else shown for shown in documents], dtype=np.int64)
    keys = _keys(rows, numbers)
    unsound = (numbers < 1) | (numbers > limits[rows])
    unsound |= pd.Series(keys).duplicated().to_numpy()
    wrong = (sizes == 0) | (np.bincount(rows, unsound, minlength=len(answers)) > 0)
    if wrong.any():
        raise ValueError(
            "relevant: at least one document, each once, numbered from 1 to the number of documents is wanted, "
            f"not so for {_place(wrong, answers)}"
        )
    return keys, sizes.astype(np.int64)


def score_answers(
    answers: pd.DataFrame,
    *,
    out_of_range: OutOfRange = "wrong",
    match: Match = "substring",
    citation_marks: CitationMarks = "removed",
) -> pd.DataFrame:
    r"""Precision and recall of the citations of each answer, what is wrong with them, and exact match.

    .. math:: P = \frac{|C \cap R|}{|C|}, \quad R = \frac{|C \cap R|}{|R|}

    with C the distinct cited documents and R the relevant ones. Precision is 0 where nothing is cited.

    Parameters
    ----------
    answers : DataFrame
        One row for each answer. Columns ``question``; ``answer``, its text; ``relevant``, the numbers of the relevant
        documents, from 1. Optional: ``documents``, how many were shown; without it no number from 1 is out of range.
        ``gold``, gold answers; the list may be empty, or None. Other columns are kept.
    out_of_range : {"wrong", "ignored"}
        Whether a number without a document counts as a citation that is wrong, or not at all.
    match, citation_marks
        See `exact_match`.

    Returns
    -------
    DataFrame
        The rows in their order, with ``precision, recall`` (0 to 1), ``cited`` and ``cited_relevant`` (distinct
        documents), ``out_of_range, repeated, malformed`` (see `Citations`), ``uncited`` (no bracketed number at all),
        ``exact_match`` (0 or 1, NaN without gold answers).

    Raises
    ------
    ValueError
        If a column is missing or would be overwritten, an answer is no text, an answer has no relevant document or
        one that is not there, or a choice is unknown.

    Notes
    -----
    thesis, section 5.3.3. As scikit-learn's precision and recall over the documents, with ``zero_division=0``.

    Examples
    --------
    >>> answers = pd.DataFrame({"question": ["a", "b"], "answer": ["Wales [1][3].", "Wales."], "documents": 5})
    >>> scored = score_answers(answers.assign(relevant=[(3,), (2,)], gold=[("Wales",), ()]))
    >>> scored[["precision", "recall", "cited", "uncited", "exact_match"]]
       precision  recall  cited  uncited  exact_match
    0        0.5     1.0      2    False          1.0
    1        0.0     0.0      0     True          NaN
    """
    _need(answers, ("question", "answer", "relevant"))
    taken = [name for name in _SCORES if name in answers.columns]
    if taken:
        raise ValueError(f"columns {', '.join(taken)} would be overwritten; rename or drop them")
    if out_of_range not in ("wrong", "ignored"):
        raise ValueError(f"out_of_range is 'wrong' or 'ignored', found {out_of_range!r}")
    texts = answers["answer"].tolist()
    wrong = np.array([not isinstance(text, str) for text in texts], dtype=bool)
    if wrong.any():
        raise ValueError(f"answer: a text is wanted, not so for {_place(wrong, answers)}")
    documents = _shown_documents(answers)
    relevant, sizes = _relevant_documents(answers, documents)
    found = [citations(text, shown) for text, shown in zip(texts, documents, strict=True)]
    rows, numbers = _ragged((one.cited for one in found), "cited")
    cited = np.bincount(rows, minlength=len(answers))
    hits = np.bincount(rows[np.isin(_keys(rows, numbers), relevant)], minlength=len(answers))
    absent = np.array([len(one.out_of_range) for one in found], dtype=np.int64)
    counted = cited + absent if out_of_range == "wrong" else cited
    if "gold" in answers.columns:
        options: dict[str, Any] = {"match": match, "citation_marks": citation_marks}
        matched = [
            np.nan if _absent(gold) else float(exact_match(text, gold, **options))
            for text, gold in zip(texts, answers["gold"], strict=True)
        ]
    else:
        matched = [np.nan] * len(answers)
    return answers.assign(
        precision=np.divide(hits, counted, out=np.zeros(len(answers)), where=counted > 0),
        recall=hits / sizes,
        cited=cited,
        cited_relevant=hits,
        out_of_range=absent,
        repeated=np.array([one.repeated for one in found], dtype=np.int64),
        malformed=np.array([one.malformed for one in found], dtype=np.int64),
        uncited=cited + absent == 0,
        exact_match=np.array(matched, dtype=np.float64),
    )


# --- sensitivity and bias -----------------------------------------------------------------------------------------


def _scores(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.broadcast_arrays(np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64))
    if not a.ndim or not a.size or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("scores of the same questions in both modes are wanted, at least one and all finite")
    return a, b


def cas(informed: ArrayLike, vanilla: ArrayLike, axis: int = -1) -> Floats:
    r"""Counterfactually-estimated attribution sensitivity: how far naming the authors moves a score.

    .. math:: CAS(Q) = \frac{1}{|Q|} \sum_{q \in Q} |M^q_{Informed} - M^q_{Vanilla}|

    Parameters
    ----------
    informed, vanilla : array_like, shaped (..., questions)
        A score of the same questions in the two modes, such as precision; they broadcast.
    axis : int
        The axis of the questions.

    Returns
    -------
    ndarray, shaped (...)
        In the unit of the score: from 0 (not sensitive) to 1 for precision and recall.

    Raises
    ------
    ValueError
        If there is no question, or a score is not finite.

    Notes
    -----
    thesis, Eq. 5.1; printed times 100.

    Examples
    --------
    >>> cas([1.0, 0.5, 0.0], [0.0, 0.5, 0.5])
    np.float64(0.5)
    """
    a, b = _scores(informed, vanilla)
    mean: Floats = np.abs(a - b).mean(axis=axis)
    return mean


def cab(
    informed: ArrayLike,
    cf_informed: ArrayLike,
    relevant_label: ArrayLike,
    axis: int = -1,
    *,
    authors: tuple[str, str] = AUTHORS,
) -> Floats:
    r"""Counterfactually-estimated attribution bias: which author's documents are cited better for their label.

    .. math::
        CAB(Q) = \frac{\omega}{|Q|} \sum_{q \in Q} (M^q_{Informed} - M^q_{CF-informed}), \quad
        \omega = \begin{cases} 1, & L_f(R) = \text{Human}, L_f(N) = \text{LLM} \\ -1, & \text{otherwise} \end{cases}

    For documents of one author the two terms are the mixed modes Informed/CF-informed and CF-informed/Informed.

    Parameters
    ----------
    informed, cf_informed : array_like, shaped (..., questions)
        A score of the same questions, in the mode of the first term and with all labels exchanged; they broadcast.
    relevant_label : array_like of str, shaped (...)
        Author that the relevant documents are labelled with in the first term; the non-relevant ones have the other
        label. It broadcasts with the result.
    axis : int
        The axis of the questions.
    authors : (str, str)
        The two labels; a positive value says that the first is favoured.

    Returns
    -------
    ndarray, shaped (...)
        In the unit of the score: from -1 (fully biased to the second author) to 1 (to the first) for precision and
        recall.

    Raises
    ------
    ValueError
        If there is no question, a score is not finite, or a label is neither of the authors.

    Notes
    -----
    thesis, Eqs. 5.2, 5.3 and 5.5; printed times 100.

    Examples
    --------
    >>> cab([1.0, 0.5], [0.5, 0.5], "Human"), cab([0.5, 0.5], [1.0, 0.5], "LLM")
    (np.float64(0.25), np.float64(0.25))
    """
    a, b = _scores(informed, cf_informed)
    labels = np.asarray(relevant_label, dtype=object)
    known = np.isin(labels.astype(str), authors)
    if len(set(authors)) != 2 or not known.all():
        raise ValueError(f"labels are the two authors {' and '.join(authors)}, found {relevant_label!r}")
    signed: Floats = np.where(labels == authors[0], 1.0, -1.0) * (a - b).mean(axis=axis)
    return signed[()]


_BIAS = (
    "measure",
    "quantity",
    "base_mode",
    "counterfactual_mode",
    "questions",
    "left_out",
    "changed",
    "value",
    "low",
    "high",
    "t",
    "p_t",
    "p_permutation",
)


def _comparisons(relevant: str, nonrelevant: str, authors: tuple[str, str]) -> list[tuple[str, str, str, str]]:
    """Quantity, first and second mode of the difference, label of the relevant documents in the first."""
    if relevant != nonrelevant:
        return [("CAS", "Informed", "Vanilla", ""), ("CAB", "Informed", "CF-informed", relevant)]
    here, there = "Informed/CF-informed", "CF-informed/Informed"
    plain = [("CAS", mode, "Vanilla", "") for mode in ("Informed", here, there)]
    return [*plain, ("CAB", here, there, relevant)] if relevant in authors else plain


def _modes(scored: pd.DataFrame) -> pd.Series:
    return scored["mode"].map({mode: mode_name(mode) for mode in scored["mode"].unique()})


def _grouped(scored: pd.DataFrame, by: Sequence[str], measures: Sequence[str] = ()) -> pd.DataFrame:
    """The table with one name for each mode, checked to hold each answer once."""
    keys = [*by, *_PAIR, "mode", "question"]
    if isinstance(by, str) or len(set(keys)) < len(keys):
        raise ValueError(f"by lists further columns, none twice and none of {', '.join((*_PAIR, 'mode', 'question'))}")
    _need(scored, (*keys, *measures))
    if scored.empty or scored[keys].isna().to_numpy().any():
        raise ValueError(f"at least one answer is wanted, and none without {', '.join(keys)}")
    table = scored.assign(mode=_modes(scored))
    again = table.duplicated(keys)
    if again.any():
        first = table.loc[again, keys].iloc[0].to_dict()
        told = "name the column that tells them apart in by"
        raise ValueError(f"{int(again.sum())} answers are there twice, the first {first}; {told}")
    return table


def _common(first: pd.Series, second: pd.Series) -> tuple[Floats, Floats, int]:
    """Scores of the questions that have one in both modes, and the number of the other questions."""
    pairs = pd.concat([first.rename("a"), second.rename("b")], axis=1, join="outer").sort_index().astype("float64")
    both = pairs.dropna().to_numpy()
    return both[:, 0], both[:, 1], len(pairs) - len(both)


def _interval(values: Floats, level: float, resamples: int, seed: int) -> tuple[float, float]:
    if len(values) < 2:
        return np.nan, np.nan
    return bootstrap_interval(values, np.random.default_rng(seed), level=level, resamples=resamples)


def _long(first: Floats, second: Floats) -> pd.DataFrame:
    """Pairs as `compare_pairs` takes them."""
    units = np.arange(len(first))
    values = np.concatenate([first, second])
    return pd.DataFrame({"topic": np.tile(units, 2), "run": np.repeat(["a", "b"], len(units)), "value": values})


def _paired(first: Floats, second: Floats, resamples: int, seed: int) -> tuple[float, float, float]:
    """Statistic t and p of the paired t-test, and p of the randomisation test."""
    if len(first) < 2:
        return np.nan, np.nan, np.nan
    moved = first != second
    moved[:2] |= moved.sum() < 2  # the test wants two pairs
    options: dict[str, Any] = {"baseline": "b", "correction": "none", "resamples": resamples}
    t = compare_pairs(_long(first, second), **options).iloc[0]
    # exchanging equal scores changes nothing: without them more tests are exact, and all are faster
    differing = _long(first[moved], second[moved])
    exchanged = compare_pairs(differing, test="permutation", rng=np.random.default_rng(seed), **options).iloc[0]
    return float(t["statistic"]), float(t["p"]), float(exchanged["p"])


def bias_table(
    scored: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    measures: Sequence[str] = ("precision", "recall"),
    authors: tuple[str, str] = AUTHORS,
    level: float = 0.95,
    resamples: int = 9999,
    rng: np.random.Generator,
) -> pd.DataFrame:
    r"""CAS and CAB of every group of answers, with bootstrap intervals and paired tests.

    .. math::
        CAS = \frac{1}{|Q|} \sum_{q \in Q} |M^q_{Informed} - M^q_{Vanilla}|, \quad
        CAB = \frac{\omega}{|Q|} \sum_{q \in Q} (M^q_{Informed} - M^q_{CF-informed})

    Where relevant and non-relevant documents have different authors, CAS compares Informed with Vanilla and CAB
    Informed with CF-informed. Where they have the same author, CAB compares Informed/CF-informed with
    CF-informed/Informed, and CAS each of these two, and Informed, with Vanilla; Informed and CF-informed then give all
    documents one label and have no CAB. A comparison is there where both its modes are.

    ``by``: Further columns to group by, such as the model. ``measures``: Columns of scores. ``authors``: the two
    authors; a positive CAB says that the first is favoured. ``level``: of the bootstrap percentile interval over
    questions. ``resamples``: Bootstrap samples, and random exchanges of the randomisation test. ``rng``: one seed
    is drawn from it, with which every comparison begins: a row does not depend on the other groups. Returns: Sorted
    by group: by, ``relevant_author, nonrelevant_author, measure, quantity`` ("CAS" or "CAB"), ``base_mode,
    counterfactual_mode, questions`` (answered in both modes), ``left_out`` (answered in one of them, or without a
    score), ``changed`` (questions whose score differs), ``value, low, high`` (0 to 1, CAB from -1), ``t, p_t``
    (paired t-test), ``p_permutation`` (paired randomisation test, two-sided). Intervals and tests are NaN for fewer
    than two questions, the value for none.

    thesis, Eqs. 5.1 to 5.3 and 5.5; Tables 5.2, 5.3, 5.5 and 5.7 to 5.9. The tests are of the signed difference, with
    the sign of t: for CAB that of CAB; for CAS that of Informed minus Vanilla. The thesis does not say what the mark of
    a CAS rests on; a mean of absolute differences can only be tested against 0 by way of the signed ones. It can be
    large where these cancel out, and p is then large too.

    Where few questions change, look at ``changed`` and not at the interval: the bootstrap only draws what it has seen,
    and its interval has no width where no question changed.
    """
    table = _grouped(scored, by, measures)
    strange = sorted({str(author) for column in _PAIR for author in table[column].unique()} - set(authors))
    if strange:
        raise ValueError(f"the authors are {' and '.join(authors)}, found {', '.join(strange)}")
    seed = int(rng.integers(2**63))
    rows: list[tuple[Any, ...]] = []
    for group, answers in table.groupby([*by, *_PAIR], sort=True, observed=True):
        modes = {str(mode): part.set_index("question") for mode, part in answers.groupby("mode")}
        for measure in measures:
            for quantity, first, second, label in _comparisons(str(group[-2]), str(group[-1]), authors):
                if first not in modes or second not in modes:
                    continue
                a, b, left_out = _common(modes[first][measure], modes[second][measure])
                omega = 1.0 if quantity == "CAS" or label == authors[0] else -1.0
                value = np.nan
                if len(a):
                    value = float(cas(a, b) if quantity == "CAS" else cab(a, b, label, authors=authors)) + 0.0
                gaps = np.abs(a - b) if quantity == "CAS" else omega * (a - b) + 0.0  # no negative zero
                low, high = _interval(gaps, level, resamples, seed)
                t, p, exchanged = _paired(a, b, resamples, seed)
                pair = (second, first) if quantity == "CAS" else (first, second)
                found = (len(a), left_out, int((a != b).sum()), value, low, high, omega * t, p, exchanged)
                rows.append((*group, measure, quantity, *pair, *found))
    return pd.DataFrame(rows, columns=[*by, *_PAIR, *_BIAS])


# --- confidence ---------------------------------------------------------------------------------------------------


def citation_rows(answers: pd.DataFrame) -> pd.DataFrame:
    """One row for each citation whose probability was asked for.

    ``answers``: with the columns ``question``; ``relevant``, the numbers of the relevant documents; ``citations``,
    for each answer a list of mappings with ``document`` and ``probability`` (None where it is not known), or None.
    Optional: ``documents``, how many were shown. Returns The other columns of the answer without its text and gold
    answers, then ``document``, ``relevant`` (bool) and ``probability`` (NaN where it is not known), in the order of
    the answers. Every mention counts; numbers of documents that were not shown are left out, since such a document
    is neither relevant nor not.

    thesis, Eq. 5.4: the sets C_q.
    """
    _need(answers, ("question", "relevant", "citations"))
    documents = _shown_documents(answers)
    relevant, _ = _relevant_documents(answers, documents)
    lists = [[] if _absent(cited) else cited for cited in answers["citations"]]
    rows, numbers = _ragged(([one["document"] for one in cited] for cited in lists), "citations")
    known = [one.get("probability") for one in chain.from_iterable(lists)]
    probability = np.array([np.nan if value is None else value for value in known], dtype=np.float64)
    limits = np.array([LARGEST_NUMBER - 1 if shown is None else shown for shown in documents], dtype=np.int64)
    there = (numbers >= 1) & (numbers <= limits[rows])
    rows, numbers, probability = rows[there], numbers[there], probability[there]
    others = answers.drop(columns=["relevant", "citations", "answer", "gold"], errors="ignore")
    return (
        others.iloc[rows]
        .reset_index(drop=True)
        .assign(document=numbers, relevant=np.isin(_keys(rows, numbers), relevant), probability=probability)
    )


def attribution_confidence(cited: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    r"""Attribution confidence: mean probability of the citations of relevant and of non-relevant documents.

    .. math:: AC(S) = \frac{\sum_{q \in Q} \sum_{c_i \in C_q} p(c_i | q, D_q) [c_i \in S]}
        {\sum_{q \in Q} \sum_{c_i \in C_q} [c_i \in S]}

    Parameters
    ----------
    cited : DataFrame
        One row for each citation, as `citation_rows` gives it: ``relevant`` (bool) and ``probability`` (0 to 1, NaN
        where it is not known).
    by : sequence of str
        Columns to group by, such as the mode.

    Returns
    -------
    DataFrame
        Sorted by group: by, ``relevant_ac, nonrelevant_ac`` (0 to 1), ``relevant_citations, nonrelevant_citations``
        (with a probability), ``relevant_missing, nonrelevant_missing`` (without one; they do not enter), ``t, p`` of
        Welch's test between the two. NaN where there is nothing to average, and where a test has fewer than two
        citations on a side.

    Raises
    ------
    ValueError
        If a column is missing, a probability lies outside 0 to 1, or it is not said of a citation whether its document
        is relevant.

    Notes
    -----
    thesis, Eq. 5.4; Tables 5.6 and 5.10. The thesis does not name its test between the two; citations of relevant and
    of non-relevant documents do not come in pairs, hence Welch's unpaired test, which takes citations of one answer as
    independent.

    Examples
    --------
    >>> cited = pd.DataFrame({"relevant": [1, 1, 0, 0, 0], "probability": [1, 0.5, 0.5, 0.25, np.nan]})
    >>> attribution_confidence(cited)[["relevant_ac", "nonrelevant_ac", "nonrelevant_missing", "p"]].round(3)
       relevant_ac  nonrelevant_ac  nonrelevant_missing     p
    0         0.75           0.375                    1  0.35
    """
    if isinstance(by, str):
        raise ValueError("by lists columns")
    _need(cited, (*by, "relevant", "probability"))
    values = cited["probability"].to_numpy(dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise ValueError("probabilities lie between 0 and 1")
    if cited["relevant"].isna().any():
        raise ValueError("relevant: true or false is wanted for every citation")
    codes, groups = np.zeros(len(cited), dtype=np.intp), pd.DataFrame(index=[0])
    if by:
        codes = cited.groupby(list(by), sort=True, observed=True, dropna=False).ngroup().to_numpy()
        groups = cited[list(by)].drop_duplicates().sort_values(list(by), ignore_index=True)
    relevant = cited["relevant"].to_numpy(dtype=bool)
    here = _moments(values[relevant], codes[relevant], len(groups))
    there = _moments(values[~relevant], codes[~relevant], len(groups))
    t, p = np.full(len(groups), np.nan), np.full(len(groups), np.nan)
    able = (here.known >= 2) & (there.known >= 2)
    first, second = ((side.mean[able], side.deviation[able], side.known[able]) for side in (here, there))
    t[able], p[able] = stats.ttest_ind_from_stats(*first, *second, equal_var=False)
    same = able & (here.mean == there.mean)
    t[same], p[same] = 0.0, 1.0
    return groups.assign(
        relevant_ac=here.mean,
        nonrelevant_ac=there.mean,
        relevant_citations=here.known,
        nonrelevant_citations=there.known,
        relevant_missing=here.missing,
        nonrelevant_missing=there.missing,
        t=t,
        p=p,
    )


class _Moments(NamedTuple):
    mean: Floats
    deviation: Floats
    known: Integers
    missing: Integers


def _moments(values: Floats, codes: NDArray[np.intp], groups: int) -> _Moments:
    """Mean, standard deviation, and numbers of values that are there and that are not, for each group."""
    each = pd.Series(values).groupby(codes).agg(["mean", "std", "count", "size", "min", "max"]).reindex(range(groups))
    constant = (each["min"] == each["max"]).to_numpy()  # rounding leaves a spread where there is none
    mean = np.where(constant, each["min"], each["mean"])
    deviation = np.where(constant & (each["count"] > 1).to_numpy(), 0.0, each["std"])
    count, size = (each[name].fillna(0).to_numpy(dtype=np.int64) for name in ("count", "size"))
    return _Moments(mean, deviation, count, size - count)


# --- tables of quality --------------------------------------------------------------------------------------------


def quality_table(scored: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    r"""Attribution quality, correctness and faults of every group and mode.

    .. math:: \bar M = \frac{1}{|Q|} \sum_{q \in Q} M^q

    ``by``: Further columns to group by, such as the model. Returns: Sorted by group, modes in the order of `MODES`,
    then mixed ones: by, ``relevant_author, nonrelevant_author, mode, answers``; means over answers ``precision,
    recall, exact_match`` (0 to 1), ``cited, cited_relevant`` (documents an answer); ``with_gold``, the answers that
    exact match is a mean of (it is NaN for none); and totals ``uncited`` (answers), ``out_of_range, repeated,
    malformed``.

    thesis, Tables 5.1, 5.4 and 5.11 to 5.15.
    """
    table = _grouped(scored, by, _SCORES)
    keys = [*by, *_PAIR, "mode"]
    means = ["precision", "recall", "exact_match", "cited", "cited_relevant"]
    totals = ["uncited", "out_of_range", "repeated", "malformed"]
    groups = table.groupby(keys, sort=True, observed=True)
    counts = pd.DataFrame({"answers": groups.size(), "with_gold": groups["exact_match"].count()})
    found = counts[["answers"]].join(groups[means].mean()).join(counts[["with_gold"]]).join(groups[totals].sum())
    order = {name: place for place, name in enumerate(_in_order(table["mode"].unique()))}
    return found.reset_index().sort_values(
        keys, key=lambda column: column.map(order) if column.name == "mode" else column, ignore_index=True
    )


def _in_order(modes: Iterable[str]) -> list[str]:
    """Plain modes as `MODES` has them, then mixed ones by name."""
    return sorted(modes, key=lambda mode: (MODES.index(mode) if mode in MODES else len(MODES), mode))


def compare_modes(
    scored: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    measures: Sequence[str] = ("precision", "recall"),
    resamples: int = 9999,
    rng: np.random.Generator,
) -> pd.DataFrame:
    r"""Paired comparison of every two modes of a group, over the questions that both answer.

    .. math:: \Delta = \frac{1}{|Q|} \sum_{q \in Q} (M^q_{X} - M^q_{Y})

    ``by``: Further columns to group by. ``measures``: Columns of scores. ``resamples``: Random exchanges of the
    randomisation test. ``rng``: one seed is drawn from it, as in `bias_table`. Returns: Sorted by group, each pair
    once in the order of `MODES`: by, ``relevant_author, nonrelevant_author, measure, mode, against, questions,
    left_out, difference`` (of mode from against, in the unit of the score), ``t, p_t, p_permutation``, two-sided
    and not corrected for the number of comparisons. NaN as in `bias_table`.

    thesis, Tables 5.1, 5.4, 5.11: a mark says that a mode is significantly better than the others (paired t-test, p
    below 0.05, section 5.5).
    """
    table = _grouped(scored, by, measures)
    seed = int(rng.integers(2**63))
    rows: list[tuple[Any, ...]] = []
    for group, answers in table.groupby([*by, *_PAIR], sort=True, observed=True):
        modes = {str(mode): part.set_index("question") for mode, part in answers.groupby("mode")}
        for measure in measures:
            for first, second in combinations(_in_order(modes), 2):
                a, b, left_out = _common(modes[first][measure], modes[second][measure])
                difference = float((a - b).mean()) if len(a) else np.nan
                tests = _paired(a, b, resamples, seed)
                rows.append((*group, measure, first, second, len(a), left_out, difference, *tests))
    names = ["measure", "mode", "against", "questions", "left_out", "difference", "t", "p_t", "p_permutation"]
    return pd.DataFrame(rows, columns=[*by, *_PAIR, *names])


def position_bias(
    scored: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    position: str | None = None,
    measures: Sequence[str] = ("precision", "recall"),
    level: float = 0.95,
    resamples: int = 9999,
    rng: np.random.Generator,
) -> pd.DataFrame:
    r"""Scores by the position of the relevant document among those shown.

    .. math:: M(j) = \frac{1}{|Q_j|} \sum_{q \in Q_j} \bar M^q, \quad Q_j = \{q : \text{relevant document at } j\}

    with the mean over the answers to a question first, since these are not independent.

    ``by``: Columns to group by, such as the mode. ``position``: Column of the position; without it, the number of
    the relevant document, of which there must be one. ``measures``: Columns of scores, without gaps. ``level``,
    ``resamples``: of the bootstrap percentile interval over questions. ``rng``: one seed is drawn from it, as in
    `bias_table`. Returns: Sorted: by, ``position, measure, questions, answers, value, low, high`` (0 to 1); the
    interval is NaN for fewer than two questions.

    Beyond the thesis, which puts the relevant document at random (section 5.D).
    """
    _need(scored, (*by, "question", *measures, "relevant" if position is None else position))
    seed = int(rng.integers(2**63))
    if position is None:
        rows, numbers = _ragged(scored["relevant"], "relevant")
        if len(numbers) != len(scored) or (rows != np.arange(len(scored))).any():
            raise ValueError("one relevant document an answer is wanted; name the column of the position")
        places = numbers
    else:
        places = scored[position].to_numpy()
    values = scored[list(measures)].to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{', '.join(measures)}: every score must be finite")
    long = scored[[*by, "question", *measures]].assign(position=places)
    found: list[tuple[Any, ...]] = []
    for group, part in long.groupby([*by, "position"], sort=True, observed=True):
        questions = part.groupby("question", sort=True)[list(measures)].mean()
        for measure in measures:
            each = questions[measure].to_numpy(dtype=np.float64)
            interval = _interval(each, level, resamples, seed)
            found.append((*group, measure, len(each), len(part), float(each.mean()), *interval))
    names = ["position", "measure", "questions", "answers", "value", "low", "high"]
    return pd.DataFrame(found, columns=[*by, *names])


# --- everything in one table --------------------------------------------------------------------------------------

_TIDY = (
    *("run", *_PAIR, "mode", "against", "measure", "value", "low", "high"),
    *("t", "p_t", "p_permutation", "count", "left_out"),
)


def score_attribution(
    answers: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    run: str = "",
    authors: tuple[str, str] = AUTHORS,
    out_of_range: OutOfRange = "wrong",
    match: Match = "substring",
    citation_marks: CitationMarks = "removed",
    level: float = 0.95,
    resamples: int = 9999,
    rng: np.random.Generator,
) -> pd.DataFrame:
    r"""Everything about a table of answers: quality of each mode, CAS, CAB and attribution confidence, one row each.

    .. math::
        CAS = \frac{1}{|Q|} \sum_{q \in Q} |M^q_{Informed} - M^q_{Vanilla}|, \quad
        CAB = \frac{\omega}{|Q|} \sum_{q \in Q} (M^q_{Informed} - M^q_{CF-informed})

    ``by``: Further columns to group by, such as the model. ``run``: name of the answers. ``authors``: the two
    authors; a positive CAB says that the first is favoured. Returns: ``run``, by, ``relevant_author,
    nonrelevant_author, mode, against, measure, value, low, high, t, p_t, p_permutation, count, left_out``. The
    measures of a mode: precision, recall, exact_match, cited, cited_relevant (means), uncited, out_of_range,
    repeated, malformed (totals), each with the number of answers behind it as ``count``; AC-relevant and
    AC-nonrelevant, with the citations counted, and as ``left_out`` those without a probability; AC-difference
    between them, with Welch's test. Of a mode against another: CAS-precision, CAS-recall, CAB-precision,
    CAB-recall, with the questions counted and left out; for CAS ``mode`` is the informed one and ``against``
    Vanilla. NaN where a column does not apply.

    thesis, section 5.3.3.
    """
    taken = sorted({*by} & {*_TIDY, "question", "answer", "relevant", "citations", "gold"})
    if taken:
        raise ValueError(f"by lists further columns to group by, of other names than {', '.join(taken)}")
    _need(answers, by)
    scored = score_answers(answers, out_of_range=out_of_range, match=match, citation_marks=citation_marks)
    keys = [*by, *_PAIR, "mode"]
    bias = bias_table(scored, by, authors=authors, level=level, resamples=resamples, rng=rng)
    parts = [_quality_rows(quality_table(scored, by), keys)]
    if "citations" in answers.columns and answers["citations"].notna().any():
        cited = citation_rows(answers.assign(mode=_modes(answers)))
        parts.append(_confidence_rows(attribution_confidence(cited, keys), keys))
    is_cas = bias["quantity"] == "CAS"
    parts.append(
        bias.assign(
            mode=bias["counterfactual_mode"].where(is_cas, bias["base_mode"]),
            against=bias["base_mode"].where(is_cas, bias["counterfactual_mode"]),
            measure=bias["quantity"] + "-" + bias["measure"],
            count=bias["questions"],
        )
    )
    columns = ["run", *by, *_TIDY[1:]]
    whole = pd.concat([part.assign(run=run).reindex(columns=columns) for part in parts if len(part)], ignore_index=True)
    whole["against"] = whole["against"].fillna("").astype("str")
    return whole.assign(left_out=whole["left_out"].fillna(0).astype("int64"), count=whole["count"].astype("int64"))


def _quality_rows(quality: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row for each measure of a mode."""
    names = ["precision", "recall", "exact_match", "cited", "cited_relevant"]
    names += ["uncited", "out_of_range", "repeated", "malformed"]
    order = quality.reset_index(names="place")
    long = order.melt([*keys, "place", "answers", "with_gold"], names, var_name="measure")
    gold = long["measure"] == "exact_match"
    long = long.assign(count=long["with_gold"].where(gold, long["answers"]))
    long = long.assign(left_out=long["answers"] - long["count"])
    return long.sort_values("place", kind="stable", ignore_index=True)


def _confidence_rows(confidence: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row for each side of each group, and one for the difference."""
    shown = confidence[keys]
    sides = [
        shown.assign(
            measure=f"AC-{side}",
            value=confidence[f"{side}_ac"],
            count=confidence[f"{side}_citations"],
            left_out=confidence[f"{side}_missing"],
        )
        for side in ("relevant", "nonrelevant")
    ]
    both = shown.assign(
        measure="AC-difference",
        value=confidence["relevant_ac"] - confidence["nonrelevant_ac"],
        t=confidence["t"],
        p_t=confidence["p"],
        count=sides[0]["count"] + sides[1]["count"],
        left_out=sides[0]["left_out"] + sides[1]["left_out"],
    )
    return pd.concat([*sides, both]).sort_index(kind="stable")
