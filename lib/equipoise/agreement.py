"""Agreement of annotators: matched nuggets, Krippendorff's alpha, Cohen's kappa, and scores.

Nuggets of two annotators match if they share a word; those with the largest overlap are matched
first, each with one at most. A unit is a set of nuggets that match one another. Levels and groups
are compared on units that several annotators found; nuggets that one annotator alone found are
counted separately.

Needs the packages krippendorff and statsmodels (extra ``agreement``).

References
----------
Krippendorff, K. (2011): Computing Krippendorff's Alpha-Reliability. Cohen, J. (1960): A Coefficient
of Agreement for Nominal Scales.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from equipoise import options as opt
from equipoise.arrays import Booleans, Floats
from equipoise.attributes import AttributeSet
from equipoise.coverage import Seen
from equipoise.errors import Note, listed
from equipoise.measures.gfrc import GAINS, gfrc
from equipoise.measures.gfrc2 import gfrc2
from equipoise.nuggets import NuggetTable

COLUMNS = ["run", "topic", "attribute", "measure", "value", "low", "high", "units"]
_SAMPLES = 999
Kind = Literal["nominal", "ordinal", ""]
"""Of the distance of alpha; empty for kappa."""


def found_nuggets(tables: Mapping[str, NuggetTable]) -> pd.DataFrame:
    """Return the nuggets of all annotators with a number for each set of matching nuggets.

    Columns are ``annotator, row`` (in the annotator's table), ``run, topic, turn, start, end,
    level, entity, unit``. Only conversations that two annotators or more have count.
    """
    frames = []
    for annotator, table in tables.items():
        rows = np.flatnonzero(table.start > 0)
        frame = table.places(rows)
        frame.insert(0, "annotator", annotator)
        frame.insert(1, "row", rows)
        frame["start"], frame["end"] = table.start[rows], table.end[rows]
        frame["level"], frame["entity"] = table.level[rows], table.names[rows]
        frames.append(frame)
    keys = ["run", "topic"]
    nuggets = pd.concat(frames, ignore_index=True)
    is_shared = pd.MultiIndex.from_frame(nuggets[keys]).isin(_shared_conversations(tables))
    nuggets = nuggets[is_shared].reset_index(drop=True)
    nuggets["unit"] = _units(nuggets, keys)
    return nuggets


def _annotators_of(tables: Mapping[str, NuggetTable]) -> pd.DataFrame:
    """Return which conversations (run and topic) each annotator has, as a column of booleans."""
    indexes = {
        name: pd.MultiIndex.from_frame(table.conversations[["run", "topic"]])
        for name, table in tables.items()
    }
    every = pd.MultiIndex.from_tuples(
        dict.fromkeys(key for keys in indexes.values() for key in keys)
    )
    return pd.DataFrame({name: every.isin(index) for name, index in indexes.items()}, every)


def _shared_conversations(tables: Mapping[str, NuggetTable]) -> pd.Index:
    """Return run and topic of the conversations that two annotators or more have."""
    has = _annotators_of(tables)
    shared = has.index[has.sum(axis=1) >= 2]
    if shared.empty:
        firsts = [f"{run} {topic}" for run, topic in (has.index[has[name]][0] for name in has)]
        raise ValueError(
            "two annotators must have a conversation (run and topic) in common, got "
            f"{listed(firsts, 3)}; a file that names no run is one of its own (--map run=KEY)"
        )
    return shared


def _conversations_seen(tables: Mapping[str, NuggetTable]) -> list[Seen]:
    """Count the conversations that two annotators or more have; note where another is missing."""
    has = _annotators_of(tables)
    n_annotators = has.sum(axis=1)
    shared = n_annotators >= 2
    alone = [f"{run} {topic}" for run, topic in has.index[~shared]]
    n_incomplete = int((shared & (n_annotators < len(tables))).sum())
    if n_incomplete:
        note = f"{n_incomplete} of {shared.sum()} conversations miss an annotator, who has no label"
        warnings.warn(f"{note} there: alpha is of the pairs of labels that exist", Note, 3)
    needed, items = "annotations of two annotators or more", "conversations"
    return [Seen("", items, needed, int(shared.sum()), len(has), tuple(alone[:3]))]


def _units(nuggets: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Number the sets of nuggets that match one another."""
    number = nuggets.reset_index(names="number")
    edges = []
    for first, second in combinations(nuggets["annotator"].unique(), 2):
        a, b = number[number["annotator"] == first], number[number["annotator"] == second]
        pairs = a.merge(b, on=keys, suffixes=("", "_b"))
        shared = np.minimum(pairs["end"], pairs["end_b"]) - np.maximum(
            pairs["start"], pairs["start_b"]
        )
        span = np.maximum(pairs["end"], pairs["end_b"]) - np.minimum(
            pairs["start"], pairs["start_b"]
        )
        pairs["overlap"] = (shared + 1) / (span + 1)
        pairs = pairs[pairs["overlap"] > 0].sort_values(
            ["overlap", "number", "number_b"], ascending=[False, True, True]
        )
        if (pairs["turn"] != pairs["turn_b"]).any():
            raise ValueError("the annotators must have read the same text: turns differ")
        while len(pairs):
            # A pair that is the best of both its nuggets is matched.
            best = pairs[~pairs.duplicated("number") & ~pairs.duplicated("number_b")]
            edges.append(best[["number", "number_b"]].to_numpy())
            taken = pairs["number"].isin(best["number"]) | pairs["number_b"].isin(best["number_b"])
            pairs = pairs[~taken]
    ends = np.concatenate([np.empty((0, 2), dtype=np.int64), *edges]).T
    size = len(nuggets)
    graph = coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), (size, size))
    _, unit = connected_components(graph, directed=False)
    # A chain of matches may contain two nuggets of one annotator: the second is its own unit.
    again = pd.DataFrame({"unit": unit, "annotator": nuggets["annotator"]}).duplicated().to_numpy()
    unit = np.where(again, size + np.arange(size), unit)
    return pd.Series(pd.factorize(unit)[0], index=nuggets.index)


