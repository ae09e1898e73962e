"""Agreement of annotators: matched nuggets, Krippendorff's alpha, Cohen's kappa, and scores.

Nuggets of two annotators match if they share a word; those with the largest overlap are matched
first, each with one at most. A unit is a set of nuggets that match one another. Levels and groups
are compared on units that several annotators found; nuggets that one annotator alone found are
counted separately.

References
----------
Krippendorff, K. (2011): Computing Krippendorff's Alpha-Reliability. Cohen, J. (1960): A Coefficient
of Agreement for Nominal Scales.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import combinations as pairs_of
from itertools import permutations
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from equipoise import options as opt
from equipoise.arrays import Floats, Integers, ratio
from equipoise.attributes import AttributeSet
from equipoise.coverage import Seen
from equipoise.errors import Note, listed
from equipoise.measures.gfrc import GAINS, gfrc
from equipoise.measures.gfrc2 import gfrc2
from equipoise.nuggets import NuggetTable
from equipoise.statistics.intervals import percentile_interval

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
            f"{listed(firsts, 3)}; name the keys of a task with --map run=KEY,topic=KEY"
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
    number = nuggets[["annotator", "turn", "start", "end"]].reset_index(names="number")
    # Words are numbered over all conversations, so that spans of two conversations are disjoint.
    before = nuggets.groupby(keys).ngroup() * (nuggets["end"].max() + 1)
    number[["start", "end"]] = number[["start", "end"]].add(before, axis=0)
    edges = []
    for first, second in pairs_of(nuggets["annotator"].unique(), 2):
        a = number[number["annotator"] == first]
        b = number[number["annotator"] == second].sort_values("start")
        # Only these of b, in order of their starts, may share a word with a nugget of a.
        low = np.searchsorted(b["end"].cummax(), a["start"])
        near = np.maximum(np.searchsorted(b["start"], a["end"], side="right") - low, 0)
        places = np.arange(near.sum()) + np.repeat(low - np.cumsum(near) + near, near)
        pairs = a.loc[a.index.repeat(near)].reset_index(drop=True)
        pairs = pairs.join(b.iloc[places].add_suffix("_b").reset_index(drop=True))
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


def _combinations(labels: Floats) -> tuple[Floats, Integers, Integers]:
    """Return the distinct labels, and how often each combination of them occurs in a unit.

    ``labels``: as in `alpha`. Shapes are (labels, groups), (combinations, annotators), with -1
    where an annotator has no label, and (combinations,). Units without two labels are left out.
    """
    vectors = labels[..., None] if labels.ndim == 2 else labels
    known = ~np.isnan(vectors).any(axis=-1)
    known &= known.sum(axis=0) >= 2
    codes = np.full(known.shape, -1)
    distinct, codes_of_known = np.unique(vectors[known], axis=0, return_inverse=True)
    codes[known] = codes_of_known.reshape(-1)
    if labels.ndim == 2:
        distinct = np.eye(len(distinct))  # a number is a group of its own
    used = codes[:, known.any(axis=0)]
    combinations, counts = np.unique(used, axis=1, return_counts=True)
    return distinct, combinations.T, counts


def _alpha(distinct: Floats, combinations: Integers, counts: Integers, kind: Kind) -> float:
    """Return alpha of what `_combinations` returns, of any counts."""
    observed = np.zeros((len(distinct), len(distinct)))
    others = (combinations >= 0).sum(axis=1) - 1
    for first, second in permutations(combinations.T, 2):
        both = (first >= 0) & (second >= 0)
        weights = counts[both] / others[both]
        np.add.at(observed, (first[both], second[both]), weights)
    n_labels = observed.sum(axis=1)
    if kind == "nominal":
        distances = np.abs(distinct[:, None] - distinct).sum(axis=-1) / 2
    else:
        chosen = n_labels @ distinct  # how often each group is
        ranks = np.cumsum(chosen) - chosen / 2
        cumulative = np.cumsum(distinct, axis=-1)
        gaps = np.abs(cumulative[:, None] - cumulative)[..., :-1]
        distances = (gaps @ np.diff(ranks)) ** 2
    expected = n_labels @ distances @ n_labels / max(n_labels.sum() - 1, 1)
    return 1 - float(ratio((observed * distances).sum(), expected, np.nan))


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
    return _alpha(*_combinations(labels), kind)


def _kappa(distinct: Floats, combinations: Integers, counts: Integers) -> float:
    """Return kappa of what `_combinations` returns of two annotators, of any counts."""
    shares = np.zeros((len(distinct), len(distinct)))
    np.add.at(shares, tuple(combinations.T), counts / max(counts.sum(), 1))
    by_chance = shares.sum(axis=0) @ shares.sum(axis=1)
    return float(ratio(np.trace(shares) - by_chance, 1 - by_chance, np.nan))


def kappa(labels: Floats) -> float:
    """Compute Cohen's kappa of two annotators' labels, as in `alpha`; NaN if all are equal."""
    return _kappa(*_combinations(labels))


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
    if len(names) == 2:
        rows.append(_row("level", "kappa", levels, "", seed))
    for name, attribute in attributes.items():
        n_groups = len(attribute.groups)
        shares = [np.empty((0, n_groups))]
        for annotator, found_by_one in nuggets.groupby("annotator", sort=False):
            shares.append(tables[str(annotator)].memberships[name][found_by_one["row"]])
        memberships = np.full((*shape, n_groups), np.nan)
        memberships[positions] = np.concatenate(shares)
        memberships[~(levels > 0)] = np.nan
        rows.append(_row(name, "alpha", memberships, attribute.kind, seed))
        if len(names) == 2:
            rows.append(_row(name, "kappa", memberships, "", seed))
    statistics = pd.DataFrame(rows).assign(run="", topic="")
    table = pd.concat([statistics, _score_ranges(tables, attributes, gains)], ignore_index=True)
    table["attribute"] = table["attribute"].fillna("")
    table = table.reindex(columns=COLUMNS).astype({"units": "Int64"})
    table.attrs["seen"] = _conversations_seen(tables)
    return table


def _row(attribute: str, measure: str, labels: Floats, kind: Kind, seed: int) -> dict[str, Any]:
    """Return a coefficient of labels (annotators, units) with its 95% interval over units."""
    distinct, combinations, counts = _combinations(labels)

    def coefficient(counts: Integers) -> float:
        if kind:
            return _alpha(distinct, combinations, counts, kind)
        return _kappa(distinct, combinations, counts)

    n_units = int(counts.sum())
    row: dict[str, Any] = {"attribute": attribute, "measure": measure, "units": n_units}
    row["value"] = coefficient(counts)
    if n_units < 2:
        return row
    rng = np.random.default_rng(seed)
    samples = [coefficient(rng.multinomial(n_units, counts / n_units)) for _ in range(_SAMPLES)]
    # Samples in which all labels are equal have no coefficient.
    low, high = percentile_interval(samples)
    return row | {"low": low, "high": high}


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
