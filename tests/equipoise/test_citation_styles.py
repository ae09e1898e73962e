"""Citations in every style: what is read or not, what auto takes, and files of TREC and ALCE."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from equipoise.measures.attribution import score_attribution
from equipoise.measures.attribution.citation_styles import (
    STYLES,
    in_brackets,
    style_counts,
    style_of,
)
from equipoise.problems import InputError, Note
from equipoise_cli import main
from equipoise_cli.loaders.rag_answers import read_answer_files

UP = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
WRITTEN: dict[str, Callable[[str], str]] = {
    "bracket": lambda numbers: f"[{numbers}]",
    "footnote": lambda numbers: f"[^{numbers}]",
    "lenticular": lambda numbers: f"【{numbers}†source】",
    "doc": lambda numbers: f"[doc {numbers}]",
    "tag": lambda numbers: f"<cite>{numbers}</cite>",
    "superscript": lambda numbers: numbers.replace(" ", "").translate(UP),
    "paren": lambda numbers: f"({numbers})",
    r"\{#([0-9, -]+)\}": lambda numbers: "{#" + numbers + "}",
}


def answers(style: str) -> pd.DataFrame:
    """Sixty answers that cite in one style: one number, two marks, a list, a range, two digits."""
    rows = []
    for place in range(20):
        for step, mode in enumerate(("Vanilla", "Informed", "CF-informed")):
            number = 1 + (place * (step + 2)) % 4
            marks = [
                [f"{number}"],
                [f"{number}", "2"],
                [f"{number}, 12"],
                [f"1-{1 + number}"],
                ["11"],
            ][place % 5]
            text = (
                "Wales" + " and Bangor".join(WRITTEN[style](mark) for mark in marks) + " (in 1984)."
            )
            rows.append(
                {
                    "question": f"q{place}",
                    "mode": mode,
                    "answer": text,
                    "relevant": (2,),
                    "gold": ("12",),
                }
            )
    return pd.DataFrame(rows).assign(
        relevant_author="Human", nonrelevant_author="LLM", documents=12
    )


@pytest.mark.parametrize("style", WRITTEN)
def test_every_style_is_scored_as_the_brackets_of_the_thesis(style: str) -> None:
    options: dict[str, Any] = {"resamples": 49, "seed": 1}
    expected = score_attribution(answers("bracket"), citation_style="bracket", **options)
    pd.testing.assert_frame_equal(
        score_attribution(answers(style), citation_style=style, **options), expected
    )
    if style in STYLES:
        with pytest.warns(Note, match=f"citations are read as {style} in 60 of 60 answers"):
            pd.testing.assert_frame_equal(score_attribution(answers(style), **options), expected)


@pytest.mark.parametrize(
    ("style", "text", "read"),
    [
        (
            "paren",
            "In Wales (1) and (2)(3), (4; 5) （6） (2015) (a) (7a) [8]",
            "[1] [2] [3] [4, 5] [6]",
        ),
        ("paren", "it ( 1 and 2 ), ()", "[1, 2]"),
        ("paren", "(1, 2, and 3) (4, & 5) (6 and) (7,, 8)", "[1, 2, 3] [4, 5]"),
        ("superscript", "the city's³. the boys’² and x² of s³", "[3] [2]"),
        ("doc", "[doc 1, 2, and 3] [doc 4, and doc 5]", "[1, 2, 3] [4, 5]"),
        (
            "superscript",
            "Wales¹ and² it ³, ¹² words⁴,⁵ and⁶⁻⁸ in 1998⁹",
            "[1] [2] [3] [12] [4, 5] [6-8] [9]",
        ),
        ("superscript", "x² 5 km² 10³ 10⁻³ E=mc² CO₂ <sup>2</sup> <sup>[3]</sup> m²", "[2] [3]"),
        (
            "footnote",
            "Wales[^1][^2], [^3]: so.\n[^1]: A source\n  [^2]: Another\n[^a]",
            "[1] [2] [3]",
        ),
        ("lenticular", "W【1†source】【2】［3］【12†L1-L5】 【4:0†a.pdf】", "[1] [2] [3] [12]"),
        (
            "doc",
            "[doc 1] [Document 2: Its title] (Doc. 3) [docs 4, 5] [Sources 6 and 7] [#8] [ref9]",
            "[1] [2] [3] [4, 5] [6, 7] [8] [9]",
        ),
        (
            "doc",
            "[Doc 1, Doc 2] [Passage 3-5] [Document] [documentary 4] (see doc 5) [6]",
            "[1, 2] [3-5]",
        ),
        (
            "tag",
            '<cite>1</cite> <cite>[2]</cite> <cite id="3">it</cite> <ref>4, 5</ref>',
            "[1] [2] [3] [4, 5]",
        ),
        (
            "tag",
            "<source id='4'/> <cite doc=5>so</cite> <b>6</b> "
            "<cite>Wales</cite> <citecite>7</citecite>",
            "[4] [5]",
        ),
        (r"src(\d+)", "src1, src2; src", "[1] [2]"),
        (r"src\d+", "src1 [2]", "[1]"),
        (r"src:(\w+)", "src:1 src:b", "[1] [?0]"),
    ],
)
def test_what_is_a_mark_and_what_only_looks_like_one(style: str, text: str, read: str) -> None:
    (written,) = in_brackets([text], style)
    found = [part.split("]")[0] for part in written.split("[")[1:]]
    assert found == [part.split("]")[0] for part in read.split("[")[1:]]
    assert in_brackets([text], "bracket") == [text]


def test_hostile_text_and_expressions_take_linear_time() -> None:
    starts = [
        "(1, ",
        "[^1",
        "[^ ",
        "<cite ",
        '<cite a="1',
        "【1†",
        "[doc 1, ",
        "[doc 1:",
        "¹,",
        "<sup>1 <",
        "(1 ",
    ]
    for start in starts:
        for style in [*STYLES, r"(a|a)*(b+)+([(\[<【]+\d+)+c"]:
            began = time.process_time()
            in_brackets([start * 40_000], style)
            assert time.process_time() - began < 2, (start, style)


@pytest.mark.parametrize(
    ("style", "said"),
    [
        ("brackets", "'brackets'; wanted auto, bracket, footnote"),
        ("(", "no regular expression"),
        ("(?=a)1", "no regular expression"),
        (r"\d*", "matches an empty text"),
        (r"no(\d)", "none of the 60 answers has a citation that can be read as no"),
    ],
)
def test_a_style_that_reads_nothing_is_refused(style: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        score_attribution(answers("bracket"), citation_style=style)


def test_auto_takes_what_most_answers_have_and_counts_the_others() -> None:
    table = answers("paren")
    table.loc[:9, "answer"] = "Wales [1]."
    table.loc[10:14, "answer"] = "Nothing."
    with pytest.warns(Note) as notes:
        style_of([style_counts(table, "auto")], "auto")
    said = (
        "read as paren in 45 of 60 answers (there are also bracket in 10); "
        "15 have none, such as those to q0, q1, q2"
    )
    assert said in str(notes[0].message)
    table.loc[:29, "answer"] = "Wales [1], which has (1) sheep and (2) rain."
    with pytest.warns(Note, match="read as bracket in 30 of 60 answers"):
        style_of([style_counts(table, "auto")], "auto")
    table["answer"] = ["Wales 【1†source】."] * 35 + ["The array x[1]."] * 25
    with pytest.warns(
        Note, match=r"read as lenticular in 35 of 60 answers \(there are also bracket in 25\)"
    ):
        style_of([style_counts(table, "auto")], "auto")
    with pytest.raises(
        ValueError, match="none of the 60 answers has a citation that can be read as auto"
    ):
        score_attribution(table.assign(answer="In Wales."))


# --- files of TREC and ALCE -----------------------------------------------------------------------


def called(*words: str) -> Result:
    return CliRunner().invoke(main, ["score", "attribution", *words, "--resamples", "49"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One question of every file, answered citing d1 and d3, or no document that is there."""
    monkeypatch.chdir(tmp_path)
    says: list[Any] = [
        {"text": "Wales [7].", "citations": [0, 2]},
        {"text": "So.", "citations": []},
    ]
    ids = [one | {"citations": [f"d{1 + number}" for number in one["citations"]]} for one in says]
    scores = [one | {"citations": dict.fromkeys(one["citations"], 0.5)} for one in ids]
    references = ["d1", "d2", "d3"]
    passages = [{"id": name, "score": 1.0, "used": name != "d2"} for name in references]
    about = {"metadata": {"team_id": "t", "run_id": "r", "narrative_id": "1"}}
    files: dict[str, Any] = {
        "rag24.jsonl": {"run_id": "r", "topic_id": 1, "references": references, "answer": says},
        "rag25.jsonl": about | {"references": references, "answer": ids},
        "ragtime.jsonl": {
            "metadata": {"topic_id": "1"},
            "references": references,
            "responses": scores,
        },
        "ikat25.jsonl": about
        | {"turn_id": "1", "references": dict.fromkeys(references, 1.0), "responses": scores},
        "ikat24.json": {
            "run_name": "r",
            "turns": [
                {
                    "turn_id": "1",
                    "responses": [
                        {"rank": 10, "text": "Perhaps.", "passage_provenance": []},
                        {"rank": 9, "text": "Wales [7].", "passage_provenance": passages},
                    ],
                }
            ],
        },
        "alce.json": {
            "args": {},
            "data": [{"sample_id": 1, "docs": [{"id": i} for i in references], "output": "[1][3]"}],
        },
    }
    for name, content in files.items():
        Path(name).write_text(json.dumps(content) + "\n")
    Path("qrels").write_text("1 0 d3 2\n1 0 d2 0\n1 0 d9 1\n2 0 d1 1\n")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    ["rag24.jsonl", "rag25.jsonl", "ragtime.jsonl", "ikat24.json", "ikat25.jsonl", "alce.json"],
)
def test_files_of_trec_and_alce_are_judged_by_qrels(name: str, here: Path) -> None:
    (row,) = read_answer_files([f"Informed={name}"], here / "qrels").to_dict("records")
    assert (row["question"], row["mode"], row["relevant"], row["documents"]) == (
        "1",
        "Informed",
        (3,),
        3,
    )
    result = called(name, "--qrels", "qrels")
    assert "citations are read as bracket in 1 of 1 answers" in result.stderr
    assert f"{name.split('.')[0]},,unnamed,unnamed,Vanilla,,precision,0.5," in result.stdout
    assert "Vanilla,,recall,1," in result.stdout
    assert "wanted --qrels" in called(name).stderr
    Path("other").write_text("q7 0 d3 1\n")
    refused = called(name, "--qrels", "other")
    assert refused.exit_code == 2
    assert "it has questions 1 and documents d1, d2, d3; the qrels have q7, d3" in refused.stderr


