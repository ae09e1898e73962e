"""Figures of conversations: outcomes, position weights, user clusters, and where users leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from equipoise.attributes import AttributeSet
from equipoise.measures.group_fairness import column_names
from equipoise.nuggets import NuggetTable
from equipoise_compendium.nugget_figure import WORD_POSITION, relevant_rows, turn_bands, turn_key
from equipoise_compendium.plots import COLOURS, GREY, literal, look, note

_PATTERNS: Mapping[str, tuple[str, str]] = {
    "oo": ("#6BBF8A", "useful, useful"),
    "ox": ("#CDE8C5", "useful, then not"),
    "xo": ("#FBE38E", "not useful, then useful"),
    "xx": ("#F3B183", "not useful twice"),
    "x-": ("#CFCFCF", "breakdown"),
}
"""Colour and meaning of each pair of outcomes; the colours follow gfrc's Figures 2 to 4."""
_LINES = ("-", "--", ":", "-.")


def system_of(run: str) -> str:
    """Return the system of a run of a case study: "COPWA" of "COPWA-CS-QD-MN-2"."""
    return run.partition("-")[0].replace("google", "Google").replace("bing", "Bing")


def heading(run: str, topic: str) -> str:
    """Return the heading of a conversation of a case study."""
    return f"{system_of(run)}, topic {topic}"


def label_ends(ax: Axes) -> None:
    """Write the label of each line next to its last point, far enough from the other labels.

    Needs the limits of the axes.
    """
    low, high = ax.get_ylim()
    # in points, of which an inch has 72
    height = ax.get_window_extent().height / ax.figure.dpi * 72
    ends = []
    for line in ax.lines:
        x, y = np.asarray(line.get_xydata(), dtype=np.float64)[-1]
        ends.append(((y - low) / (high - low) * height, (x, y), line))
    lowest = -np.inf
    for at, point, line in sorted(ends, key=lambda end: end[0]):
        label_at = max(at, lowest + 14)
        colour = line.get_color()
        arrow = {"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkA": 0, "shrinkB": 3}
        style: dict[str, Any] = {"color": colour, "fontsize": 9, "va": "center"}
        shift = (16, label_at - at)
        note(
            ax,
            str(line.get_label()),
            point,
            shift,
            arrowprops=arrow,
            annotation_clip=False,
            **style,
        )
        lowest = label_at


