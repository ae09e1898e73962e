"""The settings of a compendium in ``data/compendium.toml``: name, first page, more pages."""

from __future__ import annotations

import re
import tomllib
from functools import cache

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from equipoise_compendium import project

FILE = "data/compendium.toml"


class _Table(BaseModel):
    """A table of the file; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Settings(_Table):
    """The settings of a compendium; each has a default.

    - ``name``, ``question``, ``lead``: the head of the first page, which asks the question;
      ``{artefacts}`` in the lead is the number of tables and figures
    - ``licence``: a sentence at the foot of every page; ``search``: an example of a search;
      ``actions``: buttons of the first page, addresses and labels, and what is found there
    - ``guide``: pages of the guide in their order, names of Markdown files in the folder ``guides``
    - ``bibliography``: a file of BibTeX with one entry per paper
    - ``pages``: Python modules that add pages to the site
    - ``systems``: by the name of a notebook, its table of systems, such as ``anscombe-table-1``,
      which its page shows at the top, to be sorted
    - ``published``: by the name of a column of published values, our column of the same quantity,
      if its name is not ``published <our column>`` or ``<our column>, published``
    - ``main``: by the name of a notebook, its main claim, such as ``anscombe/same-line``
    - ``repository``: the address of the repository on a forge; code on the pages leads to it
    - ``quantities``, ``products``: short names in formulas that are set upright, and long ones that
      are not
    """

    name: str = "Compendium"
    question: str = ""
    lead: str = (
        "{artefacts} tables and figures, recomputed and compared with the published values; each "
        "cell that differs has its reason, and whether it is proved."
    )
    licence: str = ""
    search: str = "table 1"
    actions: tuple[tuple[str, str] | tuple[str, str, str], ...] = ()
    guide: tuple[str, ...] = ("recompute",)
    guides: str = ""
    bibliography: str = "data/published/sources.bib"
    pages: tuple[str, ...] = ()
    systems: dict[str, str] = {}
    published: dict[str, str] = {}
    main: dict[str, str] = {}
    repository: str = ""
    quantities: tuple[str, ...] = ()
    products: tuple[str, ...] = ()

    @field_validator("actions")
    @classmethod
    def _lead_to_pages(cls, actions: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        for address, *_ in actions:
            if not re.match(r"(https?://|[\w.-]+(/|#|$))", address):
                raise ValueError("an address must begin with https:// or be a page of the site")
        return actions


def settings() -> Settings:
    """Read the settings of this compendium, or return the defaults if it has no file."""
    path = project.root() / FILE
    if not path.is_file():
        return Settings()
    return _parsed(path.read_text(encoding="utf-8"))


@cache
def _parsed(text: str) -> Settings:
    try:
        return Settings.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{FILE} must be TOML ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{FILE}: {place}: {first['msg']}, got {first['input']!r:.80}") from None


def bibliography() -> dict[str, str]:
    """Read the BibTeX entries by their keys, in the order of the file."""
    path = project.inside(project.root(), settings().bibliography)
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    entries = {}
    for entry in f"\n{text}".split("\n@")[1:]:
        key = entry.partition("{")[2].partition(",")[0].strip()
        entries[key] = f"@{entry.strip()}"
    return entries
