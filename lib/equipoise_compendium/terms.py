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
VERDICTS = {
    "supported": "at least one collection supports the claim after Holm's correction, none "
    "contradicts it",
    "contradicted": "at least one collection contradicts the claim after Holm's correction, none "
    "supports it",
    "inconclusive": "the evidence is imprecise (p is 5% or more after Holm's correction; intervals "
    "are not corrected), collections disagree, or their control failed",
    "not testable": "no available data can judge the claim",
}
KINDS = {
    "finding": "a sentence of the paper",
    "consistency check": "published numbers compared with other published numbers or with the text",
    "additional analysis": "our own question: errata, placebos, open points of the papers",
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
NAMED_SYSTEMS = "these systems"
ABOUT = {
    NAMED_SYSTEMS: "the systems, models or people that the paper names; no other data can judge it",
    "the method": "a measure, a procedure or a kind of system; other data can judge it",
}
SOURCES = {
    "text": "bound from the text",
    "rounding": "half a unit of the last published digit",
    "own": "our own bound",
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
    "collection": "the documents, queries, judgements and systems on which a claim is judged",
}
TERMS = {
    "Status of a table or figure": STATUSES,
    "Verdict on a claim": VERDICTS,
    "Kind of claim": KINDS,
    "Basis of a verdict": BASES,
    "Subject of a finding": ABOUT,
    "Source of a bound": SOURCES,
    "Quantifier of a claim": QUANTIFIERS,
    "Statistics": STATISTICS,
}
"""All terms by group, as the page *Terms* of the site lists them."""


def css_name(term: str) -> str:
    """Return a term as a name for style sheets and columns: letters and hyphens only."""
    return term.replace(",", "").replace(" ", "-")
