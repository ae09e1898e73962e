"""Guards input that is good but odd: it is taken, and gives the bytes of the plain input."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from equipoise import options
from equipoise.declare import from_text
from equipoise.problems import Note
from equipoise_cli import main
from equipoise_cli.harvest import read_topics
from good_files import ANSWER, COMMANDS, FILES, READ, RUN, TEXTS, frame, lay, lines, parquet


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Good files in the working directory."""
    lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(words: list[str]) -> Result:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return result


def made(words: list[str]) -> dict[str, bytes]:
    """What a command writes, by the name of the file; it is gone then."""
    called(words)
    found = {}
    for path in sorted(Path().glob("out*")) + sorted(Path().glob("clusters*")):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            found[str(file)] = file.read_bytes()
            file.unlink()
        if path.is_dir():
            path.rmdir()
    assert found
    return found


# --- the same content in other clothes ------------------------------------------------------------


def _named(name: str) -> Callable[[bytes], str]:
    def write(content: bytes) -> str:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
        return name

    return write


def _piped(name: str) -> Callable[[bytes], str]:
    """A pipe, as ``<(zcat nuggets.csv.gz)`` makes it; it can be read once."""

    def write(content: bytes) -> str:
        os.mkfifo(name)
        threading.Thread(target=lambda: Path(name).write_bytes(content), daemon=True).start()
        return name

    return write


def _linked(name: str) -> Callable[[bytes], str]:
    def write(content: bytes) -> str:
        Path("elsewhere").write_bytes(content)
        Path(name).symlink_to("elsewhere")
        return name

    return write


def _clothes(name: str) -> dict[str, tuple[Callable[[bytes], str], Callable[[bytes], bytes]]]:
    """Ways to write a file: where, and what of its content."""
    stem, dot, ending = name.rpartition(".")
    same = bytes

    def apart(other: str) -> str:
        return f"Läuse und Flöhe/{other}"

    ways: dict[str, tuple[Callable[[bytes], str], Callable[[bytes], bytes]]] = {
        "an ending in capitals": (_named(f"{stem}.{ending.upper()}"), same),
        "umlauts and blanks in the path": (_named(apart(name)), same),
        "a link": (_linked(f"linked/../{stem}{dot}{ending}"), same),
    }
    if ending == "parquet":
        return ways
    return ways | {
        "a byte order mark": (_named(name), lambda content: b"\xef\xbb\xbf" + content),
        "CRLF": (_named(name), lambda content: content.replace(b"\n", b"\r\n")),
        "blank lines at the end": (_named(name), lambda content: content + b"\n\n"),
        "packed": (_named(f"{name}.gz"), gzip.compress),
        "packed, ending in capitals": (_named(f"{stem}.{ending.upper()}.GZ"), gzip.compress),
        "packed by another name": (_named(name), gzip.compress),
        "not packed, by its name": (_named(f"{name}.gz"), same),
        "a pipe": (_piped(name), same),
    }


DRESSED = [
    (command, name, how)
    for command, name in READ
    if command != "harvest" and "/" not in name
    for how in _clothes(name)
    if not (
        name == "record.jsonl" and how in ("a byte order mark", "blank lines at the end")
    )  # written here
    if not (
        name in ("messages.jsonl", "export.jsonl") and how == "a pipe"
    )  # looked into first: a pipe wants --from
]


@pytest.mark.parametrize(("command", "name", "how"), DRESSED)
def test_the_same_content_in_other_clothes(command: str, name: str, how: str, here: Path) -> None:
    plain = made(COMMANDS[command])
    (here / name).unlink()
    (here / "linked").mkdir()
    write, change = _clothes(name)[how]
    odd = write(change(FILES[name]))
    words = [word.replace(name, odd) for word in COMMANDS[command]]
    run, called_run = Path(name).name, Path(odd).name
    called_run = called_run[:-3] if called_run.lower().endswith(".gz") else called_run
    expected = {
        out: content.replace(run.encode(), called_run.encode()) for out, content in plain.items()
    }
    if (
        name != "b.run"
    ):  # others are called by their tag, which is the name of the file that a pipe goes by
        expected = plain
    found = made(words)
    if "parquet" not in "".join(found):
        assert found == expected
    assert list(found) == list(expected)


# --- other ways to say the same -------------------------------------------------------------------

