"""The page on which a reader moves patience, gains, targets and stop model, and sees scores and figure change.

The numbers are those of the report ``explore_conversations``; the page looks them up, and computes
none.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from typing import Any

import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.site.markup import TEMPLATES

REPORT = "explore_conversations"
TOPICS = ("M002", "R112")
SETTINGS = ("patience", "gains", "target", "stop model")
DECIMALS = 6
CASES = ("gfrc_time_travel_movies", "gfrc2_iclr_researchers")
WIDTH = 600
"""Units that a score of 1, and the longest conversation, take in the figures."""


def script(name: str = "explore") -> tuple[str, str]:
    """The script of a page, and what its policy must say for it to run."""
    text = (TEMPLATES / "site" / f"{name}.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return text, f"script-src 'sha256-{digest}'"


def _runs(topic: str, names: list[str]) -> tuple[list[dict[str, Any]], int]:
    """The runs of a topic with their words, turns and relevant nuggets; and the words of the longest."""
    folder = project.data("conversations", f"{topic}.csv").parent
    nuggets = pd.read_csv(folder / f"{topic}.csv", keep_default_na=False)
    turns = pd.read_csv(folder / f"{topic}_turns.csv")
    relevant = nuggets[nuggets["level"] > 0].astype({"end": int})
    longest = int(max(turns["end"].max(), relevant["end"].max(), turns["start"].max()))
    runs = []
    for name in names:
        of_run = relevant[relevant["run"] == name]
        system = turns[(turns["run"] == name) & (turns["speaker"] == "system")]
        bands = [
            (int(row.start), int(longest if math.isnan(row.end) else row.end))
            for row in system.itertuples()
        ]
        shown = of_run[["end", "level", "entity"]].to_dict("records")
        runs.append({"name": name, "turns": bands, "nuggets": shown})
    return runs, longest


def grids() -> dict[str, dict[str, Any]]:
    """What the page shows, by topic; empty where the report is not there."""
    found = dict[str, dict[str, Any]]()
    for topic in TOPICS:
        path = project.root() / "reports" / REPORT / "figures" / f"{topic}.csv"
        if not path.is_file():
            return {}
        table = pd.read_csv(path)
        scores = [name for name in table if name not in ("run", *SETTINGS, "paper")]
        choices = {name: table[name].unique().tolist() for name in SETTINGS}
        names, values = (
            table["run"].unique().tolist(),
            table[scores].round(DECIMALS).to_numpy().tolist(),
        )
        runs, longest = _runs(topic, names)
        size = len(table) // len(names)
        paper = table.index[(table["paper"] == 1) & (table["run"] == names[0])][0]
        chosen = {name: options.index(table.loc[paper, name]) for name, options in choices.items()}
        found[topic] = {
            "runs": runs,
            "longest": longest,
            "scores": scores,
            "choices": choices,
            "chosen": chosen,
            "shown": [values[size * number + paper] for number in range(len(names))],
            "lookup": {
                "runs": names,
                "scores": scores,
                "sizes": [len(options) for options in choices.values()],
                "patience": choices["patience"],
                "paper": list(chosen.values()),
                "longest": longest,
                "values": values,
            },
        }
    return found


def values() -> dict[str, Any]:
    """Values of the template; empty where there is nothing to explore."""
    if not (found := grids()):
        return {}
    text, policy = script()
    lookup = {topic: grid["lookup"] for topic, grid in found.items()}
    data = json.dumps(
        {"width": WIDTH, "decimals": DECIMALS, "topics": lookup}, separators=(",", ":")
    )
    return {
        "grids": found,
        "script": text,
        "policy": policy,
        "data": data.replace("<", "\\u003c"),
        "width": WIDTH,
        "case_notebooks": CASES,
    }
