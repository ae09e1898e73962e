"""Guards the command: options, tidy output, help, and the standard input."""

import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest

from commands import called as run
from equipoise.loaders.scores import read_scores
from equipoise.loaders.trec import read_run
from equipoise_cli import main
from equipoise_compendium import project
from equipoise_compendium.printed import printed_table

DATA = project.root() / "data"
MOVIES = [
    str(DATA / "conversations" / "M002.csv"),
    "--attributes",
    str(DATA / "attributes" / "fairweb_movies.yaml"),
]
RESEARCHERS = [
    str(DATA / "conversations" / "R112.csv"),
    "--attributes",
    str(DATA / "attributes" / "fairweb_researchers.yaml"),
]


def table(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, keep_default_na=False)


def test_score_gfrc_writes_tidy_csv(tmp_path: Path) -> None:
    output = tmp_path / "scores.csv"
    result = run("score", "gfrc", *MOVIES, "-o", str(output))
    seen = "coverage: 2 of 2 conversations have a relevant nugget (100%)\n"
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(seen)
    scores = table(output)
    assert scores.columns.tolist() == ["run", "topic", "attribute", "measure", "value"]
    assert scores["measure"].tolist() == ["R", "GF", "GF", "GF", "GFRC"] * 2
    printed = printed_table("gfrc/table-1").set_index(["run", "nugget"])["R"]
    for name in ("bing-1", "google-1"):
        r = scores[scores["run"].eq(name) & scores["measure"].eq("R")]["value"].item()
        assert f"{r:.4f}" == printed[name, "all"]
    assert run("score", "gfrc", *MOVIES).stdout == output.read_text()


@pytest.mark.parametrize("name", ["+rm3", "=cmd|' /C calc'!A0", "'quoted"])
def test_an_id_comes_back_as_it_went_in(name: str, tmp_path: Path) -> None:
    """Also one that a spreadsheet would run: the table is data for a command."""
    text = Path(MOVIES[0]).read_text().replace("\nbing-1,", f"\n{name},")
    (tmp_path / "n.csv").write_text(text)
    words = ["score", "gfrc", str(tmp_path / "n.csv"), *MOVIES[1:]]
    assert run(*words, "-o", str(tmp_path / "s.csv")).exit_code == 0
    assert name in set(read_scores(tmp_path / "s.csv")["run"])
    assert (tmp_path / "s.csv").read_text() == run(*words).stdout


def test_score_gfrc2_with_clusters(tmp_path: Path) -> None:
    output, clusters = tmp_path / "scores.csv", tmp_path / "clusters.csv"
    result = run("score", "gfrc2", *RESEARCHERS, "--clusters", str(clusters), "-o", str(output))
    assert result.exit_code == 0, result.output
    scores = table(output).set_index(["run", "measure", "attribute"])["value"]
    for row in printed_table("gfrc2/table-3").to_dict("records"):
        assert f"{scores[row['run'], 'GFRC2', '']:.6f}" == row["GFRC2"]
    options = ("--patience", "1000", "--gains", "exponential", "-o", str(output), "--force")
    assert run("score", "gfrc", *RESEARCHERS, *options).exit_code == 0
    scores = table(output).set_index(["run", "measure", "attribute"])["value"]
    for row in printed_table("gfrc2/table-5").to_dict("records"):
        assert f"{scores[row['run'], 'GFRC', '']:.6f}" == row["GFRC"]
    assert len(table(clusters)) == 11
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clusters.csv", "scores.csv"]


