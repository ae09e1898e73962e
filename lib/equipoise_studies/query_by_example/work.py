"""How much a ranker of chapter 2 reads and learns, so that a plan can say how long it takes."""

from __future__ import annotations

from equipoise_studies.costs import Work
from equipoise_studies.query_by_example.data import QueryByExample
from equipoise_studies.query_by_example.scidocs import CANDIDATES, QUERIES, RELEVANT, TASKS
from equipoise_studies.query_by_example.study import Stage, Study, System

TOKENS_A_PAPER = 250
"""Of a title and an abstract, about."""


def work_of(study: Study, system: System, dataset: QueryByExample | None) -> Work:
    """What a system reads and learns with one seed; without the data set, what SciDocs states."""
    relevant, candidates, papers = _sizes(study, dataset)
    learned = 0.0
    for stage in system.training:
        texts = _texts_of_step(system, stage)
        pairs = relevant if stage.pairs == "judgements" else stage.papers
        learned += texts * pairs * stage.epochs * min(stage.length, TOKENS_A_PAPER)
    tokens = min(system.length, TOKENS_A_PAPER)
    # A cross-encoder reads each query with each of its candidates, the others a paper once.
    read = 2 * candidates * tokens if system.kind == "cross-encoder" else papers * tokens
    if system.encoder == "frozen":
        return Work(read=read + learned)
    return Work(read=read, learned=learned)


def _sizes(study: Study, dataset: QueryByExample | None) -> tuple[float, float, float]:
    """Relevant pairs to learn from, pairs to score, and papers among these."""
    share = study.collection.trained_on
    if dataset is None:
        queries = len(TASKS) * QUERIES
        candidates = queries * (2 - share) * CANDIDATES
        return queries * share * RELEVANT, candidates, candidates
    scored = study.scored(dataset).judgements
    train = dataset.splits[dataset.splits["part"] == "train"][["task", "query"]]
    judged = dataset.judgements.merge(train) if share else scored
    relevant = (judged["grade"] >= study.collection.relevant).sum()
    return float(relevant), float(len(scored)), float(scored["document"].nunique())


def _texts_of_step(system: System, stage: Stage) -> int:
    """Texts that are read for a relevant pair: TILDE's both, or a relevant paper and another."""
    if stage.pairs != "judgements" or system.kind == "tilde":
        return 2
    times = max(1, stage.negatives)
    # A cross-encoder reads the query with each.
    return (4 if system.kind == "cross-encoder" else 2) * times
