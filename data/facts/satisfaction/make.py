"""Make the derived data of chapter 3 from files of rated dialogues.

    python data/facts/satisfaction/make.py [--config FILE] [--limit N] [--output FOLDER]

Upstream files come from the folder in EQUIPOISE_MIRROR, the cache, or the URLs of
data/registry.tsv. The tables are written to the folder `facts` of the config, by default the one
of this script. `--limit` reads the first N dialogues of each collection, for a trial.

References: Sun et al. (2021), SIGIR (item uss); Ye et al. (2023), ACL (item asap); Bernard et al.
(2025), WSDM (item crsarena).
"""

import argparse
import ast
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

from equipoise_compendium import facts, project, registry
from equipoise_studies.satisfaction import data
from equipoise_studies.satisfaction.data import Study

OVERALL = "OVERALL"  # text of the row that rates the dialogue as a whole
RATED_AGAIN = {
    "MultiWOZ": {
        "human": ["human_mwoz/train_mwoz", "human_mwoz/valid_mwoz", "human_mwoz/test_human_mwoz"],
        "model": [f"gemini_mwoz/{part}_gemini_mwoz" for part in ("train", "valid", "test")],
    },
    "SGD": {
        "human": [f"human_sgd/{part}_human_sgd" for part in ("train", "valid", "test")],
        "model": [f"gpt4_sgd/{part}_gpt_sgd" for part in ("train", "valid", "test")],
    },
}
"""Files of item use_relabel, by collection and by who rated."""


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
    rows = []
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
    study: Study, name: str, limit: int | None = None
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


# --- swapped responses ----------------------------------------------------------------------------


def nearest_donors(samples: pd.DataFrame, donors: pd.DataFrame) -> pd.DataFrame:
    """Find the donor of each sample that has one: columns sample, donor, similarity.

    A donor has the opposite label. It comes from another dialogue of the same service, and its last
    user utterance has the same act. Of these samples, the donor has the most similar last user
    utterance (cosine of TF-IDF weights); the first one if several are equally similar.
    """
    words = TfidfVectorizer(token_pattern=r"\w+")  # noqa: S106 - no password
    donor_weights = words.fit_transform(donors["users"].str[-1])
    sample_weights = words.transform(samples["users"].str[-1])
    groups = donors.reset_index(drop=True).groupby(["service", "act", "dissatisfied"]).indices
    donor_dialogues, donor_samples = donors["dialogue"].to_numpy(), donors["sample"].to_numpy()
    pairs = []
    for row, sample in enumerate(samples.itertuples()):
        key = sample.service, sample.act, not sample.dissatisfied
        candidates = groups.get(key, np.empty(0, dtype=np.intp))
        candidates = candidates[donor_dialogues[candidates] != sample.dialogue]
        if len(candidates):
            cosines = (donor_weights[candidates] @ sample_weights[row].T).toarray().ravel()
            # Rounded, so that the last bits of a sum do not decide between equal donors.
            cosines = np.round(cosines, 12)
            nearest = cosines.argmax()
            donor = donor_samples[candidates[nearest]]
            pairs.append((sample.sample, donor, float(cosines[nearest])))
    return pd.DataFrame(pairs, columns=["sample", "donor", "similarity"])


# --- tables ---------------------------------------------------------------------------------------


def make_rated_turns(study: Study, limit: int | None) -> pd.DataFrame:
    """Make the table of every rated row, with data about the context before it."""
    tables = []
    for name in data.COLLECTIONS:
        dialogues, samples = read_collection(study, name, limit)
        rows = dialogues[dialogues["speaker"] == "USER"]
        turn = rows.groupby("dialogue", sort=False).cumcount() + 1
        rows = rows.assign(collection=name, turn=turn.where(rows["text"] != OVERALL, 0))
        rows["sample"] = rows["dialogue"] + ":" + rows["line"].astype(str)
        columns = ["sample", "service", "words", "response_words"]
        rows = rows.merge(samples[columns], on="sample", how="left")
        # A row that is no sample has no context: the first turn, and the one for the dialogue.
        rows["answered"] = rows["words"].notna()
        rows["part"] = rows["dialogue"].map(samples.groupby("dialogue")["part"].first())
        rows = rows.fillna({"service": "", "words": 0, "response_words": 0})
        rows["ratings"] = [",".join(map(str, ratings)) for ratings in rows["ratings"]]
        tables.append(rows)
    columns = ["collection", "dialogue", "line", "turn", "part", "answered"]
    columns += ["act", "service", "ratings", "words", "response_words"]
    counts = dict.fromkeys(["line", "turn", "words", "response_words"], np.int16)
    return pd.concat(tables, ignore_index=True)[columns].astype(counts)


