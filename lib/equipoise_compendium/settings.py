"""What a compendium says of itself: ``data/compendium.toml``.

Names, the front page and what other packages add to the site stand there, and the papers in the
bibliography that it names, so that the code that makes reports knows none of them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from equipoise_compendium import project

FILE = "data/compendium.toml"


class _Table(BaseModel):
    """A table of the file; a key that is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Picture(_Table):
    """The figure of the first page: an artefact, such as ``anscombe/figure-1``, and its caption.

    ``page``: a page of the site on which its numbers can be moved.
    """

    artefact: str
    caption: str = ""
    page: str = ""


class Settings(_Table):
    """The settings of a compendium; each has a default that says nothing untrue.

    - ``name``, ``lead``, ``picture``: what the first page begins with; ``{artefacts}`` in the lead
      is the number of tables and figures; ``description``: of the repository, for machines
    - ``licence``: a sentence at the foot of every page; ``search``: what one may look for;
      ``actions``: buttons of the first page, addresses and words
    - ``guide``: pages of the guide in their order, names of Markdown files; ``guides``: the folder
      of those that are not ours
    - ``bibliography``: a file of BibTeX, with an entry of the name of each paper's folder
    - ``pages``: Python modules that add pages to the site; ``parameters``: one that knows bounds of
      parameters; ``packages``: Python packages whose change makes reports out of date
    - ``spellings``: words of the benchmarks' names; ``quantities``, ``products``: short names in
      formulas that are set upright, and long ones that are not
    - ``colours``: those of the series of a figure, in their order
    """

    name: str = "Compendium"
    lead: str = (
        "{artefacts} tables and figures, recomputed beside the printed values; where a cell "
        "differs the reason stands with it, and whether it is proved."
    )
    description: str = (
        "Tables and figures recomputed: the reports, and the inputs they were made from"
    )
    picture: Picture | None = None
    licence: str = ""
    search: str = "table 1"
    actions: tuple[tuple[str, str], ...] = ()
    guide: tuple[str, ...] = ("recompute",)
    guides: str = ""
    bibliography: str = "data/published/sources.bib"
    pages: tuple[str, ...] = ()
    parameters: str = ""
    packages: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    colours: tuple[str, ...] = ()


def settings() -> Settings:
    """The settings of this compendium; the defaults where it has no such file."""
    path = project.root() / FILE
    if not path.is_file():
        return Settings()
    return _parsed(path.read_text(encoding="utf-8"))


@cache
def _parsed(text: str) -> Settings:
    try:
        return Settings.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{FILE} is no TOML: {error}") from None
    except ValidationError as error:
        complaints = []
        for complaint in error.errors():
            place = ".".join(map(str, complaint["loc"]))
            complaints.append(f"{place}: {complaint['msg']}, found {complaint['input']!r:.80}")
        known = ", ".join(Settings.model_fields)
        raise ValueError(f"{FILE}: {'; '.join(complaints)}; its keys are {known}") from None


def bibliography() -> dict[str, str]:
    """BibTeX entries by their keys, in the order of the file; empty where there is none."""
    name = settings().bibliography
    path = project.root() / name
    if not path.is_file():
        return {}
    return _entries(path, path.read_text(encoding="utf-8"))


@cache
def _entries(path: Path, text: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    for entry in f"\n{text}".split("\n@")[1:]:
        key = entry.partition("{")[2].partition(",")[0].strip()
        if key in entries:
            raise ValueError(f"{path} holds the key {key} twice")
        entries[key] = f"@{entry.strip()}"
    return entries
