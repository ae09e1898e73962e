"""What a language model makes of an utterance, told the first one and the one before.

The rewriter sees what CU sees, so it is asked once for each pair of utterances of a conversation,
whatever the number of orders. The first utterance never moves and is kept as it is. The rewrites
were recorded once and lie in ``data/outputs/permutations``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from equipoise.orders.conversations import Conversation
from equipoise.problems import listed
from equipoise_studies.recording import digest, read

# Below data/: for each pair of utterances what a model wrote.
RECORD = ("outputs", "permutations", "rewrites.jsonl")
KIND, KEY = "rewrite", ("query", "before")
FIELDS: Mapping[str, type] = {
    "query": str,
    "before": str,
    "prompt": str,
    "rewrite": str,
    "finished": bool,
}

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


def pairs_of(conversation: Conversation) -> list[tuple[int, int]]:
    """Previous and current utterance, of every pair of neighbours that some valid order has."""
    before, current = np.nonzero(conversation.structure.adjacency())
    return list(zip(before.tolist(), current.tolist(), strict=True))


def prompt_of(conversation: Conversation, before: int, current: int) -> str:
    """What a model is asked to continue, up to the next quotation mark."""
    # A quotation mark within an utterance would end it.
    texts = [text.replace('"', "'") for text in conversation.texts]
    prompt = f'{INSTRUCTION}First: "{texts[0]}"\n'
    if before:
        prompt += f'Before: "{texts[before]}"\n'
    return f'{prompt}Last: "{texts[current]}"\nRewritten: "'


def wanted(conversations: Sequence[Conversation], seed: int) -> list[tuple[Conversation, int, int]]:
    """Every pair of every conversation, those of valid orders first, in an order drawn by a seed.

    So a part of them is a random sample. The first utterance is never the current one.
    """
    pairs = []
    valid_pairs = {}
    for conversation in conversations:
        valid_pairs[conversation.topic] = set(pairs_of(conversation))
        utterances = range(len(conversation.texts))
        for before, current in product(utterances, utterances[1:]):
            if before != current:
                pairs.append((conversation, before, current))
    drawn = [pairs[place] for place in np.random.default_rng(seed).permutation(len(pairs))]
    return sorted(drawn, key=lambda pair: pair[1:] not in valid_pairs[pair[0].topic])


def read_rewrites(path: Path, conversations: Sequence[Conversation]) -> list[Conversation]:
    """The conversations with what a model makes of each utterance behind each other one.

    Raises ValueError for pairs that are not recorded, or were recorded with another prompt.
    """
    _, lines = read(path, KIND, FIELDS, KEY)
    line_of_pair = {(line["query"], line["before"]): line for line in lines}
    rewritten = []
    missing = []
    for conversation in conversations:
        texts = {}
        for before, current in pairs_of(conversation):
            query, previous = conversation.queries[current], conversation.queries[before]
            line = line_of_pair.get((query, previous))
            prompt = digest(prompt_of(conversation, before, current))
            if line is None or line["prompt"] != prompt:
                missing.append(f"{query} behind {previous}")
                continue
            texts[before, current] = line["rewrite"]
        rewritten.append(replace(conversation, rewrites=texts))
    if missing:
        recorder = "python -m equipoise_studies.permutations.record rewrites"
        raise ValueError(
            f"{path} has no rewrite of {listed(missing, 3)}: "
            f"{recorder} records them (it needs a language model)"
        )
    return rewritten
