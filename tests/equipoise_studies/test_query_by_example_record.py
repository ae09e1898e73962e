"""record.py of chapter 2: the losses and scores of its rankers, and a run on a small SciDocs."""

from __future__ import annotations

import json
import math
import os
import random
import runpy
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from equipoise_compendium import project
from equipoise_studies.query_by_example.data import (
    Stage,
    System,
    read_derived,
    read_scores,
    read_study,
)
from small_berts import small_bert

pytest.importorskip("torch", reason="record.py needs PyTorch: pip install 'equipoise[models]'")
if not find_spec("accelerate"):
    pytest.skip("transformers.Trainer needs accelerate", allow_module_level=True)

import torch

OUTPUTS = project.root() / "data" / "outputs" / "query_by_example"
MAKE = project.root() / "data" / "facts" / "query_by_example" / "make.py"
THESIS = project.root() / "data" / "studies" / "query_by_example" / "thesis.yaml"
TASKS = ("coview", "coread", "cocite", "cite")
WORDS = ["graph", "query", "paper", "rank", "model", "index", "term", "user", "proof", "gene"]
PIECES = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "the", "##s", "?"]
TEXTS = ["graph query paper", "rank model", "paper rank", "graph the model index", "gene gene"]


# --- rankers --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rankers() -> dict[str, Any]:
    """The names in rankers.py."""
    return runpy.run_path(str(OUTPUTS / "rankers.py"))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    small_bert(folder, PIECES)
    return folder


def made(rankers: dict[str, Any], folder: Path, kind: Any, **settings: Any) -> Any:
    """A ranker without dropout, which would make losses random."""
    torch.manual_seed(1)
    stage = {"pairs": "halves", "epochs": 1, "batch": 2, "rate": 0.01}
    system = System(kind=kind, label=kind, model="x", **{"training": (stage,), **settings})
    return rankers["KINDS"][kind](system, folder, "cpu").eval()


def logits_of(ranker: Any, text: Any, marker: int) -> Any:
    """The head's own logits on the first place, for one text without padding."""
    with torch.inference_mode():
        states = ranker.bert(torch.tensor([[marker, *text.tolist(), 5]])).last_hidden_state
        return ranker.head(states[:, 0])[0]


@pytest.mark.parametrize(("given", "markers"), [("plain", (4, 4)), ("authors", (1, 2))])
def test_the_loss_of_tilde_is_the_authors_formula(
    rankers: dict[str, Any], checkpoint: Path, given: str, markers: tuple[int, int]
) -> None:
    ranker = made(rankers, checkpoint, "tilde", input=given)
    ids = ranker.ids(TEXTS)
    unasked = {0, 3, 4, 5, *(PIECES.index(piece) for piece in ("the", "##s", "?"))}
    unasked |= {1, 2}  # brackets are no letters
    asked = [token for token in range(len(PIECES)) if given == "plain" or token not in unasked]
    expected = 0.0
    for query, document in zip(ids[:2], ids[2:4], strict=True):
        for marker, source, target in zip(
            markers, (document, query), (query, document), strict=True
        ):
            chances = torch.sigmoid(logits_of(ranker, source, marker)).tolist()
            for token in asked:
                expected -= math.log(chances[token] if token in target else 1 - chances[token])
    loss = ranker(queries=ids[:2], documents=ids[2:4], negatives=ids[:2])["loss"]
    assert loss.item() == pytest.approx(expected / 4, rel=1e-4)


def test_tilde_scores_are_sums_of_log_probabilities(
    rankers: dict[str, Any], checkpoint: Path
) -> None:
    ranker = made(rankers, checkpoint, "tilde")
    ids = ranker.ids(TEXTS)
    queries, documents = [ids[0], ids[4], ids[1]], [ids[1], ids[3], ids[1]]
    for score, query, document in zip(
        ranker.scores(queries, documents), queries, documents, strict=True
    ):
        logs = torch.nn.functional.logsigmoid(logits_of(ranker, document, 4)).tolist()
        # A token that the query contains twice counts twice.
        assert score == pytest.approx(math.fsum(logs[token] for token in query), abs=1e-4)


def test_tildev2_scores_and_its_loss_are_equation_2_2(
    rankers: dict[str, Any], checkpoint: Path
) -> None:
    ranker = made(rankers, checkpoint, "tildev2")
    ids = ranker.ids([*TEXTS, "gene rank gene"])

    def score(query: Any, document: Any) -> float:
        with torch.inference_mode():
            states = ranker.bert(torch.tensor([[4, *document.tolist(), 5]])).last_hidden_state
            weights = torch.relu(ranker.projection(states))[0, 1:-1, 0].tolist()
        total = 0.0
        for term in set(query.tolist()):
            found = [w for token, w in zip(document, weights, strict=True) if token == term]
            total += query.tolist().count(term) * max(found, default=0.0)
        return total

    queries, documents, negatives = ids[:2], ids[2:4], ids[4:6]
    scores = ranker.scores([ids[4], ids[4], ids[0]], [ids[5], ids[1], ids[3]])
    expected = [score(ids[4], ids[5]), score(ids[4], ids[1]), score(ids[0], ids[3])]
    assert scores == pytest.approx(expected, abs=1e-4)
    loss = 0.0
    for place, query in enumerate(queries):
        row = [score(query, document) for document in [*documents, *negatives]]
        loss += math.log(sum(map(math.exp, row))) - row[place]
    given = ranker(queries=queries, documents=documents, negatives=negatives)["loss"].item()
    assert given == pytest.approx(loss / 2, rel=1e-4)


