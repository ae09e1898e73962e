"""Commands that begin something: a compendium, a paper in it, a topic; and type a table in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from equipoise_cli.shared import FILE, TARGET, fail, notebook_name, write

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


@click.command()
@click.argument("artefacts", nargs=-1)
@click.option(
    "--from", "source", type=FILE, help="Read the cells from a .tex, .csv, .html, .md or .pdf."
)
@click.option("--number", type=click.IntRange(1), default=1, help="Which table of that file.")
@click.option("--page", type=click.IntRange(1), help="Which page of a PDF.  [all]")
@click.option("--header", type=click.IntRange(1, 9), default=1, help="Rows of its header.")
@click.option("--force", is_flag=True, help="Replace what is typed in.")
@click.option("--confirm", is_flag=True, help="You have held the cells against the page.")
@click.option("--picture", type=TARGET, help="Draw what is typed in, .svg, .png or .pdf.")
def typed(artefacts: tuple[str, ...], picture: Path | None, confirm: bool, **reading: Any) -> None:
    """Look for what is mistyped in the printed tables ARTEFACTS, such as smith2020/table-1.

    Without a name all of them are looked at. Faults, such as a row of another length, end with
    status 1; hints, such as a cell of other precision than its column, are only said. What is read
    from a PDF is marked as unchecked, on the site too, until --confirm.
    """
    from equipoise_cli.outputs import DRAWING, refuse_outputs
    from equipoise_cli.tables import check_figure
    from equipoise_compendium import typed as typing

    check_figure(picture)
    refuse_outputs({"--picture": (picture, DRAWING)}, [reading["source"]])
    is_one = len(artefacts) == 1
    if not is_one and (reading["source"] or confirm or picture):
        raise click.UsageError("--from, --confirm and --picture are for one table: name it")
    if reading["source"]:
        _type_in(artefacts[0], **reading)
    if confirm:
        typing.confirm(artefacts[0])
    n_faults = 0
    for artefact in artefacts or typing.typed_artefacts():
        remarks = typing.remarks(artefact)
        n_faults += sum(remark.is_fault for remark in remarks)
        source = typing.unchecked(artefact)
        mark = ""
        if source:
            mark = f"; unchecked, read from {source}: hold it against the page, then --confirm"
        click.echo(f"{artefact}: {len(remarks)} to look at{mark}")
        for remark in remarks:
            click.echo(f"  {remark}")
    if picture:
        write({picture: typing.picture(artefacts[0], picture.suffix.lower().lstrip("."))})
        click.echo(f"Lay {picture} beside the page.")
    fail([f"{n_faults} faults in what is typed in"] if n_faults else [])


def _type_in(
    artefact: str, source: Path, number: int, page: int | None, header: int, force: bool
) -> None:
    from equipoise_compendium import table_files
    from equipoise_compendium import typed as typing

    tables = table_files.read_tables(source, page)
    if number > len(tables):
        raise click.UsageError(f"--number {number}: {source} has {len(tables)} tables")
    try:
        rows = table_files.with_one_header(tables[number - 1], header)
    except ValueError as error:
        raise click.UsageError(f"{source}, table {number}: {error}") from None
    is_exact = source.suffix.lower() != ".pdf"
    path = typing.type_in(artefact, rows, source, force=force, sure=is_exact)
    size = f"{len(rows) - 1} rows of {len(rows[0])} columns"
    click.echo(f"{path.name}: {size} from table {number} of {len(tables)} of {source}")


COMMANDS = (init, new, typed)
