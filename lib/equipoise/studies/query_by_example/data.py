"""What every query-by-example data set is turned into: papers, judgements and splits.

A query is itself a paper of the collection. Three tables travel together:

papers
    ``document, title, abstract``, one row a paper, ids ascending.
judgements
    ``task, query, document, grade``: a query's candidates within a task (a facet, or a kind of relatedness),
    graded with integers, 0 for not relevant.
splits
    ``task, fold, part, query``: which queries of a task are for tuning (``part`` "dev") and which for testing
    (``part`` "test") in each fold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.problems import InputError, Problem

_COLUMNS = {
    "papers": ("document", "title", "abstract"),
    "judgements": ("task", "query", "document", "grade"),
    "splits": ("task", "fold", "part", "query"),
}
_KEYS = {"papers": ["document"], "judgements": ["task", "query", "document"], "splits": ["task", "fold", "query"]}


@dataclass(frozen=True)
class QueryByExample:
    """A query-by-example data set as three tidy tables, checked against each other (thesis section 2.3.1)."""

    papers: pd.DataFrame
    judgements: pd.DataFrame
    splits: pd.DataFrame

    def __post_init__(self) -> None:
        for name, columns in _COLUMNS.items():
            frame = getattr(self, name)
            if missing := [column for column in columns if column not in frame.columns]:
                raise ValueError(f"{name} lacks the columns {missing}; found {list(frame.columns)}")
            twice = frame[frame.duplicated(_KEYS[name])]
            if len(twice):
                raise ValueError(f"{name} holds {tuple(twice.iloc[0][_KEYS[name]])} more than once")
        named = set(self.judgements["query"]) | set(self.judgements["document"])
        if unknown := sorted(named - set(self.papers["document"])):
            raise ValueError(f"{len(unknown)} judged papers have no text, the first is {unknown[0]!r}")

    @classmethod
    def of(cls, papers: Iterable[Any], judgements: pd.DataFrame, splits: Iterable[Any]) -> QueryByExample:
        """The data set of rows as loaders read them, in any order."""
        texts = pd.DataFrame(papers, columns=[*_COLUMNS["papers"]])
        parts = pd.DataFrame(splits, columns=[*_COLUMNS["splits"]])
        return cls(
            papers=texts.sort_values("document", ignore_index=True),
            judgements=judgements.sort_values(_KEYS["judgements"], ignore_index=True),
            splits=parts.sort_values([*_COLUMNS["splits"]], ignore_index=True),
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks, ascending."""
        return tuple(sorted(set(self.judgements["task"])))

    @property
    def queries(self) -> tuple[str, ...]:
        """The ids of all query papers over all tasks, ascending."""
        return tuple(sorted(set(self.judgements["query"])))

    @property
    def pairs(self) -> pd.DataFrame:
        """Every ``query, document`` pair judged in some task, once, in ascending order: what a system must score."""
        pairs = self.judgements[["query", "document"]].drop_duplicates()
        return pairs.sort_values(["query", "document"], ignore_index=True)


def text_of(papers: pd.DataFrame) -> pd.Series:
    """Text by which a paper is searched and ranked, by document.

    thesis section 2.3.1: "a concatenation of abstract and title"; here the title, a space, and the abstract.
    """
    text = papers["title"] + " " + papers["abstract"]
    return text.str.strip().set_axis(pd.Index(papers["document"], name="document")).rename("text")


def read_json(path: Path, wanted: str) -> dict[str, Any]:
    """A JSON object from a file; what is no such file is refused, saying what was wanted."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise InputError([Problem(path.name, line, None, str(error), wanted)]) from None
    if not isinstance(content, dict):
        raise InputError([Problem(path.name, None, None, f"a JSON {type(content).__name__}", wanted)])
    return content
