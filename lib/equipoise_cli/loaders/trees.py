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


def _checked(
    source: Source, required: Iterable[str], optional: Iterable[str], numbers: Mapping[str, float]
) -> Source:
    """A table with these columns, of which those of ``numbers`` are numbers from the least one on."""
    source.check_header(list(required), list(optional))
    for name, least in numbers.items():
        values = np.full(len(source.columns), np.nan)
        for row, text in enumerate(source.columns[name].astype("str")):
            try:
                values[row] = parse_number(text)
                good = values[row] >= least and (
                    name in ("probability", "value") or values[row].is_integer()
                )
            except ValueError:
                good = False
            if not good:
                source.report(
                    [row],
                    name,
                    shown(text),
                    "a number" if least < 0 else f"a number from {least:g} on",
                )
        source.columns[name] = values
    source.problems.refuse()
    return source


def read_tree(path: Path) -> pd.DataFrame:
    """Rounds of conversation trees, for `equipoise.measures.trees.conversation_trees`; a column intent may be there."""
    table = _checked(read_source(path), _TREE, ["intent"], {"probability": 0, "words": 0}).columns
    return table.reindex(columns=[*_TREE, "intent"], fill_value="").astype({"words": int})


def read_tree_nuggets(path: Path, attributes: Mapping[str, AttributeSet]) -> pd.DataFrame:
    """Nuggets of the rounds of trees; a column intent, where it is there, names for whom alone each is relevant."""
    numbers = {"start": 1, "end": 1, "level": 0}
    table = _checked(
        read_source(path), [*_NUGGET, *attributes], ["entity", "intent"], numbers
    ).columns
    kept = [*_NUGGET, *attributes, *(name for name in ("entity",) if name in table), "intent"]
    return table.reindex(columns=kept, fill_value="").astype(dict.fromkeys(numbers, int))


def read_scores(path: Path) -> pd.DataFrame:
    """A tidy table of scores, as `equipoise score` writes them, with whatever columns tell them apart."""
    source = read_source(path)
    others = [str(name) for name in source.columns if name not in ("measure", "value")]
    numbers = {"value": -np.inf} | ({"probability": 0} if "probability" in others else {})
    return _checked(source, ["measure", "value"], others, numbers).columns