def outcomes(ax: Axes, turns: pd.DataFrame) -> Axes:
    """Draw the outcomes of turns 1 and 2, one row per topic (gfrc Figures 2 to 4).

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
        above: Any = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
        note(ax, literal(run).replace("-", "-\n", 1), (2.15 * column + 1, 1.0), (0, 20), **above)
    ax.set_xticks(centres, ["S1", "S2"] * len(runs))
    ax.xaxis.tick_top()
    ax.set_yticks(np.arange(len(topics)) + 0.5, topics)
    ax.set(xlim=(0, 2.15 * len(runs) - 0.15), ylim=(len(topics), 0), ylabel="Topic")
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    handles = []
    for pair, (colour, label) in _PATTERNS.items():
        if count := (pairs == pair).sum():
            handles.append(Patch(color=colour, label=f"{' '.join(pair)}: {label} (n = {count})"))
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2)
    both = (pairs == "oo").sum()
    title = f"Both turns are useful in {both} of n = {len(pairs)} conversations"
    ax.set_title(title, loc="left", pad=54, fontsize=11)
    return ax


def two_rounds(ax: Axes, turns: Sequence[tuple[str, str]], breakdown: str) -> Axes:
    """Draw the two-round protocol (gfrc Figure 1), which may end after the first answer.

    ``turns`` are names and contents, ``breakdown`` is the name of the early end.
    """
    for place, (name, content) in enumerate(turns):
        colour = "#E4E4E4" if name.startswith("S") else "#CFCFCF"
        ax.add_patch(Rectangle((place, 0.45), 0.86, 0.5, facecolor=colour))
        ax.text(place + 0.43, 0.7, f"{name}\n{content}", ha="center", va="center", fontsize=8.5)
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


def user_groups(clusters: pd.DataFrame, similarities: Mapping[str, str]) -> Figure:
    """Draw where users of ranked lists stop, and the groups of the documents they have read.

    ``clusters`` are those of `equipoise.measures.gfr.gfr_clusters`, ``similarities`` the measure to
    draw by attribute set. Each topic is a column: above, the share of users who have stopped by a
    rank; below, one axes per attribute set with the similarity to its target.
    """
    runs = list(dict.fromkeys(clusters["run"]))
    attributes = clusters[clusters["attribute"].isin(list(similarities))]
    sets = attributes.groupby("topic", sort=False)["attribute"].unique()
    rows, columns = 1 + int(sets.map(len).max()), len(sets)
    size: Any = {"figsize": (8, 2.6 * rows + 0.6)}
    figure, axes = plt.subplots(rows, columns, sharex=True, sharey="row", squeeze=False, **size)
    last_rank = clusters["rank"].max()
    for column, (topic, names) in enumerate(sets.items()):
        by_rank = clusters[clusters["topic"] == topic].pivot_table(
            index=["run", "rank"], columns=["measure", "attribute"], values="value"
        )
        top, *below = axes[:, column]
        stopped = {}
        for number, run in enumerate(runs):
            style = look(number) | {"ls": _LINES[number % len(_LINES)], "lw": 1.3, "ms": 4.5}
            share = pd.Series({0: 0.0})
            if run in by_rank.index:
                of_run = by_rank.loc[run]
                share = pd.concat([share, of_run["share", ""].cumsum()])
                for ax, name in zip(below, names, strict=False):
                    ax.plot(of_run.index, of_run[similarities[name], name], **style)
            stopped[run] = 100 * share.iloc[-1]
            share.loc[last_rank] = share.iloc[-1]
            line = {"drawstyle": "steps-post", "label": literal(run)}
            top.plot(share.index, 100 * share, **style | line, markevery=range(1, len(share) - 1))
        range_of = f"{min(stopped.values()):.0f} to {max(stopped.values()):.0f}%"
        top.set_title(f"Topic {literal(topic)}\n{range_of} of users stop", loc="left", fontsize=9)
        nobody = [literal(run) for run, share in stopped.items() if not share]
        for ax, name in zip(below, names, strict=False):
            _title_similarity(ax, name, similarities[name], by_rank)
            if nobody:
                remark = f"{', '.join(nobody)}: no relevant\ndocument, nobody stops"
                ax.text(0.03, 0.05, remark, transform=ax.transAxes, fontsize=9)
        for ax in below[len(names) :]:
            ax.set_axis_off()
        lowest = axes[len(names), column]
        lowest.set_xlabel("Rank at which users stop")
        lowest.tick_params(labelbottom=True)
    axes[0, 0].set(ylabel="Users who have stopped (%)", ylim=(-4, 104), xlim=(0, last_rank + 0.5))
    for ax in axes[1:, 0]:
        ax.set(ylabel="Similarity to target (DistrSim)", ylim=(0, 1.04))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    title = f"Run (n = {columns} topics)"
    style = {"loc": "outside lower center", "ncols": len(runs), "handlelength": 3.5}
    figure.legend(handles, labels, title=title, **style)
    return figure


def _title_similarity(ax: Axes, name: str, measure: str, by_rank: pd.DataFrame) -> None:
    """Write the attribute set, its divergence, and the range over runs of the users' mean."""
    share, similarity = by_rank["share", ""], by_rank[measure, name]
    means = (share * similarity).groupby("run").sum() / share.groupby("run").sum()
    divergence = measure.removeprefix("DistrSim-")
    ends = f"{means.min():.2f}" if len(means) == 1 else f"{means.min():.2f} to {means.max():.2f}"
    title = f"{literal(name)} ({divergence})\nmean {ends}"
    ax.set_title(title, loc="left", fontsize=9)


