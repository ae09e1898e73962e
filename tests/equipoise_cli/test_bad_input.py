"""Guards every door against bad input: a sentence that names the file or option, and status 2.

Nothing is written.

Each case is a good call of a command (`good_files`) with one thing wrong.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from bad_calls import PYTHON_S_WORDS, RAW
from equipoise import plain_yaml
from equipoise.measures.gfrc import relevance
from equipoise_cli import main
from good_files import (
    ANSWER,
    COMMANDS,
    FILES,
    READ,
    RECORD,
    RUN,
    TEXTS,
    TURN,
    frame,
    lay,
    lines,
    parquet,
)


def state(folder: Path) -> dict[str, bytes | str]:
    """What lies in a folder: files with their content, links and others as what they are."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        if path.is_file() and not path.is_symlink()
        else "no file"
        for path in sorted(folder.rglob("*"))
    }


def refused(words: list[str], said: str, status: int = 2) -> Result:
    """Call a command in this folder, and hold what it does against what errors promise."""
    before, began = state(Path()), time.process_time()
    result = CliRunner().invoke(main, words)
    spent = time.process_time() - began
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(
        result.exception
    )
    assert result.exit_code == status, result.output[-2000:]
    assert said in result.stderr, result.output[-2000:]
    assert PYTHON_S_WORDS.search(result.output) is None, result.output[-2000:]
    assert RAW.search(result.output.replace("\r", "")) is None
    assert len(result.output.encode()) < 2000
    assert spent < 2
    assert state(Path()) == before
    return result


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Good files in the working directory."""
    lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- what a name may lead to ----------------------------------------------------------------------


def _link(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


STATES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "no such file"),
    "a folder": (_folder, ""),
    "a link to itself": (lambda path: _link(path, path.name), "links that lead in a circle"),
    "a link to nowhere": (lambda path: _link(path, "nowhere"), "no such file"),
    "an endless device": (lambda path: _link(path, "/dev/zero"), "a device"),
    "empty": (lambda path: path.write_bytes(b""), "an empty file"),
    "blank": (lambda path: path.write_bytes(b" \n\r\n\n"), ""),
    "a byte that is no text": (lambda path: path.write_bytes(path.read_bytes() + b"\xff\n"), ""),
    "UTF-16": (lambda path: path.write_bytes(TEXTS["sets.yaml"].encode("utf-16")), ""),
    "an image": (
        lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))),
        "",
    ),
    "zeros": (lambda path: path.write_bytes(bytes(5000)), ""),
    "a torn gzip file": (
        lambda path: path.write_bytes(gzip.compress(os.urandom(999))[:-20]),
        "no whole gzip file",
    ),
    "a torn Parquet file": (lambda path: path.write_bytes(FILES["run.parquet"][:-9]), ""),
    "brackets without end": (lambda path: path.write_bytes(b"[" * 60_000), ""),
    "hostile text": (lambda path: path.write_text("\x1b[31m\u202e=cmd|' /C calc'!A0\n" * 3), ""),
}


@pytest.mark.parametrize("what", STATES)
@pytest.mark.parametrize(("command", "name"), [("gfrc", "nuggets.csv"), ("gfr", "a.run")])
def test_a_file_in_a_bad_state(command: str, name: str, what: str, here: Path) -> None:
    """What is said of each state; the corpus of bad calls has every other file in them."""
    broken, said = STATES[what]
    broken(here / name)
    assert said in refused(COMMANDS[command], name).stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("n" * 300 + ".csv", "a name that is too long"),
        ("d/" * 2500, "a name that is too long"),
        ("a\0b.csv", "NUL"),
        ("nuggets.csv/more.csv", "a file where its path has a folder"),
        ("\x1b]0;owned\x07.csv", "no such file"),
        ("caf\udce9.csv", "no such file"),
        ("\u202ecsv.stegnug", "no such file"),
        ("", ""),
        (".", ""),
    ],
)
@pytest.mark.parametrize(
    "command", ["gfrc", "nuggets", "transcripts", "attribution", "gfr", "bias of tabs"]
)
def test_a_name_that_leads_nowhere(command: str, name: str, said: str) -> None:
    files = {
        "nuggets.csv",
        "transcript.txt",
        "conversation.txt",
        "answers.jsonl",
        "a.run",
        "docs.tsv",
    }
    words = [name if word in files else word for word in COMMANDS[command]]
    assert said in refused(words, "").stderr


@pytest.mark.parametrize("number", ["EACCES", "EIO"])
@pytest.mark.parametrize(("command", "name"), READ[::4])
def test_a_file_that_the_system_keeps(
    command: str, name: str, number: str, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    """As root no permission is missing, so that the system's answer is put in its mouth."""
    import errno

    plain = Path.open

    def opens(path: Path, *args: Any, **extra: Any) -> Any:
        if path.name == Path(name).name and path.is_file():
            code = getattr(errno, number)
            raise OSError(code, os.strerror(code), str(path))
        return plain(path, *args, **extra)

    before = state(here)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", opens)
        result = CliRunner().invoke(main, COMMANDS[command])
    assert result.exit_code == 2, result.output
    assert name in result.stderr
    assert "no permission" in result.stderr or number == "EIO"
    assert PYTHON_S_WORDS.search(result.output) is None
    assert state(here) == before


