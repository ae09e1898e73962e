"""The findings: sentences of ``data/findings.md``, with numbers read from the reports.

A placeholder such as ``{anscombe/tables/x.csv | run=a, row=b | column | .2f}`` is replaced by the
cell of the only row with these values. The column ``#`` counts the rows. Files are below
``reports/``, and links lead to pages of the site.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from functools import cache

import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.rendering import markdown_cell

# A value may contain a comma, so a condition ends only where another begins.
_CONDITION_ENDS = re.compile(r",(?=[^,=]+=)")
PLACE = re.compile(r"\{([^{}|]+)\|([^{}|]*)\|([^{}|]+)\|([^{}|]+)\}")


class MissingReportError(ValueError):
    """A sentence reads a number from a report that is missing."""


def render(template: str, made: Mapping[str, str]) -> str:
    """Return the findings as Markdown; ``made``: files of ``reports/`` that are to be written.

    Raises ValueError if a placeholder does not match exactly one row.
    """

    @cache
    def table(file: str) -> pd.DataFrame:
        path = project.inside(project.root() / "reports", file)
        if file not in made and not path.is_file():
            raise MissingReportError(f"data/findings.md: reports/{file} not found")
        source = io.StringIO(made[file]) if file in made else path
        # As text: a word such as "nan" or "007" is shown unchanged.
        return pd.read_csv(source, dtype=str, keep_default_na=False)

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
            raise ValueError(f"data/findings.md: {place[0]} must match one row, got {len(rows)}")
        text = str(rows[column].iloc[0])
        if number_format == "s":
            return markdown_cell(text)
        return format(float(text), number_format).replace("-", "−")

    return PLACE.sub(cell, template)
