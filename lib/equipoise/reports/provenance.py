"""What a report rests on: the library's code, the versions of what was imported, and the manifest that keeps them.

Code is compared by its syntax tree, so that no docstring, comment or line break makes a report out of date.
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
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

MANIFEST = "manifest.json"
REPORT_FOLDER_VARIABLE = "EQUIPOISE_REPORT_FOLDER"
VARIANT_VARIABLE = "EQUIPOISE_VARIANT"
LIBRARY = Path(__file__).parents[1]
_TOOLING = re.compile(r"ipykernel|ipython|jupyter|nb|papermill|pytest|setuptools")  # the last loads itself at every start


# --- the manifest -------------------------------------------------------------------------------------------------


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Manifest of a report, or None where there is no report."""
    path = folder / MANIFEST
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a report, the same bytes for the same content."""
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


# --- code ---------------------------------------------------------------------------------------------------------


def shape(node: Any) -> Any:
    """A syntax tree as nested lists, without docstrings, comments and places; the same in every version of Python."""
    if isinstance(node, ast.AST):
        parts = [[name, shape(value)] for name, value in ast.iter_fields(node) if value is not None and value != []]
        return [type(node).__name__, *parts]
    if isinstance(node, list):
        return [shape(item) for item in node if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
    return repr(node)


@functools.cache
def code_digest(text: str) -> str:
    """Sha256 of what a module does."""
    return hashlib.sha256(repr(shape(ast.parse(text))).encode()).hexdigest()


def library() -> dict[str, str]:
    """Text of every module of the library as it is now, by its place in the repository."""
    places = {f"lib/equipoise/{path.relative_to(LIBRARY).as_posix()}": path for path in sorted(LIBRARY.rglob("*.py"))}
    return {name: path.read_text(encoding="utf-8") for name, path in places.items()}


def loaded_modules() -> list[str]:
    """Modules of the library that are loaded, each by its place in the repository."""
    loaded = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "equipoise"]
    files = [Path(file) for module in loaded if (file := getattr(module, "__file__", None))]
    return sorted(f"lib/equipoise/{path.relative_to(LIBRARY).as_posix()}" for path in files)


# --- versions -----------------------------------------------------------------------------------------------------


def loaded_versions() -> dict[str, str]:
    """Version of every distribution that a run has imported, itself or through what it imported.

    Left out are the notebook tooling with what is there for its sake, and what a distribution only tries to import: a
    report is the same whatever else is installed.
    """
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    loaded, of_notebook = set(), set()
    named = {_origin(value) for value in list(vars(sys.modules["__main__"]).values())}
    for module, names in importlib.metadata.packages_distributions().items():
        for name in set(names) if module in sys.modules else ():
            alone = len(set(names)) == 1  # else they share a namespace
            if alone or any(str(part.locate()) in files for part in importlib.metadata.files(name) or []):
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
    return {canonicalize_name(Requirement(text).name) for text in importlib.metadata.requires("equipoise") or []}


def _needed(names: Iterable[str]) -> set[str]:
    """These distributions and all that they need here, but for their extras."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            wanted = map(Requirement, importlib.metadata.requires(name) or [])
            needed = (need.name for need in wanted if need.marker is None or need.marker.evaluate({"extra": ""}))
            waiting |= set(map(canonicalize_name, needed)) - found
    return found
