"""Configs of chapter 5, and the cached answers that its notebook reads.

References
----------
thesis: chapter 5, sections 5.3 and 5.4, appendices 5.A to 5.E.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeInt, PositiveInt

from equipoise.answer_modes import MODES
from equipoise.loaders.answers import read_answers
from equipoise.measures.attribution import bias_table, citation_rows, quality_table
from equipoise_studies.configs import ConfigPath, Settings, read_config

# --- settings -------------------------------------------------------------------------------------


class Benchmark(Settings):
    """Questions with one relevant passage each.

    ``retrievers`` of NQ or NQ-UTD, whose retrieved passages are committed, or ``files`` of your
    own questions by retriever, in a ``form``. ``stands_for``: the benchmark of the thesis.
    ``longest``: words of the longest passage. ``source``: where the files are available.
    """

    about: str
    stands_for: Literal["NQ", "MS MARCO"]
    retrievers: tuple[str, ...] = ()
    files: dict[str, ConfigPath] = Field(default={})
    form: Literal["questions", "dpr", "ms-marco-qa"] = "questions"
    longest: PositiveInt = 100
    source: str = ""

    @property
    def found_by(self) -> tuple[str, ...]:
        """Its retrievers, the usual one first."""
        return self.retrievers or tuple(self.files)


class Sample(Settings):
    """Questions drawn once, of which several models are asked.

    ``drawn``: how many of each benchmark. ``retrievers``: all by default. ``folder``: below that of
    the outputs. ``rewritten``: of how many questions a model rewrites the passages. ``twins``: only
    questions whose passages are all rewritten are used. ``checked``: a rewritten question is used
    only if its relevant passage still contains the gold answer, and no other does.
    """

    drawn: dict[str, PositiveInt]
    retrievers: tuple[str, ...] = ()
    folder: str = ""
    rewritten: NonNegativeInt = 0
    twins: bool = False
    checked: bool = True


class Model(Settings):
    """A model at an OpenAI-compatible ``url``, or GGUF ``weights`` on this machine.

    ``name``: of the model at its url. ``key_variable``: the environment variable with its key.
    ``parallel``: requests at a time. ``retries``: of one request, as where the rate is limited.
    ``context``: tokens of prompt and answer together, and ``threads``, where weights run here.
    ``source``: where it is available.
    """

    weights: str = ""
    url: str = ""
    name: str = ""
    key_variable: str = ""
    parallel: PositiveInt = 1
    retries: NonNegativeInt = 30
    context: PositiveInt = 4096
    threads: PositiveInt = 2
    source: str = ""


class Record(Settings):
    """The answers of one model: experiments by benchmark, and questions of each.

    ``rewritten``: questions whose passages a model rewrote, as many as ``questions`` by default.
    ``name``: what the report calls the model.
    """

    sample: str
    model: str
    experiments: dict[str, tuple[str, ...]]
    questions: PositiveInt
    rewritten: PositiveInt | None = None
    name: str = ""


class Study(Settings):
    """A run of chapter 5.

    ``outputs``, ``derived``: folders of cached answers and of derived data. ``writer``: the model
    that rewrites passages. ``names_by``: the one that lists names. ``prompts``: a folder.
    ``examples``: worked examples before each question. ``documents``: k, passages shown;
    ``cut_offs``: other numbers of passages. ``placed``: the relevant passage is at each place
    equally often, or where it was retrieved. ``one_message``: instruction and question are one
    message.
    """

    outputs: ConfigPath
    derived: ConfigPath = Path("data/facts/attribution")
    benchmarks: dict[str, Benchmark]
    samples: dict[str, Sample]
    models: dict[str, Model]
    records: dict[str, Record]
    writer: str
    names_by: str
    prompts: ConfigPath
    labels: ConfigPath
    examples: ConfigPath | None = None
    one_message: bool = False
    documents: PositiveInt = 10
    cut_offs: tuple[PositiveInt, ...] = ()
    placed: Literal["evenly", "as retrieved"] = "evenly"
    temperature: float = 0.0
    answer_tokens: PositiveInt = 512
    writing_temperature: float = 0.0
    writing_tokens: PositiveInt = 512
    names_temperature: float = 0.7
    seed: int = 20250516

    def names(self) -> dict[str, str]:
        """Return the name of the model of each record in the report."""
        return {key: record.name or key for key, record in self.records.items()}

    def cells(self, benchmark: str, *experiments: str) -> list[Cell]:
        """Return the distinct settings of some experiments on a benchmark."""
        cells: list[Cell] = []
        for experiment in experiments:
            cells += _cells(self, self.benchmarks[benchmark].found_by, experiment)
        return list(dict.fromkeys(cells))

    def standing_for(self, table: pd.DataFrame, benchmark: str) -> pd.DataFrame:
        """Return the rows of a table whose benchmark replaces this one of the thesis."""
        names = [name for name, it in self.benchmarks.items() if it.stands_for == benchmark]
        return table[table["benchmark"].isin(names)]

    def benchmarks_of_the_thesis(self) -> dict[str, str]:
        """Return the benchmark of the thesis that each benchmark replaces."""
        return {name: benchmark.stands_for for name, benchmark in self.benchmarks.items()}

    def about(self, benchmark: str = "") -> str:
        """Describe the data of a benchmark of the thesis, or of all, and the models."""
        data = [it.about for it in self.benchmarks.values() if benchmark in ("", it.stands_for)]
        return f"{'; '.join(data)}; cached answers of {', '.join(self.names().values())}"


def read_study(name: str) -> Study:
    """Read a config: a YAML file, or a name in ``data/studies/attribution``."""
    return read_config(Study, "attribution", name)


# --- experiments ----------------------------------------------------------------------------------

EXPERIMENTS = {
    "modes": ("Human and LLM, true or exchanged", "5.1 to 5.3, 5.6, 5.10 to 5.13"),
    "mixed": ("Human and LLM, on texts of one author", "5.4, 5.5, 5.15"),
    "names": ("names and AI, on texts of one author", "5.7, 5.8"),
    "placebo": ("Birch and Maple, archives that say nothing of authors", "none: ours"),
    "same label": ("Human or LLM on all passages", "5.14, 5.15"),
    "retrievers": ("names and AI, other retrievers", "5.9"),
    "documents": ("names and AI, other numbers of passages", "Figure 5.9"),
}
"""Experiments: the labels that they show, and the tables of the thesis.

