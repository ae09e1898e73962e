"""Figures of ranked lists; each draws on matplotlib Axes and returns them."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes

from equipoise.plots import look


def user_groups(ax: Axes, clusters: pd.DataFrame, utility: str, similarities: Mapping[str, str]) -> Axes:
    """Draw what users have had who leave a ranked list at the same rank, and how many they are.

    ``clusters`` are those of one run and topic that `equipoise.measures.gfr.gfr_clusters` returns. ``utility`` and, by
    attribute set, ``similarities`` are the measures to draw, such as ERR and ``DistrSim-RNOD``; a set without values is
    left out.
    """
    share = clusters[clusters["measure"] == "share"]
    ax.bar(share["rank"], share["value"], color="#D9D9D9", width=0.8, label="share of the users")
    if share.empty:
        ax.text(0.5, 0.5, "nothing relevant: nobody leaves", transform=ax.transAxes, ha="center", color="#666666")
    for number, (attribute, measure) in enumerate({"": utility, **similarities}.items()):
        rows = clusters[(clusters["attribute"] == attribute) & (clusters["measure"] == measure)]
        if len(rows):
            label = f"{attribute} {measure}" if attribute else f"utility ({measure})"
            ax.plot(rows["rank"], rows["value"], label=label, markersize=4, **look(number))
    ax.set(ylim=(0, 1.02), xlabel="Rank at which users leave", ylabel="Share of users, or score")
    return ax
