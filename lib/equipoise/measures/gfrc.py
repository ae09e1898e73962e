"""GFRC: group fairness and relevance of conversations.

A conversation is a series of system turns with relevant nuggets at word positions. R rewards
nuggets that come early. GF measures, turn by turn, the similarity between the groups of the nuggets
and a target distribution.

References
----------
gfrc: Sakai, T. (2023): Fairness-based Evaluation of Conversational Search: A Pilot Study.
Proceedings of EVIA 2023, pp. 5-13, doi:10.20736/0002001350.

gfrc2: Sakai, T., Tao, S. and Song, Y.-I. (2025): Evaluating Group Fairness and Relevance in
Conversational Search: An Alternative Formulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise import options
from equipoise.arrays import Floats, cumulative_sums, ratio, starts, sums_by_case
from equipoise.attributes import AttributeSet
from equipoise.declared import checked, measure
from equipoise.measures.group_fairness import (
    column_names,
    fairness_columns,
    shares_by_group,
    similarity,
    table_of_scores,
    weight_shares,
)
from equipoise.nuggets import NuggetTable
from equipoise.options import Gains, Nominal, Ordinal, Patience, PositionWeight

_FAMILY = "Conversations: GFRC and GFRC2"
declared = partial(measure, family=_FAMILY, range="0 to 1", ideal="1", direction="higher is better")
GAINS = {1: 0.5, 2: 1.0}
"""L1 and L2 as gfrc has them."""


def gain_values(levels: ArrayLike, gains: Mapping[int, float] = GAINS) -> Floats:
    """Gain of each nugget from its relevance level; level 0 has gain 0.

    gfrc section 6.2: L1 is 0.5, L2 is 1. gfrc2 section 4: L1 is 0.25, L2 is 0.75.
    """
    level = np.asarray(levels, dtype=np.int64)
    without_gain = sorted(set(np.unique(level).tolist()) - set(gains) - {0})
    if without_gain:
        raise ValueError(
            f"gains: the gain of level {', '.join(map(str, without_gain))} of the nuggets is "
            f"missing, got gains of levels {', '.join(map(str, sorted(gains)))}"
        )
    gain_of_level = np.zeros(max([0, *gains]) + 1)
    for number, gain in gains.items():
        gain_of_level[number] = gain
    return gain_of_level[level]


@declared("pw", sources=("gfrc", "gfrc2"))
def nugget_weights(
    end: ArrayLike, patience: Patience, position_weight: PositionWeight = "one-based"
) -> Floats:
    r"""Position-based weight pw of each nugget, from the position of its last word.

    .. math:: pw(n) = \max(0, 1 - (WC(n) - 1) / L) \quad\text{(one-based)}, \qquad
              pw(n) = \max(0, 1 - WC(n) / L) \quad\text{(zero-based)}

    - :math:`n`: a nugget
    - :math:`WC(n)`: its last word, counted from the conversation's first
    - :math:`L`: patience, the words a user is willing to read

    Parameters
    ----------
    end : array_like of int, shaped (nuggets,)
        WC(n), the word position at which each nugget ends, from 1.

    Returns
    -------
    ndarray, shaped (nuggets,)
        From 1 at the first word (one-based) to 0 beyond the patience.

    Raises
    ------
    ValueError
        If the patience is at most 1, or the weight is none of the three.

    Notes
    -----
    One-based: gfrc Eq. 6, gfrc2 Eq. 4. Zero-based: gfrc2 Eq. 7, as the FairWeb-2 campaign ran it.

    Examples
    --------
    >>> nugget_weights([1, 35, 1251], 1250)
    array([1.    , 0.9728, 0.    ])
    """
    words_before = np.asarray(end, dtype=np.float64)
    if position_weight == "one-based":
        words_before = words_before - 1
    return np.maximum(0.0, 1.0 - words_before / patience)


@declared("R", sources=("gfrc", "gfrc2"))
def relevance(
    end: ArrayLike,
    gain: ArrayLike,
    conversation: ArrayLike,
    conversations: int,
    patience: Patience,
    position_weight: PositionWeight = "one-based",
) -> Floats:
    r"""R score of every conversation: gains discounted by position, over a normaliser.

    .. math:: R(C) = \frac{1}{\mathcal N} \sum_i \sum_j pw(n_{ij})\, g(n_{ij})

    - :math:`C`: a conversation
    - :math:`n_{ij}`: nugget j of turn i
    - :math:`pw`: the position-based weight
    - :math:`g`: gain of the nugget, by its relevance level
    - :math:`\mathcal N`: normaliser, the sum that a conversation made of nuggets alone would
      have: (L + 1) / 2 for patience L

    The normaliser is that of a conversation in which every word is a nugget: (L + 1) / 2, or, with
    ``zero-based-own-normaliser``, (L - 1) / 2.

    Parameters
    ----------
    end, gain, conversation : array_like, shaped (nuggets,)
        Word position of the last word, gain, and index of the conversation of each relevant nugget.
    conversations : int
        Number of conversations.

    Returns
    -------
    ndarray, shaped (conversations,)
        Between 0 and 1; 0 without relevant nuggets.

    Raises
    ------
    ValueError
        As for `nugget_weights`.

    Notes
    -----
    gfrc Eqs. 3 and 7 (Eq. 8 leaves the "- 1" out by mistake); gfrc2 Eqs. 6 (one-based), 7
    (zero-based) and 9 (zero-based-own-normaliser).

    Examples
    --------
    >>> relevance([506, 560], [1, 0.5], [0, 0], 1, patience=1250).round(4)
    array([0.0014])
    """
    weights = nugget_weights(end, patience, position_weight)
    discounted = weights * np.asarray(gain, dtype=np.float64)
    total = sums_by_case(conversation, discounted, conversations)
    # Twice the normaliser, the sum of pw over all words that are read.
    if position_weight == "zero-based-own-normaliser":
        words = patience - 1
    else:
        words = patience + 1
    return total * 2 / words


def _achieved(
    nuggets: NuggetTable,
    rows: NDArray[np.intp],
    attribute: AttributeSet,
    distribution: options.Distribution,
) -> Floats:
    """Mean membership D(S) of each turn with relevant nuggets, shaped (turns, groups).

    The mean is over the nuggets of the turn, or of all turns so far where distributions are
    cumulative.
    """
    membership = nuggets.memberships[attribute.name][rows]
    conversation = nuggets.conversation[rows]
    turn_starts = starts(conversation, nuggets.turn[rows])
    if not len(turn_starts):
        return membership[:0]
    sums = np.add.reduceat(membership, turn_starts, axis=0)
    n_nuggets = np.diff(turn_starts, append=len(rows)).astype(np.float64)
    if distribution == "cumulative":
        # The mean over all nuggets so far, and not over the means of turns.
        first_turns = starts(conversation[turn_starts])
        sums = cumulative_sums(sums, first_turns)
        n_nuggets = cumulative_sums(n_nuggets, first_turns)
    achieved: Floats = sums / n_nuggets[:, None]
    return achieved


@declared("GF and GFRC", sources=("gfrc", "gfrc2"), names=dict.fromkeys(["GF", "GFRC", "D"]))
def gfrc(
    nuggets: NuggetTable,
    attributes: Mapping[str, AttributeSet],
    *,
    patience: Patience = 1250,
    gains: Gains = GAINS,
    position_weight: PositionWeight = "one-based",
    distribution: options.Distribution = "independent",
    empty_turns: options.EmptyTurns = "ignore",
    turn_weight: options.TurnWeight = "uniform",
    ordinal: Ordinal = "rnod",
    nominal: Nominal = "jsd",
    weights: options.Weights | None = None,
    alpha: options.Alpha | None = None,
    beyond_patience: options.BeyondPatience = "counted",
    by_group: options.ByGroup = False,
) -> pd.DataFrame:
    r"""R, GF and GFRC of every conversation.

    .. math:: GF(C) = \frac{1}{\mathcal N'} \sum_i PW(S_i) \sum_m w_m DistrSim^m(D^m(S_i) \| D^m_*),
    \qquad
              GFRC = \alpha R + (1 - \alpha) GF

    - :math:`C, S_i`: a conversation, and its system turn i
    - :math:`PW(S_i)`: weight of the turn; 1 in the papers
    - :math:`\mathcal N'`: normaliser, the sum of these weights
    - :math:`w_m`: weight of attribute set m
    - :math:`DistrSim^m`: similarity of two distributions over the groups of attribute set m
    - :math:`D^m, D^m_*`: what the nuggets of the turn achieve, and the target
    - :math:`R, \alpha`: the R score, and its weight; by default it weighs as much as one
      attribute set

    Parameters
    ----------
    nuggets : NuggetTable
    attributes : mapping of str to AttributeSet
        Sets to score; each has memberships in the table.

    Returns
    -------
    DataFrame, columns run, topic, attribute, measure, value
        Measures R, GF per attribute set, GF with an empty attribute (the weighted mean) and GFRC;
        each between 0 and 1. GF is 0 where no turn counts. With ``by_group`` also ``D(group=G)``
        per attribute set, the achieved share of each group, a mean over the turns with their
        weights; no row where no turn counts.

    Raises
    ------
    ValueError
        If an option is not one of its choices, there is no attribute set, a level has no gain, or
        ``turn_weight`` "largest-nugget" meets ``empty_turns`` "uniform": a turn without nuggets has
        no largest nugget.

    Notes
    -----
    gfrc Eqs. 3 to 10, gfrc2 Eqs. 1 to 10. The paper names no normaliser for turn weights other than
    1; the sum of the weights keeps GF a mean.

    Examples
    --------
    >>> from equipoise.attributes import read_attributes
    >>> from equipoise.nuggets import read_nuggets
    >>> sets = read_attributes("data/attributes/fairweb_movies.yaml")
    >>> movies = read_nuggets("data/conversations/M002.csv", sets)
    >>> gfrc(movies, sets).round(4).head(5)
          run topic attribute measure   value
    0  bing-1  M002                 R  0.0143
    1  bing-1  M002   RATINGS      GF  0.5784
    2  bing-1  M002    ORIGIN      GF  0.4492
    3  bing-1  M002                GF  0.5138
    4  bing-1  M002              GFRC  0.3473
    """
    if not attributes:
        raise ValueError("GF needs at least one attribute set")
    if turn_weight == "largest-nugget" and empty_turns == "uniform":
        raise ValueError(
            "turn_weight largest-nugget needs empty_turns ignore:"
            " an empty turn has no largest nugget"
        )
    if alpha is None:
        alpha = 1 / (len(attributes) + 1)
    shares = weight_shares(weights, list(attributes))
    n_conversations = len(nuggets.conversations)
    counts = nuggets.relevant()
    if beyond_patience == "ignored":
        counts &= nuggets.end <= patience
    rows = np.flatnonzero(counts)
    conversation, end = nuggets.conversation[rows], nuggets.end[rows]
    gain = gain_values(nuggets.level[rows], gains)
    r = relevance(end, gain, conversation, n_conversations, patience, position_weight)

    # Turns with relevant nuggets, each with its conversation and weight.
    turn_starts = starts(conversation, nuggets.turn[rows])
    cases = conversation[turn_starts]
    weight = np.ones(len(turn_starts))
    if turn_weight == "largest-nugget" and len(turn_starts):
        nugget_weight = nugget_weights(end, patience, position_weight)
        weight = np.maximum.reduceat(nugget_weight, turn_starts)
    n_empty = np.zeros(0)
    if empty_turns == "uniform":
        # All empty turns of a conversation are one item, with their number as its weight.
        n_full = sums_by_case(cases, np.ones(len(cases)), n_conversations)
        n_empty = nuggets.turns_held - n_full
        cases = np.append(cases, np.arange(n_conversations))
        weight = np.append(weight, n_empty)
    total_weight = sums_by_case(cases, weight, n_conversations)

    scores: dict[tuple[str, str], Floats] = {("", "R"): r}
    gf = np.zeros(n_conversations)
    for name, attribute in attributes.items():
        achieved = _achieved(nuggets, rows, attribute, distribution)
        uniform = np.full((len(n_empty), len(attribute.groups)), 1 / len(attribute.groups))
        achieved = np.concatenate([achieved, uniform])
        similarities = similarity(achieved, attribute, ordinal, nominal)
        sums = sums_by_case(cases, similarities * weight, n_conversations)
        scores[name, "GF"] = ratio(sums, total_weight, 0.0)
        if by_group:
            means = shares_by_group(weight, achieved, cases, n_conversations, mean=True)
            for group, share in zip(attribute.groups, means.T, strict=True):
                scores[name, f"D(group={group})"] = share
        gf += shares[name] * scores[name, "GF"]
    scores["", "GF"] = gf
    scores["", "GFRC"] = alpha * r + (1 - alpha) * gf
    return table_of_scores(nuggets.conversations, scores)


@checked
def turns(
    nuggets: NuggetTable,
    attributes: Mapping[str, AttributeSet],
    *,
    distribution: options.Distribution = "independent",
    ordinal: Ordinal = "rnod",
    nominal: Nominal = "jsd",
) -> pd.DataFrame:
    """Achieved distribution and DistrSim of every turn with relevant nuggets, as in gfrc's Table 2.

    Columns are run, topic, turn and, for each attribute set, ``D SET group`` of each group and
    ``DistrSim SET``.
    """
    rows = np.flatnonzero(nuggets.relevant())
    turn_starts = starts(nuggets.conversation[rows], nuggets.turn[rows])
    table = nuggets.places(rows[turn_starts])
    for attribute in attributes.values():
        achieved = _achieved(nuggets, rows, attribute, distribution)
        similarities = similarity(achieved, attribute, ordinal, nominal)
        table = table.assign(**fairness_columns(attribute, achieved, similarities))
    return table


@checked
def nugget_scores(
    nuggets: NuggetTable,
    *,
    patience: Patience = 1250,
    gains: Gains = GAINS,
    position_weight: PositionWeight = "one-based",
) -> pd.DataFrame:
    """Weight, gain and discounted gain of every relevant nugget, as in gfrc's Table 1.

    Columns are run, topic, turn, wc (the position of its last word), nugget (the name of its
    entity, or empty), pw, g and ``pw g``.
    """
    rows = np.flatnonzero(nuggets.relevant())
    weight = nugget_weights(nuggets.end[rows], patience, position_weight)
    gain = gain_values(nuggets.level[rows], gains)
    scores = {
        "wc": nuggets.end[rows],
        "nugget": nuggets.names[rows],
        "pw": weight,
        "g": gain,
        "pw g": weight * gain,
    }
    return nuggets.places(rows).assign(**scores)


def steps(
    scores: pd.DataFrame, fairness: pd.DataFrame, attributes: Mapping[str, AttributeSet]
) -> pd.DataFrame:
    """R nugget by nugget, then GF of each attribute set turn by turn, as in gfrc2's Table 4.

    ``scores`` and ``fairness`` are the tables of `nugget_scores` and `turns`. To the columns of the
    former come section (``R`` or ``GF SET``), row (which nugget of its conversation, or which
    turn), ``D 1``, ``D 2`` and so on (the groups in their order) and DistrSim.
    """
    nugget_number = scores.groupby(["run", "topic"]).cumcount() + 1
    sections = [scores.assign(section="R", row=nugget_number)]
    for name, attribute in attributes.items():
        section = fairness[["run", "topic", "turn", *column_names(attribute)]]
        groups = [f"D {number}" for number in range(1, len(attribute.groups) + 1)]
        section = section.set_axis(["run", "topic", "row", *groups, "DistrSim"], axis=1)
        sections.append(section.assign(section=f"GF {name}"))
    return pd.concat(sections, ignore_index=True)
