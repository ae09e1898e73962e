"""Guards the commands that compare scores: formats, tables, figures, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest
import pytrec_eval

from commands import called
from equipoise.errors import Note
from equipoise.loaders.scores import read_scores
from equipoise.statistics import compare_systems, leaderboard

QRELS = {
    f"q{topic}": {f"d{one}": int((one + topic) % 3 == 0) for one in range(8)} for topic in range(6)
}
RUNS = {
    name: {
        topic: {
            f"d{one}": float(draw)
            for one, draw in enumerate(np.random.default_rng((seed, place)).random(8))
        }
        for place, topic in enumerate(QRELS)
    }
    for seed, name in enumerate(("alpha", "beta", "gamma"))
}
MEASURES = [ir_measures.nDCG, ir_measures.P @ 5]


def of_ir_measures(run: str, measures: Any = MEASURES, means: bool = True) -> str:
    """What ``ir_measures -q`` prints: topic, measure, value, and last the means."""
    found = list(ir_measures.iter_calc(measures, QRELS, RUNS[run]))
    lines = [f"{one.query_id}\t{one.measure}\t{one.value:.4f}" for one in found]
    total = ir_measures.calc_aggregate(measures, QRELS, RUNS[run])
    return "\n".join(lines + [f"all\t{m}\t{v:.4f}" for m, v in total.items()] * means) + "\n"


def of_trec_eval(run: str) -> str:
    """What ``trec_eval -q`` prints: measure, topic, value, with the run's tag among the means."""
    found = pytrec_eval.RelevanceEvaluator(QRELS, {"ndcg", "P.5"}).evaluate(RUNS[run])
    lines = [
        f"{name:22s}\t{topic}\t{value:.4f}"
        for topic, own in found.items()
        for name, value in own.items()
    ]
    return "\n".join([*lines, f"{'runid':22s}\tall\t{run}", f"{'ndcg':22s}\tall\t0.5000"]) + "\n"


def tidy(means: bool = True) -> pd.DataFrame:
    rows = [
        (run, topic, "", "nDCG", round(one.value, 4))
        for run in RUNS
        for one in ir_measures.iter_calc([ir_measures.nDCG], QRELS, RUNS[run])
        for topic in [one.query_id]
    ]
    table = pd.DataFrame(rows, columns=["run", "topic", "attribute", "measure", "value"])
    mean = (
        table.groupby("run", as_index=False)["value"]
        .mean()
        .assign(topic="", attribute="", measure="nDCG")
    )
    return pd.concat([table, mean], ignore_index=True)[table.columns] if means else table


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    tidy().to_csv(path, index=False)
    return path


# --- what is read ---------------------------------------------------------------------------------


def test_two_files_of_one_name_are_two_runs(tmp_path: Path) -> None:
    """Here with different topics, of which nothing but the files tells that there are two runs."""
    files = []
    for folder, topics in (("a", "1 2 3"), ("b", "4 5 6")):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "s.csv")
        table = pd.DataFrame({"topic": topics.split(), "measure": "R", "value": 0.5})
        table.to_csv(files[-1], index=False)
    assert read_scores(files)["run"].unique().tolist() == ["a/s", "b/s"]
    for path in files:
        pd.read_csv(path).assign(run="mine").to_csv(path, index=False)
    with pytest.warns(Note, match="run mine is in several files"):
        assert len(read_scores(files)) == 6
    assert "note: run mine is in several files" in called("compare", *files).stderr
    assert read_scores(str(files[0])).equals(read_scores([files[0]]))


@pytest.mark.filterwarnings("ignore::equipoise.errors.Note")
def test_every_format_holds_the_same_scores(tmp_path: Path) -> None:
    order = ["run", "topic", "measure"]
    expected = tidy(means=False).sort_values(order, ignore_index=True)
    tables = {
        "csv": tidy(),
        "renamed": tidy(False)
        .rename(columns={"run": "name", "topic": "qid"})
        .drop(columns="attribute"),
        "capitals": tidy(False).rename(columns={"run": "System"}).rename(columns=str.capitalize),
    }
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    tidy().to_parquet(tmp_path / "scores.parquet")
    of_a_spreadsheet = expected.pivot_table(index="topic", columns="run", values="value")
    of_a_spreadsheet.to_csv(tmp_path / "nDCG.csv", sep=";", decimal=",", index_label="Thema")
    for run in RUNS:
        (tmp_path / f"{run}.tsv").write_text(of_ir_measures(run))
        (tmp_path / f"{run}.trec").write_text(of_trec_eval(run))
        (tmp_path / f"{run}.four").write_text(
            "".join(f"{run}\t{line}\n" for line in of_ir_measures(run).splitlines())
        )
    files = {"csv": ["csv.csv"], "renamed": ["renamed.csv"], "parquet": ["scores.parquet"]}
    files |= {"capitals": ["capitals.csv"], "spreadsheet": ["nDCG.csv"]}
    files |= {kind: [f"{run}.{kind}" for run in RUNS] for kind in ("tsv", "trec", "four")}
    for kind, names in files.items():
        found = read_scores([tmp_path / name for name in names])
        found = found.replace({"measure": {"ndcg": "nDCG"}}).query("measure == 'nDCG'")
        found = found.sort_values(order, ignore_index=True)
        assert found.columns.tolist() == expected.columns.tolist()
        assert (
            found.drop(columns="value").to_numpy().tolist()
            == expected.drop(columns="value").to_numpy().tolist()
        ), kind
        np.testing.assert_allclose(found["value"], expected["value"], atol=1e-12)


