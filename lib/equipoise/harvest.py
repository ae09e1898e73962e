"""Harvest conversations with a chat system by the two-round protocol.

The first user turn asks for entities in a stated format. If the answer looks useful, the second asks for more; if it
does not, the second asks to keep to the format; if it ends the conversation (a dialogue breakdown), there is no second
turn.

Any endpoint that speaks the OpenAI chat format will do. Every answered turn is one line of a JSON Lines record, written
through to the disk before the next request, after a first line with all settings. Harvesting again into the same record
goes on where it stopped. A request that fails in a way that may pass (no connection, a time-out, a torn or senseless
answer, HTTP 408, 409, 425, 429 or 5xx) is repeated after a pause that doubles each time, or that the server asked for.

The protocol is that of gfrc, section 4.1 and Figure 1. There a person judged the answers and typed on a web page; here
`judge_answer` applies written rules, and every conversation starts afresh, so that no earlier topic can leak into it.

References
----------
gfrc: Sakai, T. (2023): Fairness-based Evaluation of Conversational Search: A Pilot Study. EVIA 2023, pp. 5-13.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import httpx

from equipoise.loaders.harvests import parse_record
from equipoise.tables import InputError, Problem, read_columns

__all__ = [
    "Endpoint",
    "HarvestError",
    "Judgement",
    "Protocol",
    "Sampling",
    "Topic",
    "ask",
    "harvest",
    "judge_answer",
    "read_topics",
]

LARGEST_ANSWER = 4 * 2**20
"""Bytes of a server's answer beyond which it is taken for garbage."""

PASSING = frozenset({408, 409, 425, 429})
"""HTTP statuses below 500 that a later try may not meet again."""

REFUSALS = (
    r"\b(?:unable|not able) to (?:help|assist|provide|fulfil|access|list|browse|complete)",
    r"\b(?:can(?:no|')t|cannot|could not|couldn't) (?:help|assist|provide|fulfil|access|list|browse|complete)",
    r"\b(?:only|just) an? (?:\w+ )?(?:language model|assistant)",
    r"\bas an? (?:\w+[ -])*?(?:language model|assistant)",
    r"\boutside (?:of )?my capabilities",
    r"\b(?:don't|do not) have (?:the necessary )?(?:access|information|ability|abilities)",
)
"""Wordings (regular expressions, case ignored) by which a system declines a request."""

_URL = re.compile(r"(?:https?://|\bwww\.)([^\s/<>()\[\]\"'?#]+)[^\s<>()\[\]\"']*", re.IGNORECASE)
_WORDS = re.compile(r"\w{2,}")


class HarvestError(RuntimeError):
    """A harvest, or one request of it, that could not be completed.

    Parameters
    ----------
    message : str
        What happened, and what to do.
    passing : bool
        Whether a later try may succeed.
    wait : float or None
        Seconds that the server asked to wait before the next try.

    Examples
    --------
    >>> HarvestError("HTTP 503", passing=True).passing
    True
    """

    def __init__(self, message: str, *, passing: bool = False, wait: float | None = None) -> None:
        super().__init__(message)
        self.passing = passing
        self.wait = wait


@dataclass(frozen=True)
class Topic:
    """What a conversation asks for.

    Parameters
    ----------
    topic : str
        Id, for example ``M002``.
    kind : str
        Topic type, for example ``M``; statistics are grouped by it.
    request : str
        The request, without the format.
    format : str
        The format of a line of the answer, for example ``movie title, IMDb URL``.
    site : str
        What the host of a URL must end with to count as requested; empty for any.

    Examples
    --------
    >>> Topic("M002", "M", "Please list up movies.", "movie title, IMDb URL").site
    ''
    """

    topic: str
    kind: str
    request: str
    format: str
    site: str = ""


