"""Begin a compendium, or a paper within one: copy what lies in ``starter/``, with its names."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from equipoise_compendium import project
from equipoise_compendium.printed import artefacts
from equipoise_compendium.provenance import DISTRIBUTION
from equipoise_compendium.settings import settings
from equipoise_compendium.writing import new_folder, write_files

_PAPER = re.compile(r"[a-z][a-z0-9_]{0,40}")


def make_compendium(folder: Path, name: str) -> None:
    """Make a compendium of one small paper in a new folder."""
    if not name.strip() or re.search(r"[\x00-\x1f\"\\]", name):
        raise ValueError(f'{name!r} is no name: letters, digits, blanks and signs but " and \\')
    words = {
        "NAME": name,
        "SLUG": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "compendium",
        "VERSION": importlib.metadata.version(DISTRIBUTION),
    }
    texts = _texts(_starter("compendium"), words)
    with new_folder(folder) as staged:
        for path, text in texts.items():
            target = staged / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


def _starter(name: str) -> Traversable:
    return resources.files("equipoise_compendium").joinpath("starter", name)


def _texts(source: Traversable, words: Mapping[str, str], above: str = "") -> dict[str, str]:
    """The texts of a folder by their paths, names put in.

    Names that begin with a dot are kept as ``dot-``, and Python as ``.py.txt``, since tools that
    pack, test and check this package would leave out the first and take up the second.
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


def new_paper(name: str, title: str) -> list[Path]:
    """Add a paper to the compendium: what is printed, what is said of it, and a notebook.

    ``name`` is the key of the paper in addresses and the bibliography. Returns the files to change.
    """
    if not _PAPER.fullmatch(name):
        raise ValueError(
            f"{name!r} is no key of a paper: lower-case letters, digits and _, a letter first, "
            "at most 41"
        )
    root = project.root()
    published = root / "data" / "published"
    table = artefacts()
    if name in set(table["paper"]):
        raise ValueError(f"{name} is in data/published/artefacts.csv already; choose another key")
    title = " ".join(title.split()) or "A paper to recompute"
    if re.search(r"[\"\\{}%]", title):
        raise ValueError("--title: no quotation mark, backslash, brace or percent sign, please")
    texts = _texts(_starter("paper"), {"PAPER": name, "TITLE": title})
    bibliography = root / settings().bibliography
    lists = {
        published / "artefacts.csv": texts.pop("artefacts.csv"),
        bibliography: texts.pop("source.bib"),
    }
    places = {
        "notebook.ipynb": root / "notebooks" / f"recompute_{name}.ipynb",
        "values.csv": root / "data" / "facts" / name / "values.csv",
    }
    contents = {}
    for file, text in texts.items():
        contents[places.get(file, published / name / file)] = text
    existing = [str(path.relative_to(root)) for path in contents if path.exists()]
    if existing:
        raise ValueError(f"there already: {', '.join(existing)}; choose another key")
    for path, addition in lists.items():
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        gap = "\n" if path == bibliography and text else ""
        contents[path] = f"{text.rstrip()}\n{gap}{addition}".lstrip()
    for path in contents:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_files(contents)
    return list(contents)
