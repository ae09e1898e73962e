"""Samples of rated dialogues: the context before a rating, its label, its part of the data, the service it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ties = Literal["lower", "higher", "first"]

SAMPLE_COLUMNS = [
    "sample",
    "dialogue",
    "line",
    "position",
    "users",
    "systems",
    "act",
    "service",
    "rating",
    "dissatisfied",
]
"""Columns of a table of samples."""


def label_of(ratings: Sequence[Sequence[int]], ties: Ties = "lower") -> NDArray[np.int64]:
    """Rating that most annotators gave.

    ``ratings``: Ratings of each turn, from 1 to 5. ``ties``: which of several most frequent ratings counts: the
    lowest, the highest, or the one that was given first. Returns ndarray of int, shaped (turns,).

    thesis, Table 3.1, which does not say how several ratings become one; "lower" comes nearest to it. A label of 1 or
    2 is dissatisfaction.
    """
    if ties not in ("lower", "higher", "first"):
        raise ValueError(f"ties is 'lower', 'higher' or 'first', found {ties!r}")
    lengths = np.array([len(row) for row in ratings], dtype=np.int64)
    if (lengths == 0).any():
        raise ValueError(f"no rating of turn {int(np.argmin(lengths))}")
    flat = np.array([value for row in ratings for value in row], dtype=np.int64)
    if len(flat) and (flat.min() < 1 or flat.max() > 5):
        raise ValueError(f"ratings are whole numbers from 1 to 5, found {flat.min()} to {flat.max()}")
    rows = np.repeat(np.arange(len(ratings)), lengths)
    counts = np.zeros((len(ratings), 5))
    np.add.at(counts, (rows, flat - 1), 1.0)
    most = counts == counts.max(axis=1, keepdims=True)
    if ties == "lower":
        return most.argmax(axis=1) + 1
    if ties == "higher":
        return 5 - most[:, ::-1].argmax(axis=1)
    place = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = np.full((len(ratings), 5), np.inf)
    np.minimum.at(first, (rows, flat - 1), place)
    return np.where(most, first, np.inf).argmin(axis=1) + 1


def parts_of(dialogues: pd.DataFrame, parts: Mapping[str, pd.DataFrame]) -> pd.Series:
    """Part of the data that each dialogue belongs to, by the texts of published parts.

    ``parts``: Samples of each part but one, as `read_samples` of the same module returns them. Returns: "train" for
    the dialogues of no published part.

    thesis section 3.5.1 takes over the parts of Ye et al. (2023), whose samples hold at most the last turns of a
    dialogue: a dialogue belongs to a sample if its last user utterances are the sample's.
    """
    said = dialogues[(dialogues["speaker"] == "USER") & ~dialogues["overall"]]
    spoken = {str(name): tuple(map(_bare, part)) for name, part in said.groupby("dialogue", sort=False)["text"]}
    by_last: dict[str, list[str]] = {}
    for name, texts in spoken.items():
        by_last.setdefault(texts[-1], []).append(name)
    found = dict.fromkeys(spoken, "train")
    for part, samples in parts.items():
        for row, users in enumerate(samples.loc[samples["overall"], "users"]):
            wanted = tuple(map(_bare, users[:-1]))
            fitting = [name for name in by_last.get(wanted[-1], []) if spoken[name][-len(wanted) :] == wanted]
            if len(fitting) != 1 or found[fitting[0]] != "train":
                raise ValueError(
                    f"sample {row} of part {part} belongs to {len(fitting)} dialogues, wanted one of its own"
                )
            found[fitting[0]] = part
    return pd.Series(found, name="part", dtype="str").rename_axis("dialogue")


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def service_of(acts: Sequence[str], texts: Sequence[str], words: Mapping[str, str] | None = None) -> str:
    """Service that a dialogue is about at its end.

    ``acts``: Acts of the turns so far; one such as "Hotel-Inform" names its service. ``texts``: Their texts.
    ``words``: Service of each tell-tale word, in lower case, for data whose acts name none. Returns: Of the last
    turn that tells: by its act, or by the word that stands last in it. Empty where none does.

    Acts of "general" and "Booking" name no service. Words are a guess: item uss does not repeat SGD's services.
    """
    for act, text in zip(reversed(acts), reversed(texts), strict=True):
        domain = act.partition("-")[0].lower() if "-" in act else ""
        if domain and domain not in ("general", "booking"):
            return domain
        if words:
            spoken = "".join(sign if sign.isalnum() else " " for sign in text.lower()).split()
            told = [words[word] for word in reversed(spoken) if word in words]
            if told:
                return told[0]
    return ""


def turn_samples(
    dialogues: pd.DataFrame,
    *,
    window: int | None = 15,
    least: int = 4,
    ties: Ties = "lower",
    words: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Samples of turn-level estimation: the exchanges before each rated user turn.

    ``window``: Exchanges of the context that are kept, from its end; None keeps all. ``least``: First rated user
    turn of a dialogue that makes a sample, counted from 1: at least 2, since a sample ends with a system response.
    Returns DataFrame, columns `SAMPLE_COLUMNS`: One row for each sample; its id is "dialogue:line" of the rated
    turn. ``users`` and ``systems`` are tuples of the utterances of its T exchanges; ``position`` is the number of
    the rated turn in its dialogue; ``act`` is that of the last user utterance; ``dissatisfied`` says whether the
    label is below 3.

    thesis sections 3.3 and 3.5.1. Window and least are those of the public files of Ye et al. (2023): their samples
    start at the fourth user turn and hold at most 15 exchanges before it. A system that speaks twice in a row is taken
    as one utterance.
    """
    if least < 2 or (window is not None and window < 1):
        raise ValueError(f"a sample starts at the second turn or later and holds an exchange: {least}, {window}")
    rows = []
    for name, part in dialogues[~dialogues["overall"]].groupby("dialogue", sort=False):
        users: list[str] = []
        systems: list[str] = []
        acts: list[str] = []
        texts: list[str] = []
        rated: list[tuple[int, tuple[int, ...], int]] = []  # line, ratings, turns before it
        asked: list[str] = []
        for line, speaker, text, act, ratings in part[["line", "speaker", "text", "act", "ratings"]].itertuples(
            index=False
        ):
            if speaker == "USER":
                rated.append((line, ratings, len(texts)))
                users.append(text)
                asked.append(act)
                systems.append("")
            elif systems:
                systems[-1] = f"{systems[-1]} {text}".strip()
            acts.append(act)
            texts.append(text)
        for place in range(least - 1, len(users)):
            start = 0 if window is None else max(0, place - window)
            line, ratings, before = rated[place]
            if not systems[place - 1]:
                continue  # the user spoke twice: nothing of the system is rated
            rows.append(
                (
                    f"{name}:{line}",
                    str(name),
                    line,
                    place + 1,
                    tuple(users[start:place]),
                    tuple(systems[start:place]),
                    asked[place - 1],
                    service_of(acts[:before], texts[:before], words),
                    ratings,
                )
            )
    table = pd.DataFrame(rows, columns=[*SAMPLE_COLUMNS[:8], "ratings"])
    table["rating"] = label_of(table.pop("ratings").tolist(), ties)
    table["dissatisfied"] = table["rating"] < 3
    return table.astype(dict.fromkeys(["sample", "dialogue", "act", "service"], "str"))


def dialogue_text(users: Sequence[str], systems: Sequence[str], last: int | None = None) -> str:
    """Exchanges as one text, a line for each utterance.

    ``users``, ``systems``: Utterances in turn; empty ones are left out. ``last``: Exchanges to keep, from the end;
    without it, all.

    The form of the dialogues in thesis Figures 3.3, 3.6 and 3.7.
    """
    pairs = list(zip(users, systems, strict=True))[-last if last else None :]
    lines = [f"{who}: {text}" for pair in pairs for who, text in zip(("USER", "SYSTEM"), pair, strict=True) if text]
    return "\n".join(lines)
