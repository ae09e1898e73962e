"""What language models are asked, and what is read from their answers: a label, or a last response written anew.

The prompts of the thesis (Figures 3.3 and 3.6) lie in ``data/studies/satisfaction``, word for word
as its text prints them, with its names in braces for what is filled in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from equipoise.files import read_text
from equipoise.problems import refused

LABELS = ("Satisfied", "Dissatisfied")
"""Labels of the few-shot prompt, in the order of its examples."""

INPUT = "{Input Dialogue}"
EXAMPLES = ("{Example Dialogue 1}", "{Example Dialogue 2}")


def read_prompt(path: Path, places: Sequence[str]) -> str:
    """Read a prompt; one that lacks a place to be filled in is refused."""
    text = read_text(path).strip()
    lacking = [place for place in places if place not in text]
    if lacking:
        raise refused(path, "a prompt", f"one with {' and '.join(lacking)} in it")
    return text


def filled(prompt: str, dialogue: str, examples: Sequence[str] = ()) -> str:
    """A prompt with a dialogue in it, and the examples' where it has a place for them."""
    places = dict(zip((INPUT, *EXAMPLES), (dialogue, *examples), strict=False))
    return re.sub(r"\{[\w ]+\}", lambda found: places.get(found[0], found[0]), prompt)


@dataclass(frozen=True)
class Told:
    """What a model answered: its text, and log-probabilities of tokens where the label begins.

    ``likely``: of the likeliest ones, or of the one that was written alone (``alone``).
    """

    text: str
    likely: Mapping[str, float]
    alone: bool = False


def label_in(text: str) -> tuple[str, int] | None:
    """The first label in a text, and where it begins."""
    found = re.search(r"\b(dis)?satisfied\b", text, re.IGNORECASE)
    return (found[0].capitalize(), found.start()) if found else None


def label_probability(told: Told) -> float:
    r"""Probability of "Dissatisfied" against "Satisfied".

    .. math:: P = \frac{\sum_{t \in D} p_t}{\sum_{t \in D} p_t + \sum_{t \in S} p_t}

    where D and S hold the likeliest tokens that the one label begins with and the other does not,
    whatever quotation marks stand before it. Where only the token that was written is known, P is
    1/2 + p/2 or 1/2 - p/2: on the side of the label written, the farther the likelier it was; and 1
    or 0 where not even that is known. Returns: from 0 to 1; 0.5 where there is no label.
    """
    if told.alone or not told.likely:
        written = label_in(told.text)
        if written is None:
            return 0.5
        sure = math.exp(max(told.likely.values())) if told.likely else 1.0
        return 0.5 + (sure / 2 if written[0] == "Dissatisfied" else -sure / 2)
    sums = dict.fromkeys(LABELS, 0.0)
    for (token, logarithm), label in product(told.likely.items(), LABELS):
        if (bare := token.strip(" \n\"'*")) and label.startswith(bare):
            sums[label] += math.exp(logarithm)
    total = sum(sums.values())
    return sums["Dissatisfied"] / total if total else 0.5


def response_in(text: str) -> str:
    """The response in what a model wrote: the first line that is not empty, behind the last SYSTEM: if there is one."""
    lines = text.rpartition("SYSTEM:")[2].strip().splitlines()
    return lines[0].strip() if lines else ""
