"""The trained half of TILDE, TILDEv2 and the cross-encoder: checkpoints, self-supervised pairs, training, encoding.

This module needs PyTorch, transformers and tokenizers (``pip install 'equipoise[models]'``); nothing that only replays
recorded scores imports it. Weights come from a folder in safetensors format, never from a pickle.

Training takes pairs of a query and a document that belongs to it, which parts of one paper can be: no relevance
judgement is needed. Given the seed, the number of threads and the versions, it gives the same weights.

References
----------
Zhuang, S. and Zuccon, G. (2021): TILDE. SIGIR. Its bi-directional loss is `train_tilde`'s.
Zhuang, S. and Zuccon, G. (2021): Fast Passage Re-ranking with Contextualized Exact Term Matching and Efficient Passage
Expansion. arXiv:2108.08513.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tqdm import tqdm
from transformers import BertForMaskedLM, BertModel

from equipoise.arrays import Floats

Tokens = NDArray[np.int64]

CLS, SEP = "[CLS]", "[SEP]"


@dataclass(frozen=True)
class Checkpoint:
    """An encoder with a masked-language-model head, its tokeniser, and what identifies it.

    ``model``: where the folder holds no head (as sentence encoders do not), it is drawn at random by the seed, its
    decoder tied to the word embeddings. ``tokenizer``: A WordPiece tokeniser without truncation and padding.
    ``sha256``: of the file of weights.
    """

    model: BertForMaskedLM
    tokenizer: Tokenizer
    sha256: str

    @property
    def vocabulary(self) -> int:
        """Number of tokens of the vocabulary."""
        size: int = self.model.config.vocab_size
        return size


@dataclass(frozen=True)
class TildeV2:
    """TILDEv2's encoder: a BERT and the projection of every token to a scalar (thesis Eq. 2.3, before the ReLU)."""

    bert: BertModel
    projection: torch.nn.Linear
    tokenizer: Tokenizer


@dataclass(frozen=True)
class CrossEncoder:
    """A cross-encoder: a BERT over query and document together, and the projection of [CLS] (thesis Eq. 2.4)."""

    bert: BertModel
    projection: torch.nn.Linear
    tokenizer: Tokenizer


def seeded(seed: int, *, threads: int = 2) -> np.random.Generator:
    """Seed PyTorch, fix its number of threads and its algorithms, and return a NumPy generator of the same seed.

    ``seed``: of both. ``threads``: Sums are ordered by it, so the last digits of weights depend on it.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = (
        False  # a seventh of the time, and nothing here reads such memory
    )
    return np.random.default_rng(seed)


def load_checkpoint(folder: Path) -> Checkpoint:
    """Load a BERT encoder from a local folder, weights in safetensors format only.

    ``folder``: with ``config.json``, ``model.safetensors`` and ``tokenizer.json``. Returns: In evaluation mode.
    """
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"no {name} in the model folder {folder.name}; it needs the weights and the tokeniser"
            )
    model = BertForMaskedLM.from_pretrained(folder, local_files_only=True, use_safetensors=True)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    return Checkpoint(model.eval(), tokenizer, digest)


def tokenise(tokenizer: Tokenizer, texts: Sequence[str], *, limit: int | None = None) -> list[Tokens]:
    """Token ids of texts, without special tokens.

    ``tokenizer``: of the checkpoint. ``texts``: To be tokenised. ``limit``: Only so many first tokens are kept. A
    query has no limit (thesis section 2.1), a document the encoder's. Returns list of ndarray of int, each shaped
    (tokens,).
    """
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [np.asarray(text.ids[:limit], dtype=np.int64) for text in encoded]


def _batch(
    tokenizer: Tokenizer, texts: Sequence[Tokens], seconds: Sequence[Tokens] | None = None
) -> dict[str, torch.Tensor]:
    """Padded ``[CLS] text [SEP]``, or ``[CLS] first [SEP] second [SEP]``, as the encoder takes them."""
    cls, sep = (np.array([tokenizer.token_to_id(mark)], dtype=np.int64) for mark in (CLS, SEP))
    heads = [np.concatenate((cls, text, sep)) for text in texts]
    tails = (
        [np.concatenate((text, sep)) for text in seconds] if seconds is not None else [np.empty(0, int)] * len(heads)
    )
    longest = max(head.size + tail.size for head, tail in zip(heads, tails, strict=True))
    ids, kinds, mask = (np.zeros((len(heads), longest), dtype=np.int64) for _ in range(3))
    for row, (head, tail) in enumerate(zip(heads, tails, strict=True)):
        size = head.size + tail.size
        ids[row, : head.size], ids[row, head.size : size] = head, tail
        kinds[row, head.size : size], mask[row, :size] = 1, 1
    return {
        "input_ids": torch.from_numpy(ids),
        "token_type_ids": torch.from_numpy(kinds),
        "attention_mask": torch.from_numpy(mask),
    }


def _slices(sizes: Sequence[int], batch: int) -> Iterator[NDArray[np.int64]]:
    """Row numbers in batches of similar length, longest first: little padding, and memory runs out at once or never."""
    order = np.argsort(-np.asarray(sizes), kind="stable")
    for start in range(0, len(order), batch):
        yield order[start : start + batch]


def _batches(rows: int, batch: int, epochs: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Shuffled row numbers of every training step; what does not fill a batch at an epoch's end is left out."""
    steps: list[NDArray[np.int64]] = []
    for _ in range(epochs):
        order = rng.permutation(rows)
        steps += [order[start : start + batch] for start in range(0, max(rows - batch + 1, 1), batch)]
    return steps