def make_swaps(study: Study, limit: int | None) -> pd.DataFrame:
    """Make the table of donors, which come from the test and validation parts."""
    tables = []
    for name in data.COLLECTIONS:
        _, samples = read_collection(study, name, limit)
        donors = samples[samples["part"] != "train"]
        pairs = nearest_donors(data.estimated(samples, "test"), donors)
        tables.append(pairs.assign(collection=name))
    return pd.concat(tables)[["collection", "sample", "donor", "similarity"]]


def make_relabelled() -> pd.DataFrame:
    """Make the table of classes by people and by a model; a digest names each dialogue."""
    tables = []
    for name, files in RATED_AGAIN.items():
        by_rater = []
        for rater, paths in files.items():
            located = [registry.fetch("use_relabel", f"{path}.txt") for path in paths]
            rated = pd.concat([read_classes(path) for path in located])
            texts = rated["users"].map("\n".join) + rated["systems"].map("\n".join)
            rated = pd.DataFrame({"text": texts, rater: rated["level"]})
            # Of a dialogue that occurs twice it is not known which class is whose.
            by_rater.append(rated.drop_duplicates("text", keep=False))
        both = by_rater[0].merge(by_rater[1], on="text")
        digests = [hashlib.sha1(text.encode()).hexdigest()[:10] for text in both.pop("text")]  # noqa: S324 - a name
        both.insert(0, "dialogue", digests)
        both.insert(0, "collection", name)
        tables.append(both)
    return pd.concat(tables)


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


def make_users() -> pd.DataFrame:
    """Make the table of users' own labels of their dialogues."""
    users = read_users()
    exchanges = users["users"].map(len)
    texts = users["users"].map(" ".join) + " " + users["systems"].map(" ".join)
    table = users.assign(exchanges=exchanges, words=texts.str.split().map(len))
    return table[["dialogue", "recommender", "user", "exchanges", "words", "dissatisfied"]]


def make_redial_ratings() -> pd.DataFrame:
    """Make the table of ratings of item abredial; a digest names each dialogue."""
    path = registry.fetch("abredial", "Data/annotated_turns.csv")
    rated = pd.read_csv(path, dtype=str, keep_default_na=False)
    texts = rated.filter(regex="^utterance").agg("\n".join, axis=1)
    digests = [hashlib.sha1(text.encode()).hexdigest()[:10] for text in texts]  # noqa: S324 - a name
    rated = rated.assign(dialogue=digests)
    rated["worker"] = rated.groupby("dialogue").cumcount()
    turns = []
    for turn in (1, 2, 3):
        ratings = pd.to_numeric(rated[f"overall{turn}"])
        turns.append(rated[["dialogue", "worker"]].assign(turn=turn, overall=ratings))
    table = pd.concat(turns).dropna().astype({"overall": int})
    return table.sort_values(["dialogue", "turn", "worker"])


def make_annotated_items(study: Study) -> pd.DataFrame:
    """Make the table of the items that annotators labelled."""
    path = (study.outputs / "written.csv").resolve()
    if path.is_relative_to(project.root()):
        project.note(path.relative_to(project.root()).as_posix(), project.sha256(path))
    written = data.written_responses(study)
    samples = pd.concat([read_collection(study, name)[1] for name in data.COLLECTIONS])
    return annotated_items(samples, written).drop(columns=["context", "response"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="replica")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    study = data.read_study(options.config)
    makers = {
        "rated_turns.parquet": partial(make_rated_turns, study, options.limit),
        "swaps.csv": partial(make_swaps, study, options.limit),
    }
    if options.config == "replica":
        makers["relabelled.csv"] = make_relabelled
        makers["users.csv"] = make_users
        makers["redial_ratings.csv"] = make_redial_ratings
    if (study.outputs / "written.csv").is_file():
        makers["annotated_items.csv"] = partial(make_annotated_items, study)
    output = options.output or study.facts
    output.mkdir(parents=True, exist_ok=True)
    for name, content in facts.make(makers).items():
        (output / name).write_bytes(content)
