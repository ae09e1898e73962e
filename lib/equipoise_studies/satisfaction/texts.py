"""Dialogues of chapter 3 with their texts, which ``make.py`` and ``record.py`` read.

References: Sun et al. (2021), SIGIR (item uss); Ye et al. (2023), ACL (item asap); Bernard et al.
(2025), WSDM (item crsarena).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from equipoise_compendium import project, registry
from equipoise_studies.satisfaction import data
from equipoise_studies.satisfaction.data import Study

OVERALL = "OVERALL"  # text of the row that rates the dialogue as a whole


# --- files ----------------------------------------------------------------------------------------


def locate(study: Study, name: str) -> Path:
    """Return the path of a file: relative to the config, or ``item/path`` of the registry."""
    path = study.folder / name
    if path.is_file():
        return path
    item, _, upstream_path = name.partition("/")
    return registry.fetch(item, upstream_path)


def read_dialogues(path: Path) -> pd.DataFrame:
    """Read a file of item uss, in which a blank line ends each dialogue.

    Every dialogue ends with a user row whose text is OVERALL. A user turn is rated before the user
    speaks, by what came so far. Columns are dialogue (from "0"), line (from 0 within it), speaker,
    text, act and ratings, a tuple that is empty for the system.
    """
    rows: list[tuple[Any, ...]] = []
    dialogue, line, ended = -1, 0, True
    for number, text in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        where = f"{path.name}, line {number}"
        if not text.strip():
            if not ended and rows[-1][3] != OVERALL:
                raise ValueError(f"{where}: a dialogue must end with {OVERALL}")
            ended = True
            continue
        if ended:
            dialogue, line, ended = dialogue + 1, 0, False
        fields = [field.strip() for field in text.split("\t")]
        if len(fields) != 4:
            raise ValueError(f"{where}: must have 4 fields, got {len(fields)}")
        speaker, utterance, act, marks = fields
        ratings = tuple(mark.strip() for mark in marks.split(",")) if marks else ()
        if speaker not in ("USER", "SYSTEM") or (speaker == "USER") != bool(ratings):
            raise ValueError(f"{where}: must be a user turn with ratings or a system turn without")
        if not set(ratings) <= set("12345"):
            raise ValueError(f"{where}: ratings must be from 1 to 5, got {marks!r}")
        rows.append((str(dialogue), line, speaker, utterance, act, tuple(map(int, ratings))))
        line += 1
    if not ended and rows[-1][3] != OVERALL:
        raise ValueError(f"{path.name}: the last dialogue must end with {OVERALL}; is it cut off?")
    return pd.DataFrame(rows, columns=["dialogue", "line", "speaker", "text", "act", "ratings"])


def read_classes(path: Path) -> pd.DataFrame:
    """Read a file of item asap or use_relabel, with one sample per line.

    Exchanges are a Python list of ``user|||system`` (``|||system`` again where it speaks twice).
    Columns are users and systems (tuples of utterances) and level: 0 dissatisfied, 1 neutral, 2
    satisfied.
    """
    rows = []
    for number, text in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if not text.strip():
            continue
        try:
            exchanges, _, level = text.split("\t")
            # A literal, so that nothing in the file runs.
            parts = [exchange.partition("|||") for exchange in ast.literal_eval(exchanges)]
            users = tuple(user.strip() for user, _, _ in parts)
            systems = tuple(" ".join(reply.replace("|||", " ").split()) for _, _, reply in parts)
            rows.append((users, systems, ["0", "1", "2"].index(level.strip())))
        except (ValueError, SyntaxError, AttributeError, TypeError):
            raise ValueError(
                f"{path.name}, line {number}: must have a list of exchanges, acts, and 0, 1 or 2"
            ) from None
    return pd.DataFrame(rows, columns=["users", "systems", "level"])


def read_users() -> pd.DataFrame:
    """Read the dialogues of item crsarena with a response, and whether their users were satisfied.

    Columns are dialogue (the file and the position in it), recommender, user (numbered in the order
    of the files), users, systems (tuples of utterances) and dissatisfied.
    """
    rows = []
    number_by_user: dict[str, int] = {}
    for part in ("open", "closed"):
        path = registry.fetch("crsarena", f"data/crs_arena_dial_{part}.json")
        for place, record in enumerate(json.loads(path.read_text(encoding="utf-8"))):
            exchanges: list[list[str]] = []
            for turn in record["conversation"]:
                text = " ".join(turn["utterance"].split())
                if turn["participant"] == "USER":
                    exchanges.append([text, ""])
                else:
                    exchanges[-1][1] = f"{exchanges[-1][1]} {text}".strip()
            while exchanges and not exchanges[-1][1]:  # the last utterance got no response
                exchanges.pop()
            if not exchanges:
                continue
            user = number_by_user.setdefault(record["user"]["id"], len(number_by_user))
            label = ["satisfied", "frustrated"].index(record["metadata"]["sentiment"])
            texts = zip(*exchanges, strict=True)
            rows.append((f"{part}:{place}", record["agent"]["id"], user, *texts, label == 1))
    columns = ["dialogue", "recommender", "user", "users", "systems", "dissatisfied"]
    return pd.DataFrame(rows, columns=columns)


# --- parts, services and samples ------------------------------------------------------------------


def letters(text: str) -> str:
    """Keep only letters and digits, because uss and asap differ in spaces and signs."""
    return "".join(filter(str.isalnum, text.lower()))


def parts_of(dialogues: pd.DataFrame, samples_by_part: Mapping[str, pd.DataFrame]) -> pd.Series:
    """Find the part of each dialogue from the published texts; the default is "train".

    Samples of asap contain the last turns of a dialogue: it belongs to a part if its last user
    utterances are those of a sample (thesis section 3.5.1).
    """
    is_turn = (dialogues["speaker"] == "USER") & (dialogues["text"] != OVERALL)
    utterances = {}
    for name, texts in dialogues[is_turn].groupby("dialogue", sort=False)["text"]:
        utterances[str(name)] = tuple(map(letters, texts))
    part_by_dialogue = dict.fromkeys(utterances, "train")
    for part, samples in samples_by_part.items():
        for users in samples["users"]:
            if users[-1] != OVERALL:
                continue
            ending = tuple(map(letters, users[:-1]))
            matches = [name for name, own in utterances.items() if own[-len(ending) :] == ending]
            if len(matches) != 1 or part_by_dialogue[matches[0]] != "train":
                raise ValueError(f"a sample of {part} must be of one dialogue, got {len(matches)}")
            part_by_dialogue[matches[0]] = part
    return pd.Series(part_by_dialogue)


def service_of(acts: Sequence[str], texts: Sequence[str], by_word: Mapping[str, str]) -> str:
    """Return the service of the last turn that names one, by its act or its last known word.

    An act such as Hotel-Inform names its service; acts of "general" and "Booking" do not.
    """
    for act, text in zip(reversed(acts), reversed(texts), strict=True):
        domain, dash, _ = act.lower().partition("-")
        if dash and domain not in ("", "general", "booking"):
            return domain
        spaced = "".join(letter if letter.isalnum() else " " for letter in text.lower())
        for word in reversed(spaced.split()):
            if word in by_word:
                return by_word[word]
    return ""


def samples_of(dialogues: pd.DataFrame, by_word: Mapping[str, str]) -> pd.DataFrame:
    """Return the exchanges before each rated user turn, from the second on, with their texts.

    Columns are sample (``dialogue:line``), dialogue, turn, users, systems (tuples of utterances),
    act (of the last user utterance), service, rating, dissatisfied, words and response_words.
    """
    rows = []
    turns = dialogues[dialogues["text"] != OVERALL]
    for name, dialogue in turns.groupby("dialogue", sort=False):
        texts, acts = dialogue["text"].tolist(), dialogue["act"].tolist()
        lines, ratings = dialogue["line"].tolist(), dialogue["ratings"].tolist()
        user_rows = np.flatnonzero(dialogue["speaker"] == "USER").tolist()
        users = tuple(texts[row] for row in user_rows)
        # A system that speaks twice in a row is one response.
        systems = tuple(
            " ".join(filter(None, texts[start + 1 : end]))
            for start, end in pairwise([*user_rows, len(texts)])
        )
        for turn in range(2, len(user_rows) + 1):
            response = systems[turn - 2]
            if not response:  # the user spoke twice: no response is rated
                continue
            row = user_rows[turn - 1]
            act = acts[user_rows[turn - 2]]
            service = service_of(acts[:row], texts[:row], by_word)
            context = users[: turn - 1], systems[: turn - 1]
            words = sum(len(text.split()) for text in (*context[0], *context[1]))
            sample = f"{name}:{lines[row]}"
            numbers = ratings[row], words, len(response.split())
            rows.append((sample, name, turn, *context, act, service, *numbers))
    columns = ["sample", "dialogue", "turn", "users", "systems", "act", "service"]
    samples = pd.DataFrame(rows, columns=[*columns, "ratings", "words", "response_words"])
    rating = data.label_of(samples.pop("ratings").tolist())
    return samples.assign(rating=rating, dissatisfied=rating < 3)


def read_collection(
    study: Study, name: Literal["MultiWOZ", "SGD"], limit: int | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the dialogues of a collection and their samples, with parts and texts."""
    source = study.collections[name]
    dialogues = read_dialogues(locate(study, source.dialogues))
    parts = {part: read_classes(locate(study, getattr(source, part))) for part in ("valid", "test")}
    part_by_dialogue = parts_of(dialogues, parts)
    if limit is not None:
        dialogues = dialogues[dialogues["dialogue"].astype(int) < limit]
    by_word = {}
    if source.services_by_word:
        table = pd.read_csv(project.data("attributes", "sgd_services.csv"))
        by_word = dict(zip(table["word"], table["service"], strict=True))
    samples = samples_of(dialogues, by_word)
    samples = samples.assign(collection=name, part=samples["dialogue"].map(part_by_dialogue))
    return dialogues, samples


