"""Cocktail: collections whose passages stand beside the same ones rewritten by a language model.

A zip archive for each data set (item cocktail), with ``queries.jsonl``, ``corpus/human.jsonl``,
``corpus/llama-2-7b-chat-tmp0.2.jsonl`` and ``qrels/<split>.tsv`` within. Nothing is unpacked to
disk.

References
----------
Dai, S. et al. (2024): Cocktail: A Comprehensive Information Retrieval Benchmark with LLM-Generated
Documents Integration, Findings of ACL 2024.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from equipoise.files import decoded
from equipoise.problems import Problems, reason, refused, shown
from equipoise.readers import json_value

LARGEST_MEMBER = 2**30
"""Bytes beyond which a file in an archive is refused: a small archive must not fill the memory."""

_SOURCES = {"human": "corpus/human.jsonl", "model": "corpus/llama-2-7b-chat-tmp0.2.jsonl"}


def _lines(path: str | Path, member: str) -> list[tuple[int, str]]:
    """Numbered lines of a file within an archive, without the blank ones."""
    name = f"{path}/{member}"
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(member).file_size > LARGEST_MEMBER:
                raise refused(name, f"more than {LARGEST_MEMBER} bytes", "a smaller file")
            # the size in the archive's table may be false, so reading stops by itself
            with archive.open(member) as file:
                text = decoded(file.read(LARGEST_MEMBER + 1), name)
    except KeyError:
        raise refused(name, "no such file", "it within the archive") from None
    except (OSError, zipfile.BadZipFile) as error:
        fault = "no zip archive"
        if isinstance(error, OSError):
            fault = reason(error)
        raise refused(path, fault, "a readable zip archive") from None
    lines = enumerate(text.split("\n"), start=1)
    return [(number, line) for number, line in lines if line.strip()]


def _objects(
    path: str | Path, member: str, problems: Problems
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered JSON objects with an id and a text, one a line."""
    for number, line in _lines(path, member):
        try:
            content = json_value(line)
        except ValueError as error:
            problems.add(f"{path}/{member}", number, None, str(error), "a JSON object")
            continue
        if not isinstance(content, dict):
            problems.add(f"{path}/{member}", number, None, shown(content), "a JSON object")
            continue
        lacking = [key for key in ("_id", "text") if not isinstance(content.get(key), str)]
        for key in lacking:
            problems.add(f"{path}/{member}", number, key, "no text", "a string")
        if not lacking:
            yield number, content


def _table(
    rows: list[tuple[Any, ...]], columns: list[str], name: str, problems: Problems
) -> pd.DataFrame:
    """The rows, each with the number of its line in front, as a table of texts; ids come once."""
    table = pd.DataFrame(rows, columns=["line", *columns])
    problems.add_repeats(name, table, columns[:1], "_id", "each id once")
    if table.empty and not problems:
        problems.add(name, None, None, "an empty file", "one JSON object a line")
    problems.refuse()
    return table.drop(columns="line").astype("str")


def read_documents(path: str | Path, source: Literal["human", "model"] = "human") -> pd.DataFrame:
    """Read the passages of an archive, as people wrote them or as the model rewrote them.

    Both have the same ids. Returns columns ``document, title, text`` in file order.
    """
    member = _SOURCES[source]
    problems = Problems()
    rows = []
    for line, content in _objects(path, member, problems):
        title = str(content.get("title") or "")
        rows.append((line, content["_id"], title, content["text"]))
    return _table(rows, ["document", "title", "text"], f"{path}/{member}", problems)


def read_queries(path: str | Path) -> pd.DataFrame:
    """Read the queries of an archive.

    Returns columns ``query, text, answer`` in file order; ``answer`` is the gold answer of NQ-UTD,
    empty in other sets.
    """
    problems = Problems()
    rows = []
    for line, content in _objects(path, "queries.jsonl", problems):
        metadata = content.get("metadata")
        answer = ""
        # only NQ-UTD states answers
        if isinstance(metadata, dict):
            answer = str(metadata.get("answer") or "")
        rows.append((line, content["_id"], content["text"], answer))
    return _table(rows, ["query", "text", "answer"], f"{path}/queries.jsonl", problems)


def read_qrels(path: str | Path, split: str = "test") -> pd.DataFrame:
    """Read the relevance judgements of an archive, below ``qrels/`` by the name of the split.

    Returns columns ``topic, document, level`` in file order; NQ-UTD has the levels 0, 1 and 2.
    """
    name = f"{path}/qrels/{split}.tsv"
    problems = Problems()
    lines = _lines(path, f"qrels/{split}.tsv")
    header = lines[0][1] if lines else ""
    if header.strip().split("\t") != ["query-id", "corpus-id", "score"]:
        columns = "the header query-id, corpus-id, score between tabs"
        problems.add(name, 1, None, shown(header), columns)
        problems.refuse()

    rows = []
    for number, line in lines[1:]:
        fields = line.removesuffix("\r").split("\t")
        if len(fields) != 3:
            problems.add(name, number, None, f"{len(fields)} columns", "three, between tabs")
            continue
        topic, document, level = fields
        # str.isdigit alone takes digits of other scripts too
        if not (level.isascii() and level.isdigit()):
            problems.add(name, number, "score", shown(level), "a whole number from 0")
            continue
        rows.append((number, topic, document, int(level)))
    table = pd.DataFrame(rows, columns=["line", "topic", "document", "level"])
    each_once = "each document once for a query"
    problems.add_repeats(name, table, ["document", "topic"], "corpus-id", each_once)
    problems.refuse()
    return table.drop(columns="line").astype({"topic": "str", "document": "str"})
