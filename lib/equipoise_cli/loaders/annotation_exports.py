"""Nuggets from what annotation tools export: character spans of Label Studio and doccano, positions counted.

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
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.attributes import CORE_COLUMNS, AttributeSet
from equipoise.declare import checked
from equipoise.files import BOM, head
from equipoise.loaders.objects import Item, read_objects, recognise
from equipoise.loaders.transcripts import run_of
from equipoise.options import Offsets, Units
from equipoise.problems import Note, Problems, listed, shown
from equipoise_cli.loaders.annotation_formats import KNOWN, Span, doccano, studio
from equipoise_cli.loaders.annotation_labels import Meaning
from equipoise_cli.loaders.chats import SPEAKERS, word_of

_MARKS = re.compile(
    r"(?mi)^(?:[^\S\n]*(?:\#{5}[^\S\n]+(?P<topic>\S+)(?:[^\S\n]+(?P<run>\S+))?[^\S\n]*$"
    r"|\#{3}[^\S\n]+(?P<turn>[us])[0-9]+\b.*$|(?P<said>user|human|assistant|system|bot|ai|agent)[^\S\n]*:)|(?P<kept>[us])(?=:))"
)


@dataclass
class _Part:
    """What one side says, and the spans there: first and last place, and what is noted."""

    side: str
    text: str
    spans: list[tuple[int, int, dict[str, str]]] = field(default_factory=list)


def _side(mark: re.Match[str]) -> str:
    sign = (mark["turn"] or mark["said"] or mark["kept"]).lower()
    return "user" if sign in ("u", "user", "human") else "system"


def _turn_marks(marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """The marks that open turns: of the most certain kind, and of one name for each side, so that prose opens none."""
    kind = next(
        (kind for kind in ("turn", "said", "kept") if any(mark[kind] for mark in marks)), "turn"
    )
    turns, names = [mark for mark in marks if mark[kind]], dict[str, str]()
    for mark in turns:
        names.setdefault(_side(mark), mark[kind].lower())
    return [mark for mark in turns if mark[kind].lower() in names.values()]


def _parts(
    data: dict[str, Any], item: Item, problems: Problems
) -> tuple[list[_Part], list[int], str]:
    """The parts of a task, where each begins in its text, and that text."""
    lists = [
        value
        for value in data.values()
        if isinstance(value, list) and value and all(isinstance(x, dict) for x in value)
    ]
    lists = [
        value
        for value in lists
        if any({"text", "content", "value", "utterance"} & one.keys() for one in value)
    ]
    texts = [value for key in ("text", "data") if isinstance(value := data.get(key), str)]
    texts = (
        texts or sorted((value for value in data.values() if isinstance(value, str)), key=len)[-1:]
    )
    if lists and not isinstance(data.get("text"), str):
        parts = []
        for number, one in enumerate(lists[0]):
            who = next(
                (one[key] for key in ("author", "speaker", "role", "from") if key in one), None
            )
            text = next(
                (
                    one[key]
                    for key in ("text", "content", "value", "utterance")
                    if isinstance(one.get(key), str)
                ),
                "",
            )
            side = SPEAKERS.get(str(who).lower().strip())
            side = {"system": "system", "s": "system", "u": "user"}.get(
                str(who).lower().strip(), side
            )
            if not side:
                item.wrong(
                    problems, f"paragraph {number}", f"author {shown(who)}", "user or assistant"
                )
            parts.append(_Part(side or "user", text))
        return parts, [], ""
    text = texts[0] if texts else ""
    if not text.strip():
        item.wrong(
            problems,
            "",
            f"a task with {listed(data) or 'nothing'}",
            "text, or a list of author and text",
        )
    marks = list(_MARKS.finditer(text))
    if header := next((mark for mark in marks if mark["topic"]), None):
        data.setdefault("topic", header["topic"])
        data.setdefault("run", header["run"] or "")
    if sum(mark["topic"] is not None for mark in marks) > 1:
        item.wrong(problems, "", "several conversations in one text", "a task for each")
    turns = _turn_marks(marks)
    if not turns or "turn" in data:
        return [_Part("system", text)], [0], text
    parts, begins = [], []
    for mark, end in zip(turns, [*(later.start() for later in turns[1:]), len(text)], strict=True):
        begins.append(mark.start() if mark["kept"] else mark.end())
        parts.append(_Part(_side(mark), text[begins[-1] : end]))
    return parts, begins, text


def _counted(text: str, offsets: str) -> list[int]:
    """The place of each character, and of the end, by characters or by UTF-16 units; -1 within a character."""
    if offsets == "characters" or text.isascii():
        return [*range(len(text) + 1)]
    return [
        place
        for place, letter in enumerate(text)
        for place in ([place, -1] if letter > "\uffff" else [place])
    ] + [len(text)]


def _plain(text: str) -> list[str]:
    return text.replace("\\n", "\n").split()


def _found(text: str, span: Span, offsets: str) -> tuple[int, int] | None:
    """First and last place of a span in a text, if it has both and what it quotes stands there."""
    places = _counted(text, offsets)
    if (
        type(span.start) is not int
        or type(span.end) is not int
        or not 0 <= span.start < span.end < len(places)
    ):
        return None
    start, end = places[span.start], places[span.end]
    quoted = span.quote is None or _plain(text[start:end]) == _plain(span.quote)
    return (start, end) if quoted and min(start, end) >= 0 else None


def _quoted(text: str, span: Span, offsets: str) -> bool:
    """Whether what a span quotes stands there letter by letter."""
    at = _found(text, span, offsets)
    return (
        at is not None
        and span.quote is not None
        and text[at[0] : at[1]] == span.quote.replace("\\n", "\n")
    )


class _Reader:
    """Takes the tasks of an export into conversations."""

    def __init__(self, path: str | Path, meaning: Meaning, offsets: str) -> None:
        self.path, self.meaning, self.offsets = path, meaning, offsets
        self.problems = Problems()
        self.made: dict[tuple[str, str], list[tuple[int, list[_Part]]]] = {}

    def add(self, item: Item, data: dict[str, Any], spans: list[Span]) -> None:
        parts, begins, text = _parts(data, item, self.problems)
        texts = {None: text} | {number: part.text for number, part in enumerate(parts)}
        reading = self.reading(item, [(texts.get(span.part, ""), span) for span in spans])
        for span in spans:
            quoted, where = f" {shown(span.quote)}" if span.quote else "", texts.get(span.part, "")
            if span.start is None and span.part is None:
                item.wrong(
                    self.problems,
                    "",
                    f"label {shown(span.said[0][1])} of no place",
                    "start, end and label",
                )
                continue
            wrong = f"span {shown(span.start)[1:-1]}-{shown(span.end)[1:-1]}{quoted}"
            if (at := _found(where, span, reading)) is None or span.part != span.last:
                stood = _found(where, Span(None, None, span.start, span.end), reading)
                stands = where[slice(*stood)] if stood else ""
                said = (
                    "more than one turn"
                    if span.part != span.last
                    else f"where the text has {shown(stands)}"
                )
                item.wrong(
                    self.problems, wrong, said, "a span of one turn whose text is what it quotes"
                )
                continue
            if span.part is None:
                number = max((n for n, begin in enumerate(begins) if begin <= at[0]), default=0)
                at = (at[0] - begins[number], at[1] - begins[number])
            else:
                number = span.part
            part = parts[number]
            inner = part.text[max(at[0], 0) : at[1]]
            if part.side == "user" or at[0] < 0 or at[1] > len(part.text) or not inner.strip():
                item.wrong(
                    self.problems,
                    wrong,
                    "no words of one answer",
                    "annotations in system turns only",
                )
                continue
            try:
                row = self.meaning.row(self.meaning.of(span.said))
            except ValueError as error:
                labels = listed((label for _, label in span.said), 4) or "none"
                wanted = (
                    "a label such as L2, a group of each set, or a line for the label in --labels"
                )
                item.wrong(self.problems, wrong, f"{error} (labels: {labels})", wanted)
                continue
            first = at[0] + len(inner) - len(inner.lstrip())
            part.spans.append((first, first + len(inner.strip()), row))
        user = next(
            (
                data[key]
                for key in ("user", "utterance", "question")
                if isinstance(data.get(key), str)
            ),
            "",
        )
        turn = int(data["turn"]) if str(data.get("turn", "")).isdecimal() else None
        if turn is not None:
            parts = [*([_Part("user", user)] if user else []), *parts]
        name = next(
            (
                data[key]
                for key in ("topic", "conversation_id", "id")
                if data.get(key) not in (None, "")
            ),
            item.number,
        )
        key = word_of(data.get("run") or data.get("model") or run_of(self.path)), word_of(name)
        held = self.made.setdefault(key, [])
        if held and (turn is None or any(number == turn for number, _ in held)):
            item.wrong(
                self.problems,
                "",
                f"conversation {key[1]} of {key[0]} again",
                "each once, or turn in its data",
            )
        held.append((turn or 1, parts))

    def reading(self, item: Item, spans: list[tuple[str, Span]]) -> str:
        """How a task's places are counted: as said, or so that every quote is found; as the tools do, if both do."""
        if self.offsets != "auto" or all(max(text, default="") <= "\uffff" for text, _ in spans):
            return "characters" if self.offsets == "auto" else self.offsets
        ways = "characters", "utf-16"
        places = {way: [_found(text, span, way) for text, span in spans] for way in ways}
        fits = [way for way in ways if all(places[way])]
        exact = [way for way in fits if all(_quoted(text, span, way) for text, span in spans)]
        if len(fits) == 2 and places["characters"] != places["utf-16"] and not exact:
            found = "letters beyond 16 bits (such as emoji) and no quoted text that tells how they count"
            item.wrong(
                self.problems,
                "",
                found,
                "--offsets utf-16 (as doccano and Label Studio count), or characters",
            )
        return (exact or fits or sorted(ways, key=lambda way: sum(map(bool, places[way]))))[-1]

    def rows(self, units: str) -> list[dict[str, str]]:
        """Rows of a nugget table, positions counted in the whole conversation."""
        pattern = re.compile(r"\S" if units.endswith("character") else r"\S+")
        rows: list[dict[str, str]] = []
        for (run, topic), tasks in self.made.items():
            offset, before, turns = 0, "", list[list[dict[str, str]]]()
            for part in (
                part for _, parts in sorted(tasks, key=lambda one: one[0]) for part in parts
            ):
                turns += [[]] if part.side == "system" and before != "system" else []
                before = part.side
                if part.side == "user" and units.startswith("system"):
                    continue
                words = [found.span() for found in pattern.finditer(part.text)]
                for start, end, row in sorted(part.spans, key=lambda one: one[:2]):
                    inside = [
                        n
                        for n, (first, last) in enumerate(words, start=1)
                        if first < end and last > start
                    ]
                    turns[-1].append(
                        {"start": str(offset + inside[0]), "end": str(offset + inside[-1]), **row}
                    )
                offset += len(words)
            for number, found in enumerate(turns, start=1):
                about = {"run": run, "topic": topic, "turn": str(number)}
                rows += [about | row for row in found or [{"level": "0"}]]
        return rows


