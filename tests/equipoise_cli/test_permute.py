"""Guards the command permute: its inputs and permutations, by the files that it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from equipoise_cli import main

TOPICS = [
    {
        "number": 7,
        "turn": [
            {"number": number, "raw_utterance": text}
            for number, text in enumerate(["What?", "Why?", "Who?", "When?"], start=1)
        ],
    },
    {"number": 8, "turn": [{"number": 1, "raw_utterance": "Where?"}]},
]
CLASSES = "query,class\n7_1,SE\n7_2,FT\n7_3,SE\n7_4,PT\n8_1,SE\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("topics.json").write_text(json.dumps(TOPICS))
    Path("classes.csv").write_text(CLASSES)
    Path("qrels.txt").write_text("7_2 0 d1 1\n7_4 0 d2 0\n")
    return tmp_path


def permute(*options: str, code: int = 0) -> str:
    words = ["permute", "--topics", "topics.json", "--classes", "classes.csv", "-o", "out"]
    ended = CliRunner().invoke(main, [*words, *options])
    assert ended.exit_code == code, ended.output
    return ended.output


def written() -> tuple[dict[str, Any], pd.DataFrame]:
    """Inputs by id, and the table of permutations."""
    lines = Path("out/inputs.jsonl").read_text().splitlines()
    inputs = {line["id"]: line for line in map(json.loads, lines)}
    assert len(inputs) == len(lines)
    return inputs, pd.read_csv("out/permutations.csv", dtype=str)


@pytest.mark.parametrize("context", ["history", "previous"])
@pytest.mark.usefixtures("folder")
def test_every_position_has_the_input_of_its_utterances(context: str) -> None:
    said = permute("--context", context)
    inputs, table = written()
    orders = table.groupby(["topic", "permutation"], sort=False)["query"].agg(list)
    assert orders.tolist() == [
        ["7_1", "7_2", "7_3", "7_4"],
        ["7_1", "7_3", "7_4", "7_2"],
        ["8_1"],
    ]
    for (_, permutation), rows in table.groupby(["topic", "permutation"], sort=False):
        spoken = rows["query"].tolist()
        for place, name in enumerate(rows["id"]):
            earlier = spoken[:place] if context == "history" else spoken[max(place - 1, 0) : place]
            assert inputs[name]["query"] == spoken[place], permutation
            assert [turn["query"] for turn in inputs[name]["context"]] == earlier
    assert inputs[table["id"].iloc[1]]["utterance"] == "Why?"
    assert set(table["id"]) == set(inputs)
    n_inputs = 8 if context == "history" else 7
    assert f"2 conversations, 5 utterances, 3 permutations: {n_inputs} inputs to run" in said


@pytest.mark.usefixtures("folder")
def test_judged_utterances_stay_with_the_first_of_their_topic() -> None:
    permute("--qrels", "qrels.txt")
    _, table = written()
    assert set(table["query"]) == {"7_1", "7_2", "7_4"}


@pytest.mark.usefixtures("folder")
def test_the_same_seed_gives_the_same_files() -> None:
    permute("--permutations", "1", "--seed", "3")
    first = Path("out/permutations.csv").read_bytes()
    Path("out").rename("before")
    permute("--permutations", "1", "--seed", "3")
    assert Path("out/permutations.csv").read_bytes() == first
