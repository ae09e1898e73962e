"""Make the derived data of chapter 4: ids, judgements and term counts, without texts.

``python make.py`` makes every file of this folder, with the same bytes. With ``--config FILE`` it
makes them for the query sets of another config. Upstream files come from the cache, from the folder
``EQUIPOISE_MIRROR``, or from their urls in ``data/registry.tsv``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.loaders.documents import stream_documents
from equipoise.loaders.gender_terms import read_terms
from equipoise.loaders.trec import read_qrels, read_run
from equipoise.measures.ranking_bias import TermCounts, count_terms
from equipoise_compendium import project, registry
from equipoise_studies.ranking_bias.data import QuerySet, Study

TERM_LISTS = {
    "long": ("cpjku", "resources/wordlist_gender_representative.txt"),
    "short": ("genderbias_ir", "resources/wordlist_genderspecific.txt"),
}
ANNOTATED = ("genderbias_ir", "resources/queries_gender_annotated.csv")
SENSITIVE = ("cpjku", "dataset/msmarco_passage.dev.fair.tsv")
SENSITIVE_DL = ("cpjku", "dataset/trecdeep19_passage.fair.tsv")
KINDS = {"n": "non-gendered", "f": "female", "m": "male", "o": "other or several genders"}
PRONOUNS = ("him", "hers", "his", "her")  # their counterpart depends on grammar

# public runs by name; the texts of the first four are the pool of passages
WITH_TEXTS = {
    "BM25": "BM25",
    "SPLADE++": "SPLADE_P_P_ENSEMBLE_DISTIL",
    "DistilBERT-TASB": "D_BERT_KD_TASB",
    "RepLLaMA": "REP_LLAMA",
}
WITHOUT_TEXTS = {"BM25+RM3": "BM25_RM3", "ada2": "OPEN_AI_ADA2"}
COLBERT = ("webis_colbert", "data/__colbert__msmarco-passage-trec-dl-2019-judged.run")
ON_SENSITIVE = {
    "CPJKU BM25": "BM25",
    "CPJKU RM3": "RM3",
    "KNRM": "knrm",
    "Conv-KNRM": "conv_knrm",
    "MatchPyramid": "match_pyramid",
    "TK": "tk",
    "BERT-L2": "bert_L2",
    "BERT-L4": "bert_L4",
    "AdvBERT-L2": "advbert_L2",
    "AdvBERT-L4": "advbert_L4",
}
YEARS = ("19", "20")
DEPTH = 100  # ranks that the runs with texts have

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
    options = {"sep": "\t", "header": None, "dtype": str, "keep_default_na": False}
    table = pd.read_csv(path, names=["query", "text"], quoting=csv.QUOTE_NONE, **options)
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
    """A collection with its texts: ``documents`` starts a new pass over ids and texts."""

    queries: pd.DataFrame
    qrels: pd.DataFrame
    documents: Callable[[], Iterator[tuple[str, str]]]


def in_memory(ids: pd.Series, texts: pd.Series) -> Callable[[], Iterator[tuple[str, str]]]:
    """Return a function that iterates over documents in memory."""
    return lambda: iter(zip(ids.tolist(), texts.tolist(), strict=True))


def grepbiasir() -> Texts:
    """Read Grep-BiasIR: bias-sensitive queries, documents in three wordings."""
    entries = registry.entries()
    paths = entries.loc[entries["item"] == "grepbiasir", "path"]
    options = {"dtype": str, "keep_default_na": False}
    queries = pd.read_csv(fetch("grepbiasir", "queries.csv"), **options)
    queries = queries.rename(columns={"q_id": "query", "query": "text"})[["query", "text"]]
    tables = []
    for path in sorted(paths[paths.str.startswith("queries-documents_")]):
        tables.append(pd.read_csv(fetch("grepbiasir", path), **options))
    documents = pd.concat(tables, ignore_index=True)
    qrels = documents[["q_id", "d_id", "relevant"]].astype({"relevant": int})
    qrels.columns = pd.Index(["topic", "document", "level"])
    texts = documents["doc_title"] + " " + documents["document"]
    return Texts(queries, qrels, in_memory(documents["d_id"], texts))


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


# --- tables ---------------------------------------------------------------------------------------


def occurrences(term_counts: TermCounts, id_column: str) -> pd.DataFrame:
    """List counts above zero (id_column, term, occurrences), in the order of ids and terms."""
    entries = term_counts.counts.tocoo()
    table = pd.DataFrame(
        {
            id_column: np.asarray(term_counts.documents)[entries.row],
            "term": np.asarray(term_counts.terms)[entries.col],
            "occurrences": entries.data,
        }
    )
    return table.iloc[np.lexsort((entries.col, entries.row))].reset_index(drop=True)


def counted(texts: Texts, terms: Iterable[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Count the terms and the length of each document under each tokenisation."""
    lengths, columns = {}, {}
    for tokens in ("word", "whitespace", "space"):
        counts = count_terms(texts.documents(), terms, tokens=tokens)
        lengths[tokens] = pd.Series(counts.lengths, counts.documents, dtype="int32")
        columns[tokens] = occurrences(counts, "document").set_index(["document", "term"])
    documents = pd.DataFrame(lengths).reset_index()
    table = pd.concat(columns, axis=1).droplevel(1, axis=1)
    # a term may occur under one tokenisation only
    table = table.fillna(0).astype("int16").reset_index()
    place = pd.Index(documents["document"]).get_indexer(table["document"])
    return documents, table.iloc[np.lexsort((table["term"], place))]


