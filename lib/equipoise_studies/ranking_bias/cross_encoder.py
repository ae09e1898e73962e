r"""A cross-encoder: query and document read together by an encoder that is trained on one half of a query set.

.. math:: s(q, d) = 20 \cos\left(\overline{h(q)}, \overline{h(d)}\right)

The means are of the states that the query's and the document's tokens have in the text ``[CLS] q
[SEP] d [SEP]``, where each attends to the other; so an encoder of sentences begins near what it was
trained for. Each half of the queries is ranked by the model that was trained on the other half.
Given the seed and the versions, training on one thread gives the same weights.

References
----------
thesis section 4.4 (iii): re-rankers that are cross-encoders. Nogueira and Cho (2019), Passage
Re-ranking with BERT.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from equipoise.arrays import Floats, Integers
from equipoise_compendium.writing import new_folder, write_files
from equipoise_studies.ranking_bias.study import Ranker, Training
from equipoise_studies.ranking_bias.upstream import BiasCollection
from equipoise_studies.systems import models_package, rankers
from equipoise_studies.systems.encoders import Floats32, Model, load_model
from equipoise_studies.training import descend

BLOCK = 100
"""Queries whose pairs are scored between two times that something is kept."""

_SCALE, _BATCH = 20.0, 32


def halves(queries: int, seed: int) -> Integers:
    """The half, 0 or 1, that each query is in."""
    return np.argsort(np.random.default_rng(seed).permutation(queries)) % 2


@dataclass(frozen=True)
class Examples:
    """What is learnt from: texts, and of each query a row of its own document and rows of others that BM25 finds."""

    queries: Sequence[str]
    documents: Sequence[str]
    own: Integers  # (queries,)
    others: Sequence[Integers]


def first(scores: Any, candidates: int) -> Integers:
    """Columns of the best of each row."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :candidates]


def examples(collection: BiasCollection, ranker: Ranker, half: int) -> Examples:
    """The examples of a half of the queries: the first judged document of each, and candidates that are not judged.

    Queries without a judged document, or with no other one, teach nothing.
    """
    texts = pd.DataFrame(collection.documents(), columns=["document", "text"])
    queries = collection.queries[halves(len(collection.queries), _told(ranker).seed) == half]
    found = first(
        rankers.bm25_scores(queries["text"].tolist(), texts["text"].tolist()), ranker.candidates
    )
    row = pd.Index(texts["document"])
    judged = collection.qrels[
        (collection.qrels["level"] > 0) & collection.qrels["document"].isin(row)
    ]
    own = {topic: row.get_indexer(part) for topic, part in judged.groupby("topic")["document"]}
    kept = [
        (text, own[query][0], rest)
        for query, text, places in zip(queries["query"], queries["text"], found, strict=True)
        if query in own and len(rest := np.setdiff1d(places, own[query]))
    ]
    if not kept:
        raise ValueError(f"no query of half {half + 1} has both a judged document and another one")
    asked, right, others = zip(*kept, strict=True)
    return Examples(asked, texts["text"].tolist(), np.array(right, dtype=np.int64), others)


def _told(ranker: Ranker) -> Training:
    if ranker.training is None:
        raise ValueError(f"a ranker of kind {ranker.kind} is not trained")
    return ranker.training


def _autocast(precision: str) -> AbstractContextManager[None]:
    torch = models_package("torch")
    whole: AbstractContextManager[None] = torch.autocast(
        "cpu", dtype=torch.bfloat16, enabled=precision == "bfloat16"
    )
    return whole


def relevance(
    model: Model, queries: Sequence[str], documents: Sequence[str], length: int, precision: str
) -> Any:
    """Scores of pairs of texts, a tensor shaped (pairs,); of a pair longer than ``length`` the document is cut."""
    torch = models_package("torch")
    coded = model.tokenizer(
        list(queries),
        list(documents),
        padding=True,
        truncation="only_second",
        max_length=length,
        return_tensors="pt",
        return_token_type_ids=True,
    )
    with _autocast(precision):
        states = model.network(**coded).last_hidden_state.float()
    second = (coded["token_type_ids"] * coded["attention_mask"]).float().unsqueeze(-1)
    first = coded["attention_mask"].float().unsqueeze(-1) - second
    means = ((states * part).sum(dim=1) / part.sum(dim=1) for part in (first, second))
    return _SCALE * torch.nn.functional.cosine_similarity(*means)


