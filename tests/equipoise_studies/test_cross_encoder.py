"""The cross-encoder of chapter 4 on a tiny BERT drawn at random: no weights are fetched."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip(
    "torch", reason="a cross-encoder needs PyTorch: pip install 'equipoise[models]'"
)
transformers = pytest.importorskip(
    "transformers", reason="a cross-encoder needs transformers: pip install 'equipoise[models]'"
)

from equipoise_studies.ranking_bias import cross_encoder  # noqa: E402
from equipoise_studies.ranking_bias.study import Ranker, Training  # noqa: E402
from equipoise_studies.ranking_bias.upstream import BiasCollection  # noqa: E402
from equipoise_studies.systems import rankers  # noqa: E402
from equipoise_studies.systems.encoders import load_model  # noqa: E402

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "cats",
    "dogs",
    "birds",
    "fish",
    "chase",
    "sleep",
    "sing",
    "swim",
]
KINDS, DOINGS = WORDS[4:8], WORDS[8:]
TEXTS = [(f"{kind}-{doing}", f"{kind} {doing}") for kind in KINDS for doing in DOINGS]
QUERIES = pd.DataFrame([(key, text) for key, text in TEXTS], columns=["query", "text"]).astype(
    "str"
)
QRELS = pd.DataFrame({"topic": QUERIES["query"], "document": QUERIES["query"], "level": 1})
COLLECTION = BiasCollection("animals", QUERIES, QRELS, lambda: iter(TEXTS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checkpoint")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.BertModel(config).save_pretrained(path)
    (path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    transformers.BertTokenizer(str(path / "vocab.txt")).save_pretrained(path)
    return path


def ranker(**changes: Any) -> Ranker:
    training = Training("QS1", **({"epochs": 20, "batch": 4, "rate": 5e-3} | changes))
    return Ranker("cross-encoder", "x", "small", length=16, candidates=6, training=training)


def test_a_score_is_the_cosine_of_the_two_means_of_one_text(folder: Path) -> None:
    model = load_model(folder)
    with torch.inference_mode():
        found = cross_encoder.relevance(
            model, ["cats", "dogs sleep"], ["birds sing", "fish"], 16, "float32"
        )
    for score, query, document in zip(
        found, ["cats", "dogs sleep"], ["birds sing", "fish"], strict=True
    ):
        words = ["[CLS]", *query.split(), "[SEP]", *document.split(), "[SEP]"]
        first = 2 + len(query.split())
        kinds = [0] * first + [1] * (len(words) - first)
        ids = torch.tensor([[WORDS.index(word) for word in words]])
        with torch.inference_mode():
            states = (
                model.network(input_ids=ids, token_type_ids=torch.tensor([kinds]))
                .last_hidden_state[0]
                .numpy()
            )
        one, other = states[:first].mean(axis=0), states[first:].mean(axis=0)
        expected = 20 * one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        assert float(score) == pytest.approx(float(expected), rel=1e-4)


def test_a_half_learns_its_own_documents_and_no_query_of_the_other(
    folder: Path, tmp_path: Path
) -> None:
    half = cross_encoder.halves(16, 0)
    assert np.bincount(half).tolist() == [8, 8]
    assert half.tolist() != cross_encoder.halves(16, 1).tolist()
    given = cross_encoder.examples(COLLECTION, ranker(), 1)
    assert set(given.queries) == set(QUERIES["text"][half == 1])
    for text, gold, negatives in zip(given.queries, given.gold, given.negatives, strict=True):
        assert given.documents[gold] == text
        assert gold not in negatives
        assert 1 <= len(negatives) <= 6
    into = tmp_path / "trained"
    cross_encoder.train(folder, ranker(), given, into)
    told = json.loads((into / "training.json").read_text())
    assert told["queries"] == 8
    assert told["loss at last"] < 0.5 * told["loss at first"]
    again = tmp_path / "again"
    cross_encoder.train(folder, ranker(), given, again)
    assert (into / "model.safetensors").read_bytes() == (again / "model.safetensors").read_bytes()


def test_the_best_of_bm25_are_scored_by_the_model_of_each_query_and_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_encoder, "BLOCK", 5)
    other = tmp_path / "other"
    cross_encoder.train(
        folder, ranker(epochs=1), cross_encoder.examples(COLLECTION, ranker(), 0), other
    )
    queries, texts = QUERIES["text"].tolist(), [text for _, text in TEXTS]
    which, kept = np.arange(16) % 2, tmp_path / "kept" / "pairs"
    made = (([folder, other], ranker(), queries), (which, texts, kept))
    table = cross_encoder.scorer(*made[0], *made[1])(np.arange(16), texts)
    first = np.argsort(-rankers.bm25_scores(queries, texts), axis=1, kind="stable")[:, :6]
    assert (np.isfinite(table).sum(axis=1) == 6).all()
    for row in (0, 1, 7):
        model = load_model((folder, other)[row % 2])
        shown = [texts[place] for place in first[row]]
        with torch.inference_mode():
            expected = cross_encoder.relevance(
                model, [queries[row]] * 6, shown, 16, "float32"
            ).numpy()
        assert table[row, first[row]] == pytest.approx(expected, rel=1e-4)
    monkeypatch.setattr(cross_encoder, "scores", None)  # another time nothing is scored
    again = cross_encoder.scorer(*made[0], *made[1])(np.arange(16), texts)
    assert (again == table).all()
