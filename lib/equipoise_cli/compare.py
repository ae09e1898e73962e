"""Commands that hold scores against each other: runs, measures, and how many topics it takes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from equipoise_cli.declared import Declared, DeclaredCommand
from equipoise_cli.outputs import DRAWING, SCORES, Kind, refuse_outputs
from equipoise_cli.shared import FILE, FORCE, samples
from equipoise_cli.tables import FORMATS, axes, check_figure, drawn, together

STATISTICS = "equipoise.statistics"
_TABLES = ("leaderboard", "comparisons", "topics")
_MEASURES = click.option("--measure", "measures", multiple=True, help="Measure; repeatable.  [all]")


_FIGURE = click.option("--figure", type=FILE, help="Figure to draw, .svg, .png or .pdf.")
_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="table",
    help="How tables are written.",
)
_OUTPUT = click.option(
    "-o", "--output", type=FILE, help="File to write the tables to.  [standard output]"
)
_SCORES = click.argument("scores", type=FILE, nargs=-1, required=True)


def _takes_scores(command: Callable[..., Any]) -> Callable[..., Any]:
    """Take files of scores, and what to write in which form."""
    return _SCORES(_OUTPUT(FORCE(_FORMAT(command))))


def _takes_scores_and_figure(command: Callable[..., Any]) -> Callable[..., Any]:
    """Take files of scores, what to write in which form, and a figure to draw."""
    return _takes_scores(_FIGURE(command))


def _is_table(path: Path) -> bool:
    return path.suffix.lower() in (".csv", ".md", ".tex", ".txt")


def _check(scores: Any, output: Path | None, figure: Path | None, force: bool) -> None:
    """Refuse a table or figure that would lose a file, or cannot be written."""
    check_figure(figure)
    # A table to read has no columns to be known by: the ending of its name has to do.
    kind = Kind(SCORES.name, _is_table)
    outputs = {"-o": (output, kind), "--figure": (figure, DRAWING)}
    refuse_outputs(outputs, list(scores), force=force)


def _write(
    tables: Mapping[str, Any],
    form: str,
    output: Path | None,
    figures: Mapping[Path, bytes],
) -> None:
    """Write tables, by their titles, and figures; all or none."""
    from equipoise.problems import plain
    from equipoise_compendium.writing import write_files

    text = together(tables, form)
    files: dict[Path, str | bytes] = dict(figures)
    if output is not None:
        files[output] = text
    write_files(files)
    if output is None:
        # A terminal would obey control characters in the ids of others.
        sys.stdout.write(plain(text) if sys.stdout.isatty() else text)


@click.command(
    cls=DeclaredCommand,
    declared=[Declared(f"{STATISTICS}.compare_systems")],
    epilog=samples("SCORES"),
)
@_takes_scores_and_figure
@click.option("--measure", help="Measure to compare by.  [the only one there is]")
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
    "--show",
    multiple=True,
    type=click.Choice(_TABLES),
    help="Tables; repeatable.  [leaderboard, comparisons; csv: one]",
)
def compare(
    scores: Any,
    output: Any,
    force: bool,
    form: str,
    figure: Any,
    attribute: Any,
    show: Any,
    **options: Any,
) -> None:
    """Hold runs against each other by a measure: means, tests of differences, effect sizes, topics.

    SCORES are tables as equipoise score writes them, and what ir_measures -q (topic, measure,
    value) or trec_eval -q (measure, topic, value) prints; each file is known by what it holds:

    \b
    run,topic,attribute,measure,value        T1  nDCG@10  0.31        ndcg_cut_10  T1  0.31
    mine,T1,,nDCG@10,0.31                    T2  nDCG@10  0.45        ndcg_cut_10  T2  0.45
    """  # noqa: D301 - click reads a backspace as: leave these lines as they are
    _check(scores, output, figure, force)
    _refuse_second_correction(options["test"], options["correction"])
    from equipoise.loaders.scores import read_scores
    from equipoise.statistics import compare_systems

    table = read_scores(scores)
    if attribute is not None:
        table = table[table["attribute"] == attribute]
        if table.empty:
            raise click.BadParameter(f"no scores of the attribute set {attribute}")
    # With --by there are several comparisons, each of which would be a figure.
    if figure is not None and options["by"]:
        raise click.UsageError(
            "a figure is of one comparison: choose one by --attribute, without --by"
        )
    comparison = compare_systems(table, **options)
    names = show or ("leaderboard", "comparisons")
    if form == "csv" and not show:
        names = ("comparisons",)  # a CSV file holds one table
    tables = {}
    for name in names:
        meaning = _meaning(name, comparison.measure, options)
        tables[f"{name.capitalize()}: {meaning}"] = getattr(comparison, name)
    figures = {}
    if figure is not None:
        figures[figure] = _figure_of_runs(comparison, options["level"], figure)
    _write(tables, form, output, figures)


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
    from equipoise_compendium.plots.comparisons import compared_runs

    n_runs = len(comparison.leaderboard)
    _, panels = axes(1, 2, sharey=True, figsize=(10, 1.4 + 0.45 * n_runs))
    panels = compared_runs(panels, comparison, level)
    return drawn(panels[0], path, f"{comparison.measure} of {n_runs} runs")


def _meaning(name: str, measure: str, options: Mapping[str, Any]) -> str:
    """What a table of a comparison holds, and how its intervals and p are to be read."""
    percent = f"{options['level']:.0%}"
    if name == "leaderboard":
        method = options["mean_intervals"]
        return f"means of {measure}, with {method} {percent} bootstrap intervals over topics"
    if name == "topics":
        baseline = options["baseline"] or "the run with the highest mean"
        return f"every score beside that of {baseline}"
    if options["test"] == "tukey":
        return (
            f"randomised Tukey HSD; p and {percent} intervals hold for all pairs at once; "
            "effect is the difference over the residual standard deviation"
        )
    correction = "not corrected"
    if options["correction"] != "none":
        correction = f"corrected by {options['correction'].title()}"
    return (
        f"test {options['test']}, p {correction}; marginal {percent} intervals; "
        "effect is Cohen's d of the pairs"
    )


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
    figures = {}
    if figure is not None:
        figures[figure] = _figure_of_correlations(table, figure)
    title = f"Kendall's tau with {options['level']:.0%} bootstrap intervals"
    _write({title: table}, form, output, figures)


def _figure_of_correlations(table: Any, path: Path) -> bytes:
    """A matrix of the measures, as the bytes of a file."""
    from equipoise_compendium.plots.comparisons import correlation_matrix

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
    figures = {}
    if figure is not None:
        figures[figure] = _figure_of_p_values(p_values, level, figure)
    table = p_values if curves else share_significant(p_values, level=level)
    title = f"Pairs of runs that differ significantly (p <= {1 - level:.3g})"
    _write({title: table}, form, output, figures)


def _figure_of_p_values(p_values: Any, level: float, path: Path) -> bytes:
    """The curve of each measure, as the bytes of a file."""
    from equipoise_compendium.plots.comparisons import significance_curves

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
    _write({title: table}, form, output, figures={})


COMMANDS = (compare, correlate, discriminate, size)
