"""What Arrow reads is what the reader reads that goes word by word and names lines; where that refuses, Arrow does."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equipoise.arrays import each_once, places
from equipoise.attributes import AttributeSet
from equipoise.loaders import documents, fairweb, trec
from equipoise.problems import InputError, Problems

SIZE = AttributeSet("SIZE", "ordinal", ("small", "large"), np.ones(2))
READERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "run": (trec._quick_run, lambda content: trec._slow_run(content, Path("a"))),
    "qrels": (trec._quick_qrels, lambda content: trec._slow_qrels(content, "a")),
    "memberships": (
        lambda content: fairweb._quick_memberships(content, list(SIZE.groups)),
        lambda content: fairweb._slow_memberships(content, "a", SIZE),
    ),
}

blanks = st.sampled_from([" ", "\t", "  ", " \t ", "\u3000", "\xa0", "\x1f", "\r", "\v"])
ends = st.sampled_from(["\n", "\r\n", " \n", "\n\n", "\n \t\n", "\n ", "\r"])
ids = st.sampled_from(
    ["d1", "d2", '"d3', 'd"4"', "dé", "d,5", "№7", "\ufeffd", "\x00", "NA", "nan", "1", "<SYSDESC>"]
)
ranks = st.sampled_from(
    ["1", "02", "0000000003", "-1", "+4", "1.0", "0x1F", "9999999999", "x", "٣", "1e3"]
)
scores = st.sampled_from(
    ["1.5", "-2", ".5", "5.", "1e-3", "1E0001", "+7", "nan", "inf", "1e999", "0x1p3", "1_0", "٣"]
)
levels = st.sampled_from(["0", "1", "L2", "-2", "LL1", "2.0", "12345", "L-1"])
shares = st.sampled_from(
    ["0", "1", "0.5", "1/2", ".50", "0.25", "0.75", "5e-1", "-0.5", "1.5", "nan", "0.500001"]
)
COLUMNS = {
    "run": [
        ids,
        st.just("Q0"),
        ids,
        ranks,
        scores,
        st.sampled_from(["bm25", "bm25", "bm25", "other"]),
    ],
    "qrels": [ids, st.sampled_from(["0", "Q0"]), ids, levels],
    "memberships": [ids, ids, shares, shares],
}
ORDINARY = {
    "run": "t{0} Q0 d1 1 2.5 bm25",
    "qrels": "t{0} 0 d1 2",
    "memberships": "t{0} d1 0.25 0.75",
}


@st.composite
def files(draw: Any, kind: str) -> bytes:
    """Lines of a kind, most of them good, with odd white space and ends."""
    text = draw(
        st.sampled_from(
            [
                "",
                "",
                "\ufeff",
                "\ufeff\ufeff",
                "\n",
                " ",
                "<SYSDESC>bm 25</SYSDESC>\n",
                "<SYSDESC>b\n",
            ]
        )
    )
    between, end = (st.just(draw(one)) if draw(st.booleans()) else one for one in (blanks, ends))
    for number in range(draw(st.integers(0, 4))):
        odd = draw(st.integers(0, 2)) == 0
        fields = (
            [draw(column) for column in COLUMNS[kind]]
            if odd
            else ORDINARY[kind].format(number).split()
        )
        if draw(st.integers(0, 9)) == 0:
            fields.insert(draw(st.integers(0, len(fields))), "more") if draw(
                st.booleans()
            ) else fields.pop()
        text += "".join(field + draw(between) for field in fields[:-1]) + fields[-1] + draw(end)
    return text.encode() + draw(st.sampled_from([b"", b"", b"\xff"]))


@settings(max_examples=120)
@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
def test_what_is_read_quickly_is_what_is_read_slowly(kind: str, data: Any) -> None:
    content = data.draw(files(kind))
    quick, slow = (read for read in READERS[kind])
    found = quick(content)
    try:
        expected = slow(content)
    except InputError:
        assert found is None
    else:
        assert found is None or found.equals(expected.reset_index(drop=True))
        assert found is None or (found.dtypes == expected.dtypes).all()


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", "   "),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", " \n\n  "),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("d1", 'd"é'),
        lambda text: text.rstrip("\n"),
    ],
)
def test_ordinary_files_are_read_quickly(kind: str, change: Callable[[str], str]) -> None:
    content = change("".join(ORDINARY[kind].format(number) + "\n" for number in range(3)))
    found = READERS[kind][0](content.encode())
    assert found is not None
    assert found.equals(READERS[kind][1](content.encode()))


def test_a_described_run_is_read_quickly() -> None:
    content = b"<SYSDESC>bm25, b = 0.4</SYSDESC>\n" + ORDINARY["run"].encode()
    found = trec._quick_run(content)
    assert found is not None
    assert found["document"].tolist() == ["d1"]


texts = st.text(st.sampled_from("ab\x00é"), max_size=3) | st.text(
    st.sampled_from("ab"), min_size=60, max_size=70
)


@settings(max_examples=120)
@given(rows=st.lists(st.tuples(texts, texts), max_size=8))
@example(rows=[("a", "b"), ("a" * 9, "b"), ("a", "b")])
@example(rows=[("ab", "c"), ("a", "bc")])
def test_rows_that_agree_are_found(rows: list[tuple[str, str]]) -> None:
    table = pd.DataFrame(rows, columns=["topic", "document"], dtype="str")
    assert each_once(table["topic"], table["document"]) == (len(set(rows)) == len(rows))


def test_rows_of_numbers_and_of_nothing() -> None:
    assert each_once(pd.Series([1, 1, 2]), pd.Series(["a", "b", "a"], dtype="str"))
    assert not each_once(pd.Series([1, 1]), pd.Series(["a", "a"], dtype="str"))
    assert each_once(pd.Series(["", None], dtype="str"))
    assert not each_once(pd.Series([None, None], dtype="str"))


@given(st.lists(texts, max_size=8), st.lists(texts, max_size=8, unique=True))
def test_places_are_those_of_an_index(values: list[str], index: list[str]) -> None:
    expected = [index.index(value) if value in index else -1 for value in values]
    for dtype in ("str", "object"):
        series, wanted = pd.Series(values, dtype=dtype), pd.Index(index, dtype="str")
        assert places(series, wanted).tolist() == expected


# --- documents ------------------------------------------------------------------------------------

keys = st.sampled_from(
    [
        '"id": "a"',
        '"id": 7',
        '"id": -0',
        '"_id": "b"',
        '"id": ""',
        '"id": null',
        '"id": true',
        '"id": 1.5',
    ]
)
contents = st.sampled_from(
    ['"text": "x y"', '"text": "é\\n"', '"text": ""', '"text": null', '"text": "\\ud800"', '"t": 1']
)
others = st.sampled_from(
    ['"z": [[1], {"k": 2}]', '"z": 1, "z": 2', '"z": {"k": 1, "k": 2}', '"z": NaN', '"id": "c"']
)
gaps = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", " ", " \n", ""])
cells = st.sampled_from(["d1", " d2 ", "", "\ufeffd", "a text", '"a', "\r", "\u3000", "tab\tin it"])


@st.composite
def collections(draw: Any, kind: str) -> bytes:
    """Lines of a collection, most of them good."""
    text = draw(st.sampled_from(["", "", "\ufeff"]))
    for _ in range(draw(st.integers(0, 4))):
        if kind == "tsv":
            line = draw(cells) + draw(st.sampled_from(["\t", "\t", "\t", " "])) + draw(cells)
        else:
            parts = [draw(keys), draw(contents), *draw(st.lists(others, max_size=1))]
            line = (
                "{"
                + ", ".join(draw(st.permutations(parts)))
                + draw(st.sampled_from(["}", "}", "}", "}", "}}", ""]))
            )
        text += line + draw(gaps)
    return text.encode() + draw(st.sampled_from([b"", b"", b"", b"\xff"]))


@settings(max_examples=200)
@pytest.mark.parametrize("kind", ["jsonl", "tsv"])
@given(data=st.data())
def test_documents_read_quickly_are_those_read_line_by_line(kind: str, data: Any) -> None:
    content = data.draw(collections(kind)).removeprefix(b"\xef\xbb\xbf")
    quick = (documents._quick_json if kind == "jsonl" else documents._quick_tsv)(content)
    problems = Problems()
    parse = documents._json_row if kind == "jsonl" else documents._tsv_row
    slow = documents._slow_chunk(Path("a"), 2, content, parse, problems)
    if problems:
        assert quick is None
    elif quick is not None:
        assert [column.to_pylist() for column in quick] == [list(column) for column in slow]


def test_ordinary_collections_are_read_quickly() -> None:
    lines = [
        b'{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}',
        b'{"_id":"x","title":"","text":"[1][2]","m":{"k":[]}}\n',
    ]
    assert all(documents._quick_json(content) is not None for content in lines)
    assert all(
        documents._quick_tsv(content) is not None
        for content in (b"1\ta\n2\tb", b"1\ta\r\n\r\n2\t\r\n")
    )


def test_values_within_values_do_not_break_the_reader(tmp_path: Path) -> None:
    deep = b'{"id": "a", "text": "x", "z": ' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"
    assert documents._quick_json(deep) is None
    path = tmp_path / "d.jsonl"
    path.write_bytes(b'{"id": "b", "text": "y"}\n' + deep)
    with pytest.raises(InputError, match="line 2"):
        list(documents.stream_documents(path))


def test_a_folder_of_documents_in_all_forms(tmp_path: Path) -> None:
    rows = [(f"d{number}", f"text {number}") for number in range(6)]
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.tsv").write_text("".join(f"{key}\t{text}\n" for key, text in rows[:2]))
    (tmp_path / "b.jsonl.gz").write_bytes(
        gzip.compress(
            "".join(
                json.dumps({"_id": key, "text": text}) + "\n" for key, text in rows[2:4]
            ).encode()
        )
    )
    pd.DataFrame(rows[4:], columns=["docno", "contents"]).to_parquet(
        tmp_path / "inner" / "c.parquet"
    )
    (tmp_path / "_SUCCESS.txt").write_text("")
    assert list(documents.stream_documents(tmp_path)) == rows
    pd.DataFrame({"docno": ["x"], "n": [1]}).to_parquet(tmp_path / "d.parquet")
    with pytest.raises(InputError, match=r"d\.parquet: found no column text"):
        list(documents.stream_documents(tmp_path))
