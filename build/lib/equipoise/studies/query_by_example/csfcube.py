"""CSFCube: query by example over computer-science abstracts, by facet.

50 query facets (34 papers; background, method or result) with about 125 candidates each, graded 0 to 3 by experts.
Titles and abstracts stand only in the readable annotations, so these are parsed for the text, and the JSON files for
the judgements. Licence of the data: CC BY-NC 4.0.

References
----------
Mysore, S. et al. (2021): CSFCube - A Test Collection of Computer Science Research Articles for Faceted Query by
Example. NeurIPS Datasets and Benchmarks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.loaders import registry
from equipoise.problems import InputError, Problem
from equipoise.studies.query_by_example.data import QueryByExample

FACETS = ("background", "method", "result")
"""The three facets, each a task of its own."""

_RULE = re.compile(r"={10,}$")
_PAPER = re.compile(r"paper_id: (\d+); YEAR: (.*)$")
_SENTENCE = re.compile(r"(?:ABSTRACT: )?(background|objective|method|result|other)_label: (.*)$")
_GRADE = re.compile(r"adju relevance: .*\(\+?(-?\d)\)$")
_HEADS = ("difference: ", "sources: ")


def read_annotations(path: Path) -> tuple[pd.DataFrame, list[Problem]]:
    """Parse one file of readable annotations: a query paper, then its candidates, each with its adjudicated grade.

    ``path``: A file of ``readable_annotations/``: blocks between lines of equals signs, the first block the query.
    Returns: papers : DataFrame: ``document, title, abstract, grade``; the query is the first row, its grade is
    missing. The sentences of an abstract are joined by a space, without their labels. problems : list of Problem:
    Everything in the file that does not have the known form, with its line.
    """
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []

    def problem(line: int, found: str, wanted: str) -> None:
        problems.append(Problem(file=path.name, line=line, column=None, found=found[:80], wanted=wanted))

    # only a line feed ends a line here: some abstracts hold other characters that str.splitlines would break at
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line.strip() or line.startswith(_HEADS):
            continue
        if _RULE.match(line):
            rows.append({"line": number, "document": None, "title": None, "abstract": [], "grade": None})
        elif not rows:
            problem(number, line, "a line of equals signs before the first paper")
        elif match := _PAPER.match(line):
            rows[-1]["document"] = match[1]
        elif line.startswith("TITLE: "):
            rows[-1]["title"] = line.removeprefix("TITLE: ").strip()
        elif match := _SENTENCE.match(line):
            rows[-1]["abstract"].append(match[2].strip())
        elif match := _GRADE.match(line):
            rows[-1]["grade"] = int(match[1])
        else:
            problem(number, line, "paper_id, TITLE, ABSTRACT, adju relevance, or a labelled sentence")
    for place, row in enumerate(rows):
        for field in ("document", "title", "abstract", *(("grade",) if place else ())):
            if row[field] is None or row[field] == []:
                problem(row["line"], f"a paper without {field}", f"each block to give the {field} of its paper")
    if not rows:
        problem(1, "no paper", "at least the query paper")
    papers = pd.DataFrame(rows, columns=["document", "title", "abstract", "grade"])
    papers["abstract"] = papers["abstract"].map(" ".join)
    return papers.astype({"grade": "Int64"}), problems


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        line = getattr(error, "lineno", None)
        wanted = "a JSON file of CSFCube; fetch the item csfcube again"
        raise InputError([Problem(file=path.name, line=line, column=None, found=str(error), wanted=wanted)]) from error


def _judgements(path: Path, facet: str, problems: list[Problem]) -> Iterator[tuple[str, str, str, int]]:
    for query, pool in _json(path).items():
        candidates, grades = pool["cands"], pool["relevance_adju"]
        if len(candidates) != len(grades):
            found = f"query {query}: {len(candidates)} candidates and {len(grades)} grades"
            problems.append(Problem(path.name, None, "relevance_adju", found, "one grade a candidate"))
            continue
        for candidate, grade in zip(candidates, grades, strict=True):
            if grade not in (0, 1, 2, 3):
                found = f"query {query}, candidate {candidate}: grade {grade!r}"
                problems.append(Problem(path.name, None, "relevance_adju", found, "a grade from 0 to 3"))
            yield facet, query, candidate, int(grade)


def _files(folder: Path | None) -> dict[str, Path]:
    """Every file that is read, by its path upstream: of a folder, or through the registry."""
    if folder is None:
        table = registry.entries()
        names = [*table.loc[table["item"] == "csfcube", "path"]]
        wanted = [name for name in names if not name.startswith("eval_scripts/")]
        return {name: registry.fetch("csfcube", name) for name in sorted(wanted)}
    texts = sorted((folder / "readable_annotations").glob("*-adju.txt"))
    names = [*(f"test-pid2anns-csfcube-{facet}.json" for facet in FACETS), "evaluation_splits.json"]
    return {name: folder / name for name in names} | {f"readable_annotations/{path.name}": path for path in texts}


def load_csfcube(folder: Path | None = None, *, own: str = "drop") -> QueryByExample:
    """Load CSFCube: texts from the readable annotations, grades and folds from the JSON files.

    ``folder``: the item ``csfcube`` as it is laid out upstream; by default each of its files comes through the
    registry. ``own``: what happens to a query that stands among its own candidates (paper 8781666 does, in two
    facets): any system would rank it first, so by default it is left out. Returns: Tasks are the facets; each facet
    has two folds, and the dev queries of one are the test queries of the other.

    It takes the place of SciDocs (thesis section 2.3.1), whose data this project cannot reach.
    """
    if own not in ("drop", "keep"):
        raise ValueError(f'own must be "drop" or "keep", found {own!r}')
    files = _files(folder)
    problems: list[Problem] = []
    judged = [
        row for facet in FACETS for row in _judgements(files[f"test-pid2anns-csfcube-{facet}.json"], facet, problems)
    ]
    judgements = pd.DataFrame(judged, columns=["task", "query", "document", "grade"])

    texts: dict[str, tuple[str, str]] = {}
    readable: list[pd.DataFrame] = []
    annotated: set[tuple[str, str]] = set()
    for path in (path for name, path in files.items() if name.startswith("readable_annotations/")):
        papers, found = read_annotations(path)
        query, facet, _ = path.name.split("-", maxsplit=2)
        annotated.add((facet, query))
        problems += found
        if found:
            continue
        for document, title, abstract in papers[["document", "title", "abstract"]].itertuples(index=False):
            if texts.setdefault(document, (title, abstract)) != (title, abstract):
                wanted = "one title and abstract a paper, the same in every file"
                problems.append(Problem(path.name, None, None, f"another text of paper {document}", wanted))
        readable.append(papers.iloc[1:].assign(task=facet, query=query))
    for facet, query in sorted({(row[0], row[1]) for row in judged} - annotated):
        wanted = f"{query}-{facet}-adju.txt, which holds the texts"
        problems.append(Problem("readable_annotations", None, None, f"query {query} without annotations", wanted))

    if readable:
        written = pd.concat(readable)
        known = pd.MultiIndex.from_frame(written[["task", "query"]])
        own_json = judgements[pd.MultiIndex.from_frame(judgements[["task", "query"]]).isin(known)]
        both = own_json.merge(written, on=["task", "query", "document"], how="outer", suffixes=("", "_text"))
        differing = both[both["grade"].isna() | both["grade_text"].isna() | (both["grade"] != both["grade_text"])]
        for row in differing.itertuples(index=False):
            found_text = f"paper {row.document}: {row.grade_text} in the text, {row.grade} in JSON"
            name = f"{row.query}-{row.task}-adju.txt"
            problems.append(Problem(name, None, "adju relevance", found_text, "the same grade in both"))
    if problems:
        raise InputError(problems)

    splits = [
        (facet, name.removesuffix("_" + part), part, query.removesuffix("_" + facet))
        for facet, folds in _json(files["evaluation_splits.json"]).items()
        if facet in FACETS
        for name, queries in folds.items()
        for part in ("dev", "test")
        if name.endswith("_" + part)
        for query in queries
    ]
    if own == "drop":
        judgements = judgements[judgements["query"] != judgements["document"]]
    table = pd.DataFrame(
        [(document, *text) for document, text in texts.items()], columns=["document", "title", "abstract"]
    )
    return QueryByExample(
        papers=table.sort_values("document", ignore_index=True),
        judgements=judgements.sort_values(["task", "query", "document"], ignore_index=True),
        splits=pd.DataFrame(sorted(splits), columns=["task", "fold", "part", "query"]),
    )
