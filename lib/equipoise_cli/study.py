"""The command that records what a chapter of the thesis needs, at any size."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from equipoise_cli.shared import samples

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(epilog=samples("--config, the rest as in data/studies/CHAPTER"))
@click.argument(
    "chapter",
    type=click.Choice(["query_by_example", "attribution"]),
)
@click.option("--config", default="replica", help="A name in data/studies/CHAPTER, or a YAML file.")
@click.option(
    "--models",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of checkpoints.",
)
@click.option(
    "--work", type=_FOLDER, default=Path("study"), help="Folder of what is kept on the way."
)
@click.option(
    "--dry-run", is_flag=True, help="Say what would be done, what it needs and how long it takes."
)
def study(chapter: str, config: str, models: Path | None, work: Path, dry_run: bool) -> None:
    """Record what CHAPTER needs for a config; a step that was recorded is not recorded again.

    Afterwards, equipoise build NOTEBOOK -p study=CONFIG makes the chapter's report of it.
    """
    from equipoise_compendium import registry
    from equipoise_studies import config as configs

    # Recorders need PyTorch and the like: no more than the one asked for is imported.
    record: Any = importlib.import_module(f"equipoise_studies.{chapter}.record")
    with registry.without_downloads() if dry_run else nullcontext():
        steps = record.plan(record.Study.read(config), models, work)
    click.echo(configs.told(steps))
    if dry_run:
        return
    put_off = configs.carry_out(steps, click.echo)
    if put_off:
        click.echo(f"{len(put_off)} steps were left out: start this again when they can be run")
    click.echo(f"Recorded. equipoise build {record.NOTEBOOK} -p study={config}")
