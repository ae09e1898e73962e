"""The two-round protocol against a server that behaves, dies, stalls, or answers garbage."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import fault_server
from chat_server import Behaviour, Server, dies, fails, halves, says, send, stalls, tears, trickles
from commands import called
from equipoise.loaders.transcripts import format_transcripts, parse_transcripts
from equipoise.problems import InputError
from equipoise_cli import main
from equipoise_cli.harvest import HarvestError, Protocol, Topic, harvest, judge_answer, read_topics
from equipoise_studies.recorded_conversations import harvest_transcripts, parse_record, read_harvest
from equipoise_studies.systems.endpoint import Endpoint, Sampling, connect

KEY = "sk-a-secret-that-must-not-be-written"
USEFUL = "Tenet (2020): https://www.imdb.com/title/tt6723592/"
USELESS = "Tenet and Looper are well known."
REFUSAL = "I'm unable to help you with that, as I'm only a language model."
TOPICS = [
    Topic("T1", "T", "Please list films.", "title, URL", "imdb.com"),
    Topic("T2", "T", "Please list books.", "title, URL"),
]


def endpoint(server: Server, **changes: Any) -> Endpoint:
    return Endpoint(server.url, "tiny", **({"timeout": 0.4, "tries": 3, "wait": 0.25} | changes))


def turns_of(record: Path) -> list[dict[str, Any]]:
    return parse_record(record)[1]


# --- the protocol ---------------------------------------------------------------------------------


def test_each_answer_leads_to_its_second_turn(tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve(
        says(USEFUL),
        says("More: Looper https://imdb.com/2"),
        says(USELESS),
        says(USEFUL),
        says(REFUSAL),
        says(""),
    )
    record = tmp_path / "tiny.jsonl"
    assert harvest(TOPICS, endpoint(server), record, trials=2) == 6
    users = [request["messages"][-1]["content"] for request in server.requests]
    assert users == [
        "Please list films.\nFormat: title, URL",
        "Can you name a few more?",
        "Please list books.\nFormat: title, URL",
        'Adhere to the output format I specified:\n"Format: title, URL"',
        "Please list films.\nFormat: title, URL",
        "Please list books.\nFormat: title, URL",
    ]
    second = server.requests[1]
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][1]["content"] == USEFUL
    assert second["path"] == "/v1/chat/completions"
    table = read_harvest(record)
    assert table["run"].unique().tolist() == ["tiny-1", "tiny-2"]
    assert table["outcome"].tolist() == ["o", "o", "x", "o", "x", "-", "x", "-"]
    assert table["type"].unique().tolist() == ["T"]


def test_as_many_rounds_as_are_asked_for(tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve(says(USEFUL), says(USELESS), says(USEFUL), says(USELESS), says(REFUSAL))
    record = tmp_path / "r.jsonl"
    assert harvest(TOPICS, endpoint(server), record, trials=1, rounds=3) == 5
    users = [request["messages"][-1]["content"] for request in server.requests]
    assert users[1:3] == [
        "Can you name a few more?",
        'Adhere to the output format I specified:\n"Format: title, URL"',
    ]
    assert [turn["seed"] for turn in turns_of(record)] == [0, 1, 2, 3, 4]
    table = read_harvest(record)
    assert table["turn"].tolist() == [1, 2, 3, 1, 2, 3]
    assert "".join(table["outcome"]) == "oxoxx-"


def test_plain_questions_are_asked_and_judged_as_such(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    script = [says("In Wales."), says("Its capital is Cardiff."), says(REFUSAL)]
    for name, text in (
        ("questions.txt", "Where is Cardiff?\n\nWho wrote Emma?\n"),
        ("questions.csv", "topic,question\nq1,Where is Cardiff?\nq2,Who wrote Emma?\n"),
    ):
        server = serve(*script)
        (tmp_path / name).write_text(text)
        record, transcripts = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.out"
        words = ["harvest", "--topics", str(tmp_path / name), "--endpoint", server.url]
        words += ["--model", "m", "--trials", "1", "--tries", "1", "-o", str(record)]
        result = called(*words, "--transcripts", str(transcripts))
        assert result.exit_code == 0, result.output
        assert "2 topics, 1 trials, 2 rounds: at most 4 answers, and " in result.stderr
        users = [request["messages"][-1]["content"] for request in server.requests]
        assert users == [
            "Where is Cardiff?",
            "Can you tell me more about that?",
            "Who wrote Emma?",
        ]
        assert [turn["topic"] for turn in turns_of(record)] == ["q1", "q1", "q2"]
        assert [turn["outcome"] for turn in turns_of(record)] == ["o", "o", "x"]
        assert "In Wales." in transcripts.read_text()
    assert "--trials" in called(*words, "--trials", "1001").stderr


def test_in_one_session_every_topic_sees_those_before(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    script = [says(USEFUL), says(USELESS), says(REFUSAL), says(USEFUL)]
    server, record = serve(*script), tmp_path / "r.jsonl"
    harvest(TOPICS, endpoint(server), record, trials=2, session="trial")
    seen = [[message["content"] for message in request["messages"]] for request in server.requests]
    assert [len(messages) for messages in seen] == [
        1,
        3,
        5,
        1,
        3,
        5,
        7,
    ]  # the second topic of trial 1 breaks down
    assert seen[2] == [*seen[1], USELESS, "Please list books.\nFormat: title, URL"]
    # it goes on with what an interrupted session had said
    record.write_bytes(b"".join(record.read_bytes().splitlines(keepends=True)[:3]))
    harvest(TOPICS, endpoint(server), record, trials=1, session="trial")
    assert [message["content"] for message in server.requests[7]["messages"]] == seen[2]


def test_many_at_a_time_record_what_one_at_a_time_does(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    topics = [Topic(f"T{number}", "T", "Please list films.", "title, URL") for number in range(7)]
    for parallel in (1, 5):
        record = tmp_path / f"{parallel}.jsonl"
        asked = harvest(
            topics, endpoint(serve(says(USEFUL)), timeout=5), record, trials=3, parallel=parallel
        )
        assert asked == 42
    one, five = (read_harvest(tmp_path / f"{parallel}.jsonl", "r") for parallel in (1, 5))
    assert one.equals(five)
    seeds = [
        {(t["trial"], t["topic"], t["turn"]): t["seed"] for t in turns_of(tmp_path / f"{p}.jsonl")}
        for p in (1, 5)
    ]
    assert seeds[0] == seeds[1]
    assert sorted(seeds[0].values()) == list(range(42))


def test_many_at_a_time_give_up_too(tmp_path: Path, serve: Callable[..., Server]) -> None:
    topics = [Topic(f"T{number}", "T", "Please list films.", "title, URL") for number in range(30)]
    server = serve(fails(401, b"no"))
    with pytest.raises(HarvestError, match="Given up after failures in a row"):
        harvest(topics, endpoint(server), tmp_path / "r.jsonl", trials=4, parallel=2)
    # The third failure in a row ends it; one more question may be on its way by then.
    assert 3 <= len(server.requests) <= 3 + 1


def test_a_record_that_states_no_rounds_is_one_of_two(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server, record = serve(says(USEFUL)), tmp_path / "r.jsonl"
    harvest(TOPICS, endpoint(server), record, trials=1)
    stated = record.read_bytes()
    record.write_bytes(stated.replace(b', "rounds": 2', b"").replace(b', "session": "topic"', b""))
    assert record.read_bytes() != stated
    assert parse_record(record)[0]["rounds"] == 2
    assert harvest(TOPICS, endpoint(server), record, trials=2) == 4  # it is gone on with
    record.write_bytes(stated.replace(b'"rounds": 2', b'"rounds": 1'))
    with pytest.raises(InputError, match="no good value for turn"):
        parse_record(record)
    record.write_bytes(stated.replace(b'"rounds": 2', b'"rounds": "2"'))
    with pytest.raises(InputError, match="line 1, column rounds"):
        parse_record(record)


def test_every_setting_is_recorded(tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve(says(USEFUL))
    sampling = Sampling(temperature=0.3, top_p=0.5, max_tokens=9, seed=100, system="Be brief.")
    harvest(
        TOPICS, endpoint(server), tmp_path / "r.jsonl", trials=2, sampling=sampling, note="a note"
    )
    settings, turns = parse_record(tmp_path / "r.jsonl")
    assert settings["model"] == "tiny"
    assert settings["endpoint"] == server.url
    assert settings["note"] == "a note"
    assert settings["sampling"] == {
        "temperature": 0.3,
        "top_p": 0.5,
        "max_tokens": 9,
        "seed": 100,
        "system": "Be brief.",
    }
    assert settings["protocol"]["more"] == Protocol().more
    assert [topic["topic"] for topic in settings["topics"]] == ["T1", "T2"]
    assert (
        [turn["seed"] for turn in turns]
        == [request["seed"] for request in server.requests]
        == list(range(100, 108))
    )
    assert {request["temperature"] for request in server.requests} == {0.3}
    assert {request["max_tokens"] for request in server.requests} == {9}
    assert server.requests[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert {turn["answered_by"] for turn in turns} == {
        "tiny.gguf"
    }  # a name, not a path of the server's machine
    assert {(turn["prompt_tokens"], turn["completion_tokens"]) for turn in turns} == {(7, 3)}


# --- misbehaviour ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("misbehaviour", "mishap"),
    [
        (dies, "the connection failed"),
        (stalls, "no complete answer within 0.4 s"),
        (trickles, "no complete answer within 0.4 s"),
        (tears, "the connection failed"),
        (halves, "not JSON, or only a part of it"),
        (lambda handler: send(handler, b"<html>502 bad gateway</html>"), "not JSON"),
        (lambda handler: send(handler, b"[" * 100_000), "not JSON"),
        (lambda handler: send(handler, b"{}"), "lacks choices"),
        (lambda handler: send(handler, b"[1]"), "lacks choices"),
        (lambda handler: send(handler, b'{"choices": []}'), "lacks choices"),
        (says(None), "is not text"),
        (says("half an", finish=None), "is not text"),
        (lambda handler: send(handler, b" " * (5 * 2**20)), "longer than"),
        (fails(503), "HTTP 503: busy"),
        (fails(429), "HTTP 429: busy"),
        (fails(500, b"\xff\x00"), "HTTP 500"),
    ],
)
def test_a_passing_mishap_is_survived_and_recorded(
    misbehaviour: Behaviour, mishap: str, tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(misbehaviour, says(USEFUL))
    waits: list[float] = []
    asked = harvest(
        TOPICS[:1], endpoint(server), tmp_path / "r.jsonl", trials=1, sleep=waits.append
    )
    assert asked == 2
    first, second = turns_of(tmp_path / "r.jsonl")
    assert first["system"] == USEFUL
    assert len(first["mishaps"]) == 1
    assert mishap in first["mishaps"][0]
    assert second["mishaps"] == []
    assert waits == [0.25]


def test_waits_double_and_heed_the_server(tmp_path: Path, serve: Callable[..., Server]) -> None:
    waits: list[float] = []
    server = serve(fails(503), fails(503), fails(429, Retry_After="7"), says(USEFUL))
    polite = endpoint(server, tries=5, pause=0.125, longest_wait=10)
    harvest(TOPICS[:1], polite, tmp_path / "r.jsonl", trials=1, sleep=waits.append)
    assert waits == [0.25, 0.5, 7.0, 0.125]
    impatient = serve(fails(429, Retry_After="3600"))
    with pytest.raises(HarvestError, match="no answer after 1 tries"):
        harvest(TOPICS[:1], endpoint(impatient), tmp_path / "s.jsonl", trials=1, sleep=waits.append)
    assert len(impatient.requests) == 1


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        ("Wed, 21 Oct 2015 07:28:07 GMT", 7.0),
        ("Wednesday, 21-Oct-15 07:28:07 GMT", 7.0),
        ("Wed, 21 Oct 2015 09:28:07 +0200", 7.0),
        ("Wed, 21 Oct 2015 07:27:07 GMT", 0.25),
        ("Wed, 21 Oct 2015 07:28:07 -0000", 0.25),  # no zone: no moment
        ("31 Feb", 0.25),
        ("-7", 0.25),
        ("soon", 0.25),
    ],
)
def test_a_date_to_wait_for_is_heeded(asked: str, wait: float, tmp_path: Path) -> None:
    """By the server's clock, which tells the time in the same answer."""
    server = fault_server.FaultServer(
        fault_server.status(
            "503 Wait", b"busy", "Date: Wed, 21 Oct 2015 07:28:00 GMT", f"Retry-After: {asked}"
        )
    )
    waits: list[float] = []
    polite = Endpoint(server.url, "tiny", tries=2, wait=0.25)
    harvest(TOPICS[:1], polite, tmp_path / "r.jsonl", trials=1, sleep=waits.append)
    server.close()
    assert waits == [wait]


