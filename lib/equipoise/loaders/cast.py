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

from equipoise.loaders import trec
from equipoise.tables import InputError, Problem, read_text

__all__ = [
    "CLASSES",
    "SOURCES",
    "judged_conversations",
    "read_classes",
    "read_passages",
    "read_qrels",
    "read_resolved",
    "read_topics",
]

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

    Parameters
    ----------
    path : str or Path
        A list of topics with ``number`` and ``turn``, a list of ``number`` and ``raw_utterance``.

    Returns
    -------
    DataFrame, columns query, topic, turn, text
        In the order of the file; topic is a str, turn an int.

    Raises
    ------
    InputError
        If the file is no JSON, or a topic or turn lacks a field, has one of another type or comes twice.

    Notes
    -----
    Data item cast19, ``2019/data/evaluation/evaluation_topics_v1.0.json``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "topics.json"
    ...     _ = path.write_text('[{"number": 1, "turn": [{"number": 1, "raw_utterance": "What is a shark? "}]}]')
    ...     read_topics(path).to_dict("records")
    [{'query': '1_1', 'topic': '1', 'turn': 1, 'text': 'What is a shark?'}]
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
    r"""Class of every utterance: self-explanatory (SE), depends on the first topic (FT), on a previous topic (PT).

    Parameters
    ----------
    path : str or Path
        Lines of query, utterance and class, separated by tabs, without a header.

    Returns
    -------
    DataFrame, columns query, text, class
        In the order of the file.

    Raises
    ------
    InputError
        If a line has another number of fields, a query is malformed or comes twice, or a class is none of the three.

    Notes
    -----
    Data item mele_classes, ``data/datasets/test_set.tsv``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "classes.tsv"
    ...     _ = path.write_text("31_1\tWhat is throat cancer?\tSE\n31_2\tIs it treatable?\tFT\n")
    ...     read_classes(path)["class"].tolist()
    ['SE', 'FT']
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
    r"""Utterances with their references resolved by hand.

    Parameters
    ----------
    path : str or Path
        Lines of query and text, separated by a tab, without a header.

    Returns
    -------
    DataFrame, columns query, text
        In the order of the file.

    Raises
    ------
    InputError
        If a line has another number of fields, or a query is malformed or comes twice.

    Notes
    -----
    Data item cast19, ``2019/data/evaluation/evaluation_topics_annotated_resolved_v1.0.tsv``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "resolved.tsv"
    ...     _ = path.write_text("31_2\tIs throat cancer treatable?\n")
    ...     read_resolved(path)["text"].tolist()
    ['Is throat cancer treatable?']
    """
    lines, rows = _Lines(path), []
    seen: dict[Any, int] = {}
    for number, query, text in lines.records(["query", "text"], "\t"):
        if lines.is_query(number, query) and lines.is_new(number, query, seen, "query"):
            rows.append((query, text))
    return lines.finish(rows, ["query", "text"])


def read_qrels(path: str | Path) -> pd.DataFrame:
    r"""Graded judgements in the format of TREC: query, iteration, document, grade.

    Parameters
    ----------
    path : str or Path
        Fields separated by white space.

    Returns
    -------
    DataFrame, columns query, document, grade
        In the order of the file; grade is an int.

    Raises
    ------
    InputError
        As for `equipoise.loaders.trec.read_qrels`, and if a query is malformed.

    Notes
    -----
    Data item cast19, ``2019/data/2019qrels.txt``: grades 0 to 4.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "qrels.txt"
    ...     _ = path.write_text("31_1 Q0 MARCO_1 4\n")
    ...     read_qrels(path).to_dict("records")
    [{'query': '31_1', 'document': 'MARCO_1', 'grade': 4}]
    """
    table = trec.read_qrels(path).rename(columns={"topic": "query", "level": "grade"})
    odd = table.loc[~table["query"].str.fullmatch(_QUERY.pattern), "query"].drop_duplicates()
    if len(odd):
        wanted = "a topic and a turn, such as 31_4"
        raise InputError([Problem(str(path), None, "query", repr(query), wanted) for query in odd])
    return table


def read_passages(path: str | Path) -> pd.DataFrame:
    r"""Text of passages: the spans that annotators marked as support in each, joined.

    Parameters
    ----------
    path : str or Path
        A header, then lines of context, query, passage and one or more texts, separated by tabs; a passage can stand on
        several lines, and empty texts are left out.

    Returns
    -------
    DataFrame, columns document, text, source
        One row a passage, in the order of first appearance; the different spans of a passage joined by spaces. The
        source is the collection that the id starts with, one of `SOURCES`.

    Raises
    ------
    InputError
        If a line has too few fields, a query is malformed, or a passage is left without text or of no known collection.

    Notes
    -----
    Data item case_saac, ``dataset/cast/cast.support`` (spans as they stand in the passage). The file ``cast.answer``
    has the same form, but its texts were written by annotators who knew the question.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cast.support"
    ...     _ = path.write_text("#c\t#q\t#p\t#s\n\t31_1\tMARCO_1\tA tumour.\n31_1\t31_2\tMARCO_1\tA cure.\n")
    ...     read_passages(path).to_dict("records")
    [{'document': 'MARCO_1', 'text': 'A tumour. A cure.', 'source': 'MARCO'}]
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

    Parameters
    ----------
    topics : DataFrame
        Of `read_topics`.
    classes : DataFrame
        Of `read_classes`.
    qrels : DataFrame
        Of `read_qrels`; a turn is judged if it has a row.

    Returns
    -------
    DataFrame, columns query, topic, turn, text, class
        Topics and turns in the order of `topics`. Topics without any judged turn are left out.

    Raises
    ------
    ValueError
        If a judged turn has no utterance or no class, or the first turn of a judged topic is not judged (a conversation
        without a first utterance). All are listed.

    Notes
    -----
    permutations, Table 1: its counts follow from the judged turns alone.

    Examples
    --------
    >>> topics = pd.DataFrame({"query": ["1_1", "1_2"], "topic": "1", "turn": [1, 2], "text": ["What?", "Why?"]})
    >>> classes = pd.DataFrame({"query": ["1_1", "1_2"], "text": ["What?", "Why?"], "class": ["SE", "FT"]})
    >>> judged_conversations(topics, classes, pd.DataFrame({"query": ["1_1"], "document": "d", "grade": 1}))
      query topic  turn   text class
    0   1_1     1     1  What?    SE
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
