"""What chapter 4 is run on: query sets, rankers and their runs, as a config names them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd

from equipoise.files import read_text
from equipoise.loaders.documents import document_files, stream_documents
from equipoise.loaders.trec import read_qrels
from equipoise.options import Tokens
from equipoise.problems import Problems, shown
from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_studies.config import ChapterConfig, NamedFile, settings
from equipoise_studies.ranking_bias import data, upstream
from equipoise_studies.ranking_bias.data import CountedCollection
from equipoise_studies.ranking_bias.upstream import BiasCollection
from equipoise_studies.recording import read_settings

NOTEBOOK = "thesis_ch4_ranking_bias"


@settings
class QuerySet:
    """A collection of `upstream.COLLECTIONS` by its name, or one of the reader's own.

    ``queries``: lines of an id, a tab and a text. ``qrels``: of TREC. ``documents``: a file or
    folder, as `stream_documents` reads it, or else ``ir_datasets``: a name. ``about``: what it is,
    in words.
    """

    collection: str
    queries: NamedFile | None = None
    qrels: NamedFile | None = None
    documents: NamedFile | None = None
    ir_datasets: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        # documents come from a place of one's own or from ir_datasets, not from both
        one_source = (self.documents is None) == bool(self.ir_datasets)
        stated = [self.queries is not None, self.qrels is not None, one_source, bool(self.about)]
        if any(stated) and not all(stated):
            raise ValueError(
                "a collection of one's own names queries, qrels, documents or ir_datasets, "
                "and its about"
            )
        if not any(stated) and self.collection not in upstream.COLLECTIONS:
            names = ", ".join(upstream.COLLECTIONS)
            raise ValueError(f"no collection {self.collection!r}; there are {names}, or one's own")

    def load(self) -> BiasCollection:
        """The collection with its texts."""
        if self.queries is None or self.qrels is None:
            return upstream.collection(self.collection)
        queries = _read_queries(self.queries)
        qrels = read_qrels(self.qrels)
        judged = qrels[qrels["topic"].isin(queries["query"])].reset_index(drop=True)
        source = self.documents or self.ir_datasets
        return BiasCollection(
            self.collection, queries, judged, lambda: stream_documents(source), self.about
        )

    @property
    def has_facts(self) -> bool:
        """Whether it is one of the collections of which facts are committed."""
        return self.queries is None and self.collection in data.WITH_FACTS

    def files(self) -> list[Path]:
        """The files that the config names for it."""
        paths = [path for path in (self.queries, self.qrels) if path is not None]
        if self.documents is not None:
            paths += document_files(self.documents)
        return paths


@settings
class Training:
    """How a cross-encoder is trained: on each half of a query set, for the other half.

    Each half has a model of its own. ``queries``: the query set. Other query sets are ranked by the
    model of its first half. ``rate``: of learning.
    """

    queries: str
    epochs: int = 1
    batch: int = 16
    rate: float = 5e-5
    seed: int = 0


@settings
class Ranker:
    """A ranker that is run here, by kind, or one whose run files are read.

    ``model``: its checkpoint, a folder or a name below the folder of models. ``length``: tokens
    after which a text is cut. ``candidates``: BM25's best documents, which a cross-encoder
    re-ranks. ``training``: of a cross-encoder. ``runs``: TREC run files, with ``{world}`` and
    ``{queries}`` in their path; ``recipe``: how to make them. ``worlds``: those it ranks, the
    original one at least. ``name``: what the report calls it, its key by default. ``printed``: its
    row in Table 4.1.
    """

    kind: Literal["bm25", "splade", "dense", "cross-encoder", "run files"]
    about: str
    model: str = ""
    precision: Literal["float32", "bfloat16"] = "float32"
    length: int = 256
    candidates: int = 100
    training: Training | None = None
    runs: NamedFile | None = None
    worlds: tuple[str, ...] = data.WORLDS
    recipe: str = ""
    name: str = ""
    printed: str = ""

    def __post_init__(self) -> None:
        if (self.kind == "run files") != (self.runs is not None):
            raise ValueError("run files, and no other kind, have runs")
        # there is no counterfactual without what it is held against
        original = data.WORLDS[0]
        if original not in self.worlds or set(self.worlds) - set(data.WORLDS):
            raise ValueError(f"worlds are {' and '.join(data.WORLDS)}, the first one always")
        if (self.kind == "cross-encoder") != (self.training is not None):
            raise ValueError("a cross-encoder, and no other kind, has a training")
        needs_model = self.kind not in ("bm25", "run files")
        if needs_model and not self.model:
            raise ValueError(f"{self.kind} has a model")
        if self.model and not needs_model:
            raise ValueError(f"{self.kind} has no model")

    def stated(self) -> dict[str, Any]:
        """What a record states of it: what its runs depend on, and what it is in words."""
        names = ["kind", "about"]
        if self.model:
            names += ["model", "precision", "length"]
        if self.kind == "cross-encoder":
            names += ["candidates"]
        if self.training is not None:
            names += ["training"]
        settings = asdict(self)
        return {name: settings[name] for name in settings if name in names}


@settings
class Study(ChapterConfig):
    """A run of chapter 4 (thesis sections 4.4 and 4.5).

    ``baseline``: the ranker that others are tested against. ``depth``: documents of each query that
    are recorded. ``record``: folder of what was recorded. ``tolerance``: how far a cell may lie
    from the printed one.
    """

    chapter: ClassVar[str] = "ranking_bias"
    query_sets: dict[str, QuerySet]
    rankers: dict[str, Ranker]
    baseline: str
    record: NamedFile
    depth: int = 20
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if set(self.query_sets) != {"QS1", "QS2"}:
            raise ValueError("the query sets are QS1 and QS2")
        if self.baseline not in self.rankers:
            raise ValueError(
                f"the baseline {self.baseline} is none of the rankers {', '.join(self.rankers)}"
            )
        # names label the rows of the tables
        names = {self.called(key) for key in self.rankers}
        if len(names) < len(self.rankers):
            raise ValueError("two rankers have one name")
        trainings = [ranker.training for ranker in self.rankers.values() if ranker.training]
        unknown = {training.queries for training in trainings} - set(self.query_sets)
        if unknown:
            raise ValueError(
                f"a cross-encoder is trained on QS1 or QS2, not on {', '.join(sorted(unknown))}"
            )

    def called(self, ranker: str) -> str:
        """What the report calls a ranker."""
        return self.rankers[ranker].name or ranker

    def compared(self, table: pd.DataFrame, column: str) -> dict[str, Any]:
        """What `Report.table` takes: a table indexed by query set and run.

        ``column``: the printed column that names the rankers.
        """
        # a replica's rankers are not the printed ones, so its cells are compared with none
        ours = table.reset_index()
        keys = ["queries", "run"]
        if self.stands_for == "thesis":
            ours[column] = ours["run"].map(self._printed_rows(column)).fillna(ours["run"])
            keys = ["queries", column]
        return {"ours": ours, "keys": keys, "basis": self.basis, "tolerance": self.tolerance}

    def _printed_rows(self, column: str) -> dict[str, str]:
        """The printed row of each ranker, by what the report calls it; those that have one.

        Table 4.2 shortens names: MiniLM stands for the MiniLM KD of Table 4.1.
        """
        artefact = "thesis/table-4.1" if column == "method" else "thesis/table-4.2"
        printed = set(printed_table(artefact)[column])
        rows = {}
        for key, ranker in self.rankers.items():
            if ranker.printed:
                first_word = ranker.printed.split()[0]
                rows[self.called(key)] = first_word if first_word in printed else ranker.printed
        return rows

    # --- what is recorded, and the collections

    def collections(self, tokens: Tokens) -> dict[str, CountedCollection]:
        """The counted collection of each query set.

        From its facts, or else from its texts, which are read for that.
        """
        collections = {}
        for label, query_set in self.query_sets.items():
            if query_set.has_facts:
                collections[label] = data.read_counted(query_set.collection, tokens)
            else:
                words = self.substituted_words(label)
                collections[label] = data.counted(query_set.load(), words, tokens)
        return collections

    def file(self, label: str, name: str) -> Path:
        """A recorded file of a query set, noted as used."""
        path = self.record / f"{self.query_sets[label].collection}_{name}"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path.name} is not recorded: equipoise study ranking_bias makes it"
            )
        # a record elsewhere has no name that is the same on every machine
        if path.is_relative_to(project.root()):
            project.note(path.relative_to(project.root()).as_posix(), project.sha256(path))
        return path

    def settings(self, label: str) -> dict[str, Any]:
        """What is stated of the record of a query set."""
        return read_settings(self.file(label, "settings.json"))

    def account(self, label: str) -> dict[str, int]:
        """What the recorder counted when it made the counterfactual of a collection."""
        return dict(self.settings(label)["account"])

    def substitution(self, label: str) -> pd.DataFrame:
        """What became of each gendered term.

        Columns ``term, counterpart, outcome, occurrences``.
        """
        return pd.read_csv(
            self.file(label, "substitution.tsv"),
            sep="\t",
            dtype={"term": "str", "counterpart": "str"},
            keep_default_na=False,
        )

    def substituted_words(self, label: str) -> pd.Series:
        """Words that were written in their counterpart somewhere in a collection."""
        substitution = self.substitution(label)
        return substitution.loc[substitution["outcome"] == "substituted", "term"]

    def runs(self) -> pd.DataFrame:
        """Recorded runs on every query set, which column ``queries`` names.

        The rankers stand in the config's order, under the names of the report.
        """
        recorded = {}
        for label in self.query_sets:
            recorded[label] = data.read_recorded_runs(self.file(label, "runs.tsv.gz"))
        runs = pd.concat(recorded, names=["queries"]).reset_index("queries")

        # a record may hold rankers that the config does not name
        place = {key: number for number, key in enumerate(self.rankers)}
        runs = runs[runs["run"].isin(place)]
        runs = runs.sort_values("run", key=lambda keys: keys.map(place), kind="stable")
        return runs.assign(run=runs["run"].map(self.called)).reset_index(drop=True)


def _read_queries(path: Path) -> pd.DataFrame:
    """Queries of one's own, an id, a tab and a text on each line: columns ``query, text``."""
    line_format = "an id, a tab and a text"
    problems = Problems()
    rows = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        query, tab, text = line.partition("\t")
        if not line.strip():
            continue
        if tab and query.strip() and text.strip():
            rows.append((number, query.strip(), text.strip()))
        else:
            problems.add(path, number, None, shown(line), line_format)
    table = pd.DataFrame(rows, columns=["line", "query", "text"])
    problems.add_repeats(path, table, ["query"], "query", "each query once")
    if not rows and not problems:
        problems.add(path, None, None, "no query", f"{line_format} on each line")
    problems.refuse()
    return table.drop(columns="line").astype("str")
