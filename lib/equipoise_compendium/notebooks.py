"""Notebooks: their parameters, and executed ones without what changes from run to run."""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import hashlib
import io
import json
import re
import reprlib
import tokenize
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import nbformat
import yaml

from equipoise_compendium import project
from equipoise_compendium.provenance import shape
from equipoise_compendium.settings import settings

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Profile = Literal["full", "smoke"]
_TYPES: dict[str, Any] = {kind.__name__: kind for kind in (int, float, str, bool, list, dict)}


def parameter_type(written: str) -> Any:
    """The type that an annotation writes, such as ``list[int] | None``; nothing is run."""
    return _type_of(ast.parse(written, mode="eval").body)


def _type_of(annotation: ast.expr) -> Any:
    match annotation:
        case ast.Constant(value=None):
            return type(None)
        case ast.Name(id=name) if name in _TYPES:
            return _TYPES[name]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _type_of(left) | _type_of(right)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=words):
            return Literal[ast.literal_eval(words)]
        case ast.Subscript(
            value=ast.Name(id=("list" | "dict") as name), slice=ast.Tuple(elts=inner)
        ):
            return _TYPES[name][tuple(_type_of(part) for part in inner)]
        case ast.Subscript(value=ast.Name(id=("list" | "dict") as name), slice=part):
            return _TYPES[name][_type_of(part)]
    raise TypeError(f"parameters of type {ast.unparse(annotation)} are not supported")


@functools.cache
def _adapter(kind: Any, *, strict: bool) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(kind, config=ConfigDict(strict=strict, allow_inf_nan=False))


def _fit(value: Any, kind: Any) -> Any:
    """The value as the type, whole numbers as floats where floats are wanted."""
    return _adapter(kind, strict=True).validate_python(value)


def _from_text(text: str, kind: Any) -> Any:
    """The value that a text stands for: as it is where text is wanted, else read as YAML."""
    if kind is str:
        return text
    words: Any = text
    with contextlib.suppress(yaml.YAMLError, RecursionError):
        # As words, so that 010 is ten and a group may be called no.
        words = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes words only
    if words in ("null", "~"):
        return _fit(None, kind)
    return _adapter(kind, strict=False).validate_python(words)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a notebook; ``type`` is its annotation, such as ``list[int] | None``."""

    name: str
    type: str
    default: Any
    help: str

    def parse(self, text: str) -> Any:
        """Value from text as typed on a command line, of its type and within its bounds."""
        wanted = self.type
        try:
            value = _from_text(text, parameter_type(self.type))
            bounds = self._bounds_missed(value)
            if bounds is not None:
                wanted = f"{self.type} {bounds}".strip()
                raise ValueError(bounds)
        except ValueError:
            meaning = f" ({self.help})" if self.help else ""
            message = f"{self.name} is {reprlib.repr(text)}; wanted {wanted}{meaning}"
            raise ValueError(message) from None
        self._need_file(value)
        return value

    def _bounds_missed(self, value: Any) -> str | None:
        """Known bounds of a parameter of this name, if the value misses them."""
        module = settings().parameters
        if not module:
            return None
        bounds: str | None = import_module(module).bounds_missed(self.name, value, self.default)
        return bounds

    def _need_file(self, value: Any) -> None:
        """Refuse the name of no file, where the default names one of the repository's data."""
        if not isinstance(value, str) or not isinstance(self.default, str):
            return
        if not (project.root() / "data" / self.default).is_file():
            return
        try:
            project.data_path(value)
        except FileNotFoundError as error:
            raise ValueError(f"{self.name}: {error}") from None


