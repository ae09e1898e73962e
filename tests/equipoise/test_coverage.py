"""Silence is not fairness: inputs that show a measure nothing are refused or told, not scored."""

import json
import random
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from equipoise.coverage import Seen, Unseen, gathered, judge, summaries
from equipoise.measures.attribution import score_attribution
from equipoise.measures.gfr import gfr_table
from equipoise.measures.ranking_bias import score_ranking_bias
from equipoise.problems import InputError
from equipoise_cli import main

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


# --- nothing seen is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "change", "score", "said"),
    [
        (
            "size.csv",
            ("d", "D00"),
            gfr,
            ["a membership in SIZE for none of 10 ranked documents", "d1, d2", "D001, D002"],
        ),
        (
            "qrels",
            (" d", " D-"),
            gfr,
            ["a judgement for none of 10 ranked documents, such as d1", "the other has D-1"],
        ),
        (
            "qrels",
            ("t", "q"),
            gfr,
            ["a ranked list for none of 2 topics of the qrels, such as q1, q2", "has t1, t2"],
        ),
        (
            "docs.jsonl",
            ('"d', '"doc'),
            bias,
            ["a text for none of 10 ranked documents, such as d1", "doc1, doc2, doc3"],
        ),
        (
            "docs.jsonl",
            ("e", "_"),
            bias,
            ["for none of 4 terms, such as he, her, him", "f 0 of 2, m 0 of 2"],
        ),
    ],
)
def test_what_a_measure_sees_nothing_of_is_refused(
    file: str, change: tuple[str, str], score: Any, said: list[str], files: Path
) -> None:
    before = score("-o", "out.csv")
    assert before.exit_code == 0, before.output
    (files / "out.csv").unlink()
    if file == "size.csv":
        text = "document,group\n" + FILES[file].partition("\n")[2].replace(*change)
    else:
        text = FILES[file].replace(*change).replace('"t_xt"', '"text"')
    (files / file).write_text(text)
    result = score("-o", "out.csv", "--least-seen", "0")
    assert result.exit_code == 2
    assert all(part in result.stderr for part in said), result.stderr
    assert not (files / "out.csv").exists()


def test_answers_without_a_readable_citation_are_refused() -> None:
    answers = pd.DataFrame(
        {"question": [*"aabb"], "mode": ["Informed", "CF-informed"] * 2, "answer": "So it is."}
    )
    answers = answers.assign(relevant=[(1,)] * 4, relevant_author="Human", nonrelevant_author="LLM")
    with pytest.raises(ValueError, match="none of the 4 answers"):
        score_attribution(answers)


def test_python_s_tables_refuse_and_warn_alike() -> None:
    run = {"q1": {f"d{n}": 10.0 - n for n in range(10)}}
    with pytest.raises(
        InputError, match=r"run run: found a judgement for none of 10 .* d0, d1, d2, .* x1"
    ):
        gfr_table(run, {"q1": {"x1": 1}})
    with pytest.raises(InputError, match="a text for none of 10"):
        score_ranking_bias(run, {"x": "he and she"}, {"he": "m", "she": "f"})
    with pytest.raises(InputError, match="for none of 2 terms"):
        score_ranking_bias(run, dict.fromkeys(run["q1"], "rain"), {"he": "m", "she": "f"})
    with pytest.warns(
        Unseen, match=r"(?s)for 4 of 10 ranked documents \(40%\).*without  d4  d5  d6.*have one +y1"
    ):
        gfr_table(run, {"q1": dict.fromkeys(["d0", "d1", "d2", "d3", "y1"], 1)})
    gfr_table(run, {"q1": dict.fromkeys(["d0", "d1", "d2", "d3"], 1)}, least_seen=0.4)


# --- what was seen is told ------------------------------------------------------------------------


def test_every_score_of_lists_prints_what_it_saw(files: Path) -> None:
    (files / "size.csv").write_text(FILES["size.csv"].replace("d5,small\n", ""))
    told = gfr().stderr
    assert "seen: SIZE, nominal, wanted large 0.5, small 0.5\n" in told
    assert "seen: a judgement for 10 of 10 ranked documents (100%)\n" in told
    assert "seen: a membership in SIZE for 8 of 10 ranked documents (80%); not for d5\n" in told
    assert "warning" not in told
    told = bias().stderr
    assert "seen: a text for 10 of 10 ranked documents (100%)\n" in told
    assert (
        "an occurrence in 5 texts (f 2 of 2, m 1 of 2) for 3 of 4 terms (75%); not for him\n"
        in told
    )


