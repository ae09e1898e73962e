"""CISI and CACM: query by example over papers that are cited together, or cite one another.

Two collections in SMART's format, 1,460 papers on library science and 3,204 on computing, with
links beside each paper. Of those links two tasks of SciDocs are made: a query is a paper with five
linked papers or more; five of these, drawn by seed, are relevant, and 25 papers without any link to
the query are not.

What a link is follows from its counts (the collections come without documentation). In CISI a line
says how often two papers are cited together: beside itself a paper has the number of its citations,
5 or more, and no two papers are cited together more often than either is cited. In CACM a line is
one link of a kind, both ways. Kind 5 is a citation: of two papers linked so, the later one cites
the earlier. Of the numbers of works that both cite, counted from kind 5, 9,836 of 10,798 stand
under kind 4 (bibliographic coupling); of the numbers of papers that cite both, 9,006 of 11,424
stand under kind 6 (co-citation).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.random import Generator

from equipoise.files import read_text
from equipoise.problems import Problems
from equipoise_compendium import registry
from equipoise_studies.query_by_example.data import PAIR, QueryByExample

FILES = {"cisi": "CISI.ALL", "cacm": "cacm.all"}
"""The file of each collection."""

RELEVANT, OTHERS = 5, 25
"""Candidates of a query, as SciDocs has them."""

CITED_TOGETHER = 3
"""How often two papers of CISI are cited together at least, to be relevant to one another."""

CITATION, COUPLING, CO_CITATION = 5, 4, 6
"""CACM's kinds of links."""

_HEAD = re.compile(r"\.(?P<field>[A-Z])(?: (?P<document>\d+))?\s*")
_FIELDS = "TABCKNWX"
_LINK = ["document", "other", "kind"]


def read_smart(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Papers and links of a file in SMART's format.

    Returns ``document, title, abstract`` and ``document, other, kind``, a row for each line of
    links; ids and kinds are whole numbers. A line that holds a full stop alone ends the file.
    Raises InputError with everything in the file that does not have the known form.
    """
    problems = Problems()
    papers: list[dict[str, list[str]]] = []
    links: list[list[int]] = []
    field = ""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        head = _HEAD.fullmatch(line)
        if line == ".":
            break
        if head and head["field"] == "I" and head["document"]:
            papers.append({"I": [head["document"]], "T": [], "W": []})
            field = ""
        elif not papers:
            problems.add(path, number, None, line[:80], "a line such as .I 1 first")
        elif head and head["field"] in _FIELDS and not head["document"]:
            field = head["field"]
        elif field == "X" and line.strip():
            numbers = line.split()
            paper_id = papers[-1]["I"][0]
            is_link = len(numbers) == 3 and numbers[2] == paper_id
            if not is_link or not "".join(numbers).isdecimal():
                form = f"numbers of the other paper, of a kind or count, and {paper_id}, this paper"
                problems.add(path, number, ".X", line[:80], form)
                continue
            links.append([int(numbers[2]), int(numbers[0]), int(numbers[1])])
        elif field in ("T", "W"):
            papers[-1][field].append(line.strip())
    problems.refuse()

    texts = []
    for paper in papers:
        texts.append((int(paper["I"][0]), " ".join(paper["T"]), " ".join(paper["W"])))
    table = pd.DataFrame(texts, columns=["document", "title", "abstract"])
    for document in table.loc[table["document"].duplicated(), "document"]:
        problems.add(path, None, ".I", f"paper {document} twice", "each paper once")
    problems.refuse()
    return table, pd.DataFrame(links, columns=_LINK)


def load_links(folder: Path | None = None, *, seed: int = 0) -> QueryByExample:
    """Load CISI and CACM as three tasks of query by example.

    ``folder``: where both files lie; by default each comes through the registry. ``seed``: of the
    draws of relevant papers, of others, and of the two folds. Papers of CACM without an abstract,
    half of them, are left out. A task's two folds exchange their roles; a query paper is in the
    same one in all of its tasks. Ids are the collections' own behind their names, as ``cisi7``.
    """
    papers = []
    judgements: list[pd.DataFrame] = []
    for name, file in FILES.items():
        path = registry.fetch(name, file) if folder is None else folder / file
        texts, links = read_smart(path)
        texts = texts[texts["abstract"] != ""]
        between = links[links["document"] != links["other"]]
        between = between[between["other"].isin(texts["document"])]
        for task, is_relevant in _tasks(name, between).items():
            rng = np.random.default_rng([seed, len(judgements)])
            drawn = _drawn(texts["document"], between, is_relevant, rng)
            for column in ("query", "document"):
                drawn[column] = name + drawn[column].astype(str)
            judgements.append(drawn.assign(task=task))
        papers.append(texts.assign(document=name + texts["document"].astype(str)))
    judged = pd.concat(judgements, ignore_index=True)
    return QueryByExample.of(
        papers=pd.concat(papers, ignore_index=True),
        judgements=judged,
        splits=_folds(judged[["task", "query"]].drop_duplicates(), np.random.default_rng(seed)),
    )


def _tasks(name: str, links: pd.DataFrame) -> dict[str, pd.Series]:
    """Of each task of a collection, which lines of links make two papers relevant."""
    if name == "cisi":
        # There the third column is a count.
        return {"cisicocite": links["kind"] >= CITED_TOGETHER}
    return {
        "cacmcocite": links["kind"] == CO_CITATION,
        "cacmcite": links["kind"] == CITATION,
    }


def _drawn(
    documents: pd.Series, links: pd.DataFrame, is_relevant: pd.Series, rng: Generator
) -> pd.DataFrame:
    """Queries with their candidates: ``query, document, grade``."""
    linked = links.groupby("document")["other"].agg(set)
    relevant = links[is_relevant].groupby("document")["other"].agg(set)
    rows = []
    for query in documents:
        related = sorted(relevant.get(query, ()))
        if len(related) < RELEVANT:
            continue
        # A paper under another kind of link is neither relevant nor a fair negative.
        unlinked = documents[~documents.isin([query, *linked[query]])]
        for document in rng.choice(related, RELEVANT, replace=False):
            rows.append((query, document, 1))
        for document in rng.choice(unlinked, OTHERS, replace=False):
            rows.append((query, document, 0))
    return pd.DataFrame(rows, columns=[*PAIR[1:], "grade"])


def _folds(queries: pd.DataFrame, rng: Generator) -> pd.DataFrame:
    """Two folds: weights are tuned on one half of the query papers, and used on the other."""
    papers = rng.permutation(sorted(queries["query"].unique()))
    in_first_half = queries["query"].isin(papers[: len(papers) // 2])
    folds = []
    for fold, is_dev in (("fold1", in_first_half), ("fold2", ~in_first_half)):
        part = is_dev.map({True: "dev", False: "test"})
        folds.append(queries.assign(fold=fold, part=part))
    return pd.concat(folds)
