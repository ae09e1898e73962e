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
    """A request that could not be answered.

    ``passing``: whether a later try may be answered, after ``wait`` seconds at least. ``limited``:
    whether the server works, and limits how often or how much it is asked.
    """

    def __init__(
        self, message: str, *, passing: bool = False, wait: float = 0.0, limited: bool = False
    ) -> None:
        super().__init__(message)
        self.passing = passing
        self.wait = wait
        self.limited = limited


def refuse_secrets(url: str) -> None:
    """Raise ValueError unless this is a plain http(s) url: another could hold a secret."""
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
    never more than ``longest_wait``. While the server limits its rate, one answer is waited for up
    to ``patience`` seconds in all instead, however often that is tried. Without a ``key_variable``
    no key is sent.
    """

    url: str
    model: str
    key_variable: options.KeyVariable | None = "OPENAI_API_KEY"
    timeout: options.Timeout = 120.0
    tries: options.Tries = 4
    pause: options.Pause = 0.0
    wait: float = 1.0
    longest_wait: float = 60.0
    patience: float = 0.0

    def __post_init__(self) -> None:
        refuse_secrets(self.url)
        import httpx

        try:
            httpx.URL(self.url)
            url_parts = urlsplit(self.url)
            (url_parts.hostname or "").encode("idna")
            if url_parts.port == 0:
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
            or min(self.pause, self.wait, self.longest_wait, self.patience) < 0
        ):
            raise ValueError("tries must be at least 1, timeout positive, and no pause negative")

    @property
    def key(self) -> str:
        """The key, empty for none."""
        if self.key_variable is None:
            return ""
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
    """Cuts the connection of a request when its time is up.

    httpx bounds only each single read and write.
    """

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


# --- answers --------------------------------------------------------------------------------------


def _pause_asked(headers: Mapping[str, str]) -> float:
    """Seconds that a server asks to be left alone for: a number, or until a date.

    The date is by the server's own clock, if it tells the time.
    """
    pause = headers.get("retry-after", "").strip()
    if pause.isdecimal():
        return float(pause)
    try:
        end = parsedate_to_datetime(pause)
        now = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return max(0.0, (end - now).total_seconds())
    except (ValueError, TypeError):  # no date, or one without a zone
        return 0.0


def _without_surrogates(value: object) -> str:
    """A text with lone surrogates replaced, which JSON may carry and no file may."""
    return str(value or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _log_probability(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and value <= 0:
        return float(value)
    return None


def _written(choice: Mapping[str, Any]) -> tuple[tuple[str, float | None], ...]:
    """Tokens of an answer with their log-probabilities.

    A server that gives none, or nonsense, is no failure.
    """
    logprobs = choice.get("logprobs")
    entries = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(entries, list):
        return ()
    tokens = []
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
            return ()
        token = _without_surrogates(entry["token"])
        tokens.append((token, _log_probability(entry.get("logprob"))))
    return tuple(tokens)


def _token_counts(usage: object) -> dict[str, int]:
    counts = {}
    for name in ("prompt_tokens", "completion_tokens"):
        count = usage.get(name) if isinstance(usage, dict) else None
        if type(count) is int and 0 <= count < _MOST_TOKENS:
            counts[name] = count
    return counts


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
    # Local servers give the path of a model.
    model = PurePosixPath(_without_surrogates(data.get("model"))).name
    fingerprint = _without_surrogates(data.get("system_fingerprint"))
    return Answer(
        text=_without_surrogates(text),
        finish=_without_surrogates(finish)[:_LONGEST_WORD],
        answered_by=model[:_LONGEST_WORD],
        fingerprint=fingerprint[:_LONGEST_WORD],
        tokens=_token_counts(data.get("usage")),
        written=_written(choice),
    )


def _without_key(answer: Answer, key: str) -> Answer:
    """An answer with nothing of the key in it."""
    text = kept_out(key, answer.text)
    names = ("finish", "answered_by", "fingerprint")
    words = {name: getattr(answer, name) for name in names}
    # A key may be spread over the words, or over the tokens.
    if tells(key, "".join(words.values())):
        words = dict.fromkeys(names, kept_out(key, key))
    written = answer.written
    if text != answer.text or tells(key, "".join(token for token, _ in written)):
        written = ()
    return replace(answer, text=text, written=written, **words)


# --- requests -------------------------------------------------------------------------------------


def _refused_status(response: Any, body: bytes, key: str) -> EndpointError:
    """The error of an answer whose status is not 200."""
    text = kept_out(key, body[: 20 * _LONGEST_WORD].decode("utf-8", "replace"))
    text = " ".join(text.split())[:_LONGEST_WORD]
    printable = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    message = f"HTTP {response.status_code}"
    if printable:
        message += f": {printable}"
    passing = response.status_code in _PASSING or response.status_code >= 500
    wait = _pause_asked(response.headers)
    limited = response.status_code == 429 or (response.status_code == 503 and wait > 0)
    return EndpointError(message, passing=passing, wait=wait, limited=limited)


def _read_body(response: Any) -> bytes:
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > _LARGEST_ANSWER:
            message = f"the answer is longer than {_LARGEST_ANSWER} bytes"
            raise EndpointError(message, passing=True)
    return bytes(body)


def _ask(client: Any, endpoint: Endpoint, request: Mapping[str, Any]) -> Answer:
    import httpx

    key = endpoint.key
    url = endpoint.url.rstrip("/") + "/chat/completions"
    headers = {"Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    too_late = EndpointError(f"no complete answer within {endpoint.timeout:g} s", passing=True)
    with _Deadline(endpoint.timeout) as deadline:
        try:
            with client.stream(
                "POST",
                url,
                json=request,
                headers=headers,
                timeout=endpoint.timeout,
                extensions={"trace": deadline.watch},
            ) as response:
                body = _read_body(response)
        except httpx.RequestError as error:
            if deadline.over or isinstance(error, httpx.TimeoutException):
                raise too_late from None
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                message = "the certificate of the endpoint is not trusted (SSL_CERT_FILE names one)"
                raise EndpointError(message) from None
            message = f"the connection failed ({type(error).__name__})"
            raise EndpointError(message, passing=True) from None
    if deadline.over:
        raise too_late
    if response.status_code != 200:
        raise _refused_status(response, body, key)
    if response.headers.get("content-encoding", "identity") != "identity":
        raise EndpointError("the answer is compressed, which was not asked for", passing=True)
    return _without_key(read_answer(body), key)


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
    request = asdict(sampling)
    del request["system"]
    request |= {"model": endpoint.model, "messages": list(messages), "stream": False}
    if logprobs:
        request["logprobs"] = True
    mishaps: list[str] = []
    limits = 0
    waited = 0.0
    while True:
        try:
            return _ask(client, endpoint, request), mishaps
        except EndpointError as error:
            mishaps.append(str(error))
            if not error.passing:
                raise
            doubled_wait = endpoint.wait * 2.0 ** min(len(mishaps) - 1, 30)
            wait = max(min(doubled_wait, endpoint.longest_wait), error.wait)
            limited = error.limited and endpoint.patience > 0
        if limited:
            limits += 1
            waited += wait
            if waited > endpoint.patience:
                budget = f"its rate is limited for longer than {endpoint.patience:g} s"
                raise EndpointError(
                    f"no answer after {len(mishaps)} tries: {budget}: {mishaps[-1]}"
                )
        elif len(mishaps) - limits >= endpoint.tries or wait > endpoint.longest_wait:
            raise EndpointError(f"no answer after {len(mishaps)} tries: {'; '.join(mishaps)}")
        sleep(wait)