SAYS = [
    (
        "gfrc",
        "nuggets.csv",
        TEXTS["nuggets.csv"].replace("\n", ",red\n").replace("entity,red", "entity,colour"),
    ),
    (
        "gfrc2",
        "nuggets.csv",
        frame("nuggets.csv").iloc[:, ::-1].to_csv(index=False),
    ),
    (
        "gfrc",
        "nuggets.csv",
        TEXTS["nuggets.csv"].replace(",Tenet", ',"Tenet"').replace("1/2 1/2 0", '" 0.5  5e-1 0 "'),
    ),
    (
        "gfrc",
        "sets.yaml",
        "# sets\n" + TEXTS["sets.yaml"].replace("[2, 1, 1]", "[1/2, .25, 2.5e-1]"),
    ),
    (
        "gfrc",
        "sets.yaml",
        json.dumps(
            {
                "SIZE": {"kind": "ordinal", "groups": ["small", "large"], "target": "uniform"},
                "KIND": {"kind": "nominal", "groups": ["x", "y", "z"], "target": ["2", 1, 1]},
            }
        ),
    ),
    (
        "gfrc",
        "sets.yaml",
        TEXTS["sets.yaml"].replace("uniform", "&one [1, 1]").replace("[2, 1, 1]", '["2", 1, 1]'),
    ),
    (
        "gfrc",
        "sets.yaml",
        TEXTS["sets.yaml"].replace("ordinal", "&k ordinal").replace("nominal, g", '"nominal", g'),
    ),
    (
        "gfrc",
        "sets.yaml",
        TEXTS["sets.yaml"].replace("[small, large]", "[No, 'null']").replace("[x,", "[ä ö,"),
    ),
    ("gfrc", "sets.yaml", TEXTS["sets.yaml"].replace("[2, 1, 1]", "[200, 100, 100]")),
    (
        "nuggets",
        "transcript.txt",
        TEXTS["transcript.txt"].replace("#L2", "#L2 sure").replace("Tenet\n", "\tTenet  \n\n"),
    ),
    (
        "nuggets",
        "transcript.txt",
        TEXTS["transcript.txt"].replace("(0,1/2,1/2)", "( 0 , 1/2,1/2 ) #remark"),
    ),
    (
        "transcripts",
        "conversation.txt",
        "\n\n" + TEXTS["conversation.txt"].replace("<T1>\n", "<T1> ") + "\n\n",
    ),
    ("gfr", "a.run", "<SYSDESC>mine</SYSDESC>\n" + TEXTS["a.run"].replace(" ", "\t")),
    (
        "gfr",
        "a.run",
        TEXTS["a.run"].replace("3.5", "+35e-1").replace(" ", "   ") + "T9 Q0 d1 1 1 a.run\n",
    ),
    ("gfr", "qrels.txt", "T1 d1 L2\nT1 d2 L0\nT2 d3 L1\n"),
    ("gfr", "qrels.txt", TEXTS["qrels.txt"].replace("d2 0", "d2 -2")),
    ("gfr", "target.golddistr", "1\n1\n"),
    ("gfr", "target.golddistr", "1/2\n\n 5e-1 \n"),
    ("gfr", "target.golddistr", "7\n7\n"),
    (
        "gfr",
        "members.txt",
        TEXTS["members.txt"].replace("1 0\n", "1.000001 0\n".replace("1.000001", "1")),
    ),
    (
        "bias",
        "docs.jsonl",
        TEXTS["docs.jsonl"].replace('"text"', '"score": NaN, "more": [[1]], "text"'),
    ),
    ("bias", "docs.jsonl", TEXTS["docs.jsonl"].replace("rain", "\\ud83d\\ude00 rain")),
    ("bias", "docs.jsonl", TEXTS["docs.jsonl"].replace("rain", "r\\u0000n")),
    ("bias of tabs", "docs.tsv", TEXTS["docs.tsv"].replace("rain", "rain\tagain")),
    ("bias", "terms.csv", "\n  He , m\nhim,m\n\nSHE,f\nher ,f\n"),
    ("attribution", "answers.jsonl", TEXTS["answers.jsonl"].replace("\n", "\n\n")),
    (
        "attribution",
        "answers.jsonl",
        TEXTS["answers.jsonl"].replace('"model": "mine"', '"model": 7, "größe": 1.5'),
    ),
]


@pytest.mark.parametrize(("command", "name", "text"), SAYS)
def test_other_ways_to_say_the_same(command: str, name: str, text: str, here: Path) -> None:
    plain = made(COMMANDS[command])
    assert text != TEXTS[name] or name == "members.txt"
    (here / name).write_text(text, encoding="utf-8")
    assert made(COMMANDS[command]) == plain


WORDS = [
    ("gfrc", "--patience 1000.0", "--patience 1000"),
    ("gfrc", "--patience 1e3", "--patience 1000"),
    ("gfrc", "--patience 01000", "--patience 1000"),
    ("gfrc", "--weights SIZE:1/4,KIND:.75", "--weights SIZE:1,KIND:3"),
    ("gfrc", "--gains 2:1,1:1/2", ""),
    (
        "gfrc",
        "--attribute KIND --attribute SIZE --alpha 1/3",
        "--attribute KIND --attribute SIZE --alpha 1/3",
    ),
    ("gfr", "--cutoff 1000000", "--cutoff 3"),
    ("gfr", "--weights utility:2,SIZE:2", ""),
    ("bias", "--target m:1,f:1", ""),
    ("bias", "--target m:30,f:10", "--target m:0.75,f:0.25"),
    ("bias", "--cutoff 100000000", "--cutoff 100000000"),
    ("attribution", "--level .95", ""),
]


