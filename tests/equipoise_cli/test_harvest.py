"""Harvest: the protocol with a local server, interruptions, keys, and chat logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chat_server
from commands import called
from equipoise.errors import Note
from equipoise_cli.endpoint import Endpoint
from equipoise_cli.formats.chats import read_chats
from equipoise_cli.harvest import judge, read_topics

pytest.importorskip("openai", reason="harvest needs the extra harvest")

TOPICS = (
    "topic,type,request,format,site\n"
    'F1,F,List films.,"title, URL",imdb.com\n'
    'F2,F,List more films.,"title, URL",imdb.com\n'
)
GOOD, BAD = "Tenet: https://www.imdb.com/title/tt1/", "Films are fun."


@pytest.fixture
def server() -> Iterator[chat_server.Server]:
    running = chat_server.Server([chat_server.says(GOOD)])
    yield running
    running.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "topics.csv").write_text(TOPICS)
    return tmp_path


def harvest(url: str, *more: str) -> str:
    done = called(
        *("harvest", "--topics", "topics.csv", "--endpoint", url, "--model", "m"),
        *("-o", "r.jsonl", "--yes", *more),
    )
    return done.output if done.exit_code else ""


def recorded(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()][1:]


def test_each_answer_decides_the_next_turn(server: chat_server.Server, folder: Path) -> None:
    refusal = "I cannot help with that."
    server.script = [chat_server.says(text) for text in (BAD, GOOD, refusal, GOOD)]
    assert harvest(server.url, "--trials", "1", "--transcripts", "t.txt") == ""
    assert [line["outcome"] for line in recorded(folder)] == ["x", "o", "x"]
    first, second, third = server.requests
    assert first["messages"] == [{"role": "user", "content": "List films.\nFormat: title, URL"}]
    assert second["messages"][2]["content"].startswith("Adhere to the output format")
    assert [third["seed"], second["seed"]] == [2, 1]
    assert "##### F2 r-1\n### U1\nList more films." in (folder / "t.txt").read_text()


def test_nothing_is_sent_without_consent(server: chat_server.Server, folder: Path) -> None:
    done = called(
        *("harvest", "--topics", "topics.csv", "--endpoint", server.url, "--model", "m"),
        *("-o", "r.jsonl"),
    )
    assert done.exit_code == 1
    assert server.requests == []
    assert not (folder / "r.jsonl").exists()


def test_the_same_command_continues_an_interrupted_record(
    server: chat_server.Server, folder: Path
) -> None:
    assert harvest(server.url) == ""
    whole = (folder / "r.jsonl").read_text()
    lines = whole.splitlines(keepends=True)
    (folder / "r.jsonl").write_text("".join(lines[:4]) + lines[4][:20])  # torn
    before = len(server.requests)
    assert harvest(server.url) == ""
    assert len(server.requests) - before == 5
    assert sorted((folder / "r.jsonl").read_text().splitlines()) == sorted(whole.splitlines())
    assert "has other settings (sampling); choose another --output" in harvest(
        server.url, "--seed", "5"
    )


def test_two_harvests_do_not_share_a_record(
    server: chat_server.Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert harvest(server.url, "--trials", "1", "--transcripts", "t.txt") == ""
    record, transcripts = folder / "r.jsonl", (folder / "t.txt").read_text()
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join([*lines, lines[2]]))
    message = harvest(server.url, "--trials", "1", "--transcripts", "t.txt")
    assert "line 6: must be the record of one harvest, got turn 2 of topic F1 in trial 1" in message
    assert (folder / "t.txt").read_text() == transcripts
    record.write_text("".join(lines[:2]))
    chat = Endpoint.chat

    async def chat_while_another_writes(self: Endpoint, **arguments: Any) -> Any:
        with record.open("a") as file:
            file.write(lines[2])
        return await chat(self, **arguments)

    monkeypatch.setattr(Endpoint, "chat", chat_while_another_writes)
    assert "another harvest writes to it" in harvest(server.url, "--trials", "1")
    assert record.read_text() == "".join(lines[:3])


def test_a_busy_server_is_asked_again_and_a_broken_one_is_named(
    server: chat_server.Server, folder: Path
) -> None:
    server.script = [chat_server.fails(429, Retry_After="0"), chat_server.says(GOOD)]
    assert harvest(server.url) == ""
    server.script = [chat_server.fails(404, b'{"error": "no such model"}')]
    (folder / "r.jsonl").unlink()
    message = harvest(server.url)
    assert "NotFoundError: Error code: 404" in message
    assert "Run the same command again to continue." in message


def test_a_key_is_sent_and_never_written(
    server: chat_server.Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert harvest(server.url) == ""
    assert set(server.authorisations) == {"Bearer sk-secret"}
    assert not any("sk-secret" in path.read_text() for path in folder.iterdir())
    assert "must be https" in harvest("http://example.org/v1")
    assert "must not contain a user" in harvest("https://me:pw@example.org/v1")


def test_plain_questions(folder: Path) -> None:
    (folder / "topics.csv").rename(folder / "topics.txt")
    (folder / "topics.txt").write_text("Why is the sky blue?\n\nWho was Ada?\n")
    topics = read_topics(folder / "topics.txt")
    assert [topic["topic"] for topic in topics] == ["q1", "q2"]
    assert judge("Because.", asks_for_format=False) == ("o", False)
    assert judge(" ", asks_for_format=False) == ("x", True)
    assert judge("Tenet: https://example.org/1", "imdb.com") == ("x", False)


CHATS = {
    "OpenAI": {
        "id": "T 1",
        "model": "gpt x",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Films?"}]},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "assistant", "content": "Tenet"},
            {"role": "user", "content": "More?"},
            {"role": "assistant", "content": "No."},
        ],
    },
    "ShareGPT": {
        "id": "T 1",
        "model": "gpt x",
        "conversations": [
            {"from": "human", "value": "Films?"},
            {"from": "gpt", "value": "Tenet"},
            {"from": "human", "value": "More?"},
            {"from": "gpt", "value": "No."},
        ],
    },
    "iKAT": {
        "number": "T 1",
        "model": "gpt x",
        "turns": [
            {"turn_id": 1, "utterance": "Films?", "response": "Tenet"},
            {"turn_id": 2, "utterance": "More?", "response": "No."},
        ],
    },
}


@pytest.mark.filterwarnings("ignore::equipoise.errors.Note")
@pytest.mark.parametrize("form", CHATS)
@pytest.mark.parametrize("dump", [lambda one: json.dumps([one]), json.dumps])
def test_chat_logs_become_transcripts(form: str, dump: object, folder: Path) -> None:
    path = folder / "chats.json"
    path.write_text(dump(CHATS[form]))  # type: ignore[operator]
    conversations = read_chats(path)
    assert conversations == {("gpt_x", "T_1"): [("Films?", "Tenet", ""), ("More?", "No.", "")]}
    done = called("harvest", "--from", path, "--transcripts", "t.txt")
    assert done.exit_code == 0, done.output
    assert "### S2\nNo.\n" in (folder / "t.txt").read_text()


def test_a_conversation_that_begins_with_the_assistant_is_left_out(folder: Path) -> None:
    greeting = {"from": "gpt", "value": "How can I help?"}
    chat: Any = CHATS["ShareGPT"]
    begun = {**chat, "id": "T2", "conversations": [greeting, *chat["conversations"]]}
    path = folder / "chats.json"
    path.write_text(json.dumps([chat, begun]))
    with pytest.warns(Note) as notes:
        assert list(read_chats(path)) == [("gpt_x", "T_1")]
    assert "left out 1 of 2 conversations that begin with the assistant (T2)" in str(notes[-1])
    path.write_text(json.dumps([begun]))
    with pytest.raises(ValueError, match="at least one conversation that begins with the user"):
        read_chats(path)
