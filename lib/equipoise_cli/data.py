"""Commands for upstream data: the registry, and the files on this machine."""

from __future__ import annotations

from typing import Any

import click

from equipoise_cli.declared import CommandGroup
from equipoise_cli.shared import fail


@click.group(cls=CommandGroup)
def data() -> None:
    """List, fetch and verify upstream data."""


def _files_of(items: tuple[str, ...]) -> Any:
    """Return the registered files of these items, or of all items if none is named."""
    from equipoise_compendium import registry

    files = registry.entries()
    registered = sorted(set(files["item"]))
    unknown = sorted(set(items) - set(registered))
    if unknown:
        raise click.BadParameter(
            f"unknown item {', '.join(unknown)}; must be one of {', '.join(registered)}"
        )
    return files[files["item"].isin(items or registered)]


@data.command("list")
def data_list() -> None:
    """List the items of the registry: files, size, licence."""
    for item, files in _files_of(()).groupby("item"):
        megabytes = files["bytes"].astype(int).sum() / 1e6
        licences = ", ".join(sorted(set(files["licence"])))
        click.echo(f"{item:<14} {len(files):>4} files {megabytes:>8.2f} MB  {licences}")


@data.command("fetch")
@click.argument("items", nargs=-1)
def data_fetch(items: tuple[str, ...]) -> None:
    """Fetch the missing files of ITEMS (default: all)."""
    from tqdm import tqdm

    from equipoise_compendium import registry

    faults = []
    for file in tqdm(_files_of(items).to_dict("records"), unit="file"):
        try:
            registry.fetch(file["item"], file["path"])
        except (registry.DataUnreachable, ValueError) as error:
            # Reported at the end, so that the other files are fetched too.
            faults.append(str(error))
    fail(faults)


@data.command("verify")
@click.argument("items", nargs=-1)
def data_verify(items: tuple[str, ...]) -> None:
    """Check the sha256 of all local files of ITEMS (default: all)."""
    from equipoise_compendium import registry

    files = _files_of(items)
    files = files.assign(state=[registry.verify(file) for _, file in files.iterrows()])
    for (item, state), n_files in files.groupby(["item", "state"]).size().items():
        click.echo(f"{item:<14} {n_files:>4} files  {state}")
    damaged = files[files["state"] == "damaged"]
    fail("damaged: " + damaged["item"] + "/" + damaged["path"])
