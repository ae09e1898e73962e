"""The page on which a reader moves the numbers, and what it should show."""

from __future__ import annotations

import pandas as pd

from equipoise_compendium import project

PAGE = project.root() / "reports" / "site" / "explore.html"
SETTINGS = ["patience", "gains", "target", "stop model"]


def report(topic: str) -> pd.DataFrame:
    """The CSV of the build."""
    return pd.read_csv(
        project.root() / "reports" / "explore_conversations" / "figures" / f"{topic}.csv"
    )


def wanted(topic: str, **chosen: int) -> list[list[str]]:
    """What the table of a topic has to say, by score and run; settings by place in the report."""
    table = report(topic)
    names = [name for name in table if name not in ("run", *SETTINGS, "paper")]
    for name, place in chosen.items():
        column = name.replace("_", " ")
        table = table[table[column] == report(topic)[column].unique()[place]]
    assert len(table) == 2
    return [[f"{value:.6f}" for value in table[name]] for name in names]
