"""Samples of rated dialogues: the context before a rating, its label, its part of the data, the service it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import pandas as pd

from equipoise.arrays import Integers

Ties = Literal["lower", "higher", "first"]
"""Which of several most frequent ratings of a turn counts: the lowest, the highest, or the one given first."""


def label_of(ratings: Sequence[Sequence[int]], ties: Ties = "lower") -> Integers:
    """Rating that most annotators gave to each turn.

    ``ratings``: those of each turn, from 1 to 5. Returns: shaped (turns,); 1 and 2 are
    dissatisfaction.

    thesis, Table 3.1, which does not say how several ratings become one. Of these three "lower"
    comes nearest to it, and gives 13 of the 18 cells of Table 3.2.
    """
    for turn, row in enumerate(ratings):
        if not row or not set(row) <= {1, 2, 3, 4, 5}:
            raise ValueError(
                f"ratings from 1 to 5 are wanted, found {list(row) or 'no rating'} of turn {turn}"
            )
    tried = (
        ratings if ties == "first" else [sorted(row, reverse=ties == "higher") for row in ratings]
    )
    return np.array(
        [max(row, key=row.count) for row in tried], dtype=np.int64
    )  # the first of several


def without_dissenters(ratings: pd.Series, most: int = 4) -> pd.Series:
    """Ratings by at most so many raters of each dialogue; of more, those at odds with its labels are dropped.

    ``ratings``: tuples, one for each rated row, indexed by dialogue; a rater has the same place in
    all of one. While there are more raters than ``most``, the one who agrees least often with the
    labels of all who are left is dropped, of several the first.

    The README of item uss says that ratings at odds with the others were removed, and not how. This
    is the rule found to come nearest to thesis Table 3.1, of several hundred tried: not proved to
    be the thesis's.
    """
    kept = []
    for name, part in ratings.groupby(level=0, sort=False):
        marks = np.array(part.tolist())
        while marks.shape[1] > most:
            agreeing = (marks == label_of(marks.tolist())[:, np.newaxis]).sum(axis=0)
            marks = np.delete(marks, agreeing.argmin(), axis=1)
        kept.append(pd.Series(list(map(tuple, marks.tolist())), index=[name] * len(marks)))
    return pd.concat(kept)


def parts_of(dialogues: pd.DataFrame, parts: Mapping[str, pd.DataFrame]) -> pd.Series:
    """Part of the data that each dialogue belongs to, by the texts of the published parts; "train" if to none.

    ``dialogues``, ``parts``: as `equipoise_studies.satisfaction.readers` reads them.

    thesis section 3.5.1 takes over the parts of Ye et al. (2023), whose samples hold at most the
    last turns of a dialogue: a dialogue belongs to a sample if its last user utterances are the
    sample's.
    """
    said = dialogues[(dialogues["speaker"] == "USER") & ~dialogues["overall"]]
    spoken = {
        str(name): tuple(map(_bare, part))
        for name, part in said.groupby("dialogue", sort=False)["text"]
    }
    found = dict.fromkeys(spoken, "train")
    for part, samples in parts.items():
        for row, users in enumerate(samples.loc[samples["overall"], "users"]):
            wanted = tuple(map(_bare, users[:-1]))
            fitting = [name for name, texts in spoken.items() if texts[-len(wanted) :] == wanted]
            if len(fitting) != 1 or found[fitting[0]] != "train":
                raise ValueError(
                    f"sample {row} of {part} belongs to {len(fitting)} dialogues, wanted one of its own"
                )
            found[fitting[0]] = part
    return pd.Series(found)


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def service_of(
    acts: Sequence[str], texts: Sequence[str], words: Mapping[str, str] | None = None
) -> str:
    """Service that a dialogue is about at its end, by the last turn that tells; empty where none does.

    ``acts``, ``texts``: of the turns so far; an act such as "Hotel-Inform" names its service.
    ``words``: service of each tell-tale word, in lower case, for data whose acts name none; of
    several in a turn the last counts.

    Acts of "general" and "Booking" name no service. Words are a guess: item uss does not repeat
    SGD's services.
    """
    for act, text in zip(reversed(acts), reversed(texts), strict=True):
        domain, dash, _ = act.lower().partition("-")
        if dash and domain not in ("", "general", "booking"):
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
    least: int = 4,
    most: int | None = 16,
    words: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Samples of turn-level estimation: the exchanges before each rated user turn.

    ``least``, ``most``: first and last rated user turn of a dialogue that makes a sample, counted
    from 1; the first is at least 2, since a sample ends with a system response. ``words``: as in
    `service_of`.

    Returns: columns sample ("dialogue:line" of the rated turn), dialogue, users and systems (tuples
    of utterances), act (of the last user utterance), service, rating, dissatisfied (whether the
    rating is below 3).

    thesis sections 3.3 and 3.5.1, which do not say which turns count: the samples of turns 4 to 16
    give its Table 3.2, and the public files of Ye et al. (2023) begin at the fourth user turn and
    show at most 16. A system that speaks twice in a row is taken as one utterance.
    """
    if least < 2:
        raise ValueError(f"a sample starts at the second turn or later, found {least}")
    rows = []
    columns = ["line", "speaker", "text", "act", "ratings"]
    for name, part in dialogues[~dialogues["overall"]].groupby("dialogue", sort=False):
        lines, speakers, texts, acts, ratings = (part[column].tolist() for column in columns)
        asked = [turn for turn, speaker in enumerate(speakers) if speaker == "USER"]
        ends = zip(asked, [*asked[1:], len(texts)], strict=True)
        users = [texts[turn] for turn in asked]
        systems = [" ".join(filter(None, texts[turn + 1 : end])) for turn, end in ends]
        for place in range(least - 1, len(asked[:most])):
            if systems[place - 1]:  # else the user spoke twice: nothing of the system is rated
                turn, context = asked[place], (tuple(users[:place]), tuple(systems[:place]))
                about = acts[asked[place - 1]], service_of(acts[:turn], texts[:turn], words)
                rows.append((f"{name}:{lines[turn]}", name, *context, *about, ratings[turn]))
    return _labelled(rows)


