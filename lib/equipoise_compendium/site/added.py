"""Pages that other packages add to the site, as ``data/compendium.toml`` names their modules.

Such a module has a function ``page`` of the notebooks that have a report; it returns a `Page`, or
None where there is nothing to show. Its template, ``<name>.html``, is in the folder of the module.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from equipoise_compendium.settings import settings


@dataclass(frozen=True)
class Part:
    """A place that the page Find lists: its address and name, what it is about, other words."""

    address: str
    name: str
    about: str
    words: str = ""


@dataclass(frozen=True)
class Page:
    """A page: its name in addresses, its title, and the values of its template.

    ``entries``: what a reader may look for on it by name. ``moves``: by the address of a figure,
    such as ``notebook.html#name``, the place of the page that changes its numbers. ``explained``:
    by the full name of a function, its place on the page.
    """

    name: str
    title: str
    values: Mapping[str, Any]
    entries: tuple[Part, ...] = ()
    moves: Mapping[str, str] = field(default_factory=dict)
    explained: Mapping[str, str] = field(default_factory=dict)


def modules() -> list[ModuleType]:
    """Import the modules that add pages."""
    return [import_module(name) for name in settings().pages]


def script(path: Path) -> tuple[str, str]:
    """Read a script, and its digest, by which a page's policy allows it."""
    text = path.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return text, f"'sha256-{digest}'"
