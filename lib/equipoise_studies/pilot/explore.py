"""Scores of a case study under many settings, through which a page lets a reader move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from equipoise.attributes import AttributeSet
from equipoise.measures import gfrc, gfrc2
from equipoise.nuggets import NuggetTable
from equipoise.options import Gains
from equipoise_compendium.plots import literal, look, note

_PATIENCE_TICKS = (50, 100, 200, 500, 1250)
_SCORE_TICKS = (0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1)
_LABEL_HEIGHT = 0.055
"""Of a label at the end of a line, in heights of the axes."""
SETTINGS = ("patience", "gains", "target", "stop model")
_PAPER = "the paper's"


def _targets(attribute: AttributeSet) -> dict[str, AttributeSet]:
    """An attribute set with each of the targets to choose from."""
    groups = len(attribute.groups)
    half_to_first = [0.5] + [0.5 / (groups - 1)] * (groups - 1)
    return {
        _PAPER: attribute,
        "uniform": attribute.with_target("uniform"),
        "half to the first group": attribute.with_target(half_to_first),
        "half to the last group": attribute.with_target(half_to_first[::-1]),
    }


def paper_settings(measure: Any) -> tuple[Any, ...]:
    """The settings that `gfrc.gfrc` or `gfrc2.gfrc2` declares as defaults: those of its paper."""
    parameters = signature(measure).parameters
    return parameters["patience"].default, parameters["gains"].default, _PAPER, "words"


def settings_grid(
    nuggets: NuggetTable,
    attributes: Mapping[str, AttributeSet],
    paper: tuple[Any, ...],
    *,
    patience: Sequence[int],
    gains: Mapping[str, Gains],
    stop_models: Sequence[str],
) -> pd.DataFrame:
    """Scores of every run under every combination of settings, and whether it is the paper's (1).

    Columns are run, those of `SETTINGS`, paper, and a score each: R, GF, GFRC, EGNP, EGF, GFRC2,
    and served, the share of the users that leaves at a relevant nugget. Rows go through the
    settings in order, the last one fastest.
    """
    targets = {name: _targets(attribute) for name, attribute in attributes.items()}
    target_names = list(next(iter(targets.values())))
    expected_scores = {}
    served_by_run = {}
    rows = []
    for words, (gains_name, gain), target in product(patience, gains.items(), target_names):
        sets = {name: sets_by_target[target] for name, sets_by_target in targets.items()}
        conversations = gfrc.gfrc(nuggets, sets, patience=words, gains=gain)
        for stop_model in stop_models:
            # Only one stop model looks at the gains: the others are scored once for all of them.
            relevant_gains = gains_name if stop_model == "gain" else ""
            key = (words, target, stop_model, relevant_gains)
            if key not in expected_scores:
                settings: dict[str, Any] = {
                    "patience": words,
                    "gains": gain,
                    "stop_model": stop_model,
                }
                clusters = gfrc2.user_clusters(nuggets, sets, **settings)
                served_by_run[key] = clusters.groupby("run")["probability"].sum()
                expected_scores[key] = gfrc2.gfrc2(nuggets, sets, **settings)

            scores = pd.concat([conversations, expected_scores[key]])
            scores["score"] = (scores["measure"] + " " + scores["attribute"]).str.strip()
            wide = scores.pivot_table(index="run", columns="score", values="value", sort=False)
            wide["served"] = served_by_run[key].reindex(wide.index, fill_value=0.0)
            wide = wide.reset_index()
            wide.insert(1, "patience", words)
            wide.insert(2, "gains", gains_name)
            wide.insert(3, "target", target)
            wide.insert(4, "stop model", stop_model)
            is_paper = (words, gain, target, stop_model) == paper
            wide.insert(5, "paper", int(is_paper))
            rows.append(wide)
    table = pd.concat(rows, ignore_index=True)
    # one run after the other, in the order of their first row
    run_number = pd.factorize(table["run"])[0]
    return table.iloc[np.argsort(run_number, kind="stable")]


def _other_settings_as_in_the_paper(grid: pd.DataFrame) -> pd.DataFrame:
    """The rows that differ from the paper's settings in patience and stop model only."""
    paper = grid[grid["paper"] == 1].iloc[0]
    return grid[(grid["gains"] == paper["gains"]) & (grid["target"] == paper["target"])]


def by_patience(axes: Sequence[Axes], grid: pd.DataFrame) -> Sequence[Axes]:
    """Draw GFRC2 over the patience, a line for each stop model, all else as in the paper.

    An Axes for each run.
    """
    shown = _other_settings_as_in_the_paper(grid)
    for ax, (run, run_rows) in zip(axes, shown.groupby("run", sort=False), strict=True):
        for number, (name, rows) in enumerate(run_rows.groupby("stop model", sort=False)):
            style = look(number) | {"markersize": 5, "ls": ":", "lw": 0.8}
            ax.plot(rows["patience"], rows["GFRC2"], label=name, **style)
        ax.set_xscale("log")
        # Small scores are seen beside large ones, and 0 has a place.
        ax.set_yscale("function", functions=(np.cbrt, lambda root: root**3))
        ax.set(xlabel="Patience L [words]", ylabel="GFRC2", title=literal(run))
        ax.set_ylim(0, 1)
        ax.set_yticks(_SCORE_TICKS, map(str, _SCORE_TICKS))
        ax.set_xticks(_PATIENCE_TICKS, map(str, _PATIENCE_TICKS))
        ax.minorticks_off()
        _label_ends(ax)
    return axes


def _label_ends(ax: Axes) -> None:
    """Write at the last point of each line what it is, apart enough to read."""
    ends = []
    for line in ax.lines:
        x, y = np.asarray(line.get_xydata(), dtype=np.float64)[-1]
        ends.append((float(y), float(x), line))
    ends.sort(key=lambda end: end[0])
    highest = ax.get_ylim()[1]
    lowest = -np.inf
    for y, x, line in ends:
        # Along the axis, which is of cube roots.
        height = max(float(np.cbrt(y / highest)), lowest + _LABEL_HEIGHT)
        style = {"color": line.get_color(), "fontsize": 8.5, "va": "center"}
        place: Any = (x, highest * height**3)
        note(ax, str(line.get_label()), place, (8, 0), annotation_clip=False, **style)
        lowest = height


def reach(grid: pd.DataFrame) -> pd.DataFrame:
    """Compute the range of each score of each run over all settings, and how often it leads.

    Columns are ``run, score, paper`` (the value with the paper's settings), ``lowest, highest`` and
    ``leads``, the share of the settings under which the run has the higher value of two.
    """
    names = [name for name in grid.columns if name not in ("run", *SETTINGS, "paper")]
    tidy = grid.melt(["run", *SETTINGS, "paper"], names, "score")
    same_setting = tidy.groupby([*SETTINGS, "score"], sort=False)["value"]
    best, worst = same_setting.transform("max"), same_setting.transform("min")
    tidy["leads"] = (tidy["value"] == best) & (best > worst)
    groups = tidy.groupby(["run", "score"], sort=False)
    table = groups.agg(lowest=("value", "min"), highest=("value", "max"), leads=("leads", "mean"))
    table.insert(0, "paper", tidy[tidy["paper"] == 1].set_index(["run", "score"])["value"])
    return table.reset_index()
