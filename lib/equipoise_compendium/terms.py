"""The terms of ledger, claims and site with their definitions, which are only here."""

from __future__ import annotations

STATUSES = {
    "reproduced": "every published cell equals ours at the published precision",
    "reproduced, differences explained": "each differing cell has a proved reason",
    "partly reproduced": "the reason of at least one differing cell is likely, but not proved",
    "cross-checked": "computed from other published numbers, and compared with published cells",
    "redrawn": "regenerated; the publication has no values to compare",
    "replicated on other data": "computed on other, named data or systems",
    "not reproduced": "not computed, with the reason",
}
IN_PAPER = {
    "carried": "the paper's own numbers, marks or counts show the sentence",
    "not carried": "they do not show it: an error is too large, or a part of them fails",
    "contradicted": "they show the opposite",
    "cannot be recomputed": "the paper publishes no number for it, or a word of it has no bound",
}
ELSEWHERE = {
    "holds": "on other data whose control passed, or in values that others published, after Holm's "
    "correction, and nowhere the opposite",
    "does not hold": "the opposite is shown there, and nowhere the sentence",
    "inconclusive": "p is 5% or more after Holm's correction (intervals are not corrected), "
    "collections disagree, no interval is published, or the control failed",
    "not tested": "no data that we have can test it",
}
CHECKS = {
    "agrees": "the numbers agree at the published precision",
    "differs": "the numbers differ by more",
}
KINDS = {
    "finding": "a sentence of the paper",
    "consistency check": "published numbers compared with other published numbers or with the text",
    "additional analysis": "our own question, with an estimate and no verdict",
    "positive control": "a known effect that other data must show before they judge a claim",
}
RECOMPUTED = "recomputed"
BY_OTHERS = "published by others"
REPLICATED = "replicated on other data"
BASES = {
    RECOMPUTED: "from what the paper publishes",
    BY_OTHERS: "values that other people published for the same quantity",
    REPLICATED: "on other data or systems in place of the paper's",
}
SOURCES = {
    "text": "bound from the text",
    "rounding": "half a unit of the last published digit",
    "own": "our own bound, of a positive control",
}
QUANTIFIERS = {
    "each": "every part must meet the criterion",
    "all": "every part must meet the criterion",
    "most": "more than half of the parts must meet the criterion",
    "exists": "at least one part must meet the criterion",
    "mean": "one number must meet the criterion",
}
STATISTICS = {
    "95% confidence interval (CI)": "a range that contains the true value in 95% of repetitions",
    "bootstrap sample": "as many units as in the data, drawn from them with replacement",
    "randomisation test": "a test that compares a statistic with its values after labels, such as "
    "systems, were permuted at random",
    "Holm's correction": "bounds at 5% the probability that any of several tests is significant "
    "although its null hypothesis is true",
    "decisive part": "of the parts that must meet the criterion, the one with the weakest evidence",
    "collection": "the documents, queries, judgements and systems on which a claim is judged",
}
TERMS = {
    "Status of a table or figure": STATUSES,
    "Answer to a finding, in the paper": IN_PAPER,
    "Answer to a finding, elsewhere": ELSEWHERE,
    "Result of a consistency check": CHECKS,
    "Kind of claim": KINDS,
    "Basis of evidence": BASES,
    "Source of a bound": SOURCES,
    "Quantifier of a claim": QUANTIFIERS,
    "Statistics": STATISTICS,
}
"""All terms by group, as the page *Terms* of the site lists them."""


def css_name(term: str) -> str:
    """Return a term as a name for style sheets and columns: letters and hyphens only."""
    return term.replace(",", "").replace(" ", "-")