@dataclass(frozen=True)
class Protocol:
    """The wording of the two rounds, and the rules by which an answer is judged.

    Parameters
    ----------
    first, more, adhere : str
        User turn 1; user turn 2 after a useful and after a useless answer. ``{request}`` and ``{format}`` stand for the
        topic's.
    refusals : tuple of str
        Regular expressions, case ignored: a useless answer that matches one is a breakdown.

    Notes
    -----
    gfrc, section 4.1.

    Examples
    --------
    >>> print(Protocol().first_turn(Topic("M002", "M", "Please list up movies.", "title, URL")))
    Please list up movies.
    Format: title, URL
    >>> Protocol().second_turn(Topic("M002", "M", "Please list up movies.", "title, URL"), useful=True)
    'Can you name a few more?'
    """

    first: str = "{request}\nFormat: {format}"
    more: str = "Can you name a few more?"
    adhere: str = 'Adhere to the output format I specified:\n"Format: {format}"'
    refusals: tuple[str, ...] = REFUSALS

    def _fill(self, wording: str, topic: Topic) -> str:
        return wording.replace("{request}", topic.request).replace("{format}", topic.format)

    def first_turn(self, topic: Topic) -> str:
        """User turn 1 for a topic."""
        return self._fill(self.first, topic)

    def second_turn(self, topic: Topic, *, useful: bool) -> str:
        """User turn 2 for a topic, after an answer that was useful or not."""
        return self._fill(self.more if useful else self.adhere, topic)


@dataclass(frozen=True)
class Sampling:
    """How the system samples its answers.

    Parameters
    ----------
    temperature, top_p : float
        As in the chat format.
    max_tokens : int
        Longest answer; one that reaches it is recorded with ``finish`` "length".
    seed : int
        Seed of the first answer; every topic, trial and turn has its own, counted on from it.
    system : str
        System prompt; empty for none.

    Examples
    --------
    >>> Sampling(max_tokens=100).temperature
    0.7
    """

    temperature: float = 0.7
    top_p: float = 0.95
    max_tokens: int = 512
    seed: int = 0
    system: str = ""


@dataclass(frozen=True)
class Endpoint:
    """A chat endpoint and how patiently it is asked.

    Parameters
    ----------
    url : str
        Base, to which ``/chat/completions`` is added. A password or a query in it is refused: it would be recorded.
    model : str
        The model's name.
    key_variable : str
        Environment variable that holds the key. The key is sent as bearer token and never written; without one none is
        sent.
    timeout : float
        Seconds within which an answer must be complete.
    tries : int
        Most requests for one answer.
    pause : float
        Seconds before every request but the first.
    wait, longest_wait : float
        Seconds before the second try, doubled for each further one, and the most ever waited.

    Raises
    ------
    ValueError
        If the url is no plain http(s) url, or a number is out of range.

    Examples
    --------
    >>> Endpoint("http://127.0.0.1:8080/v1", "qwen").tries
    4
    >>> Endpoint("http://user:secret@127.0.0.1/v1", "qwen")
    Traceback (most recent call last):
        ...
    ValueError: the endpoint must be a plain http(s) url without user, password, query or fragment
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
class Judgement:
    """How an answer looks: useful or not, and whether it ends the conversation.

    Parameters
    ----------
    useful : bool
        At least one line names something and gives a URL as requested.
    breakdown : bool
        The answer is useless and declines the request, or is empty.

    Examples
    --------
    >>> Judgement(useful=True, breakdown=False).mark
    'o'
    """

    useful: bool
    breakdown: bool

    @property
    def mark(self) -> str:
        """``o`` or ``x``, as in the cells of gfrc's Figures 2 to 4."""
        return "o" if self.useful else "x"


def judge_answer(text: str, site: str = "", refusals: Sequence[str] = REFUSALS) -> Judgement:
    """Judge an answer by its form: does a line name an entity with its URL, does it decline.

    Whether the entities are relevant, or the URLs right, is not looked at: that is for the nugget annotation.

    Parameters
    ----------
    text : str
        The system turn.
    site : str
        What the host of a URL must end with (``imdb.com`` accepts ``www.imdb.com``); empty for any.
    refusals : sequence of str
        Regular expressions, case ignored.

    Returns
    -------
    Judgement
        Useful, or a breakdown, or neither.

    Notes
    -----
    gfrc, section 5: "o" gives some URLs as requested, "x" has no useful URLs or refuses; the author judged by eye.

    Examples
    --------
    >>> judge_answer("12 Monkeys (1995): https://www.imdb.com/title/tt0114746/", "imdb.com")
    Judgement(useful=True, breakdown=False)
    >>> judge_answer("12 Monkeys and Looper are well known.")
    Judgement(useful=False, breakdown=False)
    >>> judge_answer("I'm unable to help you with that, as I'm only a language model.")
    Judgement(useful=False, breakdown=True)
    """
    for line in text.splitlines():
        hosts = [match[1].lower().rstrip(".,:;") for match in _URL.finditer(line)]
        asked = any(not site or host == site.lower() or host.endswith("." + site.lower()) for host in hosts)
        if asked and _WORDS.search(_URL.sub(" ", line)):
            return Judgement(useful=True, breakdown=False)
    plain = text.replace("’", "'")
    declined = any(re.search(wording, plain, re.IGNORECASE) for wording in refusals)
    return Judgement(useful=False, breakdown=declined or not text.strip())