def public_runs(pool: set[str]) -> pd.DataFrame:
    """Read the top 100 of every public run; ``text``: whether the passage is in the pool."""
    runs = [runs_with_texts()]
    for name, folder in WITHOUT_TEXTS.items():
        for year in YEARS:
            path = fetch("rankllm", f"retrieve_results/{folder}/trec_results_dl{year}.txt")
            runs.append(read_run(path, name, order=None))
    runs.append(read_run(fetch(*COLBERT), "ColBERT", order=None))
    sensitive = read_tsv(fetch(*SENSITIVE_DL))["query"]
    for name, file in ON_SENSITIVE.items():
        path = fetch("cpjku_runs", f"measurement/sample_trec_runs/trecdl2019_passage/{file}.run")
        run = read_run(path, name, order=None)
        runs.append(run[run["topic"].isin(sensitive)])
    table = pd.concat(runs, ignore_index=True)
    table = table[table["rank"] <= DEPTH][["run", "topic", "document", "rank", "score"]]
    table["text"] = table["document"].isin(pool)
    table = table.reset_index(drop=True)
    # six digits are enough to distinguish scores
    return table.astype({"run": "category", "rank": "int16", "score": "float32"})


def write(folder: Path, name: str, table: pd.DataFrame) -> None:
    """Write a table as CSV or Parquet, by its name."""
    if name.endswith(".csv"):
        table.to_csv(folder / name, index=False, lineterminator="\n")
    else:
        table.to_parquet(folder / name, index=False, compression="zstd")


def main() -> None:
    """Make the tables of a config."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="replica", help="YAML file [replica]")
    parser.add_argument("--output", type=Path, help="folder [that of the config]")
    options = parser.parse_args()
    study = Study.read(options.config)
    folder = options.output or study.facts
    folder.mkdir(parents=True, exist_ok=True)
    sources: list[pd.DataFrame] = []

    def save(name: str, table: pd.DataFrame, used: dict[str, str]) -> None:
        write(folder, name, table)
        rows = pd.DataFrame(used.items(), columns=["source", "sha256"])
        sources.append(rows.assign(table=name)[["table", "source", "sha256"]])

    lists = {name: read_terms(fetch(*TERM_LISTS[name])) for name in TERM_LISTS}
    terms = pd.concat(lists, names=["list"]).reset_index("list")
    save("terms.csv", terms, fetched)
    fetched.clear()

    # public collections in the order of READERS, a config's own after them
    query_sets = {chosen.collection: chosen for chosen in study.query_sets.values()}
    names = sorted(query_sets, key=lambda name: [*READERS, name].index(name))
    texts = {name: read_texts(query_sets[name]) for name in names}
    document_sets = {query_sets[name].document_set: name for name in reversed(names)}
    qrels: dict[str, pd.DataFrame] = {}
    for name in names:
        document_set = query_sets[name].document_set
        judged = [qrels[document_set]] if document_set in qrels else []
        # collections that share their documents share judgements
        qrels[document_set] = pd.concat([*judged, texts[name].qrels]).drop_duplicates()
    counts = {key: counted(texts[document_sets[key]], terms["term"]) for key in qrels}
    used = dict(fetched)

    def by_collection(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
        return pd.concat(tables, names=["collection"]).reset_index("collection")

    queries = {name: texts[name].queries for name in names}
    save("queries.csv", by_collection({name: queries[name][["query"]] for name in names}), used)
    save("qrels.csv", by_collection(qrels), used)
    save("documents.parquet", by_collection({key: counts[key][0] for key in counts}), used)
    save("term_counts.parquet", by_collection({key: counts[key][1] for key in counts}), used)

    words, first_names = gender_pairs()
    vocabulary = {*words, *first_names, *PRONOUNS}
    query_terms = {}
    for name in names:
        pairs = zip(queries[name]["query"], queries[name]["text"], strict=True)
        query_terms[name] = occurrences(count_terms(pairs, vocabulary, tokens="word"), "query")
    save("query_terms.csv", by_collection(query_terms), dict(fetched))
    fetched.clear()

    sensitive = read_tsv(fetch(*SENSITIVE)).assign(kind="bias-sensitive")
    public = pd.concat([annotated_queries(), sensitive], ignore_index=True)
    save("public_queries.csv", public[["query", "kind"]], fetched)
    fetched.clear()
    if any(ranker.public for ranker in study.rankers.values()):
        pool = {document for document, _ in texts[document_sets["msmarco-pool"]].documents()}
        save("public_runs.parquet", public_runs(pool), fetched)
    write(folder, "sources.csv", pd.concat(sources).sort_values(["table", "source"]))


if __name__ == "__main__":
    main()
