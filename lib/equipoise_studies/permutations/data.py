"""TREC CAsT 2019: utterances, their classes, judgements and passages, as tidy tables.

Columns are ``query`` (topic_turn, such as 31_4), ``topic``, ``turn``, ``text``, ``class``,
``document``, ``grade``. Each reader takes the path of one upstream file; everything wrong with the
file is collected and raised together. `judged_conversations` joins the tables into the
conversations that the permutation study works on.

The data items are ``cast19`` (topics, judgements), ``mele_classes`` (classes by Mele et al., 2021),
``case_saac`` (passages with text); `data/registry.tsv` says where each file comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from equipoise.files import read_text
from equipoise.loaders import topics, trec
from equipoise.orders.class_structures import CLASSES
from equipoise.problems import InputError, Problem, Problems
from equipoise_compendium import registry

# collections of the CAsT 2019 passages: Wikipedia (TREC CAR), the web (MS MARCO), news (Washington
# Post)
_SOURCES = ("CAR", "MARCO", "WAPO")

# public BERT rankings of the full collection, by how the utterances were rewritten (data item
# cqr_runs)
_REWRITING_RUNS = (
    "run_raw", "run_oracle", "run_cv", "run_self_learn", "run_self_learn_cv", "rule_based", "run_rule_based_cv",
)  # fmt: skip

_QUERY = re.compile(r"\d+_\d+")
_QUERY_WANTED = "a topic and a turn, such as 31_4"


def read_topics(path: str | Path) -> pd.DataFrame:
    """Utterances of the topics of a track: columns query, topic, turn, text, in file order."""
    return topics.read_topics(path).utterances


def _fields(path: str | Path, *, header: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Fields of each line, separated by tabs, and its number; blank lines and a header are left out."""
    for number, line in enumerate(read_text(path).split("\n")[header:], 1 + header):
        if line.strip():
            yield number, [field.strip() for field in line.split("\t")]


def read_classes(path: str | Path) -> pd.DataFrame:
    """Class of every utterance: columns query, text, class, in file order.

    Data item mele_classes, ``data/datasets/test_set.tsv``.
    """
    problems, rows = Problems(), dict[str, tuple[int, list[str]]]()
    for number, fields in _fields(path):
        query, kind = fields[0], fields[-1]
        if len(fields) != 3:
            problems.add(path, number, None, f"{len(fields)} fields", "3: query, text, class")
        elif not _QUERY.fullmatch(query):
            problems.add(path, number, "query", repr(query), _QUERY_WANTED)
        elif query in rows:
            problems.add(
                path, number, "query", f"{query!r} again, as on line {rows[query][0]}", "each once"
            )
        elif kind not in CLASSES:
            problems.add(path, number, "class", repr(kind), f"one of {', '.join(CLASSES)}")
        else:
            rows[query] = (number, fields)
    problems.refuse()
    return pd.DataFrame([fields for _, fields in rows.values()], columns=["query", "text", "class"])


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
    odd = table.loc[~table["query"].str.fullmatch(_QUERY.pattern), "query"].unique()
    if len(odd):
        raise InputError(
            Problem(str(path), None, "query", repr(query), _QUERY_WANTED) for query in odd
        )
    return table


def read_passages(path: str | Path) -> pd.DataFrame:
    """Text of passages, the spans that annotators marked as support in each, joined: columns document, text, source.

    ``path``: A header, then lines of context, query, passage and one or more texts, separated by
    tabs; a passage can stand on several lines, and empty texts are left out. The source is the
    collection that the id starts with: CAR, MARCO or WAPO.

    Data item case_saac, ``dataset/cast/cast.support`` (spans as they stand in the passage). The
    file ``cast.answer`` has the same form, but its texts were written by annotators who knew the
    question.
    """
    problems = Problems()
    spans: dict[str, tuple[int, dict[str, None]]] = {}  # by passage: its first line, its texts
    for number, fields in _fields(path, header=True):
        if len(fields) < 4:
            problems.add(
                path,
                number,
                None,
                f"{len(fields)} fields",
                "at least 4: context, query, passage, text",
            )
            continue
        _, query, passage, *texts = fields
        if not _QUERY.fullmatch(query):
            problems.add(path, number, "query", repr(query), _QUERY_WANTED)
        if passage not in spans and passage.partition("_")[0] not in _SOURCES:
            problems.add(
                path,
                number,
                "passage",
                repr(passage),
                f"an id that starts with {' or '.join(_SOURCES)}",
            )
        spans.setdefault(passage, (number, {}))[1].update(dict.fromkeys(filter(None, texts)))
    for passage, (number, texts_there) in spans.items():
        if not texts_there:
            problems.add(path, number, "text", f"no text for {passage}", "at least one span")
    problems.refuse()
    rows = [
        (passage, " ".join(texts), passage.partition("_")[0])
        for passage, (_, texts) in spans.items()
    ]
    return pd.DataFrame(rows, columns=["document", "text", "source"])


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
    table = topics[topics["query"].isin(judged)].merge(
        classes[["query", "class"]], on="query", how="left"
    )
    problems = [
        f"judged turn {query} has no utterance" for query in sorted(judged - set(topics["query"]))
    ]
    problems += [
        f"judged turn {query} has no class" for query in table.loc[table["class"].isna(), "query"]
    ]
    first, first_judged = (
        turns.groupby("topic", sort=False)["turn"].min() for turns in (topics, table)
    )
    problems += [
        f"topic {topic} has no first utterance: turn {first[topic]} is not judged, turn {turn} is"
        for topic, turn in first_judged.items()
        if turn != first[topic]
    ]
    if problems:
        raise ValueError("; ".join(problems))
    return table


def fetch_judged() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The judged conversations of CAsT 2019 and their judgements, from the upstream files."""
    utterances = read_topics(
        registry.fetch("cast19", "2019/data/evaluation/evaluation_topics_v1.0.json")
    )
    classes = read_classes(registry.fetch("mele_classes", "data/datasets/test_set.tsv"))
    qrels = read_qrels(registry.fetch("cast19", "2019/data/2019qrels.txt"))
    return judged_conversations(utterances, classes, qrels), qrels


def fetch_rewriting_runs(count: int) -> dict[str, pd.DataFrame]:
    """The first of the public rankings of the full collection, as columns query, document, rank, score, by name."""
    files = {
        name: registry.fetch("cqr_runs", f"results/bert_base_{name}.trec")
        for name in _REWRITING_RUNS[:count]
    }
    said = {name: name.removeprefix("run_").replace("_", "-") for name in files}
    return {
        said[name]: trec.read_run(path).rename(columns={"topic": "query"})
        for name, path in files.items()
    }
