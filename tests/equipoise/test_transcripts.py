"""Transcripts: round trips, word positions, refusals, and conversations that the papers print."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.attributes import AttributeSet, attribute_sets
from equipoise.loaders.transcripts import (
    Annotation,
    Line,
    Transcript,
    Turn,
    format_transcripts,
    nugget_frame,
    parse_transcripts,
    read_transcripts,
    turn_frame,
)
from equipoise.nuggets import nugget_table
from equipoise.problems import InputError
from equipoise_cli.loaders.fairweb_conversations import parse_fairweb, read_fairweb

SIZE = AttributeSet("SIZE", "ordinal", ("small", "large"), np.ones(2))
TEXT = """##### T1
### U1
Please list films.
Format: title, URL
### S1 o
Here you are:
Tenet (2020): https://example.org/1
#L2
wc= 12
#SIZE: (0,1) #1.3M
Looper (2012): https://example.org/2
#L0 # wrong URL
### U2
Can you name a few more?
### S2 x
No.
"""


# --- reading --------------------------------------------------------------------------------------


def test_positions_are_counted_over_the_whole_conversation() -> None:
    (transcript,) = parse_transcripts(TEXT, "r", {"SIZE": SIZE})
    frame = nugget_frame([transcript], ["SIZE"])
    assert frame.to_numpy().tolist() == [
        ["r", "T1", "1", "12", "12", "2", "0 1"],
        ["r", "T1", "1", "15", "15", "0", ""],
        ["r", "T1", "2", "", "", "0", ""],
    ]
    bounds = turn_frame([transcript])[["turn", "speaker", "start", "end"]]
    assert bounds.to_numpy().tolist() == [
        [1, "user", 1, 6],
        [1, "system", 7, 15],
        [2, "user", 16, 21],
        [2, "system", 22, 22],
    ]
    assert [turn.mark for turn in transcript.turns] == ["", "o", "", "x"]
    assert len(nugget_table(frame, {"SIZE": SIZE})) == 3


def test_words_left_out_are_counted() -> None:
    text = TEXT.replace("Here you are:", "[A 100-word response of another kind]").replace(
        "wc= 12", "wc= 109"
    )
    (transcript,) = parse_transcripts(text, "r", {"SIZE": SIZE})
    assert nugget_frame([transcript], ["SIZE"])["end"].tolist() == ["109", "112", ""]


def test_file_name_and_header_name_the_run(tmp_path: Path) -> None:
    file = tmp_path / "bing-1.txt"
    file.write_text(TEXT.replace("\n", "\r\n") + TEXT.replace("T1", "T1 other"), encoding="utf-8")
    assert [t.run for t in read_transcripts(file, {"SIZE": SIZE})] == ["bing-1", "other"]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("wc= 12", "wc= 11", r"line 9, column wc: found wc= 11, wanted 12"),
        ("wc= 12", "wc= many", r"line 9, column wc: found wc= many, wanted 12"),
        ("wc= 12", "#L2", r"line 9: found #L again"),
        ("(0,1)", "(0,1,0)", r"line 10, column SIZE: found \(0, 1, 0\), wanted 2 probabilities"),
        (
            "(0,1)",
            "(1/2,1/3)",
            r"line 10, column SIZE: found \(1/2, 1/3\), wanted 2 probabilities that sum to 1",
        ),
        ("(0,1)", "(0,one)", r"line 10, column SIZE: found 'one', not a number"),
        ("#SIZE: (0,1) #1.3M\n", "", r"line 7, column SIZE: found no memberships"),
        ("#SIZE", "#AGE", r"line 10, column AGE: found an unknown attribute set"),
        ("#L2\n", "", r"line 7, column level: found annotations without a level"),
        ("#L2\n", "#relevant\n#L2\n", r"line 8: found '#relevant'"),
        ("#L2\n", "#L2\n#WORDS: 4\n", r"line 9, column WORDS: found '4', wanted 1 to 3"),
        ("### S1 o", "### S2 o", r"line 5: found '### S2 o', wanted ### S1"),
        ("### S1 o", "### S1 y", r"line 5: found mark 'y'"),
        ("### U1", "### U1 o", r"line 2: found mark 'o', wanted o or x, behind a system turn only"),
        ("##### T1\n", "", r"line 1: found '### U1', wanted ##### topic first"),
        ("##### T1", "##### T1 r s", r"line 1: found '##### T1 r s'"),
        ("##### T1\n", "Hello\n##### T1\n", r"line 1: found text before the first turn"),
        (
            "Format:",
            "#L1\nFormat:",
            r"line 4: found '#L1', wanted annotations in system turns only",
        ),
        (
            "### S1 o\n",
            "### S1 o\n#L1\n",
            r"line 6: found '#L1', wanted an annotation behind a line of text",
        ),
    ],
)
def test_what_is_wrong_is_named_by_line(old: str, new: str, complaint: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError, match=complaint):
        parse_transcripts(TEXT.replace(old, new, 1), "r", {"SIZE": SIZE})


def test_all_problems_are_reported_together() -> None:
    text = (
        TEXT.replace("wc= 12", "wc= 1").replace("(0,1)", "(1,1)").replace("### S2 x", "### S3 x")
        + TEXT
    )
    with pytest.raises(InputError) as caught:
        parse_transcripts(text, "r", {"SIZE": SIZE}, "two.txt")
    assert [problem.line for problem in caught.value.problems] == [9, 10, 15, 17]
    assert "T1 of run r again" in caught.value.problems[-1].found


def test_a_text_without_conversation_is_refused() -> None:
    with pytest.raises(InputError, match="found no conversation"):
        parse_transcripts("\n\n", "r", {})
    with pytest.raises(InputError, match="a conversation without turns"):
        parse_transcripts("##### T1\n", "r", {})


# --- round trip -----------------------------------------------------------------------------------

WORDS = st.one_of(
    st.sampled_from(
        [
            "#L1",
            "#",
            "##",
            "\\#",
            "wc=",
            "wc=",
            "\\",
            "\\wc=",
            "#SIZE:",
            "(0,1)",
            "<T1>",
            "S:",
            "|",
            "é",
            "'",
            "[A",
        ]
    ),
    st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=6),
)
IDS = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=5)
MEMBERS = st.integers(0, 6).map(lambda k: {"SIZE": (f"{k}/6", f"{6 - k}/6")})


@st.composite
def lines(draw: st.DrawFn, *, annotated: bool) -> Line:
    words = draw(st.lists(WORDS, min_size=1, max_size=6))
    note = None
    if annotated and draw(st.booleans()):
        level = draw(st.integers(0, 3))
        entity = " ".join(draw(st.lists(WORDS, max_size=2)))
        note = Annotation(
            level, draw(st.integers(1, len(words))), entity, draw(MEMBERS) if level else {}
        )
    return Line(draw(st.sampled_from([" ", "  ", "\t"])).join(words), note)


@st.composite
def transcript(draw: st.DrawFn) -> list[Transcript]:
    names = draw(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=3, unique=True))
    made = []
    for run, topic in names:
        turns = []
        for number in range(1, draw(st.integers(1, 3)) + 1):
            asked = draw(st.lists(lines(annotated=False), max_size=2))
            told = draw(st.lists(lines(annotated=True), max_size=4))
            turns.append(Turn("user", number, tuple(asked)))
            turns.append(Turn("system", number, tuple(told), draw(st.sampled_from(["", "o", "x"]))))
        made.append(Transcript(run, topic, tuple(turns)))
    return made


@given(transcript())
@settings(deadline=None, max_examples=80)
def test_random_transcripts_survive_the_round_trip(made: list[Transcript]) -> None:
    text = format_transcripts(made)
    assert parse_transcripts(text, "another", {"SIZE": SIZE}) == made


@given(transcript())
@settings(deadline=None, max_examples=40)
def test_positions_point_at_the_words(made: list[Transcript]) -> None:
    """Split it all at white space: words from start to end are the end of the annotated line."""
    frame = nugget_frame(made, ["SIZE"])
    bounds = turn_frame(made)
    for conversation in made:
        said = [line for turn in conversation.turns for line in turn.lines]
        words = " ".join(line.text for line in said).split()
        own = frame[
            (frame["run"] == conversation.run)
            & (frame["topic"] == conversation.topic)
            & (frame["start"] != "")
        ]
        noted = [line for line in said if line.annotation is not None]
        assert len(own) == len(noted)
        for (start, end), line in zip(
            own[["start", "end"]].astype(int).to_numpy().tolist(), noted, strict=True
        ):
            assert line.annotation is not None
            assert words[start - 1 : end] == line.text.split()[-line.annotation.words :]
        ends = bounds[
            (bounds["run"] == conversation.run) & (bounds["topic"] == conversation.topic)
        ]["end"]
        assert ends.iloc[-1] == len(words)


@given(st.text(max_size=200))
@settings(deadline=None)
def test_no_text_breaks_the_readers(text: str) -> None:
    with contextlib.suppress(InputError):
        assert parse_transcripts(text, "r", {"SIZE": SIZE})
    with contextlib.suppress(InputError):
        assert parse_fairweb(text, "r")


# --- FairWeb runs ---------------------------------------------------------------------------------

FAIRWEB = (
    "<R112> U:Please list.\nS:Here are two:\nA\nB\nU:More please.\nS:Sure! C </R112>\n"
    "<R113>\nU:X\nS:Y\n</R113>\n"
)


def test_a_fairweb_run_is_read(tmp_path: Path) -> None:
    file = tmp_path / "ORG.txt"
    file.write_text(FAIRWEB, encoding="utf-8")
    transcripts = read_fairweb(file)
    assert [(t.run, t.topic, len(t.turns)) for t in transcripts] == [
        ("ORG", "R112", 4),
        ("ORG", "R113", 2),
    ]
    assert turn_frame(transcripts)["end"].tolist() == [2, 7, 9, 11, 1, 2]
    joined = FAIRWEB.replace("\n", " ").replace("</R112> ", "</R112>\n")
    assert turn_frame(parse_fairweb(joined, "ORG", marks="word"))["end"].tolist() == [
        2,
        7,
        9,
        11,
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("</R112>", "", "line 1: found <R112> without its end"),
        ("\nS:Here", "\nU:Here", "line 2: found a turn that opens with U:, wanted S:"),
        ("U:Please", "Please", "line 1: found text before the first turn"),
        ("<R113>", "<R112>", "found topic R112 again|without its end"),
        ("S:Y\n", "", "line 7: found 1 turns in topic R113"),
        ("<R113>", "R113", "line 7: found 'R113', wanted <topic>"),
    ],
)
def test_a_bad_fairweb_run_is_refused(old: str, new: str, complaint: str) -> None:
    assert old in FAIRWEB
    with pytest.raises(InputError, match=complaint):
        parse_fairweb(FAIRWEB.replace(old, new, 1), "r")


# --- what the papers print ------------------------------------------------------------------------


def test_a_product_set_needs_no_line_of_its_own() -> None:
    plain = {"P": {"kind": "nominal", "groups": ["he", "she"], "target": "uniform"}}
    plain["O"] = plain["P"] | {"groups": ["x", "y"]}
    sets = attribute_sets({**plain, "P x O": {"product": ["P", "O"]}})
    text = "##### T1\n### U1\nA name?\n### S1\nAda\n#L2\n#P: (0, 1)\n#O: (1/2, 1/2)\n"
    frame = nugget_frame(parse_transcripts(text, "mine", sets), sets)
    assert nugget_table(frame, sets).memberships["P x O"].tolist() == [[0, 0, 0.5, 0.5]]
