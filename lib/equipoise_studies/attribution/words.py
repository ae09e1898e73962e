"""What the answers of chapter 5 say in sentences, made of numbers and their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from equipoise_compendium.claims import VERDICTS, Evidence, stated, units_needed, verdict
from equipoise_studies.attribution.derived import printed_numbers
from equipoise_studies.attribution.findings import above_chance, chance
from equipoise_studies.attribution.study import Study

SOME_MODES = "modes with one label for all passages stand here only where they were recorded"
NOBODY = "No model here cites better than chance, so nothing is pooled."
_ZERO = ("above zero", "below zero", "not shown to differ from zero")
_DISTANCE = (
    "labels of authors move citations to one side further than these do",
    "labels of authors move citations to one side less far than these do",
    "labels of authors are not shown to move citations to one side further than these do",
)


# --- the readings of an interval ------------------------------------------------------------------


def _points(evidence: Evidence) -> str:
    """An estimate with its interval."""
    if evidence.estimate is None:
        return "not measured"
    if evidence.low is None:
        return f"{evidence.estimate:+.1f} points"
    return f"{evidence.estimate:+.1f} points [{evidence.low:+.1f}, {evidence.high:+.1f}]"


def _reading(evidence: Evidence, above: str, below: str, unclear: str) -> str:
    """Which of three readings an interval allows: it is above zero, below, or holds zero."""
    if evidence.low is None or evidence.high is None:
        return unclear
    if evidence.low > 0:
        return above
    if evidence.high < 0:
        return below
    return unclear


# --- the answer -----------------------------------------------------------------------------------


def answer(
    scored: pd.DataFrame,
    evidence: Mapping[str, Evidence],
    biases: Mapping[str, Evidence],
    of_models: Mapping[str, Evidence],
) -> list[str]:
    """What the recorded answers say of the notebook's question, and what is printed.

    ``evidence``, ``biases``: of the answers, as of `findings.evidence` and `pooled_biases`.
    ``of_models``: on the models that the thesis names.
    """
    models = []
    for name in above_chance(scored):
        model = name.partition(" (")[0]  # several records may be of one model
        if model not in models:
            models.append(model)
    if not models:
        return [NOBODY]

    one_author = biases["5.5-human"]
    two_authors = biases["5.3-human"]
    farther = evidence["placebo-bias"]
    cas_above_placebo = evidence["placebo-cas"]

    # A config of other models or benchmarks may have no printed mean beside it.
    means = []
    for cab in (one_author, two_authors):
        if cab.printed is not None:
            means.append(f"{cab.printed:+.1f}")
    printed = f" The thesis prints means of {' and '.join(means)} for its models." if means else ""

    move = _reading(
        cas_above_placebo,
        "move citations more",
        "move citations less",
        "are not shown to move citations more",
    )
    return [
        f"{title_of_overview(farther)}.",
        f"For {', '.join(models)}, CAB is {_points(one_author)} over "
        f"{one_author.n or 0} questions whose passages have one author "
        f"({_reading(one_author, *_ZERO)}), and "
        f"{_points(two_authors)} over {two_authors.n or 0} whose passages have two "
        f"({_reading(two_authors, *_ZERO)}).{printed}",
        f"Between two labels that mean nothing CAB is {_points(evidence['placebo-cab'])}: "
        f"{_reading(farther, *_DISTANCE)} (difference of the distances from zero: "
        f"{_points(farther)}), and {move}, in whatever direction (difference of CAS: "
        f"{_points(cas_above_placebo)}).",
        _on_models(of_models),
    ]


def _on_models(of_models: Mapping[str, Evidence]) -> str:
    """Whether each of the models that the thesis names is shown to favour people."""
    parts = []
    for name, passages in {"5.3-human": "two authors", "5.5-human": "one"}.items():
        finding = of_models[name]
        reading = _reading(finding, "is shown", "is contradicted", "is not shown")
        parts.append(f"{reading} where passages have {passages} ({_points(finding)})")
    return (
        f"That each of the thesis's own models favours people {' and '.join(parts)}, judged by the "
        "model with the least CAB."
    )


# --- models and verdicts --------------------------------------------------------------------------


def left_out(scored: pd.DataFrame) -> str:
    """Which models cite no better than chance, and so are left out where scores are pooled."""
    pooled = above_chance(scored)
    weak = []
    for model, margin in chance(scored).items():
        if model not in pooled:
            weak.append(f"{model} ({_points(margin)})")
    excluded = f"left out: {', '.join(weak)}" if weak else "none is left out"
    return (
        "Models are pooled if their recall, with all of its interval, exceeds that of as many "
        f"citations drawn at random; {excluded}."
    )


def one_number_twice(scored: pd.DataFrame) -> str:
    """In how many answers precision is recall, which makes the mean of both one number twice."""
    equal = (scored["precision"] == scored["recall"]).mean()
    return (
        f"Precision equals recall in {equal:.1%} of these answers: the mean of both is nearly one "
        "number twice, and that they agree says nothing."
    )


def undecided(judged: Mapping[str, Evidence], biases: Mapping[str, Evidence]) -> str:
    """How many of the chapter's sentences are decided, and what answers such as these would take.

    ``judged``: evidence by claim. ``biases``: of the answers, with what the thesis prints.
    """
    claims = stated("thesis")
    verdicts = []
    for name, finding in judged.items():
        if claims.loc[name, "kind"] == "finding":
            verdicts.append(verdict(finding, claims.loc[name, "contradicted_if"]))

    counts = []
    for name in VERDICTS:
        if name in verdicts:
            counts.append(f"{verdicts.count(name)} {name.replace('holds', 'hold')}")
    sentence = (
        f"Of the {len(verdicts)} sentences of the chapter on its models and its method: "
        f"{', '.join(counts)}."
    )

    # How many questions would show an effect can be said only of one that is printed.
    questions_needed = set()
    for name, finding in biases.items():
        edge = claims.loc[name, "contradicted_if"]
        if finding.printed is not None and verdict(finding, edge) == "undecided":
            needed = units_needed(finding, edge)
            if needed:
                questions_needed.add(needed)
    if not questions_needed:
        return sentence
    span = f"{min(questions_needed):,}"
    if len(questions_needed) > 1:
        span += f" to {max(questions_needed):,}"
    return (
        f"{sentence} In answers such as these, 80 % power for biases as large as the printed ones "
        f"needs n = {span} questions."
    )


def reach(table: pd.DataFrame) -> str:
    """What the least and the most questions of `power.reach` can show, beside the printed CAB."""
    largest = max(printed_numbers("5.3")["ΔRecall"].max(), printed_numbers("5.5")["ΔRecall"].max())
    # The smallest of our samples and the largest, which is the thesis's or ours.
    sentences = []
    for _, row in table.iloc[[0, -1]].iterrows():
        sentences.append(
            f"with {row['questions']:,.0f} questions a CAB leaves zero "
            f"{_from(row['least CAB (bootstrap)'])} by the bootstrap and "
            f"{_from(row['least CAB (permutation)'])} by the permutation test, and one as large as "
            f"printed is found in {row['printed CAB found, percent of runs']:.1f} % of runs"
        )
    return f"The largest printed CAB of recall is {largest:.1f} points; {'; '.join(sentences)}."


def _from(bound: float) -> str:
    if math.isnan(bound):
        return "never"
    return f"from {bound:.1f} points on"


# --- what was asked -------------------------------------------------------------------------------


def recorded_by(study: Study) -> str:
    """Whose recorded answers a report rests on."""
    return f"the recorded answers of {', '.join(study.display_names())}"


def worked_examples(study: Study) -> str:
    """What stands before a question in a prompt."""
    count = len(study.wording().examples)
    if not count:
        return "No worked example stands before the question."
    return (
        f"Before the question stand {count} worked examples of ours, to show a small model how to "
        "cite; as many have a relevant passage by one kind of author as by the other, so that they "
        "favour neither."
    )


def pool_of_names(study: Study) -> str:
    """The names that stand for people."""
    names = study.label_sets()["names"].groups["Human"]
    model = study.names_by or study.writer
    author = model
    for name, record in study.records.items():
        if record.model == model:
            author = study.display_name(name)
            break
    return f"The pool of names, made by {author}, has {len(names)} of them: {', '.join(names)}."


# --- titles of figures ----------------------------------------------------------------------------


def title_of_overview(farther: Evidence) -> str:
    """A figure's title: how the bias of labels of authors compares with that of a placebo.

    ``farther``: as of `findings.farther_from_zero`.
    """
    return _reading(
        farther,
        "Labels of authors bias citations more than labels that mean nothing",
        "Labels of authors bias citations less than labels that mean nothing",
        "Labels of authors are not shown to bias citations more than meaningless ones",
    )


def title_over_passages(table: pd.DataFrame) -> str:
    """A figure's title: for which of CAS and CAB a change with the passages shown is seen.

    It is where the intervals of two numbers of passages have nothing in common.
    """
    changing = []
    for quantity, rows in table.groupby("quantity", sort=True):
        by_group = rows.groupby(["benchmark", "model"])
        if (by_group["low"].max() > by_group["high"].min()).any():
            changing.append(str(quantity))
    if not changing:
        return "Neither CAB nor CAS is shown to change with the number of passages"
    verb = "changes" if len(changing) == 1 else "change"
    return f"{' and '.join(changing)} {verb} with the number of passages"


def span_over_passages(table: pd.DataFrame, quantity: str) -> str:
    """A panel's title: between what CAS or CAB lie, and of how many questions each is."""
    rows = table[table["quantity"] == quantity]
    if rows.empty:
        return f"{quantity}: no answers with several numbers of passages"
    lowest = rows.loc[rows["value"].idxmin()]
    highest = rows.loc[rows["value"].idxmax()]
    return (
        f"{quantity}: {lowest['value']:.0f} (k = {lowest['k']}) to {highest['value']:.0f} "
        f"(k = {highest['k']}) points, n = {_span(rows['questions'])} questions"
    )


