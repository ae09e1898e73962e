"""The command that fetches upstream data."""

from __future__ import annotations

import click

from equipoise_cli.declared import CommandGroup
from equipoise_cli.shared import fail


@click.group(cls=CommandGroup)
def data() -> None:
    """Fetch upstream data."""


@data.command("fetch")
@click.argument("items", nargs=-1)
def data_fetch(items: tuple[str, ...]) -> None:
    """Fetch the missing files of ITEMS (default: all), and check the sha256 of every file."""
    from tqdm import tqdm

    from equipoise_compendium import registry

    files = registry.entries()
    registered = sorted(set(files["item"]))
    unknown = sorted(set(items) - set(registered))
    if unknown:
        raise click.BadParameter(
            f"unknown item {', '.join(unknown)}; must be one of {', '.join(registered)}"
        )
    faults = []
    for file in tqdm(
        files[files["item"].isin(items or registered)].to_dict("records"), unit="file"
    ):
        try:
            registry.fetch(file["item"], file["path"])
        except (registry.DataUnreachable, ValueError) as error:
            # Reported at the end, so that the other files are fetched too.
            faults.append(str(error))
    fail(faults)
