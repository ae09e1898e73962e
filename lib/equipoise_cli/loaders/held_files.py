"""Files as people hold them: ids of documents in two collections."""

from __future__ import annotations

from pathlib import Path

from equipoise.files import read_columns
from equipoise.problems import Problems


def read_document_ids(path: str | Path) -> dict[str, str]:
    """The document that each counterfactual one was made of, from ``document,counterfactual``."""
    table, problems = read_columns(path, ["document", "counterfactual"]), Problems()
    numbered = table.assign(line=range(2, len(table) + 2))
    expected = "each counterfactual document once"
    problems.add_repeats(path, numbered, ["counterfactual"], "counterfactual", expected)
    problems.refuse()
    return dict(zip(table["counterfactual"], table["document"], strict=True))
