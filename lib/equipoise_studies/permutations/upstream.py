"""TREC CAsT 2019 and 2020 as published, with texts: utterances, passages, judgements and runs.

Facts and records are made from them; the notebook reads the facts (`data`). Columns are ``query``
(topic_turn, such as 31_4), ``topic``, ``turn``, ``text``, ``class``, ``document``, ``grade``. Each
reader takes the path of one upstream file; everything wrong with the file is collected and raised
together. `judged_conversations` joins the tables into the conversations that the study works on.

The data items are ``cast19`` (topics and judgements of both years), ``mele_classes`` (classes by
Mele et al., 2021), ``case_saac`` (passages of 2019), ``castsnippets`` (passages of 2020, five for
each judged turn), ``cast_rewrites`` (rewrites by people and by systems), ``cqr_runs`` (public
rankings of the full collection), ``decaf`` (16 systems on the full collection, by Alessio et al.,
2023); ``data/registry.tsv`` says where each file comes from.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from equipoise.files import read_text
from equipoise.loaders import topics, trec
from equipoise.orders.class_structures import CLASSES
from equipoise.problems import InputError, Problem, Problems
from equipoise_compendium import registry
from equipoise_studies.permutations.class_rule import proposed_classes

# Collections of the CAsT 2019 passages: Wikipedia (TREC CAR), the web (MS MARCO), news (Washington
# Post).
_SOURCES = ("CAR", "MARCO", "WAPO")

# Public BERT rankings of the full collection, by how the utterances were rewritten.
_REWRITING_RUNS = (
    "run_raw",
    "run_oracle",
    "run_cv",
    "run_self_learn",
    "run_self_learn_cv",
    "rule_based",
    "run_rule_based_cv",
)

# Systems on the full collection by the number of their experiment: how utterances were rewritten
# (CR: by coreference, T5: by a trained model, manual: by hand), the first ranker (FLC: the first,
# last and current utterance make the query), and behind ">" a second one.
WHOLE_COLLECTION_RUNS = {
    1: "BM25",
    2: "CR + BM25",
    3: "T5 + BM25",
    4: "BM25 FLC",
    5: "T5 + BM25 FLC",
    6: "BM25 > BERT",
    7: "T5 + BM25 > BERT",
    8: "BM25 FLC > BERT",
    9: "T5 + BM25 FLC > BERT",
    10: "T5 + BERT",
    11: "SPLADE",
    12: "T5 + SPLADE",
    13: "manual + BM25",
    14: "manual + BM25 > BERT",
    15: "manual + BERT",
    16: "manual + SPLADE",
}
WHOLE_COLLECTION_FOLDER = "SIGIR2023-experiments/TREC CAsT 2019"

# Rewrites of CAsT 2019 in the order of the script, by who made them.
_REWRITERS = {
    "QuReTeC": "5_QuReTeC_Q.tsv",
    "Transformer++": "2_Transformer_Plus_Plus_Q.tsv",
    "Self-learn": "3_Self_learn_Q.tsv",
    "Rule-based": "4_Rule_based_Q.tsv",
    "people": "10_Human.tsv",
}

_QUERY = re.compile(r"\d+_\d+")
_QUERY_WANTED = "a topic and a turn, such as 31_4"


def read_topics(path: str | Path) -> pd.DataFrame:
    """Utterances of the topics of a track: columns query, topic, turn, text, in file order."""
    return topics.read_topics(path).utterances


def _fields(path: str | Path, *, header: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Number of each line and its fields, separated by tabs; blank lines and a header left out."""
    lines = read_text(path).split("\n")
    for number, line in enumerate(lines, 1):
        is_header = header and number == 1
        if line.strip() and not is_header:
            yield number, [field.strip() for field in line.split("\t")]


def read_classes(path: str | Path) -> pd.DataFrame:
    """Class of every utterance: columns query, text, class, in file order.

    Data item mele_classes, ``data/datasets/test_set.tsv``.
    """
    problems = Problems()
    rows: dict[str, list[str]] = {}
    line_of_query: dict[str, int] = {}
    for number, fields in _fields(path):
        query, utterance_class = fields[0], fields[-1]
        if len(fields) != 3:
            problems.add(path, number, None, f"{len(fields)} fields", "3: query, text, class")
        elif not _QUERY.fullmatch(query):
            problems.add(path, number, "query", repr(query), _QUERY_WANTED)
        elif query in rows:
            repeated = f"{query!r} again, as on line {line_of_query[query]}"
            problems.add(path, number, "query", repeated, "each once")
        elif utterance_class not in CLASSES:
            one_of = f"one of {', '.join(CLASSES)}"
            problems.add(path, number, "class", repr(utterance_class), one_of)
        else:
            rows[query] = fields
            line_of_query[query] = number
    problems.refuse()
    return pd.DataFrame(list(rows.values()), columns=["query", "text", "class"])


