"""Runs, qrels, memberships, targets: what is read, and how what is wrong is named."""

from __future__ import annotations

import contextlib
import gzip
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.attributes import AttributeSet
from equipoise.errors import InputError, Note
from equipoise.loaders import columns
from equipoise.loaders.fairweb import read_memberships, read_target
from equipoise.loaders.trec import read_qrels, read_run, read_runs
from equipoise_studies.conversations.data import read_pack

NTCIR = "<SYSDESC>BM25, as it comes</SYSDESC>\n"
RUN = "M002 Q0 d1 1 12.5 bm25\nM002 Q0 d2 2 1e-3 bm25\nM003 Q0 d1 1 -4 bm25\n"
SIZE = AttributeSet("SIZE", "ordinal", ("small", "large"), np.ones(2))
READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    "run": read_run,
    "qrels": read_qrels,
    "memberships": lambda path: read_memberships(path, SIZE),
}
LINES = {
    "run": "t{0} Q0 d1 1 2.5 bm25",
    "qrels": "t{0} 0 d1 2",
    "memberships": "t{0} d1 0.25 0.75",
}


def written(folder: Path, content: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def fault(read: Any, path: Path, *arguments: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(path, *arguments)
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize("opening", ["", NTCIR, "\ufeff"])
def test_a_run_is_read_with_or_without_description_and_compressed(
    opening: str, tmp_path: Path
) -> None:
    run = read_run(written(tmp_path, opening + RUN, "a.run"))
    assert run["document"].tolist() == ["d1", "d2", "d1"]
    assert run["score"].tolist() == [12.5, 0.001, -4.0]
    assert run["rank"].tolist() == [1, 2, 1]
    assert set(run["run"]) == {"bm25"}
    packed = read_run(written(tmp_path, gzip.compress((opening + RUN).encode()), "a.run.gz"))
    assert packed.equals(run)
    first = read_run(tmp_path / "a.run", depth=1)
    assert first.equals(run[run["rank"] == 1].reset_index(drop=True))


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", "   "),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", " \n\n  "),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
    ],
)
def test_the_same_lines_with_other_white_space(
    kind: str, change: Callable[[str], str], tmp_path: Path
) -> None:
    text = "".join(LINES[kind].format(number) + "\n" for number in range(3))
    expected = READERS[kind](written(tmp_path, text))
    assert READERS[kind](written(tmp_path, change(text))).equals(expected)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 1e-3 bm25", "2 1e-3", ", line 2: must be 6 columns, topic Q0 document rank score tag"),
        ("2 1e-3 bm25", "2 1e-3 bm25 x", "got 7"),
        ("1e-3", "x", ", line 2, column \"score\": must be a finite number, got 'x'"),
        ("1e-3", "nan", 'line 2, column "score": must be a finite number, got nan'),
        ("1e-3", "inf", 'line 2, column "score": must be a finite number, got inf'),
        ("Q0 d2", "Q0 d1", 'line 2, column "document": must be unique in the ranking of a topic'),
        ("1e-3 bm25", "1e-3 bm52", "column \"tag\": must be 'bm25', as in the first line, got"),
    ],
)
def test_a_bad_line_of_a_run_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in RUN
    assert message in fault(read_run, written(tmp_path, RUN.replace(old, new, 1)))


def test_lines_are_counted_with_the_description_and_blank_lines(tmp_path: Path) -> None:
    path = written(tmp_path, NTCIR + "\nt Q0 d1 1 2.5 x\n \nt Q0 d2 2 inf x\n")
    assert "line 5" in fault(read_run, path)
    path = written(tmp_path, NTCIR + "\nt Q0 d1 1 2.5 x\n \nt Q0 d2 2 two x\n")
    assert "line 5" in fault(read_run, path)


def test_duplicates_are_found_in_blocks_of_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_BLOCK", 2)
    lines = [f"t{topic} Q0 d{n} 1 {9 - n} x\n" for topic in range(3) for n in range(3)]
    assert len(read_run(written(tmp_path, "".join(lines)))) == 9
    again = [*lines, "t2 Q0 d1 4 1 x\n"]
    assert 'line 10, column "document"' in fault(read_run, written(tmp_path, "".join(again)))
    apart = [*lines, "t0 Q0 d1 4 1 x\n"]  # topic t0 is not together
    assert 'line 10, column "document"' in fault(read_run, written(tmp_path, "".join(apart)))


