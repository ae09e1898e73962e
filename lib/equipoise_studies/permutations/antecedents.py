"""Antecedents by a rule: what stands where the paper has a trained coreference model (anCB).

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

# Below data/: for each utterance the places of its phrases, with their heads, and of its pronouns.
RECORD = ("outputs", "permutations", "noun_phrases.jsonl")
KIND, KEY = "utterance", ("query",)
FIELDS: Mapping[str, type] = {"query": str, "text": str, "phrases": list, "pronouns": list}

_NOUNS = ("NOUN", "PROPN")
_THIRD_PERSON = frozenset(
    {"it", "its", "they", "them", "their", "theirs", "he", "him", "his", "she", "her", "hers"}
)


def antecedent(text: str, line: Mapping[str, Any]) -> tuple[str, bool]:
    """The phrase that a later pronoun could refer to ("" for none), and if it has a pronoun."""
    last_phrase = ""
    for start, end, head in line["phrases"]:
        if head in _NOUNS:
            last_phrase = text[start:end]
    pronouns = {text[start:end].lower() for start, end in line["pronouns"]}
    return last_phrase, not pronouns.isdisjoint(_THIRD_PERSON)


def read_antecedents(path: Path, utterances: pd.DataFrame) -> pd.DataFrame:
    """The utterances (columns query, text) with the columns phrase and anaphoric, from the record.

    Raises ValueError for an utterance that is not recorded, or was recorded with another text.
    """
    _, lines = read(path, KIND, FIELDS, KEY)
    line_of_query = {line["query"]: line for line in lines}

    missing = []
    phrases = []
    anaphoric = []
    for query, text in zip(utterances["query"], utterances["text"], strict=True):
        line = line_of_query.get(query)
        if line is None or line["text"] != digest(text):
            missing.append(query)
            continue
        phrase, has_pronoun = antecedent(text, line)
        phrases.append(phrase)
        anaphoric.append(has_pronoun)
    if missing:
        recorder = "python -m equipoise_studies.permutations.record phrases"
        raise ValueError(
            f"{path} has no noun phrases of the text of {listed(missing, 5)}: "
            f"{recorder} records them (it needs spaCy)"
        )
    return utterances.assign(phrase=phrases, anaphoric=anaphoric)
