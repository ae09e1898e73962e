"""How well an answer cites its documents, and how that changes with the named authors.

An answer to a question is written from k numbered documents, of which some are relevant, and cites
them by numbers in square brackets. `score_answers` returns precision and recall of its citations.
The same question is answered in several modes (`equipoise.answer_modes`): `cas` measures how far
naming the authors moves the scores, `cab` in whose favour, and `bias_table` both for a table of
answers, with intervals and tests. `attribution_confidence` compares the probabilities of citations
of relevant and other documents. `score_attribution` puts all into one table.

All scores lie between 0 and 1; the thesis publishes them times 100.

References
----------
thesis: Abolghasemi, chapter 5. Rajpurkar et al. (2016), SQuAD, for the normalisation of answers.
"""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy  # which loads scipy.stats, a second of imports, at its first use
from numpy.typing import ArrayLike

from equipoise import options as opt
from equipoise.answer_modes import in_order, mode_name
from equipoise.arrays import Floats
from equipoise.coverage import Seen, first, judge
from equipoise.declared import Scale, checked
from equipoise.errors import Note, listed, need_columns
from equipoise.measures.citations import (
    RESERVED,
    citations,
    declared,
    in_brackets,
    note_styles,
    without_citations,
)
from equipoise.options import Favoured, Level, Resamples, Seed
from equipoise.statistics.intervals import intervals_of_means
from equipoise.statistics.pairs import exchanged, paired_t
from equipoise.statistics.unknown import verdict

AUTHORS_OF = ("relevant_author", "nonrelevant_author")
MEANS = ("precision", "recall", "exact_match", "cited", "cited_relevant")
TOTALS = ("uncited", "out_of_range", "repeated", "malformed")

# What each quantity compares: a mode minus another.
_OF_TWO_AUTHORS = (("CAS", "Informed", "Vanilla"), ("CAB", "Informed", "CF-informed"))
_OF_ONE_AUTHOR = (
    ("CAS", "Informed", "Vanilla"),
    ("CAS", "Informed/CF-informed", "Vanilla"),
    ("CAS", "CF-informed/Informed", "Vanilla"),
    ("CAB", "Informed/CF-informed", "CF-informed/Informed"),
)


# --- answers by themselves ------------------------------------------------------------------------


def normalised_answer(text: str) -> str:
    """Normalise a text as SQuAD compares answers (Rajpurkar et al. 2016).

    Lower case; no ASCII punctuation, articles, or long blanks.
    """
    plain = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", plain).split())