@pytest.mark.usefixtures("here")
def test_three_modes_of_trec_give_a_cab() -> None:
    modes = [
        "Vanilla=rag24.jsonl",
        "Informed=rag25.jsonl",
        "CF-informed=ragtime.jsonl",
        "--qrels",
        "qrels",
    ]
    assert "wanted --authors" in called(*modes).stderr
    same = called(*modes, "--authors", "Human", "Human")
    assert (same.exit_code, "found 'Human' twice" in same.stderr) == (2, True)
    result = called(*modes, "--authors", "Human", "LLM")
    assert "rag24+rag25+ragtime,,Human,LLM,Informed,CF-informed,CAB-precision,0," in result.stdout
    refused = called(*modes, "--authors", "Human", "LLM", "-o", "rag25.jsonl", "--force")
    assert "which is read" in refused.stderr


def test_a_citation_of_nothing_is_out_of_range_and_a_broken_sentence_is_refused(here: Path) -> None:
    content = json.loads((here / "rag25.jsonl").read_text())
    content["answer"][0]["citations"] = ["d3", "d8", 7]
    Path("x.jsonl").write_text(json.dumps(content))
    result = called("x.jsonl", "--qrels", "qrels")
    assert "Vanilla,,out_of_range,2," in result.stdout
    assert "Vanilla,,precision,1," in result.stdout
    content["answer"][1] = "So."
    del content["metadata"]
    Path("x.jsonl").write_text(json.dumps(content))
    with pytest.raises(
        InputError, match=r"sentence 2: found 'So\.', wanted an object with text and citations"
    ):
        read_answer_files(["x.jsonl"], "qrels")
    turn = json.loads((here / "ikat24.json").read_text())
    turn["turns"][0]["responses"][1]["passage_provenance"].append("d4")
    Path("x.json").write_text(json.dumps(turn))
    with pytest.raises(InputError, match="passage_provenance of turn '1': found 'd4'"):
        read_answer_files(["x.json"], "qrels")
