"""Guards the command: options, tidy output, and bad input that ends with status 2.

Bad input leaves no traceback and no file.
"""

from pathlib import Path

import pandas as pd
import pytest

from bad_calls import commands
from commands import called as run
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
    seen = "seen: 12 relevant nuggets in 3 of 4 turns of 2 conversations\n"
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", seen)
    scores = table(output)
    assert scores.columns.tolist() == ["run", "topic", "attribute", "measure", "value"]
    assert scores["measure"].tolist() == ["R", "GF", "GF", "GF", "GFRC"] * 2
    printed = printed_table("gfrc/table-1").set_index(["run", "nugget"])["R"]
    for name in ("bing-1", "google-1"):
        r = scores[scores["run"].eq(name) & scores["measure"].eq("R")]["value"].item()
        assert f"{r:.4f}" == printed[name, "all"]
    assert run("score", "gfrc", *MOVIES).stdout == output.read_text()


def test_cells_that_begin_as_formulas_are_marked(tmp_path: Path) -> None:
    text = Path(MOVIES[0]).read_text().replace("\nbing-1,", "\n=cmd|' /C calc'!A0,")
    (tmp_path / "n.csv").write_text(text)
    words = ["score", "gfrc", str(tmp_path / "n.csv"), *MOVIES[1:]]
    shown = run(*words).stdout
    assert "\n'=cmd|' /C calc'!A0," in shown
    assert "\n=cmd" not in shown
    assert run(*words, "-o", str(tmp_path / "s.csv")).exit_code == 0
    assert (tmp_path / "s.csv").read_text() == shown


def test_score_gfrc2_with_clusters_and_comparison(tmp_path: Path) -> None:
    output, clusters = tmp_path / "scores.csv", tmp_path / "clusters.csv"
    result = run(
        "score", "gfrc2", *RESEARCHERS, "--compare", "--clusters", str(clusters), "-o", str(output)
    )
    assert result.exit_code == 0, result.output
    scores = table(output).set_index(["run", "measure", "attribute"])["value"]
    for name, column in (("gfrc2/table-3", "GFRC2"), ("gfrc2/table-5", "GFRC")):
        for row in printed_table(name).to_dict("records"):
            assert f"{scores[row['run'], column, '']:.6f}" == row[column]
    assert len(table(clusters)) == 11
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clusters.csv", "scores.csv"]


def test_factors_say_who_leaves_with_what(tmp_path: Path) -> None:
    factors, output = tmp_path / "factors.csv", tmp_path / "scores.csv"
    stop = ("--stop-model", "nuggets", "--utility", "words", "--unserved", "utility:1")
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
        ["--weights", "RATINGS:1/4,ORIGIN:3/4"],
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gains", "2"], "name:number"),
        (["--gains", "1:0,2:0"], "with a sum above 0"),
        (["--gains", "high:1"], "whole numbers from 1"),
        (["--gains", "1:0.5"], "no gain for level 2"),
        (["--gains", "1:a,2:1"], "'a'"),
        (["--weights", "RATINGS:1"], "ORIGIN"),
        (["--weights", "RATINGS:1,RATINGS:2"], "each name once"),
        (["--attribute", "COLOUR"], "it has RATINGS, ORIGIN"),
        (["--patience", "0"], "patience"),
        (["--turn-weight", "largest-nugget", "--empty-turns", "uniform"], "no largest nugget"),
        (["--distribution", "both"], "independent"),
    ],
)
def test_wrong_options_end_with_status_2(tmp_path: Path, options: list[str], message: str) -> None:
    output = tmp_path / "scores.csv"
    result = run("score", "gfrc", *MOVIES, *options, "-o", str(output))
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
    assert not output.exists()


def test_bad_input_is_one_report_and_no_file(tmp_path: Path) -> None:
    bad, output = tmp_path / "bad.csv", tmp_path / "scores.csv"
    text = (
        (DATA / "conversations" / "M002.csv")
        .read_text()
        .replace(",35,35,", ",35,34,")
        .replace("2,Back to the Future,0 0 0 1", "2,Back to the Future,0 0 1")
    )
    bad.write_text(text)
    output.write_text("run,topic,attribute,measure,value\nthe last good scores")
    result = run("score", "gfrc", str(bad), *MOVIES[1:], "-o", str(output), "--alpha", "0.5")
    assert result.exit_code == 2
    lines = result.output.splitlines()
    assert ["line 2" in line for line in lines] == [True, True, False, False]
    assert lines[-1] == "3 problems in the input; nothing was written."
    assert output.read_text().endswith("the last good scores")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "scores.csv"]


def test_bad_attribute_sets_and_missing_files(tmp_path: Path) -> None:
    sets = tmp_path / "sets.yaml"
    sets.write_text("RATINGS: {kind: ordinal}\n")
    result = run("score", "gfrc", MOVIES[0], "--attributes", str(sets))
    assert (result.exit_code, "exactly the keys" in result.output) == (2, True)
    result = run("score", "gfrc", str(tmp_path / "none.csv"), *MOVIES[1:])
    assert (result.exit_code, "none.csv" in result.output) == (2, True)
    result = run("score", "gfrc", *MOVIES, "-o", str(tmp_path / "no" / "folder.csv"))
    assert (result.exit_code, "no folder to write into" in result.output) == (2, True)


def test_list_shows_notebooks_parameters_and_artefacts() -> None:
    result = run("list")
    assert result.exit_code == 0
    assert (
        "-p patience=1250  (int)  L, the number of words a user is willing to read" in result.output
    )
    assert "gfrc2/table-5" in result.output


def test_build_names_wrong_parameters() -> None:
    result = run("build", "gfrc_time_travel_movies", "-p", "patients=3")
    assert result.exit_code == 2
    assert "no parameter 'patients'; it has patience (int)" in result.output
    assert run("build", "-p", "patience").exit_code == 2
    assert run("build", "-p", "patience=1", "-p", "patience=2").exit_code == 2
    assert run("build", "no_such_notebook").exit_code == 2


def test_data_list_and_unknown_items() -> None:
    result = run("data", "list")
    assert result.exit_code == 0
    assert any(line.startswith("fairweb ") for line in result.output.splitlines())
    result = run("data", "verify", "nothing")
    assert (result.exit_code, "there are" in result.output) == (2, True)


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
    # A command without resampling has no option of it.
    assert "--resamples" not in run("score", "tree", "--help").output
