"""Trainable rankers of chapter 2: TILDE, TILDEv2, a cross-encoder, SPLADE zero-shot.

Documents and queries are token ids, without special tokens. ``forward`` returns the loss of a batch
of queries, their documents, and a negative each, as `transformers.Trainer` needs it.

References
----------
Zhuang, S. and Zuccon, G. (2021): TILDE: Term Independent Likelihood moDEl for Passage Re-ranking.
SIGIR. Zhuang, S. and Zuccon, G. (2021): Fast Passage Re-ranking with Contextualized Exact Term
Matching and Efficient Passage Expansion. arXiv:2108.08513.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, logsigmoid

from equipoise_compendium import project
from equipoise_studies.query_by_example.data import System

EXAMPLE = (
    "Ranking papers by example: a seed paper is the query, "
    "and terms it shares with other papers are weighted."
)
"""Our own text, whose term weights are recorded for Figure 2.1."""

DOCUMENT_MARKER, QUERY_MARKER = 1, 2
"""Tokens [unused0] and [unused1] of BERT's vocabulary: the authors' [DOC] and [QRY]."""

BATCH = 16  # texts encoded at once
LONGEST = 510  # tokens that a BERT takes between [CLS] and [SEP]

Ids = NDArray[np.int64]
"""Token ids of a text, without special tokens."""


class Ranker(torch.nn.Module):
    """A BERT with its tokeniser; the classes below add a head, a loss and scores."""

    def __init__(self, system: System, folder: Path, device: str) -> None:
        super().__init__()
        self.system = system
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        model = transformers.AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True)
        self.bert, self.head = model.bert, model.cls
        if system.encoder == "frozen":
            # The head's decoder shares its weights with the embeddings, and is still trained.
            decoder = self.head.predictions.decoder
            decoder.weight = torch.nn.Parameter(decoder.weight.detach().clone())
            self.bert.requires_grad_(requires_grad=False)
        self.unasked = np.array([], dtype=np.int64)
        if system.input == "authors":
            self.unasked = unasked_tokens(self.tokenizer.get_vocab())
        self.to(device)

    def ids(self, texts: Sequence[str], limit: int | None = None) -> list[Ids]:
        """Cut texts into token ids, at most so many each."""
        encoded = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [np.asarray(text.ids[: limit or None], dtype=np.int64) for text in encoded]

    def asked(self, texts: Sequence[Ids]) -> list[Ids]:
        """Remove tokens that the authors' program removes from queries."""
        return [text[~np.isin(text, self.unasked)] for text in texts]

    def states(
        self, *parts: Sequence[Ids], marker: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode ``[CLS] text [SEP]``, or ``[CLS] first [SEP] second [SEP]``.

        ``marker`` replaces [CLS]. Returns states, shape (texts, tokens, width), and token ids, with
        -1 for padding and special tokens, shape (texts, tokens).
        """
        cls, sep = self.tokenizer.token_to_id("[CLS]"), self.tokenizer.token_to_id("[SEP]")
        rows, kinds, masks, tokens = [], [], [], []
        for texts in zip(*parts, strict=True):
            row, kind, own = [cls if marker is None else marker], [0], [-1]
            for place, text in enumerate(texts):
                row += [*text.tolist(), sep]
                kind += [place] * (len(text) + 1)
                own += [*text.tolist(), -1]
            rows.append(torch.tensor(row))
            kinds.append(torch.tensor(kind))
            masks.append(torch.ones(len(row), dtype=torch.int64))
            tokens.append(torch.tensor(own))
        pad, device = torch.nn.utils.rnn.pad_sequence, self.bert.device
        inputs = {
            "input_ids": pad(rows, batch_first=True).to(device),
            "token_type_ids": pad(kinds, batch_first=True).to(device),
            "attention_mask": pad(masks, batch_first=True).to(device),
        }
        # bfloat16 for the encoder alone; heads and losses stay in single precision.
        is_half = self.system.precision == "bfloat16"
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_half):
            states = self.bert(**inputs).last_hidden_state.float()
        return states, pad(tokens, batch_first=True, padding_value=-1).to(device)

    def prepare(self, texts: Sequence[Ids]) -> None:
        """Make the head ready for training."""

    def weights(self, documents: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Weigh the tokens of each document."""
        raise NotImplementedError

    def scores(self, queries: Sequence[Ids], documents: Sequence[Ids]) -> NDArray[np.float64]:
        """Score pairs by TILDEv2's Eq. 2.2: the largest weight of each token times its count."""
        scores = np.zeros(len(queries))
        texts, places = distinct(documents)
        weights = self.weights(texts)
        for row, (query, place) in enumerate(zip(queries, places, strict=True)):
            largest = np.zeros(self.bert.config.vocab_size)
            np.maximum.at(largest, texts[place], weights[place])
            scores[row] = largest[query].sum()
        return scores

    def example(self) -> list[tuple[str, float]]:
        """Return tokens of our example and their weights."""
        (tokens,) = self.ids([EXAMPLE])
        (weights,) = self.weights([tokens])
        return [
            (self.tokenizer.id_to_token(int(token)), float(weight))
            for token, weight in zip(tokens, weights, strict=True)
        ]


class Tilde(Ranker):
    """TILDE: a document's [CLS] gives every token of the vocabulary a probability (Eq. 2.1)."""

    def logits(self, texts: Sequence[Ids], marker: int) -> torch.Tensor:
        """Encode texts; the head reads [CLS], the authors' marker, or the mean of the tokens."""
        is_authors = self.system.input == "authors"
        states, tokens = self.states(texts, marker=marker if is_authors else None)
        if self.system.encoder == "trained":
            return self.head(states[:, 0])
        is_token = (tokens >= 0).unsqueeze(-1)
        return self.head((states * is_token).sum(dim=1) / is_token.sum(dim=1))

    def forward(
        self, queries: list[Ids], documents: list[Ids], negatives: list[Ids]
    ) -> dict[str, torch.Tensor]:
        """Predict which tokens the other text has, in both directions, as in the authors' loss."""
        del negatives
        losses = []
        for sources, marker, targets in (
            (documents, DOCUMENT_MARKER, queries),
            ([query[:LONGEST] for query in queries], QUERY_MARKER, documents),
        ):
            logits = self.logits(sources, marker)
            membership, weight = torch.zeros_like(logits), torch.ones_like(logits[0])
            for row, target in enumerate(targets):
                membership[row, torch.from_numpy(target).to(logits.device)] = 1.0
            weight[torch.from_numpy(self.unasked).to(logits.device)] = 0.0
            loss = binary_cross_entropy_with_logits(
                logits, membership, weight=weight, reduction="sum"
            )
            losses.append(loss / len(targets))
        return {"loss": (losses[0] + losses[1]) / 2}

    @torch.inference_mode()
    def log_probabilities(self, documents: Sequence[Ids]) -> NDArray[np.float32]:
        """Return the log-probability of each token, shape (documents, vocabulary)."""
        table = np.empty((len(documents), self.bert.config.vocab_size), dtype=np.float32)
        for rows in batches(documents):
            logits = self.logits([documents[row] for row in rows], DOCUMENT_MARKER)
            table[rows] = logsigmoid(logits).cpu().numpy()
        return table

    def scores(self, queries: Sequence[Ids], documents: Sequence[Ids]) -> NDArray[np.float64]:
        """Sum the log-probabilities of the query's tokens."""
        texts, places = distinct(documents)
        table = self.log_probabilities(texts).astype(np.float64)
        pairs = zip(places, queries, strict=True)
        return np.array([table[place][query].sum() for place, query in pairs])

    @torch.inference_mode()
    def prepare(self, texts: Sequence[Ids]) -> None:
        """Shift the head's bias until the mean probability of each token equals its frequency.

        A checkpoint without a head gets the identity, scaled, in place of its transformation.
        """
        if self.system.head == "own":
            return
        counts = np.zeros(self.bert.config.vocab_size)
        for text in texts:
            counts[np.unique(text)] += 1
        share = (counts / len(texts) + 1e-5) / (1 + 2e-5)  # away from 0 and 1
        head = self.head.predictions
        if self.system.head == "identity":
            torch.nn.init.eye_(head.transform.dense.weight)
            torch.nn.init.zeros_(head.transform.dense.bias)
            head.transform.LayerNorm.weight.fill_(0.1)
            head.transform.LayerNorm.bias.zero_()
        sample = texts[::7][:2000]
        logits = [
            self.logits([sample[row] for row in rows], DOCUMENT_MARKER) for rows in batches(sample)
        ]
        log_odds = torch.from_numpy(np.log(share / (1 - share)).astype(np.float32))
        head.decoder.bias += log_odds.to(self.bert.device) - torch.cat(logits).mean(dim=0)

    def example(self) -> list[tuple[str, float]]:
        """Return the 40 most probable tokens of our example."""
        (likelihoods,) = self.log_probabilities(self.ids([EXAMPLE]))
        top = np.argsort(-likelihoods, kind="stable")[:40]
        return [
            (self.tokenizer.id_to_token(int(token)), float(likelihoods[token])) for token in top
        ]


class Splade(Ranker):
    """Zero-shot weights of a document's own tokens, as SPLADE's head gives them."""

    @torch.inference_mode()
    def weights(self, documents: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Weigh the tokens of each document."""
        result: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(documents)
        for rows in batches(documents):
            states, _ = self.states([documents[row] for row in rows])
            for row, state in zip(rows, self.head.predictions.transform(states), strict=True):
                tokens = torch.from_numpy(documents[row]).to(state.device)
                decoder = self.head.predictions.decoder
                logits = state[: len(tokens) + 2] @ decoder.weight[tokens].T + decoder.bias[tokens]
                result[row] = torch.log1p(torch.relu(logits.amax(dim=0))).cpu().numpy()
        return result


class TildeV2(Ranker):
    """TILDEv2: each token of the document gets a weight (Eqs. 2.2 and 2.3)."""

    def __init__(self, system: System, folder: Path, device: str) -> None:
        super().__init__(system, folder, device)
        self.projection = torch.nn.Linear(self.bert.config.hidden_size, 1)
        torch.nn.init.normal_(self.projection.weight, std=0.02)
        # A bias of 1 keeps the ReLU of TILDEv2 alive.
        torch.nn.init.constant_(self.projection.bias, float(system.kind == "tildev2"))
        if not system.training:
            tensors = load_file(folder / "model.safetensors")
            # The authors' files call it by several names; its shape identifies it.
            (name,) = [name for name, value in tensors.items() if value.shape[:-1] == (1,)]
            bias = tensors[name.replace("weight", "bias")]
            self.projection.load_state_dict({"weight": tensors[name], "bias": bias})
        self.projection.to(device)

    def token_weights(self, documents: Sequence[Ids]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the weight of each place, 0 for special tokens, and the token ids."""
        states, tokens = self.states(documents)
        return torch.relu(self.projection(states)).squeeze(-1) * (tokens >= 0), tokens

    def forward(
        self, queries: list[Ids], documents: list[Ids], negatives: list[Ids]
    ) -> dict[str, torch.Tensor]:
        """Score a query's own document above the others of the batch, and hard negatives."""
        weights, tokens = self.token_weights([*documents, *negatives])
        rows = []
        for query in queries:
            terms, counts = np.unique(query, return_counts=True)
            # (query tokens, documents, places): where a document contains a token of the query.
            same = torch.from_numpy(terms).to(tokens.device)[:, None, None] == tokens[None]
            largest = (weights[None] * same).amax(dim=2)
            rows.append((largest * torch.from_numpy(counts).to(tokens.device)[:, None]).sum(dim=0))
        targets = torch.arange(len(queries), device=weights.device)
        return {"loss": cross_entropy(torch.stack(rows), targets)}

    @torch.inference_mode()
    def weights(self, documents: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Weigh the tokens of each document."""
        result: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(documents)
        for rows in batches(documents):
            weights, _ = self.token_weights([documents[row] for row in rows])
            for row, values in zip(rows, weights.cpu().numpy(), strict=True):
                result[row] = values[1 : 1 + len(documents[row])]  # place 0 is [CLS]
        return result


class CrossEncoder(TildeV2):
    """A cross-encoder: [CLS] of query and document together gives the score (Eq. 2.4)."""

    def relevance(self, queries: Sequence[Ids], documents: Sequence[Ids]) -> torch.Tensor:
        """Score pairs that fit into a BERT."""
        states, _ = self.states(queries, documents)
        return self.projection(states[:, 0]).squeeze(-1)

    def forward(
        self, queries: list[Ids], documents: list[Ids], negatives: list[Ids]
    ) -> dict[str, torch.Tensor]:
        """Score a query's own document above a hard negative."""
        relevant, other = self.relevance(queries * 2, [*documents, *negatives]).chunk(2)
        return {"loss": -logsigmoid(relevant - other).mean()}

    @torch.inference_mode()
    def scores(self, queries: Sequence[Ids], documents: Sequence[Ids]) -> NDArray[np.float64]:
        """Score pairs, with both texts cut so that they fit into 512 tokens."""
        limit = min(self.system.length, 254)
        scores = np.empty(len(queries))
        for rows in batches(documents):
            batch = [[texts[row][:limit] for row in rows] for texts in (queries, documents)]
            scores[rows] = self.relevance(*batch).cpu().numpy()
        return scores


KINDS = {"tilde": Tilde, "splade": Splade, "tildev2": TildeV2, "cross-encoder": CrossEncoder}


def distinct(texts: Sequence[Ids]) -> tuple[list[Ids], list[int]]:
    """Return distinct texts, and the position of each text among them."""
    place_of: dict[bytes, int] = {}
    unique, places = [], []
    for text in texts:
        key = text.tobytes()
        if key not in place_of:
            place_of[key] = len(unique)
            unique.append(text)
        places.append(place_of[key])
    return unique, places


def batches(texts: Sequence[Ids]) -> Iterator[NDArray[np.intp]]:
    """Yield row numbers of texts of similar length, the longest first."""
    order = np.argsort([-len(text) for text in texts], kind="stable")
    for start in range(0, len(order), BATCH):
        yield order[start : start + BATCH]


def unasked_tokens(vocabulary: dict[str, int]) -> Ids:
    """Return the tokens that the authors' TILDE removes from queries.

    These are stop words, symbols (tokens with other signs than Latin letters, digits, ``_`` and
    ``-``), and the plural's s.
    """
    path = project.data("studies", "query_by_example", "stop-words.txt")
    lines = path.read_text(encoding="utf-8").splitlines()
    unasked = {vocabulary[line] for line in lines if line in vocabulary}
    for piece, number in vocabulary.items():
        continues_word = piece.startswith("#") and len(piece) > 1
        if piece == "##s" or not (continues_word or re.fullmatch(r"[A-Za-z0-9_-]*", piece)):
            unasked.add(number)
    return np.array(sorted(unasked), dtype=np.int64)