# --- what a file may say --------------------------------------------------------------------------

WIDE = ",".join(f"c{number}" for number in range(100_000)) + "\n" + "," * 99_999 + "\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
"""Nine lists of nine of the one before: 341 bytes and a bit, 3.5 thousand million values."""


def _sets(target: str = "uniform", kind: str = "nominal", groups: str = "[x, y]") -> str:
    return f"SIZE: {{kind: {kind}, groups: {groups}, target: {target}}}\n"


def _row(text: str) -> str:
    return TEXTS["nuggets.csv"] + text + "\n"


def _answer(**changes: Any) -> str:
    return lines(ANSWER | changes)


def _turn(**changes: Any) -> str:
    return lines(RECORD[0], RECORD[1], TURN | {"turn": 2, "system": "", "outcome": "x"} | changes)


def _packed(size: int) -> bytes:
    return gzip.compress(bytes(size), 9)


CONTENTS: dict[str, list[tuple[str, str | bytes, str]]] = {
    "gfrc nuggets.csv": [
        ("100,000 columns", WIDE, "100000 columns"),
        (
            "a field of 200,000 letters",
            _row("a,T3,1,3,4,2,1 0," + "9" * 200_000 + ","),
            "line 6, column KIND",
        ),
        ("an open quotation", TEXTS["nuggets.csv"] + '"a,T3,1,3,4,2,1 0,1 0 0,\n', ""),
        ("only a header", TEXTS["nuggets.csv"].split("\n")[0] + "\n", "a header without rows"),
        ("a header twice", "run,run,topic\na,b,c\n", "the column twice"),
        ("no column SIZE", TEXTS["nuggets.csv"].replace("SIZE", "size"), "no such column"),
        (
            "semicolons",
            TEXTS["nuggets.csv"].replace(",", ";"),
            "semicolons between the columns",
        ),
        ("a list of JSON", '[{"run": "a"}]', "a list of JSON"),
        ("too few fields", _row("a,T3,1"), "3 fields"),
        ("too many fields", _row("a,T3,1,3,4,2,1 0,1 0 0,x,y"), "10 fields"),
        ("a level that is a word", _row("a,T3,1,3,4,high,1 0,1 0 0,"), "column level"),
        ("a negative level", _row("a,T3,1,3,4,-1,1 0,1 0 0,"), "column level"),
        ("a level of 5,000 digits", _row(f"a,T3,1,3,4,{'9' * 5000},1 0,1 0 0,"), "column level"),
        ("a level without a gain", _row("a,T3,1,3,4,9,1 0,1 0 0,"), "no gain for level 9"),
        ("a fraction of a word", _row("a,T3,1,3.5,4,2,1 0,1 0 0,"), "column start"),
        ("Arabic digits", _row("a,T3,1,٣,٤,2,1 0,1 0 0,"), "column start"),
        ("word 0", _row("a,T3,1,0,4,2,1 0,1 0 0,"), "column start"),
        ("no end", _row("a,T3,1,3,,2,1 0,1 0 0,"), "only one of start and end"),
        ("end before start", _row("a,T3,1,5,4,2,1 0,1 0 0,"), "start 5 after end 4"),
        ("an overlap", _row("b,T1,1,1,3,1,.5 .5,0 0 1,x"), "an overlap"),
        (
            "a nugget twice",
            _row("b,T1,1,2,2,1,.5 .5,0 0 1,Tenet"),
            "a row for the same place again",
        ),
        ("no run", _row(",T3,1,3,4,2,1 0,1 0 0,"), "column run"),
        ("a sum of 0.9", _row("a,T3,1,3,4,2,0.5 0.4,1 0 0,"), "probabilities that sum to 0.9"),
        ("a negative share", _row("a,T3,1,3,4,2,1.5 -0.5,1 0 0,"), "negative or not finite"),
        ("a share that is no number", _row("a,T3,1,3,4,2,nan nan,1 0 0,"), "'nan', not a number"),
        ("a share of 1e999", _row("a,T3,1,3,4,2,1e999 0,1 0 0,"), "column SIZE"),
        ("a share by 0", _row("a,T3,1,3,4,2,1/0 0,1 0 0,"), "'1/0', not a number"),
        ("three of two shares", _row("a,T3,1,3,4,2,1 0 0,1 0 0,"), "3 probabilities"),
        ("no memberships", _row("a,T3,1,3,4,2,,1 0 0,"), "column SIZE: found an empty field"),
        ("a hostile run", _row("\x1b[2J\u202ea,T3,0,3,4,2,1 0,1 0 0,"), "column turn"),
        ("ten thousand mistakes", TEXTS["nuggets.csv"] + "a,T3,x,y,z,w,v,u,\n" * 10_000, "more of"),
        ("a bomb of gzip", _packed(2**27), "more than"),
    ],
    "gfrc2 sets.yaml": [
        ("nested anchors", BOMB, "an alias within what an anchor names"),
        ("nested anchors in a target", _sets("&a [1, *a]"), "an alias within"),
        ("a timestamp", "SIZE: !!timestamp 2001-99-99\n", "tag"),
        ("an object", "SIZE: !!python/object/apply:os.system [true]\n", "tag"),
        ("a binary", "SIZE: !!binary x\n", "tag"),
        ("a number by tag", "SIZE: !!int x\n", "tag"),
        ("lists without end", "SIZE: " + "[" * 50_000, "deep"),
        ("20,000 values", "SIZE: [" + "a," * 20_000 + "]", "more than"),
        ("a megabyte", "SIZE: '" + "y " * 500_000 + "'", "characters of YAML"),
        ("a NUL", "SIZE: \0\n", "sets.yaml"),
        ("an unknown alias", "SIZE: *x\n", "undefined alias"),
        ("a key twice", _sets() + _sets(), "twice"),
        ("a key that is a list", "? [a]\n: b\n", "a key that is not a word"),
        ("two documents", _sets() + "---\n" + _sets(), "another document"),
        ("a tab", "\tSIZE: x\n", "sets.yaml"),
        ("a list", "- SIZE\n", "attribute sets by name"),
        ("a word", "SIZE\n", "attribute sets by name"),
        ("no keys", "SIZE: {}\n", "exactly the keys"),
        ("a key more", _sets().replace("kind", "colour: red, kind"), "exactly the keys"),
        ("a kind that is none", _sets(kind="fuzzy"), "neither ordinal nor nominal"),
        ("a kind that is a list", _sets(kind="[a]"), "neither ordinal nor nominal"),
        ("one group", _sets(groups="[x]"), "at least two groups"),
        ("a group twice", _sets(groups="[x, x]"), "at least two groups"),
        ("groups in groups", _sets(groups="[[x], [y]]"), "a list of names"),
        ("a target of three", _sets("[1, 2, 3]"), "3 numbers"),
        ("a negative target", _sets("[-1, 2]"), "non-negative"),
        ("a target of zeros", _sets("[0, 0]"), "not all zero"),
        ("a target that overflows", _sets("[1e308, 1e308]"), "a sum that is a number"),
        ("a target of infinity", _sets("[.inf, 1]"), "'.inf'"),
        ("a target of NaN", _sets("[nan, 1]"), "'nan'"),
        ("a target that is a word", _sets("equal"), "uniform or a list"),
        ("a target that is a mapping", _sets("{x: 1, y: 1}"), "uniform or a list"),
        ("a name that is taken", _sets().replace("SIZE", "turn"), "no other column"),
        ("a hostile name", _sets().replace("SIZE", '"\\e[31m\\u202e"'), "nuggets.csv"),
    ],
    "nuggets transcript.txt": [
        ("text first", "Tenet\n" + TEXTS["transcript.txt"], "text before the first turn"),
        ("no conversation", "# only this\n", "transcript.txt, line 1"),
        ("a turn first", "### U1\nA film?\n", "##### topic first"),
        ("a turn left out", TEXTS["transcript.txt"].replace("### U2", "### U3"), "### U2"),
        ("a mark that is none", TEXTS["transcript.txt"].replace("S1 o", "S1 y"), "mark 'y'"),
        ("a wrong count", TEXTS["transcript.txt"].replace("wc= 5", "wc= 4"), "wc= 4"),
        (
            "a count that is a word",
            TEXTS["transcript.txt"].replace("wc= 5", "wc= five"),
            "wc= five",
        ),
        (
            "a set that is none",
            TEXTS["transcript.txt"].replace("#SIZE", "#COLOUR"),
            "an unknown attribute set",
        ),
        ("a sum of 5/6", TEXTS["transcript.txt"].replace("(0,1/2,1/2)", "(0,1/2,1/3)"), "KIND"),
        ("a level of 9999", TEXTS["transcript.txt"].replace("#L2", "#L9999"), "#L9999"),
        (
            "an annotation twice",
            TEXTS["transcript.txt"].replace("#L2", "#L2\n#L1"),
            "again for the same line",
        ),
        ("no level", TEXTS["transcript.txt"].replace("#L2\n", ""), "annotations without a level"),
        ("no memberships", TEXTS["transcript.txt"].replace("#SIZE: (1,0)\n", ""), "no memberships"),
        ("too many words", TEXTS["transcript.txt"].replace("#L2", "#L2\n#WORDS: 9"), "WORDS"),
        (
            "a user's annotation",
            TEXTS["transcript.txt"].replace("More?", "More?\n#L1"),
            "system turns only",
        ),
        ("a conversation twice", TEXTS["transcript.txt"] * 2, "again"),
        (
            "a topic of three words",
            TEXTS["transcript.txt"].replace("T1 mine", "T1 mine too"),
            "##### topic",
        ),
        ("a hostile line", TEXTS["transcript.txt"] + "#\x1b[2J\u202e\n", "transcript.txt"),
        ("a bomb of gzip", _packed(2**27), "more than"),
    ],
    "transcripts conversation.txt": [
        ("no topic", "U:A film?\nS:Tenet\n", "<topic>"),
        ("no end", "<T1>\nU:A film?\nS:Tenet\n", "</T1>"),
        ("another end", "<T1>\nU:A film?\nS:Tenet\n</T2>\n", "</T1>"),
        ("one turn", "<T1>\nU:A film?\n</T1>\n", "1 turns"),
        ("the system first", "<T1>\nS:Tenet\n</T1>\n", "U:"),
        ("the user twice", "<T1>\nU:A film?\nU:Well?\n</T1>\n", "S:"),
        ("a topic twice", TEXTS["conversation.txt"] * 2, "topic T1 again"),
        ("a hostile topic", "<\x1b[31m>\nU:A\nS:B\n", "conversation.txt"),
    ],
    "transcripts of a record record.jsonl": [
        ("no settings", lines(*RECORD[1:]), "settings on line 1"),
        ("settings only", lines(RECORD[0]), "no complete conversation"),
        ("settings twice", lines(RECORD[0], RECORD[0]), "line 2"),
        ("no JSON", lines(RECORD[0]) + "Tenet\n", "a line that is not JSON"),
        ("a list", lines(RECORD[0]) + "[]\n", "line 2"),
        ("deep JSON", lines(RECORD[0]) + '{"a":' * 50_000 + "\n", "without end"),
        (
            "half a surrogate pair",
            lines(RECORD[0]) + lines(RECORD[1]).replace("Tenet", "\\ud800"),
            "surrogate",
        ),
        ("a key twice", lines(RECORD[0]) + '{"record": "turn", "record": "turn"}\n', "twice"),
        (
            "a number without end",
            lines(RECORD[0]) + '{"record": "turn", "trial": ' + "9" * 5000 + "}\n",
            "digits",
        ),
        ("topics that are none", lines(RECORD[0] | {"topics": 5}), "topics"),
        ("topics without a name", lines(RECORD[0] | {"topics": [{}]}), "topics"),
        ("an unknown topic", _turn(topic="T9"), "topic"),
        ("a turn 3", _turn(turn=3), "turn"),
        ("a trial 0", _turn(trial=0), "trial"),
        ("a true trial", _turn(trial=True), "trial"),
        ("an outcome that is none", _turn(outcome="y"), "outcome"),
        ("a text that is a number", _turn(system=5), "system"),
        ("a turn twice", lines(*RECORD, RECORD[2]), "again"),
    ],
    "harvest topics.csv": [
        ("no column request", TEXTS["topics.csv"].replace("request", "ask"), "no such column"),
        ("a topic twice", TEXTS["topics.csv"].replace("T2", "T1"), "again"),
        ("no request", TEXTS["topics.csv"].replace("Please list films.", " "), "column request"),
        ("100,000 columns", WIDE, "100000 columns"),
        ("too few fields", TEXTS["topics.csv"] + "T3,T\n", "2 fields"),
    ],
    "gfr a.run": [
        ("five columns", "T1 Q0 d1 1 3\n", "5 columns"),
        ("seven columns", "T1 Q0 d1 1 3 x y\n", "7 columns"),
        ("a document twice", TEXTS["a.run"] + "T2 Q0 d3 2 1 x\n", "d3 again"),
        ("a rank that is a word", TEXTS["a.run"].replace(" 2 2.5", " two 2.5"), "column rank"),
        ("a fraction of a rank", TEXTS["a.run"].replace(" 2 2.5", " 2.5 2.5"), "column rank"),
        ("a score of NaN", TEXTS["a.run"].replace("2.5", "nan"), "column score"),
        ("a score of infinity", TEXTS["a.run"].replace("2.5", "inf"), "column score"),
        ("a score of 1e999", TEXTS["a.run"].replace("2.5", "1e999"), "column score"),
        ("a score of 5,000 digits", TEXTS["a.run"].replace("2.5", "9" * 5000), "column score"),
        ("another tag", TEXTS["a.run"].replace("1.5 a.run", "1.5 y"), "column tag"),
        ("an open description", "<SYSDESC>mine\n" + TEXTS["a.run"], "SYSDESC"),
        ("only a description", "<SYSDESC>mine</SYSDESC>\n", "no ranked document"),
        ("ten thousand mistakes", "T1 Q0\n" * 10_000, "more of"),
        ("a bomb of gzip", _packed(2**27), "more than"),
        ("a hostile tag", TEXTS["a.run"] + "T3 Q0 d3 1 1 \x1b[31m\n", "column tag"),
    ],
    "compare scores.csv": [
        ("qrels", TEXTS["qrels.txt"], "judgements (qrels)"),
        ("a run", TEXTS["a.run"] * 999, "a run (topic Q0 document rank score tag)"),
        ("semicolons", TEXTS["scores.csv"].replace(",", ";"), "semicolons between the columns"),
    ],
    "gfr qrels.txt": [
        ("a run", TEXTS["a.run"] * 9999, "1 problem in the input"),
        ("two columns", "T1 d1\n", "2 columns"),
        ("another width", TEXTS["qrels.txt"] + "T3 d1 2\n", "3 columns"),
        ("a level that is a word", TEXTS["qrels.txt"].replace("d1 2", "d1 two"), "column level"),
        (
            "a level that is no grade",
            TEXTS["qrels.txt"].replace("d1 2", "d1 77"),
            "the qrels have level 77, and levels above 20 are no grades",
        ),
        (
            "a level of ten digits",
            TEXTS["qrels.txt"].replace("d1 2", "d1 9999999999"),
            "column level",
        ),
        ("a document twice", TEXTS["qrels.txt"] + "T2 0 d3 0\n", "d3 again"),
    ],
    "gfr members.txt": [
        ("one share", "T1 d1 1\n", "lines of topic, document and shares"),
        ("a sum of 0.9", "T1 d1 0.5 0.4\n", "probabilities that sum to 0.9"),
        ("a share above 1", "T1 d1 1.5 -0.5\n", "1.5 is not between 0 and 1"),
        ("a share of NaN", "T1 d1 nan 1\n", "'nan', not a number"),
        ("a document twice", TEXTS["members.txt"] + "T2 d3 0 1\n", "d3 again"),
        ("no topic of the qrels", "T9 d1 1 0\n", "memberships in SIZE"),
    ],
    "gfr target.golddistr": [
        ("one number", "1\n", "at least two groups"),
        ("100,000 numbers", "1\n" * 100_000, "found 100,000 numbers, wanted a number for each of"),
        ("three numbers", "1\n1\n1\n", "members.txt"),
        ("two on a line", "0.5 0.5\n", "one number"),
        ("a word", "0.5\nhalf\n", "'half'"),
        ("a negative number", "0.5\n-0.5\n", "non-negative"),
        ("zeros", "0\n0\n", "not all zero"),
        ("numbers that overflow", "1e308\n1e308\n", "a sum that is a number"),
    ],
    "bias docs.jsonl": [
        ("no JSON", TEXTS["docs.jsonl"] + "d4\n", "line 4: found no JSON"),
        ("a list", TEXTS["docs.jsonl"] + "[]\n", "line 4"),
        ("no id", TEXTS["docs.jsonl"] + '{"text": "x"}\n', "no id"),
        ("a true id", TEXTS["docs.jsonl"] + '{"id": true, "text": "x"}\n', "no id"),
        ("no text", TEXTS["docs.jsonl"] + '{"id": "d4"}\n', "no text"),
        ("a text that is a number", TEXTS["docs.jsonl"] + '{"id": "d4", "text": 4}\n', "no text"),
        ("deep JSON", '{"a":' * 50_000 + "\n", "without end"),
        ("half a surrogate pair", '{"id": "\\ud83d", "text": "x"}\n', "surrogate"),
        ("a key twice", '{"id": "a", "id": "b", "text": "x"}\n', "twice"),
        ("a number without end", '{"id": ' + "9" * 5000 + ', "text": "x"}\n', "digits"),
        ("a document twice", TEXTS["docs.jsonl"] * 2, "come twice"),
        ("ten thousand mistakes", "x\n" * 10_000, "docs.jsonl"),
    ],
    "bias of tabs docs.tsv": [
        ("no tab", "d1 he and him\n", "an id, a tab and a text"),
        ("no id", "\the and him\n", "an id, a tab and a text"),
        ("a document twice", TEXTS["docs.tsv"] * 2, "come twice"),
        ("a hostile line", "\x1b[31m\u202e\n", "docs.tsv"),
    ],
    "bias of tabs background.run": [("no topic of the run", "T9 Q0 d1 1 9 x\n", "lacks 2 topics")],
    "bias a.run": [
        ("a topic called all", TEXTS["a.run"].replace("T2", "all"), "'all'"),
        ("a hostile document", TEXTS["a.run"].replace("d1", "\x1b[31m") + "x\n", "a.run"),
    ],
    "bias terms.csv": [
        ("no comma", "he m\nshe f\n", "a term, a comma and its group"),
        ("one group", "he,m\nhim,m\n", "one group"),
        ("two words", "he she,m\nher,f\n", "a single word"),
        ("a term twice", TEXTS["terms.csv"] + "He,m\n", "again for m"),
        ("a hostile term", TEXTS["terms.csv"] + "\x1b[31m \u202e,m\n", "a single word"),
    ],
    "attribution answers.jsonl": [
        ("no JSON", TEXTS["answers.jsonl"] + "q\n", "line 4: found no JSON"),
        ("deep JSON", '{"a":' * 50_000 + "\n", "without end"),
        ("a key twice", '{"mode": 1, "mode": 2}\n', "twice"),
        (
            "NaN",
            TEXTS["answers.jsonl"].replace("0.9", "NaN"),
            "found nan, wanted a list of objects with document and probability",
        ),
        ("half a surrogate pair", TEXTS["answers.jsonl"].replace("Wales", "\\ud83d"), "surrogate"),
        ("a mode that is none", _answer(mode="Maybe"), "column mode"),
        ("a relevant document 0", _answer(relevant=[0]), "column relevant"),
        ("no relevant document", _answer(relevant=[]), "column relevant"),
        ("a document beyond those shown", _answer(relevant=[9]), "column relevant"),
        ("a relevant document twice", _answer(relevant=[2, 2]), "column relevant"),
        (
            "a probability of 2",
            _answer(citations=[{"document": 2, "probability": 2}]),
            "column citations",
        ),
        ("citations that are words", _answer(citations=["2"]), "column citations"),
        ("gold that is a word", _answer(gold="Wales"), "column gold"),
        ("an answer that is a number", _answer(answer=5), "column answer"),
        ("an empty author", _answer(relevant_author=""), "column relevant_author"),
        ("an answer twice", _answer() * 2, "again"),
        (
            "a third author",
            _answer() + _answer(relevant_author="Cat", question="q2"),
            "a third author",
        ),
        ("a key more", _answer() + _answer(question="q2", colour="red"), "a key more"),
        ("a key that is a list", _answer(model=["mine"]), "column model"),
        ("a number without end", '{"question": ' + "9" * 5000 + "}\n", "digits"),
        ("a hostile key", _answer(**{"\x1b[31m\u202e": []}), "answers.jsonl"),
    ],
}
GIVEN = [(where, *case) for where, cases in CONTENTS.items() for case in cases]


