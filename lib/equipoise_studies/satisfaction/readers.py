"""Files of dialogues with ratings of satisfaction: items ``uss``, ``asap``, ``use_relabel``.

Item uss holds one line for each turn and a blank line between dialogues. The other two hold one
sample a line, a Python list of exchanges, a Python list of acts and a class; the lists are read as
literals, so that nothing in a file runs.

References
----------
Sun, W., Zhang, S., Balog, K., Ren, Z., Ren, P., Chen, Z., de Rijke, M. (2021): Simulating User
Satisfaction for the Evaluation of Task-oriented Dialogue Systems, SIGIR 2021 (uss). Ye, F., Hu, Z.,
Yilmaz, E. (2023): Modeling User Satisfaction Dynamics in Dialogue via Hawkes Process, ACL 2023
(asap).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.files import read_text
from equipoise.problems import Problems, refused, shown

OVERALL = "OVERALL"
"""Text of the row that rates the dialogue as a whole."""

EXCHANGE_SEPARATOR = "|||"
RATING_TEXTS = ("1", "2", "3", "4", "5")
DIALOGUE_FIELDS = ("speaker", "text", "act", "ratings")
SAMPLE_FIELDS = ("exchanges", "acts", "class")


def _records(
    path: str | Path, names: tuple[str, ...], problems: Problems
) -> Iterator[tuple[int, int, list[str]]]:
    """Line number, number of the block between blank lines, and fields of each line.

    A line with more or fewer fields than names is a problem.
    """
    block = -1
    after_blank = True
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            after_blank = True
            continue
        if after_blank:
            block += 1
        after_blank = False
        # A stripped line would lose empty fields at its end.
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) == len(names):
            yield number, block, fields
        else:
            wanted = f"{len(names)}: {', '.join(names)}"
            problems.add(path, number, None, f"{len(fields)} fields", wanted)


def read_dialogues(path: str | Path) -> pd.DataFrame:
    """Read the dialogues of a file of item uss, such as ``dataset/MWOZ.txt`` (Sun et al., 2021).

    The file holds the speaker (USER or SYSTEM), the text, the act (may be empty) and the ratings
    (of user turns only), separated by tabs; every dialogue ends with a user row whose text is
    OVERALL. A user turn is rated before the user speaks, by what came so far (thesis section 3.5.4,
    before-utterance prediction).

    Returns the columns dialogue, line, speaker, text, act, ratings, overall, in file order.
    ``dialogue`` counts from "0", ``line`` from 0 within the dialogue; ``ratings`` is a tuple of
    whole numbers from 1 to 5, empty for the system.
    """
    problems = Problems()
    rows = []
    for number, block, fields in _records(path, DIALOGUE_FIELDS, problems):
        speaker, text, act, marks = fields
        rating_texts = [mark.strip() for mark in marks.split(",")] if marks else []
        problem = _problem_of_ratings(speaker, rating_texts, marks)
        if problem is not None:
            problems.add(path, number, *problem)
            continue
        ratings = tuple(map(int, rating_texts))
        rows.append((str(block), number, speaker, text, act, ratings, text == OVERALL))
    columns = ["dialogue", "line", "speaker", "text", "act", "ratings", "overall"]
    table = pd.DataFrame(rows, columns=columns)

    # A dialogue of the system alone has no rating, and would be lost silently.
    rated_dialogues = table.loc[table["speaker"] == "USER", "dialogue"]
    is_rated = table["dialogue"].isin(rated_dialogues)
    for line in table[~is_rated].drop_duplicates("dialogue")["line"]:
        problems.add(path, line, "ratings", "a dialogue without ratings", "rated user turns")
    # Files that are cut off end in the middle of a dialogue.
    ends = table[is_rated].drop_duplicates("dialogue", keep="last")
    for line in ends.loc[~ends["overall"].astype(bool), "line"]:
        problem_of_end = "a dialogue that does not end with OVERALL"
        problems.add(path, line, None, problem_of_end, "whole ones: is the file cut off?")
    problems.refuse()
    return table.assign(line=table.groupby("dialogue", sort=False).cumcount())


def _problem_of_ratings(
    speaker: str, ratings: list[str], marks: str
) -> tuple[str, str, str] | None:
    """Column, what stands there and what is wanted, where the ratings do not fit the speaker."""
    if speaker not in ("USER", "SYSTEM"):
        return "speaker", shown(speaker), "USER or SYSTEM"
    if speaker == "SYSTEM":
        if ratings:
            return "ratings", shown(marks), "no rating of a system turn"
        return None
    wanted = "whole numbers from 1 to 5, separated by commas"
    if not ratings:
        return "ratings", "no rating of a user turn", wanted
    bad = [rating for rating in ratings if rating not in RATING_TEXTS]
    if bad:
        return "ratings", ", ".join(map(shown, bad)), wanted
    return None


def read_samples(path: str | Path) -> pd.DataFrame:
    """Read the samples of a file of item asap (Ye et al., 2023) or use_relabel.

    The file holds a Python list of exchanges ("user|||system", or "user|||system|||system" where
    the system speaks more than once), a Python list of act numbers and a class, separated by tabs.

    Returns the columns users, systems, level, overall, in file order. ``users`` and ``systems`` are
    tuples of utterances; the last of the system's is empty where the sample ends before it.
    ``level`` is 0 (dissatisfied), 1 (neutral) or 2 (satisfied). ``overall`` is True where the last
    user utterance is OVERALL: the class is that of the dialogue.
    """
    problems = Problems()
    rows: list[tuple[Any, ...]] = []
    for number, _, fields in _records(path, SAMPLE_FIELDS, problems):
        with problems.collecting():
            exchanges = _literal(fields[0], str, path, number, "exchanges")
            acts = _literal(fields[1], int, path, number, "acts")
            level = fields[2]
            problem = _problem_of_sample(exchanges, acts, level)
            if problem is not None:
                problems.add(path, number, *problem)
                continue
            users, systems = _utterances(exchanges)
            rows.append((users, systems, int(level), users[-1] == OVERALL))
    problems.refuse()
    return pd.DataFrame(rows, columns=["users", "systems", "level", "overall"])


def _problem_of_sample(
    exchanges: list[str], acts: list[int], level: str
) -> tuple[str, str, str] | None:
    """Column, what stands there and what is wanted, where the fields of a sample do not fit."""
    if level not in ("0", "1", "2"):
        return "class", shown(level), "0, 1 or 2"
    if len(exchanges) != len(acts):
        return "acts", f"{len(acts)} acts of {len(exchanges)} exchanges", "one act each"
    bad = [exchange for exchange in exchanges if EXCHANGE_SEPARATOR not in exchange]
    if bad:
        return "exchanges", shown(bad[0]), "the user's, |||, the system's"
    return None


def _utterances(exchanges: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Utterances of the user and of the system; a system that speaks twice is one utterance."""
    users = []
    systems = []
    for exchange in exchanges:
        user, _, reply = exchange.partition(EXCHANGE_SEPARATOR)
        users.append(user.strip())
        systems.append(" ".join(reply.replace(EXCHANGE_SEPARATOR, " ").split()))
    return tuple(users), tuple(systems)


def _literal(text: str, kind: type, path: str | Path, line: int, column: str) -> list[Any]:
    """A list as Python writes it; read as a literal, so that nothing in it runs."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    # True is an instance of int, and no act: types are compared, not instances.
    if not isinstance(value, list) or not value or any(type(item) is not kind for item in value):
        items = "strings" if kind is str else "whole numbers"
        wanted = f"a list of {items}, as Python writes it"
        raise refused(path, shown(text), wanted, line, column)
    return value
