"""Everything about a table of answers in one tidy table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from equipoise import options as opt
from equipoise.answer_modes import in_order
from equipoise.coverage import Seen, first, judge
from equipoise.declare import checked
from equipoise.measures.attribution.bias import (
    AUTHORS_OF,
    bias_table,
    check_pairs,
    each_answer_once,
    named_modes,
)
from equipoise.measures.attribution.citation_styles import in_brackets, style_counts, style_of
from equipoise.measures.attribution.confidence import attribution_confidence, citation_rows
from equipoise.measures.attribution.quality import MEANS, TOTALS, score_answers
from equipoise.problems import listed, need_columns
from equipoise.statistics.intervals import bootstrap_intervals

_MODES = (*AUTHORS_OF, "mode", "against", "measure")
_FOUND = ("value", "low", "high", "t", "p_t", "p_permutation", "count", "left_out")
EACH = ("out_of_range", "match", "citation_marks")
"""The options by which each answer is scored by itself."""
_TESTS = ["t", "p_t", "p_permutation"]


@checked
def score_attribution(
    answers: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    run: str = "",
    citation_style: opt.CitationStyle = "auto",
    favoured: opt.Favoured = "Human",
    out_of_range: opt.OutOfRange = "ignored",
    match: opt.Match = "substring",
    citation_marks: opt.CitationMarks = "removed",
    level: opt.Level = 0.95,
    resamples: opt.Resamples = 9999,
    seed: opt.Seed = 0,
    least_seen: opt.LeastSeen = 0.5,
) -> pd.DataFrame:
    r"""Quality of each mode, CAS, CAB and attribution confidence of answers, one row each.

    .. math::
        CAS = \frac{1}{|Q|} \sum_{q \in Q} |M^q_{Informed} - M^q_{Vanilla}|, \quad
        CAB = \frac{\omega}{|Q|} \sum_{q \in Q} (M^q_{Informed} - M^q_{CF-informed})

    ``by``: further columns to group by, such as the model. ``run``: name of the answers. Returns
    ``run``, an empty ``topic`` (every row is a mean or a total over questions), by,
    ``relevant_author, nonrelevant_author, mode, against, measure, value, low, high, t, p_t,
    p_permutation, count, left_out``. The measures of a mode: precision, recall, exact_match, cited,
    cited_relevant (means, with bootstrap intervals over questions), uncited, out_of_range,
    repeated, malformed (totals), each with the number of answers behind it as ``count``;
    AC-relevant and AC-nonrelevant, with intervals over the citations, which are counted, and as
    ``left_out`` those without a probability; AC-difference between them, with Welch's test. Of a
    mode against another: CAS-precision, CAS-recall, CAB-precision, CAB-recall, with the questions
    counted and left out; for CAS ``mode`` is the informed one and ``against`` Vanilla. A mean of
    absolute differences is above 0 as soon as one answer changes: CAS has no test. NaN where a
    column does not apply. InputError where no answer of a group cites a document shown, or no
    question is answered in two modes that are compared.

    thesis, section 5.3.3.

    >>> modes = ["Vanilla", "Informed"] * 2
    >>> answers = {"question": [*"aabb"], "mode": modes, "answer": ["[1]", "[2]"] * 2}
    >>> answers = pd.DataFrame(answers).assign(relevant=[(1,)] * 4)
    >>> answers = answers.assign(relevant_author="Human", nonrelevant_author="LLM")
    >>> scores = score_attribution(answers, citation_style="bracket").set_index(["mode", "measure"])
    >>> rows = [("Vanilla", "recall"), ("Informed", "CAS-recall")]
    >>> scores.loc[rows, ["against", "value", "count"]]
                         against  value  count
    mode     measure
    Vanilla  recall                 1.0      2
    Informed CAS-recall  Vanilla    1.0      2
    """
    _check(answers, by)
    style = style_of([style_counts(answers, citation_style)], citation_style)
    tables = scored_answers(
        answers, by, style, out_of_range=out_of_range, match=match, citation_marks=citation_marks
    )
    return attribution_rows(
        [tables],
        by,
        run=run,
        favoured=favoured,
        level=level,
        resamples=resamples,
        seed=seed,
        least_seen=least_seen,
    )


def scored_answers(
    answers: pd.DataFrame, by: Sequence[str], style: str, **options: Any
) -> list[pd.DataFrame]:
    """What `attribution_rows` takes of answers, without texts: scores, and citations if any."""
    _check(answers, by)
    keys = [*by, *AUTHORS_OF, "mode"]
    texts = in_brackets(answers["answer"].tolist(), style)
    answers = answers.assign(answer=texts, mode=named_modes(answers))
    scored = each_answer_once(score_answers(answers, **options), by, (*MEANS, *TOTALS))
    tables = [scored[[*keys, "question", *MEANS, *TOTALS]]]
    if "citations" in answers.columns and answers["citations"].notna().any():
        tables.append(citation_rows(answers)[[*keys, "relevant", "probability"]])
    return tables


def _check(answers: pd.DataFrame, by: Sequence[str]) -> None:
    reserved = {"run", "topic", *_MODES, *_FOUND}
    reserved |= {"question", "answer", "relevant", "citations", "gold"}
    clashes = sorted(reserved.intersection(by))
    if clashes:
        raise ValueError(
            f"by lists further columns to group by, of other names than {', '.join(clashes)}"
        )
    need_columns(answers, [*by, "question", "answer", *AUTHORS_OF, "mode"])


def attribution_rows(
    parts: Sequence[Sequence[pd.DataFrame]],
    by: Sequence[str],
    *,
    run: str,
    favoured: opt.Favoured,
    level: opt.Level,
    resamples: opt.Resamples,
    seed: opt.Seed,
    least_seen: opt.LeastSeen,
) -> pd.DataFrame:
    """The table of `score_attribution` from those of `scored_answers`, one for each part."""
    scored = pd.concat([rows[0] for rows in parts], ignore_index=True)
    keys = [*by, *AUTHORS_OF, "mode"]
    draws: Any = {"level": level, "resamples": resamples, "seed": seed}
    check_pairs(scored, by)
    bias = bias_table(scored, by, favoured=favoured, **draws)
    judge([*_citations_seen(scored, by), *_both_seen(bias)], least_seen)
    _refuse_one_author(scored, bias)

    tables = [_quality_rows(scored, by, **draws)]
    parts_with_citations = [rows[1] for rows in parts if len(rows) > 1]
    if parts_with_citations:
        cited = pd.concat(parts_with_citations, ignore_index=True)
        tables.append(_confidence_rows(cited, keys, **draws))
    # A mean of absolute differences is above 0 as soon as one answer changes: CAS has no test.
    bias[_TESTS] = bias[_TESTS].mask(bias["quantity"] == "CAS")
    names = bias["quantity"] + "-" + bias["measure"]
    tables.append(bias.assign(measure=names, count=bias["questions"]))

    table = pd.concat([rows for rows in tables if len(rows)], ignore_index=True)
    table = table.assign(run=run, topic="")
    # Columns that a measure does not have are NaN.
    table = table.reindex(columns=["run", "topic", *by, *_MODES, *_FOUND])
    table = table.astype({"against": "object"}).fillna({"against": ""})
    return table.astype({"against": "str", "left_out": "int64", "count": "int64"})


def _refuse_one_author(scored: pd.DataFrame, bias: pd.DataFrame) -> None:
    """Refuse answers for a CAB whose documents all have one author, which none comes of."""
    has_one_author = (scored["relevant_author"] == scored["nonrelevant_author"]).all()
    modes = set(scored["mode"])
    if not has_one_author or (bias["quantity"] == "CAB").any():
        return
    if {"Informed", "CF-informed"} <= modes:
        authors = listed(scored["relevant_author"].unique())
        raise ValueError(
            f"relevant_author and nonrelevant_author are both {authors}: Informed and CF-informed"
            " then name one author for all documents, and have no CAB; wanted two authors, or"
            " answers in the modes Informed/CF-informed and CF-informed/Informed"
        )


def _citations_seen(scored: pd.DataFrame, by: Sequence[str]) -> list[Seen]:
    """For each group, how many answers cite a document that was shown."""
    groups = scored.groupby(list(by), sort=False) if by else [((), scored)]
    seen = []
    for name, answers in groups:
        cites = answers["cited"] > 0
        seen.append(
            Seen(
                " ".join(map(str, name)) or "the answers",
                "answers",
                "a citation of a document shown",
                int(cites.sum()),
                len(answers),
                first(answers.loc[~cites, "question"]),
            )
        )
    return seen


def _both_seen(bias: pd.DataFrame) -> list[Seen]:
    """For each comparison, how many questions were answered in both modes."""
    columns = ["mode", "against", "questions", "left_out"]
    comparisons = bias.drop_duplicates([*columns, *AUTHORS_OF])[columns]
    seen = []
    for mode, against, questions, left_out in comparisons.itertuples(index=False, name=None):
        seen.append(
            Seen(
                f"{mode} against {against}",
                "questions",
                "an answer in both modes",
                questions,
                questions + left_out,
            )
        )
    return seen


def quality_table(scored: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Means and totals of every group and mode (thesis, Tables 5.1, 5.4 and 5.11 to 5.15).

    Returns, sorted by group, modes in the order of `MODES`, then mixed ones: by, ``relevant_author,
    nonrelevant_author, mode, answers``, means over answers, ``with_gold`` (the answers that exact
    match is a mean of), totals.
    """
    table = each_answer_once(scored, by, (*MEANS, *TOTALS))
    table["mode"] = pd.Categorical(table["mode"], in_order(table["mode"].unique()), ordered=True)
    groups = table.groupby([*by, *AUTHORS_OF, "mode"], sort=True, observed=True)
    quality = groups.size().to_frame("answers")
    quality = quality.join(groups[list(MEANS)].mean())
    quality["with_gold"] = groups["exact_match"].count()
    quality = quality.join(groups[list(TOTALS)].sum())
    return quality.reset_index().astype({"mode": "str"})


