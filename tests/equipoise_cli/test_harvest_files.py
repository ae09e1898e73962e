"""Guards what a harvest writes and finds: annotations, records, files of others."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_server import Behaviour, Server, says
from commands import called
from equipoise.loaders.transcripts import format_transcripts, read_transcripts
from equipoise.problems import InputError
from equipoise_cli import main
from equipoise_cli.harvest import Topic, harvest, read_topics
from equipoise_cli.transcript_files import add_transcripts
from equipoise_studies import records
from equipoise_studies.recorded_conversations import harvest_transcripts, parse_record, read_harvest
from equipoise_studies.systems.endpoint import Endpoint

USEFUL = "Tenet (2020): https://www.imdb.com/title/tt6723592/"
TOPICS = [
    Topic("T1", "T", "Please list films.", "title, URL"),
    Topic("T2", "T", "Please list books.", "title, URL"),
]
SETS = "SIZE: {kind: ordinal, groups: [a, b], target: uniform}\n"


class Place:
    """A folder with topics, a record and a transcript in it, and a server to ask."""

    def __init__(self, folder: Path, url: str) -> None:
        self.record, self.transcript, self.url = folder / "r.jsonl", folder / "t.txt", url
        self.topics = folder / "topics.csv"
        rows = [
            f'{one.topic},{one.kind},{one.request},"{one.format}",{one.site}\n' for one in TOPICS
        ]
        self.topics.write_text("topic,type,request,format,site\n" + "".join(rows))

    def arguments(self, *more: str | Path) -> list[str]:
        common = [
            "harvest",
            "--topics",
            self.topics,
            "--endpoint",
            self.url,
            "--model",
            "m",
            "-o",
            self.record,
        ]
        return [str(part) for part in (*common, *more)]

    def harvest(self, *more: str | Path) -> Result:
        return CliRunner().invoke(main, self.arguments("--transcripts", self.transcript, *more))

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "equipoise_cli", *self.arguments(*more)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.fixture
def place(tmp_path: Path, serve: Callable[..., Server]) -> Place:
    return Place(tmp_path, serve(says(USEFUL)).url)


# --- transcripts ----------------------------------------------------------------------------------


EDITS: dict[str, Callable[[bytes], bytes]] = {
    "not at all": bytes,
    "annotations": lambda text: text.replace(
        USEFUL.encode() + b"\n", USEFUL.encode() + b"\n#L2\n#WORDS: 1\n", 1
    ),
    "a word": lambda text: text.replace(b"Tenet", b"Tenet!"),
    "another mark": lambda text: text.replace(b"### S1 o", b"### S1 x", 1),
    "by Windows": lambda text: b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"),
    "the last end of a line gone": lambda text: text.rstrip(b"\n"),
    "a line in front": lambda text: b"\n\n" + text,
    "a remark behind a header": lambda text: text.replace(b"##### T1 r-1", b"##### T1 r-1 checked"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_transcript_is_never_written_over_and_what_is_new_comes_behind(
    edit: str, place: Place
) -> None:
    assert place.harvest("--trials", "1").exit_code == 0
    place.transcript.write_bytes(EDITS[edit](place.transcript.read_bytes()))
    place.transcript.chmod(0o600)
    mine = place.transcript.read_bytes()
    again = place.harvest("--trials", "1")
    assert again.exit_code == 0, again.output
    assert (
        f"0 conversations written to {place.transcript}; 2 were there, and are left as they are"
        in again.output
    )
    assert place.transcript.read_bytes() == mine
    more = place.harvest("--trials", "3")
    assert (
        f"4 conversations written to {place.transcript}; 2 were there, and are left as they are"
        in more.output
    )
    text = place.transcript.read_bytes()
    assert text.startswith(mine)
    assert text.count(b"#####") == 6
    assert place.transcript.stat().st_mode & 0o777 == 0o600
    if edit not in ("annotations", "a remark behind a header"):
        assert len(read_transcripts(place.transcript, {})) == 6
    assert sorted(path.name for path in place.record.parent.iterdir()) == [
        "r.jsonl",
        "t.txt",
        "topics.csv",
    ]


def test_transcripts_are_not_written_over_by_the_command_of_that_name_either(place: Place) -> None:
    assert place.harvest("--trials", "1").exit_code == 0
    place.transcript.write_text(place.transcript.read_text().replace("Tenet", "Tenet!"))
    mine = place.transcript.read_bytes()
    said = called("transcripts", str(place.record), "-o", str(place.transcript), "--force")
    assert (said.exit_code, place.transcript.read_bytes()) == (0, mine)
    assert "0 conversations written to" in said.output
    (place.transcript.parent / "s.jsonl").write_bytes(place.record.read_bytes())
    said = called(
        "transcripts", str(place.transcript.parent / "s.jsonl"), "-o", str(place.transcript)
    )
    assert "2 conversations written to" in said.output
    assert place.transcript.read_bytes().startswith(mine)


def test_a_file_that_is_no_transcript_is_begun_anew_by_force_alone(place: Place) -> None:
    place.transcript.write_text("my notes\n")
    assert place.harvest("--trials", "1").exit_code == 2
    assert not place.record.exists()
    with pytest.raises(ValueError, match="holds no transcripts"):
        add_transcripts(place.transcript, [])
    assert place.transcript.read_text() == "my notes\n"
    assert place.harvest("--trials", "1", "--force").exit_code == 0
    assert len(read_transcripts(place.transcript, {})) == 2


def test_one_run_twice_is_refused_and_nothing_is_written(place: Place, tmp_path: Path) -> None:
    assert place.harvest("--trials", "1").exit_code == 0
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "r.jsonl").write_bytes(place.record.read_bytes())
    for second in (place.record, tmp_path / "more" / "r.jsonl"):
        target = tmp_path / "both.txt"
        said = called("transcripts", str(place.record), str(second), "-o", str(target))
        assert (said.exit_code, "topic 'T1' of run 'r-1' is here twice" in said.output) == (2, True)
        assert not target.exists()


def test_other_conversations_of_one_name_are_refused_and_not_dropped(tmp_path: Path) -> None:
    chats = []
    for folder, films in (("a", "Tenet"), ("b", "Looper")):
        (tmp_path / folder).mkdir()
        chats.append(str(tmp_path / folder / "chat.jsonl"))
        messages = [{"role": "user", "content": f"Like {films}?"}]
        messages.append({"role": "assistant", "content": f"{films} (2020)\n{films} again"})
        Path(chats[-1]).write_text(json.dumps({"messages": messages}) + "\n")
    target = tmp_path / "both.txt"
    assert called("transcripts", chats[0], "-o", target).exit_code == 0
    said = called("transcripts", chats[1], "-o", target)
    assert said.exit_code == 2
    problem = f"{target}: found another conversation on topic c1 of run chat, wanted another name"
    assert problem in said.output
    said = called("transcripts", chats[1], "--run", "other", "-o", target)
    assert (said.exit_code, "1 conversations written to" in said.output) == (0, True)
    assert "1 were there" in called("transcripts", chats[0], "-o", target).output


def test_a_record_of_any_name_makes_a_transcript_that_is_read_back(
    place: Place, tmp_path: Path
) -> None:
    assert place.harvest("--trials", "1").exit_code == 0
    for name in (
        "my record.jsonl",
        "böse\nzeile.jsonl",
        "tab\tund\u2028mehr.jsonl",
        "#####.jsonl",
        ".jsonl",
    ):
        place.record.rename(tmp_path / name)
        target = tmp_path / "out.txt"
        file = str(tmp_path / name) if name != ".jsonl" else str(tmp_path / ".jsonl")
        if Path(file).suffix != ".jsonl":
            (tmp_path / name).rename(place.record)
            continue  # a name without ending is no record's
        assert called("transcripts", file, "-o", str(target)).exit_code == 0
        assert [one.topic for one in read_transcripts(target, {})] == ["T1", "T2"]
        target.unlink()
        (tmp_path / name).rename(place.record)


# --- what a harvest takes, it reads back ----------------------------------------------------------


STRANGE = [
    "",
    " ",
    "T 1",
    " T1",
    "T1 ",
    "T\n1",
    "T\t1",
    "T\x001",
    "T\u20281",
    "T\u00a01",
    "T\u202e1",
    "T\x1b[31m",
    "\ud800",
]


@pytest.mark.parametrize("topic", STRANGE)
def test_the_id_of_a_topic_that_no_transcript_can_have_is_refused_at_once(
    topic: str, place: Place
) -> None:
    with pytest.raises(ValueError, match="the id of a topic is one word"):
        harvest([replace(TOPICS[0], topic=topic)], Endpoint(place.url, "m"), place.record)
    if topic != "\ud800":
        place.topics.write_text(
            f'topic,type,request,format,site\n"{topic}",T,Please list.,title,\n'
        )
        with pytest.raises(InputError, match="column topic"):
            read_topics(place.topics)
    assert not place.record.exists()


def test_what_no_server_can_be_sent_is_refused(place: Place) -> None:
    with pytest.raises(ValueError, match="half a surrogate pair"):
        harvest(TOPICS, Endpoint(place.url, "m"), place.record, note="\udcff")
    assert not place.record.exists()


WORDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=12)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4), WORDS, WORDS)
def test_any_text_is_read_back_from_record_and_transcript(
    said: list[tuple[str, str]], topic: str, model: str
) -> None:
    """Control characters, NUL, line separators, lines that look like annotations: all of it."""
    topics = [
        Topic(f"{topic}{number}", "T", user, "title") for number, (user, _) in enumerate(said)
    ]
    with contextlib.ExitStack() as stack:
        server = Server([says(answer) for _, answer in said for _ in (1, 2)])
        stack.callback(server.close)
        folder = Path(stack.enter_context(_folder()))
        record = folder / "r.jsonl"
        harvest(topics, Endpoint(server.url, model, timeout=5), record, trials=1)
        turns = read_harvest(record)
        first = turns[turns["turn"] == 1]
        assert first["system"].iloc[0] == _sendable(said[0][1])
        made = harvest_transcripts(turns)
        add_transcripts(folder / "t.txt", made)
        assert read_transcripts(folder / "t.txt", {}) == made
        assert (
            format_transcripts(read_transcripts(folder / "t.txt", {}))
            == (folder / "t.txt").read_bytes().decode()
        )


@contextlib.contextmanager
def _folder() -> Any:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        yield folder


def _sendable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def test_nul_characters_come_through_to_the_nuggets(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(says("A\x00B (2020): https://www.imdb.com/1\x00\n\x00"))
    place = Place(tmp_path, server.url)
    assert place.harvest("--trials", "1", "--system", "be brief").exit_code == 0
    text = place.transcript.read_text()
    assert "A\ufffdB" in text  # no terminal obeys a transcript
    place.transcript.write_text(
        text.replace(
            "imdb.com/1\ufffd\n", "imdb.com/1\ufffd\n#L2\n#ENTITY: A\x00B\n#SIZE: (1,0)\n", 1
        )
    )
    (tmp_path / "sets.yaml").write_text(SETS)
    sets = ["--attributes", str(tmp_path / "sets.yaml")]
    made = called("nuggets", str(place.transcript), *sets, "-o", str(tmp_path / "n.csv"))
    assert made.exit_code == 0, made.output
    scored = called("score", "gfrc", str(tmp_path / "n.csv"), *sets)
    assert scored.exit_code == 0, scored.output


# --- records --------------------------------------------------------------------------------------


OTHERS: dict[str, bytes] = {
    "notes": b"my notes\n",
    "notes without end": b"my notes",
    "a line of JSON": b'{"a": 1}\n',
    "JSON without end": b'{"record": "settings"}',
    "a list": b"[1, 2]",
    "a number": b"7",
    "blank lines": b"\n\n",
    "a blank": b" ",
    "NUL": b"\x00" * 100,
    "a program": bytes(range(256)) * 40,
    "a transcript": b"##### T1\n### U1\nx\n### S1\ny\n#L2\n",
    "a table": b"run,topic\na,b\n",
    "settings of another": (
        b'{"record": "settings", "topics": [{"topic": "T9"}], "model": "other"}\n'
    ),
    "half of another's settings": b'{"endpoint": "http://elsewhere',
    "lists in lists": b"[" * 100_000,
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_file_that_is_no_record_of_this_harvest_is_left_alone(kind: str, place: Place) -> None:
    place.record.write_bytes(OTHERS[kind])
    before = place.record.stat().st_mtime_ns
    for force in ([], ["--force"]):
        said = place.harvest(*force)
        assert (said.exit_code, str(place.record) in said.output, "Traceback" in said.output) == (
            2,
            True,
            False,
        )
        assert len(said.output) < 2000
    assert (place.record.read_bytes(), place.record.stat().st_mtime_ns) == (OTHERS[kind], before)
    assert not place.transcript.exists()


def test_a_record_that_an_editor_changed_the_line_ends_of_loses_nothing(place: Place) -> None:
    assert place.harvest("--trials", "1").exit_code == 0
    windows = place.record.read_bytes().replace(b"\n", b"\r\n")
    for text in (windows, windows.rstrip(b"\r\n"), place.record.read_bytes().rstrip(b"\n")):
        place.record.write_bytes(text)
        said = place.harvest("--trials", "1")
        assert "0 turns asked now, 4 in" in said.output
        assert place.record.read_bytes().startswith(text)
        assert len(parse_record(place.record)[1]) == 4


def test_a_torn_line_of_json_is_no_line(tmp_path: Path) -> None:
    """No beginning of an object is an object, so a line that is one is whole."""
    (tmp_path / "r").write_bytes(b'{"record": "settings"}\n{"record": "turn", "text": "}"}')
    whole = (tmp_path / "r").read_bytes()
    for cut in range(24, len(whole)):
        (tmp_path / "r").write_bytes(whole[:cut])
        assert records.parted(tmp_path / "r") == ([b'{"record": "settings"}'], whole[23:cut])
    (tmp_path / "r").write_bytes(whole)
    assert len(records.parted(tmp_path / "r")[0]) == 2


def waits(seconds: float) -> Behaviour:
    def behaviour(handler: Any) -> None:
        time.sleep(seconds)
        with contextlib.suppress(OSError):
            says(USEFUL)(handler)

    return behaviour


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_second_harvest_of_one_record_is_refused_until_the_first_ends(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(says(USEFUL), waits(30), says(USEFUL))
    place = Place(tmp_path, server.url)
    first = place.start("--trials", "1")
    until(lambda: len(server.requests) == 2)
    before = place.record.read_bytes()
    linked = tmp_path / "link.jsonl"
    linked.symlink_to(place.record)
    for record in (place.record, linked):
        said = CliRunner().invoke(
            main, [*place.arguments("--trials", "1")[:-4], "-o", str(record), "--trials", "1"]
        )
        assert (said.exit_code, f"another harvest is writing {record}" in said.output) == (2, True)
    assert len(server.requests) == 2
    assert place.record.read_bytes() == before
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert "3 turns asked now, 4 in" in place.harvest("--trials", "1").output


def test_a_record_that_is_taken_away_meanwhile_is_told_and_not_begun_anew(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    record = tmp_path / "r.jsonl"

    def take(handler: Any) -> None:
        record.rename(tmp_path / "away.jsonl")
        says(USEFUL)(handler)

    server = serve(says(USEFUL), take)
    with pytest.raises(ValueError, match=r"cannot write \S*r\.jsonl: No such file"):
        harvest(TOPICS, Endpoint(server.url, "m"), record)
    assert not record.exists()
    assert len(parse_record(tmp_path / "away.jsonl")[1]) == 1


def test_a_full_disk_leaves_whole_lines_and_one_sentence(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    place = Place(tmp_path, serve(says(USEFUL + " x" * 2000)).url)
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (13_000, 13_000))\n"
    limited += "from equipoise_cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", limited, *place.arguments("--trials", "1")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert f"cannot write {place.record}: " in done.stderr
    assert "what was recorded before is there, to be gone on with" in done.stderr
    text = place.record.read_bytes()
    assert text.endswith(b"}\n")
    kept = len(parse_record(place.record)[1])
    assert 0 < kept < 4
    assert f"{4 - kept} turns asked now, 4 in" in place.harvest("--trials", "1").output
    assert place.record.read_bytes().startswith(text)


def test_a_folder_that_cannot_be_written_is_told(place: Place, tmp_path: Path) -> None:
    for record in ("/proc/r.jsonl", tmp_path / "topics.csv" / "r.jsonl"):
        said = CliRunner().invoke(main, [*place.arguments()[:-1], str(record)])
        assert (said.exit_code, "Traceback" in said.output) == (2, False)
        assert str(record) in said.output


def test_a_record_may_lie_in_a_new_folder(place: Place, tmp_path: Path) -> None:
    place.record = tmp_path / "new" / "folder" / "r.jsonl"
    assert place.harvest("--trials", "1").exit_code == 0
    assert json.loads(place.record.read_text().splitlines()[0])["model"] == "m"
    assert os.listdir(place.record.parent) == ["r.jsonl"]  # noqa: PTH208
