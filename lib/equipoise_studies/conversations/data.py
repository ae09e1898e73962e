"""The data of the pilot studies: FairWeb-1 pilot pack, iKAT's systems, harvested conversations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.nuggets import NuggetTable, nugget_table
from equipoise_compendium import facts

_STUDY = "conversations"
_TURN = ["user", "system", "outcome", "finish"]


@dataclass(frozen=True)
class Pack:
    """A small test collection for group fairness: runs, judgements, and groups by attribute set."""

    runs: pd.DataFrame
    qrels: pd.DataFrame
    memberships: dict[str, pd.DataFrame]
    attributes: dict[str, AttributeSet]


def read_pack() -> Pack:
    """Read the derived data of the FairWeb-1 pilot pack, with runs bm25, qld and qljm."""
    runs = facts.read(_STUDY, "runs.parquet").astype({"rank": int})
    qrels = facts.read(_STUDY, "qrels.csv", {"level": int})
    target_rows = facts.read(_STUDY, "targets.csv")
    membership_rows = facts.read(_STUDY, "memberships.csv")

    attributes = {}
    memberships = {}
    for row in target_rows.itertuples():
        target = np.array(row.target.split(), dtype=float)
        groups = tuple(f"group {number}" for number in range(1, len(target) + 1))
        attributes[row.attribute] = AttributeSet(row.attribute, row.kind, groups, target)

        members = membership_rows[membership_rows["attribute"] == row.attribute]
        shares = members["memberships"].str.split(expand=True).astype(float)
        shares.columns = list(groups)
        ids = members[["topic", "document"]]
        memberships[row.attribute] = ids.join(shares).reset_index(drop=True)
    return Pack(runs, qrels, memberships, attributes)


def read_answers_of_systems(source: str, least_similarity: float) -> tuple[NuggetTable, pd.Series]:
    """Read the answers of iKAT's systems as conversations of one turn, and their nugget recall.

    ``source``: of the gold nuggets, "people" or "GPT-4o". A nugget of an answer is relevant if it
    resembles a gold nugget that no nugget before it resembles; the highest level of these counts.
    Turns without gold nuggets are left out. The recall is by run and topic.
    """
    answers = facts.read(_STUDY, "ikat_answers.csv")[["run", "topic"]]
    gold = facts.read(_STUDY, "ikat_gold.csv", {"gold": int, "level": int})
    gold = gold[gold["source"] == source]
    matches = facts.read(_STUDY, "ikat_matches.parquet")
    matches = matches[matches["similarity"] >= least_similarity]
    nuggets = facts.read(_STUDY, "ikat_nuggets.parquet")
    answer = ["run", "topic"]
    nuggets = nuggets.merge(
        matches.merge(gold, on=["source", "topic", "gold"]), on=[*answer, "nugget"]
    )
    nuggets = nuggets.sort_values([*answer, "start", "end"], kind="stable")
    first_time = nuggets.drop_duplicates([*answer, "gold"])

    answers = answers[answers["topic"].isin(gold["topic"])]
    found = first_time.groupby(answer).size()
    recall = found.reindex(pd.MultiIndex.from_frame(answers), fill_value=0).astype(float)
    recall /= gold.groupby("topic").size().reindex(answers["topic"]).to_numpy()

    rows = first_time.groupby([*answer, "start", "end"], as_index=False)["level"].max()
    # Nuggets that overlap an earlier one are left out.
    last = rows.groupby(answer)["end"].cummax()
    rows = rows[rows["start"] > last.groupby([rows["run"], rows["topic"]]).shift(fill_value=0)]
    empty = answers.merge(rows[answer].drop_duplicates(), how="left", indicator=True)
    empty = empty[empty["_merge"] == "left_only"][answer].assign(level=0)
    frame = pd.concat([rows, empty]).assign(turn=1).convert_dtypes()
    return nugget_table(frame.sort_values(answer, kind="stable"), {}), recall


def read_harvest(path: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """Read a record of ``equipoise harvest``: its settings, and the turns as a table.

    Columns of the turns are ``run, type, topic, turn, user, system, outcome, finish``, in the order
    of trials and topics; trial 2 of ``qwen.jsonl`` is the run ``qwen-2``. A first turn that ended
    its conversation is followed by a second with outcome ``-``. Conversations that are not complete
    are rejected.
    """
    settings, *lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    recorded = {(line["trial"], line["topic"], line["turn"]): line for line in lines}
    not_held = {"user": "", "system": "", "outcome": "-", "finish": ""}
    rows = []
    for trial in sorted({line["trial"] for line in lines}):
        for topic in settings["topics"]:
            name = topic["topic"]
            first = recorded.get((trial, name, 1))
            second = recorded.get((trial, name, 2))
            if first is None or (second is None and not first["breakdown"]):
                raise ValueError(f"{path}: topic {name}, trial {trial} is not complete")
            for turn, line in ((1, first), (2, second or not_held)):
                fields = [line[column] for column in _TURN]
                rows.append([f"{path.stem}-{trial}", topic.get("kind", ""), name, turn, *fields])
    return settings, pd.DataFrame(rows, columns=["run", "type", "topic", "turn", *_TURN])
