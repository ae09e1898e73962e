"""Sensitivity and bias of attribution: how far naming the authors moves a score (CAS), and in whose favour (CAB)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.answer_modes import mode_name
from equipoise.arrays import Floats, Integers, starts
from equipoise.declare import checked
from equipoise.measures.attribution.correctness import declared
from equipoise.options import Authors, Favoured, Level, Resamples, Seed
from equipoise.problems import listed, need_columns
from equipoise.statistics.intervals import bootstrap_intervals
from equipoise.statistics.pairs import exchanged, paired_t

AUTHORS = ("Human", "LLM")
"""The two authors of the thesis; CAB is positive where the first is favoured."""

_HERE, _THERE = "Informed/CF-informed", "CF-informed/Informed"
_OF_TWO_AUTHORS = (("CAS", "Informed", "Vanilla"), ("CAB", "Informed", "CF-informed"))
_OF_ONE_AUTHOR = (
    *(("CAS", mode, "Vanilla") for mode in ("Informed", _HERE, _THERE)),
    ("CAB", _HERE, _THERE),
)
_COMPARED = ("measure", "quantity", "mode", "against", "questions", "left_out", "changed")
_FOUND = ("value", "t", "p_t", "p_permutation")
AUTHORS_OF = ("relevant_author", "nonrelevant_author")


def _scores(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.broadcast_arrays(
        np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    )
    if not a.ndim or not a.size or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError(
            "scores of the same questions in both modes are wanted, at least one and all finite"
        )
    return a, b


@declared("CAS", range="0 to 1", ideal="0", direction="lower is better")
def cas(informed: ArrayLike, vanilla: ArrayLike, axis: int = -1) -> Floats:
    r"""Counterfactually-estimated attribution sensitivity: how far naming the authors moves a score.

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
    r"""Counterfactually-estimated attribution bias: which author's documents are cited better for their label.

    .. math::
        CAB(Q) = \frac{\omega}{|Q|} \sum_{q \in Q} (M^q_{Informed} - M^q_{CF-informed}), \quad
        \omega = \begin{cases} 1, & L_f(R) = \text{Human}, L_f(N) = \text{LLM} \\ -1, & \text{otherwise} \end{cases}

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
    signed: Floats = np.where(labels == authors[0], 1.0, -1.0) * (a - b).mean(axis=axis)
    return signed[()]


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
    """Scores of the questions that have one in both modes, and the number of the other questions."""
    _, here, there = np.intersect1d(first[0], second[0], assume_unique=True, return_indices=True)
    a, b = first[1][here], second[1][there]
    scored = ~(np.isnan(a) | np.isnan(b))
    return a[scored], b[scored], len(first[0]) + len(second[0]) - len(here) - int(scored.sum())


def named_modes(answers: pd.DataFrame) -> pd.Series:
    """The modes of answers by their one name."""
    return answers["mode"].map({mode: mode_name(mode) for mode in answers["mode"].unique()})


def each_answer_once(
    scored: pd.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> pd.DataFrame:
    """The table with one name for each mode, checked to hold each answer once within ``by``."""
    keys = [*by, *AUTHORS_OF, "mode", "question"]
    if isinstance(by, str) or len(set(keys)) < len(keys):
        raise ValueError(
            f"by lists further columns, none twice and none of {', '.join((*AUTHORS_OF, *keys[-2:]))}"
        )
    need_columns(scored, (*keys, *measures))
    if scored.empty or scored[keys].isna().to_numpy().any():
        raise ValueError(f"at least one answer is wanted, and none without {', '.join(keys)}")
    table = scored.assign(mode=named_modes(scored))
    if (again := table.duplicated(keys)).any():
        first = ", ".join(
            f"{name} {value}" for name, value in table.loc[again, keys].iloc[0].items()
        )
        others = set(scored.columns) - {
            *keys,
            "answer",
            "relevant",
            "citations",
            "gold",
            "documents",
            "shown",
            *measures,
        }
        told = f"name the column that tells them apart in by{f', of {listed(sorted(others))}' if others else ''}"
        raise ValueError(
            f"{int(again.sum())} answers are there twice, the first of {first}; {told}"
        )
    return table


def scores_by_mode(
    table: pd.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Scores]]]:
    """Each group with each of the measures, and the scores of its questions in every mode."""
    cells = table.groupby([*by, *AUTHORS_OF, "mode"], sort=True, observed=True)
    cell, question = (
        cells.ngroup().to_numpy(),
        pd.factorize(table["question"], sort=True)[0].astype(np.int64),
    )
    order = np.lexsort((question, cell))
    rows = zip(cells.size().index, np.split(order, starts(cell[order])[1:]), strict=True)
    scores = table[list(measures)].to_numpy(dtype=np.float64).T
    for group, modes in groupby(rows, lambda row: row[0][:-1]):
        held = {str(key[-1]): own for key, own in modes}
        for name, score in zip(measures, scores, strict=True):
            yield (*group, name), {mode: (question[own], score[own]) for mode, own in held.items()}


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
    others = sorted(
        {str(author) for name in AUTHORS_OF for author in table[name].unique()} - {favoured}
    )
    if len(others) > 1:
        raise ValueError(
            f"favoured is {' or '.join(others)}, the authors of the answers; found {favoured!r}"
        )
    start = int(np.random.default_rng(seed).integers(2**63))
    rows: list[tuple[Any, ...]] = []
    each: list[Floats] = []
    for (*group, relevant, nonrelevant, name), modes in scores_by_mode(table, by, measures):
        for quantity, mode, against in (
            _OF_ONE_AUTHOR if relevant == nonrelevant else _OF_TWO_AUTHORS
        ):
            if mode not in modes or against not in modes:
                continue
            a, b, left_out = common_scores(modes[mode], modes[against])
            omega, gaps = -1.0 if quantity == "CAB" and relevant != favoured else 1.0, a - b
            each.append(
                (np.abs(gaps) if quantity == "CAS" else omega * gaps) + 0.0
            )  # no negative zero
            moved = gaps[
                gaps != 0
            ]  # exchanging equal scores changes nothing: without them more tests are exact
            exchanging = 1.0 if len(a) > 1 else np.nan
            if len(a) > 1 and len(moved):
                rng = np.random.default_rng(start)
                exchanging = float(exchanged(moved[:, np.newaxis], rng, resamples)[0])
            t, p = paired_test(gaps)
            value = float(each[-1].mean()) if len(a) else np.nan
            found = (len(a), left_out, len(moved), value, omega * t, p, exchanging)
            rows.append((*group, relevant, nonrelevant, name, quantity, mode, against, *found))
    compared = pd.DataFrame(rows, columns=[*by, *AUTHORS_OF, *_COMPARED, *_FOUND])
    ends = bootstrap_intervals(each, start, level=level, resamples=resamples)
    for place, (name, values) in enumerate(zip(("low", "high"), ends.T, strict=True), start=1):
        compared.insert(compared.columns.get_loc("value") + place, name, values)
    return compared
