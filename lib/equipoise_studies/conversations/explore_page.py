"""The page on which a reader chooses patience, gains, targets and stopping model, and sees scores.

The numbers are those of the report ``explore_conversations``; the page looks them up, and computes
none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.notebooks import Notebook
from equipoise_compendium.site.added import Page, Part, script
from equipoise_studies.conversations.explore import SETTINGS

REPORT = "explore_conversations"
TOPICS = {"M002": "films", "R112": "researchers"}
DECIMALS = 6
FIGURES = {
    "gfrc_time_travel_movies.html#gfrc-figure-5": "M002",
    "gfrc2_iclr_researchers.html#gfrc2-figure-4": "R112",
    "gfrc2_iclr_researchers.html#gfrc2-figure-5": "R112",
    "explore_conversations.html#M002": "M002",
    "explore_conversations.html#R112": "R112",
}
"""Topics of the figures from which a link leads here."""
CASES = ("gfrc_time_travel_movies", "gfrc2_iclr_researchers")
SCRIPT = Path(__file__).with_name("explore.js")


def _runs(topic: str, names: list[str]) -> tuple[list[dict[str, Any]], int]:
    """Runs of a topic with their turns and relevant nuggets; and the words of the longest."""
    folder = project.data("conversations", f"{topic}.csv").parent
    nuggets = pd.read_csv(folder / f"{topic}.csv", keep_default_na=False)
    turns = pd.read_csv(folder / f"{topic}_turns.csv")
    relevant = nuggets[nuggets["level"] > 0].astype({"end": int})
    longest = int(max(turns["end"].max(), relevant["end"].max(), turns["start"].max()))
    # The last turn may have no end; its band then reaches to the edge of the figure.
    turns["end"] = turns["end"].fillna(longest)
    runs = []
    for name in names:
        run_nuggets = relevant[relevant["run"] == name]
        system_turns = turns[(turns["run"] == name) & (turns["speaker"] == "system")]
        bands = [(int(turn.start), int(turn.end)) for turn in system_turns.itertuples()]
        nugget_rows = run_nuggets[["end", "level", "entity"]].to_dict("records")
        runs.append({"name": name, "turns": bands, "nuggets": nugget_rows})
    return runs, longest


def _grid(topic: str, table: pd.DataFrame) -> dict[str, Any]:
    """What the page shows of a topic: every score of every run under every choice of settings."""
    scores = [name for name in table if name not in ("run", *SETTINGS, "paper")]
    choices = {name: table[name].unique().tolist() for name in SETTINGS}
    run_names = table["run"].unique().tolist()
    values = table[scores].round(DECIMALS).to_numpy().tolist()
    runs, longest = _runs(topic, run_names)
    # The rows of a run are adjacent, and all runs have the same choices in the same order.
    rows_per_run = len(table) // len(run_names)
    paper_row = table.index[(table["paper"] == 1) & (table["run"] == run_names[0])][0]
    chosen = {}
    for name, options in choices.items():
        chosen[name] = options.index(table.loc[paper_row, name])
    return {
        "subject": TOPICS[topic],
        "runs": runs,
        "longest": longest,
        "scores": scores,
        "choices": choices,
        "chosen": chosen,
        "shown": [values[rows_per_run * run + paper_row] for run in range(len(run_names))],
        "lookup": {
            "runs": run_names,
            "scores": scores,
            "sizes": [len(options) for options in choices.values()],
            "patience": choices["patience"],
            "paper": list(chosen.values()),
            "longest": longest,
            "values": values,
        },
    }


def grids() -> dict[str, dict[str, Any]]:
    """What the page shows, by topic; empty if the report is missing."""
    grid_by_topic = {}
    for topic in TOPICS:
        path = project.root() / "reports" / REPORT / "figures" / f"{topic}.csv"
        if not path.is_file():
            return {}
        grid_by_topic[topic] = _grid(topic, pd.read_csv(path))
    return grid_by_topic


def values() -> dict[str, Any]:
    """Values of the template; empty where there is nothing to explore."""
    grid_by_topic = grids()
    if not grid_by_topic:
        return {}
    text, digest = script(SCRIPT)
    lookups = {topic: grid["lookup"] for topic, grid in grid_by_topic.items()}
    content = {"decimals": DECIMALS, "topics": lookups}
    data = json.dumps(content, separators=(",", ":"))
    return {
        "grids": grid_by_topic,
        "script": text,
        "digest": digest,
        # It is within a script element, which the text "</script>" would end.
        "data": data.replace("<", "\\u003c"),
        "case_notebooks": CASES,
        "report": REPORT,
    }


def page(notebooks: Mapping[str, Notebook]) -> Page | None:
    """The page, where its report has been made."""
    page_values = values() if REPORT in notebooks else {}
    moves = {figure: f"explore.html#about-{topic}" for figure, topic in FIGURES.items()}
    about = "change the settings of two conversations, and their scores move"
    entry = Part("explore.html", "Explore patience, gains, target and stopping model", about)
    return Page("explore", "Explore", page_values, (entry,), moves) if page_values else None
