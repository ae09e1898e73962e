"""How much an estimator of chapter 3 reads and learns, so that a plan can say how long it takes."""

from __future__ import annotations

from equipoise_studies.costs import TOKENS_A_WORD, WEIGHTS_OF_BASE, Work
from equipoise_studies.satisfaction.data import Collection, drawn_dialogues
from equipoise_studies.satisfaction.study import Estimator, Training


def work_of(
    estimator: Estimator, collection: Collection, times: int, prompt_words: int
) -> Work | None:
    """What an estimator reads and learns of a collection in a setup; None where none is known.

    ``times``: how often a dissatisfied sample is trained on, 0 for under-sampling.
    ``prompt_words``: of what a few-shot model reads before each sample.
    """
    weights = estimator.billions * 1e9 or WEIGHTS_OF_BASE
    if estimator.kind == "few-shot":
        if not estimator.billions or estimator.endpoint:
            return None
        samples = collection.worlds()
        samples = drawn_dialogues(samples[samples["world"] != "valid"], estimator.dialogues)
        words = samples["words"].sum() + prompt_words * len(samples)
        return Work(read=TOKENS_A_WORD * words, weights=weights)
    if estimator.training is None or not estimator.model:
        return None  # bags of words, in seconds
    tokens = (TOKENS_A_WORD * collection.samples["words"]).clip(upper=estimator.training.length)
    part = collection.samples["part"]
    read = float(tokens[part != "train"].sum())
    if estimator.kind == "hawkes":
        return Work(read=float(tokens.sum()), weights=weights)

    training = estimator.training
    passes = _passes(training, collection, times)
    learned = passes * float(tokens[part == "train"].mean())
    if training.program:  # each epoch is tried on the validation part
        read += training.epochs * float(tokens[part == "valid"].sum())
    return Work(read=read, learned=learned, weights=weights)


def _passes(training: Training, collection: Collection, times: int) -> int:
    """Samples that an encoder learns from, repeated ones counted."""
    if training.steps:
        return training.steps * training.batch
    dissatisfied = collection.part("train")["dissatisfied"]
    samples = len(dissatisfied) + (times - 1) * int(dissatisfied.sum())
    if not times:
        samples = 2 * int(dissatisfied.sum())
    return training.epochs * samples
