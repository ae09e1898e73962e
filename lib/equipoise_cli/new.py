"""Commands that begin something: a compendium, a paper in it, a topic; and type a table in."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise_cli.shared import notebook_name

TOPIC_TITLE = """# {topic}: conversations scored

**Question.** How relevant is each conversation about {topic}, and how fair to the groups of what \
it names?

**Measures.** T. Sakai: *Fairness-based Evaluation of Conversational Search: A Pilot Study*, EVIA \
2023 (gfrc); T. Sakai,
S. Tao, Y.-I. Song: *Evaluating Group Fairness and Relevance in Conversational Search: An \
Alternative Formulation*, 2025
(gfrc2)."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", help="What the compendium is called.  [the folder's name]")
def init(folder: Path, name: str | None) -> None:
    """Make a compendium of your own in FOLDER: a small paper recomputed, to begin from."""
    from equipoise_compendium.begin import make_compendium

    make_compendium(folder, name or folder.absolute().name)
    click.echo(f"{folder} is a compendium: one paper, recomputed. Make its reports and its site:")
    click.echo(f"  cd {folder}")
    click.echo("  equipoise build")
    click.echo("  python -m pytest")
    click.echo("Then open reports/site/index.html, and read README.md for a paper of your own.")


@click.command()
@click.argument("name")
@click.option("--paper", is_flag=True, help="NAME is a paper whose tables are to be recomputed.")
@click.option("--title", default="", help="Title of the paper.")
@click.option("--topic", default="", help="Id of a topic of your own, one word.")
@click.option("--from", "source", default="own_conversation", help="Notebook to begin from.")
def new(name: str, paper: bool, title: str, topic: str, source: str) -> None:
    """Start a notebook NAME for a topic of your own, or to recompute a paper.

    With --topic: data files to fill in, a notebook, a test. With --paper: a table to type cells
    into, reasons and claims, and a notebook with one table, one figure and one claim.
    """
    if paper == bool(topic):
        raise click.UsageError("give either --topic TOPIC or --paper")
    if paper:
        _new_paper(name, title)
    elif title:
        raise click.UsageError("--title is that of a paper: give it with --paper")
    else:
        _new_topic(name, source, topic)


def _new_paper(name: str, title: str) -> None:
    from equipoise_compendium import project
    from equipoise_compendium.begin import new_paper

    paths = new_paper(name, title)
    click.echo("Change, keeping the form of what is there:")
    for path in paths:
        click.echo(f"  {path.relative_to(project.root())}")
    click.echo(f"Then: equipoise typed {name}/table-1, and equipoise build recompute_{name}")


def _new_topic(name: str, source: str, topic: str) -> None:
    from equipoise_compendium import project, scaffold

    title = TOPIC_TITLE.format(topic=topic)
    files = scaffold.new_topic(name, notebook_name(source), topic, title)
    root = project.root()
    click.echo("Fill in, keeping the form of what is there:")
    for path in files.data:
        click.echo(f"  {path.relative_to(root)}")
    click.echo(f"Then: equipoise build {name}, and pytest {files.test.relative_to(root)}")


COMMANDS = (init, new)
