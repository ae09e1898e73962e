"""Nuggets from what annotation tools export: character spans of Label Studio and doccano.

*Label Studio*: JSON (``data`` and ``annotations``) and JSON_MIN; regions of a text, of paragraphs
(``author`` and ``text``), what is chosen for a region with it. *doccano*: JSON Lines with
``label``, ``labels``, ``entities`` or ``annotations``; labels of the very same span are one
nugget's.

A task is a conversation, or, with ``turn`` in its data, one answer of the system, the user's before
it in ``user``. ``run`` and ``topic`` of the data (the ``meta`` of doccano) name it. In a text,
turns begin with a line ``### U1`` or ``### S1`` of a transcript, or with ``User:`` and
``Assistant:``, words which are not counted, or with ``U:`` and ``S:`` of FairWeb, which are; a text
without any is one answer.

A label, or what is chosen in a control, is a level (``L2``; ``2`` in a control ``level``), a group
(``large``, where one set has it; ``SIZE=large``; in a control ``SIZE``), an entity
(``entity=Tenet``, or a text in a control ``entity``), or several of them between bars. Several
groups of a set have equal shares. A table ``label,level,entity`` and the sets says it of other
labels.

Where a tool counts UTF-16 units, as both do, the quoted text tells: the reading in which every
quote is found is taken.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.attributes import CORE_COLUMNS, AttributeSet
from equipoise.declare import checked
from equipoise.files import BOM, head
from equipoise.loaders.objects import Item, first_value, read_objects, recognise
from equipoise.loaders.transcripts import run_of
from equipoise.options import Nested, Offsets, Units
from equipoise.problems import Note, Problems, listed, shown
from equipoise_cli.loaders.annotation_formats import (
    KNOWN,
    Span,
    doccano,
    studio,
    studio_problems,
)
from equipoise_cli.loaders.annotation_labels import Meaning
from equipoise_cli.loaders.chats import SPEAKERS, word_of

_MARKS = re.compile(
    r"(?mi)^(?:[^\S\n]*(?:"
    r"\#{5}[^\S\n]+(?P<topic>\S+)(?:[^\S\n]+(?P<run>\S+))?[^\S\n]*$"
    r"|\#{3}[^\S\n]+(?P<turn>[us])[0-9]+\b.*$"
    r"|(?P<speaker>user|human|assistant|system|bot|ai|agent)[^\S\n]*:)"
    r"|(?P<letter>[us])(?=:))"
)
_TEXT_KEYS = ("text", "content", "value", "utterance")
_TOPIC_KEYS = ("topic", "conversation_id", "id")
_SIDES = {"system": "system", "s": "system", "u": "user"}
"""Of authors who are others, or none, in chats."""


@dataclass(frozen=True)
class _Marked:
    """A span of an utterance: first and last place, what is noted, and how an error calls it."""

    start: int
    end: int
    row: dict[str, str]
    name: str


@dataclass
class _Utterance:
    """What one side says, and the spans there."""

    side: str
    text: str
    spans: list[_Marked] = field(default_factory=list)


@dataclass
class _Task:
    """A task as utterances of a conversation.

    ``starts`` are the places in ``text``, that of the task, at which they begin; a task that is a
    list of paragraphs has neither.
    """

    utterances: list[_Utterance]
    starts: list[int] = field(default_factory=list)
    text: str = ""

    def text_of(self, number: int | None) -> str:
        """The text that places of a span count in: of an utterance, or of the task."""
        if number is None:
            return self.text
        if 0 <= number < len(self.utterances):
            return self.utterances[number].text
        return ""  # no place of a span is in it


# --- a task apart ---------------------------------------------------------------------------------


def _side_of_mark(mark: re.Match[str]) -> str:
    sign = (mark["turn"] or mark["speaker"] or mark["letter"]).lower()
    return "user" if sign in ("u", "user", "human") else "system"


def _turn_marks(marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """The marks that open turns: of the most certain kind, and of one name for each side.

    So prose that happens to begin as a turn does opens none.
    """
    kinds = ("turn", "speaker", "letter")
    kind = next((kind for kind in kinds if any(mark[kind] for mark in marks)), "turn")
    turns = [mark for mark in marks if mark[kind]]
    name_of_side: dict[str, str] = {}
    for mark in turns:
        name_of_side.setdefault(_side_of_mark(mark), mark[kind].lower())
    return [mark for mark in turns if mark[kind].lower() in name_of_side.values()]


def _paragraphs_of(data: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The first list of objects with texts among the data of a task, if any."""
    for value in data.values():
        if not isinstance(value, list) or not value:
            continue
        if not all(isinstance(element, dict) for element in value):
            continue
        if any(not element.keys().isdisjoint(_TEXT_KEYS) for element in value):
            return value
    return None


