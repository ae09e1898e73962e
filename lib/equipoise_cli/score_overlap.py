"""The command that scores how far rankings of a collection and its counterfactual overlap."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import SCORES, refuse_outputs
from equipoise_cli.score import score
from equipoise_cli.score_gfr import ORDER
from equipoise_cli.shared import (
    FILE,
    INTERVALS,
    MEANS,
    ends_of_means,
    samples,
    show_seen,
    takes_output,
    write,
)

if TYPE_CHECKING:
    import pandas as pd

    from equipoise.coverage import Seen


@score.command(
    "crbo",
    cls=DeclaredCommand,
    declared=[
        Declared("equipoise.measures.rank_overlap.crbo"),
        ORDER,
        Declared(MEANS, needs="intervals"),
    ],
    epilog=samples("--run", "--ids"),
)
@INTERVALS
@click.option(
    "--run",
    "pairs",
    nargs=2,
    multiple=True,
    required=True,
    type=FILE,
    metavar="ORIGINAL COUNTERFACTUAL",
    help=(
        "Two runs of one system, on the collection and on its counterfactual, or two folders with "
        "files of the same names; repeatable."
    ),
)
@click.option(
    "--ids",
    type=FILE,
    help="CSV of document,counterfactual: the ids of each document in both collections.",
)
@click.option(
    "--suffix", default="", help="Suffix of a counterfactual id, after the id of its original."
)
@takes_output
@fails_on_conditions
def score_crbo(
    pairs: tuple[tuple[Path, Path], ...],
    ids: Any,
    suffix: str,
    output: Any,
    force: bool,
    order: Any,
    **options: Any,
) -> Any:
    """Score CRBO of runs on a collection and on its counterfactual.

    There is one row per topic; the means over topics have an empty topic.
    """
    # Neither run of a pair may be written over.
    refuse_outputs(
        {"-o": (output, SCORES)}, [*(path for pair in pairs for path in pair), ids], force=force
    )
    import pandas as pd

    from equipoise.coverage import judge
    from equipoise.loaders.trec import read_run, run_names

    pairs = tuple(files for pair in pairs for files in _pairs_of_files(*pair))
    from equipoise.measures.rank_overlap import crbo
    from equipoise_cli.loaders import read_mapping

    if ids is not None and suffix:
        raise click.UsageError("--ids and --suffix both say which document is which: give one")
    original_of: dict[str, str] = {}
    if ids is not None:
        original_of = read_mapping(ids, "counterfactual", "document")
    counterfactual_ids: list[pd.Series] = []

    def original_ids(document: pd.Series) -> pd.Series:
        counterfactual_ids.append(document)
        if not original_of:
            return document.str.removesuffix(suffix)
        # A document of the counterfactual collection may be an unchanged one of the original.
        return document.map(original_of).fillna(document)

    originals, counterfactuals = [], []
    names = run_names([original for original, _ in pairs])
    for name, (before, after) in zip(names, pairs, strict=True):
        # Both runs of a system get its name; ties are broken by the same ids in both.
        originals.append(read_run(before, name, order=order))
        counterfactuals.append(read_run(after, name, order=order, rename=original_ids))
    with_ends = ends_of_means(options)
    renamed = []
    if ids is not None or suffix:
        renamed = judge([_renamed_seen(pd.concat(counterfactual_ids), suffix, ids, original_of)])
    scores = crbo(
        pd.concat(originals, ignore_index=True),
        pd.concat(counterfactuals, ignore_index=True),
        **options,
    )
    scores.attrs["seen"] += renamed
    show_seen(scores)
    scores = with_ends(scores)
    write({output: scores})
    return scores


def _pairs_of_files(original: Path, counterfactual: Path) -> list[tuple[Path, Path]]:
    """Return a pair of files, or from two folders the files that have the same name in both."""
    from equipoise.loaders.trec import run_files

    if not original.is_dir() or not counterfactual.is_dir():
        return [(original, counterfactual)]
    originals = {str(file.relative_to(original)): file for file in run_files(original)}
    others = {str(file.relative_to(counterfactual)): file for file in run_files(counterfactual)}
    one_sided = sorted(originals.keys() ^ others.keys())
    if one_sided:
        raise click.UsageError(
            f"{original} and {counterfactual} must have files of the same names; only one has"
            f" {one_sided[0]}"
        )
    return [(file, others[name]) for name, file in originals.items()]


def _renamed_seen(
    documents: pd.Series, suffix: str, ids: Path | None, original_of: Mapping[str, str]
) -> Seen:
    """Of how many documents of the counterfactual runs --suffix or --ids says the original."""
    import pandas as pd

    from equipoise.coverage import Seen, first

    distinct = documents.drop_duplicates()
    ids_of_map = first(pd.Index(original_of))
    if ids is None:
        place, needed = "--suffix", f"the ending {suffix}"
        is_renamed = distinct.str.endswith(suffix)
    else:
        place, needed = f"--ids {ids}", "an original id in this file"
        is_renamed = distinct.isin(list(original_of))
    return Seen(
        place,
        "counterfactual documents",
        needed,
        int(is_renamed.sum()),
        len(distinct),
        first(distinct[~is_renamed]),
        ids_of_map,
    )
