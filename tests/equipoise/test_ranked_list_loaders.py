"""Runs, qrels, memberships, targets: what is read, what is refused, and the toy set by hand."""

from __future__ import annotations

import contextlib
import gzip
import tempfile
import warnings
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.attributes import AttributeSet
from equipoise.loaders.fairweb import read_memberships, read_target
from equipoise.loaders.trec import read_qrels, read_run, read_runs
from equipoise.measures.gfr import gfr_table
from equipoise.problems import InputError, Note
from equipoise_studies.pilot import upstream
from equipoise_studies.pilot.data import Pack, read_pack
from upstream import skip_without

NTCIR = "<SYSDESC>BM25, as it comes</SYSDESC>\n"
RUN = "M002 Q0 d1 1 12.5 bm25\nM002 Q0 d2 2 1e-3 bm25\nM003 Q0 d1 1 -4 bm25\n"
SIZE = AttributeSet("SIZE", "ordinal", ("small", "large"), np.ones(2))


def written(folder: Path, text: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def complaints(read: Any, *arguments: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(*arguments)
    return [
        f"{problem.line} {problem.column}: {problem.found}" for problem in caught.value.problems
    ]


# --- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "opening", ["", "<SYSDESC>BM25, as it comes</SYSDESC>\n", "\ufeff", "\n\n"]
)
def test_a_run_is_read_with_or_without_description_and_compressed(
    opening: str, tmp_path: Path
) -> None:
    plain = read_run(written(tmp_path, opening + RUN, "a.run"))
    assert plain["document"].tolist() == ["d1", "d2", "d1"]
    assert plain["score"].tolist() == [12.5, 0.001, -4.0]
    assert plain["rank"].tolist() == [1, 2, 1]
    assert set(plain["run"]) == {"bm25"}
    packed = read_run(written(tmp_path, gzip.compress((opening + RUN).encode()), "a.run.gz"))
    assert packed.equals(plain)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("M002 Q0 d2 2 1e-3 bm25", "M002 Q0 d2 2 1e-3", "2 None: 5 columns"),
        ("2 1e-3", "two 1e-3", "2 rank: 'two'"),
        ("2 1e-3", "2 nan", "2 score: 'nan'"),
        ("2 1e-3", "2 inf", "2 score: 'inf'"),
        ("2 1e-3", "2 1e999", "2 score: '1e999'"),
        ("2 1e-3", "2 0x10", "2 score: '0x10'"),
        ("M002 Q0 d2", "M002 Q0 d1", "2 document: d1 again for topic M002"),
        ("1e-3 bm25", "1e-3 bm52", "2 tag: 'bm52'"),
    ],
)
def test_a_bad_line_of_a_run_is_named(old: str, new: str, found: str, tmp_path: Path) -> None:
    assert old in RUN
    assert complaints(read_run, written(tmp_path, RUN.replace(old, new, 1))) == [found]


def test_a_run_in_parquet(tmp_path: Path) -> None:
    plain = read_run(written(tmp_path, RUN, "a"))
    plain.drop(columns="run").to_parquet(tmp_path / "a.parquet")
    assert read_run(tmp_path / "a.parquet").equals(plain.assign(run="a"))
    bad = plain.assign(
        rank=[1.0, 2.5, None], score=[1.0, float("inf"), 2.0], document=["d1", "d1", None]
    )
    bad.to_parquet(tmp_path / "bad.parquet")
    found = complaints(read_run, tmp_path / "bad.parquet")
    places = ["2 rank", "2 score", "2 document", "3 document", "3 rank"]
    assert sorted(complaint.split(":")[0] for complaint in found) == sorted(places)
    plain.drop(columns=["run", "score"]).to_parquet(tmp_path / "less.parquet")
    assert complaints(read_run, tmp_path / "less.parquet") == ["None score: no such column"]
    assert len(complaints(read_run, written(tmp_path, b"PAR1 and no more", "torn.parquet"))) == 1


SHUFFLED = (
    "t Q0 c 1 2.5 x\nt Q0 a 3 7 x\nu Q0 d 1 1 x\nt Q0 d 2 7.0000001 x\nt Q0 b 4 -1 x\n"
    "u Q0 e 2 1 x\n"
)


