"""What a run rests on: the library's code, by what it does, and the versions of the distributions it has imported.

Code is compared by its syntax tree, so that no docstring, comment or line break makes a report out of date. Distributions
count when one of their modules is loaded, but for the notebook tooling and what is there for its sake only.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.metadata
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LIBRARY = Path(__file__).parents[1]
_TOOLING = re.compile(r"ipykernel|jupyter|nb|papermill|pytest|setuptools")  # the last loads itself at every start


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
    files = [Path(m.__file__) for n, m in list(sys.modules.items()) if n.split(".")[0] == "equipoise" and m.__file__]
    return sorted(f"lib/equipoise/{path.relative_to(LIBRARY).as_posix()}" for path in files)


def loaded_versions() -> dict[str, str]:
    """Version of every distribution of which a module is loaded, the notebook tooling and its own needs left out."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    loaded = set()
    for module, names in importlib.metadata.packages_distributions().items():
        for name in set(names) if module in sys.modules else ():
            alone = len(set(names)) == 1  # else they share a namespace
            if alone or any(str(part.locate()) in files for part in importlib.metadata.files(name) or []):
                loaded.add(_normal(name))
    tooling = set(filter(_TOOLING.match, loaded))
    ours = _needed({"equipoise"} | loaded - _needed(tooling, tooling=True)) - tooling - {"equipoise"}
    return {name: importlib.metadata.version(name) for name in sorted(loaded & ours)}


def direct_requirements() -> set[str]:
    """Distributions that the library names as its own requirements, those of its extras among them."""
    return set(map(_normal, importlib.metadata.requires("equipoise") or []))


def _normal(requirement: str) -> str:
    """Name of the distribution that a requirement asks for, as it is compared."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0]).lower()


def _needed(names: Iterable[str], *, tooling: bool = False) -> set[str]:
    """These distributions and all that they need, but for their extras; what the tooling needs only if asked for."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        if tooling or not _TOOLING.match(name):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                wanted = importlib.metadata.requires(name) or []
                waiting |= {_normal(requirement) for requirement in wanted if "extra ==" not in requirement} - found
    return found
