"""Answers that cite their sources, in the files of TREC and of ALCE; with judgements they become a table of answers.

*TREC*: RAG 2024 and 2025, RAGTIME, DRAGUN, iKAT 2025: an object with ``references`` (ids of the
documents, or ids with scores), and ``answer`` or ``responses``, a list of ``text`` and
``citations``: places in the references from 0, ids, or ids with scores. *ALCE*: ``question``,
``docs`` and ``output`` (or ``answer``, in a worked example), within ``data`` or ``demos``; ``[1]``
is the first of ``docs``, which has the id 1 unless it names one; the question's id is ``sample_id``
or ``id``, or its words with ``_`` between. Which documents are relevant qrels say, or ALCE's
``answers_found``.

References
----------
Gao et al. (2023), ALCE; the guidelines of the TREC RAG tracks 2024 and 2025.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.answer_modes import mode_name
from equipoise.files import parts, stem
from equipoise.loaders.answers import answer_table
from equipoise.loaders.objects import Item, read_items
from equipoise.loaders.trec import read_qrels
from equipoise.problems import Note, Problems, listed, shown

_PLAIN = str.maketrans("[]", "()")
_IDS = ("topic_id", "narrative_id", "turn_id", "request_id", "query_id", "qid", "id")


def _parts(content: dict[str, Any]) -> Any:
    """The sentences of a TREC answer, with their citations."""
    return next(
        (content[key] for key in ("answer", "responses") if isinstance(content.get(key), list)),
        None,
    )


def _form(content: dict[str, Any]) -> str:
    """The format of answers that an object has the marks of, or that of this library."""
    if isinstance(content.get("docs"), list) or {"data", "demos"} & content.keys():
        return "alce"
    return "trec" if _parts(content) is not None or "references" in content else "answers"


def _whole(value: Any) -> Any:
    """A whole number that JSON has as 12.0, as one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _trec(item: Item, problems: Problems) -> list[dict[str, Any]]:
    """Question, text with its citations in brackets, and the ids of what it may cite."""
    about = item.content.get("metadata")
    fields = {**item.content, **(about if isinstance(about, dict) else {})}
    question = next(
        (_whole(fields[key]) for key in _IDS if isinstance(fields.get(key), (str, int, float))),
        None,
    )
    if question is None:
        item.wrong(problems, "", f"no {', '.join(_IDS[:3])}", "the id of the question")
    if _parts(item.content) is None:
        item.wrong(
            problems,
            "answer",
            shown(item.content.get("answer")),
            "a list of objects with text and citations",
        )
    parts = []
    for number, part in enumerate(_parts(item.content) or (), start=1):
        cited = (part.get("citations") or []) if isinstance(part, dict) else None
        if isinstance(cited, (list, dict)) and isinstance(part.get("text"), str):
            parts.append((part["text"].translate(_PLAIN), [*map(_whole, cited)]))
        else:
            item.wrong(
                problems, f"sentence {number}", shown(part), "an object with text and citations"
            )
    ids = item.content.get("references") or [
        one for _, cited in parts for one in cited if isinstance(one, str)
    ]
    places = {one: place for place, one in enumerate(dict.fromkeys(map(str, ids)), start=1)}

    def place(one: Any) -> int:
        at = int(one) if isinstance(one, str) and one not in places and one.isdecimal() else one
        return at + 1 if type(at) is int else places.get(str(at), len(places) + 1)

    said = [text + "".join(f" [{place(one)}]" for one in cited) for text, cited in parts]
    row = {"question": str(question), "answer": " ".join(said), "shown": tuple(places)}
    return [row | ({"run_id": str(fields["run_id"])} if "run_id" in fields else {})]


def _alce(item: Item, problems: Problems) -> list[dict[str, Any]]:
    content = item.content
    inner = next(
        (content[key] for key in ("data", "demos") if isinstance(content.get(key), list)), None
    )
    if inner is not None:
        sub = [
            Item(one if isinstance(one, dict) else {}, item.path, None, n)
            for n, one in enumerate(inner, start=1)
        ]
        return [row for one in sub for row in _alce(one, problems)]
    texts = content.get("output", content.get("answer"))
    docs: Any = content.get("docs")
    question = content.get("sample_id", content.get("id", content.get("question")))
    several = isinstance(texts, list)
    texts = texts if isinstance(texts, list) else [texts]
    sound = (
        isinstance(docs, list)
        and all(isinstance(one, dict) for one in docs)
        and isinstance(question, (str, int))
    )
    if not sound or not all(isinstance(text, str) for text in texts):
        item.wrong(
            problems,
            "",
            f"an object with {listed(content) or 'nothing'}",
            "question, docs and output, of ALCE",
        )
        return []
    ids = tuple(str(one.get("id", place)) for place, one in enumerate(docs, start=1))
    row: dict[str, Any] = {"question": "_".join(str(question).split()), "shown": ids}
    if any("answers_found" in one for one in docs):
        row["held"] = tuple(
            place for place, one in enumerate(docs, start=1) if any(one.get("answers_found") or ())
        )
    return [
        row | {"answer": text} | ({"sample": n} if several else {})
        for n, text in enumerate(texts, start=1)
    ]


