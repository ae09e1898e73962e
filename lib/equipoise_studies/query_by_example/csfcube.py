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
from equipoise_studies.query_by_example.data import QueryByExample, chosen

FACETS = ("background", "method", "result")
"""The three facets, each a task of its own."""

_LINE = re.compile(
    r"(?P<rule>={10,})$|paper_id: (?P<document>\d+); YEAR: |TITLE: (?P<title>.*)"
    r"|(?:ABSTRACT: )?(?:background|objective|method|result|other)_label: (?P<abstract>.*)"
    r"|adju relevance: .*\(\+?(?P<grade>[0-3])\)$"
)
_HEADS = ("difference: ", "sources: ")


def read_annotations(path: Path) -> pd.DataFrame:
    """Parse one file of readable annotations: a query paper, then its candidates, each with its adjudicated grade.

    Blocks stand between lines of equals signs. Returns ``document, title, abstract, grade``, the
    query first, without a grade; the sentences of an abstract are joined by a space, without their
    labels. Raises InputError with everything in the file that does not have the known form.
    """
    rows: list[dict[str, Any]] = []
    problems = Problems()
    # only a line feed ends a line here: some abstracts hold other characters that str.splitlines
    # would break at
    for number, raw in enumerate(read_text(path).split("\n"), start=1):
        line = raw.rstrip()
        if not line or line.startswith(_HEADS):
            continue
        found = _LINE.match(line)
        field = found.lastgroup if found else None
        if field == "rule":
            rows.append({"line": number, "abstract": []})
        elif not rows or not found or not field:
            wanted = "a line of equals signs, then paper_id, TITLE, ABSTRACT, adju relevance, or a labelled sentence"
            problems.add(path, number, None, line[:80], wanted)
        elif field == "abstract":
            rows[-1]["abstract"].append(found["abstract"].strip())
        else:
            rows[-1][field] = found[field].strip()
    for place, row in enumerate(rows):
        for field in ("document", "title", "abstract", *(["grade"] if place else [])):
            if not row.get(field):
                wanted = f"each block to give the {field} of its paper"
                problems.add(path, row["line"], None, f"a paper without {field}", wanted)
    problems.refuse()
    papers = pd.DataFrame(rows, columns=["document", "title", "abstract", "grade"])
    grades = pd.to_numeric(papers["grade"]).astype("Int64")
    return papers.assign(abstract=papers["abstract"].map(" ".join), grade=grades)


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

    def file(name: str) -> Path:
        return folder / name if folder else registry.fetch("csfcube", name)

    pools = {
        facet: read_json(file(f"test-pid2anns-csfcube-{facet}.json"), dict, "a JSON object")
        for facet in FACETS
    }
    judged = [
        (facet, query, candidate, grade)
        for facet, pool_of in pools.items()
        for query, pool in pool_of.items()
        for candidate, grade in zip_longest(pool["cands"], pool["relevance_adju"])
    ]
    judgements = pd.DataFrame(judged, columns=["task", "query", "document", "grade"])
    problems, parts = Problems(), []
    for facet, query in sorted(
        (facet, query) for facet, pool_of in pools.items() for query in pool_of
    ):
        with problems.collecting():
            path = file(f"readable_annotations/{query}-{facet}-adju.txt")
            parts.append(read_annotations(path).assign(file=path.name, task=facet, query=query))
    problems.refuse()
    annotated = pd.concat(parts)
    papers = annotated.drop_duplicates(["document", "title", "abstract"])
    for row in papers[papers.duplicated("document")].itertuples(index=False):
        found = f"another text of paper {row.document}"
        problems.add(
            row.file, None, None, found, "one title and abstract a paper, the same in every file"
        )
    candidates = annotated[annotated["grade"].notna()]
    both = judgements.merge(
        candidates, on=["task", "query", "document"], how="outer", suffixes=("", "_text")
    )
    for row in both[(both["grade"] != both["grade_text"]).fillna(True)].itertuples(index=False):
        found = f"paper {row.document}: {row.grade_text} in the text, {row.grade} in JSON"
        problems.add(
            f"{row.query}-{row.task}-adju.txt",
            None,
            "adju relevance",
            found,
            "the same grade in both",
        )
    problems.refuse()
    splits = [
        (facet, *name.rsplit("_", 1), query.removesuffix("_" + facet))
        for facet, folds in read_json(file("evaluation_splits.json"), dict, "a JSON object").items()
        if facet in FACETS
        for name, tested in folds.items()
        if name.endswith(("_dev", "_test"))
        for query in tested
    ]
    wanted = {"drop": judgements[judgements["query"] != judgements["document"]], "keep": judgements}
    return QueryByExample.of(papers=papers, judgements=chosen(wanted, own, "own"), splits=splits)


def load_specter(folder: Path | None = None) -> pd.DataFrame:
    """SPECTER's ranking of every candidate, as CSFCube's authors give it: ``task, query, document, score``.

    They give distances of whole papers; a score is a distance below zero.
    """
    name = "eval_scripts/sample_ranked_pools/test-pid2pool-csfcube-specter-{}-ranked.json"
    rows = [
        (facet, query, document, -float(distance))
        for facet in FACETS
        for path in [
            folder / name.format(facet) if folder else registry.fetch("csfcube", name.format(facet))
        ]
        for query, pool in read_json(path, dict, "a JSON object").items()
        for document, distance in pool
    ]
    return pd.DataFrame(rows, columns=["task", "query", "document", "score"])
