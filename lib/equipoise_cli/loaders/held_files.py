"""Files as people hold them: ids of documents in two collections."""

from __future__ import annotations

from pathlib import Path

from equipoise.files import read_columns
from equipoise.problems import Problems


def read_document_ids(path: str | Path) -> dict[str, str]:
    """The document that each counterfactual one was made of, from ``document,counterfactual``."""
    return read_mapping(path, "counterfactual", "document", "each counterfactual document once")


def read_mapping(path: str | Path, key: str, value: str, expected: str) -> dict[str, str]:
    """The values of one column by those of another, which are there once as ``expected`` says."""
    table, problems = read_columns(path, [key, value]), Problems()
    numbered = table.assign(line=range(2, len(table) + 2))
    problems.add_repeats(path, numbered, [key], key, expected)
    problems.refuse()
    return dict(zip(table[key], table[value], strict=True))
