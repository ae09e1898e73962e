"""What chapter 4 is run on: query sets, rankers and their runs, as a config names them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd

from equipoise.files import read_text
from equipoise.loaders.documents import document_files, stream_documents
from equipoise.loaders.trec import read_qrels
from equipoise.options import Count, NonNegative, Tokens
from equipoise.problems import Problems, shown
from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
from equipoise_studies.config import (
    ChapterConfig,
    Misfit,
    NamedFile,
    Names,
    Rate,
    Whole,
    nearest,
    settings,
    unknown_names,
)
from equipoise_studies.ranking_bias import data, upstream
from equipoise_studies.ranking_bias.data import CountedCollection
from equipoise_studies.ranking_bias.upstream import BiasCollection
from equipoise_studies.recording import read_settings
from equipoise_studies.systems import Device

NOTEBOOK = "thesis_ch4_ranking_bias"
_TABLES = {"method": "thesis/table-4.1", "model": "thesis/table-4.2"}
"""Printed tables, by the column that names the rankers."""

_TABLES_OF_SETS = ("4.1", "4.2")

OF_THESIS = {"QS1": "msmarco-qs1", "QS2": "msmarco-qs2"}
"""The collections of the thesis, by query set."""


@settings
class QuerySet:
    """A collection of `upstream.COLLECTIONS` by its name, or one of the reader's own.

    ``queries``: lines of an id, a tab and a text. ``qrels``: of TREC. ``documents``: a file or
    folder, as `stream_documents` reads it, or else ``ir_datasets``: a name. ``about``: what it is,
    in words. Of MS MARCO's collections each of these files may be named as well: it lies on this
    machine then. ``source``: where the files are had.

    ``relevant``: the grade from which a document is. ``tables``: the printed tables, and Figure 4.2
    with the first of them, in which the report has it. ``printed``: the query set of the thesis
    that it is set beside, its own name by default. ``shows``: what it can show and what not, in
    words, which the report repeats.
    """

    collection: str
    queries: NamedFile | None = None
    qrels: NamedFile | None = None
    documents: NamedFile | None = None
    ir_datasets: str = ""
    about: str = ""
    source: str = ""
    relevant: Count = 1
    tables: Names = _TABLES_OF_SETS
    printed: str = ""
    shows: str = ""

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        yield from unknown_names("tables", "table", self.tables, _TABLES_OF_SETS)
        if self.collection in upstream.PASSAGES:
            if self.ir_datasets or self.about:
                yield f"{self.collection} with ir_datasets or an about, which it has of itself"
            return
        # documents come from a place of one's own or from ir_datasets, not from both
        one_source = (self.documents is None) == bool(self.ir_datasets)
        stated = [self.queries is not None, self.qrels is not None, one_source, bool(self.about)]
        if any(stated) and not all(stated):
            wanted = "one that names queries, qrels, documents or ir_datasets, and its about"
            yield Misfit("", "a collection of one's own", wanted)
        if not any(stated) and self.collection not in upstream.COLLECTIONS:
            wanted = nearest(self.collection, upstream.COLLECTIONS)
            yield Misfit(
                "collection", f"no collection {self.collection!r}", f"{wanted}, or one's own"
            )

    @property
    def has_own_files(self) -> bool:
        """Whether a part of it lies on this machine, by the config."""
        return bool(self.ir_datasets) or bool(self.files())

    @property
    def is_downloaded(self) -> bool:
        """Whether ir_datasets may fetch a part of it, which no plan should cause."""
        if self.collection in upstream.PASSAGES:
            return self.qrels is None or self.documents is None
        return bool(self.ir_datasets)

    def load(self) -> BiasCollection:
        """The collection with its texts."""
        if not self.has_own_files:
            return upstream.collection(self.collection)
        queries = self.read_queries()
        qrels = upstream.msmarco_qrels() if self.qrels is None else read_qrels(self.qrels)
        judged = qrels[qrels["topic"].isin(queries["query"])].reset_index(drop=True)
        source = self.documents or self.ir_datasets or upstream.PASSAGES[self.collection]
        about = self.about or upstream.ABOUT[self.collection]
        return BiasCollection(
            self.collection, queries, judged, lambda: stream_documents(source), about
        )

    def read_queries(self) -> pd.DataFrame:
        """Its queries alone, for which no document is read: columns ``query, text``."""
        if self.queries is not None:
            return _read_queries(self.queries)
        if self.collection in upstream.PASSAGES:
            return upstream.msmarco_queries(self.collection)
        return upstream.collection(self.collection).queries

    @property
    def has_facts(self) -> bool:
        """Whether it is one of the collections of which facts are committed."""
        return not self.has_own_files and self.collection in data.WITH_FACTS

    def files(self) -> list[Path]:
        """The files that the config names for it."""
        paths = [path for path in (self.queries, self.qrels) if path is not None]
        return paths + self.files_of_documents()

    def files_of_documents(self) -> list[Path]:
        """The files that the config names for its documents."""
        return [] if self.documents is None else document_files(self.documents)


@settings
class Training:
    """How a cross-encoder is trained: on each half of a query set, for the other half.

    Each half has a model of its own. ``queries``: the query set. Other query sets are ranked by the
    model of its first half. ``rate``: of learning.
    """

    queries: str
    epochs: Count = 1
    batch: Count = 16
    rate: Rate = 5e-5
    seed: int = 0


@settings
class Ranker:
    """A ranker that is run here, by kind, or one whose run files are read.

    ``model``: its checkpoint, a folder or a name below the folder of models. ``length``: tokens
    after which a text is cut. ``device``, ``batch``: where it runs, and texts at a time, 0 for
    what is usual; neither moves a score but in its last digits. ``candidates``: BM25's best
    documents, which a cross-encoder re-ranks. ``training``: of a cross-encoder. ``runs``: TREC run
    files, with ``{world}`` and ``{queries}`` in their path. ``worlds``: those it ranks, the
    original one at least. ``name``: what the report calls it, its key by default. ``printed``: its
    row in Table 4.1. ``query_sets``: those it ranks, all of them by default.

    Of public runs, which are facts: ``public``: the run of each query set; ``rounded``: its scores
    are, so that equal ones are no ties and its ranks count. ``in_claims``: whether findings about
    rankers by pretrained language models count it; the baseline never is.

    How to make run files: ``recipe``, in which `record.recipes.PLACES` stand in braces; ``index``:
    the ready one of the original collection; ``source``: where this and the model are had;
    ``billions``: of the weights of a model that re-ranks, for the estimate of time.
    """

    kind: Literal["bm25", "splade", "dense", "cross-encoder", "run files", "public runs"]
    about: str
    model: str = ""
    precision: Literal["float32", "bfloat16"] = "float32"
    length: Count = 256
    device: Device = "cpu"
    batch: Whole = 0
    candidates: Count = 100
    training: Training | None = None
    runs: NamedFile | None = None
    worlds: Names = data.WORLDS
    recipe: str = ""
    index: str = ""
    source: str = ""
    billions: NonNegative = 0.0
    name: str = ""
    printed: str = ""
    query_sets: Names = ()
    public: dict[str, str] = field(default_factory=dict)
    rounded: bool = False
    in_claims: bool = True

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        if (self.kind == "public runs") != bool(self.public):
            yield "public runs, and no other kind, name a run for each query set (public)"
        if self.public and (self.query_sets or self.worlds != data.WORLDS[:1]):
            wanted = "worlds: [original] and no query_sets, which public names"
            yield Misfit("public", "a public run with other worlds or query sets", wanted)
        if (self.kind == "run files") != (self.runs is not None):
            yield Misfit(
                "runs",
                f"those of a ranker of kind {self.kind}",
                "run files, and no other kind, have runs",
            )
        if self.runs is not None:
            for place in ("{world}", "{queries}"):
                several = place == "{queries}" or len(self.worlds) > 1
                if several and place not in str(self.runs):
                    yield Misfit("runs", f"no {place} in {self.runs.name}", "a file for each")
        # there is no counterfactual without what it is held against
        original = data.WORLDS[0]
        if original not in self.worlds or set(self.worlds) - set(data.WORLDS):
            found = ", ".join(self.worlds) or "none"
            yield Misfit("worlds", found, f"{' and '.join(data.WORLDS)}, the first one always")
        if (self.kind == "cross-encoder") != (self.training is not None):
            yield "a cross-encoder, and no other kind, has a training"
        needs_model = self.kind not in ("bm25", "run files", "public runs")
        if needs_model and not self.model:
            yield f"{self.kind} has a model"
        if self.model and not needs_model:
            yield f"{self.kind} has no model"

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
    are recorded. ``record``: folder of what was recorded. ``processes``: that substitute words in
    documents, 0 for one on each core. ``index_recipe``: how an ``{index}`` is made of the
    counterfactual ``{documents}``, for the recipes of run files. ``tolerance``: how far a cell may
    lie from the printed one.
    """

    chapter: ClassVar[str] = "ranking_bias"
    query_sets: dict[str, QuerySet]
    rankers: dict[str, Ranker]
    baseline: str
    record: NamedFile
    depth: Count = 20
    processes: Whole = 0
    index_recipe: str = ""
    tolerance: NonNegative = 0.0

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        if not set(self.query_sets) >= {"QS1", "QS2"}:
            found = ", ".join(self.query_sets) or "none"
            yield Misfit("query_sets", found, "QS1 and QS2 are among the query sets")
        if self.baseline not in self.rankers:
            found = f"the baseline {self.baseline} is none of the rankers {', '.join(self.rankers)}"
            yield Misfit("baseline", found, nearest(self.baseline, self.rankers))
        yield from self._misfits_of_query_sets()
        trainings = [ranker.training for ranker in self.rankers.values() if ranker.training]
        queries = [training.queries for training in trainings]
        yield from unknown_names("rankers", "query set to train on,", queries, self.query_sets)
        yield from self._misfits_of_rows()
        if self.stands_for == "thesis":
            yield from self._misfits_of_thesis()

    def _misfits_of_query_sets(self) -> Iterator[Misfit]:
        """Rankers of query sets that are not there, and query sets without a baseline."""
        for key, ranker in self.rankers.items():
            labels = [*ranker.query_sets, *ranker.public]
            yield from unknown_names(f"rankers.{key}", "query set", labels, self.query_sets)
        if self.baseline not in self.rankers:
            return
        baseline = self.called(self.baseline)
        for label in self.query_sets:
            # names label the rows of the tables
            names = [self.called(key) for key in self.rankers_on(label)]
            if len(set(names)) < len(names):
                yield Misfit("rankers", f"two rankers of {label} have one name", "a name for each")
            if baseline not in names:
                wanted = f"a ranker called {baseline}, as the baseline is"
                yield Misfit(f"query_sets.{label}", ", ".join(names) or "no ranker", wanted)

    def _misfits_of_rows(self) -> Iterator[Misfit]:
        """Rows of Table 4.1 that are not there, or that two rankers stand for."""
        rows = [ranker.printed for ranker in self.rankers.values() if ranker.printed]
        printed_rows = dict.fromkeys(printed_table("thesis/table-4.1")["method"])
        yield from unknown_names("rankers", "row of Table 4.1,", rows, printed_rows)
        for row in printed_rows:
            if rows.count(row) > 1:
                yield Misfit("rankers", f"two for the row {row}", "one for each row of Table 4.1")

    def _misfits_of_thesis(self) -> Iterator[Misfit]:
        """Collections and rankers that are not the thesis's, whose numbers are no replica's."""
        for label, name in OF_THESIS.items():
            query_set = self.query_sets.get(label)
            if query_set is not None and query_set.collection != name:
                found = f"{query_set.collection}, which is not the thesis's {label}"
                yield Misfit(f"query_sets.{label}", found, f"{name}, or stands_for: replica")
        for key, ranker in self.rankers.items():
            if not ranker.printed:
                wanted = "its row of Table 4.1 (printed), or stands_for: replica"
                yield Misfit(f"rankers.{key}", "a ranker that is not the thesis's", wanted)
            elif ranker.kind != "run files":
                found = f"{ranker.kind} as run here, which is not the thesis's {ranker.printed}"
                yield Misfit(f"rankers.{key}", found, "run files, or stands_for: replica")

    def sets_in(self, table: str) -> list[str]:
        """The query sets that the report has in a printed table."""
        return [label for label, chosen in self.query_sets.items() if table in chosen.tables]

    def printed_set(self, label: str) -> str:
        """The query set of the thesis that a query set is set beside."""
        return self.query_sets[label].printed or label

    def set_of(self, label: str, table: str) -> str:
        """The query set that stands nearest to one of the thesis in a printed table."""
        names = self.sets_in(table)
        # the first that is set beside it, in the order of the config
        return next(name for name in names if self.printed_set(name) == label)

    def counted_in_claims(self) -> set[str]:
        """Names of the rankers that findings are about, and of the baseline."""
        return {self.called(key) for key, ranker in self.rankers.items() if ranker.in_claims}

    def rankers_on(self, label: str) -> dict[str, Ranker]:
        """The rankers of a query set."""
        rankers = {}
        for key, ranker in self.rankers.items():
            labels = ranker.query_sets or tuple(ranker.public) or tuple(self.query_sets)
            if label in labels:
                rankers[key] = ranker
        return rankers

    def recorded_rankers(self, label: str) -> dict[str, Ranker]:
        """The rankers of a query set whose runs are recorded, and not public."""
        rankers = self.rankers_on(label)
        return {key: ranker for key, ranker in rankers.items() if ranker.kind != "public runs"}

    def called(self, ranker: str) -> str:
        """What the report calls a ranker."""
        return self.rankers[ranker].name or ranker

    @property
    def other_data(self) -> str:
        """What tells the recorded collections from MS MARCO's: sizes, ids and digests."""
        for label, query_set in self.query_sets.items():
            name = query_set.collection
            recorded = self.record / f"{name}_settings.json"
            if name not in upstream.PASSAGES or not recorded.is_file():
                continue
            other = upstream.other_than_msmarco(name, self.account(label))
            if other:
                return f"{label}: {other}"
        return ""

    def compared(self, table: pd.DataFrame, column: str) -> dict[str, Any]:
        """What `Report.table` takes: a table indexed by query set and run.

        ``column``: the printed column that names the rankers.
        """
        # a replica's rankers are not the printed ones, so its cells are compared with none
        ours = table.reset_index()
        options = {"basis": self.basis, "tolerance": self.tolerance}
        if self.basis == "replica":
            return options | {"ours": ours, "keys": ["queries", "run"]}

        keys = ["queries", column]
        ours[column] = ours["run"].map(self._printed_rows(column)).fillna(ours["run"])
        printed = printed_table(_TABLES[column])[keys]
        absent = printed.merge(ours[keys], "left", indicator=True)
        absent = absent[absent["_merge"] == "left_only"][keys]
        if absent.empty:
            return options | {"ours": ours, "keys": keys}
        # A row without runs stands there empty, so that nobody takes it for a row that agrees.
        rows = ", ".join(f"{label} {row}" for label, row in absent.itertuples(index=False))
        note = f"not recorded, and so not compared: {len(absent)} of {len(printed)} rows ({rows})"
        return options | {"ours": pd.concat([ours, absent]), "keys": keys, "note": note}

    def _printed_rows(self, column: str) -> dict[str, str]:
        """The printed row of each ranker, by what the report calls it; those that have one.

        Table 4.2 shortens names: MiniLM stands for the MiniLM KD of Table 4.1.
        """
        printed = set(printed_table(_TABLES[column])[column])
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
        runs_by_set = {label: self._runs_on(label) for label in self.query_sets}
        runs = pd.concat(runs_by_set, names=["queries"]).reset_index("queries")
        place = {key: number for number, key in enumerate(self.rankers)}
        runs = runs.sort_values("run", key=lambda keys: keys.map(place), kind="stable")
        return runs.assign(run=runs["run"].map(self.called)).reset_index(drop=True)

    def _runs_on(self, label: str) -> pd.DataFrame:
        """The runs of a query set, recorded and public ones, by the keys of the config."""
        runs = []
        rankers = self.rankers_on(label)
        if self.recorded_rankers(label):
            recorded = data.read_recorded_runs(self.file(label, "runs.tsv.gz"))
            # a record may hold rankers that the config does not name
            runs.append(recorded[recorded["run"].isin(rankers)])
        collection = self.query_sets[label].collection
        for key, ranker in rankers.items():
            if ranker.public:
                run = data.read_public_run(ranker.public[label], collection, rounded=ranker.rounded)
                best = data.best_of_lists(run, self.depth)
                runs.append(best.assign(world=data.WORLDS[0], run=key))
        return pd.concat(runs)

    def passed_over(self, cutoff: int) -> pd.DataFrame:
        """Documents at the first ranks of public runs that have no text and so are passed over.

        Columns ``queries, run, ranks, without a text``.
        """
        rows = []
        for label, query_set in self.query_sets.items():
            for key, ranker in self.rankers_on(label).items():
                if ranker.public:
                    run = ranker.public[label]
                    ranks = cutoff * len(data.read_query_ids(query_set.collection))
                    lacking = data.read_passed_over(run, query_set.collection, cutoff)
                    rows.append((label, self.called(key), ranks, lacking))
        return pd.DataFrame(rows, columns=["queries", "run", "ranks", "without a text"])


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
