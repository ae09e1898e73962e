"""The findings: sentences of ``data/findings.md``, with every number read from the committed reports.

A place such as ``{gfrc2/tables/x.csv | run=a, row=b | column | .2f}`` stands for the cell of the
one row with these values; the column ``#`` counts the rows. The file is below ``reports/``, links
lead to pages of the site.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from equipoise_compendium.shown import markdown_cell

_PAIRS = re.compile(r",(?=[^,=]+=)")  # a value may hold a comma
PLACE = re.compile(r"\{([^{}|]+)\|([^{}|]*)\|([^{}|]+)\|([^{}|]+)\}")


def render(template: str, folders: Sequence[Path]) -> str:
    """The findings as Markdown, files read from the first folder that has them.

    A place without its one row is refused.
    """

    @cache
    def table(file: str) -> pd.DataFrame:
        path = next((path for folder in folders if (path := folder / file).is_file()), None)
        if path is None:
            raise ValueError(f"data/findings.md: there is no file reports/{file}")
        return pd.read_csv(path, dtype=str, keep_default_na=False)

    def cell(found: re.Match[str]) -> str:
        file, keys, column, form = (part.strip() for part in found.groups())
        rows = table(file)
        for key, value in (
            pair.strip().split("=", 1) for pair in _PAIRS.split(keys) if pair.strip()
        ):
            rows = rows[rows[key] == value]
        if column == "#":
            return format(len(rows), form)
        if len(rows) != 1:
            raise ValueError(f"data/findings.md: {found[0]} names {len(rows)} rows, wanted one")
        text = str(rows[column].iloc[0])
        return markdown_cell(text) if form == "s" else format(float(text), form)

    return PLACE.sub(cell, template)
