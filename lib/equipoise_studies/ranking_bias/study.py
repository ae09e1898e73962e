"""What chapter 4 is run on: query sets, rankers and their runs, as a config names them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd

from equipoise.files import read_text
from equipoise.loaders.documents import document_files, stream_documents
from equipoise.loaders.trec import read_qrels
from equipoise.problems import Problems, shown
from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_studies.config import ChapterConfig, NamedFile, settings
from equipoise_studies.ranking_bias import data
from equipoise_studies.ranking_bias.data import BiasCollection
from equipoise_studies.recording import read_settings

NOTEBOOK = "thesis_ch4_ranking_bias"


@settings
class QuerySet:
    """A collection of `data.COLLECTIONS` by its name, or one of the reader's own.

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
        collection = (self.documents is None) == bool(self.ir_datasets)  # one of the two
        own = [self.queries is not None, self.qrels is not None, collection, bool(self.about)]
        if any(own) and not all(own):
            raise ValueError(
                "a collection of one's own names queries, qrels, documents or ir_datasets, and its about"
            )
        if not any(own) and self.collection not in data.COLLECTIONS:
            raise ValueError(
                f"no collection {self.collection!r}; there are {', '.join(data.COLLECTIONS)}, or one's own"
            )

    def load(self) -> BiasCollection:
        """The collection, with a start of a pass over its documents."""
        if self.queries is None or self.qrels is None:
            return data.collection(self.collection)
        queries = _read_queries(self.queries)
        qrels = read_qrels(self.qrels)
        judged = qrels[qrels["topic"].isin(queries["query"])].reset_index(drop=True)
        source = self.documents or self.ir_datasets
        return BiasCollection(
            self.collection, queries, judged, lambda: stream_documents(source), self.about
        )

    def files(self) -> list[Path]:
        """Its own files."""
        documents = [] if self.documents is None else document_files(self.documents)
        return [path for path in (self.queries, self.qrels, *documents) if path is not None]


@settings
class Training:
    """How a cross-encoder is trained, on each half of a query set for the other half; a half has a model of its own.

    ``queries``: the query set. Other query sets are ranked by the model of its first half.
    ``rate``: of learning.
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
        if data.WORLDS[0] not in self.worlds or set(self.worlds) - set(data.WORLDS):
            raise ValueError(f"worlds are {' and '.join(data.WORLDS)}, the first one always")
        if (self.kind == "cross-encoder") != (self.training is not None):
            raise ValueError("a cross-encoder, and no other kind, has a training")
        if (self.kind not in ("bm25", "run files")) != bool(self.model):
            raise ValueError(f"{self.kind} has {'a model' if self.model == '' else 'no model'}")

    def stated(self) -> dict[str, Any]:
        """What a record states of it: the settings that its runs depend on, and what it is in words."""
        names = ["kind", "about"]
        names += ["model", "precision", "length"] if self.model else []
        names += ["candidates"] if self.kind == "cross-encoder" else []
        names += ["training"] if self.training is not None else []
        return {name: value for name, value in asdict(self).items() if name in names}


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
        if len({*map(self.called, self.rankers)}) < len(self.rankers):
            raise ValueError("two rankers have one name")
        if wrong := {one.training.queries for one in self.rankers.values() if one.training} - set(
            self.query_sets
        ):
            raise ValueError(
                f"a cross-encoder is trained on QS1 or QS2, not on {', '.join(sorted(wrong))}"
            )

    def called(self, ranker: str) -> str:
        """What the report calls a ranker."""
        return self.rankers[ranker].name or ranker

    def compared(self, table: pd.DataFrame, column: str) -> dict[str, Any]:
        """What `Report.table` takes: a table indexed by query set and run, whose printed rows ``column`` names."""
        ours, keys = table.reset_index(), ["queries", "run"]
        if self.stands_for == "thesis":
            rows = printed_table(f"thesis/table-4.{1 if column == 'method' else 2}")[column]
            names = {self.called(key): ranker.printed for key, ranker in self.rankers.items()}
            short = {
                name: row
                for name in names.values()
                for row in rows
                if name and name.split()[0] == row
            }
            ours[column] = [short.get(names[run], names[run]) or run for run in ours["run"]]
            keys = ["queries", column]
        return {"ours": ours, "keys": keys, "basis": self.basis, "tolerance": self.tolerance}

    def sets(self) -> dict[str, BiasCollection]:
        """The collection of each query set."""
        return {label: chosen.load() for label, chosen in self.query_sets.items()}

    def file(self, label: str, what: str) -> Path:
        """A recorded file of a query set, noted as used."""
        path = self.record / f"{self.query_sets[label].collection}_{what}"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path.name} is not recorded: equipoise study ranking_bias makes it"
            )
        if path.is_relative_to(project.root()):
            project.note(path.relative_to(project.root()).as_posix(), project.sha256(path))
        return path

    def settings(self, label: str) -> dict[str, Any]:
        """What is stated of the record of a query set."""
        return read_settings(self.file(label, "settings.json"))

    def runs(self) -> pd.DataFrame:
        """Recorded runs on every query set, which column ``queries`` names, the rankers in the config's order."""
        frames = {
            label: data.read_recorded_runs(self.file(label, "runs.tsv.gz"))
            for label in self.query_sets
        }
        runs = pd.concat(frames, names=["queries"]).reset_index("queries")
        place = {key: number for number, key in enumerate(self.rankers)}
        runs = runs[runs["run"].isin(place)].sort_values(
            "run", key=lambda keys: keys.map(place), kind="stable"
        )
        return runs.assign(run=runs["run"].map(self.called)).reset_index(drop=True)


def _read_queries(path: Path) -> pd.DataFrame:
    problems, rows = Problems(), []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        key, tab, text = line.partition("\t")
        if line.strip() and not (tab and key.strip() and text.strip()):
            problems.add(path, number, None, shown(line), "an id, a tab and a text")
        elif line.strip():
            rows.append((number, key.strip(), text.strip()))
    table = pd.DataFrame(rows, columns=["line", "query", "text"])
    problems.add_repeats(path, table, ["query"], "query", "each query once")
    if not rows and not problems:
        problems.add(path, None, None, "no query", "an id, a tab and a text on each line")
    problems.refuse()
    return table.drop(columns="line").astype("str")