def _descend(
    modules: torch.nn.ModuleList, losses: Iterator[torch.Tensor], steps: int, rate: float, what: str
) -> list[float]:
    """Minimise with AdamW: linear warm-up over a tenth of the steps, then linear decay; gradients clipped at 1."""
    optimiser = torch.optim.AdamW(modules.parameters(), lr=rate, weight_decay=0.01)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, max(0.0, (steps - step) / max(1, steps - warm)))
    )
    modules.train()
    history: list[float] = []
    for loss in tqdm(losses, total=steps, desc=what, disable=None):
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(modules.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        history.append(float(loss.detach()))
    modules.eval()
    return history


def calibrate_head(
    checkpoint: Checkpoint, vectors: NDArray[np.float32], *texts: Sequence[Tokens], fresh: float | None = None
) -> None:
    """Shift the head's bias until each token is, on average, as likely as it is common: training starts from there.

    ``checkpoint``: Changed in place. ``vectors`` (shaped (documents, hidden)): what the head is to read, of a
    sample of documents. ``*texts``: Token ids of texts that training will ask for. ``fresh``: For a head that came
    without weights: its transformation becomes the identity, scaled by this number.
    """
    size = checkpoint.vocabulary
    shares = [
        np.bincount(np.concatenate([np.unique(text) for text in part]), minlength=size) / len(part) for part in texts
    ]
    share = (np.mean(shares, axis=0) + 1e-5) / (1 + 2e-5)
    head = checkpoint.model.cls.predictions
    with torch.no_grad():
        if fresh is not None:
            torch.nn.init.eye_(head.transform.dense.weight)
            torch.nn.init.zeros_(head.transform.dense.bias)
            head.transform.LayerNorm.weight.fill_(fresh)
            head.transform.LayerNorm.bias.zero_()
        mean = checkpoint.model.cls(torch.from_numpy(vectors)).mean(dim=0)
        head.decoder.bias += torch.from_numpy(np.log(share / (1 - share)).astype(np.float32)) - mean


def _cls_logits(model: BertForMaskedLM, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The head's logits over the vocabulary, on [CLS] alone: the head is the costly part."""
    hidden = model.bert(**inputs).last_hidden_state[:, 0]
    return model.cls(hidden)


def train_tilde(
    checkpoint: Checkpoint,
    queries: Sequence[Tokens],
    documents: Sequence[Tokens],
    rng: np.random.Generator,
    *,
    epochs: int = 5,
    batch: int = 32,
    rate: float = 2e-5,
    limit: int = 254,
    both: bool = True,
    steps: int | None = None,
) -> list[float]:
    r"""Fine-tune a masked-language-model head to tell from a document's [CLS] which tokens its query holds.

    .. math::
        L = -\frac1B \sum_b \Bigl( \sum_{t \in q_b} \log \sigma(z_{bt})
        + \sum_{t \notin q_b} \log(1 - \sigma(z_{bt})) \Bigr)

    ``checkpoint``: Changed in place. ``queries``, ``documents``: Token ids; the i-th query belongs to the i-th
    document, and further documents serve as negatives. ``rng``: Orders the batches. ``epochs``, ``batch``,
    ``rate``: the thesis trains 5 epochs with a rate of 2e-5. ``limit``: Longest document, in tokens. ``both``:
    whether the query also predicts the document's tokens, as in the authors' bi-directional loss. ``steps``: Stop
    after so many steps. Returns: Loss of every step, in nats a document.

    thesis sections 2.2.2 and 2.3.6.
    """
    plan = _batches(len(queries), batch, epochs, rng)[:steps]
    model, tokenizer = checkpoint.model, checkpoint.tokenizer

    def half(sources: Sequence[Tokens], targets: Sequence[Tokens]) -> torch.Tensor:
        logits = _cls_logits(model, _batch(tokenizer, [source[:limit] for source in sources]))
        return _set_loss(logits, targets)

    def losses() -> Iterator[torch.Tensor]:
        for rows in plan:
            asked, told = [queries[row] for row in rows], [documents[row] for row in rows]
            yield (half(told, asked) + half(asked, told)) / 2 if both else half(told, asked)

    return _descend(torch.nn.ModuleList([model]), losses(), len(plan), rate, "TILDE")


def _squash(probability: str) -> Callable[[torch.Tensor], torch.Tensor]:
    if probability == "sigmoid":
        return torch.nn.functional.logsigmoid
    if probability == "softmax":
        return lambda logits: logits.log_softmax(dim=-1)
    raise ValueError(f'probability must be "sigmoid" or "softmax", found {probability!r}')


def log_probabilities(
    checkpoint: Checkpoint,
    documents: Sequence[Tokens],
    *,
    probability: str = "sigmoid",
    batch: int = 16,
    limit: int = 510,
) -> NDArray[np.float32]:
    r"""TILDE's documents: the log-probability of every token of the vocabulary to be asked for.

    .. math:: \log P_\theta(t | d) = \log \sigma(z_t) \quad\text{or}\quad z_t - \log \sum_u e^{z_u}

    ``checkpoint``: Trained, or not (zero-shot). ``documents``: Token ids. ``probability``: Tokens independent of
    each other, as the authors' program and the loss of `train_tilde` have it, or one token drawn from the
    vocabulary. ``batch``, ``limit``: Documents at once, and longest document in tokens. Returns ndarray of float32,
    shaped (documents, vocabulary): In nats.

    thesis Eq. 2.1 and Figure 2.1, left.
    """
    squash = _squash(probability)
    table = np.empty((len(documents), checkpoint.vocabulary), dtype=np.float32)
    cut = [document[:limit] for document in documents]
    with torch.inference_mode(), tqdm(total=len(cut), desc="documents", disable=None) as bar:
        for rows in _slices([text.size for text in cut], batch):
            logits = _cls_logits(checkpoint.model, _batch(checkpoint.tokenizer, [cut[row] for row in rows]))
            table[rows] = squash(logits).numpy()
            bar.update(len(rows))
    return table


def hidden_states(
    checkpoint: Checkpoint, documents: Sequence[Tokens], *, batch: int = 16, limit: int = 510
) -> list[NDArray[np.float32]]:
    """What the encoder, left as it is, makes of documents: to train heads on it without training the encoder.

    ``checkpoint``: the encoder. ``documents``: Token ids. ``batch``, ``limit``: Documents at once, and longest
    document in tokens. Returns list of ndarray of float32, each shaped (1 + tokens, hidden): [CLS] first, then a
    row a token.
    """
    cut = [document[:limit] for document in documents]
    result: list[NDArray[np.float32]] = [np.empty((0, 0), dtype=np.float32)] * len(cut)
    with torch.inference_mode(), tqdm(total=len(cut), desc="documents", disable=None) as bar:
        for rows in _slices([text.size for text in cut], batch):
            states = checkpoint.model.bert(**_batch(checkpoint.tokenizer, [cut[row] for row in rows])).last_hidden_state
            for row, state in zip(rows, states.numpy(), strict=True):
                result[row] = state[: 1 + cut[row].size].copy()
            bar.update(len(rows))
    return result


def _set_loss(logits: torch.Tensor, targets: Sequence[Tokens]) -> torch.Tensor:
    """Binary cross-entropy of which tokens a text holds, in nats a text."""
    wanted = torch.zeros_like(logits)
    for row, target in enumerate(targets):
        wanted[row, torch.from_numpy(np.unique(target))] = 1.0
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, wanted, reduction="sum") / len(targets)


def train_head(
    checkpoint: Checkpoint,
    vectors: NDArray[np.float32],
    targets: Sequence[Tokens],
    rng: np.random.Generator,
    *,
    epochs: int = 20,
    batch: int = 64,
    rate: float = 1e-3,
    steps: int | None = None,
) -> list[float]:
    """Train TILDE's head alone, on vectors of an encoder that is left as it is; the loss is `train_tilde`'s.

    ``checkpoint``: Its head is changed in place (and with it the word embeddings where they are tied: encode
    first). ``vectors`` (shaped (texts, hidden)): what the head reads. ``targets``: Token ids that the head is to
    expect of each vector. ``rng``: Orders the batches. ``steps``: Stop after so many steps. Returns: Loss of every
    step, in nats a text.
    """
    plan = _batches(len(vectors), batch, epochs, rng)[:steps]

    def losses() -> Iterator[torch.Tensor]:
        for rows in plan:
            yield _set_loss(checkpoint.model.cls(torch.from_numpy(vectors[rows])), [targets[row] for row in rows])

    return _descend(torch.nn.ModuleList([checkpoint.model.cls]), losses(), len(plan), rate, "TILDE's head")


def head_log_probabilities(
    checkpoint: Checkpoint, vectors: NDArray[np.float32], *, probability: str = "sigmoid", batch: int = 256
) -> NDArray[np.float32]:
    """Log-probabilities that the head gives every token for each vector.

    ``checkpoint``: with a trained head. ``vectors`` (shaped (texts, hidden)): what the head reads. ``batch``:
    Vectors at once. Returns ndarray of float32, shaped (texts, vocabulary): In nats.
    """
    squash = _squash(probability)
    table = np.empty((len(vectors), checkpoint.vocabulary), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(vectors), batch):
            logits = checkpoint.model.cls(torch.from_numpy(vectors[start : start + batch]))
            table[start : start + batch] = squash(logits).numpy()
    return table


def new_tildev2(checkpoint: Checkpoint) -> TildeV2:
    """TILDEv2 over a checkpoint's encoder: the projection is drawn at random, with a bias of 1, lest a ReLU be dead."""
    projection = torch.nn.Linear(checkpoint.model.config.hidden_size, 1)
    torch.nn.init.normal_(projection.weight, std=0.02)
    torch.nn.init.ones_(projection.bias)
    return TildeV2(checkpoint.model.bert, projection, checkpoint.tokenizer)


def _weights(model: TildeV2, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """ReLU of the projection of every place, shaped (documents, places); 0 where there is padding."""
    hidden = model.bert(**inputs).last_hidden_state
    return torch.relu(model.projection(hidden)).squeeze(-1) * inputs["attention_mask"]


def _match(queries: Sequence[Tokens], documents: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Eq. 2.2 for all pairs of a batch, shaped (queries, documents), through which gradients flow."""
    rows = []
    for query in queries:
        tokens, counts = np.unique(query, return_counts=True)
        same = torch.from_numpy(tokens)[:, None, None] == documents[None]
        best = torch.where(same, weights[None], torch.zeros(())).amax(dim=2)
        rows.append((best * torch.from_numpy(counts)[:, None]).sum(dim=0))
    return torch.stack(rows)


def train_tildev2(
    model: TildeV2,
    queries: Sequence[Tokens],
    documents: Sequence[Tokens],
    negatives: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    epochs: int = 5,
    batch: int = 16,
    rate: float = 5e-6,
    limit: int = 254,
    steps: int | None = None,
) -> list[float]:
    r"""Fine-tune term weights so that a query scores its own document above the others of the batch.

    .. math:: L = -\frac1B \sum_b \log \frac{e^{s(q_b, d_b)}}{\sum_{d \in \text{batch}} e^{s(q_b, d)}}

    ``model``: Changed in place. ``queries``, ``documents``: Token ids; the i-th query belongs to the i-th document,
    and further documents serve as negatives. ``negatives`` (shaped (queries, n)): row numbers of hard negatives of
    each query; one of them joins the batch. ``rng``: Orders the batches and draws the negatives. ``epochs``,
    ``batch``, ``rate``: the thesis trains 5 epochs with a rate of 5e-6. ``limit``: Longest document, in tokens.
    ``steps``: Stop after so many steps. Returns: Loss of every step, in nats.

    thesis Eqs. 2.2 and 2.3, section 2.3.1 (triplets).
    """
    plan = _batches(len(queries), batch, epochs, rng)[:steps]

    def losses() -> Iterator[torch.Tensor]:
        for rows in plan:
            hard = negatives[rows, rng.integers(negatives.shape[1], size=rows.size)]
            inputs = _batch(model.tokenizer, [documents[row][:limit] for row in np.concatenate((rows, hard))])
            scores = _match([queries[row] for row in rows], inputs["input_ids"], _weights(model, inputs))
            yield torch.nn.functional.cross_entropy(scores, torch.arange(rows.size))

    return _descend(torch.nn.ModuleList([model.bert, model.projection]), losses(), len(plan), rate, "TILDEv2")


def train_projection(
    model: TildeV2,
    queries: Sequence[Tokens],
    documents: Sequence[Tokens],
    states: Sequence[NDArray[np.float32]],
    negatives: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    epochs: int = 5,
    batch: int = 32,
    rate: float = 1e-3,
    steps: int | None = None,
) -> list[float]:
    """Train TILDEv2's projection alone, on an encoder that is left as it is; the loss is `train_tildev2`'s.

    ``model``: Its projection is changed in place. ``queries``, ``documents``: Token ids; the i-th query belongs to
    the i-th document. ``states`` (shaped (1 + tokens, hidden)): of the documents, from `hidden_states`; where a
    limit cut a document, the cut document. ``negatives`` (shaped (queries, n)): row numbers of hard negatives of
    each query; one of them joins the batch. ``rng``: Orders the batches and draws the negatives. ``steps``: Stop
    after so many steps. Returns: Loss of every step, in nats.
    """
    plan = _batches(len(queries), batch, epochs, rng)[:steps]

    def losses() -> Iterator[torch.Tensor]:
        for rows in plan:
            both = np.concatenate((rows, negatives[rows, rng.integers(negatives.shape[1], size=rows.size)]))
            longest = max(len(states[row]) for row in both) - 1
            tokens = np.full((len(both), longest), -1, dtype=np.int64)  # -1 is no token of a query
            hidden = np.zeros((len(both), longest, states[0].shape[1]), dtype=np.float32)
            for place, row in enumerate(both):
                size = len(states[row]) - 1
                tokens[place, :size], hidden[place, :size] = documents[row][:size], states[row][1:]
            weights = torch.relu(model.projection(torch.from_numpy(hidden))).squeeze(-1)
            scores = _match([queries[row] for row in rows], torch.from_numpy(tokens), weights)
            yield torch.nn.functional.cross_entropy(scores, torch.arange(rows.size))

    return _descend(torch.nn.ModuleList([model.projection]), losses(), len(plan), rate, "TILDEv2's projection")


def projected(model: TildeV2, states: Sequence[NDArray[np.float32]]) -> list[Floats]:
    """Weights of every token of documents whose hidden states are known, as `place_weights` gives them.

    ``model``: with a trained projection. ``states`` (shaped (1 + tokens, hidden)): From `hidden_states`. Returns
    list of ndarray, each shaped (tokens,): At least 0.
    """
    flat = np.concatenate([state[1:] for state in states])
    with torch.inference_mode():
        weights = torch.relu(model.projection(torch.from_numpy(flat))).squeeze(-1).numpy().astype(np.float64)
    return np.split(weights, np.cumsum([len(state) - 1 for state in states])[:-1])


def place_weights(model: TildeV2, documents: Sequence[Tokens], *, batch: int = 16, limit: int = 510) -> list[Floats]:
    r"""TILDEv2's documents: one weight a token.

    .. math:: v_j^d = \text{ReLU}(W_{proj} \text{BERT}(d_j) + b)

    ``model``: Trained. ``documents``: Token ids, expanded or not. ``batch``, ``limit``: Documents at once, and
    longest document in tokens. Returns list of ndarray, each shaped (tokens,): At least 0, for the first `limit`
    tokens of each document.

    thesis Eq. 2.3 and Figure 2.1, right.
    """
    cut = [document[:limit] for document in documents]
    result: list[Floats] = [np.empty(0)] * len(cut)
    with torch.inference_mode(), tqdm(total=len(cut), desc="documents", disable=None) as bar:
        for rows in _slices([text.size for text in cut], batch):
            weights = _weights(model, _batch(model.tokenizer, [cut[row] for row in rows])).numpy().astype(np.float64)
            for row, values in zip(rows, weights, strict=True):
                result[row] = values[1 : 1 + cut[row].size]  # place 0 is [CLS]
            bar.update(len(rows))
    return result


def new_cross_encoder(checkpoint: Checkpoint) -> CrossEncoder:
    """A cross-encoder over a checkpoint's encoder, its projection drawn at random."""
    projection = torch.nn.Linear(checkpoint.model.config.hidden_size, 1)
    torch.nn.init.normal_(projection.weight, std=0.02)
    torch.nn.init.zeros_(projection.bias)
    return CrossEncoder(checkpoint.model.bert, projection, checkpoint.tokenizer)


def _relevance(model: CrossEncoder, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return model.projection(model.bert(**inputs).last_hidden_state[:, 0]).squeeze(-1)


def train_cross_encoder(
    model: CrossEncoder,
    queries: Sequence[Tokens],
    documents: Sequence[Tokens],
    negatives: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    epochs: int = 1,
    batch: int = 8,
    rate: float = 2e-5,
    limit: int = 254,
    steps: int | None = None,
) -> list[float]:
    r"""Fine-tune a cross-encoder to score a query's own document above a hard negative.

    .. math:: L = -\frac1B \sum_b \log \sigma \bigl( s(q_b, d_b) - s(q_b, d_b^-) \bigr)

    ``model``: Changed in place. ``queries``, ``documents``: Token ids; the i-th query belongs to the i-th document,
    and further documents serve as negatives. ``negatives`` (shaped (queries, n)): row numbers of hard negatives of
    each query; one of them is drawn a step. ``rng``: Orders the batches and draws the negatives. ``limit``: Longest
    query and longest document, in tokens. ``steps``: Stop after so many steps. Returns: Loss of every step, in
    nats.

    thesis section 2.2.4.
    """
    plan = _batches(len(queries), batch, epochs, rng)[:steps]

    def losses() -> Iterator[torch.Tensor]:
        for rows in plan:
            hard = negatives[rows, rng.integers(negatives.shape[1], size=rows.size)]
            asked = [queries[row][:limit] for row in rows] * 2
            told = [documents[row][:limit] for row in np.concatenate((rows, hard))]
            own, other = _relevance(model, _batch(model.tokenizer, asked, told)).chunk(2)
            yield -torch.nn.functional.logsigmoid(own - other).mean()

    return _descend(torch.nn.ModuleList([model.bert, model.projection]), losses(), len(plan), rate, "cross-encoder")


def relevance_scores(
    model: CrossEncoder, queries: Sequence[Tokens], documents: Sequence[Tokens], *, batch: int = 16, limit: int = 254
) -> Floats:
    r"""Cross-encoder scores of pairs.

    .. math:: s(q, d) = \text{BERT}([CLS] q [SEP] d [SEP])_{[CLS]} \cdot W_{proj}

    ``model``: Trained. ``queries``, ``documents``: Token ids of the i-th pair's two texts. ``batch``, ``limit``:
    Pairs at once, and longest query and document in tokens: 2 * 254 + 3 special tokens fit a BERT's 512 places.
    Returns ndarray, shaped (pairs,).

    thesis Eq. 2.4.
    """
    if len(queries) != len(documents):
        raise ValueError(f"{len(queries)} queries and {len(documents)} documents: one of each a pair")
    asked, told = [text[:limit] for text in queries], [text[:limit] for text in documents]
    scores = np.empty(len(asked))
    with torch.inference_mode(), tqdm(total=len(asked), desc="pairs", disable=None) as bar:
        for rows in _slices([a.size + b.size for a, b in zip(asked, told, strict=True)], batch):
            inputs = _batch(model.tokenizer, [asked[row] for row in rows], [told[row] for row in rows])
            scores[rows] = _relevance(model, inputs).numpy().astype(np.float64)
            bar.update(len(rows))
    return scores
