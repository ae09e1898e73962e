"""Train the rankers of thesis chapter 2 and score with them: one system with one seed at a time.

Needs PyTorch (``pip install 'equipoise[models]'``); only `record` imports it, when a step runs. The
weights after each stage are kept in the folder of work, so that systems which share a stage share
its training too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.random import Generator
from safetensors.torch import load_model, save_model

from equipoise.arrays import Floats
from equipoise_compendium import project
from equipoise_compendium.writing import staging
from equipoise_studies.query_by_example import neural, tilde, training
from equipoise_studies.query_by_example.data import QueryByExample, text_of
from equipoise_studies.query_by_example.self_supervision import hard_negatives, training_papers
from equipoise_studies.query_by_example.study import PAIR, Part, Stage, Study
from equipoise_studies.systems.encoders import Floats32

EXAMPLE = "Ranking papers by example: a seed paper is the query, and terms it shares with other papers are weighted."
"""Our own text, whose term weights are recorded for Figure 2.1."""

CHUNK = 2000
"""Documents whose probabilities of all tokens are in memory at once."""


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
        self.study, self.dataset, self.seed, self.models, self.work = (
            study,
            dataset,
            seed,
            models,
            work,
        )
        self.states = states
        self.name, self.system = name, study.systems[name]
        self.folder = models / self.system.model
        self.texts = text_of(dataset.papers)
        self.loss: dict[str, list[float]] = {}
        self.steps: dict[str, int] = {}
        self.added: list[float] = []
        self.example: list[tuple[int, str, float]] = []

    def run(self) -> tuple[pd.DataFrame, dict[str, Any], pd.DataFrame]:
        """Scores (``task, query, document, score``), what was measured, and weights of the example's terms."""
        found = [
            self._scored(part) for part in self.study.parts(self.dataset, self.system, self.seed)
        ]
        measured = {"steps": self.steps, "loss": self.loss}
        if self.added:
            measured["terms added"] = round(float(np.mean(self.added)), 2)
        example = pd.DataFrame(self.example, columns=["place", "token", "weight"])
        return pd.concat(found, ignore_index=True), measured, example

    # --- token ids

    def _begin(self, shift: int = 0) -> Generator:
        """Begin from the checkpoint as it comes, with a generator that depends on the seed alone."""
        rng = neural.seeded(self.seed * 1000 + shift, threads=self.study.threads)
        device, precision = self.study.device, self.system.precision
        self.checkpoint = neural.load_checkpoint(self.folder, device=device, precision=precision)
        self.projected: Any = None
        if self.system.kind in ("tildev2", "cross-encoder"):
            bias = 1.0 if self.system.kind == "tildev2" else 0.0
            self.projected = neural.with_projection(self.checkpoint, bias=bias)
            if not self.system.training:
                self.projected.projection.load_state_dict(
                    neural.own_projection(self.folder / "model.safetensors")
                )
        return rng

    def _ids(self, names: Sequence[str], limit: int | None = None) -> list[Any]:
        return neural.tokenise(
            self.checkpoint.tokenizer, list(self.texts[list(names)]), limit=limit
        )

    # --- training

    def _trained(self, part: Part) -> None:
        """Leave the weights after the last stage in place, trained now or kept from before."""
        stages, rng = self.system.training, self._begin()
        for number, stage in enumerate(stages):
            path = self._kept(stages[: number + 1], part)
            rng = np.random.default_rng([self.seed, number])
            torch.manual_seed(self.seed * 1000 + number)
            if path.is_file():
                load_model(self._module(), path)
                kept = json.loads(path.with_suffix(".json").read_text())
            else:
                history = self._learn(stage, part, rng, first=number == 0)
                tenth = max(1, len(history) // 10)
                ends = [
                    round(float(np.mean(some)), 4) for some in (history[:tenth], history[-tenth:])
                ]
                kept = {"steps": len(history), "loss": ends}
                with staging(path) as made:
                    save_model(self._module(), made)
                    made.replace(path)
                path.with_suffix(".json").write_text(json.dumps(kept))
            self.steps[stage.pairs], self.loss[stage.pairs] = kept["steps"], kept["loss"]

    def _module(self) -> Any:
        """What training changes."""
        frozen = self.system.encoder == "frozen"
        if self.projected is None:
            return self.checkpoint.model.cls if frozen else self.checkpoint.model
        return torch.nn.ModuleList(
            [self.projected.projection, *([] if frozen else [self.projected.bert])]
        )

    def _kept(self, stages: Sequence[Stage], part: Part) -> Path:
        judged = any(stage.pairs == "judgements" for stage in stages)
        system = asdict(self.system) | {"training": [asdict(stage) for stage in stages]}
        alike = ("kind", "model", "training", "encoder", "head", "precision")
        what: dict[str, Any] = {key: system[key] for key in alike}
        what |= {"seed": self.seed, "weights": project.sha256(self.folder / "model.safetensors")}
        if judged:
            what |= {
                "queries": part.trained.to_numpy().tolist(),
                "expanded": [self.system.expanded_by, self.system.terms],
            }
        digest = hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[
            :16
        ]
        self.work.mkdir(parents=True, exist_ok=True)
        return self.work / f"weights-{self.system.kind}-{digest}.safetensors"

    def _learn(self, stage: Stage, part: Part, rng: Generator, *, first: bool) -> list[float]:
        schedule = {
            "epochs": stage.epochs,
            "batch": stage.batch,
            "rate": stage.rate,
            "optimiser": stage.optimiser,
        }
        pairs = (
            self._judged_pairs(stage, part, rng)
            if stage.pairs == "judgements"
            else self._own_pairs(stage)
        )
        queries, own = pairs.queries, pairs.documents[: len(pairs.queries)]
        if self.system.kind == "cross-encoder":
            return training.train_cross_encoder(self.projected, pairs, rng, **schedule)
        if self.system.kind == "tildev2":
            if self.system.encoder == "frozen":
                states = self._states(pairs.documents)
                return training.train_projection(self.projected, pairs, states, rng, **schedule)
            return training.train_tildev2(self.projected, pairs, rng, **schedule)
        if self.system.encoder == "frozen":
            both = stage.pairs == "halves"  # either half is expected from the other
            vectors = self._vectors([*own, *queries] if both else own)
            wanted = [*queries, *own] if both else queries
            self._make_head_ready(vectors[::7], wanted, first=first)
            return training.train_head(self.checkpoint, vectors, wanted, rng, **schedule)
        sample = [*own, *queries][::7]
        if first and self.system.head != "own":
            vectors = np.stack(
                [state[0] for state in neural.hidden_states(self.checkpoint, sample)]
            )
            self._make_head_ready(vectors, [*queries, *own], first=first)
        return training.train_tilde(self.checkpoint, queries, own, rng, **schedule)

    def _make_head_ready(self, vectors: Floats32, wanted: Sequence[Any], *, first: bool) -> None:
        if first and self.system.head != "own":
            fresh = 0.1 if self.system.head == "identity" else None
            training.calibrate_head(self.checkpoint, vectors, wanted, fresh=fresh)

    def _own_pairs(self, stage: Stage) -> training.Pairs:
        """Titles and abstracts, or halves, of papers that are no query."""
        papers, _ = training_papers(self.dataset, seed=0)
        papers = papers.head(stage.papers)
        negatives = hard_negatives(papers["title"].tolist(), papers["abstract"].tolist())
        if stage.pairs == "titles":
            asked, told = (
                neural.tokenise(
                    self.checkpoint.tokenizer, papers[part].tolist(), limit=stage.length
                )
                for part in ("title", "abstract")
            )
        else:
            halves = [
                np.array_split(text[: 2 * stage.length], 2)
                for text in self._ids(papers["document"])
            ]
            asked, told = (list(part) for part in zip(*halves, strict=True))
        return training.Pairs(asked, told, negatives)

    def _judged_pairs(self, stage: Stage, part: Part, rng: Generator) -> training.Pairs:
        """Each relevant paper with its query as often as papers judged not relevant are drawn to stand against it.

        TILDE learns from relevant papers alone, each once. thesis section 2.3.1.
        """
        judged = self.dataset.judgements.merge(part.trained)
        judged["relevant"] = judged["grade"] >= self.study.collection.relevant
        relevant, other = judged[judged["relevant"]], judged[~judged["relevant"]]
        pools = {key: rows["document"].to_numpy() for key, rows in other.groupby(["task", "query"])}
        against = 1 if self.system.kind == "tilde" else stage.negatives
        rows = [
            row
            for row in relevant.itertuples(index=False)
            for _ in range(against)
            if (row.task, row.query) in pools
        ]
        drawn = [rng.choice(pools[row.task, row.query]) for row in rows]
        cross = self.system.kind == "cross-encoder"
        asked = self._ids([row.query for row in rows], stage.length if cross else None)
        told = self._documents([*(row.document for row in rows), *drawn], part, stage.length)
        return training.Pairs(asked, told, np.arange(len(rows), 2 * len(rows))[:, np.newaxis])

    # --- documents

    def _documents(self, names: Sequence[str], part: Part, limit: int) -> list[Any]:
        """Token ids of papers, expanded where the system is; each is cut at a limit, an expansion behind it at 510."""
        distinct = list(dict.fromkeys(names))
        ids = self._ids(distinct, limit)
        if self.system.terms:
            more = self._expansions(distinct, ids, part)
            self.added.append(float(np.mean([len(terms) for terms in more])))
            ids = [np.concatenate(both)[: neural.LONGEST] for both in zip(ids, more, strict=True)]
        by_name = dict(zip(distinct, ids, strict=True))
        return [by_name[name] for name in names]

    def _expansions(self, names: Sequence[str], ids: Sequence[Any], part: Part) -> list[Any]:
        """New ones among the terms that another TILDE, trained on the same queries, finds likely."""
        by, seeds = self.system.expanded_by, self.study.seeds_of(self.system.expanded_by)
        seed = self.seed if self.seed in seeds else seeds[0]
        other = Trainer(self.study, self.dataset, by, seed, self.models, self.work, self.states)
        other._trained(part)
        if other.checkpoint.tokenizer.get_vocab() != self.checkpoint.tokenizer.get_vocab():
            raise ValueError(f"{self.name} and {self.system.expanded_by} have other vocabularies")
        found: list[Any] = []
        for start in range(0, len(names), CHUNK):
            chunk = slice(start, start + CHUNK)
            logs = other.likelihoods(other._ids(names[chunk], other.system.length))
            found += tilde.expansion_terms(logs, ids[chunk], self.system.terms)
        return found

    def _states(self, documents: Sequence[Any]) -> list[Any]:
        """States of a frozen encoder, kept in half precision: each text is read once, whatever is trained on it."""
        keys = [
            f"{self.system.model} {self.system.precision} ".encode() + text.tobytes()
            for text in documents
        ]
        new = {
            key: text for key, text in zip(keys, documents, strict=True) if key not in self.states
        }
        for start in range(0, len(new), CHUNK):
            chunk = list(new.items())[start : start + CHUNK]
            found = neural.hidden_states(self.checkpoint, [text for _, text in chunk])
            self.states |= {
                key: state.astype(np.float16) for (key, _), state in zip(chunk, found, strict=True)
            }
        return [self.states[key] for key in keys]

    def _vectors(self, documents: Sequence[Any]) -> Floats32:
        """Means of the token states."""
        return np.stack(
            [state[1:].mean(axis=0, dtype=np.float32) for state in self._states(documents)]
        )

    # --- scores

    def likelihoods(self, documents: Sequence[Any]) -> Floats32:
        """TILDE's log-probabilities of all tokens, shaped (documents, vocabulary)."""
        how = {"probability": self.system.probability}
        if self.system.encoder == "frozen":
            return neural.head_log_probabilities(self.checkpoint, self._vectors(documents), **how)
        return neural.log_probabilities(self.checkpoint, documents, **how)

    def _scored(self, part: Part) -> pd.DataFrame:
        self._trained(part)
        pairs = (
            self.dataset.judgements[PAIR].merge(part.scored).sort_values(PAIR, ignore_index=True)
        )
        queries, documents = (
            pd.Index(pairs["query"].unique()),
            pd.Index(sorted(pairs["document"].unique())),
        )
        rows, columns = (
            queries.get_indexer(pairs["query"]),
            documents.get_indexer(pairs["document"]),
        )
        if self.system.kind == "cross-encoder":
            length = min(self.system.length, 254)
            asked, told = self._ids(queries), self._ids(documents)
            texts = [asked[row] for row in rows], [told[column] for column in columns]
            return pairs.assign(
                score=neural.relevance_scores(self.projected, *texts, length=length)
            )
        told = self._documents(documents, part, self.system.length)
        asked = tilde.token_counts(self._ids(queries), self.checkpoint.vocabulary)
        score: Callable[[Any, Sequence[Any]], Floats] = (
            self._likely if self.system.kind == "tilde" else self._matched
        )
        scores = np.empty(len(pairs))
        for start in range(0, len(documents), CHUNK):
            here = (columns >= start) & (columns < start + CHUNK)
            scores[here] = score(asked, told[start : start + CHUNK])[
                rows[here], columns[here] - start
            ]
        if not self.example:
            self._illustrate()
        return pairs.assign(score=scores)

    def _likely(self, asked: Any, documents: Sequence[Any]) -> Floats:
        return tilde.tilde_query_likelihood(asked, self.likelihoods(documents))

    def _weights(self, documents: Sequence[Any]) -> list[Floats]:
        if self.projected is None:
            return neural.splade_weights(self.checkpoint, documents)
        if self.system.encoder == "frozen":
            return neural.projected(self.projected, self._states(documents))
        return neural.place_weights(self.projected, documents)

    def _matched(self, asked: Any, documents: Sequence[Any]) -> Floats:
        weights = self._weights(documents)
        return tilde.matched_term_scores(
            asked, tilde.term_weights(documents, weights, self.checkpoint.vocabulary)
        )

    def _illustrate(self) -> None:
        """Weights of the example's own terms, or its 40 most likely ones."""
        (tokens,) = neural.tokenise(self.checkpoint.tokenizer, [EXAMPLE])
        weights: Any = (self.likelihoods if self.system.kind == "tilde" else self._weights)(
            [tokens]
        )[0]
        if self.system.kind == "tilde":
            tokens = np.argsort(-weights, kind="stable")[:40]
            weights = weights[tokens]
        word = self.checkpoint.tokenizer.id_to_token
        self.example = [
            (place, word(int(token)), float(weight))
            for place, (token, weight) in enumerate(zip(tokens, weights, strict=True))
        ]
