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
    each_answer_once,
    named_modes,
)
from equipoise.measures.attribution.citation_styles import in_brackets, style_counts, style_of
from equipoise.measures.attribution.confidence import attribution_confidence, citation_rows
from equipoise.measures.attribution.quality import MEANS, TOTALS, score_answers
from equipoise.problems import need_columns
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
    r"""Everything about a table of answers: quality of each mode, CAS, CAB and attribution confidence, one row each.

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

    >>> modes = {"question": [*"aabb"], "mode": ["Vanilla", "Informed"] * 2, "answer": ["[1]", "[2]"] * 2}
    >>> answers = pd.DataFrame(modes).assign(relevant=[(1,)] * 4, relevant_author="Human", nonrelevant_author="LLM")
    >>> scores = score_attribution(answers, citation_style="bracket").set_index(["mode", "measure"])
    >>> scores.loc[[("Vanilla", "recall"), ("Informed", "CAS-recall")], ["against", "value", "count"]]
                         against  value  count
    mode     measure
    Vanilla  recall                 1.0      2
    Informed CAS-recall  Vanilla    1.0      2
    """
    _check(answers, by)
    rows = {"out_of_range": out_of_range, "match": match, "citation_marks": citation_marks}
    draws: Any = {"favoured": favoured, "level": level, "resamples": resamples, "seed": seed}
    chosen = style_of([style_counts(answers, citation_style)], citation_style)
    return attribution_rows(
        [scored_answers(answers, by, chosen, **rows)], by, run=run, least_seen=least_seen, **draws
    )


def scored_answers(
    answers: pd.DataFrame, by: Sequence[str], style: str, **options: Any
) -> list[pd.DataFrame]:
    """What `attribution_rows` takes of answers, in which their texts are not: each one's scores, and each citation."""
    _check(answers, by)
    answers = answers.assign(
        answer=in_brackets(answers["answer"].tolist(), style), mode=named_modes(answers)
    )
    keys, scored = [*by, *AUTHORS_OF, "mode"], score_answers(answers, **options)
    tables = [each_answer_once(scored, by, (*MEANS, *TOTALS))]
    if "citations" in answers.columns and answers["citations"].notna().any():
        tables.append(citation_rows(answers)[[*keys, "relevant", "probability"]])
    return [tables[0][[*keys, "question", *MEANS, *TOTALS]], *tables[1:]]


