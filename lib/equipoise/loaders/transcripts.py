r"""Annotated transcripts of conversations, read as one tidy table of lines.

An *annotated transcript* is text as in gfrc's Figure 5::

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

``##### topic`` opens a conversation (a run may follow the topic); ``### U1`` and ``### S1`` open
the user's and the system's turns, with ``o`` or ``x`` after a system turn that was judged useful or
not. Lines that begin with ``#`` or ``wc=`` annotate the line of text before them. They give the
relevance level, memberships in the groups of an attribute set, ``#ENTITY: name`` (equal names are
duplicates) and ``#WORDS: n`` (the nugget is the last n words of its line, by default one). ``wc=``
states the position of the nugget's last word, which is checked. A line of text that begins with
``#`` or ``wc=`` needs a backslash before it; ``[A 452-word response ...]`` on a line of its own
counts for so many omitted words. Words are separated by white space and counted over the whole
conversation, user turns included; the first is word 1.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd

from equipoise.attributes import CORE_COLUMNS, AttributeSet
from equipoise.errors import Note, excerpt
from equipoise.readers import number, read_text, stem

_NOTE = re.compile(
    r"""(\#L) ([0-9]{1,3}) \b .*
    | (wc=) \s* (\S*) \s* (?: \# .*)?
    | \#(ENTITY|WORDS): \s* (.*)
    | \#([^\s:#]+): \s* \( ([^()]*) \) .*""",
    re.VERBOSE,
)
_OMITTED = re.compile(r"\[An? ([0-9]{1,6})-word response[^\]]*\]")
_ESCAPED = re.compile(r"\\+(?:#|wc=)")
_TO_ESCAPE = re.compile(r"\\*(?:#|wc=)")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
# Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which put no blanks between words.
_WITHOUT_BLANKS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_LONGEST_WORDS = 6  # such letters in a word, on average
_TURN = ["run", "topic", "turn"]


def read_transcripts(path: str | Path, attributes: Mapping[str, AttributeSet]) -> pd.DataFrame:
    """Read annotated transcripts from a file, as `parse_transcripts` does."""
    return parse_transcripts(read_text(path), path, attributes)


def parse_transcripts(
    text: str, path: str | Path, attributes: Mapping[str, AttributeSet]
) -> pd.DataFrame:
    """Read annotated transcripts; conversations that name no run get the name of the file.

    Returns
    -------
    DataFrame
        One row per line of text: ``run, topic, turn, speaker`` (user or system), ``mark`` (o, x or
        empty), ``text, words, end`` (position of its last word), and for annotated lines ``level``
        (else empty), ``nugget_words, entity`` and the memberships in each attribute set, as text.

    Raises
    ------
    ValueError
        With file and line, for text before the first turn, turns out of order, unknown annotations,
        a stated word position that is wrong, or missing memberships of a relevant nugget.
    """
    reader = _Reader(path, attributes)
    for reader.number, line in enumerate(map(str.strip, text.split("\n")), start=1):
        if line.startswith("#####"):
            reader.open_conversation(line)
        elif line.startswith("###"):
            reader.open_turn(line)
        elif line.startswith(("#", "wc=")):
            reader.add_note(line)
        elif line:
            reader.add_text(line)
    if not reader.rows:
        raise ValueError(
            f"{path}: has no conversation, which begins with '##### topic' and '### U1'"
        )
    note_long_words(str(path), [row["text"] for row in reader.rows])
    rows = []
    for row in reader.rows:
        line_number, notes = row.pop("number"), row.pop("notes")
        rows.append(row | _annotation(f"{path}, line ", line_number, row, notes, attributes))
    return pd.DataFrame(rows)


def note_long_words(path: str, texts: Sequence[str]) -> None:
    """Note texts in a script that puts no blanks between words, which are then counted as one."""
    words = [word for text in texts if not text.isascii() for word in text.split()]
    n_letters = [len(_WITHOUT_BLANKS.findall(word)) for word in words]
    n_words = sum(map(bool, n_letters))
    if n_words and sum(n_letters) > _LONGEST_WORDS * n_words:
        example = next(word for word, count in zip(words, n_letters, strict=True) if count)
        note = f"{path}: blanks separate words, and {excerpt(example)} is one; positions and"
        warnings.warn(f"{note} patience count words, so split the text into words first", Note, 4)


class _Reader:
    """Collects the lines of transcripts with their notes."""

    def __init__(self, path: str | Path, attributes: Mapping[str, AttributeSet]) -> None:
        self.path, self.attributes = path, attributes
        self.number = 0  # of the current line
        self.rows: list[dict[str, Any]] = []
        self.conversations: set[tuple[str, str]] = set()
        self.key: dict[str, Any] = {}
        self.turns = self.end = 0

    def fail(self, problem: str) -> NoReturn:
        raise ValueError(f"{self.path}, line {self.number}: {problem}")

    def open_conversation(self, line: str) -> None:
        _, *words = line.split()
        if not 1 <= len(words) <= 2:
            self.fail(f"must be '##### topic' or '##### topic run', got {line!r}")
        topic, run = words[0], words[1] if len(words) == 2 else run_name(self.path)
        if (run, topic) in self.conversations:
            self.fail(f"topic {topic} of run {run} occurs twice")
        self.conversations.add((run, topic))
        self.key = {"run": run, "topic": topic}
        self.turns = self.end = 0

    def open_turn(self, line: str) -> None:
        is_system = self.turns % 2 == 1
        header = f"### {'S' if is_system else 'U'}{self.turns // 2 + 1}"
        allowed = [header, f"{header} o", f"{header} x"] if is_system else [header]
        if not self.key:
            self.fail(f"must be '##### topic' before the first turn, got {line!r}")
        if " ".join(line.split()) not in allowed:
            self.fail(f"must be {header!r}, the next turn, got {line!r}")
        mark = line.split()[-1] if line.split()[-1] in ("o", "x") else ""
        speaker = "system" if is_system else "user"
        self.key |= {"turn": self.turns // 2 + 1, "speaker": speaker, "mark": mark}
        self.turns += 1
        self._add("", 0)  # a turn without text has a row, too

    def add_text(self, line: str) -> None:
        if not self.turns:
            self.fail("text before the first turn; begin with '##### topic' and '### U1'")
        text = line[1:] if _ESCAPED.match(line) else line
        omitted = _OMITTED.fullmatch(text)
        if not self.rows[-1]["text"]:
            self.rows.pop()
        self._add(text, int(omitted[1]) if omitted else len(text.split()))

    def _add(self, text: str, words: int) -> None:
        self.end += words
        row = {"text": text, "words": words, "end": self.end, "number": self.number, "notes": {}}
        self.rows.append(self.key | row)

    def add_note(self, line: str) -> None:
        if self.key.get("speaker") != "system" or not self.rows[-1]["text"]:
            self.fail(f"an annotation must follow a line of a system turn, got {line!r}")
        match = _NOTE.fullmatch(line)
        if match is None:
            sets = "".join(f", #{name}: (...)" for name in self.attributes)
            self.fail(f"must be #L2, wc= 35, #ENTITY: name, #WORDS: 3{sets}, got {line[:60]!r}")
        name, value = (group for group in match.groups() if group is not None)
        notes = self.rows[-1]["notes"]
        if name in notes:
            self.fail(f"{name} occurs twice for one line")
        notes[name] = self.number, value


def _annotation(
    place: str,
    number: int,
    row: Mapping[str, Any],
    notes: Mapping[str, tuple[int, str]],
    attributes: Mapping[str, AttributeSet],
) -> dict[str, Any]:
    """Check the annotations of a line and return its fields."""
    fields: dict[str, Any] = {"level": "", "nugget_words": 1, "entity": ""}
    fields |= dict.fromkeys(attributes, "")
    if not notes:
        return fields
    if "#L" not in notes:
        raise ValueError(f"{place}{number}: an annotated line must have a level, such as #L2")
    fields["level"] = str(int(notes["#L"][1]))
    for name, (note_number, value) in notes.items():
        where = f"{place}{note_number}"
        if name == "wc=" and value != str(row["end"]):
            raise ValueError(f"{where}: wc= must be {row['end']}, the word count, got {value}")
        if name == "WORDS":
            if not re.fullmatch("[1-9][0-9]{0,4}", value) or int(value) > max(row["words"], 1):
                raise ValueError(f"{where}: WORDS must be from 1 to {row['words']}, got {value!r}")
            fields["nugget_words"] = int(value)
        elif name == "ENTITY":
            fields["entity"] = " ".join(value.split())
        elif name in attributes:
            fields[name] = _memberships(where, attributes[name], value)
        elif name not in ("#L", "wc="):
            known = ", ".join(attributes) or "none"
            raise ValueError(f"{where}: unknown attribute set {name!r}, must be one of {known}")
    missing = [name for name in attributes if not fields[name]]
    if fields["level"] != "0" and missing:
        problem = f"a relevant nugget must have memberships, such as #{missing[0]}: (...)"
        raise ValueError(f"{place}{number}: {problem}")
    return fields


def _memberships(where: str, attribute: AttributeSet, value: str) -> str:
    """Check memberships as written between parentheses, and separate them by spaces."""
    shares = [text.strip() for text in value.split(",")]
    try:
        attribute.memberships([number(share) for share in shares])
    except ValueError:
        n_groups = len(attribute.groups)
        problem = f"{attribute.name} must be {n_groups} shares that sum to 1, got ({value})"
        raise ValueError(f"{where}: {problem}") from None
    return " ".join(shares)


def run_name(path: str | Path) -> str:
    """Return the name of a file without its ending, as one word that can name a run."""
    return re.sub(r"\s|[^\x20-\uffff]", "_", stem(path))


# --- tables ---------------------------------------------------------------------------------------


def nugget_frame(lines: pd.DataFrame, attributes: Iterable[str]) -> pd.DataFrame:
    """Return annotated lines as the frame of a nugget table, all fields text.

    System turns without an annotated line have a row of level 0 without positions. A column
    ``entity`` exists if any entity is named.
    """
    names = list(attributes)
    system = lines[lines["speaker"] == "system"]
    is_nugget = system["level"] != ""
    nuggets = system[is_nugget].copy()
    nuggets["start"] = (nuggets["end"] - nuggets["nugget_words"] + 1).astype(str)
    nuggets["end"] = nuggets["end"].astype(str)

    turns = system.drop_duplicates(_TURN)
    has_nugget = turns.set_index(_TURN).index.isin(nuggets.set_index(_TURN).index)
    empty = turns[~has_nugget].assign(start="", end="", level="0", entity="")
    empty[names] = ""
    columns = [*CORE_COLUMNS, "entity", *names]
    frame = pd.concat([nuggets, empty])[columns].sort_index(kind="stable").astype("str")
    if not frame["entity"].ne("").any():
        frame = frame.drop(columns="entity")
    return frame.reset_index(drop=True)


def turn_frame(lines: pd.DataFrame) -> pd.DataFrame:
    """Return turn boundaries: run, topic, turn, speaker, first and last word (start, end).

    An empty turn ends before it starts.
    """
    turns = lines.groupby([*_TURN, "speaker"], sort=False).agg(
        words=("words", "sum"), end=("end", "last")
    )
    turns = turns.reset_index()
    turns.insert(4, "start", turns["end"] - turns.pop("words") + 1)
    return turns


# --- writing --------------------------------------------------------------------------------------


def format_transcript(run: str, topic: str, turns: Iterable[tuple[str, str, str]]) -> str:
    """Return a conversation as a transcript to annotate.

    ``turns`` are pairs of a user's and a system's text with the mark of the latter: o, x or empty.
    """
    for name, value in (("run", run), ("topic", topic)):
        if len(value.split()) != 1 or not value.isprintable():
            raise ValueError(f"{name} must be one printable word, got {value!r}")
    lines = [f"##### {topic} {run}"]
    for turn, (user, system, mark) in enumerate(turns, start=1):
        for header, text in ((f"### U{turn}", user), (f"### S{turn} {mark}".rstrip(), system)):
            lines.append(header)
            for line in _CONTROL.sub("\ufffd", text).split("\n"):
                if line.strip():
                    escape = "\\" if _TO_ESCAPE.match(line.strip()) else ""
                    lines.append(escape + line.strip())
    return "".join(f"{line}\n" for line in lines)


def add_transcripts(path: Path, transcripts: Mapping[tuple[str, str], str]) -> int:
    """Append the conversations that a file does not have, and return how many were appended.

    ``transcripts`` are texts of `format_transcript` by run and topic. Conversations in the file
    stay as they are, annotated or not.
    """
    known = set()
    text = read_text(path) if path.exists() else ""
    for line in text.split("\n"):
        sign, *words = line.split() or [""]
        if sign == "#####" and words:
            known.add((words[1] if len(words) > 1 else run_name(path), words[0]))
    if text.strip() and not known:
        raise ValueError(f"{path} must contain transcripts; name another file")
    new = [transcript for key, transcript in transcripts.items() if key not in known]
    with path.open("a", encoding="utf-8") as file:
        if text and not text.endswith("\n"):
            file.write("\n")
        file.writelines(new)
    return len(new)
