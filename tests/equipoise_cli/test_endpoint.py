"""Guards an endpoint: who gets the key, what of a reply is accepted, and an end at once."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import time
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chat_server
from commands import called

pytest.importorskip("openai", reason="harvest needs the extra harvest")

KEY = "sk-secret"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / "topics.txt").write_text("Why is the sky blue?\nWho was Ada?\n")
    return tmp_path


def words_for(url: str, *more: str) -> list[str]:
    command = ["harvest", "--topics", "topics.txt", "--endpoint", url, "--model", "m"]
    return [*command, "-o", "r.jsonl", "--transcripts", "t.txt", "--yes", *more]


def error_at(url: str, *more: str) -> str:
    """The one sentence of a harvest that must fail."""
    done = called(*words_for(url, *more))
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert KEY not in done.output
    return error


@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>Sign in</body></html>",
        b"null",
        b"[]",
        b"{",
        b"{}",
        b"[" * 100_000,
        b'{"choices": null}',
        b'{"choices": []}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": 7}}]}',
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
@pytest.mark.usefixtures("folder")
def test_another_reply_is_one_sentence(serve: chat_server.Serve, body: bytes, kind: str) -> None:
    server = serve(lambda handler: chat_server.send(handler, body, Content_Type=kind))
    error = error_at(server.url)
    assert server.url in error
    assert "Run the same command again" in error


def test_half_a_pair_of_surrogates_is_recorded(serve: chat_server.Serve, folder: Path) -> None:
    body = b'{"choices": [{"message": {"content": "\\ud800 Because."}}]}'
    server = serve(lambda handler: chat_server.send(handler, body, Content_Type="application/json"))
    assert called(*words_for(server.url)).exit_code == 0
    assert "? Because." in (folder / "r.jsonl").read_text("utf-8")


@pytest.mark.usefixtures("folder")
def test_a_redirect_is_not_followed(serve: chat_server.Serve) -> None:
    other = serve(chat_server.says("I have it."))
    server = serve(chat_server.fails(307, Location=f"{other.url}/chat/completions"))
    assert "Error code: 307" in error_at(server.url)
    assert other.requests == []


def test_only_the_endpoint_gets_the_key(
    serve: chat_server.Serve, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = serve(chat_server.says("I am the proxy."))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
    monkeypatch.setenv("OPENAI_ORG_ID", "our-organisation")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "our-project")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Ours: ours")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    received = []

    def echoes(handler: BaseHTTPRequestHandler) -> None:
        received.append({name.lower(): text for name, text in handler.headers.items()})
        chat_server.says(f"You said {handler.headers['Authorization']}.")(handler)

    server = serve(echoes)
    done = called(*words_for(server.url, "--note", f"with {KEY}"))
    assert done.exit_code == 0, done.output
    assert proxy.requests == []
    assert {headers["authorization"] for headers in received} == {f"Bearer {KEY}"}
    assert not any("ours" in str(headers) or "our-" in str(headers) for headers in received)
    for name in ("r.jsonl", "t.txt"):
        text = (folder / name).read_text()
        assert KEY not in text
        assert "You said Bearer ***." in text
    # The masked settings are those of the same command.
    assert called(*words_for(server.url, "--note", f"with {KEY}")).exit_code == 0


@given(st.binary(max_size=5), st.text("abcXYZ019+/-_", min_size=8), st.binary(max_size=5))
@settings(deadline=None)
def test_a_key_is_masked_in_every_form(before: bytes, key: str, after: bytes) -> None:
    """As it is, in an address, in JSON, hex and base64, also between other bytes."""
    whole = before + key.encode() + after
    texts = [key, key.upper(), quote(key, safe=""), json.dumps(key).replace("/", "\\/")]
    texts += [
        whole.hex(),
        base64.b64encode(whole).decode(),
        base64.urlsafe_b64encode(whole).decode(),
    ]
    from equipoise_cli.endpoint import Endpoint  # which needs the extra

    masked = Endpoint("http://127.0.0.1:1/v1", key).masked({"texts": texts})["texts"]
    assert all("***" in text for text in masked), masked


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://[::1/v1", KEY),
        ("http://localhost:99999/v1", KEY),
        ("http:///v1", KEY),
        ("http://127.0.0.1:9/v1\n", KEY),
        (f"http://{'a' * 70}.org/v1", ""),
        ("ftp://localhost/v1", KEY),
        ("http://localhost.example.org/v1", KEY),
        ("http://127.0.0.1:9/v1", "sk\u2019secret"),
        ("http://127.0.0.1:9/v1", "sk\nsecret"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_bad_address_or_key_is_one_sentence(
    url: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert error_at(url)
    assert not Path("r.jsonl").exists()


def test_an_interrupt_ends_at_once_and_keeps_what_came(
    serve: chat_server.Serve, folder: Path
) -> None:
    silent = chat_server.silent
    server = serve(chat_server.says("Because."), chat_server.says("More."), silent)
    command = [sys.executable, "-m", "equipoise_cli", *words_for(server.url, "--parallel", "2")]
    # In the background of a shell without job control, interrupts are ignored.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=heed) as harvest:
        while len(server.requests) < 4:
            time.sleep(0.05)
            assert harvest.poll() is None
        harvest.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, message = harvest.communicate(timeout=20)
    assert time.monotonic() - begin < 2
    assert b"interrupted; run the same command again to continue" in message
    assert b"Traceback" not in message
    assert len((folder / "r.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("line", ["7", "[]", "{}", '{"turn": 1}', '{"record": "turn", "turn": []}'])
def test_a_bad_record_is_one_sentence(serve: chat_server.Serve, folder: Path, line: str) -> None:
    server = serve(chat_server.says("Because."))
    assert called(*words_for(server.url)).exit_code == 0
    lines = (folder / "r.jsonl").read_text().splitlines()
    (folder / "r.jsonl").write_text("\n".join([lines[0], line, *lines[2:]]) + "\n")
    assert "r.jsonl, line 2" in error_at(server.url)
    settings = json.loads(lines[0]) | {"record": "settings", "topics": None}
    (folder / "r.jsonl").write_text(json.dumps(settings) + "\n")
    assert "has other settings (topics)" in error_at(server.url)
