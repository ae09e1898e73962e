"""Score rankings: GFR, exposure, bias in their terms, and their overlap on a counterfactual."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.errors import Note, listed, plain
from equipoise_cli.declared import Declared
from equipoise_cli.scoring import (
    CLUSTER,
    INTERVALS,
    MEANS,
    ORDER,
    QRELS,
    Scored,
    joined,
    run_each,
    scoring,
    workers,
)
from equipoise_cli.shared import FILE, named, named_files, takes_output

if TYPE_CHECKING:
    import pandas as pd

    from equipoise.coverage import Seen

RUN = click.option(
    "--run",
    "runs",
    multiple=True,
    required=True,
    type=FILE,
    help="Run, or a folder of runs; repeatable. --run runs/* reads all files.",
)
# The further files that a shell makes of --run runs/*.
MORE_RUNS = click.argument("more_runs", nargs=-1, type=FILE, metavar="[RUN]...")
MEMBERSHIP = click.option(
    "--membership",
    "memberships",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Group memberships; repeatable. Without NAME=, each column of group names becomes an "
    "attribute set with the name of the column.",
)
MISSING = click.option(
    "--missing",
    multiple=True,
    default=("unknown",),
    metavar="GROUP",
    help="Group name that means a missing membership, like an empty cell; repeatable.",
)


def _run_files(runs: Sequence[Path]) -> list[Path]:
    from equipoise.loaders.trec import run_files

    return [file for run in runs for file in run_files(run)]


# --- GFR ------------------------------------------------------------------------------------------


def _read_memberships(
    files: Iterable[tuple[str, str]], missing: Sequence[str], **given: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read memberships and attribute sets by name; ``given`` has kinds, targets and sets."""
    from equipoise.loaders.groups import read_sets

    memberships: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for path_name, path in files:
        names = [path_name] if path_name else []
        found = read_sets(path, names, missing=missing, **given)
        for name, (table, attribute_set) in found.items():
            if name in attributes:
                raise click.UsageError(
                    f"two files of --membership have an attribute set {name}; rename one with "
                    "NAME=FILE"
                )
            attributes[name], memberships[name] = attribute_set, table
    return memberships, attributes


def _score_run(file: Path, name: str, *, order: Any, arguments: dict[str, Any]) -> Any:
    """Score one run: a task, so that many runs need no more memory than one."""
    from equipoise.loaders.trec import read_run
    from equipoise.measures.gfr import gfr_table

    # Documents without judgement are removed before the cutoff, so that all ranks are needed.
    depth = None if arguments["unjudged"] == "removed" else arguments["cutoff"]
    return gfr_table(read_run(file, name, order=order, depth=depth), **arguments)


