r"""A cross-encoder: query and document read together, by an encoder trained on half of the queries.

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

_SCALE = 20.0
_BATCH = 32
"""Pairs that are scored at a time, where a config does not say."""


def halves(queries: int, seed: int) -> Integers:
    """The half, 0 or 1, that each query is in."""
    # of the shuffled places half are odd, so the halves differ by one query at most
    return np.argsort(np.random.default_rng(seed).permutation(queries)) % 2


@dataclass(frozen=True)
class Examples:
    """What is learnt from: of each query the place of its gold document, and of some negatives.

    ``gold`` and ``negatives`` are places among ``documents``; negatives are what BM25 finds for the
    query and nobody judged.
    """

    queries: Sequence[str]
    documents: Sequence[str]
    gold: Integers  # (queries,)
    negatives: Sequence[Integers]


def best_columns(scores: Any, candidates: int) -> Integers:
    """Columns of the best of each row."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :candidates]


def examples(collection: BiasCollection, ranker: Ranker, half: int) -> Examples:
    """The examples of a half of the queries: the first judged document of each, and candidates.

    Queries without a judged document, or with no other one, teach nothing.
    """
    texts = pd.DataFrame(collection.documents(), columns=["document", "text"])
    documents = pd.Index(texts["document"])
    in_half = halves(len(collection.queries), training_of(ranker).seed) == half
    queries = collection.queries[in_half]
    bm25 = rankers.bm25_scores(queries["text"].tolist(), texts["text"].tolist())
    candidates = best_columns(bm25, ranker.candidates)

    qrels = collection.qrels
    relevant = qrels[(qrels["level"] > 0) & qrels["document"].isin(documents)]
    relevant_places = {}
    for topic, judged in relevant.groupby("topic")["document"]:
        relevant_places[topic] = documents.get_indexer(judged)

    query_texts = []
    gold = []
    negatives = []
    for query, text, places in zip(queries["query"], queries["text"], candidates, strict=True):
        if query not in relevant_places:
            continue
        unjudged = np.setdiff1d(places, relevant_places[query])
        if len(unjudged):
            query_texts.append(text)
            gold.append(relevant_places[query][0])
            negatives.append(unjudged)
    if not query_texts:
        raise ValueError(f"no query of half {half + 1} has both a judged document and another one")
    return Examples(query_texts, texts["text"].tolist(), np.array(gold, dtype=np.int64), negatives)


def training_of(ranker: Ranker) -> Training:
    """How a ranker is trained; refuses one that is not."""
    if ranker.training is None:
        raise ValueError(f"a ranker of kind {ranker.kind} is not trained")
    return ranker.training


def _autocast(device: str, precision: str) -> AbstractContextManager[None]:
    torch = models_package("torch")
    context: AbstractContextManager[None] = torch.autocast(
        device, dtype=torch.bfloat16, enabled=precision == "bfloat16"
    )
    return context


def relevance(
    model: Model, queries: Sequence[str], documents: Sequence[str], length: int, precision: str
) -> Any:
    """Scores of pairs of texts, a tensor shaped (pairs,).

    Of a pair longer than ``length`` tokens the document is cut.
    """
    torch = models_package("torch")
    coded = model.tokenizer(
        list(queries),
        list(documents),
        padding=True,
        truncation="only_second",
        max_length=length,
        return_tensors="pt",
        return_token_type_ids=True,
    ).to(model.network.device)
    with _autocast(model.network.device.type, precision):
        states = model.network(**coded).last_hidden_state.float()
    # token types are 0 for the query and for padding, 1 for the document
    attended = coded["attention_mask"].float().unsqueeze(-1)
    in_document = (coded["token_type_ids"] * coded["attention_mask"]).float().unsqueeze(-1)
    in_query = attended - in_document
    query_mean = (states * in_query).sum(dim=1) / in_query.sum(dim=1)
    document_mean = (states * in_document).sum(dim=1) / in_document.sum(dim=1)
    return _SCALE * torch.nn.functional.cosine_similarity(query_mean, document_mean)


