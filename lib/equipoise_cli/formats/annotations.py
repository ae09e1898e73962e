"""Nuggets from annotation tools: JSON of Label Studio, JSON Lines of doccano.

A task is a conversation. Its data (doccano: ``meta``) may name ``run`` and ``topic``. In its text,
turns begin with a line ``### U1`` or ``### S1``, or with ``User:`` and ``Assistant:``. These marks
are not counted as words. Dialogues of Label Studio (a list of ``author`` and ``text``) are read
too.

A label is one of these, or several of them separated by bars (``L2|large``):

- a level (``L2``)
- a group (``SIZE=large``, or ``large`` if only one attribute set has it)
- an entity (``entity=Tenet``)

Labels of the same span belong to one nugget. Several groups of a set have equal shares. A table
with ``label, level, entity`` and attribute sets explains other labels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from equipoise.attributes import CORE_COLUMNS, AttributeSet
from equipoise.errors import excerpt
from equipoise.loaders.transcripts import run_name
from equipoise_cli.formats import read_objects

_TURN = re.compile(
    r"^[^\S\n]*(?:###[^\S\n]+(?P<sign>[US])\d+\b.*$|(?P<name>user|human|assistant|system|bot)[^\S\n]*:)",
    re.IGNORECASE | re.MULTILINE,
)
_USERS = ("u", "user", "human")
_CONTROLS = ("labels", "paragraphlabels", "hypertextlabels", "choices")


@dataclass
class Span:
    """Characters ``start`` to ``end`` of a text, the quotation in the export, and labels."""

    start: int
    end: int
    quote: str
    labels: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Task:
    """A conversation as one text, with the spans of each annotator."""

    name: str
    data: Mapping[str, Any]
    text: str
    spans: Mapping[str, list[Span]]


def parse_export(
    text: str,
    path: Path,
    attributes: Mapping[str, AttributeSet],
    labels: pd.DataFrame | None = None,
    key_of: Mapping[str, str] = MappingProxyType({"run": "run", "topic": "topic"}),
) -> tuple[dict[str, tuple[pd.DataFrame, pd.DataFrame]], list[str]]:
    """Parse an export: by annotator, the frame of a nugget table and the turns.

    ``path`` is the name in messages, and the run of tasks without a run. ``key_of`` gives the keys
    of a task with its run and its topic. The second value counts tasks without a key. Turns are as
    `equipoise.loaders.transcripts.turn_frame` returns them.

    Raises
    ------
    ValueError
        If a span does not quote the text, lies in a user turn or overlaps another, or if labels
        have no level or group. The message names the task.
    """
    nuggets: dict[str, list[pd.DataFrame]] = {}
    turns: dict[str, list[pd.DataFrame]] = {}
    task_of: dict[tuple[str, str, str], str] = {}
    missing = Counter[str]()
    n_tasks = 0
    for task in _tasks(text, path):
        n_tasks += 1
        names = {column: _name_of(task, key, path) for column, key in key_of.items()}
        missing.update(key_of[column] for column, name in names.items() if not name)
        run, topic = names["run"] or run_name(path), names["topic"] or task.name
        for annotator, spans in task.spans.items():
            key = annotator, run, topic
            if key in task_of:
                raise ValueError(
                    f"{path}, task {task.name}: run {run} and topic {topic} must differ from task "
                    f"{task_of[key]}; name the keys of a task with --map run=KEY,topic=KEY"
                )
            task_of[key] = task.name
            frame, boundaries = _conversation(
                f"{path}, task {task.name}", task, spans, attributes, labels
            )
            nuggets.setdefault(annotator, []).append(frame.assign(run=run, topic=topic))
            turns.setdefault(annotator, []).append(boundaries.assign(run=run, topic=topic))
    if not nuggets:
        raise ValueError(f"{path}: must have at least one annotated task")
    columns = [*CORE_COLUMNS, "entity", *attributes]
    result = {}
    for annotator, frames in nuggets.items():
        frame = pd.concat(frames, ignore_index=True)[columns]
        if not frame["entity"].ne("").any():
            frame = frame.drop(columns="entity")
        result[annotator] = frame, pd.concat(turns[annotator], ignore_index=True)
    notes = [f"{count} of {n_tasks} tasks have no key {key}" for key, count in missing.items()]
    return result, notes


def _name_of(task: Task, key: str, path: Path) -> str:
    """Return the run or topic that a task has under a key; empty if none."""
    value = task.data.get(key)
    if value is None:
        return ""
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        place = f"{path}, task {task.name}"
        raise ValueError(f'{place}, key "{key}": must be a name, got {excerpt(value)}')
    return str(value).strip()


# --- formats --------------------------------------------------------------------------------------


def _tasks(text: str, path: Path) -> Iterator[Task]:
    """Read the tasks of an export, in the format that the keys of each task show."""
    for number, (_, content) in enumerate(read_objects(path, text), start=1):
        name = str(content.get("id", number))
        try:
            is_studio = "annotations" in content and isinstance(content.get("data"), dict)
            task = _studio_task(name, content) if is_studio else _doccano_task(name, content)
            every_span = [span for spans in task.spans.values() for span in spans]
            numbers = [number for span in every_span for number in (span.start, span.end)]
            if not isinstance(task.text, str) or any(type(number) is not int for number in numbers):
                raise TypeError(f"text {excerpt(task.text)}, positions {excerpt(numbers)}")
        except (LookupError, TypeError, AttributeError, ValueError, StopIteration) as error:
            expected = "a task of Label Studio (JSON) or doccano (JSON Lines) with spans"
            raise ValueError(f"{path}, task {name}: must be {expected} ({error!r})") from None
        yield task


def _studio_task(name: str, content: Mapping[str, Any]) -> Task:
    """Read a task of Label Studio: ``data``, and ``annotations`` with ``result``."""
    data = content["data"]
    paragraphs = next((value for value in data.values() if isinstance(value, list)), None)
    starts = []
    if paragraphs is None:
        text = data.get("text") or max((v for v in data.values() if isinstance(v, str)), key=len)
    else:
        text = ""
        for paragraph in paragraphs:
            is_user = str(paragraph["author"]).lower() in _USERS
            text += f"{'User' if is_user else 'Assistant'}: "
            starts.append(len(text))
            text += f"{paragraph['text']}\n"
    spans: dict[str, list[Span]] = {}
    for annotation in content["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        annotator = annotation.get("completed_by", "")
        if isinstance(annotator, dict):
            annotator = annotator.get("email", annotator.get("id", ""))
        regions: dict[tuple[int, int], Span] = {}
        for result in annotation["result"]:
            value = result.get("value", {})  # a relation has none
            if "start" not in value:
                continue
            start, end = value["start"], value["end"]
            if starts:
                start = starts[int(value["start"])] + value["startOffset"]
                end = starts[int(value["end"])] + value["endOffset"]
            span = regions.setdefault((start, end), Span(start, end, ""))
            if isinstance(value.get("text"), str):
                span.quote = value["text"]
            for control in _CONTROLS:
                span.labels += map(str, value.get(control) or [])
            if isinstance(value.get("text"), list):  # a text area: the name of the entity
                span.labels += [f"entity={text}" for text in value["text"]]
        spans[str(annotator)] = list(regions.values())
    return Task(name, data, text, spans)


def _doccano_task(name: str, content: Mapping[str, Any]) -> Task:
    """Read a line of doccano: ``text``, and ``label``, ``labels`` or ``entities``."""
    known = ("text", "label", "labels", "entities", "meta")
    data = dict(content.get("meta") or {}) | {k: v for k, v in content.items() if k not in known}
    key = next(name for name in ("label", "labels", "entities") if name in content)
    marks = content[key]
    regions: dict[tuple[int, int], Span] = {}
    for mark in marks:
        if isinstance(mark, dict):
            start, end, label = mark["start_offset"], mark["end_offset"], mark["label"]
        else:
            start, end, label = mark
        regions.setdefault((start, end), Span(start, end, "")).labels.append(str(label))
    return Task(name, data, content["text"], {"": list(regions.values())})


# --- positions and labels -------------------------------------------------------------------------


def _utterances(text: str) -> pd.DataFrame:
    """Split a text at its turn marks: turn, speaker, begin, end (characters), start (word)."""
    marks = list(_TURN.finditer(text))
    first = text[: marks[0].start()].strip() if marks else ""
    if first:
        raise ValueError(f"must begin with a mark such as 'User:', got {excerpt(first)}")
    begins = [mark.end() for mark in marks] or [0]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    is_user = [(mark["sign"] or mark["name"]).lower() in _USERS for mark in marks] or [False]
    table = pd.DataFrame({"begin": begins, "end": ends})
    table["speaker"] = ["user" if user else "system" for user in is_user]
    # A turn begins with the user; consecutive utterances of one side belong together.
    previous = table["speaker"].shift(fill_value="system")
    opens = (table["speaker"] == "user") & (previous == "system")
    table["turn"] = opens.cumsum() + int(not is_user[0])
    table["words"] = [len(text[b:e].split()) for b, e in zip(begins, ends, strict=True)]
    table["start"] = table["words"].cumsum() - table["words"] + 1
    return table


def _conversation(
    where: str,
    task: Task,
    spans: Iterable[Span],
    attributes: Mapping[str, AttributeSet],
    labels: pd.DataFrame | None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the nuggets of a conversation, with positions in words, and its turns."""
    try:
        utterances = _utterances(task.text)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    in_order = sorted(spans, key=lambda span: span.start)
    nuggets: list[dict[str, str]] = []
    position = 0
    for span in in_order:
        quoted = task.text[span.start : span.end]
        place = f"{where}, span {span.start}-{span.end}"
        if span.quote and span.quote.split() != quoted.split():
            raise ValueError(f"{place}: must quote the text {quoted!r}, got {span.quote!r}")
        if span.start < position:
            raise ValueError(f"{place}: {quoted!r} overlaps the span before it")
        position = span.end
        inside = (utterances["begin"] <= span.start) & (span.end <= utterances["end"])
        if (
            not quoted.strip()
            or inside.sum() != 1
            or utterances["speaker"][inside].item() == "user"
        ):
            raise ValueError(f"{place}: must mark words of one system turn, got {quoted!r}")
        turn = utterances[inside].iloc[0]
        before = task.text[turn["begin"] : span.start]
        # A span may begin within a word.
        start = turn["start"] + len(before.split())
        start -= bool(before) and not before[-1].isspace() and not quoted[0].isspace()
        nugget = {"turn": turn["turn"], "start": start, "end": start + len(quoted.split()) - 1}
        fields = _fields(f"{where}, span {quoted!r}", span.labels, attributes, labels)
        nuggets.append({name: str(value) for name, value in nugget.items()} | fields)

    rows = []
    for turn in utterances.loc[utterances["speaker"] == "system", "turn"].unique():
        turn_nuggets = [nugget for nugget in nuggets if nugget["turn"] == str(turn)]
        rows += turn_nuggets or [{"turn": str(turn), "level": "0"}]
    columns = ["turn", "start", "end", "level", "entity", *attributes]
    frame = pd.DataFrame(rows, columns=columns, dtype="str").fillna("")
    turns = utterances.groupby(["turn", "speaker"], sort=False).agg(
        start=("start", "first"), words=("words", "sum")
    )
    turns["end"] = turns["start"] + turns.pop("words") - 1
    return frame, turns.reset_index()


