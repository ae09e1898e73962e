"""How well two annotators agree, and what their differences do to the scores of conversations.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise import options
from equipoise.arrays import Booleans, Floats, Integers
from equipoise.attributes import AttributeSet
from equipoise.declare import checked, measure
from equipoise.measures.annotator_pairs import AnnotatorPair
from equipoise.measures.annotator_units import inside_words, units_of
from equipoise.measures.gfrc import GAINS, gfrc
from equipoise.measures.gfrc2 import gfrc2
from equipoise.nuggets import NuggetTable
from equipoise.problems import Note
from equipoise.statistics.intervals import percentile_interval

_declared = partial(
    measure, family="Annotators", range="-1 to 1", ideal="1", direction="higher is better"
)
_COLUMNS = ["run", "topic", "attribute", "measure", "value", "low", "high", "first", "second"]
_COLUMNS += ["units"]
_MOST_DRAWN = 100_000_000
"""Nuggets of all draws, of which a million take some seconds."""
_ROWS = 2_000_000
"""Nuggets of mixtures that are scored at a time: memory is bounded by these."""


def _distances(values: Floats, counts: Floats, kind: str) -> Floats:
    """Distances between distributions over ordered categories; ``counts``: labels of each."""
    if kind == "nominal":
        return np.abs(values[:, None] - values[None]).sum(axis=-1) / 2
    places = np.cumsum(counts) - counts / 2
    cumulated = np.cumsum(values, axis=1)[:, :-1]
    gaps = np.abs(cumulated[:, None] - cumulated[None])  # (codes, codes, steps)
    moved: Floats = (gaps * np.diff(places)).sum(axis=-1) ** 2
    return moved


def _alpha(labels: Integers, values: Floats, kind: str, weights: ArrayLike = 1.0) -> float:
    """Alpha of codes, shaped (annotators, units), of rows of ``values``; -1 for none.

    ``weights`` say how often each unit is there.
    """
    is_paired = (labels >= 0).sum(axis=0) >= 2
    weights_of_paired = np.broadcast_to(weights, labels.shape[1])[is_paired]
    is_code = labels[:, is_paired, None] == np.arange(len(values))
    n_labels = is_code.sum(axis=0).astype(np.float64)  # (units, codes)
    pair_weights = weights_of_paired / (n_labels.sum(axis=1) - 1)
    # o_ck: every label of a unit meets the others of that unit, and not itself.
    coincidences = (n_labels * pair_weights[:, None]).T @ n_labels
    coincidences -= np.diag(pair_weights @ n_labels)
    totals = coincidences.sum(axis=1)
    distance = _distances(values, totals @ values, kind)
    expected = totals @ distance @ totals
    if not expected > 0:
        return np.nan
    return float(1 - (totals.sum() - 1) * (coincidences * distance).sum() / expected)


@_declared("Krippendorff's alpha", range="up to 1", sources=("krippendorff2011",))
def krippendorff_alpha(labels: ArrayLike, kind: Literal["nominal", "ordinal"] = "nominal") -> float:
    r"""Krippendorff's alpha of labels, or of distributions over categories; some may be left out.

    .. math::
        \alpha = 1 - (n - 1)
        \frac{\sum_{c,k} o_{ck} \delta_{ck}}{\sum_{c,k} n_c n_k \delta_{ck}}, \qquad
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
    >>> first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    >>> round(krippendorff_alpha([first, second]), 3)
    0.095
    """
    codes, distinct = _coded(np.asarray(labels, dtype=np.float64))
    return _alpha(codes, distinct, kind)


def _coded(values_of_units: Floats) -> tuple[Integers, Floats]:
    """Labels as codes, shaped (annotators, units), -1 for none; and what each code stands for."""
    if values_of_units.ndim not in (2, 3) or values_of_units.shape[0] < 2:
        raise ValueError(
            f"labels of two annotators or more are wanted, found the shape {values_of_units.shape}"
        )
    shape = values_of_units.shape[:2]  # (annotators, units)
    is_number: Booleans = ~np.isnan(values_of_units)
    is_labelled = is_number if values_of_units.ndim == 2 else np.all(is_number, axis=-1)
    codes = np.full(shape, -1)
    distinct, code = np.unique(values_of_units[is_labelled], axis=0, return_inverse=True)
    codes[is_labelled] = code.ravel()
    if values_of_units.ndim == 2:
        distinct = np.eye(len(distinct))  # each label is a category of its own
    return codes, distinct


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
    labels, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    if len(labels) == 1:
        return np.nan
    shares_of_a = np.bincount(codes[: len(a)], minlength=len(labels)) / len(a)
    shares_of_b = np.bincount(codes[len(a) :], minlength=len(labels)) / len(a)
    chance = float(shares_of_a @ shares_of_b)
    return float(((a == b).mean() - chance) / (1 - chance))


# --- nuggets --------------------------------------------------------------------------------------


Coefficient = Callable[[Integers, Any], float]
"""Of codes, shaped (annotators, units), and how often each unit is there."""


@dataclass(frozen=True)
class _Bootstrap:
    """Percentile intervals of coefficients, resampling units (nuggets)."""

    resamples: int
    level: float
    seed: int

    def interval(self, coefficient: Coefficient, codes: Integers) -> tuple[float, float]:
        """Interval of a coefficient; NaN for one unit, which tells nothing of others."""
        n_units = codes.shape[1]
        if n_units < 2:
            return np.nan, np.nan
        # Units that are labelled alike are one: a resample says how often it is there.
        patterns, counts = np.unique(codes, axis=1, return_counts=True)
        rng = np.random.default_rng(self.seed)
        samples = np.empty(self.resamples)
        for i in range(self.resamples):
            weights = rng.multinomial(n_units, counts / n_units)
            samples[i] = coefficient(patterns, weights)
        # A resample in which all labels are equal has no coefficient.
        return percentile_interval(samples, self.level)


def _kappa(codes: Integers, weights: ArrayLike = 1) -> float:
    """Kappa of codes, shaped (two annotators, units), each unit as often as its weight."""
    counts = np.broadcast_to(weights, codes.shape[1])
    return cohen_kappa(np.repeat(codes[0], counts), np.repeat(codes[1], counts))


def _coefficient_row(
    attribute: str, name: str, coefficient: Coefficient, codes: Integers, bootstrap: _Bootstrap
) -> dict[str, Any]:
    """A coefficient of codes, shaped (annotators, units), with its interval over units."""
    row = {"attribute": attribute, "measure": name, "units": codes.shape[1]}
    if codes.shape[1] == 0:
        return row | {"value": np.nan}
    low, high = bootstrap.interval(coefficient, codes)
    return row | {"value": coefficient(codes, 1), "low": low, "high": high}


def _alpha_row(
    attribute: str, name: str, labels: Floats, kind: str, bootstrap: _Bootstrap
) -> dict[str, Any]:
    """Alpha of labels, shaped (annotators, units) or (annotators, units, categories)."""
    codes, distinct = _coded(labels)

    def coefficient(codes_of_units: Integers, weights: Any) -> float:
        return _alpha(codes_of_units, distinct, kind, weights)

    is_paired = (codes >= 0).sum(axis=0) >= 2
    return _coefficient_row(attribute, name, coefficient, codes[:, is_paired], bootstrap)


def _count_rows(n_matched: int, n_first: int, n_second: int) -> list[dict[str, Any]]:
    """How many nuggets are matched, how many are one annotator's alone, and Dice of these."""
    units = n_matched + n_first + n_second
    dice = 2 * n_matched / (2 * n_matched + n_first + n_second) if units else np.nan
    values = {"matched": n_matched, "only first": n_first, "only second": n_second, "Dice": dice}
    return [{"measure": name, "value": value, "units": units} for name, value in values.items()]