@scoring(
    "gfr",
    [
        INTERVALS,
        RUN,
        MORE_RUNS,
        QRELS,
        MEMBERSHIP,
        MISSING,
        click.option(
            "--target",
            "targets",
            multiple=True,
            metavar="NAME=FILE|group:number,...",
            help="Target distribution, a file or numbers; repeatable.  [uniform]",
        ),
        click.option(
            "--kind",
            "kinds",
            multiple=True,
            metavar="NAME=ordinal|nominal",
            help="Kind of groups; repeatable.  [nominal]",
        ),
        click.option(
            "--attributes",
            type=FILE,
            help="Attribute sets, a YAML file, instead of --target and --kind.",
        ),
        takes_output,
        CLUSTER,
    ],
    declared=[
        ORDER,
        Declared("equipoise.measures.gfr.gfr_table", flags={"similarities": "--divergences"}),
        MEANS,
    ],
    formats=[
        "--run",
        "--qrels",
        "--membership NAME=",
        "--membership, by shares",
        "--target NAME=",
        "--attributes",
    ],
)
def score_gfr(
    runs: Any,
    qrels: Path,
    memberships: Any,
    missing: Any,
    targets: Any,
    kinds: Any,
    attributes: Any,
    cluster: Any,
    order: Any,
    **options: Any,
) -> Scored:
    """Score rankings by ERR, iRBU, GF and GFR.

    There is one row per topic; the means over topics have an empty topic.
    """
    files_of_groups = named_files(memberships, "--membership")
    target_of = named(targets, "--target")
    kind_of: Any = named(kinds, "--kind")
    wrong_kinds = sorted(set(kind_of.values()) - {"ordinal", "nominal"})
    if wrong_kinds:
        raise click.BadParameter(f"--kind must be ordinal or nominal, got {wrong_kinds[0]}")
    from equipoise.attributes import read_attributes
    from equipoise.loaders.trec import read_qrels, run_names

    files = _run_files(runs)
    names = run_names(files)
    sets = read_attributes(attributes) if attributes else {}
    twice = sorted(sets.keys() & {*target_of, *kind_of})
    if twice:
        raise click.UsageError(f"{twice[0]}: must not be in --attributes and --target or --kind")
    given = {"kinds": kind_of, "targets": target_of, "sets": sets}
    groups, attribute_sets = _read_memberships(files_of_groups, missing, **given)
    arguments = {**options, "qrels": read_qrels(qrels)}
    arguments |= {"memberships": groups, "attributes": attribute_sets}
    without = sorted({*target_of, *kind_of} - attribute_sets.keys())
    if without:
        raise click.UsageError(
            f"every attribute set needs a --membership of its NAME, got none for {without[0]}"
        )
    if sets and sets.keys().isdisjoint(attribute_sets):
        known = ", ".join(attribute_sets)
        raise click.UsageError(f"{attributes}: must have a set given with --membership ({known})")
    for attribute_set in attribute_sets.values():
        click.echo(plain(f"groups: {attribute_set}"), err=True)
    tasks = list(zip(files, names, strict=True))
    with workers(cluster) as client:
        tables = run_each(_score_run, tasks, client, "run", order=order, arguments=arguments)
    return Scored(joined(tables))


# --- exposure -------------------------------------------------------------------------------------


@scoring(
    "exposure",
    [RUN, MORE_RUNS, QRELS, MEMBERSHIP, MISSING, takes_output],
    declared=[ORDER, Declared("equipoise.measures.exposure.exposure_over_relevance")],
    formats=["--run", "--qrels", "--membership NAME=", "--membership, by shares"],
)
def score_exposure(
    runs: Any, qrels: Path, memberships: Any, missing: Any, order: Any, **options: Any
) -> Scored:
    """Score which groups rankings give less exposure than their share of the relevant documents.

    There is one row per run and group: 1 is the exposure that the group would receive if relevant
    documents of one level and topic were exposed alike. The last lines, on standard error, say who
    is unfair to whom.
    """
    files_of_groups = named_files(memberships, "--membership")
    if not files_of_groups:
        raise click.UsageError("exposure is of groups: give --membership")
    from equipoise.loaders.trec import read_qrels, read_runs
    from equipoise.measures.exposure import exposure_over_relevance, exposure_verdicts

    groups, sets = _read_memberships(files_of_groups, missing)
    rankings = read_runs(_run_files(runs), order=order, depth=options["cutoff"])
    scores = joined([exposure_over_relevance(rankings, read_qrels(qrels), groups, sets, **options)])
    return Scored(scores, verdicts=exposure_verdicts(scores, level=options["level"]))


# --- bias in the terms of rankings ----------------------------------------------------------------