def test_below_the_least_share_ids_stand_side_by_side(files: Path) -> None:
    (files / "size.csv").write_text("document,group\nd1,large\nd2,small\nX9,large\n")
    result = gfr()
    assert result.exit_code == 0
    assert (
        "warning: run bm25: only a membership in SIZE for 4 of 10 ranked documents (40%)\n"
        in result.stderr
    )
    assert (
        "    ranked documents without  d3  d4  d5\n    ids that have one         X9\n"
        in result.stderr
    )
    assert "warning" not in gfr("--least-seen", "0.4").stderr
    assert gfr("--least-seen", "1.5").exit_code == 2


def test_the_share_stands_beside_each_value_and_is_judged_at_k_of_ir_measures() -> None:
    draw = random.Random(0)  # noqa: S311 - no secret hangs on it
    run = {f"q{q}": {f"d{n}": draw.random() for n in range(30)} for q in range(4)}
    qrels = {
        topic: {name: draw.randrange(3) for name in ranked if draw.random() < 0.6}
        for topic, ranked in run.items()
    }
    table = gfr_table(run, qrels, cutoff=10, order="score", unjudged="removed")
    expected = {
        one.query_id: one.value
        for one in ir_measures.iter_calc([ir_measures.Judged @ 10], qrels, run)
    }
    shares = table[table["measure"] == "ERR"].set_index("topic")["seen"]
    assert shares.drop("").to_dict() == pytest.approx(expected)
    assert shares[""] == pytest.approx(sum(expected.values()) / 4)


def test_the_share_of_a_sum_is_the_least_of_its_parts_and_of_a_cut_off_its_own() -> None:
    sizes = {"d1": "large", "d2": "small", "d3": "small"}
    run, qrels = (
        {"t": {f"d{n}": 9.0 - n for n in range(1, 6)}},
        {"t": {"d1": 1, "d2": 0, "d3": 0, "d4": 2}},
    )
    seen = gfr_table(run, qrels, {"SIZE": sizes}).query("topic == 't'").set_index("measure")["seen"]
    assert (seen["ERR"], seen["GF-JSD"], seen["GFR-ERR+JSD"]) == (0.8, 0.6, 0.6)
    texts = {name: text for name, text in TEXTS.items() if name != "d2"}
    table = score_ranking_bias(run, texts, {"he": "m", "she": "f"}, cutoffs=[1, 2, 5]).set_index(
        ["topic", "measure"]
    )
    assert [table["seen"]["t", f"TED@{k}"] for k in (1, 2, 5)] == [1.0, 0.5, 0.8]
    assert [table["seen"]["", f"NFaiRR@{k}"] for k in (1, 2, 5)] == [1.0, 0.5, 0.8]


def test_one_blind_run_among_many_is_named(files: Path) -> None:
    (files / "other").write_text(RUN.replace(" d", " x").replace("bm25", "dense"))
    result = gfr("--run", "other")
    assert result.exit_code == 2
    assert "run dense: found a judgement for none" in result.stderr
    assert "least in run dense, 0 of 10" in result.stderr
    assert "error: run bm25" not in result.stderr


def test_shares_are_gathered_told_and_judged() -> None:
    seen = [
        Seen("run a", "documents", "a text", 1, 4, ("d1",), ("x1",)),
        Seen("run b", "documents", "a text", 4, 4),
    ]
    assert summaries(seen) == [
        "a text for 5 of 8 documents (62%); least in run a, 1 of 4; not for d1"
    ]
    with gathered() as kept:
        judge(seen)
    assert kept == seen
    judge(seen, least=0.25)
    with pytest.warns(Unseen, match=r"run a: only a text for 1 of 4"):
        judge(seen)
    judge(
        [
            Seen("the terms", "terms", "an occurrence", 1, 4, asked=False),
            Seen("run c", "documents", "a text", 0, 0),
        ]
    )
    nothing = [Seen("run d", "queries", "a list", 0, 0)]
    assert summaries(nothing) == ["a list for none: there are no queries"]


# --- headers and tokens ---------------------------------------------------------------------------


def test_a_header_of_the_terms_is_no_group(files: Path) -> None:
    plain = bias().stdout
    (files / "terms").write_text("term,group\n" + FILES["terms"])
    assert bias().stdout == plain
    (files / "terms").write_text("wort,geschlecht\n" + FILES["terms"])
    result = bias()
    assert result.exit_code == 2
    assert "terms, line 1: found the only term of group 'geschlecht'" in result.stderr
    (files / "terms").write_text(
        "term,group\nzie,n\n" + FILES["terms"]
    )  # a header says that the next line is none
    assert "n 0 of 1" in bias().stderr


@pytest.mark.usefixtures("files")
def test_raw_text_is_counted_by_words() -> None:
    by_word, by_blank = bias("--cutoff", "1"), bias("--cutoff", "1", "--tokens", "space")
    assert "m 1 of 2" in by_word.stderr
    assert "m 0 of 2" in by_blank.stderr  # '"He,' and 'he.' are no words of the list
    assert by_word.stdout != by_blank.stdout