def alpha(labels: Floats, kind: Literal["nominal", "ordinal"]) -> float:
    """Compute Krippendorff's alpha of labels or of memberships.

    Parameters
    ----------
    labels : ndarray, shape (annotators, units) or (annotators, units, groups)
        Numbers, or the membership in each group; NaN where there is no label.
    kind : {"nominal", "ordinal"}
        Distance of two labels. Of memberships, nominal is half the sum of the differences, ordinal
        the squared earth mover's distance over the ranks of the groups.

    Returns
    -------
    float
        1 for full agreement, 0 for agreement by chance; NaN if all labels are equal or no unit has
        two labels.
    """
    import krippendorff

    vectors = labels[..., None] if labels.ndim == 2 else labels
    known: Booleans = np.asarray(~np.isnan(vectors).any(axis=-1))
    paired = known.sum(axis=0) >= 2
    vectors, known = vectors[:, paired], known[:, paired]
    distinct, codes = np.unique(vectors[known], axis=0, return_inverse=True)
    if len(distinct) < 2:
        return np.nan
    table = np.full(known.shape, np.nan)
    table[known] = codes.reshape(-1)
    if labels.ndim == 2:
        return float(krippendorff.alpha(reliability_data=table, level_of_measurement=kind))

    counts = np.bincount(codes.reshape(-1)) @ distinct  # how often each group is chosen

    def distance(v1: Any, v2: Any, **_: Any) -> Floats:
        a, b = distinct[np.asarray(v1, dtype=int)], distinct[np.asarray(v2, dtype=int)]
        if kind == "nominal":
            return np.asarray(np.abs(a - b).sum(axis=-1) / 2)
        ranks = np.cumsum(counts) - counts / 2
        gaps = np.abs(np.cumsum(a, axis=-1) - np.cumsum(b, axis=-1))[..., :-1]
        return np.asarray((gaps * np.diff(ranks)).sum(axis=-1) ** 2)

    metric: Any = distance
    return float(krippendorff.alpha(reliability_data=table, level_of_measurement=metric))


def kappa(labels: Floats) -> float:
    """Compute Cohen's kappa of two annotators' labels, shape (2, units); NaN if all are equal."""
    from statsmodels.stats.inter_rater import cohens_kappa

    names, codes = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        return np.nan
    first, second = codes.reshape(labels.shape)
    counts = np.zeros((len(names), len(names)))
    np.add.at(counts, (first, second), 1)
    return float(cohens_kappa(counts, return_results=False))


