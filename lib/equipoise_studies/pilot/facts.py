"""The facts that the notebook of ranked lists needs of the FairWeb-1 pilot pack."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise_studies.pilot import upstream


def _numbers(values: Floats) -> str:
    """Numbers as one text, each with the digits that bring back the same number."""
    return " ".join(repr(float(value)) for value in values)


def make_runs() -> pd.DataFrame:
    """The runs in the order of their files, which is what the campaign's program keeps."""
    return upstream.fetch_runs("pilot").astype({"rank": np.int16})


def make_qrels() -> pd.DataFrame:
    """The judgements: 0 not relevant, 1 relevant, 2 highly relevant."""
    return upstream.fetch_qrels("pilot")


def make_targets() -> pd.DataFrame:
    """The attribute sets with their target distributions."""
    rows = []
    for name, attribute in upstream.fetch_attributes("pilot").items():
        rows.append((name, attribute.kind, _numbers(attribute.target)))
    return pd.DataFrame(rows, columns=["attribute", "kind", "target"])


def make_memberships() -> pd.DataFrame:
    """The shares of each judged document over the groups of each attribute set."""
    parts = []
    for name, members in upstream.fetch_memberships("pilot").items():
        shares = members.drop(columns=["topic", "document"]).to_numpy()
        table = members[["topic", "document"]].copy()
        table.insert(0, "attribute", name)
        table["memberships"] = [_numbers(row) for row in shares]
        parts.append(table)
    return pd.concat(parts)


TABLES = {
    "runs.parquet": make_runs,
    "qrels.csv": make_qrels,
    "targets.csv": make_targets,
    "memberships.csv": make_memberships,
}
"""How each table is made, by the name of its file in ``data/facts/pilot``."""
