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

from equipoise.arrays import starts
from equipoise.declare import measure
from equipoise.options import PermutationNumbers, Repeats
from equipoise.problems import need_columns

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
    unclear = scores.duplicated(keys) | scores["value"].isna()
    wide = scores.pivot_table(index=keys[:2], columns="run", values="value", aggfunc="first")
    wide = wide.reindex(topics, level="topic")[scores["run"].unique()]
    whole = wide[wide.notna().all(axis=1)].index
    wrong = {*topics} - {topic for topic, number in whole if number == SCRIPT}
    wrong |= {
        *scores.loc[unclear, "topic"],
        *wide.index.difference(whole).get_level_values("topic"),
    }
    if wrong:
        first = next(topic for topic in topics if topic in wrong)
        raise ValueError(
            f"topic {first}: every system needs one score for the same permutations, 0 among them"
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
    >>> scores = pd.DataFrame({"run": list("aabb"), "topic": "1", "permutation": [0, 1, 0, 1], "value": [5, 1, 3, 1]})
    >>> preference(scores)
      topic  a  b  wins  ties  permutations
    0     1  a  b   0.5   0.5             2
    1     1  b  a   0.0   0.5             2
    """
    wide = score_matrix(scores)
    topics = wide.index.get_level_values("topic")
    values, first = wide.to_numpy(dtype=np.float64), starts(topics)
    sizes = np.diff(first, append=len(values))
    one, other = np.nonzero(~np.eye(len(wide.columns), dtype=bool))
    gap = values[:, one] - values[:, other]
    shares = {
        name: (np.add.reduceat(holds, first, dtype=np.int64) / sizes[:, None]).ravel()
        for name, holds in {"wins": gap > _EQUAL, "ties": np.abs(gap) <= _EQUAL}.items()
    }
    pairs = {
        name: np.tile(wide.columns[side], len(first))
        for name, side in {"a": one, "b": other}.items()
    }
    table = pd.DataFrame({"topic": np.repeat(topics[first], len(one)), **pairs, **shares})
    return table.assign(permutations=np.repeat(sizes, len(one)))


@_measure("Stability of a ranking", range="-1 to 1", ideal="1", direction="higher is better")
def ranking_stability(
    scores: pd.DataFrame,
    sizes: PermutationNumbers,
    rng: np.random.Generator,
    *,
    repeats: Repeats = 1000,
    reference: pd.Series | None = None,
) -> pd.DataFrame:
    r"""How well a ranking of systems from few permutations agrees with the ranking from all of them.

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
    systems = len(wide.columns)
    drawn = {
        topic: part.to_numpy(dtype=np.float64)[SCRIPT + 1 :]
        for topic, part in wide.groupby("topic", sort=False)
    }
    if fixed := [str(topic) for topic, values in drawn.items() if not len(values)]:
        raise ValueError(
            f"topics {', '.join(fixed)} have no permutation besides the script: leave them out"
        )
    if systems < 2:
        raise ValueError(f"at least two systems are wanted, found {systems}")
    means_of_all = pd.Series(
        np.mean([values.mean(axis=0) for values in drawn.values()], axis=0), wide.columns
    )
    truth = (
        (means_of_all if reference is None else reference)
        .reindex(wide.columns)
        .to_numpy(dtype=np.float64)
    )
    if np.isnan(truth).any():
        raise ValueError(f"the reference has no {', '.join(wide.columns[np.isnan(truth)])}")
    wanted = np.array(sorted(set(sizes)))
    means = np.zeros((repeats, len(wanted), systems))
    for values in (
        drawn.values()
    ):  # one conversation at a time: all the draws of all would not fit the memory
        reach = np.minimum(wanted, len(values))
        shuffled = rng.random((repeats, len(values))).argsort(axis=1)[:, : reach[-1]]
        means += np.cumsum(values[shuffled], axis=1)[:, reach - 1] / reach[:, None] / len(drawn)
    first, second = np.array(list(combinations(range(systems), 2))).T
    agrees = (means[..., first] - means[..., second]) * (truth[first] - truth[second]) > 0
    tau = 2 * agrees.mean(axis=2) - 1
    return pd.DataFrame(
        {
            "permutations": wanted,
            "tau": tau.mean(axis=0),
            "low": np.percentile(tau, 5, axis=0, method="lower"),
            "same": agrees.all(axis=2).mean(axis=0),
            "best": (means.argmax(axis=2) == truth.argmax()).mean(axis=0),
        }
    )
