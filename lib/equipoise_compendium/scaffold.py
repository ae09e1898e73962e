"""Start a notebook for a topic of one's own from one that is there.

A notebook can be copied if it has a parameter ``topic`` and takes its data files from parameters:
those whose default is the path of a file below ``data/``. The copy has files of its own, filled
with the example to begin with, a test, and a report that no artefact of a paper depends on; it
builds at once.
"""

from __future__ import annotations

import ast
import copy
import json
import keyword
import multiprocessing
import re
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import nbformat
import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.build import execute, unexplained_cells
from equipoise_compendium.notebooks import Notebook, find_notebooks
from equipoise_compendium.writing import write_files


@dataclass(frozen=True)
class Scaffold:
    """What `new_topic` has made: a notebook, its test, and the data files to fill in."""

    notebook: Path
    test: Path
    data: tuple[Path, ...]


def _data_parameters(notebook: Notebook) -> dict[str, str]:
    """Parameters that name a file below ``data/``, with it; none where there is no topic."""
    if "topic" not in notebook.parameters:
        return {}
    files = {}
    for name, parameter in notebook.parameters.items():
        if parameter.type != "str" or "/" not in parameter.default:
            continue
        if (project.root() / "data" / parameter.default).is_file():
            files[name] = parameter.default
    return files


def copyable() -> list[str]:
    """Notebooks that a topic of one's own can begin from."""
    notebooks = find_notebooks(faults={})
    return [name for name, notebook in notebooks.items() if _data_parameters(notebook)]


def _with_parameters(source: str, values: Mapping[str, str]) -> str:
    """The source of a parameters cell with other values, its comments kept."""
    lines = source.split("\n")
    for statement in ast.parse(source).body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as default):
                pass
            case _:
                continue
        if name not in values:
            continue
        # The tree counts offsets in bytes, not in characters.
        line = lines[default.lineno - 1].encode()
        value = json.dumps(values[name], ensure_ascii=False).encode()
        replaced = line[: default.col_offset] + value + line[default.end_col_offset :]
        lines[default.lineno - 1] = replaced.decode()
    return "\n".join(lines)


def _copied_content(notebook: Notebook, name: str, title: str, values: Mapping[str, str]) -> str:
    """The file of a notebook with another name, title and parameters."""
    content = copy.deepcopy(notebook.content)
    cells = [nbformat.v4.new_markdown_cell(title, id="title")]
    for cell in content.cells:
        tags = cell.metadata.get("tags", [])
        if "example" in tags:
            continue  # prose about the example, its source and its numbers
        if "parameters" in tags:
            cell.source = _with_parameters(cell.source, values)
        elif cell.cell_type == "code":
            cell.source = cell.source.replace(f'Report("{notebook.name}")', f'Report("{name}")')
        cells.append(cell)
    content.cells = cells
    return nbformat.writes(content) + "\n"


def _check_arguments(name: str, source: str, topic: str) -> None:
    """Refuse names that no notebook, copyable notebook or topic can have."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name) or keyword.iskeyword(name):
        raise ValueError(
            f"{name!r} is no name for a notebook: lower-case letters, digits and _, a letter first"
        )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", topic):
        raise ValueError(f"{topic!r} is no topic: one word of letters, digits, '.', '_' and '-'")
    sources = copyable()
    if source in sources:
        return
    if source in find_notebooks(faults={}):
        reason = "takes no topic and data files from its parameters"
    else:
        reason = "is no notebook"
    raise ValueError(f"{source} {reason}; a topic can begin from {', '.join(sources)}")


def _copied_data(
    notebook: Notebook, name: str, topic: str
) -> tuple[dict[str, str], dict[Path, str]]:
    """New data files for a copied notebook.

    Returns the values of the parameters that name them, and their texts by path, those of the
    example with the new topic in place of its own.
    """
    folder = project.root() / "data"
    example_topic = re.escape(str(notebook.parameters["topic"].default))
    # The id alone: not where it is a piece of a longer one.
    occurrence = rf"(?<![A-Za-z0-9._-]){example_topic}(?![A-Za-z0-9._-])"
    values = {}
    texts: dict[Path, str] = {}
    for parameter, example_path in _data_parameters(notebook).items():
        path = Path(example_path).with_name(name + Path(example_path).suffix)
        if folder / path in texts:
            path = path.with_stem(f"{name}_{parameter}")
        values[parameter] = path.as_posix()
        text = (folder / example_path).read_text(encoding="utf-8")
        texts[folder / path] = re.sub(occurrence, lambda _: topic, text)
    return values, texts


def new_topic(name: str, source: str, topic: str, title: str) -> Scaffold:
    """Make a notebook for another topic, with data files and a test of its own.

    ``name`` is that of the new notebook; ``source`` is the notebook to begin from, one of
    `copyable`; ``topic`` is the id of the topic, one word; ``title`` is the
    first cell, in Markdown.
    """
    root = project.root()
    _check_arguments(name, source, topic)
    notebook = find_notebooks([source])[source]
    data_values, data_texts = _copied_data(notebook, name, topic)
    template = resources.files("equipoise_compendium").joinpath("topic_test.txt")
    test_text = template.read_text(encoding="utf-8").format(name=name)
    scaffold = Scaffold(
        notebook=root / "notebooks" / f"{name}.ipynb",
        test=root / "tests" / f"test_{name}.py",
        data=tuple(data_texts),
    )
    texts = {
        **data_texts,
        scaffold.notebook: _copied_content(notebook, name, title, {"topic": topic, **data_values}),
        scaffold.test: test_text,
    }
    # All are looked for before any is written, so that a refusal leaves nothing behind.
    existing = [str(path.relative_to(root)) for path in texts if path.exists()]
    if existing:
        raise ValueError(f"there already: {', '.join(existing)}; choose another name")
    for path in texts:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_files(texts)
    return scaffold


def _run(name: str, folder: Path) -> tuple[str, str]:
    """Run a notebook into a folder instead of ``reports/``; what `execute` says of it."""
    notebook = find_notebooks([name])[name]
    # A run changes the environment of its process, so it gets one of its own.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(execute, str(notebook.path), {}, str(folder)).result()


def unexplained(name: str, folder: Path) -> str:
    """Run a notebook into a folder: why it failed, or its cells that differ without a reason."""
    failed, message = _run(name, folder)
    return message if failed else unexplained_cells(folder)


def check_topic(name: str, folder: Path) -> list[float]:
    """Run a notebook into a folder instead of ``reports/``; return its table ``scores``."""
    failed, message = _run(name, folder)
    table = folder / "tables" / "scores.csv"
    if failed or not table.is_file():
        raise ValueError(message or f"{name} has no table named scores")
    return pd.read_csv(table, index_col="score").to_numpy(dtype="float64").ravel().tolist()
