"""What the answers of chapter 5 say in sentences, each made of numbers and their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from equipoise_compendium.claims import VERDICTS, Evidence, stated, units_needed, verdict
from equipoise_compendium.printed import printed_table
from equipoise_studies.attribution.derived import numbers
from equipoise_studies.attribution.findings import above_chance, chance
from equipoise_studies.attribution.study import Study

SOME_MODES = "modes with one label for all passages stand here only where they were recorded"
NOBODY = "No model here cites better than chance, so nothing is pooled."


def _points(found: Evidence) -> str:
    if found.estimate is None:
        return "not measured"
    ends = "" if found.low is None else f" [{found.low:+.1f}, {found.high:+.1f}]"
    return f"{found.estimate:+.1f} points{ends}"


_SIDES = ("people are favoured", "language models are favoured", "neither is shown to be favoured")


def _reading(found: Evidence, above: str, below: str, unclear: str) -> str:
    if found.low is None or found.high is None:
        return unclear
    return above if found.low > 0 else below if found.high < 0 else unclear


def answer(scored: pd.DataFrame, found: Mapping[str, Evidence]) -> list[str]:
    """What the recorded answers say of the notebook's question."""
    models = ", ".join(
        dict.fromkeys(model.partition(" (")[0] for model in above_chance(scored))
    )  # records of one model
    if not models:
        return [NOBODY]
    mixed, true, placebo, more, moves = (
        found[name]
        for name in ("5.5-human", "5.3-human", "placebo-cab", "placebo-bias", "placebo-cas")
    )
    zero = ("above zero", "below zero", "not shown to differ from zero")
    move = _reading(
        moves, "move citations more", "move citations less", "are not shown to move citations more"
    )
    means = [f"{one.printed:+.1f}" for one in (mixed, true) if one.printed is not None]
    printed = f" The thesis prints means of {' and '.join(means)} for its models." if means else ""
    return [
        f"Whether labels of authors bias citations was asked of {models}: CAB is {_points(mixed)} over {mixed.n or 0} "
        f"questions whose passages have one author ({_reading(mixed, *zero)}), and {_points(true)} over {true.n or 0} "
        f"whose passages have two ({_reading(true, *zero)}).{printed}",
        f"Labels that mean nothing can favour nobody, and between them CAB is {_points(placebo)}. Less that, it is "
        f"{_points(more)} ({_reading(more, *_SIDES)}), and labels of authors {move} than these do (difference of CAS: "
        f"{_points(moves)}).",
    ]


def left_out(scored: pd.DataFrame) -> str:
    """Which models cite no better than chance, and so are left out where scores are pooled."""
    kept = above_chance(scored)
    weak = [
        f"{name} ({_points(found)})" for name, found in chance(scored).items() if name not in kept
    ]
    told = "Pooled are models whose recall exceeds that of as many citations drawn at random, with its interval"
    return f"{told}; left out: {', '.join(weak)}." if weak else f"{told}; none is left out."


def undecided(found: Mapping[str, Evidence]) -> str:
    """How many of the chapter's sentences the answers decide, and how many questions would decide the others."""
    known = stated("thesis")
    own = {
        name: known.loc[name, "contradicted_if"]
        for name in found
        if known.loc[name, "kind"] == "finding"
    }
    verdicts = {name: verdict(found[name], edge) for name, edge in own.items()}
    counts = {one: list(verdicts.values()).count(one) for one in VERDICTS}
    said = [f"{count} {one.replace('holds', 'hold')}" for one, count in counts.items() if count]
    printed = [
        name for name in own if verdicts[name] == "undecided" and found[name].printed is not None
    ]
    needed = sorted(
        {number for name in printed if (number := units_needed(found[name], own[name]))}
    )
    told = (
        f"Of the {len(own)} sentences of the chapter held against these answers: {', '.join(said)}."
    )
    if not needed:
        return told
    wanted = f"{needed[0]:,} to {needed[-1]:,}" if len(needed) > 1 else f"{needed[0]:,}"
    return f"{told} To show the printed effects of the undecided ones four times in five takes {wanted} questions."


def reach(table: pd.DataFrame) -> str:
    """What the least and the most questions of `replica.reach` can show, beside the largest printed CAB."""
    printed = [
        numbers(printed_table(f"thesis/table-{n}"), ["ΔRecall"])["ΔRecall"].max()
        for n in ("5.3", "5.5")
    ]
    told = [
        f"with {row['questions']:,.0f} questions a CAB leaves zero {_from(row['least CAB (bootstrap)'])} by the "
        f"bootstrap and {_from(row['least CAB (permutation)'])} by the permutation test, and one as large as printed "
        f"is found in {row['printed CAB found, percent of runs']:.1f} % of runs"
        for _, row in table.iloc[[0, -1]].iterrows()
    ]
    return f"The largest printed CAB of recall is {max(printed):.1f} points; {'; '.join(told)}."


