"""The page of the measures that the library declares, and the commands for the site's search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from equipoise import catalogue
from equipoise_compendium.notebooks import Notebook
from equipoise_compendium.site.added import Page, Part
from equipoise_compendium.site.pages import guides


def page(_: Mapping[str, Notebook]) -> Page:
    """Every measure with its formula, options and sources; it rests on no report."""
    from equipoise_cli import main  # which imports the commands that make this page

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
    entries += _commands(main, "equipoise")
    return Page("measures", "Measures", values, tuple(entries), explained=explained)


def _commands(command: click.Command, name: str) -> Iterator[Part]:
    """List every command with its options, at the page of the guide that names it most often."""
    if isinstance(command, click.Group):
        for part, below in command.commands.items():
            yield from _commands(below, f"{name} {part}")
        return
    named = {page: text.count(f"{name} ") for page, (_, text) in guides().items()}
    most = max(named, key=lambda page: named[page])
    options = [word for each in command.params for word in (*each.opts, str(each.name))]
    words = f"command {' '.join(options)}"
    about = command.get_short_help_str(200)
    yield Part(f"{most}.html", name, f"command: {about}", words)