def _text_of(data: dict[str, Any]) -> str:
    """The text of a task: under its usual names, else the longest one."""
    text = first_value(data, ("text", "data"), str)
    if text is not None:
        return text
    texts = [value for value in data.values() if isinstance(value, str)]
    return max(reversed(texts), key=len, default="")


def _task_of_paragraphs(paragraphs: list[dict[str, Any]], item: Item, problems: Problems) -> _Task:
    utterances = []
    for number, paragraph in enumerate(paragraphs):
        keys = ("author", "speaker", "role", "from")
        author = next((paragraph[key] for key in keys if key in paragraph), None)
        name = str(author).lower().strip()
        side = _SIDES.get(name) or SPEAKERS.get(name)
        if not side:
            place, problem = f"paragraph {number}", f"author {shown(author)}"
            item.wrong(problems, place, problem, "user or assistant")
        text = first_value(paragraph, _TEXT_KEYS, str) or ""
        utterances.append(_Utterance(side or "user", text))
    return _Task(utterances)


def _read_task(data: dict[str, Any], item: Item, problems: Problems) -> _Task:
    """The utterances of a task; a header in its text names it in ``data``."""
    paragraphs = _paragraphs_of(data)
    if paragraphs is not None and not isinstance(data.get("text"), str):
        return _task_of_paragraphs(paragraphs, item, problems)
    text = _text_of(data)
    if not text.strip():
        problem = f"a task with {listed(data) or 'nothing'}"
        item.wrong(problems, "", problem, "text, or a list of author and text")
    marks = list(_MARKS.finditer(text))
    headers = [mark for mark in marks if mark["topic"]]
    if headers:
        data.setdefault("topic", headers[0]["topic"])
        data.setdefault("run", headers[0]["run"] or "")
    if len(headers) > 1:
        item.wrong(problems, "", "several conversations in one text", "a task for each")
    turns = _turn_marks(marks)
    if not turns or "turn" in data:
        return _Task([_Utterance("system", text)], [0], text)
    # U: and S: of FairWeb are words of the turn, other marks are not.
    starts = [mark.start() if mark["letter"] else mark.end() for mark in turns]
    ends = [*(mark.start() for mark in turns[1:]), len(text)]
    utterances = []
    for mark, start, end in zip(turns, starts, ends, strict=True):
        utterances.append(_Utterance(_side_of_mark(mark), text[start:end]))
    return _Task(utterances, starts, text)


# --- places in texts ------------------------------------------------------------------------------


def _places_of_units(text: str, offsets: str) -> list[int]:
    """The place of the character at each unit, and of the end; -1 within a character.

    Units are characters, or 16 bits, of which an emoji has two.
    """
    if offsets == "characters" or text.isascii():
        return [*range(len(text) + 1)]
    places = []
    for place, letter in enumerate(text):
        places.append(place)
        if letter > "\uffff":
            places.append(-1)
    return [*places, len(text)]


def _words(text: str) -> list[str]:
    return text.replace("\\n", "\n").split()


def _place_of_span(text: str, span: Span, offsets: str) -> tuple[int, int] | None:
    """First and last place of a span in a text, if it has both and what it quotes stands there."""
    places = _places_of_units(text, offsets)
    if type(span.start) is not int or type(span.end) is not int:
        return None
    if not 0 <= span.start < span.end < len(places):
        return None
    start, end = places[span.start], places[span.end]
    if min(start, end) < 0:
        return None
    is_quoted = span.quote is None or _words(text[start:end]) == _words(span.quote)
    return (start, end) if is_quoted else None