@pytest.mark.parametrize(
    ("order", "head", "documents", "note"),
    [
        (
            "auto",
            "",
            "dacb ed",
            "of 2 lists 2 are put in the order of their scores, as trec_eval does",
        ),
        ("score", NTCIR, "dacb ed", "(1 of them by id among equal scores alone)"),
        ("auto", NTCIR, "cadb de", "of 2 lists 1 have other scores or ranks than rows"),
        ("file", "", "cadb de", "and are taken as they stand"),
        ("rank", "", "cdab de", "of 2 lists 1 are put in the order of their ranks"),
    ],
)
def test_a_run_has_an_order_and_it_is_said(
    order: Any, head: str, documents: str, note: str, tmp_path: Path
) -> None:
    """7 and 7.0000001 are the same score in single precision, which trec_eval keeps."""
    with pytest.warns(Note) as notes:
        run = read_run(written(tmp_path, head + SHUFFLED, "a"), order=order)
    assert note in str(notes[0].message)
    lists = run.groupby("topic", sort=False)
    assert lists["document"].agg("".join).tolist() == documents.split()
    assert lists["rank"].agg(list).tolist() == [[1, 2, 3, 4], [1, 2]]


def test_without_an_order_a_run_is_as_its_file_has_it(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, SHUFFLED), order=None)
    assert run["document"].tolist() == [*"caddbe"]
    assert run["rank"].tolist() == [1, 3, 1, 2, 4, 2]
    # in order already, there is nothing to say
    read_run(written(tmp_path, RUN), order="score")
    large = written(tmp_path, RUN.replace("1e-3", "-1e308"))
    assert complaints(read_run, large) == [
        "None score: 1 scores such as -1e+308, of d2 for topic M002"
    ]
    assert read_run(large, order="file")["rank"].tolist() == [1, 2, 1]


@given(st.integers(0, 10**6))
def test_the_order_is_that_of_trec_eval(seed: int) -> None:
    """Of each document alone RR by trec_eval tells the rank."""
    rng = np.random.default_rng(seed)
    names = [f"d{number}" for number in rng.permutation(12)]
    scores = rng.choice([0.1, 0.1 + 1e-9, 0.1 + 1e-7, 2.0, -3.0], size=12)
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"t Q0 {n} 1 {s!r} x\n" for n, s in zip(names, scores.tolist(), strict=True)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Note)
            run = read_run(written(Path(folder), "".join(lines)))
    ranked = pd.DataFrame({"query_id": "t", "doc_id": names, "score": scores})
    for document, rank in zip(run["document"], run["rank"], strict=True):
        qrels = pd.DataFrame({"query_id": ["t"], "doc_id": [document], "relevance": [1]})
        assert ir_measures.calc_aggregate([ir_measures.RR], qrels, ranked) == {
            ir_measures.RR: pytest.approx(1 / rank)
        }


def test_files_that_are_no_runs(tmp_path: Path) -> None:
    assert complaints(read_run, written(tmp_path, "<SYSDESC>only that</SYSDESC>\n")) == [
        "None None: no ranked document"
    ]
    assert "1 None: <SYSDESC> without its end" in complaints(
        read_run, written(tmp_path, f"<SYSDESC>\n{RUN}")
    )
    assert len(complaints(read_run, tmp_path / "none")) == 1
    assert "an empty file" in complaints(read_run, written(tmp_path, ""))[0]
    assert complaints(read_run, written(tmp_path, gzip.compress(b" \n"), "blank.gz")) == [
        "None None: an empty file"
    ]
    packed = gzip.compress(RUN.encode() * 50)
    assert (
        "no whole gzip file" in complaints(read_run, written(tmp_path, packed[:-20], "torn.gz"))[0]
    )
    assert len(read_run(written(tmp_path, RUN, "plain.gz"))) == len(
        RUN.splitlines()
    )  # by its bytes, not its name
    assert (
        "not UTF-8"
        in complaints(read_run, written(tmp_path, gzip.compress(b"\xff\xfe"), "odd.gz"))[0]
    )


