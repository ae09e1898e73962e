"""Commands for reports: build, check and read them; the measures and where they come from."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from equipoise_cli.shared import fail, named


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
    notebooks: tuple[str, ...], parameters: tuple[str, ...], cluster: str | None, **how: Any
) -> None:
    """Regenerate the reports of NOTEBOOKS (all, if none is named) that are out of date.

    With a parameter other than its default, or the smoke profile, a report goes to
    reports/variants, with a page.
    """
    from equipoise_cli.parquet_folders import cluster as connect
    from equipoise_compendium import build as builder
    from equipoise_compendium import project
    from equipoise_compendium.site import pages

    given = named(parameters, "a parameter")
    names = [Path(name).stem if name.endswith(".ipynb") else name for name in notebooks]
    with connect(cluster, single_threaded=True) as executor:
        outcomes = builder.build(names, given, executor=executor, **how)
    for outcome in outcomes:
        click.echo(
            f"{outcome.state:>6}  {outcome.notebook}"
            + (f"  {outcome.message}" if outcome.message else "")
        )
    failed = sum(outcome.state == "failed" for outcome in outcomes)
    faults = (
        [f"{failed} of {len(outcomes)} notebooks failed; their last good reports stand."]
        if failed
        else []
    )
    try:
        for variant in [
            Path(outcome.message) for outcome in outcomes if outcome.state in ("built", "fresh")
        ]:
            if variant.parts:
                page = pages.variant(project.root() / variant)
                click.echo(f" built  its page: {page.relative_to(project.root())}")
        if how["profile"] == "full" and not given and pages.refresh():
            click.echo(" built  the site: reports/site/index.html")
    except ValueError as error:
        faults.append(f"The pages stand as they were: {error}")
    fail(faults)


@click.command("list")
def list_notebooks() -> None:
    """List the notebooks, their parameters, and the tables and figures that each makes."""
    from equipoise_compendium import build as builder

    for row in builder.listing().itertuples():
        click.echo(f"{row.notebook}\n  {row.title}")
        for parameter in row.parameters:
            click.echo(
                f"    -p {parameter.name}={parameter.default!r}  ({parameter.type})  {parameter.help}"
            )
        click.echo(f"  makes {', '.join(row.artefacts) or 'no table or figure of a paper'}\n")


@click.command()
def check() -> None:
    """Check that every report is up to date and no status in the ledger has fallen."""
    from equipoise_compendium import build as builder
    from equipoise_compendium.site import pages

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
    """Make the site of the reports as they are, reports/site/index.html; a browser opens it from disk."""
    from equipoise_compendium.site import pages
    from equipoise_compendium.site import serve as serving

    if serve:
        try:
            server = serving.server(port)
        except FileNotFoundError:
            raise  # no clone, or no site in it
        except OSError as error:
            raise click.UsageError(
                f"cannot serve on port {port}: {error.strerror or error}"
            ) from None
        with server:
            click.echo(f"http://127.0.0.1:{server.server_port}/site/index.html  (stop with Ctrl-C)")
            with suppress(KeyboardInterrupt):
                server.serve_forever()
    elif pages.refresh():
        click.echo("reports/site/index.html")
    elif not pages.reported():
        raise click.UsageError("no notebook has a report yet: run equipoise build")
    else:
        click.echo("reports/site is up to date.")


@click.command()
@click.argument("names", nargs=-1)
def measures(names: tuple[str, ...]) -> None:
    """Describe the measures NAMES (all, if none is named): formula, range, ideal, direction, options, source."""
    from equipoise import catalogue

    known = {measure.name.casefold(): measure for measure in catalogue.MEASURES}
    if unknown := [name for name in names if name.casefold() not in known]:
        there = ", ".join(measure.name for measure in catalogue.MEASURES)
        raise click.BadParameter(f"no measure {', '.join(unknown)}; there are {there}")
    cited: dict[str, str] = {}
    for measure in (known[name.casefold()] for name in names or known):
        click.echo(f"{measure.name}\n  {measure.meaning}\n  {measure.formula}")
        click.echo(f"  range {measure.range}; ideal {measure.ideal}; {measure.direction}")
        click.echo(f"  {measure.path}")
        for option in measure.options:
            choices = f"  ({option.choices})" if option.choices else ""
            click.echo(f"    {option.name} = {option.default}{choices}")
        click.echo(f"  source: {', '.join(measure.sources)}. {measure.where}\n")
        cited |= {key: catalogue.references()[key] for key in measure.sources}
    click.echo("\n\n".join(cited.values()))


@click.command()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> None:
    """Open JupyterLab at the notebooks; ARGUMENTS behind -- go to it."""
    from equipoise_compendium import project

    if find_spec("jupyterlab") is None:
        raise ModuleNotFoundError("no JupyterLab", name="jupyterlab")
    root = f"--ServerApp.root_dir={project.root()}"  # reports, variants too, are in reach of its file browser
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        root,
        "--LabApp.default_url=/lab/tree/notebooks",
        *arguments,
    ]
    os.execv(sys.executable, command)  # noqa: S606 - JupyterLab of this environment, no shell


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write.  [ro-crate-metadata.json at the top of the clone]",
)
def crate(output: Path | None) -> None:
    """Describe the reports for machines, in the words of RO-Crate: to be done at a release."""
    from equipoise_compendium import crate as metadata
    from equipoise_compendium import project
    from equipoise_compendium.provenance import read_manifest
    from equipoise_compendium.site import pages

    manifests = [read_manifest(folder) for folder in pages.report_folders()]
    text = metadata.text([manifest for manifest in manifests if manifest])
    target = output or project.root() / metadata.NAME
    target.write_text(text, encoding="utf-8")
    click.echo(str(target))


COMMANDS = (build, list_notebooks, check, site, measures, lab, crate)
