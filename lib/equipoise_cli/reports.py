"""Commands that build, check and serve reports, and list the measures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import Any

import click

from equipoise_cli.shared import fail, named, notebook_name


@click.command()
@click.argument("notebooks", nargs=-1)
@click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="Set a parameter."
)
@click.option(
    "--jobs", type=click.IntRange(1), help="Notebooks to run at a time.  [number of processors]"
)
def build(notebooks: tuple[str, ...], parameters: tuple[str, ...], jobs: int | None) -> None:
    """Run NOTEBOOKS (default: all), and make their reports and the site.

    If a parameter differs from its default, the report goes to reports/variants.
    """
    from equipoise_compendium import build as builder
    from equipoise_compendium import project
    from equipoise_compendium.site import pages

    names = [notebook_name(notebook) for notebook in notebooks]
    n_failed = 0
    is_changed = False
    for outcome in builder.build(names, named(parameters, "a parameter"), jobs):
        place = outcome.folder.relative_to(project.root())
        is_variant = len(place.parts) > 2
        is_changed |= outcome.state == "built" and not is_variant
        line = f"{outcome.state:>6}  {outcome.notebook}"
        click.echo(f"{line}  {place}" if is_variant else line)
        if outcome.error:
            n_failed += 1
            click.echo(f"{outcome.notebook}: {outcome.error}", err=True)
    if is_changed:
        pages.refresh()
        click.echo(" built  the site: reports/site/index.html")
    if n_failed:
        fail([f"notebooks that failed: {n_failed}. Their reports are unchanged"])


@click.command("list")
def list_notebooks() -> None:
    """List the notebooks with their parameters, tables and figures."""
    from equipoise_compendium import project
    from equipoise_compendium.notebooks import find_notebooks
    from equipoise_compendium.provenance import read_manifest

    for name, notebook in find_notebooks().items():
        click.echo(f"{name}\n  {notebook.title}")
        for parameter in notebook.parameters.values():
            assignment = f"{parameter.name}={parameter.default!r}"
            click.echo(f"    -p {assignment}  ({parameter.type})  {parameter.help}")
        manifest = read_manifest(project.root() / "reports" / name) or {"artefacts": []}
        artefacts = ", ".join(record["artefact"] for record in manifest["artefacts"])
        click.echo(f"  makes {artefacts or 'no table or figure of a paper'}\n")


@click.command()
def check() -> None:
    """Recompute each status, and compare it with the ledger.

    It prints one line per table and figure: whether its published cells were reproduced.
    """
    from equipoise_compendium import build as builder
    from equipoise_compendium.site import pages
    from equipoise_compendium.start import unchanged_sentences

    for note in unchanged_sentences():
        click.echo(note, err=True)
    results = builder.results()
    for result, line in results:
        click.echo(f"{f'[{result}]':<15} {line}")
    counts = Counter(result for result, _ in results)
    click.echo(
        f"{len(results)} tables and figures: {counts['OK']} OK, {counts['DIFFERS']} differ, "
        f"{counts['NOT COMPARED']} not compared"
    )
    fail(builder.check() + pages.check())
    click.echo("Ledger, claims, findings and site agree with the reports.")


@click.command()
def site() -> None:
    """Make the site of the reports, reports/site/index.html.

    Open it in a browser; it needs no server.
    """
    from equipoise_compendium.site import pages

    pages.refresh()
    click.echo("reports/site/index.html")


@click.command()
@click.argument("names", nargs=-1)
def measures(names: tuple[str, ...]) -> None:
    """List all measures, or describe the measures NAMES.

    A description has formula, range, ideal, direction, options and source.
    """
    from equipoise import catalogue

    if not names:
        _list_measures(catalogue.MEASURES)
        return

    measure_of = {name.casefold(): measure for name, measure in catalogue.NAMES.items()}
    plain_names = {name: catalogue.plain_name(name).casefold() for name in names}
    unknown = [name for name, plain_name in plain_names.items() if plain_name not in measure_of]
    if unknown:
        choices = ", ".join(measure.name for measure in catalogue.MEASURES)
        raise click.BadParameter(f"unknown measure {', '.join(unknown)}; must be one of {choices}")
    references = catalogue.references()
    cited_references: dict[str, str] = {}  # each once, in the order in which they are cited
    for plain_name in plain_names.values():
        measure = measure_of[plain_name]
        _describe(measure)
        for key in measure.sources:
            cited_references[key] = references[key]
    click.echo("\n\n".join(cited_references.values()))


def _list_measures(listed_measures: Iterable[Any]) -> None:
    """Print the name and the meaning of each measure, by family."""
    formatter = click.HelpFormatter(width=100)
    for family, family_measures in groupby(listed_measures, attrgetter("family")):
        with formatter.section(family):
            formatter.write_dl([(measure.name, measure.meaning) for measure in family_measures])
    click.echo(f"{formatter.getvalue()}\nequipoise measures NAME describes one: its formula, ...")


_NAMES_OF_SIGNS = "omega pi tau alpha Delta sum sqrt in le cap cdot infty exists"
_SIGNS = dict(zip(_NAMES_OF_SIGNS.split(), "ωπταΔ∑√∈≤∩·∞∃", strict=True))
_SIGNS |= {"hat": "\u0302", "bar": "\u0304", "{": "⦃", "}": "⦄", "\\": ";", "begin": "⦃ "}
_SIGNS |= dict.fromkeys(
    ["bigl", "bigr", "Bigl", "Bigr", "left", "right", "mathcal", "quad", "qquad", "end", ","], " "
)


def _in_unicode(tex: str) -> str:
    r"""Return a formula of the catalogue as a line of text.

    >>> _in_unicode(r"NVD(p, q) = \tfrac12 \sum_i |p_i - q_i|")
    'NVD(p, q) = ½ ∑_i |p_i - q_i|'
    >>> _in_unicode(r"\frac{|C_q \cap s|}{n}, \quad \hat p_{ij}")
    '(|C_q ∩ s|) / n, p̂_(ij)'
    """

    def fraction(match: re.Match[str]) -> str:
        parts = (part.strip() for part in match.groups())
        parts = (f"({part})" if " " in part else part for part in parts)
        return " / ".join(parts)

    text = (
        tex.replace(r"\tfrac12", "½")
        .replace("{cases}", "")
        .replace("& \\text{otherwise}", "otherwise")
        .replace("&", "if")
    )
    text = re.sub(r"\\(hat|bar) (\w)", lambda match: match[2] + _SIGNS[match[1]], text)
    text = re.sub(
        r"\\(?!frac|text)([A-Za-z]+|.)", lambda match: _SIGNS.get(match[1], match[1]), text
    )
    for _ in range(text.count("{")):  # from the innermost braces outwards
        text = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
        text = re.sub(r"([_^√])\{([^{}]*)\}", r"\1(\2)", text)
        text = re.sub(r"\\frac\{([^{}]*)\} ?\{([^{}]*)\}", fraction, text)
    return " ".join(text.replace("⦃", "{").replace("⦄", "}").split())


def _describe(measure: Any) -> None:
    """Print the catalogue entry of a measure."""
    click.echo(f"{measure.name}\n  {measure.meaning}\n  {_in_unicode(measure.formula)}")
    for symbol, meaning in measure.symbols:
        click.echo(f"    {_in_unicode(symbol)}: {meaning}")
    for scale, names in measure.scales.items():
        click.echo(f"  {', '.join(names)}: {scale}")
    click.echo(f"  {measure.path}")
    for option in measure.options:
        line = f"    {option.name} = {option.default}"
        if option.choices:
            line += f"  ({option.choices})"
        click.echo(line)
    click.echo(f"  source: {', '.join(measure.sources)}. {measure.where}\n")


COMMANDS = (build, list_notebooks, check, site, measures)
