"""How much systems vary over the orders, with intervals; what a rewriter changes of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise_compendium.claims import Evidence
from equipoise_studies.permutations.claims import interval
from equipoise_studies.permutations.systems import REWRITER


def _topics_by_runs(table: pd.DataFrame, column: str) -> pd.DataFrame:
    return table.pivot_table(index="topic", columns="run", values=column, sort=False)


def relative_range(exact: pd.DataFrame, run: str) -> Evidence:
    """How far the choice of orders moves the mean score of a system, as a share of that mean."""
    of_run = exact[exact["run"] == run]
    ranges = of_run["maximum"] - of_run["minimum"]
    values = np.column_stack([ranges, of_run["mean"]])

    def relative(means: Floats) -> float:
        return float(means[0] / means[1])

    statement = f"range of {run} over all valid orders, as a share of its mean"
    return Evidence(statement, *interval(values, relative), n=len(values))


def steadier(exact: pd.DataFrame, *, relative: bool = False) -> Evidence:
    """Standard deviation over the orders of CU, LP and RM3p, on average, minus the rewriter's.

    They add the previous utterance as it is. ``relative``: each divided by the mean score of its
    system over all conversations.
    """
    deviations = _topics_by_runs(exact, "sd")
    statement = (
        "standard deviation over the orders, mean of CU, LP and RM3p minus that of the rewriter"
    )
    if relative:
        deviations = deviations / _topics_by_runs(exact, "mean").mean()
        statement += ", each as a share of its mean score"
    gain = (deviations[["CU", "LP", "RM3p"]].mean(axis=1) - deviations[REWRITER]).to_numpy()
    return Evidence(statement, *interval(gain), n=len(gain))


def falls(exact: pd.DataFrame, scripts: pd.DataFrame, said: str) -> Evidence:
    """Mean over all valid orders minus the script, mean of the systems."""
    means = _topics_by_runs(exact, "mean")
    script = _topics_by_runs(scripts, "value").loc[means.index, means.columns]
    change = (means - script).mean(axis=1).to_numpy()
    return Evidence(said, *interval(change), n=len(change))


def coverage(predictions: pd.DataFrame, prediction: str) -> Evidence:
    """Share of all orders within the bands that a prediction gives, of `unseen_systems`."""
    of_prediction = predictions[predictions["prediction"] == prediction]
    shares = of_prediction.groupby("topic", sort=False)["coverage"].mean().to_numpy()
    statement = (
        f"share of the valid orders within the band predicted by {prediction}; "
        "each system left out once"
    )
    return Evidence(statement, *interval(shares), n=len(shares))
