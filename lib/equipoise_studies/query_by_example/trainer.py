"""Train the rankers of thesis chapter 2 and score with them: one system with one seed at a time.

Needs PyTorch (``pip install '.[models]'``); only `record` imports it, when a step runs. The
weights after each stage are kept in the folder of work, so that systems which share a stage share
its training too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.random import Generator
from safetensors.torch import load_model, save_model

from equipoise.arrays import Floats, Integers
from equipoise.files import read_text
from equipoise_compendium import project
from equipoise_compendium.writing import staging, write_files
from equipoise_studies.query_by_example import neural, tilde, training
from equipoise_studies.query_by_example.data import PAIR, QueryByExample, text_of, without_reversed
from equipoise_studies.query_by_example.self_supervision import hard_negatives, training_papers
from equipoise_studies.query_by_example.study import Part, Stage, Study
from equipoise_studies.systems import encoders, rankers
from equipoise_studies.systems.encoders import Floats32

EXAMPLE = (
    "Ranking papers by example: a seed paper is the query, "
    "and terms it shares with other papers are weighted."
)
"""Our own text, whose term weights are recorded for Figure 2.1."""

DOCUMENT_MARKER, QUERY_MARKER = 1, 2
"""Tokens [unused0] and [unused1] of BERT's vocabulary: the authors' [DOC] and [QRY]."""

CHUNK = 2000
"""Documents whose probabilities of all tokens are in memory at once."""


def stop_words() -> list[str]:
    """The authors' stop words."""
    path = project.data("studies", "query_by_example", "stop-words.txt")
    lines = read_text(path).splitlines()
    return [line for line in lines if line and not line.startswith("#")]


