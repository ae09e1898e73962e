"""Transcripts: positions counted in words, nugget tables and turns, round trips, rejections."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.attributes import AttributeSet, read_attributes
from equipoise.loaders.transcripts import (
    add_transcripts,
    format_transcript,
    nugget_frame,
    parse_transcripts,
    turn_frame,
)
from equipoise.nuggets import nugget_table
from equipoise_compendium import project

SETS = {"SIZE": AttributeSet("SIZE", "ordinal", ("small", "large"), np.ones(2))}
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
#L1
#SIZE: (1/2,1/2)
#ENTITY: Looper
#WORDS: 3
### U2
More?
### S2
\\#1 is all I know.
"""


def test_positions_are_counted_in_words_of_the_conversation() -> None:
    lines = parse_transcripts(TEXT, "a.txt", SETS)
    frame = nugget_frame(lines, SETS)
    columns = ["run", "turn", "start", "end", "level", "entity", "SIZE"]
    assert frame[columns].to_numpy().tolist() == [
        ["a", "1", "12", "12", "2", "", "0 1"],
        ["a", "1", "13", "15", "1", "Looper", "1/2 1/2"],
        ["a", "2", "", "", "0", "", ""],
    ]
    table = nugget_table(frame, SETS)
    assert table.memberships["SIZE"].tolist() == [[0, 1], [0.5, 0.5], [0, 0]]
    turns = turn_frame(lines)[["turn", "speaker", "start", "end"]].to_numpy().tolist()
    assert turns == [
        [1, "user", 1, 6],
        [1, "system", 7, 15],
        [2, "user", 16, 16],
        [2, "system", 17, 21],
    ]
    assert lines["text"].iloc[-1] == "#1 is all I know."


def test_an_empty_turn_and_omitted_words() -> None:
    text = "##### T1 mine\n### U1\n### S1\n[A 452-word response about films]\nTenet\n#L0\n"
    lines = parse_transcripts(text, "a.txt", {})
    assert nugget_frame(lines, []).loc[0, ["run", "start"]].tolist() == ["mine", "453"]
    assert turn_frame(lines)[["start", "end"]].to_numpy().tolist() == [[1, 0], [1, 453]]


def test_the_case_study_agrees_with_its_published_positions() -> None:
    """Every ``wc=`` of the committed transcript is checked while reading."""
    path = project.data("conversations", "turing_award.txt")
    attributes = read_attributes(project.data("attributes", "turing_award.yaml"))
    assert (
        nugget_frame(parse_transcripts(path.read_text(), path, attributes), attributes)["level"]
        != "0"
    ).sum() == 5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("##### T1", "##### T1 a b", "line 1: must be '##### topic'"),
        ("### S1 o", "### S2 o", "line 5: must be '### S1', the next turn, got '### S2 o'"),
        ("### S1 o", "### S1 z", "line 5: must be '### S1'"),
        ("wc= 12", "wc= 13", "line 9: wc= must be 12, the word count, got 13"),
        ("#SIZE: (0,1) #1.3M", "#SIZE: (0,1,0)", "line 10: SIZE must be 2 shares that sum to 1"),
        ("#SIZE: (0,1) #1.3M", "#SIZE: (0,2)", "line 10: SIZE must be 2 shares that sum to 1"),
        (
            "#SIZE: (0,1) #1.3M",
            "#KIND: (0,1)",
            "line 10: unknown attribute set 'KIND', must be one of SIZE",
        ),
        ("#SIZE: (0,1) #1.3M\n", "", "line 7: a relevant nugget must have memberships"),
        ("#WORDS: 3", "#WORDS: 4", "line 15: WORDS must be from 1 to 3, got '4'"),
        ("#L2\n", "", "line 7: an annotated line must have a level"),
        ("#L2\n", "#L2\n#L1\n", "line 9: #L occurs twice"),
        ("#L2\n", "#level 2\n", "line 8: must be #L2, wc= 35"),
        ("Format: title, URL", "#L1", "line 4: an annotation must follow a line of a system turn"),
        ("##### T1\n", "", "line 1: must be '##### topic' before the first turn, got '### U1'"),
        ("### U1\n", "", "line 2: text before the first turn"),
        (TEXT, "", "has no conversation, which begins with"),
        ("##### T1\n", "##### T1\n### U1\n##### T1\n", "line 3: topic T1 of run a occurs twice"),
    ],
)
def test_mistakes_are_named_with_file_and_line(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^a\.txt") as caught:
        parse_transcripts(TEXT.replace(old, new, 1), "a.txt", SETS)
    assert message in str(caught.value)


@given(st.lists(st.tuples(st.text(), st.text(), st.sampled_from(["", "o", "x"])), min_size=1))
def test_what_is_written_is_read_again(turns: list[tuple[str, str, str]]) -> None:
    text = format_transcript("run", "topic", turns)
    lines = parse_transcripts(text, "a.txt", {})
    for number, (user, system, mark) in enumerate(turns, start=1):
        for speaker, said in (("user", user), ("system", system)):
            of_turn = lines[(lines["turn"] == number) & (lines["speaker"] == speaker)]
            expected = [line.split() for line in said.split("\n") if line.split()]
            read = [line.split() for line in of_turn["text"] if line]
            assert len(read) == len(expected)
            if said.isprintable():
                assert read == expected
            if speaker == "system":
                assert set(of_turn["mark"]) == {mark}


def test_transcripts_are_appended_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    first = {("a", "T1"): format_transcript("a", "T1", [("Films?", "Tenet", "o")])}
    assert add_transcripts(path, first) == 1
    path.write_text(path.read_text() + "#L2")  # annotated, without a final newline
    second = first | {("a", "T2"): format_transcript("a", "T2", [("Books?", "Emma", "o")])}
    assert add_transcripts(path, second) == 1
    assert parse_transcripts(path.read_text(), path, {})["level"].tolist() == ["", "2", "", ""]
    path.write_text("a letter")
    with pytest.raises(ValueError, match="must contain transcripts"):
        add_transcripts(path, first)
    with pytest.raises(ValueError, match="topic must be one printable word"):
        format_transcript("a", "two words", [])