def _check(answers: pd.DataFrame, by: Sequence[str]) -> None:
    taken = sorted(
        {*by}
        & {"run", "topic", *_MODES, *_FOUND, "question", "answer", "relevant", "citations", "gold"}
    )
    if taken:
        raise ValueError(
            f"by lists further columns to group by, of other names than {', '.join(taken)}"
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
    """The table of `score_attribution` from those of `scored_answers`, one for each part of the answers."""
    scored, *cited = (pd.concat(same, ignore_index=True) for same in _columns(parts) if same)
    draws: Any = {"level": level, "resamples": resamples, "seed": seed}
    bias = bias_table(scored, by, favoured=favoured, **draws)
    judge([*_citations_seen(scored, by), *_both_seen(bias)], least_seen)
    tables, keys = [_quality_rows(scored, by, **draws)], [*by, *AUTHORS_OF, "mode"]
    tables += [_confidence_rows(each, keys, **draws) for each in cited]
    bias[_TESTS] = bias[_TESTS].mask(bias["quantity"] == "CAS")
    tables.append(
        bias.assign(measure=bias["quantity"] + "-" + bias["measure"], count=bias["questions"])
    )
    whole = pd.concat([table for table in tables if len(table)], ignore_index=True).assign(
        run=run, topic=""
    )
    whole = whole.reindex(columns=["run", "topic", *by, *_MODES, *_FOUND]).astype(
        {"against": "object"}
    )
    whole = whole.fillna({"against": ""})
    return whole.astype({"against": "str", "left_out": "int64", "count": "int64"})


def _columns(parts: Sequence[Sequence[pd.DataFrame]]) -> list[list[pd.DataFrame]]:
    """The first tables of all parts, and the second ones of those that have one."""
    return [[part[place] for part in parts if len(part) > place] for place in range(2)]


def _citations_seen(scored: pd.DataFrame, by: Sequence[str]) -> list[Seen]:
    """For each group, how many answers cite a document that was shown."""
    groups = scored.groupby(list(by), sort=False) if by else [((), scored)]
    return [
        Seen(
            " ".join(map(str, name)) or "the answers",
            "answers",
            "a citation of a document shown",
            int((own["cited"] > 0).sum()),
            len(own),
            first(own.loc[own["cited"] == 0, "question"]),
        )
        for name, own in groups
    ]


def _both_seen(bias: pd.DataFrame) -> list[Seen]:
    """For each comparison, how many questions were answered in both modes."""
    once = bias.drop_duplicates(["mode", "against", *AUTHORS_OF, "questions", "left_out"])
    rows = once[["mode", "against", "questions", "left_out"]].itertuples(index=False, name=None)
    needed = "an answer in both modes"
    return [
        Seen(f"{one} against {other}", "questions", needed, n, n + left)
        for one, other, n, left in rows
    ]


def quality_table(scored: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Means and totals of every group and mode (thesis, Tables 5.1, 5.4 and 5.11 to 5.15).

    Returns, sorted by group, modes in the order of `MODES`, then mixed ones: by, ``relevant_author,
    nonrelevant_author, mode, answers``, means over answers, ``with_gold`` (the answers that exact
    match is a mean of), totals.
    """
    table = each_answer_once(scored, by, (*MEANS, *TOTALS))
    table["mode"] = pd.Categorical(table["mode"], in_order(table["mode"].unique()), ordered=True)
    groups = table.groupby([*by, *AUTHORS_OF, "mode"], sort=True, observed=True)
    counts = {
        "answers": groups.size(),
        **groups[list(MEANS)].mean(),
        "with_gold": groups["exact_match"].count(),
    }
    return (
        pd.DataFrame(counts).join(groups[list(TOTALS)].sum()).reset_index().astype({"mode": "str"})
    )


def _quality_rows(scored: pd.DataFrame, by: Sequence[str], **draws: Any) -> pd.DataFrame:
    """One row for each mean of a mode, with its interval over questions, and each total; the answers behind it."""
    wide = quality_table(scored, by)
    keys = [*by, *AUTHORS_OF, "mode"]
    each = {
        (*key, name): own[name].dropna()
        for key, own in scored.sort_values("question").groupby(keys)
        for name in MEANS
    }
    behind = [*by, *AUTHORS_OF, "mode", "answers", "with_gold"]
    long = wide.melt(behind, [*MEANS, *TOTALS], "measure", ignore_index=False).sort_index(
        kind="stable"
    )
    count = long["with_gold"].where(long["measure"] == "exact_match", long["answers"])
    return _with_ends(
        long.assign(count=count, left_out=long["answers"] - count), each, keys, **draws
    )


def _with_ends(
    rows: pd.DataFrame,
    each: Mapping[tuple[Any, ...], pd.Series],
    keys: list[str],
    *,
    seed: int,
    **draws: Any,
) -> pd.DataFrame:
    """The rows with low and high: the bootstrap interval of the mean of what is behind each, by keys and measure."""
    names = [*keys, "measure"]
    ends = bootstrap_intervals([*each.values()], seed, **draws)
    found = pd.DataFrame(ends, pd.MultiIndex.from_tuples([*each], names=names), ["low", "high"])
    return rows.join(found, on=names)


def _confidence_rows(cited: pd.DataFrame, keys: list[str], **draws: Any) -> pd.DataFrame:
    """One row for each side of each group, with an interval over citations, and one for the difference."""
    sides, confidence = {}, attribution_confidence(cited, keys)
    each = {
        (*key, "AC-relevant" if side else "AC-nonrelevant"): own["probability"].dropna()
        for (*key, side), own in cited.groupby([*keys, "relevant"])
    }
    for side in ("relevant", "nonrelevant"):
        found = confidence[[f"{side}_ac", f"{side}_citations", f"{side}_missing"]]
        sides[side] = found.set_axis(["value", "count", "left_out"], axis=1)
    difference = sides["relevant"]["value"] - sides["nonrelevant"]["value"]
    both = sides["relevant"] + sides["nonrelevant"]
    sides["difference"] = both.assign(value=difference, t=confidence["t"], p_t=confidence["p"])
    rows = [
        confidence[keys].join(part).assign(measure=f"AC-{side}") for side, part in sides.items()
    ]
    return _with_ends(pd.concat(rows).sort_index(kind="stable"), each, keys, **draws)
