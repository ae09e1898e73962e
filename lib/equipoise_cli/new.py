"""Commands that create a compendium, a paper in it, or a notebook for a topic."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the compendium.  [name of the folder]")
@click.option("--no-example", is_flag=True, help="Omit the example, a small paper.")
def init(folder: Path, name: str | None, no_example: bool) -> None:
    """Make a compendium in FOLDER, which must be new or empty."""
    from equipoise_compendium.start import make_compendium

    make_compendium(folder, name or Path(os.path.realpath(folder)).name, example=not no_example)
    if no_example:
        click.echo(f"{folder} is an empty compendium. Add a paper, and build its report:")
        click.echo(f"  cd {folder}")
        click.echo("  equipoise new KEY --paper --title TITLE")
        click.echo("  equipoise build")
        return
    click.echo(f"{folder} is a compendium with one small paper. Build its report and the site:")
    click.echo(f"  cd {folder}")
    click.echo("  equipoise build")
    click.echo("  python -m pytest")
    click.echo("Then open reports/site/index.html; README.md explains how to add your own paper.")


@click.command()
@click.argument("name")
@click.option("--paper", is_flag=True, help="Recompute the tables of the paper NAME.")
@click.option("--title", default="", help="Title of the paper.")
@click.option("--topic", default="", help="Id of your own topic, one word.")
def new(name: str, paper: bool, title: str, topic: str) -> None:
    """Start a notebook NAME for your own topic, or to recompute a paper.

    With --topic, the command creates data files to fill in, a notebook and a test. With --paper, it
    creates a published table, reasons and claims, and a notebook with one table, figure and claim.
    """
    from equipoise_compendium import project, start

    if paper == bool(topic):
        raise click.UsageError("must have one of --topic TOPIC and --paper, not both")
    if title and not paper:
        raise click.UsageError("--title must be given with --paper")
    paths = start.new_paper(name, title) if paper else start.new_topic(name, topic)
    click.echo("Edit these files and keep their format:")
    for path in paths:
        click.echo(f"  {path.relative_to(project.root())}")
    notebook = f"recompute_{name}" if paper else name
    click.echo(f"Then: equipoise build {notebook}")


COMMANDS = (init, new)