Any other set of labels is an experiment by its name, on passages by people.
"""

SWAPS = ("Informed/CF-informed", "CF-informed/Informed")


class Cell(NamedTuple):
    """One setting under which every question is answered.

    ``labels``: a set of labels, or "none". The authors wrote the relevant passage and the others.
    """

    labels: str
    mode: str
    relevant_author: str
    nonrelevant_author: str
    k: int
    retriever: str

    @property
    def by_people(self) -> bool:
        """Whether people wrote all passages, so that none has to be rewritten."""
        return (self.relevant_author, self.nonrelevant_author) == ("Human", "Human")


def _cells(study: Study, retrievers: tuple[str, ...], experiment: str) -> list[Cell]:
    """Return the settings of an experiment.

    Only two experiments vary the retriever and the number of passages.
    """
    authors = [("Human", "Human")]
    if experiment == "modes":
        authors = [("LLM", "Human"), ("Human", "LLM")]
    elif experiment in ("mixed", "names", "same label"):
        authors = [("Human", "Human"), ("LLM", "LLM")]

    labels = experiment
    if experiment in ("modes", "mixed", "same label"):
        labels = "plain"
    elif experiment in ("retrievers", "documents"):
        labels = "names"
    # Where all passages have one author, only the mixed modes show different labels.
    modes = MODES[1:] if experiment in ("modes", "same label") else SWAPS
    shown = [(labels, mode) for mode in modes]
    if experiment != "same label":
        shown.insert(0, ("none", "Vanilla"))

    passages = [(retrievers[0], study.documents)]
    if experiment == "retrievers":
        passages = [(retriever, study.documents) for retriever in retrievers[1:]]
    elif experiment == "documents":
        passages = [(retrievers[0], k) for k in study.cut_offs]

    cells = []
    for (retriever, k), pair, (label_set, mode) in product(passages, authors, shown):
        cells.append(Cell(label_set, mode, *pair, k, retriever))
    return cells


def in_experiment(answers: pd.DataFrame, *experiments: str) -> pd.DataFrame:
    """Return the answers in a setting of some experiments, in their order."""
    within = [not names.isdisjoint(experiments) for names in answers["experiments"]]
    return answers[within].reset_index(drop=True)


def design_table(scored: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return experiments with labels, tables, and the largest number of questions of a model."""
    labelled = scored[scored["labels"] != "none"]
    own = set().union(*labelled["experiments"]) - set(EXPERIMENTS)
    rows = []
    for name in [*EXPERIMENTS, *sorted(own)]:
        asked = in_experiment(labelled, name)
        labels, in_tables = EXPERIMENTS.get(name, (f"{name}, of a set of labels", "none: ours"))
        row: dict[str, Any] = {"experiment": name, "labels": labels, "tables": in_tables}
        counts = asked.groupby(["benchmark", "model"])["question"].nunique()
        for benchmark in study.benchmarks:
            row[f"questions of {benchmark}"] = counts.groupby("benchmark").max().get(benchmark, 0)
        if not asked.empty:
            rows.append(row)
    return pd.DataFrame(rows)