def _fields(
    where: str,
    labels: Iterable[str],
    attributes: Mapping[str, AttributeSet],
    table: pd.DataFrame | None,
) -> dict[str, str]:
    """Return the level, entity and memberships in the labels of a span."""
    explained = {} if table is None else table.set_index("label").to_dict("index")
    fields = {"level": "", "entity": ""}
    groups: dict[str, list[str]] = {name: [] for name in attributes}
    for label in labels:
        if label in explained:
            parts = [f"{key}={value}" for key, value in explained[label].items() if value]
        else:
            parts = [part.strip() for part in label.split("|")]
        for part in parts:
            key, _, value = part.rpartition("=")
            value = value.strip()
            owners = [
                name for name, a in attributes.items() if value in a.groups and key in ("", name)
            ]
            if key in ("entity", "level"):
                fields[key] = value.removeprefix("L")
            elif not key and re.fullmatch(r"L\d{1,3}", value):
                fields["level"] = value[1:]
            elif len(owners) == 1:
                groups[owners[0]].append(value)
            else:
                expected = "L2, a group, SET=group, or a label of --labels"
                raise ValueError(f"{where}: unknown label {part!r}, must be {expected}")
    if not fields["level"].isdigit():
        raise ValueError(f"{where}: one label must be a level, such as L2, got none")
    for name, chosen in groups.items():
        if not chosen and fields["level"] != "0":
            raise ValueError(f"{where}: must have a group of {name}, got none")
        share = f"1/{len(set(chosen))}" if len(set(chosen)) > 1 else "1"
        shares = [share if group in chosen else "0" for group in attributes[name].groups]
        fields[name] = " ".join(shares) if chosen else ""
    return fields
