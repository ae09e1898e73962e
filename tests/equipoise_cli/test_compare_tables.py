"""Guards the tables of ``compare``: the overview, pairs, gaps, and what is always printed."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from commands import called
from equipoise.statistics import compare_systems, overview
from equipoise.statistics.compare import letters

TOPICS = 20


def scores_of(n_runs: int = 3, measures: tuple[str, ...] = ("nDCG@10", "TED@10")) -> pd.DataFrame:
    """Runs that are better by nDCG the higher their number, and by TED, low is good, worse."""
    rng = np.random.default_rng(2)
    rows = []
    for number in range(n_runs):
        for place, measure in enumerate(measures):
            values = 0.3 + 0.1 * number + rng.normal(0, 0.05, TOPICS) + place
            for topic, value in enumerate(values):
                rows.append((f"run{number}", f"q{topic}", "", measure, value))
    return pd.DataFrame(rows, columns=["run", "topic", "attribute", "measure", "value"])


def written(folder: Path, table: pd.DataFrame) -> Path:
    path = folder / "scores.csv"
    table.to_csv(path, index=False)
    return path


def compared(path: Path, *words: Any) -> Any:
    result = called("compare", path, "--resamples", 199, *words)
    assert result.exit_code == 0, result.output
    return result


def test_several_measures_make_an_overview_of_runs_by_measures(tmp_path: Path) -> None:
    lines = compared(written(tmp_path, scores_of())).stdout.splitlines()
    title, _, header, *rows = lines
    assert "p <= 0.05 within a measure, randomised Tukey HSD" in title
    assert title.endswith("lower is better: TED@10")
    assert header.split() == ["run", "nDCG@10", "TED@10"]
    cells = [row.split() for row in rows]
    assert [row[:2] for row in cells] == [["a", "run2"], ["b", "run1"], ["c", "run0"]]
    # The highest nDCG and the lowest TED are the best; letters are of the runs that are worse.
    means = scores_of().groupby(["run", "measure"])["value"].mean()
    assert cells[0][2:] == [
        f"{means['run2', 'nDCG@10']:.4f}*",
        "bc",
        f"{means['run2', 'TED@10']:.4f}",
    ]
    assert cells[1][2:] == [
        f"{means['run1', 'nDCG@10']:.4f}",
        "c",
        f"{means['run1', 'TED@10']:.4f}",
        "a",
    ]
    assert cells[2][2:] == [
        f"{means['run0', 'nDCG@10']:.4f}",
        f"{means['run0', 'TED@10']:.4f}*",
        "ab",
    ]


def test_an_overview_as_csv_is_tidy_and_the_librarys(tmp_path: Path) -> None:
    table = scores_of()
    text = compared(written(tmp_path, table), "--format", "csv", "--test", "t").stdout
    found = pd.read_csv(io.StringIO(text), keep_default_na=False)
    comparisons = {
        name: compare_systems(table, name, test="t", resamples=199)
        for name in ("nDCG@10", "TED@10")
    }
    expected = overview(comparisons, {"TED@10": "lower is better"})
    pd.testing.assert_frame_equal(found, expected, rtol=1e-10)
    for name, comparison in comparisons.items():
        pairs = comparison.comparisons
        significant = pairs[pairs["p_corrected"] <= 0.05]
        marks = expected.loc[expected["measure"] == name, "better_than"]
        assert marks.str.len().sum() == len(significant)


def test_significance_is_at_the_level_and_by_the_correction(tmp_path: Path) -> None:
    table = scores_of(2)
    rng = np.random.default_rng(8)
    table["value"] = rng.normal(0, 1, len(table)) + (table["run"] == "run1") * 0.8
    path = written(tmp_path, table)
    p_value = compare_systems(table, "nDCG@10", test="t").comparisons["p_corrected"][0]
    counts = []
    for level in (1 - p_value * 1.05, 1 - p_value * 0.95):
        words = ("--level", level, "--test", "t", "--format", "csv")
        found = pd.read_csv(io.StringIO(compared(path, *words).stdout), keep_default_na=False)
        counts.append(found.loc[found["measure"] == "nDCG@10", "better_than"].str.len().sum())
    assert counts == [1, 0]


def test_which_way_is_better_is_declared_or_said(tmp_path: Path) -> None:
    measures = ("mine", "RBDF@10", "D(group=f)", "cited-over-retrieved", "GFR-iRBU+JSD")
    path = written(tmp_path, scores_of(2, measures))
    found = {}
    for words in ((), ("--lower-is-better", "mine")):
        text = compared(path, "--format", "csv", *words).stdout
        table = pd.read_csv(io.StringIO(text)).set_index(["measure", "run"])["best"]
        for measure in measures:
            found[measure, bool(words)] = table[measure][table[measure]].index.tolist()
    assert (found["mine", False], found["mine", True]) == (["run1"], ["run0"])
    assert found["GFR-iRBU+JSD", True] == ["run1"]
    for measure in ("RBDF@10", "D(group=f)", "cited-over-retrieved"):
        assert found[measure, False] == []
    refused = called("compare", path, "--lower-is-better", "yours")
    assert (refused.exit_code, "no scores of yours" in refused.stderr) == (2, True)


def test_runs_stand_as_the_first_measure_has_them() -> None:
    table = scores_of()
    table.loc[table["measure"] == "TED@10", "value"] *= -1
    comparisons = {name: compare_systems(table, name, test="t") for name in ("nDCG@10", "TED@10")}
    found = overview(comparisons)
    assert found["run"].tolist() == ["run2", "run1", "run0"] * 2
    assert found["letter"].tolist() == ["a", "b", "c"] * 2


def test_equal_means_are_all_the_best() -> None:
    table = scores_of(2)
    table["value"] = np.tile(np.arange(TOPICS) / TOPICS, 4)
    found = overview({"nDCG@10": compare_systems(table, "nDCG@10", test="t")})
    assert found["best"].tolist() == [True, True]
    assert found["better_than"].tolist() == ["", ""]


def test_letters_go_on_behind_z() -> None:
    names = letters(26 * 27 + 1)
    assert names[:2] + names[25:28] + names[-2:] == ["a", "b", "z", "aa", "ab", "zz", "aaa"]
    assert len(set(names)) == len(names)


def test_attribute_sets_are_columns_of_several_measures(tmp_path: Path) -> None:
    table = pd.concat([scores_of().assign(attribute=name) for name in ("A", "B")])
    lines = compared(written(tmp_path, table)).stdout.splitlines()
    assert lines[2].split() == ["run", "nDCG@10", "A", "nDCG@10", "B", "TED@10", "A", "TED@10", "B"]
    refused = called("compare", tmp_path / "scores.csv", "--by", "attribute")
    assert (refused.exit_code, "without --by, each" in refused.stderr) == (2, True)


def test_measures_of_other_runs_are_not_one_table(tmp_path: Path) -> None:
    table = scores_of()
    path = written(tmp_path, table[~((table["run"] == "run1") & (table["measure"] == "TED@10"))])
    refused = called("compare", path)
    assert refused.exit_code == 2
    assert "same runs, got other runs run1" in refused.stderr


# --- forms ----------------------------------------------------------------------------------------

HOSTILE = r"50%_$x$|\a<b>&{}~^#"


def test_latex_has_booktabs_caption_and_label_and_is_escaped(tmp_path: Path) -> None:
    table = scores_of().replace({"run": {"run2": HOSTILE}})
    words = ("--format", "latex", "--caption", "50 % & more", "--label", "tab:mine")
    text = compared(written(tmp_path, table), *words).stdout
    for line in (r"\toprule", r"\midrule", r"\bottomrule", r"\begin{table}[t]"):
        assert line in text.splitlines()
    assert r"\caption{50 \% \& more}" in text
    assert r"\label{tab:mine}" in text
    row = next(line for line in text.splitlines() if line.startswith("a & "))
    escaped = r"50\%\_\$x\$\textbar{}\textbackslash{}a\textless{}b\textgreater{}\&"
    escaped += r"\{\}\textasciitilde{}\textasciicircum{}\#"
    mean = table.groupby(["run", "measure"])["value"].mean()[HOSTILE, "nDCG@10"]
    assert row.startswith(rf"a & {escaped} & \textbf{{{mean:.4f}}}$^{{bc}}$ & ")
    default = compared(tmp_path / "scores.csv", "--format", "latex").stdout
    assert r"\label{tab:overview}" in default
    assert r"\caption{Overview: means; letters" in default
    assert r"p $\le$ 0.05" in default
    wide = compared(written(tmp_path, scores_of(12)), "--format", "latex", "--show", "leaderboard")
    assert "resizebox" not in wide.stdout
    assert "& higher than" in wide.stdout


def test_markdown_and_html_are_escaped_and_marked(tmp_path: Path) -> None:
    path = written(tmp_path, scores_of().replace({"run": {"run2": HOSTILE}}))
    markdown = compared(path, "--format", "markdown").stdout
    assert re.search(r"\| \*\*0\.\d{4}\*\*<sup>bc</sup> \|", markdown)
    assert "&lt;b&gt;&amp;" in markdown
    assert "<b>" not in markdown
    html = compared(path, "--format", "html", "-o", tmp_path / "table.html")
    assert html.stdout == ""
    page = (tmp_path / "table.html").read_text()
    assert re.search(r"<b>0\.\d{4}</b><sup>bc</sup></td>", page)
    assert "50%_$x$|\\a&lt;b&gt;&amp;" in page
    assert "a<b>" not in page


# --- pairs ----------------------------------------------------------------------------------------


def test_many_pairs_are_a_matrix_and_few_are_rows(tmp_path: Path) -> None:
    twelve = scores_of(12, ("nDCG@10",))
    twelve["value"] += np.random.default_rng(6).normal(0, 0.2, len(twelve))
    text = compared(written(tmp_path, twelve), "--test", "t").stdout
    matrix = text.partition("Pairs: nDCG@10;")[2].splitlines()[2:]
    assert len(matrix) == 13  # not 66 rows
    comparison = compare_systems(twelve, test="t")
    pairs = comparison.comparisons.set_index(["a", "b"])
    runs = comparison.leaderboard["run"].tolist()
    # The best run is above the second by so much, and the second row has the p of that.
    first, second = runs[0], runs[1]
    row = pairs.loc[tuple(sorted((first, second)))]
    sign = 1 if first < second else -1
    cell = f"{sign * row['difference']:+.4f}" + ("*" if row["p_corrected"] <= 0.05 else "")
    assert matrix[1].split()[:3] == ["a", first, cell]
    assert matrix[2].split()[2:3] == [f"{row['p_corrected']:.4f}"]
    assert matrix[0].split() == ["run", *letters(12)]
    assert sum(line.count("*") for line in matrix) == (pairs["p_corrected"] <= 0.05).sum()
    assert "Comparisons:" not in text
    written(tmp_path, scores_of(12, ("nDCG@10",)))
    clear = compared(tmp_path / "scores.csv", "--test", "t").stdout.partition("Pairs:")[2]
    assert ("< 0.0001" in clear, "0.0000" in clear) == (True, False)
    assert "Comparisons:" in compared(tmp_path / "scores.csv", "--baseline", "run0").stdout
    latex = compared(tmp_path / "scores.csv", "--show", "pairs", "--format", "latex").stdout
    assert r"\resizebox{\textwidth}{!}{\begin{tabular}" in latex
    assert r"\end{tabular}}" in latex
    few = compared(written(tmp_path, scores_of(3, ("nDCG@10",)))).stdout
    assert ("Comparisons:" in few, "Pairs:" in few) == (True, False)
    rows = compared(tmp_path / "scores.csv", "--show", "pairs", "--format", "csv").stdout
    assert pd.read_csv(io.StringIO(rows))["a"].tolist() == ["run0", "run0", "run1"]


# --- gaps -----------------------------------------------------------------------------------------


def test_gaps_between_groups_of_topics(tmp_path: Path) -> None:
    table = scores_of(2, ("nDCG@10",))
    table.loc[table["topic"].isin([f"q{topic}" for topic in range(10)]), "value"] += 0.3
    path = written(tmp_path, table)
    lines = [f"q{topic},{'easy' if topic < 10 else 'hard'}\n" for topic in range(TOPICS)]
    (tmp_path / "groups.csv").write_text("topic,group\n" + "".join(lines))
    words = ("--groups", tmp_path / "groups.csv", "--format", "csv")
    gaps = pd.read_csv(io.StringIO(compared(path, *words).stdout))
    difference = gaps[gaps["gap"] == "difference"].set_index("run").loc["run1"]
    means = table[table["run"] == "run1"].set_index("topic")["value"]
    expected = (
        means[[f"q{topic}" for topic in range(10)]].mean()
        - means[[f"q{topic}" for topic in range(10, TOPICS)]].mean()
    )
    assert difference["value"] == pytest.approx(expected)
    assert (difference["largest"], difference["smallest"]) == ("easy", "hard")
    assert difference["low"] < expected < difference["high"]
    failed = called("compare", path, *words[:2], "--fail-if", "gap-nDCG@10>0.1")
    assert (failed.exit_code, "failed: --fail-if gap-nDCG@10>0.1: run1" in failed.stderr) == (
        3,
        True,
    )
    (tmp_path / "groups.csv").write_text("topic,group\nq0,a\nq0,b\n")
    refused = called("compare", path, *words)
    assert (refused.exit_code, "must be unique in the file" in refused.stderr) == (2, True)
    without = called("compare", path, "--show", "gaps")
    assert (without.exit_code, "give a group to each topic with --groups" in without.stderr) == (
        2,
        True,
    )


# --- conditions and figures -----------------------------------------------------------------------


def test_conditions_are_of_means_and_of_differences(tmp_path: Path) -> None:
    path = written(tmp_path, scores_of())
    for condition, status in {
        "nDCG@10[run0]<0.6": 3,
        "nDCG@10[run2]<0.3": 0,
        "difference-nDCG@10<0": 3,  # a worse run less the baseline
        "difference-nDCG@10>0": 0,
        "difference-TED@10[run1]>-0.01": 0,
    }.items():
        words = ("--baseline", "run2", "--fail-if", condition)
        result = called("compare", path, "--resamples", 199, *words)
        assert result.exit_code == status, (condition, result.output)
        assert result.stdout.startswith("Overview")
    refused = called("compare", path, "--fail-if", "ERR>0")
    assert (refused.exit_code, "unknown measure 'ERR'" in refused.stderr) == (2, True)
