"""Everything about a table of answers in one tidy table."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from equipoise.answer_modes import in_order
from equipoise.coverage import Seen, first, judge
from equipoise.declare import checked
from equipoise.measures.attribution.bias import AUTHORS_OF, bias_table, each_answer_once, named_modes
from equipoise.measures.attribution.citation_styles import read_style
from equipoise.measures.attribution.confidence import attribution_confidence, citation_rows
from equipoise.measures.attribution.quality import MEANS, TOTALS, score_answers
from equipoise.options import (
    CitationMarks,
    CitationStyle,
    Favoured,
    LeastSeen,
    Level,
    Match,
    OutOfRange,
    Resamples,
    Seed,
)
from equipoise.problems import need_columns

_MODES = (*AUTHORS_OF, "mode", "against", "measure")
_FOUND = ("value", "low", "high", "t", "p_t", "p_permutation", "count", "left_out")
_TESTS = ["t", "p_t", "p_permutation"]


@checked
def score_attribution(
    answers: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    run: str = "",
    citation_style: CitationStyle = "auto",
    favoured: Favoured = "Human",
    out_of_range: OutOfRange = "ignored",
    match: Match = "substring",
    citation_marks: CitationMarks = "removed",
    level: Level = 0.95,
    resamples: Resamples = 9999,
    seed: Seed = 0,
    least_seen: LeastSeen = 0.5,
) -> pd.DataFrame:
    r"""Everything about a table of answers: quality of each mode, CAS, CAB and attribution confidence, one row each.

    .. math::
        CAS = \frac{1}{|Q|} \sum_{q \in Q} |M^q_{Informed} - M^q_{Vanilla}|, \quad
        CAB = \frac{\omega}{|Q|} \sum_{q \in Q} (M^q_{Informed} - M^q_{CF-informed})

    ``by``: further columns to group by, such as the model. ``run``: name of the answers. Returns ``run``, by,
    ``relevant_author, nonrelevant_author, mode, against, measure, value, low, high, t, p_t, p_permutation, count,
    left_out``. The measures of a mode: precision, recall, exact_match, cited, cited_relevant (means), uncited,
    out_of_range, repeated, malformed (totals), each with the number of answers behind it as ``count``; AC-relevant and
    AC-nonrelevant, with the citations counted, and as ``left_out`` those without a probability; AC-difference between
    them, with Welch's test. Of a mode against another: CAS-precision, CAS-recall, CAB-precision, CAB-recall, with the
    questions counted and left out; for CAS ``mode`` is the informed one and ``against`` Vanilla. A mean
    of absolute differences is above 0 as soon as one answer changes: CAS has no test. NaN where a column does not
    apply. InputError where no answer of a group has a citation that can be read.

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
    taken = sorted({*by} & {"run", *_MODES, *_FOUND, "question", "answer", "relevant", "citations", "gold"})
    if taken:
        raise ValueError(f"by lists further columns to group by, of other names than {', '.join(taken)}")
    need_columns(answers, [*by, "question", "answer"])
    answers = read_style(answers, citation_style)
    scored = score_answers(answers, out_of_range=out_of_range, match=match, citation_marks=citation_marks)
    judge(_citations_seen(scored, by), least_seen)
    bias = bias_table(scored, by, favoured=favoured, level=level, resamples=resamples, seed=seed)
    parts = [_quality_rows(scored, by)]
    if "citations" in answers.columns and answers["citations"].notna().any():
        keys, cited = [*by, *AUTHORS_OF, "mode"], citation_rows(answers.assign(mode=named_modes(answers)))
        parts.append(_confidence_rows(attribution_confidence(cited, keys), keys))
    bias[_TESTS] = bias[_TESTS].mask(bias["quantity"] == "CAS")
    parts.append(bias.assign(measure=bias["quantity"] + "-" + bias["measure"], count=bias["questions"]))
    whole = pd.concat([part for part in parts if len(part)], ignore_index=True).assign(run=run)
    whole = whole.reindex(columns=["run", *by, *_MODES, *_FOUND]).astype({"against": "object"})
    whole = whole.fillna({"against": ""})
    return whole.astype({"against": "str", "left_out": "int64", "count": "int64"})


def _citations_seen(scored: pd.DataFrame, by: Sequence[str]) -> list[Seen]:
    """For each group, how many answers have a citation that can be read."""
    groups = scored.groupby(list(by), sort=False) if by else [((), scored)]
    return [
        Seen(
            " ".join(map(str, name)) or "the answers",
            "answers",
            "a citation that can be read",
            int((own["uncited"] == 0).sum()),
            len(own),
            first(own.loc[own["uncited"] > 0, "question"]),
        )
        for name, own in groups
    ]


def quality_table(scored: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Means and totals of every group and mode (thesis, Tables 5.1, 5.4 and 5.11 to 5.15).

    Returns, sorted by group, modes in the order of `MODES`, then mixed ones: by, ``relevant_author,
    nonrelevant_author, mode, answers``, means over answers, ``with_gold`` (the answers that exact match is a mean of),
    totals.
    """
    table = each_answer_once(scored, by, (*MEANS, *TOTALS))
    table["mode"] = pd.Categorical(table["mode"], in_order(table["mode"].unique()), ordered=True)
    groups = table.groupby([*by, *AUTHORS_OF, "mode"], sort=True, observed=True)
    counts = {"answers": groups.size(), **groups[list(MEANS)].mean(), "with_gold": groups["exact_match"].count()}
    return pd.DataFrame(counts).join(groups[list(TOTALS)].sum()).reset_index().astype({"mode": "str"})


def _quality_rows(scored: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One row for each mean and total of a mode, with the number of answers behind it."""
    wide = quality_table(scored, by)
    behind = [*by, *AUTHORS_OF, "mode", "answers", "with_gold"]
    long = wide.melt(behind, [*MEANS, *TOTALS], "measure", ignore_index=False).sort_index(kind="stable")
    count = long["with_gold"].where(long["measure"] == "exact_match", long["answers"])
    return long.assign(count=count, left_out=long["answers"] - count)


def _confidence_rows(confidence: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row for each side of each group, and one for the difference."""
    sides = {}
    for side in ("relevant", "nonrelevant"):
        found = confidence[[f"{side}_ac", f"{side}_citations", f"{side}_missing"]]
        sides[side] = found.set_axis(["value", "count", "left_out"], axis=1)
    difference = sides["relevant"]["value"] - sides["nonrelevant"]["value"]
    both = sides["relevant"] + sides["nonrelevant"]
    sides["difference"] = both.assign(value=difference, t=confidence["t"], p_t=confidence["p"])
    rows = [confidence[keys].join(part).assign(measure=f"AC-{side}") for side, part in sides.items()]
    return pd.concat(rows).sort_index(kind="stable")
