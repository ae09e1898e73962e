"""What GFRC and GFRC2 share: which divergence an attribute set takes, weights, and the tidy table of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise.attributes import AttributeSet
from equipoise.divergences import distribution_similarity

UTILITY = "utility"
"""Name of the utility among the weights of an experience."""


def similarity(achieved: Floats, attribute: AttributeSet, ordinal: str, nominal: str) -> Floats:
    """DistrSim of achieved distributions against the target of an attribute set.

    ``attribute``: Gives the target, and by its kind the divergence. ``ordinal``, ``nominal``: Divergence for
    ordinal sets (rnod or nmd) and for nominal ones (jsd or nvd). Returns ndarray, shaped (...): Between 0 and 1
    (equal).

    gfrc section 3.1: JSD for nominal groups, NMD or RNOD for ordinal ones.
    """
    return distribution_similarity(achieved, attribute.target, ordinal if attribute.kind == "ordinal" else nominal)


def fairness_columns(attribute: AttributeSet, achieved: Floats, similarities: Floats) -> dict[str, Floats]:
    """Columns that show how an attribute set fares: ``D SET group`` for each group, and ``DistrSim SET``.

    Returns dict of str to ndarray, shaped (rows,).
    """
    columns = {f"D {attribute.name} {group}": achieved[:, index] for index, group in enumerate(attribute.groups)}
    return columns | {f"DistrSim {attribute.name}": similarities}


def normalised_weights(weights: Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float]:
    """Weights that sum to one.

    ``weights``: any non-negative numbers, one for each name; None weighs all names alike. Returns: In the order of
    ``names``.
    """
    given = dict.fromkeys(names, 1.0) if weights is None else dict(weights)
    if set(given) != set(names):
        raise ValueError(f"weights for {', '.join(given) or 'nothing'}; wanted one for each of {', '.join(names)}")
    numbers = np.array([given[name] for name in names], dtype=np.float64)
    if not np.isfinite(numbers).all() or (numbers < 0).any() or numbers.sum() == 0:
        raise ValueError(f"weights {given} are not non-negative numbers with at least one above zero")
    return dict(zip(names, (numbers / numbers.sum()).tolist(), strict=True))


def tidy_scores(places: pd.DataFrame, scores: Mapping[tuple[str, str], Floats]) -> pd.DataFrame:
    """Scores as a tidy table: for each row of ``places``, in their order, each score.

    ``scores`` are by attribute set (empty where a score belongs to none) and measure, shaped (places,). Returns the
    columns of ``places`` and attribute, measure, value.
    """
    table = places.loc[places.index.repeat(len(scores))].reset_index(drop=True)
    for column, index in (("attribute", 0), ("measure", 1)):
        names = pd.Series([key[index] for key in scores], dtype="str")
        table[column] = names.take(np.tile(np.arange(len(scores)), len(places))).set_axis(table.index)
    return table.assign(value=np.column_stack(list(scores.values())).ravel())
