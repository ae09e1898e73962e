"""Nuggets from annotation tools: JSON of Label Studio, JSON Lines of doccano, folders of brat.

A task is a conversation. Its data (doccano: ``meta``) may name ``run`` and ``topic``. In its text,
turns begin with a line ``### U1`` or ``### S1``, or with ``User:`` and ``Assistant:``. These marks
are not counted as words. A mark that the first exchange of a conversation does not use is text.
Dialogues of Label Studio (a list of ``author`` and ``text``) are read too; their texts have no
marks. So are JSON-MIN and the completions of older versions.

Offsets count characters or UTF-16 code units, which differ after an emoji. A file has those with
which more spans quote their text, or begin and end with words.

A label is one of these, or several of them separated by bars (``L2|large``):

- a level (``L2``)
- a group (``SIZE=large``, or ``large`` if only one attribute set has it)
- an entity (``entity=Tenet``)

Labels of the same span belong to one nugget. Several groups of a set have equal shares. A table
with ``label, level, entity`` and attribute sets explains other labels.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from equipoise.attributes import CORE_COLUMNS, AttributeSet
from equipoise.errors import InputError, Note, excerpt, input_error, listed
from equipoise.loaders.transcripts import note_long_words, run_name
from equipoise.readers import decoded, read_bytes, read_text
from equipoise_cli.formats import read_objects

_TURN = re.compile(
    r"^[^\S\n]*(?:###[^\S\n]+(?P<sign>[US])\d+\b.*$|(?P<name>user|human|assistant|system|bot)[^\S\n]*:)",
    re.IGNORECASE | re.MULTILINE,
)
_LEVEL = re.compile(r"(?:^|\|)\s*(?:level=|L)\d{1,3}\s*(?:\||$)")
_USERS = ("u", "user", "human")
_SYSTEMS = ("s", "system", "assistant", "bot", "gpt", "agent", "model")
_AUTHOR_KEYS = ("author", "speaker", "role", "from", "name", "sender")
_TEXT_KEYS = ("text", "utterance", "content", "value", "message")
_CONTROLS = ("labels", "paragraphlabels", "hypertextlabels", "choices")


@dataclass
class Span:
    """Characters ``start`` to ``end`` of a text, the quotation in the export, and labels.

    Offsets of a tool count from ``bases``, where the marked paragraphs begin.
    """

    start: int
    end: int
    quote: str
    labels: list[str] = field(default_factory=list)
    bases: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Task:
    """A conversation as one text, with the spans of each annotator.

    ``paragraphs`` are author, begin and end of the paragraphs of a dialogue. ``repeated``: an
    annotator has several annotations, whose spans are together.
    """

    name: str
    data: Mapping[str, Any]
    text: str
    spans: Mapping[str, list[Span]]
    paragraphs: Sequence[tuple[str, int, int]] = ()
    repeated: bool = False


def parse_export(
    text: str,
    path: Path,
    attributes: Mapping[str, AttributeSet],
    labels: pd.DataFrame | None = None,
    key_of: Mapping[str, str] = MappingProxyType({"run": "run", "topic": "topic"}),
    offsets: str = "auto",
) -> tuple[dict[str, tuple[pd.DataFrame, pd.DataFrame]], list[str]]:
    """Parse an export: by annotator, the frame of a nugget table and the turns.

    ``path`` is the name in messages, and the run of tasks without a run. ``key_of`` gives the keys
    of a task with its run and its topic. ``offsets``: auto, characters or utf-16. The second value
    counts tasks without a key. Turns are as `equipoise.loaders.transcripts.turn_frame` returns
    them.

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
    tasks = list(_tasks(text, path))
    in_utf16 = _in_utf16(path, tasks, offsets)
    if labels is None or "level" not in labels.columns:
        _add_levels(path, tasks)
    _note_tasks(path, tasks)
    for task in tasks:
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
                f"{path}, task {task.name}",
                task,
                _placed(task.text, spans, in_utf16),
                attributes,
                labels,
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
    notes = [f"{count} of {len(tasks)} tasks have no key {key}" for key, count in missing.items()]
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
    for number, (_, content) in enumerate(list(read_objects(path, text)), start=1):
        name = str(content.get("id", number))
        place = f"{path}, task {name}"
        try:
            task = _task(place, name, content)
            every_span = [span for spans in task.spans.values() for span in spans]
            numbers = [number for span in every_span for number in (span.start, span.end)]
            if not isinstance(task.text, str) or any(type(number) is not int for number in numbers):
                raise TypeError
        except InputError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError):
            expected = "a task of Label Studio (JSON) or doccano (JSON Lines) with spans"
            raise input_error(place, expected, f"keys {listed(content, 8)}") from None
        yield task


