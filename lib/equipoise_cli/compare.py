"""The command that compares the scores of runs: leaderboards, tests, overviews and gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.errors import listed
from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import DRAWING, Kind, refuse_outputs, table
from equipoise_cli.shared import FILE, FORCE, TARGET, samples, show_seen, write
from equipoise_cli.tables import (
    FORMATS,
    Marked,
    Table,
    axes,
    check_figure,
    drawn,
    p_value,
    together,
)

if TYPE_CHECKING:
    import pandas as pd

    from equipoise.declared import Direction
    from equipoise.statistics import Comparison

    Comparisons = Mapping[str, Comparison]
    Directions = Mapping[str, Direction]


_MARK = "Written by equipoise compare."
"""The last line of a file of tables, a comment in most formats; a CSV file has no comments."""
_COMMENTS = {"table": "{}", "latex": "% {}", "markdown": "<!-- {} -->", "html": "<!-- {} -->"}
_CSV = table(
    "table",
    "(.*,)?(run,topics,mean,low,high,higher_than|a,b,units,difference,.*,p_corrected,effect|"
    "groups,topics,largest,smallest,gap,value,low,high|measure,mean,low,high,better_than,best)",
)


def _is_table(path: Path) -> bool:
    """Return whether this command wrote a file of tables."""
    return _MARK in path.read_text("utf-8", "replace")[-100:] or _CSV.is_kind(path)


_TABLE = Kind("table of equipoise compare", _is_table)


@click.command(
    cls=DeclaredCommand,
    declared=[Declared("equipoise.statistics.compare_systems")],
    epilog=samples("SCORES", "--qrels", "--run"),
)
@click.argument("scores", type=FILE, nargs=-1)
@click.option(
    "--qrels",
    type=FILE,
    help="Judgements: SCORES are runs, which ir_measures scores by --measure first.",
)
@click.option(
    "--run",
    "runs",
    multiple=True,
    type=FILE,
    help="Run, or a folder of runs, with --qrels; repeatable.",
)
@click.option("-o", "--output", type=TARGET, help="File to write the tables to.  [standard output]")
@FORCE
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", help="Format of the tables."
)
@click.option("--figure", type=TARGET, help="Figure to draw, .svg, .png or .pdf.")
@click.option("--measure", "measures", multiple=True, help="Measure; repeatable.  [all]")
@click.option("--attribute", help="Attribute set to compare.  [all]")
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Column whose values are compared separately, such as attribute; repeatable.",
)
@click.option(
    "--baseline", metavar="RUN", help="Compare every other run with this one.  [every pair]"
)
@click.option(
    "--lower-is-better",
    "lower",
    multiple=True,
    metavar="MEASURE",
    help="Measure whose lowest mean is the best; repeatable.  [as the measure declares]",
)
@click.option(
    "--groups",
    type=FILE,
    help="Groups of topics, a CSV of topic,group, for gaps.  [groups of D(group=G)]",
)
@click.option(
    "--show",
    multiple=True,
    type=click.Choice(["overview", "leaderboard", "comparisons", "pairs", "gaps"]),
    help=(
        "Table to print; repeatable.  [overview for several measures; leaderboard and "
        "comparisons for one, or pairs if it has many]"
    ),
)
@click.option("--caption", help="Title of the table.  [its content]")
@click.option("--label", help="Label of the table in LaTeX.  [tab: and its kind]")
@fails_on_conditions
def compare(
    scores: Any,
    qrels: Any,
    runs: Any,
    output: Any,
    form: str,
    figure: Any,
    measures: Any,
    attribute: Any,
    lower: Any,
    groups: Any,
    show: Any,
    caption: Any,
    label: Any,
    **options: Any,
) -> Any:
    """Compare runs by measures: means, tests of differences, effect sizes, gaps of groups.

    With one measure, the output is a leaderboard with every comparison. With several, it is an
    overview with one row per run. Letters after a value name the runs that this run is
    significantly better than, and the best value is in bold type. Gaps are between groups of topics
    or documents: the largest mean minus the smallest, and the smallest divided by the largest.

    SCORES are tables by equipoise score, output of ir_measures -q (topic, measure, value) or
    trec_eval -q (measure, topic, value), or folders of these files. The command recognises the
    format of a file by its content:

    \b
    run,topic,attribute,measure,value        T1  nDCG@10  0.31        ndcg_cut_10  T1  0.31
    mine,T1,,nDCG@10,0.31                    T2  nDCG@10  0.45        ndcg_cut_10  T2  0.45
    """  # noqa: D301 - click reads a backspace as: leave these lines as they are
    check_figure(figure, alone=False)
    refuse_outputs({"output": _TABLE, "figure": DRAWING})
    inputs = [*scores, *runs]
    if not inputs:
        raise click.UsageError("give SCORES, or runs with --qrels and --run")
    if qrels is None and runs:
        raise click.UsageError("--run must be given with --qrels, the judgements of the runs")
    source = click.get_current_context().get_parameter_source("correction")
    is_chosen = source is not click.core.ParameterSource.DEFAULT
    if options["test"] == "tukey" and is_chosen and options["correction"] != "none":
        raise click.UsageError(
            f"--correction {options['correction']} cannot correct --test tukey, whose p are already"
            " for all pairs at once; remove --correction, or choose --test t"
        )
    from equipoise.loaders.scores import read_scores
    from equipoise.loaders.trec import run_files

    files = [file for path in inputs for file in run_files(path)]
    table = read_scores(files) if qrels is None else _scored_runs(files, qrels, measures)
    if attribute is not None:
        table = table[table["attribute"] == attribute]
        if table.empty:
            raise click.BadParameter(f"no scores of the attribute set {attribute}")
    comparisons = _compared(table, measures, options)
    directions = _directions(comparisons, lower)
    if figure is not None and options["by"]:
        raise click.UsageError(
            "--figure draws one row per measure and cannot be combined with --by; remove one of "
            "them"
        )
    names = show or _default_tables(comparisons, options, groups is not None, form)
    gaps = _gaps(table, measures, groups, options) if "gaps" in names else None
    tables = []
    for name in names:
        shown_table = _table(name, comparisons, directions, gaps, options)
        title, key = caption or shown_table.title, label or shown_table.label
        tables.append(replace(shown_table, title=title, label=key))
    text = together(tables, form)
    if output is not None and form in _COMMENTS:
        text += f"\n{_COMMENTS[form].format(_MARK)}\n"
    write({output: text})
    if figure is not None:
        _draw(comparisons, options["level"], figure)
    return _values(comparisons, gaps, options["by"])


def _scored_runs(files: Sequence[Path], qrels: Path, measures: Sequence[str]) -> pd.DataFrame:
    """Score runs by measures of ir_measures, one file at a time."""
    import pandas as pd

    from equipoise.loaders.trec import read_qrels, read_run, run_names
    from equipoise.measures.effectiveness import run_effectiveness

    if not measures:
        raise click.UsageError("--qrels needs a --measure of ir_measures, such as nDCG@10")
    judgements = read_qrels(qrels)
    tables = [
        run_effectiveness(read_run(file, name), judgements, measures)
        for file, name in zip(files, run_names(files), strict=True)
    ]
    show_seen(*tables)
    return pd.concat(tables, ignore_index=True)


def _draw(comparisons: Comparisons, level: float, path: Path) -> None:
    """Draw a row for each measure: means of the runs, and their differences from the baseline."""
    heights = [1.4 + 0.45 * len(comparison.leaderboard) for comparison in comparisons.values()]
    _, rows = axes(
        *(len(heights), 2),
        sharey="row",
        squeeze=False,
        height_ratios=heights,
        figsize=(10, sum(heights)),
    )
    from equipoise_cli.figures import compared_runs

    for panels, (label, comparison) in zip(rows, comparisons.items(), strict=True):
        compared_runs(panels, replace(comparison, measure=label), level)
    n_runs = len(next(iter(comparisons.values())).leaderboard)
    title = f"{', '.join(comparisons)} of {n_runs} runs"
    write({path: drawn(rows[0][0], path, title)})


# --- comparisons ----------------------------------------------------------------------------------


def _compared(
    scores: pd.DataFrame, measures: Sequence[str], options: Mapping[str, Any]
) -> dict[str, Comparison]:
    """Return a comparison for each measure, and of several for each attribute set, by name."""
    from equipoise.statistics.compare import compare_systems, scores_of

    chosen = scores_of(scores, measures)
    names = list(measures or dict.fromkeys(chosen["measure"]))
    if len(names) == 1:
        return {names[0]: compare_systems(chosen, names[0], **options)}
    if options["by"]:
        raise ValueError(
            f"--by needs exactly one --measure of {listed(names, 40)}; without --by, each "
            "attribute set has its own columns"
        )
    comparisons = {}
    for name in names:
        for attribute, part in chosen[chosen["measure"] == name].groupby("attribute", sort=False):
            comparisons[f"{name} {attribute}".rstrip()] = compare_systems(part, name, **options)
    return comparisons


def _directions(comparisons: Comparisons, lower: Sequence[str]) -> dict[str, Direction]:
    """Return the better direction of each measure, as declared or chosen."""
    from equipoise.catalogue import SCALES, plain_name

    measures = {comparison.measure for comparison in comparisons.values()}
    unknown = sorted(set(lower) - measures)
    if unknown:
        raise ValueError(
            f"--lower-is-better: no scores of {listed(unknown)}, must be one of"
            f" {listed(sorted(measures), 40)}"
        )
    directions: dict[str, Direction] = {}
    for label, comparison in comparisons.items():
        name = comparison.measure
        declared = SCALES.get(plain_name(name))
        direction = declared.direction if declared else "higher is better"
        if "(group=" in name:
            direction = "neither"
        directions[label] = "lower is better" if name in lower else direction
    return directions


def _gaps(
    scores: pd.DataFrame, measures: Sequence[str], groups: Path | None, options: Mapping[str, Any]
) -> pd.DataFrame:
    """Return gaps between groups of topics, of a file, or between those of measures."""
    from equipoise.statistics.compare import group_gaps, scores_of, with_groups
    from equipoise_cli.formats import read_mapping

    group_of_topic = None
    if groups is not None:
        group_of_topic = read_mapping(groups, "topic", "group")
    grouped = with_groups(scores_of(scores, measures), group_of_topic)
    return group_gaps(grouped, **{name: options[name] for name in ("level", "resamples", "seed")})


def _values(
    comparisons: Comparisons, gap_table: pd.DataFrame | None, by: Sequence[str]
) -> pd.DataFrame:
    """Return every mean, difference and gap with its interval, named for conditions.

    Of the measure M: M is a mean, difference-M the run minus against, gap-M and ratio-M of groups.
    """
    import pandas as pd

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
    columns_of_values = [*names, "measure", "value", "low", "high", "topics", "units"]
    return every.reindex(columns=columns_of_values).fillna(dict.fromkeys(names, ""))


# --- tables ---------------------------------------------------------------------------------------


def _default_tables(
    comparisons: Comparisons, options: Mapping[str, Any], has_groups: bool, form: str
) -> list[str]:
    """Return the tables that are shown where none is named."""
    if has_groups:
        return ["gaps"]
    if len(comparisons) > 1:
        return ["overview"]
    if form == "csv":
        return ["comparisons"]  # a CSV file has one table
    (comparison,) = comparisons.values()
    is_long = len(comparison.comparisons) > len(comparison.leaderboard)
    return ["leaderboard", "pairs" if is_long and not options["by"] else "comparisons"]


def _table(
    name: str,
    comparisons: Comparisons,
    directions: Directions,
    gap_table: pd.DataFrame | None,
    options: Mapping[str, Any],
) -> Table:
    """Return a table of one kind, by the name that ``--show`` has for it."""
    import pandas as pd

    from equipoise.statistics import overview

    title = f"{name.capitalize()}: {_meaning(name, comparisons, directions, options)}"
    label = f"tab:{name}"
    if name == "gaps" and gap_table is not None:
        return Table(title, gap_table, label)
    if name == "overview":
        if options["by"]:
            raise ValueError("--show overview cannot be combined with --by")
        tidy = overview(comparisons, directions, level=options["level"])
        rows: dict[str, dict[str, Any]] = {}
        for cell in tidy.to_dict("records"):
            row = rows.setdefault(cell["run"], {"": cell["letter"], "run": cell["run"]})
            mean = f"{cell['mean']:.4f}"
            row[cell["measure"]] = Marked(mean, cell["better_than"], cell["best"])
        return Table(title, pd.DataFrame(list(rows.values())), label, tidy)
    if name == "pairs":
        if len(comparisons) > 1 or options["by"]:
            raise ValueError("--show pairs needs exactly one --measure, and no --by")
        (comparison,) = comparisons.values()
        cells = _pair_cells(comparison, options["level"])
        return Table(title, cells, label, comparison.comparisons)
    parts = []
    for column, comparison in comparisons.items():
        part = getattr(comparison, name)
        if len(comparisons) > 1:
            part = part.assign(measure=column)
            part = part[["measure", *part.columns.drop("measure")]]
        parts.append(part)
    return Table(title, pd.concat(parts, ignore_index=True), label)


def _pair_cells(comparison: Comparison, level: float) -> pd.DataFrame:
    """Lay differences above the diagonal, bold where they are significant, and p below it."""
    import numpy as np
    import pandas as pd

    from equipoise.statistics.compare import letters, pair_matrix
    from equipoise.statistics.pairs import significance

    differences, p_values = pair_matrix(comparison)
    names = letters(len(differences))
    rows = []
    cells = np.stack([differences.to_numpy(), p_values.to_numpy()], axis=-1).tolist()
    for place, run in enumerate(differences.index):
        row: dict[str, Any] = {"": names[place], "run": run}
        for other_place, name in enumerate(names):
            difference, p = cells[place][other_place]
            text, is_significant = "", False
            # A comparison with a baseline alone leaves most pairs without one.
            if place < other_place and pd.notna(difference):
                text = f"{difference:+.4f}"
                is_significant = bool(p <= significance(level))
            elif place > other_place and pd.notna(difference):
                text = p_value(p)
            row[name] = Marked(text, best=is_significant)
        rows.append(row)
    return pd.DataFrame(rows)


def _intervals_of_means(comparisons: Comparisons, options: Mapping[str, Any]) -> str:
    """Describe the intervals of a leaderboard, and what its last column compares."""
    from equipoise.statistics.intervals import FEWEST_RESAMPLED, FEWEST_UNITS

    n_topics = min(comparison.leaderboard["topics"].min() for comparison in comparisons.values())
    kind = "intervals by Student's t" if n_topics < FEWEST_RESAMPLED else "bootstrap intervals"
    words = f", with {options['mean_intervals']} {options['level']:.0%} {kind} over topics"
    if n_topics < FEWEST_UNITS:
        words = f"; an interval needs {FEWEST_UNITS} topics, got {n_topics}"
    if options["baseline"]:
        words += f"; higher than: only comparisons with {options['baseline']}"
    return words


def _meaning(
    name: str, comparisons: Comparisons, directions: Directions, options: Mapping[str, Any]
) -> str:
    """Describe a table: its content, and how to read its intervals and p."""
    percent = f"{options['level']:.0%}"
    measures = listed(comparisons, 3)
    threshold = f"{1 - options['level']:.3g}"
    test = "randomised Tukey HSD"
    if options["test"] != "tukey":
        family = f"over all {', '.join(options['by'])} together" if options["by"] else "per measure"
        test = f"test {options['test']}, p corrected by {options['correction'].title()} {family}"
        if options["correction"] == "none":
            test = f"test {options['test']}, p not corrected"
    if name == "leaderboard":
        return f"means of {measures}{_intervals_of_means(comparisons, options)}"
    if name == "gaps":
        return (
            "the largest mean of a group minus the smallest, and the smallest over the largest;"
            f" {percent} bootstrap intervals over topics"
        )
    if name == "pairs":
        return (
            f"{measures}; above the diagonal the difference of the row minus the column, * or bold"
            f" where p <= {threshold}; below it p; {test}; --show comparisons has the intervals"
        )
    if name == "comparisons":
        if options["test"] == "tukey":
            pairs = f"all pairs of one {', '.join(options['by'])}" if options["by"] else "all pairs"
            return (
                f"{test}; p and {percent} intervals are for {pairs} at once. "
                "Effect is the difference over the residual standard deviation"
            )
        intervals = (
            "no intervals" if options["test"] == "wilcoxon" else f"marginal {percent} intervals"
        )
        return f"{test}; {intervals}. Effect is Cohen's d of the pairs"
    words = (
        f"means; letters: the runs that it is significantly better than, p <= {threshold}"
        f" within a measure, {test}; * or bold: the best"
    )
    lower = [measure for measure, way in directions.items() if way == "lower is better"]
    if lower:
        words += f"; lower is better: {listed(lower, 40)}"
    neither = [measure for measure, way in directions.items() if way == "neither"]
    if neither:
        words += (
            f". For {listed(neither, 40)}, no direction is better, so letters are of lower means"
        )
    return words


COMMANDS = (compare,)
