"""The command that compares two annotators."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import click

from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import NUGGETS, SCORES, refuse_outputs
from equipoise_cli.shared import FILE, TARGET, samples, takes_output, write


@click.command(
    cls=DeclaredCommand,
    declared=[Declared("equipoise.measures.agreement.annotator_agreement")],
    epilog=samples("NUGGETS", "--attributes"),
)
@click.argument("first_file", metavar="FIRST", type=FILE)
@click.argument("second_file", metavar="SECOND", type=FILE)
@click.option("--attributes", required=True, type=FILE, help="Attribute sets, a YAML file.")
@click.option(
    "--unmatched", type=TARGET, help="Also write the nuggets that one annotator alone has found."
)
@takes_output
def agreement(
    first_file: Path,
    second_file: Path,
    attributes: Path,
    unmatched: Any,
    output: Any,
    force: bool,
    **options: Any,
) -> None:
    """Agreement of two annotators, in nugget tables FIRST and SECOND, and what it leaves of scores.

    Alpha and kappa of levels and groups of the nuggets that both have found, how many only one has,
    and, for every conversation, R, GF, GFRC, EGNP, EGF and GFRC2 by each annotator with the
    interval over both of them.
    """
    outputs = {"-o": (output, SCORES), "--unmatched": (unmatched, NUGGETS)}
    refuse_outputs(outputs, [first_file, second_file, attributes], force=force)
    from equipoise.attributes import read_attributes
    from equipoise.measures.agreement import annotator_agreement, unmatched_nuggets
    from equipoise.nuggets import read_nuggets
    from equipoise.problems import Note, together

    sets = read_attributes(attributes)
    # Both are read before either is refused, so that the faults of both are told.
    first_table, second_table = together(
        partial(read_nuggets, file, sets) for file in (first_file, second_file)
    )
    tables: dict[Any, Any] = {}
    tables[output] = annotator_agreement(first_table, second_table, sets, **options)
    if unmatched is not None:
        with warnings.catch_warnings():
            # What is left out was said above.
            warnings.simplefilter("ignore", Note)
            tables[unmatched] = unmatched_nuggets(first_table, second_table)
    write(tables)