def _is_quoted_exactly(text: str, span: Span, offsets: str) -> bool:
    """Whether what a span quotes stands there letter by letter."""
    place = _place_of_span(text, span, offsets)
    if place is None or span.quote is None:
        return False
    start, end = place
    return text[start:end] == span.quote.replace("\\n", "\n")


# --- tasks to conversations -----------------------------------------------------------------------


class _Reader:
    """Takes the tasks of an export into conversations."""

    def __init__(self, path: str | Path, meaning: Meaning, offsets: str, nested: str) -> None:
        self.path, self.meaning, self.offsets, self.nested = path, meaning, offsets, nested
        self.problems, self.n_left_out = Problems(), 0
        # By run and topic: the turn that each task begins with, and its utterances.
        self.conversations: dict[tuple[str, str], list[tuple[int, list[_Utterance]]]] = {}

    def add(self, item: Item, data: dict[str, Any], spans: list[Span]) -> None:
        """Take in a task and its spans."""
        task = _read_task(data, item, self.problems)
        offsets = self._offsets_of(item, task, spans)
        for span in spans:
            self._add_span(item, task, span, offsets)
        utterances = task.utterances
        for utterance in utterances:
            utterance.spans = self._without_overlaps(item, utterance.spans)
        turn = int(data["turn"]) if str(data.get("turn", "")).isdecimal() else None
        user_text = first_value(data, ("user", "utterance", "question"), str)
        if turn is not None and user_text:
            utterances = [_Utterance("user", user_text), *utterances]
        topic = next(
            (data[key] for key in _TOPIC_KEYS if data.get(key) not in (None, "")), item.number
        )
        run = data.get("run") or data.get("model") or run_of(self.path)
        key = word_of(run), word_of(topic)
        tasks = self.conversations.setdefault(key, [])
        is_turn_there = any(number == turn for number, _ in tasks)
        if tasks and (turn is None or is_turn_there):
            problem = f"conversation {key[1]} of {key[0]} again"
            item.wrong(self.problems, "", problem, "each once, or turn in its data")
        tasks.append((turn or 1, utterances))

    def _add_span(self, item: Item, task: _Task, span: Span, offsets: str) -> None:
        """Put a span and what its labels mean into its utterance, or tell what is wrong."""
        if span.start is None and span.first_part is None:
            problem = f"label {shown(span.labels[0][1])} of no place"
            item.wrong(self.problems, _place_in_tool(item, span), problem, "start, end and label")
            return
        quote = f" {shown(span.quote)}" if span.quote else ""
        where = f"span {shown(span.start)[1:-1]}-{shown(span.end)[1:-1]}{quote}"
        where = f"{_place_in_tool(item, span)}, {where}".removeprefix(", ")
        place = _place_of_span(task.text_of(span.first_part), span, offsets)
        if span.first_part != span.last_part:
            expected = "a span of one turn whose text is what it quotes"
            item.wrong(self.problems, where, "more than one turn", expected)
            return
        if place is None:
            problem = f"where the text has {shown(self._text_at(task, span, offsets))}"
            expected = "a span of one turn whose text is what it quotes"
            item.wrong(self.problems, where, problem, expected)
            return
        number, start, end = _place_in_part(task, span, *place)
        utterance = task.utterances[number]
        text = utterance.text[max(start, 0) : end]
        is_inside = start >= 0 and end <= len(utterance.text)
        if utterance.side == "user" or not is_inside or not text.strip():
            expected = "annotations in system turns only"
            item.wrong(self.problems, where, "no words of one answer", expected)
            return
        try:
            row = self.meaning.row(self.meaning.of(span.labels))
        except ValueError as error:
            labels = listed((label for _, label in span.labels), 4) or "none"
            expected = (
                "a label such as L2, a group of each set, or a line for the label in --labels"
            )
            item.wrong(self.problems, where, f"{error} (labels: {labels})", expected)
            return
        start += len(text) - len(text.lstrip())
        utterance.spans.append(_Marked(start, start + len(text.strip()), row, where))

    def _without_overlaps(self, item: Item, spans: list[_Marked]) -> list[_Marked]:
        """Spans that share no letter: of those within one another the outermost or innermost."""
        remaining: list[_Marked] = []
        open_spans: list[_Marked] = []  # each within the one before
        for span in sorted(spans, key=lambda span: (span.start, -span.end)):
            while open_spans and open_spans[-1].end <= span.start:
                open_spans.pop()
            if open_spans:
                outer = open_spans[-1]
                is_nested = span.end <= outer.end
                if self.nested == "refuse" or not is_nested:
                    relation = "within" if is_nested else "over the end of"
                    expected = "spans that share no letter"
                    if is_nested:
                        expected += ", or --nested outermost or innermost"
                    item.wrong(self.problems, span.name, f"{relation} {outer.name}", expected)
                elif self.nested == "innermost" and outer in remaining:
                    remaining.remove(outer)
                self.n_left_out += 1
            if not open_spans or self.nested != "outermost":
                remaining.append(span)
            open_spans.append(span)
        return remaining

    def _text_at(self, task: _Task, span: Span, offsets: str) -> str:
        """What stands in the place of a span, whatever it quotes."""
        text = task.text_of(span.first_part)
        place = _place_of_span(text, Span(None, None, span.start, span.end), offsets)
        return text[slice(*place)] if place else ""

    def _offsets_of(self, item: Item, task: _Task, spans: list[Span]) -> str:
        """How the places of a task are counted: as said, or so that every quote is found.

        Where both ways fit, as the tools do.
        """
        texts = [task.text_of(span.first_part) for span in spans]
        if self.offsets != "auto":
            return self.offsets
        if all(max(text, default="") <= "\uffff" for text in texts):
            return "characters"
        pairs = list(zip(texts, spans, strict=True))
        n_fitting, n_exact = {}, {}
        for offsets in ("characters", "utf-16"):
            places = [_place_of_span(text, span, offsets) for text, span in pairs]
            n_fitting[offsets] = len(pairs) - places.count(None)
            n_exact[offsets] = sum(_is_quoted_exactly(text, span, offsets) for text, span in pairs)
        fitting = [offsets for offsets, count in n_fitting.items() if count == len(pairs)]
        exact = [offsets for offsets in fitting if n_exact[offsets] == len(pairs)]
        if len(fitting) == 2 and not exact and _ways_differ(pairs):
            problem = (
                "letters beyond 16 bits (such as emoji) "
                "and no quoted text that tells how they count"
            )
            expected = "--offsets utf-16 (as doccano and Label Studio count), or characters"
            item.wrong(self.problems, "", problem, expected)
        if exact or fitting:
            return (exact or fitting)[-1]
        return "characters" if n_fitting["characters"] > n_fitting["utf-16"] else "utf-16"

    def _utterances(self) -> Iterator[tuple[str, str, list[_Utterance]]]:
        """Run, topic and utterances of each conversation, its turns in their order."""
        for (run, topic), tasks in self.conversations.items():
            utterances: list[_Utterance] = []
            for _, utterances_of_task in sorted(tasks, key=lambda task: task[0]):
                utterances += utterances_of_task
            yield run, topic, utterances

    def turns(self, units: str) -> pd.DataFrame:
        """Turn boundaries: run, topic, turn, speaker, and first and last word, start and end."""
        rows = []
        for run, topic, utterances in self._utterances():
            rows += [{"run": run, "topic": topic, **turn} for turn in _turns_of(utterances, units)]
        return pd.DataFrame(rows, columns=["run", "topic", "turn", "speaker", "start", "end"])

    def rows(self, units: str) -> list[dict[str, str]]:
        """Rows of a nugget table, positions counted in the whole conversation."""
        rows: list[dict[str, str]] = []
        for run, topic, utterances in self._utterances():
            for number, nuggets in enumerate(_nuggets_by_turn(utterances, units), start=1):
                turn_key = {"run": run, "topic": topic, "turn": str(number)}
                # A turn without nuggets is there all the same.
                rows += [turn_key | nugget for nugget in nuggets or [{"level": "0"}]]
        return rows


