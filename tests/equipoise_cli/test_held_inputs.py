"""Inputs as users hold them: pipes, folders, and those that would show a measure nothing."""

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from equipoise.measures.attribution.scores import attribution_rows, score_attribution

from commands import called
from equipoise.attributes import read_attributes
from equipoise.files import head, is_parquet, read_text
from equipoise.loaders.answers import read_answers
from equipoise.measures.gfrc import gfrc, turns
from equipoise.measures.gfrc2 import gfrc2, user_clusters
from equipoise.nuggets import read_nuggets
from equipoise_cli import parquet_folders
from equipoise_cli.loaders.rag_answers import read_answer_files
from equipoise_compendium import project

RUN = "".join(
    f"{q:03d} Q0 {d:04d} {rank} {9 - rank} mine\n"
    for q in (1, 2)
    for rank, d in enumerate((q, 5, 7), 1)
)
QRELS = "".join(f"{q:03d} 0 {d:04d} {d % 3}\n" for q in (1, 2) for d in range(10))
GROUPS = "document,group\n" + "".join(f"{d:04d},{'f' if d % 2 else 'm'}\n" for d in range(10))
TEXTS = "".join(
    json.dumps({"id": f"{d:04d}", "contents": "She left, he stayed."}) + "\n" for d in range(10)
)


def piped(path: Path, content: bytes) -> Path:
    """A pipe into which something is written in small pieces."""
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            for place in range(0, len(content), 7):
                file.write(content[place : place + 7])

    threading.Thread(target=write, daemon=True).start()
    return path


# --- pipes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_a_pipe_is_looked_into_and_then_read_from_its_beginning(
    packed: bool, tmp_path: Path
) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    pipe = piped(tmp_path / "pipe", gzip.compress(text.encode()) if packed else text.encode())
    assert head(pipe, 6) == b"line 0"
    assert not is_parquet(pipe)
    assert read_text(pipe) == text


def test_a_pipe_of_an_export_of_messages_and_of_answers_is_known(tmp_path: Path) -> None:
    (tmp_path / "sets.yaml").write_text(
        "SIZE: {kind: nominal, groups: [large, small], target: uniform}\n"
    )
    task = {"id": 1, "text": "User: A film?\nAssistant: Tenet.", "label": [[25, 30, "L2|large"]]}
    pipe = piped(tmp_path / "export", json.dumps(task).encode())
    done = called("nuggets", str(pipe), "--attributes", str(tmp_path / "sets.yaml"))
    assert done.stdout.splitlines()[1].endswith(",1,1,3,3,2,1 0")
    chat = {
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Tenet"}]
    }
    pipe = piped(tmp_path / "chat", json.dumps(chat).encode())
    assert called("transcripts", str(pipe), "-o", str(tmp_path / "t.txt")).exit_code == 0
    assert "Tenet" in (tmp_path / "t.txt").read_text()
    pipe = piped(tmp_path / "answers", b"".join(lines(answers(4))))
    assert (
        "chat" not in (done := called("score", "attribution", str(pipe), "--resamples", "9")).stdout
    )
    assert done.exit_code == 0


def test_a_dash_is_the_standard_input(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "groups.csv").write_text(GROUPS)
    (tmp_path / "run.txt").write_text(RUN)
    rest = ["--qrels", f"{tmp_path}/qrels.txt", "--membership", f"G={tmp_path}/groups.csv"]
    command = [sys.executable, "-m", "equipoise_cli", "score", "gfr", "--run", "-", *rest]
    found = subprocess.run(command, input=RUN, capture_output=True, text=True, check=True).stdout
    assert found == called("score", "gfr", "--run", f"{tmp_path}/run.txt", *rest).stdout


# --- folders --------------------------------------------------------------------------------------


def answers(count: int, first: int = 0) -> list[dict[str, Any]]:
    draw = np.random.default_rng(first)
    return [
        {
            "question": f"q{first + number}",
            "mode": mode,
            "relevant_author": "Human",
            "nonrelevant_author": "LLM",
            "answer": f"In Wales ({draw.integers(1, 4)}).",
            "relevant": [1],
            "documents": 4,
            "citations": [{"document": 1, "probability": float(draw.random())}],
        }
        for number in range(count)
        for mode in ("Vanilla", "Informed", "CF-informed")
    ]


