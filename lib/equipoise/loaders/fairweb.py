"""Group memberships and target distributions in the formats of the NTCIR FairWeb tasks.

A membership file has a line ``topic document p1 p2 ...`` for each document, a target file one
probability per line.

References
----------
Tao, S., et al. (2023): Overview of the NTCIR-17 FairWeb-1 Task. Proceedings of NTCIR-17,
doi:10.20736/0002001318.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from equipoise.attributes import AttributeSet
from equipoise.errors import excerpt, input_error
from equipoise.loaders.columns import WORDS, ColumnFile
from equipoise.readers import number, read_text

TOLERANCE = 1e-5
"""How far probabilities published with a few digits may be from summing to 1."""


def numbered_groups(count: int) -> tuple[str, ...]:
    """Names of groups that have none."""
    return tuple(f"group {place}" for place in range(1, count + 1))


def read_target(path: str | Path, name: str, kind: Literal["nominal", "ordinal"]) -> AttributeSet:
    """Read a target distribution: one number per line, in the order of the groups.

    Targets are non-negative, and divided by their sum. ``name`` is what to call the attribute set.
    The files name no groups: they are ``group 1`` and so on.
    """
    numbers = []
    for line_number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            numbers.append(number(line.strip()))
        except ValueError:
            raise input_error(path, "one number per line", excerpt(line), line_number) from None
    try:
        return AttributeSet(name, kind, numbered_groups(len(numbers)), np.array(numbers))
    except ValueError as error:
        raise input_error(path, str(error)) from None


def read_memberships(path: str | Path, attribute: AttributeSet) -> pd.DataFrame:
    """Read group memberships: a table with the columns topic, document and one per group.

    The file has a line ``topic document p1 p2 ...`` for each document, with the groups in their
    order; the probabilities are taken unchanged. Rows are in file order.
    """
    groups = list(attribute.groups)
    # Columns are named by the set, as a group may be called topic.
    columns = [f"{attribute.name} {group}" for group in groups]
    types = {"topic": WORDS, "document": pa.string(), **dict.fromkeys(columns, pa.float64())}
    file = ColumnFile(path)
    table = file.read(types, f"topic document and {len(groups)} shares")
    shares = np.column_stack([table[name].to_numpy() for name in columns])  # (documents, groups)
    is_distribution = (shares >= 0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1) <= TOLERANCE)
    if not is_distribution.all():
        row = int(np.flatnonzero(~is_distribution)[0])
        raise file.error(row, attribute.name, attribute.wanted, shares[row].tolist())
    file.check_once(table, "unique in the memberships of a topic")
    memberships = table.select(["topic", "document"]).to_pandas().astype("str")
    return memberships.assign(**dict(zip(groups, shares.T, strict=True)))