def test_a_date_is_heeded_by_the_clock_of_this_machine_too(tmp_path: Path) -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    server = fault_server.FaultServer(
        fault_server.status("503 Wait", b"busy", f"Retry-After: {until}")
    )
    waits: list[float] = []
    harvest(
        TOPICS[:1], Endpoint(server.url, "tiny"), tmp_path / "r.jsonl", trials=1, sleep=waits.append
    )
    server.close()
    assert 20 < waits[0] <= 40


def test_what_another_try_cannot_mend_is_not_tried_again(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    for status in (400, 401, 404, 302):
        server = serve(fails(status, b"no such key", Location="http://127.0.0.1:9/"))
        with pytest.raises(HarvestError, match=f"HTTP {status}: no such key"):
            harvest(TOPICS[:1], endpoint(server), tmp_path / f"{status}.jsonl", trials=1)
        assert len(server.requests) == 1


def test_a_dead_server_is_given_up_and_nothing_is_lost(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    record = tmp_path / "r.jsonl"
    server = serve(says(USEFUL), says(USEFUL), says(USEFUL), dies)
    with pytest.raises(HarvestError, match="Given up after failures in a row") as caught:
        harvest(TOPICS, endpoint(server), record, trials=4, give_up=2, sleep=lambda _: None)
    assert "topic T2, trial 1, turn 2" in str(caught.value)
    assert [(turn["topic"], turn["turn"]) for turn in turns_of(record)] == [
        ("T1", 1),
        ("T1", 2),
        ("T2", 1),
    ]
    assert len(server.requests) == 3 + 2 * 3
    # once it is back, only what is missing is asked, and with the seeds it would have had
    before = record.read_bytes()
    server.script[3:] = [says(USEFUL)]
    assert harvest(TOPICS, endpoint(server), record, trials=4) == 16 - 3
    assert record.read_bytes().startswith(before)
    assert sorted(turn["seed"] for turn in turns_of(record)) == list(range(16))
    assert harvest(TOPICS, endpoint(server), record, trials=4) == 0


def test_one_bad_conversation_does_not_stop_the_others(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(dies, dies, dies, says(USEFUL))
    with pytest.raises(
        HarvestError, match=r"topic T1, trial 1, turn 1[\s\S]*All other conversations are complete"
    ):
        harvest(TOPICS, endpoint(server), tmp_path / "r.jsonl", trials=1, sleep=lambda _: None)
    assert read_harvest(tmp_path / "r.jsonl")["topic"].tolist() == ["T2", "T2"]


def test_an_interruption_anywhere_loses_no_whole_turn(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(says(USEFUL))
    whole = tmp_path / "whole.jsonl"
    harvest(TOPICS, endpoint(server), whole, trials=1)
    data = whole.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for cut in {0, 1, ends[0] - 1, *ends, ends[1] + 20, len(data) - 1}:
        torn = tmp_path / f"torn-{cut}.jsonl"
        torn.write_bytes(data[:cut])
        kept = max(
            0, sum(end <= cut + 1 for end in ends) - 1
        )  # a line that lacks its end alone is whole
        assert harvest(TOPICS, endpoint(server), torn, trials=1) == 4 - kept
        assert torn.read_bytes() == data


def test_interrupted_between_turns_by_hand(tmp_path: Path, serve: Callable[..., Server]) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    server = serve(says(USEFUL))
    with pytest.raises(KeyboardInterrupt):
        harvest(TOPICS, endpoint(server, pause=1), tmp_path / "r.jsonl", trials=1, sleep=interrupt)
    assert len(turns_of(tmp_path / "r.jsonl")) == 1


def test_a_record_made_with_other_settings_is_refused(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(says(USEFUL))
    harvest(TOPICS, endpoint(server), tmp_path / "r.jsonl", trials=1)
    with pytest.raises(
        InputError, match=r"column sampling: found .*temperature.*or another record"
    ):
        harvest(
            TOPICS,
            endpoint(server),
            tmp_path / "r.jsonl",
            trials=1,
            sampling=Sampling(temperature=1),
        )
    with pytest.raises(InputError, match="column topics"):
        harvest(TOPICS[:1], endpoint(server), tmp_path / "r.jsonl", trials=1)
    assert len(turns_of(tmp_path / "r.jsonl")) == 4


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"not json", "line 2: found a line that is not JSON"),
        (b'{"record": "settings"}', "line 2, column record: found 'settings'"),
        (b'{"record": "turn", "trial": 1}', "line 2: found no good value for topic, turn, user"),
        (b'"a string"', "line 2, column record: found None"),
    ],
)
def test_a_bad_record_is_refused(line: bytes, complaint: str, tmp_path: Path) -> None:
    record = tmp_path / "r.jsonl"
    record.write_bytes(
        b'{"record": "settings", "topics": [{"topic": "T1"}]}\n' + line + b"\n" + line + b"\n"
    )
    with pytest.raises(InputError, match=complaint) as caught:
        parse_record(record)
    assert [problem.line for problem in caught.value.problems] == [2, 3]


def test_repeated_turns_and_strange_topics_are_refused(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server, record = serve(says(USEFUL)), tmp_path / "r.jsonl"
    harvest(TOPICS, endpoint(server), record, trials=1)
    data = record.read_bytes()
    record.write_bytes(data + data.splitlines(keepends=True)[1])
    with pytest.raises(InputError, match="line 6: found turn 1 of topic T1, trial 1, again"):
        parse_record(record)
    record.write_bytes(data.replace(b'"topic": "T2", "trial"', b'"topic": "T9", "trial"'))
    with pytest.raises(InputError, match="column topic: found 'T9'"):
        parse_record(record)


# --- the key --------------------------------------------------------------------------------------


def test_the_key_is_sent_and_never_written(
    tmp_path: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server = serve(
        fails(503, f"you sent {KEY}".encode()),
        says(f"{USEFUL} and {KEY}"),
        fails(401, KEY.encode()),
    )
    with pytest.raises(HarvestError) as caught:
        harvest(
            TOPICS,
            endpoint(server, key_variable="MY_KEY"),
            tmp_path / "r.jsonl",
            trials=1,
            sleep=lambda _: None,
        )
    assert set(server.authorisations) == {f"Bearer {KEY}"}
    written = (tmp_path / "r.jsonl").read_text()
    assert KEY not in written
    assert KEY not in str(caught.value)
    assert "[key]" in written
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    bare = serve(says(USEFUL))
    harvest(TOPICS, endpoint(bare), tmp_path / "s.jsonl", trials=1)
    assert set(bare.authorisations) == {None}


@pytest.mark.parametrize(
    "url",
    ["ftp://h/v1", "http://user:key@h/v1", "http://h/v1?key=1", "h/v1", "http://", "http://[", ""],
)
def test_an_endpoint_that_would_record_a_key_or_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="plain http"):
        Endpoint(url, "tiny")


@pytest.mark.parametrize(
    "place",
    [
        "h:0",
        "h:65536",
        "h:99999",
        "999.1.1.1",
        "[::::]",
        "[fe80]",
        "a..b",
        "a" * 64,
        "a" * 64 + ".org",
        "...",
    ],
)
def test_a_host_or_port_that_cannot_be_is_refused_at_once(place: str) -> None:
    with pytest.raises(ValueError, match="is no host, or its port is not from 1 to 65535"):
        Endpoint(f"http://{place}/v1", "tiny")


def test_an_endpoint_may_be_anywhere() -> None:
    for place in (
        "h",
        "h:65535",
        "127.0.0.1:8080",
        "[::1]:8080",
        "a_b.example.org",
        "xn--bcher-kva.example",
        "h.",
    ):
        assert Endpoint(f"https://{place}/v1/", "tiny").url


@pytest.mark.parametrize("variable", ["ALL_PROXY", "SSL_CERT_FILE"])
def test_a_proxy_or_certificates_of_no_use_are_told(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "gopher://user:password@host")
    with pytest.raises(ValueError, match="that are of no use") as caught:
        connect()
    assert "password" not in str(caught.value)


def test_numbers_out_of_range_are_refused(tmp_path: Path) -> None:
    for change in (
        {"tries": 0},
        {"timeout": 0},
        {"timeout": 1e9},
        {"timeout": float("nan")},
        {"pause": -1},
    ):
        with pytest.raises(ValueError, match="tries must be"):
            Endpoint("http://127.0.0.1/v1", "tiny", **change)
    for topics, trials in (([], 1), (TOPICS, 0), ([TOPICS[0], TOPICS[0]], 1)):
        with pytest.raises(ValueError, match="at least one trial, one round and one topic"):
            harvest(
                topics, Endpoint("http://127.0.0.1/v1", "tiny"), tmp_path / "r.jsonl", trials=trials
            )


# --- judging --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "site", "useful", "breakdown"),
    [
        (USEFUL, "imdb.com", True, False),
        (USEFUL, "", True, False),
        ("1. **Tenet** - [IMDb](https://imdb.com/x)", "imdb.com", True, False),
        ("Tenet www.imdb.com/x", "imdb.com", True, False),
        (USEFUL, "wikipedia.org", False, False),
        ("Tenet https://notimdb.com/x", "imdb.com", False, False),
        ("Tenet https://imdb.com.example.org/x", "imdb.com", False, False),
        (
            "https://www.imdb.com/title/tt6723592/",
            "imdb.com",
            False,
            False,
        ),  # a URL that names nothing
        (USELESS, "", False, False),
        (REFUSAL, "", False, True),
        (REFUSAL.replace("'", "’"), "", False, True),
        ("I'm a text-based AI, and that is outside of my capabilities.", "", False, True),
        ("As an AI language model, I cannot browse the web.", "", False, True),
        (f"I can't list them all, but: {USEFUL}", "", True, False),
        ("  \n", "", False, True),
    ],
)
def test_judgement_of_an_answer(text: str, site: str, *, useful: bool, breakdown: bool) -> None:
    judgement = judge_answer(text, site)
    assert (judgement.useful, judgement.breakdown) == (useful, breakdown)
    assert judgement.mark == ("o" if useful else "x")


# --- from the record on ---------------------------------------------------------------------------


def test_harvested_turns_become_a_transcript_to_annotate(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(says(f"# Films\n\n{USEFUL}\n"), says("wc= none \ud800"), says(REFUSAL))
    harvest(TOPICS, endpoint(server), tmp_path / "tiny.jsonl", trials=1)
    text = format_transcripts(harvest_transcripts(read_harvest(tmp_path / "tiny.jsonl")))
    assert text.encode("utf-8")  # a lone surrogate would not let itself be written
    first, second = parse_transcripts(text, "another", {})
    assert [turn.mark for turn in first.turns] == ["", "o", "", "x"]
    assert [line.text for line in first.turns[1].lines] == ["# Films", USEFUL]
    assert (first.run, second.run, len(second.turns)) == ("tiny-1", "tiny-1", 2)


def test_topics_are_read_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "topics.csv"
    file.write_text("topic,type,request,format,site\nT1,T,Please list.,title,\nT1,T,,title,\n")
    with pytest.raises(
        InputError, match=r"column request: found an empty field for topic 'T1'[\s\S]*'T1' again"
    ):
        read_topics(file)
    file.write_text("topic,type,request,format,site\nT1,T,Please list.,title,\n")
    assert read_topics(file) == [Topic("T1", "T", "Please list.", "title")]


def test_the_command_hands_its_options_on(tmp_path: Path, serve: Callable[..., Server]) -> None:
    (tmp_path / "topics.csv").write_text(
        "topic,type,request,format,site\nT1,T,Please list.,title,\n"
    )
    server, record = serve(says(USEFUL)), tmp_path / "r.jsonl"
    common = [
        "harvest",
        "--topics",
        str(tmp_path / "topics.csv"),
        "--endpoint",
        server.url,
        "--model",
        "m",
    ]
    common += ["-o", str(record), "--trials", "1"]
    said = CliRunner().invoke(
        main, [*common, "--temperature", "1", "--system", "[brief]", "--note", "sha: 12"]
    )
    assert said.exit_code == 0, said.output
    settings, turns = parse_record(record)
    assert (
        settings["sampling"] | {"temperature": 1.0, "system": "[brief]", "top_p": 0.95}
        == settings["sampling"]
    )
    assert (settings["note"], len(turns)) == ("sha: 12", 2)
    refused = called(*common, "--tries", "0")
    assert (refused.exit_code, "tries" in refused.output) == (2, True)
