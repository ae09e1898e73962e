"""Record once what the slow rankers of thesis chapter 2 say, so that the notebook replays it in seconds.

    python -m equipoise.studies.query_by_example.systems --data CSFCUBE --models MODELS --out
    data/outputs/query_by_example

trains TILDE, TILDEv2 and a cross-encoder on texts of the candidate papers, never of the query papers, and writes the
score of every query-candidate pair (``scores.csv``), an example document's term weights (``example.csv``) and what made
them (``record.json``). It needs PyTorch (``pip install 'equipoise[models]'``).

Training is self-supervised. TILDEv2 and the cross-encoder learn to tell a title's own abstract from others; TILDE
learns to expect the tokens of one half of a paper from the other half, for here its queries are as long as papers.
It is also transductive: texts of the documents to be ranked are part of it. No relevance judgement, no query paper, and
no paper with a query's title is.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.arrays import Floats
from equipoise.studies.query_by_example import tilde
from equipoise.studies.query_by_example.csfcube import load_csfcube
from equipoise.studies.query_by_example.data import QueryByExample, text_of
from equipoise.systems.lexical import Collection, bm25, jelinek_mercer
from equipoise.systems.tokenisation import ANALYSERS, Tokenisation, domain_wordpiece, wordpiece

TINY, MINILM = "splade-tiny-msmarco", "all-minilm-l6-v2"
"""Folder names of the two checkpoints: a general one with a masked-LM head, and one that has read scientific papers."""

SYSTEMS = {
    "bm25_SA": "BM25 SA",
    "bm25_STM1": "BM25 STM1",
    "bm25_STM2": "BM25 STM2",
    "bm25_bert": "BM25 BERT-Token",
    "bm25_domain": "BM25 domain-Token",
    "lm_SA": "LM SA",
    "lm_STM1": "LM STM1",
    "lm_STM2": "LM STM2",
    "lm_bert": "LM BERT-Token",
    "lm_domain": "LM domain-Token",
    "tilde_zero": "TILDE tiny, zero-shot",
    "tilde_tiny": "TILDE tiny",
    "tilde_minilm": "TILDE MiniLM",
    "tilde_minilm_softmax": "TILDE MiniLM, softmax",
    "tildev2_zero": "TILDEv2 tiny, zero-shot",
    "tildev2_tiny": "TILDEv2 tiny",
    "tildev2_minilm": "TILDEv2 MiniLM",
    "tildev2_tiny_m200": "TILDEv2 tiny, m = 200",
    "tildev2_tiny_m300": "TILDEv2 tiny, m = 300",
    "cross_tiny": "Cross-encoder tiny",
}
"""Every system of the replica: its column of scores, and what it is called in tables."""

BM25 = {"k1": 2.75, "b": 1.0}
"""BM25's parameters in thesis section 2.2.1, tuned there for scientific papers."""

EXAMPLE = "Ranking papers by example: a seed paper is the query, and terms it shares with other papers are weighted."
"""Our own text, whose term weights are recorded for Figure 2.1."""

EXPANSIONS = (200, 300)
"""The m of document expansion, as in Table 2.1 of the thesis."""

LONGEST = 510
"""Tokens that a BERT takes beside [CLS] and [SEP]; a document and its expansion are cut there."""

SETTINGS: dict[str, dict[str, Any]] = {
    "tilde_minilm": {"epochs": 10, "batch": 64, "rate": 1e-3},
    "tildev2_minilm": {"epochs": 3, "batch": 32, "rate": 3e-3},
    "tilde_tiny": {"epochs": 5, "batch": 32, "rate": 5e-4, "limit": 126},
    "tildev2_tiny": {"epochs": 2, "batch": 32, "rate": 2e-4, "limit": 126},
    "cross_tiny": {"epochs": 2, "batch": 16, "rate": 2e-4, "limit": 126},
}
"""How each model is trained. Rates are higher, epochs fewer than the thesis's: small models, a slow processor."""

TRAINED_ON, HELD_OUT = 1500, 300
"""How many of the training and held-out papers are used, the first by id: as many as half an hour on a CPU allows."""

LIMITS = {"training": 126, TINY: 254, MINILM: 190}
"""Longest document in tokens: in training, and when documents are ranked, by encoder."""


