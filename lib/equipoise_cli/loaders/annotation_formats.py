"""Regions of text that annotators have marked, from the exports of Label Studio and doccano."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from equipoise.loaders.objects import fields_of, first_value
from equipoise.problems import shown


@dataclass
class Span:
    """A region: where it is, what it quotes, and what is said of it.

    ``first_part`` and ``last_part`` number the parts of the task that it reaches over, None where a
    task is one text; ``start`` and ``end`` are places in them, as the file has them. ``region``
    and ``annotation`` are the tool's ids. ``labels``: pairs of a control and what was chosen there.
    """

    first_part: int | None
    last_part: int | None
    start: Any
    end: Any
    quote: str | None = None
    region: str = ""
    annotation: str = ""
    labels: list[tuple[str, str]] = field(default_factory=list)


# --- Label Studio ---------------------------------------------------------------------------------

_CHOICES = (
    "labels",
    "paragraphlabels",
    "hypertextlabels",
    "choices",
    "taxonomy",
    "rating",
    "number",
)


_LABELS = _CHOICES[:3]
"""Controls whose results are regions of the text."""


def _choice(value: Any) -> str:
    """What was chosen, as a text; of a path in a taxonomy its first and its last."""
    if not isinstance(value, list):
        return str(value)
    return f"{value[0]}={value[-1]}" if len(value) > 1 else str(value[0])


def _choices(value: Any) -> list[str]:
    """What is chosen in a control, as texts."""
    if value is None:
        return []
    if not isinstance(value, list):
        return [str(value)]
    return [_choice(element) for element in value if element or element == 0]


def _number_of_part(value: Any) -> int:
    """The number of a paragraph, which may be text; -1 of what is none."""
    return int(value) if str(value).isdecimal() else -1


def _studio_span(value: dict[str, Any]) -> Span:
    if "startOffset" not in value:
        return Span(None, None, value["start"], value.get("end"))
    first_part, last_part = _number_of_part(value["start"]), _number_of_part(value.get("end"))
    return Span(first_part, last_part, value["startOffset"], value.get("endOffset"))


def _studio_spans(results: Iterable[Any]) -> list[Span]:
    """Regions of an annotation of Label Studio, each with all that is said of its place."""
    spans: dict[str, Span] = {}
    for result in results:
        value = fields_of(result).get("value", result)
        if not isinstance(value, dict) or "start" not in value:
            continue
        span = _studio_span(value)
        text = value.get("text")
        is_comment = result.get("type") == "textarea"
        quote = text if isinstance(text, str) and not is_comment else None
        place = str((span.first_part, span.last_part, span.start, span.end))
        if quote and place in spans and spans[place].quote not in (None, quote):
            place += quote  # one of the two quotes is wrong: they stay apart
        span = spans.setdefault(place, span)
        span.region = span.region or str(fields_of(result).get("id", ""))
        span.quote = span.quote or quote
        chosen = [choice for key in _CHOICES for choice in _choices(value.get(key))]
        if isinstance(text, list) or is_comment:
            chosen += _choices(text)
        control = str(result.get("from_name", ""))
        span.labels += [(control, choice) for choice in chosen]
    return list(spans.values())


def _results_of_json_min(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of a task in JSON_MIN, which has what is chosen by control."""
    results = []
    for control, value in content.items():
        for result in value if isinstance(value, list) else ():
            is_region = isinstance(result, dict) and {"start", "end"} <= result.keys()
            if is_region and not result.keys().isdisjoint(_CHOICES):
                results.append({"from_name": control, **result})
    return results


def studio(content: dict[str, Any]) -> dict[str, list[Span]]:
    """Annotators of a task of Label Studio with their regions."""
    if not isinstance(content.get("data"), dict):
        spans = _studio_spans(_results_of_json_min(content))
        return {str(content.get("annotator", "")): spans}
    spans_of: dict[str, list[Span]] = {}
    for annotation in content.get("annotations") or ():
        if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
            continue
        annotator = annotation.get("completed_by", "")
        if isinstance(annotator, dict):
            annotator = annotator.get("email", annotator.get("id", ""))
        name = str(annotator)
        if name in spans_of:
            name = f"{name} again"
        spans_of[name] = _studio_spans(annotation.get("result") or ())
        for span in spans_of[name]:
            span.annotation = str(annotation.get("id", ""))
    return spans_of


