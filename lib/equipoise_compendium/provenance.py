"""What a report rests on, code, data, parameters and versions, kept in its manifest, and whether that is still so.

Code is compared by its syntax tree, so that no docstring, comment or line break makes a report out
of date.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from equipoise_compendium import project, registry

if TYPE_CHECKING:
    from equipoise_compendium.notebooks import Notebook

MANIFEST = "manifest.json"
REPORT_FOLDER_VARIABLE = "EQUIPOISE_REPORT_FOLDER"
VARIANT_VARIABLE = "EQUIPOISE_VARIANT"
PACKAGES = ("equipoise", "equipoise_cli", "equipoise_compendium", "equipoise_studies")
LIBRARY = Path(__file__).parents[1]
"""The folder of the packages, ``lib`` in a clone."""
_TOOLING = re.compile(
    r"ipykernel|ipython|jupyter|nb|papermill|pytest|setuptools"
)  # the last loads itself at every start


# --- the manifest ---------------------------------------------------------------------------------


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Manifest of a report, or None where there is no report or its manifest is damaged, such as half-saved."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        held = [manifest[key] for key in ("inputs", "versions", "sources")]
        whole = all(
            isinstance(record, dict) and record["artefact"] for record in manifest["artefacts"]
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return (
        manifest
        if whole
        and manifest.get("notebook")
        and all(isinstance(part, (dict, list)) for part in held)
        else None
    )


def damaged_manifests() -> list[str]:
    """Names of the reports whose manifest is there, but cannot be read."""
    found = sorted(path.parent for path in (project.root() / "reports").glob(f"*/{MANIFEST}"))
    return [folder.name for folder in found if read_manifest(folder) is None]


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a report, the same bytes for the same content."""
    (folder / MANIFEST).write_text(
        json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


# --- code -----------------------------------------------------------------------------------------


def shape(node: Any) -> Any:
    """A syntax tree as nested lists, without docstrings, comments and places; the same in every version of Python."""
    if isinstance(node, ast.AST):
        parts = [
            [name, shape(value)]
            for name, value in ast.iter_fields(node)
            if value is not None and value != []
        ]
        return [type(node).__name__, *parts]
    if isinstance(node, list):
        return [
            shape(item)
            for item in node
            if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
        ]
    return repr(node)


@functools.cache
def code_digest(text: str) -> str:
    """Sha256 of what a module does."""
    return hashlib.sha256(repr(shape(ast.parse(text))).encode()).hexdigest()


def library() -> dict[str, str]:
    """Text of every module of the packages as it is now, by its place in the repository."""
    texts = {}
    for package in PACKAGES:
        for path in sorted((LIBRARY / package).rglob("*.py")):
            texts[f"lib/{path.relative_to(LIBRARY).as_posix()}"] = path.read_text(encoding="utf-8")
    return texts


def loaded_modules() -> list[str]:
    """Modules of the packages that are loaded, each by its place in the repository."""
    loaded = [
        module for name, module in list(sys.modules.items()) if name.partition(".")[0] in PACKAGES
    ]
    files = [Path(file) for module in loaded if (file := getattr(module, "__file__", None))]
    return sorted(f"lib/{path.relative_to(LIBRARY).as_posix()}" for path in files)


# --- versions -------------------------------------------------------------------------------------


def loaded_versions() -> dict[str, str]:
    """Version of every distribution that a run has imported, itself or through what it imported.

    Left out are the notebook tooling with what is there for its sake, and what a distribution only
    tries to import: a report is the same whatever else is installed.
    """
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    loaded, of_notebook = set(), set()
    named = {_origin(value) for value in list(vars(sys.modules["__main__"]).values())}
    for module, names in importlib.metadata.packages_distributions().items():
        for name in set(names) if module in sys.modules else ():
            alone = len(set(names)) == 1  # else they share a namespace
            if alone or any(
                str(part.locate()) in files for part in importlib.metadata.files(name) or []
            ):
                loaded.add(canonicalize_name(name))
                of_notebook |= {canonicalize_name(name)} if module in named else set()
    tooling = _needed(filter(_TOOLING.match, loaded))
    ours = (direct_requirements() | of_notebook) & loaded - tooling - {"equipoise"}
    return {name: importlib.metadata.version(name) for name in sorted(_needed(ours) & loaded)}


def _origin(value: object) -> str:
    """Top-level module that a value is, or comes from."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(name).partition(".")[0]


def direct_requirements() -> set[str]:
    """Distributions that the library names as its own requirements, those of its extras among them."""
    return {
        canonicalize_name(Requirement(text).name)
        for text in importlib.metadata.requires("equipoise") or []
    }


def _needed(names: Iterable[str]) -> set[str]:
    """These distributions and all that they need here, but for their extras."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            wanted = map(Requirement, importlib.metadata.requires(name) or [])
            needed = (
                need.name
                for need in wanted
                if need.marker is None or need.marker.evaluate({"extra": ""})
            )
            waiting |= set(map(canonicalize_name, needed)) - found
    return found


# --- freshness ------------------------------------------------------------------------------------


def output_digests(folder: Path) -> dict[str, str]:
    """Sha256 of every file of a report but its manifest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): project.sha256(path) for path in files}


def _sources(
    notebook: Notebook, modules: Iterable[str], texts: Mapping[str, str]
) -> dict[str, str]:
    """Digests of a notebook and of the modules of the library that its run has loaded."""
    found = {name: code_digest(texts[name]) if name in texts else "" for name in modules}
    return {f"notebooks/{notebook.path.name}": notebook.digest, **found}


def complete_manifest(
    notebook: Notebook, parameters: Mapping[str, Any], folder: Path, texts: dict[str, str]
) -> None:
    """Add to a manifest what a run cannot know: its code, parameters and the files it has left.

    ``notebook`` and ``texts``, the library's modules, are as they were before the run: what has
    been edited since did not make the report, and so makes it out of date.
    """
    manifest = read_manifest(folder) or {}
    manifest["sources"] = _sources(notebook, manifest["sources"], texts)
    write_manifest(
        folder, manifest | {"parameters": dict(parameters), "outputs": output_digests(folder)}
    )


def staleness(notebook: Notebook, folder: Path, parameters: Mapping[str, Any] | None = None) -> str:
    """Why a report is out of date; empty where it is up to date.

    ``parameters`` are those that differ from the defaults.
    """
    manifest = read_manifest(folder)
    if manifest is None or "outputs" not in manifest:
        return "its manifest is damaged" if (folder / MANIFEST).exists() else "there is no report"
    modules = [name for name in manifest["sources"] if name.startswith("lib/")]
    registered = {
        f"registry:{row.item}/{row.path}": row.sha256 for row in registry.entries().itertuples()
    }
    pairs = [
        ("", manifest["sources"], _sources(notebook, modules, library())),
        (
            "",
            manifest["inputs"],
            {name: registered.get(name) or _digest(name) for name in manifest["inputs"]},
        ),
        (
            "version of ",
            manifest["versions"],
            {name: _version(name) for name in manifest["versions"]},
        ),
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
    return sorted(
        name
        for name in wanted
        if name not in rows or registry.verify(rows[name]) not in ("cache", "mirror")
    )
