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

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from equipoise.loaders.objects import Item, is_messages, read_objects, recognise
from equipoise.loaders.transcripts import Line, Transcript, is_word, lines_of, run_of, transcript
from equipoise.problems import Note, Problems, listed, shown

SPEAKERS: Mapping[str, str] = (
    dict.fromkeys(("user", "human", "prompter"), "user")
    | dict.fromkeys(
        ("assistant", "gpt", "agent", "model", "bot", "chatgpt", "bing", "bard", "claude", "ai"),
        "system",
    )
    | dict.fromkeys(
        ("system", "developer", "tool", "function", "function_call", "tool_call", "observation"), ""
    )
    | dict.fromkeys(("tool_response", "tool_result", "ipython"), "")
)
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


def _many(key: str, *words: str) -> Any:
    """Whether an object has a list of objects under a key, one of which has all the words."""

    def has(content: dict[str, Any]) -> bool:
        found = content.get(key)
        return isinstance(found, list) and any(
            isinstance(one, dict) and {*words} <= one.keys() for one in found
        )

    return has


KNOWN = {
    "openai": lambda content: (
        is_messages(content.get("messages")) or _many("messages", "speaker", "text")(content)
    ),
    "sharegpt": lambda content: (
        _many("conversations", "from")(content) or is_messages(content.get("conversations"))
    ),
    "wildchat": lambda content: is_messages(content.get("conversation")),
    "mtrag": _many("input", "speaker", "text"),
    "ikat": lambda content: (
        _many("turns", "utterance")(content) or _many("responses", "user_utterance")(content)
    ),
    "ikat-run": lambda content: (
        _many("turns", "responses")(content)
        or ("turn_id" in content and _many("responses", "text")(content))
    ),
}
"""The formats of conversations, and the marks of each."""

_LISTS = {"openai": "messages", "sharegpt": "conversations", "wildchat": "conversation"}


def word_of(value: object) -> str:
    """A name as one word, which the header of a transcript needs."""
    return "".join(letter if is_word(letter) else "_" for letter in str(value).strip())


def turns_of(run: str, topic: str, said: Iterable[tuple[str, str]]) -> Transcript:
    """A conversation from who says what; what one side says in a row is one turn."""
    turns = [
        (side, [line for _, text in part for line in lines_of(text)])
        for side, part in groupby(said, itemgetter(0))
    ]
    first = [("user", list[Line]())] if turns and turns[0][0] == "system" else []
    return transcript(run, topic, (("", lines) for _, lines in (*first, *turns)))


