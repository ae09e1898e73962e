"""Record once what the slow rankers of thesis chapter 2 say, so that the notebook replays it in seconds.

    python -m equipoise.studies.query_by_example.record --data CSFCUBE --models MODELS --out
    data/outputs/query_by_example

trains TILDE, TILDEv2 and a cross-encoder on texts of the candidate papers, never of the query papers, and writes the
score of every query-candidate pair (``scores.csv``), an example document's term weights (``example.csv``) and what made
them (``record.json``). It needs PyTorch (``pip install 'equipoise[models]'``), and about half an hour on two cores.

Training is self-supervised. TILDEv2 and the cross-encoder learn to tell a title's own abstract from others; TILDE
learns to expect the tokens of one half of a paper from the other half, for here its queries are as long as papers.
It is also transductive: texts of the documents to be ranked are part of it. No relevance judgement, no query paper, and
no paper with a query's title is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise.studies.query_by_example import neural, tilde, training
from equipoise.studies.query_by_example.csfcube import load_csfcube
from equipoise.studies.query_by_example.data import QueryByExample, text_of
from equipoise.studies.query_by_example.self_supervision import hard_negatives, reciprocal_ranks, training_papers
from equipoise.studies.query_by_example.systems import BM25, lexical_scores
from equipoise.studies.recording import settings_of, state
from equipoise.systems.encoders import Floats32
from equipoise.systems.tokenisation import domain_wordpiece, wordpiece

TINY, MINILM = "splade-tiny-msmarco", "all-minilm-l6-v2"
"""Folder names of the two checkpoints: a general one with a masked-LM head, and one that has read scientific papers."""

EXAMPLE = "Ranking papers by example: a seed paper is the query, and terms it shares with other papers are weighted."
"""Our own text, whose term weights are recorded for Figure 2.1."""

EXPANSIONS = (200, 300)
"""The m of document expansion, as in Table 2.1 of the thesis."""

LONGEST = 510
"""Tokens that a BERT takes beside [CLS] and [SEP]; a document and its expansion are cut there."""

SETTINGS: dict[str, dict[str, Any]] = {
    "tilde_minilm": {"epochs": 10, "batch": 64, "rate": 1e-3},
    "tildev2_minilm": {"epochs": 3, "batch": 32, "rate": 3e-3},
    "tilde_tiny": {"epochs": 5, "batch": 32, "rate": 5e-4},
    "tildev2_tiny": {"epochs": 2, "batch": 32, "rate": 2e-4},
    "cross_tiny": {"epochs": 2, "batch": 16, "rate": 2e-4},
}
"""How each model is trained. Rates are higher, epochs fewer than the thesis's: small models, a slow processor."""

TRAINED_ON, HELD_OUT = 1500, 300
"""How many of the training and held-out papers are used, the first by id: as many as half an hour on a CPU allows."""

LIMITS = {"training": 126, TINY: 254, MINILM: 190}
"""Longest document (or half of one) in tokens: in training, and when documents are ranked, by encoder."""

_LIKELY = ("candidates", "held papers, second", "example")  # what TILDE encodes
_WEIGHED = ("candidates", "held abstracts", "example")  # what TILDEv2 encodes


