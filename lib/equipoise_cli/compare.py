"""Commands that hold scores against each other: runs, measures, and how many topics it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from equipoise_cli.conditions import fails_on_conditions
from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import DRAWING, SCORES, Kind, columns_of, refuse_outputs
from equipoise_cli.shared import FILE, FORCE, TARGET, print_text, samples
from equipoise_cli.tables import FORMATS, Table, axes, check_figure, drawn, together

STATISTICS = "equipoise.statistics"
_TABLES = ("overview", "leaderboard", "comparisons", "pairs", "topics", "gaps")
_MEASURES = click.option("--measure", "measures", multiple=True, help="Measure; repeatable.  [all]")


_FIGURE = click.option("--figure", type=TARGET, help="Figure to draw, .svg, .png or .pdf.")
_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="table",
    help="How tables are written.",
)
_OUTPUT = click.option(
    "-o", "--output", type=TARGET, help="File to write the tables to.  [standard output]"
)
_SCORES = click.argument("scores", type=FILE, nargs=-1, required=True)


def _takes_scores(command: Callable[..., Any]) -> Callable[..., Any]:
    """Take files of scores, and what to write in which form."""
    return _SCORES(_OUTPUT(FORCE(_FORMAT(command))))


def _takes_scores_and_figure(command: Callable[..., Any]) -> Callable[..., Any]:
    """Take files of scores, what to write in which form, and a figure to draw."""
    return _takes_scores(_FIGURE(command))


def _is_table(path: Path) -> bool:
    if path.suffix.lower() == ".csv":
        return not columns_of(path).isdisjoint(("run", "a", "measure"))
    return path.suffix.lower() in (".md", ".tex", ".txt", ".html")


def _check(scores: Any, output: Path | None, figure: Path | None, force: bool) -> None:
    """Refuse a table or figure that would lose a file, or cannot be written."""
    check_figure(figure, alone=False)
    # A table that is no CSV file has no columns to be known by: the ending of its name has to do.
    kind = Kind(SCORES.name, _is_table)
    outputs = {"-o": (output, kind), "--figure": (figure, DRAWING)}
    refuse_outputs(outputs, list(scores), force=force)


def _write(
    tables: Sequence[Table],
    form: str,
    output: Path | None,
    draw: Callable[[], Mapping[Path, bytes]],
) -> None:
    """Write tables and figures, all or none; the tables alone where no figure can be drawn."""
    from equipoise_compendium.writing import write_files

    text = together(tables, form)
    files: dict[Path, str | bytes] = {}
    missing_module: ModuleNotFoundError | None = None
    try:
        files.update(draw())
    except ModuleNotFoundError as error:
        # What was computed is not lost for a package that only draws.
        missing_module = error
    if output is not None:
        files[output] = text
    write_files(files)
    if output is None:
        print_text(text)
    if missing_module is not None:
        raise missing_module


def _figure(path: Path | None, draw: Callable[[Path], bytes]) -> Callable[[], Mapping[Path, bytes]]:
    """What draws the one figure of a command, if one is asked for."""

    def figures() -> Mapping[Path, bytes]:
        return {} if path is None else {path: draw(path)}

    return figures


@click.command(
    cls=DeclaredCommand,
    declared=[Declared(f"{STATISTICS}.compare_systems")],
    epilog=samples("SCORES"),
)
@_takes_scores_and_figure
@click.option("--measure", "measures", multiple=True, help="Measure; repeatable.  [all]")
@click.option("--attribute", help="Rows of this attribute set only.")
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Compare each value apart, such as of attribute; repeatable.",
)
@click.option(
    "--baseline", metavar="RUN", help="Compare every other run with this one.  [every pair]"
)
@click.option(
    "--lower-is-better",
    "lower",
    multiple=True,
    metavar="MEASURE",
    help="Measure of which the lowest mean is the best; repeatable.  [as declared]",
)
@click.option(
    "--groups",
    type=FILE,
    help="Group of each topic, a CSV of topic,group, for gaps.  [measures such as D(group=G)]",
)
@click.option(
    "--show",
    multiple=True,
    type=click.Choice(_TABLES),
    help=(
        "Tables; repeatable.  [of several measures: overview; of one: leaderboard, and comparisons "
        "or, where they are more than the runs, pairs; csv: one]"
    ),
)
@click.option("--caption", help="Title of the table.  [what it holds]")
@click.option("--label", help="Label of the table in LaTeX.  [tab: and its kind]")
@fails_on_conditions
def compare(
    scores: Any,
    output: Any,
    force: bool,
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
    """Hold runs against each other by measures: means, tests of differences, effect sizes, topics.

    By one measure there is a leaderboard with every comparison, by several an overview: a row for
    each run, letters for the runs that it is significantly better than, the best in bold type. Gaps
    are between groups of topics or documents, the largest mean less the smallest, and the smallest
    over the largest.

    SCORES are tables as equipoise score writes them, and what ir_measures -q (topic, measure,
    value) or trec_eval -q (measure, topic, value) prints; each file is known by what it holds:

    \b
    run,topic,attribute,measure,value        T1  nDCG@10  0.31        ndcg_cut_10  T1  0.31
    mine,T1,,nDCG@10,0.31                    T2  nDCG@10  0.45        ndcg_cut_10  T2  0.45
    """  # noqa: D301 - click reads a backspace as: leave these lines as they are
    _check(scores, output, figure, force)
    _refuse_second_correction(options["test"], options["correction"])
    from equipoise.loaders.scores import read_scores
    from equipoise_cli import comparisons as compared

    table = read_scores(scores)
    if attribute is not None:
        table = table[table["attribute"] == attribute]
        if table.empty:
            raise click.BadParameter(f"no scores of the attribute set {attribute}")
    comparisons = compared.of_measures(table, measures, options)
    directions = compared.directions(comparisons, lower)
    # With --by there are several comparisons, each of which would be a figure.
    if figure is not None and (options["by"] or len(comparisons) > 1):
        raise click.UsageError(
            "a figure is of one comparison: choose one by --measure and --attribute, without --by"
        )
    names = show or _default_tables(comparisons, options, groups is not None, form)
    gaps = None
    if "gaps" in names:
        gaps = compared.gaps(table, measures, groups, options)
    tables = []
    for name in names:
        shown_table = compared.table(name, comparisons, directions, gaps, options)
        tables.append(
            replace(
                shown_table, title=caption or shown_table.title, label=label or shown_table.label
            )
        )
    (comparison, *_) = comparisons.values()
    draw = partial(_figure_of_runs, comparison, options["level"])
    _write(tables, form, output, _figure(figure, draw))
    return compared.values(comparisons, gaps, options["by"])


def _default_tables(
    comparisons: Mapping[str, Any], options: Mapping[str, Any], has_groups: bool, form: str
) -> list[str]:
    """The tables that are shown where none is named."""
    if has_groups:
        return ["gaps"]
    if len(comparisons) > 1:
        return ["overview"]
    if form == "csv":
        return ["comparisons"]  # a CSV file holds one table
    (comparison,) = comparisons.values()
    is_long = len(comparison.comparisons) > len(comparison.leaderboard)
    if is_long and not options["by"]:
        return ["leaderboard", "pairs"]
    return ["leaderboard", "comparisons"]


def _refuse_second_correction(test: str, correction: str) -> None:
    """Refuse a correction that somebody asks for beside the one that Tukey's test has built in."""
    source = click.get_current_context().get_parameter_source("correction")
    is_asked_for = source is not click.core.ParameterSource.DEFAULT
    if test == "tukey" and is_asked_for and correction != "none":
        remedy = "leave it out, or choose a test of one pair at a time, such as --test t"
        problem = "p of --test tukey is that of all pairs at once, and takes no other correction"
        raise click.UsageError(f"--correction {correction}: {problem}; {remedy}")


