"""The test collection of the pilot study, the FairWeb-1 pilot pack, from its facts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise_compendium import facts

_STUDY = "pilot"


@dataclass(frozen=True)
class Pack:
    """A small test collection for group fairness: runs, judgements, and groups by attribute set."""

    runs: pd.DataFrame
    qrels: pd.DataFrame
    memberships: dict[str, pd.DataFrame]
    attributes: dict[str, AttributeSet]


def read_pack() -> Pack:
    """The FairWeb-1 pilot pack, with runs called bm25, qld and qljm."""
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
