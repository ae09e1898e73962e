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

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.loaders import registry
from equipoise.problems import Problems
from equipoise.studies.query_by_example.data import QueryByExample, read_json

FACETS = ("background", "method", "result")
"""The three facets, each a task of its own."""

_RULE = re.compile(r"={10,}$")
_FIELDS = {
    "document": re.compile(r"paper_id: (\d+); YEAR: .*$"),
    "title": re.compile(r"TITLE: (.*)$"),
    "abstract": re.compile(r"(?:ABSTRACT: )?(?:background|objective|method|result|other)_label: (.*)$"),
    "grade": re.compile(r"adju relevance: .*\(\+?(-?\d)\)$"),
}
_HEADS = ("difference: ", "sources: ")


def read_annotations(path: Path) -> tuple[pd.DataFrame, Problems]:
    """Parse one file of readable annotations: a query paper, then its candidates, each with its adjudicated grade.

    Blocks stand between lines of equals signs. Returns ``document, title, abstract, grade``, the query first, without a
    grade (the sentences of an abstract are joined by a space, without their labels), and everything in the file that
    does not have the known form.
    """
    rows: list[dict[str, Any]] = []
    problems = Problems()
    # only a line feed ends a line here: some abstracts hold other characters that str.splitlines would break at
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line.strip() or line.startswith(_HEADS):
            continue
        found = next(((field, match[1]) for field, form in _FIELDS.items() if (match := form.match(line))), None)
        if _RULE.match(line):
            rows.append({"line": number, "document": None, "title": None, "abstract": [], "grade": None})
        elif not rows:
            problems.add(path.name, number, None, line[:80], "a line of equals signs before the first paper")
        elif found is None:
            wanted = "paper_id, TITLE, ABSTRACT, adju relevance, or a labelled sentence"
            problems.add(path.name, number, None, line[:80], wanted)
        elif found[0] == "abstract":
            rows[-1]["abstract"].append(found[1].strip())
        else:
            rows[-1][found[0]] = found[1].strip()
    for place, row in enumerate(rows):
        for field in [*_FIELDS][: 4 if place else 3]:
            if row[field] in (None, []):
                wanted = f"each block to give the {field} of its paper"
                problems.add(path.name, row["line"], None, f"a paper without {field}", wanted)
    if not rows:
        problems.add(path.name, 1, None, "no paper", "at least the query paper")
    papers = pd.DataFrame(rows, columns=[*_FIELDS])
    papers["abstract"] = papers["abstract"].map(" ".join)
    return papers.assign(grade=pd.to_numeric(papers["grade"]).astype("Int64")), problems


def _read(path: Path) -> dict[str, Any]:
    return read_json(path, "a JSON file of CSFCube; fetch the item csfcube again")


def _judgements(path: Path, facet: str, problems: Problems) -> Iterator[tuple[str, str, str, int]]:
    for query, pool in _read(path).items():
        candidates, grades = pool["cands"], pool["relevance_adju"]
        if len(candidates) != len(grades):
            found = f"query {query}: {len(candidates)} candidates and {len(grades)} grades"
            problems.add(path.name, None, "relevance_adju", found, "one grade a candidate")
            continue
        for candidate, grade in zip(candidates, grades, strict=True):
            if grade not in (0, 1, 2, 3):
                found = f"query {query}, candidate {candidate}: grade {grade!r}"
                problems.add(path.name, None, "relevance_adju", found, "a grade from 0 to 3")
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


def _annotated(files: dict[str, Path], problems: Problems) -> pd.DataFrame:
    """Papers of the annotations that can be read, with ``file, task, query``."""
    readable = [pd.DataFrame(columns=[*_FIELDS, "file", "task", "query"])]
    for path in (path for name, path in files.items() if name.startswith("readable_annotations/")):
        papers, found = read_annotations(path)
        query, facet, _ = path.name.split("-", maxsplit=2)
        problems += found
        if not found:
            readable.append(papers.assign(file=path.name, task=facet, query=query))
    return pd.concat(readable[1:] or readable)


def load_csfcube(folder: Path | None = None, *, own: str = "drop") -> QueryByExample:
    """Load CSFCube: texts from the readable annotations, grades and folds from the JSON files.

    ``folder``: the item ``csfcube`` as it is laid out upstream; by default each of its files comes through the
    registry. ``own``: what happens to a query that stands among its own candidates (paper 8781666 does, in two
    facets): any system would rank it first, so by default it is left out. Tasks are the facets; each facet has two
    folds, and the dev queries of one are the test queries of the other.

    It takes the place of SciDocs (thesis section 2.3.1), whose data this project cannot reach.
    """
    if own not in ("drop", "keep"):
        raise ValueError(f'own must be "drop" or "keep", found {own!r}')
    files, problems = _files(folder), Problems()
    judged = [
        row for facet in FACETS for row in _judgements(files[f"test-pid2anns-csfcube-{facet}.json"], facet, problems)
    ]
    judgements = pd.DataFrame(judged, columns=["task", "query", "document", "grade"])
    for facet, query in sorted({row[:2] for row in judged}):
        name = f"{query}-{facet}-adju.txt"
        if f"readable_annotations/{name}" not in files:
            found = f"query {query} without annotations"
            problems.add("readable_annotations", None, None, found, f"{name}, which holds the texts")
    annotated = _annotated(files, problems)
    papers = annotated.drop_duplicates(["document", "title", "abstract"])
    for row in papers[papers.duplicated("document")].itertuples(index=False):
        wanted = "one title and abstract a paper, the same in every file"
        problems.add(row.file, None, None, f"another text of paper {row.document}", wanted)
    here = annotated[["task", "query"]].drop_duplicates()
    both = judgements.merge(here).merge(
        annotated[annotated["grade"].notna()], on=["task", "query", "document"], how="outer", suffixes=("", "_text")
    )
    same = both["grade"].notna() & both["grade_text"].notna() & (both["grade"] == both["grade_text"]).fillna(False)
    for row in both[~same].itertuples(index=False):
        found = f"paper {row.document}: {row.grade_text} in the text, {row.grade} in JSON"
        problems.add(f"{row.query}-{row.task}-adju.txt", None, "adju relevance", found, "the same grade in both")
    problems.refuse()
    splits = [
        (facet, *name.rsplit("_", 1), query.removesuffix("_" + facet))
        for facet, folds in _read(files["evaluation_splits.json"]).items()
        if facet in FACETS
        for name, tested in folds.items()
        if name.endswith(("_dev", "_test"))
        for query in tested
    ]
    if own == "drop":
        judgements = judgements[judgements["query"] != judgements["document"]]
    return QueryByExample.of(papers[["document", "title", "abstract"]], judgements, splits)