def who_leaves(clusters: pd.DataFrame, scores: pd.DataFrame) -> Figure:
    """Draw the share of users who leave at each nugget: a row per stopping model, a column per run.

    ``clusters`` are user clusters by ``stopping model``; ``scores`` have the columns
    ``stopping model``, ``run``, ``leave at a nugget`` and GFRC2.
    """
    models = list(dict.fromkeys(scores["stopping model"]))
    runs = list(dict.fromkeys(scores["run"]))
    figure, axes = plt.subplots(
        len(models),
        len(runs),
        figsize=(8, 0.85 * len(models) + 1),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for score in scores.to_dict("records"):
        model, run = score["stopping model"], score["run"]
        ax = axes[models.index(model), runs.index(run)]
        part = clusters[(clusters["stopping model"] == model) & (clusters["run"] == run)]
        ax.vlines(part["wc"], 0, 100 * part["probability"], color=COLOURS[0], lw=4)
        ax.plot(part["wc"], np.full(len(part), -12), "|", color="black", markersize=5)
        nothing = 1 - score["leave at a nugget"]
        text = f"{nothing:.1%} leave with nothing\nGFRC2 = {score['GFRC2']:.4f}"
        ax.text(0.99, 0.5, text, transform=ax.transAxes, ha="right", va="center", fontsize=9)
        if model == models[0]:
            title = f"{system_of(run)}: n = {len(part)} relevant nuggets (ticks)"
            ax.set_title(title, loc="left", fontsize=10)
        if model == models[-1]:
            ax.set_xlabel("Word position of the nugget (words)")
        label = model if run == runs[0] else ""
        ax.set_ylabel(label, rotation=0, ha="right", va="center")
    last = max(1, clusters["wc"].max())  # 1 without any nugget
    axes[0, 0].set(ylim=(-22, 104), yticks=(0, 50, 100), xlim=(0, 2.4 * last))
    by_share = scores.sort_values("leave at a nugget", kind="stable")
    most, least = (
        f"{1 - row['leave at a nugget']:.1%} ({row['stopping model']})"
        for _, row in by_share.iloc[[0, -1]].iterrows()
    )
    figure.suptitle(f"From {least} to {most} of the users leave with nothing", fontsize=11)
    figure.supylabel("Users who leave at the nugget (%), by stopping model", fontsize=10)
    return figure


def position_weight(ax: Axes, weights: pd.DataFrame, scores: pd.DataFrame) -> Axes:
    """Draw the position weight by word position, with the nuggets of each run (gfrc Figure 1).

    ``weights`` has the columns WC and pw, the ends of the slope; ``scores`` are those of
    `gfrc.nugget_scores`.
    """
    ax.plot(weights["WC"], weights["pw"], color=GREY)
    # The label of the upper end is right of it, the label of the lower end below.
    alignments = ("left", "right")
    shifts = ((8, 2), (4, -16))
    for end, alignment, shift in zip(weights.itertuples(), alignments, shifts, strict=True):
        ax.plot(end.WC, end.pw, "|", color="black", markersize=10)
        note(ax, f"pw = {end.pw:g} at WC = {end.WC:g}", (end.WC, end.pw), shift, ha=alignment)
    for number, (run, rows) in enumerate(scores.groupby("run", sort=False)):
        style = look(number) | {"markersize": 7, "markerfacecolor": "none", "linestyle": "none"}
        ax.plot(rows["wc"], rows["pw"], **style)
        last = rows.loc[rows["wc"].idxmax()]
        label = f"{system_of(str(run))}: n = {len(rows)} relevant nuggets"
        note(ax, label, (last["wc"], last["pw"]), (10, 1), color=style["color"])
    ax.set_xlabel("Word position WC of the nugget's last word (words)")
    ax.set(ylabel="Position weight pw", ylim=(-0.16, 1.1))
    ax.set_xlim(0, weights["WC"].max() * 1.02)
    return ax


def user_clusters(
    axes: Sequence[Axes], clusters: pd.DataFrame, attributes: Mapping[str, AttributeSet]
) -> Sequence[Axes]:
    """Draw utility and group fairness of user clusters, one axes per run (gfrc2 Figures 4 and 5).

    All axes have the same words, so that conversations can be compared.
    """
    columns = {"utility (GNP)": "GNP"}
    for name, attribute_set in attributes.items():
        columns[f"fairness ({name})"] = column_names(attribute_set)[-1]
    for ax, (run, rows) in zip(axes, clusters.groupby("run", sort=False), strict=True):
        for index, (label, column) in enumerate(columns.items()):
            ax.plot(rows["wc"], rows[column], label=literal(label), **look(index))
        ax.set(ylabel="Utility or fairness (0 to 1)", ylim=(0, 1))
        ax.set_xlim(0, clusters["wc"].max() * 1.3)
        ax.set_xlabel(f"Word at which the user cluster leaves (n = {len(rows)} clusters)")
        changes = rows[list(columns.values())].diff().abs()
        if len(rows) > 1:
            moving, place = changes.max().idxmax(), changes.max(axis=1).idxmax()
            label = next(label for label, column in columns.items() if column == moving)
            title = f"the largest step is {label} at word {rows.loc[place, 'wc']}"
            ax.set_title(literal(f"{system_of(str(run))}: {title}"), loc="left", fontsize=10)
        label_ends(ax)
    return axes


def user_model(
    ax: Axes, clusters: pd.DataFrame, nuggets: NuggetTable, conversation: int, turns: pd.DataFrame
) -> Axes:
    """Draw the words of a conversation and the user clusters of GFRC2 (gfrc2 Figure 1).

    ``clusters`` are the user clusters of the conversation, ``conversation`` is its number in the
    table of nuggets.
    """
    rows, right = relevant_rows(nuggets, conversation, turns)
    turn_bands(ax, turns, right)
    for start, end in zip(nuggets.start[rows], nuggets.end[rows], strict=True):
        bar = (start - 0.5, -0.12), end - start + 1, 0.1
        ax.add_patch(Rectangle(*bar, facecolor=COLOURS[0], edgecolor="white", lw=1))
    arrow = {"arrowstyle": "-|>", "color": COLOURS[1], "lw": 1.5, "shrinkA": 0, "shrinkB": 0}
    for number, cluster in enumerate(clusters.itertuples(), start=1):
        tip = (cluster.wc + 0.5, cluster.Experience)
        ax.annotate("", tip, xytext=(cluster.wc + 0.5, -0.02), arrowprops=arrow)
        note(ax, f"{number}", tip, (0, 3), ha="center", color=COLOURS[1])
    experience = clusters["Experience"]
    if len(clusters):
        ends = f"from {experience.iloc[0]:.2f} to {experience.iloc[-1]:.2f}"
        title = f"Experience goes {ends} over n = {len(clusters)} user clusters"
        ax.set_title(title, loc="left", fontsize=10, pad=16)
    ax.set(xlabel=WORD_POSITION, ylabel="Experience of the cluster\nthat leaves here (0 to 1)")
    # Below 0 is the room of the nuggets.
    ax.set(ylim=(-0.14, 1), xlim=(0, right + 1))
    scale = np.linspace(0, 1, 6)
    ax.set_yticks([-0.07, *scale], ["nuggets", *(f"{value:.1f}" for value in scale)])
    ax.get_yticklabels()[0].set_color(COLOURS[0])
    ax.legend(handles=turn_key(), loc="upper left", bbox_to_anchor=(0, -0.24), ncols=2)
    return ax


def systems_of_ikat(table: pd.DataFrame, panels: Mapping[str, str]) -> Figure:
    """Draw one row per system with its interval in each panel.

    ``table``: one row per system, columns run, kind, and for each panel its value, low and high.
    ``panels``: label of the axis by column of the value.
    """
    rows = np.arange(len(table))[::-1]
    figure, axes = plt.subplots(1, len(panels), figsize=(9, 0.27 * len(table) + 1), sharey=True)
    for ax, (column, label) in zip(axes, panels.items(), strict=True):
        for number, (kind, part) in enumerate(table.groupby("kind")):
            at = rows[table["kind"] == kind]
            low, high = part[f"{column}, low"], part[f"{column}, high"]
            ax.hlines(at, low, high, color=COLOURS[number], linewidth=1.5)
            style = look(number)
            ax.plot(part[column], at, linestyle="none", label=str(kind), markersize=5, **style)
        ax.set_xlabel(label)
        ax.set_xlim(left=0)
        ax.locator_params(axis="x", nbins=3)
        ax.tick_params(axis="y", labelsize=8)
    axes[0].set_yticks(rows, [literal(run) for run in table["run"]])
    axes[-1].legend(loc="lower right", fontsize=8)
    return figure