def _figure_of_runs(comparison: Any, level: float, path: Path) -> bytes:
    """Means of the runs, and beside them their differences, as the bytes of a file."""
    from equipoise_studies.plots.comparisons import compared_runs

    n_runs = len(comparison.leaderboard)
    _, panels = axes(1, 2, sharey=True, figsize=(10, 1.4 + 0.45 * n_runs))
    panels = compared_runs(panels, comparison, level)
    return drawn(panels[0], path, f"{comparison.measure} of {n_runs} runs")


@click.command(
    cls=DeclaredCommand, declared=[Declared(f"{STATISTICS}.correlations")], epilog=samples("SCORES")
)
@_takes_scores_and_figure
@_MEASURES
def correlate(
    scores: Any, output: Any, force: bool, form: str, figure: Any, **options: Any
) -> None:
    """Kendall's tau between the orders in which measures put the runs in SCORES.

    The intervals are over topics.
    """
    _check(scores, output, figure, force)
    from equipoise.loaders.scores import read_scores
    from equipoise.statistics import correlations

    table = correlations(read_scores(scores), **options)
    title = f"Kendall's tau with {options['level']:.0%} bootstrap intervals"
    tables = [Table(title, table, "tab:correlations")]
    _write(tables, form, output, _figure(figure, partial(_figure_of_correlations, table)))