def _judged(table: pd.DataFrame, qrels: pd.DataFrame | None, path: str | Path) -> pd.DataFrame:
    """The answers to questions of which a relevant document was shown, with its places."""
    if qrels is None and "held" not in table.columns:
        raise ValueError(f"{path} does not say which documents are relevant; wanted --qrels")
    if qrels is None:
        table = table.assign(
            relevant=[one if isinstance(one, tuple) else () for one in table["held"]]
        )
        warnings.warn(
            "relevant are the documents in which ALCE found a gold answer: no --qrels",
            Note,
            stacklevel=4,
        )
    else:
        good = set(
            qrels.loc[qrels["level"] > 0, ["topic", "document"]].itertuples(index=False, name=None)
        )
        table = table.assign(
            relevant=[
                tuple(place for place, one in enumerate(ids, start=1) if (question, one) in good)
                for question, ids in zip(table["question"], table["shown"], strict=True)
            ]
        )
    without = table["relevant"].map(len) == 0
    if without.all():
        ids = table["shown"].iloc[0][:3]
        found = f"no relevant document behind any answer of {path}; it has questions {listed(table['question'], 3)}"
        of = (
            ""
            if qrels is None
            else f"; the qrels have {listed(qrels['topic'].unique(), 3)}, {listed(qrels['document'], 3)}"
        )
        raise ValueError(f"{found} and documents {listed(ids)}{of}")
    if without.any():
        names = listed(table.loc[without, "question"], 3)
        said = f"{int(without.sum())} of {len(table)} answers are left out: no relevant document was shown"
        warnings.warn(f"{said} ({names})", Note, stacklevel=4)
    return table[~without].drop(columns="held", errors="ignore")


def read_answer_files(
    files: Sequence[str], qrels: str | Path | None = None, authors: tuple[str, str] = ("", "")
) -> pd.DataFrame:
    """Answers of one or more files, as `equipoise.loaders.answers.read_answers` gives them, in one table.

    ``files``: paths; that of a TREC or ALCE file may begin with the mode of its answers
    (``Informed=run.jsonl``), else it is Vanilla. ``authors``: of the relevant and of the other
    documents, for such files.
    """
    if not all(authors) and "CF-informed" in {_split(name)[0] for name in files}:
        raise ValueError(
            "CAB needs the authors of the relevant and of the other documents; wanted --authors"
        )
    judged = None if qrels is None else read_qrels(qrels)
    tables = []
    for mode, path in answer_files(files):
        items = read_items(path, problems := Problems())
        form = _form(items[0].content) if items else "answers"
        if form == "answers":
            tables.append(answer_table(items, problems))
            continue
        rows = [
            row for item in items for row in (_alce if form == "alce" else _trec)(item, problems)
        ]
        problems.refuse()
        table = _judged(pd.DataFrame(rows), judged, path).assign(
            mode=mode_name(mode), citations=None
        )
        first, second = (author or "unnamed" for author in authors)
        table = table.assign(
            relevant_author=first, nonrelevant_author=second, gold=[()] * len(table)
        )
        tables.append(table.assign(documents=table["shown"].map(len)))
    return pd.concat(tables, ignore_index=True)


def _split(name: str) -> tuple[str, str]:
    """Mode and path of an argument."""
    mode, equals, path = str(name).partition("=")
    try:
        mode, path = (mode_name(mode), path) if equals and path else ("Vanilla", str(name))
    except ValueError:
        mode, path = "Vanilla", str(name)
    return mode, "/dev/stdin" if path == "-" else path


def answer_files(files: Sequence[str]) -> list[tuple[str, Path]]:
    """Mode and path of every file among the arguments, a folder being all its files."""
    split = ((mode, Path(path)) for mode, path in map(_split, files))
    return [
        (mode, path / name)
        for mode, path in split
        for name in (parts(path, (".jsonl", ".json", ".parquet")) if path.is_dir() else [""])
    ]


def paths(files: Sequence[str]) -> list[str]:
    """The paths among the arguments of `read_answer_files`."""
    return [_split(name)[1] for name in files]


def run_name(files: Sequence[str]) -> str:
    """What the answers of these files are called together."""
    return "+".join(dict.fromkeys(map(stem, paths(files))))
