"""What chapter 2 is run on: a collection, its word pieces and its rankers, as a config names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from equipoise.loaders.trec import read_run
from equipoise.problems import refused
from equipoise_compendium.printed import printed_table
from equipoise_studies.config import ChapterConfig, NamedFile, recorded, settings
from equipoise_studies.query_by_example.csfcube import load_csfcube, load_specter
from equipoise_studies.query_by_example.data import QueryByExample
from equipoise_studies.query_by_example.scidocs import load_scidocs
from equipoise_studies.recording import read_settings
from equipoise_studies.systems.tokenisation import ANALYSERS

NOTEBOOK = "thesis_ch2_query_by_example"
PAIR = ["task", "query", "document"]
LEARNED = ("tilde", "splade", "tildev2", "cross-encoder")
"""Kinds of rankers that are recorded."""


@settings
class Source:
    """The collection: CSFCube, or SciDocs, from the ``folder`` that its authors publish.

    ``relevant``: lowest grade that counts for MAP. ``trained_on``: share of the dev queries of each
    task that rankers are trained on; weights are tuned on the rest.
    """

    kind: Literal["csfcube", "scidocs"]
    folder: NamedFile | None = None
    relevant: int = 1
    trained_on: float = 0.0

    def __post_init__(self) -> None:
        if self.kind == "scidocs" and self.folder is None:
            raise ValueError("scidocs is read from a folder")
        if not 0 <= self.trained_on < 1:
            raise ValueError(
                f"a share of dev queries to train on lies in [0, 1), found {self.trained_on}"
            )

    @property
    def about(self) -> str:
        """What it is, in words."""
        return {
            "csfcube": "CSFCube, 50 query facets, graded candidates",
            "scidocs": "SciDocs, four tasks",
        }[self.kind]


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
    papers judged not relevant that stand against each relevant one.
    """

    pairs: Literal["titles", "halves", "judgements"]
    epochs: int
    batch: int
    rate: float
    optimiser: Literal["adam", "adamw"] = "adamw"
    length: int = 510
    papers: int = 1500
    negatives: int = 2