def _level_rows(
    levels: Integers, alone_first: Integers, alone_second: Integers, bootstrap: _Bootstrap
) -> list[dict[str, Any]]:
    """Alpha and kappa of levels, shaped (annotators, matched nuggets); alpha also with the others.

    ``alone_first``, ``alone_second``: levels of nuggets that one annotator alone has found.
    """
    unmatched = np.zeros((2, len(alone_first) + len(alone_second)), dtype=np.int64)
    unmatched[0, : len(alone_first)] = alone_first
    unmatched[1, len(alone_first) :] = alone_second
    with_unmatched = np.concatenate([levels, unmatched], axis=1)
    unmatched_name = "alpha, unmatched as level 0"
    return [
        _alpha_row("level", "alpha", levels.astype(np.float64), "ordinal", bootstrap),
        _coefficient_row("level", "kappa", _kappa, levels, bootstrap),
        _alpha_row(
            "level", unmatched_name, with_unmatched.astype(np.float64), "ordinal", bootstrap
        ),
    ]


def _attribute_rows(
    attribute: AttributeSet, vectors: Floats, bootstrap: _Bootstrap
) -> list[dict[str, Any]]:
    """Alpha and kappa of group memberships, shaped (annotators, nuggets, groups)."""
    # Kappa takes each different vector as one label.
    codes, _ = _coded(vectors)
    return [
        _alpha_row(attribute.name, "alpha", vectors, attribute.kind, bootstrap),
        _coefficient_row(attribute.name, "kappa", _kappa, codes, bootstrap),
    ]


