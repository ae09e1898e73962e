"""SciDocs in its published format, for whoever has it: four tasks of query by example.

A folder holds ``{coview,coread,cocite,cite}/{val,test}.qrel`` (lines ``query 0 document grade``)
and ``paper_metadata_view_cite_read.json`` (an object from paper id to its record, with ``title``
and ``abstract``).

References
----------
Cohan, A. et al. (2020): SPECTER: Document-level Representation Learning using Citation-informed
Transformers. ACL.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from equipoise.files import read_json
from equipoise.loaders.trec import read_qrels
from equipoise.problems import Problems
from equipoise_studies.query_by_example.data import TASK_NAMES, QueryByExample

TASKS = tuple(TASK_NAMES)
"""The four tasks, in the order of the thesis's tables."""

QUERIES, CANDIDATES, RELEVANT = 1000, 30, 5
"""Test queries of a task, about; candidates of each at most, and relevant ones among these."""

FEWEST_QUERIES, MOST_QUERIES = 900, 1100
"""What "about 1,000" test queries may be."""


def load_scidocs(folder: Path, *, tasks: Iterable[str] = TASKS) -> QueryByExample:
    """Load SciDocs' tasks of query by example from the folder that SciDocs publishes.

    There is one fold: validation queries are its dev part, test queries its test part. Only papers
    that a task names are kept. A paper without abstract (null upstream) has an empty one.

    thesis section 2.3.1: about 1,000 test queries a task, with up to 5 positive and 25 negative
    candidates.
    """
    judgements = _judgements(folder, tasks)
    splits = judgements[["task", "fold", "part", "query"]].drop_duplicates()
    problems = Problems()
    for row in splits[splits.duplicated(["task", "query"])].itertuples(index=False):
        fault = f"query {row.query} among validation and test queries"
        problems.add(folder / row.task, None, None, fault, "each query in one of the two")

    metadata = folder / "paper_metadata_view_cite_read.json"
    records = read_json(metadata, dict, "a JSON object")
    papers = []
    for document in sorted(set(judgements["query"]) | set(judgements["document"])):
        record = records.get(document)
        if not isinstance(record, dict) or not isinstance(record.get("title"), str):
            fault = f"no record with a title for paper {document}"
            problems.add(metadata, None, None, fault, "a record for every judged paper")
            continue
        # An abstract is null where SciDocs has none.
        papers.append((document, record["title"], record.get("abstract") or ""))
    problems.refuse()
    return QueryByExample.of(papers=papers, judgements=judgements, splits=splits)


def other_than_scidocs(folder: Path) -> str:
    """What tells a folder in SciDocs's form from SciDocs itself; empty where nothing does.

    Of each task SciDocs has about 1,000 test queries, each with up to 5 relevant papers and 25
    others (thesis section 2.3.1; SciDocs's own paper has 1,000 of each but for a few that were
    dropped).
    """
    judgements = _judgements(folder, TASKS)
    test = judgements[judgements["part"] == "test"]
    for task in TASKS:
        of_task = test[test["task"] == task]
        queries = of_task["query"].nunique()
        if not FEWEST_QUERIES <= queries <= MOST_QUERIES:
            return f"{queries:,} test queries of {task}, where SciDocs has about 1,000"
        of_queries = of_task.groupby("query")["grade"]
        relevant = int(of_queries.agg(lambda grades: (grades > 0).sum()).max())
        candidates = int(of_queries.size().max())
        if relevant > RELEVANT or candidates > CANDIDATES:
            return (
                f"up to {candidates} candidates a query of {task}, {relevant} relevant, "
                "where SciDocs has up to 30, 5 relevant"
            )
    return ""


def _judgements(folder: Path, tasks: Iterable[str]) -> pd.DataFrame:
    """Judgements of every task with the part that their query belongs to."""
    problems, tables = Problems(), []
    for task in tasks:
        if task not in TASKS:
            raise ValueError(f"no task named {task!r}; there are {', '.join(TASKS)}")
        for stem, part in (("val", "dev"), ("test", "test")):
            # Faults of several files are told together.
            with problems.collecting():
                qrels = read_qrels(folder / task / f"{stem}.qrel")
                tables.append(qrels.assign(task=task, fold="fold1", part=part))
    problems.refuse()
    return pd.concat(tables).rename(columns={"topic": "query", "level": "grade"})
