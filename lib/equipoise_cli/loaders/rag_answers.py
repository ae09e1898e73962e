"""Answers that cite their sources, in files of TREC, ALCE and frameworks, completed by judgements.

*TREC*: RAG 2024 and 2025, RAGTIME, DRAGUN, iKAT 2025: an object with ``references`` (ids of the
documents, or ids with scores), and ``answer`` or ``responses``, a list of ``text`` and
``citations``: places in the references from 0, ids, or ids with scores. *iKAT 2024*: a run with
``turns``, the best response of each with ``passage_provenance``: it cites those ``used``. *ALCE*:
``question``, ``docs`` and ``output`` (or ``answer``, in a worked example), within ``data`` or
``demos``; ``[1]`` is the first of ``docs``, which has the id 1 unless it names one; the question's
id is ``sample_id`` or ``id``, or its words with ``_`` between. *Frameworks*:
`equipoise_cli.loaders.answer_frameworks`. Which documents are relevant qrels say, or ALCE's
``answers_found``, or the file of a framework.

References
----------
Gao et al. (2023), ALCE; the guidelines of the TREC RAG tracks 2024 and 2025.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.answer_modes import mode_name
from equipoise.files import parts, stem
from equipoise.loaders.answers import answer_table
from equipoise.loaders.documents import MOST_PROBLEMS
from equipoise.loaders.objects import Item, fields_of, first_value, read_items
from equipoise.loaders.trec import read_qrels
from equipoise.problems import InputError, Note, Problem, Problems, listed, shown
from equipoise_cli.loaders.answer_frameworks import (
    Framework,
    framework_of,
    mapped,
    read_fields,
    read_framework,
)
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
    row["document_fields"] = documents
    if any("answers_found" in document for document in documents):
        row["with_answer"] = tuple(relevant)
    rows = [row | {"answer": answer} for answer in answers]
    if isinstance(output, list):
        for number, row in enumerate(rows, start=1):
            row["sample"] = number
    return rows


# --- frameworks -----------------------------------------------------------------------------------


def _framework_rows(
    items: Sequence[Item], framework: Framework, question_path: str, problems: Problems
) -> list[dict[str, Any]]:
    """Rows of answers of a framework, each question with a name of its own; says which it is."""
    note = f"{items[0].path}: read as {framework.name} ({framework.fields})"
    warnings.warn(note, Note, stacklevel=4)
    rows = []
    for item in items:
        row = read_framework(item, framework, question_path, problems)
        if row is not None:
            rows.append(row)
    n_earlier = Counter[str]()
    n_repeated = 0
    for row in rows:
        question = row["question"]
        # Words can be asked by two users; an id that comes twice is refused where it is scored.
        if not row.pop("is_id") and n_earlier[question]:
            row["question"] = f"{question}#{n_earlier[question] + 1}"
            n_repeated += 1
        n_earlier[question] += 1
    if n_repeated:
        note = f"{n_repeated} answers are to a question asked before: each counts by itself"
        warnings.warn(note, Note, stacklevel=4)
    return rows


# --- files ----------------------------------------------------------------------------------------


def _form(items: Sequence[Item]) -> str | Framework:
    """The format of answers that the first object has the marks of, or that of this library.

    That of a framework may be told by a later one: nothing may be retrieved for a question.
    """
    content = items[0].content
    if isinstance(content.get("docs"), list) or not content.keys().isdisjoint({"data", "demos"}):
        return "alce"
    if _sentences_of(content) is not None or "references" in content:
        return "trec"
    if KNOWN["ikat-run"](content):
        return "ikat"
    if "mode" in content or "record" in content:
        return "answers"
    return framework_of(items) or "answers"


_PLACE_IN_LIST = re.compile(r"item \d+(, )?")


def _cause(problem: Problem) -> tuple[str, str, str, str]:
    """What two problems have in common that have one cause."""
    column = _PLACE_IN_LIST.sub("", problem.column or "")
    return problem.file, column, problem.found, problem.wanted


@contextmanager
def _one_problem_for_each_cause() -> Iterator[None]:
    """Tell what is wrong in the same way on many lines once, with how many lines there are."""
    try:
        yield
    except InputError as error:
        counts = Counter(map(_cause, error.problems))
        first_problems: dict[tuple[str, str, str, str], Problem] = {}
        for problem in error.problems:
            first_problems.setdefault(_cause(problem), problem)
        problems = Problems()
        for cause, problem in first_problems.items():
            wanted = problem.wanted
            if counts[cause] > 1:
                # A reader may stop when it has collected many.
                at_least = "at least " if len(error.problems) >= MOST_PROBLEMS else ""
                wanted += f" (the first of {at_least}{counts[cause]} such)"
            problems.add(problem.file, problem.line, problem.column, problem.found, wanted)
        raise InputError(problems) from None


def read_rows(path: Path, paths: Mapping[str, str] | None) -> pd.DataFrame:
    """The answers of one file with what it says of them; with a mode where it is of this library.

    ``paths``: where fields are, for a file of no known format.
    """
    problems = Problems()
    with _one_problem_for_each_cause():
        items = read_items(path, problems)
        if not items:
            problems.refuse()
        form: str | Framework = mapped(paths) if paths else _form(items)
        if form == "answers":
            return answer_table(items, problems)
        if form == "ikat":
            items = [turn for item in items for turn in _turns_of_ikat(item, problems)]
        rows = []
        if isinstance(form, Framework):
            question_path = (paths or {}).get("question", "")
            rows = _framework_rows(items, form, question_path, problems)
        else:
            read = _read_alce if form == "alce" else _read_trec
            for item in items:
                rows += read(item, problems)
        problems.refuse()
    table = pd.DataFrame(rows)
    return table.assign(documents=table["shown"].map(len))


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


def with_relevant(table: pd.DataFrame, qrels: pd.DataFrame | None) -> pd.DataFrame:
    """The answers with the numbers of their relevant documents, where something says which."""
    if qrels is not None:
        return table.assign(relevant=_relevant_by_qrels(table, qrels))
    column = "relevant"
    if "with_answer" in table.columns:
        column = "with_answer"
        note = "relevant are the documents in which ALCE found a gold answer: no --qrels"
        warnings.warn(note, Note, stacklevel=4)
    if column not in table.columns:
        return table
    # An answer of which nothing is said has NaN there.
    relevant = [numbers if isinstance(numbers, tuple) else () for numbers in table[column]]
    return table.assign(relevant=relevant).drop(columns="with_answer", errors="ignore")


def _judged(table: pd.DataFrame, qrels: pd.DataFrame | None, path: str | Path) -> pd.DataFrame:
    """The answers to questions of which a relevant document was shown, with its places."""
    table = with_relevant(table, qrels)
    if "relevant" not in table.columns:
        raise ValueError(f"{path} does not say which documents are relevant; wanted --qrels")
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
    return table[~has_none]


def _read_file(
    path: Path,
    mode: str,
    qrels: pd.DataFrame | None,
    authors: tuple[str, str],
    paths: Mapping[str, str] | None,
) -> pd.DataFrame:
    """The answers of one file; mode and authors are those of a file of another format than ours."""
    table = read_rows(path, paths)
    if "mode" in table.columns:
        return table
    table = _judged(table, qrels, path).drop(columns="document_fields", errors="ignore")
    relevant_author, nonrelevant_author = authors
    return table.assign(
        mode=mode_name(mode),
        citations=None,
        relevant_author=relevant_author or "unnamed",
        nonrelevant_author=nonrelevant_author or "unnamed",
        gold=[()] * len(table),
    )


def read_answer_files(
    files: Sequence[str],
    qrels: str | Path | None = None,
    authors: tuple[str, str] = ("", ""),
    fields: str = "",
) -> pd.DataFrame:
    """Answers of one or more files, as `equipoise.loaders.answers.read_answers` has them, together.

    ``files``: paths; that of another format than ours may begin with the mode of its answers
    (``Informed=run.jsonl``), else it is Vanilla. ``authors``: of the relevant and of the other
    documents, for such files. ``fields``: where those of no known format have what is read.
    """
    modes = [_mode_and_path(name)[0] for name in files]
    if "CF-informed" in modes and not all(authors):
        raise ValueError(
            "CAB needs the authors of the relevant and of the other documents; wanted --authors"
        )
    judgements = None if qrels is None else read_qrels(qrels)
    paths_of_fields = read_fields(fields) if fields else None
    tables = []
    for mode, path in answer_files(files):
        tables.append(_read_file(path, mode, judgements, authors, paths_of_fields))
    return pd.concat(tables, ignore_index=True)


# --- arguments ------------------------------------------------------------------------------------


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