def test_problems_of_all_runs_are_told_together(tmp_path: Path) -> None:
    first = written(tmp_path, RUN.replace(" 2 1e-3", " x y"), "a")
    second = written(tmp_path, RUN.replace("d2", "d1").replace("bm25", "dense"), "b")
    assert complaints(read_runs, [first, second]) == [
        "2 rank: 'x'",
        "2 score: 'y'",
        "2 document: d1 again for topic M002",
    ]


def test_runs_are_called_by_their_tags_and_those_of_one_tag_by_their_paths(tmp_path: Path) -> None:
    paths = []
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        paths.append(written(tmp_path / folder, RUN, "a.run"))
    other = written(tmp_path, RUN.replace("bm25", "dense"), "b.run")
    with pytest.warns(Note, match="several files are called bm25: they go by their paths"):
        table = read_runs([*paths, other])
    assert table["run"].unique().tolist() == ["first/a", "second/a", "dense"]
    assert read_runs(other)["run"].unique().tolist() == ["dense"]
    assert "the same file twice" in complaints(read_runs, [other, other])[0]


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
    found = complaints(
        read_qrels, written(tmp_path, f"{header}\n{row}\n{row}x\n".replace("d1", "d2", 1))
    )
    assert [complaint.partition(":")[0] for complaint in found] == ["3 level"]
    # Only above the judgements, and only where the last names a level.
    assert len(complaints(read_qrels, written(tmp_path, f"{row}\n{header}\n"))) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("M002 d1\n", ["1 None: 2 columns"]),
        ("topic document author\nM002 d1 L1\n", ["1 level: 'author'"]),
        ("M002 d1 L2\nM002 0 d2 2\n", ["2 None: 4 columns"]),
        (
            "M002 d1 high\nM002 d2 L\nM002 d3 1.5\n",
            ["1 level: 'high'", "2 level: 'L'", "3 level: '1.5'"],
        ),
        ("M002 d1 L2\nM002 d1 L0\n", ["2 document: d1 again for topic M002"]),
    ],
)
def test_bad_qrels_are_refused(text: str, found: list[str], tmp_path: Path) -> None:
    assert complaints(read_qrels, written(tmp_path, text)) == found


# --- memberships and targets ----------------------------------------------------------------------


def test_memberships_and_targets_printed_with_few_digits_are_taken(tmp_path: Path) -> None:
    target = read_target(written(tmp_path, "0.333333\n0.333333\n0.333333\n"), "THIRDS", "nominal")
    np.testing.assert_allclose(target.target, 1 / 3, rtol=1e-15)
    assert target.groups == ("group 1", "group 2", "group 3")
    table = read_memberships(written(tmp_path, "t d 0.333333 0.333333 0.333333\n"), target)
    assert table[list(target.groups)].to_numpy().tolist() == [[0.333333] * 3]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("t d 0.5\n", "1 SIZE: 3 columns"),
        ("t d 0.5 half\n", "1 SIZE: 'half', not a number"),
        ("t d 0.5 0.4\n", "1 SIZE: probabilities that sum to 0.9"),
        ("t d 1.5 -0.5\n", "1 SIZE: 1.5 is not between 0 and 1"),
        ("t d nan 0.5\n", "1 SIZE: 'nan', not a number"),
        ("t d 1 0\nt d 0 1\n", "2 document: d again for topic t"),
    ],
)
def test_bad_memberships_are_refused(text: str, found: str, tmp_path: Path) -> None:
    (complaint,) = complaints(read_memberships, written(tmp_path, text), SIZE)
    assert complaint.startswith(found)


BAD_TARGET = (
    "None None: a target is made of non-negative numbers, not all zero, with a sum that is a number"
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0.5 0.5\n", "1 None: '0.5 0.5'"),
        ("1\n", "None None: at least two groups of different names are needed"),
        (
            "0.5\n-0.5\n",
            BAD_TARGET,
        ),
        (
            "1e308\n1e308\n",
            BAD_TARGET,
        ),
    ],
)
def test_bad_targets_are_refused(text: str, found: str, tmp_path: Path) -> None:
    assert complaints(read_target, written(tmp_path, text), "SIZE", "ordinal") == [found]


