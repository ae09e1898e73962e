"""Exports of annotation tools: spans become word positions, labels become levels and groups."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from commands import called
from equipoise.attributes import AttributeSet
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
        ([region(TEXT, FIRST, "large")], ONE, "one label must be a level"),
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
    assert "1 of 1 conversations have annotations of all annotators (100%)" in result.stderr