def agreement(
    tables: Mapping[str, NuggetTable],
    attributes: Mapping[str, AttributeSet],
    seed: int = 0,
    gains: opt.Gains | str | None = None,
) -> pd.DataFrame:
    """Compute the agreement of annotators, and the range of each score over them.

    Parameters
    ----------
    tables : mapping
        The nuggets of each of two annotators or more, by name.
    attributes : mapping
        The attribute sets of the nuggets.
    seed : int
        Of the bootstrap over units.
    gains : mapping, optional
        Gain of each level, for GFRC and GFRC2. Without it levels above 2 have no scores.

    Returns
    -------
    DataFrame
        Columns ``run, topic, attribute, measure, value, low, high, units``. Rows without a run are
        measures of agreement: the number of relevant units by how many annotators found them,
        ``Dice`` and kappa of two annotators, and alpha of the levels and groups. Alpha of the
        levels also exists with level 0 for nuggets that an annotator did not find. Kappa and alpha
        have 95% bootstrap intervals over units. An annotator without a conversation has no label
        there. Rows of a conversation that two annotators or more have are means of each score of
        GFRC and GFRC2 over the annotators; ``low`` and ``high`` are the lowest and the highest
        score.

    Raises
    ------
    ValueError
        With fewer than two annotators, no conversation of two of them, or texts that differ.
    """
    if len(tables) < 2:
        raise ValueError(
            f"agreement needs two annotators or more, got {', '.join(tables) or 'none'}"
        )
    nuggets = found_nuggets(tables)
    names = list(tables)
    shape = len(names), int(nuggets["unit"].max()) + 1 if len(nuggets) else 0
    positions = nuggets["annotator"].map(names.index).to_numpy(), nuggets["unit"].to_numpy()
    levels = np.full(shape, np.nan)
    levels[positions] = nuggets["level"]
    relevant = np.nan_to_num(levels).max(axis=0, initial=0) > 0
    found = (levels > 0).sum(axis=0)[relevant]

    rows = [
        {"measure": "units found by one", "value": (found == 1).sum(), "units": len(found)},
        {"measure": "units found by several", "value": (found > 1).sum(), "units": len(found)},
    ]
    if len(names) == 2:
        per_annotator = (levels > 0).sum()
        dice = 2 * (found > 1).sum() / per_annotator if per_annotator else np.nan
        rows.append({"measure": "Dice", "value": dice, "units": len(found)})
    # A unit that one annotator alone found, as level 0, says nothing of the others.
    counts = relevant | ((~np.isnan(levels)).sum(axis=0) > 1)
    has = _annotators_of(tables)
    units = nuggets.drop_duplicates("unit").sort_values("unit")
    # shape (annotators, units)
    read = has.loc[pd.MultiIndex.from_frame(units[["run", "topic"]])].to_numpy().T
    with_zero = np.where(np.isnan(levels) & read, 0.0, levels)[:, counts]
    rows.append(_row("level", "alpha", levels, "ordinal", seed))
    rows.append(_row("level", "alpha, unmatched as level 0", with_zero, "ordinal", seed))
    both = ~np.isnan(levels).any(axis=0)
    if len(names) == 2:
        rows.append(_row("level", "kappa", levels[:, both], "", seed))
    for name, attribute in attributes.items():
        memberships = np.full((*shape, len(attribute.groups)), np.nan)
        shares = [
            tables[a].memberships[name][r]
            for a, r in zip(nuggets["annotator"], nuggets["row"], strict=True)
        ]
        if shares:
            memberships[positions] = np.stack(shares)
        memberships[~(levels > 0)] = np.nan
        rows.append(_row(name, "alpha", memberships, attribute.kind, seed))
        if len(names) == 2:
            labelled = memberships[:, ~np.isnan(memberships).any(axis=(0, 2))]
            flat = labelled.reshape(-1, len(attribute.groups))
            codes = np.unique(flat, axis=0, return_inverse=True)[1] if len(flat) else np.empty(0)
            rows.append(_row(name, "kappa", codes.reshape(2, -1).astype(float), "", seed))
    statistics = pd.DataFrame(rows).assign(run="", topic="")
    table = pd.concat([statistics, _score_ranges(tables, attributes, gains)], ignore_index=True)
    table["attribute"] = table["attribute"].fillna("")
    table = table.reindex(columns=COLUMNS).astype({"units": "Int64"})
    table.attrs["seen"] = _conversations_seen(tables)
    return table


def _row(attribute: str, measure: str, labels: Floats, kind: Kind, seed: int) -> dict[str, Any]:
    """Return a coefficient of labels (annotators, units) with its 95% interval over units."""

    def coefficient(values: Floats) -> float:
        return alpha(values, kind) if kind else kappa(values)

    known = ~np.isnan(labels) if labels.ndim == 2 else ~np.isnan(labels).any(axis=-1)
    labels = labels[:, known.sum(axis=0) >= 2]
    n_units = labels.shape[1]
    row: dict[str, Any] = {"attribute": attribute, "measure": measure, "units": n_units}
    if n_units < 2:
        return row | {"value": coefficient(labels) if n_units else np.nan}
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        # Samples in which all labels are equal have no coefficient.
        warnings.simplefilter("ignore", RuntimeWarning)
        samples = [
            coefficient(labels[:, rng.integers(n_units, size=n_units)]) for _ in range(_SAMPLES)
        ]
        value = coefficient(labels)
    defined = np.array(samples)[~np.isnan(samples)]
    low, high = np.quantile(defined, [0.025, 0.975]) if len(defined) else (np.nan, np.nan)
    return row | {"value": value, "low": low, "high": high}


def _score_ranges(
    tables: Mapping[str, NuggetTable], attributes: Mapping[str, AttributeSet], gains: Any
) -> pd.DataFrame:
    """Return the mean and the range of each score over the annotators of shared conversations."""
    highest = max(int(table.level.max(initial=0)) for table in tables.values())
    if gains is None and highest > max(GAINS):
        note = f"levels above {max(GAINS)} have no gain, so the conversations have no scores"
        warnings.warn(f"{note} (--gains 1:0.5,2:1,{highest}:1)", Note, 3)
        return pd.DataFrame(columns=COLUMNS)
    options = {} if gains is None else {"gains": gains}
    scores = []
    for table in tables.values():
        scores += [gfrc(table, attributes, **options), gfrc2(table, attributes, **options)]
    every = pd.concat(scores)
    every = every[
        pd.MultiIndex.from_frame(every[["run", "topic"]]).isin(_shared_conversations(tables))
    ]
    keys = ["run", "topic", "attribute", "measure"]
    by_score = every.groupby(keys, sort=False)["value"]
    ranges = by_score.agg(value="mean", low="min", high="max", units="size").reset_index()
    return ranges.sort_values(["run", "topic"], kind="stable")