@given(st.binary(max_size=120))
def test_no_bytes_break_the_readers(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), content)
        for read in (
            read_run,
            read_qrels,
            lambda p: read_memberships(p, SIZE),
            lambda p: read_target(p, "A", "nominal"),
        ):
            with contextlib.suppress(InputError):
                assert read(path) is not None


# --- the toy set, worked by hand ------------------------------------------------------------------


@pytest.fixture(scope="module")
def toy() -> Pack:
    skip_without("fairweb")
    return Pack(
        upstream.fetch_runs("toy"),
        upstream.fetch_qrels("toy"),
        upstream.fetch_memberships("toy"),
        upstream.fetch_attributes("toy"),
    )


@pytest.mark.upstream
def test_toy_set_by_hand(toy: Pack) -> None:
    """Topic P001 of toyrun1: doc01 (L2), unjudged, doc02 (L0), doc04 (L1), unjudged.

    Users leave at rank 1 (3/4) and 4 (1/4 * 1/4). HINDEX (ordinal, uniform target): (1,0,0,0) at
    rank 1; at rank 4 the mean of (1,0,0,0), uniform, uniform and (0,0,0,1), (3/8, 1/8, 1/8, 3/8).
    GENDER: (1,0,0), (5/12, 2/12, 5/12).
    """
    table = gfr_table(toy.runs, toy.qrels, toy.memberships, toy.attributes, least_seen=0.4)
    scores = table[(table["run"] == "toyrun1") & (table["topic"] == "P001")].set_index(
        ["attribute", "measure"]
    )["value"]
    leave, later = 3 / 4, 1 / 16

    def match_distance(cumulated: list[float]) -> float:
        return sum(abs(c - (i + 1) / 4) for i, c in enumerate(cumulated)) / 3

    def order_aware(p: list[float]) -> float:
        return float(
            np.sqrt(
                sum(abs(i - j) * (p[j] - 0.25) ** 2 for i in range(4) for j in range(4)) / 4 / 3
            )
        )

    def shannon(p: list[float]) -> float:
        pairs = [(x, (x + 1 / 3) / 2) for x in p] + [(1 / 3, (x + 1 / 3) / 2) for x in p]
        return float(sum(x * np.log2(x / m) for x, m in pairs if x) / 2)

    mean = [3 / 8, 1 / 8, 1 / 8, 3 / 8]
    expected = {
        ("", "ERR"): leave + later / 4,
        ("", "iRBU"): leave * 0.99 + later * 0.99**4,
        ("R-HINDEX", "GF-NMD"): leave * (1 - match_distance([1, 1, 1]))
        + later * (1 - match_distance([3 / 8, 1 / 2, 5 / 8])),
        ("R-HINDEX", "GF-RNOD"): leave * (1 - order_aware([1, 0, 0, 0]))
        + later * (1 - order_aware(mean)),
        ("R-GENDER", "GF-JSD"): leave * (1 - shannon([1, 0, 0]))
        + later * (1 - shannon([5 / 12, 2 / 12, 5 / 12])),
    }
    for key, value in expected.items():
        assert scores[key] == pytest.approx(value, abs=2e-6), (
            key
        )  # the files print thirds with six digits
    parts = [expected["", "iRBU"], expected["R-GENDER", "GF-JSD"], expected["R-HINDEX", "GF-RNOD"]]
    assert scores["", "GFR-iRBU+JSD+RNOD"] == pytest.approx(sum(parts) / 3, abs=2e-6)


def test_the_pilot_pack_is_whole() -> None:
    pack = read_pack()
    assert len(pack.qrels) == 393
    assert pack.runs.groupby(["run", "topic"]).size().tolist() == [100] * 12
    judged = set(map(tuple, pack.qrels[["topic", "document"]].to_numpy().tolist()))
    for members in pack.memberships.values():
        assert set(map(tuple, members[["topic", "document"]].to_numpy().tolist())) <= judged
