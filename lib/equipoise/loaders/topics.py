"""Topics of conversational tracks: scripts of utterances, read from the files of the tracks, and written in their form.

CAsT and iKAT have a JSON list of topics, each with a ``number`` and its turns: ``turn``, each with
``number`` and ``raw_utterance`` (CAsT), or ``turns``, each with ``turn_id`` and ``utterance``
(iKAT). Anything else is read as lines ``id<TAB>text``, the id being topic_turn, such as 31_4.
Further keys are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.files import read_json, read_text
from equipoise.problems import Problems, shown

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
        """Another conversation of utterances of one topic, as a topic of such a file, on lines of its own."""
        if not self.sources:
            return "".join(f"{name}_{place}\t{text}\n" for place, text in enumerate(texts, 1))
        topic = self.sources[queries[0]][0]
        key = next(key for key in _KEYS if key in topic)
        turns = [
            self.sources[query][1] | {_KEYS[key][0]: place}
            for place, query in enumerate(queries, 1)
        ]
        return json.dumps(topic | {"number": name, key: turns}, ensure_ascii=False)


def _whole(value: object) -> bool:
    """Whether a value can be part of an id: a whole number, or a text without blanks."""
    return type(value) is int or (
        isinstance(value, str) and re.fullmatch(r"\S+", value) is not None
    )


def _json_rows(path: str | Path, content: list[Any], problems: Problems) -> list[tuple[Any, ...]]:
    rows = []

    def field(owner: object, key: str, where: str) -> Any:
        value = owner.get(key) if isinstance(owner, dict) else None
        text = key in ("raw_utterance", "utterance")
        if (isinstance(value, str) and bool(value.strip())) if text else _whole(value):
            return str(value).strip() if text else value
        found = "nothing" if value is None else f"{type(value).__name__} {shown(value)}"
        problems.add(
            path,
            None,
            f"{where}, {key}",
            found,
            "a text" if text else "a number, or a text without blanks",
        )
        return None

    for place, topic in enumerate(content, 1):
        number = field(topic, "number", f"topic at place {place}")
        key = next(
            (key for key in _KEYS if isinstance(topic, dict) and isinstance(topic.get(key), list)),
            None,
        )
        if key is None:
            problems.add(
                path,
                None,
                f"topic at place {place}",
                "no turns",
                "a list turn (CAsT) or turns (iKAT)",
            )
            continue
        for turn_place, turn in enumerate(topic[key], 1):
            where = f"topic {number}, turn at place {turn_place}"
            turn_number, text = (field(turn, name, where) for name in _KEYS[key])
            if None not in (number, turn_number, text):
                rows.append((where, f"{number}_{turn_number}", str(number), text, (topic, turn)))
    return rows


def _line_rows(path: str | Path, text: str, problems: Problems) -> list[tuple[Any, ...]]:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        query, *fields = (field.strip() for field in line.split("\t"))
        if not line.strip():
            continue
        parts = _ID.fullmatch(query)
        if len(fields) != 1 or not fields[0]:
            problems.add(
                path, number, None, f"{len(fields) + 1} fields", "two: id, a tab, the utterance"
            )
        elif parts is None:
            problems.add(path, number, "id", shown(query), "a topic and a turn, such as 31_4")
        else:
            rows.append((number, query, parts[1], fields[0], None))
    return rows


def read_topics(path: str | Path) -> Topics:
    """Read the topics of a conversational track, CAsT or iKAT JSON, or lines of id and utterance."""
    text, problems = read_text(path), Problems()
    is_json = text.lstrip().startswith(("[", "{"))
    if is_json:
        rows = _json_rows(path, read_json(path, list, "a JSON list of topics", text), problems)
    else:
        rows = _line_rows(path, text, problems)
    table = pd.DataFrame(rows, columns=["place", "query", "topic", "text", "source"])
    for place, query in table.loc[table["query"].duplicated(), ["place", "query"]].itertuples(
        index=False
    ):
        line, column = (None, place) if is_json else (place, "id")
        problems.add(path, line, column, f"{query} again", "each turn once")
    if table.empty and not problems:
        problems.add(path, None, None, "topics without turns", "at least one utterance")
    problems.refuse()
    table["turn"] = table.groupby("topic", sort=False).cumcount() + 1
    sources = dict(zip(table["query"], table["source"], strict=True)) if is_json else {}
    return Topics(table[["query", "topic", "turn", "text"]], sources)