def _quality_rows(scored: pd.DataFrame, by: Sequence[str], **draws: Any) -> pd.DataFrame:
    """One row for each mean of a mode, with its interval over questions, and each total."""
    keys = [*by, *AUTHORS_OF, "mode"]
    quality = quality_table(scored, by)
    rows = quality.melt(
        [*keys, "answers", "with_gold"], [*MEANS, *TOTALS], "measure", ignore_index=False
    )
    rows = rows.sort_index(kind="stable")  # the measures of a mode next to each other
    count = rows["with_gold"].where(rows["measure"] == "exact_match", rows["answers"])
    rows = rows.assign(count=count, left_out=rows["answers"] - count)

    # In order of questions: the bootstrap draws places, and the rows may come in any order.
    values = {}
    for group, answers in scored.sort_values("question").groupby(keys):
        for name in MEANS:
            values[(*group, name)] = answers[name].dropna()
    return rows.join(_intervals(values, keys, **draws), on=[*keys, "measure"])


def _intervals(
    values: Mapping[tuple[Any, ...], pd.Series], keys: list[str], *, seed: int, **draws: Any
) -> pd.DataFrame:
    """Bootstrap intervals of means: columns low and high, by keys and measure."""
    ends = bootstrap_intervals(list(values.values()), seed, **draws)
    index = pd.MultiIndex.from_tuples(list(values), names=[*keys, "measure"])
    return pd.DataFrame(ends, index, ["low", "high"])


