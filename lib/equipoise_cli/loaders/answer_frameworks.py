"""Answers with what was retrieved for them, as frameworks keep them, and by fields that one names.

*LangChain*: ``answer`` (or ``result``, ``output``) and ``context`` (or ``source_documents``), a
list of documents with ``page_content`` and ``metadata``. *LlamaIndex*: ``response`` and
``source_nodes``, each a node, or ``node`` and ``score``. *RAGAS*: ``user_input``, ``response``,
``retrieved_contexts``, and maybe ``reference_contexts`` or ids of both; or its older ``question``,
``answer``, ``contexts``. *OpenAI*: ``messages``, of which the last is the answer, and the context
beside them, in it (``context.citations``, as of Azure), or in messages of tools.

A question is named by its id, else by its words with ``_`` between, else by its place in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.loaders.objects import Item, fields_of, first_value, is_messages
from equipoise.problems import Problems, listed, shown

FIELDS = ("question", "answer", "documents", "sources", "relevant")
"""What ``--map`` can name; answer and documents have to be there."""
_PATH = re.compile(r"[^\s.,=\[\]]+(\[\])?(\.[^\s.,=\[\]]+(\[\])?)*")
_IDS_OF_QUESTIONS = ("question_id", "query_id", "qid", "topic_id", "custom_id", "id")
_WORDS_OF_QUESTIONS = ("question", "input", "query", "user_input", "query_str", "prompt")
_IDS_OF_DOCUMENTS = ("id", "id_", "node_id", "doc_id", "docid", "document_id", "chunk_id", "_id")
_CONTEXTS = (
    *("context", "contexts", "documents", "retrieved_documents", "source_documents", "docs"),
    *("retrieved_contexts", "citations", "results"),
)


# --- fields that one names ------------------------------------------------------------------------


def read_fields(text: str) -> dict[str, str]:
    """Read ``answer=response,documents=docs[].id``: the path of each of `FIELDS`.

    >>> read_fields("answer=response,documents=docs[].id")
    {'answer': 'response', 'documents': 'docs[].id'}
    """
    paths: dict[str, str] = {}
    for part in text.split(","):
        field, _, path = part.strip().partition("=")
        if field not in FIELDS or field in paths or not _PATH.fullmatch(path):
            raise ValueError(
                f"found {shown(part)}; wanted FIELD=PATH,FIELD=PATH, each of"
                f" {', '.join(FIELDS)} once, a path such as response or docs[].id"
            )
        paths[field] = path
    missing = [field for field in ("answer", "documents") if field not in paths]
    if missing:
        raise ValueError(f"found no {' and no '.join(missing)}; wanted at least answer, documents")
    return paths


def value_at(content: Mapping[str, Any], path: str) -> Any:
    """What is at a path of an object: a value, or a list of values where the path has ``[]``.

    >>> value_at({"docs": [{"id": "a"}, {"id": "b"}]}, "docs[].id")
    ['a', 'b']
    """
    values: list[Any] = [content]
    for part in path.split("."):
        name = part.removesuffix("[]")
        next_values = []
        for value in values:
            inner = fields_of(value).get(name)
            if not part.endswith("[]"):
                next_values.append(inner)
            elif isinstance(inner, list):
                next_values += inner
        values = next_values
    return values if "[]" in path else values[0]


# --- what a row has -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Retrieved:
    """Documents in the order in which they were shown: their ids, and their further fields."""

    ids: list[str]
    fields: list[dict[str, Any]]


def retrieved(documents: Sequence[Any]) -> Retrieved:
    """Documents of any framework; one without an id has its number."""
    ids, fields_of_documents = [], []
    for number, document in enumerate(documents, start=1):
        fields = fields_of(document)
        # LangChain writes an object as its constructor's arguments, LlamaIndex a node with a score.
        fields = {**fields, **fields_of(fields.get("kwargs")), **fields_of(fields.get("node"))}
        fields |= fields_of(fields.get("metadata"))
        document_id = first_value(fields, _IDS_OF_DOCUMENTS, (str, int))
        ids.append(str(number if document_id is None else document_id))
        fields_of_documents.append(fields)
    return Retrieved(ids, fields_of_documents)


def _content_of(message: Any) -> str:
    """The text of a message, of one part or several."""
    content = fields_of(message).get("content")
    if isinstance(content, list):
        texts = [fields_of(part).get("text") for part in content]
        content = "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def question_of(content: dict[str, Any], words: Any, number: int) -> tuple[str, bool]:
    """The name of a question, and whether it is an id."""
    question_id = first_value(content, _IDS_OF_QUESTIONS, (str, int))
    if question_id is not None and str(question_id).strip():
        return str(question_id), True
    if isinstance(words, list):  # a conversation, of which the last message of the user asks
        asked = [message for message in words if _speaker(message) in ("user", "human")]
        words = _content_of(asked[-1]) if asked else ""
    if isinstance(words, str) and words.strip():
        return "_".join(words.split()), False
    return f"answer-{number}", False


def _speaker(message: Any) -> Any:
    fields = fields_of(message)
    return fields.get("role", fields.get("type"))


def _equal_to_reference(texts: Sequence[Any], references: Sequence[Any]) -> tuple[int, ...]:
    """Numbers of the texts that are a reference, white space apart."""
    reference_texts = {" ".join(str(text).split()) for text in references}
    numbers = []
    for number, text in enumerate(texts, start=1):
        if " ".join(str(text).split()) in reference_texts:
            numbers.append(number)
    return tuple(numbers)


def relevant_numbers(relevant: Sequence[Any], ids: Sequence[str]) -> tuple[int, ...]:
    """Numbers of the relevant documents, from a mark for each document, from ids or from numbers.

    An id that was not retrieved has no number.
    """
    if len(relevant) == len(ids) and all(isinstance(mark, bool) for mark in relevant):
        return tuple(number for number, mark in enumerate(relevant, start=1) if mark)
    numbers = set()
    for name in relevant:
        if str(name) in ids:
            numbers.add(ids.index(str(name)) + 1)
        elif type(name) is int and 1 <= name <= len(ids):
            numbers.add(name)
    return tuple(sorted(numbers))


# --- frameworks -----------------------------------------------------------------------------------


def _list_of(content: Mapping[str, Any], keys: Sequence[str]) -> list[Any] | None:
    values: list[Any] | None = first_value(content, keys, list)
    return values


def _is_langchain(content: dict[str, Any]) -> bool:
    documents = _list_of(content, ("context", "source_documents")) or []
    texts = [fields_of(document) for document in documents]
    # Where nothing was retrieved for a question, the list has no document to tell it by.
    return any("page_content" in {**text, **fields_of(text.get("kwargs"))} for text in texts)


def _is_llamaindex(content: dict[str, Any]) -> bool:
    return isinstance(content.get("source_nodes"), list)


def _is_ragas(content: dict[str, Any]) -> bool:
    contexts = _list_of(content, ("retrieved_contexts", "contexts"))
    return contexts is not None and all(isinstance(text, str) for text in contexts)


def _is_openai(content: dict[str, Any]) -> bool:
    return is_messages(content.get("messages"))


def _of_langchain(content: dict[str, Any]) -> tuple[Any, Any, Any]:
    answer = first_value(content, ("answer", "result", "output"), str)
    return answer, _list_of(content, ("context", "source_documents")), None


def _of_llamaindex(content: dict[str, Any]) -> tuple[Any, Any, Any]:
    return first_value(content, ("response", "answer"), str), content["source_nodes"], None


def _of_ragas(content: dict[str, Any]) -> tuple[Any, Any, Any]:
    answer = first_value(content, ("response", "answer"), str)
    contexts = _list_of(content, ("retrieved_contexts", "contexts")) or []
    ids = _list_of(content, ("retrieved_context_ids",))
    documents: list[Any] = contexts
    if ids is not None and len(ids) == len(contexts):
        documents = [{"id": document_id} for document_id in ids]
    relevant: Any = _list_of(content, ("reference_context_ids",))
    references = _list_of(content, ("reference_contexts",))
    if relevant is None and references is not None:
        relevant = list(_equal_to_reference(contexts, references))
    return answer, documents, relevant


def _of_openai(content: dict[str, Any]) -> tuple[Any, Any, Any]:
    messages = list(content["messages"])
    for choice in _list_of(content, ("choices",)) or []:
        messages.append(fields_of(choice).get("message"))
    answers = [message for message in messages if _speaker(message) == "assistant"]
    answer = answers[-1] if answers else {}
    beside_answer = fields_of(answer).get("context")
    documents = _list_of(fields_of(beside_answer), _CONTEXTS)
    if documents is None:
        documents = _list_of(content, _CONTEXTS)
    if documents is None and isinstance(beside_answer, list):
        documents = beside_answer
    if documents is None:
        documents = _documents_of_tools(messages)
    return _content_of(answer) if answers else None, documents, None


def _documents_of_tools(messages: Sequence[Any]) -> list[Any] | None:
    """The documents that tools returned, as a JSON list or under a usual key of an object."""
    documents: list[Any] = []
    for message in messages:
        if _speaker(message) not in ("tool", "function"):
            continue
        try:
            returned = json.loads(_content_of(message))
        except (ValueError, RecursionError):
            continue  # a text: what it was made of is not said
        if not isinstance(returned, list):
            returned = _list_of(fields_of(returned), _CONTEXTS) or []
        documents += returned
    return documents or None


@dataclass(frozen=True)
class Framework:
    """How a framework keeps answers: what tells them, and what is read, in words."""

    name: str
    fields: str
    has_marks: Callable[[dict[str, Any]], bool]
    read: Callable[[dict[str, Any]], tuple[Any, Any, Any]]
    """Answer, documents and relevant documents (None where it does not say) of an object."""


FRAMEWORKS = (
    Framework("LangChain", "answer, context", _is_langchain, _of_langchain),
    Framework("LlamaIndex", "response, source_nodes", _is_llamaindex, _of_llamaindex),
    Framework(
        "RAGAS",
        "response, retrieved_contexts; relevant are those in reference_contexts",
        _is_ragas,
        _of_ragas,
    ),
    Framework("OpenAI", "messages, context", _is_openai, _of_openai),
)


def framework_of(items: Sequence[Item]) -> Framework | None:
    """The framework that the first object has the marks of that has any."""
    for item in items:
        for framework in FRAMEWORKS:
            if framework.has_marks(item.content):
                return framework
    return None


def mapped(paths: Mapping[str, str]) -> Framework:
    """A framework of the fields that one names."""

    def read(content: dict[str, Any]) -> tuple[Any, Any, Any]:
        relevant = value_at(content, paths["relevant"]) if "relevant" in paths else None
        documents = value_at(content, paths["documents"])
        if isinstance(documents, list):
            documents = _with_fields(content, documents, paths)
        return value_at(content, paths["answer"]), documents, relevant

    written = ", ".join(f"{field}={path}" for field, path in paths.items())
    return Framework("--map", written, lambda _: True, read)


def _with_fields(
    content: dict[str, Any], documents: list[Any], paths: Mapping[str, str]
) -> list[Any] | None:
    """Documents as objects: what is at the path may be their ids, and their sources elsewhere.

    None where there is not one source for each.
    """
    objects = []
    for document in documents:
        objects.append(document if isinstance(document, dict) else {"id": document})
    if "sources" not in paths:
        return objects
    sources = value_at(content, paths["sources"])
    if not isinstance(sources, list) or len(sources) != len(objects):
        return None
    return [
        {**document, "source": source} for document, source in zip(objects, sources, strict=True)
    ]


def read_framework(
    item: Item, framework: Framework, question_path: str, problems: Problems
) -> dict[str, Any] | None:
    """The row of an object: question, answer, ids of the documents, their fields, relevance."""
    content = item.content
    answer, documents, relevant = framework.read(content)
    expected = f"{framework.fields} of {framework.name}"
    keys = listed(map(shown, content), 8) or "nothing"
    if not isinstance(answer, str):
        item.wrong(problems, "", f"no text as the answer in an object with {keys}", expected)
        return None
    if not isinstance(documents, list):
        item.wrong(problems, "", f"no list of documents in an object with {keys}", expected)
        return None
    if question_path:
        words = value_at(content, question_path)
        if isinstance(words, int):
            words = str(words)
        question, is_id = question_of({}, words, item.number)
    else:
        words = first_value(content, (*_WORDS_OF_QUESTIONS, "messages"), (str, list))
        question, is_id = question_of(content, words, item.number)
    shown_documents = retrieved(documents)
    row: dict[str, Any] = {"question": question, "is_id": is_id, "answer": answer}
    row |= {"shown": tuple(shown_documents.ids), "document_fields": shown_documents.fields}
    if isinstance(relevant, list):
        row["relevant"] = relevant_numbers(relevant, shown_documents.ids)
    return row
