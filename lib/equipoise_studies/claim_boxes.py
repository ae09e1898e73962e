"""Claims as a notebook shows them: those that cannot be tested share a box for each reason."""

from __future__ import annotations

import html
from collections.abc import Mapping

from equipoise_compendium.claims import Evidence, stated
from equipoise_compendium.report import Report
from equipoise_compendium.shown import Shown, markdown_cell, verdict_label
from equipoise_studies.named_systems import OTHERS_STAND_IN

NOT_TESTABLE = "not testable"


def judged_claims(
    report: Report, paper: str, evidence: Mapping[str, Evidence], data: str = ""
) -> list[Shown]:
    """Judge claims of a paper; the boxes of those that were tested, then one for each reason.

    ``evidence``: by claim, as `equipoise_studies.named_systems.judgeable` gives it. ``data``: as of
    `Report.claim`. A reason that one claim alone has gives no box but the claim's own.
    """
    claims_by_reason: dict[str, list[str]] = {}
    for name, of_claim in evidence.items():
        if of_claim.estimate is None:
            claims_by_reason.setdefault(_reason(of_claim), []).append(name)

    boxes = []
    reasons = []
    for name, of_claim in evidence.items():
        shown = report.claim(f"{paper}/{name}", of_claim, data)
        reason = _reason(of_claim)
        if of_claim.estimate is not None or len(claims_by_reason[reason]) == 1:
            boxes.append(shown)
        elif reason not in reasons:
            reasons.append(reason)
    for reason in reasons:
        untested = {name: evidence[name] for name in claims_by_reason[reason]}
        boxes.append(_box(paper, untested, reason))
    return boxes


def _reason(evidence: Evidence) -> str:
    """Why a claim cannot be tested, without the number that stand-ins give."""
    if evidence.reason.startswith(OTHERS_STAND_IN):
        return OTHERS_STAND_IN
    return evidence.reason


def _box(paper: str, evidence: Mapping[str, Evidence], reason: str) -> Shown:
    """Claims that cannot be tested, in one box: how many and why, and behind it what they say."""
    claims = stated(paper)
    title = f"{len(evidence)} claims, each because {reason}."
    page, markdown = "", ""
    for name, of_claim in evidence.items():
        claim = claims.loc[name]
        words = f"“{claim['quote']}” ({claim['place']})" if claim["quote"] else str(claim["place"])
        given_instead = of_claim.reason.removeprefix(reason).strip(", ")
        words = "; ".join(filter(None, [words, given_instead]))
        page += f"<li><b>{html.escape(claim['statement'])}</b><br>{html.escape(words)}</li>"
        markdown += f"\n- {markdown_cell(claim['statement'])} {markdown_cell(words)}"
    page = (
        f'<div class="claim not-testable"><p>{verdict_label(NOT_TESTABLE)} {html.escape(title)}</p>'
        f"<details><summary>The claims, and the paper’s words</summary><ul>{page}</ul></details>"
        "</div>"
    )
    label = NOT_TESTABLE.capitalize()
    return Shown.text(f"{label}: {title}", f"**{label}:** {markdown_cell(title)}\n{markdown}", page)
