"""Harvest conversations with a chat system by the two-round protocol.

The first user turn asks for entities in a stated format. If the answer looks useful, the second asks for more; if it
does not, the second asks to keep to the format; if it ends the conversation (a dialogue breakdown), there is no second
turn.

Any endpoint that speaks the OpenAI chat format will do. Every answered turn is one line of a JSON Lines record, written
through to the disk before the next request, after a first line with all settings. Harvesting again into the same record
goes on where it stopped. Requests are put as patiently as `equipoise.conversations.endpoint` does.

The protocol is that of gfrc, section 4.1 and Figure 1. There a person judged the answers and typed on a web page; here
`judge_answer` applies written rules, and every conversation starts afresh, so that no earlier topic can leak into it.

References
----------
gfrc: Sakai, T. (2023): Fairness-based Evaluation of Conversational Search: A Pilot Study. EVIA 2023, pp. 5-13.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from equipoise.conversations import records
from equipoise.conversations.endpoint import Endpoint, EndpointError, Sampling, ask_patiently
from equipoise.files import read_columns
from equipoise.loaders.recorded_conversations import parse_record
from equipoise.problems import InputError, Problem

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
    """A harvest that could not be completed: what happened, and what to do."""


@dataclass(frozen=True)
class Topic:
    """What a conversation asks for.

    ``topic``: Id, for example ``M002``. ``kind``: Topic type, for example ``M``; statistics are grouped by it.
    ``request``: the request, without the format. ``format``: the format of a line of the answer, for example
    ``movie title, IMDb URL``. ``site``: what the host of a URL must end with to count as requested; empty for any.
    """

    topic: str
    kind: str
    request: str
    format: str
    site: str = ""


@dataclass(frozen=True)
class Protocol:
    """The wording of the two rounds, and the rules by which an answer is judged.

    ``first``, ``more``, ``adhere``: User turn 1; user turn 2 after a useful and after a useless answer.
    ``{request}`` and ``{format}`` stand for the topic's. ``refusals``: Regular expressions, case ignored: a useless
    answer that matches one is a breakdown.

    gfrc, section 4.1.
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
class Judgement:
    """How an answer looks: useful or not, and whether it ends the conversation.

    ``useful``: at least one line names something and gives a URL as requested. ``breakdown``: the answer is useless
    and declines the request, or is empty.
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

    ``text``: the system turn. ``site``: what the host of a URL must end with (``imdb.com`` accepts
    ``www.imdb.com``); empty for any. ``refusals``: Regular expressions, case ignored. Returns: Useful, or a
    breakdown, or neither.

    gfrc, section 5: "o" gives some URLs as requested, "x" has no useful URLs or refuses; the author judged by eye.
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

    ``path``: the file; ``site`` may be empty. Returns: In file order.
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

    ``topics``: in the order in which they are put. ``endpoint``: the system. ``record``: JSON Lines file. Turns
    that it holds already are not asked again; a last line that an interruption left without its end is cut off and
    asked anew. ``trials``: how often the whole list is gone through; trial 1 is complete before trial 2 begins.
    ``sampling``: how answers are sampled. The answer in turn u to topic number i (from 0) in trial t (from 1) has
    the seed ``seed + 2 (len(topics) (t - 1) + i) + u - 1``. ``protocol``: Wording and rules. ``note``: A remark
    kept with the settings, for example the sha256 of a local model or the day of a web service. ``give_up``: After
    so many failed conversations in a row nothing more is asked. ``progress``: Wraps the iterator over (trial, topic
    number), for a progress bar. ``sleep``: Waits so many seconds. Returns: How many turns were asked now.

    gfrc, section 4: the topics in their order, then all of them again, so that order and trial are not confounded.
    """
    sampling, protocol = sampling or Sampling(), protocol or Protocol()
    names = [topic.topic for topic in topics]
    if not names or len(set(names)) < len(names) or trials < 1:
        raise ValueError("a harvest needs at least one trial and one topic, and no topic twice")
    settings = _settings(topics, endpoint, sampling, protocol, note)
    held = records.resume(record, settings, parse_record)
    done = {(turn["trial"], turn["topic"], turn["turn"]): turn for turn in held}
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
                        answer, mishaps = ask_patiently(client, endpoint, own, messages, sleep=sleep)
                    except EndpointError as error:
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
                    records.append(record, line)
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
