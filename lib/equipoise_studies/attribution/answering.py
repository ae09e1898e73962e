"""Retrieval-augmented generation: answers that cite the passages they rest on, recorded.

Any model will do that takes chat messages and returns an
`equipoise_studies.systems.endpoint.Answer`: a GGUF file on this machine (`gguf_model`) or an
endpoint in the OpenAI format (`endpoint_model`). What it answers is recorded with everything that
made it, and a record goes on where it stopped; `equipoise.loaders.answers` reads it.

References
----------
thesis: chapter 5, Eq. 5.4.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.measures.citations import LARGEST_NUMBER, mentions
from equipoise_studies.attribution.prompts import Messages
from equipoise_studies.recording import add, begin
from equipoise_studies.systems import endpoint as chat
from equipoise_studies.systems.endpoint import Answer, Endpoint, EndpointError, Sampling
from equipoise_studies.systems.language_models import load_server

Model = Callable[[Sequence[Mapping[str, str]], Sampling], Answer]
FIELDS: Mapping[str, type] = {
    "shown": list,
    "relevant": list,
    "answer": str,
    "citations": list,
    "finish": str,
}


# --- models ---------------------------------------------------------------------------------------


@contextmanager
def endpoint_model(endpoint: Endpoint) -> Iterator[Model]:
    """Open a connection to an endpoint in the OpenAI chat format, which several threads may use."""
    with chat.connect() as client:

        def ask(messages: Sequence[Mapping[str, str]], sampling: Sampling) -> Answer:
            return chat.ask_patiently(client, endpoint, sampling, messages, logprobs=True)[0]

        yield ask


def gguf_model(weights: Path, *, threads: int = 2, context: int = 4096) -> Model:
    """Load a GGUF model on this machine; ``context``: tokens of prompt and answer together."""
    server = load_server(weights, threads=threads, context=context)

    def generate(messages: Sequence[Mapping[str, str]], sampling: Sampling) -> Answer:
        request = {
            "messages": list(messages),
            "logprobs": True,
            "stream": False,
            "cache_prompt": True,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "seed": sampling.seed,
        }
        return chat.read_answer(json.dumps(server.handle_chat_completions(request)).encode())

    return generate


# --- citations and their probabilities ------------------------------------------------------------


@dataclass(frozen=True)
class CitedNumber:
    """A number cited in an answer, with the probability that the model gave to writing it."""

    document: int
    probability: float | None


def citation_probabilities(
    text: str, written: Sequence[tuple[str, float | None]], documents: int | None = None
) -> list[CitedNumber]:
    r"""Probability of every citation number in an answer.

    .. math:: p(c) = \prod_{t \text{ of the digits of } c} p(t \mid \text{prompt and tokens before})

    ``text``: the answer. ``written``: its tokens with their natural log-probabilities.
    ``documents``: how many were shown. Returns, in order, repeated ones repeated; the probability
    is None where a token has none, or the tokens do not make up the text.

    thesis, Eq. 5.4: p(c | q, D), the probability of generation of the attribution token. A number
    of several tokens has the product of theirs; a token that holds more than digits counts whole,
    and a number of a range has what the range has.
    """
    tokens = [token for token, _ in written]
    offset = "".join(tokens).find(text) if tokens else -1
    # Where each token starts and ends in the text, which a special token may precede.
    lengths = [len(token) for token in tokens]
    token_ends = np.cumsum(lengths) - offset
    token_starts = token_ends - lengths

    cited = []
    for number, start, end in chain.from_iterable(mentions(text, documents)):
        if number >= LARGEST_NUMBER:
            continue
        touching = np.flatnonzero((token_starts < end) & (token_ends > start))
        log_probabilities = []
        for place in touching:
            log_probability = written[int(place)][1]
            if log_probability is not None:
                log_probabilities.append(log_probability)
        probability = None
        if offset >= 0 and len(log_probabilities) == len(touching):
            probability = math.exp(sum(log_probabilities))
        cited.append(CitedNumber(number, probability))
    return cited


# --- records --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One answer that is wanted.

    ``key``: what identifies it: question, mode, relevant_author, nonrelevant_author, and whatever
    else tells settings apart. ``shown``: ids of the passages, as numbered. ``relevant``: numbers of
    the relevant ones, from 1. ``messages``: returns the prompt. ``about``: what is recorded with
    the answer, such as the gold answers.
    """

    key: Mapping[str, str | int]
    shown: tuple[str, ...]
    relevant: tuple[int, ...]
    messages: Callable[[], Messages]
    about: Mapping[str, Any] = field(default_factory=dict)

    def line(self, answer: Answer, seconds: float) -> dict[str, Any]:
        """The answer as it is recorded."""
        n_shown = len(self.shown)
        citations = []
        for cited in citation_probabilities(answer.text, answer.written, n_shown or None):
            probability = cited.probability and round(cited.probability, 6)
            citations.append({"document": cited.document, "probability": probability})
        return {
            **self.key,
            **self.about,
            "shown": self.shown,
            "documents": n_shown,
            "relevant": self.relevant,
            "answer": answer.text,
            "citations": citations,
            "finish": answer.finish,
            **answer.tokens,
            "seconds": round(seconds, 3),
        }


