"""Commands for reports: build, check and read them; the measures and where they come from."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise_cli.outputs import Kind, refuse_outputs
from equipoise_cli.shared import TARGET, fail, named, notebook_name

if TYPE_CHECKING:
    from equipoise_compendium.build import Outcome


@click.command()
@click.argument("notebooks", nargs=-1)
@click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="Set a parameter."
)
@click.option(
    "--profile",
    type=click.Choice(["full", "smoke"]),
    default="full",
    help="smoke: small, to see it run.",
)
@click.option(
    "--jobs", type=click.IntRange(1), help="Notebooks to run at a time.  [number of processors]"
)
@click.option(
    "--strict",
    is_flag=True,
    help="Fail where data cannot be reached, instead of keeping the report.",
)
@click.option("--force", is_flag=True, help="Run what is up to date too.")
@click.option(
    "--mark-kept", is_flag=True, help="Say in the ledger, too, what is kept for want of its data."
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Dask scheduler to run the notebooks on; one thread a worker.",
)
def build(
    notebooks: tuple[str, ...], parameters: tuple[str, ...], cluster: str | None, **options: Any
) -> None:
    """Regenerate the reports of NOTEBOOKS (all, if none is named) that are out of date.

    With a parameter other than its default, or the smoke profile, a report goes to
    reports/variants, with a page.
    """
    from equipoise_cli.cluster import cluster as connect
    from equipoise_compendium import build as builder
    from equipoise_compendium.site import pages

    values = named(parameters, "a parameter")
    names = [notebook_name(notebook) for notebook in notebooks]
    with connect(cluster) as executor:
        outcomes = builder.build(names, values, executor=executor, **options)
    faults = []
    n_failed = 0
    for outcome in outcomes:
        click.echo(f"{outcome.state:>6}  {outcome.notebook}  {outcome.message}".rstrip())
        n_failed += outcome.state == "failed"
    if n_failed:
        faults.append(
            f"{n_failed} of {len(outcomes)} notebooks failed; their last good reports stand."
        )
    # The site shows reports of the defaults only; a variant has a page of its own.
    is_default = options["profile"] == "full" and not values
    try:
        _make_variant_pages(outcomes)
        if is_default and pages.refresh():
            click.echo(" built  the site: reports/site/index.html")
    except ValueError as error:
        faults.append(f"The pages stand as they were: {error}")
    fail(faults)


def _make_variant_pages(outcomes: Iterable[Outcome]) -> None:
    """Make the page of every variant that was built or is up to date, and say where it is."""
    from equipoise_compendium import project
    from equipoise_compendium.site import pages

    for outcome in outcomes:
        # Of these two states, only a variant's outcome has a message: where its report is.
        if outcome.state in ("built", "fresh") and outcome.message:
            page = pages.variant(project.root() / outcome.message)
            click.echo(f" built  its page: {page.relative_to(project.root())}")


@click.command("list")
def list_notebooks() -> None:
    """List the notebooks, their parameters, and the tables and figures that each makes."""
    from equipoise_compendium import build as builder

    for row in builder.listing().itertuples():
        click.echo(f"{row.notebook}\n  {row.title}")
        for parameter in row.parameters:
            assignment = f"{parameter.name}={parameter.default!r}"
            click.echo(f"    -p {assignment}  ({parameter.type})  {parameter.help}")
        artefacts = ", ".join(row.artefacts) or "no table or figure of a paper"
        click.echo(f"  makes {artefacts}\n")


@click.command()
def check() -> None:
    """Check that every report is up to date and no status in the ledger has fallen."""
    from equipoise_compendium import build as builder
    from equipoise_compendium.site import pages

    # Both are told, whatever the first finds.
    fail(builder.check() + pages.check())
    click.echo("Every report is up to date, and no status has fallen.")


@click.command()
@click.option(
    "--serve", is_flag=True, help="Serve it on 127.0.0.1 until interrupted, instead of making it."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port for --serve; 0 takes a free one."
)
def site(serve: bool, port: int) -> None:
    """Make the site of the reports as they are, reports/site/index.html.

    A browser opens it from disk.
    """
    from equipoise_compendium.site import pages
    from equipoise_compendium.staging import heal

    heal()
    if serve:
        _serve(port)
    elif pages.refresh():
        click.echo("reports/site/index.html")
    elif not pages.reported():
        raise click.UsageError("no notebook has a report yet: run equipoise build")
    else:
        click.echo("reports/site is up to date.")


def _serve(port: int) -> None:
    """Serve the site until interrupted."""
    from equipoise_compendium.site import serve as serving

    try:
        server = serving.server(port)
    except FileNotFoundError:
        raise  # no clone, or no site in it
    except OSError as error:
        problem = error.strerror or error
        raise click.UsageError(f"cannot serve on port {port}: {problem}") from None
    with server:
        click.echo(f"http://127.0.0.1:{server.server_port}/site/index.html  (stop with Ctrl-C)")
        with suppress(KeyboardInterrupt):
            server.serve_forever()


@click.command()
@click.argument("names", nargs=-1)
def measures(names: tuple[str, ...]) -> None:
    """List the measures with a line each, or describe those of NAMES.

    A description has formula, range, ideal, direction, options and source.
    """
    from equipoise import catalogue

    if not names:
        _list_measures(catalogue.MEASURES)
        return

    measure_of: dict[str, Any] = {}
    for measure in catalogue.MEASURES:
        # Some are declared together, and are asked for by the name of either.
        for name in re.split(", | and ", measure.name):
            measure_of.setdefault(name.casefold(), measure)
    # A name of its own comes before one among others.
    measure_of |= {measure.name.casefold(): measure for measure in catalogue.MEASURES}
    unknown = [name for name in names if name.casefold() not in measure_of]
    if unknown:
        choices = ", ".join(measure.name for measure in catalogue.MEASURES)
        raise click.BadParameter(f"no measure {', '.join(unknown)}; there are {choices}")
    references = catalogue.references()
    cited_references: dict[str, str] = {}  # each once, in the order in which they are cited
    for name in names:
        measure = measure_of[name.casefold()]
        _describe(measure)
        for key in measure.sources:
            cited_references[key] = references[key]
    click.echo("\n\n".join(cited_references.values()))


def _list_measures(listed_measures: Iterable[Any]) -> None:
    """The name and the meaning of each measure, under the headings of the families."""
    formatter = click.HelpFormatter(width=100)
    for family, of_family in groupby(listed_measures, attrgetter("family")):
        with formatter.section(family):
            formatter.write_dl([(measure.name, measure.meaning) for measure in of_family])
    click.echo(f"{formatter.getvalue()}\nequipoise measures NAME describes one: its formula, ...")


def _describe(measure: Any) -> None:
    """What the catalogue holds of a measure, in a paragraph."""
    click.echo(f"{measure.name}\n  {measure.meaning}\n  {measure.formula}")
    click.echo(f"  range {measure.range}; ideal {measure.ideal}; {measure.direction}")
    click.echo(f"  {measure.path}")
    for option in measure.options:
        line = f"    {option.name} = {option.default}"
        if option.choices:
            line += f"  ({option.choices})"
        click.echo(line)
    click.echo(f"  source: {', '.join(measure.sources)}. {measure.where}\n")


@click.command()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> None:
    """Open JupyterLab at the notebooks; ARGUMENTS behind -- go to it."""
    from equipoise_compendium import project

    if find_spec("jupyterlab") is None:  # the front door says which extra brings it
        raise ModuleNotFoundError("no JupyterLab", name="jupyterlab")
    # Its file browser shows the clone, so that reports, variants too, are within reach.
    options = [
        f"--ServerApp.root_dir={project.root()}",
        "--LabApp.default_url=/lab/tree/notebooks",
        "--ContentsManager.pre_save_hook=equipoise_compendium.saving.before_saving",
    ]
    command = [sys.executable, "-m", "jupyterlab", *options, *arguments]
    os.execv(sys.executable, command)  # noqa: S606 - JupyterLab of this environment, no shell


@click.command()
@click.option(
    "-o",
    "--output",
    type=TARGET,
    help="File to write.  [ro-crate-metadata.json at the top of the clone]",
)
def crate(output: Path | None) -> None:
    """Describe the reports for machines, in the words of RO-Crate: to be done at a release."""
    from equipoise_compendium import crate as metadata
    from equipoise_compendium import project
    from equipoise_compendium.provenance import read_manifest
    from equipoise_compendium.site import pages
    from equipoise_compendium.staging import heal
    from equipoise_compendium.writing import write_files

    kind = Kind("description of reports", lambda path: "ro-crate" in path.read_text("utf-8"))
    refuse_outputs({"-o": (output, kind)}, [])
    heal()
    manifests = []
    for folder in pages.report_folders():
        manifest = read_manifest(folder)
        if manifest:
            manifests.append(manifest)
    target = output or project.root() / metadata.NAME
    write_files({target: metadata.text(manifests)})
    click.echo(str(target))


COMMANDS = (build, list_notebooks, check, site, measures, lab, crate)
