"""Read conversation trees, the nuggets of their rounds, and tables of scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.files import Source, parse_number, read_source
from equipoise.problems import shown

_TREE = ("run", "topic", "node", "parent", "probability", "words")
_NUGGET = ("run", "topic", "node", "start", "end", "level")


def _numbers_of(source: Source, name: str, lowest: float) -> pd.Series:
    """A column of a table as numbers from the least one on; others are collected."""
    # Counts of words, positions and levels are whole numbers.
    may_be_fraction = name in ("probability", "value")
    expected = "a number" if lowest < 0 else f"a number from {lowest:g} on"
    values = np.full(len(source.columns), np.nan)
    # Text by text, for a fraction such as 3/4 is a number too.
    for row, text in enumerate(source.columns[name].astype("str")):
        try:
            number = parse_number(text)
        except ValueError:
            source.report([row], name, shown(text), expected)
            continue
        if number < lowest or not (may_be_fraction or number.is_integer()):
            source.report([row], name, shown(text), expected)
        values[row] = number
    return pd.Series(values, source.columns.index)


def _checked(
    source: Source, required: Iterable[str], optional: Iterable[str], numbers: Mapping[str, float]
) -> pd.DataFrame:
    """A table with these columns; ``numbers`` are those of numbers, with the least of each."""
    source.check_header(list(required), list(optional))
    table = source.columns
    for name, lowest in numbers.items():
        table[name] = _numbers_of(source, name, lowest)
    source.problems.refuse()
    return table


def read_tree(path: Path) -> pd.DataFrame:
    """Rounds of conversation trees, for `equipoise.measures.trees.conversation_trees`.

    A column intent may be there.
    """
    table = _checked(read_source(path), _TREE, ["intent"], {"probability": 0, "words": 0})
    return table.reindex(columns=[*_TREE, "intent"], fill_value="").astype({"words": int})


def read_tree_nuggets(path: Path, attributes: Mapping[str, AttributeSet]) -> pd.DataFrame:
    """Nuggets of the rounds of trees.

    A column intent, where it is there, names for whom alone each is relevant.
    """
    required = [*_NUGGET, *attributes]
    numbers = {"start": 1, "end": 1, "level": 0}
    table = _checked(read_source(path), required, ["entity", "intent"], numbers)
    columns = [*required, "entity", "intent"] if "entity" in table else [*required, "intent"]
    return table.reindex(columns=columns, fill_value="").astype(dict.fromkeys(numbers, int))


def read_scores(path: Path) -> pd.DataFrame:
    """A tidy table of scores, as `equipoise score` writes them.

    Whatever other columns it has tell the scores apart.
    """
    source = read_source(path)
    keys = [str(name) for name in source.columns if name not in ("measure", "value")]
    numbers = {"value": -np.inf}
    if "probability" in keys:
        numbers["probability"] = 0
    return _checked(source, ["measure", "value"], keys, numbers)
