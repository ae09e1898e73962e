"""Put requests to a chat endpoint that speaks the OpenAI format, patiently.

A request that fails in a way that may pass (no connection, a time-out, a torn or senseless answer, HTTP 408, 409, 425,
429 or 5xx) is repeated after a pause that doubles each time, or that the server asked for.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

import httpx

LARGEST_ANSWER = 4 * 2**20
"""Bytes of a server's answer beyond which it is taken for garbage."""

PASSING = frozenset({408, 409, 425, 429})
"""HTTP statuses below 500 that a later try may not meet again."""


class EndpointError(RuntimeError):
    """A request that could not be answered.

    ``message``: what happened, and what to do. ``passing``: whether a later try may succeed. ``wait``: Seconds that
    the server asked to wait before the next try.
    """

    def __init__(self, message: str, *, passing: bool = False, wait: float | None = None) -> None:
        super().__init__(message)
        self.passing = passing
        self.wait = wait


@dataclass(frozen=True)
class Sampling:
    """How the system samples its answers.

    ``max_tokens``: Longest answer; one that reaches it is recorded with ``finish`` "length". ``seed``: seed of the
    first answer; every topic, trial and turn has its own, counted on from it. ``system``: System prompt; empty for
    none.
    """

    temperature: float = 0.7
    top_p: float = 0.95
    max_tokens: int = 512
    seed: int = 0
    system: str = ""


@dataclass(frozen=True)
class Endpoint:
    """A chat endpoint and how patiently it is asked.

    ``url``: Base, to which ``/chat/completions`` is added. A password or a query in it is refused: it would be
    recorded. ``model``: the model's name. ``key_variable``: Environment variable that holds the key. The key is
    sent as bearer token and never written; without one none is sent. ``timeout``: Seconds within which an answer
    must be complete. ``tries``: Most requests for one answer. ``pause``: Seconds before every request but the
    first. ``wait``, ``longest_wait``: Seconds before the second try, doubled for each further one, and the most
    ever waited.
    """

    url: str
    model: str
    key_variable: str = "OPENAI_API_KEY"
    timeout: float = 120.0
    tries: int = 4
    pause: float = 0.0
    wait: float = 1.0
    longest_wait: float = 60.0

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL:
            url = httpx.URL("")
        named = url.scheme in ("http", "https") and re.fullmatch(r"[\w.:-]+", url.host)
        if not named or url.userinfo or url.query or url.fragment:
            raise ValueError("the endpoint must be a plain http(s) url without user, password, query or fragment")
        if self.tries < 1 or self.timeout <= 0 or min(self.pause, self.wait, self.longest_wait) < 0:
            raise ValueError("tries must be at least 1, timeout positive, and no pause negative")

    def key(self) -> str:
        """Return the key from the environment, empty where there is none."""
        return os.environ.get(self.key_variable, "").strip()


@dataclass(frozen=True)
class Answer:
    """One answer of a chat endpoint, with what is needed to tell how it came about.

    ``text``, ``finish``: the answer, and why it ended: "stop", "length", ... ``answered_by``, ``fingerprint``: what
    the server says of the model and of itself. ``tokens``: number of prompt_tokens and of completion_tokens.
    ``written``: Every token of the answer with its natural log-probability, None where the server gives none; empty
    unless they were asked for and the server gives them.
    """

    text: str
    finish: str
    answered_by: str
    fingerprint: str
    tokens: Mapping[str, int] = field(default_factory=dict)
    written: tuple[tuple[str, float | None], ...] = ()


