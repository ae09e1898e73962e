"""Every measure that the library declares, in the order of the families, and the works cited."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module, resources

from equipoise import declared, measures, permutations
from equipoise.declared import Measure, Scale

FAMILIES = (
    "Divergences between distributions over groups",
    "Ranked lists: group fairness and relevance",
    "Conversations: GFRC and GFRC2",
    "Protocol and order of conversations",
    "Ranked lists: bias in their terms",
    "Overlap of rankings",
    "Answers: attribution to their sources",
)
"""The order of the families; other families follow these."""


def _load() -> None:
    """Import what declares measures: divergences, measures and permutations."""
    import_module("equipoise.divergences")
    for package in (measures, permutations):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


def _place(measure: Measure) -> tuple[int, str, str, int]:
    """Return a sort key: family, module and line, regardless of the order of imports."""
    rank = FAMILIES.index(measure.family) if measure.family in FAMILIES else len(FAMILIES)
    function = inspect.unwrap(measure.function)
    return rank, measure.family, function.__module__, function.__code__.co_firstlineno


_load()
MEASURES: tuple[Measure, ...] = tuple(sorted(declared.MEASURES.values(), key=_place))
"""Every measure, in the order of the families."""
NAMES: dict[str, Measure] = {name: measure for measure in MEASURES for name in measure.names}
NAMES |= {measure.name: measure for measure in MEASURES}
"""The measure of each name in the catalogue and in tables of scores."""
SCALES: dict[str, Scale] = {measure.name: measure.scale for measure in MEASURES}
SCALES |= {name: scale for measure in MEASURES for name, scale in measure.names.items()}
"""The scale of each of these names."""


def plain_name(name: str) -> str:
    """Return a name in scores without cut-off, options and divergences.

    >>> [plain_name(name) for name in ("NFaiRR@10", "GFR-ERR+JSD", "TED(proportional=False)@5")]
    ['NFaiRR', 'GFR-ERR', 'TED']
    """
    for end in "@(+":
        name = name.partition(end)[0]
    return name


def references() -> dict[str, str]:
    """BibTeX entries of the works cited, by key, in the order of ``sources.bib``."""
    text = resources.files("equipoise").joinpath("sources.bib").read_text(encoding="utf-8")
    entries = [entry.strip() for entry in re.split(r"\n(?=@)", text) if entry.strip()]
    keyed = {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}
    if len(keyed) < len(entries):
        raise ValueError("sources.bib: each key must occur once")
    return keyed