def read_brat(folder: Path) -> str:
    """Return the tasks in a folder of brat, each a .txt and a .ann file, as doccano has them."""
    tasks = []
    for file in sorted(folder.glob("*.ann")):
        label = []
        for number, line in enumerate(decoded(read_bytes(file), file).split("\n"), start=1):
            mark = re.fullmatch(r"T\d+\t(\S+) (\d+) (\d+)\t.*", line.rstrip("\r"))
            if line.startswith("T") and not mark:
                raise input_error(file, "a span such as T1, group 0 5", excerpt(line), number)
            if mark:
                label.append([int(mark[2]), int(mark[3]), mark[1]])
        text = read_text(file.with_suffix(".txt"))
        tasks.append(json.dumps({"id": file.stem, "text": text, "label": label}))
    if not tasks:
        raise input_error(folder, "a folder of brat, with files .ann and .txt")
    return "\n".join(tasks)


def _task(place: str, name: str, content: Mapping[str, Any]) -> Task:
    is_studio = isinstance(content.get("data"), dict)
    if is_studio and ("annotations" in content or "completions" in content):
        return _studio_task(place, name, content)
    for key, marks in content.items():
        if isinstance(marks, list) and marks and isinstance(marks[0], dict) and "start" in marks[0]:
            # JSON-MIN of Label Studio has the results of one annotator under the name of a control.
            annotation = {"result": [{"value": mark} for mark in marks]}
            annotation["completed_by"] = content.get("annotator", "")
            data = {other: content[other] for other in content if other != key}
            return _studio_task(place, name, {"data": data, "annotations": [annotation]})
    return _doccano_task(place, name, content)


def _studio_task(place: str, name: str, content: Mapping[str, Any]) -> Task:
    """Read a task of Label Studio: ``data``, and ``annotations`` with ``result``."""
    text, paragraphs = _studio_text(place, content["data"])
    regions_of: dict[str, dict[tuple[int, int], Span]] = {}
    repeated = False
    annotations = content["annotations" if "annotations" in content else "completions"]
    for annotation in annotations:
        if annotation.get("was_cancelled"):
            continue
        annotator = annotation.get("completed_by", "")
        if isinstance(annotator, dict):
            annotator = annotator.get("email", annotator.get("id", ""))
        annotator = str(annotator)
        repeated = repeated or annotator in regions_of
        if annotator in regions_of and not annotator:
            expected = "annotations with completed_by, where there are several"
            raise input_error(place, expected, f"{len(annotations)} annotations")
        regions = regions_of.setdefault(annotator, {})
        for result in annotation["result"]:
            value = result.get("value", {})  # a relation has none
            if "start" in value:
                _add_region(regions, value, paragraphs)
    spans = {annotator: list(regions.values()) for annotator, regions in regions_of.items()}
    return Task(name, content["data"], text, spans, paragraphs, repeated)


