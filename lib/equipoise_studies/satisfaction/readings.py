"""How many swapped responses do what their label says: readings of some, and what they leave of a score.

A language model assistant read them, one reader, who saw the label: no replacement for the thesis's
annotators.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.files import read_columns
from equipoise_compendium import project
from equipoise_studies.satisfaction.data import COLLECTIONS, FOLDER, SEED, Collection

READ = 30
"""Swapped responses of each collection that were read."""

_COLUMNS = ["collection", "sample", "donor", "shown", "flips", "reason"]


def to_read(held: Collection) -> pd.DataFrame:
    """The swapped responses of a collection that are to be read, drawn by `SEED`, with the label shown for them."""
    rows = np.sort(np.random.default_rng(SEED).choice(len(held.turned), READ, replace=False))
    drawn = held.turned.iloc[rows].assign(collection=held.name)
    drawn["shown"] = np.where(drawn["dissatisfied"], "dissatisfied", "satisfied")
    return drawn[_COLUMNS[:4]].reset_index(drop=True)


def readings(held: Iterable[Collection]) -> pd.DataFrame:
    """What the reader found: does the user's mind turn as the label says ("yes", "no", "unclear"), and why.

    Readings of others than those that `to_read` draws are refused. There are none of responses that
    people confirmed.
    """
    held = [part for part in held if part.world == "swapped" and part.name in COLLECTIONS]
    if not held:
        return pd.DataFrame(columns=_COLUMNS)
    read = read_columns(project.data(*FOLDER, "readings.csv"), _COLUMNS)
    drawn = pd.concat([to_read(part) for part in held], ignore_index=True)
    own = read[read["collection"].isin(drawn["collection"])].reset_index(drop=True)
    told = own["flips"].isin(["yes", "no", "unclear"]).all()
    if not told or own[_COLUMNS[:4]].to_numpy().tolist() != drawn.to_numpy().tolist():
        raise ValueError(
            "the readings are not of the swapped responses drawn, or not yes, no or unclear: read anew"
        )
    return own


def _wilson(found: int, among: int) -> tuple[float, float]:
    ends = stats.binomtest(found, among).proportion_ci(method="wilson")
    return float(ends.low), float(ends.high)


def reading_shares(read: pd.DataFrame) -> pd.DataFrame:
    """Share of the swapped responses read that do not flip, with its 95% Wilson interval.

    A row for each collection and label shown, and for all of them. Returns the columns collection,
    shown, read, no, unclear, share, low, high, and at_most: the upper end where the unclear ones do
    not flip either.
    """
    rows = []
    names = [*read["collection"].unique(), "all"] if len(read) else []
    for name, shown in product(names, ["dissatisfied", "satisfied", "all"]):
        part = read[read["collection"].isin(names if name == "all" else [name])]
        part = part if shown == "all" else part[part["shown"] == shown]
        no, unclear = (int((part["flips"] == found).sum()) for found in ("no", "unclear"))
        ends = *_wilson(no, len(part)), _wilson(no + unclear, len(part))[1]
        rows.append((name, shown, len(part), no, unclear, no / len(part), *ends))
    columns = ["collection", "shown", "read", "no", "unclear", "share", "low", "high", "at_most"]
    return pd.DataFrame(rows, columns=columns)


def wrong_labels(shares: pd.DataFrame, turned: pd.DataFrame) -> dict[str, float]:
    """Highest share of the labels of some swapped samples that the readings allow to be wrong, by collection.

    ``turned``: columns collection and dissatisfied, a row for each sample.
    """
    if shares.empty:
        return {}
    most = shares.set_index(["collection", "shown"])["at_most"].to_dict()
    shown = turned["dissatisfied"].map({True: "dissatisfied", False: "satisfied"})
    each = pd.Series(
        list(map(most.get, zip(turned["collection"], shown, strict=True))),
        index=turned.index,
        dtype=float,
    )
    return {
        str(name): float(share) for name, share in each.groupby(turned["collection"]).mean().items()
    }
