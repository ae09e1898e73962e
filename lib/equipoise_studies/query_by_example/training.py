r"""Training of TILDE, TILDEv2 and the cross-encoder on pairs of a query and a document that belongs to it.

Parts of one paper can be such a pair: no relevance judgement is needed. Given the seed, the number
of threads and the versions, training gives the same weights. In every function the i-th query
belongs to the i-th document (token ids, each short enough for the encoder), ``rng`` orders the
batches and draws negatives, and ``**schedule`` is ``epochs``, ``batch``, ``rate`` and ``optimiser``
of `descend`; the thesis trains 5 epochs, TILDE with a rate of 2e-5, TILDEv2 with 5e-6. Returned is
the loss of every step, in nats.

References
----------
Zhuang, S. and Zuccon, G. (2021): TILDE. SIGIR. Its bi-directional loss is `train_tilde`'s. Zhuang,
S. and Zuccon, G. (2021): Fast Passage Re-ranking with Contextualized Exact Term Matching and
Efficient Passage Expansion. arXiv:2108.08513.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator

from equipoise.arrays import Integers
from equipoise_studies.query_by_example import neural
from equipoise_studies.query_by_example.neural import Checkpoint, Projection, States, Texts
from equipoise_studies.systems.encoders import Floats32
from equipoise_studies.training import descend


def batches(rows: int, batch: int, epochs: int, rng: Generator) -> list[Integers]:
    """Shuffled row numbers of every training step; what does not fill a batch at an epoch's end is left out."""
    orders = (rng.permutation(rows) for _ in range(epochs))
    return [
        order[start : start + batch]
        for order in orders
        for start in range(0, max(rows - batch + 1, 1), batch)
    ]


def _descend(
    modules: Sequence[torch.nn.Module],
    rows: int,
    loss_of: Callable[[Integers], torch.Tensor],
    rng: Generator,
    what: str,
    *,
    epochs: int,
    batch: int,
    **how: Any,
) -> list[float]:
    """Minimise ``loss_of``, the loss of the pairs with these row numbers, of ``rows`` in all, with dropout."""
    trained = torch.nn.ModuleList(modules).train()
    losses = descend(modules, batches(rows, batch, epochs, rng), loss_of, what, **how)
    trained.eval()
    return losses


def calibrate_head(
    checkpoint: Checkpoint, vectors: Floats32, *texts: Texts, fresh: float | None = None
) -> None:
    """Shift the head's bias until each token is, on average, as likely as it is common: training starts from there.

    ``vectors`` (shaped (documents, hidden)): what the head is to read, of a sample of documents.
    ``*texts``: those that training will ask for. ``fresh``: for a head that came without weights:
    its transformation becomes the identity, scaled by this number.
    """
    size = checkpoint.vocabulary
    shares = [
        np.bincount(np.concatenate([np.unique(text) for text in part]), minlength=size) / len(part)
        for part in texts
    ]
    share = (np.mean(shares, axis=0) + 1e-5) / (1 + 2e-5)
    head = checkpoint.model.cls.predictions
    with torch.no_grad():
        if fresh is not None:
            torch.nn.init.eye_(head.transform.dense.weight)
            torch.nn.init.zeros_(head.transform.dense.bias)
            head.transform.LayerNorm.weight.fill_(fresh)
            head.transform.LayerNorm.bias.zero_()
        mean = checkpoint.model.cls(torch.from_numpy(vectors).to(checkpoint.device)).mean(dim=0)
        wanted = torch.from_numpy(np.log(share / (1 - share)).astype(np.float32))
        head.decoder.bias += wanted.to(checkpoint.device) - mean


def _set_loss(logits: torch.Tensor, targets: Texts) -> torch.Tensor:
    """Binary cross-entropy of which tokens a text holds, in nats a text."""
    wanted = torch.zeros_like(logits)
    for row, target in enumerate(targets):
        wanted[row, torch.from_numpy(np.unique(target)).to(logits.device)] = 1.0
    return torch.nn.functional.binary_cross_entropy_with_logits(
        logits, wanted, reduction="sum"
    ) / len(targets)


def train_tilde(
    checkpoint: Checkpoint, queries: Texts, documents: Texts, rng: Generator, **schedule: Any
) -> list[float]:
    r"""Fine-tune a masked-language-model head to tell from a document's [CLS] which tokens its query holds.

    .. math::
        L = -\frac1B \sum_b \Bigl( \sum_{t \in q_b} \log \sigma(z_{bt})
        + \sum_{t \notin q_b} \log(1 - \sigma(z_{bt})) \Bigr)

    The query also predicts the document's tokens, as in the authors' bi-directional loss: the mean
    of both counts.

    thesis sections 2.2.2 and 2.3.6.
    """
    model = checkpoint.model

    def half(sources: Texts, targets: Texts) -> torch.Tensor:
        return _set_loss(
            neural.cls_logits(checkpoint, neural.padded(checkpoint.tokenizer, sources)), targets
        )

    def loss_of(rows: Integers) -> torch.Tensor:
        asked, told = [queries[row] for row in rows], [documents[row] for row in rows]
        return (half(told, asked) + half(asked, told)) / 2

    return _descend([model], len(queries), loss_of, rng, "TILDE", **schedule)


