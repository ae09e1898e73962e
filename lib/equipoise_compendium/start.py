"""Start a compendium, a paper in it, or a notebook for a topic, from templates."""

from __future__ import annotations

import importlib.metadata
import keyword
import re
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import nbformat

from equipoise_compendium import project
from equipoise_compendium.printed import artefacts
from equipoise_compendium.settings import settings
from equipoise_compendium.writing import left_parts, new_folder, remove_parts, write_files

EXAMPLE = "own_conversation"
"""The notebook from which a notebook for another topic is copied."""
EXAMPLE_TOPIC = "S001"
TOPIC_TITLE = """# {topic}: conversations scored

**Question.** How relevant is each conversation about {topic}, and how fair to the groups of what \
it names?"""


def _texts(source: Traversable, words: Mapping[str, str], above: str = "") -> dict[str, str]:
    """Read the texts of a template by their paths, with each ``%WORD%`` replaced.

    Templates have names with ``dot-`` for a leading dot, and ``.py.txt`` for Python. Otherwise,
    tools that pack, test and check this package would omit the first and include the second.
    """
    texts: dict[str, str] = {}
    for entry in source.iterdir():
        name = re.sub("^dot-", ".", entry.name).removesuffix(".txt")
        if entry.is_dir():
            texts |= _texts(entry, words, f"{above}{name}/")
            continue
        text = entry.read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(f"%{word}%", value)
        texts[f"{above}{name}"] = text
    return texts


def _template(name: str) -> Traversable:
    return resources.files("equipoise_compendium").joinpath("starter", name)


def unchanged_sentences() -> list[str]:
    """List the texts of papers that are unchanged from the template: in notebooks, and titles."""
    template = nbformat.reads(
        _template("paper").joinpath("notebook.ipynb").read_text(encoding="utf-8"), as_version=4
    )
    texts = [cell.source for cell in template.cells if cell.cell_type == "markdown"]
    found = []
    rows = _template("paper").joinpath("artefacts.csv").read_text(encoding="utf-8").splitlines()
    titles = {row.split(",")[3] for row in rows}
    for name, title in artefacts()["title"].items():
        if title in titles:
            found.append(f"data/published/artefacts.csv: unchanged title of {name} ({title})")
    for path in sorted((project.root() / "notebooks").glob("recompute_*.ipynb")):
        paper = path.stem.removeprefix("recompute_")
        expected = {text.replace("%PAPER%", paper) for text in texts}
        for cell in nbformat.read(path, as_version=4).cells:
            sentence = cell.source.strip().rpartition("\n")[2]
            if cell.source in expected and not sentence.startswith("#"):
                found.append(
                    f"notebooks/{path.name}: unchanged sentence of the template ({sentence})"
                )
    return found


def _write_new(texts: Mapping[Path, str], changed: Mapping[Path, str] = {}) -> list[Path]:
    """Write files, and those that are changed; raise if one of the others exists."""
    existing = [str(path.relative_to(project.root())) for path in texts if path.exists()]
    if existing:
        raise ValueError(f"{', '.join(existing)} already exists; choose another name")
    write_files({**texts, **changed}, within=project.root())
    remove_parts(left_parts(project.root(), "data/**/"))  # also in folders of other papers
    return [*texts, *changed]


def make_compendium(folder: Path, name: str, *, example: bool = True) -> None:
    """Make a compendium in a new or empty folder, with a small paper as an example."""
    if not re.fullmatch(r"[\w .,:&'()-]+", name):
        raise ValueError(f"--name must be letters, digits, blanks and . , : & ' ( ), got {name!r}")
    words = {
        "NAME": name,
        "SLUG": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "compendium",
        "VERSION": importlib.metadata.version("equipoise"),
    }
    with new_folder(folder) as staged:
        texts = _texts(_template("compendium"), words)
        if example:
            texts |= _texts(_template("example"), words)
        write_files({staged / path: text for path, text in texts.items()}, within=staged)


def new_paper(name: str, title: str) -> list[Path]:
    """Add a paper to the compendium; return the new files.

    ``name`` is the key of the paper in addresses and the bibliography.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name):
        raise ValueError(f"{name!r}: a key must be lower-case letters, digits and _, at most 41")
    if re.search(r"[\"\\{}%]", title) or not title.isprintable():
        raise ValueError(
            "--title: must have no quotation mark, backslash, brace, percent sign, tab or new line"
        )
    root = project.root()
    texts = _texts(_template("paper"), {"PAPER": name, "TITLE": title or "A paper to recompute"})
    lists = {
        root / "data" / "published" / "artefacts.csv": texts.pop("artefacts.csv"),
        root / settings().bibliography: texts.pop("source.bib"),
    }
    places = {
        "notebook.ipynb": root / "notebooks" / f"recompute_{name}.ipynb",
        "values.csv": root / "data" / "facts" / name / "values.csv",
    }
    folder = root / "data" / "published" / name
    for path, addition in lists.items():
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        lists[path] = f"{text.rstrip()}\n{addition}".lstrip()
    return _write_new(
        {places.get(file, folder / file): text for file, text in texts.items()}, lists
    )


def new_topic(name: str, topic: str) -> list[Path]:
    """Copy the example notebook for another topic, with its own data files and test."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name) or keyword.iskeyword(name):
        raise ValueError(f"{name!r}: a name must be lower-case letters, digits and _")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", topic):
        raise ValueError(f"{topic!r}: a topic must be letters, digits, '.', '_' and '-'")
    root = project.root()
    content = nbformat.read(root / "notebooks" / f"{EXAMPLE}.ipynb", as_version=4)
    cells = [nbformat.v4.new_markdown_cell(TOPIC_TITLE.format(topic=topic), id="title")]
    texts: dict[Path, str] = {}
    for cell in content.cells:
        if "example" in cell.metadata.get("tags", []):
            continue  # prose about the example, its source and its numbers
        if cell.cell_type == "code":
            for old in re.findall(r'"((?:conversations|attributes)/[^"]+)"', cell.source):
                path = Path(old).with_stem(name)
                text = (root / "data" / old).read_text(encoding="utf-8")
                texts[root / "data" / path] = text.replace(EXAMPLE_TOPIC, topic)
                cell.source = cell.source.replace(old, path.as_posix())
            cell.source = cell.source.replace(f'"{EXAMPLE}"', f'"{name}"')
            cell.source = cell.source.replace(f'"{EXAMPLE_TOPIC}"', f'"{topic}"')
        cells.append(cell)
    content.cells = cells
    test = _template("topic_test.py.txt").read_text(encoding="utf-8").replace("%NAME%", name)
    texts[root / "notebooks" / f"{name}.ipynb"] = nbformat.writes(content) + "\n"
    texts[root / "tests" / f"test_{name}.py"] = test
    return _write_new(texts)
