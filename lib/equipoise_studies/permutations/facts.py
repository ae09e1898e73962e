"""The facts that the notebook needs of CAsT 2019 and 2020, made from the upstream files.

No text is among them. A text is a *bag* instead: the numbers of its terms, ascending, each as often
as it occurs, with a space between them. A term's number is its place in the sorted vocabulary of
the passages of its year; the vocabulary itself is not kept, and terms that no passage has are left
out, as no ranking sees them. The numbers have the same number of digits, so that they sort as the
terms do: feedback breaks ties of terms by their alphabetical order.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from equipoise.orders.conversations import conversations
from equipoise_compendium import project
from equipoise_studies.permutations import antecedents, rewrites, upstream
from equipoise_studies.permutations.class_rule import proposed_classes
from equipoise_studies.systems.lexical import Collection

_WHOLE_COLLECTION_DEPTH = 10  # the study looks at three ranks


def _collection(passages: pd.DataFrame) -> Collection:
    return Collection.from_texts(dict(zip(passages["document"], passages["text"], strict=True)))


def bags(collection: Collection, texts: Iterable[str]) -> list[str]:
    """Bag of each text: the numbers of those of its terms that the collection has."""
    counts = collection.queries(list(texts))
    digits = len(str(counts.shape[1]))
    lines = []
    for start, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        repeated = np.repeat(counts.indices[start:end], counts.data[start:end].astype(int))
        lines.append(" ".join(f"{number:0{digits}d}" for number in np.sort(repeated)))
    return lines


def _word_counts(texts: pd.Series) -> pd.Series:
    """Number of words of each text, between white space."""
    return texts.str.split().str.len()


def make_utterances() -> pd.DataFrame:
    """The judged utterances of CAsT 2019, with what a pronoun in a later one would refer to."""
    judged, _ = upstream.fetch_judged()
    collection = _collection(upstream.fetch_passages())
    record = project.data(*antecedents.RECORD)
    phrases = antecedents.read_antecedents(record, judged)
    table = judged[["query", "topic", "turn", "class"]].copy()
    table["proposed class"] = proposed_classes(judged, upstream.fetch_resolved())
    table["words"] = _word_counts(judged["text"])
    table["terms"] = bags(collection, judged["text"])
    table["anaphoric"] = phrases["anaphoric"].astype(int)
    # A phrase without a term that a passage has is a phrase still: a later pronoun refers to it.
    phrase_terms = pd.Series(bags(collection, phrases["phrase"]), index=table.index)
    table["phrase"] = phrase_terms.mask((phrase_terms == "") & (phrases["phrase"] != ""), "-")
    return table


def make_passages() -> pd.DataFrame:
    """The passages of CAsT 2019 with text."""
    passages = upstream.fetch_passages().sort_values("document")
    table = passages[["document", "source"]].copy()
    table["words"] = _word_counts(passages["text"]).astype(np.int32)
    table["terms"] = bags(_collection(passages), passages["text"])
    return table


def make_qrels() -> pd.DataFrame:
    """The judgements of CAsT 2019 that a score depends on."""
    _, qrels = upstream.fetch_judged()
    return _deciding(qrels, upstream.fetch_passages())


def _deciding(qrels: pd.DataFrame, passages: pd.DataFrame) -> pd.DataFrame:
    """Judgements above 0, and those of the passages with text.

    All other documents are judged 0 and cannot be retrieved: they change neither an ideal ranking
    nor the share of a ranking that is judged.
    """
    decides = (qrels["grade"] > 0) | qrels["document"].isin(passages["document"])
    table = qrels[decides].sort_values(["query", "document"])
    unjudged = sorted(set(qrels["query"]) - set(table["query"]))
    if unjudged:
        raise ValueError(f"no judgement that decides anything for {', '.join(unjudged)}")
    return table.astype({"grade": np.int8})[["query", "document", "grade"]]


def make_rewritings() -> pd.DataFrame:
    """What people and public rewriters made of the utterances of CAsT 2019 in script order."""
    judged, _ = upstream.fetch_judged()
    collection = _collection(upstream.fetch_passages())
    texts_by_rewriter = upstream.fetch_rewrites()
    texts_by_rewriter["by hand"] = upstream.fetch_resolved()
    parts = []
    for rewriter, texts in texts_by_rewriter.items():
        terms = bags(collection, texts.loc[judged["query"]])
        parts.append(pd.DataFrame({"rewriter": rewriter, "query": judged["query"], "terms": terms}))
    return pd.concat(parts)


def make_model_rewrites() -> pd.DataFrame:
    """What the recorded language model made of each utterance behind each other one."""
    judged, _ = upstream.fetch_judged()
    collection = _collection(upstream.fetch_passages())
    record = project.data(*rewrites.RECORD)
    rows = []
    for conversation in rewrites.read_rewrites(record, conversations(judged)):
        for (before, current), text in conversation.rewrites.items():
            rows.append((conversation.queries[current], conversation.queries[before], text))
    table = pd.DataFrame(rows, columns=["query", "before", "text"])
    table["terms"] = bags(collection, table["text"])
    return table.drop(columns="text")


def make_rankings() -> pd.DataFrame:
    """Public rankings of the full collection: at each rank the relevant document, if it is one."""
    judged, qrels = upstream.fetch_judged()
    runs = upstream.fetch_rewriting_runs()
    parts = [_ranks(name, run, judged, qrels) for name, run in runs.items()]
    return pd.concat(parts)[["run", "query", "rank", "document"]]


def make_whole_collection() -> pd.DataFrame:
    """The first ranks of the systems of DECAF on the full collection, and which are judged."""
    judged, qrels = upstream.fetch_judged()
    parts = []
    for name, run in upstream.fetch_whole_collection_runs().items():
        ranks = _ranks(name, run, judged, qrels)
        parts.append(ranks[ranks["rank"] <= _WHOLE_COLLECTION_DEPTH])
    return pd.concat(parts)[["run", "query", "rank", "document", "judged"]]


def _ranks(name: str, run: pd.DataFrame, judged: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """Rank by rank of the judged turns: the document where it is relevant, whether it is judged."""
    # Equal scores by document id, descending, scores in single precision: as trec_eval ranks.
    run = run[run["query"].isin(judged["query"])].astype({"score": np.float32})
    run = run.sort_values(["query", "score", "document"], ascending=[True, False, False])
    run["rank"] = (run.groupby("query").cumcount() + 1).astype(np.int16)
    run = run.merge(qrels, how="left", on=["query", "document"])
    run["judged"] = run["grade"].notna()
    run["document"] = run["document"].where(run["grade"] > 0, "")
    return run.assign(run=name)


def make_utterances_2020() -> pd.DataFrame:
    """The judged utterances of CAsT 2020, with the classes that a rule proposes."""
    judged, _ = upstream.fetch_judged_2020()
    collection = _collection(upstream.fetch_passages_2020())
    table = judged[["query", "topic", "turn", "class"]].copy()
    table["terms"] = bags(collection, judged["text"])
    return table


def make_passages_2020() -> pd.DataFrame:
    """The passages of the CAsT-snippets annotation of CAsT 2020."""
    passages = upstream.fetch_passages_2020().sort_values("document")
    table = passages[["document"]].copy()
    table["terms"] = bags(_collection(passages), passages["text"])
    return table


def make_qrels_2020() -> pd.DataFrame:
    """The judgements of CAsT 2020 that a score depends on."""
    _, qrels = upstream.fetch_judged_2020()
    return _deciding(qrels, upstream.fetch_passages_2020())


TABLES = {
    "utterances.csv": make_utterances,
    "passages.parquet": make_passages,
    "qrels.parquet": make_qrels,
    "rewritings.csv": make_rewritings,
    "model_rewrites.csv": make_model_rewrites,
    "rankings.parquet": make_rankings,
    "whole_collection.parquet": make_whole_collection,
    "utterances_2020.csv": make_utterances_2020,
    "passages_2020.parquet": make_passages_2020,
    "qrels_2020.parquet": make_qrels_2020,
}
"""How each table is made, by the name of its file in ``data/facts/permutations``."""