def training_papers(
    dataset: QueryByExample, *, validation: float = 0.15, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Papers to train on, and papers held out of training, neither of them a query.

    ``dataset``: Every query paper, and every paper whose title is a query's but for case and spaces, is left out.
    ``validation``: share of papers held out; the thesis holds out 15%. ``seed``: of the split. Returns: training,
    held_out : DataFrame: ``document, title, abstract``.

    thesis section 2.3.1.
    """
    papers = dataset.papers
    names = papers["title"].str.casefold().str.split().str.join(" ")
    asked = papers["document"].isin(dataset.queries)
    free = papers[~asked & ~names.isin(set(names[asked]))].reset_index(drop=True)
    order = np.random.default_rng(seed).permutation(len(free))
    held = round(len(free) * validation)
    if not 0 < held < len(free):
        raise ValueError(f"a share of {validation} leaves {len(free) - held} of {len(free)} papers to train on")
    return (free.iloc[np.sort(part)].reset_index(drop=True) for part in (order[held:], order[:held]))  # type: ignore[return-value]


def hard_negatives(titles: Sequence[str], abstracts: Sequence[str], *, top: int = 20) -> NDArray[np.int64]:
    """For each title the abstracts that BM25 ranks highest, its own left out: what training must tell apart.

    ``titles``, ``abstracts``: the i-th title belongs to the i-th abstract. ``top``: how many negatives a title
    gets. Returns ndarray of int, shaped (titles, top): Row numbers, best first.
    """
    if len(titles) <= top:
        raise ValueError(f"{top} negatives need more than {len(titles)} papers")
    names = [f"{row:09d}" for row in range(len(abstracts))]  # ids in the order of the rows
    collection = Collection.from_texts(dict(zip(names, abstracts, strict=True)), ANALYSERS["STM2"])
    scores = bm25(collection, collection.queries(titles), k1=2.75, b=1.0)
    np.fill_diagonal(scores, -np.inf)
    return np.argsort(-scores, axis=1, kind="stable")[:, :top]


def lexical_scores(
    dataset: QueryByExample, tokenise: Tokenisation, *, model: str = "bm25", **settings: Any
) -> pd.DataFrame:
    """Scores of a lexical model for every judged pair; the collection is every paper that is a candidate somewhere.

    ``dataset``: Papers are searched by title and abstract. ``tokenise``: From text to terms, such as those in
    `equipoise.systems.tokenisation.ANALYSERS`. ``model``: BM25, or the Jelinek-Mercer language model.
    ``**settings``: Passed on to `equipoise.systems.lexical.bm25` or `equipoise.systems.lexical.jelinek_mercer`.
    Returns: ``query, document, score``, as ordered in ``dataset.pairs``.

    thesis sections 2.2.1 and 2.3.2.
    """
    if model not in ("bm25", "lm"):
        raise ValueError(f'model must be "bm25" or "lm", found {model!r}')
    texts, pairs = text_of(dataset.papers), dataset.pairs
    collection = Collection.from_texts({name: texts[name] for name in sorted(set(pairs["document"]))}, tokenise)
    queries, documents = pd.Index(dataset.queries), pd.Index(collection.documents)
    asked = collection.queries([texts[name] for name in queries])
    scores = bm25(collection, asked, **settings) if model == "bm25" else jelinek_mercer(collection, asked, **settings)
    return pairs.assign(score=scores[queries.get_indexer(pairs["query"]), documents.get_indexer(pairs["document"])])


def reciprocal_ranks(scores: Floats) -> Floats:
    """One over the rank of each query's own document, which stands on the diagonal.

    ``scores`` (shaped (queries, queries)): the i-th query belongs to the i-th document. Returns ndarray, shaped
    (queries,): Of equal scores the own document's is taken to come last.
    """
    own = np.diagonal(scores)[:, np.newaxis]
    return 1.0 / (scores >= own).sum(axis=1)


def _splade(checkpoint: Any, documents: Sequence[NDArray[np.int64]], states: Sequence[Any]) -> list[Floats]:
    """Zero-shot weights of a document's own tokens: what SPLADE's head, untouched, gives each at its best place."""
    torch = importlib.import_module("torch")
    result: list[Floats] = []
    head = checkpoint.model.cls.predictions
    with torch.inference_mode():
        for document, state in zip(documents, states, strict=True):
            own = torch.from_numpy(document[: len(state) - 1])
            logits = head.transform(torch.from_numpy(state)) @ head.decoder.weight[own].T + head.decoder.bias[own]
            result.append(torch.log1p(torch.relu(logits.amax(dim=0))).numpy().astype(np.float64))
    return result


def record(
    dataset: QueryByExample, models: Path, out: Path, *, seed: int = 7, threads: int = 2, quick: bool = False
) -> None:
    """Train, score and write; about half an hour on two cores.

    ``dataset``: To be ranked. ``models``: Folder with the two checkpoints. ``out``: where ``scores.csv``,
    ``example.csv`` and ``record.json`` go. ``seed``, ``threads``: of training, which is repeatable given both and
    the versions. ``quick``: Three steps a model, few papers and the first pairs only, to see that everything runs.
    """
    neural = importlib.import_module("equipoise.studies.query_by_example.neural")
    texts, pairs = text_of(dataset.papers), dataset.pairs
    if quick:
        pairs = pairs.groupby("query").head(3).reset_index(drop=True)
    candidates, queries = pd.Index(sorted(set(pairs["document"]))), pd.Index(sorted(set(pairs["query"])))
    rows, columns = queries.get_indexer(pairs["query"]), candidates.get_indexer(pairs["document"])
    training, held_out = training_papers(dataset, seed=seed)
    training, held_out = training.head(200 if quick else TRAINED_ON), held_out.head(50 if quick else HELD_OUT)
    negatives = hard_negatives(training["title"].tolist(), training["abstract"].tolist())
    scores, notes = pairs.copy(), {}
    example: list[tuple[str, int, str, float]] = []

    bert = wordpiece(models / TINY / "tokenizer.json")
    for name, tokenise in (("bert", bert), ("domain", domain_wordpiece(texts[candidates]))):
        for model in ("bm25", "lm"):
            lexical = lexical_scores(dataset, tokenise, model=model, **(BM25 if model == "bm25" else {}))
            scores[f"{model}_{name}"] = scores.merge(lexical, on=["query", "document"], how="left")["score"].to_numpy()

    def prepared(name: str) -> tuple[Any, Any, dict[str, list[NDArray[np.int64]]]]:
        rng = neural.seeded(seed, threads=threads)
        checkpoint = neural.load_checkpoint(models / name)
        notes[name] = {"sha256": checkpoint.sha256}
        ids = {
            "titles": training["title"],
            "abstracts": training["abstract"],
            "held titles": held_out["title"],
            "held abstracts": held_out["abstract"],
            "papers": texts[training["document"]],
            "held papers": texts[held_out["document"]],
            "candidates": texts[candidates],
            "queries": texts[queries],
            "example": [EXAMPLE],
        }
        cuts = {"candidates": LIMITS[name], "held abstracts": LIMITS["training"], "abstracts": LIMITS["training"]}
        tokens = {
            key: neural.tokenise(checkpoint.tokenizer, list(value), limit=cuts.get(key)) for key, value in ids.items()
        }
        for key in ("papers", "held papers"):
            halves = [np.array_split(text[: 2 * LIMITS["training"]], 2) for text in tokens.pop(key)]
            tokens[f"{key}, first"], tokens[f"{key}, second"] = (
                [half[0] for half in halves],
                [half[1] for half in halves],
            )
        return rng, checkpoint, tokens

    def settings_of(name: str) -> dict[str, Any]:
        return SETTINGS[name] | ({"steps": 3} if quick else {})

    def write() -> None:
        """Write what there is, after every model: a long run that is stopped leaves what it has done."""
        out.mkdir(parents=True, exist_ok=True)
        scores.to_csv(out / "scores.csv", index=False, float_format="%.7g", lineterminator="\n")
        pd.DataFrame(example, columns=["system", "place", "token", "weight"]).to_csv(
            out / "example.csv", index=False, float_format="%.5g", lineterminator="\n"
        )
        about = {
            "data": "csfcube",
            "seed": seed,
            "threads": threads,
            "training_papers": len(training),
            "held_out_papers": len(held_out),
            "limits": LIMITS,
            "settings": SETTINGS,
            "models": notes,
            "versions": {name: version(name) for name in ("numpy", "scipy", "torch", "transformers", "tokenizers")},
        }
        (out / "record.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    def keep(name: str, values: Floats, held: Floats | None, started: float, **note: Any) -> None:
        """Scores of the pairs, and how well held-out titles (or first halves) find their own abstracts (or halves)."""
        scores[name] = values
        if held is not None:
            note["held_out_mrr"] = round(float(reciprocal_ranks(held).mean()), 4)
        notes[name] = note | {"seconds": round(time.perf_counter() - started)}
        print(name, notes[name], flush=True)
        write()

    def head_of(checkpoint: Any, vectors: dict[str, Any], probability: str) -> Callable[[str], Any]:
        return lambda key: neural.head_log_probabilities(checkpoint, vectors[key], probability=probability)

    def likelihood(
        name: str, checkpoint: Any, ids: dict[str, Any], encode: Callable[[str], Any], started: float, **note: Any
    ) -> Any:
        asked, held = (tilde.token_counts(ids[key], checkpoint.vocabulary) for key in ("queries", "held papers, first"))
        logs, row = encode("candidates"), encode("example")[0]
        found, own = tilde.query_likelihood(asked, logs), tilde.query_likelihood(held, encode("held papers, second"))
        keep(name, found[rows, columns], own, started, **note)
        for rank, at in enumerate(np.argsort(-row, kind="stable")[:40]):
            example.append((name, rank, checkpoint.tokenizer.id_to_token(int(at)), float(row[at])))
        return logs

    def matched(
        name: str, checkpoint: Any, ids: dict[str, Any], weigh: Callable[[str], Any], started: float, **note: Any
    ) -> None:
        size = checkpoint.vocabulary
        asked, held = (tilde.token_counts(ids[key], size) for key in ("queries", "held titles"))
        documents, abstracts = (
            tilde.term_weights(ids[key], weigh(key), size) for key in ("candidates", "held abstracts")
        )
        found = tilde.pair_scores(asked, documents, rows, columns)
        keep(name, found, tilde.exact_match(held, abstracts), started, **note)
        for place, (token, value) in enumerate(zip(ids["example"][0], weigh("example")[0], strict=True)):
            example.append((name, place, checkpoint.tokenizer.id_to_token(int(token)), float(value)))

    # MiniLM: the encoder stays as it is, only heads are trained on what it makes of the texts
    started = time.perf_counter()
    rng, checkpoint, ids = prepared(MINILM)
    states = {
        key: neural.hidden_states(checkpoint, ids[key])
        for key in ("abstracts", "held abstracts", "candidates", "example")
    }
    vectors = {
        key: np.stack(
            [state[1:].mean(axis=0) for state in states.get(key) or neural.hidden_states(checkpoint, ids[key])]
        )
        for key in ("papers, first", "papers, second", "held papers, second", "candidates", "example")
    }
    notes["encoding_minilm"] = {"seconds": round(time.perf_counter() - started)}
    started = time.perf_counter()
    model = neural.new_tildev2(checkpoint)
    chosen = settings_of("tildev2_minilm")
    history = neural.train_projection(
        model, ids["titles"], ids["abstracts"], states["abstracts"], negatives, rng, **chosen
    )
    note = {"loss": _ends(history), "steps": len(history)}
    matched("tildev2_minilm", checkpoint, ids, lambda key: neural.projected(model, states[key]), started, **note)
    started = time.perf_counter()
    both = np.concatenate((vectors["papers, first"], vectors["papers, second"]))
    wanted = ids["papers, second"] + ids["papers, first"]
    neural.calibrate_head(checkpoint, both[::7], wanted, fresh=0.1)
    history = neural.train_head(checkpoint, both, wanted, rng, **settings_of("tilde_minilm"))
    note = {"loss": _ends(history), "steps": len(history)}
    for name, probability in (("tilde_minilm_softmax", "softmax"), ("tilde_minilm", "sigmoid")):
        logs = likelihood(name, checkpoint, ids, head_of(checkpoint, vectors, probability), started, **note)

    # SPLADE-tiny: as it comes, then fine-tuned whole
    started = time.perf_counter()
    rng, checkpoint, ids = prepared(TINY)
    likelihood("tilde_zero", checkpoint, ids, lambda key: neural.log_probabilities(checkpoint, ids[key]), started)
    started = time.perf_counter()
    matched(
        "tildev2_zero",
        checkpoint,
        ids,
        lambda key: _splade(checkpoint, ids[key], neural.hidden_states(checkpoint, ids[key])),
        started,
    )
    started = time.perf_counter()
    halves = ids["papers, first"], ids["papers, second"]
    sample = np.stack([state[0] for state in neural.hidden_states(checkpoint, (halves[0] + halves[1])[::7])])
    neural.calibrate_head(checkpoint, sample, *halves)
    history = neural.train_tilde(checkpoint, *halves, rng, **settings_of("tilde_tiny"))
    note = {"loss": _ends(history), "steps": len(history)}
    likelihood(
        "tilde_tiny", checkpoint, ids, lambda key: neural.log_probabilities(checkpoint, ids[key]), started, **note
    )

    started = time.perf_counter()
    rng, checkpoint, ids = prepared(TINY)
    model = neural.new_tildev2(checkpoint)
    chosen = settings_of("tildev2_tiny")
    history = neural.train_tildev2(model, ids["titles"], ids["abstracts"], negatives, rng, **chosen)
    note = {"loss": _ends(history), "steps": len(history)}
    matched("tildev2_tiny", checkpoint, ids, lambda key: neural.place_weights(model, ids[key]), started, **note)
    for m in EXPANSIONS:
        started = time.perf_counter()
        new = tilde.expansion_terms(logs, ids["candidates"], m)
        longer = [np.concatenate((text, terms))[:LONGEST] for text, terms in zip(ids["candidates"], new, strict=True)]
        weights = tilde.term_weights(longer, neural.place_weights(model, longer, limit=LONGEST), checkpoint.vocabulary)
        asked = tilde.token_counts(ids["queries"], checkpoint.vocabulary)
        added = {"terms_added": round(float(np.mean([terms.size for terms in new])), 2)}
        keep(f"tildev2_tiny_m{m}", tilde.pair_scores(asked, weights, rows, columns), None, started, **added)

    started = time.perf_counter()
    rng, checkpoint, ids = prepared(TINY)
    cross, chosen = neural.new_cross_encoder(checkpoint), settings_of("cross_tiny")
    history = neural.train_cross_encoder(cross, ids["titles"], ids["abstracts"], negatives, rng, **chosen)
    asked, told = [ids["queries"][row] for row in rows], [ids["candidates"][row] for row in columns]
    found = neural.relevance_scores(cross, asked, told)
    keep("cross_tiny", found, None, started, loss=_ends(history), steps=len(history))


def _ends(history: Sequence[float]) -> list[float]:
    """Mean loss of the first and of the last tenth of the steps."""
    tenth = max(1, len(history) // 10)
    return [round(float(np.mean(part)), 4) for part in (history[:tenth], history[-tenth:])]


def read_scores(path: Path, dataset: QueryByExample) -> pd.DataFrame:
    """Read recorded scores, one column a system, and check them against the pairs that are to be ranked.

    ``path``: ``scores.csv``, as `record` writes it. ``dataset``: the data set that was scored. Returns: ``query,
    document`` and a column a system, as ordered in ``dataset.pairs``.
    """
    scores = pd.read_csv(path, dtype={"query": str, "document": str})
    joined = dataset.pairs.merge(scores, on=["query", "document"], how="outer", indicator=True)
    alone, twice = int((joined["_merge"] != "both").sum()), int(scores.duplicated(["query", "document"]).sum())
    empty = int(joined.isna().to_numpy().sum())
    if alone or twice or empty:
        raise ValueError(
            f"{path.name} does not fit the data: {alone} pairs stand on one side only, {twice} are scored twice, "
            f"{empty} cells are empty; record the scores again"
        )
    return joined.drop(columns="_merge").sort_values(["query", "document"], ignore_index=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of `record`."""
    parser = argparse.ArgumentParser(description="Train TILDE, TILDEv2 and a cross-encoder, and record their scores.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the item csfcube")
    parser.add_argument("--models", type=Path, required=True, help="folder with the two checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="where the record goes")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a few steps only, to see that it runs")
    chosen = parser.parse_args(arguments)
    dataset = load_csfcube(chosen.data)
    record(dataset, chosen.models, chosen.out, seed=chosen.seed, threads=chosen.threads, quick=chosen.quick)


if __name__ == "__main__":
    main()
