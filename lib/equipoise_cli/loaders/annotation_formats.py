"""Regions of text that annotators have marked, from the exports of Label Studio and doccano."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Span:
    """A region: where it is (a part of the task, and places in it), what it quotes, and what is said of it."""

    part: int | None
    last: int | None
    start: Any
    end: Any
    quote: str | None = None
    said: list[tuple[str, str]] = field(default_factory=list)


def _values(value: Any) -> list[str]:
    """What is chosen in a control, as texts; of a path in a taxonomy its first and its last."""
    if isinstance(value, list):
        return [
            f"{one[0]}={one[-1]}"
            if isinstance(one, list) and len(one) > 1
            else str(one[0] if isinstance(one, list) else one)
            for one in value
            if one or one == 0
        ]
    return [] if value is None else [str(value)]


_CHOSEN = (
    "labels",
    "paragraphlabels",
    "hypertextlabels",
    "choices",
    "taxonomy",
    "rating",
    "number",
)


def _studio_regions(results: Iterable[Any]) -> list[Span]:
    """Regions of an annotation of Label Studio, each with all that is said of its place."""
    regions: dict[str, Span] = {}
    for one in results:
        value = one.get("value", one) if isinstance(one, dict) else {}
        if not isinstance(value, dict) or "start" not in value:
            continue
        span = Span(None, None, value["start"], value.get("end"))
        if "startOffset" in value:  # of paragraphs, whose numbers may be text
            first, last = (
                int(one) if one.isdecimal() else -1
                for one in (str(value["start"]), str(value.get("end")))
            )
            span = Span(first, last, value["startOffset"], value.get("endOffset"))
        text, place = value.get("text"), str((span.part, span.last, span.start, span.end))
        quote = text if isinstance(text, str) and one.get("type") != "textarea" else None
        if quote and place in regions and regions[place].quote not in (None, quote):
            place += quote  # of which one cannot be true
        span = regions.setdefault(place, span)
        span.quote = span.quote or quote
        control = str(one.get("from_name", ""))
        found = [given for key in _CHOSEN for given in _values(value.get(key))]
        found += _values(text) if isinstance(text, list) or one.get("type") == "textarea" else []
        span.said += [(control, given) for given in found]
    return list(regions.values())


def _merged(spans: Iterable[tuple[Any, Any, Any]]) -> list[Span]:
    """Spans of doccano, those of one place as one."""
    found: dict[tuple[Any, Any], Span] = {}
    for start, end, label in spans:
        found.setdefault((start, end), Span(None, None, start, end)).said.append(("", str(label)))
    return list(found.values())


def doccano(content: dict[str, Any]) -> dict[str, list[Span]]:
    """Annotators of a line of doccano with their spans."""
    key = next(
        key
        for key in ("label", "labels", "entities", "annotations")
        if isinstance(content.get(key), list)
    )
    by: dict[str, list[tuple[Any, Any, Any]]] = {} if key == "annotations" else {"": []}
    for one in content[key]:
        if isinstance(one, dict):
            span = (
                one.get("start_offset", one.get("start")),
                one.get("end_offset", one.get("end")),
                one.get("label"),
            )
            by.setdefault(str(one.get("user", "")), []).append(span)
        else:
            by.setdefault("", []).append(
                tuple(one) if isinstance(one, list) and len(one) == 3 else (None, None, one)
            )
    return {user: _merged(spans) for user, spans in by.items()}


def studio(content: dict[str, Any]) -> dict[str, list[Span]]:
    """Annotators of a task of Label Studio with their regions."""
    if not isinstance(content.get("data"), dict):  # JSON_MIN: what is chosen, by control
        results = [
            {"from_name": name, **one}
            for name, value in content.items()
            for one in (value if isinstance(value, list) else ())
            if isinstance(one, dict)
            and {"start", "end"} <= one.keys()
            and set(_CHOSEN) & one.keys()
        ]
        return {str(content.get("annotator", "")): _studio_regions(results)}
    found: dict[str, list[Span]] = {}
    for one in content.get("annotations") or ():
        if isinstance(one, dict) and not one.get("was_cancelled"):
            who = one.get("completed_by", "")
            name = str(who.get("email", who.get("id", "")) if isinstance(who, dict) else who)
            found[f"{name} again" if name in found else name] = _studio_regions(
                one.get("result") or ()
            )
    return found


def _is_doccano(content: dict[str, Any]) -> bool:
    spans = next(
        (
            content[key]
            for key in ("label", "labels", "entities")
            if isinstance(content.get(key), list)
        ),
        None,
    )
    old = any(
        isinstance(one, dict) and "start_offset" in one for one in content.get("annotations") or ()
    )
    return isinstance(content.get("text", content.get("data")), str) and (
        old or (spans is not None and "annotator" not in content)
    )


KNOWN = {
    "label-studio": lambda content: (
        (
            isinstance(content.get("data"), dict)
            and bool({"annotations", "predictions"} & content.keys())
        )
        or "annotation_id" in content
        or "annotator" in content
    ),
    "doccano": _is_doccano,
}
"""The formats of exports, and the marks of each."""
