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
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.measures.attribution.brackets import LARGEST_NUMBER, mentions
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
    """Open a connection to an endpoint in the OpenAI chat format; safe to call from several threads."""
    with chat.connect() as client:
        yield lambda messages, sampling: chat.ask_patiently(
            client, endpoint, sampling, messages, logprobs=True
        )[0]


def gguf_model(weights: Path, *, threads: int = 2, context: int = 4096) -> Model:
    """Load a GGUF model on this machine; ``context``: tokens of prompt and answer together."""
    server = load_server(weights, threads=threads, context=context)

    def generate(messages: Sequence[Mapping[str, str]], sampling: Sampling) -> Answer:
        request = {
            "messages": list(messages),
            "logprobs": True,
            "stream": False,
            "cache_prompt": True,
        }
        request |= {
            key: getattr(sampling, key) for key in ("temperature", "top_p", "max_tokens", "seed")
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
    joined = "".join(token for token, _ in written)
    offset = joined.find(text) if written else -1
    lengths = [len(token) for token, _ in written]
    ends = np.cumsum(lengths) - offset
    starts = ends - lengths
    found: list[CitedNumber] = []
    for number, first, last in (one for bracket in mentions(text, documents) for one in bracket):
        touched = [
            written[int(place)][1] for place in np.flatnonzero((starts < last) & (ends > first))
        ]
        known = [part for part in touched if part is not None]
        value = math.exp(sum(known)) if offset >= 0 and len(known) == len(touched) else None
        if number < LARGEST_NUMBER:
            found.append(CitedNumber(number, value))
    return found


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

    def line(self, found: Answer, seconds: float) -> dict[str, Any]:
        """The answer as it is recorded."""
        cited = [
            asdict(one)
            for one in citation_probabilities(found.text, found.written, len(self.shown) or None)
        ]
        for one in cited:
            one["probability"] = one["probability"] and round(one["probability"], 6)
        shown = {"shown": self.shown, "documents": len(self.shown), "relevant": self.relevant}
        wrote = {"answer": found.text, "citations": cited, "finish": found.finish, **found.tokens}
        return {**self.key, **self.about, **shown, **wrote, "seconds": round(seconds, 3)}


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
    names = sorted(tasks[0].key) if tasks else []
    wanted = {tuple(task.key[name] for name in names): task for task in tasks}
    if len(wanted) < len(tasks):
        raise ValueError("two tasks have one key: answers could not be told apart")
    held = begin(record, {**settings, "sampling": asdict(sampling)}, "answer", FIELDS, names)
    for line in held:
        wanted.pop(tuple(line[name] for name in names), None)
    waiting = iter(progress(wanted.values()))
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
            add(record, "answer", task.line(found, seconds / parallel))
    if failures:
        told = f"{record.name}: {len(failures)} answers are missing, the others are recorded; record again to go on"
        raise IncompleteError("\n  ".join([told, *failures[:5]]))
    return asked
