r"""Transcripts of conversations, annotated or not, and the way from them to a nugget table.

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

``##### topic`` opens a conversation (a run may follow the topic), ``### U1`` and ``### S1`` open the user's and the
system's turns, and ``o`` or ``x`` behind a system turn says how it looked. Lines that begin with ``#`` or ``wc=``
annotate the line of text before them: the level, memberships in the groups of an attribute set, ``#ENTITY: name``
(equal names are duplicates) and ``#WORDS: n`` (the nugget is the last n words of its line; one unless stated). What
follows the value is a remark. ``wc=`` states the position of the nugget's last word and is checked against the text. A
line of text that begins with ``#`` or ``wc=`` has a backslash before it; ``[A 452-word response ...]`` on a line of its
own stands for so many words left out.

A *FairWeb conversation run* has ``<R112>``, turns that open with ``U:`` and ``S:``, and ``</R112>``.

Words are what white space separates, over the whole conversation, user turns included; the first is word 1. In a
FairWeb run ``U:`` and ``S:`` belong to the word they are written to, as the campaign counted.

References
----------
gfrc: Sakai, T. (2023): Fairness-based Evaluation of Conversational Search: A Pilot Study. EVIA 2023, sections 3.2 and
6.1.

gfrc2: Sakai, T., Tao, S., Song, Y.-I.: Evaluating Group Fairness and Relevance in Conversational Search: An Alternative
Formulation, section 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pandas as pd

from equipoise.attributes import CORE_COLUMNS, AttributeSet
from equipoise.files import parse_number, read_text
from equipoise.problems import InputError, Problem

SUM_TOLERANCE = 1e-6

_TURN = re.compile(r"###\s+([US])([0-9]{1,4})(?:\s+(\S+))?")
_LEVEL = re.compile(r"#L([0-9]{1,3})\b.*")
_STATED = re.compile(r"wc=\s*(\S*)\s*(?:#.*)?")
_VECTOR = re.compile(r"#([^\s:#]+):\s*\(([^()]*)\).*")
_FIELD = re.compile(r"#(ENTITY|WORDS):\s*(.*)")
_LEFT_OUT = re.compile(r"\[An? ([0-9]{1,6})-word response[^\]]*\]")
_ESCAPED = re.compile(r"^\\(?=\\*(?:#|wc=))")
_TO_ESCAPE = re.compile(r"^(?=\\*(?:#|wc=))")
_OPENING = re.compile(r"<([A-Za-z0-9_.-]+)>")


@dataclass(frozen=True)
class Annotation:
    """What an annotator says of the nugget at the end of a line.

    ``level``: Relevance level; 0 for a nonrelevant entity. ``words``: number of words of the nugget. ``entity``:
    name of the entity; equal names in a conversation are duplicates. Empty where none is given. ``memberships``:
    Membership probabilities as written, per attribute set.
    """

    level: int
    words: int = 1
    entity: str = ""
    memberships: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """A line of a turn, and its annotation if it has one.

    ``text``: Without white space around it. ``annotation``: of the nugget that the line ends with.
    """

    text: str
    annotation: Annotation | None = None

    @property
    def words(self) -> int:
        """Number of words, those left out included."""
        left_out = _LEFT_OUT.fullmatch(self.text.strip())
        return int(left_out[1]) if left_out else len(self.text.split())


@dataclass(frozen=True)
class Turn:
    """A turn of a conversation.

    ``speaker``: Who speaks. ``number``: From 1; the system turn has the number of the user turn that it answers.
    ``lines``: the text. ``mark``: ``o`` or ``x`` where a system turn was judged by its look, else empty.
    """

    speaker: Literal["user", "system"]
    number: int
    lines: tuple[Line, ...]
    mark: str = ""


@dataclass(frozen=True)
class Transcript:
    """A conversation.

    ``run``, ``topic``: Whose conversation it is, and about what. ``turns``: User and system turns by turns; the
    user begins.
    """

    run: str
    topic: str
    turns: tuple[Turn, ...]

    def placed(self) -> Iterator[tuple[Turn, Line, int, int]]:
        """Yield every line with its turn and the positions of its first and last word."""
        end = 0
        for turn in self.turns:
            for line in turn.lines:
                start, end = end + 1, end + line.words
                yield turn, line, start, end


def _next_turn(turns: Sequence[Turn]) -> tuple[Literal["user", "system"], int]:
    if len(turns) % 2:
        return "system", (len(turns) + 1) // 2
    return "user", len(turns) // 2 + 1


class _Parser:
    """Reads annotated transcripts line by line and collects what is wrong."""

    def __init__(self, name: str, run: str, attributes: Mapping[str, AttributeSet]) -> None:
        self.name, self.run, self.attributes = name, run, attributes
        self.problems: list[Problem] = []
        self.transcripts: list[Transcript] = []
        self.header: tuple[str, str, int] | None = None  # run, topic, line
        self.turns: list[Turn] = []
        self.open: tuple[Literal["user", "system"], int, str, int] | None = None  # speaker, number, mark, line
        self.lines: list[Line] = []
        self.position = 0
        self.notes: list[tuple[int, str]] = []
        self.text_line = 0

    def wrong(self, line: int, column: str | None, found: str, wanted: str) -> None:
        self.problems.append(Problem(self.name, line, column, found, wanted))

    def read(self, text: str) -> None:
        for number, line in enumerate(text.split("\n"), start=1):
            stripped = line.strip()
            if re.match(r"#####(\s|$)", stripped):
                self.begin(number, stripped)
            elif re.match(r"###(\s|$)", stripped):
                self.begin_turn(number, stripped)
            elif stripped.startswith(("#", "wc=")):
                self.note(number, stripped)
            elif self.open is None:
                if stripped:
                    self.wrong(number, None, "text before the first turn", "##### topic, then ### U1")
            elif stripped:
                self.close_line()
                self.lines.append(Line(_ESCAPED.sub("", stripped)))
                self.position += self.lines[-1].words
                self.text_line = number
        self.close()
        if not self.transcripts and not self.problems:
            self.wrong(1, None, "no conversation", "##### topic, then ### U1")

    def begin(self, number: int, line: str) -> None:
        self.close()
        words = line.split()[1:]
        if not 1 <= len(words) <= 2:
            self.wrong(number, None, repr(line), "##### topic, or ##### topic run")
        topic = words[0] if words else f"line {number}"
        run = words[1] if len(words) > 1 else self.run
        if any((t.run, t.topic) == (run, topic) for t in self.transcripts):
            self.wrong(number, "topic", f"{topic} of run {run} again", "each conversation once")
        self.header = (run, topic, number)

    def begin_turn(self, number: int, line: str) -> None:
        self.close_turn()
        match = _TURN.fullmatch(line)
        speaker, counted = _next_turn(self.turns)
        wanted = f"### {speaker[0].upper()}{counted}"
        if self.header is None:
            self.wrong(number, None, repr(line), "##### topic first")
            self.header = (self.run, f"line {number}", number)
        if match is None or (match[1], int(match[2])) != (speaker[0].upper(), counted):
            self.wrong(number, None, repr(line), wanted)
        mark = (match[3] or "") if match else ""
        if mark not in ("", "o", "x") or (mark and speaker == "user"):
            self.wrong(number, None, f"mark {mark!r}", "o or x, behind a system turn only")
        self.open = (speaker, counted, mark, number)

    def note(self, number: int, line: str) -> None:
        if self.open is None or not self.lines:
            self.wrong(number, None, repr(line), "an annotation behind a line of text of a turn")
        elif self.open[0] == "user":
            self.wrong(
                number, None, repr(line), "annotations in system turns only (for text, put a backslash before it)"
            )
        else:
            self.notes.append((number, line))

    def close_line(self) -> None:
        """Turn the notes gathered so far into the annotation of the line before them."""
        if not self.notes:
            return
        level: int | None = None
        stated: tuple[int, str] | None = None
        words, entity = 1, ""
        vectors: dict[str, tuple[str, ...]] = {}
        seen: set[str] = set()
        for number, note in self.notes:
            if match := _LEVEL.fullmatch(note):
                key, level = "#L", int(match[1])
            elif match := _STATED.fullmatch(note):
                key, stated = "wc=", (number, match[1])
            elif match := _FIELD.fullmatch(note):
                key = match[1]
                if key == "ENTITY":
                    entity = " ".join(match[2].split())
                elif re.fullmatch("[1-9][0-9]{0,4}", match[2]) and int(match[2]) <= self.lines[-1].words:
                    words = int(match[2])
                else:
                    self.wrong(number, "WORDS", repr(match[2]), f"1 to {self.lines[-1].words}, the words of its line")
            elif match := _VECTOR.fullmatch(note):
                key = match[1]
                vectors[key] = tuple(part.strip() for part in match[2].split(","))
                self.check_vector(number, key, vectors[key])
            else:
                known = ", ".join(f"#{name}: (...)" for name in self.attributes)
                wanted = (
                    f"#L2, wc= 35, #ENTITY: name, #WORDS: 3{', ' + known if known else ''}, or text behind a backslash"
                )
                self.wrong(number, None, repr(note[:60]), wanted)
                continue
            if key in seen:
                self.wrong(number, None, f"{key} again for the same line", "each annotation once")
            seen.add(key)
        if level is None:
            self.wrong(self.text_line, "level", "annotations without a level", "#L0, #L1, ... behind the line")
            level = 0
        if level > 0:
            for name in self.attributes:
                if name not in vectors:
                    self.wrong(self.text_line, name, "no memberships", f"#{name}: (...) behind a relevant entity")
        if stated is not None and stated[1] != str(self.position):
            self.wrong(stated[0], "wc", f"wc= {stated[1]}", f"{self.position}, the word count of the text so far")
        self.lines[-1] = Line(self.lines[-1].text, Annotation(level, words, entity, vectors))
        self.notes = []

    def check_vector(self, number: int, name: str, vector: Sequence[str]) -> None:
        if name not in self.attributes:
            known = ", ".join(self.attributes) or "none"
            self.wrong(number, name, "an unknown attribute set", f"one of the attribute sets ({known})")
            return
        groups = self.attributes[name].groups
        wanted = f"{len(groups)} probabilities that sum to 1 ({', '.join(groups)})"
        try:
            numbers = [parse_number(part) for part in vector]
        except ValueError as error:
            self.wrong(number, name, str(error), wanted)
            return
        good = len(numbers) == len(groups) and min(numbers) >= 0 and abs(sum(numbers) - 1) <= SUM_TOLERANCE
        if not good:
            self.wrong(number, name, f"({', '.join(vector)})", wanted)

    def close_turn(self) -> None:
        self.close_line()
        if self.open is not None:
            speaker, counted, mark, _ = self.open
            self.turns.append(Turn(speaker, counted, tuple(self.lines), mark))
        self.open, self.lines = None, []

    def close(self) -> None:
        self.close_turn()
        if self.header is not None:
            run, topic, line = self.header
            if not self.turns:
                self.wrong(line, None, "a conversation without turns", "### U1")
            self.transcripts.append(Transcript(run, topic, tuple(self.turns)))
        self.header, self.turns, self.position = None, [], 0


def parse_transcripts(
    text: str, run: str, attributes: Mapping[str, AttributeSet], name: str = "transcript"
) -> list[Transcript]:
    """Parse annotated transcripts.

    ``text``: one conversation or more, in the format that the module describes. ``run``: Run of the conversations
    that name none. ``attributes``: the attribute sets; every relevant entity has memberships in each. ``name``:
    what error messages call the text. Returns: In their order.
    """
    parser = _Parser(name, run, attributes)
    parser.read(text)
    if parser.problems:
        raise InputError(parser.problems)
    return parser.transcripts


def read_transcripts(
    path: str | Path, attributes: Mapping[str, AttributeSet], run: str | None = None
) -> list[Transcript]:
    """Read annotated transcripts from a file.

    ``path``: the file. ``attributes``: the attribute sets. ``run``: Run of the conversations that name none; the
    default is the file's name without its ending. Returns: In their order.
    """
    return parse_transcripts(read_text(path), run if run is not None else Path(path).stem, attributes, str(path))


def format_transcripts(transcripts: Iterable[Transcript]) -> str:
    """Write transcripts in the annotated format, with the word counts of their nuggets.

    ``transcripts``: what to write. Returns: Text that `parse_transcripts` reads back.
    """
    parts: list[str] = []
    for transcript in transcripts:
        parts.append(f"##### {transcript.topic} {transcript.run}\n")
        position = 0
        for turn in transcript.turns:
            parts.append(f"### {turn.speaker[0].upper()}{turn.number}{' ' + turn.mark if turn.mark else ''}\n")
            for line in turn.lines:
                position += line.words
                parts.append(_TO_ESCAPE.sub(r"\\", line.text) + "\n")
                note = line.annotation
                if note is None:
                    continue
                parts.append(f"#L{note.level}\nwc= {position}\n")
                parts += [f"#{name}: ({','.join(vector)})\n" for name, vector in note.memberships.items()]
                parts += [f"#ENTITY: {note.entity}\n"] if note.entity else []
                parts += [f"#WORDS: {note.words}\n"] if note.words != 1 else []
    return "".join(parts)


def nugget_frame(transcripts: Iterable[Transcript], attributes: Iterable[str]) -> pd.DataFrame:
    """Nugget table of transcripts, as a data frame in the columns of the file format.

    ``transcripts``: Annotated conversations. ``attributes``: names of the attribute sets. Returns DataFrame,
    columns run, topic, turn, start, end, level, entity and one per attribute set: A row per annotated line, start
    and end being word positions from 1; system turns without any have a row of level 0 without positions.
    `equipoise.files.nugget_table` checks it and makes arrays of it. Without an ``entity`` named in any transcript
    the column is left out.
    """
    names = list(attributes)
    rows: list[list[str]] = []
    for transcript in transcripts:
        noted: dict[int, list[list[str]]] = {turn.number: [] for turn in transcript.turns if turn.speaker == "system"}
        for turn, line, _, end in transcript.placed():
            note = line.annotation
            if note is not None:
                place = [str(turn.number), str(end - note.words + 1), str(end), str(note.level), note.entity]
                noted[turn.number].append([*place, *(" ".join(note.memberships.get(name, ())) for name in names)])
        for number, found in noted.items():
            empty = [[str(number), "", "", "0", "", *([""] * len(names))]]
            rows += [[transcript.run, transcript.topic, *row] for row in found or empty]
    frame = pd.DataFrame(rows, columns=[*CORE_COLUMNS, "entity", *names], dtype="str")
    return frame if frame["entity"].ne("").any() else frame.drop(columns="entity")


def turn_frame(transcripts: Iterable[Transcript]) -> pd.DataFrame:
    """Turn boundaries of transcripts.

    ``transcripts``: Conversations, annotated or not. Returns DataFrame, columns run, topic, turn, speaker, start,
    end: Word positions of the first and the last word of each turn; an empty turn ends before it starts.
    """
    rows: list[tuple[str, str, int, str, int, int]] = []
    for transcript in transcripts:
        end = 0
        for turn in transcript.turns:
            start, end = end + 1, end + sum(line.words for line in turn.lines)
            rows.append((transcript.run, transcript.topic, turn.number, turn.speaker, start, end))
    return pd.DataFrame(rows, columns=["run", "topic", "turn", "speaker", "start", "end"])


def parse_fairweb(
    text: str, run: str, *, marks: Literal["line", "word"] = "line", name: str = "conversation run"
) -> list[Transcript]:
    """Parse a FairWeb conversation run.

    ``text``: Conversations between ``<topic>`` and ``</topic>``. ``run``: the run's name. ``marks``: where ``U:``
    and ``S:`` open a turn: at the beginning of a line (or behind the topic), or at the beginning of any word at
    which it is that speaker's turn. ``name``: what error messages call the text. Returns: In their order, without
    annotations. ``U:`` and ``S:`` stay in the text, for they were counted with their word.

    gfrc2, Figures 2 and 3 and footnote 11.
    """
    if marks not in ("line", "word"):
        raise ValueError(f"marks must be line or word, found {marks!r}")
    problems: list[Problem] = []
    transcripts: list[Transcript] = []
    topic, opened = "", 0
    turns: list[tuple[str, list[Line]]] = []

    def wrong(line: int, found: str, wanted: str) -> None:
        problems.append(Problem(name, line, None, found, wanted))

    def add(number: int, piece: str) -> None:
        speaker = piece[:2] if piece[:2] in ("U:", "S:") else ""
        expected = "S:" if len(turns) % 2 else "U:"
        if speaker and speaker == expected:
            turns.append((speaker, [Line(piece)]))
        elif speaker and marks == "line":
            wrong(number, f"a turn that opens with {speaker}", expected)
        elif not turns:
            wrong(number, f"text before the first turn ({piece[:40]!r})", "U:")
        else:
            turns[-1][1].append(Line(piece))

    def finish() -> None:
        made = [Turn("system" if i % 2 else "user", i // 2 + 1, tuple(lines)) for i, (_, lines) in enumerate(turns)]
        if len(made) < 2:
            wrong(opened, f"{len(made)} turns in topic {topic}", "at least U: and S:")
        if any(t.topic == topic for t in transcripts):
            wrong(opened, f"topic {topic} again", "each topic once")
        transcripts.append(Transcript(run, topic, tuple(made)))
        turns.clear()

    for number, line in enumerate(text.split("\n"), start=1):
        rest = line.strip()
        if not topic:
            match = _OPENING.match(rest)
            if match:
                topic, opened, rest = match[1], number, rest[match.end() :].strip()
            elif rest:
                wrong(number, repr(rest[:40]), "<topic>")
                continue
        closing = f"</{topic}>"
        closed = bool(topic) and rest.endswith(closing)
        rest = rest.removesuffix(closing).strip() if closed else rest
        if rest:
            for piece in re.split(r"\s+(?=[US]:)", rest) if marks == "word" else [rest]:
                add(number, piece)
        if closed:
            finish()
            topic = ""
    if topic:
        wrong(opened, f"<{topic}> without its end", f"</{topic}>")
    elif not transcripts and not problems:
        wrong(1, "no conversation", "<topic>")
    if problems:
        raise InputError(problems)
    return transcripts


def read_fairweb(
    path: str | Path, run: str | None = None, *, marks: Literal["line", "word"] = "line"
) -> list[Transcript]:
    """Read a FairWeb conversation run from a file.

    ``path``: the file. ``run``: the run's name; the default is the file's name without its ending. Returns: In
    their order, without annotations.
    """
    return parse_fairweb(read_text(path), run if run is not None else Path(path).stem, marks=marks, name=str(path))
