"""A chat endpoint: what is sent to it, what it may answer, and what of it is recorded."""

from __future__ import annotations

import base64
import json
import re
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import click
import openai
from pydantic import BaseModel, Field, ValidationError

from equipoise.errors import excerpt

_HEADERS = {"host", "content-type", "content-length", "accept", "accept-encoding", "connection"}
"""Headers of a request, with the key; organisation and others of the environment are not sent."""


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class Reply(BaseModel):
    """An answer of an endpoint; other fields are not read."""

    choices: Annotated[list[_Choice], Field(min_length=1)]
    model: str | None = None


class Endpoint:
    """An OpenAI-compatible endpoint, which gets the key and nothing else of this machine."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url, key
        self._forms = re.compile("|".join(map(re.escape, _forms(key))), re.IGNORECASE)
        is_local = re.fullmatch(r"localhost|::1|127\.[\d.]+", _host(url)) is not None
        if key and not is_local and urlsplit(url).scheme == "http":
            raise click.UsageError("--endpoint must be https, because a key is sent to it")
        if not (key.isascii() and key.isprintable()):
            raise click.UsageError("the key must be printable ASCII characters")
        self._client = openai.AsyncOpenAI(
            base_url=url,
            api_key=key or "none",
            max_retries=5,
            http_client=openai.DefaultAsyncHttpxClient(
                trust_env=not is_local,  # a proxy would read what is sent to this machine
                follow_redirects=False,
                event_hooks={"request": [self._strip]},
                timeout=openai.Timeout(600, connect=10),  # seconds
            ),
        )

    async def _strip(self, request: Any) -> None:
        for name in set(request.headers) - _HEADERS:
            del request.headers[name]
        request.headers["authorization"] = f"Bearer {self.key or 'none'}"

    async def chat(self, **arguments: Any) -> Reply:
        """Return the answer to messages; raise ClickException for anything else."""
        try:
            reply = await self._client.chat.completions.create(**arguments)
            return Reply.model_validate(reply, from_attributes=True)  # openai checks nothing
        except ValidationError as error:
            place = ".".join(map(str, error.errors()[0]["loc"])) or "reply"
            problem = f"must answer with a chat completion, got another {place}: {excerpt(reply)}"
        except (openai.OpenAIError, ValueError, RecursionError) as error:  # redirects, too
            problem = f"{type(error).__name__}: {error}"
        raise click.ClickException(
            f"{self.url}: {self.masked(problem):.300}. Run the same command again to continue."
        )

    def masked(self, value: Any) -> Any:
        """Return text, or the texts of a list or dictionary, without the key."""
        if isinstance(value, str):
            text = value.encode("utf-8", "replace").decode()  # without halves of pairs
            return self._forms.sub("***", text) if self.key else text
        if isinstance(value, list):
            return [self.masked(item) for item in value]
        if isinstance(value, dict):
            return {name: self.masked(item) for name, item in value.items()}
        return value

    def line(self, record: dict[str, Any]) -> str:
        """Return a line of a record."""
        return json.dumps(self.masked(record), ensure_ascii=False, sort_keys=True) + "\n"


def _forms(key: str) -> set[str]:
    """Return a key as a server may send it back: as it is, in addresses, JSON, hex and base64."""
    forms = {key, quote(key, safe=""), key.replace("/", "\\/"), key.encode().hex()}
    for before in range(3):  # bytes, such as those of a user, which shift all that follow
        encoded = base64.b64encode(b" " * before + key.encode()).decode()
        begin, end = -(-before * 4 // 3), (before + len(key)) * 4 // 3
        forms |= {encoded[begin:end], encoded[begin:end].translate(str.maketrans("+/", "-_"))}
    return {form for form in forms if len(form) >= len(key)}  # a part of a short key is a letter


def _host(url: str) -> str:
    """Return the host of an address; reject one that would disclose a key."""
    try:
        parts = urlsplit(url)
        # A port out of range is an error, and so is a part that is too long.
        host = (parts.hostname or "").encode("idna").decode() if parts.port != 0 else ""
    except ValueError:
        host = ""
    if not host or not url.isprintable() or parts.scheme not in ("http", "https"):
        raise click.UsageError(f"--endpoint must be an http(s) URL, got {url!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise click.UsageError("--endpoint must not contain a user, password, query or fragment")
    return host
