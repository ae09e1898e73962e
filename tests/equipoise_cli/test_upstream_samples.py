"""Guards commands and loaders on real files of others, where a mirror has them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import called
from commands import called as run
from equipoise.attributes import AttributeSet
from equipoise.loaders.transcripts import (
    parse_transcripts,
)
from equipoise.measures.attribution import score_attribution
from equipoise.problems import Note
from equipoise_cli.loaders.annotation_exports import read_export
from equipoise_cli.loaders.rag_answers import read_answer_files
from equipoise_compendium import registry

pytestmark = pytest.mark.upstream

if registry.mirror_folder() is None:
    pytest.skip("needs a mirror, named by EQUIPOISE_MIRROR", allow_module_level=True)


ONE = {"SIZE": AttributeSet("SIZE", "nominal", ("large", "small"), np.ones(2))}


def test_the_samples_of_doccano() -> None:
    mirror = Path(os.environ.get("EQUIPOISE_MIRROR", ""), "doccano/tests/data/labeling")
    if not mirror.is_dir():
        pytest.skip("doccano's samples are not in the folder that EQUIPOISE_MIRROR names")
    meaning = {"LOC": "12", "PER": "13", "ORG": "14"}
    rows = [(label, "1", "large") for pair in meaning.items() for label in pair]
    labels = pd.DataFrame(rows, columns=["label", "level", "SIZE"])
    new = read_export(mirror / "labeling_text_label.jsonl", ONE, labels=labels).nuggets
    with pytest.warns(Note, match="1 of 2 tasks are not annotated"):
        first = read_export(mirror / "labeling.jsonl", ONE, labels=labels, annotator="1").nuggets
    old = read_export(mirror / "labeling.jsonl", ONE, labels=labels, annotator="2").nuggets
    assert old.drop(columns="run").equals(new.drop(columns="run"))
    assert len(first) == 5


def test_the_worked_examples_of_alce(tmp_path: Path) -> None:
    mirror = os.environ.get("EQUIPOISE_MIRROR", "")
    path = Path(mirror, "alce", "prompts", "asqa_default.json")
    if not path.is_file():
        pytest.skip("ALCE's examples are not in the folder that EQUIPOISE_MIRROR names")
    with pytest.raises(ValueError, match="wanted --qrels"):
        read_answer_files([str(path)])
    content = json.loads(path.read_text())
    for one in content["demos"]:
        for number, document in enumerate(one["docs"]):
            document["answers_found"] = [number == 0]
    marked = tmp_path / "marked.json"
    marked.write_text(json.dumps(content))
    with pytest.warns(Note, match="relevant are the documents in which ALCE found a gold answer"):
        table = read_answer_files([str(marked)])
    assert table["relevant"].tolist() == [(1,)] * 4
    assert table["question"].iloc[0] == "Which_is_the_most_rainy_place_on_earth?"
    with pytest.warns(Note, match="read as bracket in 4 of 4 answers"):
        scores = score_attribution(table, resamples=49).set_index("measure")["value"]
    first = ["[1]" in one["answer"] for one in content["demos"]]
    assert scores["recall"] == sum(first) / 4


@pytest.mark.parametrize(
    ("words", "conversations", "opening"),
    [
        (
            ["ikat/2024/data/2024_test_topics.json"],
            17,
            "##### 0 2024_test_topics\n### U1\nI'm thinking about traveling",
        ),
        (
            ["ikat/2024/scripts/run_validation/tests/data/sample_run.json"],
            17,
            "##### 0 sample_run\n### U1\nI'm thinking",
        ),
        (
            ["mtrag/scripts/evaluation/sample_data/responses-10.jsonl"],
            2,
            "##### dd6b6ffd177f2b311abe676261279d2f",
        ),
    ],
)
def test_the_samples_of_the_collections(
    words: list[str], conversations: int, opening: str, tmp_path: Path
) -> None:
    mirror = Path(os.environ.get("EQUIPOISE_MIRROR", ""))
    if not (mirror / words[0]).is_file():
        pytest.skip("the samples are not in the folder that EQUIPOISE_MIRROR names")
    topics = (
        ["--topics", str(mirror / "ikat/2024/data/2024_test_topics.json")]
        if "run" in words[0]
        else []
    )
    result = called("transcripts", str(mirror / words[0]), *topics, "-o", str(tmp_path / "out.txt"))
    assert f"{conversations} conversations written" in result.stderr
    text = (tmp_path / "out.txt").read_text()
    assert text.startswith(opening)
    assert len(parse_transcripts(text, "", {})) == conversations


def test_data_verify_and_fetch_from_the_mirror() -> None:
    from equipoise_compendium import registry

    if registry.mirror_folder() is None:
        pytest.skip("no mirror: set EQUIPOISE_MIRROR to try fetching from it")
    result = run("data", "verify", "fairweb")
    assert result.exit_code == 0
    assert "38 files  mirror" in result.output or "38 files  cache" in result.output
    assert run("data", "fetch", "fairweb").exit_code == 0


def test_what_is_on_this_machine_is_undamaged() -> None:
    if registry.mirror_folder() is None:
        pytest.skip("no mirror: set EQUIPOISE_MIRROR to check the files in it")
    states = [registry.verify(row) for _, row in registry.entries().iterrows()]
    assert "damaged" not in states
    assert "not here" not in states
