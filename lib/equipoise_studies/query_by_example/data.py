"""What every query-by-example data set is turned into: papers, judgements and splits.

A query is itself a paper of the collection. Three tables travel together:

papers
    ``document, title, abstract``, one row a paper, ids ascending.
judgements
    ``task, query, document, grade``: a query's candidates within a task (a facet, or a kind of
    relatedness), graded with integers, 0 for not relevant.
splits
    ``task, fold, part, query``: which queries of a task are for tuning (``part`` "dev") and which
    for testing (``part`` "test") in each fold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

from equipoise.problems import need_columns, refuse_twice

Choice = TypeVar("Choice")

PAIR = ["task", "query", "document"]
"""What a grade or a score belongs to."""

TASK_NAMES = {"coview": "Co-view", "coread": "Co-read", "cocite": "Co-cite", "cite": "Cite"}
"""The thesis's names of SciDocs' tasks, in the order of its tables."""

LINK_TASK_NAMES = {
    "cisicocite": "CISI co-cite",
    "cacmcocite": "CACM co-cite",
    "cacmcite": "CACM cite",
}
"""Names of the tasks that are made of the links of CISI and CACM."""

_COLUMNS = {
    "papers": ["document", "title", "abstract"],
    "judgements": [*PAIR, "grade"],
    "splits": ["task", "fold", "part", "query"],
}
_KEYS = {
    "papers": ["document"],
    "judgements": PAIR,
    "splits": ["task", "fold", "query"],
}


@dataclass(frozen=True)
class QueryByExample:
    """A query-by-example data set, its tables checked against each other (thesis section 2.3.1)."""

    papers: pd.DataFrame
    judgements: pd.DataFrame
    splits: pd.DataFrame

    def __post_init__(self) -> None:
        for name, columns in _COLUMNS.items():
            need_columns(getattr(self, name), columns)
            refuse_twice(getattr(self, name), _KEYS[name], f"{name} hold a row")
        judged = set(self.judgements["query"]) | set(self.judgements["document"])
        without_text = sorted(judged - set(self.papers["document"]))
        if without_text:
            raise ValueError(
                f"{len(without_text)} judged papers have no text, the first is {without_text[0]!r}"
            )

    @classmethod
    def of(cls, **rows: Any) -> QueryByExample:
        """The data set of each table's rows as loaders read them, in any order."""
        tables = {}
        for name, columns in _COLUMNS.items():
            table = pd.DataFrame(rows[name], columns=columns)
            tables[name] = table.sort_values(columns, ignore_index=True)
        return cls(**tables)

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
        """Each ``query, document`` pair judged in some task, once, ascending: what is scored."""
        pairs = self.judgements[["query", "document"]].drop_duplicates()
        return pairs.sort_values(["query", "document"], ignore_index=True)


def text_of(papers: pd.DataFrame) -> pd.Series:
    """Text by which a paper is searched and ranked, by document.

    thesis section 2.3.1: "a concatenation of abstract and title"; here the title, a space, and the
    abstract.
    """
    text = papers["title"] + " " + papers["abstract"]
    return text.str.strip().set_axis(pd.Index(papers["document"], name="document")).rename("text")


def without_reversed(judged: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """Judged pairs without those that are scored the other way round.

    A paper may be a query in one half and a candidate in the other: links go both ways.
    """
    reversed_pairs = scored.rename(columns={"query": "document", "document": "query"})
    scored_pairs = pd.MultiIndex.from_frame(reversed_pairs[["query", "document"]])
    return judged[~pd.MultiIndex.from_frame(judged[["query", "document"]]).isin(scored_pairs)]


def task_name(task: str) -> str:
    """What tables call a task."""
    return (TASK_NAMES | LINK_TASK_NAMES).get(task, task.capitalize())


def in_table_order(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``task, query, ...``, sorted, with the thesis's tasks in the order of its tables."""
    places = {task: place for place, task in enumerate(TASK_NAMES)}
    # Tasks of other collections stay in alphabetical order: all have the same place.
    place = table["task"].map(places).fillna(len(places))
    by_column = [name for name in (*PAIR, "fold", "part") if name in table]
    ordered = table.assign(place=place).sort_values(["place", *by_column], ignore_index=True)
    return ordered.drop(columns="place")


def chosen(choices: Mapping[str, Choice], word: str, what: str) -> Choice:
    """What a word stands for; a word that is none of the choices is refused."""
    if word not in choices:
        raise ValueError(f"{what} must be {' or '.join(map(json.dumps, choices))}, found {word!r}")
    return choices[word]