def read_resolved(path: str | Path) -> pd.DataFrame:
    """Utterances with their references resolved by hand: columns query, text, in file order.

    Data item cast19, ``2019/data/evaluation/evaluation_topics_annotated_resolved_v1.0.tsv``.
    """
    return read_topics(path)[["query", "text"]]


def read_qrels(path: str | Path) -> pd.DataFrame:
    """Judgements in the format of TREC: columns query, document, grade (0 to 4), in file order.

    Data item cast19, ``2019/data/2019qrels.txt``.
    """
    table = trec.read_qrels(path).rename(columns={"topic": "query", "level": "grade"})
    is_query = table["query"].str.fullmatch(_QUERY.pattern)
    problems = []
    for query in table.loc[~is_query, "query"].unique():
        problems.append(Problem(str(path), None, "query", repr(query), _QUERY_WANTED))
    if problems:
        raise InputError(problems)
    return table


def read_passages(path: str | Path) -> pd.DataFrame:
    """Text of passages, the annotated spans of each joined: columns document, text, source.

    ``path``: A header, then lines of context, query, passage and one or more texts, separated by
    tabs; a passage can stand on several lines, and empty texts are left out. The source is the
    collection that the id starts with: CAR, MARCO or WAPO.

    Data item case_saac, ``dataset/cast/cast.support`` (spans as they stand in the passage). The
    file ``cast.answer`` has the same form, but its texts were written by annotators who knew the
    question.
    """
    problems = Problems()
    spans: dict[str, list[str]] = {}
    first_line: dict[str, int] = {}
    for number, fields in _fields(path, header=True):
        if len(fields) < 4:
            wanted = "at least 4: context, query, passage, text"
            problems.add(path, number, None, f"{len(fields)} fields", wanted)
            continue
        query, passage, texts = fields[1], fields[2], fields[3:]
        if not _QUERY.fullmatch(query):
            problems.add(path, number, "query", repr(query), _QUERY_WANTED)
        if passage not in spans:
            spans[passage] = []
            first_line[passage] = number
            if _source(passage) not in _SOURCES:
                wanted = f"an id that starts with {' or '.join(_SOURCES)}"
                problems.add(path, number, "passage", repr(passage), wanted)
        for text in texts:
            # several annotators mark the same span
            if text and text not in spans[passage]:
                spans[passage].append(text)
    for passage, texts in spans.items():
        if not texts:
            number = first_line[passage]
            problems.add(path, number, "text", f"no text for {passage}", "at least one span")
    problems.refuse()
    rows = [(passage, " ".join(texts), _source(passage)) for passage, texts in spans.items()]
    return pd.DataFrame(rows, columns=["document", "text", "source"])


def _source(passage: str) -> str:
    return passage.partition("_")[0]


def read_snippet_passages(path: str | Path) -> pd.DataFrame:
    """Passages of one file of item castsnippets: columns document, text, each once."""
    columns = {"Input.passage_id": "document", "Input.passage": "text"}
    table = pd.read_csv(path, usecols=list(columns), dtype=str, keep_default_na=False)
    return table.rename(columns=columns).drop_duplicates("document")[list(columns.values())]


def read_rewritten(path: str | Path) -> pd.Series:
    """Rewritten utterances by query, from a file of item cast_rewrites: tabs, no quoting."""
    table = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, dtype=str, keep_default_na=False)
    return table.set_index("id")["query"]


