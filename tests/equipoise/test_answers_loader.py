"""Guards the reader of answers with citations: columns, faults by line, and the round trip."""

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.errors import InputError
from equipoise.loaders.answers import read_answers

ANSWER: dict[str, Any] = {
    "question": "q1",
    "mode": "Informed",
    "relevant_author": "Human",
    "nonrelevant_author": "LLM",
    "answer": "In Wales [2].",
    "relevant": [2],
    "documents": 5,
    "gold": ["Wales"],
    "citations": [{"document": 2, "probability": 0.97}],
    "model": "mine",
}


def written(folder: Path, *rows: Any) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_keys_are_columns_and_the_defaults_are_filled_in(tmp_path: Path) -> None:
    second = {key: value for key, value in ANSWER.items() if key not in ("gold", "citations")}
    second |= {"question": 7, "mode": "Vanilla/Vanilla"}
    table = read_answers(written(tmp_path, ANSWER, second))
    assert table.columns.tolist() == [*list(ANSWER)[:7], "citations", "gold", "model"]
    assert table["question"].tolist() == ["q1", "7"]
    assert table["mode"].tolist() == ["Informed", "Vanilla"]
    assert table["relevant"].tolist() == [(2,), (2,)]
    assert table["gold"].tolist() == [("Wales",), ()]
    assert table["citations"].tolist() == [ANSWER["citations"], None]


def test_cached_outputs_are_read_without_their_settings(tmp_path: Path) -> None:
    recorded = {"record": "answer", **ANSWER}
    table = read_answers(written(tmp_path, {"record": "settings", "seed": 1}, recorded))
    assert len(table) == 1
    assert "record" not in table.columns


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"question": ""}, "question"),
        ({"mode": "informed"}, "mode"),
        ({"answer": None}, "answer"),
        ({"relevant": []}, "relevant"),
        ({"relevant": [0]}, "relevant"),
        ({"relevant": [True]}, "relevant"),
        ({"documents": 0}, "documents"),
        ({"gold": "Wales"}, "gold"),
        ({"citations": [{"document": 2, "probability": 1.5}]}, "citations"),
        ({"citations": [{"document": 2, "p": 1.0}]}, "citations"),
    ],
)
def test_a_fault_is_named_by_line_and_key(
    tmp_path: Path, change: dict[str, Any], column: str
) -> None:
    path = written(tmp_path, ANSWER, {**ANSWER, **change})
    with pytest.raises(InputError, match=rf'answers.jsonl, line 2, column "{column}": .*must be '):
        read_answers(path)


def test_missing_keys_other_lines_and_empty_files_are_faults(tmp_path: Path) -> None:
    without = {key: value for key, value in ANSWER.items() if key != "relevant_author"}
    with pytest.raises(InputError, match='column "relevant_author": must be a key of each line'):
        read_answers(written(tmp_path, without))
    with pytest.raises(InputError, match="line 1: must be a JSON object"):
        read_answers(written(tmp_path, [1]))
    with pytest.raises(InputError, match="at least one answer"):
        read_answers(written(tmp_path, {"record": "settings"}))
