"""The command ``equipoise score ranking-bias``: what it writes, says and refuses."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from equipoise.measures.ranking_bias import TermGroups, count_terms, score_ranking_bias
from equipoise_cli import main

DOCUMENTS = {
    "d1": "he and him",
    "d2": "she said her thing to him",
    "d3": "rain falls",
    "d4": "she and she",
}
RUN = (
    "q1 Q0 d1 1 3 bm25\nq1 Q0 d2 2 2 bm25\nq1 Q0 d3 3 1 bm25\n"
    "q2 Q0 d3 1 9 bm25\nq2 Q0 d4 2 8 bm25\n"
)
TERMS = "he,m\nhim,m\nshe,f\nher,f\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    paths = {
        "run": tmp_path / "bm25",
        "documents": tmp_path / "d.tsv",
        "terms": tmp_path / "terms.txt",
    }
    paths["run"].write_text(RUN)
    paths["documents"].write_text("".join(f"{name}\t{text}\n" for name, text in DOCUMENTS.items()))
    paths["terms"].write_text(TERMS)
    return paths


def called(files: dict[str, Path], *more: str) -> Result:
    arguments = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    return CliRunner().invoke(main, ["score", "ranking-bias", *arguments, *more])


def library(**options: Any) -> pd.DataFrame:
    groups = TermGroups.from_pairs(
        [(line.partition(",")[0], line.partition(",")[2]) for line in TERMS.split()]
    )
    rows = [line.split() for line in RUN.splitlines()]
    runs = pd.DataFrame(
        [("bm25", row[0], row[2], int(row[3])) for row in rows],
        columns=["run", "topic", "document", "rank"],
    )
    return score_ranking_bias(runs, count_terms(DOCUMENTS.items(), groups.terms), groups, **options)


def read(text: str) -> pd.DataFrame:
    return pd.read_csv(
        io.StringIO(text), dtype={"topic": "str"}, keep_default_na=False, na_values={"value": [""]}
    )


def test_the_csv_is_the_library_s_table(files: dict[str, Path]) -> None:
    result = called(files, "--cutoff", "1,3", "--background", str(files["run"]))
    assert result.exit_code == 0, result.output
    expected = library(cutoffs=[1, 3], background="own")  # of one run, its lists are that
    ours = read(result.stdout)
    assert ours.columns.tolist() == ["run", "topic", "attribute", "measure", "value", "seen"]
    pd.testing.assert_frame_equal(ours, expected, check_dtype=False)
    assert {"NFaiRR@3", "FaiRR@3", "TED@3", "TExFAIR@3"} <= set(ours["measure"])


def test_background_and_output_file(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    result = called(
        files,
        "--background",
        "collection",
        "--cutoff",
        "2",
        "-o",
        str(out),
    )
    assert result.exit_code == 0, result.output
    expected = library(cutoffs=[2], background="collection")
    pd.testing.assert_frame_equal(read(out.read_text()), expected, check_dtype=False)
    assert result.stdout == ""
    pool = tmp_path / "pool"
    pool.write_text("q1 Q0 d3 1 1 bm25\nq2 Q0 d4 1 1 bm25\n")
    by_run = read(called(files, "--background", str(pool), "--cutoff", "2").stdout)
    table = pd.DataFrame({"topic": ["q1", "q2"], "document": ["d3", "d4"]})
    pd.testing.assert_frame_equal(by_run, library(cutoffs=[2], background=table), check_dtype=False)


def test_documents_may_be_json_lines(files: dict[str, Path], tmp_path: Path) -> None:
    plain = called(files).stdout
    files["documents"] = tmp_path / "d.jsonl"
    files["documents"].write_text(
        "".join(json.dumps({"id": k, "text": v}) + "\n" for k, v in DOCUMENTS.items())
    )
    assert called(files).stdout == plain


def test_a_shared_term_and_a_missing_document_are_notes_not_errors(files: dict[str, Path]) -> None:
    files["terms"].write_text(TERMS + "robin,m\nRobin,f\n")
    files["run"].write_text(RUN + "q2 Q0 d9 3 1 bm25\n")
    result = called(files)
    assert result.exit_code == 0
    assert "robin in more than one group" in result.stderr
    assert "coverage: 5 of 6 ranked documents have a text (83%); missing for d9" in result.stderr


def test_folders_of_runs_and_documents_give_what_one_file_gives(
    files: dict[str, Path], tmp_path: Path
) -> None:
    plain = called(files).stdout
    lines = files["documents"].read_text().splitlines(keepends=True)
    (tmp_path / "docs" / "inner").mkdir(parents=True)
    (tmp_path / "docs" / "a.tsv").write_text("".join(lines[:1]))
    (tmp_path / "docs" / "b.tsv.gz").write_bytes(gzip.compress("".join(lines[1:3]).encode()))
    name, text = lines[3].rstrip("\n").split("\t")
    (tmp_path / "docs" / "inner" / "c.jsonl").write_text(json.dumps({"id": name, "text": text}))
    (tmp_path / "runs").mkdir()
    files["run"].rename(tmp_path / "runs" / "bm25")
    files |= {"documents": tmp_path / "docs", "run": tmp_path / "runs"}
    assert called(files).stdout == plain
    (tmp_path / "docs" / "d.tsv").write_text(lines[0])
    again = called(files)
    assert again.exit_code == 2
    assert "document ids must be unique, got d1 twice" in again.stderr
