"""What a report rests on, code, data, parameters and versions, and whether that is still so.

All of it is kept in the manifest of the report.

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
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from equipoise_compendium import project, registry
from equipoise_compendium.settings import settings

if TYPE_CHECKING:
    from equipoise_compendium.notebooks import Notebook

MANIFEST = "manifest.json"
CHECKPOINTS = ".ipynb_checkpoints"
REPORT_FOLDER_VARIABLE = "EQUIPOISE_REPORT_FOLDER"
VARIANT_VARIABLE = "EQUIPOISE_VARIANT"
DISTRIBUTION = "equipoise"
"""What is installed with this package; its extras say what reports may rest on."""
LIBRARY = Path(__file__).parents[1]
"""The folder of the packages, ``lib`` in a clone."""
# setuptools is no tool of notebooks, but loads itself at every start.
_TOOLING = re.compile(r"ipykernel|ipython|jupyter|nb|papermill|pytest|setuptools")


# --- the manifest ---------------------------------------------------------------------------------


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Manifest of a report; None where there is none, or a damaged one, such as half-saved."""
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        complete = _is_complete(manifest)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return dict(manifest) if complete else None


def _is_complete(manifest: Any) -> bool:
    """Whether a manifest has what the build reads; an error of the access says no as well."""
    for record in manifest["artefacts"]:
        if not isinstance(record, dict) or not record["artefact"]:
            return False
    for key in ("inputs", "versions", "sources"):
        if not isinstance(manifest[key], (dict, list)):
            return False
    return bool(manifest.get("notebook"))


def damaged_manifests() -> list[str]:
    """Names of the reports whose manifest is there, but cannot be read."""
    folders = sorted(path.parent for path in (project.root() / "reports").glob(f"*/{MANIFEST}"))
    return [folder.name for folder in folders if read_manifest(folder) is None]


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a report, the same bytes for the same content."""
    (folder / MANIFEST).write_text(
        json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


# --- code -----------------------------------------------------------------------------------------


def shape(node: Any) -> Any:
    """A syntax tree as nested lists, without docstrings, comments and places."""
    if isinstance(node, ast.AST):
        fields = []
        for name, value in ast.iter_fields(node):
            # Versions of Python differ in the fields that they add, empty, to a node.
            if value is not None and value != []:
                fields.append([name, shape(value)])
        return [type(node).__name__, *fields]
    if isinstance(node, list):
        return [shape(item) for item in node if not _is_bare_constant(item)]
    return repr(node)


def _is_bare_constant(node: Any) -> bool:
    """Whether a statement is a constant that stands alone, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@functools.cache
def code_digest(text: str) -> str:
    """Sha256 of what a module does."""
    return hashlib.sha256(repr(shape(ast.parse(text))).encode()).hexdigest()


def _packages() -> list[str]:
    """The packages of which a report may have loaded code."""
    return sorted({"equipoise_compendium", *settings().packages})


def library() -> dict[str, str]:
    """Text of every module of the packages as it is now, by its place in the repository."""
    texts = {}
    for package in _packages():
        for path in sorted((LIBRARY / package).rglob("*.py")):
            texts[f"lib/{path.relative_to(LIBRARY).as_posix()}"] = path.read_text(encoding="utf-8")
    return texts


def loaded_modules() -> list[str]:
    """Modules of the packages that are loaded, each by its place in the repository."""
    places = []
    packages = _packages()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name.partition(".")[0] in packages:
            places.append(f"lib/{Path(file).relative_to(LIBRARY).as_posix()}")
    return sorted(places)


# --- versions -------------------------------------------------------------------------------------


def loaded_versions() -> dict[str, str]:
    """Version of every distribution that a run has imported, itself or through what it imported.

    Left out are the notebook tooling with what is there for its sake, and what a distribution only
    tries to import: a report is the same whatever else is installed.
    """
    loaded_files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    # What the notebook imports itself counts, even if the library does not require it.
    modules_of_notebook = {_origin(value) for value in list(vars(sys.modules["__main__"]).values())}
    loaded = set()
    loaded_by_notebook = set()
    for module, names in importlib.metadata.packages_distributions().items():
        if module not in sys.modules:
            continue
        distributions = set(names)
        for distribution in distributions:
            # In a namespace that distributions share, the files tell which of them was loaded.
            if len(distributions) > 1 and not _has_file_among(distribution, loaded_files):
                continue
            name = canonicalize_name(distribution)
            loaded.add(name)
            if module in modules_of_notebook:
                loaded_by_notebook.add(name)
    tooling = _with_requirements(filter(_TOOLING.match, loaded))
    computing = (direct_requirements() | loaded_by_notebook) & loaded - tooling - {DISTRIBUTION}
    names_used = sorted(_with_requirements(computing) & loaded)
    return {name: importlib.metadata.version(name) for name in names_used}


