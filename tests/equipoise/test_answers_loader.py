"""Guards the reader of answers and ``equipoise score attribution``: what is kept, refused, told."""

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from equipoise.answer_modes import MODES
from equipoise.loaders.answers import read_answers
from equipoise.measures.attribution import score_attribution
from equipoise.problems import InputError
from equipoise_cli import main

ROW = {
    "question": "q1",
    "mode": "Vanilla",
    "relevant_author": "Human",
    "nonrelevant_author": "LLM",
    "answer": "In Wales [2].",
    "relevant": [2],
}


def written(folder: Path, *rows: Any) -> Path:
    """A file of rows, which are objects or lines as they stand."""
    path = folder / "mine.jsonl"
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows),
        encoding="utf-8",
    )
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_answers(path)
    return [str(problem).partition(f"{path}, ")[2] for problem in caught.value.problems]


def test_a_whole_line_is_kept(tmp_path: Path) -> None:
    more = {"documents": 5, "gold": ["Wales", "Cymru"], "model": "m", "seed": 3, "temperature": 0.5}
    cited = [
        {"document": 2, "probability": 1},
        {"document": 9, "probability": None},
        {"document": 0},
    ]
    path = written(
        tmp_path,
        ROW | more | {"citations": cited},
        ROW | more | {"mode": "Informed/Informed", "question": 7},
    )
    table = read_answers(path)
    assert table.columns.tolist() == [
        *ROW,
        "documents",
        "citations",
        "gold",
        "model",
        "seed",
        "temperature",
    ]
    first, second = table.to_dict("records")
    assert first["relevant"] == (2,)
    assert first["gold"] == ("Wales", "Cymru")
    assert first["citations"] == [
        {"document": 2, "probability": 1.0},
        {"document": 9, "probability": None},
        {"document": 0, "probability": None},
    ]
    assert second["citations"] is None
    assert [second["question"], second["mode"], second["seed"]] == ["7", "Informed", 3]
    plain = read_answers(written(tmp_path, ROW))
    assert plain.columns.tolist() == [*ROW, "citations", "gold"]
    assert plain["gold"].tolist() == [()]


def test_a_recording_is_read_without_its_settings_and_without_a_torn_line(tmp_path: Path) -> None:
    how = {
        "finish": "stop",
        "seconds": 1.5,
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "shown": ["d1", "d2"],
    }
    line = {"record": "answer"} | ROW | {"documents": 2} | how
    settings = {"record": "settings", "seed": 1}
    path = written(tmp_path, settings, line, line | {"question": "q2"})
    path.write_bytes(path.read_bytes() + b'{"record": "answer", "ques')
    table = read_answers(path)
    assert table["question"].tolist() == ["q1", "q2"]
    assert table["shown"].tolist() == [("d1", "d2")] * 2
    assert "record" not in table
    # what only says how an answer came about tells no two apart
    again = written(tmp_path, settings, line, line | {"seconds": 2.0, "completion_tokens": 4})
    assert problems(again)[0].startswith(
        "line 3: found question 'q1' in mode Vanilla again, as on line 2"
    )
    (said,) = problems(written(tmp_path, settings, line | {"record": "turn"}))
    assert said.startswith("line 2, column record: found 'turn'")
    with pytest.raises(InputError, match="settings without an answer"):
        read_answers(written(tmp_path, settings))


