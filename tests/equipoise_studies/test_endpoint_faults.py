"""Guards a harvest against server faults: each survived or told in a sentence, none for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from equipoise_cli.harvest import HarvestError, Topic, harvest
from equipoise_studies.recorded_conversations import parse_record
from equipoise_studies.systems.endpoint import Endpoint
from fault_server import FINAL, GOOD, GOOD_BUT_ODD, LATE, PASSING, Fault, FaultServer

TOPICS = [Topic("T1", "T", "Please list films.", "title, URL", "imdb.com")]


@pytest.fixture
def start() -> Iterator[Callable[[Fault], FaultServer]]:
    servers: list[FaultServer] = []

    def begin(fault: Fault) -> FaultServer:
        servers.append(FaultServer(fault))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


def ask(server: FaultServer, record: Path, timeout: float = 5) -> float:
    """Seconds that a harvest of two turns takes."""
    begun = time.monotonic()
    endpoint = Endpoint(server.url, "tiny", timeout=timeout, tries=9, wait=0)
    harvest(TOPICS, endpoint, record, trials=1, sleep=lambda _: None)
    return time.monotonic() - begun


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_may_pass_is_survived_and_told(
    name: str, start: Callable[[Fault], FaultServer], tmp_path: Path
) -> None:
    fault, mishap = PASSING[name]
    taken = ask(start(fault), tmp_path / "r.jsonl", timeout=0.3 if mishap == LATE else 20)
    assert taken < 60  # without a bound it would be for ever
    first, second = parse_record(tmp_path / "r.jsonl")[1]
    assert (first["system"], second["system"]) == (GOOD, GOOD)
    told, *rest = first["mishaps"]
    assert mishap in told
    assert len(told) < 300
    assert set(rest) <= {LATE}  # the good answer, where this machine has much to do


@pytest.mark.parametrize("name", FINAL)
def test_a_fault_that_stays_ends_the_conversation_with_a_sentence(
    name: str, start: Callable[[Fault], FaultServer], tmp_path: Path
) -> None:
    fault, mishap = FINAL[name]
    with pytest.raises(HarvestError) as caught:
        ask(start(fault), tmp_path / "r.jsonl")
    assert mishap in str(caught.value)
    assert len(str(caught.value)) < 500
    assert parse_record(tmp_path / "r.jsonl")[1] == []


@pytest.mark.parametrize("name", GOOD_BUT_ODD)
def test_an_odd_answer_is_taken(
    name: str, start: Callable[[Fault], FaultServer], tmp_path: Path
) -> None:
    record = tmp_path / "r.jsonl"
    ask(start(GOOD_BUT_ODD[name]), record)
    first, second = parse_record(record)[1]
    assert (first["system"], first["mishaps"], second["mishaps"]) == (GOOD, [], [])
    assert record.stat().st_size < 10_000


def test_nothing_compressed_is_asked_for(
    start: Callable[[Fault], FaultServer], tmp_path: Path
) -> None:
    server = start(GOOD_BUT_ODD["cookies"])
    ask(server, tmp_path / "r.jsonl")
    heads = [request.partition(b"\r\n\r\n")[0].lower() for request in server.requests]
    assert [head.count(b"accept-encoding: identity") for head in heads] == [1, 1]


def test_there_are_as_many_faults_as_the_site_says() -> None:
    assert len(PASSING) + len(FINAL) >= 64