def read_topics(path: str | Path) -> list[Topic]:
    """Read the topics of a harvest from a CSV file with the columns topic, type, request, format and site.

    Parameters
    ----------
    path : str or Path
        The file; ``site`` may be empty.

    Returns
    -------
    list of Topic
        In file order.

    Raises
    ------
    InputError
        If the file is no such table, a field other than ``site`` is empty, or a topic comes twice.

    Examples
    --------
    >>> from equipoise import project
    >>> len(read_topics(project.data("conversations", "harvest", "topics.csv")))
    15
    """
    table = read_columns(path, ["topic", "type", "request", "format", "site"])
    problems = [
        Problem(str(path), None, column, f"an empty field for topic {topic!r}", "some text")
        for column in ("topic", "type", "request", "format")
        for topic in table.loc[table[column].str.strip() == "", "topic"]
    ]
    again = table.loc[table["topic"].duplicated(), "topic"]
    problems += [Problem(str(path), None, "topic", f"{topic!r} again", "each topic once") for topic in again]
    if problems:
        raise InputError(problems)
    return [Topic(*(str(field).strip() for field in row)) for row in table.itertuples(index=False)]


@dataclass(frozen=True)
class Answer:
    """One answer of a chat endpoint, with what is needed to tell how it came about."""

    text: str
    finish: str
    answered_by: str
    fingerprint: str
    tokens: Mapping[str, int] = field(default_factory=dict)


def _whole(text: str) -> str:
    """Replace lone surrogates, which JSON may carry and no file may."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_answer(body: bytes) -> Answer:
    """Take an answer apart, or say by a passing HarvestError what is missing in it."""
    try:
        data = json.loads(body)
        choice = data["choices"][0]
        text, finish = choice["message"]["content"], choice["finish_reason"]
    except (ValueError, RecursionError):
        raise HarvestError("the answer is not JSON, or only a part of it", passing=True) from None
    except (KeyError, IndexError, TypeError):
        raise HarvestError("the answer lacks choices[0].message.content or finish_reason", passing=True) from None
    if not isinstance(text, str) or not isinstance(finish, str):
        raise HarvestError("the answer's content or finish_reason is not text", passing=True)
    usage = data.get("usage")
    counts = (
        {k: v for k in ("prompt_tokens", "completion_tokens") if isinstance(v := (usage or {}).get(k), int)}
        if (isinstance(usage, dict))
        else {}
    )
    return Answer(
        text=_whole(text),
        finish=_whole(finish),
        answered_by=PurePosixPath(_whole(str(data.get("model") or ""))).name,  # local servers give a path
        fingerprint=_whole(str(data.get("system_fingerprint") or "")),
        tokens=counts,
    )


def _asked_wait(response: httpx.Response) -> float | None:
    stated = response.headers.get("retry-after", "")
    return float(stated) if stated.isdecimal() else None


def ask(client: httpx.Client, endpoint: Endpoint, sampling: Sampling, messages: Sequence[Mapping[str, str]]) -> Answer:
    """Put one request to the endpoint, once.

    Parameters
    ----------
    client : httpx.Client
        The connection.
    endpoint : Endpoint
        Where, and within how many seconds.
    sampling : Sampling
        How to sample, the seed included.
    messages : sequence of mappings
        The conversation so far: ``role`` and ``content``.

    Returns
    -------
    Answer
        The complete answer.

    Raises
    ------
    HarvestError
        With `passing` true for failures that another try may not meet; false for those it will (a wrong key, an unknown
        model or address).
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
    }
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
                    raise HarvestError(f"no complete answer within {endpoint.timeout:g} s", passing=True)
                if len(body) > LARGEST_ANSWER:
                    raise HarvestError(f"the answer is longer than {LARGEST_ANSWER} bytes", passing=True)
    except httpx.TimeoutException:
        raise HarvestError(f"no complete answer within {endpoint.timeout:g} s", passing=True) from None
    except httpx.RequestError as error:
        raise HarvestError(f"the connection failed ({type(error).__name__})", passing=True) from None
    status = response.status_code
    if status != httpx.codes.OK:
        passing = status in PASSING or status >= httpx.codes.INTERNAL_SERVER_ERROR
        said = " ".join(body.decode("utf-8", "replace").split())[:200]
        message = f"HTTP {status}: {said}" if said else f"HTTP {status}"
        raise HarvestError(_without_key(message, key), passing=passing, wait=_asked_wait(response))
    answer = _read_answer(bytes(body))
    return Answer(_without_key(answer.text, key), answer.finish, answer.answered_by, answer.fingerprint, answer.tokens)


