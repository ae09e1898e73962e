"""The command that compares annotators."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import NUGGETS, SCORES, refuse_outputs
from equipoise_cli.shared import FILE, TARGET, samples, takes_output, write

EXPORT = "equipoise_cli.loaders.annotation_exports.read_export"
MEASURES = "equipoise.measures.agreement.annotator_agreement"


@click.command(
    cls=DeclaredCommand,
    declared=[Declared(MEASURES), Declared(EXPORT)],
    epilog=samples("NUGGETS", "--attributes", "--labels"),
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--attributes", required=True, type=FILE, help="Attribute sets, a YAML file.")
@click.option(
    "--labels",
    type=FILE,
    help="What labels of an export mean; CSV: label,level,entity and the sets.",
)
@click.option(
    "--unmatched", type=TARGET, help="Also write the nuggets that one annotator alone has found."
)
@takes_output
def agreement(
    files: tuple[Path, ...],
    attributes: Path,
    labels: Any,
    unmatched: Any,
    output: Any,
    force: bool,
    units: Any,
    offsets: Any,
    nested: Any,
    **options: Any,
) -> None:
    """Agreement of annotators, and what it leaves of scores.

    FILES are exports of Label Studio or doccano with the annotations of several, or a nugget table
    of each annotator. There are alpha of levels, groups and words, how many nuggets only one has
    found, and, for every conversation, R, GF, GFRC, EGNP, EGF and GFRC2 with an interval: of two
    annotators over all mixtures of both, of more from the lowest to the highest of them.
    """
    outputs = {"-o": (output, SCORES), "--unmatched": (unmatched, NUGGETS)}
    refuse_outputs(outputs, [*files, attributes, labels], force=force)
    from equipoise.attributes import read_attributes
    from equipoise.measures import agreement as measures
    from equipoise.problems import Note

    sets = read_attributes(attributes)
    reading = {"units": units, "offsets": offsets, "nested": nested}
    tables_by_annotator = _tables_by_annotator(files, sets, labels, reading)
    if len(tables_by_annotator) < 2:
        names = ", ".join(tables_by_annotator)
        raise click.UsageError(
            f"{', '.join(map(str, files))}: annotations of {names or 'nobody'} alone; wanted an "
            "export of two annotators or more, or a nugget table of each"
        )
    tables: dict[Any, Any] = {}
    if len(tables_by_annotator) > 2:
        if unmatched is not None:
            raise click.UsageError("--unmatched is of two annotators; there are more")
        tables[output] = measures.many_annotators_agreement(tables_by_annotator, sets, **options)
    else:
        first, second = tables_by_annotator.values()
        tables[output] = measures.annotator_agreement(first, second, sets, **options)
    if unmatched is not None:
        with warnings.catch_warnings():
            # What is left out was said above.
            warnings.simplefilter("ignore", Note)
            tables[unmatched] = measures.unmatched_nuggets(first, second)
    click.echo(f"annotators: {', '.join(tables_by_annotator)}", err=True)
    write(tables)


def _tables_by_annotator(
    files: tuple[Path, ...], sets: Any, labels: Path | None, reading: Mapping[str, Any]
) -> dict[str, Any]:
    """The nuggets of each annotator, by the name in an export, or of the file."""
    import pandas as pd

    from equipoise.nuggets import nugget_table, read_nuggets
    from equipoise.problems import together
    from equipoise_cli.loaders.annotation_exports import is_annotated, read_annotators
    from equipoise_cli.loaders.annotation_labels import read_labels

    meanings = None if labels is None else read_labels(labels, sets)

    def read(file: Path) -> dict[str, Any]:
        if is_annotated(file):
            annotated = read_annotators(file, sets, labels=meanings, **reading)
            return {name: part.nuggets for name, part in annotated.items()}
        return {str(file): read_nuggets(file, sets)}

    # All are read before one is refused, so that the faults of all are told.
    frames: dict[str, list[Any]] = {}
    for part in together(partial(read, file) for file in files):
        for name, nuggets in part.items():
            frames.setdefault(name, []).append(nuggets)
    tables = {}
    for name, parts in frames.items():
        if isinstance(parts[0], pd.DataFrame):
            frame = pd.concat(parts, ignore_index=True).fillna("")
            tables[name] = nugget_table(frame, sets, name=f"the annotations of {name}")
        elif len(parts) == 1:
            tables[name] = parts[0]
        else:
            raise click.UsageError(f"{name} twice: a file of each annotator")
    return tables
