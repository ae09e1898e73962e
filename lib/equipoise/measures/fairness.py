"""What GFRC and GFRC2 share: which divergence an attribute set takes, weights, and the tidy table of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.divergences import DIVERGENCES, distribution_similarity
from equipoise.tables import AttributeSet, NuggetTable

__all__ = ["UTILITY", "fairness_columns", "normalised_weights", "similarity", "tidy_scores"]

Floats = NDArray[np.float64]

UTILITY = "utility"
"""Name of the utility among the weights of an experience."""


def similarity(achieved: Floats, attribute: AttributeSet, ordinal: str, nominal: str) -> Floats:
    """DistrSim of achieved distributions against the target of an attribute set.

    Parameters
    ----------
    achieved : ndarray, shaped (..., groups)
    attribute : AttributeSet
        Gives the target, and by its kind the divergence.
    ordinal, nominal : str
        Divergence for ordinal sets (rnod or nmd) and for nominal ones (jsd or nvd).

    Returns
    -------
    ndarray, shaped (...)
        Between 0 and 1 (equal).

    Raises
    ------
    ValueError
        If a divergence is unknown or made for the other kind of groups.

    Notes
    -----
    gfrc section 3.1: JSD for nominal groups, NMD or RNOD for ordinal ones.

    Examples
    --------
    >>> ratings = AttributeSet("RATINGS", "ordinal", ("1", "2", "3", "4"), np.ones(4))
    >>> similarity(np.array([0, 0, 0.6, 0.4]), ratings, "rnod", "jsd").round(4)
    np.float64(0.6773)
    """
    for name, for_ordinal in ((ordinal, True), (nominal, False)):
        if name not in DIVERGENCES or DIVERGENCES[name].ordinal != for_ordinal:
            fitting = [other for other, divergence in DIVERGENCES.items() if divergence.ordinal == for_ordinal]
            kind = "ordinal" if for_ordinal else "nominal"
            raise ValueError(f"no divergence {name!r} for {kind} groups; there are {', '.join(fitting)}")
    return distribution_similarity(achieved, attribute.target, ordinal if attribute.kind == "ordinal" else nominal)


def fairness_columns(attribute: AttributeSet, achieved: Floats, similarities: Floats) -> dict[str, Floats]:
    """Columns that show how an attribute set fares: ``D SET group`` for each group, and ``DistrSim SET``.

    Parameters
    ----------
    attribute : AttributeSet
    achieved : ndarray, shaped (rows, groups)
    similarities : ndarray, shaped (rows,)

    Returns
    -------
    dict of str to ndarray, shaped (rows,)

    Examples
    --------
    >>> size = AttributeSet("SIZE", "ordinal", ("small", "large"), np.ones(2))
    >>> list(fairness_columns(size, np.array([[1.0, 0.0]]), np.array([0.5])))
    ['D SIZE small', 'D SIZE large', 'DistrSim SIZE']
    """
    columns = {f"D {attribute.name} {group}": achieved[:, index] for index, group in enumerate(attribute.groups)}
    return columns | {f"DistrSim {attribute.name}": similarities}


def normalised_weights(weights: Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float]:
    """Weights that sum to one.

    Parameters
    ----------
    weights : mapping of str to float, or None
        Any non-negative numbers, one for each name; None weighs all names alike.
    names : sequence of str

    Returns
    -------
    dict of str to float
        In the order of ``names``.

    Raises
    ------
    ValueError
        If a name has no weight, a weight no name, or a weight is negative or not finite, or all are zero.

    Examples
    --------
    >>> normalised_weights({"RATINGS": 1, "ORIGIN": 3}, ["ORIGIN", "RATINGS"])
    {'ORIGIN': 0.75, 'RATINGS': 0.25}
    """
    given = dict.fromkeys(names, 1.0) if weights is None else dict(weights)
    if set(given) != set(names):
        raise ValueError(f"weights for {', '.join(given) or 'nothing'}; wanted one for each of {', '.join(names)}")
    numbers = np.array([given[name] for name in names], dtype=np.float64)
    if not np.isfinite(numbers).all() or (numbers < 0).any() or numbers.sum() == 0:
        raise ValueError(f"weights {given} are not non-negative numbers with at least one above zero")
    return dict(zip(names, (numbers / numbers.sum()).tolist(), strict=True))


def tidy_scores(nuggets: NuggetTable, scores: Sequence[tuple[str, str, Floats]]) -> pd.DataFrame:
    """Scores of conversations as a tidy table.

    Parameters
    ----------
    nuggets : NuggetTable
        Gives run and topic of each conversation.
    scores : sequence of (attribute, measure, ndarray shaped (conversations,))
        An empty attribute where a score belongs to no attribute set.

    Returns
    -------
    DataFrame, columns run, topic, attribute, measure, value
        All scores of the first conversation, then of the second, and so on.

    Examples
    --------
    >>> from equipoise.tables import attribute_sets, nugget_table
    >>> sets = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})
    >>> rows = {"run": "r", "topic": "t", "turn": 1, "start": [5], "end": [6], "level": 1, "A": "1/2 1/2"}
    >>> tidy_scores(nugget_table(pd.DataFrame(rows), sets), [("", "R", np.array([0.5]))])
      run topic attribute measure  value
    0   r     t                 R    0.5
    """
    each = len(scores)
    conversations = nuggets.conversations
    rows = np.repeat(np.arange(len(conversations)), each)
    table = conversations.take(rows).reset_index(drop=True)
    for column, index in (("attribute", 0), ("measure", 1)):
        names = pd.Series([str(score[index]) for score in scores], dtype="str")
        table[column] = names.take(np.tile(np.arange(each), len(conversations))).set_axis(table.index)
    table["value"] = np.column_stack([score[2] for score in scores]).ravel()
    return table
