"""What the order of a conversation does to the comparison of systems.

A score table has one row per system, conversation and order: ``run, topic, permutation, value``;
the value is the mean of a measure over the utterances of the conversation, and permutation 0 is the
order of the script.

References
----------
permutations, section 4.3.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, starts
from equipoise.errors import need_columns
from equipoise.options import PermutationNumbers, Repeats, measure

SCRIPT = 0  # number of the order of the script among the permutations of a conversation

_EQUAL = 1e-12  # scores that differ by no more are equal: the rest is rounding
_measure = partial(measure, family="Protocol and order of conversations", sources=("permutations",))


def score_matrix(scores: pd.DataFrame) -> pd.DataFrame:
    """A score table with one row per conversation and permutation, and one column per system.

    Conversations and systems stand in the order of their first appearance, permutations in
    ascending order. Raises ValueError where a column lacks, or a conversation has no score of the
    script, or not one of every system for the same permutations.
    """
    keys = ["topic", "permutation", "run"]
    need_columns(scores, [*keys, "value"])
    topics = scores["topic"].unique()
    wide = scores.pivot_table(
        index=["topic", "permutation"], columns="run", values="value", aggfunc="first"
    )
    wide = wide.reindex(topics, level="topic")[scores["run"].unique()]
    is_complete = wide.notna().all(axis=1)
    scripts = wide[is_complete].query(f"permutation == {SCRIPT}")
    with_script = set(scripts.index.get_level_values("topic"))
    unclear = set(wide[~is_complete].index.get_level_values("topic"))
    unclear |= set(scores.loc[scores.duplicated(keys) | scores["value"].isna(), "topic"])
    for topic in topics:
        if topic not in with_script or topic in unclear:
            raise ValueError(
                f"topic {topic}: every system needs one score for the same permutations,"
                " 0 among them"
            )
    return wide


@_measure("Preference", range="0 to 1", ideal="none", direction="neither")
def preference(scores: pd.DataFrame) -> pd.DataFrame:
    r"""How often one system beats another over the permutations of each conversation.

    .. math:: wins(a, b) = \frac{|\{\pi : M_a(\pi) > M_b(\pi)\}|}{|\{\pi\}|}

    - :math:`a, b`: two systems
    - :math:`\pi`: an order of the utterances of a conversation
    - :math:`M_a(\pi)`: score of system a on that order
    - :math:`wins`: share of the orders on which a scores higher than b

    Parameters
    ----------
    scores : DataFrame, columns run, topic, permutation, value
        Every system on the same permutations of a conversation, 0 among them.

    Returns
    -------
    DataFrame, columns topic, a, b, wins, ties, permutations
        Shares of the permutations on which a scores higher than b, and on which they are equal (to
        1e-12); every ordered pair.

    Raises
    ------
    ValueError
        As `score_matrix`.

    Notes
    -----
    permutations, Figure 2.

    Examples
    --------
    >>> values = {"permutation": [0, 1, 0, 1], "value": [5, 1, 3, 1]}
    >>> scores = pd.DataFrame({"run": list("aabb"), "topic": "1", **values})
    >>> preference(scores)
      topic  a  b  wins  ties  permutations
    0     1  a  b   0.5   0.5             2
    1     1  b  a   0.0   0.5             2
    """
    wide = score_matrix(scores)
    topics = wide.index.get_level_values("topic")
    values = wide.to_numpy(dtype=np.float64)  # (orders of all conversations, systems)
    begins = starts(topics)
    n_orders = np.diff(begins, append=len(values))
    n_systems = len(wide.columns)
    a, b = np.nonzero(~np.eye(n_systems, dtype=bool))
    gap = values[:, a] - values[:, b]
    wins = np.add.reduceat(gap > _EQUAL, begins, dtype=np.int64) / n_orders[:, None]
    ties = np.add.reduceat(np.abs(gap) <= _EQUAL, begins, dtype=np.int64) / n_orders[:, None]
    return pd.DataFrame(
        {
            "topic": np.repeat(topics[begins], len(a)),
            "a": np.tile(wide.columns[a], len(begins)),
            "b": np.tile(wide.columns[b], len(begins)),
            "wins": wins.ravel(),
            "ties": ties.ravel(),
            "permutations": np.repeat(n_orders, len(a)),
        }
    )


@_measure("Stability of a ranking", range="-1 to 1", ideal="1", direction="higher is better")
def ranking_stability(
    scores: pd.DataFrame,
    sizes: PermutationNumbers,
    rng: np.random.Generator,
    *,
    repeats: Repeats = 1000,
    reference: pd.Series | None = None,
) -> pd.DataFrame:
    r"""How well a ranking of systems from few permutations agrees with that from all of them.

    In each repeat, `size` permutations of every conversation are drawn without replacement (all of
    them where there are fewer); systems are ranked by their mean and compared, pair by pair, with
    the reference.

    .. math:: \tau = \frac{\#\text{concordant} - \#\text{discordant}}{K (K - 1) / 2}

    - :math:`\tau`: Kendall's correlation of two rankings of the systems: those of two orders
    - :math:`K`: number of systems

    Parameters
    ----------
    scores : DataFrame, columns run, topic, permutation, value
        At least two systems; permutation 0, the order of the script, is left out of the draws.
    rng : numpy.random.Generator
        The source of randomness.
    reference : Series, optional
        True mean score by system; the default is the mean of all the permutations given.

    Returns
    -------
    DataFrame, columns permutations, tau, low, same, best
        Mean Kendall tau with the reference and its 5th percentile, the share of repeats with the
        very same ranking, and with the same best system.

    Raises
    ------
    ValueError
        As `score_matrix`; if fewer than two systems are there, a conversation has no permutation
        but the script, or the reference lacks a system.

    Notes
    -----
    Beyond the paper, which takes 100 permutations. Equal means count as discordant.

    Examples
    --------
    >>> scores = pd.DataFrame({"run": list("aaabbb"), "topic": "1", "permutation": [0, 1, 2] * 2,
    ...     "value": [0.5, 0.6, 0.9, 0.3, 0.2, 0.1]})
    >>> ranking_stability(scores, [1, 2], np.random.default_rng(0), repeats=10)
       permutations  tau  low  same  best
    0             1  1.0  1.0   1.0   1.0
    1             2  1.0  1.0   1.0   1.0
    """
    wide = score_matrix(scores)
    n_systems = len(wide.columns)
    if n_systems < 2:
        raise ValueError(f"at least two systems are wanted, found {n_systems}")
    values_of_topics = _values_but_the_script(wide)
    truth = reference
    if truth is None:
        means_of_topics = [values.mean(axis=0) for values in values_of_topics]
        truth = pd.Series(np.mean(means_of_topics, axis=0), wide.columns)
    true_scores = truth.reindex(wide.columns).to_numpy(dtype=np.float64)
    if np.isnan(true_scores).any():
        raise ValueError(f"the reference has no {', '.join(wide.columns[np.isnan(true_scores)])}")

    distinct_sizes = np.array(sorted(set(sizes)))
    means = np.zeros((repeats, len(distinct_sizes), n_systems))
    # One conversation at a time: all the draws of all would not fit the memory.
    for values in values_of_topics:
        depths = np.minimum(distinct_sizes, len(values))
        drawn = rng.random((repeats, len(values))).argsort(axis=1)[:, : depths[-1]]
        sums = np.cumsum(values[drawn], axis=1)[:, depths - 1]
        means += sums / depths[:, None] / len(values_of_topics)
    a, b = np.array(list(combinations(range(n_systems), 2))).T
    gaps = means[..., a] - means[..., b]  # (repeats, sizes, pairs)
    agrees = gaps * (true_scores[a] - true_scores[b]) > 0
    tau = 2 * agrees.mean(axis=2) - 1
    return pd.DataFrame(
        {
            "permutations": distinct_sizes,
            "tau": tau.mean(axis=0),
            "low": np.percentile(tau, 5, axis=0, method="lower"),
            "same": agrees.all(axis=2).mean(axis=0),
            "best": (means.argmax(axis=2) == true_scores.argmax()).mean(axis=0),
        }
    )


def _values_but_the_script(wide: pd.DataFrame) -> list[Floats]:
    """Scores of each conversation without those of the script, shaped (permutations, systems)."""
    values_of_topics, topics_without = [], []
    for topic, rows in wide.groupby("topic", sort=False):
        values = rows.to_numpy(dtype=np.float64)[SCRIPT + 1 :]
        values_of_topics.append(values)
        if not len(values):
            topics_without.append(str(topic))
    if topics_without:
        raise ValueError(
            f"topics {', '.join(topics_without)} have no permutation besides the script:"
            " leave them out"
        )
    return values_of_topics
