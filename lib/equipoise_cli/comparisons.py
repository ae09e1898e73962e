"""The tables of ``equipoise compare``: what each holds, how it is titled and shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise import catalogue
from equipoise.declare import Direction
from equipoise.measures.attribution.citation_share import MEASURES as CITATION_MEASURES
from equipoise.problems import listed
from equipoise.statistics import (
    Comparison,
    compare_systems,
    group_gaps,
    overview,
    pair_matrix,
    with_groups,
)
from equipoise.statistics.leaderboards import scores_of
from equipoise.statistics.overviews import letters
from equipoise.statistics.pairs import significance
from equipoise_cli.loaders.held_files import read_mapping
from equipoise_cli.tables import Table
from equipoise_compendium.shown import Cell

Comparisons = Mapping[str, Comparison]


def of_measures(
    scores: pd.DataFrame, measures: Sequence[str], options: Mapping[str, Any]
) -> dict[str, Comparison]:
    """A comparison for each measure, and of several measures for each attribute set, by name."""
    chosen = scores_of(scores, measures)
    names = list(measures or dict.fromkeys(chosen["measure"]))
    if len(names) == 1:
        return {names[0]: compare_systems(chosen, names[0], **options)}
    if options["by"]:
        raise ValueError(
            "several measures are held beside each other without --by: an attribute set has columns"
            f" of its own; name one --measure of {listed(names, 40)}"
        )
    comparisons = {}
    for name in names:
        for attribute, part in chosen[chosen["measure"] == name].groupby("attribute", sort=False):
            comparisons[f"{name} {attribute}".rstrip()] = compare_systems(part, name, **options)
    return comparisons


def directions(comparisons: Comparisons, lower: Sequence[str]) -> dict[str, Direction]:
    """Which way each measure is better, as it is declared or said."""
    measures = {comparison.measure for comparison in comparisons.values()}
    unknown = sorted(set(lower) - measures)
    if unknown:
        raise ValueError(
            f"--lower-is-better: no scores of {listed(unknown)}; there are"
            f" {listed(sorted(measures), 40)}"
        )
    declared: dict[str, Direction] = {}
    for measure in catalogue.MEASURES:
        # Measures that one function gives are declared together: GF and GFRC.
        for name in re.split(r", | and ", measure.name):
            declared[name] = measure.direction
    found: dict[str, Direction] = {}
    for label, comparison in comparisons.items():
        name = comparison.measure
        # A name begins with that of its measure: GFR-iRBU+JSD, TED@10, CAS-precision.
        direction = declared.get(re.split(r"[-@(]", name)[0], "higher is better")
        if "(group=" in name or name in CITATION_MEASURES:
            direction = "neither"
        found[label] = "lower is better" if name in lower else direction
    return found


def gaps(
    scores: pd.DataFrame, measures: Sequence[str], groups: Path | None, options: Mapping[str, Any]
) -> pd.DataFrame:
    """Gaps between groups of topics, of a file, or between those that measures are parts of."""
    group_of_topic = None
    if groups is not None:
        group_of_topic = read_mapping(groups, "topic", "group", "each topic once")
    grouped = with_groups(scores_of(scores, measures), group_of_topic)
    draws = {name: options[name] for name in ("level", "resamples", "seed")}
    return group_gaps(grouped, **draws)


def values(
    comparisons: Comparisons, gap_table: pd.DataFrame | None, by: Sequence[str]
) -> pd.DataFrame:
    """Every mean, difference and gap with its interval, by names that conditions can have.

    Of the measure M: M is a mean, difference-M that of run less against, gap-M and ratio-M those of
    groups.
    """
    tables = []
    for comparison in comparisons.values():
        name = comparison.measure
        board = comparison.leaderboard.rename(columns={"mean": "value"})
        pairs = comparison.comparisons.rename(
            columns={"a": "run", "b": "against", "difference": "value"}
        )
        tables += [board.assign(measure=name), pairs.assign(measure=f"difference-{name}")]
    if gap_table is not None:
        prefix = gap_table["gap"].map({"difference": "gap-", "ratio": "ratio-"})
        tables.append(gap_table.assign(measure=prefix + gap_table["measure"]))
    every = pd.concat(tables, ignore_index=True)
    columns = dict.fromkeys(["run", "against", *by, "attribute"])
    names = [name for name in columns if name in every.columns]
    return every[[*names, "measure", "value", "low", "high"]].fillna(dict.fromkeys(names, ""))


# --- tables ---------------------------------------------------------------------------------------


def table(
    name: str,
    comparisons: Comparisons,
    directions_of: Mapping[str, Direction],
    gap_table: pd.DataFrame | None,
    options: Mapping[str, Any],
) -> Table:
    """A table of one kind, by the name that ``--show`` has for it."""
    title = f"{name.capitalize()}: {_meaning(name, comparisons, options)}"
    if name == "overview":
        title += _ways(directions_of)
    label = f"tab:{name}"
    if name == "overview":
        if options["by"]:
            raise ValueError("an overview has a row for each run: without --by")
        tidy = overview(comparisons, directions_of, level=options["level"])
        return Table(title, _overview_cells(tidy), label, tidy)
    if name == "gaps" and gap_table is not None:
        return Table(title, gap_table, label)
    if name == "pairs":
        if len(comparisons) > 1 or options["by"]:
            raise ValueError("pairs are of one comparison: name one --measure, without --by")
        (comparison,) = comparisons.values()
        tidy = comparison.comparisons
        return Table(title, _pair_cells(comparison, options["level"]), label, tidy)
    parts = []
    for column, comparison in comparisons.items():
        part = getattr(comparison, name)
        if len(comparisons) > 1:
            part = part.assign(measure=column)
            part = part[["measure", *part.columns.drop("measure")]]
        parts.append(part)
    return Table(title, pd.concat(parts, ignore_index=True), label)


def _overview_cells(tidy: pd.DataFrame) -> pd.DataFrame:
    """A row for each run, and in it for each measure its mean, marked."""
    rows: dict[str, dict[str, Any]] = {}
    for cell in tidy.to_dict("records"):
        row = rows.setdefault(cell["run"], {"": cell["letter"], "run": cell["run"]})
        row[cell["measure"]] = Cell(
            f"{cell['mean']:.4f}", cell["better_than"], number=True, best=cell["best"]
        )
    return pd.DataFrame(list(rows.values()))


def _pair_cells(comparison: Comparison, level: float) -> pd.DataFrame:
    """Above the diagonal differences, bold where they are significant; below it their p."""
    differences, p_values = pair_matrix(comparison)
    runs = list(differences.index)
    names = letters(len(runs))
    rows = []
    for place, run in enumerate(runs):
        row: dict[str, Any] = {"": names[place], "run": run}
        for other_place, other_run in enumerate(runs):
            p = p_values.loc[run, other_run]
            text = ""
            # A comparison with a baseline alone leaves most pairs without one.
            if place < other_place and pd.notna(p):
                text = f"{differences.loc[run, other_run]:+.4f}"
            elif place > other_place and pd.notna(p):
                text = f"{p:.4f}" if p >= 0.00005 else "< 0.0001"
            is_significant = place < other_place and p <= significance(level)
            row[names[other_place]] = Cell(text, number=True, best=bool(is_significant))
        rows.append(row)
    return pd.DataFrame(rows)


def _meaning(name: str, comparisons: Comparisons, options: Mapping[str, Any]) -> str:
    """What a table holds, and how its intervals and p are to be read."""
    percent = f"{options['level']:.0%}"
    measures = listed(comparisons, 3)
    threshold = f"{1 - options['level']:.3g}"
    if name == "leaderboard":
        return (
            f"means of {measures}, with {options['mean_intervals']} {percent} bootstrap intervals "
            "over topics"
        )
    if name == "topics":
        baseline = options["baseline"] or "the run with the highest mean"
        return f"every score beside that of {baseline}"
    if name == "gaps":
        return (
            "the largest mean of a group less the smallest, and the smallest over the largest;"
            f" {percent} intervals over topics drawn again"
        )
    test = _test(options)
    if name == "overview":
        return (
            f"means; letters: the runs that it is significantly better than, p <= {threshold}"
            f" within a measure, {test}; * or bold: the best"
        )
    if name == "pairs":
        return (
            f"{measures}; above the diagonal the difference of the row less the column, * or bold"
            f" where p <= {threshold}; below it p; {test}; --show comparisons has the intervals"
        )
    if options["test"] == "tukey":
        return (
            f"{test}; p and {percent} intervals hold for all pairs at once; "
            "effect is the difference over the residual standard deviation"
        )
    return f"{test}; marginal {percent} intervals; effect is Cohen's d of the pairs"


def _ways(directions_of: Mapping[str, Direction]) -> str:
    """Which measures are read otherwise than the higher the better."""
    words = ""
    lower = [name for name, way in directions_of.items() if way == "lower is better"]
    if lower:
        words += f"; lower is better: {listed(lower, 40)}"
    neither = [name for name, way in directions_of.items() if way == "neither"]
    if neither:
        words += f"; neither is better, letters are of lower means: {listed(neither, 40)}"
    return words


def _test(options: Mapping[str, Any]) -> str:
    """The test and its correction, in words."""
    if options["test"] == "tukey":
        return "randomised Tukey HSD"
    if options["correction"] == "none":
        return f"test {options['test']}, p not corrected"
    return f"test {options['test']}, p corrected by {options['correction'].title()}"
