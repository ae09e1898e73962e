"""Guards the nugget table: what is read, and that bad input is named by line and column."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain_gfrc as plain
from equipoise.attributes import attribute_sets
from equipoise.errors import InputError
from equipoise.nuggets import nugget_table, read_nuggets

SETS = attribute_sets(
    {
        "RATINGS": {"kind": "ordinal", "groups": ["1", "2", "3"], "target": "uniform"},
        "ORIGIN": {"kind": "nominal", "groups": ["x", "y"], "target": ["1", "3"]},
    }
)
HEADER = "run,topic,turn,start,end,level,RATINGS,ORIGIN\n"


def write(folder: Path, content: str | bytes, name: str = "nuggets.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def fault(folder: Path, content: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read_nuggets(write(folder, content), SETS)
    return str(caught.value).removeprefix(f"{folder / 'nuggets.csv'}")


def test_reads_the_format(tmp_path: Path) -> None:
    nuggets = read_nuggets(
        write(
            tmp_path,
            "\ufeff"
            + HEADER
            + "a,T,1,3,4,2,0 1/2 .5,1 0\r\n\r\na,T,2,,,0,,\n"
            + '"b,1",T,1,7,7,1,1 0 0,1/4 3/4\n\n',
        ),
        SETS,
    )
    assert nuggets.conversations.to_numpy().tolist() == [["a", "T"], ["b,1", "T"]]
    assert nuggets.start.tolist() == [3, 0, 7]
    assert nuggets.level.tolist() == [2, 0, 1]
    assert nuggets.memberships["RATINGS"].tolist() == [[0, 0.5, 0.5], [0, 0, 0], [1, 0, 0]]
    assert nuggets.memberships["ORIGIN"][2].tolist() == [0.25, 0.75]


RATINGS = "must be 3 probabilities that sum to 1, one for each of 1, 2, 3, got"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,T,1,3,4,2,0 1,1 0", f"line 3, column \"RATINGS\": {RATINGS} '0 1'"),
        ("a,T,1,3,4,2,0 1 0,1/2 1/3", 'column "ORIGIN": must be 2 probabilities'),
        ("a,T,1,3,4,2,0 2 -1,1 0", RATINGS),
        ("a,T,1,3,4,2,nan 0 1,1 0", RATINGS),
        ("a,T,1,3,4,2,1/0 0 1,1 0", RATINGS),
        ("a,T,1,3,4,2,,1 0", f"{RATINGS} ''"),
        ("a,T,1,5,4,2,0 1 0,1 0", 'line 3, column "start": must not be after end, got .5'),
        ("a,T,1,0,4,2,0 1 0,1 0", "\"start\": must be a whole number of at least 1, got '0'"),
        ("a,T,1,-3,4,2,0 1 0,1 0", "must be a whole number of at least 1, got '-3'"),
        ("a,T,1,3.5,4,2,0 1 0,1 0", "must be a whole number of at least 1, got '3.5'"),
        ("a,T,1,3,99999999999,2,0 1 0,1 0", '"end": must be a whole number'),
        ("a,T,1,3,inf,2,0 1 0,1 0", '"end": must be a whole number'),
        ("a,T,1,3,,2,0 1 0,1 0", "must be given together with end"),
        ("a,T,1,,,2,0 1 0,1 0", "must be given for a relevant nugget"),
        ("a,T,0,3,4,2,0 1 0,1 0", "\"turn\": must be a whole number of at least 1, got '0'"),
        ("a,T,one,3,4,2,0 1 0,1 0", "\"turn\": must be a whole number of at least 1, got 'one'"),
        ("a,T,1,3,4,-1,0 1 0,1 0", "\"level\": must be a whole number of at least 0, got '-1'"),
        ("a,T,1,3,4,,0 1 0,1 0", "\"level\": must be a whole number of at least 0, got ''"),
        (",T,1,3,4,2,0 1 0,1 0", "line 3, column \"run\": must be an id, got ''"),
        ("a, ,1,3,4,2,0 1 0,1 0", "line 3, column \"topic\": must be an id, got ' '"),
        ("a,T,1,3,4,2,0 1 0", "line 3: must be a row of 8 fields, as in the header, got 7"),
        (
            "a,T,1,3,4,2,0 1 0,1 0,more",
            "line 3: must be a row of 8 fields, as in the header, got 9",
        ),
        ("z,T,1,1,2,2,0 1 0,1 0", 'line 3, column "start": must differ from the rows above'),
        ("z,T,1,2,3,2,0 1 0,1 0", "after words 1 to 2 of turn 1.*got words 2 to 3 of turn 1"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: str, message: str) -> None:
    message_of_row = fault(tmp_path, HEADER + "z,T,1,1,2,2,0 1 0,1 0\n" + row + "\n")
    assert re.search(message, message_of_row), message_of_row


def test_nuggets_out_of_order_are_an_error(tmp_path: Path) -> None:
    good = "0 1 0,1 0\n"
    rows = f"a,T,1,30,31,2,{good}a,T,1,10,11,2,{good}a,T,2,40,41,1,{good}"
    message = fault(tmp_path, HEADER + rows)
    assert "line 3" in message
    assert "after words 30 to 31 of turn 1" in message
    rows = f"a,T,2,30,31,2,{good}a,T,1,40,41,2,{good}"
    assert "got words 40 to 41 of turn 1" in fault(tmp_path, HEADER + rows)


def test_the_first_fault_comes_with_the_number_of_others(tmp_path: Path) -> None:
    row = "a,T,x,3,4,2,0 1 0,1 0\n"
    assert 'line 2, column "turn"' in fault(tmp_path, HEADER + row * 3)
    assert fault(tmp_path, HEADER + row * 3).endswith("got 'x' (and 2 more)")


def test_lines_are_right_below_a_field_with_a_line_break(tmp_path: Path) -> None:
    rows = '"a\nb",T,1,3,4,2,0 1 0,1 0\n\na,T,1,3,4,x,0 1 0,1 0\n'
    assert 'line 5, column "level"' in fault(tmp_path, HEADER + rows)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty file"),
        (b"  \n\n", "an empty file"),
        (HEADER.encode(), "only a header"),
        (HEADER.strip().encode(), "only a header"),
        (HEADER.encode() + b"a\xff,T,1,8,9,2,0 1 0,1 0\n", "line 2: must be UTF-8 text"),
        (HEADER.encode("utf-16"), "UTF-16"),
        (HEADER.replace(",", ";").encode(), "only a header"),
        (HEADER.replace("topic", "run").encode(), 'column "run": must be named once'),
        (HEADER.replace("topic", "theme").encode(), 'column "topic": must be in the header'),
        (HEADER.replace("ORIGIN", "COLOUR").encode(), "column.*got run.*RATINGS, COLOUR"),
        (b"PAR1 but nothing else", "must be a Parquet file"),
    ],
)
def test_a_file_that_is_no_nugget_table_is_an_error(
    tmp_path: Path, content: bytes, message: str
) -> None:
    if message.startswith("column"):
        content += b"a,T,1,3,4,2,0 1 0,1 0\n"
    assert re.search(message, fault(tmp_path, content))


def test_parquet_with_text_lists_and_gaps(tmp_path: Path) -> None:
    table, sets = plain.random_table(4, 5, 3)
    frame = plain.frame(table)
    texts, lists = tmp_path / "texts.parquet", tmp_path / "lists.parquet"
    frame.to_parquet(texts)
    frame.assign(**{name: list(array) for name, array in table.memberships.items()}).to_parquet(
        lists
    )
    for path in (texts, lists):
        read = read_nuggets(path, sets)
        np.testing.assert_array_equal(read.end, table.end)
        for name, array in table.memberships.items():
            np.testing.assert_array_equal(read.memberships[name], array)
    gaps = tmp_path / "gaps.parquet"
    empty_turn = {"run": "last", "topic": "T", "turn": 1, "level": 0}
    pd.concat([frame, pd.DataFrame([empty_turn])], ignore_index=True).to_parquet(gaps)
    assert read_nuggets(gaps, sets).start[-1] == 0
    bad = tmp_path / "bad.parquet"
    frame.assign(level=[-1] + [1] * (len(frame) - 1)).to_parquet(bad)
    with pytest.raises(InputError, match=r'bad\.parquet, line 1, column "level"'):
        read_nuggets(bad, sets)


def test_memberships_may_miss_one_by_rounding_only(tmp_path: Path) -> None:
    row = "a,T,1,3,4,2,0.333333 0.333333 0.333333,1 0\n"
    assert read_nuggets(write(tmp_path, HEADER + row), SETS).memberships[
        "RATINGS"
    ].sum() == pytest.approx(0.999999)
    assert "RATINGS" in fault(tmp_path, HEADER + row.replace("0.333333", "0.333"))


@given(st.builds(plain.random_table, st.integers(1, 5), st.integers(1, 6), st.integers(0, 500)))
def test_a_written_table_reads_back(given_table: Any) -> None:
    nuggets, sets = given_table
    back = nugget_table(plain.frame(nuggets), sets)
    pd.testing.assert_frame_equal(back.conversations, nuggets.conversations)
    for column in ("conversation", "turn", "start", "end", "level"):
        np.testing.assert_array_equal(getattr(back, column), getattr(nuggets, column))
    for name, array in nuggets.memberships.items():
        np.testing.assert_array_equal(back.memberships[name], array)
