r"""Annotated transcripts of conversations: read, written, and turned into a nugget table.

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
from equipoise.files import BOM, parse_number, read_text, stem
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
    """A line of a turn, white space around it off, and what is said of the nugget at its end."""

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
        words = self.text.split()
        if last:
            words = words[-last:]
        return sum(map(len, words))


_OBEYED = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


def lines_of(text: str) -> list[Line]:
    """The lines of a text that hold something, without annotations.

    What a terminal would obey, such as an escape, is one replacement character; what separates
    words still does.
    """
    shown_text = _OBEYED.sub("\ufffd", text)
    return [Line(line.strip()) for line in shown_text.split("\n") if line.strip()]


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
    """A transcript of turns, each its mark and lines; user and system take turns, user first."""
    numbered_turns = []
    for place, (mark, lines) in enumerate(turns):
        speaker: Literal["user", "system"] = "system" if place % 2 else "user"
        numbered_turns.append(Turn(speaker, place // 2 + 1, tuple(lines), mark))
    return Transcript(run, topic, tuple(numbered_turns))


# --- reading --------------------------------------------------------------------------------------


@dataclass
class _NumberedLine:
    """A line of text with its number in the file.

    ``notes``: by key the number of the line that annotates it, and the value there.
    """

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
        # Of the open conversation: run, topic and line of its header, and marks and lines.
        self.header: tuple[str, str, int] | None = None
        self.turns: list[tuple[str, list[_NumberedLine]]] = []
        self.position = 0

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
                _, lines = self.turns[-1]
                if _ESCAPED.match(line):
                    line = line[1:]
                lines.append(_NumberedLine(number, line))
        self.close_conversation()
        if not self.transcripts and not self.problems:
            self.wrong(1, None, "no conversation", "##### topic, then ### U1")

    def open_conversation(
        self, number: int, line: str, topic: str = "", run: str = "", *more: str
    ) -> None:
        self.close_conversation()
        if not topic or more:
            self.wrong(number, None, repr(line), "##### topic, or ##### topic run")
        self.header = (run or self.run, topic or f"line {number}", number)
        if self.header[:2] in self.transcripts:
            problem = f"{topic} of run {self.header[0]} again"
            self.wrong(number, "topic", problem, "each conversation once")

    def open_turn(self, number: int, line: str, sign: str = "", mark: str = "", *more: str) -> None:
        if self.header is None:
            self.wrong(number, None, repr(line), "##### topic first")
            self.header = (self.run, f"line {number}", number)
        speaker = "S" if len(self.turns) % 2 else "U"
        wanted_sign = f"{speaker}{len(self.turns) // 2 + 1}"
        if sign != wanted_sign or more:
            self.wrong(number, None, repr(line), f"### {wanted_sign}")
        elif mark not in ("", "o", "x") or (mark and speaker == "U"):
            self.wrong(number, None, f"mark {mark!r}", "o or x, behind a system turn only")
        self.turns.append((mark, []))

    def note(self, number: int, line: str) -> None:
        """Keep an annotation with the line of text before it."""
        lines = self.turns[-1][1] if self.turns else []
        is_user_turn = len(self.turns) % 2 == 1
        match = _NOTE.fullmatch(line)
        if not lines:
            self.wrong(number, None, repr(line), "an annotation behind a line of text of a turn")
        elif is_user_turn:
            expected = "annotations in system turns only (text begins with a backslash)"
            self.wrong(number, None, repr(line), expected)
        elif match is None:
            memberships = "".join(f", #{name}: (...)" for name in self.attributes)
            expected = f"#L2, wc= 35, #ENTITY: name, #WORDS: 3{memberships}"
            self.wrong(number, None, repr(line[:60]), f"{expected}, or text behind a backslash")
        else:
            key, value = [group for group in match.groups() if group is not None]
            notes = lines[-1].notes
            if key in notes:
                self.wrong(number, None, f"{key} again for the same line", "each annotation once")
            notes[key] = number, value

    def close_conversation(self) -> None:
        """Count the words of the open conversation, and take in its notes."""
        if self.header is None:
            return
        run, topic, header_line = self.header
        if not self.turns:
            self.wrong(header_line, None, "a conversation without turns", "### U1")
        self.position = 0
        turns = [(mark, [self.line(line) for line in lines]) for mark, lines in self.turns]
        self.transcripts[run, topic] = transcript(run, topic, turns)
        self.header, self.turns = None, []

    def line(self, line: _NumberedLine) -> Line:
        """A line with its annotation, by the words of the conversation so far."""
        n_words = Line(line.text).words
        self.position += n_words
        notes = line.notes
        if not notes:
            return Line(line.text)
        if "#L" not in notes:
            expected = "#L0, #L1, ... behind the line"
            self.wrong(line.number, "level", "annotations without a level", expected)
        level = int(notes.pop("#L", (0, "0"))[1])
        self.check_word_count(*notes.pop("wc=", (0, str(self.position))))
        number, length = notes.pop("WORDS", (0, "1"))
        if not re.fullmatch("[1-9][0-9]{0,4}", length) or int(length) > max(n_words, 1):
            self.wrong(number, "WORDS", repr(length), f"1 to {n_words}, the words of its line")
            length = "1"
        entity = " ".join(notes.pop("ENTITY", (0, ""))[1].split())
        # What is left in the notes are memberships.
        for name in self.attributes:
            if level and name not in notes:
                expected = f"#{name}: (...) behind a relevant entity"
                self.wrong(line.number, name, "no memberships", expected)
        memberships = {name: self.memberships(name, *notes[name]) for name in notes}
        return Line(line.text, Annotation(level, int(length), entity, memberships))

    def check_word_count(self, number: int, stated: str) -> None:
        if stated != str(self.position):
            expected = f"{self.position}, the word count of the text so far"
            self.wrong(number, "wc", f"wc= {stated}", expected)

    def memberships(self, name: str, number: int, value: str) -> tuple[str, ...]:
        texts = tuple(text.strip() for text in value.split(","))
        if name not in self.attributes:
            expected = f"one of the attribute sets ({', '.join(self.attributes) or 'none'})"
            self.wrong(number, name, "an unknown attribute set", expected)
            return texts
        attribute_set = self.attributes[name]
        try:
            numbers = [parse_number(text) for text in texts]
        except ValueError as error:
            self.wrong(number, name, str(error), attribute_set.wanted)
            return texts
        try:
            attribute_set.memberships(numbers)
        except ValueError:
            self.wrong(number, name, f"({', '.join(texts)})", attribute_set.wanted)
        return texts


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
    """Annotated transcripts from a file; the run of those that name none is, unless given, its."""
    if run is None:
        run = run_of(path)
    return parse_transcripts(read_text(path), run, attributes, str(path))


def is_transcript(content: bytes) -> bool:
    """Whether a file that begins so holds transcripts."""
    return content.removeprefix(BOM).lstrip().startswith(b"#####")


def is_word(name: str) -> bool:
    """Whether the header of a transcript can have this name: one word, all of it visible."""
    return bool(name) and " " not in name and name.isprintable()


def run_of(path: str | Path) -> str:
    """What a run is called where only its file names it: that name without its ending, a word."""
    return "".join(letter if is_word(letter) else "_" for letter in stem(path))


# --- writing, and tables --------------------------------------------------------------------------


def format_transcripts(transcripts: Iterable[Transcript]) -> str:
    """Transcripts as text that `parse_transcripts` reads back, with word counts of nuggets."""
    lines: list[str] = []
    names: set[tuple[str, str]] = set()
    for conversation in transcripts:
        run, topic = conversation.run, conversation.topic
        if (run, topic) in names:
            raise ValueError(f"topic {shown(topic)} of run {shown(run)} is here twice")
        if not (is_word(run) and is_word(topic)):
            raise ValueError(
                f"topic {shown(topic)} of run {shown(run)} is not one word and one word, "
                "which a transcript needs"
            )
        names.add((run, topic))
        lines.append(f"##### {topic} {run}")
        position = 0
        for turn in conversation.turns:
            lines.append(f"### {turn.speaker[0].upper()}{turn.number} {turn.mark}".rstrip())
            for line in turn.lines:
                position += line.words
                if _TO_ESCAPE.match(line.text):
                    lines.append("\\" + line.text)
                else:
                    lines.append(line.text)
                if line.annotation:
                    lines += _formatted_annotation(line.annotation, position)
    return "".join(f"{line}\n" for line in lines)


def _formatted_annotation(annotation: Annotation, position: int) -> list[str]:
    lines = [f"#L{annotation.level}", f"wc= {position}"]
    for name, vector in annotation.memberships.items():
        lines.append(f"#{name}: ({','.join(vector)})")
    if annotation.entity:
        lines.append(f"#ENTITY: {annotation.entity}")
    if annotation.words != 1:
        lines.append(f"#WORDS: {annotation.words}")
    return lines


@checked
def nugget_frame(
    transcripts: Iterable[Transcript], attributes: Iterable[str], *, units: Units = "word"
) -> pd.DataFrame:
    r"""The annotated lines as a data frame for `equipoise.nuggets.nugget_table`, in its columns.

    All fields are text. System turns without any such line have a row of level 0 without positions;
    a column ``entity`` is there if an entity is named.

    Examples
    --------
    >>> text = "##### T1\n### U1\nA film, please.\n### S1\nTenet (2020): https://example.org/1\n"
    >>> text += "#L2\n#WORDS: 3\n"
    >>> nugget_frame(parse_transcripts(text, "mine", {}), [])
        run topic turn start end level
    0  mine    T1    1     4   6     2
    """
    set_names = list(attributes)
    counts_users = not units.startswith("system")
    rows: list[list[str]] = []
    for conversation in transcripts:
        end = 0
        for turn in conversation.turns:
            is_system = turn.speaker == "system"
            if not is_system and not counts_users:
                continue
            turn_key = [conversation.run, conversation.topic, str(turn.number)]
            n_rows_before = len(rows)
            for line in turn.lines:
                end += line.size(units)
                annotation = line.annotation
                if annotation is None:
                    continue
                start = end - line.size(units, annotation.words) + 1
                core = [*turn_key, str(start), str(end), str(annotation.level), annotation.entity]
                vectors = [" ".join(annotation.memberships.get(name, ())) for name in set_names]
                rows.append([*core, *vectors])
            if is_system and len(rows) == n_rows_before:
                rows.append([*turn_key, "", "", "0", "", *[""] * len(set_names)])
    frame = pd.DataFrame(rows, columns=[*CORE_COLUMNS, "entity", *set_names], dtype="str")
    return frame if frame["entity"].ne("").any() else frame.drop(columns="entity")


def line_frame(transcripts: Iterable[Transcript]) -> pd.DataFrame:
    """What the systems said, line by line: run, topic, turn, text, level.

    The level is empty where a line names no entity.
    """
    rows = []
    for conversation in transcripts:
        for turn in conversation.turns:
            if turn.speaker != "system":
                continue
            turn_key = (conversation.run, conversation.topic, turn.number)
            for line in turn.lines:
                level = ""
                if line.annotation:
                    level = str(line.annotation.level)
                rows.append((*turn_key, line.text, level))
    return pd.DataFrame(rows, columns=["run", "topic", "turn", "text", "level"])


def turn_frame(transcripts: Iterable[Transcript]) -> pd.DataFrame:
    """Turn boundaries: run, topic, turn, speaker, and first and last word, start and end.

    An empty turn ends before it starts.
    """
    rows = []
    for conversation in transcripts:
        end = 0
        for turn in conversation.turns:
            start = end + 1
            end += sum(line.words for line in turn.lines)
            turn_key = (conversation.run, conversation.topic, turn.number, turn.speaker)
            rows.append((*turn_key, start, end))
    return pd.DataFrame(rows, columns=["run", "topic", "turn", "speaker", "start", "end"])
