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

from dataclasses import dataclass

import pandas as pd

PAPER_COLUMNS = ("document", "title", "abstract")
"""Columns of papers, queries among them."""

JUDGEMENT_COLUMNS = ("task", "query", "document", "grade")
"""Columns of judgements."""

SPLIT_COLUMNS = ("task", "fold", "part", "query")
"""Columns of splits: which queries of a task a fold tunes on (dev) and tests on."""


@dataclass(frozen=True)
class QueryByExample:
    """A query-by-example data set as three tidy tables.

    ``papers``: ``document, title, abstract``; ids are strings and unique. ``judgements``: ``task, query, document,
    grade``; one row a candidate of a query. ``splits``: ``task, fold, part, query``; ``part`` is "dev" or "test".

    thesis section 2.3.1.
    """

    papers: pd.DataFrame
    judgements: pd.DataFrame
    splits: pd.DataFrame

    def __post_init__(self) -> None:
        for name, frame, columns, key in (
            ("papers", self.papers, PAPER_COLUMNS, ["document"]),
            ("judgements", self.judgements, JUDGEMENT_COLUMNS, ["task", "query", "document"]),
            ("splits", self.splits, SPLIT_COLUMNS, ["task", "fold", "query"]),
        ):
            if missing := [column for column in columns if column not in frame.columns]:
                raise ValueError(f"{name} lacks the columns {missing}; found {list(frame.columns)}")
            twice = frame[frame.duplicated(key)]
            if len(twice):
                raise ValueError(f"{name} holds {tuple(twice.iloc[0][key])} more than once")
        known = set(self.papers["document"])
        for column in ("query", "document"):
            if unknown := sorted(set(self.judgements[column]) - known):
                raise ValueError(f"{len(unknown)} judged papers have no text, the first is {unknown[0]!r}")

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
    """Text by which a paper is searched and ranked: its title and its abstract.

    ``papers``: ``document, title, abstract``. Returns: The title, a space, and the abstract.

    thesis section 2.3.1: "a concatenation of abstract and title".
    """
    text = papers["title"] + " " + papers["abstract"]
    return text.str.strip().set_axis(pd.Index(papers["document"], name="document")).rename("text")
