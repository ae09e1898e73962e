"""What a pronoun could refer to: a rule that stands where the paper has a trained coreference model (anCB).

An utterance with a personal or possessive pronoun of the third person refers to the last noun
phrase, headed by a noun, of the nearest earlier utterance that has one, and no such pronoun. The
rule knows neither number nor gender, and nothing of ellipsis ("What are the symptoms?"). The noun
phrases and pronouns were found once, by spaCy's small English model, and lie in
``data/outputs/permutations``, as places in the utterances.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.problems import listed
from equipoise_studies.recording import digest, read

# below data/: for each utterance the places of its phrases, with their heads, and of its pronouns
RECORD = ("outputs", "permutations", "noun_phrases.jsonl")
KIND, KEY = "utterance", ("query",)
FIELDS: Mapping[str, type] = {"query": str, "text": str, "phrases": list, "pronouns": list}

_THIRD_PERSON = frozenset(
    {"it", "its", "they", "them", "their", "theirs", "he", "him", "his", "she", "her", "hers"}
)


def antecedent(text: str, line: Mapping[str, Any]) -> tuple[str, bool]:
    """The phrase that a later pronoun could refer to ("" where there is none), and whether the text has one itself."""
    nouns = [text[start:end] for start, end, head in line["phrases"] if head in ("NOUN", "PROPN")]
    return nouns[-1] if nouns else "", any(
        text[start:end].lower() in _THIRD_PERSON for start, end in line["pronouns"]
    )


def read_antecedents(path: Path, utterances: pd.DataFrame) -> pd.DataFrame:
    """The utterances (columns query, text) with the columns phrase and anaphoric, by the rule, from the record.

    Raises ValueError for an utterance that is not recorded, or was recorded with another text.
    """
    known = {line["query"]: line for line in read(path, KIND, FIELDS, KEY)[1]}
    pairs = list(zip(utterances["query"], utterances["text"], strict=True))
    if absent := [
        query for query, text in pairs if known.get(query, {}).get("text") != digest(text)
    ]:
        names = listed(absent, 5)
        recorder = (
            "python -m equipoise_studies.permutations.record phrases records them (it needs spaCy)"
        )
        raise ValueError(f"{path} has no noun phrases of the text of {names}: {recorder}")
    found = [antecedent(text, known[query]) for query, text in pairs]
    return utterances.assign(
        phrase=[phrase for phrase, _ in found], anaphoric=[anaphoric for _, anaphoric in found]
    )
