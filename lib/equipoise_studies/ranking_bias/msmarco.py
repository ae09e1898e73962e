"""MS MARCO passages that public runs found for the queries of TREC Deep Learning 2019 and 2020.

The runs rank all 8.8 million passages; texts are at hand of what four of them have among their
best 100 (item rankllm), 22,654 passages: the pool.

References
----------
Craswell, N. et al. (2020, 2021): Overview of the TREC 2019 and 2020 deep learning tracks.
Rekabsaz, N., Kopeinik, S. and Schedl, M. (2021): Societal Biases in Retrieved Contents, SIGIR (the
bias-sensitive queries, and ten runs on them).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from equipoise.loaders import gender_terms
from equipoise.loaders.objects import read_items
from equipoise.loaders.trec import read_qrels, read_run
from equipoise.measures.ranking_bias import count_terms
from equipoise.problems import Problems, shown
from equipoise_compendium import registry

DEPTH = 100
"""Ranks of the public runs, of which those that come with texts have no more."""

YEARS = ("19", "20")

WITH_TEXTS: Mapping[str, str] = {
    "BM25": "BM25",
    "SPLADE++": "SPLADE_P_P_ENSEMBLE_DISTIL",
    "DistilBERT-TASB": "D_BERT_KD_TASB",
    "RepLLaMA": "REP_LLAMA",
}
"""Public runs whose passages make the pool, by name, with their folder in item rankllm."""

OF_BOTH_YEARS: Mapping[str, str] = {"BM25+RM3": "BM25_RM3", "ada2": "OPEN_AI_ADA2"}
"""Public runs without texts, likewise."""

OF_2019: Mapping[str, str] = {
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
"""Public runs on the bias-sensitive queries, by name, with their file in item cpjku_runs."""

DIGESTS = 1_000
"""Passages whose digests tell the collection from another."""

_SENSITIVE = ("cpjku", "dataset/trecdeep19_passage.fair.tsv")
_COLBERT = ("webis_colbert", "data/__colbert__msmarco-passage-trec-dl-2019-judged.run")
_HIT = "a hit with qid, docid and content (text), rank and score (numbers)"


@dataclass(frozen=True, eq=False)
class Ranked:
    """Runs that come with texts.

    ``runs`` (columns run, topic, document, rank, score); ``queries`` and ``passages`` (id and
    text), in the order in which they are first met.
    """

    runs: pd.DataFrame
    queries: pd.DataFrame
    passages: pd.DataFrame


@cache
def ranked() -> Ranked:
    """The runs whose passages make the pool.

    Two of a passage's texts may differ in blanks; the first is taken, in the order of `WITH_TEXTS`.
    """
    tables = [_read_results(path).assign(run=name) for name, path in _results()]
    hits = pd.concat(tables, ignore_index=True)
    queries = hits[["topic", "query"]].drop_duplicates("topic").reset_index(drop=True)
    passages = hits[["document", "text"]].drop_duplicates("document").reset_index(drop=True)
    return Ranked(
        hits[["run", "topic", "document", "rank", "score"]],
        queries.set_axis(["query", "text"], axis=1),
        passages,
    )


def _results() -> list[tuple[str, Path]]:
    """The files of runs that come with texts, each with the name of its run."""
    files = []
    for name, folder in WITH_TEXTS.items():
        for year in YEARS:
            path = f"retrieve_results/{folder}/retrieve_results_dl{year}.json"
            files.append((name, registry.fetch("rankllm", path)))
    return files


def _read_results(path: Path) -> pd.DataFrame:
    """A file of results: columns ``topic, query, document, text, rank, score``."""
    problems = Problems()
    rows = []
    for item in read_items(path, problems):
        hits = item.content.get("hits")
        text = item.content.get("query")
        if not isinstance(text, str) or not isinstance(hits, list):
            wanted = "an object with query (text) and hits (a list)"
            item.wrong(problems, "", shown(item.content), wanted)
            continue
        for hit in hits:
            match hit:
                case {
                    "qid": str() | int() as query,
                    "docid": str() | int() as passage,
                    "content": str(content),
                    "rank": int(rank),
                    "score": int() | float() as score,
                }:
                    rows.append((str(query), text, str(passage), content, rank, float(score)))
                case _:
                    item.wrong(problems, "hits", shown(hit), _HIT)
    problems.refuse()
    table = pd.DataFrame(rows, columns=["topic", "query", "document", "text", "rank", "score"])
    return table.astype(dict.fromkeys(["topic", "query", "document", "text"], "str"))


def public_runs() -> pd.DataFrame:
    """The best 100 of every public run: columns ``run, topic, document, rank, score``.

    Ranks are those of the files. Scores of RepLLaMA are rounded to three digits upstream, so that
    equal ones of it are no ties.
    """
    runs = [ranked().runs]
    for name, folder in OF_BOTH_YEARS.items():
        for year in YEARS:
            path = f"retrieve_results/{folder}/trec_results_dl{year}.txt"
            runs.append(read_run(registry.fetch("rankllm", path), name, order=None))
    runs.append(read_run(registry.fetch(*_COLBERT), "ColBERT", order=None))
    sensitive = sensitive_queries()["query"]
    for name, file in OF_2019.items():
        path = f"measurement/sample_trec_runs/trecdl2019_passage/{file}.run"
        run = read_run(registry.fetch("cpjku_runs", path), name, order=None)
        runs.append(run[run["topic"].isin(sensitive)])
    table = pd.concat(runs, ignore_index=True)
    best = table[table["rank"] <= DEPTH]
    return best[["run", "topic", "document", "rank", "score"]].reset_index(drop=True)


def neutral_queries(terms: list[str]) -> pd.DataFrame:
    """The queries that hold none of the terms: columns ``query, text``."""
    queries = ranked().queries
    texts = zip(queries["query"], queries["text"], strict=True)
    gendered = count_terms(texts, terms, tokens="word")
    return queries[gendered.counts.sum(axis=1) == 0].reset_index(drop=True)


def sensitive_queries() -> pd.DataFrame:
    """The bias-sensitive queries of 2019: columns ``query, text``."""
    return gender_terms.read_sensitive_queries(registry.fetch(*_SENSITIVE))


def judgements(queries: pd.Series) -> pd.DataFrame:
    """NIST's grades of these queries, 0 to 3: columns ``topic, document, level``."""
    tables = []
    for year in YEARS:
        path = registry.fetch("dlqrels", f"qrels/qrels.dl{year}-passage.txt")
        tables.append(read_qrels(path))
    grades = pd.concat(tables)
    return grades[grades["topic"].isin(queries)].reset_index(drop=True)


def digest(text: str) -> str:
    """Sixteen letters that tell one passage from another, whatever its blanks are."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def passage_digests() -> pd.DataFrame:
    """Digests of some passages of the pool, spread over it: columns ``document, digest``.

    Of those in ASCII alone: copies of the collection differ in how they mend other letters.
    """
    _results()  # noted as used, where another table has read them before
    passages = ranked().passages
    passages = passages[passages["text"].map(str.isascii)]
    passages = passages.iloc[passages["document"].astype(int).argsort()]
    chosen = passages.iloc[:: len(passages) // DIGESTS].head(DIGESTS)
    return chosen[["document"]].assign(digest=chosen["text"].map(digest))
