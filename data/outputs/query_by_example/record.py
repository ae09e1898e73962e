"""Record the scores of the rankers of chapter 2, each trained as in its config.

    python data/outputs/query_by_example/record.py --config FILE --models FOLDER [--output FOLDER]

It writes ``scores.csv.gz`` after each ranker and seed, and skips those that the file contains.
``--limit N`` scores the first N pairs and learns from N examples per stage, to try a config out.
The trained weights are in the folder ``weights`` of the output, which can be deleted afterwards.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import transformers
from numpy.typing import NDArray
from rankers import BATCH, KINDS, LONGEST, CrossEncoder, Ids, Ranker, Tilde, TildeV2
from safetensors.torch import load_model, save_model
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from equipoise.loaders.trec import read_run
from equipoise_compendium import project
from equipoise_studies.query_by_example import systems
from equipoise_studies.query_by_example.data import (
    LEARNED,
    PAIR,
    Stage,
    Study,
    System,
    read_study,
)
from equipoise_studies.query_by_example.texts import Dataset, load, text_of

CHUNK = 2000  # pairs, or documents, whose scores of all tokens are in memory
HARD = 20  # papers that BM25 ranks highest, from which a negative is drawn


# --- training -------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Queries (``task, query``) that one model learns from, and queries that it scores."""

    name: str
    trained: pd.DataFrame
    scored: pd.DataFrame


