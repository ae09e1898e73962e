"""The manifest of a report: what it holds and what made it, as JSON; and where a run is told to put it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
REPORT_FOLDER_VARIABLE = "EQUIPOISE_REPORT_FOLDER"
VARIANT_VARIABLE = "EQUIPOISE_VARIANT"


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Manifest of a report, or None where there is no report."""
    path = folder / MANIFEST
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a report, the same bytes for the same content."""
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
