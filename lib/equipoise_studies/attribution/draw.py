"""Draw questions and retrieve their passages: the inputs that chapter 5's records are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.measures.attribution import exact_match
from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_compendium.registry import DataUnreachable
from equipoise_compendium.writing import write_files
from equipoise_studies.attribution import design, facts
from equipoise_studies.attribution.authorship import stable_generator
from equipoise_studies.attribution.benchmarks import Benchmark
from equipoise_studies.attribution.study import Sample, Study
from equipoise_studies.recording import settings_of, state

ENCODERS = {"all-MiniLM": "all-minilm-l6-v2", "SPLADE-tiny": "splade-tiny-msmarco"}
"""Retrievers that are run here besides BM25, and the folders of their checkpoints."""

LEAST_DEPTH = 10
"""Passages that are kept of a question, even where a config shows fewer."""

Ranker = Callable[[list[str], dict[str, str]], Iterable[Any]]
"""Takes the texts of questions, and passages by id; returns the scores of all passages for each."""


def retrievers_of(study: Study, sample: Sample, benchmark: str) -> tuple[str, ...]:
    """The retrievers of a benchmark that a sample asks."""
    return sample.retrievers or study.benchmarks[benchmark].found_by


def own_files(study: Study, sample: Sample) -> dict[str, str]:
    """The reader's own files of a sample, by sha256."""
    digests = {}
    for benchmark in sample.drawn:
        for path in study.benchmarks[benchmark].files.values():
            if path.is_file():
                digests[path.name] = project.sha256(path)
    return digests


# --- what has to be had first ---------------------------------------------------------------------


def lacking(study: Study, sample: Sample, models: Path) -> list[str]:
    """What has to be had before questions can be drawn; ``models``: folder of checkpoints."""
    missing = []
    searched: set[str] = set()
    for name in sample.drawn:
        files = study.benchmarks[name].files
        absent = [f"{path} ({key})" for key, path in files.items() if not path.is_file()]
        source = study.benchmarks[name].source
        if absent:
            missing.append("; ".join(filter(None, [", ".join(absent), source])))
        if not files:  # one's own lists hold what retrievers found
            searched.update(retrievers_of(study, sample, name))
    for retriever in sorted(searched - {"BM25"}):
        folder = ENCODERS.get(retriever)
        if folder is None:
            retrievers = ", ".join(["BM25", *ENCODERS])
            missing.append(f"one of the retrievers {retrievers} in place of {retriever}")
        elif not (models / folder / "config.json").is_file():
            missing.append(f"the checkpoint {folder} in --models FOLDER")
    if missing:
        return missing
    for name, n_questions in sample.drawn.items():
        missing += _lacking_questions(study, name, n_questions)
    return missing


def _lacking_questions(study: Study, name: str, n_questions: int) -> list[str]:
    """What is lacking of a benchmark: questions, or its texts on this machine."""
    settings = study.benchmarks[name]
    missing = []
    available = None
    if not settings.files:
        # Facts say how many questions there are even where the texts are not at hand.
        available = facts.questions_at_hand(name, settings.longest)
    availables = {} if available is None else {"": available}
    try:
        benchmark = study.load(name)
        for retriever in settings.found_by:
            words = f" by {retriever}" if len(settings.files) > 1 else ""
            availables[words] = len(benchmark.questions_of(retriever))
    except (DataUnreachable, InputError) as error:
        missing.append(str(error))
    for words, available in availables.items():
        if available < n_questions:
            missing.append(f"{n_questions} questions of {name}{words}; there are {available}")
    return missing


# --- drawing --------------------------------------------------------------------------------------