class _Reader:
    """Reads the conversations of a file and collects what is wrong and what is left out."""

    def __init__(self, path: str | Path, run: str | None) -> None:
        self.path, self.run = path, run
        self.problems, self.left_out = Problems(), Counter[str]()
        self.made: dict[tuple[str, str], Transcript] = {}

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
        for part in content:
            text = (
                part
                if isinstance(part, str)
                else part.get("text", part.get("refusal"))
                if isinstance(part, dict)
                else None
            )
            if isinstance(text, str):
                texts.append(text)
            else:
                self.left_out[
                    f"parts of type {shown(part.get('type') if isinstance(part, dict) else part)} left out"
                ] += 1
        return "\n".join(texts)

    def said(self, item: Item, messages: Any, within: str) -> list[tuple[str, str]]:
        """Who says what in a list of messages; what no user sees is left out."""
        found = []
        for number, one in enumerate(
            messages if isinstance(messages, list) else [messages], start=1
        ):
            place, fields = f"{within} {number}", one if isinstance(one, dict) else {}
            who = next(
                (
                    fields[key]
                    for key in ("role", "from", "speaker")
                    if isinstance(fields.get(key), str)
                ),
                "",
            )
            side = SPEAKERS.get(who.lower())
            if side is None:
                known = f"role, from or speaker: {', '.join(SPEAKERS)}"
                item.wrong(self.problems, place, shown(who) if who else shown(one), known)
            elif not side:
                self.left_out[f"messages of {who.lower()} left out"] += 1
            else:
                content = next(
                    (
                        fields[key]
                        for key in ("content", "value", "text", "refusal")
                        if fields.get(key)
                    ),
                    None,
                )
                calls = bool(fields.get("tool_calls") or fields.get("function_call"))
                self.left_out["calls of tools left out"] += calls
                text = self.text(item, place, content)
                found += [(side, text)] if text.strip() or not calls else []
        return found

    def add(
        self, item: Item, topic: object, said: Iterable[tuple[str, str]], run: object = None
    ) -> None:
        """Take in a conversation, which is called once by its name."""
        fallback = item.content.get("model")
        name = (
            self.run
            or run
            or (fallback if isinstance(fallback, str) else None)
            or run_of(self.path)
        )
        made = turns_of(word_of(name), word_of(topic), said)
        if len(made.turns) < 2:
            found = f"{len(made.turns)} turns, no answer with text"
            item.wrong(self.problems, "", found, "a user's turn and an answer")
        if (made.run, made.topic) in self.made:
            item.wrong(
                self.problems,
                "",
                f"conversation {shown(made.topic)} of {made.run} again",
                "each conversation once",
            )
        self.made[made.run, made.topic] = made

    def chat(self, item: Item, key: str) -> None:
        topic = next(
            (item.content[k] for k in _TOPICS if isinstance(item.content.get(k), (str, int))), None
        )
        self.add(
            item,
            f"c{item.number}" if topic in (None, "") else topic,
            self.said(item, item.content.get(key), key),
        )

    def mtrag(self, items: list[Item]) -> None:
        """The tasks of a conversation are its turns: the question is the user's last, the answer what was predicted."""
        tasks: dict[str, list[tuple[int, Item, list[tuple[str, str]], str | None]]] = {}
        for item in items:
            said = self.said(item, item.content.get("input"), "input")
            answers = next(
                (item.content[key] for key in ("predictions", "targets") if item.content.get(key)),
                None,
            )
            first = answers[0] if isinstance(answers, list) and isinstance(answers[0], dict) else {}
            text = first.get("text") if isinstance(first.get("text"), str) else None
            name = str(item.content.get("conversation_id", item.content.get("task_id")))
            tasks.setdefault(name, []).append((len(said), item, said, text))
        for name, found in tasks.items():
            _, last, said, _ = max(found, key=lambda one: one[0])
            answered = {length: text for length, _, _, text in found if text is not None}
            held = [
                (side, answered.get(place, text) if side == "system" else text)
                for place, (side, text) in enumerate(said)
            ]
            kept = sum(
                side == "system" and place not in answered for place, (side, _) in enumerate(said)
            )
            self.left_out[
                "answers of the reference in the place of predictions that are not there"
            ] += kept
            self.add(
                last,
                name,
                [*held, *(("system", answered[len(said)]) for _ in range(len(said) in answered))],
            )

    def ikat(self, item: Item, utterances: dict[str, str] | None = None) -> None:
        """A topic of iKAT; ``utterances`` collects what the user says by turn."""
        content, said = item.content, []
        for number, one in enumerate(
            content.get("turns") or content.get("responses") or (), start=1
        ):
            fields = one if isinstance(one, dict) else {}
            user, place = fields.get("utterance", fields.get("user_utterance")), f"turn {number}"
            if not isinstance(user, str):
                item.wrong(
                    self.problems,
                    place,
                    shown(one),
                    "an object with utterance, or user_utterance, and response",
                )
                continue
            said += [("user", user), ("system", self.text(item, place, fields.get("response")))]
            if utterances is not None:
                utterances[f"{content.get('number')}_{fields.get('turn_id', number)}"] = user
        if utterances is None:
            self.add(item, content.get("number", f"c{item.number}"), said)

    def ikat_run(self, items: list[Item], topics: str | Path | None) -> None:
        """The turns of a run, with what the user says there."""
        if topics is None:
            items[0].wrong(
                self.problems,
                "",
                "a run of iKAT, which has no utterances",
                "the topics too: --topics",
            )
            self.problems.refuse()
        utterances: dict[str, str] = {}
        for topic in read_objects(str(topics)):
            self.ikat(topic, utterances)
        said: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for item in items:
            about = item.content.get("metadata")
            fields = {**item.content, **(about if isinstance(about, dict) else {})}
            run = str(fields.get("run_name", fields.get("run_id", run_of(self.path))))
            for one in item.content.get("turns", [item.content]):
                turn, responses = (
                    (one.get("turn_id"), one.get("responses"))
                    if isinstance(one, dict)
                    else (None, None)
                )
                texts = [
                    part
                    for part in responses or ()
                    if isinstance(part, dict) and isinstance(part.get("text"), str)
                ]
                if str(turn) not in utterances or not texts:
                    found = f"turn {shown(turn)}" + ("" if texts else " without a response")
                    item.wrong(
                        self.problems,
                        "turn_id",
                        found,
                        f"a turn of {topics}, such as {listed(utterances, 3)}",
                    )
                    continue
                if any(
                    "rank" in part for part in texts
                ):  # else they are the sentences of one response
                    texts = [min(texts, key=lambda part: part.get("rank") or 10**9)]
                text = "\n".join(part["text"] for part in texts)
                both = [("user", utterances[str(turn)]), ("system", text)]
                said.setdefault((run, str(turn).rpartition("_")[0]), []).extend(both)
        for (run, name), turns in said.items():
            self.add(items[0], name, turns, run)


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
    form = recognise(items, KNOWN, ("fairweb", "harvest")) if form == "auto" else form
    reader = _Reader(path, run)
    if form == "mtrag":
        reader.mtrag(items)
    elif form == "ikat-run":
        reader.ikat_run(items, topics)
    else:
        for item in items:
            if form == "ikat":
                reader.ikat(item)
            elif not KNOWN[form](item.content):
                found = f"an object with {listed(map(shown, item.content)) or 'nothing'}"
                item.wrong(reader.problems, "", found, f"{_LISTS[form]}, as {form} has them")
            else:
                reader.chat(item, _LISTS[form])
    if not reader.problems and not any(
        line for made in reader.made.values() for turn in made.turns[1::2] for line in turn.lines
    ):
        reader.problems.add(path, None, None, "no answer with text", "one at least")
    reader.problems.refuse()
    if left_out := [f"{count} {what}" for what, count in reader.left_out.items() if count]:
        warnings.warn(f"{path}, read as {form}: {', '.join(left_out)}", Note, stacklevel=2)
    return list(reader.made.values())