def _span(counts: pd.Series) -> str:
    """A number, or the least and the largest."""
    least, largest = counts.min(), counts.max()
    return f"{least:,}" if least == largest else f"{least:,} to {largest:,}"


def title_of_citations(bars: pd.DataFrame) -> str:
    """A figure's title: which of the printed models cites fewest passages.

    ``bars``: columns model, source, total, a row for each benchmark.
    """
    printed = bars[bars["source"] == "printed"].groupby("model")["total"].mean()
    fewest = printed.idxmin()
    others = printed.drop(fewest)
    return (
        f"Of the printed models {fewest} cites fewest passages:\n"
        f"{printed[fewest]:.1f} an answer, the others {others.min():.1f} or more"
    )


def with_questions(table: pd.DataFrame, by: str) -> pd.Series:
    """What a legend calls the groups of a table: their name, and of how many questions they are."""
    names = {}
    for name, rows in table.groupby(by, sort=False):
        names[name] = f"{name}, n = {_span(rows['questions'])}"
    return table[by].map(names)


def title_of_positions(table: pd.DataFrame) -> str:
    """A panel's title: where the record of most questions does best and worst.

    Where its positions have no interval, that they are too few to tell.
    """
    largest = table.loc[table["questions"].idxmax(), "group"]
    by_score = table[table["group"] == largest]
    by_score = by_score.sort_values("value", ascending=False, kind="stable")
    best, worst = by_score.iloc[0], by_score.iloc[-1]
    if np.isnan(best["low"]) or np.isnan(worst["low"]):
        n_questions = _span(by_score["questions"])
        return f"{best['benchmark']}: {n_questions} questions a position are too few to tell"
    return (
        f"{best['benchmark']}: recall is highest at position {best['position']:.0f} "
        f"({best['value']:.0f}), lowest at {worst['position']:.0f} ({worst['value']:.0f})"
    )


