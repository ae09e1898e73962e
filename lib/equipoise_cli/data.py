"""Commands for upstream data: the registry, and what of it is on this machine."""

from __future__ import annotations

import sys
from typing import Any

import click

from equipoise_cli.shared import fail


@click.group()
def data() -> None:
    """Upstream data: the registry, and what of it is on this machine."""


def _chosen(items: tuple[str, ...]) -> Any:
    from equipoise_compendium import registry

    table = registry.entries()
    there = sorted(set(table["item"]))
    if unknown := sorted(set(items) - set(there)):
        raise click.BadParameter(f"no item {', '.join(unknown)}; there are {', '.join(there)}")
    return table[table["item"].isin(items or there)]


@data.command("list")
def data_list() -> None:
    """List the items of the registry: files, size, licence."""
    for item, part in _chosen(()).groupby("item"):
        size = part["bytes"].astype(int).sum() / 1e6
        click.echo(
            f"{item:<14} {len(part):>4} files {size:>8.2f} MB  {', '.join(sorted(set(part['licence'])))}"
        )


@data.command("fetch")
@click.argument("items", nargs=-1)
def data_fetch(items: tuple[str, ...]) -> None:
    """Fetch every file of ITEMS (all, if none is named) that is not on this machine."""
    from tqdm import tqdm

    from equipoise_compendium import registry

    faults = []
    for row in tqdm(_chosen(items).to_dict("records"), unit="file", file=sys.stderr):
        try:
            registry.fetch(row["item"], row["path"])
        except (
            registry.DataUnreachable,
            ValueError,
        ) as error:  # the others are fetched all the same
            faults.append(str(error))
    fail(faults)


@data.command("verify")
@click.argument("items", nargs=-1)
def data_verify(items: tuple[str, ...]) -> None:
    """Check the sha256 of every file of ITEMS (all, if none is named) that is on this machine."""
    from tqdm import tqdm

    from equipoise_compendium import registry

    table = _chosen(items)
    rows = tqdm(table.iterrows(), total=len(table), unit="file", file=sys.stderr)
    table = table.assign(state=[registry.verify(row) for _, row in rows])
    for (item, state), part in table.groupby(["item", "state"]):
        click.echo(f"{item:<14} {len(part):>4} files  {state}")
    damaged = table[table["state"] == "damaged"]
    fail("damaged: " + damaged["item"] + "/" + damaged["path"])
