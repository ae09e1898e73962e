"""How well two annotators agree: alpha and kappa, and what their differences do to the scores of conversations.

Nuggets of the same conversation that share a word are matched, each with one at most, those that
share the largest part first. On the matched ones levels and groups are compared; what one annotator
alone has found is counted apart.

References
----------
Krippendorff, K. (2011): Computing Krippendorff's Alpha-Reliability. Cohen, J. (1960): A Coefficient
of Agreement for Nominal Scales.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise import options
from equipoise.arrays import Booleans, Floats, Integers
from equipoise.attributes import AttributeSet
from equipoise.declare import checked, measure
from equipoise.measures.gfrc import GAINS, gfrc
from equipoise.measures.gfrc2 import gfrc2
from equipoise.nuggets import LARGEST_INTEGER, NuggetTable
from equipoise.problems import Note, listed

_declared = partial(
    measure, family="Annotators", range="-1 to 1", ideal="1", direction="higher is better"
)
_ROWS = 2_000_000


def _distances(values: Floats, counts: Floats, kind: str) -> Floats:
    """Distances between distributions over ordered categories, whose shares of all labels are ``counts``."""
    if kind == "nominal":
        return np.abs(values[:, None] - values[None]).sum(axis=-1) / 2
    places = np.cumsum(counts) - counts / 2
    reached = np.cumsum(values, axis=1)[:, :-1]
    moved: Floats = (np.abs(reached[:, None] - reached[None]) * np.diff(places)).sum(axis=-1) ** 2
    return moved


def _alpha(units: Integers, values: Floats, kind: str) -> float:
    """Alpha of codes shaped (annotators, units), -1 for none, of rows of ``values``, shaped (codes, categories)."""
    paired = units[:, (units >= 0).sum(axis=0) >= 2]
    held = (
        (paired[..., None] == np.arange(len(values))).sum(axis=0).astype(np.float64)
    )  # units, codes
    sizes = held.sum(axis=1)
    weights = 1 / (sizes - 1)
    coincidences = (held * weights[:, None]).T @ held - np.diag(weights @ held)
    each = coincidences.sum(axis=1)
    distance = _distances(values, each @ values, kind)
    expected = each @ distance @ each
    if not expected > 0:
        return np.nan
    return float(1 - (each.sum() - 1) * (coincidences * distance).sum() / expected)


@_declared("Krippendorff's alpha", range="up to 1", sources=("krippendorff2011",))
def krippendorff_alpha(labels: ArrayLike, kind: Literal["nominal", "ordinal"] = "nominal") -> float:
    r"""Krippendorff's alpha of labels, or of distributions over categories, that some annotators may have left out.

    .. math::
        \alpha = 1 - (n - 1) \frac{\sum_{c,k} o_{ck} \delta_{ck}}{\sum_{c,k} n_c n_k \delta_{ck}}, \qquad
        \delta_{ck} = [c \ne k] \text{ or } \Bigl(\sum_{g=c}^{k} n_g - \frac{n_c + n_k}{2}\Bigr)^2

    - :math:`o_{ck}`: how often two annotators of one unit give values c and k
    - :math:`c, k, g`: values
    - :math:`n_c, n_k, n_g, n`: how often a value is given, and all of them
    - :math:`\delta_{ck}`: distance of two values: the first form for nominal, the second for
      ordinal ones

    Parameters
    ----------
    labels : array_like, shaped (annotators, units) or (annotators, units, categories)
        Numbers, NaN where there is no label; or the probability of each category, such as
        memberships.
    kind : {"nominal", "ordinal"}
        Distance of two labels. Of distributions, it is half the sum of the differences, or, on the
        scale of the ordinal distance, the square of the earth mover's; where each has one category
        these are the same.

    Returns
    -------
    float
        1 for full agreement, 0 for that of chance; NaN where all labels are equal, or none is
        paired.

    Raises
    ------
    ValueError
        If the labels are of another shape.

    Notes
    -----
    Krippendorff (2011), sections C and D.

    Examples
    --------
    >>> round(krippendorff_alpha([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]), 3)
    0.095
    """
    given = np.asarray(labels, dtype=np.float64)
    if given.ndim not in (2, 3) or given.shape[0] < 2:
        raise ValueError(
            f"labels of two annotators or more are wanted, found the shape {given.shape}"
        )
    there = ~np.isnan(given.reshape(*given.shape[:2], -1)).any(axis=-1)
    codes = np.full(given.shape[:2], -1)
    values, found = np.unique(given[there], axis=0, return_inverse=True)
    codes[there] = found.ravel()
    return _alpha(codes, np.eye(len(values)) if given.ndim == 2 else values, kind)


@_declared("Cohen's kappa", sources=("cohen1960",))
def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float:
    r"""Cohen's kappa of the labels of two annotators.

    .. math:: \kappa = \frac{p_o - p_e}{1 - p_e}, \qquad p_o = \frac{1}{n} \sum_i [a_i = b_i]

    with p_e the sum over labels of the product of both annotators' shares.

    - :math:`a_i, b_i`: what the two annotators say of unit i
    - :math:`n`: number of units
    - :math:`p_o, p_e`: share on which they agree, and the share expected by chance from how
      often each says what

    Parameters
    ----------
    first, second : array_like, shaped (units,)
        Labels of the same units.

    Returns
    -------
    float
        1 for full agreement, 0 for that of chance; NaN where both give one and the same label
        throughout.

    Raises
    ------
    ValueError
        If there are no labels, or not as many of both.

    Notes
    -----
    Cohen (1960). thesis, section 3.6.1.

    Examples
    --------
    >>> cohen_kappa(["x", "x", "y", "y"], ["x", "y", "y", "y"])
    0.5
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise ValueError(f"labels of the same units are wanted, found {a.shape} and {b.shape}")
    names, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    shares = [
        np.bincount(part, minlength=len(names)) / len(a)
        for part in (codes[: len(a)], codes[len(a) :])
    ]
    if len(names) == 1:
        return np.nan
    chance = float(shares[0] @ shares[1])
    return float(((a == b).mean() - chance) / (1 - chance))