# --- texts that people and models read ------------------------------------------------------------


def annotated_items(samples: pd.DataFrame, written: pd.DataFrame) -> pd.DataFrame:
    """Return the original and the written response of each context, as items for annotators.

    ``samples`` have texts; ``written`` has the columns collection, sample and response. Besides the
    columns of the table there are context and response.
    """
    rows = []
    for row in samples.merge(written, on=["collection", "sample"]).itertuples():
        context = dialogue_text(row.users, (*row.systems[:-1], ""))
        for is_written, response in ((False, row.systems[-1]), (True, row.response)):
            item = data.item_name(row.collection, row.sample, is_written, response)
            label = row.dissatisfied != is_written
            rows.append((row.collection, item, row.sample, is_written, label, context, response))
    columns = ["collection", "item", "sample", "written", "dissatisfied", "context", "response"]
    return pd.DataFrame(rows, columns=columns).sort_values(["collection", "item"])


def dialogue_text(users: Sequence[str], systems: Sequence[str]) -> str:
    """Write exchanges as in thesis Figures 3.3, 3.6 and 3.7, without empty utterances."""
    lines = []
    for user, system in zip(users, systems, strict=True):
        lines += [f"USER: {user}" if user else "", f"SYSTEM: {system}" if system else ""]
    return "\n".join(filter(None, lines))
