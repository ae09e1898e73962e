"""Harvest conversations: hold the two-round protocol with a chat system, into a record.

What is recorded already is not asked again, so that an interrupted harvest can be gone on with.

The first user turn asks for entities in a stated format. If the answer looks useful, the second
asks for more; if it does not, the second asks to keep to the format; if it ends the conversation (a
dialogue breakdown), there is no second turn.

Any endpoint that speaks the OpenAI chat format will do. Every answered turn is one line of a record
(`equipoise_studies.records`), after a first line with all settings;
`equipoise_studies.recorded_conversations` reads it. Requests are put as patiently as
`equipoise_studies.systems.endpoint` does.

The protocol is that of gfrc, section 4.1 and Figure 1. There a person judged the answers and typed
on a web page; here `judge_answer` applies written rules, and every conversation starts afresh, so
that no earlier topic can leak into it.

References
----------
gfrc: Sakai, T. (2023): Fairness-based Evaluation of Conversational Search: A Pilot Study. EVIA
2023, pp. 5-13.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from equipoise.files import read_columns, read_text, unpacked_name
from equipoise.loaders.transcripts import is_word
from equipoise.options import Note, Parallel, Rounds, Session, Trials
from equipoise.problems import Problems, shown
from equipoise_studies import records
from equipoise_studies.recorded_conversations import parse_record
from equipoise_studies.systems.endpoint import (
    Answer,
    Endpoint,
    EndpointError,
    Sampling,
    ask_patiently,
    connect,
)
from equipoise_studies.systems.keys import tells

REFUSALS = (
    r"\b(?:unable|not able) to (?:help|assist|provide|fulfil|access|list|browse|complete)",
    r"\b(?:can(?:no|')t|cannot|could not|couldn't) "
    r"(?:help|assist|provide|fulfil|access|list|browse|complete)",
    r"\b(?:only|just) an? (?:\w+ )?(?:language model|assistant)",
    r"\bas an? (?:\w+[ -])*?(?:language model|assistant)",
    r"\boutside (?:of )?my capabilities",
    r"\b(?:don't|do not) have (?:the necessary )?(?:access|information|ability|abilities)",
)
"""Wordings (regular expressions, case ignored) by which a system declines a request."""

Conversations = Sequence[tuple[int, int]]
"""Those of a session: the trial, and the number of the topic, of each."""

_URL = re.compile(r"(?:https?://|\bwww\.)([^\s/<>()\[\]\"'?#]+)[^\s<>()\[\]\"']*", re.IGNORECASE)
_WORDS = re.compile(r"\w{2,}")


class HarvestError(RuntimeError):
    """A harvest that could not be completed: what happened, and what to do."""


@dataclass(frozen=True)
class Topic:
    """What a conversation asks for: an id such as ``M002``, a type such as ``M``, and the request.

    ``format`` is that of a line of the answer, such as ``movie title, IMDb URL``; ``site`` is what
    the host of a URL must end with to count as requested, empty for any.
    """

    topic: str
    kind: str
    request: str
    format: str
    site: str = ""


@dataclass(frozen=True)
class Protocol:
    """The wording of the two rounds (gfrc, section 4.1), and how a system declines.

    User turn 1, and user turn 2 after a useful and after a useless answer; ``{request}`` and
    ``{format}`` stand for the topic's. ``refusals`` are regular expressions, case ignored.
    """

    first: str = "{request}\nFormat: {format}"
    more: str = "Can you name a few more?"
    adhere: str = 'Adhere to the output format I specified:\n"Format: {format}"'
    refusals: tuple[str, ...] = REFUSALS

    def user_turn(self, topic: Topic, answered: str = "") -> str:
        """What the user says first, or after an answer marked ``o`` or ``x``."""
        wording = {"": self.first, "o": self.more, "x": self.adhere}[answered]
        return wording.replace("{request}", topic.request).replace("{format}", topic.format)


QUESTIONS = Protocol(
    first="{request}",
    more="Can you tell me more about that?",
    adhere="Please answer my question:\n{request}",
)
"""The wording for plain questions, which ask for no format."""


@dataclass(frozen=True)
class Judgement:
    """How an answer looks.

    It is useful if at least one line names something and gives a URL as requested; a useless one
    that declines the request, or is empty, is a breakdown of the dialogue.
    """

    useful: bool
    breakdown: bool

    @property
    def mark(self) -> str:
        """``o`` or ``x``, as in the cells of gfrc's Figures 2 to 4."""
        return "o" if self.useful else "x"