# --- nuggets --------------------------------------------------------------------------------------


def _placed(
    nuggets: NuggetTable, conversation: Integers
) -> tuple[NDArray[np.intp], Integers, Integers]:
    """Rows with positions of the conversations that both have, in their order, and first and last place over all."""
    rows = np.flatnonzero((nuggets.start > 0) & (conversation[nuggets.conversation] >= 0))
    base = conversation[nuggets.conversation[rows]] * (2 * LARGEST_INTEGER)
    start, end = base + nuggets.start[rows], base + nuggets.end[rows]
    order = np.argsort(start, kind="stable")
    return rows[order], start[order], end[order]


class _Both:
    """Nuggets of two annotators in the conversations that both have annotated."""

    def __init__(self, first: NuggetTable, second: NuggetTable) -> None:
        keys = ["run", "topic"]
        numbered = [
            table.conversations.assign(place=range(len(table.conversations)))
            for table in (first, second)
        ]
        common = numbered[0].merge(numbered[1], on=keys, suffixes=("_first", "_second"))
        if common.empty:
            names = [
                listed(one.conversations[keys].agg(" ".join, axis=1), 3) for one in (first, second)
            ]
            raise ValueError(
                f"no conversation that both have; the first has {names[0]}, the second {names[1]}"
            )
        self.tables, self.conversations, self.maps = (first, second), common[keys], list[Integers]()
        for table, name in zip(self.tables, ("first", "second"), strict=True):
            here = np.full(len(table.conversations), -1)
            here[common[f"place_{name}"]] = np.arange(len(common))
            self.maps.append(here)
            if alone := (here < 0).sum():
                names_alone = table.conversations.loc[here < 0, keys].agg(" ".join, axis=1)
                said = f"{alone} conversations of the {name} only are left out: {listed(names_alone, 3)}"
                warnings.warn(said, Note, stacklevel=4)
        placed = [_placed(table, here) for table, here in zip(self.tables, self.maps, strict=True)]
        (self.rows, self.starts, self.ends) = map(list, zip(*placed, strict=True))

    def matched(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Places, among the rows of each, of the nuggets that are matched."""
        low = np.searchsorted(self.ends[1], self.starts[0], side="left")
        counts = np.searchsorted(self.starts[1], self.ends[0], side="right") - low
        a = np.repeat(np.arange(len(low)), counts)
        b = (
            np.arange(len(a))
            - np.repeat(np.cumsum(counts) - counts, counts)
            + np.repeat(low, counts)
        )
        shared = (
            np.minimum(self.ends[0][a], self.ends[1][b])
            - np.maximum(self.starts[0][a], self.starts[1][b])
            + 1
        )
        joined = (
            np.maximum(self.ends[0][a], self.ends[1][b])
            - np.minimum(self.starts[0][a], self.starts[1][b])
            + 1
        )
        order = np.lexsort((b, a, -shared / joined))
        a, b = a[order], b[order]
        found: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
        while len(a):  # each time the pairs that are the best of both
            best = np.intersect1d(
                np.unique(a, return_index=True)[1], np.unique(b, return_index=True)[1]
            )
            found.append((a[best], b[best]))
            left = ~np.isin(a, a[best]) & ~np.isin(b, b[best])
            a, b = a[left], b[left]
        first, second = (
            (np.concatenate(part) for part in zip(*found, strict=True)) if found else (a, b)
        )
        turns = [
            table.turn[rows[one]]
            for table, rows, one in zip(self.tables, self.rows, (first, second), strict=True)
        ]
        if (other := turns[0] != turns[1]).any():
            at = self.tables[0].places(self.rows[0][first[other]]).iloc[0].to_dict()
            raise ValueError(
                f"a nugget is in another turn for the second annotator, who read another text: {at}"
            )
        return first, second

    def alone(self, matched: tuple[NDArray[np.intp], NDArray[np.intp]]) -> list[NDArray[np.intp]]:
        """Rows of each that are relevant and matched with nothing."""
        left = [np.delete(rows, one) for rows, one in zip(self.rows, matched, strict=True)]
        return [rows[table.level[rows] > 0] for table, rows in zip(self.tables, left, strict=True)]

    def mixtures(self, coins: Booleans, attributes: Mapping[str, AttributeSet]) -> NuggetTable:
        """The conversations again for each row of coins; each group of nuggets that overlap is of one annotator."""
        sides = np.repeat([0, 1], [len(one) for one in self.rows])
        starts, ends = np.concatenate(self.starts), np.concatenate(self.ends)
        order = np.argsort(starts, kind="stable")
        opens = np.ones(len(order), dtype=bool)
        opens[1:] = starts[order][1:] > np.maximum.accumulate(ends[order])[:-1]
        group = np.cumsum(opens) - 1
        chosen = coins[:, group] == (sides[order] == 0)  # draws, spans
        draw, span = np.nonzero(chosen)
        rows = order[span]

        def laid(name: str) -> Any:
            parts = [
                getattr(table, name)[one] for table, one in zip(self.tables, self.rows, strict=True)
            ]
            return np.concatenate(parts)[rows]

        count = len(self.conversations)
        sources = [*zip(self.tables, self.maps, self.rows, strict=True)]
        of = np.concatenate([here[table.conversation[one]] for table, here, one in sources])
        highest = np.ones(
            count, dtype=np.int64
        )  # a row of level 0 keeps the turns behind the last nugget
        for table, here, _ in sources:
            kept = here[table.conversation] >= 0
            np.maximum.at(highest, here[table.conversation[kept]], table.turn[kept])
        conversation = np.concatenate([draw * count + of[rows], np.arange(len(coins) * count)])
        last = np.argsort(conversation, kind="stable")
        none = np.zeros(len(coins) * count, dtype=np.int64)
        columns = {
            name: np.concatenate([laid(name), none])[last] for name in ("start", "end", "level")
        }
        names = [
            np.where(table.names[one] == "", None, table.names[one]) for table, _, one in sources
        ]
        entity, entities = pd.factorize(np.concatenate(names))
        memberships = {}
        for name, one in attributes.items():
            vectors = np.concatenate([table.memberships[name][row] for table, _, row in sources])
            memberships[name] = np.concatenate(
                [vectors[rows], np.zeros((len(none), len(one.groups)))]
            )[last]
        return NuggetTable(
            conversations=self.conversations.iloc[
                np.tile(np.arange(count), len(coins))
            ].reset_index(drop=True),
            conversation=conversation[last],
            turn=np.concatenate([laid("turn"), np.tile(highest, len(coins))])[last],
            memberships=memberships,
            entity=np.concatenate([entity[rows], none - 1])[last] if len(entities) else None,
            entities=tuple(map(str, entities)),
            **columns,
        )


def _alpha_at(labels: NDArray[Any], kind: Literal["nominal", "ordinal"], at: Integers) -> float:
    return krippendorff_alpha(labels[:, at], kind)


def _kappa_at(labels: Integers, at: Integers) -> float:
    return cohen_kappa(*labels[:, at])


def _agreement_rows(
    both: _Both, attributes: Mapping[str, AttributeSet], level: float, resamples: int, seed: int
) -> Iterator[dict[str, Any]]:
    """One row for each coefficient, with its bootstrap interval over nuggets, and for each count."""
    matched = both.matched()
    alone = both.alone(matched)
    pairs = [rows[one] for rows, one in zip(both.rows, matched, strict=True)]
    sizes = [len(pairs[0]) + len(one) for one in alone]
    counts = {"matched": len(pairs[0]), "only first": len(alone[0]), "only second": len(alone[1])}
    yield from (
        {"measure": name, "value": count, "units": sum(counts.values())}
        for name, count in counts.items()
    )
    dice = 2 * len(pairs[0]) / sum(sizes) if sum(sizes) else np.nan
    yield {"measure": "Dice", "value": dice, "units": sum(counts.values())}

    def row(
        attribute: str, name: str, statistic: Callable[[Any], float], units: int
    ) -> dict[str, Any]:
        if not units:
            return {"attribute": attribute, "measure": name, "value": np.nan, "units": 0}
        rng = np.random.default_rng(seed)
        drawn = [statistic(rng.integers(units, size=units)) for _ in range(resamples)]
        ends = [np.nan, np.nan]
        if not np.isnan(drawn).all():  # draws of equal labels have no coefficient
            ends = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
        found = {
            "attribute": attribute,
            "measure": name,
            "value": statistic(np.arange(units)),
            "units": units,
        }
        return found | {"low": ends[0], "high": ends[1]}

    levels = np.array([table.level[rows] for table, rows in zip(both.tables, pairs, strict=True)])
    nothing = [np.zeros(len(one), dtype=np.int64) for one in alone]
    found = [table.level[rows] for table, rows in zip(both.tables, alone, strict=True)]
    every = np.concatenate([levels, [found[0], nothing[0]], [nothing[1], found[1]]], axis=1)
    yield row("level", "alpha", partial(_alpha_at, levels, "ordinal"), levels.shape[1])
    yield row("level", "kappa", partial(_kappa_at, levels), levels.shape[1])
    whole = "alpha, unmatched as level 0"
    yield row("level", whole, partial(_alpha_at, every, "ordinal"), every.shape[1])
    relevant = (levels > 0).all(axis=0)
    for name, one in attributes.items():
        vectors = np.array(
            [
                t.memberships[name][rows[relevant]]
                for t, rows in zip(both.tables, pairs, strict=True)
            ]
        )
        codes = np.unique(vectors.reshape(-1, len(one.groups)), axis=0, return_inverse=True)[
            1
        ].reshape(2, -1)
        yield row(name, "alpha", partial(_alpha_at, vectors, one.kind), int(relevant.sum()))
        yield row(name, "kappa", partial(_kappa_at, codes), int(relevant.sum()))


@checked
def annotator_agreement(
    first: NuggetTable,
    second: NuggetTable,
    attributes: Mapping[str, AttributeSet],
    *,
    gains: options.Gains = GAINS,
    max_level: options.MaxLevel = 2,
    level: options.Level = 0.95,
    draws: options.Draws = 999,
    seed: options.Seed = 0,
) -> pd.DataFrame:
    """How well two annotators agree, and the interval that their differences put on every score, in one tidy table.

    Returns ``run, topic, attribute, measure, value, low, high, first, second, units``. Rows without
    a run: how many nuggets are ``matched``, found by the ``only first`` or ``only second``
    (relevant ones), ``Dice`` of these; alpha and kappa of levels (attribute ``level``) and of the
    groups of nuggets that both call relevant, with a bootstrap interval over nuggets, draws in
    which all labels are equal left out. Kappa takes memberships as one label. Rows of a
    conversation: each score of `gfrc` and `gfrc2`, for the nuggets of the ``first`` and of the
    ``second``; ``value`` is the mean, and low and high the interval, over draws in which each place
    where they differ is as one of them has it, by the toss of a coin.
    """
    both = _Both(first, second)
    rows = [*_agreement_rows(both, attributes, level, draws, seed)]
    agreed = pd.DataFrame(rows).assign(run="", topic="").fillna({"attribute": ""})
    spans = sum(map(len, both.rows))
    coins = np.random.default_rng(seed).random((draws + 2, max(spans, 1))) < 0.5
    coins[0], coins[1] = True, False
    size = max(1, _ROWS // max(spans + len(both.conversations), 1))
    values, keys = [], pd.DataFrame()
    for begin in range(0, len(coins), size):
        table = both.mixtures(coins[begin : begin + size], attributes)
        scores = [
            gfrc(table, attributes, gains=gains, max_level=max_level),
            gfrc2(table, attributes),
        ]
        shaped = [
            one["value"].to_numpy().reshape(len(coins[begin : begin + size]), -1) for one in scores
        ]
        lengths = [part.shape[1] for part in shaped]
        keys = pd.concat([one[:length] for one, length in zip(scores, lengths, strict=True)])
        values.append(np.concatenate(shaped, axis=1))
    drawn = np.concatenate(values)
    low, high = np.quantile(drawn[2:], [(1 - level) / 2, (1 + level) / 2], axis=0)
    ends = {
        "value": drawn[2:].mean(axis=0),
        "low": low,
        "high": high,
        "first": drawn[0],
        "second": drawn[1],
    }
    scored = keys.drop(columns="value").assign(**ends).sort_values(["run", "topic"], kind="stable")
    columns = [
        "run",
        "topic",
        "attribute",
        "measure",
        "value",
        "low",
        "high",
        "first",
        "second",
        "units",
    ]
    return (
        pd.concat([agreed, scored], ignore_index=True)
        .reindex(columns=columns)
        .astype({"units": "Int64"})
    )


def unmatched_nuggets(first: NuggetTable, second: NuggetTable) -> pd.DataFrame:
    """The relevant nuggets that one annotator alone has found: whose, run, topic, turn, start, end, level, entity."""
    both = _Both(first, second)
    parts = [
        table.places(rows).assign(
            annotator=name,
            start=table.start[rows],
            end=table.end[rows],
            level=table.level[rows],
            entity=table.names[rows],
        )
        for table, rows, name in zip(
            both.tables, both.alone(both.matched()), ("first", "second"), strict=True
        )
    ]
    return pd.concat(parts, ignore_index=True)[
        ["annotator", "run", "topic", "turn", "start", "end", "level", "entity"]
    ]
