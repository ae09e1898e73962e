"""Make the derived data of chapter 2 from CSFCube, CISI and CACM, or SciDocs.

    python data/facts/query_by_example/make.py [--config FILE] [--output FOLDER]

Without a config it makes every committed file of this folder, with the same bytes. With one, it
makes the files of the config's collection, in the config's folder ``derived``. Upstream files come
from the folder that the config names, from the mirror (EQUIPOISE_MIRROR), or from their URLs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from equipoise_compendium import project, registry
from equipoise_studies.query_by_example import systems
from equipoise_studies.query_by_example.data import (
    PAIR,
    PREFIXES,
    Study,
    read_study,
)
from equipoise_studies.query_by_example.texts import FACETS, SCIDOCS_TASKS, Fetch, load, text_of


def load_specter(fetch: Fetch) -> pd.DataFrame:
    """Load the negated distances that CSFCube publishes: ``task, query, document, score``."""
    rows = []
    for facet in FACETS:
        name = f"test-pid2pool-csfcube-specter-{facet}-ranked.json"
        path = fetch("csfcube", f"eval_scripts/sample_ranked_pools/{name}")
        for query, pool in json.loads(path.read_text(encoding="utf-8")).items():
            for document, distance in pool:
                rows.append((facet, query, document, -float(distance)))
    return pd.DataFrame(rows, columns=[*PAIR, "score"])


# --- files ----------------------------------------------------------------------------------------


def in_table_order(table: pd.DataFrame) -> pd.DataFrame:
    """Sort rows, with SciDocs's tasks in the order of the thesis's tables."""
    places = {task: place for place, task in enumerate(SCIDOCS_TASKS)}
    place = table["task"].map(places).fillna(len(places))
    columns = [name for name in (*PAIR, "fold", "part") if name in table]
    ordered = table.assign(place=place).sort_values(["place", *columns], ignore_index=True)
    return ordered.drop(columns="place")


def make(study: Study, output: Path) -> pd.DataFrame:
    """Write the files of a study's collection; return its rows of ``sources.csv``."""
    kind, folder = study.collection.kind, study.collection.folder
    sources: dict[str, str] = {}  # sha256 of each upstream file

    def fetch(item: str, name: str) -> Path:
        if folder is not None:
            return folder / name
        path = registry.fetch(item, name)
        sources[f"registry:{item}/{name}"] = project.sha256(path)
        return path

    dataset = load(study, fetch).ranked()
    judged = dataset.judgements
    used = set(judged["query"]) | set(judged["document"])
    papers = dataset.papers
    if kind == "scidocs":  # the committed files list all papers of the other collections
        papers = papers[papers["document"].isin(used)]
    texts = text_of(papers, study.collection.text)
    counts = systems.term_counts(texts, systems.ANALYSERS)
    judgements = in_table_order(judged).astype({"grade": "int8"})
    tables = {
        "judgements.parquet": judgements,
        "splits.csv": in_table_order(dataset.splits),
        "paper_lengths.parquet": systems.paper_lengths(texts, systems.ANALYSERS),
    }
    if kind == "csfcube":
        pairs = judged[["query", "document"]].drop_duplicates()
        pairs = pairs.sort_values(["query", "document"], ignore_index=True)
        shared, statistics = systems.shared_terms(counts, pairs)
        tables |= {"shared_terms.parquet": shared, "term_statistics.parquet": statistics}
    else:
        tables["term_counts.parquet"] = counts
    sources_of = {name: dict(sources) for name in tables}
    if kind == "csfcube":
        specter = judgements[PAIR].merge(load_specter(fetch), on=PAIR, validate="one_to_one")
        tables["specter.parquet"] = specter
        sources_of["specter.parquet"] = sources

    output.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, table in tables.items():
        path = output / f"{PREFIXES[kind]}{name}"
        if path.suffix == ".csv":
            table.to_csv(path, index=False, lineterminator="\n")
        else:
            table.to_parquet(path, index=False, compression="zstd")
        rows += [(path.name, source, digest) for source, digest in sources_of[name].items()]
        print(f"{path}: {len(table):,} rows")
    return pd.DataFrame(rows, columns=["table", "source", "sha256"])


def main() -> None:
    """Make the tables that the options name."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--config", help="a YAML file, or a name in data/studies/query_by_example")
    parser.add_argument("--output", type=Path, help="folder of the files")
    options = parser.parse_args()
    configs = [options.config] if options.config else ["replica", "replica_links"]
    sources, output = [], Path()
    for config in configs:
        study = read_study(config)
        output = options.output or study.derived
        sources.append(make(study, output))
    if not options.config:
        table = pd.concat(sources).sort_values(["table", "source"])
        table.to_csv(output / "sources.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