def _place_in_part(task: _Task, span: Span, start: int, end: int) -> tuple[int, int, int]:
    """The number of the utterance that a span is in, and its first and last place there."""
    if span.first_part is not None:
        return span.first_part, start, end
    number = 0
    for later, part_start in enumerate(task.starts):
        if part_start <= start:
            number = later
    return number, start - task.starts[number], end - task.starts[number]


def _ways_differ(pairs: list[tuple[str, Span]]) -> bool:
    """Whether counting characters and units of 16 bits gives different places of any span."""
    for text, span in pairs:
        if _place_of_span(text, span, "characters") != _place_of_span(text, span, "utf-16"):
            return True
    return False


def _unit(units: str) -> re.Pattern[str]:
    """What positions count: words, or characters other than white space."""
    return re.compile(r"\S" if units.endswith("character") else r"\S+")


def _turns_of(utterances: list[_Utterance], units: str) -> list[dict[str, Any]]:
    """Boundaries of the turns of a conversation, as `turn_frame` has them."""
    turns: list[dict[str, Any]] = []
    offset = n_answers = 0
    for side, utterances_in_a_row in groupby(utterances, attrgetter("side")):
        text = "\n".join(utterance.text for utterance in utterances_in_a_row)
        number = n_answers + 1
        n_answers += side == "system"
        if side == "user" and units.startswith("system"):
            continue  # nothing of it is counted
        end = offset + len(_unit(units).findall(text))
        turns.append({"turn": number, "speaker": side, "start": offset + 1, "end": end})
        offset = end
    return turns


