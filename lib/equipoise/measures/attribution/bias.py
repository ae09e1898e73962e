"""How far naming the authors moves a score (CAS), and in whose favour (CAB)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.answer_modes import mode_name
from equipoise.arrays import Floats, Integers
from equipoise.declare import checked
from equipoise.measures.attribution.correctness import declared
from equipoise.options import Authors, Favoured, Level, Resamples, Seed
from equipoise.problems import Note, listed, need_columns, refused
from equipoise.statistics.intervals import bootstrap_intervals
from equipoise.statistics.pairs import exchanged, paired_t

AUTHORS = ("Human", "LLM")
"""The two authors of the thesis; CAB is positive where the first is favoured."""


class _Comparison(NamedTuple):
    """A quantity, and the two modes that it is the difference of."""

    quantity: str
    mode: str
    against: str


_OF_TWO_AUTHORS = (
    _Comparison("CAS", "Informed", "Vanilla"),
    _Comparison("CAB", "Informed", "CF-informed"),
)
_OF_ONE_AUTHOR = (
    _Comparison("CAS", "Informed", "Vanilla"),
    _Comparison("CAS", "Informed/CF-informed", "Vanilla"),
    _Comparison("CAS", "CF-informed/Informed", "Vanilla"),
    _Comparison("CAB", "Informed/CF-informed", "CF-informed/Informed"),
)
AUTHORS_OF = ("relevant_author", "nonrelevant_author")


_COLUMNS = ["measure", "quantity", "mode", "against", "questions", "left_out", "changed"]
_COLUMNS += ["value", "low", "high", "t", "p_t", "p_permutation"]


_OF_ANSWERS = ["answer", "relevant", "citations", "gold", "documents", "shown"]
"""Columns of answers by which nobody groups them."""


def _scores(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    """Scores of the same questions in two modes, checked and broadcast."""
    a = np.asarray(first, dtype=np.float64)
    b = np.asarray(second, dtype=np.float64)
    a, b = np.broadcast_arrays(a, b)
    if not a.ndim or not a.size or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError(
            "scores of the same questions in both modes are wanted, at least one and all finite"
        )
    return a, b


@declared("CAS", range="0 to 1", ideal="0", direction="lower is better")
def cas(informed: ArrayLike, vanilla: ArrayLike, axis: int = -1) -> Floats:
    r"""Counterfactually-estimated attribution sensitivity: how far naming authors moves a score.

    .. math:: CAS(Q) = \frac{1}{|Q|} \sum_{q \in Q} |M^q_{Informed} - M^q_{Vanilla}|

    - :math:`q, Q`: a question, and all of them
    - :math:`M^q_{Informed}, M^q_{Vanilla}`: precision or recall of the answer with the true
      authors named, and with none named

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


@declared("CAB", range="-1 to 1", ideal="0", direction="neither")
def cab(
    informed: ArrayLike,
    cf_informed: ArrayLike,
    relevant_label: ArrayLike,
    axis: int = -1,
    *,
    authors: Authors = AUTHORS,
) -> Floats:
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
        Author that the relevant documents are labelled with in the first term; the non-relevant
        ones have the other label. It broadcasts with the result.
    axis : int
        The axis of the questions.

    Returns
    -------
    ndarray, shaped (...)
        In the unit of the score: from -1 (fully biased to the second author) to 1 (to the first)
        for precision and recall.

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
    if len(set(authors)) != 2 or not np.isin(labels.astype(str), authors).all():
        raise ValueError(
            f"labels are the two authors {' and '.join(authors)}, found {relevant_label!r}"
        )
    omega = np.where(labels == authors[0], 1.0, -1.0)
    bias: Floats = omega * (a - b).mean(axis=axis)
    return bias[()]


# --- intervals and tests --------------------------------------------------------------------------


Scores = tuple[Integers, Floats]
"""Numbers of questions, ascending, and the score of each."""


def paired_test(gaps: Floats) -> tuple[float, float]:
    """Student's t and its p of paired differences; NaN for fewer than two."""
    if len(gaps) < 2:
        return np.nan, np.nan
    _, _, t, p = paired_t(gaps[:, np.newaxis])
    return float(t[0]), float(p[0])


