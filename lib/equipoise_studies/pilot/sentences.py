"""What the figures of the case studies show, in words, for captions and for those who cannot see them."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.measures.group_fairness import column_names
from equipoise_studies.pilot.tables import outcome_pairs


def outcomes_in_words(outcomes: pd.DataFrame) -> str:
    """How many conversations were useful twice, once or never, and how many broke down."""
    pairs = outcome_pairs(outcomes)["pair"]
    return (
        f"both turns are useful in {(pairs == 'oo').sum()} of {len(pairs)} conversations, just one of them in "
        f"{pairs.isin(['ox', 'xo']).sum()}, neither in {(pairs == 'xx').sum()}, and {(pairs == 'x-').sum()} break down"
    )


def where_nuggets_stand(scores: pd.DataFrame) -> str:
    """Number and words of the relevant nuggets of each run; columns run and wc."""
    runs = scores.groupby("run", sort=False)["wc"].agg(
        [("nuggets", "size"), ("first", "min"), ("last", "max")]
    )
    return ", ".join(
        f"{row.Index} has {row.nuggets} between words {row.first} and {row.last}"
        for row in runs.itertuples()
    )


def scores_in_words(scores: pd.DataFrame) -> str:
    """R and GF by attribute set of each run."""
    rows = scores[
        (scores["measure"] == "R") | ((scores["measure"] == "GF") & (scores["attribute"] != ""))
    ]
    parts = [
        f"{run}: "
        + ", ".join(
            f"{row.measure} {row.attribute}".strip() + f" {row.value:.4f}"
            for row in part.itertuples()
        )
        for run, part in rows.groupby("run", sort=False)
    ]
    return "; ".join(parts)


def clusters_in_words(clusters: pd.DataFrame, attributes: Mapping[str, AttributeSet]) -> str:
    """From where to where utility and fairness go over the user clusters of each run."""
    columns = {"utility": "GNP"} | {
        f"fairness ({name})": column_names(a)[-1] for name, a in attributes.items()
    }
    parts = []
    for run, part in clusters.groupby("run", sort=False):
        lines = (
            f"{name} from {part[c].iloc[0]:.2f} to {part[c].iloc[-1]:.2f}"
            for name, c in columns.items()
        )
        parts.append(
            f"{run}, words {part['wc'].iloc[0]} to {part['wc'].iloc[-1]}: {', '.join(lines)}"
        )
    return "; ".join(parts)


def where_users_leave(clusters: pd.DataFrame) -> str:
    """The rank at which most users of each run and topic leave a ranked list."""
    shares = clusters[clusters["measure"] == "share"]
    most = shares.loc[shares.groupby(["topic", "run"], sort=False)["value"].idxmax()]
    return ", ".join(f"{row.topic} {row.run} {row.rank}" for row in most.itertuples())
