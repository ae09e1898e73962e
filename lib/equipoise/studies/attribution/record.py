"""Record what language models answer when they are told who wrote their sources, for thesis chapter 5.

Three steps, each of which goes on where it stopped. ``python -m equipoise.studies.attribution.record inputs --models
FOLDER`` draws the questions and retrieves their passages (extra ``models``); ``rewrite`` has a model paraphrase the
passages that have no rewritten twin, and make a pool of names; ``answers`` has a model answer. All need the upstream
data, and the last two a model: a GGUF file, or an endpoint in the OpenAI format. They write
``data/outputs/attribution``; the notebook reads only that.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import click
import pandas as pd
from tqdm import tqdm

from equipoise import project
from equipoise.answer_modes import mode_parts
from equipoise.conversations.endpoint import Endpoint, Sampling
from equipoise.files import read_columns
from equipoise.loaders import cocktail, registry
from equipoise.measures.attribution.bias import AUTHORS
from equipoise.measures.attribution.correctness import exact_match
from equipoise.studies.attribution import answering as rag
from equipoise.studies.attribution import natural_questions
from equipoise.studies.attribution.authorship import LabelSet, read_label_sets, stable_generator
from equipoise.systems.lexical import Collection, bm25

SEED = 20250516
FOLDER = ("outputs", "attribution")
DEPTH = 10
LONGEST = {"NQ": 60, "NQ-UTD": 100}
"""Words of the longest passage that is retrieved, title included: what two processor cores can read."""

REWRITTEN = 4
"""Non-relevant passages of a question that have a rewritten twin."""

RETRIEVERS = ("BM25", "all-MiniLM", "SPLADE-tiny")
ANSWER = Sampling(temperature=0.0, top_p=1.0, max_tokens=96, seed=SEED)
PARAPHRASE = Sampling(temperature=0.0, top_p=1.0, max_tokens=192, seed=SEED)
NAMES = Sampling(temperature=0.7, top_p=0.95, max_tokens=1200, seed=SEED)

_NAME = re.compile(r"\b([A-Z][a-z]+),?[ ]+([A-Z][a-z]+)\b")


# --- questions and passages -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Questions with one relevant passage each, and the passages that a retriever searches.

    ``questions``: Columns question, text, gold (tuple of str), relevant (id of a passage), judged (tuple of ids:
    passages that people judged relevant). ``passages``: Text by id, as people wrote it. ``rewritten``: the same
    ids, as a model rewrote them; empty where that is still to be done.
    """

    name: str
    questions: pd.DataFrame
    passages: dict[str, str]
    rewritten: dict[str, str]


def _natural_questions() -> Benchmark:
    table = natural_questions.read_questions(registry.fetch("nqoracle", natural_questions.FILE))
    table["whole"] = table["title"] + ". " + table["passage"]
    table = table[table["whole"].str.split().str.len() <= LONGEST["NQ"]].reset_index(drop=True)
    table["relevant"] = table.groupby("whole", sort=False)["query"].transform("first")  # one passage, several questions
    questions = table[["query", "text", "answers", "relevant"]].set_axis(
        ["question", "text", "gold", "relevant"], axis=1
    )
    questions["judged"] = [() for _ in range(len(questions))]
    return Benchmark("NQ", questions, dict(zip(table["relevant"], table["whole"], strict=True)), {})


def _nq_utd() -> Benchmark:
    archive = registry.fetch("cocktail", "dataset/nq-utd.zip")
    queries, qrels = cocktail.read_queries(archive), cocktail.read_qrels(archive)
    texts, twins = (
        dict(zip(table["document"], table["text"], strict=True))
        for table in (cocktail.read_documents(archive), cocktail.read_documents(archive, "model"))
    )
    words = {name: len(text.split()) for name, text in texts.items()}
    best = qrels[qrels["level"] == 2].assign(words=lambda rows: rows["document"].map(words))
    shortest = best.sort_values(["words", "document"]).groupby("topic")["document"].first()
    judged = qrels[qrels["level"] > 0].groupby("topic")["document"].agg(tuple)
    asked = queries[queries["query"].isin(shortest.index)]
    questions = pd.DataFrame(
        {
            "question": asked["query"],
            "text": asked["text"],
            "gold": [(answer,) for answer in asked["answer"]],
            "relevant": asked["query"].map(shortest),
            "judged": asked["query"].map(judged),
        }
    ).reset_index(drop=True)
    keep = {name for name, number in words.items() if number <= LONGEST["NQ-UTD"]} | set(questions["relevant"])
    return Benchmark("NQ-UTD", questions, {name: texts[name] for name in texts if name in keep}, twins)


