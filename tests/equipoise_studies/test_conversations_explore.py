"""The grid of settings that the site's page looks up."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from equipoise.attributes import AttributeSet, read_attributes
from equipoise.measures import gfrc, gfrc2
from equipoise.nuggets import NuggetTable, read_nuggets
from equipoise_compendium import project
from equipoise_compendium.formatting import rounded
from equipoise_compendium.printed import printed_table
from equipoise_studies.conversations import explore

GAINS: dict[str, Any] = {"halves": {1: 0.5, 2: 1.0}, "exponential": {1: 0.25, 2: 0.75}}


def case(topic: str, sets: str) -> tuple[NuggetTable, dict[str, AttributeSet]]:
    attributes = read_attributes(project.data("attributes", f"fairweb_{sets}.yaml"))
    return read_nuggets(project.data("conversations", f"{topic}.csv"), attributes), dict(attributes)


def test_the_papers_settings_give_the_papers_numbers() -> None:
    paper = explore.paper_settings(gfrc2.gfrc2)
    grid = explore.settings_grid(
        *case("R112", "researchers"),
        paper,
        patience=[100, 1000],
        gains=GAINS,
        stop_models=["words", "gain"],
    )
    assert len(grid) == 2 * 2 * 2 * 4 * 2
    printed = printed_table("gfrc2/table-3").set_index("run")
    own = grid[grid["paper"] == 1].set_index("run")
    for name in printed.columns.intersection(own.columns):
        assert own[name].to_dict() == pytest.approx(printed[name].astype(float).to_dict(), abs=5e-5)
    assert {"GFRC2", "EGNP"} <= set(printed.columns)


def test_each_row_is_that_of_its_settings() -> None:
    nuggets, attributes = case("M002", "movies")
    paper = explore.paper_settings(gfrc.gfrc)
    stop_models: list[Any] = ["words", "gain", "turns"]
    grid = explore.settings_grid(
        nuggets, attributes, paper, patience=[50, 1250], gains=GAINS, stop_models=stop_models
    )
    assert not grid.isna().any(axis=None)
    uniform = {name: attribute.with_target("uniform") for name, attribute in attributes.items()}
    for label, gains in GAINS.items():
        for stop_model in stop_models:
            how: dict[str, Any] = {"patience": 50, "gains": gains}
            scores = pd.concat(
                [
                    gfrc.gfrc(nuggets, uniform, **how),
                    gfrc2.gfrc2(nuggets, uniform, **how, stop_model=stop_model),
                ]
            )
            chosen = {
                "patience": 50,
                "gains": label,
                "target": "uniform",
                "stopping model": stop_model,
            }
            row = grid.loc[(grid[list(chosen)] == pd.Series(chosen)).all(axis=1)].set_index("run")
            for run, attribute, measure, value in scores.drop(columns="topic").itertuples(
                index=False
            ):
                assert row.loc[run, f"{measure} {attribute}".strip()] == rounded(value)
    served = (
        grid[(grid["stopping model"] == "words") & (grid["patience"] == 1250)]
        .groupby("run")["served"]
        .unique()
    )
    assert {run: list(values) for run, values in served.items()} == {
        "bing-1": [10 / 1250],
        "google-1": [2 / 1250],
    }
    half = grid[grid["target"] == "half to the first group"]
    assert (
        half["GF RATINGS"].to_numpy()
        != grid.loc[grid["target"] == "uniform", "GF RATINGS"].to_numpy()
    ).all()


def test_reach_is_the_range_and_who_leads() -> None:
    rows = [
        ["a", 1, 1, 0.2],
        ["a", 2, 0, 0.5],
        ["a", 3, 0, 0.4],
        ["b", 1, 1, 0.1],
        ["b", 2, 0, 0.6],
        ["b", 3, 0, 0.4],
    ]
    grid = pd.DataFrame(rows, columns=["run", "patience", "paper", "GFRC2"])
    grid = grid.assign(gains="", target="", **{"stopping model": ""})
    expected = {
        "run": ["a", "b"],
        "score": ["GFRC2"] * 2,
        "paper": [0.2, 0.1],
        "lowest": [0.2, 0.1],
    }
    expected |= {"highest": [0.5, 0.6], "leads": [1 / 3, 1 / 3]}
    pd.testing.assert_frame_equal(explore.reach(grid), pd.DataFrame(expected), check_dtype=False)
