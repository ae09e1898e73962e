"""Put requests to a chat endpoint that speaks the OpenAI format, patiently.

A request that fails in a way that may pass (no connection, a time-out, a torn or senseless answer,
HTTP 408, 409, 425, 429 or 5xx) is repeated after a pause that doubles each time, or that the server
asked for.
"""

from __future__ import annotations

import json
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from equipoise import options
from equipoise_studies.systems.keys import kept_out, read_key, tells

_LARGEST_ANSWER = 4 * 2**20  # bytes of a server's answer beyond which it is taken for garbage
_LONGEST_WORD = 200  # characters of what else a server says, such as its name, that are kept
_MOST_TOKENS = 10**7
_PASSING = frozenset({408, 409, 425, 429})  # statuses below 500 that a later try may not meet again
_URL = re.compile(
    r"https?://([\w.-]+|\[[\da-f:.]+\])(:\d{1,5})?(/[!-~]*)?", re.IGNORECASE | re.ASCII
)


class EndpointError(RuntimeError):
    """A request that could not be answered, and whether a later try may be, after how many seconds at least."""

    def __init__(self, message: str, *, passing: bool = False, wait: float = 0.0) -> None:
        super().__init__(message)
        self.passing, self.wait = passing, wait


def refuse_secrets(url: str) -> None:
    """Raise ValueError unless this is a plain http(s) url: what stands in another could be a secret."""
    if not _URL.fullmatch(url) or "?" in url or "#" in url:
        raise ValueError(
            "the endpoint must be a plain http(s) url without user, password, query or fragment"
        )


@dataclass(frozen=True)
class Sampling:
    """How the system samples its answers.

    ``seed`` is that of the first answer; every topic, trial and turn has its own, counted on from
    it. ``system`` is the system prompt, empty for none.
    """

    temperature: options.Temperature = 0.7
    top_p: options.TopP = 0.95
    max_tokens: options.MaxTokens = 512
    seed: options.FirstSeed = 0
    system: options.SystemPrompt = ""


@dataclass(frozen=True)
class Endpoint:
    """A chat endpoint, ``/chat/completions`` below its url, and how patiently it is asked.

    A password or a query in the url is refused: it would be recorded. The key comes from an
    environment variable (which must hold one, unless it is the usual one), is sent as bearer token
    and never written. An answer must be complete ``timeout`` seconds after it was asked for,
    whatever the server sends meanwhile. ``pause`` is waited before every request but the first,
    ``wait`` before the second of the ``tries`` for one answer, doubled for each further one, and
    never more than ``longest_wait``.
    """

    url: str
    model: str
    key_variable: options.KeyVariable = "OPENAI_API_KEY"
    timeout: options.Timeout = 120.0
    tries: options.Tries = 4
    pause: options.Pause = 0.0
    wait: float = 1.0
    longest_wait: float = 60.0

    def __post_init__(self) -> None:
        refuse_secrets(self.url)
        import httpx

        try:
            httpx.URL(self.url)
            parts = urlsplit(self.url)
            (parts.hostname or "").encode("idna")
            if parts.port == 0:
                raise ValueError
        except (ValueError, httpx.InvalidURL):
            raise ValueError(
                "the endpoint's host is no host, or its port is not from 1 to 65535"
            ) from None
        if tells(self.key, f"{self.url}\n{self.model}"):
            raise ValueError("the endpoint's url or model has the key in it, and would be recorded")
        if (
            self.tries < 1
            or not 0 < self.timeout <= 86_400
            or min(self.pause, self.wait, self.longest_wait) < 0
        ):
            raise ValueError("tries must be at least 1, timeout positive, and no pause negative")

    @property
    def key(self) -> str:
        """The key, empty for none."""
        return read_key(self.key_variable, needed=self.key_variable != Endpoint.key_variable)


@dataclass(frozen=True)
class Answer:
    """One answer of a chat endpoint, with what is needed to tell how it came about.

    ``finish`` says why it ended ("stop", or "length" where it reached the most tokens),
    ``answered_by`` and ``fingerprint`` what the server says of the model and of itself, ``tokens``
    how many the prompt and the answer had. ``written`` are the tokens of the answer with their
    natural log-probabilities, where they were asked for and given.
    """

    text: str
    finish: str
    answered_by: str
    fingerprint: str
    tokens: Mapping[str, int] = field(default_factory=dict)
    written: tuple[tuple[str, float | None], ...] = ()


def connect() -> Any:
    """An httpx client to ask with; it follows no redirect, which could carry the key elsewhere."""
    import httpx

    try:
        return httpx.Client(
            follow_redirects=False, limits=httpx.Limits(max_keepalive_connections=0)
        )
    except (ImportError, ValueError, OSError):
        raise ValueError(
            "the environment names a proxy or certificates (HTTPS_PROXY, ...) that are of no use"
        ) from None