# --- cached answers -------------------------------------------------------------------------------


def read_settings(path: Path) -> dict[str, Any]:
    """Read the first line of a file of cached answers with model, sampling and seed."""
    with path.open(encoding="utf-8") as lines:
        return dict(json.loads(next(lines)))


def cached_answers(study: Study) -> pd.DataFrame:
    """Read all cached answers of a study, in the form of `equipoise.loaders.answers`.

    Further columns: ``model``; ``collection``, the benchmark and the first record with the same
    weights; and ``experiments``, the names of the experiments that have the answer's setting.
    """
    tables = []
    first_record: dict[tuple[str, ...], str] = {}
    for record, name in study.names().items():
        path = study.outputs / f"{record}.jsonl"
        if not path.is_file():
            script = "data/outputs/attribution/record.py"
            raise FileNotFoundError(f"cached answers {path} not found; record them with {script}")
        weights = tuple(read_settings(path)["models"])
        answers = read_answers(path)
        first_name = first_record.setdefault(weights, name)
        collection = answers["benchmark"] + ", " + first_name
        tables.append(answers.assign(model=name, collection=collection))
    answers = pd.concat(tables, ignore_index=True)

    names = set(EXPERIMENTS)
    for asked in study.records.values():
        names.update(*asked.experiments.values())
    known: dict[tuple[str, Cell], set[str]] = {}
    for benchmark, name in product(study.benchmarks, sorted(names)):
        for cell in study.cells(benchmark, name):
            known.setdefault((benchmark, cell), set()).add(name)
    cells = answers[list(Cell._fields)].itertuples(index=False, name=None)
    pairs = zip(answers["benchmark"], cells, strict=True)
    return answers.assign(
        experiments=[known.get((benchmark, Cell(*cell)), set()) for benchmark, cell in pairs]
    )


def models(study: Study) -> pd.DataFrame:
    """Return the weights, program and sampling of each record."""
    rows = []
    for record, name in study.names().items():
        settings = read_settings(study.outputs / f"{record}.jsonl")
        for weights, digest in settings["models"].items():
            row = {"model": name, "weights": weights, "sha256": digest[:16] + "…" if digest else ""}
            row["program"] = settings["program"]
            for option in ("temperature", "max_tokens", "seed"):
                row[option] = settings["sampling"][option]
            rows.append(row)
    return pd.DataFrame(rows)


def faults(scored: pd.DataFrame) -> pd.DataFrame:
    """Count the faults in the answers of each model."""
    counted = scored.assign(answers=1, cut_off=scored["finish"] != "stop")
    counted["citations"] = scored["citations"].map(len)
    columns = ["answers", "uncited", "out_of_range", "repeated", "malformed", "cut_off"]
    groups = ["model", "benchmark"]
    table = counted.groupby(groups, sort=False)[[*columns, "citations"]].sum()
    citations = citation_rows(scored)
    unknown = citations[citations["probability"].isna()].groupby(groups).size()
    table["without_probability"] = unknown.reindex(table.index, fill_value=0)
    return table.reset_index()


# --- tables under the thesis's names --------------------------------------------------------------

COLUMNS = {
    "relevant_author": "relevant",
    "nonrelevant_author": "non-relevant",
    "answers": "questions",
    "exact_match": "EM",
    "cited_relevant": "relevant cited",
    "cited": "total cited",
    "relevant_ac": "relevant AC",
    "nonrelevant_ac": "non-relevant AC",
    "relevant_citations": "relevant citations",
    "nonrelevant_citations": "non-relevant citations",
}
"""Columns of the library's tables, and what the thesis calls them."""


def p_as_text(p: pd.Series) -> pd.Series:
    """Format p-values as papers report them; a missing one is empty."""
    return p.map("{:.3f}".format).mask(p < 0.001, "<0.001").mask(p.isna(), "")


