"""Read what `equipoise_cli.harvest` recorded: its turns as a tidy table, and as transcripts to annotate."""

from __future__ import annotations

from collections.abc import Container, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.coverage import Seen, judge
from equipoise.loaders.transcripts import Transcript, lines_of, run_of, transcript
from equipoise.problems import Problems, refused, shown
from equipoise_studies.records import parse_lines

_NAMES = ("trial", "topic", "turn", "user", "system", "outcome", "breakdown", "finish")
_FIELDS: Mapping[str, type] = dict.fromkeys(_NAMES, str) | {
    "trial": int,
    "turn": int,
    "breakdown": bool,
}
_ALLOWED: Mapping[str, Container[Any]] = {"trial": range(1, 10**9), "outcome": ("o", "x")}
_UNSTATED: Mapping[str, Any] = {"rounds": 2, "session": "topic"}
"""How conversations were held of which a record does not say it: as once all were."""
_NOT_HELD = {"user": "", "system": "", "outcome": "-", "finish": ""}


def parse_record(path: str | Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Settings and turns of a record; a last line without its end, which an interruption left, is no part of it."""
    problems = Problems()
    settings, lines = parse_lines(path, "turn", problems)
    topics = settings.get("topics") if settings else []
    if not isinstance(topics, list) or not all(
        isinstance(t, dict) and isinstance(t.get("topic"), str) for t in topics
    ):
        problems.add(
            path, 1, "topics", shown(topics), "a list of topics: a record of equipoise harvest"
        )
        topics = []
    settings = {**_UNSTATED, **settings} if settings else settings
    rounds = settings.get("rounds", 0)
    if settings and (type(rounds) is not int or not 1 <= rounds <= 10**6):
        problems.add(path, 1, "rounds", shown(rounds), "how many rounds a conversation has at most")
        rounds = 0
    allowed = {**_ALLOWED, "turn": range(1, rounds + 1)}
    names, turns = (
        {topic["topic"] for topic in topics},
        dict[tuple[int, str, int], dict[str, Any]](),
    )
    for number, line in lines:
        wrong = [name for name, kind in _FIELDS.items() if type(line.get(name)) is not kind]
        wrong = wrong or [name for name, values in allowed.items() if line[name] not in values]
        if wrong:
            found = f"no good value for {', '.join(wrong)}"
            problems.add(path, number, None, found, f"the fields {', '.join(_FIELDS)}")
            continue
        trial, topic, turn = line["trial"], line["topic"], line["turn"]
        if (trial, topic, turn) in turns:
            problems.add(
                path,
                number,
                None,
                f"turn {turn} of topic {topic}, trial {trial}, again",
                "each turn once",
            )
        if topic not in names:
            problems.add(path, number, "topic", repr(topic), "a topic of the settings")
        turns[trial, topic, turn] = line
    problems.refuse()
    return settings, list(turns.values())


def read_harvest(path: str | Path, run: str | None = None) -> pd.DataFrame:
    """Turns of a record: run, type, topic, turn, user, system, outcome, finish, in the order of trials and topics.

    ``run`` is the system's name, by default that of the file without its ending; trial 2 of
    ``qwen`` is the run ``qwen-2``. A turn that ended its conversation is followed by others with
    outcome ``-`` and empty texts. Conversations that are not complete are left out, and counted.
    """
    settings, turns = parse_record(path)
    held = {(turn["trial"], turn["topic"], turn["turn"]): turn for turn in turns}
    rows, lacking = list[list[Any]](), list[str]()
    trials = sorted({turn["trial"] for turn in turns})
    for trial in trials:
        for topic in settings["topics"]:
            said = [
                held.get((trial, topic["topic"], number + 1))
                for number in range(settings["rounds"])
            ]
            asked = [turn for turn in takewhile(bool, said) if turn]
            if not asked or (len(asked) < len(said) and not asked[-1]["breakdown"]):
                lacking.append(f"{topic['topic']} in trial {trial}")
                continue
            about = [
                f"{run_of(path) if run is None else run}-{trial}",
                topic.get("kind", ""),
                topic["topic"],
            ]
            for number, turn in enumerate(said, start=1):
                rows.append([*about, number, *((turn or _NOT_HELD)[field] for field in _NOT_HELD)])
    if not rows:
        raise refused(path, "no complete conversation", "harvest again to complete it")
    held_all = len(trials) * len(settings["topics"])
    complete = held_all - len(lacking), held_all
    judge(
        [
            Seen(
                str(path),
                "conversations of the trials",
                "every turn",
                *complete,
                tuple(lacking[:3]),
            )
        ]
    )
    table = pd.DataFrame(rows, columns=["run", "type", "topic", "turn", *_NOT_HELD])
    return table.astype({column: "str" for column in table.columns if column != "turn"})


def harvest_transcripts(turns: pd.DataFrame) -> list[Transcript]:
    """Harvested turns as transcripts without annotations; `equipoise.loaders.transcripts` writes them."""
    made = []
    for (run, topic), rows in turns[turns["outcome"] != "-"].groupby(["run", "topic"], sort=False):
        said = zip(*(rows[name] for name in ("user", "system", "outcome")), strict=True)
        both = (
            turn
            for user, system, mark in said
            for turn in (("", lines_of(user)), (mark, lines_of(system)))
        )
        made.append(transcript(str(run), str(topic), both))
    return made
