"""Cocktail: retrieval collections whose passages stand beside the same passages rewritten by a large language model.

A zip archive for each data set (item cocktail), with ``queries.jsonl``, ``corpus/human.jsonl``,
``corpus/llama-2-7b-chat-tmp0.2.jsonl`` and ``qrels/<split>.tsv`` within. Nothing is unpacked to disk.

References
----------
Dai, S. et al. (2024): Cocktail: A Comprehensive Information Retrieval Benchmark with LLM-Generated Documents
Integration, Findings of ACL 2024.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from equipoise.problems import InputError, Problem

LARGEST_MEMBER = 2**30
"""Bytes beyond which a file within the archive is refused, so that a small archive cannot fill the memory."""

_SOURCES = {"human": "corpus/human.jsonl", "model": "corpus/llama-2-7b-chat-tmp0.2.jsonl"}


def _member(path: str | Path, member: str) -> tuple[str, str]:
    """Text of a file within an archive, and its name in messages."""
    name = f"{path}/{member}"
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(member).file_size > LARGEST_MEMBER:
                raise InputError([Problem(name, None, None, f"more than {LARGEST_MEMBER} bytes", "a smaller file")])
            with archive.open(member) as file:
                content = file.read(LARGEST_MEMBER + 1)
    except KeyError:
        raise InputError([Problem(name, None, None, "no such file", "it within the archive")]) from None
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError([Problem(str(path), None, None, str(error), "a readable zip archive")]) from None
    try:
        return content.decode("utf-8-sig"), name
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError([Problem(name, line, None, "bytes that are not UTF-8", "UTF-8 text")]) from None


def _objects(text: str, name: str, problems: list[Problem]) -> Iterator[tuple[int, dict[str, Any]]]:
    """JSON objects with an id and a text, one a line."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            found = error.msg if isinstance(error, json.JSONDecodeError) else "values within values without end"
            problems.append(Problem(name, number, None, found, "a JSON object"))
            continue
        if not isinstance(content, dict):
            problems.append(Problem(name, number, None, type(content).__name__, "a JSON object"))
            continue
        bad = [key for key in ("_id", "text") if not isinstance(content.get(key), str)]
        problems += [Problem(name, number, key, "no text", "a string") for key in bad]
        if not bad:
            yield number, content


def _unique(table: pd.DataFrame, column: str, name: str, problems: list[Problem]) -> pd.DataFrame:
    again = table[table.duplicated(column)]
    problems += [
        Problem(name, int(line), "_id", f"{value} again", "each id once")
        for line, value in zip(again["line"], again[column], strict=True)
    ]
    if table.empty and not problems:
        problems.append(Problem(name, None, None, "an empty file", "one JSON object a line"))
    if problems:
        raise InputError(problems)
    return table.drop(columns="line")


def read_documents(path: str | Path, source: Literal["human", "model"] = "human") -> pd.DataFrame:
    """Read the passages.

    ``path``: the archive. ``source``: Passages as people wrote them, or as the model rewrote them. Returns
    DataFrame, columns document, title, text: In file order. Both sources use the same ids.
    """
    text, name = _member(path, _SOURCES[source])
    problems: list[Problem] = []
    rows = [
        (line, content["_id"], str(content.get("title") or ""), content["text"])
        for line, content in _objects(text, name, problems)
    ]
    table = pd.DataFrame(rows, columns=["line", "document", "title", "text"])
    return _unique(table.astype({"document": "str", "title": "str", "text": "str"}), "document", name, problems)


def read_queries(path: str | Path) -> pd.DataFrame:
    """Read the queries.

    ``path``: the archive. Returns DataFrame, columns query, text, answer: In file order; ``answer`` is the gold
    answer of NQ-UTD, empty in other sets.
    """
    text, name = _member(path, "queries.jsonl")
    problems: list[Problem] = []
    rows = []
    for line, content in _objects(text, name, problems):
        about = content.get("metadata")
        answer = about.get("answer") if isinstance(about, dict) else None
        rows.append((line, content["_id"], content["text"], str(answer or "")))
    table = pd.DataFrame(rows, columns=["line", "query", "text", "answer"])
    return _unique(table.astype({"query": "str", "text": "str", "answer": "str"}), "query", name, problems)


def read_qrels(path: str | Path, split: str = "test") -> pd.DataFrame:
    """Read the relevance judgements.

    ``path``: the archive. ``split``: name of the file below ``qrels/``. Returns DataFrame, columns topic, document,
    level: In file order; NQ-UTD has the levels 0, 1 and 2.
    """
    text, name = _member(path, f"qrels/{split}.tsv")
    problems: list[Problem] = []
    rows: list[tuple[int, str, str, int]] = []
    lines = [line.removesuffix("\r") for line in text.rstrip("\n").split("\n")]
    if lines[0].split("\t") != ["query-id", "corpus-id", "score"]:
        raise InputError(
            [Problem(name, 1, None, repr(lines[0][:60]), "the header query-id, corpus-id, score between tabs")]
        )
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 3:
            problems.append(Problem(name, number, None, f"{len(columns)} columns", "three, between tabs"))
        elif not (columns[2].isascii() and columns[2].isdigit()):
            problems.append(Problem(name, number, "score", repr(columns[2][:60]), "a whole number from 0"))
        else:
            rows.append((number, columns[0], columns[1], int(columns[2])))
    table = pd.DataFrame(rows, columns=["line", "topic", "document", "level"])
    again = table[table.duplicated(["topic", "document"])]
    problems += [
        Problem(name, int(line), "corpus-id", f"{document} again for {topic}", "each document once for a query")
        for line, topic, document in zip(again["line"], again["topic"], again["document"], strict=True)
    ]
    if problems:
        raise InputError(problems)
    return table.drop(columns="line").astype({"topic": "str", "document": "str"})
