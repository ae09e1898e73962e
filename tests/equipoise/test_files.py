"""Guards the numbers that the file formats hold, and what is said of bytes that are no text."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.files import parse_number, read_text, told_apart
from equipoise.problems import InputError, Note


@given(st.fractions(min_value=0, max_value=1, max_denominator=10**6))
def test_numbers_and_fractions(number: Any) -> None:
    assert parse_number(f"{number.numerator}/{number.denominator}") == float(number)
    assert parse_number(repr(float(number))) == float(number)


@pytest.mark.parametrize(
    "text", ["", "nan", "inf", "1_0", "0x10", "1/0", "1/2/3", "½", "1e999", "1,5"]
)
def test_refuses_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_number(text)


def test_a_byte_that_is_no_text_is_named_by_its_place_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "marked.txt"
    path.write_bytes(b"\xef\xbb\xbfone\ntw\xff\n")
    with pytest.raises(
        InputError, match=r"line 2: found bytes that are not UTF-8 \(0xff at byte 10 of the file\)"
    ):
        read_text(path)


@pytest.mark.filterwarnings("ignore:several files are called:equipoise.problems.Note")
@pytest.mark.parametrize(
    ("names", "paths", "called"),
    [
        (["x", "y"], ["a/1.csv", "a/2.csv"], ["x", "y"]),
        (["x", "x"], ["a/1.csv", "a/2.csv"], ["1", "2"]),
        (["x", "x"], ["a/x.csv", "a/x.tsv"], ["x.csv", "x.tsv"]),
        (["x", "x", "y"], ["a/1.csv", "b/1.csv", "c/1.csv"], ["a/1", "b/1", "y"]),
        (["x", "x"], ["c/a/1.csv", "d/a/1.csv"], ["c/a/1", "d/a/1"]),
        (["x", "x", "1"], ["a/1.csv", "b/2.csv", "c/3.csv"], ["a/1", "2", "c/3"]),
    ],
)
def test_files_of_one_name_go_by_their_paths(
    names: list[str], paths: list[str], called: list[str]
) -> None:
    assert told_apart(names, paths) == called


def test_a_file_given_twice_is_refused_and_shared_names_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(InputError, match="found the same file twice, wanted each file once"):
        told_apart(["x", "y"], [tmp_path / "a", tmp_path / "link"])
    with pytest.warns(Note, match="several files are called x: they go by their paths"):
        told_apart(["x", "x"], ["a", "b"])