def _place_in_tool(item: Item, span: Span) -> str:
    """Where a span is, by the ids that the annotation tool shows."""
    ids = {
        "project": item.content.get("project"),
        "task": item.content.get("id"),
        "annotation": span.annotation,
        "region": span.region,
    }
    return ", ".join(f"{name} {shown(str(id_))[1:-1]}" for name, id_ in ids.items() if id_)


def _nuggets_by_turn(utterances: list[_Utterance], units: str) -> list[list[dict[str, str]]]:
    """The nuggets of each system turn of a conversation; what one side says in a row is a turn."""
    unit = _unit(units)
    turns: list[list[dict[str, str]]] = []
    offset, side_before = 0, ""
    for utterance in utterances:
        if utterance.side == "system" and side_before != "system":
            turns.append([])
        side_before = utterance.side
        if utterance.side == "user" and units.startswith("system"):
            continue
        places = [match.span() for match in unit.finditer(utterance.text)]
        for span in utterance.spans:
            inside = []
            for number, (unit_start, unit_end) in enumerate(places, start=offset + 1):
                if unit_start < span.end and unit_end > span.start:
                    inside.append(number)
            turns[-1].append({"start": str(inside[0]), "end": str(inside[-1]), **span.row})
        offset += len(places)
    return turns


# --- an export ------------------------------------------------------------------------------------


def is_export(path: Path) -> bool:
    """Whether a file begins as JSON does."""
    return head(path).removeprefix(BOM).lstrip().startswith((b"{", b"["))


def is_annotated(path: Path) -> bool:
    """Whether a file is an export, and no nugget table in JSON Lines."""
    if not is_export(path):
        return False
    items = read_objects(path)
    return any(is_task(item.content) for item in items[:1] for is_task in KNOWN.values())


def _data_of(content: dict[str, Any]) -> dict[str, Any]:
    """The data of a task, with what doccano calls meta among them."""
    data = content.get("data")
    data = dict(data) if isinstance(data, dict) else {**content}
    if isinstance(data.get("meta"), dict):
        data |= data["meta"]
    return data


def _chosen_annotator(path: str | Path, names: list[str], annotator: str | None) -> str:
    """The annotator that is named, or the only one."""
    if annotator is None and len(names) == 1:
        return names[0]
    if annotator is not None and annotator in names:
        return annotator
    expected = "wanted one of them: --annotator" if names else "predictions are none"
    raise ValueError(f"{path} has annotations of {listed(names) or 'nobody'}; {expected}")


@dataclass(frozen=True)
class Annotated:
    """What an annotator has said: the frame of a nugget table, and the turns of conversations."""

    nuggets: pd.DataFrame
    turns: pd.DataFrame


