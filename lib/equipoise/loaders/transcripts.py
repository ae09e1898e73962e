r"""Annotated transcripts of conversations: read, written, and turned into the frame of a nugget table.

An *annotated transcript* is text as gfrc's Figure 5 writes it::

    ##### M002
    ### U1
    Please list up sci-fi movies that feature time travel, listed in IMDb.
    Format: movie title, IMDb URL
    ### S1 o
    12 Monkeys (1995): https://www.imdb.com/title/tt0114746/
    #L2
    wc= 21
    #RATINGS: (0,0,1,0) #634K
    #ORIGIN: (0,1,0,0,0,0,0,0) #United States

``##### topic`` opens a conversation (a run may follow the topic), ``### U1`` and ``### S1`` open
the user's and the system's turns, and ``o`` or ``x`` behind a system turn says how it looked. Lines
that begin with ``#`` or ``wc=`` annotate the line of text before them: the level, memberships in
the groups of an attribute set, ``#ENTITY: name`` (equal names are duplicates) and ``#WORDS: n``
(the nugget is the last n words of its line; one unless stated). What follows the value is a remark.
``wc=`` states the position of the nugget's last word and is checked against the text. A line of
text that begins with ``#`` or ``wc=`` has a backslash before it; ``[A 452-word response ...]`` on a
line of its own stands for so many words left out.

Words are what white space separates, over the whole conversation, user turns included; the first is
word 1.

References
----------
gfrc: Sakai, T. (2023): Fairness-based Evaluation of Conversational Search: A Pilot Study. EVIA
2023, sections 3.2 and 6.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import pandas as pd

from equipoise.attributes import CORE_COLUMNS, AttributeSet
from equipoise.declare import checked
from equipoise.files import parse_number, read_text, stem
from equipoise.options import Units
from equipoise.problems import Problems, shown

_NOTE = re.compile(
    r"""(\#L) ([0-9]{1,3}) \b .*
    | (wc=) \s* (\S*) \s* (?: \# .*)?
    | \#(ENTITY|WORDS): \s* (.*)
    | \#([^\s:#]+): \s* \( ([^()]*) \) .*""",
    re.VERBOSE,
)
_LEFT_OUT = re.compile(r"\[An? ([0-9]{1,6})-word response[^\]]*\]")
_ESCAPED = re.compile(r"\\+(?:#|wc=)")
_TO_ESCAPE = re.compile(r"\\*(?:#|wc=)")


@dataclass(frozen=True)
class Annotation:
    """What an annotator says of the nugget, the last words of a line.

    ``level`` 0 is that of a nonrelevant entity; equal names of an ``entity`` in a conversation are
    duplicates, and an empty one is none. ``memberships`` in the groups of each attribute set are
    kept as written.
    """

    level: int
    words: int = 1
    entity: str = ""
    memberships: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """A line of a turn without white space around it, and the annotation of the nugget that it ends with."""

    text: str
    annotation: Annotation | None = None

    @property
    def words(self) -> int:
        """Number of words, those left out included."""
        left_out = _LEFT_OUT.fullmatch(self.text.strip())
        return int(left_out[1]) if left_out else len(self.text.split())

    def size(self, units: str, last: int | None = None) -> int:
        """How many words or characters the line, or its last few words, have."""
        if not units.endswith("character"):
            return self.words if last is None else last
        if _LEFT_OUT.fullmatch(self.text.strip()):
            raise ValueError(f"{shown(self.text)} has no characters to count; wanted --units word")
        return sum(map(len, self.text.split()[-last if last else 0 :]))


def lines_of(text: str) -> list[Line]:
    """The lines of a text that hold something, without annotations."""
    return [Line(line.strip()) for line in text.split("\n") if line.strip()]


@dataclass(frozen=True)
class Turn:
    """A turn of a conversation; the system's has the number of the user's that it answers.

    ``mark`` is ``o`` or ``x`` where a system turn was judged by its look, else empty.
    """

    speaker: Literal["user", "system"]
    number: int
    lines: tuple[Line, ...]
    mark: str = ""


@dataclass(frozen=True)
class Transcript:
    """A conversation: user and system turns by turns; the user begins."""

    run: str
    topic: str
    turns: tuple[Turn, ...]


def transcript(run: str, topic: str, turns: Iterable[tuple[str, Iterable[Line]]]) -> Transcript:
    """A transcript of turns, each its mark and its lines; user and system take turns, the user first."""
    made = [
        Turn("system" if place % 2 else "user", place // 2 + 1, tuple(lines), mark)
        for place, (mark, lines) in enumerate(turns)
    ]
    return Transcript(run, topic, tuple(made))


@dataclass
class _Numbered:
    """A line of text with its number in the file, and what is noted of it: for each key the number and the value."""

    number: int
    text: str
    notes: dict[str, tuple[int, str]] = field(default_factory=dict)


class _Reader:
    """Reads annotated transcripts line by line and collects what is wrong."""

    def __init__(self, name: str, run: str, attributes: Mapping[str, AttributeSet]) -> None:
        self.run, self.attributes = run, attributes
        self.problems = Problems()
        self.wrong = partial(self.problems.add, name)
        self.transcripts: dict[tuple[str, str], Transcript] = {}
        self.header: tuple[str, str, int] | None = None  # run, topic, line
        self.turns: list[
            tuple[str, list[_Numbered]]
        ] = []  # of the open conversation: mark and lines

    def read(self, text: str) -> None:
        for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
            sign, *words = line.split() or [""]
            if sign == "#####":
                self.open_conversation(number, line, *words)
            elif sign == "###":
                self.open_turn(number, line, *words)
            elif line.startswith(("#", "wc=")):
                self.note(number, line)
            elif line and not self.turns:
                self.wrong(number, None, "text before the first turn", "##### topic, then ### U1")
            elif line:
                self.turns[-1][1].append(
                    _Numbered(number, line[1:] if _ESCAPED.match(line) else line)
                )
        self.close()
        if not self.transcripts and not self.problems:
            self.wrong(1, None, "no conversation", "##### topic, then ### U1")

    def open_conversation(
        self, number: int, line: str, topic: str = "", run: str = "", *more: str
    ) -> None:
        self.close()
        if not topic or more:
            self.wrong(number, None, repr(line), "##### topic, or ##### topic run")
        self.header = (run or self.run, topic or f"line {number}", number)
        if self.header[:2] in self.transcripts:
            self.wrong(
                number, "topic", f"{topic} of run {self.header[0]} again", "each conversation once"
            )

    def open_turn(self, number: int, line: str, sign: str = "", mark: str = "", *more: str) -> None:
        if self.header is None:
            self.wrong(number, None, repr(line), "##### topic first")
            self.header = (self.run, f"line {number}", number)
        speaker, before = "US"[len(self.turns) % 2], len(self.turns) // 2
        if sign != f"{speaker}{before + 1}" or more:
            self.wrong(number, None, repr(line), f"### {speaker}{before + 1}")
        elif mark not in ("", "o", "x") or (mark and speaker == "U"):
            self.wrong(number, None, f"mark {mark!r}", "o or x, behind a system turn only")
        self.turns.append((mark, []))

    def note(self, number: int, line: str) -> None:
        if not self.turns or not self.turns[-1][1]:
            self.wrong(number, None, repr(line), "an annotation behind a line of text of a turn")
        elif len(self.turns) % 2:
            self.wrong(
                number,
                None,
                repr(line),
                "annotations in system turns only (text begins with a backslash)",
            )
        elif (match := _NOTE.fullmatch(line)) is None:
            known = "".join(f", #{name}: (...)" for name in self.attributes)
            wanted = f"#L2, wc= 35, #ENTITY: name, #WORDS: 3{known}, or text behind a backslash"
            self.wrong(number, None, repr(line[:60]), wanted)
        else:
            key, value = (group for group in match.groups() if group is not None)
            found = self.turns[-1][1][-1].notes
            if key in found:
                self.wrong(number, None, f"{key} again for the same line", "each annotation once")
            found[key] = number, value

    def close(self) -> None:
        """Count the words of the open conversation, and take in its notes."""
        if self.header is None:
            return
        run, topic, opened = self.header
        if not self.turns:
            self.wrong(opened, None, "a conversation without turns", "### U1")
        self.position = 0
        turns = [(mark, [self.line(line) for line in lines]) for mark, lines in self.turns]
        self.transcripts[run, topic] = transcript(run, topic, turns)
        self.header, self.turns = None, []

    def line(self, line: _Numbered) -> Line:
        words = Line(line.text).words
        self.position += words
        if not (found := line.notes):
            return Line(line.text)
        if "#L" not in found:
            self.wrong(
                line.number, "level", "annotations without a level", "#L0, #L1, ... behind the line"
            )
        level = int(found.pop("#L", (0, "0"))[1])
        number, stated = found.pop("wc=", (0, str(self.position)))
        if stated != str(self.position):
            self.wrong(
                number, "wc", f"wc= {stated}", f"{self.position}, the word count of the text so far"
            )
        number, length = found.pop("WORDS", (0, "1"))
        if not re.fullmatch("[1-9][0-9]{0,4}", length) or int(length) > max(words, 1):
            self.wrong(number, "WORDS", repr(length), f"1 to {words}, the words of its line")
            length = "1"
        entity = " ".join(found.pop("ENTITY", (0, ""))[1].split())
        for name, attribute in self.attributes.items():
            if level and name not in found and not attribute.parts:
                self.wrong(
                    line.number, name, "no memberships", f"#{name}: (...) behind a relevant entity"
                )
        memberships = {name: self.memberships(name, *found[name]) for name in found}
        return Line(line.text, Annotation(level, int(length), entity, memberships))

    def memberships(self, name: str, number: int, value: str) -> tuple[str, ...]:
        parts = tuple(part.strip() for part in value.split(","))
        if name not in self.attributes:
            known = ", ".join(self.attributes) or "none"
            self.wrong(
                number, name, "an unknown attribute set", f"one of the attribute sets ({known})"
            )
            return parts
        found = ""
        try:
            numbers = [parse_number(part) for part in parts]
            found = f"({', '.join(parts)})"
            self.attributes[name].memberships(numbers)
        except ValueError as error:
            self.wrong(number, name, found or str(error), self.attributes[name].wanted)
        return parts


def parse_transcripts(
    text: str, run: str, attributes: Mapping[str, AttributeSet], name: str = "transcript"
) -> list[Transcript]:
    """Annotated transcripts from text; every relevant entity has memberships in each attribute set.

    ``run`` is that of the conversations that name none; ``name`` is what error messages call the
    text.
    """
    reader = _Reader(name, run, attributes)
    reader.read(text)
    reader.problems.refuse()
    return list(reader.transcripts.values())


def read_transcripts(
    path: str | Path, attributes: Mapping[str, AttributeSet], run: str | None = None
) -> list[Transcript]:
    """Annotated transcripts from a file, whose name without its ending is the run of those that name none."""
    return parse_transcripts(
        read_text(path), run_of(path) if run is None else run, attributes, str(path)
    )


def is_transcript(content: bytes) -> bool:
    """Whether a file that begins so holds transcripts."""
    return content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"#####")


def is_word(name: str) -> bool:
    """Whether the header of a transcript can have this name: one word, nothing in it that cannot be seen."""
    return bool(name) and " " not in name and name.isprintable()


def run_of(path: str | Path) -> str:
    """What a run is called where only its file names it: that name without its ending, as one word."""
    return "".join(letter if is_word(letter) else "_" for letter in stem(path))


def format_transcripts(transcripts: Iterable[Transcript]) -> str:
    """Transcripts as text that `parse_transcripts` reads back, with the word counts of their nuggets."""
    parts: list[str] = []
    seen: set[tuple[str, str]] = set()
    for made in transcripts:
        name = made.run, made.topic
        if name in seen or not all(map(is_word, name)):
            found = (
                "is here twice"
                if name in seen
                else "is not one word and one word, which a transcript needs"
            )
            raise ValueError(f"topic {shown(made.topic)} of run {shown(made.run)} {found}")
        seen.add(name)
        parts.append(f"##### {made.topic} {made.run}\n")
        position = 0
        for turn in made.turns:
            parts.append(f"### {turn.speaker[0].upper()}{turn.number} {turn.mark}".rstrip() + "\n")
            for line in turn.lines:
                position += line.words
                parts.append(("\\" if _TO_ESCAPE.match(line.text) else "") + line.text + "\n")
                if note := line.annotation:
                    parts.append(f"#L{note.level}\nwc= {position}\n")
                    parts += [
                        f"#{name}: ({','.join(vector)})\n"
                        for name, vector in note.memberships.items()
                    ]
                    parts += [f"#ENTITY: {note.entity}\n"] if note.entity else []
                    parts += [f"#WORDS: {note.words}\n"] if note.words != 1 else []
    return "".join(parts)


@checked
def nugget_frame(
    transcripts: Iterable[Transcript], attributes: Iterable[str], *, units: Units = "word"
) -> pd.DataFrame:
    r"""The annotated lines as a data frame in the columns of a nugget table, for `equipoise.nuggets.nugget_table`.

    All fields are text. System turns without any such line have a row of level 0 without positions;
    a column ``entity`` is there if an entity is named.

    Examples
    --------
    >>> text = "##### T1\n### U1\nA film, please.\n### S1\nTenet (2020): https://example.org/1\n#L2\n#WORDS: 3\n"
    >>> nugget_frame(parse_transcripts(text, "mine", {}), [])
        run topic turn start end level
    0  mine    T1    1     4   6     2
    """
    names = list(attributes)
    rows: list[list[str]] = []
    for made in transcripts:
        end = 0
        for turn in made.turns:
            about, before = [made.run, made.topic, str(turn.number)], len(rows)
            for line in (
                turn.lines if turn.speaker == "system" or not units.startswith("system") else ()
            ):
                end += line.size(units)
                if note := line.annotation:
                    vectors = [" ".join(note.memberships.get(name, ())) for name in names]
                    start = end - line.size(units, note.words) + 1
                    rows.append(
                        [*about, str(start), str(end), str(note.level), note.entity, *vectors]
                    )
            if turn.speaker == "system" and len(rows) == before:
                rows.append([*about, "", "", "0", "", *("" for _ in names)])
    frame = pd.DataFrame(rows, columns=[*CORE_COLUMNS, "entity", *names], dtype="str")
    return frame if frame["entity"].ne("").any() else frame.drop(columns="entity")


def line_frame(transcripts: Iterable[Transcript]) -> pd.DataFrame:
    """What the systems said, line by line: run, topic, turn, text, and level, empty where a line names no entity."""
    rows = [
        (
            made.run,
            made.topic,
            turn.number,
            line.text,
            "" if line.annotation is None else str(line.annotation.level),
        )
        for made in transcripts
        for turn in made.turns
        if turn.speaker == "system"
        for line in turn.lines
    ]
    return pd.DataFrame(rows, columns=["run", "topic", "turn", "text", "level"])


def turn_frame(transcripts: Iterable[Transcript]) -> pd.DataFrame:
    """Turn boundaries: run, topic, turn, speaker, and the positions of the first and the last word, start and end.

    An empty turn ends before it starts.
    """
    rows = []
    for made in transcripts:
        end = 0
        for turn in made.turns:
            start, end = end + 1, end + sum(line.words for line in turn.lines)
            rows.append((made.run, made.topic, turn.number, turn.speaker, start, end))
    return pd.DataFrame(rows, columns=["run", "topic", "turn", "speaker", "start", "end"])