def lines(rows: Iterable[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(row).encode() + b"\n" for row in rows]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.filterwarnings("ignore:citations are read")
def test_a_folder_of_answers_gives_what_one_file_gives(ending: str, tmp_path: Path) -> None:
    rows = [answers(6, first) for first in (0, 100)]
    (tmp_path / "parts").mkdir()
    for number, part in enumerate(rows):
        if ending == "parquet":
            pd.DataFrame(part).to_parquet(tmp_path / f"parts/{number}.parquet")
        else:
            (tmp_path / f"parts/{number}.jsonl").write_bytes(b"".join(lines(part)))
    (tmp_path / "whole.jsonl").write_bytes(b"".join(lines([*rows[0], *rows[1]])))
    whole = score_attribution(read_answers(tmp_path / "whole.jsonl"), run="parts", resamples=99)
    with ThreadPoolExecutor(2) as executor:
        options = {"out_of_range": "ignored", "match": "substring", "citation_marks": "removed"}
        folder = [str(tmp_path / "parts")]
        parts = parquet_folders.score_answers(folder, None, ("", ""), (), "auto", options, executor)
    rest: Any = {"favoured": "Human", "level": 0.95, "resamples": 99, "seed": 0, "least_seen": 0.5}
    pd.testing.assert_frame_equal(attribution_rows(parts, (), run="parts", **rest), whole)
    done = called("score", "attribution", folder[0], "--resamples", "99")
    assert done.stdout == called(
        "score", "attribution", str(tmp_path / "whole.jsonl"), "--resamples", "99"
    ).stdout.replace("whole,", "parts,")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl"])
def test_a_folder_of_nuggets_may_be_of_any_format(ending: str, tmp_path: Path) -> None:
    source = project.data("conversations", "R112.csv")
    table = pd.read_csv(source, dtype=str, keep_default_na=False)
    (tmp_path / "parts").mkdir()
    for run, own in table.groupby("run"):
        path = tmp_path / "parts" / f"{run}.{ending}"
        own.to_json(path, orient="records", lines=True) if ending == "jsonl" else own.to_csv(
            path, index=False
        )
    sets = project.data("attributes", "fairweb_researchers.yaml")
    words = ("--attributes", str(sets), "-o", str(tmp_path / "out"))
    assert called("score", "gfrc2", str(tmp_path / "parts"), *words).exit_code == 0
    found = pd.concat(pd.read_csv(path) for path in sorted((tmp_path / "out").rglob("*.csv")))
    expected = gfrc2(read_nuggets(source, read_attributes(sets)), read_attributes(sets))
    columns = ["run", "topic", "measure", "value"]
    assert len(found) == len(expected)
    pd.testing.assert_frame_equal(
        found[columns].sort_values(columns).reset_index(drop=True),
        expected[columns].sort_values(columns).reset_index(drop=True),
        check_dtype=False,
    )


# --- what each group has --------------------------------------------------------------------------


def test_shares_of_groups_are_means_over_turns_and_over_users() -> None:
    sets = read_attributes(project.data("attributes", "fairweb_movies.yaml"))
    nuggets = read_nuggets(project.data("conversations", "M002.csv"), sets)
    found = gfrc(nuggets, sets, by_group=True).set_index(["run", "attribute", "measure"])["value"]
    for run, own in turns(nuggets, sets).groupby("run"):
        for name, one in sets.items():
            for group in one.groups:
                assert found[run, name, f"D(group={group})"] == pytest.approx(
                    own[f"D {name} {group}"].mean()
                )
    found = gfrc2(nuggets, sets, by_group=True).set_index(["run", "attribute", "measure"])["value"]
    for run, own in user_clusters(nuggets, sets).groupby("run"):
        for name, one in sets.items():
            for group in one.groups:
                expected = np.average(own[f"D {name} {group}"], weights=own["probability"])
                assert found[run, name, f"D(group={group})"] == pytest.approx(expected)


def test_an_empty_turn_that_counts_as_uniform_has_every_group_alike() -> None:
    sets = read_attributes(project.data("attributes", "fairweb_movies.yaml"))
    nuggets = read_nuggets(project.data("conversations", "M002.csv"), sets)
    found = gfrc(nuggets, sets, by_group=True, empty_turns="uniform").query("run == 'google-1'")
    shares = found[found["measure"].str.startswith("D(")].groupby("attribute")["value"]
    assert shares.sum().tolist() == pytest.approx([1, 1])
    assert shares.min().min() > 0  # the empty turn has some of each


# --- what a measure would not have seen -----------------------------------------------------------


def scored(tmp_path: Path, **files: str) -> Result:
    for name, text in ({"run": RUN, "qrels": QRELS, "groups": GROUPS} | files).items():
        (tmp_path / name).write_text(text)
    return called(
        *("score", "gfr", "--run", f"{tmp_path}/run", "--qrels", f"{tmp_path}/qrels"),
        *("--membership", f"G={tmp_path}/groups"),
    )


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("groups", ",f\n", ",\n", "found no group in 5 rows, wanted a group in each"),
        ("groups", "0001,f", "0001,F", "groups that differ in capitals only, F, f, m"),
        (
            "groups",
            ",",
            ";",
            "found 'document;group', wanted a header such as document,group with commas",
        ),
        ("groups", ",", "\t", "wanted a header such as document,group with commas"),
        ("groups", "0001,f", "0001", "line 3: found 1 fields, wanted 2, as in the header"),
        ("groups", "0001,f", ",f", "found no document in 1 rows, wanted a document in each"),
        ("qrels", " 2\n", " 0\n", ""),
    ],
)
def test_groups_that_are_none_are_refused(
    file: str, old: str, new: str, told: str, tmp_path: Path
) -> None:
    held = {"groups": GROUPS, "qrels": QRELS}[file].replace(old, new)
    done = scored(tmp_path, **{file: held})
    assert (done.exit_code, told in done.stderr) == (2 if told else 0, True), done.stderr


