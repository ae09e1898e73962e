"""``data/outputs/ranking_bias/record.py``: substitution, rankers, and a run that is killed."""

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
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise_compendium import project, registry
from equipoise_studies.ranking_bias.data import Ranker, Study, Training, read_recorded, read_runs
from small_berts import small_bert
from upstream import skip_without

SCRIPT = project.root() / "data" / "outputs" / "ranking_bias" / "record.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("record_ranking_bias", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record = script()

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


@pytest.mark.parametrize(
    "text",
    [
        "Her mother told her that she met him.",
        "Mr. Brown gave Mary her book, and she thanked him.",
        "John Smith said that he saw her.",
    ],
)
def test_substituting_twice_restores_the_text(text: str, language: Any) -> None:
    once = changed(text, language)
    assert once != text
    assert changed(once, language) == text


def test_texts_without_grammar_are_only_split_and_come_out_alike(language: Any) -> None:
    texts = [
        "She lost her book, which is his.",
        "Then Will went.",
        "The queen saw a king.",
        "Ships.",
    ]
    quick = list(record.parsed(language, texts, NAMES, 1))
    assert [tokens.has_annotation("TAG") for tokens in quick] == [True, True, False, False]
    slow = list(language.pipe(texts))
    for one, other in zip(quick, slow, strict=True):
        arguments = (WORDS, NAMES, {"ships"})
        assert record.substitute(one, *arguments) == record.substitute(other, *arguments)


def plain_tokens(text: str) -> list[Any]:
    """Words between blanks, each capitalised one a person, without grammar."""
    words = text.split(" ")
    spaces = [" "] * (len(words) - 1) + [""]
    tokens = []
    for word, space in zip(words, spaces, strict=True):
        person = "PERSON" if word[:1].isupper() else ""
        tokens.append(
            SimpleNamespace(text=word, whitespace_=space, tag_="NN", dep_="", ent_type_=person)
        )
    return tokens


gendered = st.sampled_from([word for pair in PAIRED_WORDS for word in pair])
people = st.sampled_from([name.capitalize() for pair in PAIRED_NAMES for name in pair])
cased = st.builds(
    lambda word, case: case(word),
    gendered,
    st.sampled_from([str.lower, str.upper, str.capitalize]),
)
other_words = st.sampled_from(["rain", "Falls", "a", "I", "robin", "3.5", ""])


@given(st.lists(st.one_of(other_words, people, cased), max_size=12).map(" ".join))
def test_substitution_is_an_involution_and_reports_every_change(text: str) -> None:
    # King is a word and a name, so that QUEEN comes back as REINA here
    names = {name: other for name, other in NAMES.items() if "king" not in (name, other)}
    once, outcomes = record.substitute(plain_tokens(text), WORDS, names, set())
    assert record.substitute(plain_tokens(once), WORDS, names, set())[0] == text
    substituted = [outcome for _, _, outcome in outcomes if outcome == "substituted"]
    assert len(substituted) == sum(
        a != b for a, b in zip(text.split(" "), once.split(" "), strict=True)
    )


@given(st.text(alphabet="aAbB-é'1", min_size=1, max_size=6))
def test_capitals_follow_the_term_that_is_replaced(like: str) -> None:
    written = record.match_case("queen-mother", like)
    assert written.lower() == "queen-mother"
    letters = [letter for letter in like if letter.isalpha()]
    assert written[0].isupper() == bool(letters and letters[0].isupper())


def test_the_outcome_says_what_was_left_and_why() -> None:
    tokens = plain_tokens("Mark said she and Robin saw King")
    for token in tokens:
        token.ent_type_ = ""
    _, outcomes = record.substitute(tokens, WORDS, NAMES, {"robin", "she"})
    assert outcomes == [
        ("mark", "", "not a name"),
        ("she", "he", "substituted"),
        ("robin", "", "no counterpart"),
        ("king", "queen", "substituted"),  # no person's name, but a word
    ]


# --- rankers --------------------------------------------------------------------------------------

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cats", "dogs", "birds", "fish"]
PIECES += ["chase", "sleep", "sing", "swim"]
TEXTS = [f"{kind} {doing}" for kind in PIECES[4:8] for doing in PIECES[8:]]


