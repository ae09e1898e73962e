"""How far the scores of conversations would move, had annotators judged otherwise: other draws, and single changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.arrays import Booleans, Floats, cumulative_sums, starts
from equipoise.attributes import AttributeSet
from equipoise.declare import checked
from equipoise.nuggets import NuggetTable
from equipoise.options import Level, Resamples, Seed

Scorer = Callable[[NuggetTable], pd.DataFrame]
"""From a nugget table to tidy scores, such as `equipoise.gfrc2` with its options."""

KINDS = ("level", "membership", "position")
"""What annotators may judge otherwise."""
_SCORE = ["run", "topic", "attribute", "measure"]


def _copied(nuggets: NuggetTable, which: NDArray[np.intp]) -> tuple[NuggetTable, NDArray[np.intp]]:
    """These conversations, some many times, numbered by a column ``copy``, and the row that each row is a copy of."""
    first = starts(nuggets.conversation)
    sizes = np.diff(first, append=len(nuggets))[which]
    rows = np.repeat(first[which] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    arrays: dict[str, Any] = {name: getattr(nuggets, name)[rows] for name in ("turn", "start", "end", "level")}
    arrays["memberships"] = {name: shares[rows] for name, shares in nuggets.memberships.items()}
    places = nuggets.conversations.take(which).reset_index(drop=True).assign(copy=np.arange(len(which)))
    entity = None if nuggets.entity is None else nuggets.entity[rows]
    number = np.repeat(np.arange(len(which)), sizes)
    return replace(nuggets, conversations=places, conversation=number, entity=entity, **arrays), rows


def _counted_otherwise(nuggets: NuggetTable, more: NDArray[np.int64]) -> NuggetTable:
    """So many words more before each placed row (fewer where negative, to none at least); what follows moves along."""
    rows = np.flatnonzero(nuggets.start > 0)
    start, end, first = nuggets.start.copy(), nuggets.end.copy(), starts(nuggets.conversation[rows])
    before = np.append(0, end[rows][:-1])[: len(rows)]
    before[first] = 0
    words = end[rows] - start[rows] + 1
    gaps = np.maximum(start[rows] - before - 1 + more[rows], 0)
    end[rows] = cumulative_sums(gaps + words, first).astype(np.int64)
    start[rows] = end[rows] - words + 1
    return replace(nuggets, start=start, end=end)


@checked
def annotation_intervals(
    nuggets: NuggetTable,
    score: Scorer,
    *,
    share: float = 0.1,
    words: int = 3,
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Interval of each score over annotations that differ at random from those given.

    Each judgement on a relevant nugget differs with probability ``share``: its level is one up or down, its membership
    in each attribute set is wholly in a group drawn at random, the words before it are up to ``words`` more or fewer.
    ``score`` takes all draws at once. Columns are run, topic, attribute, measure, value, judged (which of `KINDS`
    differ, or all of them), low and high.
    """
    which = np.tile(np.arange(len(nuggets.conversations)), resamples)
    copies, _ = _copied(nuggets, which)
    relevant, highest = copies.level > 0, int(nuggets.level.max(initial=1))
    given = score(nuggets)
    tables = []
    for kind in (*KINDS, "all"):
        rng, drawn = np.random.default_rng(seed), copies

        def differs(rng: np.random.Generator = rng) -> Booleans:
            return relevant & (rng.random(len(relevant)) < share)

        if kind in ("level", "all"):
            step = np.where(copies.level == highest, -1, rng.choice([-1, 1], len(relevant)))
            drawn = replace(drawn, level=copies.level + step * differs())
        if kind in ("membership", "all"):
            shares = {
                name: np.eye(own.shape[1])[rng.integers(own.shape[1], size=len(own))]
                for name, own in copies.memberships.items()
            }
            others = {name: np.where(differs()[:, None], shares[name], own) for name, own in copies.memberships.items()}
            drawn = replace(drawn, memberships=others)
        if kind in ("position", "all"):
            drawn = _counted_otherwise(drawn, rng.integers(-words, words, len(relevant), endpoint=True) * differs())
        values = score(drawn).groupby(_SCORE, sort=False)["value"]
        ends = [
            values.quantile(end).rename(name) for name, end in (("low", (1 - level) / 2), ("high", (1 + level) / 2))
        ]
        tables.append(given.assign(judged=kind).merge(pd.concat(ends, axis=1).reset_index(), on=_SCORE))
    return pd.concat(tables, ignore_index=True)


def single_changes(
    nuggets: NuggetTable, score: Scorer, attributes: Mapping[str, AttributeSet], *, words: int = 3
) -> pd.DataFrame:
    """Every change of one judgement on one relevant nugget, and what it does to each score, the largest effect first.

    A change is another level, up to the highest in the table, a membership wholly in another group, or ``words`` more
    or fewer before the nugget. Columns are run, topic, turn, wc, nugget (its name), change, attribute, measure, value,
    difference.
    """
    changes: list[tuple[int, str, str, Any]] = []
    for row in np.flatnonzero(nuggets.level > 0).tolist():
        others = set(range(int(nuggets.level.max()) + 1)) - {int(nuggets.level[row])}
        changes += [(row, f"L{nuggets.level[row]} to L{level}", "level", level) for level in sorted(others)]
        for name, attribute in attributes.items():
            shares = np.eye(len(attribute.groups))
            apart = np.flatnonzero((shares != nuggets.memberships[name][row]).any(axis=1))
            changes += [(row, f"{name}: {attribute.groups[group]}", name, shares[group]) for group in apart.tolist()]
        changes += [(row, f"{more:+d} words before it", "position", more) for more in (-words, words)]
    at = np.array([row for row, *_ in changes], dtype=np.intp)
    copies, rows = _copied(nuggets, nuggets.conversation[at])
    changed = np.flatnonzero(rows == at[copies.conversation])
    level, more = copies.level.copy(), np.zeros(len(rows), dtype=np.int64)
    memberships: dict[str, Floats] = {name: shares.copy() for name, shares in copies.memberships.items()}
    for place, (_, _, what, to) in zip(changed, changes, strict=True):
        {"level": level, "position": more, **memberships}[what][place] = to
    scored = score(_counted_otherwise(replace(copies, level=level, memberships=memberships), more))
    about = nuggets.places(at).drop(columns=["run", "topic"])
    about = about.assign(wc=nuggets.end[at], nugget=nuggets.names[at], change=[said for _, said, *_ in changes])
    table = scored.join(about, on="copy").merge(score(nuggets), on=_SCORE, suffixes=("", " given"))
    table["difference"] = table["value"] - table.pop("value given")
    order = table["difference"].abs().sort_values(ascending=False, kind="stable").index
    columns = ["run", "topic", *about.columns, "attribute", "measure", "value", "difference"]
    return table.loc[order, columns].reset_index(drop=True)
