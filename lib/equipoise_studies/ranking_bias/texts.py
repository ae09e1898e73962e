"""Texts of the collections of chapter 4 with queries and judgements, and gendered terms.

Only ``make.py``, which counts their terms, and ``record.py``, which ranks them, read texts.
"""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.loaders.documents import stream_documents
from equipoise.loaders.gender_terms import read_terms
from equipoise.loaders.trec import read_qrels
from equipoise.measures.ranking_bias import count_terms
from equipoise_compendium import project, registry
from equipoise_studies.ranking_bias.data import QuerySet

TERM_LISTS = {
    "long": ("cpjku", "resources/wordlist_gender_representative.txt"),
    "short": ("genderbias_ir", "resources/wordlist_genderspecific.txt"),
}
ANNOTATED = ("genderbias_ir", "resources/queries_gender_annotated.csv")
SENSITIVE = ("cpjku", "dataset/msmarco_passage.dev.fair.tsv")
SENSITIVE_DL = ("cpjku", "dataset/trecdeep19_passage.fair.tsv")
REWRITERS = {
    "GPT-4o": "chatgpt-4o-latest",
    "Claude 3 Haiku": "claude-3-haiku-20240307",
    "Llama 3.3": "llama3.3%3Alatest",
    "Phi-4": "phi4%3Alatest",
    "Qwen2.5 72B": "qwen2.5%3A72b",
}
TO_OTHER_GENDER = {"Male → Female": "M", "Female → Male": "F"}  # the gender of the original
AS_TEXT: dict[str, Any] = {"dtype": str, "keep_default_na": False}
KINDS = {"n": "non-gendered", "f": "female", "m": "male", "o": "other or several genders"}

# public runs by name; the texts of the first four are the pool of passages
WITH_TEXTS = {
    "BM25": "BM25",
    "SPLADE++": "SPLADE_P_P_ENSEMBLE_DISTIL",
    "DistilBERT-TASB": "D_BERT_KD_TASB",
    "RepLLaMA": "REP_LLAMA",
}
YEARS = ("19", "20")

fetched: dict[str, str] = {}  # sha256 of the upstream files used so far, by name


def fetch(item: str, path: str) -> Path:
    """Fetch an upstream file, and add it to `fetched`."""
    file = registry.fetch(item, path)
    fetched[f"registry:{item}/{path}"] = project.sha256(file)
    return file


# --- terms and queries ----------------------------------------------------------------------------


def gender_pairs() -> tuple[dict[str, str], dict[str, str]]:
    """Return the counterparts of gendered words and of first names, in lower case.

    Names of the long term list without a counterpart are paired in their order, so that each name
    is replaced by one of the other gender (thesis section 4.5 (iii)).
    """
    words: dict[str, str] = {}
    names: dict[str, str] = {}
    for counterparts, path in [
        (words, "data/cda_default_pairs.json"),
        (names, "data/names_pairs_1000_scaled.json"),
    ]:
        for male, female in json.loads(fetch("cds", path).read_text(encoding="utf-8")):
            counterparts[male.lower()] = female.lower()
            counterparts[female.lower()] = male.lower()

    supplement = project.data("attributes", "gender_pairs.csv")
    fetched["data/attributes/gender_pairs.csv"] = project.sha256(supplement)
    for row in pd.read_csv(supplement, dtype=str).itertuples():
        if row.direction in ("both", "to female"):
            words[row.male.lower()] = row.female.lower()
        if row.direction in ("both", "to male"):
            words[row.female.lower()] = row.male.lower()

    unpaired: dict[str, list[str]] = {}
    for row in read_terms(fetch(*TERM_LISTS["long"])).itertuples():
        name = row.term.lower()
        group_terms = unpaired.setdefault(row.group, [])
        if row.term[0].isupper() and name not in names and name not in group_terms:
            group_terms.append(name)
    for name, counterpart in zip(*unpaired.values(), strict=False):
        names |= {name: counterpart, counterpart: name}
    return words, names


def read_tsv(path: Path) -> pd.DataFrame:
    """Read queries, with an id, a tab and a text on each line: columns query, text."""
    options = AS_TEXT | {"sep": "\t", "header": None, "quoting": csv.QUOTE_NONE}
    table = pd.read_csv(path, names=["query", "text"], **options)
    if table["query"].duplicated().any() or table.eq("").any(axis=None):
        raise ValueError(f"{path}: must be an id, a tab and a text on each line, each id once")
    return table


