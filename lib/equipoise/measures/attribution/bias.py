"""Sensitivity and bias of attribution: how far naming the authors moves a score (CAS), and in whose favour (CAB)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.answer_modes import mode_name
from equipoise.arrays import Floats
from equipoise.declare import checked, measure
from equipoise.measures.attribution.correctness import CHAPTER_5, FAMILY
from equipoise.options import Authors, Favoured, Level, Resamples, Seed
from equipoise.problems import need_columns
from equipoise.statistics import bootstrap_interval, compare_pairs

AUTHORS = ("Human", "LLM")
"""The two authors of the thesis; CAB is positive where the first is favoured."""

_HERE, _THERE = "Informed/CF-informed", "CF-informed/Informed"
_OF_TWO_AUTHORS = (("CAS", "Informed", "Vanilla"), ("CAB", "Informed", "CF-informed"))
_OF_ONE_AUTHOR = (*(("CAS", mode, "Vanilla") for mode in ("Informed", _HERE, _THERE)), ("CAB", _HERE, _THERE))
_COMPARED = ("measure", "quantity", "mode", "against", "questions", "left_out", "changed")
_FOUND = ("value", "low", "high", "t", "p_t", "p_permutation")
AUTHORS_OF = ("relevant_author", "nonrelevant_author")


def _scores(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.broadcast_arrays(np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64))
    if not a.ndim or not a.size or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("scores of the same questions in both modes are wanted, at least one and all finite")
    return a, b


@measure("CAS", family=FAMILY, range="0 to 1", ideal="0", direction="lower is better", sources=CHAPTER_5)
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


@measure("CAB", family=FAMILY, range="-1 to 1", ideal="0", direction="neither", sources=CHAPTER_5)
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
    if len(set(authors)) != 2 or not np.isin(labels.astype(str), authors).all():
        raise ValueError(f"labels are the two authors {' and '.join(authors)}, found {relevant_label!r}")
    signed: Floats = np.where(labels == authors[0], 1.0, -1.0) * (a - b).mean(axis=axis)
    return signed[()]


# --- intervals and tests ------------------------------------------------------------------------------------------


def interval(values: Floats, level: float, resamples: int, seed: int) -> tuple[float, float]:
    """Bootstrap interval over questions; NaN for fewer than two."""
    if len(values) < 2:
        return np.nan, np.nan
    return bootstrap_interval(values, np.random.default_rng(seed), level=level, resamples=resamples)


def _long(first: Floats, second: Floats) -> pd.DataFrame:
    """Pairs as `compare_pairs` takes them."""
    units = np.arange(len(first))
    values = np.concatenate([first, second])
    return pd.DataFrame({"topic": np.tile(units, 2), "run": np.repeat(["a", "b"], len(units)), "value": values})


def paired_t(first: Floats, second: Floats) -> tuple[float, float]:
    """Statistic t and p of the paired t-test; NaN for fewer than two pairs."""
    if len(first) < 2:
        return np.nan, np.nan
    found = compare_pairs(_long(first, second), baseline="b", correction="none").iloc[0]
    return float(found["statistic"]), float(found["p"])


def _exchange_p(first: Floats, second: Floats, resamples: int, seed: int) -> float:
    """P of the paired randomisation test; NaN for fewer than two pairs."""
    if len(first) < 2:
        return np.nan
    moved = first != second  # exchanging equal scores changes nothing: without them more tests are exact
    moved[:2] |= moved.sum() < 2  # the test wants two pairs
    options: dict[str, Any] = {"test": "permutation", "resamples": resamples, "rng": np.random.default_rng(seed)}
    pairs = _long(first[moved], second[moved])
    return float(compare_pairs(pairs, baseline="b", correction="none", **options)["p"].iloc[0])


def common_scores(first: pd.Series, second: pd.Series) -> tuple[Floats, Floats, int]:
    """Scores of the questions that have one in both modes, and the number of the other questions."""
    pairs = pd.concat([first.rename("a"), second.rename("b")], axis=1, join="outer").sort_index().astype("float64")
    both = pairs.dropna().to_numpy()
    return both[:, 0], both[:, 1], len(pairs) - len(both)


def named_modes(answers: pd.DataFrame) -> pd.Series:
    """The modes of answers by their one name."""
    return answers["mode"].map({mode: mode_name(mode) for mode in answers["mode"].unique()})


def each_answer_once(scored: pd.DataFrame, by: Sequence[str], measures: Sequence[str]) -> pd.DataFrame:
    """The table with one name for each mode, checked to hold each answer once within ``by``."""
    keys = [*by, *AUTHORS_OF, "mode", "question"]
    if isinstance(by, str) or len(set(keys)) < len(keys):
        raise ValueError(f"by lists further columns, none twice and none of {', '.join((*AUTHORS_OF, *keys[-2:]))}")
    need_columns(scored, (*keys, *measures))
    if scored.empty or scored[keys].isna().to_numpy().any():
        raise ValueError(f"at least one answer is wanted, and none without {', '.join(keys)}")
    table = scored.assign(mode=named_modes(scored))
    if (again := table.duplicated(keys)).any():
        first, told = table.loc[again, keys].iloc[0].to_dict(), "name the column that tells them apart in by"
        raise ValueError(f"{int(again.sum())} answers are there twice, the first {first}; {told}")
    return table


def scores_by_mode(
    table: pd.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], dict[str, pd.Series]]]:
    """Each group with each of the measures, and the scores of its questions in every mode."""
    for group, answers in table.groupby([*by, *AUTHORS_OF], sort=True, observed=True):
        modes = {str(mode): part.set_index("question") for mode, part in answers.groupby("mode")}
        for name in measures:
            yield (*group, name), {mode: part[name] for mode, part in modes.items()}


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

    Where relevant and non-relevant documents have different authors, CAS compares Informed with Vanilla and CAB
    Informed with CF-informed. Where they have the same author, CAB compares Informed/CF-informed with
    CF-informed/Informed, and CAS each of these two, and Informed, with Vanilla; Informed and CF-informed then give all
    documents one label and have no CAB. A comparison is there where both its modes are.

    ``by``: further columns to group by, such as the model. ``measures``: columns of scores. Every comparison begins
    with one seed, drawn from ``seed``: a row does not depend on the other groups. Returns, sorted by group: by,
    ``relevant_author, nonrelevant_author, measure, quantity`` ("CAS" or "CAB"), ``mode, against`` (what the difference
    is of), ``questions`` (answered in both modes), ``left_out`` (answered in one of them, or without a score),
    ``changed`` (questions whose score differs), ``value, low, high`` (0 to 1, CAB from -1; percentile interval of the
    bootstrap over questions), ``t, p_t`` (paired t-test), ``p_permutation`` (paired randomisation test, two-sided).
    Intervals and tests are NaN for fewer than two questions, the value for none.

    thesis, Eqs. 5.1 to 5.3 and 5.5; Tables 5.2, 5.3, 5.5 and 5.7 to 5.9. The tests are of the signed difference, with
    the sign of t: for CAB that of CAB; for CAS that of Informed minus Vanilla. The thesis does not say what the mark of
    a CAS rests on; a mean of absolute differences can only be tested against 0 by way of the signed ones. It can be
    large where these cancel out, and p is then large too.

    Where few questions change, look at ``changed`` and not at the interval: the bootstrap only draws what it has seen,
    and its interval has no width where no question changed.
    """
    table = each_answer_once(scored, by, measures)
    others = sorted({str(author) for name in AUTHORS_OF for author in table[name].unique()} - {favoured})
    if len(others) > 1:
        raise ValueError(f"favoured is {' or '.join(others)}, the authors of the answers; found {favoured!r}")
    authors = (favoured, others[0] if others else f"not {favoured}")
    start = int(np.random.default_rng(seed).integers(2**63))
    rows: list[tuple[Any, ...]] = []
    for (*group, relevant, nonrelevant, name), modes in scores_by_mode(table, by, measures):
        for quantity, mode, against in _OF_ONE_AUTHOR if relevant == nonrelevant else _OF_TWO_AUTHORS:
            if not {mode, against} <= modes.keys():
                continue
            a, b, left_out = common_scores(modes[mode], modes[against])
            t, p = paired_t(a, b)
            gaps, value = np.abs(a - b), np.nan
            if quantity == "CAB":
                omega = 1.0 if relevant == favoured else -1.0
                t, gaps = omega * t, omega * (a - b) + 0.0  # no negative zero
            if len(a):
                value = float(cas(a, b) if quantity == "CAS" else cab(a, b, relevant, authors=authors)) + 0.0
            counts = (len(a), left_out, int((a != b).sum()))
            found = (value, *interval(gaps, level, resamples, start), t, p, _exchange_p(a, b, resamples, start))
            rows.append((*group, relevant, nonrelevant, name, quantity, mode, against, *counts, *found))
    return pd.DataFrame(rows, columns=[*by, *AUTHORS_OF, *_COMPARED, *_FOUND])