# --- large models ---------------------------------------------------------------------------------


def large_models(evidence: Mapping[str, Evidence]) -> str:
    """What more passages and the place of the relevant one do; by claim, as of `large_models`."""
    return (
        "From 10 to 30 passages, means of the four models change: precision by "
        f"{_points(evidence['large-precision'])}, recall by {_points(evidence['large-recall'])}, "
        f"correctness by {_points(evidence['large-correct'])}. With the relevant passage first of "
        f"20 or 30 correctness is higher by {_points(evidence['large-first'])} than elsewhere."
    )


def title_of_large_models(evidence: Mapping[str, Evidence]) -> str:
    """A figure's title: which scores are shown to fall with more passages."""
    falling = []
    for score in ("precision", "recall", "correctness"):
        change = evidence[f"large-{score.replace('correctness', 'correct')}"]
        if change.high is not None and change.high < 0:
            falling.append(score)
    if not falling:
        return "No mean of the models is shown to fall from 10 to 30 passages"
    verb = "falls" if len(falling) == 1 else "fall"
    *others, last = falling
    scores = f"{', '.join(others)} and {last}" if others else last
    return f"The models' mean {scores} {verb} from 10 to 30 passages"


def forms(readings: pd.DataFrame, unread: Evidence) -> str:
    """What is lost where only [1] is read; ``readings``: as of `large_models.by_reading`."""
    most = readings.loc[readings["lists"].idxmax(), "model"]
    in_lists = readings[readings["model"] == most]
    losses = readings["R, all forms"] - readings["R, [1] alone"]
    row = readings.loc[losses.idxmax()]
    most_passages = in_lists.iloc[-1]
    return (
        f"Of the answers of {most} that cite in brackets {in_lists['lists'].min():.0f} to "
        f"{in_lists['lists'].max():.0f} % have a list such as [1, 28]. Read as [1] alone, its "
        f"precision with {most_passages['passages']} passages is "
        f"{most_passages['P, [1] alone']:.1f} and its recall "
        f"{most_passages['R, [1] alone']:.1f}; with lists {most_passages['P, lists too']:.1f} and "
        f"{most_passages['R, lists too']:.1f}. Most is lost of {row['model']}, which names its "
        f"passages: recall {row['R, [1] alone']:.1f} in place of {row['R, all forms']:.1f}. All in "
        f"all {_points(unread)} of recall go unseen, beyond what as many citations at random add."
    )


