"""Topics of conversational tracks: scripts of utterances, read, and written in the same form.

CAsT and iKAT have a JSON list of topics, each with a ``number`` and its turns: ``turn``, each with
``number`` and ``raw_utterance`` (CAsT), or ``turns``, each with ``turn_id`` and ``utterance``
(iKAT). Anything else is read as lines ``id<TAB>text``, the id being topic_turn, such as 31_4.
Further keys are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.files import read_json, read_text
from equipoise.loaders.objects import fields_of
from equipoise.problems import Problems, shown

# What holds the turns, and in each the number and the text.
_KEYS = {"turn": ("number", "raw_utterance"), "turns": ("turn_id", "utterance")}
_ID = re.compile(r"(\S+)_([^\s_]+)")


@dataclass(frozen=True, eq=False)
class Topics:
    """The utterances of a topics file, and what it says of them besides.

    ``utterances``: columns query (topic_turn), topic, turn (from 1, in the order of the script),
    text. ``sources``: by query, topic and turn as the file has them; none of a file of lines.
    """

    utterances: pd.DataFrame
    sources: dict[str, tuple[dict[str, Any], dict[str, Any]]]

    @property
    def ending(self) -> str:
        """Of a file of these topics."""
        return ".json" if self.sources else ".tsv"

    def conversation(self, name: str, queries: Sequence[str], texts: Sequence[str]) -> str:
        """Another conversation of utterances of one topic, as such a file has it, on own lines."""
        if not self.sources:
            lines = [f"{name}_{place}\t{text}\n" for place, text in enumerate(texts, start=1)]
            return "".join(lines)
        topic, _ = self.sources[queries[0]]
        turns_key = next(key for key in _KEYS if key in topic)
        number_key, _ = _KEYS[turns_key]
        turns = []
        for place, query in enumerate(queries, start=1):
            _, turn = self.sources[query]
            turns.append(turn | {number_key: place})
        return json.dumps(topic | {"number": name, turns_key: turns}, ensure_ascii=False)


@dataclass
class _Utterances:
    """The utterances of a file as they are read, and what is wrong with others."""

    path: str | Path
    problems: Problems
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add_topic(self, place: int, topic: object) -> None:
        """Take in the turns of a topic of JSON; ``place`` is its number in the list, from 1."""
        content = fields_of(topic)
        where = f"topic at place {place}"
        number = self._part_of_id(content, "number", where)
        # Of CAsT or iKAT, by what holds the turns.
        turns_key = next((key for key in _KEYS if isinstance(content.get(key), list)), None)
        if turns_key is None:
            expected = "a list turn (CAsT) or turns (iKAT)"
            self.problems.add(self.path, None, where, "no turns", expected)
            return
        number_key, text_key = _KEYS[turns_key]
        for turn_place, turn in enumerate(content[turns_key], start=1):
            where = f"topic {number}, turn at place {turn_place}"
            turn_content = fields_of(turn)
            turn_number = self._part_of_id(turn_content, number_key, where)
            text = self._text(turn_content, text_key, where)
            if None in (number, turn_number, text):
                continue
            row = {"place": where, "query": f"{number}_{turn_number}", "topic": str(number)}
            self.rows.append(row | {"text": text, "source": (topic, turn)})

    def _part_of_id(self, content: dict[str, Any], key: str, where: str) -> int | str | None:
        value = content.get(key)
        if type(value) is int or (isinstance(value, str) and re.fullmatch(r"\S+", value)):
            return value
        self._wrong(value, f"{where}, {key}", "a number, or a text without blanks")
        return None

    def _text(self, content: dict[str, Any], key: str, where: str) -> str | None:
        value = content.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        self._wrong(value, f"{where}, {key}", "a text")
        return None

    def _wrong(self, value: object, where: str, expected: str) -> None:
        problem = "nothing" if value is None else f"{type(value).__name__} {shown(value)}"
        self.problems.add(self.path, None, where, problem, expected)

    def add_line(self, number: int, line: str) -> None:
        """Take in a line of an id, a tab and an utterance."""
        if not line.strip():
            return
        # By tabs alone: an utterance has commas and quotes.
        query, *fields = [part.strip() for part in line.split("\t")]
        match = _ID.fullmatch(query)
        if len(fields) != 1 or not fields[0]:
            problem, expected = f"{len(fields) + 1} fields", "two: id, a tab, the utterance"
            self.problems.add(self.path, number, None, problem, expected)
        elif match is None:
            expected = "a topic and a turn, such as 31_4"
            self.problems.add(self.path, number, "id", shown(query), expected)
        else:
            row = {"place": number, "query": query, "topic": match[1], "text": fields[0]}
            self.rows.append(row | {"source": None})


def read_topics(path: str | Path) -> Topics:
    """Read the topics of a track: CAsT or iKAT JSON, or lines of id and utterance."""
    text, problems = read_text(path), Problems()
    is_json = text.lstrip().startswith(("[", "{"))
    utterances = _Utterances(path, problems)
    if is_json:
        content = read_json(path, list, "a JSON list of topics", text)
        for place, topic in enumerate(content, start=1):
            utterances.add_topic(place, topic)
    else:
        for number, line in enumerate(text.split("\n"), start=1):
            utterances.add_line(number, line)

    table = pd.DataFrame(utterances.rows, columns=["place", "query", "topic", "text", "source"])
    for row in table[table["query"].duplicated()].itertuples():
        problem, expected = f"{row.query} again", "each turn once"
        if is_json:
            problems.add(path, None, row.place, problem, expected)
        else:
            problems.add(path, row.place, "id", problem, expected)
    if table.empty and not problems:
        problems.add(path, None, None, "topics without turns", "at least one utterance")
    problems.refuse()
    table["turn"] = table.groupby("topic", sort=False).cumcount() + 1
    sources = {}
    if is_json:
        sources = dict(zip(table["query"], table["source"], strict=True))
    return Topics(table[["query", "topic", "turn", "text"]], sources)