def _has_file_among(distribution: str, files: Collection[str | None]) -> bool:
    paths = importlib.metadata.files(distribution) or []
    return any(str(path.locate()) in files for path in paths)


def _origin(value: object) -> str:
    """Top-level module that a value is, or comes from."""
    if isinstance(value, ModuleType):
        name = value.__name__
    else:
        name = str(getattr(value, "__module__", None))
    return name.partition(".")[0]


def direct_requirements() -> set[str]:
    """Distributions that the library requires, with those of its extras."""
    requirements = importlib.metadata.requires(DISTRIBUTION) or []
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def _with_requirements(names: Iterable[str]) -> set[str]:
    """These distributions and all that they need here, but for their extras."""
    visited: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        visited.add(name)
        waiting |= _requirements(name) - visited
    return visited


def _requirements(name: str) -> set[str]:
    """Distributions that one needs on this machine without its extras; none where it is not."""
    try:
        texts = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return set()
    names: set[str] = set()
    for requirement in map(Requirement, texts):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            names.add(canonicalize_name(requirement.name))
    return names


# --- freshness ------------------------------------------------------------------------------------


def output_digests(folder: Path) -> dict[str, str]:
    """Sha256 of every file of a report but its manifest."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        # Jupyter leaves a folder of copies beside each notebook that is opened in it.
        is_copy = CHECKPOINTS in path.relative_to(folder).parts
        if path.is_file() and path.name != MANIFEST and not is_copy:
            digests[path.relative_to(folder).as_posix()] = project.sha256(path)
    return digests


def _sources(
    notebook: Notebook, modules: Iterable[str], texts: Mapping[str, str]
) -> dict[str, str]:
    """Digests of a notebook and of the modules of the library that its run has loaded."""
    digests = {f"notebooks/{notebook.path.name}": notebook.digest}
    for name in modules:
        # A module that is gone differs from every one that was loaded.
        digests[name] = code_digest(texts[name]) if name in texts else ""
    return digests


def complete_manifest(
    notebook: Notebook, parameters: Mapping[str, Any], folder: Path, texts: dict[str, str]
) -> None:
    """Add to a manifest what a run cannot know: its code, parameters and the files it has left.

    ``notebook`` and ``texts``, the library's modules, are as they were before the run: what has
    been edited since did not make the report, and so makes it out of date.
    """
    manifest = read_manifest(folder) or {}
    manifest["sources"] = _sources(notebook, manifest["sources"], texts)
    manifest["parameters"] = dict(parameters)
    manifest["outputs"] = output_digests(folder)
    write_manifest(folder, manifest)


def staleness(notebook: Notebook, folder: Path, parameters: Mapping[str, Any] | None = None) -> str:
    """Why a report is out of date; empty where it is up to date.

    ``parameters`` are those that differ from the defaults.
    """
    manifest = read_manifest(folder)
    if manifest is None or "outputs" not in manifest:
        return "its manifest is damaged" if (folder / MANIFEST).exists() else "there is no report"
    modules = [name for name in manifest["sources"] if name.startswith("lib/")]
    versions = {name: _version(name) for name in manifest["versions"]}
    # Parameters as JSON brings them back: in a manifest, a tuple is a list.
    parameters_read = json.loads(json.dumps(dict(parameters or {})))
    comparisons = [
        ("", manifest["sources"], _sources(notebook, modules, library())),
        ("", manifest["inputs"], _input_digests(manifest["inputs"])),
        ("version of ", manifest["versions"], versions),
        ("parameter ", manifest["parameters"], parameters_read),
        ("report file ", manifest["outputs"], output_digests(folder)),
    ]
    changed = []
    for kind, recorded, current in comparisons:
        for name in sorted({*recorded, *current}):
            if recorded.get(name) != current.get(name):
                changed.append(kind + name)
    return f"changed since: {', '.join(changed)}" if changed else ""


def _input_digests(names: Iterable[str]) -> dict[str, str]:
    """Sha256 of inputs as they are now: of upstream files as registered, so none is fetched."""
    registered = {
        f"registry:{row.item}/{row.path}": str(row.sha256)
        for row in registry.entries().itertuples()
    }
    return {name: registered.get(name) or _digest(name) for name in names}


def _digest(name: str) -> str:
    path = project.root() / name
    return project.sha256(path) if path.is_file() else ""


def _version(name: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return "none"


def missing_data(inputs: Iterable[str]) -> list[str]:
    """Registered files among inputs that are not on this machine, as ``<item>/<path>``."""
    entries = {f"{row['item']}/{row['path']}": row for _, row in registry.entries().iterrows()}
    missing = set()
    for input_name in inputs:
        name = input_name.removeprefix("registry:")
        if name == input_name:
            continue  # a file of the repository
        if name not in entries or registry.verify(entries[name]) not in ("cache", "mirror"):
            missing.add(name)
    return sorted(missing)