class Recorder:
    """Scores, example weights and measurements so far.

    They are written after every model: a long run that is stopped leaves what it has done. ``quick``: three steps a
    model, few papers and the first pairs only, to see that everything runs.
    """

    def __init__(self, dataset: QueryByExample, models: Path, out: Path, seed: int, threads: int, quick: bool) -> None:
        if quick:
            dataset = replace(dataset, judgements=dataset.judgements.groupby("query").head(3))
        self.dataset, self.models, self.out = dataset, models, out
        self.seed, self.threads, self.quick = seed, threads, quick
        self.scores = dataset.pairs
        self.measured: dict[str, Any] = {}
        self.example: list[tuple[str, int, str, float]] = []
        candidates = pd.Index(sorted(set(self.scores["document"])))
        self.rows = pd.Index(dataset.queries).get_indexer(self.scores["query"])
        self.columns = candidates.get_indexer(self.scores["document"])
        own, held = training_papers(dataset, seed=seed)
        own, held = own.head(200 if quick else TRAINED_ON), held.head(50 if quick else HELD_OUT)
        self.negatives = hard_negatives(own["title"].tolist(), own["abstract"].tolist())
        texts = text_of(dataset.papers)
        self.texts = {"candidates": texts[candidates], "queries": texts[[*dataset.queries]], "example": [EXAMPLE]}
        for kind, papers in (("", own), ("held ", held)):
            self.texts |= {f"{kind}titles": papers["title"], f"{kind}abstracts": papers["abstract"]}
            self.texts |= {f"{kind}papers": texts[papers["document"]]}
        models_used = {name: models / name / "model.safetensors" for name in (TINY, MINILM)}
        packages = ("numpy", "scipy", "torch", "transformers", "tokenizers")
        data: dict[str, Any] = {"data": "csfcube", "training_papers": len(own), "held_out_papers": len(held)}
        self.settings = settings_of(
            seed=seed, models=models_used, packages=packages, threads=threads, limits=LIMITS, settings=SETTINGS, **data
        )
        self.started = time.perf_counter()

    def record(self) -> None:
        """Train, score and write; into a folder of another record it is refused, before anything is trained."""
        state(self.out / "record.json", self.settings)
        bert = wordpiece(self.models / TINY / "tokenizer.json")
        for name, tokenise in (("bert", bert), ("domain", domain_wordpiece(self.texts["candidates"]))):
            for model, settings in (("bm25", BM25), ("lm", {})):
                found = lexical_scores(self.dataset, tokenise, model=model, **settings)
                self.scores[f"{model}_{name}"] = found["score"]
        likely = self._minilm()
        self._tiny_tilde()
        self._tiny_tildev2(likely)
        self._tiny_cross_encoder()

    def _begin(self, name: str) -> None:
        """Begin with a fresh checkpoint, a generator, and the token ids of all texts by its tokeniser."""
        self.rng = neural.seeded(self.seed, threads=self.threads)
        self.checkpoint = neural.load_checkpoint(self.models / name)
        cuts = {"candidates": LIMITS[name], "held abstracts": LIMITS["training"], "abstracts": LIMITS["training"]}
        self.ids = {
            key: neural.tokenise(self.checkpoint.tokenizer, list(part), limit=cuts.get(key))
            for key, part in self.texts.items()
        }
        for key in ("papers", "held papers"):
            halves = [np.array_split(text[: 2 * LIMITS["training"]], 2) for text in self.ids.pop(key)]
            self.ids[f"{key}, first"], self.ids[f"{key}, second"] = map(list, zip(*halves, strict=True))

    def _encoded(self, encode: Callable[..., Any], keys: Sequence[str]) -> dict[str, Any]:
        return {key: encode(self.checkpoint, self.ids[key]) for key in keys}

    def _counts(self, key: str) -> Any:
        return tilde.token_counts(self.ids[key], self.checkpoint.vocabulary)

    def _illustrate(self, name: str, tokens: Iterable[Any], weights: Iterable[Any]) -> None:
        for place, (token, weight) in enumerate(zip(tokens, weights, strict=True)):
            word = self.checkpoint.tokenizer.id_to_token(int(token))
            self.example.append((name, place, word, float(weight)))

    def _pairs(self) -> training.Pairs:
        return training.Pairs(self.ids["titles"], self.ids["abstracts"], self.negatives)

    def _settings(self, name: str) -> dict[str, Any]:
        return SETTINGS[name] | ({"steps": 3} if self.quick else {})

    def _seconds(self) -> int:
        """Seconds since the last entry."""
        before, self.started = self.started, time.perf_counter()
        return round(self.started - before)

    def _keep(
        self, name: str, values: Floats, history: Sequence[float] = (), held: Floats | None = None, **note: Any
    ) -> None:
        """Scores of the pairs, and how well held-out titles (or first halves) find their own abstracts (or halves)."""
        self.scores[name] = values
        if history:
            tenth = max(1, len(history) // 10)
            ends = [round(float(np.mean(part)), 4) for part in (history[:tenth], history[-tenth:])]
            note |= {"loss": ends, "steps": len(history)}
        if held is not None:
            note["held_out_mrr"] = round(float(reciprocal_ranks(held).mean()), 4)
        self.measured[name] = note | {"seconds": self._seconds()}
        click.echo(f"{name} {self.measured[name]}")
        self._write()

    def _write(self) -> None:
        self.scores.to_csv(self.out / "scores.csv", index=False, float_format="%.7g", lineterminator="\n")
        example = pd.DataFrame(self.example, columns=["system", "place", "token", "weight"])
        example.to_csv(self.out / "example.csv", index=False, float_format="%.5g", lineterminator="\n")
        state(self.out / "record.json", self.settings, self.measured)

    def _likelihood(self, name: str, logs: Mapping[str, Any], history: Sequence[float] = ()) -> None:
        """Scores of TILDE, from log-probabilities of the texts `_LIKELY`."""
        found, held = (
            tilde.tilde_query_likelihood(self._counts(asked), logs[told])
            for asked, told in (("queries", "candidates"), ("held papers, first", "held papers, second"))
        )
        likely = np.argsort(-logs["example"][0], kind="stable")[:40]
        self._illustrate(name, likely, logs["example"][0][likely])
        self._keep(name, found[self.rows, self.columns], history, held)

    def _weighed(self, asked: str, told: neural.Texts, weights: Sequence[Floats]) -> Floats:
        documents = tilde.term_weights(told, weights, self.checkpoint.vocabulary)
        return tilde.matched_term_scores(self._counts(asked), documents)

    def _matched(self, name: str, weights: Mapping[str, Any], history: Sequence[float] = ()) -> None:
        """Scores of TILDEv2, from term weights of the texts `_WEIGHED`."""
        found, held = (
            self._weighed(asked, self.ids[told], weights[told])
            for asked, told in (("queries", "candidates"), ("held titles", "held abstracts"))
        )
        self._illustrate(name, self.ids["example"][0], weights["example"][0])
        self._keep(name, found[self.rows, self.columns], history, held)

    def _minilm(self) -> Floats32:
        """MiniLM: the encoder stays as it is, only heads are trained on what it makes of the texts.

        Returns TILDE's log-probabilities of the candidates.
        """
        self._begin(MINILM)
        ids = self.ids
        states = self._encoded(neural.hidden_states, ("abstracts", *_WEIGHED))
        vectors = {}
        for key in ("papers, first", "papers, second", *_LIKELY):  # one after the other: the states of all fill memory
            own = states.get(key) or neural.hidden_states(self.checkpoint, ids[key])
            vectors[key] = np.stack([state[1:].mean(axis=0) for state in own])
        self.measured["encoding_minilm"] = {"seconds": self._seconds()}
        model = neural.with_projection(self.checkpoint, bias=1.0)
        given = model, self._pairs(), states["abstracts"]
        history = training.train_projection(*given, self.rng, **self._settings("tildev2_minilm"))
        self._matched("tildev2_minilm", {key: neural.projected(model, states[key]) for key in _WEIGHED}, history)
        both = np.concatenate((vectors["papers, first"], vectors["papers, second"]))
        wanted = ids["papers, second"] + ids["papers, first"]
        training.calibrate_head(self.checkpoint, both[::7], wanted, fresh=0.1)
        history = training.train_head(self.checkpoint, both, wanted, self.rng, **self._settings("tilde_minilm"))
        for name, probability in (("tilde_minilm_softmax", "softmax"), ("tilde_minilm", "sigmoid")):
            logs = {
                key: neural.head_log_probabilities(self.checkpoint, vectors[key], probability=probability)
                for key in _LIKELY
            }
            self._likelihood(name, logs, history)
        return logs["candidates"]

    def _tiny_tilde(self) -> None:
        """SPLADE-tiny as it comes, then fine-tuned whole."""
        self._begin(TINY)
        self._likelihood("tilde_zero", self._encoded(neural.log_probabilities, _LIKELY))
        self._matched("tildev2_zero", self._encoded(neural.splade_weights, _WEIGHED))
        halves = self.ids["papers, first"], self.ids["papers, second"]
        sample = np.stack([state[0] for state in neural.hidden_states(self.checkpoint, (halves[0] + halves[1])[::7])])
        training.calibrate_head(self.checkpoint, sample, *halves)
        history = training.train_tilde(self.checkpoint, *halves, self.rng, **self._settings("tilde_tiny"))
        self._likelihood("tilde_tiny", self._encoded(neural.log_probabilities, _LIKELY), history)

    def _tiny_tildev2(self, likely: Floats32) -> None:
        """TILDEv2 over SPLADE-tiny, also over documents expanded by what MiniLM's TILDE finds likely."""
        self._begin(TINY)
        model, told = neural.with_projection(self.checkpoint, bias=1.0), self.ids["candidates"]
        history = training.train_tildev2(model, self._pairs(), self.rng, **self._settings("tildev2_tiny"))
        self._matched("tildev2_tiny", {key: neural.place_weights(model, self.ids[key]) for key in _WEIGHED}, history)
        for m in EXPANSIONS:
            new = tilde.expansion_terms(likely, told, m)
            longer = [np.concatenate(parts)[:LONGEST] for parts in zip(told, new, strict=True)]
            found = self._weighed("queries", longer, neural.place_weights(model, longer))[self.rows, self.columns]
            self._keep(f"tildev2_tiny_m{m}", found, terms_added=round(float(np.mean([len(terms) for terms in new])), 2))

    def _tiny_cross_encoder(self) -> None:
        self._begin(TINY)
        model = neural.with_projection(self.checkpoint, bias=0.0)
        history = training.train_cross_encoder(model, self._pairs(), self.rng, **self._settings("cross_tiny"))
        asked = [self.ids["queries"][row] for row in self.rows]
        told = [self.ids["candidates"][row] for row in self.columns]
        self._keep("cross_tiny", neural.relevance_scores(model, asked, told), history)


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of the item csfcube.")
@click.option("--models", type=click.Path(exists=True, path_type=Path), required=True, help="With the two checkpoints.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Where the record goes.")
@click.option("--seed", default=7, show_default=True)
@click.option("--threads", default=2, show_default=True)
@click.option("--quick", is_flag=True, help="A few steps only, to see that it runs.")
def main(data: Path, models: Path, out: Path, seed: int, threads: int, quick: bool) -> None:
    """Train TILDE, TILDEv2 and a cross-encoder, and record their scores."""
    Recorder(load_csfcube(data), models, out, seed, threads, quick).record()


if __name__ == "__main__":
    main()
