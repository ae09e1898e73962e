"""Guards runs on the command line: all files of a folder or a glob, scored, compared and drawn."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from commands import called
from equipoise.statistics import compare_systems
from equipoise_cli.figures import compared_runs
from equipoise_cli.tables import axes
from equipoise_compendium.plots import COLOURS, GREY

TOPICS, DOCUMENTS, RUNS = 12, 40, 4


@pytest.fixture(scope="module")
def track(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs, judgements and groups, of which some cells are empty or unknown."""
    folder, rng = tmp_path_factory.mktemp("track"), np.random.default_rng(4)
    (folder / "runs").mkdir()
    levels = rng.choice(3, (TOPICS, DOCUMENTS), p=[0.6, 0.3, 0.1])
    qrels = [
        f"{topic} 0 d{topic}-{place} {level}\n"
        for topic, row in enumerate(levels)
        for place, level in enumerate(row)
    ]
    (folder / "qrels.txt").write_text("".join(qrels))
    groups = np.array(["PhD", "Prof"])[np.arange(DOCUMENTS) % 2].astype("object")
    groups[:2], groups[7] = "unknown", ""
    rows = [
        f"d{topic}-{place},{group}\n"
        for topic in range(TOPICS)
        for place, group in enumerate(groups)
    ]
    (folder / "people.csv").write_text("docno,stage\n" + "".join(rows))
    for run in range(RUNS):
        scores = levels * (run + 1) + rng.normal(size=levels.shape) * 2
        lines = [
            f"{topic} Q0 d{topic}-{place} {rank} {scores[topic, place]:.6f} r{run}\n"
            for topic in range(TOPICS)
            for rank, place in enumerate(np.argsort(-scores[topic]), start=1)
        ]
        (folder / "runs" / f"r{run}.txt").write_text("".join(lines))
    return folder


def files(track: Path) -> list[Path]:
    return sorted((track / "runs").iterdir())


def csv(*words: Any) -> pd.DataFrame:
    result = called(*words)
    assert result.exit_code == 0, result.output
    return pd.read_csv(io.StringIO(result.stdout), keep_default_na=False)


@pytest.mark.parametrize("command", ["gfr", "exposure"])
def test_a_glob_and_a_folder_are_every_run(track: Path, command: str) -> None:
    given = ["--qrels", track / "qrels.txt", "--membership", track / "people.csv"]
    folder = csv("score", command, "--run", track / "runs", *given)
    assert folder["run"].unique().tolist() == ["r0", "r1", "r2", "r3"]
    # As a shell writes --run runs/*
    pd.testing.assert_frame_equal(csv("score", command, "--run", *files(track), *given), folder)
    each = [word for file in files(track) for word in ("--run", file)]
    pd.testing.assert_frame_equal(csv("score", command, *each, *given), folder)


def test_equal_notes_are_one_with_the_count(track: Path, tmp_path: Path) -> None:
    for path in files(track):
        lines = path.read_text().splitlines(keepends=True)
        (tmp_path / path.name).write_text("".join(lines[::-1]))
    words = ["--qrels", track / "qrels.txt", "--membership", track / "people.csv"]
    notes = [
        line
        for line in called("score", "gfr", "--run", tmp_path, *words).stderr.splitlines()
        if "rankings were not in the order of their scores" in line
    ]
    assert len(notes) == 2
    assert notes[0].startswith(f"note: {tmp_path / 'r0.txt'}: {TOPICS} of {TOPICS} rankings")
    assert f"the same for {RUNS - 1} others (" in notes[1]


def test_exposure_names_documents_that_are_missing(track: Path) -> None:
    words = ["--qrels", track / "qrels.txt", "--membership", track / "people.csv", "--cutoff", "2"]
    line = next(
        line
        for line in called(
            "score", "exposure", "--run", files(track)[0], *words
        ).stderr.splitlines()
        if "one of the first 2 ranks" in line
    )
    named = re.findall(r"d\d+-\d+", line)
    ranked = files(track)[0].read_text().splitlines()
    first_two = {row.split()[2] for row in ranked if int(row.split()[3]) <= 2}
    assert named
    assert not first_two.intersection(named)


def test_a_glob_of_ranking_bias(track: Path, tmp_path: Path) -> None:
    texts = "".join(
        f"d{topic}-{place}\the or she\n" for topic in range(TOPICS) for place in range(DOCUMENTS)
    )
    (tmp_path / "texts.tsv").write_text(texts)
    (tmp_path / "terms.csv").write_text("term,group\nshe,f\nhe,m\n")
    given = ["--documents", tmp_path / "texts.tsv", "--terms", tmp_path / "terms.csv"]
    scores = csv("score", "ranking-bias", "--run", *files(track), *given)
    assert scores["run"].nunique() == RUNS


def test_folders_of_crbo_are_paired_by_the_names_of_files(track: Path, tmp_path: Path) -> None:
    for file in files(track)[:2]:
        (tmp_path / file.name).write_text(file.read_text().replace("d1-", "x-"))
    unpaired = called("score", "crbo", "--run", track / "runs", tmp_path)
    assert unpaired.exit_code == 2
    assert "only one has r2.txt" in unpaired.stderr
    for file in files(track)[2:]:
        (tmp_path / file.name).write_text(file.read_text())
    folders = csv("score", "crbo", "--run", track / "runs", tmp_path)
    pairs = [word for file in files(track) for word in ("--run", file, tmp_path / file.name)]
    pd.testing.assert_frame_equal(folders, csv("score", "crbo", *pairs))