@pytest.mark.parametrize(
    ("where", "content", "said"),
    [(w, c, s) for w, _, c, s in GIVEN],
    ids=[f"{where}: {what}" for where, what, _, _ in GIVEN],
)
def test_a_file_that_says_something_wrong(
    where: str, content: str | bytes, said: str, here: Path
) -> None:
    command, _, name = where.rpartition(" ")
    (here / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    result = refused(COMMANDS[command], said)
    named = {
        name,
        *(["--gains"] if "gain" in said else []),
        *(["topic"] if "topic" in said else []),
        *said.split("zz"),
    }
    assert any(word in result.stderr for word in named)


NUGGETS = frame("nuggets.csv")
TABLES: list[tuple[str, pd.DataFrame, str]] = [
    ("a column of lists", NUGGETS.assign(run=[["a"]] * 4), "column run"),
    ("a column of mappings", NUGGETS.assign(topic=[{"a": 1}] * 4), "column topic"),
    ("bytes", NUGGETS.assign(run=[b"\xff"] * 4), "column run"),
    ("times", NUGGETS.assign(turn=pd.Timestamp("2001-01-01")), "column turn"),
    ("fractions", NUGGETS.assign(turn=[1.5] * 4), "column turn"),
    ("infinity", NUGGETS.assign(turn=[float("inf")] * 4), "column turn"),
    ("no numbers", NUGGETS.assign(turn=[float("nan")] * 4), "column turn"),
    ("truth", NUGGETS.assign(turn=True), "column turn"),
    ("lists in lists", NUGGETS.assign(SIZE=[[[1.0], [0.0]]] * 4), "column SIZE"),
    ("lists of words", NUGGETS.assign(SIZE=[["a", "b"]] * 4), "column SIZE"),
    ("lists of NaN", NUGGETS.assign(SIZE=[[float("nan"), 1.0]] * 4), "column SIZE"),
    ("huge numbers", NUGGETS.assign(start=[2**63 - 1] * 4), "column start"),
    ("no rows", NUGGETS.iloc[:0], "a header without rows"),
    ("no column", NUGGETS.drop(columns="level"), "column level"),
]


@pytest.mark.parametrize(
    ("table", "said"), [case[1:] for case in TABLES], ids=[case[0] for case in TABLES]
)
@pytest.mark.parametrize(("command", "name"), [READ[3], READ[4]])
def test_a_parquet_file_that_holds_something_wrong(
    command: str, name: str, table: pd.DataFrame, said: str, here: Path
) -> None:
    (here / name).write_bytes(parquet(table))
    assert said in refused(COMMANDS[command], name).stderr


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (RUN.drop(columns="score"), "column score"),
        (RUN.assign(score=float("nan")), "column score"),
        (RUN.assign(score=float("inf")), "column score"),
        (RUN.assign(score=["x", "y"]), "column score"),
        (RUN.assign(rank=[1.5, 2.5]), "column rank"),
        (RUN.assign(rank=[[1], [2]]), "column rank"),
        (RUN.assign(document="d1"), "d1 again"),
        (RUN.assign(topic=[["T1"], ["T1"]]), "column topic"),
        (RUN.assign(topic=None), "column topic"),
        (RUN.iloc[:0], "a header without rows"),
    ],
)
def test_a_run_in_parquet_that_holds_something_wrong(
    table: pd.DataFrame, said: str, here: Path
) -> None:
    (here / "run.parquet").write_bytes(parquet(table))
    assert said in refused(COMMANDS["gfr of Parquet"], "run.parquet").stderr


