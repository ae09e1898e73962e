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


@data.command("facts")
@click.argument("studies", nargs=-1)
@click.option("--check", is_flag=True, help="Write nothing; fail if a table would differ.")
def data_facts(studies: tuple[str, ...], check: bool) -> None:
    """Make the fact tables of STUDIES (all, if none is named) from the upstream files.

    They are what notebooks need of upstream collections, in data/facts; upstream files come from
    the cache, the mirror or their urls. Made again, every table has the same bytes.
    """
    from importlib import import_module

    from equipoise_compendium import facts, project, registry
    from equipoise_compendium.writing import write_files

    known = _studies_with_facts()
    if unknown := sorted(set(studies) - set(known)):
        raise click.BadParameter(f"no facts of {', '.join(unknown)}; there are {', '.join(known)}")
    faults = []
    for study in studies or known:
        makers = import_module(f"equipoise_studies.{study}.facts").TABLES
        try:
            files = facts.make(makers)
        except (registry.DataUnreachable, ValueError) as error:
            faults.append(f"{study}: {error}")
            continue
        differing = facts.changed(study, files)
        if check:
            faults += [f"data/facts/{study}/{name} is not what is made now" for name in differing]
        else:
            folder = project.root() / "data" / "facts" / study
            folder.mkdir(parents=True, exist_ok=True)
            write_files({folder / name: files[name] for name in differing if name in files})
            for name in set(differing) - set(files):
                faults.append(f"data/facts/{study}/{name} is made by nothing any more: remove it")
        state = f"{len(differing)} changed" if differing else "as committed"
        click.echo(f"{study:<18} {len(files):>3} files  {state}")
    fail(faults)


def _studies_with_facts() -> list[str]:
    """Names of the studies that say how fact tables are made."""
    from pathlib import Path

    import equipoise_studies

    (folder,) = equipoise_studies.__path__
    return sorted(path.parent.name for path in Path(folder).glob("*/facts.py"))