def _labelled(rows: Sequence[tuple[object, ...]]) -> pd.DataFrame:
    table = pd.DataFrame(
        rows, columns=["sample", "dialogue", "users", "systems", "act", "service", "ratings"]
    )
    table["rating"] = label_of(table.pop("ratings").tolist())
    return table.assign(dissatisfied=table["rating"] < 3)


def dialogue_samples(dialogues: pd.DataFrame) -> pd.DataFrame:
    """Samples of dialogue-level estimation: whole dialogues, rated by their OVERALL row; columns as `turn_samples`.

    thesis section 3.5.1 leaves this level to future work.
    """
    rows = []
    for name, part in dialogues.groupby("dialogue", sort=False):
        speakers, texts = part["speaker"].tolist(), part["text"].tolist()
        asked = [
            turn for turn, speaker in enumerate(speakers) if speaker == "USER"
        ]  # the last rates the whole
        users = tuple(texts[turn] for turn in asked[:-1])
        systems = tuple(" ".join(texts[turn + 1 : end]) for turn, end in pairwise(asked))
        last = part.iloc[-1]
        rows.append((f"{name}:{last['line']}", name, users, systems, "", "", last["ratings"]))
    return _labelled(rows)


def utterances(users: Sequence[str], systems: Sequence[str]) -> list[tuple[str, str]]:
    """Who speaks, USER or SYSTEM, and what, in turn."""
    return [
        line
        for pair in zip(users, systems, strict=True)
        for line in zip(("USER", "SYSTEM"), pair, strict=True)
    ]


def dialogue_text(users: Sequence[str], systems: Sequence[str], last: int | None = None) -> str:
    """Exchanges as one text, a line for each utterance, in the form of thesis Figures 3.3, 3.6 and 3.7.

    ``users``, ``systems``: utterances in turn; empty ones are left out. ``last``: how many
    exchanges are kept, from the end; without it, all.
    """
    shown = slice(-last if last else None, None)
    return "\n".join(
        f"{who}: {text}" for who, text in utterances(users[shown], systems[shown]) if text
    )
