"""What chapter 2 is run on: a collection, word pieces and rankers, as a config names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from equipoise.loaders.trec import read_run
from equipoise.options import Count, NonNegative
from equipoise.problems import refused
from equipoise_compendium.printed import printed_table
from equipoise_studies.config import (
    ChapterConfig,
    Misfit,
    NamedFile,
    Numbers,
    Rate,
    Whole,
    recorded,
    settings,
    unknown_names,
)
from equipoise_studies.query_by_example import facts
from equipoise_studies.query_by_example.csfcube import load_csfcube, load_specter
from equipoise_studies.query_by_example.data import PAIR, QueryByExample
from equipoise_studies.query_by_example.facts import CollectionFacts
from equipoise_studies.query_by_example.links import load_links
from equipoise_studies.query_by_example.scidocs import load_scidocs, other_than_scidocs
from equipoise_studies.recording import read_settings
from equipoise_studies.systems.tokenisation import ANALYSERS

NOTEBOOK = "thesis_ch2_query_by_example"
LEARNED = ("tilde", "splade", "tildev2", "cross-encoder", "dense")
"""Kinds of rankers that are recorded."""

LEXICAL_MODELS = ("LM", "BM25")
LEXICAL_ROWS = tuple(
    f"{model} {tokens}"
    for model in LEXICAL_MODELS
    for tokens in (*ANALYSERS, "BERT-Token", "SciBERT-Token")
)
"""Rows of Table 2.2, by the thesis's names."""

BM25_ROW, TILDE_ROW, TILDEV2_ROW = "BM25 STM2", "TILDE SciBERT", "TILDEv2 SciBERT"
"""Rows of Table 2.1 that are mixed."""


_ABOUT = {
    "csfcube": "CSFCube, 50 query facets, graded candidates",
    "scidocs": "SciDocs, four tasks",
    "links": "CISI and CACM, 773 queries, papers cited together or citing one another",
}


@settings
class Source:
    """The collection: CSFCube, SciDocs, or CISI and CACM, of which links between papers make tasks.

    ``folder``: that which its authors publish; needed for SciDocs.

    ``relevant``: lowest grade that counts for MAP. ``trained_on``: share of the dev queries of each
    task that rankers are trained on; weights are tuned on the rest. ``source``: where it is had.
    """

    kind: Literal["csfcube", "scidocs", "links"]
    folder: NamedFile | None = None
    relevant: Count = 1
    trained_on: float = 0.0
    source: str = ""

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        if self.kind == "scidocs" and self.folder is None:
            yield "scidocs is read from a folder"
        if not 0 <= self.trained_on < 1:
            yield (f"a share of dev queries to train on lies in [0, 1), found {self.trained_on}")

    @cached_property
    def is_not_scidocs(self) -> str:
        """What tells the folder from SciDocs's; empty where nothing does, or it is not there."""
        if self.folder is None or self.kind != "scidocs" or not self.folder.is_dir():
            return ""
        return other_than_scidocs(self.folder)

    @property
    def about(self) -> str:
        """What it is, in words."""
        return _ABOUT[self.kind]

    @property
    def name(self) -> str:
        """What figures call it."""
        return _ABOUT[self.kind].partition(",")[0]


@settings
class WordPieces:
    """A WordPiece vocabulary for the lexical rankers.

    ``tokenizer``: a folder of a checkpoint with its ``tokenizer.json``; without it, the vocabulary
    is learned from the candidates. ``label``: what it is called here, where that is not the
    thesis's name.
    """

    tokenizer: str = ""
    label: str = ""


@settings
class Stage:
    """What a ranker learns from, one stage after the other.

    ``pairs``: a paper's title and abstract; the two halves of a paper; or a query and a paper
    judged relevant to it. ``rate``: the learning rate. ``length``: tokens after which a text is
    cut. ``papers``: at most so many, the first by id; judgements are all used. ``negatives``:
    papers judged not relevant that stand against each relevant one. ``query_length``: tokens after
    which a query paper is cut in training on judgements; 0: as long as the encoder takes.
    """

    pairs: Literal["titles", "halves", "judgements"]
    epochs: Count
    batch: Count
    rate: Rate
    optimiser: Literal["adam", "adamw"] = "adamw"
    length: Count = 510
    papers: Count = 1500
    negatives: Whole = 2
    query_length: Whole = 0


