r"""Outcomes of conversations held by the two-round protocol, and their statistics.

Each system turn is useful (``o``), not useful (``x``), or was never held because the first turn ended the conversation
(``-``).

References
----------
gfrc, section 5, Figures 2 to 4.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

OUTCOMES = ("o", "x", "-")
"""Useful, not useful, not held."""


def shares(first: ArrayLike, second: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    r"""Useful turns, their average, and recovery.

    .. math::
        useful_t = \frac{|\{i : o_{it}\}|}{n}, \quad
        average = \frac{useful_1 + useful_2}{2}, \quad
        recovery = \frac{|\{i : \neg o_{i1} \wedge o_{i2}\}|}{|\{i : \neg o_{i1}\}|}

    Parameters
    ----------
    first, second : array_like of bool, shaped (..., topics)
        Whether system turn 1 and 2 of each topic was useful; a turn that was never held was not.

    Returns
    -------
    useful : ndarray, shaped (..., 2)
        Share of the topics, per turn.
    average : ndarray, shaped (...)
        Mean of both.
    recovery : ndarray, shaped (...)
        Share of the topics with a useless first turn whose second was useful; NaN where there is no such topic.

    Raises
    ------
    ValueError
        If the shapes differ, or there is no topic.

    Notes
    -----
    gfrc, section 5 (%useful, ave%useful and %recovery, there in percent).

    Examples
    --------
    >>> shares([True, False, False], [True, True, False])
    (array([0.33333333, 0.66666667]), np.float64(0.5), array(0.5))
    """
    one, two = np.asarray(first, dtype=np.bool_), np.asarray(second, dtype=np.bool_)
    if one.shape != two.shape or one.ndim == 0 or one.shape[-1] == 0:
        raise ValueError(f"both turns need the same topics, at least one: shapes {one.shape} and {two.shape}")
    useful = np.stack([one.mean(axis=-1), two.mean(axis=-1)], axis=-1)
    failed = (~one).sum(axis=-1)
    recovered = (~one & two).sum(axis=-1)
    recovery = np.divide(recovered, failed, out=np.full(failed.shape, np.nan), where=failed > 0)
    return useful, useful.mean(axis=-1), recovery


def _checked(outcomes: pd.DataFrame) -> pd.DataFrame:
    missing = [column for column in ("run", "topic", "turn", "outcome") if column not in outcomes.columns]
    if missing:
        raise ValueError(f"the outcomes have no column {', '.join(missing)}")
    if outcomes.duplicated(["run", "topic", "turn"]).any():
        raise ValueError("an outcome comes twice")
    if not outcomes["outcome"].isin(OUTCOMES).all() or not outcomes["turn"].isin([1, 2]).all():
        raise ValueError("outcomes are o, x or - of turn 1 or 2")
    wide = outcomes.pivot_table(index=["run", "topic"], columns="turn", values="outcome", aggfunc="first", sort=False)
    wide = wide.reindex(columns=[1, 2])
    if wide.isna().to_numpy().any():
        raise ValueError("every topic of a run needs an outcome of both turns; write - for a turn that was not held")
    if (wide[1] == "-").any() or ((wide[1] == "o") & (wide[2] == "-")).any():
        raise ValueError("only a second turn can be missing, and only behind a first that was not useful")
    return wide


def outcome_grid(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Outcomes side by side, as the figures show them.

    ``outcomes`` (columns run, topic, turn, outcome): Outcome ``o``, ``x`` or ``-`` of turns 1 and 2. Returns: A row
    per topic.

    gfrc, Figures 2 to 4.
    """
    wide = _checked(outcomes)
    topics = pd.Index(list(dict.fromkeys(outcomes["topic"])), name="topic", dtype="str")
    grid = pd.DataFrame(index=topics)
    for run in dict.fromkeys(outcomes["run"]):
        of_run = wide.xs(run, level="run").reindex(topics)
        grid[f"{run} S1"], grid[f"{run} S2"] = of_run[1], of_run[2]
    return grid.fillna("").reset_index()


def outcome_statistics(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Statistics of the outcomes of each run.

    Returns DataFrame, columns run, topics, useful 1, useful 2, average useful, unsuccessful, recovered, recovery:
    Shares between 0 and 1, and counts; recovery is NaN where every first turn was useful.

    gfrc, section 5.
    """
    useful = (_checked(outcomes) == "o").reset_index().sort_values(["run", "topic"], kind="stable")
    runs, topics = list(dict.fromkeys(outcomes["run"])), sorted(set(outcomes["topic"]))
    if useful["topic"].tolist() != topics * len(runs):
        raise ValueError("every run needs the same topics")
    order = np.argsort(np.argsort(runs, kind="stable"), kind="stable")
    first, second = (useful[turn].to_numpy(dtype=np.bool_).reshape(len(runs), -1)[order] for turn in (1, 2))
    turns, average, recovery = shares(first, second)
    return pd.DataFrame(
        {
            "run": pd.array(runs, dtype="str"),
            "topics": first.shape[-1],
            "useful 1": turns[:, 0],
            "useful 2": turns[:, 1],
            "average useful": average,
            "unsuccessful": (~first).sum(axis=-1),
            "recovered": (~first & second).sum(axis=-1),
            "recovery": recovery,
        }
    )


def repeated_urls(turns: pd.DataFrame) -> pd.DataFrame:
    """Count the URLs of each conversation, and those among them that stood in it before.

    ``turns`` (columns run, topic, turn, system): System turns. Returns DataFrame, columns run, topic, urls,
    repeated: Conversations with at least one URL. Brackets and punctuation around a URL do not count.

    gfrc, section 5: URLs overlap across the turns, and within a list; such duplicates should not be rewarded.
    """
    missing = [column for column in ("run", "topic", "turn", "system") if column not in turns.columns]
    if missing:
        raise ValueError(f"the turns have no column {', '.join(missing)}")
    ordered = turns.reset_index(drop=True).sort_values("turn", kind="stable")
    # a Markdown link names its address twice: [address](address)
    text = ordered["system"].str.replace(r"\[(https?://[^\]\s]+)\]\(\1\)", r"\1", regex=True)
    found = ordered.assign(url=text.str.findall(r"https?://[^\s<>()\[\]\"']+")).explode("url").dropna(subset="url")
    found = found.assign(url=found["url"].str.rstrip(".,:;!?"))
    found = found.assign(again=found.duplicated(["run", "topic", "url"]))
    counts = (
        found.sort_index(kind="stable")
        .groupby(["run", "topic"], sort=False)["again"]
        .agg(["size", "sum"])
        .reset_index()
    )
    return counts.rename(columns={"size": "urls", "sum": "repeated"})
