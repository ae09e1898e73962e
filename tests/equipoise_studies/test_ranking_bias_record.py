"""The script that records chapter 4: substitution, BM25 again, and a run that is killed."""

import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from equipoise_compendium import project, registry
from equipoise_studies.ranking_bias.data import Study, read_recorded, read_runs
from upstream import skip_without

SCRIPT = project.root() / "data" / "outputs" / "ranking_bias" / "record.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("record_ranking_bias", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where pydantic looks for the types of its settings
    spec.loader.exec_module(module)
    return module


record = script()


@pytest.mark.parametrize("name", ["replica", "thesis"])
def test_every_ranker_that_is_not_public_has_settings_to_record_it(name: str) -> None:
    study = record.Study.read(name)
    for ranker in study.rankers.values():
        assert bool(ranker.public) != bool(ranker.record)


# --- substitution ---------------------------------------------------------------------------------

PAIRED_WORDS = [
    ("he", "she"), ("himself", "herself"), ("man", "woman"), ("men", "women"),
    ("son", "daughter"), ("king", "queen"), ("father", "mother"), ("mr", "mrs"),
    ("mr.", "mrs."), ("actor", "actress"),
]  # fmt: skip
PAIRED_NAMES = [
    ("john", "mary"), ("will", "grace"), ("mark", "rose"), ("austin", "paris"), ("king", "reina"),
]  # fmt: skip
WORDS = {**dict(PAIRED_WORDS), **{b: a for a, b in PAIRED_WORDS}, "gentlemen": "ladies"}
NAMES = {**dict(PAIRED_NAMES), **{b: a for a, b in PAIRED_NAMES}}


@pytest.fixture(scope="module")
def language() -> Any:
    for package in ("spacy", record.SPACY_MODEL):
        pytest.importorskip(
            package, reason=f"{package} is not installed: pip install 'equipoise[models]'"
        )
    import spacy

    return spacy.load(record.SPACY_MODEL)


def changed(text: str, language: Any) -> str:
    (tokens,) = record.parsed(language, [text], NAMES, 1)
    return str(record.substitute(tokens, WORDS, NAMES, set())[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I saw her yesterday.", "I saw him yesterday."),
        ("I gave her her book.", "I gave him his book."),
        ("Her mother called her.", "His father called him."),
        ("His dog bit him.", "Her dog bit her."),
        ("The red car is his.", "The red car is hers."),
        ("That friend of hers is tall.", "That friend of his is tall."),
        ("HE SAID: SHE IS A KING.", "SHE SAID: HE IS A QUEEN."),
        ("Mother-in-law and stepfather", "Father-in-law and stepfather"),
        ("Mr. Brown met Mrs. Green.", "Mrs. Brown met Mr. Green."),
        ("The actor's sons left.", "The actress's sons left."),
        ("He's late; she'd left.", "She's late; he'd left."),
        ("John met Mary at noon.", "Mary met John at noon."),
        ("Will you come?", "Will you come?"),
        ("Mark my words.", "Mark my words."),
        ("He lives in Paris, France.", "She lives in Paris, France."),
        ("Ladies and gentlemen", "Ladies and ladies"),
        ("Women\nand  men\twaited", "Men\nand  women\twaited"),
    ],
)
def test_grammar_names_and_capitals(text: str, expected: str, language: Any) -> None:
    assert changed(text, language) == expected


# --- the committed files --------------------------------------------------------------------------


@pytest.mark.upstream
@pytest.mark.parametrize("label", ["QS1 pool", "QS2 pool", "NQ", "Grep-BiasIR"])
def test_recorded_bm25_is_ranked_again(label: str) -> None:
    skip_without(*registry.entries()["item"].unique())
    pytest.importorskip("bm25s", reason="needs bm25s: pip install 'equipoise[models]'")
    study = Study.read("replica")
    texts = record.read_texts(study.query_sets[label])
    queries = texts.queries.head(100)
    ids, documents = map(list, zip(*texts.documents(), strict=True))
    again = record.best(
        record.bm25(queries["text"].tolist(), documents), queries["query"].tolist(), ids, 20
    )
    runs = read_recorded(study.outputs, study.query_sets[label].collection)
    recorded = runs[(runs["run"] == "bm25") & (runs["world"] == "original")]
    recorded = recorded[recorded["topic"].isin(queries["query"])]
    compared = again.merge(recorded, on=["topic", "rank"], suffixes=("", "_recorded"), how="outer")
    assert (compared["document"] == compared["document_recorded"]).all()
    np.testing.assert_allclose(compared["score"], compared["score_recorded"], rtol=1e-5)


