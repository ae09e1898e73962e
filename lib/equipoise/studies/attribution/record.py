"""Record what language models answer when they are told who wrote their sources, for thesis chapter 5.

Three steps, each of which goes on where it stopped. ``python -m equipoise.studies.attribution.record inputs --models
FOLDER`` draws the questions and retrieves their passages (extra ``models``); ``rewrite`` has a model paraphrase the
passages that have no rewritten twin, and make a pool of names; ``answers`` has a model answer. All need the upstream
data, and the last two a model: a GGUF file, or an endpoint in the OpenAI format. They write
``data/outputs/attribution``; the notebook reads only that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import click
import pandas as pd
from tqdm import tqdm

from equipoise import project
from equipoise.conversations.endpoint import Endpoint, Sampling
from equipoise.measures.attribution import exact_match
from equipoise.studies.attribution import answering, design
from equipoise.studies.attribution.answering import Task
from equipoise.studies.attribution.authorship import stable_generator
from equipoise.studies.attribution.benchmarks import BENCHMARKS, LONGEST, Benchmark, benchmark
from equipoise.studies.attribution.prompts import read_prompts
from equipoise.studies.attribution.together import batch_model
from equipoise.studies.recording import settings_of, state
from equipoise.writing import write_files

DEPTH = 10
ANSWER = Sampling(temperature=0.0, top_p=1.0, max_tokens=96, seed=design.SEED)
PARAPHRASE = Sampling(temperature=0.0, top_p=1.0, max_tokens=192, seed=design.SEED)
NAMES = Sampling(temperature=0.7, top_p=0.95, max_tokens=1200, seed=design.SEED)
Record = tuple[Path, Sequence[Task], Sampling, Sequence[Path]]
"""A record, what is wanted, how it is sampled, and the files that its prompts come from."""
_sample = click.option(
    "--sample",
    default="small",
    type=click.Choice(list(design.SAMPLES)),
    callback=lambda _context, _option, name: design.SAMPLES[name],
)


def _out(sample: design.Sample, name: str) -> Path:
    return project.root().joinpath("data", *sample.folder, name)


@click.group(context_settings={"show_default": True})
def main() -> None:
    """Record data/outputs/attribution."""


# --- questions and passages -----------------------------------------------------------------------------------------


def _retrieved(held: Benchmark, row: Any, scores: Any, names: Sequence[str]) -> list[str]:
    """The relevant passage of a question, and the first ones retrieved that are not judged and hold no gold answer."""
    ranked = [names[place] for place in sorted(range(len(names)), key=lambda i: (-scores[i], names[i]))]
    others = (
        document
        for document in ranked
        if document not in (row.relevant, *row.judged)
        and not exact_match(held.passages[document], row.gold)
        and not exact_match(held.rewritten.get(document, ""), row.gold)
    )
    return [row.relevant, *islice(others, DEPTH - 1)]


@main.command("inputs")
@click.option("--models", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of the encoders.")
@_sample
def record_inputs(models: Path | None, sample: design.Sample) -> None:
    """Draw questions and retrieve their passages; BM25 alone needs no models."""
    from equipoise.systems import rankers
    from equipoise.systems.encoders import load_model
    from equipoise.systems.lexical import Collection, bm25

    def lexical(texts: list[str], passages: dict[str, str]) -> Any:
        collection = Collection.from_texts(passages)
        return bm25(collection, collection.queries(texts))

    ranks: dict[str, Callable[[list[str], dict[str, str]], Any]] = {"BM25": lexical}
    weights: dict[str, str] = {}
    if set(sample.retrievers) != set(ranks):
        if models is None:
            raise click.UsageError(f"{', '.join(sample.retrievers)}: --models is wanted")
        dense, splade = load_model(models / "all-minilm-l6-v2"), load_model(models / "splade-tiny-msmarco", "masked-lm")
        weights = {"all-minilm-l6-v2": dense.sha256, "splade-tiny-msmarco": splade.sha256}
        ranks["all-MiniLM"] = lambda texts, passages: rankers.dense_scores(
            *(rankers.token_vectors(dense, some) for some in (texts, [*passages.values()]))
        )
        ranks["SPLADE-tiny"] = lambda texts, passages: rankers.splade_scores(texts, [*passages.values()], splade)
    rows, counts = [], {}
    for name in sample.benchmarks:
        held = benchmark(name)
        order = stable_generator(design.SEED, name).permutation(len(held.questions))[: sample.questions]
        drawn, passages = held.questions.iloc[order], dict(sorted(held.passages.items()))
        for retriever in sample.retrievers:
            found = ranks[retriever](drawn["text"].tolist(), passages)
            for row, score in zip(drawn.itertuples(), found, strict=True):
                chosen = _retrieved(held, row, score, [*passages])
                rows += [(name, retriever, row.question, rank, document) for rank, document in enumerate(chosen)]
        counts[name] = {"questions": len(held.questions), "drawn": len(drawn), "passages": len(passages)}
    packages = ("numpy", "scikit-learn", *(("torch", "transformers") if weights else ()))
    settings = settings_of(seed=design.SEED, models=weights, packages=packages, benchmarks=counts)
    state(_out(sample, "inputs.json"), settings | {"longest passage, words": LONGEST})
    write_files({_out(sample, "inputs.csv"): pd.DataFrame(rows, columns=design.INPUTS)})


# --- what a model writes --------------------------------------------------------------------------------------------


def _asks_a_model(command: Callable[..., None]) -> Callable[..., None]:
    """Take what tells which model is asked, and how."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    for option in (
        click.option("--parallel", default=1, help="Requests at a time."),
        click.option("--threads", default=2, help="Threads of xllamacpp."),
        click.option("--endpoint", help="Base URL of a server that runs these weights; without it, they run here."),
        click.option("--together", is_flag=True, help="Run them by transformers in bfloat16, many prompts at a time."),
        click.option("--weights", required=True, type=file, help="GGUF file."),
    ):
        command = option(command)
    return command


