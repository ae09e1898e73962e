"""What permuting conversations does to scores, sampled beside exact values.

Scores are tables with the columns run, topic, permutation, value; see `equipoise.measures.orders`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, starts
from equipoise.measures.orders import SCRIPT, score_matrix


def performance(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean score of every system in the original order and over permutations, with extremes.

    Returns columns run, original, minimum, mean, maximum: means over conversations of the order of
    the script, and of the lowest, the mean and the highest value over the permutations of each
    conversation, the script among them.

    permutations, Table 2.
    """
    wide = score_matrix(scores)
    by_topic = wide.groupby("topic", sort=False)
    means = pd.DataFrame(
        {
            "original": wide.xs(SCRIPT, level="permutation").mean(),
            "minimum": by_topic.min().mean(),
            "mean": by_topic.mean().mean(),
            "maximum": by_topic.max().mean(),
        }
    )
    return means.reset_index(names="run")


def conversation_leads(scores: pd.DataFrame) -> Floats:
    """Largest lead of a system over another on any order, by conversation.

    Shaped (conversations, systems, systems); on the diagonal the lead over the mean of the others.
    """
    wide = score_matrix(scores)
    values, n_systems = wide.to_numpy(dtype=np.float64), len(wide.columns)
    if n_systems < 2:
        raise ValueError(f"at least two systems are wanted, found {n_systems}")
    leads = values[:, :, None] - values[:, None, :]  # (orders, systems, systems)
    mean_of_others = (values.sum(axis=1, keepdims=True) - values) / (n_systems - 1)
    diagonal = np.arange(n_systems)
    leads[:, diagonal, diagonal] = values - mean_of_others
    return np.maximum.reduceat(leads, starts(wide.index.get_level_values("topic")))


def largest_differences(scores: pd.DataFrame) -> pd.DataFrame:
    r"""How far permutations can put one system ahead of another.

    .. math::
        D_{ab} = \frac{1}{C} \sum_c \max_\pi (y_{c\pi a} - y_{c\pi b}), \qquad
        D_{aa} = \frac{1}{C} \sum_c \max_\pi
        \Bigl(y_{c\pi a} - \frac{1}{K - 1} \sum_{b \ne a} y_{c\pi b}\Bigr)

    Returns columns model and one per system: row a, column b: the largest mean lead of a over b; on
    the diagonal, of a over the mean of the others. Without negative entries, every system can be
    made the better one of every pair.

    permutations, Table 3.
    """
    systems = list(scores["run"].unique())
    largest = conversation_leads(scores).mean(axis=0)
    return pd.DataFrame(largest, columns=systems, index=systems).reset_index(names="model")


def conversation_spread(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean over systems of each conversation under each permutation.

    Returns columns topic, permutation, value, rank: rank is the share of the permutations of the
    conversation that score strictly higher (at 12 decimals), so 0 is the best order.

    permutations, Figure 1.
    """
    means = score_matrix(scores).mean(axis=1)
    by_topic = means.round(12).groupby("topic", sort=False)
    n_higher = by_topic.rank(method="min", ascending=False) - 1
    share_higher = n_higher / by_topic.transform("size")
    return pd.DataFrame({"value": means, "rank": share_higher}).reset_index()


def _standard_errors(table: pd.DataFrame, n_drawn: pd.Series, keys: Sequence[str]) -> pd.Series:
    r"""Of means over conversations, of each of which some different orders are drawn.

    .. math:: SE = \frac{1}{C} \sqrt{\sum_c \frac{\sigma_c^2}{m_c} \cdot \frac{N_c - m_c}{N_c - 1}}
    """
    n_undrawn = table["orders"] - n_drawn
    share_undrawn = (n_undrawn / (table["orders"] - 1).clip(lower=1)).clip(lower=0)
    variance = table["sd"] ** 2 / n_drawn * share_undrawn
    groups = variance.groupby([table[key] for key in keys], sort=False)
    return (np.sqrt(groups.sum()) / groups.size()).rename("standard error")


def complete(exact: pd.DataFrame) -> pd.DataFrame:
    """Exact values of the systems that have them for every conversation."""
    return exact.groupby("run", sort=False).filter(lambda rows: bool(rows["mean"].notna().all()))


def sampling_error(exact: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """What sampled permutations say of each system beside what is exactly so over all valid orders.

    ``exact``: columns run, topic, orders, mean, sd, minimum, maximum; systems with missing values
    are left out. ``scores``: of the sampled orders; the order of the script is not counted as
    drawn. Returns columns run, mean, sampled mean, error, standard error, minimum, sampled minimum,
    maximum, sampled maximum: means over conversations; error is sampled minus exact.

    Beyond the paper, which samples 100 orders and leaves the exact distribution to future work
    (section 5).
    """
    wide = score_matrix(scores)
    drawn = wide.drop(SCRIPT, level="permutation").melt(ignore_index=False).reset_index()
    by_topic = drawn.groupby(["run", "topic"], sort=False)["value"]
    sampled = pd.DataFrame(
        {
            "drawn": by_topic.size(),
            "sampled mean": by_topic.mean(),
            "sampled minimum": by_topic.min(),
            "sampled maximum": by_topic.max(),
        }
    )
    exact_index = exact.set_index(["run", "topic"]).index
    absent = sampled.index.difference(exact_index, sort=False)
    if len(absent):
        run = absent[0][0]
        topics = ", ".join(topic for name, topic in absent if name == run)
        raise ValueError(f"no exact row of {run} for topics {topics}")

    joined = sampled.reset_index().merge(complete(exact), on=["run", "topic"])
    means = joined.groupby("run", sort=False).mean(numeric_only=True)
    # What is left below the twelfth digit is rounding.
    means["error"] = (means["sampled mean"] - means["mean"]).round(12)
    means["standard error"] = _standard_errors(joined, joined["drawn"], ["run"])
    columns = ["run", "mean", "sampled mean", "error", "standard error"]
    columns += ["minimum", "sampled minimum", "maximum", "sampled maximum"]
    return means.reset_index()[columns]


def standard_errors(exact: pd.DataFrame, sizes: Sequence[int]) -> pd.DataFrame:
    """Standard error of a system's mean by how many different orders of a conversation are drawn.

    Returns columns run, permutations, standard error, by system in the order of `exact`, then by
    size.

    Beyond the paper: the error follows from the exact standard deviation over all orders.
    """
    if exact["sd"].isna().any() or min(sizes) < 1:
        raise ValueError("standard errors need every standard deviation, and sizes from 1")
    table = exact.merge(pd.DataFrame({"permutations": sorted(set(sizes))}), how="cross")
    n_drawn = table["permutations"].clip(upper=table["orders"])
    return _standard_errors(table, n_drawn, ["run", "permutations"]).reset_index()