def judged_conversations(
    topics: pd.DataFrame, classes: pd.DataFrame, qrels: pd.DataFrame
) -> pd.DataFrame:
    """Conversations of the judged turns only, with the class of each utterance.

    Takes what the readers give; a turn is judged if it has a row in the judgements. Returns columns
    query, topic, turn, text, class, topics and turns in their order. Topics without any judged turn
    are left out.

    permutations, Table 1: its counts follow from the judged turns alone.
    """
    judged = set(qrels["query"])
    table = topics[topics["query"].isin(judged)]
    table = table.merge(classes[["query", "class"]], on="query", how="left")

    problems = []
    for query in sorted(judged - set(topics["query"])):
        problems.append(f"judged turn {query} has no utterance")
    for query in table.loc[table["class"].isna(), "query"]:
        problems.append(f"judged turn {query} has no class")
    first_turn = topics.groupby("topic", sort=False)["turn"].min()
    first_judged_turn = table.groupby("topic", sort=False)["turn"].min()
    for topic, turn in first_judged_turn.items():
        if turn != first_turn[topic]:
            turns = f"turn {first_turn[topic]} is not judged, turn {turn} is"
            problems.append(f"topic {topic} has no first utterance: {turns}")
    if problems:
        raise ValueError("; ".join(problems))
    return table


def fetch_judged() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The judged conversations of CAsT 2019 and their judgements."""
    topics_file = "2019/data/evaluation/evaluation_topics_v1.0.json"
    utterances = read_topics(registry.fetch("cast19", topics_file))
    classes = read_classes(registry.fetch("mele_classes", "data/datasets/test_set.tsv"))
    qrels = read_qrels(registry.fetch("cast19", "2019/data/2019qrels.txt"))
    return judged_conversations(utterances, classes, qrels), qrels


def fetch_passages() -> pd.DataFrame:
    """The passages of CAsT 2019 whose text is public: columns document, text, source."""
    return read_passages(registry.fetch("case_saac", "dataset/cast/cast.support"))


def fetch_resolved() -> pd.Series:
    """The utterances of CAsT 2019 by query, their references resolved by hand."""
    file = "2019/data/evaluation/evaluation_topics_annotated_resolved_v1.0.tsv"
    return read_resolved(registry.fetch("cast19", file)).set_index("query")["text"]


def fetch_rewrites() -> dict[str, pd.Series]:
    """What public rewriters and people made of the utterances of CAsT 2019 in script order."""
    texts = {}
    for rewriter, file in _REWRITERS.items():
        texts[rewriter] = read_rewritten(registry.fetch("cast_rewrites", f"rewrites/2019/{file}"))
    return texts


def fetch_rewriting_runs() -> dict[str, pd.DataFrame]:
    """The public rankings of the full collection by name: columns query, document, rank, score."""
    runs = {}
    for name in _REWRITING_RUNS:
        path = registry.fetch("cqr_runs", f"results/bert_base_{name}.trec")
        run = trec.read_run(path, order=None).rename(columns={"topic": "query"})
        runs[name.removeprefix("run_").replace("_", "-")] = run
    return runs


def fetch_whole_collection_runs() -> dict[str, pd.DataFrame]:
    """The 16 systems of DECAF on the full collection: columns query, document, rank, score.

    Ranks are those of the files, from 0.
    """
    runs = {}
    for number, name in WHOLE_COLLECTION_RUNS.items():
        path = registry.fetch("decaf", f"{WHOLE_COLLECTION_FOLDER}/{number}/run.txt")
        runs[name] = trec.read_run(path, order=None).rename(columns={"topic": "query"})
    return runs


def fetch_judged_2020() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The judged conversations of CAsT 2020, with proposed classes, and their judgements."""
    topics_file = "2020/2020_manual_evaluation_topics_v1.0.json"
    utterances = read_topics(registry.fetch("cast19", topics_file))
    qrels = read_qrels(registry.fetch("cast19", "2020/2020qrels.txt"))
    by_people = read_rewritten(registry.fetch("cast_rewrites", "rewrites/2020/11_Human.tsv"))
    classes = utterances[["query"]].copy()
    classes["class"] = proposed_classes(utterances, by_people)
    return judged_conversations(utterances, classes, qrels), qrels


def fetch_passages_2020() -> pd.DataFrame:
    """The passages of the CAsT-snippets annotation of CAsT 2020: columns document, text."""
    parts = []
    for group in "ABCDE":
        for batch in range(1, 6):
            file = f"group-{group}_batch-{batch}_paragraph_regular.csv"
            path = registry.fetch("castsnippets", f"data/large_scale/all/2020/{file}")
            parts.append(read_snippet_passages(path))
    return pd.concat(parts).drop_duplicates("document")
