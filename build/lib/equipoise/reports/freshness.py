"""Freshness: whether a report is what its code, data, parameters and versions would make today."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from equipoise import project
from equipoise.loaders import registry
from equipoise.reports.notebooks import Notebook
from equipoise.reports.report import MANIFEST


def output_digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): project.sha256(path) for path in files}


def read_manifest(folder: Path) -> dict[str, Any] | None:
    path = folder / MANIFEST
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def complete_manifest(notebook: Notebook, parameters: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Add to a manifest what the notebook itself cannot know: its sources, parameters and the files it has left."""
    manifest = read_manifest(folder) or {}
    manifest |= {"sources": notebook.sources(), "parameters": dict(parameters), "outputs": output_digests(folder)}
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return manifest


def staleness(notebook: Notebook, folder: Path, parameters: Mapping[str, Any] | None = None) -> str:
    """Say why a report is out of date.

    ``folder``: where its report is. ``parameters``: Those that differ from the defaults. Returns: Empty where it is
    up to date.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return "there is no report"
    current_data = {f"registry:{row.item}/{row.path}": row.sha256 for row in registry.entries().itertuples()}
    for name in manifest["inputs"]:
        path = project.root() / name
        if name not in current_data and path.is_file():
            current_data[name] = project.sha256(path)
    pairs: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [
        ("", manifest["sources"], notebook.sources()),
        ("", manifest["inputs"], {name: current_data.get(name, "") for name in manifest["inputs"]}),
        ("version of ", manifest["versions"], {name: _version(name) for name in manifest["versions"]}),
        ("parameter ", manifest["parameters"], json.loads(json.dumps(dict(parameters or {})))),
        ("report file ", manifest["outputs"], output_digests(folder)),
    ]
    changed = [
        f"{kind}{key}"
        for kind, then, now in pairs
        for key in sorted(set(then) | set(now))
        if then.get(key) != now.get(key)
    ]
    return f"changed since: {', '.join(changed)}" if changed else ""


def _version(name: str) -> str:
    try:
        return version(name)
    except ModuleNotFoundError:
        return "none"


def missing_data(inputs: Iterable[str]) -> list[str]:
    """Name the registered files among the inputs of a report that are not on this machine.

    Returns: ``<item>/<path>`` each.
    """
    wanted = {name.removeprefix("registry:") for name in inputs if name.startswith("registry:")}
    if not wanted:
        return []
    rows = {f"{row['item']}/{row['path']}": row for _, row in registry.entries().iterrows()}
    return sorted(n for n in wanted if n not in rows or registry.verify(rows[n]) not in ("cache", "mirror"))
