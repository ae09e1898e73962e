"""BERT as the public program of item uss trains it, which the thesis replicates (section 3.5.3).

Sun, W. et al. (2021): Simulating User Satisfaction for the Evaluation of Task-oriented Dialogue
Systems, SIGIR; its ``baselines/train_sat.py``. It learns the five ratings, at a constant rate, from
the last 500 tokens of a dialogue, 64 of each utterance at most. Two things are ours: gradients are
clipped at 1, and of the epochs that is kept which is best on the validation part, where the program
takes the best on the test part.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, Integers
from equipoise_studies.satisfaction.dialogues import utterances
from equipoise_studies.satisfaction.systems import up_sampled
from equipoise_studies.systems import models_package
from equipoise_studies.systems.encoders import load_model
from equipoise_studies.systems.language_models import Device
from equipoise_studies.training import descend, put_in_place

RATINGS = 5
DISSATISFIED_RATINGS = 2
"""A user who rates 1 or 2 is dissatisfied."""
LAYERS = 2
"""The last layers of BERT that are read."""
DROPOUT = 0.4


def dialogue_tokens(
    tokenizer: Any, users: Sequence[str], systems: Sequence[str], *, utterance: int, length: int
) -> list[int]:
    """[CLS] and the last ``length`` tokens of a dialogue, ``utterance`` of each utterance at most.

    An utterance ends with [SEP], unless it is cut.
    """
    tokens: list[int] = []
    for _, text in utterances(users, systems):
        if text:
            ids = tokenizer.encode(text, add_special_tokens=False)
            tokens += [*ids, tokenizer.sep_token_id][:utterance]
    return [tokenizer.cls_token_id, *tokens[-length:]]


class RatingEncoder:
    """A BERT and a layer that reads the five ratings from its last two layers.

    What is read of each layer: the state of [CLS], and the sum of the states of all tokens over the
    root of their number.
    """

    def __init__(
        self, folder: Path, *, utterance: int, length: int, seed: int, device: Device
    ) -> None:
        self.torch = models_package("torch")
        self.torch.set_num_threads(1)
        self.torch.manual_seed(seed)
        model = load_model(folder)
        self.tokenizer, self.device = model.tokenizer, device
        self.utterance, self.length = utterance, length
        hidden = model.network.config.hidden_size
        self.head = self.torch.nn.Linear(2 * LAYERS * hidden, RATINGS)
        self.torch.nn.init.normal_(self.head.weight, std=0.02)
        self.dropout = self.torch.nn.Dropout(DROPOUT)
        self.modules = self.torch.nn.ModuleList([model.network, self.head, self.dropout]).to(device)

    def tokens(self, samples: pd.DataFrame) -> list[list[int]]:
        """Token ids of each sample."""
        rows = []
        for sample in samples.itertuples():
            rows.append(
                dialogue_tokens(
                    self.tokenizer,
                    sample.users,
                    sample.systems,
                    utterance=self.utterance,
                    length=self.length,
                )
            )
        return rows

    def logits(self, texts: Sequence[list[int]]) -> Any:
        """Logits of the ratings 1 to 5, shaped (texts, 5)."""
        torch = self.torch
        rows = [torch.tensor(text) for text in texts]
        pad = self.tokenizer.pad_token_id
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
        ids = ids.to(self.device)
        mask = (ids != pad).long()
        output = self.modules[0](input_ids=ids, attention_mask=mask, output_hidden_states=True)
        states = torch.cat(output.hidden_states[-LAYERS:], dim=-1)
        weights = mask.unsqueeze(-1).float()
        mean = (states * weights).sum(dim=1) / weights.sum(dim=1).sqrt()
        return self.head(self.dropout(torch.cat([states[:, 0], mean], dim=-1)))

    def probabilities(self, texts: Sequence[list[int]]) -> Floats:
        """Probability of dissatisfaction, the ratings 1 and 2 together, shaped (texts,)."""
        self.modules.eval()
        result = np.empty(len(texts))
        # Texts of like length together, so that little is padded.
        by_length = np.argsort([len(text) for text in texts], kind="stable")
        with self.torch.inference_mode():
            for start in range(0, len(texts), 32):
                rows = by_length[start : start + 32]
                ratings = self.torch.softmax(self.logits([texts[row] for row in rows]), dim=1)
                result[rows] = ratings[:, :DISSATISFIED_RATINGS].sum(dim=1).cpu().numpy()
        self.modules.train()
        return result


def macro_recall(dissatisfied: np.ndarray[Any, Any], probabilities: Floats) -> float:
    """Mean of the recalls of both labels; 0 for one that no sample has."""
    predicted = probabilities >= 0.5
    recalls = []
    for label in (True, False):
        of_label = dissatisfied == label
        recalls.append(float((predicted[of_label] == label).mean()) if of_label.any() else 0.0)
    return float(np.mean(recalls))


def fine_tune_rating_encoder(
    folder: Path,
    train: pd.DataFrame,
    valid: pd.DataFrame,
    to_label: pd.DataFrame,
    *,
    times: int,
    epochs: int,
    batch: int,
    rate: float,
    utterance: int,
    length: int,
    seed: int = 0,
    checkpoint: Path | None = None,
    device: Device = "cpu",
) -> Floats:
    """Fine-tune on the ratings of training samples, and label others: shaped (to_label,).

    ``train``, ``valid``, ``to_label``: samples with users and systems; the first two with rating
    and dissatisfied. ``times``: up-sampling of dissatisfied samples. ``epochs``: at most; the
    weights of the one with the highest macro recall on ``valid`` label. ``checkpoint``: as
    `equipoise_studies.training.descend` takes it; the best weights lie beside it.
    """
    encoder = RatingEncoder(folder, utterance=utterance, length=length, seed=seed, device=device)
    torch = encoder.torch
    texts, valid_texts = encoder.tokens(train), encoder.tokens(valid)
    ratings = torch.tensor(train["rating"].to_numpy() - 1, device=device)
    is_dissatisfied = valid["dissatisfied"].to_numpy()

    rng = np.random.default_rng(seed)
    plan: list[Integers] = []
    epoch_ends = set()
    for _ in range(epochs):
        order = up_sampled(train["dissatisfied"], times, rng)
        plan += [order[start : start + batch] for start in range(0, len(order), batch)]
        epoch_ends.add(len(plan))

    best = _BestWeights(encoder, checkpoint)

    def keep_if_best(steps_done: int) -> None:
        if steps_done in epoch_ends:
            best.keep(macro_recall(is_dissatisfied, encoder.probabilities(valid_texts)))

    def loss_of(rows: Integers) -> Any:
        logits = encoder.logits([texts[row] for row in rows])
        return torch.nn.functional.cross_entropy(logits, ratings[rows])

    encoder.modules.train()
    descend(
        [encoder.modules],
        plan,
        loss_of,
        f"fine-tuning on ratings x{times}",
        rate=rate,
        constant=True,
        checkpoint=checkpoint,
        after=keep_if_best,
    )
    best.put_back()
    return encoder.probabilities(encoder.tokens(to_label))


class _BestWeights:
    """The weights of the best epoch so far, in memory, or in a file beside a checkpoint."""

    def __init__(self, encoder: RatingEncoder, checkpoint: Path | None) -> None:
        self.encoder = encoder
        self.path = checkpoint.with_suffix(".best") if checkpoint else None
        self.kept: dict[str, Any] = {}
        if self.path is not None and self.path.is_file():
            load = encoder.torch.load
            self.kept = load(self.path, weights_only=True, map_location=encoder.device)

    def keep(self, score: float) -> None:
        """Keep the weights as they are now, if no epoch before was as good."""
        torch = self.encoder.torch
        if self.kept and score <= float(self.kept["score"]):
            return
        weights = self.encoder.modules.state_dict()
        copied = {name: tensor.detach().clone() for name, tensor in weights.items()}
        self.kept = {"score": torch.tensor(score, dtype=torch.float64), "weights": copied}
        if self.path is not None:
            put_in_place(self.kept, self.path)

    def put_back(self) -> None:
        """Go back to the best weights."""
        self.encoder.modules.load_state_dict(self.kept["weights"])
