"""What the figures of the case studies show, in words, for those who cannot see them."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from equipoise.attributes import AttributeSet
from equipoise.measures.group_fairness import column_names
from equipoise_studies.pilot.tables import outcome_pairs


def outcomes_in_words(outcomes: pd.DataFrame) -> str:
    """How many conversations were useful twice, once or never, and how many broke down."""
    pairs = outcome_pairs(outcomes)["pair"]
    twice = (pairs == "oo").sum()
    once = pairs.isin(["ox", "xo"]).sum()
    never = (pairs == "xx").sum()
    breakdowns = (pairs == "x-").sum()
    return (
        f"both turns are useful in {twice} of {len(pairs)} conversations, just one of them in "
        f"{once}, neither in {never}, and {breakdowns} break down"
    )


def where_nuggets_stand(scores: pd.DataFrame) -> str:
    """Number and words of the relevant nuggets of each run; columns run and wc."""
    parts = []
    for run, words in scores.groupby("run", sort=False)["wc"]:
        parts.append(f"{run} has {len(words)} between words {words.min()} and {words.max()}")
    return ", ".join(parts)


def clusters_in_words(clusters: pd.DataFrame, attributes: Mapping[str, AttributeSet]) -> str:
    """From where to where utility and fairness go over the user clusters of each run."""
    columns = {"utility": "GNP"}
    for name, attribute in attributes.items():
        columns[f"fairness ({name})"] = column_names(attribute)[-1]
    parts = []
    for run, of_run in clusters.groupby("run", sort=False):
        first, last = of_run.iloc[0], of_run.iloc[-1]
        lines = []
        for name, column in columns.items():
            lines.append(f"{name} from {first[column]:.2f} to {last[column]:.2f}")
        parts.append(f"{run}, words {first['wc']} to {last['wc']}: {', '.join(lines)}")
    return "; ".join(parts)


def where_users_leave(clusters: pd.DataFrame) -> str:
    """The rank at which most users of each run and topic leave a ranked list."""
    shares = clusters[clusters["measure"] == "share"]
    most = shares.loc[shares.groupby(["topic", "run"], sort=False)["value"].idxmax()]
    return ", ".join(f"{row.topic} {row.run} {row.rank}" for row in most.itertuples())
