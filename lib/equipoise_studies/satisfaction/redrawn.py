"""Rates and areas of the replica, and what other dialogues would have given.

Samples of one dialogue stay together. Every table has a column for each estimator, and a row for
each draw; the first row, 0, is the data as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise_studies.satisfaction.agreement import correct_both_times

KEYS = ["collection", "run"]


def _drawn_collections(
    tested: pd.DataFrame, rng: np.random.Generator, resamples: int
) -> Iterator[tuple[str, pd.DataFrame, Floats]]:
    """Each collection with the dialogue of every prediction as a number, and draws of dialogues.

    The draws say how often each dialogue is drawn, (draws, dialogues).
    """
    for name, predictions in tested.groupby("collection", sort=True):
        place, dialogues = pd.factorize(predictions["sample"].str.partition(":")[0], sort=True)
        n_dialogues = len(dialogues)
        equal_shares = np.full(n_dialogues, 1 / n_dialogues)
        times = rng.multinomial(n_dialogues, equal_shares, size=resamples)
        yield str(name), predictions.assign(place=place), np.vstack([np.ones(n_dialogues), times])


def _sums(place: pd.Series, values: Floats, draws: Floats) -> Floats:
    """Sums of values over the dialogues drawn, for each draw."""
    return draws @ np.bincount(place, weights=values, minlength=draws.shape[1])


def label_rates(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Share labelled correctly, by collection, run, world and label (satisfied, dissatisfied)."""
    rates = {}
    for name, predictions, draws in _drawn_collections(tested, rng, resamples):
        groups = predictions.groupby(["run", "world", "dissatisfied"])
        for (run, world, dissatisfied), samples in groups:
            correct = (samples["predicted"] == samples["dissatisfied"]).to_numpy(dtype=np.float64)
            label = "dissatisfied" if dissatisfied else "satisfied"
            n_correct = _sums(samples["place"], correct, draws)
            n_samples = _sums(samples["place"], np.ones(len(samples)), draws)
            # A draw may hold no sample of a label.
            with np.errstate(invalid="ignore"):
                rates[name, run, world, label] = n_correct / n_samples
    return pd.DataFrame(rates).rename_axis(columns=[*KEYS, "world", "label"])


def areas(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Area under the receiver operating characteristic, by collection, run and world.

    That is the share of pairs, of a dissatisfied and a satisfied sample, whose scores are in order.
    """
    area_draws = {}
    estimated = tested[tested["run"] != "constant"]
    for name, predictions, draws in _drawn_collections(estimated, rng, resamples):
        # A row for each dialogue, with a 1 in its place.
        dialogues = np.eye(draws.shape[1])
        for (run, world), samples in predictions.groupby(["run", "world"]):
            dissatisfied = samples["dissatisfied"].astype(bool)
            high, low = samples[dissatisfied], samples[~dissatisfied]
            gaps = np.subtract.outer(
                high["dissatisfaction"].to_numpy(), low["dissatisfaction"].to_numpy()
            )
            in_order = (np.sign(gaps) + 1) / 2  # a tie counts half
            # Summed over the samples of two dialogues, (dialogues, dialogues).
            in_order = dialogues[high["place"]].T @ in_order @ dialogues[low["place"]]
            n_high = _sums(high["place"], np.ones(len(high)), draws)
            n_low = _sums(low["place"], np.ones(len(low)), draws)
            with np.errstate(invalid="ignore"):
                pairs_in_order = np.einsum("bi,ij,bj->b", draws, in_order, draws)
                area_draws[name, run, world] = pairs_in_order / (n_high * n_low)
    return pd.DataFrame(area_draws).rename_axis(columns=[*KEYS, "world"])


def shared(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Numbers of contexts by collection, run and count.

    The counts are of contexts that an estimator labels correctly in both worlds ("meet"), in one at
    least ("join"), and of all ("contexts").
    """
    tested = tested.assign(correct=tested["predicted"] == tested["dissatisfied"])
    counts = {}
    for name, predictions, draws in _drawn_collections(tested, rng, resamples):
        for run, samples in predictions.groupby("run"):
            contexts = samples.pivot_table(
                index=["sample", "place"], columns="world", values="correct"
            )
            contexts = contexts.dropna().reset_index()
            turned = next(world for world in samples["world"].unique() if world != "Main")
            meet, join = correct_both_times(contexts["Main"], contexts[turned])
            marks = {"meet": meet, "join": join, "contexts": np.ones(len(contexts))}
            for count, values in marks.items():
                counts[name, run, count] = _sums(
                    contexts["place"], values.astype(np.float64), draws
                )
    return pd.DataFrame(counts).rename_axis(columns=[*KEYS, "count"])


def interval(draws: pd.DataFrame | pd.Series) -> pd.DataFrame:
    """Value in the data and the ends of the 95% bootstrap interval, a row for each column."""
    table = pd.DataFrame(draws)
    ends = table.iloc[1:].quantile([0.025, 0.975])
    return pd.DataFrame({"value": table.iloc[0], "low": ends.iloc[0], "high": ends.iloc[1]})


def labels_by_chance(
    tested: pd.DataFrame, rng: np.random.Generator, resamples: int
) -> set[tuple[str, str]]:
    """Few-shot estimators whose labels may be chance on Main: the interval of Youden's J holds 0.

    J, sensitivity plus specificity less 1, is 0 where every sample gets the same label.
    """
    few_shot = tested["run"].str.contains("ew-shot")
    predictions = tested[few_shot & (tested["world"] == "Main")]
    if predictions.empty:
        return set()
    rates = label_rates(predictions, rng, resamples)
    # Both rates of an estimator are wanted: with one label only there is no J.
    sums = rates.T.groupby(level=KEYS).sum(min_count=2).T
    youden = interval(sums - 1)
    return set(youden.index[~(youden["low"] > 0)])
