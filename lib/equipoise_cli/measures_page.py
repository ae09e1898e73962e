"""The page of the measures that the library declares."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise import catalogue
from equipoise_compendium.notebooks import Notebook
from equipoise_compendium.site.added import Page, Part


def page(_: Mapping[str, Notebook]) -> Page:
    """Every measure with its formula, options and sources; it rests on no report."""
    cited: set[str] = set()
    for measure in catalogue.MEASURES:
        cited.update(measure.sources)
    references = [(key, entry) for key, entry in catalogue.references().items() if key in cited]
    entries, explained = [], {}
    for measure in catalogue.MEASURES:
        words = f"definition formula measure {measure.family.lower()}"
        address = f"measures.html#{measure.anchor}"
        entries.append(Part(address, measure.name, measure.meaning, words))
        explained[measure.path] = address
        explained[f"equipoise.{measure.path.rpartition('.')[2]}"] = address
    values = {"measures": catalogue.MEASURES, "references": references}
    return Page("measures", "Measures", values, tuple(entries), explained=explained)