def annotated_queries() -> pd.DataFrame:
    """Read queries annotated for gender: columns query, text, kind."""
    # the text, between the first and the last comma, may contain commas
    lines = fetch(*ANNOTATED).read_text(encoding="utf-8").rstrip("\n").split("\n")
    table = pd.Series(lines).str.extract(r"^([^,]*),(.*),([^,]*)$")
    table.columns = pd.Index(["query", "text", "kind"])
    return table.apply(lambda column: column.str.strip()).replace({"kind": KINDS})


def without_terms(queries: pd.DataFrame, terms: Iterable[str]) -> pd.DataFrame:
    """Select the queries that contain none of the terms."""
    texts = zip(queries["query"], queries["text"], strict=True)
    counts = count_terms(texts, terms, tokens="word").counts
    return queries[counts.sum(axis=1) == 0].reset_index(drop=True)


# --- collections ----------------------------------------------------------------------------------


@dataclass
class Texts:
    """A collection with its texts: ``documents`` starts a new pass over ids and texts.

    ``rewritten``: texts of public counterfactual collections, in the order of the documents.
    """

    queries: pd.DataFrame
    qrels: pd.DataFrame
    documents: Callable[[], Iterator[tuple[str, str]]]
    rewritten: dict[str, list[str]] = field(default_factory=dict)


def in_memory(ids: pd.Series, texts: pd.Series) -> Callable[[], Iterator[tuple[str, str]]]:
    """Return a function that iterates over documents in memory."""
    return lambda: iter(zip(ids.tolist(), texts.tolist(), strict=True))