def test_blanks_around_a_group_are_none_of_it(tmp_path: Path) -> None:
    assert scored(tmp_path, groups=GROUPS.replace(",f", ", f")).stdout == scored(tmp_path).stdout


def test_judgements_without_anything_relevant_are_refused(tmp_path: Path) -> None:
    nothing = "".join(f"{line.rsplit(' ', 1)[0]} 0\n" for line in QRELS.splitlines())
    done = scored(tmp_path, qrels=nothing)
    assert done.exit_code == 2
    assert "found a level above 0 for none of 20 judgements" in done.stderr


def test_a_run_in_any_order_of_its_lines_is_scored_by_score(tmp_path: Path) -> None:
    """As trec_eval reads it; the lines of an NTCIR run are its order."""
    by_line = scored(tmp_path)
    turned = "".join(reversed(RUN.splitlines(keepends=True)))
    by_score = scored(tmp_path, run=turned)
    assert by_score.stdout == by_line.stdout
    assert "of 2 lists 2 are put in the order of their scores, as trec_eval" in by_score.stderr
    assert "order of their scores" not in by_line.stderr
    as_it_stands = scored(tmp_path, run=f"<SYSDESC>x</SYSDESC>\n{turned}")
    assert as_it_stands.stdout != by_line.stdout
    assert "2 have other scores or ranks than rows, and are taken as they stand" in (
        as_it_stands.stderr
    )


