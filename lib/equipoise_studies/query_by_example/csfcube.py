"""CSFCube: query by example over computer-science abstracts, by facet.

50 query facets (34 papers; background, method or result) with about 125 candidates each, graded 0
to 3 by experts. Titles and abstracts stand only in the readable annotations, so these are parsed
for the text, and the JSON files for the judgements. Licence of the data: CC BY-NC 4.0.

References
----------
Mysore, S. et al. (2021): CSFCube - A Test Collection of Computer Science Research Articles for
Faceted Query by Example. NeurIPS Datasets and Benchmarks.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from equipoise.files import read_json, read_text
from equipoise.problems import Problems
from equipoise_compendium import registry
from equipoise_studies.query_by_example.data import PAIR, QueryByExample, chosen

FACETS = ("background", "method", "result")
"""The three facets, each a task of its own."""

_LINE = re.compile(
    r"(?P<rule>={10,})$|paper_id: (?P<document>\d+); YEAR: |TITLE: (?P<title>.*)"
    r"|(?:ABSTRACT: )?(?:background|objective|method|result|other)_label: (?P<abstract>.*)"
    r"|adju relevance: .*\(\+?(?P<grade>[0-3])\)$"
)
_HEADS = ("difference: ", "sources: ")
_SPECTER = "eval_scripts/sample_ranked_pools/test-pid2pool-csfcube-specter-{}-ranked.json"


def _file(folder: Path | None, name: str) -> Path:
    """A file of CSFCube, in a folder laid out as upstream, or through the registry."""
    if folder is None:
        return registry.fetch("csfcube", name)
    return folder / name


def read_annotations(path: Path) -> pd.DataFrame:
    """Parse one file of readable annotations: a query paper, then its candidates with their grades.

    Blocks stand between lines of equals signs. Returns ``document, title, abstract, grade``, the
    query first, without a grade; the sentences of an abstract are joined by a space, without their
    labels. Raises InputError with everything in the file that does not have the known form.
    """
    blocks: list[dict[str, Any]] = []
    problems = Problems()
    # Only a line feed ends a line here: some abstracts hold other characters that str.splitlines
    # would break at.
    for number, raw_line in enumerate(read_text(path).split("\n"), start=1):
        line = raw_line.rstrip()
        if not line or line.startswith(_HEADS):
            continue
        match = _LINE.match(line)
        field = match.lastgroup if match else None
        if field == "rule":
            blocks.append({"line": number, "abstract": []})
        elif not blocks or not match or not field:
            form = "a line of equals signs, then paper_id, TITLE, ABSTRACT, adju relevance, "
            problems.add(path, number, None, line[:80], form + "or a labelled sentence")
        elif field == "abstract":
            blocks[-1]["abstract"].append(match["abstract"].strip())
        else:
            blocks[-1][field] = match[field].strip()

    for place, block in enumerate(blocks):
        fields = ["document", "title", "abstract"]
        if place > 0:
            fields.append("grade")  # which the query, in the first block, does not have
        for field in fields:
            if not block.get(field):
                fault = f"a paper without {field}"
                needed = f"each block to give the {field} of its paper"
                problems.add(path, block["line"], None, fault, needed)
    problems.refuse()

    papers = pd.DataFrame(blocks, columns=["document", "title", "abstract", "grade"])
    papers["abstract"] = papers["abstract"].map(" ".join)
    papers["grade"] = pd.to_numeric(papers["grade"]).astype("Int64")
    return papers


def load_csfcube(
    folder: Path | None = None, *, own: Literal["drop", "keep"] = "drop"
) -> QueryByExample:
    """Load CSFCube: texts from the readable annotations, grades and folds from the JSON files.

    ``folder``: the item ``csfcube`` as it is laid out upstream; by default each of its files comes
    through the registry. ``own``: what happens to a query that stands among its own candidates
    (paper 8781666 does, in two facets): any system would rank it first, so by default it is left
    out. Tasks are the facets; each facet has two folds, and the dev queries of one are the test
    queries of the other.

    It takes the place of SciDocs (thesis section 2.3.1), whose data this project cannot reach.
    """
    judgements = _judgements(folder)
    annotated = _annotated(folder, judgements)
    papers = annotated.drop_duplicates(["document", "title", "abstract"])
    problems = Problems()
    for row in papers[papers.duplicated("document")].itertuples(index=False):
        fault = f"another text of paper {row.document}"
        needed = "one title and abstract a paper, the same in every file"
        problems.add(row.file, None, None, fault, needed)

    # Each grade stands twice, beside the text and in JSON.
    candidates = annotated[annotated["grade"].notna()]
    grades = judgements.merge(candidates, on=PAIR, how="outer", suffixes=("", "_text"))
    differs = (grades["grade"] != grades["grade_text"]).fillna(True)
    for row in grades[differs].itertuples(index=False):
        fault = f"paper {row.document}: {row.grade_text} in the text, {row.grade} in JSON"
        name = f"{row.query}-{row.task}-adju.txt"
        problems.add(name, None, "adju relevance", fault, "the same grade in both")
    problems.refuse()

    is_own = judgements["query"] == judgements["document"]
    candidates = chosen({"drop": judgements[~is_own], "keep": judgements}, own, "own")
    return QueryByExample.of(papers=papers, judgements=candidates, splits=_splits(folder))


def _judgements(folder: Path | None) -> pd.DataFrame:
    """Candidates of every query and their adjudicated grades: ``task, query, document, grade``."""
    rows = []
    for facet in FACETS:
        path = _file(folder, f"test-pid2anns-csfcube-{facet}.json")
        for query, pool in read_json(path, dict, "a JSON object").items():
            # Of lists that differ in length the rest is no grade, which the text then contradicts.
            for candidate, grade in zip_longest(pool["cands"], pool["relevance_adju"]):
                rows.append((facet, query, candidate, grade))
    return pd.DataFrame(rows, columns=[*PAIR, "grade"])


def _annotated(folder: Path | None, judgements: pd.DataFrame) -> pd.DataFrame:
    """Papers of every query's readable annotations, with ``task, query`` and the ``file``."""
    problems, tables = Problems(), []
    queries = judgements[["task", "query"]].drop_duplicates().sort_values(["task", "query"])
    for facet, query in queries.itertuples(index=False):
        with problems.collecting():
            path = _file(folder, f"readable_annotations/{query}-{facet}-adju.txt")
            tables.append(read_annotations(path).assign(file=path.name, task=facet, query=query))
    problems.refuse()
    return pd.concat(tables)


def _splits(folder: Path | None) -> list[tuple[str, str, str, str]]:
    """Rows ``task, fold, part, query``."""
    rows = []
    path = _file(folder, "evaluation_splits.json")
    for facet, folds in read_json(path, dict, "a JSON object").items():
        if facet not in FACETS:
            continue
        for name, queries in folds.items():
            if not name.endswith(("_dev", "_test")):
                continue
            fold, part = name.rsplit("_", 1)
            for query in queries:
                rows.append((facet, fold, part, query.removesuffix(f"_{facet}")))
    return rows


def load_specter(folder: Path | None = None) -> pd.DataFrame:
    """SPECTER's ranking of every candidate: ``task, query, document, score``.

    CSFCube's authors give distances of whole papers; a score is a distance below zero.
    """
    rows = []
    for facet in FACETS:
        path = _file(folder, _SPECTER.format(facet))
        for query, pool in read_json(path, dict, "a JSON object").items():
            for document, distance in pool:
                rows.append((facet, query, document, -float(distance)))
    return pd.DataFrame(rows, columns=[*PAIR, "score"])
