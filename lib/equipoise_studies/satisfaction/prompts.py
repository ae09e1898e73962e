"""What language models are asked, and what is read from their answers: a label, or a response.

The prompts of the thesis (Figures 3.3 and 3.6) lie in ``data/studies/satisfaction``, word for word
as its text prints them, with its names in braces for what is filled in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    texts = {INPUT: dialogue} | dict(zip(EXAMPLES, examples, strict=False))
    # All at once, so that braces in a dialogue are not taken for a place.
    return re.sub(r"\{[\w ]+\}", lambda place: texts.get(place[0], place[0]), prompt)


@dataclass(frozen=True)
class LabelAnswer:
    """What a model answered: its text, and log-probabilities of tokens where the label begins.

    ``likely``: of the likeliest ones, or of the one that was written alone (``alone``).
    """

    text: str
    likely: Mapping[str, float]
    alone: bool = False


def label_in(text: str) -> tuple[str, int] | None:
    """The first label in a text, and where it begins."""
    match = re.search(r"\b(dis)?satisfied\b", text, re.IGNORECASE)
    if match is None:
        return None
    return match[0].capitalize(), match.start()


def label_probability(answer: LabelAnswer) -> float:
    r"""Probability of "Dissatisfied" against "Satisfied".

    .. math:: P = \frac{\sum_{t \in D} p_t}{\sum_{t \in D} p_t + \sum_{t \in S} p_t}

    where D and S hold the likeliest tokens that the one label begins with and the other does not,
    whatever quotation marks stand before it. Where only the token that was written is known, P is
    1/2 + p/2 or 1/2 - p/2: on the side of the label written, the farther the likelier it was; and 1
    or 0 where not even that is known. Returns: from 0 to 1; NaN where there is no label, which is
    no answer.
    """
    if answer.alone or not answer.likely:
        return _written_label_probability(answer)
    sums = dict.fromkeys(LABELS, 0.0)
    for token, log_probability in answer.likely.items():
        beginning = token.strip(" \n\"'*")
        for label in LABELS:
            if beginning and label.startswith(beginning):
                sums[label] += math.exp(log_probability)
    total = sum(sums.values())
    if not total:
        return math.nan
    return sums["Dissatisfied"] / total


def _written_label_probability(answer: LabelAnswer) -> float:
    """`label_probability` of an answer of which only what was written is known."""
    label = label_in(answer.text)
    if label is None:
        return math.nan
    # Without log-probabilities the label counts as certain.
    confidence = 1.0
    if answer.likely:
        confidence = math.exp(max(answer.likely.values()))
    if label[0] == "Dissatisfied":
        return 0.5 + confidence / 2
    return 0.5 - confidence / 2


def response_in(text: str) -> str:
    """The response in what a model wrote: the first line behind the last SYSTEM:, if any."""
    lines = text.rpartition("SYSTEM:")[2].strip().splitlines()
    if not lines:
        return ""
    return lines[0].strip()