def _agreement_table(
    pair: AnnotatorPair, attributes: Mapping[str, AttributeSet], bootstrap: _Bootstrap
) -> pd.DataFrame:
    """A row for each count, and for each coefficient of the matched nuggets."""
    first_table, second_table = pair.first.table, pair.second.table
    matched_first, matched_second = pair.matched()
    alone_first, alone_second = pair.unmatched((matched_first, matched_second))
    levels = np.stack([first_table.level[matched_first], second_table.level[matched_second]])
    rows = _count_rows(len(matched_first), len(alone_first), len(alone_second))
    rows += _level_rows(
        levels, first_table.level[alone_first], second_table.level[alone_second], bootstrap
    )

    # Groups are compared where both call the nugget relevant.
    relevant = (levels > 0).all(axis=0)
    for name, attribute in attributes.items():
        vectors_of_first = first_table.memberships[name][matched_first[relevant]]
        vectors_of_second = second_table.memberships[name][matched_second[relevant]]
        vectors = np.stack([vectors_of_first, vectors_of_second])
        rows += _attribute_rows(attribute, vectors, bootstrap)
    rows.append(_unitised_row([first_table, second_table], bootstrap))
    return pd.DataFrame(rows).assign(run="", topic="").fillna({"attribute": ""})


def _unitised_row(tables: Sequence[NuggetTable], bootstrap: _Bootstrap) -> dict[str, Any]:
    """Alpha of words, inside a relevant nugget or not, with its interval over conversations."""
    codes, lengths, conversation = inside_words(tables)
    n_conversations = int(conversation.max(initial=-1)) + 1
    row = {"attribute": "", "measure": "alpha, unitised", "units": n_conversations}
    value = _alpha(codes, np.eye(2), "nominal", lengths)
    if n_conversations < 2:
        return row | {"value": value}
    rng = np.random.default_rng(bootstrap.seed)
    samples = np.empty(bootstrap.resamples)
    for i in range(bootstrap.resamples):
        times = rng.multinomial(n_conversations, np.full(n_conversations, 1 / n_conversations))
        samples[i] = _alpha(codes, np.eye(2), "nominal", lengths * times[conversation])
    low, high = percentile_interval(samples, bootstrap.level)
    return row | {"value": value, "low": low, "high": high}


