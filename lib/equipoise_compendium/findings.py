"""The findings: sentences of ``data/findings.md``, with every number read from the reports.

A place such as ``{anscombe/tables/x.csv | run=a, row=b | column | .2f}`` stands for the cell of the
one row with these values; the column ``#`` counts the rows. The file is below ``reports/``, links
lead to pages of the site.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.shown import markdown_cell

# A value may hold a comma, so a condition ends only where another begins.
_CONDITION_ENDS = re.compile(r",(?=[^,=]+=)")
PLACE = re.compile(r"\{([^{}|]+)\|([^{}|]*)\|([^{}|]+)\|([^{}|]+)\}")


def render(template: str, folders: Sequence[Path]) -> str:
    """The findings as Markdown, files read from the first folder that has them.

    A place without its one row is refused.
    """

    @cache
    def table(file: str) -> pd.DataFrame:
        for folder in folders:
            path = project.inside(folder, file)
            if path.is_file():
                # As text: a word such as "nan" or "007" is shown unchanged.
                return pd.read_csv(path, dtype=str, keep_default_na=False)
        raise ValueError(f"data/findings.md: there is no file reports/{file}")

    def cell(place: re.Match[str]) -> str:
        file, conditions, column, number_format = (group.strip() for group in place.groups())
        rows = table(file)
        for condition in _CONDITION_ENDS.split(conditions):
            if not condition.strip():
                continue
            key, value = condition.strip().split("=", 1)
            rows = rows[rows[key] == value]
        if column == "#":
            return format(len(rows), number_format)
        if len(rows) != 1:
            raise ValueError(f"data/findings.md: {place[0]} names {len(rows)} rows, wanted one")
        text = str(rows[column].iloc[0])
        if number_format == "s":
            return markdown_cell(text)
        return format(float(text), number_format).replace("-", "−")

    return PLACE.sub(cell, template)
