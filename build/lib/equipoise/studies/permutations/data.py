"""TREC CAsT 2019: utterances, their classes, judgements and passages, as tidy tables.

Columns are ``query`` (topic_turn, such as 31_4), ``topic``, ``turn``, ``text``, ``class``, ``document``, ``grade``.
Each reader takes the path of one upstream file; everything wrong with the file is collected and raised
together. `judged_conversations` joins the tables into the conversations that the permutation study works on.

The data items are ``cast19`` (topics, judgements), ``mele_classes`` (classes by Mele et al., 2021), ``case_saac``
(passages with text); `data/registry.tsv` says where each file comes from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.files import read_text
from equipoise.loaders import trec
from equipoise.problems import InputError, Problem

CLASSES = ("SE", "FT", "PT")
"""Classes of an utterance: self-explanatory, depends on the first topic, depends on a previous topic."""

SOURCES = ("CAR", "MARCO", "WAPO")
"""Collections of the CAsT 2019 passages: Wikipedia (TREC CAR), the web (MS MARCO), news (Washington Post)."""

_QUERY = re.compile(r"\d+_\d+")
_SPAN_COLUMNS = 3  # of cast.support and cast.answer: context, query, passage; the texts follow


class _Lines:
    """Lines of a separated file, and what is wrong with them."""

    def __init__(self, path: str | Path) -> None:
        self.name = str(path)
        self.problems: list[Problem] = []
        self._lines = read_text(path).split("\n")

    def report(self, line: int, column: str | None, found: str, wanted: str) -> None:
        self.problems.append(Problem(self.name, line, column, found, wanted))

    def records(self, columns: Sequence[str], separator: str | None) -> Iterator[tuple[Any, ...]]:
        """Line number and fields of every line that has as many fields as there are columns."""
        for number, line in enumerate(self._lines, 1):
            if not line.strip():
                continue
            fields = line.split(separator)
            if len(fields) != len(columns):
                wanted = f"{len(columns)}: {', '.join(columns)}"
                self.report(number, None, f"{len(fields)} fields", wanted)
                continue
            yield number, *(field.strip() for field in fields)

    def is_query(self, line: int, text: str) -> bool:
        if _QUERY.fullmatch(text):
            return True
        self.report(line, "query", repr(text), "a topic and a turn, such as 31_4")
        return False

    def is_new(self, line: int, key: Any, seen: dict[Any, int], column: str) -> bool:
        if key not in seen:
            seen[key] = line
            return True
        self.report(line, column, f"{key!r} again, as on line {seen[key]}", "each once")
        return False

    def finish(self, rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> pd.DataFrame:
        if not rows and not self.problems:
            self.problems.append(Problem(self.name, None, None, "no rows", "at least one"))
        if self.problems:
            raise InputError(self.problems)
        return pd.DataFrame(rows, columns=list(columns))


def read_topics(path: str | Path) -> pd.DataFrame:
    """Utterances of the topics, from the JSON file of the track.

    ``path``: A list of topics with ``number`` and ``turn``, a list of ``number`` and ``raw_utterance``. Returns
    DataFrame, columns query, topic, turn, text: In the order of the file; topic is a str, turn an int.

    Data item cast19, ``2019/data/evaluation/evaluation_topics_v1.0.json``.
    """
    name, rows, problems = str(path), [], []
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError([Problem(name, error.lineno, f"character {error.colno}", error.msg, "JSON")]) from None

    def field(owner: object, key: str, kind: type, where: str) -> Any:
        value = owner.get(key) if isinstance(owner, dict) else None
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
        found = "nothing" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"
        problems.append(Problem(name, None, f"{where}, {key}", found, f"a value of type {kind.__name__}"))
        return None

    if not isinstance(content, list):
        raise InputError([Problem(name, None, None, type(content).__name__, "a list of topics")])
    seen = set()
    for place, topic in enumerate(content, 1):
        number = field(topic, "number", int, f"topic at place {place}")
        turns = field(topic, "turn", list, f"topic at place {place}")
        for turn_place, turn in enumerate(turns or [], 1):
            where = f"topic {number}, turn at place {turn_place}"
            turn_number, text = field(turn, "number", int, where), field(turn, "raw_utterance", str, where)
            if number is None or turn_number is None or text is None:
                continue
            if (number, turn_number) in seen:
                problems.append(Problem(name, None, where, f"turn {turn_number} again", "each turn once"))
            seen.add((number, turn_number))
            rows.append((f"{number}_{turn_number}", str(number), turn_number, text.strip()))
    if not rows and not problems:
        problems.append(Problem(name, None, None, "no turns", "at least one topic with a turn"))
    if problems:
        raise InputError(problems)
    return pd.DataFrame(rows, columns=["query", "topic", "turn", "text"])


def read_classes(path: str | Path) -> pd.DataFrame:
    """Class of every utterance: self-explanatory (SE), depends on the first topic (FT), on a previous topic (PT).

    ``path``: Lines of query, utterance and class, separated by tabs, without a header. Returns DataFrame, columns
    query, text, class: In the order of the file.

    Data item mele_classes, ``data/datasets/test_set.tsv``.
    """
    lines, rows = _Lines(path), []
    seen: dict[Any, int] = {}
    for number, query, text, name in lines.records(["query", "text", "class"], "\t"):
        known = name in CLASSES
        if not known:
            lines.report(number, "class", repr(name), f"one of {', '.join(CLASSES)}")
        if lines.is_query(number, query) and lines.is_new(number, query, seen, "query") and known:
            rows.append((query, text, name))
    return lines.finish(rows, ["query", "text", "class"])


def read_resolved(path: str | Path) -> pd.DataFrame:
    """Utterances with their references resolved by hand.

    ``path``: Lines of query and text, separated by a tab, without a header. Returns DataFrame, columns query, text:
    In the order of the file.

    Data item cast19, ``2019/data/evaluation/evaluation_topics_annotated_resolved_v1.0.tsv``.
    """
    lines, rows = _Lines(path), []
    seen: dict[Any, int] = {}
    for number, query, text in lines.records(["query", "text"], "\t"):
        if lines.is_query(number, query) and lines.is_new(number, query, seen, "query"):
            rows.append((query, text))
    return lines.finish(rows, ["query", "text"])


def read_qrels(path: str | Path) -> pd.DataFrame:
    """Graded judgements in the format of TREC: query, iteration, document, grade.

    ``path``: Fields separated by white space. Returns DataFrame, columns query, document, grade: In the order of
    the file; grade is an int.

    Data item cast19, ``2019/data/2019qrels.txt``: grades 0 to 4.
    """
    table = trec.read_qrels(path).rename(columns={"topic": "query", "level": "grade"})
    odd = table.loc[~table["query"].str.fullmatch(_QUERY.pattern), "query"].drop_duplicates()
    if len(odd):
        wanted = "a topic and a turn, such as 31_4"
        raise InputError([Problem(str(path), None, "query", repr(query), wanted) for query in odd])
    return table


def read_passages(path: str | Path) -> pd.DataFrame:
    """Text of passages: the spans that annotators marked as support in each, joined.

    ``path``: A header, then lines of context, query, passage and one or more texts, separated by tabs; a passage
    can stand on several lines, and empty texts are left out. Returns DataFrame, columns document, text, source: One
    row a passage, in the order of first appearance; the different spans of a passage joined by spaces. The source
    is the collection that the id starts with, one of `SOURCES`.

    Data item case_saac, ``dataset/cast/cast.support`` (spans as they stand in the passage). The file ``cast.answer``
    has the same form, but its texts were written by annotators who knew the question.
    """
    name, problems = str(path), []
    spans: dict[str, dict[str, None]] = {}
    first_line: dict[str, int] = {}
    for number, line in enumerate(read_text(path).split("\n")[1:], 2):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) <= _SPAN_COLUMNS:
            wanted = "at least 4: context, query, passage, text"
            problems.append(Problem(name, number, None, f"{len(fields)} fields", wanted))
            continue
        if not _QUERY.fullmatch(fields[1]):
            problems.append(Problem(name, number, "query", repr(fields[1]), "a topic and a turn, such as 31_4"))
        passage = fields[2]
        if passage not in first_line and passage.partition("_")[0] not in SOURCES:
            wanted = f"an id that starts with {' or '.join(SOURCES)}"
            problems.append(Problem(name, number, "passage", repr(passage), wanted))
        first_line.setdefault(passage, number)
        spans.setdefault(passage, {}).update(dict.fromkeys(text for text in fields[_SPAN_COLUMNS:] if text))
    for passage, texts in spans.items():
        if not texts:
            problems.append(Problem(name, first_line[passage], "text", f"no text for {passage}", "at least one span"))
    if not spans and not problems:
        problems.append(Problem(name, None, None, "no rows", "at least one"))
    if problems:
        raise InputError(problems)
    rows = [(passage, " ".join(texts), passage.partition("_")[0]) for passage, texts in spans.items()]
    return pd.DataFrame(rows, columns=["document", "text", "source"])


def judged_conversations(topics: pd.DataFrame, classes: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """Conversations of the judged turns only, with the class of each utterance.

    ``topics``: of `read_topics`. ``classes``: of `read_classes`. ``qrels``: of `read_qrels`; a turn is judged if it
    has a row. Returns DataFrame, columns query, topic, turn, text, class: Topics and turns in the order of
    `topics`. Topics without any judged turn are left out.

    permutations, Table 1: its counts follow from the judged turns alone.
    """
    judged = set(qrels["query"])
    known: Mapping[str, str] = dict(zip(classes["query"], classes["class"], strict=True))
    table = topics[topics["query"].isin(judged)].reset_index(drop=True)
    problems = [f"judged turn {query} has no utterance" for query in sorted(judged - set(topics["query"]))]
    problems += [f"judged turn {query} has no class" for query in table["query"] if query not in known]
    first = topics.groupby("topic", sort=False)["turn"].min()
    reached = table.groupby("topic", sort=False)["turn"].min()
    problems += [
        f"topic {topic} has no first utterance: turn {first[topic]} is not judged, turn {turn} is"
        for topic, turn in reached.items()
        if turn != first[topic]
    ]
    if problems:
        raise ValueError("; ".join(problems))
    table["class"] = table["query"].map(known)
    return table[["query", "topic", "turn", "text", "class"]]
