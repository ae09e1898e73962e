"""The encoders of thesis chapter 2 on a tiny BERT drawn at random: no weights are fetched."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="the encoders need PyTorch: pip install 'equipoise[models]'"
)

from equipoise_studies.query_by_example import neural, tilde, training  # noqa: E402
from small_berts import small_bert  # noqa: E402

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "cats",
    "dogs",
    "chase",
    "sleep",
    "birds",
    "sing",
    "##s",
    "a",
    "b",
]
TEXTS = [
    "cats chase birds",
    "dogs sleep",
    "birds sing",
    "cats sleep a b",
    "dogs chase cats",
    "a b sing",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in the published layout: configuration, safetensors, tokeniser."""
    path = tmp_path_factory.mktemp("checkpoint")
    small_bert(path, WORDS)
    return path


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neural, "BATCH", 4)


def loaded(folder: Path, seed: int = 3) -> tuple[np.random.Generator, Any, list[Any]]:
    rng = neural.seeded(seed, threads=1)
    checkpoint = neural.load_checkpoint(folder)
    return rng, checkpoint, neural.tokenise(checkpoint.tokenizer, TEXTS)


def test_a_checkpoint_needs_its_three_files(folder: Path, tmp_path: Path) -> None:
    _, checkpoint, ids = loaded(folder)
    assert checkpoint.vocabulary == len(WORDS)
    assert [WORDS[token] for token in ids[0]] == TEXTS[0].split()
    with pytest.raises(FileNotFoundError, match=r"no config\.json"):
        neural.load_checkpoint(tmp_path)


@pytest.mark.parametrize("probability", ["sigmoid", "softmax"])
def test_log_probabilities_are_the_heads_own_on_cls(folder: Path, probability: str) -> None:
    _, checkpoint, ids = loaded(folder)
    found = neural.log_probabilities(checkpoint, ids, probability=probability)
    for text, row in zip(ids, found, strict=True):
        alone = torch.tensor([[2, *text.tolist(), 3]])
        with torch.inference_mode():
            logits = checkpoint.model(input_ids=alone).logits[0, 0]
        wanted = (
            torch.nn.functional.logsigmoid(logits)
            if probability == "sigmoid"
            else logits.log_softmax(-1)
        )
        np.testing.assert_allclose(row, wanted.numpy(), atol=1e-5)
    if probability == "softmax":
        np.testing.assert_allclose(np.exp(found.astype(float)).sum(axis=1), 1, atol=1e-5)
    score = tilde.tilde_query_likelihood(tilde.token_counts(ids, len(WORDS)), found)[4, 2]
    assert score == pytest.approx(math.fsum(float(found[2, token]) for token in ids[4]), abs=1e-6)
    with pytest.raises(ValueError, match="probability must be"):
        neural.log_probabilities(checkpoint, ids, probability="tanh")


def test_padding_changes_no_weight_and_weights_are_not_negative(folder: Path) -> None:
    _, checkpoint, ids = loaded(folder)
    model = neural.with_projection(checkpoint, bias=1.0)
    together = neural.place_weights(model, ids)
    for text, values in zip(ids, together, strict=True):
        assert values.shape == text.shape
        assert (values >= 0).all()
        np.testing.assert_allclose(neural.place_weights(model, [text])[0], values, atol=1e-5)


def test_training_tilde_lowers_its_loss_and_is_repeatable(folder: Path) -> None:
    runs = []
    for _ in range(2):
        rng, checkpoint, ids = loaded(folder)
        history = training.train_tilde(checkpoint, ids, ids, rng, epochs=15, batch=3, rate=1e-2)
        runs.append((history, neural.log_probabilities(checkpoint, ids)))
    history, logs = runs[0]
    assert len(history) == 30
    assert np.mean(history[-5:]) < 0.8 * np.mean(history[:5])
    own = tilde.tilde_query_likelihood(tilde.token_counts(ids, len(WORDS)), logs)
    assert (own.argmax(axis=0)[:2] == [0, 1]).any()
    assert runs[1][0] == history
    np.testing.assert_array_equal(runs[1][1], logs)


def test_another_seed_trains_another_model(folder: Path) -> None:
    logs = []
    for seed in (1, 2):
        rng, checkpoint, ids = loaded(folder, seed)
        training.train_tilde(checkpoint, ids, ids, rng, epochs=1, batch=2, rate=1e-2)
        logs.append(neural.log_probabilities(checkpoint, ids))
    assert not np.array_equal(logs[0], logs[1])


NEGATIVES = np.array([[1, 2], [0, 2], [0, 1], [1, 4], [0, 3], [2, 3]])


def test_training_tildev2_lowers_its_loss(folder: Path) -> None:
    rng, checkpoint, ids = loaded(folder)
    model = neural.with_projection(checkpoint, bias=1.0)
    history = training.train_tildev2(
        model, training.Pairs(ids, ids, NEGATIVES), rng, epochs=15, batch=3, rate=1e-2
    )
    assert np.mean(history[-5:]) < np.mean(history[:5])


def test_the_loss_of_tildev2_is_built_from_equation_2_2(folder: Path) -> None:
    rng, checkpoint, ids = loaded(folder)
    model = neural.with_projection(checkpoint, bias=1.0)
    before = neural.place_weights(model, ids)
    scores = tilde.matched_term_scores(
        tilde.token_counts(ids, len(WORDS)), tilde.term_weights(ids, before, len(WORDS))
    )
    # one batch holds everything; dropout off, so that the loss before the first step can be
    # computed from outside
    for module in model.bert.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    negatives = np.arange(6)[:, None][::-1]
    rows = training.batches(6, 6, 1, np.random.default_rng(3))[0]
    pairs = training.Pairs(ids, ids, negatives)
    loss = training.train_tildev2(
        model, pairs, np.random.default_rng(3), epochs=1, batch=6, rate=1e-9
    )[0]
    table = np.concatenate(
        (scores[np.ix_(rows, rows)], scores[np.ix_(rows, negatives[rows, 0])]), axis=1
    )
    wanted = np.mean(np.log(np.exp(table).sum(axis=1)) - np.diagonal(table))
    assert loss == pytest.approx(wanted, abs=1e-4)
    assert rng is not None


