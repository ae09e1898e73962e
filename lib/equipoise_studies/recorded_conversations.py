"""Read what `equipoise_cli.harvest` recorded: turns as a tidy table, and as transcripts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.coverage import Seen, judge
from equipoise.loaders.transcripts import Transcript, lines_of, run_of, transcript
from equipoise.problems import Problems, refused, shown
from equipoise_studies.records import parse_lines

_TYPES: Mapping[str, type] = {
    "trial": int,
    "topic": str,
    "turn": int,
    "user": str,
    "system": str,
    "outcome": str,
    "breakdown": bool,
    "finish": str,
}
_DEFAULTS: Mapping[str, Any] = {"rounds": 2, "session": "topic"}
"""How conversations were held of which a record does not say it: as once all were."""
_TURN_NOT_HELD = {"user": "", "system": "", "outcome": "-", "finish": ""}


def _topics_of(settings: Mapping[str, Any], path: str | Path, problems: Problems) -> list[Any]:
    """The topics that settings name; others are a problem, and none."""
    topics: Any = settings.get("topics")
    if isinstance(topics, list):
        names = [topic.get("topic") for topic in topics if isinstance(topic, dict)]
        if len(names) == len(topics) and all(isinstance(name, str) for name in names):
            return topics
    expected = "a list of topics: a record of equipoise harvest"
    problems.add(path, 1, "topics", shown(topics), expected)
    return []


def _rounds_of(settings: Mapping[str, Any], path: str | Path, problems: Problems) -> int:
    rounds = settings["rounds"]
    if type(rounds) is int and 1 <= rounds <= 10**6:
        return rounds
    expected = "how many rounds a conversation has at most"
    problems.add(path, 1, "rounds", shown(rounds), expected)
    return 0


def _bad_fields(line: Mapping[str, Any], rounds: int) -> list[str]:
    """Names of fields of a turn that are of another type, or hold what they cannot."""
    # By type, which tells whole numbers from true and false.
    names = [name for name, kind in _TYPES.items() if type(line.get(name)) is not kind]
    if names:
        return names
    is_allowed = {
        "trial": 1 <= line["trial"] < 10**9,
        "outcome": line["outcome"] in ("o", "x"),
        "turn": 1 <= line["turn"] <= rounds,
    }
    return [name for name, allowed in is_allowed.items() if not allowed]


def parse_record(path: str | Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Settings and turns of a record; what an interruption left of a last line is no part of it."""
    problems = Problems()
    settings, lines = parse_lines(path, "turn", problems)
    if not settings:
        problems.refuse()
    settings = {**_DEFAULTS, **settings}
    topic_names = {topic["topic"] for topic in _topics_of(settings, path, problems)}
    rounds = _rounds_of(settings, path, problems)
    turns: dict[tuple[int, str, int], dict[str, Any]] = {}
    for number, line in lines:
        bad_fields = _bad_fields(line, rounds)
        if bad_fields:
            problem = f"no good value for {', '.join(bad_fields)}"
            problems.add(path, number, None, problem, f"the fields {', '.join(_TYPES)}")
            continue
        trial, topic, turn = line["trial"], line["topic"], line["turn"]
        if (trial, topic, turn) in turns:
            problem = f"turn {turn} of topic {topic}, trial {trial}, again"
            problems.add(path, number, None, problem, "each turn once")
        # The record was edited, or put together of two.
        if topic not in topic_names:
            problems.add(path, number, "topic", repr(topic), "a topic of the settings")
        turns[trial, topic, turn] = line
    problems.refuse()
    return settings, list(turns.values())


def _complete_turns(
    turns: Mapping[int, dict[str, Any]], rounds: int
) -> list[Mapping[str, Any]] | None:
    """The turns of a conversation, filled up where one ended it; None where any is missing."""
    complete: list[Mapping[str, Any]] = []
    has_ended = False
    for number in range(1, rounds + 1):
        if number in turns:
            complete.append(turns[number])
            has_ended = turns[number]["breakdown"]
        elif has_ended:
            complete.append(_TURN_NOT_HELD)
        else:
            return None
    return complete


def read_harvest(path: str | Path, run: str | None = None) -> pd.DataFrame:
    """Turns of a record, in the order of trials and topics.

    Returns columns run, type, topic, turn, user, system, outcome, finish. ``run`` is the system's
    name, by default that of the file without its ending; trial 2 of ``qwen`` is the run ``qwen-2``.
    A turn that ended its conversation is followed by others with outcome ``-`` and empty texts.
    Conversations that are not complete are left out, and counted.
    """
    settings, recorded_turns = parse_record(path)
    if run is None:
        run = run_of(path)
    turns_of: dict[tuple[int, str], dict[int, dict[str, Any]]] = {}
    for turn in recorded_turns:
        turns_of.setdefault((turn["trial"], turn["topic"]), {})[turn["turn"]] = turn
    # A trial of which nothing is recorded was not begun, and is no gap.
    trials = sorted({trial for trial, _ in turns_of})
    rows, incomplete = list[list[Any]](), list[str]()
    for trial, topic in product(trials, settings["topics"]):
        turns = _complete_turns(turns_of.get((trial, topic["topic"]), {}), settings["rounds"])
        if turns is None:
            incomplete.append(f"{topic['topic']} in trial {trial}")
            continue
        conversation = [f"{run}-{trial}", topic.get("kind", ""), topic["topic"]]
        for number, fields_of_turn in enumerate(turns, start=1):
            fields = [fields_of_turn[name] for name in _TURN_NOT_HELD]
            rows.append([*conversation, number, *fields])
    if not rows:
        raise refused(path, "no complete conversation", "harvest again to complete it")
    n_conversations = len(trials) * len(settings["topics"])
    n_complete = n_conversations - len(incomplete)
    conversations = "conversations of the trials", "every turn"
    examples = tuple(incomplete[:3])
    judge([Seen(str(path), *conversations, n_complete, n_conversations, examples)])
    table = pd.DataFrame(rows, columns=["run", "type", "topic", "turn", *_TURN_NOT_HELD])
    return table.astype({column: "str" for column in table.columns if column != "turn"})


def harvest_transcripts(turns: pd.DataFrame) -> list[Transcript]:
    """Harvested turns as transcripts without annotations."""
    transcripts = []
    turns_held = turns[turns["outcome"] != "-"]
    for (run, topic), rows in turns_held.groupby(["run", "topic"], sort=False):
        marked_turns = []
        for row in rows.itertuples():
            marked_turns.append(("", lines_of(row.user)))
            marked_turns.append((row.outcome, lines_of(row.system)))
        transcripts.append(transcript(str(run), str(topic), marked_turns))
    return transcripts
