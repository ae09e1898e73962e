"""Encoders of TILDE, TILDEv2 and the cross-encoder: from token ids to what documents score by.

This module needs PyTorch, transformers and tokenizers (``pip install '.[models]'``); only
the recorder imports it. Documents and queries are token ids without special tokens, each short
enough for the encoder. How the encoders are trained: `equipoise_studies.query_by_example.training`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors.torch import load_file
from tqdm import tqdm

from equipoise.arrays import Floats, Integers
from equipoise_studies.query_by_example.data import chosen
from equipoise_studies.systems.encoders import Floats32, Precision, load_model
from equipoise_studies.systems.tokenisation import read_tokenizer

Texts = Sequence[Integers]
States = Sequence[Floats32]
Function = TypeVar("Function", bound=Callable[..., Any])

BATCH = 16
"""Texts that are encoded at once."""

LONGEST = 510
"""Tokens that a BERT takes beside [CLS] and [SEP]."""

_LOGARITHMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sigmoid": torch.nn.functional.logsigmoid,
    "softmax": lambda logits: logits.log_softmax(dim=-1),
}


def _without_gradients(function: Function) -> Function:
    return torch.inference_mode()(function)


@dataclass(frozen=True)
class Checkpoint:
    """A BERT with a masked-language-model head, and its WordPiece tokeniser.

    ``precision``: of its states; heads, losses and scores are in single precision.
    """

    model: Any
    tokenizer: Any
    precision: Precision = "float32"

    @property
    def vocabulary(self) -> int:
        """Number of tokens of the vocabulary."""
        size: int = self.model.config.vocab_size
        return size

    @property
    def device(self) -> Any:
        """Where it runs."""
        return self.model.device

    def states(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """What the encoder makes of each token."""
        return _states(self.model.bert, self.precision, inputs)


@dataclass(frozen=True)
class Projection:
    """A BERT and a projection of its states to a scalar.

    TILDEv2 projects the state of every token, a cross-encoder that of [CLS].
    """

    bert: Any
    projection: torch.nn.Linear
    tokenizer: Any
    precision: Precision = "float32"

    @property
    def device(self) -> Any:
        """Where it runs."""
        return self.bert.device

    def states(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """What the encoder makes of each token."""
        return _states(self.bert, self.precision, inputs)


def _states(bert: Any, precision: Precision, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    on_device = {name: table.to(bert.device) for name, table in inputs.items()}
    # bfloat16 for the encoder alone; heads and losses stay in single precision.
    with torch.autocast(bert.device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        states = bert(**on_device).last_hidden_state
    return states.float()


def seeded(seed: int, *, threads: int = 2) -> np.random.Generator:
    """Seed PyTorch, fix its algorithms and threads, and return a NumPy generator of that seed.

    The number of threads orders sums: the last digits of weights depend on it.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    # Deterministic sums on a GPU ask for this.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # A seventh of the time, and nothing here reads such memory.
    torch.utils.deterministic.fill_uninitialized_memory = False
    return np.random.default_rng(seed)


def load_checkpoint(
    folder: Path, *, device: str = "cpu", precision: Precision = "float32"
) -> Checkpoint:
    """Load a BERT from a local folder; where it holds no head, the seed draws one."""
    network = load_model(folder, "masked-lm").network.to(device)
    return Checkpoint(network, read_tokenizer(folder / "tokenizer.json"), precision)


def own_projection(weights: Path) -> dict[str, torch.Tensor]:
    """The projection to a scalar that a file of TILDEv2's weights holds, whatever it calls it."""
    tensors = load_file(weights)
    heads = []
    # The authors' files call it by several names; its shape tells it.
    for name, tensor in tensors.items():
        if tensor.ndim == 2 and len(tensor) == 1:
            heads.append(name.removesuffix(".weight"))
    if len(heads) != 1:
        raise ValueError(
            f"{weights}: {len(heads)} projections to a scalar, one is wanted; or else train one"
        )
    return {part: tensors[f"{heads[0]}.{part}"] for part in ("weight", "bias")}


