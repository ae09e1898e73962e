"""Topics files of conversations: all formats are read alike, and what is wrong is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from equipoise.errors import InputError
from equipoise.loaders.topics import read_topics

SAID = ["What is asthma?", "Can it be cured?", "Tell me more about bronchitis."]
CAST_2019 = [
    {
        "number": 31,
        "title": "t",
        "turn": [{"number": n, "raw_utterance": text} for n, text in enumerate(SAID, 1)],
    }
]
CAST_2020 = json.loads(
    json.dumps(CAST_2019).replace('"}', '", "manual_canonical_result_id": "MARCO_1"}')
)
IKAT = [
    {
        "number": "31",
        "ptkb": {"1": "I smoke."},
        "turns": [
            {"turn_id": n, "utterance": text, "response": f"r{n}"} for n, text in enumerate(SAID, 1)
        ],
    }
]
LINES = "\n".join(f"31_{n}\t{text}" for n, text in enumerate(SAID, 1)) + "\n\n"
FORMS = {
    name: json.dumps(topics)
    for name, topics in (("2019", CAST_2019), ("2020", CAST_2020), ("iKAT", IKAT))
}
FORMS |= {"lines": LINES}


def read(folder: Path, text: str) -> pd.DataFrame:
    (folder / "topics").write_text(text, encoding="utf-8")
    return read_topics(folder / "topics")


@pytest.mark.parametrize("form", FORMS)
def test_every_format_has_the_same_utterances(form: str, tmp_path: Path) -> None:
    table = read(tmp_path, FORMS[form])
    assert table["query"].tolist() == ["31_1", "31_2", "31_3"]
    assert set(table["topic"]) == {"31"}
    assert table["turn"].tolist() == [1, 2, 3]
    assert table["text"].tolist() == SAID


TURN = {"number": 1, "raw_utterance": "What?"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("31_1\tWhat?\n31_2 Why?\n", "line 2: must be an id such as 31_4, a tab, the utterance"),
        ("31_1\tWhat?\n31_2\t \n", "line 2: must be an id such as 31_4"),
        ("first\tWhat?\n", "line 1: must be an id such as 31_4"),
        ("a b_1\tWhat?\n", "line 1: must be an id such as 31_4"),
        ("31_1\tWhat?\n\n31_1\tWhy?\n", "line 3: each turn must be given once, got '31_1'"),
        ('[{"number": 1,\n "turn": [}]', "must be a JSON list of topics, got invalid JSON"),
        ("{}", "must be a JSON list of topics"),
        ("[]", "must be a JSON list of topics"),
        ([{"number": 1, "turn": []}], "must be topics with at least one utterance"),
        (["three"], "topic 1 must have a list turn .CAsT. or turns .iKAT."),
        ([{"number": 1, "turn": {}}], "topic 1 must have a list turn"),
        ([{"number": "1 2", "turn": [TURN]}], "topic 1, turn 1 must have numbers, or words"),
        (
            [{"number": 1, "turn": [TURN, {"number": 2}]}],
            "turn 2 must have a text as raw_utterance",
        ),
        ([{"number": 1, "turn": [TURN, TURN]}], "topic 1, turn 2: each turn must be given once"),
    ],
)
def test_a_malformed_file_is_named_by_place(content: Any, message: str, tmp_path: Path) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)