def train(base: Path, ranker: Ranker, given: Examples, into: Path) -> None:
    r"""Fine-tune an encoder to score a query's own document above one that BM25 finds for it, and keep it in a folder.

    .. math:: L = -\frac1B \sum_b \log \sigma \bigl( s(q_b, d_b) - s(q_b, d_b^-) \bigr)
    """
    torch, told = models_package("torch"), _told(ranker)
    torch.manual_seed(told.seed)
    rng, model = np.random.default_rng(told.seed), load_model(base)
    rows = np.arange(len(given.queries))
    orders = np.concatenate([rng.permutation(rows) for _ in range(told.epochs)])
    batches = [orders[start : start + told.batch] for start in range(0, len(orders), told.batch)]

    def loss_of(batch: Integers) -> Any:
        wrong = [rng.choice(given.others[row]) for row in batch]
        asked = [given.queries[row] for row in batch] * 2
        shown = [given.documents[place] for place in (*given.own[batch], *wrong)]
        right, other = relevance(model, asked, shown, ranker.length, ranker.precision).chunk(2)
        return torch.nn.functional.softplus(other - right).mean()

    model.network.train()
    warm = round(0.1 * len(batches))
    losses = descend([model.network], batches, loss_of, into.name, rate=told.rate, warm=warm)
    with new_folder(into) as made:
        model.network.save_pretrained(made)
        model.tokenizer.save_pretrained(made)
        tenth = -(-len(losses) // 10)
        kept = {
            "queries": len(rows),
            "loss at first": np.mean(losses[:tenth]),
            "loss at last": np.mean(losses[-tenth:]),
        }
        (made / "training.json").write_text(json.dumps(kept))


def scores(
    model: Model, ranker: Ranker, queries: Sequence[str], documents: Sequence[str]
) -> Floats32:
    """Scores of pairs of texts, similar lengths together; shaped (pairs,)."""
    torch = models_package("torch")
    order = np.argsort([len(text) for text in documents], kind="stable")[::-1]
    found = np.empty(len(order), dtype=np.float32)
    for start in range(0, len(order), _BATCH):
        rows = order[start : start + _BATCH]
        asked, shown = ([texts[row] for row in rows] for texts in (queries, documents))
        with torch.inference_mode():
            found[rows] = relevance(model, asked, shown, ranker.length, ranker.precision).numpy()
    return found


def scorer(
    folders: Sequence[Path],
    ranker: Ranker,
    queries: Sequence[str],
    which: Integers,
    once: Sequence[str],
    kept: Path,
) -> Callable[[Any, list[str]], Floats]:
    """What scores the best texts of BM25 by trained models, as a table of queries and texts, the others -inf.

    ``which``: of the models in the folders, for each query. ``once``: all texts, of which it takes
    some by their places. ``kept``: beginning of the files that keep scores, some queries in each:
    no pair is scored twice.
    """
    models = [load_model(folder) for folder in folders]

    def score(places: Any, texts: list[str]) -> Floats:
        found = rankers.bm25_scores(queries, texts)
        chosen, table = first(found, ranker.candidates), np.full(found.shape, -np.inf)
        for start in tqdm(range(0, len(queries), BLOCK), desc=kept.name, mininterval=10):
            rows = np.arange(start, min(start + BLOCK, len(queries))).repeat(chosen.shape[1])
            columns = chosen[start : start + BLOCK].ravel()
            pairs = pd.DataFrame(
                {"query": rows, "column": columns, "text": np.asarray(places)[columns]}
            )
            file = kept.with_name(f"{kept.name}-{start:07d}.parquet")
            known = (
                pd.read_parquet(file)
                if file.is_file()
                else pairs.head(0).drop(columns="column").assign(score=0.0)
            )
            new = pairs[["query", "text"]].drop_duplicates().merge(known, how="left")
            for one, part in (new := new[new["score"].isna()]).groupby(which[new["query"]]):
                asked, shown = (
                    [queries[row] for row in part["query"]],
                    [once[place] for place in part["text"]],
                )
                new.loc[part.index, "score"] = scores(models[one], ranker, asked, shown)
            known = pd.concat([known, new], ignore_index=True) if len(new) else known
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_files({file: known})
            scored = pairs.merge(known)
            table[scored["query"], scored["column"]] = scored["score"]
        return table

    return score