BENCHMARKS: dict[str, Callable[[], Benchmark]] = {"NQ": _natural_questions, "NQ-UTD": _nq_utd}
"""Natural Questions, with every gold passage of at most 60 words as collection; NQ-UTD of Cocktail, to 100 words."""


def benchmark(name: str) -> Benchmark:
    """Read a benchmark.

    ``name``: A key of `BENCHMARKS`. Returns: Questions in file order.

    NQ: the gold passage is relevant. NQ-UTD: the shortest passage judged 2 is relevant.
    """
    return BENCHMARKS[name]()


def inputs(name: str) -> pd.DataFrame:
    """Recorded inputs of a benchmark.

    ``name``: A key of `BENCHMARKS`. Returns DataFrame, columns benchmark, retriever, question, rank, document:
    Questions in the order in which they were drawn; rank 0 is the relevant passage, from rank 1 on the retrieved
    ones that are neither judged relevant nor hold a gold answer.
    """
    table = read_columns(
        project.data(*FOLDER, "inputs.csv"), ["benchmark", "retriever", "question", "rank", "document"]
    )
    table["rank"] = table["rank"].astype("int64")
    return table[table["benchmark"] == name].reset_index(drop=True)


def _retrieved(
    held: Benchmark, questions: pd.DataFrame, retriever: str, scores: Any, names: Sequence[str]
) -> pd.DataFrame:
    rows: list[tuple[str, str, str, int, str]] = []
    for row, score in zip(questions.itertuples(), scores, strict=True):
        rows.append((held.name, retriever, row.question, 0, row.relevant))
        rank = 0
        for place in sorted(range(len(names)), key=lambda i: (-score[i], names[i])):
            document = names[place]
            texts = [held.passages[document], held.rewritten.get(document, "")]
            if document == row.relevant or document in row.judged or any(exact_match(text, row.gold) for text in texts):
                continue
            rank += 1
            rows.append((held.name, retriever, row.question, rank, document))
            if rank == DEPTH - 1:
                break
    return pd.DataFrame(rows, columns=["benchmark", "retriever", "question", "rank", "document"])


