"""Records of harvested conversations as tidy tables and as transcripts.

A record is what `equipoise.conversations.harvest` writes: JSON Lines, first the settings, then one line per answered
turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.conversations.records import parse_lines
from equipoise.loaders.transcripts import Line, Transcript, Turn
from equipoise.problems import InputError, Problem

TURN_FIELDS: Mapping[str, type] = {
    "trial": int,
    "topic": str,
    "turn": int,
    "user": str,
    "system": str,
    "outcome": str,
    "breakdown": bool,
    "finish": str,
}


def _wrong_fields(line: Mapping[str, Any]) -> list[str]:
    """Fields of a turn that are missing or of the wrong kind."""
    wrong = [name for name, kind in TURN_FIELDS.items() if type(line.get(name)) is not kind]
    if not wrong:
        wrong += ["outcome"] if line["outcome"] not in ("o", "x") else []
        wrong += ["turn"] if line["turn"] not in (1, 2) else []
        wrong += ["trial"] if line["trial"] < 1 else []
    return wrong


def parse_record(path: str | Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Parse a record; a last line without its end, which an interruption left, is no part of it.

    ``path``: the record. Returns: settings : dict: The first line; empty where the record is. turns : list of dict:
    The others.
    """
    problems: list[Problem] = []
    settings, lines = parse_lines(path, "turn", problems)
    asked = settings.get("topics")
    if settings and not isinstance(asked, list):
        problems.append(Problem(str(path), 1, "topics", repr(asked), "a list: a record of equipoise harvest"))
    topics = {str(topic.get("topic")) for topic in asked or () if isinstance(topic, dict)}
    turns: list[dict[str, Any]] = []
    seen: set[tuple[int, str, int]] = set()
    for number, line in lines:
        if wrong := _wrong_fields(line):
            found = f"no good value for {', '.join(wrong)}"
            problems.append(Problem(str(path), number, None, found, f"the fields {', '.join(TURN_FIELDS)}"))
            continue
        key = (line["trial"], line["topic"], line["turn"])
        if key in seen:
            found = f"turn {key[2]} of topic {key[1]}, trial {key[0]}, again"
            problems.append(Problem(str(path), number, None, found, "each turn once"))
        if line["topic"] not in topics:
            problems.append(Problem(str(path), number, "topic", repr(line["topic"]), "a topic of the settings"))
        seen.add(key)
        turns.append(line)
    if problems:
        raise InputError(problems)
    return settings, turns


def read_harvest(path: str | Path, run: str | None = None) -> pd.DataFrame:
    """Read a record as a table of turns.

    ``path``: the record. ``run``: the system's name; trial 2 of ``qwen`` is the run ``qwen-2``. The default is the
    file's name without its ending. Returns DataFrame, columns run, type, topic, turn, user, system, outcome,
    finish: In the order of trials, topics and turns. A first turn that ended its conversation is followed by a
    second with outcome ``-`` and empty texts. Conversations that are not complete are left out.
    """
    settings, turns = parse_record(path)
    name = run if run is not None else Path(path).stem
    held = {(turn["trial"], turn["topic"], turn["turn"]): turn for turn in turns}
    rows: list[list[Any]] = []
    for trial in sorted({turn["trial"] for turn in turns}):
        for topic in settings["topics"]:
            first, second = (held.get((trial, topic["topic"], number)) for number in (1, 2))
            if first is None or (second is None and not first["breakdown"]):
                continue
            about = [f"{name}-{trial}", topic.get("kind", ""), topic["topic"]]
            rows.append([*about, 1, *(first[field] for field in ("user", "system", "outcome", "finish"))])
            if second is None:
                rows.append([*about, 2, "", "", "-", ""])
            else:
                rows.append([*about, 2, *(second[field] for field in ("user", "system", "outcome", "finish"))])
    if not rows:
        raise InputError([Problem(str(path), None, None, "no complete conversation", "harvest again to complete it")])
    columns = ["run", "type", "topic", "turn", "user", "system", "outcome", "finish"]
    texts = [column for column in columns if column != "turn"]
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(texts, "str"))


def harvest_transcripts(turns: pd.DataFrame) -> list[Transcript]:
    """Turn harvested turns into transcripts to annotate.

    Returns: In their order, without annotations; `equipoise.loaders.transcripts.format_transcripts` writes them.
    """
    made: list[Transcript] = []
    for (run, topic), rows in turns.groupby(["run", "topic"], sort=False):
        said: list[Turn] = []
        for row in rows[rows["outcome"] != "-"].itertuples():
            said.append(Turn("user", int(str(row.turn)), tuple(_lines(str(row.user)))))
            said.append(Turn("system", int(str(row.turn)), tuple(_lines(str(row.system))), str(row.outcome)))
        made.append(Transcript(str(run), str(topic), tuple(said)))
    return made


def _lines(text: str) -> Iterable[Line]:
    return [Line(line.strip()) for line in text.split("\n") if line.strip()]
