"""The number of a claim as a small drawing: an interval on a line, and the bound it is held to."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Mapping
from typing import Any

from equipoise_compendium.claims import (
    Allowed,
    criterion_in_words,
    deciding_ends,
    evidence_of,
    interval_in_words,
)
from equipoise_compendium.looks import COLOURS, GREY

WIDTH, HEIGHT = 240, 24
"""Pixels of a mark."""
LEGEND = (
    "On each line: the disc is the estimate, the bar its interval, the ring what is printed; the "
    "upright line is the bound, and dashed beyond it lies what would contradict the claim."
)
"""What the parts of a mark are."""
_MARGIN = 12
_BLUE, _BROWN = COLOURS[:2]


def mark(claim: Mapping[str, Any]) -> str:
    """An image of a claim's number on a line; empty where nothing was computed.

    The thick bar is the interval that the verdict rests on, the disc the estimate, the ring what is
    printed; the upright line is the bound, and beyond it, dashed, lies what contradicts the claim.
    """
    evidence = evidence_of(claim)
    if evidence.estimate is None:
        return ""
    criterion = str(claim["contradicted_if"])
    low, high, _ = deciding_ends(evidence, criterion)
    allowed = Allowed.parse(criterion)
    edges = [edge for edge in (allowed.low, allowed.high) if math.isfinite(edge)]
    shown = [low, high, float(evidence.estimate), *edges]
    if evidence.printed is not None:
        shown.append(float(evidence.printed))
    least = min(shown)
    span = max(shown) - least or 1.0

    def place(value: float) -> float:
        return round(_MARGIN + (WIDTH - 2 * _MARGIN) * (value - least) / span, 1)

    middle = HEIGHT // 2
    parts = [_line(0, WIDTH, middle, GREY, 1)]
    if allowed.low in edges:
        parts.append(_line(0, place(allowed.low), middle, _BROWN, 2, dashes="3 3"))
    if allowed.high in edges:
        parts.append(_line(place(allowed.high), WIDTH, middle, _BROWN, 2, dashes="3 3"))
    for edge in edges:
        x = place(edge)
        parts.append(f'<path d="M{x} 2V{HEIGHT - 2}" stroke="{_BROWN}" stroke-width="2"/>')
    if high > low:
        parts.append(_line(place(low), place(high), middle, _BLUE, 6))
    disc = f'<circle cx="{place(float(evidence.estimate))}" cy="{middle}" r="6" fill="{_BLUE}"/>'
    parts.append(disc)
    if evidence.printed is not None:
        x = place(float(evidence.printed))
        parts.append(
            f'<circle cx="{x}" cy="{middle}" r="8" fill="none" stroke="{GREY}" stroke-width="2"/>'
        )
    size = f'width="{WIDTH}" height="{HEIGHT}"'
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>'
    encoded = base64.b64encode(drawing.encode()).decode()
    alt = html.escape(f"{interval_in_words(claim)} on a line; {criterion_in_words(claim)}")
    return f'<img class="mark" src="data:image/svg+xml;base64,{encoded}" alt="{alt}" {size}>'


def _line(start: float, end: float, y: int, colour: str, width: int, dashes: str = "") -> str:
    """A level line of a drawing."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<path d="M{start} {y}H{end}" stroke="{colour}" stroke-width="{width}"{dashed}/>'