class Trainer:
    """What a system with a seed scores, and what was measured on the way.

    ``states``: those of frozen encoders, which trainers share.
    """

    def __init__(
        self,
        study: Study,
        dataset: QueryByExample,
        name: str,
        seed: int,
        models: Path,
        work: Path,
        states: dict[bytes, Any],
    ) -> None:
        self.study, self.dataset, self.seed = study, dataset, seed
        self.models, self.work = models, work
        self.states = states
        self.name, self.system = name, study.systems[name]
        self.folder = models / self.system.model
        self.texts = text_of(dataset.papers)
        self.loss: dict[str, list[float]] = {}
        self.steps: dict[str, int] = {}
        self.added: list[float] = []
        self.example: list[tuple[int, str, float]] = []

    def run(self) -> tuple[pd.DataFrame, dict[str, Any], pd.DataFrame]:
        """Scores (``task, query, document, score``), what was measured, and the example."""
        parts = self.study.parts(self.dataset, self.system, self.seed)
        # No part is scored by what was trained on its judgements.
        scores = [self._scored(part) for part in parts]
        measured = {"steps": self.steps, "loss": self.loss}
        if self.added:
            measured["terms added"] = round(float(np.mean(self.added)), 2)
        example = pd.DataFrame(self.example, columns=["place", "token", "weight"])
        return pd.concat(scores, ignore_index=True), measured, example

    # --- token ids

    def _begin(self) -> None:
        """Begin from the checkpoint as it comes; what is drawn depends on the seed alone."""
        neural.seeded(self.seed * 1000, threads=self.study.threads)
        device, precision = self.study.device, self.system.precision
        self.checkpoint = neural.load_checkpoint(self.folder, device=device, precision=precision)
        self.unasked = np.empty(0, dtype=np.int64)
        if self.system.input == "authors":
            vocabulary = self.checkpoint.tokenizer.get_vocab()
            self.unasked = tilde.unasked_tokens(vocabulary, stop_words())
        self.projected: Any = None
        if self.system.kind in ("tildev2", "cross-encoder"):
            bias = 1.0 if self.system.kind == "tildev2" else 0.0
            self.projected = neural.with_projection(self.checkpoint, bias=bias)
            if not self.system.training:
                weights = neural.own_projection(self.folder / "model.safetensors")
                self.projected.projection.load_state_dict(weights)

    def _ids(self, names: Sequence[str], limit: int | None = None) -> list[Any]:
        """Token ids of papers."""
        texts = list(self.texts[list(names)])
        return neural.tokenise(self.checkpoint.tokenizer, texts, limit=limit)

    def _asked(self, texts: Sequence[Any]) -> list[Any]:
        """Token ids without those that documents are not asked for."""
        return [text[~np.isin(text, self.unasked)] for text in texts]

    # --- training

    def _trained(self, part: Part) -> None:
        """Leave the weights after the last stage in place, trained now or kept from before."""
        self._begin()
        stages = self.system.training
        for number, stage in enumerate(stages):
            path = self._weights_path(stages[: number + 1], part)
            # A stage that was stopped goes on from here.
            half_way = path.with_suffix(".pt")
            # A stage draws the same whether the one before it was trained now or read.
            rng = np.random.default_rng([self.seed, number])
            torch.manual_seed(self.seed * 1000 + number)
            if path.is_file():
                load_model(self._module(), path)
                note = json.loads(path.with_suffix(".json").read_text())
            else:
                losses = self._learn(stage, part, rng, half_way, is_first=number == 0)
                tenth = max(1, len(losses) // 10)
                mean_first, mean_last = np.mean(losses[:tenth]), np.mean(losses[-tenth:])
                loss = [round(float(mean_first), 4), round(float(mean_last), 4)]
                note = {"steps": len(losses), "loss": loss}
                # The weights last: where they are, the stage is not trained again.
                write_files({path.with_suffix(".json"): json.dumps(note)})
                with staging(path) as staged:
                    save_model(self._module(), staged)
                    staged.replace(path)
            half_way.unlink(missing_ok=True)
            self.steps[stage.pairs], self.loss[stage.pairs] = note["steps"], note["loss"]

    def _module(self) -> Any:
        """What training changes."""
        is_frozen = self.system.encoder == "frozen"
        if self.projected is None and is_frozen:
            return self.checkpoint.model.cls
        if self.projected is None:
            return self.checkpoint.model
        modules = [self.projected.projection]
        if not is_frozen:
            modules.append(self.projected.bert)
        return torch.nn.ModuleList(modules)

    def _weights_path(self, stages: Sequence[Stage], part: Part) -> Path:
        """Where the weights after these stages are kept: named by all that they follow from."""
        system = asdict(self.system) | {"training": [asdict(stage) for stage in stages]}
        shared = ("kind", "model", "training", "encoder", "head", "precision", "input")
        basis: dict[str, Any] = {key: system[key] for key in shared}
        basis["seed"] = self.seed
        basis["weights"] = project.sha256(self.folder / "model.safetensors")
        if any(stage.pairs == "judgements" for stage in stages):
            basis["queries"] = part.trained.to_numpy().tolist()
            basis["expanded"] = [self.system.expanded_by, self.system.terms]
        text = json.dumps(basis, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.work.mkdir(parents=True, exist_ok=True)
        # No name of the system: systems that share stages share the weights.
        return self.work / f"weights-{self.system.kind}-{digest}.safetensors"

    def _learn(
        self, stage: Stage, part: Part, rng: Generator, half_way: Path, *, is_first: bool
    ) -> list[float]:
        """Train one stage, or go on with it; returns the loss of every step."""
        schedule: dict[str, Any] = {
            "checkpoint": half_way,
            "epochs": stage.epochs,
            "batch": stage.batch,
            "rate": stage.rate,
            "optimiser": stage.optimiser,
        }
        if stage.pairs == "judgements":
            pairs = self._judged_pairs(stage, part, rng)
        else:
            pairs = self._unjudged_pairs(stage)
        is_frozen = self.system.encoder == "frozen"
        if self.system.kind == "cross-encoder":
            return training.train_cross_encoder(self.projected, pairs, rng, **schedule)
        if self.system.kind == "tildev2" and is_frozen:
            states = self._states(pairs.documents)
            return training.train_projection(self.projected, pairs, states, rng, **schedule)
        if self.system.kind == "tildev2":
            return training.train_tildev2(self.projected, pairs, rng, **schedule)

        # TILDE: its head is made ready before the first stage, unless it comes with one.
        queries, documents = pairs.queries, pairs.documents[: len(pairs.queries)]
        calibrated = is_first and self.system.head != "own"
        if is_frozen:
            sources, targets = documents, queries
            if stage.pairs == "halves":  # either half is expected from the other
                sources, targets = [*documents, *queries], [*queries, *documents]
            vectors = self._vectors(sources)
            if calibrated:
                self._calibrate(vectors[::7], targets)
            return training.train_head(self.checkpoint, vectors, targets, rng, **schedule)
        if calibrated:
            sample = [*documents, *queries][::7]
            states = neural.hidden_states(self.checkpoint, sample)
            self._calibrate(np.stack([state[0] for state in states]), [*queries, *documents])
        if self.system.input == "authors":
            schedule["markers"] = (DOCUMENT_MARKER, QUERY_MARKER)
            schedule["unasked"] = self.unasked
        return training.train_tilde(self.checkpoint, queries, documents, rng, **schedule)

    def _calibrate(self, vectors: Floats32, targets: Sequence[Any]) -> None:
        """Make TILDE's head ready, from the identity where the checkpoint has none."""
        fresh = 0.1 if self.system.head == "identity" else None
        training.calibrate_head(self.checkpoint, vectors, targets, fresh=fresh)

    def _unjudged_pairs(self, stage: Stage) -> training.Pairs:
        """Titles and abstracts, or halves, of papers that are no query."""
        # The same papers for every seed of training, so that seeds differ by training alone.
        papers, _ = training_papers(self.dataset, seed=0)
        papers = papers.head(stage.papers)
        negatives = hard_negatives(papers["title"].tolist(), papers["abstract"].tolist())
        if stage.pairs == "titles":
            tokenizer, limit = self.checkpoint.tokenizer, stage.length
            titles = neural.tokenise(tokenizer, papers["title"].tolist(), limit=limit)
            abstracts = neural.tokenise(tokenizer, papers["abstract"].tolist(), limit=limit)
            return training.Pairs(titles, abstracts, negatives)
        first_halves, second_halves = [], []
        for text in self._ids(papers["document"]):
            first_half, second_half = np.array_split(text[: 2 * stage.length], 2)
            first_halves.append(first_half)
            second_halves.append(second_half)
        return training.Pairs(first_halves, second_halves, negatives)

    def _judged_pairs(self, stage: Stage, part: Part, rng: Generator) -> training.Pairs:
        """Each relevant paper with its query, as often as negatives are drawn to stand against it.

        A negative is a paper judged not relevant to the query.

        TILDE learns from relevant papers alone, each once. thesis section 2.3.1.
        """
        judged = self.dataset.judgements.merge(part.trained)
        if not self.study.collection.trained_on:
            judged = without_reversed(judged, self.dataset.judgements.merge(part.scored))
        is_relevant = judged["grade"] >= self.study.collection.relevant
        pools = {}
        for key, candidates in judged[~is_relevant].groupby(["task", "query"]):
            pools[key] = candidates["document"].to_numpy()
        times = 1 if self.system.kind == "tilde" else stage.negatives

        queries, documents, negatives = [], [], []
        for row in judged[is_relevant].itertuples(index=False):
            if (row.task, row.query) not in pools:  # nothing to stand against it
                continue
            for _ in range(times):
                queries.append(row.query)
                documents.append(row.document)
                negatives.append(rng.choice(pools[row.task, row.query]))
        # A cross-encoder reads the query too, within its limit.
        limit = stage.length if self.system.kind == "cross-encoder" else stage.query_length
        query_ids = self._ids(queries, limit or None)
        if self.system.kind == "tildev2":
            query_ids = self._asked(query_ids)
        return training.Pairs(
            query_ids,
            self._documents([*documents, *negatives], part, stage.length),
            np.arange(len(queries), 2 * len(queries))[:, np.newaxis],
        )

    # --- documents

    def _documents(self, names: Sequence[str], part: Part, limit: int) -> list[Any]:
        """Token ids of papers, cut at a limit; an expansion behind it is cut at 510."""
        # A paper that is a candidate of several queries is read once.
        distinct = list(dict.fromkeys(names))
        ids = self._ids(distinct, limit)
        if self.system.terms:
            expansions = self._expansions(distinct, ids, part)
            self.added.append(float(np.mean([len(terms) for terms in expansions])))
            expanded = []
            for text, terms in zip(ids, expansions, strict=True):
                expanded.append(np.concatenate((text, terms))[: neural.LONGEST])
            ids = expanded
        by_name = dict(zip(distinct, ids, strict=True))
        return [by_name[name] for name in names]

    def _expansions(self, names: Sequence[str], ids: Sequence[Any], part: Part) -> list[Any]:
        """New ones among the terms that another TILDE, of the same queries, finds likely."""
        name = self.system.expanded_by
        seeds = self.study.seeds_of(name)
        seed = self.seed if self.seed in seeds else seeds[0]
        expander = Trainer(
            self.study, self.dataset, name, seed, self.models, self.work, self.states
        )
        expander._trained(part)
        if expander.checkpoint.tokenizer.get_vocab() != self.checkpoint.tokenizer.get_vocab():
            raise ValueError(f"{self.name} and {name} have other vocabularies")
        expansions: list[Any] = []
        for start in range(0, len(names), CHUNK):
            chunk = slice(start, start + CHUNK)
            logs = expander.likelihoods(expander._ids(names[chunk], expander.system.length))
            expansions += tilde.expansion_terms(
                logs, ids[chunk], self.system.terms, expander.unasked
            )
        return expansions

    def _states(self, documents: Sequence[Any]) -> list[Any]:
        """States of a frozen encoder, kept in half precision: each text is read once."""
        encoder = f"{self.system.model} {self.system.precision} ".encode()
        # By encoder and tokens: systems that share both share the states.
        keys = [encoder + text.tobytes() for text in documents]
        unread = {}
        for key, text in zip(keys, documents, strict=True):
            if key not in self.states:
                unread[key] = text
        unread_keys = list(unread)
        for start in range(0, len(unread_keys), CHUNK):
            chunk = unread_keys[start : start + CHUNK]
            states = neural.hidden_states(self.checkpoint, [unread[key] for key in chunk])
            for key, state in zip(chunk, states, strict=True):
                self.states[key] = state.astype(np.float16)
        return [self.states[key] for key in keys]

    def _vectors(self, documents: Sequence[Any]) -> Floats32:
        """Means of the token states."""
        states = self._states(documents)
        return np.stack([state[1:].mean(axis=0, dtype=np.float32) for state in states])

    # --- scores

    def likelihoods(self, documents: Sequence[Any]) -> Floats32:
        """TILDE's log-probabilities of all tokens, shaped (documents, vocabulary)."""
        probability = self.system.probability
        if self.system.encoder == "frozen":
            vectors = self._vectors(documents)
            return neural.head_log_probabilities(self.checkpoint, vectors, probability=probability)
        marker = DOCUMENT_MARKER if self.system.input == "authors" else None
        return neural.log_probabilities(
            self.checkpoint, documents, probability=probability, marker=marker
        )

    def _scored(self, part: Part) -> pd.DataFrame:
        """Scores of every pair of the part: ``task, query, document, score``."""
        parts_before = len(self.added)
        pairs = self.dataset.judgements[PAIR].merge(part.scored)
        pairs = pairs.sort_values(PAIR, ignore_index=True)
        queries = pd.Index(pairs["query"].unique())
        documents = pd.Index(sorted(pairs["document"].unique()))
        rows = queries.get_indexer(pairs["query"])
        columns = documents.get_indexer(pairs["document"])
        if self.system.kind == "dense":
            return pairs.assign(score=self._cosines(queries, documents)[rows, columns])
        self._trained(part)
        # Only what is scored counts: of a training that was kept nothing is read again.
        del self.added[parts_before:]
        if self.system.kind == "cross-encoder":
            return pairs.assign(score=self._relevance(queries, documents, rows, columns))

        texts = self._documents(documents, part, self.system.length)
        query_ids = self._asked(self._ids(queries))
        counts = tilde.token_counts(query_ids, self.checkpoint.vocabulary)
        scores = np.empty(len(pairs))
        for start in range(0, len(documents), CHUNK):
            in_chunk = (columns >= start) & (columns < start + CHUNK)
            table = self._chunk_scores(counts, texts[start : start + CHUNK])
            scores[in_chunk] = table[rows[in_chunk], columns[in_chunk] - start]
        if not self.example:
            self._illustrate()
        return pairs.assign(score=scores)

    def _relevance(
        self, queries: pd.Index, documents: pd.Index, rows: Integers, columns: Integers
    ) -> Floats:
        """The cross-encoder's score of each pair, given by its places among both."""
        query_ids, document_ids = self._ids(queries), self._ids(documents)
        pair_queries = [query_ids[row] for row in rows]
        pair_documents = [document_ids[column] for column in columns]
        # Two texts of 254 and three special tokens fit a BERT's 512 places.
        length = min(self.system.length, 254)
        return neural.relevance_scores(self.projected, pair_queries, pair_documents, length=length)

    def _cosines(self, queries: pd.Index, documents: pd.Index) -> Floats:
        """Cosines of every query and document by the encoder's mean token states."""
        neural.seeded(self.seed, threads=self.study.threads)
        model = encoders.load_model(self.folder, "encoder", self.system.precision)
        distinct = queries.union(documents)
        vectors = rankers.text_vectors(model, list(self.texts[distinct]), length=self.system.length)
        places_of_queries = distinct.get_indexer(queries)
        places_of_documents = distinct.get_indexer(documents)
        return rankers.dense_scores(vectors[places_of_queries], vectors[places_of_documents])

    def _chunk_scores(self, query_counts: Any, documents: Sequence[Any]) -> Floats:
        """Scores of every query and document of a chunk, shaped (queries, documents)."""
        if self.system.kind == "tilde":
            return tilde.tilde_query_likelihood(query_counts, self.likelihoods(documents))
        vocabulary = self.checkpoint.vocabulary
        weights = tilde.term_weights(documents, self._weights(documents), vocabulary)
        return tilde.matched_term_scores(query_counts, weights)

    def _weights(self, documents: Sequence[Any]) -> list[Floats]:
        """Weights of the tokens of each document."""
        if self.projected is None:
            return neural.splade_weights(self.checkpoint, documents)
        if self.system.encoder == "frozen":
            return neural.projected(self.projected, self._states(documents))
        return neural.place_weights(self.projected, documents)

    def _illustrate(self) -> None:
        """Weights of the example's own terms, or its 40 most likely ones."""
        (tokens,) = neural.tokenise(self.checkpoint.tokenizer, [EXAMPLE])
        weights: Any
        if self.system.kind == "tilde":
            (likelihoods,) = self.likelihoods([tokens])
            tokens = np.argsort(-likelihoods, kind="stable")[:40]
            weights = likelihoods[tokens]
        else:
            (weights,) = self._weights([tokens])
        for place, (token, weight) in enumerate(zip(tokens, weights, strict=True)):
            word = self.checkpoint.tokenizer.id_to_token(int(token))
            self.example.append((place, word, float(weight)))