class IncompleteError(ValueError):
    """A record in which answers are still missing: what happened, and what to do."""


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

    ``record``: JSON Lines file. ``settings``: what the model and the prompts are, beside the
    sampling, which is the same for every task; a record made with others is refused. ``parallel``:
    requests at a time. ``give_up``: failures in a row after which nothing more is asked.
    ``progress``: wraps the tasks that are still to do, for a progress bar. Returns how many answers
    were recorded now.
    """
    unanswered = _unanswered(tasks, record, {**settings, "sampling": asdict(sampling)})
    waiting = iter(progress(unanswered))

    def attempt(task: Task) -> tuple[Task, Answer | EndpointError, float]:
        begun = time.monotonic()
        try:
            answer = model(task.messages(), sampling)
        except EndpointError as error:
            return task, error, time.monotonic() - begun
        return task, answer, time.monotonic() - begun

    answered, failures, failures_in_a_row = 0, list[str](), 0
    with ThreadPoolExecutor(parallel) as pool:
        running = deque(pool.submit(attempt, task) for task in islice(waiting, parallel))
        while running:
            task, answer, seconds = running.popleft().result()
            failed = isinstance(answer, EndpointError)
            failures_in_a_row = failures_in_a_row + 1 if failed else 0
            # After too many failures in a row only what is running is waited for.
            if failures_in_a_row < give_up:
                following = next(waiting, None)
                if following is not None:
                    running.append(pool.submit(attempt, following))
            if isinstance(answer, EndpointError):
                failures.append(f"{json.dumps(dict(task.key))}: {answer}")
                continue
            answered += 1
            add(record, "answer", task.line(answer, seconds / parallel))
    if failures:
        summary = (
            f"{record.name}: {len(failures)} answers are missing, the others are recorded; "
            "record again to go on"
        )
        raise IncompleteError("\n  ".join([summary, *failures[:5]]))
    return answered


def _unanswered(tasks: Sequence[Task], record: Path, settings: Mapping[str, Any]) -> list[Task]:
    """The tasks that a record does not hold yet; it is begun, or refused if its settings differ."""
    names = sorted(tasks[0].key) if tasks else []
    tasks_by_key = {tuple(task.key[name] for name in names): task for task in tasks}
    if len(tasks_by_key) < len(tasks):
        raise ValueError("two tasks have one key: answers could not be told apart")
    for line in begin(record, settings, "answer", FIELDS, names):
        tasks_by_key.pop(tuple(line[name] for name in names), None)
    return list(tasks_by_key.values())
