"""Collections of chapter 2 with their texts, which ``make.py`` counts and ``record.py`` ranks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from equipoise.loaders.trec import read_qrels
from equipoise_compendium import registry
from equipoise_studies.query_by_example.data import PAIR, Study

SCIDOCS_TASKS = ("coview", "coread", "cocite", "cite")
FACETS = ("background", "method", "result")
CITED_TOGETHER = 3  # papers of CISI that are cited together this often are relevant to each other
CITATION, CO_CITATION = 5, 6  # kinds of links in CACM, as explained in the README
RELEVANT, OTHERS = 5, 25  # candidates of a query, as in SciDocs

Fetch = Callable[[str, str], Path]
"""From an item of the registry and a file's name to the file on this machine."""


class Dataset(NamedTuple):
    """A collection with its texts.

    ``papers``: ``document, title, abstract``. ``judgements``: ``task, query, document, grade``.
    ``splits``: ``task, fold, part, query``; ``part`` is train, dev (to tune weights) or test.
    """

    papers: pd.DataFrame
    judgements: pd.DataFrame
    splits: pd.DataFrame

    def ranked(self) -> Dataset:
        """Return the data set without the queries that rankers are trained on."""
        splits = self.splits[self.splits["part"] != "train"]
        ranked = splits[["task", "query"]].drop_duplicates()
        return Dataset(self.papers, self.judgements.merge(ranked), splits)


def load(study: Study, fetch: Fetch | None = None) -> Dataset:
    """Load the collection of a study, the rows of its tables sorted."""
    folder = study.collection.folder

    def local(item: str, name: str) -> Path:
        return registry.fetch(item, name) if folder is None else folder / name

    loaders = {"csfcube": load_csfcube, "links": load_links}
    if study.collection.kind == "scidocs":
        if folder is None:
            raise ValueError("collection.folder must name the folder of SciDocs")
        loaded = load_scidocs(folder, study.collection.trained_on, study.seeds[0])
    else:
        loaded = loaders[study.collection.kind](fetch or local)
    papers, judgements, splits = loaded
    return Dataset(
        papers.sort_values("document", ignore_index=True),
        judgements.sort_values([*PAIR, "grade"], ignore_index=True),
        splits.sort_values(["task", "fold", "part", "query"], ignore_index=True),
    )


def text_of(papers: pd.DataFrame, order: str = "title first") -> pd.Series:
    """Return the text by which each paper is searched, as `CollectionSettings.text` names it.

    thesis section 2.3.1: "a concatenation of abstract and title".
    """
    if order == "title first":
        text = (papers["title"] + " " + papers["abstract"]).str.strip()
    else:
        text = (papers["abstract"] + papers["title"]).str.replace(r"[^\w]", " ", regex=True)
    return text.set_axis(pd.Index(papers["document"], name="document")).rename("text")


# --- CSFCube --------------------------------------------------------------------------------------

ANNOTATION = re.compile(
    r"(?P<rule>={10,})$|paper_id: (?P<document>\d+); YEAR: |TITLE: (?P<title>.*)"
    r"|(?:ABSTRACT: )?(?:background|objective|method|result|other)_label: (?P<abstract>.*)"
    r"|adju relevance: .*\(\+?(?P<grade>[0-3])\)$|difference: |sources: |$"
)


def read_annotations(path: Path) -> pd.DataFrame:
    """Read a query paper and its candidates: ``document, title, abstract, grade``."""
    blocks: list[dict[str, str]] = []
    # Only a line feed ends a line: some abstracts contain other characters that end lines.
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        match = ANNOTATION.match(line.rstrip())
        if not match or not (blocks or match["rule"]):
            raise ValueError(f"{path}, line {number}: not in CSFCube's format: {line[:80]!r}")
        if match["rule"]:
            blocks.append({})
        elif match["abstract"] is not None:
            sentences = [blocks[-1].get("abstract", ""), match["abstract"].strip()]
            blocks[-1]["abstract"] = " ".join(sentences).strip()
        elif match.lastgroup:
            blocks[-1][match.lastgroup] = match[match.lastgroup].strip()
    table = pd.DataFrame(blocks, columns=["document", "title", "abstract", "grade"])
    if table[["document", "title", "abstract"]].isna().to_numpy().any():
        raise ValueError(f"{path}: each paper must have an id, a title and an abstract")
    return table


def load_csfcube(fetch: Fetch) -> Dataset:
    """Load CSFCube; a task is a facet with two folds that swap dev and test."""
    rows, papers = [], []
    for facet in FACETS:
        path = fetch("csfcube", f"test-pid2anns-csfcube-{facet}.json")
        for query, pool in json.loads(path.read_text(encoding="utf-8")).items():
            grades = dict(zip(pool["cands"], pool["relevance_adju"], strict=True))
            annotated = read_annotations(
                fetch("csfcube", f"readable_annotations/{query}-{facet}-adju.txt")
            )
            in_text = annotated.dropna(subset="grade").set_index("document")["grade"].astype(int)
            if in_text.to_dict() != grades:
                raise ValueError(f"{path}: the grades of {query} differ from the annotations")
            papers.append(annotated[["document", "title", "abstract"]])
            for document, grade in grades.items():
                # One paper is its own candidate: any ranker would put it first.
                if document != query:
                    rows.append((facet, query, document, grade))
    splits = []
    text = fetch("csfcube", "evaluation_splits.json").read_text(encoding="utf-8")
    for facet, folds in json.loads(text).items():
        for name, queries in folds.items() if facet in FACETS else ():
            fold, _, part = name.rpartition("_")
            for query in queries if part in ("dev", "test") else ():
                splits.append((facet, fold, part, query.removesuffix(f"_{facet}")))
    texts = pd.concat(papers).drop_duplicates()
    if texts["document"].duplicated().any():
        raise ValueError("CSFCube: a paper must have the same text in every file")
    return Dataset(
        texts,
        pd.DataFrame(rows, columns=[*PAIR, "grade"]),
        pd.DataFrame(splits, columns=["task", "fold", "part", "query"]),
    )