def _drawn_scores(
    pair: AnnotatorPair,
    attributes: Mapping[str, AttributeSet],
    coins: Booleans,
    gains: options.Gains,
) -> tuple[pd.DataFrame, Floats]:
    """What each score is of, and the scores of each mixture, shaped (draws, scores)."""
    draws_at_once = max(1, _ROWS // max(pair.n_nuggets + len(pair.conversations), 1))
    batches = []
    for start in range(0, len(coins), draws_at_once):
        batch = coins[start : start + draws_at_once]
        nuggets = pair.mixtures(batch, attributes)
        tables = [
            gfrc(nuggets, attributes, gains=gains),
            gfrc2(nuggets, attributes),
        ]
        # The rows of a table come draw by draw; those of the first draw say what each is of.
        values = [table["value"].to_numpy().reshape(len(batch), -1) for table in tables]
        keys = [table.iloc[: scores.shape[1]] for table, scores in zip(tables, values, strict=True)]
        batches.append(np.concatenate(values, axis=1))
    return pd.concat(keys).drop(columns="value"), np.concatenate(batches)


@checked
def annotator_agreement(
    first: NuggetTable,
    second: NuggetTable,
    attributes: Mapping[str, AttributeSet],
    *,
    gains: options.Gains = GAINS,
    level: options.Level = 0.95,
    draws: options.Draws = 999,
    seed: options.Seed = 0,
) -> pd.DataFrame:
    """How well two annotators agree, and the interval that their differences put on every score.

    Returns ``run, topic, attribute, measure, value, low, high, first, second, units``. Rows without
    a run: how many nuggets are ``matched``, found by the ``only first`` or ``only second``
    (relevant ones), ``Dice`` of these; alpha and kappa of levels (attribute ``level``) and of the
    groups of nuggets that both call relevant, with a bootstrap interval over nuggets, draws in
    which all labels are equal left out. Kappa takes memberships as one label. Rows of a
    conversation: each score of `gfrc` and `gfrc2`, for the nuggets of the ``first`` and of the
    ``second``; ``value`` is the mean, and low and high the interval, over draws in which each place
    where they differ is as one of them has it, by the toss of a coin.
    """
    pair = AnnotatorPair(first, second)
    if draws * pair.n_nuggets > _MOST_DRAWN:
        fewer = max(_MOST_DRAWN // pair.n_nuggets, 1)
        found = f"draws is {draws:,}, of {pair.n_nuggets:,} nuggets"
        raise ValueError(f"{found}, which takes very long; wanted {fewer:,} or fewer")
    agreement = _agreement_table(pair, attributes, _Bootstrap(draws, level, seed))

    # One toss for each place where they may differ; the first two draws are the annotators' own.
    coins = np.random.default_rng(seed).random((draws + 2, max(pair.n_nuggets, 1))) < 0.5
    coins[0], coins[1] = True, False
    keys, drawn = _drawn_scores(pair, attributes, coins, gains)
    mixed = drawn[2:]
    low, high = np.quantile(mixed, [(1 - level) / 2, (1 + level) / 2], axis=0)
    scores = keys.assign(
        value=mixed.mean(axis=0), low=low, high=high, first=drawn[0], second=drawn[1]
    ).sort_values(["run", "topic"], kind="stable")
    table = pd.concat([agreement, scores], ignore_index=True)
    return table.reindex(columns=_COLUMNS).astype({"units": "Int64"})


@checked
def many_annotators_agreement(
    annotations: Mapping[str, NuggetTable],
    attributes: Mapping[str, AttributeSet],
    *,
    gains: options.Gains = GAINS,
    level: options.Level = 0.95,
    draws: options.Draws = 999,
    seed: options.Seed = 0,
) -> pd.DataFrame:
    """How well any number of annotators agree, and what their differences do to every score.

    ``annotations``: the nuggets of each annotator by name. Nuggets are matched two annotators at a
    time, as `annotator_agreement` does, and a unit is all that are matched with one another.
    Returns ``run, topic, attribute, measure, value, low, high, units``: rows without a run have
    alpha of the levels, of levels with 0 where an annotator of the conversation has no such nugget,
    of groups, and of words (``alpha, unitised``), with intervals over units, or conversations.
    Rows of a conversation have the mean of each score over the annotators, and in low and high the
    lowest and the highest of them; ``units`` is how many have annotated it.
    """
    tables = list(annotations.values())
    bootstrap = _Bootstrap(draws, level, seed)
    units = units_of(tables, attributes)
    n_found = (~np.isnan(units.levels)).sum(axis=0)
    rows: list[dict[str, Any]] = []
    for name, count in (("by one", (n_found == 1).sum()), ("by several", (n_found > 1).sum())):
        rows.append({"measure": f"nuggets found {name}", "value": count, "units": len(n_found)})
    unmatched_name = "alpha, unmatched as level 0"
    rows.append(_alpha_row("level", "alpha", units.levels, "ordinal", bootstrap))
    rows.append(_alpha_row("level", unmatched_name, units.levels_or_0, "ordinal", bootstrap))
    for name, attribute in attributes.items():
        vectors = units.memberships[name]
        rows.append(_alpha_row(name, "alpha", vectors, attribute.kind, bootstrap))
    rows.append(_unitised_row(tables, bootstrap))
    agreement = pd.DataFrame(rows).assign(run="", topic="").fillna({"attribute": ""})

    scores = []
    for table in tables:
        scores.append(gfrc(table, attributes, gains=gains))
        scores.append(gfrc2(table, attributes))
    keys = ["run", "topic", "attribute", "measure"]
    by_score = pd.concat(scores).groupby(keys, sort=False)["value"]
    ends = by_score.agg(value="mean", low="min", high="max", units="size").reset_index()
    n_alone = ends.loc[ends["units"] == 1, ["run", "topic"]].drop_duplicates().shape[0]
    if n_alone:
        note = f"{n_alone} conversations have one annotator alone, whose scores have no width"
        warnings.warn(note, Note, stacklevel=2)
    ends = ends.sort_values(["run", "topic"], kind="stable")
    table_of_all = pd.concat([agreement, ends], ignore_index=True)
    columns = [name for name in _COLUMNS if name not in ("first", "second")]
    return table_of_all.reindex(columns=columns).astype({"units": "Int64"})


def unmatched_nuggets(first: NuggetTable, second: NuggetTable) -> pd.DataFrame:
    """The relevant nuggets that one annotator alone has found: whose, where, level and entity."""
    pair = AnnotatorPair(first, second)
    rows_of_first, rows_of_second = pair.unmatched(pair.matched())
    tables = []
    for name, table, rows in (("first", first, rows_of_first), ("second", second, rows_of_second)):
        nuggets = table.places(rows)
        nuggets.insert(0, "annotator", name)
        tables.append(
            nuggets.assign(
                start=table.start[rows],
                end=table.end[rows],
                level=table.level[rows],
                entity=table.names[rows],
            )
        )
    return pd.concat(tables, ignore_index=True)
