"""Commands for upstream data: the registry, and what of it is on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from equipoise_cli.declared import CommandGroup
from equipoise_cli.shared import fail


@click.group(cls=CommandGroup)
def data() -> None:
    """Upstream data: the registry, and what of it is on this machine."""


def _refuse_unknown(names: Iterable[str], choices: list[str], noun: str) -> None:
    """Refuse names that are no choice, and say what there is."""
    unknown = sorted(set(names) - set(choices))
    if unknown:
        raise click.BadParameter(f"no {noun} {', '.join(unknown)}; there are {', '.join(choices)}")


def _files_of(items: tuple[str, ...]) -> Any:
    """The files of these items in the registry; of all, if none is named."""
    from equipoise_compendium import registry

    files = registry.entries()
    registered_items = sorted(set(files["item"]))
    _refuse_unknown(items, registered_items, "item")
    return files[files["item"].isin(items or registered_items)]


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
    files = _files_of(items).to_dict("records")
    for file in tqdm(files, unit="file", file=sys.stderr):
        try:
            registry.fetch(file["item"], file["path"])
        except (registry.DataUnreachable, ValueError) as error:
            # Told at the end: the other files are fetched all the same.
            faults.append(str(error))
    fail(faults)


@data.command("verify")
@click.argument("items", nargs=-1)
def data_verify(items: tuple[str, ...]) -> None:
    """Check the sha256 of every file of ITEMS (all, if none is named) that is on this machine."""
    from tqdm import tqdm

    from equipoise_compendium import registry

    files = _files_of(items)
    states = []
    for _, file in tqdm(files.iterrows(), total=len(files), unit="file", file=sys.stderr):
        states.append(registry.verify(file))
    files = files.assign(state=states)
    for (item, state), n_files in files.groupby(["item", "state"]).size().items():
        click.echo(f"{item:<14} {n_files:>4} files  {state}")
    damaged = files[files["state"] == "damaged"]
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

    from equipoise_compendium import facts, registry

    # Found by their files: a study with a facts.py of its own needs no entry anywhere.
    studies_with_facts = _studies_with_facts()
    _refuse_unknown(studies, studies_with_facts, "facts of")
    faults = []
    for study in studies or studies_with_facts:
        makers = import_module(f"equipoise_studies.{study}.facts").TABLES
        try:
            files = facts.make(makers)
        except (registry.DataUnreachable, ValueError) as error:
            # Told at the end: the facts of the other studies are made all the same.
            faults.append(f"{study}: {error}")
            continue
        changed_names = facts.changed(study, files)
        if check:
            for name in changed_names:
                faults.append(f"data/facts/{study}/{name} is not what is made now")
        else:
            faults += _write_facts(study, files, changed_names)
        state = f"{len(changed_names)} changed" if changed_names else "as committed"
        click.echo(f"{study:<18} {len(files):>3} files  {state}")
    fail(faults)


def _write_facts(study: str, files: Mapping[str, bytes], changed_names: list[str]) -> list[str]:
    """Write the tables that changed; returns a fault for each file that is made no more."""
    from equipoise_compendium import project
    from equipoise_compendium.writing import write_files

    folder = project.root() / "data" / "facts" / study
    folder.mkdir(parents=True, exist_ok=True)
    contents = {}
    faults = []  # a file is removed by its owner, not by us
    for name in changed_names:
        if name in files:
            contents[folder / name] = files[name]
        else:
            faults.append(f"data/facts/{study}/{name} is made by nothing any more: remove it")
    write_files(contents)
    return faults


def _studies_with_facts() -> list[str]:
    """Names of the studies that say how fact tables are made."""
    from pathlib import Path

    import equipoise_studies

    (folder,) = equipoise_studies.__path__
    return sorted(path.parent.name for path in Path(folder).glob("*/facts.py"))