def is_export(path: Path) -> bool:
    """Whether a file begins as JSON does."""
    return head(path).removeprefix(BOM).lstrip().startswith((b"{", b"["))


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
) -> pd.DataFrame:
    """The frame of a nugget table from an export, all fields text.

    ``form``: label-studio, doccano, or auto. ``labels``: what labels mean, columns label, level,
    entity and the sets. ``annotator``: whose annotations, where several have annotated; their names
    are those of the file. Tasks that this annotator has not annotated are left out and counted.
    """
    items = read_objects(path)
    form = recognise(items, KNOWN, ("transcript",)) if form == "auto" else form
    reader, tasks = _Reader(path, Meaning(attributes, labels), offsets), []
    for item in items:
        inner = item.content.get("data")
        data = dict(inner) if isinstance(inner, dict) else {**item.content}
        data |= data["meta"] if isinstance(data.get("meta"), dict) else {}
        if not KNOWN[form](item.content):
            item.wrong(
                reader.problems,
                "",
                f"an object with {listed(item.content) or 'nothing'}",
                f"a task of {form}",
            )
            continue
        found = studio(item.content) if form == "label-studio" else doccano(item.content)
        tasks.append((item, data, found))
    reader.problems.refuse()
    everyone = list(dict.fromkeys(name for _, _, found in tasks for name in found))
    if (
        not everyone
        or (annotator is None and len(everyone) > 1)
        or (annotator or everyone[0]) not in everyone
    ):
        wanted = "wanted one of them: --annotator" if everyone else "predictions are none"
        raise ValueError(f"{path} has annotations of {listed(everyone) or 'nobody'}; {wanted}")
    chosen = annotator or everyone[0]
    for item, data, found in tasks:
        if chosen in found:
            reader.add(item, data, found[chosen])
    without = sum(chosen not in found for *_, found in tasks)
    if without:
        warnings.warn(
            f"{path}: {without} of {len(tasks)} tasks are not annotated and left out",
            Note,
            stacklevel=3,
        )
    if reader.meaning.unknown:
        said = "labels that name neither a level nor a group (see --labels)"
        warnings.warn(
            f"{path}: {said}: {listed(sorted(reader.meaning.unknown))}", Note, stacklevel=3
        )
    reader.problems.refuse()
    frame = pd.DataFrame(
        reader.rows(units), columns=[*CORE_COLUMNS, "entity", *attributes], dtype="str"
    ).fillna("")
    return frame if frame["entity"].ne("").any() else frame.drop(columns="entity")
