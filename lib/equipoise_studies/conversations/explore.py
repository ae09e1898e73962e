"""Scores of a case study under many settings; the page *Explore* of the site shows the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from equipoise.attributes import AttributeSet
from equipoise.measures import gfrc, gfrc2
from equipoise.nuggets import NuggetTable
from equipoise.options import Gains
from equipoise_compendium.plots import literal, look
from equipoise_compendium.writing import rounded_table
from equipoise_studies.conversations.figures import label_ends, system_of

_PATIENCE_TICKS = (50, 100, 200, 500, 1250)
_LOW = 0.1
"""Part of the highest score below which a stopping model is drawn in axes of its own."""
SETTINGS = ("patience", "gains", "target", "stopping model")
_PAPER = "the paper's"


def _targets(attribute: AttributeSet) -> dict[str, AttributeSet]:
    """Return an attribute set with each of the targets to choose from."""
    groups = len(attribute.groups)
    half_to_first = [0.5] + [0.5 / (groups - 1)] * (groups - 1)
    return {
        _PAPER: attribute,
        "uniform": attribute.with_target("uniform"),
        "half to the first group": attribute.with_target(half_to_first),
        "half to the last group": attribute.with_target(half_to_first[::-1]),
    }


def paper_settings(measure: Any) -> tuple[Any, ...]:
    """Return the paper's settings, which `gfrc.gfrc` or `gfrc2.gfrc2` declares as defaults."""
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
    """Score every run under every combination of settings.

    Columns are run, the settings of `SETTINGS`, and paper, which is 1 with the paper's settings.
    One column per score follows: R, GF, GFRC, EGNP, EGF, GFRC2, and served, the share of users who
    leave at a relevant nugget. Rows are in the order of the settings; the last one changes fastest.
    """
    targets = {name: _targets(attribute) for name, attribute in attributes.items()}
    target_names = list(next(iter(targets.values())))
    expected_scores: dict[tuple[Any, ...], pd.DataFrame] = {}
    tables = []
    settings = []
    for words, (gains_name, gain), target in product(patience, gains.items(), target_names):
        sets = {name: sets_by_target[target] for name, sets_by_target in targets.items()}
        conversations = gfrc.gfrc(nuggets, sets, patience=words, gains=gain)
        for stop_model in stop_models:
            # Only one stopping model uses the gains; the others are scored once for all gains.
            relevant_gains = gains_name if stop_model == "gain" else ""
            key = (words, target, stop_model, relevant_gains)
            if key not in expected_scores:
                options: dict[str, Any] = {
                    "patience": words,
                    "gains": gain,
                    "stop_model": stop_model,
                }
                clusters = gfrc2.user_clusters(nuggets, sets, **options)
                served = clusters.groupby("run", as_index=False).agg(value=("probability", "sum"))
                served = served.assign(measure="served", attribute="")
                expected = gfrc2.gfrc2(nuggets, sets, **options)
                expected_scores[key] = pd.concat([expected, served])
            tables.append(pd.concat([conversations, expected_scores[key]]))
            is_paper = (words, gain, target, stop_model) == paper
            settings.append((words, gains_name, target, stop_model, int(is_paper)))
    scores = pd.concat(tables, keys=range(len(tables)), names=["setting"]).reset_index("setting")
    scores["score"] = (scores["measure"] + " " + scores["attribute"]).str.strip()
    wide = scores.pivot_table(
        index=["run", "setting"], columns="score", values="value", sort=False
    ).reset_index()
    wide["served"] = wide["served"].fillna(0.0)  # nobody leaves at a relevant nugget
    chosen = pd.DataFrame(settings, columns=[*SETTINGS, "paper"]).loc[wide.pop("setting")]
    table = pd.concat([wide.pop("run"), chosen.reset_index(drop=True), wide], axis=1)
    # runs in the order of their first rows
    run_number = pd.factorize(table["run"])[0]
    # Rounded, because `reach` decides which run has the higher value.
    return rounded_table(table.iloc[np.argsort(run_number, kind="stable")])


def by_patience(grid: pd.DataFrame) -> Figure:
    """Draw GFRC2 by patience for each run, one line per stopping model, all else as in the paper.

    Stopping models with much lower scores have a row of axes, and so a linear axis, of their own.
    """
    paper = grid[grid["paper"] == 1].iloc[0]
    shown = grid[(grid["gains"] == paper["gains"]) & (grid["target"] == paper["target"])]
    highest = shown.groupby("stopping model", sort=False)["GFRC2"].max()
    is_low = highest < highest.max() * _LOW
    rows_of_models = [models for models in (highest[~is_low], highest[is_low]) if models.size]
    runs = list(dict.fromkeys(shown["run"]))
    figure, axes = plt.subplots(
        len(rows_of_models),
        len(runs),
        figsize=(11, 2.8 * len(rows_of_models)),
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    for (run, model), rows in shown.groupby(["run", "stopping model"], sort=False):
        ax = axes[-1 if is_low[model] else 0, runs.index(run)]
        style = look(list(highest.index).index(model)) | {"markersize": 5, "lw": 1}
        ax.plot(rows["patience"], rows["GFRC2"], label=model, **style)
    for run, ax in zip(runs, axes[0], strict=True):
        at_paper = shown[(shown["run"] == run) & (shown["patience"] == paper["patience"])]["GFRC2"]
        ends = f"{at_paper.min():.4f} to {at_paper.max():.4f}"
        title = f"{system_of(run)}: {ends}\nat L = {paper['patience']}, n = {len(highest)} models"
        ax.set_title(literal(title), loc="left", fontsize=10, pad=16)
    for ax in axes.flat:
        ax.set_xscale("log")
        ax.set_xticks(_PATIENCE_TICKS, map(str, _PATIENCE_TICKS))
        ax.minorticks_off()
    for row, models in zip(axes, rows_of_models, strict=True):
        row[0].set(ylabel="GFRC2 (0 to 1)", ylim=(0, 1.1 * models.max()))
        for ax in row:
            label_ends(ax)
    for ax in axes[-1]:
        ax.set_xlabel("Patience L (words, logarithmic)")
    return figure


def reach(grid: pd.DataFrame) -> pd.DataFrame:
    """Compute the range of each score over all settings, and how often each run leads.

    Columns are ``run, score, paper`` (the value with the paper's settings), ``lowest, highest`` and
    ``leads``, the share of settings in which the run has the higher value of two.
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
