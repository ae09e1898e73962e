"""Tables of chapter 5 beyond those of the library: quality of every mode, modes against each other, positions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from equipoise.answer_modes import in_order
from equipoise.measures.attribution.bias import (
    AUTHORS_OF,
    common_scores,
    each_answer_once,
    interval,
    paired_t,
    scores_by_mode,
)
from equipoise.measures.attribution.quality import MEANS, TOTALS, end_to_end


def quality_table(scored: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Means and totals of every group and mode (thesis, Tables 5.1, 5.4 and 5.11 to 5.15).

    Returns, sorted by group, modes in the order of `MODES`, then mixed ones: by, ``relevant_author,
    nonrelevant_author, mode, answers``, means over answers, ``with_gold`` (the answers that exact match is a mean of),
    totals.
    """
    table = each_answer_once(scored, by, (*MEANS, *TOTALS))
    table["mode"] = pd.Categorical(table["mode"], in_order(table["mode"].unique()), ordered=True)
    groups = table.groupby([*by, *AUTHORS_OF, "mode"], sort=True, observed=True)
    counts = {"answers": groups.size(), **groups[list(MEANS)].mean(), "with_gold": groups["exact_match"].count()}
    return pd.DataFrame(counts).join(groups[list(TOTALS)].sum()).reset_index().astype({"mode": "str"})


def compare_modes(
    scored: pd.DataFrame, by: Sequence[str] = (), measures: Sequence[str] = ("precision", "recall")
) -> pd.DataFrame:
    r"""Paired t-test of every two modes of a group, over the questions that both answer.

    .. math:: \Delta = \frac{1}{|Q|} \sum_{q \in Q} (M^q_{X} - M^q_{Y})

    Returns, sorted by group, each pair once in the order of `MODES`: by, ``relevant_author, nonrelevant_author,
    measure, mode, against, questions, left_out, difference, t, p_t``, not corrected for the number of comparisons.
    """
    rows: list[tuple[Any, ...]] = []
    for group, modes in scores_by_mode(each_answer_once(scored, by, measures), by, measures):
        for first, second in combinations(in_order(modes), 2):
            a, b, left_out = common_scores(modes[first], modes[second])
            difference = float((a - b).mean()) if len(a) else np.nan
            rows.append((*group, first, second, len(a), left_out, difference, *paired_t(a, b)))
    names = ["measure", "mode", "against", "questions", "left_out", "difference", "t", "p_t"]
    return pd.DataFrame(rows, columns=[*by, *AUTHORS_OF, *names])


def citations_by_position(
    scored: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    measures: Sequence[str] = ("precision", "recall"),
    level: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Scores by the position of the relevant document among those shown.

    .. math:: M(j) = \frac{1}{|Q_j|} \sum_{q \in Q_j} \bar M^q, \quad Q_j = \{q : \text{relevant document at } j\}

    with the mean over the answers to a question first, since these are not independent.

    There must be one relevant document an answer. ``measures``: columns of scores, without gaps. Returns, sorted: by,
    ``position, measure, questions, answers, value, low, high`` (percentile interval of the bootstrap over questions,
    NaN for fewer than two).

    Beyond the thesis, which puts the relevant document at random (section 5.D).
    """
    rows, places = end_to_end(scored["relevant"], "relevant")
    if len(places) != len(scored) or (rows != np.arange(len(scored))).any():
        raise ValueError("one relevant document an answer is wanted")
    if not np.isfinite(scored[list(measures)].to_numpy(dtype=np.float64)).all():
        raise ValueError(f"{', '.join(measures)}: every score must be finite")
    start = int(np.random.default_rng(seed).integers(2**63))
    long = scored[[*by, "question", *measures]].assign(position=places)
    found: list[tuple[Any, ...]] = []
    for group, part in long.groupby([*by, "position"], sort=True, observed=True):
        questions = part.groupby("question", sort=True)[list(measures)].mean()
        for measure in measures:
            each = questions[measure].to_numpy(dtype=np.float64)
            ends = interval(each, level, resamples, start)
            found.append((*group, measure, len(each), len(part), float(each.mean()), *ends))
    return pd.DataFrame(found, columns=[*by, "position", "measure", "questions", "answers", "value", "low", "high"])