def _whole(text: str) -> str:
    """Replace lone surrogates, which JSON may carry and no file may."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(choice: Mapping[str, Any]) -> tuple[tuple[str, float | None], ...]:
    """Tokens of an answer with their log-probabilities; a server that gives none, or nonsense, is no failure."""
    found = choice.get("logprobs")
    listed = found.get("content") if isinstance(found, dict) else None
    pairs: list[tuple[str, float | None]] = []
    for entry in listed if isinstance(listed, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
            return ()
        value = entry.get("logprob")
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value <= 0
        pairs.append((_whole(entry["token"]), float(value or 0) if good else None))
    return tuple(pairs)


def read_answer(body: bytes) -> Answer:
    """Take apart what a server sends back.

    ``body``: JSON in the OpenAI chat format.
    """
    try:
        data = json.loads(body)
        choice = data["choices"][0]
        text, finish = choice["message"]["content"], choice["finish_reason"]
    except (ValueError, RecursionError):
        raise EndpointError("the answer is not JSON, or only a part of it", passing=True) from None
    except (KeyError, IndexError, TypeError):
        raise EndpointError("the answer lacks choices[0].message.content or finish_reason", passing=True) from None
    if not isinstance(text, str) or not isinstance(finish, str):
        raise EndpointError("the answer's content or finish_reason is not text", passing=True)
    usage = data.get("usage")
    counted = usage if isinstance(usage, dict) else {}
    return Answer(
        text=_whole(text),
        finish=_whole(finish),
        answered_by=PurePosixPath(_whole(str(data.get("model") or ""))).name,  # local servers give a path
        fingerprint=_whole(str(data.get("system_fingerprint") or "")),
        tokens={k: v for k in ("prompt_tokens", "completion_tokens") if isinstance(v := counted.get(k), int)},
        written=_written(choice),
    )


def _asked_wait(response: httpx.Response) -> float | None:
    stated = response.headers.get("retry-after", "")
    return float(stated) if stated.isdecimal() else None


def ask(
    client: httpx.Client,
    endpoint: Endpoint,
    sampling: Sampling,
    messages: Sequence[Mapping[str, str]],
    *,
    logprobs: bool = False,
) -> Answer:
    """Put one request to the endpoint, once.

    ``client``: the connection. ``endpoint``: Where, and within how many seconds. ``sampling``: how to sample, the
    seed included. ``messages``: the conversation so far: ``role`` and ``content``. ``logprobs``: whether to ask for
    the log-probability of every token. Returns: The complete answer.
    """
    key = endpoint.key()
    request = {
        "model": endpoint.model,
        "messages": list(messages),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "stream": False,
    } | ({"logprobs": True} if logprobs else {})
    deadline = time.monotonic() + endpoint.timeout
    body = bytearray()
    try:
        with client.stream(
            "POST",
            endpoint.url.rstrip("/") + "/chat/completions",
            json=request,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=endpoint.timeout,
        ) as response:
            for chunk in response.iter_bytes():
                body += chunk
                if time.monotonic() > deadline:
                    raise EndpointError(f"no complete answer within {endpoint.timeout:g} s", passing=True)
                if len(body) > LARGEST_ANSWER:
                    raise EndpointError(f"the answer is longer than {LARGEST_ANSWER} bytes", passing=True)
    except httpx.TimeoutException:
        raise EndpointError(f"no complete answer within {endpoint.timeout:g} s", passing=True) from None
    except httpx.RequestError as error:
        raise EndpointError(f"the connection failed ({type(error).__name__})", passing=True) from None
    status = response.status_code
    if status != httpx.codes.OK:
        passing = status in PASSING or status >= httpx.codes.INTERNAL_SERVER_ERROR
        said = " ".join(body.decode("utf-8", "replace").split())[:200]
        message = f"HTTP {status}: {said}" if said else f"HTTP {status}"
        raise EndpointError(_without_key(message, key), passing=passing, wait=_asked_wait(response))
    answer = read_answer(bytes(body))
    if key and key in answer.text:
        return replace(answer, text=_without_key(answer.text, key), written=())
    return answer


def _without_key(text: str, key: str) -> str:
    return text.replace(key, "[key]") if key else text


def ask_patiently(
    client: httpx.Client,
    endpoint: Endpoint,
    sampling: Sampling,
    messages: Sequence[Mapping[str, str]],
    *,
    logprobs: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Answer, list[str]]:
    """Ask until there is an answer.

    ``sleep``: Waits so many seconds. Returns: mishaps : list of str: What went wrong on the way.
    """
    mishaps: list[str] = []
    while True:
        try:
            return ask(client, endpoint, sampling, messages, logprobs=logprobs), mishaps
        except EndpointError as error:
            mishaps.append(str(error))
            if not error.passing:
                raise
            wait = min(endpoint.wait * 2.0 ** (len(mishaps) - 1), endpoint.longest_wait)
            if error.wait is not None:
                wait = max(wait, error.wait)
            if len(mishaps) >= endpoint.tries or wait > endpoint.longest_wait:
                raise EndpointError(f"no answer after {len(mishaps)} tries: {'; '.join(mishaps)}") from None
            sleep(wait)