def test_a_group_of_which_no_text_has_a_term_is_told(tmp_path: Path) -> None:
    (tmp_path / "docs.txt").write_text(
        TEXTS
    )  # JSON Lines, whatever the name, with Anserini's field
    (tmp_path / "run").write_text(RUN)
    words = (
        "score",
        "ranking-bias",
        "--run",
        f"{tmp_path}/run",
        "--documents",
        f"{tmp_path}/docs.txt",
        "--terms",
    )
    for terms, warned in (("she,f\nking,m\n", True), ("she,f\nhe,m\n", False)):
        (tmp_path / "terms").write_text(terms)
        done = called(*words, f"{tmp_path}/terms")
        assert done.exit_code == 0
        assert ("no term of m in any of 10 texts" in done.stderr) == warned


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"answer": "In Wales [9]."}, "found a citation of a document shown for none of 2 answers"),
        ({}, "found an answer in both modes for none of 2 questions"),
    ],
)
def test_answers_that_show_nothing_are_refused(
    change: dict[str, Any], told: str, tmp_path: Path
) -> None:
    rows = [
        row | {"question": row["mode"]} | change for row in answers(1) if row["mode"] != "Vanilla"
    ]
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines(rows)))
    done = called("score", "attribution", str(tmp_path / "a.jsonl"))
    assert done.exit_code == 2
    assert told in done.stderr


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("1,,,0,", "no relevant nugget anywhere"),
        ("1,30000,30004,2,1 0", "all relevant nuggets end beyond 1000 words"),
    ],
)
def test_conversations_in_which_nobody_is_served_are_told(
    row: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "sets.yaml").write_text(
        "SIZE: {kind: nominal, groups: [large, small], target: uniform}\n"
    )
    (tmp_path / "n.csv").write_text(f"run,topic,turn,start,end,level,SIZE\na,T1,{row}\n")
    done = called(
        "score", "gfrc2", str(tmp_path / "n.csv"), "--attributes", str(tmp_path / "sets.yaml")
    )
    assert done.exit_code == 0
    assert f"warning: {told}: nobody is served" in done.stderr


# --- odd files of answers -------------------------------------------------------------------------

QUESTIONS = {"12", "7", "8"}


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (
            {
                "topic_id": 12.0,
                "references": ["a", "b"],
                "answer": [{"text": "S.", "citations": [1.0]}],
            },
            "S. [2]",
        ),
        (
            {
                "topic_id": "12",
                "references": ["a", "b"],
                "answer": [{"text": "S.", "citations": ["1"]}],
            },
            "S. [2]",
        ),
        (
            {"topic_id": "12", "references": ["a"], "answer": [{"text": "S.", "citations": None}]},
            "S.",
        ),
        (
            {
                "topic_id": 12,
                "references": ["a"],
                "responses": [{"text": "S.", "citations": {"a": 0.5}}],
            },
            "S. [1]",
        ),
        (
            {
                "topic_id": 12,
                "references": ["1", "a"],
                "answer": [{"text": "S.", "citations": ["1"]}],
            },
            "S. [1]",
        ),
    ],
)
def test_citations_of_trec_are_places_or_ids(
    content: dict[str, Any], answer: str, tmp_path: Path
) -> None:
    (tmp_path / "r.jsonl").write_text(
        json.dumps({"metadata": {"run_id": "mine"}, **content}) + "\n"
    )
    (tmp_path / "q.txt").write_text("12 0 a 1\n")
    table = read_answer_files([str(tmp_path / "r.jsonl")], tmp_path / "q.txt")
    assert table[["question", "answer", "run_id"]].to_numpy().tolist() == [["12", answer, "mine"]]


