"""Figures of the pilot study: outcomes of conversations, and where users leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from equipoise_compendium.plots import COLOURS, GREY, literal, look, note

_PATTERNS: Mapping[str, tuple[str, str]] = {
    "oo": ("#6BBF8A", "useful, useful"),
    "ox": ("#CDE8C5", "useful, then not"),
    "xo": ("#FBE38E", "not useful, then useful"),
    "xx": ("#F3B183", "not useful twice"),
    "x-": ("#CFCFCF", "breakdown"),
}
"""Colour and meaning of each pair of outcomes; the colours follow gfrc's Figures 2 to 4."""


def outcomes(ax: Axes, turns: pd.DataFrame) -> Axes:
    """Draw the outcomes of turns 1 and 2, a row a topic, runs side by side (gfrc Figures 2 to 4).

    ``turns`` has the columns run, topic, turn, outcome.
    """
    runs = turns["run"].drop_duplicates().tolist()
    topics = turns["topic"].drop_duplicates().tolist()
    in_order = turns.sort_values("turn", kind="stable")
    pairs = in_order.groupby(["run", "topic"])["outcome"].agg("".join)
    for (run, topic), pair in pairs.items():
        left, row = 2.15 * runs.index(run), topics.index(topic)
        colour, _ = _PATTERNS.get(pair, ("white", ""))
        ax.add_patch(Rectangle((left, row), 2, 1, facecolor=colour, edgecolor="white", linewidth=2))
        for turn, mark in enumerate(pair):
            ax.text(left + 0.5 + turn, row + 0.5, mark, ha="center", va="center_baseline")
    centres = []
    for column, run in enumerate(runs):
        centres += [2.15 * column + 0.5, 2.15 * column + 1.5]
        note(
            ax,
            run,
            (2.15 * column + 1, 1.0),
            (0, 20),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
        )
    ax.set_xticks(centres, ["$S_1$", "$S_2$"] * len(runs))
    ax.xaxis.tick_top()
    ax.set_yticks(np.arange(len(topics)) + 0.5, topics)
    ax.set(xlim=(0, 2.15 * len(runs) - 0.15), ylim=(len(topics), 0))
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    handles = []
    for pair, (colour, label) in _PATTERNS.items():
        if (pairs == pair).any():
            handles.append(Patch(color=colour, label=label))
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2)
    return ax


def protocol(ax: Axes, turns: Sequence[tuple[str, str]], breakdown: str) -> Axes:
    """Draw the two-round protocol (gfrc Figure 1): turns, and the end behind the first answer.

    ``turns`` are names with what is said, ``breakdown`` what the end is called.
    """
    for place, (name, said) in enumerate(turns):
        colour = "#E4E4E4" if name.startswith("S") else "#CFCFCF"
        ax.add_patch(Rectangle((place, 0.45), 0.86, 0.5, facecolor=colour))
        ax.text(place + 0.43, 0.7, f"{name}\n{said}", ha="center", va="center", fontsize=8.5)
        if place:
            ax.annotate("", (place, 0.7), (place - 0.14, 0.7), arrowprops={"arrowstyle": "->"})
    ax.annotate(
        breakdown,
        (1.43, 0.45),
        (1.43, 0.02),
        ha="center",
        fontsize=8.5,
        arrowprops={"arrowstyle": "<-"},
    )
    ax.set(xlim=(-0.05, len(turns)), ylim=(-0.1, 1))
    ax.axis("off")
    return ax


