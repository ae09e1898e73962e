"""Answers that cite their sources, in the files of TREC and of ALCE, which judgements complete.

*TREC*: RAG 2024 and 2025, RAGTIME, DRAGUN, iKAT 2025: an object with ``references`` (ids of the
documents, or ids with scores), and ``answer`` or ``responses``, a list of ``text`` and
``citations``: places in the references from 0, ids, or ids with scores. *iKAT 2024*: a run with
``turns``, the best response of each with ``passage_provenance``: it cites those ``used``. *ALCE*:
``question``, ``docs`` and ``output`` (or ``answer``, in a worked example), within ``data`` or
``demos``; ``[1]`` is the first of ``docs``, which has the id 1 unless it names one; the question's
id is ``sample_id`` or ``id``, or its words with ``_`` between. Which documents are relevant qrels
say, or ALCE's ``answers_found``.

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
from equipoise.loaders.objects import Item, fields_of, first_value, read_items
from equipoise.loaders.trec import read_qrels
from equipoise.problems import Note, Problems, listed, shown
from equipoise_cli.loaders.chats import KNOWN, ikat_responses

_BRACKETS_TO_ROUND = str.maketrans("[]", "()")
_QUESTION_KEYS = ("topic_id", "narrative_id", "turn_id", "request_id", "query_id", "qid", "id")


# --- TREC -----------------------------------------------------------------------------------------


def _sentences_of(content: dict[str, Any]) -> list[Any] | None:
    """The sentences of a TREC answer, with their citations."""
    sentences: list[Any] | None = first_value(content, ("answer", "responses"), list)
    return sentences


def _integer(value: Any) -> Any:
    """A whole number that JSON has as 12.0, as one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_sentences(item: Item, problems: Problems) -> list[tuple[str, list[Any]]]:
    """The sentences of an answer, each its text and what it cites."""
    sentences = []
    for number, entry in enumerate(_sentences_of(item.content) or (), start=1):
        fields = fields_of(entry)
        text, cited = fields.get("text"), fields.get("citations") or []
        if isinstance(text, str) and isinstance(cited, (list, dict)):
            # Its own brackets would be read as citations.
            text = text.translate(_BRACKETS_TO_ROUND)
            sentences.append((text, [_integer(citation) for citation in cited]))
        else:
            expected = "an object with text and citations"
            item.wrong(problems, f"sentence {number}", shown(entry), expected)
    return sentences


def _number_of_citation(citation: Any, number_of: dict[str, int]) -> int:
    """The number, from 1, of what is cited: a place in the references from 0, or an id.

    An id that is not among the references is one behind the last.
    """
    if isinstance(citation, str) and citation not in number_of and citation.isdecimal():
        citation = int(citation)
    if type(citation) is int:
        return citation + 1
    return number_of.get(str(citation), len(number_of) + 1)


def _read_trec(item: Item, problems: Problems) -> list[dict[str, Any]]:
    """Question, text with its citations in brackets, and the ids of what it may cite."""
    fields = {**item.content, **fields_of(item.content.get("metadata"))}
    question = _integer(first_value(fields, _QUESTION_KEYS, (str, int, float)))
    if question is None:
        item.wrong(problems, "", f"no {', '.join(_QUESTION_KEYS[:3])}", "the id of the question")
    if _sentences_of(item.content) is None:
        problem, expected = (
            shown(item.content.get("answer")),
            "a list of objects with text and citations",
        )
        item.wrong(problems, "answer", problem, expected)
    sentences = _read_sentences(item, problems)
    ids = item.content.get("references")
    if not ids:
        ids = []
        for _, cited in sentences:
            ids += [citation for citation in cited if isinstance(citation, str)]
    document_ids = dict.fromkeys(map(str, ids))
    number_of = {document: number for number, document in enumerate(document_ids, start=1)}
    texts = []
    for text, cited in sentences:
        numbers = [_number_of_citation(citation, number_of) for citation in cited]
        texts.append(text + "".join(f" [{number}]" for number in numbers))
    row = {"question": str(question), "answer": " ".join(texts), "shown": tuple(number_of)}
    if "run_id" in fields:
        row["run_id"] = str(fields["run_id"])
    return [row]