def _figure_of_correlations(table: Any, path: Path) -> bytes:
    """A matrix of the measures, as the bytes of a file."""
    from equipoise_studies.plots.comparisons import correlation_matrix

    n_measures = len(set(table["a"]) | set(table["b"]))
    _, ax = axes(figsize=(2.5 + 0.9 * n_measures, 1.5 + 0.7 * n_measures))
    title = f"Kendall's tau of {n_measures} measures"
    return drawn(correlation_matrix(ax, table), path, title)


@click.command(
    "discriminative-power",
    cls=DeclaredCommand,
    declared=[
        Declared(f"{STATISTICS}.discriminative_power"),
        Declared(f"{STATISTICS}.share_significant"),
    ],
    epilog=samples("SCORES"),
)
@_takes_scores_and_figure
@_MEASURES
@click.option("--curves", is_flag=True, help="The p of every pair of runs instead of their shares.")
def discriminate(
    scores: Any,
    output: Any,
    force: bool,
    form: str,
    figure: Any,
    curves: bool,
    level: float,
    **options: Any,
) -> None:
    """How many pairs of the runs in SCORES each measure tells apart, by randomised Tukey HSD.

    The figure has the curve of achieved significance levels of each measure: the lower, the more
    pairs.
    """
    _check(scores, output, figure, force)
    from equipoise.loaders.scores import read_scores
    from equipoise.statistics import discriminative_power, share_significant

    # Every pair of runs by each measure: the curves are of these, the shares are counted in them.
    p_values = discriminative_power(read_scores(scores), **options)
    table = p_values if curves else share_significant(p_values, level=level)
    title = f"Pairs of runs that differ significantly (p <= {1 - level:.3g})"
    tables = [Table(title, table, "tab:discriminative-power")]
    _write(tables, form, output, _figure(figure, partial(_figure_of_p_values, p_values, level)))


def _figure_of_p_values(p_values: Any, level: float, path: Path) -> bytes:
    """The curve of each measure, as the bytes of a file."""
    from equipoise_studies.plots.comparisons import significance_curves

    _, ax = axes(figsize=(7, 4))
    return drawn(significance_curves(ax, p_values, level), path, "Achieved significance levels")


@click.command(
    "topic-set-size",
    cls=DeclaredCommand,
    declared=[Declared(f"{STATISTICS}.topic_set_size")],
    epilog=samples("SCORES"),
)
@_takes_scores
@_MEASURES
def size(scores: Any, output: Any, force: bool, form: str, **options: Any) -> None:
    """How many topics it takes to find a difference, by one-way ANOVA on the variance in SCORES."""
    _check(scores, output, None, force)
    from equipoise.loaders.scores import read_scores
    from equipoise.statistics import topic_set_size

    table = topic_set_size(read_scores(scores), **options)
    title = "Topics needed, for the variance found and the ends of its 95% interval"
    _write([Table(title, table, "tab:topics")], form, output, _figure(None, Path.read_bytes))


COMMANDS = (compare, correlate, discriminate, size)
