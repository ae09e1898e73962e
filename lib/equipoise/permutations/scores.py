"""What permutations of a conversation do to the comparison of systems.

A score table has one row per system, conversation and permutation: ``run, topic, permutation,
value``. The value is the mean of a measure over the utterances of the conversation, and permutation
0 is the original order.

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
from equipoise.declared import measure
from equipoise.errors import need_columns
from equipoise.options import PermutationNumbers, Repeats

ORIGINAL = 0  # number of the original order among the permutations of a conversation

_EQUAL = 1e-12  # scores that differ by no more are equal: the rest is rounding
_measure = partial(measure, family="Protocol and order of conversations", sources=("permutations",))


def score_matrix(scores: pd.DataFrame) -> pd.DataFrame:
    """A score table with one row per conversation and permutation, and one column per system.

    Conversations and systems come in the order of their first appearance, permutations in ascending
    order. Raises ValueError where a column is missing, or a conversation has no score of the
    original order, or not one score of every system for the same permutations.
    """
    keys = ["topic", "permutation", "run"]
    need_columns(scores, [*keys, "value"])
    topics = scores["topic"].unique()
    wide = scores.pivot_table(
        index=["topic", "permutation"], columns="run", values="value", aggfunc="first"
    )
    wide = wide.reindex(topics, level="topic")[scores["run"].unique()]
    has_original = set(scores.loc[scores["permutation"] == ORIGINAL, "topic"])
    incomplete = set(wide[wide.isna().any(axis=1)].index.get_level_values("topic"))
    incomplete |= set(scores.loc[scores.duplicated(keys) | scores["value"].isna(), "topic"])
    for topic in topics:
        if topic not in has_original or topic in incomplete:
            raise ValueError(
                f"topic {topic}: every system must have one score for the same permutations,"
                " 0 among them"
            )
    return wide


@_measure("Preference", range="0 to 1", ideal="none", direction="neither")
def preference(scores: pd.DataFrame) -> pd.DataFrame:
    r"""How often one system beats another over the permutations of each conversation.

    .. math:: wins(a, b) = \frac{|\{\pi : M_a(\pi) > M_b(\pi)\}|}{|\{\pi\}|}

    - :math:`a, b`: two systems
    - :math:`\pi`: a permutation of the utterances of a conversation
    - :math:`M_a(\pi)`: score of system a on that permutation
    - :math:`wins`: share of the permutations on which a scores higher than b

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
    values = wide.to_numpy(dtype=np.float64)  # (permutations of all conversations, systems)
    begins = starts(topics)
    n_permutations = np.diff(begins, append=len(values))
    a, b = np.nonzero(~np.eye(len(wide.columns), dtype=bool))
    gap = values[:, a] - values[:, b]
    wins = np.add.reduceat(gap > _EQUAL, begins, dtype=np.int64) / n_permutations[:, None]
    ties = np.add.reduceat(np.abs(gap) <= _EQUAL, begins, dtype=np.int64) / n_permutations[:, None]
    return pd.DataFrame(
        {
            "topic": np.repeat(topics[begins], len(a)),
            "a": np.tile(wide.columns[a], len(begins)),
            "b": np.tile(wide.columns[b], len(begins)),
            "wins": wins.ravel(),
            "ties": ties.ravel(),
            "permutations": np.repeat(n_permutations, len(a)),
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
    r"""How well a ranking of systems from few permutations agrees with the one from all of them.

    In each repeat, `size` permutations of every conversation are drawn without replacement (all of
    them where there are fewer). Systems are ranked by their mean and compared, pair by pair, with
    the reference.

    .. math:: \tau = \frac{\#\text{concordant} - \#\text{discordant}}{K (K - 1) / 2}

    - :math:`\tau`: Kendall's correlation of two rankings of the systems
    - :math:`K`: number of systems

    Parameters
    ----------
    scores : DataFrame, columns run, topic, permutation, value
        At least two systems; permutation 0, the original order, is not drawn.
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
        As `score_matrix`; if there are fewer than two systems, a conversation has no permutation
        other than the original order, or the reference misses a system.

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
        raise ValueError(f"a ranking needs at least two systems, got {n_systems}")
    values_of_topics = []
    for topic, rows in wide.groupby("topic", sort=False):
        values_of_topics.append(rows.to_numpy(dtype=np.float64)[ORIGINAL + 1 :])
        if len(rows) < 2:
            raise ValueError(
                f"topic {topic}: a permutation other than the original order is missing"
            )
    truth = reference
    if truth is None:
        means_of_topics = [values.mean(axis=0) for values in values_of_topics]
        truth = pd.Series(np.mean(means_of_topics, axis=0), wide.columns)
    true_scores = truth.reindex(wide.columns).to_numpy(dtype=np.float64)
    if np.isnan(true_scores).any():
        missing = ", ".join(wide.columns[np.isnan(true_scores)])
        raise ValueError(f"the reference has no {missing}")

    distinct_sizes = np.array(sorted(set(sizes)))
    means = np.zeros((repeats, len(distinct_sizes), n_systems))
    # One conversation at a time: the draws of all would not fit into memory.
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


def largest_leads(scores: pd.DataFrame) -> Floats:
    r"""Largest lead of a system over another on any permutation, by conversation.

    .. math:: D_{cab} = \max_\pi (y_{c\pi a} - y_{c\pi b}), \qquad D_{caa} = \max_\pi
        \Bigl(y_{c\pi a} - \frac{1}{K - 1} \sum_{b \ne a} y_{c\pi b}\Bigr)

    Shaped (conversations, systems, systems); on the diagonal the lead over the mean of the others.

    permutations, Table 3: means over conversations.
    """
    wide = score_matrix(scores)
    values, n_systems = wide.to_numpy(dtype=np.float64), len(wide.columns)
    if n_systems < 2:
        raise ValueError(f"a lead needs at least two systems, got {n_systems}")
    leads = values[:, :, None] - values[:, None, :]  # (permutations, systems, systems)
    mean_of_others = (values.sum(axis=1, keepdims=True) - values) / (n_systems - 1)
    diagonal = np.arange(n_systems)
    leads[:, diagonal, diagonal] = values - mean_of_others
    return np.maximum.reduceat(leads, starts(wide.index.get_level_values("topic")))


def conversation_spread(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean over systems of each conversation under each permutation.

    Returns columns topic, permutation, value, rank: rank is the share of the permutations of the
    conversation that score strictly higher (at 12 decimals), so 0 is the best permutation.

    permutations, Figure 1.
    """
    means = score_matrix(scores).mean(axis=1)
    by_topic = means.round(12).groupby("topic", sort=False)
    n_higher = by_topic.rank(method="min", ascending=False) - 1
    share_higher = n_higher / by_topic.transform("size")
    return pd.DataFrame({"value": means, "rank": share_higher}).reset_index()