def test_a_parquet_file_with_a_thousand_million_rows(here: Path) -> None:
    from pyarrow import parquet as writer

    columns = {name: pa.nulls(2 * 10**6, pa.string()) for name in ("run", "topic")}
    writer.write_table(pa.table(columns), here / "nuggets.parquet")
    refused(COMMANDS["gfrc of Parquet"], "2000000 rows of 2 columns")


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "options", "said"),
    [
        (
            "gfrc",
            "--patience 1.5",
            "--patience",
        ),  # R of a conversation of relevant words only would be 16/15
        ("gfrc", "--patience 0", "--patience"),
        ("gfrc", "--patience 1", "patience"),
        ("gfrc", "--max-level 1000000000 --gains exponential", "--max-level"),
        ("gfrc", "--max-level 0", "--max-level"),
        ("gfrc", "--alpha 1.01", "--alpha"),
        ("gfrc", "--gains 1:0.5", "no gain for level 2"),
        ("gfrc", "--gains 1:0.5,2:1.5", "--gains"),
        ("gfrc", "--gains high:1", "--gains"),
        ("gfrc", "--weights SIZE:1", "wanted one for each of SIZE, KIND"),
        ("gfrc", "--weights SIZE:1,KIND:1,COLOUR:1", "wanted one for each of SIZE, KIND"),
        ("gfrc", "--weights SIZE:0,KIND:0", "--weights"),
        ("gfrc", "--weights SIZE:1e308,KIND:1e308", "--weights"),
        ("gfrc", "--weights SIZE:1,SIZE:2", "--weights"),
        ("gfrc", "--attribute COLOUR", "SIZE, KIND"),
        ("gfrc", "--distribution both", "--distribution"),
        ("gfrc", "--turn-weight largest-nugget --empty-turns uniform", "largest nugget"),
        ("gfrc", "--cluster tcp://127.0.0.1:1", "--cluster"),
        ("gfrc", "--no-such-option", "--no-such-option"),
        ("gfrc", "more.csv", "more.csv"),
        ("gfrc2", "--weights SIZE:1,KIND:1", "wanted one for each of utility, SIZE, KIND"),
        ("gfrc2 of a folder", "--compare", "without --clusters"),
        *(
            ("gfrc2 of a folder", f"--cluster {address}", "cluster")
            for address in (
                "x",
                "tcp://",
                "foo://bar",
                "a:99999",
                "tcp://a:x",
                "\x1b[31m",
                "inproc://x",
                "tls://a:1",
            )
        ),
        ("gfr", "--weights utility:1", "wanted one for each of utility, SIZE"),
        ("gfr", "--weights utility:1,SIZE:1,AGE:0", "wanted one for each of utility, SIZE"),
        ("gfr", "--membership SIZE=members.txt", "--membership"),
        ("gfr", "--membership AGE=members.txt --kind AGE=sorted", "--kind"),
        ("gfr", "--kind AGE=ordinal", "--membership"),
        ("gfr", "--kind SIZE", "--kind"),
        ("gfr", "--target =x", "--target"),
        ("gfr", "--run ./a.run", "the same file twice"),
        ("gfr", "--gains 1:1", "no gain for level 2"),
        ("gfr", "--decimals 16", "--decimals"),
        ("gfr", "--phi 0", "--phi"),
        ("gfr", "--cutoff 0", "--cutoff"),
        ("bias", "--target m:1", "the target names m"),
        ("bias", "--target m:0,f:0", "--target"),
        ("bias", "--target m:1e308,f:1e308", "--target"),
        ("bias", "--cutoff 5,0", "--cutoff"),
        ("bias", "--decimals 400", "--decimals"),
        ("bias", "--base 1", "--base"),
        ("bias", "--missing refuse", "not for d3"),
        ("bias", "--background no-such.run", "no-such.run"),
        ("bias", "--towards 2", "towards is '2'; wanted one of the groups f, m"),
        ("bias", "--against -3", "against is '-3'"),
        ("bias", "--towards f --against f", "towards and against are both f"),
        ("bias", "--documents nothing-of-this-name", "nothing-of-this-name"),
        ("bias", "--threshold .nan", "--threshold"),
        ("attribution", "--level .nan", "--level"),
        ("attribution", "--level 1", "--level"),
        ("attribution", "--resamples 1000000000000", "--resamples"),
        ("permute", "--context all", "--context"),
        ("size", "--difference 1e160", "--difference"),
        ("gfrc", "--level .9", "--level does nothing without --intervals"),
        ("compare", "--baseline=", "--baseline is empty"),
        ("transcripts", "--topics cast.json", "--topics"),
        ("tree", "--intent a=1", "tree.csv, node_nuggets.csv"),
        ("worst", "--over colour", "--over"),
        ("attribution", "--by colour", "colour"),
        ("attribution", "--favoured Cat", "Cat"),
        ("transcripts", "--marks page", "--marks"),
        ("harvest", "--trials 0", "--trials"),
        ("harvest", "--temperature .inf", "--temperature"),
        ("harvest", "--top-p 0", "--top-p"),
        ("harvest", "--timeout .nan", "--timeout"),
    ],
)
def test_an_option_that_makes_no_sense(command: str, options: str, said: str) -> None:
    refused([*COMMANDS[command], *options.split()], said)


