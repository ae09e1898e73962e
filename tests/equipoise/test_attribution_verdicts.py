"""Guards sentences below tables of answers: what intervals decide, what would decide the rest."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from commands import called
from equipoise.measures.attribution import score_attribution, verdicts

pytestmark = pytest.mark.filterwarnings("ignore:citations are read as:equipoise.errors.Note")


def answers(pairs: list[tuple[int, int]], relevant_author: str = "Human") -> pd.DataFrame:
    """Of a pair, Informed cites the first document, CF-informed the other; 1 is relevant."""
    modes = [("Informed", 0), ("CF-informed", 1)]
    rows = [
        (f"q{place}", mode, f"So [{pair[side]}]")
        for place, pair in enumerate(pairs)
        for mode, side in modes
    ]
    table = pd.DataFrame(rows, columns=["question", "mode", "answer"]).assign(
        relevant=[(1,)] * len(rows), documents=4
    )
    other = "LLM" if relevant_author == "Human" else "Human"
    return table.assign(relevant_author=relevant_author, nonrelevant_author=other)


def sentences(pairs: list[tuple[int, int]], **options: Any) -> list[str]:
    return verdicts(score_attribution(answers(pairs), resamples=499), **options)


def test_an_interval_decides_or_says_how_many_questions_would() -> None:
    assert sentences([(1, 2)] * 12 + [(1, 1)] * 8)[0].endswith("n = 20, 100% read: favours Human")
    assert sentences([(2, 1)] * 12 + [(1, 1)] * 8)[0].endswith(
        "n = 20, 100% read: disfavours Human"
    )
    found = sentences([(1, 2), (2, 1), (1, 2), *[(1, 1)] * 17])[0]
    told = re.fullmatch(
        r"CAB-precision \+5\.0 points for Human \[(−?\d+\.\d), (\d+\.\d)\], n = 20, 100% read: "
        r"inconclusive; 80% power for 5 points needs n = (\d+)",
        found,
    )
    assert told is not None
    error = (
        (float(told[2]) - float(told[1].replace("−", "-")))
        / 100
        / (2 * stats.norm.ppf(0.975))
        * np.sqrt(20 / int(told[3]))
    )
    assert stats.norm.sf(stats.norm.ppf(0.975) - 0.05 / error) == pytest.approx(0.8, abs=0.01)
    fewer = sentences([(1, 2), (2, 1), (1, 2), *[(1, 1)] * 17], difference=0.1)[0]
    quarter = re.search(r"80% power for 10 points needs n = (\d+)", fewer)
    assert quarter is not None
    assert int(quarter[1]) == pytest.approx(int(told[3]) / 4, abs=1)


def test_nothing_is_decided_where_nothing_moved_or_few_questions_are_answered() -> None:
    equal = "inconclusive; equal scores give no required sample size"
    assert sentences([(1, 1)] * 12)[0].endswith(equal)
    few = "n = 9, 100% read: no verdict, an interval needs n = 10"
    assert sentences([(1, 2)] * 9)[0].endswith(few)


def test_groups_are_named_where_there_are_several() -> None:
    both = pd.concat([answers([(1, 2), (1, 1)]), answers([(2, 1), (1, 1)], "LLM")])
    found = verdicts(score_attribution(both, resamples=99))
    assert [one.partition(" +")[0] for one in found] == [
        "CAB-precision (relevant Human, nonrelevant LLM)",
        "CAB-recall (relevant Human, nonrelevant LLM)",
        "CAB-precision (relevant LLM, nonrelevant Human)",
        "CAB-recall (relevant LLM, nonrelevant Human)",
    ]
    models = pd.concat([answers([(1, 2), (1, 1)]).assign(model=name) for name in "ab"])
    assert verdicts(score_attribution(models, ["model"], resamples=99), ["model"])[0].startswith(
        "CAB-precision (a) +"
    )


def test_the_command_ends_in_the_sentences_and_draws_them(tmp_path: Path) -> None:
    path, figure, output = tmp_path / "answers.jsonl", tmp_path / "cab.svg", tmp_path / "scores.csv"
    table = answers([(1, 2), (2, 1), (1, 2), *[(1, 1)] * 17])
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_dict("records")))
    run = called("score", "attribution", str(path), "-o", str(output), "--figure", str(figure))
    assert run.exit_code == 0, run.output
    expected = verdicts(score_attribution(table))
    assert run.stderr.splitlines()[-2:] == expected
    assert run.stdout == ""
    assert ">CAB-precision, n = 20<" in figure.read_text()
    scores = pd.read_csv(output)
    assert scores.loc[scores["measure"].str.startswith("CAB"), "p_t"].notna().all()
    assert called("score", "attribution", str(path), "--figure", str(path)).exit_code == 2


def test_a_verdict_says_how_far_what_was_not_read_would_have_to_be(tmp_path: Path) -> None:
    table = answers([(1, 2)] * 14 + [(1, 1)] * 4)
    table.loc[table["question"].isin(["q16", "q17"]), "answer"] = "So it is."
    sentence = verdicts(score_attribution(table, resamples=99))[0]
    assert "n = 18, 88% read: favours Human; this holds for any scores of the 12%" in sentence
    table = answers([(1, 2)] * 9 + [(1, 1)] * 9)
    table.loc[table["question"].isin(["q16", "q17"]), "answer"] = "So it is."
    told = "; this holds unless the 12% not read are more than "
    assert told in verdicts(score_attribution(table, resamples=99))[0]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_dict("records")))
    run = ["score", "attribution", path, "--resamples", 99, "--fail-if", "CAB-precision>5 points"]
    result = called(*run)
    assert result.exit_code == 3
    assert f"lies wholly above 0.05{told}" in result.stderr


def test_a_name_before_a_file_is_its_run(tmp_path: Path) -> None:
    for name, pairs in (("a", [(1, 2)] * 5), ("b", [(2, 1)] * 5)):
        rows = answers(pairs).to_dict("records")
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = [f"{run}={tmp_path}/{name}.jsonl" for run, name in (("gpt", "a"), ("llama", "b"))]
    result = called("score", "attribution", *files, "--resamples", 99)
    assert result.exit_code == 0, result.output
    told = result.stderr.splitlines()
    assert told[-4].startswith("CAB-precision (gpt) +100.0 points for Human")
    assert told[-2].startswith("CAB-precision (llama) −100.0 points for Human")
    assert set(pd.read_csv(io.StringIO(result.stdout))["run"]) == {"gpt", "llama"}