def common_scores(first: Scores, second: Scores) -> tuple[Floats, Floats, int]:
    """Scores of questions that have one in both modes, and the number of the other questions."""
    questions_of_first, scores_of_first = first
    questions_of_second, scores_of_second = second
    common, at_first, at_second = np.intersect1d(
        questions_of_first, questions_of_second, assume_unique=True, return_indices=True
    )
    a, b = scores_of_first[at_first], scores_of_second[at_second]
    scored = ~(np.isnan(a) | np.isnan(b))
    n_questions = len(questions_of_first) + len(questions_of_second) - len(common)
    return a[scored], b[scored], n_questions - int(scored.sum())


def named_modes(answers: pd.DataFrame) -> pd.Series:
    """The modes of answers by their one name."""
    names = {mode: mode_name(mode) for mode in answers["mode"].unique()}
    return answers["mode"].map(names)


def each_answer_once(
    scored: pd.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> pd.DataFrame:
    """The table with one name for each mode, checked to hold each answer once within ``by``."""
    keys = [*by, *AUTHORS_OF, "mode", "question"]
    if isinstance(by, str) or len(set(keys)) < len(keys):
        raise ValueError(
            "by lists further columns, none twice and none of"
            f" {', '.join((*AUTHORS_OF, 'mode', 'question'))}"
        )
    need_columns(scored, (*keys, *measures))
    if scored.empty or scored[keys].isna().to_numpy().any():
        raise ValueError(f"at least one answer is wanted, and none without {', '.join(keys)}")
    table = scored.assign(mode=named_modes(scored))
    repeated = table.duplicated(keys)
    if repeated.any():
        example = table.loc[repeated, keys].iloc[0]
        words = ", ".join(f"{name} {value}" for name, value in example.items())
        further_columns = sorted(set(scored.columns) - {*keys, *_OF_ANSWERS, *measures})
        choice = f", of {listed(further_columns)}" if further_columns else ""
        raise ValueError(
            f"{int(repeated.sum())} answers are there twice, the first of {words};"
            f" name the column that tells them apart in by{choice}"
        )
    return table


def scores_by_mode(
    table: pd.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Scores]]]:
    """Each group with each of the measures, and the scores of its questions in every mode."""
    question, _ = pd.factorize(table["question"], sort=True)
    # In order of questions, so that those of two modes can be intersected.
    ordered = table.assign(question=question.astype(np.int64)).sort_values("question")
    for group, answers in ordered.groupby([*by, *AUTHORS_OF], sort=True, observed=True):
        answers_by_mode = dict(iter(answers.groupby("mode", sort=True)))
        for measure in measures:
            scores = {}
            for mode, answers_of_mode in answers_by_mode.items():
                questions = answers_of_mode["question"].to_numpy()
                scores[str(mode)] = questions, answers_of_mode[measure].to_numpy(np.float64)
            yield (*group, measure), scores


def _permutation_p(gaps: Floats, seed: int, resamples: int) -> float:
    """Two-sided p of the paired randomisation test; NaN for fewer than two questions."""
    if len(gaps) < 2:
        return np.nan
    # Exchanging equal scores changes nothing: without them more tests are exact.
    changed = gaps[gaps != 0]
    if not len(changed):
        return 1.0
    rng = np.random.default_rng(seed)
    return float(exchanged(changed[:, np.newaxis], rng, resamples)[0])


def _compared(
    quantity: str, gaps: Floats, omega: float, seed: int, resamples: int
) -> tuple[dict[str, Any], Floats]:
    """Value and tests of a comparison, and the difference of each question that its value means.

    ``gaps``: of scores, shaped (questions,). ``omega``: 1 or -1, the sign of CAB.
    """
    difference = np.abs(gaps) if quantity == "CAS" else omega * gaps
    difference = difference + 0.0  # no negative zero
    t, p = paired_test(gaps)
    row = {
        "questions": len(gaps),
        "changed": np.count_nonzero(gaps),
        "value": float(difference.mean()) if len(gaps) else np.nan,
        "t": omega * t,
        "p_t": p,
        "p_permutation": _permutation_p(gaps, seed, resamples),
    }
    return row, difference


