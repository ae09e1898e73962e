"""Retrieval-augmented generation: answers that cite the passages they rest on.

A prompt holds an instruction, worked examples, the retrieved passages with or without a label of their author, and the
question. Any model will do that takes chat messages and returns an `equipoise.conversations.endpoint.Answer`: a GGUF
file on this machine (`gguf_model`) or an endpoint in the OpenAI format (`endpoint_model`). What it answers is recorded
with everything that made it, and a record goes on where it stopped.

References
----------
thesis: chapter 5, Figures 5.2 and 5.6 to 5.8, Eq. 5.4.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd

from equipoise import project
from equipoise.conversations import records
from equipoise.conversations.endpoint import Answer, Endpoint, EndpointError, Sampling, ask_patiently, read_answer
from equipoise.files import read_text, read_yaml
from equipoise.problems import InputError, Problem
from equipoise.systems.language_models import load_server

Messages = list[dict[str, str]]
Model = Callable[[Sequence[Mapping[str, str]], Sampling], Answer]

_CITED = re.compile(r"\[\s*\d+(?:\s*[,;]\s*\d+)*\s*\]", re.ASCII)
_NUMBER = re.compile(r"\d+", re.ASCII)


# --- prompts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Passage:
    """A passage as a model sees it.

    ``label``: of its author; without one the passage is shown plain.
    """

    text: str
    label: str | None = None

    def shown(self, number: int) -> str:
        """Line of the prompt.

        ``number``: From 1, by which the passage is cited.
        """
        line = f"Document [{number}] ({' '.join(self.text.split())})"
        return line if self.label is None else f"{line} (written by [{self.label}])"


@dataclass(frozen=True)
class Example:
    """A worked example: a question, its passages with the number of their authors' group (0 or 1), and the answer."""

    question: str
    passages: tuple[tuple[str, int], ...]
    answer: str


@dataclass(frozen=True)
class Prompts:
    """Wording of the prompts.

    ``instruction``, ``question``, ``paraphrase``, ``names``: Texts; the middle two hold ``{documents}`` and
    ``{question}``, and ``{passage}``.
    """

    instruction: str
    question: str
    paraphrase: str
    names: str
    examples: tuple[Example, ...]

    def _asked(self, question: str, passages: Sequence[Passage]) -> dict[str, str]:
        lines = "\n".join(passage.shown(number) for number, passage in enumerate(passages, start=1))
        filled = {"{documents}": lines, "{question}": " ".join(question.split())}
        content = re.sub(r"\{documents\}|\{question\}", lambda match: filled[match[0]], self.question)
        return {"role": "user", "content": content}

    def answer(
        self,
        question: str,
        passages: Sequence[Passage],
        notice: str = "",
        labels: Callable[[int, str], str | None] = lambda _group, _text: None,
    ) -> Messages:
        """Messages that ask for an answer with citations.

        ``passages``: in the order in which they are numbered. ``notice``: Announces the labels; empty where
        there are none. ``labels``: Takes the group and the text of an example's passage and returns its label.
        Returns: ``role`` and ``content``.

        thesis, Figures 5.2 and 5.7.
        """
        if not passages:
            raise ValueError("an answer from no passages cannot cite any")
        instruction = f"{self.instruction}\n3. {notice}" if notice else self.instruction
        messages = [{"role": "system", "content": instruction}]
        for example in self.examples:
            shown = [Passage(text, labels(group, text)) for text, group in example.passages]
            messages += [self._asked(example.question, shown), {"role": "assistant", "content": example.answer}]
        return [*messages, self._asked(question, passages)]

    def rewriting(self, passage: str) -> Messages:
        """Messages that ask for a paraphrase of a passage (thesis, Figure 5.6)."""
        return [{"role": "user", "content": self.paraphrase.replace("{passage}", " ".join(passage.split()))}]

    def pool_of_names(self) -> Messages:
        """Messages that ask for names of authors (thesis, Figure 5.8)."""
        return [{"role": "user", "content": self.names}]


def read_prompts() -> Prompts:
    """Read the prompts of ``data/prompts``."""
    texts = {
        name: read_text(project.data("prompts", f"{name}.txt")).strip()
        for name in ("instruction", "question", "paraphrase", "names")
    }
    path = project.data("prompts", "examples.yaml")
    try:
        examples = tuple(
            Example(
                entry["question"],
                tuple((passage["text"], int(passage["group"])) for passage in entry["passages"]),
                entry["answer"],
            )
            for entry in read_yaml(path)
        )
    except (TypeError, KeyError, ValueError) as error:
        wanted = "a list with question, passages (text and group 0 or 1) and answer"
        raise InputError([Problem(str(path), None, None, f"{type(error).__name__}: {error}", wanted)]) from None
    return Prompts(examples=examples, **texts)