# --- from a copy of thesis.yaml, killed once ------------------------------------------------------

DRIVER = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import record
record.CHUNK = 20
record.main()
"""


def small_thesis(folder: Path) -> Path:
    """A copy of thesis.yaml with its paths, TREC runs of three rankers, and a TSV collection."""
    draw = random.Random(4)  # noqa: S311
    words = ["he", "her", "king", "ship", "law", "river", "moon", "nurse", "his", "sea", "John"]
    passages = {f"p{number}": " ".join(draw.choices(words, k=12)) for number in range(400)}
    lines = [f"{key}\t{text}\n" for key, text in passages.items()]
    (folder / "collection.tsv").write_text("".join(lines))
    public = pd.read_csv(project.root() / "data/facts/ranking_bias/public_queries.csv", dtype=str)
    judged = []
    for label, kind in {"QS1": "non-gendered", "QS2": "bias-sensitive"}.items():
        topics = public.loc[public["kind"] == kind, "query"].head(12)
        judged += [f"{topic} 0 p{draw.randrange(400)} 1\n" for topic in topics]
        for world in ("original", "counterfactual"):
            path = folder / "runs" / world / label
            path.mkdir(parents=True)
            for ranker in ("bm25", "ance", "bert"):
                lines = []
                for topic in topics:
                    ranked = draw.sample(list(passages), 30)
                    for rank, passage in enumerate(ranked, start=1):
                        lines.append(f"{topic} Q0 {passage} {rank} {100 - rank} x\n")
                (path / f"{ranker}.trec").write_text("".join(lines))
    (folder / "qrels.tsv").write_text("".join(judged))
    text = (project.root() / "data/studies/ranking_bias/thesis.yaml").read_text()
    text = text.replace("msmarco/collection.tsv", "collection.tsv")
    text = re.sub(r"msmarco/qrels\.dev\.tsv", "qrels.tsv", text)
    (folder / "mine.yaml").write_text(text)
    return folder / "mine.yaml"


@pytest.mark.upstream
def test_a_copy_of_the_thesis_is_recorded_killed_and_continued(tmp_path: Path) -> None:
    skip_without("cds", "cpjku", "genderbias_ir")
    for package in ("spacy", record.SPACY_MODEL):
        pytest.importorskip(
            package, reason=f"{package} is not installed: pip install 'equipoise[models]'"
        )
    config = small_thesis(tmp_path)
    command: list[str | Path] = [sys.executable, "-c", DRIVER, SCRIPT.parent]
    command += ["--config", config, "--limit", "12"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    options: dict[str, Any] = {"env": environment, "cwd": project.root(), "text": True}
    options |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}

    substituted = tmp_path / "killed/work/msmarco-passage/substituted.jsonl"
    process = subprocess.Popen(
        [*command, "--output", tmp_path / "killed"], start_new_session=True, **options
    )
    for _ in range(6000):
        if process.poll() is not None or (substituted.is_file() and substituted.stat().st_size):
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)  # the processes that tag texts, too
    said, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, said
    assert 0 < len(substituted.read_text().splitlines()) < 400
    with substituted.open("a") as file:
        file.write('{"id": "cut')  # as a kill within a write leaves it

    for folder in ("killed", "recorded"):
        run = subprocess.run(
            [*command, "--output", tmp_path / folder], check=True, timeout=300, **options
        )
    assert "left out: " in run.stdout
    assert "castorini/unicoil-msmarco-passage" in run.stdout
    for path in (tmp_path / "recorded").rglob("*"):
        if path.is_file():
            other = tmp_path / "killed" / path.relative_to(tmp_path / "recorded")
            assert other.read_bytes() == path.read_bytes(), path

    make = SCRIPT.parents[2] / "facts/ranking_bias/make.py"
    subprocess.run([sys.executable, make, "--config", config], check=True, timeout=300, **options)
    study = Study.read(str(config))
    runs = read_runs(study)
    assert set(runs["run"]) == {"bm25", "ance", "bert"}
    trec = tmp_path / "runs/counterfactual/QS2/bert.trec"
    wanted = [line.split() for line in trec.read_text().splitlines()]
    is_listed = (runs["run"] == "bert") & (runs["queries"] == "QS2")
    listed = runs[is_listed & (runs["world"] == "counterfactual")]
    assert listed[["topic", "document", "rank"]].astype(str).to_numpy().tolist() == [
        [topic, passage, rank] for topic, _, passage, rank, *_ in wanted if int(rank) <= 20
    ]
    settings = json.loads((study.outputs / "msmarco-qs1_settings.json").read_text())
    assert settings["account"]["documents"] == 400
