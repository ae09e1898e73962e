"""Config of chapter 4, and the data that it names: term counts, judgements and rankings.

Nothing here reads a text. ``data/facts/ranking_bias/make.py`` counts the terms of collections, and
``data/outputs/ranking_bias/record.py`` records rankings; both read the same config.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, PositiveInt
from scipy import sparse

from equipoise.measures.ranking_bias import TermCounts, TermGroups
from equipoise.options import Tokens
from equipoise_studies.configs import ConfigPath, Settings, read_config

SHARED_DOCUMENTS = {
    "msmarco-dl": "msmarco-pool",
    "msmarco-dl-sensitive": "msmarco-pool",
    "msmarco-qs1": "msmarco-passage",
    "msmarco-qs2": "msmarco-passage",
}
"""Name of the documents that several collections share."""


# --- config ---------------------------------------------------------------------------------------


Table = Literal["4.1", "4.2"]


class QuerySet(Settings):
    """Queries with the collection that they search.

    ``collection``: the name of a public collection that ``make.py`` reads. For your own, also give
    ``queries`` (lines of an id, a tab and a text), ``qrels`` (TREC) and ``documents`` (TSV or JSON
    Lines). ``relevant``: the lowest relevant grade. ``tables``: published tables that show it.
    ``printed``: the query set of the thesis that it is compared with, by default its own name.
    ``about``: its queries and documents. ``shows``: what it can and cannot show.
    """

    collection: str
    about: str = ""
    shows: str = ""
    relevant: PositiveInt = 1
    tables: tuple[Table, ...] = ("4.1", "4.2")
    printed: str = ""
    queries: ConfigPath | None = None
    qrels: ConfigPath | None = None
    documents: ConfigPath | None = None

    @property
    def document_set(self) -> str:
        """Name of the documents, which several collections may share."""
        return SHARED_DOCUMENTS.get(self.collection, self.collection)


class Ranker(Settings):
    """A ranker: a public run, or rankings that ``record.py`` records.

    ``name``: its name in the report, by default its key. ``printed``: its row in Table 4.1.
    ``query_sets``: those it ranks, by default all. ``in_claims``: whether claims count it.
    ``public``: the public run of each query set. ``rounded``: whether equal scores of a public run
    come from rounding and are not ties. ``record``: settings that ``record.py`` reads.
    """

    about: str
    name: str = ""
    printed: str = ""
    query_sets: tuple[str, ...] = ()
    in_claims: bool = True
    public: dict[str, str] = Field(default_factory=dict)
    rounded: bool = False
    record: Any = None


class Study(Settings):
    """The config of chapter 4 (thesis sections 4.4 and 4.5).

    ``facts``, ``outputs``: folders of derived data and of recorded rankings. ``baseline``: the
    ranker that others are tested against. ``depth``: documents recorded per query. ``record``:
    settings that ``record.py`` reads.
    """

    query_sets: dict[str, QuerySet]
    rankers: dict[str, Ranker]
    baseline: str
    facts: ConfigPath = Path("data/facts/ranking_bias")
    outputs: ConfigPath = Path("data/outputs/ranking_bias")
    depth: PositiveInt = 20
    record: Any = None

    @classmethod
    def read(cls, name: str) -> Self:
        """Read a config: a name in ``data/studies/ranking_bias``, or a YAML file."""
        study = read_config(cls, "ranking_bias", name)
        if study.baseline not in study.rankers:
            raise ValueError(f"{Path(name).name}: baseline: no ranker {study.baseline!r}")
        return study

    def sets_in(self, table: Table) -> list[str]:
        """Return the query sets that the report shows in a published table."""
        return [label for label, chosen in self.query_sets.items() if table in chosen.tables]

    def printed_set(self, label: str) -> str:
        """Return the query set of the thesis that a query set is compared with."""
        return self.query_sets[label].printed or label

    def called(self, ranker: str) -> str:
        """Return the name of a ranker in the report."""
        return self.rankers[ranker].name or ranker

    def rankers_on(self, label: str) -> dict[str, Ranker]:
        """Return the rankers of a query set."""
        rankers = {}
        for key, ranker in self.rankers.items():
            labels = ranker.query_sets or tuple(ranker.public) or tuple(self.query_sets)
            if label in labels:
                rankers[key] = ranker
        return rankers

    def recorded_on(self, label: str) -> dict[str, Ranker]:
        """Return the rankers of a query set that ``record.py`` runs."""
        rankers = self.rankers_on(label)
        return {key: ranker for key, ranker in rankers.items() if not ranker.public}

    def in_thesis(self) -> dict[str, str]:
        """Return the published names of rankers that the thesis also has, by name in the report."""
        rankers = self.rankers.items()
        return {self.called(key): ranker.printed for key, ranker in rankers if ranker.printed}

    def in_claims(self) -> set[str]:
        """Return the names of the rankers that claims count, and of the baseline."""
        return {self.called(key) for key, ranker in self.rankers.items() if ranker.in_claims}

    def described(self, labels: Sequence[str]) -> str:
        """Name the collections of some query sets, with the query set of the thesis for each."""
        parts = []
        for label in labels:
            runs = "our runs" if self.recorded_on(label) else "public runs"
            collection = self.query_sets[label].collection
            parts.append(f"{collection} in place of {self.printed_set(label)} ({runs})")
        return ", ".join(parts)


# --- derived data ---------------------------------------------------------------------------------


@cache  # tables contain all collections, and are read for each of them
def read_table(folder: Path, name: str) -> pd.DataFrame:
    """Read a table of derived data; columns of CSV are text."""
    path = folder / name
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def gender_groups(study: Study, term_list: Literal["long", "short"] = "long") -> TermGroups:
    """Read a public term list: 326 words and first names (long), or 64 words (short)."""
    terms = read_table(study.facts, "terms.csv")
    terms = terms[terms["list"] == term_list]
    return TermGroups.from_pairs(zip(terms["term"], terms["group"], strict=True))


@dataclass(frozen=True, eq=False)
class Collection:
    """A collection without its texts.

    ``queries``: ids. ``qrels`` (columns topic, document, level). ``term_counts``: of the terms of
    both lists in each document. ``query_terms`` (columns query, term, occurrences): gendered words
    of the queries.
    """

    queries: pd.Series
    qrels: pd.DataFrame
    term_counts: TermCounts
    query_terms: pd.DataFrame


def read_collection(study: Study, label: str, tokens: Tokens = "word") -> Collection:
    """Read the derived data of the collection of a query set."""

    def rows(table: str, collection: str) -> pd.DataFrame:
        content = read_table(study.facts, table)
        return content[content["collection"] == collection].drop(columns="collection")

    name, document_set = study.query_sets[label].collection, study.query_sets[label].document_set
    queries = rows("queries.csv", name)["query"].reset_index(drop=True)
    qrels = rows("qrels.csv", document_set).astype({"level": int})
    qrels = qrels[qrels["topic"].isin(queries)].reset_index(drop=True)
    query_terms = rows("query_terms.csv", name).astype({"occurrences": int})

    documents = rows("documents.parquet", document_set)
    entries = rows("term_counts.parquet", document_set)
    terms = sorted(read_table(study.facts, "terms.csv")["term"].str.lower().unique())
    ids = pd.Index(documents["document"], name="document")
    cells = (ids.get_indexer(entries["document"]), pd.Index(terms).get_indexer(entries["term"]))
    counts = sparse.csr_array(
        sparse.coo_array((entries[tokens].astype("int32"), cells), shape=(len(ids), len(terms)))
    )
    # a term may occur in a document under another tokenisation only
    counts.eliminate_zeros()
    term_counts = TermCounts(ids, tuple(terms), counts, documents[tokens].to_numpy(np.int64))
    return Collection(queries, qrels, term_counts, query_terms)


# --- rankings -------------------------------------------------------------------------------------


def read_runs(study: Study) -> pd.DataFrame:
    """Read the rankings of every query set: columns queries, world, run, topic, document, ....

    Rankers are in the order of the config, under their names in the report.
    """
    runs = []
    for label, query_set in study.query_sets.items():
        if study.recorded_on(label):
            recorded = read_recorded(study.outputs, query_set.collection)
            # a file may contain rankers that the config does not name
            config_rows = recorded[recorded["run"].isin(study.recorded_on(label))]
            runs.append(config_rows.assign(queries=label))
        for key, ranker in study.rankers_on(label).items():
            if ranker.public:
                run = read_public_run(study, label, ranker)
                runs.append(run.assign(queries=label, world="original", run=key))
    table = pd.concat(runs)
    places = {key: place for place, key in enumerate(study.rankers)}
    table = table.sort_values("run", key=lambda keys: keys.map(places), kind="stable")
    return table.assign(run=table["run"].map(study.called)).reset_index(drop=True)


def read_recorded(outputs: Path, collection: str) -> pd.DataFrame:
    """Read the recorded rankings of a collection: world, run, topic, document, rank, score."""
    path = outputs / f"{collection}_runs.tsv.gz"
    types = {"world": str, "run": str, "topic": str, "document": str, "rank": int, "score": float}
    runs = pd.read_csv(path, sep="\t", dtype=types, keep_default_na=False)
    if runs.columns.tolist() != list(types):
        raise ValueError(f"{path.name}, line 1: must be the columns {', '.join(types)}")
    if runs.duplicated(["world", "run", "topic", "document"]).any():
        raise ValueError(f"{path.name}: a document is twice in a ranking")
    return runs


def read_public_run(study: Study, label: str, ranker: Ranker) -> pd.DataFrame:
    """Read the top of a public run: columns run, topic, document, rank, score.

    Documents without a text are left out, and those after them move up.
    """
    runs = read_table(study.facts, "public_runs.parquet")
    queries = read_table(study.facts, "queries.csv")
    queries = queries[queries["collection"] == study.query_sets[label].collection]
    is_chosen = (runs["run"] == ranker.public[label]) & runs["topic"].isin(queries["query"])
    lists = runs[is_chosen & runs["text"]].drop(columns="text")
    if ranker.rounded:
        # ranks are exact where scores are rounded
        lists = lists.assign(score=-lists["rank"].astype(float))
    lists = lists.assign(rank=lists.groupby("topic", sort=False).cumcount() + 1)
    return top(lists, study.depth)


def top(run: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Return the top ``depth`` documents of each ranking, and all that tie with the last one."""
    last_score = run.groupby("topic", sort=False).head(depth).groupby("topic")["score"].min()
    return run[run["score"].to_numpy() >= last_score.reindex(run["topic"]).to_numpy()]


