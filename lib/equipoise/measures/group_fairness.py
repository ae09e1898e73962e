"""What GFR, GFRC and GFRC2 share: DistrSim, disaggregation by group, weights, tables of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Floats, normalised, ratio, sums_by_case
from equipoise.attributes import AttributeSet
from equipoise.divergences import distribution_similarity
from equipoise.errors import listed

UTILITY = "utility"
"""Name of the utility among the weights of an experience."""


def similarity(achieved: Floats, attribute: AttributeSet, ordinal: str, nominal: str) -> Floats:
    """DistrSim to the target of an attribute set, by the divergence for its kind."""
    divergence = ordinal if attribute.kind == "ordinal" else nominal
    return distribution_similarity(achieved, attribute.target, divergence)


def shares_by_group(
    contribution: Floats,
    members: Floats,
    cases: NDArray[np.intp],
    n_cases: int,
    *,
    mean: bool,
) -> Floats:
    """Sum, or weighted mean, of the items of each case, disaggregated by group.

    ``contribution`` and ``cases`` are shaped (items,), ``members`` (items, groups). Returns an
    array shaped (cases, groups); a mean is NaN where nothing contributes.
    """
    columns = [sums_by_case(cases, contribution * share, n_cases) for share in members.T]
    shares = np.column_stack(columns)
    if not mean:
        return shares
    total = sums_by_case(cases, contribution, n_cases)
    return ratio(shares, np.broadcast_to(total[:, None], shares.shape), np.nan)


def need_same_sets(memberships: Mapping[str, object], attributes: Mapping[str, object]) -> None:
    """Raise unless there are memberships in each attribute set, and in no other."""
    if set(memberships) != set(attributes):
        raise ValueError(
            f"memberships in {sorted(memberships)}, sets {sorted(attributes)}: the same are needed"
        )


def column_names(attribute: AttributeSet) -> list[str]:
    """Columns of an attribute set: the achieved share of each group, then DistrSim."""
    names = [f"D {attribute.name} {group}" for group in attribute.groups]
    return [*names, f"DistrSim {attribute.name}"]


def fairness_columns(
    attribute: AttributeSet, achieved: Floats, similarities: Floats
) -> dict[str, Floats]:
    """Achieved distributions, shaped (rows, groups), and their DistrSim as columns."""
    return dict(zip(column_names(attribute), (*achieved.T, similarities), strict=True))


def each_weight(weights: Mapping[str, float] | None, names: Sequence[str]) -> list[float]:
    """Weights in the order of ``names``, one for each; None weighs all alike."""
    by_name = dict.fromkeys(names, 1.0) if weights is None else dict(weights)
    if set(by_name) != set(names):
        raise ValueError(
            f"weights must be for each of {listed(names)}, got {listed(by_name) or 'none'}"
        )
    return [by_name[name] for name in names]


def weight_shares(weights: Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float]:
    """The same, divided by their sum."""
    shares = normalised(each_weight(weights, names), len(names), "weighting")
    return dict(zip(names, shares.tolist(), strict=True))


def table_of_scores(
    places: pd.DataFrame,
    scores: Mapping[tuple[str, str], ArrayLike],
    seen: Mapping[tuple[str, str], ArrayLike] | None = None,
) -> pd.DataFrame:
    """Scores as a tidy table: for each row of ``places``, in their order, each score.

    ``scores`` are by attribute set (empty where a score belongs to none) and measure, shaped
    (places,); there is no row where one is NaN. ``seen``: the share of its documents that each
    score rests on, for a further column. Returns the columns of ``places`` and attribute, measure,
    value.
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
