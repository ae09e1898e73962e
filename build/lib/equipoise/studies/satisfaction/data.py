"""Dialogues with ratings of user satisfaction: items ``uss``, ``asap`` and ``use_relabel``.

Item uss holds one line for each turn and a blank line between dialogues. The other two hold one sample a line, a Python
list of exchanges, a Python list of acts and a class; the lists are read as literals, so that nothing in a file runs.

References
----------
Sun, W., Zhang, S., Balog, K., Ren, Z., Ren, P., Chen, Z., de Rijke, M. (2021): Simulating User Satisfaction for the
Evaluation of Task-oriented Dialogue Systems, SIGIR 2021 (uss).
Ye, F., Hu, Z., Yilmaz, E. (2023): Modeling User Satisfaction Dynamics in Dialogue via Hawkes Process, ACL 2023 (asap).
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.files import read_text
from equipoise.loaders import registry
from equipoise.problems import InputError, Problem

OVERALL = "OVERALL"
"""Text of the row that rates the dialogue as a whole."""

RATINGS = (1, 2, 3, 4, 5)
"""Ratings, from very dissatisfied to very satisfied."""

CLASSES = (0, 1, 2)
"""Classes of asap and use_relabel: dissatisfied, neutral, satisfied."""

_RELABELLED = {
    "MultiWOZ": (
        ["human_mwoz/train_mwoz.txt", "human_mwoz/valid_mwoz.txt", "human_mwoz/test_human_mwoz.txt"],
        [f"gemini_mwoz/{part}_gemini_mwoz.txt" for part in ("train", "valid", "test")],
    ),
    "SGD": (
        [f"human_sgd/{part}_human_sgd.txt" for part in ("train", "valid", "test")],
        [f"gpt4_sgd/{part}_gpt_sgd.txt" for part in ("train", "valid", "test")],
    ),
}
_SEPARATOR = "|||"
_LONGEST = 80


def _short(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def _ratings(text: str, place: tuple[str, int], problems: list[Problem]) -> tuple[int, ...]:
    marks = text.split(",") if text.strip() else []
    known = {str(rating) for rating in RATINGS}
    wrong = [mark for mark in marks if mark.strip() not in known]
    if wrong or not marks:
        found = f"{', '.join(map(_short, wrong))}" if wrong else "no rating of a user turn"
        problems.append(Problem(*place, "ratings", found, "whole numbers from 1 to 5, separated by commas"))
        return ()
    return tuple(int(mark) for mark in marks)


def read_dialogues(path: str | Path) -> pd.DataFrame:
    """Read the dialogues of a file of item uss.

    ``path``: Such as ``dataset/MWOZ.txt``: the speaker (USER or SYSTEM), the text, the act (may be empty) and the
    ratings (of user turns only), separated by tabs; a blank line between dialogues, of which each ends with a user
    row whose text is OVERALL. Returns DataFrame, columns dialogue, line, speaker, text, act, ratings, overall: In
    file order. ``dialogue`` counts from "0", ``line`` from 0 within the dialogue; ``ratings`` is a tuple of whole
    numbers from 1 to 5, empty for the system's turns.

    Sun et al. (2021). A rating of a user turn is given before the user speaks, of what came so far (thesis section
    3.5.4, before-utterance prediction).
    """
    name = str(path)
    problems: list[Problem] = []
    rows: list[tuple[str, int, str, str, str, tuple[int, ...], bool]] = []
    starts: list[int] = []
    inside = False
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            inside = False
            continue
        if not inside:
            starts.append(number)
            inside, position = True, 0
        fields = line.split("\t")
        if len(fields) != 4:
            problems.append(Problem(name, number, None, f"{len(fields)} fields", "4: speaker, text, act, ratings"))
            continue
        speaker, text, act, marks = (field.strip() for field in fields)
        if speaker not in ("USER", "SYSTEM"):
            problems.append(Problem(name, number, "speaker", _short(speaker), "USER or SYSTEM"))
            continue
        rated: tuple[int, ...] = ()
        if speaker == "USER":
            rated = _ratings(marks, (name, number), problems)
        elif marks:
            problems.append(Problem(name, number, "ratings", _short(marks), "no rating of a system turn"))
        rows.append((str(len(starts) - 1), position, speaker, text, act, rated, text == OVERALL))
        position += 1
    columns = ["dialogue", "line", "speaker", "text", "act", "ratings", "overall"]
    table = pd.DataFrame(rows, columns=columns)
    if not rows and not problems:
        problems.append(Problem(name, None, None, "no dialogue", "dialogues with ratings"))
    if rows:
        grouped = table.groupby("dialogue", sort=False)
        summary = grouped.agg(closed=("overall", "last"), users=("speaker", lambda part: (part == "USER").any()))
        for dialogue, closed, users in summary.itertuples():
            start = starts[int(dialogue)]
            if not users:
                problems.append(Problem(name, start, "ratings", "a dialogue without ratings", "rated user turns"))
            elif not closed:
                found = "a dialogue that does not end with OVERALL"
                problems.append(Problem(name, start, None, found, "whole dialogues: is the file cut off?"))
    if problems:
        raise InputError(problems)
    return table.astype({"dialogue": "str", "speaker": "str", "text": "str", "act": "str"})


def read_samples(path: str | Path) -> pd.DataFrame:
    """Read the samples of a file of item asap or use_relabel.

    ``path``: A Python list of exchanges ("user|||system", or "user|||system|||system" where the system speaks more
    than once), a Python list of act numbers and a class, separated by tabs. Returns DataFrame, columns sample,
    users, systems, acts, level, overall: In file order; ``users`` and ``systems`` are tuples of utterances,
    ``acts`` of numbers, all of one length; the last system utterance is empty where the sample ends before it.
    ``level`` is 0 (dissatisfied), 1 (neutral) or 2 (satisfied). ``overall`` is True where the last user utterance
    is OVERALL: the class is that of the dialogue.

    Ye et al. (2023) for asap. A class of a turn is that of `read_dialogues`' ratings in three steps.
    """
    name = str(path)
    problems: list[Problem] = []
    rows: list[tuple[Any, ...]] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        fields = line.rstrip("\r").split("\t")
        if len(fields) != 3:
            problems.append(Problem(name, number, None, f"{len(fields)} fields", "3: exchanges, acts, class"))
            continue
        exchanges = _literal(fields[0], str, (name, number, "exchanges"), problems)
        acts = _literal(fields[1], int, (name, number, "acts"), problems)
        level = fields[2].strip()
        if level not in map(str, CLASSES):
            problems.append(Problem(name, number, "class", _short(level), "0, 1 or 2"))
            continue
        if exchanges is None or acts is None:
            continue
        if len(exchanges) != len(acts):
            found = f"{len(acts)} acts of {len(exchanges)} exchanges"
            problems.append(Problem(name, number, "acts", found, "one act for each exchange"))
            continue
        bad = [exchange for exchange in exchanges if _SEPARATOR not in exchange]
        if bad:
            problems.append(Problem(name, number, "exchanges", _short(bad[0]), "the user's, |||, the system's"))
            continue
        pairs = [exchange.partition(_SEPARATOR) for exchange in exchanges]
        users = tuple(user.strip() for user, _, _ in pairs)
        systems = tuple(" ".join(reply.replace(_SEPARATOR, " ").split()) for _, _, reply in pairs)
        rows.append((str(len(rows)), users, systems, tuple(acts), int(level), users[-1] == OVERALL))
    if not rows and not problems:
        problems.append(Problem(name, None, None, "no sample", "dialogues with a class"))
    if problems:
        raise InputError(problems)
    table = pd.DataFrame(rows, columns=["sample", "users", "systems", "acts", "level", "overall"])
    return table.astype({"sample": "str"})


def load_relabelled(collection: str) -> pd.DataFrame:
    """Dialogues of item use_relabel that were rated both by people and by a language model.

    Returns DataFrame, columns text, human, model: One row for each dialogue that stands once in the files of both,
    in the order of those by people; the classes are 0 (dissatisfied), 1 (neutral) or 2 (satisfied). The model is
    Gemini for MultiWOZ and GPT-4 for SGD.
    """
    rated = []
    for files in _RELABELLED[collection]:
        samples = pd.concat([read_samples(registry.fetch("use_relabel", file)) for file in files])
        text = samples["users"].map("\n".join) + samples["systems"].map("\n".join)
        rated.append(samples[["level"]].assign(text=text).drop_duplicates("text", keep=False))
    both = rated[0].merge(rated[1], on="text", suffixes=("_human", "_model"))
    return both.rename(columns={"level_human": "human", "level_model": "model"})[["text", "human", "model"]]


def _literal(
    text: str, kind: type[str] | type[int], place: tuple[str, int, str], problems: list[Problem]
) -> list[Any] | None:
    wanted = f"a list of {'strings' if kind is str else 'whole numbers'}, as Python writes it"
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        problems.append(Problem(*place, _short(text), wanted))
        return None
    if not isinstance(value, list) or not value or any(type(item) is not kind for item in value):
        problems.append(Problem(*place, _short(text), wanted))
        return None
    return value


def read_acts(path: str | Path) -> dict[int, str]:
    """Read the names of the acts of item asap or use_relabel.

    ``path``: Such as ``act_mwoz.txt``: number and name, separated by a tab. Returns: One name may be empty: turns
    without an annotated act.
    """
    name, acts = str(path), dict[int, str]()
    problems: list[Problem] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        key, tab, act = line.rstrip("\r").partition("\t")
        if not tab or not key.isdecimal() or int(key) in acts:
            problems.append(Problem(name, number, None, _short(line), "a number, once, a tab and the name of an act"))
            continue
        acts[int(key)] = act.strip()
    if problems or not acts:
        raise InputError(problems or [Problem(name, None, None, "no act", "numbers and names of acts")])
    return acts
