"""Files of dialogues with ratings of user satisfaction: items ``uss``, ``asap`` and ``use_relabel``.

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

_SEPARATOR = "|||"


def _records(
    path: str | Path, names: tuple[str, ...], problems: Problems
) -> Iterator[tuple[int, int, list[str]]]:
    """Line number, number of the block between blank lines, and fields of each line that has as many as wanted."""
    block, blank = -1, True
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            blank = True
            continue
        block, blank = block + blank, False
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) == len(names):
            yield number, block, fields
        else:
            problems.add(
                path, number, None, f"{len(fields)} fields", f"{len(names)}: {', '.join(names)}"
            )


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
    for number, block, (speaker, text, act, marks) in _records(
        path, ("speaker", "text", "act", "ratings"), problems
    ):
        ratings = [mark.strip() for mark in marks.split(",")] if marks else []
        wrong = [mark for mark in ratings if mark not in ("1", "2", "3", "4", "5")]
        if speaker == "USER" and (wrong or not ratings):
            found = ", ".join(map(shown, wrong)) or "no rating of a user turn"
            problems.add(
                path, number, "ratings", found, "whole numbers from 1 to 5, separated by commas"
            )
        elif speaker == "SYSTEM" and ratings:
            problems.add(path, number, "ratings", shown(marks), "no rating of a system turn")
        elif speaker not in ("USER", "SYSTEM"):
            problems.add(path, number, "speaker", shown(speaker), "USER or SYSTEM")
        else:
            rows.append(
                (str(block), number, speaker, text, act, tuple(map(int, ratings)), text == OVERALL)
            )
    table = pd.DataFrame(
        rows, columns=["dialogue", "line", "speaker", "text", "act", "ratings", "overall"]
    )
    rated = table["dialogue"].isin(table.loc[table["speaker"] == "USER", "dialogue"])
    for line in table[~rated].drop_duplicates("dialogue")["line"]:
        problems.add(path, line, "ratings", "a dialogue without ratings", "rated user turns")
    last = table[rated].drop_duplicates("dialogue", keep="last")
    for line in last.loc[~last["overall"].astype(bool), "line"]:
        problems.add(
            path,
            line,
            None,
            "a dialogue that does not end with OVERALL",
            "whole ones: is the file cut off?",
        )
    problems.refuse()
    return table.assign(line=table.groupby("dialogue", sort=False).cumcount())


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
    for number, _, (listed, numbers, level) in _records(
        path, ("exchanges", "acts", "class"), problems
    ):
        with problems.collecting():
            exchanges = _literal(listed, str, path, number, "exchanges")
            acts = _literal(numbers, int, path, number, "acts")
            bad = [exchange for exchange in exchanges if _SEPARATOR not in exchange]
            if level not in ("0", "1", "2"):
                problems.add(path, number, "class", shown(level), "0, 1 or 2")
            elif len(exchanges) != len(acts):
                problems.add(
                    path,
                    number,
                    "acts",
                    f"{len(acts)} acts of {len(exchanges)} exchanges",
                    "one act each",
                )
            elif bad:
                problems.add(
                    path, number, "exchanges", shown(bad[0]), "the user's, |||, the system's"
                )
            else:
                pairs = [exchange.partition(_SEPARATOR) for exchange in exchanges]
                users = tuple(user.strip() for user, _, _ in pairs)
                systems = tuple(
                    " ".join(reply.replace(_SEPARATOR, " ").split()) for _, _, reply in pairs
                )
                rows.append((users, systems, int(level), users[-1] == OVERALL))
    problems.refuse()
    return pd.DataFrame(rows, columns=["users", "systems", "level", "overall"])


def _literal(text: str, kind: type, path: str | Path, line: int, column: str) -> list[Any]:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, list) or not value or any(type(item) is not kind for item in value):
        wanted = f"a list of {'strings' if kind is str else 'whole numbers'}, as Python writes it"
        raise refused(path, shown(text), wanted, line, column)
    return value