def quality_in_points(scored: pd.DataFrame) -> pd.DataFrame:
    """Return mean scores by setting and mode, precision and recall in points."""
    table = quality_table(scored, by=["benchmark", "model"]).rename(columns=COLUMNS)
    return table.assign(Precision=100 * table["precision"], Recall=100 * table["recall"])


def bias_in_points(scored: pd.DataFrame, **draws: Any) -> pd.DataFrame:
    """Return CAS and CAB by setting, retriever and k, in points. ``draws``: of `bias_table`."""
    table = bias_table(scored, ["benchmark", "model", "retriever", "k"], **draws)
    table[["value", "low", "high"]] *= 100
    table["changed"] = table["changed"].astype(str) + " of " + table["questions"].astype(str)
    table["score"] = table["measure"].str.capitalize()
    table["p (t-test)"] = p_as_text(table["p_t"])
    table["p (permutation)"] = p_as_text(table["p_permutation"])
    return table.rename(columns=COLUMNS | {"value": "Δ"})


def most_varied(
    answers: pd.DataFrame, score: str, spread: str | Callable[..., Any] = np.ptp
) -> pd.DataFrame:
    """Return the answers to the question whose score varies most, the first of equals."""
    spreads = answers.groupby(["benchmark", "question"])[score].agg(spread)
    # A stable sort, so that the first of equals is the same on every machine.
    benchmark, question = spreads.sort_values(ascending=False, kind="stable").index[0]
    return answers[(answers["benchmark"] == benchmark) & (answers["question"] == question)]


def example_parts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a question with gold answer, ids of passages, and answers by mode.

    The texts of question and passages belong to others.
    """
    answer = rows.iloc[0]
    parts = [("Question", answer["question"]), ("Gold answer", "; ".join(answer["gold"]))]
    for number, passage in enumerate(answer["shown"], start=1):
        name = f"[{number}], relevant" if number in answer["relevant"] else f"[{number}]"
        parts.append((name, f"passage {passage}"))
    by_people = rows[rows["relevant_author"] == "Human"].drop_duplicates(["model", "mode"])
    for row in by_people.itertuples():
        parts.append((f"{row.model}, {row.mode}", str(row.answer)))
    return pd.DataFrame(parts, columns=["part", "text"])


def example_answers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return answers in the columns of Tables 5.16 and 5.17, the question by its id."""
    columns = ["question", "gold", "relevant", "model", "mode"]
    columns += ["relevant_author", "nonrelevant_author", "answer", "precision", "recall"]
    table = rows[columns].rename(columns={"relevant": "relevant passage"} | COLUMNS)
    for name in ("gold", "relevant passage"):
        table[name] = ["; ".join(map(str, values)) for values in table[name]]
    return table


# --- derived data ---------------------------------------------------------------------------------


READINGS = {
    "[1] alone": ["alone"],
    "lists too": ["brackets"],
    "all forms": ["brackets", "named"],
}
"""Ways to read citations: as the authors' code does, as our measures do, and in every form."""


def large_model_answers(study: Study, reading: str = "all forms") -> pd.DataFrame:
    """Read public answers of large models with precision, recall and correctness, in points.

    ``cites``: 100 where an answer cites a passage that it was shown. Precision and recall are 0
    where it does not, as in the thesis.
    """
    answers = pd.read_parquet(study.derived / "large_models.parquet")
    cited = []
    hits = []
    for place, *texts in answers[["place", *READINGS[reading]]].itertuples(index=False):
        numbers = set(" ".join(texts).split())
        cited.append(len(numbers))
        hits.append(100.0 * (str(place) in numbers))
    answers = answers.assign(cited=cited, recall=hits)
    answers["cites"] = 100.0 * (answers["cited"] > 0)
    answers["precision"] = answers["recall"] / answers["cited"].clip(lower=1)
    answers["correct"] = 100.0 * answers["correct"]
    return answers


def answers_of_people(study: Study) -> pd.DataFrame:
    """Read public answers of GPT-4o and of people, one row per answer and passage shown.

    ``grade``: by NIST, missing without a judgement.
    """
    answers = pd.read_csv(study.derived / "people.csv", keep_default_na=False)
    grades = pd.read_csv(study.derived / "grades.csv")
    shown = answers.merge(pd.DataFrame({"rank": range(1, 21)}), how="cross")
    pairs = zip(shown["rank"], shown["cited"], strict=True)
    shown["cited"] = [str(rank) in cited.split() for rank, cited in pairs]
    return shown.merge(grades, how="left", on=["question", "rank"])
