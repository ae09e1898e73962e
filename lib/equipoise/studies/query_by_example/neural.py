"""Encoders of TILDE, TILDEv2 and the cross-encoder: from token ids of documents to what they are scored by.

This module needs PyTorch, transformers and tokenizers (``pip install 'equipoise[models]'``); only the recorder imports
it. Documents and queries are token ids without special tokens; ``limit`` cuts a document, ``batch`` counts texts at
once. How the encoders are trained: `equipoise.studies.query_by_example.training`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from tqdm import tqdm

from equipoise.arrays import Floats, Integers
from equipoise.systems.encoders import Floats32, load_model
from equipoise.systems.tokenisation import read_tokenizer

Texts = Sequence[Integers]
States = Sequence[Floats32]
Function = TypeVar("Function", bound=Callable[..., Any])


def _without_gradients(function: Function) -> Function:
    return torch.inference_mode()(function)


@dataclass(frozen=True)
class Checkpoint:
    """A BERT with a masked-language-model head, its WordPiece tokeniser, and the sha256 of its weights."""

    model: Any
    tokenizer: Any
    sha256: str

    @property
    def vocabulary(self) -> int:
        """Number of tokens of the vocabulary."""
        size: int = self.model.config.vocab_size
        return size


@dataclass(frozen=True)
class Projection:
    """A BERT and the projection of its states to a scalar: every token's in TILDEv2, [CLS]'s in a cross-encoder."""

    bert: Any
    projection: torch.nn.Linear
    tokenizer: Any


def seeded(seed: int, *, threads: int = 2) -> np.random.Generator:
    """Seed PyTorch, fix its algorithms and its number of threads, and return a NumPy generator of the same seed.

    The number of threads orders sums: the last digits of weights depend on it.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    # a seventh of the time, and nothing here reads such memory
    torch.utils.deterministic.fill_uninitialized_memory = False
    return np.random.default_rng(seed)


def load_checkpoint(folder: Path) -> Checkpoint:
    """Load a BERT from a local folder; where it holds no head, the seed draws one."""
    loaded = load_model(folder, "masked-lm")
    return Checkpoint(loaded.network, read_tokenizer(folder / "tokenizer.json"), loaded.sha256)


def with_projection(checkpoint: Checkpoint, *, bias: float) -> Projection:
    """A checkpoint's encoder under a projection drawn at random; a bias of 1 keeps the ReLU of TILDEv2 alive."""
    projection = torch.nn.Linear(checkpoint.model.config.hidden_size, 1)
    torch.nn.init.normal_(projection.weight, std=0.02)
    torch.nn.init.constant_(projection.bias, bias)
    return Projection(checkpoint.model.bert, projection, checkpoint.tokenizer)


def tokenise(tokenizer: Any, texts: Sequence[str], *, limit: int | None = None) -> list[Integers]:
    """Token ids of texts, without special tokens.

    A query has no limit (thesis section 2.1), a document the encoder's.
    """
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [np.asarray(text.ids[:limit], dtype=np.int64) for text in encoded]


def padded(tokenizer: Any, texts: Texts, seconds: Texts | None = None) -> dict[str, torch.Tensor]:
    """Padded ``[CLS] text [SEP]``, or ``[CLS] first [SEP] second [SEP]``, as the encoder takes them."""
    cls, sep = ([tokenizer.token_to_id(mark)] for mark in ("[CLS]", "[SEP]"))
    heads = [np.concatenate((cls, text, sep)) for text in texts]
    tails = [np.concatenate((text, sep)) for text in seconds] if seconds is not None else [heads[0][:0]] * len(heads)
    parts = list(zip(heads, tails, strict=True))
    tables = {
        "input_ids": [np.concatenate(pair) for pair in parts],
        "token_type_ids": [np.repeat([0, 1], [head.size, tail.size]) for head, tail in parts],
        "attention_mask": [np.ones(head.size + tail.size, dtype=np.int64) for head, tail in parts],
    }
    pad = torch.nn.utils.rnn.pad_sequence
    return {name: pad([torch.from_numpy(row) for row in rows], batch_first=True) for name, rows in tables.items()}


def _steps(sizes: Sequence[int], batch: int, what: str) -> Iterator[Integers]:
    """Row numbers in batches of similar length, longest first: little padding, and memory runs out at once or never."""
    order = np.argsort(-np.asarray(sizes), kind="stable")
    for start in tqdm(range(0, len(order), batch), desc=what, disable=None):
        yield order[start : start + batch]