def test_a_run_in_parquet(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, RUN, "a"))
    run.drop(columns="run").to_parquet(tmp_path / "a.parquet")
    named = run.assign(run=pd.Categorical(["a"] * len(run)))
    assert read_run(tmp_path / "a.parquet").equals(named)
    run.drop(columns="score").to_parquet(tmp_path / "less.parquet")
    assert "must be Parquet with topic, document, score" in fault(
        read_run, tmp_path / "less.parquet"
    )


SHUFFLED = (
    "t Q0 c 1 2.5 x\nt Q0 a 3 7 x\nu Q0 d 1 1 x\nt Q0 d 2 7.0000001 x\nt Q0 b 4 -1 x\n"
    "u Q0 e 2 1 x\n"
)


@pytest.mark.parametrize(
    ("order", "head", "documents"),
    [
        ("auto", "", "dacb ed"),
        ("score", NTCIR, "dacb ed"),
        ("auto", NTCIR, "cadb de"),
        ("file", "", "cadb de"),
    ],
)
@pytest.mark.filterwarnings("ignore::equipoise.errors.Note")
def test_a_run_has_an_order(order: Any, head: str, documents: str, tmp_path: Path) -> None:
    """7 and 7.0000001 are the same score in single precision, which trec_eval keeps."""
    run = read_run(written(tmp_path, head + SHUFFLED, "a"), order=order)
    rankings = run.groupby("topic", sort=False)
    assert rankings["document"].agg("".join).tolist() == documents.split()
    assert rankings["rank"].agg(list).tolist() == [[1, 2, 3, 4], [1, 2]]


def test_sorting_is_noted_and_no_order_leaves_the_file_s(tmp_path: Path) -> None:
    path = written(tmp_path, SHUFFLED)
    with pytest.warns(Note, match="2 of 2 rankings were not in the order"):
        read_run(path)
    run = read_run(path, order=None)
    assert run["document"].tolist() == [*"caddbe"]
    assert run["rank"].tolist() == [1, 3, 1, 2, 4, 2]


@given(st.integers(0, 10**6))
def test_the_order_is_that_of_trec_eval(seed: int) -> None:
    """RR by trec_eval with one relevant document shows its rank."""
    rng = np.random.default_rng(seed)
    names = [f"d{number}" for number in rng.permutation(12)]
    scores = rng.choice([0.1, 0.1 + 1e-9, 0.1 + 1e-7, 2.0, -3.0], size=12)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        lines = [f"t Q0 {n} 1 {s!r} x\n" for n, s in zip(names, scores.tolist(), strict=True)]
        run = read_run(written(Path(folder), "".join(lines)))
    ranked = pd.DataFrame({"query_id": "t", "doc_id": names, "score": scores})
    for document, rank in zip(run["document"], run["rank"], strict=True):
        qrels = pd.DataFrame({"query_id": ["t"], "doc_id": [document], "relevance": [1]})
        rr = ir_measures.calc_aggregate([ir_measures.RR], qrels, ranked)[ir_measures.RR]
        assert rr == pytest.approx(1 / rank)


def test_files_that_are_no_runs(tmp_path: Path) -> None:
    for content in (NTCIR, "", gzip.compress(b" \n")):
        assert "got an empty file" in fault(read_run, written(tmp_path, content))
    torn = gzip.compress(RUN.encode() * 50)[:-20]
    assert "must be a complete gzip file" in fault(read_run, written(tmp_path, torn))
    assert "must be UTF-8 text" in fault(read_run, written(tmp_path, b"t Q0 \xff 1 2 x\n"))


def test_runs_are_called_by_their_tags_and_those_of_one_tag_by_their_paths(tmp_path: Path) -> None:
    paths = []
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        paths.append(written(tmp_path / folder, RUN, "a.run"))
    other = written(tmp_path, RUN.replace("bm25", "dense"), "b.run")
    table = read_runs([*paths, other])
    assert table["run"].unique().tolist() == ["first/a", "second/a", "dense"]
    assert read_runs(other)["run"].unique().tolist() == ["dense"]


# --- qrels ----------------------------------------------------------------------------------------


