"""Guards the records of studies: settings, lines that grow, rows replaced, every problem told."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_studies import recording

FIELDS = {"text": str, "score": float}


def test_settings_name_models_versions_and_inputs_by_what_identifies_them(tmp_path: Path) -> None:
    weights = tmp_path / "w.bin"
    weights.write_bytes(b"weights")
    prompt = project.data("prompts", "names.txt")
    found = recording.settings_of(
        seed=3,
        models={"tiny": weights, "other": "ab"},
        packages=["numpy"],
        inputs=[prompt],
        depth=(1, 2),
    )
    assert found == {
        "seed": 3,
        "models": {"tiny": project.sha256(weights), "other": "ab"},
        "versions": {"numpy": np.__version__},
        "inputs": {"data/prompts/names.txt": project.sha256(prompt)},
        "depth": (1, 2),
    }
    noted = recording.settings_of()["inputs"]
    assert noted["data/prompts/names.txt"] == project.sha256(
        prompt
    )  # what was read is known without being named
    assert not [name for name in noted if name.startswith("data/outputs/")]


def test_lines_go_on_and_other_settings_are_named(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "r.jsonl"
    settings = recording.settings_of(seed=1, inputs=[], depth=(1, 2))
    assert recording.begin(path, settings, "line", FIELDS, ["key"]) == []
    recording.add(path, "line", {"key": 1, "text": "a", "score": 0.5})
    path.write_bytes(path.read_bytes() + b'{"record": "li')  # an interruption
    (held,) = recording.begin(path, settings, "line", FIELDS, ["key"])
    assert held == {"record": "line", "key": 1, "text": "a", "score": 0.5}
    recording.add(path, "line", {"key": 2, "text": "b", "score": 1.0})
    stated, lines = recording.read(path, "line", FIELDS, ["key"])
    assert [line["key"] for line in lines] == [1, 2]
    assert stated == recording.read_settings(path)
    with pytest.raises(InputError) as caught:
        recording.begin(path, settings | {"seed": 2, "depth": [3]}, "line", FIELDS, ["key"])
    assert [problem.column for problem in caught.value.problems] == ["depth", "seed"]


def test_every_bad_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    good = {"record": "line", "key": 1, "text": "a", "score": 0.5}
    lines = [{"record": "settings"}, good, good, good | {"text": 3}, good | {"record": "turn"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"record": "line"}\nx\n')
    with pytest.raises(InputError) as caught:
        recording.read(path, "line", FIELDS, ["key"])
    told = {problem.line: problem.found for problem in caught.value.problems}
    assert told == {
        3: '{"key": 1} again',
        4: "no good value for text",
        5: "'turn'",
        6: "no good value for text, score, key",
        7: "a line that is not JSON",
    }


def test_rows_are_replaced_by_key_and_sorted(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "t.csv"
    recording.replace_rows(
        path, pd.DataFrame({"q": ["b", "b"], "rank": [10, 2], "v": [1 / 3, np.nan]}), ["q", "rank"]
    )
    assert path.read_text() == "q,rank,v\nb,2,\nb,10,0.333333\n"
    recording.replace_rows(
        path, pd.DataFrame({"q": ["b", "a"], "rank": [2, 1], "v": [0.5, 2e-9]}), ["q", "rank"]
    )
    assert path.read_text() == "q,rank,v\na,1,2e-09\nb,2,0.5\nb,10,0.333333\n"
    assert [file.name for file in path.parent.iterdir()] == ["t.csv"]


def test_settings_of_rows_stand_and_what_was_measured_grows(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "t.json"
    settings = recording.settings_of(seed=1, inputs=[], cuts=(5, 10))
    recording.state(path, settings, {"seconds": 3})
    recording.state(path, settings, {"loss": 0.5})
    assert recording.read_settings(path)["measured"] == {"seconds": 3, "loss": 0.5}
    before = path.read_bytes()
    with pytest.raises(
        InputError, match="column cuts: found \\[5, 10\\], wanted \\[5\\], or another record"
    ):
        recording.state(path, settings | {"cuts": [5]})
    assert path.read_bytes() == before
    path.write_text("[1, 2]")
    with pytest.raises(InputError, match="a JSON object"):
        recording.read_settings(path)