def test_marks_ends_of_line_and_empty_lines_do_not_matter(tmp_path: Path) -> None:
    plain = read_answers(
        written(tmp_path, ROW, ROW | {"question": "q2", "answer": "a\u2028b\u0085c [1]"})
    )
    path = tmp_path / "other.jsonl"
    lines = [
        json.dumps(ROW),
        "",
        json.dumps(ROW | {"question": "q2", "answer": "a\u2028b\u0085c [1]"}, ensure_ascii=False),
    ]
    path.write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    pd.testing.assert_frame_equal(read_answers(path), plain)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"question": ""}, "column question: found '', wanted a text that is not empty"),
        ({"question": True}, "column question: found true, wanted a text"),
        ({"question": 10**30}, "column question: found a number of very many digits"),
        (
            {"mode": "informed"},
            "column mode: found 'informed', wanted Vanilla, Informed, CF-informed, or two",
        ),
        ({"mode": 3}, "column mode: found 3, wanted Vanilla, Informed"),
        (
            {"relevant_author": "  "},
            "column relevant_author: found '  ', wanted a text that is not empty",
        ),
        ({"answer": None}, "column answer: found null, wanted a text"),
        ({"answer": "\ud800"}, "line 2: found half a surrogate pair"),
        ({"relevant": 2}, "column relevant: found 2, wanted a list of the numbers"),
        ({"relevant": []}, "column relevant: found an empty list"),
        ({"relevant": [2, 2]}, "column relevant: found a number twice"),
        ({"relevant": [True]}, "column relevant: found true, wanted a list of the numbers of"),
        ({"relevant": [1.0]}, "column relevant: found 1.0, wanted a list of the numbers of"),
        ({"relevant": [0]}, "column relevant: found 0, wanted a list of the numbers of"),
        ({"documents": 1}, "column relevant: found 2, wanted numbers from 1 to documents, 1"),
        ({"documents": False}, "column documents: found false, wanted a whole number from 1"),
        ({"documents": None}, "column documents: found null, wanted a whole number from 1"),
        ({"gold": "Wales"}, "column gold: found 'Wales', wanted a list of gold answers"),
        ({"gold": [""]}, "column gold: found '', wanted a list of gold answers"),
        ({"citations": {}}, "column citations: found an object with nothing, wanted a list"),
        (
            {"citations": [2]},
            "column citations: found 2, wanted a list of objects with document and probability",
        ),
        (
            {"citations": [{"probability": 1}]},
            "column citations: found an object with 'probability', wanted a list of objects",
        ),
        ({"citations": [{"document": 1, "p": 1}]}, "found the key 'p' in an object"),
        (
            {"citations": [{"document": -1}]},
            "column citations: found -1, wanted a list of objects with document and probability",
        ),
        (
            {"citations": [{"document": 1, "probability": 1.5}]},
            "found 1.5, wanted a list of objects with document and probability",
        ),
        (
            {"citations": [{"document": 1, "probability": True}]},
            "found true, wanted a list of objects with document and probability",
        ),
        (
            {"citations": [{"document": 1, "probability": "1"}]},
            "found '1', wanted a list of objects with document and probability",
        ),
        ({"model": None}, "column model: found null, wanted a text, or a number that"),
        ({"model": [1]}, "column model: found a list, wanted a text, or a number that"),
        (
            {"seed": 10**30},
            "column seed: found a number of very many digits, "
            "wanted a text, or a number that a table can hold",
        ),
        (
            {"seed": float("nan")},
            "column seed: found nan, wanted a text, or a number that a table can hold",
        ),
        ({"": 1}, "found an empty key, wanted keys that are not empty"),
        ({"\ud800": 1}, "found half a surrogate pair"),
    ],
)
def test_a_bad_value_is_named_by_line_and_key(
    change: dict[str, Any], told: str, tmp_path: Path
) -> None:
    (said,) = problems(written(tmp_path, "", ROW | change))
    assert said.startswith("line 2")
    assert told in said


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 1: found no JSON"),
        ("[1]", "column item 1: found '1', wanted a JSON object"),
        ("null", "line 1: found 'None', wanted a JSON object"),
        ('{"question": 1, "question": 2}', "line 1: found the key 'question' twice"),
        ("[" * 100_000, "line 1: found values within values without end"),
        ('{"a": ' * 50_000, "line 1: found values within values without end"),
        ("9" * 5000, "line 1: found a number of very many digits"),
    ],
)
def test_what_is_no_object_is_told(line: str, told: str, tmp_path: Path) -> None:
    (said,) = problems(written(tmp_path, line))
    assert said.startswith(told)