def _turns_of_ikat(item: Item, problems: Problems) -> list[Item]:
    """The turns of a run of iKAT 2024, each as the other tracks have an answer."""
    turns = []
    for number, turn in enumerate(item.content["turns"], start=1):
        turn_id = fields_of(turn).get("turn_id")
        place = f"turn {shown(turn_id)}"
        passages: dict[str, Any] = {}  # each once, in their order, and whether it was used
        texts = []
        for response in ikat_responses(item, place, fields_of(turn).get("responses"), problems):
            texts.append(response["text"])
            for passage in response.get("passage_provenance") or ():
                name = fields_of(passage).get("id")
                if not isinstance(name, str):
                    expected = "objects with the id of a passage"
                    item.wrong(problems, f"passage_provenance of {place}", shown(passage), expected)
                passages[str(name)] = fields_of(passage).get("used")
        # Without saying what was used, all passages are behind the text.
        cited = [name for name, is_used in passages.items() if is_used in (True, None)]
        content = {
            "turn_id": turn_id,
            "run_id": item.content.get("run_name", ""),
            "references": list(passages),
            "answer": [{"text": "\n".join(texts), "citations": cited}],
        }
        turns.append(Item(content, item.path, item.line, number))
    return turns


# --- ALCE -----------------------------------------------------------------------------------------


def _read_alce(item: Item, problems: Problems) -> list[dict[str, Any]]:
    """Rows of an object of ALCE: an answer, several to one question, or a file of them."""
    content = item.content
    entries = first_value(content, ("data", "demos"), list)
    if entries is not None:
        rows = []
        for number, entry in enumerate(entries, start=1):
            rows += _read_alce(Item(fields_of(entry), item.path, None, number), problems)
        return rows
    output = content.get("output", content.get("answer"))
    documents: Any = content.get("docs")
    question = content.get("sample_id", content.get("id", content.get("question")))
    answers = output if isinstance(output, list) else [output]
    has_documents = isinstance(documents, list) and all(
        isinstance(document, dict) for document in documents
    )
    has_answers = all(isinstance(answer, str) for answer in answers)
    if not has_documents or not has_answers or not isinstance(question, (str, int)):
        problem = f"an object with {listed(content) or 'nothing'}"
        item.wrong(problems, "", problem, "question, docs and output, of ALCE")
        return []
    ids, relevant = [], []
    for number, document in enumerate(documents, start=1):
        ids.append(str(document.get("id", number)))
        if any(document.get("answers_found") or ()):
            relevant.append(number)
    row: dict[str, Any] = {"question": "_".join(str(question).split()), "shown": tuple(ids)}
    if any("answers_found" in document for document in documents):
        row["with_answer"] = tuple(relevant)
    rows = [row | {"answer": answer} for answer in answers]
    if isinstance(output, list):
        for number, row in enumerate(rows, start=1):
            row["sample"] = number
    return rows


# --- files ----------------------------------------------------------------------------------------


def _form(content: dict[str, Any]) -> str:
    """The format of answers that an object has the marks of, or that of this library."""
    if isinstance(content.get("docs"), list) or not content.keys().isdisjoint({"data", "demos"}):
        return "alce"
    if _sentences_of(content) is not None or "references" in content:
        return "trec"
    if KNOWN["ikat-run"](content):
        return "ikat"
    return "answers"


def _relevant_by_qrels(table: pd.DataFrame, qrels: pd.DataFrame) -> list[tuple[int, ...]]:
    """Numbers of the relevant documents among those shown, for each answer."""
    relevant_rows = qrels.loc[qrels["level"] > 0, ["topic", "document"]]
    relevant_pairs = set(relevant_rows.itertuples(index=False, name=None))
    numbers_of_answers = []
    for question, ids in zip(table["question"], table["shown"], strict=True):
        numbers = []
        for number, document in enumerate(ids, start=1):
            if (question, document) in relevant_pairs:
                numbers.append(number)
        numbers_of_answers.append(tuple(numbers))
    return numbers_of_answers


