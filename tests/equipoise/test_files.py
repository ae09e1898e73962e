"""Guards the numbers that the file formats hold, and what is said of bytes that are no text."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.files import parse_number, read_text
from equipoise.problems import InputError


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