def test_a_text_in_the_place_of_sentences_is_told(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(
        json.dumps({"topic_id": "1", "references": ["a"], "answer": "S [0]."}) + "\n"
    )
    done = called("score", "attribution", str(tmp_path / "r.jsonl"))
    assert (
        "r.jsonl, line 1, column answer: found 'S [0].', wanted a list of objects with text"
        in done.stderr
    )


@pytest.mark.filterwarnings(
    "ignore:relevant are the documents", "ignore:1 of 2 answers are left out"
)
def test_a_question_of_alce_without_documents_is_left_out(tmp_path: Path) -> None:
    shown = [{"title": "t", "text": "x", "answers_found": [1]}]
    rows = [
        {"question": "who?", "docs": [], "output": "A."},
        {"question": "what?", "docs": shown, "output": "B [1]."},
    ]
    (tmp_path / "a.json").write_text(json.dumps({"data": rows}))
    assert read_answer_files([str(tmp_path / "a.json")])["question"].tolist() == ["what?"]


# --- odd exports and chats ------------------------------------------------------------------------

TASK = {"id": 1, "text": "User: A film?\nAssistant: Tenet."}
REGION = {
    "id": "r",
    "type": "labels",
    "value": {"start": 25, "end": 30, "text": "Tenet", "labels": ["L2", "large"]},
}


@pytest.mark.parametrize(
    ("tasks", "told"),
    [
        (
            [{"data": TASK, "predictions": [{"result": [REGION]}]}],
            "has annotations of nobody; predictions are none",
        ),
        ([{"data": TASK, "annotations": [], "predictions": []}], "has annotations of nobody"),
        (
            [{"data": TASK, "annotations": [{"was_cancelled": True, "result": []}]}],
            "has annotations of nobody",
        ),
        (
            [TASK | {"label": ["positive"]}],
            "found label 'positive' of no place, wanted start, end and label",
        ),
        ([TASK], "wanted label-studio, doccano, transcript"),
    ],
)
def test_an_export_without_annotations_is_refused(
    tasks: list[Any], told: str, tmp_path: Path
) -> None:
    (tmp_path / "sets.yaml").write_text(
        "SIZE: {kind: nominal, groups: [large, small], target: uniform}\n"
    )
    (tmp_path / "e.json").write_text(json.dumps(tasks))
    done = called("nuggets", str(tmp_path / "e.json"), "--attributes", str(tmp_path / "sets.yaml"))
    assert done.exit_code == 2
    assert told in done.stderr


def test_an_export_is_known_by_its_first_task_that_has_a_mark(tmp_path: Path) -> None:
    (tmp_path / "sets.yaml").write_text(
        "SIZE: {kind: nominal, groups: [large, small], target: uniform}\n"
    )
    tasks = [
        {"data": TASK, "predictions": [{"result": [REGION]}]},
        {
            "data": TASK,
            "annotations": [
                {"completed_by": 1, "result": [REGION, {"type": "relation", "from_id": "r"}]}
            ],
        },
    ]
    (tmp_path / "e.json").write_text(json.dumps(tasks))
    done = called("nuggets", str(tmp_path / "e.json"), "--attributes", str(tmp_path / "sets.yaml"))
    assert done.stdout.splitlines()[1:] == ["e,1,1,3,3,2,1 0"]
    assert "1 of 2 tasks are not annotated and left out" in done.stderr


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"content": ""}, ""),
        ({"content": None, "refusal": "I cannot."}, "I cannot."),
        (
            {
                "content": [
                    {"type": "refusal", "refusal": "No."},
                    {"type": "text", "text": "Sorry."},
                ]
            },
            "No.\nSorry.",
        ),
    ],
)
def test_an_answer_may_be_empty_or_a_refusal(
    message: dict[str, Any], words: str, tmp_path: Path
) -> None:
    asked = {"role": "user", "content": "A film?"}
    chats = [
        {"messages": [asked, {"role": "assistant", **one}]}
        for one in (message, {"content": "Tenet"})
    ]
    (tmp_path / "c.jsonl").write_bytes(b"".join(lines(chats)))
    assert (
        called("transcripts", str(tmp_path / "c.jsonl"), "-o", str(tmp_path / "t.txt")).exit_code
        == 0
    )
    first = (tmp_path / "t.txt").read_text().split("#####")[1]
    assert first.split("### S1\n")[1].strip() == words


def test_chats_of_which_no_answer_has_text_are_refused(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "A film?"}, {"role": "assistant", "content": ""}]
    (tmp_path / "c.jsonl").write_text(json.dumps({"messages": said}) + "\n")
    done = called("transcripts", str(tmp_path / "c.jsonl"), "-o", str(tmp_path / "t.txt"))
    assert (done.exit_code, "no answer with text" in done.stderr) == (2, True)


def test_a_mean_of_gdeval_is_no_topic(tmp_path: Path) -> None:
    rows = [
        f"{run},{topic},X,{value}\n"
        for run in "ab"
        for topic, value in (("1", 0.2), ("2", 0.4), ("amean", 0.3))
    ]
    (tmp_path / "s.csv").write_text("run,topic,measure,value\n" + "".join(rows))
    done = called("compare", str(tmp_path / "s.csv"), "--show", "topics", "--format", "csv")
    assert done.exit_code == 0
    assert "amean" not in done.stdout
    assert "rows of a topic 'amean' are taken for means" in done.stderr
