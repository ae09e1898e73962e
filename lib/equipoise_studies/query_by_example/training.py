r"""Training of TILDE, TILDEv2 and the cross-encoder on pairs of a query and its document.

Parts of one paper can be such a pair: no relevance judgement is needed. Given the seed, the number
of threads and the versions, training gives the same weights. In every function the i-th query
belongs to the i-th document (token ids, each short enough for the encoder), ``rng`` orders the
batches and draws negatives, and ``**schedule`` is ``epochs``, ``batch``, and ``rate``,
``optimiser`` and ``checkpoint`` of `descend`; the thesis trains 5 epochs, TILDE with a rate of
2e-5, TILDEv2 with 5e-6. Returned is the loss of every step, in nats.

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
    """Shuffled row numbers of every step; a batch not filled at an epoch's end is left out."""
    steps = []
    for _ in range(epochs):
        order = rng.permutation(rows)
        for start in range(0, max(rows - batch + 1, 1), batch):
            steps.append(order[start : start + batch])
    return steps


def _descend(
    modules: Sequence[torch.nn.Module],
    rows: int,
    loss_of: Callable[[Integers], torch.Tensor],
    rng: Generator,
    label: str,
    *,
    epochs: int,
    batch: int,
    **options: Any,
) -> list[float]:
    """Minimise ``loss_of``, a loss of pairs by row numbers, of ``rows`` in all, with dropout."""
    trained = torch.nn.ModuleList(modules).train()
    plan = batches(rows, batch, epochs, rng)
    losses = descend(modules, plan, loss_of, label, draws=rng, **options)
    trained.eval()
    return losses


def calibrate_head(
    checkpoint: Checkpoint, vectors: Floats32, *texts: Texts, fresh: float | None = None
) -> None:
    """Shift the head's bias until each token is, on average, as likely as it is common.

    Training starts from there.

    ``vectors`` (shaped (documents, hidden)): what the head is to read, of a sample of documents.
    ``*texts``: those that training will ask for. ``fresh``: for a head that came without weights:
    its transformation becomes the identity, scaled by this number.
    """
    shares = []
    for part in texts:
        tokens = np.concatenate([np.unique(text) for text in part])
        shares.append(np.bincount(tokens, minlength=checkpoint.vocabulary) / len(part))
    # Away from 0 and 1, whose logarithms are infinite.
    share = (np.mean(shares, axis=0) + 1e-5) / (1 + 2e-5)
    head = checkpoint.model.cls.predictions
    with torch.no_grad():
        if fresh is not None:
            torch.nn.init.eye_(head.transform.dense.weight)
            torch.nn.init.zeros_(head.transform.dense.bias)
            head.transform.LayerNorm.weight.fill_(fresh)
            head.transform.LayerNorm.bias.zero_()
        mean = checkpoint.model.cls(torch.from_numpy(vectors).to(checkpoint.device)).mean(dim=0)
        log_odds = torch.from_numpy(np.log(share / (1 - share)).astype(np.float32))
        head.decoder.bias += log_odds.to(checkpoint.device) - mean


def _set_loss(
    logits: torch.Tensor, targets: Texts, unasked: Integers | None = None
) -> torch.Tensor:
    """Binary cross-entropy of which tokens a text holds, in nats a text.

    ``unasked``: tokens that are not expected, and whose probability costs nothing.
    """
    membership = torch.zeros_like(logits)
    for row, target in enumerate(targets):
        membership[row, torch.from_numpy(np.unique(target)).to(logits.device)] = 1.0
    weight = torch.ones(logits.shape[1], device=logits.device)
    if unasked is not None:
        weight[torch.from_numpy(unasked).to(logits.device)] = 0.0
    cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits
    return cross_entropy(logits, membership, weight=weight, reduction="sum") / len(targets)


def train_tilde(
    checkpoint: Checkpoint,
    queries: Texts,
    documents: Texts,
    rng: Generator,
    /,
    *,
    markers: tuple[int, int] | None = None,
    unasked: Integers | None = None,
    **schedule: Any,
) -> list[float]:
    r"""Fine-tune a masked-language model to tell from a document's [CLS] the tokens of its query.

    .. math::
        L = -\frac1B \sum_b \Bigl( \sum_{t \in q_b} \log \sigma(z_{bt})
        + \sum_{t \notin q_b} \log(1 - \sigma(z_{bt})) \Bigr)

    The query also predicts the document's tokens, as in the authors' bi-directional loss: the mean
    of both counts. ``markers``: tokens before a document and before a query, in the place of [CLS].
    ``unasked``: tokens that neither is asked for.

    thesis sections 2.2.2 and 2.3.6.
    """
    model = checkpoint.model

    document_marker, query_marker = markers or (None, None)

    # Either text predicts the other's tokens.
    def loss_from(sources: Texts, marker: int | None, targets: Texts) -> torch.Tensor:
        # A query has no limit as a target; as a source it has the encoder's.
        cut_sources = [source[: neural.LONGEST] for source in sources]
        inputs = neural.padded(checkpoint.tokenizer, cut_sources, marker=marker)
        return _set_loss(neural.cls_logits(checkpoint, inputs), targets, unasked)

    def loss_of(rows: Integers) -> torch.Tensor:
        batch_queries = [queries[row] for row in rows]
        batch_documents = [documents[row] for row in rows]
        of_queries = loss_from(batch_documents, document_marker, batch_queries)
        of_documents = loss_from(batch_queries, query_marker, batch_documents)
        return (of_queries + of_documents) / 2

    return _descend([model], len(queries), loss_of, rng, "TILDE", **schedule)