@declared(
    "Exact match",
    range="0 or 1",
    ideal="1",
    direction="higher is better",
    sources=("thesis-ch5", "thesis", "rajpurkar2016"),
    names={"exact_match": None},
)
def exact_match(answer: str, gold: Sequence[str]) -> bool:
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
        nothing. It may begin and end within a word, as "art" in "party".

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
    """
    if isinstance(gold, str) or not len(gold):
        raise ValueError("gold must be a list of at least one answer")
    text = normalised_answer(without_citations(answer))
    normalised = map(normalised_answer, gold)
    return any(answer and answer in text for answer in normalised)


def _is_list(value: Any) -> bool:
    """Return whether there is a list with something in it; a missing one may be None or NaN."""
    return value is not None and not isinstance(value, float) and len(value) > 0


def _checked_relevant(relevant: Any, documents: int | None, question: Any) -> set[int]:
    """Return the relevant documents of an answer: at least one, each once, among those shown."""
    numbers = list(relevant) if _is_list(relevant) else []
    most = float("inf") if documents is None else documents
    is_number = [type(n) is not bool and n == int(n) and 1 <= n <= most for n in numbers]
    if not numbers or len(set(numbers)) < len(numbers) or not all(is_number):
        raise ValueError(
            f"relevant must have at least one document of question {question!r}, each once,"
            f" numbered from 1 to the number of documents, got {numbers}"
        )
    return set(numbers)


def _numbers_of_documents(answers: pd.DataFrame) -> list[int | None]:
    """Return how many documents each answer had; None where the table does not say it."""
    if "documents" not in answers.columns:
        return [None] * len(answers)
    documents = answers["documents"].to_numpy(dtype=np.float64, na_value=np.nan)
    if not ((documents >= 1) & (documents == np.floor(documents))).all():
        raise ValueError("documents must be whole numbers from 1")
    return documents.astype(np.int64).tolist()


@declared(
    "Precision and recall of attribution",
    range="0 to 1",
    ideal="1",
    direction="higher is better",
    names=dict.fromkeys(["precision", "recall"])
    | dict.fromkeys(["cited", "cited_relevant"], Scale("from 0, no bound", "none", "neither"))
    | dict.fromkeys(TOTALS, Scale("from 0, no bound", "0", "lower is better")),
)
def score_answers(answers: pd.DataFrame) -> pd.DataFrame:
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
        raise ValueError(f"columns {listed(overwritten)} would be overwritten; rename them")
    golds = answers["gold"] if "gold" in answers.columns else [None] * len(answers)
    columns = (answers["question"], answers["answer"], answers["relevant"], golds)
    rows = []
    for question, text, relevant, gold, documents in zip(
        *columns, _numbers_of_documents(answers), strict=True
    ):
        if not isinstance(text, str):
            raise ValueError(f"answer must be a text, got {text!r} for question {question!r}")
        read = citations(text, documents)
        relevant_documents = _checked_relevant(relevant, documents, question)
        hits = len(relevant_documents.intersection(read.cited))
        rows.append(
            {
                "precision": hits / len(read.cited) if read.cited else 0.0,
                "recall": hits / len(relevant_documents),
                "cited": len(read.cited),
                "cited_relevant": hits,
                "out_of_range": len(read.out_of_range),
                "repeated": read.repeated,
                "malformed": read.malformed,
                "uncited": not read.cited and not read.out_of_range,
                "exact_match": float(exact_match(text, gold)) if _is_list(gold) else np.nan,
            }
        )
    columns_of_scores = ["precision", "recall", *MEANS[3:], *TOTALS[1:], "uncited", "exact_match"]
    scores = pd.DataFrame(rows, answers.index, columns_of_scores)
    return answers.assign(**scores.to_dict("series"))


def citation_rows(answers: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each citation whose probability was recorded.

    ``answers`` has the columns ``question``, ``relevant`` (the numbers of the relevant documents)
    and ``citations``. Citations of an answer are a list of mappings with ``document`` and
    ``probability`` (None where it is not known), or None. The column ``documents``, how many were
    shown, is optional. Returns the other
    columns of the answer without its text and gold answers, then ``document``, ``relevant`` (bool)
    and ``probability`` (NaN where it is not known), in the order of the answers. Every mention
    counts; documents that were not shown are left out, and a note says how many.

    thesis, Eq. 5.4: the sets C_q.
    """
    need_columns(answers, ("question", "relevant", "citations"))
    kept, rows, n_other = [], [], 0
    columns = (answers["question"], answers["citations"], answers["relevant"])
    for place, (question, cited, relevant, documents) in enumerate(
        zip(*columns, _numbers_of_documents(answers), strict=True)
    ):
        relevant_documents = _checked_relevant(relevant, documents, question)
        for citation in cited if _is_list(cited) else ():
            number = citation["document"]
            if number < 1 or (documents is not None and number > documents):
                n_other += 1
                continue
            kept.append(place)
            rows.append((number, number in relevant_documents, citation.get("probability")))
    if n_other:
        message = (
            f"{n_other} of {n_other + len(rows)} citations with a probability name no document"
        )
        warnings.warn(f"{message} that was shown: left out of AC", Note, 3)
    others = answers.drop(columns=["relevant", "citations", "answer", "gold"], errors="ignore")
    cited_rows = pd.DataFrame(rows, columns=["document", "relevant", "probability"])
    cited_rows = cited_rows.astype({"relevant": "bool", "probability": "float64"})
    return others.iloc[kept].reset_index(drop=True).join(cited_rows)


