"""BERT as item uss's program trains it: its tokens, its reading of two layers, its best epoch."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is not installed: pip install 'equipoise[models]'"
)

from equipoise_studies.satisfaction import rating_encoder  # noqa: E402
from equipoise_studies.satisfaction.rating_encoder import (  # noqa: E402
    RatingEncoder,
    dialogue_tokens,
    fine_tune_rating_encoder,
    macro_recall,
)
from small_berts import small_bert  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh"]
OPTIONS: dict[str, Any] = {
    "times": 2,
    "epochs": 3,
    "batch": 4,
    "rate": 1e-3,
    "utterance": 4,
    "length": 9,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_bert(tmp_path / "tiny", WORDS)
    return tmp_path / "tiny"


def samples(count: int) -> pd.DataFrame:
    draw = np.random.default_rng(count)
    rows = []
    for number in range(count):
        users = tuple(" ".join(draw.choice(list("abcd"), 3)) for _ in range(2))
        systems = tuple(" ".join(draw.choice(list("efgh"), 5)) for _ in range(2))
        rows.append((users, systems, 1 + number % 5))
    table = pd.DataFrame(rows, columns=["users", "systems", "rating"])
    return table.assign(dissatisfied=table["rating"] < 3)


def test_tokens_are_cut_by_utterance_and_then_from_the_end(folder: Path) -> None:
    encoder = RatingEncoder(folder, utterance=4, length=9, seed=0, device="cpu")
    tokens = dialogue_tokens(
        encoder.tokenizer, ("a b", "c"), ("e f g h e", "d"), utterance=4, length=9
    )
    words = encoder.tokenizer.convert_ids_to_tokens(tokens)
    # a b [SEP] e f g h c [SEP] d [SEP], of which the last nine remain
    assert words == ["[CLS]", "[SEP]", *"efgh", "c", "[SEP]", "d", "[SEP]"]


def test_what_is_read_is_the_last_two_layers(folder: Path) -> None:
    encoder = RatingEncoder(folder, utterance=4, length=9, seed=0, device="cpu")
    encoder.modules.eval()
    short, long = [2, 4, 5, 3], [2, 4, 5, 6, 7, 3]
    with torch.inference_mode():
        together = encoder.logits([short, long])
        for text, row in zip((short, long), together, strict=True):
            layers = encoder.modules[0](
                input_ids=torch.tensor([text]), output_hidden_states=True
            ).hidden_states
            both = torch.cat([layers[-2][0], layers[-1][0]], dim=-1)
            read = torch.cat([both[0], both.sum(dim=0) / len(text) ** 0.5])
            assert row.numpy() == pytest.approx(encoder.head(read).numpy(), abs=1e-5)
        ratings = torch.softmax(together, dim=1)
    expected = (ratings[:, 0] + ratings[:, 1]).numpy()
    assert encoder.probabilities([short, long]) == pytest.approx(expected, abs=1e-6)


def test_the_best_epoch_on_the_validation_part_labels(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With scores given by hand, the second of three epochs is the best."""
    scores = iter([0.2, 0.9, 0.5])
    seen = []

    def scored(_: Any, probabilities: Any) -> float:
        seen.append(probabilities.copy())
        return next(scores)

    monkeypatch.setattr(rating_encoder, "macro_recall", scored)
    valid = samples(7)
    labelled = fine_tune_rating_encoder(folder, samples(10), valid, valid, **OPTIONS)
    assert len(seen) == 3
    assert labelled == pytest.approx(seen[1], abs=1e-6)
    assert labelled != pytest.approx(seen[2], abs=1e-6)


def test_training_that_was_stopped_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, valid = samples(40), samples(7)
    options = OPTIONS | {"epochs": 12}
    whole = fine_tune_rating_encoder(folder, train, valid, valid, **options)

    kept = tmp_path / "kept.pt"
    logits = RatingEncoder.logits
    calls = 0

    def stops(self: RatingEncoder, texts: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 140:
            raise KeyboardInterrupt
        return logits(self, texts)

    monkeypatch.setattr(RatingEncoder, "logits", stops)
    with pytest.raises(KeyboardInterrupt):
        fine_tune_rating_encoder(folder, train, valid, valid, checkpoint=kept, **options)
    assert kept.is_file()
    monkeypatch.setattr(RatingEncoder, "logits", logits)
    again = fine_tune_rating_encoder(folder, train, valid, valid, checkpoint=kept, **options)
    assert again == pytest.approx(whole, abs=1e-6)


def test_macro_recall_is_the_mean_over_both_labels() -> None:
    labels = np.array([True, True, False, False, False])
    assert macro_recall(labels, np.array([0.9, 0.1, 0.2, 0.3, 0.8])) == pytest.approx(
        (1 / 2 + 2 / 3) / 2
    )
    assert macro_recall(labels[:2], np.array([0.9, 0.9])) == 0.5
