"""Files as people have them: text, JSON, YAML and small tables; names of files that share one."""

import csv
import gzip
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InputError, Problem, plain
from equipoise.readers import (
    Table,
    json_value,
    names_of_files,
    number,
    read_json_lines,
    read_table,
    read_text,
    read_yaml,
)


def written(folder: Path, content: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@given(st.fractions(min_value=0, max_value=1, max_denominator=10**6))
def test_numbers_and_fractions(value: Any) -> None:
    assert number(f"{value.numerator}/{value.denominator}") == float(value)
    assert number(repr(float(value))) == float(value)


@pytest.mark.parametrize("text", ["", "nan", "inf", "0x10", "1/0", "1/2/3", "½", "1e999", "1,5"])
def test_what_is_no_number_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="must be a finite number, got"):
        number(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xef\xbb\xbfone\ntw\xff\n", "line 2: must be UTF-8 text, got the byte 0xff"),
        ("a,b\n".encode("utf-16"), "UTF-16; save it as CSV UTF-8"),
        (b" \n\n", "must be a file with content, got an empty file"),
        (gzip.compress(b"text" * 99, mtime=0)[:-9], "must be a complete gzip file"),
    ],
)
def test_a_file_that_is_no_text_is_an_error(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_text(written(tmp_path, content))


def test_text_may_be_packed_and_have_a_byte_order_mark(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, gzip.compress("\ufeffé\n".encode()))) == "é\n"


def test_json_is_read_with_each_key_once() -> None:
    messages = {
        '{"a": 1, "a": 2}': "two keys 'a'",
        "[": "invalid JSON",
        "[" * 10**5: "invalid JSON",
    }
    for text, message in messages.items():
        with pytest.raises(ValueError, match=message):
            json_value(text)
    assert list(read_json_lines("t", '{"a": 1}\n\n{"a": 2}\n')) == [(1, {"a": 1}), (3, {"a": 2})]
    with pytest.raises(InputError, match="line 2: must be a JSON object, got 7"):
        list(read_json_lines("t", "{}\n7\n"))


def test_yaml_has_values_or_words_and_each_key_once(tmp_path: Path) -> None:
    path = written(tmp_path, "a: no\nb: 010\nc: [1.5]\n")
    assert read_yaml(path, words=True) == {"a": "no", "b": "010", "c": ["1.5"]}
    assert read_yaml(path)["c"] == [1.5]
    for text, message in (
        ("a: 1\nb: 2\na: 3\n", "line 3: must be YAML, got the key 'a' twice"),
        ("a: [\n", "must be YAML"),
        ("a: !!python/object/apply:os.system [x]", "must be YAML"),
    ):
        with pytest.raises(InputError, match=message):
            read_yaml(written(tmp_path, text))


def test_a_table_in_all_formats(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x", "y"], "n": ["1", "2"]}, dtype="str")
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.astype({"n": "float"}).to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    for name in ("t.csv", "t.parquet", "t.jsonl"):
        table = read_table(tmp_path / name)
        assert table.ids("a").tolist() == ["x", "y"]
        assert table.whole_numbers("n", least=0).tolist() == [1, 2]


@given(st.lists(st.integers(-(2**60), 2**60), min_size=2, unique=True))
def test_whole_numbers_as_ids_are_their_digits_in_every_format(numbers: list[int]) -> None:
    digits = [str(number) for number in numbers]
    json_rows = [f'{{"a": {number}}}' for number in numbers] + ['{"a": 2.5}']
    csv_rows = ["a,b", *(f"{number} ," for number in numbers)]
    for rows, n_others in ((json_rows, 1), (csv_rows, 0)):
        table = read_table("t", "\n".join(rows).encode())
        ids = table.ids("a").tolist()
        assert ids[: len(ids) - n_others] == digits


@pytest.mark.filterwarnings("ignore::equipoise.errors.Note")
@given(st.lists(st.tuples(st.text(" ;,\t|a'é"), st.decimals(-9, 9, places=3)), min_size=1))
def test_a_table_of_a_spreadsheet_is_that_of_commas(rows: list[tuple[str, Any]]) -> None:
    frame = pd.DataFrame(rows, columns=["name", "value"]).astype("str")
    for separator in ",;\t":
        table = frame
        if separator == ";":
            table = frame.assign(value=frame["value"].str.replace(".", ","))
        text = table.to_csv(sep=separator, index=False, quoting=csv.QUOTE_NONNUMERIC)
        pd.testing.assert_frame_equal(read_table("t", text.encode()).frame, frame)


@given(st.integers(1, 5))
def test_an_unclosed_quote_is_an_error_with_its_line(n_rows: int) -> None:
    text = "a,b\n" + "x,y\n" * n_rows + 'd3,"f\n' + "x,y\n"
    with pytest.raises(
        InputError, match=f'line {n_rows + 2}, column "b": must be with each quotation mark'
    ):
        read_table("t", text.encode())
    assert len(read_table("t", b'a,b\nx,5" disc\n')) == 1


def test_a_table_names_what_is_wrong() -> None:
    text = 'a,n\n"x\ny",1\n\nz,\n'
    frame = pd.DataFrame({"a": ["x\ny", "z"], "n": ["1", ""]}, dtype="str")
    table = Table("t.csv", frame, text)
    for call, message in (
        (
            lambda: table.whole_numbers("n", least=1),
            "t.csv, line 5, column \"n\": must be a whole number of at least 1, got ''",
        ),
        (lambda: table.whole_numbers("n", least=2), "line 2, column \"n\": .*at least 2, got '1'"),
        (lambda: table.need(["b"]), 'column "b": must be in the header, got .*a, n'),
        (lambda: table.once(["n"], "given once"), None),
    ):
        if message is None:
            call()
            continue
        with pytest.raises(InputError, match=message):
            call()
    assert table.whole_numbers("n", least=1, empty=0).tolist() == [1, 0]
    with pytest.raises(InputError, match='line 2, column "a": must be once per list'):
        Table("t", pd.DataFrame({"a": ["x", "x"]})).once(["a"], "once per list")


@pytest.mark.parametrize(
    ("names", "paths", "called"),
    [
        (["x", "y"], ["a/1.csv", "a/2.csv"], ["x", "y"]),
        (["x", "x"], ["a/1.csv", "a/2.csv"], ["1", "2"]),
        (["x", "x", "y"], ["a/1.csv", "b/1.csv", "c/1.csv"], ["a/1", "b/1", "y"]),
        (["x", "x"], ["c/a/1.csv", "d/a/1.csv"], ["c/a/1", "d/a/1"]),
    ],
)
def test_files_of_one_name_are_called_by_their_paths(
    names: list[str], paths: list[str], called: list[str]
) -> None:
    assert names_of_files(names, paths) == called


def test_a_file_given_twice_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(written(tmp_path, "", "a"))
    with pytest.raises(InputError, match="must be given once, got the same file twice"):
        names_of_files(["x", "y"], [tmp_path / "a", tmp_path / "link"])


def test_the_message_of_an_error() -> None:
    first, later = Problem("b", 2, None, "'x'", "a number"), Problem("b", 9, "n", "", "given")
    assert str(InputError([later, first])) == "b, line 2: must be a number, got 'x' (and 1 more)"
    assert str(later) == 'b, line 9, column "n": must be given'
    sentence = Problem("b", None, None, "2", "start must not be after end")
    assert str(sentence) == "b: start must not be after end, got 2"
    assert plain("a\x1b[31m\u202e") == "a\\x1b[31m\\u202e"