@dataclass(frozen=True)
class Notebook:
    """A notebook of the compendium."""

    path: Path
    content: nbformat.NotebookNode = field(repr=False, compare=False)

    @classmethod
    def read(cls, path: Path) -> Notebook:
        """Read a notebook file; a ValueError with its name says why one cannot be used."""
        name = f"{path.parent.name}/{path.name}"
        try:
            text = path.read_text(encoding="utf-8")
            content = json.loads(text)
            nbformat.validate(content, version=4)
            json.dumps(
                content, ensure_ascii=False
            ).encode()  # half a surrogate pair is nothing to write
            book = cls(path, nbformat.v4.reads(text))
            _ = book.digest
        except OSError as error:
            raise ValueError(f"{name} cannot be read: {error.strerror}") from None
        except Exception as error:  # noqa: BLE001 - the schema's checker, too, raises what it likes on odd content
            line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            raise ValueError(
                f"{name}{line} is no notebook of format 4, whole (half-saved?)"
            ) from None
        book.values({}, "smoke")
        return book

    @property
    def name(self) -> str:
        """File name without ending."""
        return self.path.stem

    @property
    def title(self) -> str:
        """Its first heading."""
        prose = [cell.source for cell in self.content.cells if cell.cell_type == "markdown"]
        heading = re.search(r"^#+(.*)", "\n".join(prose), re.MULTILINE)
        return heading[1].strip() if heading else self.name

    @property
    def defaults(self) -> str:
        """Whose its defaults are: "paper" where its metadata ``equipoise.defaults`` say so."""
        return str(self.content.metadata.get("equipoise", {}).get("defaults", "default"))

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters by name: ``name: type = default  # help`` in the cell of that tag."""
        parameters: dict[str, Parameter] = {}
        for cell in self.content.cells:
            if "parameters" in cell.metadata.get("tags", []):
                for parameter in self._parameters_of(cell.source):
                    parameters[parameter.name] = parameter
        return parameters

    def _parameters_of(self, source: str) -> Iterator[Parameter]:
        """The parameters that a cell declares; comments on lines of a declaration are its help."""
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
            statements = ast.parse(source).body
        except (SyntaxError, tokenize.TokenError):
            raise ValueError(f"{self.name}: the cell tagged parameters is no Python") from None
        comments = {}
        for token in tokens:
            if token.type == tokenize.COMMENT:
                comments[token.start[0]] = token.string.lstrip("# ")
        for statement in statements:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    written = ast.unparse(statement.annotation)
                case _:
                    wanted = "a parameter is written as name: type = value"
                    raise ValueError(f"{self.name}: {wanted}, line {statement.lineno}")
            try:
                default = _fit(ast.literal_eval(value), _type_of(statement.annotation))
            except (ValueError, TypeError):
                wanted = f"{written} with a plain value"
                raise ValueError(f"{self.name}: {name} is not written as {wanted}") from None
            # The formatter may wrap a long declaration, so its comment can stand on any line of it.
            last_line = statement.end_lineno or statement.lineno
            lines = range(statement.lineno, last_line + 1)
            explanation = " ".join(comments[line] for line in lines if line in comments)
            yield Parameter(name, written, default, explanation)

    def values(self, given: Mapping[str, str], profile: Profile = "full") -> dict[str, Any]:
        """Parameters that differ from their defaults: those typed, and those of the smoke profile.

        The latter stand in the notebook's metadata ``equipoise.smoke``.
        """
        parameters = self.parameters
        settings = self.content.metadata.get("equipoise")
        values: Any = {}
        if profile == "smoke" and isinstance(settings, dict):
            values = settings.get("smoke", {})
        if not isinstance(values, dict) or not values.keys() <= parameters.keys():
            raise ValueError(f"{self.name}: its smoke profile names no values of its parameters")
        changed = dict(values)
        for name, text in given.items():
            if name not in parameters:
                names = ", ".join(f"{known.name} ({known.type})" for known in parameters.values())
                raise ValueError(f"{self.name} has no parameter {name!r}; it has {names or 'none'}")
            changed[name] = parameters[name].parse(text)
        return {name: value for name, value in changed.items() if value != parameters[name].default}

    @property
    def digest(self) -> str:
        """Sha256 of what its code does and what its text says."""
        cells = []
        for cell in self.content.cells:
            is_code = cell.cell_type == "code"
            content = _does(cell.source) if is_code else cell.source
            cells.append([cell.cell_type, content, cell.metadata.get("tags")])
        return hashlib.sha256(repr(cells).encode()).hexdigest()


def _does(code: str) -> Any:
    """What a cell does, without comments; text that stands alone is kept: the cell may show it."""
    try:
        return [shape(statement) for statement in ast.parse(code).body]
    except SyntaxError:  # with magics it is no Python
        return code


def find_notebooks(
    names: Collection[str] = (), faults: dict[str, str] | None = None
) -> dict[str, Notebook]:
    """Notebooks of the repository by name: those of these names, by default all.

    What is wrong with one that cannot be used is put into ``faults``, by name; without them it is
    an error.
    """
    paths = {path.stem: path for path in sorted((project.root() / "notebooks").glob("*.ipynb"))}
    unknown = [name for name in names if name not in paths]
    if unknown:
        raise ValueError(f"no notebook {', '.join(unknown)}; there are {', '.join(paths)}")
    notebooks = {}
    for name in names or paths:
        try:
            notebooks[name] = Notebook.read(paths[name])
        except ValueError as error:
            if faults is None:
                raise
            faults[name] = str(error)
    return notebooks


_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_VOLATILE = re.compile(r"\b(0x)[0-9a-f]{6,16}\b|/tmp/ipykernel_\d+/\d+\.py")


def _steady(value: Any) -> Any:
    if isinstance(value, str):
        return _VOLATILE.sub(lambda match: "0x0" if match[1] else "<cell>", value)
    if isinstance(value, list):
        return [_steady(item) for item in value]
    if isinstance(value, dict):
        return {key: _steady(item) for key, item in value.items()}
    return value


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy of an executed notebook without times, ids, addresses and progress bars."""
    steady = copy.deepcopy(notebook)
    steady.metadata = nbformat.from_dict(_METADATA)
    for index, cell in enumerate(steady.cells):
        cell.id = f"cell-{index:02d}"
        metadata = {}
        if "jupyter" in cell.metadata:
            metadata["jupyter"] = cell.metadata["jupyter"]  # says whether it is folded
        tags = [tag for tag in cell.metadata.get("tags", []) if not tag.startswith("papermill")]
        if tags:
            metadata["tags"] = tags
        cell.metadata = nbformat.from_dict(metadata)
        if cell.cell_type == "code":
            outputs = _joined(cell.outputs)
            cell.outputs = [nbformat.from_dict(_steady(output)) for output in outputs]
    return steady


def _joined(outputs: list[Any]) -> list[Any]:
    """Outputs without progress bars, what was printed in one piece: a kernel sends chunks."""
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


def post_process(
    notebook: nbformat.NotebookNode, resources: Any
) -> tuple[nbformat.NotebookNode, Any]:
    """Normalise a notebook that pytest-notebook has executed, as the build does."""
    return normalise(notebook), resources