def _write_inputs(models: Path, most: int) -> None:
    from equipoise.systems import rankers as neural_rankers
    from equipoise.systems.encoders import load_model

    dense, splade = load_model(models / "all-minilm-l6-v2"), load_model(models / "splade-tiny-msmarco", "masked-lm")
    tables, counts = [], {}
    for name in BENCHMARKS:
        held = benchmark(name)
        drawn = stable_generator(SEED, name).permutation(len(held.questions))[:most]
        questions = held.questions.iloc[drawn]
        texts, names = questions["text"].tolist(), sorted(held.passages)
        documents = [held.passages[document] for document in names]
        collection = Collection.from_texts(held.passages)
        scores = {
            "BM25": bm25(collection, collection.queries(texts)),
            "all-MiniLM": neural_rankers.dense_scores(texts, documents, dense),
            "SPLADE-tiny": neural_rankers.splade_scores(texts, documents, splade),
        }
        tables += [_retrieved(held, questions, retriever, scores[retriever], names) for retriever in RETRIEVERS]
        counts[name] = {"questions": len(held.questions), "drawn": len(questions), "passages": len(names)}
    folder = project.root().joinpath("data", *FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    pd.concat(tables).to_csv(folder / "inputs.csv", index=False, lineterminator="\n")
    settings = {
        "seed": SEED,
        "longest passage, words": LONGEST,
        "benchmarks": counts,
        "models": {"all-minilm-l6-v2": dense.sha256, "splade-tiny-msmarco": splade.sha256},
        "versions": {name: version(name) for name in ("numpy", "scikit-learn", "torch", "transformers")},
        "inputs": {key: value for key, value in project.used_files().items() if not key.startswith("data/out")},
    }
    (folder / "inputs.json").write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n", encoding="utf-8")


# --- experiments ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One setting under which every question is answered.

    ``labels``: A set of labels; "none" where no label is shown. ``relevant_author``, ``nonrelevant_author``: Who
    wrote the passages that are shown: "Human" or "LLM".
    """

    labels: str
    mode: str
    relevant_author: str
    nonrelevant_author: str
    documents: int = 5
    retriever: str = "BM25"


_SAME = [(author, author) for author in AUTHORS]
_OTHER = [("LLM", "Human"), ("Human", "LLM")]
_SWAPS = ("Informed/CF-informed", "CF-informed/Informed")


def _swaps(labels: str, pairs: Sequence[tuple[str, str]], **setting: Any) -> list[Cell]:
    return [Cell(labels, mode, *pair, **setting) for pair, mode in product(pairs, _SWAPS)]


def _vanilla(pairs: Sequence[tuple[str, str]], **setting: Any) -> list[Cell]:
    return [Cell("none", "Vanilla", *pair, **setting) for pair in pairs]


CELLS: dict[str, list[Cell]] = {
    "modes": [
        *_vanilla(_OTHER),
        *(Cell("plain", mode, *pair) for pair, mode in product(_OTHER, ("Informed", "CF-informed"))),
    ],
    "mixed": [*_vanilla(_SAME), *_swaps("plain", _SAME)],
    "names": [*_vanilla(_SAME), *_swaps("names", _SAME)],
    "placebo": [*_vanilla(_SAME[:1]), *_swaps("placebo", _SAME[:1])],
    "same label": [Cell("plain", mode, *pair) for pair, mode in product(_SAME, ("Informed", "CF-informed"))],
    "retrievers": [
        cell
        for retriever in RETRIEVERS[1:]
        for cell in (*_vanilla(_SAME[:1], retriever=retriever), *_swaps("names", _SAME[:1], retriever=retriever))
    ],
    "documents": [
        cell
        for documents in (2, 8, 10)
        for cell in (*_vanilla(_SAME[:1], documents=documents), *_swaps("names", _SAME[:1], documents=documents))
    ],
}
"""Experiments: the settings of thesis Tables 5.1 (modes), 5.4 and 5.14 (mixed, same label), 5.7 (names), 5.9
(retrievers), Figure 5.9 (documents), and the placebo, which is ours."""


def names_of(text: str) -> list[str]:
    """Names in a model's list of names: two capitalised words each, every name once."""
    return list(dict.fromkeys(f"{first} {last}" for first, last in _NAME.findall(text)))


def of_experiment(answers: pd.DataFrame, *experiments: str) -> pd.DataFrame:
    """Answers that belong to an experiment.

    ``*experiments``: Keys of `CELLS`. Returns: Those in one of the settings, in their order.
    """
    cells = pd.DataFrame({cell for name in experiments for cell in CELLS[name]}).rename(columns={"documents": "k"})
    names = list(cells.columns)
    wanted = pd.MultiIndex.from_frame(cells)
    return answers[pd.MultiIndex.from_frame(answers[names]).isin(wanted)].reset_index(drop=True)


def label_sets() -> dict[str, LabelSet]:
    """Sets of labels, with the recorded pool of names."""
    _, answers = rag.read_record(project.data(*FOLDER, "names.jsonl"))
    pool = names_of(answers["answer"].iloc[0])
    return read_label_sets(project.data("attributes", "author_labels.yaml"), pool)


def paraphrases(name: str) -> dict[str, str]:
    """Recorded paraphrases of the passages of a benchmark.

    Returns: Text by id; empty where a benchmark brings its own. Those that ran into the limit of tokens are left
    out.
    """
    _, answers = rag.read_record(project.data(*FOLDER, "paraphrases.jsonl"))
    whole = answers[(answers["benchmark"] == name) & (answers["finish"] == "stop")]
    return {shown[0]: text.strip() for shown, text in zip(whole["shown"], whole["answer"], strict=True)}


def usable(held: Benchmark, rewritten: dict[str, str], table: pd.DataFrame) -> list[str]:
    """Questions whose passages keep their part when they are rewritten, in the order in which they were drawn.

    ``rewritten``: Text of the rewritten passages by id. Returns: Those for which the first `REWRITTEN` + 1 passages
    of BM25 all have a twin, the relevant one still holds the answer if it did, and no other has come to hold it.

    The thesis had two people check this (appendix 5.A).
    """
    first = table[(table["retriever"] == RETRIEVERS[0]) & (table["rank"] <= REWRITTEN)]
    gold = dict(zip(held.questions["question"], held.questions["gold"], strict=True))
    kept = []
    for question, rows in first.groupby("question", sort=False):
        documents = rows.sort_values("rank")["document"].tolist()
        if not all(document in rewritten for document in documents):
            continue
        answers = gold[str(question)]
        lost = exact_match(held.passages[documents[0]], answers) and not exact_match(rewritten[documents[0]], answers)
        if not lost and not any(exact_match(rewritten[document], answers) for document in documents[1:]):
            kept.append(str(question))
    return kept


def tasks(name: str, cells: Sequence[Cell], most: int, first: int = 0) -> list[rag.Task]:
    """Answers that are wanted.

    ``name``: A benchmark. ``most``: Questions after the last one, in the order in which they were drawn. ``first``:
    the first question. Returns: Cell after cell.

    A question has its passages in the same order in every cell with as many documents; the relevant passage stands at
    each place equally often.
    """
    held, table, prompts, sets = benchmark(name), inputs(name), rag.read_prompts(), label_sets()
    rewritten = held.rewritten or paraphrases(name)
    asked = dict(zip(held.questions["question"], held.questions["text"], strict=True))
    questions = usable(held, rewritten, table)
    ranked = {
        key: rows.sort_values("rank")["document"].tolist() for key, rows in table.groupby(["retriever", "question"])
    }

    def messages(cell: Cell, question: str, shown: Sequence[str], relevant: str) -> rag.Messages:
        labels = sets[cell.labels] if cell.labels != "none" else None
        passages = []
        for document in shown:
            part = 0 if document == relevant else 1
            author = (cell.relevant_author, cell.nonrelevant_author)[part]
            text = held.passages[document] if author == "Human" else rewritten[document]
            mode = mode_parts(cell.mode)[part]
            label = labels.label(mode, author, SEED, question, document) if labels else None
            passages.append(rag.Passage(text, label))
        if labels is None:
            return prompts.answer(asked[question], passages)
        return prompts.answer(
            asked[question],
            passages,
            labels.notice,
            lambda group, text: labels.label("Informed", list(labels.groups)[group], SEED, text),
        )

    wanted = []
    for cell in cells:
        places = rag.balanced_places(len(questions), cell.documents, stable_generator(SEED, name, str(cell.documents)))
        for question, place in list(zip(questions, places, strict=True))[first:most]:
            relevant, *others = ranked[cell.retriever, question][: cell.documents]
            shown = rag.placed(relevant, others, int(place))
            key: dict[str, str | int] = {
                "benchmark": name,
                "retriever": cell.retriever,
                "labels": cell.labels,
                "k": cell.documents,
                "question": question,
                "mode": cell.mode,
                "relevant_author": cell.relevant_author,
                "nonrelevant_author": cell.nonrelevant_author,
            }
            wanted.append(
                rag.Task(key, tuple(shown), (int(place) + 1,), partial(messages, cell, question, shown, relevant))
            )
    return wanted


# --- command line ---------------------------------------------------------------------------------------------------


@contextmanager
def _model(weights: Path, endpoint: str | None, threads: int) -> Iterator[tuple[rag.Model, dict[str, str]]]:
    """Open a model, and say what it is."""
    stated = {"model": weights.name, "sha256": project.sha256(weights)}
    if endpoint is None:
        model = rag.gguf_model(weights, threads=threads)
        yield model, stated | {"program": f"xllamacpp {version('xllamacpp')}"}
        return
    with rag.endpoint_model(Endpoint(endpoint, weights.stem, timeout=600)) as model:
        told = model([{"role": "user", "content": "Say yes."}], Sampling(temperature=0, max_tokens=4, seed=SEED))
        yield model, stated | {"program": f"endpoint {told.fingerprint or 'without a name'}"}


def _digest(*parts: tuple[str, ...]) -> str:
    """Return one sha256 of some files below data/."""
    return hashlib.sha256("".join(project.sha256(project.data(*part)) for part in parts).encode()).hexdigest()


_ANSWER_FILES = (
    *(("prompts", name) for name in ("instruction.txt", "question.txt", "examples.yaml")),
    ("attributes", "author_labels.yaml"),
    (*FOLDER, "inputs.csv"),
    (*FOLDER, "names.jsonl"),
    (*FOLDER, "paraphrases.jsonl"),
)

_weights = click.option(
    "--weights", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), help="GGUF file."
)
_endpoint = click.option("--endpoint", help="Base URL of a server that runs these weights; without it, xllamacpp does.")
_threads = click.option("--threads", default=2, show_default=True, help="Threads of xllamacpp.")
_parallel = click.option("--parallel", default=1, show_default=True, help="Requests at a time.")


