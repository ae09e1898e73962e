"""Samples of rated dialogues: the context before a rating, its label, its part, its service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd

from equipoise.arrays import Integers

Ties = Literal["lower", "higher", "first"]
"""Which of several most frequent ratings counts: the lowest, the highest, or the first given."""

RATINGS = {1, 2, 3, 4, 5}
SAMPLE_COLUMNS = ["sample", "dialogue", "turn", "users", "systems", "act", "service", "ratings"]


# --- labels ---------------------------------------------------------------------------------------


def label_of(ratings: Sequence[Sequence[int]], ties: Ties = "lower") -> Integers:
    """Rating that most annotators gave to each turn.

    ``ratings``: those of each turn, from 1 to 5. Returns: shaped (turns,); 1 and 2 are
    dissatisfaction.

    thesis, Table 3.1, which does not say how several ratings become one. Of these three "lower"
    comes nearest to it, and gives 13 of the 18 cells of Table 3.2.
    """
    labels = []
    for turn, turn_ratings in enumerate(ratings):
        if not turn_ratings or not set(turn_ratings) <= RATINGS:
            ratings_in_words = list(turn_ratings) or "no rating"
            raise ValueError(
                f"ratings from 1 to 5 are wanted, found {ratings_in_words} of turn {turn}"
            )
        candidates = list(turn_ratings)
        if ties != "first":
            candidates.sort(reverse=ties == "higher")
        # Of several most frequent ratings, max() takes the one that comes first.
        labels.append(max(candidates, key=candidates.count))
    return np.array(labels, dtype=np.int64)


def without_dissenters(ratings: pd.Series, most: int = 4) -> pd.Series:
    """Ratings by at most so many raters of each dialogue, without those at odds with its labels.

    ``ratings``: tuples, one for each rated row, indexed by dialogue; a rater has the same place in
    all of one. While there are more raters than ``most``, the one who agrees least often with the
    labels of the raters who remain is dropped, of several the first.

    The README of item uss says that ratings at odds with the others were removed, and not how. This
    is the rule found to come nearest to thesis Table 3.1, of several hundred tried: not proved to
    be the thesis's.
    """
    remaining_ratings = []
    for dialogue, dialogue_ratings in ratings.groupby(level=0, sort=False):
        by_rater = np.array(dialogue_ratings.tolist())  # (turns, raters)
        while by_rater.shape[1] > most:
            labels = label_of(by_rater.tolist())
            agreements = (by_rater == labels[:, np.newaxis]).sum(axis=0)
            by_rater = np.delete(by_rater, agreements.argmin(), axis=1)
        turn_ratings = list(map(tuple, by_rater.tolist()))
        remaining_ratings.append(pd.Series(turn_ratings, index=[dialogue] * len(turn_ratings)))
    return pd.concat(remaining_ratings)


# --- parts and services ---------------------------------------------------------------------------


def parts_of(dialogues: pd.DataFrame, parts: Mapping[str, pd.DataFrame]) -> pd.Series:
    """Part of the data of each dialogue, by the texts of the published parts; else "train".

    ``dialogues``, ``parts``: as `equipoise_studies.satisfaction.readers` reads them.

    thesis section 3.5.1 takes over the parts of Ye et al. (2023), whose samples hold at most the
    last turns of a dialogue: a dialogue belongs to a sample if its last user utterances are the
    sample's.
    """
    user_rows = dialogues[(dialogues["speaker"] == "USER") & ~dialogues["overall"]]
    utterances_by_dialogue = {}
    for name, texts in user_rows.groupby("dialogue", sort=False)["text"]:
        utterances_by_dialogue[str(name)] = tuple(map(_letters, texts))

    part_by_dialogue = dict.fromkeys(utterances_by_dialogue, "train")
    for part, samples in parts.items():
        for row, users in enumerate(samples.loc[samples["overall"], "users"]):
            sample_utterances = tuple(map(_letters, users[:-1]))  # without OVERALL
            matches = []
            for name, utterances in utterances_by_dialogue.items():
                if utterances[-len(sample_utterances) :] == sample_utterances:
                    matches.append(name)
            if len(matches) != 1 or part_by_dialogue[matches[0]] != "train":
                raise ValueError(
                    f"sample {row} of {part} belongs to {len(matches)} dialogues, "
                    "wanted one of its own"
                )
            part_by_dialogue[matches[0]] = part
    return pd.Series(part_by_dialogue)


def _letters(text: str) -> str:
    """Letters and digits alone: the two collections differ in spaces and signs."""
    return "".join(filter(str.isalnum, text.lower()))


def service_of(
    acts: Sequence[str], texts: Sequence[str], words: Mapping[str, str] | None = None
) -> str:
    """Service that a dialogue is about at its end, by the last turn that tells; empty if none does.

    ``acts``, ``texts``: of the turns so far; an act such as "Hotel-Inform" names its service.
    ``words``: service of each tell-tale word, in lower case, for data whose acts name none; of
    several in a turn the last counts.

    Acts of "general" and "Booking" name no service. Words are a guess: item uss does not repeat
    SGD's services.
    """
    services_by_word = words or {}
    for act, text in zip(reversed(acts), reversed(texts), strict=True):
        domain, dash, _ = act.lower().partition("-")
        if dash and domain not in ("", "general", "booking"):
            return domain
        for word in reversed(_words_of(text)):
            if word in services_by_word:
                return services_by_word[word]
    return ""


def _words_of(text: str) -> list[str]:
    letters = [letter if letter.isalnum() else " " for letter in text.lower()]
    return "".join(letters).split()


# --- samples --------------------------------------------------------------------------------------


def rated_rows(dialogues: pd.DataFrame) -> pd.DataFrame:
    """Every rated row: columns dialogue, line, turn, act, ratings; turn 0 rates the dialogue."""
    rows = dialogues[dialogues["speaker"] == "USER"]
    turns = rows.groupby("dialogue", sort=False).cumcount() + 1
    rows = rows.assign(turn=turns.where(~rows["overall"].astype(bool), 0))
    return rows[["dialogue", "line", "turn", "act", "ratings"]].reset_index(drop=True)


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

    Returns: columns sample ("dialogue:line" of the rated turn), dialogue, turn, users and systems
    (tuples of utterances), act (of the last user utterance), service, words and response_words (of
    the exchanges and of their last response), rating, dissatisfied (whether the rating is below 3).

    thesis sections 3.3 and 3.5.1, which do not say which turns count: the samples of turns 4 to 16
    give its Table 3.2, and the public files of Ye et al. (2023) begin at the fourth user turn and
    show at most 16. A system that speaks twice in a row is taken as one utterance.
    """
    if least < 2:
        raise ValueError(f"a sample starts at the second turn or later, found {least}")
    rows: list[tuple[Any, ...]] = []
    for name, turns in dialogues[~dialogues["overall"]].groupby("dialogue", sort=False):
        texts, acts = turns["text"].tolist(), turns["act"].tolist()
        lines, ratings = turns["line"].tolist(), turns["ratings"].tolist()
        user_places = np.flatnonzero(turns["speaker"] == "USER").tolist()
        users = [texts[place] for place in user_places]
        systems = []
        for start, end in pairwise([*user_places, len(texts)]):
            systems.append(" ".join(filter(None, texts[start + 1 : end])))

        for turn in range(least, len(user_places[:most]) + 1):
            # Where the user spoke twice, nothing of the system is rated.
            if not systems[turn - 2]:
                continue
            place = user_places[turn - 1]
            sample = f"{name}:{lines[place]}"
            act = acts[user_places[turn - 2]]
            service = service_of(acts[:place], texts[:place], words)
            context = tuple(users[: turn - 1]), tuple(systems[: turn - 1])
            rows.append((sample, name, turn, *context, act, service, ratings[place]))
    return _labelled(rows)