# --- CISI and CACM --------------------------------------------------------------------------------


def read_smart(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read a file in SMART's format: ``document, title, abstract``, and ``document, other, kind``.

    The number in the third column of a link is its kind (CACM) or a count (CISI).
    """
    papers: list[dict[str, list[str]]] = []
    links, field = [], ""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line == ".":  # the end of the file
            break
        head = re.fullmatch(r"\.([A-Z])(?: (\d+))?\s*", line)
        if head and head[1] == "I":
            papers.append({"document": [head[2]], "T": [], "W": []})
            field = ""
        elif head:
            field = head[1]
        elif field == "X" and line.strip():
            other, kind, document = line.split()
            if [document] != papers[-1]["document"]:
                raise ValueError(
                    f"{path}, line {number}: a link must end in its own paper's number"
                )
            links.append((int(document), int(other), int(kind)))
        elif field in ("T", "W"):
            papers[-1][field].append(line.strip())
    texts = []
    for paper in papers:
        texts.append((int(paper["document"][0]), " ".join(paper["T"]), " ".join(paper["W"])))
    return (
        pd.DataFrame(texts, columns=["document", "title", "abstract"]),
        pd.DataFrame(links, columns=["document", "other", "kind"]),
    )


def load_links(fetch: Fetch, seed: int = 0) -> Dataset:
    """Load CISI and CACM as three tasks, without papers that have no abstract.

    A query is a paper with five relevant papers or more, of which five are drawn; 25 others are
    drawn from the papers without any link to it. A paper is in one fold with all of its tasks.
    """
    papers = []
    judgements: list[pd.DataFrame] = []
    for name, file in (("cisi", "CISI.ALL"), ("cacm", "cacm.all")):
        texts, links = read_smart(fetch(name, file))
        texts = texts[texts["abstract"] != ""]
        links = links[links["document"] != links["other"]]
        links = links[links["other"].isin(texts["document"])]
        if name == "cisi":
            tasks = {"cisicocite": links["kind"] >= CITED_TOGETHER}
        else:
            tasks = {
                "cacmcocite": links["kind"] == CO_CITATION,
                "cacmcite": links["kind"] == CITATION,
            }
        for task, is_relevant in tasks.items():
            rng = np.random.default_rng([seed, len(judgements)])
            drawn = draw_candidates(texts["document"], links, is_relevant, rng)
            for column in ("query", "document"):
                drawn[column] = name + drawn[column].astype(str)
            judgements.append(drawn.assign(task=task))
        papers.append(texts.assign(document=name + texts["document"].astype(str)))
    judged = pd.concat(judgements, ignore_index=True)[[*PAIR, "grade"]]

    queries = judged[["task", "query"]].drop_duplicates()
    query_papers = np.random.default_rng(seed).permutation(sorted(queries["query"].unique()))
    in_first_half = queries["query"].isin(query_papers[: len(query_papers) // 2])
    splits = []
    for fold, is_dev in (("fold1", in_first_half), ("fold2", ~in_first_half)):
        splits.append(queries.assign(fold=fold, part=is_dev.map({True: "dev", False: "test"})))
    columns = ["task", "fold", "part", "query"]
    return Dataset(pd.concat(papers, ignore_index=True), judged, pd.concat(splits)[columns])


def draw_candidates(
    documents: pd.Series, links: pd.DataFrame, is_relevant: pd.Series, rng: np.random.Generator
) -> pd.DataFrame:
    """Draw the candidates of every paper that can be a query: ``query, document, grade``."""
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
    return pd.DataFrame(rows, columns=["query", "document", "grade"])


# --- SciDocs --------------------------------------------------------------------------------------


def load_scidocs(folder: Path, trained_on: float, seed: int) -> Dataset:
    """Load the four tasks, in one fold, from the folder that SciDocs publishes.

    A share of each task's validation queries, drawn by seed, is for training.
    """
    tables = []
    for task in SCIDOCS_TASKS:
        for stem, part in (("val", "dev"), ("test", "test")):
            qrels = read_qrels(folder / task / f"{stem}.qrel")
            tables.append(qrels.assign(task=task, fold="fold1", part=part))
    table = pd.concat(tables).rename(columns={"topic": "query", "level": "grade"})
    table = table.sort_values([*PAIR, "part"], ignore_index=True)
    splits = table[["task", "fold", "part", "query"]].drop_duplicates(ignore_index=True)
    for _, queries in splits[splits["part"] == "dev"].groupby("task"):
        order = np.random.default_rng(seed).permutation(len(queries))
        trained = queries.index[order[: round(trained_on * len(queries))]]
        splits.loc[trained, "part"] = "train"

    metadata = folder / "paper_metadata_view_cite_read.json"
    records = json.loads(metadata.read_text(encoding="utf-8"))
    papers = []
    for document in sorted(set(table["query"]) | set(table["document"])):
        if document not in records:
            raise ValueError(f"{metadata}: no record of the judged paper {document}")
        record = records[document]
        papers.append((document, record["title"], record["abstract"] or ""))
    columns = ["document", "title", "abstract"]
    return Dataset(pd.DataFrame(papers, columns=columns), table[[*PAIR, "grade"]], splits)
