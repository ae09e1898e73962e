"""Works as the pages name and cite them: the papers of the compendium, and the compendium."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import yaml

from equipoise_compendium import project
from equipoise_compendium.settings import settings


@dataclass(frozen=True)
class Work:
    """A work as one cites it; ``entry`` is its BibTeX."""

    key: str
    authors: str
    year: str
    title: str
    entry: str


def field_of(entry: str, name: str) -> str:
    """A field of a BibTeX entry, without its braces; empty where the entry has none."""
    match = re.search(rf"^\s*{name} = \{{(.*)\}},$", entry, re.MULTILINE)
    return re.sub(r"[{}]", "", match[1]) if match else ""


def work_of(key: str, entry: str) -> Work:
    """A work of the bibliography."""
    authors = []
    for author in field_of(entry, "author").split(" and "):
        family, _, given = author.partition(", ")
        authors.append(f"{given} {family}".strip())
    names = ", ".join(authors)
    return Work(key, names, field_of(entry, "year"), field_of(entry, "title"), entry)


def papers(keys: Iterable[str], references: Mapping[str, str]) -> list[Work]:
    """The papers with these keys, each followed by its chapters that have an entry of their own."""
    works = []
    for key in keys:
        for name, entry in references.items():
            if name == key or name.startswith(f"{key}-ch"):
                works.append(work_of(name, entry))
    return works


def software() -> Work | None:
    """The compendium as its ``CITATION.cff`` says to cite it; None where there is no such file."""
    path = project.root() / "CITATION.cff"
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    citation = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes words only
    names = []
    for author in citation["authors"]:
        whole_name = author.get("name")
        names.append(whole_name or f"{author['given-names']} {author['family-names']}")
    year = str(citation.get("date-released", ""))[:4]
    fields = {
        # A second pair of braces keeps BibTeX from taking the name of a group apart.
        "author": " and ".join(f"{{{name}}}" for name in names),
        "title": citation["title"],
        "version": citation["version"],
        "year": year,
        "license": citation["license"],
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    key = re.sub(r"\W+", "-", settings().name.lower())
    entry = "\n".join([f"@software{{{key},", *lines, "}"])
    return Work(key, ", ".join(names), year, citation["title"], entry)


def version() -> str:
    """The version that ``CITATION.cff`` names; empty where there is no such file."""
    work = software()
    return field_of(work.entry, "version") if work else ""
