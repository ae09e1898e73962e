"""Scores of a case study under many settings at once; a page of the site looks them up for a reader to move through."""

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
from equipoise_compendium.plots import look

SETTINGS = ("patience", "gains", "target", "stop model")
_FILE = "the paper's"


def _targets(attribute: AttributeSet) -> dict[str, AttributeSet]:
    """An attribute set with each of the targets to choose from."""
    first = np.full(len(attribute.groups), 0.5 / (len(attribute.groups) - 1))
    first[0] = 0.5
    made = {"uniform": "uniform", "half to the first group": first.tolist()}
    made["half to the last group"] = first[::-1].tolist()
    return {_FILE: attribute} | {
        name: attribute.with_target(target) for name, target in made.items()
    }


def paper_settings(measure: Any) -> tuple[Any, ...]:
    """The settings of the paper of a measure, `gfrc.gfrc` or `gfrc2.gfrc2`: those that it declares as defaults."""
    defaults = {
        name: parameter.default for name, parameter in signature(measure).parameters.items()
    }
    return defaults["patience"], defaults["gains"], _FILE, "words"


def settings_grid(
    nuggets: NuggetTable,
    attributes: Mapping[str, AttributeSet],
    paper: tuple[Any, ...],
    *,
    patience: Sequence[int],
    gains: Mapping[str, Gains],
    stop_models: Sequence[str],
) -> pd.DataFrame:
    """Every score of every run under every combination of settings, and which combination is the paper's (1).

    Columns are run, those of `SETTINGS`, paper, and a score each: R, GF, GFRC, EGNP, EGF, GFRC2,
    and served, the share of the users that leaves at a relevant nugget. Rows go through the
    settings in order, the last one fastest.
    """
    targets = {name: _targets(attribute) for name, attribute in attributes.items()}
    rows, expected = [], dict[tuple[Any, ...], tuple[pd.DataFrame, pd.Series]]()
    for words, (label, gain), target in product(
        patience, gains.items(), next(iter(targets.values()))
    ):
        sets = {name: of_set[target] for name, of_set in targets.items()}
        conversations = gfrc.gfrc(nuggets, sets, patience=words, gains=gain)
        for stop_model in stop_models:
            known = (
                words,
                target,
                stop_model,
                label if stop_model == "gain" else "",
            )  # no other looks at the gains
            if known not in expected:
                how: dict[str, Any] = {"patience": words, "gains": gain, "stop_model": stop_model}
                clusters = gfrc2.user_clusters(nuggets, sets, **how)
                served = clusters.groupby("run")["probability"].sum()
                expected[known] = gfrc2.gfrc2(nuggets, sets, **how), served
            scores = pd.concat([conversations, expected[known][0]])
            scores["score"] = (scores["measure"] + " " + scores["attribute"]).str.strip()
            wide = scores.pivot_table(index="run", columns="score", values="value", sort=False)
            wide = wide.assign(
                served=expected[known][1].reindex(wide.index, fill_value=0.0)
            ).reset_index()
            setting = (words, label, target, stop_model)
            is_paper = int((words, gain, target, stop_model) == paper)
            for place, (name, value) in enumerate(
                zip((*SETTINGS, "paper"), (*setting, is_paper), strict=True), 1
            ):
                wide.insert(place, name, value)
            rows.append(wide)
    table = pd.concat(rows, ignore_index=True)
    return table.sort_values(
        "run", kind="stable", key=lambda run: run.map({r: i for i, r in enumerate(run.unique())})
    )


def by_patience(axes: Sequence[Axes], grid: pd.DataFrame) -> Sequence[Axes]:
    """Draw GFRC2 of each run over the patience, a line for each stop model, all else as in the paper; axes by run."""
    paper = grid[grid["paper"] == 1].iloc[0]
    shown = grid[(grid["gains"] == paper["gains"]) & (grid["target"] == paper["target"])]
    for ax, (run, of_run) in zip(axes, shown.groupby("run", sort=False), strict=True):
        for number, (name, rows) in enumerate(of_run.groupby("stop model", sort=False)):
            ax.plot(rows["patience"], rows["GFRC2"], label=name, markersize=4, **look(number))
        ax.set(xlabel="Patience L [words]", ylabel="GFRC2", ylim=(0, 1), title=run)
    axes[-1].legend(title="Users leave by", fontsize=8.5)
    return axes


def lines_in_words(grid: pd.DataFrame) -> str:
    """What `by_patience` draws: from where to where GFRC2 of each run goes with each stop model."""
    paper = grid[grid["paper"] == 1].iloc[0]
    shown = grid[(grid["gains"] == paper["gains"]) & (grid["target"] == paper["target"])]
    ends = shown.groupby(["run", "stop model"], sort=False)["GFRC2"].agg(["first", "last"])
    told = (
        f"{run}, {model}: {first:.3f} to {last:.3f}"
        for (run, model), first, last in ends.itertuples()
    )
    return f"GFRC2 from the least to the greatest patience. {'; '.join(told)}"


def reach(grid: pd.DataFrame) -> pd.DataFrame:
    """Lowest and highest value of each score of each run over all settings, the paper's, and how often it leads.

    Columns are run, score, paper, lowest, highest, and leads: the share of the settings under which
    the run has the higher value of two.
    """
    names = [name for name in grid.columns if name not in ("run", *SETTINGS, "paper")]
    tidy = grid.melt(["run", *SETTINGS, "paper"], names, "score")
    best = tidy.groupby([*SETTINGS, "score"], sort=False)["value"].transform("max")
    rivals = tidy.groupby([*SETTINGS, "score"], sort=False)["value"].transform("min")
    tidy["leads"] = (tidy["value"] == best) & (best > rivals)
    groups = tidy.groupby(["run", "score"], sort=False)
    table = groups.agg(lowest=("value", "min"), highest=("value", "max"), leads=("leads", "mean"))
    table.insert(0, "paper", tidy[tidy["paper"] == 1].set_index(["run", "score"])["value"])
    return table.reset_index()


def told(topic: str, grid: pd.DataFrame) -> str:
    """How far GFRC2 of the run that is ahead can be moved, and how often it stays ahead, in a sentence."""
    rows = reach(grid).query("score == 'GFRC2'")
    ahead = rows.loc[rows["paper"].idxmax()]
    settings = len(grid) // grid["run"].nunique()
    return (
        f"On {topic}, {ahead['run']} has a GFRC2 of {ahead['paper']:.6f} with the paper's settings, and between "
        f"{ahead['lowest']:.6f} and {ahead['highest']:.6f} over all {settings} settings. It is ahead of the other run "
        f"under {ahead['leads']:.0%} of them."
    )
