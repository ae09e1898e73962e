"""Conversation runs of the FairWeb campaign, as transcripts without annotations.

A run has ``<R112>``, turns that open with ``U:`` and ``S:``, and ``</R112>``. ``U:`` and ``S:``
stay in the text, for they belong to the word they are written to, as the campaign counted.

References
----------
gfrc2: Sakai, T., Tao, S., Song, Y.-I.: Evaluating Group Fairness and Relevance in Conversational
Search: An Alternative Formulation, section 4, Figures 2 and 3, and footnote 11.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from equipoise.declare import checked
from equipoise.files import read_text
from equipoise.loaders.transcripts import Line, Transcript, run_of, transcript
from equipoise.options import TurnMarks
from equipoise.problems import Problems

_OPENING = re.compile(r"<([A-Za-z0-9_.-]+)>")


class _Reader:
    """Reads a run line by line; ``turns`` are those of the open topic, without marks."""

    def __init__(self, name: str, run: str, marks: TurnMarks) -> None:
        self.run, self.marks = run, marks
        self.problems = Problems()
        self.wrong = partial(self.problems.add, name)
        self.transcripts: dict[str, Transcript] = {}
        self.topic, self.topic_line = "", 0
        self.turns: list[tuple[str, list[Line]]] = []

    def read(self, text: str) -> None:
        for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
            opening = _OPENING.match(line)
            # Within a topic a line that looks like an opening is text.
            if self.topic:
                self.add_line(number, line)
            elif opening:
                self.topic, self.topic_line, self.turns = opening[1], number, []
                self.add_line(number, line[opening.end() :].strip())
            elif line:
                self.wrong(number, None, repr(line[:40]), "<topic>")
        if self.topic:
            self.wrong(self.topic_line, None, f"<{self.topic}> without its end", f"</{self.topic}>")
        elif not self.transcripts and not self.problems:
            self.wrong(1, None, "no conversation", "<topic>")

    def add_line(self, number: int, line: str) -> None:
        """Take in a line of the open topic, which it may close."""
        closing = f"</{self.topic}>"  # it may stand behind the last words of an answer
        text = line.removesuffix(closing).strip()
        pieces = [text]
        if self.marks == "word":
            pieces = re.split(r"\s+(?=[US]:)", text)
        for piece in pieces:
            self.add_piece(number, piece)
        if line.endswith(closing):
            self.close_topic()

    def add_piece(self, number: int, piece: str) -> None:
        """Begin a turn with a piece of a line, or add it to the open one."""
        # The marks stay in the text, as the campaign counted them with their words.
        mark = "S:" if len(self.turns) % 2 else "U:"
        if piece.startswith(mark):
            self.turns.append(("", [Line(piece)]))
        elif piece.startswith(("U:", "S:")) and self.marks == "line":
            self.wrong(number, None, f"a turn that opens with {piece[:2]}", mark)
        elif piece and self.turns:
            _, lines = self.turns[-1]
            lines.append(Line(piece))
        elif piece:
            self.wrong(number, None, f"text before the first turn ({piece[:40]!r})", "U:")

    def close_topic(self) -> None:
        if len(self.turns) < 2:
            problem = f"{len(self.turns)} turns in topic {self.topic}"
            self.wrong(self.topic_line, None, problem, "at least U: and S:")
        if self.topic in self.transcripts:
            self.wrong(self.topic_line, None, f"topic {self.topic} again", "each topic once")
        self.transcripts[self.topic] = transcript(self.run, self.topic, self.turns)
        self.topic = ""


@checked
def parse_fairweb(
    text: str, run: str, *, marks: TurnMarks = "line", name: str = "conversation run"
) -> list[Transcript]:
    """Transcripts from the text of a run; ``name`` is what error messages call it."""
    reader = _Reader(name, run, marks)
    reader.read(text)
    reader.problems.refuse()
    return list(reader.transcripts.values())


def read_fairweb(
    path: str | Path, run: str | None = None, *, marks: TurnMarks = "line"
) -> list[Transcript]:
    """Transcripts from a run's file, whose name without its ending is, unless given, the run's."""
    if run is None:
        run = run_of(path)
    return parse_fairweb(read_text(path), run, marks=marks, name=str(path))