def grepbiasir_files() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the queries (columns query, text) and the documents of Grep-BiasIR."""
    entries = registry.entries()
    paths = entries.loc[entries["item"] == "grepbiasir", "path"]
    queries = pd.read_csv(fetch("grepbiasir", "queries.csv"), **AS_TEXT)
    queries = queries.rename(columns={"q_id": "query", "query": "text"})[["query", "text"]]
    tables = []
    for path in sorted(paths[paths.str.startswith("queries-documents_")]):
        tables.append(pd.read_csv(fetch("grepbiasir", path), **AS_TEXT))
    return queries, pd.concat(tables, ignore_index=True)


def judgements(documents: pd.DataFrame) -> pd.DataFrame:
    """Return the judgements of documents of Grep-BiasIR: columns topic, document, level."""
    qrels = documents[["q_id", "d_id", "relevant"]].astype({"relevant": int})
    return qrels.set_axis(["topic", "document", "level"], axis=1)


def grepbiasir() -> Texts:
    """Read Grep-BiasIR: bias-sensitive queries, documents in three wordings."""
    queries, documents = grepbiasir_files()
    texts = documents["doc_title"] + " " + documents["document"]
    return Texts(queries, judgements(documents), in_memory(documents["d_id"], texts))


def grepbiasir_rewritten() -> Texts:
    """Read relevant documents of Grep-BiasIR without titles, also in the wording of each other.

    Language models rewrote the male and the female wordings. The first rewriting of a text counts.
    """
    queries, documents = grepbiasir_files()
    documents = documents[documents["relevant"] == "1"].reset_index(drop=True)
    other_gender = documents["content_gender"].replace({"M": "F", "F": "M"})
    wordings = documents.set_index(["q_id", "content_gender"])["document"]
    of_authors = wordings.loc[list(zip(documents["q_id"], other_gender, strict=True))]
    rewritten = {"authors of Grep-BiasIR": of_authors.tolist()}

    keys = ["query", "content_gender", "text"]
    documents["text"] = documents["document"].str.split().str.join(" ")
    for model, folder in REWRITERS.items():
        path = f"results/document_gender_transformation/{folder}/doc_transformation_result.tsv"
        table = pd.read_csv(fetch("biasevalllms", path), sep="\t", **AS_TEXT)
        table["content_gender"] = table["transformation"].map(TO_OTHER_GENDER)
        table["text"] = table["original_Doc"].str.split().str.join(" ")
        table = table.rename(columns={"Query": "query"}).drop_duplicates(keys)
        texts = documents.merge(table[[*keys, "transformed_Doc"]], how="left", on=keys)
        # neutral wordings remain
        rewritten[model] = texts["transformed_Doc"].fillna(texts["document"]).tolist()
    texts = in_memory(documents["d_id"], documents["document"])
    return Texts(queries, judgements(documents), texts, rewritten)


def cocktail(name: str) -> Iterator[tuple[str, str]]:
    """Read the passages by people from a set of Cocktail."""
    with zipfile.ZipFile(fetch("cocktail", f"dataset/{name}.zip")) as archive:
        for line in archive.read("corpus/human.jsonl").decode().split("\n"):
            if line.strip():
                passage = json.loads(line)
                text = f"{passage.get('title') or ''} {passage['text']}".strip()
                yield passage["_id"], text


def nqoracle() -> Texts:
    """Read the Natural Questions without a gendered term, with gold and other passages."""
    rows = []
    path = fetch("nqoracle", "qa_data/nq-open-oracle.jsonl.gz")
    lines = gzip.decompress(path.read_bytes()).decode().rstrip("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        item = json.loads(line)
        passage = item["ctxs"][0]["title"] + " " + item["ctxs"][0]["text"]
        rows.append((f"nq-{number:04d}", item["question"], passage))
    questions = pd.DataFrame(rows, columns=["query", "text", "passage"])
    # questions with the same gold passage share one document, named by the first of them
    same_passage = questions.groupby("passage", sort=False)["query"]
    questions["document"] = same_passage.transform("first")
    neutral = without_terms(questions, read_terms(fetch(*TERM_LISTS["long"]))["term"])
    qrels = neutral[["query", "document"]].set_axis(["topic", "document"], axis=1).assign(level=1)
    # passages of gendered questions are documents like the others
    passages = questions.drop_duplicates("document")
    others = [*cocktail("nfcorpus"), *cocktail("nq-utd")]
    gold = in_memory(passages["document"], passages["passage"])
    return Texts(neutral[["query", "text"]], qrels, lambda: chain(gold(), others))


def runs_with_texts() -> pd.DataFrame:
    """Read public runs with their passages: run, topic, query, document, text, rank, score."""
    rows = []
    for run, folder in WITH_TEXTS.items():
        for year in YEARS:
            path = fetch("rankllm", f"retrieve_results/{folder}/retrieve_results_dl{year}.json")
            for result in json.loads(path.read_text(encoding="utf-8")):
                for hit in result["hits"]:
                    ids = (run, str(hit["qid"]), result["query"], str(hit["docid"]))
                    rows.append((*ids, hit["content"], hit["rank"], float(hit["score"])))
    columns = ["run", "topic", "query", "document", "text", "rank", "score"]
    return pd.DataFrame(rows, columns=columns)


def deep_learning(*, sensitive: bool) -> Texts:
    """Read queries of TREC Deep Learning, with the passages that four public runs retrieved."""
    hits = runs_with_texts()
    if sensitive:
        queries = read_tsv(fetch(*SENSITIVE_DL))
    else:
        queries = hits[["topic", "query"]].drop_duplicates("topic")
        queries = queries.set_axis(["query", "text"], axis=1)
        # words only: names of the long list occur in questions about anything
        queries = without_terms(queries, read_terms(fetch(*TERM_LISTS["short"]))["term"])
    grades = []
    for year in YEARS:
        grades.append(read_qrels(fetch("dlqrels", f"qrels/qrels.dl{year}-passage.txt")))
    qrels = pd.concat(grades)
    qrels = qrels[qrels["topic"].isin(queries["query"])].reset_index(drop=True)
    passages = hits.drop_duplicates("document")
    return Texts(queries, qrels, in_memory(passages["document"], passages["text"]))


READERS: dict[str, Callable[[], Texts]] = {
    "nqoracle": nqoracle,
    "grepbiasir": grepbiasir,
    "grepbiasir-rewritten": grepbiasir_rewritten,
    "msmarco-dl": lambda: deep_learning(sensitive=False),
    "msmarco-dl-sensitive": lambda: deep_learning(sensitive=True),
}


def read_queries(query_set: QuerySet) -> pd.DataFrame:
    """Read the queries of a config's own collection, or of a public set of the thesis."""
    if query_set.queries is not None:
        return read_tsv(query_set.queries)
    if query_set.collection == "msmarco-qs1":
        annotated = annotated_queries()
        neutral = annotated[annotated["kind"] == KINDS["n"]]
        return neutral[["query", "text"]].reset_index(drop=True)
    if query_set.collection == "msmarco-qs2":
        return read_tsv(fetch(*SENSITIVE))
    raise ValueError(f"{query_set.collection}: the config must name its queries")


def read_texts(query_set: QuerySet) -> Texts:
    """Read the collection of a query set with its texts."""
    if query_set.documents is None and query_set.collection in READERS:
        return READERS[query_set.collection]()
    if query_set.documents is None or query_set.qrels is None:
        raise ValueError(f"{query_set.collection}: the config must name documents and qrels")
    source = query_set.documents
    queries = read_queries(query_set)
    qrels = read_qrels(query_set.qrels)
    qrels = qrels[qrels["topic"].isin(queries["query"])].reset_index(drop=True)
    return Texts(queries, qrels, lambda: stream_documents(source))