def _record(
    records: Sequence[Record], weights: Path, endpoint: str | None, together: bool, threads: int, parallel: int
) -> None:
    """Have a model answer for some records."""
    with ExitStack() as stack:
        if together:
            model, program = stack.enter_context(batch_model(weights, threads=threads))
        elif endpoint is None:
            model, program = answering.gguf_model(weights, threads=threads), f"xllamacpp {version('xllamacpp')}"
        else:
            model = stack.enter_context(answering.endpoint_model(Endpoint(endpoint, weights.stem, timeout=600)))
            short = Sampling(temperature=0, max_tokens=4, seed=design.SEED)
            told = model([{"role": "user", "content": "Say yes."}], short)
            program = f"endpoint {told.fingerprint or 'without a name'}"
        for into, wanted, sampling, files in records:
            settings = settings_of(seed=design.SEED, models={weights.name: weights}, inputs=files, program=program)
            bar = partial(tqdm, desc=into.stem, mininterval=10)
            try:
                answering.record_answers(wanted, model, into, settings, sampling, parallel=parallel, progress=bar)
            except answering.IncompleteError as error:
                raise click.ClickException(str(error)) from None


@main.command("names")
@_asks_a_model
def record_names(**asked: Any) -> None:
    """Have a model make a pool of names."""
    pool = [Task({"pool": 1}, (), (), read_prompts().pool_of_names)]
    into = project.root().joinpath("data", *design.FOLDER, "names.jsonl")
    _record([(into, pool, NAMES, [project.data("prompts", "names.txt")])], **asked)


@main.command("rewrite")
@_asks_a_model
@_sample
@click.option("--questions", default=60, help="Questions of which the passages are rewritten.")
def record_rewritings(questions: int, sample: design.Sample, **asked: Any) -> None:
    """Have a model paraphrase the passages that have no rewritten twin."""
    prompts, wanted = read_prompts(), []
    for name in sample.benchmarks:
        held, first = benchmark(name), design.first_passages(design.inputs(name, sample))
        chosen = first[first["question"].isin(first["question"].unique()[:questions])]
        for document in () if held.rewritten else chosen["document"].unique():
            messages = partial(prompts.rewriting, held.passages[document])
            wanted.append(Task({"benchmark": name, "document": document}, (document,), (), messages))
    files = [project.data("prompts", "paraphrase.txt")]
    _record([(_out(sample, "paraphrases.jsonl"), wanted, PARAPHRASE, files)], **asked)


@main.command("answers")
@_asks_a_model
@_sample
@click.option("--benchmark", "names", multiple=True, type=click.Choice(list(BENCHMARKS)), help="Without it, all.")
@click.option("--experiment", "experiments", multiple=True, default=list(design.CELLS))
@click.option("--questions", default=40, help="Questions of each benchmark.")
@click.option("--from-question", "first", default=0, help="The first of them.")
@click.option("--output", required=True, help="Name of the record, without ending.")
def record_all_answers(
    names: tuple[str, ...],
    experiments: tuple[str, ...],
    questions: int,
    first: int,
    output: str,
    sample: design.Sample,
    **asked: Any,
) -> None:
    """Have a model answer; with more questions a record grows."""
    chosen = dict.fromkeys(cell for experiment in experiments for cell in design.CELLS[experiment])
    cells = sorted(chosen, key=lambda cell: cell.labels)  # prompts that begin alike follow each other
    asked_of = names or sample.benchmarks
    wanted = [task for name in asked_of for task in design.tasks(name, cells, questions, first, sample)]
    _record([(_out(sample, f"{output}.jsonl"), wanted, ANSWER, sample.answer_files())], **asked)


if __name__ == "__main__":
    main()
