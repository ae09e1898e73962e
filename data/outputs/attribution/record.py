"""Record chapter 5's model outputs: a pool of names, paraphrases of passages, and answers.

python data/outputs/attribution/record.py [--config FILE] [--models FOLDER] [--limit N]
    [--output FOLDER]

Each file is JSON Lines: settings first, then one line per output. Lines that exist are skipped, so
that the same command continues a run that was stopped. It needs the extra ``models``; the config is
`equipoise_studies.attribution.data.Study`.
"""

import gzip
import hashlib
import json
import math
import os
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from tqdm import tqdm

from equipoise.answer_modes import mode_parts
from equipoise.measures.attribution import exact_match
from equipoise.measures.citations import LARGEST_NUMBER, mentions
from equipoise_compendium import project, registry
from equipoise_studies.attribution import data, prompts

# Names in a file of questions: of a question, its passages, a passage's text and its relevance.
FORMS = {
    "questions": ("question", "passages", "text", "relevant"),
    "dpr": ("question", "ctxs", "text", "has_answer"),
    "ms-marco-qa": ("query", "passages", "passage_text", "is_selected"),
}


def stable_generator(seed: int, *words: str) -> np.random.Generator:
    """Create a random generator that depends only on a seed and words, not on earlier calls."""
    digest = hashlib.sha256("\x1f".join([str(seed), *words]).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


# --- questions ------------------------------------------------------------------------------------


@dataclass
class Questions:
    """Questions of a benchmark in the order drawn, with passages by id.

    ``ranked``: by retriever and question the relevant passage, then the others in their order.
    ``places``: where the relevant one was retrieved, from 0. ``rewritten``: twins by a model.
    """

    text: dict[str, str] = field(default_factory=dict)
    gold: dict[str, list[str]] = field(default_factory=dict)
    passages: dict[str, str] = field(default_factory=dict)
    rewritten: dict[str, str] = field(default_factory=dict)
    ranked: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    places: dict[str, dict[str, int]] = field(default_factory=dict)


def natural_questions(questions: Questions) -> None:
    """Read the texts of NQ; a passage has the id of the first question that has it."""
    first: dict[str, str] = {}
    path = registry.fetch("nqoracle", "qa_data/nq-open-oracle.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            entry, key = json.loads(line), f"nq-{number:04}"
            questions.text[key], questions.gold[key] = entry["question"], entry["answers"]
            (passage,) = entry["ctxs"]
            first.setdefault(f"{passage['title']}. {passage['text']}", key)
    questions.passages = {document: text for text, document in first.items()}


def nq_utd(questions: Questions) -> None:
    """Read the texts of NQ-UTD, whose passages all have a twin by Llama 2."""
    with zipfile.ZipFile(registry.fetch("cocktail", "dataset/nq-utd.zip")) as archive:
        for member, texts in {
            "queries.jsonl": questions.text,
            "corpus/human.jsonl": questions.passages,
            "corpus/llama-2-7b-chat-tmp0.2.jsonl": questions.rewritten,
        }.items():
            for line in archive.read(member).decode().splitlines():
                entry = json.loads(line)
                texts[entry["_id"]] = entry["text"]
                if member == "queries.jsonl":
                    questions.gold[entry["_id"]] = [str(entry["metadata"]["answer"])]


def entries_of(path: Path, question: str) -> list[dict[str, Any]]:
    """Read the questions of a file: JSON Lines, a list, or an object of questions or columns."""
    text = path.read_text(encoding="utf-8")
    try:
        content = json.loads(text)
    except json.JSONDecodeError:
        content = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(content, list) or isinstance(content.get(question), str):
        return content if isinstance(content, list) else [content]
    if question in content:  # one object per field, as MS MARCO QA is published
        fields = {name: values for name, values in content.items() if isinstance(values, dict)}
        rows = []
        for key in content[question]:
            rows.append({name: values.get(key) for name, values in fields.items()} | {"id": key})
        return rows
    return [{"id": key, **entry} for key, entry in content.items()]


def listed_questions(benchmark: data.Benchmark, depth: int) -> Questions:
    """Read your own questions; each has one relevant passage in the top k of the retriever.

    thesis, section 5.3.3: "queries that have only one relevant document containing the
    ground-truth answer in their top-k retrieved list".
    """
    questions = Questions()
    question, passages, text, relevant = FORMS[benchmark.form]
    for retriever, path in benchmark.files.items():
        ranked = questions.ranked.setdefault(retriever, {})
        places = questions.places.setdefault(retriever, {})
        for number, entry in enumerate(entries_of(path, question), start=1):
            shown = entry.get(passages, entry.get("contexts", []))[:depth]
            if any(text not in passage for passage in shown):
                raise click.ClickException(
                    f"{path.name}, question {number}: a passage has no {text!r} (Pyserini writes "
                    "texts with --store-raw)"
                )
            ids = []
            for passage in shown:
                title, body = passage.get("title", ""), passage[text]
                first, line_end, rest = body.partition("\n")
                if line_end and first[0] == first[-1] == '"':  # as Pyserini stores a title
                    title, body = first[1:-1], rest
                titled = f"{title}. {body}" if title else body
                ids.append(hashlib.sha256(titled.encode()).hexdigest()[:16])
                questions.passages[ids[-1]] = titled
            marked = [place for place, passage in enumerate(shown) if int(passage[relevant])]
            if len(set(ids)) == depth and len(marked) == 1:
                key = str(entry.get("id", entry.get("query_id", number)))
                questions.text.setdefault(key, entry[question])
                questions.gold.setdefault(key, entry["answers"])
                places[key] = marked[0]
                ranked[key] = [ids.pop(marked[0]), *ids]
    return questions


def drawn_questions(study: data.Study, name: str, sample: data.Sample) -> Questions:
    """Return the questions of a sample; NQ and NQ-UTD use the passages of committed inputs."""
    benchmark = study.benchmarks[name]
    if benchmark.files:
        questions = listed_questions(benchmark, max(study.documents, *study.cut_offs, 0))
        keys = list(questions.text)
        order = stable_generator(study.seed, name).permutation(len(keys))
        for retriever, ranked in questions.ranked.items():
            usable = [keys[place] for place in order if keys[place] in ranked]
            drawn = usable[: sample.drawn[name]]
            questions.ranked[retriever] = {key: ranked[key] for key in drawn}
        return questions
    questions = Questions()
    {"NQ": natural_questions, "NQ-UTD": nq_utd}[name](questions)
    table = pd.read_csv(study.outputs / sample.folder / "inputs.csv", dtype=str)
    for row in table[table["benchmark"] == name].itertuples():
        ranked = questions.ranked.setdefault(row.retriever, {})
        ranked.setdefault(row.question, []).append(row.document)
    return questions


def usable(study: data.Study, questions: Questions, checked: bool) -> list[str]:
    """Select the questions whose passages all have a twin, in the order drawn.

    If ``checked``, the relevant twin must contain the gold answer where the passage does, and no
    other twin may contain it. The thesis had two people check this (appendix 5.A).
    """
    found = []
    for question, ranked in next(iter(questions.ranked.values())).items():
        relevant, *others = ranked[: study.documents]
        if not questions.rewritten.keys() >= {relevant, *others}:
            continue
        gold = questions.gold[question]
        before = exact_match(questions.passages[relevant], gold)
        after = exact_match(questions.rewritten[relevant], gold)
        gained = any(exact_match(questions.rewritten[other], gold) for other in others)
        if not checked or (after >= before and not gained):
            found.append(question)
    return found


# --- what is asked --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One output to record.

    ``key``: what identifies it. ``about``: further fields of its line. ``shown``: ids of the
    passages; ``relevant``: numbers of the relevant ones, from 1. ``messages``: makes the prompt.
    """

    key: dict[str, Any]
    messages: Callable[[], prompts.Messages]
    about: dict[str, Any] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    relevant: tuple[int, ...] = ()


class Asking:
    """The tasks of one benchmark in a sample."""

    def __init__(
        self,
        study: data.Study,
        name: str,
        sample: data.Sample,
        questions: Questions,
        labels: dict[str, prompts.LabelSet],
    ) -> None:
        self.study, self.name, self.sample, self.questions = study, name, sample, questions
        self.labels = labels
        self.wording = prompts.read_prompts(study)
        self.usable = usable(study, questions, sample.checked)

    def label(self, cell: data.Cell, mode: str, author: str, *words: str) -> str | None:
        """Return the label of a passage; the same words always draw the same label."""
        labels = self.labels[cell.labels]
        # The first group is the one in the place of people, such as women of women and men.
        group = list(labels.groups)[("Human", "LLM").index(author)]
        shown = labels.shown(mode, group)
        if shown is None:
            return None
        choices = labels.groups[shown]
        rng = stable_generator(self.study.seed, cell.labels, shown, *words)
        return choices[int(rng.integers(len(choices)))]

    def prompt(
        self, cell: data.Cell, question: str, shown: Sequence[str], relevant: str
    ) -> prompts.Messages:
        """Return the prompt of a question in a cell."""
        modes = mode_parts(cell.mode)
        passages = []
        for document in shown:
            part = 0 if document == relevant else 1
            author = (cell.relevant_author, cell.nonrelevant_author)[part]
            texts = self.questions.passages if author == "Human" else self.questions.rewritten
            label = None
            if cell.labels != "none":
                label = self.label(cell, modes[part], author, question, document)
            passages.append(prompts.Passage(texts[document], label))
        text = self.questions.text[question]
        if cell.labels == "none":
            return self.wording.answer(text, passages)
        notice = self.labels[cell.labels].notice
        return self.wording.answer(
            text,
            passages,
            notice,
            lambda group, words: self.label(cell, "Informed", ("Human", "LLM")[group], words),
        )

    def tasks(self, cell: data.Cell, number: int) -> Iterator[Task]:
        """List the answers of a cell to the first questions."""
        drawn = list(self.questions.ranked[cell.retriever])
        if self.sample.twins:
            drawn = self.usable
        # In each run of k questions the relevant passage is at each place once.
        rng = stable_generator(self.study.seed, self.name, str(cell.k))
        rounds = [rng.permutation(cell.k) for _ in range(-(-len(drawn) // cell.k))]
        places = dict(zip(drawn, chain.from_iterable(rounds), strict=False))
        # thesis, appendix 5.D: with other numbers of passages its place is random
        if self.study.placed == "as retrieved" and cell.k == self.study.documents:
            places = self.questions.places[cell.retriever]
        for question in (drawn if cell.by_people else self.usable)[:number]:
            relevant, *others = self.questions.ranked[cell.retriever][question][: cell.k]
            place = int(places[question])
            shown = (*others[:place], relevant, *others[place:])
            yield Task(
                cell._asdict() | {"benchmark": self.name, "question": question},
                partial(self.prompt, cell, question, shown, relevant),
                {"gold": self.questions.gold[question]},
                shown,
                (place + 1,),
            )


# --- models ---------------------------------------------------------------------------------------


@contextmanager
def opened(model: data.Model, folder: Path | None) -> Iterator[tuple[Any, str]]:
    """Open a client for the model's endpoint; weights are served on this machine."""
    import openai

    url, key = model.url, "none"
    program = f"endpoint {model.name}"
    if not url:
        import xllamacpp

        if folder is None or not (folder / model.weights).is_file():
            raise click.ClickException(f"{model.weights}: not found in --models FOLDER")
        settings = xllamacpp.CommonParams()
        settings.model.path = str(folder / model.weights)
        settings.n_ctx = model.context * model.parallel
        settings.n_parallel = model.parallel
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = model.threads
        settings.verbosity = -1
        server = xllamacpp.Server(settings)
        url, program = f"{server.listening_address}/v1", f"xllamacpp {version('xllamacpp')}"
    elif model.key_variable:
        key = os.environ.get(model.key_variable, "")
        if not key:
            raise click.ClickException(f"the environment variable {model.key_variable} is empty")
    with openai.OpenAI(base_url=url, api_key=key, max_retries=model.retries, timeout=600) as client:
        yield client, program


def citation_probabilities(
    text: str, tokens: Sequence[Any], documents: int
) -> list[dict[str, Any]]:
    """Return the probability of each citation number that a model wrote (thesis, Eq. 5.4).

    A number of several tokens has the product of theirs. The probability is None where the server
    returned none.
    """
    pieces = [token.token for token in tokens]
    offset = "".join(pieces).find(text) if pieces else -1
    ends = np.cumsum([len(piece) for piece in pieces]) - offset
    cited = []
    for number, start, end in chain.from_iterable(mentions(text, documents or None)):
        if number >= LARGEST_NUMBER:
            continue
        probability = None
        if offset >= 0:
            starts = ends - [len(piece) for piece in pieces]
            touching = np.flatnonzero((starts < end) & (ends > start))
            probability = round(math.exp(sum(tokens[int(place)].logprob for place in touching)), 6)
        cited.append({"document": number, "probability": probability})
    return cited


def record(
    path: Path,
    tasks: Sequence[Task],
    study: data.Study,
    model_name: str,
    sampling: dict[str, Any],
    folder: Path | None,
) -> None:
    """Append the model outputs that a file does not contain yet."""
    model = study.models[model_name]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes() if path.is_file() else b""
    whole = content[: content.rfind(b"\n") + 1]  # a killed run may leave a part of a line
    recorded = set()
    for line in map(json.loads, whole.splitlines()[1:]):
        recorded.add(tuple(line[name] for name in sorted(tasks[0].key)))
    missing = [t for t in tasks if tuple(t.key[name] for name in sorted(t.key)) not in recorded]
    if not missing:
        return
    with opened(model, folder) as (client, program), path.open("wb") as file:

        def ask(task: Task) -> dict[str, Any]:
            begun = time.monotonic()
            completion = client.chat.completions.create(
                model=model.name or model.weights,
                messages=task.messages(),
                logprobs=True,
                **sampling,
            )
            choice, usage = completion.choices[0], completion.usage
            text = choice.message.content or ""
            tokens = choice.logprobs.content or [] if choice.logprobs else []
            return {
                **task.key,
                **task.about,
                "record": "answer",
                "shown": task.shown,
                "documents": len(task.shown),
                "relevant": task.relevant,
                "answer": text,
                "citations": citation_probabilities(text, tokens, len(task.shown)),
                "finish": choice.finish_reason,
                "prompt_tokens": usage.prompt_tokens if usage else 0,
                "completion_tokens": usage.completion_tokens if usage else 0,
                "seconds": round((time.monotonic() - begun) / model.parallel, 3),
            }

        file.write(whole)
        if not whole:
            digest = project.sha256(folder / model.weights) if folder and model.weights else ""
            settings = {
                "record": "settings",
                "models": {model.weights or model.name: digest},
                "program": program,
                "sampling": {"system": "", **sampling},
                "seed": study.seed,
            }
            file.write(json.dumps(settings, sort_keys=True).encode() + b"\n")
        with ThreadPoolExecutor(model.parallel) as pool:
            for line in tqdm(pool.map(ask, missing), path.name, len(missing), mininterval=10):
                file.write(json.dumps(line, sort_keys=True).encode() + b"\n")
                file.flush()


# --- the steps ------------------------------------------------------------------------------------


def known(study: data.Study, output: Path, name: str) -> Path:
    """Return the path of an output file, or of the config's file if the output has none."""
    own = study.outputs / name
    return own if own.is_file() and not (output / name).is_file() else output / name


def paraphrase_tasks(
    study: data.Study, name: str, sample: data.Sample, questions: Questions
) -> list[Task]:
    """List the paraphrases to record: each passage of the first questions."""
    wording = prompts.read_prompts(study)
    ranked = next(iter(questions.ranked.values()))
    documents: dict[str, None] = {}
    for question in list(ranked)[: sample.rewritten]:
        documents.update(dict.fromkeys(ranked[question][: study.documents]))
    tasks = []
    for document in documents:
        messages = partial(wording.rewriting, questions.passages[document])
        key = {"benchmark": name, "document": document}
        tasks.append(Task(key, messages, shown=(document,)))
    return tasks


def answer_tasks(study: data.Study, asked: data.Record, asking: dict[str, Asking]) -> list[Task]:
    """List the answers of a record by question, so a stopped run has complete questions."""
    tasks = []
    for name, experiments in asked.experiments.items():
        tasks_by_cell = []
        # Cells of one set of labels follow each other: a server reads their beginning once.
        for cell in sorted(study.cells(name, *experiments), key=lambda cell: cell.labels):
            rewritten = asked.rewritten or asked.questions
            number = asked.questions if cell.by_people else rewritten
            tasks_by_cell.append(asking[name].tasks(cell, number))
        for question_tasks in zip_longest(*tasks_by_cell):
            tasks += [task for task in question_tasks if task]
    return tasks


@click.command()
@click.option("--config", default="replica", help="A YAML file, or a name [replica].")
@click.option("--models", type=click.Path(path_type=Path), help="Folder of GGUF weights.")
@click.option("--limit", type=int, help="Outputs per file, to try a config.")
@click.option("--output", type=click.Path(path_type=Path), help="Folder [that of the config].")
def main(config: str, models: Path | None, limit: int | None, output: Path | None) -> None:
    """Record the outputs that a config names and a folder does not contain yet."""
    study = data.read_study(config)
    output = output or study.outputs
    common = {"top_p": 1.0, "seed": study.seed}
    writing = {"temperature": study.writing_temperature, "max_tokens": study.writing_tokens}
    answering = {"temperature": study.temperature, "max_tokens": study.answer_tokens}
    listing = {"temperature": study.names_temperature, "max_tokens": 1200, "top_p": 0.95}

    names = known(study, output, "names.jsonl")
    if not names.is_file():
        wording = prompts.read_prompts(study)
        task = Task({"pool": 1}, lambda: [{"role": "user", "content": wording.names}])
        record(names, [task], study, study.names_by, common | listing, models)
    labels = prompts.read_labels(study.labels, prompts.read_names(names))

    for sample_name, sample in study.samples.items():
        asking = {}
        for name in sample.drawn:
            questions = drawn_questions(study, name, sample)
            if sample.rewritten and not questions.rewritten:
                path = known(study, output, f"{sample.folder}/paraphrases.jsonl".lstrip("/"))
                tasks = paraphrase_tasks(study, name, sample, questions)[:limit]
                record(path, tasks, study, study.writer, common | writing, models)
                for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()[1:]):
                    # Without paraphrases that reached the limit of tokens.
                    if line["benchmark"] == name and line["finish"] == "stop":
                        questions.rewritten[line["document"]] = line["answer"].strip()
            asking[name] = Asking(study, name, sample, questions, labels)
        for record_name, asked in study.records.items():
            if asked.sample == sample_name:
                path = output / f"{record_name}.jsonl"
                tasks = answer_tasks(study, asked, asking)[:limit]
                record(path, tasks, study, asked.model, common | answering, models)


if __name__ == "__main__":
    main()