def _studio_text(place: str, data: Mapping[str, Any]) -> tuple[str, list[tuple[str, int, int]]]:
    """Return the text of a task of Label Studio, and the paragraphs of a dialogue."""
    dialogue = [v for v in data.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
    if not dialogue:
        texts = (value for value in data.values() if isinstance(value, str))
        return data.get("text") or max(texts, key=len), []
    text = ""
    paragraphs = []
    for paragraph in dialogue[0]:
        author = next((key for key in _AUTHOR_KEYS if key in paragraph), None)
        words = next((key for key in _TEXT_KEYS if key in paragraph), None)
        if author is None or words is None:
            raise input_error(place, "paragraphs with keys author and text", listed(paragraph))
        end = len(text) + len(paragraph[words])
        paragraphs.append((str(paragraph[author]), len(text), end))
        text += f"{paragraph[words]}\n"
    return text, paragraphs


def _add_region(
    regions: dict[tuple[int, int], Span],
    value: Mapping[str, Any],
    paragraphs: Sequence[tuple[str, int, int]],
) -> None:
    """Add the labels of a result of Label Studio to the span that it marks."""
    start, end, bases = value["start"], value["end"], (0, 0)
    if paragraphs:
        bases = paragraphs[int(start)][1], paragraphs[int(end)][1]
        start, end = value["startOffset"], value["endOffset"]
    new = Span(start, end, "", bases=bases)
    span = regions.setdefault((bases[0] + start, bases[1] + end), new)
    if isinstance(value.get("text"), str):
        span.quote = value["text"]
    for control in _CONTROLS:
        span.labels += map(str, value.get(control) or [])
    if isinstance(value.get("text"), list):  # a text area: the name of the entity
        span.labels += [f"entity={text}" for text in value["text"]]


def _doccano_task(place: str, name: str, content: Mapping[str, Any]) -> Task:
    """Read a line of doccano: ``text`` or ``data``, and ``label``, ``labels`` or ``entities``."""
    known = ("text", "label", "labels", "entities", "meta")
    data = dict(content.get("meta") or {}) | {k: v for k, v in content.items() if k not in known}
    if "annotations" in content:
        expected = "a project of sequence labelling, exported as JSON Lines with labels as text"
        raise input_error(place, expected, "the key annotations")
    key = next((name for name in ("label", "labels", "entities") if name in content), "label")
    regions: dict[tuple[int, int], Span] = {}
    for mark in content[key]:
        if isinstance(mark, str):
            expected = f"spans such as [0, 5, 'L2'] under the key {key}, of sequence labelling"
            raise input_error(place, expected, f"{mark!r}, a label of the whole text")
        if isinstance(mark, dict):
            start, end, label = mark["start_offset"], mark["end_offset"], mark["label"]
        else:
            start, end, label = mark
        regions.setdefault((start, end), Span(start, end, "")).labels.append(str(label))
    return Task(name, data, content.get("text", data.get("data")), {"": list(regions.values())})


def _note_tasks(path: Path, tasks: Sequence[Task]) -> None:
    """Note what is read in a way that may surprise."""
    n_repeated = sum(task.repeated for task in tasks)
    if n_repeated:
        note = f"{path}: {n_repeated} of {len(tasks)} tasks have several annotations of one"
        warnings.warn(f"{note} annotator, which are read together", Note, 4)
    authors = {author for task in tasks for author, _, _ in task.paragraphs}
    unknown = [name for name in sorted(authors) if name.lower() not in (*_USERS, *_SYSTEMS)]
    if unknown:
        note = f"{path}: authors other than {', '.join(_USERS[1:])} are read as the system"
        warnings.warn(f"{note} ({listed(unknown, 3)})", Note, 4)
    note_long_words(str(path), [task.text for task in tasks])


def _add_levels(path: Path, tasks: Sequence[Task]) -> None:
    """Give each span the level 1 where no label of a file is a level."""
    every_span = [span for task in tasks for spans in task.spans.values() for span in spans]
    if every_span and not any(_LEVEL.search(label) for span in every_span for label in span.labels):
        for span in every_span:
            span.labels.append("L1")
        note = f"{path}: no label is a level such as L2: each span has level 1 (--labels)"
        warnings.warn(note, Note, 4)


# --- offsets --------------------------------------------------------------------------------------


def _in_utf16(path: Path, tasks: Sequence[Task], offsets: str) -> bool:
    """Return whether the offsets of a file count UTF-16 code units, with a note where it matters.

    Both tools count in a browser, so that equal evidence is for UTF-16.
    """
    if offsets != "auto":
        return offsets == "utf-16"
    n_fitting = {True: 0, False: 0}
    n_moved = 0
    for task in tasks:
        if task.text and max(task.text) > "\uffff":
            for spans in task.spans.values():
                read = {way: _placed(task.text, spans, way) for way in n_fitting}
                n_moved += sum(u != c for u, c in zip(read[True], read[False], strict=True))
                for way, placed in read.items():
                    n_fitting[way] += sum(_fits(task.text, span) for span in placed)
    if not n_moved:
        return False
    in_utf16 = n_fitting[True] >= n_fitting[False]
    name, other = ("UTF-16 code units", "characters")[:: 1 if in_utf16 else -1]
    note = f"{path}: offsets are read as {name}: with them {n_fitting[in_utf16]} spans fit the text"
    note += f" around them, with {other} {n_fitting[not in_utf16]} (--offsets)"
    warnings.warn(note, Note, 4)
    return in_utf16


def _placed(text: str, spans: Sequence[Span], in_utf16: bool) -> list[Span]:
    """Return spans with offsets in characters of the whole text."""

    def position(base: int, offset: int) -> int:
        if not in_utf16 or offset <= 0 or text.isascii():
            return base + offset
        units = text[base : base + offset].encode("utf-16-le")[: 2 * offset]
        return base + len(units.decode("utf-16-le", "replace"))

    return [
        replace(
            span,
            start=position(span.bases[0], span.start),
            end=position(span.bases[1], span.end),
            bases=(0, 0),
        )
        for span in spans
    ]


def _fits(text: str, span: Span) -> bool:
    """Return whether a span has the text that it quotes, or begins and ends with words."""
    quoted = text[span.start : span.end]
    if span.quote:
        return span.quote.split() == quoted.split()
    before, after = text[: span.start][-1:], text[span.end :][:1]
    is_whole = not (before + quoted[:1]).isalnum() or not before
    is_whole = is_whole and (not (quoted[-1:] + after).isalnum() or not after)
    return bool(quoted) and quoted == quoted.strip() and is_whole


# --- positions and labels -------------------------------------------------------------------------


def _utterances(task: Task) -> pd.DataFrame:
    """Return the utterances of a task: turn, speaker, begin, end (characters), start (word)."""
    text = task.text
    parts = task.paragraphs or _marked(text)
    is_user = [author.lower() in _USERS for author, _, _ in parts]
    table = pd.DataFrame([part[1:] for part in parts], columns=["begin", "end"])
    table["speaker"] = ["user" if user else "system" for user in is_user]
    # A turn begins with the user; consecutive utterances of one side belong together.
    previous = table["speaker"].shift(fill_value="system")
    opens = (table["speaker"] == "user") & (previous == "system")
    table["turn"] = opens.cumsum() + int(not is_user[0])
    table["words"] = [len(text[begin:end].split()) for _, begin, end in parts]
    table["start"] = table["words"].cumsum() - table["words"] + 1
    return table


def _marked(text: str) -> list[tuple[str, int, int]]:
    """Split a text at its turn marks: author, begin and end of each utterance."""
    marks = list(_TURN.finditer(text))
    if not marks:
        return [("system", 0, len(text))]
    first = text[: marks[0].start()].strip()
    if first:
        raise ValueError(f"must begin with a mark such as 'User:', got {excerpt(first)}")
    names: list[str] = []
    kind = "sign" if marks[0]["sign"] else "name"
    for mark in marks:
        has_user = any(name in _USERS for name in names)
        names.append((mark[kind] or "").lower())
        if has_user and names[-1] not in (*_USERS, ""):
            break
    # A word that the first exchange does not use as a mark is text.
    marks = [mark for mark in marks if mark[kind] and mark[kind].lower() in names]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return [(mark[kind], mark.end(), end) for mark, end in zip(marks, ends, strict=True)]


def _conversation(
    where: str,
    task: Task,
    spans: Iterable[Span],
    attributes: Mapping[str, AttributeSet],
    labels: pd.DataFrame | None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the nuggets of a conversation, with positions in words, and its turns."""
    try:
        utterances = _utterances(task)
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
        if nuggets and start <= int(nuggets[-1]["end"]):
            raise ValueError(
                f"{place}: {quoted!r} must not be in the same word as the span before it: blanks "
                "separate words, so split the text into words first"
            )
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
            is_level = key == "level" or (not key and re.fullmatch(r"L\d{1,3}", value))
            if is_level and fields["level"] not in ("", value.removeprefix("L")):
                raise ValueError(f"{where}: must have one level, got {fields['level']} and {value}")
            if is_level:
                fields["level"] = value.removeprefix("L")
            elif key == "entity":
                fields["entity"] = value
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
