"""Conversations of others: formats as documented, what is left out, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from commands import called
from equipoise.loaders.transcripts import format_transcripts, parse_transcripts, turn_frame
from equipoise.problems import InputError, Note
from equipoise_cli.loaders.chats import KNOWN, read_chats

SAID = [("user", "A film?"), ("system", "Tenet.\nLooper."), ("user", "More?"), ("system", "No.")]
TEXT = "### U1\nA film?\n### S1\nTenet.\nLooper.\n### U2\nMore?\n### S2\nNo.\n"
ROLES = {"user": "user", "system": "assistant"}
OPENAI = [{"role": ROLES[side], "content": text} for side, text in SAID]
PARTS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "A film?"},
            {"type": "image_url", "image_url": {"url": "x"}},
        ],
    },
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function"}]},
    {"role": "tool", "tool_call_id": "c", "content": "[1, 2]"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Tenet."}]},
    {"role": "assistant", "content": "Looper."},
    *OPENAI[2:],
]
SHAREGPT = [
    {"from": {"user": "human", "system": "gpt"}[side], "value": text} for side, text in SAID
]
WILDCHAT = [
    one | {"language": "English", "toxic": False, "redacted": False, "turn_identifier": 7}
    for one in OPENAI
]
SPOKEN = [
    {"speaker": {"user": "user", "system": "agent"}[side], "text": text} for side, text in SAID
]
MTRAG = [
    {
        "conversation_id": "T1",
        "task_id": f"T1::{n}",
        "input": SPOKEN[: 2 * n - 1],
        "predictions": [{"text": SAID[2 * n - 1][1]}],
    }
    for n in (1, 2)
]
IKAT24 = [
    {"turn_id": n + 1, "utterance": SAID[2 * n][1], "response": SAID[2 * n + 1][1]} for n in (0, 1)
]
IKAT25 = [
    {"turn_id": n + 1, "user_utterance": SAID[2 * n][1], "response": SAID[2 * n + 1][1]}
    for n in (0, 1)
]
FILES: dict[str, tuple[str, Any]] = {
    "messages.jsonl": ("openai", [{"messages": OPENAI, "id": "T1"}]),
    "parts.jsonl": ("openai", [{"messages": PARTS, "custom_id": "T1"}]),
    "one.json": ("openai", {"messages": OPENAI, "topic": "T1"}),
    "agents.json": ("openai", [{"messages": SPOKEN, "topic": "T1"}]),
    "sharegpt.json": ("sharegpt", [{"id": "T1", "conversations": SHAREGPT, "system": "Be brief."}]),
    "sharegpt.jsonl": (
        "sharegpt",
        [{"id": "T1", "conversations": [{"from": "system", "value": "Be."}, *SHAREGPT]}],
    ),
    "roles.jsonl": ("sharegpt", [{"id": "T1", "conversations": OPENAI}]),
    "wildchat.jsonl": (
        "wildchat",
        [{"conversation_hash": "T1", "turn": 2, "conversation": WILDCHAT, "toxic": False}],
    ),
    "mtrag.jsonl": ("mtrag", MTRAG),
    "ikat24.json": (
        "ikat",
        [{"number": "T1", "title": "Films", "ptkb": {"1": "I like chess."}, "turns": IKAT24}],
    ),
    "ikat25.json": (
        "ikat",
        [{"number": "T1", "title": "Films", "ptkb": ["I like chess."], "responses": IKAT25}],
    ),
}


def written(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    lines = content if name.endswith(".jsonl") and isinstance(content, list) else [content]
    path.write_text(
        "".join(
            json.dumps(one, indent=None if path.suffix == ".jsonl" else 1) + "\n" for one in lines
        )
    )
    return path


@pytest.mark.filterwarnings("ignore::equipoise.problems.Note")
@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_transcript(name: str, tmp_path: Path) -> None:
    form, content = FILES[name]
    path = written(tmp_path, name, content)
    for chosen in ("auto", form):
        made = read_chats(path, chosen)
        assert format_transcripts(made) == f"##### T1 {path.stem}\n{TEXT}"
    assert parse_transcripts(format_transcripts(made), "", {}) == made
    assert turn_frame(made)[["start", "end"]].to_numpy().tolist() == [
        [1, 2],
        [3, 4],
        [5, 5],
        [6, 6],
    ]
    assert [
        one
        for one, has in KNOWN.items()
        if has(content[0] if isinstance(content, list) else content)
    ] == [form]


def test_what_a_terminal_obeys_reaches_no_transcript(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "a\x1b[31mred\x07 \x9b2J word\x0cand more"}
    chat = {"id": "t", "messages": [{"role": "user", "content": "Hm?"}, message]}
    (tmp_path / "c.jsonl").write_text(json.dumps(chat) + "\n")
    target = tmp_path / "t.txt"
    assert called("transcripts", str(tmp_path / "c.jsonl"), "-o", str(target)).exit_code == 0
    text = target.read_text()
    assert "a\ufffd[31mred\ufffd \ufffd2J" in text
    assert not {"\x1b", "\x07", "\x9b"} & {*text}
    assert len(text.split()) == len(text.replace("\x0c", " ").split())


def test_a_bare_list_of_messages_is_one_conversation_and_parquet_rows_are_conversations(
    tmp_path: Path,
) -> None:
    (made,) = read_chats(written(tmp_path, "bare.json", OPENAI))
    assert (made.run, made.topic) == ("bare", "c1")
    rows = pd.DataFrame(
        {"conversation_hash": ["a b", "c"], "model": "gpt-4", "conversation": [WILDCHAT] * 2}
    )
    rows.to_parquet(tmp_path / "wild.parquet")
    found = read_chats(tmp_path / "wild.parquet")
    assert [(one.run, one.topic) for one in found] == [("gpt-4", "a_b"), ("gpt-4", "c")]
    assert format_transcripts(found[:1]) == f"##### a_b gpt-4\n{TEXT}"
    assert read_chats(tmp_path / "wild.parquet", run="mine")[1].run == "mine"


def test_what_no_user_sees_is_left_out_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "parts.jsonl", FILES["parts.jsonl"][1])
    with pytest.warns(Note) as notes:
        read_chats(path)
    for said in (
        "1 messages of system",
        "1 parts of type 'image_url'",
        "1 calls of tools",
        "1 messages of tool",
    ):
        assert f"{said} left out" in str(notes[0].message)


def test_who_speaks_first_and_last(tmp_path: Path) -> None:
    path = written(tmp_path, "late.jsonl", [{"messages": [*OPENAI[1:], OPENAI[0]], "id": "T1"}])
    assert format_transcripts(read_chats(path)) == (
        "##### T1 late\n### U1\n### S1\nTenet.\nLooper.\n### U2\nMore?\n### S2\nNo.\n"
        "### U3\nA film?\n"
    )
    silent = [OPENAI[0], OPENAI[1] | {"content": ""}, *OPENAI[2:]]
    path = written(tmp_path, "silent.jsonl", [{"messages": silent, "id": "T1"}])
    assert "### S1\n### U2\nMore?\n### S2\nNo.\n" in format_transcripts(read_chats(path))


def test_tasks_of_mtrag_without_a_prediction_have_the_reference_and_it_is_said(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "tasks.jsonl", [{**MTRAG[1], "predictions": [{"text": "Never."}]}])
    with pytest.warns(Note, match="1 answers of the reference in the place of predictions"):
        made = read_chats(path)
    assert format_transcripts(made) == f"##### T1 tasks\n{TEXT.replace('No.', 'Never.')}"


# --- runs of iKAT ---------------------------------------------------------------------------------


def test_a_run_of_ikat_takes_what_the_user_says_from_the_topics(tmp_path: Path) -> None:
    topics = written(tmp_path, "topics.json", [{"number": "1-1", "responses": IKAT25}])
    texts = {1: "Tenet.\nLooper.", 2: "No."}
    ranked = [{"rank": 2, "text": "Other."}, {"rank": 1, "text": ""}]
    old = {
        "run_name": "mine",
        "turns": [
            {
                "turn_id": f"1-1_{n}",
                "responses": [ranked[0], ranked[1] | {"text": text}],
                "ptkb_provenance": [],
            }
            for n, text in texts.items()
        ],
    }
    about = {
        "metadata": {"team_id": "t", "run_id": "mine", "run_type": "automatic"},
        "references": {"d:1": 0.5},
    }
    sentences = {
        n: [{"text": line, "citations": {}} for line in text.split("\n")]
        for n, text in texts.items()
    }
    new = [about | {"turn_id": f"1-1_{n}", "responses": part} for n, part in sentences.items()]
    for name, content in (("old.json", old), ("new.jsonl", new)):
        path = written(tmp_path, name, content)
        assert format_transcripts(read_chats(path, topics=topics)) == f"##### 1-1 mine\n{TEXT}"
        with pytest.raises(
            InputError,
            match="a run of iKAT, which has no utterances, wanted the topics too: --topics",
        ):
            read_chats(path)
    other = written(tmp_path, "other.json", [{"number": "7", "responses": IKAT25}])
    with pytest.raises(
        InputError, match=r"found turn '1-1_1', wanted a turn of .*other\.json, such as 7_1, 7_2"
    ):
        read_chats(path, topics=other)


def ikat_run(folder: Path, *turns: Any) -> list[str]:
    """The system's turns of a run of iKAT over the topic 1-1, in its order."""
    topics = written(folder, "topics.json", [{"number": "1-1", "responses": IKAT25}])
    content = {"run_name": "mine", "turns": list(turns)}
    (made,) = read_chats(written(folder, "run.json", content), "ikat-run", topics=topics)
    return [" ".join(line.text for line in turn.lines) for turn in made.turns[1::2]]