def _labelled(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Rows of `SAMPLE_COLUMNS` as a table, with label and numbers of words."""
    table = pd.DataFrame(rows, columns=SAMPLE_COLUMNS)
    words, response_words = [], []
    for users, systems in zip(table["users"], table["systems"], strict=True):
        words.append(count_words(*users, *systems))
        response_words.append(count_words(*systems[-1:]))
    rating = label_of(table.pop("ratings").tolist())
    return table.assign(
        words=words, response_words=response_words, rating=rating, dissatisfied=rating < 3
    )


def count_words(*texts: str) -> int:
    """How many words some texts have, as white space parts them."""
    return len(" ".join(texts).split())


def dialogue_samples(dialogues: pd.DataFrame) -> pd.DataFrame:
    """Samples of dialogue-level estimation: dialogues, rated by OVERALL; columns of `turn_samples`.

    thesis section 3.5.1 leaves this level to future work.
    """
    rows: list[tuple[Any, ...]] = []
    for name, turns in dialogues.groupby("dialogue", sort=False):
        texts = turns["text"].tolist()
        user_places = np.flatnonzero(turns["speaker"] == "USER").tolist()
        # The last row of the user, OVERALL, is the rating and says nothing.
        users = tuple(texts[place] for place in user_places[:-1])
        systems = tuple(" ".join(texts[start + 1 : end]) for start, end in pairwise(user_places))
        rating_row = turns.iloc[-1]
        sample = f"{name}:{rating_row['line']}"
        rows.append((sample, name, len(user_places), users, systems, "", "", rating_row["ratings"]))
    return _labelled(rows)


# --- text -----------------------------------------------------------------------------------------


def utterances(users: Sequence[str], systems: Sequence[str]) -> list[tuple[str, str]]:
    """Who speaks, USER or SYSTEM, and what, in turn."""
    lines = []
    for user, system in zip(users, systems, strict=True):
        lines += [("USER", user), ("SYSTEM", system)]
    return lines


def dialogue_text(users: Sequence[str], systems: Sequence[str], last: int | None = None) -> str:
    """Exchanges as one text, a line an utterance, in the form of thesis Figures 3.3, 3.6 and 3.7.

    ``users``, ``systems``: utterances in turn; empty ones are left out. ``last``: how many
    exchanges are kept, from the end; without it, all.
    """
    if last:
        users, systems = users[-last:], systems[-last:]
    lines = [f"{speaker}: {text}" for speaker, text in utterances(users, systems) if text]
    return "\n".join(lines)
