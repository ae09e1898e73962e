"""Findings about systems that a paper names, which other systems cannot test."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise_compendium.claims import NAMED_SYSTEMS, OWN_DATA, Evidence, stated
from equipoise_studies.config import ChapterConfig

OTHERS_STAND_IN = "it is about the paper's own systems, and others stand in for them here"


def data_of(config: ChapterConfig, stand_in: str) -> str:
    """What claims are judged on: the thesis's own data, or what stands in for them, in words."""
    return OWN_DATA if config.basis == "recomputed" else stand_in


def _without_number(evidence: Evidence) -> Evidence:
    """What stand-ins give, as words beside the reason: it is no test."""
    number = f"{evidence.estimate:.3g}"
    if evidence.low is not None:
        number += f" [{evidence.low:.3g}, {evidence.high:.3g}]"
    reason = f"{OTHERS_STAND_IN}, which give {number}"
    return Evidence(evidence.said, printed=evidence.printed, reason=reason)


def judgeable(
    paper: str, evidence: Mapping[str, Evidence], config: ChapterConfig
) -> dict[str, Evidence]:
    """Evidence by claim; in a replica a finding about named systems has no number, but a reason."""
    if config.basis == "recomputed":
        return dict(evidence)
    claims = stated(paper)
    is_withdrawn = (claims["kind"] == "finding") & (claims["about"] == NAMED_SYSTEMS)
    result = {}
    for name, of_claim in evidence.items():
        # What is not testable for a reason of its own keeps that reason.
        if is_withdrawn[name] and of_claim.estimate is not None:
            result[name] = _without_number(of_claim)
        else:
            result[name] = of_claim
    return result
