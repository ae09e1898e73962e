"""How far the scores of conversations would move, had annotators judged otherwise: other draws, and single changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.arrays import Floats, cumulative_sums, starts
from equipoise.attributes import AttributeSet
from equipoise.declare import checked
from equipoise.nuggets import NuggetTable
from equipoise.options import Resamples, Seed

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
    arrays: dict[str, Any] = {
        name: getattr(nuggets, name)[rows] for name in ("turn", "start", "end", "level")
    }
    arrays["memberships"] = {name: shares[rows] for name, shares in nuggets.memberships.items()}
    places = (
        nuggets.conversations.take(which).reset_index(drop=True).assign(copy=np.arange(len(which)))
    )
    entity = None if nuggets.entity is None else nuggets.entity[rows]
    number = np.repeat(np.arange(len(which)), sizes)
    return replace(
        nuggets, conversations=places, conversation=number, entity=entity, **arrays
    ), rows


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
def annotation_draws(
    nuggets: NuggetTable,
    score: Scorer,
    judged: Sequence[str] = KINDS,
    *,
    share: float = 0.1,
    words: int = 3,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Scores over annotations that differ at random from those given, in what is ``judged`` otherwise, of `KINDS`.

    Each judgement on a relevant nugget differs with probability ``share``: its level is one up or
    down, its membership in each attribute set is wholly in a group drawn at random, the words
    before it are up to ``words`` more or fewer. ``score`` takes all draws at once. Columns are
    those of the scores, and copy: the number of the draw, times the number of conversations, plus
    that of the conversation.
    """
    drawn, _ = _copied(nuggets, np.tile(np.arange(len(nuggets.conversations)), resamples))
    relevant, rng = drawn.level > 0, np.random.default_rng(seed)
    count, highest = len(relevant), int(nuggets.level.max(initial=1))
    if "level" in judged:
        step = np.where(drawn.level == highest, -1, rng.choice([-1, 1], count))
        drawn = replace(drawn, level=drawn.level + step * (relevant & (rng.random(count) < share)))
    if "membership" in judged:
        memberships = {}
        for name, own in drawn.memberships.items():
            other = np.eye(own.shape[1])[rng.integers(own.shape[1], size=count)]
            memberships[name] = np.where(
                (relevant & (rng.random(count) < share))[:, None], other, own
            )
        drawn = replace(drawn, memberships=memberships)
    if "position" in judged:
        more = rng.integers(-words, words, count, endpoint=True) * (
            relevant & (rng.random(count) < share)
        )
        drawn = _counted_otherwise(drawn, more)
    return score(drawn)


def annotation_intervals(
    nuggets: NuggetTable, score: Scorer, *, level: float = 0.95, **options: Any
) -> pd.DataFrame:
    """Interval of each score over `annotation_draws`, whose options these are: by what is judged otherwise, and by all.

    Columns are run, topic, attribute, measure, value, judged (one of `KINDS`, or ``all``), low and
    high.
    """
    tables = []
    for kind in (*KINDS, "all"):
        draws = annotation_draws(nuggets, score, KINDS if kind == "all" else [kind], **options)
        values = draws.groupby(_SCORE, sort=False)["value"]
        low, high = (values.quantile(end).to_numpy() for end in ((1 - level) / 2, (1 + level) / 2))
        tables.append(score(nuggets).assign(judged=kind, low=low, high=high))
    return pd.concat(tables, ignore_index=True)


def single_changes(
    nuggets: NuggetTable, score: Scorer, attributes: Mapping[str, AttributeSet], *, words: int = 3
) -> pd.DataFrame:
    """Every change of one judgement on one relevant nugget, and what it does to each score, the largest effect first.

    A change is another level, up to the highest in the table, a membership wholly in another group,
    or ``words`` more or fewer before the nugget. Columns are run, topic, turn, wc, nugget (its
    name), change, attribute, measure, value, difference.
    """
    changes: list[tuple[int, str, str, Any]] = []
    for row in np.flatnonzero(nuggets.level > 0).tolist():
        others = set(range(int(nuggets.level.max()) + 1)) - {int(nuggets.level[row])}
        changes += [
            (row, f"L{nuggets.level[row]} to L{level}", "level", level) for level in sorted(others)
        ]
        for name, attribute in attributes.items():
            shares = np.eye(len(attribute.groups))
            apart = np.flatnonzero((shares != nuggets.memberships[name][row]).any(axis=1))
            changes += [
                (row, f"{name}: {attribute.groups[group]}", name, shares[group])
                for group in apart.tolist()
            ]
        changes += [
            (row, f"{more:+d} words before it", "position", more) for more in (-words, words)
        ]
    at = np.array([row for row, *_ in changes], dtype=np.intp)
    copies, rows = _copied(nuggets, nuggets.conversation[at])
    changed = np.flatnonzero(rows == at[copies.conversation])
    level, more = copies.level.copy(), np.zeros(len(rows), dtype=np.int64)
    memberships: dict[str, Floats] = {
        name: shares.copy() for name, shares in copies.memberships.items()
    }
    for place, (_, _, what, to) in zip(changed, changes, strict=True):
        {"level": level, "position": more, **memberships}[what][place] = to
    scored = score(_counted_otherwise(replace(copies, level=level, memberships=memberships), more))
    about = nuggets.places(at).drop(columns=["run", "topic"])
    about = about.assign(
        wc=nuggets.end[at], nugget=nuggets.names[at], change=[said for _, said, *_ in changes]
    )
    table = scored.join(about, on="copy").merge(score(nuggets), on=_SCORE, suffixes=("", " given"))
    table["difference"] = table["value"] - table.pop("value given")
    order = table["difference"].abs().sort_values(ascending=False, kind="stable").index
    columns = ["run", "topic", *about.columns, "attribute", "measure", "value", "difference"]
    return table.loc[order, columns].reset_index(drop=True)