@settings
class System:
    """A ranker, by kind, under a name that is its column of scores.

    ``printed``: its row in Table 2.1, for which it stands. ``model``: its checkpoint, a folder or a
    name below the folder of models. ``training``: stages. ``encoder``: trained whole, or frozen
    under a head that is trained; a frozen TILDE reads the mean of the token states. ``head``: how
    TILDE's is made ready: as it is; calibrated, so that each token begins as likely as it is
    common; or an identity, for a checkpoint without a head, calibrated. ``length``: tokens of a
    document. ``input``: plain, [CLS] before each text; or as the authors' program has it, token 1
    before a document and token 2 before a query, and no stop words or symbols asked for.
    ``expanded_by``: a TILDE whose ``terms`` most likely terms are appended. ``runs``: a
    run file; ``source``: where it is had. ``seeds``: those of the study, or only the first so many.
    A dense ranker compares the mean token states of both papers by their cosine.
    """

    kind: Literal[
        "tilde", "splade", "tildev2", "cross-encoder", "dense", "run file", "specter", "random"
    ]
    label: str = ""
    printed: str = ""
    model: str = ""
    training: tuple[Stage, ...] = ()
    encoder: Literal["trained", "frozen"] = "trained"
    head: Literal["own", "calibrated", "identity"] = "own"
    probability: Literal["sigmoid", "softmax"] = "sigmoid"
    precision: Literal["float32", "bfloat16"] = "float32"
    length: Count = 510
    input: Literal["plain", "authors"] = "plain"
    expanded_by: str = ""
    terms: Whole = 0
    runs: NamedFile | None = None
    source: str = ""
    seeds: Whole = 0

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        if not (self.label or self.printed):
            yield "a ranker has a label, or the row of Table 2.1 that it is"
        if self.kind in LEARNED and not self.model:
            yield f"{self.kind} has a model"
        if self.model and self.kind not in LEARNED:
            yield f"{self.kind} has no model"
        if (self.kind == "run file") != (self.runs is not None):
            yield "a run file, and no other kind, has runs"
        if bool(self.expanded_by) != bool(self.terms) or (self.terms and self.kind != "tildev2"):
            yield "only TILDEv2 is expanded, by a TILDE and a number of terms"
        if self.training and self.kind not in ("tilde", "tildev2", "cross-encoder"):
            yield f"{self.kind} is not trained"
        if self.kind == "cross-encoder" and not self.training:
            yield ("a cross-encoder is trained here; one that was is given by its run files")
        if self.encoder == "frozen" and (self.terms or self.kind not in ("tilde", "tildev2")):
            yield "an encoder is frozen under TILDE or TILDEv2, without expansion"
        if self.input == "authors" and (
            self.encoder == "frozen" or self.kind not in ("tilde", "tildev2")
        ):
            yield (
                "the authors' input is that of a TILDE or TILDEv2 whose encoder is trained or as "
                "it comes"
            )

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.label or self.printed

    @property
    def learns_from_judgements(self) -> bool:
        """Whether it must not score queries that it was trained on."""
        return any(stage.pairs == "judgements" for stage in self.training)


@dataclass(frozen=True)
class Part:
    """Queries (``task, query``) that one model is trained on, and those that it scores."""

    name: str
    trained: pd.DataFrame
    scored: pd.DataFrame


