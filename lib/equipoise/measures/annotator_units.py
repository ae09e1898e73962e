"""What any number of annotators label together: nuggets that match, and words inside of nuggets."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from equipoise.arrays import Floats, Integers
from equipoise.attributes import AttributeSet
from equipoise.measures.annotator_pairs import AnnotatorPair
from equipoise.nuggets import NuggetTable
from equipoise.problems import Note

_KEYS = ["run", "topic"]


@dataclass(frozen=True)
class LabelledUnits:
    """Labels of units by annotators, NaN where one has none.

    ``levels`` (annotators, units); ``levels_or_0`` has 0 where an annotator of the conversation has
    no such nugget. ``memberships`` (annotators, units, groups) are of relevant nuggets alone.
    """

    levels: Floats
    levels_or_0: Floats
    memberships: Mapping[str, Floats]


def conversations_of(tables: Sequence[NuggetTable]) -> tuple[pd.DataFrame, list[Integers]]:
    """All conversations, and the number among them of each conversation of each table."""
    keys = pd.concat([table.conversations[_KEYS] for table in tables])
    keys = keys.drop_duplicates(ignore_index=True)
    index = pd.MultiIndex.from_frame(keys)
    numbers = []
    for table in tables:
        names = pd.MultiIndex.from_frame(table.conversations[_KEYS])
        numbers.append(index.get_indexer(names))
    return keys, numbers


def units_of(
    tables: Sequence[NuggetTable], attributes: Mapping[str, AttributeSet]
) -> LabelledUnits:
    """Units of the nuggets of annotators: all that are matched, two annotators at a time."""
    annotator, row, unit = _matched_nuggets(tables)
    n_units = int(unit.max(initial=-1)) + 1
    levels = np.full((len(tables), n_units), np.nan)
    sizes = {name: len(attribute.groups) for name, attribute in attributes.items()}
    memberships = {}
    for name, n_groups in sizes.items():
        memberships[name] = np.full((len(tables), n_units, n_groups), np.nan)
    _, numbers = conversations_of(tables)
    conversation_of_unit = np.zeros(n_units, dtype=np.int64)
    for number, table in enumerate(tables):
        rows, units = row[annotator == number], unit[annotator == number]
        levels[number, units] = table.level[rows]
        conversation_of_unit[units] = numbers[number][table.conversation[rows]]
        # Groups are compared where annotators call the nugget relevant.
        is_relevant = table.level[rows] > 0
        for name, vectors in memberships.items():
            vectors[number, units[is_relevant]] = table.memberships[name][rows[is_relevant]]

    has_annotated = np.stack([np.isin(conversation_of_unit, known) for known in numbers])
    levels_or_0 = np.where(np.isnan(levels) & has_annotated, 0.0, levels)
    # What nobody calls relevant is found by whoever happens to mark it.
    is_relevant = np.nanmax(levels, axis=0, initial=0.0) > 0
    levels_or_0[:, ~is_relevant] = np.nan
    return LabelledUnits(levels, levels_or_0, memberships)


def _matched_nuggets(tables: Sequence[NuggetTable]) -> tuple[Integers, Integers, Integers]:
    """Annotator, row and unit of every nugget with a position."""
    offsets = np.cumsum([0, *(len(table) for table in tables)])
    pairs_of_nodes = []
    for (a, first), (b, second) in combinations(enumerate(tables), 2):
        with warnings.catch_warnings():
            # A conversation that others lack is not left out here.
            warnings.simplefilter("ignore", Note)
            rows_of_first, rows_of_second = AnnotatorPair(first, second).matched()
        pairs_of_nodes.append(np.stack([offsets[a] + rows_of_first, offsets[b] + rows_of_second]))
    first_nodes, second_nodes = np.concatenate(pairs_of_nodes, axis=1)
    n_nodes = int(offsets[-1])
    edges = coo_array((np.ones(len(first_nodes)), (first_nodes, second_nodes)), (n_nodes, n_nodes))
    _, component = connected_components(edges, directed=False)

    rows = [np.flatnonzero(table.start > 0) for table in tables]
    annotator = np.repeat(np.arange(len(tables)), [len(places) for places in rows])
    row = np.concatenate(rows)
    unit = component[offsets[annotator] + row]
    # A chain of matches may lead to a second nugget of one annotator: a unit of its own.
    again = pd.DataFrame({"unit": unit, "annotator": annotator}).duplicated().to_numpy()
    unit[again] = n_nodes + np.arange(again.sum())
    _, unit = np.unique(unit, return_inverse=True)
    return annotator, row, unit


def inside_words(tables: Sequence[NuggetTable]) -> tuple[Integers, Floats, Integers]:
    """Stretches of words, and whether they are inside of a relevant nugget of each annotator.

    Codes are shaped (annotators, stretches): 1 inside, 0 outside, -1 where an annotator has not
    annotated the conversation. Beside them the words of each stretch, and its conversation. A
    conversation ends with the last word that anyone has marked.
    """
    _, numbers = conversations_of(tables)
    ends = []
    for number, (table, known) in enumerate(zip(tables, numbers, strict=True)):
        rows = np.flatnonzero((table.start > 0) & (table.level > 0))
        conversation = known[table.conversation[rows]]
        for place, step in ((table.start[rows], 1), (table.end[rows] + 1, -1)):
            part = {"conversation": conversation, "word": place, "step": step, "annotator": number}
            ends.append(pd.DataFrame(part))
    # Every conversation begins with its first word, whoever marks it.
    annotated = np.unique(np.concatenate(numbers))
    ends.append(pd.DataFrame({"conversation": annotated, "word": 1, "step": 0, "annotator": 0}))
    keys = ["conversation", "word"]
    steps = pd.concat(ends).pivot_table(
        index=keys, columns="annotator", values="step", aggfunc="sum", fill_value=0
    )
    steps = steps.reindex(columns=range(len(tables)), fill_value=0)
    codes = steps.groupby(level="conversation").cumsum().to_numpy(dtype=np.int64).T.copy()
    conversation = steps.index.get_level_values("conversation").to_numpy()
    word = steps.index.get_level_values("word").to_numpy()
    lengths = np.append(np.diff(word), 0).astype(np.float64)
    is_last = np.append(np.diff(conversation) != 0, True)
    lengths[is_last] = 0.0
    for number, known in enumerate(numbers):
        codes[number, ~np.isin(conversation, known)] = -1
    return codes, lengths, conversation
