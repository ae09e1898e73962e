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


@checked
def parse_fairweb(
    text: str, run: str, *, marks: TurnMarks = "line", name: str = "conversation run"
) -> list[Transcript]:
    """Transcripts from the text of a run; ``name`` is what error messages call it."""
    problems, made = Problems(), dict[str, Transcript]()
    wrong = partial(problems.add, name)
    turns: list[tuple[str, list[Line]]] = []  # without marks
    topic, opened = "", 0
    for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
        rest = line
        if not topic and (match := _OPENING.match(line)):
            topic, opened, turns, rest = match[1], number, [], line[match.end() :].strip()
        elif not topic:
            if line:
                wrong(number, None, repr(line[:40]), "<topic>")
            continue
        said = rest.removesuffix(f"</{topic}>").strip()
        for piece in re.split(r"\s+(?=[US]:)", said) if marks == "word" else [said]:
            expected = "S:" if len(turns) % 2 else "U:"
            if piece.startswith(expected):
                turns.append(("", [Line(piece)]))
            elif piece.startswith(("U:", "S:")) and marks == "line":
                wrong(number, None, f"a turn that opens with {piece[:2]}", expected)
            elif turns and piece:
                turns[-1][1].append(Line(piece))
            elif piece:
                wrong(number, None, f"text before the first turn ({piece[:40]!r})", "U:")
        if rest.endswith(f"</{topic}>"):
            if len(turns) < 2:
                wrong(opened, None, f"{len(turns)} turns in topic {topic}", "at least U: and S:")
            if topic in made:
                wrong(opened, None, f"topic {topic} again", "each topic once")
            made[topic] = transcript(run, topic, turns)
            topic = ""
    if topic:
        wrong(opened, None, f"<{topic}> without its end", f"</{topic}>")
    elif not made and not problems:
        wrong(1, None, "no conversation", "<topic>")
    problems.refuse()
    return list(made.values())


def read_fairweb(
    path: str | Path, run: str | None = None, *, marks: TurnMarks = "line"
) -> list[Transcript]:
    """Transcripts from a run's file, whose name without its ending is the run's unless one is given."""
    return parse_fairweb(
        read_text(path), run_of(path) if run is None else run, marks=marks, name=str(path)
    )
