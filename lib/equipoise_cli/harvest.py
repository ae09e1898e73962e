"""Harvest conversations: hold the two-round protocol with a chat system, into a record that it can be gone on with.

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
from pathlib import Path
from typing import Any

from equipoise.files import read_columns
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
    r"\b(?:can(?:no|')t|cannot|could not|couldn't) (?:help|assist|provide|fulfil|access|list|browse|complete)",
    r"\b(?:only|just) an? (?:\w+ )?(?:language model|assistant)",
    r"\bas an? (?:\w+[ -])*?(?:language model|assistant)",
    r"\boutside (?:of )?my capabilities",
    r"\b(?:don't|do not) have (?:the necessary )?(?:access|information|ability|abilities)",
)
"""Wordings (regular expressions, case ignored) by which a system declines a request."""

Held = Sequence[tuple[int, int]]
"""The conversations of a session: the trial and the number of the topic of each."""

_URL = re.compile(r"(?:https?://|\bwww\.)([^\s/<>()\[\]\"'?#]+)[^\s<>()\[\]\"']*", re.IGNORECASE)
_WORDS = re.compile(r"\w{2,}")


class HarvestError(RuntimeError):
    """A harvest that could not be completed: what happened, and what to do."""


@dataclass(frozen=True)
class Topic:
    """What a conversation asks for: an id such as ``M002``, its type such as ``M``, and the request.

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
    """The wording of the two rounds (gfrc, section 4.1), and how a useless answer shows that the system declines.

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
        asked = any(
            not site or host == site.lower() or host.endswith("." + site.lower()) for host in hosts
        )
        if asked and _WORDS.search(_URL.sub(" ", line)):
            return Judgement(useful=True, breakdown=False)
    plain = text.replace("’", "'")
    declined = any(re.search(wording, plain, re.IGNORECASE) for wording in refusals)
    return Judgement(useful=False, breakdown=declined or not text.strip())


def read_topics(path: str | Path) -> list[Topic]:
    """Topics of a harvest from a CSV file with the columns topic, type, request, format and site; site may be empty."""
    table, problems = read_columns(path, ["topic", "type", "request", "format", "site"]), Problems()
    for column in ("topic", "type", "request", "format"):
        for topic in table.loc[table[column].str.strip() == "", "topic"]:
            problems.add(path, None, column, f"an empty field for topic {topic!r}", "some text")
    for topic in table.loc[
        [topic.strip() != "" and not is_word(topic) for topic in table["topic"]], "topic"
    ]:
        problems.add(
            path,
            None,
            "topic",
            shown(topic),
            "one word of letters that can be seen, as a transcript has it",
        )
    for topic in table.loc[table["topic"].duplicated(), "topic"]:
        problems.add(path, None, "topic", f"{topic!r} again", "each topic once")
    problems.refuse()
    return [Topic(*(str(field).strip() for field in row)) for row in table.itertuples(index=False)]


@dataclass
class _Harvest:
    """What the conversations of one harvest share, however many are held at a time."""

    topics: Sequence[Topic]
    rounds: int
    sampling: Sampling
    protocol: Protocol
    ask: Callable[[Sampling, Sequence[Mapping[str, str]]], tuple[Answer, list[str]]]
    record: Path
    done: dict[tuple[int, str, int], dict[str, Any]]
    pause: Callable[[], None]
    asked: int = 0
    failures: list[str] = field(default_factory=list)
    in_a_row: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def session(self, held: Sequence[tuple[int, int]]) -> None:
        """Hold conversations, each a trial and the number of a topic, one behind the other in one session."""
        messages = (
            [{"role": "system", "content": self.sampling.system}] if self.sampling.system else []
        )
        for trial, number in held:
            turn, mark = 1, ""
            try:
                while turn <= self.rounds:
                    line = self._turn(trial, number, turn, mark, messages)
                    if line["breakdown"]:
                        break
                    turn, mark = turn + 1, line["outcome"]
            except EndpointError as error:
                with self.lock:
                    self.failures.append(
                        f"topic {self.topics[number].topic}, trial {trial}, turn {turn}: {error}"
                    )
                    self.in_a_row += 1
                return

    def _turn(
        self, trial: int, number: int, turn: int, mark: str, messages: list[dict[str, str]]
    ) -> dict[str, Any]:
        """One round, asked now or recorded before; it is added to the messages."""
        topic, place = self.topics[number], len(self.topics) * (trial - 1) + number
        user = self.protocol.user_turn(topic, mark)
        messages.append({"role": "user", "content": user})
        if (line := self.done.get((trial, topic.topic, turn))) is None:
            if self.asked:
                self.pause()
            own = replace(self.sampling, seed=self.sampling.seed + self.rounds * place + turn - 1)
            answer, mishaps = self.ask(own, messages)
            judgement = judge_answer(answer.text, topic.site, self.protocol.refusals)
            line = {
                "record": "turn",
                "trial": trial,
                "topic": topic.topic,
                "turn": turn,
                "user": user,
            }
            line |= {
                "system": answer.text,
                "outcome": judgement.mark,
                "breakdown": judgement.breakdown,
            }
            line |= {
                name: getattr(answer, name) for name in ("finish", "answered_by", "fingerprint")
            }
            line |= {"seed": own.seed, "mishaps": mishaps, **answer.tokens}
            with self.lock:
                records.append(self.record, line)
                self.asked += 1
        with self.lock:
            self.in_a_row = 0
        messages.append({"role": "assistant", "content": line["system"]})
        return line


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
    progress: Callable[[Iterable[Held]], Iterable[Held]] = iter,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Hold a conversation of so many rounds about every topic, in the topics' order, and that as often as trials.

    What the record holds already is not asked again. The answer in turn u to topic number i (from
    0) in trial t (from 1) has the seed ``sampling.seed + rounds (len(topics) (t - 1) + i) + u -
    1``. ``note``: a remark kept with the settings, for example the sha256 of a local model or the
    day of a web service. ``give_up``: after so many failed sessions in a row nothing more is asked.
    ``progress``: wraps the iterator over the sessions, for a progress bar. ``sleep``: waits so many
    seconds. Returns: how many turns were asked now.

    gfrc, section 4: the topics in their order, then all of them again, so that order and trial are
    not confounded.
    """
    sampling, protocol = sampling or Sampling(), protocol or Protocol()
    if (
        not topics
        or len({topic.topic for topic in topics}) < len(topics)
        or min(trials, rounds, parallel) < 1
    ):
        raise ValueError(
            "a harvest needs at least one trial, one round and one topic, and no topic twice"
        )
    if strange := [topic.topic for topic in topics if not is_word(topic.topic)]:
        raise ValueError(
            f"the id of a topic is one word of letters that can be seen; found {shown(strange[0])}"
        )
    settings: dict[str, Any] = {
        "record": "settings",
        "endpoint": endpoint.url,
        "model": endpoint.model,
        "note": note,
    }
    settings |= {
        "sampling": asdict(sampling),
        "protocol": asdict(protocol),
        "topics": [asdict(t) for t in topics],
    }
    settings |= {"rounds": rounds, "session": session}
    if tells(endpoint.key, stated := json.dumps(settings, ensure_ascii=False)):
        raise ValueError("the settings of this harvest have the key in them, and would be recorded")
    if re.search("[\ud800-\udfff]", stated):
        raise ValueError(
            "the settings of this harvest have half a surrogate pair in them, which no server can be sent"
        )
    all_of_trials = [
        [(trial, number) for number in range(len(topics))] for trial in range(1, trials + 1)
    ]
    sessions = (
        all_of_trials
        if session == "trial"
        else [[held] for trial in all_of_trials for held in trial]
    )
    with connect() as client, records.held(record), ExitStack() as last:
        lines = records.resume(record, settings, parse_record)
        harvested = _Harvest(
            topics,
            rounds,
            sampling,
            protocol,
            lambda own, messages: ask_patiently(client, endpoint, own, messages, sleep=sleep),
            record,
            {(line["trial"], line["topic"], line["turn"]): line for line in lines},
            (lambda: sleep(endpoint.pause)) if endpoint.pause else (lambda: None),
        )
        pool = ThreadPoolExecutor(parallel)
        last.callback(pool.shutdown, cancel_futures=True)
        ended = (
            map(harvested.session, sessions)
            if parallel == 1
            else pool.map(harvested.session, sessions)
        )
        for _ in zip(progress(sessions), ended, strict=False):
            if harvested.in_a_row >= give_up:
                break
    if failures := harvested.failures:
        given_up = harvested.in_a_row >= give_up
        end = (
            "Given up after failures in a row."
            if given_up
            else "All other conversations are complete."
        )
        listed = "\n  ".join([f"{len(failures)} conversations lack an answer:", *failures])
        raise HarvestError(f"{listed}\n{end} Harvest again into {record}.")
    return harvested.asked
