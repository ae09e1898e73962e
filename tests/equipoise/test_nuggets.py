"""Guards the nugget table: what is read, and that all bad input is reported at once, by line."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain_gfrc as plain
from equipoise.attributes import attribute_sets
from equipoise.nuggets import nugget_table, read_nuggets
from equipoise.problems import InputError

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


def problems(folder: Path, content: str | bytes) -> list[tuple[int | None, str | None, str]]:
    with pytest.raises(InputError) as caught:
        read_nuggets(write(folder, content), SETS)
    return [(problem.line, problem.column, problem.found) for problem in caught.value.problems]


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


@pytest.mark.parametrize(
    ("row", "line", "column", "found"),
    [
        ("a,T,1,3,4,2,0 1,1 0", 3, "RATINGS", "2 probabilities"),
        ("a,T,1,3,4,2,0 1 0,1/2 1/3", 3, "ORIGIN", "sum to 0.833333"),
        ("a,T,1,3,4,2,0 2 -1,1 0", 3, "RATINGS", "negative"),
        ("a,T,1,3,4,2,nan 0 1,1 0", 3, "RATINGS", "'nan'"),
        ("a,T,1,3,4,2,1/0 0 1,1 0", 3, "RATINGS", "'1/0'"),
        ("a,T,1,3,4,2,,1 0", 3, "RATINGS", "empty"),
        ("a,T,1,5,4,2,0 1 0,1 0", 3, "start", "start 5 after end 4"),
        ("a,T,1,0,4,2,0 1 0,1 0", 3, "start", "0"),
        ("a,T,1,-3,4,2,0 1 0,1 0", 3, "start", "-3"),
        ("a,T,1,3.5,4,2,0 1 0,1 0", 3, "start", "'3.5'"),
        ("a,T,1,3,99999999999,2,0 1 0,1 0", 3, "end", "'99999999999'"),
        ("a,T,1,3,,2,0 1 0,1 0", 3, "start", "only one"),
        ("a,T,1,,,2,0 1 0,1 0", 3, "start", "no positions"),
        ("a,T,0,3,4,2,0 1 0,1 0", 3, "turn", "0"),
        ("a,T,one,3,4,2,0 1 0,1 0", 3, "turn", "'one'"),
        ("a,T,1,3,4,-1,0 1 0,1 0", 3, "level", "-1"),
        ("a,T,1,3,4,,0 1 0,1 0", 3, "level", "empty"),
        (",T,1,3,4,2,0 1 0,1 0", 3, "run", "empty"),
        ("a, ,1,3,4,2,0 1 0,1 0", 3, "topic", "empty"),
        ("a,T,1,3,4,2,0 1 0", 3, None, "7 fields"),
        ("a,T,1,3,4,2,0 1 0,1 0,more", 3, None, "9 fields"),
        ("z,T,1,1,2,2,0 1 0,1 0", 3, None, "again"),
        ("z,T,1,2,3,2,0 1 0,1 0", 3, "start", "overlap"),
        ("z,T,1,,,0,,", 3, "level", "relevant nuggets in other rows"),
    ],
)
def test_refuses_a_bad_row_and_names_it(
    tmp_path: Path, row: str, line: int, column: str | None, found: str
) -> None:
    (problem,) = problems(tmp_path, HEADER + "z,T,1,1,2,2,0 1 0,1 0\n" + row + "\n")
    assert problem[:2] == (line, column)
    assert found in problem[2]


def test_refuses_nuggets_out_of_order(tmp_path: Path) -> None:
    good = "0 1 0,1 0\n"
    found = problems(
        tmp_path,
        HEADER
        + f"a,T,1,30,31,2,{good}a,T,1,10,11,2,{good}a,T,2,40,41,1,{good}a,T,1,50,51,1,{good}",
    )
    assert [(line, column) for line, column, _ in found] == [(3, "start"), (5, "start")]
    assert "words 10-11 of turn 1 after words 30-31 of turn 1" in found[0][2]


def test_a_turn_with_a_nugget_of_the_lowest_level_is_not_empty(tmp_path: Path) -> None:
    found = problems(tmp_path, HEADER + "a,T,1,3,4,1,0 1 0,1 0\na,T,1,,,0,,\n")
    assert found == [(3, "level", "a turn with relevant nuggets in other rows")]


def test_all_problems_come_in_one_report(tmp_path: Path) -> None:
    text = HEADER.replace("ORIGIN", "ORIGINS") + "a,T,x,3,4,2,0 1 0,1 0\n\n,T,1,3,2,2,0 1,1 0\n"
    found = problems(tmp_path, text)
    assert [(line, column) for line, column, _ in found] == [
        (1, "ORIGIN"),
        (2, "turn"),
        (4, "run"),
        (4, "RATINGS"),
        (4, "start"),
    ]


def test_lines_are_right_behind_a_field_with_a_line_break(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, HEADER + '"a\nb",T,1,3,4,2,0 1 0,1 0\na,T,1,3,4,x,0 1 0,1 0\n')
    assert problem[:2] == (4, "level")


@pytest.mark.parametrize(
    ("content", "line", "found"),
    [
        (b"", None, "an empty file"),
        (b"  \n\n", None, "an empty file"),
        (HEADER.encode(), None, "a header without rows"),
        (HEADER.strip().encode(), None, "a header without rows"),
        (HEADER.encode() + b"a,T,1,3,4,2,0 1 0,1 0\na\xff,T,1,8,9,2,0 1 0,1 0\n", 3, "not UTF-8"),
        (HEADER.replace("topic", "run").encode() + b"a,T,1,3,4,2,0 1 0,1 0\n", 1, "twice"),
        (b"PAR1 but nothing else", None, "Parquet"),
    ],
)
def test_refuses_a_file_that_is_no_table(
    tmp_path: Path, content: bytes, line: int | None, found: str
) -> None:
    (problem,) = problems(tmp_path, content)
    assert problem[0] == line
    assert found in problem[2]


def test_a_frame_with_a_column_twice_is_refused() -> None:
    frame = pd.DataFrame([["a", "T", "a"]], columns=["run", "topic", "run"])
    with pytest.raises(InputError, match="column run: found the column twice"):
        nugget_table(frame, SETS)


def test_a_field_may_be_longer_than_the_csv_module_likes(tmp_path: Path) -> None:
    (problem,) = problems(
        tmp_path, HEADER + f"a,{'T' * 200_000},1,3,4,2,0 1 0,1 0\na,T,1,3,4,x,0 1 0,1 0\n"
    )
    assert problem[:2] == (3, "level")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing-here\.csv"):
        read_nuggets(tmp_path / "nothing-here.csv", SETS)


def test_unknown_columns_list_what_is_known(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"RATINGS, ORIGIN"):
        read_nuggets(
            write(tmp_path, HEADER.replace("ORIGIN", "COLOUR") + "a,T,1,3,4,2,0 1 0,1 0\n"), SETS
        )


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
    with pytest.raises(InputError, match=r"bad\.parquet, row 1, column level"):
        read_nuggets(bad, sets)


def test_a_selection_of_attribute_sets(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "a,T,1,3,4,2,not read,1 0\n")
    assert list(read_nuggets(path, SETS, ["ORIGIN"]).memberships) == ["ORIGIN"]
    with pytest.raises(ValueError, match="no attribute set COLOUR; there are RATINGS, ORIGIN"):
        read_nuggets(path, SETS, ["COLOUR"])


def test_memberships_may_miss_one_by_rounding_only(tmp_path: Path) -> None:
    row = "a,T,1,3,4,2,0.333333 0.333333 0.333333,1 0\n"
    assert read_nuggets(write(tmp_path, HEADER + row), SETS).memberships[
        "RATINGS"
    ].sum() == pytest.approx(0.999999)
    assert problems(tmp_path, HEADER + row.replace("0.333333", "0.333"))[0][1] == "RATINGS"


@given(st.builds(plain.random_table, st.integers(1, 5), st.integers(1, 6), st.integers(0, 500)))
def test_a_written_table_reads_back(given_table: Any) -> None:
    nuggets, sets = given_table
    back = nugget_table(plain.frame(nuggets), sets)
    pd.testing.assert_frame_equal(back.conversations, nuggets.conversations)
    for column in ("conversation", "turn", "start", "end", "level"):
        np.testing.assert_array_equal(getattr(back, column), getattr(nuggets, column))
    for name, array in nuggets.memberships.items():
        np.testing.assert_array_equal(back.memberships[name], array)


def test_memberships_of_a_product_set_are_multiplied_or_given() -> None:
    sets = attribute_sets(
        {
            "P": {"kind": "nominal", "groups": ["he", "she"], "target": "uniform"},
            "O": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"},
            "P x O": {"product": ["P", "O"]},
        }
    )
    rows = pd.DataFrame(
        {"run": "r", "topic": "t", "turn": 1, "start": [1, 2], "end": [1, 2], "level": 2}
    )
    rows = rows.assign(P=["1/2 1/2", "1 0"], O=["1/4 3/4", "0 1"])
    multiplied = nugget_table(rows, sets).memberships["P x O"]
    assert multiplied.tolist() == [[0.125, 0.375, 0.125, 0.375], [0, 1, 0, 0]]
    given = nugget_table(rows.assign(**{"P x O": ["1/4 1/4 0 1/2", ""]}), sets)
    assert given.memberships["P x O"].tolist() == [[0.25, 0.25, 0, 0.5], [0, 1, 0, 0]]
    alone = nugget_table(rows, sets, ["P x O"])
    assert list(alone.memberships) == ["P x O"]
    np.testing.assert_array_equal(alone.memberships["P x O"], multiplied)
    with pytest.raises(InputError, match="column O: found no such column"):
        nugget_table(rows.drop(columns="O"), sets)
    with pytest.raises(InputError, match="4 probabilities that sum to 1"):
        nugget_table(rows.assign(**{"P x O": ["1/4 1/4", ""]}), sets)
