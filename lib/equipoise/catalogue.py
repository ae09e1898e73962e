"""Every measure, as a table: the declarations of all modules, in the order of their families, and the works cited."""

from __future__ import annotations

import re
from importlib import import_module, resources

from equipoise import declare
from equipoise.declare import Measure

_CONVERSATIONS = ["gfrc", "gfrc2", "trees", "protocol", "orders", "agreement", "worst_cases"]
_FAMILIES = ["gfr", *_CONVERSATIONS, "ranking_bias", "rank_overlap"]
MODULES = [
    "divergences",
    *(f"measures.{name}" for name in [*_FAMILIES, "attribution.quality", "attribution"]),
]
"""Modules that declare measures, in the order of the catalogue."""


def _place(measure: Measure) -> int:
    module = measure.function.__module__.removeprefix("equipoise.")
    return next(place for place, name in enumerate(MODULES) if f"{module}.".startswith(f"{name}."))


for _name in MODULES:
    import_module(f"equipoise.{_name}")

MEASURES: tuple[Measure, ...] = tuple(sorted(declare.MEASURES.values(), key=_place))
"""Every measure, in the order of the families."""


def references() -> dict[str, str]:
    """BibTeX entries of the works cited, by key, in the order of ``sources.bib``."""
    text = resources.files("equipoise").joinpath("sources.bib").read_text(encoding="utf-8")
    entries = [entry.strip() for entry in re.split(r"\n(?=@)", text) if entry.strip()]
    keyed = {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}
    if len(keyed) < len(entries):
        raise ValueError("sources.bib holds a key twice")
    return keyed