def with_projection(checkpoint: Checkpoint, *, bias: float) -> Projection:
    """A checkpoint's encoder under a projection drawn at random.

    A bias of 1 keeps the ReLU of TILDEv2 alive.
    """
    projection = torch.nn.Linear(checkpoint.model.config.hidden_size, 1)
    torch.nn.init.normal_(projection.weight, std=0.02)
    torch.nn.init.constant_(projection.bias, bias)
    return Projection(
        checkpoint.model.bert,
        projection.to(checkpoint.device),
        checkpoint.tokenizer,
        checkpoint.precision,
    )


def tokenise(tokenizer: Any, texts: Sequence[str], *, limit: int | None = None) -> list[Integers]:
    """Token ids of texts, without special tokens.

    A query has no limit (thesis section 2.1), a document the encoder's.
    """
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [np.asarray(text.ids[:limit], dtype=np.int64) for text in encoded]


def padded(tokenizer: Any, *parts: Texts, marker: int | None = None) -> dict[str, torch.Tensor]:
    """Padded ``[CLS] text [SEP]``, or ``[CLS] first [SEP] second [SEP]``, as encoders take them.

    ``marker``: the token that stands in the place of [CLS].
    """
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    beginning = cls if marker is None else marker
    rows: dict[str, list[torch.Tensor]] = {
        "input_ids": [],
        "token_type_ids": [],
        "attention_mask": [],
    }
    for texts in zip(*parts, strict=True):
        ids, kinds = [beginning], [0]
        for kind, text in enumerate(texts):
            ids += [*text.tolist(), sep]
            kinds += [kind] * (len(text) + 1)
        rows["input_ids"].append(torch.tensor(ids))
        rows["token_type_ids"].append(torch.tensor(kinds))
        rows["attention_mask"].append(torch.ones(len(ids), dtype=torch.int64))
    inputs = {}
    for name, tensors in rows.items():
        inputs[name] = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)
    return inputs


def _batches(
    tokenizer: Any, *parts: Texts, marker: int | None = None
) -> Iterator[tuple[Integers, dict[str, torch.Tensor]]]:
    """Row numbers of texts of similar length, and what the encoder takes of them.

    The longest come first: little padding, and memory runs out at once or never.
    """
    lengths = [sum(text.size for text in texts) for texts in zip(*parts, strict=True)]
    order = np.argsort(-np.asarray(lengths), kind="stable")
    for start in tqdm(range(0, len(order), BATCH), desc="encoding", disable=None):
        rows = order[start : start + BATCH]
        batch = [[part[row] for row in rows] for part in parts]
        yield rows, padded(tokenizer, *batch, marker=marker)


