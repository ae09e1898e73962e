"""Conversations from chat logs: OpenAI messages, ShareGPT, and topics of TREC iKAT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from equipoise.loaders.transcripts import run_name
from equipoise.readers import read_text
from equipoise_cli.loaders import read_objects

_ROLES = {"user": "user", "human": "user", "assistant": "system", "gpt": "system"}
"""Roles whose texts users read; system prompts and tool calls are left out."""


def read_chats(path: Path) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """Read the conversations of a JSON or JSON Lines file, by run and topic.

    A conversation is a list of (user's text, system's text, mark), the mark being empty. The run is
    the model, if the file names it, else the name of the file; the topic is the id, else a number.
    """
    conversations = {}
    for number, content in enumerate(read_objects(path, read_text(path)), start=1):
        where = f"{path}, conversation {number}"
        if not isinstance(content, dict):
            raise ValueError(f"{where}: must be an object, got {content!r:.60}")
        names = [content.get(key) for key in ("id", "conversation_id", "number")]
        topic = next((name for name in names if name not in (None, "")), number)
        key = _word(content.get("model") or run_name(path)), _word(topic)
        if key in conversations:
            raise ValueError(f"{where}: conversation {key[1]} of {key[0]} must occur once")
        conversations[key] = _rounds(where, list(_messages(where, content)))
    if not any(conversations.values()):
        raise ValueError(f"{path}: must have at least one conversation with an answer")
    return conversations


def _word(value: Any) -> str:
    """Return a name as one printable word, as a transcript needs it."""
    return re.sub(r"\s+|[^\x21-\uffff]", "_", str(value))


def _messages(where: str, content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return speaker and text of each message of a conversation."""
    for key in ("messages", "conversations", "turns"):
        if isinstance(content.get(key), list):
            messages = content[key]
            break
    else:
        expected = "messages (OpenAI), conversations (ShareGPT) or turns (iKAT)"
        raise ValueError(f"{where}: must have {expected}, got {', '.join(content)}")
    for message in messages:
        if not isinstance(message, dict):
            raise ValueError(f"{where}: a message must be an object, got {message!r:.60}")
        if "utterance" in message:
            yield "user", str(message["utterance"])
            yield "system", str(message.get("response") or "")
            continue
        role = str(message.get("role") or message.get("from"))
        text = message.get("content", message.get("value"))
        if isinstance(text, list):  # parts of a message; images have no text
            text = "\n".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
        if role in _ROLES and isinstance(text, str) and text.strip():
            yield _ROLES[role], text


def _rounds(where: str, messages: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
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
    if any(not user for user, _, _ in rounds):
        raise ValueError(f"{where}: must begin with a message of the user")
    return rounds
