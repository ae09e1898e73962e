"""The script that records chapter 2, on a small SciDocs: it is killed once."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from equipoise_compendium import project
from equipoise_studies.query_by_example.data import read_derived, read_scores, read_study

torch, transformers, tokenizers, _ = (
    pytest.importorskip(name, reason=f"recording needs {name}: pip install 'equipoise[models]'")
    for name in ("torch", "transformers", "tokenizers", "accelerate")
)

OUTPUTS = project.root() / "data" / "outputs" / "query_by_example"
MAKE = project.root() / "data" / "facts" / "query_by_example" / "make.py"
THESIS = project.root() / "data" / "studies" / "query_by_example" / "thesis.yaml"
TASKS = ("coview", "coread", "cocite", "cite")
WORDS = ["graph", "query", "paper", "rank", "model", "index", "term", "user", "proof", "gene"]
PIECES = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "the", "##s", "?"]


def small_bert(folder: Path) -> Any:
    """Save a BERT of one layer drawn at random, as published ones are."""
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=len(PIECES), intermediate_size=32, **shape)
    network = transformers.BertForMaskedLM(config)
    network.save_pretrained(folder)
    numbers = {piece: number for number, piece in enumerate(PIECES)}
    model = tokenizers.models.WordPiece(numbers, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return network


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
        network = small_bert(folder / "models" / name)
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
