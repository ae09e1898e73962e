"""Pages that other packages add to the site, as ``data/compendium.toml`` names their modules.

Such a module has a function ``page`` of the notebooks that have a report; it returns a `Page`, or
None where there is nothing to show. Its template, ``<name>.html``, lies beside the module.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from equipoise_compendium.notebooks import Notebook
from equipoise_compendium.settings import settings
from equipoise_compendium.site.search import Part


@dataclass(frozen=True)
class Page:
    """A page: its name in addresses, its title, and the values of its template.

    ``entries``: what a reader may look for on it by name.
    """

    name: str
    title: str
    values: Mapping[str, Any]
    entries: tuple[Part, ...] = ()


def _modules() -> list[ModuleType]:
    return [import_module(name) for name in settings().pages]


def folders() -> list[Path]:
    """Folders with the templates of added pages."""
    return [Path(str(module.__file__)).parent for module in _modules()]


def added_pages(notebooks: Mapping[str, Notebook]) -> list[Page]:
    """The added pages that have something to show."""
    pages = []
    for module in _modules():
        page = module.page(notebooks)
        if page is not None:
            pages.append(page)
    return pages


def script(path: Path) -> tuple[str, str]:
    """A script, and its digest as a page's policy names it for the script to run."""
    text = path.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return text, f"'sha256-{digest}'"