def test_bounds_are_said_before_the_work(here: Path) -> None:
    """Each of these took minutes, or gigabytes, before it was refused."""
    rows = "".join(f"r{number},t{number},M,1\n" for number in range(15_000))
    (here / "scores.csv").write_text("run,topic,measure,value\n" + rows)
    for command in ("compare", "topic-set-size"):
        refused([command, "scores.csv"], "hardly any topic is shared")


@pytest.mark.parametrize("patience", [1.5, float("nan"), float("inf"), 10**400, -1, True])
def test_a_measure_checks_what_a_command_checks(patience: Any) -> None:
    with pytest.raises(ValueError, match=r"patience is .+; wanted a whole number from 1"):
        relevance([1, 2], [1.0, 1.0], [0, 0], 1, patience)
    assert relevance([1, 2], [1.0, 1.0], [0, 0], 1, 2) == [
        1.0
    ]  # every word a nugget: the most there is


@given(
    st.text(
        alphabet=st.one_of(
            st.sampled_from("[]{}:,-?&*!|>'\"%@`#\n\t <=.0123456789eyn~"), st.characters()
        )
    )
)
@settings(max_examples=150)
def test_yaml_is_read_or_refused(text: str) -> None:
    for loader in (plain_yaml.Words, plain_yaml.Values):
        with contextlib.suppress(yaml.YAMLError):
            json.dumps(plain_yaml.load(text, loader))  # plain values only