def test_training_a_cross_encoder_lowers_its_loss_and_scores_pairs_in_any_order(
    folder: Path,
) -> None:
    rng, checkpoint, ids = loaded(folder)
    model = neural.with_projection(checkpoint, bias=0.0)
    singing, sleeping = neural.tokenise(checkpoint.tokenizer, ["birds sing", "a sing b"]), ids[1:2]
    pairs = training.Pairs(ids[4:], [*singing, *sleeping], np.array([[2], [2]]))
    history = training.train_cross_encoder(model, pairs, rng, epochs=80, batch=2, rate=1e-2)
    assert len(history) == 80
    assert np.mean(history[-5:]) < 0.5 * np.mean(history[:5])
    forward = neural.relevance_scores(model, ids, ids[::-1])
    one = [
        neural.relevance_scores(model, [a], [b]).item() for a, b in zip(ids, ids[::-1], strict=True)
    ]
    np.testing.assert_allclose(forward, one, atol=1e-5)
    with pytest.raises(ValueError, match="is shorter than"):
        neural.relevance_scores(model, ids, ids[:2])


def test_a_calibrated_head_expects_each_token_as_often_as_it_occurs(folder: Path) -> None:
    _, checkpoint, ids = loaded(folder)
    vectors = np.stack([state[0] for state in neural.hidden_states(checkpoint, ids)])
    training.calibrate_head(
        checkpoint, vectors, ids, fresh=0.0
    )  # a head that adds nothing to its bias
    found = np.exp(neural.head_log_probabilities(checkpoint, vectors).astype(float))
    share = np.bincount(
        np.concatenate([np.unique(text) for text in ids]), minlength=len(WORDS)
    ) / len(ids)
    np.testing.assert_allclose(found, np.broadcast_to(share, found.shape), atol=1e-4)


def test_heads_on_stored_states_are_the_heads_of_the_encoder(folder: Path) -> None:
    _, checkpoint, ids = loaded(folder)
    states = neural.hidden_states(checkpoint, ids)
    on_cls = neural.head_log_probabilities(checkpoint, np.stack([state[0] for state in states]))
    np.testing.assert_allclose(on_cls, neural.log_probabilities(checkpoint, ids), atol=1e-5)
    model = neural.with_projection(checkpoint, bias=1.0)
    for stored, encoded in zip(
        neural.projected(model, states), neural.place_weights(model, ids), strict=True
    ):
        np.testing.assert_allclose(stored, encoded, atol=1e-5)


def test_training_heads_alone_lowers_their_losses_and_leaves_the_encoder(folder: Path) -> None:
    rng, checkpoint, ids = loaded(folder)
    states = neural.hidden_states(checkpoint, ids)
    inner = checkpoint.model.bert.encoder.layer[0].output.dense.weight.detach().clone()
    model = neural.with_projection(checkpoint, bias=1.0)
    pairs = training.Pairs(ids, ids, NEGATIVES)
    history = training.train_projection(model, pairs, states, rng, epochs=15, batch=3, rate=1e-1)
    assert np.mean(history[-5:]) < np.mean(history[:5])
    vectors = np.stack([state[1:].mean(axis=0) for state in states])
    history = training.train_head(checkpoint, vectors, ids, rng, epochs=15, batch=3, rate=1e-2)
    assert np.mean(history[-5:]) < 0.8 * np.mean(history[:5])
    assert torch.equal(inner, checkpoint.model.bert.encoder.layer[0].output.dense.weight)


def test_a_marker_stands_in_the_place_of_cls(folder: Path) -> None:
    _, checkpoint, ids = loaded(folder)
    marked = neural.log_probabilities(checkpoint, ids, marker=1)
    for text, row in zip(ids, marked, strict=True):
        alone = torch.tensor([[1, *text.tolist(), 3]])
        with torch.inference_mode():
            logits = checkpoint.model(input_ids=alone).logits[0, 0]
        expected = torch.nn.functional.logsigmoid(logits).numpy()
        np.testing.assert_allclose(row, expected, atol=1e-5)
    assert not np.allclose(marked, neural.log_probabilities(checkpoint, ids))


def test_training_tilde_the_authors_way_costs_nothing_for_what_is_not_asked(folder: Path) -> None:
    """The first loss is that of the authors' formula, written out here for one batch."""
    rng, checkpoint, ids = loaded(folder)
    for module in checkpoint.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    unasked = np.array([0, 1, 2, 3, 10])
    asked = [token for token in range(len(WORDS)) if token not in unasked]
    expected = 0.0
    with torch.inference_mode():
        for query, document in zip(ids, ids[::-1], strict=True):
            for marker, source, target in ((1, document, query), (2, query, document)):
                inputs = torch.tensor([[marker, *source.tolist(), 3]])
                chances = torch.sigmoid(checkpoint.model(input_ids=inputs).logits[0, 0])
                for token in asked:
                    chance = float(chances[token])
                    expected -= math.log(chance if token in target else 1 - chance)
    losses = training.train_tilde(
        checkpoint,
        ids,
        ids[::-1],
        rng,
        markers=(1, 2),
        unasked=unasked,
        epochs=1,
        batch=len(ids),
        rate=1e-3,
    )
    assert losses[0] == pytest.approx(expected / 2 / len(ids), rel=1e-4)