def train_head(
    checkpoint: Checkpoint, vectors: Floats32, targets: Texts, rng: Generator, /, **schedule: Any
) -> list[float]:
    """Train TILDE's head alone, on vectors of an encoder left as it is.

    The loss is `train_tilde`'s.

    The head is to expect the ``targets`` (token ids) of each vector. Where the word embeddings are
    tied to it, they change with it: encode first.
    """
    head = checkpoint.model.cls

    def loss_of(rows: Integers) -> torch.Tensor:
        logits = head(torch.from_numpy(vectors[rows]).to(checkpoint.device))
        return _set_loss(logits, [targets[row] for row in rows])

    return _descend([head], len(vectors), loss_of, rng, "TILDE's head", **schedule)


@dataclass(frozen=True)
class Pairs:
    """Queries, the documents that belong to them, and rows of hard negatives, shaped (queries, n).

    Behind the documents that belong to a query others may stand, to be negatives.
    """

    queries: Texts
    documents: Texts
    negatives: Integers

    def with_negatives(self, rows: Integers, rng: Generator) -> Integers:
        """The rows, and behind them a hard negative drawn for each."""
        columns = rng.integers(self.negatives.shape[1], size=rows.size)
        return np.concatenate((rows, self.negatives[rows, columns]))


def _contrast(queries: Texts, documents: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of Eq. 2.2 over documents of a batch; the queries' own come first."""
    device = weights.device
    nothing = torch.zeros((), device=device)
    scores = []
    for query in queries:
        tokens, counts = np.unique(query, return_counts=True)
        # (query tokens, documents, places): where a document holds a token of the query.
        same = torch.from_numpy(tokens).to(device)[:, None, None] == documents.to(device)[None]
        largest = torch.where(same, weights[None], nothing).amax(dim=2)
        scores.append((largest * torch.from_numpy(counts).to(device)[:, None]).sum(dim=0))
    targets = torch.arange(len(queries), device=device)
    return torch.nn.functional.cross_entropy(torch.stack(scores), targets)


def train_tildev2(model: Projection, pairs: Pairs, rng: Generator, **schedule: Any) -> list[float]:
    r"""Fine-tune term weights so that a query scores its own document above others of the batch.

    .. math:: L = -\frac1B \sum_b \log \frac{e^{s(q_b, d_b)}}{\sum_{d \in \text{batch}} e^{s(q_b,
    d)}}

    One hard negative of each query joins the batch.

    thesis Eqs. 2.2 and 2.3, section 2.3.1 (triplets).
    """

    def loss_of(rows: Integers) -> torch.Tensor:
        documents = [pairs.documents[row] for row in pairs.with_negatives(rows, rng)]
        inputs = neural.padded(model.tokenizer, documents)
        is_token = inputs["attention_mask"].to(model.device)
        weights = neural.term_weight(model, model.states(inputs)) * is_token
        return _contrast([pairs.queries[row] for row in rows], inputs["input_ids"], weights)

    return _descend(
        [model.bert, model.projection], len(pairs.queries), loss_of, rng, "TILDEv2", **schedule
    )


def train_projection(
    model: Projection, pairs: Pairs, states: States, rng: Generator, **schedule: Any
) -> list[float]:
    """Train TILDEv2's projection alone, on an encoder that is left as it is.

    The loss is `train_tildev2`'s.

    ``states``: of the documents, as `hidden_states` returns them; where a limit cut a document, of
    the cut document.
    """

    def loss_of(rows: Integers) -> torch.Tensor:
        document_rows = pairs.with_negatives(rows, rng)
        longest = max(len(states[row]) for row in document_rows) - 1
        shape = (len(document_rows), longest)
        tokens = np.full(shape, -1, dtype=np.int64)  # -1 is no token of a query
        hidden = np.zeros((*shape, states[0].shape[1]), dtype=np.float32)
        for place, row in enumerate(document_rows):
            size = len(states[row]) - 1
            tokens[place, :size] = pairs.documents[row][:size]
            hidden[place, :size] = states[row][1:]
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
        queries = [pairs.queries[row] for row in rows]
        documents = [pairs.documents[row] for row in pairs.with_negatives(rows, rng)]
        # Each query stands twice: before its own document, and before the negative.
        inputs = neural.padded(model.tokenizer, queries * 2, documents)
        relevant, negative = neural.relevance(model, inputs).chunk(2)
        return -torch.nn.functional.logsigmoid(relevant - negative).mean()

    return _descend(
        [model.bert, model.projection],
        len(pairs.queries),
        loss_of,
        rng,
        "cross-encoder",
        **schedule,
    )
