"""Exports of annotation tools: spans to word positions, labels to groups, what is refused."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import called
from equipoise.attributes import AttributeSet
from equipoise.loaders.transcripts import nugget_frame, parse_transcripts
from equipoise.nuggets import nugget_table
from equipoise.problems import InputError, Note
from equipoise_cli.loaders import annotation_exports

SETS = {
    "SIZE": AttributeSet("SIZE", "nominal", ("large", "small"), np.ones(2)),
    "ORIGIN": AttributeSet("ORIGIN", "nominal", ("Asia", "Middle East", "small"), np.ones(3)),
}
ONE = {"SIZE": SETS["SIZE"]}
SAID = "Here: Searching for Bobby Fischer (1993), Queen of Katwe."
TEXT = f"User: A film about chess?\nAssistant: {SAID}\nUser: More?\nAssistant: No."
ROWS = [["1", "6", "9", "2", "1 0"], ["1", "11", "13", "1", "1/2 1/2"], ["2", "", "", "0", ""]]


def read_export(*args: Any, **options: Any) -> pd.DataFrame:
    """The nuggets of an export."""
    return annotation_exports.read_export(*args, **options).nuggets


def utf16(text: str, place: int) -> int:
    return len(text[:place].encode("utf-16-le")) // 2


def region(
    text: str, quote: str, *labels: str, name: str = "a", units: Any = utf16, **more: Any
) -> list[dict[str, Any]]:
    """A region of Label Studio, its labels and what is chosen for it (``level=["2"]``)."""
    start = text.index(quote)
    value = {"start": units(text, start), "end": units(text, start + len(quote)), "text": quote}
    about = {"id": name, "to_name": "text", "origin": "manual"}
    found = [
        about | {"from_name": "label", "type": "labels", "value": value | {"labels": [*labels]}}
    ]
    for control, chosen in more.items():
        kind = "textarea" if control == "entity" else "choices"
        given_value = value | ({"text": chosen} if kind == "textarea" else {"choices": chosen})
        found.append(about | {"from_name": control, "type": kind, "value": given_value})
    return found


def task(
    results: list[dict[str, Any]], text: str = TEXT, who: Any = 1, **data: Any
) -> dict[str, Any]:
    annotation = {"id": 5, "completed_by": who, "was_cancelled": False, "result": results}
    about = {"text": text, "topic": "T1", "run": "mine"} | data
    return {"id": 7, "data": about, "annotations": [annotation], "predictions": []}


def written(folder: Path, content: Any, name: str = "x.json") -> Path:
    lines = content if name.endswith(".jsonl") else [content]
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in lines))
    return folder / name


def fields(frame: pd.DataFrame) -> list[list[str]]:
    return (
        frame[["turn", "start", "end", "level", *[n for n in SETS if n in frame.columns]]]
        .to_numpy()
        .tolist()
    )


FISCHER, KATWE = "Searching for Bobby Fischer (1993)", "Queen of Katwe"
REGIONS = [
    *region(TEXT, KATWE, "L1", "SIZE=small", name="b", SIZE=["large"]),
    *region(TEXT, "Searching for Bobby Fischer", "large", level=["2"]),
]


LABELS = REGIONS[0]


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ("oops", "column item 1, annotation 5: found"),
        ({"type": "labels"}, "wanted an object with result, a list"),
        (["oops"], "annotation 5, result 1: found 'oops', wanted an object, and its value"),
        ([LABELS, 7], "annotation 5, result 2: found '7', wanted an object, and its value"),
        ([LABELS | {"value": [1]}], "wanted an object, and its value one too"),
        ([LABELS | {"value": {"labels": ["L1"]}}], "wanted start, end and labels, a list of texts"),
        ([LABELS | {"value": LABELS["value"] | {"labels": "L1"}}], "labels, a list of texts"),
        ([LABELS | {"value": LABELS["value"] | {"labels": [1]}}], "labels, a list of texts"),
        ([LABELS | {"type": "hypertextlabels"}], "hypertextlabels, a list of texts"),
    ],
)
def test_results_of_another_form_are_refused(results: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_export(written(tmp_path, [task(results)]), SETS)
    assert said in str(error.value)
    for wrong in ("oops", ["oops"]):
        other = task([]) | {"annotations": wrong}
        with pytest.raises(InputError, match="'oops'"):
            read_export(written(tmp_path, [other]), SETS, "label-studio")


def paragraphs() -> dict[str, Any]:
    """The same as paragraphs of a dialogue, whose places are within each."""
    said = [line.split(": ", 1) for line in TEXT.split("\n")]
    dialogue = [{"author": who, "text": text} for who, text in said]
    results = []
    for one in REGIONS:
        quote = FISCHER[:27] if one["id"] == "a" else KATWE
        start = dialogue[1]["text"].index(quote)
        kind = "paragraphlabels" if one["type"] == "labels" else "choices"
        value = {
            "start": "1",
            "end": "1",
            "startOffset": start,
            "endOffset": start + len(quote),
            "text": quote,
        }
        chosen = one["value"].get("labels", one["value"].get("choices"))
        results.append(one | {"type": kind, "value": value | {kind: chosen}})
    return task(results) | {"data": {"dialogue": dialogue, "topic": "T1", "run": "mine"}}


def minimal() -> dict[str, Any]:
    """The same as JSON_MIN has it, labels alone."""
    spans = [
        {k: region(TEXT, q, *labels)[0]["value"][k] for k in ("start", "end", "text", "labels")}
        for q, labels in ((FISCHER[:27], ("L2", "large")), (KATWE, ("L1|large|small",)))
    ]
    return {
        "id": 7,
        "text": TEXT,
        "topic": "T1",
        "run": "mine",
        "label": spans,
        "annotator": 1,
        "annotation_id": 5,
    }


def spans(*labels: tuple[str, str]) -> list[list[Any]]:
    return [[TEXT.index(quote), TEXT.index(quote) + len(quote), label] for quote, label in labels]


BOTH = spans(
    (FISCHER[:27], "L2"),
    (KATWE, "L1"),
    (FISCHER[:27], "large"),
    (KATWE, "SIZE:large"),
    (KATWE, "small"),
)
META = {"text": TEXT, "meta": {"topic": "T1", "run": "mine"}}
OFFSETS = [
    {"id": n, "label": label, "start_offset": s, "end_offset": e}
    for n, (s, e, label) in enumerate(BOTH)
]
TOOLS: dict[str, tuple[str, Any]] = {
    "label-studio": ("x.json", [task(REGIONS)]),
    "label-studio of paragraphs": ("x.json", [paragraphs()]),
    "label-studio, JSON_MIN": ("x.json", [minimal()]),
    "label-studio by e-mail": ("x.json", [task(REGIONS, who={"id": 3, "email": "a@b.c"})]),
    "doccano label": ("x.jsonl", [META | {"id": 1, "label": BOTH, "Comments": []}]),
    "doccano labels": ("x.jsonl", [META | {"id": 1, "labels": BOTH, "annotation_approver": None}]),
    "doccano entities": ("x.jsonl", [META | {"id": 1, "entities": OFFSETS, "relations": []}]),
    "doccano intents": ("x.jsonl", [META | {"id": 1, "entities": BOTH, "cats": ["x"]}]),
    "doccano annotations": (
        "x.jsonl",
        [META | {"id": 1, "annotations": [one | {"user": 4} for one in OFFSETS]}],
    ),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_every_export_gives_the_same_nuggets(tool: str, tmp_path: Path) -> None:
    name, content = TOOLS[tool]
    path = written(tmp_path, content, name)
    for form in ("auto", tool.replace(",", " ").split()[0]):
        frame = read_export(path, ONE, form)
        assert fields(frame) == ROWS
    assert set(frame["run"]) == {"mine"}
    assert set(frame["topic"]) == {"T1"}
    assert len(nugget_table(frame, ONE)) == 3


def test_two_regions_of_one_place_are_one_nugget_unless_they_quote_something_else(
    tmp_path: Path,
) -> None:
    """A text selected twice, as who has no choices for a region does it.

    It stands beside a letter that UTF-16 counts twice.
    """
    text = TEXT.replace("Here:", "Here \U0001f3ac:")
    twice = [*region(text, KATWE, "L2", name="x"), *region(text, KATWE, "large", name="y")]
    found = fields(read_export(written(tmp_path, [task(twice, text)]), ONE))
    assert found == [["1", "12", "14", "2", "1 0"], ["2", "", "", "0", ""]]
    twice[1]["value"]["text"] = "Queen of Cats"
    path = written(tmp_path, [task(twice, text)])
    with pytest.raises(
        InputError,
        match=r"'Queen of Cats': found where the text has 'Queen of Katwe', wanted a span",
    ):
        read_export(path, ONE)


def test_positions_are_those_of_the_annotated_transcript(tmp_path: Path) -> None:
    """The transcript counts the words of its lines by itself."""
    lines = "##### T1 mine\n### U1\nA film about chess?\n"
    lines += "### S1\nHere: Searching for Bobby Fischer (1993),\n#L2\n#SIZE: (1,0)\n#WORDS: 4\n"
    lines += "Queen of Katwe.\n#L1\n#SIZE: (1/2,1/2)\n#WORDS: 3\n### U2\nMore?\n### S2\nNo.\n"
    transcripts = parse_transcripts(lines, "", ONE)
    quote = "for Bobby Fischer (1993)"
    marked = [*region(TEXT, quote, "L2", "large"), *REGIONS[:2]]
    plain = re.sub(r"(?m)^#[LSW][^#\s]*:? .*\n|^#L.\n", "", lines)
    as_transcript = [
        *region(plain, quote, "L2", "large"),
        *region(plain, KATWE, "L1", "large", "small", name="b"),
    ]
    for units in ("word", "character", "system-word", "system-character"):
        expected = nugget_frame(transcripts, ["SIZE"], units=units)
        frame = read_export(written(tmp_path, [task(marked)]), ONE, units=units)
        compared = ["turn", "start", "level"]  # the comma and the full stop are letters of no span
        compared += [] if units.endswith("character") else ["end"]
        assert frame[compared].equals(expected[compared])
        same = read_export(written(tmp_path, [task(as_transcript, plain)]), ONE, units=units)
        assert same.drop(columns=["run", "topic"]).equals(frame.drop(columns=["run", "topic"]))
    assert (
        read_export(written(tmp_path, [task(marked)]), ONE, units="system-character")[
            "start"
        ].tolist()[0]
        == "15"
    )


@settings(max_examples=40)
@given(st.text(alphabet="ab 😀東\n", min_size=6, max_size=40), st.data())
def test_a_span_covers_the_words_that_it_touches(text: str, data: st.DataObject) -> None:
    """Against marks put into the text."""
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    if not text[start:end].strip():
        return
    results = region(text, text[start:end], "L1", "large")
    for one in results:
        one["value"] |= {"start": utf16(text, start), "end": utf16(text, end)}
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), [task(results, text)])
        frame, letters = (read_export(path, ONE, units=units) for units in ("word", "character"))
    touched = [
        n
        for n, word in enumerate(re.finditer(r"\S+", text), 1)
        if word.start() < end and word.end() > start
    ]
    assert fields(frame) == [["1", str(touched[0]), str(touched[-1]), "1", "1 0"]]
    before, inside = ("".join(part.split()) for part in (text[:start], text[start:end]))
    assert fields(letters)[0][1:3] == [str(len(before) + 1), str(len(before) + len(inside))]


def test_japanese_by_characters(tmp_path: Path) -> None:
    text = "U:映画は？\nS:七人の侍と東京物語です。"
    results = [
        *region(text, "七人の侍", "L2", "large"),
        *region(text, "東京物語", "L1", "small", name="b"),
    ]
    frame = read_export(written(tmp_path, [task(results, text)]), ONE, units="character")
    assert fields(frame) == [["1", "9", "12", "2", "1 0"], ["1", "14", "17", "1", "0 1"]]
    system = read_export(written(tmp_path, [task(results, text)]), ONE, units="system-character")
    assert fields(system)[0][1:3] == ["3", "6"]


# --- places ---------------------------------------------------------------------------------------


def test_the_quoted_text_tells_how_places_are_counted(tmp_path: Path) -> None:
    text = TEXT.replace("Here", "😀👩‍🚀 Here")
    for units in (utf16, lambda _, place: place):
        results = [
            *region(text, FISCHER, "L2", "large", units=units),
            *region(text, KATWE, "L1", "small", name="b", units=units),
        ]
        frame = read_export(written(tmp_path, [task(results, text)]), ONE)
        assert fields(frame)[0][1:3] == ["7", "11"]
    line = {
        "text": text,
        "label": [
            [utf16(text, text.index(KATWE)), utf16(text, text.index(KATWE)) + 14, "L1|small"]
        ],
    }
    path = written(tmp_path, [line], "x.jsonl")
    with pytest.raises(InputError, match=r"letters beyond 16 bits .* --offsets utf-16"):
        read_export(path, ONE)
    assert fields(read_export(path, ONE, offsets="utf-16"))[0][1:3] == ["12", "14"]
    crossing = region(
        TEXT.replace("Bobby Fischer", "Bobby\nFischer"), "Bobby\nFischer", "L1", "small"
    )
    crossing[0]["value"]["text"] = "Bobby\\nFischer"
    wrapped = written(tmp_path, [task(crossing, TEXT.replace("Bobby Fischer", "Bobby\nFischer"))])
    assert fields(read_export(wrapped, ONE))[0][1:3] == ["8", "9"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda one: one["value"].update(text="Queen of Spades"),
            "span 79-93 'Queen of Spades': found where the text has 'Queen",
        ),
        (lambda one: one["value"].update(start=-1), "a span of one turn"),
        (lambda one: one["value"].update(end=5000), "a span of one turn"),
        (lambda one: one["value"].update(start="81"), "a span of one turn"),
        (
            lambda one: one["value"].update(start=0, end=4, text="User"),
            "annotations in system turns only",
        ),
        (
            lambda one: one["value"].update(start=6, end=12, text="A film"),
            "annotations in system turns only",
        ),
        (
            lambda one: one["value"].update(start=94, end=104, text=TEXT[94:104]),
            "annotations in system turns only",
        ),
        (
            lambda one: one["value"].update(labels=["small"]),
            "no level among SIZE (labels: small), wanted a label such as L2",
        ),
        (lambda one: one["value"].update(labels=["L1"]), "no group of SIZE (labels: L1)"),
        (lambda one: one["value"].update(labels=["L1", "L2", "small"]), "level '1' and '2'"),
        (lambda one: one["value"].update(labels=["L1", "SIZE=huge"]), "SIZE 'huge'"),
        (lambda one: one["value"].update(labels=[]), "no level (labels: none)"),
    ],
)
def test_a_span_that_does_not_hold_is_refused(change: Any, said: str, tmp_path: Path) -> None:
    (one,) = region(TEXT, KATWE, "L1", "small")
    assert fields(read_export(written(tmp_path, [task([one])]), ONE))[0][1:3] == ["11", "13"]
    change(one)
    with pytest.raises(InputError) as error:
        read_export(written(tmp_path, [task([one])]), ONE)
    assert said in str(error.value)
    assert "item 1, task 7, annotation 5, region a, span" in str(error.value)


def test_prose_that_looks_like_a_mark_opens_no_turn(tmp_path: Path) -> None:
    said = TEXT.replace("Here:", "Here:\nAI: what it means.\nU: as in uranium.\n")
    results = region(said, KATWE, "L1", "small")
    frame = read_export(written(tmp_path, [task(results, said)]), ONE)
    assert fields(frame) == [["1", "19", "21", "1", "0 1"], ["2", "", "", "0", ""]]
    transcript = "##### T1 mine\n### U1\nA film?\n### S1\nUser: is a name.\nQueen of Katwe\n"
    frame = read_export(
        written(tmp_path, [task(region(transcript, KATWE, "L1", "small"), transcript)]), ONE
    )
    assert fields(frame) == [["1", "7", "9", "1", "0 1"]]
    both = transcript + transcript.replace("T1", "T2").replace("Queen", "King")
    with pytest.raises(
        InputError, match="several conversations in one text, wanted a task for each"
    ):
        read_export(written(tmp_path, [task(region(both, KATWE, "L1", "small"), both)]), ONE)


# --- labels, tasks, annotators --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "level", "entity", "origin", "size"),
    [
        (region(TEXT, KATWE, "L2|large|Middle East|entity=Katwe"), "2", "Katwe", "0 1 0", "1 0"),
        (
            region(TEXT, KATWE, "l1", "Size: LARGE", "asia", entity=["Queen"]),
            "1",
            "Queen",
            "1 0 0",
            "1 0",
        ),
        (
            region(TEXT, KATWE, "large", "Asia", "Middle East", level=["level 3"]),
            "3",
            "",
            "1/2 1/2 0",
            "1 0",
        ),
        (region(TEXT, KATWE, "L1", SIZE=["small"], ORIGIN=["small"]), "1", "", "0 0 1", "0 1"),
        (region(TEXT, KATWE, "L1|SIZE=1/4 3/4|ORIGIN=0 1 0"), "1", "", "0 1 0", "1/4 3/4"),
        (region(TEXT, KATWE, "L0"), "0", "", "", ""),
    ],
)
def test_what_labels_mean(
    results: Any, level: str, entity: str, origin: str, size: str, tmp_path: Path
) -> None:
    frame = read_export(written(tmp_path, [task(results)]), SETS)
    row = frame.iloc[0]
    assert (row["level"], row.get("entity", ""), row["ORIGIN"], row["SIZE"]) == (
        level,
        entity,
        origin,
        size,
    )


def test_a_label_of_two_sets_is_refused_and_a_table_says_what_others_mean(tmp_path: Path) -> None:
    path = written(tmp_path, [task(region(TEXT, KATWE, "L1", "small", "nugget"))])
    with pytest.raises(InputError, match="'small', a group of SIZE, ORIGIN"):
        read_export(path, SETS)
    with pytest.warns(
        Note, match=r"labels that name neither a level nor a group \(see --labels\): nugget"
    ):
        read_export(path, ONE)
    labels = pd.DataFrame(
        {
            "label": ["nugget", "small"],
            "level": ["", ""],
            "ORIGIN": ["Asia", ""],
            "SIZE": ["", "small"],
        }
    )
    assert read_export(path, SETS, labels=labels).iloc[0]["ORIGIN"] == "1 0 0"


def test_several_annotators_are_told_apart_and_tasks_without_one_are_counted(
    tmp_path: Path,
) -> None:
    both = task(REGIONS, who={"email": "a@b.c"})
    both["annotations"] += [
        {"completed_by": 2, "result": REGIONS[:2]},
        {"completed_by": 3, "was_cancelled": True, "result": []},
    ]
    other = task([], TEXT, who=2, topic="T2")
    path = written(tmp_path, [both, other, task([], TEXT, topic="T3") | {"annotations": []}])
    with pytest.raises(
        ValueError, match=r"annotations of a@b.c, 2; wanted one of them: --annotator"
    ):
        read_export(path, ONE)
    with pytest.warns(Note, match="2 of 3 tasks are not annotated by a@b.c and left out"):
        assert fields(read_export(path, ONE, annotator="a@b.c")) == ROWS
    with pytest.warns(Note, match="1 of 3 tasks"):
        frame = read_export(path, ONE, annotator="2")
    assert frame[["topic", "turn", "level"]].to_numpy().tolist() == [
        ["T1", *x] for x in ("11", "20")
    ] + [["T2", *x] for x in ("10", "20")]


def test_answers_annotated_one_by_one_are_one_conversation(tmp_path: Path) -> None:
    said = [
        ("A film about chess?", "Here: Searching for Bobby Fischer (1993), Queen of Katwe."),
        ("More?", "No."),
    ]
    tasks = []
    for turn, (user, text) in reversed([*enumerate(said, 1)]):
        results = (
            [
                *region(text, FISCHER[:27], "L2", "large"),
                *region(text, KATWE, "L1", "large", "small", name="b"),
            ]
            if turn == 1
            else []
        )
        tasks.append(task(results, text, turn=turn, user=user))
    assert fields(read_export(written(tmp_path, tasks), ONE)) == ROWS
    with pytest.raises(
        InputError, match="conversation T1 of mine again, wanted each once, or turn in its data"
    ):
        read_export(written(tmp_path, [*tasks, tasks[0]]), ONE)


# --- the command ----------------------------------------------------------------------------------


def test_from_an_export_to_gfrc2_in_two_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, [task(REGIONS)])
    Path("sets.yaml").write_text("SIZE: {kind: nominal, groups: [large, small], target: uniform}\n")
    assert called("nuggets", "x.json", "--attributes", "sets.yaml", "-o", "n.csv").exit_code == 0
    result = called("score", "gfrc2", "n.csv", "--attributes", "sets.yaml")
    assert "mine,T1,,GFRC2," in result.stdout
    written(tmp_path, [{"text": "Tenet", "label": [[0, 5, "FILM"]]}], "d.jsonl")
    Path("labels.csv").write_text("label,level,SIZE\nFILM,2,1/4 3/4\n")
    done = called("nuggets", "d.jsonl", "--attributes", "sets.yaml", "--labels", "labels.csv")
    assert done.stdout == "run,topic,turn,start,end,level,SIZE\nd,1,1,1,1,2,1/4 3/4\n"
    Path("y.json").write_text('{"a": 1}')
    assert (
        "an object with 'a', wanted label-studio, doccano, transcript"
        in called("nuggets", "y.json", "--attributes", "sets.yaml").stderr
    )
    wrong = called("nuggets", "x.json", "--from", "doccano", "--attributes", "sets.yaml")
    assert "wanted a task of doccano" in wrong.stderr
    assert (
        "no such column"
        in called("nuggets", "d.jsonl", "--attributes", "sets.yaml", "--labels", "n.csv").stderr
    )


# --- several annotators, spans within spans, figures ----------------------------------------------


def three_annotators(tmp_path: Path) -> Path:
    """An export, laid out for reading, of which the second annotator has a span within a span."""
    content = task(region(TEXT, KATWE, "L2", "small"))
    results = [
        region(TEXT, f"{KATWE}", "L2", "small", name="b1"),
        region(TEXT, "Katwe", "L1", "large", name="b2"),
    ]
    marked = region(TEXT, "Bobby Fischer", "L1", "large", name="c1")
    content["annotations"] += [
        {"id": 6, "completed_by": 2, "result": [*results[0], *results[1]]},
        {"id": 8, "completed_by": 3, "result": region(TEXT, KATWE, "L1", "small") + marked},
    ]
    path = tmp_path / "three.json"
    path.write_text(json.dumps([content | {"project": 3}], indent=2))
    (tmp_path / "one.yaml").write_text(
        "SIZE: {kind: nominal, groups: [large, small], target: uniform}\n"
    )
    return path


def test_spans_within_spans_are_refused_by_name_or_chosen_of(tmp_path: Path) -> None:
    path = three_annotators(tmp_path)
    with pytest.raises(InputError) as error:
        read_export(path, ONE, annotator="2")
    said = str(error.value)
    assert "project 3, task 7, annotation 6, region b2, span " in said
    assert "within project 3, task 7, annotation 6, region b1, span" in said
    for nested, words in (("outermost", ["11", "13"]), ("innermost", ["13", "13"])):
        with pytest.warns(Note, match=f"1 spans that are not the {nested} are left out by 2"):
            frame = read_export(path, ONE, annotator="2", nested=nested)
        assert fields(frame)[0][1:3] == words
    across = region(TEXT, "Queen of", "L1", "small") + region(TEXT, "of Katwe", "L1", "small")
    with pytest.raises(InputError, match="over the end of"):
        read_export(written(tmp_path, [task(across)]), ONE, nested="outermost")


def test_one_command_from_an_export_to_agreement(tmp_path: Path) -> None:
    path = three_annotators(tmp_path)
    words = ["agreement", str(path), "--attributes", str(tmp_path / "one.yaml"), "--draws", "9"]
    result = called(*words, "--nested", "outermost")
    assert result.exit_code == 0, result.output
    assert "annotators: 1, 2, 3" in result.stderr
    assert ",,,nuggets found by several,1,,,2" in result.stdout
    assert re.search("^mine,T1,,GFRC2,.*,3$", result.stdout, re.MULTILINE)
    one = tmp_path / "alone.json"
    one.write_text(json.dumps([task(region(TEXT, KATWE, "L2", "small"))]))
    alone = called("agreement", str(one), *words[2:])
    assert alone.exit_code == 2
    assert f"{one}: annotations of 1 alone" in alone.stderr


def test_the_nuggets_of_an_export_are_drawn_with_its_turns(tmp_path: Path) -> None:
    path, figure = three_annotators(tmp_path), tmp_path / "f.svg"
    words = ["nuggets", str(path), "--attributes", str(tmp_path / "one.yaml"), "--annotator", "3"]
    result = called(*words, "-o", str(tmp_path / "n.csv"), "--figure", str(figure))
    assert result.exit_code == 0, result.output
    assert b"<svg" in figure.read_bytes()[:500]
    annotated = annotation_exports.read_export(path, ONE, annotator="3")
    assert annotated.turns[["turn", "speaker", "start", "end"]].to_numpy().tolist() == [
        [1, "user", 1, 4],
        [1, "system", 5, 13],
        [2, "user", 14, 14],
        [2, "system", 15, 15],
    ]
    assert "--units" in called(*words, "--units", "character", "--figure", str(figure)).stderr