def cls_logits(checkpoint: Checkpoint, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The head's logits over the vocabulary, on [CLS] alone: the head is the costly part."""
    return checkpoint.model.cls(checkpoint.states(inputs)[:, 0])


def relevance(model: Projection, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The projection of [CLS], one scalar a pair."""
    return model.projection(model.states(inputs)[:, 0]).squeeze(-1)


def term_weight(model: Projection, states: torch.Tensor) -> torch.Tensor:
    r"""TILDEv2's weight of every state.

    .. math:: v_j^d = \text{ReLU}(W_{proj} \text{BERT}(d_j) + b)

    thesis Eq. 2.3 and Figure 2.1, right.
    """
    return torch.relu(model.projection(states)).squeeze(-1)


@_without_gradients
def log_probabilities(
    checkpoint: Checkpoint,
    documents: Texts,
    *,
    probability: str = "sigmoid",
    marker: int | None = None,
) -> Floats32:
    r"""TILDE's documents: log-probabilities of all tokens to be asked for, in nats.

    .. math:: \log P_\theta(t | d) = \log \sigma(z_t) \quad\text{or}\quad z_t - \log \sum_u e^{z_u}

    ``probability``: "sigmoid", tokens independent of each other, as the authors' program and the
    loss of training have it, or "softmax", one token drawn from the vocabulary. ``marker``: the
    token before a document, in the place of [CLS]. Returns ndarray, shaped (documents, vocabulary).

    thesis Eq. 2.1 and Figure 2.1, left.
    """
    logarithm = chosen(_LOGARITHMS, probability, "probability")
    table = np.empty((len(documents), checkpoint.vocabulary), dtype=np.float32)
    for rows, inputs in _batches(checkpoint.tokenizer, documents, marker=marker):
        table[rows] = logarithm(cls_logits(checkpoint, inputs)).cpu().numpy()
    return table


@_without_gradients
def head_log_probabilities(
    checkpoint: Checkpoint, vectors: Floats32, *, probability: str = "sigmoid"
) -> Floats32:
    """What `log_probabilities` gives where the head reads vectors, shaped (documents, hidden)."""
    logarithm = chosen(_LOGARITHMS, probability, "probability")
    tables = []
    for start in range(0, len(vectors), 256):
        batch = torch.from_numpy(vectors[start : start + 256]).to(checkpoint.device)
        tables.append(logarithm(checkpoint.model.cls(batch)).cpu().numpy())
    return np.concatenate(tables)


def _of_states(
    model: Checkpoint | Projection,
    documents: Texts,
    transform: Callable[[torch.Tensor], torch.Tensor],
) -> list[Floats32]:
    """What is made of the encoder's states of each document, [CLS] first, then a row a token."""
    result: list[Floats32] = [np.empty(0, dtype=np.float32)] * len(documents)
    for rows, inputs in _batches(model.tokenizer, documents):
        batch = transform(model.states(inputs)).cpu().numpy()
        for row, values in zip(rows, batch, strict=True):
            # A copy: a view would keep the whole padded batch in memory.
            result[row] = values[: 1 + documents[row].size].copy()
    return result


@_without_gradients
def hidden_states(checkpoint: Checkpoint, documents: Texts) -> list[Floats32]:
    """What the encoder makes of documents, each shaped (1 + tokens, hidden), to train heads on."""
    return _of_states(checkpoint, documents, lambda states: states)


@_without_gradients
def place_weights(model: Projection, documents: Texts) -> list[Floats]:
    """TILDEv2's documents: one `term_weight` a token, each shaped (tokens,)."""
    weights = _of_states(model, documents, lambda states: term_weight(model, states))
    return [values[1:].astype(np.float64) for values in weights]  # place 0 is [CLS]


@_without_gradients
def projected(model: Projection, states: States) -> list[Floats]:
    """What `place_weights` gives, of documents whose `hidden_states` are known."""
    of_tokens = [state[1:] for state in states]  # place 0 is [CLS]
    flat = torch.from_numpy(np.concatenate(of_tokens)).float().to(model.device)
    weights = term_weight(model, flat).cpu().numpy().astype(np.float64)
    ends = np.cumsum([len(tokens) for tokens in of_tokens])
    return np.split(weights, ends[:-1])


@_without_gradients
def splade_weights(checkpoint: Checkpoint, documents: Texts) -> list[Floats]:
    """Zero-shot weights of a document's own tokens.

    Each is what SPLADE's head, untouched, gives the token at its best place.
    """
    head, weights = checkpoint.model.cls.predictions, []
    for document, state in zip(documents, hidden_states(checkpoint, documents), strict=True):
        tokens = torch.from_numpy(document).to(checkpoint.device)
        hidden = head.transform(torch.from_numpy(state).to(checkpoint.device))
        logits = hidden @ head.decoder.weight[tokens].T + head.decoder.bias[tokens]
        of_tokens = torch.log1p(torch.relu(logits.amax(dim=0)))
        weights.append(of_tokens.cpu().numpy().astype(np.float64))
    return weights


@_without_gradients
def relevance_scores(
    model: Projection, queries: Texts, documents: Texts, *, length: int = 254
) -> Floats:
    r"""Cross-encoder scores of pairs, shaped (pairs,).

    .. math:: s(q, d) = \text{BERT}([CLS] q [SEP] d [SEP])_{[CLS]} \cdot W_{proj}

    Query and document are both cut: 2 * 254 + 3 special tokens fit a BERT's 512 places. thesis Eq.
    2.4.
    """
    cut_queries = [text[:length] for text in queries]
    cut_documents = [text[:length] for text in documents]
    scores = np.empty(len(queries))
    for rows, inputs in _batches(model.tokenizer, cut_queries, cut_documents):
        scores[rows] = relevance(model, inputs).cpu().numpy()
    return scores
