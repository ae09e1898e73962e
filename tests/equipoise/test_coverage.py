"""Silence is not fairness: inputs that show a measure nothing are errors, the rest is counted."""

import json
import random
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import equipoise
from equipoise.coverage import Seen, judge, summaries
from equipoise.errors import InputError
from equipoise.measures.attribution import score_attribution
from equipoise_cli import main

door: Any = equipoise  # its names come when they are first used

RUN = "".join(f"t{topic} Q0 d{n} {n} {9 - n} bm25\n" for topic in (1, 2) for n in range(1, 6))
TEXTS = {
    "d1": '"He," said he.',
    "d2": "Rain, and rain.",
    "d3": "Her book.",
    "d4": "She left.",
    "d5": "Snow.",
}
FILES = {
    "run": RUN,
    "qrels": "".join(f"t{topic} 0 d{n} {n % 3}\n" for topic in (1, 2) for n in range(1, 6)),
    "size.csv": "document,group\nd1,large\nd2,small\nd3,large\nd4,small\nd5,small\n",
    "docs.jsonl": "".join(
        json.dumps({"id": name, "text": text}) + "\n" for name, text in TEXTS.items()
    ),
    "terms": "he,m\nhim,m\nshe,f\nher,f\n",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def called(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["score", *arguments])


def gfr(*more: str) -> Result:
    return called("gfr", "--run", "run", "--qrels", "qrels", "--membership", "SIZE=size.csv", *more)


def bias(*more: str) -> Result:
    return called(
        "ranking-bias", "--run", "run", "--documents", "docs.jsonl", "--terms", "terms", *more
    )


def test_answers_without_a_readable_citation_are_an_error() -> None:
    answers = pd.DataFrame(
        {"question": [*"aabb"], "mode": ["Informed", "CF-informed"] * 2, "answer": "So it is."}
    )
    answers = answers.assign(relevant=[(1,)] * 4, relevant_author="Human", nonrelevant_author="LLM")
    with pytest.raises(ValueError, match="citation"):
        score_attribution(answers)


def test_python_s_tables_are_judged_alike() -> None:
    run = {"q1": {f"d{n}": 10.0 - n for n in range(10)}}
    with pytest.raises(InputError, match=r"run run: .* must have a judgement, .*d0, d1, d2; .*x1"):
        door.gfr(run, {"q1": {"x1": 1}})
    with pytest.raises(InputError, match="must have a text"):
        door.score_ranking_bias(run, {"x": "he and she"}, {"he": "m", "she": "f"})
    with pytest.raises(InputError, match="at least one of 2 terms must have"):
        door.score_ranking_bias(run, dict.fromkeys(run["q1"], "rain"), {"he": "m", "she": "f"})


def test_every_score_of_rankings_shows_what_it_saw(files: Path) -> None:
    (files / "size.csv").write_text(FILES["size.csv"].replace("d5,small\n", ""))
    message = gfr().stderr
    assert "groups: SIZE, nominal, target large 0.5, small 0.5\n" in message
    assert "coverage: 10 of 10 ranked documents have a judgement (100%)\n" in message
    sentence = "8 of 10 ranked documents have a membership in SIZE (80%); missing for d5"
    assert f"coverage: {sentence}\n" in message
    message = bias().stderr
    assert "coverage: 10 of 10 ranked documents have a text (100%)\n" in message
    terms = (
        "3 of 4 terms have an occurrence in 5 texts (f 2 of 2, m 1 of 2) (75%); missing for him\n"
    )
    assert terms in message


def test_the_share_is_in_each_row_and_is_judged_at_k_of_ir_measures() -> None:
    rng = random.Random(0)  # noqa: S311 - not for secrets
    run = {f"q{q}": {f"d{n}": rng.random() for n in range(30)} for q in range(4)}
    qrels = {
        topic: {name: rng.randrange(3) for name in ranked if rng.random() < 0.6}
        for topic, ranked in run.items()
    }
    table = door.gfr(run, qrels, cutoff=10, unjudged="removed")
    judged = ir_measures.iter_calc([ir_measures.Judged @ 10], qrels, run)
    expected = {metric.query_id: metric.value for metric in judged}
    shares = table[table["measure"] == "ERR"].set_index("topic")["seen"]
    assert shares.drop("").to_dict() == pytest.approx(expected)
    assert shares[""] == pytest.approx(sum(expected.values()) / 4)


def test_the_share_of_a_sum_is_the_least_of_its_parts_and_of_a_cutoff_its_own() -> None:
    sizes = {"d1": "large", "d2": "small", "d3": "small"}
    run = {"t": {f"d{n}": 9.0 - n for n in range(1, 6)}}
    qrels = {"t": {"d1": 1, "d2": 0, "d3": 0, "d4": 2}}
    seen = door.gfr(run, qrels, {"SIZE": sizes}).query("topic == 't'").set_index("measure")["seen"]
    assert (seen["ERR"], seen["GF-JSD"], seen["GFR-ERR+JSD"]) == (0.8, 0.6, 0.6)
    texts = {name: text for name, text in TEXTS.items() if name != "d2"}
    table = door.score_ranking_bias(run, texts, {"he": "m", "she": "f"}, cutoffs=[1, 2, 5])
    table = table.set_index(["topic", "measure"])
    assert [table["seen"]["t", f"TED@{k}"] for k in (1, 2, 5)] == [1.0, 0.5, 0.8]
    assert [table["seen"]["", f"NFaiRR@{k}"] for k in (1, 2, 5)] == [1.0, 0.5, 0.8]


def test_one_blind_run_among_many_is_named(files: Path) -> None:
    (files / "other").write_text(RUN.replace(" d", " x").replace("bm25", "dense"))
    result = gfr("--run", "other")
    assert result.exit_code == 2
    assert "run dense: at least one of 10 ranked documents must have a judgement" in result.stderr


def test_counts_are_summed_up_and_judged() -> None:
    seen = [
        Seen("run a", "documents", "a text", 1, 4, ("d1",), ("x1",)),
        Seen("run b", "documents", "a text", 4, 4),
    ]
    line = "5 of 8 documents have a text (62%); least in run a, 1 of 4; missing for d1"
    assert summaries(seen) == [line]
    assert judge(seen) == seen
    assert judge([Seen("run c", "documents", "a text", 0, 0)])
    with pytest.raises(
        InputError, match="run d: at least one of 3 documents must have a text, got none"
    ):
        judge([Seen("run d", "documents", "a text", 0, 3)])