class _Deadline:
    """Cuts the connection of a request when its time is up; httpx bounds only each single read and write."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._connections: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        for connection in self._connections:
            connection.close()

    def watch(self, event: str, about: Mapping[str, Any]) -> None:
        """Take the connection when httpcore tells that it is there."""
        if event.endswith("connect_tcp.complete"):
            self._connections.append(about["return_value"].get_extra_info("socket").dup())
            if self.over:
                self._cut()

    def _cut(self) -> None:
        self.over = True
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _pause_asked(headers: Mapping[str, str]) -> float:
    """Seconds that a server asks to be left alone for: a number, or a date, by its own clock if it tells the time."""
    asked = headers.get("retry-after", "").strip()
    if asked.isdecimal():
        return float(asked)
    try:
        now = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return max(0.0, (parsedate_to_datetime(asked) - now).total_seconds())
    except (ValueError, TypeError):  # no date, or one without a zone
        return 0.0


def _whole(value: object) -> str:
    """Replace lone surrogates, which JSON may carry and no file may."""
    return str(value or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(choice: Mapping[str, Any]) -> tuple[tuple[str, float | None], ...]:
    """Tokens of an answer with their log-probabilities; a server that gives none, or nonsense, is no failure."""
    found = choice.get("logprobs")
    listed = found.get("content") if isinstance(found, dict) else None
    pairs: list[tuple[str, float | None]] = []
    for entry in listed if isinstance(listed, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
            return ()
        value = entry.get("logprob")
        good = (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and math.isfinite(value)
            and value <= 0
        )
        pairs.append((_whole(entry["token"]), float(value or 0) if good else None))
    return tuple(pairs)


def read_answer(body: bytes) -> Answer:
    """Take apart what a server sends back, JSON in the OpenAI chat format."""
    try:
        data = json.loads(body)
        choice = data["choices"][0]
        text, finish = choice["message"]["content"], choice["finish_reason"]
    except (ValueError, RecursionError):
        raise EndpointError("the answer is not JSON, or only a part of it", passing=True) from None
    except (KeyError, IndexError, TypeError):
        raise EndpointError(
            "the answer lacks choices[0].message.content or finish_reason", passing=True
        ) from None
    if not isinstance(text, str) or not isinstance(finish, str):
        raise EndpointError("the answer's content or finish_reason is not text", passing=True)
    counted = data["usage"] if isinstance(data.get("usage"), dict) else {}
    counts = {name: counted.get(name) for name in ("prompt_tokens", "completion_tokens")}
    return Answer(
        text=_whole(text),
        finish=_whole(finish)[:_LONGEST_WORD],
        answered_by=PurePosixPath(_whole(data.get("model"))).name[
            :_LONGEST_WORD
        ],  # local servers give a path
        fingerprint=_whole(data.get("system_fingerprint"))[:_LONGEST_WORD],
        tokens={name: n for name, n in counts.items() if type(n) is int and 0 <= n < _MOST_TOKENS},
        written=_written(choice),
    )


def _without_key(answer: Answer, key: str) -> Answer:
    """An answer with nothing of the key in it."""
    text = kept_out(key, answer.text)
    said = {name: getattr(answer, name) for name in ("finish", "answered_by", "fingerprint")}
    if tells(key, "".join(said.values())):
        said = {name: kept_out(key, key) for name in said}
    told = text != answer.text or tells(key, "".join(token for token, _ in answer.written))
    return replace(answer, text=text, written=() if told else answer.written, **said)


def _ask(client: Any, endpoint: Endpoint, request: Mapping[str, Any]) -> Answer:
    import httpx

    key, body = endpoint.key, bytearray()
    late = EndpointError(f"no complete answer within {endpoint.timeout:g} s", passing=True)
    url, headers = endpoint.url.rstrip("/") + "/chat/completions", {"Accept-Encoding": "identity"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    with _Deadline(endpoint.timeout) as deadline:
        how: dict[str, Any] = {"timeout": endpoint.timeout, "extensions": {"trace": deadline.watch}}
        try:
            with client.stream("POST", url, json=request, headers=headers, **how) as response:
                for chunk in response.iter_raw():
                    body += chunk
                    if len(body) > _LARGEST_ANSWER:
                        raise EndpointError(
                            f"the answer is longer than {_LARGEST_ANSWER} bytes", passing=True
                        )
        except httpx.RequestError as error:
            if deadline.over or isinstance(error, httpx.TimeoutException):
                raise late from None
            raise EndpointError(
                f"the connection failed ({type(error).__name__})", passing=True
            ) from None
    if deadline.over:
        raise late
    if response.status_code != 200:
        passing = response.status_code in _PASSING or response.status_code >= 500
        said = " ".join(
            kept_out(key, body[: 20 * _LONGEST_WORD].decode("utf-8", "replace")).split()
        )[:_LONGEST_WORD]
        said = "".join(letter if letter.isprintable() else "\ufffd" for letter in said)
        message = f"HTTP {response.status_code}{': ' if said else ''}{said}"
        raise EndpointError(message, passing=passing, wait=_pause_asked(response.headers))
    if response.headers.get("content-encoding", "identity") != "identity":
        raise EndpointError("the answer is compressed, which was not asked for", passing=True)
    return _without_key(read_answer(bytes(body)), key)


def ask_patiently(
    client: Any,
    endpoint: Endpoint,
    sampling: Sampling,
    messages: Sequence[Mapping[str, str]],
    *,
    logprobs: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Answer, list[str]]:
    """Ask until there is an answer, and tell what went wrong on the way.

    A message is a mapping of ``role`` and ``content``, the system prompt one of them.
    """
    request = asdict(sampling) | {
        "model": endpoint.model,
        "messages": list(messages),
        "stream": False,
    }
    del request["system"]
    request |= {"logprobs": True} if logprobs else {}
    mishaps: list[str] = []
    while True:
        try:
            return _ask(client, endpoint, request), mishaps
        except EndpointError as error:
            mishaps.append(str(error))
            if not error.passing:
                raise
            wait = max(
                min(endpoint.wait * 2.0 ** (len(mishaps) - 1), endpoint.longest_wait), error.wait
            )
            if len(mishaps) >= endpoint.tries or wait > endpoint.longest_wait:
                raise EndpointError(
                    f"no answer after {len(mishaps)} tries: {'; '.join(mishaps)}"
                ) from None
            sleep(wait)
