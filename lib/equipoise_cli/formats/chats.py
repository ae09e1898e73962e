"""Conversations from chat logs: OpenAI messages, ShareGPT, and topics of TREC iKAT."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from equipoise.errors import Note, listed
from equipoise.loaders.transcripts import run_name
from equipoise.readers import read_text
from equipoise_cli.formats import read_objects

_ROLES = {"user": "user", "human": "user", "assistant": "system", "gpt": "system"}
"""Roles whose texts users read; system prompts and tool calls are left out."""


def read_chats(path: Path) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """Read the conversations of a JSON or JSON Lines file, by run and topic.

    A conversation is a list of (user's text, system's text, mark), the mark being empty. The run is
    the model, if the file names it, else the name of the file; the topic is the id, else a number.
    """
    conversations = {}
    begun_by_system = []
    n_messages = n_unread = 0
    for number, (_, content) in enumerate(read_objects(path, read_text(path)), start=1):
        where = f"{path}, conversation {number}"
        names = [content.get(key) for key in ("id", "conversation_id", "number")]
        topic = next((name for name in names if name not in (None, "")), number)
        key = _word(content.get("model") or run_name(path)), _word(topic)
        if key in conversations:
            raise ValueError(f"{where}: conversation {key[1]} of {key[0]} must occur once")
        messages = list(_messages(where, content))
        read = [(speaker, text) for speaker, text in messages if speaker]
        n_messages += len(messages)
        n_unread += len(messages) - len(read)
        # What the user said last, without an answer.
        n_unread += bool(read) and read[-1][0] == "user"
        if read and read[0][0] == "system":
            begun_by_system.append(key[1])
            read = []
        conversations[key] = _rounds(read)
    if not any(conversations.values()):
        expected = "at least one conversation that begins with the user and has an answer"
        raise ValueError(f"{path}: must have {expected}")
    if n_unread:
        reason = "without text of a user or an assistant, or without an answer"
        warnings.warn(f"{path}: left out {n_unread} of {n_messages} messages {reason}", Note, 2)
    if begun_by_system:
        count = f"{len(begun_by_system)} of {len(conversations)} conversations"
        note = f"{path}: left out {count} that begin with the assistant"
        warnings.warn(f"{note} ({listed(begun_by_system, 3)})", Note, 2)
    empty = [
        topic
        for (_, topic), rounds in conversations.items()
        if not rounds and topic not in begun_by_system
    ]
    if empty:
        count = f"{len(empty)} of {len(conversations)} conversations"
        warnings.warn(f"{path}: left out {count} without an answer ({listed(empty, 3)})", Note, 2)
    return {key: rounds for key, rounds in conversations.items() if rounds}


def _word(value: Any) -> str:
    """Return a name as one printable word, as a transcript needs it."""
    word = re.sub(r"\s+", "_", str(value))
    return "".join(letter if letter.isprintable() else "_" for letter in word)


def _messages(where: str, content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return speaker and text of each message; the speaker of one that is not read is empty."""
    for key in ("messages", "conversations", "turns"):
        if isinstance(content.get(key), list):
            messages = content[key]
            break
    else:
        expected = "messages (OpenAI), conversations (ShareGPT) or turns (iKAT)"
        raise ValueError(f"{where}: must have one of the keys {expected}, got {', '.join(content)}")
    for message in messages:
        if not isinstance(message, dict):
            raise ValueError(f"{where}: a message must be an object, got {message!r:.60}")
        if "utterance" in message:
            yield "user", str(message["utterance"])
            response = str(message.get("response") or "")
            yield "system" if response.strip() else "", response
            continue
        role = str(message.get("role") or message.get("from"))
        text = message.get("content", message.get("value"))
        if isinstance(text, list):  # parts of a message; images have no text
            text = "\n".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
        text = text if isinstance(text, str) else ""
        yield _ROLES.get(role, "") if text.strip() else "", text


def _rounds(messages: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Join consecutive messages of one side, and pair each user turn with the answer."""
    rounds: list[tuple[str, str, str]] = []
    user, system = "", ""
    for speaker, text in messages:
        if speaker == "user" and system:
            rounds.append((user, system, ""))
            user, system = "", ""
        if speaker == "user":
            user = f"{user}\n{text}".strip()
        else:
            system = f"{system}\n{text}".strip()
    if system:
        rounds.append((user, system, ""))
    return rounds