def _without_key(text: str, key: str) -> str:
    return text.replace(key, "[key]") if key else text


def _ask_patiently(
    client: httpx.Client,
    endpoint: Endpoint,
    sampling: Sampling,
    messages: Sequence[Mapping[str, str]],
    sleep: Callable[[float], None],
) -> tuple[Answer, list[str]]:
    """Ask until there is an answer, and return it with the mishaps on the way."""
    mishaps: list[str] = []
    while True:
        try:
            return ask(client, endpoint, sampling, messages), mishaps
        except HarvestError as error:
            mishaps.append(str(error))
            if not error.passing:
                raise
            wait = min(endpoint.wait * 2.0 ** (len(mishaps) - 1), endpoint.longest_wait)
            if error.wait is not None:
                wait = max(wait, error.wait)
            if len(mishaps) >= endpoint.tries or wait > endpoint.longest_wait:
                raise HarvestError(f"no answer after {len(mishaps)} tries: {'; '.join(mishaps)}") from None
            sleep(wait)


def _settings(topics: Sequence[Topic], endpoint: Endpoint, sampling: Sampling, protocol: Protocol, note: str) -> Any:
    stated = {
        "record": "settings",
        "endpoint": endpoint.url,
        "model": endpoint.model,
        "sampling": asdict(sampling),
        "protocol": asdict(protocol),
        "topics": [asdict(topic) for topic in topics],
        "note": note,
    }
    return json.loads(json.dumps(stated))  # as it will be read back: tuples are lists


def _resume(record: Path, settings: Mapping[str, Any]) -> dict[tuple[int, str, int], Mapping[str, Any]]:
    """Read the turns that a record has; refuse one that other settings made; cut off a line without its end."""
    stated, turns = parse_record(record)
    differing = sorted(k for k in settings.keys() | stated.keys() if settings.get(k) != stated.get(k)) if stated else []
    if differing:
        raise InputError(
            Problem(str(record), 1, k, json.dumps(stated.get(k)), f"{json.dumps(settings.get(k))}, or another record")
            for k in differing
        )
    data = record.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with record.open("r+b") as file:
            file.truncate(whole)
    return {(turn["trial"], turn["topic"], turn["turn"]): turn for turn in turns}