@dataclass(frozen=True)
class _Export:
    """The tasks of an export with the spans of each annotator."""

    path: str | Path
    tasks: list[tuple[Item, dict[str, list[Span]]]]

    @property
    def annotators(self) -> list[str]:
        """Names of the annotators, as the file has them."""
        return list(dict.fromkeys(name for _, spans_of in self.tasks for name in spans_of))

    def annotated_by(self, name: str, reader: _Reader, units: str) -> Annotated:
        """What one of them has said; tasks without an annotation of theirs are counted."""
        n_without = 0
        for item, spans_of in self.tasks:
            if name in spans_of:
                reader.add(item, _data_of(item.content), spans_of[name])
            else:
                n_without += 1
        by = f" by {name}" if len(self.annotators) > 1 else ""
        if n_without:
            note = f"{n_without} of {len(self.tasks)} tasks are not annotated{by} and left out"
            warnings.warn(f"{self.path}: {note}", Note, stacklevel=4)
        if reader.meaning.unknown:
            note = "labels that name neither a level nor a group (see --labels)"
            unknown = listed(sorted(reader.meaning.unknown))
            warnings.warn(f"{self.path}: {note}: {unknown}", Note, stacklevel=4)
        reader.problems.refuse()
        if reader.n_left_out:
            note = f"{reader.n_left_out} spans that are not the {reader.nested} are left out{by}"
            warnings.warn(f"{self.path}: {note}", Note, stacklevel=4)
        columns = [*CORE_COLUMNS, "entity", *reader.meaning.names]
        frame = pd.DataFrame(reader.rows(units), columns=columns, dtype="str").fillna("")
        if not frame["entity"].ne("").any():
            frame = frame.drop(columns="entity")
        return Annotated(frame, reader.turns(units))


def _read_tasks(path: str | Path, form: str) -> _Export:
    items = read_objects(path)
    if form == "auto":
        form = recognise(items, KNOWN, ("transcript",))
    spans_of_task = studio if form == "label-studio" else doccano
    problems = Problems()
    tasks = []
    for item in items:
        wrong_parts = list(studio_problems(item.content)) if form == "label-studio" else []
        for place, problem, expected in wrong_parts:
            item.wrong(problems, place, problem, expected)
        if wrong_parts:
            continue
        if KNOWN[form](item.content):
            # A line of a file that is laid out for reading tells less than the id of the task.
            if form == "label-studio" and "id" in item.content:
                item = replace(item, line=None)
            tasks.append((item, spans_of_task(item.content)))
        else:
            problem = f"an object with {listed(item.content) or 'nothing'}"
            item.wrong(problems, "", problem, f"a task of {form}")
    problems.refuse()
    return _Export(path, tasks)


@checked
def read_annotators(
    path: str | Path,
    attributes: Mapping[str, AttributeSet],
    form: str = "auto",
    *,
    labels: pd.DataFrame | None = None,
    units: Units = "word",
    offsets: Offsets = "auto",
    nested: Nested = "refuse",
) -> dict[str, Annotated]:
    """What each annotator of an export has said, by name; arguments as in `read_export`."""
    export = _read_tasks(path, form)
    annotated = {}
    for name in export.annotators:
        reader = _Reader(path, Meaning(attributes, labels), offsets, nested)
        annotated[name] = export.annotated_by(name, reader, units)
    return annotated


@checked
def read_export(
    path: str | Path,
    attributes: Mapping[str, AttributeSet],
    form: str = "auto",
    *,
    labels: pd.DataFrame | None = None,
    annotator: str | None = None,
    units: Units = "word",
    offsets: Offsets = "auto",
    nested: Nested = "refuse",
) -> Annotated:
    """The frame of a nugget table from an export, all fields text, and the turns.

    ``form``: label-studio, doccano, or auto. ``labels``: what labels mean, columns label, level,
    entity and the sets. ``annotator``: whose annotations, where several have annotated; their names
    are those of the file. Tasks that this annotator has not annotated are left out and counted.
    """
    export = _read_tasks(path, form)
    chosen = _chosen_annotator(path, export.annotators, annotator)
    reader = _Reader(path, Meaning(attributes, labels), offsets, nested)
    return export.annotated_by(chosen, reader, units)
