"""Topics of conversational tracks: scripts of utterances.

CAsT and iKAT have a JSON list of topics, each with a ``number`` and its turns: ``turn``, each with
``number`` and ``raw_utterance`` (CAsT), or ``turns``, each with ``turn_id`` and ``utterance``
(iKAT). Anything else is read as lines ``id<TAB>text``, the id being topic_turn, such as 31_4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from equipoise.errors import excerpt, input_error
from equipoise.readers import json_value, read_text

# What contains the turns, and in each the number and the text.
_KEYS = {"turn": ("number", "raw_utterance"), "turns": ("turn_id", "utterance")}
_ID = re.compile(r"(\S+)_([^\s_]+)")


def read_topics(path: str | Path) -> pd.DataFrame:
    """Read the topics of a track: CAsT or iKAT JSON, or lines of id and utterance.

    Returns columns query (topic_turn), topic, turn (from 1, in the order of the script), text.
    """
    text = read_text(path)
    is_json = text.lstrip().startswith(("[", "{"))
    rows = list(_json_rows(text, path) if is_json else _line_rows(text, path))
    table = pd.DataFrame(rows, columns=["place", "query", "topic", "text"])
    if table.empty:
        raise input_error(path, "topics with at least one utterance", "none")
    repeated = table[table["query"].duplicated()]
    if len(repeated):
        place, query = repeated.iloc[0][["place", "query"]]
        raise input_error(path, f"{place}: each turn must be given once", excerpt(query))
    table["turn"] = table.groupby("topic", sort=False).cumcount() + 1
    return table[["query", "topic", "turn", "text"]]


def _json_rows(text: str, path: str | Path) -> Iterator[tuple[str, str, str, str]]:
    try:
        topics = json_value(text)
    except ValueError as error:
        raise input_error(path, "a JSON list of topics", str(error)) from None
    if not isinstance(topics, list) or not topics:
        raise input_error(path, "a JSON list of topics", excerpt(topics))
    for place, topic in enumerate(topics, start=1):
        keys = [
            key for key in _KEYS if isinstance(topic, dict) and isinstance(topic.get(key), list)
        ]
        if not keys:
            wanted = f"topic {place} must have a list turn (CAsT) or turns (iKAT)"
            raise input_error(path, wanted, excerpt(topic))
        number_key, text_key = _KEYS[keys[0]]
        for turn_place, turn in enumerate(topic[keys[0]], start=1):
            where = f"topic {place}, turn {turn_place}"
            fields = turn if isinstance(turn, dict) else {}
            numbers = [topic.get("number"), fields.get(number_key)]
            words = [str(number) for number in numbers if isinstance(number, (int, str))]
            utterance = fields.get(text_key)
            if len(words) < 2 or any(len(word.split()) != 1 for word in words):
                wanted = f"{where} must have numbers, or words, as number and {number_key}"
                raise input_error(path, wanted, excerpt(numbers))
            if not isinstance(utterance, str) or not utterance.strip():
                raise input_error(
                    path, f"{where} must have a text as {text_key}", excerpt(utterance)
                )
            yield where, "_".join(words), words[0], utterance.strip()


def _line_rows(text: str, path: str | Path) -> Iterator[tuple[str, str, str, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        # By tabs alone: an utterance has commas and quotes.
        fields = [field.strip() for field in line.split("\t")]
        match = _ID.fullmatch(fields[0])
        if match is None or len(fields) != 2 or not fields[1]:
            wanted = "an id such as 31_4, a tab, the utterance"
            raise input_error(path, wanted, excerpt(line), number)
        yield f"line {number}", fields[0], match[1], fields[1]
