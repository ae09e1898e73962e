"""Guards topics files of conversations: read alike, refused by place, written as they came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.loaders.topics import Topics, read_topics
from equipoise.problems import InputError

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


def read(folder: Path, text: str) -> Topics:
    (folder / "topics").write_text(text, encoding="utf-8")
    return read_topics(folder / "topics")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same_and_is_written_as_it_came(form: str, tmp_path: Path) -> None:
    topics = read(tmp_path, FORMS[form])
    table = topics.utterances
    assert table["query"].tolist() == ["31_1", "31_2", "31_3"]
    assert set(table["topic"]) == {"31"}
    assert table["turn"].tolist() == [1, 2, 3]
    assert table["text"].tolist() == SAID
    assert topics.ending == (".tsv" if form == "lines" else ".json")
    written = topics.conversation("31-5", ["31_1", "31_3"], [SAID[0], SAID[2]])
    again = read(tmp_path, written if form == "lines" else f"[\n{written}\n]\n")
    assert again.utterances["query"].tolist() == ["31-5_1", "31-5_2"]
    assert again.utterances["text"].tolist() == [SAID[0], SAID[2]]
    if form != "lines":  # what else is said of a topic and of a turn comes along
        before, after = json.loads(FORMS[form])[0], json.loads(written)
        turns, own = ("turns", "turn_id") if form == "iKAT" else ("turn", "number")
        assert {**before, "number": "31-5", turns: after[turns]} == after
        assert after[turns] == [before[turns][0], before[turns][2] | {own: 2}]


WRONG: list[tuple[Any, list[str]]] = [
    ("31_1\tWhat?\n31_2 Why?\n", ["line 2: found 1 fields, wanted two: id, a tab, the utterance"]),
    ("31_1\tWhat?\n31_2\t \n", ["line 2: found 2 fields, wanted two: id, a tab, the utterance"]),
    ("31_1\tWhat?\n\n31_1\tWhy?\n", ["line 3, column id: found 31_1 again, wanted each turn once"]),
    (
        "first\tWhat?\n",
        ["line 1, column id: found 'first', wanted a topic and a turn, such as 31_4"],
    ),
    (
        "a b_1\tWhat?\n",
        ["line 1, column id: found 'a b_1', wanted a topic and a turn, such as 31_4"],
    ),
    (
        '[{"number": 1,\n "turn": [}]',
        ["found no JSON (Expecting value at line 2, character 11), wanted a JSON list"],
    ),
    ("{}", ["found '{}', wanted a JSON list of topics"]),
    ("[]", ["found '[]', wanted a JSON list of topics"]),
    ([{"number": 1, "turn": []}], ["found topics without turns, wanted at least one utterance"]),
    (
        ["three"],
        [
            "topic at place 1, number: found nothing",
            "topic at place 1: found no turns, wanted a list turn",
        ],
    ),
    (
        [{"number": 1, "turn": {}}],
        ["topic at place 1: found no turns, wanted a list turn (CAsT) or turns (iKAT)"],
    ),
    (
        [{"number": True, "turn": []}],
        ["topic at place 1, number: found bool 'True', wanted a number, or a text"],
    ),
    ([{"number": "1 2", "turn": []}], ["topic at place 1, number: found str '1 2'"]),
    (
        [
            {
                "number": 1,
                "turn": [
                    {"number": 1, "raw_utterance": "What?"},
                    {"number": 1, "raw_utterance": "Why?"},
                ],
            }
        ],
        ["topic 1, turn at place 2: found 1_1 again, wanted each turn once"],
    ),
    (
        [{"number": 1, "turn": [{"number": 1}, {"number": 2, "raw_utterance": " "}, 3]}],
        [
            "topic 1, turn at place 1, raw_utterance: found nothing, wanted a text",
            "topic 1, turn at place 2, raw_utterance: found str ' ', wanted a text",
            "topic 1, turn at place 3, number: found nothing, "
            "wanted a number, or a text without blanks",
        ],
    ),
    (
        [{"number": 1, "turns": [{"number": 1, "raw_utterance": "a"}]}],
        ["topic 1, turn at place 1, turn_id: found"],
    ),
]


@pytest.mark.parametrize(("content", "said"), WRONG)
def test_a_malformed_file_is_refused_by_place(
    content: Any, said: list[str], tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, content if isinstance(content, str) else json.dumps(content))
    assert str(caught.value).startswith(str(tmp_path / "topics"))
    for line in said:
        assert line in str(caught.value)