def train(base: Path, ranker: Ranker, examples: Examples, into: Path) -> None:
    r"""Fine-tune an encoder to score a query's gold document above a negative; keep it in a folder.

    .. math:: L = -\frac1B \sum_b \log \sigma \bigl( s(q_b, d_b) - s(q_b, d_b^-) \bigr)
    """
    torch = models_package("torch")
    training = training_of(ranker)
    torch.manual_seed(training.seed)
    rng = np.random.default_rng(training.seed)
    model = load_model(base, device=ranker.device)
    rows = np.arange(len(examples.queries))
    order = np.concatenate([rng.permutation(rows) for _ in range(training.epochs)])
    starts = range(0, len(order), training.batch)
    batches = [order[start : start + training.batch] for start in starts]

    def loss_of(batch: Integers) -> Any:
        negatives = [rng.choice(examples.negatives[row]) for row in batch]
        queries = [examples.queries[row] for row in batch]
        places = [*examples.gold[batch], *negatives]
        documents = [examples.documents[place] for place in places]
        # both documents of each query at once, the gold ones in the first half
        scores = relevance(model, queries * 2, documents, ranker.length, ranker.precision)
        gold_scores, negative_scores = scores.chunk(2)
        # the same as -log sigmoid of the gap, without overflow
        return torch.nn.functional.softplus(negative_scores - gold_scores).mean()

    model.network.train()
    # the rate rises over the first tenth of the batches
    warm = round(0.1 * len(batches))
    losses = descend([model.network], batches, loss_of, into.name, rate=training.rate, warm=warm)
    with new_folder(into) as folder:
        model.network.save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
        tenth = -(-len(losses) // 10)
        account = {
            "queries": len(rows),
            "loss at first": np.mean(losses[:tenth]),
            "loss at last": np.mean(losses[-tenth:]),
        }
        (folder / "training.json").write_text(json.dumps(account))


def scores(
    model: Model, ranker: Ranker, queries: Sequence[str], documents: Sequence[str]
) -> Floats32:
    """Scores of pairs of texts, similar lengths together; shaped (pairs,)."""
    torch = models_package("torch")
    lengths = [len(text) for text in documents]
    # batches of like lengths need little padding
    longest_first = np.argsort(lengths, kind="stable")[::-1]
    pair_scores = np.empty(len(documents), dtype=np.float32)
    size = ranker.batch or _BATCH
    for start in range(0, len(documents), size):
        rows = longest_first[start : start + size]
        batch_queries = [queries[row] for row in rows]
        batch_documents = [documents[row] for row in rows]
        with torch.inference_mode():
            batch_scores = relevance(
                model, batch_queries, batch_documents, ranker.length, ranker.precision
            )
        pair_scores[rows] = batch_scores.cpu().numpy()
    return pair_scores


def scorer(
    folders: Sequence[Path],
    ranker: Ranker,
    queries: Sequence[str],
    model_of_query: Integers,
    distinct: Sequence[str],
    scored_pairs: Path,
) -> Callable[[Any, list[str]], Floats]:
    """What scores the best texts of BM25 by trained models.

    As a table of queries and texts, -inf for the other texts. ``folders``: of the models, which
    ``model_of_query`` numbers. ``distinct``: all texts, of which the scorer takes some by their
    places. ``scored_pairs``: beginning of the files that keep scores, some queries in each, so
    that no pair is scored twice.
    """
    models = [load_model(folder, device=ranker.device) for folder in folders]

    def score(places: Any, texts: list[str]) -> Floats:
        bm25 = rankers.bm25_scores(queries, texts)
        candidates = best_columns(bm25, ranker.candidates)
        table = np.full(bm25.shape, -np.inf)
        progress = tqdm(range(0, len(queries), BLOCK), desc=scored_pairs.name, mininterval=10)
        for start in progress:
            block = candidates[start : start + BLOCK]
            rows = np.arange(start, start + len(block)).repeat(block.shape[1])
            columns = block.ravel()
            pairs = pd.DataFrame(
                {"query": rows, "column": columns, "text": np.asarray(places)[columns]}
            )
            path = scored_pairs.with_name(f"{scored_pairs.name}-{start:07d}.parquet")
            scored = pairs.merge(_with_scores(pairs[["query", "text"]], path))
            table[scored["query"], scored["column"]] = scored["score"]
        return table

    def _with_scores(pairs: pd.DataFrame, path: Path) -> pd.DataFrame:
        """Scores of pairs, from a file where it has them; the file keeps all."""
        scored = pairs.head(0).assign(score=0.0)
        # a run was interrupted, or the other world has some of the pairs too
        if path.is_file():
            scored = pd.read_parquet(path)
        unscored = pairs.drop_duplicates().merge(scored, how="left")
        unscored = unscored[unscored["score"].isna()]
        for number, of_model in unscored.groupby(model_of_query[unscored["query"]]):
            unscored.loc[of_model.index, "score"] = scores(
                models[number],
                ranker,
                [queries[row] for row in of_model["query"]],
                [distinct[place] for place in of_model["text"]],
            )
        if len(unscored):
            scored = pd.concat([scored, unscored], ignore_index=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_files({path: scored})
        return scored

    return score