# --- order of passages ----------------------------------------------------------------------------------------------


def balanced_places(questions: int, documents: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Places of the relevant passages: at random, each place as often as any other.

    ``documents``: Passages shown for each question. Returns ndarray of int, shaped (questions,): From 0. In any run
    of `documents` questions from a multiple of it on, each place comes once.
    """
    if questions < 1 or documents < 1:
        raise ValueError("at least one question and one document are wanted")
    rounds = -(-questions // documents)
    return np.concatenate([rng.permutation(documents) for _ in range(rounds)])[:questions]


def placed(relevant: str, others: Sequence[str], place: int) -> list[str]:
    """Put the relevant passage at its place among the others, which keep their order.

    ``place``: From 0.
    """
    return [*others[:place], relevant, *others[place:]]


# --- models ---------------------------------------------------------------------------------------------------------


@contextmanager
def endpoint_model(endpoint: Endpoint) -> Iterator[Model]:
    """Open a connection to an endpoint in the OpenAI chat format.

    Yields: Takes messages and sampling and returns an Answer; safe to call from several threads.
    """
    with httpx.Client(follow_redirects=False) as client:
        yield lambda messages, sampling: ask_patiently(client, endpoint, sampling, messages, logprobs=True)[0]


def gguf_model(weights: Path, *, threads: int = 2, context: int = 4096) -> Model:
    """Load a GGUF model on this machine.

    ``weights``: the ``.gguf`` file. ``context``: Tokens of prompt and answer together. Returns: Takes messages and
    sampling and returns an Answer.
    """
    server = load_server(weights, threads=threads, context=context)

    def generate(messages: Sequence[Mapping[str, str]], sampling: Sampling) -> Answer:
        request = {"messages": list(messages), "logprobs": True, "stream": False, "cache_prompt": True}
        request |= {key: getattr(sampling, key) for key in ("temperature", "top_p", "max_tokens", "seed")}
        return read_answer(json.dumps(server.handle_chat_completions(request)).encode())

    return generate


# --- citations and their probabilities --------------------------------------------------------------------------------


@dataclass(frozen=True)
class CitedNumber:
    """A number cited in an answer, with the probability that the model gave to writing it."""

    document: int
    probability: float | None


def citation_probabilities(text: str, written: Sequence[tuple[str, float | None]]) -> list[CitedNumber]:
    r"""Probability of every citation number in an answer.

    .. math:: p(c) = \prod_{t \text{ of the digits of } c} p(t \mid \text{prompt and tokens before})

    ``text``: the answer. ``written``: Its tokens with their natural log-probabilities. Returns: In order, repeated
    ones repeated. The probability is None where a token has none, or the tokens do not make up the text.

    thesis, Eq. 5.4: p(c | q, D), the probability of generation of the attribution token. A number of several tokens has
    the product of theirs; a token that holds more than digits counts whole.
    """
    joined = "".join(token for token, _ in written)
    offset = joined.find(text) if written else -1
    ends = np.cumsum([len(token) for token, _ in written]) - offset
    starts = ends - [len(token) for token, _ in written]
    found: list[CitedNumber] = []
    for bracket in _CITED.finditer(text):
        for number in _NUMBER.finditer(text, bracket.start(), bracket.end()):
            if len(number[0]) > 9:
                continue
            value: float | None = None
            if offset >= 0:
                begin, end = number.span()
                touched = [written[int(i)][1] for i in np.flatnonzero((starts < end) & (ends > begin))]
                if all(part is not None for part in touched):
                    value = math.exp(sum(part for part in touched if part is not None))
            found.append(CitedNumber(int(number[0]), value))
    return found


# --- records --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One answer that is wanted.

    ``key``: what identifies it: question, mode, relevant_author, nonrelevant_author, and whatever else tells
    settings apart. ``shown``: ids of the passages, as numbered. ``relevant``: Numbers of the relevant ones, from 1.
    ``messages``: Returns the prompt.
    """

    key: Mapping[str, str | int]
    shown: tuple[str, ...]
    relevant: tuple[int, ...]
    messages: Callable[[], Messages]


class IncompleteError(RuntimeError):
    """A record in which answers are still missing: what happened, and what to do."""


def _frozen(key: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(key.items()))


def _parse(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    problems: list[Problem] = []
    settings, lines = records.parse_lines(path, "answer", problems)
    wanted = {"key": dict, "shown": list, "relevant": list, "answer": str, "citations": list, "seconds": float}
    seen: set[Any] = set()
    for number, line in lines:
        wrong = [name for name, kind in wanted.items() if type(line.get(name)) is not kind]
        if wrong:
            fields = ", ".join(wanted)
            found = f"no good value for {', '.join(wrong)}"
            problems.append(Problem(str(path), number, None, found, f"the fields {fields}"))
        elif _frozen(line["key"]) in seen:
            problems.append(Problem(str(path), number, "key", json.dumps(line["key"]), "each answer once"))
        else:
            seen.add(_frozen(line["key"]))
    if problems:
        raise InputError(problems)
    return settings, [line for _, line in lines]


def record_answers(
    tasks: Sequence[Task],
    model: Model,
    record: Path,
    settings: Mapping[str, Any],
    sampling: Sampling,
    *,
    parallel: int = 1,
    give_up: int = 3,
    progress: Callable[[Iterable[Task]], Iterable[Task]] = iter,
) -> int:
    """Have every task answered that a record does not hold yet.

    ``record``: JSON Lines file: settings, then one answer a line. ``settings``: what the model and the prompts are;
    a record made with others is refused. The sampling is added to them. ``sampling``: the same for every task.
    ``parallel``: Requests at a time. ``give_up``: After so many failures in a row nothing more is asked.
    ``progress``: Wraps the tasks that are still to do, for a progress bar. Returns: Answers recorded now.
    """
    keys = [_frozen(task.key) for task in tasks]
    if len(set(keys)) < len(keys):
        raise ValueError("two tasks have one key: answers could not be told apart")
    stated = {"record": "settings", **settings, "sampling": asdict(sampling)}
    held = records.resume(record, json.loads(json.dumps(stated)), _parse)
    done = {_frozen(line["key"]) for line in held}
    waiting = iter(progress([task for task, key in zip(tasks, keys, strict=True) if key not in done]))
    asked, failures, in_a_row = 0, list[str](), 0

    def attempt(task: Task) -> tuple[Task, Answer | EndpointError, float]:
        begun = time.monotonic()
        try:
            return task, model(task.messages(), sampling), time.monotonic() - begun
        except EndpointError as error:
            return task, error, time.monotonic() - begun

    with ThreadPoolExecutor(parallel) as pool:
        running = deque(pool.submit(attempt, task) for task in islice(waiting, parallel))
        while running:
            task, found, seconds = running.popleft().result()
            in_a_row = in_a_row + 1 if isinstance(found, EndpointError) else 0
            if in_a_row < give_up:
                running.extend(pool.submit(attempt, task) for task in islice(waiting, 1))
            if isinstance(found, EndpointError):
                failures.append(f"{json.dumps(dict(task.key))}: {found}")
                continue
            asked += 1
            cited = citation_probabilities(found.text, found.written)
            line = {
                "record": "answer",
                "key": dict(task.key),
                "shown": list(task.shown),
                "relevant": list(task.relevant),
                "answer": found.text,
                "citations": [[c.document, None if c.probability is None else round(c.probability, 6)] for c in cited],
                "finish": found.finish,
                "tokens": dict(found.tokens),
                "seconds": round(seconds / parallel, 3),
            }
            records.append(record, line)
    if failures:
        listed = "\n  ".join(failures[:20])
        raise IncompleteError(f"{len(failures)} answers are missing:\n  {listed}\nRecord again into {record}.")
    return asked


def read_record(path: str | Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """Read a record of answers.

    Returns answers : DataFrame: The columns of the keys (question, mode, relevant_author, nonrelevant_author, ...),
    shown and relevant (tuples), documents (how many were shown), answer, citations (list of dict, document and
    probability), finish, prompt_tokens, completion_tokens, seconds (of wall time, divided by the requests at a
    time).
    """
    settings, lines = _parse(Path(path))
    rows = [
        {
            **line["key"],
            "shown": tuple(line["shown"]),
            "relevant": tuple(line["relevant"]),
            "documents": len(line["shown"]),
            "answer": line["answer"],
            "citations": [{"document": document, "probability": p} for document, p in line["citations"]],
            "finish": line.get("finish"),
            **line.get("tokens", {}),
            "seconds": line["seconds"],
        }
        for line in lines
    ]
    return settings, pd.DataFrame(rows)