def ranked_turn(number: int, **text_of_rank: Any) -> dict[str, Any]:
    """A turn with a response for each rank; the text is the name, the rank the value."""
    responses = [{"text": text, "rank": rank} for text, rank in text_of_rank.items()]
    return {"turn_id": f"1-1_{number}", "responses": responses}


@pytest.mark.parametrize(
    "ranks",
    [
        {"last": 1, "best": 0},  # ranks from 0
        {"last": "10", "best": "9"},
        {"last": "11", "best": 9, "middle": 10.0},
        {"last": 3.0, "best": 2.0},
    ],
)
def test_the_response_of_the_lowest_rank_is_taken(ranks: dict[str, Any], tmp_path: Path) -> None:
    assert ikat_run(tmp_path, ranked_turn(1, **ranks)) == ["best"]


def test_turns_of_a_run_of_ikat_are_in_the_order_of_the_topics(tmp_path: Path) -> None:
    assert ikat_run(tmp_path, ranked_turn(2, later=1), ranked_turn(1, first=1)) == [
        "first",
        "later",
    ]


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([ranked_turn(1, a=float("nan"))], "turn '1-1_1' with rank 'nan', wanted a whole number"),
        ([ranked_turn(1, a="first")], "with rank 'first', wanted a whole number from 0"),
        ([ranked_turn(1, a=True)], "with rank 'True', wanted a whole number from 0"),
        ([ranked_turn(1, a=None, b=1)], "with rank 'None', wanted a whole number from 0"),
        ([ranked_turn(1, a=-1)], "with rank '-1', wanted a whole number from 0"),
        ([ranked_turn(1, a=1.5)], "with rank '1.5', wanted a whole number from 0"),
        ([ranked_turn(1, a=1, b="1")], "turn '1-1_1' with rank 1 again, wanted each rank once"),
        ([ranked_turn(1, a=1)] * 2, "turn '1-1_1' of mine again, wanted each turn of a run once"),
        ([{"turn_id": "1-1_1", "responses": [{"rank": 1}]}], "turn '1-1_1' without a response"),
        ([{"turn_id": "1-1_1", "responses": 5}], "turn '1-1_1' without a response"),
    ],
)
def test_a_rank_that_is_none_and_a_turn_given_twice_are_refused(
    turns: list[Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as error:
        ikat_run(tmp_path, *turns)
    assert said in str(error.value)
    topics, run = tmp_path / "topics.json", written(tmp_path, "none.json", {"turns": None})
    with pytest.raises(InputError, match="column turns: found 'None', wanted a list of turns"):
        read_chats(run, "ikat-run", topics=topics)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"text": "A film?", "id": 1}, "an object with 'text', 'id', wanted openai, sharegpt"),
        (
            {"messages": OPENAI, "conversations": SHAREGPT},
            "which may be openai or sharegpt, wanted openai",
        ),
        ({"messages": [OPENAI[0]], "id": "T1"}, "1 turns, no answer with text"),
        (
            {"messages": [OPENAI[0], OPENAI[1] | {"content": 5}]},
            "messages 2: found '5', wanted a text, or a list of parts",
        ),
        (
            {"messages": [OPENAI[0], OPENAI[1] | {"role": "critic"}]},
            "messages 2: found 'critic', wanted role, from",
        ),
        ({"messages": [OPENAI[0], OPENAI[1], "so"]}, "messages 3: found 'so'"),
        (
            [{"messages": OPENAI, "id": "T1"}] * 2,
            "conversation 'T1' of x again, wanted each conversation once",
        ),
        (
            [{"messages": OPENAI, "id": 1}, {"conversation": OPENAI}],
            "line 2: found an object with 'conversation'",
        ),
        ([{"messages": OPENAI}, 5], "line 2: found '5', wanted a JSON object"),
        ("Tenet", "wanted a JSON object"),
    ],
)
def test_what_is_no_conversation_is_refused_by_name(
    content: Any, said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, "x.jsonl", content)
    with pytest.raises(InputError) as error:
        read_chats(path)
    assert said in str(error.value)


def test_the_command_tells_formats_by_content_or_takes_the_named_one(tmp_path: Path) -> None:
    path, out = (
        written(tmp_path, "chat.txt", {"messages": OPENAI, "id": "T1"}),
        tmp_path / "out.txt",
    )
    assert called("transcripts", str(path), "--run", "a b", "-o", str(out)).exit_code == 0
    assert out.read_text() == f"##### T1 a_b\n{TEXT}"
    refused = called(
        "transcripts", str(path), "--from", "sharegpt", "-o", str(tmp_path / "other.txt")
    )
    assert refused.exit_code == 2
    assert (
        "an object with 'messages', 'id', wanted conversations, as sharegpt has them"
        in refused.stderr
    )
    both = written(
        tmp_path, "both.jsonl", [{"messages": OPENAI, "conversations": SHAREGPT, "id": "T2"}]
    )
    assert "name it with --from" in called("transcripts", str(both), "-o", str(out)).stderr
    done = called("transcripts", str(both), "--from", "sharegpt", "--run", "b", "-o", str(out))
    assert "1 conversations written" in done.stderr