def draw(study: Study, sample: Sample, models: Path) -> None:
    """Draw the questions of a sample, and write them with their passages and settings."""
    searched: set[str] = set()
    for name in sample.drawn:
        searched.update(retrievers_of(study, sample, name))
    rankers, weights = _rankers(models, searched)
    with project.used_meanwhile() as upstream_files:
        benchmarks = {name: study.load(name) for name in sample.drawn}

    rows = []
    places = []
    counts: dict[str, dict[str, Any]] = {}
    for name, n_questions in sample.drawn.items():
        benchmark = benchmarks[name]
        order = stable_generator(study.seed, name).permutation(len(benchmark.questions))
        in_order = replace(benchmark, questions=benchmark.questions.iloc[order])
        for retriever in retrievers_of(study, sample, name):
            # In one order for all, so that retrievers share what questions they can.
            drawn = in_order.questions_of(retriever)[:n_questions]
            for question in drawn["question"] if study.placed == "as retrieved" else ():
                places.append((name, retriever, question, benchmark.places[retriever][question]))
            lists = _passages(benchmark, retriever, drawn, rankers, study.depth())
            for question, documents in zip(drawn["question"], lists, strict=True):
                for rank, document in enumerate(documents):
                    rows.append((name, retriever, question, rank, document))
        counts[name] = {
            "questions": len(benchmark.questions),
            "drawn": n_questions,
            "passages": len(benchmark.passages),
        }
        if benchmark.listed:
            counts[name]["in files"] = dict(benchmark.listed)

    packages = ["numpy", "scikit-learn"]
    if weights:
        packages += ["torch", "transformers"]
    longest = {name: settings.longest for name, settings in study.benchmarks.items()}
    settings = settings_of(
        seed=study.seed, models=weights, packages=packages, inputs=(), benchmarks=counts
    )
    settings["inputs"] = upstream_files | own_files(study, sample)
    settings["longest passage, words"] = longest
    tables = {}
    if study.placed == "as retrieved":
        settings["placed"] = study.placed
        tables[sample.folder / design.PLACES] = pd.DataFrame(
            places, columns=["benchmark", "retriever", "question", "place"]
        )
    # Last: where it is, the questions are drawn.
    tables[sample.folder / "inputs.csv"] = pd.DataFrame(rows, columns=design.INPUTS)
    state(sample.folder / "inputs.json", settings)
    write_files(tables)


def _rankers(models: Path, searched: set[str]) -> tuple[dict[str, Ranker], dict[str, str]]:
    """What ranks passages, by retriever, and the sha256 of its weights by checkpoint."""
    from equipoise_studies.systems import rankers
    from equipoise_studies.systems.encoders import load_model
    from equipoise_studies.systems.lexical import Collection, bm25

    def lexical(texts: list[str], passages: dict[str, str]) -> Iterable[Any]:
        collection = Collection.from_texts(passages)
        return bm25(collection, collection.queries(texts))

    if searched.isdisjoint(ENCODERS):
        return {"BM25": lexical}, {}

    dense_model = load_model(models / ENCODERS["all-MiniLM"])
    sparse_model = load_model(models / ENCODERS["SPLADE-tiny"], "masked-lm")

    def dense(texts: list[str], passages: dict[str, str]) -> Iterable[Any]:
        questions = rankers.text_vectors(dense_model, texts)
        documents = rankers.text_vectors(dense_model, list(passages.values()))
        return rankers.dense_scores(questions, documents)

    def sparse(texts: list[str], passages: dict[str, str]) -> Iterable[Any]:
        return rankers.splade_scores(texts, list(passages.values()), sparse_model)

    weights = {
        ENCODERS["all-MiniLM"]: dense_model.sha256,
        ENCODERS["SPLADE-tiny"]: sparse_model.sha256,
    }
    return {"BM25": lexical, "all-MiniLM": dense, "SPLADE-tiny": sparse}, weights


def _passages(
    benchmark: Benchmark,
    retriever: str,
    drawn: pd.DataFrame,
    rankers: Mapping[str, Ranker],
    depth: int,
) -> list[list[str]]:
    """Passages of each drawn question: the relevant one, then those that a retriever found."""
    if benchmark.retrieved:
        return [benchmark.retrieved[retriever][question] for question in drawn["question"]]
    passages = dict(sorted(benchmark.passages.items()))
    scores_of_questions = rankers[retriever](drawn["text"].tolist(), passages)
    lists = []
    for row, scores in zip(drawn.itertuples(), scores_of_questions, strict=True):
        lists.append(_retrieved(benchmark, row, scores, list(passages), max(LEAST_DEPTH, depth)))
    return lists


def _retrieved(
    benchmark: Benchmark, row: Any, scores: Any, names: Sequence[str], depth: int
) -> list[str]:
    """The relevant passage of a question, and the first ones retrieved that are not relevant.

    Those are neither judged relevant nor hold a gold answer, nor does their rewritten twin.
    """
    judged = {row.relevant, *row.judged}
    documents = [row.relevant]
    for place in sorted(range(len(names)), key=lambda place: (-scores[place], names[place])):
        if len(documents) == depth:
            break
        document = names[place]
        if document in judged or exact_match(benchmark.passages[document], row.gold):
            continue
        if exact_match(benchmark.rewritten.get(document, ""), row.gold):
            continue
        documents.append(document)
    return documents