def test_a_cross_encoder_reads_both_texts(rankers: dict[str, Any], checkpoint: Path) -> None:
    ranker = made(rankers, checkpoint, "cross-encoder", length=2)
    ids = ranker.ids(TEXTS)
    scores = ranker.scores(ids, ids[::-1])
    for score, query, document in zip(scores, ids, ids[::-1], strict=True):
        row = [4, *query[:2].tolist(), 5, *document[:2].tolist(), 5]
        kinds = [0] * (len(query[:2]) + 2) + [1] * (len(document[:2]) + 1)
        with torch.inference_mode():
            inputs = {"input_ids": torch.tensor([row]), "token_type_ids": torch.tensor([kinds])}
            state = ranker.bert(**inputs).last_hidden_state[0, 0]
            expected = ranker.projection(state).item()
        assert score == pytest.approx(expected, abs=1e-5)
    relevant, other = ranker.relevance(ids[:2], ids[1:3]), ranker.relevance(ids[:2], ids[3:5])
    loss = ranker(queries=ids[:2], documents=ids[1:3], negatives=ids[3:5])["loss"].item()
    expected_loss = torch.log1p(torch.exp(other - relevant)).mean().item()
    assert loss == pytest.approx(expected_loss, rel=1e-5)


def test_splade_weighs_only_the_documents_own_tokens(
    rankers: dict[str, Any], checkpoint: Path
) -> None:
    ranker = made(rankers, checkpoint, "splade", training=())
    ids = ranker.ids(TEXTS)
    for text, weights in zip(ids, ranker.weights(ids), strict=True):
        with torch.inference_mode():
            states = ranker.bert(torch.tensor([[4, *text.tolist(), 5]])).last_hidden_state
            largest = ranker.head(states)[0].amax(dim=0)
        expected = torch.log1p(torch.relu(largest))[text].tolist()
        assert weights.tolist() == pytest.approx(expected, abs=1e-5)


def test_a_calibrated_head_gives_each_token_its_frequency_on_average(
    rankers: dict[str, Any], checkpoint: Path
) -> None:
    ranker = made(rankers, checkpoint, "tilde", head="identity", encoder="frozen")
    texts = [ids for ids in ranker.ids(TEXTS) for _ in range(7)]  # the sample is every seventh
    ranker.prepare(texts)
    with torch.inference_mode():
        mean = torch.cat([ranker.logits([text], 1) for text in texts]).mean(dim=0).numpy()
    share = [np.mean([token in text for text in texts]) for token in range(len(PIECES))]
    assert 1 / (1 + np.exp(-mean)) == pytest.approx(share, abs=1e-3)
    trained = {name for name, value in ranker.named_parameters() if value.requires_grad}
    assert trained
    assert all(name.startswith("head") for name in trained)


# --- training examples ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorder() -> dict[str, Any]:
    """The names in record.py."""
    sys.path.insert(0, str(OUTPUTS))  # record.py imports rankers.py, which is next to it
    try:
        return runpy.run_path(str(OUTPUTS / "record.py"))
    finally:
        sys.path.remove(str(OUTPUTS))


def test_a_hard_negative_is_the_abstract_of_another_paper(recorder: dict[str, Any]) -> None:
    pytest.importorskip("bm25s", reason="hard negatives need bm25s")
    titles = pd.Series(["graph query", "The", "ranking"])  # the second has only a stop word
    abstracts = pd.Series(["graph query graph", "ranking of papers", "query"])
    for seed in range(5):
        drawn = recorder["hard_negatives"](titles, abstracts, np.random.default_rng(seed))
        assert (drawn != [0, 1, 2]).all()


def test_a_group_is_one_relevant_paper_and_the_drawn_others_in_each_epoch(
    recorder: dict[str, Any],
) -> None:
    drawn_rows = recorder["drawn_rows"]
    judged = [("cite", "q", "r1"), ("cite", "q", "r2"), ("cite", "few", "r1")]
    relevant = pd.DataFrame(judged, columns=["task", "query", "document"])
    others = pd.Series({("cite", "q"): list("abcdefghij"), ("cite", "few"): ["x", "y"]})

    def rows(**settings: Any) -> Any:
        stage = Stage(pairs="judgements", epochs=5, batch=2, rate=5e-6, **settings)
        return drawn_rows(relevant, others, stage, np.random.default_rng(1))

    # Two papers per relevant one are drawn of q's, so a group of 5 has all four of them.
    groups = rows(group=5, negatives=2)
    assert [query for query, _, _ in groups] == ["few"] * 5 + ["q"] * 5
    assert len({frozenset(group) for query, _, group in groups if query == "q"}) == 1
    assert {document for query, document, _ in groups if query == "q"} == {"r1", "r2"}
    for query, _, group in groups:
        assert len(group) == 4
        assert len(set(group)) == 4 if query == "q" else set(group) <= {"x", "y"}
    # Without groups: each relevant paper with two papers, one at a time.
    pairs = rows(negatives=2)
    assert [document for _, document, _ in pairs] == ["r1", "r1", "r2", "r2", "r1", "r1"]
    assert all(len(group) == 1 for _, _, group in pairs)