def user_groups(
    axes: Sequence[Axes], clusters: pd.DataFrame, similarities: Mapping[str, str]
) -> Sequence[Axes]:
    """Draw how near the target the groups are that users of ranked lists met, a panel a set.

    ``clusters`` are those of `equipoise.measures.gfr.gfr_clusters`, ``similarities`` the measure to
    draw by attribute set. A disc is as large as the share of the users that leaves at its rank;
    ranks at which less than a twentieth leaves have none.
    """
    runs = list(dict.fromkeys(clusters["run"]))
    for ax, (attribute, measure) in zip(axes, similarities.items(), strict=True):
        set_clusters = clusters[
            (clusters["attribute"] == attribute) & (clusters["measure"] == measure)
        ]
        topic = set_clusters["topic"].iloc[0]
        shares = clusters[(clusters["measure"] == "share") & (clusters["topic"] == topic)]
        for number, run in enumerate(runs):
            rows = set_clusters[set_clusters["run"] == run].merge(
                shares[["run", "rank", "value"]], on=["run", "rank"]
            )
            colour = look(number)["color"]
            ax.plot(rows["rank"], rows["value_x"], lw=1, color=colour)
            many = rows[rows["value_y"] >= _SMALLEST_SHARE]
            size = _disc_size(many["value_y"])
            ax.scatter(many["rank"], many["value_x"], s=size, color=(colour, 0.6), lw=0)
        without_users = [literal(run) for run in runs if run not in set(set_clusters["run"])]
        if without_users:
            remark = f"{', '.join(without_users)}: nothing relevant,\nnobody leaves"
            ax.text(0.03, 0.05, remark, transform=ax.transAxes, fontsize=9, color="#666666")
        ax.set(ylim=(0, 1.02), xlabel="Rank at which users leave", ylabel="Nearness to the target")
        ax.set_title(
            f"{literal(attribute)}: {measure}, topic {literal(topic)}", loc="left", fontsize=10
        )
        ax.label_outer()
    handles: list[Any] = []
    for number, run in enumerate(runs):
        handles.append(Patch(color=look(number)["color"], label=literal(run)))
    share_key(axes[0], handles)
    return axes


_SMALLEST_SHARE = 0.05
"""Of the users who leave at one place, for a disc of their own."""


def _disc_size(share: Any) -> Any:
    """The area of a disc, in square points, for a share of the users."""
    return 8 + 500 * share


def share_key(ax: Axes, handles: Sequence[Any] = ()) -> None:
    """Say beneath a figure how large a share of the users its discs are, behind other handles."""
    keys = list(handles)
    for share in (_SMALLEST_SHARE, 0.25, 0.5):
        label = f"{share:.0%} of the users"
        keys.append(ax.scatter([], [], s=_disc_size(share), color=GREY, lw=0, label=label))
    where: dict[str, Any] = {"loc": "outside lower center", "ncols": len(keys)}
    ax.get_figure().legend(handles=keys, **where)  # type: ignore[union-attr]


def who_leaves(ax: Axes, clusters: pd.DataFrame, scores: pd.DataFrame) -> Axes:
    """Draw who leaves a conversation where: a row a stop model, discs as large as the shares.

    ``clusters`` have a column ``stop model``; ``scores`` are those of the same run, with the
    columns ``stop model``, ``leave at a nugget`` and GFRC2, which stand at the right.
    """
    models = list(dict.fromkeys(clusters["stop model"]))
    for row, model in enumerate(models):
        part = clusters[clusters["stop model"] == model]
        disc: dict[str, Any] = {"color": (COLOURS[0], 0.6), "edgecolor": COLOURS[0]}
        ax.scatter(part["wc"], np.full(len(part), row), s=_disc_size(part["probability"]), **disc)
        ax.plot(
            part["wc"],
            np.full(len(part), row),
            "|",
            color="#444444",
            markersize=5,
            markeredgewidth=0.8,
        )
        score = scores[scores["stop model"] == model].iloc[0]
        leave_with_nothing = f"{1 - score['leave at a nugget']:.1%}"
        _write_beside(ax, row, (leave_with_nothing, f"{score['GFRC2']:.4f}"))
    _write_beside(ax, -1, ("leave with\nnothing", "GFRC2"))
    ax.set_xlim(0, max(ax.get_xlim()[1], clusters["wc"].max() * 1.1))  # the axis may be shared
    ax.set(ylim=(len(models) - 0.4, -0.7), xlabel="Word position of the nugget [words]")
    ax.set_yticks(range(len(models)), models)
    ax.set_title(literal(clusters["run"].iloc[0]), loc="left", fontsize=10, pad=14)
    return ax


def _write_beside(ax: Axes, row: float, texts: Sequence[str]) -> None:
    """Write texts into columns at the right of a row."""
    for column, text in enumerate(texts):
        shift = (6 + 54 * column, 0)
        style: Any = {"va": "center", "fontsize": 8.5, "annotation_clip": False}
        note(ax, text, (1, row), shift, xycoords=ax.get_yaxis_transform(), **style)
