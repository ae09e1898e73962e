"""Guards that we agree with ranx, ir_measures, PyTerrier and fairlearn, as the guide says."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import pytest

import other_tools
from commands import called
from equipoise_compendium import project

GUIDE = project.root() / "lib" / "equipoise_cli" / "guide" / "compare.md"
THEIRS = pd.read_csv(project.root() / "tests" / "references" / "other_tools.csv")


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same files, scored by topic with ir_measures as its command would, and its precision."""
    folder = tmp_path_factory.mktemp("runs")
    other_tools.write_files(folder)
    qrels = list(ir_measures.read_trec_qrels(str(folder / "qrels.txt")))
    measures = [ir_measures.nDCG @ 10, ir_measures.AP @ 20]
    for name in other_tools.RUNS:
        run = ir_measures.read_trec_run(str(folder / f"{name}.run"))
        lines = []
        for metric in ir_measures.iter_calc(measures, qrels, run):
            lines.append(f"{metric.query_id}\t{metric.measure}\t{metric.value!r}\n")
        lines.append("all\tnDCG@10\t0.5\n")  # by which the column of topics is known
        (folder / f"{name}.tsv").write_text("".join(lines))
    return folder


def table_of(folder: Path, *words: Any) -> pd.DataFrame:
    files = [folder / f"{name}.tsv" for name in other_tools.RUNS]
    result = called("compare", *files, "--format", "csv", *words)
    assert result.exit_code == 0, result.output
    return pd.read_csv(io.StringIO(result.stdout), keep_default_na=False, na_values=[""])


def theirs(tool: str, quantity: str) -> dict[tuple[str, str], float]:
    rows = THEIRS[(THEIRS["tool"] == tool) & (THEIRS["quantity"] == quantity)].dropna()
    assert len(rows) > 0
    return rows.set_index(["run", "measure"])["value"].to_dict()


@pytest.mark.parametrize("tool", ["ranx", "ir_measures", "PyTerrier"])
def test_means_are_theirs(tool: str, scores: Path) -> None:
    ours = table_of(scores, "--resamples", 99).set_index(["run", "measure"])["mean"].to_dict()
    assert ours == pytest.approx(theirs(tool, "mean"), abs=1e-5)


def test_p_is_that_of_pyterrier(scores: Path) -> None:
    words = ("--baseline", "bm25", "--test", "t", "--show", "comparisons")
    ours = table_of(scores, *words).set_index(["a", "measure"])["p_corrected"].to_dict()
    assert ours == pytest.approx(theirs("PyTerrier", "p against bm25"), rel=1e-4)


def test_gaps_are_those_of_fairlearn(scores: Path) -> None:
    words = ("--measure", "nDCG@10", "--groups", scores / "topics.csv")
    table = table_of(scores, *words).set_index(["run", "measure"])
    for gap, gaps in table.groupby("gap"):
        assert gaps["value"].to_dict() == pytest.approx(theirs("fairlearn", str(gap)), abs=1e-6)
        for end in ("low", "high"):
            # The topics are drawn otherwise: the ends agree but for chance.
            expected = theirs("fairlearn", f"{gap} {end}")
            assert gaps[end].to_dict() == pytest.approx(expected, abs=0.01)


def test_the_guide_counts_the_lines_and_names_the_versions() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) ([\d.]+) \| (\d+)", text, re.MULTILINE)
    versions = dict(zip(THEIRS["tool"], THEIRS["version"], strict=True))
    assert {tool: version for tool, version, _ in rows} == versions
    functions = {"ranx": "ranx", "ir_measures": "measures_by_topic", "PyTerrier": "pyterrier"}
    functions["fairlearn"] = "fairlearn"
    lines_of = {}
    for node in ast.parse(Path(other_tools.__file__).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            lines_of[node.name] = len(node.body)
    assert {tool: int(n) for tool, _, n in rows} == {
        tool: lines_of[function] for tool, function in functions.items()
    }


def test_the_p_of_the_guide_are_ours(scores: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    said = re.search(
        r"\(p = 0(\.\d+)\), but not with our Tukey test \(p = 0(\.\d+)\)"
        r".+\n.+`--test t` gives p = 0(\.\d+)",
        text,
    )
    assert said is not None
    assert float(said[1]) == round(theirs("ranx", "p against dense")["hybrid", "nDCG@10"], 3)
    for words, number in (((), said[2]), (("--test", "t"), said[3])):
        table = table_of(scores, "--measure", "nDCG@10", *words).set_index(["a", "b"])
        p_value = table.loc[("dense", "hybrid"), "p_corrected"]
        assert f"{p_value:.{len(number) - 1}f}".lstrip("0") == number
