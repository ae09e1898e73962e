"""SciDocs in its published format, for whoever has it: four tasks of query by example.

A folder holds ``{coview,coread,cocite,cite}/{val,test}.qrel`` (lines ``query 0 document grade``) and
``paper_metadata_view_cite_read.json`` (an object from paper id to its record, with ``title`` and ``abstract``).

References
----------
Cohan, A. et al. (2020): SPECTER: Document-level Representation Learning using Citation-informed Transformers. ACL.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.problems import Problems
from equipoise.studies.query_by_example.data import QueryByExample, read_json

TASKS = ("coview", "coread", "cocite", "cite")
"""The four tasks, in the order of the thesis's tables."""

_METADATA = "paper_metadata_view_cite_read.json"
_PARTS = {"val": "dev", "test": "test"}


def _qrels(path: Path, name: str, problems: Problems) -> list[tuple[str, str, int]]:
    rows: list[tuple[str, str, int]] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        problems.add(name, None, None, str(error.strerror), "a readable file of qrels")
        return rows
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if len(fields) == 4 and fields[3].removeprefix("-").isdecimal():
            rows.append((fields[0], fields[2], int(fields[3])))
        elif fields:
            problems.add(name, number, None, line[:80], "four fields: query, 0, document, integer grade")
    return rows


def load_scidocs(folder: Path, *, tasks: Iterable[str] = TASKS) -> QueryByExample:
    """Load SciDocs' tasks of query by example from the folder that SciDocs publishes.

    There is one fold: validation queries are its dev part, test queries its test part. Only papers that a task names
    are kept. A paper without abstract (null upstream) has an empty one.

    thesis section 2.3.1: about 1,000 test queries a task, with up to 5 positive and 25 negative candidates.
    """
    problems = Problems()
    judgements, splits = [], []
    for task in tasks:
        if task not in TASKS:
            raise ValueError(f"no task named {task!r}; there are {', '.join(TASKS)}")
        for stem, part in _PARTS.items():
            name = f"{task}/{stem}.qrel"
            rows = _qrels(folder / name, name, problems)
            judgements += [(task, *row) for row in rows]
            splits += [(task, "fold1", part, query) for query in sorted({row[0] for row in rows})]
    judged = pd.DataFrame(judgements, columns=["task", "query", "document", "grade"])
    for row in judged[judged.duplicated(["task", "query", "document"])].itertuples(index=False):
        found = f"query {row.query}, document {row.document} again"
        problems.add(f"{row.task}/*.qrel", None, None, found, "each pair judged once within a task")
    asked = pd.DataFrame(splits, columns=["task", "fold", "part", "query"])
    for row in asked[asked.duplicated(["task", "query"])].itertuples(index=False):
        found = f"query {row.query} among validation and test queries"
        problems.add(f"{row.task}/*.qrel", None, None, found, "each query in one of the two")

    records: dict[str, Any] = {}
    named = sorted(set(judged["query"]) | set(judged["document"]))
    with problems.collecting():
        records = read_json(folder / _METADATA, "a JSON object from paper id to record")
        for document in named:
            record = records.get(document)
            if not isinstance(record, dict) or not isinstance(record.get("title"), str):
                found = f"no record with a title for paper {document}"
                problems.add(_METADATA, None, None, found, "a record for every judged paper")
    problems.refuse()
    papers = [(document, records[document]["title"], records[document].get("abstract") or "") for document in named]
    return QueryByExample.of(papers, judged, splits)
