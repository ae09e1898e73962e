"""Notebooks: their parameters, the code they rest on, and executed ones without what changes from run to run."""

from __future__ import annotations

import ast
import copy
import hashlib
import io
import json
import re
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import nbformat
import yaml

from equipoise import project


Profile = Literal["full", "smoke"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a notebook.

    ``type``: Its annotation, such as ``int``, ``dict[int, float]`` or ``Literal['rnod', 'nmd']``.
    """

    name: str
    type: str
    default: Any
    help: str

    def parse(self, text: str) -> Any:
        """Value of the parameter from text as typed on a command line (YAML), checked against its type."""
        annotation = ast.parse(self.type, mode="eval").body
        try:
            value: Any = yaml.safe_load(text)
        except yaml.YAMLError:
            value = text
        for candidate in (value, text):  # text, since YAML takes on, no, 1e3 or null for something else
            fitted = _fit(candidate, annotation)
            if fitted is not _MISFIT:
                return fitted
        raise ValueError(f"{self.name} is {text!r}; wanted {self.type}" + (f" ({self.help})" if self.help else ""))


_MISFIT = object()


def _fit(value: Any, annotation: ast.expr) -> Any:
    """Return the value as the annotated type, or _MISFIT; only whole numbers are converted, to floats."""
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            fitted = _fit(value, left)
            return _fit(value, right) if fitted is _MISFIT else fitted
        case ast.Constant(value=None):
            return value if value is None else _MISFIT
        case ast.Name(id="float"):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return float(value) if number else _MISFIT
        case ast.Name(id="int"):
            return value if isinstance(value, int) and not isinstance(value, bool) else _MISFIT
        case ast.Name(id=("str" | "bool" | "list" | "dict") as name):
            kind = {"str": str, "bool": bool, "list": list, "dict": dict}[name]
            return value if isinstance(value, kind) else _MISFIT
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            allowed = choices.elts if isinstance(choices, ast.Tuple) else [choices]
            return value if value in [ast.literal_eval(choice) for choice in allowed] else _MISFIT
        case ast.Subscript(value=ast.Name(id="list"), slice=inner):
            items = [_fit(item, inner) for item in value] if isinstance(value, list) else [_MISFIT]
            return _MISFIT if any(item is _MISFIT for item in items) else items
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key_type, value_type])):
            if not isinstance(value, dict):
                return _MISFIT
            pairs = [(_fit(key, key_type), _fit(item, value_type)) for key, item in value.items()]
            return _MISFIT if any(_MISFIT in (key, item) for key, item in pairs) else dict(pairs)
    raise TypeError(f"parameters of type {ast.unparse(annotation)} are not supported")


@dataclass(frozen=True)
class Notebook:
    """A notebook of the compendium."""

    path: Path
    content: nbformat.NotebookNode = field(repr=False, compare=False)

    @classmethod
    def read(cls, path: Path) -> Notebook:
        """Read a notebook file."""
        return cls(path, nbformat.read(path, as_version=4))

    @property
    def name(self) -> str:
        """File name without ending."""
        return self.path.stem

    @property
    def title(self) -> str:
        """Its first heading."""
        return next(
            (
                line.lstrip("# ").strip()
                for cell in self.content.cells
                if cell.cell_type == "markdown"
                for line in cell.source.splitlines()
                if line.startswith("#")
            ),
            self.name,
        )

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters by name, from the cell tagged ``parameters``: ``name: type = default  # help``."""
        found: dict[str, Parameter] = {}
        for cell in self.content.cells:
            if "parameters" not in cell.metadata.get("tags", []):
                continue
            comments = {
                token.start[0]: token.string.lstrip("# ")
                for token in tokenize.generate_tokens(io.StringIO(cell.source).readline)
                if token.type == tokenize.COMMENT
            }
            for statement in ast.parse(cell.source).body:
                if not (
                    isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value
                ):
                    raise ValueError(
                        f"{self.name}: a parameter is written as name: type = value, line {statement.lineno}"
                    )
                name, annotation = statement.target.id, statement.annotation
                default = _fit(ast.literal_eval(statement.value), annotation)
                if default is _MISFIT:
                    raise ValueError(f"{self.name}: the default of {name} is no {ast.unparse(annotation)}")
                comment = comments.get(statement.end_lineno or statement.lineno, "")
                found[name] = Parameter(name, ast.unparse(annotation), default, comment)
        return found

    @property
    def smoke(self) -> dict[str, Any]:
        """Parameters of the smoke profile, from the notebook's metadata ``equipoise.smoke``."""
        return dict(self.content.metadata.get("equipoise", {}).get("smoke", {}))

    def values(self, given: Mapping[str, str], profile: Profile = "full") -> dict[str, Any]:
        """Parameters that differ from their defaults."""
        known = self.parameters
        values = self.smoke if profile == "smoke" else {}
        for name, text in given.items():
            if name not in known:
                there = ", ".join(f"{p.name} ({p.type})" for p in known.values()) or "none"
                raise ValueError(f"{self.name} has no parameter {name!r}; it has {there}")
            values[name] = known[name].parse(text)
        return {name: value for name, value in values.items() if value != known[name].default}

    def sources(self) -> dict[str, str]:
        """Sha256 of the notebook's code and text, and of every module of the library it needs."""
        cells = [[cell.cell_type, cell.source, cell.metadata.get("tags", [])] for cell in self.content.cells]
        digest = hashlib.sha256(json.dumps(cells).encode()).hexdigest()
        code = "\n".join(cell.source for cell in self.content.cells if cell.cell_type == "code")
        code = re.sub(r"^\s*[%!].*$", "", code, flags=re.MULTILINE)
        return {f"notebooks/{self.path.name}": digest, **_modules(code)}


def _imported(code: str, package: str) -> set[str]:
    """Modules of the library that a piece of code imports, by dotted name."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], base]).rstrip(".")
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return {name for name in names if name.split(".")[0] == "equipoise"}


def _modules(code: str) -> dict[str, str]:
    """Sha256 of the library's modules that the code needs, those that they need among them."""
    library = Path(__file__).parents[1]
    found: dict[str, str] = {}
    waiting = _imported(code, "") | {"equipoise"}
    while waiting:
        parts = waiting.pop().split(".")
        waiting |= {".".join(parts[:-1])} if len(parts) > 1 else set()
        base = library.joinpath(*parts[1:])
        path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        key = f"lib/equipoise/{path.relative_to(library).as_posix()}"
        if path.is_file() and key not in found:
            found[key] = project.sha256(path)
            package = ".".join(parts) if base.is_dir() else ".".join(parts[:-1])
            waiting |= _imported(path.read_text(encoding="utf-8"), package)
    return dict(sorted(found.items()))


def find_notebooks() -> dict[str, Notebook]:
    """Every notebook of the repository by name."""
    return {path.stem: Notebook.read(path) for path in sorted((project.root() / "notebooks").glob("*.ipynb"))}


_VOLATILE = (
    (re.compile(r"\b0x[0-9a-f]{6,16}\b"), "0x0"),
    (re.compile(r"/tmp/ipykernel_\d+/\d+\.py"), "<cell>"),  # noqa: S108 - a pattern, not a file
)


def _steady(value: Any) -> Any:
    if isinstance(value, str):
        for pattern, replacement in _VOLATILE:
            value = pattern.sub(replacement, value)
        return value
    if isinstance(value, list):
        return [_steady(item) for item in value]
    if isinstance(value, dict):
        return {key: _steady(item) for key, item in value.items()}
    return value


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return an executed notebook without what changes from run to run: times, ids, addresses, versions, progress bars.

    Returns: A copy.
    """
    steady = copy.deepcopy(notebook)
    steady.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for index, cell in enumerate(steady.cells):
        cell.id = f"cell-{index:02d}"
        tags = [tag for tag in cell.metadata.get("tags", []) if not tag.startswith("papermill")]
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type != "code":
            continue
        outputs: list[Any] = []
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                continue
            if outputs and output.output_type == "stream" and outputs[-1].output_type == "stream":
                outputs[-1].text += output.text
            else:
                outputs.append(output)
        cell.outputs = [nbformat.from_dict(_steady(output)) for output in outputs]
    return steady


def post_process(notebook: nbformat.NotebookNode, resources: Any) -> tuple[nbformat.NotebookNode, Any]:
    """Normalise a notebook that pytest-notebook has executed, as the build does."""
    return normalise(notebook), resources
