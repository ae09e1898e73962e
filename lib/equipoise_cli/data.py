"""Commands for upstream data: the registry, and what of it is on this machine."""

from __future__ import annotations

from typing import Any

import click

from equipoise_cli.declared import CommandGroup
from equipoise_cli.shared import fail


@click.group(cls=CommandGroup)
def data() -> None:
    """Upstream data: the registry, and what of it is on this machine."""


def _files_of(items: tuple[str, ...]) -> Any:
    """Return the files of these items in the registry; of all, if none is named."""
    from equipoise_compendium import registry

    files = registry.entries()
    registered = sorted(set(files["item"]))
    unknown = sorted(set(items) - set(registered))
    if unknown:
        raise click.BadParameter(f"no item {', '.join(unknown)}; there are {', '.join(registered)}")
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
    """Fetch every file of ITEMS (all, if none is named) that is not on this machine."""
    from tqdm import tqdm

    from equipoise_compendium import registry

    faults = []
    for file in tqdm(_files_of(items).to_dict("records"), unit="file"):
        try:
            registry.fetch(file["item"], file["path"])
        except (registry.DataUnreachable, ValueError) as error:
            # Reported at the end: the other files are fetched all the same.
            faults.append(str(error))
    fail(faults)


@data.command("verify")
@click.argument("items", nargs=-1)
def data_verify(items: tuple[str, ...]) -> None:
    """Check the sha256 of every file of ITEMS (all, if none is named) that is on this machine."""
    from equipoise_compendium import registry

    files = _files_of(items)
    files = files.assign(state=[registry.verify(file) for _, file in files.iterrows()])
    for (item, state), n_files in files.groupby(["item", "state"]).size().items():
        click.echo(f"{item:<14} {n_files:>4} files  {state}")
    damaged = files[files["state"] == "damaged"]
    fail("damaged: " + damaged["item"] + "/" + damaged["path"])
