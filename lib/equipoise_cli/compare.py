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
_SHOW = ("leaderboard", "comparisons", "topics")
_MEASURES = click.option("--measure", "measures", multiple=True, help="Measure; repeatable.  [all]")


def _takes(figure: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Take files of scores, and what to write in which form."""

    def take(command: Callable[..., Any]) -> Callable[..., Any]:
        if figure:
            told = "Figure to draw, .svg, .png or .pdf."
            command = click.option("--figure", type=FILE, help=told)(command)
        told = "How tables are written."
        forms = click.Choice(list(FORMATS))
        command = click.option("--format", "form", type=forms, default="table", help=told)(command)
        told = "File to write the tables to.  [standard output]"
        command = click.option("-o", "--output", type=FILE, help=told)(FORCE(command))
        return click.argument("scores", type=FILE, nargs=-1, required=True)(command)

    return take


def _check(scores: Any, output: Path | None, figure: Path | None, force: bool) -> None:
    check_figure(figure)
    table = Kind(SCORES.name, lambda path: path.suffix.lower() in (".csv", ".md", ".tex", ".txt"))
    refuse_outputs(
        {"-o": (output, table), "--figure": (figure, DRAWING)}, list(scores), force=force
    )


def _give(
    tables: Mapping[str, Any], form: str, output: Path | None, figures: Mapping[Path, bytes]
) -> None:
    """Write tables and figures, all or none."""
    from equipoise.problems import plain
    from equipoise_compendium.writing import write_files

    text = together(tables, form)
    write_files({**figures, **({output: text} if output is not None else {})})
    if output is None:
        sys.stdout.write(plain(text) if sys.stdout.isatty() else text)


@click.command(
    cls=DeclaredCommand,
    declared=[Declared(f"{STATISTICS}.compare_systems")],
    epilog=samples("SCORES"),
)
@_takes(figure=True)
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
    type=click.Choice(_SHOW),
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
    """Hold runs against each other by a measure: means, tests of the differences, effect sizes, topics.

    SCORES are tables as equipoise score writes them, and what ir_measures -q (topic, measure, value) or trec_eval -q
    (measure, topic, value) prints; each file is known by what it holds:

    \b
    run,topic,attribute,measure,value        T1  nDCG@10  0.31        ndcg_cut_10  T1  0.31
    mine,T1,,nDCG@10,0.31                    T2  nDCG@10  0.45        ndcg_cut_10  T2  0.45
    """  # noqa: D301 - click reads a backspace as: leave these lines as they are
    _check(scores, output, figure, force)
    from equipoise.loaders.scores import read_scores
    from equipoise.statistics import compare_systems

    table = read_scores(scores)
    if attribute is not None:
        table = table[table["attribute"] == attribute]
        if table.empty:
            raise click.BadParameter(f"no scores of the attribute set {attribute}")
    if figure is not None and options["by"]:
        raise click.UsageError(
            "a figure is of one comparison: choose one by --attribute, without --by"
        )
    found = compare_systems(table, **options)
    names = show or (("comparisons",) if form == "csv" else _SHOW[:2])
    figures = {}
    if figure is not None:
        from equipoise_compendium.plots.comparisons import compared_runs

        _, pair = axes(1, 2, sharey=True, figsize=(10, 1.4 + 0.45 * len(found.leaderboard)))
        title = f"{found.measure} of {len(found.leaderboard)} runs"
        figures[figure] = drawn(compared_runs(pair, found, options["level"])[0], figure, title)
    titles = {name: f"{name.capitalize()}: {_told(name, found, options)}" for name in names}
    _give({titles[name]: getattr(found, name) for name in names}, form, output, figures)


def _told(name: str, found: Any, options: Mapping[str, Any]) -> str:
    """What a table of a comparison holds, and how its intervals and p are to be read."""
    percent = f"{options['level']:.0%}"
    if name == "leaderboard":
        return f"means of {found.measure}, with {options['mean_intervals']} {percent} intervals over topics"
    if name == "topics":
        return "every score beside that of " + (
            options["baseline"] or "the run with the highest mean"
        )
    if options["test"] == "tukey":
        return (
            f"randomised Tukey HSD; p and {percent} intervals hold for all pairs at once; effect is the difference over"
            " the residual standard deviation"
        )
    correction = (
        "not corrected"
        if options["correction"] == "none"
        else f"corrected by {options['correction'].title()}"
    )
    return f"test {options['test']}, p {correction}; marginal {percent} intervals; effect is Cohen's d of the pairs"


@click.command(
    cls=DeclaredCommand, declared=[Declared(f"{STATISTICS}.correlations")], epilog=samples("SCORES")
)
@_takes(figure=True)
@_MEASURES
def correlate(
    scores: Any, output: Any, force: bool, form: str, figure: Any, **options: Any
) -> None:
    """Kendall's tau between the orders in which measures put the runs in SCORES, with intervals over topics."""
    _check(scores, output, figure, force)
    from equipoise.loaders.scores import read_scores
    from equipoise.statistics import correlations

    table, figures = correlations(read_scores(scores), **options), {}
    if figure is not None:
        from equipoise_compendium.plots.comparisons import correlation_matrix

        many = len(set(table["a"]) | set(table["b"]))
        _, ax = axes(figsize=(2.5 + 0.9 * many, 1.5 + 0.7 * many))
        figures[figure] = drawn(
            correlation_matrix(ax, table), figure, f"Kendall's tau of {many} measures"
        )
    _give(
        {f"Kendall's tau with {options['level']:.0%} bootstrap intervals": table},
        form,
        output,
        figures,
    )


@click.command(
    "discriminative-power",
    cls=DeclaredCommand,
    declared=[
        Declared(f"{STATISTICS}.discriminative_power"),
        Declared(f"{STATISTICS}.share_significant"),
    ],
    epilog=samples("SCORES"),
)
@_takes(figure=True)
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
    """How many pairs of the runs in SCORES each measure tells apart, by the randomised Tukey HSD test.

    The figure has the curve of achieved significance levels of each measure: the lower, the more
    pairs.
    """
    _check(scores, output, figure, force)
    from equipoise.loaders.scores import read_scores
    from equipoise.statistics import discriminative_power, share_significant

    found, figures = discriminative_power(read_scores(scores), **options), {}
    if figure is not None:
        from equipoise_compendium.plots.comparisons import significance_curves

        _, ax = axes(figsize=(7, 4))
        figures[figure] = drawn(
            significance_curves(ax, found, level), figure, "Achieved significance levels"
        )
    table = found if curves else share_significant(found, level=level)
    _give(
        {f"Pairs of runs that differ significantly (p <= {1 - level:.3g})": table},
        form,
        output,
        figures,
    )


@click.command(
    "topic-set-size",
    cls=DeclaredCommand,
    declared=[Declared(f"{STATISTICS}.topic_set_size")],
    epilog=samples("SCORES"),
)
@_takes(figure=False)
@_MEASURES
def size(scores: Any, output: Any, force: bool, form: str, **options: Any) -> None:
    """How many topics it takes to find a difference, from the variance in SCORES: the design by one-way ANOVA."""
    _check(scores, output, None, force)
    from equipoise.loaders.scores import read_scores
    from equipoise.statistics import topic_set_size

    table = topic_set_size(read_scores(scores), **options)
    _give(
        {"Topics needed, for the variance found and the ends of its 95% interval": table},
        form,
        output,
        {},
    )


COMMANDS = (compare, correlate, discriminate, size)