def _expected_of_result(result: Any) -> str:
    """What is wanted of a result of Label Studio that is not what it should be, or nothing."""
    value = fields_of(result).get("value", result)  # a relation has none
    if not isinstance(value, dict):
        return "an object, and its value one too"
    kind = result.get("type")
    if kind not in _LABELS:
        return ""
    labels = value.get(kind)
    is_list = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    if "start" in value and "end" in value and is_list:
        return ""
    return f"start, end and {kind}, a list of texts"


def studio_problems(content: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Where a task of Label Studio is of another form than its exports: place, found, wanted."""
    annotations = content.get("annotations")
    if not isinstance(content.get("data"), dict) or annotations is None:
        return
    if not isinstance(annotations, list):
        yield "annotations", shown(annotations), "a list of annotations"
        return
    for number, annotation in enumerate(annotations, start=1):
        fields = fields_of(annotation)
        place = f"annotation {fields.get('id', number)}"
        results = fields.get("result")
        if not isinstance(results, (list, type(None))) or not isinstance(annotation, dict):
            yield place, shown(annotation), "an object with result, a list"
            continue
        for place_of_result, result in enumerate(results or (), start=1):
            expected = _expected_of_result(result)
            if expected:
                yield f"{place}, result {place_of_result}", shown(result), expected


def _is_studio(content: dict[str, Any]) -> bool:
    is_task = not content.keys().isdisjoint({"annotations", "predictions"})
    if isinstance(content.get("data"), dict) and is_task:
        return True
    return "annotation_id" in content or "annotator" in content


# --- doccano --------------------------------------------------------------------------------------


def _merged(marks: Iterable[tuple[Any, Any, Any]]) -> list[Span]:
    """Spans of start, end and label; those of one place are one."""
    spans: dict[tuple[Any, Any], Span] = {}
    for start, end, label in marks:
        span = spans.setdefault((start, end), Span(None, None, start, end))
        span.labels.append(("", str(label)))
    return list(spans.values())


def _doccano_mark(label: Any) -> tuple[Any, Any, Any]:
    """Start, end and label of an object, a list of the three, or a label of the text alone."""
    if isinstance(label, dict):
        start = label.get("start_offset", label.get("start"))
        end = label.get("end_offset", label.get("end"))
        return start, end, label.get("label")
    if isinstance(label, list) and len(label) == 3:
        start, end, name = label
        return start, end, name
    return None, None, label


def doccano(content: dict[str, Any]) -> dict[str, list[Span]]:
    """Annotators of a line of doccano with their spans."""
    names = ("label", "labels", "entities", "annotations")
    key = next(name for name in names if isinstance(content.get(name), list))
    marks_of: dict[str, list[tuple[Any, Any, Any]]] = {}
    if key != "annotations":
        marks_of[""] = []  # a line without labels is annotated all the same
    for label in content[key]:
        user = str(fields_of(label).get("user", ""))
        marks_of.setdefault(user, []).append(_doccano_mark(label))
    return {user: _merged(marks) for user, marks in marks_of.items()}


def _is_doccano(content: dict[str, Any]) -> bool:
    if not isinstance(content.get("text", content.get("data")), str):
        return False
    annotations = content.get("annotations") or ()
    if any(isinstance(mark, dict) and "start_offset" in mark for mark in annotations):
        return True
    has_labels = first_value(content, ("label", "labels", "entities"), list) is not None
    return has_labels and "annotator" not in content


KNOWN = {"label-studio": _is_studio, "doccano": _is_doccano}
"""The formats of exports, and the marks of each."""