def test_unknown_and_empty_groups_are_missing(track: Path) -> None:
    given = ["--run", track / "runs", "--qrels", track / "qrels.txt"]
    given += ["--membership", track / "people.csv", "-o", track / "out.csv"]
    default = called("score", "gfr", *given)
    assert "groups: stage, nominal, target PhD 0.5, Prof 0.5\n" in default.stderr
    assert f"({2 * TOPICS} 'unknown', {TOPICS} '')" in default.stderr
    kept = called("score", "gfr", *given, "--missing", "n/a")
    assert "target PhD 0.333, Prof 0.333, unknown 0.333" in kept.stderr
    named = called("score", "gfr", *given, "--target", "stage=PhD:1,Prof:1,unknown:2")
    assert "target PhD 0.25, Prof 0.25, unknown 0.5" in named.stderr


def test_runs_are_scored_and_compared_in_one_command(track: Path, tmp_path: Path) -> None:
    given = ["--measure", "nDCG@10", "--measure", "AP", "--show", "leaderboard", "--format", "csv"]
    runs = ["--qrels", track / "qrels.txt", "--run"]
    board = csv("compare", *runs, track / "runs", *given)
    pd.testing.assert_frame_equal(csv("compare", *runs, *files(track), *given), board)

    for file in files(track):
        paths = str(track / "qrels.txt"), str(file)
        command = [sys.executable, "-m", "ir_measures", *paths, "nDCG@10", "AP", "-q"]
        output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        (tmp_path / f"{file.stem}.tsv").write_text(output)
    folder_of_scores = csv("compare", tmp_path, *given)
    keys, numbers = ["measure", "run"], ["mean", "low", "high"]
    assert set(folder_of_scores["measure"]) == {"nDCG@10", "AP"}
    loop = folder_of_scores.set_index(keys)[numbers]
    by_key = board.set_index(keys)[numbers].loc[loop.index]
    assert np.allclose(by_key, loop, atol=1e-4)  # ir_measures writes 4 digits


def test_a_topic_without_ranking_is_0_and_counted(track: Path, tmp_path: Path) -> None:
    lines = files(track)[0].read_text().splitlines(keepends=True)
    (tmp_path / "part").write_text("".join(line for line in lines if line[:2] != "3 "))
    result = called(
        *("compare", "--qrels", track / "qrels.txt", "--run", tmp_path / "part", files(track)[1]),
        *("--measure", "P@5", "--format", "csv", "--show", "leaderboard"),
    )
    assert f"{2 * TOPICS - 1} of {2 * TOPICS} topics of the qrels have a ranking" in result.stderr
    assert f"r0,{TOPICS}," in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--run", "runs"], "--run must be given with --qrels"),
        ([], "give SCORES, or runs with --qrels"),
        (["--qrels", "qrels.txt", "--run", "runs"], "--qrels needs a --measure"),
        (
            ["--qrels", "qrels.txt", "--run", "runs", "--measure", "xyz"],
            "unknown measure 'xyz' of ir_measures",
        ),
        (["--qrels", "people.csv", "--run", "runs", "--measure", "AP"], "people.csv"),
    ],
)
def test_what_is_missing_is_named(track: Path, words: list[str], message: str) -> None:
    result = called(
        "compare", *(track / word if (track / word).exists() else word for word in words)
    )
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_figure_has_a_row_for_each_measure(track: Path, tmp_path: Path) -> None:
    result = called(
        *("compare", "--qrels", track / "qrels.txt", "--run", track / "runs"),
        *("--measure", "nDCG@10", "--measure", "AP", "--figure", tmp_path / "f.svg"),
    )
    assert result.exit_code == 0, result.stderr
    figure = (tmp_path / "f.svg").read_text()
    for measure in ("nDCG@10", "AP"):
        assert f">Mean {measure} with 95% CI<" in figure


def test_a_run_has_the_colour_that_the_caption_gives_it() -> None:
    rng = np.random.default_rng(1)
    shift = {"best": 0.0, "near": -0.05, "far": -3.0}
    rows = [
        {"run": run, "topic": str(topic), "measure": "P", "value": value + difference}
        for run, difference in shift.items()
        for topic, value in enumerate(rng.normal(size=20))
    ]
    comparison = compare_systems(pd.DataFrame(rows), baseline="best", resamples=99)
    _, panels = axes(1, 2, sharey=True)
    compared_runs(panels, comparison, 0.95)
    runs = comparison.leaderboard["run"].tolist()
    expected = {"best": COLOURS[1], "near": GREY, "far": COLOURS[0]}
    means = [line for line in panels[0].lines if line.get_marker() == "o"]
    assert [line.get_color() for line in means] == [expected[run] for run in runs]
    differences = {line.get_color() for line in panels[1].lines if line.get_marker() == "D"}
    assert differences == {GREY, COLOURS[0]}
    assert panels[1].get_title(loc="right").startswith("blue differs significantly")
    mpl.pyplot.close("all")
