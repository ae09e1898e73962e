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
from equipoise_compendium.build import execute
from equipoise_compendium.notebooks import Notebook, find_notebooks

TITLE = """# {topic}: conversations scored

**Question.** How relevant is each conversation about {topic}, and how fair to the groups of what it names?

**Measures.** T. Sakai: *Fairness-based Evaluation of Conversational Search: A Pilot Study*, EVIA 2023 (gfrc); T. Sakai,
S. Tao, Y.-I. Song: *Evaluating Group Fairness and Relevance in Conversational Search: An Alternative Formulation*, 2025
(gfrc2)."""


@dataclass(frozen=True)
class Scaffold:
    """What `new_topic` has made: a notebook, its test, and the data files to fill in."""

    notebook: Path
    test: Path
    data: tuple[Path, ...]


def _data_parameters(notebook: Notebook) -> dict[str, str]:
    """Parameters that name a file below ``data/``, with that file, of a notebook that takes a topic."""
    paths = {
        name: p.default
        for name, p in notebook.parameters.items()
        if p.type == "str" and "/" in p.default
    }
    there = {
        name: path for name, path in paths.items() if (project.root() / "data" / path).is_file()
    }
    return there if "topic" in notebook.parameters else {}


def copyable() -> list[str]:
    """Notebooks that a topic of one's own can begin from."""
    return [
        name for name, notebook in find_notebooks(faults={}).items() if _data_parameters(notebook)
    ]


def _with_parameters(source: str, values: Mapping[str, str]) -> str:
    """The source of a parameters cell with other values, its comments kept."""
    lines = source.split("\n")
    for statement in ast.parse(source).body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as old) if name in values:
                line = lines[old.lineno - 1].encode()  # offsets count bytes
                text = json.dumps(values[name], ensure_ascii=False).encode()
                lines[old.lineno - 1] = (
                    line[: old.col_offset] + text + line[old.end_col_offset :]
                ).decode()
    return "\n".join(lines)


def _copied_content(notebook: Notebook, name: str, values: Mapping[str, str]) -> str:
    """The file of a notebook with another name, title and parameters, without prose tagged as about the example."""
    content = copy.deepcopy(notebook.content)
    title = nbformat.v4.new_markdown_cell(TITLE.format(topic=values["topic"]), id="title")
    content.cells = [
        title,
        *(cell for cell in content.cells if "example" not in cell.metadata.get("tags", [])),
    ]
    for cell in content.cells:
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = _with_parameters(cell.source, values)
        elif cell.cell_type == "code":
            cell.source = cell.source.replace(f'Report("{notebook.name}")', f'Report("{name}")')
    return nbformat.writes(content) + "\n"


def new_topic(name: str, source: str, topic: str) -> Scaffold:
    """Make a notebook for another topic, with data files and a test of its own.

    ``name`` is that of the new notebook; ``source`` is the notebook to begin from, one of
    `copyable`; ``topic`` is the id of the topic, one word.
    """
    root = project.root()
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name) or keyword.iskeyword(name):
        raise ValueError(
            f"{name!r} is no name for a notebook: lower-case letters, digits and _, a letter first"
        )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", topic):
        raise ValueError(f"{topic!r} is no topic: one word of letters, digits, '.', '_' and '-'")
    if source not in copyable():
        known = find_notebooks(faults={})
        why = (
            "takes no topic and data files from its parameters"
            if source in known
            else "is no notebook"
        )
        raise ValueError(f"{source} {why}; a topic can begin from {', '.join(copyable())}")
    notebook = find_notebooks([source])[source]
    old_topic = rf"(?<![A-Za-z0-9._-]){re.escape(str(notebook.parameters['topic'].default))}(?![A-Za-z0-9._-])"
    values, contents = {"topic": topic}, dict[Path, str]()
    for parameter, old in _data_parameters(notebook).items():
        path = Path(old).with_name(name + Path(old).suffix)
        if root / "data" / path in contents:
            path = path.with_stem(f"{name}_{parameter}")
        values[parameter] = path.as_posix()
        text = (root / "data" / old).read_text(encoding="utf-8")
        contents[root / "data" / path] = re.sub(old_topic, lambda _: topic, text)
    test = (
        resources.files("equipoise_compendium")
        .joinpath("topic_test.txt")
        .read_text(encoding="utf-8")
    )
    made = Scaffold(
        root / "notebooks" / f"{name}.ipynb", root / "tests" / f"test_{name}.py", tuple(contents)
    )
    contents |= {
        made.notebook: _copied_content(notebook, name, values),
        made.test: test.format(name=name),
    }
    there = [str(path.relative_to(root)) for path in contents if path.exists()]
    if there:
        raise ValueError(f"there already: {', '.join(there)}; choose another name")
    for path, text in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return made


def check_topic(name: str, folder: Path) -> list[float]:
    """Run a notebook into a folder instead of ``reports/``; return what its table ``scores`` holds."""
    notebook = find_notebooks([name])[name]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        failed, message = pool.submit(execute, str(notebook.path), {}, str(folder)).result()
    table = folder / "tables" / "scores.csv"
    if failed or not table.is_file():
        raise ValueError(message or f"{name} has no table named scores")
    return pd.read_csv(table, index_col="score").to_numpy(dtype="float64").ravel().tolist()