def _judged(table: pd.DataFrame, qrels: pd.DataFrame | None, path: str | Path) -> pd.DataFrame:
    """The answers to questions of which a relevant document was shown, with its places."""
    if qrels is not None:
        relevant = _relevant_by_qrels(table, qrels)
    elif "with_answer" in table.columns:
        # An answer whose documents lack it has NaN there.
        relevant = [
            numbers if isinstance(numbers, tuple) else () for numbers in table["with_answer"]
        ]
        note = "relevant are the documents in which ALCE found a gold answer: no --qrels"
        warnings.warn(note, Note, stacklevel=4)
    else:
        raise ValueError(f"{path} does not say which documents are relevant; wanted --qrels")
    table = table.assign(relevant=relevant)
    has_none = table["relevant"].map(len) == 0
    if has_none.all():
        questions, ids = listed(table["question"], 3), listed(table["shown"].iloc[0][:3])
        message = (
            f"no relevant document behind any answer of {path}; "
            f"it has questions {questions} and documents {ids}"
        )
        if qrels is not None:
            topics, documents = listed(qrels["topic"].unique(), 3), listed(qrels["document"], 3)
            message += f"; the qrels have {topics}, {documents}"
        raise ValueError(message)
    if has_none.any():
        count = f"{int(has_none.sum())} of {len(table)} answers"
        names = listed(table.loc[has_none, "question"], 3)
        note = f"{count} are left out: no relevant document was shown ({names})"
        warnings.warn(note, Note, stacklevel=4)
    return table[~has_none].drop(columns="with_answer", errors="ignore")


def _read_file(
    path: Path, mode: str, qrels: pd.DataFrame | None, authors: tuple[str, str]
) -> pd.DataFrame:
    """The answers of one file; mode and authors are those of a file of TREC or ALCE."""
    problems = Problems()
    items = read_items(path, problems)
    form = _form(items[0].content) if items else "answers"
    if form == "answers":
        return answer_table(items, problems)
    if form == "ikat":
        items = [turn for item in items for turn in _turns_of_ikat(item, problems)]
    read = _read_alce if form == "alce" else _read_trec
    rows = []
    for item in items:
        rows += read(item, problems)
    problems.refuse()
    table = _judged(pd.DataFrame(rows), qrels, path)
    relevant_author, nonrelevant_author = authors
    return table.assign(
        mode=mode_name(mode),
        citations=None,
        relevant_author=relevant_author or "unnamed",
        nonrelevant_author=nonrelevant_author or "unnamed",
        gold=[()] * len(table),
        documents=table["shown"].map(len),
    )


def read_answer_files(
    files: Sequence[str], qrels: str | Path | None = None, authors: tuple[str, str] = ("", "")
) -> pd.DataFrame:
    """Answers of one or more files, as `equipoise.loaders.answers.read_answers` has them, together.

    ``files``: paths; that of a TREC or ALCE file may begin with the mode of its answers
    (``Informed=run.jsonl``), else it is Vanilla. ``authors``: of the relevant and of the other
    documents, for such files.
    """
    modes = [_mode_and_path(name)[0] for name in files]
    if "CF-informed" in modes and not all(authors):
        raise ValueError(
            "CAB needs the authors of the relevant and of the other documents; wanted --authors"
        )
    judgements = None if qrels is None else read_qrels(qrels)
    tables = []
    for mode, path in answer_files(files):
        tables.append(_read_file(path, mode, judgements, authors))
    return pd.concat(tables, ignore_index=True)


def _mode_and_path(argument: str) -> tuple[str, str]:
    """Mode and path of an argument."""
    name, equals, path = str(argument).partition("=")
    mode = "Vanilla"
    try:
        if equals and path:
            mode = mode_name(name)
        else:
            path = str(argument)
    except ValueError:  # no mode before it: the sign is one of the path
        path = str(argument)
    return mode, "/dev/stdin" if path == "-" else path


def answer_files(files: Sequence[str]) -> list[tuple[str, Path]]:
    """Mode and path of every file among the arguments, a folder being all its files."""
    modes_and_paths = []
    for argument in files:
        mode, name = _mode_and_path(argument)
        path = Path(name)
        if not path.is_dir():
            modes_and_paths.append((mode, path))
            continue
        for file in parts(path, (".jsonl", ".json", ".parquet")):
            modes_and_paths.append((mode, path / file))
    return modes_and_paths


def paths(files: Sequence[str]) -> list[str]:
    """The paths among the arguments of `read_answer_files`."""
    return [_mode_and_path(argument)[1] for argument in files]


def run_name(files: Sequence[str]) -> str:
    """What the answers of these files are called together."""
    return "+".join(dict.fromkeys(map(stem, paths(files))))
