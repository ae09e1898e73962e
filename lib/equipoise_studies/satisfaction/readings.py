"""How many swapped responses do what their label says: readings of some, and the doubt they leave.

A language model assistant read them, one reader, who saw the label: no replacement for the thesis's
annotators.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from equipoise.files import read_columns
from equipoise_compendium import project
from equipoise_studies.satisfaction.data import COLLECTIONS, FOLDER, SEED, Collection

READ = 30
"""Swapped responses of each collection that were read."""

DRAWN_COLUMNS = ["collection", "sample", "donor", "shown"]
COLUMNS = [*DRAWN_COLUMNS, "flips", "reason"]


def to_read(collection: Collection) -> pd.DataFrame:
    """The swapped responses that are to be read, drawn by `SEED`, with the label shown for them."""
    rng = np.random.default_rng(SEED)
    rows = np.sort(rng.choice(len(collection.turned), READ, replace=False))
    drawn = collection.turned.iloc[rows].assign(collection=collection.name)
    drawn["shown"] = np.where(drawn["dissatisfied"], "dissatisfied", "satisfied")
    return drawn[DRAWN_COLUMNS].reset_index(drop=True)


def readings(collections: Iterable[Collection]) -> pd.DataFrame:
    """Whether the user's rating changes as the label says ("yes", "no", "unclear"), and why.

    Readings of others than those that `to_read` draws are refused. There are none of responses that
    people confirmed.
    """
    drawn_tables = []
    for collection in collections:
        if collection.world == "swapped" and collection.name in COLLECTIONS:
            drawn_tables.append(to_read(collection))
    if not drawn_tables:
        return pd.DataFrame(columns=COLUMNS)

    drawn = pd.concat(drawn_tables, ignore_index=True)
    table = read_columns(project.data(*FOLDER, "readings.csv"), COLUMNS)
    table = table[table["collection"].isin(drawn["collection"])].reset_index(drop=True)
    answers_are_known = table["flips"].isin(["yes", "no", "unclear"]).all()
    # Readings of other responses would be applied to the wrong ones.
    same_responses = table[DRAWN_COLUMNS].to_numpy().tolist() == drawn.to_numpy().tolist()
    if not answers_are_known or not same_responses:
        raise ValueError(
            "the readings are not of the swapped responses drawn, or not yes, no or unclear: "
            "read anew"
        )
    return table


def wrong_labels(shares: pd.DataFrame, turned: pd.DataFrame) -> dict[str, float]:
    """Highest share of labels of swapped samples that the readings allow to be wrong.

    ``shares``: columns collection, shown and at_most, the upper end of the share that does not
    flip. ``turned``: columns collection and dissatisfied, a row for each sample. Returns: by
    collection.
    """
    if shares.empty:
        return {}
    at_most = shares.set_index(["collection", "shown"])["at_most"].to_dict()
    shown = np.where(turned["dissatisfied"].astype(bool), "dissatisfied", "satisfied")
    doubts = []
    for key in zip(turned["collection"], shown, strict=True):
        # Further collections have no readings, and so no doubt that is known.
        doubts.append(at_most.get(key, np.nan))
    doubt = pd.Series(doubts, index=turned.index, dtype=float)
    means = doubt.groupby(turned["collection"]).mean()
    return {str(name): float(share) for name, share in means.items()}
