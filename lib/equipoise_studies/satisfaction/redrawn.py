"""Rates and areas of the replica with what other dialogues would have given: samples of one dialogue stay together.

Every table has a column for each estimator, and a row for each draw; the first row, 0, is the data
as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise_studies.satisfaction.agreement import paired

KEYS = ["collection", "run"]


def _collections(
    tested: pd.DataFrame, rng: np.random.Generator, resamples: int
) -> Iterator[tuple[str, pd.DataFrame, Floats]]:
    """Each collection with the dialogue of every prediction as a number, and how often each is drawn."""
    for name, part in tested.groupby("collection", sort=True):
        place, dialogues = pd.factorize(part["sample"].str.partition(":")[0], sort=True)
        drawn = rng.multinomial(
            len(dialogues), np.full(len(dialogues), 1 / len(dialogues)), size=resamples
        )
        yield str(name), part.assign(place=place), np.vstack([np.ones(len(dialogues)), drawn])


def _by_dialogue(place: pd.Series, values: Floats, drawn: Floats) -> Floats:
    """Sums of values over the dialogues drawn, for each draw."""
    return drawn @ np.bincount(place, weights=values, minlength=drawn.shape[1])


def label_rates(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Share of samples labelled correctly, by collection, run, world and label ("satisfied" or "dissatisfied")."""
    rates = {}
    for name, table, drawn in _collections(tested, rng, resamples):
        for (run, world, dissatisfied), part in table.groupby(["run", "world", "dissatisfied"]):
            right = (part["predicted"] == part["dissatisfied"]).to_numpy(dtype=np.float64)
            sums = (
                _by_dialogue(part["place"], values, drawn) for values in (right, np.ones(len(part)))
            )
            with np.errstate(invalid="ignore"):
                rates[name, run, world, "dissatisfied" if dissatisfied else "satisfied"] = (
                    np.divide(*sums)
                )
    return pd.DataFrame(rates).rename_axis(columns=[*KEYS, "world", "label"])


def areas(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Area under the receiver operating characteristic, by collection, run and world: of pairs, those in order."""
    found = {}
    for name, table, drawn in _collections(tested[tested["run"] != "constant"], rng, resamples):
        ones = np.eye(drawn.shape[1])
        for (run, world), part in table.groupby(["run", "world"]):
            high, low = (part[part["dissatisfied"] == label] for label in (True, False))
            gap = np.subtract.outer(
                high["dissatisfaction"].to_numpy(), low["dissatisfaction"].to_numpy()
            )
            ordered = (
                ones[high["place"]].T @ ((np.sign(gap) + 1) / 2) @ ones[low["place"]]
            )  # (dialogues, dialogues)
            pairs = np.prod(
                [_by_dialogue(side["place"], np.ones(len(side)), drawn) for side in (high, low)],
                axis=0,
            )
            with np.errstate(invalid="ignore"):
                found[name, run, world] = np.einsum("bi,ij,bj->b", drawn, ordered, drawn) / pairs
    return pd.DataFrame(found).rename_axis(columns=[*KEYS, "world"])


def shared(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Contexts that an estimator labels correctly in both worlds ("meet"), in one at least ("join"), and all."""
    tested = tested.assign(right=tested["predicted"] == tested["dissatisfied"])
    counts = {}
    for name, table, drawn in _collections(tested, rng, resamples):
        for run, part in table.groupby("run"):
            pairs = (
                part.pivot_table(index=["sample", "place"], columns="world", values="right")
                .dropna()
                .reset_index()
            )
            turned = next(world for world in part["world"].unique() if world != "Main")
            meet, join = paired(pairs["Main"], pairs[turned])
            for kind, values in {
                "meet": meet,
                "join": join,
                "contexts": np.ones(len(pairs)),
            }.items():
                counts[name, run, kind] = _by_dialogue(
                    pairs["place"], values.astype(np.float64), drawn
                )
    return pd.DataFrame(counts).rename_axis(columns=[*KEYS, "count"])


def interval(draws: pd.DataFrame | pd.Series) -> pd.DataFrame:
    """Value in the data and the ends of the 95% bootstrap interval, a row for each column."""
    table = pd.DataFrame(draws)
    ends = table.iloc[1:].quantile([0.025, 0.975])
    return pd.DataFrame({"value": table.iloc[0], "low": ends.iloc[0], "high": ends.iloc[1]})