def judge_answer(text: str, site: str = "", refusals: Sequence[str] = REFUSALS) -> Judgement:
    """Judge an answer by its form: does a line name an entity with its URL, does it decline.

    Whether the entities are relevant, or the URLs right, is not looked at: that is for the nugget
    annotation. A site of ``imdb.com`` accepts ``www.imdb.com``.

    gfrc, section 5: "o" gives some URLs as requested, "x" has no useful URLs or refuses; the author
    judged by eye.

    Examples
    --------
    >>> judge_answer("Tenet: https://www.imdb.com/title/tt6723592/", "imdb.com").mark
    'o'
    >>> judge_answer("As a language model, I cannot browse the web.")
    Judgement(useful=False, breakdown=True)
    """
    for line in text.splitlines():
        hosts = [match[1].lower().rstrip(".,:;") for match in _URL.finditer(line)]
        has_url = any(_is_of_site(host, site.lower()) for host in hosts)
        # Words beside the URL are taken for the name of what it leads to.
        if has_url and _WORDS.search(_URL.sub(" ", line)):
            return Judgement(useful=True, breakdown=False)
    is_declined = _is_declined(text, refusals)
    return Judgement(useful=False, breakdown=is_declined or not text.strip())


def judge_reply(text: str, refusals: Sequence[str] = REFUSALS) -> Judgement:
    """Judge the answer to a plain question: useful if it says something and declines nothing.

    >>> judge_reply("In Wales.").mark
    'o'
    """
    is_useful = bool(text.strip()) and not _is_declined(text, refusals)
    return Judgement(useful=is_useful, breakdown=not is_useful)


def _is_declined(text: str, refusals: Sequence[str]) -> bool:
    # Models write apostrophes both ways; the wordings have the straight one.
    straight_text = text.replace("’", "'")
    return any(re.search(wording, straight_text, re.IGNORECASE) for wording in refusals)


def _is_of_site(host: str, site: str) -> bool:
    return not site or host == site or host.endswith("." + site)


def read_topics(path: str | Path) -> list[Topic]:
    """Topics of a harvest: a CSV file, or plain questions, one a line.

    Columns of the CSV are topic, type, request, format and site, of which site may be empty; or
    topic and question. Questions without a topic are called q1, q2 and so on.
    """
    text = read_text(path)
    first_line = text.lstrip().partition("\n")[0]
    names = [name.strip(' "\r') for name in first_line.split(",")]
    is_csv = "topic" in names or unpacked_name(path).lower().endswith(".csv")
    if not is_csv:
        questions = [line.strip() for line in text.split("\n") if line.strip()]
        return [_question(f"q{number}", line) for number, line in enumerate(questions, start=1)]
    if "question" in names:
        table = read_columns(path, ["topic", "question"])
        _refuse_topics(path, table, ("topic", "question"))
        return [_question(*row) for row in table.itertuples(index=False)]
    table = read_columns(path, ["topic", "type", "request", "format", "site"])
    _refuse_topics(path, table, ("topic", "type", "request", "format"))
    topics = []
    for row in table.itertuples(index=False):
        topics.append(Topic(*[str(value).strip() for value in row]))
    return topics


def _question(topic: str, text: str) -> Topic:
    """A plain question, which asks for no format and no site."""
    return Topic(topic.strip(), "question", text.strip(), format="")


def _refuse_topics(path: str | Path, table: Any, columns: Sequence[str]) -> None:
    """Refuse empty fields, ids that a transcript cannot have, and a topic that comes twice."""
    problems = Problems()
    for column in columns:
        for topic in table.loc[table[column].str.strip() == "", "topic"]:
            problems.add(path, None, column, f"an empty field for topic {topic!r}", "some text")
    for topic in table["topic"]:
        if topic.strip() and not is_word(topic):
            expected = "one word of letters that can be seen, as a transcript has it"
            problems.add(path, None, "topic", shown(topic), expected)
    for topic in table.loc[table["topic"].duplicated(), "topic"]:
        problems.add(path, None, "topic", f"{topic!r} again", "each topic once")
    problems.refuse()


# --- conversations --------------------------------------------------------------------------------


