"""Exports of annotation tools: spans become word positions, labels become levels and groups."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import called
from equipoise.attributes import AttributeSet
from equipoise.errors import Note
from equipoise_cli.formats.annotations import parse_export

SETS = {
    "SIZE": AttributeSet("SIZE", "nominal", ("large", "small"), np.ones(2)),
    "ORIGIN": AttributeSet("ORIGIN", "nominal", ("Asia", "Middle East", "small"), np.ones(3)),
}
ONE = {"SIZE": SETS["SIZE"]}
ANSWER = "Here: Searching for Bobby Fischer (1993), Queen of Katwe."
TEXT = f"User: A film about chess?\nAssistant: {ANSWER}\nUser: More?\nAssistant: No."
ROWS = [["1", "6", "9", "2", "1 0"], ["1", "11", "13", "1", "1/2 1/2"], ["2", "", "", "0", ""]]
FIRST, SECOND = "Searching for Bobby Fischer", "Queen of Katwe"


def region(text: str, quote: str, *labels: str) -> dict[str, Any]:
    start = text.index(quote)
    value = {"start": start, "end": start + len(quote), "text": quote, "labels": [*labels]}
    return {"id": quote, "from_name": "label", "type": "labels", "value": value}


def task(*results: dict[str, Any], text: str = TEXT, who: Any = 1) -> dict[str, Any]:
    annotation = {"id": 5, "completed_by": who, "result": [*results]}
    data = {"text": text, "topic": "T1", "run": "mine"}
    return {"id": 7, "data": data, "annotations": [annotation]}


def doccano(*marks: list[Any], text: str = TEXT) -> dict[str, Any]:
    return {"id": 1, "text": text, "label": [*marks], "meta": {"run": "mine", "topic": "T1"}}


def mark(quote: str, label: str) -> list[Any]:
    return [TEXT.index(quote), TEXT.index(quote) + len(quote), label]


def rows(content: str, sets: Any = ONE, labels: pd.DataFrame | None = None) -> list[list[str]]:
    ((frame, _),) = parse_export(content, Path("x.json"), sets, labels)[0].values()
    return frame[["turn", "start", "end", "level", *sets]].to_numpy().tolist()


STUDIO = task(region(TEXT, FIRST, "L2|large"), region(TEXT, SECOND, "L1", "large", "SIZE=small"))
PARAGRAPHS = [
    {"author": "User", "text": "A film about chess?"},
    {"author": "Bot", "text": ANSWER},
    {"author": "User", "text": "More?"},
    {"author": "Bot", "text": "No."},
]


def in_paragraph(quote: str, *labels: str) -> dict[str, Any]:
    start = ANSWER.index(quote)
    value = {"start": "1", "end": "1", "startOffset": start, "endOffset": start + len(quote)}
    return {"type": "paragraphlabels", "value": value | {"paragraphlabels": [*labels]}}


DIALOGUE = task(in_paragraph(FIRST, "L2", "large"), in_paragraph(SECOND, "L1", "large", "small"))
DIALOGUE["data"] = {"dialogue": PARAGRAPHS, "topic": "T1", "run": "mine"}


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([STUDIO]),
        json.dumps([DIALOGUE]),
        json.dumps(
            doccano(
                mark(FIRST, "L2"),
                mark(FIRST, "large"),
                mark(SECOND, "L1|large"),
                mark(SECOND, "small"),
            )
        ),
    ],
    ids=["Label Studio", "Label Studio, dialogue", "doccano"],
)
def test_spans_become_positions_of_words(content: str) -> None:
    assert rows(content) == ROWS
    ((frame, turns),) = parse_export(content, Path("x.json"), ONE)[0].values()
    assert set(frame["run"]) == {"mine"}
    assert turns[["turn", "speaker", "start", "end"]].to_numpy().tolist() == [
        [1, "user", 1, 4],
        [1, "system", 5, 13],
        [2, "user", 14, 14],
        [2, "system", 15, 15],
    ]


def test_transcript_signs_mark_turns_too() -> None:
    text = TEXT.replace("User:", "### U1\n").replace("Assistant:", "### S1\n")
    content = task(
        region(text, FIRST, "L2|large"), region(text, SECOND, "L1|large|small"), text=text
    )
    assert rows(json.dumps([content])) == ROWS


def test_a_table_explains_other_labels_and_names_entities() -> None:
    labels = pd.DataFrame({"label": ["big film"], "level": ["2"], "SIZE": ["large"]})
    content = task(region(TEXT, FIRST, "big film", "entity=Bobby"))
    ((frame, _),) = parse_export(json.dumps([content]), Path("x.json"), ONE, labels)[0].values()
    assert frame.loc[0, ["level", "SIZE", "entity"]].tolist() == ["2", "1 0", "Bobby"]


@pytest.mark.parametrize(
    ("results", "sets", "message"),
    [
        ([region(TEXT, FIRST, "L2|big")], ONE, "unknown label 'big'"),
        (
            [region(TEXT, FIRST, "large"), region(TEXT, SECOND, "L1|large")],
            ONE,
            "one label must be a level",
        ),
        ([region(TEXT, FIRST, "L2")], ONE, "must have a group of SIZE"),
        ([region(TEXT, FIRST, "L2|small")], SETS, "unknown label 'small'"),  # of two sets
        ([region(TEXT, "chess", "L2|large")], ONE, "must mark words of one system turn"),
        ([region(TEXT, "Katwe.\nUser: More", "L2|large")], ONE, "of one system turn"),
        (
            [region(TEXT, FIRST, "L2|large"), region(TEXT, "Fischer (1993)", "L1|large")],
            ONE,
            "overlaps the span before it",
        ),
        (
            [{"value": {"start": 30, "end": 35, "text": "Tenet", "labels": ["L2"]}}],
            ONE,
            "must quote the text",
        ),
        ([{"value": {"start": 3, "labels": ["L2"]}}], ONE, "must be a task of Label Studio"),
    ],
)
def test_mistakes_are_named_with_the_task(results: Any, sets: Any, message: str) -> None:
    with pytest.raises(ValueError, match="task 7") as caught:
        rows(json.dumps([task(*results)]), sets)
    assert message in str(caught.value)


# --- the same annotation, exported in other ways --------------------------------------------------

# Lines of an answer; some look like marks of turns, and some words take two units in UTF-16.
LINES = ["Human: guest", "System: Tenet", "### Films", "Bot: 😊 both", "😊😊 Emma", "Then Dune 🎬!"]


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def exports(lines: list[str], chosen: list[tuple[int, int]], form: str, in_utf16: bool) -> str:
    """Write one conversation, in which words of an answer are marked, as a tool exports it."""
    user, answer = "A film?", "\n".join(lines)
    text = f"User: {user}\nAssistant: {answer}"
    count = units if in_utf16 else len
    results, marks = [], []
    for number, (begin, end) in enumerate(chosen):
        base = len(text) - len(answer)
        place = count(text[: base + begin]), count(text[: base + end])
        label = f"L{number % 2 + 1}|large"
        marks.append([*place, label])
        value: dict[str, Any] = {"start": place[0], "end": place[1], "labels": [label]}
        if form in ("paragraphs", "other names"):
            inside = {"startOffset": count(answer[:begin]), "endOffset": count(answer[:end])}
            value = {"start": "1", "end": "1", **inside, "paragraphlabels": [label]}
        if form == "quotes":
            value["text"] = answer[begin:end]
        results.append({"value": value})
    names = {"run": "mine", "topic": "T1"}
    if form == "doccano":
        return json.dumps({"id": 7, "text": text, "label": marks, **names})
    if form == "JSON-MIN":
        values = [result["value"] for result in results]
        return json.dumps([{"id": 7, "text": text, "span": values, "annotator": 1, **names}])
    keys = ("author", "text") if form == "paragraphs" else ("speaker", "utterance")
    dialogue = [dict(zip(keys, turn, strict=True)) for turn in (("user", user), ("bot", answer))]
    data = {"dialogue": dialogue} if form in ("paragraphs", "other names") else {"text": text}
    annotations = [{"completed_by": 1, "result": results}]
    if form == "submitted twice":
        annotations = [{"completed_by": 1, "result": part} for part in (results[:1], results[1:])]
    key = "completions" if form == "completions" else "annotations"
    return json.dumps([{"id": 7, "data": data | names, key: annotations}])


FORMS = [
    "doccano",
    "JSON-MIN",
    "completions",
    "paragraphs",
    "other names",
    "submitted twice",
    "quotes",
]


@pytest.mark.filterwarnings("ignore::equipoise.errors.Note")
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_an_annotation_is_the_same_in_each_export(data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=5))
    answer = "\n".join(lines)
    places = [(begin, begin + len(word)) for begin, word in _words(answer)]
    chosen = sorted(data.draw(st.sets(st.sampled_from(places), min_size=1, max_size=4)))
    before = 2  # words of the user
    expected = [
        ["1", str(position), str(position), str(number % 2 + 1), "1 0"]
        for number, place in enumerate(chosen)
        for position in [before + 1 + places.index(place)]
    ]
    in_utf16 = data.draw(st.booleans())
    form = data.draw(st.sampled_from(FORMS))
    offsets = "auto" if form == "quotes" else "utf-16" if in_utf16 else "characters"
    content = exports(lines, chosen, form, in_utf16)
    ((frame, _),) = parse_export(content, Path("x.json"), ONE, offsets=offsets)[0].values()
    assert frame[["turn", "start", "end", "level", "SIZE"]].to_numpy().tolist() == expected


def _words(text: str) -> list[tuple[int, str]]:
    return [(match.start(), match[0]) for match in re.finditer(r"\S+", text)]


@pytest.mark.parametrize("in_utf16", [True, False])
def test_offsets_are_those_with_which_spans_are_words(in_utf16: bool) -> None:
    lines = ["So 😊😊😊 first Tenet and then Emma, both fine"]
    chosen = [
        (lines[0].index(word), lines[0].index(word) + len(word)) for word in ("Tenet", "Emma")
    ]
    name = "UTF-16 code units" if in_utf16 else "characters"
    with pytest.warns(Note, match=f"read as {name}: with them 2 spans fit"):
        found = rows(exports(lines, chosen, "doccano", in_utf16))
    assert [row[1:3] for row in found] == [["6", "6"], ["9", "9"]]


def test_what_is_read_in_a_surprising_way_is_noted() -> None:
    twice = task(region(TEXT, FIRST, "L2|large"))
    twice["annotations"] += task()["annotations"]
    with pytest.warns(Note, match="1 of 1 tasks have several annotations of one annotator"):
        assert rows(json.dumps([twice]))[0] == ROWS[0]
    dialogue = [{"author": "Ann", "text": "A film?"}, {"author": "bot", "text": "Tenet"}]
    with pytest.warns(Note, match=r"authors other than .* as the system \(Ann\)"):
        rows(json.dumps([{"data": {"dialogue": dialogue}, "annotations": [{"result": []}]}]))
    with pytest.warns(
        Note, match="blanks separate words, and 'チェスの映画を教えてください。' is one"
    ):
        rows(json.dumps(doccano(text="User: チェスの映画を教えてください。\nAssistant: はい。")))
    rows(json.dumps(doccano(text="User: チェス の 映画 を 教え て\nAssistant: はい 。")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (doccano("L2"), "a label of the whole text"),  # type: ignore[arg-type]
        ({"id": 1, "text": TEXT, "annotations": []}, "exported as JSON Lines with labels as text"),
        (
            {"data": {"dialogue": [{"who": "user", "said": "Hi"}]}, "annotations": []},
            "paragraphs with keys author and text, got who, said",
        ),
        (
            {"data": {"text": TEXT}, "annotations": [{"result": []}, {"result": []}]},
            "annotations with completed_by, where there are several, got 2 annotations",
        ),
        (
            {"data": {"text": TEXT}, "annotations": [{"result": 5}]},
            "with spans, got keys data, annotations",
        ),
        (
            task(region(TEXT, FIRST, "L2|large"), region(TEXT, FIRST, "L1|large")),
            "must have one level, got 2 and L1",
        ),
        (
            doccano([37, 41, "L2|large"], [41, 43, "L2|large"]),
            "must not be in the same word as the span before it: blanks separate words",
        ),
    ],
)
def test_other_exports_get_a_sentence(content: Any, message: str) -> None:
    with pytest.raises(ValueError, match="task") as caught:
        rows(json.dumps(content))
    assert message in str(caught.value)


# --- several annotators ---------------------------------------------------------------------------


def test_an_export_of_several_needs_a_choice(tmp_path: Path) -> None:
    content = task(region(TEXT, FIRST, "L2|large"), who={"email": "ann@example.org"})
    content["annotations"] += task(region(TEXT, FIRST, "L1|small"), who=2)["annotations"]
    (tmp_path / "e.json").write_text(json.dumps([content]))
    sets = tmp_path / "s.yaml"
    sets.write_text("SIZE: {kind: nominal, groups: [large, small], target: uniform}\n")
    call = ["nuggets", tmp_path / "e.json", "--attributes", sets]
    assert "must be one of ann@example.org, 2" in called(*call).output
    chosen = called(*call, "--annotator", "2")
    assert "mine,T1,1,6,9,1,0 1" in chosen.output
    both = called(
        "agreement", tmp_path / "e.json", "--attributes", sets, "--unmatched", tmp_path / "u.csv"
    )
    assert both.exit_code == 0, both.output
    assert ",,,units found by several,1" in both.output
    assert pd.read_csv(tmp_path / "u.csv").empty


def test_the_keys_of_run_and_topic_are_named_and_can_be_mapped(tmp_path: Path) -> None:
    content = doccano(mark(FIRST, "L2|large")) | {"meta": {"system": "a", "query": "T9"}}
    export, sets = tmp_path / "mine.jsonl", tmp_path / "sets.yaml"
    export.write_text(json.dumps(content))
    sets.write_text("SIZE: {kind: nominal, groups: [large, small], target: uniform}\n")
    command = ["nuggets", export, "--attributes", sets]
    result = called(*command)
    assert "1 of 1 tasks have no key run" in result.output
    assert "mine,1," in result.output
    result = called(*command, "--map", "run=system,topic=query")
    assert "no key" not in result.output
    assert "a,T9," in result.output
    assert "must be run=KEY" in called(*command, "--map", "turn=x").output
    other = content | {"id": 8, "meta": {"system": "b", "query": "T9"}}
    export.write_text(f"{json.dumps(content)}\n{json.dumps(other)}\n")
    message = "run mine and topic T9 must differ from task"
    assert message in called(*command, "--map", "topic=query").output
    assert called(*command, "--map", "run=system,topic=query").exit_code == 0


def test_without_matplotlib_the_table_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export, sets = tmp_path / "mine.jsonl", tmp_path / "sets.yaml"
    export.write_text(json.dumps(doccano(mark(FIRST, "L2|large"))))
    sets.write_text("SIZE: {kind: nominal, groups: [large, small], target: uniform}\n")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    table, figure = tmp_path / "nuggets.csv", tmp_path / "nuggets.svg"
    result = called("nuggets", export, "--attributes", sets, "-o", table, "--figure", figure)
    assert result.exit_code == 1
    assert "matplotlib" in result.output
    assert table.is_file()
    assert not figure.exists()


def test_files_that_name_no_annotator_are_one_annotator_each(tmp_path: Path) -> None:
    sets = tmp_path / "sets.yaml"
    sets.write_text("SIZE: {kind: nominal, groups: [large, small], target: uniform}\n")
    files = []
    for name, label in (("ann", "L2|large"), ("ben", "L1|large"), ("cleo", "L2|small")):
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text(json.dumps(doccano(mark(FIRST, label))))
    result = called("agreement", *files, "--attributes", sets)
    assert result.exit_code == 0, result.output
    assert ",,,units found by several,1" in result.stdout
    assert "1 of 1 conversations have annotations of two annotators or more (100%)" in result.stderr


def test_files_that_name_no_run_are_of_one_run(tmp_path: Path) -> None:
    sets = tmp_path / "sets.yaml"
    sets.write_text("SIZE: {kind: nominal, groups: [large, small], target: uniform}\n")
    files = []
    for name in ("ann", "ben"):
        task_of_name = doccano(mark(FIRST, "L2|large"))
        task_of_name["meta"] = {"conversation": "c1"}
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text(json.dumps(task_of_name | {"id": name}))
    command = ["agreement", *files, "--attributes", sets]
    assert "--map run=KEY,topic=KEY" in called(*command).stderr
    result = called(*command, "--map", "topic=conversation")
    assert result.exit_code == 0, result.output
    assert "no file names a run: all conversations are of run ann" in result.stderr
    assert ",,,Dice,1,,,1" in result.stdout


def test_a_folder_of_brat_is_an_export_and_groups_alone_have_level_1(tmp_path: Path) -> None:
    sets = tmp_path / "sets.yaml"
    sets.write_text("SIZE: {kind: nominal, groups: [large, small], target: uniform}\n")
    folder = tmp_path / "mine"
    folder.mkdir()
    begin, end, _ = mark(FIRST, "")
    (folder / "T1.txt").write_text(TEXT)
    (folder / "T1.ann").write_text(f"T1\tlarge {begin} {end}\t{FIRST}\n#1\tNote T1\tsure\n")
    (folder / "T2.txt").write_text(TEXT)
    (folder / "T2.ann").write_text("")
    result = called("nuggets", folder, "--attributes", sets)
    assert "no label is a level such as L2: each span has level 1" in result.stderr
    assert result.stdout.splitlines()[1:] == [
        "mine,T1,1,6,9,1,1 0",
        *("mine,T1,2,,,0,", "mine,T2,1,,,0,", "mine,T2,2,,,0,"),
    ]
    (folder / "T2.ann").write_text("T1\tlarge 2 5;7 9\tx y\n")
    assert (
        "T2.ann, line 1: must be a span such as"
        in called("nuggets", folder, "--attributes", sets).stderr
    )
