"""Guards the numbers that the file formats hold."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.files import parse_number


@given(st.fractions(min_value=0, max_value=1, max_denominator=10**6))
def test_numbers_and_fractions(number: Any) -> None:
    assert parse_number(f"{number.numerator}/{number.denominator}") == float(number)
    assert parse_number(repr(float(number))) == float(number)


@pytest.mark.parametrize("text", ["", "nan", "inf", "1_0", "0x10", "1/0", "1/2/3", "½", "1e999", "1,5"])
def test_refuses_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_number(text)
