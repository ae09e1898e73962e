"""The manifest of a report, which ledger, claims and site read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equipoise_compendium.formatting import rounded

MANIFEST = "manifest.json"
REPORT_FOLDER_VARIABLE = "EQUIPOISE_REPORT_FOLDER"
VARIANT_VARIABLE = "EQUIPOISE_VARIANT"


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Read the manifest of a report; return None if the report is missing."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{folder.name}/{MANIFEST} is damaged ({error}); build the notebook again"
        ) from None
    return manifest


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a report, the same bytes for the same content."""
    exact = json.dumps(manifest)
    content = json.loads(exact, parse_float=lambda number: rounded(float(number), scale=0))
    text = json.dumps(content, indent=1, sort_keys=True)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")