def test_both_forms_of_qrels(tmp_path: Path) -> None:
    ntcir = read_qrels(written(tmp_path, "M002 d1 L2\nM002 d2 L0\n"))
    trec = read_qrels(written(tmp_path, "M002 0 d1 2\nM002 0 d2 -1\n"))
    assert ntcir.equals(trec)
    assert ntcir["level"].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("query-id\tcorpus-id\tscore", "q::2\td1\t1"),  # BEIR, MTRAG
        ("#query_id #0 #passage_id #relevance", "q::2 0 d1 1"),  # CaSE
        ("\ufeffTopic Iteration DocID Relevance\r", "q::2 0 d1 1"),
        ("topic document level", "q::2 d1 L1"),
    ],
)
def test_names_of_columns_are_no_judgement(header: str, row: str, tmp_path: Path) -> None:
    table = read_qrels(written(tmp_path, f"{header}\n{row}\n"))
    assert table.to_numpy().tolist() == [["q::2", "d1", 1]]
    message = fault(read_qrels, written(tmp_path, f"{header}\n{row}\n{row}x\n"))
    assert 'line 3, column "level": must be a level such as L2 or 2' in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("M002 d1\n", ", line 1: must be 4 columns, topic iteration document level, got 2"),
        ("topic document author\nM002 d1 L1\n", "line 1, column \"level\": .*got 'author'"),
        ("M002 d1 L2\nM002 0 d2 2\n", "line 2: must be 3 columns, topic document level, got 4"),
        ("M002 d1 L2\nM002 d3 1.5\n", "line 2, column \"level\": .* got '1.5'"),
        ("M002 d1 L2\nM002 d1 L0\n", 'line 2, column "document": must be unique in the judgements'),
        (RUN, "line 1: must be judgements, topic 0 document level, got a run"),
    ],
)
def test_bad_qrels_are_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_qrels(written(tmp_path, text))


# --- memberships and targets ----------------------------------------------------------------------


def test_memberships_and_targets_with_few_digits_are_taken(tmp_path: Path) -> None:
    target = read_target(written(tmp_path, "0.333333\n0.333333\n0.333333\n"), "THIRDS", "nominal")
    np.testing.assert_allclose(target.target, 1 / 3, rtol=1e-15)
    assert target.groups == ("group 1", "group 2", "group 3")
    table = read_memberships(written(tmp_path, "t d 0.333333 0.333333 0.333333\n"), target)
    assert table[list(target.groups)].to_numpy().tolist() == [[0.333333] * 3]


SHARES = 'line 1, column "SIZE": must be 2 probabilities that sum to 1'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t d 0.5\n", "line 1: must be 4 columns, topic document and 2 shares, got 3"),
        ("t d 0.5 half\n", "line 1, column \"SIZE large\": must be a finite number, got 'half'"),
        ("t d 0.5 0.4\n", SHARES),
        ("t d 1.5 -0.5\n", SHARES),
        ("t d nan 0.5\n", SHARES),
        ("t d 1 0\nt d 0 1\n", 'line 2, column "document": must be unique in the memberships'),
    ],
)
def test_bad_memberships_are_named(text: str, message: str, tmp_path: Path) -> None:
    assert message in fault(read_memberships, written(tmp_path, text), SIZE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5 0.5\n", "line 1: must be one number per line, got '0.5 0.5'"),
        ("1\n", "groups must be two or more different names"),
        ("0.5\n-0.5\n", "target must have non-negative numbers with a sum above 0"),
        ("1e308\n1e308\n", "target must have non-negative numbers with a sum above 0"),
    ],
)
def test_bad_targets_are_named(text: str, message: str, tmp_path: Path) -> None:
    assert message in fault(read_target, written(tmp_path, text), "SIZE", "ordinal")


@given(st.binary(max_size=120))
def test_no_bytes_break_the_readers(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), content)
        for read in READERS.values():
            with contextlib.suppress(InputError):
                assert read(path) is not None
        with contextlib.suppress(InputError):
            assert read_target(path, "A", "nominal").groups


def test_the_pilot_pack_is_complete() -> None:
    pack = read_pack()
    assert len(pack.qrels) == 393
    assert pack.runs.groupby(["run", "topic"]).size().tolist() == [100] * 12
    judged = set(map(tuple, pack.qrels[["topic", "document"]].to_numpy().tolist()))
    for members in pack.memberships.values():
        assert set(map(tuple, members[["topic", "document"]].to_numpy().tolist())) <= judged
