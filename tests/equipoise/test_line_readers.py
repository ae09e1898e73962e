"""Guards that files of lines, ordinary or odd, are read as a plain loop reads them, or refused."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise.attributes import AttributeSet
from equipoise.files import json_value, parse_number
from equipoise.loaders import documents
from equipoise.loaders.fairweb import read_memberships
from equipoise.loaders.trec import read_qrels, read_run
from equipoise.problems import InputError

SIZE = AttributeSet("SIZE", "ordinal", ("small", "large"), np.ones(2))
READERS: dict[str, Callable[[Path], Any]] = {
    "run": partial(read_run, order=None),
    "qrels": read_qrels,
    "memberships": lambda path: read_memberships(path, SIZE),
}
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


class RefusedError(Exception):
    """What the plain loop says of a file that is not sound."""


def need(sound: object) -> None:
    if not sound:
        raise RefusedError


def plain_rows(kind: str, content: bytes) -> list[tuple[Any, ...]]:
    """The rows of a file, line by line."""
    try:
        lines = content.decode().lstrip("\ufeff").split("\n")
    except UnicodeDecodeError:
        raise RefusedError from None
    fields = [line.split() for line in lines if line.strip()]
    need(fields)
    if kind == "run" and fields[0][0].startswith("<SYSDESC>"):
        need(fields[0][-1].endswith("</SYSDESC>"))
        del fields[0]
        need(fields)
    widths = {"run": [6], "memberships": [4], "qrels": [3, 4]}[kind]
    first_width = next((len(row) for row in fields if len(row) in widths), 0)
    need(all(len(row) == first_width for row in fields))
    rows = [plain_row(kind, row) for row in fields]
    need(len({row[:2] for row in rows}) == len(rows))
    need(kind != "run" or len({row[5] for row in fields}) == 1)
    return rows


def plain_row(kind: str, fields: list[str]) -> tuple[Any, ...]:
    if kind == "run":
        topic, _, document, rank, score, _ = fields
        need(re.fullmatch("[+-]?[0-9]{1,9}", rank) and NUMBER.fullmatch(score))
        need(np.isfinite(float(score)))
        return topic, document, int(rank), float(score)
    if kind == "qrels":
        topic, document, level = fields[0], fields[-2], fields[-1]
        need(re.fullmatch("L?-?[0-9]{1,4}", level))
        return topic, document, max(0, int(level.removeprefix("L")))
    topic, document, *texts = fields
    try:
        shares = [parse_number(text) for text in texts]
    except ValueError:
        raise RefusedError from None
    need(all(0 <= share <= 1 for share in shares) and abs(sum(shares) - 1) <= 1e-5)
    return topic, document, *shares


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


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
def test_lines_are_read_as_a_plain_loop_reads_them(kind: str, data: Any, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data.draw(files(kind)))
    try:
        expected = plain_rows(kind, path.read_bytes())
    except RefusedError:
        with pytest.raises(InputError):
            READERS[kind](path)
        return
    table = READERS[kind](path).drop(columns="run", errors="ignore")
    assert list(table.itertuples(index=False, name=None)) == expected


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", "   "),
        lambda text: text.replace(" ", "\u2003"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", " \n\n  "),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
    ],
)
def test_the_same_lines_otherwise_spaced(
    kind: str, change: Callable[[str], str], tmp_path: Path
) -> None:
    text = "".join(ORDINARY[kind].format(number) + "\n" for number in range(3))
    path = tmp_path / "file"
    path.write_text(text)
    plain = READERS[kind](path)
    path.write_bytes(change(text).encode())
    assert READERS[kind](path).equals(plain)


def test_lines_are_named_behind_a_description_and_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("\n<SYSDESC>bm25, b = 0.4</SYSDESC>\n\nt Q0 d1 1 2.5 x\n \nt Q0 d2 two 1 x\n")
    with pytest.raises(InputError, match="line 6, column rank: found 'two'"):
        read_run(path)


def test_a_line_longer_than_what_is_parsed_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equipoise.loaders.white_space._BLOCK_SIZE", 64)
    path = tmp_path / "a.run"
    path.write_text(f"t Q0 {'d' * 500} 1 2.5 x\nt Q0 d2 2 1 x\n")
    assert read_run(path)["document"].tolist() == ["d" * 500, "d2"]


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


def plain_document(kind: str, line: str) -> tuple[str, str]:
    if kind == "tsv":
        document, tab, text = line.partition("\t")
        need(tab and document.strip())
        return document.strip(), text
    try:
        content = json_value(line)
    except ValueError:
        raise RefusedError from None
    need(isinstance(content, dict))
    identifier = next((content[key] for key in ("id", "_id") if key in content), None)
    need(type(identifier) in (int, str) and identifier != "")
    need(isinstance(content.get("text"), str))
    return str(identifier), content["text"]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("kind", ["jsonl", "tsv"])
@given(data=st.data())
def test_documents_are_read_as_a_plain_loop_reads_them(
    kind: str, data: Any, tmp_path: Path
) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_bytes(data.draw(collections(kind)))
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
        rows = [plain_document(kind, line.rstrip("\r")) for line in lines if line.strip()]
        need(rows)
    except (UnicodeDecodeError, RefusedError):
        with pytest.raises(InputError):
            list(documents.stream_documents(path))
    else:
        assert list(documents.stream_documents(path)) == rows


def test_bad_documents_are_named_by_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "d.tsv"
    path.write_bytes(b"a\tx\n\nno tab\n\xff\ty\n\tz\n")
    with pytest.raises(InputError) as caught:
        list(documents.stream_documents(path))
    assert [problem.line for problem in caught.value.problems] == [3, 4, 5]
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": 1, "text": "x"}\n' + "[]\n" * 1000)
    with pytest.raises(InputError) as caught:
        list(documents.stream_documents(path))
    assert len(caught.value.problems) == documents.MOST_PROBLEMS


def test_values_within_values_do_not_break_the_reader(tmp_path: Path) -> None:
    deep = b'{"id": "a", "text": "x", "z": ' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"
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