@declared(
    "AC",
    range="0 to 1",
    ideal="none",
    direction="neither",
    names=dict.fromkeys(["AC-relevant", "AC-nonrelevant"])
    | {"AC-difference": Scale("-1 to 1", "none", "neither")},
)
def attribution_confidence(cited: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    r"""Attribution confidence: mean probability of citations of relevant and other documents.

    .. math:: AC(S) = \frac{\sum_{q \in Q} \sum_{c_i \in C_q} p(c_i | q, D_q) [c_i \in S]}
        {\sum_{q \in Q} \sum_{c_i \in C_q} [c_i \in S]}

    - :math:`S`: the documents asked about: the relevant ones, or the others
    - :math:`q, Q`: a question, and all of them
    - :math:`c_i, C_q`: a citation, and those of the answer to q
    - :math:`D_q`: the documents given with q
    - :math:`p(c_i | q, D_q)`: probability that the model gave the number of the cited document

    Parameters
    ----------
    cited : DataFrame
        One row for each citation, as `citation_rows` gives it: ``relevant`` (bool) and
        ``probability`` (0 to 1, NaN where it is not known).
    by : sequence of str
        Columns to group by, such as the mode.

    Returns
    -------
    DataFrame
        Sorted by group: by, ``relevant_ac, nonrelevant_ac`` (0 to 1), ``relevant_citations,
        nonrelevant_citations`` (with a probability), ``relevant_missing, nonrelevant_missing``
        (without one; they do not enter), ``t, p`` of Welch's test between the two. NaN where there
        is nothing to average, and where a test has fewer than two citations on a side.

    Raises
    ------
    ValueError
        If a column is missing, a probability lies outside 0 to 1, or it is not said of a citation
        whether its document is relevant.

    Notes
    -----
    thesis, Eq. 5.4; Tables 5.6 and 5.10. The thesis does not name its test between the two;
    citations of relevant and of non-relevant documents do not come in pairs, hence Welch's unpaired
    test, which takes citations of one answer as independent.

    Examples
    --------
    >>> probability = [1, 0.5, 0.5, 0.25, np.nan]
    >>> cited = pd.DataFrame({"relevant": [1, 1, 0, 0, 0], "probability": probability})
    >>> columns = ["relevant_ac", "nonrelevant_ac", "nonrelevant_missing", "p"]
    >>> attribution_confidence(cited)[columns].round(3)
       relevant_ac  nonrelevant_ac  nonrelevant_missing     p
    0         0.75           0.375                    1  0.35
    """
    need_columns(cited, (*by, "relevant", "probability"))
    if not cited["probability"].dropna().between(0, 1).all():
        raise ValueError("probability must be between 0 and 1")
    if cited["relevant"].isna().any():
        raise ValueError("relevant must be true or false for every citation")
    side = np.where(cited["relevant"].astype(bool), "relevant", "nonrelevant")
    # Without groups, one column with a single value replaces them.
    groups = cited[list(by)].assign(all="") if not by else cited[list(by)]
    keys = list(groups.columns)
    table = groups.assign(side=side, probability=cited["probability"].astype(np.float64))
    by_side = table.groupby([*keys, "side"], sort=True, observed=True, dropna=False)["probability"]
    summary = by_side.agg(["mean", "std", "count", "size", "min", "max"])
    # Rounding leaves a spread where all are equal; the spread of one value stays NaN.
    is_constant = (summary["min"] == summary["max"]) & summary["std"].notna()
    summary["std"] = summary["std"].mask(is_constant, 0.0)
    summary["missing"] = summary["size"] - summary["count"]
    wide = summary.unstack("side")  # noqa: PD010 - each side is there once
    sides = pd.MultiIndex.from_product(
        [["mean", "std", "count", "missing"], ["relevant", "nonrelevant"]]
    )
    wide = wide.reindex(columns=sides)
    if not by:  # also of no citation
        wide = wide.reindex(pd.Index([""], name="all"))
    counts = {"count": 0, "missing": 0}
    relevant, other = (
        wide.xs(side, axis=1, level=1).fillna(counts).astype(dict.fromkeys(counts, "int64"))
        for side in ("relevant", "nonrelevant")
    )
    t, p = scipy.stats.ttest_ind_from_stats(
        *(relevant[name].to_numpy() for name in ("mean", "std", "count")),
        *(other[name].to_numpy() for name in ("mean", "std", "count")),
        equal_var=False,
    )
    # Equal means do not differ, even where neither side has a spread to divide by.
    same = (relevant["mean"] == other["mean"]) & relevant["std"].notna() & other["std"].notna()
    confidence = pd.DataFrame(
        {
            "relevant_ac": relevant["mean"],
            "nonrelevant_ac": other["mean"],
            "relevant_citations": relevant["count"],
            "nonrelevant_citations": other["count"],
            "relevant_missing": relevant["missing"],
            "nonrelevant_missing": other["missing"],
            "t": np.where(same, 0.0, t),
            "p": np.where(same, 1.0, p),
        }
    ).reset_index()
    return confidence if by else confidence.drop(columns="all")


# --- answers in several modes ---------------------------------------------------------------------


def _scores(first_mode: ArrayLike, second_mode: ArrayLike) -> tuple[Floats, Floats]:
    """Return scores of the same questions in two modes, checked and broadcast."""
    a = np.asarray(first_mode, dtype=np.float64)
    b = np.asarray(second_mode, dtype=np.float64)
    a, b = np.broadcast_arrays(a, b)
    if not a.ndim or not a.size or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("scores must be those of at least one question in both modes, all finite")
    return a, b


@declared(
    "CAS",
    range="0 to 1",
    ideal="0",
    direction="lower is better",
    names=dict.fromkeys(["CAS-precision", "CAS-recall"]),
)
def cas(informed: ArrayLike, vanilla: ArrayLike) -> Floats:
    r"""Counterfactually-estimated attribution sensitivity: how far naming authors moves a score.

    .. math:: CAS(Q) = \frac{1}{|Q|} \sum_{q \in Q} |M^q_{Informed} - M^q_{Vanilla}|

    - :math:`q, Q`: a question, and all of them
    - :math:`M^q_{Informed}, M^q_{Vanilla}`: precision or recall of the answer with the true
      authors named, and with none named

    Parameters
    ----------
    informed, vanilla : array_like, shaped (..., questions)
        A score of the same questions in the two modes, such as precision; they broadcast.

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
    mean: Floats = np.abs(a - b).mean(axis=-1)
    return mean


@declared(
    "CAB",
    range="-1 to 1",
    ideal="0",
    direction="neither",
    names=dict.fromkeys(["CAB-precision", "CAB-recall"]),
)
def cab(informed: ArrayLike, cf_informed: ArrayLike, relevant_label: ArrayLike) -> Floats:
    r"""Counterfactually-estimated attribution bias: whose label makes documents be cited better.

    .. math::
        CAB(Q) = \frac{\omega}{|Q|} \sum_{q \in Q} (M^q_{Informed} - M^q_{CF-informed}), \quad
        \omega = \begin{cases} 1, & L_f(R) = \text{Human}, L_f(N) = \text{LLM} \\
        -1, & \text{otherwise} \end{cases}

    - :math:`q, Q`: a question, and all of them
    - :math:`M^q_{Informed}, M^q_{CF-informed}`: precision or recall of the answer with the true
      authors named, and with the other ones named
    - :math:`\omega`: the sign, so that a value above 0 favours people
    - :math:`L_f(R), L_f(N)`: the true author of the relevant and of the other documents: Human
      or LLM

    For documents of one author the two terms are the mixed modes Informed/CF-informed and
    CF-informed/Informed.

    Parameters
    ----------
    informed, cf_informed : array_like, shaped (..., questions)
        A score of the same questions, in the mode of the first term and with all labels exchanged;
        they broadcast.
    relevant_label : array_like of str, shaped (...)
        Author that the relevant documents are labelled with in the first term, Human or LLM; the
        non-relevant ones have the other label. It broadcasts with the result.

    Returns
    -------
    ndarray, shaped (...)
        In the unit of the score: from -1 (fully biased to LLM) to 1 (to Human) for precision and
        recall.

    Raises
    ------
    ValueError
        If there is no question, a score is not finite, or a label is neither Human nor LLM.

    Notes
    -----
    thesis, Eqs. 5.2, 5.3 and 5.5; printed times 100.

    Examples
    --------
    >>> cab([1.0, 0.5], [0.5, 0.5], "Human"), cab([0.5, 0.5], [1.0, 0.5], "LLM")
    (np.float64(0.25), np.float64(0.25))
    """
    a, b = _scores(informed, cf_informed)
    labels = np.asarray(relevant_label).astype(str)
    if not np.isin(labels, ["Human", "LLM"]).all():
        raise ValueError(f"relevant_label must be Human or LLM, got {relevant_label!r}")
    omega = np.where(labels == "Human", 1.0, -1.0)
    bias: Floats = omega * (a - b).mean(axis=-1)
    return bias[()]


def _each_answer_once(
    scored: pd.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> pd.DataFrame:
    """Return the table with one name for each mode; within ``by`` each answer must be unique."""
    keys = [*by, *AUTHORS_OF, "mode", "question"]
    need_columns(scored, (*keys, *measures))
    if scored.empty or scored[keys].isna().to_numpy().any():
        raise ValueError(f"needs at least one answer; every answer must have {listed(keys)}")
    names = {mode: mode_name(mode) for mode in scored["mode"].unique()}
    table = scored.assign(mode=scored["mode"].map(names))
    is_repeated = table.duplicated(keys)
    if is_repeated.any():
        example = table.loc[is_repeated, keys].iloc[0]
        words = ", ".join(f"{name} {value}" for name, value in example.items())
        raise ValueError(
            f"{is_repeated.sum()} answers occur twice, the first of {words}; set `by` to the column"
            " that distinguishes them"
        )
    return table


def quality_table(scored: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Return means and totals of every group and mode (thesis, Tables 5.1, 5.4, 5.11 to 5.15).

    Columns, sorted by group, modes in the order of `MODES`, then mixed ones: by, ``relevant_author,
    nonrelevant_author, mode, answers``, means over answers, ``with_gold`` (the answers that exact
    match is a mean of), totals.
    """
    table = _each_answer_once(scored, by, (*MEANS, *TOTALS))
    table["mode"] = pd.Categorical(table["mode"], in_order(table["mode"].unique()), ordered=True)
    groups = table.groupby([*by, *AUTHORS_OF, "mode"], sort=True, observed=True)
    quality = groups.size().to_frame("answers")
    quality = quality.join(groups[list(MEANS)].mean())
    quality["with_gold"] = groups["exact_match"].count()
    quality = quality.join(groups[list(TOTALS)].sum())
    return quality.reset_index().astype({"mode": "str"})


def _tests(gaps: Floats, seed: int, resamples: int) -> tuple[float, float, float]:
    """Return t and its p, and p of the randomisation test; NaN for fewer than two questions."""
    if len(gaps) < 2:
        return np.nan, np.nan, np.nan
    _, _, t, p = paired_t(gaps[:, np.newaxis])
    # Exchanging equal scores changes nothing: without them more tests are exact.
    changed = gaps[gaps != 0]
    p_permutation = 1.0  # also of one difference, whose two signs are equally extreme
    if len(changed) > 1:
        rng = np.random.default_rng(seed)
        pair = np.column_stack([changed, np.zeros_like(changed)])
        p_exchanged, _, _ = exchanged(pair, np.array([0]), np.array([1]), rng, resamples)
        p_permutation = float(p_exchanged[0])
    return float(t[0]), float(p[0]), p_permutation


@checked
def bias_table(
    scored: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    measures: Sequence[str] = ("precision", "recall"),
    favoured: Favoured = "Human",
    level: Level = 0.95,
    resamples: Resamples = 9999,
    seed: Seed = 0,
) -> pd.DataFrame:
    r"""CAS and CAB of every group of answers, with bootstrap intervals and paired tests.

    .. math::
        CAS = \frac{1}{|Q|} \sum_{q \in Q} |M^q_{Informed} - M^q_{Vanilla}|, \quad
        CAB = \frac{\omega}{|Q|} \sum_{q \in Q} (M^q_{Informed} - M^q_{CF-informed})

    Where relevant and non-relevant documents have different authors, CAS compares Informed with
    Vanilla and CAB Informed with CF-informed. Where they have the same author, CAB compares
    Informed/CF-informed with CF-informed/Informed, and CAS each of these two, and Informed, with
    Vanilla; Informed and CF-informed then give all documents one label and have no CAB. A
    comparison is there where both its modes are.

    ``by``: further columns to group by, such as the model. ``measures``: columns of scores. Every
    comparison begins with one seed, drawn from ``seed``: a row does not depend on the other groups.
    Returns, sorted by group: by, ``relevant_author, nonrelevant_author, measure, quantity`` ("CAS"
    or "CAB"), ``mode, against`` (what the difference is of), ``questions`` (answered in both
    modes), ``left_out`` (answered in one of them, or without a score), ``changed`` (questions whose
    score differs), ``value, low, high`` (0 to 1, CAB from -1; percentile interval of the bootstrap
    over questions), ``t, p_t`` (paired t-test), ``p_permutation`` (paired randomisation test,
    two-sided). Intervals and tests are NaN for fewer than two questions, the value for none.

    thesis, Eqs. 5.1 to 5.3 and 5.5; Tables 5.2, 5.3, 5.5 and 5.7 to 5.9. The tests are of the
    signed difference, with the sign of t: for CAB that of CAB; for CAS that of Informed minus
    Vanilla. The thesis does not say what the mark of a CAS rests on; a mean of absolute differences
    can only be tested against 0 by way of the signed ones. It can be large where these cancel out,
    and p is then large too.

    Where few questions change, look at ``changed`` and not at the interval: the bootstrap only
    draws what it has seen, and its interval has no width where no question changed.
    """
    table = _each_answer_once(scored, by, measures)
    authors = set(table[list(AUTHORS_OF)].to_numpy().ravel())
    if len(authors - {favoured}) > 1:
        raise ValueError(f"favoured must be {' or '.join(sorted(authors))}, got {favoured!r}")
    # Each comparison begins with this one seed: a row does not depend on the other groups.
    start = int(np.random.default_rng(seed).integers(2**63))
    rows: list[dict[str, Any]] = []
    differences: list[Floats] = []  # of each row, those of its questions
    for key, answers in table.groupby([*by, *AUTHORS_OF], sort=True, observed=True):
        group = dict(zip([*by, *AUTHORS_OF], key, strict=True))
        is_one_author = group["relevant_author"] == group["nonrelevant_author"]
        for measure in measures:
            wide = answers.pivot(index="question", columns="mode", values=measure)  # noqa: PD010
            wide = wide.sort_index()
            for quantity, mode, against in _OF_ONE_AUTHOR if is_one_author else _OF_TWO_AUTHORS:
                if not {mode, against} <= set(wide.columns):
                    continue
                in_both = wide[[mode, against]].dropna()
                gaps = (in_both[mode] - in_both[against]).to_numpy(dtype=np.float64)
                is_against = quantity == "CAB" and group["relevant_author"] != favoured
                omega = -1.0 if is_against else 1.0
                difference = np.abs(gaps) if quantity == "CAS" else omega * gaps
                differences.append(difference + 0.0)  # no negative zero
                asked = answers.loc[answers["mode"].isin([mode, against]), "question"].nunique()
                t, p_t, p_permutation = _tests(gaps, start, resamples)
                rows.append(
                    group
                    | {"measure": measure, "quantity": quantity, "mode": mode, "against": against}
                    | {"questions": len(gaps), "left_out": asked - len(gaps)}
                    | {"changed": np.count_nonzero(gaps)}
                    | {"value": differences[-1].mean() if len(gaps) else np.nan}
                    | {"t": omega * t, "p_t": p_t, "p_permutation": p_permutation}
                )
    columns = [*by, *AUTHORS_OF, "measure", "quantity", "mode", "against", "questions", "left_out"]
    columns += ["changed", "value", "low", "high", "t", "p_t", "p_permutation"]
    ends = intervals_of_means(differences, start, level=level, resamples=resamples)
    return pd.DataFrame(rows, columns=columns).assign(low=ends[:, 0], high=ends[:, 1])


# --- everything in one table ----------------------------------------------------------------------


@checked
def score_attribution(
    answers: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    run: str = "",
    citation_style: opt.CitationStyle = "auto",
    first_number: opt.FirstNumber = "auto",
    favoured: opt.Favoured = "Human",
    level: opt.Level = 0.95,
    resamples: opt.Resamples = 9999,
    seed: opt.Seed = 0,
) -> pd.DataFrame:
    r"""Score the quality of each mode, CAS, CAB and attribution confidence, one row each.

    ``answers`` are those of `score_answers`, with ``mode, relevant_author, nonrelevant_author``.
    The column ``not_read``, true for answers that are counted but not scored, is optional. ``by``
    are further columns to group by, such as the model, and ``run`` names the answers. Returns
    ``run``, an empty ``topic`` (every row is a mean or a total over questions), by,
    ``relevant_author, nonrelevant_author, mode, against, measure, value, low, high, t, p_t,
    p_permutation, count, left_out, read``.

    A mode has means with bootstrap intervals over questions (precision, recall, exact_match, cited,
    cited_relevant) and totals (uncited, out_of_range, repeated, malformed), with the number of
    answers as ``count``. AC-relevant and AC-nonrelevant have intervals over citations; ``count``
    are the citations, and ``left_out`` those without a probability. AC-difference has Welch's test.
    A mode against another has CAS-precision, CAS-recall, CAB-precision, CAB-recall, with the
    questions counted and left out. A mean of absolute differences is above 0 as soon as one answer
    changes: CAS has no test. ``read``: share of the answers, or of the questions in both modes,
    that cite a document shown. NaN where a column does not apply. InputError where no answer of a
    group cites a document shown, or no question is answered in two modes that are compared.

    thesis, section 5.3.3.

    >>> modes = ["Vanilla", "Informed"] * 2
    >>> answers = {"question": [*"aabb"], "mode": modes, "answer": ["[1]", "[2]"] * 2}
    >>> answers = pd.DataFrame(answers).assign(relevant=[(1,)] * 4)
    >>> answers = answers.assign(relevant_author="Human", nonrelevant_author="LLM")
    >>> scores = score_attribution(answers).set_index(["mode", "measure"])
    >>> rows = [("Vanilla", "recall"), ("Informed", "CAS-recall")]
    >>> scores.loc[rows, ["against", "value", "count"]]
                         against  value  count
    mode     measure
    Vanilla  recall                 1.0      2
    Informed CAS-recall  Vanilla    1.0      2
    """
    parts = [scored_answers(answers, by, citation_style, first_number)]
    options: Any = {"favoured": favoured, "level": level, "resamples": resamples, "seed": seed}
    return attribution_rows(parts, by, run=run, **options)


def scored_answers(
    answers: pd.DataFrame,
    by: Sequence[str],
    citation_style: str,
    first_number: opt.FirstNumber,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what `attribution_rows` needs of answers, without texts: scores, and citations."""
    if RESERVED.intersection(by):
        raise ValueError(f"by must have columns of other names than {listed(sorted(RESERVED), 40)}")
    keys = [*by, *AUTHORS_OF, "mode"]
    need_columns(answers, [*keys, "question", "answer"])
    without_scores = answers.iloc[:0]
    if "not_read" in answers.columns:
        is_left_out = answers["not_read"].astype("bool")
        without_scores, answers = answers[is_left_out], answers[~is_left_out]
    addresses = answers["addresses"].tolist() if "addresses" in answers.columns else None
    texts, styles = in_brackets(
        answers["answer"].tolist(),
        citation_style,
        _numbers_of_documents(answers),
        addresses,
        first_number,
    )
    if citation_style == "auto":
        note_styles(styles)
    scored = score_answers(answers.assign(answer=texts))
    if len(without_scores):
        # What was not read has no scores, and counts in what was asked.
        scored = pd.concat([scored, without_scores[[*keys, "question"]]], ignore_index=True)
        scored = scored.fillna(dict.fromkeys(TOTALS, 0)).astype(dict.fromkeys(TOTALS, "int64"))
    scored = _each_answer_once(scored, by, (*MEANS, *TOTALS))
    cited = pd.DataFrame(columns=[*keys, "relevant", "probability"])
    if "citations" in answers.columns and answers["citations"].notna().any():
        modes = answers["mode"].map(mode_name)
        cited = citation_rows(answers.assign(mode=modes))[list(cited.columns)]
    return scored[[*keys, "question", *MEANS, *TOTALS]], cited


def attribution_rows(
    parts: Sequence[tuple[pd.DataFrame, pd.DataFrame]],
    by: Sequence[str],
    *,
    run: str,
    favoured: opt.Favoured,
    level: opt.Level,
    resamples: opt.Resamples,
    seed: opt.Seed,
) -> pd.DataFrame:
    """Return the table of `score_attribution` from those of `scored_answers`, one per file."""
    scored = pd.concat([scored for scored, _ in parts], ignore_index=True)
    draws: Any = {"level": level, "resamples": resamples, "seed": seed}
    bias = bias_table(scored, by, favoured=favoured, **draws)
    seen = judge([*_citations_seen(scored, by, run), *_modes_seen(bias)])
    modes = set(scored["mode"])
    for _, mode, against in (_OF_TWO_AUTHORS[-1], _OF_ONE_AUTHOR[-1]):
        if {mode, against} <= modes and not (bias["quantity"] == "CAB").any():
            raise ValueError(
                f"the answers in {mode} and {against} must have the same authors, the actual ones,"
                " as relevant_author and nonrelevant_author: mode is what the model was told"
            )
    quality = _quality_rows(scored, by, **draws)
    keys = [*by, *AUTHORS_OF, "mode"]
    cites = scored.assign(read=scored["cited"] > 0)
    tables = [quality.join(cites.groupby(keys)["read"].mean(), on=keys)]
    bias["read"] = _read_in_both(cites, bias, [*by, *AUTHORS_OF])
    cited = [cited for _, cited in parts if len(cited)]
    if cited:
        tables.append(_confidence_rows(pd.concat(cited), keys, **draws))
    tests = ["t", "p_t", "p_permutation"]
    bias[tests] = bias[tests].mask(bias["quantity"] == "CAS")
    names = bias["quantity"] + "-" + bias["measure"]
    tables.append(bias.assign(measure=names, count=bias["questions"]))

    table = pd.concat([rows for rows in tables if len(rows)], ignore_index=True)
    columns = ["run", "topic", *by, *AUTHORS_OF, "mode", "against", "measure"]
    columns += ["value", "low", "high", *tests, "count", "left_out", "read"]
    # Columns that a measure does not have are NaN.
    table = table.assign(run=run, topic="").reindex(columns=columns)
    table = table.astype({"against": "object"}).fillna({"against": ""})
    table = table.astype({"against": "str", "left_out": "int64", "count": "int64"})
    table.attrs["seen"] = seen
    return table


def _read_in_both(cites: pd.DataFrame, bias: pd.DataFrame, keys: list[str]) -> list[float]:
    """Return for each comparison the share of its questions whose two answers cite a document."""
    # shape (group and question, modes); missing where a mode has no answer
    wide = cites.pivot(index=[*keys, "question"], columns="mode", values="read")  # noqa: PD010
    shares = []
    for row in bias.to_dict("records"):
        answers = wide.loc[tuple(row[key] for key in keys), [row["mode"], row["against"]]]
        asked = answers[answers.notna().any(axis=1)]
        shares.append(float((asked == True).all(axis=1).mean()))  # noqa: E712 - NaN is False
    return shares


def _citations_seen(scored: pd.DataFrame, by: Sequence[str], run: str) -> list[Seen]:
    """Count, for each group, the answers that cite a document that was shown."""
    seen = []
    for name, answers in scored.groupby(list(by), sort=False) if by else [((), scored)]:
        cites = answers["cited"] > 0
        place = " ".join(map(str, name)) or run or "the answers"
        needed = "a citation of a document shown"
        without = first(answers.loc[~cites, "question"])
        seen.append(Seen(place, "answers", needed, int(cites.sum()), len(answers), without))
    return seen


def _modes_seen(bias: pd.DataFrame) -> list[Seen]:
    """Count, for each comparison, the questions that were answered in both modes."""
    columns = ["mode", "against", "questions", "left_out"]
    comparisons = bias.drop_duplicates([*columns, *AUTHORS_OF])[columns]
    return [
        Seen(
            f"{mode} against {against}",
            "questions",
            "an answer in both modes",
            questions,
            questions + left_out,
        )
        for mode, against, questions, left_out in comparisons.itertuples(index=False, name=None)
    ]


def _quality_rows(scored: pd.DataFrame, by: Sequence[str], **draws: Any) -> pd.DataFrame:
    """Return one row for each mean of a mode, with its interval over questions, and each total."""
    keys = [*by, *AUTHORS_OF, "mode"]
    rows = quality_table(scored, by).melt(
        [*keys, "answers", "with_gold"], [*MEANS, *TOTALS], "measure", ignore_index=False
    )
    rows = rows.sort_index(kind="stable")  # the measures of a mode next to each other
    n_scored = rows[keys].join(scored.groupby(keys)["precision"].count(), on=keys)["precision"]
    count = rows["with_gold"].where(rows["measure"] == "exact_match", n_scored)
    rows = rows.assign(count=count, left_out=rows["answers"] - count)
    # In order of questions: the bootstrap resamples positions, and the rows may come in any order.
    values = {}
    for group, answers in scored.sort_values("question").groupby(keys):
        for name in MEANS:
            values[(*group, name)] = answers[name].dropna()
    return rows.join(_intervals(values, keys, **draws), on=[*keys, "measure"])


def _intervals(
    values: Mapping[tuple[Any, ...], pd.Series], keys: list[str], *, seed: int, **draws: Any
) -> pd.DataFrame:
    """Return bootstrap intervals of means: columns low and high, by keys and measure."""
    ends = intervals_of_means(list(values.values()), seed, **draws)
    index = pd.MultiIndex.from_tuples(list(values), names=[*keys, "measure"])
    return pd.DataFrame(ends, index, ["low", "high"])


def _confidence_rows(cited: pd.DataFrame, keys: list[str], **draws: Any) -> pd.DataFrame:
    """Return a row for each side of each group, with an interval over citations, and a test."""
    cited = cited.astype({"relevant": "bool", "probability": "float64"})
    confidence = attribution_confidence(cited, keys)
    sides = {}
    for side in ("relevant", "nonrelevant"):
        columns = confidence[[f"{side}_ac", f"{side}_citations", f"{side}_missing"]]
        sides[side] = columns.set_axis(["value", "count", "left_out"], axis=1)
    # The difference of means has no interval here, but a test.
    sides["difference"] = (sides["relevant"] + sides["nonrelevant"]).assign(
        value=sides["relevant"]["value"] - sides["nonrelevant"]["value"],
        t=confidence["t"],
        p_t=confidence["p"],
    )
    tables = [
        confidence[keys].join(table).assign(measure=f"AC-{side}") for side, table in sides.items()
    ]
    rows = pd.concat(tables).sort_index(kind="stable")
    values = {}
    for (*group, is_relevant), side_rows in cited.groupby([*keys, "relevant"]):
        name = "AC-relevant" if is_relevant else "AC-nonrelevant"
        # Sorted, as citations have no ids: the bootstrap resamples places.
        values[(*group, name)] = side_rows["probability"].dropna().sort_values()
    return rows.join(_intervals(values, keys, **draws), on=[*keys, "measure"])


# --- sentences ------------------------------------------------------------------------------------


def bias_rows(scores: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Return the rows of CAB of `score_attribution`, with a name in the column ``what``."""
    rows = scores[scores["measure"].str.startswith("CAB-")].reset_index(drop=True)
    varying = [name for name in (*by, *AUTHORS_OF) if len(set(rows[name])) > 1]
    labels = []
    for row in rows.to_dict("records"):
        words = []
        for name in varying:
            role = f"{name.removesuffix('_author')} " if name in AUTHORS_OF else ""
            words.append(f"{role}{row[name]}")
        labels.append(row["measure"] + (f" ({', '.join(words)})" if words else ""))
    return rows.assign(what=labels)


@checked
def verdicts(
    scores: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    favoured: Favoured = "Human",
    difference: opt.Difference = 0.05,
    level: Level = 0.95,
) -> list[str]:
    """Return one sentence per CAB of `score_attribution`: its verdict, or the required sample size.

    ``favoured`` and ``level`` are those of the table. ``difference`` is the bias that the required
    number of questions detects with 80% power.

    >>> row = {"measure": "CAB-precision", "relevant_author": "Human", "nonrelevant_author": "LLM"}
    >>> numbers = {"value": [0.038], "low": -0.05, "high": 0.13, "count": 60, "read": 1.0}
    >>> print(*verdicts(pd.DataFrame(numbers | row)))
    CAB-precision +3.8 points for Human [−5.0, 13.0], n = 60, 100% read: inconclusive;
    80% power for 5 points needs n = 398
    """
    outcomes = f"favours {favoured}", f"disfavours {favoured}"
    sentences = []
    for row in bias_rows(scores, by).to_dict("records"):
        unit = f"points for {favoured}"
        decided = verdict(row, difference, level, outcomes, unit)
        sentences.append(f"{row['what']} {decided}")
    return sentences