def train_head(
    checkpoint: Checkpoint, vectors: Floats32, targets: Texts, rng: Generator, **schedule: Any
) -> list[float]:
    """Train TILDE's head alone, on vectors of an encoder that is left as it is; the loss is `train_tilde`'s.

    The head is to expect the ``targets`` (token ids) of each vector. Where the word embeddings are
    tied to it, they change with it: encode first.
    """
    head = checkpoint.model.cls

    def loss_of(rows: Integers) -> torch.Tensor:
        return _set_loss(
            head(torch.from_numpy(vectors[rows]).to(checkpoint.device)),
            [targets[row] for row in rows],
        )

    return _descend([head], len(vectors), loss_of, rng, "TILDE's head", **schedule)


@dataclass(frozen=True)
class Pairs:
    """Queries, the documents that belong to them, and row numbers of hard negatives, shaped (queries, n).

    Behind the documents that belong to a query others may stand, to be negatives.
    """

    queries: Texts
    documents: Texts
    negatives: Integers

    def with_negatives(self, rows: Integers, rng: Generator) -> Integers:
        """The rows, and behind them a hard negative drawn for each."""
        return np.concatenate(
            (rows, self.negatives[rows, rng.integers(self.negatives.shape[1], size=rows.size)])
        )


def _contrast(queries: Texts, documents: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of Eq. 2.2 over all documents of a batch, the first of which are the queries' own."""
    scores = []
    for query in queries:
        tokens, counts = np.unique(query, return_counts=True)
        same = (
            torch.from_numpy(tokens).to(weights.device)[:, None, None]
            == documents.to(weights.device)[None]
        )
        best = torch.where(same, weights[None], torch.zeros((), device=weights.device)).amax(dim=2)
        scores.append((best * torch.from_numpy(counts).to(weights.device)[:, None]).sum(dim=0))
    return torch.nn.functional.cross_entropy(
        torch.stack(scores), torch.arange(len(queries), device=weights.device)
    )


def train_tildev2(model: Projection, pairs: Pairs, rng: Generator, **schedule: Any) -> list[float]:
    r"""Fine-tune term weights so that a query scores its own document above the others of the batch.

    .. math:: L = -\frac1B \sum_b \log \frac{e^{s(q_b, d_b)}}{\sum_{d \in \text{batch}} e^{s(q_b,
    d)}}

    One hard negative of each query joins the batch.

    thesis Eqs. 2.2 and 2.3, section 2.3.1 (triplets).
    """

    def loss_of(rows: Integers) -> torch.Tensor:
        told = [pairs.documents[row] for row in pairs.with_negatives(rows, rng)]
        inputs = neural.padded(model.tokenizer, told)
        weights = neural.term_weight(model, model.states(inputs)) * inputs["attention_mask"].to(
            model.device
        )
        return _contrast([pairs.queries[row] for row in rows], inputs["input_ids"], weights)

    return _descend(
        [model.bert, model.projection], len(pairs.queries), loss_of, rng, "TILDEv2", **schedule
    )


def train_projection(
    model: Projection, pairs: Pairs, states: States, rng: Generator, **schedule: Any
) -> list[float]:
    """Train TILDEv2's projection alone, on an encoder that is left as it is; the loss is `train_tildev2`'s.

    ``states``: of the documents, as `hidden_states` returns them; where a limit cut a document, of
    the cut document.
    """

    def loss_of(rows: Integers) -> torch.Tensor:
        both = pairs.with_negatives(rows, rng)
        longest = max(len(states[row]) for row in both) - 1
        tokens = np.full((len(both), longest), -1, dtype=np.int64)  # -1 is no token of a query
        hidden = np.zeros((len(both), longest, states[0].shape[1]), dtype=np.float32)
        for place, row in enumerate(both):
            size = len(states[row]) - 1
            tokens[place, :size], hidden[place, :size] = (
                pairs.documents[row][:size],
                states[row][1:],
            )
        weights = neural.term_weight(model, torch.from_numpy(hidden).to(model.device))
        return _contrast([pairs.queries[row] for row in rows], torch.from_numpy(tokens), weights)

    return _descend(
        [model.projection], len(pairs.queries), loss_of, rng, "TILDEv2's projection", **schedule
    )


def train_cross_encoder(
    model: Projection, pairs: Pairs, rng: Generator, **schedule: Any
) -> list[float]:
    r"""Fine-tune a cross-encoder to score a query's own document above a hard negative.

    .. math:: L = -\frac1B \sum_b \log \sigma \bigl( s(q_b, d_b) - s(q_b, d_b^-) \bigr)

    thesis section 2.2.4.
    """

    def loss_of(rows: Integers) -> torch.Tensor:
        asked = [pairs.queries[row] for row in rows] * 2
        told = [pairs.documents[row] for row in pairs.with_negatives(rows, rng)]
        own, other = neural.relevance(model, neural.padded(model.tokenizer, asked, told)).chunk(2)
        return -torch.nn.functional.logsigmoid(own - other).mean()

    return _descend(
        [model.bert, model.projection],
        len(pairs.queries),
        loss_of,
        rng,
        "cross-encoder",
        **schedule,
    )