# --- other commands -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["score", "gfrc3"], "gfrc3"),
        (["\x1b[31mscore\u202e"], "No such command"),
        (["--\x1b[31m"], "--"),
        (["score", "gfrc"], "NUGGETS"),
        (["score", "gfrc", "nuggets.csv"], "--attributes"),
        (["nuggets", "transcript.txt"], "--attributes"),
        (["transcripts", "conversation.txt"], "--output"),
        (["harvest"], "--topics"),
        (["measures", "GFRC3"], "GFRC3"),
        (["measures", "x" * 5000], "no measure"),
        (["data", "fetch", "no-such-item"], "no-such-item"),
        (["data", "verify", "../.."], "no item"),
        (["list", "more"], "more"),
        (["check", "more"], "more"),
        (["site", "--port", "70000"], "--port"),
        (["site", "--port", "x"], "--port"),
        (["build", "no_such_notebook"], "no_such_notebook"),
        (["build", "../etc/passwd"], "no notebook"),
        (["build", "--jobs", "0"], "--jobs"),
        (["build", "--profile", "tiny"], "--profile"),
        (["build", "own_conversation", "-p", "patience"], "NAME=VALUE"),
        (["build", "own_conversation", "-p", "patience=1", "-p", "patience=2"], "each name once"),
        (["build", "own_conversation", "-p", "patients=3"], "patients"),
        (["build", "own_conversation", "-p", "patience=.nan"], "patience"),
        (["build", "own_conversation", "-p", "patience=1.5"], "patience"),
        (["build", "own_conversation", "-p", "patience=" + "9" * 5000], "patience"),
        (["build", "own_conversation", "-p", "patience=" + "[" * 5000], "patience"),
        (["build", "own_conversation", "-p", "patience=!!timestamp 2001-99-99"], "patience"),
        (["build", "own_conversation", "-p", "patience=2001-99-99"], "patience"),
        (["build", "own_conversation", "-p", "ordinal=\x1b[31m"], "ordinal"),
        (
            ["build", "own_conversation", "-p", "attributes=../../x"],
            "attributes: ../../x leads out of the folder data",
        ),
        (
            ["build", "own_conversation", "-p", "attributes=/etc/passwd"],
            "attributes: /etc/passwd leads out",
        ),
        (
            ["build", "own_conversation", "-p", "attributes=attributes/../../x"],
            "leads out of the folder data",
        ),
        (["build", "own_conversation", "-p", "attributes=" + "x" * 3000], "no file data/xxx"),
        (["build", "own_conversation", "-p", "attributes=attributes"], "no file data/attributes"),
        (["new", "../x", "--topic", "T1"], "no name for a notebook"),
        (["new", "x" * 300, "--topic", "T1"], "no name for a notebook"),
        (["new", "mine", "--topic", "\x1b[31m"], "no topic"),
        (["new", "mine", "--from", "../../x", "--topic", "T1"], "../../x"),
        (["new", "mine", "--from", "a\0b", "--topic", "T1"], "is no notebook"),
    ],
)
def test_a_command_that_cannot_be(words: list[str], said: str) -> None:
    refused(words, said)


# --- as a process ---------------------------------------------------------------------------------


def process(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "equipoise_cli", *words]
    return subprocess.run(
        command, capture_output="stdout" not in how, text=True, check=False, timeout=60, **how
    )


def test_a_process_ends_as_promised_too(here: Path) -> None:
    (here / "sets.yaml").write_text(BOMB)
    ended = process(*COMMANDS["gfrc"])
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "sets.yaml, line 2" in ended.stderr
    assert len(ended.stderr) < 2000


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no /dev/full to write to"
)
@pytest.mark.parametrize("words", [["measures"], COMMANDS["gfrc"][:-2]])
def test_a_full_disk_behind_the_output(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = process(*words, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 2
    assert "no space left" in ended.stderr
    assert PYTHON_S_WORDS.search(ended.stderr) is None
