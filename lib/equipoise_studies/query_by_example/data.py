"""What chapter 2 reads: a config, the derived data of a collection, and recorded scores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeInt, PositiveInt

from equipoise_studies.configs import ConfigPath, Settings, read_config
from equipoise_studies.query_by_example import systems

PAIR = ["task", "query", "document"]
"""Columns that identify a grade or a score."""

BM25_ROW, TILDE_ROW, TILDEV2_ROW = "BM25 STM2", "TILDE SciBERT", "TILDEv2 SciBERT"
"""Rows of Table 2.1 that are mixed."""

LEARNED = ("tilde", "splade", "tildev2", "cross-encoder", "dense", "run file")
"""Kinds of rankers whose scores are recorded; the others need no model."""

TASK_NAMES = {
    "coview": "Co-view",
    "coread": "Co-read",
    "cocite": "Co-cite",
    "cite": "Cite",
    "cisicocite": "CISI co-cite",
    "cacmcocite": "CACM co-cite",
    "cacmcite": "CACM cite",
}
"""Names of tasks in tables, where they differ from those in files."""

PREFIXES = {"csfcube": "", "links": "links_", "scidocs": "scidocs_"}
"""How the files of derived data of each collection begin."""


# --- config ---------------------------------------------------------------------------------------


class CollectionSettings(Settings):
    """The collection: CSFCube, SciDocs, or the links between papers of CISI and CACM.

    ``folder``: its published files, needed for SciDocs. ``relevant``: the lowest grade that counts
    for MAP. ``text``: title, space, abstract; or abstract and title without a space, then only
    letters, digits and _ (the author's program). ``trained_on``: share of the dev queries to train
    on; weights use the rest.
    """

    kind: Literal["csfcube", "scidocs", "links"]
    folder: ConfigPath | None = None
    relevant: PositiveInt = 1
    text: Literal["title first", "abstract first"] = "title first"
    trained_on: Annotated[float, Field(ge=0, lt=1)] = 0.0

    @property
    def name(self) -> str:
        """Its name in figures."""
        return {"csfcube": "CSFCube", "scidocs": "SciDocs", "links": "CISI and CACM"}[self.kind]

    @property
    def about(self) -> str:
        """Its description in the ledger."""
        descriptions = {
            "csfcube": "50 query facets, graded candidates",
            "scidocs": "four tasks",
            "links": "773 queries, papers cited together or citing one another",
        }
        return f"{self.name}, {descriptions[self.kind]}"


class WordPieces(Settings):
    """A WordPiece vocabulary for the lexical rankers.

    ``tokenizer``: folder of a checkpoint; if empty, it is learned from papers. ``label``: its name
    in tables, if not the thesis's.
    """

    tokenizer: str = ""
    label: str = ""


class Stage(Settings):
    """One stage of the training of a ranker.

    ``rate``: of learning. ``length``, ``query_length``: tokens after which a document and a query
    are cut; 0 cuts no query. ``papers``: the first ones, by id, whose halves are used.
    ``negatives``: papers not relevant per relevant one. ``group``: papers of TILDEv2 per query and
    epoch, one of them relevant; 0 for pairs.
    """

    pairs: Literal["halves", "judgements"]
    epochs: PositiveInt
    batch: PositiveInt
    rate: Annotated[float, Field(gt=0, le=1)]
    optimiser: Literal["adam", "adamw"] = "adamw"
    length: PositiveInt = 510
    papers: PositiveInt = 1500
    negatives: PositiveInt = 2
    query_length: NonNegativeInt = 0
    group: NonNegativeInt = 0


class System(Settings):
    """A ranker. Its key in the config is its column of scores.

    ``row``: of Table 2.1, that it is or replaces. ``label``: its name in tables, if not that of the
    row. ``model``: a checkpoint below the folder of models. ``encoder``: the head of a frozen TILDE
    reads the mean of the token states. ``head``: TILDE's; a calibrated one starts with the
    frequency of each token as its probability, an identity is a calibrated head for a checkpoint
    without one. ``length``: tokens of a document. ``input``: *authors* has token 1 before a
    document and 2 before a query in place of [CLS] (TILDE), and no stop words or symbols in
    queries. ``expanded_by``: the TILDE of which so many most likely ``terms`` are appended.
    ``runs``: TREC run files, with {task} in the name. ``seeds``: only the first ones of the study,
    or 0 for all.
    """

    kind: Literal[
        "tilde", "splade", "tildev2", "cross-encoder", "dense", "run file", "specter", "random"
    ]
    row: str = ""
    label: str = ""
    model: str = ""
    training: tuple[Stage, ...] = ()
    encoder: Literal["trained", "frozen"] = "trained"
    head: Literal["own", "calibrated", "identity"] = "own"
    precision: Literal["float32", "bfloat16"] = "float32"
    length: PositiveInt = 510
    input: Literal["plain", "authors"] = "plain"
    expanded_by: str = ""
    terms: NonNegativeInt = 0
    runs: ConfigPath | None = None
    seeds: NonNegativeInt = 0

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.label or self.row


class Study(Settings):
    """A run of chapter 2 (thesis sections 2.3 and 2.4): collection, rankers, and folders.

    ``word_pieces``: by the thesis's names, BERT-Token and SciBERT-Token. ``seeds``: of training,
    over which values are averaged. ``each_task``: whether one model is trained per task.
    """

    collection: CollectionSettings
    word_pieces: dict[Literal["BERT-Token", "SciBERT-Token"], WordPieces]
    systems: dict[str, System]
    derived: ConfigPath = Path("data/facts/query_by_example")
    outputs: ConfigPath
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (1,)
    each_task: bool = False
    device: Literal["cpu", "cuda"] = "cpu"
    threads: PositiveInt = 1

    def name_of(self, row: str) -> str:
        """Return the name here of a row of the thesis's tables; empty if no ranker replaces it."""
        for system in self.systems.values():
            if system.row == row:
                return system.name
        model, _, tokens = row.partition(" ")
        labels = dict.fromkeys(systems.ANALYSERS, "")
        labels |= {name: pieces.label for name, pieces in self.word_pieces.items()}
        if model not in ("LM", "BM25") or tokens not in labels:
            return ""
        return f"{model} {labels[tokens] or tokens}"

    def rows(self, published: pd.DataFrame) -> dict[str, str]:
        """Map the rows of a published table to their names here, where they exist."""
        rows = {}
        for row in published["model"]:
            rankers = [self.name_of(ranker) for ranker in row.split(" + ")]  # a mixture has two
            if all(rankers):
                rows[row] = " + ".join(rankers)
        return rows

    def seeds_of(self, system: str) -> tuple[int, ...]:
        """Return the seeds of a system; only the first where nothing is random."""
        settings = self.systems[system]
        if settings.training or settings.kind == "random":
            return self.seeds[: settings.seeds or None]
        return self.seeds[:1]

    def columns(self, name: str) -> list[str]:
        """Return the columns of scores of a ranker, by its name in tables: one per seed."""
        for column, system in self.systems.items():
            if system.name == name:
                return [f"{column}.{seed}" for seed in self.seeds_of(column)]
        raise KeyError(f"no ranker {name!r} in the config")

    def names_of_columns(self, columns: Iterable[str]) -> dict[str, str]:
        """Return the name of the ranker of each column; columns of several seeds have one name."""
        names = {}
        for column in columns:
            system = self.systems.get(column.rpartition(".")[0])
            names[column] = system.name if system else self.name_of(column)
        return names


def read_study(name: str) -> Study:
    """Read a config, by its name in ``data/studies/query_by_example`` or as a YAML file."""
    return read_config(Study, "query_by_example", name)


# --- derived data and cached model outputs --------------------------------------------------------


def _file(path: Path, script: str) -> Path:
    """Return a file that a script makes."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} not found; make it with {script} --config CONFIG")
    return path


def _derived(study: Study, name: str) -> Path:
    path = study.derived / f"{PREFIXES[study.collection.kind]}{name}"
    return _file(path, "data/facts/query_by_example/make.py")


def read_derived(study: Study) -> systems.DerivedData:
    """Read the derived data of a study's collection."""
    judgements = pd.read_parquet(_derived(study, "judgements.parquet")).astype({"grade": int})
    if study.collection.kind == "csfcube":
        shared = pd.read_parquet(_derived(study, "shared_terms.parquet"))
        statistics = pd.read_parquet(_derived(study, "term_statistics.parquet"))
    else:
        # Of many pairs per paper, the counts of each paper are the shorter form.
        pairs = judgements[["query", "document"]].drop_duplicates(ignore_index=True)
        counts = pd.read_parquet(_derived(study, "term_counts.parquet"))
        shared, statistics = systems.shared_terms(counts, pairs)
    return systems.DerivedData(
        judgements=judgements,
        splits=pd.read_csv(_derived(study, "splits.csv"), dtype=str),
        paper_lengths=pd.read_parquet(_derived(study, "paper_lengths.parquet")),
        shared_terms=shared,
        term_statistics=statistics,
    )


def read_output(study: Study, name: str) -> Path:
    """Return a file of cached model outputs."""
    return _file(study.outputs / name, "data/outputs/query_by_example/record.py")


def read_scores(study: Study, judgements: pd.DataFrame) -> pd.DataFrame:
    """Read the scores of each judged pair: ``task, query, document``, a column per ranker and seed.

    Raises ValueError where a pair or a ranker of the config has no score.
    """
    path = read_output(study, "scores.csv.gz")
    scores = pd.read_csv(path, dtype=dict.fromkeys(PAIR, str))
    scores = scores.sort_values(PAIR, ignore_index=True)
    pairs = judgements[PAIR].sort_values(PAIR, ignore_index=True)
    if not scores[PAIR].equals(pairs):
        raise ValueError(f"{path}: must score the {len(pairs)} judged pairs, got {len(scores)}")
    for name, system in study.systems.items():
        if system.kind == "specter":
            specter = pd.read_parquet(_derived(study, "specter.parquet"))
            specter = specter.rename(columns={"score": f"{name}.{study.seeds[0]}"})
            scores = scores.merge(specter, how="left", on=PAIR)
        elif system.kind == "random":
            for seed in study.seeds_of(name):
                scores[f"{name}.{seed}"] = np.random.default_rng(seed).random(len(scores))
    columns = [f"{model} {name}" for name in study.word_pieces for model in ("BM25", "LM")]
    for system in study.systems.values():
        columns += study.columns(system.name)
    missing = sorted(set(columns) - set(scores))
    if missing:
        raise ValueError(f"{path}: must score every ranker of the config, got no {missing[0]}")
    if scores[columns].isna().to_numpy().any():
        raise ValueError(f"{path}: must have a score in every cell")
    return judgements[PAIR].merge(scores[[*PAIR, *columns]], how="left", on=PAIR)


def example_weights(study: Study) -> pd.DataFrame:
    """Read the term weights of our example sentence, ``system, place, token, weight``.

    The weights of TILDE are probabilities. Its tokens need not be in the sentence; only words of
    four letters and more are returned.
    """
    table = pd.read_csv(
        read_output(study, "example.csv"), dtype={"token": str}, keep_default_na=False
    )
    names = {}
    for row, design in ((TILDE_ROW, "TILDE"), (TILDEV2_ROW, "TILDEv2")):
        names[study.columns(study.name_of(row))[0].rpartition(".")[0]] = design
    table = table[table["system"].isin(names)]
    table["system"] = table["system"].map(names)
    is_tilde = table["system"] == "TILDE"
    table.loc[is_tilde, "weight"] = np.exp(table.loc[is_tilde, "weight"])
    return table[~is_tilde | table["token"].str.fullmatch("[a-z]{4,}")]


def task_name(task: str) -> Any:
    """Return the name of a task in tables."""
    return TASK_NAMES.get(task, task.capitalize())