def support(claims: pd.DataFrame, evidence: Mapping[str, Evidence]) -> str:
    """What experts said of claims; ``claims``: as of `large_models.support`."""
    full = evidence["support-full"]
    citing = int((claims["cited"] > 0).sum())
    questions = claims["question"].nunique()
    return (
        f"Of {len(claims):,} claims to {questions} questions {citing:,} cite a source. Of "
        f"these {full.estimate:.1f} % [{full.low:.1f}, {full.high:.1f}] are fully supported, and "
        "such a claim is definitely correct more often than another that cites, by "
        f"{_points(evidence['support-right'])}. No claim without a citation counts as supported."
    )


# --- what is printed ------------------------------------------------------------------------------


def in_print(evidence: Mapping[str, Evidence]) -> str:
    """Which of the chapter's sentences its own numbers bear out."""
    claims = stated("thesis")
    contradicted = []
    for name, finding in evidence.items():
        if verdict(finding, claims.loc[name, "contradicted_if"]) == "contradicted":
            contradicted.append(str(claims.loc[name, "statement"]))
    sentence = (
        f"Of {len(evidence)} sentences on what is printed, {len(evidence) - len(contradicted)} hold"
    )
    if contradicted:
        return f"{sentence}; these do not: {'; '.join(contradicted)}."
    return f"{sentence}."


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