@dataclass
class _Harvest:
    """What the conversations of one harvest share, however many are held at a time.

    ``recorded`` are the turns of the record by trial, topic and turn.
    """

    topics: Sequence[Topic]
    rounds: int
    sampling: Sampling
    protocol: Protocol
    ask: Callable[[Sampling, Sequence[Mapping[str, str]]], tuple[Answer, list[str]]]
    record: Path
    recorded: dict[tuple[int, str, int], dict[str, Any]]
    pause: Callable[[], None]
    give_up: int
    n_asked: int = 0
    failures: list[str] = field(default_factory=list)
    failures_in_a_row: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def session(self, conversations: Conversations) -> None:
        """Hold conversations one behind the other in one session.

        None is begun once the harvest has given up, however slowly results are taken.
        """
        messages = []
        if self.sampling.system:
            messages.append({"role": "system", "content": self.sampling.system})
        for trial, number in conversations:
            if self.failures_in_a_row >= self.give_up:
                return
            if not self._conversation(trial, number, messages):
                return

    def _conversation(self, trial: int, number: int, messages: list[dict[str, str]]) -> bool:
        """Hold a conversation about a topic by its number; whether all of it was answered."""
        mark = ""
        for turn in range(1, self.rounds + 1):
            try:
                line = self._turn(trial, number, turn, mark, messages)
            except EndpointError as error:
                where = f"topic {self.topics[number].topic}, trial {trial}, turn {turn}"
                with self.lock:
                    self.failures.append(f"{where}: {error}")
                    self.failures_in_a_row += 1
                return False
            # A system that declines is not asked for more.
            if line["breakdown"]:
                break  # the user gives up; it counts as answered
            mark = line["outcome"]
        return True

    def _turn(
        self, trial: int, number: int, turn: int, mark: str, messages: list[dict[str, str]]
    ) -> dict[str, Any]:
        """One round, asked now or recorded before; it is added to the messages."""
        topic = self.topics[number]
        # In a session of several topics the messages go on from one topic to the next.
        messages.append({"role": "user", "content": self.protocol.user_turn(topic, mark)})
        line = self.recorded.get((trial, topic.topic, turn))
        if line is None:
            line = self._ask(trial, number, turn, messages)
        with self.lock:
            self.failures_in_a_row = 0
        messages.append({"role": "assistant", "content": line["system"]})
        return line

    def _ask(
        self, trial: int, number: int, turn: int, messages: list[dict[str, str]]
    ) -> dict[str, Any]:
        """The record of a turn, asked now."""
        if self.n_asked:  # the first turn waits for nothing
            self.pause()
        topic = self.topics[number]
        # Every turn that may be asked has a seed of its own, however many are held at a time.
        place = len(self.topics) * (trial - 1) + number
        seed = self.sampling.seed + self.rounds * place + turn - 1
        answer, mishaps = self.ask(replace(self.sampling, seed=seed), messages)
        if topic.format:
            judgement = judge_answer(answer.text, topic.site, self.protocol.refusals)
        else:
            judgement = judge_reply(answer.text, self.protocol.refusals)
        line = {
            "record": "turn",
            "trial": trial,
            "topic": topic.topic,
            "turn": turn,
            "user": messages[-1]["content"],
            "system": answer.text,
            "outcome": judgement.mark,
            "breakdown": judgement.breakdown,
            "finish": answer.finish,
            "answered_by": answer.answered_by,
            "fingerprint": answer.fingerprint,
            "seed": seed,
            "mishaps": mishaps,
            **answer.tokens,
        }
        # Written before anything else can fail: what is recorded is never asked again.
        with self.lock:
            records.append(self.record, line)
            self.n_asked += 1
        return line


def _settings(
    topics: Sequence[Topic],
    endpoint: Endpoint,
    rounds: int,
    session: str,
    sampling: Sampling,
    protocol: Protocol,
    note: str,
) -> dict[str, Any]:
    """What a record says of how it was made; a key, or what cannot be sent, is refused."""
    settings = {
        "record": "settings",
        "endpoint": endpoint.url,
        "model": endpoint.model,
        "note": note,
        "sampling": asdict(sampling),
        "protocol": asdict(protocol),
        "topics": [asdict(topic) for topic in topics],
        "rounds": rounds,
        "session": session,
    }
    text = json.dumps(settings, ensure_ascii=False)
    if tells(endpoint.key, text):
        raise ValueError("the settings of this harvest have the key in them, and would be recorded")
    if re.search("[\ud800-\udfff]", text):
        raise ValueError(
            "the settings of this harvest have half a surrogate pair in them, "
            "which no server can be sent"
        )
    return settings