def retrievers(study: Study) -> str:
    """By what the passages are found beside the usual retriever."""
    found = {name: None for of in study.benchmarks.values() for name in of.found_by}
    usual, *others = found
    if not others:
        return f"Here all passages were found by {usual}."
    return f"Here passages were found by {' and by '.join(others)}, where all other experiments have those of {usual}."


def worked_examples(study: Study) -> str:
    """What stands before a question in a prompt."""
    count = len(study.wording().examples)
    if not count:
        return "No worked example stands before the question."
    return (
        f"Before the question stand {count} worked examples of ours, to show a small model how to cite; as many have a "
        "relevant passage by one kind of author as by the other, so that they favour neither."
    )


def pool_of_names(study: Study) -> str:
    """The names that stand for people."""
    names = study.label_sets()["names"].groups["Human"]
    model = study.names_by or study.writer
    who = next(
        (study.display_name(one) for one, asked in study.records.items() if asked.model == model),
        model,
    )
    return f"The pool of names, made by {who}, has {len(names)} of them: {', '.join(names)}."


def title_of_intervals(table: pd.DataFrame, of: str) -> str:
    """A figure's title: how many intervals of something leave zero."""
    away = int(((table["low"] > 0) | (table["high"] < 0)).sum())
    if not away:
        return f"All {len(table)} intervals of {of} include zero"
    return f"{away} of {len(table)} intervals of {of} {'leaves' if away == 1 else 'leave'} zero"


def title_of_positions(table: pd.DataFrame) -> str:
    """A figure's title: where the record of most questions does best and worst."""
    most = table.loc[table["questions"].idxmax(), "group"]
    one = table[table["group"] == most].sort_values("value", ascending=False, kind="stable")
    best, worst = one.iloc[0], one.iloc[-1]
    where = f"highest at position {best['position']:.0f} ({best['value']:.0f})"
    return f"{best['benchmark']}: {where}, lowest at {worst['position']:.0f} ({worst['value']:.0f})"


def _from(least: float) -> str:
    return f"from {least:.1f} points on" if not math.isnan(least) else "never"


def lessons(found: Mapping[str, Evidence]) -> list[str]:
    """What the answers teach of bias, sensitivity and confidence, each by its interval."""
    if all(
        one.estimate is None
        for name, one in found.items()
        if name != "5.1-every-model-above-chance"
    ):
        return [NOBODY]
    mixed, placebo, moves, sure = (
        found[n] for n in ("5.5-human", "placebo-bias", "placebo-cas", "5.6-confident")
    )
    bias = _reading(placebo, *_SIDES)
    move = _reading(
        moves,
        "labels of authors do more than any label does",
        "labels of authors do less than labels that mean nothing",
        "it is not shown that what labels say matters, beyond there being labels at all",
    )
    told = [
        f"In the mixed mode CAB is {_points(mixed)}. With that of labels that mean nothing subtracted, it is "
        f"{_points(placebo)}: {bias}.",
        f"CAS with labels of authors less that with labels that mean nothing is {_points(moves)}: {move}.",
    ]
    more = _reading(
        sure, "are more probable", "are less probable", "are not shown to be more probable"
    )
    return [
        *told,
        f"Where a model cites, numbers of relevant passages {more} than others: {_points(sure)}.",
    ]


def in_print(found: Mapping[str, Evidence]) -> str:
    """Which of the chapter's sentences its own numbers bear out."""
    known = stated("thesis")
    against = [
        str(known.loc[name, "statement"])
        for name, one in found.items()
        if verdict(one, known.loc[name, "contradicted_if"]) == "contradicted"
    ]
    told = f"Of {len(found)} sentences on what is printed, {len(found) - len(against)} hold"
    return f"{told}; these do not: {'; '.join(against)}." if against else f"{told}."


def counts_of_marks(verdicts: pd.DataFrame, sample: int) -> str:
    """How many printed marks the printed means prove, leave open or refute."""
    marked = verdicts["marked"]
    significant = verdicts["significant"]
    counts = significant[marked].value_counts().reindex(["yes", "open", "no"], fill_value=0)
    unmarked_but_significant = ((significant == "yes") & ~marked).sum()
    return (
        f"With {sample:,} questions, of the {marked.sum()} marks of Tables 5.2, 5.3 and 5.5 whose "
        f"means are printed, {counts['yes']} are proven, {counts['open']} stay open and "
        f"{counts['no']} are refuted; of the {(~marked).sum()} cells without a mark, "
        f"{unmarked_but_significant} must be significant."
    )


def recorded_by(study: Study) -> str:
    """Whose recorded answers a report rests on."""
    return f"the recorded answers of {', '.join(study.display_names())}"
