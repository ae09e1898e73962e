"""A conversational system as an evaluator may have it, which knows nothing of Equipoise.

A rule rewrites, bm25s ranks.

    python their_system.py PASSAGES (rewrite|raw) < inputs.jsonl > run

PASSAGES has lines of id, tab and text. The rule adds the words of the utterance before where there
is a pronoun, or hardly a word of its own.
"""

import json
import re
import sys
from pathlib import Path

import bm25s

PRONOUN = re.compile(
    r"(it|its|they|them|their|he|she|his|her|this|that|these|those|one|ones)", re.IGNORECASE
)
STOPPED = (
    "what is are the a an of to in for and or do does did how why when where who which was were "
    "me tell about can"
)


def content(text: str) -> list[str]:
    """Words that a search could begin with."""
    words = re.findall(r"\w+", text)
    return [
        word
        for word in words
        if word.lower() not in STOPPED.split() and not PRONOUN.fullmatch(word)
    ]


def rewrite(utterance: str, before: str) -> str:
    """The utterance, with the words that it may refer to."""
    refers = (
        any(map(PRONOUN.fullmatch, re.findall(r"\w+", utterance))) or len(content(utterance)) < 2
    )
    return f"{utterance} {' '.join(content(before))}" if refers else utterance


def terms(texts: list[str]) -> bm25s.tokenization.Tokenized:
    """Texts as bm25s takes them."""
    return bm25s.tokenize(texts, stopwords="en", show_progress=False)


def main(passages: str, how: str) -> None:
    """Rank the passages for each line of the standard input."""
    ids, texts = zip(
        *(line.split("\t", 1) for line in Path(passages).read_text().splitlines()), strict=True
    )
    index = bm25s.BM25(k1=1.2, b=0.75)
    index.index(terms(list(texts)), show_progress=False)
    for text in sys.stdin:
        asked = json.loads(text)
        said = asked["utterance"]
        if how == "rewrite" and asked["context"]:
            said = rewrite(said, asked["context"][-1]["utterance"])
        found, scores = index.retrieve(terms([said]), k=min(10, len(ids)), show_progress=False)
        for rank, (place, score) in enumerate(zip(found[0], scores[0], strict=True), 1):
            print(asked["id"], "Q0", ids[place], rank, f"{score:.6f}", how)


if __name__ == "__main__":
    main(*sys.argv[1:])
