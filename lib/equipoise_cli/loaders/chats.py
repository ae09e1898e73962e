"""Conversations as chat systems and collections keep them, as transcripts without annotations.

*openai*: ``messages`` of ``role`` and ``content``, a text or parts of it. *sharegpt*:
``conversations`` of ``from`` and ``value``. *wildchat* (LMSYS-Chat too): ``conversation`` of
``role`` and ``content``. *mtrag*: tasks with ``input`` (``speaker`` and ``text``), and
``predictions`` or ``targets``; the tasks of a ``conversation_id`` are its turns. *ikat*: topics
with ``turns`` of ``utterance`` and ``response`` (2023, 2024), or ``responses`` of
``user_utterance`` and ``response`` (2025). *ikat-run*: the responses of a run, in ``turns`` or a
line each, with the utterances of the topics.

What the user does not see is left out and counted: system prompts, calls of tools and what they
return. Messages of one side that follow each other are one turn; a conversation that the system
opens has an empty first turn of the user.

References
----------
Zhao et al. (2024), WildChat; Katsis et al. (2025), MTRAG; the guidelines of TREC iKAT.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from equipoise.loaders.objects import (
    Item,
    fields_of,
    first_value,
    is_messages,
    read_objects,
    recognise,
)
from equipoise.loaders.transcripts import Line, Transcript, is_word, lines_of, run_of, transcript
from equipoise.problems import InputError, Note, Problems, listed, refused, shown

Message = tuple[str, str]
"""Who says it, user or system, and the text."""

_USERS = ("user", "human", "prompter")
_SYSTEMS = (
    "assistant",
    "gpt",
    "agent",
    "model",
    "bot",
    "chatgpt",
    "bing",
    "bard",
    "claude",
    "ai",
)
_UNSEEN = (
    "system",
    "developer",
    "tool",
    "function",
    "function_call",
    "tool_call",
    "observation",
    "tool_response",
    "tool_result",
    "ipython",
)
SPEAKERS: Mapping[str, str] = {
    **dict.fromkeys(_USERS, "user"),
    **dict.fromkeys(_SYSTEMS, "system"),
    **dict.fromkeys(_UNSEEN, ""),
}
"""The side of a speaker by name; empty for what no user sees."""

NEEDS_TOPICS = "a run of iKAT, whose utterances --topics has; for others give none"
_REFERENCE_ANSWERS = "answers of the reference in the place of predictions that are not there"
_TOPICS = (
    "conversation_id",
    "conversation_hash",
    "custom_id",
    "id",
    "topic_id",
    "number",
    "qid",
    "topic",
)


def _has_list_of(key: str, *names: str) -> Callable[[dict[str, Any]], bool]:
    """Whether an object has a list of objects under a key, one of which has all the names."""

    def has(content: dict[str, Any]) -> bool:
        elements = content.get(key)
        if not isinstance(elements, list):
            return False
        return any(isinstance(entry, dict) and entry.keys() >= {*names} for entry in elements)

    return has


def _is_openai(content: dict[str, Any]) -> bool:
    is_spoken = _has_list_of("messages", "speaker", "text")
    return is_messages(content.get("messages")) or is_spoken(content)


def _is_sharegpt(content: dict[str, Any]) -> bool:
    is_from = _has_list_of("conversations", "from")
    return is_from(content) or is_messages(content.get("conversations"))


def _is_ikat(content: dict[str, Any]) -> bool:
    has_turns, has_responses = (
        _has_list_of("turns", "utterance"),
        _has_list_of("responses", "user_utterance"),
    )
    return has_turns(content) or has_responses(content)


def _is_ikat_run(content: dict[str, Any]) -> bool:
    has_turns, has_texts = _has_list_of("turns", "responses"), _has_list_of("responses", "text")
    return has_turns(content) or ("turn_id" in content and has_texts(content))


KNOWN = {
    "openai": _is_openai,
    "sharegpt": _is_sharegpt,
    "wildchat": lambda content: is_messages(content.get("conversation")),
    "mtrag": _has_list_of("input", "speaker", "text"),
    "ikat": _is_ikat,
    "ikat-run": _is_ikat_run,
}
"""The formats of conversations, and the marks of each."""

_LISTS = {"openai": "messages", "sharegpt": "conversations", "wildchat": "conversation"}


def word_of(value: object) -> str:
    """A name as one word, which the header of a transcript needs."""
    return "".join(letter if is_word(letter) else "_" for letter in str(value).strip())


def turns_of(run: str, topic: str, messages: Iterable[Message]) -> Transcript:
    """A conversation from its messages; what one side says in a row is one turn."""
    turns: list[tuple[str, list[Line]]] = []
    for side, messages_in_a_row in groupby(messages, itemgetter(0)):
        if not turns and side == "system":
            turns.append(("", []))  # the user begins, with nothing
        lines = []
        for _, text in messages_in_a_row:
            lines += lines_of(text)
        turns.append(("", lines))
    return transcript(run, topic, turns)


@dataclass
class _TaskOfMtrag:
    """The messages of a task, the last one a question, and its answer, if there is one."""

    item: Item
    messages: list[Message]
    answer: str | None


class _Reader:
    """Reads the conversations of a file and collects what is wrong and what is left out."""

    def __init__(self, path: str | Path, run: str | None) -> None:
        self.path, self.run = path, run
        self.problems, self.left_out = Problems(), Counter[str]()
        self.transcripts: dict[tuple[str, str], Transcript] = {}

    def text(self, item: Item, place: str, content: Any) -> str:
        """The text of a message: a text, nothing, or parts of which those that are text count."""
        if content is None or isinstance(content, str):
            return content or ""
        if isinstance(content, dict):
            content = content.get("parts", [content])
        if not isinstance(content, list):
            item.wrong(self.problems, place, shown(content), "a text, or a list of parts")
            return ""
        texts = []
        for segment in content:
            text, kind = segment, segment
            if isinstance(segment, dict):
                text, kind = segment.get("text", segment.get("refusal")), segment.get("type")
            if isinstance(text, str):
                texts.append(text)
            else:
                self.left_out[f"parts of type {shown(kind)} left out"] += 1
        return "\n".join(texts)

    def messages(self, item: Item, content: Any, within: str) -> list[Message]:
        """Who says what in a list of messages; what no user sees is left out."""
        messages = []
        # A conversation of one message may stand without a list.
        entries = content if isinstance(content, list) else [content]
        for number, entry in enumerate(entries, start=1):
            place, fields = f"{within} {number}", fields_of(entry)
            speaker = first_value(fields, ("role", "from", "speaker"), str) or ""
            side = SPEAKERS.get(speaker.lower())
            if side is None:
                problem = shown(speaker or entry)
                expected = f"role, from or speaker: {', '.join(SPEAKERS)}"
                item.wrong(self.problems, place, problem, expected)
                continue
            if not side:  # a system prompt, or what a tool returns
                self.left_out[f"messages of {speaker.lower()} left out"] += 1
                continue
            keys = ("content", "value", "text", "refusal")
            message_content = next((fields[key] for key in keys if fields.get(key)), None)
            text = self.text(item, place, message_content)
            is_call = bool(fields.get("tool_calls") or fields.get("function_call"))
            self.left_out["calls of tools left out"] += is_call
            if text.strip() or not is_call:
                messages.append((side, text))
        return messages

    def add(
        self, item: Item, topic: object, messages: Iterable[Message], run: object = None
    ) -> None:
        """Take in a conversation, which is called once by its name."""
        model = first_value(item.content, ("model",), str)
        name = self.run or run or model or run_of(self.path)
        # A run that was asked for comes before any name in the file.
        conversation = turns_of(word_of(name), word_of(topic), messages)
        if len(conversation.turns) < 2:
            problem = f"{len(conversation.turns)} turns, no answer with text"
            item.wrong(self.problems, "", problem, "a user's turn and an answer")
        key = conversation.run, conversation.topic
        # Names are made one word, so that two of them may become one.
        if key in self.transcripts:
            problem = f"conversation {shown(conversation.topic)} of {conversation.run} again"
            item.wrong(self.problems, "", problem, "each conversation once")
        self.transcripts[key] = conversation

    def chat(self, item: Item, key: str) -> None:
        """Take in an object that is a conversation, its messages under a key."""
        topic = first_value(item.content, _TOPICS, (str, int))
        if topic in (None, ""):
            topic = f"c{item.number}"
        self.add(item, topic, self.messages(item, item.content.get(key), key))

    def mtrag(self, items: list[Item]) -> None:
        """The tasks of a conversation are its turns.

        The question is the user's last message, the answer what was predicted.
        """
        tasks_of: dict[str, list[_TaskOfMtrag]] = {}
        for item in items:
            messages = self.messages(item, item.content.get("input"), "input")
            name = str(item.content.get("conversation_id", item.content.get("task_id")))
            task = _TaskOfMtrag(item, messages, _answer_of_mtrag(item.content))
            tasks_of.setdefault(name, []).append(task)
        for name, tasks in tasks_of.items():
            # The task of the last turn has all the messages before it.
            last_task = max(tasks, key=lambda task: len(task.messages))
            # By the number of messages before it, which is the place of the answer.
            answers = {}
            for task in tasks:
                if task.answer is not None:
                    answers[len(task.messages)] = task.answer
            messages = []
            for place, (side, text) in enumerate(last_task.messages):
                if side == "system" and place in answers:
                    text = answers[place]
                elif side == "system":
                    self.left_out[_REFERENCE_ANSWERS] += 1
                messages.append((side, text))
            if len(messages) in answers:
                messages.append(("system", answers[len(messages)]))
            self.add(last_task.item, name, messages)

    def ikat(self, item: Item) -> None:
        """Take in a topic of iKAT with its responses."""
        messages = []
        for _, place, utterance, turn in self._turns_of_ikat(item):
            response = self.text(item, place, turn.get("response"))
            messages += [("user", utterance), ("system", response)]
        self.add(item, item.content.get("number", f"c{item.number}"), messages)

    def _turns_of_ikat(self, item: Item) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
        """Number, place, utterance and content of each sound turn of a topic."""
        turns = item.content.get("turns") or item.content.get("responses") or []
        if not isinstance(turns, list):
            item.wrong(self.problems, "turns", shown(turns), "a list of turns")
            return
        for number, turn in enumerate(turns, start=1):
            fields = fields_of(turn)
            utterance = fields.get("utterance", fields.get("user_utterance"))
            place = f"turn {number}"
            if isinstance(utterance, str):
                yield number, place, utterance, fields
            else:
                expected = "an object with utterance, or user_utterance, and response"
                item.wrong(self.problems, place, shown(turn), expected)

    def _utterances(self, topics: str | Path) -> dict[str, str]:
        """What the user says, by turn, in a file of topics of iKAT."""
        utterances = {}
        for item in read_objects(str(topics)):
            for number, _, utterance, turn in self._turns_of_ikat(item):
                name = f"{item.content.get('number')}_{turn.get('turn_id', number)}"
                utterances[name] = utterance
        return utterances

    def ikat_run(self, items: list[Item], topics: str | Path | None) -> None:
        """The turns of a run, with what the user says there."""
        if topics is None:
            problem, expected = "a run of iKAT, which has no utterances", "the topics too: --topics"
            items[0].wrong(self.problems, "", problem, expected)
            raise InputError(self.problems)
        utterances = self._utterances(topics)
        turn_ids = {turn_id: place for place, turn_id in enumerate(utterances)}
        responses_of: dict[tuple[str, str], dict[str, str]] = {}
        for item in items:
            fields = {**item.content, **fields_of(item.content.get("metadata"))}
            run = str(fields.get("run_name", fields.get("run_id", run_of(self.path))))
            turns = item.content.get("turns", [item.content])
            if not isinstance(turns, list):
                item.wrong(self.problems, "turns", shown(turns), "a list of turns")
                continue
            for turn in turns:
                turn_fields = fields_of(turn)
                turn_id = str(turn_fields.get("turn_id"))
                place = f"turn {shown(turn_id)}"
                response = ikat_response(item, place, turn_fields.get("responses"), self.problems)
                if turn_id not in utterances:
                    expected = f"a turn of {topics}, such as {listed(utterances, 3)}"
                    item.wrong(self.problems, "turn_id", place, expected)
                    continue
                responses = responses_of.setdefault((run, turn_id.rpartition("_")[0]), {})
                if turn_id in responses:
                    problem, expected = f"{place} of {run} again", "each turn of a run once"
                    item.wrong(self.problems, "turn_id", problem, expected)
                responses[turn_id] = response
        for (run, topic), responses in responses_of.items():
            messages: list[Message] = []
            # A file may have the turns in any order; the topics have them as they were held.
            for turn_id in sorted(responses, key=turn_ids.__getitem__):
                messages += [("user", utterances[turn_id]), ("system", responses[turn_id])]
            self.add(items[0], topic, messages, run)


def _answer_of_mtrag(content: dict[str, Any]) -> str | None:
    answers = content.get("predictions") or content.get("targets")
    if not isinstance(answers, list) or not isinstance(answers[0], dict):
        return None
    text = answers[0].get("text")
    return text if isinstance(text, str) else None


def _rank_of(response: dict[str, Any]) -> int | None:
    """The rank that a response states, in digits too; None where it is no rank."""
    rank = response["rank"]
    if isinstance(rank, str) and re.fullmatch("[0-9]{1,9}", rank):
        return int(rank)
    is_number = isinstance(rank, (int, float)) and not isinstance(rank, bool)
    if is_number and math.isfinite(rank) and rank >= 0 and rank == int(rank):
        return int(rank)
    return None


def ikat_responses(
    item: Item, place: str, responses: Any, problems: Problems
) -> list[dict[str, Any]]:
    """The best of ranked responses, or all sentences of one; none, and a problem, without a text.

    Ranks count from 0 or from 1. ``place``: the turn, for problems.
    """
    sound = []
    for response in responses if isinstance(responses, list) else ():
        if isinstance(response, dict) and isinstance(response.get("text"), str):
            sound.append(response)
    if not sound:
        problem, expected = f"{place} without a response", "responses with a text"
        item.wrong(problems, "responses", problem, expected)
        return []
    if not any("rank" in response for response in sound):
        return sound
    by_rank: dict[int, dict[str, Any]] = {}
    for response in sound:
        rank = _rank_of(response) if "rank" in response else None
        if rank is None:
            problem = f"{place} with rank {shown(response.get('rank', 'none'))}"
            item.wrong(problems, "rank", problem, "a whole number from 0 in each response")
        elif rank in by_rank:
            item.wrong(problems, "rank", f"{place} with rank {rank} again", "each rank once")
        else:
            by_rank[rank] = response
    return [by_rank[min(by_rank)]] if by_rank else []


def ikat_response(item: Item, place: str, responses: Any, problems: Problems) -> str:
    """The text of `ikat_responses`."""
    chosen = ikat_responses(item, place, responses, problems)
    return "\n".join(response["text"] for response in chosen)


def _has_answer(transcripts: Iterable[Transcript]) -> bool:
    for conversation in transcripts:
        if any(line for turn in conversation.turns[1::2] for line in turn.lines):
            return True
    return False


def read_chats(
    path: str | Path,
    form: str = "auto",
    *,
    topics: str | Path | None = None,
    run: str | None = None,
) -> list[Transcript]:
    """Conversations of a file as transcripts.

    ``form``: one of `KNOWN`, or ``auto``, which is by the marks of the first object. ``topics``:
    those of an iKAT run. ``run``: what the conversations' run is called; else as the file says, or
    by its name. A conversation has the name it has there, as one word, or its number in the file.
    """
    items = read_objects(path)
    if form == "auto":
        form = recognise(items, KNOWN, ("fairweb", "harvest"))
    if topics is not None and form != "ikat-run":
        raise refused(path, f"conversations of {form}", NEEDS_TOPICS)
    reader = _Reader(path, run)
    if form == "mtrag":
        reader.mtrag(items)
    elif form == "ikat-run":
        reader.ikat_run(items, topics)
    elif form == "ikat":
        for item in items:
            reader.ikat(item)
    else:
        for item in items:
            if KNOWN[form](item.content):
                reader.chat(item, _LISTS[form])
            else:
                problem = f"an object with {listed(map(shown, item.content)) or 'nothing'}"
                item.wrong(reader.problems, "", problem, f"{_LISTS[form]}, as {form} has them")
    if not reader.problems and not _has_answer(reader.transcripts.values()):
        reader.problems.add(path, None, None, "no answer with text", "one at least")
    reader.problems.refuse()
    left_out = [f"{count} {reason}" for reason, count in reader.left_out.items() if count]
    if left_out:
        warnings.warn(f"{path}, read as {form}: {', '.join(left_out)}", Note, stacklevel=2)
    return list(reader.transcripts.values())