@dataclass(frozen=True)
class Run:
    """The inputs of a recording."""

    study: Study
    dataset: Dataset
    models: Path
    output: Path
    limit: int | None

    def texts(self, papers: pd.DataFrame | None = None) -> pd.Series:
        """Return the texts of papers, by default of all."""
        papers = self.dataset.papers if papers is None else papers
        return text_of(papers, self.study.collection.text)

    def parts(self, system: System, seed: int) -> list[Part]:
        """Divide the queries, so that no model scores a query that it learned from.

        Where no queries are set apart for training, the query papers are cut into halves, and each
        half is scored by the model trained on the other.
        """
        queries = self.dataset.ranked().judgements[["task", "query"]].drop_duplicates()
        if all(stage.pairs != "judgements" for stage in system.training):
            return [Part("all", queries.head(0), queries)]
        if self.study.collection.trained_on:
            splits = self.dataset.splits
            train = splits.loc[splits["part"] == "train", ["task", "query"]]
            if not self.study.each_task:
                return [Part("all", train, queries)]
            parts = []
            for task, scored in queries.groupby("task"):
                parts.append(Part(str(task), train[train["task"] == task], scored))
            return parts
        # By papers, not queries: a paper's judgements in one task are informative about others.
        papers = np.array(sorted(queries["query"].unique()))
        first = np.random.default_rng(seed).permutation(papers)[: len(papers) // 2]
        is_first = queries["query"].isin(first)
        halves = queries[is_first], queries[~is_first]
        return [Part("half1", halves[1], halves[0]), Part("half2", halves[0], halves[1])]

    def trained(self, name: str, seed: int, part: Part) -> tuple[Ranker, dict[str, Any]]:
        """Train a ranker on a part, or load a trained one, with its measurements."""
        system = self.study.systems[name]
        transformers.set_seed(seed)
        torch.set_num_threads(self.study.threads)
        folder = self.models / system.model
        ranker = KINDS[system.kind](system, folder, self.study.device)
        path = self.output / "weights" / f"{name}-{seed}-{part.name}.safetensors"
        note = path.with_suffix(".json")
        measured: dict[str, Any] = {"steps": {}, "loss": {}}
        if note.is_file():
            load_model(ranker, path)
            measured = json.loads(note.read_text(encoding="utf-8"))
        else:
            for number, stage in enumerate(system.training):
                examples = self.examples(ranker, name, seed, part, stage)
                if number == 0:
                    ranker.prepare([text for row in examples for text in list(row.values())[:2]])
                losses = descend(ranker, examples, stage, seed, self.study.device)
                tenth = max(1, len(losses) // 10)
                ends = losses[:tenth], losses[-tenth:]
                measured["steps"][stage.pairs] = len(losses)
                measured["loss"][stage.pairs] = [round(float(np.mean(end)), 4) for end in ends]
            if system.training:
                path.parent.mkdir(parents=True, exist_ok=True)
                save_model(ranker, path)
                note.write_text(json.dumps(measured), encoding="utf-8")
        return ranker.eval(), measured

    def examples(
        self, ranker: Ranker, name: str, seed: int, part: Part, stage: Stage
    ) -> list[dict[str, Any]]:
        """Build queries with a relevant document and a list of negatives, as token ids."""
        rng = np.random.default_rng(seed)
        if stage.pairs == "halves":
            papers = training_papers(self.dataset).head(self.limit or stage.papers)
            papers = papers.head(stage.papers)
            negatives = hard_negatives(papers["title"], papers["abstract"], rng)
            halves = [
                np.array_split(text, 2) for text in ranker.ids(self.texts(papers), 2 * stage.length)
            ]
            return [
                {"queries": first, "documents": second, "negatives": [halves[negative][1]]}
                for (first, second), negative in zip(halves, negatives, strict=True)
            ]
        judged = self.dataset.judgements.merge(part.trained)
        if not self.study.collection.trained_on:
            # A link goes both ways: no scored pair may be a training pair in the other direction.
            scored = self.dataset.judgements.merge(part.scored)
            swapped = pd.MultiIndex.from_frame(scored[["document", "query"]])
            judged = judged[~pd.MultiIndex.from_frame(judged[["query", "document"]]).isin(swapped)]
        is_relevant = judged["grade"] >= self.study.collection.relevant
        others = judged[~is_relevant].groupby(["task", "query"])["document"].agg(list)
        if self.study.systems[name].kind == "tilde":
            stage = stage.model_copy(update={"negatives": 1})
        rows = drawn_rows(judged[is_relevant], others, stage, rng)[: self.limit]
        texts = self.texts()
        queries, documents, drawn = (list(column) for column in zip(*rows, strict=True))
        negatives = [paper for group in drawn for paper in group]
        is_cross = isinstance(ranker, CrossEncoder)
        query_ids = ranker.ids(texts[queries], stage.length if is_cross else stage.query_length)
        if isinstance(ranker, TildeV2):
            query_ids = ranker.asked(query_ids)
        ids, _ = self.documents(ranker, name, seed, part, [*documents, *negatives], stage.length)
        others_of = iter(ids[len(documents) :])
        return [
            {"queries": query, "documents": own, "negatives": [next(others_of) for _ in group]}
            for query, own, group in zip(query_ids, ids, drawn, strict=False)
        ]

    def documents(
        self, ranker: Ranker, name: str, seed: int, part: Part, names: Sequence[str], limit: int
    ) -> tuple[list[Ids], float | None]:
        """Return the token ids of papers, expanded if configured, and the mean of new terms.

        New are those of the most likely terms by another TILDE, trained on the same queries, that
        the document does not contain.
        """
        system, texts = self.study.systems[name], self.texts()
        distinct = list(dict.fromkeys(names))
        ids = ranker.ids(texts[distinct], limit)
        added = None
        if system.terms:
            seeds = self.study.seeds_of(system.expanded_by)
            expander_seed = seed if seed in seeds else seeds[0]
            expander, _ = self.trained(system.expanded_by, expander_seed, part)
            if not isinstance(expander, Tilde):
                raise ValueError(f"{name}: expanded_by must name a TILDE")
            counts = []
            for start in range(0, len(ids), CHUNK):
                chunk = expander.ids(texts[distinct[start : start + CHUNK]], expander.system.length)
                tables = expander.log_probabilities(chunk)
                likely = np.argsort(-tables, axis=1, kind="stable")[:, : system.terms]
                for place, terms in enumerate(likely, start=start):
                    new = terms[~np.isin(terms, ids[place]) & ~np.isin(terms, expander.unasked)]
                    counts.append(len(new))
                    ids[place] = np.concatenate([ids[place], new])[:LONGEST]
            added = float(np.mean(counts))
        by_name = dict(zip(distinct, ids, strict=True))
        return [by_name[name] for name in names], added

    def scores(
        self, name: str, seed: int, pairs: pd.DataFrame
    ) -> tuple[pd.DataFrame, dict[str, Any], list[tuple[str, float]]]:
        """Score pairs by a system: ``task, query, document, score``, measures, and our example."""
        system, texts = self.study.systems[name], self.texts()
        if system.kind == "run file":
            return run_scores(system, name, pairs), {"steps": {}, "loss": {}}, []
        if system.kind == "dense":
            score = cosines(self.models / system.model, system, texts, pairs)
            return pairs.assign(score=score), {"steps": {}, "loss": {}}, []
        tables, example = [], []
        measured: dict[str, Any] = {}
        for part in self.parts(system, seed):
            # By document, so that the pairs of a document are scored together.
            part_pairs = pairs.merge(part.scored).sort_values("document", ignore_index=True)
            if part_pairs.empty:
                continue
            ranker, measured = self.trained(name, seed, part)
            documents, added = self.documents(
                ranker, name, seed, part, part_pairs["document"].tolist(), system.length
            )
            if added is not None:
                measured["terms added"] = round(added, 2)
            queries = ranker.ids(texts[part_pairs["query"]])
            if not isinstance(ranker, CrossEncoder):
                queries = ranker.asked(queries)
            score = np.empty(len(part_pairs))
            for start in range(0, len(part_pairs), CHUNK):
                chunk = slice(start, start + CHUNK)
                score[chunk] = ranker.scores(queries[chunk], documents[chunk])
            tables.append(part_pairs.assign(score=score))
            if not example and not isinstance(ranker, CrossEncoder):
                example = ranker.example()
        return pd.concat(tables), measured, example


def drawn_rows(
    relevant: pd.DataFrame, others: pd.Series, stage: Stage, rng: np.random.Generator
) -> list[tuple[str, str, list[str]]]:
    """Draw examples: a query, a relevant paper and papers that are not.

    Pairs: each relevant paper comes with one other at a time. Groups: in each epoch a query comes
    with one relevant paper and others, with replacement where it has too few.
    """
    rows: list[tuple[str, str, list[str]]] = []
    if not stage.group:
        for task, query, document in relevant[PAIR].itertuples(index=False):
            for _ in range(stage.negatives if (task, query) in others.index else 0):
                rows.append((query, document, [rng.choice(others[task, query])]))
        return rows
    for (task, query), documents in relevant.groupby(["task", "query"])["document"]:
        if (task, query) not in others.index:
            continue
        papers = others[task, query]
        pool = rng.permutation(papers)[: stage.negatives * len(documents)]
        size = stage.group - 1
        for _ in range(stage.epochs):
            group = rng.choice(pool, size, replace=len(pool) < size)
            rows.append((query, rng.choice(documents.to_numpy()), group.tolist()))
    return rows


def descend(
    ranker: Ranker, examples: list[dict[str, Any]], stage: Stage, seed: int, device: str
) -> list[float]:
    """Train a ranker on a stage; return the loss of each step."""

    def collate(rows: list[dict[str, Any]]) -> dict[str, list[Ids]]:
        batch = {key: [row[key] for row in rows] for key in ("queries", "documents")}
        return batch | {"negatives": [text for row in rows for text in row["negatives"]]}

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            num_train_epochs=1 if stage.group else stage.epochs,  # groups are drawn for each epoch
            per_device_train_batch_size=stage.batch,
            dataloader_drop_last=len(examples) > stage.batch,
            learning_rate=stage.rate,
            warmup_steps=0.1,
            weight_decay=0.01 if stage.optimiser == "adamw" else 0.0,  # without: Adam
            logging_steps=1,
            logging_nan_inf_filter=False,
            save_strategy="no",
            report_to=[],
            remove_unused_columns=False,
            use_cpu=device == "cpu",
            seed=seed,
        )
        trainer = transformers.Trainer(
            model=ranker, args=arguments, train_dataset=examples, data_collator=collate
        )
        trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def training_papers(dataset: Any) -> pd.DataFrame:
    """Return training papers without judgements: no query, none with the title of a query.

    15% of them are held out (thesis section 2.3.1).
    """
    papers = dataset.papers
    titles = papers["title"].str.casefold().str.split().str.join(" ")
    is_query = papers["document"].isin(dataset.judgements["query"])
    available = papers[~is_query & ~titles.isin(titles[is_query])].reset_index(drop=True)
    order = np.random.default_rng(0).permutation(len(available))
    kept = np.sort(order[round(0.15 * len(available)) :])
    return available.iloc[kept].reset_index(drop=True)


def hard_negatives(titles: pd.Series, abstracts: pd.Series, rng: np.random.Generator) -> Ids:
    """Draw a hard negative per paper: an abstract that BM25 ranks high for its title."""
    import bm25s  # only this needs it

    analyse = systems.ANALYSERS["STM2"]
    index = bm25s.BM25(method="lucene", **systems.BM25)
    index.index([analyse(text) for text in abstracts], show_progress=False)
    drawn = []
    for row, title in enumerate(titles):
        words = analyse(title)
        # bm25s refuses a title of stop words only.
        scores = index.get_scores(words) if words else np.zeros(len(abstracts))
        scores[row] = -np.inf  # its own abstract
        top = np.argsort(-scores, kind="stable")[: min(HARD, len(abstracts) - 1)]
        drawn.append(rng.choice(top))
    return np.array(drawn)


# --- rankers without training ---------------------------------------------------------------------


def run_scores(system: System, name: str, pairs: pd.DataFrame) -> pd.DataFrame:
    """Read scores from TREC run files, one per task."""
    tables = []
    for task, task_pairs in pairs.groupby("task"):
        run = read_run(Path(str(system.runs).replace("{task}", str(task))), name, order=None)
        run = run.astype({"topic": "str"}).rename(columns={"topic": "query"}).assign(task=task)
        tables.append(task_pairs.merge(run[[*PAIR, "score"]], how="left"))
    return pd.concat(tables)


@torch.inference_mode()
def cosines(
    folder: Path, system: System, texts: pd.Series, pairs: pd.DataFrame
) -> NDArray[np.float32]:
    """Compare query and document by the cosine of their mean token states."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    network = transformers.AutoModel.from_pretrained(
        folder, local_files_only=True, dtype=getattr(torch, system.precision)
    )
    network.eval()
    papers = pd.Index(pd.unique(pd.concat([pairs["query"], pairs["document"]])))
    vectors = []
    for start in range(0, len(papers), BATCH):
        batch = list(texts[papers[start : start + BATCH]])
        coded = tokenizer(
            batch, padding=True, truncation=True, max_length=system.length, return_tensors="pt"
        )
        states = network(**coded).last_hidden_state.float()
        mask = coded["attention_mask"].unsqueeze(-1)
        vectors.append((states * mask).sum(dim=1) / mask.sum(dim=1))
    directions = torch.nn.functional.normalize(torch.cat(vectors)).numpy()
    rows = [papers.get_indexer(pairs[column]) for column in ("query", "document")]
    return (directions[rows[0]] * directions[rows[1]]).sum(axis=1)


def word_piece_analyser(folder: Path | None, texts: pd.Series) -> systems.Analyser:
    """Return a WordPiece analyser: that of a checkpoint, or one learned from texts."""
    if folder is not None:
        pieces = Tokenizer.from_file(str(folder / "tokenizer.json"))
        pieces.no_truncation()
    else:
        pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106 - no password
        pieces.normalizer = normalizers.BertNormalizer(lowercase=True)
        pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        letters = sorted(set(pieces.normalizer.normalize_str(" ".join(texts))) - {" "})
        # Single letters come before all others: so ties are always broken in the same way.
        initial = ["[UNK]", *letters, *("##" + letter for letter in letters)]
        trainer = trainers.WordPieceTrainer(
            vocab_size=31_090, min_frequency=2, special_tokens=initial, show_progress=False
        )
        pieces.train_from_iterator(texts, trainer)
        # Without the special tokens, which are no parts of words.
        vocabulary = models.WordPiece(pieces.get_vocab(), unk_token="[UNK]")  # noqa: S106
        learned = Tokenizer(vocabulary)
        learned.normalizer, learned.pre_tokenizer = pieces.normalizer, pieces.pre_tokenizer
        pieces = learned
    return lambda text: pieces.encode(text, add_special_tokens=False).tokens


def word_piece_scores(run: Run, name: str, pairs: pd.DataFrame) -> pd.DataFrame:
    """Score pairs by BM25 and the language model over word pieces."""
    ranked = run.dataset.ranked()
    texts = run.texts(ranked.papers)
    used = sorted({*ranked.judgements["query"], *ranked.judgements["document"]})
    folder = run.study.word_pieces[name].tokenizer
    path = run.models / folder if folder else None
    candidates = sorted(set(ranked.judgements["document"]))
    analyser = {name: word_piece_analyser(path, texts[candidates])}
    judged = ranked.judgements[["query", "document"]].drop_duplicates(ignore_index=True)
    shared, statistics = systems.shared_terms(systems.term_counts(texts[used], analyser), judged)
    lengths = systems.paper_lengths(texts[used], analyser)
    data = systems.DerivedData(ranked.judgements, ranked.splits, lengths, shared, statistics)
    return pairs.merge(systems.lexical_scores(data), how="left", on=["query", "document"])


# --- files ----------------------------------------------------------------------------------------


class Record:
    """The files of a record; they are read first, and rewritten after each ranker."""

    def __init__(self, run: Run) -> None:
        self.run, self.folder = run, run.output
        self.folder.mkdir(parents=True, exist_ok=True)
        pairs = run.dataset.ranked().judgements[PAIR].sort_values(PAIR, ignore_index=True)
        self.pairs = pairs.head(run.limit or len(pairs))
        self.scores = self.pairs
        self.example = pd.DataFrame(columns=["system", "place", "token", "weight"])
        self.measured: dict[str, Any] = {}
        path = self.folder / "scores.csv.gz"
        if path.is_file():
            self.scores = pd.read_csv(path, dtype=dict.fromkeys(PAIR, str))
            if not self.scores[PAIR].equals(self.pairs):
                raise ValueError(f"{path} has scores of other pairs; choose another --output")
            self.example = pd.read_csv(self.folder / "example.csv", keep_default_na=False)
            text = (self.folder / "record.json").read_text(encoding="utf-8")
            self.measured = json.loads(text)["measured"]

    def add(self, table: pd.DataFrame) -> None:
        """Add columns of scores, and write the files."""
        self.scores = self.scores.merge(table, how="left", on=PAIR)
        study, models = self.run.study, self.run.models
        names = sorted({system.model for system in study.systems.values() if system.model})
        packages = ("numpy", "scipy", "torch", "transformers", "tokenizers")
        note = {
            "study": study.model_dump(mode="json", exclude={"derived", "outputs"}),
            "models": {name: project.sha256(models / name / "model.safetensors") for name in names},
            "versions": {package: version(package) for package in packages},
            "measured": self.measured,
        }
        lines = self.scores.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        example = self.example.to_csv(index=False, float_format="%.5g", lineterminator="\n")
        text = json.dumps(note, indent=1, sort_keys=True) + "\n"
        # The scores last: their columns are skipped.
        self._write("record.json", text.encode())
        self._write("example.csv", example.encode())
        self._write("scores.csv.gz", gzip.compress(lines.encode(), mtime=0))

    def _write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all."""
        part = self.folder / f"part-{name}"
        part.write_bytes(content)
        part.replace(self.folder / name)

    def complete(self) -> None:
        """Record all missing scores."""
        study = self.run.study
        for name in study.word_pieces:
            if f"LM {name}" not in self.scores:
                pieces = word_piece_scores(self.run, name, self.pairs)
                self.add(pieces[[*PAIR, f"BM25 {name}", f"LM {name}"]])
        for name, system in study.systems.items():
            for seed in study.seeds_of(name) if system.kind in LEARNED else ():
                column = f"{name}.{seed}"
                if column in self.scores:
                    continue
                started = time.perf_counter()
                table, measured, tokens = self.run.scores(name, seed, self.pairs)
                measured["seconds"] = round(time.perf_counter() - started)
                self.measured[column] = measured
                rows = [(name, place, *token) for place, token in enumerate(tokens)]
                if rows and name not in set(self.example["system"]):
                    rows_table = pd.DataFrame(rows, columns=self.example.columns)
                    self.example = pd.concat([self.example, rows_table], ignore_index=True)
                self.add(table.rename(columns={"score": column}))
                print(f"{column}: recorded", flush=True)


def main() -> None:
    """Record the scores that the options name."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--config", default="replica", help="a YAML file, or a name in data/studies"
    )
    parser.add_argument("--models", type=Path, default=Path("models"), help="folder of checkpoints")
    parser.add_argument("--output", type=Path, help="folder of the record [the config's outputs]")
    parser.add_argument("--limit", type=int, help="number of pairs, and of examples per stage")
    options = parser.parse_args()
    study = read_study(options.config)
    output = options.output or study.outputs
    Record(Run(study, load(study), options.models, output, options.limit)).complete()


if __name__ == "__main__":
    main()
