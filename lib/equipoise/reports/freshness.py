"""Freshness: whether a report is what its code, data, parameters and versions would make today."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from equipoise import project
from equipoise.loaders import registry
from equipoise.reports.provenance import MANIFEST, read_manifest, write_manifest
from equipoise.reports.notebooks import Notebook
from equipoise.reports.provenance import code_digest, library


def output_digests(folder: Path) -> dict[str, str]:
    """Sha256 of every file of a report but its manifest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): project.sha256(path) for path in files}


def _sources(notebook: Notebook, modules: Iterable[str], texts: Mapping[str, str]) -> dict[str, str]:
    """Digests of a notebook and of the modules of the library that its run has loaded."""
    found = {name: code_digest(texts[name]) if name in texts else "" for name in modules}
    return {f"notebooks/{notebook.path.name}": notebook.digest, **found}


def complete_manifest(notebook: Notebook, parameters: Mapping[str, Any], folder: Path, texts: dict[str, str]) -> None:
    """Add to a manifest what a run cannot know: its code, parameters and the files it has left.

    ``notebook`` and ``texts``, the library's modules, are as they were before the run: what has been edited since did
    not make the report, and so makes it out of date.
    """
    manifest = read_manifest(folder) or {}
    manifest["sources"] = _sources(notebook, manifest["sources"], texts)
    write_manifest(folder, manifest | {"parameters": dict(parameters), "outputs": output_digests(folder)})


def staleness(notebook: Notebook, folder: Path, parameters: Mapping[str, Any] | None = None) -> str:
    """Why a report is out of date; empty where it is up to date.

    ``parameters`` are those that differ from the defaults.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return "there is no report"
    modules = [name for name in manifest["sources"] if name.startswith("lib/")]
    registered = {f"registry:{row.item}/{row.path}": row.sha256 for row in registry.entries().itertuples()}
    pairs = [
        ("", manifest["sources"], _sources(notebook, modules, library())),
        ("", manifest["inputs"], {name: registered.get(name) or _digest(name) for name in manifest["inputs"]}),
        ("version of ", manifest["versions"], {name: _version(name) for name in manifest["versions"]}),
        ("parameter ", manifest["parameters"], json.loads(json.dumps(dict(parameters or {})))),
        ("report file ", manifest["outputs"], output_digests(folder)),
    ]
    changed = []
    for kind, then, now in pairs:
        changed += [kind + key for key in sorted({*then, *now}) if then.get(key) != now.get(key)]
    return f"changed since: {', '.join(changed)}" if changed else ""


def _digest(name: str) -> str:
    path = project.root() / name
    return project.sha256(path) if path.is_file() else ""


def _version(name: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return "none"


def missing_data(inputs: Iterable[str]) -> list[str]:
    """Registered files among the inputs of a report that are not on this machine, as ``<item>/<path>``."""
    rows = {f"{row['item']}/{row['path']}": row for _, row in registry.entries().iterrows()}
    wanted = {name.removeprefix("registry:") for name in inputs if name.startswith("registry:")}
    return sorted(name for name in wanted if name not in rows or registry.verify(rows[name]) not in ("cache", "mirror"))
