"""Notebooks: their parameters, and executed copies without volatile content."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import re
import reprlib
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import nbformat
import yaml
from pydantic import ConfigDict, TypeAdapter

from equipoise_compendium import project

_TYPES: dict[str, Any] = {kind.__name__: kind for kind in (int, float, str, bool, list, dict)}


# --- parameters -----------------------------------------------------------------------------------


def _type_of(annotation: ast.expr) -> Any:
    """Return the type that an annotation such as ``list[int] | None`` names, without eval."""
    match annotation:
        case ast.Constant(value=None):
            return type(None)
        case ast.Name(id=name) if name in _TYPES:
            return _TYPES[name]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _type_of(left) | _type_of(right)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=words):
            return Literal[ast.literal_eval(words)]
        case ast.Subscript(value=ast.Name(id=("list" | "dict") as name), slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _TYPES[name][tuple(_type_of(part) for part in parts)]
    raise TypeError(f"unknown type of a parameter: {ast.unparse(annotation)}")


def _checked(value: Any, kind: Any, *, strict: bool) -> Any:
    config = ConfigDict(strict=strict, allow_inf_nan=False)
    return TypeAdapter(kind, config=config).validate_python(value)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a notebook; ``type`` is its annotation, such as ``list[int] | None``."""

    name: str
    type: str
    default: Any
    help: str

    def parse(self, text: str) -> Any:
        """Convert a value from the command line to the type of the parameter."""
        kind = _type_of(ast.parse(self.type, mode="eval").body)
        if kind is str:
            return text
        words: Any = text
        with contextlib.suppress(yaml.YAMLError, RecursionError):
            # As text, so that 010 is ten and a group may be called no.
            words = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes words only
        try:
            if words in ("null", "~"):
                return _checked(None, kind, strict=True)
            return _checked(words, kind, strict=False)
        except ValueError:
            meaning = f" ({self.help})" if self.help else ""
            got = reprlib.repr(text)
            raise ValueError(f"{self.name}: must be {self.type}{meaning}, got {got}") from None


def _parameters_of(source: str) -> list[Parameter]:
    """Read the parameters that a cell declares; comments on a declaration are its help."""
    comments = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("# ")
    parameters = []
    for statement in ast.parse(source).body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                written = ast.unparse(statement.annotation)
            case _:
                raise ValueError(
                    f"a parameter must be written as name: type = value, line {statement.lineno}"
                )
        kind = _type_of(statement.annotation)
        default = _checked(ast.literal_eval(value), kind, strict=True)
        # The formatter may wrap a long declaration, so its comment can be on any line of it.
        lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        explanation = " ".join(comments[line] for line in lines if line in comments)
        parameters.append(Parameter(name, written, default, explanation))
    return parameters


# --- notebooks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Notebook:
    """A notebook of the compendium."""

    path: Path
    content: nbformat.NotebookNode = field(repr=False, compare=False)
    parameters: Mapping[str, Parameter]

    @classmethod
    def read(cls, path: Path) -> Notebook:
        """Read a notebook file; raise ValueError if it is not usable."""
        name = f"{path.parent.name}/{path.name}"
        try:
            content = nbformat.read(path, as_version=4)
            parameters: dict[str, Parameter] = {}
            for cell in content.cells:
                if "parameters" in cell.metadata.get("tags", []):
                    parameters |= {each.name: each for each in _parameters_of(cell.source)}
        except (OSError, ValueError, SyntaxError, TypeError, tokenize.TokenError) as error:
            raise ValueError(f"{name}: must be a notebook of format 4 ({error})") from None
        except (nbformat.reader.NotJSONError, nbformat.ValidationError, AttributeError):
            raise ValueError(f"{name}: must be a whole notebook of format 4") from None
        return cls(path, content, parameters)

    @property
    def name(self) -> str:
        """Return the name of the file without its ending."""
        return self.path.stem

    @property
    def title(self) -> str:
        """Return the first heading."""
        prose = [cell.source for cell in self.content.cells if cell.cell_type == "markdown"]
        heading = re.search(r"^#+(.*)", "\n".join(prose), re.MULTILINE)
        return heading[1].strip() if heading else self.name

    def values(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Parse parameters from text; return those that differ from their defaults."""
        changed = {}
        for name, text in given.items():
            if name not in self.parameters:
                known = ", ".join(f"{each.name} ({each.type})" for each in self.parameters.values())
                raise ValueError(f"{self.name}: unknown parameter {name!r}, must be one of {known}")
            value = self.parameters[name].parse(text)
            if value != self.parameters[name].default:
                changed[name] = value
        return changed


def find_notebooks(names: Sequence[str] = ()) -> dict[str, Notebook]:
    """Read all notebooks of the compendium, or the named ones, by name."""
    paths = {path.stem: path for path in sorted((project.root() / "notebooks").glob("*.ipynb"))}
    unknown = [name for name in names if name not in paths]
    if unknown:
        raise ValueError(
            f"unknown notebook {', '.join(unknown)}; must be one of {', '.join(paths)}"
        )
    return {name: Notebook.read(paths[name]) for name in names or paths}


# --- executed notebooks ---------------------------------------------------------------------------

_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_VOLATILE = re.compile(r"\b(0x)[0-9a-f]{6,16}\b|/tmp/ipykernel_\d+/\d+\.py")


def _steady(value: Any) -> Any:
    """Replace addresses and names of temporary files."""
    if isinstance(value, str):
        return _VOLATILE.sub(lambda match: "0x0" if match[1] else "<cell>", value)
    if isinstance(value, list):
        return [_steady(item) for item in value]
    if isinstance(value, dict):
        return {key: _steady(item) for key, item in value.items()}
    return value


def _joined(outputs: list[Any]) -> list[Any]:
    """Drop progress bars and join the text of streams, which a kernel sends in pieces."""
    joined: list[Any] = []
    for output in outputs:
        is_stream = output.output_type == "stream"
        if is_stream and output.name == "stderr":
            continue
        if is_stream and joined and joined[-1].output_type == "stream":
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Copy an executed notebook without times, ids, addresses and progress bars."""
    steady = copy.deepcopy(notebook)
    steady.metadata = nbformat.from_dict(_METADATA)
    for index, cell in enumerate(steady.cells):
        cell.id = f"cell-{index:02d}"
        metadata = {}
        if "jupyter" in cell.metadata:
            metadata["jupyter"] = cell.metadata["jupyter"]  # whether it is folded
        tags = [tag for tag in cell.metadata.get("tags", []) if not tag.startswith("papermill")]
        if tags:
            metadata["tags"] = tags
        cell.metadata = nbformat.from_dict(metadata)
        if cell.cell_type == "code":
            outputs = _joined(cell.outputs)
            cell.outputs = [nbformat.from_dict(_steady(output)) for output in outputs]
    return steady


def post_process(
    notebook: nbformat.NotebookNode, resources: Any
) -> tuple[nbformat.NotebookNode, Any]:
    """Normalise a notebook that pytest-notebook has executed, like the build."""
    return normalise(notebook), resources