def _confidence_rows(cited: pd.DataFrame, keys: list[str], **draws: Any) -> pd.DataFrame:
    """A row for each side of each group, with an interval over citations, and the difference."""
    confidence = attribution_confidence(cited, keys)
    sides = {}
    for side in ("relevant", "nonrelevant"):
        columns = confidence[[f"{side}_ac", f"{side}_citations", f"{side}_missing"]]
        sides[side] = columns.set_axis(["value", "count", "left_out"], axis=1)
    # The difference of means has no interval here, but a test.
    difference = sides["relevant"] + sides["nonrelevant"]  # the citations of both are behind it
    sides["difference"] = difference.assign(
        value=sides["relevant"]["value"] - sides["nonrelevant"]["value"],
        t=confidence["t"],
        p_t=confidence["p"],
    )
    tables = []
    for side, table in sides.items():
        tables.append(confidence[keys].join(table).assign(measure=f"AC-{side}"))
    rows = pd.concat(tables).sort_index(kind="stable")

    values = {}
    for (*group, is_relevant), citations in cited.groupby([*keys, "relevant"]):
        name = "AC-relevant" if is_relevant else "AC-nonrelevant"
        values[(*group, name)] = citations["probability"].dropna()
    return rows.join(_intervals(values, keys, **draws), on=[*keys, "measure"])