def _check_favoured(table: pd.DataFrame, favoured: str) -> None:
    authors = {str(author) for name in AUTHORS_OF for author in table[name].unique()}
    other_authors = sorted(authors - {favoured})
    if len(other_authors) > 1:
        raise ValueError(
            f"favoured is {' or '.join(other_authors)}, the authors of the answers;"
            f" found {favoured!r}"
        )


_EXCHANGED = (
    "the actual authors, which are the same in every mode, as relevant_author and"
    " nonrelevant_author: mode says what the model was told"
)


def _groups_of_mode(
    table: pd.DataFrame, comparison: _Comparison, keys: Sequence[str]
) -> tuple[set[Any], set[Any]]:
    """The groups of answers in each of two modes, of those that the comparison is for."""
    is_one_author = table["relevant_author"] == table["nonrelevant_author"]
    answers = table[is_one_author == (comparison in _OF_ONE_AUTHOR)]
    groups = []
    for mode in (comparison.mode, comparison.against):
        rows = answers.loc[answers["mode"] == mode, list(keys)]
        groups.append(set(rows.itertuples(index=False, name=None)))
    return groups[0], groups[1]


def check_pairs(scored: pd.DataFrame, by: Sequence[str]) -> None:
    """Refuse answers in both modes of CAB of which no two are of one group and of one authorship.

    Most often the authors were exchanged with the mode. Where only some have no pair, it is said.
    """
    keys = [*by, *AUTHORS_OF]
    for comparison in (_OF_TWO_AUTHORS[-1], _OF_ONE_AUTHOR[-1]):
        _, mode, against = comparison
        groups, groups_against = _groups_of_mode(scored, comparison, keys)
        alone, alone_against = groups - groups_against, groups_against - groups
        if not alone or not alone_against:
            continue
        names = ", ".join(keys)
        problem = (
            f"{mode} for {names} = {_shown_group(alone)} only,"
            f" {against} for {_shown_group(alone_against)} only: no CAB of these"
        )
        expected = _EXCHANGED
        # With the same further columns, the authors are what differs.
        if not {group[: len(by)] for group in alone} & {
            group[: len(by)] for group in alone_against
        }:
            expected = f"answers in both modes of each {', '.join(by)}"
        if groups & groups_against:
            warnings.warn(f"{problem}; wanted {expected}", Note, stacklevel=3)
        else:
            raise refused("the answers", problem, expected)


def _shown_group(groups: set[Any]) -> str:
    """The first of some groups, as a message shows it."""
    return "/".join(map(str, min(groups, key=str)))


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
    table = each_answer_once(scored, by, measures)
    _check_favoured(table, favoured)
    # Each comparison begins with this one seed: a row does not depend on the other groups.
    start = int(np.random.default_rng(seed).integers(2**63))
    rows: list[dict[str, Any]] = []
    differences: list[Floats] = []  # of each row, those of its questions
    for (*group, relevant, nonrelevant, measure), scores in scores_by_mode(table, by, measures):
        # Documents of one author differ in their labels in the mixed modes only.
        comparisons = _OF_ONE_AUTHOR if relevant == nonrelevant else _OF_TWO_AUTHORS
        for quantity, mode, against in comparisons:
            if mode not in scores or against not in scores:
                continue
            a, b, left_out = common_scores(scores[mode], scores[against])
            omega = 1.0
            if quantity == "CAB" and relevant != favoured:
                omega = -1.0
            row, difference = _compared(quantity, a - b, omega, start, resamples)
            row |= {"measure": measure, "quantity": quantity, "mode": mode, "against": against}
            row |= {"relevant_author": relevant, "nonrelevant_author": nonrelevant}
            row |= dict(zip(by, group, strict=True))
            rows.append(row | {"left_out": left_out})
            differences.append(difference)
    compared = pd.DataFrame(rows, columns=[*by, *AUTHORS_OF, *_COLUMNS])
    intervals = bootstrap_intervals(differences, start, level=level, resamples=resamples)
    return compared.assign(low=intervals[:, 0], high=intervals[:, 1])
