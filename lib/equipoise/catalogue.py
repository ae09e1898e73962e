"""Every measure, as a table: the declarations of all modules, in the order of their families, and the works cited."""

from __future__ import annotations

import re
from importlib import import_module, resources
from typing import Any

from equipoise import declare
from equipoise.declare import Measure
from equipoise.measures import attribution, orders, protocol, trees

MODULES = (
    "divergences",
    "measures.gfr",
    "measures.gfrc",
    "measures.gfrc2",
    "measures.trees",
    "measures.ranking_bias",
    "measures.rank_overlap",
    "measures.protocol",
    "measures.orders",
    "measures.attribution",
)
"""Modules that declare measures, in the order of the catalogue."""

_CONVERSATIONS = "Conversations: GFRC and GFRC2"
_PROTOCOL = "Protocol and order of conversations"
_ATTRIBUTION = "Answers: attribution to their sources"
_HIGHER, _LOWER, _NEITHER = "higher is better", "lower is better", "neither"
_CHAPTER_5 = ("thesis-ch5", "thesis")


def _declare(family: str, *rows: tuple[Any, ...]) -> list[Measure]:
    return [Measure(name, family, *rest) for name, *rest in rows]


_NOT_YET_DECLARED: tuple[Measure, ...] = (
    *_declare(
        _CONVERSATIONS,
        (
            "Expectation over a conversation tree",
            trees.expected_scores,
            "that of the measure",
            "that of the measure",
            _NEITHER,
            ("gfrc", "gfrc2"),
            r"E[M] = \sum_{\text{leaf } l} P(l)\, M(C_l), \quad"
            r" P(l) = \prod_{v \text{ on the way to } l} P(v \mid parent(v))",
        ),
    ),
    *_declare(
        _PROTOCOL,
        ("Useful turns and recovery", protocol.shares, "0 to 1", "1", _HIGHER, ("gfrc",)),
        (
            "Preference",
            orders.preference,
            "0 to 1",
            "none",
            _NEITHER,
            ("permutations",),
            r"wins(a, b) = \frac{|\{\pi : M_a(\pi) > M_b(\pi)\}|}{|\{\pi\}|}",
        ),
        ("Stability of a ranking", orders.ranking_stability, "-1 to 1", "1", _HIGHER, ("permutations",)),
    ),
    *_declare(
        _ATTRIBUTION,
        ("Precision and recall of attribution", attribution.score_answers, "0 to 1", "1", _HIGHER, _CHAPTER_5),
        ("CAS", attribution.cas, "0 to 1", "0", _LOWER, _CHAPTER_5),
        ("CAB", attribution.cab, "-1 to 1", "0", _NEITHER, _CHAPTER_5),
        ("AC", attribution.attribution_confidence, "0 to 1", "none", _NEITHER, _CHAPTER_5),
        ("Exact match", attribution.exact_match, "0 or 1", "1", _HIGHER, (*_CHAPTER_5, "rajpurkar2016")),
    ),
)


def _collected() -> tuple[Measure, ...]:
    for name in MODULES:
        import_module(f"equipoise.{name}")
    known = declare.MEASURES | {m.name: m for m in _NOT_YET_DECLARED if m.name not in declare.MEASURES}
    place = {f"equipoise.{name}": number for number, name in enumerate(MODULES)}

    def order(measure: Measure) -> int:
        module = measure.function.__module__
        return next(number for name, number in place.items() if module == name or module.startswith(f"{name}."))

    return tuple(sorted(known.values(), key=order))


MEASURES: tuple[Measure, ...] = _collected()
"""Every measure, in the order of the families."""


def references() -> dict[str, str]:
    """BibTeX entries of the works cited, by key, in the order of ``sources.bib``."""
    text = resources.files("equipoise").joinpath("sources.bib").read_text(encoding="utf-8")
    entries = [entry.strip() for entry in re.split(r"\n(?=@)", text) if entry.strip()]
    keyed = {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}
    if len(keyed) < len(entries):
        raise ValueError("sources.bib holds a key twice")
    return keyed
