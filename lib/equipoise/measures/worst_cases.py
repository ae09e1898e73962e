"""Worst cases: what remains of a score where trials, orders, branches or annotators go badly."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise import options
from equipoise.arrays import Floats, Integers, cumulative_sums, starts
from equipoise.errors import need_columns
from equipoise.options import measure
from equipoise.statistics import finite
from equipoise.tidy import TOLERANCE

_WEIGHT, _ABOUT = (
    "probability",
    ["seen", "low", "high"],
)  # what says something of a score, and tells none apart


def tail_means(values: Floats, weights: Floats, first: Integers, worst: float) -> Floats:
    """Mean of the lowest share ``worst`` of the weight of each segment, shaped (segments,).

    ``values`` ascend within each segment and ``weights`` sum to 1 there; ``first`` are the places
    where one begins.
    """
    weight_before = cumulative_sums(weights, first) - weights
    in_tail = np.clip(worst - weight_before, 0.0, weights)
    sums = np.add.reduceat(in_tail * values, first)
    return np.asarray(sums / np.add.reduceat(in_tail, first), dtype=np.float64)


def _cases(scores: pd.DataFrame, over: str) -> pd.DataFrame:
    """The table with a column that names the cases, without means over topics."""
    table = scores.drop(columns=_ABOUT, errors="ignore").reset_index(drop=True)
    if over == "trial" and over not in table and "run" in table:
        system_and_trial = table["run"].astype("str").str.extract(r"^(.*)-(\d+)$").fillna("")
        table[["run", over]] = system_and_trial
        unnamed = (table[over] == "").to_numpy()
        if unnamed.any():
            run = scores["run"].to_numpy()[unnamed][0]
            raise ValueError(f"run {run!r} names no trial, as in system-2")
    need_columns(table, [over])
    if over == "topic":
        table = table[table[over].fillna("") != ""].reset_index(drop=True)
        if table.empty:
            raise ValueError("means only, and no score of a topic")
    return table


def _refuse_other_sums(total: Floats, score: Integers, about: pd.DataFrame) -> None:
    """Refuse probabilities of the cases of a score that are not 1 in all: cases may be missing."""
    wrong = np.flatnonzero(np.abs(total - 1) > TOLERANCE)
    if len(wrong):
        row = about.iloc[int(np.argmax(score == wrong[0]))]
        cells = ", ".join(f"{name} {value}" for name, value in row.items() if value != "")
        raise ValueError(
            f"probabilities sum to {total[wrong[0]]:.6g} over the cases of {cells}, and not to 1"
            f" for {len(wrong)} of {len(total)} scores; wanted every case of a score, or no column"
            " probability"
        )


@measure(
    "Mean, worst and CVaR over cases",
    family="Any score, over cases",
    range="that of the measure",
    ideal="that of the measure",
    direction="neither",
    sources=("rockafellar2000",),
)
def worst_cases(
    scores: pd.DataFrame,
    over: options.Over = "trial",
    *,
    worst: options.Worst = 0.25,
    worse: options.Worse = "low",
) -> pd.DataFrame:
    r"""Mean, worst value and conditional value at risk of each score over its cases.

    .. math::
        CVaR_\alpha = \frac{1}{\alpha} \int_0^\alpha q(u)\, du, \quad
        q \text{ the quantiles of the score, worst first}

    - :math:`\alpha`: share of the cases that counts as the worst
    - :math:`q, u`: q(u) is the score below which the share u of the cases lies, worst first

    Parameters
    ----------
    scores : DataFrame
        A row per case and score, with the columns measure, value and ``over``, and any others that
        tell scores apart (run, topic, attribute). A column probability weighs the cases, and sums
        to 1 over those of a score; without one all weigh the same. Where ``over`` is trial and no
        such column is there, runs are taken to be called ``system-trial``, as a harvest names them.
        Means, whose topic is empty, are no cases of ``topic``; columns seen, low and high are left
        out.

    Returns
    -------
    DataFrame, columns of the scores without ``over``, then case, cases and value
        Three rows per score: case ``mean``, ``worst``, and ``worst 0.25``, the mean of the worst
        quarter; ``cases`` counts what it is over.

    Raises
    ------
    ValueError
        If a column is missing, a value is not finite, a case comes twice, or probabilities are
        negative or do not sum to 1.

    Notes
    -----
    A share that is no whole number of cases takes a part of the case at its edge.

    Examples
    --------
    >>> runs = ["a-1", "a-2", "a-3", "a-4"]
    >>> scores = pd.DataFrame({"run": runs, "measure": "R", "value": [0.4, 0.1, 0.3, 0.2]})
    >>> worst_cases(scores, worst=0.5)
      run measure       case  cases  value
    0   a       R       mean      4   0.25
    1   a       R      worst      4   0.10
    2   a       R  worst 0.5      4   0.15
    """
    need_columns(scores, ["measure", "value"])
    table = _cases(scores, over)
    keys = [name for name in table if name not in (over, "value", _WEIGHT)]
    repeated = table.duplicated([*keys, over])
    if repeated.any():
        raise ValueError(
            f"{over} {table.loc[repeated, over].iloc[0]} of a score comes twice;"
            " what else tells them apart?"
        )
    value = finite(table["value"], "scores")
    weight = finite(table[_WEIGHT] if _WEIGHT in table else np.ones(len(table)), _WEIGHT)
    score = table.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    total = np.bincount(score, weights=weight).astype(np.float64)
    if (weight < 0).any() or (total == 0).any():
        raise ValueError("probabilities must not be negative, nor all be 0")
    if _WEIGHT in table:
        _refuse_other_sums(total, score, table[keys])

    # The cases of each score next to each other, the worst first.
    sign = 1.0 if worse == "low" else -1.0
    order = np.lexsort((sign * value, score))
    begins = starts(score[order])
    value, weight = sign * value[order], (weight / total[score])[order]
    possible = np.where(weight > 0, value, np.inf)
    summaries = {
        "mean": np.add.reduceat(weight * value, begins),
        "worst": np.minimum.reduceat(possible, begins),
        f"worst {worst:g}": tail_means(value, weight, begins, worst),
    }
    about_scores = table.loc[order[begins], keys].reset_index(drop=True)
    n_cases = np.diff(begins, append=len(value))
    tables = []
    for name, values in summaries.items():
        tables.append(about_scores.assign(case=name, cases=n_cases, value=sign * values))
    return pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)