def _record(
    wanted: Sequence[rag.Task], name: str, model: rag.Model, settings: dict[str, str], sampling: Sampling, parallel: int
) -> None:
    path = project.root().joinpath("data", *FOLDER, f"{name}.jsonl")
    bar = partial(tqdm, desc=name, mininterval=10)
    try:
        rag.record_answers(wanted, model, path, settings, sampling, parallel=parallel, progress=bar)
    except rag.IncompleteError as error:
        raise click.ClickException(str(error)) from None


@click.group()
def main() -> None:
    """Record data/outputs/attribution."""


@main.command("inputs")
@click.option("--models", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--questions", default=120, show_default=True, help="Questions drawn of each benchmark.")
def record_inputs(models: Path, questions: int) -> None:
    """Draw questions and retrieve their passages."""
    _write_inputs(models, questions)


@main.command("rewrite")
@_weights
@_endpoint
@_threads
@_parallel
@click.option("--questions", default=60, show_default=True, help="Questions of which the passages are rewritten.")
def record_rewritings(weights: Path, endpoint: str | None, threads: int, parallel: int, questions: int) -> None:
    """Have a model make a pool of names, and paraphrase the passages that have no rewritten twin."""
    prompts, wanted = rag.read_prompts(), []
    for name in BENCHMARKS:
        held, table = benchmark(name), inputs(name)
        if held.rewritten:
            continue
        first = table[(table["retriever"] == RETRIEVERS[0]) & (table["rank"] <= REWRITTEN)]
        chosen = first[first["question"].isin(first["question"].unique()[:questions])]
        for document in dict.fromkeys(chosen["document"]):
            messages = partial(prompts.rewriting, held.passages[document])
            wanted.append(rag.Task({"benchmark": name, "document": document}, (document,), (), messages))
    with _model(weights, endpoint, threads) as (model, stated):
        settings = stated | {"prompts": _digest(("prompts", "names.txt"))}
        _record([rag.Task({"pool": 1}, (), (), prompts.pool_of_names)], "names", model, settings, NAMES, 1)
        settings = stated | {"prompts": _digest(("prompts", "paraphrase.txt"))}
        _record(wanted, "paraphrases", model, settings, PARAPHRASE, parallel)


@main.command("answers")
@_weights
@_endpoint
@_threads
@_parallel
@click.option("--benchmark", "names", multiple=True, default=list(BENCHMARKS), show_default=True)
@click.option("--experiment", "experiments", multiple=True, default=list(CELLS), show_default=True)
@click.option("--questions", default=40, show_default=True, help="Questions of each benchmark.")
@click.option("--from-question", "first", default=0, show_default=True, help="The first of them.")
@click.option("--output", required=True, help="Name of the record, without ending.")
def record_all_answers(
    weights: Path,
    endpoint: str | None,
    threads: int,
    parallel: int,
    names: tuple[str, ...],
    experiments: tuple[str, ...],
    questions: int,
    first: int,
    output: str,
) -> None:
    """Have a model answer; with more questions a record grows."""
    chosen = dict.fromkeys(cell for experiment in experiments for cell in CELLS[experiment])
    cells = sorted(chosen, key=lambda cell: cell.labels)  # prompts that begin alike follow each other
    wanted = [task for name in names for task in tasks(name, cells, questions, first)]
    with _model(weights, endpoint, threads) as (model, stated):
        _record(wanted, output, model, stated | {"prompts": _digest(*_ANSWER_FILES)}, ANSWER, parallel)


if __name__ == "__main__":
    main()
