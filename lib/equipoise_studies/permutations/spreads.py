"""How much systems vary over the orders, side by side and with intervals; what a rewriter changes of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise_compendium.claims import Evidence
from equipoise_studies.permutations.claims import interval
from equipoise_studies.permutations.systems import REWRITER


def _wide(exact: pd.DataFrame, column: str) -> pd.DataFrame:
    return exact.pivot_table(index="topic", columns="run", values=column, sort=False)


def relative_range(exact: pd.DataFrame, run: str) -> Evidence:
    """How far the choice of orders moves the mean score of a system, as a share of its mean over all orders."""
    part = exact[exact["run"] == run]
    ends = np.column_stack([part["maximum"] - part["minimum"], part["mean"]])

    found = interval(ends, lambda means: means[0] / means[1])
    return Evidence(
        f"range of {run} over all valid orders, as a share of its mean", *found, n=len(ends)
    )


def steadier(exact: pd.DataFrame, *, relative: bool = False) -> Evidence:
    """Standard deviation over the orders of systems that add the previous utterance as it is, minus the rewriter's.

    ``relative``: each divided by the mean score of its system over all conversations.
    """
    spreads, plain = _wide(exact, "sd"), ["CU", "LP", "RM3p"]
    if relative:
        spreads = spreads / _wide(exact, "mean").mean()
    gain = (spreads[plain].mean(axis=1) - spreads[REWRITER]).to_numpy()
    said = "standard deviation over the orders, mean of CU, LP and RM3p minus that of the rewriter"
    said += ", each as a share of its mean score" if relative else ""
    return Evidence(said, *interval(gain), n=len(gain))


def falls(exact: pd.DataFrame, scripts: pd.DataFrame, said: str, data: str) -> Evidence:
    """Mean over all valid orders minus the script, mean of the systems; ``data``: the collection, in words."""
    means = _wide(exact, "mean")
    script = scripts.pivot_table(index="topic", columns="run", values="value", sort=False).loc[
        means.index, means.columns
    ]
    change = (means - script).mean(axis=1).to_numpy()
    return Evidence(said, *interval(change), n=len(change), data=data)


def coverage(found: pd.DataFrame, prediction: str) -> Evidence:
    """Share of all orders within the bands that a prediction gives, of `unseen_systems`."""
    part = found[found["prediction"] == prediction]
    shares = part.groupby("topic", sort=False)["coverage"].mean().to_numpy()
    said = f"share of the valid orders within the band predicted by {prediction}; each system left out once"
    return Evidence(said, *interval(shares), n=len(shares))