@pytest.mark.parametrize(("command", "odd", "plain"), WORDS[:5] + WORDS[6:])
def test_other_ways_to_write_an_option(command: str, odd: str, plain: str) -> None:
    assert made([*COMMANDS[command], *odd.split()]) == made([*COMMANDS[command], *plain.split()])


def test_a_text_is_taken_as_it_is_typed() -> None:
    for text in ('"Be brief."', "one\n\n  two: three", "[1, 2]", "null", "007", "# no comment"):
        assert from_text(text, options.SystemPrompt, "system") == text
    assert from_text("null", options.Alpha | None, "alpha") is None
    assert from_text("010", options.Patience, "patience") == 10.0


def test_columns_that_are_not_read_are_said_once(here: Path) -> None:
    for name, content in (("nuggets.csv", SAYS[0][2]), ("parts/two.parquet", "")):
        (here / name).write_text(content)
    table = frame("nuggets.csv").assign(colour="red", Größe=1)
    (here / "parts" / "one.parquet").write_bytes(parquet(table))
    (here / "parts" / "two.parquet").write_bytes(parquet(table.assign(run="c" + table["run"])))
    result = called(COMMANDS["gfrc"])
    assert result.stderr.count("note: not read: column colour; known are run, topic") == 1
    result = called(COMMANDS["gfrc2 of a folder"])
    assert result.stderr.count("note: not read: column colour, Größe; known are run, topic") == 1
    (here / "topics.csv").write_text(
        TEXTS["topics.csv"].replace("\n", ",x\n").replace("site,x", "site,day")
    )
    with pytest.warns(Note, match="not read: column day"):
        assert [topic.topic for topic in read_topics("topics.csv")] == ["T1", "T2"]


@pytest.mark.parametrize(
    "table",
    [
        frame("nuggets.csv").assign(SIZE=[[1.0, 0.0], [0.0, 1.0], None, [0.5, 0.5]]),
        frame("nuggets.csv")
        .iloc[[2, 0, 1, 3]]
        .assign(SIZE=[None, [1, 0], [0, 1], [0.5, 0.5]], turn=[1, 2, 2, 1]),
        frame("nuggets.csv").assign(turn=[1.0, 1.0, 2.0, 1.0], start=[3, 8, None, 2]),
        frame("nuggets.csv").astype({"run": "category", "entity": "category"}),
        frame("nuggets.csv").assign(topic=[1, 1, 1, 1]),
        frame("nuggets.csv").assign(level=pd.array([2, 1, 0, 1], dtype="Int64")),
    ],
)
def test_other_kinds_of_columns_in_parquet(table: pd.DataFrame, here: Path) -> None:
    (here / "nuggets.parquet").write_bytes(parquet(table))
    called(COMMANDS["gfrc of Parquet"])
    assert len(pd.read_parquet("out.parquet")) == 10


def test_names_that_are_no_text_and_records_that_are_packed(here: Path) -> None:
    (here / "caf\udce9.txt").write_bytes(FILES["conversation.txt"])
    called(["transcripts", "caf\udce9.txt", "-o", "out.txt"])
    assert (here / "out.txt").read_text().startswith("##### T1 caf\ufffd\n")
    (here / "caf\udce9.run").write_text(TEXTS["a.run"])
    called(
        [*COMMANDS["gfr"], "--run", "caf\udce9.run"]
    )  # of the same tag: each is called by its file
    assert "\ncaf\ufffd,T1," in (here / "out.csv").read_text()
    (here / "RUN.PARQUET").write_bytes(parquet(RUN))
    called([word.replace("run.parquet", "RUN.PARQUET") for word in COMMANDS["gfr of Parquet"]])
    assert (here / "out.csv").read_text().splitlines()[1].startswith("RUN,")
    (here / "parts" / "one.parquet").rename(here / "parts" / "ONE.PARQUET")
    assert "2 conversations" in called(COMMANDS["gfrc2 of a folder"]).stderr


def test_a_packed_record_is_read_and_never_gone_on_with(here: Path) -> None:
    packed = gzip.compress(FILES["record.jsonl"])
    (here / "out.jsonl").write_bytes(packed)
    result = CliRunner().invoke(main, COMMANDS["harvest"])
    assert (result.exit_code, "packed" in result.stderr) == (2, True)
    assert (here / "out.jsonl").read_bytes() == packed


def test_long_texts_are_taken(here: Path) -> None:
    """A field of 200,000 letters is no mistake where its letters are none."""
    name = "n" * 200_000
    (here / "nuggets.csv").write_text(TEXTS["nuggets.csv"].replace("Looper", name))
    called(COMMANDS["gfrc"])
    (here / "answers.jsonl").write_text(lines(ANSWER | {"answer": name + " [2]"}))
    called(COMMANDS["attribution"])


def test_the_table_is_long_enough() -> None:
    assert len(DRESSED) + len(SAYS) + len(WORDS) >= 66
