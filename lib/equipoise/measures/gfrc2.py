"""GFRC2: group fairness and relevance of conversations as the experience of a user population.

Every relevant nugget is a place where a cluster of users leaves the conversation. What they have
read so far has a utility (graded nugget precision, GNP) and a group fairness (DistrSim of the
groups met so far); GFRC2 is the expected mixture of the two over the clusters.

References
----------
gfrc2: Sakai, T., Tao, S. and Song, Y.-I. (2025): Evaluating Group Fairness and Relevance in
Conversational Search: An Alternative Formulation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise import options
from equipoise.arrays import Floats, cumulative_sums, ranks, ratio, sums_by_case
from equipoise.attributes import AttributeSet
from equipoise.declared import checked
from equipoise.measures.gfrc import declared
from equipoise.measures.group_fairness import (
    UTILITY,
    fairness_columns,
    shares_by_group,
    similarity,
    table_of_scores,
    weight_shares,
)
from equipoise.measures.stop_models import STOP_MODELS, UTILITIES, Places
from equipoise.nuggets import NuggetTable
from equipoise.options import EXPONENTIAL_GAINS, Gains, Nominal, Ordinal, Patience, Weights


@declared("GNP", sources=("gfrc2",))
def graded_nugget_precision(
    start: ArrayLike, end: ArrayLike, level: ArrayLike, first: NDArray[np.intp]
) -> tuple[Floats, Floats, Floats]:
    r"""Graded nugget precision at the end of each relevant nugget.

    .. math:: GNP(wc) = \frac{GWCrel(wc)}{WCnonrel(wc) + GWCrel(wc)}, \qquad
              GWCrel(wc) = \sum_l l \cdot WCrel_l(wc)

    - :math:`wc`: a word position, the end of a relevant nugget
    - :math:`WCrel_l(wc)`: words up to there that belong to nuggets of level l
    - :math:`l`: relevance level
    - :math:`GWCrel(wc)`: the same words, each times its level
    - :math:`WCnonrel(wc)`: words up to there that belong to no relevant nugget

    Parameters
    ----------
    start, end, level : array_like of int, shaped (nuggets,)
        First and last word position (from 1, end inclusive) and relevance level of the relevant
        nuggets, those of a conversation together, in the order of positions.
    first : ndarray of int, shaped (conversations,)
        Row of the first nugget of each conversation (see `equipoise.arrays.starts`).

    Returns
    -------
    graded_words : ndarray, shaped (nuggets,)
        GWCrel, the words of relevant nuggets so far, times their levels.
    other_words : ndarray, shaped (nuggets,)
        WCnonrel, the words so far that belong to no relevant nugget.
    precision : ndarray, shaped (nuggets,)
        GNP, above 0 and at most 1.

    Notes
    -----
    gfrc2 Eqs. 15 and 16.

    Examples
    --------
    >>> graded_nugget_precision([32, 34], [33, 36], [2, 2], np.array([0]))[2].round(6)
    array([0.114286, 0.243902])
    """
    last_word = np.asarray(end, dtype=np.float64)
    words = last_word - np.asarray(start, dtype=np.float64) + 1
    # Every word up to the end of a nugget is read; those of no relevant nugget are the others.
    sums = cumulative_sums(np.column_stack([words * np.asarray(level), words]), first)
    graded_words, other_words = sums[:, 0], last_word - sums[:, 1]
    return graded_words, other_words, graded_words / (other_words + graded_words)


def _clusters(
    places: Places, stop_model: options.StopModel, utility: options.Utility
) -> dict[str, Floats]:
    """Share of the users who leave at each relevant nugget, and the utility of what they read."""
    nuggets, rows = places.nuggets, places.rows
    graded, nonrelevant, precision = graded_nugget_precision(
        nuggets.start[rows], nuggets.end[rows], nuggets.level[rows], places.first
    )
    clusters = {
        "probability": STOP_MODELS[stop_model](places),
        "GWCrel": graded,
        "WCnonrel": nonrelevant,
        "GNP": precision,
    }
    if utility != "gnp":
        clusters[UTILITY] = UTILITIES[utility](places)
    return clusters


def _fairness(
    places: Places, attribute: AttributeSet, ordinal: Ordinal, nominal: Nominal
) -> tuple[Floats, Floats]:
    """Mean membership of the nuggets so far (gfrc2 Eq. 18) at each cluster, and its DistrSim."""
    membership = places.nuggets.memberships[attribute.name]
    if len(places.rows) < len(membership):  # to take all of them would copy all of them
        membership = membership[places.rows]
    achieved = cumulative_sums(membership, places.first)
    n_so_far = ranks(places.first, len(achieved)) + 1
    achieved /= n_so_far[:, None]
    return achieved, similarity(achieved, attribute, ordinal, nominal)


@declared(
    "EGNP, EGF and GFRC2",
    ideal="close to 1",
    sources=("gfrc2",),
    names=dict.fromkeys(["EGNP", "EU", "EGF", "GFRC2"]),
)
def gfrc2(
    nuggets: NuggetTable,
    attributes: Mapping[str, AttributeSet],
    *,
    patience: Patience = 1000,
    ordinal: Ordinal = "rnod",
    nominal: Nominal = "jsd",
    weights: Weights | None = None,
    stop_model: options.StopModel = "words",
    utility: options.Utility = "gnp",
    gains: Gains = EXPONENTIAL_GAINS,
    by_group: options.ByGroup = False,
) -> pd.DataFrame:
    r"""EGNP, EGF and GFRC2 of every conversation: expected utility, group fairness, experience.

    .. math:: GFRC2 = \sum_{uc} Prob(uc)\, Experience(uc), \qquad Prob(wc) = 1 / L \text{ where a
    relevant nugget ends}

    - :math:`uc, wc`: a user cluster: those who leave at the end of one relevant nugget, word wc
    - :math:`Prob(uc)`: share of the users in it; Prob(wc) where it leaves at word wc
    - :math:`Experience(uc)`: weighted mean of GNP and the DistrSim of each attribute set at
      that place; EGNP and EGF are the same sum over one of them alone
    - :math:`L`: patience, the words a user is willing to read

    Other stopping models and utilities are those of `equipoise.measures.stop_models`, which use
    the gains; words and GNP need none.

    Parameters
    ----------
    nuggets : NuggetTable
    attributes : mapping of str to AttributeSet
        Sets to score; each has memberships in the table.

    Returns
    -------
    DataFrame, columns run, topic, attribute, measure, value
        Measures EGNP (EU with another utility), EGF per attribute set, GFRC2; each between 0 and 1.
        Users who leave without a relevant nugget add 0; `factors` shows how many do. With
        ``by_group`` also ``D(group=G)`` per attribute set, the share of each group that those
        expect who leave with a nugget.

    Raises
    ------
    ValueError
        If an option is not one of its choices, or a weight is missing.

    Notes
    -----
    gfrc2 Eqs. 11 to 21.

    Examples
    --------
    >>> from equipoise.attributes import read_attributes
    >>> from equipoise.nuggets import read_nuggets
    >>> sets = read_attributes("data/attributes/fairweb_researchers.yaml")
    >>> gfrc2(read_nuggets("data/conversations/R112.csv", sets), sets).round(6).head(4)
                    run topic attribute measure     value
    0  COPWA-CS-QD-MN-2  R112              EGNP  0.001728
    1  COPWA-CS-QD-MN-2  R112   PRONOUN     EGF  0.003875
    2  COPWA-CS-QD-MN-2  R112    HINDEX     EGF  0.002429
    3  COPWA-CS-QD-MN-2  R112             GFRC2  0.002677
    """
    shares = weight_shares(weights, [UTILITY, *attributes])
    places = Places(nuggets, np.flatnonzero(nuggets.relevant()), patience, gains)
    clusters = _clusters(places, stop_model, utility)
    probability = clusters["probability"]
    cases, n_cases = nuggets.conversation[places.rows], len(nuggets.conversations)

    utility_name = "EGNP" if utility == "gnp" else "EU"
    utilities = clusters.get(UTILITY, clusters["GNP"])
    expected = sums_by_case(cases, probability * utilities, n_cases)
    scores: dict[tuple[str, str], Floats] = {("", utility_name): expected}
    total = shares[UTILITY] * expected
    for name, attribute in attributes.items():
        achieved, similarities = _fairness(places, attribute, ordinal, nominal)
        expected = sums_by_case(cases, probability * similarities, n_cases)
        scores[name, "EGF"] = expected
        if by_group:
            means = shares_by_group(probability, achieved, cases, n_cases, mean=True)
            for group, share in zip(attribute.groups, means.T, strict=True):
                scores[name, f"D(group={group})"] = share
        total += shares[name] * expected
    scores["", "GFRC2"] = total
    return table_of_scores(nuggets.conversations, scores)


@checked
def user_clusters(
    nuggets: NuggetTable,
    attributes: Mapping[str, AttributeSet],
    *,
    patience: Patience = 1000,
    ordinal: Ordinal = "rnod",
    nominal: Nominal = "jsd",
    weights: Weights | None = None,
    stop_model: options.StopModel = "words",
    utility: options.Utility = "gnp",
    gains: Gains = EXPONENTIAL_GAINS,
) -> pd.DataFrame:
    r"""The user clusters of every conversation, as in gfrc2's Tables 1 and 2.

    .. math:: Experience(uc) = w_0\, GNP(uc) + \sum_m w_m\, GF^m(uc)

    One leaves at each relevant nugget. Columns are run, topic, turn, wc (the word position where it
    leaves), probability, GWCrel, WCnonrel, GNP, utility where it is another, then ``D SET group``
    of each group and ``DistrSim SET`` for each attribute set, and Experience. gfrc2 Eqs. 12 to 18.
    """
    shares = weight_shares(weights, [UTILITY, *attributes])
    places = Places(nuggets, np.flatnonzero(nuggets.relevant()), patience, gains)
    clusters = _clusters(places, stop_model, utility)
    table = nuggets.places(places.rows).assign(wc=nuggets.end[places.rows], **clusters)
    # The weights sum to 1, so that an experience lies between 0 and 1 as its parts do.
    experience = shares[UTILITY] * clusters.get(UTILITY, clusters["GNP"])
    for name, attribute in attributes.items():
        achieved, similarities = _fairness(places, attribute, ordinal, nominal)
        table = table.assign(**fairness_columns(attribute, achieved, similarities))
        experience += shares[name] * similarities
    return table.assign(Experience=experience)


def factors(clusters: pd.DataFrame) -> pd.DataFrame:
    r"""The two factors of an expected utility or EGF: how many leave, and what they have.

    .. math:: E[V] = \Bigl(\sum_{uc} Prob(uc)\Bigr) \cdot \frac{\sum_{uc} Prob(uc) V(uc)}{\sum_{uc}
    Prob(uc)}

    ``clusters`` are those of `user_clusters`. Columns are run, topic, part (utility, or the
    attribute set), served (the share of users that leaves at a nugget; the others leave with
    nothing), mean (of what those have; NaN where nobody does) and expected, their product. A
    conversation without relevant nuggets has no clusters, and no row.
    """
    column_of_part = {UTILITY: UTILITY if UTILITY in clusters else "GNP"}
    for name in clusters:
        if name.startswith("DistrSim "):
            column_of_part[name.removeprefix("DistrSim ")] = name
    tables = []
    for part, column in column_of_part.items():
        expected = clusters["probability"] * clusters[column]
        products = clusters[["run", "topic"]].assign(
            part=part, served=clusters["probability"], expected=expected
        )
        tables.append(products.groupby(["run", "topic", "part"], sort=False, as_index=False).sum())
    # The parts of a conversation next to each other.
    table = pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)
    table.insert(4, "mean", ratio(table["expected"], table["served"], np.nan))
    return table
