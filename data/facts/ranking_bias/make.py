"""Make the derived data of chapter 4: ids, judgements and term counts, without texts.

``python make.py`` makes every file of this folder, with the same bytes. With ``--config FILE`` it
makes them for the query sets of another config. Upstream files come from the cache, from the folder
``EQUIPOISE_MIRROR``, or from their urls in ``data/registry.tsv``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.loaders.gender_terms import read_terms
from equipoise.loaders.trec import read_run
from equipoise.measures.ranking_bias import TermCounts, count_terms
from equipoise_studies.ranking_bias.data import Study
from equipoise_studies.ranking_bias.texts import (
    READERS,
    SENSITIVE,
    SENSITIVE_DL,
    TERM_LISTS,
    YEARS,
    Texts,
    annotated_queries,
    fetch,
    fetched,
    gender_pairs,
    read_texts,
    read_tsv,
    runs_with_texts,
)

PRONOUNS = ("him", "hers", "his", "her")  # their counterpart depends on grammar
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
DEPTH = 100  # ranks that the runs with texts have


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
    as_text = {"run": "str", "topic": "str"}
    table = pd.concat([run.astype(as_text) for run in runs], ignore_index=True)
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
