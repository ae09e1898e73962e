"""Commands for upstream data: the registry, and what of it is on this machine."""

from __future__ import annotations

import sys
from typing import Any

import click


@click.group()
def data() -> None:
    """Upstream data: the registry, and what of it is on this machine."""


def _chosen(items: tuple[str, ...]) -> Any:
    from equipoise.loaders import registry

    table = registry.entries()
    unknown = sorted(set(items) - set(table["item"]))
    if unknown:
        raise click.BadParameter(f"no item {', '.join(unknown)}; there are {', '.join(sorted(set(table['item'])))}")
    return table[table["item"].isin(items)] if items else table


@data.command("list")
def data_list() -> None:
    """List the items of the registry: files, size, licence."""
    table = _chosen(())
    for item, part in table.groupby("item"):
        size = part["bytes"].astype(int).sum() / 1e6
        click.echo(f"{item:<14} {len(part):>4} files {size:>8.2f} MB  {', '.join(sorted(set(part['licence'])))}")


@data.command("fetch")
@click.argument("items", nargs=-1)
def data_fetch(items: tuple[str, ...]) -> None:
    """Fetch every file of ITEMS (all, if none is named) that is not on this machine."""
    from tqdm import tqdm

    from equipoise.loaders import registry

    unreachable = []
    for row in tqdm(_chosen(items).to_dict("records"), unit="file", file=sys.stderr):
        try:
            registry.fetch(row["item"], row["path"])
        except registry.DataUnreachable as error:
            unreachable.append(str(error))
    for line in unreachable:
        click.echo(line, err=True)
    if unreachable:
        sys.exit(1)


@data.command("verify")
@click.argument("items", nargs=-1)
def data_verify(items: tuple[str, ...]) -> None:
    """Check the sha256 of every file of ITEMS (all, if none is named) that is on this machine."""
    from tqdm import tqdm

    from equipoise.loaders import registry

    table = _chosen(items)
    states = [registry.verify(row) for _, row in tqdm(table.iterrows(), total=len(table), unit="file", file=sys.stderr)]
    table = table.assign(state=states)
    for (item, state), part in table.groupby(["item", "state"]):
        click.echo(f"{item:<14} {len(part):>4} files  {state}")
    damaged = table[table["state"] == "damaged"]
    for row in damaged.itertuples():
        click.echo(f"damaged: {row.item}/{row.path}", err=True)
    if len(damaged):
        sys.exit(1)