def tiny(folder: Path, kind: str) -> Path:
    """A BERT of one layer with random weights, saved as a published one is."""
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'equipoise[models]'")
    transformers = pytest.importorskip(
        "transformers", reason="needs transformers: pip install 'equipoise[models]'"
    )
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    small_bert(folder, PIECES, kind)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=3),
    st.integers(1, 7),
)
def test_best_sorts_by_score_and_then_by_id(scores: list[list[int]], depth: int) -> None:
    documents = ["d3", "d1", "d2", "d10", "d5"]
    queries = [f"q{number}" for number in range(len(scores))]
    table = record.best(np.array(scores, dtype=float), queries, documents, depth)
    for query, row in zip(queries, scores, strict=True):
        falling = sorted(zip(documents, row, strict=True), key=lambda pair: (-pair[1], pair[0]))
        expected = [pair for pair in falling if pair[1] >= falling[:depth][-1][1]]
        part = table[table["topic"] == query]
        assert part["document"].tolist() == [name for name, _ in expected]
        assert part["rank"].tolist() == list(range(1, len(expected) + 1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["dense", "splade"])
def test_representations_follow_their_formula_whatever_the_batch(kind: Any, tmp_path: Path) -> None:
    folder = tiny(tmp_path, "BertForMaskedLM" if kind == "splade" else "BertModel")
    import torch

    expected = []
    network, tokenizer = record.load(
        folder, Ranker(kind=kind, about="", model="tiny"), precision="float32"
    )
    for text in TEXTS:
        coded = tokenizer([text], return_tensors="pt")
        with torch.inference_mode():
            output = network(**coded)
        if kind == "splade":
            expected.append(np.log1p(np.maximum(output.logits[0].numpy(), 0)).max(axis=0))
        else:
            mean = output.last_hidden_state[0].numpy().mean(axis=0)
            expected.append(mean / np.linalg.norm(mean))
    for batch in (1, 3, 32):
        ranker = Ranker(kind=kind, about="", model="tiny", batch=batch)
        found = record.represented(ranker, folder, TEXTS).toarray()
        np.testing.assert_allclose(found, np.array(expected), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_a_trained_cross_encoder_scores_gold_documents_higher(tmp_path: Path) -> None:
    folder = tiny(tmp_path / "base", "BertModel")
    import torch

    training = Training(queries="QS1", epochs=30, batch=4, rate=5e-3)
    ranker = Ranker(kind="cross-encoder", about="", model="base", length=16, training=training)
    pairs = list(zip(TEXTS, TEXTS[5:] + TEXTS[:5], strict=True))
    examples = [(text, text, other) for text, other in pairs]
    record.train(ranker, training, folder, examples, tmp_path / "trained")
    gaps = {}
    for name in ("base", "trained"):
        network, tokenizer = record.load(tmp_path / name, ranker, precision="float32")
        with torch.inference_mode():
            gold, others = (
                record.relevance(network, record.coded_pairs(tokenizer, ranker, TEXTS, documents))
                for documents in (TEXTS, [other for _, other in pairs])
            )
        gaps[name] = float((gold - others).mean())
    assert gaps["trained"] > gaps["base"] + 1
    # the score is 20 times the cosine of the two means within one text
    words = ["[CLS]", "cats", "chase", "[SEP]", "fish", "swim", "[SEP]"]
    ids = torch.tensor([[PIECES.index(word) for word in words]])
    kinds = torch.tensor([[0, 0, 0, 0, 1, 1, 1]])
    with torch.inference_mode():
        states = network(input_ids=ids, token_type_ids=kinds).last_hidden_state[0].numpy()
        coded = record.coded_pairs(tokenizer, ranker, ["cats chase"], ["fish swim"])
        found = float(record.relevance(network, coded)[0])
    one, other = states[:4].mean(axis=0), states[4:].mean(axis=0)
    expected = 20 * one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert found == pytest.approx(float(expected), rel=1e-4)


def test_halves_differ_by_one_query_at_most() -> None:
    assert np.bincount(record.halves(17, 0)).tolist() in ([8, 9], [9, 8])
    assert record.halves(16, 0).tolist() != record.halves(16, 1).tolist()


@pytest.mark.upstream
@pytest.mark.parametrize("label", ["QS1 pool", "QS2 pool", "NQ", "Grep-BiasIR"])
def test_recorded_bm25_is_ranked_again(label: str) -> None:
    skip_without(*registry.entries()["item"].unique())
    pytest.importorskip("bm25s", reason="needs bm25s: pip install 'equipoise[models]'")
    study = Study.read("replica")
    texts = record.make.read_texts(study.query_sets[label])
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