# --- the script on a small SciDocs ----------------------------------------------------------------


def scidocs_in(folder: Path) -> None:
    """Eighty papers; per task 7 validation and 9 test queries, with 2 of 7 candidates relevant."""
    draw = random.Random(2)  # noqa: S311
    papers = {}
    for number in range(80):
        abstract = None if number == 5 else " ".join(draw.choices(WORDS, k=8))
        papers[f"p{number}"] = {"title": " ".join(draw.choices(WORDS, k=3)), "abstract": abstract}
    for task in TASKS:
        (folder / task).mkdir(parents=True)
        queries = draw.sample(list(papers), 16)
        for stem, part in (("val", queries[:7]), ("test", queries[7:])):
            lines = []
            for query in part:
                others = draw.sample([paper for paper in papers if paper != query], 7)
                for place, document in enumerate(others):
                    lines.append(f"{query} 0 {document} {int(place < 2)}\n")
            (folder / task / f"{stem}.qrel").write_text("".join(lines))
    (folder / "paper_metadata_view_cite_read.json").write_text(json.dumps(papers))


def thesis_in(folder: Path) -> Path:
    """A copy of thesis.yaml with other paths and sizes, checkpoints and run files."""
    scidocs_in(folder / "scidocs")
    config = yaml.safe_load(THESIS.read_text())
    config["device"] = "cpu"
    models = {system["model"] for system in config["systems"].values() if "model" in system}
    for name in models:
        network = small_bert(folder / "models" / name, PIECES)
        if name == "tildev2-msmarco":
            from safetensors.torch import save_file

            tensors = {key: value.clone() for key, value in network.state_dict().items()}
            tensors |= {"tok_proj.weight": torch.ones(1, 16), "tok_proj.bias": torch.ones(1)}
            path = folder / "models" / name / "model.safetensors"
            save_file(tensors, path, metadata={"format": "pt"})
    for system in config["systems"].values():
        for stage in system.get("training", ()):
            stage |= {"epochs": 1, "batch": 8}
        if "terms" in system:
            system["terms"] = 5
    (folder / "runs").mkdir()
    for task in TASKS:
        lines = []
        for stem in ("val", "test"):
            for line in (folder / "scidocs" / task / f"{stem}.qrel").read_text().splitlines():
                query, _, document, grade = line.split()
                lines.append(f"{query} Q0 {document} 1 {grade} x\n")
        (folder / "runs" / f"{task}.trec").write_text("".join(lines))
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def test_the_thesis_config_runs_on_a_small_scidocs_is_killed_and_continues(tmp_path: Path) -> None:
    config = thesis_in(tmp_path)
    environment = os.environ | {"PYTHONPATH": str(project.root() / "lib")}
    run: dict[str, Any] = {"env": environment, "cwd": project.root()}
    subprocess.run([sys.executable, MAKE, "--config", config], check=True, **run)
    study = read_study(str(config))
    derived = read_derived(study)
    # 85% of seven validation queries are for training, and are not ranked.
    for _, parts in derived.splits.groupby("task")["part"]:
        assert parts.value_counts().to_dict() == {"dev": 1, "test": 9}

    models = str(tmp_path / "models")
    script = str(OUTPUTS / "record.py")
    command = [sys.executable, script, "--config", str(config), "--models", models]
    recording = subprocess.Popen(command, **run)
    scores = study.outputs / "scores.csv.gz"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and recording.poll() is None:
        if scores.is_file() and "tilde_bert.42" in pd.read_csv(scores, nrows=0):
            break
        time.sleep(0.2)
    recording.kill()
    recording.wait()
    before = pd.read_csv(scores)
    assert "cross_mtft.42" not in before
    finished = subprocess.run(command, check=True, capture_output=True, text=True, **run)
    assert "tilde_bert.42: recorded" not in finished.stdout  # it was there
    after = pd.read_csv(scores)
    for column in before:
        pd.testing.assert_series_equal(before[column], after[column])
    table = read_scores(study, derived.judgements)
    assert len(table.columns) == 3 + 4 + 11  # pairs, word pieces, rankers
    assert (after["cross_mtft.42"].isin([0, 1])).all()  # its run is the judgements
    recorded = json.loads((study.outputs / "record.json").read_text())
    assert recorded["measured"]["tildev2_scibert_200.42"]["terms added"] > 0
    assert set(pd.read_csv(study.outputs / "example.csv")["system"]) == {
        name for name in study.systems if not name.startswith("cross")
    }
