"""What a compendium says of itself: ``data/compendium.toml``.

Names, the front page and what other packages add to the site stand there, and the papers in the
bibliography that it names, so that the code that makes reports knows none of them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from equipoise_compendium import project

FILE = "data/compendium.toml"


class _Table(BaseModel):
    """A table of the file; a key that is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Picture(_Table):
    """The figure of the first page."""

    artefact: str = Field(description="such as anscombe/figure-1")
    caption: str = ""
    page: str = Field("", description="a page of the site on which its numbers move")


class Settings(_Table):
    """The settings of a compendium; each has a default that says nothing untrue."""

    name: str = "Compendium"
    lead: str = Field(
        "{artefacts} tables and figures, recomputed beside the printed values; where a cell "
        "differs the reason stands with it, and whether it is proved.",
        description="the sentence under the name; {artefacts} is their number",
    )
    description: str = Field(
        "Tables and figures computed again: the reports, and the inputs they were made from",
        description="of the repository, for machines",
    )
    licence: str = Field("", description="a sentence at the foot of every page")
    search: str = Field("table 1", description="an example of what one may look for")
    actions: tuple[tuple[str, str], ...] = Field(
        (), description="buttons of the first page: address and words"
    )
    guide: tuple[str, ...] = Field(
        ("recompute",), description="pages of the guide, in their order: names of a Markdown file"
    )
    guides: str = Field("", description="folder of those that the compendium writes itself")
    pages: tuple[str, ...] = Field((), description="Python modules that add pages to the site")
    parameters: str = Field("", description="Python module that knows bounds of parameters")
    packages: tuple[str, ...] = Field(
        (), description="Python packages whose change makes reports out of date"
    )
    bibliography: str = Field("data/published/sources.bib", description="a file of BibTeX")
    spellings: tuple[str, ...] = Field((), description="words of the benchmarks' names")
    quantities: tuple[str, ...] = Field((), description="names of one or two letters in formulas")
    products: tuple[str, ...] = Field((), description="letters in formulas that are no name")
    colours: tuple[str, ...] = Field((), description="of the series of a figure, in their order")
    picture: Picture | None = None


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
