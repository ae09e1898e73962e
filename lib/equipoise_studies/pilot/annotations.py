"""How far scores of conversations would move, had annotators judged otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

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
    """These conversations, some many times, in a column ``copy``, and of each row its original."""
    first = starts(nuggets.conversation)
    sizes = np.diff(first, append=len(nuggets))[which]
    first_of_copy = np.cumsum(sizes) - sizes
    rows = np.repeat(first[which] - first_of_copy, sizes) + np.arange(sizes.sum())

    conversations = nuggets.conversations.take(which).reset_index(drop=True)
    memberships = {name: shares[rows] for name, shares in nuggets.memberships.items()}
    copies = replace(
        nuggets,
        conversations=conversations.assign(copy=np.arange(len(which))),
        conversation=np.repeat(np.arange(len(which)), sizes),
        turn=nuggets.turn[rows],
        start=nuggets.start[rows],
        end=nuggets.end[rows],
        level=nuggets.level[rows],
        memberships=memberships,
        entity=None if nuggets.entity is None else nuggets.entity[rows],
    )
    return copies, rows


def _with_words_before(nuggets: NuggetTable, words_added: NDArray[np.int64]) -> NuggetTable:
    """So many words more before each placed row, fewer where negative; what follows moves along.

    No fewer words are left than none.
    """
    rows = np.flatnonzero(nuggets.start > 0)
    start, end = nuggets.start.copy(), nuggets.end.copy()
    first = starts(nuggets.conversation[rows])
    end_before = np.append(0, end[rows][:-1])[: len(rows)]
    end_before[first] = 0
    lengths = end[rows] - start[rows] + 1
    gaps = np.maximum(start[rows] - end_before - 1 + words_added[rows], 0)
    end[rows] = cumulative_sums(gaps + lengths, first).astype(np.int64)
    start[rows] = end[rows] - lengths + 1
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
    """Scores over annotations that differ at random, in what is ``judged`` otherwise, of `KINDS`.

    Each judgement on a relevant nugget differs with probability ``share``: its level is one up or
    down, its membership in each attribute set is wholly in a group drawn at random, the words
    before it are up to ``words`` more or fewer. ``score`` takes all draws at once. Columns are
    those of the scores, and copy: the number of the draw, times the number of conversations, plus
    that of the conversation.
    """
    conversations = np.arange(len(nuggets.conversations))
    drawn, _ = _copied(nuggets, np.tile(conversations, resamples))
    relevant = drawn.level > 0
    count = len(relevant)
    rng = np.random.default_rng(seed)
    if "level" in judged:
        highest = int(nuggets.level.max(initial=1))
        step = np.where(drawn.level == highest, -1, rng.choice([-1, 1], count))
        differs = relevant & (rng.random(count) < share)
        drawn = replace(drawn, level=drawn.level + step * differs)
    if "membership" in judged:
        memberships = {}
        for name, shares in drawn.memberships.items():
            groups = shares.shape[1]
            other_group = np.eye(groups)[rng.integers(groups, size=count)]
            differs = relevant & (rng.random(count) < share)
            memberships[name] = np.where(differs[:, None], other_group, shares)
        drawn = replace(drawn, memberships=memberships)
    if "position" in judged:
        words_added = rng.integers(-words, words, count, endpoint=True)
        differs = relevant & (rng.random(count) < share)
        drawn = _with_words_before(drawn, words_added * differs)
    return score(drawn)


def annotation_intervals(
    nuggets: NuggetTable, score: Scorer, *, level: float = 0.95, **options: Any
) -> pd.DataFrame:
    """Interval of each score over `annotation_draws`, by what is judged otherwise.

    Columns are run, topic, attribute, measure, value, judged (one of `KINDS`, or ``all``), low and
    high.
    """
    tail = (1 - level) / 2
    judged_by_name = {kind: [kind] for kind in KINDS} | {"all": list(KINDS)}
    tables = []
    for name, judged in judged_by_name.items():
        draws = annotation_draws(nuggets, score, judged, **options)
        values = draws.groupby(_SCORE, sort=False)["value"]
        table = score(nuggets).assign(judged=name)
        table["low"] = values.quantile(tail).to_numpy()
        table["high"] = values.quantile(1 - tail).to_numpy()
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


class _Change(NamedTuple):
    """Another judgement: of which row, what it says, and the new value."""

    row: int
    description: str
    column: str
    """``level``, ``position``, or the name of an attribute set."""
    value: Any


def _changes_of(
    nuggets: NuggetTable, row: int, attributes: Mapping[str, AttributeSet], words: int
) -> list[_Change]:
    """Every other judgement on one nugget."""
    changes = []
    current_level = int(nuggets.level[row])
    for level in range(int(nuggets.level.max()) + 1):
        if level != current_level:
            changes.append(_Change(row, f"L{current_level} to L{level}", "level", level))
    for name, attribute in attributes.items():
        current_shares = nuggets.memberships[name][row]
        for group, shares in zip(attribute.groups, np.eye(len(attribute.groups)), strict=True):
            if (shares != current_shares).any():
                changes.append(_Change(row, f"{name}: {group}", name, shares))
    for words_added in (-words, words):
        description = f"{words_added:+d} words before it"
        changes.append(_Change(row, description, "position", words_added))
    return changes


def single_changes(
    nuggets: NuggetTable, score: Scorer, attributes: Mapping[str, AttributeSet], *, words: int = 3
) -> pd.DataFrame:
    """Every change of one judgement on a relevant nugget, and its effects, the largest first.

    A change is another level, up to the highest in the table, a membership wholly in another group,
    or ``words`` more or fewer before the nugget. Columns are run, topic, turn, wc, nugget (its
    name), change, attribute, measure, value, difference.
    """
    changes = []
    for row in np.flatnonzero(nuggets.level > 0).tolist():
        changes += _changes_of(nuggets, row, attributes, words)
    changed_rows = np.array([change.row for change in changes], dtype=np.intp)

    # One copy of the conversation for each change, so that all are scored at once.
    copies, originals = _copied(nuggets, nuggets.conversation[changed_rows])
    places = np.flatnonzero(originals == changed_rows[copies.conversation])
    level = copies.level.copy()
    words_added = np.zeros(len(originals), dtype=np.int64)
    memberships: dict[str, Floats] = {}
    for name, shares in copies.memberships.items():
        memberships[name] = shares.copy()
    for place, change in zip(places, changes, strict=True):
        if change.column == "level":
            level[place] = change.value
        elif change.column == "position":
            words_added[place] = change.value
        else:
            memberships[change.column][place] = change.value
    copies = replace(copies, level=level, memberships=memberships)
    scores = score(_with_words_before(copies, words_added))

    about = nuggets.places(changed_rows).drop(columns=["run", "topic"])
    about["wc"] = nuggets.end[changed_rows]
    about["nugget"] = nuggets.names[changed_rows]
    about["change"] = [change.description for change in changes]
    table = scores.join(about, on="copy")
    table = table.merge(score(nuggets), on=_SCORE, suffixes=("", " given"))
    table["difference"] = table["value"] - table["value given"]
    largest_first = table["difference"].abs().sort_values(ascending=False, kind="stable").index
    columns = ["run", "topic", *about.columns, "attribute", "measure", "value", "difference"]
    return table.loc[largest_first, columns].reset_index(drop=True)