def _append(record: Path, line: Mapping[str, Any]) -> None:
    with record.open("ab") as file:
        file.write(json.dumps(line, sort_keys=True).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def harvest(
    topics: Sequence[Topic],
    endpoint: Endpoint,
    record: Path,
    *,
    trials: int = 2,
    sampling: Sampling | None = None,
    protocol: Protocol | None = None,
    note: str = "",
    give_up: int = 3,
    progress: Callable[[Iterable[tuple[int, int]]], Iterable[tuple[int, int]]] = iter,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Hold the two-round conversation of every topic, in the topics' order, and that as often as there are trials.

    Parameters
    ----------
    topics : sequence of Topic
        In the order in which they are put.
    endpoint : Endpoint
        The system.
    record : Path
        JSON Lines file. Turns that it holds already are not asked again; a last line that an interruption left without
        its end is cut off and asked anew.
    trials : int
        How often the whole list is gone through; trial 1 is complete before trial 2 begins.
    sampling : Sampling, optional
        How answers are sampled. The answer in turn u to topic number i (from 0) in trial t (from 1) has the seed
        ``seed + 2 (len(topics) (t - 1) + i) + u - 1``.
    protocol : Protocol, optional
        Wording and rules.
    note : str
        A remark kept with the settings, for example the sha256 of a local model or the day of a web service.
    give_up : int
        After so many failed conversations in a row nothing more is asked.
    progress : callable
        Wraps the iterator over (trial, topic number), for a progress bar.
    sleep : callable
        Waits so many seconds.

    Returns
    -------
    int
        How many turns were asked now.

    Raises
    ------
    HarvestError
        When a conversation could not be completed. All answers there were are in the record, every other conversation
        was held unless `give_up` was reached or another try was useless; harvest again to complete it.
    InputError
        If the record was made with other settings (each is named), or is no record.
    ValueError
        If there is no topic, a topic occurs twice, or there is no trial.

    Notes
    -----
    gfrc, section 4: the topics in their order, then all of them again, so that order and trial are not confounded.
    """
    sampling, protocol = sampling or Sampling(), protocol or Protocol()
    names = [topic.topic for topic in topics]
    if not names or len(set(names)) < len(names) or trials < 1:
        raise ValueError("a harvest needs at least one trial and one topic, and no topic twice")
    settings = _settings(topics, endpoint, sampling, protocol, note)
    record.parent.mkdir(parents=True, exist_ok=True)
    done = _resume(record, settings) if record.exists() else {}
    if not record.exists() or record.stat().st_size == 0:
        _append(record, settings)
    asked, failures, in_a_row = 0, list[str](), 0
    with httpx.Client(follow_redirects=False) as client:
        for trial, number in progress([(t, i) for t in range(1, trials + 1) for i in range(len(topics))]):
            topic = topics[number]
            messages = [{"role": "system", "content": sampling.system}] if sampling.system else []
            user: str | None = protocol.first_turn(topic)
            turn = 1
            while user is not None:
                messages.append({"role": "user", "content": user})
                line = done.get((trial, topic.topic, turn))
                if line is None:
                    if asked and endpoint.pause:
                        sleep(endpoint.pause)
                    seed = sampling.seed + 2 * (len(topics) * (trial - 1) + number) + turn - 1
                    own = Sampling(sampling.temperature, sampling.top_p, sampling.max_tokens, seed, sampling.system)
                    try:
                        answer, mishaps = _ask_patiently(client, endpoint, own, messages, sleep)
                    except HarvestError as error:
                        failures.append(f"topic {topic.topic}, trial {trial}, turn {turn}: {error}")
                        in_a_row += 1
                        if in_a_row >= give_up:
                            raise _incomplete(failures, record, stopped=True) from error
                        break
                    judgement = judge_answer(answer.text, topic.site, protocol.refusals)
                    line = {
                        "record": "turn",
                        "trial": trial,
                        "topic": topic.topic,
                        "turn": turn,
                        "user": user,
                        "system": answer.text,
                        "outcome": judgement.mark,
                        "breakdown": judgement.breakdown,
                        "finish": answer.finish,
                        "seed": seed,
                        "answered_by": answer.answered_by,
                        "fingerprint": answer.fingerprint,
                        "mishaps": mishaps,
                        **answer.tokens,
                    }
                    _append(record, line)
                    asked += 1
                in_a_row = 0
                messages.append({"role": "assistant", "content": line["system"]})
                over = turn == 2 or (line["outcome"] == "x" and line["breakdown"])
                user = None if over else protocol.second_turn(topic, useful=line["outcome"] == "o")
                turn += 1
    if failures:
        raise _incomplete(failures, record, stopped=False)
    return asked


def _incomplete(failures: Sequence[str], record: Path, *, stopped: bool) -> HarvestError:
    end = "Given up after failures in a row." if stopped else "All other conversations are complete."
    listed = "\n  ".join(failures)
    return HarvestError(
        f"{len(failures)} conversations lack an answer:\n  {listed}\n{end} Harvest again into {record}."
    )