@settings
class Study(ChapterConfig):
    """A run of chapter 2 (thesis sections 2.3 and 2.4).

    ``word_pieces``: by the thesis's names, BERT-Token and SciBERT-Token, or one of them, or none.
    ``seeds``: of training; values are means over them. ``each_task``: whether a model is trained
    for each task. ``checkpoints``: where each folder of a checkpoint is had. ``device``: where
    models run. ``record``: folder of what was recorded.
    ``tolerance``: how far a cell may lie from the printed one, MAP as a fraction.
    """

    chapter: ClassVar[str] = "query_by_example"
    collection: Source
    word_pieces: dict[str, WordPieces]
    systems: dict[str, System]
    record: NamedFile
    seeds: Numbers = (1,)
    each_task: bool = False
    checkpoints: dict[str, str] = field(default_factory=dict)
    device: Literal["cpu", "cuda"] = "cpu"
    threads: Count = 1
    tolerance: NonNegative = 0.0

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        if set(self.word_pieces) - {"BERT-Token", "SciBERT-Token"}:
            yield "the word pieces are BERT-Token and SciBERT-Token"
        if not self.seeds:
            yield Misfit("seeds", "none", "one at least")
        if self.stands_for == "thesis" and self.collection.kind != "scidocs":
            found = f"{self.collection.kind}, which is not the thesis's collection"
            yield Misfit("collection", found, "scidocs, or stands_for: replica")
        for name, system in self.systems.items():
            yield from self._check(name, system)
        yield from unknown_names("checkpoints", "checkpoint", self.checkpoints, self.models)
        rows = [system.printed for system in self.systems.values() if system.printed]
        if len(rows) > len(set(rows)):
            yield "two rankers stand for one row of Table 2.1"
        printed_rows = set(printed_table("thesis/table-2.1")["model"])
        absent = sorted(set(rows) - printed_rows)
        if absent:
            yield (
                f"Table 2.1 has no row {absent[0]!r}; there are {', '.join(sorted(printed_rows))}"
            )

    def _check(self, name: str, system: System) -> Iterator[Misfit | str]:
        """Refuse a system that does not go with the others or with the collection."""
        expanding = self.systems.get(system.expanded_by)
        if system.expanded_by and (expanding is None or expanding.kind != "tilde"):
            yield (
                f"{name} is expanded by {system.expanded_by}, which is no TILDE among the systems"
            )
        if system.kind == "specter" and self.collection.kind != "csfcube":
            yield "SPECTER's rankings are those of csfcube"
        # CSFCube is trained on by halves instead.
        without_share = self.collection.kind == "scidocs" and not self.collection.trained_on
        if system.learns_from_judgements and without_share:
            yield (
                f"{name} is trained on judgements: say which share of the dev queries (trained_on)"
            )

    @property
    def other_data(self) -> str:
        """What tells a folder in SciDocs's form from SciDocs."""
        return self.collection.is_not_scidocs

    # --- names

    @property
    def models(self) -> list[str]:
        """Folders of the checkpoints that rankers and word pieces are made of, each once."""
        folders = [system.model for system in self.systems.values()]
        folders += [pieces.tokenizer for pieces in self.word_pieces.values()]
        return list(dict.fromkeys(filter(None, folders)))

    def called(self, printed: str) -> str:
        """What tables here call a row of the thesis's tables; empty where nothing stands for it."""
        for system in self.systems.values():
            if system.printed == printed:
                return system.name
        model, _, tokens = printed.partition(" ")
        terms = dict.fromkeys(ANALYSERS, "")
        terms |= {name: pieces.label for name, pieces in self.word_pieces.items()}
        if model not in LEXICAL_MODELS or tokens not in terms:
            return ""
        return f"{model} {terms[tokens] or tokens}"

    def rows(self, printed: pd.DataFrame) -> dict[str, str]:
        """Rows of a printed table that there is something for, each with what it is called here."""
        rows = {}
        for row in printed["model"]:
            rankers = [self.called(ranker) for ranker in row.split(" + ")]  # a mixture has two
            if all(rankers):
                rows[row] = " + ".join(rankers)
        return rows

    def has(self, *rows: str) -> bool:
        """Whether there is something for each of these rows."""
        return all(self.called(row) for row in rows)

    def column(self, name: str) -> str:
        """The system of a name in tables."""
        return next(column for column, system in self.systems.items() if system.name == name)

    def same_encoder(self, row: str, candidate_rows: Sequence[str]) -> list[str]:
        """Those of some rows of Table 2.1 whose rankers have the same checkpoint as this one's."""
        models = {}
        for system in self.systems.values():
            if system.printed:
                models[system.printed] = system.model
        model = models.get(row)
        return [candidate for candidate in candidate_rows if models.get(candidate) == model]

    def columns(self, column: str) -> list[str]:
        """The columns of scores of a system: one for each seed."""
        return [f"{column}.{seed}" for seed in self.seeds_of(column)]

    def columns_of_row(self, row: str) -> list[str]:
        """The columns of scores of what stands for a row of Table 2.1."""
        return self.columns(self.column(self.called(row)))

    def names_of_columns(self) -> dict[str, str]:
        """What tables call the ranker of each column of scores; those of several seeds are one."""
        names = {}
        for column, system in self.systems.items():
            for seeded in self.columns(column):
                names[seeded] = system.name
        for row in LEXICAL_ROWS:
            names[row] = self.called(row)
        return names

    def seeds_of(self, column: str) -> tuple[int, ...]:
        """The seeds that a system is trained with; where nothing is drawn, the first."""
        system = self.systems[column]
        drawn = bool(system.training) or system.kind == "random"
        if not drawn:
            return self.seeds[:1]
        return self.seeds[: system.seeds or None]

    @property
    def trained(self) -> list[str]:
        """Names of rankers that were trained and stand for a row of Table 2.1."""
        systems = self.systems.values()
        return [system.name for system in systems if system.training and system.printed]

    def compared(self, table: pd.DataFrame, keys: tuple[str, ...] = ("model",)) -> dict[str, Any]:
        """What `Report.table` takes of a table that is held against the printed one."""
        options = {"ours": table, "basis": self.basis, "data": self.collection.about}
        if self.other_data:
            options["data"] = f"a folder in SciDocs's form: {self.other_data}"
        if self.basis == "replica":
            return options | {"digits": 3}
        # The letters of rows would agree with any table.
        columns = [column for column in table.columns if str(column).endswith(("MAP", "nDCG"))]
        options["columns"] = columns
        # The config gives MAP as a fraction, tables print it in per cent.
        tolerance = {}
        for column in map(str, table.columns):
            tolerance[column] = self.tolerance * (100 if column.endswith("MAP") else 1)
        return options | {"keys": keys, "tolerance": tolerance}

    # --- data

    def facts(self) -> CollectionFacts:
        """What is computed with: judgements, splits and term counts, of queries that are ranked.

        CSFCube's are committed; those of a collection in a folder are counted from its texts.
        """
        if self.collection.kind in facts.COMMITTED and self.collection.folder is None:
            return facts.committed(self.collection.kind)
        return facts.counted(self.scored(self.dataset()))

    def dataset(self) -> QueryByExample:
        """The collection with its texts, and the queries to train on as a part of their own."""
        folder = self.collection.folder
        if self.collection.kind == "links":
            return load_links(folder)
        if self.collection.kind == "csfcube" or folder is None:
            return load_csfcube(folder)
        dataset = load_scidocs(folder)
        splits, share = dataset.splits.copy(), self.collection.trained_on
        for _, queries in splits[splits["part"] == "dev"].groupby("task"):
            order = np.random.default_rng(self.seeds[0]).permutation(len(queries))
            trained = queries.index[order[: round(share * len(queries))]]
            splits.loc[trained, "part"] = "train"
        return replace(dataset, splits=splits)

    def scored(self, dataset: QueryByExample) -> QueryByExample:
        """The queries that are ranked: those to tune weights on and those to test with."""
        ranked = dataset.splits[dataset.splits["part"] != "train"]
        judgements = dataset.judgements.merge(ranked[["task", "query"]].drop_duplicates())
        return replace(dataset, judgements=judgements, splits=ranked.reset_index(drop=True))

    def parts(self, dataset: QueryByExample, system: System, seed: int) -> list[Part]:
        """The models of a system, each with the queries that it learns from and those it scores.

        There is one, or one for each task; and two where queries to train on are not set apart.
        Then the query papers are cut into halves, and each is scored by the model trained on the
        other.
        """
        ranked = self.scored(dataset).judgements
        queries = ranked[["task", "query"]].drop_duplicates(ignore_index=True)
        if not system.learns_from_judgements:
            return [Part("all", queries.head(0), queries)]
        if self.collection.trained_on:
            train = dataset.splits.query("part == 'train'")[["task", "query"]]
            if not self.each_task:
                return [Part("all", train, queries)]
            models = []
            for task, task_queries in queries.groupby("task"):
                models.append(Part(task, train[train["task"] == task], task_queries))
            return models
        # By papers, not queries: a paper's judgements under one facet tell of the others.
        papers = np.array(sorted(queries["query"].unique()))
        shuffled = np.random.default_rng(seed).permutation(papers)
        in_first_half = queries["query"].isin(shuffled[: len(papers) // 2])
        halves = queries[in_first_half], queries[~in_first_half]
        return [Part("half 1", halves[1], halves[0]), Part("half 2", halves[0], halves[1])]

    # --- what was recorded

    def file(self, name: str) -> Path:
        """A recorded file, noted as used."""
        return recorded(self.record / name, self.chapter)

    def settings(self) -> dict[str, Any]:
        """What is stated of the record."""
        return read_settings(self.file("record.json"))

    def scores(self, judgements: pd.DataFrame) -> pd.DataFrame:
        """Scores of each judged pair: ``task, query, document``, a column for each system and seed.

        They are recorded, or come with the collection, a run file or the seed of a random order.
        """
        scores = self._recorded_scores(judgements[PAIR].sort_values(PAIR, ignore_index=True))
        for column, system in self.systems.items():
            if system.kind in LEARNED:
                continue
            seeds = self.columns(column)
            unrecorded = self._unrecorded_scores(column, scores[PAIR])
            scores = scores.merge(unrecorded.set_axis([*PAIR, *seeds], axis=1), how="left", on=PAIR)
            if scores[seeds].isna().to_numpy().any():
                raise refused(column, "pairs without a score", "a score for every pair")
        return judgements[PAIR].merge(scores, how="left", on=PAIR)

    def _recorded_scores(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """The scores in the record, refused where they are not those of the pairs and systems."""
        path = self.file("scores.csv.gz")
        scores = pd.read_csv(path, dtype=dict.fromkeys(PAIR, str))
        scores = scores.sort_values(PAIR, ignore_index=True)
        needed = set()
        for column, system in self.systems.items():
            if system.kind in LEARNED:
                needed |= set(self.columns(column))
        # Scores of another collection, or of fewer systems, would be merged without a word.
        absent = sorted(needed - set(scores))
        if absent or not scores[PAIR].equals(pairs) or scores.isna().to_numpy().any():
            count = f"{len(scores)} of {len(pairs)} pairs"
            if absent:
                count += f", without {', '.join(absent)}"
            raise refused(path, count, "every pair scored: record it again")
        return scores

    def _unrecorded_scores(self, column: str, pairs: pd.DataFrame) -> pd.DataFrame:
        """Scores of a system that no model gives: ``task, query, document``, a column a seed."""
        system = self.systems[column]
        if system.kind == "specter":
            if self.collection.folder is None:
                return facts.specter()
            return load_specter(self.collection.folder)
        # A random order needs no record: its seed makes it again.
        if system.kind == "random":
            drawn = pairs.copy()
            for seed in self.seeds_of(column):
                drawn[str(seed)] = np.random.default_rng(seed).random(len(pairs))
            return drawn
        # One run file a task, as TREC's format has no place for it.
        tables = []
        for task, task_pairs in pairs.groupby("task"):
            run = read_run(Path(str(system.runs).replace("{task}", str(task))), column, order=None)
            run = run.rename(columns={"topic": "query"}).assign(task=task)
            tables.append(task_pairs.merge(run[[*PAIR, "score"]], how="left"))
        return pd.concat(tables)