def test_a_mean_is_no_topic_whoever_wrote_it(scores: Path, tmp_path: Path) -> None:
    with_all = tmp_path / "all.csv"
    tidy().assign(topic=tidy()["topic"].replace({"": "all"})).to_csv(with_all, index=False)
    plain = called("compare", scores, "--resamples", 99)
    assert plain.exit_code == 0, plain.output
    named = called("compare", with_all, "--resamples", 99)
    assert named.stdout == plain.stdout
    assert pd.read_csv(
        io.StringIO(called("compare", scores, "--format", "csv", "--show", "leaderboard").stdout)
    )["topics"].tolist() == [6, 6, 6]


def test_a_measure_with_commas_makes_no_csv_file(tmp_path: Path) -> None:
    name = "AWRF(groups='A',distance='jsd')@5"
    (tmp_path / "x.tsv").write_text(f"q1\t{name}\t0.5\nall\t{name}\t0.5\n")
    assert read_scores([tmp_path / "x.tsv"]).to_numpy().tolist() == [["x", "q1", "", name, 0.5]]


def test_topics_without_means_are_known_by_their_digits(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("map 301 0.5\nmap 302 nan\n")
    (tmp_path / "y.txt").write_text("301 AP 0.5\n302 AP 0.25\n")
    found = read_scores([tmp_path / "x.txt", tmp_path / "y.txt"])
    assert found["topic"].tolist() == ["301", "302"] * 2
    assert found["measure"].tolist() == ["map"] * 2 + ["AP"] * 2
    assert np.isnan(found["value"].iloc[1])


def test_topics_that_lack_are_named_or_dropped(tmp_path: Path) -> None:
    holes = tidy().query("not (run == 'alpha' and topic == 'q1')").copy()
    holes.loc[holes["run"].eq("beta") & holes["topic"].eq("q3"), "value"] = np.nan
    holes.to_csv(tmp_path / "holes.csv", index=False)
    refused = called("compare", tmp_path / "holes.csv")
    assert refused.exit_code == 2
    assert (
        "run alpha has no score for topic q1; run beta has no score for topic q3" in refused.stderr
    )
    kept = called(
        "compare",
        tmp_path / "holes.csv",
        "--unpaired",
        "drop",
        "--format",
        "csv",
        "--show",
        "leaderboard",
    )
    assert kept.exit_code == 0, kept.output
    expected = leaderboard(tidy().query("topic not in ('q1', 'q3')"))
    assert pd.read_csv(io.StringIO(kept.stdout))["mean"].tolist() == pytest.approx(
        expected["mean"].tolist()
    )
    assert "compared over the 4 topics that all have" in kept.stderr


@pytest.mark.parametrize(
    ("options", "is_refused"),
    [
        (["--correction", "bonferroni"], True),
        (["--test", "tukey", "--correction", "holm"], True),
        (["--correction", "none"], False),
        ([], False),
        (["--test", "t", "--correction", "bonferroni"], False),
    ],
)
def test_tukey_takes_no_second_correction(
    scores: Path, options: list[str], is_refused: bool
) -> None:
    result = called("compare", scores, "--resamples", 99, *options)
    assert result.exit_code == (2 if is_refused else 0)
    assert ("remove --correction, or choose" in result.stderr) == is_refused


# --- what is written ------------------------------------------------------------------------------


def test_compare_writes_what_the_library_finds_in_every_format(scores: Path) -> None:
    found = compare_systems(tidy(means=False), baseline="beta", test="t", level=0.9)
    options = ["--baseline", "beta", "--test", "t", "--level", "0.9"]
    csv = pd.read_csv(io.StringIO(called("compare", scores, *options, "--format", "csv").stdout))
    pd.testing.assert_frame_equal(csv, found.comparisons, rtol=1e-10)
    best = found.leaderboard.iloc[0]
    for form in ("table", "latex", "markdown"):
        text = called("compare", scores, *options, "--format", form).stdout
        assert f"{best['mean']:.4f}" in text
        assert f"{found.comparisons['p_corrected'][0]:.4f}" in text
        assert "intervals" in text
        assert "holm" in text.lower()
    two = called("compare", scores, "--format", "csv", "--show", "pairs", "--show", "leaderboard")
    assert (two.exit_code, "a CSV file must have one table" in two.stderr) == (2, True)


def test_a_csv_has_no_cell_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    names = {"alpha": "=cmd|'/C calc'!A0", "beta": "+SUM(A1)", "gamma": "@sum"}
    tidy(means=False).replace({"run": names}).to_csv(tmp_path / "s.csv", index=False)
    for table in ("leaderboard", "comparisons", "overview", "pairs"):
        csv = called("compare", tmp_path / "s.csv", "--format", "csv", "--show", table).stdout
        cells = [cell for line in csv.splitlines() for cell in line.split(",")]
        assert any(cell.startswith("'=cmd") for cell in cells)
        assert not any(cell.startswith(("=", "+", "@")) for cell in cells)


def test_every_cell_is_escaped(tmp_path: Path) -> None:
    hostile = tidy(means=False).replace({"run": {"alpha": r"50%_$x$|\a", "beta": "<b>&"}})
    hostile.to_csv(tmp_path / "s.csv", index=False)
    latex = called(
        "compare", tmp_path / "s.csv", "--format", "latex", "--show", "leaderboard"
    ).stdout
    assert r"50\%\_\$x\$\textbar{}\textbackslash{}a" in latex
    assert r"\textless{}b\textgreater{}\&" in latex
    markdown = called(
        "compare", tmp_path / "s.csv", "--format", "markdown", "--show", "leaderboard"
    ).stdout
    assert "&lt;b&gt;&amp;" in markdown
    assert r"50%\_\$x\$\|\\a" in markdown
    figure = tmp_path / "f.svg"
    assert called("compare", tmp_path / "s.csv", "--figure", figure).exit_code == 0
    assert "<b>" not in figure.read_text()


def test_groups_apart_or_one_of_them(tmp_path: Path) -> None:
    table = tidy(means=False).assign(attribute="A")
    pd.concat([table, table.assign(attribute="B", value=1 - table["value"])]).to_csv(
        tmp_path / "s.csv", index=False
    )
    both = called("compare", tmp_path / "s.csv")
    assert both.exit_code == 2
    assert "nDCG has scores of several attribute sets ('A', 'B')" in both.stderr
    apart = called(
        "compare",
        tmp_path / "s.csv",
        "--by",
        "attribute",
        "--format",
        "csv",
        "--show",
        "leaderboard",
    )
    boards = pd.read_csv(io.StringIO(apart.stdout), keep_default_na=False)
    assert boards["attribute"].tolist() == ["A"] * 3 + ["B"] * 3
    assert boards["run"][:3].tolist() == boards["run"][3:].tolist()[::-1]
    one = called(
        "compare",
        tmp_path / "s.csv",
        "--attribute",
        "A",
        "--format",
        "csv",
        "--show",
        "leaderboard",
    )
    assert (
        pd.read_csv(io.StringIO(one.stdout), keep_default_na=False)["run"].tolist()
        == boards["run"][:3].tolist()
    )
    assert called("compare", tmp_path / "s.csv", "--attribute", "C").exit_code == 2
    assert (
        called(
            "compare", tmp_path / "s.csv", "--by", "attribute", "--figure", tmp_path / "f.svg"
        ).exit_code
        == 2
    )


def test_figures_are_the_same_bytes_and_outputs_are_guarded(scores: Path, tmp_path: Path) -> None:
    drawn = []
    for name in ("one.svg", "two.svg"):
        assert called("compare", scores, "--figure", tmp_path / name).exit_code == 0
        drawn.append((tmp_path / name).read_bytes())
    assert drawn[0] == drawn[1]
    assert b"<svg" in drawn[0]
    for run in ("alpha", "beta", "gamma"):
        assert f">{run}<".encode() in drawn[0]
    assert called("compare", scores, "--figure", tmp_path / "f.docx").exit_code == 2
    assert called("compare", scores, "-o", scores).exit_code == 2
    assert called("compare", scores, "--format", "markdown", "-o", tmp_path / "t.md").exit_code == 0
    assert (tmp_path / "t.md").read_text().startswith("**Leaderboard")


def test_help_shows_a_sample_of_each_format() -> None:
    text = called("compare", "--help").output
    assert "mine,T1,,nDCG@10,0.31" in text
    assert "\b" not in text


@pytest.mark.parametrize("column", ["run", "topic", "attribute", "measure", "value"])
@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_list_in_scores_is_one_sentence(column: str, ending: str, tmp_path: Path) -> None:
    names = ["run", "topic", "attribute", "measure", "value"]
    rows = [[run, topic, "", "R", 0.5] for run in "ab" for topic in "xyz"]
    table = pd.DataFrame(rows, columns=names, dtype=object)
    table[column] = [[1]] * len(table)
    path = tmp_path / f"scores.{ending}"
    if ending == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_parquet(path)
    result = called("compare", path)
    assert result.exit_code == 2
    assert f'"{column}": must be' in result.stderr


def test_categories_of_parquet_are_text(tmp_path: Path) -> None:
    rows = [[run, topic, "R", len(topic)] for run in "ab" for topic in ("x", "yy", "zzz")]
    table = pd.DataFrame(rows, columns=["run", "topic", "measure", "value"])
    table.to_parquet(tmp_path / "plain.parquet")
    names = ["run", "topic", "measure"]
    table.astype(dict.fromkeys(names, "category")).to_parquet(tmp_path / "categories.parquet")
    read = read_scores(tmp_path / "categories.parquet")
    pd.testing.assert_frame_equal(read, read_scores(tmp_path / "plain.parquet"))
