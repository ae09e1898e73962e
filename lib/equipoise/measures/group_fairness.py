"""What GFR, GFRC and GFRC2 share: DistrSim by the kind of groups, weights, tables of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, normalised, ratio
from equipoise.attributes import AttributeSet
from equipoise.divergences import distribution_similarity
from equipoise.problems import listed

UTILITY = "utility"
"""Name of the utility among the weights of an experience."""


def similarity(achieved: Floats, attribute: AttributeSet, ordinal: str, nominal: str) -> Floats:
    """DistrSim against the target of an attribute set, by the divergence for its kind."""
    divergence = ordinal if attribute.kind == "ordinal" else nominal
    return distribution_similarity(achieved, attribute.target, divergence)


def column_names(attribute: AttributeSet) -> list[str]:
    """Columns of an attribute set: the achieved share of each group, then DistrSim."""
    names = [f"D {attribute.name} {group}" for group in attribute.groups]
    return [*names, f"DistrSim {attribute.name}"]


def fairness_columns(
    attribute: AttributeSet, achieved: Floats, similarities: Floats
) -> dict[str, Floats]:
    """Achieved distributions, shaped (rows, groups), and their DistrSim as columns."""
    return dict(zip(column_names(attribute), (*achieved.T, similarities), strict=True))


def group_shares(
    attribute: AttributeSet,
    achieved: Floats,
    weight: Floats,
    conversation: Any,
    count: int,
    empty: Any = 0.0,
) -> dict[tuple[str, str], Floats]:
    """Weighted mean of what each group achieves in a conversation; NaN where nothing has weight.

    ``achieved``: shaped (places, groups). ``weight``, ``conversation``: of each place, shaped
    (places,). ``count``: how many conversations. ``empty``: the weight of what has every group
    alike, shaped (conversations,).
    """
    total = np.bincount(conversation, weights=weight, minlength=count) + empty
    alike = empty * (1 / len(attribute.groups))
    shares = {}
    for group, share in zip(attribute.groups, achieved.T, strict=True):
        sums = np.bincount(conversation, weights=weight * share, minlength=count) + alike
        shares[attribute.name, f"D(group={group})"] = ratio(sums, total, np.nan)
    return shares


def each_weight(weights: Mapping[str, float] | None, names: Sequence[str]) -> list[float]:
    """Weights in the order of ``names``, one for each; None weighs all alike."""
    by_name = dict.fromkeys(names, 1.0) if weights is None else dict(weights)
    if set(by_name) != set(names):
        raise ValueError(
            f"weights for {listed(by_name) or 'nothing'}; wanted one for each of {listed(names)}"
        )
    return [by_name[name] for name in names]


def weight_shares(weights: Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float]:
    """The same, divided by their sum."""
    shares = normalised(each_weight(weights, names), len(names), "weighting")
    return dict(zip(names, shares.tolist(), strict=True))


def tidy_scores(
    places: pd.DataFrame,
    scores: Mapping[tuple[str, str], Floats],
    seen: Mapping[tuple[str, str], Floats] | None = None,
) -> pd.DataFrame:
    """Scores as a tidy table: for each row of ``places``, in their order, each score.

    ``scores`` are by attribute set (empty where a score belongs to none) and measure, shaped
    (places,); NaN where a place has no such score, and no row. ``seen``: what share of its
    documents each could see, for a further column. Returns the columns of ``places`` and attribute,
    measure, value.
    """
    table = places.loc[places.index.repeat(len(scores))].reset_index(drop=True)
    # The names of all scores, again for each place.
    name_of_row = np.tile(np.arange(len(scores)), len(places))
    for column, place in (("attribute", 0), ("measure", 1)):
        names = pd.Series([key[place] for key in scores], dtype="str")
        table[column] = names.take(name_of_row).set_axis(table.index)
    table["value"] = np.column_stack(list(scores.values())).ravel()
    if seen is not None:
        table["seen"] = np.column_stack([seen[key] for key in scores]).ravel()
    return table.dropna(subset="value", ignore_index=True)