def _refuse_arguments(topics: Sequence[Topic], trials: int, rounds: int, parallel: int) -> None:
    """Refuse a harvest of nothing, and topics that a record could not tell apart."""
    names = [topic.topic for topic in topics]
    if not topics or len(set(names)) < len(names) or min(trials, rounds, parallel) < 1:
        raise ValueError(
            "a harvest needs at least one trial, one round and one topic, and no topic twice"
        )
    for name in names:
        if not is_word(name):
            expected = "the id of a topic is one word of letters that can be seen"
            raise ValueError(f"{expected}; found {shown(name)}")


def _sessions(n_topics: int, trials: int, session: str) -> list[Conversations]:
    """The conversations of each session: one, or all of a trial."""
    sessions: list[Conversations] = []
    for trial in range(1, trials + 1):
        conversations = [(trial, number) for number in range(n_topics)]
        if session == "trial":
            sessions.append(conversations)
        else:
            sessions += [[conversation] for conversation in conversations]
    return sessions


def harvest(
    topics: Sequence[Topic],
    endpoint: Endpoint,
    record: Path,
    *,
    trials: Trials = 2,
    rounds: Rounds = 2,
    session: Session = "topic",
    parallel: Parallel = 1,
    sampling: Sampling | None = None,
    protocol: Protocol | None = None,
    note: Note = "",
    give_up: int = 3,
    progress: Callable[[Iterable[Conversations]], Iterable[Conversations]] = iter,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Hold a conversation of so many rounds about every topic, and that as often as trials.

    What the record holds already is not asked again. The answer in turn u to topic number i (from
    0) in trial t (from 1) has the seed ``sampling.seed + rounds (len(topics) (t - 1) + i) + u -
    1``. ``note``: a remark kept with the settings, for example the sha256 of a local model or the
    day of a web service. ``give_up``: after so many failed sessions in a row nothing more is asked.
    ``progress``: wraps the iterator over the sessions, for a progress bar. ``sleep``: waits so many
    seconds. Returns: how many turns were asked now.

    gfrc, section 4: the topics in their order, then all of them again, so that order and trial are
    not confounded.
    """
    sampling = sampling or Sampling()
    if protocol is None:
        asks_for_formats = any(topic.format for topic in topics)
        protocol = Protocol() if asks_for_formats else QUESTIONS
    _refuse_arguments(topics, trials, rounds, parallel)
    settings = _settings(topics, endpoint, rounds, session, sampling, protocol, note)
    sessions = _sessions(len(topics), trials, session)

    def pause() -> None:
        if endpoint.pause:
            sleep(endpoint.pause)

    with connect() as client, records.held(record), ExitStack() as stack:
        ask = partial(ask_patiently, client, endpoint, sleep=sleep)
        recorded = {}
        for line in records.resume(record, settings, parse_record):
            recorded[line["trial"], line["topic"], line["turn"]] = line
        conversations = _Harvest(
            topics, rounds, sampling, protocol, ask, record, recorded, pause, give_up
        )
        # Sessions that nobody waits for any more are not begun.
        pool = ThreadPoolExecutor(parallel)
        stack.callback(pool.shutdown, cancel_futures=True)
        # One at a time runs in this thread, so that an interruption ends it at once.
        run = map if parallel == 1 else pool.map
        results = run(conversations.session, sessions)
        # Each step takes one result, and so holds, or waits for, one session.
        for _ in zip(progress(sessions), results, strict=False):
            if conversations.failures_in_a_row >= give_up:
                break
    _refuse_failures(conversations, record, give_up)
    return conversations.n_asked


def _refuse_failures(conversations: _Harvest, record: Path, give_up: int) -> None:
    """Raise what failed, if anything, and say what to do."""
    failures = conversations.failures
    if not failures:
        return
    outcome = "All other conversations are complete."
    if conversations.failures_in_a_row >= give_up:
        outcome = "Given up after failures in a row."
    header = f"{len(failures)} conversations lack an answer:"
    lines = "\n  ".join([header, *failures])
    raise HarvestError(f"{lines}\n{outcome} Harvest again into {record}.")