@settings
class System:
    """A ranker, by kind, under a name that is its column of scores.

    ``printed``: its row in Table 2.1, for which it stands. ``model``: its checkpoint, a folder or a
    name below the folder of models. ``training``: stages. ``encoder``: trained whole, or frozen
    under a head that is trained; a frozen TILDE reads the mean of the token states. ``head``: how
    TILDE's is made ready: as it is; calibrated, so that each token begins as likely as it is
    common; or an identity, for a checkpoint without a head, calibrated. ``length``: tokens of a
    document. ``expanded_by``: a TILDE whose ``terms`` most likely terms are appended. ``runs``: a
    run file. ``seeds``: those of the study, or only the first so many.
    """

    kind: Literal["tilde", "splade", "tildev2", "cross-encoder", "run file", "specter", "random"]
    label: str = ""
    printed: str = ""
    model: str = ""
    training: tuple[Stage, ...] = ()
    encoder: Literal["trained", "frozen"] = "trained"
    head: Literal["own", "calibrated", "identity"] = "own"
    probability: Literal["sigmoid", "softmax"] = "sigmoid"
    precision: Literal["float32", "bfloat16"] = "float32"
    length: int = 510
    expanded_by: str = ""
    terms: int = 0
    runs: NamedFile | None = None
    seeds: int = 0

    def __post_init__(self) -> None:
        if not (self.label or self.printed):
            raise ValueError("a ranker has a label, or the row of Table 2.1 that it is")
        if (self.kind in LEARNED) != bool(self.model):
            raise ValueError(f"{self.kind} has {'no model' if self.model else 'a model'}")
        if (self.kind == "run file") != (self.runs is not None):
            raise ValueError("a run file, and no other kind, has runs")
        if bool(self.expanded_by) != bool(self.terms) or (self.terms and self.kind != "tildev2"):
            raise ValueError("only TILDEv2 is expanded, by a TILDE and a number of terms")
        if self.training and self.kind not in ("tilde", "tildev2", "cross-encoder"):
            raise ValueError(f"{self.kind} is not trained")
        if self.kind == "cross-encoder" and not self.training:
            raise ValueError(
                "a cross-encoder is trained here; one that was is given by its run files"
            )
        if self.encoder == "frozen" and (self.terms or self.kind not in ("tilde", "tildev2")):
            raise ValueError("an encoder is frozen under TILDE or TILDEv2, without expansion")

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.label or self.printed


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
    for each task. ``device``: where models run. ``record``: folder of what was recorded.
    ``tolerance``: how far a cell may lie from the printed one, MAP as a fraction.
    """

    chapter: ClassVar[str] = "query_by_example"
    collection: Source
    word_pieces: dict[str, WordPieces]
    systems: dict[str, System]
    record: NamedFile
    seeds: tuple[int, ...] = (1,)
    each_task: bool = False
    device: Literal["cpu", "cuda"] = "cpu"
    threads: int = 1
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if set(self.word_pieces) - {"BERT-Token", "SciBERT-Token"}:
            raise ValueError("the word pieces are BERT-Token and SciBERT-Token")
        for name, system in self.systems.items():
            by = self.systems.get(system.expanded_by)
            if system.expanded_by and (by is None or by.kind != "tilde"):
                raise ValueError(
                    f"{name} is expanded by {system.expanded_by}, which is no TILDE among the systems"
                )
            if system.kind == "specter" and self.collection.kind != "csfcube":
                raise ValueError("SPECTER's rankings are those of csfcube")
            if any(stage.pairs == "judgements" for stage in system.training) and self._untrainable:
                raise ValueError(
                    f"{name} is trained on judgements: say which share of the dev queries (trained_on)"
                )
        rows = [system.printed for system in self.systems.values() if system.printed]
        if len(rows) > len(set(rows)):
            raise ValueError("two rankers stand for one row of Table 2.1")
        known = set(printed_table("thesis/table-2.1")["model"])
        if unknown := sorted(set(rows) - known):
            raise ValueError(
                f"Table 2.1 has no row {unknown[0]!r}; there are {', '.join(sorted(known))}"
            )

    @property
    def _untrainable(self) -> bool:
        return self.collection.kind == "scidocs" and not self.collection.trained_on

    # --- names

    def called(self, printed: str) -> str:
        """What tables here call a row of the thesis's tables."""
        words = {name: pieces.label or name for name, pieces in self.word_pieces.items()}
        by_row = {system.printed: system.name for system in self.systems.values() if system.printed}
        model, _, tokens = printed.partition(" ")
        lexical = model in ("BM25", "LM") and tokens in (*ANALYSERS, *words)
        return by_row.get(printed) or (f"{model} {words.get(tokens, tokens)}" if lexical else "")

    def rows(self, printed: pd.DataFrame) -> dict[str, str]:
        """Rows of a printed table that there is something for, each with what it is called here."""
        names = {row: " + ".join(map(self.called, row.split(" + "))) for row in printed["model"]}
        return {row: name for row, name in names.items() if all(name.split(" + "))}

    def has(self, *rows: str) -> bool:
        """Whether there is something for each of these rows."""
        return all(map(self.called, rows))

    def column(self, name: str) -> str:
        """The system of a name in tables."""
        return next(column for column, system in self.systems.items() if system.name == name)

    def same_encoder(self, row: str, others: Sequence[str]) -> list[str]:
        """Those of other rows of Table 2.1 whose rankers have the same checkpoint as this one's."""
        models = {
            system.printed: system.model for system in self.systems.values() if system.printed
        }
        return [other for other in others if models.get(other) == models.get(row)]

    def columns(self, column: str) -> list[str]:
        """The columns of scores of a system: one for each seed."""
        return [f"{column}.{seed}" for seed in self.seeds_of(column)]

    def seeds_of(self, column: str) -> tuple[int, ...]:
        """The seeds that a system is trained with; where nothing is drawn, the first."""
        system = self.systems[column]
        drawn = bool(system.training) or system.kind == "random"
        return self.seeds[: system.seeds or None] if drawn else self.seeds[:1]

    def compared(self, table: pd.DataFrame, keys: tuple[str, ...] = ("model",)) -> dict[str, Any]:
        """What `Report.table` takes: a table in the thesis's layout, held against the printed one."""
        given = {"ours": table, "basis": self.basis, "data": self.collection.about}
        if self.stands_for == "replica":
            return given | {"digits": 3}
        allowed = {
            name: self.tolerance * (100 if name.endswith("MAP") else 1)
            for name in map(str, table.columns)
        }
        return given | {"keys": keys, "tolerance": allowed}

    # --- data

    def dataset(self) -> QueryByExample:
        """The collection, with the queries to train on as a part of their own."""
        folder = self.collection.folder
        if self.collection.kind == "csfcube" or folder is None:
            return load_csfcube(folder)
        dataset = load_scidocs(folder)
        splits, share = dataset.splits.copy(), self.collection.trained_on
        for _, rows in splits[splits["part"] == "dev"].groupby("task"):
            order = np.random.default_rng(self.seeds[0]).permutation(len(rows))
            splits.loc[rows.index[order[: round(share * len(rows))]], "part"] = "train"
        return replace(dataset, splits=splits)

    def scored(self, dataset: QueryByExample) -> QueryByExample:
        """The queries that are ranked: those to tune weights on and those to test with."""
        ranked = dataset.splits[dataset.splits["part"] != "train"]
        kept = dataset.judgements.merge(ranked[["task", "query"]].drop_duplicates())
        return replace(dataset, judgements=kept, splits=ranked.reset_index(drop=True))

    def parts(self, dataset: QueryByExample, system: System, seed: int) -> list[Part]:
        """The models of a system: one, or one for each task; two where queries to train on are not set apart.

        Then the query papers are cut into halves, and each is scored by the model trained on the
        other.
        """
        judged = any(stage.pairs == "judgements" for stage in system.training)
        queries = (
            self.scored(dataset).judgements[["task", "query"]].drop_duplicates(ignore_index=True)
        )
        if not judged:
            return [Part("all", queries.head(0), queries)]
        if self.collection.trained_on:
            train = dataset.splits.query("part == 'train'")[["task", "query"]]
            if not self.each_task:
                return [Part("all", train, queries)]
            return [
                Part(task, train[train["task"] == task], rows)
                for task, rows in queries.groupby("task")
            ]
        papers = np.array(sorted(queries["query"].unique()))
        chosen = set(np.random.default_rng(seed).permutation(papers)[: len(papers) // 2])
        first = queries["query"].isin(chosen)
        return [
            Part("half 1", queries[~first], queries[first]),
            Part("half 2", queries[first], queries[~first]),
        ]

    # --- what was recorded

    def file(self, name: str) -> Path:
        """A recorded file, noted as used."""
        return recorded(self.record / name, self.chapter)

    def settings(self) -> dict[str, Any]:
        """What is stated of the record."""
        return read_settings(self.file("record.json"))

    def scores(self, dataset: QueryByExample) -> pd.DataFrame:
        """Scores of every pair that is ranked, ``task, query, document`` and a column for each system and seed."""
        ranked = self.scored(dataset)
        pairs = ranked.judgements[PAIR].sort_values(PAIR, ignore_index=True)
        path = self.file("scores.csv.gz")
        scores = pd.read_csv(path, dtype=dict.fromkeys(PAIR, str)).sort_values(
            PAIR, ignore_index=True
        )
        given = {
            column: self.given(column, ranked)
            for column in self.systems
            if self.systems[column].kind not in LEARNED
        }
        wanted = [
            name for column in self.systems if column not in given for name in self.columns(column)
        ]
        lacking = sorted(set(wanted) - set(scores))
        if lacking or not scores[PAIR].equals(pairs) or scores.isna().to_numpy().any():
            found = f"{len(scores)} of {len(pairs)} pairs" + (
                f", without {', '.join(lacking)}" if lacking else ""
            )
            raise refused(path, found, "every pair scored: record it again")
        for column, frame in given.items():
            seeds = self.columns(column)
            scores = scores.merge(frame.set_axis([*PAIR, *seeds], axis=1), how="left", on=PAIR)
            if scores[seeds].isna().to_numpy().any():
                raise refused(column, "pairs without a score", "a score for every pair")
        return scores

    def given(self, column: str, ranked: QueryByExample) -> pd.DataFrame:
        """Scores of a system that no model gives."""
        system, pairs = self.systems[column], ranked.judgements[PAIR]
        if system.kind == "specter":
            return load_specter(self.collection.folder)
        if system.kind == "random":
            drawn = {
                seed: np.random.default_rng(seed).random(len(pairs))
                for seed in self.seeds_of(column)
            }
            return pairs.assign(**{str(seed): values for seed, values in drawn.items()})
        if system.runs is None:
            raise ValueError(f"{column} is recorded, not given")
        frames = []
        for task, rows in pairs.groupby("task"):
            run = read_run(Path(str(system.runs).replace("{task}", str(task))), column)
            run = run.rename(columns={"topic": "query"}).assign(task=task)
            frames.append(rows.merge(run[[*PAIR, "score"]], how="left"))
        return pd.concat(frames)