def cls_logits(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The head's logits over the vocabulary, on [CLS] alone: the head is the costly part."""
    return model.cls(model.bert(**inputs).last_hidden_state[:, 0])


def relevance(model: Projection, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The projection of [CLS], one scalar a pair."""
    return model.projection(model.bert(**inputs).last_hidden_state[:, 0]).squeeze(-1)


def term_weight(model: Projection, states: torch.Tensor) -> torch.Tensor:
    r"""TILDEv2's weight of every state.

    .. math:: v_j^d = \text{ReLU}(W_{proj} \text{BERT}(d_j) + b)

    thesis Eq. 2.3 and Figure 2.1, right.
    """
    return torch.relu(model.projection(states)).squeeze(-1)


def _logarithms(probability: str) -> Callable[[torch.Tensor], torch.Tensor]:
    if probability == "sigmoid":
        return torch.nn.functional.logsigmoid
    if probability == "softmax":
        return lambda logits: logits.log_softmax(dim=-1)
    raise ValueError(f'probability must be "sigmoid" or "softmax", found {probability!r}')


@_without_gradients
def log_probabilities(
    checkpoint: Checkpoint, documents: Texts, *, probability: str = "sigmoid", batch: int = 16, limit: int = 510
) -> Floats32:
    r"""TILDE's documents: the log-probability of every token of the vocabulary to be asked for, in nats.

    .. math:: \log P_\theta(t | d) = \log \sigma(z_t) \quad\text{or}\quad z_t - \log \sum_u e^{z_u}

    ``probability``: "sigmoid", tokens independent of each other, as the authors' program and the loss of training have
    it, or "softmax", one token drawn from the vocabulary. Returns ndarray, shaped (documents, vocabulary).

    thesis Eq. 2.1 and Figure 2.1, left.
    """
    logarithms = _logarithms(probability)
    table = np.empty((len(documents), checkpoint.vocabulary), dtype=np.float32)
    cut = [document[:limit] for document in documents]
    for rows in _steps([text.size for text in cut], batch, "documents"):
        inputs = padded(checkpoint.tokenizer, [cut[row] for row in rows])
        table[rows] = logarithms(cls_logits(checkpoint.model, inputs)).numpy()
    return table


@_without_gradients
def head_log_probabilities(
    checkpoint: Checkpoint, vectors: Floats32, *, probability: str = "sigmoid", batch: int = 256
) -> Floats32:
    """What `log_probabilities` gives where the head reads the vectors, shaped (documents, hidden), and not [CLS]."""
    logarithms = _logarithms(probability)
    parts = (torch.from_numpy(vectors[start : start + batch]) for start in range(0, len(vectors), batch))
    return np.concatenate([logarithms(checkpoint.model.cls(part)).numpy() for part in parts])


def _of_states(
    model: Checkpoint | Projection, documents: Texts, of: Callable[[torch.Tensor], torch.Tensor], batch: int, limit: int
) -> list[Floats32]:
    """What is made of the encoder's states of each document, [CLS] first, then a row a token."""
    bert = model.model.bert if isinstance(model, Checkpoint) else model.bert
    cut = [document[:limit] for document in documents]
    result: list[Floats32] = [np.empty(0, dtype=np.float32)] * len(cut)
    for rows in _steps([text.size for text in cut], batch, "documents"):
        states = bert(**padded(model.tokenizer, [cut[row] for row in rows])).last_hidden_state
        for row, values in zip(rows, of(states).numpy(), strict=True):
            result[row] = values[: 1 + cut[row].size].copy()
    return result


@_without_gradients
def hidden_states(checkpoint: Checkpoint, documents: Texts, *, batch: int = 16, limit: int = 510) -> list[Floats32]:
    """What the encoder makes of documents, each shaped (1 + tokens, hidden): to train heads on it as it is."""
    return _of_states(checkpoint, documents, lambda states: states, batch, limit)


@_without_gradients
def place_weights(model: Projection, documents: Texts, *, batch: int = 16, limit: int = 510) -> list[Floats]:
    """TILDEv2's documents: one `term_weight` a token, each shaped (tokens,)."""
    weights = _of_states(model, documents, lambda states: term_weight(model, states), batch, limit)
    return [values[1:].astype(np.float64) for values in weights]  # place 0 is [CLS]


@_without_gradients
def projected(model: Projection, states: States) -> list[Floats]:
    """What `place_weights` gives, of documents whose `hidden_states` are known."""
    flat = torch.from_numpy(np.concatenate([state[1:] for state in states]))
    weights = term_weight(model, flat).numpy().astype(np.float64)
    return np.split(weights, np.cumsum([len(state) - 1 for state in states])[:-1])


@_without_gradients
def splade_weights(checkpoint: Checkpoint, documents: Texts) -> list[Floats]:
    """Zero-shot weights of a document's own tokens: what SPLADE's head, untouched, gives each at its best place."""
    head, result = checkpoint.model.cls.predictions, []
    for document, state in zip(documents, hidden_states(checkpoint, documents), strict=True):
        own = torch.from_numpy(document[: len(state) - 1])
        logits = head.transform(torch.from_numpy(state)) @ head.decoder.weight[own].T + head.decoder.bias[own]
        result.append(torch.log1p(torch.relu(logits.amax(dim=0))).numpy().astype(np.float64))
    return result


@_without_gradients
def relevance_scores(
    model: Projection, queries: Texts, documents: Texts, *, batch: int = 16, limit: int = 254
) -> Floats:
    r"""Cross-encoder scores of pairs, shaped (pairs,).

    .. math:: s(q, d) = \text{BERT}([CLS] q [SEP] d [SEP])_{[CLS]} \cdot W_{proj}

    Query and document are both cut: 2 * 254 + 3 special tokens fit a BERT's 512 places. thesis Eq. 2.4.
    """
    if len(queries) != len(documents):
        raise ValueError(f"{len(queries)} queries and {len(documents)} documents: one of each a pair")
    asked, told = [text[:limit] for text in queries], [text[:limit] for text in documents]
    scores = np.empty(len(asked))
    for rows in _steps([a.size + b.size for a, b in zip(asked, told, strict=True)], batch, "pairs"):
        inputs = padded(model.tokenizer, [asked[row] for row in rows], [told[row] for row in rows])
        scores[rows] = relevance(model, inputs).numpy().astype(np.float64)
    return scores