@scoring(
    "ranking-bias",
    [
        INTERVALS,
        RUN,
        MORE_RUNS,
        click.option(
            "--documents",
            required=True,
            help="Collection, as .jsonl with id and text or as lines of id, tab and text. The "
            "files may be compressed (.gz) or in a folder.",
        ),
        click.option(
            "--terms",
            required=True,
            type=FILE,
            help="Group-representative terms, a CSV of term,group.",
        ),
        click.option(
            "--background",
            default="collection",
            help="Background set of NFaiRR: the whole collection, own (the documents of the same "
            "ranking), or a run.",
        ),
        takes_output,
        CLUSTER,
    ],
    declared=[
        Declared(
            "equipoise.measures.ranking_bias.score_ranking_bias",
            without=("background", "undefined"),
            flags={"cutoffs": "--cutoff"},
        ),
        Declared("equipoise.measures.ranking_bias.count_terms"),
        ORDER,
        MEANS,
    ],
    formats=["--run", "--documents", "--terms"],
)
def score_ranking_bias(
    runs: Any,
    documents: str,
    terms: Path,
    background: str,
    cluster: Any,
    tokens: Any,
    order: Any,
    **options: Any,
) -> Scored:
    """Score rankings by NFaiRR, FaiRR, TED and TExFAIR.

    There is one row per topic; the means over topics have an empty topic.
    """
    import pandas as pd

    from equipoise.loaders.documents import document_files
    from equipoise.loaders.gender_terms import read_terms
    from equipoise.loaders.trec import read_run, read_runs
    from equipoise.measures import ranking_bias

    pairs = read_terms(terms).itertuples(index=False, name=None)
    groups = ranking_bias.TermGroups.from_pairs(pairs)
    if groups.shared:
        note = f"{listed(groups.shared)} in more than one group of {terms}: counted for each"
        warnings.warn(note, Note, 1)
    rankings = read_runs(_run_files(runs), order=order)
    options["background"] = background
    needed_ids = None  # all of the collection
    if background != "collection":
        # Terms are counted in what is ranked, and in the background run if there is one.
        needed_ids = rankings["document"]
        if background != "own":
            options["background"] = read_run(background, order=None)
            needed_ids = pd.concat([needed_ids, options["background"]["document"]])
        needed_ids = pd.Index(needed_ids.unique(), dtype="str")
    parts = document_files(documents) if Path(documents).is_dir() else [documents]
    shared = {"terms": groups.terms, "tokens": tokens, "documents": needed_ids}
    with workers(cluster) as client:
        tasks = [(str(part),) for part in parts]
        counts = ranking_bias.joined(run_each(_count_file, tasks, client, "file", **shared))
    return Scored(joined([ranking_bias.score_ranking_bias(rankings, counts, groups, **options)]))


def _count_file(source: str, *, terms: Any, tokens: Any, documents: Any) -> Any:
    """Count the terms in a file of documents, of all or of those named."""
    from equipoise.arrays import places
    from equipoise.loaders.documents import document_tables
    from equipoise.measures.ranking_bias import count_terms

    tables = document_tables(source)
    if documents is not None:
        tables = (table[places(table["document"], documents) >= 0] for table in tables)
    return count_terms(tables, terms, tokens=tokens)


# --- overlap of a collection and its counterfactual -----------------------------------------------


@scoring(
    "crbo",
    [
        INTERVALS,
        click.option(
            "--run",
            "pairs",
            nargs=2,
            multiple=True,
            required=True,
            type=FILE,
            metavar="ORIGINAL COUNTERFACTUAL",
            help="Two runs of one system, on the collection and on its counterfactual, or two "
            "folders with files of the same names; repeatable.",
        ),
        click.option(
            "--ids",
            type=FILE,
            help="CSV of document,counterfactual: the ids of each document in both collections.",
        ),
        click.option(
            "--suffix",
            default="",
            help="Suffix of a counterfactual id, after the id of its original.",
        ),
        takes_output,
    ],
    declared=[Declared("equipoise.measures.rank_overlap.crbo"), ORDER, MEANS],
    formats=["--run", "--ids"],
)
def score_crbo(
    pairs: tuple[tuple[Path, Path], ...], ids: Any, suffix: str, order: Any, **options: Any
) -> Scored:
    """Score CRBO of runs on a collection and on its counterfactual.

    There is one row per topic; the means over topics have an empty topic.
    """
    import pandas as pd

    from equipoise.coverage import judge
    from equipoise.loaders.trec import read_run, run_names

    pairs = tuple(files for pair in pairs for files in _pairs_of_files(*pair))
    from equipoise.measures.rank_overlap import crbo
    from equipoise_cli.formats import read_mapping

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
    renamed = []
    if ids is not None or suffix:
        renamed = judge([_renamed_seen(pd.concat(counterfactual_ids), suffix, ids, original_of)])
    scores = crbo(
        pd.concat(originals, ignore_index=True),
        pd.concat(counterfactuals, ignore_index=True),
        **options,
    )
    scores.attrs["seen"] += renamed
    return Scored(joined([scores]))


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