def test_numbers_beyond_every_float_are_refused(tmp_path: Path) -> None:
    line = json.dumps(ROW)[:-1] + ', "seed": 1e999}'
    assert problems(written(tmp_path, line)) == [
        "line 1, column seed: found inf, wanted a text, or a number that a table can hold"
    ]


def test_all_problems_are_told_together(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"question": "q0", "mode": "None"},
        ROW | {"model": "m"},
        ROW | {"model": "m"},
        ROW | {"mode": "Informed", "model": 3},
        ROW | {"mode": "Informed", "seed": 3},
        ROW | {"mode": "Informed", "model": "m", "relevant_author": "Bot"},
        ROW | {"mode": "Vanilla/Vanilla", "model": "m"},
        "x",
    )
    assert problems(path) == [
        "line 1, column mode: found 'None', "
        "wanted Vanilla, Informed, CF-informed, or two of them as X/Y",
        "line 1, column relevant_author: found no such key, wanted it on every line",
        "line 1, column nonrelevant_author: found no such key, wanted it on every line",
        "line 1, column answer: found no such key, wanted it on every line",
        "line 1, column relevant: found no such key, wanted it on every line",
        "line 3: found question 'q1' in mode Vanilla again, as on line 2, "
        "wanted each answer once, or a further key that tells them apart",
        "line 4, column model: found 3, wanted a text, as on line 2",
        "line 5, column model: found no such key, wanted the keys of line 2",
        "line 5, column seed: found a key more, wanted the keys of line 2",
        "line 6, column relevant_author: found a third author, 'Bot', wanted 'Human' or 'LLM'",
        "line 7: found question 'q1' in mode Vanilla again, as on line 2, "
        "wanted each answer once, or a further key that tells them apart",
        "line 8: found no JSON (Expecting value at character 1), "
        "wanted a JSON object a line, or one JSON value",
    ]


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    with pytest.raises(InputError, match="wanted a readable file"):
        read_answers(path)
    for content, told in (
        (b"", "an empty file"),
        (b"\xef\xbb\xbf\n", "an empty file"),
        (b'{"a": "\xff"}', "not UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=told):
            read_answers(path)


def test_reading_stops_after_many_problems(tmp_path: Path) -> None:
    assert len(problems(written(tmp_path, ROW, *["x"] * 500))) == 100


def read_or_told(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """The table, or an empty one and what was said; any other exception fails the test."""
    try:
        return read_answers(path), []
    except InputError as error:
        return pd.DataFrame(), [str(problem) for problem in error.problems]


@given(st.lists(st.one_of(st.binary(max_size=40), st.just(json.dumps(ROW).encode())), max_size=4))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(b"\n".join(lines))
    table, told = read_or_told(path)
    assert bool(told) == table.empty
    assert len(table) <= 1


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(key=st.sampled_from([*ROW, "documents", "gold", "citations", "model"]), value=values)
def test_any_value_is_kept_or_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "value.jsonl"
    path.write_text(json.dumps(ROW | {key: value}) + "\n", encoding="utf-8")
    table, told = read_or_told(path)
    if table.empty:
        (problem,) = told
        assert problem.startswith(f"{path}, line 1")
    else:
        json.dumps(table[key].tolist()[0]).encode("utf-8")
        table.to_csv(io.StringIO())


# --- the command ----------------------------------------------------------------------------------


def answers(folder: Path, authors: tuple[str, str] = ("Human", "LLM")) -> Path:
    rows = [
        ROW
        | {
            "question": place,
            "mode": mode,
            "model": model,
            "documents": 3,
            "gold": ["Wales"] if place else [],
        }
        | {"relevant_author": authors[0], "nonrelevant_author": authors[1]}
        | {
            "answer": "Wales "
            + "".join(f"[{1 + (place * step) % 4}]" for step in range(number + 1))
        }
        | {
            "citations": [
                {"document": 2, "probability": 0.25 * number},
                {"document": 1, "probability": None},
            ]
        }
        for model in "xy"
        for number, mode in enumerate(MODES)
        for place in range(6)
    ]
    return written(folder, *rows)


def called(path: Path, *more: str) -> Any:
    return CliRunner().invoke(main, ["score", "attribution", str(path), "--resamples", "99", *more])


def read(text: str) -> pd.DataFrame:
    return pd.read_csv(
        io.StringIO(text), keep_default_na=False, na_values={"value": [""], "low": [""]}
    )


def test_the_csv_is_the_library_s_table(tmp_path: Path) -> None:
    path = answers(tmp_path)
    result = called(
        path, "--by", "model", "--seed", "5", "--level", "0.9", "--out-of-range", "wrong"
    )
    assert result.exit_code == 0, result.output
    options: dict[str, Any] = {"level": 0.9, "resamples": 99, "out_of_range": "wrong"}
    assert "note: citations are read as bracket in 36 of 36 answers" in result.stderr
    expected = score_attribution(
        read_answers(path), ["model"], run="mine", seed=5, citation_style="bracket", **options
    )
    ours = read(result.stdout)
    assert ours.columns.tolist() == expected.columns.tolist()
    assert ours["measure"].tolist() == expected["measure"].tolist()
    assert ours["value"].tolist() == pytest.approx(
        expected["value"].tolist(), rel=1e-11, nan_ok=True
    )
    assert ours["low"].tolist() == pytest.approx(expected["low"].tolist(), rel=1e-11, nan_ok=True)
    wanted = {
        "precision",
        "recall",
        "exact_match",
        "malformed",
        "CAS-recall",
        "CAB-precision",
        "AC-relevant",
    }
    assert wanted <= set(ours["measure"])
    assert (
        called(
            path, "--by", "model", "--seed", "5", "--level", "0.9", "--out-of-range", "wrong"
        ).stdout
        == result.stdout
    )


def test_cab_turns_round_with_the_favoured_author(tmp_path: Path) -> None:
    path = answers(tmp_path, ("A", "B"))
    tables = [
        read(called(path, "--by", "model", "--favoured", author).stdout) for author in ("A", "B")
    ]
    for measure, sign in (("CAB-precision", -1), ("CAS-precision", 1)):
        first, second = (
            table.loc[table["measure"] == measure, "value"].to_numpy() for table in tables
        )
        assert first == pytest.approx(sign * second)
        assert abs(first).min() > 0


def test_an_output_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    done = called(answers(tmp_path), "--by", "model", "-o", str(out))
    assert done.exit_code == 0
    assert done.stdout == ""
    assert out.read_text() == called(answers(tmp_path), "--by", "model").stdout
    out.unlink()
    refused = called(written(tmp_path, ROW, "x", ROW), "-o", str(out))
    assert refused.exit_code == 2
    assert "mine.jsonl, line 2: found no JSON" in refused.stderr
    assert "line 3: found question 'q1' in mode Vanilla again" in refused.stderr
    assert "2 problems in the input; nothing was written." in refused.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([], "name the column that tells them apart in by"),
        (["--by", "lost"], "columns lost wanted"),
        (["--by", "citations"], "of other names than citations"),
        (["--by", "model", "--favoured", "Bot"], "favoured is Human or LLM"),
        (["--level", "1"], "--level"),
        (["--resamples", "0"], "--resamples"),
        (["--match", "any"], "--match"),
    ],
)
def test_bad_options_are_named(more: list[str], told: str, tmp_path: Path) -> None:
    result = called(answers(tmp_path), *more)
    assert result.exit_code == 2
    assert told in result.stderr.replace("\n", " ")