def missing_texts(study: Study, cutoff: int) -> pd.DataFrame:
    """Count documents without a text at the top ranks of each public run.

    Returns columns ``queries, run, ranks, without a text``.
    """
    queries = read_table(study.facts, "queries.csv")
    rows = []
    for label, query_set in study.query_sets.items():
        topics = queries.loc[queries["collection"] == query_set.collection, "query"]
        for key, ranker in study.rankers_on(label).items():
            if ranker.public:
                runs = read_table(study.facts, "public_runs.parquet")
                runs = runs[runs["rank"] <= cutoff]
                is_chosen = (runs["run"] == ranker.public[label]) & runs["topic"].isin(topics)
                missing = int((~runs[is_chosen]["text"]).sum())
                rows.append((label, study.called(key), cutoff * len(topics), missing))
    return pd.DataFrame(rows, columns=["queries", "run", "ranks", "without a text"])


def read_substitution(study: Study, label: str) -> pd.DataFrame:
    """Read the outcome for each gendered term: term, counterpart, outcome, occurrences."""
    collection = study.query_sets[label].collection
    path = study.outputs / f"{collection}_substitution.tsv"
    table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    return table.astype({"occurrences": int})


def read_settings(study: Study, label: str) -> dict[str, Any]:
    """Read the settings of recorded rankings, and counts of their counterfactual collections."""
    path = study.outputs / f"{study.query_sets[label].collection}_settings.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))