def test_factors_say_who_leaves_with_what(tmp_path: Path) -> None:
    factors, output = tmp_path / "factors.csv", tmp_path / "scores.csv"
    stop = ("--stop-model", "nuggets", "--utility", "words")
    result = run(
        "score", "gfrc2", *RESEARCHERS, *stop, "--factors", str(factors), "-o", str(output)
    )
    assert result.exit_code == 0, result.output
    found, scores = table(factors), table(output)
    assert found["served"].tolist() == pytest.approx([1.0] * 6)
    assert found["expected"].tolist() == pytest.approx(
        scores[scores["measure"].isin(["EU", "EGF"])]["value"].tolist()
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["factors.csv", "scores.csv"]


def test_options_change_the_scores() -> None:
    plain = run("score", "gfrc", *MOVIES).output
    for options in (
        ["--patience", "600"],
        ["--gains", "exponential"],
        ["--gains", "1:0.2,2:0.9"],
        ["--position-weight", "zero-based"],
        ["--distribution", "cumulative"],
        ["--empty-turns", "uniform"],
        ["--turn-weight", "largest-nugget"],
        ["--ordinal", "nmd"],
        ["--nominal", "nvd"],
        ["--weights", "RATINGS:1,ORIGIN:3"],
        ["--alpha", "0.5"],
        ["--attribute", "RATINGS"],
    ):
        result = run("score", "gfrc", *MOVIES, *options)
        assert result.exit_code == 0, result.output
        assert result.output != plain, options
    assert (
        run("score", "gfrc2", *RESEARCHERS, "--weights", "utility:1,PRONOUN:0,HINDEX:0").exit_code
        == 0
    )


# --- score gfr, folders, the standard input -------------------------------------------------------

RUN = "t1 Q0 a 1 3 r1\nt1 Q0 x 2 2 r1\nt1 Q0 b 3 1 r1\n"
FILES = {
    "r1": RUN,
    "r2": "<SYSDESC>second</SYSDESC>\n" + RUN.replace("Q0 a", "Q0 z").replace("r1", "r2"),
    "qrels": "t1 a L2\nt1 b L1\n",
    "members": "t1 a 1 0 0\nt1 b 0 0 1\n",
    "target": "0.5\n0.25\n0.25\n",
}
GFR = ["score", "gfr", "--qrels", "qrels", "--membership", "SIZE=members"]
GFR += ["--target", "SIZE=target", "--kind", "SIZE=ordinal", "--run", "r1"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_score_gfr_writes_a_tidy_table(files: Path) -> None:
    result = run(*GFR, "--run", "r2", "-o", "out.csv")
    assert result.exit_code == 0, result.output
    scores = table(files / "out.csv")
    assert list(scores.columns) == ["run", "topic", "attribute", "measure", "value", "seen"]
    assert set(scores["topic"]) == {"t1", ""}
    names = {f"GFR-{utility}+{name}" for utility in ("ERR", "iRBU") for name in ("NMD", "RNOD")}
    assert set(scores["measure"]) == names | {"ERR", "iRBU", "GF-NMD", "GF-RNOD"}
    err = scores[scores["measure"].eq("ERR") & scores["topic"].eq("t1")].set_index("run")["value"]
    # By hand: L2 at rank 1, L1 at rank 3.
    assert err["r1"] == pytest.approx(3 / 4 + 1 / 16 / 3)
    assert err["r2"] == pytest.approx(1 / 4 / 3)
    assert run(*GFR, "--run", "r2", "-o", "out.parquet").exit_code == 0
    values = pd.read_parquet(files / "out.parquet")["value"]
    np.testing.assert_allclose(values, scores["value"], rtol=1e-11)
    cut = run(*GFR, "--cutoff", "2", "--gains", "1:1,2:1")
    assert "r1,t1,,ERR,0.5,0.5\n" in cut.output
    shares = run(*GFR, "--by-group").stdout
    assert "r1,t1,SIZE,ERR(group=group 1),0.75," in shares


@pytest.mark.usefixtures("files")
def test_a_run_scores_the_same_alone_and_among_others() -> None:
    both = run(*GFR, "--run", "r2").stdout.splitlines()
    alone = run(*GFR).stdout.splitlines()
    assert [line for line in both if line.startswith("r1,")] == alone[1:]


def test_a_folder_of_runs_in_parquet_or_packed(files: Path) -> None:
    expected = run(*GFR, "--run", "r2").stdout
    (files / "runs").mkdir()
    read_run(files / "r1").to_parquet(files / "runs" / "r1.parquet", index=False)
    (files / "runs" / "r2.gz").write_bytes(gzip.compress(FILES["r2"].encode()))
    assert run(*GFR[:-1], "runs").stdout == expected


def test_a_third_grade_has_a_gain(files: Path) -> None:
    """Levels 1 to 3 have 1, 3 and 7: a stop probability of 7/8, as ERR's (2^3 - 1) / 2^3."""
    (files / "qrels").write_text(FILES["qrels"].replace("L2", "L3"))
    scores = run(*GFR).stdout
    assert scores == run(*GFR, "--gains", "1:1,2:3,3:7").stdout
    assert scores == run(*GFR, "--gains", "exponential").stdout


def test_score_takes_a_folder_of_files(tmp_path: Path) -> None:
    nuggets = pd.read_csv(MOVIES[0], dtype=str, keep_default_na=False)
    (tmp_path / "in").mkdir()
    for name, part in nuggets.groupby("run"):
        part.to_parquet(tmp_path / "in" / f"{name}.parquet", index=False)
    for measure in ("gfrc", "gfrc2"):
        many = run("score", measure, tmp_path / "in", *MOVIES[1:])
        assert many.exit_code == 0, many.output
        assert many.stdout == run("score", measure, *MOVIES).stdout
    words = ("score", "gfrc2", tmp_path / "in", *MOVIES[1:], "--clusters", tmp_path / "c.csv")
    assert "a folder is scored without --clusters" in run(*words).output
    nuggets.to_parquet(tmp_path / "in" / "again.parquet", index=False)
    assert "two files have a conversation twice" in run(*words[:-2]).output


@pytest.mark.parametrize("options", [(), ("--clusters", "clusters.csv")])
def test_a_dash_is_the_standard_input(options: tuple[str, ...], tmp_path: Path) -> None:
    words = ["score", "gfrc2", "-", *RESEARCHERS[1:], *options]
    command = [sys.executable, "-m", "equipoise_cli", *words]
    content = Path(RESEARCHERS[0]).read_bytes()
    result = subprocess.run(command, input=content, capture_output=True, cwd=tmp_path, check=True)
    expected = run("score", "gfrc2", *RESEARCHERS)
    assert result.stdout.decode() == expected.stdout


# --- other commands -------------------------------------------------------------------------------


def test_list_shows_notebooks_parameters_and_artefacts() -> None:
    result = run("list")
    assert result.exit_code == 0
    assert (
        "-p patience=1250  (int)  L, the number of words a user is willing to read" in result.output
    )
    assert "gfrc2/table-5" in result.output


def commands(
    group: click.Group = main, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that is no group, by the words that call it."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


def test_no_summary_of_a_command_is_cut() -> None:
    for words in ([], ["score"], ["data"]):
        text = " ".join(run(*words, "--help").output.split())
        assert "..." not in text.replace("ARGS]...", "")
        for path, command in commands():
            if [*path[:-1]] == words:
                summary = command.get_short_help_str(limit=1000)
                assert f"{path[-1]} {summary}" in text.replace("RO- Crate", "RO-Crate").replace(
                    "one- way", "one-way"
                )
                assert len(summary) <= 100, path


def test_options_stand_under_headings() -> None:
    text = run("score", "gfr", "--help").output
    headings = ["Input:", "Measure:", "Statistics:", "Statistics, with --intervals:", "Output:"]
    places = [text.index(f"\n{heading}\n") for heading in headings]
    assert places == sorted(places)
    parts = dict(zip(headings, (text[start:] for start in places), strict=True))
    for option, heading, next_heading in (
        ("--qrels", "Input:", "Measure:"),
        ("--cutoff", "Measure:", "Statistics:"),
        ("--resamples", "Statistics, with --intervals:", "Output:"),
        ("--force", "Output:", "Other:"),
    ):
        part = parts[heading].partition(f"\n{next_heading}\n")[0]
        assert f"\n  {option} " in part or f", {option}" in part
